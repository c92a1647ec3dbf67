//! Memory for an operand between guard bytes, which nobody may write.

use std::collections::TryReserveError;

/// Guard bytes on each side: a cache line, so that the operand keeps its alignment.
const GUARD_BYTES: usize = 64;

/// An operand between guard bytes.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    length: usize,
}

impl Buffer {
    /// `length` zero bytes between fresh guards.
    pub(crate) fn new(length: usize) -> Result<Self, TryReserveError> {
        let mut bytes = Vec::new();
        // A sum that is too large is refused as one that is nearly so.
        bytes.try_reserve_exact(length.saturating_add(2 * GUARD_BYTES))?;
        bytes.extend(guard());
        bytes.resize(GUARD_BYTES + length, 0);
        bytes.extend(guard());
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
    use super::*;

    #[test]
    fn a_write_beside_the_operand_is_damage() {
        for length in [0, 1, 100] {
            let mut buffer = Buffer::new(length).unwrap();
            buffer.operand_mut().fill(7);
            assert_eq!((buffer.operand(), buffer.damage()), (&vec![7; length][..], 0));
            buffer.bytes[GUARD_BYTES - 1] ^= 1;
            buffer.bytes[GUARD_BYTES + length] ^= 1;
            assert_eq!(buffer.damage(), 2);
        }
        assert!(Buffer::new(usize::MAX).is_err());
    }
}
