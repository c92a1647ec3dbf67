//! One QUIC connection with a peer, and the streams on it that nobody has taken yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use quinn_proto::{
    Connection, ConnectionError, ConnectionHandle, Dir, ReadError, ReadableError, StreamId,
    Transmit, VarInt, WriteError,
};

use super::window::is_open;
use crate::ids::Rank;

/// A connection, as long as the process lives; QUIC's own handles are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LinkId(pub(super) u64);

/// A stream of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamRef {
    pub(super) link: LinkId,
    pub(super) id: StreamId,
}

/// One connection.
pub(super) struct Link {
    pub(super) connection: Connection,
    pub(super) handle: ConnectionHandle,
    /// Who is at the other end; of a connection that came in, known when it is established.
    pub(super) peer: Option<Rank>,
    pub(super) dialled: bool,
    /// When its handshake takes too long; `None` once it is established.
    pub(super) handshake_until: Option<Instant>,
    pub(super) ended: Option<ConnectionError>,
    /// Streams of which too little has arrived to know what to do with them.
    pub(super) beginnings: BTreeMap<StreamId, Vec<u8>>,
    /// Streams of ours whose end the peer has not acknowledged.
    pub(super) unacknowledged: BTreeSet<StreamId>,
    /// Bytes written and not sent, roughly, and one for each end: none when all are on their way,
    /// as far as the peer takes them.
    pub(super) unsent_bytes: usize,
    /// Bytes of short messages from this peer that wait for their receives.
    pub(super) kept_bytes: Arc<AtomicUsize>,
    /// Whether it is in the list of those that may have something to send.
    pub(super) is_touched: bool,
}

/// What could be read from a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Read {
    /// Bytes read.
    pub(super) filled: usize,
    /// What comes after them.
    pub(super) rest: Rest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// The buffer is full; there may be more.
    Unknown,
    /// Nothing yet.
    Blocked,
    /// Nothing: the stream ends here.
    End,
    /// The sender has given it up, or it is no longer open.
    Broken,
}

/// Part of what one peer may make this process keep, given back when dropped.
#[derive(Debug)]
pub(super) struct Charge {
    kept_bytes: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.kept_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Link {
    pub(super) fn new(connection: Connection, handle: ConnectionHandle, until: Instant) -> Self {
        Self {
            connection,
            handle,
            peer: None,
            dialled: false,
            handshake_until: Some(until),
            ended: None,
            beginnings: BTreeMap::new(),
            unacknowledged: BTreeSet::new(),
            unsent_bytes: 0,
            kept_bytes: Arc::default(),
            is_touched: false,
        }
    }

    pub(super) fn is_established(&self) -> bool {
        self.handshake_until.is_none()
    }

    /// Whether the peer too has established it. What a dialler sends earlier cannot be read, and
    /// makes the end of the handshake part of a large batch that is lost as a whole.
    pub(super) fn is_confirmed(&self) -> bool {
        self.is_established()
            && (!self.dialled || self.connection.stats().frame_rx.handshake_done > 0)
    }

    /// When something has to be done although nothing arrives.
    pub(super) fn timeout(&mut self) -> Option<Instant> {
        let timer = self.connection.poll_timeout();
        timer.into_iter().chain(self.handshake_until).min()
    }

    /// Begins a stream; `None` while the peer allows no further.
    pub(super) fn open(&mut self) -> Option<StreamId> {
        self.connection.streams().open(Dir::Uni)
    }

    /// Writes what can be written of `chunk`, and leaves the rest in it.
    pub(super) fn write(&mut self, id: StreamId, chunk: &mut Bytes) -> Result<(), WriteError> {
        while !chunk.is_empty() {
            let mut chunks = [std::mem::take(chunk)];
            let written = self.connection.send_stream(id).write_chunks(&mut chunks);
            let [rest] = chunks;
            *chunk = rest;
            self.unsent_bytes += written?.bytes;
        }
        Ok(())
    }

    /// Puts together the next batch, of at most `packets`; `None` if there is nothing to send, or
    /// too much under way.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        packets: usize,
        batch: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let is_open = is_open(self.connection.congestion_state());
        let transmit = self.connection.poll_transmit(now, packets, batch);
        if is_open {
            let sent = transmit.as_ref().map_or(usize::MAX, |transmit| transmit.size);
            self.unsent_bytes = self.unsent_bytes.saturating_sub(sent);
        }
        transmit
    }

    /// Ends a stream of ours; false if the peer has stopped it.
    pub(super) fn finish(&mut self, id: StreamId) -> bool {
        let finished = self.connection.send_stream(id).finish().is_ok();
        if finished {
            self.unsent_bytes += 1;
            self.unacknowledged.insert(id);
        }
        finished
    }

    pub(super) fn reset(&mut self, id: StreamId, code: VarInt) {
        // It fails only if the stream has ended.
        let _ = self.connection.send_stream(id).reset(code);
    }

    pub(super) fn stop(&mut self, id: StreamId, code: VarInt) {
        // It fails only if the stream has ended.
        let _ = self.connection.recv_stream(id).stop(code);
    }

    /// Reads into `bytes` as much as is there; also says whether the peer has to hear that there
    /// is room again.
    pub(super) fn read(&mut self, id: StreamId, bytes: &mut [u8]) -> (Read, bool) {
        let mut filled = 0;
        let mut stream = self.connection.recv_stream(id);
        let mut chunks = match stream.read(true) {
            Ok(chunks) => chunks,
            Err(ReadableError::ClosedStream | ReadableError::IllegalOrderedRead) => {
                return (Read { filled, rest: Rest::Broken }, false);
            }
        };
        let rest = loop {
            let room = &mut bytes[filled..];
            if room.is_empty() {
                break Rest::Unknown;
            }
            match chunks.next(room.len()) {
                Ok(Some(chunk)) => {
                    room[..chunk.bytes.len()].copy_from_slice(&chunk.bytes);
                    filled += chunk.bytes.len();
                }
                Ok(None) => break Rest::End,
                Err(ReadError::Blocked) => break Rest::Blocked,
                Err(ReadError::Reset(_)) => break Rest::Broken,
            }
        };
        (Read { filled, rest }, chunks.finalize().should_transmit())
    }

    /// Counts `bytes` more as kept for this peer.
    pub(super) fn charge(&self, bytes: usize) -> Charge {
        self.kept_bytes.fetch_add(bytes, Ordering::Relaxed);
        Charge { kept_bytes: Arc::clone(&self.kept_bytes), bytes }
    }
}
