//! Integers of less than a byte, each in the low bits of a byte of its own.
//!
//! The bits above are ignored where they are read and zero where they are written. Arithmetic is
//! that of bytes, of which the low bits are kept: that is right wherever the low bits of a result
//! depend on no more than those of the operands, or the result is in range.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "these casts are the operation"
)]

use super::convert::Convert;
use super::element::{Bool, with_float, with_integer};
use super::elementwise::{UnaryKernel, map};
use crate::ifrt::DType;
use crate::stablehlo::OpKind;
use crate::stablehlo::op::{Binary, Unary};

/// The type of whole bytes that computes for a narrow one.
pub(crate) fn computed_in(dtype: DType) -> Option<DType> {
    match dtype {
        DType::S2 | DType::S4 => Some(DType::S8),
        DType::U2 | DType::U4 => Some(DType::U8),
        _ => None,
    }
}

/// Whether an operation on bytes gives, in the low bits, what it gives on narrow integers.
pub(crate) fn is_byte_arithmetic(kind: &OpKind) -> bool {
    match kind {
        OpKind::Unary(op) => {
            matches!(op, Unary::Abs | Unary::Negate | Unary::Not | Unary::Sign)
        }
        OpKind::Binary(op) => matches!(
            op,
            Binary::Add
                | Binary::And
                | Binary::Divide
                | Binary::Maximum
                | Binary::Minimum
                | Binary::Multiply
                | Binary::Or
                | Binary::Remainder
                | Binary::ShiftLeft
                | Binary::Subtract
                | Binary::Xor
        ),
        OpKind::Compare { .. } | OpKind::Clamp => true,
        _ => false,
    }
}

/// The value of the low bits.
fn value<const BITS: u32, const SIGNED: bool>(byte: u8) -> i8 {
    let shifted = byte << (8 - BITS);
    if SIGNED { shifted as i8 >> (8 - BITS) } else { (shifted >> (8 - BITS)) as i8 }
}

/// The low bits of a byte.
fn low<const BITS: u32>(byte: u8) -> u8 {
    byte & ((1 << BITS) - 1)
}

/// The kernel of a conversion from or to a narrow integer, if there is one.
pub(super) fn convert(from: DType, to: DType) -> Option<UnaryKernel> {
    match from {
        DType::S2 => convert_from::<2, true>(to),
        DType::S4 => convert_from::<4, true>(to),
        DType::U2 => convert_from::<2, false>(to),
        DType::U4 => convert_from::<4, false>(to),
        from => match to {
            DType::S2 => convert_to::<2, true>(from),
            DType::S4 => convert_to::<4, true>(from),
            DType::U2 => convert_to::<2, false>(from),
            DType::U4 => convert_to::<4, false>(from),
            _ => None,
        },
    }
}

fn convert_from<const BITS: u32, const SIGNED: bool>(to: DType) -> Option<UnaryKernel> {
    macro_rules! kernel {
        ($T:ty) => {
            Some(|a, out| {
                map(a, out, |x: u8| <i8 as Convert<$T>>::convert(value::<BITS, SIGNED>(x)));
            })
        };
    }
    match to {
        DType::S2 | DType::U2 => {
            Some(|a, out| map(a, out, |x| low::<2>(value::<BITS, SIGNED>(x) as u8)))
        }
        DType::S4 | DType::U4 => {
            Some(|a, out| map(a, out, |x| low::<4>(value::<BITS, SIGNED>(x) as u8)))
        }
        DType::Bool => kernel!(Bool),
        to => with_integer!(to, T => kernel!(T), _ => with_float!(to, T => kernel!(T), _ => None)),
    }
}

/// Integers lose their high bits; floats are truncated and saturated, with NaN as 0.
fn convert_to<const BITS: u32, const SIGNED: bool>(from: DType) -> Option<UnaryKernel> {
    match from {
        DType::Bool => Some(|a, out| map(a, out, |x: Bool| u8::from(bool::from(x)))),
        from => with_integer!(
            from,
            T => Some(|a, out| {
                map(a, out, |x: T| low::<BITS>(<T as Convert<u8>>::convert(x)));
            }),
            _ => with_float!(
                from,
                T => Some(|a, out| {
                    map(a, out, |x: T| {
                        let all = 1_i16 << BITS;
                        let (least, past) = if SIGNED { (-all / 2, all / 2) } else { (0, all) };
                        let whole: i16 = <T as Convert<i16>>::convert(x);
                        low::<BITS>(whole.clamp(least, past - 1) as u8)
                    });
                }),
                _ => None
            )
        ),
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::{Pod, cast_slice, cast_slice_mut};

    use super::*;

    fn converted<A: Pod, R: Pod + Default>(from: DType, to: DType, values: &[A]) -> Vec<R> {
        let mut out = vec![R::default(); values.len()];
        convert(from, to).unwrap()(cast_slice(values), cast_slice_mut(&mut out));
        out
    }

    #[test]
    fn narrow_integers_are_read_from_the_low_bits() {
        let bytes: [u8; 6] = [0, 1, 7, 8, 15, 0xf9];
        assert_eq!(converted::<_, i8>(DType::S4, DType::S8, &bytes), [0, 1, 7, -8, -1, -7]);
        assert_eq!(converted::<_, i32>(DType::U4, DType::S32, &bytes), [0, 1, 7, 8, 15, 9]);
        assert_eq!(
            converted::<_, f32>(DType::S2, DType::F32, &bytes),
            [0.0, 1.0, -1.0, 0.0, -1.0, 1.0]
        );
        assert_eq!(converted::<_, u64>(DType::U2, DType::U64, &bytes), [0, 1, 3, 0, 3, 1]);
        assert_eq!(converted::<_, u8>(DType::S4, DType::Bool, &[0_u8, 0xf0, 3]), [0, 0, 1]);
        assert_eq!(converted::<_, u8>(DType::S2, DType::U4, &[3_u8, 2, 1]), [15, 14, 1]);
        assert_eq!(converted::<_, u8>(DType::U4, DType::S2, &[7_u8, 9, 4]), [3, 1, 0]);
    }

    #[test]
    fn integers_wrap_and_floats_saturate() {
        let wide = [-9_i32, -8, 7, 8, 300];
        assert_eq!(converted::<_, u8>(DType::S32, DType::S4, &wide), [7, 8, 7, 8, 12]);
        assert_eq!(converted::<_, u8>(DType::S32, DType::U2, &wide), [3, 0, 3, 0, 0]);
        let floats = [-1e9_f32, -8.9, -0.9, 7.9, 15.2, f32::INFINITY, f32::NAN];
        assert_eq!(converted::<_, u8>(DType::F32, DType::S4, &floats), [8, 8, 0, 7, 7, 7, 0]);
        assert_eq!(converted::<_, u8>(DType::F32, DType::U4, &floats), [0, 0, 0, 7, 15, 15, 0]);
        assert_eq!(converted::<_, u8>(DType::F32, DType::S2, &floats), [2, 2, 0, 1, 1, 1, 0]);
    }

    #[test]
    fn operations_that_look_at_the_high_bits_are_not_those_of_bytes() {
        assert!(is_byte_arithmetic(&OpKind::Binary(Binary::Multiply)));
        assert!(!is_byte_arithmetic(&OpKind::Binary(Binary::ShiftRightLogical)));
        assert!(!is_byte_arithmetic(&OpKind::Unary(Unary::Popcnt)));
    }
}
