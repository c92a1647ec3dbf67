//! From a program over global arrays to the program of one device.
//!
//! Owns meshes and shardings as geometry, and the step that turns a global module into an
//! ordinary one in local shapes. A program whose every step is written for one device already
//! (JAX's `shard_map` over all axes) is localized; deciding how anything else is spread is the
//! partitioner's work, which does not exist yet, so such a program is refused by operation and
//! line (invariant I10). Executes nothing, knows no processes.

mod clone;
mod error;
mod geometry;
mod inline;
mod localize;

pub use error::SpmdError;
pub use geometry::{axes_of, device_count, local_shape, position_of, shard_index};
pub use localize::{Localized, localize};

#[cfg(test)]
mod tests;
