//! Programs that read well and are none: each operation's constraints, one violation at a time.

mod collective;
mod control;
mod elementwise;
mod module;
mod types;
mod window;

use super::read_main;
use crate::stablehlo::{Module, VerifyError, verify};

fn refusal(module: &Module) -> VerifyError {
    verify(module).unwrap_err()
}

/// Each body, in a `main` with these parameters, violates this constraint of the operation.
pub(super) fn refused(parameters: &str, cases: &[(&str, &str, &str)]) {
    for (op, constraint, body) in cases {
        let module = read_main(parameters, body).unwrap_or_else(|error| panic!("{error}"));
        let error = refusal(&module);
        assert_eq!(error.subject, *op, "{error}");
        assert_eq!(error.constraint.unwrap_or(""), *constraint, "{error}");
        assert!(error.to_string().starts_with(&format!("{op} at 3:")), "{error}");
        assert!(error.to_string().contains(" in @main: "), "{error}");
    }
}

/// Replaces part of a body that is right, so that it is wrong.
pub(super) fn refused_variants(
    op: &str,
    parameters: &str,
    right: &str,
    variants: &[(&str, &str, &str)],
) {
    let module = read_main(parameters, right).unwrap_or_else(|error| panic!("{error}"));
    verify(&module).unwrap_or_else(|error| panic!("{error}"));
    for (constraint, from, to) in variants {
        assert!(right.contains(from), "{from} is not in {right}");
        let body = right.replace(from, to);
        refused(parameters, &[(op, *constraint, body.as_str())]);
    }
}
