//! Events: futures of which a caller has a handle.
//!
//! The future lives on when the event is destroyed: callers destroy an event right after they have
//! asked to be told of it.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use lockstep::ifrt::{Future, Promise, Result, Status};

use crate::abi::caller::Caller;
use crate::abi::{error, ffi};
use crate::handle;

/// Something that happens once, or fails.
pub(crate) struct Event {
    future: Future<()>,
    /// Of an event that its caller makes happen.
    promise: Mutex<Option<Promise<()>>>,
}

/// An event that happens when `future` resolves, for the caller to destroy.
pub(crate) fn of(future: Future<()>) -> *mut c_void {
    handle::insert(Arc::new(Event { future, promise: Mutex::new(None) }))
}

/// `PJRT_Event_Create`: one that its caller makes happen.
pub(crate) fn create(args: &mut ffi::PJRT_Event_Create_Args, _: &Caller) -> Result<()> {
    let (promise, future) = Promise::new();
    args.event = handle::insert(Arc::new(Event { future, promise: Mutex::new(Some(promise)) }));
    Ok(())
}

/// `PJRT_Event_Set`.
pub(crate) fn set(args: &mut ffi::PJRT_Event_Set_Args, caller: &Caller) -> Result<()> {
    let event: Arc<Event> = handle::find(args.event)?;
    let outcome = match args.error_code {
        0 => Ok(()),
        code => {
            let text = caller.text(args.error_message, args.error_message_size, "error_message")?;
            Err(Status::new(error::code_from_number(code), text))
        }
    };
    let promise = event.promise.lock().unwrap_or_else(PoisonError::into_inner).take();
    match promise {
        Some(promise) => promise.set(outcome),
        None => return Err(Status::failed_precondition("the event is not the caller's to set")),
    }
    Ok(())
}

/// `PJRT_Event_Destroy`.
pub(crate) fn destroy(args: &mut ffi::PJRT_Event_Destroy_Args, _: &Caller) -> Result<()> {
    handle::remove::<Event>(args.event).map(|_| ())
}

/// `PJRT_Event_IsReady`.
pub(crate) fn is_ready(args: &mut ffi::PJRT_Event_IsReady_Args, _: &Caller) -> Result<()> {
    args.is_ready = handle::find::<Event>(args.event)?.future.is_ready().into();
    Ok(())
}

/// `PJRT_Event_Error`: what it failed with, if it did.
pub(crate) fn error(args: &mut ffi::PJRT_Event_Error_Args, _: &Caller) -> Result<()> {
    match handle::find::<Event>(args.event)?.future.peek() {
        Some(outcome) => outcome.clone(),
        None => Err(Status::failed_precondition("the event has not happened yet")),
    }
}

/// `PJRT_Event_Await`.
pub(crate) fn wait(args: &mut ffi::PJRT_Event_Await_Args, _: &Caller) -> Result<()> {
    handle::find::<Event>(args.event)?.future.wait()
}

/// `PJRT_Event_OnReady`: on this thread if it has happened, else on the one that makes it.
pub(crate) fn on_ready(args: &mut ffi::PJRT_Event_OnReady_Args, caller: &Caller) -> Result<()> {
    let event: Arc<Event> = handle::find(args.event)?;
    let callback = caller.callback(args.callback, args.user_arg)?;
    event.future.on_ready(move |outcome| callback.call(error::raise_if(outcome.clone())));
    Ok(())
}
