//! The table of functions, and the symbol by which it is found.

#![allow(unsafe_code, reason = "a symbol without a name of Rust's has to be claimed to be unique")]

use std::sync::LazyLock;

use lockstep::ifrt::{Attribute, Result};

use crate::abi::call::entry;
use crate::abi::caller::{Caller, Plain, Shared, Versioned};
use crate::abi::error;
use crate::abi::ffi::{self, PJRT_Api, PJRT_Api_Version};
use crate::attributes::NamedValues;
use crate::extension::layouts;
use crate::{buffer, client, compile, device, event, executable, execute, memory, topology};

/// The version of the API that callers are told: that of JAX 0.10.
const VERSION: PJRT_Api_Version = PJRT_Api_Version {
    struct_size: PJRT_Api_Version::STRUCT_SIZE,
    major_version: 0,
    minor_version: 112,
    ..PJRT_Api_Version::ZERO
};

/// The version of StableHLO in which programs are to come: the newest that is read here.
const STABLEHLO_VERSION: [i64; 3] = [1, 17, 0];

/// The table of functions.
static API: Shared<PJRT_Api> = Shared(PJRT_Api {
    extension_start: (&raw const layouts::EXTENSION).cast_mut().cast(),
    pjrt_api_version: VERSION,

    PJRT_Error_Destroy: entry(error::destroy),
    PJRT_Error_Message: entry(error::message),
    PJRT_Error_GetCode: entry(error::code),
    PJRT_Error_ForEachPayload: entry(error::for_each_payload),

    PJRT_Plugin_Initialize: entry(initialize),
    PJRT_Plugin_Attributes: entry(attributes),

    PJRT_Event_Create: entry(event::create),
    PJRT_Event_Set: entry(event::set),
    PJRT_Event_Destroy: entry(event::destroy),
    PJRT_Event_IsReady: entry(event::is_ready),
    PJRT_Event_Error: entry(event::error),
    PJRT_Event_Await: entry(event::wait),
    PJRT_Event_OnReady: entry(event::on_ready),

    PJRT_Client_Create: entry(client::create),
    PJRT_Client_Destroy: entry(client::destroy),
    PJRT_Client_PlatformName: entry(client::platform_name),
    PJRT_Client_PlatformVersion: entry(client::platform_version),
    PJRT_Client_ProcessIndex: entry(client::process_index),
    PJRT_Client_Devices: entry(client::devices),
    PJRT_Client_AddressableDevices: entry(client::addressable_devices),
    PJRT_Client_LookupDevice: entry(client::lookup_device),
    PJRT_Client_LookupAddressableDevice: entry(client::lookup_addressable_device),
    PJRT_Client_AddressableMemories: entry(client::addressable_memories),
    PJRT_Client_TopologyDescription: entry(client::topology),
    PJRT_Client_DefaultDeviceAssignment: entry(client::default_device_assignment),
    PJRT_Client_UpdateGlobalProcessInfo: entry(client::update_global_process_info),

    PJRT_TopologyDescription_PlatformName: entry(topology::platform_name),
    PJRT_TopologyDescription_PlatformVersion: entry(topology::platform_version),
    PJRT_TopologyDescription_GetDeviceDescriptions: entry(topology::device_descriptions),
    PJRT_TopologyDescription_Attributes: entry(topology::attributes),
    PJRT_TopologyDescription_Fingerprint: entry(topology::fingerprint),
    PJRT_TopologyDescription_Destroy: entry(topology::destroy),

    PJRT_DeviceDescription_Id: entry(device::id),
    PJRT_DeviceDescription_ProcessIndex: entry(device::process_index),
    PJRT_DeviceDescription_Attributes: entry(device::attributes),
    PJRT_DeviceDescription_Kind: entry(device::kind),
    PJRT_DeviceDescription_DebugString: entry(device::debug_string),
    PJRT_DeviceDescription_ToString: entry(device::to_string),
    PJRT_Device_GetDescription: entry(device::description),
    PJRT_Device_GetAttributes: entry(device::device_attributes),
    PJRT_Device_IsAddressable: entry(device::is_addressable),
    PJRT_Device_LocalHardwareId: entry(device::hardware_id),
    PJRT_Device_AddressableMemories: entry(device::addressable_memories),
    PJRT_Device_DefaultMemory: entry(device::default_memory),

    PJRT_Memory_Id: entry(memory::id),
    PJRT_Memory_Kind: entry(memory::kind),
    PJRT_Memory_Kind_Id: entry(memory::kind_id),
    PJRT_Memory_DebugString: entry(memory::debug_string),
    PJRT_Memory_ToString: entry(memory::to_string),
    PJRT_Memory_AddressableByDevices: entry(memory::addressable_by_devices),

    PJRT_Client_BufferFromHostBuffer: entry(buffer::from_host),
    PJRT_Client_CreateUninitializedBuffer: entry(buffer::create_uninitialized),
    PJRT_Buffer_Destroy: entry(buffer::destroy),
    PJRT_Buffer_Delete: entry(buffer::delete),
    PJRT_Buffer_IsDeleted: entry(buffer::is_deleted),
    PJRT_Buffer_ElementType: entry(buffer::element_type),
    PJRT_Buffer_Dimensions: entry(buffer::dimensions),
    PJRT_Buffer_UnpaddedDimensions: entry(buffer::unpadded_dimensions),
    PJRT_Buffer_DynamicDimensionIndices: entry(buffer::dynamic_dimensions),
    PJRT_Buffer_GetMemoryLayout: entry(buffer::memory_layout),
    PJRT_Buffer_OnDeviceSizeInBytes: entry(buffer::on_device_size),
    PJRT_Buffer_Device: entry(buffer::device),
    PJRT_Buffer_Memory: entry(buffer::memory),
    PJRT_Buffer_IsOnCpu: entry(buffer::is_on_cpu),
    PJRT_Buffer_ReadyEvent: entry(buffer::ready_event),
    PJRT_Buffer_ToHostBuffer: entry(buffer::to_host),
    PJRT_Buffer_CopyRawToHost: entry(buffer::copy_raw_to_host),
    PJRT_Buffer_CopyToMemory: entry(buffer::copy_to_memory),
    PJRT_Buffer_CopyToDevice: entry(buffer::copy_to_device),
    PJRT_Buffer_UnsafePointer: entry(buffer::unsafe_pointer),
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer: entry(buffer::data_pointer),
    PJRT_Buffer_IncreaseExternalReferenceCount: entry(buffer::increase_references),
    PJRT_Buffer_DecreaseExternalReferenceCount: entry(buffer::decrease_references),

    PJRT_Client_Compile: entry(compile::compile),
    PJRT_Executable_DeserializeAndLoad: entry(compile::deserialize_and_load),
    PJRT_LoadedExecutable_GetExecutable: entry(executable::unloaded),
    PJRT_LoadedExecutable_AddressableDevices: entry(executable::addressable_devices),
    PJRT_LoadedExecutable_AddressableDeviceLogicalIds: entry(executable::addressable_ids),
    PJRT_LoadedExecutable_GetDeviceAssignment: entry(executable::device_assignment),
    PJRT_LoadedExecutable_Fingerprint: entry(executable::loaded_fingerprint),
    PJRT_LoadedExecutable_Delete: entry(executable::delete),
    PJRT_LoadedExecutable_IsDeleted: entry(executable::is_deleted),
    PJRT_LoadedExecutable_Destroy: entry(executable::destroy_loaded),
    PJRT_LoadedExecutable_Execute: entry(execute::execute),

    PJRT_Executable_Destroy: entry(executable::destroy),
    PJRT_Executable_Name: entry(executable::name),
    PJRT_Executable_NumReplicas: entry(executable::num_replicas),
    PJRT_Executable_NumPartitions: entry(executable::num_partitions),
    PJRT_Executable_NumOutputs: entry(executable::num_outputs),
    PJRT_Executable_OutputElementTypes: entry(executable::output_types),
    PJRT_Executable_OutputDimensions: entry(executable::output_dimensions),
    PJRT_Executable_OutputMemoryKinds: entry(executable::output_memory_kinds),
    PJRT_Executable_ParameterMemoryKinds: entry(executable::parameter_memory_kinds),
    PJRT_Executable_SizeOfGeneratedCodeInBytes: entry(executable::code_size),
    PJRT_Executable_Fingerprint: entry(executable::fingerprint),
    PJRT_Executable_GetCompiledMemoryStats: entry(executable::memory_statistics),
    PJRT_Executable_GetCostAnalysis: entry(executable::cost_analysis),
    PJRT_Executable_OptimizedProgram: entry(executable::optimized_program),
    PJRT_Executable_Serialize: entry(executable::serialize),

    ..PJRT_Api::UNIMPLEMENTED
});

/// The table of functions of this plugin, which lives as long as the process.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn GetPjrtApi() -> *const std::ffi::c_void {
    (&raw const API).cast()
}

/// `PJRT_Plugin_Initialize`: there is nothing to be done before a client is made.
fn initialize(_: &mut ffi::PJRT_Plugin_Initialize_Args, _: &Caller) -> Result<()> {
    Ok(())
}

/// `PJRT_Plugin_Attributes`.
fn attributes(args: &mut ffi::PJRT_Plugin_Attributes_Args, _: &Caller) -> Result<()> {
    static ATTRIBUTES: LazyLock<NamedValues> = LazyLock::new(|| {
        let version = Attribute::Int64List(STABLEHLO_VERSION.to_vec());
        NamedValues::new([("stablehlo_current_version".to_owned(), version)])
    });
    (args.attributes, args.num_attributes) = ATTRIBUTES.parts();
    Ok(())
}
