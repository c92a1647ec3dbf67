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
            _ => {
                let pattern = bits.to_be_bytes();
                bytes.extend(pattern.iter().cycle().take(element.size_bytes()));
            }
        }
    }
    bytes
}

/// The fold of `operands` in their order.
pub(crate) fn fold(element: ElementType, reduction: Reduction, operands: &[Vec<u8>]) -> Vec<u8> {
    macro_rules! fold {
        ($type:ty, $widen:expr, $round:expr, $step:expr) => {{
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
                result.extend($round(sum.unwrap()).to_ne_bytes());
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
            })
        };
    }
    macro_rules! float {
        ($type:ty, $sum:ty, $widen:expr, $round:expr) => {
            fold!($type, $widen, $round, |a: $sum, b: $sum| match reduction {
                Reduction::Sum => a + b,
                Reduction::Product => a * b,
                Reduction::Min | Reduction::Max if a.is_nan() || b.is_nan() => <$sum>::NAN,
                Reduction::Min => a.min(b),
                Reduction::Max => a.max(b),
                other => panic!("{other} of floats"),
            })
        };
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
        ElementType::Opaque { .. } => panic!("opaque elements are not reduced"),
    }
}
