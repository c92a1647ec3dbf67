//! How an array lies in a buffer: an offset, and a stride per dimension.
//!
//! Slices, transposes, broadcasts and reversals of a stored array are views of the same bytes;
//! nothing moves until a consumer needs the elements in another order. All numbers count
//! elements. A view of at least one element never addresses outside its buffer.

use crate::ifrt::Shape;

/// An array laid over a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// Where the element at index 0, 0, … lies.
    pub(crate) offset: usize,
    /// The dimensions, outermost first.
    pub(crate) dims: Vec<usize>,
    /// The distance between neighbours along each dimension.
    pub(crate) strides: Vec<isize>,
}

/// `position` moved by `count` steps of `stride`.
pub(crate) fn advance(position: usize, stride: isize, count: usize) -> usize {
    position.wrapping_add(stride.cast_unsigned().wrapping_mul(count))
}

/// Row-major strides of an array with these dimensions.
pub(crate) fn row_major(dims: &[usize]) -> Vec<isize> {
    let mut stride = 1_isize;
    let mut strides = vec![0; dims.len()];
    for (slot, &dim) in strides.iter_mut().zip(dims).rev() {
        *slot = stride;
        // `Shape` bounds the product of the non-zero dimensions.
        stride = stride.wrapping_mul(dim.max(1).cast_signed());
    }
    strides
}

impl View {
    /// A row-major array that fills its buffer.
    pub(crate) fn dense(dims: &[usize]) -> Self {
        Self { offset: 0, dims: dims.to_vec(), strides: row_major(dims) }
    }

    /// The one element of a buffer, everywhere.
    pub(crate) fn splat(dims: &[usize]) -> Self {
        Self { offset: 0, dims: dims.to_vec(), strides: vec![0; dims.len()] }
    }

    /// How many elements the view has.
    pub(crate) fn num_elements(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether the view is its whole buffer in row-major order, given that it has as many
    /// elements.
    pub(crate) fn is_dense(&self) -> bool {
        self.offset == 0 && self.is_contiguous()
    }

    /// Whether the elements lie one after the other in row-major order.
    pub(crate) fn is_contiguous(&self) -> bool {
        let collapsed = self.collapsed();
        match collapsed.strides.as_slice() {
            [] => true,
            [stride] => *stride == 1,
            _ => collapsed.num_elements() == 0,
        }
    }

    /// Whether every index addresses the same element.
    pub(crate) fn is_splat(&self) -> bool {
        self.dims.iter().zip(&self.strides).all(|(&dim, &stride)| dim == 1 || stride == 0)
    }

    /// `broadcast_in_dim`: operand dimension `i` becomes result dimension `mapping[i]`.
    pub(crate) fn broadcast(&self, dims: &[usize], mapping: &[usize]) -> Self {
        let mut strides = vec![0; dims.len()];
        for ((&target, &dim), &stride) in mapping.iter().zip(&self.dims).zip(&self.strides) {
            if dim == dims[target] {
                strides[target] = stride;
            }
        }
        Self { offset: self.offset, dims: dims.to_vec(), strides }
    }

    /// `transpose`: result dimension `i` is this view's dimension `permutation[i]`.
    pub(crate) fn transpose(&self, permutation: &[usize]) -> Self {
        Self {
            offset: self.offset,
            dims: permutation.iter().map(|&i| self.dims[i]).collect(),
            strides: permutation.iter().map(|&i| self.strides[i]).collect(),
        }
    }

    /// `slice` with a start, a limit and a step per dimension.
    pub(crate) fn slice(&self, start: &[usize], limit: &[usize], steps: &[usize]) -> Self {
        let mut view = self.clone();
        for i in 0..view.dims.len() {
            let step = steps[i].max(1);
            view.dims[i] = limit[i].saturating_sub(start[i]).div_ceil(step);
            view.offset = advance(view.offset, self.strides[i], start[i]);
            view.strides[i] = self.strides[i].wrapping_mul(step.cast_signed());
        }
        if view.num_elements() == 0 {
            view.offset = 0;
        }
        view
    }

    /// `reverse` along `dimensions`.
    pub(crate) fn reverse(&self, dimensions: &[usize]) -> Self {
        let mut view = self.clone();
        for &i in dimensions {
            view.offset = advance(view.offset, view.strides[i], view.dims[i].saturating_sub(1));
            view.strides[i] = view.strides[i].wrapping_neg();
        }
        view
    }

    /// The same elements under other dimensions, or `None` when they would have to move.
    pub(crate) fn reshape(&self, dims: &[usize]) -> Option<Self> {
        if self.num_elements() == 0 {
            return Some(Self { offset: 0, ..Self::dense(dims) });
        }
        // Both lists of dimensions are walked in groups of equal volume; a group can be re-cut
        // when it is one run of equally spaced elements.
        let source = self.collapsed();
        let mut strides = vec![0; dims.len()];
        let mut target = 0;
        for (&size, &stride) in source.dims.iter().zip(&source.strides) {
            let first = target;
            let mut volume = 1;
            while volume < size {
                volume *= dims.get(target)?;
                target += 1;
            }
            if volume != size {
                return None;
            }
            let mut step = stride;
            for i in (first..target).rev() {
                strides[i] = step;
                step = step.wrapping_mul(dims[i].cast_signed());
            }
        }
        Some(Self { offset: self.offset, dims: dims.to_vec(), strides })
    }

    /// The same elements in the same order with the fewest dimensions: those of size 1 are gone,
    /// and neighbours that form one evenly spaced run are merged.
    pub(crate) fn collapsed(&self) -> Self {
        let mut dims: Vec<usize> = Vec::with_capacity(self.dims.len());
        let mut strides: Vec<isize> = Vec::with_capacity(self.dims.len());
        for (&dim, &stride) in self.dims.iter().zip(&self.strides) {
            if dim == 1 {
                continue;
            }
            match (dims.last_mut(), strides.last_mut()) {
                (Some(outer), Some(outer_stride))
                    if *outer_stride == stride.wrapping_mul(dim.cast_signed()) =>
                {
                    *outer *= dim;
                    *outer_stride = stride;
                }
                _ => {
                    dims.push(dim);
                    strides.push(stride);
                }
            }
        }
        Self { offset: self.offset, dims, strides }
    }
}

impl From<&Shape> for View {
    fn from(shape: &Shape) -> Self {
        Self::dense(shape.dims())
    }
}

/// Counts through the indices of an array in row-major order, tracking the position each has
/// under any number of stride lists.
#[derive(Debug)]
pub(crate) struct Odometer<'a, const N: usize> {
    dims: &'a [usize],
    strides: [&'a [isize]; N],
    index: Vec<usize>,
    positions: [usize; N],
    remaining: usize,
    started: bool,
}

impl<'a, const N: usize> Odometer<'a, N> {
    /// A counter over `dims` that starts at index 0, 0, … at `offsets`.
    pub(crate) fn new(dims: &'a [usize], strides: [&'a [isize]; N], offsets: [usize; N]) -> Self {
        let remaining = dims.iter().product();
        Self {
            dims,
            strides,
            index: vec![0; dims.len()],
            positions: offsets,
            remaining,
            started: false,
        }
    }

    /// The next positions, and with them the index they belong to.
    pub(crate) fn next(&mut self) -> Option<([usize; N], &[usize])> {
        if self.remaining == 0 {
            return None;
        }
        if self.started {
            self.step();
        }
        self.started = true;
        self.remaining -= 1;
        Some((self.positions, &self.index))
    }

    fn step(&mut self) {
        for axis in (0..self.dims.len()).rev() {
            self.index[axis] += 1;
            let wraps = self.index[axis] == self.dims[axis];
            for (position, strides) in self.positions.iter_mut().zip(self.strides) {
                *position = if wraps {
                    advance(*position, strides[axis].wrapping_neg(), self.dims[axis] - 1)
                } else {
                    advance(*position, strides[axis], 1)
                };
            }
            if !wraps {
                return;
            }
            self.index[axis] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(view: &View) -> Vec<usize> {
        let mut odometer = Odometer::new(&view.dims, [&view.strides], [view.offset]);
        let mut found = Vec::new();
        while let Some(([position], _)) = odometer.next() {
            found.push(position);
        }
        found
    }

    #[test]
    fn views_address_what_the_operations_say() {
        let matrix = View::dense(&[2, 3]);
        assert_eq!(positions(&matrix), [0, 1, 2, 3, 4, 5]);
        assert_eq!(positions(&matrix.transpose(&[1, 0])), [0, 3, 1, 4, 2, 5]);
        assert_eq!(positions(&matrix.reverse(&[1])), [2, 1, 0, 5, 4, 3]);
        assert_eq!(positions(&matrix.slice(&[0, 0], &[2, 3], &[1, 2])), [0, 2, 3, 5]);
        assert_eq!(positions(&matrix.slice(&[1, 1], &[2, 3], &[1, 1])), [4, 5]);
        let row = View::dense(&[3]).broadcast(&[2, 3], &[1]);
        assert_eq!(positions(&row), [0, 1, 2, 0, 1, 2]);
        let column = View::dense(&[2, 1]).broadcast(&[2, 3], &[0, 1]);
        assert_eq!(positions(&column), [0, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn reshape_keeps_order_or_declines() {
        let matrix = View::dense(&[4, 6]);
        assert_eq!(matrix.reshape(&[2, 12]), Some(View::dense(&[2, 12])));
        assert!(matrix.reshape(&[1, 24, 1]).unwrap().is_dense());
        let transposed = matrix.transpose(&[1, 0]);
        assert_eq!(transposed.reshape(&[24]), None);
        let split = transposed.reshape(&[2, 3, 4]).unwrap();
        assert_eq!(positions(&split), positions(&transposed));
        let rows = View::dense(&[3]).broadcast(&[4, 3], &[1]);
        assert_eq!(positions(&rows.reshape(&[2, 2, 3]).unwrap()), positions(&rows));
        assert_eq!(rows.reshape(&[12]), None);
        assert!(View::splat(&[2, 3]).reshape(&[6]).unwrap().is_splat());
    }

    #[test]
    fn density_is_recognised() {
        assert!(View::dense(&[2, 1, 3]).is_dense());
        assert!(View::dense(&[1, 5]).transpose(&[1, 0]).is_dense());
        assert!(!View::dense(&[2, 5]).transpose(&[1, 0]).is_dense());
        assert!(!View::dense(&[4]).slice(&[1], &[3], &[1]).is_dense());
        assert!(View::dense(&[4]).slice(&[1], &[3], &[1]).is_contiguous());
        assert!(View::dense(&[0, 3]).transpose(&[1, 0]).is_dense());
    }
}
