//! Damaged programs: whatever the text, reading ends in a module or in an error with a place.

use proptest::prelude::*;

use super::corpus::programs;
use super::operations;
use crate::stablehlo::{Module, parse, verify};

/// Reads, and checks what must hold of any answer.
fn survives(text: &str) {
    match parse(text) {
        Ok(module) => reads_back(&module),
        Err(error) => {
            let line = text.split('\n').nth(error.line as usize - 1);
            let line = line.unwrap_or_else(|| panic!("line {} of {text}", error.line));
            assert!(error.column as usize - 1 <= line.len(), "{error}");
            assert!(!error.message.is_empty());
            assert!(error.to_string().contains(" --> "));
        }
    }
}

/// What is read can be verified, and what is verified prints text that reads back.
fn reads_back(module: &Module) {
    if verify(module).is_ok() {
        let again = parse(&module.to_string()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.fingerprint(), module.fingerprint());
    }
}

/// A program of the corpus; small ones, so that a case is quick.
fn program() -> impl Strategy<Value = String> {
    let texts: Vec<String> =
        programs().into_iter().map(|(_, text)| text).filter(|text| text.len() < 6000).collect();
    assert!(texts.len() > 60);
    // Half of the cases are about the rarer operations.
    prop_oneof![proptest::sample::select(texts), proptest::sample::select(operations::programs())]
}

/// The tokens of a text: words, numbers, blanks and single characters.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let class = |c: char| (c.is_ascii_alphanumeric(), c.is_whitespace());
        let end = match class(first) {
            (false, false) => first.len_utf8(),
            kind => rest.find(|c| class(c) != kind).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(end);
        tokens.push(token);
        rest = after;
    }
    tokens
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(250) })]

    #[test]
    fn flipped_bytes(text in program(), flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = text.into_bytes();
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        survives(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn truncated(text in program(), end in any::<prop::sample::Index>()) {
        survives(&text[..end.index(text.len())]);
    }

    #[test]
    fn swapped_tokens(text in program(), a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>()) {
        let mut tokens = tokens(&text);
        let (a, b) = (a.index(tokens.len()), b.index(tokens.len()));
        tokens.swap(a, b);
        survives(&tokens.concat());
    }

    #[test]
    fn replaced_tokens(text in program(), at in any::<prop::sample::Index>(), with in prop::sample::select(vec![
        "", "0", "-1", "9223372036854775807", "99999999999999999999999999999999999999999", "%0", "@main",
        "^bb0", "#", "\"", "dense<", "tensor<", "{", "}", "(", ")", "[", "]", "<", ">", ":", "->", "é",
        "complex<f32>", "0x", "1.0e", "//", "loc(", "?", "x", "%0:2", "%0#1",
    ])) {
        let mut tokens = tokens(&text);
        let at = at.index(tokens.len());
        tokens[at] = with;
        survives(&tokens.concat());
    }

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        survives(&text);
    }
}

#[test]
fn deep_nesting_is_refused_and_not_a_crash() {
    let deep = |open: &str, close: &str, count: usize| open.repeat(count) + &close.repeat(count);
    let attribute = |value: String| {
        super::main_text("", &format!("\"stablehlo.return\"() {{jax.a = {value}}} : () -> ()"))
    };
    let region = "\"stablehlo.case\"(%i) ({\n";
    let body = |count| deep(region, "stablehlo.return\n}) : (tensor<i32>) -> ()\n", count);
    for count in [20, 127, 128, 1000, 100_000] {
        let texts = [
            attribute(deep("[", "]", count)),
            attribute(deep("{a = ", "}", count).replace("= }", "= 0}")),
            attribute(deep("tuple<", ">", count)),
            format!("#a = {}\nmodule {{}}", deep("[", "]", count)),
            format!("module {{}} loc({})", deep("(", ")", count)),
            super::main_text("%i: tensor<i32>", &body(count)),
            super::main_text(
                "",
                &format!("%c = stablehlo.constant dense<{}> : tensor<f32>", deep("[", "]", count)),
            ),
        ];
        for text in texts {
            survives(&text);
        }
    }
    let message = super::read_main("%i: tensor<i32>", &body(1000)).unwrap_err().message;
    assert_eq!(message, "nested more than 128 levels deep");
    assert!(super::read_main("%i: tensor<i32>", &body(100)).is_ok());
}

#[test]
fn little_text_never_takes_much_memory() {
    // Each of these names sizes far beyond memory in a few bytes.
    for body in [
        "%c = stablehlo.constant dense<0> : tensor<500000000000000000xi8>",
        "%c = stablehlo.constant dense<[0, 1]> : tensor<500000000000000000xi8>",
        "%c:9223372036854775807 = stablehlo.constant dense<0> : tensor<i8>",
        "%c = \"stablehlo.iota\"() <{iota_dimension = dense<0> : tensor<99999999999xi64>}> : () -> tensor<2xi8>",
        "%c = \"stablehlo.all_gather\"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<99999x99999xi64>}> : (tensor<2xi8>) -> tensor<2xi8>",
        "%c = \"stablehlo.all_gather\"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<> : tensor<99999999999999x0xi64>}> : (tensor<2xi8>) -> tensor<2xi8>",
    ] {
        survives(&super::main_text("%a: tensor<2xi8>", body));
    }
    let uses = "call @f() {jax.a = #a} : () -> ()\n".repeat(10_000);
    let text = format!("#a = \"{}\"\n{}", "a".repeat(100_000), super::main_text("", &uses));
    let error = parse(&text).unwrap_err();
    assert_eq!(error.message, "aliases stand for much more text than there is");
    // Each alias stands for the one before it twice, or is one level deeper.
    let chain = |count: usize, value: &dyn Fn(usize) -> String| {
        let names = (1..count).map(|i| format!("#a{i} = {}\n", value(i - 1)));
        let body = format!("call @f() {{jax.a = #a{}}} : () -> ()", count - 1);
        format!("#a0 = 1\n{}{}", names.collect::<String>(), super::main_text("", &body))
    };
    let error = parse(&chain(64, &|i| format!("[#a{i}, #a{i}]"))).unwrap_err();
    assert_eq!(error.message, "aliases stand for much more text than there is");
    for count in [1000, 100_000] {
        let error = parse(&chain(count, &|i| format!("[#a{i}]"))).unwrap_err();
        assert!(error.message.starts_with("nested more than"), "{error}");
        let error = parse(&chain(count, &|i| format!("#a{i}"))).unwrap_err();
        assert!(error.message.starts_with("nested more than"), "{error}");
    }
    let huge = "module attributes {mhlo.num_partitions = 9223372036854775807 : i64} {\
        func.func @main(%a: tensor<2xi8>) {\
        %b = \"stablehlo.collective_permute\"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,\
        source_target_pairs = dense<[[0, 9000000000]]> : tensor<1x2xi64>}> : (tensor<2xi8>) -> tensor<2xi8>\nreturn } }";
    survives(huge);
}
