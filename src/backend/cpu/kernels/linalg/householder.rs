//! Products of Householder reflections, as LAPACK's `geqrf` and `orgqr` lay them out.
//!
//! Reflector `i` is `I - tau[i] v vᴴ`, where `v` is 0 above row `i`, 1 in it, and below it what
//! column `i` of the matrix holds below its diagonal. All is computed in double precision and
//! rounded once.

use bytemuck::{cast_slice, cast_slice_mut};
use faer::traits::ComplexField;

use super::{Field, Wide, narrow, widened, with_field};
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::ifrt::DType;

/// `Qr`: matrices into their triangular factor, with reflectors below it, and the `tau`s.
#[derive(Debug)]
pub(crate) struct Qr {
    shape: Shape,
    run: fn(Shape, &[u8], &mut [u8], &mut [u8]),
}

/// `ProductOfElementaryHouseholderReflectors`: the first columns of the orthogonal matrix.
#[derive(Debug)]
pub(crate) struct ReflectorProduct {
    shape: Shape,
    run: fn(Shape, &[u8], &[u8], &mut [u8]),
}

/// The sizes of one matrix, and how many reflectors it holds.
#[derive(Clone, Copy, Debug)]
struct Shape {
    rows: usize,
    columns: usize,
    reflectors: usize,
}

impl Qr {
    /// The factorisation of `rows` by `columns`, if the element type has one.
    pub(crate) fn new(dtype: DType, [rows, columns]: [usize; 2]) -> Option<Self> {
        let run = with_field!(dtype, T => factor::<T>, _ => return None);
        Some(Self { shape: Shape { rows, columns, reflectors: rows.min(columns) }, run })
    }
}

impl ReflectorProduct {
    /// The product of `reflectors`, at most `columns`, of which there are at most `rows`; if the
    /// element type has one.
    pub(crate) fn new(
        dtype: DType,
        [rows, columns]: [usize; 2],
        reflectors: usize,
    ) -> Option<Self> {
        let run = with_field!(dtype, T => multiply::<T>, _ => return None);
        let fits = reflectors <= columns && columns <= rows;
        fits.then_some(Self { shape: Shape { rows, columns, reflectors }, run })
    }
}

impl Kernel for Qr {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        if let ([input], [packed, taus]) = (inputs, outputs)
            && !packed.is_empty()
        {
            (self.run)(self.shape, input.bytes(), packed, taus);
        }
    }
}

impl Kernel for ReflectorProduct {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        if let ([packed, taus], [out]) = (inputs, outputs)
            && !out.is_empty()
        {
            (self.run)(self.shape, packed.bytes(), taus.bytes(), out);
        }
    }
}

fn factor<T: Field>(shape: Shape, input: &[u8], packed: &mut [u8], taus: &mut [u8]) {
    let Shape { rows, columns, reflectors } = shape;
    let size = rows * columns;
    let matrices = cast_slice::<_, T>(input).chunks_exact(size);
    let packed = cast_slice_mut::<_, T>(packed).chunks_exact_mut(size);
    let taus = cast_slice_mut::<_, T>(taus).chunks_exact_mut(reflectors);
    for ((matrix, packed), taus) in matrices.zip(packed).zip(taus) {
        let mut a = widened(matrix);
        let found: Vec<T::Wide> =
            (0..reflectors).map(|i| eliminate(&mut a[i * columns..], columns, i)).collect();
        narrow(&a, packed);
        narrow(&found, taus);
    }
}

/// Reflects column `i` of rows of `width` onto the first of them, the columns after it likewise,
/// and returns `tau`.
fn eliminate<W: Wide>(rows: &mut [W], width: usize, i: usize) -> W {
    let mut v: Vec<W> = rows.iter().skip(i).step_by(width).copied().collect();
    let (length, tau) = reflector(&mut v);
    for (x, &v) in rows.iter_mut().skip(i).step_by(width).zip(&v) {
        *x = v;
    }
    rows[i] = W::from_real_impl(&length);
    reflect(rows, width, i + 1, &v, W::conj_impl(&tau));
    tau
}

/// The reflection of a column that leaves its first element only, a real number, which is returned
/// with `tau`. The column becomes `v`.
pub(super) fn reflector<W: Wide>(column: &mut [W]) -> (f64, W) {
    let Some((head, tail)) = column.split_first_mut() else {
        return (0.0, W::zero_impl());
    };
    let first = std::mem::replace(head, W::one_impl());
    let real = W::real_part_impl(&first);
    let greatest = tail.iter().fold(0.0_f64, |max, x| {
        let x = W::abs_impl(x);
        // A NaN is kept.
        if x > max || x.is_nan() { x } else { max }
    });
    if greatest == 0.0 && W::imag_part_impl(&first) == 0.0 {
        return (real, W::zero_impl());
    }
    let squares: f64 =
        tail.iter().map(|x| (W::abs_impl(x) / greatest.max(f64::MIN_POSITIVE)).powi(2)).sum();
    let length = -W::abs_impl(&first).hypot(greatest * squares.sqrt()).copysign(real);
    let end = W::from_real_impl(&length);
    for x in tail {
        *x /= first - end;
    }
    (length, (end - first) / end)
}

/// Applies `I - tau v vᴴ` to the columns from `first` on of rows of `width`.
pub(super) fn reflect<W: Wide>(rows: &mut [W], width: usize, first: usize, v: &[W], tau: W) {
    let mut products = vec![W::zero_impl(); width - first];
    for (row, v) in rows.chunks_exact(width).zip(v) {
        let v = W::conj_impl(v);
        for (product, &x) in products.iter_mut().zip(&row[first..]) {
            *product += v * x;
        }
    }
    for (row, &v) in rows.chunks_exact_mut(width).zip(v) {
        let factor = tau * v;
        for (x, &product) in row[first..].iter_mut().zip(&products) {
            *x -= factor * product;
        }
    }
}

/// Applies `I - tau v vᴴ` from the right to the columns from `first` on that `v` has elements for.
pub(super) fn reflect_columns<W: Wide>(
    rows: &mut [W],
    width: usize,
    first: usize,
    v: &[W],
    tau: W,
) {
    for row in rows.chunks_exact_mut(width) {
        let row = &mut row[first..first + v.len()];
        let dot = row.iter().zip(v).fold(W::zero_impl(), |sum, (&x, &v)| sum + x * v);
        let factor = dot * tau;
        for (x, v) in row.iter_mut().zip(v) {
            *x -= factor * W::conj_impl(v);
        }
    }
}

fn multiply<T: Field>(shape: Shape, packed: &[u8], taus: &[u8], out: &mut [u8]) {
    let Shape { rows, columns, reflectors } = shape;
    let size = rows * columns;
    let taus = widened::<T>(cast_slice(taus));
    let matrices = cast_slice::<_, T>(packed).chunks_exact(size);
    let out = cast_slice_mut::<_, T>(out).chunks_exact_mut(size);
    for (index, (packed, out)) in matrices.zip(out).enumerate() {
        let packed = widened(packed);
        let mut q = vec![T::Wide::zero_impl(); size];
        for i in 0..columns {
            q[i * columns + i] = T::Wide::one_impl();
        }
        for i in (0..reflectors).rev() {
            let mut v: Vec<T::Wide> =
                packed[i * columns..].iter().skip(i).step_by(columns).copied().collect();
            v[0] = T::Wide::one_impl();
            reflect(&mut q[i * columns..], columns, i, &v, taus[index * reflectors + i]);
        }
        narrow(&q, out);
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "test data is rounded to f32 on purpose")]
mod tests {
    use bytemuck::Pod;

    use super::super::tests::{assert_close, numbers, product, transposed};
    use super::*;

    /// The packed factors, the `tau`s and, where there is one, the orthogonal matrix.
    fn factors<T: Pod>(dtype: DType, [m, n]: [usize; 2], a: &[T]) -> [Vec<T>; 3] {
        let (mut packed, k) = (a.to_vec(), m.min(n));
        let mut taus = vec![T::zeroed(); a.len() / (m * n) * k];
        Qr::new(dtype, [m, n]).unwrap().run(
            &[Input::Bytes(cast_slice(a))],
            &mut [cast_slice_mut(&mut packed), cast_slice_mut(&mut taus)],
            &mut Scratch::default(),
        );
        let mut q = a.to_vec();
        if let Some(kernel) = ReflectorProduct::new(dtype, [m, n], k) {
            kernel.run(
                &[Input::Bytes(cast_slice(&packed)), Input::Bytes(cast_slice(&taus))],
                &mut [cast_slice_mut(&mut q)],
                &mut Scratch::default(),
            );
        }
        [packed, taus, q]
    }

    #[test]
    fn the_factors_multiply_to_the_matrix_and_the_first_is_orthogonal() {
        for [m, n] in [[1, 1], [2, 2], [5, 3], [9, 9], [40, 7]] {
            let a = numbers(2 * m * n, m + n);
            let narrow: Vec<f32> = a.iter().map(|&x| x as f32).collect();
            let wide = factors(DType::F64, [m, n], &a);
            let narrow = factors(DType::F32, [m, n], &narrow).map(|values| widened(&values));
            for ([packed, _, q], bound) in [(wide, 1e-13), (narrow, 1e-5)] {
                let stacks = a.chunks(m * n).zip(packed.chunks(m * n)).zip(q.chunks(m * n));
                for ((a, packed), q) in stacks {
                    let above = |at: usize| at / n <= at % n;
                    let r: Vec<f64> =
                        (0..n * n).map(|at| if above(at) { packed[at] } else { 0.0 }).collect();
                    assert_close(&format!("{m} {n}"), &product(q, &r, [m, n, n]), a, bound);
                    let identity: Vec<f64> =
                        (0..n * n).map(|at| f64::from(u8::from(at / n == at % n))).collect();
                    let square = product(&transposed(q, [m, n]), q, [n, m, n]);
                    assert_close(&format!("{m} {n}"), &square, &identity, bound);
                }
            }
        }
    }

    #[test]
    fn signs_are_those_of_lapack() {
        let [packed, taus, q] = factors(DType::F64, [2, 2], &[3.0, 1.0, 4.0, 2.0]);
        assert_close("packed", &packed, &[-5.0, -2.2, 0.5, 0.4], 1e-15);
        assert_close("taus", &taus, &[1.6, 0.0], 1e-15);
        assert_close("q", &q, &[-0.6, -0.8, -0.8, 0.6], 1e-15);
    }

    #[test]
    fn wide_matrices_have_as_many_reflectors_as_rows() {
        let [packed, taus, _] = factors(DType::F64, [2, 3], &[0.0, 2.0, 5.0, -2.0, 1.0, 7.0]);
        assert_close("packed", &packed, &[-2.0, 1.0, 7.0, -1.0, 2.0, 5.0], 1e-15);
        assert_close("taus", &taus, &[1.0, 0.0], 1e-15);
        assert!(ReflectorProduct::new(DType::F64, [2, 3], 2).is_none());
        assert!(Qr::new(DType::BF16, [2, 2]).is_none());
    }
}
