//! What members ask for: done at once, or kept until it can be or its time is up.

use std::time::Duration;

use super::barrier::Arrival;
use super::{Action, Alarm, CallId, ConnectionId, Core, Target, Waiting};
use crate::rendezvous::message::{Reply, Request};
use crate::rendezvous::{CallRefusal, MissingRanks};
use crate::{FLIGHT_ENTRIES, FlightLog, Rank};

impl Core {
    /// Does what `request` asks; `None` when that has to wait.
    pub(super) fn call(
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
            Request::Flight(log) => self.keep_flight_log(rank, log).map(|()| Some(Reply::Done)),
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

    /// Keeps the newest log of a rank; of two that are as new, the longer.
    fn keep_flight_log(&mut self, rank: Rank, log: FlightLog) -> Result<(), CallRefusal> {
        let count = |entries: usize| u64::try_from(entries).unwrap_or(u64::MAX);
        if log.entries.len() > FLIGHT_ENTRIES {
            let what = "a flight log of entries".to_owned();
            let (found, limit) = (count(log.entries.len()), count(FLIGHT_ENTRIES));
            return Err(CallRefusal::TooLarge { what, found, limit });
        }
        let news = |log: &FlightLog| (log.recorded, log.entries.len());
        let kept = self.flight_logs.entry(rank).or_default();
        if news(&log) >= news(kept) {
            *kept = log;
        }
        Ok(())
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
    pub(super) fn take_call(&mut self, call: CallId) -> Option<Waiting> {
        let waiting = self.calls.remove(&call)?;
        self.alarms.remove(&(waiting.deadline, Alarm::Call(call)));
        match &waiting.target {
            Target::Barrier(name) => self.barriers.withdraw(name, waiting.rank),
            Target::Key(key) => self.store.stop_waiting(key, call),
        }
        Some(waiting)
    }

    pub(super) fn expire(&mut self, call: CallId) {
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

    pub(super) fn finish(&mut self, call: CallId, reply: Reply) {
        if self.take_call(call).is_some() {
            self.actions.push(Action::Reply { call, reply });
        }
    }

    pub(super) fn refuse(&mut self, call: CallId, refusal: CallRefusal) {
        self.actions.push(Action::Reply { call, reply: Reply::Refused(refusal) });
    }

    pub(super) fn forget_calls(&mut self, connection: ConnectionId) {
        let of_connection = self
            .calls
            .iter()
            .filter_map(|(call, waiting)| (waiting.connection == connection).then_some(*call));
        for call in of_connection.collect::<Vec<_>>() {
            self.take_call(call);
        }
    }
}
