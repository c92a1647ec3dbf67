//! Devices, which are their own descriptions: one handle is both.

use std::ffi::c_void;
use std::ptr::null_mut;

use lockstep::ifrt::{self, Result};

use crate::abi::caller::{Caller, Shared};
use crate::abi::ffi;
use crate::attributes::NamedValues;
use crate::handle;

/// A device of a client.
pub(crate) struct Device {
    device: ifrt::Device,
    /// Its number among this process's devices; -1 for one of another process.
    local_hardware_id: i32,
    name: String,
    debug_name: String,
    attributes: NamedValues,
    /// Those of its memories that this process can use; the default one first.
    memories: Shared<Vec<*mut c_void>>,
}

impl Device {
    pub(crate) fn new(
        device: ifrt::Device,
        local_hardware_id: i32,
        memories: Vec<*mut c_void>,
    ) -> Self {
        let id = device.id().0;
        let attributes = device.attributes().iter();
        Self {
            name: format!("LockstepDevice(id={id})"),
            debug_name: format!("lockstep:{id} of process {}", device.process_index()),
            attributes: NamedValues::new(
                attributes.map(|(name, value)| (name.to_owned(), value.clone())),
            ),
            local_hardware_id,
            memories: Shared(memories),
            device,
        }
    }

    /// What it is to the runtime.
    pub(crate) fn ifrt(&self) -> &ifrt::Device {
        &self.device
    }

    /// Its memory of this kind.
    pub(crate) fn memory(&self, kind: &ifrt::MemoryKind) -> *mut c_void {
        let number = self.device.memories().iter().position(|memory| memory.kind == *kind);
        let memory = number.and_then(|number| self.memories.0.get(number));
        memory.copied().unwrap_or(null_mut())
    }

    /// The memory that arrays are in unless something else is asked for.
    pub(crate) fn default_memory(&self) -> *mut c_void {
        self.memories.0.first().copied().unwrap_or(null_mut())
    }
}

/// `PJRT_DeviceDescription_Id`.
pub(crate) fn id(args: &mut ffi::PJRT_DeviceDescription_Id_Args, _: &Caller) -> Result<()> {
    let device = handle::find::<Device>(args.device_description)?;
    args.id = i32::try_from(device.device.id().0).unwrap_or(i32::MAX);
    Ok(())
}

/// `PJRT_DeviceDescription_ProcessIndex`.
pub(crate) fn process_index(
    args: &mut ffi::PJRT_DeviceDescription_ProcessIndex_Args,
    _: &Caller,
) -> Result<()> {
    let device = handle::find::<Device>(args.device_description)?;
    args.process_index = i32::try_from(device.device.process_index()).unwrap_or(i32::MAX);
    Ok(())
}

/// `PJRT_DeviceDescription_Attributes`.
pub(crate) fn attributes(
    args: &mut ffi::PJRT_DeviceDescription_Attributes_Args,
    _: &Caller,
) -> Result<()> {
    let device = handle::find::<Device>(args.device_description)?;
    (args.attributes, args.num_attributes) = device.attributes.parts();
    Ok(())
}

/// `PJRT_Device_GetAttributes`: the same, which live as long as the device.
pub(crate) fn device_attributes(
    args: &mut ffi::PJRT_Device_GetAttributes_Args,
    _: &Caller,
) -> Result<()> {
    let device = handle::find::<Device>(args.device)?;
    (args.attributes, args.num_attributes) = device.attributes.parts();
    args.device_attributes = null_mut();
    args.attributes_deleter = keep as *mut c_void;
    Ok(())
}

/// What callers are told to destroy attributes with.
extern "C" fn keep(_: *mut c_void) {}

/// `PJRT_DeviceDescription_Kind`.
pub(crate) fn kind(args: &mut ffi::PJRT_DeviceDescription_Kind_Args, _: &Caller) -> Result<()> {
    let device = handle::find::<Device>(args.device_description)?;
    let kind = device.device.kind();
    (args.device_kind, args.device_kind_size) = (kind.as_ptr().cast_mut().cast(), kind.len());
    Ok(())
}

/// `PJRT_DeviceDescription_DebugString`.
pub(crate) fn debug_string(
    args: &mut ffi::PJRT_DeviceDescription_DebugString_Args,
    _: &Caller,
) -> Result<()> {
    let device = handle::find::<Device>(args.device_description)?;
    let text = &device.debug_name;
    (args.debug_string, args.debug_string_size) = (text.as_ptr().cast_mut().cast(), text.len());
    Ok(())
}

/// `PJRT_DeviceDescription_ToString`.
pub(crate) fn to_string(
    args: &mut ffi::PJRT_DeviceDescription_ToString_Args,
    _: &Caller,
) -> Result<()> {
    let device = handle::find::<Device>(args.device_description)?;
    let text = &device.name;
    (args.to_string, args.to_string_size) = (text.as_ptr().cast_mut().cast(), text.len());
    Ok(())
}

/// `PJRT_Device_GetDescription`.
pub(crate) fn description(
    args: &mut ffi::PJRT_Device_GetDescription_Args,
    _: &Caller,
) -> Result<()> {
    handle::find::<Device>(args.device)?;
    args.device_description = args.device;
    Ok(())
}

/// `PJRT_Device_IsAddressable`.
pub(crate) fn is_addressable(
    args: &mut ffi::PJRT_Device_IsAddressable_Args,
    _: &Caller,
) -> Result<()> {
    args.is_addressable = handle::find::<Device>(args.device)?.device.is_addressable().into();
    Ok(())
}

/// `PJRT_Device_LocalHardwareId`.
pub(crate) fn hardware_id(
    args: &mut ffi::PJRT_Device_LocalHardwareId_Args,
    _: &Caller,
) -> Result<()> {
    args.local_hardware_id = handle::find::<Device>(args.device)?.local_hardware_id;
    Ok(())
}

/// `PJRT_Device_AddressableMemories`.
pub(crate) fn addressable_memories(
    args: &mut ffi::PJRT_Device_AddressableMemories_Args,
    _: &Caller,
) -> Result<()> {
    let device = handle::find::<Device>(args.device)?;
    let memories = &device.memories.0;
    (args.memories, args.num_memories) = (memories.as_ptr().cast_mut().cast(), memories.len());
    Ok(())
}

/// `PJRT_Device_DefaultMemory`.
pub(crate) fn default_memory(
    args: &mut ffi::PJRT_Device_DefaultMemory_Args,
    _: &Caller,
) -> Result<()> {
    args.memory = handle::find::<Device>(args.device)?.default_memory();
    Ok(())
}
