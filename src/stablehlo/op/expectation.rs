//! The dialects of StableHLO's own tests: `check` says what they expect of values, `interpreter`
//! runs several programs at once and looks at values on the way.

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
    /// `expect_serialized_eq`: a value is what a probe has written to a file.
    SerializedEq {
        /// The probe.
        probe_id: String,
        /// Which of the values that the probe has written.
        iteration: u32,
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
            Self::SerializedEq { .. } => "expect_serialized_eq",
        }
    }
}

/// An operation of the `interpreter` dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interpretation {
    /// `run_parallel`: the arguments of all programs; the results of all programs.
    RunParallel {
        /// A function for each replica and, within it, each partition, without `@`.
        programs: Vec<Vec<String>>,
        /// The functions that compute what each `infeed` takes, one after the other.
        infeed: Vec<String>,
    },
    /// `print`: shows a value.
    Print,
    /// `probe`: writes a value to a file and passes it on.
    Probe {
        /// What the value is called there.
        probe_id: String,
    },
}

impl Interpretation {
    /// The name of the operation, without the dialect.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RunParallel { .. } => "run_parallel",
            Self::Print => "print",
            Self::Probe { .. } => "probe",
        }
    }
}
