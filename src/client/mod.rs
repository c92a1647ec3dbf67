//! The in-process [`ifrt::Client`] of a job of one or many processes.
//!
//! Owns this process's part of global arrays, compilation and program agreement, and the
//! executor thread of each local device. What a device computes is the backend's, how bytes get
//! to other processes is `lockstep_collectives`'.
//!
//! Invariants: the device list is the topology's, in rank order, on every process (I1); launches
//! reach all local devices in one order (I2); a launch's outputs are all values or all poisoned
//! (I9).

mod agreement;
mod array;
mod assignment;
mod collective;
mod compile;
mod exchange;
mod executable;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod hash;
mod hlo;
mod host;
mod host_function;
mod launch;
mod memory;
mod movement;
mod region;
mod relabel;
mod route;
mod serialized;
mod stream;
#[cfg(test)]
mod tests;
mod virtual_devices;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

pub use self::hlo::{from_hlo_sharding, to_hlo_sharding};
pub use self::virtual_devices::{VirtualDevices, VirtualLaunch};
use lockstep_collectives::{Communicator, Member, World, WorldError, environment};
pub use lockstep_collectives::{KeyValueStore, Meeting, Rank, StoreError};

use self::memory::SharedMemory;
use self::stream::{Streams, Turn};
use crate::backend::cpu::CpuBackend;
use crate::backend::{Backend, LocalDevice};
use crate::ifrt::{
    self, ArrayCopySemantics, ArrayRef, ArraySpec, AttributeMap, Code, Compiler, Device,
    DeviceDescription, DeviceId, DeviceList, Future, HashMode, HostBuffer, HostBufferSemantics,
    HostBufferShards, Memory, MemoryId, MemoryKind, RemapPlan, Result, Sharding,
    SingleDeviceShardSemantics, Status,
};

/// One process's view of a job.
///
/// Arrays lie in shared host memory where [`HostBufferSemantics`] allow it, the memory is dense and
/// the devices compute from there; else it is copied during the call. Reading an array without
/// `AlwaysCopy` copies nothing where one shard is the whole array.
///
/// Dropping the last reference to it, and to the executables it made, waits for the launches
/// under way and leaves the job.
pub struct Client {
    core: Arc<Core>,
}

/// What a client shares with its executables.
struct Core {
    /// First, so that launches are over before the job is left. Locked while a launch is handed
    /// to all devices, so that these see launches in one order.
    streams: Mutex<Streams>,
    communicators: Vec<Communicator>,
    backend: Arc<dyn Backend>,
    attributes: AttributeMap,
    devices: DeviceList,
    addressable: DeviceList,
    /// Compilations so far, by the fingerprint of the device list.
    compilations: Mutex<HashMap<u64, u64>>,
    /// Exchanges between the leads of processes so far, by who took part.
    exchanges: Mutex<HashMap<Vec<u32>, u64>>,
    world: World,
}

impl Client {
    /// The client of the job that the environment describes; of this process alone if there is
    /// none. Devices are CPU devices, as many as `LOCKSTEP_DEVICES` says.
    ///
    /// # Errors
    /// `InvalidArgument` when the environment is wrong; `Unavailable` when the job cannot be
    /// joined.
    pub fn from_environment() -> Result<Arc<Self>> {
        Self::on_cpu(World::from_environment().map_err(status)?)
    }

    /// The client of a job that this process makes with others, which it meets in `store`.
    ///
    /// # Errors
    /// `InvalidArgument` when the environment is wrong; `Unavailable` when the store fails or a
    /// process does not come, which the message names.
    pub fn meet(store: &dyn KeyValueStore, meeting: &Meeting) -> Result<Arc<Self>> {
        Self::on_cpu(World::meet(store, meeting).map_err(status)?)
    }

    /// The client of a job of this process alone, with so many CPU devices.
    ///
    /// # Errors
    /// `ResourceExhausted` when the system grants no threads.
    pub fn solo(devices: u32) -> Result<Arc<Self>> {
        Self::on_cpu(World::solo(devices))
    }

    fn on_cpu(world: World) -> Result<Arc<Self>> {
        let local = world.topology().members_of(world.rank()).len();
        let mut backend = CpuBackend::new(local);
        if let Some(arena) = world.arena() {
            backend = backend.with_allocator(Arc::new(SharedMemory(Arc::clone(arena))));
        }
        Self::new(world, Arc::new(backend))
    }

    /// A client whose devices are those of `backend`.
    ///
    /// # Errors
    /// `InvalidArgument` when the topology says that this process has another number of devices
    /// than `backend`; `ResourceExhausted` when the system grants no threads.
    pub fn new(world: World, backend: Arc<dyn Backend>) -> Result<Arc<Self>> {
        let topology = Arc::clone(world.topology());
        let local = topology.members_of(world.rank());
        if local.len() != backend.device_count() {
            return Err(Status::invalid_argument(format!(
                "the topology gives {} {} devices, the backend has {}",
                world.rank(),
                local.len(),
                backend.device_count()
            )));
        }
        let kinds = backend.memory_kinds();
        let memories = |device: u32| -> Vec<Memory> {
            let count = u32::try_from(kinds.len()).unwrap_or(u32::MAX);
            let memory = |(number, kind): (u32, &MemoryKind)| Memory {
                id: MemoryId(device.saturating_mul(count).saturating_add(number)),
                kind: kind.clone(),
                devices: vec![DeviceId(device)],
            };
            (0..).zip(kinds).map(memory).collect()
        };
        let device = |id: u32, process_index: u32| {
            Device::new(DeviceDescription {
                id: DeviceId(id),
                kind: backend.platform_name().to_owned(),
                process_index,
                is_addressable: process_index == world.rank().0,
                memories: memories(id),
                attributes: AttributeMap::default(),
            })
        };
        let devices: Vec<Device> = topology
            .ranks()
            .iter()
            .flat_map(|info| topology.members_of(info.rank).map(|id| device(id, info.rank.0)))
            .collect();
        let devices = DeviceList::new(devices);
        let communicators = local.clone().map(|member| world.communicator(Member(member)));
        let core = Core {
            streams: Mutex::new(Streams::start(local.map(DeviceId))?),
            communicators: communicators.collect(),
            addressable: devices.addressable(),
            backend,
            attributes: AttributeMap::default(),
            devices,
            compilations: Mutex::default(),
            exchanges: Mutex::default(),
            world,
        };
        Ok(Arc::new(Self { core: Arc::new(core) }))
    }

    /// The job, for what its processes say to each other besides arrays: keys, barriers, failures.
    pub fn world(&self) -> &World {
        &self.core.world
    }
}

/// Whether the environment says which job this process is in.
pub fn is_launched() -> bool {
    std::env::var_os(environment::RANK).is_some_and(|rank| !rank.is_empty())
}

/// How many devices the environment has this process show.
///
/// # Errors
/// `InvalidArgument` when it is no number from 1.
pub fn devices_of_process() -> Result<u32> {
    environment::devices_of_process().map_err(|error| Status::wrap(Code::InvalidArgument, error))
}

fn status(error: WorldError) -> Status {
    let code = match error {
        WorldError::Environment(_) => Code::InvalidArgument,
        _ => Code::Unavailable,
    };
    Status::wrap(code, error)
}

impl Core {
    /// The number of an addressable device among this process's.
    fn local_device(&self, device: &Device) -> Result<LocalDevice> {
        let number = self.addressable.iter().position(|local| local == device);
        number.map(LocalDevice).ok_or_else(|| {
            Status::invalid_argument(format!("{device:?} is not one of this process's devices"))
        })
    }

    fn communicator(&self, device: LocalDevice) -> Result<Communicator> {
        let communicator = self.communicators.get(device.0).cloned();
        communicator.ok_or_else(|| Status::internal(format!("{device:?} has no communicator")))
    }

    /// Has a launch run on the streams of its devices; no other launch comes between.
    fn submit(
        &self,
        jobs: impl IntoIterator<Item = (LocalDevice, impl FnOnce() + Send + 'static)>,
    ) {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        for (device, job) in jobs {
            streams.submit(device, job);
        }
    }

    /// The turn of `device`, if it has come: for a brief launch, which another thread would take longer
    /// to begin than this one to be through.
    fn turn(&self, device: LocalDevice) -> Option<Turn> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).turn(device)
    }

    /// Runs `job` on the stream of this process's first device, after all launches before.
    fn submit_to_lead(&self, job: impl FnOnce() + Send + 'static) {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.submit(LocalDevice(0), job);
    }

    /// Checks that a device list is this client's.
    fn require_own(&self, devices: &DeviceList) -> Result<()> {
        // Ids are dense and in order: a device's id is its place.
        let is_own = |device: &Device| {
            usize::try_from(device.id().0).ok().and_then(|place| self.devices.get(place))
                == Some(device)
        };
        match devices.iter().find(|device| !is_own(device)) {
            None => Ok(()),
            Some(stranger) => Err(Status::invalid_argument(format!(
                "{stranger:?} is not a device of this client, which has {}",
                self.devices
            ))),
        }
    }
}

impl ifrt::Client for Client {
    fn runtime_type(&self) -> &'static str {
        "lockstep"
    }

    fn platform_name(&self) -> &str {
        self.core.backend.platform_name()
    }

    fn platform_version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    fn attributes(&self) -> &AttributeMap {
        &self.core.attributes
    }

    fn process_index(&self) -> u32 {
        self.core.world.rank().0
    }

    fn process_count(&self) -> u32 {
        self.core.world.topology().world_size()
    }

    fn devices(&self) -> &DeviceList {
        &self.core.devices
    }

    fn addressable_devices(&self) -> &DeviceList {
        &self.core.addressable
    }

    fn make_array_from_host_buffer(
        &self,
        buffer: &HostBuffer<'_>,
        sharding: &Sharding,
        semantics: HostBufferSemantics,
    ) -> Result<ArrayRef> {
        let _span = tracing::debug_span!("make_array_from_host_buffer").entered();
        self.core.array_from_host_buffer(buffer, sharding, semantics)
    }

    fn make_arrays_from_host_buffer_shards(
        &self,
        arrays: &[HostBufferShards<'_>],
        semantics: HostBufferSemantics,
    ) -> Result<Vec<ArrayRef>> {
        let _span = tracing::debug_span!("make_arrays_from_host_buffer_shards").entered();
        arrays.iter().map(|shards| self.core.array_from_shards(shards, semantics)).collect()
    }

    fn make_error_arrays(&self, status: &Status, specs: &[ArraySpec]) -> Result<Vec<ArrayRef>> {
        specs.iter().map(|spec| self.core.error_array(status, spec)).collect()
    }

    fn assemble_array_from_single_device_arrays(
        &self,
        spec: &ArraySpec,
        arrays: &[ArrayRef],
        copy: ArrayCopySemantics,
        shards: SingleDeviceShardSemantics,
    ) -> Result<ArrayRef> {
        let _span = tracing::debug_span!("assemble_array_from_single_device_arrays").entered();
        self.core.assemble(spec, arrays, copy, shards)
    }

    fn copy_arrays(
        &self,
        arrays: &[ArrayRef],
        devices: Option<&DeviceList>,
        memory_kind: Option<&MemoryKind>,
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        let _span = tracing::debug_span!("copy_arrays").entered();
        self.core.copy(arrays, devices, memory_kind, copy)
    }

    fn reshard_arrays(
        &self,
        arrays: &[ArrayRef],
        specs: &[ArraySpec],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        let _span = tracing::debug_span!("reshard_arrays").entered();
        self.core.reshard(arrays, specs, copy)
    }

    fn remap_arrays(
        &self,
        plan: &RemapPlan,
        arrays: &[ArrayRef],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        let _span = tracing::debug_span!("remap_arrays").entered();
        self.core.remap(plan, arrays, copy)
    }

    fn bitcast_arrays(
        &self,
        arrays: &[ArrayRef],
        specs: &[ArraySpec],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        let _span = tracing::debug_span!("bitcast_arrays").entered();
        self.core.bitcast(arrays, specs, copy)
    }

    fn hash_arrays(&self, arrays: &[ArrayRef], mode: HashMode) -> Result<Future<Vec<u64>>> {
        let _span = tracing::debug_span!("hash_arrays").entered();
        self.core.hash(arrays, mode)
    }

    fn compiler(&self) -> &dyn Compiler {
        self
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "client of {} over {}", self.core.world.rank(), self.core.devices)
    }
}
