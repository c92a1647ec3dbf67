//! Operations that are on their way into or out of StableHLO. They are in its dialect but not in
//! its specification, so constraints have no numbers.

use super::Checked;
use super::check::Check;
use crate::ifrt::DType;
use crate::stablehlo::op::Precision;

/// `broadcast`: dimensions in front.
pub(super) fn broadcast(check: &Check<'_>, sizes: &[usize]) -> Checked {
    check.counts(1, 1, 0)?;
    let operand = check.operand(0)?;
    check.result_shape(&[sizes, operand.shape.dims()].concat(), "")?;
    check.result_dtype(operand.dtype, "")
}

/// `dot`: the last dimension of a vector or matrix with the first of another.
pub(super) fn dot(check: &Check<'_>, precision: &[Precision]) -> Checked {
    check.counts(2, 1, 0)?;
    let (lhs, rhs) = (check.operand(0)?, check.operand(1)?);
    let (lhs_dims, rhs_dims) = (lhs.shape.dims(), rhs.shape.dims());
    if !precision.is_empty() {
        check.length("precision_config", precision.len(), 2, "")?;
    }
    let (Some((&left, rows)), Some((&right, columns)), true) =
        (lhs_dims.split_last(), rhs_dims.split_first(), lhs_dims.len() <= 2 && rhs_dims.len() <= 2)
    else {
        let message = format!("the operands must be vectors or matrices, found {lhs} and {rhs}");
        return Err(check.error("", message));
    };
    check.require(left == right, "", || format!("{lhs} and {rhs} cannot be multiplied"))?;
    check.equal("element type of the right operand", &lhs.dtype, &rhs.dtype, "")?;
    check.result_shape(&[rows, columns].concat(), "")
}

/// `einsum` and `unary_einsum`: `ab,bc->ac`, a letter per dimension.
pub(super) fn einsum(check: &Check<'_>, config: &str, operands: usize) -> Checked {
    check.counts(operands, 1, 0)?;
    let letters = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphabetic());
    let (inputs, output) = config.split_once("->").unwrap_or((config, ""));
    let inputs: Vec<&str> = inputs.split(',').collect();
    let is_plain = config.contains("->") && inputs.iter().all(|part| letters(part));
    // Anything else, such as `...`, is TensorFlow's to know; ranks are all that is left to check.
    if !is_plain || !letters(output) {
        return Ok(());
    }
    check.length("einsum_config", inputs.len(), operands, "")?;
    let mut sizes = Vec::new();
    for (i, part) in inputs.iter().enumerate() {
        let operand = check.operand(i)?;
        check.length(&format!("`{part}`"), part.len(), operand.shape.rank(), "")?;
        sizes.extend(part.bytes().zip(operand.shape.dims().iter().copied()));
    }
    sizes.sort_unstable();
    let clash = sizes.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1);
    if let Some(pair) = clash {
        let letter = char::from(pair[0].0);
        let message = format!("`{letter}` is both {} and {}", pair[0].1, pair[1].1);
        return Err(check.error("", message));
    }
    let size = |letter: u8| {
        let found = sizes.iter().find(|(known, _)| *known == letter).map(|(_, size)| *size);
        let letter = char::from(letter);
        found.ok_or_else(|| check.error("", format!("`{letter}` is in no operand")))
    };
    let expected = output.bytes().map(size).collect::<Checked<Vec<usize>>>()?;
    check.result_shape(&expected, "")
}

/// `torch_index_select`: slices of the operand, chosen by an index.
pub(super) fn torch_index_select(check: &Check<'_>, dimension: usize, batch: usize) -> Checked {
    check.counts(2, 1, 0)?;
    let (operand, index) = (check.operand(0)?, check.operand(1)?);
    let (dims, indices) = (operand.shape.dims(), index.shape.dims());
    check.require(index.dtype.is_integer(), "", || {
        format!("the index must be of integers, found {index}")
    })?;
    check.in_range("dim", &[dimension], dims.len(), "")?;
    check.require(batch <= dimension && batch <= indices.len(), "", || {
        format!("batch_dims = {batch} must be at most dim = {dimension}")
    })?;
    check.require(dims[..batch] == indices[..batch], "", || {
        format!("the first {batch} dimensions of {operand} and {index} differ")
    })?;
    let expected = [&dims[..dimension], &indices[batch..], &dims[dimension + 1..]].concat();
    check.result_shape(&expected, "")?;
    check.result_dtype(operand.dtype, "")
}

/// `real_dynamic_slice`: what its bounds must be is known only when it runs.
pub(super) fn real_dynamic_slice(check: &Check<'_>) -> Checked {
    check.counts(4, 1, 0)?;
    let (operand, start) = (check.operand(0)?, check.operand(1)?);
    let rank = operand.shape.rank();
    for i in 1..4 {
        let list = check.operand(i)?;
        check.equal(&format!("type of operand {i}"), start, list, "")?;
        check.require(list.dtype.is_integer() && list.shape.dims() == [rank], "", || {
            format!("operand {i} must be a list of {rank} integers, found {list}")
        })?;
    }
    check.result_dtype(operand.dtype, "")?;
    check.length("the dimensions of the result", check.result(0)?.shape.rank(), rank, "")
}

/// `set_dimension_size`.
pub(super) fn set_dimension_size(check: &Check<'_>, dimension: usize) -> Checked {
    check.counts(2, 1, 0)?;
    let (operand, size) = (check.operand(0)?, check.operand(1)?);
    check.in_range("dimension", &[dimension], operand.shape.rank(), "")?;
    check.require(size.shape.rank() == 0 && size.dtype == DType::S32, "", || {
        format!("the size must be a scalar i32, found {size}")
    })?;
    check.result_dtype(operand.dtype, "")?;
    let rank = operand.shape.rank();
    check.length("the dimensions of the result", check.result(0)?.shape.rank(), rank, "")
}
