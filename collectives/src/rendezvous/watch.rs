//! Watching a process of this host: one that is killed closes no connection, and without its
//! parent's report its silence would take a heartbeat timeout to tell.

use std::fs;
use std::future::pending;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::{HostId, JobId, Rank, environment};

/// How long what a process said last may take to arrive.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Returns when the process of `rank` has ended and what it said has arrived; never if the process
/// cannot be seen from here.
pub(super) async fn end_of(job: JobId, rank: Rank, host: HostId, process_id: u32) {
    let Some(process) = open(&job, rank, &host, process_id) else { return pending().await };
    if process.readable().await.is_err() {
        return pending().await;
    }
    tokio::time::sleep(LAST_WORDS).await;
}

/// The process of `rank`, by the number that it gives itself.
///
/// In another namespace the number is another process's: only one that carries this job and rank
/// in its environment is the right one.
fn open(job: &JobId, rank: Rank, host: &HostId, process_id: u32) -> Option<AsyncFd<OwnedFd>> {
    if *host != HostId::of_this_host() {
        return None;
    }
    let process = Pid::from_raw(i32::try_from(process_id).ok()?)?;
    let process = pidfd_open(process, PidfdFlags::NONBLOCK).ok()?;
    let variables = fs::read(format!("/proc/{process_id}/environ")).ok()?;
    let has = |name: &str, value: &str| {
        let variable = format!("{name}={value}");
        variables.split(|byte| *byte == 0).any(|found| found == variable.as_bytes())
    };
    let is_it = has(environment::JOB, job.as_str()) && has(environment::RANK, &rank.0.to_string());
    if !is_it {
        return None;
    }
    #[expect(deprecated, reason = "what it relies on holds: an owned descriptor stays open")]
    AsyncFd::with_interest(process, Interest::READABLE).ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::time::Instant;

    use super::*;

    const AMPLE: Duration = Duration::from_secs(60);

    /// A process that says it is rank 3 of a job, and ends when it is told.
    fn rank_3() -> Child {
        let mut command = Command::new("cat");
        command.env(environment::JOB, "watched").env(environment::RANK, "3");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // Its environment is there when it is `cat` that answers.
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"!").unwrap();
        let mut answer = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut answer).unwrap();
        child
    }

    fn end_of_rank(rank: u32, host: HostId, child: &Child) -> impl Future<Output = ()> + use<> {
        end_of(JobId::new("watched").unwrap(), Rank(rank), host, child.id())
    }

    #[test]
    fn the_end_of_a_process_is_known_at_once() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut child = rank_3();
        runtime.block_on(async {
            let mut end = Box::pin(end_of_rank(3, HostId::of_this_host(), &child));
            let alive = tokio::time::timeout(Duration::from_millis(50), &mut end).await;
            assert!(alive.is_err(), "it is said to have ended");
            let start = Instant::now();
            child.kill().unwrap();
            tokio::time::timeout(AMPLE, end).await.unwrap();
            assert!(start.elapsed() >= LAST_WORDS, "{:?}", start.elapsed());
        });
        child.wait().unwrap();
    }

    #[test]
    fn only_the_process_of_the_rank_is_watched() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut child = rank_3();
        child.kill().unwrap();
        child.wait().unwrap();
        let mut other = rank_3();
        let elsewhere = HostId { network: 0, ..HostId::of_this_host() };
        runtime.block_on(async {
            let never = [
                // It has ended before it could be watched: the number may be anybody's next.
                end_of_rank(3, HostId::of_this_host(), &child),
                end_of_rank(2, HostId::of_this_host(), &other),
                end_of_rank(3, elsewhere, &other),
            ];
            other.kill().unwrap();
            for end in never {
                assert!(tokio::time::timeout(2 * LAST_WORDS, end).await.is_err());
            }
        });
        other.wait().unwrap();
    }
}
