//! What peers send: the beginning of each stream is read here, until it is known where it belongs.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::link::{Charge, Read, Rest, StreamRef};
use super::State;
use crate::ids::{Member, Rank};
use crate::transport::wire::{HEAD_BYTES, Head};
use crate::transport::{MAX_NOTICE_BYTES, Tag};

/// The longest message that is taken off its stream before its receive is there.
pub(in crate::transport::quic) const SHORT_BYTES: usize = 4096;

/// Bytes of short messages that one peer may have waiting; what exceeds them stays on its stream.
pub(in crate::transport::quic) const KEPT_BYTES: usize = 16 << 20;

/// A message, or the stream it will be read from.
pub(in crate::transport::quic) enum Arrival {
    /// From a member of this process.
    Local(Vec<u8>),
    /// A short message as it came: fewer bytes than announced if it ended early, and one more if
    /// it did not end there.
    Short { length_bytes: u64, bytes: Vec<u8>, _charge: Charge },
    /// A message to be read.
    Stream { stream: Unread, length_bytes: u64 },
}

/// A stream that its sender is told to stop if it is dropped before its end.
pub(in crate::transport::quic) struct Unread {
    pub(in crate::transport::quic) stream: StreamRef,
    pub(in crate::transport::quic) is_over: bool,
    abandoned: Arc<Abandoned>,
}

/// Streams to be stopped in the next turn.
#[derive(Default)]
pub(super) struct Abandoned(Mutex<Vec<StreamRef>>);

impl State {
    /// Reads the beginning of a stream until it is known where it belongs, and a short message to
    /// its end.
    pub(super) fn begin(&mut self, stream: StreamRef) {
        let Some(link) = self.links.get_mut(&stream.link) else { return };
        // Streams that are no longer here have a reader.
        let Some(mut bytes) = link.beginnings.remove(&stream.id) else { return };
        let Some(rank) = link.peer else {
            // It is heard when it is known who speaks.
            link.beginnings.insert(stream.id, bytes);
            return;
        };
        loop {
            // Without a head it is read first; then all that follows, and whether that is all.
            let head = bytes.first_chunk::<HEAD_BYTES>().map(Head::decode);
            let wanted = match head {
                None => HEAD_BYTES,
                Some(Ok(Head::Message { tag, length_bytes })) => {
                    if !self.is_from(rank, tag.from, tag.to) {
                        self.refuse(
                            stream,
                            &format_args!("{rank}: a message from {} to {}", tag.from, tag.to),
                        );
                        return;
                    }
                    match usize::try_from(length_bytes) {
                        Ok(length) if length <= SHORT_BYTES && self.may_keep(stream) => {
                            HEAD_BYTES + length + 1
                        }
                        _ => return self.deliver_stream(tag, stream, length_bytes),
                    }
                }
                Some(Ok(Head::Notice { length_bytes, .. })) => {
                    let length = length_bytes as usize;
                    if length > MAX_NOTICE_BYTES {
                        let reason = format_args!("{rank}: a notice of {length} bytes");
                        return self.refuse(stream, &reason);
                    }
                    HEAD_BYTES + length + 1
                }
                Some(Err(error)) => return self.refuse(stream, &format_args!("{rank}: {error}")),
            };
            let filled = bytes.len();
            bytes.resize(wanted, 0);
            let read = self.read(stream, &mut bytes[filled..]);
            // A connection that ended leaves what it did not bring to an end.
            let Ok(Read { filled: more, rest }) = read else { return };
            bytes.truncate(filled + more);
            match rest {
                Rest::Unknown if bytes.len() > HEAD_BYTES => {
                    self.stop(stream);
                    return self.deliver_short(rank, stream, &bytes);
                }
                Rest::Unknown => {}
                Rest::End => return self.deliver_short(rank, stream, &bytes),
                // The sender gave it up.
                Rest::Broken => return,
                Rest::Blocked => {
                    if let Some(link) = self.links.get_mut(&stream.link) {
                        link.beginnings.insert(stream.id, bytes);
                    }
                    return;
                }
            }
        }
    }

    fn is_from(&self, rank: Rank, from: Member, to: Member) -> bool {
        self.topology.rank_of(from) == Some(rank) && self.topology.rank_of(to) == Some(self.rank)
    }

    /// Whether a short message may be taken off its stream.
    fn may_keep(&self, stream: StreamRef) -> bool {
        let link = self.links.get(&stream.link);
        link.is_some_and(|link| link.kept_bytes.load(Ordering::Relaxed) < KEPT_BYTES)
    }

    fn deliver_stream(&mut self, tag: Tag, stream: StreamRef, length_bytes: u64) {
        let abandoned = Arc::clone(&self.abandoned);
        let unread = Unread { stream, is_over: false, abandoned };
        // One whose operation is over here is dropped, and so stopped.
        let _ = self.post.deliver(tag, Arrival::Stream { stream: unread, length_bytes });
    }

    /// Delivers a head and what came with it.
    fn deliver_short(&mut self, rank: Rank, stream: StreamRef, bytes: &[u8]) {
        let Some((head, body)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return };
        match Head::decode(head) {
            Ok(Head::Message { tag, length_bytes }) => {
                let Some(link) = self.links.get(&stream.link) else { return };
                let charge = link.charge(bytes.len());
                let bytes = body.to_vec();
                // One whose operation is over here is dropped.
                let _ =
                    self.post.deliver(tag, Arrival::Short { length_bytes, bytes, _charge: charge });
            }
            Ok(Head::Notice { operation, length_bytes }) if body.len() == length_bytes as usize => {
                self.post.publish(|news| news.abort(operation, rank, body.to_vec()));
            }
            Ok(Head::Notice { .. }) | Err(_) => {}
        }
    }

    fn refuse(&mut self, stream: StreamRef, reason: &dyn fmt::Display) {
        if let Some(link) = self.links.get(&stream.link) {
            self.refusals.log(link.connection.remote_address(), reason);
        }
        self.stop(stream);
    }
}

impl Abandoned {
    fn streams(&self) -> MutexGuard<'_, Vec<StreamRef>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.streams().is_empty()
    }

    pub(super) fn take(&self) -> Vec<StreamRef> {
        std::mem::take(&mut *self.streams())
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        if !self.is_over {
            self.abandoned.streams().push(self.stream);
        }
    }
}
