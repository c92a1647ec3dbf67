//! `convolution` and `dynamic_conv`.

use super::Checked;
use super::check::{Check, is_promotable};
use super::window::{are_positive, num_windows};
use crate::stablehlo::op::Convolution;

/// `convolution`.
pub(super) fn convolution(check: &Check<'_>, convolution: &Convolution) -> Checked {
    check.counts(2, 1, 0)?;
    let rank = operands(check, convolution)?;
    check.length("padding", convolution.window.padding.len(), rank - 2, "C4")?;
    let (lhs, result) = (check.operand(0)?, check.result(0)?);
    // JAX sums integers in floats, as XLA does, beyond the specification.
    let is_summed = lhs.dtype.is_integer() && result.dtype.is_float();
    check.require(is_summed || is_promotable(lhs.dtype, result.dtype), "C27", || {
        format!("{} cannot be accumulated in {}", lhs.dtype, result.dtype)
    })?;
    result_shape(check, convolution, rank)
}

/// `dynamic_conv`: the padding, and with it the shape of the result, is known when it runs.
pub(super) fn dynamic_conv(check: &Check<'_>, convolution: &Convolution) -> Checked {
    check.counts(3, 1, 0)?;
    let rank = operands(check, convolution)?;
    let padding = check.operand(2)?;
    check.require(padding.dtype.is_integer() && padding.shape.rank() == 2, "I3", || {
        format!("the padding must be a matrix of integers, found {padding}")
    })?;
    check.require(padding.shape.dims() == [rank - 2, 2], "C4", || {
        format!("the padding must have the shape {:?}, found {padding}", [rank - 2, 2])
    })?;
    check.result_dtype(check.operand(0)?.dtype, "C27")
}

/// What both have: operands, window and dimensions that fit. Answers the rank.
fn operands(check: &Check<'_>, convolution: &Convolution) -> Checked<usize> {
    let (lhs, rhs, result) = (check.operand(0)?, check.operand(1)?, check.result(0)?);
    let rank = lhs.shape.rank();
    check.length("the dimensions of the right operand", rhs.shape.rank(), rank, "C1")?;
    check.require(rank >= 2, "C1", || format!("{lhs} has no batch and feature dimensions"))?;
    check.length("the dimensions of the result", result.shape.rank(), rank, "C26")?;
    window(check, convolution, rank - 2)?;
    dimensions(check, convolution, rank)?;
    groups(check, convolution)?;
    check.equal("element type of the right operand", &lhs.dtype, &rhs.dtype, "C27")?;
    Ok(rank)
}

fn window(check: &Check<'_>, convolution: &Convolution, spatial: usize) -> Checked {
    let window = &convolution.window;
    for (what, values, length, positive) in [
        ("window_strides", &window.strides, "C2", "C3"),
        ("lhs_dilation", &window.base_dilations, "C5", "C6"),
        ("rhs_dilation", &window.window_dilations, "C7", "C8"),
    ] {
        check.length(what, values.len(), spatial, length)?;
        are_positive(check, what, values, positive)?;
    }
    check.length("window_reversal", convolution.window_reversal.len(), spatial, "C9")
}

fn dimensions(check: &Check<'_>, convolution: &Convolution, rank: usize) -> Checked {
    let Convolution {
        input_batch_dimension,
        input_feature_dimension,
        input_spatial_dimensions,
        kernel_input_feature_dimension,
        kernel_output_feature_dimension,
        kernel_spatial_dimensions,
        output_batch_dimension,
        output_feature_dimension,
        output_spatial_dimensions,
        ..
    } = convolution;
    for (what, spatial, first, second, length, range) in [
        (
            "the input dimensions",
            input_spatial_dimensions,
            *input_batch_dimension,
            *input_feature_dimension,
            "C12",
            "C13",
        ),
        (
            "the kernel dimensions",
            kernel_spatial_dimensions,
            *kernel_input_feature_dimension,
            *kernel_output_feature_dimension,
            "C17",
            "C18",
        ),
        (
            "the output dimensions",
            output_spatial_dimensions,
            *output_batch_dimension,
            *output_feature_dimension,
            "C19",
            "C20",
        ),
    ] {
        check.length(what, spatial.len() + 2, rank, length)?;
        let dims = [spatial.as_slice(), &[first, second]].concat();
        check.unique(what, &dims, range)?;
        check.in_range(what, &dims, rank, range)?;
    }
    Ok(())
}

fn groups(check: &Check<'_>, convolution: &Convolution) -> Checked {
    let (lhs, rhs) = (check.operand(0)?.shape.dims(), check.operand(1)?.shape.dims());
    let (features, batches) = (convolution.feature_group_count, convolution.batch_group_count);
    check.require(features > 0, "C21", || "feature_group_count is 0".to_owned())?;
    check.require(batches > 0, "C22", || "batch_group_count is 0".to_owned())?;
    check.require(features == 1 || batches == 1, "C23", || {
        format!("feature_group_count = {features} and batch_group_count = {batches}: one must be 1")
    })?;
    let precision = convolution.precision.len();
    if precision > 0 {
        check.length("precision_config", precision, 2, "C24")?;
    }
    let divides = |size: usize, count: usize, what: &str, constraint| {
        check.require(size.is_multiple_of(count), constraint, || {
            format!("{what} of {size} cannot be split in {count} groups")
        })
    };
    let input_features = lhs[convolution.input_feature_dimension];
    let output_features = rhs[convolution.kernel_output_feature_dimension];
    divides(lhs[convolution.input_batch_dimension], batches, "a batch", "C10")?;
    divides(input_features, features, "input features", "C11")?;
    let kernel_features = rhs[convolution.kernel_input_feature_dimension];
    check.require(kernel_features == input_features / features, "C14", || {
        format!(
            "the kernel takes {kernel_features} features per group, the input has {input_features} \
             in {features} groups"
        )
    })?;
    divides(output_features, batches, "output features", "C15")?;
    divides(output_features, features, "output features", "C16")
}

fn result_shape(check: &Check<'_>, convolution: &Convolution, rank: usize) -> Checked {
    let (lhs, rhs) = (check.operand(0)?.shape.dims(), check.operand(1)?.shape.dims());
    let mut expected = vec![0; rank];
    expected[convolution.output_batch_dimension] =
        lhs[convolution.input_batch_dimension] / convolution.batch_group_count;
    expected[convolution.output_feature_dimension] =
        rhs[convolution.kernel_output_feature_dimension];
    for (dim, &output) in convolution.output_spatial_dimensions.iter().enumerate() {
        let input = lhs[convolution.input_spatial_dimensions[dim]];
        let kernel = rhs[convolution.kernel_spatial_dimensions[dim]];
        let count = num_windows(input, kernel, &convolution.window, dim);
        let Ok(count) = usize::try_from(count) else {
            return Err(check.error("C25", format!("dimension {output} gets {count} windows")));
        };
        expected[output] = count;
    }
    check.result_shape(&expected, "C25")
}
