//! How much may be under way to a peer: a window that does not limit hosts of one job.
//!
//! The window is what a fast link holds in a round trip and no more: what is under way is held by
//! the sender and by the receiver's socket, and is handled at a fraction of the cost while it fits
//! the caches. It shrinks where packets are lost, as TCP's does, so a receiver whose socket holds
//! little, or a slow link, is still not flooded. It has room for whole batches or none: a sender that
//! follows every acknowledgement with the few packets it makes room for never fills a
//! segmentation offload again. There is no pacing, which quinn leaves out for windows that no 32
//! bits hold.
//!
//! Writers keep to the window ([`has_room`]), and quinn hardly sees it end: a connection that has
//! more to send than its window takes sends no acknowledgements either, and two such wait for each
//! other until a timer makes one of them probe.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::congestion::{Controller, ControllerFactory};

/// Less than a socket's buffer when it is raised.
pub(super) const LARGEST_WINDOW_BYTES: u64 = 2 << 20;

/// The window between neighbours: a few batches, so that neither side waits for the other's turn.
const FIRST_WINDOW_BYTES: u64 = 512 << 10;

/// Bytes a second that a window should not limit: two thirds of what links of 25 Gbit/s carry.
const RATE: u64 = 2 << 30;

/// Four packets of the smallest size.
const SMALLEST_WINDOW_BYTES: u64 = 4 * 1200;

/// What one system call may send.
const BATCH_BYTES: u64 = 64 << 10;

/// No limit, and no pacing.
const OPEN: u64 = 1 << 40;

/// Makes a [`BatchWindow`] for each connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BatchWindows;

/// The congestion control of one connection.
#[derive(Clone, Copy, Debug)]
struct BatchWindow {
    window_bytes: u64,
    /// Up to here the window doubles in a round trip; from here on it grows by a batch.
    threshold_bytes: u64,
    in_flight_bytes: u64,
    /// When the window last shrank: losses of what was sent before are the same event.
    shrunk: Option<Instant>,
}

impl ControllerFactory for BatchWindows {
    fn build(self: Arc<Self>, _now: Instant, _mtu: u16) -> Box<dyn Controller> {
        Box::new(BatchWindow {
            window_bytes: FIRST_WINDOW_BYTES,
            threshold_bytes: LARGEST_WINDOW_BYTES,
            in_flight_bytes: 0,
            shrunk: None,
        })
    }
}

impl Controller for BatchWindow {
    fn on_sent(&mut self, _now: Instant, bytes: u64, _last_packet_number: u64) {
        self.in_flight_bytes = self.in_flight_bytes.saturating_add(bytes);
    }

    fn on_ack(
        &mut self,
        _now: Instant,
        _sent: Instant,
        bytes: u64,
        _app_limited: bool,
        rtt: &quinn_proto::RttEstimator,
    ) {
        let growth = if self.window_bytes < self.threshold_bytes {
            bytes
        } else {
            bytes.min(BATCH_BYTES.saturating_mul(bytes) / self.window_bytes)
        };
        let largest = largest_window_bytes(rtt.min());
        self.window_bytes = self.window_bytes.saturating_add(growth).min(largest);
    }

    fn on_end_acks(
        &mut self,
        _now: Instant,
        in_flight: u64,
        _app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.in_flight_bytes = in_flight;
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(lost_bytes);
        if self.shrunk.is_some_and(|shrunk| sent <= shrunk) {
            return;
        }
        self.shrunk = Some(now);
        self.threshold_bytes = (self.window_bytes / 10 * 7).max(SMALLEST_WINDOW_BYTES);
        self.window_bytes =
            if is_persistent_congestion { SMALLEST_WINDOW_BYTES } else { self.threshold_bytes };
    }

    fn on_mtu_update(&mut self, _new_mtu: u16) {}

    fn window(&self) -> u64 {
        if self.in_flight_bytes <= 2 * self.window_bytes { OPEN } else { 1 }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(*self)
    }

    fn initial_window(&self) -> u64 {
        FIRST_WINDOW_BYTES
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// The largest window where a round trip takes as long as that.
fn largest_window_bytes(round_trip: Duration) -> u64 {
    let microseconds = u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX);
    let held = microseconds.saturating_mul(RATE / 1_000_000);
    held.clamp(FIRST_WINDOW_BYTES, LARGEST_WINDOW_BYTES)
}

/// Whether another batch may follow `unsent_bytes` that are not yet under way.
pub(super) fn has_room(window: &dyn Controller, unsent_bytes: usize) -> bool {
    let Ok(window) = window.clone_box().into_any().downcast::<BatchWindow>() else { return true };
    let BatchWindow { window_bytes, in_flight_bytes, .. } = *window;
    let batch_bytes = BATCH_BYTES.min(window_bytes / 2);
    let taken_bytes = in_flight_bytes.saturating_add(unsent_bytes as u64);
    taken_bytes.saturating_add(batch_bytes) <= window_bytes
}

/// Whether a [`BatchWindow`] lets more than acknowledgements pass.
pub(super) fn is_open(window: &dyn Controller) -> bool {
    window.window() == OPEN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> Box<dyn Controller> {
        Arc::new(BatchWindows).build(Instant::now(), 1200)
    }

    #[test]
    fn it_has_room_for_whole_batches_only() {
        let (mut window, now) = (window(), Instant::now());
        window.on_sent(now, FIRST_WINDOW_BYTES - BATCH_BYTES, 1);
        assert!(has_room(&*window, 0));
        assert!(!has_room(&*window, 1));
        window.on_sent(now, 1, 2);
        assert!(!has_room(&*window, 0));
        window.on_end_acks(now, FIRST_WINDOW_BYTES - 2 * BATCH_BYTES, false, Some(2));
        assert!(has_room(&*window, 65_536));
    }

    /// It would keep acknowledgements back, too.
    #[test]
    fn quinn_does_not_see_the_end_of_a_window_that_writers_keep_to() {
        let (mut window, now) = (window(), Instant::now());
        let mut packet = 0;
        while has_room(&*window, 0) {
            window.on_sent(now, BATCH_BYTES, packet);
            packet += 1;
            assert!(is_open(&*window));
        }
        assert_eq!(packet, FIRST_WINDOW_BYTES / BATCH_BYTES);
        // What is short is not asked for: there is as much room again before it counts.
        window.on_sent(now, FIRST_WINDOW_BYTES, packet);
        assert!(is_open(&*window));
        window.on_sent(now, 1, packet + 1);
        assert!(!is_open(&*window));
    }

    #[test]
    fn it_is_small_between_neighbours_and_no_limit_across_a_site() {
        let at = |us| largest_window_bytes(Duration::from_micros(us));
        assert_eq!(at(0), FIRST_WINDOW_BYTES);
        assert_eq!(at(100), FIRST_WINDOW_BYTES);
        assert_eq!(at(500), 500 * (RATE / 1_000_000));
        assert_eq!(at(1_000), LARGEST_WINDOW_BYTES);
        assert_eq!(largest_window_bytes(Duration::MAX), LARGEST_WINDOW_BYTES);
    }

    #[test]
    fn losses_shrink_it_once_a_round_trip_and_never_close_it() {
        let (mut window, start) = (window(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        let after = FIRST_WINDOW_BYTES / 10 * 7;
        window.on_sent(at(0), after, 1);
        window.on_congestion_event(at(10), at(0), false, 0);
        window.on_congestion_event(at(11), at(1), false, 0);
        assert!(!has_room(&*window, 0));
        window.on_end_acks(at(12), after - BATCH_BYTES, false, Some(1));
        assert!(has_room(&*window, 0));
        for ms in 20..200 {
            window.on_congestion_event(at(ms), at(ms - 1), ms % 2 == 0, 1 << 30);
        }
        assert!(has_room(&*window, 0));
        window.on_sent(at(300), SMALLEST_WINDOW_BYTES, 9);
        assert!(!has_room(&*window, 0));
    }
}
