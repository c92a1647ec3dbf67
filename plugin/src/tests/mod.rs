//! The table, called as C calls it: through its addresses, with structures of the caller's.

#![allow(unsafe_code, reason = "functions of the table take addresses")]

mod boundary;
mod programs;

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::abi::call::Entry;
use crate::abi::caller::{Plain, Versioned};
use crate::abi::ffi::{self, PJRT_Api};
use crate::api::GetPjrtApi;

/// The table of the plugin.
fn api() -> PJRT_Api {
    // SAFETY: the table lives as long as the process.
    unsafe { *GetPjrtApi().cast::<PJRT_Api>() }
}

/// Arguments of which all but the size is zero.
fn new<A: Versioned>() -> A {
    let mut args = A::ZERO;
    // SAFETY: a versioned structure starts with its size.
    unsafe { (&raw mut args).cast::<usize>().write(A::STRUCT_SIZE) };
    args
}

/// Calls a function of the table; a failure as its code and message.
fn call<A: Versioned>(entry: Entry<A>, args: &mut A) -> Result<(), (u32, String)> {
    // SAFETY: the arguments are a structure of the function's.
    outcome(unsafe { entry.expect("no slot is empty")(args) })
}

/// Takes an error apart and destroys it.
fn outcome(error: *mut ffi::PJRT_Error) -> Result<(), (u32, String)> {
    if error.is_null() {
        return Ok(());
    }
    let api = api();
    let mut code = ffi::PJRT_Error_GetCode_Args { error: error.cast(), ..new() };
    call(api.PJRT_Error_GetCode, &mut code).unwrap();
    let mut message = ffi::PJRT_Error_Message_Args { error: error.cast(), ..new() };
    call(api.PJRT_Error_Message, &mut message).unwrap();
    let text = text(message.message, message.message_size);
    let mut destroy = ffi::PJRT_Error_Destroy_Args { error: error.cast(), ..new() };
    call(api.PJRT_Error_Destroy, &mut destroy).unwrap();
    Err((code.code, text))
}

fn text(at: *mut c_void, size: usize) -> String {
    String::from_utf8(list(at, size)).unwrap()
}

/// A copy of what the plugin shows.
fn list<T: Plain>(at: *mut c_void, count: usize) -> Vec<T> {
    // SAFETY: the plugin says that so many are there.
    (0..count).map(|i| unsafe { at.cast::<T>().add(i).read_unaligned() }).collect()
}

/// A client of this process with so many devices, destroyed with this.
struct Client {
    client: *mut c_void,
    devices: Vec<*mut c_void>,
}

impl Client {
    fn new(num_devices: i64) -> Self {
        let name = "num_devices";
        let option = ffi::PJRT_NamedValue {
            name: name.as_ptr().cast_mut().cast(),
            name_size: name.len(),
            r#type: ffi::named_value::INT64,
            value: num_devices.cast_unsigned(),
            value_size: 1,
            ..new()
        };
        let mut create = ffi::PJRT_Client_Create_Args {
            create_options: (&raw const option).cast_mut().cast(),
            num_options: 1,
            ..new()
        };
        call(api().PJRT_Client_Create, &mut create).unwrap();
        let mut devices =
            ffi::PJRT_Client_AddressableDevices_Args { client: create.client, ..new() };
        call(api().PJRT_Client_AddressableDevices, &mut devices).unwrap();
        let devices = list(devices.addressable_devices, devices.num_addressable_devices);
        Self { client: create.client, devices }
    }

    /// A buffer of these numbers on a device.
    fn buffer(&self, device: usize, dims: &[i64], numbers: &[f32]) -> *mut c_void {
        self.strided(device, dims, numbers, &[]).unwrap()
    }

    /// The same with byte strides, if there are any, from the first number on.
    fn strided(
        &self,
        device: usize,
        dims: &[i64],
        numbers: &[f32],
        strides: &[i64],
    ) -> Result<*mut c_void, (u32, String)> {
        let strides_at =
            if strides.is_empty() { null_mut() } else { strides.as_ptr().cast_mut().cast() };
        let mut args = ffi::PJRT_Client_BufferFromHostBuffer_Args {
            client: self.client,
            data: numbers.as_ptr().cast_mut().cast(),
            r#type: ffi::buffer_type::F32,
            dims: dims.as_ptr().cast_mut().cast(),
            num_dims: dims.len(),
            byte_strides: strides_at,
            num_byte_strides: strides.len(),
            host_buffer_semantics: ffi::semantics::IMMUTABLE_ZERO_COPY,
            device: self.devices[device],
            ..new()
        };
        call(api().PJRT_Client_BufferFromHostBuffer, &mut args)?;
        let mut done = ffi::PJRT_Event_Destroy_Args { event: args.done_with_host_buffer, ..new() };
        call(api().PJRT_Event_Destroy, &mut done)?;
        Ok(args.buffer)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let mut args = ffi::PJRT_Client_Destroy_Args { client: self.client, ..new() };
        call(api().PJRT_Client_Destroy, &mut args).unwrap();
    }
}

/// The numbers of a buffer, or why there are none.
fn numbers(buffer: *mut c_void) -> Result<Vec<f32>, (u32, String)> {
    let mut args = ffi::PJRT_Buffer_ToHostBuffer_Args { src: buffer, ..new() };
    call(api().PJRT_Buffer_ToHostBuffer, &mut args)?;
    let mut numbers = vec![0.0_f32; args.dst_size / 4];
    args.dst = numbers.as_mut_ptr().cast();
    call(api().PJRT_Buffer_ToHostBuffer, &mut args)?;
    if args.dst_size > 0 {
        await_event(args.event)?;
    }
    Ok(numbers)
}

/// Waits for an event and destroys it.
fn await_event(event: *mut c_void) -> Result<(), (u32, String)> {
    let outcome = call(api().PJRT_Event_Await, &mut ffi::PJRT_Event_Await_Args { event, ..new() });
    call(api().PJRT_Event_Destroy, &mut ffi::PJRT_Event_Destroy_Args { event, ..new() })?;
    outcome
}
