//! Tokens, tuples, and what is sent and received.

use super::in_all_forms;
use super::rejection::{refused, refused_variants};
use crate::stablehlo::op::{ChannelType, OpKind, Transfer};

const T: &str = "!stablehlo.token";

#[test]
fn tokens() {
    let parameters = format!("%t: {T}, %a: tensor<f32>");
    let joined = in_all_forms(
        &parameters,
        &[
            &format!("%0 = stablehlo.after_all %t, %t : {T}"),
            &format!("%0 = \"stablehlo.after_all\"(%t, %t) : ({T}, {T}) -> {T}"),
        ],
    );
    let made = in_all_forms(
        "",
        &[
            &format!("%0 = stablehlo.after_all : {T}"),
            &format!("%0 = stablehlo.create_token : {T}"),
            &format!("%0 = \"stablehlo.create_token\"() : () -> {T}"),
        ],
    );
    assert_eq!((joined, made), (OpKind::AfterAll, OpKind::AfterAll));
    refused_variants(
        "stablehlo.after_all",
        &parameters,
        &format!("%0 = \"stablehlo.after_all\"(%t) : ({T}) -> {T}"),
        &[
            ("I1", "(%t) : (!stablehlo.token)", "(%a) : (tensor<f32>)"),
            ("O1", "-> !stablehlo.token", "-> tensor<f32>"),
        ],
    );
}

#[test]
fn tuples() {
    let parameters = "%a: tensor<2xf32>, %b: tensor<i32>, %p: tuple<tensor<2xf32>, tuple<>>";
    let pair = "tuple<tensor<2xf32>, tensor<i32>>";
    let right = format!("%0 = stablehlo.tuple %a, %b : {pair}");
    let generic =
        format!("%0 = \"stablehlo.tuple\"(%a, %b) : (tensor<2xf32>, tensor<i32>) -> {pair}");
    assert_eq!(in_all_forms(parameters, &[&right, &generic]), OpKind::Tuple);
    in_all_forms("", &["%0 = stablehlo.tuple : tuple<>"]);
    refused(
        parameters,
        &[("stablehlo.tuple", "C1", &generic.replace(pair, "tuple<tensor<2xf32>>"))],
    );
    let right =
        "%0 = stablehlo.get_tuple_element %p[1] : (tuple<tensor<2xf32>, tuple<>>) -> tuple<>";
    let kind = in_all_forms(
        parameters,
        &[
            right,
            "%0 = \"stablehlo.get_tuple_element\"(%p) <{index = 1 : i32}> : (tuple<tensor<2xf32>, tuple<>>) -> tuple<>",
        ],
    );
    assert_eq!(kind, OpKind::GetTupleElement { index: 1 });
    refused_variants(
        "stablehlo.get_tuple_element",
        parameters,
        right,
        &[
            ("C1", "%p[1]", "%p[2]"),
            ("C2", "%p[1]", "%p[0]"),
            ("I1", "%p[1] : (tuple<tensor<2xf32>, tuple<>>)", "%b[1] : (tensor<i32>)"),
        ],
    );
}

#[test]
fn feeds() {
    let parameters = format!("%t: {T}, %a: tensor<2xf32>");
    let right = format!(
        "%0:2 = \"stablehlo.infeed\"(%t) <{{infeed_config = \"a\\22b\"}}> : ({T}) -> (tensor<2xf32>, {T})"
    );
    let kind = in_all_forms(&parameters, &[&right]);
    assert_eq!(kind, OpKind::Infeed { config: "a\"b".to_owned() });
    refused_variants(
        "stablehlo.infeed",
        &parameters,
        &right,
        &[
            ("C2", "-> (tensor<2xf32>,", "-> (!stablehlo.token,"),
            ("C3", "(tensor<2xf32>, !stablehlo.token)", "(tensor<2xf32>, tensor<2xf32>)"),
        ],
    );
    refused(
        &parameters,
        &[("stablehlo.infeed", "C1", "\"stablehlo.infeed\"(%t) : (!stablehlo.token) -> ()")],
    );
    let right = format!(
        "%0 = \"stablehlo.outfeed\"(%a, %t) <{{outfeed_config = \"x\"}}> : (tensor<2xf32>, {T}) -> {T}"
    );
    assert_eq!(in_all_forms(&parameters, &[&right]), OpKind::Outfeed { config: "x".to_owned() });
    refused_variants(
        "stablehlo.outfeed",
        &parameters,
        &right,
        &[
            (
                "I1",
                "(%a, %t) <{outfeed_config = \"x\"}> : (tensor<2xf32>,",
                "(%t, %t) : (!stablehlo.token,",
            ),
            (
                "I2",
                "(%a, %t) <{outfeed_config = \"x\"}> : (tensor<2xf32>, !stablehlo.token)",
                "(%a) : (tensor<2xf32>)",
            ),
            ("O1", "-> !stablehlo.token", "-> tensor<2xf32>"),
        ],
    );
}

#[test]
fn sends_and_receives() {
    let parameters = format!("%t: {T}, %a: tensor<2xf32>");
    let handle =
        |kind: u8| format!("channel_handle = #stablehlo.channel_handle<handle = 0, type = {kind}>");
    let pairs = "source_target_pairs = dense<[[0, 0]]> : tensor<1x2xi64>";
    let right = format!(
        "%0 = \"stablehlo.send\"(%a, %t) <{{{}, {pairs}}}> : (tensor<2xf32>, {T}) -> {T}",
        handle(1)
    );
    let transfer = Transfer {
        channel_id: 0,
        channel_type: ChannelType::DeviceToDevice,
        is_host_transfer: false,
        source_target_pairs: vec![(0, 0)],
    };
    assert_eq!(in_all_forms(&parameters, &[&right]), OpKind::Send(transfer));
    refused_variants(
        "stablehlo.send",
        &parameters,
        &right,
        &[
            ("C2", "[[0, 0]]> : tensor<1x2xi64>", "[[0, 0], [0, 0]]> : tensor<2x2xi64>"),
            ("C4", "[[0, 0]]", "[[0, -1]]"),
            ("C5", "type = 1", "type = 2"),
            ("O1", "-> !stablehlo.token", "-> tensor<2xf32>"),
        ],
    );
    let right = format!(
        "%0:2 = \"stablehlo.recv\"(%t) <{{{}, is_host_transfer = true}}> : ({T}) -> (tensor<2xf32>, {T})",
        handle(3)
    );
    let OpKind::Recv(transfer) = in_all_forms(&parameters, &[&right]) else { panic!() };
    assert!(transfer.is_host_transfer && transfer.source_target_pairs.is_empty());
    assert_eq!(transfer.channel_type, ChannelType::HostToDevice);
    refused_variants(
        "stablehlo.recv",
        &parameters,
        &right,
        &[
            ("C5", "is_host_transfer = true", "is_host_transfer = false"),
            ("O1", "(tensor<2xf32>, !stablehlo.token)", "(tensor<2xf32>, tensor<2xf32>)"),
        ],
    );
}
