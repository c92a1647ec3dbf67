//! Starts a job as a user would, and looks at it from outside.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::processes::{environment_of, process_of, processes_of};

/// A limit for what should take a moment; reaching it fails a test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(100);

/// A running `lockstep run`.
pub(crate) struct Job {
    launcher: Child,
    stdout: mpsc::Receiver<String>,
    stderr: mpsc::Receiver<String>,
    lines: Vec<String>,
}

/// What a job leaves behind.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The launcher's exit code.
    pub(crate) code: Option<i32>,
    /// All lines of standard output.
    pub(crate) stdout: Vec<String>,
    /// All lines of standard error.
    pub(crate) stderr: Vec<String>,
}

/// A file that Cargo built beside this test: `lockstep`, or `examples/train_mlp`.
pub(crate) fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let path = profile.join(name);
    assert!(path.exists(), "{path:?} is not built: cargo build --workspace --all-targets");
    path
}

impl Job {
    /// `lockstep run OPTIONS PROGRAM ARGUMENTS`, with further environment variables.
    pub(crate) fn start(
        options: &[&str],
        program: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let mut launcher = Command::new(built("lockstep"))
            .arg("run")
            .args(options)
            .arg("--tag")
            .arg(built(program))
            .args(arguments)
            .envs(environment.iter().copied())
            // Errors are compared between ranks, whose stacks differ.
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = follow(launcher.stdout.take().unwrap());
        let stderr = follow(launcher.stderr.take().unwrap());
        Self { launcher, stdout, stderr, lines: Vec::new() }
    }

    /// Reads standard output up to the first line that `wanted` accepts.
    pub(crate) fn wait_for_line(&mut self, wanted: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.stdout.recv_timeout(left).unwrap_or_else(|_| {
                panic!("the line did not come; stdout {:?}, stderr {:?}", self.lines, self.stderr())
            });
            let found = wanted(&line);
            self.lines.push(line);
            if found {
                return;
            }
        }
    }

    /// What standard error has so far.
    fn stderr(&self) -> Vec<String> {
        self.stderr.try_iter().collect()
    }

    /// The process of a rank.
    pub(crate) fn process_of(&self, rank: u32) -> u32 {
        let job = self.id();
        process_of(&job, rank).unwrap_or_else(|| panic!("rank {rank} of {job} is not there"))
    }

    /// The job id, from the environment of the launcher's children.
    pub(crate) fn id(&self) -> String {
        self.variable("LOCKSTEP_JOB")
    }

    /// A variable of the environment of some rank.
    pub(crate) fn variable(&self, name: &str) -> String {
        let prefix = format!("{name}=");
        for pid in children_of(self.launcher.id()) {
            let value = environment_of(pid)
                .into_iter()
                .find_map(|v| v.strip_prefix(&prefix).map(str::to_owned));
            if let Some(value) = value {
                return value;
            }
        }
        panic!("no rank has the variable {name}")
    }

    /// What a rank's environment says of the job.
    pub(crate) fn variables_of(&self, rank: u32) -> Vec<(String, String)> {
        let variables = environment_of(self.process_of(rank)).into_iter();
        let ours = variables.filter(|variable| variable.starts_with("LOCKSTEP_"));
        ours.filter_map(|v| v.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()))).collect()
    }

    /// The loopback UDP addresses that the ranks and the launcher listen on.
    pub(crate) fn udp_addresses(&self) -> Vec<SocketAddr> {
        let mut pids = children_of(self.launcher.id());
        pids.push(self.launcher.id());
        let table = fs::read_to_string("/proc/net/udp").unwrap();
        let mut addresses = Vec::new();
        for line in table.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let socket = format!("socket:[{}]", fields[9]);
            let port = u16::from_str_radix(fields[1].split(':').nth(1).unwrap(), 16).unwrap();
            if pids.iter().any(|&pid| has_open(pid, &socket)) {
                addresses.push(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
            }
        }
        addresses
    }

    /// Waits for the launcher.
    pub(crate) fn finish(mut self) -> Outcome {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.launcher.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "the job does not end: {:?}", self.stderr());
            // Polling, as there is no wait with a deadline in the standard library.
            thread::sleep(Duration::from_millis(5));
        };
        let mut stdout = std::mem::take(&mut self.lines);
        stdout.extend(self.stdout.iter());
        Outcome { code: status.code(), stdout, stderr: self.stderr.iter().collect() }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // Only a failed test gets here with the launcher alive; the launcher ends its ranks.
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}

impl Outcome {
    /// The lines of one rank on standard error, without their prefix.
    pub(crate) fn stderr_of(&self, rank: u32) -> String {
        let prefix = format!("[{rank}] ");
        let lines = self.stderr.iter().filter_map(|line| line.strip_prefix(&prefix));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The lines of one rank on standard output, without their prefix.
    pub(crate) fn stdout_of(&self, rank: u32) -> Vec<&str> {
        let prefix = format!("[{rank}] ");
        self.stdout.iter().filter_map(|line| line.strip_prefix(&prefix)).collect()
    }

    /// Fails unless every rank ended well.
    pub(crate) fn expect_success(self) -> Self {
        assert_eq!(self.code, Some(0), "stderr:\n{}", self.stderr.join("\n"));
        self
    }
}

/// Waits until no process carries the job in its environment.
pub(crate) fn expect_nothing_left(job: &str, within: Duration) {
    let deadline = Instant::now() + within;
    loop {
        let left: BTreeMap<u32, _> = processes_of(job).into_iter().collect();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "processes left: {left:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn children_of(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    tasks
        .flat_map(|task| fs::read_to_string(task.unwrap().path().join("children")))
        .flat_map(|text| {
            text.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>()
        })
        .collect()
}

fn has_open(pid: u32, target: &str) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .any(|link| link.to_str() == Some(target))
}

/// The lines of a stream, read by a thread of its own so that no pipe ever fills up.
fn follow(stream: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            if sender.send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    receiver
}
