//! A network that exists only in memory and a clock that only jumps: for tests.
//!
//! Each member is a thread. While one of them runs, time stands still; when all of them wait, it
//! jumps to the next thing that happens: an arrival, a deadline, the end of a sleep. So a test of
//! a 300 s limit takes no time, and an outcome does not depend on how fast the machine is.
//!
//! The network delivers everything, after [`Simulation::new`]'s latency; what crosses a partition
//! is delivered after it heals, as a transport that sends again would do.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use super::news::News;
use super::{Incoming, Operation, Outgoing, Step, Tag, Transport, TransportError};
use crate::communicator::Communicator;
use crate::descriptor::OperationId;
use crate::ids::{Member, Rank};
use crate::rendezvous::{FailureCause, RankFailure};

/// A simulated job; clones are the same one.
#[derive(Clone)]
pub struct Simulation {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Signalled whenever a member was woken.
    woken: Condvar,
    /// The rank of each member.
    ranks: Vec<Rank>,
    /// The lowest rank on the host of each rank.
    hosts: Vec<Rank>,
    latency: Duration,
}

/// What a member has put on the network so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Exchanges that it took part in.
    pub exchanges: usize,
    /// Bytes that it sent in them.
    pub bytes: usize,
}

struct State {
    now: Duration,
    members: Vec<Presence>,
    /// What will happen, by time and then in the order in which it was caused.
    future: BTreeMap<(Duration, u64), Event>,
    /// Events so far.
    events: u64,
    /// What waits for the partition to heal.
    held: Vec<Event>,
    /// The ranks on one side of the partition; empty when there is none.
    isolated: Vec<Rank>,
    /// By member.
    arrived: Vec<HashMap<Tag, Vec<u8>>>,
    /// By member.
    sent: Vec<Sent>,
    /// What each rank has heard.
    news: HashMap<Rank, News>,
    dead: Vec<RankFailure>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Running,
    Waiting { until: Duration },
    Left,
}

struct Event {
    from: Rank,
    to: Rank,
    what: What,
}

enum What {
    Message(Tag, Vec<u8>),
    Notice(OperationId, Vec<u8>),
    Failure(RankFailure),
}

impl Simulation {
    /// A job whose rank `r` has `devices[r]` members and a host of its own; a message to another
    /// rank takes `latency`.
    pub fn new(devices: &[u32], latency: Duration) -> Self {
        let hosts: Vec<usize> = (0..devices.len()).collect();
        Self::on_hosts(devices, &hosts, latency)
    }

    /// As [`Simulation::new`], with rank `r` on the host with the number `hosts[r]`.
    pub fn on_hosts(devices: &[u32], hosts: &[usize], latency: Duration) -> Self {
        let ranks: Vec<Rank> = devices
            .iter()
            .zip(0..)
            .flat_map(|(&count, rank)| (0..count).map(move |_| Rank(rank)))
            .collect();
        let state = State {
            now: Duration::ZERO,
            members: vec![Presence::Running; ranks.len()],
            future: BTreeMap::new(),
            events: 0,
            held: Vec::new(),
            isolated: Vec::new(),
            arrived: ranks.iter().map(|_| HashMap::new()).collect(),
            sent: vec![Sent::default(); ranks.len()],
            news: ranks.iter().map(|&rank| (rank, News::default())).collect(),
            dead: Vec::new(),
        };
        let lowest = |host| (0..).zip(hosts).find(|(_, other)| *other == host);
        let hosts = hosts.iter().filter_map(lowest).map(|(rank, _)| Rank(rank)).collect();
        let (state, woken) = (Mutex::new(state), Condvar::new());
        let shared = Shared { state, woken, ranks, hosts, latency };
        Self { shared: Arc::new(shared) }
    }

    /// Runs `body` for every member, each on a thread of its own, until all have returned; their
    /// collectives may take `timeout`. One run at a time.
    pub fn run<R: Send>(
        &self,
        timeout: Duration,
        body: impl Fn(Communicator) -> R + Sync,
    ) -> Vec<thread::Result<R>> {
        self.state().members.fill(Presence::Running);
        thread::scope(|scope| {
            let members = (0..self.shared.ranks.len()).zip(0..);
            let threads: Vec<_> = members
                .map(|(index, number)| {
                    let transport = Arc::new(self.clone());
                    let communicator = Communicator::new(Member(number), transport, timeout);
                    let body = &body;
                    scope.spawn(move || {
                        let _leave = Leave { simulation: self, index };
                        body(communicator)
                    })
                })
                .collect();
            threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
        })
    }

    /// What every member has sent so far.
    pub fn sent(&self) -> Vec<Sent> {
        self.state().sent.clone()
    }

    /// Has `member` sleep.
    pub fn sleep(&self, member: Member, duration: Duration) {
        let until = self.now().saturating_add(duration);
        let _: Option<()> = self.wait(member, until, |_| None);
    }

    /// Ends `rank`: nothing reaches it or leaves it any more, and all others hear of it after
    /// `detection`. What it sent before still arrives.
    pub fn kill(&self, rank: Rank, cause: FailureCause, detection: Duration) {
        let failure = RankFailure { rank, cause };
        let mut state = self.state();
        state.dead.push(failure.clone());
        let at = state.now.saturating_add(detection);
        for to in self.ranks().filter(|other| *other != rank) {
            state.schedule(at, Event { from: to, to, what: What::Failure(failure.clone()) });
        }
    }

    /// Cuts the network between `ranks` and all others.
    pub fn partition(&self, ranks: &[Rank]) {
        self.state().isolated = ranks.to_vec();
    }

    /// Ends the partition.
    pub fn heal(&self) {
        let mut state = self.state();
        state.isolated.clear();
        let at = state.now.saturating_add(self.shared.latency);
        for event in std::mem::take(&mut state.held) {
            state.schedule(at, event);
        }
    }

    fn ranks(&self) -> impl Iterator<Item = Rank> + '_ {
        self.shared.ranks.chunk_by(PartialEq::eq).filter_map(|members| members.first().copied())
    }

    fn send(&self, state: &mut State, event: Event) {
        let latency = if event.from == event.to { Duration::ZERO } else { self.shared.latency };
        let at = state.now.saturating_add(latency);
        state.schedule(at, event);
    }

    /// Has `member` wait until `ready` returns something or until it is late.
    fn wait<T>(
        &self,
        member: Member,
        until: Duration,
        mut ready: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let index = member.0 as usize;
        let mut state = self.state();
        loop {
            if let Some(value) = ready(&mut state) {
                return Some(value);
            }
            if state.now >= until {
                return None;
            }
            state.members[index] = Presence::Waiting { until };
            self.advance(&mut state);
            while state.members[index] != Presence::Running {
                state = self.shared.woken.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Lets time pass while nobody runs.
    fn advance(&self, state: &mut State) {
        while !state.members.contains(&Presence::Running) {
            let limits = state.members.iter().filter_map(|presence| match presence {
                Presence::Waiting { until } => Some(*until),
                Presence::Running | Presence::Left => None,
            });
            let event = state.future.first_key_value().map(|((at, _), _)| *at);
            // With everybody gone there is nobody to let time pass for.
            let Some(next) = limits.min().map(|limit| event.map_or(limit, |at| at.min(limit)))
            else {
                return;
            };
            state.now = state.now.max(next);
            while let Some(entry) = state.future.first_entry() {
                if entry.key().0 > state.now {
                    break;
                }
                let event = entry.remove();
                self.happen(state, event);
            }
            for presence in &mut state.members {
                if matches!(presence, Presence::Waiting { until } if *until <= state.now) {
                    *presence = Presence::Running;
                }
            }
        }
        self.shared.woken.notify_all();
    }

    fn happen(&self, state: &mut State, event: Event) {
        if state.isolated.contains(&event.from) != state.isolated.contains(&event.to) {
            state.held.push(event);
            return;
        }
        if state.dead.iter().any(|failure| failure.rank == event.to) {
            return;
        }
        let news = state.news.entry(event.to).or_default();
        match event.what {
            What::Message(tag, bytes) => {
                if !news.is_retired(tag.to, tag.operation) {
                    state.arrived[tag.to.0 as usize].insert(tag, bytes);
                }
            }
            What::Notice(operation, notice) => news.abort(operation, event.from, notice),
            What::Failure(failure) => drop(news.fail(failure)),
        }
        for (presence, rank) in state.members.iter_mut().zip(&self.shared.ranks) {
            if *rank == event.to && *presence != Presence::Left {
                *presence = Presence::Running;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn schedule(&mut self, at: Duration, event: Event) {
        self.future.insert((at, self.events), event);
        self.events += 1;
    }

    fn death(&self, rank: Rank) -> Option<TransportError> {
        let failure = self.dead.iter().find(|failure| failure.rank == rank);
        failure.map(|failure| TransportError::RankFailed(failure.clone()))
    }
}

impl Transport for Simulation {
    fn now(&self) -> Duration {
        self.state().now
    }

    fn rank_of(&self, member: Member) -> Option<Rank> {
        self.shared.ranks.get(member.0 as usize).copied()
    }

    fn host_of(&self, member: Member) -> Option<Rank> {
        self.shared.hosts.get(self.rank_of(member)?.0 as usize).copied()
    }

    fn exchange(
        &self,
        step: &Step<'_>,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), TransportError> {
        let me = step.operation.me;
        let Some(own) = self.rank_of(me) else {
            let detail = "the job has no such device".to_owned();
            return Err(TransportError::Peer { peer: me, detail });
        };
        let mut state = self.state();
        if let Some(death) = state.death(own) {
            return Err(death);
        }
        if let Some(sent) = state.sent.get_mut(me.0 as usize) {
            sent.exchanges += 1;
            sent.bytes += sends.iter().map(|send| send.bytes.len()).sum::<usize>();
        }
        for send in sends {
            if let Some(to) = self.rank_of(send.to) {
                let what = What::Message(step.tag(me, send.to), send.bytes.to_vec());
                self.send(&mut state, Event { from: own, to, what });
            }
        }
        drop(state);

        let waker = Waker::from(Arc::new(WakeMember { simulation: self.clone(), member: me }));
        let mut filled = vec![false; receives.len()];
        let outcome = self.wait(me, step.deadline, |state| {
            let arrived = &mut state.arrived[me.0 as usize];
            for (receive, filled) in receives.iter_mut().zip(&mut filled) {
                let Some(bytes) = arrived.remove(&step.tag(receive.from, me)) else { continue };
                if bytes.len() != receive.bytes.len() {
                    let (found, expected) = (bytes.len(), receive.bytes.len());
                    let detail = format!("sent {found} bytes where {expected} are expected");
                    return Some(Err(TransportError::Peer { peer: receive.from, detail }));
                }
                receive.bytes.copy_from_slice(&bytes);
                *filled = true;
            }
            let missing = receives.iter().zip(&filled).filter(|(_, filled)| !**filled);
            let pending: Vec<Member> = missing.map(|(receive, _)| receive.from).collect();
            let rank_of = |member| self.rank_of(member);
            let news = state.news.get(&own);
            let interruption =
                news.and_then(|news| news.interruption(&step.operation, &pending, rank_of));
            if let Some(error) = state.death(own).or(interruption) {
                return Some(Err(error));
            }
            if pending.is_empty() {
                return Some(Ok(()));
            }
            let context = Context::from_waker(&waker);
            let cancelled =
                step.cancel.is_some_and(|token| token.poll_cancelled(&context).is_ready());
            cancelled.then_some(Err(TransportError::Cancelled))
        });
        outcome.unwrap_or_else(|| {
            let missing = receives.iter().zip(&filled).filter(|(_, filled)| !**filled);
            Err(TransportError::Deadline {
                pending: missing.map(|(receive, _)| receive.from).collect(),
            })
        })
    }

    fn abort(&self, operation: &Operation<'_>, notice: &[u8]) {
        let Some(from) = self.rank_of(operation.me) else { return };
        let mut told: Vec<Rank> =
            operation.members.iter().filter_map(|&member| self.rank_of(member)).collect();
        told.sort_unstable();
        told.dedup();
        let mut state = self.state();
        if state.death(from).is_some() {
            return;
        }
        for to in told {
            let what = What::Notice(operation.id, notice.to_vec());
            self.send(&mut state, Event { from, to, what });
        }
    }

    fn retire(&self, operation: &Operation<'_>) {
        let Some(rank) = self.rank_of(operation.me) else { return };
        let state = &mut *self.state();
        let news = state.news.entry(rank).or_default();
        news.retire(operation);
        if let Some(arrived) = state.arrived.get_mut(operation.me.0 as usize) {
            arrived.retain(|tag, _| !news.is_retired(tag.to, tag.operation));
        }
    }

    fn fail_rank(&self, failure: RankFailure) {
        let mut state = self.state();
        for to in self.ranks() {
            self.send(&mut state, Event { from: to, to, what: What::Failure(failure.clone()) });
        }
    }

    fn flush(&self, _timeout: Duration) {}
}

/// A member's thread that returns or unwinds no longer holds up time.
struct Leave<'a> {
    simulation: &'a Simulation,
    index: usize,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut state = self.simulation.state();
        state.members[self.index] = Presence::Left;
        self.simulation.advance(&mut state);
    }
}

/// Wakes a member that waits, for a cancel token.
struct WakeMember {
    simulation: Simulation,
    member: Member,
}

impl Wake for WakeMember {
    fn wake(self: Arc<Self>) {
        let mut state = self.simulation.state();
        if let Some(presence @ Presence::Waiting { .. }) =
            state.members.get_mut(self.member.0 as usize)
        {
            *presence = Presence::Running;
            self.simulation.shared.woken.notify_all();
        }
    }
}
