//! Why a program has no local form.

use crate::ifrt::Shape;
use crate::stablehlo::{Location, TensorType, Type};

/// Why [`super::localize()`] refuses a module.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SpmdError {
    /// There is no function to run.
    #[error("the module has no function @main")]
    NoMain,
    /// Something has to be spread over devices by decision.
    #[error(
        "{what}, at {location}: this needs the partitioner, which Lockstep does not have yet; \
         write the program with shard_map over all mesh axes"
    )]
    NeedsPartitioner {
        /// What needs it.
        what: String,
        /// Where.
        location: Location,
    },
    /// Several replicas.
    #[error(
        "the module asks for {num_replicas} replicas; Lockstep runs one replica of many partitions"
    )]
    Replicas {
        /// `mhlo.num_replicas`.
        num_replicas: usize,
    },
    /// A sharding names a mesh that the module does not define.
    #[error("the sharding of {what} names the mesh @{mesh}, which the module does not define")]
    UnknownMesh {
        /// What has the sharding.
        what: String,
        /// The mesh.
        mesh: String,
    },
    /// Shardings over different meshes.
    #[error("{what} is spread over the mesh @{found}, but the program over @{expected}")]
    OtherMesh {
        /// What has the sharding.
        what: String,
        /// The mesh of the program.
        expected: String,
        /// The mesh of this sharding.
        found: String,
    },
    /// What XLA's sharding of a value says is not to be had.
    #[error("the sharding \"{text}\", at {location}: {reason}")]
    HloSharding {
        /// `mhlo.sharding`.
        text: String,
        /// Where.
        location: Location,
        /// Why not.
        reason: String,
    },
    /// XLA's shardings of a module do not go together.
    #[error("the shardings of the module do not fit: {reason}")]
    HloShardings {
        /// Why not.
        reason: String,
    },
    /// A sharding names an axis that its mesh does not have, or the same axis twice.
    #[error(
        "the sharding of {what} names the axis \"{axis}\", which @{mesh} does not have to give"
    )]
    UnknownAxis {
        /// What has the sharding.
        what: String,
        /// The axis.
        axis: String,
        /// The mesh.
        mesh: String,
    },
    /// A sharding uses part of an axis.
    #[error("the sharding of {what} cuts by a part of the axis \"{axis}\", which is not known yet")]
    SubAxis {
        /// What has the sharding.
        what: String,
        /// The axis.
        axis: String,
    },
    /// A value is still to be reduced along an axis, and not to a sum.
    #[error("{what} is still to be reduced along the axis \"{axis}\" by {by}; only sums are known")]
    Unreduced {
        /// What has the sharding.
        what: String,
        /// The axis.
        axis: String,
        /// By what.
        by: &'static str,
    },
    /// A sharding has not one entry per dimension.
    #[error("the sharding of {what} has {found} dimensions, its type {ty} has {}", ty.shape.rank())]
    Rank {
        /// What has the sharding.
        what: String,
        /// Its type.
        ty: TensorType,
        /// The dimensions of the sharding.
        found: usize,
    },
    /// A dimension that does not divide.
    #[error(
        "dimension {dim} of {what} has {size} elements, which {parts} devices cannot share evenly"
    )]
    NotDivisible {
        /// What is cut.
        what: String,
        /// The dimension.
        dim: usize,
        /// Its size.
        size: usize,
        /// The number of parts.
        parts: usize,
    },
    /// A local type that does not follow from the global one.
    #[error("{what} has the local shape {expected} by its sharding, but the program says {found}")]
    LocalShape {
        /// What has the type.
        what: String,
        /// The shape that follows from the global shape.
        expected: Shape,
        /// The type in the program.
        found: Type,
    },
    /// The mesh has not one device per partition.
    #[error("the mesh @{mesh} has {devices} devices, the module {num_partitions} partitions")]
    Partitions {
        /// The mesh.
        mesh: String,
        /// Its devices.
        devices: usize,
        /// `mhlo.num_partitions`.
        num_partitions: usize,
    },
    /// A mesh that is no arrangement of devices.
    #[error("the mesh @{mesh} is no arrangement of devices: {reason}")]
    BadMesh {
        /// The mesh.
        mesh: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// Something that is no array crosses the boundary.
    #[error("{what} has the type {ty}, which is no array")]
    NoArray {
        /// What it is.
        what: String,
        /// Its type.
        ty: Type,
    },
    /// A module that the verifier would have refused.
    #[error("the module is not well-formed: {0}; verify it first")]
    NotVerified(&'static str),
}
