//! One process's presence on the network: one UDP socket, its QUIC connections and their runtime.
//!
//! Owns the socket, the tokio runtime that drives it, and the handshake: a connection that comes
//! out of here is between two holders of the job's secret and speaks the protocol asked for. What
//! is said on it belongs to `rendezvous` and `transport`.
//!
//! Failed handshakes are logged once per peer address per second at most, and their number at a
//! time is bounded. Datagrams that are not QUIC are dropped by quinn without a trace.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quinn::{ConnectionError, TransportConfig, VarInt};
use rustls::pki_types::CertificateDer;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::{Semaphore, mpsc};

use crate::{Fingerprint, Identity, IdentityError, PeerName};

/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Handshakes under way at a time; more wait their turn.
const CONCURRENT_HANDSHAKES: usize = 256;

/// Free handshakes below which a peer must first prove that it receives at its address.
const UNPROVEN_HANDSHAKES: usize = CONCURRENT_HANDSHAKES / 2;

/// How long a dropped endpoint stays to tell its peers that it closes.
const CLOSE_GRACE: Duration = Duration::from_millis(100);

/// How long the tasks of a dropped endpoint may take to end: each at its next wait.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// The largest datagram accepted: quinn's default would forbid jumbo frames.
const LARGEST_DATAGRAM_BYTES: u16 = 9_000;

/// Asked of the kernel, which grants what its own limit allows.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// What two processes say to each other on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// A process and the coordinator.
    Rendezvous,
    /// Two members of a collective.
    Transport,
}

/// A UDP socket with the QUIC connections of one process.
///
/// Dropping it closes the connections and stops the runtime; tasks spawned on it end.
pub struct PeerEndpoint {
    /// Taken by `drop`.
    runtime: Option<Runtime>,
    handle: Handle,
    connector: Connector,
    address: SocketAddr,
}

/// Opens connections from an endpoint's socket, for as long as the endpoint lives.
#[derive(Clone)]
pub struct Connector {
    endpoint: quinn::Endpoint,
    identity: Identity,
}

/// A connection whose two sides have shown to hold the job's secret.
#[derive(Clone, Debug)]
pub struct PeerConnection {
    /// The connection.
    pub connection: quinn::Connection,
    /// The certificate the peer has shown.
    pub fingerprint: Fingerprint,
}

/// Why an endpoint could not be opened or listened on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The socket or the runtime could not be made.
    #[error("cannot open UDP port {address}: {source}")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The identity cannot serve.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A thread for the network could not be started.
    #[error("cannot start a network thread: {source}")]
    Thread {
        /// What the system said.
        source: io::Error,
    },
}

/// Why a connection to a peer could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No answer at all.
    #[error(
        "UDP to {address} got no answer in {waited:?}: is {name} running, does a firewall drop it?"
    )]
    NoAnswer {
        /// The peer.
        name: PeerName,
        /// Its address.
        address: SocketAddr,
        /// How long.
        waited: Duration,
    },
    /// The peer holds another secret.
    #[error("{name} at {address} holds another job secret")]
    OtherSecret {
        /// The peer.
        name: PeerName,
        /// Its address.
        address: SocketAddr,
    },
    /// Anything else.
    #[error("cannot connect to {name} at {address}: {detail}")]
    Failed {
        /// The peer.
        name: PeerName,
        /// Its address.
        address: SocketAddr,
        /// What went wrong.
        detail: String,
    },
}

impl Protocol {
    /// The name and version in the TLS handshake.
    pub(crate) fn alpn(self) -> &'static [u8] {
        match self {
            Self::Rendezvous => b"lockstep-rendezvous/1",
            Self::Transport => b"lockstep-transport/1",
        }
    }
}

impl PeerEndpoint {
    /// Opens a UDP socket at `address` (port 0: any free one) and starts its runtime.
    ///
    /// # Errors
    /// When the address cannot be bound or the runtime's thread cannot start.
    pub fn bind(identity: Identity, address: SocketAddr) -> Result<Self, EndpointError> {
        let bind_error = |source| EndpointError::Bind { address, source };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("lockstep-net")
            .enable_all()
            .build()
            .map_err(bind_error)?;
        let socket = bind_socket(address).map_err(bind_error)?;
        let address = socket.local_addr().map_err(bind_error)?;
        let mut config = quinn::EndpointConfig::default();
        config
            .max_udp_payload_size(LARGEST_DATAGRAM_BYTES)
            .map_err(|e| bind_error(io::Error::other(e)))?;
        let entered = runtime.enter();
        let endpoint = quinn::Endpoint::new(config, None, socket, Arc::new(quinn::TokioRuntime))
            .map_err(bind_error)?;
        drop(entered);
        let handle = runtime.handle().clone();
        let connector = Connector { endpoint, identity };
        Ok(Self { runtime: Some(runtime), handle, connector, address })
    }

    /// Where the socket is bound.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Who this endpoint is.
    pub fn identity(&self) -> &Identity {
        &self.connector.identity
    }

    /// The runtime on which the endpoint's tasks run.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Opens connections from this socket.
    pub fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Accepts connections of `protocol`, with the flow control and timeouts of `transport`.
    ///
    /// An endpoint listens for one protocol: the last call counts. Connections that nobody takes
    /// from the receiver hold up further ones, and dropping it refuses them.
    ///
    /// # Errors
    /// When the identity cannot serve.
    pub fn listen(
        &self,
        protocol: Protocol,
        transport: Arc<TransportConfig>,
    ) -> Result<mpsc::Receiver<PeerConnection>, EndpointError> {
        let tls = self.connector.identity.server(protocol)?;
        let mut config = quinn::ServerConfig::with_crypto(Arc::new(tls));
        // Peers of a job do not change their address; one that seems to is an attack.
        config.transport_config(transport).migration(false);
        let endpoint = self.connector.endpoint.clone();
        endpoint.set_server_config(Some(config));
        let (admitted, receiver) = mpsc::channel(CONCURRENT_HANDSHAKES);
        self.handle().spawn(accept(endpoint, admitted));
        Ok(receiver)
    }
}

impl Drop for PeerEndpoint {
    fn drop(&mut self) {
        let endpoint = &self.connector.endpoint;
        endpoint.close(VarInt::from_u32(0), b"");
        let Some(runtime) = self.runtime.take() else { return };
        if Handle::try_current().is_ok() {
            // A runtime cannot be waited for on a thread that serves one.
            runtime.shutdown_background();
            return;
        }
        if endpoint.open_connections() > 0 {
            let idle = async { tokio::time::timeout(CLOSE_GRACE, endpoint.wait_idle()).await };
            // Peers that do not learn of it now find out by their own timeouts.
            let _ = runtime.block_on(idle);
        }
        // The tasks hold the socket: with them gone, its port is free again.
        runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    }
}

impl Connector {
    /// Connects to `name` at `address`; with `pin`, only if it shows that certificate.
    ///
    /// # Errors
    /// When there is no answer within 10 s, or the peer is not who it should be.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the connection.
    pub async fn connect(
        &self,
        protocol: Protocol,
        name: PeerName,
        address: SocketAddr,
        pin: Option<Fingerprint>,
        transport: Arc<TransportConfig>,
    ) -> Result<PeerConnection, ConnectError> {
        let failed = |detail: &dyn fmt::Display| ConnectError::Failed {
            name,
            address,
            detail: detail.to_string(),
        };
        let tls = self.identity.client(protocol, pin).map_err(|e| failed(&e))?;
        let mut config = quinn::ClientConfig::new(Arc::new(tls));
        config.transport_config(transport);
        let connecting = self
            .endpoint
            .connect_with(config, address, &name.to_string())
            .map_err(|e| failed(&e))?;
        let no_answer = ConnectError::NoAnswer { name, address, waited: HANDSHAKE_TIMEOUT };
        let connection = match tokio::time::timeout(HANDSHAKE_TIMEOUT, connecting).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(ConnectionError::TimedOut)) | Err(_) => return Err(no_answer),
            Ok(Err(error)) => return Err(ConnectError::new(name, address, &error)),
        };
        PeerConnection::new(connection).ok_or_else(|| failed(&"the peer shows no certificate"))
    }
}

impl PeerConnection {
    fn new(connection: quinn::Connection) -> Option<Self> {
        let identity = connection.peer_identity()?;
        let chain = identity.downcast::<Vec<CertificateDer<'static>>>().ok()?;
        let fingerprint = Fingerprint::of(chain.first()?);
        Some(Self { connection, fingerprint })
    }
}

impl ConnectError {
    /// What the end of a connection to `name` means.
    pub(crate) fn new(name: PeerName, address: SocketAddr, error: &ConnectionError) -> Self {
        if is_other_secret(error) {
            Self::OtherSecret { name, address }
        } else {
            Self::Failed { name, address, detail: error.to_string() }
        }
    }
}

/// Whether a connection ended because one side's certificate is of an authority the other does not
/// know (TLS alert 48): they hold different secrets.
pub(crate) fn is_other_secret(error: &ConnectionError) -> bool {
    let code = match error {
        ConnectionError::TransportError(error) => error.code,
        ConnectionError::ConnectionClosed(close) => close.error_code,
        _ => return false,
    };
    const UNKNOWN_CA: u8 = 48;
    code == quinn::TransportErrorCode::crypto(UNKNOWN_CA)
}

/// The address from which this host reaches `peer`: the one to advertise to the job.
///
/// # Errors
/// When the kernel has no route to it.
pub fn address_towards(peer: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Connecting a UDP socket sends nothing; it makes the kernel choose the route.
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(peer)?;
    Ok(socket.local_addr()?.ip())
}

pub(crate) fn bind_socket(address: SocketAddr) -> io::Result<UdpSocket> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::DGRAM, Some(socket2::Protocol::UDP))?;
    raise_buffers(&socket)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Asks for large buffers and says what to change when the kernel refuses: a small receive buffer
/// drops packets when several peers send at once.
fn raise_buffers(socket: &socket2::Socket) -> io::Result<()> {
    socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
    socket.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
    for (granted, limit) in [
        (socket.recv_buffer_size()?, "net.core.rmem_max"),
        (socket.send_buffer_size()?, "net.core.wmem_max"),
    ] {
        if granted < SOCKET_BUFFER_BYTES {
            tracing::warn!(
                "the kernel grants {granted} bytes of UDP buffer where {SOCKET_BUFFER_BYTES} are \
                 asked for: between hosts that costs speed; raise it with \
                 `sysctl -w {limit}={SOCKET_BUFFER_BYTES}`"
            );
        }
    }
    Ok(())
}

/// Performs the handshakes of incoming connections, until the endpoint or the receiver is gone.
async fn accept(endpoint: quinn::Endpoint, admitted: mpsc::Sender<PeerConnection>) {
    let handshakes = Arc::new(Semaphore::new(CONCURRENT_HANDSHAKES));
    let refusals = Arc::new(RefusalLog::default());
    while let Some(incoming) = endpoint.accept().await {
        let unproven = !incoming.remote_address_validated() && incoming.may_retry();
        if unproven && handshakes.available_permits() < UNPROVEN_HANDSHAKES {
            // It fails only for peers that have proven their address.
            let _ = incoming.retry();
            continue;
        }
        let Ok(permit) = Arc::clone(&handshakes).acquire_owned().await else { return };
        let Ok(slot) = admitted.clone().reserve_owned().await else { return };
        let refusals = Arc::clone(&refusals);
        tokio::spawn(async move {
            let _permit = permit;
            let peer = incoming.remote_address();
            match tokio::time::timeout(HANDSHAKE_TIMEOUT, incoming).await {
                Ok(Ok(connection)) => match PeerConnection::new(connection) {
                    Some(connection) => drop(slot.send(connection)),
                    None => refusals.log(peer, &"it shows no certificate"),
                },
                Ok(Err(error)) if is_other_secret(&error) => {
                    refusals.log(peer, &"it holds another job secret");
                }
                Ok(Err(error)) => refusals.log(peer, &error),
                Err(_) => refusals.log(peer, &"its handshake took too long"),
            }
        });
    }
}

/// Says that peers were refused, at most once per address per second.
#[derive(Default)]
pub(crate) struct RefusalLog(Mutex<Refusals>);

#[derive(Default)]
struct Refusals {
    said: HashMap<IpAddr, Instant>,
    swept: Option<Instant>,
}

impl RefusalLog {
    /// Logs that `peer` was refused, unless it was just said of the same address.
    pub(crate) fn log(&self, peer: SocketAddr, reason: &dyn fmt::Display) {
        let mut refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.admit(peer.ip(), Instant::now()) {
            tracing::warn!(%peer, "refused a connection: {reason}");
        }
    }
}

impl Refusals {
    const INTERVAL: Duration = Duration::from_secs(1);
    /// Addresses remembered; beyond them nothing is logged until the next sweep.
    const ADDRESSES: usize = 1024;

    fn admit(&mut self, peer: IpAddr, now: Instant) -> bool {
        let recent = |at: &Instant| now.saturating_duration_since(*at) < Self::INTERVAL;
        // Sweeping is as rare as logging, so that a flood does not pay for it per datagram.
        if !self.swept.as_ref().is_some_and(recent) {
            self.said.retain(|_, at| recent(at));
            self.swept = Some(now);
        }
        if self.said.get(&peer).is_some_and(recent) || self.said.len() >= Self::ADDRESSES {
            return false;
        }
        self.said.insert(peer, now);
        true
    }
}

impl fmt::Debug for PeerEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerEndpoint")
            .field("address", &self.address)
            .field("identity", self.identity())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JobSecret, Rank};

    const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    fn endpoint(secret: &JobSecret, rank: u32) -> PeerEndpoint {
        let identity = Identity::new(secret, PeerName::Rank(Rank(rank))).unwrap();
        PeerEndpoint::bind(identity, LOOPBACK).unwrap()
    }

    fn connect(
        from: &PeerEndpoint,
        to: &PeerEndpoint,
        protocol: Protocol,
        name: PeerName,
        pin: Option<Fingerprint>,
    ) -> Result<PeerConnection, ConnectError> {
        let transport = Arc::new(TransportConfig::default());
        let connect = from.connector().connect(protocol, name, to.local_address(), pin, transport);
        from.handle().block_on(connect)
    }

    #[test]
    fn both_sides_learn_the_others_certificate() {
        let secret = JobSecret::generate().unwrap();
        let (one, other) = (endpoint(&secret, 1), endpoint(&secret, 2));
        let mut accepted =
            other.listen(Protocol::Transport, Arc::new(TransportConfig::default())).unwrap();
        let pin = Some(other.identity().fingerprint());
        let name = other.identity().name();
        let connection = connect(&one, &other, Protocol::Transport, name, pin).unwrap();
        assert_eq!(connection.fingerprint, other.identity().fingerprint());
        let accepted = accepted.blocking_recv().unwrap();
        assert_eq!(accepted.fingerprint, one.identity().fingerprint());
        assert_eq!(accepted.connection.remote_address(), one.local_address());
    }

    #[test]
    fn refuses_another_secret_another_name_another_certificate_and_another_protocol() {
        let secret = JobSecret::generate().unwrap();
        let server = endpoint(&secret, 2);
        let mut accepted =
            server.listen(Protocol::Transport, Arc::new(TransportConfig::default())).unwrap();
        let (name, address) = (server.identity().name(), server.local_address());
        let friend = endpoint(&secret, 1);
        let stranger = endpoint(&JobSecret::generate().unwrap(), 1);

        let other_secret = connect(&stranger, &server, Protocol::Transport, name, None);
        assert_eq!(other_secret.unwrap_err(), ConnectError::OtherSecret { name, address });
        let other_name = PeerName::Rank(Rank(3));
        let refused = connect(&friend, &server, Protocol::Transport, other_name, None);
        assert!(matches!(refused, Err(ConnectError::Failed { .. })), "{refused:?}");
        let pin = Some(friend.identity().fingerprint());
        let refused = connect(&friend, &server, Protocol::Transport, name, pin);
        assert!(matches!(refused, Err(ConnectError::Failed { .. })), "{refused:?}");
        let refused = connect(&friend, &server, Protocol::Rendezvous, name, None);
        assert!(matches!(refused, Err(ConnectError::Failed { .. })), "{refused:?}");
        assert!(accepted.try_recv().is_err());

        assert!(connect(&friend, &server, Protocol::Transport, name, None).is_ok());
    }

    #[test]
    fn dropping_an_endpoint_ends_its_connections_at_once() {
        let secret = JobSecret::generate().unwrap();
        let (one, other) = (endpoint(&secret, 1), endpoint(&secret, 2));
        let _accepted =
            other.listen(Protocol::Transport, Arc::new(TransportConfig::default())).unwrap();
        let name = other.identity().name();
        let connection = connect(&one, &other, Protocol::Transport, name, None).unwrap();
        let start = Instant::now();
        drop(other);
        one.handle().block_on(connection.connection.closed());
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }

    #[test]
    fn a_dropped_endpoint_frees_its_port() {
        let secret = JobSecret::generate().unwrap();
        for _ in 0..20 {
            let endpoint = endpoint(&secret, 1);
            let accepted =
                endpoint.listen(Protocol::Transport, Arc::new(TransportConfig::default())).unwrap();
            let address = endpoint.local_address();
            drop((endpoint, accepted));
            UdpSocket::bind(address).unwrap();
        }
    }

    #[test]
    fn refusals_are_logged_once_per_address_and_second() {
        let mut refusals = Refusals::default();
        let start = Instant::now();
        let address = |n: u32| IpAddr::V4(Ipv4Addr::from(n));
        assert!(refusals.admit(address(1), start));
        assert!(!refusals.admit(address(1), start + Duration::from_millis(999)));
        assert!(refusals.admit(address(2), start + Duration::from_millis(999)));
        assert!(refusals.admit(address(1), start + Duration::from_secs(1)));
        let flood = start + Duration::from_secs(5);
        let said = (0..100_000).filter(|n| refusals.admit(address(*n), flood)).count();
        assert_eq!(said, Refusals::ADDRESSES);
        assert!(refusals.admit(address(7), flood + Duration::from_secs(1)));
    }

    #[test]
    fn the_address_towards_loopback_is_loopback() {
        let target = SocketAddr::from(([127, 0, 0, 1], 9));
        assert_eq!(address_towards(target).unwrap(), IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
}
