//! Attributes of linear algebra, Fourier transforms and random numbers.

use std::fmt;

use crate::ifrt::DType;

/// `algorithm` of `dot_general`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DotAlgorithm {
    /// What the left operand is rounded to.
    pub lhs_precision: PrecisionType,
    /// What the right operand is rounded to.
    pub rhs_precision: PrecisionType,
    /// What sums are kept in.
    pub accumulation: PrecisionType,
    /// Into how many parts the left operand is split.
    pub lhs_components: i64,
    /// Into how many parts the right operand is split.
    pub rhs_components: i64,
    /// How many products of parts are computed.
    pub primitive_operations: i64,
    /// Whether sums may be kept in less.
    pub allow_imprecise_accumulation: bool,
}

/// A type that numbers are rounded to on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrecisionType {
    /// An element type.
    Element(DType),
    /// `tf32`, which no tensor has.
    Tf32,
}

impl PrecisionType {
    /// The type called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "tf32" { Some(Self::Tf32) } else { DType::from_name(name).map(Self::Element) }
    }
}

impl fmt::Display for PrecisionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Element(dtype) => dtype.fmt(f),
            Self::Tf32 => f.write_str("tf32"),
        }
    }
}

named! {
    /// `fft_type`.
    pub enum FftType {
        Fft = "FFT",
        Ifft = "IFFT",
        Rfft = "RFFT",
        Irfft = "IRFFT",
    }
}

named! {
    /// `transpose_a` of `triangular_solve`.
    pub enum TransposeA {
        NoTranspose = "NO_TRANSPOSE",
        Transpose = "TRANSPOSE",
        Adjoint = "ADJOINT",
    }
}

/// Attributes of `triangular_solve`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriangularSolve {
    /// Whether to solve `a x = b`, otherwise `x a = b`.
    pub left_side: bool,
    /// Whether the lower triangle of `a` is read, otherwise the upper one.
    pub lower: bool,
    /// Whether the diagonal of `a` may be taken for ones.
    pub unit_diagonal: bool,
    /// What is done to `a` before.
    pub transpose_a: TransposeA,
}

named! {
    /// `rng_distribution`.
    pub enum RngDistribution {
        Uniform = "UNIFORM",
        Normal = "NORMAL",
    }
}

named! {
    /// `rng_algorithm`.
    pub enum RngAlgorithm {
        Default = "DEFAULT",
        ThreeFry = "THREE_FRY",
        Philox = "PHILOX",
    }
}
