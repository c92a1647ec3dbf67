//! A rank's membership: its calls to the coordinator, its signs of life, and the news it gets.
//!
//! Blocks the callers' threads, never the network's: a call is a task on the endpoint's runtime and
//! a channel that its caller waits on. Heartbeats come from a thread of their own, so that a
//! process is dead only when nothing of it runs. How a session comes about is `join`'s; what is
//! said on its connection besides calls is `link`'s.

use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, Sender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;

use super::flight::{FlightReporter, ReadLog};
use super::link::{Link, Standing, State};
use super::message::{FromMember, MAX_CALL_BYTES, Reply, Request, decode, encode};
use super::{CallRefusal, RankFailure};
use crate::{PeerEndpoint, Rank, Topology};

/// How much later than its deadline an answer may come: the time it travels.
const REPLY_GRACE: Duration = Duration::from_secs(10);

/// How long a call that waits for nobody may take.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(60);

/// How long leaving waits for the coordinator to have noted it.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Signs of life per heartbeat timeout.
const HEARTBEATS_PER_TIMEOUT: u32 = 5;

/// The longest message of a reported failure.
const MAX_REPORT_BYTES: usize = 4096;

/// A rank's membership in its job.
///
/// All methods may be called from many threads at once. Dropping it without [`Session::leave`] is
/// a failure of this rank to all others.
pub struct Session {
    link: Arc<Link>,
    endpoint: Arc<PeerEndpoint>,
    topology: Arc<Topology>,
    rank: Rank,
    flights: OnceLock<Arc<FlightReporter>>,
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
pub struct Failures(Arc<Link>);

impl Session {
    /// The session of a connection that stands as joined.
    pub(super) fn new(
        link: Arc<Link>,
        endpoint: Arc<PeerEndpoint>,
        topology: Arc<Topology>,
        rank: Rank,
        heartbeat_timeout: Duration,
    ) -> Result<Self, SessionError> {
        let (alive, ended) = std::sync::mpsc::channel::<()>();
        let interval = heartbeat_timeout / HEARTBEATS_PER_TIMEOUT;
        let beating = Arc::clone(&link);
        std::thread::Builder::new()
            .name("lockstep-heartbeat".to_owned())
            .spawn(move || {
                while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                    beating.beat();
                }
            })
            .map_err(|error| SessionError::Heartbeat(error.to_string()))?;
        Ok(Self { link, endpoint, topology, rank, flights: OnceLock::new(), _alive: alive })
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
    /// [`CallRefusal::Late`] when it is not set within `timeout`; [`CallRefusal::RankFailed`] when
    /// it is not set and a rank has failed; or when the coordinator is lost.
    pub fn get(&self, key: &str, timeout: Duration) -> Result<Bytes, SessionError> {
        let call = || format!("get {key:?}");
        match self.call(call, &Request::Get { key: key.to_owned(), timeout }, timeout)? {
            Reply::Value(value) => Ok(value),
            _ => Err(self.nonsense(call)),
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
            _ => Err(self.nonsense(call)),
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
            _ => Err(self.nonsense(call)),
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
            _ => Err(self.nonsense(call)),
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
            _ => Err(self.nonsense(call)),
        }
    }

    /// The failures of the job, now and later.
    pub fn failures(&self) -> Failures {
        Failures(Arc::clone(&self.link))
    }

    /// From now on, what `read` returns goes to the coordinator when a rank fails, when this process
    /// leaves or is lost, and when what is returned here is called: on the failure of a collective,
    /// from any thread but the network's.
    pub(crate) fn report_flights(&self, read: ReadLog) -> impl Fn() + Send + Sync + use<> {
        let handle = self.endpoint.handle().clone();
        let reporter = self.flights.get_or_init(|| {
            let reporter = Arc::new(FlightReporter::new(read, &self.link, handle));
            let watching = Arc::clone(&reporter);
            self.failures().on_failure(move |_| watching.rank_failed());
            reporter
        });
        let reporter = Arc::clone(reporter);
        move || reporter.collective_failed()
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
        self.link.say(FromMember::ReportFailure(message.to_owned()));
        let noted = |state: &State| state.failures.iter().any(|f| f.rank == self.rank);
        self.wait_until(|| "report a failure".to_owned(), PROMPT_TIMEOUT, noted)
    }

    /// Leaves the job: from now on, nothing that becomes of this process concerns the others.
    ///
    /// # Errors
    /// When the coordinator is lost or does not note it in time.
    pub fn leave(self) -> Result<(), SessionError> {
        if let Some(flights) = self.flights.get() {
            flights.leaving();
        }
        self.link.say(FromMember::Leave);
        let left = |state: &State| state.standing == Standing::Left;
        self.wait_until(|| "leave".to_owned(), LEAVE_TIMEOUT, left)
    }

    fn set_key(&self, key: &str, value: Bytes, overwrite: bool) -> Result<(), SessionError> {
        let call = || format!("set {key:?}");
        let request = Request::Set { key: key.to_owned(), value, overwrite };
        match self.call(call, &request, PROMPT_TIMEOUT)? {
            Reply::Done => Ok(()),
            _ => Err(self.nonsense(call)),
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
        let connection = self.link.connection().clone();
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
            Ok(None) | Err(RecvTimeoutError::Disconnected) => Err(self.link.lost()),
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
        let state = self.link.wait_while(timeout, pending);
        if done(&state) {
            Ok(())
        } else if matches!(state.standing, Standing::Lost(_)) {
            drop(state);
            Err(self.link.lost())
        } else {
            Err(SessionError::NoReply { call: call(), waited: timeout })
        }
    }

    fn nonsense(&self, call: impl Fn() -> String) -> SessionError {
        SessionError::Lost {
            coordinator: self.link.coordinator().to_owned(),
            detail: format!("it answered something else to {}", call()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let joined = |state: &State| matches!(state.standing, Standing::Joined { .. });
        if let Some(flights) = self.flights.get().filter(|_| self.link.with_state(joined)) {
            flights.collective_failed();
        }
        // The endpoint may live on in the transport.
        self.link.give_up();
    }
}

impl Failures {
    /// The failure that this rank learned of first: the cause of the job's failure.
    pub fn first(&self) -> Option<RankFailure> {
        self.0.with_state(|state| state.failures.first().cloned())
    }

    /// All failures so far, in the order in which they became known.
    pub fn all(&self) -> Vec<RankFailure> {
        self.0.with_state(|state| state.failures.clone())
    }

    /// Waits for the first failure; `None` if there is none within `timeout`.
    pub fn wait(&self, timeout: Duration) -> Option<RankFailure> {
        let none = |state: &mut State| state.failures.is_empty();
        self.0.wait_while(timeout, none).failures.first().cloned()
    }

    /// Calls `callback` with each failure, first those that are known already.
    ///
    /// It runs on the network's thread, and must neither block nor call this method.
    pub fn on_failure(&self, callback: impl FnMut(&RankFailure) + Send + 'static) {
        self.0.on_failure(Box::new(callback));
    }
}

/// Asks and hears the answer on a stream of its own; `None` when the connection does not last.
pub(super) async fn exchange(connection: &quinn::Connection, request: Bytes) -> Option<Reply> {
    let (mut send, mut receive) = connection.open_bi().await.ok()?;
    send.write_chunk(request).await.ok()?;
    send.finish().ok()?;
    decode(&receive.read_to_end(MAX_CALL_BYTES).await.ok()?).ok()
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("rank", &self.rank)
            .field("coordinator", &self.link.coordinator())
            .finish_non_exhaustive()
    }
}
