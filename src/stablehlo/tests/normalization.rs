//! Batch normalization.

use super::in_all_forms;
use super::rejection::refused_variants;
use crate::stablehlo::op::{BatchNorm, OpKind};

const PARAMETERS: &str = "%x: tensor<2x3x5xf32>, %y: tensor<2x5x3xf32>, %v: tensor<3xf32>, %w: tensor<5xf32>, %d: tensor<3xf64>, %i: tensor<2x3x5xi32>";
const ATTRIBUTES: &str = "<{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}>";
const NORM: BatchNorm = BatchNorm { epsilon: 1e-3, feature_index: 1 };

#[test]
fn training() {
    let right = format!(
        "%0:3 = \"stablehlo.batch_norm_training\"(%x, %v, %v) {ATTRIBUTES} : (tensor<2x3x5xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x5xf32>, tensor<3xf32>, tensor<3xf32>)"
    );
    assert_eq!(in_all_forms(PARAMETERS, &[&right]), OpKind::BatchNormTraining(NORM));
    let ends = "(tensor<2x3x5xf32>, tensor<3xf32>, tensor<3xf32>)";
    refused_variants(
        "stablehlo.batch_norm_training",
        PARAMETERS,
        &right,
        &[
            ("C1", "feature_index = 1", "feature_index = 3"),
            (
                "C2",
                "%v, %v) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3x5xf32>, tensor<3xf32>, tensor<3xf32>)",
                "%v, %d) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3x5xf32>, tensor<3xf32>, tensor<3xf64>)",
            ),
            ("C3", "feature_index = 1", "feature_index = 2"),
            ("C5", &format!("-> {ends}"), "-> (tensor<2x3x5xf32>, tensor<5xf32>, tensor<3xf32>)"),
            ("C6", &format!("-> {ends}"), "-> (tensor<2x3x5xf32>, tensor<3xf32>, tensor<5xf32>)"),
            ("C7", &format!("-> {ends}"), "-> (tensor<2x5x3xf32>, tensor<3xf32>, tensor<3xf32>)"),
        ],
    );
}

#[test]
fn inference() {
    let right = format!(
        "%0 = \"stablehlo.batch_norm_inference\"(%x, %v, %v, %v, %v) {ATTRIBUTES} : (tensor<2x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x5xf32>"
    );
    assert_eq!(in_all_forms(PARAMETERS, &[&right]), OpKind::BatchNormInference(NORM));
    let wide = |position: usize| {
        let mut names = ["%v"; 4];
        let mut types = ["tensor<3xf32>"; 4];
        (names[position], types[position]) = ("%w", "tensor<5xf32>");
        format!(
            "(%x, {}) {ATTRIBUTES} : (tensor<2x3x5xf32>, {})",
            names.join(", "),
            types.join(", ")
        )
    };
    let call = format!(
        "(%x, %v, %v, %v, %v) {ATTRIBUTES} : (tensor<2x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)"
    );
    let wides = [0, 1, 2, 3].map(wide);
    refused_variants(
        "stablehlo.batch_norm_inference",
        PARAMETERS,
        &right,
        &[
            ("C1", "feature_index = 1", "feature_index = 3"),
            ("C3", &call, &wides[0]),
            ("C4", &call, &wides[1]),
            ("C5", &call, &wides[2]),
            ("C6", &call, &wides[3]),
            ("C7", "-> tensor<2x3x5xf32>", "-> tensor<2x5x3xf32>"),
        ],
    );
}

#[test]
fn grad() {
    let right = format!(
        "%0:3 = \"stablehlo.batch_norm_grad\"(%x, %v, %v, %v, %x) {ATTRIBUTES} : (tensor<2x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3x5xf32>) -> (tensor<2x3x5xf32>, tensor<3xf32>, tensor<3xf32>)"
    );
    assert_eq!(in_all_forms(PARAMETERS, &[&right]), OpKind::BatchNormGrad(NORM));
    refused_variants(
        "stablehlo.batch_norm_grad",
        PARAMETERS,
        &right,
        &[
            ("C1", "feature_index = 1", "feature_index = 3"),
            ("C2", "-> (tensor<2x3x5xf32>, tensor<3xf32>", "-> (tensor<2x3x5xf32>, tensor<3xf64>"),
            ("C3", "-> (tensor<2x3x5xf32>", "-> (tensor<2x5x3xf32>"),
            ("C4", "-> (tensor<2x3x5xf32>, tensor<3xf32>", "-> (tensor<2x3x5xf32>, tensor<5xf32>"),
            ("C5", "feature_index = 1", "feature_index = 2"),
        ],
    );
}
