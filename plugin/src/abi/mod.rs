//! The boundary: what crosses it, how it is read and written, and how failures are told.
//!
//! `ffi` has the structures, `call` the one way in, `caller` reads and writes the caller's
//! memory, `error` and `memory` own the two objects that callers look into. Everybody else sees
//! references, slices and [`lockstep::ifrt::Result`]s.

pub(crate) mod call;
pub(crate) mod caller;
pub(crate) mod error;
pub(crate) mod ffi;
pub(crate) mod host_callback;
pub(crate) mod key_value;
pub(crate) mod objects;
pub(crate) mod structure;
