//! The thread that makes the reactor's turns while no exchange does: acknowledgements, keep-alives
//! and repetitions go on when the program computes.
//!
//! While exchanges follow each other closely it only looks on, a few hundred times a second, and
//! while one waits for long, not at all.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

use super::reactor::Reactor;
use crate::EndpointError;

/// How long there must have been no exchange for the thread to take over.
const PAUSE: Duration = Duration::from_millis(2);

/// The thread, and what it knows of the exchanges.
pub(super) struct Idle {
    watch: Arc<Watch>,
    thread: Option<JoinHandle<()>>,
}

struct Watch {
    /// Readable when the thread, waiting at the socket, should leave it to an exchange.
    event: OwnedFd,
    exchanging: AtomicUsize,
    /// Exchanges begun so far.
    exchanges: AtomicU64,
    at_socket: AtomicBool,
    asleep: AtomicBool,
    closing: AtomicBool,
}

/// An exchange under way.
pub(super) struct Exchanging<'a>(&'a Idle);

impl Idle {
    pub(super) fn start(reactor: Arc<Reactor>) -> Result<Self, EndpointError> {
        let failed = |source: io::Error| EndpointError::Thread { source };
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let watch = Arc::new(Watch {
            event: event.map_err(|error| failed(error.into()))?,
            exchanging: AtomicUsize::new(0),
            exchanges: AtomicU64::new(0),
            at_socket: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            closing: AtomicBool::new(false),
        });
        let seen = Arc::clone(&watch);
        let thread = thread::Builder::new()
            .name("lockstep-quic".to_owned())
            .spawn(move || seen.run(&reactor))
            .map_err(failed)?;
        Ok(Self { watch, thread: Some(thread) })
    }

    /// Leaves the socket to the caller until the result is dropped.
    pub(super) fn exchange(&self) -> Exchanging<'_> {
        self.watch.exchanges.fetch_add(1, Ordering::SeqCst);
        self.watch.exchanging.fetch_add(1, Ordering::SeqCst);
        self.watch.call_from_socket();
        Exchanging(self)
    }

    /// Timers have changed without an exchange.
    pub(super) fn look_again(&self) {
        self.watch.call_from_socket();
    }
}

impl Drop for Exchanging<'_> {
    fn drop(&mut self) {
        let Idle { watch, thread } = self.0;
        watch.exchanging.fetch_sub(1, Ordering::SeqCst);
        if watch.asleep.swap(false, Ordering::SeqCst)
            && let Some(thread) = thread
        {
            thread.thread().unpark();
        }
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.watch.closing.store(true, Ordering::SeqCst);
        self.watch.call_from_socket();
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It panicked only if a turn did, and then this process has worse to tell.
            let _ = thread.join();
        }
    }
}

impl Watch {
    fn run(&self, reactor: &Reactor) {
        // Before the first exchange there is none to leave the socket to.
        let mut seen = 0;
        while !self.closing.load(Ordering::SeqCst) {
            let exchanges = self.exchanges.load(Ordering::SeqCst);
            if std::mem::replace(&mut seen, exchanges) != exchanges {
                thread::park_timeout(PAUSE);
            } else if self.exchanging.load(Ordering::SeqCst) > 0 {
                self.asleep.store(true, Ordering::SeqCst);
                if self.exchanging.load(Ordering::SeqCst) > 0 {
                    thread::park();
                }
                self.asleep.store(false, Ordering::SeqCst);
                // The exchange is over, or it was another's end; in any case it is recent.
                seen = u64::MAX;
            } else {
                self.at_socket.store(true, Ordering::SeqCst);
                let is_idle = || {
                    self.exchanging.load(Ordering::SeqCst) == 0
                        && !self.closing.load(Ordering::SeqCst)
                };
                reactor.wait_idly(&self.event, is_idle);
                self.at_socket.store(false, Ordering::SeqCst);
                // There is nothing to read when nobody called.
                let _ = rustix::io::read(&self.event, &mut [0; 8]);
            }
        }
    }

    fn call_from_socket(&self) {
        if self.at_socket.load(Ordering::SeqCst) {
            // It fails only when the counter is full, and then the event is readable already.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }
}
