//! Numbers of every element type, from and to their text.

use crate::ifrt::DType;

/// The layout of a binary float narrower than 32 bits.
struct Layout {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    specials: Specials,
}

/// What the topmost encodings mean.
#[derive(Clone, Copy, PartialEq)]
enum Specials {
    /// As in IEEE 754: an all-ones exponent is infinity or NaN.
    Ieee,
    /// No infinities; all ones is NaN.
    NanAllOnes,
    /// No infinities, no negative zero; its encoding is NaN.
    NanNegativeZero,
    /// Every encoding is a finite number.
    Finite,
}

const fn layout(dtype: DType) -> Option<Layout> {
    use Specials::{Finite, Ieee, NanAllOnes, NanNegativeZero};
    let (exponent_bits, mantissa_bits, bias, specials) = match dtype {
        DType::F16 => (5, 10, 15, Ieee),
        DType::BF16 => (8, 7, 127, Ieee),
        DType::F8E3M4 => (3, 4, 3, Ieee),
        DType::F8E4M3 => (4, 3, 7, Ieee),
        DType::F8E4M3FN => (4, 3, 7, NanAllOnes),
        DType::F8E4M3B11FNUZ => (4, 3, 11, NanNegativeZero),
        DType::F8E4M3FNUZ => (4, 3, 8, NanNegativeZero),
        DType::F8E5M2 => (5, 2, 15, Ieee),
        DType::F8E5M2FNUZ => (5, 2, 16, NanNegativeZero),
        DType::F4E2M1FN => (2, 1, 1, Finite),
        DType::F6E2M3FN => (2, 3, 1, Finite),
        DType::F6E3M2FN => (3, 2, 3, Finite),
        _ => return None,
    };
    Some(Layout { exponent_bits, mantissa_bits, bias, specials })
}

impl Layout {
    /// The value of an encoding.
    fn decode(&self, bits: u32) -> f64 {
        let width = 1 + self.exponent_bits + self.mantissa_bits;
        let sign = if bits >> (width - 1) & 1 == 1 { -1.0 } else { 1.0 };
        let exponent_mask = (1 << self.exponent_bits) - 1;
        let mantissa_mask = (1 << self.mantissa_bits) - 1;
        let exponent = bits >> self.mantissa_bits & exponent_mask;
        let mantissa = bits & mantissa_mask;
        match self.specials {
            Specials::Ieee if exponent == exponent_mask => {
                return if mantissa == 0 { sign * f64::INFINITY } else { f64::NAN };
            }
            Specials::NanAllOnes if exponent == exponent_mask && mantissa == mantissa_mask => {
                return f64::NAN;
            }
            Specials::NanNegativeZero if bits == 1 << (width - 1) => return f64::NAN,
            _ => {}
        }
        // Both fit i32: they have at most 8 and 10 bits.
        let (exponent, mantissa) = (exponent.cast_signed(), f64::from(mantissa));
        let scale = |power: i32| 2f64.powi(power - self.mantissa_bits.cast_signed());
        let magnitude = if exponent == 0 {
            mantissa * scale(1 - self.bias)
        } else {
            (f64::from(1_u32 << self.mantissa_bits) + mantissa) * scale(exponent - self.bias)
        };
        sign * magnitude
    }

    /// The encoding nearest to `value`, ties to even; beyond the range infinity or NaN where the
    /// type has them, the largest number where it has neither.
    fn encode(&self, value: f64) -> u32 {
        let sign_bit =
            u32::from(value.is_sign_negative()) << (self.exponent_bits + self.mantissa_bits);
        let all_ones = (1 << (self.exponent_bits + self.mantissa_bits)) - 1;
        let exponent_ones = ((1 << self.exponent_bits) - 1) << self.mantissa_bits;
        let negative_zero = 1 << (self.exponent_bits + self.mantissa_bits);
        let (overflow, nan) = match self.specials {
            Specials::Ieee => {
                (sign_bit | exponent_ones, sign_bit | exponent_ones | 1 << (self.mantissa_bits - 1))
            }
            Specials::NanAllOnes => (sign_bit | all_ones, sign_bit | all_ones),
            Specials::NanNegativeZero => (negative_zero, negative_zero),
            Specials::Finite => (sign_bit | all_ones, negative_zero),
        };
        if value.is_nan() {
            return nan;
        }
        // Encodings without their sign grow with the value, so the number of the encoding is the
        // rounded mantissa plus the steps of all exponents below: a carry runs into the exponent.
        let magnitude = value.abs();
        let exponent = if magnitude == 0.0 || !magnitude.is_finite() {
            1 - self.bias
        } else {
            (binary_exponent(magnitude)).max(1 - self.bias)
        };
        let steps = magnitude * 2f64.powi(self.mantissa_bits.cast_signed() - exponent);
        let below = f64::from(exponent + self.bias - 1) * f64::from(1_u32 << self.mantissa_bits);
        let number = steps.round_ties_even() + below;
        let largest = match self.specials {
            Specials::Ieee => exponent_ones - 1,
            Specials::NanAllOnes => all_ones - 1,
            Specials::NanNegativeZero | Specials::Finite => all_ones,
        };
        if number > f64::from(largest) {
            return overflow;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number between 0 and `largest`"
        )]
        let bits = number as u32;
        if bits == 0 && self.specials == Specials::NanNegativeZero { 0 } else { sign_bit | bits }
    }
}

/// The power of two at or below a positive finite number.
fn binary_exponent(value: f64) -> i32 {
    let biased = (value.to_bits() >> 52) & 0x7FF;
    // Subnormal doubles are far below the least exponent of any narrower type.
    i32::try_from(biased).unwrap_or(0) - 1023
}

/// The bytes of the element of `dtype`, a float type, nearest to `value`.
///
/// `None` when `dtype` has no number near it: `f8E8M0FNU` holds powers of two only.
pub(crate) fn float_bytes(value: f64, dtype: DType) -> Option<Vec<u8>> {
    match dtype {
        DType::F64 => Some(value.to_le_bytes().to_vec()),
        DType::F32 => {
            #[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest single")]
            let single = value as f32;
            Some(single.to_le_bytes().to_vec())
        }
        DType::F8E8M0FNU => {
            let exponent = binary_exponent(value);
            let is_power = value == 2f64.powi(exponent);
            u8::try_from(exponent + 127)
                .ok()
                .filter(|&bits| is_power && bits != 255)
                .map(|bits| vec![bits])
        }
        _ => {
            let bits = layout(dtype)?.encode(value);
            Some(bits.to_le_bytes()[..dtype.size_bytes()].to_vec())
        }
    }
}

/// The number of `dtype` nearest to `value`; `None` when there is none.
pub(in crate::stablehlo) fn rounded(value: f64, dtype: DType) -> Option<f64> {
    if !dtype.is_float() {
        return None;
    }
    let mut bits = [0; 16];
    let bytes = float_bytes(value, dtype)?;
    bits[..bytes.len()].copy_from_slice(&bytes);
    float_from_bits(i128::from_le_bytes(bits), dtype)
}

/// The number whose encoding in `dtype`, a float type, is `bits`.
pub(crate) fn float_from_bits(bits: i128, dtype: DType) -> Option<f64> {
    match dtype {
        DType::F64 => u64::try_from(bits).ok().map(f64::from_bits),
        DType::F32 => u32::try_from(bits).ok().map(|bits| f64::from(f32::from_bits(bits))),
        DType::F8E8M0FNU => {
            let bits = u8::try_from(bits).ok()?;
            Some(if bits == 255 { f64::NAN } else { 2f64.powi(i32::from(bits) - 127) })
        }
        _ => {
            let bits = u32::try_from(bits).ok().filter(|&bits| bits >> dtype.bit_width() == 0)?;
            layout(dtype).map(|layout| layout.decode(bits))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrow_floats() -> impl Iterator<Item = DType> {
        DType::ALL.into_iter().filter(|&dtype| dtype.is_float() && dtype.bit_width() <= 16)
    }

    #[test]
    fn every_encoding_reads_back() {
        for dtype in narrow_floats() {
            for bits in 0..1_i128 << dtype.bit_width() {
                let value = float_from_bits(bits, dtype).unwrap();
                if value.is_nan() {
                    continue;
                }
                let mut bytes = float_bytes(value, dtype).unwrap();
                bytes.resize(4, 0);
                let again = u32::from_le_bytes(bytes.try_into().unwrap());
                assert_eq!(i128::from(again), bits, "{dtype} {value}");
            }
        }
    }

    #[test]
    fn halves_agree_with_the_half_crate() {
        let values = [0.1, -0.1, 65519.0, 65520.0, 1e-8, 5.960_464e-8, 3.3e38, 1e300, -0.0];
        for value in values {
            let f16 = half::f16::from_f64(value).to_le_bytes();
            assert_eq!(float_bytes(value, DType::F16).unwrap(), f16, "{value}");
            let bf16 = half::bf16::from_f64(value).to_le_bytes();
            assert_eq!(float_bytes(value, DType::BF16).unwrap(), bf16, "{value}");
        }
    }

    #[test]
    fn ties_go_to_even_and_overflow_follows_the_type() {
        // Between 8 (0x50) and 9 (0x51) in f8E4M3FN.
        assert_eq!(float_bytes(8.5, DType::F8E4M3FN).unwrap(), [0x50]);
        assert_eq!(float_bytes(9.5, DType::F8E4M3FN).unwrap(), [0x52]);
        assert_eq!(float_bytes(448.0, DType::F8E4M3FN).unwrap(), [0x7E]);
        assert_eq!(float_bytes(1e9, DType::F8E4M3FN).unwrap(), [0x7F]);
        assert_eq!(float_bytes(-1e9, DType::F8E5M2).unwrap(), [0xFC]);
        assert_eq!(float_bytes(1e9, DType::F8E4M3FNUZ).unwrap(), [0x80]);
        assert_eq!(float_bytes(1e9, DType::F4E2M1FN).unwrap(), [0x07]);
        assert_eq!(float_bytes(3.0, DType::F8E8M0FNU), None);
        assert_eq!(float_bytes(4.0, DType::F8E8M0FNU).unwrap(), [129]);
    }
}
