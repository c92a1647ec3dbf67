//! The modules of `tests/data/check`, and expectations that are not met.

use super::{Options, Report, functions, run};
use crate::stablehlo::{parse, parse_each, verify};

fn reports(text: &str) -> Vec<Report> {
    let module = parse(text).unwrap_or_else(|error| panic!("{error}"));
    verify(&module).unwrap_or_else(|error| panic!("{error}"));
    let names = functions(&module);
    names.into_iter().map(|function| run(&module, &function.name, Options::default())).collect()
}

/// The message of the only report.
fn failure(text: &str) -> String {
    let reports = reports(text);
    let [report] = reports.as_slice() else { panic!("{reports:?}") };
    let failure = report.outcome.clone().unwrap_err();
    format!("{}: {}", failure.location, failure.message)
}

#[test]
fn modules_meet_their_own_expectations() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/check");
    let mut failures = Vec::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for module in parse_each(&std::fs::read_to_string(&path).unwrap()) {
            let module = module.unwrap_or_else(|error| panic!("{}", error.with_name(name.clone())));
            verify(&module).unwrap_or_else(|error| panic!("{name}: {error}"));
            for function in functions(&module) {
                let report = run(&module, &function.name, Options::default());
                match report.outcome {
                    Ok(0) => failures.push(format!("{name} @{}: nothing expected", function.name)),
                    Ok(_) => {}
                    Err(failure) => failures.push(format!(
                        "{name}:{} @{}: {}",
                        failure.location, function.name, failure.message
                    )),
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn an_expectation_that_is_not_met_is_named() {
    let text = "func.func @f() {
      %0 = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
      check.expect_eq_const %0, dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
      %1 = stablehlo.negate %0 : tensor<2x2xi32>
      check.expect_eq_const %1, dense<[[-1, -2], [3, -4]]> : tensor<2x2xi32>
      return
    }";
    assert_eq!(
        failure(text),
        "5:7: check.expect_eq_const: element [1, 0] is -3, expected 3 (1 of 4 elements differ)"
    );
}

#[test]
fn functions_that_others_use_or_that_take_arguments_are_not_run() {
    let text = "
    func.func private @hidden() { return }
    func.func @callee() -> tensor<f32> {
      %0 = stablehlo.constant dense<1.0> : tensor<f32>
      return %0 : tensor<f32>
    }
    func.func @takes(%a: tensor<f32>) { return }
    func.func @main() {
      %0 = call @callee() : () -> tensor<f32>
      check.expect_eq_const %0, dense<1.0> : tensor<f32>
      interpreter.print %0 : tensor<f32>
      return
    }";
    let reports = reports(text);
    let [report] = reports.as_slice() else { panic!("{reports:?}") };
    assert_eq!((report.function.as_str(), &report.outcome), ("main", &Ok(1)));
    assert_eq!(report.printed, ["dense<1.0> : tensor<f32>"]);
}

#[test]
fn custom_calls_expect_what_the_dialect_does() {
    let text = |target: &str, b: &str| {
        format!(
            "func.func @main() -> tensor<i1> {{
               %a = stablehlo.constant dense<1.0> : tensor<f32>
               %b = stablehlo.constant dense<{b}> : tensor<f32>
               %0 = stablehlo.custom_call @{target}(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<i1>
               return %0 : tensor<i1>
             }}"
        )
    };
    for (target, near, far) in [
        ("check.eq", "1.00009", "1.00011"),
        ("check.expect_eq", "1.0", "1.00000012"),
        ("check.expect_close", "1.00000036", "1.00000048"),
        ("check.expect_almost_eq", "1.0009", "1.0011"),
    ] {
        assert_eq!(reports(&text(target, near))[0].outcome, Ok(1), "{target}");
        assert!(failure(&text(target, far)).contains("element [] is 1.0, expected"), "{target}");
    }
}
