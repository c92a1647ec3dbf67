//! Static shapes.

use std::fmt;
use std::sync::Arc;

/// The dimensions of an array, outermost first; a scalar has none. Copies share them.
///
/// The element count of every `Shape` fits `usize`: [`Shape::new`] refuses others, so that
/// later size arithmetic on elements cannot overflow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    dims: Arc<[usize]>,
    num_elements: usize,
}

/// Why a list of dimensions is not a [`Shape`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the dimensions {dims:?} hold more elements than this machine can address")]
pub struct ShapeError {
    /// The refused dimensions.
    pub dims: Vec<usize>,
}

impl Shape {
    /// The shape with the given dimensions.
    ///
    /// # Errors
    /// When the number of elements, times 16 bytes for the widest element, exceeds `isize::MAX`.
    pub fn new(dims: impl Into<Arc<[usize]>>) -> Result<Self, ShapeError> {
        const MAX_ELEMENTS: usize = isize::MAX as usize / 16;
        let dims = dims.into();
        // The product of the non-zero dimensions is bounded too, so that strides computed for
        // an empty shape do not overflow either.
        let volume = dims
            .iter()
            .filter(|&&dim| dim != 0)
            .try_fold(1_usize, |product, &dim| product.checked_mul(dim))
            .filter(|&volume| volume <= MAX_ELEMENTS);
        match volume {
            None => Err(ShapeError { dims: dims.to_vec() }),
            Some(volume) => {
                let num_elements = if dims.contains(&0) { 0 } else { volume };
                Ok(Self { dims, num_elements })
            }
        }
    }

    /// The shape of a single element.
    pub fn scalar() -> Self {
        Self { dims: Arc::default(), num_elements: 1 }
    }

    /// The dimensions, outermost first.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// How many dimensions there are.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// How many elements an array of this shape has.
    pub fn num_elements(&self) -> usize {
        self.num_elements
    }

    /// Row-major strides in elements: the last dimension is contiguous.
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.rank()];
        for i in (1..self.rank()).rev() {
            strides[i - 1] = strides[i] * self.dims[i].max(1);
        }
        strides
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.dims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_elements() {
        assert_eq!(Shape::scalar().num_elements(), 1);
        assert_eq!(Shape::new([2, 3, 5]).unwrap().num_elements(), 30);
        assert_eq!(Shape::new([2, 0, 5]).unwrap().num_elements(), 0);
    }

    #[test]
    fn refuses_what_overflows_even_when_empty() {
        assert!(Shape::new([usize::MAX, 2]).is_err());
        assert!(Shape::new([0, usize::MAX, 2]).is_err());
        assert!(Shape::new([usize::MAX / 16]).is_err());
    }

    #[test]
    fn strides_are_row_major() {
        assert_eq!(Shape::new([2, 3, 5]).unwrap().strides(), [15, 5, 1]);
        assert_eq!(Shape::new([2, 0, 5]).unwrap().strides(), [5, 5, 1]);
        assert_eq!(Shape::scalar().strides(), [0_usize; 0]);
    }
}
