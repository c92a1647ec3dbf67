//! Memory that the processes of one host share, so that a collective reads operands where they lie.
//!
//! - [`Segment`]: one file in memory for all processes of a job on a host: a *board* of atomics
//!   that all write, and one *arena* for each process, which only that process writes.
//! - [`Arena`]: the allocator of one process's arena. It hands out [`SharedBytes`].
//! - [`Location`]: where bytes lie in the segment. It means the same in every process.
//! - [`Sharing`]: which processes have a segment in common, as all of them agree when they join.
//!
//! Does not know what the processes say to each other. When one may read another's bytes is the
//! transport's to agree on; see [`Segment::view`].

mod arena;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod handover;
#[expect(unsafe_code, reason = "memory that several processes map has no safe interface")]
mod mapping;
mod segment;
mod sharing;

pub use arena::{Arena, ArenaError, SharedBytes};
pub use segment::{BOARD_BYTES, Location, Segment, SegmentError};
pub use sharing::Sharing;
pub(crate) use sharing::{agree, alone};
