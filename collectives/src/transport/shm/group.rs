//! One member's way through the operations of one group in shared memory.
//!
//! Owns the waiting between the steps of the protocol (`board`), the memory in which this member
//! shows what its caller keeps elsewhere, and the translation of what can go wrong into
//! [`TransportError`]. Does not know what heads mean.
//!
//! An operand is shown in one of three ways. A short one is part of the post. One that lies in
//! the arena is read there: it is lent, and its owner waits for its readers, in the next round of
//! the operation or in one for nothing else. Any other is copied into memory of this member that
//! the group keeps for it, one for even and one for odd operations: like posts they are not written
//! over before all have read them, and nobody waits. Members may differ in how they show theirs, so
//! each post says whether it lends: all take part in the last round of an operation, or none does.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use smallvec::SmallVec;

use super::board::{
    Attendance, Block, FIRST_DATA_WORDS, FIRST_HEAD_WORDS, First, INLINE_WORDS, MORE_HEAD_WORDS,
    Outcome, Post, Round,
};
use super::directory::{Directory, Place, SLOTS};
use super::wait::{Bell, Patience, Ringer, bell};
use crate::descriptor::GroupId;
use crate::ids::Member;
use crate::shared_memory::{Location, Segment, SharedBytes};
use crate::transport::{CAUSE_GRACE, Step, Transport, TransportError};

/// What a member says to the others in the first round of an operation. None begins another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) first: [u64; FIRST_HEAD_WORDS],
    pub(crate) more: Option<[u64; MORE_HEAD_WORDS]>,
}

const WORD_BYTES: usize = size_of::<u64>();

/// The longest operand that is part of a post.
const INLINE_BYTES: usize = INLINE_WORDS * WORD_BYTES;

/// The largest memory for copies that is kept for the next operation but one.
const KEPT_BYTES: usize = 32 << 20;

/// How often a sleeper looks by itself: a member that is killed between its post and the bell
/// wakes nobody.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// How long a member that fails waits for those that may still read its operand.
const READERS_GRACE: Duration = Duration::from_millis(100);

/// How often it looks whether they do.
const READERS_INTERVAL: Duration = Duration::from_millis(1);

/// The memory that the members of one group share, as one of them uses it.
pub struct SharedGroup {
    segment: Arc<Segment>,
    place: Place,
    members: usize,
    /// The place of this member in the group.
    me: usize,
    patience: Patience,
    /// For even and odd operations.
    seats: [Mutex<Seat>; 2],
    /// The sequence number of the last operation that was complete.
    last: AtomicU64,
    waker: Waker,
}

/// What this member needs for an operation and keeps for the next but one.
#[derive(Debug, Default)]
struct Seat {
    /// The sequence number of its last operation that was complete, 0 before there is one.
    last: u64,
    /// Copies of the operand, and of what is shown later.
    copies: [Option<SharedBytes>; 2],
}

impl Seat {
    /// Frees what is too large to be kept. Nobody reads it any more.
    fn shrink(&mut self) {
        for copy in &mut self.copies {
            copy.take_if(|bytes| bytes.len() > KEPT_BYTES);
        }
    }
}

/// One member's part in one operation.
///
/// Its steps come in this order: [`Presence::open`], what the others' heads and operands are
/// needed for, perhaps [`Presence::show`] and what is needed of what the others show, and
/// [`Presence::part`].
pub(crate) struct Presence<'a> {
    group: &'a SharedGroup,
    block: Block<'a, AtomicU64>,
    bell: Bell<'a, AtomicU32>,
    seat: MutexGuard<'a, Seat>,
    transport: &'a dyn Transport,
    step: Step<'a>,
    /// Those of the operation's members that take part here, by place.
    members: &'a [Member],
    round: Round,
    /// Whether this member has slept in it.
    slept: bool,
    /// Whether a member has lent the others memory that it does not keep for the next operation
    /// but one. From the end of a round on all agree on it.
    lent: bool,
    /// Whether all that was shown so far was part of the posts.
    short: bool,
}

/// How long bytes that lie in the arena stay as they are for others to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// The caller may write to them at once.
    Changing,
    /// Until this member's next round, and there will be one.
    Passing,
    /// Until this member parts.
    Lasting,
}

/// The operands that [`Presence::open`] found.
#[derive(Default)]
pub(crate) struct Opened {
    /// By place.
    shown: SmallVec<[Shown; 4]>,
    /// The operands that are short and do not fit into the first lines.
    more: SmallVec<[u64; 2 * INLINE_WORDS]>,
}

/// An operand as it is posted.
#[derive(Clone, Copy)]
struct Shown {
    extent: Extent,
    /// The data in the first line.
    data: [u64; FIRST_DATA_WORDS],
    /// Where all of them begin among those that do not fit there.
    more_start: usize,
}

/// How long an operand is, whether it is part of the post, and whether its owner waits for those
/// that read it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Extent(u64);

impl Extent {
    const SHORT: u64 = 1;
    const LENT: u64 = 2;

    /// What is part of a post.
    fn short(length: usize) -> Self {
        Self((length as u64) << 2 | Self::SHORT)
    }

    /// What lies elsewhere.
    fn located(length: u64, lent: bool) -> Self {
        Self(length << 2 | if lent { Self::LENT } else { 0 })
    }

    fn is_short(self) -> bool {
        self.0 & Self::SHORT != 0
    }

    fn is_lent(self) -> bool {
        self.0 & Self::LENT != 0
    }

    fn length(self) -> u64 {
        self.0 >> 2
    }

    /// Words of the data of a post behind its first line, at most as many as there is room for.
    fn more_words(self) -> usize {
        let words = if self.is_short() { self.length().div_ceil(8) } else { 1 };
        let words = usize::try_from(words).map_or(INLINE_WORDS, |words| words.min(INLINE_WORDS));
        words.saturating_sub(FIRST_DATA_WORDS)
    }
}

impl SharedGroup {
    /// The memory of the group `id` with this many members in `segment`, for the one at place
    /// `me`; `None` if there is no room for it, for none of them.
    pub(super) fn claim(
        segment: &Arc<Segment>,
        id: GroupId,
        members: usize,
        me: usize,
        patience: Patience,
    ) -> Option<Self> {
        let directory = Directory::new(segment.board(), SLOTS)?;
        let place = directory.claim(id, Block::<AtomicU64>::length(members))?;
        let ringer = Ringer { segment: Arc::clone(segment), slot: place.slot };
        ringer.bell()?;
        Some(Self {
            segment: Arc::clone(segment),
            place,
            members,
            me,
            patience,
            seats: Default::default(),
            last: AtomicU64::new(0),
            waker: Arc::new(ringer).into(),
        })
    }

    /// Says to the others that this member has arrived `count` times.
    pub(crate) fn say_arrived(&self, count: u64) {
        if let Some(block) = self.block() {
            block.say_arrived(count);
        }
    }

    /// Whether all have arrived that often, as they say; looks for as long as a wait may keep the
    /// processor busy.
    pub(crate) fn have_arrived(&self, count: u64) -> bool {
        let Some(block) = self.block() else { return false };
        self.patience.look(|| block.have_arrived(count).then_some(())).is_some()
    }

    #[inline(always)]
    fn block(&self) -> Option<Block<'_, AtomicU64>> {
        let words = self.segment.board().get(self.place.block.clone());
        words.and_then(|words| Block::new(words, self.members, self.me))
    }

    /// Takes part in the operation of `step`, whose deadline and cancel token count for all of it,
    /// with those of its members that are of this group: `members`, by place. What ends the
    /// operation for any other ends it here.
    ///
    /// An operation that is still under way in another thread, two before this one, is waited for.
    #[inline(always)]
    pub(crate) fn enter<'a>(
        &'a self,
        transport: &'a dyn Transport,
        step: Step<'a>,
        members: &'a [Member],
    ) -> Result<Presence<'a>, TransportError> {
        let sequence = step.operation.id.sequence;
        let round = Round::new(sequence, 0);
        let block = self.block();
        let [even, odd] = &self.seats;
        let seat = if round.is_even() { even } else { odd };
        let seat = seat.lock().unwrap_or_else(PoisonError::into_inner);
        // `claim` has seen both.
        let missing = || TransportError::Peer {
            peer: step.operation.me,
            detail: "the group has no place on the board".to_owned(),
        };
        let block = block.ok_or_else(missing)?;
        let bell = bell(&self.segment, self.place.slot).ok_or_else(missing)?;
        Ok(Presence {
            group: self,
            block,
            bell,
            seat,
            transport,
            // Its rounds are counted here, whatever steps the operation has taken elsewhere.
            step: Step { index: 0, ..step },
            members,
            round,
            slept: false,
            lent: false,
            short: true,
        })
    }
}

impl Drop for SharedGroup {
    fn drop(&mut self) {
        let words = self.segment.board().get(self.place.block.clone());
        let block = words.and_then(|words| Block::new(words, self.members, self.me));
        for seat in &mut self.seats {
            let seat = std::mem::take(seat.get_mut().unwrap_or_else(PoisonError::into_inner));
            let last = Round::new(seat.last, 0);
            if seat.last != 0 && !block.as_ref().is_some_and(|block| block.have_parted(last)) {
                // Somebody who is behind may still read it: it ends with the process.
                std::mem::forget(seat);
            }
        }
    }
}

impl<'a> Presence<'a> {
    /// Shows `head` and `operand` to the others and waits for theirs, which are in `opened` then;
    /// says whether all heads are this member's. What this member showed two operations before may
    /// still be read by others: then it waits for them first.
    ///
    /// `begin` says when the operation is late, and does what else need not be done before others
    /// see the operand: while that is on its way, it takes no time of its own.
    ///
    /// # Errors
    /// As [`Transport::exchange`]. Then it fails for all members, or has failed for them.
    #[inline(always)]
    pub(crate) fn open(
        &mut self,
        head: &Head,
        operand: &[u8],
        exposure: Exposure,
        opened: &mut Opened,
        begin: impl FnOnce() -> Duration,
    ) -> Result<bool, TransportError> {
        let mut begin = Some(begin);
        // A complete operation in between has shown that all others are through with that one.
        let last = self.seat.last;
        if last != 0 && last == self.group.last.load(Ordering::Relaxed) {
            self.begin(begin.take());
            self.await_parting(Round::new(last, 0))?;
        }
        let mut more = [0; INLINE_WORDS - FIRST_DATA_WORDS];
        let (extent, data) = if operand.len() <= INLINE_BYTES {
            let data = std::array::from_fn(|index| word_of(operand, index));
            if operand.len() > size_of_val(&data) {
                for (index, word) in more.iter_mut().enumerate() {
                    *word = word_of(operand, FIRST_DATA_WORDS + index);
                }
            }
            (Extent::short(operand.len()), data)
        } else {
            let Location { offset, length } = self.expose(operand, exposure)?;
            (Extent::located(length, self.lent), [offset, 0, 0, 0])
        };
        let first = First { extent: extent.0, head: head.first, data };
        let more_data = &more[..extent.more_words()];
        let more_head = head.more.as_ref().map_or(&[][..], |more| more);
        self.block.post(self.round, &Post { first, more_head, more_data });
        self.begin(begin);
        self.wait()?;
        self.block.expect_to_post(self.round);

        let mut agree = true;
        for member in 0..self.group.members {
            let First { extent, head: found, data } = self.block.first(self.round, member);
            agree &= found == head.first;
            let extent = Extent(extent);
            self.lent |= extent.is_lent();
            self.short &= extent.is_short();
            let more_start = opened.more.len();
            opened.shown.push(Shown { extent, data, more_start });
            let more_words = extent.more_words();
            if more_words > 0 {
                opened.more.extend_from_slice(&data);
                let words = (0..more_words).map(|i| self.block.more_data(self.round, member, i));
                opened.more.extend(words);
            }
        }
        if let Some(more) = head.more {
            agree = agree && (0..self.group.members).all(|member| self.more_head(member) == more);
        }
        self.settle()?;
        Ok(agree)
    }

    /// Does what [`Presence::open`] was given to do, unless that is done.
    #[inline(always)]
    fn begin(&mut self, begin: Option<impl FnOnce() -> Duration>) {
        if let Some(begin) = begin {
            self.step.deadline = begin();
        }
    }

    /// Whether all operands were part of the posts and nobody had to be waited for for long: then it
    /// has taken less than the patience of a wait.
    pub(crate) fn is_brief(&self) -> bool {
        self.short && !self.slept && self.group.patience.is_short()
    }

    /// The operand of the member at this place, of `expected` bytes if that is known.
    ///
    /// # Errors
    /// When it shows something else.
    #[inline(always)]
    pub(crate) fn opened<'b>(
        &self,
        opened: &'b Opened,
        member: usize,
        expected: Option<usize>,
    ) -> Result<&'b [u8], TransportError>
    where
        'a: 'b,
    {
        let shown = opened.shown.get(member).map_or(0, |shown| shown.extent.length());
        // More than there are addresses for is not there.
        let length = expected.unwrap_or(usize::try_from(shown).unwrap_or(usize::MAX));
        self.opened_part(opened, member, length, 0..length)
    }

    /// This part of the operand, of `length` bytes, of the member at this place. Its owner leaves
    /// no more than that as it is.
    ///
    /// # Errors
    /// When it shows something else.
    #[inline(always)]
    pub(crate) fn opened_part<'b>(
        &self,
        opened: &'b Opened,
        member: usize,
        length: usize,
        part: Range<usize>,
    ) -> Result<&'b [u8], TransportError>
    where
        'a: 'b,
    {
        let Some(Shown { extent, data, more_start }) = opened.shown.get(member) else {
            return Ok(&[]);
        };
        self.expect(member, *extent, length)?;
        if !extent.is_short() {
            let offset = data[0].saturating_add(part.start as u64);
            return self.view(member, offset, part.len() as u64);
        }
        let words = match extent.more_words() {
            0 => data,
            more => {
                let words = opened.more.get(*more_start..).unwrap_or_default();
                words.get(..FIRST_DATA_WORDS + more).unwrap_or_default()
            }
        };
        let bytes = bytemuck::cast_slice(words).get(part);
        bytes.ok_or_else(|| self.breach(member, "shows more than there is room for"))
    }

    /// The heads of those members, by place, whose post is there. All have more: it is anything
    /// where a head ends before.
    pub(crate) fn heads(&self) -> impl Iterator<Item = (usize, Head)> + '_ {
        let round = Round::new(self.step.operation.id.sequence, 0);
        (0..self.group.members).filter_map(move |member| {
            let First { head: first, .. } = self.block.first(round, member);
            let head = Head { first, more: Some(self.more_head(member)) };
            self.block.still_stands(round, member).then_some((member, head))
        })
    }

    /// What follows in the opening of the member at this place: anything if its head has no more.
    fn more_head(&self, member: usize) -> [u64; MORE_HEAD_WORDS] {
        let round = Round::new(self.step.operation.id.sequence, 0);
        std::array::from_fn(|index| self.block.more_head(round, member, index))
    }

    /// The `length` bytes that the member at this place shows in this round.
    ///
    /// # Errors
    /// When it shows something else.
    pub(crate) fn shown(&self, member: usize, length: usize) -> Result<&'a [u8], TransportError> {
        let First { extent, data: [offset, ..], .. } = self.block.first(self.round, member);
        self.expect(member, Extent(extent), length)?;
        self.view(member, offset, length as u64)
    }

    #[inline(always)]
    fn expect(&self, member: usize, shown: Extent, length: usize) -> Result<(), TransportError> {
        if shown.length() == length as u64 {
            return Ok(());
        }
        let found = shown.length();
        Err(self.breach(member, &format!("shows {found} bytes where {length} are expected")))
    }

    fn view(&self, member: usize, offset: u64, length: u64) -> Result<&'a [u8], TransportError> {
        let view = self.group.segment.view(Location { offset, length });
        view.ok_or_else(|| self.breach(member, "shows bytes outside of the memory that is shared"))
    }

    /// Shows `bytes`, which stay as they are until [`Presence::part`], and waits for what the
    /// others show. Nobody reads the operands of the round before any more.
    ///
    /// # Errors
    /// As [`Transport::exchange`].
    pub(crate) fn show(&mut self, bytes: &[u8]) -> Result<(), TransportError> {
        self.next_round();
        let lent_before = std::mem::take(&mut self.lent);
        let Location { offset, length } = self.expose(bytes, Exposure::Lasting)?;
        let Extent(extent) = Extent::located(length, self.lent);
        // Until the round is complete others may read what was lent in the one before.
        self.lent |= lent_before;
        self.short = false;
        let first = First { extent, data: [offset, 0, 0, 0], ..First::default() };
        self.block.post(self.round, &Post { first, ..Post::default() });
        self.wait()?;
        let mut extents =
            (0..self.group.members).map(|member| self.block.first(self.round, member).extent);
        let lent = extents.any(|extent| Extent(extent).is_lent());
        self.settle()?;
        self.lent = lent;
        Ok(())
    }

    /// Ends this member's part: nobody reads its caller's operand any more.
    ///
    /// # Errors
    /// As [`Transport::exchange`]: what was read of others may not be what they showed.
    #[inline(always)]
    pub(crate) fn part(&mut self) -> Result<(), TransportError> {
        if self.lent {
            self.next_round();
            self.block.post(self.round, &Post::default());
            self.wait()?;
            self.settle()?;
            self.seat.shrink();
            return Ok(());
        }
        // What was part of the posts was read before the round was settled.
        let mut members = 0..self.group.members;
        if self.short || members.all(|member| self.block.still_stands(self.round, member)) {
            Ok(())
        } else {
            Err(self.cause())
        }
    }

    /// Waits until all have parted from `last`, which all were in.
    fn await_parting(&self, last: Round) -> Result<(), TransportError> {
        let parted = || self.block.have_parted(last).then_some(());
        if self.group.patience.look(parted).is_some() {
            return Ok(());
        }
        // Nobody rings when it parts.
        loop {
            std::thread::sleep(READERS_INTERVAL);
            if parted().is_some() {
                return Ok(());
            }
            if let Some(error) = self.interruption(self.transport.now()) {
                return Err(error);
            }
        }
    }

    /// Where others can read `bytes`: where they lie, or where a copy does.
    fn expose(&mut self, bytes: &[u8], exposure: Exposure) -> Result<Location, TransportError> {
        let SharedGroup { segment, patience, .. } = self.group;
        let longest_copy = match exposure {
            Exposure::Changing => usize::MAX,
            Exposure::Passing => 0,
            Exposure::Lasting => patience.copied_bytes(),
        };
        if bytes.len() > longest_copy
            && let Some(location) = segment.locate(bytes)
        {
            self.lent = true;
            return Ok(location);
        }
        self.lent |= bytes.len() > KEPT_BYTES;
        let me = self.step.operation.me;
        let failed = |detail| TransportError::Peer { peer: me, detail };
        let [operand, later] = &mut self.seat.copies;
        let copy = if self.step.index == 0 { operand } else { later };
        let copy = keep(segment, copy, bytes.len()).map_err(failed)?;
        copy.copy_from_slice(bytes);
        let outside = || failed("its memory lies outside of the segment".to_owned());
        segment.locate(copy).ok_or_else(outside)
    }

    fn next_round(&mut self) {
        self.step.index += 1;
        self.round = Round::new(self.step.operation.id.sequence, self.step.index as usize);
    }

    /// Waits until all have posted, and leaves the round if that cannot be.
    #[inline(always)]
    fn wait(&mut self) -> Result<(), TransportError> {
        let mut attendance = self.block.attendance(self.round, 0);
        if attendance == Attendance::Full {
            // Of members that post at the same time at least one comes here.
            self.bell.ring();
            return Ok(());
        }
        let mut from = 0;
        self.group.patience.look(|| {
            attendance = self.block.attendance(self.round, from);
            match attendance {
                Attendance::Lacks(member) => {
                    from = member;
                    None
                }
                Attendance::Full | Attendance::Passed(_) => Some(()),
            }
        });
        match attendance {
            Attendance::Full => Ok(()),
            Attendance::Passed(_) => self.leave(None),
            Attendance::Lacks(_) => {
                self.slept = true;
                self.sleep().or_else(|error| self.leave(error))
            }
        }
    }

    /// Sleeps until all have posted or the operation has ended otherwise: with an error if this
    /// member knows it, without if others have left and may say why.
    fn sleep(&self) -> Result<(), Option<TransportError>> {
        loop {
            let now = self.transport.now();
            let timeout = self.step.deadline.saturating_sub(now).min(LOOK_INTERVAL);
            if let Some(seen) = self.bell.sleep(|| self.news(now), timeout) {
                return seen;
            }
        }
    }

    fn news(&self, now: Duration) -> Option<Result<(), Option<TransportError>>> {
        match self.block.attendance(self.round, 0) {
            Attendance::Full => return Some(Ok(())),
            Attendance::Passed(_) => return Some(Err(None)),
            Attendance::Lacks(_) => {}
        }
        if self.block.verdict(self.round) == Some(Outcome::Abandoned) {
            return Some(Err(None));
        }
        self.interruption(now).map(|error| Err(Some(error)))
    }

    /// What ends a wait for those that have not posted.
    fn interruption(&self, now: Duration) -> Option<TransportError> {
        let pending = self.pending();
        let context = Context::from_waker(&self.group.waker);
        let operation = &self.step.operation;
        if let Poll::Ready(error) = self.transport.poll_interrupted(operation, &pending, &context) {
            return Some(error);
        }
        if self.step.cancel.is_some_and(|token| token.poll_cancelled(&context).is_ready()) {
            return Some(TransportError::Cancelled);
        }
        (self.step.deadline <= now).then_some(TransportError::Deadline { pending })
    }

    /// Leaves the round, unless it is complete by now.
    fn leave(&mut self, error: Option<TransportError>) -> Result<(), TransportError> {
        let outcome = self.block.leave(self.round);
        self.bell.ring();
        if outcome == Outcome::Complete {
            return Ok(());
        }
        let error = error.unwrap_or_else(|| self.cause());
        self.await_readers(&error);
        Err(error)
    }

    /// Completes the round, in which all posts are there and have been read.
    #[inline(always)]
    fn settle(&mut self) -> Result<(), TransportError> {
        match self.block.settle(self.round) {
            Outcome::Complete => {
                let sequence = self.step.operation.id.sequence;
                self.seat.last = sequence;
                self.group.last.store(sequence, Ordering::Relaxed);
                Ok(())
            }
            Outcome::Abandoned => {
                let error = self.cause();
                self.await_readers(&error);
                Err(error)
            }
        }
    }

    /// Why others gave the operation up, for which they may need a moment to say.
    fn cause(&self) -> TransportError {
        let until = self.transport.now().saturating_add(CAUSE_GRACE);
        let leaver = self.block.leaver(self.round).unwrap_or(self.group.me);
        let peer = [self.member(leaver)];
        let context = Context::from_waker(&self.group.waker);
        let told = |timeout: Duration| match self.transport.poll_interrupted(
            &self.step.operation,
            &peer,
            &context,
        ) {
            Poll::Ready(error) => Some(error),
            Poll::Pending => timeout.is_zero().then(|| {
                let detail = "it gave the operation up and did not say why";
                self.breach(leaver, detail)
            }),
        };
        loop {
            let timeout = until.saturating_sub(self.transport.now());
            if let Some(error) = self.bell.sleep(|| told(timeout), timeout) {
                return error;
            }
        }
    }

    /// Waits a little for those that may be reading what this member lent, though they will fail
    /// as it does.
    fn await_readers(&self, error: &TransportError) {
        if self.step.index == 0 || !self.lent {
            return;
        }
        let dead = match error {
            TransportError::RankFailed(failure) => Some(failure.rank),
            _ => None,
        };
        let reads = |member: &Member| dead.is_none() || self.transport.rank_of(*member) != dead;
        let until = self.transport.now().saturating_add(READERS_GRACE);
        while self.pending().iter().any(reads) && self.transport.now() < until {
            std::thread::sleep(READERS_INTERVAL);
        }
    }

    /// The members that have not posted, in their order.
    fn pending(&self) -> Vec<Member> {
        let absent = (0..self.group.members).filter(|&m| !self.block.has_posted(self.round, m));
        absent.map(|member| self.member(member)).collect()
    }

    fn member(&self, place: usize) -> Member {
        self.members.get(place).copied().unwrap_or(self.step.operation.me)
    }

    fn breach(&self, place: usize, detail: &str) -> TransportError {
        TransportError::Peer { peer: self.member(place), detail: detail.to_owned() }
    }
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        self.block.part(self.round);
    }
}

/// The word at `index` of `bytes`, which zeros follow. So few are not worth a call that copies.
#[inline(always)]
fn word_of(bytes: &[u8], index: usize) -> u64 {
    let bytes = bytes.get(index * WORD_BYTES..).unwrap_or_default();
    bytes.first_chunk().map_or_else(
        || {
            let in_order =
                |word, (place, byte): (usize, &u8)| word | u64::from(*byte) << (8 * place);
            u64::to_le(bytes.iter().enumerate().fold(0, in_order))
        },
        |word| u64::from_ne_bytes(*word),
    )
}

/// `length` bytes of `memory`, which is made anew unless it has them. Nobody reads it meanwhile.
fn keep<'m>(
    segment: &Segment,
    memory: &'m mut Option<SharedBytes>,
    length: usize,
) -> Result<&'m mut [u8], String> {
    if memory.as_ref().is_none_or(|bytes| bytes.len() < length) {
        *memory = None;
        let room = length.checked_next_power_of_two().filter(|room| *room <= KEPT_BYTES);
        let bytes = segment.arena().allocate(room.unwrap_or(length));
        *memory = Some(bytes.map_err(|error| error.to_string())?);
    }
    let bytes = memory.as_mut().and_then(|bytes| bytes.get_mut(..length));
    bytes.ok_or_else(|| format!("{length} bytes of memory are not there"))
}
