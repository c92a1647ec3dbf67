//! Partitionings whose shards are summands: the array is what they add up to.

use std::fmt;

use super::{IndexDomain, Result, Shape, Status, Tiling};

/// Dimensions cut into equal tiles, and each tile given as several summands.
///
/// No shard has elements of the array, so nothing is said about where they lie.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnreducedSharding {
    /// Of one dimension more than the arrays: the last one counts the summands of a tile.
    tiling: Tiling,
}

impl UnreducedSharding {
    /// Shards that are tiles by all dimensions of `tiling` but the last, which says which summand
    /// of its tile each is.
    ///
    /// # Errors
    /// `InvalidArgument` when `tiling` has no dimensions.
    pub fn new(tiling: Tiling) -> Result<Self> {
        match tiling.rank() {
            0 => Err(Status::invalid_argument("a tiling without dimensions counts no summands")),
            _ => Ok(Self { tiling }),
        }
    }

    /// The tile and the summand of each shard: the last dimension counts the summands.
    pub fn tiling(&self) -> &Tiling {
        &self.tiling
    }

    pub(super) fn num_shards(&self) -> usize {
        self.tiling.num_shards()
    }

    pub(super) fn shard_shape(&self, shape: &Shape) -> Result<Shape> {
        let too_large = |error: super::ShapeError| Status::invalid_argument(error.to_string());
        let summands = self.tiling.num_tiles().last().copied().unwrap_or(1);
        let of_summands = Shape::new([shape.dims(), &[summands]].concat()).map_err(too_large)?;
        let tile = self.tiling.padded_tile_shape(&of_summands)?;
        Shape::new(&tile.dims()[..shape.rank()]).map_err(too_large)
    }

    pub(super) fn index_domains(&self) -> Result<Vec<IndexDomain>> {
        Err(Status::invalid_argument(format!(
            "the shards of an array that is {self} are no parts of it; add them up first"
        )))
    }
}

impl fmt::Display for UnreducedSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unreduced along the last of {}", self.tiling)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Mesh, ShardingSpec};
    use super::*;

    #[test]
    fn shards_are_summands_of_tiles_and_no_parts() {
        let mesh = Mesh::new([("x", 2), ("y", 3), ("z", 2)]).unwrap();
        let tiling = mesh.tiling(&[&["z"], &[], &["y"]]).unwrap();
        let spec = ShardingSpec::Unreduced(UnreducedSharding::new(tiling.clone()).unwrap());
        let shape = |dims: &[usize]| Shape::new(dims).unwrap();
        assert_eq!(spec.num_shards(), 12);
        assert!(!spec.is_fully_replicated());
        assert_eq!(spec.shard_shape(&shape(&[4, 5])).unwrap(), shape(&[2, 5]));
        assert_eq!(spec.shard_shapes(&shape(&[4, 5])).unwrap(), vec![shape(&[2, 5]); 12]);
        spec.shard_shape(&shape(&[4])).unwrap_err();
        let error = spec.index_domains(&shape(&[4, 5])).unwrap_err();
        assert!(error.message().contains("add them up first"), "{error}");
        assert_eq!(spec, spec.clone());
        assert_ne!(spec, ShardingSpec::Tiled(tiling));
        assert_ne!(spec, ShardingSpec::Replicated { num_shards: 12 });
        UnreducedSharding::new(mesh.tiling(&[]).unwrap()).unwrap_err();
    }
}
