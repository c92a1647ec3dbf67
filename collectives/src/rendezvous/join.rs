//! Joining: from a coordinator's name to a [`Session`], through everything that may not be there
//! yet.
//!
//! Processes of a job start in any order, before the coordinator and before its name resolves. So
//! joining tries again until its time is up, says every ten seconds what it waits for, and gives up
//! early only for reasons that waiting does not cure.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use quinn::TransportConfig;

use super::link::{Link, Standing};
use super::message::{FromMember, Join};

use super::{JoinRefusal, Session, SessionError};
use crate::secret::random_bytes;
use crate::transport::quic::PeerSocket;
use crate::{
    Attempt, ConnectError, EndpointError, HostId, Identity, IdentityError, JobId, JobSecret,
    PeerEndpoint, PeerName, Protocol, Rank, RankInfo, SecretError, Topology, TopologyError,
    address_towards,
};

/// How often it is said what is waited for.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// The wait before the second try; it doubles with each.
const FIRST_BACKOFF: Duration = Duration::from_millis(50);

/// The longest wait between two tries.
const LONGEST_BACKOFF: Duration = Duration::from_secs(2);

/// What a limit means that is beyond what the clock can show.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// What a process joins, and as what.
#[derive(Clone, Debug)]
pub struct JoinOptions {
    /// `host:port` of the coordinator.
    pub coordinator: String,
    /// The job.
    pub job: JobId,
    /// Its restart count.
    pub attempt: Attempt,
    /// This process.
    pub rank: Rank,
    /// All processes of the job.
    pub world_size: u32,
    /// The devices that this process shows.
    pub devices: u32,
    /// What the job's processes prove to hold.
    pub secret: JobSecret,
    /// Where the secret is from, for errors.
    pub key: String,
    /// The rank whose process hosts the coordinator; `None` when a launcher does.
    pub host: Option<Rank>,
    /// How long the coordinator and all ranks may take to come.
    pub timeout: Duration,
}

/// Why a process could not join its job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// This process's port could not be opened.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// This process's identity could not be made.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The coordinator holds another secret.
    #[error(
        "the coordinator at {coordinator} has another job secret than {key}: is it another job's?"
    )]
    OtherSecret {
        /// The coordinator.
        coordinator: String,
        /// Where this process's secret is from.
        key: String,
    },
    /// The system has no random numbers.
    #[error(transparent)]
    Randomness(#[from] SecretError),
    /// The coordinator does not admit this process.
    #[error("the coordinator at {coordinator} refused {rank}: {refusal}")]
    Refused {
        /// The coordinator.
        coordinator: String,
        /// This process.
        rank: Rank,
        /// Why.
        refusal: JoinRefusal,
    },
    /// The session could not be started.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The job did not come together in time.
    #[error("{rank} waited {waited:?} to join at {coordinator}: {obstacle}")]
    TimedOut {
        /// The coordinator.
        coordinator: String,
        /// This process.
        rank: Rank,
        /// The limit.
        waited: Duration,
        /// What was missing last, and why.
        obstacle: String,
    },
    /// The coordinator describes a job that cannot be.
    #[error("the coordinator at {coordinator} describes a job that cannot be: {detail}")]
    Topology {
        /// The coordinator.
        coordinator: String,
        /// What is wrong.
        detail: TopologyError,
    },
}

/// Why one try did not succeed.
enum Failure {
    /// Another may.
    Passing(String),
    Lasting(JoinError),
}

/// A join under way.
struct Joining<'a> {
    options: &'a JoinOptions,
    identity: Identity,
    incarnation: u64,
    /// What the last try opened, to be used again if the next one starts from the same address.
    open: Option<Open>,
    deadline: Instant,
    next_report: Instant,
}

/// What a process is reached at: by the coordinator on a connection that it dials from an endpoint
/// of its own, and by its peers at a socket.
struct Open {
    endpoint: Arc<PeerEndpoint>,
    socket: PeerSocket,
}

impl Session {
    /// Joins a job: returns when all its ranks have.
    ///
    /// The socket for its peers is opened on the address from which the kernel reaches the
    /// coordinator, before the other ranks learn of it.
    ///
    /// # Errors
    /// When the coordinator refuses this process, or the job does not come together in time.
    pub fn join(options: &JoinOptions) -> Result<(Self, PeerSocket), JoinError> {
        let start = Instant::now();
        let mut joining = Joining {
            options,
            identity: Identity::new(&options.secret, PeerName::Rank(options.rank))?,
            incarnation: u64::from_le_bytes(random_bytes()?),
            open: None,
            deadline: start.checked_add(options.timeout).unwrap_or(start + FOREVER),
            next_report: start + REPORT_INTERVAL,
        };
        let mut backoff = FIRST_BACKOFF;
        loop {
            let obstacle = match joining.attempt() {
                Ok(session) => return Ok(session),
                Err(Failure::Lasting(error)) => return Err(error),
                Err(Failure::Passing(obstacle)) => obstacle,
            };
            if joining.remaining() <= backoff {
                return Err(joining.timed_out(obstacle));
            }
            joining.report(&obstacle);
            std::thread::sleep(backoff);
            backoff = LONGEST_BACKOFF.min(backoff * 2);
        }
    }
}

impl Joining<'_> {
    /// Tries each address of the coordinator once.
    fn attempt(&mut self) -> Result<(Session, PeerSocket), Failure> {
        let mut obstacle = "its name has no address".to_owned();
        for address in self.resolve()? {
            match self.attempt_at(address) {
                Err(Failure::Passing(reason)) => obstacle = reason,
                done => return done,
            }
        }
        Err(Failure::Passing(obstacle))
    }

    fn attempt_at(&mut self, address: SocketAddr) -> Result<(Session, PeerSocket), Failure> {
        let local = address_towards(address)
            .map_err(|error| passing(format_args!("no route to {address}: {error}")))?;
        let (endpoint, reached_at) = self.open(local)?;
        let connection = self.connect(&endpoint, address)?;
        let options = self.options;
        let join = Join {
            job: options.job.clone(),
            attempt: options.attempt,
            rank: options.rank,
            world_size: options.world_size,
            incarnation: self.incarnation,
            host: HostId::of_this_host(),
            process_id: std::process::id(),
            devices: options.devices,
            address: reached_at,
        };
        let link = Link::start(
            &endpoint,
            connection,
            options.coordinator.clone(),
            options.job.clone(),
            options.host.filter(|host| *host != options.rank),
            FromMember::Join(join),
        );
        let (ranks, heartbeat_timeout) = self.wait_for_all(&link)?;
        let topology = Topology::new(options.job.clone(), options.attempt, ranks);
        let topology = topology.map_err(|detail| {
            let coordinator = options.coordinator.clone();
            Failure::Lasting(JoinError::Topology { coordinator, detail })
        })?;
        let topology = Arc::new(topology);
        let socket = self.open.take().map(|open| open.socket);
        let socket = socket.ok_or_else(|| passing("the socket is gone"))?;
        Session::new(link, endpoint, topology, options.rank, heartbeat_timeout)
            .map(|session| (session, socket))
            .map_err(|error| Failure::Lasting(error.into()))
    }

    /// The coordinator's addresses. Name services have timeouts of their own, which may be longer
    /// than ours, so they are asked on another thread.
    fn resolve(&self) -> Result<Vec<SocketAddr>, Failure> {
        let name = self.options.coordinator.clone();
        let (sender, receiver) = sync_channel(1);
        std::thread::Builder::new()
            .name("lockstep-resolve".to_owned())
            .spawn(move || drop(sender.send(name.to_socket_addrs().map(Vec::from_iter))))
            .map_err(|error| passing(format_args!("cannot start a thread: {error}")))?;
        match receiver.recv_timeout(self.remaining().min(REPORT_INTERVAL)) {
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) => Err(passing(format_args!("its name does not resolve: {error}"))),
            Err(_) => Err(passing("the name service does not answer")),
        }
    }

    /// This process's endpoint at `local`, and the address of its socket for its peers.
    fn open(&mut self, local: IpAddr) -> Result<(Arc<PeerEndpoint>, SocketAddr), Failure> {
        if let Some(Open { endpoint, socket }) = &self.open
            && socket.local_address().ip() == local
        {
            return Ok((Arc::clone(endpoint), socket.local_address()));
        }
        let lasting = |error: EndpointError| Failure::Lasting(error.into());
        let endpoint =
            PeerEndpoint::bind(self.identity.clone(), (local, 0).into()).map_err(lasting)?;
        let endpoint = Arc::new(endpoint);
        let socket = PeerSocket::bind((local, 0).into()).map_err(lasting)?;
        let address = socket.local_address();
        self.open = Some(Open { endpoint: Arc::clone(&endpoint), socket });
        Ok((endpoint, address))
    }

    fn connect(
        &self,
        endpoint: &PeerEndpoint,
        address: SocketAddr,
    ) -> Result<quinn::Connection, Failure> {
        let (sender, receiver) = sync_channel(1);
        let connector = endpoint.connector().clone();
        let task = endpoint.handle().spawn(async move {
            let connected = connector
                .connect(Protocol::Rendezvous, PeerName::Coordinator, address, None, transport())
                .await;
            // The waiting side may have given up.
            let _ = sender.send(connected);
        });
        match receiver.recv_timeout(self.remaining()) {
            Ok(Ok(peer)) => Ok(peer.connection),
            Ok(Err(ConnectError::OtherSecret { .. })) => Err(Failure::Lasting(self.other_secret())),
            Ok(Err(error)) => Err(passing(error)),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                task.abort();
                Err(passing(format_args!("UDP to {address} got no answer")))
            }
        }
    }

    /// Waits until the coordinator says that all ranks are there.
    fn wait_for_all(&mut self, link: &Link) -> Result<(Vec<RankInfo>, Duration), Failure> {
        loop {
            let until = self.deadline.min(self.next_report);
            let waiting = |s: &Standing| matches!(s, Standing::Asked | Standing::Waiting(_));
            let timeout = until.saturating_duration_since(Instant::now());
            let obstacle = match link.wait_for_standing(timeout, waiting) {
                Standing::Asked => "it has not answered yet".to_owned(),
                Standing::Joined { ranks, heartbeat_timeout } => {
                    return Ok((ranks, heartbeat_timeout));
                }
                Standing::Left => return Err(passing("it takes this process to have left")),
                Standing::Lost(detail) => return Err(passing(detail)),
                Standing::Refused(refusal) => return Err(self.refused(refusal)),
                Standing::Waiting(missing) if missing.count() == 1 => {
                    format!("{missing} has not joined")
                }
                Standing::Waiting(missing) => format!("{missing} have not joined"),
            };
            if self.remaining().is_zero() {
                link.give_up();
                return Err(Failure::Lasting(self.timed_out(obstacle)));
            }
            self.report(&obstacle);
        }
    }

    fn refused(&self, refusal: JoinRefusal) -> Failure {
        match refusal {
            // The coordinator of an earlier attempt is still there; ours is yet to come.
            JoinRefusal::OtherAttempt { expected, found } if expected < found => {
                passing(JoinRefusal::OtherAttempt { expected, found })
            }
            refusal => Failure::Lasting(JoinError::Refused {
                coordinator: self.options.coordinator.clone(),
                rank: self.options.rank,
                refusal,
            }),
        }
    }

    fn other_secret(&self) -> JoinError {
        JoinError::OtherSecret {
            coordinator: self.options.coordinator.clone(),
            key: self.options.key.clone(),
        }
    }

    fn timed_out(&self, obstacle: String) -> JoinError {
        JoinError::TimedOut {
            coordinator: self.options.coordinator.clone(),
            rank: self.options.rank,
            waited: self.options.timeout,
            obstacle,
        }
    }

    fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Says what is waited for, if that was not just said.
    fn report(&mut self, obstacle: &str) {
        let now = Instant::now();
        if now >= self.next_report {
            self.next_report = now + REPORT_INTERVAL;
            let JoinOptions { coordinator, rank, .. } = self.options;
            let remaining = self.remaining().as_secs();
            tracing::warn!("{rank} waits to join at {coordinator}, {remaining} s more: {obstacle}");
        }
    }
}

fn passing(reason: impl fmt::Display) -> Failure {
    Failure::Passing(reason.to_string())
}

/// A member opens all streams, and the coordinator sets the timeouts.
fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(None)
        // Also what a first packet waits before it is repeated: the coordinator may be about to
        // start.
        .initial_rtt(Duration::from_millis(100))
        .max_concurrent_bidi_streams(0_u8.into())
        .max_concurrent_uni_streams(0_u8.into())
        .datagram_receive_buffer_size(None);
    Arc::new(transport)
}
