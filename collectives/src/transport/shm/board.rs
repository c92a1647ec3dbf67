//! What the members of one group on one host write for each other: a block of words.
//!
//! Owns the layout of the block and the protocol over it, which never waits and makes no system
//! call; who waits, and for how long, is `wait`'s business. Words are atomics of a type parameter,
//! so that `loom` runs the same code (module `model`).
//!
//! An operation has up to [`ROUNDS`] rounds. In a round every member *posts*, reads the posts of
//! all others, and *settles*: after that nobody who is in the round can fail it any more, or
//! nobody can complete it. A member that cannot wait *leaves* instead. Posts of one operation lie
//! in other words than those of the next, and in the same as those of the next but one: who
//! posts in the latter has completed the one between, for which all others had to be through with
//! the first, or has seen that they are ([`Block::have_parted`]).
//!
//! # How a round is settled
//! Who has read all posts writes that it has finished, and then looks whether anybody is leaving;
//! who leaves says so first, and then looks whether anybody has finished. So of a finisher and a
//! leaver at least one sees the other. A finisher that sees nobody leaving is done at once, and
//! every leaver sees it. All others vote, in one word whose first value counts: leavers that have
//! seen a finisher, and finishers, vote that the round is complete, other leavers that it is
//! abandoned. If somebody was done at once there is no vote to abandon.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::descriptor::NUMBER_BITS;
use crate::stream;

/// Words of a cache line: what one member writes and another polls lies on lines of its own.
const LINE_WORDS: usize = 8;

/// The most rounds of an operation.
pub(super) const ROUNDS: usize = 3;

/// Words of a head in the first line of a post.
pub(super) const FIRST_HEAD_WORDS: usize = 2;

/// The most words of a head behind those, in round 0.
pub(super) const MORE_HEAD_WORDS: usize = 7;

/// Words of the data in the first line of a post.
pub(super) const FIRST_DATA_WORDS: usize = 4;

/// Words of an operand that fits into the post of round 0.
pub(super) const INLINE_WORDS: usize = 16;

// The first line of a post is `stamp, extent, head[0..2], data[0..4]`, which is all there is to read
// of short heads and the shortest operands. In round 0 there are `head[2..9]` and `data[4..16]`
// besides, in one line and in two.
const STAMP: usize = 0;
const MORE_HEAD: usize = 0;
const MORE_DATA: usize = 1;
const MORE_LINES: usize = 3;

// A member's lines: what it has finished and what it has parted from; the first lines of its posts
// in round 0 of even and of odd operations; what follows there of an even operation, and its posts
// of later rounds; the same of an odd one; how often it has arrived.
//
// The first lines lie beside each other because processors fetch neighbours: to exchange lines takes
// 54 ns so on a Zen 4, 73 with five lines between them and 115 with one.
const FIRST: usize = 1;
const OTHERS: usize = FIRST + 2;
const OTHER_LINES: usize = MORE_LINES + ROUNDS - 1;
const ARRIVED: usize = OTHERS + 2 * OTHER_LINES;
const MEMBER_LINES: usize = ARRIVED + 1;

type Line<W> = [W; LINE_WORDS];

/// The mark of a stamp whose member is leaving.
const LEAVING: u64 = 1;

/// A word of the board.
pub(super) trait Word {
    /// How many words of a first line behind its stamp are written and read: all of them, but for a
    /// model that has to try every order of them.
    const USED: usize = LINE_WORDS - 1;

    fn load(&self, ordering: Ordering) -> u64;
    fn store(&self, value: u64, ordering: Ordering);
    /// Stores `value` before anything that this thread loads afterwards in sequentially consistent
    /// order, and releases what it has written.
    fn announce(&self, value: u64);
    fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64>;
    fn fence(ordering: Ordering);
    /// The line of this word will be written soon.
    fn expect_to_write(&self);
}

impl Word for AtomicU64 {
    fn load(&self, ordering: Ordering) -> u64 {
        self.load(ordering)
    }

    fn store(&self, value: u64, ordering: Ordering) {
        self.store(value, ordering);
    }

    fn announce(&self, value: u64) {
        // As a store with a fence behind it, at an eighth of the time on x86-64.
        self.swap(value, Ordering::SeqCst);
    }

    fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64> {
        self.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
    }

    fn fence(ordering: Ordering) {
        std::sync::atomic::fence(ordering);
    }

    fn expect_to_write(&self) {
        stream::expect_to_write(self);
    }
}

/// The block of a group, as one of its members uses it.
pub(super) struct Block<'a, W> {
    /// Of each round of an even and of an odd operation.
    verdicts: &'a Line<W>,
    members: &'a [[Line<W>; MEMBER_LINES]],
    /// The place of this member in the group.
    me: usize,
}

/// One round of one operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    stamp: u64,
    /// 0 for even operations, 1 for odd ones.
    parity: usize,
    index: usize,
    /// The first line of its posts among a member's lines.
    first: usize,
}

/// The first line of a post.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct First {
    /// Where the operand ends, and whether it is the data: opaque here.
    pub(super) extent: u64,
    pub(super) head: [u64; FIRST_HEAD_WORDS],
    pub(super) data: [u64; FIRST_DATA_WORDS],
}

/// What a member posts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Post<'a> {
    pub(super) first: First,
    /// What follows of the head: at most [`MORE_HEAD_WORDS`] in round 0, none later.
    pub(super) more_head: &'a [u64],
    /// What follows of the data: those up to [`INLINE_WORDS`] in round 0, none later.
    pub(super) more_data: &'a [u64],
}

/// How far the members have come to a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attendance {
    /// All have posted.
    Full,
    /// The member at this place has not.
    Lacks(usize),
    /// The member at this place is in a later operation: it does not come back.
    Passed(usize),
}

/// How a round ended, the same for all of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Complete,
    Abandoned,
}

impl Round {
    /// Round `index` of the operation with this sequence number in the group.
    ///
    /// Stamps compare like sequence numbers that are less than 2^62 apart; 0 is none of them, as
    /// operations are numbered from 1 in every epoch.
    pub(super) fn new(sequence: u64, index: usize) -> Self {
        // The first operations of successive epochs differ, too.
        let is_even = (sequence ^ (sequence >> NUMBER_BITS)).is_multiple_of(2);
        Self::of(sequence << 1, usize::from(!is_even), index)
    }

    fn of(stamp: u64, parity: usize, index: usize) -> Self {
        let first = match index {
            0 => FIRST + parity,
            index => OTHERS + parity * OTHER_LINES + MORE_LINES + index - 1,
        };
        Self { stamp, parity, index, first }
    }

    /// Whether it is one of an even operation; those next to each other differ, unless others are
    /// left out.
    pub(super) fn is_even(self) -> bool {
        self.parity == 0
    }

    fn number(self) -> usize {
        self.parity * ROUNDS + self.index
    }

    /// The first of the other lines of an operation's posts.
    fn others(self) -> usize {
        OTHERS + self.parity * OTHER_LINES
    }

    fn is_before(self, stamp: u64) -> bool {
        let ahead = (stamp & !LEAVING).wrapping_sub(self.stamp);
        stamp != 0 && ahead != 0 && ahead <= u64::MAX / 2
    }
}

impl<'a, W: Word> Block<'a, W> {
    /// Words of the block of a group.
    pub(super) const fn length(members: usize) -> usize {
        LINE_WORDS + members * MEMBER_LINES * LINE_WORDS
    }

    /// The block in `words`, which are zeros before a member has posted for the first time.
    #[inline(always)]
    pub(super) fn new(words: &'a [W], members: usize, me: usize) -> Option<Self> {
        let (lines, []) = words.as_chunks() else { return None };
        let (verdicts, lines) = lines.split_first()?;
        let (posts, []) = lines.as_chunks() else { return None };
        let fits = posts.len() == members && me < members;
        fits.then_some(Self { verdicts, members: posts, me })
    }

    /// Says that this member has arrived `count` times. It has no part in the protocol: it is a hint
    /// to the others.
    pub(super) fn say_arrived(&self, count: u64) {
        self.members[self.me][ARRIVED][0].store(count, Ordering::Release);
    }

    /// Whether all members say that they have arrived that often.
    pub(super) fn have_arrived(&self, count: u64) -> bool {
        self.members.iter().all(|member| member[ARRIVED][0].load(Ordering::Acquire) >= count)
    }

    /// Shows this member's post to the others.
    ///
    /// Whoever was first to find [`Attendance::Full`] after it knows that it may be waited for:
    /// of members that post at the same time at least one finds that.
    #[inline(always)]
    pub(super) fn post(&self, round: Round, post: &Post<'_>) {
        let line = self.line(round, self.me);
        // Nobody is to take what follows for the post that was here.
        line[STAMP].store(0, Ordering::Relaxed);
        W::fence(Ordering::Release);
        let First { extent, head: [h0, h1], data: [d0, d1, d2, d3] } = post.first;
        let values = [extent, h0, h1, d0, d1, d2, d3];
        for (word, value) in line[1..].iter().zip(values).take(W::USED) {
            word.store(value, Ordering::Relaxed);
        }
        for (index, value) in post.more_head.iter().enumerate() {
            self.more_head_word(round, self.me, index).store(*value, Ordering::Relaxed);
        }
        for (index, value) in post.more_data.iter().enumerate() {
            self.more_data_word(round, self.me, index).store(*value, Ordering::Relaxed);
        }
        line[STAMP].announce(round.stamp);
    }

    /// Prepares for this member's post in the next operation: the others have its line in their caches,
    /// and to get it back while something else is done makes a bare exchange a third shorter.
    pub(super) fn expect_to_post(&self, after: Round) {
        let next = Round::of(after.stamp, 1 - after.parity, 0);
        self.line(next, self.me)[STAMP].expect_to_write();
    }

    /// Whether all have posted, given that all before the place `from` have.
    #[inline(always)]
    pub(super) fn attendance(&self, round: Round, from: usize) -> Attendance {
        for member in from..self.members.len() {
            let stamp = self.line(round, member)[STAMP].load(Ordering::SeqCst);
            if stamp & !LEAVING != round.stamp {
                return if round.is_before(stamp) {
                    Attendance::Passed(member)
                } else {
                    Attendance::Lacks(member)
                };
            }
        }
        Attendance::Full
    }

    /// Whether the member at this place has posted, and nothing after it in the same place.
    pub(super) fn has_posted(&self, round: Round, member: usize) -> bool {
        let stamp = self.line(round, member)[STAMP].load(Ordering::Acquire);
        stamp & !LEAVING == round.stamp
    }

    /// The first line of a post. What is read of a post is what was posted if it was there before,
    /// and is there or settled afterwards.
    #[inline(always)]
    pub(super) fn first(&self, round: Round, member: usize) -> First {
        let mut values = [0; LINE_WORDS - 1];
        for (value, word) in values.iter_mut().zip(&self.line(round, member)[1..]).take(W::USED) {
            *value = word.load(Ordering::Relaxed);
        }
        let [extent, h0, h1, d0, d1, d2, d3] = values;
        First { extent, head: [h0, h1], data: [d0, d1, d2, d3] }
    }

    /// The word at `index` of the data of a post behind its first line.
    pub(super) fn more_data(&self, round: Round, member: usize, index: usize) -> u64 {
        self.more_data_word(round, member, index).load(Ordering::Relaxed)
    }

    /// The word at `index` of the head of a post behind its first line, which is anything if the
    /// head ends there.
    pub(super) fn more_head(&self, round: Round, member: usize, index: usize) -> u64 {
        self.more_head_word(round, member, index).load(Ordering::Relaxed)
    }

    /// Whether a post is still there: what was read of it is what was posted.
    pub(super) fn still_stands(&self, round: Round, member: usize) -> bool {
        W::fence(Ordering::Acquire);
        self.has_posted(round, member)
    }

    /// A member that leaves the round or has passed it.
    pub(super) fn leaver(&self, round: Round) -> Option<usize> {
        (0..self.members.len()).find(|&member| {
            let stamp = self.line(round, member)[STAMP].load(Ordering::Acquire);
            member != self.me && (stamp == round.stamp | LEAVING || round.is_before(stamp))
        })
    }

    /// Completes the round for this member, which has read all posts, unless the others have
    /// abandoned it.
    #[inline(always)]
    pub(super) fn settle(&self, round: Round) -> Outcome {
        W::fence(Ordering::Acquire);
        self.finished(round, self.me).announce(round.stamp);
        let mut leaving = false;
        for member in 0..self.members.len() {
            let stamp = self.line(round, member)[STAMP].load(Ordering::SeqCst);
            if stamp & !LEAVING != round.stamp {
                return Outcome::Abandoned;
            }
            leaving |= stamp & LEAVING != 0;
        }
        if leaving { self.vote(round, Outcome::Complete) } else { Outcome::Complete }
    }

    /// Leaves the round, in which this member has posted and not settled; unless it is complete
    /// in spite of that, in which case all posts are there.
    pub(super) fn leave(&self, round: Round) -> Outcome {
        self.line(round, self.me)[STAMP].announce(round.stamp | LEAVING);
        let mut members = 0..self.members.len();
        let finished = members
            .any(|member| self.finished(round, member).load(Ordering::SeqCst) == round.stamp);
        self.vote(round, if finished { Outcome::Complete } else { Outcome::Abandoned })
    }

    /// The outcome, if there has been a vote.
    pub(super) fn verdict(&self, round: Round) -> Option<Outcome> {
        let verdict = self.verdicts[round.number()].load(Ordering::Acquire);
        if verdict & !LEAVING == round.stamp {
            return Some(Self::outcome(verdict));
        }
        round.is_before(verdict).then_some(Outcome::Abandoned)
    }

    fn vote(&self, round: Round, outcome: Outcome) -> Outcome {
        let word = &self.verdicts[round.number()];
        let vote = round.stamp | if outcome == Outcome::Complete { 0 } else { LEAVING };
        let mut found = word.load(Ordering::Acquire);
        loop {
            if found & !LEAVING == round.stamp {
                return Self::outcome(found);
            }
            if round.is_before(found) {
                return Outcome::Abandoned;
            }
            match word.compare_exchange(found, vote) {
                Ok(_) => return outcome,
                Err(other) => found = other,
            }
        }
    }

    /// Says that this member does not read any more what others have shown in the operation.
    pub(super) fn part(&self, round: Round) {
        self.parted(round, self.me).store(round.stamp, Ordering::Release);
    }

    /// Whether all have parted from an operation that all were in.
    pub(super) fn have_parted(&self, round: Round) -> bool {
        (0..self.members.len()).all(|member| {
            let stamp = self.parted(round, member).load(Ordering::Acquire);
            stamp == round.stamp || round.is_before(stamp)
        })
    }

    fn outcome(verdict: u64) -> Outcome {
        if verdict & LEAVING == 0 { Outcome::Complete } else { Outcome::Abandoned }
    }

    fn finished(&self, round: Round, member: usize) -> &'a W {
        &self.members[member][0][round.number()]
    }

    fn parted(&self, round: Round, member: usize) -> &'a W {
        &self.members[member][0][2 * ROUNDS + round.parity]
    }

    /// The first line of a member's post.
    fn line(&self, round: Round, member: usize) -> &'a Line<W> {
        &self.members[member][round.first]
    }

    fn more_head_word(&self, round: Round, member: usize, index: usize) -> &'a W {
        &self.members[member][round.others() + MORE_HEAD][index]
    }

    fn more_data_word(&self, round: Round, member: usize, index: usize) -> &'a W {
        let line = round.others() + MORE_DATA + index / LINE_WORDS;
        &self.members[member][line][index % LINE_WORDS]
    }
}

#[cfg(test)]
mod model;
