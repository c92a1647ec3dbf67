//! The protocol under every interleaving that the memory model allows, for 2 and 3 members.

use std::sync::atomic::Ordering;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, fence};
use loom::thread;

use super::{Attendance, Block, First, Outcome, Post, Round, Word};

impl Word for AtomicU64 {
    /// The fewest that can be of two posts.
    const USED: usize = 2;

    fn load(&self, ordering: Ordering) -> u64 {
        self.load(ordering)
    }

    fn store(&self, value: u64, ordering: Ordering) {
        self.store(value, ordering);
    }

    /// Loom knows no sequentially consistent order of anything but fences.
    fn announce(&self, value: u64) {
        self.store(value, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64> {
        self.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
    }

    fn fence(ordering: Ordering) {
        fence(ordering);
    }

    fn expect_to_write(&self) {}
}

/// Runs `body` for each of `members` members, as each interleaving has it; it is given the
/// block and the place, and what it returns must be the same for all.
fn every_interleaving<R: PartialEq + std::fmt::Debug + 'static>(
    members: usize,
    preemptions: Option<usize>,
    body: fn(&Block<'_, AtomicU64>) -> R,
) {
    let mut model = loom::model::Builder::new();
    // LOOM_MAX_PREEMPTIONS goes further.
    model.preemption_bound = model.preemption_bound.or(preemptions);
    model.check(move || {
        let length = Block::<AtomicU64>::length(members);
        let words: Arc<Vec<_>> = Arc::new((0..length).map(|_| AtomicU64::new(0)).collect());
        let run = move |words: &[AtomicU64], me| body(&Block::new(words, members, me).unwrap());
        let others: Vec<_> = (1..members)
            .map(|me| {
                let words = Arc::clone(&words);
                thread::spawn(move || run(&words, me))
            })
            .collect();
        let first = run(&words, 0);
        for other in others {
            assert_eq!(other.join().unwrap(), first);
        }
    });
}

/// What the member at a place posts in an operation, in two words.
fn value(sequence: u64, member: usize) -> u64 {
    sequence * 100 + member as u64
}

fn post(block: &Block<'_, AtomicU64>, round: Round, sequence: u64) {
    let value = value(sequence, block.me);
    let first = First { extent: value, head: [value, 0], ..First::default() };
    block.post(round, &Post { first, ..Post::default() });
}

/// Whether all posts are those of the operation.
fn all_posts_are_of(block: &Block<'_, AtomicU64>, round: Round, sequence: u64) -> bool {
    (0..block.members.len()).all(|member| {
        let First { extent, head, .. } = block.first(round, member);
        [extent, head[0]] == [value(sequence, member); 2]
    })
}

/// Enters an operation and leaves it unless the others are there at once.
fn meet_or_leave(block: &Block<'_, AtomicU64>) -> Outcome {
    let round = Round::new(1, 0);
    post(block, round, 1);
    let outcome = match block.attendance(round, 0) {
        Attendance::Full => block.settle(round),
        _ => block.leave(round),
    };
    if outcome == Outcome::Complete {
        assert!(all_posts_are_of(block, round, 1));
    }
    outcome
}

#[test]
fn two_members_agree_whether_they_met() {
    every_interleaving(2, None, meet_or_leave);
}

#[test]
fn three_members_agree_whether_they_met() {
    every_interleaving(3, Some(2), meet_or_leave);
}

fn meet(block: &Block<'_, AtomicU64>, round: Round, sequence: u64) {
    post(block, round, sequence);
    while block.attendance(round, 0) != Attendance::Full {
        thread::yield_now();
    }
    assert!(all_posts_are_of(block, round, sequence));
    assert_eq!(block.settle(round), Outcome::Complete);
}

/// The third operation reuses the words of the first.
#[test]
fn a_post_stays_until_all_have_read_it() {
    every_interleaving(2, Some(3), |block| {
        for sequence in 1..=3 {
            meet(block, Round::new(sequence, 0), sequence);
        }
    });
}

/// Nobody comes to the second operation, so the third has to wait until all are through with the
/// first.
#[test]
fn a_post_stays_if_the_next_operation_is_left_out() {
    every_interleaving(2, Some(3), |block| {
        let [first, third] = [1, 3].map(|sequence| Round::new(sequence, 0));
        meet(block, first, 1);
        block.part(first);
        while !block.have_parted(first) {
            thread::yield_now();
        }
        meet(block, third, 3);
    });
}

#[test]
fn rounds_of_an_operation_are_told_apart() {
    every_interleaving(2, Some(2), |block| {
        for index in 0..3 {
            meet(block, Round::new(1, index), 1);
        }
        meet(block, Round::new(2, 0), 2);
    });
}

/// Member 0 leaves an operation, unless it is complete, does not come to the next, and posts for
/// the one after, while member 1 may be reading: it must not take the one for the other.
#[test]
fn a_post_that_is_written_over_is_not_taken_for_what_it_was() {
    let model = loom::model::Builder::new();
    model.check(|| {
        let length = Block::<AtomicU64>::length(2);
        let words: Arc<Vec<_>> = Arc::new((0..length).map(|_| AtomicU64::new(0)).collect());
        let round = Round::new(1, 0);
        let other = {
            let words = Arc::clone(&words);
            thread::spawn(move || {
                let block = Block::new(&words, 2, 1).unwrap();
                post(&block, round, 1);
                if block.attendance(round, 0) != Attendance::Full {
                    return block.leave(round);
                }
                let read = all_posts_are_of(&block, round, 1);
                let outcome = block.settle(round);
                assert!(read || outcome == Outcome::Abandoned);
                outcome
            })
        };
        let block = Block::new(&words, 2, 0).unwrap();
        post(&block, round, 1);
        let outcome = block.leave(round);
        post(&block, Round::new(3, 0), 3);
        let told = other.join().unwrap();
        // Who comes back from a read when all is over knows at least that it failed.
        assert!(told == outcome || told == Outcome::Abandoned);
    });
}
