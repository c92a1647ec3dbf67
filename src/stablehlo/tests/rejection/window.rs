//! Operations that index, contract, reduce and slide windows.

use super::{refused, refused_variants};

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
    let body = "%0 = stablehlo.dot_general %a, %d, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x3x4xf32>, tensor<2x4x5xi32>) -> tensor<2x3x5xf32>";
    let parameters = "%a: tensor<2x3x4xf32>, %d: tensor<2x4x5xi32>";
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
fn gathers_and_convolutions_whose_sizes_are_operands() {
    refused_variants(
        "stablehlo.dynamic_gather",
        "%a: tensor<2x6x4xf32>, %i: tensor<2x3x1xi32>, %n: tensor<3xi64>",
        "%0 = \"stablehlo.dynamic_gather\"(%a, %i, %n) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>}> : (tensor<2x6x4xf32>, tensor<2x3x1xi32>, tensor<3xi64>) -> tensor<2x3x4xf32>",
        &[
            ("C1", "collapsed_slice_dims = [1]", "collapsed_slice_dims = [1, 2]"),
            ("C2", "index_vector_dim = 2", "index_vector_dim = 4"),
            ("C3", "start_index_map = [1]", "start_index_map = [1, 2]"),
            ("C5", "offset_dims = [2]", "offset_dims = [3]"),
            ("C6", "collapsed_slice_dims = [1]", "collapsed_slice_dims = [0]"),
            ("C7", "collapsed_slice_dims = [1]", "collapsed_slice_dims = [3]"),
            ("C10", "start_index_map = [1]", "start_index_map = [3]"),
            ("C13", "-> tensor<2x3x4xf32>", "-> tensor<3x2x4xf32>"),
            ("C14", "-> tensor<2x3x4xf32>", "-> tensor<2x3x4xf64>"),
        ],
    );
    refused_variants(
        "stablehlo.dynamic_conv",
        "%a: tensor<2x6x6x4xf32>, %b: tensor<3x3x2x8xf32>, %p: tensor<2x2xi32>",
        "%0 = \"stablehlo.dynamic_conv\"(%a, %b, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 2 : i64, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, window_strides = array<i64: 2, 1>}> : (tensor<2x6x6x4xf32>, tensor<3x3x2x8xf32>, tensor<2x2xi32>) -> tensor<2x3x4x8xf32>",
        &[
            ("C2", "strides = array<i64: 2, 1>", "strides = array<i64: 2>"),
            ("C3", "strides = array<i64: 2, 1>", "strides = array<i64: 2, 0>"),
            ("C5", "lhs_dilation = array<i64: 1, 1>", "lhs_dilation = array<i64: 1>"),
            ("C6", "lhs_dilation = array<i64: 1, 1>", "lhs_dilation = array<i64: 0, 1>"),
            ("C7", "rhs_dilation = array<i64: 1, 1>", "rhs_dilation = array<i64: 1>"),
            ("C8", "rhs_dilation = array<i64: 1, 1>", "rhs_dilation = array<i64: 0, 1>"),
            ("C9", "array<i1: false, false>", "array<i1: false>"),
            ("C11", "feature_group_count = 2", "feature_group_count = 3"),
            ("C12", "[b, 0, 1, f]x", "[b, 0, f]x"),
            ("C14", "feature_group_count = 2", "feature_group_count = 4"),
            ("C17", "x[0, 1, i, o]", "x[0, i, o]"),
            ("C19", "->[b, 0, 1, f]", "->[b, 0, f]"),
            ("C21", "feature_group_count = 2", "feature_group_count = 0"),
            ("C22", "batch_group_count = 1", "batch_group_count = 0"),
            ("C23", "batch_group_count = 1", "batch_group_count = 2"),
        ],
    );
}
