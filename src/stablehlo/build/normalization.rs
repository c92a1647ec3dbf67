//! Batch normalization.

use super::{Attributes, Built};
use crate::stablehlo::op::{BatchNorm, OpKind};

/// The operations of this file.
pub(super) const KNOWN: &[&str] =
    &["batch_norm_training", "batch_norm_inference", "batch_norm_grad"];

/// The operation called `op`, if it is one of this file's.
pub(super) fn kind(op: &str, attributes: &mut Attributes) -> Built<Option<OpKind>> {
    let make = match op {
        "batch_norm_training" => OpKind::BatchNormTraining,
        "batch_norm_inference" => OpKind::BatchNormInference,
        "batch_norm_grad" => OpKind::BatchNormGrad,
        _ => return Ok(None),
    };
    Ok(Some(make(BatchNorm {
        epsilon: attributes.float("epsilon")?,
        feature_index: attributes.integer("feature_index")?,
    })))
}
