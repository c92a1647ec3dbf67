//! The coordinator: carries what members say to the core, and what the core decides to them.
//!
//! Owns the connections and the clock, decides nothing. Each connection has one task, each call on
//! it another, and one task keeps the time; they meet in the core, behind a lock that is never
//! held across a wait.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quinn::{ConnectionError, IdleTimeout, RecvStream, SendStream, TransportConfig, VarInt};
use tokio::sync::{Notify, mpsc, oneshot};

use super::core::{Action, CallId, ConnectionId, Core, Event, Settings};
use super::message::{
    FrameError, FromMember, MAX_CALL_BYTES, MAX_FROM_MEMBER_BYTES, Reply, Request, ToMember,
    decode, encode, encode_frame, read_frame,
};
use super::{CoordinatorStatus, ProcessExit, watch};
use crate::endpoint::{RefusalLog, is_other_secret};
use crate::{
    Attempt, EndpointError, FlightLog, Identity, IdentityError, JobId, JobSecret, PeerConnection,
    PeerEndpoint, PeerName, Protocol, Rank,
};

/// The heartbeat timeout for those who have no reason for another.
pub const DEFAULT_HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a connected peer may take to say what it wants.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a dismissed peer may take to close its connection.
const DISMISSAL_TIMEOUT: Duration = Duration::from_secs(2);

/// The code of a connection that has served its purpose.
const DONE: VarInt = VarInt::from_u32(0);

/// The code of a connection from one who does not belong here.
const REFUSED: VarInt = VarInt::from_u32(1);

/// Calls that one member may have under way.
const CONCURRENT_CALLS: u32 = 1024;

/// What a coordinator is to coordinate, and where.
#[derive(Clone, Debug)]
pub struct CoordinatorOptions {
    /// Where to listen; port 0 for any free one.
    pub bind: SocketAddr,
    /// The job.
    pub job: JobId,
    /// Its restart count.
    pub attempt: Attempt,
    /// Its processes, at least 1.
    pub world_size: u32,
    /// What its processes prove to hold.
    pub secret: JobSecret,
    /// How long a joined rank may be silent.
    pub heartbeat_timeout: Duration,
}

/// Why a coordinator could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RendezvousError {
    /// Its port could not be opened.
    #[error("cannot host the rendezvous: {0}")]
    Endpoint(#[from] EndpointError),
    /// Its identity could not be made.
    #[error("cannot host the rendezvous: {0}")]
    Identity(#[from] IdentityError),
    /// The job has no processes.
    #[error("a job of 0 processes has no rendezvous")]
    NoRanks,
}

/// The rendezvous of one attempt of one job.
///
/// Runs until it is dropped; members then find their calls failing with a lost coordinator.
#[derive(Debug)]
pub struct Coordinator {
    endpoint: PeerEndpoint,
    shared: Arc<Shared>,
}

struct Shared {
    started: Instant,
    state: Mutex<State>,
    /// The next wake-up is earlier than it was.
    earlier: Notify,
    /// Anything at all has happened.
    changed: Condvar,
    refusals: RefusalLog,
}

struct State {
    core: Core,
    members: HashMap<ConnectionId, mpsc::UnboundedSender<Outgoing>>,
    calls: HashMap<CallId, oneshot::Sender<Reply>>,
    last_id: u64,
}

/// What goes to a member. A member's queue is bounded by its job: a rank fails once, and who is
/// missing changes as often as ranks join.
enum Outgoing {
    LastWord(ToMember),
    Notice(Bytes),
}

impl Coordinator {
    /// Opens the port and serves it from threads of its own.
    ///
    /// # Errors
    /// When the port cannot be opened, or the job has no processes.
    pub fn start(options: CoordinatorOptions) -> Result<Self, RendezvousError> {
        let CoordinatorOptions { bind, job, attempt, world_size, secret, heartbeat_timeout } =
            options;
        if world_size == 0 {
            return Err(RendezvousError::NoRanks);
        }
        let identity = Identity::new(&secret, PeerName::Coordinator)?;
        let endpoint = PeerEndpoint::bind(identity, bind)?;
        let incoming =
            endpoint.listen(Protocol::Rendezvous, Arc::new(transport(heartbeat_timeout)))?;
        let core = Core::new(Settings { job, attempt, world_size, heartbeat_timeout });
        let shared = Arc::new(Shared {
            started: Instant::now(),
            state: Mutex::new(State {
                core,
                members: HashMap::new(),
                calls: HashMap::new(),
                last_id: 0,
            }),
            earlier: Notify::new(),
            changed: Condvar::new(),
            refusals: RefusalLog::default(),
        });
        endpoint.handle().spawn(admit_peers(Arc::clone(&shared), incoming));
        endpoint.handle().spawn(keep_time(Arc::clone(&shared)));
        Ok(Self { endpoint, shared })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.endpoint.local_address()
    }

    /// Tells how a rank's process ended: success means that it has left, anything else is pushed to
    /// all ranks as its failure.
    pub fn report_exit(&self, rank: Rank, exit: ProcessExit) {
        self.shared.apply(Event::Exited { rank, exit });
    }

    /// Who is there.
    pub fn status(&self) -> CoordinatorStatus {
        self.shared.lock().core.status()
    }

    /// What the ranks have said of their collectives: each once one of its own or a rank of the job
    /// has failed, and what it did last once it has left.
    pub fn flight_logs(&self) -> BTreeMap<Rank, FlightLog> {
        self.shared.lock().core.flight_logs().clone()
    }

    /// Waits until no rank is connected; whether that came within `timeout`.
    pub fn wait_until_empty(&self, timeout: Duration) -> bool {
        let occupied = |state: &mut State| !state.core.status().joined.is_empty();
        let state = self.shared.lock();
        let waited = self.shared.changed.wait_timeout_while(state, timeout, occupied);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Ends it: what dropping does, with a name.
    pub fn shutdown(self) {
        drop(self);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply(&self, event: Event) {
        let mut state = self.lock();
        // Read under the lock, so that the core never sees time go back.
        let now = self.started.elapsed();
        let wakeup = state.core.next_wakeup();
        for action in state.core.handle(now, event) {
            state.perform(action);
        }
        if state.core.next_wakeup() < wakeup {
            self.earlier.notify_one();
        }
        drop(state);
        self.changed.notify_all();
    }

    fn open(&self, outgoing: mpsc::UnboundedSender<Outgoing>) -> ConnectionId {
        let mut state = self.lock();
        let connection = ConnectionId(state.next_id());
        state.members.insert(connection, outgoing);
        connection
    }

    /// Ends a connection and says why on both sides.
    fn refuse(&self, connection: &quinn::Connection, reason: &str) {
        self.refusals.log(connection.remote_address(), &reason);
        connection.close(REFUSED, reason.as_bytes());
    }

    fn close(&self, connection: ConnectionId, timed_out: bool) {
        self.lock().members.remove(&connection);
        self.apply(Event::Closed { connection, timed_out });
    }
}

impl State {
    fn next_id(&mut self) -> u64 {
        self.last_id = self.last_id.wrapping_add(1);
        self.last_id
    }

    fn perform(&mut self, action: Action) {
        // Whoever is no longer there to take a message has no use for it.
        match action {
            Action::Dismiss { connection, notice } => {
                if let Some(member) = self.members.get(&connection) {
                    let _ = member.send(Outgoing::LastWord(notice));
                }
            }
            Action::Log(text) => tracing::info!("{text}"),
            Action::Notify { to, notice } => {
                let frame = encode_frame(&notice);
                for member in to.iter().filter_map(|connection| self.members.get(connection)) {
                    let _ = member.send(Outgoing::Notice(frame.clone()));
                }
            }
            Action::Reply { call, reply } => {
                if let Some(caller) = self.calls.remove(&call) {
                    let _ = caller.send(reply);
                }
            }
        }
    }
}

/// How long a connection lasts on which nothing comes: longer than the heartbeat timeout, so that
/// the core judges silence, with its excuses.
pub(super) fn idle_timeout(heartbeat_timeout: Duration) -> Duration {
    heartbeat_timeout.saturating_mul(2)
}

/// Timeouts and limits of a member's connection.
fn transport(heartbeat_timeout: Duration) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let idle = IdleTimeout::try_from(idle_timeout(heartbeat_timeout)).ok();
    transport
        .max_idle_timeout(idle)
        .keep_alive_interval(Some(heartbeat_timeout / 4))
        .max_concurrent_bidi_streams(VarInt::from_u32(CONCURRENT_CALLS))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None);
    transport
}

async fn keep_time(shared: Arc<Shared>) {
    loop {
        let wakeup = shared.started + shared.lock().core.next_wakeup();
        tokio::select! {
            () = tokio::time::sleep_until(wakeup.into()) => shared.apply(Event::Tick),
            () = shared.earlier.notified() => {}
        }
    }
}

async fn admit_peers(shared: Arc<Shared>, mut incoming: mpsc::Receiver<PeerConnection>) {
    while let Some(peer) = incoming.recv().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            match serve_peer(&shared, &peer).await {
                Ok(()) => peer.connection.close(DONE, b""),
                Err(reason) => shared.refuse(&peer.connection, &reason),
            }
        });
    }
}

/// Serves a peer until it leaves or its connection ends; the error is why it is refused.
async fn serve_peer(shared: &Arc<Shared>, peer: &PeerConnection) -> Result<(), String> {
    let connection = &peer.connection;
    let first = tokio::time::timeout(FIRST_MESSAGE_TIMEOUT, first_message(connection)).await;
    let (send, receive, message) = first.map_err(|_| "it says nothing".to_owned())??;
    let FromMember::Join(join) = message else {
        return Err("its first message is not a join".to_owned());
    };
    // The ports differ: peers reach a process at another socket than the coordinator.
    if join.address.ip() != connection.remote_address().ip() {
        let (rank, says, seen) = (join.rank, join.address.ip(), connection.remote_address().ip());
        tracing::warn!(
            "{rank} says that it is at {says}, its packets come from {seen}: if addresses are \
             translated between hosts, its peers may not reach it"
        );
    }
    let (job, host) = (join.job.clone(), join.host.clone());
    let end_of_process = watch::end_of(job, join.rank, host, join.process_id);
    let (outgoing, queue) = mpsc::unbounded_channel();
    let id = shared.open(outgoing);
    shared.apply(Event::Join { connection: id, fingerprint: peer.fingerprint, join });
    let result = tokio::select! {
        result = write_notices(connection, send, queue) => result,
        result = read_messages(shared, id, receive) => result,
        () = serve_calls(shared, id, connection) => Ok(()),
        () = end_of_process => Ok(()),
    };
    let timed_out = matches!(connection.close_reason(), Some(ConnectionError::TimedOut));
    shared.close(id, timed_out);
    result
}

async fn first_message(
    connection: &quinn::Connection,
) -> Result<(SendStream, RecvStream, FromMember), String> {
    let refusal = |error: ConnectionError| {
        if is_other_secret(&error) {
            "it holds another job secret".to_owned()
        } else {
            error.to_string()
        }
    };
    let (send, mut receive) = connection.accept_bi().await.map_err(refusal)?;
    let message = read_frame(&mut receive, MAX_FROM_MEMBER_BYTES).await;
    let message = message.map_err(|error| error.to_string())?;
    Ok((send, receive, message))
}

/// Sends what the core says, until its last word; the error is that word if it is a refusal.
async fn write_notices(
    connection: &quinn::Connection,
    mut send: SendStream,
    mut queue: mpsc::UnboundedReceiver<Outgoing>,
) -> Result<(), String> {
    // A member that can no longer be written to is one whose connection ends, which is handled
    // there.
    while let Some(outgoing) = queue.recv().await {
        let notice = match outgoing {
            Outgoing::Notice(frame) => {
                if send.write_chunk(frame).await.is_err() {
                    return Ok(());
                }
                continue;
            }
            Outgoing::LastWord(notice) => notice,
        };
        if send.write_chunk(encode_frame(&notice)).await.is_ok() {
            let _ = send.finish();
            let _ = tokio::time::timeout(DISMISSAL_TIMEOUT, connection.closed()).await;
        }
        return match notice {
            ToMember::Refused(refusal) => Err(refusal.to_string()),
            _ => Ok(()),
        };
    }
    Ok(())
}

/// Tells the core what a member says; returns when the connection ends, or with an error when it
/// says nonsense.
async fn read_messages(
    shared: &Shared,
    connection: ConnectionId,
    mut receive: RecvStream,
) -> Result<(), String> {
    loop {
        let event = match read_frame(&mut receive, MAX_FROM_MEMBER_BYTES).await {
            Ok(FromMember::Heartbeat) => Event::Heartbeat { connection },
            Ok(FromMember::Join(_)) => return Err("it joins twice".to_owned()),
            Ok(FromMember::Leave) => Event::Leave { connection },
            Ok(FromMember::ReportFailure(message)) => Event::ReportFailure { connection, message },
            Err(FrameError::Ended(_)) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        shared.apply(event);
    }
}

async fn serve_calls(shared: &Arc<Shared>, id: ConnectionId, connection: &quinn::Connection) {
    while let Ok((send, receive)) = connection.accept_bi().await {
        let (shared, connection) = (Arc::clone(shared), connection.clone());
        tokio::spawn(async move {
            if let Err(reason) = serve_call(&shared, id, send, receive).await {
                shared.refuse(&connection, &reason);
            }
        });
    }
}

/// Answers one call; the error is what is wrong with its bytes.
async fn serve_call(
    shared: &Shared,
    connection: ConnectionId,
    mut send: SendStream,
    mut receive: RecvStream,
) -> Result<(), String> {
    let request: Request = match receive.read_to_end(MAX_CALL_BYTES).await {
        Ok(bytes) => decode(&bytes).map_err(|error| format!("it sends {error}"))?,
        Err(quinn::ReadToEndError::TooLong) => return Err("it sends a request too long".to_owned()),
        // The caller has given up, or its connection is gone.
        Err(quinn::ReadToEndError::Read(_)) => return Ok(()),
    };
    let (answer, answered) = oneshot::channel();
    let call = {
        let mut state = shared.lock();
        let call = CallId(state.next_id());
        state.calls.insert(call, answer);
        call
    };
    shared.apply(Event::Call { connection, call, request });
    tokio::select! {
        Ok(reply) = answered => {
            // A caller that is gone by now needs no reply.
            if send.write_chunk(encode(&reply)).await.is_ok() {
                let _ = send.finish();
            }
        }
        _ = send.stopped() => {
            shared.lock().calls.remove(&call);
            shared.apply(Event::Cancelled { call });
        }
    }
    Ok(())
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("started", &self.started).finish_non_exhaustive()
    }
}
