//! `lockstep run`: carries out what [`Job`] decides, on this host.
//!
//! One loop receives what the watching threads (exits, signals, output, guard) report, in the order
//! in which it happened, and is the only one that acts on processes.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use crossbeam_channel::{Receiver, Sender, unbounded};
use lockstep_collectives::environment::INIT_TIMEOUT;
use lockstep_collectives::{
    Attempt, Coordinator, CoordinatorOptions, DEFAULT_HEARTBEAT_TIMEOUT, Environment, JobSecret,
    KeySource, ProcessExit, Rank, RankFailure,
};
use rustix::process::Signal;
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::emulate_default_handler;

use crate::binding::{BindTo, Shares};
use crate::cli::{Export, RunArgs};
use crate::exit;
use crate::flight;
use crate::guard::Guard;
use crate::job::{Action, Cause, Event, Job, Rules};
use crate::job_directory::JobDirectory;
use crate::output::{Forwarder, Notes, Shown, Stream, Style};
use crate::process::{Processes, Program, raise_file_limit};
use crate::signals;
use crate::summary::{RankReport, summary};
use crate::sweep;

/// How often to look who has joined.
const MEMBERSHIP_PERIOD: Duration = Duration::from_millis(200);
/// How long the launcher hunts for what its ranks left running.
const SWEEP_LIMIT: Duration = Duration::from_secs(5);
/// How long output may be stuck when the user has ended the job.
const IMPATIENCE: Duration = Duration::from_secs(2);
/// How much longer than the launcher a rank waits for the others to join, so that the launcher,
/// which knows who is missing, speaks first.
const INIT_MARGIN: Duration = Duration::from_secs(5);
/// How many guards may be lost before something must be wrong with them.
const GUARD_LOSSES: u32 = 3;

/// What the watching threads report.
#[derive(Debug)]
pub(crate) enum Message {
    /// The process of a rank ended.
    Exited(Rank, ProcessExit),
    /// The guard is gone.
    GuardLost,
    /// Every rank's stdout and stderr are closed.
    OutputEnded,
    /// A relay ended before the ranks did whose output it carried.
    RelayLost(usize),
    /// All output has been shown; nobody writes any more.
    Shown(Shown),
    /// The launcher received this signal.
    Signal(i32),
}

/// Runs a job as `args` say; returns the exit code.
///
/// # Errors
/// When the job cannot even be tried.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<u8> {
    let mut running = Running::start(args)?;
    running.until_over();
    Ok(running.finish())
}

struct Running {
    job: Job,
    processes: Processes,
    coordinator: Coordinator,
    output: Forwarder,
    directory: JobDirectory,
    flight_report: Option<PathBuf>,
    guard: Guard,
    guard_losses: u32,
    next_look: Instant,
    inbox: Receiver<Message>,
    messages: Sender<Message>,
}

impl Running {
    fn start(args: &RunArgs) -> anyhow::Result<Self> {
        let world_size = args.processes;
        world_size
            .checked_mul(args.devices_per_process)
            .context("-n times -d is more devices than can be numbered")?;
        let holder = raise_file_limit(world_size)?;
        let variables = variables(args)?;
        if let Some(wdir) = &args.wdir {
            let is_directory = wdir.metadata().map(|metadata| metadata.is_dir());
            anyhow::ensure!(is_directory.unwrap_or(false), "no directory {}", wdir.display());
        }

        let (messages, inbox) = unbounded();
        let (notes, notes_pipe) = Notes::pipe()?;
        log_to(&notes);
        signals::listen(messages.clone()).context("cannot listen to signals")?;
        let directory = JobDirectory::choose()?;
        let guard = Guard::start(directory.job(), directory.path(), messages.clone())
            .context("cannot start the guard process")?;
        let secret = JobSecret::generate()?;
        let key = directory.store(&secret)?;
        let coordinator = Coordinator::start(CoordinatorOptions {
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            job: directory.job().clone(),
            attempt: Attempt(0),
            world_size,
            secret,
            heartbeat_timeout: DEFAULT_HEARTBEAT_TIMEOUT,
        })?;

        let rules = Rules {
            world_size,
            timeout: args.timeout,
            start_timeout: args.start_timeout,
            kill_grace: args.kill_grace,
            show_progress: io::stderr().is_terminal(),
        };
        let mut job = Job::new(rules, Instant::now());
        let (path, arguments) = args.command.split_first().context("no program")?;
        let wdir = args.wdir.as_deref();
        let program = Program { path, arguments, wdir, variables: &variables };
        let mut processes = Processes::new(world_size, holder)?;
        let mut streams = Vec::<Stream>::new();
        let shares = match args.bind_to {
            BindTo::None => None,
            BindTo::Core => {
                Some(Shares::among(world_size).context("cannot see which processors there are")?)
            }
        };
        let place = |rank: Rank| Environment {
            rank,
            world_size,
            local_rank: rank.0,
            local_size: world_size,
            local_processors: shares.as_ref().map(Shares::processors),
            coordinator: coordinator.address().to_string(),
            coordinator_hosted: true,
            job: directory.job().clone(),
            attempt: Attempt(0),
            key: KeySource::File(key.clone()),
            devices: args.devices_per_process,
        };
        let mut failure = None;
        for rank in (0..world_size).map(Rank) {
            match processes.start(rank, &program, place(rank).variables(), shares.as_ref()) {
                Ok(pipes) => {
                    streams.extend(pipes);
                    job.handle(Event::Started(rank), Instant::now());
                }
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let style = style(args);
        let output = Forwarder::start(
            world_size,
            (streams, processes.relay_sockets()),
            style,
            (notes, notes_pipe),
            messages.clone(),
        )
        .context("cannot read the output of the processes")?;
        processes.watch(messages.clone()).context("cannot watch the processes")?;
        let mut running = Self {
            job,
            processes,
            coordinator,
            output,
            directory,
            flight_report: args.flight_report.clone(),
            guard,
            guard_losses: 0,
            next_look: Instant::now(),
            inbox,
            messages,
        };
        if let Some(error) = failure {
            running
                .tell(Event::Broken { message: error.to_string(), exit_code: error.exit_code() });
        }
        Ok(running)
    }

    fn until_over(&mut self) {
        while !self.job.is_over() {
            let look = self.job.awaits_ranks().then_some(self.next_look);
            let message = match [self.job.wake_at(), look].into_iter().flatten().min() {
                Some(deadline) => self.inbox.recv_deadline(deadline).ok(),
                None => self.inbox.recv().ok(),
            };
            // What has happened already counts before what is due.
            for message in message.into_iter().chain(self.inbox.clone().try_iter()) {
                self.receive(&message);
            }
            if self.job.awaits_ranks() && Instant::now() >= self.next_look {
                self.next_look = Instant::now() + MEMBERSHIP_PERIOD;
                self.tell(Event::Missing(self.coordinator.status().missing));
            }
            let actions = self.job.advance(Instant::now());
            self.perform(actions);
        }
    }

    fn receive(&mut self, message: &Message) {
        match *message {
            Message::Exited(rank, exit) => {
                // Who writes to a lost relay dies of it, which is not what the job is to end with.
                if self.job.cause().is_none()
                    && let Some(relay) = self.processes.relay_lost_before(exit)
                {
                    self.receive(&Message::RelayLost(relay));
                }
                self.coordinator.report_exit(rank, exit);
                self.tell(Event::Exited(rank, exit));
            }
            Message::GuardLost => self.replace_guard(),
            Message::OutputEnded => self.tell(Event::OutputEnded),
            Message::RelayLost(relay) => {
                let message = self.processes.relay_lost(relay);
                self.tell(Event::Broken { message, exit_code: exit::LAUNCHER_ERROR });
            }
            // Comes only after `finish` has asked for it.
            Message::Shown(_) => {}
            Message::Signal(signal) if signals::is_ending(signal) => {
                self.tell(Event::Interrupted(signal));
            }
            Message::Signal(signal) => {
                if let Some(signal) = Signal::from_named_raw(signal) {
                    self.processes.signal(signal);
                }
                if signal == SIGTSTP {
                    // Stops the launcher here, until CONT.
                    let _ = emulate_default_handler(signal);
                }
            }
        }
    }

    fn tell(&mut self, event: Event) {
        let actions = self.job.handle(event, Instant::now());
        self.perform(actions);
    }

    fn perform(&self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Terminate => {
                    self.processes.signal(Signal::TERM);
                    // A stopped process learns of it only when it continues.
                    self.processes.signal(Signal::CONT);
                }
                Action::Kill => self.processes.signal(Signal::KILL),
                Action::Note(text) => self.output.notes().say(&text),
            }
        }
    }

    /// Nothing may run without a guard.
    fn replace_guard(&mut self) {
        self.guard_losses += 1;
        let (job, path) = (self.directory.job(), self.directory.path());
        let message = if self.guard_losses > GUARD_LOSSES {
            "the guard process was killed again and again".to_owned()
        } else {
            match Guard::start(job, path, self.messages.clone()) {
                Ok(guard) => {
                    self.guard = guard;
                    return;
                }
                Err(error) => format!("the guard process died and cannot be restarted: {error}"),
            }
        };
        self.tell(Event::Broken { message, exit_code: exit::LAUNCHER_ERROR });
    }

    /// Leaves nothing behind and says how it went.
    fn finish(self) -> u8 {
        self.processes.signal(Signal::KILL);
        if let Err(error) = sweep::kill_all(self.directory.job(), Duration::ZERO, SWEEP_LIMIT) {
            self.output.notes().say(&format!("cannot look for leftover processes: {error}"));
        }
        self.output.finish();
        // Whoever reads the output may take their time, unless time is up; a signal says so too.
        let patience = match self.job.cause() {
            Some(Cause::Interrupted(_) | Cause::TimedOut(_)) => IMPATIENCE,
            _ => Duration::MAX,
        };
        let shown = loop {
            match self.inbox.recv_timeout(patience) {
                Ok(Message::Shown(shown)) => break Some(shown),
                Ok(Message::Signal(signal)) if signals::is_ending(signal) => break None,
                Ok(_) => {}
                Err(_) => break None,
            }
        };
        let is_incomplete = shown.as_ref().is_some_and(|shown| shown.is_incomplete);
        if let (Some(cause), Some(shown)) = (self.job.cause(), shown) {
            let news = self.coordinator.status().failed;
            let (job, logs) = (self.directory.job(), self.coordinator.flight_logs());
            let file = self.flight_report.as_deref();
            let mut text = flight::conclude(file, job, self.job.fates(), &logs).into_bytes();
            text.extend(report(cause, &self.job, &self.processes, &news, &shown));
            shown.conclude(&text);
        }
        self.coordinator.shutdown();
        self.processes.reap();
        drop(self.directory);
        self.guard.dismiss();
        match self.job.cause() {
            Some(cause) => cause.exit_code(),
            None if is_incomplete => exit::LAUNCHER_ERROR,
            None => 0,
        }
    }
}

fn report(
    cause: &Cause,
    job: &Job,
    processes: &Processes,
    news: &[RankFailure],
    shown: &Shown,
) -> Vec<u8> {
    let mut pids = processes.pids().peekable();
    let ranks: Vec<_> = (0..)
        .map(Rank)
        .zip(job.fates())
        .zip(&shown.tails)
        .map(|((rank, &fate), stderr)| RankReport {
            rank,
            pid: pids.next_if(|(started, _)| *started == rank).map(|(_, pid)| pid),
            fate,
            news: news.iter().find(|failure| failure.rank == rank).map(|failure| &failure.cause),
            stderr,
        })
        .collect();
    summary(cause, &ranks)
}

fn style(args: &RunArgs) -> Style {
    let several = args.processes > 1;
    if args.tag().unwrap_or_else(|| several && io::stdout().is_terminal()) {
        Style::Tagged
    } else if several {
        Style::Plain
    } else {
        Style::Raw
    }
}

/// What the ranks see beside the launcher's environment, which they inherit.
fn variables(args: &RunArgs) -> anyhow::Result<Vec<(OsString, OsString)>> {
    let mut variables = Vec::new();
    if std::env::var_os(INIT_TIMEOUT).is_none() {
        let timeout = args.start_timeout.saturating_add(INIT_MARGIN);
        variables.push((INIT_TIMEOUT.into(), format!("{}ms", timeout.as_millis()).into()));
    }
    for export in &args.exports {
        match export {
            Export::Inherit(name) => {
                let value = std::env::var_os(name)
                    .with_context(|| format!("-x {}: the variable is not set", name.display()))?;
                variables.push((name.clone(), value));
            }
            Export::Set(name, value) => variables.push((name.clone(), value.clone())),
            Export::Prefix(prefix) => variables.extend(
                std::env::vars_os()
                    .filter(|(name, _)| name.as_bytes().starts_with(prefix.as_bytes())),
            ),
        }
    }
    Ok(variables)
}

/// Sends the log where the notes go. `LOCKSTEP_LOG` chooses what is logged, by default warnings.
fn log_to(notes: &Notes) {
    let notes = notes.clone();
    let filter = tracing_subscriber::EnvFilter::try_from_env("LOCKSTEP_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    // Fails only if a log was set up before, which then stays.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(move || notes.clone())
        .try_init();
}
