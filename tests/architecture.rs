//! Holds the import table of ARCHITECTURE.md: which module may use which.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Each module of the root package, and what of ours it may use besides itself.
const IMPORTS: [(&str, &[&str]); 7] = [
    ("ifrt", &[]),
    ("stablehlo", &["ifrt"]),
    ("spmd", &["ifrt", "stablehlo"]),
    ("backend", &["ifrt", "stablehlo"]),
    ("client", &["ifrt", "stablehlo", "spmd", "backend", "lockstep_collectives"]),
    ("check", &["ifrt", "stablehlo", "backend", "client"]),
    ("trace", &[]),
];

/// The only places whose files may ask for `unsafe`: memory that processes share, instructions that
/// not every processor has, and the boundary to callers from C.
const UNSAFE: [&str; 8] = [
    "collectives/src/shared_memory/mapping.rs",
    "collectives/src/stream.rs",
    "plugin/src/abi/call.rs",
    "plugin/src/abi/caller.rs",
    "plugin/src/abi/host_callback.rs",
    "plugin/src/abi/key_value.rs",
    "plugin/src/abi/structure.rs",
    "plugin/src/api.rs",
];

/// What of the root package the plugin may name: the interface, the formats of XLA's frontends, and
/// of the client its making and how shardings are written down.
const PLUGIN: [&str; 3] = ["ifrt", "stablehlo::xla", "client"];

#[test]
fn modules_import_only_what_the_table_allows() {
    let mut violations = Vec::new();
    for (module, allowed) in IMPORTS {
        for file in rust_files(&root().join("src").join(module)) {
            let text = fs::read_to_string(&file).unwrap();
            for used in modules_used(&text) {
                if used != module && !allowed.contains(&used.as_str()) {
                    violations.push(format!("{}: {module} may not use {used}", relative(&file)));
                }
            }
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[test]
fn every_module_of_the_root_package_is_in_the_table() {
    let declared: BTreeSet<String> = fs::read_to_string(root().join("src/lib.rs"))
        .unwrap()
        .lines()
        .filter_map(|line| Some(line.strip_prefix("pub mod ")?.strip_suffix(';')?.to_owned()))
        .collect();
    let tabled: BTreeSet<String> = IMPORTS.iter().map(|(module, _)| (*module).to_owned()).collect();
    assert_eq!(declared, tabled);
}

#[test]
fn unsafe_stays_where_the_design_allows_it() {
    let folders = ["src", "collectives", "launcher", "plugin/src"];
    let sources = folders.map(|folder| rust_files(&root().join(folder)));
    let tests = root().join("plugin/src/tests");
    for file in sources.iter().flatten().filter(|file| !file.starts_with(&tests)) {
        let name = relative(file);
        let text = fs::read_to_string(file).unwrap();
        let found = code_words(&text).any(|word| word == "unsafe");
        let allowed = UNSAFE.iter().any(|place| name.starts_with(place));
        assert!(!found || allowed, "{name} uses unsafe");
    }
}

#[test]
fn the_plugin_names_what_it_may() {
    for file in rust_files(&root().join("plugin/src")) {
        let text = fs::read_to_string(&file).unwrap();
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for (at, _) in line.match_indices("lockstep::") {
                let path = &line[at + "lockstep::".len()..];
                let allowed = PLUGIN.iter().any(|allowed| path.starts_with(allowed));
                assert!(allowed, "{}: the plugin may not use {path}", relative(&file));
            }
        }
    }
}

#[test]
fn every_file_says_what_it_owns() {
    let sources = ["src", "collectives", "launcher", "plugin", "examples", "tests"]
        .map(|folder| rust_files(&root().join(folder)));
    for file in sources.iter().flatten() {
        let text = fs::read_to_string(file).unwrap();
        assert!(text.starts_with("//! "), "{} has no module documentation", relative(file));
    }
}

#[test]
fn the_scanner_sees_every_form_of_import() {
    let text = "
        use crate::client::World;
        use crate::{backend::{Buffer, cpu}, ifrt::Status, spmd};
        use super::sibling;
        // use crate::commented::Out;
        pub(crate) fn f() -> crate::stablehlo::Module { lockstep_collectives::run(\"crate::text::x\") }
    ";
    let found: Vec<String> = modules_used(text).into_iter().collect();
    assert_eq!(found, ["backend", "client", "ifrt", "lockstep_collectives", "spmd", "stablehlo"]);
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn relative(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}

/// All `.rs` files below `folder`, build output excepted.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    assert!(!files.is_empty(), "{folder:?} has no sources");
    files.sort();
    files
}

/// The identifiers and single punctuation marks of the code, comments and texts left out.
fn code_words(text: &str) -> impl Iterator<Item = String> {
    let mut words = Vec::new();
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or_default();
        // Text between quotes is not code; a quote inside a text is rare enough to ignore.
        for (i, part) in code.split('"').enumerate() {
            if i % 2 == 1 {
                continue;
            }
            let mut word = String::new();
            for c in part.chars() {
                if c.is_alphanumeric() || c == '_' {
                    word.push(c);
                    continue;
                }
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                if !c.is_whitespace() {
                    words.push(c.to_string());
                }
            }
            if !word.is_empty() {
                words.push(word);
            }
        }
    }
    words.into_iter()
}

/// The modules of this package, and the packages of this workspace, that the code names.
fn modules_used(text: &str) -> BTreeSet<String> {
    let words: Vec<String> = code_words(text).collect();
    let mut used = BTreeSet::new();
    for (i, word) in words.iter().enumerate() {
        if word.starts_with("lockstep_") {
            used.insert(word.clone());
        }
        if word != "crate" || words.get(i + 1).is_none_or(|next| next != ":") {
            continue;
        }
        match words.get(i + 3).map(String::as_str) {
            Some("{") => used.extend(heads_of_group(&words[i + 3..])),
            Some(name) => _ = used.insert(name.to_owned()),
            None => {}
        }
    }
    used
}

/// The first name of each path in a braced group that starts at `words[0]`.
fn heads_of_group(words: &[String]) -> Vec<String> {
    let mut heads = Vec::new();
    let mut depth = 0;
    let mut at_head = false;
    for word in words {
        match word.as_str() {
            "{" => {
                depth += 1;
                at_head = depth == 1;
            }
            "}" => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            "," => at_head = depth == 1,
            name if at_head => {
                heads.push(name.to_owned());
                at_head = false;
            }
            _ => {}
        }
    }
    heads
}
