//! Worlds as threads of one process: rendezvous and transport together, as a program opens them.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use lockstep_collectives::{
    Attempt, Call, CollectiveError, Coordinator, CoordinatorOptions, ElementType, Environment,
    JobId, JobSecret, KeySource, Limits, Member, ProcessExit, Rank, Reduction, TransportChoice,
    World, WorldError,
};

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

const AMPLE: Limits = Limits {
    collective: Duration::from_secs(60),
    heartbeat: Duration::from_secs(30),
    init: Duration::from_secs(60),
};

/// How soon what should happen at once happens on a busy machine.
const SOON: Duration = Duration::from_secs(15);

struct Job {
    /// None when rank 0 hosts it.
    coordinator: Option<Coordinator>,
    address: SocketAddr,
    /// Devices of each rank.
    devices: Vec<u32>,
    key: PathBuf,
    _folder: tempfile::TempDir,
}

impl Job {
    /// A job whose coordinator is hosted apart from its ranks, as by a launcher.
    fn launched(devices: &[u32]) -> Self {
        let mut job = Self::without_launcher(devices);
        let coordinator = Coordinator::start(CoordinatorOptions {
            bind: LOOPBACK,
            job: JobId::new("world").unwrap(),
            attempt: Attempt(0),
            world_size: u32::try_from(devices.len()).unwrap(),
            secret: JobSecret::read(&job.key).unwrap(),
            heartbeat_timeout: Duration::from_secs(30),
        })
        .unwrap();
        job.address = coordinator.address();
        job.coordinator = Some(coordinator);
        job
    }

    fn without_launcher(devices: &[u32]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        JobSecret::generate().unwrap().write_new(&key).unwrap();
        // Rank 0 needs a port that the others know; one that was free a moment ago will do.
        let address = UdpSocket::bind(LOOPBACK).unwrap().local_addr().unwrap();
        Self { coordinator: None, address, devices: devices.to_vec(), key, _folder: folder }
    }

    fn environment(&self, rank: u32) -> Environment {
        let world_size = u32::try_from(self.devices.len()).unwrap();
        Environment {
            rank: Rank(rank),
            world_size,
            local_rank: rank,
            local_size: world_size,
            local_processors: None,
            coordinator: self.address.to_string(),
            coordinator_hosted: self.coordinator.is_some(),
            job: JobId::new("world").unwrap(),
            attempt: Attempt(0),
            key: KeySource::File(self.key.clone()),
            devices: self.devices[usize::try_from(rank).unwrap()],
        }
    }

    /// Runs `body` on a thread per rank and returns what they return, in rank order.
    fn run<R: Send>(&self, body: impl Fn(World) -> R + Sync) -> Vec<std::thread::Result<R>> {
        self.run_over(|_| TransportChoice::Auto, |world| body(world.unwrap()))
    }

    /// As `run`, with a choice of each rank; `body` gets the error of one that cannot join, too.
    fn run_over<R: Send>(
        &self,
        choice: impl Fn(u32) -> TransportChoice,
        body: impl Fn(Result<World, WorldError>) -> R + Sync,
    ) -> Vec<std::thread::Result<R>> {
        std::thread::scope(|scope| {
            let ranks: Vec<_> = (0..self.devices.len())
                .map(|rank| {
                    let rank = u32::try_from(rank).unwrap();
                    let (environment, choice) = (self.environment(rank), choice(rank));
                    let body = &body;
                    scope.spawn(move || body(World::join_over(&environment, AMPLE, choice)))
                })
                .collect();
            ranks.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
        })
    }
}

/// The sum over all members of each one's number and a constant.
fn sum_over_all(world: &World) -> Vec<Result<u64, CollectiveError>> {
    let all: Vec<Member> = (0..world.topology().member_count()).map(Member).collect();
    std::thread::scope(|scope| {
        let members: Vec<_> = world
            .local_members()
            .map(|member| {
                let (communicator, all) = (world.communicator(member), &all);
                scope.spawn(move || {
                    let group = communicator.group(all).unwrap();
                    let value = 1000 + u64::from(member.0);
                    let mut sum = [0; 8];
                    communicator
                        .all_reduce(
                            &Call::on(&group),
                            ElementType::U64,
                            Reduction::Sum,
                            &value.to_le_bytes(),
                            &mut sum,
                        )
                        .map(|()| u64::from_le_bytes(sum))
                })
            })
            .collect();
        members.into_iter().map(|member| member.join().unwrap()).collect()
    })
}

#[test]
fn devices_of_all_processes_reduce_together_and_any_rank_may_return_first() {
    let job = Job::launched(&[1, 2, 0, 3]);
    let sums = job.run(|world| {
        let sums = sum_over_all(&world);
        assert_eq!(world.local_members().len(), sums.len());
        sums
    });
    let sums: Vec<u64> = sums.into_iter().flat_map(Result::unwrap).map(Result::unwrap).collect();
    assert_eq!(sums, [6015; 6]);
    let status = job.coordinator.as_ref().unwrap().status();
    assert_eq!(status.left, [Rank(0), Rank(1), Rank(2), Rank(3)]);
    assert_eq!(status.failed, []);
}

#[test]
fn without_a_launcher_rank_0_hosts_and_stays_until_all_have_left() {
    let job = Job::without_launcher(&[1, 1, 1]);
    let sums = job.run(|world| {
        let sum = sum_over_all(&world);
        if world.rank() != Rank(0) {
            // Rank 0 has nothing more to do, and these two still need the rendezvous.
            let session = world.session().unwrap();
            let (me, other) = (world.rank().0, 3 - world.rank().0);
            for round in 0..50 {
                session.set(&format!("{round}/{me}"), me.to_string()).unwrap();
                let value = session.get(&format!("{round}/{other}"), AMPLE.collective).unwrap();
                assert_eq!(value, other.to_string());
            }
        }
        sum
    });
    let sums: Vec<u64> = sums.into_iter().flat_map(Result::unwrap).map(Result::unwrap).collect();
    assert_eq!(sums, [3003; 3]);
}

#[test]
fn a_killed_rank_ends_the_others_collective_with_its_name() {
    let job = Job::launched(&[1, 1, 1]);
    let errors = job.run(|world| {
        assert_eq!(sum_over_all(&world)[0].as_ref().unwrap(), &3003);
        world.session().unwrap().barrier("all have the first sum", AMPLE.collective).unwrap();
        if world.rank() == Rank(1) {
            // As a process that is killed: it does nothing any more, not even close its socket.
            std::mem::forget(world);
            let exit = ProcessExit::Signalled { signal: 9 };
            job.coordinator.as_ref().unwrap().report_exit(Rank(1), exit);
            return String::new();
        }
        let start = Instant::now();
        let error = sum_over_all(&world).remove(0).unwrap_err().to_string();
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        error
    });
    let errors: Vec<String> = errors.into_iter().map(Result::unwrap).collect();
    assert!(errors[0].contains("rank 1 was killed by signal 9 (SIGKILL)"), "{}", errors[0]);
    assert_eq!(errors[0], errors[2]);
}

#[test]
fn a_rank_that_panics_ends_the_others_collective_with_its_name() {
    let job = Job::launched(&[1, 1]);
    let mut results = job.run(|world| {
        assert!(world.rank() != Rank(1), "a bug in the program of rank 1");
        sum_over_all(&world).remove(0).unwrap_err().to_string()
    });
    assert!(results.remove(1).is_err());
    let error = results.remove(0).unwrap();
    assert!(error.contains("rank 1 closed its connection without leaving"), "{error}");
}

#[test]
fn what_is_wrong_with_the_key_is_said_before_anything_is_tried() {
    let job = Job::launched(&[1]);
    std::fs::set_permissions(&job.key, std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .unwrap();
    let error = World::join(&job.environment(0), AMPLE).unwrap_err();
    assert!(matches!(error, WorldError::Secret(_)), "{error}");
    assert!(error.to_string().ends_with("run `chmod 600` on it"), "{error}");
}

#[test]
fn all_ranks_hold_the_same_view_of_who_shares_memory() {
    let job = Job::launched(&[1, 1, 0, 2]);
    let views = job.run_over(
        |rank| if rank == 1 { TransportChoice::Quic } else { TransportChoice::Auto },
        |world| {
            let world = world.unwrap();
            // The world works whoever shares what.
            let sums: Vec<u64> = sum_over_all(&world).into_iter().map(Result::unwrap).collect();
            (world.sharing().clone(), world.arena().is_some(), sums)
        },
    );
    let views: Vec<_> = views.into_iter().map(Result::unwrap).collect();
    for (rank, (sharing, has_arena, sums)) in views.iter().enumerate() {
        assert_eq!(*sharing, views[0].0);
        assert_eq!(*has_arena, rank != 1);
        assert!(sums.iter().all(|sum| *sum == 4006), "{sums:?}");
    }
    let sharing = &views[0].0;
    let segments = [0, 1, 2, 3].map(|rank| sharing.segment_of(Rank(rank)));
    assert_eq!(segments, [Some(Rank(0)), None, Some(Rank(0)), Some(Rank(0))]);
    assert!(sharing.shares(Rank(2), Rank(3)) && !sharing.shares(Rank(0), Rank(1)));
    assert_eq!(sharing.refusal(Rank(1)), Some("LOCKSTEP_TRANSPORT is quic"));
}

#[test]
fn shared_memory_that_is_asked_for_and_not_had_is_an_error_that_says_why() {
    let job = Job::launched(&[1, 1]);
    let errors = job.run_over(
        |rank| if rank == 0 { TransportChoice::Quic } else { TransportChoice::Shm },
        |world| world.map(|world| world.sharing().clone()).map_err(|error| error.to_string()),
    );
    let errors: Vec<_> = errors.into_iter().map(Result::unwrap).collect();
    assert!(errors[0].is_ok());
    assert_eq!(
        errors[1].as_ref().unwrap_err(),
        "LOCKSTEP_TRANSPORT is shm, but rank 1 cannot share memory with rank 0: rank 0 has none to \
         offer: LOCKSTEP_TRANSPORT is quic; set it to auto to reach such ranks over QUIC"
    );
}
