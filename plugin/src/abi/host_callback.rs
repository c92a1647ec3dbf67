//! Functions of the host that programs call: a part of the boundary that the API does not have.
//!
//! The Python package registers one function for all, which knows by number what to call. It is the
//! process's, as Python is.

#![allow(unsafe_code, reason = "the function is foreign, and known by its address")]

use std::ffi::c_void;
use std::sync::OnceLock;

use lockstep::ifrt::{HostCallbacks, Status};

/// Given a number, the addresses of the operands and of the results: reads the former, fills the
/// latter. Writes a message of at most so many bytes and returns its length if it fails, else 0.
type Function = unsafe extern "C" fn(
    number: u64,
    operands: *const *const c_void,
    results: *const *mut c_void,
    message: *mut u8,
    room: usize,
) -> usize;

/// The longest message of a failure.
const MESSAGE_BYTES: usize = 4096;

static FUNCTION: OnceLock<Function> = OnceLock::new();

/// Registers the function that programs compiled from now on call; the first one stays. Null is
/// ignored.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn LockstepRegisterHostCallbacks(function: Option<Function>) {
    if let Some(function) = function {
        let _ = FUNCTION.set(function);
    }
}

/// What programs may call, if anything is registered.
pub(crate) fn registered() -> Option<HostCallbacks> {
    let function = *FUNCTION.get()?;
    Some(HostCallbacks::new(move |number, operands, results| {
        let operands: Vec<*const c_void> = operands.iter().map(|o| o.as_ptr().cast()).collect();
        let results: Vec<*mut c_void> = results.iter_mut().map(|r| r.as_mut_ptr().cast()).collect();
        let mut message = [0_u8; MESSAGE_BYTES];
        // SAFETY: who registered it knows from the program how large operands and results are.
        let len = unsafe {
            function(
                number,
                operands.as_ptr(),
                results.as_ptr(),
                message.as_mut_ptr(),
                MESSAGE_BYTES,
            )
        };
        match message.get(..len) {
            Some([]) => Ok(()),
            Some(text) => Err(Status::internal(String::from_utf8_lossy(text))),
            None => Err(Status::internal("a function of the host failed and did not say why")),
        }
    }))
}
