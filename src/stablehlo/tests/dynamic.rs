//! Operations whose shapes are operands.

use super::in_all_forms;
use super::rejection::refused_variants;
use crate::stablehlo::op::{DynamicBroadcast, OpKind};

const PARAMETERS: &str = "%a: tensor<1x3xf32>, %z: tensor<f32>, %d: tensor<f64>, %v: tensor<1xf32>, %n: tensor<2xi32>, %m: tensor<3xi64>, %f: tensor<2xf32>";

#[test]
fn broadcast_in_dim() {
    let types = "(tensor<1x3xf32>, tensor<3xi64>) -> tensor<4x2x3xf32>";
    let generic = format!(
        "%0 = \"stablehlo.dynamic_broadcast_in_dim\"(%a, %m) <{{broadcast_dimensions = array<i64: 1, 2>, known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 1>}}> : {types}"
    );
    let custom = format!(
        "%0 = stablehlo.dynamic_broadcast_in_dim %a, %m, dims = [1, 2] {{known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 1>}} : {types}"
    );
    let (dimensions, known_expanding, known_nonexpanding) = (vec![1, 2], vec![0], vec![1]);
    let broadcast = DynamicBroadcast { dimensions, known_expanding, known_nonexpanding };
    let kind = in_all_forms(PARAMETERS, &[&custom, &generic]);
    assert_eq!(kind, OpKind::DynamicBroadcastInDim(broadcast));
    refused_variants(
        "stablehlo.dynamic_broadcast_in_dim",
        PARAMETERS,
        &custom,
        &[
            ("C1", "-> tensor<4x2x3xf32>", "-> tensor<4x2x3xf64>"),
            ("C2", "[1, 2]", "[1]"),
            ("C3", "[1, 2]", "[1, 3]"),
            ("C4", "[1, 2]", "[2, 2]"),
            ("C5", "[1, 2]", "[2, 1]"),
            ("C7", "-> tensor<4x2x3xf32>", "-> tensor<4x2x3x1xf32>"),
            ("C8", "array<i64: 0>", "array<i64: 1>"),
            ("C9", "array<i64: 0>", "array<i64: 2>"),
            ("C10", "array<i64: 1>", "array<i64: 2>"),
        ],
    );
}

#[test]
fn iota() {
    let custom = "%0 = stablehlo.dynamic_iota %n, dim = 1 : (tensor<2xi32>) -> tensor<4x5xf32>";
    let generic = "%0 = \"stablehlo.dynamic_iota\"(%n) <{iota_dimension = 1 : i64}> : (tensor<2xi32>) -> tensor<4x5xf32>";
    let kind = in_all_forms(PARAMETERS, &[custom, generic]);
    assert_eq!(kind, OpKind::DynamicIota { dimension: 1 });
    refused_variants(
        "stablehlo.dynamic_iota",
        PARAMETERS,
        custom,
        &[
            ("C1", "dim = 1", "dim = 2"),
            ("C2", "-> tensor<4x5xf32>", "-> tensor<4x5x6xf32>"),
            ("I1", "%n, dim = 1 : (tensor<2xi32>)", "%f, dim = 1 : (tensor<2xf32>)"),
        ],
    );
}

#[test]
fn pad() {
    let types = "(tensor<1x3xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>)";
    let custom =
        format!("%0 = stablehlo.dynamic_pad %a, %z, %n, %n, %n : {types} -> tensor<4x5xf32>");
    let generic =
        format!("%0 = \"stablehlo.dynamic_pad\"(%a, %z, %n, %n, %n) : {types} -> tensor<4x5xf32>");
    assert_eq!(in_all_forms(PARAMETERS, &[&custom, &generic]), OpKind::DynamicPad);
    let with = |from: &str, to: &str, old: &str, new: &str| {
        custom.replacen(from, to, 1).replacen(old, new, 1)
    };
    refused_variants(
        "stablehlo.dynamic_pad",
        PARAMETERS,
        &custom,
        &[
            ("C1", &custom, &with("%z", "%d", "tensor<f32>", "tensor<f64>")),
            (
                "C2",
                &custom,
                &with(
                    "%n, %n, %n",
                    "%n, %m, %n",
                    "tensor<2xi32>, tensor<2xi32>,",
                    "tensor<2xi32>, tensor<3xi64>,",
                ),
            ),
            ("C4", "-> tensor<4x5xf32>", "-> tensor<20xf32>"),
            ("I2", &custom, &with("%z", "%v", "tensor<f32>", "tensor<1xf32>")),
        ],
    );
}

#[test]
fn reshape() {
    let types = "(tensor<1x3xf32>, tensor<2xi32>) -> tensor<3x1xf32>";
    let custom = format!("%0 = stablehlo.dynamic_reshape %a, %n : {types}");
    let generic = format!("%0 = \"stablehlo.dynamic_reshape\"(%a, %n) : {types}");
    assert_eq!(in_all_forms(PARAMETERS, &[&custom, &generic]), OpKind::DynamicReshape);
    refused_variants(
        "stablehlo.dynamic_reshape",
        PARAMETERS,
        &custom,
        &[
            ("C1", "-> tensor<3x1xf32>", "-> tensor<3x1xi32>"),
            ("C2", "-> tensor<3x1xf32>", "-> tensor<3x2xf32>"),
            ("C4", "-> tensor<3x1xf32>", "-> tensor<3xf32>"),
        ],
    );
}
