//! The allocator of one place's arena.
//!
//! Free memory is of two kinds: *resident*, with pages that hold what they last held, and *holes*,
//! whole pages that the system has not provided yet or was given back. An allocation takes the
//! smallest resident extent that fits, else pages from a hole. Freed extents are resident and join
//! their neighbours; beyond a bound, the huge pages of the largest become holes. New pages cost
//! several times what filling old ones does, so the bound grows with what is in use.
//!
//! Extents are values that cannot overlap (see `mapping`), so a mistake here can waste memory but
//! not lend it twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::mapping::{Extent, HUGE_PAGE_BYTES};

/// What every allocation is aligned to: a cache line.
const LINE_BYTES: usize = 64;

/// From here on allocations are whole pages, out of huge ones if there are any.
const LARGE_BYTES: usize = 64 << 10;

/// How many bytes of freed memory keep their pages, for allocations to come; or as many as are in
/// use, if those are more.
const RETAINED_BYTES: usize = 64 << 20;

/// The memory that one process shares with its host's others.
pub struct Arena {
    free: Mutex<Free>,
    capacity_bytes: usize,
    retained_bytes: usize,
    page_bytes: usize,
}

/// Bytes of an [`Arena`]. Dropping them frees them.
///
/// They begin on a cache line, or on a page from 64 KiB on.
pub struct SharedBytes {
    extent: Extent,
    length: usize,
    arena: Arc<Arena>,
}

/// Why an arena has no memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArenaError {
    /// The arena has no addresses left.
    #[error(
        "no room for {asked_bytes} bytes in the shared arena: {in_use_bytes} of its \
         {capacity_bytes} are in use"
    )]
    Full {
        /// The allocation.
        asked_bytes: usize,
        /// What is allocated.
        in_use_bytes: usize,
        /// What there is.
        capacity_bytes: usize,
    },
    /// The system has no memory left.
    #[error("no memory for {asked_bytes} bytes of the shared arena: {source}")]
    NoMemory {
        /// The allocation.
        asked_bytes: usize,
        /// What the system said.
        source: io::Error,
    },
}

#[derive(Default)]
struct Free {
    resident: Extents,
    holes: Extents,
}

impl Arena {
    /// An arena of the pages of `extent`, none of which is resident.
    pub(super) fn new(extent: Extent) -> Self {
        Self::retaining(RETAINED_BYTES, extent)
    }

    /// An arena that keeps the pages of up to `retained_bytes` of free memory, or of as much as is
    /// in use.
    pub(super) fn retaining(retained_bytes: usize, extent: Extent) -> Self {
        let capacity_bytes = extent.len();
        let mut free = Free::default();
        free.holes.insert(extent);
        let page_bytes = rustix::param::page_size();
        Self { free: Mutex::new(free), capacity_bytes, retained_bytes, page_bytes }
    }

    /// `length_bytes` bytes that hold anything: whoever takes them writes them first, and clearing
    /// them before would take as long as that.
    ///
    /// # Errors
    /// When the arena is full or the system has no memory.
    pub fn allocate(self: &Arc<Self>, length_bytes: usize) -> Result<SharedBytes, ArenaError> {
        let alignment = if length_bytes < LARGE_BYTES { LINE_BYTES } else { self.page_bytes };
        let extent = length_bytes
            .max(1)
            .checked_next_multiple_of(alignment)
            .ok_or_else(|| self.full(length_bytes))
            .and_then(|rounded| self.take(length_bytes, rounded, alignment))?;
        Ok(SharedBytes { extent, length: length_bytes, arena: Arc::clone(self) })
    }

    /// How many bytes are allocated, what rounding adds included.
    pub fn bytes_in_use(&self) -> usize {
        let free = self.free();
        self.capacity_bytes - free.resident.bytes - free.holes.bytes
    }

    /// How many bytes can be allocated at most.
    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }

    /// An extent of `rounded` bytes.
    fn take(
        &self,
        asked_bytes: usize,
        rounded: usize,
        alignment: usize,
    ) -> Result<Extent, ArenaError> {
        let resident = self.free().resident.take(rounded, alignment);
        if let Some(extent) = resident {
            return Ok(extent);
        }
        match self.take_from_hole(rounded) {
            Ok(Some(extent)) => return Ok(extent),
            // Free memory may help where it is: as pages for the system, as addresses for us.
            Ok(None) | Err(_) => self.trim(),
        }
        match self.take_from_hole(rounded) {
            Ok(Some(extent)) => Ok(extent),
            Ok(None) => Err(self.full(asked_bytes)),
            Err(source) => Err(ArenaError::NoMemory { asked_bytes, source }),
        }
    }

    /// New pages, of which the first `rounded` bytes are returned and the others are resident.
    fn take_from_hole(&self, rounded: usize) -> io::Result<Option<Extent>> {
        // Two ranks reduce 256 KiB in 20 us out of a huge page, and in 32 us out of small ones.
        let least = if rounded < LARGE_BYTES { LARGE_BYTES } else { HUGE_PAGE_BYTES };
        let pages = rounded.max(least).next_multiple_of(self.page_bytes);
        let mut free = self.free();
        let huge = (pages >= HUGE_PAGE_BYTES).then(|| free.holes.take(pages, HUGE_PAGE_BYTES));
        let taken = huge.flatten().or_else(|| free.holes.take(pages, self.page_bytes));
        drop(free);
        let Some(mut extent) = taken else { return Ok(None) };
        if let Err(error) = extent.commit() {
            self.discard(extent);
            return Err(error);
        }
        let rest = extent.split_off(rounded);
        self.free().resident.insert(rest);
        Ok(Some(extent))
    }

    fn put_back(&self, extent: Extent) {
        let mut free = self.free();
        free.resident.insert(extent);
        loop {
            let in_use_bytes = self.capacity_bytes - free.resident.bytes - free.holes.bytes;
            if free.resident.bytes <= self.retained_bytes.max(in_use_bytes) {
                return;
            }
            let Some(extent) = free.resident.take_largest(HUGE_PAGE_BYTES) else { return };
            // The system takes its time, and nobody else can reach what is discarded. A huge page
            // goes back as a whole: in parts it may not, and there would be none to take again.
            drop(free);
            if !self.discard_pages_of(extent, HUGE_PAGE_BYTES) {
                return;
            }
            free = self.free();
        }
    }

    /// Makes holes of all resident pages.
    fn trim(&self) {
        let resident = mem::take(&mut self.free().resident);
        for extent in resident.by_start.into_values() {
            self.discard_pages_of(extent, self.page_bytes);
        }
    }

    /// Makes a hole of the whole pages of `extent`, which have `page_bytes` here, and makes the rest
    /// resident; whether it has some and could.
    fn discard_pages_of(&self, mut extent: Extent, page_bytes: usize) -> bool {
        let start = extent.offset().next_multiple_of(page_bytes).min(extent.end());
        let end = extent.end() - extent.end() % page_bytes;
        let mut pages = extent.split_off(start - extent.offset());
        let tail = pages.split_off(end.saturating_sub(start));
        let mut free = self.free();
        free.resident.insert(extent);
        free.resident.insert(tail);
        drop(free);
        !pages.is_empty() && self.discard(pages)
    }

    /// Makes a hole of `extent`, which consists of whole pages; whether it could.
    fn discard(&self, mut extent: Extent) -> bool {
        let discarded = extent.discard().is_ok();
        let mut free = self.free();
        let kind = if discarded { &mut free.holes } else { &mut free.resident };
        kind.insert(extent);
        discarded
    }

    fn full(&self, asked_bytes: usize) -> ArenaError {
        let (in_use_bytes, capacity_bytes) = (self.bytes_in_use(), self.capacity_bytes);
        ArenaError::Full { asked_bytes, in_use_bytes, capacity_bytes }
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Extents of one kind, none of them empty, none of them adjacent.
#[derive(Default)]
struct Extents {
    by_start: BTreeMap<usize, Extent>,
    /// Length and start of each.
    by_length: BTreeSet<(usize, usize)>,
    bytes: usize,
}

impl Extents {
    /// Adds `extent`, joined with its neighbours.
    fn insert(&mut self, mut extent: Extent) {
        if extent.is_empty() {
            return;
        }
        let before = self.by_start.range(..extent.offset()).next_back().map(|(start, _)| *start);
        if let Some(mut before) = before.and_then(|start| self.remove(start)) {
            match before.join(extent) {
                Ok(()) => extent = before,
                Err(apart) => {
                    self.add(before);
                    extent = apart;
                }
            }
        }
        if let Some(after) = self.remove(extent.end())
            && let Err(apart) = extent.join(after)
        {
            self.add(apart);
        }
        self.add(extent);
    }

    /// Takes `length` bytes at a multiple of `alignment` out of the smallest extent that has them.
    fn take(&mut self, length: usize, alignment: usize) -> Option<Extent> {
        let padding = |start: usize| start.next_multiple_of(alignment) - start;
        let (_, start) = *self
            .by_length
            .range((length, 0)..)
            .find(|(available, start)| available - length >= padding(*start))?;
        let mut front = self.remove(start)?;
        let mut extent = front.split_off(padding(start));
        let rest = extent.split_off(length);
        for part in [front, rest] {
            if !part.is_empty() {
                self.add(part);
            }
        }
        Some(extent)
    }

    /// Takes the largest extent, if it has at least `length` bytes.
    fn take_largest(&mut self, length: usize) -> Option<Extent> {
        let (available, start) = *self.by_length.last()?;
        if available < length { None } else { self.remove(start) }
    }

    fn remove(&mut self, start: usize) -> Option<Extent> {
        let extent = self.by_start.remove(&start)?;
        self.by_length.remove(&(extent.len(), start));
        self.bytes -= extent.len();
        Some(extent)
    }

    fn add(&mut self, extent: Extent) {
        let start = extent.offset();
        self.bytes += extent.len();
        self.by_length.insert((extent.len(), start));
        self.by_start.insert(start, extent);
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.extent[..self.length]
    }
}

impl DerefMut for SharedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.extent[..self.length]
    }
}

impl Drop for SharedBytes {
    fn drop(&mut self) {
        self.arena.put_back(self.extent.split_off(0));
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena")
            .field("capacity_bytes", &self.capacity_bytes)
            .field("bytes_in_use", &self.bytes_in_use())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedBytes").field(&self.extent).field(&self.length).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Segment;
    use super::super::mapping::{Mapping, Parts, create_file};
    use super::*;

    const MIB: usize = 1 << 20;

    /// A mapping whose private part has `length_bytes`, and an arena over it.
    fn arena(length_bytes: usize, retained_bytes: usize) -> (Arc<Mapping>, Arc<Arena>) {
        let file = create_file(u64::try_from(length_bytes).unwrap()).unwrap();
        let parts = Parts { length_bytes, signals: 0..0, words: 0..0, private: 0..length_bytes };
        let (mapping, extent) = Mapping::new(file, parts).unwrap();
        (mapping, Arc::new(Arena::retaining(retained_bytes, extent)))
    }

    fn resident_bytes(mapping: &Mapping) -> usize {
        usize::try_from(rustix::fs::fstat(mapping.file()).unwrap().st_blocks * 512).unwrap()
    }

    #[test]
    fn allocations_are_aligned_and_nobody_elses() {
        let (_, arena) = arena(64 * MIB, MIB);
        for _ in 0..3 {
            let mut kept = Vec::new();
            for length in
                [0, 1, 63, 64, 65, 4096, LARGE_BYTES - 1, LARGE_BYTES, LARGE_BYTES + 1, MIB]
            {
                let mut bytes = arena.allocate(length).unwrap();
                assert_eq!(bytes.len(), length);
                let alignment = if length < LARGE_BYTES { 64 } else { arena.page_bytes };
                assert_eq!(bytes.as_ptr().align_offset(alignment), 0, "{length}");
                let value = u8::try_from(kept.len()).unwrap();
                bytes.fill(value);
                kept.push(bytes);
            }
            for (value, bytes) in (0..).zip(&kept) {
                assert!(bytes.iter().all(|&byte| byte == value));
            }
        }
        assert_eq!(arena.bytes_in_use(), 0);
    }

    #[test]
    fn freed_memory_is_reused_at_once() {
        let (mapping, arena) = arena(64 * MIB, 2 * MIB);
        let first = arena.allocate(1000).unwrap().as_ptr().addr();
        assert_eq!(arena.allocate(1000).unwrap().as_ptr().addr(), first);
        drop(arena.allocate(MIB).unwrap());
        let resident = resident_bytes(&mapping);
        for _ in 0..3 {
            drop(arena.allocate(MIB).unwrap());
            assert_eq!(resident_bytes(&mapping), resident);
        }
    }

    #[test]
    fn ten_thousand_allocations_leave_nothing_behind() {
        let (mapping, arena) = arena(256 * MIB, 0);
        let sizes = [1, 700, 4096, 65_536, 70_001];
        let mut live = std::collections::VecDeque::new();
        for (i, size) in (0..10_000).zip(sizes.into_iter().cycle()) {
            let mut bytes = arena.allocate(size).unwrap();
            bytes[size - 1] = 1;
            live.push_back(bytes);
            if live.len() > 100 {
                // Not in the order of their birth.
                drop(live.remove(i % 100));
            }
        }
        drop(live);
        assert_eq!(arena.bytes_in_use(), 0);
        // What is no whole huge page is left, and waits for small allocations.
        assert!(resident_bytes(&mapping) < 2 * HUGE_PAGE_BYTES, "{}", resident_bytes(&mapping));
        arena.trim();
        assert_eq!(resident_bytes(&mapping), 0);
    }

    #[test]
    fn freed_pages_go_back_beyond_what_is_retained() {
        let (mapping, arena) = arena(256 * MIB, 8 * MIB);
        let allocations: Vec<_> = (0..32).map(|_| arena.allocate(2 * MIB).unwrap()).collect();
        assert_eq!(resident_bytes(&mapping), 64 * MIB);
        drop(allocations);
        assert!(resident_bytes(&mapping) <= 8 * MIB, "{}", resident_bytes(&mapping));
        assert_eq!(arena.bytes_in_use(), 0);
    }

    #[test]
    fn a_full_arena_says_so_and_recovers() {
        let (_, arena) = arena(4 * MIB, 4 * MIB);
        let small: Vec<_> = (0..8).map(|_| arena.allocate(MIB / 4).unwrap()).collect();
        let rest = arena.allocate(2 * MIB).unwrap();
        let error = arena.allocate(1).unwrap_err().to_string();
        assert!(error.contains("1 bytes in the shared arena: 4194304 of its 4194304"), "{error}");
        assert!(matches!(arena.allocate(usize::MAX), Err(ArenaError::Full { .. })));
        drop(small);
        assert!(arena.allocate(2 * MIB + 1).is_err());
        drop(rest);
        // What was resident in pieces, with holes between, serves as a whole.
        assert_eq!(arena.allocate(4 * MIB).unwrap().len(), 4 * MIB);
    }

    #[test]
    fn bytes_outlive_the_handles_on_their_arena_and_segment() {
        let segment = Segment::create(1).unwrap();
        let mut bytes = segment.arena().allocate(100).unwrap();
        drop(segment);
        bytes.fill(3);
        assert_eq!(*bytes, [3; 100]);
    }

    #[test]
    fn threads_never_hold_the_same_bytes() {
        let (_, arena) = arena(64 * MIB, MIB);
        std::thread::scope(|scope| {
            for value in 1..=4_u8 {
                let arena = &arena;
                scope.spawn(move || {
                    for i in 0..200_usize {
                        let mut bytes = arena.allocate(1 + i * 977 % 100_000).unwrap();
                        bytes.fill(value);
                        std::thread::yield_now();
                        assert!(bytes.iter().all(|&byte| byte == value));
                    }
                });
            }
        });
        assert_eq!(arena.bytes_in_use(), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Whatever the order of allocating and freeing: live allocations keep their values, what
        /// is in use adds up, and all of it is free in one piece at the end.
        #[test]
        fn any_sequence_keeps_its_books(
            retained in prop_oneof![Just(0), Just(MIB), Just(64 * MIB)],
            steps in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..150_000, any::<bool>()), 1..40),
        ) {
            let (_, arena) = arena(64 * MIB, retained);
            let mut live: Vec<(u8, SharedBytes)> = Vec::new();
            for (value, (index, length, free)) in (1..).zip(steps) {
                if free && !live.is_empty() {
                    live.swap_remove(index.index(live.len()));
                } else {
                    let mut bytes = arena.allocate(length).unwrap();
                    bytes.fill(value);
                    live.push((value, bytes));
                }
                let in_use: usize = live.iter().map(|(_, bytes)| bytes.extent.len()).sum();
                prop_assert_eq!(arena.bytes_in_use(), in_use);
            }
            for (value, bytes) in &live {
                prop_assert!(bytes.iter().all(|byte| byte == value));
            }
            drop(live);
            arena.trim();
            let free = arena.free();
            prop_assert_eq!(free.holes.by_start.len(), 1);
            prop_assert_eq!(free.holes.bytes, 64 * MIB);
        }
    }
}
