//! The ring: fixed slots of atomics, written by whoever runs a collective, read by anyone.
//!
//! A slot is a seqlock. Its stamp is the ticket of the operation and its state; while a slot is
//! being written the stamp says so, and a reader that sees it change gives the slot up. Every word
//! is an atomic, so what a race can do is lose an entry, never more.
//!
//! An operation that runs while [`FLIGHT_ENTRIES`] others begin is no longer in the ring.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use super::log::{FlightEntry, FlightLog, FlightState};
use crate::code;
use crate::descriptor::{Descriptor, Signature};
use crate::ids::Member;

/// How many collectives of a process are kept.
pub const FLIGHT_ENTRIES: usize = 1024;

/// The low bits of a stamp, below the ticket.
const STATE_BITS: u32 = 2;
const WRITING: u64 = 0;
const RUNNING: u64 = 1;
const COMPLETED: u64 = 2;
const FAILED: u64 = 3;

/// Keeps the last [`FLIGHT_ENTRIES`] collectives of a process.
pub struct FlightRecorder {
    /// The ticket of the next operation; the first is 1, so that an empty slot has a stamp of its
    /// own.
    next: AtomicU64,
    slots: Box<[Slot]>,
    when_failed: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// One operation, a cache line: words of one operation never share one with another's.
#[derive(Default)]
#[repr(align(64))]
struct Slot {
    stamp: AtomicU64,
    group: AtomicU64,
    sequence: AtomicU64,
    count: AtomicU64,
    /// Kind and element type.
    call: AtomicU64,
    /// The member, and above it how many there are.
    members: AtomicU64,
    /// In nanoseconds, as is the end.
    started: AtomicU64,
    ended: AtomicU64,
}

/// An operation that has begun.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) struct Ticket(u64);

impl FlightRecorder {
    pub(crate) fn new() -> Self {
        let slots = (0..FLIGHT_ENTRIES).map(|_| Slot::default()).collect();
        Self { next: AtomicU64::new(1), slots, when_failed: OnceLock::new() }
    }

    /// Records that `member`, of `group_size`, enters what `descriptor` says at `now`.
    #[inline(always)]
    pub(crate) fn begin(
        &self,
        now: Duration,
        member: Member,
        group_size: usize,
        descriptor: &Descriptor,
    ) -> Ticket {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(slot) = self.slot(ticket) {
            slot.stamp.store(ticket << STATE_BITS | WRITING, Ordering::Relaxed);
            // Whoever sees a word of this operation sees that stamp, or a later one.
            fence(Ordering::Release);
            let Descriptor { signature, operation, .. } = descriptor;
            let [a, b, c, d, e, f, g, h, ..] = operation.group.0;
            let group = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
            let group_size = u64::try_from(group_size).unwrap_or(0);
            slot.group.store(group, Ordering::Relaxed);
            slot.sequence.store(operation.sequence, Ordering::Relaxed);
            slot.count.store(signature.count, Ordering::Relaxed);
            slot.call.store(pack(signature), Ordering::Relaxed);
            slot.members.store(group_size << 32 | u64::from(member.0), Ordering::Relaxed);
            slot.started.store(nanoseconds(now), Ordering::Relaxed);
            slot.stamp.store(ticket << STATE_BITS | RUNNING, Ordering::Release);
        }
        Ticket(ticket)
    }

    /// Records that the operation ended at `now`, and how.
    #[inline(always)]
    pub(crate) fn end(&self, now: Duration, Ticket(ticket): Ticket, succeeded: bool) {
        let Some(slot) = self.slot(ticket) else { return };
        // The ring may have gone round. That it does so between this look and the stores takes a
        // thousand operations in a few nanoseconds, and mislabels one.
        if slot.stamp.load(Ordering::Relaxed) == ticket << STATE_BITS | RUNNING {
            slot.ended.store(nanoseconds(now), Ordering::Relaxed);
            let state = if succeeded { COMPLETED } else { FAILED };
            slot.stamp.store(ticket << STATE_BITS | state, Ordering::Release);
        }
        if let Some(then) = self.when_failed.get().filter(|_| !succeeded) {
            then();
        }
    }

    /// Has `then` called after each operation that fails, by the thread that ran it.
    pub(crate) fn when_failed(&self, then: impl Fn() + Send + Sync + 'static) {
        // Whoever said so first keeps it.
        let _ = self.when_failed.set(Box::new(then));
    }

    /// What it holds at `now`.
    pub(crate) fn log(&self, now: Duration) -> FlightLog {
        let recorded = self.next.load(Ordering::Relaxed).saturating_sub(1);
        let first = recorded.saturating_sub(FLIGHT_ENTRIES as u64) + 1;
        let entries = (first..=recorded).filter_map(|ticket| self.read(ticket)).collect();
        FlightLog { recorded, taken: now, entries }
    }

    /// The entry of `ticket`; `None` if it is being written or is another's by now.
    fn read(&self, ticket: u64) -> Option<FlightEntry> {
        let slot = self.slot(ticket)?;
        let stamp = slot.stamp.load(Ordering::Acquire);
        let state = match (stamp >> STATE_BITS == ticket, stamp & ((1 << STATE_BITS) - 1)) {
            (true, RUNNING) => FlightState::Running,
            (true, COMPLETED) => FlightState::Completed,
            (true, FAILED) => FlightState::Failed,
            _ => return None,
        };
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let time = |word| Duration::from_nanos(load(word));
        let [member, group_size] = halves(load(&slot.members));
        let [call, size_bytes] = halves(load(&slot.call));
        let [kind, element, ..] = call.to_le_bytes();
        let (kind, element) = (code::kind(kind)?, code::element(element, size_bytes)?);
        let entry = FlightEntry {
            member: Member(member),
            group: load(&slot.group),
            group_size,
            sequence: load(&slot.sequence),
            kind,
            element,
            count: load(&slot.count),
            started: time(&slot.started),
            ended: (state != FlightState::Running).then(|| time(&slot.ended)),
            state,
        };
        // What was read before this is of the stamp read after it, or of an older one.
        fence(Ordering::Acquire);
        (slot.stamp.load(Ordering::Relaxed) == stamp).then_some(entry)
    }

    fn slot(&self, ticket: u64) -> Option<&Slot> {
        let index = usize::try_from(ticket % FLIGHT_ENTRIES as u64).ok()?;
        self.slots.get(index)
    }
}

/// Kind and element type in one word.
fn pack(signature: &Signature) -> u64 {
    let (element, size_bytes) = code::of_element(signature.element);
    let call = u32::from_le_bytes([code::of_kind(signature.kind), element, 0, 0]);
    u64::from(size_bytes.unwrap_or(0)) << 32 | u64::from(call)
}

/// The lower and the upper half.
fn halves(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_le_bytes();
    [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])]
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Debug for FlightRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlightRecorder").field("next", &self.next).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::Algorithm;
    use crate::descriptor::{CollectiveKind, GroupId, OperationId};
    use crate::element::ElementType;

    const NOW: Duration = Duration::from_millis(1500);

    fn descriptor(sequence: u64) -> Descriptor {
        let signature = Signature::new(CollectiveKind::AllGather, ElementType::I16, 6);
        let group = GroupId([1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
        let operation = OperationId { group, sequence };
        Descriptor { signature, key: None, operation, algorithm: Algorithm::Direct }
    }

    #[test]
    fn an_operation_is_recorded_from_its_beginning_to_its_end() {
        let recorder = FlightRecorder::new();
        assert_eq!(recorder.log(NOW).entries, []);
        let tickets: Vec<_> = (1..=3)
            .map(|sequence| recorder.begin(NOW, Member(5), 4, &descriptor(sequence)))
            .collect();
        recorder.end(NOW, tickets[0], true);
        recorder.end(2 * NOW, tickets[1], false);
        let log = recorder.log(NOW);
        assert_eq!(log.recorded, 3);
        let states: Vec<_> = log.entries.iter().map(|e| (e.sequence, e.state)).collect();
        let expected =
            [(1, FlightState::Completed), (2, FlightState::Failed), (3, FlightState::Running)];
        assert_eq!(states, expected);
        let entry = log.entries[2];
        assert_eq!((entry.member, entry.group_size), (Member(5), 4));
        assert_eq!(entry.group, 0x0102_0304_0506_0708);
        assert_eq!((entry.kind, entry.count), (CollectiveKind::AllGather, 3));
        assert_eq!((entry.element, entry.ended), (Some(ElementType::I16), None));
        assert_eq!((entry.started, log.taken), (NOW, NOW));
        assert_eq!(log.entries[1].ended, Some(2 * NOW));
    }

    #[test]
    fn the_newest_are_kept_and_what_outlived_them_is_left_alone() {
        let recorder = FlightRecorder::new();
        let old = recorder.begin(NOW, Member(0), 2, &descriptor(1));
        for sequence in 2..=1025 {
            let ticket = recorder.begin(NOW, Member(0), 2, &descriptor(sequence));
            recorder.end(NOW, ticket, true);
        }
        recorder.end(NOW, old, false);
        let log = recorder.log(NOW);
        assert_eq!((log.recorded, log.entries.len()), (1025, FLIGHT_ENTRIES));
        assert_eq!(log.entries[0].sequence, 2);
        assert_eq!(log.entries[1023].sequence, 1025);
        assert!(log.entries.iter().all(|entry| entry.state == FlightState::Completed));
    }

    #[test]
    fn calls_come_back_as_they_were() {
        let elements = ElementType::ARITHMETIC.into_iter().map(Some);
        let opaque = Some(ElementType::Opaque { size_bytes: u32::MAX });
        let recorder = FlightRecorder::new();
        let mut expected = Vec::new();
        for element in elements.chain([opaque, None]) {
            for kind in CollectiveKind::ALL {
                let signature = Signature { kind, element, ..descriptor(1).signature };
                let descriptor = Descriptor { signature, ..descriptor(1) };
                let _ = recorder.begin(NOW, Member(5), 4, &descriptor);
                expected.push((kind, element));
            }
        }
        assert!(expected.len() <= FLIGHT_ENTRIES);
        let found = recorder.log(NOW).entries.into_iter().map(|entry| (entry.kind, entry.element));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_read_while_others_write_is_whole() {
        let recorder = FlightRecorder::new();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (1..3_u64)
                .map(|writer| {
                    let recorder = &recorder;
                    scope.spawn(move || {
                        for round in 0..20_000 {
                            // Every word of an entry is the same number, as far as it has room.
                            let number = writer * 1_000_000 + round;
                            let mut descriptor = descriptor(number);
                            descriptor.signature.count = number;
                            descriptor.operation.group.0[..8]
                                .copy_from_slice(&number.to_be_bytes());
                            let member = Member(u32::try_from(number).unwrap());
                            let ticket = recorder.begin(NOW, member, 2, &descriptor);
                            recorder.end(NOW, ticket, true);
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    for entry in recorder.log(NOW).entries {
                        let number = entry.sequence;
                        assert_eq!(
                            (entry.count, entry.group, u64::from(entry.member.0)),
                            (number, number, number)
                        );
                    }
                }
            });
            for writer in writers {
                writer.join().unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(recorder.log(NOW).recorded, 40_000);
    }

    /// `cargo test --release -p lockstep-collectives flight -- --ignored --nocapture`
    #[test]
    #[ignore = "a measurement, for an idle machine"]
    fn how_long_recording_takes() {
        let recorder = FlightRecorder::new();
        let rounds = 2_000_000;
        let start = std::time::Instant::now();
        for sequence in 0..rounds {
            let ticket =
                recorder.begin(NOW, Member(0), 2, std::hint::black_box(&descriptor(sequence)));
            recorder.end(NOW, ticket, true);
        }
        let each = start.elapsed().as_nanos() as f64 / rounds as f64;
        println!("{each:.1} ns for each operation");
    }
}
