//! Worlds in processes of their own, which can be stopped and killed: no thread of them goes on.
//!
//! The processes are this test binary again, at the test [`rank`], which does nothing otherwise.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use lockstep_collectives::{
    Attempt, Call, Coordinator, CoordinatorOptions, ElementType, Environment, JobId, JobSecret,
    KeySource, Limits, Member, ProcessExit, Rank, RankFailure, World, environment,
};
use rustix::process::{Pid, Signal, kill_process};

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const IN_A_RANK: &str = "LOCKSTEP_TEST_RANK";
const LISTENS: &str = "listens";
const GATHERS: &str = "gathers";

/// Longer than anything takes unless it hangs.
const AMPLE: Duration = Duration::from_secs(60);

/// What a rank does, by the value of [`IN_A_RANK`].
#[test]
fn rank() {
    let Some(role) = std::env::var_os(IN_A_RANK) else { return };
    let world = World::from_environment().unwrap();
    say(format_args!("joined {}", world.topology().world_size()));
    if role == LISTENS { listen(&world) } else { gather(&world) }
}

/// A line for the process that started this one.
#[expect(clippy::print_stdout, reason = "the process is a test, and this is its output")]
fn say(what: impl Display) {
    println!("\n> {what}");
}

/// It says what it hears.
fn listen(world: &World) {
    let failure: Option<RankFailure> = world.session().unwrap().failures().wait(AMPLE);
    say(failure.unwrap());
}

/// It gathers a number from each rank whenever it is told one, and says what it got. A second
/// number says how many ranks take part.
fn gather(world: &World) {
    let communicator = world.communicator(Member(world.rank().0));
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let mut words = line.split(' ').map(|word| word.parse::<u32>().unwrap());
        let number = words.next().unwrap();
        let count = words.next().unwrap_or(world.topology().world_size());
        let members: Vec<Member> = (0..count).map(Member).collect();
        let group = communicator.group(&members).unwrap();
        // More than fits into the opening.
        let input: Vec<u8> = number.to_le_bytes().repeat(100);
        let mut output = vec![0; members.len() * input.len()];
        let call = Call::on(&group);
        match communicator.all_gather(&call, ElementType::U32, &input, &mut output) {
            Ok(()) => {
                let numbers: Vec<u32> = output
                    .chunks_exact(input.len())
                    .map(|part| {
                        assert!(part.chunks_exact(4).all(|element| element == &part[..4]));
                        u32::from_le_bytes(part[..4].try_into().unwrap())
                    })
                    .collect();
                say(format_args!("{numbers:?}"));
            }
            Err(error) => say(error),
        }
    }
}

struct Process {
    child: Child,
    said: Receiver<String>,
}

impl Process {
    fn start(environment: &Environment, role: &str, limits: Limits) -> Self {
        let milliseconds = |limit: Duration| format!("{}ms", limit.as_millis());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "rank", "--nocapture"])
            .envs(environment.variables())
            .env(environment::HEARTBEAT_TIMEOUT, milliseconds(limits.heartbeat))
            .env(environment::COLLECTIVE_TIMEOUT, milliseconds(limits.collective))
            .env(IN_A_RANK, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, said) = channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(line) = line.strip_prefix("> ") {
                    let _ = sender.send(line.to_owned());
                }
            }
        });
        Self { child, said }
    }

    fn says(&self) -> String {
        self.said.recv_timeout(AMPLE).unwrap()
    }

    fn told(&mut self, what: impl Display) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{what}").unwrap();
    }

    /// Stops the process, and returns when it stands still.
    fn stop(&self) {
        self.signal(Signal::STOP);
        let status = format!("/proc/{}/stat", self.child.id());
        let start = Instant::now();
        // The state follows the name, which is in parentheses.
        while !std::fs::read_to_string(&status).unwrap().contains(") T ") {
            assert!(start.elapsed() < AMPLE, "the process does not stop");
            std::thread::yield_now();
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The environments of a job of `N` ranks.
fn job<const N: usize>(
    coordinator: SocketAddr,
    hosted: bool,
    key: &std::path::Path,
) -> [Environment; N] {
    let world_size = u32::try_from(N).unwrap();
    let mut ranks = 0..world_size;
    [(); N].map(|()| ranks.next().unwrap()).map(|rank| Environment {
        rank: Rank(rank),
        world_size,
        local_rank: rank,
        local_size: world_size,
        local_processors: None,
        coordinator: coordinator.to_string(),
        coordinator_hosted: hosted,
        job: JobId::new("processes").unwrap(),
        attempt: Attempt(0),
        key: KeySource::File(key.to_owned()),
        devices: 1,
    })
}

/// The coordinator of a job, whose key it writes.
fn coordinator(key: &std::path::Path, world_size: u32, heartbeat_timeout: Duration) -> Coordinator {
    let secret = JobSecret::generate().unwrap();
    secret.write_new(key).unwrap();
    Coordinator::start(CoordinatorOptions {
        bind: LOOPBACK,
        job: JobId::new("processes").unwrap(),
        attempt: Attempt(0),
        world_size,
        secret,
        heartbeat_timeout,
    })
    .unwrap()
}

/// A killed process closes no connection, and in a job without launcher nobody reports it: its
/// host's processes see it themselves, long before the heartbeat timeout.
#[test]
fn a_stopped_rank_may_go_on_and_a_killed_one_is_missed_at_once() {
    let heartbeat_timeout = Duration::from_secs(3);
    let limits = Limits { heartbeat: heartbeat_timeout, ..Limits::default() };
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    let coordinator = coordinator(&key, 2, heartbeat_timeout);
    let job = job::<2>(coordinator.address(), true, &key);
    let [first, second] = job.each_ref().map(|rank| Process::start(rank, LISTENS, limits));
    assert_eq!([first.says(), second.says()], ["joined 2", "joined 2"]);

    second.stop();
    assert!(first.said.recv_timeout(heartbeat_timeout / 3).is_err());
    second.signal(Signal::CONT);
    assert!(first.said.recv_timeout(heartbeat_timeout).is_err());
    assert_eq!(coordinator.status().failed, []);

    let killed = Instant::now();
    second.signal(Signal::KILL);
    assert_eq!(first.says(), "rank 1 closed its connection without leaving");
    assert!(killed.elapsed() < heartbeat_timeout / 2, "{:?}", killed.elapsed());
}

#[test]
fn a_killed_host_of_the_rendezvous_is_missed_by_the_others_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    JobSecret::generate().unwrap().write_new(&key).unwrap();
    // Rank 0 needs a port that the others know; one that was free a moment ago will do.
    let address = UdpSocket::bind(LOOPBACK).unwrap().local_addr().unwrap();
    let job = job::<2>(address, false, &key);
    let [host, other] = job.each_ref().map(|rank| Process::start(rank, LISTENS, Limits::default()));
    assert_eq!([host.says(), other.says()], ["joined 2", "joined 2"]);
    let killed = Instant::now();
    host.signal(Signal::KILL);
    assert_eq!(other.says(), "rank 0 closed its connection without leaving");
    assert!(killed.elapsed() < Limits::default().heartbeat / 2, "{:?}", killed.elapsed());
}

/// One that stands still for too long says nothing, and is alive all the same.
#[test]
fn a_rank_that_stands_still_for_too_long_is_found_silent() {
    let heartbeat_timeout = Duration::from_secs(1);
    let limits = Limits { heartbeat: heartbeat_timeout, ..Limits::default() };
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    let coordinator = coordinator(&key, 2, heartbeat_timeout);
    let job = job::<2>(coordinator.address(), true, &key);
    let [first, second] = job.each_ref().map(|rank| Process::start(rank, LISTENS, limits));
    assert_eq!([first.says(), second.says()], ["joined 2", "joined 2"]);
    second.stop();
    let stopped = Instant::now();
    let heard = first.says();
    assert!(heard.starts_with("rank 1 was silent for "), "{heard}");
    assert!(stopped.elapsed() < heartbeat_timeout * 4, "{:?}", stopped.elapsed());
}

/// A rank that stands still is waited for as long as a collective may take; then it is named, and
/// hears the same when it goes on.
#[test]
fn a_rank_stopped_in_a_collective_is_waited_for_within_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    let limits = Limits { collective: Duration::from_secs(2), ..Limits::default() };
    let coordinator = coordinator(&key, 2, limits.heartbeat);
    let job = job::<2>(coordinator.address(), true, &key);
    let [mut first, mut second] = job.each_ref().map(|rank| Process::start(rank, GATHERS, limits));
    assert_eq!([first.says(), second.says()], ["joined 2", "joined 2"]);
    let both = |first: &mut Process, second: &mut Process, number: u32| {
        second.told(number + 1);
        first.told(number);
        let expected = format!("[{number}, {}]", number + 1);
        assert_eq!([first.says(), second.says()], [expected.as_str(), &expected]);
    };
    both(&mut first, &mut second, 10);

    second.stop();
    first.told(20);
    assert!(first.said.recv_timeout(limits.collective / 4).is_err());
    second.signal(Signal::CONT);
    second.told(21);
    assert_eq!([first.says(), second.says()], ["[20, 21]", "[20, 21]"]);

    second.stop();
    let start = Instant::now();
    first.told(30);
    let late = "all_gather(u32, 100 elements), #3 on devices 0-1: rank 1 (device 1) did not take \
                part within 2s";
    let heard = first.says();
    let after = start.elapsed();
    assert!(heard.starts_with(late), "{heard}");
    assert!((limits.collective..2 * limits.collective).contains(&after), "{after:?}");
    second.signal(Signal::CONT);
    second.told(31);
    assert_eq!(second.says(), heard);

    both(&mut first, &mut second, 40);
    assert_eq!(coordinator.status().failed, []);
}

/// A rank is killed while all others wait for it: these hear its name, and go on without it, the
/// same processes, more than once and with more than fits into an opening.
#[test]
fn after_an_error_the_same_processes_run_on_as_a_smaller_group() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    let coordinator = coordinator(&key, 4, Limits::default().heartbeat);
    let job = job::<4>(coordinator.address(), true, &key);
    let mut ranks = job.each_ref().map(|rank| Process::start(rank, GATHERS, Limits::default()));
    for rank in &ranks {
        assert_eq!(rank.says(), "joined 4");
    }
    for (rank, number) in ranks.iter_mut().zip(10..) {
        rank.told(number);
    }
    for rank in &ranks {
        assert_eq!(rank.says(), "[10, 11, 12, 13]");
    }

    let [survivors @ .., victim] = &mut ranks;
    victim.stop();
    for rank in &mut *survivors {
        rank.told(20);
    }
    victim.signal(Signal::KILL);
    coordinator.report_exit(Rank(3), ProcessExit::Signalled { signal: 9 });
    let killed = "all_gather(u32, 100 elements), #2 on devices 0-3: rank 3 was killed by signal 9 \
                  (SIGKILL)";
    for rank in &*survivors {
        assert_eq!(rank.says(), killed);
    }
    for round in [30, 40, 50] {
        for (rank, number) in survivors.iter_mut().zip(round..) {
            rank.told(format_args!("{number} 3"));
        }
        for rank in &*survivors {
            assert_eq!(rank.says(), format!("[{round}, {}, {}]", round + 1, round + 2));
        }
    }
}
