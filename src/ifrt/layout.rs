//! How the elements of a shard follow each other in memory.

use std::fmt;

use super::{DType, Result, Shape, Status};

/// A dense order of elements, from the slowest dimension to the fastest.
///
/// Where none is given, that of [`super::Client::default_layout`] is meant: two that are not
/// given are not equal for that, since defaults depend on what they are for. Compare resolved
/// ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    major_to_minor: Box<[usize]>,
}

impl Layout {
    /// The layout with this order of dimensions.
    ///
    /// # Errors
    /// `InvalidArgument` when it is not an order of `0..n`.
    pub fn new(major_to_minor: impl Into<Box<[usize]>>) -> Result<Self> {
        let major_to_minor = major_to_minor.into();
        let mut sorted = major_to_minor.to_vec();
        sorted.sort_unstable();
        if sorted.into_iter().eq(0..major_to_minor.len()) {
            return Ok(Self { major_to_minor });
        }
        Err(Status::invalid_argument(format!("{major_to_minor:?} is no order of dimensions")))
    }

    /// Row-major: the last dimension is the fastest.
    pub fn row_major(rank: usize) -> Self {
        Self { major_to_minor: (0..rank).collect() }
    }

    /// The dimensions, from the slowest to the fastest.
    pub fn major_to_minor(&self) -> &[usize] {
        &self.major_to_minor
    }

    /// The bytes of a shard of `shape`, and the strides between its elements per dimension.
    ///
    /// # Errors
    /// `InvalidArgument` when the shape has another rank.
    pub fn byte_strides(&self, dtype: DType, shape: &Shape) -> Result<(usize, Vec<i64>)> {
        if shape.rank() != self.major_to_minor.len() {
            return Err(Status::invalid_argument(format!(
                "the layout {self} is for rank {}, the shape is {shape}",
                self.major_to_minor.len()
            )));
        }
        let mut strides = vec![0; shape.rank()];
        let mut step = dtype.size_bytes();
        for (&dim, extent) in
            self.major_to_minor.iter().rev().map(|dim| (dim, shape.dims().get(*dim)))
        {
            // The byte count of a shape fits, and so does each of its strides.
            strides[dim] = i64::try_from(step).unwrap_or(i64::MAX);
            step *= extent.copied().unwrap_or(1).max(1);
        }
        Ok((shape.num_elements() * dtype.size_bytes(), strides))
    }
}

/// As XLA writes it, from the fastest dimension to the slowest: `{1,0}`.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self.major_to_minor.iter().rev().map(usize::to_string).collect();
        write!(f, "{{{}}}", dims.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_follow_the_order() {
        let shape = Shape::new([2, 3, 5]).unwrap();
        let strides =
            |order: &[usize]| Layout::new(order).unwrap().byte_strides(DType::F32, &shape).unwrap();
        assert_eq!(strides(&[0, 1, 2]), (120, vec![60, 20, 4]));
        assert_eq!(strides(&[2, 0, 1]), (120, vec![12, 4, 24]));
        assert_eq!(Layout::row_major(3), Layout::new([0, 1, 2]).unwrap());
        assert_eq!(Layout::row_major(3).to_string(), "{2,1,0}");
        Layout::row_major(2).byte_strides(DType::F32, &shape).unwrap_err();
        Layout::new([0, 0]).unwrap_err();
        Layout::new([1]).unwrap_err();
    }
}
