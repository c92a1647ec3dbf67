//! Members of different processes: one QUIC stream per message.
//!
//! Each process dials a connection to each peer it sends to, when it first does, pinned to the
//! certificate of the topology; connections that come in are known by theirs. A message is a
//! unidirectional stream (module `wire`). Its head is read when it arrives, its bytes when the
//! receive that wants them is there, straight into that receive's slice; until then flow control
//! holds the sender. A peer can make a process buffer at most 4096 windows of
//! 2 MiB. The connection as a whole has no window of its own: the stream that is
//! waited for could otherwise be held up by those that are not yet.
//!
//! Nothing here runs into a timeout while a peer is merely slow or stopped: who is dead is the
//! rendezvous' to say, who is late the caller's.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quinn::{
    Connection, ConnectionError, MtuDiscoveryConfig, ReadError, ReadExactError, RecvStream,
    SendStream, TransportConfig, VarInt, WriteError,
};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};

use self::window::BatchWindows;
use super::drive::{Failure, Transfer, drive, instant};
use super::local::copy;
use super::news::departure;
use super::post::Post;
use super::wire::{HEAD_BYTES, Head};
use super::{
    CAUSE_GRACE, Incoming, MAX_NOTICE_BYTES, Operation, Outgoing, Step, Tag, Transport,
    TransportError,
};
use crate::endpoint::{Connector, PeerConnection, PeerEndpoint, Protocol, RefusalLog};
use crate::ids::{Member, Rank};
use crate::rendezvous::{FailureCause, RankFailure};
use crate::{ConnectError, PeerName, Topology};

/// Messages of one peer that may be under way at a time.
const STREAMS: u32 = 4096;

/// Bytes of one message that may be under way before its receive is there.
const STREAM_WINDOW_BYTES: u32 = 2 << 20;

/// Bytes that may be sent to one peer before it acknowledges any.
const SEND_WINDOW_BYTES: u64 = 4 << 20;

/// What is copied at a time to be sent: the allocator hands the same memory out again.
const SEND_CHUNK_BYTES: usize = 64 << 10;

/// The largest packet tried. Quinn gives the kernel up to ten packets in one call, which takes
/// 65507 bytes and drops the whole call beyond.
const LARGEST_PACKET_BYTES: u16 = 65507 / 10;

/// Packets that may overtake one before that counts as lost: a sender that moves to another core
/// makes a whole batch overtake.
const REORDERING_PACKETS: u32 = 128;

/// How often a connection without traffic shows the other side that it is there. It also finds
/// out soon that a stopped peer goes on, where the retransmission timer would have backed off.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// Up to here a message is copied behind its head, to leave in the same packet.
const ONE_WRITE_BYTES: usize = 1024;

/// How long a process that leaves waits for its peers to have what it sent.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a notice may take.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(5);

/// The code of a connection that ends because its process leaves.
const LEFT: VarInt = VarInt::from_u32(0);

/// The code of a connection from nobody of the job.
const STRANGER: VarInt = VarInt::from_u32(1);

/// The code of a stream that its sender or receiver gave up.
const GIVEN_UP: VarInt = VarInt::from_u32(2);

/// Connects the members of this process with those of all others.
///
/// Dropping it waits up to 5 s until the peers have what was sent to them.
pub struct QuicTransport {
    shared: Arc<Shared>,
    /// Keeps the socket and its runtime.
    _endpoint: Arc<PeerEndpoint>,
    accepting: AbortHandle,
}

struct Shared {
    rank: Rank,
    topology: Arc<Topology>,
    connector: Connector,
    handle: tokio::runtime::Handle,
    start: Instant,
    post: Post<Arrival>,
    /// By rank.
    peers: Vec<Peer>,
    refusals: RefusalLog,
}

#[derive(Default)]
struct Peer {
    /// The connection that this process sends on, from the first send on.
    dialled: OnceLock<watch::Receiver<Option<Result<Connection, ConnectError>>>>,
    /// What was sent and may not have arrived, oldest first.
    unacknowledged: Mutex<VecDeque<Acknowledged>>,
}

/// Ready when the peer has everything, or never will.
type Acknowledged = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A message, or the stream it will be read from.
enum Arrival {
    Copy(Vec<u8>),
    Stream { stream: RecvStream, length_bytes: u64 },
}

/// The settings of connections between members, for [`PeerEndpoint::listen`].
pub fn transport_config() -> Arc<TransportConfig> {
    let mut mtu = MtuDiscoveryConfig::default();
    mtu.upper_bound(LARGEST_PACKET_BYTES);
    let mut config = TransportConfig::default();
    config
        .max_concurrent_uni_streams(VarInt::from_u32(STREAMS))
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW_BYTES))
        .receive_window(VarInt::MAX)
        .send_window(SEND_WINDOW_BYTES)
        .datagram_receive_buffer_size(None)
        .congestion_controller_factory(Arc::new(BatchWindows))
        .packet_threshold(REORDERING_PACKETS)
        .mtu_discovery_config(Some(mtu))
        .max_idle_timeout(None)
        .keep_alive_interval(Some(KEEP_ALIVE));
    Arc::new(config)
}

impl QuicTransport {
    /// The transport of `rank` of the job `topology`.
    ///
    /// `incoming` is what `endpoint` accepts for [`Protocol::Transport`] with
    /// [`transport_config`]. Listen before the address is told to the job: peers may dial as soon
    /// as they know it.
    pub fn new(
        endpoint: Arc<PeerEndpoint>,
        incoming: mpsc::Receiver<PeerConnection>,
        rank: Rank,
        topology: Arc<Topology>,
    ) -> Self {
        let shared = Arc::new(Shared {
            rank,
            connector: endpoint.connector().clone(),
            handle: endpoint.handle().clone(),
            start: Instant::now(),
            post: Post::default(),
            peers: topology.ranks().iter().map(|_| Peer::default()).collect(),
            refusals: RefusalLog::default(),
            topology,
        });
        let accepting = endpoint.handle().spawn(accept(Arc::clone(&shared), incoming));
        Self { shared, _endpoint: endpoint, accepting: accepting.abort_handle() }
    }
}

impl Transport for QuicTransport {
    fn now(&self) -> Duration {
        self.shared.start.elapsed()
    }

    fn rank_of(&self, member: Member) -> Option<Rank> {
        self.shared.topology.rank_of(member)
    }

    fn exchange(
        &self,
        step: &Step<'_>,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), TransportError> {
        let shared = &self.shared;
        let me = step.operation.me;
        let mut transfers = Vec::with_capacity(sends.len() + receives.len());
        for &Outgoing { to, bytes } in sends {
            let tag = step.tag(me, to);
            match self.rank_of(to) {
                Some(rank) if rank == shared.rank => {
                    // A message that nobody waits for any more may be dropped.
                    let _ = shared.post.deliver(tag, Arrival::Copy(bytes.to_vec()));
                }
                Some(rank) => transfers.push(Transfer::send(to, shared.send(rank, tag, bytes))),
                None => {
                    let detail = "the job has no such device".to_owned();
                    return Err(TransportError::Peer { peer: to, detail });
                }
            }
        }
        for receive in receives {
            let tag = step.tag(receive.from, me);
            transfers.push(Transfer::receive(receive.from, shared.receive(tag, receive.bytes)));
        }
        drive(transfers, instant(shared.start, step.deadline), step.cancel, |pending, context| {
            let rank_of = |member| self.rank_of(member);
            shared.post.poll_interrupted(&step.operation, pending, rank_of, context)
        })
    }

    fn poll_interrupted(
        &self,
        operation: &Operation<'_>,
        pending: &[Member],
        context: &Context<'_>,
    ) -> Poll<TransportError> {
        let rank_of = |member| self.rank_of(member);
        self.shared.post.poll_interrupted(operation, pending, rank_of, context)
    }

    fn abort(&self, operation: &Operation<'_>, notice: &[u8]) {
        let shared = &self.shared;
        let notice = &notice[..notice.len().min(MAX_NOTICE_BYTES)];
        shared.post.publish(|news| news.abort(operation.id, shared.rank, notice.to_vec()));
        let mut ranks: Vec<Rank> =
            operation.members.iter().filter_map(|&member| self.rank_of(member)).collect();
        ranks.sort_unstable();
        ranks.dedup();
        for rank in ranks.into_iter().filter(|rank| *rank != shared.rank) {
            let (shared, id, notice) = (Arc::clone(shared), operation.id, notice.to_vec());
            let peer = self.shared.peer(rank);
            let sending = self.shared.handle.spawn(async move {
                let sent = tokio::time::timeout(NOTICE_TIMEOUT, shared.notify(rank, id, &notice));
                if let Ok(Err(Failure::Breach(detail))) = sent.await {
                    tracing::debug!(%rank, "could not send a notice: {detail}");
                }
            });
            if let Some(peer) = peer {
                peer.remember(Box::pin(async move { drop(sending.await) }));
            }
        }
    }

    fn retire(&self, operation: &Operation<'_>) {
        self.shared.post.retire(operation);
    }

    fn fail_rank(&self, failure: RankFailure) {
        self.shared.post.publish(|news| news.fail(failure));
    }

    fn flush(&self, timeout: Duration) {
        let shared = &*self.shared;
        let mut transfers = Vec::new();
        for (peer, rank) in shared.peers.iter().zip((0..).map(Rank)) {
            let member = Member(shared.topology.members_of(rank).start);
            for mut acknowledged in std::mem::take(&mut *peer.unacknowledged()) {
                transfers.push(Transfer::send(
                    member,
                    poll_fn(move |context| match shared.post.poll_gone(rank, context) {
                        Poll::Ready(()) => Poll::Ready(Ok(())),
                        Poll::Pending => acknowledged.as_mut().poll(context).map(Ok),
                    }),
                ));
            }
        }
        let deadline = instant(shared.start, self.now().saturating_add(timeout));
        // Who has not taken everything by now will not be waited for.
        let _ = drive(transfers, deadline, None, |_, _| Poll::Pending);
    }
}

impl Drop for QuicTransport {
    fn drop(&mut self) {
        // The runtime's own thread cannot wait for what it has to do itself.
        if tokio::runtime::Handle::try_current().is_err() {
            self.flush(LEAVE_TIMEOUT);
        }
        self.accepting.abort();
        for peer in &self.shared.peers {
            let dialled = peer.dialled.get().map(|dialled| dialled.borrow().clone());
            if let Some(Some(Ok(connection))) = dialled {
                connection.close(LEFT, b"");
            }
        }
    }
}

impl Shared {
    fn peer(&self, rank: Rank) -> Option<&Peer> {
        self.peers.get(rank.0 as usize)
    }

    /// Sends `bytes` to the receive under `tag`, which is of another process.
    ///
    /// # Cancel safety
    /// Dropping the future tells the receiver that no more will come.
    async fn send(self: &Arc<Self>, rank: Rank, tag: Tag, bytes: &[u8]) -> Result<(), Failure> {
        let head = Head::Message { tag, length_bytes: bytes.len() as u64 };
        let stream = self.write(rank, tag.to, &head, bytes).await?;
        if let Some(peer) = self.peer(rank) {
            let stopped = stream.stopped();
            peer.remember(Box::pin(async move { drop(stopped.await) }));
        }
        Ok(())
    }

    /// Tells `rank` that `operation` was given up, and waits until it has heard.
    async fn notify(
        self: &Arc<Self>,
        rank: Rank,
        operation: crate::OperationId,
        notice: &[u8],
    ) -> Result<(), Failure> {
        let length_bytes = u32::try_from(notice.len()).unwrap_or(u32::MAX);
        let head = Head::Notice { operation, length_bytes };
        let first = Member(self.topology.members_of(rank).start);
        let stream = self.write(rank, first, &head, notice).await?;
        drop(stream.stopped().await);
        Ok(())
    }

    /// Writes a whole stream.
    async fn write(
        self: &Arc<Self>,
        rank: Rank,
        peer: Member,
        head: &Head,
        bytes: &[u8],
    ) -> Result<SendStream, Failure> {
        let head = head.encode().map_err(|error| Failure::Breach(error.to_string()))?;
        let connection = self.connection(rank).await?;
        let lost = |error| lost(rank, &error);
        let mut stream = Unfinished(Some(connection.open_uni().await.map_err(lost)?));
        let given_up = |error| match error {
            WriteError::ConnectionLost(error) => lost(error),
            WriteError::Stopped(_) | WriteError::ClosedStream | WriteError::ZeroRttRejected => {
                gone(peer, "it stopped reading")
            }
        };
        if bytes.len() <= ONE_WRITE_BYTES {
            let mut whole = [0; HEAD_BYTES + ONE_WRITE_BYTES];
            whole[..HEAD_BYTES].copy_from_slice(&head);
            whole[HEAD_BYTES..][..bytes.len()].copy_from_slice(bytes);
            stream.write_all(&whole[..HEAD_BYTES + bytes.len()]).await.map_err(given_up)?;
        } else {
            stream.write_all(&head).await.map_err(given_up)?;
            for chunk in bytes.chunks(SEND_CHUNK_BYTES) {
                stream.write_chunk(Bytes::copy_from_slice(chunk)).await.map_err(given_up)?;
            }
        }
        stream.finish().ok_or_else(|| gone(peer, "it stopped reading"))
    }

    /// Fills `bytes` with the message under `tag`.
    ///
    /// # Cancel safety
    /// Dropping the future loses the message.
    async fn receive(&self, tag: Tag, bytes: &mut [u8]) -> Result<(), Failure> {
        let arrival = poll_fn(|context| self.post.poll_take(tag, context)).await;
        let (mut stream, length_bytes) = match arrival {
            Arrival::Copy(message) => return copy(&message, bytes),
            Arrival::Stream { stream, length_bytes } => (stream, length_bytes),
        };
        let expected = bytes.len();
        if length_bytes != expected as u64 {
            let detail = format!("sent {length_bytes} bytes where {expected} are expected");
            return Err(Failure::Breach(detail));
        }
        let broken = |error| match error {
            ReadError::ConnectionLost(error) => match self.topology.rank_of(tag.from) {
                Some(rank) => lost(rank, &error),
                None => gone(tag.from, "its connection is lost"),
            },
            _ => gone(tag.from, "it stopped sending"),
        };
        match stream.read_exact(bytes).await {
            Ok(()) => {}
            Err(ReadExactError::FinishedEarly(read)) => {
                let detail = format!("announced {expected} bytes and sent {read}");
                return Err(Failure::Breach(detail));
            }
            Err(ReadExactError::ReadError(error)) => return Err(broken(error)),
        }
        match stream.read(&mut [0]).await.map_err(broken)? {
            None => Ok(()),
            Some(_) => {
                Err(Failure::Breach(format!("sent more than the {expected} bytes announced")))
            }
        }
    }

    /// The connection that this process sends to `rank` on; dials it if nobody did.
    async fn connection(self: &Arc<Self>, rank: Rank) -> Result<Connection, Failure> {
        let unreachable = |detail| {
            let peer = Member(self.topology.members_of(rank).start);
            Failure::Gone(TransportError::Peer { peer, detail })
        };
        let Some(peer) = self.peer(rank) else {
            return Err(unreachable("the job has no such rank".to_owned()));
        };
        let dialled = peer.dialled.get_or_init(|| {
            let (outcome, receiver) = watch::channel(None);
            self.handle.spawn(Arc::clone(self).dial(rank, outcome));
            receiver
        });
        let mut dialled = dialled.clone();
        let outcome = dialled.wait_for(Option::is_some).await.map(|outcome| outcome.clone());
        match outcome {
            Ok(Some(Ok(connection))) => Ok(connection),
            Ok(Some(Err(error))) => Err(unreachable(error.to_string())),
            Ok(None) | Err(_) => Err(unreachable("this process closes its endpoint".to_owned())),
        }
    }

    /// Connects to `rank`, says so, and stays to notice the connection's end.
    async fn dial(
        self: Arc<Self>,
        rank: Rank,
        outcome: watch::Sender<Option<Result<Connection, ConnectError>>>,
    ) {
        let Some(info) = self.topology.rank(rank) else { return };
        let connected = loop {
            let connecting = self.connector.connect(
                Protocol::Transport,
                PeerName::Rank(rank),
                info.address,
                Some(info.fingerprint),
                transport_config(),
            );
            match connecting.await {
                // A peer that is stopped or overloaded: how long to wait is not decided here.
                Err(error @ ConnectError::NoAnswer { .. }) if !self.is_gone(rank) => {
                    tracing::warn!("{error}; trying again");
                }
                connected => break connected,
            }
        };
        let connection = connected.map(|peer| peer.connection);
        outcome.send_replace(Some(connection.clone()));
        if let Ok(connection) = connection {
            let end = connection.closed().await;
            self.disconnected(rank, &end).await;
        }
    }

    /// Takes in everything that `rank` sends on a connection.
    async fn serve(self: Arc<Self>, rank: Rank, connection: Connection) {
        let mut heads = JoinSet::new();
        loop {
            let stream = match connection.accept_uni().await {
                Ok(stream) => stream,
                Err(end) => return self.disconnected(rank, &end).await,
            };
            while heads.try_join_next().is_some() {}
            // Nearly always the head is there already, and no task is needed to wait for it.
            let mut head = Box::pin(Arc::clone(&self).take_in(rank, connection.clone(), stream));
            let poll = |context: &mut Context<'_>| Poll::Ready(head.as_mut().poll(context));
            if poll_fn(poll).await.is_pending() {
                heads.spawn(head);
            }
        }
    }

    /// Reads the head of a stream from `rank` and puts the stream where it belongs.
    async fn take_in(self: Arc<Self>, rank: Rank, connection: Connection, mut stream: RecvStream) {
        let refuse = |reason: &dyn fmt::Display| {
            self.refusals.log(connection.remote_address(), &format!("{rank}: {reason}"));
        };
        let mut head = [0; HEAD_BYTES];
        if stream.read_exact(&mut head).await.is_err() {
            // The sender gave it up, or is gone.
            return;
        }
        match Head::decode(&head) {
            Ok(Head::Message { tag, length_bytes }) => {
                let (from, to) = (self.topology.rank_of(tag.from), self.topology.rank_of(tag.to));
                if from != Some(rank) || to != Some(self.rank) {
                    refuse(&format_args!("a message from {} to {}", tag.from, tag.to));
                    return;
                }
                let arrival = Arrival::Stream { stream, length_bytes };
                if let Err(Arrival::Stream { mut stream, .. }) = self.post.deliver(tag, arrival) {
                    // Its operation is over here; the sender may have stopped it already.
                    let _ = stream.stop(GIVEN_UP);
                }
            }
            Ok(Head::Notice { operation, length_bytes }) => {
                let length = length_bytes as usize;
                if length > MAX_NOTICE_BYTES {
                    refuse(&format_args!("a notice of {length} bytes"));
                    return;
                }
                let mut notice = vec![0; length];
                if stream.read_exact(&mut notice).await.is_ok() {
                    self.post.publish(|news| news.abort(operation, rank, notice));
                }
            }
            Err(error) => refuse(&error),
        }
    }

    /// A connection with `rank` has ended: unless the true cause is told in time, that is it.
    async fn disconnected(&self, rank: Rank, end: &ConnectionError) {
        tokio::time::sleep(CAUSE_GRACE).await;
        self.post.publish(|news| {
            if has_left(end) {
                news.leave(rank);
            } else {
                news.fail(RankFailure { rank, cause: FailureCause::Disconnected });
            }
        });
    }

    fn is_gone(&self, rank: Rank) -> bool {
        let context = Context::from_waker(Waker::noop());
        self.post.poll_gone(rank, &context).is_ready()
    }
}

impl Peer {
    fn unacknowledged(&self) -> MutexGuard<'_, VecDeque<Acknowledged>> {
        self.unacknowledged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what was sent until it has arrived, and forgets what has.
    fn remember(&self, acknowledged: Acknowledged) {
        let mut unacknowledged = self.unacknowledged();
        let mut context = Context::from_waker(Waker::noop());
        while let Some(oldest) = unacknowledged.front_mut() {
            if oldest.as_mut().poll(&mut context).is_pending() {
                break;
            }
            unacknowledged.pop_front();
        }
        unacknowledged.push_back(acknowledged);
    }
}

/// A stream that is reset if it is dropped before its end: the receiver must not take a part for
/// the whole.
struct Unfinished(Option<SendStream>);

impl Unfinished {
    async fn write_all(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        match &mut self.0 {
            Some(stream) => stream.write_all(bytes).await,
            None => Err(WriteError::ClosedStream),
        }
    }

    async fn write_chunk(&mut self, chunk: Bytes) -> Result<(), WriteError> {
        match &mut self.0 {
            Some(stream) => stream.write_chunk(chunk).await,
            None => Err(WriteError::ClosedStream),
        }
    }

    /// Ends the stream; `None` if the receiver has stopped it.
    fn finish(mut self) -> Option<SendStream> {
        let mut stream = self.0.take()?;
        stream.finish().ok()?;
        Some(stream)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(stream) = &mut self.0 {
            // It fails only if the stream has ended.
            let _ = stream.reset(GIVEN_UP);
        }
    }
}

/// Accepts the connections of the job's ranks, one of each.
async fn accept(shared: Arc<Shared>, mut incoming: mpsc::Receiver<PeerConnection>) {
    let mut serving = JoinSet::new();
    let mut current: HashMap<Rank, AbortHandle> = HashMap::new();
    while let Some(PeerConnection { connection, fingerprint }) = incoming.recv().await {
        while serving.try_join_next().is_some() {}
        let Some(rank) = shared.topology.rank_of_fingerprint(fingerprint) else {
            shared.refusals.log(connection.remote_address(), &"it is not of this job's topology");
            connection.close(STRANGER, b"not of this job's topology");
            continue;
        };
        let task = serving.spawn(Arc::clone(&shared).serve(rank, connection));
        if let Some(previous) = current.insert(rank, task) {
            previous.abort();
        }
    }
    // The endpoint no longer accepts; what was accepted is served to its end.
    while serving.join_next().await.is_some() {}
}

fn lost(rank: Rank, end: &ConnectionError) -> Failure {
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

fn gone(peer: Member, detail: &str) -> Failure {
    Failure::Gone(TransportError::Peer { peer, detail: detail.to_owned() })
}

impl fmt::Debug for QuicTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicTransport").field("rank", &self.shared.rank).finish_non_exhaustive()
    }
}

mod window;

#[cfg(test)]
mod tests;
