//! Waking the threads that wait in exchanges.
//!
//! One of them waits at the socket, the others are parked. Whoever changes what they wait for
//! rings; a thread says which rings it has heard when it goes to wait, so none is missed.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;
use std::thread::{self, Thread};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

#[derive(Debug)]
pub(super) struct Bell {
    /// Readable when rung while a thread is at the socket, which waits for it too.
    event: OwnedFd,
    at_socket: AtomicBool,
    rings: AtomicU64,
    parked: Mutex<Vec<Thread>>,
    /// As many as `parked` has, to be read without the lock.
    parked_count: AtomicUsize,
}

/// The rings that a thread has heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rings(u64);

impl Bell {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            event: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            at_socket: AtomicBool::new(false),
            rings: AtomicU64::new(0),
            parked: Mutex::default(),
            parked_count: AtomicUsize::new(0),
        })
    }

    /// The rings so far.
    pub(super) fn heard(&self) -> Rings {
        Rings(self.rings.load(Ordering::SeqCst))
    }

    /// Wakes everyone.
    pub(super) fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        if self.at_socket.load(Ordering::SeqCst) {
            // It fails only when the counter is full, and then the event is readable already.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
        self.unpark();
    }

    /// Wakes the parked threads.
    fn unpark(&self) {
        if self.parked_count.load(Ordering::SeqCst) > 0 {
            self.parked().iter().for_each(Thread::unpark);
        }
    }

    /// Waits at the socket by `wait`, which returns when the event it is given is readable too;
    /// does not wait if there were rings since.
    pub(super) fn wait_at_socket(&self, since: Rings, wait: impl FnOnce(&OwnedFd)) {
        self.at_socket.store(true, Ordering::SeqCst);
        if self.heard() == since {
            wait(&self.event);
        }
        self.at_socket.store(false, Ordering::SeqCst);
        // There is nothing to read when nobody rang.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
    }

    /// Parks the calling thread until the next ring, if there was none since, or for `timeout`.
    pub(super) fn park(&self, since: Rings, timeout: Duration) {
        let me = thread::current();
        self.parked().push(me.clone());
        self.parked_count.fetch_add(1, Ordering::SeqCst);
        if self.heard() == since {
            thread::park_timeout(timeout);
        }
        self.parked_count.fetch_sub(1, Ordering::SeqCst);
        self.parked().retain(|thread| thread.id() != me.id());
    }

    fn parked(&self) -> MutexGuard<'_, Vec<Thread>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn no_ring_is_missed_between_hearing_and_waiting() {
        let bell = Bell::new().unwrap();
        let heard = bell.heard();
        bell.ring();
        bell.park(heard, LONG);
        bell.wait_at_socket(heard, |_| panic!("it was rung"));
    }

    #[test]
    fn a_ring_wakes_the_parked_and_the_one_at_the_socket() {
        let bell = Bell::new().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| bell.park(bell.heard(), LONG));
            }
            scope.spawn(|| {
                bell.wait_at_socket(bell.heard(), |event| {
                    poll(&mut [PollFd::new(event, PollFlags::IN)], None).unwrap();
                });
            });
            while bell.parked_count.load(Ordering::SeqCst) < 3
                || !bell.at_socket.load(Ordering::SeqCst)
            {
                thread::yield_now();
            }
            // Those that are about to wait have heard fewer.
            bell.ring();
        });
        assert!(bell.parked().is_empty());
    }
}
