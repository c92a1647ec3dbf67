//! Linear algebra, Fourier transforms and random numbers.

use super::{Attributes, Built};
use crate::stablehlo::op::{
    FftType, OpKind, RngAlgorithm, RngDistribution, TransposeA, TriangularSolve,
};

/// The operations of this file.
pub(super) const KNOWN: &[&str] =
    &["fft", "cholesky", "triangular_solve", "rng", "rng_bit_generator"];

/// The operation called `op`, if it is one of this file's.
pub(super) fn kind(op: &str, attributes: &mut Attributes) -> Built<Option<OpKind>> {
    Ok(Some(match op {
        "fft" => OpKind::Fft {
            fft_type: attributes.required_case("fft_type", "fft_type", FftType::from_name)?,
            lengths: attributes.required_integers("fft_length")?,
        },
        "cholesky" => OpKind::Cholesky { lower: attributes.flag("lower")? },
        "triangular_solve" => OpKind::TriangularSolve(TriangularSolve {
            left_side: attributes.required_flag("left_side")?,
            lower: attributes.required_flag("lower")?,
            unit_diagonal: attributes.required_flag("unit_diagonal")?,
            transpose_a: attributes.required_case(
                "transpose_a",
                "transpose",
                TransposeA::from_name,
            )?,
        }),
        "rng" => OpKind::Rng(attributes.required_case(
            "rng_distribution",
            "rng_distribution",
            RngDistribution::from_name,
        )?),
        "rng_bit_generator" => OpKind::RngBitGenerator(attributes.required_case(
            "rng_algorithm",
            "rng_algorithm",
            RngAlgorithm::from_name,
        )?),
        _ => return Ok(None),
    }))
}
