//! Tests of reading, printing and verifying whole programs.
//!
//! `tests/data/corpus` has the programs that JAX 0.10.2 hands to a plugin, as text.

mod bytecode;
mod corpus;
mod dynamic;
mod forms;
mod linalg;
mod mutation;
mod normalization;
mod operations;
mod reading;
mod rejection;
mod sharding;
mod transfer;
mod window;

use super::{Module, OpKind, ParseError, parse, verify};

/// A module whose `main` has these parameters and this body, and returns nothing.
fn main_text(parameters: &str, body: &str) -> String {
    format!("module {{\n  func.func @main({parameters}) {{\n    {body}\n    return\n  }}\n}}\n")
}

/// Reads [`main_text`].
fn read_main(parameters: &str, body: &str) -> Result<Module, ParseError> {
    parse(&main_text(parameters, body))
}

/// The kind of the first operation of `body`, which must be right, read alike in each of the
/// forms given and print as text that reads back to the same.
fn in_all_forms(parameters: &str, forms: &[&str]) -> OpKind {
    let mut kinds = forms.iter().map(|body| {
        let module = read_main(parameters, body).unwrap_or_else(|error| panic!("{error}"));
        verify(&module).unwrap_or_else(|error| panic!("{error}"));
        let printed = module.to_string();
        let again = parse(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
        assert_eq!(again.to_string(), printed);
        let [first, again] = [&module, &again].map(|module| {
            let main = module.function("main").unwrap();
            main.ops[main.blocks[main.entry].ops[0]].kind.clone()
        });
        assert_eq!(first, again, "{printed}");
        (first, module.fingerprint())
    });
    let (kind, fingerprint) = kinds.next().unwrap();
    for (other, (_, found)) in forms.iter().skip(1).zip(kinds) {
        assert_eq!(found, fingerprint, "{other}");
    }
    kind
}
