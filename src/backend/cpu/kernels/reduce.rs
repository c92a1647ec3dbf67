//! `reduce` by a known operation.
//!
//! The order of the fold is fixed by the shape alone, not by how many threads fold: rows in lanes, then blocks pairwise, so that
//! the rounding error of a long sum grows with its logarithm. 16-bit floats accumulate in `f32`
//! and round once. The initial value is folded in last.

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::element::{Bitwise, Bool, Element, with_element, with_integer};
use super::simd::vectorised;
use crate::backend::Reduction;
use crate::backend::cpu::parallel::{for_each_chunk, join};
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::ifrt::DType;

/// Independent accumulators along a row.
const LANES: usize = 16;
/// Rows of at most this many elements are folded lane by lane, longer ones as two halves.
const ROW_LEAF: usize = 512;
/// As [`ROW_LEAF`], for rows folded into each other.
const COLUMN_LEAF: usize = 32;
/// Stages from this many elements on are folded by several threads.
const PARALLEL: usize = 1 << 17;
/// How many columns are folded at once: a few lines of accumulators stay in the L1 cache.
const COLUMNS: usize = 512;

/// A reduction over some dimensions of a dense operand; the second input is the initial value.
#[derive(Debug)]
pub(crate) struct Reduce {
    run: fn(&Self, &[u8], &[u8], &mut [u8]),
    stages: Vec<Stage>,
    reduction: Reduction,
}

/// One run of neighbouring dimensions reduced away: `[outer, count, inner]` to `[outer, inner]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stage {
    outer: usize,
    count: usize,
    inner: usize,
}

impl Reduce {
    /// The reduction of an operand with `dims` along `dimensions`, if the type has the operation.
    pub(crate) fn new(
        reduction: Reduction,
        dtype: DType,
        dims: &[usize],
        dimensions: &[usize],
    ) -> Option<Self> {
        let run = match reduction {
            Reduction::Sum | Reduction::Product | Reduction::Min | Reduction::Max => {
                with_element!(dtype, T => Some(run_arithmetic::<T> as fn(&Self, &[u8], &[u8], &mut [u8])), _ => None)
            }
            Reduction::And | Reduction::Or | Reduction::Xor if dtype == DType::Bool => {
                Some(run_bitwise::<Bool> as fn(&Self, &[u8], &[u8], &mut [u8]))
            }
            Reduction::And | Reduction::Or | Reduction::Xor => {
                with_integer!(dtype, T => Some(run_bitwise::<T> as fn(&Self, &[u8], &[u8], &mut [u8])), _ => None)
            }
        };
        Some(Self { run: run?, stages: stages(dims, dimensions), reduction })
    }
}

/// The reduction as stages, innermost first.
fn stages(dims: &[usize], dimensions: &[usize]) -> Vec<Stage> {
    let mut segments: Vec<(usize, bool)> = Vec::new();
    for (i, &dim) in dims.iter().enumerate() {
        let reduced = dimensions.contains(&i);
        match segments.last_mut() {
            Some((size, kind)) if *kind == reduced => *size *= dim,
            _ => segments.push((dim, reduced)),
        }
    }
    let mut stages = Vec::new();
    while let Some(last) = segments.iter().rposition(|&(_, reduced)| reduced) {
        let volume = |segments: &[(usize, bool)]| segments.iter().map(|&(size, _)| size).product();
        stages.push(Stage {
            outer: volume(&segments[..last]),
            count: segments[last].0,
            inner: volume(&segments[last + 1..]),
        });
        segments.remove(last);
    }
    stages
}

impl Kernel for Reduce {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        if let ([operand, init], [out]) = (inputs, outputs) {
            (self.run)(self, operand.bytes(), init.bytes(), out);
        }
    }
}

fn run_arithmetic<T: Element>(reduce: &Reduce, operand: &[u8], init: &[u8], out: &mut [u8]) {
    type Accumulator<T> = <T as Element>::Accumulator;
    // Each arm is an instance of its own, so that the operation is inlined into the loops.
    macro_rules! by {
        ($fold:ident from $identity:ident) => {{
            let (fold, identity) = (Element::$fold, Accumulator::<T>::$identity);
            run(reduce, operand, init, out, T::widen, T::narrow, fold, identity);
        }};
    }
    match reduce.reduction {
        Reduction::Product => by!(multiply from ONE),
        Reduction::Min => by!(minimum from HIGHEST),
        Reduction::Max => by!(maximum from LOWEST),
        _ => by!(add from ZERO),
    }
}

fn run_bitwise<T: Bitwise>(reduce: &Reduce, operand: &[u8], init: &[u8], out: &mut [u8]) {
    let same = |x: T| x;
    match reduce.reduction {
        Reduction::And => run(reduce, operand, init, out, same, same, T::and, T::ONES),
        Reduction::Or => run(reduce, operand, init, out, same, same, T::or, T::default()),
        _ => run(reduce, operand, init, out, same, same, T::xor, T::default()),
    }
}

#[expect(clippy::too_many_arguments, reason = "each operation and type is one instance of this")]
fn run<T: Pod + Sync, A: Pod + Send + Sync>(
    reduce: &Reduce,
    operand: &[u8],
    init: &[u8],
    out: &mut [u8],
    widen: impl Fn(T) -> A + Copy + Sync,
    narrow: impl Fn(A) -> T,
    fold: impl Fn(A, A) -> A + Copy + Sync,
    identity: A,
) {
    let operand = cast_slice::<_, T>(operand);
    let [init] = cast_slice::<_, T>(init) else {
        return;
    };
    let out = cast_slice_mut::<_, T>(out);
    let init = widen(*init);
    let finish = |out: &mut [T], values: &[A]| {
        for (out, &value) in out.iter_mut().zip(values) {
            *out = narrow(fold(init, value));
        }
    };
    let mut values: Option<Vec<A>> = None;
    for stage in &reduce.stages {
        let mut next = vec![identity; stage.outer * stage.inner];
        match values {
            None => stage.run(operand, &mut next, widen, fold, identity),
            Some(values) => stage.run(&values, &mut next, |x| x, fold, identity),
        }
        values = Some(next);
    }
    match values {
        Some(values) => finish(out, &values),
        None => finish(out, &operand.iter().map(|&x| widen(x)).collect::<Vec<_>>()),
    }
}

impl Stage {
    /// Folds into `out`, which holds the identity everywhere.
    fn run<S: Pod + Sync, A: Pod + Send + Sync>(
        &self,
        input: &[S],
        out: &mut [A],
        widen: impl Fn(S) -> A + Copy + Sync,
        fold: impl Fn(A, A) -> A + Copy + Sync,
        identity: A,
    ) {
        if self.count == 0 || out.is_empty() {
            return;
        }
        let parallel = input.len() >= PARALLEL;
        if self.inner == 1 {
            let fold_rows = |first: usize, out: &mut [A]| {
                let rows = input[first * self.count..].chunks_exact(self.count);
                for (row, out) in rows.zip(out) {
                    *out = fold_row(row, widen, fold, identity);
                }
            };
            if parallel && out.len() > 1 {
                let rows = (ROW_LEAF / self.count).max(1);
                for_each_chunk(out, rows, |part, out| fold_rows(part * rows, out));
            } else {
                fold_rows(0, out);
            }
            return;
        }
        let fold_columns = |block: &[S], at: usize, out: &mut [A]| {
            let start = at * COLUMNS;
            let rows = Rows { block, width: self.inner, columns: (start, start + out.len()) };
            rows.fold(0, self.count, out, widen, fold, identity);
        };
        if parallel {
            let size = self.count * self.inner;
            for_each_chunk(out, self.inner, |block, out| {
                let block = &input[block * size..][..size];
                for_each_chunk(out, COLUMNS, |at, out| fold_columns(block, at, out));
            });
            return;
        }
        let blocks = input.chunks_exact(self.count * self.inner);
        for (block, out) in blocks.zip(out.chunks_exact_mut(self.inner)) {
            for (at, out) in out.chunks_mut(COLUMNS).enumerate() {
                fold_columns(block, at, out);
            }
        }
    }
}

fn fold_row<S: Pod + Sync, A: Pod + Send + Sync>(
    row: &[S],
    widen: impl Fn(S) -> A + Copy + Sync,
    fold: impl Fn(A, A) -> A + Copy + Sync,
    identity: A,
) -> A {
    if row.len() > ROW_LEAF {
        let leaves = row.len().div_ceil(ROW_LEAF);
        let (left, right) = row.split_at(leaves.div_ceil(2) * ROW_LEAF);
        // The tree is the same whoever folds its halves.
        let (mut first, mut second) = (identity, identity);
        let mut fold_left = || first = fold_row(left, widen, fold, identity);
        let mut fold_right = || second = fold_row(right, widen, fold, identity);
        if row.len() >= PARALLEL {
            join(&mut fold_left, &mut fold_right);
        } else {
            fold_left();
            fold_right();
        }
        return fold(first, second);
    }
    let mut lanes = [identity; LANES];
    vectorised(
        #[inline(always)]
        || {
            let (chunks, remainder) = row.as_chunks::<LANES>();
            for chunk in chunks {
                for (lane, &x) in lanes.iter_mut().zip(chunk) {
                    *lane = fold(*lane, widen(x));
                }
            }
            for (lane, &x) in lanes.iter_mut().zip(remainder) {
                *lane = fold(*lane, widen(x));
            }
        },
    );
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            lanes[i] = fold(lanes[i], lanes[i + width]);
        }
    }
    lanes[0]
}

/// Some columns of a block of rows.
#[derive(Clone, Copy)]
struct Rows<'a, S> {
    block: &'a [S],
    width: usize,
    columns: (usize, usize),
}

impl<S: Pod> Rows<'_, S> {
    /// Folds rows `first..end` into `out`.
    fn fold<A: Pod>(
        self,
        first: usize,
        end: usize,
        out: &mut [A],
        widen: impl Fn(S) -> A + Copy,
        fold: impl Fn(A, A) -> A + Copy,
        identity: A,
    ) {
        let count = end - first;
        if count > COLUMN_LEAF {
            let leaves = count.div_ceil(COLUMN_LEAF);
            let middle = first + leaves.div_ceil(2) * COLUMN_LEAF;
            self.fold(first, middle, out, widen, fold, identity);
            let mut right = [identity; COLUMNS];
            let right = &mut right[..out.len()];
            self.fold(middle, end, right, widen, fold, identity);
            for (out, &x) in out.iter_mut().zip(&*right) {
                *out = fold(*out, x);
            }
            return;
        }
        vectorised(
            #[inline(always)]
            || {
                for row in first..end {
                    let line = row * self.width;
                    let row = &self.block[line + self.columns.0..line + self.columns.1];
                    for (out, &x) in out.iter_mut().zip(row) {
                        *out = fold(*out, widen(x));
                    }
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduce<T: Pod + Default>(
        reduction: Reduction,
        dtype: DType,
        dims: &[usize],
        dimensions: &[usize],
        operand: &[T],
        init: T,
    ) -> Vec<T> {
        let size = (0..dims.len()).filter(|i| !dimensions.contains(i)).map(|i| dims[i]).product();
        let mut out = vec![T::default(); size];
        let kernel = Reduce::new(reduction, dtype, dims, dimensions).unwrap();
        kernel.run(
            &[Input::Bytes(cast_slice(operand)), Input::Bytes(cast_slice(&[init]))],
            &mut [cast_slice_mut(&mut out)],
            &mut Scratch::default(),
        );
        out
    }

    #[test]
    fn dimensions_become_stages() {
        let stage = |outer, count, inner| Stage { outer, count, inner };
        assert_eq!(stages(&[2, 3, 5], &[1]), [stage(2, 3, 5)]);
        assert_eq!(stages(&[2, 3, 5], &[1, 2]), [stage(2, 15, 1)]);
        assert_eq!(stages(&[2, 3, 5], &[0, 2]), [stage(6, 5, 1), stage(1, 2, 3)]);
        assert_eq!(stages(&[], &[]), []);
    }

    #[test]
    fn sums_match_along_every_set_of_dimensions() {
        let dims = [3_usize, 33, 5];
        let operand: Vec<i64> = (0..3 * 33 * 5).map(|i| i * i - 7 * i).collect();
        for set in 0..8_usize {
            let dimensions: Vec<usize> = (0..3).filter(|i| set & (1 << i) != 0).collect();
            let mut expected = std::collections::BTreeMap::new();
            for (i, &x) in operand.iter().enumerate() {
                let index = [i / 165, i / 5 % 33, i % 5];
                let key: Vec<usize> =
                    (0..3).filter(|i| !dimensions.contains(i)).map(|i| index[i]).collect();
                *expected.entry(key).or_insert(1000) += x;
            }
            let sums = reduce(Reduction::Sum, DType::S64, &dims, &dimensions, &operand, 1000);
            assert_eq!(sums, expected.into_values().collect::<Vec<_>>(), "{dimensions:?}");
        }
    }

    #[test]
    fn lengths_around_every_threshold_agree() {
        for n in [0, 1, 15, 16, 17, 31, 32, 33, 511, 512, 513, 1024, 1025] {
            let operand: Vec<u32> = (0..n).map(|i| i * 31 + 7).collect();
            let expected: u32 = 5 + operand.iter().sum::<u32>();
            let n = n as usize;
            assert_eq!(reduce(Reduction::Sum, DType::U32, &[n], &[0], &operand, 5), [expected]);
            let columns: Vec<u32> = operand.iter().flat_map(|&x| [x, 2 * x, 3 * x]).collect();
            assert_eq!(
                reduce(Reduction::Sum, DType::U32, &[n, 3], &[0], &columns, 5),
                [expected, 2 * (expected - 5) + 5, 3 * (expected - 5) + 5]
            );
        }
        let wide: Vec<i32> = (0..3 * 1025).map(|i| i % 1025 + i / 1025).collect();
        let expected: Vec<i32> = (0..1025).map(|i| 3 * i + 3).collect();
        assert_eq!(reduce(Reduction::Sum, DType::S32, &[3, 1025], &[0], &wide, 0), expected);
    }

    #[test]
    fn a_nan_anywhere_wins() {
        for n in 1..=65 {
            for position in [0, n / 2, n - 1] {
                let mut operand: Vec<f32> = (0..n).map(|i| 1.0 + i as f32).collect();
                operand[position] = f32::NAN;
                for reduction in [Reduction::Max, Reduction::Min] {
                    let init =
                        if reduction == Reduction::Max { f32::NEG_INFINITY } else { f32::INFINITY };
                    let result = reduce(reduction, DType::F32, &[n], &[0], &operand, init);
                    assert!(result[0].is_nan(), "{reduction:?} of {n} with a NaN at {position}");
                }
            }
        }
    }

    #[test]
    fn the_greatest_of_many_negative_zeros_is_zero() {
        for n in [8192, 8193] {
            let operand = vec![-0.0_f32; n];
            let result =
                reduce(Reduction::Max, DType::F32, &[n], &[0], &operand, f32::NEG_INFINITY);
            assert_eq!(result, [0.0]);
        }
    }

    #[test]
    fn long_sums_keep_their_precision() {
        let operand: Vec<f32> = (0..1_000_000_u32).map(|i| 0.1 + (i % 7) as f32).collect();
        let expected: f64 = operand.iter().map(|&x| f64::from(x)).sum();
        let sum = reduce(Reduction::Sum, DType::F32, &[operand.len()], &[0], &operand, 0.0);
        assert!((f64::from(sum[0]) - expected).abs() <= 1e-6 * expected);
        let sum = reduce(Reduction::Sum, DType::F32, &[operand.len() / 2, 2], &[0], &operand, 0.0);
        assert!((f64::from(sum[0]) + f64::from(sum[1]) - expected).abs() <= 1e-6 * expected);
    }

    #[test]
    fn short_floats_round_once() {
        let ones = vec![half::bf16::ONE; 1000];
        let sum = reduce(Reduction::Sum, DType::BF16, &[1000], &[0], &ones, half::bf16::ZERO);
        assert_eq!(sum, [half::bf16::from_f32(1000.0)]);
    }

    #[test]
    fn an_empty_reduction_gives_the_initial_value() {
        assert_eq!(reduce(Reduction::Max, DType::F32, &[0, 2], &[0], &[], -3.0_f32), [-3.0, -3.0]);
        assert_eq!(reduce::<f32>(Reduction::Sum, DType::F32, &[2, 0], &[0], &[], 0.0), []);
    }
}
