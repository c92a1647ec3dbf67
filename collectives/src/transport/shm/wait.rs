//! Waiting until others have done something: first on the processor, then asleep.
//!
//! Owns the bell of a group: a word in shared memory that its members sleep on, and a count of
//! those who do. A bell is rung by the member that completes what may be waited for, only if
//! somebody sleeps, and by news of this process that may end a wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::task::Wake;
use std::time::Duration;

use rustix::thread::futex;

use crate::shared_memory::Segment;

/// Words of a bell: a cache line, of which two are used.
pub(super) const BELL_WORDS: usize = 16;

/// How a member waits before it sleeps, and what it does rather than wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Looks that follow each other at once. To pause between them takes a virtual processor 150 ns,
    /// as long as a short operation has to wait.
    eager: u32,
    /// Looks while nothing else is done.
    spins: u32,
    /// Looks between which others may run.
    yields: u32,
    copied_bytes: usize,
}

impl Patience {
    /// The patience of each of `members` on this host, where they have `processors` together: by
    /// default those that this process may use. Where members outnumber them, one that spins keeps
    /// another from what it waits for.
    pub(super) fn among(members: usize, processors: Option<usize>) -> Self {
        let own = || std::thread::available_parallelism().map_or(1, usize::from);
        let processors = processors.unwrap_or_else(own);
        if members <= processors {
            // About 250 us: four times what waking takes, as long as large operands keep one
            // member longer than another. To let others run meanwhile would help one that has come
            // to this processor, and keep it there: from sleep it wakes on a free one.
            Self { eager: 200, spins: 10_000, yields: 0, copied_bytes: 8 << 10 }
        } else {
            Self { eager: 0, spins: 0, yields: 100, copied_bytes: 64 << 10 }
        }
    }

    /// The longest operand of which a copy takes less time than to wait for its readers.
    pub(super) fn copied_bytes(self) -> usize {
        self.copied_bytes
    }

    /// Whether it lasts for less than a millisecond, unless somebody else takes the processor.
    pub(super) fn is_short(self) -> bool {
        self.yields == 0
    }

    /// Looks until there is something to see, or for as long as patience lasts.
    pub(super) fn look<T>(self, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
        for _ in 0..self.eager {
            if let Some(value) = ready() {
                return Some(value);
            }
        }
        for _ in 0..self.spins {
            if let Some(value) = ready() {
                return Some(value);
            }
            std::hint::spin_loop();
        }
        for _ in 0..self.yields {
            if let Some(value) = ready() {
                return Some(value);
            }
            std::thread::yield_now();
        }
        None
    }
}

/// A word that threads of several processes can sleep on.
pub(super) trait Futex {
    fn load(&self) -> u32;
    fn add(&self, addend: u32) -> u32;
    /// Sleeps while the word is `seen`, at most for `timeout`; may return sooner.
    fn sleep(&self, seen: u32, timeout: Duration);
    fn wake_all(&self);
    fn fence();
}

impl Futex for AtomicU32 {
    fn load(&self) -> u32 {
        self.load(Ordering::SeqCst)
    }

    fn add(&self, addend: u32) -> u32 {
        self.fetch_add(addend, Ordering::SeqCst)
    }

    fn sleep(&self, seen: u32, timeout: Duration) {
        let Ok(timeout) = futex::Timespec::try_from(timeout) else { return };
        // Woken, interrupted, too late or not asleep at all: the caller looks what is new.
        let _ = futex::wait(self, futex::Flags::empty(), seen, Some(&timeout));
    }

    fn wake_all(&self) {
        // It fails only for addresses that are none.
        let _ = futex::wake(self, futex::Flags::empty(), i32::MAX.unsigned_abs());
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// The bell of a group.
pub(super) struct Bell<'a, F> {
    rung: &'a F,
    sleepers: &'a F,
}

impl<'a, F: Futex> Bell<'a, F> {
    /// The bell in `words`, zeros at first.
    pub(super) fn new(words: &'a [F]) -> Option<Self> {
        let [rung, sleepers, ..] = words else { return None };
        Some(Self { rung, sleepers })
    }

    /// Wakes those who sleep, if any, to see what this thread has announced.
    pub(super) fn ring(&self) {
        if self.sleepers.load() != 0 {
            self.ring_anyway();
        }
    }

    fn ring_anyway(&self) {
        self.rung.add(1);
        self.rung.wake_all();
    }

    /// Sleeps until the bell is rung or `timeout` is over, unless there is something to see.
    ///
    /// A member that dies in here leaves the count of sleepers too high, which costs the others a
    /// system call now and then.
    pub(super) fn sleep<T>(
        &self,
        ready: impl FnOnce() -> Option<T>,
        timeout: Duration,
    ) -> Option<T> {
        self.sleepers.add(1);
        F::fence();
        let seen = self.rung.load();
        let value = ready();
        if value.is_none() {
            self.rung.sleep(seen, timeout);
        }
        self.sleepers.add(u32::MAX);
        value
    }
}

/// Rings a group's bell for the news of this process.
pub(super) struct Ringer {
    pub(super) segment: Arc<Segment>,
    pub(super) slot: usize,
}

impl Ringer {
    pub(super) fn bell(&self) -> Option<Bell<'_, AtomicU32>> {
        bell(&self.segment, self.slot)
    }
}

/// The bell of the group in a slot of the directory.
pub(super) fn bell(segment: &Segment, slot: usize) -> Option<Bell<'_, AtomicU32>> {
    let first = slot.checked_mul(BELL_WORDS)?;
    Bell::new(segment.signals().get(first..first.checked_add(BELL_WORDS)?)?)
}

impl Wake for Ringer {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(bell) = self.bell() {
            bell.ring_anyway();
        }
    }
}

#[cfg(test)]
mod model;
