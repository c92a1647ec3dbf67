//! The course of a job: what has happened so far, what to do about it, and how it ends.
//!
//! Pure policy: events and the time go in, actions come out. It owns neither processes nor clocks
//! nor output, so every course can be tested by replaying it.
//!
//! ```text
//! Running --- a rank fails ---> Settling --- survivors remain ---> Terminating --- grace ---> Killing
//!    |  \---- timeout, signal -----------------------------------------^                         |
//!    all ended with 0 ---> Draining ---> Over <---------- every rank has ended ------------------/
//! ```
//!
//! Invariants: the first cause stands and is never replaced; a rank that ends after the launcher
//! has signalled it never is the cause; each exit is recorded once (I8); every phase but Running
//! has a deadline (I3).

use std::time::{Duration, Instant};

use lockstep_collectives::{ProcessExit, Rank};

use crate::exit;
use crate::rank_list::RankList;

/// How long survivors of a failure have to end by themselves, with their own error messages.
const SETTLE: Duration = Duration::from_millis(700);
/// How long what outlives the ranks of a good job may go on writing to their output.
const DRAIN: Duration = Duration::from_secs(1);
/// How long a killed process may take to be gone.
const DEATH: Duration = Duration::from_secs(5);
/// How often the user is told who is missing.
const PROGRESS: Duration = Duration::from_secs(10);

/// What the user asked for.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) world_size: u32,
    pub(crate) timeout: Option<Duration>,
    pub(crate) start_timeout: Duration,
    pub(crate) kill_grace: Duration,
    /// Whether somebody is there to read who is missing.
    pub(crate) show_progress: bool,
}

/// What happened.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// The process of a rank runs.
    Started(Rank),
    /// The process of a rank ended.
    Exited(Rank, ProcessExit),
    /// The ranks that have not joined the rendezvous, in ascending order.
    Missing(Vec<Rank>),
    /// The user sent a signal that ends jobs.
    Interrupted(i32),
    /// The launcher cannot go on.
    Broken { message: String, exit_code: u8 },
    /// No process holds a rank's stdout or stderr open any more.
    OutputEnded,
}

/// What the launcher must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Ask every rank's process group to end.
    Terminate,
    /// Kill every rank's process group.
    Kill,
    /// Tell the user.
    Note(String),
}

/// Why the job is not a success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// This rank failed before any other did.
    RankFailed(Rank, ProcessExit),
    /// `--timeout`.
    TimedOut(Duration),
    /// `--start-timeout`: these ranks never joined.
    StartTimedOut { missing: Vec<Rank>, after: Duration },
    /// The user sent this signal.
    Interrupted(i32),
    /// The launcher could not do its work.
    Broken { message: String, exit_code: u8 },
}

impl Cause {
    /// What the launcher exits with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::RankFailed(_, exit) => exit::shell_code(*exit),
            Self::TimedOut(_) => exit::TIMED_OUT,
            Self::StartTimedOut { .. } => exit::LAUNCHER_ERROR,
            Self::Interrupted(signal) => exit::signalled(*signal),
            Self::Broken { exit_code, .. } => *exit_code,
        }
    }
}

/// What became of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was never started.
    NotStarted,
    /// It has not ended yet.
    Running,
    /// It ended by itself.
    Ended(ProcessExit),
    /// It ended after the launcher had told it to.
    Stopped(ProcessExit),
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Running,
    Settling { until: Instant },
    Terminating { until: Instant },
    Killing { until: Instant },
    Draining { until: Instant },
    Over,
}

/// Some ranks have joined and wait for these.
#[derive(Debug)]
struct Waiting {
    missing: Vec<Rank>,
    since: Instant,
    next_note: Instant,
}

/// A job from its first process to its last.
#[derive(Debug)]
pub(crate) struct Job {
    rules: Rules,
    started_at: Instant,
    phase: Phase,
    fates: Vec<Fate>,
    cause: Option<Cause>,
    all_joined: bool,
    waiting: Option<Waiting>,
    output_ended: bool,
}

impl Job {
    pub(crate) fn new(rules: Rules, now: Instant) -> Self {
        Self {
            fates: (0..rules.world_size).map(|_| Fate::NotStarted).collect(),
            rules,
            started_at: now,
            phase: Phase::Running,
            cause: None,
            all_joined: false,
            waiting: None,
            output_ended: false,
        }
    }

    /// Whether there is nothing left to wait for.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    /// Whether it matters who has joined the rendezvous.
    pub(crate) fn awaits_ranks(&self) -> bool {
        !self.all_joined && matches!(self.phase, Phase::Running)
    }

    /// What became of each rank, by rank.
    pub(crate) fn fates(&self) -> &[Fate] {
        &self.fates
    }

    /// Why the job is not a success, if it is not.
    pub(crate) fn cause(&self) -> Option<&Cause> {
        self.cause.as_ref()
    }

    /// When [`Job::advance`] must be called if nothing happens before.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running => {
                let timeout = self.rules.timeout.map(|limit| later(self.started_at, limit));
                let waiting = self.waiting.as_ref();
                let start = waiting.map(|waiting| later(waiting.since, self.rules.start_timeout));
                let note = waiting.map(|waiting| waiting.next_note);
                [timeout, start, note].into_iter().flatten().min()
            }
            Phase::Settling { until }
            | Phase::Terminating { until }
            | Phase::Killing { until }
            | Phase::Draining { until } => Some(until),
            Phase::Over => None,
        }
    }

    /// Takes note of `event`.
    pub(crate) fn handle(&mut self, event: Event, now: Instant) -> Vec<Action> {
        match event {
            Event::Started(rank) => {
                if let Some(fate) = self.fate_mut(rank) {
                    *fate = Fate::Running;
                }
                Vec::new()
            }
            Event::Exited(rank, exit) => self.exited(rank, exit, now),
            Event::Missing(missing) => {
                self.joined(missing, now);
                Vec::new()
            }
            Event::Interrupted(signal) => self.interrupted(signal, now),
            Event::Broken { message, exit_code } => {
                self.terminate(Cause::Broken { message, exit_code }, now)
            }
            Event::OutputEnded => {
                self.output_ended = true;
                if matches!(self.phase, Phase::Draining { .. }) {
                    self.phase = Phase::Over;
                }
                Vec::new()
            }
        }
    }

    /// Does what is due at `now`.
    pub(crate) fn advance(&mut self, now: Instant) -> Vec<Action> {
        if self.wake_at().is_none_or(|due| now < due) {
            return Vec::new();
        }
        match self.phase {
            Phase::Running => self.running_too_long(now),
            Phase::Settling { .. } => {
                self.phase = Phase::Terminating { until: later(now, self.rules.kill_grace) };
                vec![Action::Terminate]
            }
            Phase::Terminating { .. } => self.kill(now),
            Phase::Killing { .. } => {
                self.phase = Phase::Over;
                let running = self.running();
                vec![Action::Note(format!("{} cannot be killed; giving up", RankList(&running)))]
            }
            Phase::Draining { .. } => {
                self.phase = Phase::Over;
                Vec::new()
            }
            Phase::Over => Vec::new(),
        }
    }

    fn exited(&mut self, rank: Rank, exit: ProcessExit, now: Instant) -> Vec<Action> {
        let told_to =
            !matches!(self.phase, Phase::Running | Phase::Settling { .. } | Phase::Draining { .. });
        let Some(fate @ Fate::Running) = self.fate_mut(rank) else {
            return Vec::new();
        };
        *fate = if told_to { Fate::Stopped(exit) } else { Fate::Ended(exit) };
        if !told_to && exit.failure().is_some() && self.cause.is_none() {
            self.cause = Some(Cause::RankFailed(rank, exit));
            self.phase = Phase::Settling { until: later(now, SETTLE) };
        }
        if self.running().is_empty() {
            self.phase = if self.cause.is_some() || self.output_ended {
                Phase::Over
            } else {
                Phase::Draining { until: later(now, DRAIN) }
            };
        }
        Vec::new()
    }

    fn joined(&mut self, missing: Vec<Rank>, now: Instant) {
        if missing.is_empty() {
            self.all_joined = true;
            self.waiting = None;
        } else if let Some(waiting) = &mut self.waiting {
            waiting.missing = missing;
        } else if missing.len() < self.fates.len() {
            // The first rank has joined: from here on somebody waits.
            let next_note = later(now, PROGRESS);
            self.waiting = Some(Waiting { missing, since: now, next_note });
        }
    }

    fn interrupted(&mut self, signal: i32, now: Instant) -> Vec<Action> {
        match self.phase {
            Phase::Running | Phase::Settling { .. } => {
                let note = format!(
                    "{}: ending {}; once more to kill at once",
                    exit::signal_words(signal),
                    RankList(&self.running())
                );
                let mut actions = self.terminate(Cause::Interrupted(signal), now);
                actions.push(Action::Note(note));
                actions
            }
            Phase::Terminating { .. } => self.kill(now),
            Phase::Killing { .. } | Phase::Over => Vec::new(),
            Phase::Draining { .. } => {
                self.cause = Some(Cause::Interrupted(signal));
                self.phase = Phase::Over;
                Vec::new()
            }
        }
    }

    fn running_too_long(&mut self, now: Instant) -> Vec<Action> {
        if let Some(limit) = self.rules.timeout
            && later(self.started_at, limit) <= now
        {
            return self.terminate(Cause::TimedOut(limit), now);
        }
        let Some(waiting) = &mut self.waiting else {
            return Vec::new();
        };
        if later(waiting.since, self.rules.start_timeout) <= now {
            let missing = std::mem::take(&mut waiting.missing);
            let after = self.rules.start_timeout;
            return self.terminate(Cause::StartTimedOut { missing, after }, now);
        }
        waiting.next_note = later(now, PROGRESS);
        if !self.rules.show_progress {
            return Vec::new();
        }
        let seconds = now.saturating_duration_since(waiting.since).as_secs();
        let missing = RankList(&waiting.missing);
        vec![Action::Note(format!("waiting for {missing} to join ({seconds} s)"))]
    }

    /// Ends the job because of `cause`, unless there is an earlier one.
    fn terminate(&mut self, cause: Cause, now: Instant) -> Vec<Action> {
        self.cause.get_or_insert(cause);
        if self.running().is_empty() {
            self.phase = Phase::Over;
            return Vec::new();
        }
        match self.phase {
            Phase::Running | Phase::Settling { .. } => {
                self.phase = Phase::Terminating { until: later(now, self.rules.kill_grace) };
                vec![Action::Terminate]
            }
            _ => Vec::new(),
        }
    }

    fn kill(&mut self, now: Instant) -> Vec<Action> {
        self.phase = Phase::Killing { until: later(now, DEATH) };
        vec![Action::Kill]
    }

    fn running(&self) -> Vec<Rank> {
        let ranks = (0..self.rules.world_size).map(Rank);
        ranks.zip(&self.fates).filter(|(_, fate)| **fate == Fate::Running).map(|(r, _)| r).collect()
    }

    fn fate_mut(&mut self, rank: Rank) -> Option<&mut Fate> {
        self.fates.get_mut(usize::try_from(rank.0).ok()?)
    }
}

/// `now + wait`; a wait beyond the end of time ends in a year.
fn later(now: Instant, wait: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    now + wait.min(YEAR)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A job of `world_size` running ranks and the moment it started.
    fn job(world_size: u32) -> (Job, Instant) {
        let rules = Rules {
            world_size,
            timeout: Some(100 * SECOND),
            start_timeout: 30 * SECOND,
            kill_grace: 5 * SECOND,
            show_progress: true,
        };
        let start = Instant::now();
        let mut job = Job::new(rules, start);
        for rank in 0..world_size {
            assert_eq!(job.handle(Event::Started(Rank(rank)), start), []);
        }
        (job, start)
    }

    fn code(code: i32) -> ProcessExit {
        ProcessExit::Exited { code }
    }

    fn signal(signal: i32) -> ProcessExit {
        ProcessExit::Signalled { signal }
    }

    fn exit(job: &mut Job, rank: u32, exit: ProcessExit, now: Instant) {
        assert_eq!(job.handle(Event::Exited(Rank(rank), exit), now), []);
    }

    fn exit_code(job: &Job) -> u8 {
        job.cause().map_or(0, Cause::exit_code)
    }

    #[test]
    fn a_good_job_ends_when_its_output_does() {
        let (mut job, start) = job(2);
        exit(&mut job, 1, code(0), start);
        exit(&mut job, 0, code(0), start + SECOND);
        assert!(!job.is_over());
        job.handle(Event::OutputEnded, start + SECOND);
        assert!(job.is_over());
        assert_eq!(exit_code(&job), 0);
    }

    #[test]
    fn a_grandchild_that_keeps_the_output_open_is_waited_for_one_second() {
        let (mut job, start) = job(1);
        exit(&mut job, 0, code(0), start);
        assert_eq!(job.wake_at(), Some(start + DRAIN));
        job.advance(start + DRAIN);
        assert!(job.is_over());
        assert_eq!(exit_code(&job), 0);
    }

    #[test]
    fn the_first_failure_by_time_decides() {
        let (mut job, start) = job(3);
        exit(&mut job, 2, code(4), start);
        exit(&mut job, 0, code(2), start);
        exit(&mut job, 1, code(0), start);
        assert!(job.is_over());
        assert_eq!(exit_code(&job), 4);
        assert_eq!(job.cause(), Some(&Cause::RankFailed(Rank(2), code(4))));
        assert_eq!(job.fates()[0], Fate::Ended(code(2)));
    }

    #[test]
    fn survivors_settle_then_are_told_then_are_killed() {
        let (mut job, start) = job(3);
        exit(&mut job, 1, signal(9), start);
        let settled = start + SETTLE;
        assert_eq!(job.advance(settled - Duration::from_millis(1)), []);
        assert_eq!(job.advance(settled), [Action::Terminate]);
        exit(&mut job, 0, code(7), settled);
        assert_eq!(job.wake_at(), Some(settled + 5 * SECOND));
        assert_eq!(job.advance(settled + 5 * SECOND), [Action::Kill]);
        exit(&mut job, 2, signal(9), settled + 5 * SECOND);
        assert!(job.is_over());
        assert_eq!(exit_code(&job), 137);
        assert_eq!(
            job.fates(),
            [Fate::Stopped(code(7)), Fate::Ended(signal(9)), Fate::Stopped(signal(9)),]
        );
    }

    #[test]
    fn an_exit_is_recorded_once() {
        let (mut job, start) = job(2);
        exit(&mut job, 1, code(0), start);
        exit(&mut job, 1, code(5), start);
        exit(&mut job, 7, code(5), start);
        assert_eq!(job.fates(), [Fate::Running, Fate::Ended(code(0))]);
        assert_eq!(job.cause(), None);
    }

    #[test]
    fn a_timeout_ends_the_job_with_124() {
        let (mut job, start) = job(2);
        assert_eq!(job.wake_at(), Some(start + 100 * SECOND));
        assert_eq!(job.advance(start + 100 * SECOND), [Action::Terminate]);
        exit(&mut job, 0, signal(15), start + 100 * SECOND);
        exit(&mut job, 1, code(1), start + 100 * SECOND);
        assert!(job.is_over());
        assert_eq!(exit_code(&job), 124);
    }

    #[test]
    fn the_start_timeout_counts_from_the_first_to_join() {
        let (mut job, start) = job(4);
        job.handle(Event::Missing((0..4).map(Rank).collect()), start);
        assert_eq!(job.wake_at(), Some(start + 100 * SECOND));
        let joined = start + 40 * SECOND;
        job.handle(Event::Missing(vec![Rank(1), Rank(3)]), joined);
        let note = Action::Note("waiting for ranks 1 and 3 to join (10 s)".into());
        assert_eq!(job.advance(joined + 10 * SECOND), [note]);
        job.handle(Event::Missing(vec![Rank(3)]), joined + 11 * SECOND);
        assert!(job.awaits_ranks());
        assert_eq!(job.advance(joined + 30 * SECOND), [Action::Terminate]);
        let missing = vec![Rank(3)];
        assert_eq!(job.cause(), Some(&Cause::StartTimedOut { missing, after: 30 * SECOND }));
        assert_eq!(exit_code(&job), 125);
    }

    #[test]
    fn a_job_whose_ranks_have_all_joined_has_no_start_timeout() {
        let (mut job, start) = job(2);
        job.handle(Event::Missing(vec![Rank(1)]), start);
        job.handle(Event::Missing(Vec::new()), start + SECOND);
        assert!(!job.awaits_ranks());
        assert_eq!(job.wake_at(), Some(start + 100 * SECOND));
    }

    #[test]
    fn one_signal_asks_and_a_second_one_kills() {
        let (mut job, start) = job(2);
        let actions = job.handle(Event::Interrupted(2), start);
        assert_eq!(actions.first(), Some(&Action::Terminate));
        assert_eq!(job.handle(Event::Interrupted(2), start + SECOND), [Action::Kill]);
        exit(&mut job, 0, signal(9), start + SECOND);
        exit(&mut job, 1, signal(9), start + SECOND);
        assert!(job.is_over());
        assert_eq!(exit_code(&job), 130);
    }

    #[test]
    fn a_signal_while_survivors_settle_does_not_hide_the_failure() {
        let (mut job, start) = job(2);
        exit(&mut job, 0, code(9), start);
        assert_eq!(job.handle(Event::Interrupted(15), start).first(), Some(&Action::Terminate));
        exit(&mut job, 1, signal(15), start);
        assert_eq!(exit_code(&job), 9);
    }

    #[test]
    fn a_process_that_cannot_be_killed_is_given_up_by_name() {
        let (mut job, start) = job(1);
        job.handle(Event::Interrupted(2), start);
        job.handle(Event::Interrupted(2), start);
        let note = Action::Note("rank 0 cannot be killed; giving up".into());
        assert_eq!(job.advance(start + DEATH), [note]);
        assert!(job.is_over());
    }

    #[test]
    fn a_job_that_cannot_be_started_whole_is_ended() {
        let (mut job, start) = job(2);
        let broken = Event::Broken { message: "no more processes".into(), exit_code: 125 };
        assert_eq!(job.handle(broken.clone(), start), [Action::Terminate]);
        assert_eq!(exit_code(&job), 125);
        let mut empty = Job::new(job.rules.clone(), start);
        assert_eq!(empty.handle(broken, start), []);
        assert!(empty.is_over());
        assert_eq!(empty.fates(), [Fate::NotStarted, Fate::NotStarted]);
    }

    /// One step of an arbitrary course: an event, or only time.
    fn step() -> impl Strategy<Value = (Duration, Option<Event>)> {
        let end = prop_oneof![(0..3_i32).prop_map(code), (1..16_i32).prop_map(signal)];
        let event = prop_oneof![
            4 => (0..4_u32, end).prop_map(|(rank, end)| Some(Event::Exited(Rank(rank), end))),
            1 => (0..5_u32).prop_map(|joined| Some(Event::Missing((joined..4).map(Rank).collect()))),
            1 => Just(Some(Event::Interrupted(2))),
            1 => Just(Some(Event::OutputEnded)),
            2 => Just(None),
        ];
        ((0..20_000_u64).prop_map(Duration::from_millis), event)
    }

    proptest! {
        #[test]
        fn every_course_keeps_its_promises(steps in proptest::collection::vec(step(), 0..40)) {
            let (mut job, mut now) = job(4);
            let mut actions = Vec::new();
            let (mut first_cause, mut fates) = (None, job.fates().to_vec());
            for (passed, event) in steps {
                now += passed;
                actions.extend(job.advance(now));
                let told_to = actions.iter().any(|action| !matches!(action, Action::Note(_)));
                let was_over = job.is_over();
                if let Some(event) = event {
                    actions.extend(job.handle(event, now));
                }
                prop_assert!(job.is_over() || !was_over);
                for (before, after) in fates.iter().zip(job.fates()) {
                    prop_assert!(before == after || *before == Fate::Running);
                    let by_itself = matches!(after, Fate::Ended(_));
                    prop_assert!(before == after || by_itself != told_to);
                }
                fates = job.fates().to_vec();
                first_cause = first_cause.or_else(|| job.cause().cloned());
                prop_assert_eq!(job.cause(), first_cause.as_ref());
                if let Some(Cause::RankFailed(rank, exit)) = job.cause() {
                    prop_assert_eq!(fates[rank.0 as usize], Fate::Ended(*exit));
                }
                let ended_badly =
                    |fate: &Fate| matches!(fate, Fate::Ended(exit) if exit.failure().is_some());
                prop_assert!(job.cause().is_some() || !fates.iter().any(ended_badly));
                let running = fates.contains(&Fate::Running);
                let gave_up = actions.iter().any(|action| {
                    matches!(action, Action::Note(text) if text.ends_with("giving up"))
                });
                prop_assert!(!job.is_over() || !running || gave_up);
                prop_assert_eq!(job.is_over(), job.wake_at().is_none());
            }
            for action in [Action::Terminate, Action::Kill] {
                prop_assert!(actions.iter().filter(|&done| *done == action).count() <= 1);
            }
            // Whatever has happened, time alone ends it.
            for _ in 0..40 {
                let Some(due) = job.wake_at() else { break };
                now = now.max(due);
                job.advance(now);
            }
            prop_assert!(job.is_over());
        }
    }
}
