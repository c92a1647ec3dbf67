//! Integers of less than a byte, each in the low bits of a byte of its own.
//!
//! The bits above are ignored where they are read and zero where they are written. Arithmetic is
//! that of bytes (`carrier`), of which the low bits are kept.

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

/// The type of whole bytes in which narrow integers are computed.
pub(super) fn computed_in(dtype: DType) -> Option<DType> {
    match dtype {
        DType::S2 | DType::S4 => Some(DType::S8),
        DType::U2 | DType::U4 => Some(DType::U8),
        _ => None,
    }
}

/// The kernel that spreads narrow integers over whole bytes, by their sign or with zeros.
pub(super) fn unpack(dtype: DType, signed: bool) -> Option<UnaryKernel> {
    Some(match (dtype, signed) {
        (DType::S2 | DType::U2, true) => |a, out| map(a, out, value::<2, true>),
        (DType::S2 | DType::U2, false) => |a, out| map(a, out, value::<2, false>),
        (DType::S4 | DType::U4, true) => |a, out| map(a, out, value::<4, true>),
        (DType::S4 | DType::U4, false) => |a, out| map(a, out, value::<4, false>),
        _ => return None,
    })
}

/// The loop that keeps the low bits of bytes.
pub(super) fn pack(dtype: DType) -> Option<UnaryKernel> {
    Some(match dtype {
        DType::S2 | DType::U2 => |a, out| map(a, out, low::<2>),
        DType::S4 | DType::U4 => |a, out| map(a, out, low::<4>),
        _ => return None,
    })
}

/// The loop of `count_leading_zeros`, the one operation that counts bits from the top.
pub(super) fn leading_zeros(dtype: DType) -> Option<UnaryKernel> {
    fn count<const BITS: u32>(byte: u8) -> u8 {
        (low::<BITS>(byte).leading_zeros() - (8 - BITS)) as u8
    }
    Some(match dtype {
        DType::S2 | DType::U2 => |a, out| map(a, out, |x| low::<2>(count::<2>(x))),
        DType::S4 | DType::U4 => |a, out| map(a, out, |x| low::<4>(count::<4>(x))),
        _ => return None,
    })
}

/// The loop that writes 0, 1, 2, … and wraps.
pub(super) fn count(dtype: DType) -> Option<fn(usize, &mut [u8])> {
    fn line<const BITS: u32>(start: usize, out: &mut [u8]) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = low::<BITS>((start + i) as u8);
        }
    }
    Some(match dtype {
        DType::S2 | DType::U2 => line::<2>,
        DType::S4 | DType::U4 => line::<4>,
        _ => return None,
    })
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
    fn bytes_are_spread_by_sign_or_with_zeros_and_packed_again() {
        let bytes: [u8; 4] = [0, 7, 8, 0xff];
        let mut out = [9_u8; 4];
        unpack(DType::U4, true).unwrap()(&bytes, &mut out);
        assert_eq!(cast_slice::<_, i8>(&out), [0, 7, -8, -1]);
        unpack(DType::S4, false).unwrap()(&bytes, &mut out);
        assert_eq!(out, [0, 7, 8, 15]);
        pack(DType::S2).unwrap()(&bytes, &mut out);
        assert_eq!(out, [0, 3, 0, 3]);
        leading_zeros(DType::S4).unwrap()(&bytes, &mut out);
        assert_eq!(out, [4, 1, 0, 0]);
        leading_zeros(DType::U2).unwrap()(&bytes, &mut out);
        assert_eq!(out, [2, 0, 2, 0]);
        count(DType::S2).unwrap()(3, &mut out);
        assert_eq!(out, [3, 0, 1, 2]);
    }
}
