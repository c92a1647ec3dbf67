//! Factorisations and solves of stacks of dense row-major matrices, by `faer` where it fits.

mod cholesky;
mod eigen;
mod householder;
mod lu;
mod schur;
mod spectral;
mod triangular_solve;
mod tridiagonal;

use std::ops::{Add, Div, Mul, Sub};

use bytemuck::Pod;
pub(crate) use cholesky::Cholesky;
pub(crate) use eigen::Eig;
use faer::traits::ComplexField;
pub(crate) use householder::{Qr, ReflectorProduct};
pub(crate) use lu::Lu;
use num_complex::Complex;
pub(crate) use schur::Schur;
pub(crate) use spectral::{Eigh, Svd};
pub(crate) use triangular_solve::TriangularSolve;
pub(crate) use tridiagonal::Tridiagonal;

/// Evaluates an expression with `$T` bound to the Rust type of a `DType` that has linear algebra.
macro_rules! with_field {
    ($dtype:expr, $T:ident => $body:expr, _ => $otherwise:expr) => {
        match $dtype {
            $crate::ifrt::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::ifrt::DType::F64 => {
                type $T = f64;
                $body
            }
            $crate::ifrt::DType::C64 => {
                type $T = num_complex::Complex<f32>;
                $body
            }
            $crate::ifrt::DType::C128 => {
                type $T = num_complex::Complex<f64>;
                $body
            }
            _ => $otherwise,
        }
    };
}

use with_field;

/// An element type that has linear algebra.
trait Field:
    ComplexField<Real: Pod>
    + Pod
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    /// What is computed in where rounding once at the end is cheap: double precision.
    type Wide: Wide;
    fn widen(self) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> Self;
}

/// Numbers of double precision, real or complex.
trait Wide: Field<Wide = Self> + ComplexField<Real = f64> {}

impl Wide for f64 {}
impl Wide for Complex<f64> {}

impl Field for f32 {
    type Wide = f64;
    fn widen(self) -> f64 {
        self.into()
    }
    #[expect(clippy::cast_possible_truncation, reason = "this rounds")]
    fn narrow(wide: f64) -> Self {
        wide as Self
    }
}

impl Field for f64 {
    type Wide = Self;
    fn widen(self) -> Self {
        self
    }
    fn narrow(wide: Self) -> Self {
        wide
    }
}

impl Field for Complex<f32> {
    type Wide = Complex<f64>;
    fn widen(self) -> Complex<f64> {
        Complex::new(self.re.into(), self.im.into())
    }
    fn narrow(wide: Complex<f64>) -> Self {
        Self::new(Field::narrow(wide.re), Field::narrow(wide.im))
    }
}

impl Field for Complex<f64> {
    type Wide = Self;
    fn widen(self) -> Self {
        self
    }
    fn narrow(wide: Self) -> Self {
        wide
    }
}

fn widened<T: Field>(values: &[T]) -> Vec<T::Wide> {
    values.iter().map(|&x| x.widen()).collect()
}

fn narrow<T: Field>(values: &[T::Wide], out: &mut [T]) {
    for (out, &x) in out.iter_mut().zip(values) {
        *out = T::narrow(x);
    }
}

#[cfg(test)]
mod tests {
    /// Small numbers that differ from one another, in -1..1, the same on every run.
    pub(super) fn numbers(count: usize, seed: usize) -> Vec<f64> {
        (0..count).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f64 / 1001.5 - 1.0).collect()
    }

    /// The row-major product of `[m, k]` and `[k, n]`.
    pub(super) fn product(a: &[f64], b: &[f64], [m, k, n]: [usize; 3]) -> Vec<f64> {
        let at = |i, j| (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
        (0..m * n).map(|index| at(index / n, index % n)).collect()
    }

    /// The row-major transpose of `[m, n]`.
    pub(super) fn transposed(a: &[f64], [m, n]: [usize; 2]) -> Vec<f64> {
        (0..m * n).map(|index| a[index % m * n + index / m]).collect()
    }

    /// Checks every element to `bound`, relative to the greatest expected one.
    pub(super) fn assert_close(what: &str, found: &[f64], expected: &[f64], bound: f64) {
        assert_eq!(found.len(), expected.len(), "{what}");
        let scale = expected.iter().fold(1.0_f64, |scale, x| scale.max(x.abs()));
        for (i, (a, b)) in found.iter().zip(expected).enumerate() {
            assert!((a - b).abs() <= bound * scale, "{what}, element {i}: {a} instead of {b}");
        }
    }
}
