//! Clients: the devices and memories that callers see of a [`ifrt::Client`].

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;

use lockstep::ifrt::{self, DeviceId, Result, Status};
use lockstep::stablehlo::xla::DeviceAssignment;

use crate::abi::caller::{Caller, Shared};
use crate::abi::ffi;
use crate::abi::key_value::Store;
use crate::device::Device;
use crate::memory::{self, Memory};
use crate::runtime::PLATFORM;
use crate::topology::Topology;
use crate::{attributes, handle, runtime};

/// A client, its devices and memories by handle.
pub(crate) struct Client {
    runtime: Arc<dyn ifrt::Client>,
    devices: BTreeMap<DeviceId, (Shared<*mut c_void>, Arc<Device>)>,
    /// All devices, in the order of their ids.
    all: Shared<Vec<*mut c_void>>,
    addressable: Shared<Vec<*mut c_void>>,
    memories: Shared<Vec<*mut c_void>>,
    topology: Shared<*mut c_void>,
    version: String,
}

impl Client {
    fn new(runtime: Arc<dyn ifrt::Client>) -> Result<Self> {
        let (mut all, mut addressable, mut memories) = (Vec::new(), Vec::new(), Vec::new());
        let mut devices = BTreeMap::new();
        for device in runtime.devices() {
            let mut own = Vec::new();
            let mut local_hardware_id = -1;
            if device.is_addressable() {
                local_hardware_id = i32::try_from(addressable.len()).unwrap_or(i32::MAX);
                for (number, memory) in device.memories().iter().enumerate() {
                    own.push(Arc::new(Memory::new(device, number, memory)?));
                }
            }
            let own_handles: Vec<_> =
                own.iter().map(|memory| memory::insert(Arc::clone(memory))).collect();
            memories.extend_from_slice(&own_handles);
            let shown = Arc::new(Device::new(device.clone(), local_hardware_id, own_handles));
            let handle = handle::insert(Arc::clone(&shown));
            own.iter().for_each(|memory| memory.set_device(handle));
            if device.is_addressable() {
                addressable.push(handle);
            }
            all.push(handle);
            devices.insert(device.id(), (Shared(handle), shown));
        }
        let version = format!("{PLATFORM} {}", runtime.platform_version());
        let fingerprint = runtime.topology_fingerprint(runtime.devices());
        let topology = Topology::new(version.clone(), fingerprint, all.clone());
        Ok(Self {
            runtime,
            devices,
            all: Shared(all),
            addressable: Shared(addressable),
            memories: Shared(memories),
            topology: Shared(handle::insert(Arc::new(topology))),
            version,
        })
    }

    /// The runtime.
    pub(crate) fn runtime(&self) -> &dyn ifrt::Client {
        &*self.runtime
    }

    /// A device and its handle.
    ///
    /// # Errors
    /// `InvalidArgument` when there is none with this id.
    pub(crate) fn device(&self, id: DeviceId) -> Result<(*mut c_void, &Device)> {
        let found = self.devices.get(&id).map(|(handle, device)| (handle.0, &**device));
        found.ok_or_else(|| {
            Status::invalid_argument(format!("there is no {id} among {}", self.runtime.devices()))
        })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        for (handle, _) in self.devices.values() {
            let _ = handle::remove::<Device>(handle.0);
        }
        for memory in &self.memories.0 {
            memory::remove(*memory);
        }
        let _ = handle::remove::<Topology>(self.topology.0);
    }
}

/// `PJRT_Client_Create`.
pub(crate) fn create(args: &mut ffi::PJRT_Client_Create_Args, caller: &Caller) -> Result<()> {
    let options = attributes::read(caller, args.create_options, args.num_options)?;
    // In a process alone the functions of the store are not there, whatever their addresses say.
    let store = || Store::new(args, caller);
    let runtime = runtime::open(&options, &store)?;
    args.client = handle::insert(Arc::new(Client::new(runtime)?));
    Ok(())
}

/// `PJRT_Client_Destroy`: executables and buffers that are left keep the runtime alive.
pub(crate) fn destroy(args: &mut ffi::PJRT_Client_Destroy_Args, _: &Caller) -> Result<()> {
    handle::remove::<Client>(args.client).map(|_| ())
}

/// `PJRT_Client_PlatformName`.
pub(crate) fn platform_name(
    args: &mut ffi::PJRT_Client_PlatformName_Args,
    _: &Caller,
) -> Result<()> {
    handle::find::<Client>(args.client)?;
    (args.platform_name, args.platform_name_size) =
        (PLATFORM.as_ptr().cast_mut().cast(), PLATFORM.len());
    Ok(())
}

/// `PJRT_Client_PlatformVersion`.
pub(crate) fn platform_version(
    args: &mut ffi::PJRT_Client_PlatformVersion_Args,
    _: &Caller,
) -> Result<()> {
    let client = handle::find::<Client>(args.client)?;
    (args.platform_version, args.platform_version_size) =
        (client.version.as_ptr().cast_mut().cast(), client.version.len());
    Ok(())
}

/// `PJRT_Client_ProcessIndex`.
pub(crate) fn process_index(
    args: &mut ffi::PJRT_Client_ProcessIndex_Args,
    _: &Caller,
) -> Result<()> {
    let index = handle::find::<Client>(args.client)?.runtime.process_index();
    args.process_index = i32::try_from(index).unwrap_or(i32::MAX);
    Ok(())
}

/// `PJRT_Client_Devices`.
pub(crate) fn devices(args: &mut ffi::PJRT_Client_Devices_Args, _: &Caller) -> Result<()> {
    let client = handle::find::<Client>(args.client)?;
    let devices = &client.all.0;
    (args.devices, args.num_devices) = (devices.as_ptr().cast_mut().cast(), devices.len());
    Ok(())
}

/// `PJRT_Client_AddressableDevices`.
pub(crate) fn addressable_devices(
    args: &mut ffi::PJRT_Client_AddressableDevices_Args,
    _: &Caller,
) -> Result<()> {
    let client = handle::find::<Client>(args.client)?;
    let devices = &client.addressable.0;
    (args.addressable_devices, args.num_addressable_devices) =
        (devices.as_ptr().cast_mut().cast(), devices.len());
    Ok(())
}

/// `PJRT_Client_LookupDevice`: by the id that is the same in all processes.
pub(crate) fn lookup_device(
    args: &mut ffi::PJRT_Client_LookupDevice_Args,
    _: &Caller,
) -> Result<()> {
    let client = handle::find::<Client>(args.client)?;
    let id = u32::try_from(args.id)
        .map_err(|_| Status::invalid_argument(format!("{} is no device id", args.id)))?;
    args.device = client.device(DeviceId(id))?.0;
    Ok(())
}

/// `PJRT_Client_LookupAddressableDevice`: by its number in this process.
pub(crate) fn lookup_addressable_device(
    args: &mut ffi::PJRT_Client_LookupAddressableDevice_Args,
    _: &Caller,
) -> Result<()> {
    let client = handle::find::<Client>(args.client)?;
    let number = usize::try_from(args.local_hardware_id).ok();
    let found = number.and_then(|number| client.addressable.0.get(number));
    args.addressable_device = *found.ok_or_else(|| {
        Status::invalid_argument(format!(
            "there is no local device {}, only {}",
            args.local_hardware_id,
            client.addressable.0.len()
        ))
    })?;
    Ok(())
}

/// `PJRT_Client_AddressableMemories`.
pub(crate) fn addressable_memories(
    args: &mut ffi::PJRT_Client_AddressableMemories_Args,
    _: &Caller,
) -> Result<()> {
    let client = handle::find::<Client>(args.client)?;
    let memories = &client.memories.0;
    (args.addressable_memories, args.num_addressable_memories) =
        (memories.as_ptr().cast_mut().cast(), memories.len());
    Ok(())
}

/// `PJRT_Client_TopologyDescription`.
pub(crate) fn topology(
    args: &mut ffi::PJRT_Client_TopologyDescription_Args,
    _: &Caller,
) -> Result<()> {
    args.topology = handle::find::<Client>(args.client)?.topology.0;
    Ok(())
}

/// `PJRT_Client_DefaultDeviceAssignment`: the first devices in order, replica by replica.
pub(crate) fn default_device_assignment(
    args: &mut ffi::PJRT_Client_DefaultDeviceAssignment_Args,
    caller: &Caller,
) -> Result<()> {
    let client = handle::find::<Client>(args.client)?;
    let count = i64::from(args.num_replicas) * i64::from(args.num_partitions);
    let count = usize::try_from(count).ok().filter(|count| *count <= client.all.0.len());
    let count = count.filter(|count| *count <= args.default_assignment_size).ok_or_else(|| {
        Status::invalid_argument(format!(
            "{} replicas of {} partitions are to be on {} devices, in {} places",
            args.num_replicas,
            args.num_partitions,
            client.all.0.len(),
            args.default_assignment_size
        ))
    })?;
    let ids = client.runtime.devices().ids().take(count);
    let ids: Vec<i32> = ids.map(|id| i32::try_from(id.0).unwrap_or(i32::MAX)).collect();
    caller.fill(args.default_assignment, &ids, "default_assignment")
}

/// `PJRT_Client_UpdateGlobalProcessInfo`: the runtime has its own news of its processes.
pub(crate) fn update_global_process_info(
    args: &mut ffi::PJRT_Client_UpdateGlobalProcessInfo_Args,
    _: &Caller,
) -> Result<()> {
    handle::find::<Client>(args.client).map(|_| ())
}

/// The devices of the first `count` partitions, where nobody says which.
///
/// # Errors
/// `InvalidArgument` when there are not so many.
pub(crate) fn first_devices(client: &Client, count: usize) -> Result<DeviceAssignment> {
    let devices = client.runtime.devices();
    if count > devices.len() {
        return Err(Status::invalid_argument(format!(
            "the program is for {count} partitions, there are {devices}"
        )));
    }
    let ids = devices.ids().take(count);
    Ok(DeviceAssignment::of_partitions(ids.map(|id| i64::from(id.0)).collect()))
}
