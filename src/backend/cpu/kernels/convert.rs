//! `convert`, `bitcast_convert` and `reduce_precision`.
//!
//! A float becomes an integer by truncation, saturated, with NaN as 0; an integer becomes a
//! narrower one by dropping bits; anything becomes a boolean by comparison with zero.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "these casts are the operation"
)]

use half::{bf16, f16};

use super::element::{Bool, Element, with_element, with_float};
use super::elementwise::{UnaryKernel, map};
use super::{complex, minifloat, narrow};
use crate::ifrt::DType;

/// Conversion to another element type.
pub(in crate::backend::cpu) trait Convert<To> {
    fn convert(self) -> To;
}

macro_rules! from_native {
    ($($from:ident: $($to:ident)*;)*) => {$($(
        impl Convert<$to> for $from {
            #[inline(always)]
            fn convert(self) -> $to {
                self as $to
            }
        }
    )*)*};
}

macro_rules! from_each_native {
    ($($from:ident)*) => {
        from_native! { $($from: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;)* }
        $(
            impl Convert<Bool> for $from {
                #[inline(always)]
                fn convert(self) -> Bool {
                    Bool::from(self != Self::default())
                }
            }
            impl Convert<$from> for Bool {
                #[inline(always)]
                fn convert(self) -> $from {
                    u8::from(bool::from(self)) as $from
                }
            }
            impl Convert<$from> for f16 {
                #[inline(always)]
                fn convert(self) -> $from {
                    self.to_f32() as $from
                }
            }
            impl Convert<$from> for bf16 {
                #[inline(always)]
                fn convert(self) -> $from {
                    self.to_f32() as $from
                }
            }
        )*
    };
}

from_each_native! { i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 }

macro_rules! to_short_float {
    ($($from:ident)*) => {$(
        impl Convert<f16> for $from {
            #[inline(always)]
            fn convert(self) -> f16 {
                f16::from_f64(self as f64)
            }
        }
        impl Convert<bf16> for $from {
            #[inline(always)]
            fn convert(self) -> bf16 {
                bf16::from_f64(self as f64)
            }
        }
    )*};
}

// Every integer of at most 32 bits and every float is exact in f64, so it is rounded once.
to_short_float! { i8 i16 i32 u8 u16 u32 f64 }

macro_rules! to_short_float_through_f32 {
    ($($from:ident)*) => {$(
        impl Convert<f16> for $from {
            #[inline(always)]
            fn convert(self) -> f16 {
                f16::from_f32(self as f32)
            }
        }
        impl Convert<bf16> for $from {
            #[inline(always)]
            fn convert(self) -> bf16 {
                bf16::from_f32(self as f32)
            }
        }
    )*};
}

to_short_float_through_f32! { i64 u64 f32 }

macro_rules! short_float {
    ($($t:ident, $other:ident;)*) => {$(
        impl Convert<$t> for $t {
            #[inline(always)]
            fn convert(self) -> $t {
                self
            }
        }
        impl Convert<$other> for $t {
            #[inline(always)]
            fn convert(self) -> $other {
                $other::from_f32(self.to_f32())
            }
        }
        impl Convert<Bool> for $t {
            #[inline(always)]
            fn convert(self) -> Bool {
                Bool::from(self != $t::ZERO)
            }
        }
        impl Convert<$t> for Bool {
            #[inline(always)]
            fn convert(self) -> $t {
                if bool::from(self) { $t::ONE } else { $t::ZERO }
            }
        }
    )*};
}

short_float! { f16, bf16; bf16, f16; }

impl Convert<Self> for Bool {
    #[inline(always)]
    fn convert(self) -> Self {
        self
    }
}

/// The kernel of `convert`, if both types are supported.
pub(crate) fn convert(from: DType, to: DType) -> Option<UnaryKernel> {
    with_element!(from, From => convert_from::<From>(to), _ => None)
        .or_else(|| complex::convert(from, to))
        .or_else(|| minifloat::convert(from, to))
        .or_else(|| narrow::convert(from, to))
}

/// Types that convert to every supported type.
trait ConvertToAll:
    Element
    + Convert<Bool>
    + Convert<i8>
    + Convert<i16>
    + Convert<i32>
    + Convert<i64>
    + Convert<u8>
    + Convert<u16>
    + Convert<u32>
    + Convert<u64>
    + Convert<f16>
    + Convert<bf16>
    + Convert<f32>
    + Convert<f64>
{
}

impl<T> ConvertToAll for T where
    T: Element
        + Convert<Bool>
        + Convert<i8>
        + Convert<i16>
        + Convert<i32>
        + Convert<i64>
        + Convert<u8>
        + Convert<u16>
        + Convert<u32>
        + Convert<u64>
        + Convert<f16>
        + Convert<bf16>
        + Convert<f32>
        + Convert<f64>
{
}

fn convert_from<From: ConvertToAll>(to: DType) -> Option<UnaryKernel> {
    with_element!(
        to,
        To => Some(|x, out| map(x, out, <From as Convert<To>>::convert)),
        _ => None
    )
}

/// A loop of `reduce_precision`: operand, result, exponent bits, mantissa bits.
pub(crate) type RoundingKernel = fn(&[u8], &mut [u8], u32, u32);

/// The loop of `reduce_precision`, if the type is a float.
pub(crate) fn reduce_precision(dtype: DType) -> Option<RoundingKernel> {
    with_float!(
        dtype,
        T => Some(|a, out, exponent_bits, mantissa_bits| {
            map(a, out, |x: T| {
                let wide: f64 = x.convert();
                <f64 as Convert<T>>::convert(rounded(wide, exponent_bits, mantissa_bits))
            });
        }),
        _ => None
    )
}

/// `value` rounded to a float of fewer bits, and put back into an `f64`.
fn rounded(value: f64, exponent_bits: u32, mantissa_bits: u32) -> f64 {
    let bits = value.to_bits();
    let sign = bits & (1 << 63);
    if value.is_nan() {
        return value;
    }
    let mut magnitude = bits & !(1 << 63);
    let dropped = 52_u32.saturating_sub(mantissa_bits);
    if dropped > 0 {
        // Round to nearest, ties to even; a carry runs into the exponent as it should.
        let last = (magnitude >> dropped) & 1;
        magnitude += (1_u64 << (dropped - 1)) - 1 + last;
        magnitude &= !((1_u64 << dropped) - 1);
    }
    if exponent_bits < 11 {
        let half_range = (1_u64 << (exponent_bits.max(1) - 1)) - 1;
        let exponent = magnitude >> 52;
        if exponent > 1023 + half_range {
            magnitude = 0x7ff << 52;
        } else if exponent <= 1023 - half_range {
            // Subnormals of the target are flushed to zero.
            magnitude = 0;
        }
    }
    f64::from_bits(sign | magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted<From: Element, To: Element>(from: DType, to: DType, values: &[From]) -> Vec<To> {
        let mut out = vec![To::default(); values.len()];
        convert(from, to).unwrap()(
            bytemuck::cast_slice(values),
            bytemuck::cast_slice_mut(&mut out),
        );
        out
    }

    #[test]
    fn floats_saturate_and_nan_is_zero() {
        let values = [f32::NAN, 1e20, -1e20, -1.9, 2.9, f32::INFINITY];
        assert_eq!(
            converted::<f32, i32>(DType::F32, DType::S32, &values),
            [0, i32::MAX, i32::MIN, -1, 2, i32::MAX]
        );
        assert_eq!(converted::<f32, u8>(DType::F32, DType::U8, &values), [0, 255, 0, 0, 2, 255]);
    }

    #[test]
    fn integers_wrap_and_booleans_compare_with_zero() {
        assert_eq!(converted::<i32, i8>(DType::S32, DType::S8, &[300, -129, 5]), [44, 127, 5]);
        assert_eq!(converted::<i32, u64>(DType::S32, DType::U64, &[-1]), [u64::MAX]);
        let truths = converted::<f32, u8>(DType::F32, DType::Bool, &[0.0, -0.0, 0.1, f32::NAN]);
        assert_eq!(truths, [0, 0, 1, 1]);
    }

    #[test]
    fn converting_to_bf16_and_back_keeps_the_rounding() {
        let values = [1.003_f32, 257.0, 259.0, 3.0e38];
        let short = converted::<f32, bf16>(DType::F32, DType::BF16, &values);
        let back = converted::<bf16, f32>(DType::BF16, DType::F32, &short);
        assert_eq!(back, [1.0, 256.0, 260.0, bf16::from_f32(3.0e38).to_f32()]);
    }

    #[test]
    fn reduced_precision_rounds_to_even_and_overflows_to_infinity() {
        assert_eq!(rounded(2049.0, 5, 10), 2048.0);
        assert_eq!(rounded(2051.0, 5, 10), 2052.0);
        assert_eq!(rounded(65520.0, 5, 10), f64::INFINITY);
        assert_eq!(rounded(65519.0, 5, 10), 65504.0);
        assert_eq!(rounded(-1e-6, 5, 10).to_bits(), (-0.0_f64).to_bits());
        assert!(rounded(f64::NAN, 5, 10).is_nan());
        assert_eq!(rounded(1.0 / 3.0, 11, 52), 1.0 / 3.0);
    }
}
