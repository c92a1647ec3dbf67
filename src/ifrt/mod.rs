//! The runtime interface: what a framework may ask of Lockstep, one concept a file.
//!
//! Owns traits and plain values. Does no I/O, starts no threads and imports nothing else of
//! Lockstep's, so that every implementation (in-process, proxy, single-controller) stands behind
//! the same seam. Types here are not wire types (invariant I7).

mod array;
mod attribute;
mod client;
mod compiler;
mod device;
mod device_list;
mod dtype;
mod executable;
mod explicit;
mod fingerprint;
mod future;
mod host_buffer;
mod host_callback;
mod index_domain;
mod layout;
mod memory;
mod program;
mod remap;
mod shape;
mod sharding;
mod status;
mod tiling;
mod tuple;
mod unreduced;
mod user_context;
mod value;

pub use array::{Array, ArrayCopySemantics, ArrayRef, ArraySpec};
pub use attribute::{Attribute, AttributeMap};
pub use client::{Client, HashMode, HostBufferShards};
pub use compiler::{CompileOptions, Compiler};
pub use device::{Device, DeviceDescription, DeviceId};
pub use device_list::DeviceList;
pub use dtype::DType;
pub use executable::{
    CancellationHandle, ExecuteOptions, ExecuteResult, ExecutionStatistics, LaunchId,
    LoadedExecutable, MemoryStatistics, ProgramCost,
};
pub use explicit::{ConcreteEvenSharding, ConcreteSharding, OpaqueSharding};
pub use fingerprint::fingerprint;
pub use future::{Future, Promise};
pub use host_buffer::{HostBuffer, HostBufferSemantics, HostBytes};
pub use host_callback::HostCallbacks;
pub use index_domain::IndexDomain;
pub use layout::Layout;
pub use memory::{Memory, MemoryId, MemoryKind};
pub use program::{HostCall, HostFunction, HostFunctionProgram, Program, StableHloProgram};
pub use remap::{Interval, RemapMapping, RemapPlan};
pub use shape::{Shape, ShapeError};
pub use sharding::{Sharding, ShardingSpec, SingleDeviceShardSemantics};
pub use status::{Code, Result, Status};
pub use tiling::{Mesh, MeshAxis, Tiling};
pub use tuple::{Bundle, BundleCopy, Tuple, ValueRef};
pub use unreduced::UnreducedSharding;
pub use user_context::{UserContext, UserContextScope};
pub use value::Value;
