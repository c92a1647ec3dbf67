//! One message on its way: written to its stream, or read from it.
//!
//! The futures here are polled by the thread whose operands they borrow, after each turn of the
//! reactor that may have changed what they can do.

use std::cell::RefCell;
use std::future::poll_fn;
use std::task::{Poll, ready};

use super::link::{Read, Rest};
use super::reactor::{Arrival, Outbound, Reactor, Unread};
use super::socket::BATCH_CONTENT_BYTES;
use crate::ids::{Member, Rank};
use crate::transport::drive::Failure;
use crate::transport::local::copy;
use crate::transport::wire::{HEAD_BYTES, Head};
use crate::transport::{Tag, TransportError};

/// What is copied at a time to be sent. If it is more than a batch carries, what is left of a turn's
/// chunks takes a batch of its own.
const CHUNK_BYTES: usize = BATCH_CONTENT_BYTES;

/// What is shown of each source at a time: of all sources together it should fit the cache.
const SEGMENT_BYTES: usize = 64 << 10;

/// A message being sent. Dropped before its end, it tells the receiver that no more will come.
struct Sending<'a> {
    reactor: &'a Reactor,
    outbound: Outbound,
    /// What is not yet in the chunk.
    rest: &'a [u8],
    is_finished: bool,
}

/// A message being received.
struct Source<'a> {
    reactor: &'a Reactor,
    from: Member,
    expected_bytes: usize,
    read_bytes: usize,
    content: Content,
}

enum Content {
    Whole(Vec<u8>),
    Stream(Unread),
}

/// What several sources send, shown to a reader as soon as all have sent a segment.
pub(super) struct Pipeline<'a> {
    length_bytes: usize,
    /// Bytes shown so far.
    offset: usize,
    stages: Vec<Stage>,
    read: &'a mut dyn FnMut(usize, &[&[u8]]),
}

struct Stage {
    bytes: Vec<u8>,
    filled: usize,
}

/// Sends `bytes` to the receive under `tag`, which is of `rank`.
///
/// # Cancel safety
/// Dropping the future tells the receiver that no more will come.
pub(super) async fn send(
    reactor: &Reactor,
    rank: Rank,
    tag: Tag,
    bytes: &[u8],
) -> Result<(), Failure> {
    let head = Head::Message { tag, length_bytes: bytes.len() as u64 };
    let head = head.encode().map_err(|error| Failure::Breach(error.to_string()))?;
    // What is short leaves with its head.
    let (first, rest) = bytes.split_at(bytes.len().min(CHUNK_BYTES - HEAD_BYTES));
    let chunk = reactor.lock().copy(&[&head, first]);
    let outbound = Outbound { rank, stream: None, chunk };
    let mut sending = Sending { reactor, outbound, rest, is_finished: false };
    poll_fn(|_| sending.poll_written()).await
}

impl Sending<'_> {
    /// Writes no more than fills the next batches, so that what is copied is soon sent.
    fn poll_written(&mut self) -> Poll<Result<(), Failure>> {
        let mut state = self.reactor.lock();
        loop {
            if let (Some(stream), true) = (self.outbound.stream, self.is_finished) {
                return state.poll_sent(self.outbound.rank, stream);
            }
            let stream = ready!(state.poll_write(&mut self.outbound))?;
            if self.rest.is_empty() {
                state.finish(stream);
                self.is_finished = true;
                continue;
            }
            if state.has_batches(stream) {
                return Poll::Pending;
            }
            let (chunk, rest) = self.rest.split_at(self.rest.len().min(CHUNK_BYTES));
            self.outbound.chunk = state.copy(&[chunk]);
            self.rest = rest;
        }
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if let (Some(stream), false) = (self.outbound.stream, self.is_finished) {
            self.reactor.lock().reset(stream);
        }
    }
}

/// Fills `bytes` with the message under `tag`.
///
/// # Cancel safety
/// Dropping the future loses the message.
pub(super) async fn receive(reactor: &Reactor, tag: Tag, bytes: &mut [u8]) -> Result<(), Failure> {
    let mut source = Source::open(reactor, tag, bytes.len()).await?;
    if let Content::Whole(message) = &source.content {
        return copy(message, bytes);
    }
    let mut filled = 0;
    while filled < bytes.len() {
        filled += poll_fn(|_| source.poll_read(&mut bytes[filled..])).await?;
    }
    poll_fn(|_| source.poll_end()).await
}

/// Receives the message under `tag` as source `index` of `pipeline`.
///
/// # Cancel safety
/// As [`receive`].
pub(super) async fn feed(
    reactor: &Reactor,
    tag: Tag,
    pipeline: &RefCell<Pipeline<'_>>,
    index: usize,
) -> Result<(), Failure> {
    let length_bytes = pipeline.borrow().length_bytes;
    let mut source = Source::open(reactor, tag, length_bytes).await?;
    while source.read_bytes < length_bytes {
        poll_fn(|_| {
            let mut pipeline = pipeline.borrow_mut();
            let filled = ready!(source.poll_read(pipeline.room(index)))?;
            if pipeline.advance(index, filled) {
                // There is room again, also for those that were asked before.
                reactor.lock().go_on();
            }
            Poll::Ready(Ok::<(), Failure>(()))
        })
        .await?;
    }
    poll_fn(|_| source.poll_end()).await
}

impl<'a> Source<'a> {
    /// Waits for the message under `tag`, which should have `expected_bytes`.
    async fn open(reactor: &'a Reactor, tag: Tag, expected_bytes: usize) -> Result<Self, Failure> {
        let arrival = poll_fn(|context| reactor.post.poll_take(tag, context)).await;
        let (announced, content) = match arrival {
            Arrival::Local(message) => (message.len() as u64, Content::Whole(message)),
            Arrival::Short { length_bytes, bytes, .. } => (length_bytes, Content::Whole(bytes)),
            Arrival::Stream { stream, length_bytes } => (length_bytes, Content::Stream(stream)),
        };
        if announced != expected_bytes as u64 {
            let detail = format!("sent {announced} bytes where {expected_bytes} are expected");
            return Err(Failure::Breach(detail));
        }
        let source = Self { reactor, from: tag.from, expected_bytes, read_bytes: 0, content };
        match &source.content {
            Content::Whole(bytes) if bytes.len() < expected_bytes => {
                Err(source.ended_early(bytes.len()))
            }
            Content::Whole(bytes) if bytes.len() > expected_bytes => Err(source.ended_late()),
            _ => Ok(source),
        }
    }

    /// Reads into `room` what is there; pending too if there is no room.
    fn poll_read(&mut self, room: &mut [u8]) -> Poll<Result<usize, Failure>> {
        let filled = match &mut self.content {
            Content::Whole(bytes) => {
                let rest = bytes.get(self.read_bytes..).unwrap_or_default();
                let filled = rest.len().min(room.len());
                room[..filled].copy_from_slice(&rest[..filled]);
                filled
            }
            Content::Stream(unread) => {
                let room_bytes = room.len().min(self.expected_bytes - self.read_bytes);
                let Read { filled, rest } =
                    self.reactor.lock().read(unread.stream, &mut room[..room_bytes])?;
                match rest {
                    Rest::Unknown | Rest::Blocked => {}
                    Rest::End => {
                        unread.is_over = true;
                        if self.read_bytes + filled < self.expected_bytes {
                            let sent = self.read_bytes + filled;
                            return Poll::Ready(Err(self.ended_early(sent)));
                        }
                    }
                    Rest::Broken => {
                        unread.is_over = true;
                        return Poll::Ready(Err(self.gave_up()));
                    }
                }
                filled
            }
        };
        self.read_bytes += filled;
        if filled > 0 { Poll::Ready(Ok(filled)) } else { Poll::Pending }
    }

    /// Ready when the message has ended where it should.
    fn poll_end(&mut self) -> Poll<Result<(), Failure>> {
        let Content::Stream(unread) = &mut self.content else { return Poll::Ready(Ok(())) };
        if unread.is_over {
            return Poll::Ready(Ok(()));
        }
        let Read { filled, rest } = self.reactor.lock().read(unread.stream, &mut [0])?;
        match rest {
            _ if filled > 0 => Poll::Ready(Err(self.ended_late())),
            Rest::Unknown | Rest::Blocked => Poll::Pending,
            Rest::End => {
                unread.is_over = true;
                Poll::Ready(Ok(()))
            }
            Rest::Broken => {
                unread.is_over = true;
                Poll::Ready(Err(self.gave_up()))
            }
        }
    }

    fn ended_early(&self, sent: usize) -> Failure {
        Failure::Breach(format!("announced {} bytes and sent {sent}", self.expected_bytes))
    }

    fn ended_late(&self) -> Failure {
        Failure::Breach(format!("sent more than the {} bytes announced", self.expected_bytes))
    }

    fn gave_up(&self) -> Failure {
        let detail = "it stopped sending".to_owned();
        Failure::Gone(TransportError::Peer { peer: self.from, detail })
    }
}

impl<'a> Pipeline<'a> {
    /// A pipeline for `sources` messages of `length_bytes` each.
    pub(super) fn new(
        sources: usize,
        length_bytes: usize,
        read: &'a mut dyn FnMut(usize, &[&[u8]]),
    ) -> Self {
        let stage = || Stage { bytes: vec![0; SEGMENT_BYTES.min(length_bytes)], filled: 0 };
        let stages = std::iter::repeat_with(stage).take(sources).collect();
        Self { length_bytes, offset: 0, stages, read }
    }

    /// Bytes of the segment that is being filled.
    fn segment_bytes(&self) -> usize {
        SEGMENT_BYTES.min(self.length_bytes - self.offset)
    }

    /// What source `index` has not filled of it.
    fn room(&mut self, index: usize) -> &mut [u8] {
        let segment_bytes = self.segment_bytes();
        match self.stages.get_mut(index) {
            Some(Stage { bytes, filled }) => &mut bytes[*filled..segment_bytes],
            None => &mut [],
        }
    }

    /// Source `index` has filled this much more; says whether that completed the segment, which
    /// then has been shown.
    fn advance(&mut self, index: usize, bytes: usize) -> bool {
        if let Some(stage) = self.stages.get_mut(index) {
            stage.filled += bytes;
        }
        let segment_bytes = self.segment_bytes();
        if self.stages.iter().any(|stage| stage.filled < segment_bytes) {
            return false;
        }
        let views: Vec<&[u8]> =
            self.stages.iter().map(|stage| &stage.bytes[..segment_bytes]).collect();
        (self.read)(self.offset, &views);
        self.offset += segment_bytes;
        self.stages.iter_mut().for_each(|stage| stage.filled = 0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_shown_when_all_sources_have_them_and_cover_each_byte_once() {
        for length in [1, SEGMENT_BYTES - 1, SEGMENT_BYTES, SEGMENT_BYTES + 1, 3 * SEGMENT_BYTES] {
            let mut shown = Vec::new();
            let mut read = |offset: usize, views: &[&[u8]]| {
                shown.push((offset, views.iter().map(|view| view.len()).collect::<Vec<_>>()));
            };
            let mut pipeline = Pipeline::new(2, length, &mut read);
            let mut turn = 0_usize;
            while pipeline.offset < length {
                // The first source is always ahead.
                let index = usize::from(!pipeline.room(0).is_empty() && turn % 3 == 2);
                let index = if pipeline.room(0).is_empty() { 1 } else { index };
                let step = pipeline.room(index).len().min(10_000);
                let was = pipeline.offset;
                let shows = pipeline.advance(index, step);
                assert_eq!(shows, pipeline.offset > was);
                turn += 1;
            }
            let mut expected_offset = 0;
            for (offset, lengths) in shown {
                assert_eq!(offset, expected_offset);
                assert_eq!(lengths[0], lengths[1]);
                expected_offset += lengths[0];
            }
            assert_eq!(expected_offset, length);
        }
    }
}
