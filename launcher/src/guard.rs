//! The process that outlives the launcher, to end its job.
//!
//! The launcher starts itself a second time as the guard and holds the only write end of the pipe
//! that the guard reads from. However the launcher ends, `kill -9` included, the guard then reads
//! the end of the file; it kills what is left of the job and removes the job's directory.
//!
//! The guard is in a process group of its own, so that no terminal signals it, and its name, its
//! arguments and its environment say nothing of the job or of `lockstep`: neither a sweep of the
//! job (or of a job around it) nor `pkill lockstep` takes it along.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;
use std::{env, fs};

use crossbeam_channel::Sender;
use lockstep_collectives::JobId;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::run::Message;
use crate::sweep;

const NAME: &str = "job-guard";
const JOB: &str = "GUARDED_JOB";
const DIRECTORY: &str = "GUARDED_DIRECTORY";
/// A process in the middle of starting is seen within this time.
const QUIET: Duration = Duration::from_millis(300);
const LIMIT: Duration = Duration::from_secs(60);

/// A running guard. Dropping it lets it do its work and waits for that.
#[derive(Debug)]
pub(crate) struct Guard {
    pidfd: OwnedFd,
    /// The write end, which is closed at the latest when the launcher is gone.
    lifeline: Option<io::PipeWriter>,
    waiter: Option<JoinHandle<()>>,
}

impl Guard {
    /// Starts a guard for `job`, whose files are in `directory`.
    ///
    /// Sends [`Message::GuardLost`] when the guard ends.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(
        job: &JobId,
        directory: &Path,
        messages: Sender<Message>,
    ) -> io::Result<Self> {
        let (read, lifeline) = io::pipe()?;
        let mut child = Command::new("/proc/self/exe")
            .arg0(NAME)
            .arg("__guard")
            .env_clear()
            .env(JOB, job.as_str())
            .env(DIRECTORY, directory)
            .current_dir("/")
            .process_group(0)
            .stdin(read)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let pidfd = match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(error) => {
                child.kill()?;
                child.wait()?;
                return Err(error.into());
            }
        };
        let waiter = std::thread::Builder::new().name("guard".into()).spawn(move || {
            let _ = child.wait();
            let _ = messages.send(Message::GuardLost);
        })?;
        Ok(Self { pidfd, lifeline: Some(lifeline), waiter: Some(waiter) })
    }

    /// Ends the guard without its work, which the launcher has done itself.
    pub(crate) fn dismiss(self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.lifeline.take();
        if let Some(waiter) = self.waiter.take() {
            let _ = waiter.join();
        }
    }
}

/// The life of a guard.
///
/// # Errors
/// When it was not started by a launcher.
pub(crate) fn serve() -> anyhow::Result<()> {
    let (Some(job), Some(directory)) = (env::var_os(JOB), env::var_os(DIRECTORY)) else {
        anyhow::bail!("a guard is started by the launcher only");
    };
    let job = JobId::new(job.to_string_lossy())?;
    // Whoever ends the launcher politely may address the guard too; it has work to do then.
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    // What a shell shows for this process; the default would be the `exe` of `/proc/self/exe`.
    let _ = fs::write("/proc/self/comm", NAME);
    // Nothing is ever written: this returns at the end of the launcher.
    io::stdin().read_to_end(&mut Vec::new())?;
    sweep::kill_all(&job, QUIET, LIMIT)?;
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
