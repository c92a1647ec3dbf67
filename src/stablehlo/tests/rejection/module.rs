//! Functions, calls, meshes and indices.

use super::refusal;
use crate::stablehlo::entity::Entity as _;
use crate::stablehlo::tests::{main_text, parse};
use crate::stablehlo::{Block, Module, Op, Value, ValueDef, verify};

/// A module with these functions and meshes violates what the message says.
fn refused_module(items: &str, message: &str) {
    let module = parse(&format!("module {{ {items} }}")).unwrap_or_else(|error| panic!("{error}"));
    let found = refusal(&module).to_string();
    assert!(found.contains(message), "{found}");
}

#[test]
fn functions_and_calls() {
    let main = "func.func @main() { return }";
    // A module is a program whatever its functions are called.
    for items in ["", "func.func private @f() { return }"] {
        verify(&parse(&format!("module {{ {items} }}")).unwrap()).unwrap();
    }
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
        "@f returns (), expected are (tensor<f32>)",
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
                m.functions[0].values[Value::new(1)].def = ValueDef::Argument(Block::new(0), 0);
            }),
            "is not what its value says",
        ),
    ] {
        assert!(message.contains(expected), "{message}");
    }
}
