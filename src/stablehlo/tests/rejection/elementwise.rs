//! Operations that work element by element, and those that move elements.

use super::refused;

#[test]
fn elementwise() {
    refused(
        "%f: tensor<3xf32>, %g: tensor<4xf32>, %i: tensor<3xi32>, %p: tensor<3xi1>, %s: tensor<f32>",
        &[
            ("stablehlo.abs", "C1", "%0 = stablehlo.abs %f : (tensor<3xf32>) -> tensor<4xf32>"),
            ("stablehlo.abs", "I1", "%0 = stablehlo.abs %p : tensor<3xi1>"),
            ("stablehlo.floor", "I1", "%0 = stablehlo.floor %i : tensor<3xi32>"),
            ("stablehlo.popcnt", "I1", "%0 = stablehlo.popcnt %f : tensor<3xf32>"),
            (
                "stablehlo.is_finite",
                "O1",
                "%0 = stablehlo.is_finite %f : (tensor<3xf32>) -> tensor<3xf32>",
            ),
            (
                "stablehlo.add",
                "C1",
                "%0 = stablehlo.add %f, %g : (tensor<3xf32>, tensor<4xf32>) -> tensor<3xf32>",
            ),
            (
                "stablehlo.add",
                "C1",
                "%0 = stablehlo.add %f, %f : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf64>",
            ),
            ("stablehlo.add", "", "%0 = \"stablehlo.add\"(%f) : (tensor<3xf32>) -> tensor<3xf32>"),
            ("stablehlo.and", "I1", "%0 = stablehlo.and %f, %f : tensor<3xf32>"),
            (
                "stablehlo.complex",
                "C3",
                "%0 = \"stablehlo.complex\"(%f, %f) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xcomplex<f64>>",
            ),
            (
                "stablehlo.compare",
                "C1",
                "%0 = stablehlo.compare LT, %f, %i : (tensor<3xf32>, tensor<3xi32>) -> tensor<3xi1>",
            ),
            (
                "stablehlo.compare",
                "C2",
                "%0 = stablehlo.compare LT, %f, %g : (tensor<3xf32>, tensor<4xf32>) -> tensor<3xi1>",
            ),
            (
                "stablehlo.compare",
                "C3",
                "%0 = stablehlo.compare LT, %f, %f, SIGNED : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>",
            ),
            (
                "stablehlo.compare",
                "O1",
                "%0 = stablehlo.compare LT, %f, %f : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>",
            ),
            (
                "stablehlo.select",
                "I1",
                "%0 = \"stablehlo.select\"(%i, %f, %f) : (tensor<3xi32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>",
            ),
            (
                "stablehlo.select",
                "C1",
                "%0 = \"stablehlo.select\"(%p, %g, %g) : (tensor<3xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
            ),
            (
                "stablehlo.select",
                "C2",
                "%0 = \"stablehlo.select\"(%p, %f, %i) : (tensor<3xi1>, tensor<3xf32>, tensor<3xi32>) -> tensor<3xf32>",
            ),
            (
                "stablehlo.clamp",
                "C1",
                "%0 = stablehlo.clamp %g, %f, %s : (tensor<4xf32>, tensor<3xf32>, tensor<f32>) -> tensor<3xf32>",
            ),
            (
                "stablehlo.clamp",
                "C2",
                "%0 = stablehlo.clamp %s, %f, %g : (tensor<f32>, tensor<3xf32>, tensor<4xf32>) -> tensor<3xf32>",
            ),
            (
                "stablehlo.clamp",
                "C3",
                "%0 = stablehlo.clamp %i, %f, %s : (tensor<3xi32>, tensor<3xf32>, tensor<f32>) -> tensor<3xf32>",
            ),
            (
                "stablehlo.convert",
                "C1",
                "%0 = stablehlo.convert %f : (tensor<3xf32>) -> tensor<4xi32>",
            ),
            (
                "stablehlo.bitcast_convert",
                "C1",
                "%0 = stablehlo.bitcast_convert %f : (tensor<3xf32>) -> tensor<3xi8>",
            ),
            (
                "stablehlo.bitcast_convert",
                "C2",
                "%0 = stablehlo.bitcast_convert %f : (tensor<3xf32>) -> tensor<3xcomplex<f32>>",
            ),
            (
                "stablehlo.reduce_precision",
                "C1",
                "%0 = \"stablehlo.reduce_precision\"(%f) <{exponent_bits = 5 : i32, mantissa_bits = 5 : i32}> : (tensor<3xf32>) -> tensor<4xf32>",
            ),
            (
                "stablehlo.reduce_precision",
                "C2",
                "%0 = stablehlo.reduce_precision %f, format = e0m5 : tensor<3xf32>",
            ),
        ],
    );
}

#[test]
fn shape() {
    refused(
        "%a: tensor<2x3xf32>, %b: tensor<2x4xf32>, %s: tensor<f32>, %i: tensor<i32>, %j: tensor<i64>, %k: tensor<2x3xi32>",
        &[
            (
                "stablehlo.constant",
                "C1",
                "%0 = \"stablehlo.constant\"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i64>",
            ),
            ("stablehlo.iota", "C1", "%0 = stablehlo.iota dim = 1 : tensor<3xi32>"),
            (
                "stablehlo.broadcast_in_dim",
                "C1",
                "%0 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<2xi32>",
            ),
            (
                "stablehlo.broadcast_in_dim",
                "C2",
                "%0 = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
            ),
            (
                "stablehlo.broadcast_in_dim",
                "C3",
                "%0 = stablehlo.broadcast_in_dim %a, dims = [0, 2] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
            ),
            (
                "stablehlo.broadcast_in_dim",
                "C4",
                "%0 = stablehlo.broadcast_in_dim %a, dims = [0, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
            ),
            (
                "stablehlo.broadcast_in_dim",
                "C5",
                "%0 = stablehlo.broadcast_in_dim %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
            ),
            (
                "stablehlo.reshape",
                "C1",
                "%0 = stablehlo.reshape %a : (tensor<2x3xf32>) -> tensor<6xi32>",
            ),
            (
                "stablehlo.reshape",
                "C2",
                "%0 = stablehlo.reshape %a : (tensor<2x3xf32>) -> tensor<7xf32>",
            ),
            (
                "stablehlo.transpose",
                "C2",
                "%0 = stablehlo.transpose %a, dims = [1, 1] : (tensor<2x3xf32>) -> tensor<3x3xf32>",
            ),
            (
                "stablehlo.transpose",
                "C3",
                "%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
            ),
            (
                "stablehlo.slice",
                "C2",
                "%0 = stablehlo.slice %a [0:1] : (tensor<2x3xf32>) -> tensor<1x3xf32>",
            ),
            (
                "stablehlo.slice",
                "C3",
                "%0 = stablehlo.slice %a [0:1, 2:4] : (tensor<2x3xf32>) -> tensor<1x2xf32>",
            ),
            (
                "stablehlo.slice",
                "C3",
                "%0 = stablehlo.slice %a [1:0, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32>",
            ),
            (
                "stablehlo.slice",
                "C4",
                "%0 = stablehlo.slice %a [0:1, 0:3:0] : (tensor<2x3xf32>) -> tensor<1x3xf32>",
            ),
            (
                "stablehlo.slice",
                "C5",
                "%0 = stablehlo.slice %a [0:2, 0:3:2] : (tensor<2x3xf32>) -> tensor<2x1xf32>",
            ),
            (
                "stablehlo.concatenate",
                "C1",
                "%0 = stablehlo.concatenate %a, %k, dim = 0 : (tensor<2x3xf32>, tensor<2x3xi32>) -> tensor<4x3xf32>",
            ),
            (
                "stablehlo.concatenate",
                "C2",
                "%0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<4x3xf32>",
            ),
            (
                "stablehlo.concatenate",
                "C3",
                "%0 = \"stablehlo.concatenate\"() <{dimension = 0 : i64}> : () -> tensor<2xf32>",
            ),
            (
                "stablehlo.concatenate",
                "C4",
                "%0 = stablehlo.concatenate %a, %b, dim = 2 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>",
            ),
            (
                "stablehlo.concatenate",
                "C6",
                "%0 = stablehlo.concatenate %a, %b, dim = 1 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>",
            ),
            (
                "stablehlo.pad",
                "C1",
                "%0 = stablehlo.pad %a, %i, low = [0, 0], high = [0, 0], interior = [0, 0] : (tensor<2x3xf32>, tensor<i32>) -> tensor<2x3xf32>",
            ),
            (
                "stablehlo.pad",
                "C2",
                "%0 = stablehlo.pad %a, %s, low = [0], high = [0, 0], interior = [0, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>",
            ),
            (
                "stablehlo.pad",
                "C4",
                "%0 = stablehlo.pad %a, %s, low = [0, -9], high = [0, 0], interior = [0, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>",
            ),
            (
                "stablehlo.pad",
                "C4",
                "%0 = stablehlo.pad %a, %s, low = [9223372036854775807, 0], high = [9223372036854775807, 0], interior = [9223372036854775807, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>",
            ),
            (
                "stablehlo.reverse",
                "C1",
                "%0 = \"stablehlo.reverse\"(%a) <{dimensions = array<i64: 0>}> : (tensor<2x3xf32>) -> tensor<3x2xf32>",
            ),
            (
                "stablehlo.reverse",
                "C2",
                "%0 = stablehlo.reverse %a, dims = [0, 0] : tensor<2x3xf32>",
            ),
            ("stablehlo.reverse", "C3", "%0 = stablehlo.reverse %a, dims = [2] : tensor<2x3xf32>"),
            (
                "stablehlo.dynamic_slice",
                "C2",
                "%0 = stablehlo.dynamic_slice %a, %i, sizes = [1, 1] : (tensor<2x3xf32>, tensor<i32>) -> tensor<1x1xf32>",
            ),
            (
                "stablehlo.dynamic_slice",
                "C3",
                "%0 = stablehlo.dynamic_slice %a, %i, %j, sizes = [1, 1] : (tensor<2x3xf32>, tensor<i32>, tensor<i64>) -> tensor<1x1xf32>",
            ),
            (
                "stablehlo.dynamic_slice",
                "C4",
                "%0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [3, 1] : (tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<3x1xf32>",
            ),
            (
                "stablehlo.dynamic_slice",
                "C5",
                "%0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [1, 1] : (tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>",
            ),
            (
                "stablehlo.dynamic_slice",
                "",
                "%0 = \"stablehlo.dynamic_slice\"() <{slice_sizes = array<i64>}> : () -> tensor<f32>",
            ),
            (
                "stablehlo.dynamic_update_slice",
                "C1",
                "%0 = stablehlo.dynamic_update_slice %a, %a, %i, %i : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>",
            ),
            (
                "stablehlo.dynamic_update_slice",
                "C3",
                "%0 = stablehlo.dynamic_update_slice %a, %s, %i, %i : (tensor<2x3xf32>, tensor<f32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>",
            ),
            (
                "stablehlo.dynamic_update_slice",
                "C4",
                "%0 = stablehlo.dynamic_update_slice %a, %a, %i : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<i32>) -> tensor<2x3xf32>",
            ),
            (
                "stablehlo.dynamic_update_slice",
                "C6",
                "%0 = stablehlo.dynamic_update_slice %a, %b, %i, %i : (tensor<2x3xf32>, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>",
            ),
        ],
    );
}
