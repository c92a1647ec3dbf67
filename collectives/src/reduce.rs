//! Folding the operands of several members into one, in the order of the group.
//!
//! Element `e` of the result is `((a0[e] op a1[e]) op a2[e]) ...`, whatever the sizes: the tiles
//! below bound the working set and never regroup a fold, so that every owner gets the same bits
//! (I4). 16-bit floats are widened once, folded in f32 and rounded once.

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};

use crate::element::{ElementType, Reduction};

/// Elements folded at a time: at 8 bytes, accumulator and scratch take 8 KiB of the first cache.
const TILE_ELEMENTS: usize = 512;

/// Folds `inputs`, the first to the last, into `output`.
///
/// All are whole elements and equally long; no alignment is asked for. Without inputs the output
/// is left as it is.
///
/// # Panics
/// When `element` does not support `reduction`, or the lengths differ: callers check both before a
/// collective starts.
pub(crate) fn fold(
    element: ElementType,
    reduction: Reduction,
    inputs: &[&[u8]],
    output: &mut [u8],
) {
    assert!(inputs.iter().all(|input| input.len() == output.len()), "operands differ in length");
    assert!(element.supports(reduction), "{element} has no {reduction}");
    match element {
        ElementType::Bool => fold_bits::<Bool>(reduction, inputs, output),
        ElementType::I8 => fold_bits::<i8>(reduction, inputs, output),
        ElementType::I16 => fold_bits::<i16>(reduction, inputs, output),
        ElementType::I32 => fold_bits::<i32>(reduction, inputs, output),
        ElementType::I64 => fold_bits::<i64>(reduction, inputs, output),
        ElementType::U8 => fold_bits::<u8>(reduction, inputs, output),
        ElementType::U16 => fold_bits::<u16>(reduction, inputs, output),
        ElementType::U32 => fold_bits::<u32>(reduction, inputs, output),
        ElementType::U64 => fold_bits::<u64>(reduction, inputs, output),
        ElementType::F16 => fold_numbers::<f16>(reduction, inputs, output),
        ElementType::BF16 => fold_numbers::<bf16>(reduction, inputs, output),
        ElementType::F32 => fold_numbers::<f32>(reduction, inputs, output),
        ElementType::F64 => fold_numbers::<f64>(reduction, inputs, output),
        ElementType::Opaque { .. } => {}
    }
}

fn fold_bits<T: Bitwise>(reduction: Reduction, inputs: &[&[u8]], output: &mut [u8]) {
    match reduction {
        Reduction::And => fold_by::<T>(T::and, inputs, output),
        Reduction::Or => fold_by::<T>(T::or, inputs, output),
        Reduction::Xor => fold_by::<T>(T::xor, inputs, output),
        Reduction::Sum | Reduction::Product | Reduction::Min | Reduction::Max => {
            fold_numbers::<T>(reduction, inputs, output);
        }
    }
}

fn fold_numbers<T: Arithmetic>(reduction: Reduction, inputs: &[&[u8]], output: &mut [u8]) {
    match reduction {
        Reduction::Sum => fold_by::<T>(T::sum, inputs, output),
        Reduction::Product => fold_by::<T>(T::product, inputs, output),
        Reduction::Min => fold_by::<T>(T::min, inputs, output),
        Reduction::Max => fold_by::<T>(T::max, inputs, output),
        // Floats have none of these, as `ElementType::supports` says.
        Reduction::And | Reduction::Or | Reduction::Xor => {}
    }
}

fn fold_by<T: Arithmetic>(
    combine: impl Fn(T::Accumulator, T::Accumulator) -> T::Accumulator,
    inputs: &[&[u8]],
    output: &mut [u8],
) {
    let Some((first, others)) = inputs.split_first() else { return };
    let mut accumulator = [T::Accumulator::zeroed(); TILE_ELEMENTS];
    let mut scratch = [T::zeroed(); TILE_ELEMENTS];
    let tile_bytes = TILE_ELEMENTS * size_of::<T>();
    for (index, output) in output.chunks_mut(tile_bytes).enumerate() {
        let range = index * tile_bytes..index * tile_bytes + output.len();
        let accumulator = &mut accumulator[..output.len() / size_of::<T>()];
        for (sum, value) in
            accumulator.iter_mut().zip(elements(&first[range.clone()], &mut scratch))
        {
            *sum = value.widen();
        }
        for input in others {
            let values = elements(&input[range.clone()], &mut scratch);
            for (sum, value) in accumulator.iter_mut().zip(values) {
                *sum = combine(*sum, value.widen());
            }
        }
        for (value, sum) in scratch.iter_mut().zip(&*accumulator) {
            *value = T::round(*sum);
        }
        output.copy_from_slice(&bytemuck::cast_slice(&scratch)[..output.len()]);
    }
}

/// A tile's bytes as elements: where they lie if they are aligned, through `scratch` if not.
fn elements<'a, T: Arithmetic>(bytes: &'a [u8], scratch: &'a mut [T; TILE_ELEMENTS]) -> &'a [T] {
    bytemuck::try_cast_slice(bytes).unwrap_or_else(|_| {
        let count = bytes.len() / size_of::<T>();
        bytemuck::cast_slice_mut(&mut scratch[..count]).copy_from_slice(bytes);
        &scratch[..count]
    })
}

/// The arithmetic of one element type.
trait Arithmetic: Pod {
    /// What a fold is carried in.
    type Accumulator: Pod;

    fn widen(self) -> Self::Accumulator;
    fn round(accumulator: Self::Accumulator) -> Self;

    fn sum(a: Self::Accumulator, b: Self::Accumulator) -> Self::Accumulator;
    fn product(a: Self::Accumulator, b: Self::Accumulator) -> Self::Accumulator;
    fn min(a: Self::Accumulator, b: Self::Accumulator) -> Self::Accumulator;
    fn max(a: Self::Accumulator, b: Self::Accumulator) -> Self::Accumulator;
}

/// The bits of one element type.
trait Bitwise: Arithmetic {
    fn and(a: Self::Accumulator, b: Self::Accumulator) -> Self::Accumulator;
    fn or(a: Self::Accumulator, b: Self::Accumulator) -> Self::Accumulator;
    fn xor(a: Self::Accumulator, b: Self::Accumulator) -> Self::Accumulator;
}

/// A byte that holds a truth value: anything but 0 is true.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(transparent)]
struct Bool(u8);

impl Arithmetic for Bool {
    type Accumulator = u8;

    fn widen(self) -> u8 {
        u8::from(self.0 != 0)
    }
    fn round(accumulator: u8) -> Self {
        Self(accumulator)
    }
    fn sum(a: u8, b: u8) -> u8 {
        a | b
    }
    fn product(a: u8, b: u8) -> u8 {
        a & b
    }
    fn min(a: u8, b: u8) -> u8 {
        a & b
    }
    fn max(a: u8, b: u8) -> u8 {
        a | b
    }
}

impl Bitwise for Bool {
    fn and(a: u8, b: u8) -> u8 {
        a & b
    }
    fn or(a: u8, b: u8) -> u8 {
        a | b
    }
    fn xor(a: u8, b: u8) -> u8 {
        a ^ b
    }
}

macro_rules! integer {
    ($($type:ty)*) => {$(
        impl Arithmetic for $type {
            type Accumulator = Self;

            fn widen(self) -> Self {
                self
            }
            fn round(accumulator: Self) -> Self {
                accumulator
            }
            fn sum(a: Self, b: Self) -> Self {
                a.wrapping_add(b)
            }
            fn product(a: Self, b: Self) -> Self {
                a.wrapping_mul(b)
            }
            fn min(a: Self, b: Self) -> Self {
                Ord::min(a, b)
            }
            fn max(a: Self, b: Self) -> Self {
                Ord::max(a, b)
            }
        }

        impl Bitwise for $type {
            fn and(a: Self, b: Self) -> Self {
                a & b
            }
            fn or(a: Self, b: Self) -> Self {
                a | b
            }
            fn xor(a: Self, b: Self) -> Self {
                a ^ b
            }
        }
    )*};
}
integer!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! float {
    ($($type:ty as $accumulator:ty, $widen:expr, $round:expr;)*) => {$(
        impl Arithmetic for $type {
            type Accumulator = $accumulator;

            fn widen(self) -> $accumulator {
                $widen(self)
            }
            fn round(accumulator: $accumulator) -> Self {
                $round(accumulator)
            }
            fn sum(a: $accumulator, b: $accumulator) -> $accumulator {
                a + b
            }
            fn product(a: $accumulator, b: $accumulator) -> $accumulator {
                a * b
            }
            fn min(a: $accumulator, b: $accumulator) -> $accumulator {
                let first = a.is_nan() || a < b || (a == b && a.is_sign_negative());
                if first { a } else { b }
            }
            fn max(a: $accumulator, b: $accumulator) -> $accumulator {
                let first = a.is_nan() || a > b || (a == b && a.is_sign_positive());
                if first { a } else { b }
            }
        }
    )*};
}
float! {
    f32 as f32, std::convert::identity, std::convert::identity;
    f64 as f64, std::convert::identity, std::convert::identity;
    f16 as f32, f16::to_f32, f16::from_f32;
    bf16 as f32, bf16::to_f32, bf16::from_f32;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fold_of<T: Pod>(element: ElementType, reduction: Reduction, inputs: &[&[T]]) -> Vec<T> {
        let mut output = vec![T::zeroed(); inputs[0].len()];
        let inputs: Vec<&[u8]> = inputs.iter().map(|input| bytemuck::cast_slice(input)).collect();
        fold(element, reduction, &inputs, bytemuck::cast_slice_mut(&mut output));
        output
    }

    #[test]
    fn integers_wrap_at_every_count() {
        for count in 1..=65 {
            let input = vec![i16::MAX / 2 + 1; count];
            let sum = fold_of(ElementType::I16, Reduction::Sum, &[&input, &input]);
            assert_eq!(sum, vec![i16::MIN; count]);
            let product =
                fold_of(ElementType::U8, Reduction::Product, &[&vec![16_u8; count][..]; 3]);
            assert_eq!(product, vec![0; count]);
        }
    }

    #[test]
    fn halves_accumulate_in_single_precision() {
        let ones = [bf16::ONE; 3];
        let sum = fold_of(ElementType::BF16, Reduction::Sum, &[&ones[..]; 512]);
        assert_eq!(sum, [bf16::from_f32(512.0); 3]);
        // In f16 the first partial sum would be infinite.
        let inputs = [60_000.0, 60_000.0, -60_000.0].map(|value| [f16::from_f32(value)]);
        let inputs: Vec<&[f16]> = inputs.iter().map(|input| &input[..]).collect();
        assert_eq!(fold_of(ElementType::F16, Reduction::Sum, &inputs), inputs[0]);
    }

    #[test]
    fn booleans_are_stored_as_0_and_1() {
        let inputs: [&[u8]; 3] = [&[0, 1, 2, 0, 255], &[0, 1, 4, 8, 0], &[0, 1, 8, 0, 0]];
        let of = |reduction| fold_of(ElementType::Bool, reduction, &inputs);
        assert_eq!(of(Reduction::Sum), [0, 1, 1, 1, 1]);
        assert_eq!(of(Reduction::Product), [0, 1, 1, 0, 0]);
        assert_eq!(of(Reduction::Xor), [0, 1, 1, 1, 1]);
        assert_eq!(fold_of(ElementType::Bool, Reduction::And, &inputs[..1]), [0, 1, 1, 0, 1]);
    }

    #[test]
    fn a_nan_is_kept_and_zeros_are_told_apart() {
        let nan = f64::NAN;
        let inputs: [&[f64]; 2] = [&[nan, 1.0, 0.0, -0.0, 2.0], &[1.0, nan, -0.0, 0.0, 1.0]];
        for (reduction, zero, other) in [(Reduction::Min, -0.0, 1.0), (Reduction::Max, 0.0, 2.0)] {
            let result = fold_of(ElementType::F64, reduction, &inputs);
            assert!(result[0].is_nan() && result[1].is_nan(), "{reduction}: {result:?}");
            let bits = [zero, zero, other].map(f64::to_bits);
            assert_eq!(result[2..].iter().map(|x| x.to_bits()).collect::<Vec<_>>(), bits);
        }
    }

    proptest! {
        /// Neither tiles nor alignment change a bit: the whole equals its elements one by one.
        #[test]
        fn tiles_and_alignment_do_not_show(
            element in prop::sample::select(&ElementType::ARITHMETIC[..]),
            reduction in prop::sample::select(&Reduction::ALL[..]),
            bytes: [u8; 64],
            count in prop_oneof![0_usize..20, 500_usize..530],
            members in 1_usize..5,
            misaligned in 0_usize..8,
        ) {
            prop_assume!(element.supports(reduction));
            let size = element.size_bytes();
            let length = misaligned + count * size;
            let operands: Vec<Vec<u8>> = (0..members)
                .map(|member| {
                    let pattern = bytes.iter().cycle().skip(member * 7).zip(0_u8..=250);
                    let pattern = pattern.map(|(byte, turn)| byte.wrapping_mul(turn | 1));
                    pattern.collect::<Vec<_>>().into_iter().cycle().take(length).collect()
                })
                .collect();
            let inputs: Vec<&[u8]> =
                operands.iter().map(|operand| &operand[misaligned..]).collect();
            let mut whole = vec![0; count * size];
            fold(element, reduction, &inputs, &mut whole);
            for (index, value) in whole.chunks(size).enumerate() {
                let one: Vec<&[u8]> =
                    inputs.iter().map(|input| &input[index * size..][..size]).collect();
                let mut alone = vec![0; size];
                fold(element, reduction, &one, &mut alone);
                prop_assert_eq!(value, &alone[..], "element {}", index);
            }
        }
    }
}
