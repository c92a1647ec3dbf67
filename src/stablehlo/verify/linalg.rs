//! Linear algebra, Fourier transforms and random numbers.

use super::Checked;
use super::check::Check;
use super::elementwise::{BOOL_INTEGER_OR_FLOAT, FLOAT_OR_COMPLEX, INTEGER_OR_FLOAT, part, takes};
use crate::ifrt::DType;
use crate::stablehlo::op::{FftType, RngAlgorithm, RngDistribution, TriangularSolve};

/// `fft`.
pub(super) fn fft(check: &Check<'_>, fft_type: FftType, lengths: &[usize]) -> Checked {
    check.counts(1, 1, 0)?;
    let (operand, result) = (check.operand(0)?, check.result(0)?);
    check.require((1..=3).contains(&lengths.len()), "C3", || {
        format!("fft_length = {lengths:?} must have 1 to 3 entries")
    })?;
    check.require(lengths.len() <= operand.shape.rank(), "C1", || {
        format!("fft_length = {lengths:?} has more entries than {operand} dimensions")
    })?;
    let (from, to) = (operand.dtype, result.dtype);
    let fits = match fft_type {
        FftType::Fft | FftType::Ifft => from.is_complex() && from == to,
        FftType::Rfft => !from.is_complex() && to.is_complex() && from == part(to),
        FftType::Irfft => from.is_complex() && !to.is_complex() && part(from) == to,
    };
    check.require(fits, "C2", || format!("{} does not make {to} of {from}", fft_type.name()))?;
    let reals = [(from, operand), (to, result)].into_iter().filter(|(dtype, _)| dtype.is_float());
    for (_, real) in reals {
        check.require(real.shape.dims().ends_with(lengths), "C4", || {
            format!("the last dimensions of {real} must be fft_length = {lengths:?}")
        })?;
    }
    // Half of what is real is enough: the rest is its mirror image.
    let half = |size: usize| if size == 0 { 0 } else { size / 2 + 1 };
    let mut expected = operand.shape.dims().to_vec();
    let last = (expected.last_mut(), result.shape.dims().last());
    if let (Some(size), Some(&made)) = last {
        match fft_type {
            FftType::Fft | FftType::Ifft => {}
            FftType::Rfft => *size = half(*size),
            FftType::Irfft if *size == half(made) => *size = made,
            FftType::Irfft => {
                return Err(check.error("C5", format!("{operand} is not half of {result}")));
            }
        }
    }
    check.result_shape(&expected, "C5")
}

/// `cholesky`.
pub(super) fn cholesky(check: &Check<'_>) -> Checked {
    check.counts(1, 1, 0)?;
    let a = check.operand(0)?;
    takes(check, FLOAT_OR_COMPLEX, a.dtype)?;
    check.equal("type of the result", a, check.result(0)?, "C1")?;
    match a.shape.dims() {
        [.., rows, columns] => check.require(rows == columns, "C3", || {
            format!("{a} must be square in its last two dimensions")
        }),
        _ => Err(check.error("C2", format!("{a} must have at least two dimensions"))),
    }
}

/// `triangular_solve`.
pub(super) fn triangular_solve(check: &Check<'_>, solve: &TriangularSolve) -> Checked {
    check.counts(2, 1, 0)?;
    let (a, b) = (check.operand(0)?, check.operand(1)?);
    takes(check, FLOAT_OR_COMPLEX, a.dtype)?;
    check.equal("element type of b", &a.dtype, &b.dtype, "C1")?;
    let (&[ref a_batch @ .., a_rows, a_columns], &[ref b_batch @ .., b_rows, b_columns]) =
        (a.shape.dims(), b.shape.dims())
    else {
        let message = format!("{a} and {b} must have at least two dimensions");
        return Err(check.error("C2", message));
    };
    check.require(a_batch.len() == b_batch.len(), "C2", || {
        format!("{a} and {b} must have as many dimensions")
    })?;
    let solved = if solve.left_side { b_rows } else { b_columns };
    check.require(
        a_batch == b_batch && a_rows == a_columns && a_columns == solved,
        "C3",
        || format!("{a} is no system of equations for {b}"),
    )?;
    check.equal("type of the result", b, check.result(0)?, "C4")
}

/// `rng`.
pub(super) fn rng(check: &Check<'_>, distribution: RngDistribution) -> Checked {
    check.counts(3, 1, 0)?;
    let (a, b, shape) = (check.operand(0)?, check.operand(1)?, check.operand(2)?);
    let result = check.result(0)?;
    takes(check, BOOL_INTEGER_OR_FLOAT, a.dtype)?;
    for (scalar, label) in [(a, "I1"), (b, "I2")] {
        check.require(scalar.shape.rank() == 0, label, || {
            format!("expected a scalar, found {scalar}")
        })?;
    }
    check.equal("element type of b", &a.dtype, &b.dtype, "C1")?;
    check.equal("element type of the result", &a.dtype, &result.dtype, "C1")?;
    check.require(distribution != RngDistribution::Normal || a.dtype.is_float(), "C2", || {
        format!("a normal distribution is of floats, found {}", a.dtype)
    })?;
    check.require(shape.dtype == DType::S64 && shape.shape.rank() == 1, "I3", || {
        format!("the shape must be a list of i64, found {shape}")
    })?;
    let rank = result.shape.rank();
    check.length("the shape", shape.shape.num_elements(), rank, "C3")
}

/// `rng_bit_generator`.
pub(super) fn rng_bit_generator(check: &Check<'_>, algorithm: RngAlgorithm) -> Checked {
    check.counts(1, 2, 0)?;
    let state = check.operand(0)?;
    let is_state = state.dtype == DType::U64 && state.shape.rank() == 1;
    check.require(is_state, "I2", || format!("the state must be a list of ui64, found {state}"))?;
    check.equal("type of the state that results", state, check.result(0)?, "C1")?;
    let size = state.shape.num_elements();
    let fits = match algorithm {
        RngAlgorithm::Default => true,
        RngAlgorithm::ThreeFry => size == 2,
        RngAlgorithm::Philox => (2..=3).contains(&size),
    };
    check.require(fits, "C2", || format!("{} has no state of {size} words", algorithm.name()))?;
    let output = check.result(1)?;
    check.require(INTEGER_OR_FLOAT.contains(output.dtype), "O2", || {
        format!("the output must be integers or floats, found {output}")
    })
}
