//! The one way in: arguments are copied, panics become errors, nothing unwinds into the caller.

#![allow(unsafe_code, reason = "functions of the table are called by foreign code")]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use lockstep::ifrt::{Result, Status};

use super::caller::{Caller, Versioned};
use super::{error, ffi};

/// A function of the table. Those that the API declares without a result return null here, which
/// a caller does not look at.
pub(crate) type Entry<A> = Option<unsafe extern "C" fn(*mut A) -> *mut ffi::PJRT_Error>;

/// The function of the table that does what `body` says.
///
/// `body` gets a copy of the arguments, as far as the caller's version has them, the rest zero; what
/// it writes there reaches the caller if it succeeds.
pub(crate) const fn entry<A, F>(_body: F) -> Entry<A>
where
    A: Versioned,
    F: Fn(&mut A, &Caller) -> Result<()> + Copy,
{
    const { assert!(size_of::<F>() == 0, "a function, which holds nothing") };
    Some(enter::<A, F>)
}

/// A function of the table that is not implemented.
pub(crate) unsafe extern "C" fn unimplemented<A: Versioned>(_args: *mut A) -> *mut ffi::PJRT_Error {
    let function = A::NAME.trim_end_matches("_Args");
    error::raise(Status::unimplemented(format!("{function} is not implemented by Lockstep")))
}

unsafe extern "C" fn enter<A, F>(args: *mut A) -> *mut ffi::PJRT_Error
where
    A: Versioned,
    F: Fn(&mut A, &Caller) -> Result<()> + Copy,
{
    // SAFETY: `entry` was given a value of this type, and checked that it has no bytes.
    let body: F = unsafe { std::mem::transmute_copy(&()) };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the token does not outlive this call, during which the caller lends its memory.
        let caller = unsafe { Caller::for_call() };
        let mut own: A = caller.structure(args.cast(), A::NAME)?;
        body(&mut own, &caller)?;
        caller.write_structure(args.cast(), &own);
        Ok(())
    }));
    match outcome {
        Ok(Ok(())) => null_mut(),
        Ok(Err(status)) => error::raise(status),
        Err(panic) => error::raise(Status::internal(format!(
            "{} made Lockstep panic, which is a defect to report: {}",
            A::NAME,
            message(&*panic)
        ))),
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
