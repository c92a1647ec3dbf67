//! `sdy.sharding` of ordinary operations.

use crate::stablehlo::{Module, parse, verify};

/// A module with the mesh `@mesh` and this body.
fn on_mesh(body: &str) -> Module {
    let text = super::main_text("%a: tensor<4xf32>, %p: tensor<i1>, %i: tensor<4xi32>", body);
    let mesh = "module {\n  sdy.mesh @mesh = <[\"x\"=2, \"y\"=2]>";
    parse(&text.replacen("module {", mesh, 1)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn shardings_of_operations_are_kept() {
    let spread = "{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"x\", ?}]>]>}";
    let both = "{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{\"y\"}]>]>}";
    for (body, printed) in [
        ("%0 = stablehlo.add %a, %a {S} : tensor<4xf32>", "stablehlo.add %arg0, %arg0 {S} : "),
        ("%0 = stablehlo.constant {S} dense<1.0> : tensor<4xf32>", "constant {S} dense<"),
        ("%0 = stablehlo.iota dim = 0 {S} : tensor<4xi32>", "stablehlo.iota dim = 0 {S} : "),
        (
            "%0 = stablehlo.select %p, %a, %a {S} : tensor<i1>, tensor<4xf32>",
            "stablehlo.select %arg1, %arg0, %arg0 {S} : ",
        ),
        (
            "%0 = stablehlo.compare LT, %a, %a {S} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>",
            "stablehlo.compare LT, %arg0, %arg0 {S} : ",
        ),
        (
            "%0 = stablehlo.transpose %a, dims = [0] {S} : (tensor<4xf32>) -> tensor<4xf32>",
            "dims = [0] {S} : ",
        ),
        (
            "%0 = \"stablehlo.reverse\"(%a) <{dimensions = array<i64: 0>}> {S} : (tensor<4xf32>) -> tensor<4xf32>",
            "<{dimensions = array<i64: 0>}> {S} : ",
        ),
        (
            "%0 = stablehlo.custom_call @f(%a) {S} : (tensor<4xf32>) -> tensor<4xf32>",
            "@f(%arg0) {S} : ",
        ),
        (
            "%0 = \"stablehlo.sort\"(%a) <{dimension = 0 : i64, is_stable = true}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %l = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %l : tensor<i1> }) {S} : (tensor<4xf32>) -> tensor<4xf32>",
            "}) {S} : ",
        ),
        (
            "%0:2 = stablehlo.optimization_barrier %a, %i {T} : tensor<4xf32>, tensor<4xi32>",
            "(%arg0, %arg2) {T} : ",
        ),
    ] {
        let filled = |text: &str| text.replace("{S}", spread).replace("{T}", both);
        let module = on_mesh(&filled(body));
        verify(&module).unwrap_or_else(|error| panic!("{error}"));
        let text = module.to_string();
        assert!(text.contains(&filled(printed)), "{text}");
        let again = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(again.to_string(), text);
        let shardings = |module: &Module| {
            let main = module.function("main").unwrap();
            main.ops[main.blocks[main.entry].ops[0]].shardings.clone()
        };
        assert_eq!(shardings(&again), shardings(&module));
        assert_eq!(shardings(&again).len(), if body.contains("{T}") { 2 } else { 1 });
        let without = on_mesh(&body.replace(" {S}", "").replace(" {T}", ""));
        assert_ne!(without.fingerprint(), module.fingerprint());
    }
}

#[test]
fn shardings_that_do_not_fit_are_refused() {
    for (shardings, message) in [
        ("<@mesh, [{}]>, <@mesh, [{}]>", "sdy.sharding must have 1 entries, has 2"),
        ("<@other, [{}]>", "result 0: its sharding names @other, which is no mesh"),
        (
            "<@mesh, [{}, {}]>",
            "result 0: its sharding has 2 dimensions, its type tensor<4xf32> has 1",
        ),
        ("<@mesh, [{\"z\"}]>", "result 0: @mesh has no axis \"z\""),
    ] {
        let attribute = format!("{{sdy.sharding = #sdy.sharding_per_value<[{shardings}]>}}");
        let body = format!("%0 = stablehlo.negate %a {attribute} : tensor<4xf32>");
        let error = verify(&on_mesh(&body)).unwrap_err();
        assert_eq!((error.subject.as_str(), error.message.as_str()), ("stablehlo.negate", message));
    }
}
