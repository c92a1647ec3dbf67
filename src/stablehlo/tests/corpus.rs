//! Every program of the corpus: read, printed, read again.

use std::path::{Path, PathBuf};

use crate::stablehlo::entity::Entity as _;
use crate::stablehlo::{Location, Module, Op, parse, parse_bytecode, verify};

/// The name and the text of every program.
pub(super) fn programs() -> Vec<(String, String)> {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let files = files("program.stablehlo.mlir").into_iter();
    files.map(|(name, bytes)| (name, text(bytes))).collect()
}

/// The name and the bytecode of every program.
pub(super) fn artifacts() -> Vec<(String, Vec<u8>)> {
    files("program.mlirbc")
}

/// The name of every program, and its file called `file`.
fn files(file: &str) -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus");
    let mut programs = Vec::new();
    for set in directories(&root) {
        for case in directories(&set) {
            let name = case.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            programs.push((name, std::fs::read(case.join(file)).unwrap()));
        }
    }
    assert_eq!(programs.len(), 106);
    programs
}

pub(super) fn directories(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.is_dir()).collect();
    paths.sort();
    paths
}

/// All programs as modules.
pub(super) fn modules() -> Vec<(String, Module)> {
    programs()
        .into_iter()
        .map(|(name, text)| {
            let module =
                parse(&text).unwrap_or_else(|error| panic!("{}", error.with_name(name.clone())));
            (name, module)
        })
        .collect()
}

#[test]
fn programs_are_well_formed() {
    for (name, module) in modules() {
        verify(&module).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// The module as if it had been read from nowhere.
fn without_locations(mut module: Module) -> Module {
    for function in &mut module.functions {
        function.location = Location::default();
        for index in 0..function.ops.len() {
            function.ops[Op::new(index)].location = Location::default();
        }
    }
    module
}

#[test]
fn what_is_printed_reads_back_equal() {
    for (name, module) in modules() {
        let text = module.to_string();
        let again = parse(&text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
        assert_eq!(again.fingerprint(), module.fingerprint(), "{name}");
        assert_eq!(again.listing(), module.listing(), "{name}");
        assert_eq!(again.to_string(), text, "{name}");
        let generic = module.to_generic_text();
        let generic = parse(&generic).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(generic.to_string(), text, "{name}");
        assert!(without_locations(again) == without_locations(module), "{name}\n{text}");
    }
}

#[test]
fn bytecode_is_the_same_module_as_text() {
    let artifacts = artifacts();
    assert_eq!(artifacts.len(), 106);
    for ((name, bytes), (_, text)) in artifacts.into_iter().zip(modules()) {
        let module = parse_bytecode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(module.listing(), text.listing(), "{name}");
        assert!(without_locations(module) == without_locations(text), "{name}");
    }
}
