//! JAX on the built plugin, if `scripts/setup jax` has installed it.

#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::ffi::OsStr;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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
    said(command.output().unwrap())
}

fn said(output: Output) -> (Option<i32>, String) {
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code(), said.concat())
}

/// Runs processes.py in a job of so many processes with so many devices each.
fn run_processes(
    processes: &str,
    devices: &str,
    arguments: &[&str],
) -> Option<(Option<i32>, String)> {
    let launcher = built("lockstep");
    let words = [launcher.as_os_str()].into_iter();
    let words = words.chain(["run", "-n", processes, "-d", devices].map(OsStr::new));
    let words: Vec<&OsStr> = words.collect();
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

/// Runs so many steps on four devices.
fn endure(steps: &str) {
    let Some(mut command) = python(&[]) else { return };
    command.arg(root().join("plugin/tests/endurance.py")).arg(steps);
    let (code, said) = outcome(command.env("LOCKSTEP_DEVICES", "4"));
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn steps_leave_no_memory_behind() {
    endure("300");
}

#[test]
#[ignore = "takes a minute: cargo test -p lockstep-pjrt -- --ignored"]
fn ten_thousand_steps_leave_no_memory_behind() {
    endure("10000");
}

#[test]
fn processes_of_a_job_compute_together() {
    for (processes, devices, count) in [("2", "2", 2), ("4", "1", 4)] {
        let Some((code, said)) = run_processes(processes, devices, &[]) else { return };
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(said.matches("all equal").count(), count, "{said}");
    }
}

/// Runs processes.py in two processes with two devices each, which nobody launches as a job: the exit
/// code and the words of each. The last one's standard input ends when the first has ended.
fn run_by_hand(arguments: &[&str]) -> Option<[(Option<i32>, String); 2]> {
    let coordinator = format!("127.0.0.1:{}", free_port());
    let start = |process: &str| {
        let mut command = python(&[])?;
        command.arg(root().join("plugin/tests/processes.py")).args(arguments);
        command.args([&coordinator, "2", process]);
        command.env("LOCKSTEP_DEVICES", "2").env("LOCKSTEP_INIT_TIMEOUT", "60s");
        if arguments.contains(&"absent") {
            command.env("LOCKSTEP_INIT_TIMEOUT", "1s");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Some(command.spawn().unwrap())
    };
    let (first, last) = (start("0")?, start("1")?);
    Some([first, last].map(|process| said(process.wait_with_output().unwrap())))
}

/// A port that is free now: JAX's coordinator wants to be told one.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn processes_that_nobody_launched_meet_in_jax_s_key_value_store() {
    let Some(outcomes) = run_by_hand(&[]) else { return };
    for (code, said) in outcomes {
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("all equal"), "{said}");
    }
}

#[test]
fn a_process_that_does_not_come_is_named_in_an_exception() {
    let Some([(code, said), _]) = run_by_hand(&["absent"]) else { return };
    assert_eq!(code, Some(0), "{said}");
    let told = said.lines().find(|line| line.contains("told: "));
    assert!(told.is_some_and(|line| line.contains("rank 1 has not joined")), "{said}");
}

/// Runs an example of `examples/jax`, as what pip installs is found: with its .pth file.
fn run_example(words: &[&OsStr], example: &str, arguments: &[&str], platform: &str) -> String {
    const RUN: &str = "import runpy, site, sys\n\
         site.addsitedir(sys.argv[1])\n\
         sys.argv = sys.argv[2:]\n\
         runpy.run_path(sys.argv[0], run_name='__main__')";
    let mut command = python(words).unwrap();
    command.args(["-c", RUN]).arg(root().join("plugin/python"));
    command.arg(root().join("examples/jax").join(example)).args(arguments);
    command.env("JAX_PLATFORMS", platform);
    let (code, said) = outcome(&mut command);
    assert_eq!(code, Some(0), "{example}: {said}");
    said
}

/// What stands behind each `loss`.
fn losses(said: &str) -> Vec<f64> {
    let mut words = said.split_whitespace();
    let mut found = Vec::new();
    while words.any(|word| word == "loss") {
        found.extend(words.next().and_then(|word| word.parse::<f64>().ok()));
    }
    found
}

#[test]
fn examples_say_in_a_job_of_four_what_they_say_on_jax_s_own_devices() {
    if python(&[]).is_none() {
        return;
    }
    let launcher = built("lockstep");
    let job = [launcher.as_os_str(), "run".as_ref(), "-n".as_ref(), "4".as_ref()];
    for (example, arguments) in [
        ("train_mlp.py", &["--epochs", "1"][..]),
        ("train_transformer.py", &["--steps", "1"]),
        ("psum_benchmark.py", &["--calls", "1", "--sizes", "8", "40000"]),
    ] {
        let theirs = run_example(&[], example, arguments, "cpu");
        let ours = run_example(&job, example, arguments, "lockstep");
        assert!(theirs.contains("1 devices of 1 processes, cpu"), "{theirs}");
        assert!(ours.contains("4 devices of 4 processes, lockstep"), "{ours}");
        match (&losses(&theirs)[..], &losses(&ours)[..]) {
            ([their], [our]) => {
                assert!((their - our).abs() <= 1e-4 * their, "{example}: {their}, {our} here");
            }
            ([], []) => assert!(ours.contains("all sums are right"), "{ours}"),
            _ => panic!("{example}: {ours}"),
        }
    }
}

#[test]
fn a_lost_process_is_an_exception_of_the_others_that_names_it() {
    let Some((code, said)) = run_processes("2", "2", &["lose"]) else { return };
    assert_eq!(code, Some(7), "{said}");
    let told = said.lines().find(|line| line.contains("told: "));
    assert!(told.is_some_and(|line| line.contains("rank 1 exited with code 7")), "{said}");
}
