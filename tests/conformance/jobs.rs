//! Jobs to run cases on: one client, clients of one process, or processes of their own.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use lockstep::backend::cpu::CpuBackend;
use lockstep::client;
use lockstep::ifrt::Client;
use lockstep_collectives::{
    Attempt, Coordinator, CoordinatorOptions, Environment, JobId, JobSecret, KeySource, Limits,
    Rank, World,
};

/// Tells a process of a job what it is to run: `job/topic`.
pub(crate) const TOPIC: &str = "LOCKSTEP_TEST_CONFORMANCE";

/// Longer than anything takes unless it hangs.
const AMPLE: Duration = Duration::from_secs(100);

/// The shape of a job.
#[derive(Clone, Copy)]
pub(crate) struct Job {
    pub(crate) name: &'static str,
    /// Of each process.
    devices: &'static [u32],
    in_one_process: bool,
}

impl Job {
    pub(crate) const fn new(name: &'static str, devices: &'static [u32]) -> Self {
        Self { name, devices, in_one_process: false }
    }

    pub(crate) const fn in_one_process(self) -> Self {
        Self { in_one_process: true, ..self }
    }

    /// Runs `process` for each process, or this binary as each.
    pub(crate) fn run(self, topic: &str, process: impl Fn(Arc<dyn Client>) + Sync) {
        if let [devices] = self.devices {
            return process(client::Client::solo(*devices).unwrap());
        }
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        let secret = JobSecret::generate().unwrap();
        secret.write_new(&key).unwrap();
        let id = JobId::new("conformance").unwrap();
        let coordinator = Coordinator::start(CoordinatorOptions {
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            job: id.clone(),
            attempt: Attempt(0),
            world_size: u32::try_from(self.devices.len()).unwrap(),
            secret,
            heartbeat_timeout: AMPLE,
        })
        .unwrap();
        let environments = self.environments(&id, coordinator.address(), &key);
        if self.in_one_process {
            return threads(&environments, process);
        }
        processes(&environments, &format!("{}/{topic}", self.name));
    }

    fn environments(self, job: &JobId, coordinator: SocketAddr, key: &Path) -> Vec<Environment> {
        let world_size = u32::try_from(self.devices.len()).unwrap();
        let environment = |(rank, &devices): (u32, &u32)| Environment {
            rank: Rank(rank),
            world_size,
            local_rank: rank,
            local_size: world_size,
            coordinator: coordinator.to_string(),
            coordinator_hosted: true,
            job: job.clone(),
            attempt: Attempt(0),
            key: KeySource::File(key.to_owned()),
            devices,
        };
        (0..).zip(self.devices).map(environment).collect()
    }
}

fn threads(environments: &[Environment], process: impl Fn(Arc<dyn Client>) + Sync) {
    std::thread::scope(|scope| {
        for environment in environments {
            let process = &process;
            scope.spawn(move || {
                let world = World::join(environment, Limits::default()).unwrap();
                let backend = CpuBackend::new(environment.devices as usize);
                process(client::Client::new(world, Arc::new(backend)).unwrap());
            });
        }
    });
}

fn processes(environments: &[Environment], what: &str) {
    let processes: Vec<Process> = environments.iter().map(|e| Process::start(e, what)).collect();
    let deadline = Instant::now() + AMPLE;
    let ends: Vec<_> = processes.into_iter().map(|process| process.finish(deadline)).collect();
    let mut said = String::new();
    for (rank, (ended_well, lines)) in ends.iter().enumerate() {
        if !ended_well {
            said += &format!("process {rank} of {what}:\n{}\n", lines.join("\n"));
        }
    }
    assert!(said.is_empty(), "{said}");
}

/// A process of a job.
struct Process {
    child: Child,
    said: mpsc::Receiver<String>,
}

impl Process {
    fn start(environment: &Environment, what: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process_of_a_job", "--nocapture"])
            .envs(environment.variables())
            .env(TOPIC, what)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, said) = mpsc::channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { child, said }
    }

    /// Whether it ended well, and what it said.
    fn finish(mut self, deadline: Instant) -> (bool, Vec<String>) {
        let mut lines = Vec::new();
        loop {
            match self.said.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => lines.push(line),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    lines.push(format!("it was still running after {AMPLE:?}"));
                    return (false, lines);
                }
            }
        }
        (self.child.wait().unwrap().success(), lines)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Only one that hangs is alive by now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
