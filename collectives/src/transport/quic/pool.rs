//! Buffers of one batch each, used again once nobody holds a part of them: memory that is given
//! back for every batch costs a page fault for every page of the next.

use std::collections::VecDeque;

use bytes::{BufMut, BytesMut};

/// The largest batch.
pub(super) const BUFFER_BYTES: usize = 64 << 10;

/// Buffers kept; what is copied when all are held gets memory of its own.
const BUFFERS: usize = 128;

/// Buffers asked before it is taken that none is free.
const TRIES: usize = 4;

/// What is shorter gets memory of its own too: it may be held for long, and would hold its buffer.
const SHORT_BYTES: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Pool {
    /// The one lent longest ago comes first.
    buffers: VecDeque<BytesMut>,
}

impl Pool {
    /// A copy of the parts, one after the other.
    pub(super) fn copy(&mut self, parts: &[&[u8]]) -> BytesMut {
        let length = parts.iter().map(|part| part.len()).sum();
        let pooled = (SHORT_BYTES..=BUFFER_BYTES).contains(&length);
        let mut buffer = pooled
            .then(|| self.take())
            .flatten()
            .unwrap_or_else(|| BytesMut::with_capacity(length));
        for part in parts {
            buffer.put_slice(part);
        }
        let copy = buffer.split();
        if pooled && self.buffers.len() < BUFFERS {
            self.buffers.push_back(buffer);
        }
        copy
    }

    /// An empty buffer; `None` if there are enough and none was found free.
    fn take(&mut self) -> Option<BytesMut> {
        for _ in 0..TRIES.min(self.buffers.len()) {
            let mut oldest = self.buffers.pop_front()?;
            if oldest.try_reclaim(BUFFER_BYTES) {
                return Some(oldest);
            }
            self.buffers.push_back(oldest);
        }
        (self.buffers.len() < BUFFERS).then(|| BytesMut::with_capacity(BUFFER_BYTES))
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
}
