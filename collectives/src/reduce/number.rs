//! What a fold does with one element: integers, booleans and the floats that hardware or `half`
//! knows.

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};

/// The arithmetic of one element type.
pub(super) trait Arithmetic: Pod {
    /// What a fold is carried in.
    type Accumulator: Pod;

    fn widen(self) -> Self::Accumulator;
    fn round(accumulator: Self::Accumulator) -> Self;

    fn sum(a: Self::Accumulator, b: Self::Accumulator) -> Self::Accumulator;
    fn product(a: Self::Accumulator, b: Self::Accumulator) -> Self::Accumulator;
}

/// The order of one element type.
pub(super) trait Ordered: Arithmetic {
    fn min(a: Self::Accumulator, b: Self::Accumulator) -> Self::Accumulator;
    fn max(a: Self::Accumulator, b: Self::Accumulator) -> Self::Accumulator;
}

/// The bits of one element type.
pub(super) trait Bitwise: Arithmetic {
    fn and(a: Self::Accumulator, b: Self::Accumulator) -> Self::Accumulator;
    fn or(a: Self::Accumulator, b: Self::Accumulator) -> Self::Accumulator;
    fn xor(a: Self::Accumulator, b: Self::Accumulator) -> Self::Accumulator;
}

/// The division of a sum by the number of its terms.
pub(super) trait Divide: Arithmetic {
    fn divide(sum: Self::Accumulator, count: usize) -> Self::Accumulator;
}

/// A byte that holds a truth value: anything but 0 is true.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(transparent)]
pub(super) struct Bool(u8);

impl Arithmetic for Bool {
    type Accumulator = u8;

    fn widen(self) -> u8 {
        u8::from(self.0 != 0)
    }
    fn round(accumulator: u8) -> Self {
        Self(accumulator)
    }
    fn sum(a: u8, b: u8) -> u8 {
        a | b
    }
    fn product(a: u8, b: u8) -> u8 {
        a & b
    }
}

impl Ordered for Bool {
    fn min(a: u8, b: u8) -> u8 {
        a & b
    }
    fn max(a: u8, b: u8) -> u8 {
        a | b
    }
}

impl Bitwise for Bool {
    fn and(a: u8, b: u8) -> u8 {
        a & b
    }
    fn or(a: u8, b: u8) -> u8 {
        a | b
    }
    fn xor(a: u8, b: u8) -> u8 {
        a ^ b
    }
}

macro_rules! integer {
    ($($type:ty)*) => {$(
        impl Arithmetic for $type {
            type Accumulator = Self;

            fn widen(self) -> Self {
                self
            }
            fn round(accumulator: Self) -> Self {
                accumulator
            }
            fn sum(a: Self, b: Self) -> Self {
                a.wrapping_add(b)
            }
            fn product(a: Self, b: Self) -> Self {
                a.wrapping_mul(b)
            }
        }

        impl Ordered for $type {
            fn min(a: Self, b: Self) -> Self {
                Ord::min(a, b)
            }
            fn max(a: Self, b: Self) -> Self {
                Ord::max(a, b)
            }
        }

        impl Bitwise for $type {
            fn and(a: Self, b: Self) -> Self {
                a & b
            }
            fn or(a: Self, b: Self) -> Self {
                a | b
            }
            fn xor(a: Self, b: Self) -> Self {
                a ^ b
            }
        }
    )*};
}
integer!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! float {
    ($($type:ty as $accumulator:ty, $widen:expr, $round:expr;)*) => {$(
        impl Arithmetic for $type {
            type Accumulator = $accumulator;

            fn widen(self) -> $accumulator {
                $widen(self)
            }
            fn round(accumulator: $accumulator) -> Self {
                $round(accumulator)
            }
            fn sum(a: $accumulator, b: $accumulator) -> $accumulator {
                a + b
            }
            fn product(a: $accumulator, b: $accumulator) -> $accumulator {
                a * b
            }
        }

        impl Ordered for $type {
            fn min(a: $accumulator, b: $accumulator) -> $accumulator {
                let first = a.is_nan() || a < b || (a == b && a.is_sign_negative());
                if first { a } else { b }
            }
            fn max(a: $accumulator, b: $accumulator) -> $accumulator {
                let first = a.is_nan() || a > b || (a == b && a.is_sign_positive());
                if first { a } else { b }
            }
        }

        impl Divide for $type {
            fn divide(sum: $accumulator, count: usize) -> $accumulator {
                sum / count as $accumulator
            }
        }
    )*};
}
float! {
    f32 as f32, std::convert::identity, std::convert::identity;
    f64 as f64, std::convert::identity, std::convert::identity;
    f16 as f32, f16::to_f32, f16::from_f32;
    bf16 as f32, bf16::to_f32, bf16::from_f32;
}
