//! Triangular factors of matrices whose rows change places.

use bytemuck::{cast_slice, cast_slice_mut};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::{MatMut, Par};

use super::{Field, with_field};
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::ifrt::DType;

/// A stack of matrices into both factors, the lower one without its unit diagonal; the row that row
/// `i` changed places with, one after the other; and the row that row `i` of the product was.
#[derive(Debug)]
pub(crate) struct Lu {
    rows: usize,
    columns: usize,
    run: fn(&Self, &[u8], [&mut [u8]; 3]),
}

impl Lu {
    /// The factorisation of `rows` by `columns`, if the element type has one.
    pub(crate) fn new(dtype: DType, [rows, columns]: [usize; 2]) -> Option<Self> {
        // Rows are numbered in 32 bits.
        i32::try_from(rows).ok()?;
        let run = with_field!(dtype, T => Self::factor::<T>, _ => return None);
        Some(Self { rows, columns, run })
    }

    fn factor<T: Field>(&self, a: &[u8], [packed, pivots, permutation]: [&mut [u8]; 3]) {
        let (m, n) = (self.rows, self.columns);
        let scratch = lu_in_place_scratch::<usize, T>(m, n, Par::Seq, Default::default());
        let mut memory = MemBuffer::new(scratch);
        let (mut order, mut inverse) = (vec![0_usize; m], vec![0_usize; m]);
        let stack = cast_slice::<_, T>(a).chunks_exact(m * n);
        let packed = cast_slice_mut::<_, T>(packed).chunks_exact_mut(m * n);
        let pivots = cast_slice_mut::<_, i32>(pivots).chunks_exact_mut(m.min(n));
        let permutation = cast_slice_mut::<_, i32>(permutation).chunks_exact_mut(m);
        for (((a, packed), pivots), permutation) in stack.zip(packed).zip(pivots).zip(permutation) {
            packed.copy_from_slice(a);
            lu_in_place(
                MatMut::from_row_major_slice_mut(packed, m, n),
                &mut order,
                &mut inverse,
                Par::Seq,
                MemStack::new(&mut memory),
                Default::default(),
            );
            if !packed.iter().all(T::is_finite_impl) {
                // `faer` divides by a pivot of zero; this leaves the zeros below it.
                packed.copy_from_slice(a);
                eliminate(packed, n, &mut order);
            }
            exchanges(&order, pivots);
            for (to, &from) in permutation.iter_mut().zip(&order) {
                *to = index(from);
            }
        }
    }
}

/// Factors a matrix of rows of `n` row by row; `order` becomes the permutation.
fn eliminate<T: Field>(a: &mut [T], n: usize, order: &mut [usize]) {
    let m = order.len();
    for (i, row) in order.iter_mut().enumerate() {
        *row = i;
    }
    for i in 0..m.min(n) {
        let size = |row: usize| T::abs1_impl(&a[row * n + i]);
        let greatest =
            (i + 1..m).fold(i, |best, row| if size(row) > size(best) { row } else { best });
        order.swap(i, greatest);
        for column in 0..n {
            a.swap(i * n + column, greatest * n + column);
        }
        let (above, below) = a.split_at_mut((i + 1) * n);
        let pivot = &above[i * n..];
        if pivot[i] == T::zero_impl() {
            continue;
        }
        let reciprocal = T::recip_impl(&pivot[i]);
        for row in below.chunks_exact_mut(n) {
            row[i] *= reciprocal;
            let factor = row[i];
            for (x, y) in row[i + 1..].iter_mut().zip(&pivot[i + 1..]) {
                *x -= factor * *y;
            }
        }
    }
}

/// The exchanges, one after the other, that make a permutation.
fn exchanges(permutation: &[usize], pivots: &mut [i32]) {
    let mut rows: Vec<usize> = (0..permutation.len()).collect();
    let mut places = rows.clone();
    for (i, (pivot, &row)) in pivots.iter_mut().zip(permutation).enumerate() {
        let place = places[row];
        *pivot = index(place);
        rows.swap(i, place);
        places[rows[place]] = place;
        places[rows[i]] = i;
    }
}

/// The number of a row.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "there are fewer rows: `Lu::new`"
)]
fn index(row: usize) -> i32 {
    row as i32
}

impl Kernel for Lu {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        if let ([a], [packed, pivots, permutation]) = (inputs, outputs) {
            if packed.is_empty() {
                for row in cast_slice_mut::<_, i32>(permutation).chunks_exact_mut(self.rows.max(1))
                {
                    for (i, to) in row.iter_mut().enumerate() {
                        *to = index(i);
                    }
                }
            } else {
                (self.run)(self, a.bytes(), [packed, pivots, permutation]);
            }
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "test data is small"
)]
mod tests {
    use bytemuck::Pod;
    use num_complex::Complex;

    use super::super::tests::{assert_close, numbers, product};
    use super::*;

    fn run<T: Pod>(dtype: DType, [m, n]: [usize; 2], a: &[T]) -> (Vec<T>, Vec<i32>, Vec<i32>) {
        let count = a.len() / (m * n);
        let (mut packed, mut pivots, mut permutation) =
            (a.to_vec(), vec![0; count * m.min(n)], vec![0; count * m]);
        Lu::new(dtype, [m, n]).unwrap().run(
            &[Input::Bytes(cast_slice(a))],
            &mut [
                cast_slice_mut(&mut packed),
                cast_slice_mut(&mut pivots),
                cast_slice_mut(&mut permutation),
            ],
            &mut Scratch::default(),
        );
        (packed, pivots, permutation)
    }

    /// Checks the factors of one matrix against its rows, permuted.
    fn check(
        [m, n]: [usize; 2],
        a: &[f64],
        packed: &[f64],
        pivots: &[i32],
        permutation: &[i32],
        bound: f64,
    ) {
        let k = m.min(n);
        let l: Vec<f64> = (0..m * k)
            .map(|at| match (at / k).cmp(&(at % k)) {
                std::cmp::Ordering::Greater => packed[at / k * n + at % k],
                std::cmp::Ordering::Equal => 1.0,
                std::cmp::Ordering::Less => 0.0,
            })
            .collect();
        let u: Vec<f64> =
            (0..k * n).map(|at| if at / n <= at % n { packed[at] } else { 0.0 }).collect();
        let rows = permutation.iter().flat_map(|&row| &a[row as usize * n..][..n]);
        let expected: Vec<f64> = rows.copied().collect();
        assert_close(&format!("{m} {n}"), &product(&l, &u, [m, k, n]), &expected, bound);
        assert!(l.iter().all(|x| x.abs() <= 1.0), "the greatest of a column is its pivot");
        let mut rows: Vec<i32> = (0..m as i32).collect();
        for (i, &pivot) in pivots.iter().enumerate() {
            rows.swap(i, pivot as usize);
        }
        assert_eq!(rows, permutation);
    }

    #[test]
    fn the_factors_multiply_to_the_rows_permuted_in_every_shape() {
        for [m, n] in [[1, 1], [2, 5], [5, 2], [9, 9], [40, 7], [65, 65]] {
            let a = numbers(2 * m * n, m + n);
            let narrow: Vec<f32> = a.iter().map(|&x| x as f32).collect();
            let wide = run(DType::F64, [m, n], &a);
            let (packed, pivots, permutation) = run(DType::F32, [m, n], &narrow);
            let narrow = (packed.into_iter().map(f64::from).collect(), pivots, permutation);
            for ((packed, pivots, permutation), bound) in [(wide, 1e-13), (narrow, 1e-5)] {
                for (index, a) in a.chunks_exact(m * n).enumerate() {
                    let (packed, pivots, permutation) = (
                        &packed[index * m * n..][..m * n],
                        &pivots[index * m.min(n)..][..m.min(n)],
                        &permutation[index * m..][..m],
                    );
                    check([m, n], a, packed, pivots, permutation, bound);
                }
            }
        }
    }

    #[test]
    fn singular_matrices_have_factors_with_zeros_and_nan_stays() {
        for a in [
            vec![0.0; 9],
            vec![1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 3.0, 6.0, 9.0],
            vec![0.0, 0.0, 1.0, 0.0, 0.0, 2.0, 0.0, 3.0, 4.0],
        ] {
            let (packed, pivots, permutation) = run(DType::F64, [3, 3], &a);
            check([3, 3], &a, &packed, &pivots, &permutation, 1e-15);
            assert_eq!(packed[0] * packed[4] * packed[8], 0.0);
        }
        let (packed, _, _) = run(DType::F64, [2, 2], &[1.0, f64::NAN, 2.0, 3.0]);
        assert!(packed[3].is_nan() && packed[0] == 2.0, "{packed:?}");
        let i = Complex::new(0.0_f32, 1.0);
        let (packed, pivots, _) = run(DType::C64, [2, 2], &[i, i, i + i, -i]);
        assert_eq!(packed, [i + i, -i, Complex::new(0.5, 0.0), i * 1.5]);
        assert_eq!(pivots, [1, 1]);
    }
}
