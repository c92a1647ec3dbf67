//! The text reader: MLIR's custom and generic forms, as jaxlib prints them.
//!
//! Owns syntax and names. What attributes mean is `build`'s, whether a program is well-formed the
//! verifier's. Recursive descent with a bound on depth, linear in the length of the text;
//! whatever the text, reading ends in a module or in a [`ParseError`] with a place in it.

mod attributes;
mod cursor;
mod error;
mod generic;
mod literals;
mod module;
mod operation;
mod pretty;
mod sharding;
mod types;

pub use error::{Excerpt, ParseError, ParseErrorKind};

use super::Module;

/// Reads a module.
///
/// # Errors
/// When `text` is not a module, or uses something Lockstep does not know yet.
pub fn parse(text: &str) -> Result<Module, ParseError> {
    module::ModuleReader::new(text).read()
}
