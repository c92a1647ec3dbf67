//! Memories: objects that callers look into, since their first word is a table of functions.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lockstep::ifrt::{self, DeviceList, Result, Sharding, ShardingSpec, Status};

use crate::abi::caller::{Caller, Owned, Shared};
use crate::abi::ffi;
use crate::abi::objects::Objects;

/// One memory of one device.
#[repr(C)]
pub(crate) struct Memory {
    vtable: Shared<*const FunctionTable>,
    /// Where arrays that are in it are.
    sharding: Sharding,
    id: i32,
    kind_id: i32,
    text: String,
    /// The handle of its device, once that has one.
    devices: OnceLock<Shared<[*mut c_void; 1]>>,
    /// What callers keep with it, by their keys.
    user_data: Mutex<Vec<(usize, Owned)>>,
}

/// `PJRT_Memory_FunctionTable`, with its functions' types.
#[repr(C)]
struct FunctionTable {
    struct_size: usize,
    extension_start: Shared<*mut c_void>,
    instance_struct_size: usize,
    user_data: extern "C" fn(*mut c_void, *const c_void) -> *mut c_void,
    set_user_data: extern "C" fn(*mut c_void, *const c_void, *mut c_void, *mut c_void),
}

const _: () = assert!(size_of::<FunctionTable>() == size_of::<ffi::PJRT_Memory_FunctionTable>());

static FUNCTIONS: FunctionTable = FunctionTable {
    struct_size: size_of::<FunctionTable>(),
    extension_start: Shared(null_mut()),
    instance_struct_size: size_of::<*const FunctionTable>(),
    user_data,
    set_user_data,
};

static MEMORIES: Objects<Memory> = Objects::new();

impl Memory {
    /// The `number`th memory of `device`.
    pub(crate) fn new(device: &ifrt::Device, number: usize, memory: &ifrt::Memory) -> Result<Self> {
        let devices = DeviceList::new([device.clone()]);
        let sharding = Sharding::new(ShardingSpec::SingleDevice, devices, memory.kind.clone())?;
        Ok(Self {
            vtable: Shared(&raw const FUNCTIONS),
            sharding,
            id: i32::try_from(memory.id.0).unwrap_or(i32::MAX),
            kind_id: i32::try_from(number).unwrap_or(i32::MAX),
            text: format!("{} memory of {}", memory.kind, device.id()),
            devices: OnceLock::new(),
            user_data: Mutex::default(),
        })
    }

    /// Where arrays that are in it are.
    pub(crate) fn sharding(&self) -> &Sharding {
        &self.sharding
    }

    /// Says which handle its device has.
    pub(crate) fn set_device(&self, device: *mut c_void) {
        // The client that made both says so once.
        let _ = self.devices.set(Shared([device]));
    }
}

/// Shows a memory to callers.
pub(crate) fn insert(memory: Arc<Memory>) -> *mut c_void {
    MEMORIES.insert(memory)
}

/// The memory at this address.
///
/// # Errors
/// `InvalidArgument` when there is none.
pub(crate) fn find(at: *mut c_void) -> Result<Arc<Memory>> {
    MEMORIES
        .find(at)
        .ok_or_else(|| Status::invalid_argument(format!("there is no memory at {:#x}", at.addr())))
}

/// Takes a memory from callers.
pub(crate) fn remove(at: *mut c_void) {
    drop(MEMORIES.remove(at));
}

/// `PJRT_Memory_Id`.
pub(crate) fn id(args: &mut ffi::PJRT_Memory_Id_Args, _: &Caller) -> Result<()> {
    args.id = find(args.memory)?.id;
    Ok(())
}

/// `PJRT_Memory_Kind`.
pub(crate) fn kind(args: &mut ffi::PJRT_Memory_Kind_Args, _: &Caller) -> Result<()> {
    let memory = find(args.memory)?;
    let name = memory.sharding.memory_kind().name();
    (args.kind, args.kind_size) = (name.as_ptr().cast_mut().cast(), name.len());
    Ok(())
}

/// `PJRT_Memory_Kind_Id`: the same for the same kind.
pub(crate) fn kind_id(args: &mut ffi::PJRT_Memory_Kind_Id_Args, _: &Caller) -> Result<()> {
    args.kind_id = find(args.memory)?.kind_id;
    Ok(())
}

/// `PJRT_Memory_DebugString`.
pub(crate) fn debug_string(args: &mut ffi::PJRT_Memory_DebugString_Args, _: &Caller) -> Result<()> {
    let memory = find(args.memory)?;
    (args.debug_string, args.debug_string_size) =
        (memory.text.as_ptr().cast_mut().cast(), memory.text.len());
    Ok(())
}

/// `PJRT_Memory_ToString`.
pub(crate) fn to_string(args: &mut ffi::PJRT_Memory_ToString_Args, _: &Caller) -> Result<()> {
    let memory = find(args.memory)?;
    (args.to_string, args.to_string_size) =
        (memory.text.as_ptr().cast_mut().cast(), memory.text.len());
    Ok(())
}

/// `PJRT_Memory_AddressableByDevices`.
pub(crate) fn addressable_by_devices(
    args: &mut ffi::PJRT_Memory_AddressableByDevices_Args,
    _: &Caller,
) -> Result<()> {
    let memory = find(args.memory)?;
    let devices = memory.devices.get().map_or(&[][..], |devices| &devices.0);
    (args.devices, args.num_devices) = (devices.as_ptr().cast_mut().cast(), devices.len());
    Ok(())
}

extern "C" fn user_data(memory: *mut c_void, key: *const c_void) -> *mut c_void {
    let Some(memory) = MEMORIES.find(memory) else { return null_mut() };
    let kept = memory.user_data.lock().unwrap_or_else(PoisonError::into_inner);
    let found = kept.iter().find(|(other, _)| *other == key.addr());
    found.map_or(null_mut(), |(_, data)| data.at())
}

extern "C" fn set_user_data(
    memory: *mut c_void,
    key: *const c_void,
    data: *mut c_void,
    destructor: *mut c_void,
) {
    let Some(memory) = MEMORIES.find(memory) else { return };
    let data = Owned::new(data, destructor);
    let mut kept = memory.user_data.lock().unwrap_or_else(PoisonError::into_inner);
    kept.retain(|(other, _)| *other != key.addr());
    kept.push((key.addr(), data));
}
