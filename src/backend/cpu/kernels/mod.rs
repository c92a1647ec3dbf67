//! The kernels: loops over flat memory, one operation family a file.
//!
//! A kernel knows shapes and element types, and nothing of programs, slots or devices. It is
//! built once, when a program is compiled, and run many times.

pub(super) mod compare;
pub(super) mod convert;
pub(super) mod element;
pub(super) mod elementwise;
pub(super) mod iota;
pub(super) mod math;
pub(super) mod shape;
