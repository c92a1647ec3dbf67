//! Elementary functions whose loops vectorise: no branches, no calls, no tables.
//!
//! `exp`, `log` and `tanh` of `f32` are within 2 units in the last place of the true value (the
//! tests measure it); other functions are those of the platform's mathematical library.

/// Functions of a compute type, as StableHLO names them.
pub(crate) trait Math: Copy {
    fn exponential(self) -> Self;
    fn exponential_minus_one(self) -> Self;
    fn log(self) -> Self;
    fn log_plus_one(self) -> Self;
    fn logistic(self) -> Self;
    fn tanh(self) -> Self;
    fn sine(self) -> Self;
    fn cosine(self) -> Self;
    fn tan(self) -> Self;
    fn sqrt(self) -> Self;
    fn rsqrt(self) -> Self;
    fn cbrt(self) -> Self;
    fn ceil(self) -> Self;
    fn floor(self) -> Self;
    fn round_half_away(self) -> Self;
    fn round_half_even(self) -> Self;
    fn atan2(self, x: Self) -> Self;
    fn is_finite(self) -> bool;
}

macro_rules! library_functions {
    ($t:ident) => {
        fn exponential_minus_one(self) -> Self {
            self.exp_m1()
        }
        fn log_plus_one(self) -> Self {
            self.ln_1p()
        }
        fn sine(self) -> Self {
            self.sin()
        }
        fn cosine(self) -> Self {
            self.cos()
        }
        fn tan(self) -> Self {
            $t::tan(self)
        }
        fn sqrt(self) -> Self {
            $t::sqrt(self)
        }
        fn rsqrt(self) -> Self {
            1.0 / $t::sqrt(self)
        }
        fn cbrt(self) -> Self {
            $t::cbrt(self)
        }
        fn ceil(self) -> Self {
            $t::ceil(self)
        }
        fn floor(self) -> Self {
            $t::floor(self)
        }
        fn round_half_away(self) -> Self {
            self.round()
        }
        fn round_half_even(self) -> Self {
            self.round_ties_even()
        }
        fn atan2(self, x: Self) -> Self {
            $t::atan2(self, x)
        }
        fn is_finite(self) -> bool {
            $t::is_finite(self)
        }
        fn logistic(self) -> Self {
            1.0 / (1.0 + (-self).exponential())
        }
    };
}

impl Math for f64 {
    fn exponential(self) -> Self {
        self.exp()
    }
    fn log(self) -> Self {
        self.ln()
    }
    fn tanh(self) -> Self {
        Self::tanh(self)
    }
    library_functions!(f64);
}

impl Math for f32 {
    fn exponential(self) -> Self {
        exp(self)
    }
    fn log(self) -> Self {
        log(self)
    }
    fn tanh(self) -> Self {
        tanh(self)
    }
    library_functions!(f32);
}

/// The value of a polynomial, coefficients from the highest power down.
#[inline(always)]
fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    coefficients.into_iter().fold(0.0, |value, coefficient| value * x + coefficient)
}

/// 1.5 * 2^23: added to a small number it leaves the nearest integer in the low bits.
const ROUND: f32 = 12_582_912.0;
/// The natural logarithm of 2 in two parts, the first with enough trailing zeros that a product
/// with an exponent is exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// 2 to the power `n` for `n` in -126..=127, given `n + ROUND`.
#[inline(always)]
fn exp2_of_rounded(shifted: f32) -> f32 {
    f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
}

/// e to the power `x`: `x = n ln 2 + r` with `|r| <= ln 2 / 2`, and a polynomial in `r`.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // Beyond these the result is an infinity or zero whatever the argument.
    let clamped = x.clamp(-104.5, 89.0);
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (clamped - n * LN_2_HIGH) - n * LN_2_LOW;
    let tail = polynomial(
        r,
        [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_66, 0.5],
    );
    let value = tail * (r * r) + r + 1.0;
    // The scale is applied in two halves, for neither the smallest results nor the largest have
    // one that is a normal number.
    let half = n * 0.5 + ROUND;
    let rest = n - (half - ROUND) + ROUND;
    value * exp2_of_rounded(half) * exp2_of_rounded(rest)
}

/// The natural logarithm: `x = 2^n m` with `m` in `[sqrt(1/2), sqrt(2))`.
#[inline(always)]
fn log(x: f32) -> f32 {
    let subnormal = x < f32::MIN_POSITIVE;
    let normal = if subnormal { x * 8_388_608.0 } else { x };
    // Subtracting the bits of sqrt(1/2) makes the exponent field count from there.
    let bits = normal.to_bits();
    let above = bits.wrapping_sub(0x3f35_04f3);
    let exponent = above.cast_signed() >> 23;
    let mantissa = f32::from_bits((above & 0x007f_ffff).wrapping_add(0x3f35_04f3));
    #[expect(clippy::cast_precision_loss, reason = "an exponent has eight bits")]
    let n = exponent as f32 - if subnormal { 23.0 } else { 0.0 };
    let f = mantissa - 1.0;
    let square = f * f;
    let tail = polynomial(
        f,
        [
            7.037_683_6e-2,
            -0.115_146_1,
            0.116_769_98,
            -0.124_201_41,
            0.142_493_23,
            -0.166_680_58,
            0.200_007_15,
            -0.249_999_94,
            0.333_333_3,
        ],
    );
    let small = tail * f * square + n * LN_2_LOW - 0.5 * square;
    let value = f + small + n * LN_2_HIGH;
    let value = if x == f32::INFINITY { x } else { value };
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    if x < 0.0 || x.is_nan() { f32::NAN } else { value }
}

/// The hyperbolic tangent: an odd polynomial near zero, `1 - 2 / (e^2x + 1)` elsewhere.
#[inline(always)]
fn tanh(x: f32) -> f32 {
    let magnitude = x.abs();
    let square = x * x;
    let tail = polynomial(
        square,
        [-5.704_988_7e-3, 2.063_909e-2, -5.373_971_6e-2, 0.133_314_42, -0.333_332_8],
    );
    let near = tail * square * x + x;
    let far = 1.0 - 2.0 / (exp(2.0 * magnitude) + 1.0);
    // The sum of zeros of opposite sign is +0, so the sign is set for both.
    (if magnitude < 0.625 { near } else { far }).copysign(x)
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "rounding the reference is the point")]
mod tests {
    use super::*;

    /// The distance between `value` and `reference` in units of the last place of the latter.
    fn ulps(value: f32, reference: f64) -> f64 {
        let rounded = reference as f32;
        if value == rounded || (value.is_nan() && reference.is_nan()) {
            return 0.0;
        }
        let magnitude = rounded.abs().max(f32::MIN_POSITIVE);
        let unit = f64::from(f32::from_bits(magnitude.to_bits() + 1)) - f64::from(magnitude);
        (f64::from(value) - reference).abs() / unit
    }

    fn worst(function: fn(f32) -> f32, reference: fn(f64) -> f64, low: f32, high: f32) -> f64 {
        let steps = 200_000_u32;
        (0..=steps)
            .map(|i| low + (high - low) * (i as f32 / steps as f32))
            .map(|x| ulps(function(x), reference(f64::from(x))))
            .fold(0.0, f64::max)
    }

    #[test]
    fn exp_is_within_two_ulps() {
        assert!(worst(exp, f64::exp, -103.0, 88.7) <= 2.0);
        assert!(worst(exp, f64::exp, -1.0, 1.0) <= 2.0);
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(89.5), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn log_is_within_two_ulps() {
        assert!(worst(log, f64::ln, 1e-6, 4.0) <= 2.0);
        assert!(worst(log, f64::ln, 0.5, 2.0) <= 2.0);
        assert!(worst(log, f64::ln, 1.0, 1e30) <= 2.0);
        assert!(worst(log, f64::ln, 1e-44, 1e-37) <= 2.0);
        assert_eq!(log(1.0), 0.0);
        assert_eq!(log(0.0), f32::NEG_INFINITY);
        assert_eq!(log(-0.0), f32::NEG_INFINITY);
        assert_eq!(log(f32::INFINITY), f32::INFINITY);
        assert!(log(-1.0).is_nan() && log(f32::NAN).is_nan() && log(f32::NEG_INFINITY).is_nan());
    }

    #[test]
    fn tanh_is_within_two_ulps() {
        assert!(worst(tanh, f64::tanh, -10.0, 10.0) <= 2.0);
        assert!(worst(tanh, f64::tanh, -0.7, 0.7) <= 2.0);
        assert_eq!(tanh(f32::INFINITY), 1.0);
        assert_eq!(tanh(-100.0), -1.0);
        assert_eq!(tanh(-0.0).to_bits(), (-0.0_f32).to_bits());
        assert!(tanh(f32::NAN).is_nan());
    }
}
