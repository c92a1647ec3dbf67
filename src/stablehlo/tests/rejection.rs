//! Programs that read well and are none: each operation's constraints, one violation at a time.

use super::{main_text, parse, read_main};
use crate::stablehlo::entity::Entity as _;
use crate::stablehlo::{Block, Module, Op, Value, ValueDef, VerifyError, verify};

fn refusal(module: &Module) -> VerifyError {
    verify(module).unwrap_err()
}

/// Each body, in a `main` with these parameters, violates this constraint of the operation.
fn refused(parameters: &str, cases: &[(&str, &str, &str)]) {
    for (op, constraint, body) in cases {
        let module = read_main(parameters, body).unwrap_or_else(|error| panic!("{error}"));
        let error = refusal(&module);
        assert_eq!(error.subject, *op, "{error}");
        assert_eq!(error.constraint.unwrap_or(""), *constraint, "{error}");
        assert!(error.to_string().starts_with(&format!("{op} at 3:")), "{error}");
        assert!(error.to_string().contains(" in @main: "), "{error}");
    }
}

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

/// Replaces part of a body that is right, so that it is wrong.
fn refused_variants(op: &str, parameters: &str, right: &str, variants: &[(&str, &str, &str)]) {
    let module = read_main(parameters, right).unwrap_or_else(|error| panic!("{error}"));
    verify(&module).unwrap_or_else(|error| panic!("{error}"));
    for (constraint, from, to) in variants {
        assert!(right.contains(from), "{from} is not in {right}");
        let body = right.replace(from, to);
        refused(parameters, &[(op, *constraint, body.as_str())]);
    }
}

#[test]
fn gather() {
    refused_variants(
        "stablehlo.gather",
        "%a: tensor<2x6x4xf32>, %i: tensor<2x3x1xi32>",
        "%0 = \"stablehlo.gather\"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 4>}> : (tensor<2x6x4xf32>, tensor<2x3x1xi32>) -> tensor<2x3x4xf32>",
        &[
            ("C1", "collapsed_slice_dims = [1]", "collapsed_slice_dims = [1, 2]"),
            ("C2", "index_vector_dim = 2", "index_vector_dim = 4"),
            ("C3", "start_index_map = [1]", "start_index_map = [1, 2]"),
            ("C5", "offset_dims = [2]", "offset_dims = [3]"),
            ("C6", "collapsed_slice_dims = [1]", "collapsed_slice_dims = [0]"),
            ("C8", "collapsed_slice_dims = [1]", "collapsed_slice_dims = [3]"),
            ("C9", "1, 1, 4>", "1, 2, 4>"),
            ("C11", "operand_batching_dims = [0]", "operand_batching_dims = [3]"),
            ("C12", "1, 1, 4>", "2, 1, 4>"),
            ("C14", "indices_batching_dims = [0]", "indices_batching_dims = [3]"),
            ("C15", "indices_batching_dims = [0]", "indices_batching_dims = [2]"),
            ("C16", "start_indices_batching_dims = [0], ", ""),
            ("C17", "indices_batching_dims = [0]", "indices_batching_dims = [1]"),
            ("C18", "start_index_map = [1]", "start_index_map = [0]"),
            ("C19", "start_index_map = [1]", "start_index_map = [3]"),
            ("C20", "1, 1, 4>", "1, 1>"),
            ("C21", "1, 1, 4>", "1, 1, 5>"),
            ("C22", "-> tensor<2x3x4xf32>", "-> tensor<3x2x4xf32>"),
            ("C23", "-> tensor<2x3x4xf32>", "-> tensor<2x3x4xf64>"),
        ],
    );
}

#[test]
fn scatter() {
    refused_variants(
        "stablehlo.scatter",
        "%a: tensor<2x6x4xf32>, %i: tensor<2x3x1xi32>, %u: tensor<2x3x4xf32>, %d: tensor<2x3x4xf64>",
        "%0 = \"stablehlo.scatter\"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): stablehlo.return %y : tensor<f32> }) : (tensor<2x6x4xf32>, tensor<2x3x1xi32>, tensor<2x3x4xf32>) -> tensor<2x6x4xf32>",
        &[
            ("C2", "inserted_window_dims = [1]", "inserted_window_dims = [1, 2]"),
            ("C4", "update_window_dims = [2]", "update_window_dims = [1]"),
            ("C8", "update_window_dims = [2]", "update_window_dims = [3]"),
            ("C9", "inserted_window_dims = [1]", "inserted_window_dims = [0]"),
            ("C11", "inserted_window_dims = [1]", "inserted_window_dims = [3]"),
            ("C13", "input_batching_dims = [0]", "input_batching_dims = [3]"),
            ("C15", "indices_batching_dims = [0]", "indices_batching_dims = [3]"),
            ("C16", "indices_batching_dims = [0]", "indices_batching_dims = [2]"),
            ("C17", "scatter_indices_batching_dims = [0], ", ""),
            ("C18", "indices_batching_dims = [0]", "indices_batching_dims = [1]"),
            ("C19", "to_operand_dims = [1]", "to_operand_dims = [1, 2]"),
            ("C20", "to_operand_dims = [1]", "to_operand_dims = [0]"),
            ("C21", "to_operand_dims = [1]", "to_operand_dims = [3]"),
            ("C22", "index_vector_dim = 2", "index_vector_dim = 4"),
            ("C23", "return %y : tensor<f32>", "return"),
            ("C24", "-> tensor<2x6x4xf32>", "-> tensor<2x6x5xf32>"),
            ("C25", "-> tensor<2x6x4xf32>", "-> tensor<2x6x4xf64>"),
        ],
    );
    let body = "%0 = \"stablehlo.scatter\"(%a, %i, %d) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): stablehlo.return %y : tensor<f32> }) : (tensor<2x6x4xf32>, tensor<2x3x1xi32>, tensor<2x3x4xf64>) -> tensor<2x6x4xf32>";
    let parameters = "%a: tensor<2x6x4xf32>, %i: tensor<2x3x1xi32>, %d: tensor<2x3x4xf64>";
    refused(parameters, &[("stablehlo.scatter", "C6", body)]);
}

#[test]
fn dot_general() {
    refused_variants(
        "stablehlo.dot_general",
        "%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>, %d: tensor<2x4x5xf64>",
        "%0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>",
        &[
            ("C1", "[0] x [0]", "[0] x []"),
            ("C2", "[2] x [1]", "[2] x []"),
            ("C3", "[2] x [1]", "[0] x [1]"),
            ("C4", "[2] x [1]", "[2] x [0]"),
            ("C5", "[0] x [0]", "[3] x [0]"),
            ("C6", "[2] x [1]", "[3] x [1]"),
            ("C7", "[0] x [0]", "[0] x [3]"),
            ("C8", "[2] x [1]", "[2] x [3]"),
            (
                "C9",
                "batching_dims = [0] x [0], contracting_dims = [2] x [1]",
                "batching_dims = [1] x [0], contracting_dims = [2] x [1]",
            ),
            ("C10", "[2] x [1]", "[1] x [1]"),
            ("C11", "[DEFAULT, DEFAULT]", "[DEFAULT]"),
            ("C12", "-> tensor<2x3x5xf32>", "-> tensor<2x5x3xf32>"),
        ],
    );
    let body = "%0 = stablehlo.dot_general %a, %d, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x3x4xf32>, tensor<2x4x5xf64>) -> tensor<2x3x5xf32>";
    let parameters = "%a: tensor<2x3x4xf32>, %d: tensor<2x4x5xf64>";
    refused(parameters, &[("stablehlo.dot_general", "C13", body)]);
}

#[test]
fn convolution() {
    refused_variants(
        "stablehlo.convolution",
        "%a: tensor<2x6x6x4xf32>, %b: tensor<3x3x2x8xf32>",
        "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x6x6x4xf32>, tensor<3x3x2x8xf32>) -> tensor<2x3x4x8xf32>",
        &[
            ("C2", "stride = [2, 1]", "stride = [2]"),
            ("C3", "stride = [2, 1]", "stride = [2, 0]"),
            ("C4", "[[1, 1], [0, 0]]", "[[1, 1]]"),
            ("C5", "lhs_dilate = [1, 1]", "lhs_dilate = [1]"),
            ("C6", "lhs_dilate = [1, 1]", "lhs_dilate = [1, 0]"),
            ("C7", "rhs_dilate = [1, 1]", "rhs_dilate = [1]"),
            ("C8", "rhs_dilate = [1, 1]", "rhs_dilate = [0, 1]"),
            ("C9", "[false, false]", "[false]"),
            (
                "C10",
                "batch_group_count = 1 : i64, feature_group_count = 2",
                "batch_group_count = 3 : i64, feature_group_count = 1",
            ),
            ("C11", "feature_group_count = 2", "feature_group_count = 3"),
            ("C14", "feature_group_count = 2", "feature_group_count = 4"),
            ("C21", "feature_group_count = 2", "feature_group_count = 0"),
            ("C22", "batch_group_count = 1", "batch_group_count = 0"),
            ("C23", "batch_group_count = 1", "batch_group_count = 2"),
            ("C25", "-> tensor<2x3x4x8xf32>", "-> tensor<2x3x3x8xf32>"),
            ("C25", "-> tensor<2x3x4x8xf32>", "-> tensor<2x3x4x4xf32>"),
            ("C26", "-> tensor<2x3x4x8xf32>", "-> tensor<2x3x4xf32>"),
            ("C27", "-> tensor<2x3x4x8xf32>", "-> tensor<2x3x4x8xbf16>"),
        ],
    );
}

#[test]
fn reductions() {
    refused_variants(
        "stablehlo.reduce",
        "%a: tensor<2x3xf32>, %s: tensor<f32>, %i: tensor<i32>",
        "%0 = \"stablehlo.reduce\"(%a, %s) <{dimensions = array<i64: 1>}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): stablehlo.return %y : tensor<f32> }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>",
        &[
            (
                "C3",
                "(%a, %s) <{dimensions = array<i64: 1>}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): stablehlo.return %y : tensor<f32> }) : (tensor<2x3xf32>, tensor<f32>)",
                "(%a) <{dimensions = array<i64: 1>}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): stablehlo.return %y : tensor<f32> }) : (tensor<2x3xf32>)",
            ),
            ("C4", "array<i64: 1>", "array<i64: 2>"),
            ("C5", "array<i64: 1>", "array<i64: 1, 1>"),
            ("C6", ", %y: tensor<f32>", ", %y: tensor<f32>, %z: tensor<f32>"),
            ("C7", "-> tensor<2xf32>", "-> tensor<3xf32>"),
            ("C8", "-> tensor<2xf32>", "-> tensor<2xf64>"),
        ],
    );
    let body = "%0 = stablehlo.reduce(%a init: %i) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<i32>) -> tensor<2xi32>";
    refused("%a: tensor<2x3xf32>, %i: tensor<i32>", &[("stablehlo.reduce", "C2", body)]);
    refused_variants(
        "stablehlo.reduce_window",
        "%a: tensor<4x6xf32>, %s: tensor<f32>",
        "%0 = \"stablehlo.reduce_window\"(%a, %s) <{padding = dense<[[1, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 1, 2>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): stablehlo.return %y : tensor<f32> }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x2xf32>",
        &[
            ("C4", "window_dimensions = array<i64: 2, 3>", "window_dimensions = array<i64: 2>"),
            ("C5", "window_dimensions = array<i64: 2, 3>", "window_dimensions = array<i64: 2, 0>"),
            ("C6", "window_strides = array<i64: 1, 2>", "window_strides = array<i64: 1>"),
            ("C7", "window_strides = array<i64: 1, 2>", "window_strides = array<i64: 0, 2>"),
            ("C9", "base_dilations = array<i64: 1, 1>", "base_dilations = array<i64: 0, 1>"),
            ("C11", "window_dilations = array<i64: 1, 1>", "window_dilations = array<i64: 0, 1>"),
            (
                "C12",
                "dense<[[1, 0], [0, 0]]> : tensor<2x2xi64>",
                "dense<[[1, 0]]> : tensor<1x2xi64>",
            ),
            ("C13", "return %y : tensor<f32>", "return"),
            ("C15", "-> tensor<4x2xf32>", "-> tensor<4x3xf32>"),
            ("C16", "-> tensor<4x2xf32>", "-> tensor<4x2xf64>"),
        ],
    );
}

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

/// A module of four partitions whose `main` has this body.
fn four(body: &str) -> Module {
    let text = main_text("%a: tensor<8x4xf32>", body);
    let text = text.replacen("module", "module attributes {mhlo.num_partitions = 4 : i32}", 1);
    parse(&text).unwrap_or_else(|error| panic!("{error}"))
}

fn refused_collectives(op: &str, right: &str, variants: &[(&str, &str, &str)]) {
    verify(&four(right)).unwrap_or_else(|error| panic!("{error}"));
    for (constraint, from, to) in variants {
        assert!(right.contains(from), "{from} is not in {right}");
        let error = refusal(&four(&right.replace(from, to)));
        assert_eq!(
            (error.subject.as_str(), error.constraint.unwrap_or("")),
            (op, *constraint),
            "{error}"
        );
    }
}

#[test]
fn collectives() {
    let groups = "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>";
    let channel = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, ";
    let body = "({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %s = stablehlo.add %x, %y : tensor<f32> stablehlo.return %s : tensor<f32> })";
    refused_collectives(
        "stablehlo.all_reduce",
        &format!(
            "%0 = \"stablehlo.all_reduce\"(%a) <{{{channel}replica_groups = {groups}, use_global_device_ids}}> {body} : (tensor<8x4xf32>) -> tensor<8x4xf32>"
        ),
        &[
            ("C1", "[2, 3]", "[2, 1]"),
            ("C2", groups, "dense<[[0, 1]]> : tensor<1x2xi64>"),
            ("C3", "[2, 3]", "[2, 4]"),
            ("C4", channel, ""),
            ("C5", "return %s : tensor<f32>", "return"),
            ("C6", "-> tensor<8x4xf32>", "-> tensor<8x2xf32>"),
            ("C7", "-> tensor<8x4xf32>", "-> tensor<8x4xf64>"),
        ],
    );
    refused_collectives(
        "stablehlo.all_gather",
        &format!(
            "%0 = \"stablehlo.all_gather\"(%a) <{{all_gather_dim = 1 : i64, {channel}replica_groups = {groups}, use_global_device_ids}}> : (tensor<8x4xf32>) -> tensor<8x8xf32>"
        ),
        &[
            ("C1", "all_gather_dim = 1", "all_gather_dim = 2"),
            ("C2", "[2, 3]", "[2, 1]"),
            ("C3", groups, "dense<[[0, 1]]> : tensor<1x2xi64>"),
            ("C4", "[2, 3]", "[2, -2]"),
            ("C5", channel, ""),
            ("C6", "-> tensor<8x8xf32>", "-> tensor<16x4xf32>"),
        ],
    );
    refused_collectives(
        "stablehlo.reduce_scatter",
        &format!(
            "%0 = \"stablehlo.reduce_scatter\"(%a) <{{{channel}replica_groups = {groups}, scatter_dimension = 0 : i64, use_global_device_ids}}> {body} : (tensor<8x4xf32>) -> tensor<4x4xf32>"
        ),
        &[
            ("C2", "scatter_dimension = 0", "scatter_dimension = 2"),
            ("C3", "[2, 3]", "[2, 1]"),
            ("C4", groups, "dense<[[0, 1]]> : tensor<1x2xi64>"),
            ("C5", "[2, 3]", "[2, 4]"),
            ("C6", channel, ""),
            ("C7", "return %s : tensor<f32>", "return"),
            ("C8", "-> tensor<4x4xf32>", "-> tensor<8x4xf32>"),
            ("C9", "-> tensor<4x4xf32>", "-> tensor<4x4xf64>"),
        ],
    );
    refused_collectives(
        "stablehlo.all_to_all",
        &format!(
            "%0 = \"stablehlo.all_to_all\"(%a) <{{{channel}concat_dimension = 1 : i64, replica_groups = {groups}, split_count = 2 : i64, split_dimension = 0 : i64}}> : (tensor<8x4xf32>) -> tensor<4x8xf32>"
        ),
        &[
            ("C1", "split_dimension = 0", "split_dimension = 2"),
            ("C3", "concat_dimension = 1", "concat_dimension = 2"),
            ("C4", "split_count = 2", "split_count = 0"),
            ("C5", "[2, 3]", "[2, 1]"),
            ("C6", groups, "dense<[[0, 1]]> : tensor<1x2xi64>"),
            ("C7", "[2, 3]", "[2, 4]"),
            ("C8", "split_count = 2", "split_count = 4"),
            ("C9", "-> tensor<4x8xf32>", "-> tensor<8x4xf32>"),
        ],
    );
    refused_collectives(
        "stablehlo.collective_permute",
        &format!(
            "%0 = \"stablehlo.collective_permute\"(%a) <{{{channel}source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}}> : (tensor<8x4xf32>) -> tensor<8x4xf32>"
        ),
        &[
            ("C2", "[1, 0]", "[0, 2]"),
            ("C3", "[1, 0]", "[2, 1]"),
            ("C4", "[1, 0]", "[1, 4]"),
            ("C5", "-> tensor<8x4xf32>", "-> tensor<4x8xf32>"),
        ],
    );
    refused_collectives(
        "stablehlo.collective_broadcast",
        &format!(
            "%0 = \"stablehlo.collective_broadcast\"(%a) <{{{channel}replica_groups = dense<[[2, 1]]> : tensor<1x2xi64>}}> : (tensor<8x4xf32>) -> tensor<8x4xf32>"
        ),
        &[
            ("C1", "[[2, 1]]", "[[1, 1]]"),
            ("C2", "[[2, 1]]", "[[2, 4]]"),
            ("C3", "-> tensor<8x4xf32>", "-> tensor<4x8xf32>"),
        ],
    );
}

/// A module with these functions and meshes violates what the message says.
fn refused_module(items: &str, message: &str) {
    let module = parse(&format!("module {{ {items} }}")).unwrap_or_else(|error| panic!("{error}"));
    let found = refusal(&module).to_string();
    assert!(found.contains(message), "{found}");
}

#[test]
fn functions_and_calls() {
    let main = "func.func @main() { return }";
    refused_module("", "the module: there is no function @main to run");
    refused_module("func.func private @f() { return }", "there is no function @main");
    refused_module("func.func @main() { call @f() : () -> () return }", "there is no function @f");
    refused_module(
        "func.func @main() { call @main() : () -> () return }",
        "calling @main here never ends",
    );
    refused_module(
        "func.func @main() { call @f() : () -> () return } func.func @f() { call @g() : () -> () return } func.func @g() { call @f() : () -> () return }",
        "calling @f here never ends",
    );
    refused_module(
        "func.func @main(%a: tensor<f32>) { call @f(%a) : (tensor<f32>) -> () return } func.func @f(%a: tensor<i32>) { return }",
        "@f takes (tensor<i32>), passed are (tensor<f32>)",
    );
    refused_module(
        "func.func @main() { %0 = call @f() : () -> tensor<f32> return } func.func @f() { return }",
        "expected 0 results, found 1",
    );
    refused_module(
        "func.func @main(%a: tensor<f32>) -> tensor<i32> { return %a : tensor<f32> }",
        "the function promises (tensor<i32>), returned are (tensor<f32>)",
    );
    refused_module("func.func @main() { }", "it has a block without operations");
    refused_module(
        "func.func @main(%a: tensor<f32>) { %b = stablehlo.negate %a : tensor<f32> }",
        "the last operation of a block must be a return",
    );
    refused_module("func.func @main() { return return }", "a return must be the last operation");
    refused_module(
        "func.func @main(%a: tensor<f32> {tf.aliasing_output = 0 : i32}) { return }",
        "lends its memory to a result that is not there",
    );
    // Many calls of one function are no recursion, however many ways lead to it.
    let calls = "call @f() : () -> () call @f() : () -> ()";
    let text =
        format!("module {{ func.func @main() {{ {calls} return }} func.func @f() {{ return }} }}");
    assert_eq!(verify(&parse(&text).unwrap()), Ok(()));
    assert_eq!(verify(&parse(main).unwrap()), Ok(()));
}

#[test]
fn shardings() {
    let mesh = "sdy.mesh @m = <[\"x\"=2, \"y\"=2]>";
    let main = |sharding: &str| {
        format!(
            "{mesh} func.func @main(%a: tensor<4xf32> {{sdy.sharding = #sdy.sharding{sharding}}}) {{ return }}"
        )
    };
    refused_module(&main("<@n, [{}]>"), "its sharding names @n, which is no mesh");
    refused_module(&main("<@m, [{}, {}]>"), "its sharding has 2 dimensions");
    refused_module(&main("<@m, [{\"z\"}]>"), "@m has no axis \"z\"");
    refused_module(&main("<@m, [{\"x\"}], replicated={\"x\"}>"), "uses the axis \"x\" twice");
    refused_module("sdy.mesh @m = <[\"x\"=0]> func.func @main() { return }", "has no devices");
    refused_module("sdy.mesh @m = <[\"x\"=2, \"x\"=2]> func.func @main() { return }", "twice");
    refused_module(
        "sdy.mesh @m = <[\"x\"=2], device_ids=[0, 2]> func.func @main() { return }",
        "device_ids must name each of 2 devices once",
    );
    let manual = |text: &str| {
        format!("{mesh} func.func @main(%a: tensor<4xf32>, %b: tensor<2xf32>) {{ {text} return }}")
    };
    let right = "%0 = sdy.manual_computation(%a) in_shardings=[<@m, [{\"x\"}]>] out_shardings=[<@m, [{\"x\"}]>] manual_axes={\"x\", \"y\"} (%c: tensor<2xf32>) { sdy.return %c : tensor<2xf32> } : (tensor<4xf32>) -> tensor<4xf32>";
    let module = parse(&format!("module {{ {} }}", manual(right))).unwrap();
    assert_eq!(verify(&module), Ok(()));
    for (from, to, message) in [
        ("in_shardings=[<@m, [{\"x\"}]>]", "in_shardings=[]", "in_shardings must have 1 entries"),
        ("in_shardings=[<@m, [{\"x\"}]>]", "in_shardings=[<@m, [{}]>]", "the body takes"),
        ("out_shardings=[<@m, [{\"x\"}]>]", "out_shardings=[<@m, [{}]>]", "the body returns"),
        ("sdy.return %c", "sdy.return %b", "comes from outside an isolated region"),
        ("[{\"x\"}]>] manual", "[{\"q\"}]>] manual", "@m has no axis \"q\""),
    ] {
        assert!(right.contains(from), "{from}");
        refused_module(&manual(&right.replace(from, to)), message);
    }
    refused_module(
        &manual("%0 = sdy.sharding_constraint %a <@m, [{\"x\"}, {}]> : tensor<4xf32>"),
        "its sharding has 2 dimensions",
    );
}

/// A module that no text describes: what a reader with a defect, or a caller, could build.
#[test]
fn modules_with_wrong_indices_are_refused() {
    let text = main_text("%a: tensor<f32>", "%0 = stablehlo.negate %a : tensor<f32>");
    let changed = |change: fn(&mut Module)| {
        let mut module = parse(&text).unwrap();
        change(&mut module);
        refusal(&module).to_string()
    };
    for (message, expected) in [
        (changed(|m| m.functions[0].entry = Block::new(7)), "it has no body"),
        (
            changed(|m| m.functions[0].blocks[Block::new(0)].ops[0] = Op::new(9)),
            "an operation that does not exist",
        ),
        (changed(|m| m.functions[0].params.clear()), "its parameters are not the arguments"),
        (
            changed(|m| m.functions[0].blocks[Block::new(0)].ops[0] = Op::new(1)),
            "a return must be the last",
        ),
        (changed(|m| m.functions.push(m.functions[0].clone())), "it is defined twice"),
        (
            changed(|m| m.functions[0].ops[Op::new(0)].operands[0] = Value::new(1)),
            "used where it is not defined",
        ),
        (
            changed(|m| m.functions[0].ops[Op::new(0)].operands[0] = Value::new(77)),
            "used where it is not defined",
        ),
        (changed(|m| m.functions[0].ops[Op::new(0)].results[0] = Value::new(77)), "does not exist"),
        (
            changed(|m| m.functions[0].ops[Op::new(0)].results[0] = Value::new(0)),
            "is not what its value says",
        ),
        (
            changed(|m| {
                m.functions[0].values[Value::new(1)].def = ValueDef::Argument(Block::new(0), 0)
            }),
            "is not what its value says",
        ),
    ] {
        assert!(message.contains(expected), "{message}");
    }
}
