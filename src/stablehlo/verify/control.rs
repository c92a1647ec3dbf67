//! Operations with regions that are run, and what passes values through.

use super::check::{Check, scalar};
use super::{Checked, shown};
use crate::ifrt::DType;

/// `sort`.
pub(super) fn sort(check: &Check<'_>, dimension: usize) -> Checked {
    let count = check.data.operands.len();
    check.require(count > 0, "C1", || "it needs at least one operand".to_owned())?;
    check.counts(count, count, 1)?;
    let inputs = check.operands(0..count)?;
    for (i, input) in inputs.iter().enumerate() {
        check.equal(&format!("type of result {i}"), *input, check.result(i)?, "C2")?;
        check.equal(&format!("shape of input {i}"), &inputs[0].shape, &input.shape, "C3")?;
    }
    check.in_range("dimension", &[dimension], inputs[0].shape.rank(), "C4")?;
    let arguments: Vec<_> =
        inputs.iter().flat_map(|input| [scalar(input.dtype), scalar(input.dtype)]).collect();
    check.region_type(0, &arguments, &[scalar(DType::Bool)], "C5")
}

/// `while`.
pub(super) fn while_(check: &Check<'_>) -> Checked {
    let count = check.data.operands.len();
    check.counts(count, count, 2)?;
    let types = check.operand_types();
    check.region_type(0, &types, &[scalar(DType::Bool)], "C1")?;
    check.region_type(1, &types, &types, "C2")?;
    same_results(check, &types, "C3")
}

/// `if`.
pub(super) fn if_(check: &Check<'_>) -> Checked {
    check.counts(1, check.data.results.len(), 2)?;
    let predicate = check.operand(0)?;
    check.require(predicate.dtype == DType::Bool && predicate.shape.rank() == 0, "I1", || {
        format!("the predicate must be a scalar boolean, found {predicate}")
    })?;
    branches(check, ("C1", "C2", "C3"))
}

/// `case`.
pub(super) fn case(check: &Check<'_>) -> Checked {
    let count = check.data.regions.len();
    check.require(count > 0, "C1", || "it needs at least one branch".to_owned())?;
    check.counts(1, check.data.results.len(), count)?;
    let index = check.operand(0)?;
    check.require(index.dtype == DType::S32 && index.shape.rank() == 0, "I1", || {
        format!("the index must be a scalar i32, found {index}")
    })?;
    branches(check, ("C2", "C3", "C4"))
}

/// All regions take nothing and return what the operation results in.
fn branches(
    check: &Check<'_>,
    (no_arguments, same, results): (&'static str, &'static str, &'static str),
) -> Checked {
    let (_, expected) = check.region(0)?;
    for i in 0..check.data.regions.len() {
        let (arguments, returned) = check.region(i)?;
        check.require(arguments.is_empty(), no_arguments, || {
            format!("branch {i} takes {}, must take nothing", shown(&arguments))
        })?;
        check.require(returned == expected, same, || {
            format!("branch {i} returns {}, branch 0 {}", shown(&returned), shown(&expected))
        })?;
    }
    same_results(check, &expected, results)
}

/// `optimization_barrier`.
pub(super) fn optimization_barrier(check: &Check<'_>) -> Checked {
    let count = check.data.operands.len();
    check.counts(count, count, 0)?;
    same_results(check, &check.operand_types(), "C1")
}

fn same_results(
    check: &Check<'_>,
    expected: &[crate::stablehlo::Type],
    constraint: &'static str,
) -> Checked {
    let found = check.result_types();
    check.require(found == expected, constraint, || {
        format!("the results are {}, expected {}", shown(&found), shown(expected))
    })
}
