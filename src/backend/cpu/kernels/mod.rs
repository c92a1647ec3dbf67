//! The kernels: loops over flat memory, one operation family a file.
//!
//! A kernel knows shapes and element types, and nothing of programs, slots or devices. It is
//! built once, when a program is compiled, and run many times.

pub(super) mod batch_norm;
pub(super) mod bitcast;
pub(super) mod carrier;
pub(super) mod compare;
mod complex;
mod complex_math;
pub(super) mod convert;
pub(super) mod cumulative;
pub(super) mod dot;
pub(super) mod dynamic_slice;
pub(super) mod element;
pub(super) mod elementwise;
pub(super) mod fft;
pub(super) mod fold;
pub(super) mod gather;
pub(super) mod index;
pub(super) mod iota;
pub(super) mod linalg;
pub(super) mod map;
pub(super) mod math;
mod minifloat;
mod narrow;
pub(super) mod pad;
pub(super) mod random;
pub(super) mod reduce;
pub(super) mod scalar;
pub(super) mod scalar_loop;
pub(super) mod scatter;
pub(super) mod select_and_scatter;
pub(super) mod shape;
mod simd;
pub(super) mod sort;
pub(super) mod sort_key;
pub(super) mod special;
pub(super) mod transfer;
