//! The segment of one host: its layout, and where bytes lie in it.
//!
//! The file is a header, the signals, the board, and one arena for each place, in this order. It is sparse: a
//! place's arena is a range of addresses many times larger than what it will hold, and takes pages
//! only for what it does hold.

use std::io;
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::process::{Resource, getrlimit};

use super::arena::Arena;
use super::mapping::{Mapping, Parts, create_file};

/// The size of the board.
pub const BOARD_BYTES: usize = 256 << 20;

/// Room for the header: a multiple of every page size there is.
const HEADER_BYTES: u64 = 64 << 10;

/// The size of the signals, which are behind the header.
const SIGNALS_BYTES: u64 = 256 << 10;

/// A place's addresses where they are plentiful.
const LARGEST_ARENA_BYTES: u64 = 64 << 30;

/// What one segment takes of the addresses: an eighth where they have 47 bits, so that a process can
/// be in several jobs.
const LARGEST_SEGMENT_BYTES: u64 = 16 << 40;

/// Where a segment with fewer addresses is no longer worth having.
const SMALLEST_ARENA_BYTES: u64 = 64 << 20;

/// What a segment's file begins with.
const MAGIC: u64 = u64::from_le_bytes(*b"lockstep");

/// The version of the layout.
const VERSION: u64 = 1;

/// Memory that all processes of a job on one host map.
///
/// Every process has a *place* in it, from 0, and allocates from the arena of that place. Arenas of
/// other places can be read, and the kernel refuses writes to them. A place's memory outlives its
/// process, for as long as anyone has the segment.
#[derive(Debug)]
pub struct Segment {
    mapping: Arc<Mapping>,
    arena: Arc<Arena>,
    layout: Layout,
    place: usize,
}

/// Where bytes lie in a segment, the same in every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The first byte, counted from the segment's start.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
}

/// Why there is no segment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The system refuses a file in memory, or a mapping of it.
    #[error("the system refuses {what}: {source}")]
    Refused {
        /// What was asked for.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// The limits of this process leave too little.
    #[error(
        "a segment for {places} processes takes {asked_bytes} bytes of addresses at least, and \
         the limits of this process (`ulimit -v`, `ulimit -f`) allow {allowed_bytes}"
    )]
    Limited {
        /// The processes.
        places: usize,
        /// The least that makes sense.
        asked_bytes: u64,
        /// What may be used.
        allowed_bytes: u64,
    },
    /// A file that was received is no segment.
    #[error("the file received is no segment of version {VERSION}: {detail}")]
    NotASegment {
        /// What it has instead.
        detail: String,
    },
    /// A segment has fewer places.
    #[error("place {place} of a segment with {places}")]
    NoSuchPlace {
        /// The place asked for.
        place: usize,
        /// The places there are.
        places: u64,
    },
}

/// What lies where in a segment's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    places: u64,
    board_bytes: u64,
    arena_bytes: u64,
}

impl Segment {
    /// A new segment for `places` processes. This one takes place 0.
    ///
    /// # Errors
    /// When the system has no files in memory, or not enough addresses.
    pub fn create(places: usize) -> Result<Self, SegmentError> {
        Self::create_within(places, allowed_bytes().min(LARGEST_SEGMENT_BYTES))
    }

    /// The segment with the largest arenas that takes at most `allowed_bytes` of addresses.
    fn create_within(places: usize, allowed_bytes: u64) -> Result<Self, SegmentError> {
        let places_wide = u64::try_from(places.max(1)).unwrap_or(u64::MAX);
        let mut layout = Layout {
            places: places_wide,
            board_bytes: u64::try_from(BOARD_BYTES).unwrap_or(u64::MAX),
            arena_bytes: LARGEST_ARENA_BYTES,
        };
        loop {
            let length_bytes = layout.length_bytes().unwrap_or(u64::MAX);
            let smallest = layout.arena_bytes <= SMALLEST_ARENA_BYTES;
            if length_bytes <= allowed_bytes {
                match Self::create_as(layout) {
                    // Addresses are short; the process needs some for itself as well.
                    Err(SegmentError::Refused { source, .. })
                        if !smallest && source.kind() == io::ErrorKind::OutOfMemory => {}
                    created => return created,
                }
            } else if smallest {
                return Err(SegmentError::Limited {
                    places,
                    asked_bytes: length_bytes,
                    allowed_bytes,
                });
            }
            layout.arena_bytes /= 2;
        }
    }

    fn create_as(layout: Layout) -> Result<Self, SegmentError> {
        let refused = |what| move |source| SegmentError::Refused { what, source };
        let length_bytes = layout.length_bytes().unwrap_or(u64::MAX);
        let file = create_file(length_bytes).map_err(refused("a file in memory (memfd)"))?;
        rustix::io::pwrite(&file, bytemuck::cast_slice(&layout.header()), 0)
            .map_err(|errno| refused("to write to a file in memory")(errno.into()))?;
        Self::map(file, layout, 0)
    }

    /// The segment in `file`, which another process created and handed over, seen from `place`.
    ///
    /// # Errors
    /// When the file is not a segment, has no such place, or cannot be mapped here.
    pub fn open(file: OwnedFd, place: usize) -> Result<Self, SegmentError> {
        let refused = |source| SegmentError::Refused { what: "to read the file received", source };
        let mut header = [0_u64; 5];
        let read = rustix::io::pread(&file, bytemuck::cast_slice_mut::<_, u8>(&mut header), 0)
            .map_err(|errno| refused(errno.into()))?;
        let size = rustix::fs::fstat(&file).map_err(|errno| refused(errno.into()))?.st_size;
        let not_a_segment = |detail| SegmentError::NotASegment { detail };
        let [magic, version, places, board_bytes, arena_bytes] = header;
        let layout = Layout { places, board_bytes, arena_bytes };
        if read != size_of_val(&header) || magic != MAGIC {
            return Err(not_a_segment("it does not begin as one".to_owned()));
        }
        if version != VERSION {
            return Err(not_a_segment(format!("it has version {version}")));
        }
        if layout.length_bytes().is_none() || layout.length_bytes() != u64::try_from(size).ok() {
            return Err(not_a_segment(format!(
                "it has {size} bytes, and its header is {layout:?}"
            )));
        }
        if u64::try_from(place).map_or(true, |place| place >= places) {
            return Err(SegmentError::NoSuchPlace { place, places });
        }
        Self::map(file, layout, place)
    }

    fn map(file: OwnedFd, layout: Layout, place: usize) -> Result<Self, SegmentError> {
        let refused = |source| SegmentError::Refused { what: "to map a file in memory", source };
        let parts = layout.parts(place).ok_or_else(|| {
            refused(io::Error::new(io::ErrorKind::OutOfMemory, "it is larger than all addresses"))
        })?;
        let (mapping, extent) = Mapping::new(file, parts).map_err(refused)?;
        Ok(Self { mapping, arena: Arc::new(Arena::new(extent)), layout, place })
    }

    /// The control area: atomics that are zero at first, the same in every process.
    pub fn board(&self) -> &[AtomicU64] {
        self.mapping.words()
    }

    /// Atomics that threads of all processes can sleep on; zero at first, as the board is.
    pub fn signals(&self) -> &[AtomicU32] {
        self.mapping.signals()
    }

    /// Where `bytes` lie, if they lie in this process's arena.
    pub fn locate(&self, bytes: &[u8]) -> Option<Location> {
        let offset = u64::try_from(self.mapping.offset_of(bytes)?).ok()?;
        Some(Location { offset, length: u64::try_from(bytes.len()).ok()? })
    }

    /// The bytes at `location`; `None` if they do not lie in the arenas.
    ///
    /// They are shared: the caller has agreed with their owner that it leaves them as they are
    /// while the slice lives. A peer that does not keep to it makes the values meaningless, as it
    /// could by sending others; it can do no other harm. Once the owner has died they stay as they
    /// were.
    pub fn view(&self, location: Location) -> Option<&[u8]> {
        let end = location.offset.checked_add(location.length)?;
        self.mapping.bytes(usize::try_from(location.offset).ok()?..usize::try_from(end).ok()?)
    }

    /// The allocator of this process's place.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// This process's place.
    pub fn place(&self) -> usize {
        self.place
    }

    /// How many processes have a place.
    pub fn places(&self) -> usize {
        usize::try_from(self.layout.places).unwrap_or(usize::MAX)
    }

    /// The file, to hand over to another process of the job and of this host.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.mapping.file()
    }
}

impl Layout {
    fn length_bytes(self) -> Option<u64> {
        let arenas = self.arena_bytes.checked_mul(self.places)?;
        (HEADER_BYTES + SIGNALS_BYTES).checked_add(self.board_bytes)?.checked_add(arenas)
    }

    fn header(self) -> [u64; 5] {
        [MAGIC, VERSION, self.places, self.board_bytes, self.arena_bytes]
    }

    /// The parts as the process at `place` sees them; `None` where addresses cannot express them.
    fn parts(self, place: usize) -> Option<Parts> {
        let length_bytes = usize::try_from(self.length_bytes()?).ok()?;
        let words_start = HEADER_BYTES + SIGNALS_BYTES;
        let words_end = words_start.checked_add(self.board_bytes)?;
        let start = self.arena_bytes.checked_mul(u64::try_from(place).ok()?)?;
        let start = words_end.checked_add(start)?;
        let range = |start: u64, end: u64| -> Option<Range<usize>> {
            Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
        };
        Some(Parts {
            length_bytes,
            signals: range(HEADER_BYTES, words_start)?,
            words: range(words_start, words_end)?,
            private: range(start, start.checked_add(self.arena_bytes)?)?,
        })
    }
}

/// How large a file may be here, and how much of the addresses it may take.
///
/// A file that grows beyond its limit is answered with a signal that ends the process, so the
/// limit is looked up rather than tried.
fn allowed_bytes() -> u64 {
    let limit = |resource| getrlimit(resource).current.unwrap_or(u64::MAX);
    // Half of the addresses are left to the program.
    limit(Resource::Fsize).min(limit(Resource::As) / 2)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    /// `first`'s segment as the process at `place` maps it.
    fn at(first: &Segment, place: usize) -> Segment {
        Segment::open(first.file().try_clone_to_owned().unwrap(), place).unwrap()
    }

    #[test]
    fn every_place_sees_the_bytes_of_every_other() {
        let first = Segment::create(3).unwrap();
        let segments = [at(&first, 1), at(&first, 2), first];
        let allocations: Vec<_> = (1..)
            .zip(&segments)
            .map(|(value, segment)| {
                let mut bytes = segment.arena().allocate(1000).unwrap();
                bytes.fill(value);
                bytes
            })
            .collect();
        for segment in &segments {
            for ((value, owner), bytes) in (1..).zip(&segments).zip(&allocations) {
                let location = owner.locate(&bytes[100..200]).unwrap();
                assert_eq!(segment.view(location).unwrap(), [value; 100]);
                let own = segment.place() == owner.place();
                assert_eq!(segment.locate(bytes).is_some(), own);
            }
        }
    }

    #[test]
    fn the_board_is_zero_at_first_and_the_same_for_all() {
        let first = Segment::create(2).unwrap();
        let second = at(&first, 1);
        assert_eq!(first.board().len() * 8, BOARD_BYTES);
        let last = first.board().len() - 1;
        assert_eq!(first.board()[last].swap(77, Ordering::AcqRel), 0);
        assert_eq!(second.board()[last].load(Ordering::Acquire), 77);
        assert_eq!(second.board()[0].load(Ordering::Acquire), 0);
        let last = first.signals().len() - 1;
        assert_eq!(first.signals()[last].swap(5, Ordering::AcqRel), 0);
        assert_eq!(second.signals()[last].load(Ordering::Acquire), 5);
        assert_eq!(first.board()[0].load(Ordering::Acquire), 0);
    }

    #[test]
    fn locations_outside_the_arenas_show_nothing() {
        let segment = Segment::create(2).unwrap();
        let start = HEADER_BYTES + SIGNALS_BYTES + u64::try_from(BOARD_BYTES).unwrap();
        let end = segment.layout.length_bytes().unwrap();
        for (offset, length, inside) in [
            (start, 0, true),
            (start, 1, true),
            (end - 1, 1, true),
            (end, 0, true),
            (start - 1, 1, false),
            (0, 8, false),
            (end, 1, false),
            (u64::MAX, 1, false),
            (start, u64::MAX, false),
            (u64::MAX, u64::MAX, false),
        ] {
            let location = Location { offset, length };
            assert_eq!(segment.view(location).is_some(), inside, "{location:?}");
        }
        assert_eq!(segment.locate(&[1, 2, 3]), None);
    }

    #[test]
    fn a_thousand_places_have_room() {
        let segment = Segment::create(1000).unwrap();
        assert!(segment.arena().capacity_bytes() > 1 << 30);
        let last = at(&segment, 999);
        let mut bytes = last.arena().allocate(8).unwrap();
        bytes.copy_from_slice(b"the last");
        assert_eq!(segment.view(last.locate(&bytes).unwrap()).unwrap(), b"the last");
    }

    #[test]
    fn arenas_shrink_to_what_is_allowed_and_no_further_than_makes_sense() {
        let arena_bytes = |places, allowed_bytes| {
            Segment::create_within(places, allowed_bytes).map(|segment| segment.layout.arena_bytes)
        };
        assert_eq!(arena_bytes(2, u64::MAX).unwrap(), LARGEST_ARENA_BYTES);
        assert_eq!(arena_bytes(2, LARGEST_ARENA_BYTES).unwrap(), LARGEST_ARENA_BYTES / 4);
        let least = 2 * SMALLEST_ARENA_BYTES + HEADER_BYTES + SIGNALS_BYTES;
        let least = least + u64::try_from(BOARD_BYTES).unwrap();
        assert_eq!(arena_bytes(2, least).unwrap(), SMALLEST_ARENA_BYTES);
        let error = arena_bytes(2, least - 1).unwrap_err();
        assert!(
            matches!(error, SegmentError::Limited { places: 2, asked_bytes, .. } if asked_bytes == least),
            "{error}"
        );
    }

    #[test]
    fn refuses_files_that_are_no_segments_of_this_version() {
        let detail = |layout: Layout, header: [u64; 5]| {
            let file = create_file(layout.length_bytes().unwrap()).unwrap();
            rustix::io::pwrite(&file, bytemuck::cast_slice(&header), 0).unwrap();
            Segment::open(file, 1).map(drop).unwrap_err().to_string()
        };
        let layout = Layout { places: 2, board_bytes: 1 << 20, arena_bytes: 1 << 20 };
        let [magic, version, places, board, arena] = layout.header();
        for (header, expected) in [
            ([magic + 1, version, places, board, arena], "does not begin as one"),
            ([0; 5], "does not begin as one"),
            ([magic, version + 1, places, board, arena], "it has version 2"),
            ([magic, version, places + 1, board, arena], "bytes, and its header is"),
            ([magic, version, 2, board, u64::MAX / 2 + 1], "bytes, and its header is"),
            ([magic, version, u64::MAX, u64::MAX, u64::MAX], "bytes, and its header is"),
            ([magic, version, 1, board, 2 * arena], "place 1 of a segment with 1"),
            ([magic, version, places, board - 64, arena + 32], "not pages in order"),
        ] {
            let found = detail(layout, header);
            assert!(found.contains(expected), "{header:?}: {found}");
        }
    }
}
