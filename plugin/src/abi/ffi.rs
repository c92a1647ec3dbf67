//! The structures of the PJRT C API, version 0.114, of which a caller's version has a prefix.
//!
//! Written by `scripts/regenerate-ffi` from layouts that libclang found: for each structure its size,
//! the end of its last field, and its fields with their offsets, which the compiler checks. Names
//! are the API's own. A `bool` is a `u8` here, since any byte may come; a union is its
//! first case where that is all of it, else its bits.

#![allow(
    dead_code,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    reason = "names and parts are those of the API"
)]

use std::mem::offset_of;
use std::ptr::null_mut;

use super::call::{Entry, unimplemented};
use super::caller::Plain;
use super::structure::{Pointer, plain, versioned};

pub(crate) mod error_code {
    pub(crate) const OK: u32 = 0;
    pub(crate) const CANCELLED: u32 = 1;
    pub(crate) const UNKNOWN: u32 = 2;
    pub(crate) const INVALID_ARGUMENT: u32 = 3;
    pub(crate) const DEADLINE_EXCEEDED: u32 = 4;
    pub(crate) const NOT_FOUND: u32 = 5;
    pub(crate) const ALREADY_EXISTS: u32 = 6;
    pub(crate) const PERMISSION_DENIED: u32 = 7;
    pub(crate) const RESOURCE_EXHAUSTED: u32 = 8;
    pub(crate) const FAILED_PRECONDITION: u32 = 9;
    pub(crate) const ABORTED: u32 = 10;
    pub(crate) const OUT_OF_RANGE: u32 = 11;
    pub(crate) const UNIMPLEMENTED: u32 = 12;
    pub(crate) const INTERNAL: u32 = 13;
    pub(crate) const UNAVAILABLE: u32 = 14;
    pub(crate) const DATA_LOSS: u32 = 15;
    pub(crate) const UNAUTHENTICATED: u32 = 16;
}

pub(crate) mod buffer_type {
    pub(crate) const INVALID: u32 = 0;
    pub(crate) const PRED: u32 = 1;
    pub(crate) const S8: u32 = 2;
    pub(crate) const S16: u32 = 3;
    pub(crate) const S32: u32 = 4;
    pub(crate) const S64: u32 = 5;
    pub(crate) const U8: u32 = 6;
    pub(crate) const U16: u32 = 7;
    pub(crate) const U32: u32 = 8;
    pub(crate) const U64: u32 = 9;
    pub(crate) const F16: u32 = 10;
    pub(crate) const F32: u32 = 11;
    pub(crate) const F64: u32 = 12;
    pub(crate) const BF16: u32 = 13;
    pub(crate) const C64: u32 = 14;
    pub(crate) const C128: u32 = 15;
    pub(crate) const F8E5M2: u32 = 16;
    pub(crate) const F8E4M3FN: u32 = 17;
    pub(crate) const F8E4M3B11FNUZ: u32 = 18;
    pub(crate) const F8E5M2FNUZ: u32 = 19;
    pub(crate) const F8E4M3FNUZ: u32 = 20;
    pub(crate) const S4: u32 = 21;
    pub(crate) const U4: u32 = 22;
    pub(crate) const TOKEN: u32 = 23;
    pub(crate) const S2: u32 = 24;
    pub(crate) const U2: u32 = 25;
    pub(crate) const F8E4M3: u32 = 26;
    pub(crate) const F8E3M4: u32 = 27;
    pub(crate) const F8E8M0FNU: u32 = 28;
    pub(crate) const F4E2M1FN: u32 = 29;
    pub(crate) const S1: u32 = 30;
    pub(crate) const U1: u32 = 31;
    pub(crate) const F6E2M3FN: u32 = 32;
    pub(crate) const F6E3M2FN: u32 = 33;
}

pub(crate) mod layout_type {
    pub(crate) const TILED: u32 = 0;
    pub(crate) const STRIDES: u32 = 1;
}

pub(crate) mod semantics {
    pub(crate) const IMMUTABLE_ONLY_DURING_CALL: u32 = 0;
    pub(crate) const IMMUTABLE_UNTIL_TRANSFER_COMPLETES: u32 = 1;
    pub(crate) const IMMUTABLE_ZERO_COPY: u32 = 2;
    pub(crate) const MUTABLE_ZERO_COPY: u32 = 3;
}

pub(crate) mod named_value {
    pub(crate) const STRING: u32 = 0;
    pub(crate) const INT64: u32 = 1;
    pub(crate) const INT64_LIST: u32 = 2;
    pub(crate) const FLOAT: u32 = 3;
    pub(crate) const BOOL: u32 = 4;
}

pub(crate) mod extension_type {
    pub(crate) const GPU__CUSTOM__CALL: u32 = 0;
    pub(crate) const PROFILER: u32 = 1;
    pub(crate) const CUSTOM__PARTITIONER: u32 = 2;
    pub(crate) const STREAM: u32 = 3;
    pub(crate) const LAYOUTS: u32 = 4;
    pub(crate) const FFI: u32 = 5;
    pub(crate) const MEMORY_DESCRIPTIONS: u32 = 6;
    pub(crate) const TRITON: u32 = 7;
    pub(crate) const RAW_BUFFER: u32 = 8;
    pub(crate) const PHASE_COMPILE: u32 = 9;
    pub(crate) const EXAMPLE: u32 = 10;
    pub(crate) const UNKNOWN: u32 = 11;
    pub(crate) const CROSS_HOST_TRANSFERS: u32 = 12;
    pub(crate) const EXECUTABLE_METADATA: u32 = 13;
    pub(crate) const CALLBACK: u32 = 14;
    pub(crate) const HOST_ALLOCATOR: u32 = 15;
    pub(crate) const TPU_TOPOLOGY: u32 = 16;
    pub(crate) const TPU_EXECUTABLE: u32 = 17;
    pub(crate) const MEGASCALE: u32 = 18;
    pub(crate) const SHARDINGS: u32 = 19;
    pub(crate) const ABI_VERSION: u32 = 20;
    pub(crate) const COLLECTIVES: u32 = 21;
    pub(crate) const MULTI_SLICE: u32 = 22;
    pub(crate) const HOST_MEMORY_ALLOCATOR: u32 = 23;
    pub(crate) const XLA_TRANSFORM: u32 = 24;
}

versioned! { PJRT_Api_Version, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, major_version: i32 = 16,
minor_version: i32 = 20 }

versioned! { PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, transfer_manager: Pointer = 16,
transfer_metadata: Pointer = 24, num_metadata: usize = 32 }

versioned! { PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, transfer_manager: Pointer = 16,
buffer_count: usize = 24 }

versioned! { PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, transfer_manager: Pointer = 16,
buffer_index: i32 = 24, buffer_size: usize = 32 }

versioned! { PJRT_AsyncHostToDeviceTransferManager_Destroy_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, transfer_manager: Pointer = 16 }

versioned! { PJRT_AsyncHostToDeviceTransferManager_Device_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, transfer_manager: Pointer = 16,
device_out: Pointer = 24 }

versioned! { PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, transfer_manager: Pointer = 16,
buffer_index: i32 = 24, buffer_out: Pointer = 32 }

versioned! { PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args, 48, 48 =>
struct_size: usize = 0, extension_start: Pointer = 8, transfer_manager: Pointer = 16,
buffer_index: i32 = 24, error_code: u32 = 28, error_message: Pointer = 32,
error_message_size: usize = 40 }

versioned! { PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, 72, 72 =>
struct_size: usize = 0, extension_start: Pointer = 8, transfer_manager: Pointer = 16,
buffer_index: i32 = 24, data: Pointer = 32, offset: i64 = 40, transfer_size: i64 = 48,
is_last_transfer: u8 = 56, done_with_h2d_transfer: Pointer = 64 }

versioned! { PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, 80, 80 =>
struct_size: usize = 0, extension_start: Pointer = 8, transfer_manager: Pointer = 16,
buffer_index: i32 = 24, data: Pointer = 32, shape_dims: Pointer = 40,
shape_num_dims: usize = 48, shape_element_type: u32 = 56, shape_layout: Pointer = 64,
done_with_h2d_transfer: Pointer = 72 }

versioned! { PJRT_AsyncTrackingEvent_Destroy_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, event: Pointer = 16 }

versioned! { PJRT_Buffer_Bitcast_Args, 64, 64 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
element_type: u32 = 24, dims: Pointer = 32, num_dims: usize = 40,
device_layout: Pointer = 48, out_buffer: Pointer = 56 }

versioned! { PJRT_Buffer_CopyRawToHostFuture_Args, 64, 64 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
offset: i64 = 24, transfer_size: i64 = 32, event: Pointer = 40,
callback_data: Pointer = 48, future_ready_callback: Pointer = 56 }

versioned! { PJRT_Buffer_CopyRawToHost_Args, 56, 56 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
dst: Pointer = 24, offset: i64 = 32, transfer_size: i64 = 40, event: Pointer = 48 }

versioned! { PJRT_Buffer_CopyToDevice_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
dst_device: Pointer = 24, dst_buffer: Pointer = 32 }

versioned! { PJRT_Buffer_CopyToMemory_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
dst_memory: Pointer = 24, dst_buffer: Pointer = 32 }

versioned! { PJRT_Buffer_DecreaseExternalReferenceCount_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16 }

versioned! { PJRT_Buffer_Delete_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16 }

versioned! { PJRT_Buffer_Destroy_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16 }

versioned! { PJRT_Buffer_Device_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
device: Pointer = 24 }

versioned! { PJRT_Buffer_Dimensions_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
dims: Pointer = 24, num_dims: usize = 32 }

versioned! { PJRT_Buffer_DonateWithControlDependency_Args, 48, 48 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
callback_data: Pointer = 24, dependency_ready_callback: Pointer = 32,
out_buffer: Pointer = 40 }

versioned! { PJRT_Buffer_DynamicDimensionIndices_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
dynamic_dim_indices: Pointer = 24, num_dynamic_dims: usize = 32 }

versioned! { PJRT_Buffer_ElementType_Args, 32, 28 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
r#type: u32 = 24 }

versioned! { PJRT_Buffer_GetMemoryLayout_Args, 104, 104 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
layout: PJRT_Buffer_MemoryLayout = 24 }

versioned! { PJRT_Buffer_IncreaseExternalReferenceCount_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16 }

versioned! { PJRT_Buffer_IsDeleted_Args, 32, 25 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
is_deleted: u8 = 24 }

versioned! { PJRT_Buffer_IsOnCpu_Args, 32, 25 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
is_on_cpu: u8 = 24 }

versioned! { PJRT_Buffer_MemoryLayout, 80, 76 =>
struct_size: usize = 0, extension_start: Pointer = 8,
tiled: PJRT_Buffer_MemoryLayout_Tiled = 16, r#type: u32 = 72 }

versioned! { PJRT_Buffer_MemoryLayout_Tiled, 56, 56 =>
struct_size: usize = 0, extension_start: Pointer = 8, minor_to_major: Pointer = 16,
minor_to_major_size: usize = 24, tile_dims: Pointer = 32, tile_dim_sizes: Pointer = 40,
num_tiles: usize = 48 }

versioned! { PJRT_Buffer_Memory_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
memory: Pointer = 24 }

versioned! { PJRT_Buffer_OnDeviceSizeInBytes_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
on_device_size_in_bytes: usize = 24 }

versioned! { PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
device_memory_ptr: Pointer = 24 }

versioned! { PJRT_Buffer_ReadyEvent_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
event: Pointer = 24 }

versioned! { PJRT_Buffer_ToHostBuffer_Args, 56, 56 =>
struct_size: usize = 0, extension_start: Pointer = 8, src: Pointer = 16,
host_layout: Pointer = 24, dst: Pointer = 32, dst_size: usize = 40, event: Pointer = 48 }

versioned! { PJRT_Buffer_UnpaddedDimensions_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
unpadded_dims: Pointer = 24, num_dims: usize = 32 }

versioned! { PJRT_Buffer_UnsafePointer_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
buffer_pointer: usize = 24 }

versioned! { PJRT_Client_AddressableDevices_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
addressable_devices: Pointer = 24, num_addressable_devices: usize = 32 }

versioned! { PJRT_Client_AddressableMemories_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
addressable_memories: Pointer = 24, num_addressable_memories: usize = 32 }

versioned! { PJRT_Client_BufferFromHostBuffer_Args, 120, 120 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
data: Pointer = 24, r#type: u32 = 32, dims: Pointer = 40, num_dims: usize = 48,
byte_strides: Pointer = 56, num_byte_strides: usize = 64,
host_buffer_semantics: u32 = 72, device: Pointer = 80, memory: Pointer = 88,
device_layout: Pointer = 96, done_with_host_buffer: Pointer = 104, buffer: Pointer = 112 }

versioned! { PJRT_Client_Compile_Args, 56, 56 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
program: Pointer = 24, compile_options: Pointer = 32, compile_options_size: usize = 40,
executable: Pointer = 48 }

versioned! { PJRT_Client_CreateAliasBuffer_Args, 80, 80 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
memory: Pointer = 24, shape_dims: Pointer = 32, shape_num_dims: usize = 40,
shape_element_type: u32 = 48, shape_layout: Pointer = 56, alias_buffer: Pointer = 64,
fulfill_alias_buffer_cb: Pointer = 72 }

versioned! { PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, 72, 72 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
shape_specs: Pointer = 24, num_shape_specs: usize = 32, device_layouts: Pointer = 40,
num_device_layouts: usize = 48, memory: Pointer = 56, transfer_manager: Pointer = 64 }

versioned! { PJRT_Client_CreateErrorBuffer_Args, 112, 112 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
error_code: u32 = 24, error_message: Pointer = 32, error_message_size: usize = 40,
shape_dims: Pointer = 48, shape_num_dims: usize = 56, shape_element_type: u32 = 64,
shape_layout: Pointer = 72, memory: Pointer = 80, buffer: Pointer = 88,
payload: Pointer = 96, num_payload: usize = 104 }

versioned! { PJRT_Client_CreateUninitializedBuffer_Args, 80, 80 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
shape_dims: Pointer = 24, shape_num_dims: usize = 32, shape_element_type: u32 = 40,
shape_layout: Pointer = 48, device: Pointer = 56, memory: Pointer = 64,
buffer: Pointer = 72 }

versioned! { PJRT_Client_CreateViewOfDeviceBuffer_Args, 112, 112 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
device_buffer_ptr: Pointer = 24, dims: Pointer = 32, num_dims: usize = 40,
element_type: u32 = 48, layout: Pointer = 56, device: Pointer = 64,
on_delete_callback: Pointer = 72, on_delete_callback_arg: Pointer = 80,
stream: i64 = 88, buffer: Pointer = 96, memory: Pointer = 104 }

versioned! { PJRT_Client_Create_Args, 88, 88 =>
struct_size: usize = 0, extension_start: Pointer = 8, create_options: Pointer = 16,
num_options: usize = 24, kv_get_callback: Pointer = 32, kv_get_user_arg: Pointer = 40,
kv_put_callback: Pointer = 48, kv_put_user_arg: Pointer = 56, client: Pointer = 64,
kv_try_get_callback: Pointer = 72, kv_try_get_user_arg: Pointer = 80 }

versioned! { PJRT_Client_DefaultDeviceAssignment_Args, 48, 48 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
num_replicas: i32 = 24, num_partitions: i32 = 28, default_assignment_size: usize = 32,
default_assignment: Pointer = 40 }

versioned! { PJRT_Client_Destroy_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16 }

versioned! { PJRT_Client_Devices_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
devices: Pointer = 24, num_devices: usize = 32 }

versioned! { PJRT_Client_DmaMap_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
data: Pointer = 24, size: usize = 32 }

versioned! { PJRT_Client_DmaUnmap_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
data: Pointer = 24 }

versioned! { PJRT_Client_FulfillAliasBuffer_Args, 64, 64 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
buffer: Pointer = 24, status_code: u32 = 32, error_message: Pointer = 40,
error_message_size: usize = 48, fulfill_alias_buffer_cb: Pointer = 56 }

versioned! { PJRT_Client_Load_Args, 56, 56 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
executable: Pointer = 24, compile_options: Pointer = 32,
compile_options_size: usize = 40, loaded_executable: Pointer = 48 }

versioned! { PJRT_Client_LookupAddressableDevice_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
local_hardware_id: i32 = 24, addressable_device: Pointer = 32 }

versioned! { PJRT_Client_LookupDevice_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
id: i32 = 24, device: Pointer = 32 }

versioned! { PJRT_Client_PlatformName_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
platform_name: Pointer = 24, platform_name_size: usize = 32 }

versioned! { PJRT_Client_PlatformVersion_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
platform_version: Pointer = 24, platform_version_size: usize = 32 }

versioned! { PJRT_Client_ProcessIndex_Args, 32, 28 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
process_index: i32 = 24 }

versioned! { PJRT_Client_TopologyDescription_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
topology: Pointer = 24 }

versioned! { PJRT_Client_UpdateGlobalProcessInfo_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
process_infos: Pointer = 24, num_process_infos: usize = 32 }

versioned! { PJRT_Compile_Args, 64, 64 =>
struct_size: usize = 0, extension_start: Pointer = 8, topology: Pointer = 16,
program: Pointer = 24, compile_options: Pointer = 32, compile_options_size: usize = 40,
client: Pointer = 48, executable: Pointer = 56 }

versioned! { PJRT_CopyToDeviceStream_AddChunk_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, stream: Pointer = 16,
chunk: Pointer = 24, transfer_complete: Pointer = 32 }

versioned! { PJRT_CopyToDeviceStream_CurrentBytes_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, stream: Pointer = 16,
current_bytes: i64 = 24 }

versioned! { PJRT_CopyToDeviceStream_Destroy_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, stream: Pointer = 16 }

versioned! { PJRT_CopyToDeviceStream_GranuleSize_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, stream: Pointer = 16,
granule_size_in_bytes: i64 = 24 }

versioned! { PJRT_CopyToDeviceStream_TotalBytes_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, stream: Pointer = 16,
total_bytes: i64 = 24 }

versioned! { PJRT_DeviceDescription_Attributes_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, device_description: Pointer = 16,
num_attributes: usize = 24, attributes: Pointer = 32 }

versioned! { PJRT_DeviceDescription_DebugString_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, device_description: Pointer = 16,
debug_string: Pointer = 24, debug_string_size: usize = 32 }

versioned! { PJRT_DeviceDescription_Id_Args, 32, 28 =>
struct_size: usize = 0, extension_start: Pointer = 8, device_description: Pointer = 16,
id: i32 = 24 }

versioned! { PJRT_DeviceDescription_Kind_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, device_description: Pointer = 16,
device_kind: Pointer = 24, device_kind_size: usize = 32 }

versioned! { PJRT_DeviceDescription_ProcessIndex_Args, 32, 28 =>
struct_size: usize = 0, extension_start: Pointer = 8, device_description: Pointer = 16,
process_index: i32 = 24 }

versioned! { PJRT_DeviceDescription_ToString_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, device_description: Pointer = 16,
to_string: Pointer = 24, to_string_size: usize = 32 }

versioned! { PJRT_Device_AddressableMemories_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, device: Pointer = 16,
memories: Pointer = 24, num_memories: usize = 32 }

versioned! { PJRT_Device_ClearMemoryStats_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, device: Pointer = 16 }

versioned! { PJRT_Device_CreateAsyncTrackingEvent_Args, 48, 48 =>
struct_size: usize = 0, extension_start: Pointer = 8, device: Pointer = 16,
description: Pointer = 24, description_size: usize = 32, event: Pointer = 40 }

versioned! { PJRT_Device_DefaultMemory_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, device: Pointer = 16,
memory: Pointer = 24 }

versioned! { PJRT_Device_GetAttributes_Args, 56, 56 =>
struct_size: usize = 0, extension_start: Pointer = 8, device: Pointer = 16,
attributes: Pointer = 24, num_attributes: usize = 32, device_attributes: Pointer = 40,
attributes_deleter: Pointer = 48 }

versioned! { PJRT_Device_GetDescription_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, device: Pointer = 16,
device_description: Pointer = 24 }

versioned! { PJRT_Device_IsAddressable_Args, 32, 25 =>
struct_size: usize = 0, extension_start: Pointer = 8, device: Pointer = 16,
is_addressable: u8 = 24 }

versioned! { PJRT_Device_LocalHardwareId_Args, 32, 28 =>
struct_size: usize = 0, extension_start: Pointer = 8, device: Pointer = 16,
local_hardware_id: i32 = 24 }

versioned! { PJRT_Device_MemoryStats_Args, 208, 201 =>
struct_size: usize = 0, extension_start: Pointer = 8, device: Pointer = 16,
bytes_in_use: i64 = 24, peak_bytes_in_use: i64 = 32, peak_bytes_in_use_is_set: u8 = 40,
num_allocs: i64 = 48, num_allocs_is_set: u8 = 56, largest_alloc_size: i64 = 64,
largest_alloc_size_is_set: u8 = 72, bytes_limit: i64 = 80, bytes_limit_is_set: u8 = 88,
bytes_reserved: i64 = 96, bytes_reserved_is_set: u8 = 104,
peak_bytes_reserved: i64 = 112, peak_bytes_reserved_is_set: u8 = 120,
bytes_reservable_limit: i64 = 128, bytes_reservable_limit_is_set: u8 = 136,
largest_free_block_bytes: i64 = 144, largest_free_block_bytes_is_set: u8 = 152,
pool_bytes: i64 = 160, pool_bytes_is_set: u8 = 168, peak_pool_bytes: i64 = 176,
peak_pool_bytes_is_set: u8 = 184, peak_allocated_bytes: i64 = 192,
peak_allocated_bytes_is_set: u8 = 200 }

versioned! { PJRT_Device_PoisonExecution_Args, 72, 72 =>
struct_size: usize = 0, extension_start: Pointer = 8, device: Pointer = 16,
launch_id: i32 = 24, error_code: u32 = 28, error_message: Pointer = 32,
error_message_size: usize = 40, poisoned: u8 = 48, payload: Pointer = 56,
num_payload: usize = 64 }

plain! { PJRT_Error, 8 =>
vtable: Pointer = 0 }

versioned! { PJRT_Error_Destroy_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, error: Pointer = 16 }

versioned! { PJRT_Error_ForEachPayload_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, error: Pointer = 16,
visitor: Pointer = 24, user_arg: Pointer = 32 }

versioned! { PJRT_Error_FunctionTable, 56, 56 =>
struct_size: usize = 0, instance_size: usize = 8, extension_start: Pointer = 16,
destroy: Pointer = 24, message: Pointer = 32, get_code: Pointer = 40,
for_each_payload: Pointer = 48 }

versioned! { PJRT_Error_GetCode_Args, 32, 28 =>
struct_size: usize = 0, extension_start: Pointer = 8, error: Pointer = 16,
code: u32 = 24 }

versioned! { PJRT_Error_Message_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, error: Pointer = 16,
message: Pointer = 24, message_size: usize = 32 }

versioned! { PJRT_Event_Await_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, event: Pointer = 16 }

versioned! { PJRT_Event_Create_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, event: Pointer = 16 }

versioned! { PJRT_Event_Destroy_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, event: Pointer = 16 }

versioned! { PJRT_Event_Error_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, event: Pointer = 16 }

versioned! { PJRT_Event_IsReady_Args, 32, 25 =>
struct_size: usize = 0, extension_start: Pointer = 8, event: Pointer = 16,
is_ready: u8 = 24 }

versioned! { PJRT_Event_OnReady_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, event: Pointer = 16,
callback: Pointer = 24, user_arg: Pointer = 32 }

versioned! { PJRT_Event_Set_Args, 48, 48 =>
struct_size: usize = 0, extension_start: Pointer = 8, event: Pointer = 16,
error_code: u32 = 24, error_message: Pointer = 32, error_message_size: usize = 40 }

versioned! { PJRT_Executable_DeserializeAndLoad_Args, 72, 72 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
serialized_executable: Pointer = 24, serialized_executable_size: usize = 32,
loaded_executable: Pointer = 40, overridden_serialized_compile_options: Pointer = 48,
overridden_serialized_compile_options_size: usize = 56, load_options: Pointer = 64 }

versioned! { PJRT_Executable_Destroy_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16 }

versioned! { PJRT_Executable_Fingerprint_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
executable_fingerprint: Pointer = 24, executable_fingerprint_size: usize = 32 }

versioned! { PJRT_Executable_GetCompileOptions_Args, 56, 56 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
serialized_bytes: Pointer = 24, serialized_bytes_size: usize = 32,
serialized_compile_options: Pointer = 40,
serialized_compile_options_deleter: Pointer = 48 }

versioned! { PJRT_Executable_GetCompiledMemoryStats_Args, 144, 144 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
generated_code_size_in_bytes: i64 = 24, argument_size_in_bytes: i64 = 32,
output_size_in_bytes: i64 = 40, alias_size_in_bytes: i64 = 48,
temp_size_in_bytes: i64 = 56, host_generated_code_size_in_bytes: i64 = 64,
host_argument_size_in_bytes: i64 = 72, host_output_size_in_bytes: i64 = 80,
host_alias_size_in_bytes: i64 = 88, host_temp_size_in_bytes: i64 = 96,
peak_memory_in_bytes: i64 = 104, total_size_in_bytes: i64 = 112,
total_allocation_bytes: i64 = 120, indefinite_allocations: i64 = 128,
peak_unpadded_heap_bytes: i64 = 136 }

versioned! { PJRT_Executable_GetCostAnalysis_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
num_properties: usize = 24, properties: Pointer = 32 }

versioned! { PJRT_Executable_Name_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
executable_name: Pointer = 24, executable_name_size: usize = 32 }

versioned! { PJRT_Executable_NumOutputs_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
num_outputs: usize = 24 }

versioned! { PJRT_Executable_NumPartitions_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
num_partitions: usize = 24 }

versioned! { PJRT_Executable_NumReplicas_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
num_replicas: usize = 24 }

versioned! { PJRT_Executable_OptimizedProgram_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
program: Pointer = 24 }

versioned! { PJRT_Executable_OutputDimensions_Args, 48, 48 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
num_outputs: usize = 24, dims: Pointer = 32, dim_sizes: Pointer = 40 }

versioned! { PJRT_Executable_OutputElementTypes_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
output_types: Pointer = 24, num_output_types: usize = 32 }

versioned! { PJRT_Executable_OutputMemoryKinds_Args, 48, 48 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
num_outputs: usize = 24, memory_kinds: Pointer = 32, memory_kind_sizes: Pointer = 40 }

versioned! { PJRT_Executable_ParameterMemoryKinds_Args, 48, 48 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
num_parameters: usize = 24, memory_kinds: Pointer = 32, memory_kind_sizes: Pointer = 40 }

versioned! { PJRT_Executable_Serialize_Args, 56, 56 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
serialized_bytes: Pointer = 24, serialized_bytes_size: usize = 32,
serialized_executable: Pointer = 40, serialized_executable_deleter: Pointer = 48 }

versioned! { PJRT_Executable_SizeOfGeneratedCodeInBytes_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
size_in_bytes: i64 = 24 }

versioned! { PJRT_ExecuteContext_Create_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, context: Pointer = 16 }

versioned! { PJRT_ExecuteContext_Destroy_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, context: Pointer = 16 }

versioned! { PJRT_ExecuteOptions, 144, 144 =>
struct_size: usize = 0, extension_start: Pointer = 8, send_callbacks: Pointer = 16,
recv_callbacks: Pointer = 24, num_send_ops: usize = 32, num_recv_ops: usize = 40,
launch_id: i32 = 48, non_donatable_input_indices: Pointer = 56,
num_non_donatable_input_indices: usize = 64, context: Pointer = 72,
call_location: Pointer = 80, num_tasks: usize = 88, task_ids: Pointer = 96,
incarnation_ids: Pointer = 104, multi_slice_config: Pointer = 112,
use_major_to_minor_data_layout_for_callbacks: u8 = 120,
hlo_output_callbacks: Pointer = 128, num_hlo_output_callbacks: usize = 136 }

versioned! { PJRT_Extension_Base, 24, 24 =>
struct_size: usize = 0, r#type: u32 = 8, next: Pointer = 16 }

versioned! { PJRT_KeyValueGetCallback_Args, 80, 80 =>
struct_size: usize = 0, extension_start: Pointer = 8, key: Pointer = 16,
key_size: usize = 24, timeout_in_ms: i32 = 32, callback_error: Pointer = 40,
user_arg: Pointer = 48, value: Pointer = 56, value_size: usize = 64,
value_deleter_callback: Pointer = 72 }

versioned! { PJRT_KeyValuePutCallback_Args, 64, 64 =>
struct_size: usize = 0, extension_start: Pointer = 8, key: Pointer = 16,
key_size: usize = 24, value: Pointer = 32, value_size: usize = 40,
callback_error: Pointer = 48, user_arg: Pointer = 56 }

versioned! { PJRT_KeyValueTryGetCallback_Args, 72, 72 =>
struct_size: usize = 0, extension_start: Pointer = 8, key: Pointer = 16,
key_size: usize = 24, callback_error: Pointer = 32, user_arg: Pointer = 40,
value: Pointer = 48, value_size: usize = 56, value_deleter_callback: Pointer = 64 }

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct PJRT_Layouts_Extension {
    pub(crate) base: PJRT_Extension_Base,
    pub(crate) PJRT_Layouts_MemoryLayout_Destroy: Entry<PJRT_Layouts_MemoryLayout_Destroy_Args>,
    pub(crate) PJRT_Layouts_MemoryLayout_Serialize: Entry<PJRT_Layouts_MemoryLayout_Serialize_Args>,
    pub(crate) PJRT_Layouts_PJRT_Client_GetDefaultLayout:
        Entry<PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args>,
    pub(crate) PJRT_Layouts_PJRT_Buffer_MemoryLayout:
        Entry<PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args>,
    pub(crate) PJRT_Layouts_PJRT_Topology_GetDefaultLayout:
        Entry<PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args>,
    pub(crate) PJRT_Layouts_PJRT_Executable_GetOutputLayouts:
        Entry<PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args>,
    pub(crate) PJRT_Layouts_PJRT_Executable_GetParameterLayouts:
        Entry<PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args>,
}
const _: () = assert!(offset_of!(PJRT_Layouts_Extension, base) == 0);
const _: () = assert!(offset_of!(PJRT_Layouts_Extension, PJRT_Layouts_MemoryLayout_Destroy) == 24);
const _: () =
    assert!(offset_of!(PJRT_Layouts_Extension, PJRT_Layouts_MemoryLayout_Serialize) == 32);
const _: () =
    assert!(offset_of!(PJRT_Layouts_Extension, PJRT_Layouts_PJRT_Client_GetDefaultLayout) == 40);
const _: () =
    assert!(offset_of!(PJRT_Layouts_Extension, PJRT_Layouts_PJRT_Buffer_MemoryLayout) == 48);
const _: () =
    assert!(offset_of!(PJRT_Layouts_Extension, PJRT_Layouts_PJRT_Topology_GetDefaultLayout) == 56);
const _: () = assert!(
    offset_of!(PJRT_Layouts_Extension, PJRT_Layouts_PJRT_Executable_GetOutputLayouts) == 64
);
const _: () = assert!(
    offset_of!(PJRT_Layouts_Extension, PJRT_Layouts_PJRT_Executable_GetParameterLayouts) == 72
);

versioned! { PJRT_Layouts_MemoryLayout_Destroy_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, layout: Pointer = 16 }

versioned! { PJRT_Layouts_MemoryLayout_Serialize_Args, 56, 56 =>
struct_size: usize = 0, extension_start: Pointer = 8, layout: Pointer = 16,
serialized_bytes: Pointer = 24, serialized_bytes_size: usize = 32,
serialized_layout: Pointer = 40, serialized_layout_deleter: Pointer = 48 }

versioned! { PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, buffer: Pointer = 16,
layout: Pointer = 24 }

versioned! { PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, 56, 56 =>
struct_size: usize = 0, extension_start: Pointer = 8, client: Pointer = 16,
r#type: u32 = 24, dims: Pointer = 32, num_dims: usize = 40, layout: Pointer = 48 }

versioned! { PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
num_outputs: usize = 24, layouts: Pointer = 32 }

versioned! { PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
num_parameters: usize = 24, layouts: Pointer = 32 }

versioned! { PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, 56, 56 =>
struct_size: usize = 0, extension_start: Pointer = 8,
topology_description: Pointer = 16, r#type: u32 = 24, dims: Pointer = 32,
num_dims: usize = 40, layout: Pointer = 48 }

versioned! { PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
addressable_device_logical_ids: Pointer = 24,
num_addressable_device_logical_ids: usize = 32 }

versioned! { PJRT_LoadedExecutable_AddressableDevices_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
addressable_devices: Pointer = 24, num_addressable_devices: usize = 32 }

versioned! { PJRT_LoadedExecutable_Delete_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16 }

versioned! { PJRT_LoadedExecutable_Destroy_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16 }

versioned! { PJRT_LoadedExecutable_Execute_Args, 80, 80 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
options: Pointer = 24, argument_lists: Pointer = 32, num_devices: usize = 40,
num_args: usize = 48, output_lists: Pointer = 56, device_complete_events: Pointer = 64,
execute_device: Pointer = 72 }

versioned! { PJRT_LoadedExecutable_Fingerprint_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
executable_fingerprint: Pointer = 24, executable_fingerprint_size: usize = 32 }

versioned! { PJRT_LoadedExecutable_GetDeviceAssignment_Args, 56, 56 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
serialized_bytes: Pointer = 24, serialized_bytes_size: usize = 32,
serialized_device_assignment: Pointer = 40,
serialized_device_assignment_deleter: Pointer = 48 }

versioned! { PJRT_LoadedExecutable_GetExecutable_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, loaded_executable: Pointer = 16,
executable: Pointer = 24 }

versioned! { PJRT_LoadedExecutable_IsDeleted_Args, 32, 25 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
is_deleted: u8 = 24 }

plain! { PJRT_LogicalDeviceIds, 8 =>
replica: i32 = 0, partition: i32 = 4 }

versioned! { PJRT_Memory_AddressableByDevices_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, memory: Pointer = 16,
devices: Pointer = 24, num_devices: usize = 32 }

versioned! { PJRT_Memory_DebugString_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, memory: Pointer = 16,
debug_string: Pointer = 24, debug_string_size: usize = 32 }

versioned! { PJRT_Memory_FunctionTable, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, instance_struct_size: usize = 16,
get_user_data: Pointer = 24, set_user_data: Pointer = 32 }

versioned! { PJRT_Memory_Id_Args, 32, 28 =>
struct_size: usize = 0, extension_start: Pointer = 8, memory: Pointer = 16, id: i32 = 24 }

versioned! { PJRT_Memory_Kind_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, memory: Pointer = 16,
kind: Pointer = 24, kind_size: usize = 32 }

versioned! { PJRT_Memory_Kind_Id_Args, 32, 28 =>
struct_size: usize = 0, extension_start: Pointer = 8, memory: Pointer = 16,
kind_id: i32 = 24 }

versioned! { PJRT_Memory_ToString_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, memory: Pointer = 16,
to_string: Pointer = 24, to_string_size: usize = 32 }

versioned! { PJRT_NamedValue, 56, 56 =>
struct_size: usize = 0, extension_start: Pointer = 8, name: Pointer = 16,
name_size: usize = 24, r#type: u32 = 32, value: u64 = 40, value_size: usize = 48 }

versioned! { PJRT_Plugin_Attributes_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, attributes: Pointer = 16,
num_attributes: usize = 24 }

versioned! { PJRT_Plugin_Initialize_Args, 16, 16 =>
struct_size: usize = 0, extension_start: Pointer = 8 }

versioned! { PJRT_ProcessInfo, 48, 48 =>
struct_size: usize = 0, task_id: i32 = 8, incarnation_id: usize = 16, state: u32 = 24,
error_code: i32 = 28, error_message: Pointer = 32, error_message_size: usize = 40 }

versioned! { PJRT_Program, 48, 48 =>
struct_size: usize = 0, extension_start: Pointer = 8, code: Pointer = 16,
code_size: usize = 24, format: Pointer = 32, format_size: usize = 40 }

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct PJRT_Shardings_Extension {
    pub(crate) base: PJRT_Extension_Base,
    pub(crate) PJRT_Shardings_PJRT_Executable_ParameterShardings:
        Entry<PJRT_Shardings_PJRT_Executable_ParameterShardings_Args>,
    pub(crate) PJRT_Shardings_PJRT_Executable_OutputShardings:
        Entry<PJRT_Shardings_PJRT_Executable_OutputShardings_Args>,
}
const _: () = assert!(offset_of!(PJRT_Shardings_Extension, base) == 0);
const _: () = assert!(
    offset_of!(PJRT_Shardings_Extension, PJRT_Shardings_PJRT_Executable_ParameterShardings) == 24
);
const _: () = assert!(
    offset_of!(PJRT_Shardings_Extension, PJRT_Shardings_PJRT_Executable_OutputShardings) == 32
);

versioned! { PJRT_Shardings_PJRT_Executable_OutputShardings_Args, 48, 48 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
num_outputs: usize = 24, shardings: Pointer = 32, sharding_sizes: Pointer = 40 }

versioned! { PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, 48, 48 =>
struct_size: usize = 0, extension_start: Pointer = 8, executable: Pointer = 16,
num_parameters: usize = 24, shardings: Pointer = 32, sharding_sizes: Pointer = 40 }

versioned! { PJRT_TopologyDescription_Attributes_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, topology: Pointer = 16,
attributes: Pointer = 24, num_attributes: usize = 32 }

versioned! { PJRT_TopologyDescription_Create_Args, 56, 56 =>
struct_size: usize = 0, extension_start: Pointer = 8, topology_name: Pointer = 16,
topology_name_size: usize = 24, create_options: Pointer = 32, num_options: usize = 40,
topology: Pointer = 48 }

versioned! { PJRT_TopologyDescription_Deserialize_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, serialized_topology: Pointer = 16,
serialized_topology_size: usize = 24, topology: Pointer = 32 }

versioned! { PJRT_TopologyDescription_Destroy_Args, 24, 24 =>
struct_size: usize = 0, extension_start: Pointer = 8, topology: Pointer = 16 }

versioned! { PJRT_TopologyDescription_Fingerprint_Args, 32, 32 =>
struct_size: usize = 0, extension_start: Pointer = 8, topology: Pointer = 16,
fingerprint: usize = 24 }

versioned! { PJRT_TopologyDescription_GetDeviceDescriptions_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, topology: Pointer = 16,
descriptions: Pointer = 24, num_descriptions: usize = 32 }

versioned! { PJRT_TopologyDescription_GetMemorySpaceKindIds_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, topology: Pointer = 16,
memory_space_kind_ids: Pointer = 24, num_memory_space_kind_ids: usize = 32 }

versioned! { PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, 88, 88 =>
struct_size: usize = 0, extension_start: Pointer = 8, topology: Pointer = 16,
memory_space_kind_id: i32 = 24, dims: Pointer = 32, num_dims: usize = 40,
element_type: u32 = 48, layout: Pointer = 56, serialized_shape: Pointer = 64,
serialized_shape_size: usize = 72, serialized_shape_deleter: Pointer = 80 }

versioned! { PJRT_TopologyDescription_PlatformName_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, topology: Pointer = 16,
platform_name: Pointer = 24, platform_name_size: usize = 32 }

versioned! { PJRT_TopologyDescription_PlatformVersion_Args, 40, 40 =>
struct_size: usize = 0, extension_start: Pointer = 8, topology: Pointer = 16,
platform_version: Pointer = 24, platform_version_size: usize = 32 }

versioned! { PJRT_TopologyDescription_Serialize_Args, 56, 56 =>
struct_size: usize = 0, extension_start: Pointer = 8, topology: Pointer = 16,
serialized_bytes: Pointer = 24, serialized_bytes_size: usize = 32,
serialized_topology: Pointer = 40, serialized_topology_deleter: Pointer = 48 }

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct PJRT_Api {
    pub(crate) struct_size: usize,
    pub(crate) extension_start: Pointer,
    pub(crate) pjrt_api_version: PJRT_Api_Version,
    pub(crate) PJRT_Error_Destroy: Entry<PJRT_Error_Destroy_Args>,
    pub(crate) PJRT_Error_Message: Entry<PJRT_Error_Message_Args>,
    pub(crate) PJRT_Error_GetCode: Entry<PJRT_Error_GetCode_Args>,
    pub(crate) PJRT_Plugin_Initialize: Entry<PJRT_Plugin_Initialize_Args>,
    pub(crate) PJRT_Plugin_Attributes: Entry<PJRT_Plugin_Attributes_Args>,
    pub(crate) PJRT_Event_Destroy: Entry<PJRT_Event_Destroy_Args>,
    pub(crate) PJRT_Event_IsReady: Entry<PJRT_Event_IsReady_Args>,
    pub(crate) PJRT_Event_Error: Entry<PJRT_Event_Error_Args>,
    pub(crate) PJRT_Event_Await: Entry<PJRT_Event_Await_Args>,
    pub(crate) PJRT_Event_OnReady: Entry<PJRT_Event_OnReady_Args>,
    pub(crate) PJRT_Client_Create: Entry<PJRT_Client_Create_Args>,
    pub(crate) PJRT_Client_Destroy: Entry<PJRT_Client_Destroy_Args>,
    pub(crate) PJRT_Client_PlatformName: Entry<PJRT_Client_PlatformName_Args>,
    pub(crate) PJRT_Client_ProcessIndex: Entry<PJRT_Client_ProcessIndex_Args>,
    pub(crate) PJRT_Client_PlatformVersion: Entry<PJRT_Client_PlatformVersion_Args>,
    pub(crate) PJRT_Client_Devices: Entry<PJRT_Client_Devices_Args>,
    pub(crate) PJRT_Client_AddressableDevices: Entry<PJRT_Client_AddressableDevices_Args>,
    pub(crate) PJRT_Client_LookupDevice: Entry<PJRT_Client_LookupDevice_Args>,
    pub(crate) PJRT_Client_LookupAddressableDevice: Entry<PJRT_Client_LookupAddressableDevice_Args>,
    pub(crate) PJRT_Client_AddressableMemories: Entry<PJRT_Client_AddressableMemories_Args>,
    pub(crate) PJRT_Client_Compile: Entry<PJRT_Client_Compile_Args>,
    pub(crate) PJRT_Client_DefaultDeviceAssignment: Entry<PJRT_Client_DefaultDeviceAssignment_Args>,
    pub(crate) PJRT_Client_BufferFromHostBuffer: Entry<PJRT_Client_BufferFromHostBuffer_Args>,
    pub(crate) PJRT_DeviceDescription_Id: Entry<PJRT_DeviceDescription_Id_Args>,
    pub(crate) PJRT_DeviceDescription_ProcessIndex: Entry<PJRT_DeviceDescription_ProcessIndex_Args>,
    pub(crate) PJRT_DeviceDescription_Attributes: Entry<PJRT_DeviceDescription_Attributes_Args>,
    pub(crate) PJRT_DeviceDescription_Kind: Entry<PJRT_DeviceDescription_Kind_Args>,
    pub(crate) PJRT_DeviceDescription_DebugString: Entry<PJRT_DeviceDescription_DebugString_Args>,
    pub(crate) PJRT_DeviceDescription_ToString: Entry<PJRT_DeviceDescription_ToString_Args>,
    pub(crate) PJRT_Device_GetDescription: Entry<PJRT_Device_GetDescription_Args>,
    pub(crate) PJRT_Device_IsAddressable: Entry<PJRT_Device_IsAddressable_Args>,
    pub(crate) PJRT_Device_LocalHardwareId: Entry<PJRT_Device_LocalHardwareId_Args>,
    pub(crate) PJRT_Device_AddressableMemories: Entry<PJRT_Device_AddressableMemories_Args>,
    pub(crate) PJRT_Device_DefaultMemory: Entry<PJRT_Device_DefaultMemory_Args>,
    pub(crate) PJRT_Device_MemoryStats: Entry<PJRT_Device_MemoryStats_Args>,
    pub(crate) PJRT_Memory_Id: Entry<PJRT_Memory_Id_Args>,
    pub(crate) PJRT_Memory_Kind: Entry<PJRT_Memory_Kind_Args>,
    pub(crate) PJRT_Memory_DebugString: Entry<PJRT_Memory_DebugString_Args>,
    pub(crate) PJRT_Memory_ToString: Entry<PJRT_Memory_ToString_Args>,
    pub(crate) PJRT_Memory_AddressableByDevices: Entry<PJRT_Memory_AddressableByDevices_Args>,
    pub(crate) PJRT_Executable_Destroy: Entry<PJRT_Executable_Destroy_Args>,
    pub(crate) PJRT_Executable_Name: Entry<PJRT_Executable_Name_Args>,
    pub(crate) PJRT_Executable_NumReplicas: Entry<PJRT_Executable_NumReplicas_Args>,
    pub(crate) PJRT_Executable_NumPartitions: Entry<PJRT_Executable_NumPartitions_Args>,
    pub(crate) PJRT_Executable_NumOutputs: Entry<PJRT_Executable_NumOutputs_Args>,
    pub(crate) PJRT_Executable_SizeOfGeneratedCodeInBytes:
        Entry<PJRT_Executable_SizeOfGeneratedCodeInBytes_Args>,
    pub(crate) PJRT_Executable_GetCostAnalysis: Entry<PJRT_Executable_GetCostAnalysis_Args>,
    pub(crate) PJRT_Executable_OutputMemoryKinds: Entry<PJRT_Executable_OutputMemoryKinds_Args>,
    pub(crate) PJRT_Executable_OptimizedProgram: Entry<PJRT_Executable_OptimizedProgram_Args>,
    pub(crate) PJRT_Executable_Serialize: Entry<PJRT_Executable_Serialize_Args>,
    pub(crate) PJRT_LoadedExecutable_Destroy: Entry<PJRT_LoadedExecutable_Destroy_Args>,
    pub(crate) PJRT_LoadedExecutable_GetExecutable: Entry<PJRT_LoadedExecutable_GetExecutable_Args>,
    pub(crate) PJRT_LoadedExecutable_AddressableDevices:
        Entry<PJRT_LoadedExecutable_AddressableDevices_Args>,
    pub(crate) PJRT_LoadedExecutable_Delete: Entry<PJRT_LoadedExecutable_Delete_Args>,
    pub(crate) PJRT_LoadedExecutable_IsDeleted: Entry<PJRT_LoadedExecutable_IsDeleted_Args>,
    pub(crate) PJRT_LoadedExecutable_Execute: Entry<PJRT_LoadedExecutable_Execute_Args>,
    pub(crate) PJRT_Executable_DeserializeAndLoad: Entry<PJRT_Executable_DeserializeAndLoad_Args>,
    pub(crate) PJRT_LoadedExecutable_Fingerprint: Entry<PJRT_LoadedExecutable_Fingerprint_Args>,
    pub(crate) PJRT_Buffer_Destroy: Entry<PJRT_Buffer_Destroy_Args>,
    pub(crate) PJRT_Buffer_ElementType: Entry<PJRT_Buffer_ElementType_Args>,
    pub(crate) PJRT_Buffer_Dimensions: Entry<PJRT_Buffer_Dimensions_Args>,
    pub(crate) PJRT_Buffer_UnpaddedDimensions: Entry<PJRT_Buffer_UnpaddedDimensions_Args>,
    pub(crate) PJRT_Buffer_DynamicDimensionIndices: Entry<PJRT_Buffer_DynamicDimensionIndices_Args>,
    pub(crate) PJRT_Buffer_GetMemoryLayout: Entry<PJRT_Buffer_GetMemoryLayout_Args>,
    pub(crate) PJRT_Buffer_OnDeviceSizeInBytes: Entry<PJRT_Buffer_OnDeviceSizeInBytes_Args>,
    pub(crate) PJRT_Buffer_Device: Entry<PJRT_Buffer_Device_Args>,
    pub(crate) PJRT_Buffer_Memory: Entry<PJRT_Buffer_Memory_Args>,
    pub(crate) PJRT_Buffer_Delete: Entry<PJRT_Buffer_Delete_Args>,
    pub(crate) PJRT_Buffer_IsDeleted: Entry<PJRT_Buffer_IsDeleted_Args>,
    pub(crate) PJRT_Buffer_CopyToDevice: Entry<PJRT_Buffer_CopyToDevice_Args>,
    pub(crate) PJRT_Buffer_ToHostBuffer: Entry<PJRT_Buffer_ToHostBuffer_Args>,
    pub(crate) PJRT_Buffer_IsOnCpu: Entry<PJRT_Buffer_IsOnCpu_Args>,
    pub(crate) PJRT_Buffer_ReadyEvent: Entry<PJRT_Buffer_ReadyEvent_Args>,
    pub(crate) PJRT_Buffer_UnsafePointer: Entry<PJRT_Buffer_UnsafePointer_Args>,
    pub(crate) PJRT_Buffer_IncreaseExternalReferenceCount:
        Entry<PJRT_Buffer_IncreaseExternalReferenceCount_Args>,
    pub(crate) PJRT_Buffer_DecreaseExternalReferenceCount:
        Entry<PJRT_Buffer_DecreaseExternalReferenceCount_Args>,
    pub(crate) PJRT_Buffer_OpaqueDeviceMemoryDataPointer:
        Entry<PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args>,
    pub(crate) PJRT_CopyToDeviceStream_Destroy: Entry<PJRT_CopyToDeviceStream_Destroy_Args>,
    pub(crate) PJRT_CopyToDeviceStream_AddChunk: Entry<PJRT_CopyToDeviceStream_AddChunk_Args>,
    pub(crate) PJRT_CopyToDeviceStream_TotalBytes: Entry<PJRT_CopyToDeviceStream_TotalBytes_Args>,
    pub(crate) PJRT_CopyToDeviceStream_GranuleSize: Entry<PJRT_CopyToDeviceStream_GranuleSize_Args>,
    pub(crate) PJRT_CopyToDeviceStream_CurrentBytes:
        Entry<PJRT_CopyToDeviceStream_CurrentBytes_Args>,
    pub(crate) PJRT_TopologyDescription_Create: Entry<PJRT_TopologyDescription_Create_Args>,
    pub(crate) PJRT_TopologyDescription_Destroy: Entry<PJRT_TopologyDescription_Destroy_Args>,
    pub(crate) PJRT_TopologyDescription_PlatformName:
        Entry<PJRT_TopologyDescription_PlatformName_Args>,
    pub(crate) PJRT_TopologyDescription_PlatformVersion:
        Entry<PJRT_TopologyDescription_PlatformVersion_Args>,
    pub(crate) PJRT_TopologyDescription_GetDeviceDescriptions:
        Entry<PJRT_TopologyDescription_GetDeviceDescriptions_Args>,
    pub(crate) PJRT_TopologyDescription_Serialize: Entry<PJRT_TopologyDescription_Serialize_Args>,
    pub(crate) PJRT_TopologyDescription_Attributes: Entry<PJRT_TopologyDescription_Attributes_Args>,
    pub(crate) PJRT_Compile: Entry<PJRT_Compile_Args>,
    pub(crate) PJRT_Executable_OutputElementTypes: Entry<PJRT_Executable_OutputElementTypes_Args>,
    pub(crate) PJRT_Executable_OutputDimensions: Entry<PJRT_Executable_OutputDimensions_Args>,
    pub(crate) PJRT_Buffer_CopyToMemory: Entry<PJRT_Buffer_CopyToMemory_Args>,
    pub(crate) PJRT_Client_CreateViewOfDeviceBuffer:
        Entry<PJRT_Client_CreateViewOfDeviceBuffer_Args>,
    pub(crate) PJRT_Executable_Fingerprint: Entry<PJRT_Executable_Fingerprint_Args>,
    pub(crate) PJRT_Client_TopologyDescription: Entry<PJRT_Client_TopologyDescription_Args>,
    pub(crate) PJRT_Executable_GetCompiledMemoryStats:
        Entry<PJRT_Executable_GetCompiledMemoryStats_Args>,
    pub(crate) PJRT_Memory_Kind_Id: Entry<PJRT_Memory_Kind_Id_Args>,
    pub(crate) PJRT_ExecuteContext_Create: Entry<PJRT_ExecuteContext_Create_Args>,
    pub(crate) PJRT_ExecuteContext_Destroy: Entry<PJRT_ExecuteContext_Destroy_Args>,
    pub(crate) PJRT_Buffer_CopyRawToHost: Entry<PJRT_Buffer_CopyRawToHost_Args>,
    pub(crate) PJRT_AsyncHostToDeviceTransferManager_Destroy:
        Entry<PJRT_AsyncHostToDeviceTransferManager_Destroy_Args>,
    pub(crate) PJRT_AsyncHostToDeviceTransferManager_TransferData:
        Entry<PJRT_AsyncHostToDeviceTransferManager_TransferData_Args>,
    pub(crate) PJRT_Client_CreateBuffersForAsyncHostToDevice:
        Entry<PJRT_Client_CreateBuffersForAsyncHostToDevice_Args>,
    pub(crate) PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer:
        Entry<PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args>,
    pub(crate) PJRT_AsyncHostToDeviceTransferManager_Device:
        Entry<PJRT_AsyncHostToDeviceTransferManager_Device_Args>,
    pub(crate) PJRT_AsyncHostToDeviceTransferManager_BufferCount:
        Entry<PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args>,
    pub(crate) PJRT_AsyncHostToDeviceTransferManager_BufferSize:
        Entry<PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args>,
    pub(crate) PJRT_AsyncHostToDeviceTransferManager_SetBufferError:
        Entry<PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args>,
    pub(crate) PJRT_AsyncHostToDeviceTransferManager_AddMetadata:
        Entry<PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args>,
    pub(crate) PJRT_Client_DmaMap: Entry<PJRT_Client_DmaMap_Args>,
    pub(crate) PJRT_Client_DmaUnmap: Entry<PJRT_Client_DmaUnmap_Args>,
    pub(crate) PJRT_Client_CreateUninitializedBuffer:
        Entry<PJRT_Client_CreateUninitializedBuffer_Args>,
    pub(crate) PJRT_Client_UpdateGlobalProcessInfo: Entry<PJRT_Client_UpdateGlobalProcessInfo_Args>,
    pub(crate) PJRT_TopologyDescription_Deserialize:
        Entry<PJRT_TopologyDescription_Deserialize_Args>,
    pub(crate) PJRT_Client_CreateAliasBuffer: Entry<PJRT_Client_CreateAliasBuffer_Args>,
    pub(crate) PJRT_Client_FulfillAliasBuffer: Entry<PJRT_Client_FulfillAliasBuffer_Args>,
    pub(crate) PJRT_LoadedExecutable_GetDeviceAssignment:
        Entry<PJRT_LoadedExecutable_GetDeviceAssignment_Args>,
    pub(crate) PJRT_Client_CreateErrorBuffer: Entry<PJRT_Client_CreateErrorBuffer_Args>,
    pub(crate) PJRT_AsyncHostToDeviceTransferManager_TransferLiteral:
        Entry<PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args>,
    pub(crate) PJRT_Buffer_CopyRawToHostFuture: Entry<PJRT_Buffer_CopyRawToHostFuture_Args>,
    pub(crate) PJRT_Device_PoisonExecution: Entry<PJRT_Device_PoisonExecution_Args>,
    pub(crate) PJRT_Device_CreateAsyncTrackingEvent:
        Entry<PJRT_Device_CreateAsyncTrackingEvent_Args>,
    pub(crate) PJRT_AsyncTrackingEvent_Destroy: Entry<PJRT_AsyncTrackingEvent_Destroy_Args>,
    pub(crate) PJRT_Executable_GetCompileOptions: Entry<PJRT_Executable_GetCompileOptions_Args>,
    pub(crate) PJRT_Buffer_DonateWithControlDependency:
        Entry<PJRT_Buffer_DonateWithControlDependency_Args>,
    pub(crate) PJRT_Event_Create: Entry<PJRT_Event_Create_Args>,
    pub(crate) PJRT_Event_Set: Entry<PJRT_Event_Set_Args>,
    pub(crate) PJRT_Device_GetAttributes: Entry<PJRT_Device_GetAttributes_Args>,
    pub(crate) PJRT_Client_Load: Entry<PJRT_Client_Load_Args>,
    pub(crate) PJRT_LoadedExecutable_AddressableDeviceLogicalIds:
        Entry<PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args>,
    pub(crate) PJRT_Buffer_Bitcast: Entry<PJRT_Buffer_Bitcast_Args>,
    pub(crate) PJRT_Error_ForEachPayload: Entry<PJRT_Error_ForEachPayload_Args>,
    pub(crate) PJRT_TopologyDescription_Fingerprint:
        Entry<PJRT_TopologyDescription_Fingerprint_Args>,
    pub(crate) PJRT_Executable_ParameterMemoryKinds:
        Entry<PJRT_Executable_ParameterMemoryKinds_Args>,
    pub(crate) PJRT_Device_ClearMemoryStats: Entry<PJRT_Device_ClearMemoryStats_Args>,
    pub(crate) PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace:
        Entry<PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args>,
    pub(crate) PJRT_TopologyDescription_GetMemorySpaceKindIds:
        Entry<PJRT_TopologyDescription_GetMemorySpaceKindIds_Args>,
}
const _: () = assert!(offset_of!(PJRT_Api, struct_size) == 0);
const _: () = assert!(offset_of!(PJRT_Api, extension_start) == 8);
const _: () = assert!(offset_of!(PJRT_Api, pjrt_api_version) == 16);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Error_Destroy) == 40);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Error_Message) == 48);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Error_GetCode) == 56);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Plugin_Initialize) == 64);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Plugin_Attributes) == 72);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Event_Destroy) == 80);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Event_IsReady) == 88);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Event_Error) == 96);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Event_Await) == 104);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Event_OnReady) == 112);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_Create) == 120);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_Destroy) == 128);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_PlatformName) == 136);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_ProcessIndex) == 144);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_PlatformVersion) == 152);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_Devices) == 160);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_AddressableDevices) == 168);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_LookupDevice) == 176);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_LookupAddressableDevice) == 184);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_AddressableMemories) == 192);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_Compile) == 200);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_DefaultDeviceAssignment) == 208);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_BufferFromHostBuffer) == 216);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_DeviceDescription_Id) == 224);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_DeviceDescription_ProcessIndex) == 232);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_DeviceDescription_Attributes) == 240);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_DeviceDescription_Kind) == 248);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_DeviceDescription_DebugString) == 256);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_DeviceDescription_ToString) == 264);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Device_GetDescription) == 272);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Device_IsAddressable) == 280);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Device_LocalHardwareId) == 288);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Device_AddressableMemories) == 296);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Device_DefaultMemory) == 304);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Device_MemoryStats) == 312);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Memory_Id) == 320);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Memory_Kind) == 328);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Memory_DebugString) == 336);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Memory_ToString) == 344);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Memory_AddressableByDevices) == 352);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Executable_Destroy) == 360);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Executable_Name) == 368);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Executable_NumReplicas) == 376);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Executable_NumPartitions) == 384);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Executable_NumOutputs) == 392);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Executable_SizeOfGeneratedCodeInBytes) == 400);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Executable_GetCostAnalysis) == 408);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Executable_OutputMemoryKinds) == 416);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Executable_OptimizedProgram) == 424);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Executable_Serialize) == 432);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_LoadedExecutable_Destroy) == 440);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_LoadedExecutable_GetExecutable) == 448);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_LoadedExecutable_AddressableDevices) == 456);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_LoadedExecutable_Delete) == 464);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_LoadedExecutable_IsDeleted) == 472);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_LoadedExecutable_Execute) == 480);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Executable_DeserializeAndLoad) == 488);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_LoadedExecutable_Fingerprint) == 496);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_Destroy) == 504);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_ElementType) == 512);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_Dimensions) == 520);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_UnpaddedDimensions) == 528);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_DynamicDimensionIndices) == 536);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_GetMemoryLayout) == 544);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_OnDeviceSizeInBytes) == 552);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_Device) == 560);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_Memory) == 568);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_Delete) == 576);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_IsDeleted) == 584);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_CopyToDevice) == 592);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_ToHostBuffer) == 600);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_IsOnCpu) == 608);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_ReadyEvent) == 616);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_UnsafePointer) == 624);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_IncreaseExternalReferenceCount) == 632);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_DecreaseExternalReferenceCount) == 640);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_OpaqueDeviceMemoryDataPointer) == 648);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_CopyToDeviceStream_Destroy) == 656);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_CopyToDeviceStream_AddChunk) == 664);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_CopyToDeviceStream_TotalBytes) == 672);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_CopyToDeviceStream_GranuleSize) == 680);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_CopyToDeviceStream_CurrentBytes) == 688);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_TopologyDescription_Create) == 696);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_TopologyDescription_Destroy) == 704);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_TopologyDescription_PlatformName) == 712);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_TopologyDescription_PlatformVersion) == 720);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_TopologyDescription_GetDeviceDescriptions) == 728);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_TopologyDescription_Serialize) == 736);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_TopologyDescription_Attributes) == 744);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Compile) == 752);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Executable_OutputElementTypes) == 760);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Executable_OutputDimensions) == 768);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_CopyToMemory) == 776);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_CreateViewOfDeviceBuffer) == 784);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Executable_Fingerprint) == 792);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_TopologyDescription) == 800);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Executable_GetCompiledMemoryStats) == 808);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Memory_Kind_Id) == 816);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_ExecuteContext_Create) == 824);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_ExecuteContext_Destroy) == 832);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_CopyRawToHost) == 840);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_AsyncHostToDeviceTransferManager_Destroy) == 848);
const _: () =
    assert!(offset_of!(PJRT_Api, PJRT_AsyncHostToDeviceTransferManager_TransferData) == 856);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_CreateBuffersForAsyncHostToDevice) == 864);
const _: () =
    assert!(offset_of!(PJRT_Api, PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer) == 872);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_AsyncHostToDeviceTransferManager_Device) == 880);
const _: () =
    assert!(offset_of!(PJRT_Api, PJRT_AsyncHostToDeviceTransferManager_BufferCount) == 888);
const _: () =
    assert!(offset_of!(PJRT_Api, PJRT_AsyncHostToDeviceTransferManager_BufferSize) == 896);
const _: () =
    assert!(offset_of!(PJRT_Api, PJRT_AsyncHostToDeviceTransferManager_SetBufferError) == 904);
const _: () =
    assert!(offset_of!(PJRT_Api, PJRT_AsyncHostToDeviceTransferManager_AddMetadata) == 912);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_DmaMap) == 920);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_DmaUnmap) == 928);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_CreateUninitializedBuffer) == 936);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_UpdateGlobalProcessInfo) == 944);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_TopologyDescription_Deserialize) == 952);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_CreateAliasBuffer) == 960);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_FulfillAliasBuffer) == 968);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_LoadedExecutable_GetDeviceAssignment) == 976);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_CreateErrorBuffer) == 984);
const _: () =
    assert!(offset_of!(PJRT_Api, PJRT_AsyncHostToDeviceTransferManager_TransferLiteral) == 992);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_CopyRawToHostFuture) == 1000);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Device_PoisonExecution) == 1008);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Device_CreateAsyncTrackingEvent) == 1016);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_AsyncTrackingEvent_Destroy) == 1024);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Executable_GetCompileOptions) == 1032);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_DonateWithControlDependency) == 1040);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Event_Create) == 1048);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Event_Set) == 1056);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Device_GetAttributes) == 1064);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Client_Load) == 1072);
const _: () =
    assert!(offset_of!(PJRT_Api, PJRT_LoadedExecutable_AddressableDeviceLogicalIds) == 1080);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Buffer_Bitcast) == 1088);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Error_ForEachPayload) == 1096);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_TopologyDescription_Fingerprint) == 1104);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Executable_ParameterMemoryKinds) == 1112);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_Device_ClearMemoryStats) == 1120);
const _: () = assert!(
    offset_of!(PJRT_Api, PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace) == 1128
);
const _: () = assert!(offset_of!(PJRT_Api, PJRT_TopologyDescription_GetMemorySpaceKindIds) == 1136);

impl PJRT_Api {
    /// A table whose functions say that they are not implemented, by name.
    pub(crate) const UNIMPLEMENTED: Self = Self {
        struct_size: size_of::<Self>(),
        extension_start: null_mut(),
        pjrt_api_version: PJRT_Api_Version::ZERO,
        PJRT_Error_Destroy: Some(unimplemented),
        PJRT_Error_Message: Some(unimplemented),
        PJRT_Error_GetCode: Some(unimplemented),
        PJRT_Plugin_Initialize: Some(unimplemented),
        PJRT_Plugin_Attributes: Some(unimplemented),
        PJRT_Event_Destroy: Some(unimplemented),
        PJRT_Event_IsReady: Some(unimplemented),
        PJRT_Event_Error: Some(unimplemented),
        PJRT_Event_Await: Some(unimplemented),
        PJRT_Event_OnReady: Some(unimplemented),
        PJRT_Client_Create: Some(unimplemented),
        PJRT_Client_Destroy: Some(unimplemented),
        PJRT_Client_PlatformName: Some(unimplemented),
        PJRT_Client_ProcessIndex: Some(unimplemented),
        PJRT_Client_PlatformVersion: Some(unimplemented),
        PJRT_Client_Devices: Some(unimplemented),
        PJRT_Client_AddressableDevices: Some(unimplemented),
        PJRT_Client_LookupDevice: Some(unimplemented),
        PJRT_Client_LookupAddressableDevice: Some(unimplemented),
        PJRT_Client_AddressableMemories: Some(unimplemented),
        PJRT_Client_Compile: Some(unimplemented),
        PJRT_Client_DefaultDeviceAssignment: Some(unimplemented),
        PJRT_Client_BufferFromHostBuffer: Some(unimplemented),
        PJRT_DeviceDescription_Id: Some(unimplemented),
        PJRT_DeviceDescription_ProcessIndex: Some(unimplemented),
        PJRT_DeviceDescription_Attributes: Some(unimplemented),
        PJRT_DeviceDescription_Kind: Some(unimplemented),
        PJRT_DeviceDescription_DebugString: Some(unimplemented),
        PJRT_DeviceDescription_ToString: Some(unimplemented),
        PJRT_Device_GetDescription: Some(unimplemented),
        PJRT_Device_IsAddressable: Some(unimplemented),
        PJRT_Device_LocalHardwareId: Some(unimplemented),
        PJRT_Device_AddressableMemories: Some(unimplemented),
        PJRT_Device_DefaultMemory: Some(unimplemented),
        PJRT_Device_MemoryStats: Some(unimplemented),
        PJRT_Memory_Id: Some(unimplemented),
        PJRT_Memory_Kind: Some(unimplemented),
        PJRT_Memory_DebugString: Some(unimplemented),
        PJRT_Memory_ToString: Some(unimplemented),
        PJRT_Memory_AddressableByDevices: Some(unimplemented),
        PJRT_Executable_Destroy: Some(unimplemented),
        PJRT_Executable_Name: Some(unimplemented),
        PJRT_Executable_NumReplicas: Some(unimplemented),
        PJRT_Executable_NumPartitions: Some(unimplemented),
        PJRT_Executable_NumOutputs: Some(unimplemented),
        PJRT_Executable_SizeOfGeneratedCodeInBytes: Some(unimplemented),
        PJRT_Executable_GetCostAnalysis: Some(unimplemented),
        PJRT_Executable_OutputMemoryKinds: Some(unimplemented),
        PJRT_Executable_OptimizedProgram: Some(unimplemented),
        PJRT_Executable_Serialize: Some(unimplemented),
        PJRT_LoadedExecutable_Destroy: Some(unimplemented),
        PJRT_LoadedExecutable_GetExecutable: Some(unimplemented),
        PJRT_LoadedExecutable_AddressableDevices: Some(unimplemented),
        PJRT_LoadedExecutable_Delete: Some(unimplemented),
        PJRT_LoadedExecutable_IsDeleted: Some(unimplemented),
        PJRT_LoadedExecutable_Execute: Some(unimplemented),
        PJRT_Executable_DeserializeAndLoad: Some(unimplemented),
        PJRT_LoadedExecutable_Fingerprint: Some(unimplemented),
        PJRT_Buffer_Destroy: Some(unimplemented),
        PJRT_Buffer_ElementType: Some(unimplemented),
        PJRT_Buffer_Dimensions: Some(unimplemented),
        PJRT_Buffer_UnpaddedDimensions: Some(unimplemented),
        PJRT_Buffer_DynamicDimensionIndices: Some(unimplemented),
        PJRT_Buffer_GetMemoryLayout: Some(unimplemented),
        PJRT_Buffer_OnDeviceSizeInBytes: Some(unimplemented),
        PJRT_Buffer_Device: Some(unimplemented),
        PJRT_Buffer_Memory: Some(unimplemented),
        PJRT_Buffer_Delete: Some(unimplemented),
        PJRT_Buffer_IsDeleted: Some(unimplemented),
        PJRT_Buffer_CopyToDevice: Some(unimplemented),
        PJRT_Buffer_ToHostBuffer: Some(unimplemented),
        PJRT_Buffer_IsOnCpu: Some(unimplemented),
        PJRT_Buffer_ReadyEvent: Some(unimplemented),
        PJRT_Buffer_UnsafePointer: Some(unimplemented),
        PJRT_Buffer_IncreaseExternalReferenceCount: Some(unimplemented),
        PJRT_Buffer_DecreaseExternalReferenceCount: Some(unimplemented),
        PJRT_Buffer_OpaqueDeviceMemoryDataPointer: Some(unimplemented),
        PJRT_CopyToDeviceStream_Destroy: Some(unimplemented),
        PJRT_CopyToDeviceStream_AddChunk: Some(unimplemented),
        PJRT_CopyToDeviceStream_TotalBytes: Some(unimplemented),
        PJRT_CopyToDeviceStream_GranuleSize: Some(unimplemented),
        PJRT_CopyToDeviceStream_CurrentBytes: Some(unimplemented),
        PJRT_TopologyDescription_Create: Some(unimplemented),
        PJRT_TopologyDescription_Destroy: Some(unimplemented),
        PJRT_TopologyDescription_PlatformName: Some(unimplemented),
        PJRT_TopologyDescription_PlatformVersion: Some(unimplemented),
        PJRT_TopologyDescription_GetDeviceDescriptions: Some(unimplemented),
        PJRT_TopologyDescription_Serialize: Some(unimplemented),
        PJRT_TopologyDescription_Attributes: Some(unimplemented),
        PJRT_Compile: Some(unimplemented),
        PJRT_Executable_OutputElementTypes: Some(unimplemented),
        PJRT_Executable_OutputDimensions: Some(unimplemented),
        PJRT_Buffer_CopyToMemory: Some(unimplemented),
        PJRT_Client_CreateViewOfDeviceBuffer: Some(unimplemented),
        PJRT_Executable_Fingerprint: Some(unimplemented),
        PJRT_Client_TopologyDescription: Some(unimplemented),
        PJRT_Executable_GetCompiledMemoryStats: Some(unimplemented),
        PJRT_Memory_Kind_Id: Some(unimplemented),
        PJRT_ExecuteContext_Create: Some(unimplemented),
        PJRT_ExecuteContext_Destroy: Some(unimplemented),
        PJRT_Buffer_CopyRawToHost: Some(unimplemented),
        PJRT_AsyncHostToDeviceTransferManager_Destroy: Some(unimplemented),
        PJRT_AsyncHostToDeviceTransferManager_TransferData: Some(unimplemented),
        PJRT_Client_CreateBuffersForAsyncHostToDevice: Some(unimplemented),
        PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer: Some(unimplemented),
        PJRT_AsyncHostToDeviceTransferManager_Device: Some(unimplemented),
        PJRT_AsyncHostToDeviceTransferManager_BufferCount: Some(unimplemented),
        PJRT_AsyncHostToDeviceTransferManager_BufferSize: Some(unimplemented),
        PJRT_AsyncHostToDeviceTransferManager_SetBufferError: Some(unimplemented),
        PJRT_AsyncHostToDeviceTransferManager_AddMetadata: Some(unimplemented),
        PJRT_Client_DmaMap: Some(unimplemented),
        PJRT_Client_DmaUnmap: Some(unimplemented),
        PJRT_Client_CreateUninitializedBuffer: Some(unimplemented),
        PJRT_Client_UpdateGlobalProcessInfo: Some(unimplemented),
        PJRT_TopologyDescription_Deserialize: Some(unimplemented),
        PJRT_Client_CreateAliasBuffer: Some(unimplemented),
        PJRT_Client_FulfillAliasBuffer: Some(unimplemented),
        PJRT_LoadedExecutable_GetDeviceAssignment: Some(unimplemented),
        PJRT_Client_CreateErrorBuffer: Some(unimplemented),
        PJRT_AsyncHostToDeviceTransferManager_TransferLiteral: Some(unimplemented),
        PJRT_Buffer_CopyRawToHostFuture: Some(unimplemented),
        PJRT_Device_PoisonExecution: Some(unimplemented),
        PJRT_Device_CreateAsyncTrackingEvent: Some(unimplemented),
        PJRT_AsyncTrackingEvent_Destroy: Some(unimplemented),
        PJRT_Executable_GetCompileOptions: Some(unimplemented),
        PJRT_Buffer_DonateWithControlDependency: Some(unimplemented),
        PJRT_Event_Create: Some(unimplemented),
        PJRT_Event_Set: Some(unimplemented),
        PJRT_Device_GetAttributes: Some(unimplemented),
        PJRT_Client_Load: Some(unimplemented),
        PJRT_LoadedExecutable_AddressableDeviceLogicalIds: Some(unimplemented),
        PJRT_Buffer_Bitcast: Some(unimplemented),
        PJRT_Error_ForEachPayload: Some(unimplemented),
        PJRT_TopologyDescription_Fingerprint: Some(unimplemented),
        PJRT_Executable_ParameterMemoryKinds: Some(unimplemented),
        PJRT_Device_ClearMemoryStats: Some(unimplemented),
        PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace: Some(unimplemented),
        PJRT_TopologyDescription_GetMemorySpaceKindIds: Some(unimplemented),
    };
}
