//! Eigenvalues of Hermitian matrices and singular values, with their vectors.
//!
//! A matrix with an element that is no finite number has NaN for all results; so has one on which
//! the iteration does not converge.

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::svd::{ComputeSvdVectors, svd, svd_scratch};
use faer::traits::ComplexField;
use faer::{ColMut, MatMut, MatRef, Par};

use super::with_field;
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::ifrt::DType;

/// The eigenvalues of a stack of Hermitian matrices, ascending, and unit eigenvectors in columns.
#[derive(Debug)]
pub(crate) struct Eigh {
    size: usize,
    lower: bool,
    run: fn(&Self, &[u8], &mut [u8], &mut [u8]),
}

impl Eigh {
    /// The decomposition of `size` by `size` matrices of which the lower or the upper triangle is
    /// read, if the element type has one.
    pub(crate) fn new(dtype: DType, size: usize, lower: bool) -> Option<Self> {
        let run = with_field!(dtype, T => Self::decompose::<T>, _ => return None);
        Some(Self { size, lower, run })
    }

    fn decompose<T: ComplexField<Real: Pod> + Pod>(&self, a: &[u8], w: &mut [u8], v: &mut [u8]) {
        let n = self.size;
        let scratch = self_adjoint_evd_scratch::<T>(
            n,
            ComputeEigenvectors::Yes,
            Par::Seq,
            Default::default(),
        );
        let mut memory = MemBuffer::new(scratch);
        let mut whole = vec![T::zero_impl(); n * n];
        let mut values = vec![T::zero_impl(); n];
        let stack = cast_slice::<_, T>(a).chunks_exact(n * n);
        let results = cast_slice_mut::<_, T::Real>(w)
            .chunks_exact_mut(n)
            .zip(cast_slice_mut::<_, T>(v).chunks_exact_mut(n * n));
        for (a, (w, v)) in stack.zip(results) {
            for (at, x) in whole.iter_mut().enumerate() {
                let (i, j) = (at / n, at % n);
                *x = match i == j {
                    true => T::from_real_impl(&T::real_part_impl(&a[at])),
                    false if (j < i) == self.lower => a[at],
                    false => T::conj_impl(&a[j * n + i]),
                };
            }
            let decomposed = whole.iter().all(T::is_finite_impl)
                && self_adjoint_evd(
                    MatRef::from_row_major_slice(&whole, n, n),
                    ColMut::from_slice_mut(&mut values).as_diagonal_mut(),
                    Some(MatMut::from_row_major_slice_mut(v, n, n)),
                    Par::Seq,
                    MemStack::new(&mut memory),
                    Default::default(),
                )
                .is_ok();
            if !decomposed {
                values.fill(T::nan_impl());
                v.fill(T::nan_impl());
            }
            for (w, value) in w.iter_mut().zip(&values) {
                *w = T::real_part_impl(value);
            }
        }
    }
}

impl Kernel for Eigh {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        if let ([a], [w, v]) = (inputs, outputs)
            && !v.is_empty()
        {
            (self.run)(self, a.bytes(), w, v);
        }
    }
}

/// The singular values of a stack of matrices, descending, and singular vectors: the left ones in
/// columns, the right ones, conjugated, in rows.
#[derive(Debug)]
pub(crate) struct Svd {
    rows: usize,
    columns: usize,
    /// Whether the vectors are as many as rows and columns, not just as many as values.
    full: bool,
    run: fn(&Self, &[u8], [&mut [u8]; 3]),
}

impl Svd {
    /// The decomposition of matrices of these dimensions, if the element type has one.
    pub(crate) fn new(dtype: DType, [rows, columns]: [usize; 2], full: bool) -> Option<Self> {
        let run = with_field!(dtype, T => Self::decompose::<T>, _ => return None);
        Some(Self { rows, columns, full, run })
    }

    fn decompose<T: ComplexField<Real: Pod> + Pod>(&self, a: &[u8], [s, u, vh]: [&mut [u8]; 3]) {
        let (m, n) = (self.rows, self.columns);
        let k = m.min(n);
        let (left, right) = if self.full { (m, n) } else { (k, k) };
        let vectors = if self.full { ComputeSvdVectors::Full } else { ComputeSvdVectors::Thin };
        let scratch = svd_scratch::<T>(m, n, vectors, vectors, Par::Seq, Default::default());
        let mut memory = MemBuffer::new(scratch);
        let mut values = vec![T::zero_impl(); k];
        let stack = cast_slice::<_, T>(a).chunks_exact(m * n);
        let results = cast_slice_mut::<_, T::Real>(s)
            .chunks_exact_mut(k)
            .zip(cast_slice_mut::<_, T>(u).chunks_exact_mut(m * left))
            .zip(cast_slice_mut::<_, T>(vh).chunks_exact_mut(right * n));
        for (a, ((s, u), vh)) in stack.zip(results) {
            let decomposed = a.iter().all(T::is_finite_impl)
                && svd(
                    MatRef::from_row_major_slice(a, m, n),
                    ColMut::from_slice_mut(&mut values).as_diagonal_mut(),
                    Some(MatMut::from_row_major_slice_mut(u, m, left)),
                    // By columns: the memory of its transpose by rows.
                    Some(MatMut::from_column_major_slice_mut(vh, n, right)),
                    Par::Seq,
                    MemStack::new(&mut memory),
                    Default::default(),
                )
                .is_ok();
            if decomposed {
                vh.iter_mut().for_each(|x| *x = T::conj_impl(x));
            } else {
                values.fill(T::nan_impl());
                u.fill(T::nan_impl());
                vh.fill(T::nan_impl());
            }
            for (s, value) in s.iter_mut().zip(&values) {
                *s = T::real_part_impl(value);
            }
        }
    }
}

impl Kernel for Svd {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        if let ([a], [s, u, vh]) = (inputs, outputs)
            && !s.is_empty()
        {
            (self.run)(self, a.bytes(), [s, u, vh]);
        }
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "test data is rounded to f32 on purpose")]
mod tests {
    use num_complex::Complex;

    use super::super::tests::{assert_close, numbers, product, transposed};
    use super::*;

    fn run<T: Pod>(kernel: &dyn Kernel, a: &[T], lengths: &[usize]) -> Vec<Vec<T>> {
        let mut out: Vec<Vec<T>> = lengths.iter().map(|&len| vec![T::zeroed(); len]).collect();
        let mut bytes: Vec<&mut [u8]> = out.iter_mut().map(|out| cast_slice_mut(out)).collect();
        kernel.run(&[Input::Bytes(cast_slice(a))], &mut bytes, &mut Scratch::default());
        out
    }

    fn narrow(values: &[f64]) -> Vec<f32> {
        values.iter().map(|&x| x as f32).collect()
    }

    fn widened(values: Vec<Vec<f32>>) -> Vec<Vec<f64>> {
        values.into_iter().map(|values| values.into_iter().map(f64::from).collect()).collect()
    }

    fn identity(n: usize) -> Vec<f64> {
        (0..n * n).map(|at| f64::from(u8::from(at / n == at % n))).collect()
    }

    /// `left * diag(values) * right`, as far as there are values.
    fn composed(left: &[f64], values: &[f64], right: &[f64], [m, n]: [usize; 2]) -> Vec<f64> {
        let (width, k) = (left.len() / m, values.len());
        let scaled: Vec<f64> =
            (0..m * k).map(|at| left[at / k * width + at % k] * values[at % k]).collect();
        product(&scaled, &right[..k * n], [m, k, n])
    }

    #[test]
    fn eigenvectors_diagonalize_whichever_triangle_is_read() {
        for n in [1, 2, 3, 8, 33] {
            for lower in [true, false] {
                let a = numbers(2 * n * n, n);
                let wide = run(&Eigh::new(DType::F64, n, lower).unwrap(), &a, &[2 * n, a.len()]);
                let kernel = Eigh::new(DType::F32, n, lower).unwrap();
                let short = widened(run(&kernel, &narrow(&a), &[2 * n, a.len()]));
                for (found, bound) in [(wide, 1e-13), (short, 1e-5)] {
                    for (index, a) in a.chunks_exact(n * n).enumerate() {
                        let w = &found[0][index * n..(index + 1) * n];
                        let v = &found[1][index * n * n..(index + 1) * n * n];
                        assert!(w.is_sorted(), "{w:?}");
                        let symmetric: Vec<f64> = (0..n * n)
                            .map(|at| {
                                let (i, j) = (at / n, at % n);
                                if (j <= i) == lower || i == j { a[at] } else { a[j * n + i] }
                            })
                            .collect();
                        let turned = transposed(v, [n, n]);
                        let back = composed(v, w, &turned, [n, n]);
                        assert_close(&format!("{n} {lower}"), &back, &symmetric, bound);
                        let square = product(&turned, v, [n, n, n]);
                        assert_close(&format!("{n} {lower}"), &square, &identity(n), bound);
                    }
                }
            }
        }
    }

    #[test]
    fn complex_matrices_have_real_eigenvalues() {
        let number = Complex::<f64>::new;
        let a = [number(2.0, 0.0), number(9.0, 9.0), number(0.0, -1.0), number(2.0, 0.0)];
        let mut w = [0.0_f64; 2];
        let mut v = [number(0.0, 0.0); 4];
        Eigh::new(DType::C128, 2, true).unwrap().run(
            &[Input::Bytes(cast_slice(&a))],
            &mut [cast_slice_mut(&mut w), cast_slice_mut(&mut v)],
            &mut Scratch::default(),
        );
        assert_close("eigenvalues", &w, &[1.0, 3.0], 1e-14);
        // The matrix times a column is that column times its value.
        let first = number(2.0, 0.0) * v[0] + number(0.0, 1.0) * v[2];
        assert!((first - v[0] * w[0]).norm() < 1e-14, "{v:?}");
    }

    #[test]
    fn singular_vectors_compose_the_matrix_in_every_shape() {
        for [m, n] in [[1, 1], [2, 5], [5, 2], [9, 9], [40, 7]] {
            for full in [false, true] {
                let k = m.min(n);
                let (left, right) = if full { (m, n) } else { (k, k) };
                let a = numbers(2 * m * n, m + 2 * n);
                let lengths = [2 * k, 2 * m * left, 2 * right * n];
                let wide = run(&Svd::new(DType::F64, [m, n], full).unwrap(), &a, &lengths);
                let kernel = Svd::new(DType::F32, [m, n], full).unwrap();
                let short = widened(run(&kernel, &narrow(&a), &lengths));
                for (found, bound) in [(wide, 1e-13), (short, 1e-5)] {
                    for (index, a) in a.chunks_exact(m * n).enumerate() {
                        let part = |which: usize| {
                            let len = lengths[which] / 2;
                            &found[which][index * len..(index + 1) * len]
                        };
                        let (s, u, vh) = (part(0), part(1), part(2));
                        assert!(s.is_sorted_by(|a, b| a >= b) && s[k - 1] >= 0.0, "{s:?}");
                        let what = format!("{m} {n} {full}");
                        assert_close(&what, &composed(u, s, vh, [m, n]), a, bound);
                        let square = product(&transposed(u, [m, left]), u, [left, m, left]);
                        assert_close(&what, &square, &identity(left), bound);
                        let square = product(vh, &transposed(vh, [right, n]), [right, n, right]);
                        assert_close(&what, &square, &identity(right), bound);
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_not_finite_has_nan_for_all_and_its_neighbours_do_not() {
        let a = [1.0, f64::NAN, f64::NAN, 1.0, 2.0, 0.0, 0.0, 1.0, f64::INFINITY, 0.0, 0.0, 1.0];
        let found = run(&Eigh::new(DType::F64, 2, true).unwrap(), &a, &[6, 12]);
        assert!(found[0][..2].iter().chain(&found[1][8..]).all(|x| x.is_nan()), "{found:?}");
        assert_eq!(found[0][2..4], [1.0, 2.0]);
        let found = run(&Svd::new(DType::F64, [2, 2], true).unwrap(), &a, &[6, 12, 12]);
        assert!(found[0][4..].iter().chain(&found[2][..4]).all(|x| x.is_nan()), "{found:?}");
        assert_eq!(found[0][2..4], [2.0, 1.0]);
        assert!(Eigh::new(DType::BF16, 2, true).is_none());
    }
}
