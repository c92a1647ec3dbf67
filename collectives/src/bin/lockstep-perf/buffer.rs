//! Memory for an operand between guard bytes, which nobody may write.
//!
//! Where the process shares memory it lies there, as a runtime's arrays do, so that what is measured
//! is what a program gets.

use std::collections::TryReserveError;
use std::ops::DerefMut;
use std::sync::Arc;

use lockstep_collectives::shared_memory::Arena;

/// Guard bytes on each side: a cache line, so that the operand keeps its alignment.
const GUARD_BYTES: usize = 64;

/// An operand between guard bytes.
pub(crate) struct Buffer {
    bytes: Box<dyn DerefMut<Target = [u8]>>,
    length: usize,
}

impl Buffer {
    /// `length` zero bytes between fresh guards, in `arena` if it has room for them.
    pub(crate) fn new(arena: Option<&Arc<Arena>>, length: usize) -> Result<Self, TryReserveError> {
        // A sum that is too large is refused as one that is nearly so.
        let total = length.saturating_add(2 * GUARD_BYTES);
        let shared = arena.and_then(|arena| arena.allocate(total).ok());
        let mut bytes: Box<dyn DerefMut<Target = [u8]>> = match shared {
            Some(mut bytes) => {
                bytes.fill(0);
                Box::new(bytes)
            }
            None => {
                let mut bytes = Vec::new();
                bytes.try_reserve_exact(total)?;
                bytes.resize(total, 0);
                Box::new(bytes)
            }
        };
        for (byte, guard) in bytes.iter_mut().zip(guard()) {
            *byte = guard;
        }
        for (byte, guard) in bytes[GUARD_BYTES + length..].iter_mut().zip(guard()) {
            *byte = guard;
        }
        Ok(Self { bytes, length })
    }

    /// The operand.
    pub(crate) fn operand(&self) -> &[u8] {
        &self.bytes[GUARD_BYTES..][..self.length]
    }

    /// The operand.
    pub(crate) fn operand_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[GUARD_BYTES..][..self.length]
    }

    /// How many guard bytes have changed.
    pub(crate) fn damage(&self) -> usize {
        let before = self.bytes[..GUARD_BYTES].iter();
        let after = self.bytes[GUARD_BYTES + self.length..].iter();
        let guards = before.zip(guard()).chain(after.zip(guard()));
        guards.filter(|(found, expected)| **found != *expected).count()
    }
}

/// No two neighbours are the same, so that shifted bytes show as well.
fn guard() -> impl Iterator<Item = u8> {
    (0xA5..).take(GUARD_BYTES)
}

#[cfg(test)]
mod tests {
    use lockstep_collectives::World;

    use super::*;

    #[test]
    fn a_write_beside_the_operand_is_damage() {
        let world = World::solo(2);
        for (length, arena) in [(0, None), (1, None), (100, None), (100, world.arena())] {
            let mut buffer = Buffer::new(arena, length).unwrap();
            let shared = world.arena().is_some_and(|arena| arena.bytes_in_use() > 0);
            assert_eq!(shared, arena.is_some());
            buffer.operand_mut().fill(7);
            assert_eq!((buffer.operand(), buffer.damage()), (&vec![7; length][..], 0));
            buffer.bytes[GUARD_BYTES - 1] ^= 1;
            buffer.bytes[GUARD_BYTES + length] ^= 1;
            assert_eq!(buffer.damage(), 2);
        }
        assert!(Buffer::new(world.arena(), usize::MAX).is_err());
    }
}
