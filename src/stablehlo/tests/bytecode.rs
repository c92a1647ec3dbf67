//! Bytecode: damaged files, other versions, what the corpus has not.

use std::path::Path;

use proptest::prelude::*;

use super::corpus::{artifacts, directories, modules};
use super::operations;
use crate::stablehlo::{BytecodeErrorKind, Module, Section, parse, parse_bytecode, verify};

/// Reads, and checks what must hold of any answer.
fn survives(bytes: &[u8]) {
    match parse_bytecode(bytes) {
        Ok(module) => reads_back(&module),
        Err(error) => {
            assert!(error.offset <= bytes.len(), "{error}");
            assert!(!error.message.is_empty());
            assert!(error.to_string().contains(&format!("(byte {} of", error.offset)), "{error}");
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

/// A program of the corpus.
fn artifact() -> impl Strategy<Value = Vec<u8>> {
    let files: Vec<Vec<u8>> = artifacts().into_iter().map(|(_, bytes)| bytes).collect();
    // A quarter of the cases is about the rarer operations.
    prop_oneof![
        3 => prop::sample::select(files),
        1 => prop::sample::select(operations::artifacts()),
    ]
}

/// Where to change a file: anywhere, or in what is not strings, where it matters more.
fn places() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn flipped_bits(mut bytes in artifact(), flips in places()) {
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << (bit % 8);
        }
        survives(&bytes);
    }

    #[test]
    fn replaced_bytes(mut bytes in artifact(), with in places()) {
        for (at, byte) in with {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        survives(&bytes);
    }

    #[test]
    fn any_bytes_after_the_header(rest in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut bytes = b"ML\xEFR\x0DStableHLO_v1.17.0\0".to_vec();
        bytes.extend(rest);
        survives(&bytes);
    }
}

#[test]
fn every_truncation_is_an_error_within_the_file() {
    for (name, bytes) in artifacts().into_iter().step_by(7) {
        for end in 0..bytes.len() {
            let error = parse_bytecode(&bytes[..end]).unwrap_err();
            assert!(error.offset <= end, "{name} cut at {end}: {error}");
        }
    }
}

#[test]
fn every_bit_of_a_program_may_flip() {
    let (_, bytes) = artifacts().into_iter().find(|(name, _)| name == "lockstep/add").unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        survives(&bytes);
    }
}

/// The file whose producer has `version` instead of 1.17.0, which is as long.
fn with_version(bytes: &[u8], version: &str) -> Vec<u8> {
    let old = b"1.17.0";
    assert_eq!(version.len(), old.len());
    let at = bytes.windows(old.len()).position(|window| window == old).unwrap();
    let mut bytes = bytes.to_vec();
    bytes[at..at + old.len()].copy_from_slice(version.as_bytes());
    bytes
}

#[test]
fn other_versions_are_refused_by_number() {
    let (_, bytes) = artifacts().swap_remove(0);
    for version in ["1.18.0", "0.08.9", "9.99.9"] {
        let error = parse_bytecode(&with_version(&bytes, version)).unwrap_err();
        assert_eq!((error.kind, error.section), (BytecodeErrorKind::Version, Section::Header));
        let number = version.replace("08", "8");
        assert_eq!(error.message, format!("this program is of StableHLO {number}"));
        assert!(error.to_string().ends_with("StableHLO version from 0.9.0 to 1.17.0"), "{error}");
    }
    assert!(parse_bytecode(&with_version(&bytes, "1.16.9")).is_ok());
    let error = parse_bytecode(&with_version(&bytes, "latest")).unwrap_err();
    assert_eq!(error.message, "\"latest\" is not a version");

    let mut newer = bytes.clone();
    newer[4] = 0x0F;
    let error = parse_bytecode(&newer).unwrap_err();
    assert_eq!(error.message, "this is MLIR bytecode 7; the newest known is 6");
    let mlir = b"ML\xEFR\x0DMLIR22.0.0git\0";
    let error = parse_bytecode(mlir).unwrap_err();
    assert_eq!(
        error.message,
        "this is bytecode written by \"MLIR22.0.0git\", no StableHLO portable artifact"
    );
    let error = parse_bytecode(b"module {}").unwrap_err();
    assert_eq!((error.offset, error.kind), (0, BytecodeErrorKind::Malformed));
}

/// Programs of the corpus as jaxlib serializes them for older versions, as `set/case/version`.
fn older_artifacts() -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/versions");
    let mut files = Vec::new();
    for case in directories(&root).iter().flat_map(|set| directories(set)) {
        let name = case.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        for file in std::fs::read_dir(&case).unwrap() {
            files.push((name.clone(), std::fs::read(file.unwrap().path()).unwrap()));
        }
    }
    files
}

#[test]
fn unknown_operations_are_refused_by_name() {
    let (_, bytes) = artifacts().into_iter().find(|(name, _)| name == "lockstep/add").unwrap();
    let at = bytes.windows(7).position(|window| window == b"add_v1\0").unwrap();
    for (name, op) in [("xyz_v1", "stablehlo.xyz"), ("_.a_v1", "stablehlo._.a")] {
        let mut other = bytes.clone();
        other[at..at + 6].copy_from_slice(name.as_bytes());
        let error = parse_bytecode(&other).unwrap_err();
        assert_eq!((error.kind, error.section), (BytecodeErrorKind::NotKnown, Section::Operations));
        assert_eq!(error.message, format!("{op} is not known yet"));
    }
}

#[test]
fn older_versions_are_the_same_programs() {
    let modules = modules();
    let artifacts = older_artifacts();
    for (name, bytes) in &artifacts {
        let (_, text) = modules.iter().find(|(known, _)| known == name).unwrap();
        let producer = String::from_utf8_lossy(&bytes[5..22]);
        let module =
            parse_bytecode(bytes).unwrap_or_else(|error| panic!("{name} {producer}: {error}"));
        assert_eq!(module.listing(), text.listing(), "{name} {producer}");
        assert_eq!(module.to_string(), text.to_string(), "{name} {producer}");
    }
    assert!(artifacts.len() > 20, "{}", artifacts.len());
}

#[test]
fn operations_beyond_the_corpus_are_the_same_as_text() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/operations");
    let text = parse(&std::fs::read_to_string(root.join("transfers.mlir")).unwrap()).unwrap();
    for version in ["0.9.0", "1.17.0"] {
        let bytes = std::fs::read(root.join(format!("transfers-{version}.mlirbc"))).unwrap();
        let module = parse_bytecode(&bytes).unwrap_or_else(|error| panic!("{version}: {error}"));
        assert_eq!(module.to_string(), text.to_string(), "{version}");
    }
}

#[test]
fn operations_of_old_and_groups_over_meshes_are_read_as_others() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/rewritten");
    let text = |file: &str| {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        parse(&text).unwrap_or_else(|error| panic!("{file}: {error}"))
    };
    let expected = text("as.mlir");
    verify(&expected).unwrap();
    assert_eq!(text("program.mlir").to_string(), expected.to_string());
    let module = parse_bytecode(&std::fs::read(root.join("1.17.0.mlirbc")).unwrap());
    let module = module.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(module.to_string(), expected.to_string());
}

#[test]
fn constants_may_be_resources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/resources");
    let text = parse(&std::fs::read_to_string(root.join("program.mlir")).unwrap()).unwrap();
    let bytes = std::fs::read(root.join("1.17.0.mlirbc")).unwrap();
    let module = parse_bytecode(&bytes).unwrap_or_else(|error| panic!("{error}"));
    let constants = |module: &Module| {
        let ops = module.functions[0].ops.values().map(|op| op.kind.clone());
        ops.take(4).collect::<Vec<_>>()
    };
    assert_eq!(constants(&module), constants(&text));
    assert!(text.to_string().contains("dense<[-1, 3, 7]> : tensor<3xi4>"), "{text}");
    // A damaged alignment: the padding does not reach it.
    let at = bytes.windows(4).rposition(|window| window == [0, 0, 0x80, 0x3F]).unwrap();
    let mut damaged = bytes.clone();
    damaged[at - 3] ^= 1;
    let error = parse_bytecode(&damaged).unwrap_err();
    assert_eq!(error.section, Section::Resources, "{error}");
}

#[test]
fn attributes_of_any_kind_are_the_same_as_in_text() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/attributes");
    let text = parse(&std::fs::read_to_string(root.join("program.mlir")).unwrap()).unwrap();
    let bytes = std::fs::read(root.join("1.17.0.mlirbc")).unwrap();
    let module = parse_bytecode(&bytes).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(module.to_string(), text.to_string());
    reads_back(&module);
}

#[test]
fn lines_and_columns_of_files_are_kept() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/locations");
    for version in ["0.9.0", "0.14.0", "1.17.0"] {
        let bytes = std::fs::read(root.join(format!("{version}.mlirbc"))).unwrap();
        let module = parse_bytecode(&bytes).unwrap();
        let main = module.function("main").unwrap();
        let places: Vec<String> = main.ops.values().map(|op| op.location.to_string()).collect();
        assert_eq!(places, ["7:3", "8:5", "9:2", "6:5"], "{version}");
    }
}
