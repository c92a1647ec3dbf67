//! The way in: devices, arrays and a compiler.

use std::collections::BTreeSet;

use super::{
    ArrayCopySemantics, ArrayRef, ArraySpec, AttributeMap, Compiler, DType, Device, DeviceId,
    DeviceList, Future, HostBuffer, HostBufferSemantics, HostBytes, IndexDomain, Layout,
    MemoryKind, RemapPlan, Result, Shape, Sharding, SingleDeviceShardSemantics, Status, Value,
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

/// What a hash of an array is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HashMode {
    /// The elements and their places in the array, however it is spread.
    Logical,
    /// The contents of every shard, replicas included.
    Physical,
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

    /// The same arrays on other devices or in another memory, shard by shard; `None` keeps what is.
    ///
    /// When shards change processes, all processes that own a source or a destination must make
    /// the same call in the same order; it does not matter which shards stay. A process that
    /// fails poisons what needed it, with the same first cause.
    ///
    /// # Errors
    /// `InvalidArgument` when an array is deleted, the arrays are not all on the same devices and
    /// in the same memory, the number of devices changes, or they are not this client's.
    fn copy_arrays(
        &self,
        arrays: &[ArrayRef],
        devices: Option<&DeviceList>,
        memory_kind: Option<&MemoryKind>,
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>>;

    /// The same arrays under other shardings, on the same devices or on others.
    ///
    /// A process is sent the elements that it has to hold and does not hold yet, each once, and
    /// no others. Which processes take part is as in [`Client::copy_arrays`].
    ///
    /// # Errors
    /// `InvalidArgument` when an array is deleted, its element type or shape would change, it is
    /// to be reused, which a movement cannot promise, a sharding does not say who has what, or is not for devices of this client.
    fn reshard_arrays(
        &self,
        arrays: &[ArrayRef],
        specs: &[ArraySpec],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>>;

    /// Arrays made of the shards of others as `plan` says; no byte moves.
    ///
    /// # Errors
    /// `InvalidArgument` when the arrays are not those that the plan is for, one is deleted, or
    /// the plan does not allow the semantics: see [`RemapPlan::check_copy_semantics`].
    fn remap_arrays(
        &self,
        plan: &RemapPlan,
        arrays: &[ArrayRef],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>>;

    /// The same bytes seen as arrays of other element types, shapes and partitionings; no byte
    /// moves.
    ///
    /// # Errors
    /// `InvalidArgument` when an array is deleted, the bytes of a shard, the devices or the memory
    /// would change, booleans would be made of other bytes, or a copy is asked for.
    fn bitcast_arrays(
        &self,
        arrays: &[ArrayRef],
        specs: &[ArraySpec],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>>;

    /// A hash of each array, the same on all processes that own a shard of one of them; these must
    /// make the same call in the same order. The future resolves to the first error that poisons
    /// one of the arrays.
    ///
    /// # Errors
    /// `InvalidArgument` when an array is deleted, its sharding does not say who has what, or this
    /// process owns no shard of any.
    fn hash_arrays(&self, arrays: &[ArrayRef], mode: HashMode) -> Result<Future<Vec<u64>>>;

    /// An array from the part of it that this process holds, which each process passes for itself;
    /// see [`Sharding::process_domain`] for its shape.
    ///
    /// # Errors
    /// `InvalidArgument` when this process's shards are no rectangle, or `local` differs from it
    /// in shape.
    fn make_array_from_process_data(
        &self,
        local: &HostBuffer<'_>,
        shape: &Shape,
        sharding: &Sharding,
        semantics: HostBufferSemantics,
    ) -> Result<ArrayRef> {
        let spec =
            ArraySpec { dtype: local.dtype(), shape: shape.clone(), sharding: sharding.clone() };
        let own = sharding.process_domain(shape, self.process_index())?;
        let wanted = own.as_ref().map(IndexDomain::shape);
        let is_empty = local.shape().num_elements() == 0;
        if wanted.map_or(!is_empty, |wanted| wanted != local.shape()) {
            let wanted = wanted.map_or("nothing".to_owned(), Shape::to_string);
            return Err(Status::invalid_argument(format!(
                "process {} holds {wanted} of an array of shape {shape} under {sharding}, not {}",
                self.process_index(),
                local.shape()
            )));
        }
        let addressable = SingleDeviceShardSemantics::AddressableShards;
        let domains = sharding.index_domains(shape, addressable)?;
        let buffers = domains.iter().enumerate().map(|(index, domain)| {
            let part = match &own {
                Some(own) => local.part(own.origin(), domain)?,
                None => HostBuffer::dense(
                    HostBytes::Borrowed(&[]),
                    local.dtype(),
                    domain.shape().clone(),
                )?,
            };
            Ok((vec![index], part))
        });
        let shards = HostBufferShards { spec, buffers: buffers.collect::<Result<_>>()? };
        let mut made = self.make_arrays_from_host_buffer_shards(&[shards], semantics)?;
        made.pop().ok_or_else(|| Status::internal("making one array gave none"))
    }

    /// How the elements of shards follow each other where nothing is said: row-major, in every
    /// memory that there is.
    fn default_layout(&self, _dtype: DType, shard_shape: &Shape, _memory: &MemoryKind) -> Layout {
        Layout::row_major(shard_shape.rank())
    }

    /// A number that is the same for the same kinds of devices in the same processes, whatever
    /// client sees them: a program compiled for one such list runs on another.
    fn topology_fingerprint(&self, devices: &DeviceList) -> u64 {
        let mut text = format!("{} {}", self.platform_name(), self.platform_version());
        for device in devices {
            text += &format!(" {} {}", device.process_index(), device.kind());
        }
        super::fingerprint(text.bytes())
    }

    /// The contents of an array, brought to one process, which alone gets them.
    ///
    /// All processes that own a shard, and the receiver, must make the same call.
    ///
    /// # Errors
    /// As [`Client::reshard_arrays`]; `InvalidArgument` when the process has no device.
    fn fetch_to(
        &self,
        array: &ArrayRef,
        process_index: u32,
    ) -> Result<Option<Future<HostBuffer<'static>>>> {
        let device = self.devices().iter().find(|device| device.process_index() == process_index);
        let device = device.ok_or_else(|| {
            Status::invalid_argument(format!("process {process_index} has no device"))
        })?;
        let sharding = Sharding::single_device(DeviceList::new([device.clone()]))?;
        let fetched = self.resharded(array, sharding)?;
        if process_index != self.process_index() {
            return Ok(None);
        }
        fetched.copy_to_host_buffer(ArrayCopySemantics::ReuseInput).map(Some)
    }

    /// The contents of an array, brought to every process that has a device; each makes this call.
    ///
    /// # Errors
    /// As [`Client::reshard_arrays`]; `InvalidArgument` when this process has no device.
    fn gather(&self, array: &ArrayRef) -> Result<Future<HostBuffer<'static>>> {
        let mut seen = BTreeSet::new();
        let first_of_each =
            self.devices().iter().filter(|device| seen.insert(device.process_index()));
        let devices = DeviceList::new(first_of_each.cloned().collect::<Vec<_>>());
        let gathered = self.resharded(array, Sharding::replicated(devices)?)?;
        gathered.copy_to_host_buffer(ArrayCopySemantics::ReuseInput)
    }

    /// One array under another sharding: see [`Client::reshard_arrays`].
    ///
    /// # Errors
    /// As [`Client::reshard_arrays`].
    fn resharded(&self, array: &ArrayRef, sharding: Sharding) -> Result<ArrayRef> {
        let spec = ArraySpec { sharding, ..array.spec().clone() };
        let mut made = self.reshard_arrays(
            std::slice::from_ref(array),
            &[spec],
            ArrayCopySemantics::AlwaysCopy,
        )?;
        made.pop().ok_or_else(|| Status::internal("resharding one array gave none"))
    }

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
