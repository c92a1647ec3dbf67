//! Lockstep: a multi-controller SPMD runtime.
//!
//! One process runs per host, every process runs the same program, and arrays span the devices
//! of all of them. The layers, bottom up:
//!
//! - [`backend`]: one process's devices, their memory and one compiled program at a time.
//! - [`ifrt`]: the runtime interface. Arrays, shardings, device lists, programs, executables.
//! - [`client`]: the implementation of [`ifrt`] for a job of one or many processes.
//!
//! [`check`] runs programs that say what they expect.
//! [`stablehlo`] holds programs, [`spmd`] turns a global program into a per-device one.
//! ARCHITECTURE.md has the code map and the numbered invariants.

#![deny(unsafe_code)]

pub mod backend;
pub mod check;
pub mod client;
pub mod ifrt;
pub mod spmd;
pub mod stablehlo;

/// What the fuzz targets of `fuzz/` call; in their builds only.
#[cfg(feature = "fuzzing")]
pub mod fuzzing {
    pub use crate::client::fuzzing as client;
}
