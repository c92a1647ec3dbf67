//! The `check` dialect.

use super::Checked;
use super::check::Check;
use super::elementwise::{FLOAT_OR_COMPLEX, takes};
use crate::stablehlo::op::Expectation;

/// One value and a constant, or two values, all of one type and with no results.
pub(super) fn expect(check: &Check<'_>, expectation: &Expectation) -> Checked {
    let (values, constant) = match expectation {
        Expectation::EqConst(value) | Expectation::AlmostEqConst { value, .. } => (1, Some(value)),
        Expectation::Eq | Expectation::AlmostEq { .. } | Expectation::Close { .. } => (2, None),
    };
    check.counts(values, 0, 0)?;
    let actual = check.operand(0)?;
    if !matches!(expectation, Expectation::Eq | Expectation::EqConst(_)) {
        takes(check, FLOAT_OR_COMPLEX, actual.dtype)?;
    }
    match constant {
        Some(constant) => check.equal("type of the constant", actual, constant.ty(), "")?,
        None => check.equal("type of the expected value", actual, check.operand(1)?, "")?,
    }
    match *expectation {
        Expectation::Close { least, most } => check.require(least <= most, "", || {
            format!("no difference is at least {least} and at most {most}")
        }),
        Expectation::AlmostEq { tolerance } | Expectation::AlmostEqConst { tolerance, .. } => check
            .require(tolerance >= 0.0 && tolerance.is_finite(), "", || {
                format!("tolerance = {tolerance} must be finite and not negative")
            }),
        Expectation::Eq | Expectation::EqConst(_) => Ok(()),
    }
}
