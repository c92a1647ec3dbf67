//! Factorisations and solves of stacks of dense row-major matrices, by `faer` where it fits.

mod cholesky;
mod householder;
mod spectral;
mod triangular_solve;

pub(crate) use cholesky::Cholesky;
pub(crate) use householder::{Qr, ReflectorProduct};
pub(crate) use spectral::{Eigh, Svd};
pub(crate) use triangular_solve::TriangularSolve;

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
