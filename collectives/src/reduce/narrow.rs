//! Integers of less than a byte, each in the low bits of a byte of its own.
//!
//! The bits above are ignored where they are read and 0 where they are written.

use bytemuck::{Pod, Zeroable};

use super::number::{Arithmetic, Bitwise, Ordered};

/// An integer of `BITS` bits, in two's complement if `SIGNED`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(transparent)]
pub(super) struct Narrow<const BITS: u32, const SIGNED: bool>(u8);

/// Sums and products are those of the bytes in which the integers are: a result's low bits depend
/// on no more than the operands' low bits.
impl<const BITS: u32, const SIGNED: bool> Arithmetic for Narrow<BITS, SIGNED> {
    type Accumulator = i8;

    fn widen(self) -> i8 {
        let spare = 8 - BITS;
        let high = self.0 << spare;
        if SIGNED { high.cast_signed() >> spare } else { (high >> spare).cast_signed() }
    }
    fn round(accumulator: i8) -> Self {
        Self(accumulator.cast_unsigned() & (u8::MAX >> (8 - BITS)))
    }
    fn sum(a: i8, b: i8) -> i8 {
        a.wrapping_add(b)
    }
    fn product(a: i8, b: i8) -> i8 {
        a.wrapping_mul(b)
    }
}

/// Extremes are operands, so they are in range and need no wrapping.
impl<const BITS: u32, const SIGNED: bool> Ordered for Narrow<BITS, SIGNED> {
    fn min(a: i8, b: i8) -> i8 {
        Ord::min(a, b)
    }
    fn max(a: i8, b: i8) -> i8 {
        Ord::max(a, b)
    }
}

impl<const BITS: u32, const SIGNED: bool> Bitwise for Narrow<BITS, SIGNED> {
    fn and(a: i8, b: i8) -> i8 {
        a & b
    }
    fn or(a: i8, b: i8) -> i8 {
        a | b
    }
    fn xor(a: i8, b: i8) -> i8 {
        a ^ b
    }
}
