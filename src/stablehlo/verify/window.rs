//! `dot_general`, `reduce` and `reduce_window`.

use super::Checked;
use super::check::{Check, scalar};
use super::shape::wide;
use crate::ifrt::DType;
use crate::stablehlo::op::{DotAlgorithm, DotGeneral, Precision, Window};
use crate::stablehlo::{TensorType, Type};

/// `dot_general`.
pub(super) fn dot_general(check: &Check<'_>, dot: &DotGeneral) -> Checked {
    check.counts(2, 1, 0)?;
    let (lhs, rhs) = (check.operand(0)?, check.operand(1)?);
    let (lhs_dims, rhs_dims) = (lhs.shape.dims(), rhs.shape.dims());
    let DotGeneral {
        lhs_batching,
        rhs_batching,
        lhs_contracting,
        rhs_contracting,
        precision,
        algorithm,
    } = dot;
    let (left, right) = (lhs_batching.len(), rhs_batching.len());
    check.length("rhs_batching_dimensions", right, left, "C1")?;
    let (left, right) = (lhs_contracting.len(), rhs_contracting.len());
    check.length("rhs_contracting_dimensions", right, left, "C2")?;
    let lhs_used = [lhs_batching.as_slice(), lhs_contracting].concat();
    let rhs_used = [rhs_batching.as_slice(), rhs_contracting].concat();
    check.unique("batching and contracting dimensions of the left", &lhs_used, "C3")?;
    check.unique("batching and contracting dimensions of the right", &rhs_used, "C4")?;
    check.in_range("lhs_batching_dimensions", lhs_batching, lhs_dims.len(), "C5")?;
    check.in_range("lhs_contracting_dimensions", lhs_contracting, lhs_dims.len(), "C6")?;
    check.in_range("rhs_batching_dimensions", rhs_batching, rhs_dims.len(), "C7")?;
    check.in_range("rhs_contracting_dimensions", rhs_contracting, rhs_dims.len(), "C8")?;
    for (what, left, right, constraint) in [
        ("batching", lhs_batching, rhs_batching, "C9"),
        ("contracting", lhs_contracting, rhs_contracting, "C10"),
    ] {
        let alike = left.iter().zip(right).all(|(&l, &r)| lhs_dims[l] == rhs_dims[r]);
        check.require(alike, constraint, || {
            format!("{what} dimensions {left:?} of {lhs} and {right:?} of {rhs} differ in size")
        })?;
    }
    if !precision.is_empty() {
        check.length("precision_config", precision.len(), 2, "C11")?;
    }
    if let Some(algorithm) = algorithm {
        dot_algorithm(check, precision, algorithm)?;
    }
    // JAX multiplies floats of two kinds, as XLA does; the specification has no such product.
    if !(lhs.dtype.is_float() && rhs.dtype.is_float()) {
        check.equal("element type of the right operand", &lhs.dtype, &rhs.dtype, "C13")?;
    }
    let batch = lhs_batching.iter().map(|&dim| lhs_dims[dim]);
    let free = |dims: &[usize], used: &[usize]| {
        let free = dims.iter().enumerate().filter(|(dim, _)| !used.contains(dim));
        free.map(|(_, &size)| size).collect::<Vec<_>>()
    };
    let lhs_free = free(lhs_dims, &lhs_used);
    let rhs_free = free(rhs_dims, &rhs_used);
    check.result_shape(&batch.chain(lhs_free).chain(rhs_free).collect::<Vec<_>>(), "C12")
}

/// `algorithm` of `dot_general`, which precisions leave no room for.
fn dot_algorithm(check: &Check<'_>, precision: &[Precision], algorithm: &DotAlgorithm) -> Checked {
    let is_default = precision.iter().all(|&precision| precision == Precision::Default);
    check.require(is_default, "C21", || {
        "an algorithm and a precision other than DEFAULT exclude each other".to_owned()
    })?;
    for (what, count, constraint) in [
        ("lhs_component_count", algorithm.lhs_components, "C22"),
        ("rhs_component_count", algorithm.rhs_components, "C23"),
        ("num_primitive_operations", algorithm.primitive_operations, "C24"),
    ] {
        check.require(count > 0, constraint, || {
            format!("{what} = {count} must be greater than 0")
        })?;
    }
    Ok(())
}

/// The inputs and init values of a reduction over several arrays at once.
fn inputs<'a>(
    check: &Check<'a>,
    counts: &'static str,
    shapes: &'static str,
    dtypes: &'static str,
) -> Checked<Vec<&'a TensorType>> {
    let operands = check.data.operands.len();
    let count = operands / 2;
    check.require(count > 0 && operands.is_multiple_of(2), counts, || {
        format!("expected inputs and as many init values, found {operands} operands")
    })?;
    check.counts(operands, count, 1)?;
    let inputs = check.operands(0..count)?;
    for (i, (input, init)) in inputs.iter().zip(check.operands(count..operands)?).enumerate() {
        check.equal(&format!("shape of input {i}"), &inputs[0].shape, &input.shape, shapes)?;
        let what = format!("element type of init value {i}");
        check.equal(&what, &input.dtype, &init.dtype, dtypes)?;
        check.require(init.shape.rank() == 0, "I2", || {
            format!("init value {i} must be a scalar, found {init}")
        })?;
    }
    Ok(inputs)
}

/// The results have the element types of the combiner, and this shape.
fn results(
    check: &Check<'_>,
    inputs: &[&TensorType],
    shape: &[usize],
    (body, shapes, types): (&'static str, &'static str, &'static str),
) -> Checked {
    let dtypes: Vec<DType> = inputs.iter().map(|input| input.dtype).collect();
    for (i, dtype) in check.combiner(0, &dtypes, body)?.into_iter().enumerate() {
        let result = check.result(i)?;
        check.require(result.shape.dims() == shape, shapes, || {
            format!("result {i} has the shape {}, expected {shape:?}", result.shape)
        })?;
        check.equal(&format!("element type of result {i}"), &dtype, &result.dtype, types)?;
    }
    Ok(())
}

/// `reduce`.
pub(super) fn reduce(check: &Check<'_>, dimensions: &[usize]) -> Checked {
    let inputs = inputs(check, "C3", "C1", "C2")?;
    let dims = inputs[0].shape.dims();
    check.in_range("dimensions", dimensions, dims.len(), "C4")?;
    check.unique("dimensions", dimensions, "C5")?;
    let kept = dims.iter().enumerate().filter(|(dim, _)| !dimensions.contains(dim));
    let kept: Vec<usize> = kept.map(|(_, &size)| size).collect();
    results(check, &inputs, &kept, ("C6", "C7", "C8"))
}

/// `reduce_window`.
pub(super) fn reduce_window(check: &Check<'_>, window: &Window) -> Checked {
    let inputs = inputs(check, "C1", "C2", "C3")?;
    let dims = inputs[0].shape.dims();
    for (what, values, length, positive) in [
        ("window_dimensions", &window.dimensions, "C4", "C5"),
        ("window_strides", &window.strides, "C6", "C7"),
        ("base_dilations", &window.base_dilations, "C8", "C9"),
        ("window_dilations", &window.window_dilations, "C10", "C11"),
    ] {
        check.length(what, values.len(), dims.len(), length)?;
        are_positive(check, what, values, positive)?;
    }
    check.length("padding", window.padding.len(), dims.len(), "C12")?;
    let mut expected = Vec::with_capacity(dims.len());
    for (dim, &size) in dims.iter().enumerate() {
        let count = num_windows(size, window.dimensions[dim], window, dim);
        let Ok(count) = usize::try_from(count) else {
            return Err(check.error("C15", format!("dimension {dim} gets {count} windows")));
        };
        expected.push(count);
    }
    results(check, &inputs, &expected, ("C13", "C15", "C16"))
}

/// `map`.
pub(super) fn map(check: &Check<'_>, dimensions: &[usize]) -> Checked {
    let count = check.data.operands.len();
    check.require(count > 0, "C2", || "it needs at least one input".to_owned())?;
    check.counts(count, 1, 1)?;
    let (inputs, result) = (check.operands(0..count)?, check.result(0)?);
    for (i, input) in inputs.iter().enumerate() {
        check.equal(&format!("shape of input {i}"), &result.shape, &input.shape, "C1")?;
    }
    let rank = result.shape.rank();
    check.require(dimensions.iter().copied().eq(0..rank), "C3", || {
        format!("dimensions = {dimensions:?} must be all {rank}, in order")
    })?;
    let arguments: Vec<Type> = inputs.iter().map(|input| scalar(input.dtype)).collect();
    check.region_type(0, &arguments, &[scalar(result.dtype)], "C4")
}

/// `select_and_scatter`.
pub(super) fn select_and_scatter(check: &Check<'_>, window: &Window) -> Checked {
    check.counts(3, 1, 2)?;
    let (operand, source, init) = (check.operand(0)?, check.operand(1)?, check.operand(2)?);
    let dims = operand.shape.dims();
    check.equal("element type of the source", &operand.dtype, &source.dtype, "C1")?;
    check.equal("element type of the init value", &operand.dtype, &init.dtype, "C3")?;
    check.require(init.shape.rank() == 0, "I3", || {
        format!("the init value must be a scalar, found {init}")
    })?;
    check.length("window_dimensions", window.dimensions.len(), dims.len(), "C4")?;
    are_positive(check, "window_dimensions", &window.dimensions, "C5")?;
    check.length("window_strides", window.strides.len(), dims.len(), "C6")?;
    are_positive(check, "window_strides", &window.strides, "C7")?;
    check.length("padding", window.padding.len(), dims.len(), "C8")?;
    let counts = dims.iter().enumerate();
    let counts = counts.map(|(dim, &size)| num_windows(size, window.dimensions[dim], window, dim));
    let counts: Vec<i128> = counts.collect();
    check.require(
        counts.iter().copied().eq(source.shape.dims().iter().map(|&n| wide(n))),
        "C2",
        || format!("the source is {source}, but there are {counts:?} windows"),
    )?;
    let element = scalar(operand.dtype);
    let arguments = [element.clone(), element];
    check.region_type(0, &arguments, &[scalar(DType::Bool)], "C9")?;
    let dtypes = check.combiner(1, &[operand.dtype], "C10")?;
    check.result_shape(dims, "C11")?;
    check.result_dtype(dtypes[0], "C12")
}

/// Every entry must be greater than 0.
pub(super) fn are_positive(
    check: &Check<'_>,
    what: &str,
    values: &[usize],
    constraint: &'static str,
) -> Checked {
    check.require(values.iter().all(|&value| value > 0), constraint, || {
        format!("{what} = {values:?} must be greater than 0")
    })
}

/// How many windows of `window_size` elements fit dimension `dim` of `size` elements.
pub(in crate::stablehlo) fn num_windows(
    size: usize,
    window_size: usize,
    window: &Window,
    dim: usize,
) -> i128 {
    let dilated = |size: usize, dilation: usize| {
        if size == 0 { 0 } else { wide(size - 1) * wide(dilation) + 1 }
    };
    let (low, high) = window.padding[dim];
    let padded = i128::from(low) + dilated(size, window.base_dilations[dim]) + i128::from(high);
    let window_size = dilated(window_size, window.window_dilations[dim]);
    if padded <= 0 || window_size > padded {
        0
    } else {
        (padded - window_size) / wide(window.strides[dim]) + 1
    }
}
