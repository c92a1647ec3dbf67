//! Products of Householder reflections, as LAPACK's `geqrf` and `orgqr` lay them out.
//!
//! Reflector `i` is `I - tau[i] v vᵀ`, where `v` is 0 above row `i`, 1 in it, and below it what
//! column `i` of the matrix holds below its diagonal. All is computed in `f64` and rounded once.

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use crate::backend::cpu::kernels::convert::Convert;
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
        let run = match dtype {
            DType::F32 => factor::<f32>,
            DType::F64 => factor::<f64>,
            _ => return None,
        };
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
        let run = match dtype {
            DType::F32 => multiply::<f32>,
            DType::F64 => multiply::<f64>,
            _ => return None,
        };
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

fn widened<T: Convert<f64> + Copy>(values: &[T]) -> Vec<f64> {
    values.iter().map(|&x| x.convert()).collect()
}

fn narrow<T>(values: &[f64], out: &mut [T])
where
    f64: Convert<T>,
{
    for (out, &x) in out.iter_mut().zip(values) {
        *out = x.convert();
    }
}

fn factor<T: Pod + Convert<f64>>(shape: Shape, input: &[u8], packed: &mut [u8], taus: &mut [u8])
where
    f64: Convert<T>,
{
    let size = shape.rows * shape.columns;
    let matrices = cast_slice::<_, T>(input).chunks_exact(size);
    let packed = cast_slice_mut::<_, T>(packed).chunks_exact_mut(size);
    let taus = cast_slice_mut::<_, T>(taus).chunks_exact_mut(shape.reflectors);
    for ((matrix, packed), taus) in matrices.zip(packed).zip(taus) {
        let mut a = widened(matrix);
        let found: Vec<f64> = (0..shape.reflectors).map(|i| eliminate(shape, &mut a, i)).collect();
        narrow(&a, packed);
        narrow(&found, taus);
    }
}

/// Reflects column `i` onto its diagonal, the columns after it likewise, and returns `tau`.
fn eliminate(shape: Shape, a: &mut [f64], i: usize) -> f64 {
    let Shape { rows, columns, .. } = shape;
    let greatest = (i + 1..rows).fold(0.0_f64, |max, row| {
        let x = a[row * columns + i].abs();
        // A NaN is kept.
        if x > max || x.is_nan() { x } else { max }
    });
    if greatest == 0.0 {
        return 0.0;
    }
    let squares: f64 = (i + 1..rows).map(|row| (a[row * columns + i] / greatest).powi(2)).sum();
    let head = a[i * columns + i];
    let length = -head.hypot(greatest * squares.sqrt()).copysign(head);
    for row in i + 1..rows {
        a[row * columns + i] /= head - length;
    }
    let tau = (length - head) / length;
    a[i * columns + i] = length;
    for column in i + 1..columns {
        let reflectors: Vec<f64> =
            (i..rows).map(|row| if row == i { 1.0 } else { a[row * columns + i] }).collect();
        reflect(&mut a[i * columns..], columns, column, &reflectors, tau);
    }
    tau
}

/// Applies a reflector to one column of the rows it is not zero in.
fn reflect(a: &mut [f64], columns: usize, column: usize, v: &[f64], tau: f64) {
    let dot: f64 = v.iter().enumerate().map(|(row, v)| v * a[row * columns + column]).sum();
    for (row, v) in v.iter().enumerate() {
        a[row * columns + column] -= tau * dot * v;
    }
}

fn multiply<T: Pod + Convert<f64>>(shape: Shape, packed: &[u8], taus: &[u8], out: &mut [u8])
where
    f64: Convert<T>,
{
    let Shape { rows, columns, reflectors } = shape;
    let size = rows * columns;
    let taus = widened::<T>(cast_slice(taus));
    let matrices = cast_slice::<_, T>(packed).chunks_exact(size);
    let out = cast_slice_mut::<_, T>(out).chunks_exact_mut(size);
    for (index, (packed, out)) in matrices.zip(out).enumerate() {
        let packed = widened(packed);
        let mut q = vec![0.0; size];
        for i in 0..columns {
            q[i * columns + i] = 1.0;
        }
        for i in (0..reflectors).rev() {
            let v: Vec<f64> = (i..rows)
                .map(|row| if row == i { 1.0 } else { packed[row * columns + i] })
                .collect();
            let tau = taus[index * reflectors + i];
            for column in i..columns {
                reflect(&mut q[i * columns..], columns, column, &v, tau);
            }
        }
        narrow(&q, out);
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "test data is rounded to f32 on purpose")]
mod tests {
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
