//! Jobs to run a test on: every member a thread, over each transport.

use std::sync::Arc;
use std::time::Duration;

use lockstep_collectives::transport::sim::Simulation;
use lockstep_collectives::transport::{LocalTransport, Transport};
use lockstep_collectives::{Communicator, Member};

/// A job of some members.
pub trait Job {
    /// Runs `body` for every member at once; a panic in one is a panic of the test.
    fn run(&self, timeout: Duration, body: &(dyn Fn(Communicator) + Sync));
}

/// A simulated job whose rank `r` has `devices[r]` members.
pub fn sim(devices: &[u32]) -> Simulation {
    Simulation::new(devices, Duration::from_micros(50))
}

impl Job for Simulation {
    fn run(&self, timeout: Duration, body: &(dyn Fn(Communicator) + Sync)) {
        for outcome in Simulation::run(self, timeout, body) {
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    }
}

/// A job of one process with `members` members.
pub fn local(members: u32) -> impl Job {
    Local { members, transport: Arc::new(LocalTransport::new(members)) }
}

struct Local {
    members: u32,
    transport: Arc<dyn Transport>,
}

impl Job for Local {
    fn run(&self, timeout: Duration, body: &(dyn Fn(Communicator) + Sync)) {
        std::thread::scope(|scope| {
            for member in (0..self.members).map(Member) {
                let transport = Arc::clone(&self.transport);
                scope.spawn(move || body(Communicator::new(member, transport, timeout)));
            }
        });
    }
}
