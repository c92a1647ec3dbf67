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
mod resources;
mod sharding;
mod sharding_rule;
mod types;

pub use error::{Excerpt, ParseError, ParseErrorKind};

use super::Module;

/// Between two modules of one text.
const SEPARATOR: &str = "// -----";

/// Reads a module.
///
/// # Errors
/// When `text` is not a module, or uses something Lockstep does not know yet.
pub fn parse(text: &str) -> Result<Module, ParseError> {
    module::ModuleReader::new(cursor::Cursor::new(text))?.read()
}

/// Reads every module of a text in which lines that begin with `// -----` stand between modules;
/// places are those in the whole text.
///
/// # Errors
/// When one of them is not a module, or uses something Lockstep does not know yet.
pub fn parse_all(text: &str) -> Result<Vec<Module>, ParseError> {
    parse_each(text).collect()
}

/// As [`parse_all`], with an answer for each module of its own.
pub fn parse_each(text: &str) -> impl Iterator<Item = Result<Module, ParseError>> {
    let whole = cursor::Cursor::new(text);
    parts(text).map(move |(start, end)| module::ModuleReader::new(whole.part(start, end))?.read())
}

/// Where each module of a text begins and ends.
fn parts(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut start = Some(0);
    std::iter::from_fn(move || {
        let from = start?;
        let mut end = from;
        for line in text[from..].split_inclusive('\n') {
            if line.starts_with(SEPARATOR) {
                start = Some(end + line.len());
                return Some((from, end));
            }
            end += line.len();
        }
        start = None;
        Some((from, end))
    })
}
