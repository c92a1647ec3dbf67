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

/// Whether a process ended well, and what it said.
pub(crate) type End = (bool, Vec<String>);

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
            process(client::Client::solo(*devices).unwrap());
        } else if self.in_one_process {
            self.hosted(|environments| threads(environments, process));
        } else {
            expect_success(&self.ends(topic));
        }
    }

    /// Runs this binary as each process.
    pub(crate) fn ends(self, topic: &str) -> Vec<End> {
        let what = format!("{}/{topic}", self.name);
        self.hosted(|environments| {
            let start = |environment| Process::start(environment, &what);
            let processes: Vec<Process> = environments.iter().map(start).collect();
            let deadline = Instant::now() + AMPLE;
            processes.into_iter().map(|process| process.finish(deadline)).collect()
        })
    }

    /// Calls `run` with the environments of the processes, while somebody hosts their rendezvous.
    fn hosted<T>(self, run: impl FnOnce(&[Environment]) -> T) -> T {
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
        run(&self.environments(&id, coordinator.address(), &key))
    }

    fn environments(self, job: &JobId, coordinator: SocketAddr, key: &Path) -> Vec<Environment> {
        let world_size = u32::try_from(self.devices.len()).unwrap();
        let environment = |(rank, &devices): (u32, &u32)| Environment {
            rank: Rank(rank),
            world_size,
            local_rank: rank,
            local_size: world_size,
            local_processors: None,
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

/// Checks that all processes ended well, or shows what those that did not said.
pub(crate) fn expect_success(ends: &[End]) {
    let failed = ends.iter().enumerate().filter(|(_, (ended_well, _))| !ended_well);
    let said = failed.map(|(rank, (_, lines))| format!("process {rank}:\n{}\n", lines.join("\n")));
    let said: String = said.collect();
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

    fn finish(mut self, deadline: Instant) -> End {
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
