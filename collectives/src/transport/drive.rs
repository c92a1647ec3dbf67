//! Driving the transfers of one exchange on the calling thread.
//!
//! The futures borrow the caller's operands, so they cannot leave its thread; the thread parks
//! between wake-ups, at most until the deadline. No runtime is needed here, and calling from a
//! thread that has one is fine.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::{CAUSE_GRACE, CancelToken, TransportError};
use crate::ids::Member;

/// One message under way.
pub(super) struct Transfer<'a> {
    peer: Member,
    direction: Direction,
    future: Pin<Box<dyn Future<Output = Result<(), Failure>> + 'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Send,
    Receive,
}

/// Why a transfer ended without success.
#[derive(Debug)]
pub(super) enum Failure {
    /// The peer broke the protocol: there is nothing to wait for.
    Breach(String),
    /// The peer went away: the cause may be on its way to us, and is the better answer.
    Gone(TransportError),
}

impl<'a> Transfer<'a> {
    pub(super) fn send(
        peer: Member,
        future: impl Future<Output = Result<(), Failure>> + 'a,
    ) -> Self {
        Self { peer, direction: Direction::Send, future: Box::pin(future) }
    }

    pub(super) fn receive(
        peer: Member,
        future: impl Future<Output = Result<(), Failure>> + 'a,
    ) -> Self {
        Self { peer, direction: Direction::Receive, future: Box::pin(future) }
    }
}

/// How a thread waits for what it has asked to be woken for.
pub(super) trait Waiting {
    /// What to wake when a transfer can go on.
    fn waker(&self) -> &Waker;

    /// Transfers are about to be asked: what wakes from here on must not be missed.
    fn listen(&mut self) {}

    /// Returns when woken since [`Waiting::listen`], at `until`, or earlier for no reason.
    fn wait(&mut self, until: Instant);
}

/// Runs all transfers to their end as [`drive_by`] does, the thread parked in between.
pub(super) fn drive(
    transfers: Vec<Transfer<'_>>,
    deadline: Instant,
    cancel: Option<&CancelToken>,
    interrupted: impl FnMut(&[Member], &Context<'_>) -> Poll<TransportError>,
) -> Result<(), TransportError> {
    WAKER.with(|waker| drive_by(&mut Parked(waker), transfers, deadline, cancel, interrupted))
}

/// Runs all transfers to their end, unless something ends the wait before.
///
/// `interrupted` is asked on every wake-up, after the transfers, and told whom they wait for.
pub(super) fn drive_by(
    waiting: &mut impl Waiting,
    mut transfers: Vec<Transfer<'_>>,
    deadline: Instant,
    cancel: Option<&CancelToken>,
    mut interrupted: impl FnMut(&[Member], &Context<'_>) -> Poll<TransportError>,
) -> Result<(), TransportError> {
    let waker = waiting.waker().clone();
    let mut context = Context::from_waker(&waker);
    let mut suspicion: Option<(Instant, Member, TransportError)> = None;
    loop {
        waiting.listen();
        let mut breach = None;
        transfers.retain_mut(|transfer| match transfer.future.as_mut().poll(&mut context) {
            Poll::Pending => true,
            Poll::Ready(Ok(())) => false,
            Poll::Ready(Err(Failure::Breach(detail))) => {
                breach.get_or_insert(TransportError::Peer { peer: transfer.peer, detail });
                false
            }
            Poll::Ready(Err(Failure::Gone(error))) => {
                let until = Instant::now() + CAUSE_GRACE;
                suspicion.get_or_insert((until, transfer.peer, error));
                false
            }
        });
        if let Some(error) = breach {
            return Err(error);
        }
        let mut waiting_for = pending(&transfers);
        waiting_for.extend(suspicion.as_ref().map(|(_, peer, _)| *peer));
        if let Poll::Ready(error) = interrupted(&waiting_for, &context) {
            return Err(error);
        }
        if waiting_for.is_empty() {
            return Ok(());
        }
        if cancel.is_some_and(|token| token.poll_cancelled(&context).is_ready()) {
            return Err(TransportError::Cancelled);
        }
        let now = Instant::now();
        let until = match suspicion {
            Some((until, _, error)) if until <= now => return Err(error),
            Some((until, ..)) => until.min(deadline),
            None => deadline,
        };
        if deadline <= now {
            return Err(TransportError::Deadline { pending: waiting_for });
        }
        waiting.wait(until);
    }
}

/// Whom the exchange still waits for. A member whose bytes are missing comes before one that does
/// not take ours: the second may itself be waiting for the first.
fn pending(transfers: &[Transfer<'_>]) -> Vec<Member> {
    let of = |direction| {
        let chosen = transfers.iter().filter(move |transfer| transfer.direction == direction);
        chosen.map(|transfer| transfer.peer).collect::<Vec<_>>()
    };
    let receives = of(Direction::Receive);
    if receives.is_empty() { of(Direction::Send) } else { receives }
}

/// The instant at `since_start` on a clock that began at `start`; far ahead if it has no such.
pub(super) fn instant(start: Instant, since_start: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
    start.checked_add(since_start).unwrap_or_else(|| Instant::now() + FAR)
}

/// Waiting by parking the thread.
struct Parked<'a>(&'a Waker);

impl Waiting for Parked<'_> {
    fn waker(&self) -> &Waker {
        self.0
    }

    fn wait(&mut self, until: Instant) {
        thread::park_timeout(until.saturating_duration_since(Instant::now()));
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    /// One waker a thread, so that those who keep wakers can tell that they have it already.
    static WAKER: Waker = Waker::from(Arc::new(Unpark(thread::current())));
}
