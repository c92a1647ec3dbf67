//! Worlds in processes of their own, which can be stopped and killed: no thread of them goes on.
//!
//! The processes are this test binary again, at the test [`rank`], which does nothing otherwise.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use lockstep_collectives::{
    Attempt, Coordinator, CoordinatorOptions, Environment, JobId, JobSecret, KeySource, Rank,
    RankFailure, World, environment,
};
use rustix::process::{Pid, Signal, kill_process};

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const IN_A_RANK: &str = "LOCKSTEP_TEST_RANK";

/// Longer than anything takes unless it hangs.
const AMPLE: Duration = Duration::from_secs(60);

/// What a rank does: it says when the job is complete, and then what it hears.
#[test]
fn rank() {
    if std::env::var_os(IN_A_RANK).is_none() {
        return;
    }
    let world = World::from_environment().unwrap();
    let session = world.session().unwrap();
    println!("\n> joined {}", session.topology().world_size());
    let failure: Option<RankFailure> = session.failures().wait(AMPLE);
    println!("\n> {}", failure.unwrap());
}

struct Process {
    child: Child,
    said: Receiver<String>,
}

impl Process {
    fn start(environment: &Environment, heartbeat: Duration) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "rank", "--nocapture"])
            .envs(environment.variables())
            .env(environment::HEARTBEAT_TIMEOUT, format!("{}ms", heartbeat.as_millis()))
            .env(IN_A_RANK, "1")
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

#[test]
fn a_stopped_rank_may_go_on_and_a_killed_one_is_found_silent() {
    let heartbeat_timeout = Duration::from_secs(3);
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    let secret = JobSecret::generate().unwrap();
    secret.write_new(&key).unwrap();
    let coordinator = Coordinator::start(CoordinatorOptions {
        bind: LOOPBACK,
        job: JobId::new("processes").unwrap(),
        attempt: Attempt(0),
        world_size: 2,
        secret,
        heartbeat_timeout,
    })
    .unwrap();
    let job = job(coordinator.address(), true, &key);
    let [first, second] = job.each_ref().map(|rank| Process::start(rank, heartbeat_timeout));
    assert_eq!([first.says(), second.says()], ["joined 2", "joined 2"]);

    second.signal(Signal::STOP);
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
    let heartbeat_timeout = Duration::from_secs(2);
    let job = job(address, false, &key);
    let [host, other] = job.each_ref().map(|rank| Process::start(rank, heartbeat_timeout));
    assert_eq!([host.says(), other.says()], ["joined 2", "joined 2"]);
    host.signal(Signal::KILL);
    assert_eq!(other.says(), "rank 0 was silent for 4.0 s");
}
