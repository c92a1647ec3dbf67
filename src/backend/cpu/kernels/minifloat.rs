//! Conversions of the floats of at most 8 bits: to wider floats exactly, from them rounded once to
//! nearest even.
//!
//! What is too great becomes an infinity where there is one, else NaN, else the greatest number, as
//! in `ml_dtypes`. Every float that is converted is exact in `f64`, in which rounding works.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the casts are of counts that the format bounds to a byte"
)]

use super::convert::Convert;
use super::element::with_float;
use super::elementwise::{UnaryKernel, map};
use crate::ifrt::DType;

/// What the codes past the finite ones mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    /// As in IEEE 754: the greatest exponent is for infinity and NaN.
    Ieee,
    /// All ones are NaN.
    AllOnes,
    /// Negative zero is NaN.
    NegativeZero,
    /// Every code is finite; NaN becomes negative zero.
    Finite,
}

/// How the bits below the sign make a magnitude.
#[derive(Clone, Copy)]
struct Format {
    /// The bit of the sign, above all others.
    sign: u8,
    mantissa_bits: i32,
    bias: i32,
    special: Special,
}

impl Format {
    /// The code after the finite ones, without the sign.
    fn past_finite(self) -> u8 {
        match self.special {
            Special::Ieee => self.sign - (1 << self.mantissa_bits),
            Special::AllOnes => self.sign - 1,
            Special::NegativeZero | Special::Finite => self.sign,
        }
    }

    fn decode(self, byte: u8) -> f32 {
        let code = byte & (self.sign - 1);
        let magnitude = if code >= self.past_finite() {
            let is_infinity = self.special == Special::Ieee && code == self.past_finite();
            if is_infinity { f32::INFINITY } else { f32::NAN }
        } else if self.special == Special::NegativeZero && code == 0 && byte & self.sign != 0 {
            return f32::NAN;
        } else {
            let exponent = i32::from(code >> self.mantissa_bits);
            let mantissa = i32::from(code) & ((1 << self.mantissa_bits) - 1);
            let steps = mantissa + if exponent > 0 { 1 << self.mantissa_bits } else { 0 };
            steps as f32 * 2.0_f32.powi(exponent.max(1) - self.bias - self.mantissa_bits)
        };
        if byte & self.sign == 0 { magnitude } else { -magnitude }
    }

    fn encode(self, value: f64) -> u8 {
        let sign = if value.is_sign_negative() { self.sign } else { 0 };
        let nan = match self.special {
            Special::Ieee => sign | self.past_finite() | 1 << (self.mantissa_bits - 1),
            Special::AllOnes => sign | (self.sign - 1),
            Special::NegativeZero | Special::Finite => self.sign,
        };
        if value.is_nan() {
            return nan;
        }
        let overflow = match self.special {
            Special::Ieee => sign | self.past_finite(),
            Special::AllOnes | Special::NegativeZero => nan,
            Special::Finite => sign | (self.sign - 1),
        };
        // Subnormals are spaced as the least normals are.
        let exponent = ((value.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(1 - self.bias);
        if exponent > 16 {
            return overflow;
        }
        let steps = value.abs() * 2.0_f64.powi(self.mantissa_bits - exponent);
        // A number that rounds up to the next power of two carries into the exponent.
        let code =
            ((exponent + self.bias - 1) << self.mantissa_bits) + steps.round_ties_even() as i32;
        if code >= i32::from(self.past_finite()) {
            overflow
        } else if code == 0 && self.special == Special::NegativeZero {
            0
        } else {
            sign | code as u8
        }
    }
}

/// A format as a type, for a kernel of its own.
trait Minifloat {
    const FORMAT: Format;
}

macro_rules! formats {
    ($($name:ident: $sign:literal, $mantissa_bits:literal, $bias:literal, $special:ident;)*) => {
        $(
            struct $name;

            impl Minifloat for $name {
                const FORMAT: Format = Format {
                    sign: $sign,
                    mantissa_bits: $mantissa_bits,
                    bias: $bias,
                    special: Special::$special,
                };
            }
        )*

        /// The kernel of a conversion between a float with a sign of at most 8 bits and a wider one, if there is one.
        fn convert_signed(from: DType, to: DType) -> Option<UnaryKernel> {
            match (from, to) {
                $((DType::$name, to) => decoder::<$name>(to),)*
                $((from, DType::$name) => encoder::<$name>(from),)*
                _ => None,
            }
        }
    };
}

formats! {
    F8E3M4: 0x80, 4, 3, Ieee;
    F8E4M3: 0x80, 3, 7, Ieee;
    F8E4M3FN: 0x80, 3, 7, AllOnes;
    F8E4M3B11FNUZ: 0x80, 3, 11, NegativeZero;
    F8E4M3FNUZ: 0x80, 3, 8, NegativeZero;
    F8E5M2: 0x80, 2, 15, Ieee;
    F8E5M2FNUZ: 0x80, 2, 16, NegativeZero;
    F4E2M1FN: 0x08, 1, 1, Finite;
    F6E2M3FN: 0x20, 3, 1, Finite;
    F6E3M2FN: 0x20, 2, 3, Finite;
}

/// The kernel of a conversion between a float of at most 8 bits and a wider one, if there is one.
pub(super) fn convert(from: DType, to: DType) -> Option<UnaryKernel> {
    match (from, to) {
        (DType::F8E8M0FNU, to) => with_float!(
            to,
            T => Some(|a, out| {
                map(a, out, |x: u8| <f64 as Convert<T>>::convert(decode_power(x)));
            }),
            _ => None
        ),
        (from, DType::F8E8M0FNU) => with_float!(
            from,
            T => Some(|a, out| map(a, out, |x: T| encode_power(<T as Convert<f64>>::convert(x)))),
            _ => None
        ),
        _ => convert_signed(from, to),
    }
}

/// The power of two that a code of `f8E8M0FNU` is.
fn decode_power(code: u8) -> f64 {
    if code == 0xff { f64::NAN } else { 2.0_f64.powi(i32::from(code) - 127) }
}

/// The code of the nearest power of two, the greater one of two as near. What is less than the
/// least power becomes that. NaN of what is negative, too great or no number, and of zero, which is
/// no power: XLA:CPU has it so.
fn encode_power(value: f64) -> u8 {
    if value.is_nan() || value <= 0.0 {
        return 0xff;
    }
    let bits = value.to_bits().cast_signed();
    let (exponent, mantissa) = (bits >> 52, bits.cast_unsigned() << 12);
    let rounded = exponent + i64::from(mantissa >> 63 == 1) - 1023 + 127;
    u8::try_from(rounded.max(0)).unwrap_or(0xff)
}

/// The type in which floats of at most 8 bits are computed.
pub(super) fn computed_in(dtype: DType) -> Option<DType> {
    convert(dtype, DType::F32).map(|_| DType::F32)
}

fn decoder<F: Minifloat>(to: DType) -> Option<UnaryKernel> {
    with_float!(
        to,
        T => Some(|a, out| {
            map(a, out, |x: u8| <f32 as Convert<T>>::convert(F::FORMAT.decode(x)));
        }),
        _ => None
    )
}

fn encoder<F: Minifloat>(from: DType) -> Option<UnaryKernel> {
    with_float!(
        from,
        T => Some(|a, out| {
            map(a, out, |x: T| F::FORMAT.encode(<T as Convert<f64>>::convert(x)));
        }),
        _ => None
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGN: u8 = 0x80;

    const KINDS: [(DType, Format); 7] = [
        (DType::F8E3M4, F8E3M4::FORMAT),
        (DType::F8E4M3, F8E4M3::FORMAT),
        (DType::F8E4M3FN, F8E4M3FN::FORMAT),
        (DType::F8E4M3B11FNUZ, F8E4M3B11FNUZ::FORMAT),
        (DType::F8E4M3FNUZ, F8E4M3FNUZ::FORMAT),
        (DType::F8E5M2, F8E5M2::FORMAT),
        (DType::F8E5M2FNUZ, F8E5M2FNUZ::FORMAT),
    ];

    #[test]
    fn extremes_are_those_of_the_formats() {
        let greatest = [15.5, 240.0, 448.0, 30.0, 240.0, 57344.0, 57344.0];
        let least = [-6, -9, -9, -13, -10, -16, -17];
        for (((dtype, format), greatest), least) in KINDS.into_iter().zip(greatest).zip(least) {
            assert_eq!(format.decode(format.past_finite() - 1), greatest, "{dtype}");
            assert_eq!(format.decode(1), 2.0_f32.powi(least), "{dtype}");
            assert_eq!(format.decode(0).to_bits(), 0, "{dtype}");
        }
    }

    #[test]
    fn every_code_comes_back_and_what_lies_between_goes_to_the_nearest_even() {
        for (dtype, format) in KINDS {
            for code in 0..format.past_finite() {
                let value = f64::from(format.decode(code));
                assert_eq!(format.encode(value), code, "{dtype} {value}");
                let below_zero = format.encode(-value);
                let kept = code != 0 || format.special != Special::NegativeZero;
                assert_eq!(below_zero, if kept { code | SIGN } else { 0 }, "{dtype} -{value}");
                if code + 1 < format.past_finite() {
                    let next = f64::from(format.decode(code + 1));
                    assert!(next > value, "{dtype} {code}");
                    let middle = f64::midpoint(value, next);
                    assert_eq!(format.encode(middle), code + code % 2, "{dtype} {middle}");
                    assert_eq!(format.encode(middle.next_down()), code, "{dtype} {middle}");
                    assert_eq!(format.encode(middle.next_up()), code + 1, "{dtype} {middle}");
                }
            }
        }
    }

    #[test]
    fn what_is_too_great_overflows_as_the_format_says() {
        let fnuz = [f64::INFINITY, -1e10, f64::NAN, -f64::NAN];
        for (dtype, format) in KINDS {
            match format.special {
                Special::NegativeZero => {
                    assert_eq!(fnuz.map(|x| format.encode(x)), [SIGN; 4], "{dtype}");
                    assert!(format.decode(SIGN).is_nan(), "{dtype}");
                }
                Special::Finite => unreachable!("none of these"),
                Special::AllOnes => {
                    assert_eq!(fnuz.map(|x| format.encode(x)), [0x7f, 0xff, 0x7f, 0xff]);
                    assert!(format.decode(0x7f).is_nan() && format.decode(0xff).is_nan());
                }
                Special::Ieee => {
                    let infinity = format.past_finite();
                    assert_eq!(format.encode(f64::INFINITY), infinity, "{dtype}");
                    assert_eq!(format.encode(-1e300), infinity | SIGN, "{dtype}");
                    assert_eq!(format.decode(infinity | SIGN), f32::NEG_INFINITY, "{dtype}");
                    let nan = format.encode(f64::NAN);
                    assert!(nan > infinity && format.decode(nan).is_nan(), "{dtype}");
                }
            }
        }
        // notes/pains.md N19: 464 is as near to 448 as to what would be 480.
        let rounded = [448.0, 464.0, 465.0, -464.0].map(|x| F8E4M3FN::FORMAT.encode(x));
        assert_eq!(rounded, [0x7e, 0x7e, 0x7f, 0xfe]);
        assert_eq!([61439.0, 61440.0].map(|x| F8E5M2::FORMAT.encode(x)), [0x7b, 0x7c]);
    }

    #[test]
    fn kernels_convert_to_and_from_each_wider_float() {
        let values = [0.0_f32, -0.3, 1.0625, 1e9];
        let mut codes = [0_u8; 4];
        convert(DType::F32, DType::F8E4M3FN).unwrap()(bytemuck::cast_slice(&values), &mut codes);
        assert_eq!(codes, [0, 0xaa, 0x38, 0x7f]);
        let mut back = [0.0_f64; 4];
        convert(DType::F8E4M3FN, DType::F64).unwrap()(&codes, bytemuck::cast_slice_mut(&mut back));
        assert_eq!(back[..3], [0.0, -0.3125, 1.0]);
        assert!(back[3].is_nan());
        assert!(convert(DType::F8E4M3FN, DType::S32).is_none());
    }

    #[test]
    fn floats_below_a_byte_have_no_infinities() {
        let e2m1: Vec<f32> = (0..8).map(|code| F4E2M1FN::FORMAT.decode(code)).collect();
        assert_eq!(e2m1, [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]);
        assert_eq!(F4E2M1FN::FORMAT.decode(0x0f), -6.0);
        let encoded = [1.25, 1.75, 100.0, -0.1, f64::NAN].map(|x| F4E2M1FN::FORMAT.encode(x));
        assert_eq!(encoded, [2, 4, 7, 8, 8]);
        assert_eq!([F6E2M3FN::FORMAT, F6E3M2FN::FORMAT].map(|f| f.decode(0x1f)), [7.5, 28.0]);
        assert_eq!(F6E3M2FN::FORMAT.decode(0x21), -0.0625);
    }

    #[test]
    fn powers_of_two_have_neither_sign_nor_zero() {
        assert_eq!([0, 127, 254].map(decode_power), [2.0_f64.powi(-127), 1.0, 2.0_f64.powi(127)]);
        assert!(decode_power(255).is_nan());
        let encoded =
            [1.0, 1.49, 1.5, 3.0, 0.0, -0.0, -1.0, f64::INFINITY, 1e-60, 3e38].map(encode_power);
        assert_eq!(encoded, [127, 127, 128, 129, 255, 255, 255, 255, 0, 255]);
    }
}
