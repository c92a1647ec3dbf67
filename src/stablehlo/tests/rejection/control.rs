//! Operations with regions that are run.

use super::{refused, refused_variants};

#[test]
fn control_flow() {
    refused_variants(
        "stablehlo.sort",
        "%a: tensor<2x3xf32>",
        "%0 = \"stablehlo.sort\"(%a) <{dimension = 1 : i64, is_stable = true}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %p = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %p : tensor<i1> }) : (tensor<2x3xf32>) -> tensor<2x3xf32>",
        &[
            ("C2", "-> tensor<2x3xf32>", "-> tensor<3x2xf32>"),
            ("C4", "dimension = 1", "dimension = 2"),
            ("C5", "return %p : tensor<i1>", "return %x : tensor<f32>"),
        ],
    );
    refused_variants(
        "stablehlo.while",
        "%i: tensor<i32>, %p: tensor<i1>",
        "%0 = \"stablehlo.while\"(%i) ({ ^bb0(%x: tensor<i32>): stablehlo.return %p : tensor<i1> }, { ^bb0(%y: tensor<i32>): stablehlo.return %y : tensor<i32> }) : (tensor<i32>) -> tensor<i32>",
        &[
            ("C1", "return %p : tensor<i1>", "return %x : tensor<i32>"),
            ("C2", "return %y : tensor<i32>", "return %p : tensor<i1>"),
            ("C3", "-> tensor<i32>", "-> tensor<i64>"),
            ("", ", { ^bb0(%y: tensor<i32>): stablehlo.return %y : tensor<i32> }", ""),
        ],
    );
    refused_variants(
        "stablehlo.if",
        "%i: tensor<i32>, %p: tensor<i1>",
        "%0 = \"stablehlo.if\"(%p) ({ stablehlo.return %i : tensor<i32> }, { ^bb0: stablehlo.return %i : tensor<i32> }) : (tensor<i1>) -> tensor<i32>",
        &[
            (
                "I1",
                "(%p) ({ stablehlo.return %i : tensor<i32> }, { ^bb0: stablehlo.return %i : tensor<i32> }) : (tensor<i1>)",
                "(%i) ({ stablehlo.return %i : tensor<i32> }, { ^bb0: stablehlo.return %i : tensor<i32> }) : (tensor<i32>)",
            ),
            ("C1", "^bb0:", "^bb0(%x: tensor<i32>):"),
            ("C2", "^bb0: stablehlo.return %i : tensor<i32>", "stablehlo.return %p : tensor<i1>"),
            ("C3", "-> tensor<i32>", "-> tensor<i64>"),
        ],
    );
    refused_variants(
        "stablehlo.case",
        "%i: tensor<i32>, %p: tensor<i1>",
        "%0 = \"stablehlo.case\"(%i) ({ stablehlo.return %i : tensor<i32> }) : (tensor<i32>) -> tensor<i32>",
        &[
            ("C1", " ({ stablehlo.return %i : tensor<i32> })", ""),
            ("C3", "})", "}, { stablehlo.return %p : tensor<i1> })"),
            ("C4", "-> tensor<i32>", "-> tensor<i1>"),
        ],
    );
    refused(
        "%i: tensor<i32>",
        &[
            (
                "stablehlo.optimization_barrier",
                "C1",
                "%0 = \"stablehlo.optimization_barrier\"(%i) : (tensor<i32>) -> tensor<i64>",
            ),
            ("stablehlo.partition_id", "O1", "%0 = stablehlo.partition_id : tensor<i32>"),
            ("stablehlo.replica_id", "O1", "%0 = stablehlo.replica_id : tensor<1xui32>"),
            (
                "stablehlo.custom_call",
                "",
                "%0 = stablehlo.custom_call @f(%i) {called_computations = [@g]} : (tensor<i32>) -> tensor<i32>",
            ),
        ],
    );
}
