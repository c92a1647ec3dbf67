//! With whom this process is connected: dialling, accepting, who that is, and how it ends.

use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    ClientConfig, ConnectionError, Dir, Event, Incoming, MtuDiscoveryConfig, ServerConfig,
    StreamEvent, TransportConfig, VarInt,
};
use rustls::pki_types::CertificateDer;

use super::super::link::{Link, LinkId};
use super::super::socket::SMALLEST_PACKET_BYTES;
use super::super::window::{BatchWindows, LARGEST_WINDOW_BYTES};
use super::{LEFT, State};
use crate::endpoint::Protocol;
use crate::ids::Rank;
use crate::rendezvous::{FailureCause, RankFailure};
use crate::transport::drive::Failure;
use crate::transport::news::departure;
use crate::transport::{CAUSE_GRACE, TransportError};
use crate::{ConnectError, Fingerprint, PeerName};

/// Messages of one peer that may be under way at a time.
pub(in crate::transport::quic) const STREAMS: u32 = 512;

/// Bytes of one message that may be under way before its receive is there.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;

/// Bytes written to one connection and not acknowledged: no fewer than the congestion window lets
/// be under way.
const SEND_WINDOW_BYTES: u64 = LARGEST_WINDOW_BYTES;

/// Packets that may overtake one before that counts as lost: a sender that moves to another core
/// makes a whole batch overtake.
const REORDERING_PACKETS: u32 = 128;

/// How often a connection without traffic shows the other side that it is there. It also finds
/// out soon that a stopped peer goes on, where the retransmission timer would have backed off.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// How long after a path seemed to take only the smallest packets larger ones are tried again.
const PACKET_SIZE_RETRY: Duration = Duration::from_secs(5);

/// How long a handshake may take before it is begun anew.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the handshake of another may take. A dialler takes it for complete a packet earlier, and
/// to end it then tells that this process is gone: it is ended only when a dialler that is alive has
/// long begun anew, or got that packet through.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(60);

/// Handshakes of others under way at a time; more are not answered.
const HANDSHAKES: usize = 256;

/// Handshakes under way from which on a peer must first prove that it receives at its address.
const PROVEN_HANDSHAKES: usize = HANDSHAKES / 2;

/// The code of a connection from nobody of the job.
pub(in crate::transport::quic) const STRANGER: VarInt = VarInt::from_u32(1);

/// The code of a connection that another of the same peer replaces.
const REPLACED: VarInt = VarInt::from_u32(3);

/// What connects this process with another.
#[derive(Default)]
pub(super) struct Peer {
    pub(super) dialled: Option<LinkId>,
    pub(super) accepted: Option<LinkId>,
    /// Why there is no connection, and never will be.
    pub(super) unreachable: Option<String>,
}

impl State {
    pub(super) fn accept(&mut self, incoming: Incoming, now: Instant) {
        let under_way = self.links.values().filter(|link| !link.is_established()).count();
        if under_way >= HANDSHAKES {
            return self.endpoint.ignore(incoming);
        }
        let is_proven = incoming.remote_address_validated() || !incoming.may_retry();
        if under_way >= PROVEN_HANDSHAKES && !is_proven {
            // It fails only for peers that have proven their address.
            if let Ok(transmit) = self.endpoint.retry(incoming, &mut self.response) {
                self.respond(&transmit);
            }
            return;
        }
        let config =
            self.server_config(self.socket.largest_packet_bytes(incoming.remote_address()));
        match self.endpoint.accept(incoming, now, &mut self.response, Some(config)) {
            Ok((handle, connection)) => {
                self.add(Link::new(connection, handle, now + ACCEPT_TIMEOUT));
            }
            Err(refused) => {
                if let Some(transmit) = refused.response {
                    self.respond(&transmit);
                }
            }
        }
    }

    pub(super) fn dial(&mut self, rank: Rank) -> Result<(), ConnectError> {
        let name = PeerName::Rank(rank);
        let Some(info) = self.topology.rank(rank) else { return Ok(()) };
        let address = info.address;
        let failed = |detail: &dyn fmt::Display| ConnectError::Failed {
            name,
            address,
            detail: detail.to_string(),
        };
        let tls = self.identity.client(Protocol::Transport, Some(info.fingerprint));
        let mut config = ClientConfig::new(Arc::new(tls.map_err(|error| failed(&error))?));
        config.transport_config(transport_config(self.socket.largest_packet_bytes(address)));
        let now = Instant::now();
        let (handle, connection) = self
            .endpoint
            .connect(now, config, address, &name.to_string())
            .map_err(|error| failed(&error))?;
        let mut link = Link::new(connection, handle, now + HANDSHAKE_TIMEOUT);
        link.dialled = true;
        link.peer = Some(rank);
        let id = self.add(link);
        if let Some(peer) = self.peers.get_mut(rank.0 as usize) {
            peer.dialled = Some(id);
        }
        Ok(())
    }

    /// The link on which to send to `rank`; dials if there is none. Of two, both sides take that
    /// which the lower rank dialled.
    pub(super) fn link_to(&mut self, rank: Rank) -> Poll<Result<LinkId, Failure>> {
        let Some(peer) = self.peers.get(rank.0 as usize) else {
            return Poll::Ready(Err(self.gone(rank, "the job has no such rank")));
        };
        if let Some(detail) = &peer.unreachable {
            return Poll::Ready(Err(self.gone(rank, detail)));
        }
        let (dialled, accepted) = (peer.dialled, peer.accepted);
        let by_preference =
            if self.rank < rank { [dialled, accepted] } else { [accepted, dialled] };
        for id in by_preference.into_iter().flatten() {
            match self.links.get(&id) {
                Some(Link { ended: Some(end), .. }) => {
                    return Poll::Ready(Err(lost(rank, end)));
                }
                Some(link) if link.is_confirmed() => return Poll::Ready(Ok(id)),
                _ => {}
            }
        }
        if dialled.is_none()
            && let Err(error) = self.dial(rank)
        {
            let detail = error.to_string();
            let failure = self.gone(rank, &detail);
            if let Some(peer) = self.peers.get_mut(rank.0 as usize) {
                peer.unreachable = Some(detail);
            }
            return Poll::Ready(Err(failure));
        }
        Poll::Pending
    }

    /// A connection has been established: says who it is with.
    pub(super) fn establish(&mut self, id: LinkId, now: Instant) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.handshake_until = None;
        if link.dialled {
            return;
        }
        let shown = link.connection.crypto_session().peer_identity();
        let chain = shown.and_then(|shown| shown.downcast::<Vec<CertificateDer<'static>>>().ok());
        let fingerprint = chain.as_ref().and_then(|chain| chain.first()).map(Fingerprint::of);
        let rank = fingerprint.and_then(|shown| self.topology.rank_of_fingerprint(shown));
        let Some(rank) = rank else {
            let address = link.connection.remote_address();
            self.refusals.log(address, &"it is not of this job's topology");
            return self.close(id, now, STRANGER, b"not of this job's topology");
        };
        link.peer = Some(rank);
        let Some(peer) = self.peers.get_mut(rank.0 as usize) else { return };
        if let Some(previous) = peer.accepted.replace(id) {
            self.close(previous, now, REPLACED, b"");
        }
        // Its first streams may have come with the end of the handshake.
        self.hear_event(id, Event::Stream(StreamEvent::Opened { dir: Dir::Uni }), now);
    }

    pub(super) fn give_up_handshake(&mut self, id: LinkId, now: Instant) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.handshake_until = None;
        let address = link.connection.remote_address();
        if let (true, Some(rank)) = (link.dialled, link.peer) {
            // A peer that is stopped or overloaded: how long to wait is not decided here.
            let name = PeerName::Rank(rank);
            let waited = HANDSHAKE_TIMEOUT;
            tracing::warn!("{}; trying again", ConnectError::NoAnswer { name, address, waited });
            if let Some(peer) = self.peers.get_mut(rank.0 as usize) {
                peer.dialled = None;
            }
        } else {
            self.refusals.log(address, &"its handshake took too long");
        }
        self.close(id, now, REPLACED, b"");
    }

    pub(super) fn end(&mut self, id: LinkId, reason: ConnectionError, now: Instant) {
        let Some(link) = self.links.get_mut(&id) else { return };
        if link.ended.is_some() {
            return;
        }
        let was_established = link.is_established();
        link.handshake_until = None;
        let address = link.connection.remote_address();
        match (link.peer, was_established) {
            (Some(rank), true) => self.endings.push((now + CAUSE_GRACE, rank, has_left(&reason))),
            (Some(rank), false) => {
                let name = PeerName::Rank(rank);
                let error = ConnectError::new(name, address, &reason);
                if let Some(peer) = self.peers.get_mut(rank.0 as usize) {
                    peer.unreachable = Some(error.to_string());
                }
            }
            (None, _) => self.refusals.log(address, &reason),
        }
        link.ended = Some(reason);
        self.next_timeout = Some(now);
    }

    /// Forgets a connection that is over and that no peer is known by.
    pub(super) fn forget_if_useless(&mut self, id: LinkId) {
        let Some(link) = self.links.get(&id) else { return };
        if !link.connection.is_drained() {
            return;
        }
        self.by_handle.remove(&link.handle.0);
        let mut peers = self.peers.iter();
        if !peers.any(|peer| peer.dialled == Some(id) || peer.accepted == Some(id)) {
            self.links.remove(&id);
        }
    }

    pub(super) fn listen(&mut self) {
        let config = self.server_config(SMALLEST_PACKET_BYTES);
        self.endpoint.set_server_config(Some(config));
    }

    pub(super) fn server_config(&self, largest_packet_bytes: u16) -> Arc<ServerConfig> {
        let tls: Arc<QuicServerConfig> = Arc::clone(&self.server);
        let mut config = ServerConfig::with_crypto(tls);
        // Peers of a job do not change their address; one that seems to is an attack.
        config.transport_config(transport_config(largest_packet_bytes)).migration(false);
        Arc::new(config)
    }
}

/// The settings of a connection whose first hop takes packets of at most `largest_packet_bytes`.
fn transport_config(largest_packet_bytes: u16) -> Arc<TransportConfig> {
    let mut packet_size = MtuDiscoveryConfig::default();
    packet_size.upper_bound(largest_packet_bytes).black_hole_cooldown(PACKET_SIZE_RETRY);
    let mut config = TransportConfig::default();
    config
        .max_concurrent_uni_streams(VarInt::from_u32(STREAMS))
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW_BYTES))
        // None of its own: the stream that is waited for could otherwise be held up by those that
        // are not yet.
        .receive_window(VarInt::MAX)
        .send_window(SEND_WINDOW_BYTES)
        .datagram_receive_buffer_size(None)
        .congestion_controller_factory(Arc::new(BatchWindows))
        .packet_threshold(REORDERING_PACKETS)
        .mtu_discovery_config(Some(packet_size))
        .max_idle_timeout(None)
        .keep_alive_interval(Some(KEEP_ALIVE));
    Arc::new(config)
}

/// What the end of the connection with `rank` is to those who use it.
pub(super) fn lost(rank: Rank, end: &ConnectionError) -> Failure {
    Failure::Gone(TransportError::RankFailed(if has_left(end) {
        departure(rank)
    } else {
        RankFailure { rank, cause: FailureCause::Disconnected }
    }))
}

/// Whether a connection ended because its process left in order.
fn has_left(end: &ConnectionError) -> bool {
    matches!(end, ConnectionError::ApplicationClosed(close) if close.error_code == LEFT)
}
