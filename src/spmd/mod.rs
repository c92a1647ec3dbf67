//! From a program over global arrays to the program of one device.
//!
//! Owns meshes and shardings as geometry, and the step that turns a global module into an
//! ordinary one in local shapes. A program whose every step is written for one device already
//! (JAX's `shard_map` over all axes) is localized; one that each device can do for its part of the
//! results alone is done so (`parts`). Deciding how anything else is spread is the partitioner's
//! work, which does not exist yet: until it does, every device computes all of such a program
//! (`replicate`), behind [`partition`]. Executes nothing, knows no processes.

mod clone;
mod error;
mod geometry;
mod gspmd;
mod inline;
mod localize;
mod parts;
mod replicate;
mod spread;
mod tokens;

pub use error::SpmdError;
pub use geometry::{axes_of, device_count, local_shape, position_of, shard_index};
pub use localize::{Localized, localize};

use crate::stablehlo::Module;

/// Turns a verified global module into the program of one device.
///
/// Where the program does not say what of the work is whose, every device makes its part of the
/// results, if it can do so alone; else every device does all of it: right, and slow. A log line says
/// so.
///
/// # Errors
/// As [`localize()`]; when a program is spread in a way that neither form has, or XLA's words for it
/// (`mhlo.sharding`) do not fit.
pub fn partition(module: &Module) -> Result<Localized, SpmdError> {
    let module = &*tokens::as_arrays(module);
    let module = &*gspmd::as_sdy(module)?;
    match localize(module) {
        Err(SpmdError::NeedsPartitioner { what, location }) => {
            if let Some(local) = parts::by_parts(module)? {
                return Ok(local);
            }
            let local = replicate::replicate(module)?;
            let name = &module.name;
            tracing::info!("every device computes all of {name}: {what}, at {location}");
            Ok(local)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
