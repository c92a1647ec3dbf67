//! Batch normalization.

use super::Checked;
use super::check::Check;
use super::elementwise::{FLOAT, takes};
use crate::stablehlo::TensorType;

/// The constraints on the vectors of `batch_norm_training` and `batch_norm_inference`.
const VECTORS: [&str; 4] = ["C3", "C4", "C5", "C6"];

/// `batch_norm_training`: operand, scale, offset; output, mean, variance.
pub(super) fn training(check: &Check<'_>, feature_index: usize) -> Checked {
    check.counts(3, 3, 0)?;
    let vectors = [check.operand(1)?, check.operand(2)?, check.result(1)?, check.result(2)?];
    let vectors = vectors.into_iter().zip(VECTORS).collect::<Vec<_>>();
    vectors_of_features(check, feature_index, &vectors)?;
    check.equal("type of the output", check.operand(0)?, check.result(0)?, "C7")
}

/// `batch_norm_inference`: operand, scale, offset, mean, variance; result.
pub(super) fn inference(check: &Check<'_>, feature_index: usize) -> Checked {
    check.counts(5, 1, 0)?;
    let vectors = check.operands(1..5)?.into_iter().zip(VECTORS).collect::<Vec<_>>();
    vectors_of_features(check, feature_index, &vectors)?;
    check.equal("type of the result", check.operand(0)?, check.result(0)?, "C7")
}

/// `batch_norm_grad`: operand, scale, mean, variance, grad_output; grad_operand, grad_scale,
/// grad_offset.
pub(super) fn grad(check: &Check<'_>, feature_index: usize) -> Checked {
    check.counts(5, 3, 0)?;
    let scale = check.operand(1)?;
    let like_scale = [check.operand(2)?, check.operand(3)?, check.result(1)?, check.result(2)?];
    vectors_of_features(check, feature_index, &[(scale, "C5")])?;
    for ty in like_scale {
        check.equal("element type", &scale.dtype, &ty.dtype, "C2")?;
        check.equal("shape beside that of scale", &scale.shape, &ty.shape, "C4")?;
    }
    let operand = check.operand(0)?;
    for (ty, what) in [(check.operand(4)?, "grad_output"), (check.result(0)?, "grad_operand")] {
        check.equal(&format!("element type of {what}"), &operand.dtype, &ty.dtype, "C2")?;
        check.equal(&format!("shape of {what}"), &operand.shape, &ty.shape, "C3")?;
    }
    Ok(())
}

/// Each of `vectors`, with the number of its constraint, has one element per feature of operand 0.
fn vectors_of_features(
    check: &Check<'_>,
    feature_index: usize,
    vectors: &[(&TensorType, &'static str)],
) -> Checked {
    let operand = check.operand(0)?;
    takes(check, FLOAT, operand.dtype)?;
    check.in_range("feature_index", &[feature_index], operand.shape.rank(), "C1")?;
    let count = operand.shape.dims()[feature_index];
    for &(vector, constraint) in vectors {
        check.equal("element type", &operand.dtype, &vector.dtype, "C2")?;
        check.require(vector.shape.dims() == [count], constraint, || {
            format!("expected one element for each of {count} features, found {vector}")
        })?;
    }
    Ok(())
}
