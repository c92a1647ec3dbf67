//! `bitcast_convert` where one side has elements of less than a byte, which have bytes of their own.

use crate::backend::cpu::step::{Input, Kernel, Scratch};

/// The bits of elements of one width as elements of another: a stream that starts with the lowest
/// bits of the first.
#[derive(Debug)]
pub(crate) struct Repack {
    /// Bits of an operand's element, and of a result's.
    from: usize,
    to: usize,
}

impl Repack {
    /// From elements of `from` bits to ones of `to`.
    pub(crate) fn new(from: usize, to: usize) -> Self {
        Self { from, to }
    }
}

/// Bits that are in one byte on either side: every width is a multiple of it.
const UNIT: usize = 2;

impl Kernel for Repack {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        let ([operand], [out]) = (inputs, outputs) else {
            return;
        };
        let place = |bit: usize, width: usize| {
            let (element, within) = (bit / width, bit % width);
            (element * width.div_ceil(8) + within / 8, within % 8)
        };
        let operand = operand.bytes();
        out.fill(0);
        let bits = operand.len() / self.from.div_ceil(8) * self.from;
        for bit in (0..bits).step_by(UNIT) {
            let ((source, low), (target, shift)) = (place(bit, self.from), place(bit, self.to));
            let (Some(byte), Some(out)) = (operand.get(source), out.get_mut(target)) else {
                return;
            };
            *out |= (byte >> low & 0b11) << shift;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repacked(from: usize, to: usize, bytes: &[u8]) -> Vec<u8> {
        let count = bytes.len() / from.div_ceil(8) * from / to;
        let mut out = vec![0xAA; count * to.div_ceil(8)];
        Repack::new(from, to).run(&[Input::Bytes(bytes)], &mut [&mut out], &mut Scratch::default());
        out
    }

    #[test]
    fn bits_keep_their_order_and_what_is_above_them_is_nothing() {
        assert_eq!(repacked(8, 4, &[0xC0, 0x1F]), [0x0, 0xC, 0xF, 0x1]);
        assert_eq!(repacked(4, 8, &[0xF0, 0xC, 0xF, 0x1]), [0xC0, 0x1F]);
        assert_eq!(repacked(2, 4, &[1, 2, 3, 0xFC]), [0b1001, 0b0011]);
        assert_eq!(repacked(4, 2, &[0b1001, 0b0011]), [1, 2, 3, 0]);
        let wide = 0x0123_4567_89AB_CDEF_u64.to_le_bytes();
        let nibbles: Vec<u8> = (0..16).rev().collect();
        assert_eq!(repacked(64, 4, &wide), nibbles);
        assert_eq!(repacked(4, 64, &nibbles), wide);
    }
}
