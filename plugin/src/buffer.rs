//! Buffers: arrays on one device each.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use lockstep::ifrt::{
    ArrayCopySemantics, ArrayRef, HostBuffer, HostBufferSemantics, HostBytes, Layout, Result,
    Shape, Status,
};

use crate::abi::caller::{Caller, Items, Shared};
use crate::abi::ffi;
use crate::client::Client;
use crate::{device, dtype, event, handle, layout, memory};

/// An array on one device, and where callers see it.
pub(crate) struct Buffer {
    array: ArrayRef,
    client: Arc<Client>,
    device: Shared<*mut c_void>,
    memory: Shared<*mut c_void>,
    dims: OnceLock<Vec<i64>>,
    /// The numbers of the dimensions, the last first.
    minor_to_major: OnceLock<Vec<i64>>,
    /// What callers look at in place, and how many do.
    shown: Mutex<(usize, Option<HostBuffer<'static>>)>,
}

impl Buffer {
    /// The buffer of an array on one device.
    ///
    /// # Errors
    /// `Internal` when it is on another number of devices.
    pub(crate) fn new(client: &Arc<Client>, array: ArrayRef) -> Result<Self> {
        let sharding = array.sharding();
        let Some(device) = sharding.devices().get(0).filter(|_| sharding.devices().len() == 1)
        else {
            return Err(Status::internal(format!("{array:?} is no buffer")));
        };
        let (handle, device) = client.device(device.id())?;
        let memory = device.memory(sharding.memory_kind());
        Ok(Self::at(client, handle, memory, array))
    }

    /// The buffer of an array on one device, given the handles of the device and the memory.
    pub(crate) fn at(
        client: &Arc<Client>,
        device: *mut c_void,
        memory: *mut c_void,
        array: ArrayRef,
    ) -> Self {
        Self {
            client: Arc::clone(client),
            device: Shared(device),
            memory: Shared(memory),
            dims: OnceLock::new(),
            minor_to_major: OnceLock::new(),
            shown: Mutex::default(),
            array,
        }
    }

    fn dims(&self) -> &[i64] {
        self.dims.get_or_init(|| {
            // A shape's dimensions fit.
            let dims = self.array.shape().dims().iter();
            dims.map(|&dim| dim.try_into().unwrap_or(i64::MAX)).collect()
        })
    }

    /// What it is to the runtime.
    pub(crate) fn array(&self) -> &ArrayRef {
        &self.array
    }

    fn size_bytes(&self) -> usize {
        self.array.shape().num_elements() * self.array.dtype().size_bytes()
    }

    fn shown(&self) -> MutexGuard<'_, (usize, Option<HostBuffer<'static>>)> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The contents in place; waits for them.
    fn contents(&self) -> Result<HostBuffer<'static>> {
        self.array.copy_to_host_buffer(ArrayCopySemantics::ReuseInput)?.wait()
    }

    /// Where the elements are, as long as the array is not deleted or somebody looks at it.
    fn address(&self) -> Result<*const u8> {
        let address = |contents: &HostBuffer<'_>| {
            let dense = contents.as_dense().map(<[u8]>::as_ptr);
            dense.ok_or_else(|| Status::internal("an array is not dense"))
        };
        match &self.shown().1 {
            Some(contents) => address(contents),
            None => address(&self.contents()?),
        }
    }
}

/// The shape with these dimensions.
///
/// # Errors
/// `InvalidArgument` when one is negative, or they are too large.
pub(crate) fn shape(dims: &[i64]) -> Result<Shape> {
    let sizes: Option<Vec<usize>> = dims.iter().map(|&dim| usize::try_from(dim).ok()).collect();
    let shape = sizes.and_then(|sizes| Shape::new(sizes).ok());
    shape.ok_or_else(|| Status::invalid_argument(format!("{dims:?} are no dimensions")))
}

/// Where a new buffer is to be: in a memory, or in the default one of a device.
fn place(memory: *mut c_void, device: *mut c_void) -> Result<Arc<memory::Memory>> {
    if !memory.is_null() {
        return memory::find(memory);
    }
    let device = handle::find::<device::Device>(device)?;
    memory::find(device.default_memory())
}

/// `PJRT_Client_BufferFromHostBuffer`: copies during the call, so that the caller may do with its
/// memory what it likes after it, whatever it promised.
pub(crate) fn from_host(
    args: &mut ffi::PJRT_Client_BufferFromHostBuffer_Args,
    caller: &Caller,
) -> Result<()> {
    let client = handle::find::<Client>(args.client)?;
    let memory = place(args.memory, args.device)?;
    let dtype = dtype::from_abi(args.r#type)?;
    let dims: Items<i64> = caller.items(args.dims, args.num_dims, "dims")?;
    let shape = shape(&dims)?;
    layout::require_row_major(caller, args.device_layout, dims.len())?;
    let strides = match args.byte_strides.is_null() {
        true => Layout::row_major(dims.len()).byte_strides(dtype, &shape)?.1,
        false => caller.items(args.byte_strides, args.num_byte_strides, "byte_strides")?.into_vec(),
    };
    // The address is that of the first element; strides of either sign lead away from it.
    let (mut before, mut behind) = (0_i64, 0_i64);
    let extent = || Status::invalid_argument(format!("the strides {strides:?} lead nowhere"));
    if shape.num_elements() > 0 {
        for (&dim, &stride) in dims.iter().zip(&strides) {
            let reach = stride.checked_mul(dim - 1).ok_or_else(extent)?;
            let side = if reach < 0 { &mut before } else { &mut behind };
            *side = side.checked_add(reach).ok_or_else(extent)?;
        }
    }
    let before = usize::try_from(before.unsigned_abs()).map_err(|_| extent())?;
    let behind = usize::try_from(behind).map_err(|_| extent())?;
    let len = match shape.num_elements() {
        0 => Some(0),
        _ => before.checked_add(behind).and_then(|len| len.checked_add(dtype.size_bytes())),
    };
    let len = len.ok_or_else(extent)?;
    let first = args.data.cast::<u8>().wrapping_sub(before);
    let bytes = caller.bytes(first.cast(), len, "data")?;
    let buffer =
        HostBuffer::strided(HostBytes::Borrowed(bytes), dtype, shape, before, strides.clone())?;
    let array = client.runtime().make_array_from_host_buffer(
        &buffer,
        memory.sharding(),
        HostBufferSemantics::ImmutableOnlyDuringCall,
    )?;
    args.done_with_host_buffer = event::of(lockstep::ifrt::Future::ready(Ok(())));
    args.buffer = handle::insert(Arc::new(Buffer::new(&client, array)?));
    Ok(())
}

/// `PJRT_Client_CreateUninitializedBuffer`: zeros, which are as good as anything.
pub(crate) fn create_uninitialized(
    args: &mut ffi::PJRT_Client_CreateUninitializedBuffer_Args,
    caller: &Caller,
) -> Result<()> {
    let client = handle::find::<Client>(args.client)?;
    let memory = place(args.memory, args.device)?;
    let dtype = dtype::from_abi(args.shape_element_type)?;
    let shape = shape(&caller.items(args.shape_dims, args.shape_num_dims, "shape_dims")?)?;
    layout::require_row_major(caller, args.shape_layout, shape.rank())?;
    let zero = vec![0; dtype.size_bytes()];
    let strides = vec![0; shape.rank()];
    let contents = HostBuffer::strided(HostBytes::Borrowed(&zero), dtype, shape, 0, strides)?;
    let array = client.runtime().make_array_from_host_buffer(
        &contents,
        memory.sharding(),
        HostBufferSemantics::ImmutableOnlyDuringCall,
    )?;
    args.buffer = handle::insert(Arc::new(Buffer::new(&client, array)?));
    Ok(())
}

/// `PJRT_Buffer_Destroy`.
pub(crate) fn destroy(args: &mut ffi::PJRT_Buffer_Destroy_Args, _: &Caller) -> Result<()> {
    handle::remove::<Buffer>(args.buffer).map(|_| ())
}

/// `PJRT_Buffer_Delete`: the memory is given up, the handle stays.
pub(crate) fn delete(args: &mut ffi::PJRT_Buffer_Delete_Args, _: &Caller) -> Result<()> {
    // Resolves when the memory is free, which nobody waits for.
    drop(handle::find::<Buffer>(args.buffer)?.array.delete());
    Ok(())
}

/// `PJRT_Buffer_IsDeleted`: by its caller, or by a launch that it was donated to.
pub(crate) fn is_deleted(args: &mut ffi::PJRT_Buffer_IsDeleted_Args, _: &Caller) -> Result<()> {
    args.is_deleted = handle::find::<Buffer>(args.buffer)?.array.is_deleted().into();
    Ok(())
}

/// `PJRT_Buffer_ElementType`.
pub(crate) fn element_type(args: &mut ffi::PJRT_Buffer_ElementType_Args, _: &Caller) -> Result<()> {
    args.r#type = dtype::to_abi(handle::find::<Buffer>(args.buffer)?.array.dtype());
    Ok(())
}

/// `PJRT_Buffer_Dimensions`.
pub(crate) fn dimensions(args: &mut ffi::PJRT_Buffer_Dimensions_Args, _: &Caller) -> Result<()> {
    let buffer = handle::find::<Buffer>(args.buffer)?;
    let dims = buffer.dims();
    (args.dims, args.num_dims) = (dims.as_ptr().cast_mut().cast(), dims.len());
    Ok(())
}

/// `PJRT_Buffer_UnpaddedDimensions`: nothing is padded.
pub(crate) fn unpadded_dimensions(
    args: &mut ffi::PJRT_Buffer_UnpaddedDimensions_Args,
    _: &Caller,
) -> Result<()> {
    let buffer = handle::find::<Buffer>(args.buffer)?;
    let dims = buffer.dims();
    (args.unpadded_dims, args.num_dims) = (dims.as_ptr().cast_mut().cast(), dims.len());
    Ok(())
}

/// `PJRT_Buffer_DynamicDimensionIndices`: there are none.
pub(crate) fn dynamic_dimensions(
    args: &mut ffi::PJRT_Buffer_DynamicDimensionIndices_Args,
    _: &Caller,
) -> Result<()> {
    handle::find::<Buffer>(args.buffer)?;
    args.num_dynamic_dims = 0;
    Ok(())
}

/// `PJRT_Buffer_GetMemoryLayout`.
pub(crate) fn memory_layout(
    args: &mut ffi::PJRT_Buffer_GetMemoryLayout_Args,
    _: &Caller,
) -> Result<()> {
    let buffer = handle::find::<Buffer>(args.buffer)?;
    let order = buffer.minor_to_major.get_or_init(|| {
        (0..i64::try_from(buffer.dims().len()).unwrap_or(i64::MAX)).rev().collect()
    });
    args.layout = layout::row_major(order);
    Ok(())
}

/// `PJRT_Buffer_OnDeviceSizeInBytes`.
pub(crate) fn on_device_size(
    args: &mut ffi::PJRT_Buffer_OnDeviceSizeInBytes_Args,
    _: &Caller,
) -> Result<()> {
    args.on_device_size_in_bytes = handle::find::<Buffer>(args.buffer)?.size_bytes();
    Ok(())
}

/// `PJRT_Buffer_Device`.
pub(crate) fn device(args: &mut ffi::PJRT_Buffer_Device_Args, _: &Caller) -> Result<()> {
    args.device = handle::find::<Buffer>(args.buffer)?.device.0;
    Ok(())
}

/// `PJRT_Buffer_Memory`.
pub(crate) fn memory(args: &mut ffi::PJRT_Buffer_Memory_Args, _: &Caller) -> Result<()> {
    args.memory = handle::find::<Buffer>(args.buffer)?.memory.0;
    Ok(())
}

/// `PJRT_Buffer_IsOnCpu`: the host reads all memories in place.
pub(crate) fn is_on_cpu(args: &mut ffi::PJRT_Buffer_IsOnCpu_Args, _: &Caller) -> Result<()> {
    handle::find::<Buffer>(args.buffer)?;
    args.is_on_cpu = true.into();
    Ok(())
}

/// `PJRT_Buffer_ReadyEvent`.
pub(crate) fn ready_event(args: &mut ffi::PJRT_Buffer_ReadyEvent_Args, _: &Caller) -> Result<()> {
    args.event = event::of(handle::find::<Buffer>(args.buffer)?.array.ready());
    Ok(())
}

/// `PJRT_Buffer_ToHostBuffer`: the size, where no destination is given.
pub(crate) fn to_host(
    args: &mut ffi::PJRT_Buffer_ToHostBuffer_Args,
    caller: &Caller,
) -> Result<()> {
    let buffer = handle::find::<Buffer>(args.src)?;
    if args.dst.is_null() {
        args.dst_size = buffer.size_bytes();
        return Ok(());
    }
    if args.dst_size < buffer.size_bytes() {
        return Err(Status::invalid_argument(format!(
            "{:?} takes {} bytes, dst_size is {}",
            buffer.array,
            buffer.size_bytes(),
            args.dst_size
        )));
    }
    let (dtype, shape) = (buffer.array.dtype(), buffer.array.shape());
    let layout = layout::read(caller, args.host_layout, shape.rank())?;
    let (size, strides) = layout.byte_strides(dtype, shape)?;
    let destination = caller.destination(args.dst, size, "dst")?;
    let contents = buffer.array.copy_to_host_buffer(ArrayCopySemantics::ReuseInput)?;
    args.event = event::of(
        contents.map(move |contents| destination.fill(|into| scatter(contents, into, &strides))),
    );
    Ok(())
}

/// Writes dense elements where the strides say, which are those of all of `into`.
fn scatter(contents: &HostBuffer<'_>, into: &mut [u8], strides: &[i64]) -> Result<()> {
    let bytes = contents.as_dense().filter(|bytes| bytes.len() == into.len());
    let bytes = bytes.ok_or_else(|| Status::internal("an array is not what its shape says"))?;
    if contents.byte_strides() == strides {
        into.copy_from_slice(bytes);
        return Ok(());
    }
    let dims = contents.shape().dims();
    let size = contents.dtype().size_bytes();
    let mut index = vec![0_usize; dims.len()];
    for element in bytes.chunks_exact(size) {
        let steps = index.iter().zip(strides);
        // Strides of a dense layout are not negative.
        let at: usize = steps.map(|(&i, &stride)| i * usize::try_from(stride).unwrap_or(0)).sum();
        if let Some(place) = into.get_mut(at..at + size) {
            place.copy_from_slice(element);
        }
        for (i, &dim) in index.iter_mut().zip(dims).rev() {
            *i += 1;
            if *i < dim {
                break;
            }
            *i = 0;
        }
    }
    Ok(())
}

/// `PJRT_Buffer_CopyRawToHost`: a part of the bytes, as they are in memory.
pub(crate) fn copy_raw_to_host(
    args: &mut ffi::PJRT_Buffer_CopyRawToHost_Args,
    caller: &Caller,
) -> Result<()> {
    let buffer = handle::find::<Buffer>(args.buffer)?;
    let part = || -> Option<std::ops::Range<usize>> {
        let start = usize::try_from(args.offset).ok()?;
        let end = start.checked_add(usize::try_from(args.transfer_size).ok()?)?;
        (end <= buffer.size_bytes()).then_some(start..end)
    };
    let part = part().ok_or_else(|| {
        Status::invalid_argument(format!(
            "{} bytes from {} on are not all in a buffer of {}",
            args.transfer_size,
            args.offset,
            buffer.size_bytes()
        ))
    })?;
    let destination = caller.destination(args.dst, part.len(), "dst")?;
    let contents = buffer.array.copy_to_host_buffer(ArrayCopySemantics::ReuseInput)?;
    args.event = event::of(contents.map(move |contents| {
        let bytes = contents.as_dense().and_then(|bytes| bytes.get(part));
        let bytes = bytes.ok_or_else(|| Status::internal("an array is shorter than its shape"))?;
        destination.fill(|into| {
            into.copy_from_slice(bytes);
            Ok(())
        })
    }));
    Ok(())
}

/// `PJRT_Buffer_CopyToMemory`.
pub(crate) fn copy_to_memory(
    args: &mut ffi::PJRT_Buffer_CopyToMemory_Args,
    _: &Caller,
) -> Result<()> {
    let buffer = handle::find::<Buffer>(args.buffer)?;
    args.dst_buffer = copied(&buffer, &*memory::find(args.dst_memory)?)?;
    Ok(())
}

/// `PJRT_Buffer_CopyToDevice`: to its default memory.
pub(crate) fn copy_to_device(
    args: &mut ffi::PJRT_Buffer_CopyToDevice_Args,
    _: &Caller,
) -> Result<()> {
    let buffer = handle::find::<Buffer>(args.buffer)?;
    args.dst_buffer = copied(&buffer, &*place(std::ptr::null_mut(), args.dst_device)?)?;
    Ok(())
}

fn copied(buffer: &Buffer, memory: &memory::Memory) -> Result<*mut c_void> {
    let sharding = memory.sharding();
    let mut copies = buffer.client.runtime().copy_arrays(
        std::slice::from_ref(&buffer.array),
        Some(sharding.devices()),
        Some(sharding.memory_kind()),
        ArrayCopySemantics::AlwaysCopy,
    )?;
    let copy = copies.pop().ok_or_else(|| Status::internal("copying one array gave none"))?;
    Ok(handle::insert(Arc::new(Buffer::new(&buffer.client, copy)?)))
}

/// `PJRT_Buffer_UnsafePointer`.
pub(crate) fn unsafe_pointer(
    args: &mut ffi::PJRT_Buffer_UnsafePointer_Args,
    _: &Caller,
) -> Result<()> {
    args.buffer_pointer = handle::find::<Buffer>(args.buffer)?.address()?.expose_provenance();
    Ok(())
}

/// `PJRT_Buffer_OpaqueDeviceMemoryDataPointer`.
pub(crate) fn data_pointer(
    args: &mut ffi::PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args,
    _: &Caller,
) -> Result<()> {
    args.device_memory_ptr = handle::find::<Buffer>(args.buffer)?.address()?.cast_mut().cast();
    Ok(())
}

/// `PJRT_Buffer_IncreaseExternalReferenceCount`: the contents stay until as many decreases, even if
/// the buffer is deleted or donated.
pub(crate) fn increase_references(
    args: &mut ffi::PJRT_Buffer_IncreaseExternalReferenceCount_Args,
    _: &Caller,
) -> Result<()> {
    let buffer = handle::find::<Buffer>(args.buffer)?;
    let mut shown = buffer.shown();
    if shown.1.is_none() {
        shown.1 = Some(buffer.contents()?);
    }
    shown.0 += 1;
    Ok(())
}

/// `PJRT_Buffer_DecreaseExternalReferenceCount`.
pub(crate) fn decrease_references(
    args: &mut ffi::PJRT_Buffer_DecreaseExternalReferenceCount_Args,
    _: &Caller,
) -> Result<()> {
    let buffer = handle::find::<Buffer>(args.buffer)?;
    let mut shown = buffer.shown();
    let Some(left) = shown.0.checked_sub(1) else {
        return Err(Status::failed_precondition("the buffer has no external reference"));
    };
    shown.0 = left;
    if left == 0 {
        shown.1 = None;
    }
    Ok(())
}
