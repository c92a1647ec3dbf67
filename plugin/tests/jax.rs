//! JAX on the built plugin, if `scripts/setup jax` has installed it.

#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::path::Path;
use std::process::Command;

/// Runs a script of this folder with JAX on so many devices; skipped where there is no JAX.
fn run(script: &str, devices: u32) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let environment = root.join("target/python-env");
    if !environment.join("complete").exists() {
        eprintln!("skipped: JAX is not there; `scripts/setup jax` installs it");
        return;
    }
    // Beside the folder that this test is in.
    let test = std::env::current_exe().unwrap();
    let library = test.ancestors().nth(2).unwrap().join("liblockstep_pjrt.so");
    assert!(library.exists(), "{} is not built: cargo build -p lockstep-pjrt", library.display());
    let output = Command::new(environment.join("bin/python"))
        .arg(root.join("plugin/tests").join(script))
        .env("PYTHONPATH", root.join("plugin/python"))
        .env("LOCKSTEP_PJRT_LIBRARY", library)
        .env("JAX_PLATFORMS", "lockstep")
        .env("LOCKSTEP_DEVICES", devices.to_string())
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(output.status.success(), "{}", said.concat());
}

#[test]
fn jax_computes_here_what_it_computes_on_its_own_devices() {
    run("scenarios.py", 4);
}
