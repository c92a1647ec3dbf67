//! Every operation: read, printed, verified, and refused where it violates a constraint.
//!
//! `tests/data/operations` has programs, several to a file. One that begins with
//! `// refused: op (C1)` must fail the verifier with that constraint of that operation; all others
//! must pass. `bytecode` beside them has the latter as jaxlib serializes them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::read_main;
use crate::stablehlo::op::{Binary, Unary};
use crate::stablehlo::{Module, build, parse, parse_all, parse_bytecode, verify};

/// The programs that pass the verifier, as text.
pub(super) fn programs() -> Vec<String> {
    let programs = files().into_iter().flat_map(|(_, programs)| programs);
    programs.filter(|text| refusal(text).is_none()).collect()
}

/// Those of them that jaxlib has bytecode of, as bytecode, and what is beside them.
pub(super) fn artifacts() -> Vec<Vec<u8>> {
    let folders = ["bytecode", "../attributes", "../resources", "../rewritten"]
        .map(|folder| root().join(folder));
    let files = folders.into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let paths = files.map(|file| file.unwrap().path());
    let bytecode = paths.filter(|path| path.extension().is_some_and(|found| found == "mlirbc"));
    bytecode.map(|path| std::fs::read(path).unwrap()).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/operations")
}

/// The name of every file, and its programs.
fn files() -> Vec<(String, Vec<String>)> {
    let entries = std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "mlir"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, text.split("\n// -----\n").map(str::to_owned).collect())
        })
        .collect();
    files.sort();
    files
}

/// The operation and the constraint that a program says it violates.
fn refusal(text: &str) -> Option<&str> {
    text.strip_prefix("// refused: ").and_then(|rest| rest.lines().next())
}

/// The names of the operations in a module.
fn ops(module: &Module) -> impl Iterator<Item = String> {
    module.functions.iter().flat_map(|function| function.ops.values()).map(|op| op.kind.to_string())
}

#[test]
fn programs_are_right_or_refused_for_what_they_say() {
    for (file, programs) in files() {
        for (number, text) in programs.iter().enumerate() {
            let place = format!("{file}, program {number}");
            let module = parse(text).unwrap_or_else(|error| panic!("{place}: {error}"));
            match (verify(&module), refusal(text)) {
                (Ok(()), None) => {
                    let printed = module.to_string();
                    let again = parse(&printed)
                        .unwrap_or_else(|error| panic!("{place}: {error}\n{printed}"));
                    assert_eq!(again.to_string(), printed, "{place}");
                    assert_eq!(again.fingerprint(), module.fingerprint(), "{place}");
                    verify(&again).unwrap_or_else(|error| panic!("{place}: {error}"));
                    let generic = module.to_generic_text();
                    let again = parse(&generic)
                        .unwrap_or_else(|error| panic!("{place}: {error}\n{generic}"));
                    assert_eq!(again.to_string(), printed, "{place}");
                }
                (Err(error), Some(expected)) => {
                    let constraint = error.constraint.map(|number| format!(" ({number})"));
                    let found = format!("{}{}", error.subject, constraint.unwrap_or_default());
                    assert_eq!(found, expected, "{place}: {error}");
                    assert!(error.location.line > 0, "{place}: {error}");
                }
                (Ok(()), Some(expected)) => panic!("{place} should violate {expected}"),
                (Err(error), None) => panic!("{place}: {error}"),
            }
        }
    }
}

/// The operations of the StableHLO specification, the headings of its section "Ops".
const SPECIFICATION: &str = "\
    abs add after_all all_gather all_reduce all_to_all and async_done async_start atan2 \
    batch_norm_grad batch_norm_inference batch_norm_training bitcast_convert broadcast_in_dim \
    case cbrt ceil cholesky clamp collective_broadcast collective_permute collective_reduce \
    compare complex composite concatenate constant convert convolution cosine \
    count_leading_zeros custom_call divide dot_general dynamic_broadcast_in_dim dynamic_conv \
    dynamic_gather dynamic_iota dynamic_pad dynamic_reshape dynamic_slice dynamic_update_slice \
    exponential exponential_minus_one fft floor gather get_dimension_size get_tuple_element if \
    imag infeed iota is_finite log log_plus_one logistic map maximum minimum multiply negate not \
    optimization_barrier or outfeed pad partition_id popcnt power real recv reduce \
    reduce_precision reduce_scatter reduce_window remainder replica_id reshape reverse rng \
    rng_bit_generator round_nearest_afz round_nearest_even rsqrt scatter select \
    select_and_scatter send shift_left shift_right_arithmetic shift_right_logical sign sine \
    slice sort sqrt subtract tan tanh transpose triangular_solve tuple uniform_dequantize \
    uniform_quantize while xor";

#[test]
fn every_operation_of_the_specification_is_known() {
    let names: Vec<&str> = SPECIFICATION.split(' ').collect();
    assert_eq!(names.len(), 108);
    let unknown: Vec<&&str> =
        names.iter().filter(|name| !build::is_known(&format!("stablehlo.{name}"))).collect();
    assert_eq!(unknown, [&""; 0]);
}

#[test]
fn every_operation_is_read_and_refused_at_least_once() {
    let (mut read, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for text in files().into_iter().flat_map(|(_, programs)| programs) {
        match refusal(&text) {
            None => read.extend(ops(&parse(&text).unwrap())),
            Some(what) => _ = refused.insert(what.split(' ').next().unwrap().to_owned()),
        }
    }
    // These are other operations' forms: a token after nothing, a sum of old between replicas, a
    // constant by another name, returns by what they return from.
    let other_forms =
        ["stablehlo.create_token", "stablehlo.cross-replica-sum", "sdy.constant", "sdy.return"];
    let names = build::names().filter(|name| !other_forms.contains(&name.as_str()));
    let names: Vec<String> = names.collect();
    let missing = |seen: &BTreeSet<String>| {
        let names = names.iter().filter(|name| !seen.contains(*name));
        names.cloned().collect::<Vec<_>>()
    };
    assert_eq!(missing(&read), [""; 0], "are not read");
    assert_eq!(missing(&refused), [""; 0], "are not refused");
    assert!(names.len() > 90, "{}", names.len());
}

/// An operand type, a result type and a wrong result type of an elementwise operation.
fn elementwise_types(name: &str) -> (&'static str, &'static str, &'static str) {
    match name {
        "not" | "and" | "or" | "xor" => ("tensor<3xi1>", "tensor<3xi1>", "tensor<4xi1>"),
        "count_leading_zeros"
        | "popcnt"
        | "shift_left"
        | "shift_right_arithmetic"
        | "shift_right_logical" => ("tensor<3xi8>", "tensor<3xi8>", "tensor<4xi8>"),
        "is_finite" => ("tensor<3xf32>", "tensor<3xi1>", "tensor<4xi1>"),
        "real" | "imag" => ("tensor<3xcomplex<f32>>", "tensor<3xf32>", "tensor<4xf32>"),
        "complex" => ("tensor<3xf64>", "tensor<3xcomplex<f64>>", "tensor<4xcomplex<f64>>"),
        _ => ("tensor<3xf32>", "tensor<3xf32>", "tensor<4xf32>"),
    }
}

#[test]
fn elementwise_operations_are_read_printed_and_refused() {
    let unary = Unary::ALL.iter().map(|op| (op.name(), "%a"));
    let binary = Binary::ALL.iter().map(|op| (op.name(), "%a, %a"));
    for (name, operands) in unary.chain(binary) {
        let (operand, right, wrong) = elementwise_types(name);
        let types = operands.replace("%a", operand);
        let read = |result: &str, form: &str| {
            let call = match form {
                "generic" => format!("\"stablehlo.{name}\"({operands})"),
                _ => format!("stablehlo.{name} {operands}"),
            };
            let body = format!("%0 = {call} : ({types}) -> {result}");
            read_main(&format!("%a: {operand}"), &body).unwrap_or_else(|error| panic!("{error}"))
        };
        let custom = read(right, "custom");
        verify(&custom).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(custom.fingerprint(), read(right, "generic").fingerprint(), "{name}");
        assert_eq!(parse(&custom.to_string()).unwrap().to_string(), custom.to_string(), "{name}");
        let error = verify(&read(wrong, "custom")).unwrap_err();
        assert_eq!(error.subject, format!("stablehlo.{name}"));
        let constraint = if name == "complex" { "C2" } else { "C1" };
        assert_eq!(error.constraint, Some(constraint), "{error}");
    }
}

#[test]
fn bytecode_is_the_same_as_text() {
    let mut count = 0;
    for (file, programs) in files() {
        for (number, text) in programs.iter().enumerate() {
            let path = root().join(format!("bytecode/{file}-{number}.mlirbc"));
            let Ok(bytes) = std::fs::read(&path) else { continue };
            let module = parse_bytecode(&bytes)
                .unwrap_or_else(|error| panic!("{file}, program {number}: {error}"));
            let text = parse(text).unwrap();
            assert_eq!(module.listing(), text.listing(), "{file}, program {number}");
            count += 1;
        }
    }
    assert_eq!(count, 10);
}

#[test]
fn several_modules_are_one_text() {
    for (file, programs) in files() {
        let text = std::fs::read_to_string(root().join(format!("{file}.mlir"))).unwrap();
        let modules = parse_all(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(modules.len(), programs.len(), "{file}");
        for (module, text) in modules.iter().zip(&programs) {
            assert_eq!(module.to_string(), parse(text).unwrap().to_string(), "{file}");
        }
    }
    // Places are those in the whole text.
    let text = "module {}\n// -----\nmodule {\n  func.func @main() {\n    stablehlo.dance\n";
    let error = parse_all(text).unwrap_err();
    assert_eq!((error.line, error.column), (5, 5), "{error}");
    assert!(error.to_string().contains("5 |     stablehlo.dance"), "{error}");
    assert_eq!(parse_all("// -----\nmodule {}").unwrap().len(), 2);
    assert!(parse("module {}\n// -----\nmodule {}").is_err());
}
