//! Bytes that a caller reads and then gives up through a function that it is given.

use std::ffi::c_void;
use std::sync::Arc;

use crate::handle;

/// Bytes that live until their caller is done.
pub(crate) struct Serialized(Vec<u8>);

/// Where the bytes are, how many, their handle, and the function that gives them up.
pub(crate) fn lend(bytes: Vec<u8>) -> (*mut c_void, usize, *mut c_void, *mut c_void) {
    let serialized = Arc::new(Serialized(bytes));
    let (at, len) = (serialized.0.as_ptr().cast_mut().cast(), serialized.0.len());
    (at, len, handle::insert(serialized), give_up as *mut c_void)
}

extern "C" fn give_up(handle: *mut c_void) {
    // Whoever gives up twice has nothing to be told.
    let _ = handle::remove::<Serialized>(handle);
}
