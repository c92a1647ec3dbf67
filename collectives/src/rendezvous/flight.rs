//! Sending what a process's flight recorder holds to the coordinator.
//!
//! The whole log goes out once when a collective of this process fails, and once when a rank of the
//! job does: the second may come much later, and the first may have been got over. What the process
//! did last goes out when it leaves.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;

use super::link::Link;
use super::message::{Reply, Request, encode};
use super::session::exchange;
use crate::flight::FlightLog;

/// Entries that go with a departure.
const LEAVING_ENTRIES: usize = 16;

/// How long a failed collective waits for the coordinator to have the log: its process may be about
/// to exit, and what is under way then is lost.
const NOTED_TIMEOUT: Duration = Duration::from_millis(500);

/// Reads this process's recorder.
pub(crate) type ReadLog = Box<dyn Fn() -> FlightLog + Send + Sync>;

/// What sends the log of a process.
pub(super) struct FlightReporter {
    read: ReadLog,
    link: Weak<Link>,
    handle: Handle,
    after_collective: AtomicBool,
    after_rank: AtomicBool,
}

impl FlightReporter {
    pub(super) fn new(read: ReadLog, link: &Arc<Link>, handle: Handle) -> Self {
        let (after_collective, after_rank) = Default::default();
        Self { read, link: Arc::downgrade(link), handle, after_collective, after_rank }
    }

    /// A collective has failed here: sends the log unless that was done.
    pub(super) fn collective_failed(&self) {
        if !self.after_collective.swap(true, Ordering::Relaxed) {
            self.send_and_wait((self.read)());
        }
    }

    /// A rank has failed: sends the log unless that was done. Returns at once, for the network's
    /// thread.
    pub(super) fn rank_failed(&self) {
        if !self.after_rank.swap(true, Ordering::Relaxed) {
            self.send((self.read)(), || {});
        }
    }

    /// The process is about to leave: sends what it did last.
    pub(super) fn leaving(&self) {
        self.send_and_wait((self.read)().tail(LEAVING_ENTRIES));
    }

    fn send_and_wait(&self, log: FlightLog) {
        let (sender, noted) = sync_channel(1);
        self.send(log, move || {
            // The waiting side may have given up.
            let _ = sender.send(());
        });
        // The sender is gone when nobody will answer. Late or never: the report does without.
        let _ = noted.recv_timeout(NOTED_TIMEOUT);
    }

    /// Sends `log` unless it is empty; calls `noted` when the coordinator has it.
    fn send(&self, log: FlightLog, noted: impl FnOnce() + Send + 'static) {
        let Some(link) = self.link.upgrade().filter(|_| log.recorded > 0) else { return };
        let request = encode(&Request::Flight(log));
        self.handle.spawn(async move {
            if let Some(Reply::Done) = exchange(link.connection(), request).await {
                noted();
            }
        });
    }
}

impl fmt::Debug for FlightReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlightReporter").finish_non_exhaustive()
    }
}
