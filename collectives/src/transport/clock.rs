//! The clock of a transport: time since it was made.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, Timespec, clock_gettime};

/// A clock that starts at 0.
#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    /// The same on the system's clock.
    start_monotonic: Duration,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { start: Instant::now(), start_monotonic: read(ClockId::Monotonic) }
    }

    /// When it started.
    pub(super) fn started(&self) -> Instant {
        self.start
    }

    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// The time at the last tick, at most 10 ms ago: a third of the cost of [`Clock::now`].
    pub(super) fn last_tick(&self) -> Duration {
        read(ClockId::MonotonicCoarse).saturating_sub(self.start_monotonic)
    }
}

fn read(clock: ClockId) -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    // Neither is negative, and there are no more nanoseconds than in a second.
    Duration::new(tv_sec.unsigned_abs(), tv_nsec.try_into().unwrap_or(0))
}
