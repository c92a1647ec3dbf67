//! The processes of the ranks on this host: starting them, signalling them, learning their ends.
//!
//! A process that has ended is reaped only when the job is over. Until then its pid, and with it
//! the id of its process group, belongs to nobody else: a signal never goes to a stranger.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crossbeam_channel::Sender;
use lockstep_collectives::{ProcessExit, Rank, environment};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getrlimit,
    kill_process_group, pidfd_open, setrlimit, waitid,
};
use signal_hook::consts::SIGPIPE;

use crate::binding::Shares;
use crate::exit;
use crate::output::{Kind, Origin, Stream};
use crate::relay::{RelaySocket, Relays};
use crate::run::Message;

/// What every rank runs.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    pub(crate) path: &'a OsStr,
    pub(crate) arguments: &'a [OsString],
    pub(crate) wdir: Option<&'a Path>,
    /// What it sees beside the launcher's own environment.
    pub(crate) variables: &'a [(OsString, OsString)],
}

/// Why a process does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The program cannot be executed.
    #[error("cannot execute {}: {source}{}", program.display(), hint(program, source))]
    Execute { program: OsString, source: io::Error },
    /// The process cannot be kept to its processors.
    #[error("cannot keep {rank} to processors of its own: {source}; --bind-to none does without")]
    Bind { rank: Rank, source: io::Error },
    /// The process that is to hold its output does not.
    #[error("cannot have the output of {rank} carried by a relay process: {source}")]
    Relay { rank: Rank, source: io::Error },
    /// The process cannot be watched.
    #[error("cannot watch the process of {rank}: {source} (Linux 5.3 or newer is needed)")]
    Watch { rank: Rank, source: Errno },
    /// The launcher may not open enough files.
    #[error(
        "{world_size} processes need {needed} open files and the limit is {limit}; \
         raise it (ulimit -Hn) or start fewer"
    )]
    TooManyFiles { world_size: u32, needed: u64, limit: u64 },
}

impl StartError {
    /// What the launcher exits with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Execute { source, .. } => match Errno::from_io_error(source) {
                Some(Errno::NOENT) => exit::NOT_FOUND,
                // Out of processes, memory or files: not the program's fault.
                Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => {
                    exit::LAUNCHER_ERROR
                }
                _ => exit::CANNOT_EXECUTE,
            },
            Self::Bind { .. }
            | Self::Relay { .. }
            | Self::Watch { .. }
            | Self::TooManyFiles { .. } => exit::LAUNCHER_ERROR,
        }
    }
}

/// What the system's words for the error do not say.
fn hint(program: &OsStr, error: &io::Error) -> &'static str {
    let is_there = Path::new(program).exists();
    if error.kind() == io::ErrorKind::NotFound && is_there {
        "; the file is there, so what it names as its interpreter is not"
    } else {
        ""
    }
}

/// The processes that were started, ended ones included.
#[derive(Debug)]
pub(crate) struct Processes {
    /// Who holds their pipes, if not the launcher.
    relays: Option<Relays>,
    started: Vec<(Rank, Child)>,
    /// What becomes readable when the process of the rank ends, until `watch` takes it.
    unwatched: Vec<(Rank, OwnedFd)>,
}

impl Processes {
    /// None yet, of `world_size` to come, whose pipes `holder` holds.
    ///
    /// # Errors
    /// When relays are needed and cannot be started.
    pub(crate) fn new(world_size: u32, holder: Holder) -> Result<Self, StartError> {
        let relays = match holder {
            Holder::Launcher => None,
            Holder::Relays { files } => Some(
                Relays::start(world_size, files)
                    .map_err(|source| StartError::Relay { rank: Rank(0), source })?,
            ),
        };
        Ok(Self { relays, started: Vec::new(), unwatched: Vec::new() })
    }

    /// What the relays send what they carry to.
    pub(crate) fn relay_sockets(&self) -> Vec<RelaySocket> {
        self.relays.as_ref().map(Relays::sockets).unwrap_or_default()
    }

    /// The relay of whose loss a rank may have ended like this.
    pub(crate) fn relay_lost_before(&self, exit: ProcessExit) -> Option<usize> {
        // The system closes what a process has in any order, so who writes to a pipe of a relay may
        // be killed a moment before the relay's socket tells of it.
        let patience = match exit {
            ProcessExit::Signalled { signal } if signal == SIGPIPE => Duration::from_millis(50),
            _ => Duration::ZERO,
        };
        exit.failure()?;
        self.relays.as_ref()?.lost(patience)
    }

    /// Says how a relay was lost.
    pub(crate) fn relay_lost(&mut self, relay: usize) -> String {
        let end = self.relays.as_mut().and_then(|relays| relays.end_of(relay));
        let end = end.unwrap_or_else(|| "is gone".to_owned());
        format!("a relay process, which carries the output of ranks, {end}")
    }

    /// Starts the process of `rank` in a group of its own, with nothing to read on stdin.
    ///
    /// `place` is what tells it from the others, as environment variables; `shares` are of the
    /// processors that it is kept to.
    ///
    /// # Errors
    /// When the program cannot be executed or the process cannot be kept or watched: it does not run
    /// then.
    /// When nobody can carry its output.
    pub(crate) fn start(
        &mut self,
        rank: Rank,
        program: &Program<'_>,
        place: Vec<(&'static str, OsString)>,
        shares: Option<&Shares>,
    ) -> Result<[Stream; 2], StartError> {
        let mut command = Command::new(program.path);
        command
            .args(program.arguments)
            .envs(program.variables.iter().map(|(name, value)| (name, value)))
            .env_remove(environment::KEY_FD)
            .env_remove(environment::LOCAL_PROCESSORS)
            .envs(place)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(wdir) = program.wdir {
            command.current_dir(wdir);
        }
        let execute = |source| StartError::Execute { program: program.path.to_owned(), source };
        let kept = shares.map(|shares| shares.keep(rank.0)).transpose();
        let kept = kept.map_err(|source| StartError::Bind { rank, source })?;
        let mut child = command.spawn().map_err(execute)?;
        drop(kept);
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(execute(io::Error::other("its output is not piped")));
        };
        let pidfd = match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(source) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(StartError::Watch { rank, source });
            }
        };
        self.started.push((rank, child));
        self.unwatched.push((rank, pidfd));
        let stdout = Stream { rank, kind: Kind::Stdout, origin: Origin::Pipe(stdout.into()) };
        let stderr = Stream { rank, kind: Kind::Stderr, origin: Origin::Pipe(stderr.into()) };
        let carry = |stream| match &self.relays {
            Some(relays) => {
                relays.carry(stream).map_err(|source| StartError::Relay { rank, source })
            }
            None => Ok(stream),
        };
        Ok([carry(stdout)?, carry(stderr)?])
    }

    /// Sends [`Message::Exited`] for each process started so far, in the order in which they end.
    ///
    /// # Errors
    /// When the processes cannot be watched.
    pub(crate) fn watch(&mut self, messages: Sender<Message>) -> io::Result<()> {
        let watched = std::mem::take(&mut self.unwatched);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for ((_, pidfd), token) in watched.iter().zip(0..) {
            // One-shot: an exit is reported exactly once (I8).
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
            epoll::add(&epoll, pidfd, epoll::EventData::new_u64(token), flags)?;
        }
        std::thread::Builder::new()
            .name("exits".into())
            .spawn(move || report_exits(&epoll, &watched, &messages))?;
        Ok(())
    }

    /// Sends `signal` to the process group of every rank, whether the rank itself has ended or not.
    pub(crate) fn signal(&self, signal: Signal) {
        for (_, child) in &self.started {
            // The only possible error is that nobody is left in the group.
            let _ = kill_process_group(Pid::from_child(child), signal);
        }
    }

    /// The pid of each rank that was started.
    pub(crate) fn pids(&self) -> impl Iterator<Item = (Rank, u32)> {
        self.started.iter().map(|(rank, child)| (*rank, child.id()))
    }

    /// Takes the ended processes off the process table; the job is over.
    pub(crate) fn reap(mut self) {
        for (_, child) in &mut self.started {
            let _ = child.try_wait();
        }
        if let Some(relays) = self.relays {
            relays.end();
        }
    }
}

/// The kernel queues descriptors of an epoll set in the order in which they become ready, so the
/// order of the reports is the order of the exits even when many end at once.
fn report_exits(epoll: &OwnedFd, watched: &[(Rank, OwnedFd)], messages: &Sender<Message>) {
    let mut remaining = watched.len();
    while remaining > 0 {
        let mut events = Vec::with_capacity(64);
        let _ = epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), None);
        for event in events {
            let index = usize::try_from(event.data.u64()).ok();
            let Some((rank, pidfd)) = index.and_then(|index| watched.get(index)) else {
                continue;
            };
            remaining -= 1;
            if messages.send(Message::Exited(*rank, exit_of(pidfd))).is_err() {
                return;
            }
        }
    }
}

fn exit_of(pidfd: &OwnedFd) -> ProcessExit {
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = rustix::io::retry_on_intr(|| waitid(WaitId::PidFd(pidfd.as_fd()), peek));
    let Ok(Some(status)) = status else {
        // An end whose status the kernel does not tell cannot be called a success.
        return ProcessExit::Exited { code: exit::LAUNCHER_ERROR.into() };
    };
    match status.terminating_signal() {
        Some(signal) => ProcessExit::Signalled { signal },
        None => ProcessExit::Exited { code: status.exit_status().unwrap_or(0) },
    }
}

/// Who holds the pipes on which the ranks write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// The launcher itself.
    Launcher,
    /// Relays, each of which may open so many files.
    Relays { files: u64 },
}

/// Makes sure that the launcher can hold the descriptors of `world_size` processes: all of them
/// or, where the limit does not allow that, all but the pipes.
///
/// # Errors
/// [`StartError::TooManyFiles`] when the hard limit is too low for either.
pub(crate) fn raise_file_limit(world_size: u32) -> Result<Holder, StartError> {
    /// The process itself.
    const PER_RANK: u64 = 1;
    /// stdout and stderr.
    const PIPES_PER_RANK: u64 = 2;
    /// The launcher's own, with room for libraries.
    const OWN: u64 = 64;

    let limits = getrlimit(Resource::Nofile);
    let limit = limits.maximum.unwrap_or(u64::MAX);
    let without_pipes = u64::from(world_size) * PER_RANK + OWN;
    let with_pipes = without_pipes + u64::from(world_size) * PIPES_PER_RANK;
    let (holder, needed) = if with_pipes <= limit {
        (Holder::Launcher, with_pipes)
    } else {
        let relays = Relays::needed(world_size, limit);
        (Holder::Relays { files: limit }, without_pipes + relays)
    };
    if limits.current.is_none_or(|current| current >= needed) && holder == Holder::Launcher {
        return Ok(holder);
    }
    // Relays are given what the launcher has.
    let raised = Rlimit { current: limits.maximum, ..limits };
    if limit < needed || setrlimit(Resource::Nofile, raised).is_err() {
        return Err(StartError::TooManyFiles { world_size, needed, limit });
    }
    Ok(holder)
}
