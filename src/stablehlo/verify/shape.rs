//! Operations that make, move and choose elements.

use super::Checked;
use super::check::Check;
use crate::ifrt::DType;
use crate::stablehlo::Literal;

/// `constant`.
pub(super) fn constant(check: &Check<'_>, literal: &Literal) -> Checked {
    check.counts(0, 1, 0)?;
    check.equal("type of the result", literal.ty(), check.result(0)?, "C1")
}

/// `iota`.
pub(super) fn iota(check: &Check<'_>, dimension: usize) -> Checked {
    check.counts(0, 1, 0)?;
    let result = check.result(0)?;
    check.in_range("iota_dimension", &[dimension], result.shape.rank(), "C1")?;
    check.require(result.dtype != DType::Bool, "O1", || "booleans cannot count up".to_owned())
}

/// `broadcast_in_dim`.
pub(super) fn broadcast_in_dim(check: &Check<'_>, dimensions: &[usize]) -> Checked {
    check.counts(1, 1, 0)?;
    let (operand, result) = (check.operand(0)?, check.result(0)?);
    check.result_dtype(operand.dtype, "C1")?;
    check.length("broadcast_dimensions", dimensions.len(), operand.shape.rank(), "C2")?;
    check.in_range("broadcast_dimensions", dimensions, result.shape.rank(), "C3")?;
    check.unique("broadcast_dimensions", dimensions, "C4")?;
    for (dim, (&size, &to)) in operand.shape.dims().iter().zip(dimensions).enumerate() {
        let target = result.shape.dims()[to];
        check.require(size == 1 || size == target, "C5", || {
            format!("dimension {dim} of size {size} cannot become dimension {to} of size {target}")
        })?;
    }
    Ok(())
}

/// `reshape`.
pub(super) fn reshape(check: &Check<'_>) -> Checked {
    check.counts(1, 1, 0)?;
    let (operand, result) = (check.operand(0)?, check.result(0)?);
    check.result_dtype(operand.dtype, "C1")?;
    let (from, to) = (operand.shape.num_elements(), result.shape.num_elements());
    check.require(from == to, "C2", || format!("{operand} has {from} elements, {result} has {to}"))
}

/// `transpose`.
pub(super) fn transpose(check: &Check<'_>, permutation: &[usize]) -> Checked {
    check.counts(1, 1, 0)?;
    let operand = check.operand(0)?;
    check.result_dtype(operand.dtype, "C1")?;
    check.length("permutation", permutation.len(), operand.shape.rank(), "C2")?;
    check.in_range("permutation", permutation, operand.shape.rank(), "C2")?;
    check.unique("permutation", permutation, "C2")?;
    let dims = operand.shape.dims();
    check.result_shape(&permutation.iter().map(|&dim| dims[dim]).collect::<Vec<_>>(), "C3")
}

/// `slice`.
pub(super) fn slice(
    check: &Check<'_>,
    start: &[usize],
    limit: &[usize],
    strides: &[usize],
) -> Checked {
    check.counts(1, 1, 0)?;
    let operand = check.operand(0)?;
    check.result_dtype(operand.dtype, "C1")?;
    let rank = operand.shape.rank();
    check.length("start_indices", start.len(), rank, "C2")?;
    check.length("limit_indices", limit.len(), rank, "C2")?;
    check.length("strides", strides.len(), rank, "C2")?;
    let mut expected = Vec::with_capacity(rank);
    for (dim, &size) in operand.shape.dims().iter().enumerate() {
        let (start, limit, stride) = (start[dim], limit[dim], strides[dim]);
        check.require(start <= limit && limit <= size, "C3", || {
            format!("{start}:{limit} is not within dimension {dim} of size {size}")
        })?;
        check.require(stride > 0, "C4", || format!("the stride of dimension {dim} is 0"))?;
        expected.push((limit - start).div_ceil(stride));
    }
    check.result_shape(&expected, "C5")
}

/// `concatenate`.
pub(super) fn concatenate(check: &Check<'_>, dimension: usize) -> Checked {
    let count = check.data.operands.len();
    check.require(count > 0, "C3", || "it needs at least one operand".to_owned())?;
    check.counts(count, 1, 0)?;
    let inputs = check.operands(0..count)?;
    let first = inputs[0];
    check.in_range("dimension", &[dimension], first.shape.rank(), "C4")?;
    let mut size = 0_usize;
    for (i, input) in inputs.iter().enumerate() {
        let what = format!("element type of operand {i}");
        check.equal(&what, &first.dtype, &input.dtype, "C1")?;
        let (found, expected) = (input.shape.dims(), first.shape.dims());
        let alike = found.len() == expected.len()
            && found
                .iter()
                .zip(expected)
                .enumerate()
                .all(|(dim, (a, b))| dim == dimension || a == b);
        check.require(alike, "C2", || {
            format!("operand {i} is {input}, which differs from {first} not only in dimension {dimension}")
        })?;
        // The sum of sizes that exist in memory; still, nothing here may overflow.
        size = size.saturating_add(found[dimension]);
    }
    check.result_dtype(first.dtype, "C5")?;
    let mut expected = first.shape.dims().to_vec();
    expected[dimension] = size;
    check.result_shape(&expected, "C6")
}

/// `pad`.
pub(super) fn pad(check: &Check<'_>, low: &[i64], high: &[i64], interior: &[usize]) -> Checked {
    check.counts(2, 1, 0)?;
    let (operand, value) = (check.operand(0)?, check.operand(1)?);
    check.equal("element type of the padding", &operand.dtype, &value.dtype, "C1")?;
    check.result_dtype(operand.dtype, "C1")?;
    check.require(value.shape.rank() == 0, "I2", || {
        format!("the padding must be a scalar, found {value}")
    })?;
    let rank = operand.shape.rank();
    check.length("edge_padding_low", low.len(), rank, "C2")?;
    check.length("edge_padding_high", high.len(), rank, "C2")?;
    check.length("interior_padding", interior.len(), rank, "C2")?;
    let mut expected = Vec::with_capacity(rank);
    for (dim, &size) in operand.shape.dims().iter().enumerate() {
        let between = wide(size.saturating_sub(1)) * wide(interior[dim]);
        let padded = i128::from(low[dim]) + wide(size) + between + i128::from(high[dim]);
        let padded = usize::try_from(padded)
            .map_err(|_| check.error("C4", format!("dimension {dim} gets the size {padded}")))?;
        expected.push(padded);
    }
    check.result_shape(&expected, "C4")
}

/// `get_dimension_size`.
pub(super) fn get_dimension_size(check: &Check<'_>, dimension: usize) -> Checked {
    check.counts(1, 1, 0)?;
    check.in_range("dimension", &[dimension], check.operand(0)?.shape.rank(), "C1")?;
    let result = check.result(0)?;
    check.require(result.dtype == DType::S32 && result.shape.rank() == 0, "O1", || {
        format!("the result must be a scalar i32, found {result}")
    })
}

/// `reverse`.
pub(super) fn reverse(check: &Check<'_>, dimensions: &[usize]) -> Checked {
    check.counts(1, 1, 0)?;
    let operand = check.operand(0)?;
    check.equal("type of the result", operand, check.result(0)?, "C1")?;
    check.unique("dimensions", dimensions, "C2")?;
    check.in_range("dimensions", dimensions, operand.shape.rank(), "C3")
}

/// `dynamic_slice`.
pub(super) fn dynamic_slice(check: &Check<'_>, sizes: &[usize]) -> Checked {
    let operand = check.operand(0)?;
    let rank = operand.shape.rank();
    check.length("the start indices", check.data.operands.len() - 1, rank, "C2")?;
    check.counts(rank + 1, 1, 0)?;
    check.length("slice_sizes", sizes.len(), rank, "C2")?;
    start_indices(check, 1, "C3")?;
    let fits = sizes.iter().zip(operand.shape.dims()).all(|(size, dim)| size <= dim);
    check.require(fits, "C4", || {
        format!("slice_sizes = {sizes:?} is larger than {}", operand.shape)
    })?;
    check.result_dtype(operand.dtype, "C1")?;
    check.result_shape(sizes, "C5")
}

/// `dynamic_update_slice`.
pub(super) fn dynamic_update_slice(check: &Check<'_>) -> Checked {
    let (operand, update) = (check.operand(0)?, check.operand(1)?);
    let rank = operand.shape.rank();
    check.length("the start indices", check.data.operands.len() - 2, rank, "C4")?;
    check.counts(rank + 2, 1, 0)?;
    check.equal("type of the result", operand, check.result(0)?, "C1")?;
    check.equal("element type of the update", &operand.dtype, &update.dtype, "C2")?;
    check.length("the dimensions of the update", update.shape.rank(), rank, "C3")?;
    start_indices(check, 2, "C5")?;
    let fits = update.shape.dims().iter().zip(operand.shape.dims()).all(|(u, dim)| u <= dim);
    check.require(fits, "C6", || format!("the update {update} is larger than {operand}"))
}

/// Operands from `first` on are integer scalars of one type.
fn start_indices(check: &Check<'_>, first: usize, constraint: &'static str) -> Checked {
    let indices = check.operands(first..check.data.operands.len())?;
    let Some(&expected) = indices.first() else { return Ok(()) };
    for index in indices {
        check.equal("type of a start index", expected, index, constraint)?;
    }
    check.require(expected.shape.rank() == 0 && expected.dtype.is_integer(), "I2", || {
        format!("a start index must be an integer scalar, found {expected}")
    })
}

/// A size in arithmetic that cannot overflow: products of two 64-bit numbers fit.
pub(super) fn wide(size: usize) -> i128 {
    size as i128
}
