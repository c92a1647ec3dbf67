//! Folding the operands of several members into one, in the order of the group.
//!
//! Element `e` of the result is `((a0[e] op a1[e]) op a2[e]) ...`, whatever the sizes: the tiles
//! below bound the working set and never regroup a fold, so that every owner gets the same bits
//! (I4). Floats of 8 and 16 bits are widened once, folded in f32 and rounded once.

mod complex;
mod minifloat;
mod narrow;
mod number;
mod partial;

use bytemuck::Zeroable;
use half::{bf16, f16};

use complex::Complex;
use minifloat::{F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ};
use narrow::Narrow;
pub(crate) use partial::Partial;

use number::{Arithmetic, Bitwise, Bool, Divide, Ordered};

use crate::element::{ElementType, Operator, Reduction, ReductionFunction};
use crate::stream::Copying;

/// Elements folded at a time: at 8 bytes, accumulator and scratch take 8 KiB of the first cache.
const TILE_ELEMENTS: usize = 512;

/// Bytes that the caller's function gets at a time, unless one element has more.
const BLOCK_BYTES: usize = 4096;

/// Bytes folded at a time where the result goes past the caches: so few that memory is read and
/// written by turns which are shorter than its queues.
const STREAMED_BYTES: usize = 1024;

/// How far before they are needed bytes are fetched meanwhile.
const AHEAD_BYTES: usize = 2048;

/// Bytes of the longest registers that a loop is worth choosing its instructions for.
const VECTOR_BYTES: usize = 32;

/// One operand of a fold; `None` is the one that the output holds before.
pub(crate) type Source<'a> = Option<&'a [u8]>;

/// Where a fold goes.
struct Output<'a> {
    bytes: &'a mut [u8],
    copying: Copying,
}

/// Folds `inputs`, the first to the last, into `output`.
///
/// All are whole elements and equally long; no alignment is asked for. Without inputs the output
/// is left as it is.
///
/// # Panics
/// When `operator` does not support `element`, or the lengths differ: callers check both before a
/// collective starts.
pub(crate) fn fold(
    element: ElementType,
    operator: &Operator<'_>,
    inputs: &[Source<'_>],
    output: &mut [u8],
) {
    fold_shared(element, operator, inputs, output, 0);
}

/// As [`fold`], for results of which the members of a host write `written_bytes`, all together.
pub(crate) fn fold_shared(
    element: ElementType,
    operator: &Operator<'_>,
    inputs: &[Source<'_>],
    output: &mut [u8],
    written_bytes: usize,
) {
    let fits = |input: &Source<'_>| input.is_none_or(|input| input.len() == output.len());
    assert!(inputs.iter().all(fits), "operands differ in length");
    assert!(operator.supports(element), "{element} has no {operator:?}");
    let reduction = match operator {
        Operator::Named(reduction) => *reduction,
        Operator::Function(function) => return fold_blocks(element, function, inputs, output),
    };
    let result = &mut Output { bytes: output, copying: Copying::of(written_bytes) };
    match element {
        ElementType::Bool => fold_integers::<Bool>(reduction, inputs, result),
        ElementType::I8 => fold_integers::<i8>(reduction, inputs, result),
        ElementType::I16 => fold_integers::<i16>(reduction, inputs, result),
        ElementType::I32 => fold_integers::<i32>(reduction, inputs, result),
        ElementType::I64 => fold_integers::<i64>(reduction, inputs, result),
        ElementType::U8 => fold_integers::<u8>(reduction, inputs, result),
        ElementType::U16 => fold_integers::<u16>(reduction, inputs, result),
        ElementType::U32 => fold_integers::<u32>(reduction, inputs, result),
        ElementType::U64 => fold_integers::<u64>(reduction, inputs, result),
        ElementType::I2 => fold_integers::<Narrow<2, true>>(reduction, inputs, result),
        ElementType::I4 => fold_integers::<Narrow<4, true>>(reduction, inputs, result),
        ElementType::U2 => fold_integers::<Narrow<2, false>>(reduction, inputs, result),
        ElementType::U4 => fold_integers::<Narrow<4, false>>(reduction, inputs, result),
        ElementType::F16 => fold_reals::<f16>(reduction, inputs, result),
        ElementType::BF16 => fold_reals::<bf16>(reduction, inputs, result),
        ElementType::F32 => fold_reals::<f32>(reduction, inputs, result),
        ElementType::F64 => fold_reals::<f64>(reduction, inputs, result),
        ElementType::F8E3M4 => fold_reals::<F8E3M4>(reduction, inputs, result),
        ElementType::F8E4M3 => fold_reals::<F8E4M3>(reduction, inputs, result),
        ElementType::F8E4M3FN => fold_reals::<F8E4M3FN>(reduction, inputs, result),
        ElementType::F8E4M3B11FNUZ => fold_reals::<F8E4M3B11FNUZ>(reduction, inputs, result),
        ElementType::F8E4M3FNUZ => fold_reals::<F8E4M3FNUZ>(reduction, inputs, result),
        ElementType::F8E5M2 => fold_reals::<F8E5M2>(reduction, inputs, result),
        ElementType::F8E5M2FNUZ => fold_reals::<F8E5M2FNUZ>(reduction, inputs, result),
        ElementType::C64 => fold_complex::<Complex<f32>>(reduction, inputs, result),
        ElementType::C128 => fold_complex::<Complex<f64>>(reduction, inputs, result),
        // No reduction has them, which was checked above.
        ElementType::Opaque { .. } => {}
    }
}

fn fold_integers<T: Arithmetic + Ordered + Bitwise>(
    reduction: Reduction,
    inputs: &[Source<'_>],
    output: &mut Output<'_>,
) {
    match reduction {
        Reduction::Sum => fold_by::<T>(T::sum, inputs, output),
        Reduction::Product => fold_by::<T>(T::product, inputs, output),
        Reduction::Min => fold_by::<T>(T::min, inputs, output),
        Reduction::Max => fold_by::<T>(T::max, inputs, output),
        Reduction::And => fold_by::<T>(T::and, inputs, output),
        Reduction::Or => fold_by::<T>(T::or, inputs, output),
        Reduction::Xor => fold_by::<T>(T::xor, inputs, output),
        // As `ElementType::supports` says, which was checked.
        Reduction::Mean => {}
    }
}

fn fold_reals<T: Arithmetic + Ordered + Divide>(
    reduction: Reduction,
    inputs: &[Source<'_>],
    output: &mut Output<'_>,
) {
    match reduction {
        Reduction::Min => fold_by::<T>(T::min, inputs, output),
        Reduction::Max => fold_by::<T>(T::max, inputs, output),
        _ => fold_complex::<T>(reduction, inputs, output),
    }
}

fn fold_complex<T: Arithmetic + Divide>(
    reduction: Reduction,
    inputs: &[Source<'_>],
    output: &mut Output<'_>,
) {
    match reduction {
        Reduction::Sum => fold_by::<T>(T::sum, inputs, output),
        Reduction::Product => fold_by::<T>(T::product, inputs, output),
        Reduction::Mean => {
            let count = inputs.len();
            fold_then::<T>(T::sum, |sum| T::divide(sum, count), inputs, output);
        }
        // As `ElementType::supports` says, which was checked.
        Reduction::Min | Reduction::Max | Reduction::And | Reduction::Or | Reduction::Xor => {}
    }
}

fn fold_by<T: Arithmetic>(
    combine: impl Fn(T::Accumulator, T::Accumulator) -> T::Accumulator,
    inputs: &[Source<'_>],
    output: &mut Output<'_>,
) {
    fold_then::<T>(combine, std::convert::identity, inputs, output);
}

/// Folds by `combine`; `finish` makes the folded accumulator the result, before it is rounded.
fn fold_then<T: Arithmetic>(
    combine: impl Fn(T::Accumulator, T::Accumulator) -> T::Accumulator,
    finish: impl Fn(T::Accumulator) -> T::Accumulator,
    inputs: &[Source<'_>],
    output: &mut Output<'_>,
) {
    let whole = fold_into::<T>(&combine, &finish, inputs, output)
        || fold_whole::<T, 2>(&combine, &finish, inputs, output)
        || fold_whole::<T, 3>(&combine, &finish, inputs, output)
        || fold_whole::<T, 4>(&combine, &finish, inputs, output);
    if whole {
        return;
    }
    let Some((first, others)) = inputs.split_first() else { return };
    let mut accumulator = [T::Accumulator::zeroed(); TILE_ELEMENTS];
    let mut scratch = [T::zeroed(); TILE_ELEMENTS];
    let tile_bytes = TILE_ELEMENTS * size_of::<T>();
    let Output { bytes, copying } = output;
    for (index, output) in bytes.chunks_mut(tile_bytes).enumerate() {
        let range = index * tile_bytes..index * tile_bytes + output.len();
        let accumulator = &mut accumulator[..output.len() / size_of::<T>()];
        let tile = first.map_or(&*output, |first| &first[range.clone()]);
        for (sum, value) in accumulator.iter_mut().zip(elements(tile, &mut scratch)) {
            *sum = value.widen();
        }
        for input in others {
            let tile = input.map_or(&*output, |input| &input[range.clone()]);
            for (sum, value) in accumulator.iter_mut().zip(elements(tile, &mut scratch)) {
                *sum = combine(*sum, value.widen());
            }
        }
        for (value, sum) in scratch.iter_mut().zip(&*accumulator) {
            *value = T::round(finish(*sum));
        }
        copying.copy(output, &bytemuck::cast_slice(&scratch)[..output.len()]);
    }
}

/// Folds `N` inputs in one pass, which is as fast as memory; whether it did: they are aligned and
/// none of them lies in the output.
fn fold_whole<T: Arithmetic, const N: usize>(
    combine: impl Fn(T::Accumulator, T::Accumulator) -> T::Accumulator,
    finish: impl Fn(T::Accumulator) -> T::Accumulator,
    inputs: &[Source<'_>],
    output: &mut Output<'_>,
) -> bool {
    let Output { bytes, copying } = output;
    let Ok(output) = bytemuck::try_cast_slice_mut::<u8, T>(bytes) else { return false };
    let Ok(inputs) = <&[Source<'_>; N]>::try_from(inputs) else { return false };
    let count = output.len();
    let mut elements = [&[][..]; N];
    for (elements, input) in elements.iter_mut().zip(inputs) {
        let input = input.map(bytemuck::try_cast_slice::<u8, T>);
        let Some(Ok(input)) = input else { return false };
        *elements = &input[..count];
    }
    if !copying.streams() {
        vectorised(
            size_of_val(output),
            #[inline(always)]
            move || fold_elements(output, elements, combine, finish),
        );
        return true;
    }
    // More than two fold what is that long by chunks, each of which stays in a cache.
    if N != 2 {
        return false;
    }
    vectorised(
        size_of_val(output),
        #[inline(always)]
        move || {
            let mut block = [T::zeroed(); TILE_ELEMENTS];
            let length = (STREAMED_BYTES / size_of::<T>()).clamp(1, TILE_ELEMENTS);
            let ahead = AHEAD_BYTES / size_of::<T>();
            for (index, output) in output.chunks_mut(length).enumerate() {
                let range = index * length..index * length + output.len();
                for elements in elements {
                    let expected = elements.get(range.start + ahead..range.end + ahead);
                    copying.expect(bytemuck::cast_slice(expected.unwrap_or_default()));
                }
                let block = &mut block[..output.len()];
                let elements = elements.map(|elements| &elements[range.clone()]);
                fold_elements(block, elements, &combine, &finish);
                copying.copy(bytemuck::cast_slice_mut(output), bytemuck::cast_slice(block));
            }
        },
    );
    true
}

/// Folds `elements`, which are as many of each input as of the output.
#[inline(always)]
fn fold_elements<T: Arithmetic, const N: usize>(
    output: &mut [T],
    elements: [&[T]; N],
    combine: impl Fn(T::Accumulator, T::Accumulator) -> T::Accumulator,
    finish: impl Fn(T::Accumulator) -> T::Accumulator,
) {
    for (index, value) in output.iter_mut().enumerate() {
        let mut terms = elements.iter().map(|elements| elements[index].widen());
        let Some(first) = terms.next() else { return };
        *value = T::round(finish(terms.fold(first, &combine)));
    }
}

/// Folds one of two inputs into the other, in one pass; whether it did: both are aligned, and the
/// other lies in the output.
fn fold_into<T: Arithmetic>(
    combine: impl Fn(T::Accumulator, T::Accumulator) -> T::Accumulator,
    finish: impl Fn(T::Accumulator) -> T::Accumulator,
    inputs: &[Source<'_>],
    output: &mut Output<'_>,
) -> bool {
    let (input, is_first) = match inputs {
        [Some(first), None] => (first, true),
        [None, Some(second)] => (second, false),
        _ => return false,
    };
    let Ok(output) = bytemuck::try_cast_slice_mut::<u8, T>(output.bytes) else { return false };
    let Ok(input) = bytemuck::try_cast_slice::<u8, T>(input) else { return false };
    vectorised(
        size_of_val(output),
        #[inline(always)]
        move || {
            for (value, input) in output.iter_mut().zip(input) {
                let (own, other) = (value.widen(), input.widen());
                let folded = if is_first { combine(other, own) } else { combine(own, other) };
                *value = T::round(finish(folded));
            }
        },
    );
    true
}

/// Runs a loop over `length_bytes` with the best instructions that this processor has, which
/// changes no bit; one that is shorter than their registers as it is.
#[inline(always)]
fn vectorised(length_bytes: usize, work: impl FnOnce()) {
    if length_bytes < VECTOR_BYTES {
        work();
    } else {
        pulp::Arch::new().dispatch(work);
    }
}

/// Folds by the caller's function.
fn fold_blocks(
    element: ElementType,
    function: &ReductionFunction<'_>,
    inputs: &[Source<'_>],
    output: &mut [u8],
) {
    let Some((first, others)) = inputs.split_first() else { return };
    let size = element.size_bytes().max(1);
    let block_bytes = (BLOCK_BYTES / size).max(1) * size;
    let mut held = Vec::new();
    for (index, output) in output.chunks_mut(block_bytes).enumerate() {
        let range = index * block_bytes..index * block_bytes + output.len();
        // The output is the accumulator, so what it holds for a later turn is set aside.
        held.clear();
        if others.contains(&None) {
            held.extend_from_slice(output);
        }
        if let Some(first) = first {
            output.copy_from_slice(&first[range.clone()]);
        }
        for input in others {
            (function.fold)(output, input.map_or(&held, |input| &input[range.clone()]));
        }
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

#[cfg(test)]
mod tests {
    use bytemuck::Pod;
    use proptest::prelude::*;

    use super::*;

    fn fold_of<T: Pod>(element: ElementType, reduction: Reduction, inputs: &[&[T]]) -> Vec<T> {
        let mut output = vec![T::zeroed(); inputs[0].len()];
        let inputs: Vec<Source<'_>> =
            inputs.iter().map(|input| Some(bytemuck::cast_slice(input))).collect();
        fold(element, &reduction.into(), &inputs, bytemuck::cast_slice_mut(&mut output));
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
        let mean = fold_of(ElementType::BF16, Reduction::Mean, &[&ones[..]; 512]);
        assert_eq!(mean, ones);
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

    #[test]
    fn narrow_integers_wrap_in_their_low_bits() {
        let inputs: [&[u8]; 2] = [&[0x07, 0xf8, 0x13], &[0x01, 0x0f, 0x02]];
        let of = |element, reduction| fold_of(element, reduction, &inputs);
        assert_eq!(of(ElementType::I4, Reduction::Sum), [0x8, 0x7, 0x5]);
        assert_eq!(of(ElementType::I4, Reduction::Min), [0x1, 0x8, 0x2]);
        assert_eq!(of(ElementType::U4, Reduction::Min), [0x1, 0x8, 0x2]);
        assert_eq!(of(ElementType::I4, Reduction::Max), [0x7, 0xf, 0x3]);
        assert_eq!(of(ElementType::U4, Reduction::Product), [0x7, 0x8, 0x6]);
        assert_eq!(of(ElementType::U2, Reduction::Sum), [0, 3, 1]);
        assert_eq!(of(ElementType::I2, Reduction::Max), [1, 0, 3]);
    }

    #[test]
    fn complex_numbers_add_and_multiply() {
        let inputs: [&[[f32; 2]]; 2] = [&[[1.0, 2.0], [0.0, -1.0]], &[[3.0, -1.0], [0.5, 4.0]]];
        let of = |reduction| fold_of(ElementType::C64, reduction, &inputs);
        assert_eq!(of(Reduction::Sum), [[4.0, 1.0], [0.5, 3.0]]);
        assert_eq!(of(Reduction::Product), [[5.0, 5.0], [4.0, -0.5]]);
        assert_eq!(of(Reduction::Mean), [[2.0, 0.5], [0.25, 1.5]]);
    }

    /// `2 a + b` depends on the order, and three bytes make no aligned element.
    #[test]
    fn a_function_folds_in_order_whatever_the_blocks() {
        let twice = |a: &mut [u8], b: &[u8]| {
            assert_eq!((a.len() % 3, a.len()), (0, b.len()));
            for (a, b) in a.iter_mut().zip(b) {
                *a = a.wrapping_mul(2).wrapping_add(*b);
            }
        };
        let operator = ReductionFunction { fingerprint: 1, fold: &twice }.into();
        let element = ElementType::Opaque { size_bytes: 3 };
        for length in [0, 3, 4095, 4098, 12_000] {
            let operand = |factor: u8| -> Vec<u8> {
                (0..=u8::MAX).cycle().map(|byte| byte.wrapping_mul(factor)).take(length).collect()
            };
            let operands = [operand(1), operand(7), operand(11)];
            // 4 + 2 * 7 + 11 times the byte.
            let expected = operand(29);
            let mut output = vec![0xa5; length];
            fold(element, &operator, &operands.each_ref().map(|o| Some(&o[..])), &mut output);
            assert_eq!(output, expected, "{length} bytes");
            for own in 0..3 {
                let mut inputs = operands.each_ref().map(|operand| Some(&operand[..]));
                inputs[own] = None;
                let mut in_place = operands[own].clone();
                fold(element, &operator, &inputs, &mut in_place);
                assert_eq!(in_place, expected, "{length} bytes, member {own} in place");
            }
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
            let inputs: Vec<Source<'_>> =
                operands.iter().map(|operand| Some(&operand[misaligned..])).collect();
            let operator = Operator::from(reduction);
            let mut whole = vec![0; count * size];
            fold(element, &operator, &inputs, &mut whole);
            let mut streamed = vec![0; count * size];
            fold_shared(element, &operator, &inputs, &mut streamed, usize::MAX);
            prop_assert_eq!(&streamed, &whole, "past the caches");
            for (index, value) in whole.chunks(size).enumerate() {
                let one: Vec<Source<'_>> =
                    inputs.iter().map(|input| Some(&(*input)?[index * size..][..size])).collect();
                let mut alone = vec![0; size];
                fold(element, &operator, &one, &mut alone);
                prop_assert_eq!(value, &alone[..], "element {}", index);
            }
            // An operand that lies in the output is folded in its turn.
            for own in 0..members {
                let mut in_place = operands[own][misaligned..].to_vec();
                let mut inputs = inputs.clone();
                inputs[own] = None;
                fold(element, &operator, &inputs, &mut in_place);
                prop_assert_eq!(&in_place, &whole, "member {} in place", own);
            }
        }
    }
}
