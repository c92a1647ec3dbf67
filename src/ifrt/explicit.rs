//! Partitionings that are given shard by shard, for one shape, or not given at all.

use std::fmt;
use std::sync::Arc;

use super::{IndexDomain, Result, Shape, Status};

/// Nobody but who made it knows what its shards have; equal to its clones only.
#[derive(Clone, Debug)]
pub struct OpaqueSharding {
    num_shards: usize,
    identity: Arc<()>,
}

/// The true shape of every shard, and perhaps its place, of arrays of one shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConcreteSharding {
    shape: Shape,
    shard_shapes: Arc<[Shape]>,
    index_domains: Option<Arc<[IndexDomain]>>,
}

/// Shards of one shape, whose places are not said, of arrays of one shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConcreteEvenSharding {
    num_shards: usize,
    shape: Shape,
    shard_shape: Shape,
    is_fully_replicated: bool,
}

impl OpaqueSharding {
    /// A new one with this many shards.
    ///
    /// # Errors
    /// `InvalidArgument` when there are none.
    pub fn new(num_shards: usize) -> Result<Self> {
        require_shards(num_shards)?;
        Ok(Self { num_shards, identity: Arc::new(()) })
    }

    /// The number of shards.
    pub fn num_shards(&self) -> usize {
        self.num_shards
    }

    pub(super) fn unknown(&self) -> Status {
        Status::invalid_argument(format!("{self}: nobody knows what its shards have"))
    }
}

impl PartialEq for OpaqueSharding {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.identity, &other.identity)
    }
}

impl Eq for OpaqueSharding {}

impl ConcreteSharding {
    /// Shards of these true shapes, of which it is not said where they lie.
    ///
    /// # Errors
    /// `InvalidArgument` when there are none, or one has another rank than the array.
    pub fn of_shapes(shape: Shape, shard_shapes: Vec<Shape>) -> Result<Self> {
        require_shards(shard_shapes.len())?;
        if let Some(other) = shard_shapes.iter().find(|shard| shard.rank() != shape.rank()) {
            return Err(Status::invalid_argument(format!(
                "an array of shape {shape} has no shard of shape {other}"
            )));
        }
        Ok(Self { shape, shard_shapes: shard_shapes.into(), index_domains: None })
    }

    /// Shards that have these parts of an array; parts may be the same, or overlap.
    ///
    /// # Errors
    /// `InvalidArgument` when there are none, or one does not lie within the array.
    pub fn of_domains(shape: Shape, index_domains: Vec<IndexDomain>) -> Result<Self> {
        require_shards(index_domains.len())?;
        if let Some(outside) = index_domains.iter().find(|domain| !domain.is_within(&shape)) {
            return Err(Status::invalid_argument(format!(
                "{outside} does not lie within an array of shape {shape}"
            )));
        }
        let shard_shapes = index_domains.iter().map(|domain| domain.shape().clone()).collect();
        Ok(Self { shape, shard_shapes, index_domains: Some(index_domains.into()) })
    }

    pub(super) fn num_shards(&self) -> usize {
        self.shard_shapes.len()
    }

    pub(super) fn shard_shapes(&self, shape: &Shape) -> Result<Vec<Shape>> {
        require_shape(&self.shape, shape)?;
        Ok(self.shard_shapes.to_vec())
    }

    /// The common shape of all shards.
    pub(super) fn shard_shape(&self, shape: &Shape) -> Result<Shape> {
        require_shape(&self.shape, shape)?;
        let mut shapes = self.shard_shapes.iter();
        match shapes.next() {
            Some(first) if shapes.all(|shape| shape == first) => Ok(first.clone()),
            _ => Err(Status::invalid_argument(format!(
                "shards have shapes of their own: {}",
                list(&self.shard_shapes)
            ))),
        }
    }

    pub(super) fn index_domains(&self, shape: &Shape) -> Result<Vec<IndexDomain>> {
        require_shape(&self.shape, shape)?;
        self.index_domains.as_deref().map(<[_]>::to_vec).ok_or_else(|| {
            Status::invalid_argument("a concrete sharding does not say where its shards lie")
        })
    }
}

impl ConcreteEvenSharding {
    /// This many shards of `shard_shape` of an array of `shape`; whether they are all the same and
    /// the whole array, `is_fully_replicated` says.
    ///
    /// # Errors
    /// `InvalidArgument` when there are no shards, or ones that are not the whole array are said
    /// to be.
    pub fn new(
        num_shards: usize,
        shape: Shape,
        shard_shape: Shape,
        is_fully_replicated: bool,
    ) -> Result<Self> {
        require_shards(num_shards)?;
        if is_fully_replicated && shape != shard_shape {
            return Err(Status::invalid_argument(format!(
                "shards of shape {shard_shape} are not replicas of an array of shape {shape}"
            )));
        }
        Ok(Self { num_shards, shape, shard_shape, is_fully_replicated })
    }

    pub(super) fn num_shards(&self) -> usize {
        self.num_shards
    }

    pub(super) fn is_fully_replicated(&self) -> bool {
        self.is_fully_replicated
    }

    pub(super) fn shard_shape(&self, shape: &Shape) -> Result<Shape> {
        require_shape(&self.shape, shape)?;
        Ok(self.shard_shape.clone())
    }

    pub(super) fn index_domains(&self, shape: &Shape) -> Result<Vec<IndexDomain>> {
        require_shape(&self.shape, shape)?;
        if self.is_fully_replicated {
            return Ok(vec![IndexDomain::whole(shape.clone()); self.num_shards]);
        }
        Err(Status::invalid_argument("a concrete even sharding does not say where its shards lie"))
    }
}

fn require_shards(num_shards: usize) -> Result<()> {
    match num_shards {
        0 => Err(Status::invalid_argument("a sharding has no shards")),
        _ => Ok(()),
    }
}

fn require_shape(expected: &Shape, found: &Shape) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "the sharding is for arrays of shape {expected}, not {found}"
    )))
}

fn list(shapes: &[Shape]) -> String {
    shapes.iter().map(Shape::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for OpaqueSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "opaque over {} shards", self.num_shards)
    }
}

impl fmt::Display for ConcreteSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.index_domains {
            Some(domains) => {
                let domains: Vec<String> = domains.iter().map(IndexDomain::to_string).collect();
                write!(f, "parts {} of {}", domains.join(", "), self.shape)
            }
            None => write!(f, "shards {} of {}", list(&self.shard_shapes), self.shape),
        }
    }
}

impl fmt::Display for ConcreteEvenSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} shards {} of {}", self.num_shards, self.shard_shape, self.shape)?;
        f.write_str(if self.is_fully_replicated { ", replicated" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[usize]) -> Shape {
        Shape::new(dims).unwrap()
    }

    #[test]
    fn concrete_shards_are_for_one_shape() {
        let domain = |from, extent| IndexDomain::new([from], shape(&[extent])).unwrap();
        let parts = vec![domain(0, 3), domain(3, 1)];
        let sharding = ConcreteSharding::of_domains(shape(&[4]), parts.clone()).unwrap();
        assert_eq!(sharding.index_domains(&shape(&[4])).unwrap(), parts);
        assert_eq!(sharding.shard_shapes(&shape(&[4])).unwrap(), [shape(&[3]), shape(&[1])]);
        assert_eq!(sharding.to_string(), "parts [0..3], [3..4] of [4]");
        sharding.index_domains(&shape(&[5])).unwrap_err();
        let error = sharding.shard_shape(&shape(&[4])).unwrap_err();
        assert_eq!(error.message(), "shards have shapes of their own: [3], [1]");
        ConcreteSharding::of_domains(shape(&[3]), parts).unwrap_err();
        ConcreteSharding::of_shapes(shape(&[3]), vec![shape(&[])]).unwrap_err();
        ConcreteSharding::of_shapes(shape(&[3]), vec![]).unwrap_err();
        let even = ConcreteSharding::of_shapes(shape(&[4]), vec![shape(&[2]); 2]).unwrap();
        assert_eq!(even.shard_shape(&shape(&[4])).unwrap(), shape(&[2]));
        even.index_domains(&shape(&[4])).unwrap_err();
    }

    #[test]
    fn even_shards_say_where_they_lie_only_if_they_are_the_same() {
        let whole = shape(&[4]);
        let new = |shard: &[usize], is_fully_replicated| {
            ConcreteEvenSharding::new(2, whole.clone(), shape(shard), is_fully_replicated)
        };
        new(&[2], true).unwrap_err();
        assert!(new(&[4], true).unwrap().index_domains(&whole).is_ok());
        let even = new(&[2], false).unwrap();
        assert_eq!(even.shard_shape(&whole).unwrap(), shape(&[2]));
        even.index_domains(&whole).unwrap_err();
        even.shard_shape(&shape(&[6])).unwrap_err();
    }

    #[test]
    fn opaque_shardings_are_equal_to_themselves_only() {
        let one = OpaqueSharding::new(2).unwrap();
        assert_eq!(one, one.clone());
        assert_ne!(one, OpaqueSharding::new(2).unwrap());
        OpaqueSharding::new(0).unwrap_err();
    }
}
