//! Attributes of linear algebra, Fourier transforms and random numbers.

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
