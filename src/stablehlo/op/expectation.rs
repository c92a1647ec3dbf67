//! The `check` dialect: what a test of StableHLO expects of its values.

use crate::stablehlo::Literal;

/// What is expected of one value, or of two.
#[derive(Clone, Debug, PartialEq)]
pub enum Expectation {
    /// `expect_eq`: two values are the same.
    Eq,
    /// `expect_eq_const`: a value is the constant.
    EqConst(Literal),
    /// `expect_almost_eq`: two values differ by at most this.
    AlmostEq {
        /// The greatest difference.
        tolerance: f64,
    },
    /// `expect_almost_eq_const`: a value and the constant differ by at most this.
    AlmostEqConst {
        /// The constant.
        value: Literal,
        /// The greatest difference.
        tolerance: f64,
    },
    /// `expect_close`: so many floats lie between an actual and an expected value.
    Close {
        /// At least; `min_ulp_difference`.
        least: u64,
        /// At most; `max_ulp_difference`.
        most: u64,
    },
}

impl Expectation {
    /// The tolerance where the source gives none.
    pub const DEFAULT_TOLERANCE: f64 = 1e-4;

    /// The name of the operation, without the dialect.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Eq => "expect_eq",
            Self::EqConst(_) => "expect_eq_const",
            Self::AlmostEq { .. } => "expect_almost_eq",
            Self::AlmostEqConst { .. } => "expect_almost_eq_const",
            Self::Close { .. } => "expect_close",
        }
    }
}
