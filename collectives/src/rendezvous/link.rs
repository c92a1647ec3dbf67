//! A member's conversation with the coordinator: what it says, what it hears, how it stands.
//!
//! One stream for as long as the membership lasts. A task on the endpoint's runtime carries it;
//! everyone else reads the state that the task keeps, or waits for it to change.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quinn::{ConnectionError, RecvStream, SendStream, VarInt};
use tokio::sync::{Notify, mpsc};

use super::coordinator::idle_timeout;
use super::message::{FromMember, MAX_TO_MEMBER_BYTES, ToMember, encode_frame, read_frame};
use super::{FailureCause, JoinRefusal, MissingRanks, RankFailure, SessionError, watch};
use crate::{JobId, PeerEndpoint, Rank, RankInfo};

/// How long after its streams a connection may end.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

pub(super) type Callback = Box<dyn FnMut(&RankFailure) + Send>;

/// The connection of a member, and what has been heard on it.
pub(super) struct Link {
    connection: quinn::Connection,
    /// Where the coordinator is, for errors.
    coordinator: String,
    job: JobId,
    /// The rank that is lost with the coordinator.
    host: Option<Rank>,
    /// Whether its process is known to have ended.
    host_has_ended: AtomicBool,
    outgoing: mpsc::UnboundedSender<FromMember>,
    heartbeat: Notify,
    state: Mutex<State>,
    changed: Condvar,
    /// Taken before `state` where both are.
    callbacks: Mutex<Vec<Callback>>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) standing: Standing,
    pub(super) failures: Vec<RankFailure>,
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

impl Link {
    /// Says `first` on a new stream of `connection`, and from then on keeps the session's state.
    pub(super) fn start(
        endpoint: &PeerEndpoint,
        connection: quinn::Connection,
        coordinator: String,
        job: JobId,
        host: Option<Rank>,
        first: FromMember,
    ) -> Arc<Self> {
        let (outgoing, queue) = mpsc::unbounded_channel();
        let link = Arc::new(Self {
            connection,
            coordinator,
            job,
            host,
            host_has_ended: AtomicBool::new(false),
            outgoing,
            heartbeat: Notify::new(),
            state: Mutex::default(),
            changed: Condvar::new(),
            callbacks: Mutex::default(),
        });
        link.say(first);
        endpoint.handle().spawn(talk(Arc::clone(&link), queue));
        link
    }

    /// Waits while `pending` holds of how things stand, `timeout` at most, and returns that.
    pub(super) fn wait_for_standing(
        &self,
        timeout: Duration,
        pending: impl Fn(&Standing) -> bool,
    ) -> Standing {
        self.wait_while(timeout, |state| pending(&state.standing)).standing.clone()
    }

    pub(super) fn connection(&self) -> &quinn::Connection {
        &self.connection
    }

    /// Where the coordinator is, or was.
    pub(super) fn coordinator(&self) -> &str {
        &self.coordinator
    }

    /// Gives a sign of life; signs that could not be sent yet do not pile up.
    pub(super) fn beat(&self) {
        self.heartbeat.notify_one();
    }

    pub(super) fn with_state<R>(&self, read: impl FnOnce(&State) -> R) -> R {
        read(&self.lock())
    }

    pub(super) fn on_failure(&self, mut callback: Callback) {
        let mut callbacks = self.callbacks.lock().unwrap_or_else(PoisonError::into_inner);
        self.with_state(|state| state.failures.clone()).iter().for_each(&mut callback);
        callbacks.push(callback);
    }

    /// Ends the connection without a word.
    pub(super) fn give_up(&self) {
        self.connection.close(VarInt::from_u32(0), b"");
    }

    /// Waits while `pending` holds, `timeout` at most.
    pub(super) fn wait_while(
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

    /// Says something to the coordinator, soon.
    pub(super) fn say(&self, message: FromMember) {
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
    pub(super) fn lost(&self) -> SessionError {
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
async fn talk(link: Arc<Link>, queue: mpsc::UnboundedReceiver<FromMember>) {
    if let Ok((send, receive)) = link.connection.open_bi().await {
        tokio::select! {
            () = speak(&link, send, queue) => {}
            () = listen(&link, receive) => {}
        }
    }
    if matches!(link.lock().standing, Standing::Left | Standing::Refused(_)) {
        link.give_up();
        return;
    }
    // A stream may end a little before the connection, which knows the reason.
    let closed = tokio::time::timeout(CLOSE_GRACE, link.connection.closed()).await;
    let host_has_ended = link.host_has_ended.load(Ordering::Relaxed);
    let detail = match &closed {
        Ok(ConnectionError::LocallyClosed) if host_has_ended => "its process has ended".to_owned(),
        Ok(reason) => how_it_ended(reason),
        Err(_) => "it speaks nonsense".to_owned(),
    };
    let standing = std::mem::replace(&mut link.lock().standing, Standing::Lost(detail));
    link.changed.notify_all();
    link.give_up();
    // Nobody is left to say it: with the coordinator, the rank that hosted it is gone.
    if let (Some(rank), Standing::Joined { heartbeat_timeout, .. }) = (link.host, standing) {
        let cause = match closed {
            Ok(ConnectionError::LocallyClosed) if !host_has_ended => return,
            Ok(ConnectionError::TimedOut) => {
                FailureCause::Silent { for_: idle_timeout(heartbeat_timeout) }
            }
            _ => FailureCause::Disconnected,
        };
        link.fail(&RankFailure { rank, cause });
    }
}

async fn speak(link: &Link, mut send: SendStream, mut queue: mpsc::UnboundedReceiver<FromMember>) {
    loop {
        let message = tokio::select! {
            Some(message) = queue.recv() => message,
            () = link.heartbeat.notified() => FromMember::Heartbeat,
            else => return,
        };
        if send.write_chunk(encode_frame(&message)).await.is_err() {
            // The connection ends, which the listening side finds out together with the reason.
            link.connection.closed().await;
            return;
        }
    }
}

async fn listen(link: &Arc<Link>, mut receive: RecvStream) {
    while let Ok(message) = read_frame(&mut receive, MAX_TO_MEMBER_BYTES).await {
        match message {
            ToMember::Failed(failure) => link.fail(&failure),
            ToMember::Joined { ranks, heartbeat_timeout } => {
                watch_host(link, &ranks);
                link.stand(Standing::Joined { ranks, heartbeat_timeout });
            }
            ToMember::Left => return link.stand(Standing::Left),
            ToMember::Refused(refusal) => return link.stand(Standing::Refused(refusal)),
            ToMember::Waiting(missing) => link.stand(Standing::Waiting(missing)),
        }
    }
}

/// Ends the connection when the process that hosts the coordinator has ended.
fn watch_host(link: &Arc<Link>, ranks: &[RankInfo]) {
    let Some(host) = ranks.iter().find(|info| Some(info.rank) == link.host) else { return };
    let end = watch::end_of(link.job.clone(), host.rank, host.host.clone(), host.process_id);
    let link = Arc::downgrade(link);
    tokio::spawn(async move {
        end.await;
        if let Some(link) = link.upgrade() {
            link.host_has_ended.store(true, Ordering::Relaxed);
            link.give_up();
        }
    });
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("coordinator", &self.coordinator).finish_non_exhaustive()
    }
}
