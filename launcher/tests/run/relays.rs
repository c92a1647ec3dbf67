//! Jobs of more ranks than the launcher may open files for.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{
    Scratch, code, eventually, finish, is_alive, lockstep, signal, stderr, stdout, within,
};

/// Ranks whose pipes do not fit below [`FILES`], where all else does.
const RANKS: u32 = 60;
const FILES: u32 = 128;

/// `lockstep run` with `options` where no more than `files` may be open at once.
fn limited(files: u32, options: &[&str]) -> Command {
    let command = lockstep(["run"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -n {files} && exec \"$@\""), "sh"]);
    shell.arg(command.get_program()).args(command.get_args()).args(options);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.stdin(std::process::Stdio::null());
    shell.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    shell
}

/// The relay processes of a launcher.
fn relays_of(launcher: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace().map(|pid| pid.parse::<u32>().unwrap());
    let name = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    children.filter(|pid| name(pid).trim() == "job-relay").collect()
}

#[test]
fn every_line_of_every_rank_comes_whole_and_in_order() {
    let script = "i=0; while [ $i -lt 100 ]; do \
                  echo out $LOCKSTEP_RANK $i; echo err $LOCKSTEP_RANK $i >&2; i=$((i+1)); done; \
                  printf last";
    let ranks = RANKS.to_string();
    let output =
        finish(limited(FILES, &["-n", &ranks, "--tag", "sh", "-c", script]).spawn().unwrap());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    for (text, word) in [(stdout(&output), "out"), (stderr(&output), "err")] {
        for rank in 0..RANKS {
            let prefix = format!("[{rank}] ");
            let mut expected: Vec<_> = (0..100).map(|i| format!("{word} {rank} {i}")).collect();
            if word == "out" {
                expected.push("last".to_owned());
            }
            let lines: Vec<_> =
                text.lines().filter_map(|line| line.strip_prefix(&*prefix)).collect();
            assert_eq!(lines, expected, "rank {rank}");
        }
        assert!(text.lines().all(|line| line.starts_with('[')));
    }
}

#[test]
fn the_soft_limit_is_raised_to_the_hard_one() {
    let shell = "ulimit -Sn 256 && ulimit -Hn 1024 && exec \"$@\"";
    let lockstep = env!("CARGO_BIN_EXE_lockstep");
    let mut command = Command::new("sh");
    command.args(["-c", shell, "sh", lockstep, "run", "-n", "300", "true"]);
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
}

#[test]
fn who_writes_where_nobody_reads_is_told_so() {
    let scratch = Scratch::new();
    let file = scratch.file("ends");
    // What a rank that ignores the signal sees is an error of `echo`.
    let script = format!(
        "trap '' PIPE; while echo line 2> /dev/null; do :; done; echo $LOCKSTEP_RANK >> {file}"
    );
    let ranks = RANKS.to_string();
    let mut child = limited(FILES, &["-n", &ranks, "sh", "-c", &script]).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(code(&finish(child)), 0);
    assert_eq!(fs::read_to_string(file).unwrap().lines().count(), usize::try_from(RANKS).unwrap());
}

#[test]
fn a_lost_relay_ends_the_job_by_name() {
    let ranks = RANKS.to_string();
    // The second dies of what the relay no longer takes, before the launcher sees the loss.
    for script in ["echo runs; exec sleep 1000", "echo runs; exec yes runs"] {
        let mut child = limited(FILES, &["-n", &ranks, "sh", "-c", script]).spawn().unwrap();
        // Output is shown once all pipes have been handed over.
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "runs\n");
        let relays = relays_of(child.id());
        assert_eq!(relays.len(), 2);
        signal(relays[1], Signal::KILL);
        // Before that, a rank that dies writing dies of nobody's reading here.
        eventually("the end of the relay", || (!is_alive(relays[1])).then_some(()));
        drop(stdout);
        let output = finish(child);
        assert_eq!(code(&output), 125, "{script}: {}", stderr(&output));
        let expected = "a relay process, which carries the output of ranks, was killed by signal 9 \
                        (SIGKILL)";
        assert!(stderr(&output).contains(expected), "{script}: {}", stderr(&output));
        assert!(!is_alive(relays[0]));
    }
}

#[test]
fn no_relay_outlives_the_launcher() {
    let ranks = RANKS.to_string();
    let mut child = limited(FILES, &["-n", &ranks, "sleep", "1000"]).spawn().unwrap();
    let launcher = child.id();
    let relays = eventually("relays", || Some(relays_of(launcher)).filter(|r| r.len() == 2));
    child.kill().unwrap();
    child.wait().unwrap();
    within(Duration::from_secs(5), "the end of the relays", || {
        (!relays.iter().any(|&relay| is_alive(relay))).then_some(())
    });
}
