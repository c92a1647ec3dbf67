//! The `lockstep-hlo` command: what it prints and how it exits.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::io::Write as _;
use std::process::{Command, Stdio};

const PROGRAM: &str = "module {
  func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.negate %a : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
";

/// Runs the command with `input`; answers its exit code, what it printed and what it complained.
fn hlo(arguments: &[&str], input: &[u8]) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lockstep-hlo"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read its input may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn prints_a_program_that_reads_back() {
    let (code, printed, complaints) = hlo(&["print"], PROGRAM.as_bytes());
    assert_eq!((code, complaints.as_str()), (0, ""));
    assert!(printed.contains("%0 = stablehlo.negate %arg0 : tensor<3xf32>"), "{printed}");
    assert_eq!(hlo(&["print", "-"], printed.as_bytes()), (0, printed, String::new()));
}

#[test]
fn reads_files_and_names_them_in_complaints() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program.mlir");
    let name = path.to_str().unwrap();
    std::fs::write(&path, PROGRAM).unwrap();
    assert_eq!(hlo(&["verify", name], b""), (0, String::new(), String::new()));

    std::fs::write(&path, PROGRAM.replace("negate", "negation")).unwrap();
    let expected = format!(
        "error: stablehlo.negation is not known yet\n --> {name}:3:10\n  |\n\
         3 |     %0 = stablehlo.negation %a : tensor<3xf32>\n  |          ^\n"
    );
    assert_eq!(hlo(&["verify", name], b""), (1, String::new(), expected));

    std::fs::write(&path, PROGRAM.replace("negate", "not")).unwrap();
    let (code, _, complaint) = hlo(&["verify", name], b"");
    assert_eq!(code, 1);
    assert!(complaint.starts_with("error: stablehlo.not: "), "{complaint}");
    assert!(
        complaint.contains(&format!("(I1)\n --> {name}:3:10\n  |\n3 |     %0 = ")),
        "{complaint}"
    );
}

#[test]
fn fingerprints_do_not_depend_on_names() {
    let (code, fingerprint, _) = hlo(&["fingerprint"], PROGRAM.as_bytes());
    assert_eq!((code, fingerprint.len()), (0, 65));
    let renamed = PROGRAM.replace("%a", "%other");
    assert_eq!(hlo(&["fingerprint"], renamed.as_bytes()).1, fingerprint);
    let changed = PROGRAM.replace("negate", "abs");
    assert_ne!(hlo(&["fingerprint"], changed.as_bytes()).1, fingerprint);
    let json = format!("{{\"fingerprint\": \"{}\"}}\n", fingerprint.trim());
    assert_eq!(hlo(&["fingerprint", "--json"], PROGRAM.as_bytes()).1, json);
}

#[test]
fn counts_what_a_program_costs() {
    let expected = "{\"flops\": 3, \"bytes_accessed\": 24, \"parameter_bytes\": 12, \
                    \"result_bytes\": 12, \"constant_bytes\": 0, \
                    \"ops\": {\"stablehlo.negate\": 1, \"stablehlo.return\": 1}, \
                    \"collectives\": {}}\n";
    assert_eq!(hlo(&["stats", "--json"], PROGRAM.as_bytes()).1, expected);
    let path = "tests/data/corpus/lockstep/sm_psum/program.stablehlo.mlir";
    let (code, table, _) = hlo(&["stats", path], b"");
    assert_eq!(code, 0);
    let row = |row: &str| table.lines().any(|line| line.trim_start() == row);
    assert!(row("1  stablehlo.all_reduce  64 bytes"), "{table}");
    assert!(row("256  parameter_bytes"), "{table}");
}

#[test]
fn a_text_may_have_several_programs() {
    let other = PROGRAM.replace("negate", "abs");
    let text = format!("{PROGRAM}// -----\n{other}");
    let printed = |program: &str| hlo(&["print"], program.as_bytes()).1;
    assert_eq!(printed(&text), format!("{}// -----\n{}", printed(PROGRAM), printed(&other)));
    let fingerprints = hlo(&["fingerprint"], text.as_bytes()).1;
    assert_eq!(fingerprints.lines().count(), 2);
    let (code, _, complaint) = hlo(&["verify"], text.replace("abs", "not").as_bytes());
    assert_eq!(code, 1);
    assert!(complaint.contains("--> <stdin>:10:10\n"), "{complaint}");
}

#[test]
fn converts_between_the_forms_of_text() {
    let (code, generic, complaints) = hlo(&["convert", "--to", "generic"], PROGRAM.as_bytes());
    assert_eq!((code, complaints.as_str()), (0, ""));
    assert!(generic.contains("%0 = \"stablehlo.negate\"(%arg0) : (tensor<3xf32>)"), "{generic}");
    let custom = hlo(&["convert", "--to", "custom"], generic.as_bytes()).1;
    assert_eq!(custom, hlo(&["print"], PROGRAM.as_bytes()).1);
    assert_eq!(hlo(&["convert", "--to", "bytecode"], b"").0, 2);
}

#[test]
fn exits_with_2_when_the_command_is_at_fault() {
    for arguments in [&["draw"][..], &["print", "a", "b"], &[]] {
        let (code, printed, complaint) = hlo(arguments, b"");
        assert_eq!((code, printed.as_str()), (2, ""), "{complaint}");
    }
    let (code, _, complaint) = hlo(&["print", "/nowhere/program.mlir"], b"");
    assert_eq!(code, 2);
    assert!(complaint.starts_with("error: cannot read /nowhere/program.mlir: "), "{complaint}");
}

#[test]
fn bytecode_and_text_are_the_same_program() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/corpus/lockstep/mlp_train_step");
    let [text, bytecode] = ["program.stablehlo.mlir", "program.mlirbc"]
        .map(|file| std::fs::read(format!("{folder}/{file}")).unwrap());
    for command in ["print", "fingerprint", "stats"] {
        let (code, printed, complaint) = hlo(&[command], &bytecode);
        assert_eq!((code, complaint.as_str()), (0, ""));
        assert_eq!(printed, hlo(&[command], &text).1);
    }
}

#[test]
fn what_is_neither_text_nor_bytecode_is_refused() {
    let (code, _, complaint) = hlo(&["print"], b"ML\xEFR\x00");
    assert_eq!(code, 1);
    assert!(complaint.contains("bytecode") && complaint.ends_with("--> <stdin>\n"), "{complaint}");
    let (code, _, complaint) = hlo(&["print"], b"module \xFF");
    assert_eq!((code, complaint.as_str()), (1, "error: byte 7 is not UTF-8 text\n--> <stdin>\n"));
}

/// Every program of the corpus: its name and its text.
fn corpus() -> Vec<std::path::PathBuf> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus");
    let folders = |path: std::path::PathBuf| {
        let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let cases = folders(root).into_iter().flat_map(folders);
    cases.map(|case| case.join("program.stablehlo.mlir")).collect()
}

/// A program for every operation that jaxlib knows, each in a file of its own in `directory`.
fn operations(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/operations");
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "mlir") {
            continue;
        }
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, program) in text.split("\n// -----\n").enumerate() {
            if program.contains("// refused: ") || program.contains("// jaxlib: unknown") {
                continue;
            }
            paths.push(directory.join(format!("{stem}-{number}.mlir")));
            std::fs::write(&paths[paths.len() - 1], program).unwrap();
        }
    }
    assert!(paths.len() > 8, "{paths:?}");
    paths
}

/// Asks MLIR's own parser, which jaxlib has, about what is printed: it must be the same module as
/// what was read. `scripts/setup jax` installs it.
#[test]
fn jaxlib_reads_what_is_printed_as_the_same_module() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let environment = root.join("target/python-env");
    if !environment.join("complete").exists() {
        eprintln!("skipped: jaxlib is not there; `scripts/setup jax` installs it");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut judge = Command::new(environment.join("bin/python"));
    judge.arg(root.join("tests/jaxlib_judge.py"));
    let mut programs = corpus();
    assert_eq!(programs.len(), 106);
    programs.extend(operations(directory.path()));
    for (number, original) in programs.iter().enumerate() {
        let text = std::fs::read_to_string(original).unwrap();
        let module = lockstep::stablehlo::parse(&text).unwrap();
        for (form, text) in [("custom", module.to_string()), ("generic", module.to_generic_text())]
        {
            let printed = directory.path().join(format!("{form}-{number}.mlir"));
            std::fs::write(&printed, text).unwrap();
            judge.arg(original).arg(printed);
        }
    }
    let output = judge.output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(output.status.success(), "{}", said.concat());
}

const CHECKED: &str = "// RUN: ignored
func.func @sum() {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %1 = stablehlo.add %0, %0 : tensor<2xi32>
  check.expect_eq_const %1, dense<[2, 4]> : tensor<2xi32>
  return
}
// -----
func.func @shape(%n: tensor<i32>) { return }
func.func @wrong() {
  %0 = stablehlo.constant dense<[1.5, 2.0]> : tensor<2xf32>
  check.expect_almost_eq_const %0, dense<[1.5, 2.5]> : tensor<2xf32>
  return
}
// -----
func.func @unknown() { stablehlo.dance return }
";

#[test]
fn check_reports_every_function() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tests.mlir");
    let name = path.to_str().unwrap();
    std::fs::write(&path, CHECKED).unwrap();
    let (code, printed, complaint) = hlo(&["check", "-split-input-file", name], b"");
    let expected = format!(
        "ok   {name} @sum (1)\n\
         FAIL {name} @wrong\n\
         check.expect_almost_eq_const: element [1] is 2.0, expected 2.5 within 0.0001 (1 of 2 \
         elements differ)\n  --> {name}:12:3\n   |\n\
         12 |   check.expect_almost_eq_const %0, dense<[1.5, 2.5]> : tensor<2xf32>\n   |   ^\n\
         FAIL {name}\n\
         stablehlo.dance is not known yet\n  --> {name}:16:24\n   |\n\
         16 | func.func @unknown() {{ stablehlo.dance return }}\n   |                        ^\n"
    );
    assert_eq!(printed, expected);
    assert_eq!((code, complaint.as_str()), (1, "error: 1 passed, 2 failed\n"));

    let (code, printed, _) = hlo(&["check", "--json"], CHECKED.as_bytes());
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!((code, lines.len()), (1, 3));
    assert_eq!(
        lines[0],
        "{\"file\": \"-\", \"function\": \"sum\", \"ok\": true, \"expectations\": 1, \"printed\": []}"
    );
    let first = CHECKED.split("// -----").next().unwrap();
    let (code, printed, complaint) = hlo(&["check"], first.as_bytes());
    assert_eq!((code, printed.as_str()), (0, "ok   - @sum (1)\n1 passed, 0 failed\n"));
    assert_eq!(complaint, "");
}

#[test]
fn a_program_with_collectives_runs_on_virtual_devices() {
    let program = "func.func @main() -> tensor<i32> {
      %0 = stablehlo.constant dense<3> : tensor<i32>
      %1 = \"stablehlo.all_reduce\"(%0) <{replica_groups = dense<> : tensor<0x0xi64>}> ({
        ^bb0(%x: tensor<i32>, %y: tensor<i32>):
          %s = stablehlo.add %x, %y : tensor<i32>
          stablehlo.return %s : tensor<i32>
      }) : (tensor<i32>) -> tensor<i32>
      return %1 : tensor<i32>
    }";
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.npz");
    let name = path.to_str().unwrap();
    let (code, printed, complaint) =
        hlo(&["run", "--devices", "4", "--output", name], program.as_bytes());
    assert_eq!((code, printed.as_str(), complaint.as_str()), (0, "tensor<i32>\n", ""));
    let bytes = std::fs::read(&path).unwrap();
    let twelve = 12_i32.to_le_bytes();
    // Four arrays end in the sum, each just before the header of the next entry or the directory.
    let count = bytes.windows(6).filter(|window| window[..4] == twelve && window[4..] == *b"PK");
    assert_eq!(count.count(), 4);
}

/// Writes what a program returns to an archive in `directory`.
fn results_of(program: &str, input: Option<&str>, directory: &std::path::Path) -> Vec<u8> {
    let path = directory.join("results.npz");
    let mut arguments = vec!["run", "--output", path.to_str().unwrap()];
    arguments.extend(input.map(|file| ["--input", file]).iter().flatten());
    let (code, _, complaint) = hlo(&arguments, program.as_bytes());
    assert_eq!((code, complaint.as_str()), (0, ""));
    std::fs::read(path).unwrap()
}

#[test]
fn parameters_that_leave_dimensions_open_get_them_from_the_archive() {
    let directory = tempfile::tempdir().unwrap();
    let constant = |numbers: &str| {
        let length = numbers.split(',').count();
        format!(
            "func.func @main() -> tensor<{length}xf32> {{
               %0 = stablehlo.constant dense<[{numbers}]> : tensor<{length}xf32>
               return %0 : tensor<{length}xf32>
             }}"
        )
    };
    let doubling = "func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {
      %0 = stablehlo.add %a, %a : tensor<?xf32>
      return %0 : tensor<?xf32>
    }";
    let file = directory.path().join("arguments.npz");
    for (argument, expected) in [("1.0, 2.5, -3.0", "2.0, 5.0, -6.0"), ("7.0, 0.5", "14.0, 1.0")] {
        let argument = results_of(&constant(argument), None, directory.path());
        std::fs::write(&file, argument).unwrap();
        let found = results_of(doubling, Some(file.to_str().unwrap()), directory.path());
        assert_eq!(found, results_of(&constant(expected), None, directory.path()));
    }
    let (code, printed, _) =
        hlo(&["bench", "--seconds", "0", "--input", file.to_str().unwrap()], doubling.as_bytes());
    assert_eq!((code, printed.lines().count()), (0, 8), "{printed}");
    // Without an archive nothing says how long the parameter is.
    let (code, _, complaint) = hlo(&["run"], doubling.as_bytes());
    assert_eq!(code, 1);
    assert!(complaint.contains("tensor<?xf32>"), "{complaint}");
}

#[test]
fn bench_writes_figures_for_scripts_and_a_slice_for_each_step() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace.json");
    let program = "func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
      %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %1 = stablehlo.cholesky %0 : tensor<4x4xf32>
      return %1 : tensor<4x4xf32>
    }";
    let (code, printed, complaint) = hlo(
        &["bench", "--seconds", "0", "--json", "--trace", file.to_str().unwrap()],
        program.as_bytes(),
    );
    assert_eq!((code, complaint.as_str()), (0, ""));
    assert!(printed.starts_with("{\"read\": {\"value\": "), "{printed}");
    assert!(printed.contains("\"arithmetic\": {\"value\": "), "{printed}");
    let trace = std::fs::read_to_string(file).unwrap();
    let slices: Vec<&str> = trace.lines().filter(|line| line.contains("\"ph\":\"X\"")).collect();
    let steps = slices.iter().filter(|line| line.contains("\"result_bytes\":\"64\""));
    assert_eq!(steps.count(), 2, "{trace}");
    assert!(slices.iter().any(|line| line.contains("\"name\":\"Cholesky\"")), "{trace}");
}
