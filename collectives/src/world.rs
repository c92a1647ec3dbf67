//! What a program opens: its place in a job, or a world of its own.
//!
//! Puts the parts together: the launcher's environment, the session with the coordinator (and the
//! coordinator itself, on rank 0 of a job that no launcher hosts), the transport, and the path on
//! which news of failures reaches blocked collectives. Holds no logic of theirs.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::rendezvous::{CoordinatorOptions, Invitation};
use crate::shared_memory::{self, Arena, Segment, Sharing};
use crate::transport::quic::QuicTransport;
use crate::transport::shm::ShmTransport;
use crate::transport::{LocalTransport, Transport};
use crate::{
    Attempt, Communicator, Coordinator, EndpointError, Environment, EnvironmentError, FlightLog,
    FlightRecorder, JobId, JobSecret, JoinError, JoinOptions, KeyValueStore, Limits, Meeting,
    MeetingError, Member, Policy, Rank, RendezvousError, SecretError, Session, SessionError,
    Topology, TransportChoice, environment,
};

/// How long a process that leaves waits for its peers to have what it sent.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the rank that hosts the rendezvous stays for those that are still at work.
const HOST_TIMEOUT: Duration = Duration::from_secs(300);

/// How long it stays when it ends by a panic: until the others have heard.
const PANICKED_HOST_TIMEOUT: Duration = Duration::from_secs(2);

/// How often it says that it waits.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// One process's place among the processes and devices of its job.
///
/// Dropping it leaves the job: first what was sent to the peers is delivered, and rank 0 of a job
/// without launcher stays until the others have left. Dropped by a panic, it does not leave, so
/// the others learn that this process is lost.
pub struct World {
    rank: Rank,
    topology: Arc<Topology>,
    sharing: Sharing,
    /// What this process shares with its neighbours, if anything.
    segment: Option<Arc<Segment>>,
    transport: Arc<dyn Transport>,
    /// Of the local members, in order.
    communicators: Vec<Communicator>,
    recorder: Arc<FlightRecorder>,
    collective_timeout: Duration,
    /// None for a world of one that has no job.
    membership: Option<Membership>,
}

struct Membership {
    session: Session,
    /// On the rank that hosts it.
    coordinator: Option<Coordinator>,
}

/// Why a process has no place in a job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// The network cannot be used.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The launcher's variables are wrong.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// Rank 0 cannot host the rendezvous.
    #[error("{0}: without a launcher, rank 0 does that, at LOCKSTEP_COORDINATOR")]
    Host(#[from] RendezvousError),
    /// The coordinator's name has no address on which rank 0 could host the rendezvous.
    #[error("rank 0 cannot host the rendezvous at {coordinator}, which does not resolve: {source}")]
    HostName {
        /// The name.
        coordinator: String,
        /// What the name service said.
        source: io::Error,
    },
    /// The job could not be joined.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The processes did not meet.
    #[error(transparent)]
    Meeting(#[from] MeetingError),
    /// The job's secret could not be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The ranks did not agree on who shares memory.
    #[error("cannot agree with the other ranks on who shares memory: {0}")]
    Sharing(SessionError),
    /// Shared memory was asked for and cannot be had.
    #[error(
        "{} is shm, but {rank} cannot share memory with {peer}: {reason}; set it to auto to reach \
         such ranks over QUIC",
        environment::TRANSPORT
    )]
    NotShared {
        /// This process.
        rank: Rank,
        /// A rank of the same host; this process itself if it has no segment at all.
        peer: Rank,
        /// What stands in the way.
        reason: String,
    },
}

impl World {
    /// The world that the launcher's environment describes; without a launcher, a world of one.
    /// Its collectives choose their algorithms as the environment says ([`Policy::from_process`]).
    ///
    /// # Errors
    /// When the environment is wrong or incomplete, or the job cannot be joined.
    pub fn from_environment() -> Result<Self, WorldError> {
        Self::from_environment_over(TransportChoice::from_process()?)
    }

    /// As [`World::from_environment`], with another choice of the transport than the environment's.
    ///
    /// # Errors
    /// As [`World::from_environment`], and when shared memory is chosen but cannot be had.
    pub fn from_environment_over(choice: TransportChoice) -> Result<Self, WorldError> {
        let (limits, policy) = (Limits::from_process()?, Policy::from_process()?);
        let mut world = match Environment::from_process()? {
            Some(environment) => Self::join_over(&environment, limits, choice)?,
            None => {
                let devices = environment::devices_of_process()?;
                tracing::info!(
                    "a world of one with {devices} devices: {} is not set",
                    environment::RANK
                );
                let world = Self::alone(devices, limits, choice);
                if let (Some(reason), true) = (world.sharing.refusal(world.rank), devices > 1) {
                    tracing::info!("its devices share no memory: {reason}");
                }
                world.require(choice)?;
                world
            }
        };
        for communicator in &mut world.communicators {
            *communicator = communicator.with_policy(policy);
        }
        Ok(world)
    }

    /// Joins the job that `environment` describes, whatever the process's own environment says.
    ///
    /// # Errors
    /// When the job cannot be joined, or not within `limits.init`.
    pub fn join(environment: &Environment, limits: Limits) -> Result<Self, WorldError> {
        Self::join_over(environment, limits, TransportChoice::Auto)
    }

    /// As [`World::join`], reaching the ranks of the same host by the means that `choice` says.
    ///
    /// # Errors
    /// As [`World::join`], when the ranks do not agree on who shares memory within another
    /// `limits.init`, and when shared memory is chosen but cannot be had.
    pub fn join_over(
        environment: &Environment,
        limits: Limits,
        choice: TransportChoice,
    ) -> Result<Self, WorldError> {
        let Environment { rank, world_size, coordinator, job, attempt, devices, .. } = environment;
        let processors = environment.local_processors;
        let host = if environment.coordinator_hosted { "its launcher" } else { "rank 0" };
        tracing::info!(
            "{rank} of {world_size} with {devices} devices in {attempt} of job {job}, coordinated \
             at {coordinator} by {host}, key from {}; collectives wait {:?}",
            environment.key,
            limits.collective,
        );
        let secret = JobSecret::from_source(&environment.key)?;
        let hosts = !environment.coordinator_hosted && *rank == Rank(0);
        let coordinator = hosts
            .then(|| host_rendezvous(coordinator, job, *attempt, *world_size, limits, &secret));
        let coordinator = coordinator.transpose()?;
        let options = JoinOptions {
            coordinator: environment.coordinator.clone(),
            job: job.clone(),
            attempt: *attempt,
            rank: *rank,
            world_size: *world_size,
            devices: *devices,
            secret: secret.clone(),
            key: environment.key.to_string(),
            host: (!environment.coordinator_hosted).then_some(Rank(0)),
            timeout: limits.init,
        };
        Self::enter(&options, coordinator, limits, choice, processors)
    }

    /// Makes a job with processes that nobody launched as one: they find each other in `store`, by
    /// what `meeting` says of each. Collectives choose their algorithms, and processes of one host
    /// how they reach each other, as the environment says.
    ///
    /// # Errors
    /// As [`World::from_environment`]; when the store fails, or a process does not come within
    /// `LOCKSTEP_INIT_TIMEOUT`.
    pub fn meet(store: &dyn KeyValueStore, meeting: &Meeting) -> Result<Self, WorldError> {
        let (limits, policy) = (Limits::from_process()?, Policy::from_process()?);
        let choice = TransportChoice::from_process()?;
        let mut world = Self::meet_over(store, meeting, limits, choice)?;
        for communicator in &mut world.communicators {
            *communicator = communicator.with_policy(policy);
        }
        Ok(world)
    }

    fn meet_over(
        store: &dyn KeyValueStore,
        meeting: &Meeting,
        limits: Limits,
        choice: TransportChoice,
    ) -> Result<Self, WorldError> {
        let Meeting { rank, world_size, devices, .. } = meeting;
        tracing::info!("{rank} of {world_size} with {devices} devices meets in a key-value store");
        let options = |invitation: &Invitation| JoinOptions {
            coordinator: invitation.coordinator.clone(),
            job: invitation.job.clone(),
            attempt: Attempt(0),
            rank: *rank,
            world_size: *world_size,
            devices: *devices,
            secret: invitation.secret.clone(),
            key: "the key-value store".to_owned(),
            host: Some(Rank(0)),
            timeout: limits.init,
        };
        if *rank != Rank(0) {
            let options = options(&meeting.ask(store, limits.init)?);
            return Self::enter(&options, None, limits, choice, None);
        }
        let (job, secret) = (JobId::random()?, JobSecret::generate()?);
        let named = format!("{}:0", meeting.host);
        let coordinator = host_rendezvous(&named, &job, Attempt(0), *world_size, limits, &secret)?;
        let at = format!("{}:{}", meeting.host, coordinator.address().port());
        let invitation = Invitation { coordinator: at, job, secret };
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            meeting.answer(scope, store, &invitation, limits.init, &is_over);
            let options = options(&invitation);
            let world = Self::enter(&options, Some(coordinator), limits, choice, None);
            is_over.store(true, Ordering::Relaxed);
            world
        })
    }

    /// Joins a job, on whose rank 0 this process may host the rendezvous. `processors`: as
    /// [`Environment::local_processors`].
    fn enter(
        options: &JoinOptions,
        coordinator: Option<Coordinator>,
        limits: Limits,
        choice: TransportChoice,
        processors: Option<u32>,
    ) -> Result<Self, WorldError> {
        let JoinOptions { rank, secret, .. } = options;
        let (session, socket) = Session::join(options)?;
        let topology = Arc::clone(session.topology());
        let identity = session.endpoint().identity().clone();
        let transport: Arc<dyn Transport> =
            Arc::new(QuicTransport::new(identity, socket, *rank, Arc::clone(&topology))?);
        let interrupted = Arc::downgrade(&transport);
        session.failures().on_failure(move |failure| {
            if let Some(transport) = interrupted.upgrade() {
                transport.fail_rank(failure.clone());
            }
        });
        let shared = shared_memory::agree(&session, secret, choice, limits.init);
        let (sharing, segment) = shared.map_err(WorldError::Sharing)?;
        tracing::info!("{rank} reaches {}", sharing.describe(*rank, &topology));
        let transport = share(transport, *rank, &topology, &sharing, segment.as_ref(), processors);
        let recorder = Arc::new(FlightRecorder::new());
        report_flights(&session, &recorder, &transport);
        let world = Self {
            communicators: communicators(*rank, &topology, &transport, &recorder, limits),
            rank: *rank,
            topology,
            sharing,
            segment,
            transport,
            recorder,
            collective_timeout: limits.collective,
            membership: Some(Membership { session, coordinator }),
        };
        world.require(choice)?;
        Ok(world)
    }

    /// A world of one process with `devices` devices. It uses no network.
    pub fn solo(devices: u32) -> Self {
        Self::alone(devices, Limits::default(), TransportChoice::Auto)
    }

    /// This process.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// All processes. That of a world of one has no address that anyone could reach.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// The session with the coordinator; `None` in a world of one without a job.
    pub fn session(&self) -> Option<&Session> {
        self.membership.as_ref().map(|membership| &membership.session)
    }

    /// The collectives of `member`, one of this process. All calls for one member share its
    /// sequence numbers.
    ///
    /// # Panics
    /// When `member` is another process's or none, as indexing does.
    pub fn communicator(&self, member: Member) -> Communicator {
        let found = self.communicators.iter().find(|communicator| communicator.member() == member);
        #[expect(
            clippy::panic,
            reason = "documented; the program's text chooses members, not input"
        )]
        found.cloned().unwrap_or_else(|| panic!("{member} is none of {}'s", self.rank))
    }

    /// The members of this process.
    pub fn local_members(&self) -> impl ExactSizeIterator<Item = Member> {
        self.topology.members_of(self.rank).map(Member)
    }

    /// How long a collective waits for its members unless its call says otherwise.
    pub fn collective_timeout(&self) -> Duration {
        self.collective_timeout
    }

    /// The last collectives of this process, those that run included.
    pub fn flight_log(&self) -> FlightLog {
        self.recorder.log(self.transport.now())
    }

    /// Which processes share memory: the same value on all of them.
    pub fn sharing(&self) -> &Sharing {
        &self.sharing
    }

    /// Memory that the other processes of this host read in place; `None` when this one shares
    /// none.
    pub fn arena(&self) -> Option<&Arc<Arena>> {
        self.segment.as_ref().map(|segment| segment.arena())
    }

    fn alone(devices: u32, limits: Limits, choice: TransportChoice) -> Self {
        let rank = Rank(0);
        let topology = Arc::new(Topology::solo(devices));
        let transport: Arc<dyn Transport> = Arc::new(LocalTransport::new(devices));
        let (sharing, segment) = shared_memory::alone(devices, choice);
        let transport = share(transport, rank, &topology, &sharing, segment.as_ref(), None);
        let recorder = Arc::new(FlightRecorder::new());
        Self {
            communicators: communicators(rank, &topology, &transport, &recorder, limits),
            rank,
            topology,
            sharing,
            segment,
            transport,
            recorder,
            collective_timeout: limits.collective,
            membership: None,
        }
    }

    /// Whether what was chosen is what there is.
    fn require(&self, choice: TransportChoice) -> Result<(), WorldError> {
        let rank = self.rank;
        let shares = |peer| choice != TransportChoice::Shm || self.sharing.shares(rank, peer);
        // With itself a rank shares only if it has several members.
        let several = self.local_members().len() > 1;
        let mut wanted = self.topology.neighbours_of(rank).filter(|peer| several || *peer != rank);
        let Some(peer) = wanted.find(|peer| !shares(*peer)) else { return Ok(()) };
        let refusal = self.sharing.refusal(rank).or_else(|| self.sharing.refusal(peer));
        let reason = refusal.unwrap_or("they have different segments").to_owned();
        Err(WorldError::NotShared { rank, peer, reason })
    }
}

/// `transport`, with the ranks that share `segment` with `rank` reached through it.
fn share(
    transport: Arc<dyn Transport>,
    rank: Rank,
    topology: &Topology,
    sharing: &Sharing,
    segment: Option<&Arc<Segment>>,
    processors: Option<u32>,
) -> Arc<dyn Transport> {
    let Some(segment) = segment else { return transport };
    let ranks: Vec<Rank> =
        topology.neighbours_of(rank).filter(|peer| sharing.shares(rank, *peer)).collect();
    let members = ranks.iter().map(|rank| topology.members_of(*rank).len()).sum();
    Arc::new(ShmTransport::new(transport, Arc::clone(segment), ranks, members, processors))
}

/// Those of the members of `rank`, in order.
fn communicators(
    rank: Rank,
    topology: &Topology,
    transport: &Arc<dyn Transport>,
    recorder: &Arc<FlightRecorder>,
    limits: Limits,
) -> Vec<Communicator> {
    let communicator = |member| {
        let (transport, recorder) = (Arc::clone(transport), Arc::clone(recorder));
        Communicator::recorded(Member(member), transport, limits.collective, recorder)
    };
    topology.members_of(rank).map(communicator).collect()
}

impl Drop for World {
    fn drop(&mut self) {
        let Some(Membership { session, coordinator }) = self.membership.take() else { return };
        let panicking = std::thread::panicking();
        if panicking {
            drop(session);
        } else {
            self.transport.flush(FLUSH_TIMEOUT);
            if let Err(error) = session.leave() {
                tracing::debug!("{} left unnoticed: {error}", self.rank);
            }
        }
        if let Some(coordinator) = coordinator {
            wait_for_others(
                &coordinator,
                if panicking { PANICKED_HOST_TIMEOUT } else { HOST_TIMEOUT },
            );
        }
    }
}

/// Has the coordinator told what the process did last, when something fails.
fn report_flights(session: &Session, recorder: &Arc<FlightRecorder>, clock: &Arc<dyn Transport>) {
    // The recorder keeps what is returned below, and must not keep itself.
    let (reader, clock) = (Arc::downgrade(recorder), Arc::downgrade(clock));
    let read = move || match (reader.upgrade(), clock.upgrade()) {
        (Some(recorder), Some(clock)) => recorder.log(clock.now()),
        _ => FlightLog::default(),
    };
    recorder.when_failed(session.report_flights(Box::new(read)));
}

/// Hosts the rendezvous where the job's processes will look for it; at any port where `named` says 0.
fn host_rendezvous(
    named: &str,
    job: &JobId,
    attempt: Attempt,
    world_size: u32,
    limits: Limits,
    secret: &JobSecret,
) -> Result<Coordinator, WorldError> {
    let name_error = |source| WorldError::HostName { coordinator: named.to_owned(), source };
    let mut addresses = named.to_socket_addrs().map_err(name_error)?;
    let named = addresses.next().ok_or_else(|| name_error(io::ErrorKind::NotFound.into()))?;
    let start = |bind| {
        Coordinator::start(CoordinatorOptions {
            bind,
            job: job.clone(),
            attempt,
            world_size,
            secret: secret.clone(),
            heartbeat_timeout: limits.heartbeat,
        })
    };
    match start(named) {
        // The name is this host's address as others see it, behind a translation: then any will do.
        Err(RendezvousError::Endpoint(EndpointError::Bind { source, .. }))
            if source.kind() == io::ErrorKind::AddrNotAvailable =>
        {
            let any = match named {
                SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            Ok(start(SocketAddr::new(any, named.port()))?)
        }
        started => Ok(started?),
    }
}

fn wait_for_others(coordinator: &Coordinator, timeout: Duration) {
    let mut left = timeout;
    while !coordinator.wait_until_empty(left.min(REPORT_INTERVAL)) {
        left = left.saturating_sub(REPORT_INTERVAL);
        let joined = coordinator.status().joined;
        if left.is_zero() {
            tracing::warn!("no longer hosts the rendezvous, though {joined:?} have not left");
            return;
        }
        tracing::info!("stays to host the rendezvous until {joined:?} have left");
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("rank", &self.rank)
            .field("topology", &self.topology)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, ElementType, Reduction};

    #[test]
    fn a_world_of_one_has_its_devices_and_no_session() {
        let world = World::solo(3);
        assert_eq!((world.rank(), world.topology().member_count()), (Rank(0), 3));
        assert_eq!(world.local_members().collect::<Vec<_>>(), [Member(0), Member(1), Member(2)]);
        assert!(world.session().is_none());
        assert_eq!(world.collective_timeout(), Duration::from_secs(300));
    }

    #[test]
    fn a_world_of_one_shares_memory_between_its_devices() {
        let world = World::solo(2);
        assert!(world.sharing().shares(Rank(0), Rank(0)));
        let mut bytes = world.arena().unwrap().allocate(3).unwrap();
        bytes.copy_from_slice(&[1, 2, 3]);
        assert_eq!(*bytes, [1, 2, 3]);
        for (devices, choice, reason) in [
            (1, TransportChoice::Auto, "nobody to share memory with"),
            (2, TransportChoice::Quic, "LOCKSTEP_TRANSPORT is quic"),
        ] {
            let world = World::alone(devices, Limits::default(), choice);
            assert!(world.arena().is_none());
            let refusal = world.sharing().refusal(Rank(0)).unwrap();
            assert!(refusal.contains(reason), "{refusal}");
            assert!(!world.sharing().shares(Rank(0), Rank(0)));
        }
    }

    #[test]
    fn members_that_share_memory_see_who_has_arrived() {
        let both = [Member(0), Member(1)];
        let world = World::solo(2);
        let [first, second] = both.map(|member| world.communicator(member).group(&both).unwrap());
        for count in 1..=3 {
            assert_eq!(first.arrive(), count);
            assert!(!first.have_arrived(count));
            assert_eq!(second.arrive(), count);
            assert!(first.have_arrived(count) && second.have_arrived(count));
        }
        let (limits, quic) = (Limits::default(), TransportChoice::Quic);
        let apart = World::alone(2, limits, quic);
        for group in both.map(|member| apart.communicator(member).group(&both).unwrap()) {
            let count = group.arrive();
            assert!(!group.have_arrived(count));
        }
    }

    #[test]
    #[should_panic(expected = "device 3 is none of rank 0's")]
    fn a_member_of_nobody_has_no_communicator() {
        World::solo(3).communicator(Member(3));
    }

    #[test]
    fn the_members_of_a_world_of_one_reduce_together() {
        let world = World::solo(2);
        let sums: Vec<i32> = std::thread::scope(|scope| {
            let members: Vec<_> = world
                .local_members()
                .map(|member| {
                    // Two handles on one member share its sequence numbers.
                    let handles = [world.communicator(member), world.communicator(member)];
                    scope.spawn(move || {
                        let mut value = 10 + i32::try_from(member.0).unwrap();
                        for communicator in handles {
                            let group = communicator.group(&[Member(0), Member(1)]).unwrap();
                            let mut sum = [0; 4];
                            communicator
                                .all_reduce(
                                    &Call::on(&group),
                                    ElementType::I32,
                                    Reduction::Sum,
                                    &value.to_le_bytes(),
                                    &mut sum,
                                )
                                .unwrap();
                            value = i32::from_le_bytes(sum);
                        }
                        value
                    })
                })
                .collect();
            members.into_iter().map(|member| member.join().unwrap()).collect()
        });
        assert_eq!(sums, [42, 42]);
    }
}
