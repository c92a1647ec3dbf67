//! Operations whose shapes are operands; what their values must be is known only when they run.

use super::Checked;
use super::check::Check;
use crate::stablehlo::op::DynamicBroadcast;

/// Operand `i` must be a list of `length` integers.
fn list(
    check: &Check<'_>,
    i: usize,
    length: usize,
    [label, constraint]: [&'static str; 2],
) -> Checked {
    let list = check.operand(i)?;
    check.require(list.dtype.is_integer() && list.shape.rank() == 1, label, || {
        format!("operand {i} must be a list of integers, found {list}")
    })?;
    check.length(&format!("operand {i}"), list.shape.num_elements(), length, constraint)
}

/// `dynamic_broadcast_in_dim`: operand, output dimensions.
pub(super) fn broadcast_in_dim(check: &Check<'_>, broadcast: &DynamicBroadcast) -> Checked {
    check.counts(2, 1, 0)?;
    let (operand, result) = (check.operand(0)?, check.result(0)?);
    let (from, to) = (operand.shape.dims(), result.shape.dims());
    let DynamicBroadcast { dimensions, known_expanding, known_nonexpanding } = broadcast;
    check.result_dtype(operand.dtype, "C1")?;
    check.length("broadcast_dimensions", dimensions.len(), from.len(), "C2")?;
    check.in_range("broadcast_dimensions", dimensions, to.len(), "C3")?;
    check.unique("broadcast_dimensions", dimensions, "C4")?;
    for (&size, &dim) in from.iter().zip(dimensions) {
        check.require(size == 1 || size == to[dim], "C5", || {
            format!("{operand} cannot be broadcast to {result} along dimension {dim}")
        })?;
    }
    list(check, 1, to.len(), ["I2", "C7"])?;
    let known = [known_expanding.as_slice(), known_nonexpanding].concat();
    check.unique("known expanding and nonexpanding dimensions", &known, "C8")?;
    check.in_range("known_expanding_dimensions", known_expanding, from.len(), "C9")?;
    check.in_range("known_nonexpanding_dimensions", known_nonexpanding, from.len(), "C10")
}

/// `dynamic_iota`: output shape.
pub(super) fn iota(check: &Check<'_>, dimension: usize) -> Checked {
    check.counts(1, 1, 0)?;
    let rank = check.result(0)?.shape.rank();
    list(check, 0, rank, ["I1", "C2"])?;
    check.in_range("iota_dimension", &[dimension], rank, "C1")
}

/// `dynamic_pad`: operand, padding value, amounts before, after and between.
pub(super) fn pad(check: &Check<'_>) -> Checked {
    check.counts(5, 1, 0)?;
    let (operand, value) = (check.operand(0)?, check.operand(1)?);
    check.equal("element type of the padding value", &operand.dtype, &value.dtype, "C1")?;
    check.result_dtype(operand.dtype, "C1")?;
    check.require(value.shape.rank() == 0, "I2", || {
        format!("the padding value must be a scalar, found {value}")
    })?;
    let rank = operand.shape.rank();
    for (i, label) in [(2, "I3"), (3, "I4"), (4, "I5")] {
        list(check, i, rank, [label, "C2"])?;
    }
    check.length("the dimensions of the result", check.result(0)?.shape.rank(), rank, "C4")
}

/// `dynamic_reshape`: operand, output shape.
pub(super) fn reshape(check: &Check<'_>) -> Checked {
    check.counts(2, 1, 0)?;
    let (operand, result) = (check.operand(0)?, check.result(0)?);
    check.result_dtype(operand.dtype, "C1")?;
    let (from, to) = (operand.shape.num_elements(), result.shape.num_elements());
    check.require(from == to, "C2", || format!("{operand} has {from} elements, {result} {to}"))?;
    list(check, 1, result.shape.rank(), ["I2", "C4"])
}
