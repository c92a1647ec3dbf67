//! Tests of reading, printing and verifying whole programs.
//!
//! `tests/data/corpus` has the programs that JAX 0.10.2 hands to a plugin, as text.

mod corpus;
mod mutation;
mod reading;
mod rejection;

use super::{Module, ParseError, parse};

/// A module whose `main` has these parameters and this body, and returns nothing.
fn main_text(parameters: &str, body: &str) -> String {
    format!("module {{\n  func.func @main({parameters}) {{\n    {body}\n    return\n  }}\n}}\n")
}

/// Reads [`main_text`].
fn read_main(parameters: &str, body: &str) -> Result<Module, ParseError> {
    parse(&main_text(parameters, body))
}
