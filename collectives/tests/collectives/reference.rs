//! The slow and obvious answer: one scalar at a time, one member after the other.

use half::{bf16, f16};
use lockstep_collectives::{ElementType, Reduction};

/// Element `index` of the operand of member `member`: different for every pair of them, and for
/// floats such that sums depend on their order.
pub fn operand(element: ElementType, member: u32, count: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count * element.size_bytes());
    for index in 0..count {
        // A Weyl sequence: neighbours differ in all bits.
        let bits = (u64::from(member) << 32 | index as u64)
            .wrapping_add(1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let real = ((bits >> 40) as f64 / f64::from(1 << 24) - 0.4) * 8.0;
        match element {
            ElementType::Bool => bytes.push(u8::from(bits >> 63 == 1)),
            ElementType::F16 => bytes.extend(f16::from_f64(real).to_ne_bytes()),
            ElementType::BF16 => bytes.extend(bf16::from_f64(real).to_ne_bytes()),
            ElementType::F32 => bytes.extend((real as f32).to_ne_bytes()),
            ElementType::F64 => bytes.extend(real.to_ne_bytes()),
            _ => bytes.extend((0..element.size_bytes()).map(|byte| (bits >> (8 * (byte % 8))) as u8)),
        }
    }
    bytes
}

/// The fold of `operands` in their order.
pub fn fold(element: ElementType, reduction: Reduction, operands: &[Vec<u8>]) -> Vec<u8> {
    let size = element.size_bytes();
    let count = operands[0].len() / size;
    let column = |index: usize| operands.iter().map(move |operand| &operand[index * size..][..size]);
    (0..count).flat_map(|index| fold_scalar(element, reduction, column(index))).collect()
}

fn fold_scalar<'a>(
    element: ElementType,
    reduction: Reduction,
    values: impl Iterator<Item = &'a [u8]>,
) -> Vec<u8> {
    macro_rules! fold {
        ($type:ty, $step:expr) => {
            values
                .map(|bytes| <$type>::from_ne_bytes(bytes.try_into().unwrap()))
                .reduce($step)
                .unwrap()
                .to_ne_bytes()
                .to_vec()
        };
    }
    macro_rules! integer {
        ($type:ty) => {
            fold!($type, |a, b| match reduction {
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
        ($type:ty) => {
            fold!($type, |a, b| match reduction {
                Reduction::Sum => a + b,
                Reduction::Product => a * b,
                Reduction::Min if a.is_nan() || b.is_nan() => <$type>::NAN,
                Reduction::Max if a.is_nan() || b.is_nan() => <$type>::NAN,
                Reduction::Min => a.min(b),
                Reduction::Max => a.max(b),
                other => panic!("{other} of floats"),
            })
        };
    }
    macro_rules! half {
        ($type:ty) => {{
            let widened: Vec<Vec<u8>> = values
                .map(|bytes| <$type>::from_ne_bytes(bytes.try_into().unwrap()).to_f32())
                .map(|value| value.to_ne_bytes().to_vec())
                .collect();
            let sum = fold_scalar(ElementType::F32, reduction, widened.iter().map(Vec::as_slice));
            let sum = f32::from_ne_bytes(sum.try_into().unwrap());
            <$type>::from_f32(sum).to_ne_bytes().to_vec()
        }};
    }
    match element {
        ElementType::Bool => {
            let bits: Vec<bool> = values.map(|bytes| bytes[0] != 0).collect();
            vec![u8::from(match reduction {
                Reduction::Sum | Reduction::Max | Reduction::Or => bits.contains(&true),
                Reduction::Product | Reduction::Min | Reduction::And => !bits.contains(&false),
                Reduction::Xor => bits.iter().filter(|bit| **bit).count() % 2 == 1,
            })]
        }
        ElementType::I8 => integer!(i8),
        ElementType::I16 => integer!(i16),
        ElementType::I32 => integer!(i32),
        ElementType::I64 => integer!(i64),
        ElementType::U8 => integer!(u8),
        ElementType::U16 => integer!(u16),
        ElementType::U32 => integer!(u32),
        ElementType::U64 => integer!(u64),
        ElementType::F16 => half!(f16),
        ElementType::BF16 => half!(bf16),
        ElementType::F32 => float!(f32),
        ElementType::F64 => float!(f64),
        ElementType::Opaque { .. } => panic!("opaque elements are not reduced"),
    }
}
