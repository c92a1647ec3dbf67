//! The bytecode reader: StableHLO portable artifacts in MLIR bytecode, versions 0 to 6.
//!
//! Owns the container, the encodings of `builtin`, `vhlo` and `sdy` attributes and types, and the
//! upgrade from the versioned dialect. What attributes mean is `build`'s, as for text; whether a
//! program is well-formed, the verifier's. Everything is decoded when first used, so what no
//! operation needs costs nothing. Whatever the bytes, reading ends in a module or in a
//! [`BytecodeError`] with a place in them; the elements of constants are copied once.

mod attribute;
mod container;
mod cursor;
mod error;
mod mesh;
mod operation;
mod pool;
mod properties;
mod resources;
mod sdy;
mod sharding_rule;
mod table;
mod types;
mod upgrade;
mod version;

pub use error::{BytecodeError, BytecodeErrorKind, Section};

use super::Module;

/// Reads a module from a StableHLO portable artifact, of StableHLO 0.9.0 to 1.17.0.
///
/// # Errors
/// When `bytes` are damaged, of another version, or use something Lockstep does not know yet.
pub fn parse_bytecode(bytes: &[u8]) -> Result<Module, BytecodeError> {
    let container = container::Container::read(bytes)?;
    operation::ModuleReader::new(&container, bytes.len()).read()
}
