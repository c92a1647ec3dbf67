//! `gather`, `dynamic_gather` and `scatter`.

use super::Checked;
use super::check::Check;
use crate::stablehlo::TensorType;
use crate::stablehlo::op::{Gather, Scatter};

/// The dimensions that are not in `removed`.
fn without(dims: &[usize], removed: &[usize]) -> Vec<usize> {
    let kept = dims.iter().enumerate().filter(|(dim, _)| !removed.contains(dim));
    kept.map(|(_, &size)| size).collect()
}

/// Puts `at_dims` at the positions `dims` of the result, and `others` at the rest, in order.
///
/// `dims` is sorted and without repetition.
fn combine(dims: &[usize], at_dims: &[usize], others: &[usize]) -> Vec<usize> {
    let (mut at_dims, mut others) = (at_dims.iter(), others.iter());
    let rank = at_dims.len() + others.len();
    let sizes = (0..rank)
        .map(|dim| if dims.binary_search(&dim).is_ok() { at_dims.next() } else { others.next() });
    sizes.flatten().copied().collect()
}

/// The indices must be integers.
fn are_indices(check: &Check<'_>, indices: &TensorType) -> Checked {
    check.require(indices.dtype.is_integer(), "I2", || {
        format!("the indices must be integers, found {indices}")
    })
}

/// `gather`.
pub(super) fn gather(check: &Check<'_>, gather: &Gather) -> Checked {
    check.counts(2, 1, 0)?;
    let (operand, indices, result) = (check.operand(0)?, check.operand(1)?, check.result(0)?);
    are_indices(check, indices)?;
    let rank = operand.shape.rank();
    let Gather {
        offset_dims,
        collapsed_slice_dims: collapsed,
        operand_batching_dims: operand_batching,
        start_indices_batching_dims: indices_batching,
        start_index_map,
        index_vector_dim,
        slice_sizes,
        ..
    } = gather;
    let parts = offset_dims.len() + collapsed.len() + operand_batching.len();
    check.length("offset, collapsed and batching dimensions", parts, rank, "C1")?;
    let indices_rank = indices.shape.rank();
    check.in_range("index_vector_dim", &[*index_vector_dim], indices_rank + 1, "C2")?;
    let index_size = indices.shape.dims().get(*index_vector_dim).copied().unwrap_or(1);
    check.length("start_index_map", start_index_map.len(), index_size, "C3")?;
    check.unique("offset_dims", offset_dims, "C4")?;
    check.sorted("offset_dims", offset_dims, "C4")?;
    check.in_range("offset_dims", offset_dims, result.shape.rank(), "C5")?;
    let removed = [collapsed.as_slice(), operand_batching].concat();
    check.unique("collapsed_slice_dims and operand_batching_dims", &removed, "C6")?;
    check.sorted("collapsed_slice_dims", collapsed, "C7")?;
    check.in_range("collapsed_slice_dims", collapsed, rank, "C8")?;
    check.sorted("operand_batching_dims", operand_batching, "C10")?;
    check.in_range("operand_batching_dims", operand_batching, rank, "C11")?;
    check.unique("start_indices_batching_dims", indices_batching, "C13")?;
    check.in_range("start_indices_batching_dims", indices_batching, indices_rank, "C14")?;
    check.require(!indices_batching.contains(index_vector_dim), "C15", || {
        format!("index_vector_dim = {index_vector_dim} is a batching dimension")
    })?;
    let batching = (operand_batching.as_slice(), indices_batching.as_slice());
    same_batching(check, operand, indices, batching, ("C16", "C17"))?;
    let mapped = [start_index_map.as_slice(), operand_batching].concat();
    check.unique("start_index_map and operand_batching_dims", &mapped, "C18")?;
    check.in_range("start_index_map", start_index_map, rank, "C19")?;
    check.length("slice_sizes", slice_sizes.len(), rank, "C20")?;
    let fits = slice_sizes.iter().zip(operand.shape.dims()).all(|(size, dim)| size <= dim);
    check.require(fits, "C21", || {
        format!("slice_sizes = {slice_sizes:?} is larger than {}", operand.shape)
    })?;
    for (dims, constraint) in [(collapsed, "C9"), (operand_batching, "C12")] {
        check.require(dims.iter().all(|&dim| slice_sizes[dim] <= 1), constraint, || {
            format!("slice_sizes = {slice_sizes:?} must be at most 1 at {dims:?}")
        })?;
    }
    let batch = without(indices.shape.dims(), &[*index_vector_dim]);
    let offsets = without(slice_sizes, &removed);
    check.result_shape(&combine(offset_dims, &offsets, &batch), "C22")?;
    check.result_dtype(operand.dtype, "C23")
}

/// `dynamic_gather`: the sizes of the slices, and with them the shape of the result, are known
/// when it runs.
pub(super) fn dynamic_gather(check: &Check<'_>, gather: &Gather) -> Checked {
    check.counts(3, 1, 0)?;
    let (operand, indices, result) = (check.operand(0)?, check.operand(1)?, check.result(0)?);
    are_indices(check, indices)?;
    let sizes = check.operand(2)?;
    check.require(sizes.dtype.is_integer() && sizes.shape.rank() == 1, "I3", || {
        format!("the slice sizes must be a list of integers, found {sizes}")
    })?;
    let (rank, indices_rank) = (operand.shape.rank(), indices.shape.rank());
    let Gather {
        offset_dims,
        collapsed_slice_dims: collapsed,
        operand_batching_dims: operand_batching,
        start_indices_batching_dims: indices_batching,
        start_index_map,
        index_vector_dim,
        ..
    } = gather;
    let parts = offset_dims.len() + collapsed.len() + operand_batching.len();
    check.length("offset, collapsed and batching dimensions", parts, rank, "C1")?;
    check.in_range("index_vector_dim", &[*index_vector_dim], indices_rank + 1, "C2")?;
    let index_size = indices.shape.dims().get(*index_vector_dim).copied().unwrap_or(1);
    check.length("start_index_map", start_index_map.len(), index_size, "C3")?;
    check.unique("offset_dims", offset_dims, "C4")?;
    check.sorted("offset_dims", offset_dims, "C4")?;
    check.in_range("offset_dims", offset_dims, result.shape.rank(), "C5")?;
    let removed = [collapsed.as_slice(), operand_batching].concat();
    check.unique("collapsed_slice_dims and operand_batching_dims", &removed, "C6")?;
    check.sorted("collapsed_slice_dims", collapsed, "C6")?;
    check.in_range("collapsed_slice_dims", &removed, rank, "C7")?;
    check.in_range("start_indices_batching_dims", indices_batching, indices_rank, "")?;
    let batching = (operand_batching.as_slice(), indices_batching.as_slice());
    same_batching(check, operand, indices, batching, ("", ""))?;
    check.unique("start_index_map", start_index_map, "C9")?;
    check.in_range("start_index_map", start_index_map, rank, "C10")?;
    check.length("the slice sizes", sizes.shape.num_elements(), rank, "C11")?;
    let batch = indices_rank - usize::from(*index_vector_dim < indices_rank);
    let expected = batch + offset_dims.len();
    check.length("the dimensions of the result", result.shape.rank(), expected, "C13")?;
    let found = result.shape.dims().iter().enumerate();
    let found = found.filter(|(dim, _)| !offset_dims.contains(dim)).map(|(_, size)| size);
    let expected = indices.shape.dims().iter().enumerate();
    let expected = expected.filter(|(dim, _)| dim != index_vector_dim).map(|(_, size)| size);
    check.require(found.eq(expected), "C13", || {
        format!("the dimensions of {result} that are no offsets must be those of {indices}")
    })?;
    check.result_dtype(operand.dtype, "C14")
}

/// Batching dimensions of operand and indices pair up and have the same sizes.
fn same_batching(
    check: &Check<'_>,
    operand: &TensorType,
    indices: &TensorType,
    (operand_dims, indices_dims): (&[usize], &[usize]),
    (count, sizes): (&'static str, &'static str),
) -> Checked {
    check.length(
        "the batching dimensions of the indices",
        indices_dims.len(),
        operand_dims.len(),
        count,
    )?;
    let alike = operand_dims
        .iter()
        .zip(indices_dims)
        .all(|(&a, &b)| operand.shape.dims()[a] == indices.shape.dims()[b]);
    check.require(alike, sizes, || {
        format!(
            "the batching dimensions {operand_dims:?} of {operand} and {indices_dims:?} of {indices} differ"
        )
    })
}

/// `scatter`.
pub(super) fn scatter(check: &Check<'_>, scatter: &Scatter) -> Checked {
    let operands = check.data.operands.len();
    let count = operands / 2;
    check.require(count > 0 && operands % 2 == 1, "C5", || {
        format!("expected inputs, indices and as many updates, found {operands} operands")
    })?;
    check.counts(operands, count, 1)?;
    let inputs = check.operands(0..count)?;
    let indices = check.operand(count)?;
    let updates = check.operands(count + 1..operands)?;
    are_indices(check, indices)?;
    let (input, update) = (inputs[0], updates[0]);
    for (i, (other_input, other_update)) in inputs.iter().zip(&updates).enumerate() {
        check.equal(&format!("shape of input {i}"), &input.shape, &other_input.shape, "C1")?;
        check.equal(&format!("shape of update {i}"), &update.shape, &other_update.shape, "C3")?;
        let what = format!("element type of update {i}");
        check.equal(&what, &other_input.dtype, &other_update.dtype, "C6")?;
    }
    dimensions(check, scatter, input, indices, update)?;
    let dtypes: Vec<_> = inputs.iter().map(|input| input.dtype).collect();
    let combined = check.combiner(0, &dtypes, "C23")?;
    for (i, &dtype) in combined.iter().enumerate() {
        let result = check.result(i)?;
        check.equal(&format!("shape of result {i}"), &input.shape, &result.shape, "C24")?;
        check.equal(&format!("element type of result {i}"), &dtype, &result.dtype, "C25")?;
    }
    Ok(())
}

fn dimensions(
    check: &Check<'_>,
    scatter: &Scatter,
    input: &TensorType,
    indices: &TensorType,
    update: &TensorType,
) -> Checked {
    let Scatter {
        update_window_dims: window,
        inserted_window_dims: inserted,
        input_batching_dims: input_batching,
        scatter_indices_batching_dims: indices_batching,
        scatter_dims_to_operand_dims: to_operand,
        index_vector_dim,
        ..
    } = scatter;
    let (rank, indices_rank) = (input.shape.rank(), indices.shape.rank());
    let parts = window.len() + inserted.len() + input_batching.len();
    check.length("window, inserted and batching dimensions", parts, rank, "C2")?;
    check.unique("update_window_dims", window, "C7")?;
    check.sorted("update_window_dims", window, "C7")?;
    check.in_range("update_window_dims", window, update.shape.rank(), "C8")?;
    let removed = [inserted.as_slice(), input_batching].concat();
    check.unique("inserted_window_dims and input_batching_dims", &removed, "C9")?;
    check.sorted("inserted_window_dims", inserted, "C10")?;
    check.in_range("inserted_window_dims", inserted, rank, "C11")?;
    check.sorted("input_batching_dims", input_batching, "C12")?;
    check.in_range("input_batching_dims", input_batching, rank, "C13")?;
    check.unique("scatter_indices_batching_dims", indices_batching, "C14")?;
    check.in_range("scatter_indices_batching_dims", indices_batching, indices_rank, "C15")?;
    check.require(!indices_batching.contains(index_vector_dim), "C16", || {
        format!("index_vector_dim = {index_vector_dim} is a batching dimension")
    })?;
    let batching = (input_batching.as_slice(), indices_batching.as_slice());
    same_batching(check, input, indices, batching, ("C17", "C18"))?;
    check.in_range("index_vector_dim", &[*index_vector_dim], indices_rank + 1, "C22")?;
    let index_size = indices.shape.dims().get(*index_vector_dim).copied().unwrap_or(1);
    check.length("scatter_dims_to_operand_dims", to_operand.len(), index_size, "C19")?;
    let mapped = [to_operand.as_slice(), input_batching].concat();
    check.unique("scatter_dims_to_operand_dims and input_batching_dims", &mapped, "C20")?;
    check.in_range("scatter_dims_to_operand_dims", to_operand, rank, "C21")?;
    let scattered = without(indices.shape.dims(), &[*index_vector_dim]);
    let bounds = without(input.shape.dims(), &removed);
    let dims = update.shape.dims();
    let windows: Vec<usize> = window.iter().map(|&dim| dims[dim]).collect();
    let fits = windows.iter().zip(&bounds).all(|(size, bound)| size <= bound);
    check.require(fits && dims == combine(window, &windows, &scattered), "C4", || {
        format!("the updates {update} do not fit {scattered:?} windows of at most {bounds:?}")
    })
}
