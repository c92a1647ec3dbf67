//! `fft`: Fourier transforms along the last dimensions, one dimension after the other, by
//! `rustfft`.
//!
//! Real transforms run as complex ones: of the result of one, half is kept; for the inverse the
//! other half is what symmetry says, and the parts that have to be zero are taken for zero.

use std::fmt;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};
use num_complex::Complex;
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;
use rustfft::{FftDirection, FftNum, FftPlanner};

use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::stablehlo::op::FftType;

/// How many lines are gathered at once: together they fill the cache lines they come from.
const LINES: usize = 8;

/// A transform of numbers whose parts are `T`s.
pub(crate) struct Fft<T: FftNum> {
    fft_type: FftType,
    /// The transform along the last dimension.
    last: Arc<dyn rustfft::Fft<T>>,
    /// Those along the dimensions before it, each with the distance between its elements.
    others: Vec<(Arc<dyn rustfft::Fft<T>>, usize)>,
    /// How many elements the transformed dimensions have.
    volume: usize,
}

impl<T: FftNum> Fft<T> {
    /// The transform of the dimensions of `lengths`, which all have elements.
    pub(crate) fn new(fft_type: FftType, lengths: &[usize]) -> Self {
        let direction = match fft_type {
            FftType::Fft | FftType::Rfft => FftDirection::Forward,
            FftType::Ifft | FftType::Irfft => FftDirection::Inverse,
        };
        let mut planner = FftPlanner::new();
        let (&last, before) = lengths.split_last().unwrap_or((&1, &[]));
        // Real transforms keep the first half of the last dimension.
        let mut distance = match fft_type {
            FftType::Fft | FftType::Ifft => last,
            FftType::Rfft | FftType::Irfft => last / 2 + 1,
        };
        let mut others = Vec::with_capacity(before.len());
        for &len in before.iter().rev() {
            others.push((planner.plan_fft(len, direction), distance));
            distance *= len;
        }
        Self {
            fft_type,
            last: planner.plan_fft(last, direction),
            others,
            volume: lengths.iter().product(),
        }
    }
}

impl<T: FftNum> fmt::Debug for Fft<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} elements", self.fft_type.name(), self.volume)
    }
}

impl<T: FftNum + Pod + Zeroable> Kernel for Fft<T> {
    fn in_place(&self) -> Vec<(usize, usize)> {
        match self.fft_type {
            FftType::Fft | FftType::Ifft => vec![(0, 0)],
            FftType::Rfft | FftType::Irfft => Vec::new(),
        }
    }

    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        let ([input], [out]) = (inputs, outputs) else {
            return;
        };
        if out.is_empty() {
            return;
        }
        match self.fft_type {
            FftType::Fft | FftType::Ifft => {
                if let Input::Bytes(bytes) = input {
                    out.copy_from_slice(bytes);
                }
                let out = cast_slice_mut(out);
                along(&*self.last, 1, out);
                self.along_others(out);
                if self.fft_type == FftType::Ifft {
                    let scale = self.scale();
                    out.iter_mut().for_each(|z| *z = *z * scale);
                }
            }
            FftType::Rfft => self.real_to_complex(cast_slice(input.bytes()), cast_slice_mut(out)),
            FftType::Irfft => self.complex_to_real(cast_slice(input.bytes()), cast_slice_mut(out)),
        }
    }
}

impl<T: FftNum + Pod + Zeroable> Fft<T> {
    fn along_others(&self, data: &mut [Complex<T>]) {
        for (transform, distance) in &self.others {
            along(&**transform, *distance, data);
        }
    }

    /// What makes the inverse transform undo the transform.
    fn scale(&self) -> T {
        T::from_usize(self.volume).map_or(T::one(), |volume| T::one() / volume)
    }

    fn real_to_complex(&self, input: &[T], out: &mut [Complex<T>]) {
        let len = self.last.len();
        let kept = len / 2 + 1;
        let mut line = vec![Complex::zeroed(); len];
        let mut scratch = vec![Complex::zeroed(); self.last.get_inplace_scratch_len()];
        for (input, out) in input.chunks_exact(len).zip(out.chunks_exact_mut(kept)) {
            for (z, &x) in line.iter_mut().zip(input) {
                *z = Complex::new(x, T::zero());
            }
            self.last.process_with_scratch(&mut line, &mut scratch);
            out.copy_from_slice(&line[..kept]);
        }
        self.along_others(out);
    }

    fn complex_to_real(&self, input: &[Complex<T>], out: &mut [T]) {
        let len = self.last.len();
        let given = len / 2 + 1;
        let scale = self.scale();
        let mut input = input.to_vec();
        self.along_others(&mut input);
        let mut line = vec![Complex::zeroed(); len];
        let mut scratch = vec![Complex::zeroed(); self.last.get_inplace_scratch_len()];
        for (input, out) in input.chunks_exact(given).zip(out.chunks_exact_mut(len)) {
            line[..given].copy_from_slice(input);
            for k in given..len {
                line[k] = input[len - k].conj();
            }
            line[0].im = T::zero();
            if len.is_multiple_of(2) {
                line[len / 2].im = T::zero();
            }
            self.last.process_with_scratch(&mut line, &mut scratch);
            for (out, z) in out.iter_mut().zip(&line) {
                *out = z.re * scale;
            }
        }
    }
}

/// Transforms of this many elements on are shared by several threads, in parts of as many.
const PARALLEL: usize = 1 << 15;

/// Transforms every line whose elements are `distance` apart.
fn along<T: FftNum + Pod + Zeroable>(
    transform: &dyn rustfft::Fft<T>,
    distance: usize,
    data: &mut [Complex<T>],
) {
    let len = transform.len();
    let parallel = data.len() >= PARALLEL;
    let scratch = || vec![Complex::zeroed(); transform.get_inplace_scratch_len()];
    if distance == 1 {
        if parallel {
            let part = (PARALLEL / len).max(1) * len;
            data.par_chunks_mut(part).for_each_init(scratch, |scratch, part| {
                transform.process_with_scratch(part, scratch);
            });
        } else {
            transform.process_with_scratch(data, &mut scratch());
        }
        return;
    }
    // The lines of a block, each with its elements side by side. `LINES` at a time fill the cache
    // lines that they come from, and again those that they go to.
    let mut turned = vec![Complex::zeroed(); len * distance];
    for block in data.chunks_exact_mut(len * distance) {
        let transform_lines =
            |scratch: &mut Vec<Complex<T>>, at: usize, lines: &mut [Complex<T>]| {
                let first = at * LINES;
                let count = lines.len() / len;
                for (i, row) in block.chunks_exact(distance).enumerate() {
                    for (line, &z) in row[first..first + count].iter().enumerate() {
                        lines[line * len + i] = z;
                    }
                }
                transform.process_with_scratch(lines, scratch);
            };
        if parallel {
            turned
                .par_chunks_mut(LINES * len)
                .enumerate()
                .for_each_init(scratch, |scratch, (at, lines)| transform_lines(scratch, at, lines));
        } else {
            let mut scratch = scratch();
            for (at, lines) in turned.chunks_mut(LINES * len).enumerate() {
                transform_lines(&mut scratch, at, lines);
            }
        }
        let turn_back = |(at, rows): (usize, &mut [Complex<T>])| {
            let first = at * LINES;
            let count = rows.len() / distance;
            for (line, turned) in turned.chunks_exact(len).enumerate() {
                for (i, &z) in turned[first..first + count].iter().enumerate() {
                    rows[i * distance + line] = z;
                }
            }
        };
        if parallel {
            block.par_chunks_mut(LINES * distance).enumerate().for_each(turn_back);
        } else {
            block.chunks_mut(LINES * distance).enumerate().for_each(turn_back);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    type Number = Complex<f64>;

    fn signal(count: usize) -> Vec<Number> {
        (0..count)
            .map(|i| Number::new((i * 7 % 11) as f64 - 5.0, (i * 5 % 13) as f64 / 3.0))
            .collect()
    }

    /// The transform of `[outer, rows, columns]` along the last two dimensions, by definition.
    fn expected(sign: f64, [rows, columns]: [usize; 2], data: &[Number]) -> Vec<Number> {
        let turn = |i: usize, k: usize, n: usize| (i * k % n) as f64 / n as f64;
        let mut out = Vec::new();
        for block in data.chunks_exact(rows * columns) {
            for at in 0..block.len() {
                let (k, l) = (at / columns, at % columns);
                let terms = block.iter().enumerate().map(|(from, z)| {
                    let (i, j) = (from / columns, from % columns);
                    z * Number::cis(sign * TAU * (turn(i, k, rows) + turn(j, l, columns)))
                });
                out.push(terms.sum());
            }
        }
        out
    }

    fn run<A: Pod, R: Pod>(kernel: &Fft<f64>, input: &[A], count: usize) -> Vec<R> {
        let mut out = vec![R::zeroed(); count];
        let inputs = [Input::Bytes(cast_slice(input))];
        kernel.run(&inputs, &mut [cast_slice_mut(&mut out)], &mut Scratch::default());
        out
    }

    fn assert_close(what: &str, found: &[Number], expected: &[Number]) {
        assert_eq!(found.len(), expected.len(), "{what}");
        for (i, (a, b)) in found.iter().zip(expected).enumerate() {
            assert!((a - b).norm() < 1e-10, "{what}, element {i}: {a} instead of {b}");
        }
    }

    #[test]
    fn every_kind_is_the_sum_by_definition_at_every_size() {
        // One line, a prime, a power of two, more columns than are gathered at once.
        for [rows, columns] in [[1, 1], [2, 3], [5, 8], [7, 9], [8, 17], [3, 1], [1, 6]] {
            let lengths = [rows, columns];
            let what = format!("{lengths:?}");
            let size = 2 * rows * columns;
            let z = signal(size);
            let forward = expected(-1.0, lengths, &z);
            assert_close(&what, &run(&Fft::new(FftType::Fft, &lengths), &z, size), &forward);
            let back: Vec<Number> = run(&Fft::new(FftType::Ifft, &lengths), &forward, size);
            assert_close(&what, &back, &z);

            let real: Vec<f64> = z.iter().map(|z| z.re).collect();
            let as_complex: Vec<Number> = real.iter().map(|&x| x.into()).collect();
            let whole = expected(-1.0, lengths, &as_complex);
            let kept = columns / 2 + 1;
            let half: Vec<Number> =
                whole.chunks(columns).flat_map(|row| row[..kept].to_vec()).collect();
            let found: Vec<Number> = run(&Fft::new(FftType::Rfft, &lengths), &real, half.len());
            assert_close(&what, &found, &half);
            let back: Vec<f64> = run(&Fft::new(FftType::Irfft, &lengths), &half, size);
            let back: Vec<Number> = back.into_iter().map(Number::from).collect();
            assert_close(&what, &back, &as_complex);
        }
    }

    #[test]
    fn the_operand_may_be_where_the_result_goes() {
        let kernel = Fft::<f64>::new(FftType::Fft, &[3, 4]);
        let z = signal(12);
        let expected: Vec<Number> = run(&kernel, &z, 12);
        let mut in_place = z;
        kernel.run(
            &[Input::Output(0)],
            &mut [cast_slice_mut(&mut in_place)],
            &mut Scratch::default(),
        );
        assert_eq!(in_place, expected);
    }

    #[test]
    fn parts_that_have_to_be_zero_are_taken_for_zero() {
        let kernel = Fft::new(FftType::Irfft, &[4]);
        let clean = [4.0, 1.0, 2.0].map(Number::from);
        let mut stray = clean;
        stray[0].im = 3.0;
        stray[2].im = -5.0;
        let found: Vec<f64> = run(&kernel, &stray, 4);
        assert_eq!(found, run::<_, f64>(&kernel, &clean, 4));
        assert_eq!(found, [2.0, 0.5, 1.0, 0.5]);
    }

    #[test]
    fn one_point_becomes_waves_on_both_sides_of_the_threshold() {
        // Of a point at (3, 5) every element is a number of size 1 that turns along both dimensions.
        for [rows, columns] in [[16, 24], [181, 181], [182, 181], [8, 4099]] {
            let mut z = vec![Number::zeroed(); rows * columns];
            z[3 * columns + 5] = Number::new(1.0, 0.0);
            let found: Vec<Number> =
                run(&Fft::new(FftType::Fft, &[rows, columns]), &z, rows * columns);
            let waves: Vec<Number> = (0..rows * columns)
                .map(|at| {
                    let (k, l) = (at / columns, at % columns);
                    let turns = (3 * k % rows) as f64 / rows as f64
                        + (5 * l % columns) as f64 / columns as f64;
                    Number::cis(-TAU * turns)
                })
                .collect();
            assert_close(&format!("{rows} x {columns}"), &found, &waves);
        }
    }
}
