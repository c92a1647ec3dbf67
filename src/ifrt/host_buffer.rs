//! Array contents in host memory.

use std::fmt;
use std::sync::Arc;

use super::{DType, IndexDomain, Result, Shape, Status};

/// For how long the runtime may look at a caller's bytes; from the most to the least restrictive.
///
/// A runtime may do with less than it is allowed and copy. When it is done, it drops its
/// reference: the owner of [`HostBytes::Shared`] is dropped exactly once if the call succeeded,
/// which is the signal other runtimes give through a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostBufferSemantics {
    /// Only during the call. The one that borrowed bytes get, whatever is asked for.
    ImmutableOnlyDuringCall,
    /// Until the array is ready.
    ImmutableUntilTransferCompletes,
    /// As long as the array lives: it may be backed by these very bytes.
    ImmutableZeroCopy,
    /// As long as the array lives, and the runtime may write to them once the array is donated.
    MutableZeroCopy,
}

/// Bytes in host memory: a caller's for the duration of a call, or shared.
#[derive(Clone)]
pub enum HostBytes<'a> {
    /// Bytes lent for the duration of a call.
    Borrowed(&'a [u8]),
    /// Bytes that live as long as somebody refers to them.
    Shared(Arc<dyn AsRef<[u8]> + Send + Sync>),
}

impl HostBytes<'_> {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Shared(owner) => (**owner).as_ref(),
        }
    }
}

/// Array contents in host memory, with the type and strides to read them by.
///
/// Element `[i0, i1, …]` starts at byte `offset + i0 * strides[0] + i1 * strides[1] + …`; strides
/// may be zero or negative. Construction checks that every element lies within the bytes.
#[derive(Clone)]
pub struct HostBuffer<'a> {
    bytes: HostBytes<'a>,
    dtype: DType,
    shape: Shape,
    offset_bytes: usize,
    byte_strides: Vec<i64>,
}

impl<'a> HostBuffer<'a> {
    /// Dense row-major contents.
    ///
    /// # Errors
    /// `InvalidArgument` when `bytes` are not exactly those of the array.
    pub fn dense(bytes: HostBytes<'a>, dtype: DType, shape: Shape) -> Result<Self> {
        let expected = shape.num_elements() * dtype.size_bytes();
        let found = bytes.as_slice().len();
        if found != expected {
            return Err(Status::invalid_argument(format!(
                "an array of {dtype} and shape {shape} takes {expected} bytes, the host buffer has {found}"
            )));
        }
        let byte_strides = dense_strides(dtype, &shape);
        Ok(Self { bytes, dtype, shape, offset_bytes: 0, byte_strides })
    }

    /// Dense row-major contents of a caller's slice, such as `&[f32]` with [`DType::F32`].
    ///
    /// # Errors
    /// `InvalidArgument` when `elements` are not exactly those of the array.
    pub fn from_slice<T: bytemuck::NoUninit>(
        elements: &'a [T],
        dtype: DType,
        shape: Shape,
    ) -> Result<Self> {
        Self::dense(HostBytes::Borrowed(bytemuck::cast_slice(elements)), dtype, shape)
    }

    /// Contents with strides of any sign, from the byte at `offset_bytes` on.
    ///
    /// # Errors
    /// `InvalidArgument` when the number of strides is not the rank, or an element would lie
    /// outside `bytes`.
    pub fn strided(
        bytes: HostBytes<'a>,
        dtype: DType,
        shape: Shape,
        offset_bytes: usize,
        byte_strides: Vec<i64>,
    ) -> Result<Self> {
        if byte_strides.len() != shape.rank() {
            return Err(Status::invalid_argument(format!(
                "the shape {shape} has rank {}, there are {} strides",
                shape.rank(),
                byte_strides.len()
            )));
        }
        if shape.num_elements() > 0 {
            // The first and last byte that the most distant elements touch; i128 holds every sum.
            let (mut first, mut last) = (offset_bytes as i128, offset_bytes as i128);
            for (&stride, &dim) in byte_strides.iter().zip(shape.dims()) {
                let reach = i128::from(stride) * (dim as i128 - 1);
                first += reach.min(0);
                last += reach.max(0);
            }
            let len = bytes.as_slice().len();
            if first < 0 || last + dtype.size_bytes() as i128 > len as i128 {
                return Err(Status::invalid_argument(format!(
                    "strides {byte_strides:?} over the shape {shape} of {dtype} reach from byte {first} to byte {}, the host buffer has {len} bytes",
                    last + dtype.size_bytes() as i128,
                )));
            }
        }
        Ok(Self { bytes, dtype, shape, offset_bytes, byte_strides })
    }

    /// The elements of `domain` of an array whose element at `origin` is the first of this buffer,
    /// in place.
    ///
    /// # Errors
    /// `InvalidArgument` when they are not all in it.
    pub fn part(&self, origin: &[usize], domain: &IndexDomain) -> Result<Self> {
        let rank = self.shape.rank();
        let fits = domain.origin().len() == rank
            && origin.len() == rank
            && (domain.ranges().zip(origin).zip(self.shape.dims()))
                .all(|(((from, to), origin), dim)| from >= *origin && to - origin <= *dim);
        if domain.shape().num_elements() == 0 {
            return Ok(Self {
                shape: domain.shape().clone(),
                byte_strides: dense_strides(self.dtype, domain.shape()),
                ..self.clone()
            });
        }
        if !fits {
            return Err(Status::invalid_argument(format!(
                "{domain} is not all in {self:?}, which begins at {origin:?}"
            )));
        }
        let steps = domain.origin().iter().zip(origin).zip(&self.byte_strides);
        // Construction has checked that every element lies within the bytes.
        let offset = steps.fold(self.offset_bytes, |offset, ((from, origin), stride)| {
            let step = i64::try_from(from - origin).unwrap_or(i64::MAX).wrapping_mul(*stride);
            offset.wrapping_add_signed(isize::try_from(step).unwrap_or(0))
        });
        Ok(Self { shape: domain.shape().clone(), offset_bytes: offset, ..self.clone() })
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// All the bytes, elements at [`HostBuffer::byte_strides`].
    pub fn bytes(&self) -> &HostBytes<'a> {
        &self.bytes
    }

    /// Where element `[0, 0, …]` starts.
    pub fn offset_bytes(&self) -> usize {
        self.offset_bytes
    }

    /// Bytes from an element to its successor, per dimension.
    pub fn byte_strides(&self) -> &[i64] {
        &self.byte_strides
    }

    /// The contents if they are dense and row-major.
    pub fn as_dense(&self) -> Option<&[u8]> {
        let size = self.shape.num_elements() * self.dtype.size_bytes();
        let bytes = self.bytes.as_slice();
        if size == 0 {
            return Some(&[]);
        }
        let is_dense = dense_strides(self.dtype, &self.shape)
            .iter()
            .zip(&self.byte_strides)
            .zip(self.shape.dims())
            .all(|((dense, stride), &dim)| dim == 1 || dense == stride);
        is_dense.then(|| bytes.get(self.offset_bytes..)?.get(..size)).flatten()
    }

    /// The elements as numbers, such as `f32` for [`DType::F32`].
    ///
    /// # Errors
    /// `InvalidArgument` when an element is not as large as `T`, or the contents are not dense.
    pub fn to_vec<T: bytemuck::AnyBitPattern>(&self) -> Result<Vec<T>> {
        let size = size_of::<T>();
        let bytes = self.as_dense().filter(|_| size == self.dtype.size_bytes());
        let bytes = bytes.ok_or_else(|| {
            Status::invalid_argument(format!(
                "elements of {} bytes cannot be read from {self:?}",
                size_of::<T>()
            ))
        })?;
        Ok(bytes.chunks_exact(size).map(bytemuck::pod_read_unaligned).collect())
    }
}

fn dense_strides(dtype: DType, shape: &Shape) -> Vec<i64> {
    let size = dtype.size_bytes();
    // A shape's byte count fits isize, and so does each of its strides.
    shape.strides().into_iter().map(|s| i64::try_from(s * size).unwrap_or(i64::MAX)).collect()
}

impl fmt::Debug for HostBuffer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host buffer of {} with shape {}", self.dtype, self.shape)?;
        if self.as_dense().is_none() {
            write!(f, " and byte strides {:?}", self.byte_strides)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[usize]) -> Shape {
        Shape::new(dims).unwrap()
    }

    #[test]
    fn dense_contents_must_have_the_right_size() {
        let elements = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
        let buffer = HostBuffer::from_slice(&elements, DType::F32, shape(&[2, 3])).unwrap();
        assert_eq!(buffer.to_vec::<f32>().unwrap(), elements);
        assert!(buffer.to_vec::<u8>().is_err());
        let error = HostBuffer::from_slice(&elements, DType::F64, shape(&[2, 3])).unwrap_err();
        assert_eq!(
            error.message(),
            "an array of f64 and shape [2, 3] takes 48 bytes, the host buffer has 24"
        );
    }

    #[test]
    fn parts_are_read_in_place() {
        let numbers: Vec<u32> = (0..12).collect();
        let buffer = HostBuffer::from_slice(&numbers, DType::U32, shape(&[3, 4])).unwrap();
        let domain =
            |origin: [usize; 2], dims: [usize; 2]| IndexDomain::new(origin, shape(&dims)).unwrap();
        // The buffer is rows 5 to 7 and columns 2 to 5 of an array.
        let part = buffer.part(&[5, 2], &domain([6, 2], [2, 4])).unwrap();
        assert_eq!(part.to_vec::<u32>().unwrap(), [4, 5, 6, 7, 8, 9, 10, 11]);
        let column = buffer.part(&[5, 2], &domain([5, 3], [3, 1])).unwrap();
        assert_eq!((column.offset_bytes(), column.byte_strides()), (4, &[16, 4][..]));
        assert!(buffer.part(&[5, 2], &domain([4, 2], [1, 1])).is_err());
        assert!(buffer.part(&[5, 2], &domain([5, 5], [1, 2])).is_err());
        assert_eq!(
            buffer.part(&[5, 2], &domain([99, 0], [0, 9])).unwrap().as_dense(),
            Some(&[][..])
        );
    }

    #[test]
    fn strides_are_checked_against_the_bytes() {
        let bytes = [0_u8; 6];
        let strided = |dims: &[usize], offset, strides: &[i64]| {
            let bytes = HostBytes::Borrowed(&bytes);
            HostBuffer::strided(bytes, DType::U8, shape(dims), offset, strides.to_vec())
        };
        assert!(strided(&[6], 5, &[-1]).is_ok());
        assert!(strided(&[6], 4, &[-1]).is_err());
        assert!(strided(&[100], 5, &[0]).is_ok());
        assert!(strided(&[2, 3], 0, &[3, 1]).is_ok());
        assert!(strided(&[2, 3], 1, &[3, 1]).is_err());
        assert!(strided(&[2], 0, &[i64::MAX]).is_err());
        assert!(strided(&[2, 3], 0, &[1]).is_err());
        assert!(strided(&[0], 99, &[1]).is_ok(), "nothing is read");
        assert!(strided(&[2, 3], 0, &[3, 1]).unwrap().as_dense().is_some());
        assert!(strided(&[3, 2], 0, &[1, 3]).unwrap().as_dense().is_none());
    }
}
