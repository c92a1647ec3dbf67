//! Buffers of one batch each, used again once nobody holds a part of them: memory that is given
//! back for every batch costs a page fault for every page of the next.

use bytes::{BufMut, BytesMut};

/// The largest batch.
const BUFFER_BYTES: usize = 64 << 10;

/// Buffers kept; what is copied when all are held gets memory of its own.
const BUFFERS: usize = 128;

/// What is shorter gets memory of its own too: it may be held for long, and would hold its buffer.
const SHORT_BYTES: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Pool {
    /// The first that is free is taken, so that few are in use and those stay in the cache.
    buffers: Vec<BytesMut>,
}

/// Where batches are received, and kept without a copy if they are long.
#[derive(Debug)]
pub(super) struct Inbox {
    pool: Pool,
    /// Of [`BUFFER_BYTES`].
    room: BytesMut,
}

impl Pool {
    /// A copy of the parts, one after the other.
    pub(super) fn copy(&mut self, parts: &[&[u8]]) -> BytesMut {
        let length = parts.iter().map(|part| part.len()).sum();
        let pooled =
            if (SHORT_BYTES..=BUFFER_BYTES).contains(&length) { self.free() } else { None };
        let mut own = BytesMut::new();
        let buffer = pooled.unwrap_or(&mut own);
        buffer.reserve(length);
        for part in parts {
            buffer.put_slice(part);
        }
        buffer.split()
    }

    /// An empty buffer; `None` if there are enough and all are held.
    fn free(&mut self) -> Option<&mut BytesMut> {
        let free = self.buffers.iter_mut().position(|buffer| buffer.try_reclaim(BUFFER_BYTES));
        if free.is_none() && self.buffers.len() < BUFFERS {
            self.buffers.push(BytesMut::with_capacity(BUFFER_BYTES));
            return self.buffers.last_mut();
        }
        self.buffers.get_mut(free?)
    }
}

impl Inbox {
    pub(super) fn new() -> Self {
        Self { pool: Pool::default(), room: BytesMut::zeroed(BUFFER_BYTES) }
    }

    /// Where to receive a batch.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.room
    }

    /// What has been received: the first `length` bytes of the room.
    pub(super) fn take(&mut self, length: usize) -> BytesMut {
        let length = length.min(self.room.len());
        if length >= SHORT_BYTES
            && let Some(next) = self.pool.free()
        {
            next.resize(BUFFER_BYTES, 0);
            let mut batch = std::mem::replace(&mut self.room, next.split());
            batch.truncate(length);
            return batch;
        }
        BytesMut::from(&self.room[..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_when_it_is_free_and_not_before() {
        let mut pool = Pool::default();
        let bytes: Vec<u8> = (0..50_000_u32).map(|n| (n % 251) as u8).collect();
        let mut first = pool.copy(&[&bytes[..100], &bytes[100..]]);
        assert_eq!(first, bytes);
        let places = [first.as_ptr()];
        let part = first.split_to(100);
        drop(first);
        let second = pool.copy(&[&bytes]);
        assert_eq!((&part[..], &second[..]), (&bytes[..100], &bytes[..]));
        let places = [places[0], second.as_ptr()];
        drop((part, second));
        for _ in 0..4 {
            assert!(places.contains(&pool.copy(&[&bytes]).as_ptr()));
        }
    }

    #[test]
    fn what_is_held_for_long_holds_a_bounded_number_of_buffers() {
        let mut pool = Pool::default();
        let held: Vec<_> = (0..2 * BUFFERS).map(|_| pool.copy(&[&[7; 5000]])).collect();
        assert!(pool.buffers.len() <= BUFFERS);
        assert!(held.iter().all(|copy| copy[..] == [7; 5000]));
        assert_eq!(pool.copy(&[&[1; 10]]).len(), 10);
    }

    #[test]
    fn long_batches_keep_their_place_and_hold_a_bounded_number_of_buffers() {
        let mut inbox = Inbox::new();
        let mut held = Vec::new();
        for turn in 0..=u8::MAX {
            for (length, salt) in [(SHORT_BYTES - 1, 3), (SHORT_BYTES, 5), (BUFFER_BYTES, 7)] {
                let mark = turn.wrapping_mul(salt);
                inbox.room()[..length].fill(mark);
                let place = inbox.room().as_ptr();
                let batch = inbox.take(length);
                assert_eq!(batch.as_ptr() == place, length >= SHORT_BYTES && held.len() < BUFFERS);
                assert_eq!(inbox.room().len(), BUFFER_BYTES);
                assert_eq!((batch.len(), batch.iter().all(|byte| *byte == mark)), (length, true));
                if length == SHORT_BYTES {
                    held.push((mark, batch));
                }
            }
        }
        assert!(inbox.pool.buffers.len() <= BUFFERS);
        assert!(held.iter().all(|(mark, batch)| batch.iter().all(|byte| byte == mark)));
        drop(held);
        let place = inbox.room().as_ptr();
        assert_eq!(inbox.take(BUFFER_BYTES).as_ptr(), place);
    }
}
