//! How exact a transcendental function is asked to be.

named! {
    /// `mode` of `result_accuracy`.
    pub enum AccuracyMode {
        Default = "DEFAULT",
        Highest = "HIGHEST",
        Tolerance = "TOLERANCE",
    }
}

/// `result_accuracy`, where it is not the default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// What is asked.
    pub mode: AccuracyMode,
    /// The absolute error that is allowed.
    pub atol: f64,
    /// The error that is allowed relative to the true value.
    pub rtol: f64,
    /// The error that is allowed in units in the last place.
    pub ulps: i64,
}

impl Accuracy {
    /// Whether this asks nothing.
    pub fn is_default(&self) -> bool {
        *self == Self { mode: AccuracyMode::Default, atol: 0.0, rtol: 0.0, ulps: 0 }
    }

    /// Whether what is off by at most `ulps` units in the last place, each at most `epsilon` of the
    /// value, is within the tolerances.
    pub fn is_met_by(&self, ulps: i64, epsilon: f64) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "a few units")]
        let relative = ulps as f64 * epsilon;
        self.ulps >= ulps || self.rtol >= relative
    }
}
