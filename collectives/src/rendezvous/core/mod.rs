//! The coordinator's decisions: a state machine without I/O or clock.
//!
//! It is told the time with every [`Event`] and answers with [`Action`]s; its shell owns the
//! connections and makes both happen. The state and the clock are here; what changes the state is
//! in `membership` (who holds which seat) and `calls` (what members ask for), which waits in
//! `store` and `barrier`.
//!
//! Rules: a rank fails once, by its first cause, except that its parent's report of how it ended is
//! waited for briefly when its connection closes. Once a rank has failed, nothing waits: what it
//! waits for may never come. Once a rank has left, no barrier waits.

mod barrier;
mod calls;
mod membership;
mod store;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use self::barrier::Barriers;
use self::store::Store;
use super::message::{Join, Reply, Request, ToMember};
use super::{CallRefusal, FailureCause, MissingRanks, ProcessExit, RankFailure};
use crate::{Attempt, Fingerprint, FlightLog, JobId, Rank};

/// How long a closed connection waits for the launcher to say how the process ended.
const EXIT_GRACE: Duration = Duration::from_millis(250);

/// How often waiting members hear who is missing, when that has changed.
const WAITING_INTERVAL: Duration = Duration::from_secs(1);

/// A coordinator that has not run for this long does not know who was silent meanwhile.
const OWN_SILENCE: Duration = Duration::from_secs(2);

/// The longest names of hosts.
const MAX_HOST_BYTES: usize = 256;

/// The job that a core coordinates.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) job: JobId,
    pub(super) attempt: Attempt,
    pub(super) world_size: u32,
    pub(super) heartbeat_timeout: Duration,
}

/// A connection, by a number of its own: a peer that comes back has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ConnectionId(pub(super) u64);

/// A call, by a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CallId(pub(super) u64);

/// What happens to a coordinator.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Call {
        connection: ConnectionId,
        call: CallId,
        request: Request,
    },
    /// The caller no longer wants an answer.
    Cancelled {
        call: CallId,
    },
    /// The connection ended; `timed_out` if because nothing came from the peer.
    Closed {
        connection: ConnectionId,
        timed_out: bool,
    },
    /// The parent of a rank's process says how it ended.
    Exited {
        rank: Rank,
        exit: ProcessExit,
    },
    Heartbeat {
        connection: ConnectionId,
    },
    Join {
        connection: ConnectionId,
        fingerprint: Fingerprint,
        join: Join,
    },
    Leave {
        connection: ConnectionId,
    },
    ReportFailure {
        connection: ConnectionId,
        message: String,
    },
    /// The time of [`Core::next_wakeup`] has come.
    Tick,
}

/// What a coordinator does about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Says a last word and ends the connection.
    Dismiss {
        connection: ConnectionId,
        notice: ToMember,
    },
    Log(String),
    Notify {
        to: Vec<ConnectionId>,
        notice: ToMember,
    },
    Reply {
        call: CallId,
        reply: Reply,
    },
}

/// What a coordinator knows of its job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoordinatorStatus {
    /// Whether all ranks have joined.
    pub complete: bool,
    /// The ranks that are connected.
    pub joined: Vec<Rank>,
    /// The ranks that have left.
    pub left: Vec<Rank>,
    /// The ranks that have failed, in the order in which that became known.
    pub failed: Vec<RankFailure>,
    /// The ranks that have not joined yet.
    pub missing: Vec<Rank>,
}

pub(super) struct Core {
    settings: Settings,
    seats: Vec<Seat>,
    connections: BTreeMap<ConnectionId, Rank>,
    /// The ranks that are yet to join; none once the job is complete, which it stays.
    missing: BTreeSet<Rank>,
    complete: bool,
    failures: Vec<RankFailure>,
    /// The rank that left first.
    first_left: Option<Rank>,
    store: Store,
    barriers: Barriers,
    flight_logs: BTreeMap<Rank, FlightLog>,
    calls: BTreeMap<CallId, Waiting>,
    alarms: BTreeSet<(Duration, Alarm)>,
    last_tick: Duration,
    last_waiting_notice: Duration,
    waiting_notice_due: bool,
    actions: Vec<Action>,
}

/// Where a rank's process is.
enum Seat {
    Empty,
    Failed,
    Left,
    /// Its connection is gone; this is the cause unless its parent knows a better one.
    Lost(Box<Join>, FailureCause),
    Taken(Occupant),
}

struct Occupant {
    connection: ConnectionId,
    fingerprint: Fingerprint,
    join: Box<Join>,
    last_heard: Duration,
}

/// A call that has no answer yet.
struct Waiting {
    connection: ConnectionId,
    rank: Rank,
    timeout: Duration,
    deadline: Duration,
    target: Target,
}

enum Target {
    Barrier(String),
    Key(String),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Alarm {
    Call(CallId),
    Lost(Rank),
}

impl Core {
    pub(super) fn new(settings: Settings) -> Self {
        let ranks = 0..settings.world_size;
        Self {
            seats: ranks.clone().map(|_| Seat::Empty).collect(),
            connections: BTreeMap::new(),
            missing: ranks.map(Rank).collect(),
            complete: false,
            failures: Vec::new(),
            first_left: None,
            store: Store::default(),
            barriers: Barriers::new(settings.world_size),
            flight_logs: BTreeMap::new(),
            calls: BTreeMap::new(),
            alarms: BTreeSet::new(),
            last_tick: Duration::ZERO,
            last_waiting_notice: Duration::ZERO,
            waiting_notice_due: false,
            actions: Vec::new(),
            settings,
        }
    }

    /// Takes note of an event at `now`, the time since the coordinator's start.
    pub(super) fn handle(&mut self, now: Duration, event: Event) -> Vec<Action> {
        match event {
            Event::Call { connection, call, request } => {
                self.heard_from(now, connection);
                match self.call(now, connection, call, request) {
                    Ok(Some(reply)) => self.actions.push(Action::Reply { call, reply }),
                    Ok(None) => {}
                    Err(refusal) => self.refuse(call, refusal),
                }
            }
            Event::Cancelled { call } => drop(self.take_call(call)),
            Event::Closed { connection, timed_out } => self.closed(now, connection, timed_out),
            Event::Exited { rank, exit } => self.exited(rank, exit),
            Event::Heartbeat { connection } => self.heard_from(now, connection),
            Event::Join { connection, fingerprint, join } => match self.check_join(&join) {
                Ok(()) => self.join(now, connection, fingerprint, join),
                Err(refusal) => {
                    let notice = ToMember::Refused(refusal);
                    self.actions.push(Action::Dismiss { connection, notice });
                }
            },
            Event::Leave { connection } => self.leave(connection),
            Event::ReportFailure { connection, message } => {
                if let Some(rank) = self.connections.get(&connection) {
                    self.fail(*rank, FailureCause::Reported(message));
                }
            }
            Event::Tick => self.tick(now),
        }
        std::mem::take(&mut self.actions)
    }

    /// When to send the next [`Event::Tick`].
    pub(super) fn next_wakeup(&self) -> Duration {
        let routine = self.last_tick.saturating_add(self.tick_interval());
        self.alarms.first().map_or(routine, |(at, _)| routine.min(*at))
    }

    pub(super) fn status(&self) -> CoordinatorStatus {
        let in_seat = |wanted: fn(&Seat) -> bool| -> Vec<Rank> {
            let seats = (0..).map(Rank).zip(&self.seats);
            seats.filter(|(_, seat)| wanted(seat)).map(|(rank, _)| rank).collect()
        };
        CoordinatorStatus {
            complete: self.complete,
            joined: in_seat(|seat| matches!(seat, Seat::Taken(_))),
            left: in_seat(|seat| matches!(seat, Seat::Left)),
            failed: self.failures.clone(),
            missing: self.missing.iter().copied().collect(),
        }
    }

    /// What the ranks said last of their collectives.
    pub(super) fn flight_logs(&self) -> &BTreeMap<Rank, FlightLog> {
        &self.flight_logs
    }

    /// Often enough that a silent rank is found out at most an eighth of the timeout late.
    fn tick_interval(&self) -> Duration {
        let interval = self.settings.heartbeat_timeout / 8;
        interval.clamp(Duration::from_millis(10), Duration::from_secs(1))
    }

    fn tick(&mut self, now: Duration) {
        let own_silence = now.saturating_sub(self.last_tick);
        self.last_tick = now;
        while let Some((at, alarm)) = self.alarms.first().copied().filter(|(at, _)| *at <= now) {
            self.alarms.remove(&(at, alarm));
            match alarm {
                Alarm::Call(call) => self.expire(call),
                Alarm::Lost(rank) => {
                    if let Some(Seat::Lost(_, cause)) = self.seat_of(rank) {
                        self.fail(rank, cause.clone());
                    }
                }
            }
        }
        if self.complete {
            self.find_silent(now, own_silence);
        } else if self.waiting_notice_due
            && now >= self.last_waiting_notice.saturating_add(WAITING_INTERVAL)
        {
            self.last_waiting_notice = now;
            self.waiting_notice_due = false;
            self.notify_all(self.waiting_notice());
        }
    }
}

fn index(rank: Rank) -> Option<usize> {
    usize::try_from(rank.0).ok()
}
