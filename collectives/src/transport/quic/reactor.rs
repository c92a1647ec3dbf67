//! The loop that carries packets between a process's socket and its QUIC connections.
//!
//! It has no thread of its own: a *turn* lets timers expire, sends what can be sent and takes in what
//! has arrived, and is made by whoever waits for something (`exchange`), or by the idle
//! thread when nobody does (`idle`). State is behind one lock, which nobody holds while waiting.
//! The protocol is quinn's, which does no I/O of its own; what messages mean is the module above.

mod inbound;
mod peers;

use std::collections::{BTreeMap, VecDeque};
#[cfg(test)]
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    ConnectionError, ConnectionEvent, ConnectionHandle, DatagramEvent, Dir, Endpoint,
    EndpointConfig, Event, StreamEvent, Transmit, VarInt, WriteError,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub(super) use self::inbound::{Arrival, Unread};
#[cfg(test)]
pub(super) use self::{
    inbound::{KEPT_BYTES, SHORT_BYTES},
    peers::{STRANGER, STREAMS},
};

use self::inbound::Abandoned;
use self::peers::{Peer, lost};
use super::bell::{Bell, Rings};
use super::link::{Link, LinkId, Read, Rest, StreamRef};
use super::pool::{Inbox, Pool};
use super::socket::{BATCH_CONTENT_BYTES, PeerSocket, congestion_mark};
use super::window::has_room;
use crate::endpoint::{Protocol, RefusalLog};
use crate::ids::{Member, Rank};
use crate::rendezvous::{FailureCause, RankFailure};
use crate::transport::TransportError;
use crate::transport::drive::Failure;
use crate::transport::post::Post;
use crate::transport::wire::Head;
use crate::{EndpointError, Identity, OperationId, Topology};

/// The most that QUIC lets a peer send in a datagram.
const LARGEST_DATAGRAM_BYTES: u16 = 65_527;

/// How long a notice may take.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(5);

/// Batches received, and sent on each connection, in one turn.
const BATCHES: usize = 2;

/// The longest wait of the idle thread.
const LONG: Duration = Duration::from_secs(3600);

/// The code of a connection that ends because its process leaves.
const LEFT: VarInt = VarInt::from_u32(0);

/// The code of a stream that its sender or receiver gave up.
pub(super) const GIVEN_UP: VarInt = VarInt::from_u32(2);

/// The network side of a process's transport.
pub(super) struct Reactor {
    pub(super) rank: Rank,
    pub(super) topology: Arc<Topology>,
    pub(super) post: Arc<Post<Arrival>>,
    /// Rung for those who wait in exchanges.
    pub(super) bell: Arc<Bell>,
    pub(super) waker: Waker,
    socket: Arc<PeerSocket>,
    abandoned: Arc<Abandoned>,
    state: Mutex<State>,
}

/// A write of bytes that are the reactor's.
pub(super) struct Outbound {
    pub(super) rank: Rank,
    pub(super) stream: Option<StreamRef>,
    pub(super) chunk: Bytes,
}

struct Notice {
    outbound: Outbound,
    until: Instant,
}

pub(super) struct State {
    rank: Rank,
    identity: Identity,
    topology: Arc<Topology>,
    post: Arc<Post<Arrival>>,
    abandoned: Arc<Abandoned>,
    refusals: RefusalLog,
    socket: Arc<PeerSocket>,
    endpoint: Endpoint,
    server: Arc<QuicServerConfig>,
    // They are asked for every packet, and hashing a number takes longer than to find it.
    links: BTreeMap<LinkId, Link>,
    by_handle: BTreeMap<usize, LinkId>,
    links_so_far: u64,
    /// By rank.
    peers: Vec<Peer>,
    /// Links that may have something to send or to tell.
    touched: VecDeque<LinkId>,
    /// No timer of a link expires earlier, unless it is touched.
    next_timeout: Option<Instant>,
    notices: Vec<Notice>,
    /// Ranks whose connection has ended, and when that is the news if the cause is not.
    endings: Vec<(Instant, Rank, bool)>,
    /// What the socket was too full to take.
    blocked: Option<Transmit>,
    /// What `blocked` holds, or the next batch.
    batch: Vec<u8>,
    inbox: Inbox,
    pool: Pool,
    response: Vec<u8>,
    /// Whether a reader or writer has more to do without any packet arriving.
    has_more: bool,
    /// Until when a thread waits at the socket.
    waiting_until: Option<Instant>,
}

impl Reactor {
    pub(super) fn new(
        identity: Identity,
        socket: PeerSocket,
        rank: Rank,
        topology: Arc<Topology>,
    ) -> Result<Self, EndpointError> {
        let address = socket.local_address();
        let bind_error = |source| EndpointError::Bind { address, source };
        let bell = Arc::new(Bell::new().map_err(bind_error)?);
        let mut config = EndpointConfig::default();
        config
            .max_udp_payload_size(LARGEST_DATAGRAM_BYTES)
            .map_err(|error| bind_error(std::io::Error::other(error)))?;
        let server = Arc::new(identity.server(Protocol::Transport)?);
        let whole = socket.keeps_packets_whole();
        let socket = Arc::new(socket);
        let (post, abandoned) = (Arc::new(Post::default()), Arc::<Abandoned>::default());
        let mut state = State {
            rank,
            identity,
            topology: Arc::clone(&topology),
            post: Arc::clone(&post),
            abandoned: Arc::clone(&abandoned),
            refusals: RefusalLog::default(),
            socket: Arc::clone(&socket),
            endpoint: Endpoint::new(Arc::new(config), None, whole, None),
            server,
            links: BTreeMap::new(),
            by_handle: BTreeMap::new(),
            links_so_far: 0,
            peers: topology.ranks().iter().map(|_| Peer::default()).collect(),
            touched: VecDeque::new(),
            next_timeout: None,
            notices: Vec::new(),
            endings: Vec::new(),
            blocked: None,
            batch: Vec::new(),
            inbox: Inbox::new(),
            pool: Pool::default(),
            response: Vec::new(),
            has_more: false,
            waiting_until: None,
        };
        state.listen();
        let waker = Waker::from(Arc::clone(&bell));
        let state = Mutex::new(state);
        Ok(Self { rank, topology, post, bell, waker, socket, abandoned, state })
    }

    #[cfg(test)]
    pub(super) fn socket(&self) -> &PeerSocket {
        &self.socket
    }

    /// Bytes of short messages from `rank` that wait for their receives.
    #[cfg(test)]
    pub(super) fn kept_bytes(&self, rank: Rank) -> usize {
        let state = self.lock();
        let peer = &state.peers[rank.0 as usize];
        peer.accepted.map_or(0, |id| state.links[&id].kept_bytes.load(Ordering::Relaxed))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a turn, and waits for something to happen if nothing has: at most until `until`, and
    /// not at all if there were rings since.
    pub(super) fn wait(&self, since: Rings, until: Instant) {
        let mut state = self.lock();
        if state.turn() {
            drop(state);
            self.bell.ring();
            return;
        }
        let timer = state.next_timeout();
        match state.waiting_until {
            Some(theirs) => {
                drop(state);
                if timer.is_some_and(|timer| timer < theirs) {
                    // A timer of ours is earlier than what they wait for.
                    self.bell.ring();
                }
                self.bell.park(since, until.saturating_duration_since(Instant::now()));
            }
            None => {
                let until = timer.map_or(until, |timer| timer.min(until));
                state.waiting_until = Some(until);
                let is_blocked = state.blocked.is_some();
                drop(state);
                self.bell.wait_at_socket(since, |event| {
                    self.wait_for_packets(until, is_blocked, event);
                });
                self.lock().waiting_until = None;
            }
        }
    }

    /// The same for the thread that turns when nobody waits; `event` becomes readable when
    /// somebody does.
    pub(super) fn wait_idly(&self, event: &impl rustix::fd::AsFd, is_idle: impl FnOnce() -> bool) {
        let mut state = self.lock();
        if state.turn() {
            drop(state);
            self.bell.ring();
            return;
        }
        let until = state.next_timeout().unwrap_or_else(|| Instant::now() + LONG);
        let is_blocked = state.blocked.is_some();
        drop(state);
        if is_idle() {
            self.wait_for_packets(until, is_blocked, event);
        }
    }

    fn wait_for_packets(&self, until: Instant, to_send: bool, event: &impl rustix::fd::AsFd) {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).ok();
        let direction = if to_send { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut ready = [PollFd::new(&*self.socket, direction), PollFd::new(event, PollFlags::IN)];
        // Whatever ends it, a turn follows.
        let _ = poll(&mut ready, left.as_ref());
    }

    /// Stops the streams that nobody reads any more.
    pub(super) fn sweep(&self) {
        if self.abandoned.is_empty() {
            return;
        }
        self.lock().turn();
        // Timers may have changed for who waits at the socket.
        self.bell.ring();
    }

    /// Tells `ranks` that `operation` was given up, soon.
    pub(super) fn notify(&self, ranks: &[Rank], operation: OperationId, notice: &[u8]) {
        let length_bytes = u32::try_from(notice.len()).unwrap_or(u32::MAX);
        let Ok(head) = (Head::Notice { operation, length_bytes }).encode() else { return };
        let chunk = Bytes::from([&head[..], notice].concat());
        let mut state = self.lock();
        let until = Instant::now() + NOTICE_TIMEOUT;
        for &rank in ranks {
            let outbound = Outbound { rank, stream: None, chunk: chunk.clone() };
            state.notices.push(Notice { outbound, until });
        }
        state.turn();
        drop(state);
        self.bell.ring();
    }

    /// Ready when `rank` has all that was sent to it, or never will.
    pub(super) fn poll_acknowledged(&self, rank: Rank, context: &Context<'_>) -> Poll<()> {
        if self.post.poll_gone(rank, context).is_ready() || self.lock().has_everything(rank) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Ends all connections.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        let (now, links) = (Instant::now(), Vec::from_iter(state.links.keys().copied()));
        for link in links {
            state.close(link, now, LEFT, b"");
        }
        state.send(now);
    }
}

impl State {
    /// Lets timers expire, sends what can be sent, takes in what has arrived; says whether any of it
    /// may have changed what somebody waits for.
    ///
    /// Receiving comes last: who waited goes on before anything is said of what came, and
    /// acknowledgements leave with what writers have to say then.
    pub(super) fn turn(&mut self) -> bool {
        let now = Instant::now();
        let mut changed = std::mem::take(&mut self.has_more);
        changed |= self.expire(now);
        for stream in self.abandoned.take() {
            if let Some(link) = self.links.get_mut(&stream.link) {
                link.stop(stream.id, GIVEN_UP);
                self.touch(stream.link);
            }
        }
        self.send_notices(now);
        changed |= self.send(now);
        changed |= self.receive(now);
        changed | self.can_send()
    }

    /// Sends all that can be sent.
    pub(super) fn send_all(&mut self) {
        while self.can_send() {
            self.send(Instant::now());
        }
    }

    fn can_send(&self) -> bool {
        self.blocked.is_none() && !self.touched.is_empty()
    }

    /// When to make a turn although nothing arrives.
    fn next_timeout(&mut self) -> Option<Instant> {
        let links = self.links.values_mut().filter_map(Link::timeout);
        let endings = self.endings.iter().map(|(at, ..)| *at);
        let notices = self.notices.iter().map(|notice| notice.until);
        self.next_timeout = links.chain(endings).chain(notices).min();
        self.next_timeout
    }

    fn receive(&mut self, now: Instant) -> bool {
        let mut received = false;
        for _ in 0..BATCHES {
            let meta = match self.socket.receive(self.inbox.room()) {
                Ok(Some(meta)) => meta,
                Ok(None) => break,
                Err(error) => {
                    tracing::error!("cannot receive from the network: {error}");
                    break;
                }
            };
            received = true;
            let mark = congestion_mark(&meta);
            let mut packets = self.inbox.take(meta.len);
            while !packets.is_empty() {
                let packet = packets.split_to(meta.stride.clamp(1, packets.len()));
                self.response.clear();
                let event = self.endpoint.handle(
                    now,
                    meta.addr,
                    meta.dst_ip,
                    mark,
                    packet,
                    &mut self.response,
                );
                match event {
                    Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                        self.hand_over(handle, event);
                    }
                    Some(DatagramEvent::NewConnection(incoming)) => self.accept(incoming, now),
                    Some(DatagramEvent::Response(transmit)) => self.respond(&transmit),
                    None => {}
                }
            }
        }
        if received {
            self.hear(now);
        }
        received
    }

    fn hand_over(&mut self, handle: ConnectionHandle, event: ConnectionEvent) {
        let Some(&id) = self.by_handle.get(&handle.0) else { return };
        if let Some(link) = self.links.get_mut(&id) {
            link.connection.handle_event(event);
            self.touch(id);
        }
    }

    /// What does not leave now is asked for again.
    fn respond(&self, transmit: &Transmit) {
        let _ = self.socket.send(transmit, &self.response);
    }

    /// Lets the timers of links and of what is to be told expire.
    fn expire(&mut self, now: Instant) -> bool {
        if self.next_timeout.is_none_or(|timeout| now < timeout) {
            return false;
        }
        let mut late = Vec::new();
        for (&id, link) in &mut self.links {
            if link.connection.poll_timeout().is_some_and(|timeout| timeout <= now) {
                link.connection.handle_timeout(now);
                late.push((id, false));
            }
            if link.handshake_until.is_some_and(|until| until <= now) {
                late.push((id, true));
            }
        }
        for (id, is_handshake) in late {
            if is_handshake {
                self.give_up_handshake(id, now);
            }
            self.touch(id);
        }
        let post = &self.post;
        self.endings.retain(|&(at, rank, has_left)| {
            if at > now {
                return true;
            }
            // Unless the true cause was told in time, this is it.
            post.publish(|news| {
                if has_left {
                    news.leave(rank);
                } else {
                    news.fail(RankFailure { rank, cause: FailureCause::Disconnected });
                }
            });
            false
        });
        self.hear(now);
        self.next_timeout();
        true
    }

    /// Reads what the touched links tell.
    fn hear(&mut self, now: Instant) {
        for index in 0..self.touched.len() {
            let Some(&id) = self.touched.get(index) else { return };
            while let Some(link) = self.links.get_mut(&id) {
                let Some(event) = link.connection.poll_endpoint_events() else { break };
                let handle = link.handle;
                if let Some(event) = self.endpoint.handle_event(handle, event) {
                    link.connection.handle_event(event);
                }
            }
            while let Some(event) = self.links.get_mut(&id).and_then(|link| link.connection.poll())
            {
                self.hear_event(id, event, now);
            }
            self.forget_if_useless(id);
        }
    }

    fn hear_event(&mut self, id: LinkId, event: Event, now: Instant) {
        match event {
            Event::Connected => self.establish(id, now),
            Event::ConnectionLost { reason } => self.end(id, reason, now),
            Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                while let Some(link) = self.links.get_mut(&id) {
                    let Some(stream) = link.connection.streams().accept(Dir::Uni) else { break };
                    link.beginnings.insert(stream, Vec::new());
                    self.begin(StreamRef { link: id, id: stream });
                }
            }
            Event::Stream(StreamEvent::Readable { id: stream }) => {
                self.begin(StreamRef { link: id, id: stream });
            }
            Event::Stream(
                StreamEvent::Finished { id: stream } | StreamEvent::Stopped { id: stream, .. },
            ) => {
                if let Some(link) = self.links.get_mut(&id) {
                    link.unacknowledged.remove(&stream);
                }
            }
            Event::Stream(
                StreamEvent::Writable { .. }
                | StreamEvent::Available { .. }
                | StreamEvent::Opened { dir: Dir::Bi },
            )
            | Event::HandshakeDataReady
            | Event::DatagramReceived
            | Event::DatagramsUnblocked => {}
        }
    }

    fn add(&mut self, link: Link) -> LinkId {
        let id = LinkId(self.links_so_far);
        self.links_so_far += 1;
        self.by_handle.insert(link.handle.0, id);
        self.links.insert(id, link);
        self.touch(id);
        id
    }

    fn touch(&mut self, id: LinkId) {
        if let Some(link) = self.links.get_mut(&id)
            && !std::mem::replace(&mut link.is_touched, true)
        {
            self.touched.push_back(id);
        }
    }

    fn close(&mut self, id: LinkId, now: Instant, code: VarInt, reason: &'static [u8]) {
        if let Some(link) = self.links.get_mut(&id) {
            link.connection.close(now, code, Bytes::from_static(reason));
            link.ended.get_or_insert(ConnectionError::LocallyClosed);
            self.touch(id);
        }
    }

    /// Sends a few batches on each touched link; says whether that lets writers go on.
    fn send(&mut self, now: Instant) -> bool {
        let mut progress = false;
        if let Some(transmit) = self.blocked.take() {
            if !self.socket.send(&transmit, &self.batch) {
                self.blocked = Some(transmit);
                return false;
            }
            progress = true;
        }
        for _ in 0..self.touched.len() {
            let Some(id) = self.touched.pop_front() else { break };
            let Some(link) = self.links.get_mut(&id) else { continue };
            link.is_touched = false;
            let unsent_bytes = link.unsent_bytes;
            let mut has_more = true;
            for _ in 0..BATCHES {
                self.batch.clear();
                let packets = self.socket.batch(link.connection.current_mtu());
                let Some(transmit) = link.transmit(now, packets, &mut self.batch) else {
                    has_more = false;
                    break;
                };
                if !self.socket.send(&transmit, &self.batch) {
                    self.blocked = Some(transmit);
                    break;
                }
            }
            progress |= link.unsent_bytes != unsent_bytes;
            let timeout = link.timeout();
            self.next_timeout = self.next_timeout.into_iter().chain(timeout).min();
            if has_more {
                self.touch(id);
            }
            if self.blocked.is_some() {
                break;
            }
        }
        progress
    }

    fn send_notices(&mut self, now: Instant) {
        if self.notices.is_empty() {
            return;
        }
        let mut notices = std::mem::take(&mut self.notices);
        notices.retain_mut(|Notice { outbound, until }| {
            let rank = outbound.rank;
            match self.poll_write(outbound) {
                Poll::Ready(Ok(stream)) => {
                    self.finish(stream);
                    false
                }
                Poll::Ready(Err(failure)) => {
                    tracing::debug!(%rank, "could not send a notice: {failure:?}");
                    false
                }
                Poll::Pending => *until > now,
            }
        });
        self.notices = notices;
    }

    /// Writes what is left of a chunk; ready with its stream when all of it is written.
    pub(super) fn poll_write(
        &mut self,
        outbound: &mut Outbound,
    ) -> Poll<Result<StreamRef, Failure>> {
        let rank = outbound.rank;
        let stream = match outbound.stream {
            Some(stream) => stream,
            None => {
                let link = ready!(self.link_to(rank))?;
                let opened = self.links.get_mut(&link).and_then(Link::open);
                let Some(id) = opened else { return Poll::Pending };
                *outbound.stream.insert(StreamRef { link, id })
            }
        };
        let Some(link) = self.links.get_mut(&stream.link) else {
            return Poll::Ready(Err(lost(rank, &ConnectionError::LocallyClosed)));
        };
        if let Some(end) = &link.ended {
            return Poll::Ready(Err(lost(rank, end)));
        }
        let written = link.write(stream.id, &mut outbound.chunk);
        self.touch(stream.link);
        match written {
            Ok(()) => Poll::Ready(Ok(stream)),
            Err(WriteError::Blocked) => Poll::Pending,
            Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {
                Poll::Ready(Err(self.gone(rank, "it stopped reading")))
            }
        }
    }

    /// Ends a stream of ours.
    pub(super) fn finish(&mut self, stream: StreamRef) {
        self.touch(stream.link);
        if let Some(link) = self.links.get_mut(&stream.link)
            && !link.finish(stream.id)
        {
            // The peer has stopped it, and says why by other means.
            link.reset(stream.id, GIVEN_UP);
        }
    }

    pub(super) fn reset(&mut self, stream: StreamRef) {
        self.touch(stream.link);
        if let Some(link) = self.links.get_mut(&stream.link) {
            link.reset(stream.id, GIVEN_UP);
        }
    }

    /// A copy of the parts, to be sent.
    pub(super) fn copy(&mut self, parts: &[&[u8]]) -> Bytes {
        self.pool.copy(parts).freeze()
    }

    /// Ready when all that was written to the connection of `stream`, with `rank`, is on its way, as
    /// far as the peer takes it.
    pub(super) fn poll_sent(&self, rank: Rank, stream: StreamRef) -> Poll<Result<(), Failure>> {
        match self.links.get(&stream.link) {
            Some(Link { ended: None, unsent_bytes, .. }) => {
                if *unsent_bytes == 0 && self.blocked.is_none() {
                    Poll::Ready(Ok(()))
                } else {
                    Poll::Pending
                }
            }
            Some(Link { ended: Some(end), .. }) => Poll::Ready(Err(lost(rank, end))),
            None => Poll::Ready(Err(lost(rank, &ConnectionError::LocallyClosed))),
        }
    }

    /// Whether the next batches on `stream`'s connection will be full ones, or are all that it takes
    /// for now.
    pub(super) fn has_batches(&self, stream: StreamRef) -> bool {
        let link = self.links.get(&stream.link);
        link.is_some_and(|link| {
            link.unsent_bytes >= BATCHES * BATCH_CONTENT_BYTES
                || !has_room(link.connection.congestion_state(), link.unsent_bytes)
        })
    }

    /// Says that a reader or writer stopped of its own accord and wants to go on.
    pub(super) fn go_on(&mut self) {
        self.has_more = true;
    }

    /// Reads from a stream; an error if its connection ended before it did.
    pub(super) fn read(&mut self, stream: StreamRef, bytes: &mut [u8]) -> Result<Read, Failure> {
        let broken = Read { filled: 0, rest: Rest::Broken };
        let Some(link) = self.links.get_mut(&stream.link) else { return Ok(broken) };
        let (read, made_room) = link.read(stream.id, bytes);
        match (&link.ended, link.peer) {
            (Some(end), Some(rank)) if read.filled == 0 && read.rest == Rest::Blocked => {
                return Err(lost(rank, end));
            }
            _ => {}
        }
        if made_room {
            self.touch(stream.link);
        }
        Ok(read)
    }

    fn has_everything(&self, rank: Rank) -> bool {
        let Some(peer) = self.peers.get(rank.0 as usize) else { return true };
        let mut links = [peer.dialled, peer.accepted].into_iter().flatten();
        links.all(|id| {
            self.links
                .get(&id)
                .is_none_or(|link| link.ended.is_some() || link.unacknowledged.is_empty())
        }) && !self.notices.iter().any(|notice| notice.outbound.rank == rank)
    }

    fn stop(&mut self, stream: StreamRef) {
        if let Some(link) = self.links.get_mut(&stream.link) {
            link.stop(stream.id, GIVEN_UP);
            self.touch(stream.link);
        }
    }

    fn gone(&self, rank: Rank, detail: &str) -> Failure {
        let peer = Member(self.topology.members_of(rank).start);
        Failure::Gone(TransportError::Peer { peer, detail: detail.to_owned() })
    }
}
