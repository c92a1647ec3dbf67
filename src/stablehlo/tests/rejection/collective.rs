//! Operations between devices.

use super::refusal;
use crate::stablehlo::tests::{main_text, parse};
use crate::stablehlo::{Module, verify};

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
