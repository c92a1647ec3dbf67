//! Logical arrays that span devices and processes.

use std::fmt;
use std::sync::Arc;

use super::{
    DType, Future, HostBuffer, Result, Shape, Sharding, SingleDeviceShardSemantics, Value,
};

/// Whether an output may share memory with the input it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArrayCopySemantics {
    /// The output has memory of its own.
    AlwaysCopy,
    /// The output may share the input's memory; both stay usable.
    ReuseInput,
    /// The output may take the input's memory, and the input is deleted.
    DonateInput,
}

/// What an array is, its contents apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArraySpec {
    /// The element type.
    pub dtype: DType,
    /// The shape of the whole array.
    pub shape: Shape,
    /// How it is spread over devices.
    pub sharding: Sharding,
}

/// A shared array.
pub type ArrayRef = Arc<dyn Array>;

/// One logical array over the devices of one or many processes.
///
/// A process holds the shards of its addressable devices, possibly none. Contents never change.
/// An array may be poisoned: it then has no contents, and everything made of it is poisoned with
/// the same first cause (invariant I9).
pub trait Array: Value + fmt::Debug {
    /// Element type, global shape and sharding.
    fn spec(&self) -> &ArraySpec;

    /// The element type.
    fn dtype(&self) -> DType {
        self.spec().dtype
    }

    /// The shape of the whole array, on whatever devices its shards are.
    fn shape(&self) -> &Shape {
        &self.spec().shape
    }

    /// How it is spread over devices.
    fn sharding(&self) -> &Sharding {
        &self.spec().sharding
    }

    /// The addressable shards, or all, as arrays of one device each, in device order.
    ///
    /// Data may still be on its way. `DonateInput` deletes this array.
    ///
    /// # Errors
    /// `InvalidArgument` when the array is deleted, or `AllShards` are asked for and one is on
    /// another process.
    fn disassemble_into_single_device_arrays(
        &self,
        copy: ArrayCopySemantics,
        shards: SingleDeviceShardSemantics,
    ) -> Result<Vec<ArrayRef>>;

    /// One addressable shard of a fully replicated array, as an array of one device.
    ///
    /// # Errors
    /// `InvalidArgument` when the array is deleted or not fully replicated, or no shard is
    /// addressable.
    fn fully_replicated_shard(&self, copy: ArrayCopySemantics) -> Result<ArrayRef>;

    /// The contents of the whole array, dense and row-major; padding is never part of them.
    ///
    /// The future resolves to the error that poisons the array, if one does.
    ///
    /// # Errors
    /// `InvalidArgument` when the array is deleted, or part of it is on other processes only;
    /// the message names the shards held and missing, and what to call instead.
    fn copy_to_host_buffer(&self, copy: ArrayCopySemantics) -> Result<Future<HostBuffer<'static>>>;
}
