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
    KeySource, Limits, Member, Rank, RankFailure, World, environment,
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

/// It gathers a number from each rank whenever it is told one, and says what it got.
fn gather(world: &World) {
    let member = Member(world.rank().0);
    let communicator = world.communicator(member);
    let group = communicator.group(&[Member(0), Member(1)]).unwrap();
    for line in std::io::stdin().lines() {
        let number: u32 = line.unwrap().parse().unwrap();
        // More than fits into the opening.
        let input: Vec<u8> = number.to_le_bytes().repeat(100);
        let mut output = vec![0; 2 * input.len()];
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

    fn told(&mut self, number: u32) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{number}").unwrap();
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

/// The environments of a job of two ranks, and the folder of its key.
fn job(coordinator: SocketAddr, hosted: bool, key: &std::path::Path) -> [Environment; 2] {
    [0, 1].map(|rank| Environment {
        rank: Rank(rank),
        world_size: 2,
        local_rank: rank,
        local_size: 2,
        coordinator: coordinator.to_string(),
        coordinator_hosted: hosted,
        job: JobId::new("processes").unwrap(),
        attempt: Attempt(0),
        key: KeySource::File(key.to_owned()),
        devices: 1,
    })
}

/// The coordinator of a job of two ranks, whose key it writes.
fn coordinator(key: &std::path::Path, heartbeat_timeout: Duration) -> Coordinator {
    let secret = JobSecret::generate().unwrap();
    secret.write_new(key).unwrap();
    Coordinator::start(CoordinatorOptions {
        bind: LOOPBACK,
        job: JobId::new("processes").unwrap(),
        attempt: Attempt(0),
        world_size: 2,
        secret,
        heartbeat_timeout,
    })
    .unwrap()
}

#[test]
fn a_stopped_rank_may_go_on_and_a_killed_one_is_found_silent() {
    let heartbeat_timeout = Duration::from_secs(3);
    let limits = Limits { heartbeat: heartbeat_timeout, ..Limits::default() };
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    let coordinator = coordinator(&key, heartbeat_timeout);
    let job = job(coordinator.address(), true, &key);
    let [first, second] = job.each_ref().map(|rank| Process::start(rank, LISTENS, limits));
    assert_eq!([first.says(), second.says()], ["joined 2", "joined 2"]);

    second.stop();
    assert!(first.said.recv_timeout(heartbeat_timeout / 3).is_err());
    second.signal(Signal::CONT);
    assert!(first.said.recv_timeout(heartbeat_timeout).is_err());
    assert_eq!(coordinator.status().failed, []);

    // Nobody tells the coordinator, and a killed process closes no connection.
    let killed = Instant::now();
    second.signal(Signal::KILL);
    let heard = first.says();
    let after = killed.elapsed();
    assert!(heard.starts_with("rank 1 was silent for "), "{heard}");
    assert!(after < heartbeat_timeout * 4, "{after:?}");
}

#[test]
fn a_killed_host_of_the_rendezvous_is_missed_by_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    JobSecret::generate().unwrap().write_new(&key).unwrap();
    // Rank 0 needs a port that the others know; one that was free a moment ago will do.
    let address = UdpSocket::bind(LOOPBACK).unwrap().local_addr().unwrap();
    let limits = Limits { heartbeat: Duration::from_secs(2), ..Limits::default() };
    let job = job(address, false, &key);
    let [host, other] = job.each_ref().map(|rank| Process::start(rank, LISTENS, limits));
    assert_eq!([host.says(), other.says()], ["joined 2", "joined 2"]);
    host.signal(Signal::KILL);
    assert_eq!(other.says(), "rank 0 was silent for 4.0 s");
}

/// A rank that stands still is waited for as long as a collective may take; then it is named, and
/// hears the same when it goes on.
#[test]
fn a_rank_stopped_in_a_collective_is_waited_for_within_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    let limits = Limits { collective: Duration::from_secs(2), ..Limits::default() };
    let coordinator = coordinator(&key, limits.heartbeat);
    let job = job(coordinator.address(), true, &key);
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
