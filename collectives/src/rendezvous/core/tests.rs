//! The core with N members and a clock that only the test moves.

use std::collections::HashMap;
use std::rc::Rc;

use proptest::prelude::*;

use super::*;
use crate::rendezvous::JoinRefusal;
use crate::{CollectiveKind, FLIGHT_ENTRIES, FlightEntry, FlightState, HostId, Member, Topology};

const HEARTBEAT: Duration = Duration::from_secs(8);
const SECOND: Duration = Duration::from_secs(1);

/// A coordinator's core, and all that it has said to whom.
struct Sim {
    core: Core,
    now: Duration,
    last_id: u64,
    notices: HashMap<ConnectionId, Vec<Rc<ToMember>>>,
    dismissed: HashMap<ConnectionId, ToMember>,
    replies: HashMap<CallId, Reply>,
    log: Vec<String>,
}

impl Sim {
    fn new(world_size: u32) -> Self {
        let core = Core::new(Settings {
            job: JobId::new("sim").unwrap(),
            attempt: Attempt(3),
            world_size,
            heartbeat_timeout: HEARTBEAT,
        });
        Self {
            core,
            now: Duration::ZERO,
            last_id: 0,
            notices: HashMap::new(),
            dismissed: HashMap::new(),
            replies: HashMap::new(),
            log: Vec::new(),
        }
    }

    /// A job whose ranks have all joined, and their connections.
    fn complete(world_size: u32) -> (Self, Vec<ConnectionId>) {
        let mut sim = Self::new(world_size);
        let members = (0..world_size).map(|rank| sim.join(join(rank, world_size))).collect();
        sim.notices.clear();
        sim.log.clear();
        (sim, members)
    }

    fn tell(&mut self, event: Event) {
        for action in self.core.handle(self.now, event) {
            match action {
                Action::Dismiss { connection, notice } => {
                    assert_eq!(self.dismissed.insert(connection, notice), None, "two last words");
                }
                Action::Log(text) => self.log.push(text),
                Action::Notify { to, notice } => {
                    let notice = Rc::new(notice);
                    for connection in to {
                        self.notices.entry(connection).or_default().push(Rc::clone(&notice));
                    }
                }
                Action::Reply { call, reply } => {
                    assert_eq!(self.replies.insert(call, reply), None, "two replies to {call:?}");
                }
            }
        }
    }

    fn id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn join(&mut self, join: Join) -> ConnectionId {
        let connection = ConnectionId(self.id());
        let fingerprint = Fingerprint([u8::try_from(join.rank.0 % 251).unwrap(); 32]);
        self.tell(Event::Join { connection, fingerprint, join });
        connection
    }

    fn refused(&mut self, join: Join) -> String {
        let connection = self.join(join);
        match self.dismissed.get(&connection) {
            Some(ToMember::Refused(refusal)) => refusal.to_string(),
            other => panic!("{other:?}"),
        }
    }

    fn call(&mut self, connection: ConnectionId, request: Request) -> CallId {
        let call = CallId(self.id());
        self.tell(Event::Call { connection, call, request });
        call
    }

    fn barrier(&mut self, connection: ConnectionId, name: &str, timeout: Duration) -> CallId {
        self.call(connection, Request::Barrier { name: name.into(), timeout })
    }

    fn get(&mut self, connection: ConnectionId, key: &str, timeout: Duration) -> CallId {
        self.call(connection, Request::Get { key: key.into(), timeout })
    }

    fn close(&mut self, connection: ConnectionId) {
        self.tell(Event::Closed { connection, timed_out: false });
    }

    /// Lets time pass, in which `alive` give signs of life and the core is woken when it wants.
    fn pass(&mut self, time: Duration, alive: &[ConnectionId]) {
        let end = self.now + time;
        let mut beat = self.now;
        loop {
            beat = if beat <= self.now { self.now + SECOND } else { beat };
            let wakeup = self.core.next_wakeup();
            self.now = wakeup.min(beat).max(self.now).min(end);
            if self.now == beat {
                for connection in alive {
                    self.tell(Event::Heartbeat { connection: *connection });
                }
            }
            if self.now >= wakeup {
                self.tell(Event::Tick);
            }
            if self.now == end {
                return;
            }
        }
    }

    fn refusal(&self, call: CallId) -> String {
        match self.replies.get(&call) {
            Some(Reply::Refused(refusal)) => refusal.to_string(),
            other => panic!("{other:?}"),
        }
    }

    fn failures(&self) -> Vec<String> {
        self.core.failures.iter().map(ToString::to_string).collect()
    }

    /// How much the core remembers of calls.
    fn memory(&self) -> [usize; 3] {
        let core = &self.core;
        [core.calls.len(), core.store.waiting_count(), core.barriers.waiting_count()]
    }
}

fn join(rank: u32, world_size: u32) -> Join {
    Join {
        job: JobId::new("sim").unwrap(),
        attempt: Attempt(3),
        rank: Rank(rank),
        world_size,
        incarnation: 7000 + u64::from(rank),
        host: HostId {
            name: format!("host{}", rank / 2),
            boot_id: format!("boot{}", rank / 2),
            network: 4,
        },
        process_id: 100 + rank,
        devices: 1 + rank % 3,
        address: ([10, 0, 0, 1], 4000).into(),
    }
}

#[test]
fn ranks_that_join_in_any_order_get_one_topology_in_rank_order() {
    let mut sim = Sim::new(5);
    let members: Vec<_> = [3, 1, 4, 0, 2].map(|rank| sim.join(join(rank, 5))).into();
    let waiting = MissingRanks::new([0, 1, 2, 4].map(Rank).into_iter());
    assert_eq!(*sim.notices[&members[0]][0], ToMember::Waiting(waiting));
    let last = |member| ToMember::clone(sim.notices[member].last().unwrap());
    let ToMember::Joined { ranks, .. } = last(&members[4]) else { panic!("{:?}", sim.notices) };
    for member in &members {
        let joined = ToMember::Joined { ranks: ranks.clone(), heartbeat_timeout: HEARTBEAT };
        assert_eq!(last(member), joined);
    }
    let topology = Topology::new(JobId::new("sim").unwrap(), Attempt(3), ranks).unwrap();
    assert_eq!(topology.member_count(), 1 + 2 + 3 + 1 + 2);
    assert_eq!(topology.rank(Rank(3)).unwrap().process_id, 103);
    assert_eq!(topology.rank(Rank(3)).unwrap().fingerprint, Fingerprint([3; 32]));
    assert_eq!(sim.log, ["attempt 3 of job sim is complete: 5 ranks, after 0.0 s"]);
}

#[test]
fn a_storm_of_joins_is_no_trouble() {
    let start = std::time::Instant::now();
    let (mut sim, members) = Sim::complete(4096);
    assert!(sim.core.status().complete);
    let calls: Vec<_> = members.iter().map(|m| sim.barrier(*m, "b", SECOND)).collect();
    assert!(calls.iter().all(|call| sim.replies[call] == Reply::Done));
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn strangers_are_told_why() {
    let mut sim = Sim::new(2);
    let other_job = Join { job: JobId::new("other").unwrap(), ..join(0, 2) };
    assert!(sim.refused(other_job).starts_with("this is job sim, not other"));
    let stale = Join { attempt: Attempt(2), ..join(0, 2) };
    assert!(sim.refused(stale).starts_with("this is attempt 3 of the job, not attempt 2"));
    assert!(sim.refused(join(0, 3)).starts_with("the job has 2 processes, not 3"));
    assert_eq!(sim.refused(join(2, 2)), "the job has ranks 0 to 1, not rank 2");
    let long = Join { host: HostId { name: "h".repeat(300), ..join(0, 2).host }, ..join(0, 2) };
    assert_eq!(sim.refused(long), "a join with a host name of more than 256 bytes");
    sim.join(Join { devices: u32::MAX, ..join(1, 2) });
    assert_eq!(sim.refused(join(0, 2)), "a join with more than 4294967295 devices");
    assert_eq!(sim.core.status().joined, [Rank(1)]);
}

#[test]
fn the_same_rank_twice_is_refused_and_the_same_process_twice_is_not() {
    let mut sim = Sim::new(2);
    let first = sim.join(join(0, 2));
    let twin = Join { incarnation: 1, process_id: 555, ..join(0, 2) };
    let refusal = "rank 0 has joined already, as process 100 on host0: start each rank once";
    assert_eq!(sim.refused(twin.clone()), refusal);
    // The first one's connection broke, and the coordinator has not noticed yet.
    let again = sim.join(join(0, 2));
    sim.close(first);
    assert_eq!(sim.core.status().joined, [Rank(0)]);
    sim.join(join(1, 2));
    assert!(sim.core.status().complete);
    let last = sim.notices[&again].last().unwrap();
    assert!(matches!(**last, ToMember::Joined { .. }), "{last:?}");
    // In a complete job, nobody takes anybody's place.
    assert_eq!(sim.refused(join(0, 2)), refusal);
    assert_eq!(sim.refused(twin), refusal);
}

#[test]
fn a_rank_that_gives_up_joining_makes_room_for_itself() {
    let mut sim = Sim::new(2);
    let first = sim.join(join(0, 2));
    sim.tell(Event::Leave { connection: first });
    let second = sim.join(Join { incarnation: 1, ..join(0, 2) });
    sim.close(second);
    assert_eq!(sim.core.status().missing, [Rank(0), Rank(1)]);
    sim.join(join(1, 2));
    sim.join(Join { incarnation: 2, ..join(0, 2) });
    assert!(sim.core.status().complete);
    assert_eq!(sim.failures(), [""; 0]);
}

#[test]
fn those_that_wait_hear_once_a_second_who_is_missing() {
    let mut sim = Sim::new(4);
    let first = sim.join(join(3, 4));
    sim.pass(5 * SECOND, &[]);
    sim.join(join(1, 4));
    sim.join(join(0, 4));
    sim.pass(5 * SECOND, &[]);
    let missing = |ranks: &[u32]| {
        let ranks: Vec<Rank> = ranks.iter().copied().map(Rank).collect();
        Rc::new(ToMember::Waiting(MissingRanks::new(ranks.into_iter())))
    };
    let expected = [missing(&[0, 1, 2]), missing(&[0, 1, 2]), missing(&[2])];
    assert_eq!(sim.notices[&first], expected);
}

#[test]
fn a_process_that_ends_before_it_joins_ends_the_wait_for_it() {
    let mut sim = Sim::new(3);
    let waiting = sim.join(join(0, 3));
    sim.tell(Event::Exited { rank: Rank(2), exit: ProcessExit::Exited { code: 0 } });
    let incomplete = JoinRefusal::Incomplete(Rank(2));
    assert_eq!(sim.dismissed[&waiting], ToMember::Refused(incomplete.clone()));
    assert_eq!(sim.refused(join(1, 3)), incomplete.to_string());

    let mut sim = Sim::new(3);
    let waiting = sim.join(join(0, 3));
    sim.tell(Event::Exited { rank: Rank(2), exit: ProcessExit::Exited { code: 3 } });
    let failure = RankFailure { rank: Rank(2), cause: FailureCause::Exited { code: 3 } };
    let failed = JoinRefusal::JobFailed(failure);
    assert_eq!(sim.dismissed[&waiting], ToMember::Refused(failed));
    assert_eq!(sim.refused(join(1, 3)), "the job has failed: rank 2 exited with code 3");
}

#[test]
fn silence_is_a_failure_and_a_sign_of_any_kind_is_life() {
    let (mut sim, members) = Sim::complete(3);
    let [a, b, c] = members[..] else { panic!() };
    // Rank 2 sends no heartbeats, but calls.
    for _ in 0..10 {
        sim.pass(HEARTBEAT / 2, &[a, b]);
        sim.call(c, Request::TryGet { key: "k".into() });
    }
    assert_eq!(sim.failures(), [""; 0]);
    let silent_since = sim.now;
    sim.pass(HEARTBEAT, &[a, b]);
    assert_eq!(sim.failures(), [""; 0]);
    sim.pass(SECOND, &[a, b]);
    assert_eq!(sim.failures().len(), 1);
    let failure = &sim.core.failures[0];
    let FailureCause::Silent { for_ } = failure.cause else { panic!("{failure}") };
    assert!((HEARTBEAT..=HEARTBEAT + SECOND).contains(&for_), "{for_:?} since {silent_since:?}");
    assert_eq!(failure.rank, Rank(2));
    for member in members {
        assert_eq!(sim.notices[&member], [Rc::new(ToMember::Failed(failure.clone()))]);
    }
}

#[test]
fn a_coordinator_that_slept_does_not_blame_the_members() {
    let (mut sim, members) = Sim::complete(2);
    sim.pass(HEARTBEAT / 2, &members);
    // It is stopped for a minute, as its members may be, and wakes up before their heartbeats are
    // read.
    sim.now += Duration::from_secs(60);
    sim.tell(Event::Tick);
    assert_eq!(sim.failures(), [""; 0]);
    sim.pass(4 * HEARTBEAT, &members);
    assert_eq!(sim.failures(), [""; 0]);
    // But later silence counts.
    sim.pass(HEARTBEAT + 2 * SECOND, &members[..1]);
    assert_eq!(sim.core.status().failed.len(), 1);
}

#[test]
fn the_launchers_report_beats_the_closed_connection() {
    // (how the process ended, if that is known in time) -> what becomes of the rank
    for (exit, expected) in [
        (Some(ProcessExit::Signalled { signal: 11 }), "rank 1 was killed by signal 11 (SIGSEGV)"),
        (Some(ProcessExit::Exited { code: 2 }), "rank 1 exited with code 2"),
        (None, "rank 1 closed its connection without leaving"),
        (Some(ProcessExit::Exited { code: 0 }), ""),
    ] {
        let (mut sim, members) = Sim::complete(2);
        sim.close(members[1]);
        sim.pass(EXIT_GRACE - Duration::from_millis(1), &members[..1]);
        assert_eq!(sim.failures(), [""; 0]);
        if let Some(exit) = exit {
            sim.tell(Event::Exited { rank: Rank(1), exit });
        }
        sim.pass(Duration::from_millis(1), &members[..1]);
        assert_eq!(sim.failures().join(""), expected);
        // Nothing that follows changes it.
        sim.tell(Event::Exited { rank: Rank(1), exit: ProcessExit::Exited { code: 0 } });
        sim.pass(10 * HEARTBEAT, &members[..1]);
        assert_eq!(sim.failures().join(""), expected);
    }
}

#[test]
fn a_connection_without_traffic_is_silence() {
    let (mut sim, members) = Sim::complete(2);
    sim.pass(SECOND, &members);
    sim.now += 5 * SECOND;
    sim.tell(Event::Closed { connection: members[1], timed_out: true });
    sim.pass(EXIT_GRACE, &members[..1]);
    assert_eq!(sim.failures(), ["rank 1 was silent for 5.0 s"]);
}

#[test]
fn the_first_failure_ends_all_waits_and_the_rest_is_news() {
    let (mut sim, members) = Sim::complete(4);
    let waits = [
        sim.barrier(members[0], "b", 100 * SECOND),
        sim.get(members[1], "k", 100 * SECOND),
        sim.barrier(members[3], "b", 100 * SECOND),
    ];
    sim.tell(Event::ReportFailure { connection: members[2], message: "NaN".into() });
    let first = "rank 2 reported: NaN";
    for wait in waits {
        assert_eq!(sim.refusal(wait), first);
    }
    assert_eq!(sim.memory(), [0; 3]);
    sim.tell(Event::Exited { rank: Rank(3), exit: ProcessExit::Exited { code: 1 } });
    sim.tell(Event::Exited { rank: Rank(2), exit: ProcessExit::Exited { code: 1 } });
    assert_eq!(sim.failures(), [first, "rank 3 exited with code 1"]);
    assert_eq!(sim.log, sim.failures());
    // Everyone hears of both, the failed ranks too.
    for member in &members {
        assert_eq!(sim.notices[member].len(), 2);
    }
    // New waits end at once, what waits for nobody works.
    let barrier = sim.barrier(members[0], "b2", SECOND);
    let get = sim.get(members[0], "k", SECOND);
    assert_eq!((sim.refusal(barrier), sim.refusal(get)), (first.into(), first.into()));
    let set = Request::Set { key: "k".into(), value: "v".into(), overwrite: false };
    let set = sim.call(members[1], set);
    let get = sim.get(members[0], "k", SECOND);
    assert_eq!(sim.replies[&set], Reply::Done);
    assert_eq!(sim.replies[&get], Reply::Value("v".into()));
}

#[test]
fn leaving_harms_nobody_but_ends_barriers() {
    let (mut sim, members) = Sim::complete(3);
    let barrier = sim.barrier(members[1], "b", 100 * SECOND);
    let get = sim.get(members[2], "k", 100 * SECOND);
    sim.tell(Event::Leave { connection: members[0] });
    assert_eq!(sim.dismissed[&members[0]], ToMember::Left);
    assert_eq!(sim.refusal(barrier), "rank 0 has left the job");
    let set = Request::Set { key: "k".into(), value: "v".into(), overwrite: false };
    sim.call(members[1], set);
    assert_eq!(sim.replies[&get], Reply::Value("v".into()));
    sim.close(members[0]);
    sim.tell(Event::Exited { rank: Rank(0), exit: ProcessExit::Exited { code: 0 } });
    sim.pass(10 * HEARTBEAT, &members[1..]);
    assert_eq!(sim.failures(), [""; 0]);
    assert!(sim.notices.is_empty(), "{:?}", sim.notices);
    assert_eq!(sim.refused(join(0, 3)), "rank 0 has left the job: a process joins once");
    let later = sim.barrier(members[2], "b", SECOND);
    assert_eq!(sim.refusal(later), "rank 0 has left the job");
}

#[test]
fn a_rank_that_dies_in_a_barrier_fails_it_and_one_that_gives_up_is_missing() {
    let (mut sim, members) = Sim::complete(3);
    let waiting = sim.barrier(members[0], "b", 10 * SECOND);
    let cancelled = sim.barrier(members[1], "b", 10 * SECOND);
    sim.tell(Event::Cancelled { call: cancelled });
    let late = sim.barrier(members[2], "b", 5 * SECOND);
    sim.pass(6 * SECOND, &members);
    let error = "rank 1 did not come within 5s";
    assert_eq!((sim.refusal(waiting), sim.refusal(late)), (error.into(), error.into()));
    assert_eq!(sim.replies.get(&cancelled), None);
    // Rank 1 comes to it after all, and to the next one in time.
    let owed = sim.barrier(members[1], "b", 10 * SECOND);
    assert_eq!(sim.refusal(owed), error);
    let next: Vec<_> = members.iter().map(|m| sim.barrier(*m, "b", 10 * SECOND)).collect();
    assert!(next.iter().all(|call| sim.replies[call] == Reply::Done));

    let waiting = sim.barrier(members[0], "b", 10 * SECOND);
    sim.barrier(members[1], "b", 10 * SECOND);
    sim.close(members[1]);
    sim.pass(EXIT_GRACE, &members);
    assert_eq!(sim.refusal(waiting), "rank 1 closed its connection without leaving");
    assert_eq!(sim.memory(), [0; 3]);
}

#[test]
fn waits_end_at_their_deadlines_to_the_millisecond() {
    let (mut sim, members) = Sim::complete(2);
    let timeout = Duration::from_millis(1234);
    let get = sim.get(members[0], "k", timeout);
    sim.pass(timeout - Duration::from_millis(1), &members);
    assert_eq!(sim.replies.get(&get), None);
    sim.pass(Duration::from_millis(1), &members);
    assert_eq!(sim.refusal(get), "not set within 1.234s");
    let endless = sim.get(members[0], "k", Duration::MAX);
    sim.pass(100 * SECOND, &members);
    assert_eq!(sim.replies.get(&endless), None);
    sim.close(members[0]);
    assert_eq!(sim.memory(), [0; 3]);
}

#[test]
fn who_has_not_joined_cannot_call() {
    let mut sim = Sim::new(2);
    let waiting = sim.join(join(0, 2));
    for connection in [waiting, ConnectionId(999)] {
        let call = sim.call(connection, Request::TryGet { key: "k".into() });
        assert_eq!(sim.refusal(call), "this connection has not joined the job");
    }
}

/// Anything that can happen to a coordinator, in terms of small numbers.
#[derive(Clone, Debug)]
enum Happening {
    Barrier { rank: usize, name: u8, timeout_ms: u16 },
    Cancel { nth: usize },
    Close { rank: usize, timed_out: bool },
    Exit { rank: u32, code: i32 },
    Get { rank: usize, key: u8, timeout_ms: u16 },
    Join { rank: u32 },
    Leave { rank: usize },
    Pass { ms: u16, beating: bool },
    Set { rank: usize, key: u8 },
}

fn happening() -> impl Strategy<Value = Happening> {
    use Happening::*;
    let rank = 0_usize..4;
    prop_oneof![
        6 => (rank.clone(), 0_u8..2, 0_u16..5000)
            .prop_map(|(rank, name, timeout_ms)| Barrier { rank, name, timeout_ms }),
        2 => (0_usize..40).prop_map(|nth| Cancel { nth }),
        1 => (rank.clone(), any::<bool>())
            .prop_map(|(rank, timed_out)| Close { rank, timed_out }),
        1 => (0_u32..5, 0..2).prop_map(|(rank, code)| Exit { rank, code }),
        6 => (rank.clone(), 0_u8..3, 0_u16..5000)
            .prop_map(|(rank, key, timeout_ms)| Get { rank, key, timeout_ms }),
        1 => (0_u32..5).prop_map(|rank| Join { rank }),
        1 => rank.clone().prop_map(|rank| Leave { rank }),
        4 => (0_u16..4000, any::<bool>()).prop_map(|(ms, beating)| Pass { ms, beating }),
        2 => (rank, 0_u8..3).prop_map(|(rank, key)| Set { rank, key }),
    ]
}

proptest! {
    /// Whatever happens, a call whose caller still waits gets exactly one reply, not after its
    /// deadline, and nothing is kept of calls that are over.
    #[test]
    fn every_call_is_answered_once_and_then_forgotten(
        happenings in proptest::collection::vec(happening(), 0..80),
    ) {
        let (mut sim, mut members) = Sim::complete(4);
        let mut calls: Vec<(CallId, ConnectionId)> = Vec::new();
        let mut gone: Vec<CallId> = Vec::new();
        for happening in happenings {
            let timeout = |ms: u16| Duration::from_millis(ms.into());
            match happening {
                Happening::Barrier { rank, name, timeout_ms } => {
                    let call = sim.barrier(members[rank], &name.to_string(), timeout(timeout_ms));
                    calls.push((call, members[rank]));
                }
                Happening::Cancel { nth } => {
                    if let Some((call, _)) = calls.get(nth).copied() {
                        sim.tell(Event::Cancelled { call });
                        gone.push(call);
                    }
                }
                Happening::Close { rank, timed_out } => {
                    let connection = members[rank];
                    sim.tell(Event::Closed { connection, timed_out });
                    gone.extend(calls.iter().filter(|(_, of)| *of == connection).map(|(c, _)| *c));
                }
                Happening::Exit { rank, code } => {
                    let exit = ProcessExit::Exited { code };
                    sim.tell(Event::Exited { rank: Rank(rank), exit });
                }
                Happening::Get { rank, key, timeout_ms } => {
                    let call = sim.get(members[rank], &key.to_string(), timeout(timeout_ms));
                    calls.push((call, members[rank]));
                }
                Happening::Join { rank } => {
                    let connection = sim.join(Join { incarnation: 1, ..join(rank, 4) });
                    prop_assert!(sim.dismissed.contains_key(&connection));
                }
                Happening::Leave { rank } => {
                    let connection = members[rank];
                    if !sim.dismissed.contains_key(&connection) {
                        sim.tell(Event::Leave { connection });
                        let of = calls.iter().filter(|(_, of)| *of == connection);
                        gone.extend(of.map(|(call, _)| *call));
                    }
                    // What it says afterwards comes from nobody.
                    members[rank] = ConnectionId(u64::MAX);
                }
                Happening::Pass { ms, beating } => {
                    let alive = if beating { members.clone() } else { Vec::new() };
                    sim.pass(timeout(ms), &alive);
                }
                Happening::Set { rank, key } => {
                    let set = Request::Set {
                        key: key.to_string(),
                        value: vec![key].into(),
                        overwrite: true,
                    };
                    sim.call(members[rank], set);
                }
            }
        }
        sim.pass(Duration::from_secs(5), &members.clone());
        for (call, _) in &calls {
            let answered = sim.replies.contains_key(call);
            prop_assert!(answered || gone.contains(call), "{call:?} of {calls:?} has no reply");
        }
        prop_assert_eq!(sim.memory(), [0; 3]);
        let mut ranks: Vec<_> = sim.core.failures.iter().map(|failure| failure.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        prop_assert_eq!(ranks.len(), sim.core.failures.len(), "a rank failed twice");
    }
}

#[test]
fn the_newest_flight_log_of_each_rank_is_kept_within_bounds() {
    let (mut sim, members) = Sim::complete(3);
    let entry = FlightEntry {
        member: Member(1),
        group: 0,
        group_size: 3,
        sequence: 1,
        kind: CollectiveKind::Barrier,
        element: None,
        count: 0,
        started: SECOND,
        ended: None,
        state: FlightState::Running,
    };
    let log =
        |recorded, entries| FlightLog { recorded, taken: SECOND, entries: vec![entry; entries] };
    // After a failure too: that is when they come.
    sim.tell(Event::Exited { rank: Rank(2), exit: ProcessExit::Signalled { signal: 9 } });
    for (recorded, entries, kept) in [(9, 9, (9, 9)), (9, 4, (9, 9)), (12, 4, (12, 4))] {
        let call = sim.call(members[1], Request::Flight(log(recorded, entries)));
        assert_eq!(sim.replies[&call], Reply::Done);
        let found = &sim.core.flight_logs()[&Rank(1)];
        assert_eq!((found.recorded, found.entries.len()), kept);
    }
    let call = sim.call(members[0], Request::Flight(log(2000, FLIGHT_ENTRIES + 1)));
    let (found, limit) = (FLIGHT_ENTRIES as u64 + 1, FLIGHT_ENTRIES as u64);
    let what = "a flight log of entries".to_owned();
    let refusal = CallRefusal::TooLarge { what, found, limit };
    assert_eq!(sim.replies[&call], Reply::Refused(refusal));
    assert_eq!(sim.core.flight_logs().len(), 1);
}
