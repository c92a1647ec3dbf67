//! Localizing the programs of the corpus and of the examples.

use std::path::Path;

use super::{Localized, SpmdError, localize, partition, shard_index};
use crate::stablehlo::op::OpKind;
use crate::stablehlo::{Module, parse, verify};

fn read(path: &str) -> Module {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(&path).unwrap();
    parse(&text).unwrap_or_else(|error| panic!("{}", error.with_name(path.display().to_string())))
}

fn corpus(case: &str) -> Module {
    read(&format!("tests/data/corpus/lockstep/{case}/program.stablehlo.mlir"))
}

/// The types of the parameters and results of `main`.
fn signature(module: &Module) -> (Vec<String>, Vec<String>) {
    let main = module.function("main").unwrap();
    let params = main.params.iter().map(|param| main.ty(param.value).to_string()).collect();
    (params, main.results.iter().map(|result| result.ty.to_string()).collect())
}

fn axes(localized: &Localized) -> (Vec<String>, Vec<String>) {
    let show = |sharding: &crate::stablehlo::op::Sharding| {
        let dims = sharding.dims.iter().map(|dim| {
            dim.axes.iter().map(|axis| axis.name.as_str()).collect::<Vec<_>>().join("*")
        });
        dims.collect::<Vec<_>>().join(",")
    };
    (
        localized.parameter_shardings.iter().map(show).collect(),
        localized.result_shardings.iter().map(show).collect(),
    )
}

#[test]
fn manual_programs_become_local() {
    for (case, partitions, params, results, spread) in [
        ("sm_psum", 4, "tensor<4x4xf32>", vec!["tensor<4x4xf32>"], ("x,y", vec![",y"])),
        ("sm_psum_both", 4, "tensor<4x4xf32>", vec!["tensor<4x4xf32>"], ("x,y", vec![","])),
        ("sm_psum_scatter", 4, "tensor<8x4xf32>", vec!["tensor<2x4xf32>"], (",", vec!["d,"])),
        ("sm_all_gather", 4, "tensor<2x4xf32>", vec!["tensor<8x4xf32>"], ("d,", vec![","])),
        ("sm_all_to_all", 4, "tensor<2x8xf32>", vec!["tensor<8x2xf32>"], ("d,", vec![",d"])),
        ("sm_ppermute", 4, "tensor<2x4xf32>", vec!["tensor<2x4xf32>"], ("d,", vec!["d,"])),
        ("sm_axis_index", 4, "tensor<2x4xf32>", vec!["tensor<2x4xf32>"], ("d,", vec!["d,"])),
        (
            "sm_pmax_pmin_pmean",
            4,
            "tensor<4x4xf32>",
            vec!["tensor<4x4xf32>", "tensor<4x4xf32>", "tensor<4x4xf32>"],
            ("x,y", vec![",y", ",y", "x,"]),
        ),
    ] {
        let localized = localize(&corpus(case)).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(localized.num_partitions, partitions, "{case}");
        let expected = (vec![params.to_owned()], results.iter().map(ToString::to_string).collect());
        assert_eq!(signature(&localized.module), expected, "{case}");
        let expected =
            (vec![spread.0.to_owned()], spread.1.iter().map(ToString::to_string).collect());
        assert_eq!(axes(&localized), expected, "{case}");
        verify(&localized.module).unwrap_or_else(|error| panic!("{case}: {error}"));
        let text = localized.module.to_string();
        assert!(!text.contains("sdy."), "{text}");
        assert_eq!(parse(&text).unwrap().fingerprint(), localized.module.fingerprint());
        assert_eq!(localized.global_parameters.len(), 1);
    }
}

#[test]
fn a_program_for_one_device_stays_as_it_is() {
    for case in ["mlp_train_step", "while_loop", "sort", "vmap_nested_jit"] {
        let module = corpus(case);
        let localized = localize(&module).unwrap();
        assert_eq!(localized.module.listing(), module.listing(), "{case}");
        assert_eq!(localized.num_partitions, 1);
        assert!(localized.mesh.axes.is_empty());
    }
}

#[test]
fn what_needs_a_partitioner_is_refused_by_operation_and_line() {
    for (case, what) in [
        ("sm_partial_manual", "sdy.manual_computation leaves the axis \"y\" automatic, at 4:"),
        ("mp_sharded_matmul", "parameter 0 of @main is spread, but not the work on it, at 3:"),
        ("mp_replicated_out", "parameter 0 of @main is spread, but not the work on it, at 3:"),
    ] {
        let error = localize(&corpus(case)).unwrap_err();
        assert!(matches!(error, SpmdError::NeedsPartitioner { .. }), "{case}: {error}");
        let message = error.to_string();
        assert!(message.starts_with(what), "{case}: {message}");
        assert!(message.contains("the partitioner, which Lockstep does not have yet"));
    }
    let path = "tests/data/corpus/lockstep_gspmd/sm_psum/program.stablehlo.mlir";
    assert!(matches!(localize(&read(path)), Err(SpmdError::NeedsPartitioner { .. })));
}

#[test]
fn work_on_global_values_is_refused_by_operation_and_line() {
    let text = corpus("sm_psum").to_string().replace(
        "    return %0 : tensor<4x8",
        "    %g = stablehlo.negate %0 : tensor<4x8xf32>\n    return %g : tensor<4x8",
    );
    let message = localize(&parse(&text).unwrap()).unwrap_err().to_string();
    assert!(message.starts_with("stablehlo.negate works on global values, at "), "{message}");
}

#[test]
fn meshes_and_shapes_that_do_not_fit_are_refused() {
    let text = corpus("sm_psum").to_string();
    let refused = |from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        localize(&parse(&text.replace(from, to)).unwrap()).unwrap_err()
    };
    let error = refused("\"x\"=2, \"y\"=2", "\"x\"=1, \"y\"=4");
    assert!(matches!(error, SpmdError::LocalShape { .. }), "{error}");
    let error = refused("\"x\"=2, \"y\"=2", "\"x\"=2, \"y\"=4");
    assert!(matches!(error, SpmdError::Partitions { devices: 8, .. }), "{error}");
    let error = refused("tensor<8x8xf32>", "tensor<7x8xf32>");
    assert!(matches!(error, SpmdError::NotDivisible { size: 7, parts: 2, .. }), "{error}");
    let error = refused("in_shardings=[<@mesh, [{\"x\"}", "in_shardings=[<@mesh, [{\"z\"}");
    assert!(matches!(error, SpmdError::UnknownAxis { .. }), "{error}");
}

#[test]
fn the_examples_become_local() {
    for partitions in [1, 2, 4] {
        for program in ["hello/sum", "mlp/train", "mlp/evaluate", "mlp/identical"] {
            let module = read(&format!("examples/data/{program}_{partitions}.mlir"));
            verify(&module).unwrap_or_else(|error| panic!("{program}: {error}"));
            let localized = localize(&module).unwrap_or_else(|error| panic!("{program}: {error}"));
            verify(&localized.module).unwrap_or_else(|error| panic!("{program}: {error}"));
            assert_eq!(localized.num_partitions, partitions);
            let main = localized.module.function("main").unwrap();
            assert!(main.ops.values().all(|op| !matches!(op.kind, OpKind::ManualComputation(_))));
        }
    }
    let localized = localize(&read("examples/data/hello/sum_4.mlir")).unwrap();
    let index = |p| shard_index(&localized.mesh, &localized.parameter_shardings[0], p).unwrap();
    assert_eq!((0..4).map(index).collect::<Vec<_>>(), [[0], [1], [2], [3]]);
}

#[test]
fn a_result_that_is_to_be_spread_needs_a_partitioner() {
    let text = |dim: &str| {
        format!(
            "module attributes {{mhlo.num_partitions = 2 : i32}} {{
  sdy.mesh @mesh = <[\"x\"=2]>
  func.func @main(%a: tensor<4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}]>}}) -> tensor<4xf32> {{
    %0 = stablehlo.negate %a {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{dim}]>]>}} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }}
}}"
        )
    };
    let message = localize(&parse(&text("{\"x\"}")).unwrap()).unwrap_err().to_string();
    assert!(message.starts_with("stablehlo.negate spreads its result, at 4:10"), "{message}");
    let localized = localize(&parse(&text("{}")).unwrap()).unwrap();
    assert!(!localized.module.to_string().contains("sdy."), "{}", localized.module);
}

/// `sm_psum` with its manual computation two calls away from `main`.
fn called() -> String {
    let direct = corpus("sm_psum").to_string();
    let (start, end) = (direct.find("    %0 = sdy").unwrap(), direct.find("    return").unwrap());
    let manual = &direct[start..end];
    format!(
        "module attributes {{mhlo.num_partitions = 4 : i32}} {{
  sdy.mesh @mesh = <[\"x\"=2, \"y\"=2]>
  func.func @main(%arg0: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{\"x\"}}, {{\"y\"}}]>}}) -> tensor<4x8xf32> {{
    %0 = func.call @outer(%arg0) : (tensor<8x8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }}
  func.func private @outer(%arg0: tensor<8x8xf32>) -> tensor<4x8xf32> {{
    %0 = func.call @inner(%arg0) : (tensor<8x8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }}
  func.func private @inner(%arg0: tensor<8x8xf32>) -> tensor<4x8xf32> {{
{manual}    return %0 : tensor<4x8xf32>
  }}
}}"
    )
}

#[test]
fn a_manual_computation_that_main_calls_becomes_local() {
    let module = parse(&called()).unwrap_or_else(|error| panic!("{error}"));
    verify(&module).unwrap();
    let localized = localize(&module).unwrap();
    verify(&localized.module).unwrap();
    let direct = localize(&corpus("sm_psum")).unwrap();
    let functions = |localized: &Localized| localized.module.listing().split_off(1);
    assert_eq!(functions(&localized), functions(&direct));
    assert_eq!(localized.parameter_shardings, direct.parameter_shardings);
    assert_eq!(localized.result_shardings, direct.result_shardings);
}

#[test]
fn two_calls_to_a_manual_computation_are_refused() {
    let text = called();
    let call = text.lines().find(|line| line.contains("func.call @outer")).unwrap();
    let twice = format!("{call}\n{}", call.replace("%0 =", "%again ="));
    let module = parse(&text.replacen(call, &twice, 1)).unwrap();
    verify(&module).unwrap();
    let message = localize(&module).unwrap_err().to_string();
    assert!(message.contains("on the way to many manual computations, at "), "{message}");
}

#[test]
fn shardings_of_a_called_function_are_not_dropped() {
    let text = called().replacen(
        "@inner(%arg0: tensor<8x8xf32>",
        "@inner(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {\"x\"}]>}",
        1,
    );
    let message = localize(&parse(&text).unwrap()).unwrap_err().to_string();
    assert!(
        message.starts_with("@inner says how its parameters or results are spread"),
        "{message}"
    );
}

/// The operations of `main`, in order.
fn operations(module: &Module) -> Vec<String> {
    let main = module.function("main").unwrap();
    let ops = &main.blocks[main.entry].ops;
    ops.iter().map(|&op| main.ops[op].kind.to_string()).collect()
}

#[test]
fn what_nobody_has_cut_is_computed_everywhere() {
    let text = r#"module attributes {mhlo.num_partitions = 4 : i32} {
      sdy.mesh @mesh = <["x"=2, "y"=2]>
      func.func @main(
          %a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>},
          %b: tensor<6xf32>) -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
        %0 = stablehlo.sine %a : tensor<8x6xf32>
        %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x", "y"} (%c: tensor<4x3xf32>) {
          %2 = stablehlo.cosine %c : tensor<4x3xf32>
          sdy.return %2 : tensor<4x3xf32>
        } : (tensor<8x6xf32>) -> tensor<8x6xf32>
        return %1 : tensor<8x6xf32>
      }
    }"#;
    let module = parse(text).unwrap();
    verify(&module).unwrap();
    let partitioned = partition(&module).unwrap();
    verify(&partitioned.module).unwrap();
    let (params, results) = signature(&partitioned.module);
    assert_eq!(params, ["tensor<2x6xf32>", "tensor<6xf32>"]);
    assert_eq!(results, ["tensor<8x3xf32>"]);
    assert_eq!(axes(&partitioned), (vec!["y*x,".to_owned(), String::new()], vec![",x".to_owned()]));
    let operations = operations(&partitioned.module);
    let count =
        |name: &str| operations.iter().filter(|operation| operation.ends_with(name)).count();
    assert_eq!((count("all_gather"), count("partition_id")), (3, 2), "{operations:?}");
    let listing = partitioned.module.to_string();
    // Rows are cut by y, then by x: device 2, at (1, 0), has the second part.
    assert!(listing.contains("[[0, 2, 1, 3]]"), "{listing}");
}

/// How the only result of a program over a mesh of two by two is spread, whose `main` has `body`.
fn result_of(parameter: &str, body: &str) -> String {
    let text = format!(
        "module attributes {{mhlo.num_partitions = 4 : i32}} {{
      sdy.mesh @mesh = <[\"x\"=2, \"y\"=2]>
      func.func @main(
          %a: tensor<8x6xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{parameter}]>}},
          %b: tensor<8x6xf32>) -> (tensor<8x6xf32>) {{
        {body}
        return %r : tensor<8x6xf32>
      }}
      func.func private @second(%a: tensor<8x6xf32>, %b: tensor<8x6xf32>) -> tensor<8x6xf32> {{
        return %b : tensor<8x6xf32>
      }}
      func.func private @cut(%a: tensor<8x6xf32>) -> tensor<8x6xf32> {{
        %0 = sdy.sharding_constraint %a <@mesh, [{{\"y\"}}, {{}}]> : tensor<8x6xf32>
        return %0 : tensor<8x6xf32>
      }}
    }}"
    );
    let module = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    verify(&module).unwrap_or_else(|error| panic!("{error}"));
    let partitioned = partition(&module).unwrap();
    verify(&partitioned.module).unwrap_or_else(|error| panic!("{error}"));
    axes(&partitioned).1.remove(0)
}

#[test]
fn what_nobody_says_about_a_result_is_said_by_what_it_comes_from() {
    let sum = "%r = stablehlo.add %b, %a : tensor<8x6xf32>";
    let manual = "%r = sdy.manual_computation(%b) in_shardings=[<@mesh, [{?}, {?}]>] out_shardings=[<@mesh, [{?}, {\"y\", ?}]>] manual_axes={\"y\"} (%c: tensor<8x6xf32>) {
          %0 = stablehlo.slice %c [0:8, 0:3] : (tensor<8x6xf32>) -> tensor<8x3xf32>
          %1 = sdy.sharding_constraint %0 <@mesh, [{\"x\"}, {}]> : tensor<8x3xf32>
          sdy.return %1 : tensor<8x3xf32>
        } : (tensor<8x6xf32>) -> tensor<8x6xf32>";
    let transposed = "%0 = stablehlo.reshape %a : (tensor<8x6xf32>) -> tensor<6x8xf32>
        %r = stablehlo.transpose %0, dims = [1, 0] : (tensor<6x8xf32>) -> tensor<8x6xf32>";
    let call = |callee: &str, arguments: &str, types: &str| {
        format!("%r = func.call @{callee}({arguments}) : ({types}) -> tensor<8x6xf32>")
    };
    let two = "tensor<8x6xf32>, tensor<8x6xf32>";
    for (parameter, body, expected) in [
        ("{\"x\"}, {}", sum, "x,"),
        ("{}, {\"y\"}", sum, ",y"),
        ("{}, {}", sum, ","),
        ("{\"x\"}, {}", manual, "x,y"),
        ("{\"x\"}, {}", transposed, ","),
        ("{\"x\"}, {}", &call("second", "%b, %a", two), "x,"),
        ("{\"x\"}, {}", &call("second", "%a, %b", two), ","),
        ("{\"x\"}, {}", &call("cut", "%a", "tensor<8x6xf32>"), "y,"),
    ] {
        assert_eq!(result_of(parameter, body), expected, "[{parameter}] {body}");
    }
}

#[test]
fn devices_that_know_which_they_are_cannot_all_compute_the_same() {
    let text = r#"module attributes {mhlo.num_partitions = 2 : i32} {
      sdy.mesh @mesh = <["x"=2]>
      func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<ui32> {
        %0 = stablehlo.partition_id : tensor<ui32>
        return %0 : tensor<ui32>
      }
    }"#;
    let error = partition(&parse(text).unwrap()).unwrap_err();
    assert!(matches!(error, SpmdError::NeedsPartitioner { .. }), "{error}");
    assert!(error.to_string().contains("partition_id works on global values"), "{error}");
}

#[test]
fn tokens_come_and_go_as_arrays_without_elements() {
    let text = r#"module {
      func.func @main(%a: tensor<2xf32>, %t: !stablehlo.token) -> (!stablehlo.token, tensor<2xf32>) {
        %0:2 = "stablehlo.infeed"(%t) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
        return %0#1, %0#0 : !stablehlo.token, tensor<2xf32>
      }
    }"#;
    let module = parse(text).unwrap();
    verify(&module).unwrap();
    let partitioned = partition(&module).unwrap();
    verify(&partitioned.module).unwrap();
    let (params, results) = signature(&partitioned.module);
    assert_eq!(params, ["tensor<2xf32>", "tensor<0xi1>"]);
    assert_eq!(results, ["tensor<0xi1>", "tensor<2xf32>"]);
}

#[test]
fn what_is_whole_may_be_over_a_mesh_without_axes() {
    let text = r#"module attributes {mhlo.num_partitions = 2 : i32} {
      sdy.mesh @empty_mesh = <[]>
      sdy.mesh @mesh = <["x"=2]>
      func.func @main(
          %a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@empty_mesh, [{}]>},
          %b: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
        %0 = stablehlo.add %a, %b : tensor<4xf32>
        return %0 : tensor<4xf32>
      }
    }"#;
    let module = parse(text).unwrap();
    verify(&module).unwrap();
    let partitioned = partition(&module).unwrap();
    let (params, results) = signature(&partitioned.module);
    assert_eq!(params, ["tensor<4xf32>", "tensor<2xf32>"]);
    assert_eq!(results, ["tensor<2xf32>"]);
    assert_eq!(partitioned.mesh.name, "mesh");
}
