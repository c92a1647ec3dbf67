//! Jobs to run a test on: every member a thread, over each transport.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use lockstep_collectives::shared_memory::Segment;
use lockstep_collectives::transport::quic::{PeerSocket, QuicTransport};
use lockstep_collectives::transport::shm::ShmTransport;
use lockstep_collectives::transport::sim::Simulation;
use lockstep_collectives::transport::{LocalTransport, Transport};
use lockstep_collectives::{
    Attempt, Communicator, HostId, Identity, JobId, JobSecret, Member, PeerName, Rank, RankInfo,
    Topology,
};

/// A job of some members.
pub(crate) trait Job {
    /// Runs `body` for every member at once; a panic in one is a panic of the test.
    fn run(&self, timeout: Duration, body: &(dyn Fn(Communicator) + Sync));
}

/// What a message of a simulated job takes.
pub(crate) const LATENCY: Duration = Duration::from_micros(50);

/// A simulated job whose rank `r` has `devices[r]` members.
pub(crate) fn sim(devices: &[u32]) -> Sim {
    Sim(Simulation::new(devices, LATENCY))
}

/// A simulated job whose rank `r` has one member and is on the host with the number `hosts[r]`.
pub(crate) fn sim_on(hosts: &[usize]) -> Sim {
    Sim(Simulation::on_hosts(&vec![1; hosts.len()], hosts, LATENCY))
}

pub(crate) struct Sim(pub(crate) Simulation);

impl Job for Sim {
    fn run(&self, timeout: Duration, body: &(dyn Fn(Communicator) + Sync)) {
        for outcome in self.0.run(timeout, body) {
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    }
}

/// A job of one process with `members` members.
pub(crate) fn local(members: u32) -> impl Job {
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

/// A job over loopback whose rank `r` has `devices[r]` members and a socket of its own.
pub(crate) fn quic(devices: &[u32]) -> Quic {
    quic_on(devices, &vec![0; devices.len()])
}

/// As [`quic`], with rank `r` on the host with the number `hosts[r]`.
pub(crate) fn quic_on(devices: &[u32], hosts: &[u64]) -> Quic {
    let secret = JobSecret::generate().unwrap();
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut sockets = Vec::new();
    let mut ranks = Vec::new();
    for ((&devices, &host), rank) in devices.iter().zip(hosts).zip((0..).map(Rank)) {
        let identity = Identity::new(&secret, PeerName::Rank(rank)).unwrap();
        let socket = PeerSocket::bind(loopback).unwrap();
        ranks.push(RankInfo {
            rank,
            host: HostId { network: host, ..HostId::of_this_host() },
            process_id: std::process::id(),
            devices,
            address: socket.local_address(),
            fingerprint: identity.fingerprint(),
        });
        sockets.push((identity, socket));
    }
    let job = JobId::new("test").unwrap();
    let topology = Arc::new(Topology::new(job, Attempt(0), ranks).unwrap());
    let transports = sockets.into_iter().zip((0..).map(Rank)).map(|((identity, socket), rank)| {
        let topology = Arc::clone(&topology);
        let quic = QuicTransport::new(identity, socket, rank, topology).unwrap();
        Arc::new(quic) as Arc<dyn Transport>
    });
    Quic { transports: transports.collect(), topology, segments: Vec::new() }
}

/// As [`quic`], with a segment that each rank maps for itself.
pub(crate) fn shm(devices: &[u32]) -> Quic {
    shm_on(devices, &vec![0; devices.len()])
}

/// As [`quic_on`], with a segment for each host that each of its ranks maps for itself.
pub(crate) fn shm_on(devices: &[u32], hosts: &[u64]) -> Quic {
    let mut quic = quic_on(devices, hosts);
    let mut distinct = hosts.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let mut placed = Vec::new();
    for host in distinct {
        let ranks: Vec<Rank> =
            (0..).map(Rank).zip(hosts).filter(|(_, h)| **h == host).map(|(r, _)| r).collect();
        let first = Segment::create(ranks.len()).unwrap();
        let file = first.file().try_clone_to_owned().unwrap();
        let others =
            (1..ranks.len()).map(|place| Segment::open(file.try_clone().unwrap(), place).unwrap());
        let segments: Vec<_> = std::iter::once(first).chain(others).map(Arc::new).collect();
        let members = ranks.iter().map(|rank| quic.topology.members_of(*rank).len()).sum();
        for (rank, segment) in ranks.iter().zip(segments) {
            placed.push((*rank, Arc::clone(&segment)));
            let transport = &mut quic.transports[rank.0 as usize];
            let network = Arc::clone(transport);
            *transport =
                Arc::new(ShmTransport::new(network, segment, ranks.clone(), members, None));
        }
    }
    placed.sort_by_key(|(rank, _)| *rank);
    quic.segments = placed.into_iter().map(|(_, segment)| segment).collect();
    quic
}

pub(crate) struct Quic {
    /// By rank.
    pub(crate) transports: Vec<Arc<dyn Transport>>,
    pub(crate) topology: Arc<Topology>,
    /// By rank, where they share memory.
    pub(crate) segments: Vec<Arc<Segment>>,
}

impl Job for Quic {
    fn run(&self, timeout: Duration, body: &(dyn Fn(Communicator) + Sync)) {
        std::thread::scope(|scope| {
            for member in (0..self.topology.member_count()).map(Member) {
                let rank = self.topology.rank_of(member).unwrap();
                let transport = Arc::clone(&self.transports[rank.0 as usize]);
                scope.spawn(move || body(Communicator::new(member, transport, timeout)));
            }
        });
    }
}
