//! Copying rectangles of an array: between host memory and shards, and between shards.

use crate::ifrt::{DType, HostBuffer, IndexDomain, Shape};

/// Writes the elements of a buffer with strides of any sign to `into`, dense and row-major. `None`
/// when they are not as many.
pub(super) fn gather(buffer: &HostBuffer<'_>, into: &mut [u8]) -> Option<()> {
    let element = buffer.dtype().size_bytes();
    let bytes = buffer.bytes().as_slice();
    let contiguous = buffer.byte_strides().last().is_none_or(|&stride| stride == signed(element));
    let mut rest = into;
    for_each_row(buffer.shape(), |index, length| {
        let mut at = signed(buffer.offset_bytes());
        for (&i, &stride) in index.iter().zip(buffer.byte_strides()) {
            at += signed(i) * stride;
        }
        let (row, behind) = std::mem::take(&mut rest).split_at_mut_checked(length * element)?;
        rest = behind;
        if contiguous {
            let start = usize::try_from(at).ok()?;
            row.copy_from_slice(bytes.get(start..)?.get(..length * element)?);
        } else {
            let stride = buffer.byte_strides().last().copied().unwrap_or_default();
            for (i, into) in row.chunks_exact_mut(element).enumerate() {
                let start = usize::try_from(at + signed(i) * stride).ok()?;
                into.copy_from_slice(bytes.get(start..)?.get(..element)?);
            }
        }
        Some(())
    })?;
    rest.is_empty().then_some(())
}

/// Writes the dense row-major `shard` to where `domain` lies in the dense row-major `whole`, an
/// array of `shape`. `None` when sizes do not fit together.
pub(super) fn insert(
    whole: &mut [u8],
    shape: &Shape,
    dtype: DType,
    domain: &IndexDomain,
    shard: &[u8],
) -> Option<()> {
    if !domain.is_within(shape) {
        return None;
    }
    let element = dtype.size_bytes();
    let strides = shape.strides();
    let mut rest = shard;
    for_each_row(domain.shape(), |index, length| {
        let start: usize = domain
            .origin()
            .iter()
            .enumerate()
            .zip(&strides)
            .map(|((d, from), stride)| (from + index.get(d).copied().unwrap_or_default()) * stride)
            .sum();
        let (row, behind) = rest.split_at_checked(length * element)?;
        whole.get_mut(start * element..)?.get_mut(..row.len())?.copy_from_slice(row);
        rest = behind;
        Some(())
    })?;
    rest.is_empty().then_some(())
}

/// Copies the elements of `part` from one dense row-major rectangle of an array to another, each
/// given by what it has of the array and its bytes. `None` when a rectangle does not have `part`
/// or not as many bytes as it says.
pub(super) fn copy(
    part: &IndexDomain,
    element_bytes: usize,
    (to, into): (&IndexDomain, &mut [u8]),
    (from, source): (&IndexDomain, &[u8]),
) -> Option<()> {
    let fits = |domain: &IndexDomain, len: usize| {
        part.intersection(domain).as_ref() == Some(part)
            && len == domain.shape().num_elements() * element_bytes
    };
    if part.shape().num_elements() == 0 {
        return Some(());
    }
    if !fits(to, into.len()) || !fits(from, source.len()) {
        return None;
    }
    // The innermost dimensions that are whole in both rectangles are one run of bytes.
    let dims = part.shape().dims();
    let mut outer = part.shape().rank();
    let mut run = element_bytes;
    while outer > 0 {
        outer -= 1;
        run *= dims[outer];
        if to.shape().dims()[outer] != dims[outer] || from.shape().dims()[outer] != dims[outer] {
            break;
        }
    }
    let (to_start, to_strides) = place(part, to, element_bytes);
    let (from_start, from_strides) = place(part, from, element_bytes);
    for_each_index(&dims[..outer], |index| {
        let at = |start: usize, strides: &[usize]| {
            index.iter().zip(strides).fold(start, |at, (i, stride)| at + i * stride)
        };
        let row = source.get(at(from_start, &from_strides)..)?.get(..run)?;
        into.get_mut(at(to_start, &to_strides)..)?.get_mut(..run)?.copy_from_slice(row);
        Some(())
    })
}

/// Where in the dense bytes of `domain` the first element of `part` is, and the strides to others.
fn place(part: &IndexDomain, domain: &IndexDomain, element_bytes: usize) -> (usize, Vec<usize>) {
    let mut strides = domain.shape().strides();
    strides.iter_mut().for_each(|stride| *stride *= element_bytes);
    let offsets = part.origin().iter().zip(domain.origin()).map(|(part, origin)| part - origin);
    (offsets.zip(&strides).map(|(offset, stride)| offset * stride).sum(), strides)
}

/// Calls `row` for each row of `shape` in order, with the index of its first element (the last
/// dimension left out) and its length; stops at `None`.
fn for_each_row(shape: &Shape, mut row: impl FnMut(&[usize], usize) -> Option<()>) -> Option<()> {
    if shape.num_elements() == 0 {
        return Some(());
    }
    let Some((&length, outer)) = shape.dims().split_last() else {
        return row(&[], 1);
    };
    for_each_index(outer, |index| row(index, length))
}

/// Calls `each` for the indices of an array of `dims`, none of them 0, in order; stops at `None`.
fn for_each_index(dims: &[usize], mut each: impl FnMut(&[usize]) -> Option<()>) -> Option<()> {
    let mut index = vec![0; dims.len()];
    loop {
        each(&index)?;
        let mut d = dims.len();
        loop {
            if d == 0 {
                return Some(());
            }
            d -= 1;
            index[d] += 1;
            if index[d] < dims[d] {
                break;
            }
            index[d] = 0;
        }
    }
}

/// A size of something in memory as a stride: it fits, since objects are smaller than `i64::MAX`.
fn signed(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ifrt::{HostBytes, Mesh};
    use proptest::prelude::*;

    fn shape(dims: &[usize]) -> Shape {
        Shape::new(dims).unwrap()
    }

    fn domain(origin: &[usize], dims: &[usize]) -> IndexDomain {
        IndexDomain::new(origin, shape(dims)).unwrap()
    }

    #[test]
    fn reads_through_strides_of_any_sign() {
        let bytes: Vec<u8> = (0..12).collect();
        let read = |dims: &[usize], offset, strides: &[i64], domain: &IndexDomain| {
            let bytes = HostBytes::Borrowed(&bytes);
            let buffer =
                HostBuffer::strided(bytes, DType::U8, shape(dims), offset, strides.to_vec());
            let part = buffer.unwrap().part(&vec![0; dims.len()], domain).unwrap();
            let mut read = vec![0; domain.shape().num_elements()];
            gather(&part, &mut read).unwrap();
            read
        };
        assert_eq!(read(&[3, 4], 0, &[4, 1], &domain(&[1, 1], &[2, 2])), [5, 6, 9, 10]);
        assert_eq!(read(&[4, 3], 0, &[1, 4], &domain(&[1, 0], &[2, 3])), [1, 5, 9, 2, 6, 10]);
        assert_eq!(read(&[3], 11, &[-5], &domain(&[0], &[3])), [11, 6, 1]);
        assert_eq!(read(&[2, 2], 7, &[1, 0], &domain(&[0, 0], &[2, 2])), [7, 7, 8, 8]);
        assert_eq!(read(&[], 3, &[], &domain(&[], &[])), [3]);
        assert_eq!(read(&[0, 4], 0, &[4, i64::MAX], &domain(&[0, 2], &[0, 2])), [0_u8; 0]);
    }

    #[test]
    fn refuses_what_does_not_fit() {
        let bytes = [0_u8; 4];
        let buffer =
            HostBuffer::dense(HostBytes::Borrowed(&bytes), DType::U8, shape(&[4])).unwrap();
        assert!(gather(&buffer, &mut [0; 3]).is_none());
        assert!(gather(&buffer, &mut [0; 5]).is_none());
        let mut whole = [0_u8; 4];
        let mut insert = |domain: &IndexDomain, shard: &[u8]| {
            insert(&mut whole, &shape(&[4]), DType::U8, domain, shard)
        };
        assert!(insert(&domain(&[3], &[2]), &[1, 2]).is_none());
        assert!(insert(&domain(&[1], &[2]), &[1, 2, 3]).is_none());
        assert!(insert(&domain(&[1], &[2]), &[1]).is_none());
        assert!(insert(&domain(&[1], &[2]), &[1, 2]).is_some());
    }

    #[test]
    fn copies_what_two_rectangles_share() {
        // Rows 1 to 3 of an array of 4 x 3 whose elements are their numbers, two bytes each.
        let from = domain(&[1, 0], &[3, 3]);
        let source: Vec<u8> = (3_u8..12).flat_map(|number| [number, 100 + number]).collect();
        let copied = |to: &IndexDomain, part: &IndexDomain| {
            let mut into = vec![0; to.shape().num_elements() * 2];
            copy(part, 2, (to, &mut into), (&from, &source))?;
            Some(into.chunks(2).map(|element| element[0]).collect::<Vec<_>>())
        };
        let column = domain(&[0, 1], &[4, 2]);
        assert_eq!(copied(&column, &domain(&[1, 2], &[3, 1])), Some(vec![0, 0, 0, 5, 0, 8, 0, 11]));
        assert_eq!(
            copied(&from, &domain(&[2, 0], &[2, 3])),
            Some(vec![0, 0, 0, 6, 7, 8, 9, 10, 11])
        );
        assert_eq!(copied(&from, &domain(&[9, 9], &[0, 3])), Some(vec![0; 9]));
        assert_eq!(copied(&column, &domain(&[0, 1], &[2, 1])), None, "not all of it is there");
        let scalar = IndexDomain::whole(Shape::scalar());
        let mut one = [0];
        copy(&scalar, 1, (&scalar, &mut one), (&scalar, &[7])).unwrap();
        assert_eq!(one, [7]);
        assert_eq!(copy(&scalar, 1, (&scalar, &mut one), (&scalar, &[7, 7])), None);
    }

    proptest! {
        /// What is cut into shards and put together again is the same array.
        #[test]
        fn shards_put_together_are_the_array(
            rows in 0_usize..7, columns in 0_usize..7, x in 1_usize..4, y in 1_usize..4,
        ) {
            let shape = shape(&[rows, columns]);
            let elements: Vec<u16> = (0..).take(rows * columns).collect();
            let buffer = HostBuffer::from_slice(&elements, DType::U16, shape.clone()).unwrap();
            let tiling = Mesh::new([("x", x), ("y", y)]).unwrap().tiling(&[&["x"], &["y"]]).unwrap();
            let mut whole = vec![0; rows * columns * 2];
            for shard in 0..x * y {
                let domain = tiling.index_domain(&shape, shard).unwrap();
                let part = buffer.part(&[0, 0], &domain).unwrap();
                let mut bytes = vec![0; domain.shape().num_elements() * 2];
                gather(&part, &mut bytes).unwrap();
                insert(&mut whole, &shape, DType::U16, &domain, &bytes).unwrap();
            }
            prop_assert_eq!(whole, bytemuck::cast_slice::<u16, u8>(&elements));
        }
    }
}
