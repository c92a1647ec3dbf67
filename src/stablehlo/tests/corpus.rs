//! Every program of the corpus: read, printed, read again.

use std::path::{Path, PathBuf};

use crate::stablehlo::entity::Entity as _;
use crate::stablehlo::{Location, Module, Op, parse, verify};

/// The name and the text of every program.
pub(super) fn programs() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus");
    let mut programs = Vec::new();
    for set in directories(&root) {
        for case in directories(&set) {
            let name = case.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(case.join("program.stablehlo.mlir")).unwrap();
            programs.push((name, text));
        }
    }
    assert_eq!(programs.len(), 106);
    programs
}

fn directories(path: &Path) -> Vec<PathBuf> {
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
        assert!(without_locations(again) == without_locations(module), "{name}\n{text}");
    }
}
