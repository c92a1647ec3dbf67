//! Types, shapes and lengths that do not go together.

use super::refused;

/// An operation, the constraint that it violates, the parameters and the operation.
const CASES: &[(&str, &str, &str, &str)] = &[
    (
        "stablehlo.abs",
        "C2",
        "%a: tensor<2xcomplex<f32>>",
        "%0 = stablehlo.abs %a : (tensor<2xcomplex<f32>>) -> tensor<2xf64>",
    ),
    (
        "stablehlo.real",
        "C2",
        "%a: tensor<2xcomplex<f32>>",
        "%0 = stablehlo.real %a : (tensor<2xcomplex<f32>>) -> tensor<2xf64>",
    ),
    (
        "stablehlo.imag",
        "C2",
        "%a: tensor<2xf64>",
        "%0 = stablehlo.imag %a : (tensor<2xf64>) -> tensor<2xf32>",
    ),
    (
        "stablehlo.complex",
        "C1",
        "%a: tensor<2xf64>, %b: tensor<2xf32>",
        "%0 = stablehlo.complex %a, %b : (tensor<2xf64>, tensor<2xf32>) -> tensor<2xcomplex<f64>>",
    ),
    (
        "stablehlo.batch_norm_inference",
        "C2",
        "%a: tensor<2x3xf32>, %s: tensor<3xf32>, %d: tensor<3xf64>",
        "%0 = \"stablehlo.batch_norm_inference\"(%a, %s, %s, %s, %d) <{epsilon = 1.0e-03 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf64>) -> tensor<2x3xf32>",
    ),
    (
        "stablehlo.batch_norm_training",
        "C5",
        "%a: tensor<2x3xf32>, %s: tensor<3xf32>",
        "%0:3 = \"stablehlo.batch_norm_training\"(%a, %s, %s) <{epsilon = 1.0e-03 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<3xf32>)",
    ),
    (
        "stablehlo.case",
        "C2",
        "%i: tensor<i32>, %a: tensor<f32>",
        "%0 = \"stablehlo.case\"(%i) ({ ^bb0(%x: tensor<f32>): stablehlo.return %a : tensor<f32> }) : (tensor<i32>) -> tensor<f32>",
    ),
    (
        "stablehlo.clamp",
        "C4",
        "%a: tensor<2xf32>",
        "%0 = stablehlo.clamp %a, %a, %a : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf64>",
    ),
    (
        "stablehlo.concatenate",
        "C5",
        "%a: tensor<2x3xf32>",
        "%0 = stablehlo.concatenate %a, %a, dim = 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf64>",
    ),
    (
        "stablehlo.convolution",
        "C1",
        "%a: tensor<2x6x6x4xf32>, %b: tensor<3x3x8xf32>",
        "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x6x6x4xf32>, tensor<3x3x8xf32>) -> tensor<2x3x4x8xf32>",
    ),
    (
        "stablehlo.convolution",
        "C12",
        "%a: tensor<2x6x6x4xf32>, %b: tensor<3x3x2x8xf32>",
        "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x6x6x4xf32>, tensor<3x3x2x8xf32>) -> tensor<2x3x4x8xf32>",
    ),
    (
        "stablehlo.convolution",
        "C17",
        "%a: tensor<2x6x6x4xf32>, %b: tensor<3x3x2x8xf32>",
        "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x6x6x4xf32>, tensor<3x3x2x8xf32>) -> tensor<2x3x4x8xf32>",
    ),
    (
        "stablehlo.convolution",
        "C19",
        "%a: tensor<2x6x6x4xf32>, %b: tensor<3x3x2x8xf32>",
        "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, f], window = {stride = [2, 1], pad = [[1, 1], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x6x6x4xf32>, tensor<3x3x2x8xf32>) -> tensor<2x3x4x8xf32>",
    ),
    (
        "stablehlo.convolution",
        "C16",
        "%a: tensor<2x6x6x4xf32>, %b: tensor<3x3x2x7xf32>",
        "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x6x6x4xf32>, tensor<3x3x2x7xf32>) -> tensor<2x3x4x7xf32>",
    ),
    (
        "stablehlo.convolution",
        "C15",
        "%a: tensor<4x6x6x2xf32>, %b: tensor<3x3x2x7xf32>",
        "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 2 : i64, feature_group_count = 1 : i64} : (tensor<4x6x6x2xf32>, tensor<3x3x2x7xf32>) -> tensor<2x3x4x7xf32>",
    ),
    (
        "stablehlo.convolution",
        "C25",
        "%a: tensor<2x6x6x4xf32>, %b: tensor<3x3x2x8xf32>",
        "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x6x6x4xf32>, tensor<3x3x2x8xf32>) -> tensor<3x3x4x8xf32>",
    ),
    (
        "stablehlo.dynamic_update_slice",
        "C2",
        "%a: tensor<4xf32>, %u: tensor<2xf64>, %i: tensor<i32>",
        "%0 = stablehlo.dynamic_update_slice %a, %u, %i : (tensor<4xf32>, tensor<2xf64>, tensor<i32>) -> tensor<4xf32>",
    ),
    (
        "stablehlo.dynamic_update_slice",
        "C5",
        "%a: tensor<4x4xf32>, %u: tensor<2x2xf32>, %i: tensor<i32>, %j: tensor<i64>",
        "%0 = stablehlo.dynamic_update_slice %a, %u, %i, %j : (tensor<4x4xf32>, tensor<2x2xf32>, tensor<i32>, tensor<i64>) -> tensor<4x4xf32>",
    ),
    (
        "stablehlo.dynamic_slice",
        "C1",
        "%a: tensor<4xf32>, %i: tensor<i32>",
        "%0 = stablehlo.dynamic_slice %a, %i, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf64>",
    ),
    (
        "stablehlo.transpose",
        "C1",
        "%a: tensor<2x3xf32>",
        "%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf64>",
    ),
    (
        "stablehlo.slice",
        "C1",
        "%a: tensor<4xf32>",
        "%0 = stablehlo.slice %a [0:2] : (tensor<4xf32>) -> tensor<2xf64>",
    ),
    (
        "stablehlo.sort",
        "C3",
        "%a: tensor<2x3xf32>, %b: tensor<2x4xf32>",
        "%0:2 = \"stablehlo.sort\"(%a, %b) <{dimension = 1 : i64}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>, %z: tensor<f32>, %w: tensor<f32>): %l = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %l : tensor<i1> }) : (tensor<2x3xf32>, tensor<2x4xf32>) -> (tensor<2x3xf32>, tensor<2x4xf32>)",
    ),
    (
        "stablehlo.sort",
        "C2",
        "%a: tensor<2x3xf32>",
        "%0 = \"stablehlo.sort\"(%a) <{dimension = 1 : i64}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %l = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %l : tensor<i1> }) : (tensor<2x3xf32>) -> tensor<3x2xf32>",
    ),
    (
        "stablehlo.reduce",
        "C1",
        "%a: tensor<2x3xf32>, %b: tensor<3x2xf32>, %s: tensor<f32>",
        "%0:2 = \"stablehlo.reduce\"(%a, %b, %s, %s) <{dimensions = array<i64: 1>}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>, %z: tensor<f32>, %w: tensor<f32>): stablehlo.return %x, %y : tensor<f32>, tensor<f32> }) : (tensor<2x3xf32>, tensor<3x2xf32>, tensor<f32>, tensor<f32>) -> (tensor<2xf32>, tensor<3xf32>)",
    ),
    (
        "stablehlo.reduce_window",
        "C3",
        "%a: tensor<4x6xf32>, %s: tensor<f32>, %d: tensor<f64>, %b: tensor<4x5xf32>",
        "%0 = \"stablehlo.reduce_window\"(%a, %d) <{base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 1, 2>}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): stablehlo.return %y : tensor<f32> }) : (tensor<4x6xf32>, tensor<f64>) -> tensor<3x2xf32>",
    ),
    (
        "stablehlo.reduce_window",
        "C8",
        "%a: tensor<4x6xf32>, %s: tensor<f32>, %d: tensor<f64>, %b: tensor<4x5xf32>",
        "%0 = \"stablehlo.reduce_window\"(%a, %s) <{base_dilations = array<i64: 1>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 1, 2>}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): stablehlo.return %y : tensor<f32> }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<3x2xf32>",
    ),
    (
        "stablehlo.reduce_window",
        "C10",
        "%a: tensor<4x6xf32>, %s: tensor<f32>, %d: tensor<f64>, %b: tensor<4x5xf32>",
        "%0 = \"stablehlo.reduce_window\"(%a, %s) <{base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1>, window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 1, 2>}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): stablehlo.return %y : tensor<f32> }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<3x2xf32>",
    ),
];

#[test]
fn parts_that_do_not_fit_each_other() {
    for &(op, constraint, parameters, body) in CASES {
        refused(parameters, &[(op, constraint, body)]);
    }
}
