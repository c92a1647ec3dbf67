//! The slow and obvious answer: one scalar at a time, one member after the other.

use half::{bf16, f16};
use lockstep_collectives::{ElementType, Reduction};

/// The operand of a member: `count` elements, different for every member and place, and for
/// floats such that sums depend on their order.
pub(crate) fn operand(element: ElementType, member: u32, count: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count * element.size_bytes());
    let mut bits = u64::from(member).wrapping_mul(0x5851_f42d_4c95_7f2d);
    for _ in 0..count {
        // A Weyl sequence: neighbours differ in all bits.
        bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let [.., a, b, c] = bits.to_le_bytes();
        let real = f32::from(u16::from_le_bytes([b, c])) / 8192.0 - 3.3 + f32::from(a) / 1e6;
        match element {
            ElementType::Bool => bytes.push(c & 1),
            ElementType::F16 => bytes.extend(f16::from_f32(real).to_ne_bytes()),
            ElementType::BF16 => bytes.extend(bf16::from_f32(real).to_ne_bytes()),
            ElementType::F32 => bytes.extend(real.to_ne_bytes()),
            ElementType::F64 => bytes.extend((f64::from(real) / 3.0).to_ne_bytes()),
            ElementType::C64 => bytes.extend([real, 1.5 - real].map(f32::to_ne_bytes).concat()),
            ElementType::C128 => {
                let real = f64::from(real) / 3.0;
                bytes.extend([real, 1.5 - real].map(f64::to_ne_bytes).concat());
            }
            _ => match minifloat(element) {
                Some(format) => bytes.push(format.round(real)),
                None => {
                    let pattern = bits.to_be_bytes();
                    bytes.extend(pattern.iter().cycle().take(element.size_bytes()));
                }
            },
        }
    }
    bytes
}

/// An 8-bit float, as its description has it.
#[derive(Clone, Copy)]
struct Minifloat {
    mantissa_bits: i32,
    bias: i32,
    /// The first code that is not finite.
    end: u8,
    /// What is too great, and what is no number; the sign aside.
    overflow: u8,
    nan: u8,
}

fn minifloat(element: ElementType) -> Option<Minifloat> {
    let (mantissa_bits, bias, end, overflow, nan) = match element {
        ElementType::F8E3M4 => (4, 3, 0x70, 0x70, 0x78),
        ElementType::F8E4M3 => (3, 7, 0x78, 0x78, 0x7c),
        ElementType::F8E4M3FN => (3, 7, 0x7f, 0x7f, 0x7f),
        ElementType::F8E4M3B11FNUZ => (3, 11, 0x80, 0x80, 0x80),
        ElementType::F8E4M3FNUZ => (3, 8, 0x80, 0x80, 0x80),
        ElementType::F8E5M2 => (2, 15, 0x7c, 0x7c, 0x7e),
        ElementType::F8E5M2FNUZ => (2, 16, 0x80, 0x80, 0x80),
        _ => return None,
    };
    Some(Minifloat { mantissa_bits, bias, end, overflow, nan })
}

impl Minifloat {
    /// The magnitude of a finite code, or of the one after the last.
    fn magnitude(self, code: u8) -> f64 {
        let exponent = i32::from(code) >> self.mantissa_bits;
        let mantissa = f64::from(i32::from(code) & ((1 << self.mantissa_bits) - 1));
        let fraction = mantissa / f64::from(1 << self.mantissa_bits);
        match exponent {
            0 => fraction * 2_f64.powi(1 - self.bias),
            _ => (1.0 + fraction) * 2_f64.powi(exponent - self.bias),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "f32 has every 8-bit float")]
    fn widen(self, byte: u8) -> f32 {
        let code = byte & 0x7f;
        let is_nan = byte == 0x80 && self.end == 0x80 || code >= self.end && code != self.overflow;
        let magnitude = if is_nan || code == self.end && self.overflow == self.nan {
            f64::NAN
        } else if code == self.overflow {
            f64::INFINITY
        } else {
            self.magnitude(code)
        };
        (if byte < 0x80 { magnitude } else { -magnitude }) as f32
    }

    /// The nearest of all codes; of two as near, the even one.
    fn round(self, value: f32) -> u8 {
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        if value.is_nan() {
            return sign | self.nan;
        }
        let value = f64::from(value.abs());
        let codes: Vec<u8> = (0..=self.end).collect();
        let above =
            codes.partition_point(|code| self.magnitude(*code) < value).min(codes.len() - 1);
        let nearest = codes[above.saturating_sub(1)..=above].iter().min_by(|a, b| {
            let distance = |code: u8| (self.magnitude(code) - value).abs();
            distance(**a).total_cmp(&distance(**b)).then((*a % 2).cmp(&(*b % 2)))
        });
        match *nearest.unwrap() {
            code if code == self.end => sign | self.overflow,
            0 if self.end == 0x80 => 0,
            code => sign | code,
        }
    }
}

/// A NaN of a float type, negative if asked for.
pub(crate) fn nan(element: ElementType, negative: bool) -> Vec<u8> {
    let sign = if negative { -1.0_f32 } else { 1.0 };
    let nan = f32::NAN.copysign(sign);
    match element {
        ElementType::F16 => f16::from_f32(nan).to_ne_bytes().to_vec(),
        ElementType::BF16 => bf16::from_f32(nan).to_ne_bytes().to_vec(),
        ElementType::F32 => nan.to_ne_bytes().to_vec(),
        ElementType::F64 => f64::from(nan).to_ne_bytes().to_vec(),
        // Where there is one NaN only, its sign bit is part of it.
        _ => {
            let code = minifloat(element).unwrap().round(nan);
            vec![if code & 0x7f == 0 { 0x80 } else { code }]
        }
    }
}

/// Whether the bytes of one element of a float type are a NaN.
pub(crate) fn is_nan(element: ElementType, bytes: &[u8]) -> bool {
    match element {
        ElementType::F16 => f16::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
        ElementType::BF16 => bf16::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
        ElementType::F32 => f32::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
        ElementType::F64 => f64::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
        _ => minifloat(element).unwrap().widen(bytes[0]).is_nan(),
    }
}

/// The bytes of `value` in a float type that has it.
pub(crate) fn float(element: ElementType, value: f32) -> Vec<u8> {
    match element {
        ElementType::F16 => f16::from_f32(value).to_ne_bytes().to_vec(),
        ElementType::BF16 => bf16::from_f32(value).to_ne_bytes().to_vec(),
        ElementType::F32 => value.to_ne_bytes().to_vec(),
        ElementType::F64 => f64::from(value).to_ne_bytes().to_vec(),
        _ => vec![minifloat(element).unwrap().round(value)],
    }
}

/// The fold of `operands` in their order.
pub(crate) fn fold(element: ElementType, reduction: Reduction, operands: &[Vec<u8>]) -> Vec<u8> {
    macro_rules! fold {
        ($type:ty, $widen:expr, $round:expr, $step:expr) => {
            fold!($type, $widen, $round, $step, |sum, _| sum)
        };
        ($type:ty, $widen:expr, $round:expr, $step:expr, $finish:expr) => {{
            let size = size_of::<$type>();
            let mut result = Vec::with_capacity(operands[0].len());
            for index in 0..operands[0].len() / size {
                let mut sum = None;
                for operand in operands {
                    let bytes = operand[index * size..][..size].try_into().unwrap();
                    let value = $widen(<$type>::from_ne_bytes(bytes));
                    sum = Some(match sum {
                        None => value,
                        Some(sum) => $step(sum, value),
                    });
                }
                let sum = $finish(sum.unwrap(), operands.len());
                result.extend($round(sum).to_ne_bytes());
            }
            result
        }};
    }
    macro_rules! integer {
        ($type:ty) => {
            fold!($type, |x: $type| x, |x: $type| x, |a: $type, b: $type| match reduction {
                Reduction::Sum => a.wrapping_add(b),
                Reduction::Product => a.wrapping_mul(b),
                Reduction::Min => a.min(b),
                Reduction::Max => a.max(b),
                Reduction::And => a & b,
                Reduction::Or => a | b,
                Reduction::Xor => a ^ b,
                Reduction::Mean => panic!("the mean of integers"),
            })
        };
    }
    macro_rules! float {
        ($type:ty, $sum:ty, $widen:expr, $round:expr) => {
            fold!(
                $type,
                $widen,
                $round,
                |a: $sum, b: $sum| match reduction {
                    Reduction::Sum | Reduction::Mean => a + b,
                    Reduction::Product => a * b,
                    Reduction::Min | Reduction::Max if a.is_nan() || b.is_nan() => <$sum>::NAN,
                    Reduction::Min => a.min(b),
                    Reduction::Max => a.max(b),
                    other => panic!("{other} of floats"),
                },
                |sum: $sum, count: usize| match reduction {
                    Reduction::Mean => sum / count as $sum,
                    _ => sum,
                }
            )
        };
    }
    if let Some(format) = minifloat(element) {
        return float!(u8, f32, |byte| format.widen(byte), |value| format.round(value));
    }
    match element {
        ElementType::Bool => {
            let column = |index: usize| operands.iter().map(move |operand| operand[index] != 0);
            let places = 0..operands[0].len();
            let fold = places.map(|index| match reduction {
                Reduction::Sum | Reduction::Max | Reduction::Or => column(index).any(|bit| bit),
                Reduction::Product | Reduction::Min | Reduction::And => {
                    column(index).all(|bit| bit)
                }
                Reduction::Xor => column(index).filter(|bit| *bit).count() % 2 == 1,
                Reduction::Mean => panic!("the mean of booleans"),
            });
            fold.map(u8::from).collect()
        }
        ElementType::I8 => integer!(i8),
        ElementType::I16 => integer!(i16),
        ElementType::I32 => integer!(i32),
        ElementType::I64 => integer!(i64),
        ElementType::U8 => integer!(u8),
        ElementType::U16 => integer!(u16),
        ElementType::U32 => integer!(u32),
        ElementType::U64 => integer!(u64),
        ElementType::F16 => float!(f16, f32, f16::to_f32, f16::from_f32),
        ElementType::BF16 => float!(bf16, f32, bf16::to_f32, bf16::from_f32),
        ElementType::F32 => float!(f32, f32, |x| x, |x: f32| x),
        ElementType::F64 => float!(f64, f64, |x| x, |x: f64| x),
        ElementType::I2 => narrow(2, true, reduction, operands),
        ElementType::I4 => narrow(4, true, reduction, operands),
        ElementType::U2 => narrow(2, false, reduction, operands),
        ElementType::U4 => narrow(4, false, reduction, operands),
        ElementType::C64 => complex(ElementType::F32, reduction, operands),
        ElementType::C128 => complex(ElementType::F64, reduction, operands),
        _ => panic!("{element} elements are not reduced"),
    }
}

/// Integers of the low bits of each byte, folded as bytes of which the low bits are kept.
fn narrow(bits: u32, signed: bool, reduction: Reduction, operands: &[Vec<u8>]) -> Vec<u8> {
    let spare = 8 - bits;
    let extend = |byte: &u8| {
        let high = byte << spare;
        if signed { (high.cast_signed() >> spare).cast_unsigned() } else { high >> spare }
    };
    let wide: Vec<Vec<u8>> =
        operands.iter().map(|operand| operand.iter().map(extend).collect()).collect();
    let element = if signed { ElementType::I8 } else { ElementType::U8 };
    fold(element, reduction, &wide).iter().map(|byte| byte << spare >> spare).collect()
}

/// Complex numbers by their parts.
fn complex(part: ElementType, reduction: Reduction, operands: &[Vec<u8>]) -> Vec<u8> {
    if reduction != Reduction::Product {
        return fold(part, reduction, operands);
    }
    let size = part.size_bytes();
    let of = |a: &[u8], b: &[u8], reduction| fold(part, reduction, &[a.to_vec(), b.to_vec()]);
    let negative = |a: &[u8]| {
        let mut a = a.to_vec();
        *a.last_mut().unwrap() ^= 0x80;
        a
    };
    let mut product = operands[0].clone();
    for operand in &operands[1..] {
        for (a, b) in product.chunks_mut(2 * size).zip(operand.chunks(2 * size)) {
            let times = |i: usize, j: usize| {
                of(&a[i * size..][..size], &b[j * size..][..size], Reduction::Product)
            };
            let real = of(&times(0, 0), &negative(&times(1, 1)), Reduction::Sum);
            let imaginary = of(&times(0, 1), &times(1, 0), Reduction::Sum);
            a.copy_from_slice(&[real, imaginary].concat());
        }
    }
    product
}
