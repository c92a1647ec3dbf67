//! Claims under every interleaving that the memory model allows.

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

use super::*;

/// Two members claim places for `groups`, each in its order, on a board with this many slots and
/// words for blocks.
fn claims(
    slots: usize,
    room: usize,
    groups: [&'static [u8]; 2],
    check: fn(&[(u8, Option<Place>)]),
) {
    let mut model = loom::model::Builder::new();
    // LOOM_MAX_PREEMPTIONS goes further.
    model.preemption_bound.get_or_insert(2);
    model.check(move || {
        let length = HEADER_WORDS + slots * SLOT_WORDS + room;
        let words: Arc<Vec<_>> = Arc::new((0..length).map(|_| AtomicU64::new(0)).collect());
        let claim = move |words: &[AtomicU64], groups: &[u8]| -> Vec<_> {
            let directory = Directory::new(words, slots).unwrap();
            let claim = |number: &u8| (*number, directory.claim(GroupId([*number; 16]), 8));
            groups.iter().map(claim).collect()
        };
        let other = {
            let words = Arc::clone(&words);
            thread::spawn(move || claim(&words, groups[1]))
        };
        let mut claimed = claim(&words, groups[0]);
        claimed.extend(other.join().unwrap());
        check(&claimed);
    });
}

#[test]
fn members_of_a_group_find_the_same_place() {
    // The names of all begin at the same slot; each member may take room that the other has too.
    claims(2, 32, [&[1, 3], &[3, 1]], |claimed| {
        for (number, place) in claimed {
            let place = place.as_ref().unwrap();
            for (other, its) in claimed {
                let its = its.as_ref().unwrap();
                assert_eq!(number == other, place == its);
                let apart =
                    place.block.end <= its.block.start || its.block.end <= place.block.start;
                assert!(number == other || (place.slot != its.slot && apart));
            }
        }
    });
}

#[test]
fn members_of_a_group_agree_that_there_is_no_room() {
    claims(1, 32, [&[1, 3], &[3, 1]], |claimed| {
        let has = |number| {
            let mut of = claimed.iter().filter(|(other, _)| *other == number);
            let first = of.next().unwrap().1.is_some();
            assert!(of.all(|(_, place)| place.is_some() == first));
            first
        };
        assert_ne!(has(1), has(3));
    });
}
