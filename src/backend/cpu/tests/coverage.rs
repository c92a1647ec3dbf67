//! Every operation on every element type that the specification gives it, run on ones and zeros.
//!
//! What results are is for other tests to say: here an operation that is refused, or that a shape
//! without elements makes fail, is found.

use super::*;

const BOOLEAN: &[&str] = &["i1"];
const SIGNED: &[&str] = &["i2", "i4", "i8", "i16", "i32", "i64"];
const UNSIGNED: &[&str] = &["ui2", "ui4", "ui8", "ui16", "ui32", "ui64"];
const WIDE_FLOATS: &[&str] = &["bf16", "f16", "f32", "f64"];
const SHORT_FLOATS: &[&str] = &[
    "f4E2M1FN",
    "f6E2M3FN",
    "f6E3M2FN",
    "f8E3M4",
    "f8E4M3",
    "f8E4M3FN",
    "f8E4M3B11FNUZ",
    "f8E4M3FNUZ",
    "f8E5M2",
    "f8E5M2FNUZ",
    "f8E8M0FNU",
];
const COMPLEX: &[&str] = &["complex<f32>", "complex<f64>"];

/// Kinds of element types.
const INTEGERS: &[&[&str]] = &[SIGNED, UNSIGNED];
const BITS: &[&[&str]] = &[BOOLEAN, SIGNED, UNSIGNED];
const FLOATS: &[&[&str]] = &[WIDE_FLOATS, SHORT_FLOATS];
const FIELDS: &[&[&str]] = &[WIDE_FLOATS, SHORT_FLOATS, COMPLEX];
const NUMBERS: &[&[&str]] = &[SIGNED, UNSIGNED, WIDE_FLOATS, SHORT_FLOATS, COMPLEX];
const ORDERED: &[&[&str]] = &[BOOLEAN, SIGNED, UNSIGNED, WIDE_FLOATS, SHORT_FLOATS];
const ALL: &[&[&str]] = &[BOOLEAN, SIGNED, UNSIGNED, WIDE_FLOATS, SHORT_FLOATS, COMPLEX];

/// Runs `body`, whose result is `%0`, for every element type `T` and for every size `~`; `%a` and
/// `%b` are of `[~, ~]`, `%v` of `[~]`, `%s` of no dimension. Answers what went wrong.
fn sweep(what: &str, result: &str, body: &str, kinds: &[&[&str]], wrong: &mut Vec<String>) {
    for ty in kinds.iter().copied().flatten() {
        for size in ["3", "0"] {
            let filled = |text: &str| {
                text.replace("[~x~]", &format!("tensor<{size}x{size}x{ty}>"))
                    .replace("[~]", &format!("tensor<{size}x{ty}>"))
                    .replace("[]", &format!("tensor<{ty}>"))
                    .replace('~', size)
                    .replace("{T}", ty)
            };
            let text = main_of(
                &filled(&format!("(%a: [~x~], %b: [~x~], %v: [~], %s: []) -> {result}")),
                &filled(&format!("{body} return %0 : {result}")),
            );
            if let Err(error) = try_run(&text) {
                wrong.push(format!("{what} of {ty}, size {size}: {error}"));
            }
        }
    }
}

fn try_run(text: &str) -> std::result::Result<(), String> {
    let module = parse(text).map_err(|error| error.to_string())?;
    verify(&module).map_err(|error| error.to_string())?;
    let executable = CpuBackend::new(1).compile(&module).map_err(|error| error.to_string())?;
    for fill in [0, 1] {
        let arguments = executable.parameter_types().iter().map(|ty| {
            let bytes = vec![fill; ty.size_bytes()];
            CpuBackend::new(1).buffer_from_host(DEVICE, ty, &bytes).unwrap()
        });
        let results = executable.execute(DEVICE, arguments.collect(), &Alone);
        let results = results.map_err(|error| error.to_string())?;
        for (result, ty) in results.iter().zip(executable.result_types()) {
            if result.bytes().len() != ty.size_bytes() {
                return Err(format!("{} bytes of {ty}", result.bytes().len()));
            }
        }
    }
    Ok(())
}

fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} are missing:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_elementwise_operation_has_every_type() {
    let mut wrong = Vec::new();
    let unary: &[(&str, &[&[&str]])] = &[
        ("abs", &[SIGNED, WIDE_FLOATS, SHORT_FLOATS]),
        ("cbrt", FIELDS),
        ("ceil", FLOATS),
        ("cosine", FIELDS),
        ("count_leading_zeros", INTEGERS),
        ("exponential", FIELDS),
        ("exponential_minus_one", FIELDS),
        ("floor", FLOATS),
        ("log", FIELDS),
        ("log_plus_one", FIELDS),
        ("logistic", FIELDS),
        ("negate", NUMBERS),
        ("not", BITS),
        ("popcnt", INTEGERS),
        ("round_nearest_afz", FLOATS),
        ("round_nearest_even", FLOATS),
        ("rsqrt", FIELDS),
        ("sign", &[SIGNED, WIDE_FLOATS, SHORT_FLOATS, COMPLEX]),
        ("sine", FIELDS),
        ("sqrt", FIELDS),
        ("tan", FIELDS),
        ("tanh", FIELDS),
    ];
    for (op, kinds) in unary {
        sweep(op, "[~x~]", &format!("%0 = stablehlo.{op} %a : [~x~]"), kinds, &mut wrong);
    }
    let binary: &[(&str, &[&[&str]])] = &[
        ("add", ALL),
        ("and", BITS),
        ("atan2", FIELDS),
        ("divide", NUMBERS),
        ("maximum", ALL),
        ("minimum", ALL),
        ("multiply", ALL),
        ("or", BITS),
        ("power", NUMBERS),
        ("remainder", &[SIGNED, UNSIGNED, WIDE_FLOATS, SHORT_FLOATS]),
        ("shift_left", INTEGERS),
        ("shift_right_arithmetic", INTEGERS),
        ("shift_right_logical", INTEGERS),
        ("subtract", NUMBERS),
        ("xor", BITS),
    ];
    for (op, kinds) in binary {
        sweep(op, "[~x~]", &format!("%0 = stablehlo.{op} %a, %b : [~x~]"), kinds, &mut wrong);
    }
    let other: &[(&str, &str, &str, &[&[&str]])] = &[
        ("clamp", "[~x~]", "%0 = stablehlo.clamp %s, %a, %s : ([], [~x~], []) -> [~x~]", ORDERED),
        (
            "compare EQ",
            "tensor<~x~xi1>",
            "%0 = stablehlo.compare EQ, %a, %b : ([~x~], [~x~]) -> tensor<~x~xi1>",
            ALL,
        ),
        (
            "compare LT",
            "tensor<~x~xi1>",
            "%0 = stablehlo.compare LT, %a, %b : ([~x~], [~x~]) -> tensor<~x~xi1>",
            ORDERED,
        ),
        (
            "compare TOTALORDER",
            "tensor<~x~xi1>",
            "%0 = stablehlo.compare GE, %a, %b, TOTALORDER : ([~x~], [~x~]) -> tensor<~x~xi1>",
            FLOATS,
        ),
        (
            "select",
            "[~x~]",
            "%p = stablehlo.constant dense<true> : tensor<i1>
             %0 = stablehlo.select %p, %a, %b : tensor<i1>, [~x~]",
            ALL,
        ),
        (
            "is_finite",
            "tensor<~x~xi1>",
            "%0 = stablehlo.is_finite %a : ([~x~]) -> tensor<~x~xi1>",
            FLOATS,
        ),
        ("real", "[~x~]", "%0 = stablehlo.real %a : [~x~]", &[WIDE_FLOATS]),
        ("imag", "[~x~]", "%0 = stablehlo.imag %a : [~x~]", &[WIDE_FLOATS]),
        (
            "reduce_precision",
            "[~x~]",
            "%0 = stablehlo.reduce_precision %a, format = e5m2 : [~x~]",
            FLOATS,
        ),
    ];
    for (op, result, body, kinds) in other {
        sweep(op, result, body, kinds, &mut wrong);
    }
    assert_none(&wrong);
}

#[test]
fn every_type_converts_to_every_type() {
    let mut wrong = Vec::new();
    for to in ALL.iter().copied().flatten() {
        let result = format!("tensor<~x~x{to}>");
        let body = format!("%0 = stablehlo.convert %a : ([~x~]) -> {result}");
        sweep(&format!("convert to {to}"), &result, &body, ALL, &mut wrong);
    }
    assert_none(&wrong);
}

#[test]
fn every_movement_has_every_type() {
    let mut wrong = Vec::new();
    let ops: &[(&str, &str, &str)] = &[
        ("reshape", "tensor<1x~x~x{T}>", "%0 = stablehlo.reshape %a : ([~x~]) -> tensor<1x~x~x{T}>"),
        ("transpose", "[~x~]", "%0 = stablehlo.transpose %a, dims = [1, 0] : ([~x~]) -> [~x~]"),
        ("reverse", "[~x~]", "%0 = stablehlo.reverse %a, dims = [1] : [~x~]"),
        (
            "broadcast_in_dim",
            "[~x~]",
            "%0 = stablehlo.broadcast_in_dim %v, dims = [1] : ([~]) -> [~x~]",
        ),
        ("slice", "tensor<~x0x{T}>", "%0 = stablehlo.slice %a [0:~, 0:0] : ([~x~]) -> tensor<~x0x{T}>"),
        (
            "concatenate",
            "tensor<1x~x{T}>",
            "%c = stablehlo.concatenate %v, %v, dim = 0 : ([~], [~]) -> tensor<?x{T}>
             %d = stablehlo.reshape %v : ([~]) -> tensor<1x~x{T}>
             %0 = stablehlo.concatenate %d, dim = 0 : (tensor<1x~x{T}>) -> tensor<1x~x{T}>",
        ),
        (
            "pad",
            "tensor<1x{T}>",
            "%p = stablehlo.pad %v, %s, low = [1], high = [0], interior = [1] : ([~], []) -> tensor<?x{T}>
             %l = stablehlo.constant dense<0> : tensor<1xi32>
             %m = stablehlo.constant dense<1> : tensor<1xi32>
             %0 = stablehlo.real_dynamic_slice %p, %l, %m, %m : (tensor<?x{T}>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<1x{T}>",
        ),
        (
            "dynamic_slice",
            "[~x~]",
            "%i = stablehlo.constant dense<1> : tensor<i8>
             %0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [~, ~] : ([~x~], tensor<i8>, tensor<i8>) -> [~x~]",
        ),
        (
            "dynamic_update_slice",
            "[~x~]",
            "%i = stablehlo.constant dense<1> : tensor<ui64>
             %0 = stablehlo.dynamic_update_slice %a, %b, %i, %i : ([~x~], [~x~], tensor<ui64>, tensor<ui64>) -> [~x~]",
        ),
        (
            "gather",
            "tensor<~x0x~x{T}>",
            "%i = stablehlo.constant dense<0> : tensor<~x1xi32>
             %0 = \"stablehlo.gather\"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 0, ~>}> : ([~x~], tensor<~x1xi32>) -> tensor<~x0x~x{T}>",
        ),
    ];
    for (op, result, body) in ops {
        sweep(op, result, body, ALL, &mut wrong);
    }
    sweep("iota", "[~x~]", "%0 = stablehlo.iota dim = 1 : [~x~]", NUMBERS, &mut wrong);
    assert_none(&wrong);
}

#[test]
fn every_reduction_has_every_type() {
    let mut wrong = Vec::new();
    let folds: &[(&str, &[&[&str]])] = &[
        ("add", ALL),
        ("multiply", ALL),
        ("maximum", ALL),
        ("minimum", ALL),
        ("and", BITS),
        ("or", BITS),
        ("xor", BITS),
    ];
    for (op, kinds) in folds {
        let body = format!(
            "^bb0(%x: [], %y: []): %z = stablehlo.{op} %x, %y : [] stablehlo.return %z : []"
        );
        for (name, result, call, ty) in [
            ("reduce", "[~]", "\"stablehlo.reduce\"(%a, %s) <{dimensions = array<i64: 0>}>", "([~x~], []) -> [~]"),
            ("reduce all", "[]", "\"stablehlo.reduce\"(%a, %s) <{dimensions = array<i64: 0, 1>}>", "([~x~], []) -> []"),
            (
                "reduce_window",
                "[~x~]",
                "\"stablehlo.reduce_window\"(%a, %s) <{window_dimensions = array<i64: 1, 2>, padding = dense<[[0, 0], [1, 0]]> : tensor<2x2xi64>}>",
                "([~x~], []) -> [~x~]",
            ),
            (
                "scatter",
                "[~x~]",
                "%i = stablehlo.constant dense<0> : tensor<~x1xi32>
                 %0 = \"stablehlo.scatter\"(%a, %i, %b) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}>",
                "([~x~], tensor<~x1xi32>, [~x~]) -> [~x~]",
            ),
            (
                "all_reduce",
                "[~x~]",
                "\"stablehlo.all_reduce\"(%a) <{replica_groups = dense<0> : tensor<1x1xi64>}>",
                "([~x~]) -> [~x~]",
            ),
        ] {
            let call = if call.contains("%0 =") { call.to_owned() } else { format!("%0 = {call}") };
            let text = format!("{call} ({{ {body} }}) : {ty}");
            sweep(&format!("{name} by {op}"), result, &text, kinds, &mut wrong);
        }
    }
    let sort = "%0 = \"stablehlo.sort\"(%a) <{dimension = 0 : i64, is_stable = true}> ({
        ^bb0(%x: [], %y: []): %z = stablehlo.compare LT, %x, %y : ([], []) -> tensor<i1>
        stablehlo.return %z : tensor<i1> }) : ([~x~]) -> [~x~]";
    sweep("sort", "[~x~]", sort, ORDERED, &mut wrong);
    let select = "%0 = \"stablehlo.select_and_scatter\"(%a, %b, %s) <{window_dimensions = array<i64: 1, 1>}> ({
        ^bb0(%x: [], %y: []): %z = stablehlo.compare GE, %x, %y : ([], []) -> tensor<i1>
        stablehlo.return %z : tensor<i1> }, {
        ^bb0(%x: [], %y: []): %z = stablehlo.add %x, %y : [] stablehlo.return %z : [] })
        : ([~x~], [~x~], []) -> [~x~]";
    sweep("select_and_scatter", "[~x~]", select, ORDERED, &mut wrong);
    let map = "%0 = \"stablehlo.map\"(%a, %b) <{dimensions = array<i64: 0, 1>}> ({
        ^bb0(%x: [], %y: []): %z = stablehlo.multiply %x, %y : [] stablehlo.return %z : [] })
        : ([~x~], [~x~]) -> [~x~]";
    sweep("map", "[~x~]", map, ALL, &mut wrong);
    assert_none(&wrong);
}

#[test]
fn every_product_and_factorisation_has_every_type() {
    let mut wrong = Vec::new();
    let dot =
        "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ([~x~], [~x~]) -> [~x~]";
    sweep("dot_general", "[~x~]", dot, ALL, &mut wrong);
    let convolution = "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, f]x[i, o]->[b, f],
        window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : ([~x~], [~x~]) -> [~x~]";
    sweep("convolution", "[~x~]", convolution, ALL, &mut wrong);
    let cholesky = "%0 = stablehlo.cholesky %a, lower = true : [~x~]";
    sweep("cholesky", "[~x~]", cholesky, FIELDS, &mut wrong);
    let solve = "%0 = \"stablehlo.triangular_solve\"(%a, %b) <{left_side = true, lower = true,
        transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}>
        : ([~x~], [~x~]) -> [~x~]";
    sweep("triangular_solve", "[~x~]", solve, FIELDS, &mut wrong);
    let norm = "<{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}>";
    let inference = format!(
        "%0 = \"stablehlo.batch_norm_inference\"(%a, %v, %v, %v, %v) {norm} : ([~x~], [~], [~], [~], [~]) -> [~x~]"
    );
    sweep("batch_norm_inference", "[~x~]", &inference, FLOATS, &mut wrong);
    let training = format!(
        "%0, %m, %w = \"stablehlo.batch_norm_training\"(%a, %v, %v) {norm} : ([~x~], [~], [~]) -> ([~x~], [~], [~])"
    );
    sweep("batch_norm_training", "[~x~]", &training, FLOATS, &mut wrong);
    let grad = format!(
        "%0, %m, %w = \"stablehlo.batch_norm_grad\"(%a, %v, %v, %v, %b) {norm} : ([~x~], [~], [~], [~], [~x~]) -> ([~x~], [~], [~])"
    );
    sweep("batch_norm_grad", "[~x~]", &grad, FLOATS, &mut wrong);
    assert_none(&wrong);
}

#[test]
fn every_type_is_made_at_random() {
    let mut wrong = Vec::new();
    let uniform = "%d = stablehlo.constant dense<~> : tensor<2xi64>
        %0 = stablehlo.rng %s, %s, %d, distribution = UNIFORM : ([], [], tensor<2xi64>) -> [~x~]";
    sweep("rng UNIFORM", "[~x~]", uniform, ORDERED, &mut wrong);
    let normal = uniform.replace("UNIFORM", "NORMAL");
    sweep("rng NORMAL", "[~x~]", &normal, FLOATS, &mut wrong);
    for algorithm in ["DEFAULT", "THREE_FRY", "PHILOX"] {
        let bits = format!(
            "%k = stablehlo.constant dense<1> : tensor<2xui64>
             %t, %0 = stablehlo.rng_bit_generator %k, algorithm = {algorithm} : (tensor<2xui64>) -> (tensor<2xui64>, [~x~])"
        );
        sweep(
            &format!("rng_bit_generator {algorithm}"),
            "[~x~]",
            &bits,
            &[SIGNED, UNSIGNED, WIDE_FLOATS],
            &mut wrong,
        );
    }
    assert_none(&wrong);
}
