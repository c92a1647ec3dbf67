//! Starting the command and waiting for conditions, each with a deadline.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Nothing here takes this long, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// The command, with the given arguments and none of an outer job's variables.
pub(crate) fn lockstep<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"LOCKSTEP_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs `lockstep run` with the given arguments to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    let mut all = vec!["run"];
    all.extend(arguments);
    finish(lockstep(all).spawn().unwrap())
}

/// Waits for the end of `child` and for its output.
pub(crate) fn finish(child: Child) -> Output {
    let pid = child.id();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    receiver.recv_timeout(DEADLINE).map_or_else(
        |_| {
            signal(pid, Signal::KILL);
            panic!("the launcher does not end");
        },
        Result::unwrap,
    )
}

/// The exit code, which must be one.
pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("{output:?}"))
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Polls until `condition` gives a value; `what` is what is waited for.
pub(crate) fn eventually<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    within(DEADLINE, what, condition)
}

/// As [`eventually`], and it must not take longer than `limit`.
pub(crate) fn within<T>(
    limit: Duration,
    what: &str,
    mut condition: impl FnMut() -> Option<T>,
) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Whether this process, and so what it starts, ignores `signal`.
pub(crate) fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
}

/// Whether the process does anything any more: a zombie does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// A directory for files through which processes tell how far they are.
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of a file as text for a script.
    pub(crate) fn file(&self, name: &str) -> String {
        self.path().join(name).to_str().unwrap().to_owned()
    }

    /// Waits until a script has written the file, ended by a newline; returns its words.
    pub(crate) fn words(&self, name: &str) -> Vec<String> {
        let path: PathBuf = self.path().join(name);
        let text = eventually(&format!("a whole line in {name}"), || {
            fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'))
        });
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// As [`Scratch::words`], when the words are pids.
    pub(crate) fn pids(&self, name: &str) -> Vec<u32> {
        self.words(name).iter().map(|word| word.parse().unwrap()).collect()
    }
}
