//! `map`, `select_and_scatter` and `get_dimension_size`.

use super::in_all_forms;
use super::rejection::refused_variants;
use crate::stablehlo::op::OpKind;

#[test]
fn map() {
    let parameters = "%a: tensor<2x3xf32>, %b: tensor<2x3xi32>";
    let right = "%0 = \"stablehlo.map\"(%a, %b) <{dimensions = array<i64: 0, 1>}> ({ ^bb0(%x: tensor<f32>, %y: tensor<i32>): stablehlo.return %y : tensor<i32> }) : (tensor<2x3xf32>, tensor<2x3xi32>) -> tensor<2x3xi32>";
    assert_eq!(in_all_forms(parameters, &[right]), OpKind::Map { dimensions: vec![0, 1] });
    refused_variants(
        "stablehlo.map",
        parameters,
        right,
        &[
            ("C1", "-> tensor<2x3xi32>", "-> tensor<3x2xi32>"),
            (
                "C2",
                "(%a, %b) <{dimensions = array<i64: 0, 1>}> ({ ^bb0(%x: tensor<f32>, %y: tensor<i32>): stablehlo.return %y : tensor<i32> }) : (tensor<2x3xf32>, tensor<2x3xi32>)",
                "() <{dimensions = array<i64>}> ({ stablehlo.return }) : ()",
            ),
            ("C3", "0, 1>", "1, 0>"),
            ("C3", "0, 1>", "0>"),
            ("C4", "%x: tensor<f32>", "%x: tensor<f64>"),
            ("C4", "return %y : tensor<i32>", "return %x : tensor<f32>"),
        ],
    );
}

#[test]
fn select_and_scatter() {
    let parameters = "%a: tensor<4x5xf32>, %s: tensor<2x2xf32>, %z: tensor<f32>, %d: tensor<f64>, %v: tensor<1xf32>";
    let types = "(tensor<4x5xf32>, tensor<2x2xf32>, tensor<f32>) -> tensor<4x5xf32>";
    let right = format!(
        "%0 = \"stablehlo.select_and_scatter\"(%a, %s, %z) <{{padding = dense<[[0, 1], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 2, 3>}}> ({{ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %g = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %g : tensor<i1> }}, {{ ^bb0(%p: tensor<f32>, %q: tensor<f32>): %t = stablehlo.add %p, %q : tensor<f32> stablehlo.return %t : tensor<f32> }}) : {types}"
    );
    let OpKind::SelectAndScatter(window) = in_all_forms(parameters, &[&right]) else { panic!() };
    assert_eq!((window.dimensions, window.strides), (vec![3, 2], vec![2, 3]));
    assert_eq!(window.padding, [(0, 1), (0, 0)]);
    refused_variants(
        "stablehlo.select_and_scatter",
        parameters,
        &right,
        &[
            ("C2", "window_strides = array<i64: 2, 3>", "window_strides = array<i64: 1, 3>"),
            ("C4", "window_dimensions = array<i64: 3, 2>", "window_dimensions = array<i64: 3>"),
            ("C5", "window_dimensions = array<i64: 3, 2>", "window_dimensions = array<i64: 3, 0>"),
            ("C6", "window_strides = array<i64: 2, 3>", "window_strides = array<i64: 2>"),
            ("C7", "window_strides = array<i64: 2, 3>", "window_strides = array<i64: 2, 0>"),
            (
                "C8",
                "dense<[[0, 1], [0, 0]]> : tensor<2x2xi64>",
                "dense<[[0, 1]]> : tensor<1x2xi64>",
            ),
            ("C9", "return %g : tensor<i1>", "return %x : tensor<f32>"),
            ("C10", "return %t : tensor<f32>", "return"),
            ("C11", "-> tensor<4x5xf32>", "-> tensor<5x4xf32>"),
            ("C12", "-> tensor<4x5xf32>", "-> tensor<4x5xf64>"),
        ],
    );
}

#[test]
fn get_dimension_size() {
    let parameters = "%a: tensor<2x3xf32>";
    let right = "%0 = stablehlo.get_dimension_size %a, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>";
    let generic = "%0 = \"stablehlo.get_dimension_size\"(%a) <{dimension = 1 : i64}> : (tensor<2x3xf32>) -> tensor<i32>";
    let kind = in_all_forms(parameters, &[right, generic]);
    assert_eq!(kind, OpKind::GetDimensionSize { dimension: 1 });
    refused_variants(
        "stablehlo.get_dimension_size",
        parameters,
        right,
        &[("C1", "dim = 1", "dim = 2"), ("O1", "-> tensor<i32>", "-> tensor<i64>")],
    );
}
