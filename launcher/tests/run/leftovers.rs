//! Whatever happens to the launcher, nothing of the job is left.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{
    Scratch, code, eventually, finish, is_alive, lockstep, run, signal, stdout, within,
};

/// Two ranks, each with a child, a child in another session and one with an emptied environment.
const FAMILY: &str = r#"sleep 1000 & echo $! > $dir/child$rank
    setsid sleep 1000 & echo $! > $dir/session$rank
    env -i sleep 1000 & echo $! > $dir/bare$rank
    echo $LOCKSTEP_KEY_FILE > $dir/key$rank
    echo $$ > $dir/rank$rank
    wait"#;

fn start_family(scratch: &Scratch) -> (Child, Vec<u32>) {
    let script = format!("dir={}; rank=$LOCKSTEP_RANK; {FAMILY}", scratch.path().display());
    let launcher = lockstep(["run", "-n", "2", "sh", "-c", &script]).spawn().unwrap();
    let members = ["rank", "child", "session", "bare"];
    let names = members.iter().flat_map(|name| [format!("{name}0"), format!("{name}1")]);
    let pids = names.flat_map(|name| scratch.pids(&name)).collect();
    (launcher, pids)
}

/// Whether the job's directory is gone, given the path of its key.
fn directory_is_gone(scratch: &Scratch) -> bool {
    !Path::new(&scratch.words("key0")[0]).parent().unwrap().exists()
}

/// The guard of `launcher`.
fn guard_of(launcher: u32) -> Option<u32> {
    let children = format!("/proc/{launcher}/task/{launcher}/children");
    let children = fs::read_to_string(children).unwrap_or_default();
    // The thread that starts the guard anew is the main one, as at first.
    children.split_whitespace().map(|pid| pid.parse().unwrap()).find(|pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "job-guard\n")
    })
}

#[test]
fn nothing_outlives_a_killed_launcher() {
    let scratch = Scratch::new();
    let (mut launcher, pids) = start_family(&scratch);
    let guard = eventually("a guard", || guard_of(launcher.id()));
    assert!(pids.iter().all(|&pid| is_alive(pid)));
    signal(launcher.id(), Signal::KILL);
    launcher.wait().unwrap();
    within(Duration::from_secs(5), "the end of all processes", || {
        (!pids.iter().any(|&pid| is_alive(pid)) && !is_alive(guard)).then_some(())
    });
    assert!(directory_is_gone(&scratch));
}

#[test]
fn nothing_outlives_an_interrupted_job() {
    let scratch = Scratch::new();
    let (launcher, pids) = start_family(&scratch);
    signal(launcher.id(), Signal::TERM);
    assert_eq!(code(&finish(launcher)), 143);
    assert!(!pids.iter().any(|&pid| is_alive(pid)));
    assert!(directory_is_gone(&scratch));
}

#[test]
fn nothing_outlives_a_job_that_ends_well() {
    let script = "exec >/dev/null 2>&1; setsid sleep 1000 & sleep 1000 & echo $! > \"$0\"";
    let scratch = Scratch::new();
    let output = run(&["-n", "1", "sh", "-c", script, &scratch.file("child")]);
    assert_eq!(code(&output), 0);
    assert!(!scratch.pids("child").into_iter().any(is_alive));
}

#[test]
fn a_lost_guard_is_replaced() {
    let scratch = Scratch::new();
    let (mut launcher, pids) = start_family(&scratch);
    let first = eventually("a guard", || guard_of(launcher.id()));
    signal(first, Signal::KILL);
    let second =
        eventually("a second guard", || guard_of(launcher.id()).filter(|&pid| pid != first));
    signal(launcher.id(), Signal::KILL);
    launcher.wait().unwrap();
    within(Duration::from_secs(5), "the end of all processes", || {
        (!pids.iter().any(|&pid| is_alive(pid)) && !is_alive(second)).then_some(())
    });
    assert!(directory_is_gone(&scratch));
}

#[test]
fn a_job_whose_guard_cannot_live_is_ended() {
    let scratch = Scratch::new();
    let (mut launcher, pids) = start_family(&scratch);
    let mut guard = None;
    while launcher.try_wait().unwrap().is_none() {
        let next = eventually("a guard, or the end", || {
            let next = guard_of(launcher.id()).filter(|&pid| Some(pid) != guard);
            if launcher.try_wait().unwrap().is_some() { Some(None) } else { next.map(Some) }
        });
        if let Some(pid) = next {
            signal(pid, Signal::KILL);
            guard = next;
        }
    }
    let output = finish(launcher);
    assert_eq!(code(&output), 125);
    assert!(!pids.iter().any(|&pid| is_alive(pid)));
}

#[test]
fn the_output_of_a_grandchild_is_waited_for_but_not_for_ever() {
    let output = run(&["-n", "1", "sh", "-c", "(sleep 0.2; echo late) & echo early"]);
    assert_eq!(stdout(&output), "early\nlate\n");
    let output = run(&["-n", "1", "sh", "-c", "(sleep 1000; echo late) & echo early"]);
    assert_eq!((code(&output), stdout(&output)), (0, "early\n".into()));
}
