//! A rank's membership: its calls to the coordinator, its signs of life, and the news it gets.
//!
//! Blocks the callers' threads, never the network's: a call is a task on the endpoint's runtime and
//! a channel that its caller waits on. Heartbeats come from a thread of their own, so that a process
//! is dead only when nothing of it runs. How a session comes about is `join`'s.

use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, Sender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use quinn::{ConnectionError, RecvStream, SendStream, VarInt};
use tokio::sync::{Notify, mpsc};

use super::coordinator::idle_timeout;
use super::message::{
    FromMember, MAX_CALL_BYTES, MAX_TO_MEMBER_BYTES, Reply, Request, ToMember, decode, encode,
    encode_frame, read_frame,
};
use super::{CallRefusal, FailureCause, JoinRefusal, MissingRanks, RankFailure};
use crate::{PeerEndpoint, Rank, RankInfo, Topology};

/// How much later than its deadline an answer may come: the time it travels.
const REPLY_GRACE: Duration = Duration::from_secs(10);

/// How long a call that waits for nobody may take.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(60);

/// How long leaving waits for the coordinator to have noted it.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long after its streams a connection may end.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// Signs of life per heartbeat timeout.
const HEARTBEATS_PER_TIMEOUT: u32 = 5;

/// The longest message of a reported failure.
const MAX_REPORT_BYTES: usize = 4096;

/// A rank's membership in its job.
///
/// All methods may be called from many threads at once. Dropping it without [`Session::leave`] is
/// a failure of this rank to all others.
pub struct Session {
    shared: Arc<Shared>,
    endpoint: Arc<PeerEndpoint>,
    topology: Arc<Topology>,
    rank: Rank,
    /// Ends the heartbeat thread when it is dropped.
    _alive: Sender<()>,
}

/// Why a call to the coordinator came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A rank's heartbeat thread could not be started.
    #[error("cannot start the heartbeat thread: {0}")]
    Heartbeat(String),
    /// The coordinator is gone, so this process can no longer know what becomes of its peers.
    #[error("lost the coordinator at {coordinator}: {detail}")]
    Lost {
        /// Where it was.
        coordinator: String,
        /// How the connection ended.
        detail: String,
    },
    /// No answer came, though the connection is there.
    #[error("{call}: the coordinator gave no answer within {waited:?}")]
    NoReply {
        /// What was asked.
        call: String,
        /// How long.
        waited: Duration,
    },
    /// The coordinator says no, or not in time.
    #[error("{call}: {refusal}")]
    Refused {
        /// What was asked.
        call: String,
        /// Why not.
        refusal: CallRefusal,
    },
}

/// The failures of a job, as this rank learns of them.
#[derive(Clone, Debug)]
pub struct Failures(Arc<Shared>);

type Callback = Box<dyn FnMut(&RankFailure) + Send>;

pub(super) struct Shared {
    connection: quinn::Connection,
    /// Where the coordinator is, for errors.
    coordinator: String,
    /// The rank that is lost with the coordinator.
    host: Option<Rank>,
    outgoing: mpsc::UnboundedSender<FromMember>,
    heartbeat: Notify,
    state: Mutex<State>,
    changed: Condvar,
    /// Taken before `state` where both are.
    callbacks: Mutex<Vec<Callback>>,
}

#[derive(Default)]
struct State {
    standing: Standing,
    failures: Vec<RankFailure>,
}

/// How this process stands with the coordinator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has said that it wants to join.
    #[default]
    Asked,
    Joined {
        ranks: Vec<RankInfo>,
        heartbeat_timeout: Duration,
    },
    Left,
    /// The connection is gone.
    Lost(String),
    Refused(JoinRefusal),
    /// These ranks are still to come.
    Waiting(MissingRanks),
}

impl Session {
    /// The session of a connection that stands as joined.
    pub(super) fn new(
        shared: Arc<Shared>,
        endpoint: Arc<PeerEndpoint>,
        topology: Arc<Topology>,
        rank: Rank,
        heartbeat_timeout: Duration,
    ) -> Result<Self, SessionError> {
        let (alive, ended) = std::sync::mpsc::channel::<()>();
        let interval = heartbeat_timeout / HEARTBEATS_PER_TIMEOUT;
        let beating = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("lockstep-heartbeat".to_owned())
            .spawn(move || {
                while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                    beating.heartbeat.notify_one();
                }
            })
            .map_err(|error| SessionError::Heartbeat(error.to_string()))?;
        Ok(Self { shared, endpoint, topology, rank, _alive: alive })
    }

    /// All processes of the job.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// This process.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// The socket and runtime of this process.
    pub fn endpoint(&self) -> &Arc<PeerEndpoint> {
        &self.endpoint
    }

    /// Sets `key`, whether or not it is set.
    ///
    /// # Errors
    /// When key or value is too large, or the coordinator is lost.
    pub fn set(&self, key: &str, value: impl Into<Bytes>) -> Result<(), SessionError> {
        self.set_key(key, value.into(), true)
    }

    /// Sets `key`, which nobody has set.
    ///
    /// # Errors
    /// [`CallRefusal::AlreadySet`] when it is set; else as [`Session::set`].
    pub fn set_once(&self, key: &str, value: impl Into<Bytes>) -> Result<(), SessionError> {
        self.set_key(key, value.into(), false)
    }

    /// The value of `key`, when it is set or as soon as it is.
    ///
    /// # Errors
    /// [`CallRefusal::Late`] when it is not set within `timeout`; [`CallRefusal::RankFailed`] when it is
    /// not set and a rank has failed; or when the coordinator is lost.
    pub fn get(&self, key: &str, timeout: Duration) -> Result<Bytes, SessionError> {
        let call = || format!("get {key:?}");
        match self.call(call, &Request::Get { key: key.to_owned(), timeout }, timeout)? {
            Reply::Value(value) => Ok(value),
            other => Err(self.nonsense(call, &other)),
        }
    }

    /// The value of `key` if it is set.
    ///
    /// # Errors
    /// When the coordinator is lost.
    pub fn try_get(&self, key: &str) -> Result<Option<Bytes>, SessionError> {
        let call = || format!("try-get {key:?}");
        match self.call(call, &Request::TryGet { key: key.to_owned() }, PROMPT_TIMEOUT)? {
            Reply::Absent => Ok(None),
            Reply::Value(value) => Ok(Some(value)),
            other => Err(self.nonsense(call, &other)),
        }
    }

    /// Makes `key` unset; whether it was set.
    ///
    /// # Errors
    /// When the coordinator is lost.
    pub fn delete(&self, key: &str) -> Result<bool, SessionError> {
        let call = || format!("delete {key:?}");
        match self.call(call, &Request::Delete { key: key.to_owned() }, PROMPT_TIMEOUT)? {
            Reply::Absent => Ok(false),
            Reply::Done => Ok(true),
            other => Err(self.nonsense(call, &other)),
        }
    }

    /// The keys that begin with `prefix`, in order, with their values.
    ///
    /// # Errors
    /// When they are too many for one answer, or the coordinator is lost.
    pub fn list(&self, prefix: &str) -> Result<Vec<(String, Bytes)>, SessionError> {
        let call = || format!("list {prefix:?}");
        match self.call(call, &Request::List { prefix: prefix.to_owned() }, PROMPT_TIMEOUT)? {
            Reply::Entries(entries) => Ok(entries),
            other => Err(self.nonsense(call, &other)),
        }
    }

    /// Waits until all ranks are at the barrier `name`, which can then be used again.
    ///
    /// # Errors
    /// The same on every rank that waits or comes late: [`CallRefusal::Late`] naming who is
    /// missing when the first deadline passes, [`CallRefusal::RankFailed`] or
    /// [`CallRefusal::RankLeft`] at once when a rank can no longer come. Or when the coordinator is
    /// lost.
    pub fn barrier(&self, name: &str, timeout: Duration) -> Result<(), SessionError> {
        let call = || format!("barrier {name:?}");
        match self.call(call, &Request::Barrier { name: name.to_owned(), timeout }, timeout)? {
            Reply::Done => Ok(()),
            other => Err(self.nonsense(call, &other)),
        }
    }

    /// The failures of the job, now and later.
    pub fn failures(&self) -> Failures {
        Failures(Arc::clone(&self.shared))
    }

    /// Tells all ranks that this one has failed, and waits until the coordinator has noted it.
    ///
    /// A long message is cut.
    ///
    /// # Errors
    /// When the coordinator is lost or does not note it in time.
    pub fn report_failure(&self, message: &str) -> Result<(), SessionError> {
        let longest = message.len().min(MAX_REPORT_BYTES);
        let message = (0..=longest).rev().find_map(|end| message.get(..end)).unwrap_or_default();
        self.shared.say(FromMember::ReportFailure(message.to_owned()));
        let noted = |state: &State| state.failures.iter().any(|f| f.rank == self.rank);
        self.wait_until(|| "report a failure".to_owned(), PROMPT_TIMEOUT, noted)
    }

    /// Leaves the job: from now on, nothing that becomes of this process concerns the others.
    ///
    /// # Errors
    /// When the coordinator is lost or does not note it in time.
    pub fn leave(self) -> Result<(), SessionError> {
        self.shared.say(FromMember::Leave);
        let left = |state: &State| state.standing == Standing::Left;
        self.wait_until(|| "leave".to_owned(), LEAVE_TIMEOUT, left)
    }

    fn set_key(&self, key: &str, value: Bytes, overwrite: bool) -> Result<(), SessionError> {
        let call = || format!("set {key:?}");
        let request = Request::Set { key: key.to_owned(), value, overwrite };
        match self.call(call, &request, PROMPT_TIMEOUT)? {
            Reply::Done => Ok(()),
            other => Err(self.nonsense(call, &other)),
        }
    }

    fn call(
        &self,
        call: impl Fn() -> String,
        request: &Request,
        timeout: Duration,
    ) -> Result<Reply, SessionError> {
        let request = encode(request);
        if request.len() > MAX_CALL_BYTES {
            let number = |n| u64::try_from(n).unwrap_or(u64::MAX);
            let refusal = CallRefusal::TooLarge {
                what: "a request of bytes".to_owned(),
                found: number(request.len()),
                limit: number(MAX_CALL_BYTES),
            };
            return Err(SessionError::Refused { call: call(), refusal });
        }
        let (sender, receiver) = sync_channel(1);
        let connection = self.shared.connection.clone();
        let task = self.endpoint.handle().spawn(async move {
            // The caller may have given up.
            let _ = sender.send(exchange(&connection, request).await);
        });
        let waited = timeout.saturating_add(REPLY_GRACE);
        match receiver.recv_timeout(waited) {
            Ok(Some(Reply::Refused(refusal))) => {
                Err(SessionError::Refused { call: call(), refusal })
            }
            Ok(Some(reply)) => Ok(reply),
            Ok(None) | Err(RecvTimeoutError::Disconnected) => Err(self.shared.lost()),
            Err(RecvTimeoutError::Timeout) => {
                // Dropping the call's streams tells the coordinator that nobody waits.
                task.abort();
                Err(SessionError::NoReply { call: call(), waited })
            }
        }
    }

    fn wait_until(
        &self,
        call: impl Fn() -> String,
        timeout: Duration,
        done: impl Fn(&State) -> bool,
    ) -> Result<(), SessionError> {
        let pending =
            |state: &mut State| !done(state) && !matches!(state.standing, Standing::Lost(_));
        let state = self.shared.wait_while(timeout, pending);
        if done(&state) {
            Ok(())
        } else if matches!(state.standing, Standing::Lost(_)) {
            drop(state);
            Err(self.shared.lost())
        } else {
            Err(SessionError::NoReply { call: call(), waited: timeout })
        }
    }

    fn nonsense(&self, call: impl Fn() -> String, reply: &Reply) -> SessionError {
        SessionError::Lost {
            coordinator: self.shared.coordinator.clone(),
            detail: format!("it answered {} with {reply:?}", call()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The endpoint may live on in the transport.
        self.shared.give_up();
    }
}

impl Failures {
    /// The failure that this rank learned of first: the cause of the job's failure.
    pub fn first(&self) -> Option<RankFailure> {
        self.0.lock().failures.first().cloned()
    }

    /// All failures so far, in the order in which they became known.
    pub fn all(&self) -> Vec<RankFailure> {
        self.0.lock().failures.clone()
    }

    /// Waits for the first failure; `None` if there is none within `timeout`.
    pub fn wait(&self, timeout: Duration) -> Option<RankFailure> {
        let none = |state: &mut State| state.failures.is_empty();
        self.0.wait_while(timeout, none).failures.first().cloned()
    }

    /// Calls `callback` with each failure, first those that are known already.
    ///
    /// It runs on the network's thread, and must neither block nor call this method.
    pub fn on_failure(&self, mut callback: impl FnMut(&RankFailure) + Send + 'static) {
        let mut callbacks = self.0.callbacks.lock().unwrap_or_else(PoisonError::into_inner);
        self.all().iter().for_each(&mut callback);
        callbacks.push(Box::new(callback));
    }
}

impl Shared {
    /// Says `first` on a new stream of `connection`, and from then on keeps the session's state.
    pub(super) fn start(
        endpoint: &PeerEndpoint,
        connection: quinn::Connection,
        coordinator: String,
        host: Option<Rank>,
        first: FromMember,
    ) -> Arc<Self> {
        let (outgoing, queue) = mpsc::unbounded_channel();
        let shared = Arc::new(Self {
            connection,
            coordinator,
            host,
            outgoing,
            heartbeat: Notify::new(),
            state: Mutex::default(),
            changed: Condvar::new(),
            callbacks: Mutex::default(),
        });
        shared.say(first);
        endpoint.handle().spawn(talk(Arc::clone(&shared), queue));
        shared
    }

    /// Waits while `pending` holds, `timeout` at most, and returns how things stand.
    pub(super) fn wait_for_standing(
        &self,
        timeout: Duration,
        pending: impl Fn(&Standing) -> bool,
    ) -> Standing {
        self.wait_while(timeout, |state| pending(&state.standing)).standing.clone()
    }

    /// Ends the connection without a word.
    pub(super) fn give_up(&self) {
        self.connection.close(VarInt::from_u32(0), b"");
    }

    fn wait_while(
        &self,
        timeout: Duration,
        pending: impl FnMut(&mut State) -> bool,
    ) -> MutexGuard<'_, State> {
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, pending);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, message: FromMember) {
        // Nobody takes it once the connection is gone, which its caller finds out by waiting.
        let _ = self.outgoing.send(message);
    }

    fn stand(&self, standing: Standing) {
        self.lock().standing = standing;
        self.changed.notify_all();
    }

    fn fail(&self, failure: &RankFailure) {
        let mut callbacks = self.callbacks.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock().failures.push(failure.clone());
        self.changed.notify_all();
        callbacks.iter_mut().for_each(|callback| callback(failure));
    }

    /// The error of all that is asked of a coordinator that is gone.
    fn lost(&self) -> SessionError {
        let pending = |state: &mut State| !matches!(state.standing, Standing::Lost(_));
        let state = self.wait_while(2 * CLOSE_GRACE, pending);
        let detail = match &state.standing {
            Standing::Lost(detail) => detail.clone(),
            _ => "it broke off the conversation".to_owned(),
        };
        SessionError::Lost { coordinator: self.coordinator.clone(), detail }
    }
}

fn how_it_ended(reason: &ConnectionError) -> String {
    match reason {
        ConnectionError::ApplicationClosed(close) if close.reason.is_empty() => {
            "it closed the connection".to_owned()
        }
        ConnectionError::ApplicationClosed(close) => {
            format!("it closed the connection: {}", String::from_utf8_lossy(&close.reason))
        }
        ConnectionError::LocallyClosed => "this process closed the connection".to_owned(),
        ConnectionError::TimedOut => "it fell silent".to_owned(),
        other => other.to_string(),
    }
}

/// Carries messages both ways until the connection ends.
async fn talk(shared: Arc<Shared>, queue: mpsc::UnboundedReceiver<FromMember>) {
    if let Ok((send, receive)) = shared.connection.open_bi().await {
        tokio::select! {
            () = speak(&shared, send, queue) => {}
            () = listen(&shared, receive) => {}
        }
    }
    if matches!(shared.lock().standing, Standing::Left | Standing::Refused(_)) {
        shared.give_up();
        return;
    }
    // A stream may end a little before the connection, which knows the reason.
    let closed = tokio::time::timeout(CLOSE_GRACE, shared.connection.closed()).await;
    let detail = match &closed {
        Ok(reason) => how_it_ended(reason),
        Err(_) => "it speaks nonsense".to_owned(),
    };
    let standing = std::mem::replace(&mut shared.lock().standing, Standing::Lost(detail));
    shared.changed.notify_all();
    shared.give_up();
    // Nobody is left to say it: with the coordinator, the rank that hosted it is gone.
    if let (Some(rank), Standing::Joined { heartbeat_timeout, .. }) = (shared.host, standing) {
        let cause = match closed {
            Ok(ConnectionError::LocallyClosed) => return,
            Ok(ConnectionError::TimedOut) => {
                FailureCause::Silent { for_: idle_timeout(heartbeat_timeout) }
            }
            _ => FailureCause::Disconnected,
        };
        shared.fail(&RankFailure { rank, cause });
    }
}

async fn speak(
    shared: &Shared,
    mut send: SendStream,
    mut queue: mpsc::UnboundedReceiver<FromMember>,
) {
    loop {
        let message = tokio::select! {
            Some(message) = queue.recv() => message,
            () = shared.heartbeat.notified() => FromMember::Heartbeat,
            else => return,
        };
        if send.write_chunk(encode_frame(&message)).await.is_err() {
            // The connection ends, which the listening side finds out together with the reason.
            shared.connection.closed().await;
            return;
        }
    }
}

async fn listen(shared: &Shared, mut receive: RecvStream) {
    while let Ok(message) = read_frame(&mut receive, MAX_TO_MEMBER_BYTES).await {
        match message {
            ToMember::Failed(failure) => shared.fail(&failure),
            ToMember::Joined { ranks, heartbeat_timeout } => {
                shared.stand(Standing::Joined { ranks, heartbeat_timeout });
            }
            ToMember::Left => return shared.stand(Standing::Left),
            ToMember::Refused(refusal) => return shared.stand(Standing::Refused(refusal)),
            ToMember::Waiting(missing) => shared.stand(Standing::Waiting(missing)),
        }
    }
}

/// Asks and hears the answer on a stream of its own; `None` when the connection does not last.
async fn exchange(connection: &quinn::Connection, request: Bytes) -> Option<Reply> {
    let (mut send, mut receive) = connection.open_bi().await.ok()?;
    send.write_chunk(request).await.ok()?;
    send.finish().ok()?;
    decode(&receive.read_to_end(MAX_CALL_BYTES).await.ok()?).ok()
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("rank", &self.rank)
            .field("coordinator", &self.shared.coordinator)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("coordinator", &self.coordinator).finish_non_exhaustive()
    }
}
