//! The coordinator's decisions: a state machine without I/O or clock.
//!
//! It is told the time with every [`Event`] and answers with [`Action`]s; its shell owns the
//! connections and makes both happen. Seats (who is who) are kept here; `store` and `barrier` keep
//! what calls wait for.
//!
//! Rules: a rank fails once, by its first cause, except that its parent's report of how it ended is
//! waited for briefly when its connection closes. Once a rank has failed, nothing waits: what it
//! waits for may never come. Once a rank has left, no barrier waits.

mod barrier;
mod store;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use self::barrier::{Arrival, Barriers};
use self::store::Store;
use super::message::{Join, Reply, Request, ToMember};
use super::{CallRefusal, FailureCause, JoinRefusal, MissingRanks, ProcessExit, RankFailure};
use crate::{Attempt, Fingerprint, JobId, Rank, RankInfo};

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

    // Membership.

    fn check_join(&self, join: &Join) -> Result<(), JoinRefusal> {
        let Settings { job, attempt, world_size, .. } = &self.settings;
        if join.job != *job {
            return Err(JoinRefusal::OtherJob { expected: job.clone(), found: join.job.clone() });
        }
        if join.attempt != *attempt {
            return Err(JoinRefusal::OtherAttempt { expected: *attempt, found: join.attempt });
        }
        if join.world_size != *world_size {
            let (expected, found) = (*world_size, join.world_size);
            return Err(JoinRefusal::OtherWorldSize { expected, found });
        }
        let Some(seat) = index(join.rank).and_then(|index| self.seats.get(index)) else {
            return Err(JoinRefusal::OutOfRange { rank: join.rank, world_size: *world_size });
        };
        if join.host.name.len().max(join.host.boot_id.len()) > MAX_HOST_BYTES {
            let long = format!("a host name of more than {MAX_HOST_BYTES} bytes");
            return Err(JoinRefusal::Malformed(long));
        }
        let present = self.seats.iter().filter_map(|seat| match seat {
            Seat::Taken(occupant) if occupant.join.rank != join.rank => Some(occupant.join.devices),
            _ => None,
        });
        if present.chain([join.devices]).try_fold(0, u32::checked_add).is_none() {
            return Err(JoinRefusal::Malformed(format!("more than {} devices", u32::MAX)));
        }
        if let Some(failure) = self.failures.first() {
            return Err(JoinRefusal::JobFailed(failure.clone()));
        }
        match (seat, self.first_left) {
            (Seat::Left, _) => Err(JoinRefusal::HasLeft(join.rank)),
            (_, Some(left)) if !self.complete => Err(JoinRefusal::Incomplete(left)),
            (Seat::Taken(Occupant { join: other, .. }), _)
                if self.complete || other.incarnation != join.incarnation =>
            {
                Err(duplicate(other))
            }
            (Seat::Lost(other, _), _) => Err(duplicate(other)),
            (Seat::Empty | Seat::Failed | Seat::Taken(_), _) => Ok(()),
        }
    }

    fn join(
        &mut self,
        now: Duration,
        connection: ConnectionId,
        fingerprint: Fingerprint,
        join: Join,
    ) {
        let rank = join.rank;
        let occupant = Occupant { connection, fingerprint, join: Box::new(join), last_heard: now };
        if let Seat::Taken(older) = self.seat(rank, Seat::Taken(occupant)) {
            // The same process again: its older connection is dead, or will be dropped by it.
            self.connections.remove(&older.connection);
        }
        self.connections.insert(connection, rank);
        self.missing.remove(&rank);
        if self.missing.is_empty() {
            self.complete(now);
        } else {
            let notice = self.waiting_notice();
            self.actions.push(Action::Notify { to: vec![connection], notice });
            self.waiting_notice_due = true;
        }
    }

    fn complete(&mut self, now: Duration) {
        self.complete = true;
        let mut ranks = Vec::with_capacity(self.seats.len());
        for seat in &mut self.seats {
            if let Seat::Taken(occupant) = seat {
                occupant.last_heard = now;
                ranks.push(RankInfo {
                    rank: occupant.join.rank,
                    host: occupant.join.host.clone(),
                    process_id: occupant.join.process_id,
                    devices: occupant.join.devices,
                    address: occupant.join.address,
                    fingerprint: occupant.fingerprint,
                });
            }
        }
        let Settings { job, attempt, world_size, heartbeat_timeout } = &self.settings;
        let complete = format!("{attempt} of job {job} is complete: {world_size} ranks");
        let notice = ToMember::Joined { ranks, heartbeat_timeout: *heartbeat_timeout };
        self.actions.push(Action::Log(complete));
        self.notify_all(notice);
    }

    fn leave(&mut self, connection: ConnectionId) {
        let Some(rank) = self.connections.remove(&connection) else { return };
        self.forget_calls(connection);
        self.actions.push(Action::Dismiss { connection, notice: ToMember::Left });
        if !self.complete {
            self.vacate(rank);
        } else if let Some(Seat::Taken(_)) = self.seat_of(rank) {
            self.left(rank);
        }
    }

    fn closed(&mut self, now: Duration, connection: ConnectionId, timed_out: bool) {
        let Some(rank) = self.connections.remove(&connection) else { return };
        self.forget_calls(connection);
        if !self.complete {
            self.vacate(rank);
        } else if let Some(Seat::Taken(occupant)) = self.seat_of(rank)
            && occupant.connection == connection
        {
            let join = occupant.join.clone();
            let cause = if timed_out {
                FailureCause::Silent { for_: now.saturating_sub(occupant.last_heard) }
            } else {
                FailureCause::Disconnected
            };
            self.seat(rank, Seat::Lost(join, cause));
            self.alarms.insert((now.saturating_add(EXIT_GRACE), Alarm::Lost(rank)));
        }
    }

    fn exited(&mut self, rank: Rank, exit: ProcessExit) {
        if let Some(cause) = exit.failure() {
            self.fail(rank, cause);
        } else if matches!(self.seat_of(rank), Some(Seat::Empty | Seat::Lost(..) | Seat::Taken(_)))
        {
            self.left(rank);
        }
    }

    /// A rank is gone and has done its part.
    fn left(&mut self, rank: Rank) {
        self.seat(rank, Seat::Left);
        self.first_left.get_or_insert(rank);
        self.missing.remove(&rank);
        self.actions.push(Action::Log(format!("{rank} has left")));
        if self.complete {
            let at_barriers = self.calls.iter().filter_map(|(call, waiting)| {
                matches!(waiting.target, Target::Barrier(_)).then_some(*call)
            });
            for call in at_barriers.collect::<Vec<_>>() {
                self.finish(call, Reply::Refused(CallRefusal::RankLeft(rank)));
            }
        } else {
            self.dismiss_all(&JoinRefusal::Incomplete(rank));
        }
    }

    fn fail(&mut self, rank: Rank, cause: FailureCause) {
        if matches!(self.seat_of(rank), None | Some(Seat::Failed)) {
            return;
        }
        self.seat(rank, Seat::Failed);
        self.missing.remove(&rank);
        let failure = RankFailure { rank, cause };
        self.actions.push(Action::Log(failure.to_string()));
        self.failures.push(failure.clone());
        if self.complete {
            self.notify_all(ToMember::Failed(failure.clone()));
        } else {
            self.dismiss_all(&JoinRefusal::JobFailed(failure.clone()));
        }
        for call in std::mem::take(&mut self.calls).into_keys() {
            self.refuse(call, CallRefusal::RankFailed(failure.clone()));
        }
        self.alarms.retain(|(_, alarm)| matches!(alarm, Alarm::Lost(_)));
        self.barriers.clear();
        self.store.clear_waiting();
    }

    /// Gives up a seat of a job that is not complete yet.
    fn vacate(&mut self, rank: Rank) {
        if let Some(Seat::Taken(_)) = self.seat_of(rank) {
            self.seat(rank, Seat::Empty);
            self.missing.insert(rank);
            self.waiting_notice_due = true;
        }
    }

    fn seat_of(&self, rank: Rank) -> Option<&Seat> {
        self.seats.get(index(rank)?)
    }

    /// Changes a seat and returns what it was.
    fn seat(&mut self, rank: Rank, new: Seat) -> Seat {
        match index(rank).and_then(|index| self.seats.get_mut(index)) {
            Some(seat) => std::mem::replace(seat, new),
            None => Seat::Empty,
        }
    }

    fn heard_from(&mut self, now: Duration, connection: ConnectionId) {
        let Some(rank) = self.connections.get(&connection) else { return };
        let seat = index(*rank).and_then(|index| self.seats.get_mut(index));
        if let Some(Seat::Taken(occupant)) = seat {
            occupant.last_heard = now;
        }
    }

    fn waiting_notice(&self) -> ToMember {
        ToMember::Waiting(MissingRanks::new(self.missing.iter().copied()))
    }

    fn notify_all(&mut self, notice: ToMember) {
        let to = self.connections.keys().copied().collect();
        self.actions.push(Action::Notify { to, notice });
    }

    fn dismiss_all(&mut self, refusal: &JoinRefusal) {
        for (connection, rank) in std::mem::take(&mut self.connections) {
            self.vacate(rank);
            let notice = ToMember::Refused(refusal.clone());
            self.actions.push(Action::Dismiss { connection, notice });
        }
    }

    // Calls.

    /// Does what `request` asks; `None` when that has to wait.
    fn call(
        &mut self,
        now: Duration,
        connection: ConnectionId,
        call: CallId,
        request: Request,
    ) -> Result<Option<Reply>, CallRefusal> {
        let rank = self.connections.get(&connection).filter(|_| self.complete);
        let rank = *rank.ok_or(CallRefusal::NotJoined)?;
        let found = |value: Option<_>| value.map_or(Reply::Absent, Reply::Value);
        match request {
            Request::Barrier { name, timeout } => {
                self.check_nobody_failed()?;
                if let Some(left) = self.first_left {
                    return Err(CallRefusal::RankLeft(left));
                }
                match self.barriers.arrive(&name, rank, call)? {
                    Arrival::Complete(calls) => {
                        for call in calls {
                            self.take_call(call);
                            self.actions.push(Action::Reply { call, reply: Reply::Done });
                        }
                    }
                    Arrival::Waiting => {
                        self.wait(now, connection, rank, call, timeout, Target::Barrier(name));
                    }
                }
                Ok(None)
            }
            Request::Delete { key } => {
                Ok(Some(if self.store.delete(&key) { Reply::Done } else { Reply::Absent }))
            }
            Request::Get { key, timeout } => {
                if let Some(value) = self.store.value(&key) {
                    return Ok(Some(Reply::Value(value)));
                }
                self.check_nobody_failed()?;
                self.store.wait(&key, call)?;
                self.wait(now, connection, rank, call, timeout, Target::Key(key));
                Ok(None)
            }
            Request::List { prefix } => self.store.list(&prefix).map(Reply::Entries).map(Some),
            Request::Set { key, value, overwrite } => {
                for waiting in self.store.set(key, value.clone(), overwrite)? {
                    self.finish(waiting, Reply::Value(value.clone()));
                }
                Ok(Some(Reply::Done))
            }
            Request::TryGet { key } => Ok(Some(found(self.store.value(&key)))),
        }
    }

    fn check_nobody_failed(&self) -> Result<(), CallRefusal> {
        match self.failures.first() {
            Some(failure) => Err(CallRefusal::RankFailed(failure.clone())),
            None => Ok(()),
        }
    }

    fn wait(
        &mut self,
        now: Duration,
        connection: ConnectionId,
        rank: Rank,
        call: CallId,
        timeout: Duration,
        target: Target,
    ) {
        let deadline = now.saturating_add(timeout);
        self.alarms.insert((deadline, Alarm::Call(call)));
        self.calls.insert(call, Waiting { connection, rank, timeout, deadline, target });
    }

    /// Removes a waiting call from everywhere.
    fn take_call(&mut self, call: CallId) -> Option<Waiting> {
        let waiting = self.calls.remove(&call)?;
        self.alarms.remove(&(waiting.deadline, Alarm::Call(call)));
        match &waiting.target {
            Target::Barrier(name) => self.barriers.withdraw(name, waiting.rank),
            Target::Key(key) => self.store.stop_waiting(key, call),
        }
        Some(waiting)
    }

    fn finish(&mut self, call: CallId, reply: Reply) {
        if self.take_call(call).is_some() {
            self.actions.push(Action::Reply { call, reply });
        }
    }

    fn refuse(&mut self, call: CallId, refusal: CallRefusal) {
        self.actions.push(Action::Reply { call, reply: Reply::Refused(refusal) });
    }

    fn forget_calls(&mut self, connection: ConnectionId) {
        let of_connection = self
            .calls
            .iter()
            .filter_map(|(call, waiting)| (waiting.connection == connection).then_some(*call));
        for call in of_connection.collect::<Vec<_>>() {
            self.take_call(call);
        }
    }

    // Time.

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

    fn expire(&mut self, call: CallId) {
        let Some(Waiting { timeout, target, .. }) = self.calls.get(&call) else { return };
        let timeout = *timeout;
        match target {
            Target::Barrier(name) => {
                let (calls, refusal) = self.barriers.expire(name, timeout);
                for call in calls {
                    self.finish(call, Reply::Refused(refusal.clone()));
                }
            }
            Target::Key(_) => {
                let missing = MissingRanks::default();
                let refusal = CallRefusal::Late { timeout, missing };
                self.finish(call, Reply::Refused(refusal));
            }
        }
    }

    fn find_silent(&mut self, now: Duration, own_silence: Duration) {
        let mut silent = Vec::new();
        for seat in &mut self.seats {
            let Seat::Taken(occupant) = seat else { continue };
            if own_silence > OWN_SILENCE {
                let excused = occupant.last_heard.saturating_add(own_silence);
                occupant.last_heard = excused.min(now);
            }
            let for_ = now.saturating_sub(occupant.last_heard);
            if for_ > self.settings.heartbeat_timeout {
                silent.push((occupant.join.rank, FailureCause::Silent { for_ }));
            }
        }
        for (rank, cause) in silent {
            self.fail(rank, cause);
        }
    }
}

fn duplicate(other: &Join) -> JoinRefusal {
    JoinRefusal::Duplicate {
        rank: other.rank,
        host: other.host.clone(),
        process_id: other.process_id,
    }
}

fn index(rank: Rank) -> Option<usize> {
    usize::try_from(rank.0).ok()
}
