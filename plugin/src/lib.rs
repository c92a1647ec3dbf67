//! Lockstep behind the PJRT C API: a shared library whose `GetPjrtApi` gives JAX its devices.
//!
//! Owns the translation between that interface and [`lockstep::ifrt`], and nothing else: arrays,
//! programs and devices are a `dyn ifrt::Client`'s, of which `runtime` makes one. The way of a call:
//! `abi` copies the caller's arguments in, hands them to a function of one of the modules beside
//! it, catches what that one throws, and copies the results out.
//!
//! What a caller holds are handles, not addresses: one that was destroyed, or is of another kind, is
//! an `INVALID_ARGUMENT` that says so. Only `abi` touches memory that is not ours.

#![deny(unsafe_code)]

mod abi;
mod api;
mod attributes;
mod buffer;
mod client;
mod compile;
mod device;
mod dtype;
mod event;
mod executable;
mod execute;
mod extension;
mod handle;
mod layout;
mod memory;
mod runtime;
mod serialized;
mod topology;

#[cfg(test)]
mod tests;
