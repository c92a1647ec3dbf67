//! Rectangular parts of an array.

use std::fmt;

use super::Shape;

/// A rectangle of an array's elements: those from `origin` on, `shape` of them per dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IndexDomain {
    origin: Box<[usize]>,
    shape: Shape,
}

impl IndexDomain {
    /// The rectangle of `shape` at `origin`; `None` when the two differ in rank or the far
    /// corner overflows.
    pub fn new(origin: impl Into<Box<[usize]>>, shape: Shape) -> Option<Self> {
        let origin = origin.into();
        let fits = origin.len() == shape.rank()
            && origin.iter().zip(shape.dims()).all(|(&from, &dim)| from.checked_add(dim).is_some());
        fits.then_some(Self { origin, shape })
    }

    /// The whole of an array of `shape`.
    pub fn whole(shape: Shape) -> Self {
        Self { origin: vec![0; shape.rank()].into(), shape }
    }

    /// The first index, per dimension.
    pub fn origin(&self) -> &[usize] {
        &self.origin
    }

    /// The extent.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The elements that both have, if there are any.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        if self.origin.len() != other.origin.len() {
            return None;
        }
        let mut origin = Vec::with_capacity(self.origin.len());
        let mut extent = Vec::with_capacity(self.origin.len());
        for ((from, to), (other_from, other_to)) in self.ranges().zip(other.ranges()) {
            let (from, to) = (from.max(other_from), to.min(other_to));
            if from >= to {
                return None;
            }
            origin.push(from);
            extent.push(to - from);
        }
        Self::new(origin, Shape::new(extent).ok()?)
    }

    /// The first index and the one behind the last, per dimension.
    pub fn ranges(&self) -> impl Iterator<Item = (usize, usize)> {
        self.origin.iter().zip(self.shape.dims()).map(|(&from, &extent)| (from, from + extent))
    }

    /// Whether the whole rectangle lies inside an array of `shape`.
    pub fn is_within(&self, shape: &Shape) -> bool {
        self.origin.len() == shape.rank()
            && self
                .origin
                .iter()
                .zip(self.shape.dims())
                .zip(shape.dims())
                .all(|((&from, &extent), &dim)| from + extent <= dim)
    }
}

impl fmt::Display for IndexDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (d, (from, to)) in self.ranges().enumerate() {
            let comma = if d == 0 { "" } else { ", " };
            write!(f, "{comma}{from}..{to}")?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_it_lies_within() {
        let shape = Shape::new([4, 6]).unwrap();
        let domain = IndexDomain::new([2, 3], Shape::new([2, 3]).unwrap()).unwrap();
        assert!(domain.is_within(&shape));
        assert!(!domain.is_within(&Shape::new([4, 5]).unwrap()));
        assert!(!domain.is_within(&Shape::new([4]).unwrap()));
        assert_eq!(domain.to_string(), "[2..4, 3..6]");
        assert!(IndexDomain::whole(shape.clone()).is_within(&shape));
    }

    #[test]
    fn intersections_are_what_both_have() {
        let domain = |origin: &[usize], dims: &[usize]| {
            IndexDomain::new(origin, Shape::new(dims).unwrap()).unwrap()
        };
        let (a, b) = (domain(&[0, 2], &[3, 4]), domain(&[2, 0], &[9, 3]));
        assert_eq!(a.intersection(&b), Some(domain(&[2, 2], &[1, 1])));
        assert_eq!(a.intersection(&domain(&[3, 2], &[1, 1])), None);
        assert_eq!(a.intersection(&domain(&[0, 3], &[3, 0])), None);
        assert_eq!(a.intersection(&domain(&[0], &[3])), None);
        let scalar = IndexDomain::whole(Shape::scalar());
        assert_eq!(scalar.intersection(&scalar), Some(scalar.clone()));
    }

    #[test]
    fn refuses_ranks_that_differ_and_corners_that_overflow() {
        assert!(IndexDomain::new([0], Shape::scalar()).is_none());
        assert!(IndexDomain::new([usize::MAX], Shape::new([1]).unwrap()).is_none());
    }
}
