//! Which group has which part of the board.
//!
//! A table of slots that are claimed and never given back, then the blocks in the order in which
//! groups came. A group that finds no room finds none on any member: what one member has seen
//! taken stays taken. So all members of a group agree, without a word between them, whether it has
//! a block.

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::board::Word;
use crate::descriptor::GroupId;

/// The groups that can have a block.
pub(super) const SLOTS: usize = 4096;

/// Words of a slot: the group's name in two, and where its block begins.
const SLOT_WORDS: usize = 4;

/// Words before the slots; the first counts those of all blocks so far.
const HEADER_WORDS: usize = 8;

/// A slot whose group came when there was no room for its block.
const NO_ROOM: u64 = u64::MAX;

/// The directory of a board.
pub(super) struct Directory<'a, W> {
    words: &'a [W],
    slots: usize,
}

/// What a group has of the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Its slot, which is no other group's.
    pub(super) slot: usize,
    /// Its block's words, which are no other group's.
    pub(super) block: Range<usize>,
}

impl<'a, W: Word> Directory<'a, W> {
    /// The directory of the board `words`, which are zeros at first, with this many slots.
    pub(super) fn new(words: &'a [W], slots: usize) -> Option<Self> {
        (words.len() >= HEADER_WORDS + slots * SLOT_WORDS).then_some(Self { words, slots })
    }

    /// The place of `group`, whose block has `length` words; `None` if there is no room for it.
    pub(super) fn claim(&self, group: GroupId, length: usize) -> Option<Place> {
        let name = name(group);
        let first = usize::try_from(name[0] % self.slots as u64).unwrap_or(0);
        let slot = (first..self.slots).chain(0..first).find(|slot| self.is_named(*slot, name))?;
        let start = self.start(slot, length)?;
        Some(Place { slot, block: start..start + length })
    }

    /// Whether the slot is the group's, which it becomes if it is nobody's.
    fn is_named(&self, slot: usize, name: [u64; 2]) -> bool {
        let words = self.slot(slot);
        // The second half follows the first; whoever of both names comes first completes it.
        words.iter().zip(name).all(|(word, half)| {
            let found = word.load(Ordering::Acquire);
            let found = if found == 0 {
                word.compare_exchange(0, half).err().unwrap_or(half)
            } else {
                found
            };
            found == half
        })
    }

    /// Where the block of the slot's group begins. Of members that come at the same time each
    /// takes room, and the first gives its to all.
    fn start(&self, slot: usize, length: usize) -> Option<usize> {
        let word = &self.slot(slot)[2];
        let mut start = word.load(Ordering::Acquire);
        if start == 0 {
            let taken = self.take(length).unwrap_or(NO_ROOM);
            start = word.compare_exchange(0, taken).err().unwrap_or(taken);
        }
        let start = usize::try_from(start).ok()?;
        (start.checked_add(length)? <= self.words.len()).then_some(start)
    }

    /// Takes `length` words that nobody has.
    fn take(&self, length: usize) -> Option<u64> {
        let blocks = HEADER_WORDS + self.slots * SLOT_WORDS;
        let room = self.words.len().checked_sub(blocks)? as u64;
        let taken = &self.words[0];
        let mut before = taken.load(Ordering::Acquire);
        loop {
            let after = before.checked_add(length as u64).filter(|after| *after <= room)?;
            match taken.compare_exchange(before, after) {
                Ok(_) => return Some(blocks as u64 + before),
                Err(other) => before = other,
            }
        }
    }

    fn slot(&self, slot: usize) -> &'a [W] {
        &self.words[HEADER_WORDS + slot * SLOT_WORDS..][..SLOT_WORDS]
    }
}

/// A group's name in two words, neither of them 0.
fn name(group: GroupId) -> [u64; 2] {
    let [low, high] = bytemuck::cast::<[u8; 16], [u64; 2]>(group.0);
    [low.max(1), high.max(1)]
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    fn group(number: u8) -> GroupId {
        GroupId([number; 16])
    }

    #[test]
    fn groups_have_places_of_their_own_and_keep_them() {
        let words: Vec<_> = (0..200).map(|_| AtomicU64::new(0)).collect();
        let directory = Directory::new(&words, 4).unwrap();
        let mut places: Vec<Place> = Vec::new();
        // The names of the first two begin at the same slot.
        for (number, length) in [(1, 40), (5, 16), (2, 8), (7, 100)] {
            let place = directory.claim(group(number), length).unwrap();
            assert_eq!(place.block.len(), length);
            for other in &places {
                assert_ne!(place.slot, other.slot);
                assert!(place.block.start >= other.block.end);
            }
            assert_eq!(directory.claim(group(number), length), Some(place.clone()));
            places.push(place);
        }
        assert_eq!(directory.claim(group(9), 1), None, "no slot is left");
        assert_eq!(directory.claim(group(5), 16), Some(places[1].clone()));
    }

    #[test]
    fn a_group_without_room_never_gets_any() {
        let words: Vec<_> = (0..64).map(|_| AtomicU64::new(0)).collect();
        let directory = Directory::new(&words, 4).unwrap();
        assert_eq!(directory.claim(group(1), 41), None);
        assert!(directory.claim(group(2), 40).is_some());
        for _ in 0..2 {
            assert_eq!(directory.claim(group(1), 41), None);
        }
        assert!(Directory::new(&words, 15).is_none());
    }
}
