//! JAX on the built plugin, if `scripts/setup jax` has installed it.

#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs Python on the built plugin, behind these words; none where there is no JAX.
fn python(words: &[&OsStr]) -> Option<Command> {
    let root = root();
    let environment = root.join("target/python-env");
    if !environment.join("complete").exists() {
        eprintln!("skipped: JAX is not there; `scripts/setup jax` installs it");
        return None;
    }
    let library = built("liblockstep_pjrt.so");
    let python = environment.join("bin/python");
    let mut words = words.iter().copied().chain([python.as_os_str()]);
    let mut command = Command::new(words.next().unwrap());
    command
        .args(words)
        .env("PYTHONPATH", root.join("plugin/python"))
        .env("LOCKSTEP_PJRT_LIBRARY", library)
        .env("JAX_PLATFORMS", "lockstep");
    Some(command)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// What stands beside the folder that this test is in.
fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join(name);
    assert!(path.exists(), "{} is not built: cargo build --workspace", path.display());
    path
}

/// The exit code of a command, and all that it says.
fn outcome(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code(), said.concat())
}

/// Runs processes.py in a job of two processes with two devices each.
fn run_processes(arguments: &[&str]) -> Option<(Option<i32>, String)> {
    let launcher = built("lockstep");
    let words = [launcher.as_os_str()].into_iter();
    let words: Vec<&OsStr> = words.chain(["run", "-n", "2", "-d", "2"].map(OsStr::new)).collect();
    let mut command = python(&words)?;
    Some(outcome(command.arg(root().join("plugin/tests/processes.py")).args(arguments)))
}

#[test]
fn jax_computes_here_what_it_computes_on_its_own_devices() {
    let Some(mut command) = python(&[]) else { return };
    command.arg(root().join("plugin/tests/scenarios.py")).env("LOCKSTEP_DEVICES", "4");
    let (code, said) = outcome(&mut command);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn processes_of_a_job_compute_together() {
    let Some((code, said)) = run_processes(&[]) else { return };
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.matches("all equal").count(), 2, "{said}");
}

#[test]
fn a_lost_process_is_an_exception_of_the_others_that_names_it() {
    let Some((code, said)) = run_processes(&["lose"]) else { return };
    assert_eq!(code, Some(7), "{said}");
    let told = said.lines().find(|line| line.contains("told: "));
    assert!(told.is_some_and(|line| line.contains("rank 1 exited with code 7")), "{said}");
}
