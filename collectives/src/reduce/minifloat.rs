//! 8-bit floats: widened to f32 exactly, rounded from it once to nearest even.
//!
//! What is too great becomes an infinity where there is one, else NaN, as in `ml_dtypes`.

use bytemuck::{Pod, Zeroable};

use super::number::{Arithmetic, Divide, Ordered};

/// As in IEEE 754, the greatest exponent is for infinity and NaN.
const IEEE: u8 = 0;
/// All ones are NaN, and nothing is infinite.
const ALL_ONES: u8 = 1;
/// Negative zero is NaN, and nothing else is special.
const NEGATIVE_ZERO: u8 = 2;

/// An 8-bit float: a sign, an exponent and `MANTISSA` bits of a significand.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(transparent)]
pub(super) struct Minifloat<const MANTISSA: u32, const BIAS: i32, const SPECIAL: u8>(u8);

pub(super) type F8E3M4 = Minifloat<4, 3, IEEE>;
pub(super) type F8E4M3 = Minifloat<3, 7, IEEE>;
pub(super) type F8E4M3FN = Minifloat<3, 7, ALL_ONES>;
pub(super) type F8E4M3B11FNUZ = Minifloat<3, 11, NEGATIVE_ZERO>;
pub(super) type F8E4M3FNUZ = Minifloat<3, 8, NEGATIVE_ZERO>;
pub(super) type F8E5M2 = Minifloat<2, 15, IEEE>;
pub(super) type F8E5M2FNUZ = Minifloat<2, 16, NEGATIVE_ZERO>;

const SIGN: u8 = 0x80;

impl<const MANTISSA: u32, const BIAS: i32, const SPECIAL: u8> Minifloat<MANTISSA, BIAS, SPECIAL> {
    /// The first code, the sign aside, that is not finite.
    const END: u8 = match SPECIAL {
        IEEE => SIGN - (1 << MANTISSA),
        ALL_ONES => SIGN - 1,
        _ => SIGN,
    };

    /// The exponent of the least normals, whose spacing the subnormals share.
    const LEAST_EXPONENT: i32 = 1 - BIAS;

    /// The distance of neighbours in the binade of 2 to the `exponent`, a power of two that f32
    /// has for every exponent of every format.
    fn spacing(exponent: i32) -> f32 {
        f32::from_bits((exponent - MANTISSA.cast_signed() + 127).cast_unsigned() << 23)
    }
}

impl<const MANTISSA: u32, const BIAS: i32, const SPECIAL: u8> Arithmetic
    for Minifloat<MANTISSA, BIAS, SPECIAL>
{
    type Accumulator = f32;

    fn widen(self) -> f32 {
        let code = self.0 & !SIGN;
        let magnitude = if code >= Self::END {
            if SPECIAL == IEEE && code == Self::END { f32::INFINITY } else { f32::NAN }
        } else if SPECIAL == NEGATIVE_ZERO && self.0 == SIGN {
            f32::NAN
        } else {
            let field = code >> MANTISSA;
            let implied = if field == 0 { 0 } else { 1 << MANTISSA };
            let significand = code & ((1 << MANTISSA) - 1) | implied;
            f32::from(significand) * Self::spacing(i32::from(field).max(1) - BIAS)
        };
        if self.0 & SIGN == 0 { magnitude } else { -magnitude }
    }

    fn round(accumulator: f32) -> Self {
        let sign = if accumulator.is_sign_negative() { SIGN } else { 0 };
        let nan = match SPECIAL {
            IEEE => sign | Self::END | 1 << (MANTISSA - 1),
            ALL_ONES => sign | Self::END,
            _ => SIGN,
        };
        if accumulator.is_nan() {
            return Self(nan);
        }
        let overflow = Self(if SPECIAL == IEEE { sign | Self::END } else { nan });
        let field = accumulator.to_bits() >> (f32::MANTISSA_DIGITS - 1) & 0xff;
        let exponent = (field.cast_signed() - 127).max(Self::LEAST_EXPONENT);
        // No format has more than 32 binades, so what follows stays small.
        let binade = exponent - Self::LEAST_EXPONENT;
        if binade > 32 {
            return overflow;
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most the steps of two binades")]
        let steps = (accumulator.abs() / Self::spacing(exponent)).round_ties_even() as i32;
        // What rounds up to a power of two carries into the exponent.
        match u8::try_from((binade << MANTISSA) + steps) {
            // There is no negative zero to round to.
            Ok(0) if SPECIAL == NEGATIVE_ZERO => Self(0),
            Ok(code) if code < Self::END => Self(sign | code),
            _ => overflow,
        }
    }

    fn sum(a: f32, b: f32) -> f32 {
        a + b
    }
    fn product(a: f32, b: f32) -> f32 {
        a * b
    }
}

impl<const MANTISSA: u32, const BIAS: i32, const SPECIAL: u8> Ordered
    for Minifloat<MANTISSA, BIAS, SPECIAL>
{
    fn min(a: f32, b: f32) -> f32 {
        <f32 as Ordered>::min(a, b)
    }
    fn max(a: f32, b: f32) -> f32 {
        <f32 as Ordered>::max(a, b)
    }
}

impl<const MANTISSA: u32, const BIAS: i32, const SPECIAL: u8> Divide
    for Minifloat<MANTISSA, BIAS, SPECIAL>
{
    fn divide(sum: f32, count: usize) -> f32 {
        <f32 as Divide>::divide(sum, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widened<F: Arithmetic<Accumulator = f32>>(code: u8) -> f32 {
        bytemuck::cast::<u8, F>(code).widen()
    }

    fn rounded<F: Arithmetic<Accumulator = f32>>(value: f32) -> u8 {
        bytemuck::cast::<F, u8>(F::round(value))
    }

    /// Every finite code comes back; halfway to the next rounds to even, any further up or down.
    fn codes_come_back<F: Arithmetic<Accumulator = f32>>(end: u8, has_negative_zero: bool) {
        let (value, code) = (widened::<F>, rounded::<F>);
        for magnitude in 0..end {
            let exact = value(magnitude);
            assert_eq!(code(exact), magnitude, "{exact}");
            let negative = if magnitude == 0 && !has_negative_zero { 0 } else { SIGN | magnitude };
            assert_eq!(code(-exact), negative, "-{exact}");
            if magnitude + 1 < end {
                let next = value(magnitude + 1);
                assert!(next > exact, "{exact} {next}");
                let middle = f32::midpoint(exact, next);
                assert_eq!(code(middle), magnitude + magnitude % 2, "{middle}");
                assert_eq!(code(middle.next_down()), magnitude, "{middle}");
                assert_eq!(code(middle.next_up()), magnitude + 1, "{middle}");
            }
        }
        assert!(value(code(f32::NAN)).is_nan() && value(code(-f32::NAN)).is_nan());
        for great in [1e6, 1e30, f32::MAX, f32::INFINITY] {
            assert!(!value(code(great)).is_finite() && !value(code(-great)).is_finite());
        }
    }

    #[test]
    fn every_code_of_every_format_comes_back() {
        codes_come_back::<F8E3M4>(0x70, true);
        codes_come_back::<F8E4M3>(0x78, true);
        codes_come_back::<F8E4M3FN>(0x7f, true);
        codes_come_back::<F8E4M3B11FNUZ>(0x80, false);
        codes_come_back::<F8E4M3FNUZ>(0x80, false);
        codes_come_back::<F8E5M2>(0x7c, true);
        codes_come_back::<F8E5M2FNUZ>(0x80, false);
    }

    #[test]
    fn values_are_those_of_ml_dtypes() {
        // notes/pains.md N19: 464 is as near to 448 as to what would be 480.
        let codes = [448.0, 464.0, 465.0, -464.0, 1e10].map(rounded::<F8E4M3FN>);
        assert_eq!(codes, [0x7e, 0x7e, 0x7f, 0xfe, 0x7f]);
        let codes = [57344.0, 61439.0, 61440.0, f32::NEG_INFINITY].map(rounded::<F8E5M2>);
        assert_eq!(codes, [0x7b, 0x7b, 0x7c, 0xfc]);
        assert_eq!(widened::<F8E3M4>(0x01), 2.0_f32.powi(-6));
        assert_eq!([widened::<F8E3M4>(0x6f), widened::<F8E4M3>(0x77)], [15.5, 240.0]);
        assert_eq!(widened::<F8E4M3B11FNUZ>(0x7f), 30.0);
        assert_eq!([widened::<F8E4M3FNUZ>(0x7f), widened::<F8E5M2FNUZ>(0x7f)], [240.0, 57344.0]);
        assert_eq!(widened::<F8E5M2FNUZ>(0x01), 2.0_f32.powi(-17));
    }
}
