//! Who holds which seat: joining, leaving, and the ways to be lost.

use std::time::Duration;

use super::{
    Action, Alarm, ConnectionId, Core, EXIT_GRACE, MAX_HOST_BYTES, OWN_SILENCE, Occupant, Seat,
    Settings, Target, index,
};
use crate::rendezvous::message::{Join, Reply, ToMember};
use crate::rendezvous::{
    CallRefusal, FailureCause, JoinRefusal, MissingRanks, ProcessExit, RankFailure,
};
use crate::{Fingerprint, Rank, RankInfo};

impl Core {
    pub(super) fn check_join(&self, join: &Join) -> Result<(), JoinRefusal> {
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

    pub(super) fn join(
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
        let took = now.as_secs_f64();
        let complete =
            format!("{attempt} of job {job} is complete: {world_size} ranks, after {took:.1} s");
        let notice = ToMember::Joined { ranks, heartbeat_timeout: *heartbeat_timeout };
        self.actions.push(Action::Log(complete));
        self.notify_all(notice);
    }

    pub(super) fn leave(&mut self, connection: ConnectionId) {
        let Some(rank) = self.connections.remove(&connection) else { return };
        self.forget_calls(connection);
        self.actions.push(Action::Dismiss { connection, notice: ToMember::Left });
        if !self.complete {
            self.vacate(rank);
        } else if let Some(Seat::Taken(_)) = self.seat_of(rank) {
            self.left(rank);
        }
    }

    pub(super) fn closed(&mut self, now: Duration, connection: ConnectionId, timed_out: bool) {
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

    pub(super) fn exited(&mut self, rank: Rank, exit: ProcessExit) {
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

    pub(super) fn fail(&mut self, rank: Rank, cause: FailureCause) {
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

    pub(super) fn seat_of(&self, rank: Rank) -> Option<&Seat> {
        self.seats.get(index(rank)?)
    }

    /// Changes a seat and returns what it was.
    fn seat(&mut self, rank: Rank, new: Seat) -> Seat {
        match index(rank).and_then(|index| self.seats.get_mut(index)) {
            Some(seat) => std::mem::replace(seat, new),
            None => Seat::Empty,
        }
    }

    pub(super) fn heard_from(&mut self, now: Duration, connection: ConnectionId) {
        let Some(rank) = self.connections.get(&connection) else { return };
        let seat = index(*rank).and_then(|index| self.seats.get_mut(index));
        if let Some(Seat::Taken(occupant)) = seat {
            occupant.last_heard = now;
        }
    }

    pub(super) fn find_silent(&mut self, now: Duration, own_silence: Duration) {
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

    pub(super) fn waiting_notice(&self) -> ToMember {
        ToMember::Waiting(MissingRanks::new(self.missing.iter().copied()))
    }

    pub(super) fn notify_all(&mut self, notice: ToMember) {
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
}

fn duplicate(other: &Join) -> JoinRefusal {
    JoinRefusal::Duplicate {
        rank: other.rank,
        host: other.host.clone(),
        process_id: other.process_id,
    }
}
