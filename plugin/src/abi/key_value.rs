//! The framework's key-value store, where it has one: functions of its that it gave us for the
//! client's making.

#![allow(unsafe_code, reason = "the functions are foreign, and known by their addresses")]

use std::ffi::c_void;
use std::time::Duration;

use lockstep::client::{KeyValueStore, StoreError};
use lockstep::ifrt::{Code, Result, Status};

use super::caller::{Caller, Plain, Versioned};
use super::{error, ffi};

/// The store behind the functions in `PJRT_Client_Create_Args`.
pub(crate) struct Store<'a> {
    get: Function<ffi::PJRT_KeyValueGetCallback_Args>,
    get_arg: *mut c_void,
    put: Function<ffi::PJRT_KeyValuePutCallback_Args>,
    put_arg: *mut c_void,
    caller: &'a Caller,
}

type Function<A> = unsafe extern "C" fn(*mut A) -> *mut ffi::PJRT_Error;

/// What a store gives back a value with.
type Deleter = Option<unsafe extern "C" fn(*mut c_void)>;

// SAFETY: the API lets any thread call them while the client is made.
unsafe impl Sync for Store<'_> {}

impl<'a> Store<'a> {
    /// The store that the caller says there is.
    ///
    /// # Errors
    /// `FailedPrecondition` when there is none.
    pub(crate) fn new(args: &ffi::PJRT_Client_Create_Args, caller: &'a Caller) -> Result<Self> {
        if args.kv_get_callback.is_null() || args.kv_put_callback.is_null() {
            return Err(Status::new(
                Code::FailedPrecondition,
                "num_nodes is above 1, and there is no key-value store in which they could meet",
            ));
        }
        // SAFETY: with several nodes the caller gives such functions.
        let (get, put) = unsafe {
            (
                std::mem::transmute::<*mut c_void, Function<_>>(args.kv_get_callback),
                std::mem::transmute::<*mut c_void, Function<_>>(args.kv_put_callback),
            )
        };
        let (get_arg, put_arg) = (args.kv_get_user_arg, args.kv_put_user_arg);
        Ok(Self { get, get_arg, put, put_arg, caller })
    }
}

impl KeyValueStore for Store<'_> {
    fn put(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        let mut raise: RaiseError = raise;
        let mut args = ffi::PJRT_KeyValuePutCallback_Args {
            struct_size: ffi::PJRT_KeyValuePutCallback_Args::STRUCT_SIZE,
            key: key.as_ptr().cast_mut().cast(),
            key_size: key.len(),
            value: value.as_ptr().cast_mut().cast(),
            value_size: value.len(),
            callback_error: (&raw mut raise).cast(),
            user_arg: self.put_arg,
            ..Plain::ZERO
        };
        // SAFETY: what it is given outlives the call.
        error::taken(unsafe { (self.put)(&raw mut args) }).map_err(|status| in_words(&status))
    }

    fn value(&self, key: &str, timeout: Duration) -> Result<Option<Vec<u8>>, StoreError> {
        let mut raise: RaiseError = raise;
        let mut args = ffi::PJRT_KeyValueGetCallback_Args {
            struct_size: ffi::PJRT_KeyValueGetCallback_Args::STRUCT_SIZE,
            key: key.as_ptr().cast_mut().cast(),
            key_size: key.len(),
            timeout_in_ms: i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX),
            callback_error: (&raw mut raise).cast(),
            user_arg: self.get_arg,
            ..Plain::ZERO
        };
        // SAFETY: what it is given outlives the call.
        match error::taken(unsafe { (self.get)(&raw mut args) }) {
            Ok(()) => {}
            Err(status) if matches!(status.code(), Code::DeadlineExceeded | Code::NotFound) => {
                return Ok(None);
            }
            Err(status) => return Err(in_words(&status)),
        }
        let value = self.caller.bytes(args.value, args.value_size, "value").map(<[u8]>::to_vec);
        // SAFETY: the store says that it is such a function, or null, which is `None`.
        let delete =
            unsafe { std::mem::transmute::<*mut c_void, Deleter>(args.value_deleter_callback) };
        if let Some(delete) = delete {
            // SAFETY: it was given with the value, of which a copy was made.
            unsafe { delete(args.value) };
        }
        value.map(Some).map_err(|status| in_words(&status))
    }
}

fn in_words(status: &Status) -> StoreError {
    StoreError(status.to_string())
}

/// How the store makes an error, which is ours.
type RaiseError = unsafe extern "C" fn(u32, *const c_void, usize) -> *mut ffi::PJRT_Error;

unsafe extern "C" fn raise(code: u32, text: *const c_void, size: usize) -> *mut ffi::PJRT_Error {
    // SAFETY: the token does not outlive this call, during which the caller lends its memory.
    let caller = unsafe { Caller::for_call() };
    let text = caller.bytes(text, size, "message").unwrap_or_default();
    error::raise(Status::new(error::code_from_number(code), String::from_utf8_lossy(text)))
}
