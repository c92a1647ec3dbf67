//! Sessions as threads of one process against a real coordinator on loopback.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lockstep_collectives::{
    Attempt, CallRefusal, Coordinator, CoordinatorOptions, FailureCause, Identity, JobId,
    JobSecret, JoinError, JoinOptions, JoinRefusal, Member, PeerEndpoint, PeerName, ProcessExit,
    Protocol, Rank, RankFailure, Session, SessionError,
};

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Longer than anything takes unless it hangs.
const AMPLE: Duration = Duration::from_secs(60);

/// How soon what should happen at once happens on a busy machine.
const SOON: Duration = Duration::from_secs(15);

struct Job {
    coordinator: Coordinator,
    secret: JobSecret,
    world_size: u32,
}

impl Job {
    fn start(world_size: u32) -> Self {
        Self::start_at(LOOPBACK, JobSecret::generate().unwrap(), world_size)
    }

    fn start_at(bind: SocketAddr, secret: JobSecret, world_size: u32) -> Self {
        Self::start_with(bind, secret, world_size, Duration::from_secs(30))
    }

    fn start_with(
        bind: SocketAddr,
        secret: JobSecret,
        world_size: u32,
        heartbeat_timeout: Duration,
    ) -> Self {
        let coordinator = Coordinator::start(CoordinatorOptions {
            bind,
            job: JobId::new("test").unwrap(),
            attempt: Attempt(1),
            world_size,
            secret: secret.clone(),
            heartbeat_timeout,
        });
        Self { coordinator: coordinator.unwrap(), secret, world_size }
    }

    fn options(&self, rank: u32) -> JoinOptions {
        JoinOptions {
            coordinator: self.coordinator.address().to_string(),
            job: JobId::new("test").unwrap(),
            attempt: Attempt(1),
            rank: Rank(rank),
            world_size: self.world_size,
            devices: rank + 1,
            secret: self.secret.clone(),
            key: "the test's key".into(),
            host: None,
            timeout: AMPLE,
        }
    }

    fn join(&self, rank: u32) -> Session {
        join(&self.options(rank)).unwrap()
    }

    /// Runs `body` on a thread per rank and returns what they return, in rank order.
    fn run<R: Send>(&self, body: impl Fn(Session) -> R + Sync) -> Vec<R> {
        std::thread::scope(|scope| {
            let ranks: Vec<_> = (0..self.world_size)
                .map(|rank| {
                    scope.spawn({
                        let body = &body;
                        move || body(self.join(rank))
                    })
                })
                .collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }
}

fn join(options: &JoinOptions) -> Result<Session, JoinError> {
    Session::join(options).map(|(session, _)| session)
}

fn refusal<T: std::fmt::Debug>(result: Result<T, SessionError>) -> CallRefusal {
    match result {
        Err(SessionError::Refused { refusal, .. }) => refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_rank_sees_the_same_job() {
    for world_size in [1, 2, 5] {
        let job = Job::start(world_size);
        let topologies = job.run(|session| {
            let topology = Arc::clone(session.topology());
            let me = topology.rank(session.rank()).unwrap();
            assert_eq!(me.address.ip(), session.endpoint().local_address().ip());
            assert_eq!(me.fingerprint, session.endpoint().identity().fingerprint());
            session.leave().unwrap();
            topology
        });
        for topology in &topologies {
            assert_eq!(topology, &topologies[0]);
            assert_eq!(topology.world_size(), world_size);
            assert_eq!(topology.member_count(), world_size * (world_size + 1) / 2);
            assert!(topology.ranks().iter().all(|info| info.process_id == std::process::id()));
        }
        assert_eq!(topologies[0].rank_of(Member(0)), Some(Rank(0)));
        assert!(job.coordinator.wait_until_empty(SOON));
        let status = job.coordinator.status();
        assert_eq!(status.left, (0..world_size).map(Rank).collect::<Vec<_>>());
        assert_eq!(status.failed, []);
    }
}

#[test]
fn keys_are_shared_and_waited_for() {
    let job = Job::start(3);
    job.run(|session| {
        let me = session.rank().0;
        let next = (me + 1) % 3;
        // Everyone waits for a key that its neighbour sets only afterwards, but for rank 2.
        if me != 2 {
            let value = session.get(&format!("rank/{next}"), AMPLE).unwrap();
            assert_eq!(value, format!("value of {next}"));
        }
        session.set(&format!("rank/{me}"), format!("value of {me}")).unwrap();
        session.barrier("set", AMPLE).unwrap();

        let listed = session.list("rank/").unwrap();
        let expected: Vec<(String, bytes::Bytes)> =
            (0..3).map(|r| (format!("rank/{r}"), format!("value of {r}").into())).collect();
        assert_eq!(listed, expected);
        let once = session.set_once("winner", me.to_string()).is_ok();
        session.barrier("raced", AMPLE).unwrap();
        let winner = session.try_get("winner").unwrap().unwrap();
        assert_eq!(winner == me.to_string(), once);
        assert_eq!(session.try_get("loser").unwrap(), None);
        session.barrier("read", AMPLE).unwrap();
        let deleted = session.delete("winner").unwrap();
        session.set(&format!("deleted/{me}"), deleted.to_string()).unwrap();
        session.barrier("deleted", AMPLE).unwrap();
        let deleted = session.list("deleted/").unwrap();
        assert_eq!(deleted.iter().filter(|(_, value)| value == "true").count(), 1);
        session.leave().unwrap();
    });
}

#[test]
fn a_large_value_arrives_whole_and_a_larger_one_is_refused() {
    let job = Job::start(1);
    let session = job.join(0);
    let value: Vec<u8> = (0..3_000_017_u32).map(|i| (i % 251).to_le_bytes()[0]).collect();
    session.set("large", value.clone()).unwrap();
    assert_eq!(session.get("large", AMPLE).unwrap(), value);
    let key = "k".repeat(2000);
    let limit = refusal(session.set(&key, "v"));
    let too_large = refusal(session.set("larger", vec![7; 80 << 20]));
    assert!(matches!(too_large, CallRefusal::TooLarge { .. }), "{too_large}");
    assert_eq!(session.try_get("larger").unwrap(), None);
    assert!(matches!(limit, CallRefusal::TooLarge { found: 2000, limit: 1024, .. }), "{limit}");
}

#[test]
fn a_get_that_nobody_answers_ends_at_its_deadline() {
    let job = Job::start(1);
    let session = job.join(0);
    let timeout = Duration::from_millis(200);
    let start = Instant::now();
    let error = session.get("never", timeout).unwrap_err();
    assert!(start.elapsed() >= timeout);
    assert_eq!(error.to_string(), "get \"never\": not set within 200ms");
}

#[test]
fn a_late_barrier_is_the_same_error_for_all_and_the_next_use_is_right() {
    let job = Job::start(3);
    let errors = job.run(|session| {
        let timeout = if session.rank() == Rank(0) { Duration::from_millis(300) } else { AMPLE };
        if session.rank() == Rank(2) {
            // Comes when the other two have given up.
            session.get("gave up/0", AMPLE).unwrap();
            session.get("gave up/1", AMPLE).unwrap();
        }
        let error = session.barrier("b", timeout).unwrap_err();
        session.set(&format!("gave up/{}", session.rank().0), "").unwrap();
        session.barrier("b", AMPLE).unwrap();
        session.leave().unwrap();
        error.to_string()
    });
    assert_eq!(errors, ["barrier \"b\": rank 2 did not come within 300ms"; 3]);
}

#[test]
fn strangers_are_refused_with_a_reason_and_the_job_goes_on() {
    let job = Job::start(2);
    let refused = |change: fn(&mut JoinOptions)| {
        let mut options = job.options(1);
        change(&mut options);
        join(&options).unwrap_err().to_string()
    };
    let first = std::thread::scope(|scope| {
        let first = scope.spawn(|| job.join(0));
        let address = job.coordinator.address();
        while job.coordinator.status().joined != [Rank(0)] {
            std::thread::yield_now();
        }
        for (change, reason) in [
            (
                (|o| o.job = JobId::new("other").unwrap()) as fn(&mut JoinOptions),
                "this is job test, not other",
            ),
            (|o| o.attempt = Attempt(0), "this is attempt 1 of the job, not attempt 0"),
            (|o| o.world_size = 3, "the job has 2 processes, not 3"),
            (|o| o.rank = Rank(2), "the job has ranks 0 to 1, not rank 2"),
            (|o| o.rank = Rank(0), "rank 0 has joined already, as process "),
        ] {
            let error = refused(change);
            assert!(error.contains(reason), "{error}");
            assert!(error.contains(&address.to_string()), "{error}");
        }
        let error = refused(|options| options.secret = JobSecret::generate().unwrap());
        let expected =
            format!("the coordinator at {address} has another job secret than the test's key");
        assert!(error.contains(&expected), "{error}");

        let second = job.join(1);
        let first = first.join().unwrap();
        second.leave().unwrap();
        first
    });
    // Once the job is complete as well.
    let again = join(&job.options(0)).unwrap_err();
    let duplicate =
        matches!(again, JoinError::Refused { refusal: JoinRefusal::Duplicate { .. }, .. });
    assert!(duplicate, "{again}");
    first.leave().unwrap();
    assert_eq!(job.coordinator.status().failed, []);
}

#[test]
fn the_wait_for_others_ends_with_their_names() {
    let job = Job::start(4);
    let mut options = job.options(1);
    options.timeout = Duration::from_millis(500);
    let error = join(&options).unwrap_err().to_string();
    let expected = "waited 500ms to join at 127.0.0.1:";
    assert!(
        error.contains(expected) && error.ends_with("ranks 0, 2, 3 have not joined"),
        "{error}"
    );
    // Its place is free again, for the same job.
    let complete = job.run(|session| session.leave().is_ok());
    assert_eq!(complete, [true; 4]);
}

#[test]
fn without_a_coordinator_joining_says_what_it_tried() {
    let job = Job::start(1);
    let mut options = job.options(0);
    job.coordinator.shutdown();
    options.timeout = Duration::from_millis(700);
    let error = join(&options).unwrap_err().to_string();
    assert!(error.contains("got no answer"), "{error}");
    options.coordinator = "no-such-host.invalid:4000".into();
    let error = join(&options).unwrap_err().to_string();
    assert!(error.contains("its name does not resolve"), "{error}");
}

#[test]
fn members_may_start_before_the_coordinator() {
    let early = Job::start(2);
    let options = [early.options(0), early.options(1)];
    let (address, secret) = (early.coordinator.address(), early.secret.clone());
    early.coordinator.shutdown();
    std::thread::scope(|scope| {
        let members = options.each_ref().map(|options| scope.spawn(|| join(options).unwrap()));
        let _job = Job::start_at(address, secret, 2);
        for member in members {
            member.join().unwrap().leave().unwrap();
        }
    });
}

#[test]
fn a_rank_that_dies_ends_every_wait_for_it() {
    let job = Job::start(4);
    let failures = job.run(|session| {
        session.barrier("start", AMPLE).unwrap();
        let start = Instant::now();
        match session.rank().0 {
            0 => return None,
            1 => {
                let refusal = refusal(session.barrier("end", AMPLE));
                assert!(matches!(refusal, CallRefusal::RankFailed(_)), "{refusal}");
            }
            2 => {
                let refusal = refusal(session.get("from rank 0", AMPLE));
                assert!(matches!(refusal, CallRefusal::RankFailed(_)), "{refusal}");
            }
            _ => {}
        }
        let (sender, receiver) = std::sync::mpsc::channel();
        session.failures().wait(AMPLE).unwrap();
        session.failures().on_failure(move |failure| sender.send(failure.clone()).unwrap());
        let first = session.failures().first().unwrap();
        assert_eq!(receiver.recv().unwrap(), first);
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        // What waits for nobody still works.
        session.set("still", "here").unwrap();
        assert_eq!(session.get("still", AMPLE).unwrap(), "here");
        let again = refusal(session.barrier("again", AMPLE));
        assert_eq!(again, CallRefusal::RankFailed(first.clone()));
        session.leave().unwrap();
        Some(first)
    });
    let disconnected = RankFailure { rank: Rank(0), cause: FailureCause::Disconnected };
    assert_eq!(failures[1..], vec![Some(disconnected); 3]);
    // And whoever comes now is told.
    let late = join(&job.options(2)).unwrap_err().to_string();
    assert!(late.contains("the job has failed: rank 0 closed its connection"), "{late}");
}

#[test]
fn the_launchers_report_is_the_better_cause() {
    let job = Job::start(2);
    let (first, second) = std::thread::scope(|scope| {
        let second = scope.spawn(|| job.join(1));
        (job.join(0), second.join().unwrap())
    });
    drop(second);
    job.coordinator.report_exit(Rank(1), ProcessExit::Signalled { signal: 9 });
    let failure = first.failures().wait(AMPLE).unwrap();
    assert_eq!(failure.to_string(), "rank 1 was killed by signal 9 (SIGKILL)");
    first.report_failure("cannot go on without rank 1").unwrap();
    let all: Vec<_> = first.failures().all().iter().map(ToString::to_string).collect();
    let reported = "rank 0 reported: cannot go on without rank 1";
    assert_eq!(all, ["rank 1 was killed by signal 9 (SIGKILL)", reported]);
}

#[test]
fn rank_0_leaving_first_harms_nobody() {
    let job = Job::start(3);
    job.run(|session| {
        session.barrier("worked", AMPLE).unwrap();
        if session.rank() == Rank(0) {
            session.leave().unwrap();
            return;
        }
        while job.coordinator.status().left != [Rank(0)] {
            std::thread::yield_now();
        }
        session.set(&session.rank().0.to_string(), "here").unwrap();
        let other = 3 - session.rank().0;
        assert_eq!(session.get(&other.to_string(), AMPLE).unwrap(), "here");
        assert_eq!(refusal(session.barrier("end", AMPLE)), CallRefusal::RankLeft(Rank(0)));
        assert_eq!(session.failures().first(), None);
        // Both are through before one leaves.
        session.set(&format!("done/{}", session.rank().0), "").unwrap();
        session.get(&format!("done/{other}"), AMPLE).unwrap();
        session.leave().unwrap();
    });
    assert_eq!(job.coordinator.status().failed, []);
}

#[test]
fn a_lost_coordinator_ends_pending_and_later_calls() {
    let job = Job::start(1);
    let session = job.join(0);
    let address = job.coordinator.address();
    std::thread::scope(|scope| {
        let pending = scope.spawn(|| session.get("never", AMPLE));
        // The call is under way once the coordinator has answered a later one.
        session.set("key", "value").unwrap();
        let start = Instant::now();
        job.coordinator.shutdown();
        let lost = format!("lost the coordinator at {address}: it closed the connection");
        assert_eq!(pending.join().unwrap().unwrap_err().to_string(), lost);
        assert_eq!(session.try_get("key").unwrap_err().to_string(), lost);
        assert_eq!(session.barrier("b", AMPLE).unwrap_err().to_string(), lost);
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    });
    assert!(matches!(session.leave(), Err(SessionError::Lost { .. })));
}

#[test]
fn with_the_coordinator_its_host_is_lost() {
    let job = Job::start(2);
    let sessions = std::thread::scope(|scope| {
        let ranks = [0, 1].map(|rank| {
            let mut options = job.options(rank);
            options.host = Some(Rank(0));
            scope.spawn(move || join(&options).unwrap())
        });
        ranks.map(|rank| rank.join().unwrap())
    });
    job.coordinator.shutdown();
    let failure = sessions[1].failures().wait(AMPLE).unwrap();
    assert_eq!(failure.to_string(), "rank 0 closed its connection without leaving");
    // It knows better of itself.
    assert!(matches!(sessions[0].try_get("k"), Err(SessionError::Lost { .. })));
    assert_eq!(sessions[0].failures().first(), None);
}

#[test]
fn heartbeats_keep_an_idle_rank_alive() {
    let heartbeat_timeout = Duration::from_secs(2);
    let job = Job::start_with(LOOPBACK, JobSecret::generate().unwrap(), 1, heartbeat_timeout);
    let session = job.join(0);
    assert_eq!(session.failures().wait(2 * heartbeat_timeout), None);
    session.leave().unwrap();
    assert_eq!(job.coordinator.status().failed, []);
}

#[test]
fn random_bytes_and_floods_cost_only_time() {
    let job = Job::start(2);
    let target = job.coordinator.address();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let socket = UdpSocket::bind(LOOPBACK).unwrap();
            let mut state = 0x9e37_79b9_7f4a_7c15_u64;
            let mut datagram = [0_u8; 1200];
            while !done.load(Ordering::Relaxed) {
                for bytes in datagram.chunks_mut(8) {
                    // xorshift64: any bytes will do, long and short headers among them.
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    bytes.copy_from_slice(&state.to_le_bytes());
                }
                let length = usize::try_from(state % 1200).unwrap();
                let _ = socket.send_to(&datagram[..length], target);
            }
        });
        job.run(|session| {
            for round in 0..200 {
                session.barrier("round", AMPLE).unwrap_or_else(|e| panic!("{round}: {e}"));
            }
            session.leave().unwrap();
        });
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(job.coordinator.status().failed, []);
}

#[test]
fn a_holder_of_the_secret_that_speaks_nonsense_is_refused() {
    let job = Job::start(1);
    let stranger = Identity::new(&job.secret, PeerName::Rank(Rank(0))).unwrap();
    let endpoint = PeerEndpoint::bind(stranger, LOOPBACK).unwrap();
    for nonsense in [&[0xff; 64][..], &[1, 0, 0, 0, 1], &[2, 0, 0, 0, 9, 9], &[]] {
        endpoint.handle().block_on(async {
            let peer = endpoint
                .connector()
                .connect(
                    Protocol::Rendezvous,
                    PeerName::Coordinator,
                    job.coordinator.address(),
                    None,
                    Arc::default(),
                )
                .await
                .unwrap();
            let (mut send, _receive) = peer.connection.open_bi().await.unwrap();
            send.write_all(nonsense).await.unwrap();
            send.finish().unwrap();
            tokio::time::timeout(SOON, peer.connection.closed()).await.unwrap();
        });
    }
    job.join(0).leave().unwrap();
}
