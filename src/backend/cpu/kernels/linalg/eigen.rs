//! Eigenvalues and vectors of any square matrices, from their Schur forms.
//!
//! A matrix with an element that is no finite number has NaN for all results; so has one on which
//! the iteration does not converge.

use bytemuck::{cast_slice, cast_slice_mut};
use num_complex::Complex;

use super::schur::{Form, make_triangular, schur};
use super::{Field, Wide, narrow, widened};
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::ifrt::DType;

type Number = Complex<f64>;

/// A vector that grows beyond this on the way is made smaller: those of a matrix that lacks some
/// would overflow.
const GREATEST: f64 = 1e100;

/// The eigenvalues of a stack of matrices, then unit left vectors in columns, then right ones, as
/// far as they are asked for; all complex.
#[derive(Debug)]
pub(crate) struct Eig {
    size: usize,
    left: bool,
    right: bool,
    run: fn(&Self, &[u8], &mut [&mut [u8]]),
}

impl Eig {
    /// The decomposition of `size` by `size` matrices, if the element type has one.
    pub(crate) fn new(dtype: DType, size: usize, left: bool, right: bool) -> Option<Self> {
        let run = match dtype {
            DType::F32 => Self::decompose::<f32, Complex<f32>>,
            DType::F64 => Self::decompose::<f64, Number>,
            DType::C64 => Self::decompose::<Complex<f32>, Complex<f32>>,
            DType::C128 => Self::decompose::<Number, Number>,
            _ => return None,
        };
        Some(Self { size, left, right, run })
    }

    fn decompose<T, R>(&self, a: &[u8], outputs: &mut [&mut [u8]])
    where
        T: Field<Wide: Wide + Into<Number>>,
        R: Field<Wide = Number>,
    {
        let n = self.size;
        for (index, a) in cast_slice::<_, T>(a).chunks_exact(n * n).enumerate() {
            let form = schur(n, &widened(a)).map(|Form { t, z }| {
                let complex = |values: Vec<T::Wide>| values.into_iter().map(Into::into).collect();
                let mut form = Form { t: complex(t), z: complex(z) };
                make_triangular(n, &mut form);
                form
            });
            let part =
                |out: &mut [u8], size: usize, find: &dyn Fn(&Form<Number>) -> Vec<Number>| {
                    let out = &mut cast_slice_mut::<_, R>(out)[index * size..][..size];
                    match &form {
                        Some(form) => narrow(&find(form), out),
                        None => out.fill(R::nan_impl()),
                    }
                };
            let mut outputs = outputs.iter_mut();
            if let Some(out) = outputs.next() {
                part(out, n, &|form| form.t.iter().copied().step_by(n + 1).collect());
            }
            for (_, vector) in [(self.left, left_vector as Vector), (self.right, right_vector)]
                .into_iter()
                .filter(|(is_asked, _)| *is_asked)
            {
                if let Some(out) = outputs.next() {
                    part(out, n * n, &|form| vectors(n, form, vector));
                }
            }
        }
    }
}

/// Finds the eigenvector of a triangular matrix of `n` rows, whose greatest element is of size 1,
/// that belongs to its `k`th element on the diagonal.
type Vector = fn(usize, &[Number], usize) -> Vec<Number>;

/// Unit vectors in columns.
fn vectors(n: usize, form: &Form<Number>, vector: Vector) -> Vec<Number> {
    let norm = form.t.iter().map(|x| x.norm()).fold(0.0, f64::max);
    let t: Vec<Number> = form.t.iter().map(|x| if norm == 0.0 { *x } else { x / norm }).collect();
    let mut columns = vec![Number::default(); n * n];
    for k in 0..n {
        let of_triangle = vector(n, &t, k);
        let turned = form
            .z
            .chunks_exact(n)
            .map(|row| row.iter().zip(&of_triangle).map(|(z, x)| z * x).sum::<Number>());
        let unit = normalized(turned.collect());
        for (row, x) in columns.chunks_exact_mut(n).zip(unit) {
            row[k] = x;
        }
    }
    columns
}

/// `t x = x t[k, k]`.
fn right_vector(n: usize, t: &[Number], k: usize) -> Vec<Number> {
    let mut x = vec![Number::default(); n];
    x[k] = 1.0.into();
    for i in (0..k).rev() {
        let sum: Number = t[i * n..][i + 1..=k].iter().zip(&x[i + 1..=k]).map(|(t, x)| t * x).sum();
        x[i] = sum / distance(t[k * n + k], t[i * n + i]);
        shrink(&mut x, i);
    }
    x
}

/// `xᴴ t = t[k, k] xᴴ`.
fn left_vector(n: usize, t: &[Number], k: usize) -> Vec<Number> {
    let mut x = vec![Number::default(); n];
    x[k] = 1.0.into();
    for j in k + 1..n {
        let sum: Number = (k..j).map(|i| x[i] * t[i * n + j]).sum();
        x[j] = sum / distance(t[k * n + k], t[j * n + j]);
        shrink(&mut x, j);
    }
    x.iter().map(Complex::conj).collect()
}

/// How far apart two eigenvalues are, or, when they are one, the least that can be told apart.
fn distance(a: Number, b: Number) -> Number {
    if (a - b).norm() < f64::EPSILON { f64::EPSILON.into() } else { a - b }
}

/// Makes a vector smaller when its element `i` has become too great.
fn shrink(x: &mut [Number], i: usize) {
    let size = x[i].norm();
    if size > GREATEST {
        x.iter_mut().for_each(|x| *x /= size);
    }
}

/// The vector of length 1 whose greatest element is real, as LAPACK has it.
fn normalized(mut x: Vec<Number>) -> Vec<Number> {
    let greatest =
        (0..x.len()).fold(0, |best, i| if x[i].norm() > x[best].norm() { i } else { best });
    let size = x[greatest].norm();
    if size > 0.0 {
        let turn = x[greatest].conj() / size;
        let length = x.iter().map(|x| (x / size).norm_sqr()).sum::<f64>().sqrt();
        x.iter_mut().for_each(|x| *x = *x / size * turn / length);
        x[greatest].im = 0.0;
    }
    x
}

impl Kernel for Eig {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        if let [a] = inputs
            && self.size > 0
        {
            (self.run)(self, a.bytes(), outputs);
        }
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "test data is rounded to f32 on purpose")]
mod tests {
    use super::super::schur::tests::{adjoint, assert_close, greatest, matrices, product, run};
    use super::super::tests::numbers;
    use super::*;

    fn wide(values: &[Complex<f32>]) -> Vec<Number> {
        values.iter().map(|x| x.widen()).collect()
    }

    /// `a v = v w` and `uᴴ a = w uᴴ`, with unit columns whose greatest element is real.
    fn check_eig(what: &str, a: &[Number], found: &[Vec<Number>], n: usize, bound: f64) {
        let [w, u, v] = found else { panic!() };
        let diagonal: Vec<Number> =
            (0..n * n).map(|x| if x / n == x % n { w[x / n] } else { Number::default() }).collect();
        let bound = bound * greatest(a) * n as f64;
        assert_close(&format!("{what} right"), &product(a, v, n), &product(v, &diagonal, n), bound);
        let u_h = adjoint(u, n);
        assert_close(
            &format!("{what} left"),
            &product(&u_h, a, n),
            &product(&diagonal, &u_h, n),
            bound,
        );
        for vectors in [u, v] {
            for column in 0..n {
                let column = || vectors[column..].iter().step_by(n);
                let length: f64 = column().map(Complex::norm_sqr).sum();
                assert!((length - 1.0).abs() < 1e-5, "{what}: a vector of length {length}");
                let greatest = column().map(|x| x.norm()).fold(0.0, f64::max);
                let real = column().any(|x| x.im.abs() < 1e-5 && x.re > greatest - 1e-5);
                assert!(real, "{what}: no greatest element is real");
            }
        }
    }

    #[test]
    fn vectors_of_both_sides_belong_to_their_values() {
        for n in [1, 2, 3, 5, 8, 17, 33] {
            for (which, a) in matrices(n).iter().enumerate() {
                let what = format!("{n}, matrix {which}");
                let complex: Vec<Number> =
                    a.iter().zip(numbers(n * n, 3)).map(|(&x, y)| Complex::new(x, x * y)).collect();
                let real: Vec<Number> = a.iter().map(|&x| x.into()).collect();
                let lengths = [n, n * n, n * n];
                let found = run(&Eig::new(DType::F64, n, true, true).unwrap(), a, &lengths);
                check_eig(&what, &real, &found, n, 1e-13);
                let found = run(&Eig::new(DType::C128, n, true, true).unwrap(), &complex, &lengths);
                check_eig(&what, &complex, &found, n, 1e-13);
                let narrow: Vec<f32> = a.iter().map(|&x| x as f32).collect();
                let found: Vec<Vec<Complex<f32>>> =
                    run(&Eig::new(DType::F32, n, true, true).unwrap(), &narrow, &lengths);
                let found: Vec<_> = found.iter().map(|values| wide(values)).collect();
                check_eig(&what, &real, &found, n, 3e-5);
            }
        }
    }

    #[test]
    fn what_is_not_finite_has_nan_for_all_and_its_neighbours_do_not() {
        let a = [1.0, f64::NAN, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0];
        let found: Vec<Vec<Number>> =
            run(&Eig::new(DType::F64, 2, false, true).unwrap(), &a, &[4, 8]);
        assert!(found[0][..2].iter().chain(&found[1][..4]).all(|x| x.is_nan()), "{found:?}");
        assert_eq!(found[0][2..], [Number::from(2.0), 1.0.into()]);
        assert!(Eig::new(DType::BF16, 2, true, true).is_none());
    }
}
