//! The runtime interface: what a framework may ask of Lockstep, one concept a file.
//!
//! Owns traits and plain values. Does no I/O, starts no threads and imports nothing else of
//! Lockstep's, so that every implementation (in-process, proxy, single-controller) stands behind
//! the same seam. Types here are not wire types (invariant I7).

mod dtype;
mod shape;
mod status;

pub use dtype::DType;
pub use shape::{Shape, ShapeError};
pub use status::{Code, Result, Status};
