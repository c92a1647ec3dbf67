//! The way in: devices, arrays and a compiler.

use super::{
    ArrayCopySemantics, ArrayRef, ArraySpec, AttributeMap, Compiler, Device, DeviceId, DeviceList,
    Future, HostBuffer, HostBufferSemantics, Result, Sharding, SingleDeviceShardSemantics, Status,
    Value,
};

/// The addressable shards of one array, in host memory.
#[derive(Clone, Debug)]
pub struct HostBufferShards<'a> {
    /// The array to make.
    pub spec: ArraySpec,
    /// For each buffer, the shards that it is the contents of, as indices among the
    /// *addressable* shards. Together they name each of these exactly once.
    pub buffers: Vec<(Vec<usize>, HostBuffer<'a>)>,
}

/// One process's view of the devices of a job, of its arrays and its programs.
///
/// Thread-safe. Calls that make arrays check their arguments and return at once; data arrives
/// later, and so do errors that concern data. Processes of a job make the same calls in the same
/// order on arrays that span them.
pub trait Client: Send + Sync {
    /// The name of this implementation.
    fn runtime_type(&self) -> &str;

    /// The name of the platform that the devices belong to, such as `cpu`.
    fn platform_name(&self) -> &str;

    /// The version of the platform.
    fn platform_version(&self) -> &str;

    /// Further properties.
    fn attributes(&self) -> &AttributeMap;

    /// This process, among [`Client::process_count`].
    fn process_index(&self) -> u32;

    /// How many processes the job has.
    fn process_count(&self) -> u32;

    /// All devices of the job, in the same order on every process (invariant I1).
    fn devices(&self) -> &DeviceList;

    /// The devices that this client can use directly.
    fn addressable_devices(&self) -> &DeviceList;

    /// The device with this id.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    fn lookup_device(&self, id: DeviceId) -> Result<Device> {
        let found = self.devices().iter().find(|device| device.id() == id).cloned();
        found.ok_or_else(|| Status::not_found(format!("there is no {id} among {}", self.devices())))
    }

    /// The list of the devices with these ids, in this order.
    ///
    /// # Errors
    /// `NotFound` when there is no device with one of the ids.
    fn make_device_list(&self, ids: &[DeviceId]) -> Result<DeviceList> {
        let devices: Result<Vec<Device>> = ids.iter().map(|&id| self.lookup_device(id)).collect();
        Ok(DeviceList::new(devices?))
    }

    /// An array of the buffer's type from its full contents: each process takes its own shards.
    ///
    /// The contents should be the same on every process; nothing is exchanged to check that.
    ///
    /// # Errors
    /// `InvalidArgument` when the sharding is for another rank, for devices of another client,
    /// or for a memory that the devices do not have; `ResourceExhausted` when memory runs out.
    fn make_array_from_host_buffer(
        &self,
        buffer: &HostBuffer<'_>,
        sharding: &Sharding,
        semantics: HostBufferSemantics,
    ) -> Result<ArrayRef>;

    /// Arrays from the contents of their addressable shards; a process without shards passes no
    /// buffers.
    ///
    /// # Errors
    /// `InvalidArgument` when buffers do not name each addressable shard exactly once, or one
    /// differs from its shards' true shape or element type.
    fn make_arrays_from_host_buffer_shards(
        &self,
        arrays: &[HostBufferShards<'_>],
        semantics: HostBufferSemantics,
    ) -> Result<Vec<ArrayRef>>;

    /// Arrays that are poisoned with `status`.
    ///
    /// # Errors
    /// `InvalidArgument` when a sharding is not for devices of this client.
    fn make_error_arrays(&self, status: &Status, specs: &[ArraySpec]) -> Result<Vec<ArrayRef>>;

    /// One array of the shards in `arrays`, which have one device each, in device order: the
    /// addressable ones, or all.
    ///
    /// # Errors
    /// `InvalidArgument` when an array is deleted, or differs from its shard in device, element
    /// type or true shape, or their number is not that of the shards; when `AllShards` are
    /// passed and one is on another process.
    fn assemble_array_from_single_device_arrays(
        &self,
        spec: &ArraySpec,
        arrays: &[ArrayRef],
        copy: ArrayCopySemantics,
        shards: SingleDeviceShardSemantics,
    ) -> Result<ArrayRef>;

    /// Resolves when all values are ready, to the error of the first in order that is poisoned.
    fn ready(&self, values: &[&dyn Value]) -> Future<()> {
        Future::join(values.iter().map(|value| value.ready())).map_done()
    }

    /// Deletes all values; resolves when their memory is given up.
    fn delete_values(&self, values: &[&dyn Value]) -> Future<()> {
        Future::join(values.iter().map(|value| value.delete())).map_done()
    }

    /// The compiler for programs that run on this client's devices.
    fn compiler(&self) -> &dyn Compiler;
}
