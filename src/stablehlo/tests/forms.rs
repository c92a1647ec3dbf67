//! Forms of text that JAX does not write and MLIR reads: type aliases, constants in other forms,
//! attributes that only a custom call's target can read.

use super::read_main;
use crate::stablehlo::{parse, verify};

#[test]
fn types_have_aliases() {
    let text = |aliases: &str| {
        format!(
            "!element = f32\n!quantized = !quant.uniform<i8:f32, 5.0e-1>\n!pair = tensor<2x!element>\n\
             !same = !pair\n{aliases}func.func @main(%a: !same, %b: tensor<3x!quantized>) -> !pair {{\n\
             %0 = stablehlo.abs %a : tensor<2xf32>\nreturn %0 : !same\n}}"
        )
    };
    let module = parse(&text("")).unwrap_or_else(|error| panic!("{error}"));
    verify(&module).unwrap();
    let types: Vec<String> = module.functions[0]
        .params
        .iter()
        .map(|p| module.functions[0].ty(p.value).to_string())
        .collect();
    assert_eq!(types, ["tensor<2xf32>", "tensor<3x!quant.uniform<i8:f32, 5.0e-1>>"]);
    for (aliases, message) in [
        ("!late = !later\n", "!later is not defined before its use"),
        ("!pair = f32\n", "!pair is defined twice"),
        ("!list = tensor<2x!pair>\n", "this alias stands for no element type"),
    ] {
        assert_eq!(parse(&text(aliases)).unwrap_err().message, message);
    }
    assert_eq!(
        parse("!e = f32\nfunc.func @main(%a: !e) { return }").unwrap_err().message,
        "this alias stands for the type of an element"
    );
}

#[test]
fn type_aliases_do_not_stand_for_endless_text() {
    let tensor = format!("tensor<{}f32>", "1x".repeat(60));
    let uses = "!t, ".repeat(100_000);
    let error = parse(&format!("!t = {tensor}\nfunc.func @main(%a: tuple<{uses}!t>) {{ return }}"));
    assert_eq!(error.unwrap_err().message, "aliases stand for much more text than there is");
}

#[test]
fn constants_have_several_forms() {
    let expected = read_main("", "%0 = stablehlo.constant dense<[1, -2]> : tensor<2xi8>").unwrap();
    for form in [
        "stablehlo.constant() <{value = dense<[1, 254]> : tensor<2xi8>}> : () -> tensor<2xi8>",
        "stablehlo.constant() {value = dense<[0x01, 0xFE]> : tensor<2xi8>} : () -> tensor<2xi8>",
        "stablehlo.constant dense<\"0x01FE\"> : tensor<2xi8>",
        "sdy.constant dense<[1, -2]> : tensor<2xi8>",
        "\"sdy.constant\"() <{value = dense<[1, -2]> : tensor<2xi8>}> : () -> tensor<2xi8>",
    ] {
        let module = read_main("", &format!("%0 = {form}"));
        let module = module.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(module.to_string(), expected.to_string());
    }
    let flags = |elements: &str| {
        read_main("", &format!("%0 = stablehlo.constant dense<{elements}> : tensor<3xi1>"))
    };
    let expected = flags("[true, false, true]").unwrap().to_string();
    for elements in ["[1, 0, -1]", "[true, 0, 1]", "\"0x05\"", "\"0x010001\""] {
        assert_eq!(flags(elements).unwrap().to_string(), expected, "{elements}");
    }
    assert!(flags("[2, 0, 1]").is_err());
}

#[test]
fn attributes_of_any_kind_are_kept() {
    let call = |attributes: &str| {
        let body = format!("stablehlo.custom_call @f() {{{attributes}}} : () -> ()");
        read_main("", &body).unwrap_or_else(|error| panic!("{error}"))
    };
    for attribute in [
        "a = array<f32: 5.0e-1, 0x7FC00000>",
        "a = array<i8>",
        "a = array<i32: 1, -2>",
        "a = array<i1: true, false>",
        "a = @outer::@inner::@\"odd name\"",
        "a = f32, b = complex<f64>, c = index, d = i1",
        "a = 5 : index",
        "a = [<x = 1>]",
        "a = !quant.uniform<i8:f32, 5.0e-1>, b = none",
        "a = (tensor<f32>) -> (), b = tensor<?xf32>, c = !stablehlo.token",
        "a = [#other.thing<{x = \"->\"}>, dense<1> : tensor<2xi4>]",
    ] {
        let text = call(attribute).to_string();
        let again = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(again.to_string(), text);
        for part in
            attribute.split(", ").filter(|part| !part.contains("0x") && !part.contains("index"))
        {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
    let layouts = call("operand_layouts = [], result_layouts = []").to_string();
    assert_eq!(layouts, call("").to_string());
    let one = call("operand_layouts = [dense<[0]> : tensor<1xindex>]").to_string();
    assert!(one.contains("result_layouts = []"), "{one}");
}

#[test]
fn reductions_of_any_elements_may_apply_an_operation() {
    let quantized = "!quant.uniform<i8:f32, 5.0e-1>";
    for (ty, scalar) in [
        ("tensor<2x?xf32>".to_owned(), "tensor<f32>".to_owned()),
        (format!("tensor<2x3x{quantized}>"), format!("tensor<{quantized}>")),
    ] {
        let result = ty.replacen("2x", "", 1);
        let body = format!(
            "%0 = stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = [0] : ({ty}, {scalar}) -> {result}"
        );
        let module = read_main(&format!("%a: {ty}, %s: {scalar}"), &body);
        let text = module.unwrap_or_else(|error| panic!("{error}")).to_string();
        assert!(text.contains(&format!("(%arg2: {scalar}, %arg3: {scalar})")), "{text}");
    }
}

#[test]
fn tolerances_without_a_bound_are_printed_as_bits() {
    // Not verified before its type is known.
    let module = read_main(
        "%a: tensor<?xf32>",
        "%0 = stablehlo.tanh %a {result_accuracy = #stablehlo.result_accuracy<atol = 1.0e+999, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<?xf32>",
    );
    let text = module.unwrap().to_string();
    assert!(text.contains("<atol = 0x7FF0000000000000 : f64, mode"), "{text}");
    assert_eq!(parse(&text).unwrap().to_string(), text);
}

#[test]
fn memory_kinds_are_kept() {
    let text = "func.func @main(%a: tensor<2xf32> {mhlo.memory_kind = \"pinned_host\"}) -> (tensor<2xf32> {mhlo.memory_kind = \"device\"}) { return %a : tensor<2xf32> }";
    let module = parse(text).unwrap();
    let main = &module.functions[0];
    assert_eq!(main.params[0].memory_kind.as_deref(), Some("pinned_host"));
    assert_eq!(main.results[0].memory_kind.as_deref(), Some("device"));
    let printed = module.to_string();
    assert_eq!(parse(&printed).unwrap().to_string(), printed);
    assert!(printed.contains("-> (tensor<2xf32> {mhlo.memory_kind = \"device\"})"), "{printed}");
}
