//! The messages of XLA's `xla_data.proto` and `compile_options.proto`, with the fields that are
//! used here; others are skipped.

use std::collections::BTreeMap;

/// How an array is spread.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct OpSharding {
    #[prost(enumeration = "Kind", tag = "1")]
    pub(super) kind: i32,
    #[prost(int64, repeated, tag = "3")]
    pub(super) tile_assignment_dimensions: Vec<i64>,
    #[prost(int64, repeated, tag = "4")]
    pub(super) tile_assignment_devices: Vec<i64>,
    #[prost(message, repeated, tag = "5")]
    pub(super) tuple_shardings: Vec<Self>,
    #[prost(bool, tag = "6")]
    pub(super) replicate_on_last_tile_dim: bool,
    #[prost(enumeration = "Kind", repeated, tag = "8")]
    pub(super) last_tile_dims: Vec<i32>,
    #[prost(int64, repeated, tag = "9")]
    pub(super) iota_reshape_dims: Vec<i64>,
    #[prost(int32, repeated, tag = "10")]
    pub(super) iota_transpose_perm: Vec<i32>,
    #[prost(bool, tag = "11")]
    pub(super) is_shard_group: bool,
}

/// The kind of a sharding, or of what a dimension of tiles is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum Kind {
    Replicated = 0,
    Maximal = 1,
    Tuple = 2,
    Other = 3,
    Manual = 4,
    Unknown = 5,
    Unreduced = 6,
}

/// Which device runs which part of which replica.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DeviceAssignmentProto {
    #[prost(int32, tag = "1")]
    pub(super) replica_count: i32,
    #[prost(int32, tag = "2")]
    pub(super) computation_count: i32,
    #[prost(message, repeated, tag = "3")]
    pub(super) computation_devices: Vec<ComputationDevice>,
}

/// The devices of one partition, one for each replica.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ComputationDevice {
    #[prost(int64, repeated, tag = "1")]
    pub(super) replica_device_ids: Vec<i64>,
}

/// What is asked of the compiler.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct CompileOptionsProto {
    #[prost(bool, tag = "2")]
    pub(super) parameter_is_tupled_arguments: bool,
    #[prost(message, optional, tag = "3")]
    pub(super) executable_build_options: Option<ExecutableBuildOptionsProto>,
    #[prost(bool, tag = "4")]
    pub(super) compile_portable_executable: bool,
    /// Options by name, with values that mean nothing here.
    #[prost(btree_map = "string, bytes", tag = "7")]
    pub(super) env_option_overrides: BTreeMap<String, Vec<u8>>,
}

/// What is asked of the compiler, the greater part.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ExecutableBuildOptionsProto {
    #[prost(int64, tag = "4")]
    pub(super) num_replicas: i64,
    #[prost(int64, tag = "5")]
    pub(super) num_partitions: i64,
    #[prost(bool, tag = "6")]
    pub(super) use_spmd_partitioning: bool,
    #[prost(message, optional, tag = "9")]
    pub(super) device_assignment: Option<DeviceAssignmentProto>,
    #[prost(bool, repeated, tag = "12")]
    pub(super) allow_spmd_sharding_propagation_to_output: Vec<bool>,
    #[prost(bool, repeated, tag = "18")]
    pub(super) allow_spmd_sharding_propagation_to_parameters: Vec<bool>,
    #[prost(bool, tag = "19")]
    pub(super) use_shardy_partitioner: bool,
    #[prost(int64, tag = "23")]
    pub(super) process_count: i64,
}
