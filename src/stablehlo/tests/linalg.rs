//! Linear algebra, Fourier transforms, random numbers and composites.

use super::rejection::refused_variants;
use super::{in_all_forms, main_text, parse};
use crate::stablehlo::op::{FftType, OpKind, RngAlgorithm, RngDistribution, TransposeA};
use crate::stablehlo::{Module, verify};

#[test]
fn fft() {
    let parameters = "%a: tensor<3x8xcomplex<f32>>, %r: tensor<5x9xf64>";
    for (fft_type, types) in [
        (FftType::Fft, "(tensor<3x8xcomplex<f32>>) -> tensor<3x8xcomplex<f32>>"),
        (FftType::Ifft, "(tensor<3x8xcomplex<f32>>) -> tensor<3x8xcomplex<f32>>"),
        (FftType::Irfft, "(tensor<3x8xcomplex<f32>>) -> tensor<3x14xf32>"),
    ] {
        let length = if fft_type == FftType::Irfft { 14 } else { 8 };
        let name = fft_type.name();
        let custom = format!("%0 = stablehlo.fft %a, type = {name}, length = [{length}] : {types}");
        let generic = format!(
            "%0 = \"stablehlo.fft\"(%a) <{{fft_length = array<i64: {length}>, fft_type = #stablehlo<fft_type {name}>}}> : {types}"
        );
        let kind = in_all_forms(parameters, &[&custom, &generic]);
        assert_eq!(kind, OpKind::Fft { fft_type, lengths: vec![length] });
    }
    refused_variants(
        "stablehlo.fft",
        parameters,
        "%0 = stablehlo.fft %r, type = RFFT, length = [5, 9] : (tensor<5x9xf64>) -> tensor<5x5xcomplex<f64>>",
        &[
            ("C1", "[5, 9]", "[1, 5, 9]"),
            ("C2", "complex<f64>", "complex<f32>"),
            ("C2", "RFFT", "FFT"),
            ("C3", "[5, 9]", "[]"),
            ("C4", "[5, 9]", "[5, 8]"),
            ("C5", "5x5xcomplex", "5x9xcomplex"),
        ],
    );
    refused_variants(
        "stablehlo.fft",
        parameters,
        "%0 = stablehlo.fft %a, type = IRFFT, length = [15] : (tensor<3x8xcomplex<f32>>) -> tensor<3x15xf32>",
        &[(
            "C5",
            "[15] : (tensor<3x8xcomplex<f32>>) -> tensor<3x15xf32>",
            "[16] : (tensor<3x8xcomplex<f32>>) -> tensor<3x16xf32>",
        )],
    );
}

#[test]
fn cholesky() {
    let parameters = "%a: tensor<2x4x4xf32>, %v: tensor<4xf32>, %w: tensor<4x3xf32>";
    let right = "%0 = stablehlo.cholesky %a, lower = true : tensor<2x4x4xf32>";
    let kind = in_all_forms(
        parameters,
        &[
            right,
            "%0 = \"stablehlo.cholesky\"(%a) <{lower = true}> : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>",
        ],
    );
    assert_eq!(kind, OpKind::Cholesky { lower: true });
    let upper = in_all_forms(parameters, &["%0 = stablehlo.cholesky %a : tensor<2x4x4xf32>"]);
    assert_eq!(upper, OpKind::Cholesky { lower: false });
    refused_variants(
        "stablehlo.cholesky",
        parameters,
        right,
        &[
            ("C1", ": tensor<2x4x4xf32>", ": (tensor<2x4x4xf32>) -> tensor<2x4x4xf64>"),
            ("C2", "%a, lower = true : tensor<2x4x4xf32>", "%v : tensor<4xf32>"),
            ("C3", "%a, lower = true : tensor<2x4x4xf32>", "%w : tensor<4x3xf32>"),
        ],
    );
}

#[test]
fn triangular_solve() {
    let parameters =
        "%a: tensor<4x4xf32>, %b: tensor<3x4xf32>, %v: tensor<4xf32>, %d: tensor<3x4xf64>";
    let right = "%0 = \"stablehlo.triangular_solve\"(%a, %b) <{left_side = false, lower = true, transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = true}> : (tensor<4x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>";
    let OpKind::TriangularSolve(solve) = in_all_forms(parameters, &[right]) else { panic!() };
    assert_eq!((solve.left_side, solve.lower, solve.unit_diagonal), (false, true, true));
    assert_eq!(solve.transpose_a, TransposeA::Adjoint);
    refused_variants(
        "stablehlo.triangular_solve",
        parameters,
        right,
        &[
            (
                "C1",
                "(%a, %b) <{left_side = false, lower = true, transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = true}> : (tensor<4x4xf32>, tensor<3x4xf32>)",
                "(%a, %d) <{left_side = false, lower = true, transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = true}> : (tensor<4x4xf32>, tensor<3x4xf64>)",
            ),
            (
                "C2",
                "(%a, %b) <{left_side = false, lower = true, transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = true}> : (tensor<4x4xf32>, tensor<3x4xf32>)",
                "(%a, %v) <{left_side = false, lower = true, transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = true}> : (tensor<4x4xf32>, tensor<4xf32>)",
            ),
            ("C3", "left_side = false", "left_side = true"),
            ("C4", "-> tensor<3x4xf32>", "-> tensor<4x3xf32>"),
        ],
    );
}

#[test]
fn rng_bit_generator() {
    let parameters = "%s: tensor<2xui64>, %t: tensor<3xui64>, %i: tensor<2xui32>";
    let right = "%0:2 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<6xui32>)";
    let kind = in_all_forms(
        parameters,
        &[
            right,
            "%0:2 = \"stablehlo.rng_bit_generator\"(%s) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<6xui32>)",
        ],
    );
    assert_eq!(kind, OpKind::RngBitGenerator(RngAlgorithm::ThreeFry));
    refused_variants(
        "stablehlo.rng_bit_generator",
        parameters,
        right,
        &[
            ("C1", "-> (tensor<2xui64>", "-> (tensor<3xui64>"),
            (
                "C2",
                "%s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>",
                "%t, algorithm = THREE_FRY : (tensor<3xui64>) -> (tensor<3xui64>",
            ),
            (
                "I2",
                "%s, algorithm = THREE_FRY : (tensor<2xui64>)",
                "%i, algorithm = THREE_FRY : (tensor<2xui32>)",
            ),
            ("O2", "tensor<6xui32>", "tensor<6xi1>"),
        ],
    );
}

#[test]
fn rng() {
    let parameters =
        "%a: tensor<f32>, %i: tensor<i32>, %v: tensor<1xf32>, %s: tensor<2xi64>, %t: tensor<2xi32>";
    let right = "%0 = stablehlo.rng %a, %a, %s, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<3x4xf32>";
    let kind = in_all_forms(
        parameters,
        &[
            right,
            "%0 = \"stablehlo.rng\"(%a, %a, %s) <{rng_distribution = #stablehlo<rng_distribution NORMAL>}> : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<3x4xf32>",
        ],
    );
    assert_eq!(kind, OpKind::Rng(RngDistribution::Normal));
    let integers = right.replace("%a", "%i").replace("f32", "i32");
    refused_variants(
        "stablehlo.rng",
        parameters,
        &integers.replace("NORMAL", "UNIFORM"),
        &[("C2", "UNIFORM", "NORMAL"), ("C1", "3x4xi32", "3x4xf32")],
    );
    refused_variants(
        "stablehlo.rng",
        parameters,
        right,
        &[
            (
                "C1",
                "%a, %a, %s, distribution = NORMAL : (tensor<f32>, tensor<f32>",
                "%a, %i, %s, distribution = NORMAL : (tensor<f32>, tensor<i32>",
            ),
            ("C3", "3x4xf32", "12xf32"),
            (
                "I1",
                "%a, %a, %s, distribution = NORMAL : (tensor<f32>",
                "%v, %a, %s, distribution = NORMAL : (tensor<1xf32>",
            ),
            (
                "I3",
                "%s, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<2xi64>",
                "%t, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<2xi32>",
            ),
        ],
    );
}

/// A module whose `main` has this body, with a function `@twice` of vectors.
fn with_twice(body: &str) -> Module {
    let main = main_text("%a: tensor<3xf32>", body);
    let main = main.trim_end().trim_end_matches('}');
    let text = format!(
        "{main}  func.func private @twice(%x: tensor<3xf32>) -> tensor<3xf32> {{
    %0 = stablehlo.add %x, %x : tensor<3xf32>
    return %0 : tensor<3xf32>
  }}
}}"
    );
    parse(&text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn composite() {
    let right = "%0 = stablehlo.composite \"my.op\" %a {composite_attributes = {k = 3 : i64, a = \"x\"}, decomposition = @twice, version = 1 : i32} : (tensor<3xf32>) -> tensor<3xf32>";
    let module = with_twice(right);
    verify(&module).unwrap();
    assert_eq!(parse(&module.to_string()).unwrap().to_string(), module.to_string());
    let OpKind::Composite(composite) = &module.functions[0].ops.values().next().unwrap().kind
    else {
        panic!()
    };
    assert_eq!((composite.name.as_str(), composite.version), ("my.op", 1));
    let names: Vec<&str> = composite.attributes.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names, composite.decomposition.as_str()), (vec!["a", "k"], "twice"));

    for (constraint, from, to) in [
        ("C1", "\"my.op\"", "\"op\""),
        ("C1", "\"my.op\"", "\"my.\""),
        ("C2", "@twice", "@thrice"),
        ("C3", " %a {", " %a, %a {"),
        ("C4", "-> tensor<3xf32>", "-> tensor<3xf64>"),
    ] {
        let body = right.replace(from, to);
        let body = if from == " %a {" {
            body.replace("(tensor<3xf32>)", "(tensor<3xf32>, tensor<3xf32>)")
        } else {
            body
        };
        let error = verify(&with_twice(&body)).unwrap_err();
        assert_eq!(
            (error.subject.as_str(), error.constraint),
            ("stablehlo.composite", Some(constraint)),
            "{error}"
        );
    }
    let endless = "%0 = stablehlo.composite \"my.op\" {decomposition = @main} : () -> ()";
    let text = main_text("", &endless.replace("%0 = ", ""));
    let error = verify(&parse(&text).unwrap()).unwrap_err();
    assert_eq!(error.message, "calling @main here never ends");
}

#[test]
fn composites_become_calls() {
    let composite = "%0 = stablehlo.composite \"my.op\" %a {decomposition = @twice} : (tensor<3xf32>) -> tensor<3xf32>";
    let call = "%0 = func.call @twice(%a) : (tensor<3xf32>) -> tensor<3xf32>";
    let (module, called) = (with_twice(composite), with_twice(call));
    let decomposed = module.decompose_composites();
    verify(&decomposed).unwrap();
    assert_eq!(decomposed.to_string(), called.to_string());
    assert_eq!(called.decompose_composites().to_string(), called.to_string());
}
