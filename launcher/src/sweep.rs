//! Finding and killing whatever of a job is left on this host.
//!
//! Processes are found by the job's id in their environment, which children inherit through `fork`
//! and `exec`, into other sessions too, so nothing has to be recorded while the job runs. Who
//! leads a process group takes the group along: that reaches a child with an emptied environment.

use std::fs::{self, File};
use std::io::{self, Read};
use std::time::{Duration, Instant};

use lockstep_collectives::{JobId, environment};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpgid, getpid, kill_process_group, pidfd_open, pidfd_send_signal,
};

/// How long to wait between two looks at the process table.
const PAUSE: Duration = Duration::from_millis(10);
/// How much of an environment is looked at.
const ENVIRONMENT_BYTES: u64 = 8 * 1024 * 1024;

/// Kills the processes of `job` until none has been seen for `quiet`, for at most `limit`.
///
/// `quiet` must cover the moment in which a process that is just executing its program shows no
/// environment, if the job may still be starting processes.
///
/// # Errors
/// When the process table cannot be read.
pub(crate) fn kill_all(job: &JobId, quiet: Duration, limit: Duration) -> io::Result<()> {
    let start = Instant::now();
    let mut last_seen = start;
    while start.elapsed() < limit {
        if kill_once(job)? > 0 {
            last_seen = Instant::now();
        } else if last_seen.elapsed() >= quiet {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Kills every process of `job` that is seen in one look; returns how many those were.
fn kill_once(job: &JobId) -> io::Result<usize> {
    let entry = format!("{}={job}", environment::JOB);
    let mut seen = 0;
    for process in fs::read_dir("/proc")? {
        let name = process?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw)
        else {
            continue;
        };
        if pid == getpid() {
            continue;
        }
        // Opened before its environment is read, so that the signal goes to whom it belongs.
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        if !has_entry(pid, entry.as_bytes()) {
            continue;
        }
        seen += 1;
        if getpgid(Some(pid)) == Ok(pid) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
    }
    Ok(seen)
}

/// Whether the environment that `pid` was started with has `entry`; processes that are gone, or
/// not ours to read, have not.
fn has_entry(pid: Pid, entry: &[u8]) -> bool {
    let mut environment = Vec::new();
    let path = format!("/proc/{}/environ", pid.as_raw_nonzero());
    let read = File::open(path)
        .and_then(|file| file.take(ENVIRONMENT_BYTES).read_to_end(&mut environment));
    read.is_ok() && environment.split(|&byte| byte == 0).any(|found| found == entry)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn sleeper(job: &str) -> Child {
        let mut command = Command::new("sleep");
        command.arg("60").env(environment::JOB, job).stdin(Stdio::null()).spawn().unwrap()
    }

    #[test]
    fn processes_of_the_job_are_killed_and_no_others() {
        let id = format!("sweep-test-{}", std::process::id());
        let mut ours = [sleeper(&id), sleeper(&id)];
        let mut other = sleeper(&format!("{id}-other"));
        kill_all(&JobId::new(id).unwrap(), Duration::ZERO, Duration::from_secs(10)).unwrap();
        for child in &mut ours {
            assert!(!child.wait().unwrap().success());
        }
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
