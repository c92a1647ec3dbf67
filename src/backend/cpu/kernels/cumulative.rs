//! Cumulative sums, products and extremes: `reduce_window` by windows that end, or begin, at every
//! element and reach to the edge.
//!
//! Every element is met once. Blocks, and blocks of blocks, are accumulated on their own and put
//! behind what was before them: the error of a long sum stays far below that of adding one by one. 16-bit floats
//! accumulate in `f32`; each result is rounded once.

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::element::{Element, with_element};
use crate::backend::Reduction;
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::ifrt::DType;

/// How many elements along the dimension make a block.
const BLOCK: usize = 128;
/// How many elements make a block of blocks.
const LARGE_BLOCK: usize = 64 * BLOCK;

/// An accumulation along one dimension of a dense operand; the second input is the initial value,
/// which is neutral.
#[derive(Debug)]
pub(crate) struct Cumulative {
    reduction: Reduction,
    len: usize,
    /// How many elements lie between neighbours along the dimension.
    inner: usize,
    /// Whether windows reach to the end instead of the beginning.
    from_end: bool,
    run: fn(&Self, &[u8], &[u8], &mut [u8]),
}

impl Cumulative {
    /// The accumulation along `dimension` of an operand with `dims`, if the type has the
    /// operation and `init` is a neutral element of it.
    pub(crate) fn new(
        reduction: Reduction,
        dtype: DType,
        init: &[u8],
        dims: &[usize],
        dimension: usize,
        from_end: bool,
    ) -> Option<Self> {
        let neutral = with_element!(dtype, T => is_neutral::<T>(reduction, init), _ => false);
        let run: fn(&Self, &[u8], &[u8], &mut [u8]) =
            with_element!(dtype, T => run::<T>, _ => return None);
        neutral.then(|| Self {
            reduction,
            len: dims[dimension],
            inner: dims[dimension + 1..].iter().product(),
            from_end,
            run,
        })
    }
}

fn is_neutral<T: Element>(reduction: Reduction, init: &[u8]) -> bool {
    let neutral = match reduction {
        Reduction::Sum => T::default(),
        Reduction::Product => T::ONE,
        Reduction::Min => T::HIGHEST,
        Reduction::Max => T::LOWEST,
        Reduction::And | Reduction::Or | Reduction::Xor => return false,
    };
    cast_slice::<_, T>(init) == [neutral]
}

impl Kernel for Cumulative {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        if let ([operand, init], [out]) = (inputs, outputs)
            && !out.is_empty()
        {
            (self.run)(self, operand.bytes(), init.bytes(), out);
        }
    }
}

fn run<T: Element>(cumulative: &Cumulative, operand: &[u8], init: &[u8], out: &mut [u8]) {
    type Accumulator<T> = <T as Element>::Accumulator;
    // Each arm is an instance of its own, so that the operation is inlined into the loops.
    macro_rules! by {
        ($fold:ident) => {
            cumulative.accumulate::<T, Accumulator<T>>(
                cast_slice(operand),
                cast_slice(init),
                cast_slice_mut(out),
                T::widen,
                T::narrow,
                Element::$fold,
            )
        };
    }
    match cumulative.reduction {
        Reduction::Product => by!(multiply),
        Reduction::Min => by!(minimum),
        Reduction::Max => by!(maximum),
        _ => by!(add),
    }
}

impl Cumulative {
    fn accumulate<T: Pod, A: Pod>(
        &self,
        operand: &[T],
        init: &[T],
        out: &mut [T],
        widen: impl Fn(T) -> A,
        narrow: impl Fn(A) -> T,
        fold: impl Fn(A, A) -> A,
    ) {
        let &[init] = init else {
            return;
        };
        let (init, inner) = (widen(init), self.inner);
        // Of neighbouring lines: what lies before the large block, what lies before the block in
        // it, and the block so far.
        let mut far = vec![init; inner];
        let mut near = vec![init; inner];
        let mut block = vec![init; inner];
        let volumes = operand.chunks_exact(self.len * inner);
        for (operand, out) in volumes.zip(out.chunks_exact_mut(self.len * inner)) {
            far.fill(init);
            near.fill(init);
            for step in 0..self.len {
                if step > 0 && step.is_multiple_of(BLOCK) {
                    for ((far, near), &block) in far.iter_mut().zip(&mut near).zip(&block) {
                        *near = fold(*near, block);
                        if step.is_multiple_of(LARGE_BLOCK) {
                            *far = fold(*far, *near);
                            *near = init;
                        }
                    }
                }
                let row = if self.from_end { self.len - 1 - step } else { step };
                let row = row * inner..(row + 1) * inner;
                let lines = far.iter().zip(&near).zip(&mut block);
                let elements = operand[row.clone()].iter().zip(&mut out[row]);
                for (((&far, &near), block), (&x, out)) in lines.zip(elements) {
                    let x = widen(x);
                    *block = if step.is_multiple_of(BLOCK) { x } else { fold(*block, x) };
                    *out = narrow(fold(fold(far, near), *block));
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_wrap, reason = "test data is small")]
mod tests {
    use super::*;

    fn accumulated<T: Pod>(
        reduction: Reduction,
        dtype: DType,
        (dims, dimension): (&[usize], usize),
        from_end: bool,
        operand: &[T],
        init: T,
    ) -> Option<Vec<T>> {
        let init = [init];
        let kernel =
            Cumulative::new(reduction, dtype, cast_slice(&init), dims, dimension, from_end)?;
        let mut out = vec![T::zeroed(); operand.len()];
        kernel.run(
            &[Input::Bytes(cast_slice(operand)), Input::Bytes(cast_slice(&init))],
            &mut [cast_slice_mut(&mut out)],
            &mut Scratch::default(),
        );
        Some(out)
    }

    #[test]
    fn every_result_is_the_fold_up_to_its_element_or_from_it() {
        let lengths = [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7, LARGE_BLOCK + BLOCK + 1];
        for len in lengths {
            for inner in [1, 3] {
                let dims = [2, len, inner];
                let count = 2 * len * inner;
                let operand: Vec<i64> = (0..count).map(|i| (i * 7919 % 101) as i64 - 50).collect();
                let expected = |from_end: bool, fold: fn(i64, i64) -> i64| -> Vec<i64> {
                    let mut out = operand.clone();
                    for at in 0..count {
                        let step = at / inner % len;
                        let at = if from_end { count - 1 - at } else { at };
                        if step > 0 {
                            let from = if from_end { at + inner } else { at - inner };
                            out[at] = fold(out[from], out[at]);
                        }
                    }
                    out
                };
                let shape = (&dims[..], 1);
                for from_end in [false, true] {
                    let sums =
                        accumulated(Reduction::Sum, DType::S64, shape, from_end, &operand, 0);
                    assert_eq!(sums.unwrap(), expected(from_end, |a, b| a + b), "{dims:?}");
                    let (kind, init) = (Reduction::Max, i64::MIN);
                    let greatest = accumulated(kind, DType::S64, shape, from_end, &operand, init);
                    assert_eq!(greatest.unwrap(), expected(from_end, i64::max), "{dims:?}");
                }
            }
        }
    }

    #[test]
    fn long_sums_keep_their_precision() {
        let operand: Vec<f32> = (0..1_000_000_u32).map(|i| 0.1 + (i % 7) as f32).collect();
        let shape = (&[operand.len()][..], 0);
        let sums = accumulated(Reduction::Sum, DType::F32, shape, false, &operand, 0.0).unwrap();
        let mut exact = 0.0;
        for (i, (&x, &sum)) in operand.iter().zip(&sums).enumerate() {
            exact += f64::from(x);
            assert!((f64::from(sum) - exact).abs() <= 1e-5 * exact, "{i}: {sum}, {exact}");
        }
    }

    #[test]
    fn short_floats_round_each_result_once() {
        let ones = vec![half::bf16::ONE; 1000];
        let shape = (&[1000][..], 0);
        let zero = half::bf16::ZERO;
        let sums = accumulated(Reduction::Sum, DType::BF16, shape, false, &ones, zero).unwrap();
        assert_eq!(sums[999], half::bf16::from_f32(1000.0));
    }

    #[test]
    fn an_initial_value_that_is_not_neutral_is_declined() {
        let shape = (&[2][..], 0);
        let decline = |reduction, init| {
            accumulated(reduction, DType::F32, shape, false, &[1.0, 2.0], init).is_none()
        };
        assert!(decline(Reduction::Sum, 1.0) && decline(Reduction::Max, 0.0));
        assert!(!decline(Reduction::Sum, -0.0) && !decline(Reduction::Product, 1.0));
        assert!(decline(Reduction::Product, f32::NAN));
    }
}
