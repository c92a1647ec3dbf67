//! Elements as numbers: what a serial fold of them is, by arithmetic that is not the library's.

use std::ops::{Add, Div, Mul, Sub};

use half::{bf16, f16};
use lockstep_collectives::{ElementType, Reduction};

/// The value of an element, wide enough to fold it.
///
/// Folding integers of all widths in 128 bits changes nothing: only the low bits of a sum or
/// product are kept, which the high ones do not reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Integer(i128),
    Single(f32),
    Double(f64),
    ComplexSingle([f32; 2]),
    ComplexDouble([f64; 2]),
}

/// The bits of `reduction` of `elements`, folded the first to the last; 0 of none.
pub(crate) fn fold(
    element: ElementType,
    reduction: Reduction,
    elements: impl ExactSizeIterator<Item = u128>,
) -> u128 {
    let count = elements.len();
    let numbers = elements.map(|bits| decode(element, bits));
    let folded = numbers.reduce(|a, b| combine(element, reduction, a, b));
    let folded = match reduction {
        Reduction::Mean => folded.map(|sum| divide(sum, count)),
        _ => folded,
    };
    folded.map_or(0, |number| encode(element, number))
}

/// The bits of the number that is nearest to `value` and has no imaginary part.
pub(crate) fn real(element: ElementType, value: f64) -> u128 {
    complex(element, [value, 0.0])
}

/// The bits of the number with the parts that are nearest to these; a real one takes the first.
#[expect(clippy::cast_possible_truncation, reason = "at worst it rounds")]
pub(crate) fn complex(element: ElementType, [value, imaginary]: [f64; 2]) -> u128 {
    encode(
        element,
        match element {
            ElementType::C64 => Number::ComplexSingle([value as f32, imaginary as f32]),
            ElementType::C128 => Number::ComplexDouble([value, imaginary]),
            ElementType::F64 => Number::Double(value),
            _ => Number::Single(value as f32),
        },
    )
}

/// To which power of two a float of this type has all integers; `None` for integers.
pub(crate) fn integer_bits(element: ElementType) -> Option<u32> {
    match element {
        ElementType::F64 | ElementType::C128 => Some(f64::MANTISSA_DIGITS),
        ElementType::F32 | ElementType::C64 => Some(f32::MANTISSA_DIGITS),
        ElementType::F16 => Some(11),
        ElementType::BF16 => Some(8),
        // Its numbers end at 15.5.
        ElementType::F8E3M4 => Some(3),
        _ => Minifloat::of(element).map(|float| float.fraction_bits + 1),
    }
}

pub(crate) fn combine(element: ElementType, reduction: Reduction, a: Number, b: Number) -> Number {
    let reduction = match (element, reduction) {
        (ElementType::Bool, Reduction::Sum) => Reduction::Or,
        (ElementType::Bool, Reduction::Product) => Reduction::And,
        (_, other) => other,
    };
    match (a, b) {
        (Number::Integer(a), Number::Integer(b)) => Number::Integer(match reduction {
            Reduction::Sum => a.wrapping_add(b),
            Reduction::Product => a.wrapping_mul(b),
            Reduction::Min => a.min(b),
            Reduction::Max => a.max(b),
            Reduction::And => a & b,
            Reduction::Or => a | b,
            Reduction::Xor => a ^ b,
            Reduction::Mean => 0,
        }),
        (Number::Single(a), Number::Single(b)) => Number::Single(match reduction {
            Reduction::Sum | Reduction::Mean => a + b,
            Reduction::Product => a * b,
            Reduction::Min => a.min(b),
            Reduction::Max => a.max(b),
            Reduction::And | Reduction::Or | Reduction::Xor => f32::NAN,
        }),
        (Number::Double(a), Number::Double(b)) => Number::Double(match reduction {
            Reduction::Sum | Reduction::Mean => a + b,
            Reduction::Product => a * b,
            Reduction::Min => a.min(b),
            Reduction::Max => a.max(b),
            Reduction::And | Reduction::Or | Reduction::Xor => f64::NAN,
        }),
        (Number::ComplexSingle(a), Number::ComplexSingle(b)) => {
            Number::ComplexSingle(combine_complex(reduction, a, b))
        }
        (Number::ComplexDouble(a), Number::ComplexDouble(b)) => {
            Number::ComplexDouble(combine_complex(reduction, a, b))
        }
        // All elements of an operand are of one type.
        (a, _) => a,
    }
}

fn combine_complex<T>(reduction: Reduction, [a, ai]: [T; 2], [b, bi]: [T; 2]) -> [T; 2]
where
    T: Copy + Add<Output = T> + Mul<Output = T> + Sub<Output = T>,
{
    match reduction {
        Reduction::Product => [a * b - ai * bi, a * bi + ai * b],
        _ => [a + b, ai + bi],
    }
}

/// The mean of `count` numbers of the given sum, in the type in which they are added.
fn divide(sum: Number, count: usize) -> Number {
    fn each<T: Copy + Div<Output = T>>(parts: [T; 2], count: T) -> [T; 2] {
        parts.map(|part| part / count)
    }
    match sum {
        Number::Integer(sum) => Number::Integer(sum),
        Number::Single(sum) => Number::Single(sum / count as f32),
        Number::Double(sum) => Number::Double(sum / count as f64),
        Number::ComplexSingle(sum) => Number::ComplexSingle(each(sum, count as f32)),
        Number::ComplexDouble(sum) => Number::ComplexDouble(each(sum, count as f64)),
    }
}

/// The number whose bits are the low ones of `bits`.
#[expect(clippy::cast_possible_truncation, reason = "the low bits are the element")]
pub(crate) fn decode(element: ElementType, bits: u128) -> Number {
    if let Some(float) = Minifloat::of(element) {
        return Number::Single(float.decode(bits as u8));
    }
    match element {
        ElementType::I8 => Number::Integer((bits as i8).into()),
        ElementType::I16 => Number::Integer((bits as i16).into()),
        ElementType::I32 => Number::Integer((bits as i32).into()),
        ElementType::I64 => Number::Integer((bits as i64).into()),
        ElementType::Bool | ElementType::U8 => Number::Integer((bits as u8).into()),
        ElementType::U16 => Number::Integer((bits as u16).into()),
        ElementType::U32 => Number::Integer((bits as u32).into()),
        ElementType::I2 => Number::Integer((bits as i8 as i128) << 126 >> 126),
        ElementType::I4 => Number::Integer((bits as i8 as i128) << 124 >> 124),
        ElementType::U2 => Number::Integer((bits as u8 & 0x3).into()),
        ElementType::U4 => Number::Integer((bits as u8 & 0xf).into()),
        ElementType::F16 => Number::Single(f16::from_bits(bits as u16).into()),
        ElementType::BF16 => Number::Single(bf16::from_bits(bits as u16).into()),
        ElementType::F32 => Number::Single(f32::from_bits(bits as u32)),
        ElementType::F64 => Number::Double(f64::from_bits(bits as u64)),
        ElementType::C64 => {
            let parts = [bits as u32, (bits >> 32) as u32];
            Number::ComplexSingle(parts.map(f32::from_bits))
        }
        ElementType::C128 => {
            Number::ComplexDouble([bits as u64, (bits >> 64) as u64].map(f64::from_bits))
        }
        _ => Number::Integer((bits as u64).into()),
    }
}

/// The element nearest to `number`, in the low bits.
#[expect(clippy::cast_sign_loss, reason = "the low bits are the element")]
pub(crate) fn encode(element: ElementType, number: Number) -> u128 {
    match number {
        Number::Integer(value) => match element {
            ElementType::I2 | ElementType::U2 => value as u128 & 0x3,
            ElementType::I4 | ElementType::U4 => value as u128 & 0xf,
            _ => value as u128,
        },
        Number::Single(value) => match element {
            ElementType::F16 => f16::from_f32(value).to_bits().into(),
            ElementType::BF16 => bf16::from_f32(value).to_bits().into(),
            _ => match Minifloat::of(element) {
                Some(float) => float.encode(value).into(),
                None => value.to_bits().into(),
            },
        },
        Number::Double(value) => value.to_bits().into(),
        Number::ComplexSingle(parts) => {
            let [real, imaginary] = parts.map(|part| u128::from(part.to_bits()));
            imaginary << 32 | real
        }
        Number::ComplexDouble(parts) => {
            let [real, imaginary] = parts.map(|part| u128::from(part.to_bits()));
            imaginary << 64 | real
        }
    }
}

/// A format of 8-bit floats.
#[derive(Clone, Copy)]
struct Minifloat {
    fraction_bits: u32,
    bias: i32,
    /// The first code, the sign aside, that is not finite.
    end: u8,
    special: Special,
}

/// What besides finite numbers a format has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    /// Infinity at `end`, and NaN behind it.
    Infinity,
    /// NaN at `end`.
    Nan,
    /// NaN where negative zero would be.
    NoNegativeZero,
}

impl Minifloat {
    const SIGN: u8 = 0x80;

    fn of(element: ElementType) -> Option<Self> {
        let (fraction_bits, bias, end, special) = match element {
            ElementType::F8E3M4 => (4, 3, 0x70, Special::Infinity),
            ElementType::F8E4M3 => (3, 7, 0x78, Special::Infinity),
            ElementType::F8E5M2 => (2, 15, 0x7c, Special::Infinity),
            ElementType::F8E4M3FN => (3, 7, 0x7f, Special::Nan),
            ElementType::F8E4M3B11FNUZ => (3, 11, 0x80, Special::NoNegativeZero),
            ElementType::F8E4M3FNUZ => (3, 8, 0x80, Special::NoNegativeZero),
            ElementType::F8E5M2FNUZ => (2, 16, 0x80, Special::NoNegativeZero),
            _ => return None,
        };
        Some(Self { fraction_bits, bias, end, special })
    }

    /// The value that this code has, or would have if all codes were finite.
    fn magnitude(&self, code: u8) -> f32 {
        let implied = 1 << self.fraction_bits;
        let (exponent, fraction) = (code >> self.fraction_bits, code & (implied - 1));
        let significand = if exponent == 0 { fraction } else { implied | fraction };
        let shift = self.bias + self.fraction_bits.cast_signed();
        f32::from(significand) * 2.0_f32.powi(i32::from(exponent.max(1)) - shift)
    }

    fn decode(&self, code: u8) -> f32 {
        let magnitude = match code & !Self::SIGN {
            0 if code == Self::SIGN && self.special == Special::NoNegativeZero => f32::NAN,
            end if end == self.end && self.special == Special::Infinity => f32::INFINITY,
            code if code >= self.end => f32::NAN,
            code => self.magnitude(code),
        };
        if code & Self::SIGN == 0 { magnitude } else { -magnitude }
    }

    /// The code nearest to `value`, an even one of two; what is nearest to the code at which the
    /// finite ones end is too great.
    fn encode(&self, value: f32) -> u8 {
        let sign = if value.is_sign_negative() { Self::SIGN } else { 0 };
        let value = f64::from(value.abs());
        let magnitude = |code: u8| f64::from(self.magnitude(code));
        let (mut below, mut above) = (0, self.end);
        while above - below > 1 {
            let middle = below.midpoint(above);
            if magnitude(middle) <= value { below = middle } else { above = middle }
        }
        let up = (magnitude(above) - value).total_cmp(&(value - magnitude(below)));
        let code = if up.then((above & 1).cmp(&(below & 1))).is_lt() { above } else { below };
        match code {
            0 if self.special == Special::NoNegativeZero => 0,
            end if end == self.end && self.special == Special::NoNegativeZero => Self::SIGN,
            code => sign | code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_and_keep_their_sign() {
        let of = |element, reduction, elements: [u128; 2]| {
            fold(element, reduction, elements.into_iter()) & 0xff
        };
        assert_eq!(of(ElementType::I8, Reduction::Min, [0x80, 0x7f]), 0x80);
        assert_eq!(of(ElementType::I8, Reduction::Max, [0x80, 0x7f]), 0x7f);
        assert_eq!(of(ElementType::I8, Reduction::Sum, [0x7f, 0x7f]), 0xfe);
        // The bits above an element's are nobody's.
        assert_eq!(of(ElementType::I4, Reduction::Min, [0xf8, 0x07]), 0x08);
        assert_eq!(of(ElementType::U4, Reduction::Min, [0xf8, 0x07]), 0x07);
        assert_eq!(of(ElementType::I2, Reduction::Max, [0x02, 0x03]), 0x03);
        assert_eq!(of(ElementType::U2, Reduction::Sum, [0x03, 0x02]), 0x01);
        assert_eq!(of(ElementType::Bool, Reduction::Sum, [1, 1]), 1);
    }

    #[test]
    fn every_8_bit_float_comes_back_and_the_rest_rounds_to_even() {
        for element in ElementType::ARITHMETIC {
            let Some(float) = Minifloat::of(element) else { continue };
            for code in 0..=u8::MAX {
                let value = float.decode(code);
                if value.is_finite() {
                    assert_eq!(float.encode(value), code, "{element} {value}");
                }
            }
            for code in 0..float.end {
                let middle = f32::midpoint(float.magnitude(code), float.magnitude(code + 1));
                let even = code + code % 2;
                if even < float.end {
                    assert_eq!(float.encode(middle), even, "{element} {middle}");
                } else {
                    assert!(!float.decode(float.encode(middle)).is_finite(), "{element} {middle}");
                }
            }
            assert!(!float.decode(float.encode(-1e9)).is_finite(), "{element}");
        }
        // notes/pains.md N19.
        let e4m3fn = Minifloat::of(ElementType::F8E4M3FN).unwrap();
        assert_eq!(
            [448.0, 464.0, 465.0, -1e10].map(|x| e4m3fn.encode(x)),
            [0x7e, 0x7e, 0x7f, 0xff]
        );
    }

    #[test]
    fn complex_numbers_have_two_parts() {
        let [a, b] = [[1.0, 2.0], [3.0, -1.0]].map(|parts| complex(ElementType::C64, parts));
        let of = |reduction| fold(ElementType::C64, reduction, [a, b].into_iter());
        assert_eq!(of(Reduction::Product), complex(ElementType::C64, [5.0, 5.0]));
        assert_eq!(of(Reduction::Mean), complex(ElementType::C64, [2.0, 0.5]));
    }
}
