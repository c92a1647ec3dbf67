//! `cholesky`: only the named triangle of the operand is read, the other one of the result is 0.

use bytemuck::{Pod, cast_slice_mut};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::traits::ComplexField;
use faer::{MatMut, Par};

use super::with_field;
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::ifrt::DType;

/// The Cholesky factors of a stack of `size` by `size` matrices. A matrix that is not positive
/// definite has a factor of NaN.
#[derive(Debug)]
pub(crate) struct Cholesky {
    size: usize,
    lower: bool,
    run: fn(&Self, &mut [u8]),
}

impl Cholesky {
    /// The factorisation, if the element type has one.
    pub(crate) fn new(dtype: DType, size: usize, lower: bool) -> Option<Self> {
        let run = with_field!(dtype, T => Self::factor::<T>, _ => return None);
        Some(Self { size, lower, run })
    }

    fn factor<T: Pod + ComplexField>(&self, matrices: &mut [u8]) {
        let size = self.size;
        let scratch = cholesky_in_place_scratch::<T>(size, Par::Seq, Default::default());
        let mut memory = MemBuffer::new(scratch);
        for matrix in cast_slice_mut::<_, T>(matrices).chunks_exact_mut(size * size) {
            // `faer` computes the lower factor of what it takes for columns. The upper factor is
            // the transpose of the lower one of the transpose, which is the same memory.
            let rows = MatMut::from_row_major_slice_mut(matrix, size, size);
            let view = if self.lower { rows } else { rows.transpose_mut() };
            let factored = cholesky_in_place(
                view,
                Default::default(),
                Par::Seq,
                MemStack::new(&mut memory),
                Default::default(),
            );
            let failed = factored.is_err();
            for (i, row) in matrix.chunks_exact_mut(size).enumerate() {
                let (kept, cleared) =
                    if self.lower { (0..=i, i + 1..size) } else { (i..=size - 1, 0..i) };
                row[cleared].fill(T::zero_impl());
                if failed {
                    row[kept].fill(T::nan_impl());
                }
            }
        }
    }
}

impl Kernel for Cholesky {
    fn in_place(&self) -> Vec<(usize, usize)> {
        vec![(0, 0)]
    }

    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        if let ([input], [out]) = (inputs, outputs) {
            if let Input::Bytes(bytes) = input {
                out.copy_from_slice(bytes);
            }
            if !out.is_empty() {
                (self.run)(self, out);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "test data is rounded to f32 on purpose")]
mod tests {
    use bytemuck::{cast_slice, cast_slice_mut};

    use super::super::tests::{assert_close, numbers, product, transposed};
    use super::*;

    fn factor<T: Pod>(dtype: DType, size: usize, lower: bool, matrices: &[T]) -> Vec<T> {
        let mut out = matrices.to_vec();
        let kernel = Cholesky::new(dtype, size, lower).unwrap();
        kernel.run(
            &[Input::Bytes(cast_slice(matrices))],
            &mut [cast_slice_mut(&mut out)],
            &mut Scratch::default(),
        );
        let mut in_place = matrices.to_vec();
        kernel.run(
            &[Input::Output(0)],
            &mut [cast_slice_mut(&mut in_place)],
            &mut Scratch::default(),
        );
        let bytes: [&[u8]; 2] = [cast_slice(&out), cast_slice(&in_place)];
        assert_eq!(bytes[0], bytes[1], "the memory of the operand may become that of the result");
        out
    }

    /// A well-conditioned positive definite matrix.
    fn definite(size: usize, seed: usize) -> Vec<f64> {
        let a = numbers(size * size, seed);
        let mut square = product(&a, &transposed(&a, [size, size]), [size, size, size]);
        for i in 0..size {
            square[i * size + i] += 2.0 + i as f64 / size as f64;
        }
        square
    }

    #[test]
    fn the_factor_times_its_transpose_is_the_matrix_at_every_block_size() {
        for size in [1, 2, 3, 5, 16, 33, 65, 130] {
            for lower in [true, false] {
                let matrices = [definite(size, 1), definite(size, 2)];
                // The triangle that must not be read holds something else.
                let unread = |i: usize, j: usize| if lower { j > i } else { j < i };
                let stack: Vec<f64> = matrices
                    .iter()
                    .flatten()
                    .enumerate()
                    .map(
                        |(at, &x)| {
                            if unread(at / size % size, at % size) { 99.0 + at as f64 } else { x }
                        },
                    )
                    .collect();
                let narrow: Vec<f32> = stack.iter().map(|&x| x as f32).collect();
                let factors = factor(DType::F64, size, lower, &stack);
                let narrow = factor(DType::F32, size, lower, &narrow);
                let narrow: Vec<f64> = narrow.into_iter().map(f64::from).collect();
                for (factors, bound) in [(factors, 1e-14), (narrow, 1e-5)] {
                    for (factor, matrix) in factors.chunks_exact(size * size).zip(&matrices) {
                        for (at, &x) in factor.iter().enumerate() {
                            assert!(!unread(at / size, at % size) || x == 0.0);
                        }
                        let other = transposed(factor, [size, size]);
                        let (l, u) =
                            if lower { (factor, &other[..]) } else { (&other[..], factor) };
                        let back = product(l, u, [size, size, size]);
                        assert_close(&format!("{size} {lower}"), &back, matrix, bound);
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_not_positive_definite_becomes_nan_and_its_neighbours_do_not() {
        let stack = [4.0_f32, 0.0, 2.0, 5.0, 1.0, 0.0, 3.0, 2.0, 9.0, 0.0, 3.0, 17.0];
        let factors = factor(DType::F32, 2, true, &stack);
        assert_eq!(factors[..4], [2.0, 0.0, 1.0, 2.0]);
        assert!(factors[4].is_nan() && factors[6].is_nan() && factors[7].is_nan());
        assert_eq!(factors[5].to_bits(), 0);
        assert_eq!(factors[8..], [3.0, 0.0, 1.0, 4.0]);
    }

    #[test]
    fn nothing_is_factored_without_elements_or_a_field() {
        assert!(factor::<f64>(DType::F64, 0, true, &[]).is_empty());
        assert!(Cholesky::new(DType::BF16, 2, true).is_none());
    }
}
