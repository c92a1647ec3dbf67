//! The `check` and the `interpreter` dialect.

use super::check::Check;
use super::elementwise::{FLOAT_OR_COMPLEX, takes};
use super::{Checked, shown};
use crate::stablehlo::op::{Expectation, Interpretation};
use crate::stablehlo::{Function, Type};

/// One value and a constant, or two values, all of one type and with no results.
pub(super) fn expect(check: &Check<'_>, expectation: &Expectation) -> Checked {
    let (values, constant) = match expectation {
        Expectation::SerializedEq { .. } => {
            check.counts(1, 0, 0)?;
            return check.operand(0).map(|_| ());
        }
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
        Expectation::Eq | Expectation::EqConst(_) | Expectation::SerializedEq { .. } => Ok(()),
    }
}

/// Programs that exist, on the operands and for the results that are all of theirs; or one value.
pub(super) fn interpret(check: &Check<'_>, interpretation: &Interpretation) -> Checked {
    let (programs, infeed) = match interpretation {
        Interpretation::RunParallel { programs, infeed } => (programs, infeed),
        Interpretation::Print => return check.counts(1, 0, 0),
        Interpretation::Probe { .. } => {
            check.counts(1, 1, 0)?;
            return check.equal("type of the result", check.operand(0)?, check.result(0)?, "");
        }
    };
    let partitions = programs.first().map_or(0, Vec::len);
    let is_grid = partitions > 0 && programs.iter().all(|replica| replica.len() == partitions);
    check.require(is_grid, "", || {
        "programs must be as many for each replica, and at least one".to_owned()
    })?;
    let (mut operands, mut results) = (Vec::new(), Vec::new());
    for name in programs.iter().flatten() {
        let function = function(check, name)?;
        operands.extend(params(function));
        results.extend(function.results.iter().map(|result| result.ty.clone()));
    }
    for (what, expected, found) in
        [("operands", operands, check.operand_types()), ("results", results, check.result_types())]
    {
        check.require(expected == found, "", || {
            format!("the {what} of all programs are {}, found {}", shown(&expected), shown(&found))
        })?;
    }
    for name in infeed {
        let function = function(check, name)?;
        check.require(function.params.is_empty(), "", || {
            format!("@{name} takes operands, which an infeed does not give")
        })?;
    }
    Ok(())
}

fn function<'a>(check: &Check<'a>, name: &str) -> Checked<&'a Function> {
    let function = check.functions.get(name).copied();
    function.ok_or_else(|| check.error("", format!("there is no function @{name}")))
}

fn params(function: &Function) -> impl Iterator<Item = Type> {
    let values = function.params.iter().filter_map(|param| function.values.get(param.value));
    values.map(|value| value.ty.clone())
}
