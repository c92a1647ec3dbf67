//! `PJRT_Error`: a status that the caller owns.
//!
//! Newer callers look into the object itself, whose first word is the address of a table of
//! functions; older ones ask the API's.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

use lockstep::ifrt::{Code, Result, Status};

use super::caller::{Caller, Shared};
use super::ffi;
use super::objects::Objects;

/// What a caller sees of a status.
#[repr(C)]
struct Error {
    vtable: Shared<*const FunctionTable>,
    status: Status,
}

/// `PJRT_Error_FunctionTable`, with its functions' types.
#[repr(C)]
struct FunctionTable {
    struct_size: usize,
    instance_size: usize,
    extension_start: Shared<*mut c_void>,
    destroy: extern "C" fn(*mut ffi::PJRT_Error),
    message: extern "C" fn(*const ffi::PJRT_Error, *mut c_void, *mut c_void),
    code: extern "C" fn(*const ffi::PJRT_Error) -> i32,
    for_each_payload: extern "C" fn(*const ffi::PJRT_Error, *mut c_void, *mut c_void),
}

const _: () = assert!(size_of::<FunctionTable>() == size_of::<ffi::PJRT_Error_FunctionTable>());

static FUNCTIONS: FunctionTable = FunctionTable {
    struct_size: size_of::<FunctionTable>(),
    instance_size: size_of::<ffi::PJRT_Error>(),
    extension_start: Shared(null_mut()),
    destroy: destroy_object,
    message: message_of_object,
    code: code_of_object,
    for_each_payload: no_payloads,
};

static ERRORS: Objects<Error> = Objects::new();

/// Gives a failure to the caller, who destroys it.
pub(crate) fn raise(status: Status) -> *mut ffi::PJRT_Error {
    ERRORS.insert(Arc::new(Error { vtable: Shared(&raw const FUNCTIONS), status })).cast()
}

/// The error behind an outcome; null for success.
pub(crate) fn raise_if(outcome: Result<()>) -> *mut ffi::PJRT_Error {
    outcome.map_or_else(raise, |()| null_mut())
}

/// The outcome behind an error that comes back to us, after which it is none; null is success.
pub(crate) fn taken(error: *mut ffi::PJRT_Error) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    match ERRORS.remove(error.cast()) {
        Some(error) => Err(error.status.clone()),
        None => Err(Status::internal("a function of the caller's failed with an error not ours")),
    }
}

fn lookup(error: *const c_void) -> Result<Arc<Error>> {
    let found = ERRORS.find(error);
    found.ok_or_else(|| Status::invalid_argument("this is no error, or was destroyed"))
}

/// `PJRT_Error_Destroy`: nothing happens to what is no error.
pub(crate) fn destroy(args: &mut ffi::PJRT_Error_Destroy_Args, _: &Caller) -> Result<()> {
    ERRORS.remove(args.error);
    Ok(())
}

/// `PJRT_Error_Message`.
pub(crate) fn message(args: &mut ffi::PJRT_Error_Message_Args, _: &Caller) -> Result<()> {
    let error = lookup(args.error)?;
    let text = error.status.message();
    (args.message, args.message_size) = (text.as_ptr().cast_mut().cast(), text.len());
    Ok(())
}

/// `PJRT_Error_GetCode`.
pub(crate) fn code(args: &mut ffi::PJRT_Error_GetCode_Args, _: &Caller) -> Result<()> {
    args.code = code_number(&lookup(args.error)?.status);
    Ok(())
}

/// `PJRT_Error_ForEachPayload`: there are none.
pub(crate) fn for_each_payload(
    args: &mut ffi::PJRT_Error_ForEachPayload_Args,
    _: &Caller,
) -> Result<()> {
    lookup(args.error).map(|_| ())
}

fn code_number(status: &Status) -> u32 {
    u32::from(status.code() as u8)
}

extern "C" fn destroy_object(error: *mut ffi::PJRT_Error) {
    ERRORS.remove(error.cast());
}

extern "C" fn message_of_object(
    error: *const ffi::PJRT_Error,
    text: *mut c_void,
    size: *mut c_void,
) {
    let error = ERRORS.find(error.cast());
    let message = error.as_ref().map_or("", |error| error.status.message());
    super::caller::write(text, message.as_ptr().cast_mut().cast::<c_void>());
    super::caller::write(size, message.len());
}

extern "C" fn code_of_object(error: *const ffi::PJRT_Error) -> i32 {
    ERRORS.find(error.cast()).map_or(0, |error| i32::from(error.status.code() as u8))
}

extern "C" fn no_payloads(_: *const ffi::PJRT_Error, _: *mut c_void, _: *mut c_void) {}

/// The code with this number; `Unknown` for one that there is not.
pub(crate) fn code_from_number(number: u32) -> Code {
    const CODES: [Code; 16] = [
        Code::Cancelled,
        Code::Unknown,
        Code::InvalidArgument,
        Code::DeadlineExceeded,
        Code::NotFound,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::ResourceExhausted,
        Code::FailedPrecondition,
        Code::Aborted,
        Code::OutOfRange,
        Code::Unimplemented,
        Code::Internal,
        Code::Unavailable,
        Code::DataLoss,
        Code::Unauthenticated,
    ];
    CODES.into_iter().find(|code| *code as u32 == number).unwrap_or(Code::Unknown)
}
