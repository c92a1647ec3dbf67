//! What the launcher does with the signals it receives.

use std::process::Child;

use rustix::process::Signal;

use crate::support::{
    Scratch, code, eventually, finish, is_alive, is_ignored, lockstep, signal, stderr,
};

/// Two ranks that run `body` (which has `$dir` and its rank) after telling their pids.
fn start(scratch: &Scratch, options: &[&str], body: &str) -> (Child, Vec<u32>) {
    let dir = scratch.path().display();
    // The pid comes last: whoever has read it knows that the traps are set.
    let script = format!("dir={dir}; rank=$LOCKSTEP_RANK; {body}");
    let mut command = lockstep(["run", "-n", "2"]);
    let child = command.args(options).args(["sh", "-c", &script]).spawn().unwrap();
    let pids = ["pid0", "pid1"].into_iter().flat_map(|name| scratch.pids(name)).collect();
    (child, pids)
}

const READY_AND_WAIT: &str = "echo $$ > $dir/pid$rank; while :; do sleep 0.02; done";

#[test]
fn one_signal_ends_the_job_politely() {
    for (sent, expected) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        if is_ignored(sent) {
            // As in a background job of a script: the launcher inherits it and is right to keep it.
            continue;
        }
        let scratch = Scratch::new();
        let body = format!("trap 'echo asked > $dir/asked$rank; exit 7' TERM; {READY_AND_WAIT}");
        let (launcher, pids) = start(&scratch, &[], &body);
        signal(launcher.id(), sent);
        let output = finish(launcher);
        assert_eq!(code(&output), expected);
        assert_eq!(scratch.words("asked0"), ["asked"]);
        assert_eq!(scratch.words("asked1"), ["asked"]);
        assert!(!pids.into_iter().any(is_alive));
        let last = stderr(&output).lines().last().unwrap().to_owned();
        assert!(last.starts_with("lockstep: ended by SIG"), "{last}");
    }
}

#[test]
fn who_does_not_listen_is_killed_after_the_grace() {
    let scratch = Scratch::new();
    let body = format!("trap '' TERM; {READY_AND_WAIT}");
    let (launcher, pids) = start(&scratch, &["--kill-grace", "200ms"], &body);
    signal(launcher.id(), Signal::TERM);
    assert_eq!(code(&finish(launcher)), 143);
    assert!(!pids.into_iter().any(is_alive));
}

#[test]
fn a_second_signal_kills_at_once() {
    let scratch = Scratch::new();
    let body = format!("trap 'echo asked > $dir/asked$rank' TERM; {READY_AND_WAIT}");
    let (launcher, pids) = start(&scratch, &["--kill-grace", "1h"], &body);
    signal(launcher.id(), Signal::TERM);
    assert_eq!(scratch.words("asked0"), ["asked"]);
    signal(launcher.id(), Signal::TERM);
    let output = finish(launcher);
    assert_eq!(code(&output), 143);
    assert!(!pids.into_iter().any(is_alive));
    let text = stderr(&output);
    assert_eq!(text.matches("was told to end and was killed by signal 9").count(), 2, "{text}");
}

#[test]
fn output_that_nobody_reads_does_not_keep_an_ended_job() {
    let scratch = Scratch::new();
    let (mut launcher, pids) = start(&scratch, &[], "echo $$ > $dir/pid$rank; exec yes");
    let unread = launcher.stdout.take();
    for &pid in &pids {
        eventually("a blocked rank", || is_blocked_yes(pid).then_some(()));
    }
    signal(launcher.id(), Signal::TERM);
    assert_eq!(code(&finish(launcher)), 143);
    drop(unread);
}

/// `yes` sleeps for no other reason than that its pipe is full.
fn is_blocked_yes(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains("(yes) S"))
}

#[test]
fn a_stopped_job_can_be_ended() {
    let scratch = Scratch::new();
    let body = format!("trap 'echo asked > $dir/asked$rank; exit 0' TERM; {READY_AND_WAIT}");
    let (launcher, pids) = start(&scratch, &["--kill-grace", "1h"], &body);
    for pid in pids {
        signal(pid, Signal::STOP);
    }
    signal(launcher.id(), Signal::TERM);
    assert_eq!(code(&finish(launcher)), 143);
    assert_eq!(scratch.words("asked1"), ["asked"]);
}

#[test]
fn other_signals_are_passed_on() {
    let scratch = Scratch::new();
    let body = format!(
        "trap 'echo 1 > $dir/usr1-$rank' USR1; trap 'echo 2 > $dir/usr2-$rank' USR2
         trap 'echo 3 > $dir/cont-$rank; exit 0' CONT; {READY_AND_WAIT}"
    );
    let (launcher, _) = start(&scratch, &[], &body);
    for (sent, name) in [(Signal::USR1, "usr1"), (Signal::USR2, "usr2"), (Signal::CONT, "cont")] {
        signal(launcher.id(), sent);
        for rank in 0..2 {
            assert_eq!(scratch.words(&format!("{name}-{rank}")).len(), 1);
        }
    }
    assert_eq!(code(&finish(launcher)), 0);
}

#[test]
fn what_nohup_ignores_stays_ignored() {
    let scratch = Scratch::new();
    let file = scratch.file("ready");
    let script = format!("echo $PPID > {file}; until [ -e {file}.go ]; do sleep 0.02; done");
    let mut command = std::process::Command::new("sh");
    let lockstep = env!("CARGO_BIN_EXE_lockstep");
    command.args(["-c", r#"trap '' HUP; exec "$0" run -n 1 sh -c "$1""#, lockstep, &script]);
    let launcher = command.spawn().unwrap();
    assert_eq!(scratch.pids("ready"), [launcher.id()]);
    signal(launcher.id(), Signal::HUP);
    signal(launcher.id(), Signal::USR1);
    std::fs::write(scratch.file("ready.go"), "").unwrap();
    // USR1 kills the rank (it has no handler); the launcher is still there to say so.
    assert!([0, 138].contains(&code(&finish(launcher))));
}
