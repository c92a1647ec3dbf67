//! Arguments and environment reach the processes byte for byte.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{Scratch, code, finish, lockstep, run, stderr, stdout};

/// Prints its arguments, each followed by a zero byte.
const PRINT_ARGUMENTS: [&str; 4] = ["sh", "-c", r#"[ $# = 0 ] || printf '%s\0' "$@""#, "sh"];

fn received(arguments: &[OsString]) -> Vec<OsString> {
    let mut all: Vec<_> = ["run", "-n", "1", "--"].map(OsString::from).into();
    all.extend(PRINT_ARGUMENTS.map(OsString::from));
    all.extend_from_slice(arguments);
    let output = finish(lockstep(all).spawn().unwrap());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let parts = output.stdout.split_inclusive(|&byte| byte == 0);
    parts.map(|part| OsString::from_vec(part[..part.len() - 1].to_vec())).collect()
}

#[test]
fn awkward_arguments() {
    let arguments: Vec<OsString> = [
        &b"a   b"[..],
        b"",
        b"$X;y",
        b"\t\n",
        b"'\"`$(id)`\"'",
        b"*",
        b"\\",
        b"-n",
        b"--",
        b"--tag",
        b"\xff\xfe\x80",
        b"",
    ]
    .map(|bytes| OsStr::from_bytes(bytes).to_owned())
    .into();
    assert_eq!(received(&arguments), arguments);
    assert_eq!(received(&[]), [] as [OsString; 0]);
}

#[test]
fn arbitrary_arguments() {
    let mut runner =
        TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(16) });
    let argument = proptest::collection::vec(1..=255_u8, 0..20).prop_map(OsString::from_vec);
    runner
        .run(&proptest::collection::vec(argument, 0..8), |arguments| {
            prop_assert_eq!(received(&arguments), arguments);
            Ok(())
        })
        .unwrap();
}

#[test]
fn spaces_survive_a_shell() {
    let output = run(&["-n", "1", "bash", "-c", r#""$@""#, "", "echo", "1   2   3"]);
    assert_eq!(stdout(&output), "1   2   3\n");
}

#[test]
fn the_environment_is_inherited_and_extended() {
    let script = r#"printf '%s|%s|%s' "$KEPT" "$SET" "$BOTH""#;
    let mut command = lockstep([] as [&str; 0]);
    command
        .args(["run", "-n", "1", "-x", "SET=a=b c", "-x", "BOTH=new", "-x", "KEPT", "-x", "KE*"])
        .args(["sh", "-c", script])
        .env("KEPT", OsStr::from_bytes(b"\xff;$x \n"))
        .env("BOTH", "old");
    let output = finish(command.spawn().unwrap());
    assert_eq!(output.stdout, b"\xff;$x \n|a=b c|new");
}

#[test]
fn exporting_what_is_not_set_is_an_error() {
    let output = run(&["-n", "1", "-x", "SURELY_NOT_SET", "true"]);
    assert_eq!(code(&output), 125);
    assert_eq!(stderr(&output), "lockstep: -x SURELY_NOT_SET: the variable is not set\n");
}

#[test]
fn each_process_finds_its_place() {
    let output =
        run(&["-n", "3", "-d", "2", "--no-tag", "sh", "-c", "echo $(env | grep ^LOCKSTEP_)"]);
    let mut places = BTreeMap::new();
    for line in stdout(&output).lines() {
        let place: BTreeMap<_, _> =
            line.split(' ').map(|word| word.split_once('=').unwrap()).map(own).collect();
        places.insert(place["LOCKSTEP_RANK"].clone(), place);
    }
    assert_eq!(places.keys().collect::<Vec<_>>(), ["0", "1", "2"]);
    for (rank, place) in &places {
        assert_eq!(place["LOCKSTEP_LOCAL_RANK"], *rank);
        assert_eq!(place["LOCKSTEP_WORLD_SIZE"], "3");
        assert_eq!(place["LOCKSTEP_LOCAL_SIZE"], "3");
        assert_eq!(place["LOCKSTEP_DEVICES"], "2");
        assert_eq!(place["LOCKSTEP_ATTEMPT"], "0");
        for shared in ["LOCKSTEP_JOB", "LOCKSTEP_COORDINATOR", "LOCKSTEP_KEY_FILE"] {
            assert_eq!(place[shared], places["0"][shared], "{shared}");
        }
    }
}

/// As many processes as the test may use processors have one each; one more shares one.
#[test]
fn processes_are_kept_to_processors_of_their_own() {
    let count = rustix::thread::sched_getaffinity(None).unwrap().count();
    // One line for each process: the processors that it may use, and how many all of them have.
    let kept = |processes: u32, to: &str| {
        let script = "echo $(sed -n 's/Cpus_allowed_list://p' /proc/self/status) \
                      of ${LOCKSTEP_LOCAL_PROCESSORS:-all}";
        let processes = processes.to_string();
        let words = ["run", "-n", &processes, "--bind-to", to, "--no-tag", "sh", "-c", script];
        // As in a process of a job that starts another.
        let mut command = lockstep(words);
        let output = finish(command.env("LOCKSTEP_LOCAL_PROCESSORS", "77").spawn().unwrap());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let mut lines: Vec<String> = stdout(&output).lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let running = std::thread::available_parallelism().unwrap().get();
    let is_single = |line: &String| {
        let (processor, all) = line.split_once(" of ").unwrap();
        processor.parse::<u32>().is_ok() && all == running.min(count as usize).to_string()
    };
    let mut own = kept(count, "core");
    assert!(own.iter().all(is_single), "{own:?}");
    let mut shared = kept(count + 1, "core");
    assert_eq!(shared.len(), count as usize + 1);
    own.dedup();
    shared.dedup();
    assert_eq!(own.len(), count as usize);
    assert_eq!(shared, own);
    assert!(kept(2, "none").iter().all(|line| line.ends_with(" of all")));
}

fn own((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn the_secret_is_in_a_private_file_and_gone_afterwards() {
    let script = r#"stat -c '%a %s' "$LOCKSTEP_KEY_FILE"; stat -c %a "$(dirname "$LOCKSTEP_KEY_FILE")"
        echo "$LOCKSTEP_KEY_FILE""#;
    let output = run(&["-n", "1", "sh", "-c", script]);
    let output = stdout(&output);
    let [file, directory, path] = output.lines().collect::<Vec<_>>()[..] else {
        panic!("{output}");
    };
    assert_eq!((file, directory), ("600 65", "700"));
    assert!(!std::path::Path::new(path).parent().unwrap().exists());
}

#[test]
fn stdin_is_empty_and_the_launchers_is_not_read() {
    let output = run(&["-n", "2", "cat"]);
    assert_eq!((code(&output), output.stdout.len()), (0, 0));
}

#[test]
fn processes_start_in_the_directory_asked_for() {
    let scratch = Scratch::new();
    let wdir = scratch.path().to_str().unwrap();
    let output = run(&["-n", "1", "--wdir", wdir, "pwd", "-P"]);
    let real = scratch.path().canonicalize().unwrap();
    assert_eq!(stdout(&output), format!("{}\n", real.display()));

    let missing = scratch.file("missing");
    let output = run(&["-n", "1", "--wdir", &missing, "pwd"]);
    assert_eq!(code(&output), 125);
    assert_eq!(stderr(&output), format!("lockstep: no directory {missing}\n"));
}
