//! Forms of text: constants of every type, operations in both forms, aliases, refusals.

use super::{main_text, read_main};
use crate::ifrt::DType;
use crate::stablehlo::Op;
use crate::stablehlo::entity::Entity as _;
use crate::stablehlo::op::{Binary, CompareType, Direction, OpKind, Precision, Unary};
use crate::stablehlo::{Literal, Module, ParseErrorKind, Type, parse, verify};

/// The kind of the first operation of `main`.
fn kind(parameters: &str, body: &str) -> OpKind {
    let module = read_main(parameters, body).unwrap_or_else(|error| panic!("{error}"));
    verify(&module).unwrap_or_else(|error| panic!("{error}"));
    let main = module.function("main").unwrap();
    main.ops[main.blocks[main.entry].ops[0]].kind.clone()
}

fn literal(text: &str) -> Literal {
    match kind("", &format!("%c = stablehlo.constant {text}")) {
        OpKind::Constant(literal) => literal,
        other => panic!("{other}"),
    }
}

fn refusal(parameters: &str, body: &str) -> (ParseErrorKind, String) {
    let error = read_main(parameters, body).unwrap_err();
    (error.kind, error.message)
}

#[test]
fn constants_of_every_type() {
    for (text, expected) in [
        ("dense<[true, false]> : tensor<2xi1>", vec![1, 0]),
        ("dense<[-8, 7]> : tensor<2xi4>", vec![0xF8, 7]),
        ("dense<[0, 15]> : tensor<2xui4>", vec![0, 15]),
        ("dense<[-128, 127]> : tensor<2xi8>", vec![0x80, 0x7F]),
        ("dense<[1, 255]> : tensor<2xui8>", vec![1, 255]),
        ("dense<[-2, 258]> : tensor<2xi16>", vec![0xFE, 0xFF, 2, 1]),
        ("dense<[1.5, -2.0]> : tensor<2xbf16>", vec![0xC0, 0x3F, 0, 0xC0]),
        ("dense<[1.5, -2.0]> : tensor<2xf16>", vec![0, 0x3E, 0, 0xC0]),
        ("dense<[1.5, 0xFF800000]> : tensor<2xf32>", vec![0, 0, 0xC0, 0x3F, 0, 0, 0x80, 0xFF]),
        ("dense<[1.5, -0.0]> : tensor<2xf8E4M3FN>", vec![0x3C, 0x80]),
        ("dense<[(1.0,2.0)]> : tensor<1xcomplex<f32>>", vec![0, 0, 0x80, 0x3F, 0, 0, 0, 0x40]),
        ("dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>", vec![1, 2, 3, 4]),
        ("dense<\"0x0102FF\"> : tensor<3xi8>", vec![1, 2, 0xFF]),
        ("dense<\"0x05\"> : tensor<3xi1>", vec![1, 0, 1]),
        ("dense<\"0x010001\"> : tensor<3xi1>", vec![1, 0, 1]),
    ] {
        let literal = literal(text);
        assert_eq!(literal.to_bytes(), expected, "{text}");
    }
    let max = literal("dense<18446744073709551615> : tensor<ui64>");
    assert_eq!(max.splat_element(), Some([0xFF; 8].as_slice()));
    assert_eq!(literal("dense<> : tensor<0x3xf32>").to_bytes(), [0_u8; 0]);
    assert_eq!(literal("dense<\"0x2A\"> : tensor<1000xi8>").splat_element(), Some([42].as_slice()));
    assert_eq!(literal("dense<\"0xFF\"> : tensor<100xi1>").splat_element(), Some([1].as_slice()));
}

#[test]
fn constants_that_do_not_fit_their_type_are_refused() {
    for text in [
        "dense<256> : tensor<i8>",
        "dense<-1> : tensor<ui8>",
        "dense<16> : tensor<i4>",
        "dense<2> : tensor<i1>",
        "dense<1.5> : tensor<i32>",
        "dense<true> : tensor<i32>",
        "dense<0x1FFFFFFFF> : tensor<f32>",
        "dense<[1, 2]> : tensor<3xi8>",
        "dense<[1, 2]> : tensor<i8>",
        "dense<[[1, 2], [3]]> : tensor<2x2xi8>",
        "dense<[1, [2]]> : tensor<2xi8>",
        "dense<> : tensor<2xi8>",
        "dense<\"0x0102\"> : tensor<3xi8>",
        "dense<\"0x012\"> : tensor<3xi8>",
        "dense<\"0102FF\"> : tensor<3xi8>",
        "dense<\"0x01> : tensor<1xi8>",
        "dense<(1.0, 2.0)> : tensor<f32>",
        "dense<1> : tensor<9999999999x9999999999xi8>",
        "dense<1> : tensor<99999999999999999999999xi8>",
    ] {
        let (kind, _) = refusal("", &format!("%c = stablehlo.constant {text}"));
        assert_eq!(kind, ParseErrorKind::Malformed, "{text}");
    }
}

#[test]
fn every_elementwise_operation_in_both_forms() {
    let result = |dtype: DType| format!("tensor<3x{dtype}>");
    for &unary in Unary::ALL {
        let (operand, ty) = match unary {
            Unary::Not | Unary::CountLeadingZeros | Unary::Popcnt => ("i32", result(DType::S32)),
            Unary::IsFinite => ("f32", result(DType::Bool)),
            Unary::Real | Unary::Imag => ("complex<f32>", result(DType::F32)),
            _ => ("f32", result(DType::F32)),
        };
        let parameters = format!("%a: tensor<3x{operand}>");
        let name = unary.name();
        for body in [
            format!("%0 = stablehlo.{name} %a : (tensor<3x{operand}>) -> {ty}"),
            format!("%0 = \"stablehlo.{name}\"(%a) : (tensor<3x{operand}>) -> {ty}"),
        ] {
            assert_eq!(kind(&parameters, &body), OpKind::Unary(unary));
        }
    }
    for &binary in Binary::ALL {
        let (operand, short) = match binary {
            Binary::Complex => ("f32", "complex<f32>"),
            Binary::Add | Binary::Atan2 => ("f32", "f32"),
            _ => ("i32", "i32"),
        };
        let parameters = format!("%a: tensor<3x{operand}>, %b: tensor<3x{operand}>");
        let name = binary.name();
        for body in [
            format!("%0 = stablehlo.{name} %a, %b : tensor<3x{short}>"),
            format!(
                "%0 = \"stablehlo.{name}\"(%a, %b) : (tensor<3x{operand}>, tensor<3x{operand}>) -> tensor<3x{short}>"
            ),
        ] {
            assert_eq!(kind(&parameters, &body), OpKind::Binary(binary), "{body}");
        }
    }
}

/// Operations whose two forms differ in more than punctuation read alike.
#[test]
fn custom_and_generic_forms_read_alike() {
    let t = "tensor<4x6xf32>";
    for (parameters, custom, generic) in [
        (
            "%a: tensor<i32>, %b: tensor<i32>",
            "%0 = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
            "%0 = \"stablehlo.compare\"(%a, %b) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        ),
        (
            "%a: tensor<4x6xf32>",
            "%0 = stablehlo.slice %a [1:3, 0:6:2] : (tensor<4x6xf32>) -> tensor<2x3xf32>",
            "%0 = \"stablehlo.slice\"(%a) <{limit_indices = array<i64: 3, 6>, start_indices = array<i64: 1, 0>, strides = array<i64: 1, 2>}> : (tensor<4x6xf32>) -> tensor<2x3xf32>",
        ),
        (
            "%a: tensor<4x6xf32>, %b: tensor<f32>",
            "%0 = stablehlo.pad %a, %b, low = [1, -1], high = [0, 2], interior = [1, 0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<8x7xf32>",
            "%0 = \"stablehlo.pad\"(%a, %b) <{edge_padding_high = array<i64: 0, 2>, edge_padding_low = array<i64: 1, -1>, interior_padding = array<i64: 1, 0>}> : (tensor<4x6xf32>, tensor<f32>) -> tensor<8x7xf32>",
        ),
        (
            "%a: tensor<4x6xf32>, %b: tensor<6x5xf32>",
            "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>",
            "%0 = \"stablehlo.dot_general\"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision DEFAULT>]}> : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>",
        ),
        (
            "%a: tensor<4x6xf32>, %b: tensor<f32>",
            "%0 = stablehlo.reduce(%a init: %b) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>",
            "%0 = \"stablehlo.reduce\"(%a, %b) <{dimensions = array<i64: 1>}> ({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n%m = stablehlo.maximum %x, %y : tensor<f32>\nstablehlo.return %m : tensor<f32>\n}) : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>",
        ),
        (
            "%a: tensor<1x5x5x2xf32>, %b: tensor<3x3x2x4xf32>",
            "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [0, 2]], rhs_dilate = [1, 2], reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x5x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x3x3x4xf32>",
            "%0 = \"stablehlo.convolution\"(%a, %b) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, padding = dense<[[1, 1], [0, 2]]> : tensor<2x2xi64>, rhs_dilation = array<i64: 1, 2>, window_reversal = array<i1: true, false>, window_strides = array<i64: 2, 1>}> : (tensor<1x5x5x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x3x3x4xf32>",
        ),
        (
            "%i: tensor<i32>",
            "%0 = stablehlo.while(%x = %i) : tensor<i32> cond {\n%c = stablehlo.constant dense<3> : tensor<i32>\n%p = stablehlo.compare LT, %x, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>\nstablehlo.return %p : tensor<i1>\n} do {\n%n = stablehlo.add %x, %x : tensor<i32>\nstablehlo.return %n : tensor<i32>\n}",
            "%0 = \"stablehlo.while\"(%i) ({\n^bb0(%x: tensor<i32>):\n%c = stablehlo.constant dense<3> : tensor<i32>\n%p = stablehlo.compare LT, %x, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>\nstablehlo.return %p : tensor<i1>\n}, {\n^bb0(%x: tensor<i32>):\n%n = stablehlo.add %x, %x : tensor<i32>\nstablehlo.return %n : tensor<i32>\n}) : (tensor<i32>) -> tensor<i32>",
        ),
        (
            "%a: tensor<4x6xf32>",
            "%0 = stablehlo.reduce_precision %a, format = e5m10 : tensor<4x6xf32>",
            "%0 = \"stablehlo.reduce_precision\"(%a) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> : (tensor<4x6xf32>) -> tensor<4x6xf32>",
        ),
        (
            "%p: tensor<i1>, %a: tensor<4x6xf32>",
            "%0 = stablehlo.select %p, %a, %a : tensor<i1>, tensor<4x6xf32>",
            "%0 = \"stablehlo.select\"(%p, %a, %a) : (tensor<i1>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>",
        ),
    ] {
        let [custom, generic] = [custom, generic].map(|body| {
            let module = read_main(parameters, body).unwrap_or_else(|error| panic!("{error}"));
            verify(&module).unwrap_or_else(|error| panic!("{error}"));
            module.fingerprint()
        });
        assert_eq!(custom, generic, "{parameters}");
    }
    assert_eq!(
        kind(
            &format!("%a: {t}, %b: {t}"),
            &format!(
                "%0 = stablehlo.compare NE, %a, %b, TOTALORDER : ({t}, {t}) -> tensor<4x6xi1>"
            )
        ),
        OpKind::Compare { direction: Direction::Ne, compare_type: Some(CompareType::TotalOrder) }
    );
}

#[test]
fn attributes_are_read_with_their_values() {
    let dot = "%0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [1], contracting_dims = [2] x [0], precision = [HIGH, HIGHEST] : (tensor<2x3x4xf32>, tensor<4x2x5xf32>) -> tensor<2x3x5xf32>";
    let OpKind::DotGeneral(dot) = kind("%a: tensor<2x3x4xf32>, %b: tensor<4x2x5xf32>", dot) else {
        panic!();
    };
    assert_eq!((dot.lhs_batching, dot.rhs_batching), (vec![0], vec![1]));
    assert_eq!((dot.lhs_contracting, dot.rhs_contracting), (vec![2], vec![0]));
    assert_eq!(dot.precision, [Precision::High, Precision::Highest]);
    let call = "%0 = stablehlo.custom_call @target(%a) {backend_config = \"a\\22\\0A\", has_side_effect = true, mhlo.x = [1 : i32, 0.5 : f32]} : (tensor<f32>) -> tensor<f32>";
    let OpKind::CustomCall {
        call_target_name, backend_config, has_side_effect, attributes, ..
    } = kind("%a: tensor<f32>", call)
    else {
        panic!();
    };
    assert_eq!((call_target_name.as_str(), backend_config.as_str()), ("target", "a\"\n"));
    assert!(has_side_effect);
    assert_eq!(attributes[0].1.to_string(), "[1 : i32, 5.0e-1 : f32]");
}

#[test]
fn what_a_custom_call_says_to_its_target_is_kept() {
    let aliases = "output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]";
    let call = format!(
        "%0 = stablehlo.custom_call @target(%a) {{api_version = 4 : i32, backend_config = {{uplo = 76 : ui8, note = \"x\"}}, mhlo.x = 1 : i32, {aliases}}} : (tensor<f32>) -> tensor<f32>"
    );
    let kind = super::in_all_forms("%a: tensor<f32>", &[&call]);
    let OpKind::CustomCall { backend_config, attributes, .. } = &kind else { panic!() };
    assert_eq!(backend_config, "");
    let names: Vec<&str> = attributes.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["api_version", "backend_config", "mhlo.x", "output_operand_aliases"]);
    assert_eq!(attributes[1].1.to_string(), "{uplo = 76 : ui8, note = \"x\"}");
    let printed = read_main("%a: tensor<f32>", &call).unwrap().to_string();
    assert!(printed.contains("{api_version = 4 : i32, backend_config = {uplo"), "{printed}");
    let (kind, _) =
        refusal("%a: tensor<f32>", &call.replace("{uplo = 76 : ui8, note = \"x\"}", "7"));
    assert_eq!(kind, ParseErrorKind::Malformed);
}

#[test]
fn signatures_names_and_locations() {
    let text = "#loc = loc(\"a.py\":1:2)\n#groups = dense<[[0, 1]]> : tensor<1x2xi64>\nmodule @m attributes {mhlo.num_partitions = 2 : i32, jax.x = true} {\n\
        sdy.mesh @mesh = <[\"x\"=2], device_ids=[1, 0]>\n\
        func.func public @main(%arg0: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\", ?}p1], replicated={}>, jax.buffer_donor = true} loc(\"x\"), %arg1: tensor<2xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<2xf32> {mhlo.sharding = \"{replicated}\"}, tensor<2xf32>) {\n\
        // A comment with } in it.\n\
        %0:2 = func.call @\"odd name\"(%arg0, %arg1) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) loc(#loc)\n\
        %a, %b = call @\"odd name\"(%0#1, %0#0) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)\n\
        %1 = \"stablehlo.all_reduce\"(%a) <{replica_groups = #groups, channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>, use_global_device_ids}> ({\n\
        ^bb0(%x: tensor<f32> loc(unknown), %y: tensor<f32>):\n%s = stablehlo.add %x, %y : tensor<f32>\nstablehlo.return %s : tensor<f32>\n\
        }) : (tensor<2xf32>) -> tensor<2xf32>\n\
        return %1, %b : tensor<2xf32>, tensor<2xf32> loc(#loc1)\n} loc(#loc)\n\
        func.func private @\"odd name\"(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {\nreturn %y, %x : tensor<2xf32>, tensor<2xf32>\n}\n} loc(#loc)\n#loc1 = loc(fused[#loc, \"z\"])\n";
    let module = parse(text).unwrap_or_else(|error| panic!("{error}"));
    verify(&module).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((module.name.as_str(), module.num_partitions), ("m", 2));
    assert_eq!(module.meshes[0].device_ids, Some(vec![1, 0]));
    let main = module.function("main").unwrap();
    assert!(main.params[0].donated && !main.params[1].donated);
    assert_eq!(main.params[1].aliases_output, Some(1));
    let sharding = main.params[0].sharding.as_ref().unwrap();
    assert_eq!((sharding.dims[0].is_open, sharding.dims[0].priority), (true, Some(1)));
    assert_eq!(main.results[0].hlo_sharding.as_deref(), Some("{replicated}"));
    assert!(!module.function("odd name").unwrap().public);
    let call = main.blocks[main.entry].ops[0];
    assert_eq!(main.ops[call].location.line, 7);
    assert_eq!(parse(&module.to_string()).unwrap().fingerprint(), module.fingerprint());
}

#[test]
fn what_is_not_known_is_named_with_its_place() {
    let text = main_text(
        "%a: tensor<4xf32>",
        "%0 = stablehlo.trace %a : (tensor<4xf32>) -> tensor<4xf32>",
    );
    let error = parse(&text).unwrap_err().with_name("p.mlir");
    assert_eq!((error.kind, error.line, error.column), (ParseErrorKind::NotKnown, 3, 10));
    assert!(error.to_string().starts_with("stablehlo.trace is not known yet\n --> p.mlir:3:10\n"));
    let add = |attributes: &str| format!("%0 = stablehlo.add %a, %a {attributes} : tensor<4xf32>");
    for (body, what) in [
        (add("{secret = 1 : i32}"), "the attribute `secret` of stablehlo.add"),
        ("%0 = other.op %a : tensor<4xf32>".to_owned(), "other.op"),
        (
            "%0 = \"stablehlo.add\"(%a, %a) : (tensor<*xf32>, tensor<4xf32>) -> tensor<4xf32>"
                .to_owned(),
            "a tensor type without a rank",
        ),
        ("%c = stablehlo.constant dense<1.0> : tensor<4xf11>".to_owned(), "the element type f11"),
    ] {
        let (kind, message) = refusal("%a: tensor<4xf32>", &body);
        assert_eq!(kind, ParseErrorKind::NotKnown, "{message}");
        assert_eq!(message, format!("{what} is not known yet"));
    }
    for attributes in ["{jax.note = \"x\"}", "{mhlo.frontend_attributes = {a = \"b\"}}"] {
        assert!(read_main("%a: tensor<4xf32>", &add(attributes)).is_ok(), "{attributes}");
    }
}

#[test]
fn malformed_text_is_refused_where_it_goes_wrong() {
    for (body, message, column) in [
        ("%0 = stablehlo.add %a, %b : tensor<4xf32>", "%b is not defined here", 28),
        ("%a = stablehlo.negate %a : tensor<4xf32>", "%a is defined twice", 10),
        ("%0:2 = stablehlo.negate %a : tensor<4xf32>", "this operation has 1 results", 12),
        (
            "%0 = stablehlo.negate %a : tensor<5xf32>",
            "operand 0 is written as tensor<5xf32>, but is tensor<4xf32>",
            10,
        ),
        ("%0 = stablehlo.negate %a#1 : tensor<4xf32>", "%a stands for 1 values", 27),
        (
            "%0 = stablehlo.transpose %a, dims = [-1] : (tensor<4xf32>) -> tensor<4xf32>",
            "the attribute `permutation` of stablehlo.transpose must be a list of whole numbers in range",
            10,
        ),
        (
            "%0 = \"stablehlo.iota\"() : () -> tensor<4xf32>",
            "stablehlo.iota lacks the attribute `iota_dimension`",
            10,
        ),
        (
            "%0 = \"stablehlo.iota\"() <{iota_dimension = 0 : i64, iota_dimension = 0 : i64}> : () -> tensor<4xf32>",
            "stablehlo.iota has the attribute `iota_dimension` twice",
            57,
        ),
        (
            "%0 = stablehlo.sort %a : tensor<4xf32>",
            "stablehlo.sort has a generic form only: write \"stablehlo.sort\"(…)",
            10,
        ),
    ] {
        let error = read_main("%a: tensor<4xf32>", body).unwrap_err();
        assert_eq!((error.message.as_str(), error.line, error.column), (message, 3, column));
    }
}

#[test]
fn text_that_ends_early_is_refused_at_its_end() {
    let error = parse("module {\n  func.func @main(").unwrap_err();
    assert_eq!((error.line, error.column), (2, 19));
    assert_eq!(error.message, "expected an argument such as `%arg0`, found the end of the text");
}

fn fingerprint(text: &str) -> crate::stablehlo::Fingerprint {
    parse(text).unwrap_or_else(|error| panic!("{error}")).fingerprint()
}

#[test]
fn fingerprints_see_content_and_nothing_else() {
    let text = main_text(
        "%a: tensor<2xf32>",
        "%c = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>\n%0 = stablehlo.add %a, %c : tensor<2xf32>",
    );
    let same =
        text.replace("%c", "%other").replace("%a", "%x").replace("\n    ", "\n\n  // note\n ");
    assert_eq!(fingerprint(&text), fingerprint(&same));
    for (from, to) in [
        ("2.0", "2.5"),
        ("%a, %c", "%c, %a"),
        ("stablehlo.add", "stablehlo.multiply"),
        ("2xf32", "2xf64"),
        ("module", "module @named"),
        ("module", "module attributes {mhlo.num_partitions = 2 : i32}"),
        ("%a: tensor<2xf32>", "%a: tensor<2xf32> {jax.buffer_donor = true}"),
    ] {
        assert!(text.contains(from));
        assert_ne!(fingerprint(&text), fingerprint(&text.replace(from, to)), "{to}");
    }
}

#[test]
fn listings_show_the_first_difference_and_hash_long_constants() {
    let constant = |last: u32| {
        let elements: Vec<String> = (0..100).chain([last]).map(|i| i.to_string()).collect();
        let body = format!(
            "%c = stablehlo.constant dense<[{}]> : tensor<101xi32>\n%d = stablehlo.negate %c : tensor<101xi32>",
            elements.join(", ")
        );
        read_main("", &body).unwrap()
    };
    let (a, b): (Module, Module) = (constant(100), constant(101));
    let difference: Vec<usize> =
        (0..a.listing().len()).filter(|&i| a.listing()[i] != b.listing()[i]).collect();
    assert_eq!(difference, [2]);
    assert!(a.listing()[2].len() < 80, "{}", a.listing()[2]);
    assert_ne!(a.fingerprint(), b.fingerprint());
    assert_eq!(a.listing()[3].trim(), "%1 = stablehlo.negate %0 : tensor<101xi32>");
}

#[test]
fn printed_numbers_read_back_to_the_same_bits() {
    for dtype in DType::ALL.into_iter().filter(|dtype| *dtype != DType::Bool) {
        let bytes = dtype.size_bytes();
        let count = 24;
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let elements = (0..count).flat_map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mut element = [state.to_le_bytes(), state.rotate_left(21).to_le_bytes()].concat();
            // Elements narrower than a byte are sign-extended or zero-extended in memory.
            if dtype.bit_width() < 8 {
                let shift = 8 - dtype.bit_width();
                let byte = element[7] << shift;
                element[0] = if dtype.is_signed_integer() {
                    (byte.cast_signed() >> shift).cast_unsigned()
                } else {
                    byte >> shift
                };
            }
            element.truncate(bytes);
            element
        });
        let elements: Vec<u8> = elements.collect();
        let mut module =
            read_main("", &format!("%c = stablehlo.constant dense<> : tensor<0x{dtype}>")).unwrap();
        let shape = crate::ifrt::Shape::new([count]).unwrap();
        let ty = crate::stablehlo::TensorType::new(dtype, shape);
        let literal = Literal::dense(ty.clone(), elements).unwrap();
        let main = &mut module.functions[0];
        let op = main.blocks[main.entry].ops[0];
        let value = main.ops[op].results[0];
        main.values[value].ty = Type::Tensor(ty);
        main.ops[op].kind = OpKind::Constant(literal.clone());
        let text = module.to_string();
        let again = parse(&text).unwrap_or_else(|error| panic!("{dtype}: {error}"));
        let main = &again.functions[0];
        assert_eq!(
            main.ops[main.blocks[main.entry].ops[0]].kind,
            OpKind::Constant(literal),
            "{text}"
        );
    }
}

#[test]
fn aliases_may_use_aliases() {
    let text = format!(
        "#zero = dense<0> : tensor<1x1xi64>\n#groups = #zero\n#both = {{a = [#groups], b = #zero}}\n{}",
        main_text(
            "%a: tensor<4xf32>",
            "%0 = \"stablehlo.collective_broadcast\"(%a) <{replica_groups = #groups}> {jax.note = #both} : (tensor<4xf32>) -> tensor<4xf32>",
        )
    );
    let module = parse(&text).unwrap();
    let OpKind::CollectiveBroadcast(collective) = &module.functions[0].ops[Op::new(0)].kind else {
        panic!()
    };
    assert_eq!(collective.replica_groups, [[0]]);
    let error = parse("#a = #b\n#b = 1\nmodule {}").unwrap_err();
    assert_eq!(error.message, "#b is not defined before its use");
}

#[test]
fn resources_are_constants() {
    let body = "%0 = stablehlo.constant dense_resource<blob> : tensor<2xi16>\n\
                %1 = stablehlo.constant dense_resource<blob> : tensor<4xui8>\n\
                %2 = stablehlo.constant dense_resource<flags> : tensor<3xi1>";
    let program = main_text("", body);
    let section = |blob: &str| {
        format!(
            "{{-#\n  dialect_resources: {{\n    builtin: {{\n      blob: \"{blob}\",\n      flags: \"0x01000000010001\"\n    }}\n  }},\n  external_resources: {{mlir_reproducer: {{verify_each: true}}}}\n#-}}\n"
        )
    };
    let module = parse(&(program.clone() + &section("0x040000000102FE7f"))).unwrap();
    let constant = |index: usize| match &module.functions[0].ops[Op::new(index)].kind {
        OpKind::Constant(literal) => literal.to_bytes(),
        _ => panic!(),
    };
    assert_eq!(constant(0), [1, 2, 0xFE, 0x7F]);
    assert_eq!(constant(1), [1, 2, 0xFE, 0x7F]);
    assert_eq!(constant(2), [1, 0, 1]);
    assert_eq!(parse(&module.to_string()).unwrap().fingerprint(), module.fingerprint());
    for (blob, message) in [
        ("0x0400000001", "the 1 bytes of the resource blob are not the elements of tensor<2xi16>"),
        ("0x04", "the resource blob has no alignment"),
        ("0x0400000001020", "the resource blob is not pairs of hexadecimal digits"),
        ("0x04000000xy020304", "the resource blob is not pairs of hexadecimal digits"),
        ("04", "expected a string that starts with 0x"),
    ] {
        let error = parse(&(program.clone() + &section(blob))).unwrap_err();
        assert_eq!(error.message, message);
    }
    assert_eq!(parse(&program).unwrap_err().message, "there is no resource blob");
    assert!(parse("module {}\n{-# #-}").is_ok());
}

#[test]
fn quantized_types_must_satisfy_their_constraints() {
    for (ty, expected) in [
        ("tensor<3x!quant.uniform<i8:f32, 0.0>>", "(C5)"),
        ("tensor<3x!quant.uniform<i8<-200:127>:f32, 1.0>>", "(C3)"),
        ("tensor<3x!quant.uniform<u8:f32, 1.0:256>>", "(C7)"),
        ("tensor<3x!quant.uniform<i8:f32, {1.0, 2.0}>>", "(C10)"),
        ("tensor<3x!quant.uniform<i8:f32:1, {1.0, 2.0}>>", "(C12)"),
        ("tensor<3x!quant.uniform<i8:f32:0, {1.0, 2.0}>>", "(C13)"),
        ("tensor<3x!quant.any<i8:f32>>", "not known yet"),
        ("tensor<3x!quant.uniform<i8:f32:{0:1}, {1.0}>>", "a whole number"),
    ] {
        let error = read_main(&format!("%a: {ty}"), "").unwrap_err();
        assert!(error.message.contains(expected), "{ty}: {error}");
    }
}
