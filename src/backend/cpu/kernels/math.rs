//! Elementary functions whose loops vectorise: no branches, no calls, no tables.
//!
//! Those of `f32` written here are within 2 units in the last place of the true value, whatever the
//! argument (the tests measure it); others are those of the platform's mathematical library.
//! Products and sums are fused where it says `mul_add`, on every processor, so that the bits do not
//! depend on which one it is.

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
    /// Whether `sine`, `cosine` and `tan` are wrong for this angle, for it is too great.
    fn is_far_angle(self) -> bool;
    fn sine_of_far(self) -> Self;
    fn cosine_of_far(self) -> Self;
    fn tan_of_far(self) -> Self;
    fn is_finite(self) -> bool;
}

macro_rules! library_functions {
    ($t:ident) => {
        #[inline(always)]
        fn sqrt(self) -> Self {
            $t::sqrt(self)
        }
        #[inline(always)]
        fn rsqrt(self) -> Self {
            1.0 / $t::sqrt(self)
        }
        fn cbrt(self) -> Self {
            $t::cbrt(self)
        }
        #[inline(always)]
        fn ceil(self) -> Self {
            $t::ceil(self)
        }
        #[inline(always)]
        fn floor(self) -> Self {
            $t::floor(self)
        }
        #[inline(always)]
        fn round_half_away(self) -> Self {
            self.round()
        }
        #[inline(always)]
        fn round_half_even(self) -> Self {
            self.round_ties_even()
        }
        fn atan2(self, x: Self) -> Self {
            $t::atan2(self, x)
        }
        #[inline(always)]
        fn is_far_angle(self) -> bool {
            size_of::<Self>() == 4 && self.abs() >= GREATEST_ANGLE.into() && self.is_finite()
        }
        fn sine_of_far(self) -> Self {
            self.sin()
        }
        fn cosine_of_far(self) -> Self {
            self.cos()
        }
        fn tan_of_far(self) -> Self {
            $t::tan(self)
        }
        #[inline(always)]
        fn is_finite(self) -> bool {
            $t::is_finite(self)
        }
    };
}

macro_rules! functions {
    ($t:ident: $($method:ident => $function:path;)*) => {
        impl Math for $t {
            $(
                #[inline(always)]
                fn $method(self) -> Self {
                    $function(self)
                }
            )*
            library_functions!($t);
        }
    };
}

functions! { f64:
    exponential => f64::exp;
    exponential_minus_one => f64::exp_m1;
    log => f64::ln;
    log_plus_one => f64::ln_1p;
    tanh => f64::tanh;
    sine => f64::sin;
    cosine => f64::cos;
    tan => f64::tan;
    logistic => logistic_f64;
}

functions! { f32:
    exponential => exp;
    exponential_minus_one => exp_m1;
    log => log;
    log_plus_one => log_1p;
    tanh => tanh;
    sine => sine;
    cosine => cosine;
    tan => tangent;
    logistic => logistic;
}

/// The value of a polynomial, coefficients from the highest power down.
#[inline(always)]
fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut value = coefficients[0];
    for &coefficient in &coefficients[1..] {
        value = value.mul_add(x, coefficient);
    }
    value
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

/// `x` as `n ln 2 + r` with `|r| <= ln 2 / 2`: `n + ROUND`, and `e^r - 1`.
#[inline(always)]
fn reduced_exp_m1(x: f32) -> (f32, f32) {
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x));
    let tail = polynomial(
        r,
        [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_66, 0.5],
    );
    (shifted, tail.mul_add(r * r, r))
}

/// e to the power `x`.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // Beyond these the result is an infinity or zero whatever the argument.
    let (shifted, value) = reduced_exp_m1(x.clamp(-104.5, 89.0));
    let (half, rest) = halved_scale(shifted);
    (value + 1.0) * half * rest
}

/// 2 to the power `n` as a product, given `n + ROUND`: neither the smallest results nor the
/// largest have a scale that is a normal number.
#[inline(always)]
fn halved_scale(shifted: f32) -> (f32, f32) {
    let n = shifted - ROUND;
    let half = n.mul_add(0.5, ROUND);
    let rest = n - (half - ROUND) + ROUND;
    (exp2_of_rounded(half), exp2_of_rounded(rest))
}

/// `1 / (1 + e^-x)`, by `e^-|x|`, which does not overflow. In `f64` from where sums and quotients
/// round.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "this is the rounding")]
fn logistic(x: f32) -> f32 {
    let (shifted, value) = reduced_exp_m1((-x.abs()).clamp(-104.5, 0.0));
    let (half, rest) = halved_scale(shifted);
    let e = (f64::from(value) + 1.0) * f64::from(half) * f64::from(rest);
    ((if x < 0.0 { e } else { 1.0 }) / (1.0 + e)) as f32
}

/// As [`logistic`].
#[inline(always)]
fn logistic_f64(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// e to the power `x`, less 1.
#[inline(always)]
fn exp_m1(x: f32) -> f32 {
    // Below, the result is -1; above, subtracting 1 changes nothing.
    let (shifted, value) = reduced_exp_m1(x.clamp(-40.0, 80.0));
    let scale = exp2_of_rounded(shifted);
    let value = value.mul_add(scale, scale - 1.0);
    let value = if x > 80.0 { exp(x) } else { value };
    if x == 0.0 { x } else { value }
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
    let small = square.mul_add(-0.5, n.mul_add(LN_2_LOW, tail * f * square));
    let value = n.mul_add(LN_2_HIGH, f + small);
    let value = if x == f32::INFINITY { x } else { value };
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    if x < 0.0 || x.is_nan() { f32::NAN } else { value }
}

/// The natural logarithm of `1 + x`: that of the rounded sum, and what rounding it lost.
#[inline(always)]
fn log_1p(x: f32) -> f32 {
    let sum = 1.0 + x;
    // The greater term less the sum is exact.
    let lost = if x < 1.0 { x - (sum - 1.0) } else { 1.0 - (sum - x) };
    let value = log(sum) + lost / sum;
    // Where the logarithm is infinite or `x` itself, there is nothing to correct.
    let value = if sum > 0.0 && sum < f32::INFINITY { value } else { log(sum) };
    if x == 0.0 { x } else { value }
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
    let near = (tail * square).mul_add(x, x);
    // From 10 on the result is 1; a scale of one part serves up to there.
    let doubled = 2.0 * if magnitude < 10.0 { magnitude } else { 10.0 };
    let (shifted, value) = reduced_exp_m1(doubled);
    let scale = exp2_of_rounded(shifted);
    let far = 1.0 - 2.0 / (value.mul_add(scale, scale) + 1.0);
    let value = if magnitude < 0.625 { near } else { far };
    // The sum of zeros of opposite sign is +0, so the sign is set for both.
    if x.is_nan() { x } else { value.copysign(x) }
}

/// From here on reducing an angle to a quarter turn loses too many bits.
const GREATEST_ANGLE: f32 = 1e9;

/// Sine and cosine of the part of `x` beyond whole quarter turns, and how many turns those are,
/// by the last two bits. In `f64`, where series of few terms are exact to `f32`.
#[inline(always)]
fn quarter_turns(x: f32) -> (f64, f64, u64) {
    const ROUND: f64 = 6_755_399_441_055_744.0;
    /// Half of pi beyond its nearest `f64`.
    const FRAC_PI_2_LOW: f64 = 6.123_233_995_736_766e-17;
    let x = f64::from(x);
    let shifted = x.mul_add(std::f64::consts::FRAC_2_PI, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-FRAC_PI_2_LOW, n.mul_add(-std::f64::consts::FRAC_PI_2, x));
    let square = r * r;
    // Taylor's series: the first term left out is below 2^-33 of the result.
    let series = |terms: [f64; 5]| {
        terms.into_iter().fold(0.0, |value: f64, term| value.mul_add(square, 1.0 / term))
    };
    let sine = series([-39_916_800.0, 362_880.0, -5_040.0, 120.0, -6.0]);
    let cosine = series([-3_628_800.0, 40_320.0, -720.0, 24.0, -2.0]);
    ((sine * square).mul_add(r, r), cosine.mul_add(square, 1.0), shifted.to_bits())
}

/// `value` with its sign changed if the second bit of `turns` is set.
#[inline(always)]
fn negated_by(value: f64, turns: u64) -> f64 {
    f64::from_bits(value.to_bits() ^ (turns & 2) << 62)
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "this is the rounding")]
fn sine(x: f32) -> f32 {
    let (sine, cosine, turns) = quarter_turns(x);
    let value = negated_by(if turns & 1 == 0 { sine } else { cosine }, turns) as f32;
    // The sum of zeros of opposite sign is +0.
    if x == 0.0 { x } else { value }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "this is the rounding")]
fn cosine(x: f32) -> f32 {
    let (sine, cosine, turns) = quarter_turns(x);
    negated_by(if turns & 1 == 0 { cosine } else { sine }, turns.wrapping_add(1)) as f32
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "this is the rounding")]
fn tangent(x: f32) -> f32 {
    let (sine, cosine, turns) = quarter_turns(x);
    let value = if turns & 1 == 0 { sine / cosine } else { -cosine / sine };
    if x == 0.0 { x } else { value as f32 }
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

    /// The worst error over floats of every sign and exponent, and where it is.
    fn worst_anywhere(function: fn(f32) -> f32, reference: fn(f64) -> f64) -> (f64, f32) {
        (0..=u32::MAX)
            .step_by(10_007)
            .map(f32::from_bits)
            .filter(|x| !x.is_nan())
            .map(|x| (ulps(function(x), reference(f64::from(x))), x))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap()
    }

    /// As a kernel computes it: angles beyond what the series take go to the library.
    fn angle(near: fn(f32) -> f32, far: fn(f32) -> f32) -> impl Fn(f32) -> f32 {
        move |x| if x.is_far_angle() { far(x) } else { near(x) }
    }

    #[test]
    fn functions_are_within_two_ulps_for_every_exponent() {
        type Case = (&'static str, fn(f32) -> f32, fn(f64) -> f64);
        let cases: [Case; 9] = [
            ("exp", exp, f64::exp),
            ("exp_m1", exp_m1, f64::exp_m1),
            ("log", log, f64::ln),
            ("log_1p", log_1p, f64::ln_1p),
            ("tanh", tanh, f64::tanh),
            ("logistic", Math::logistic, |x| 1.0 / (1.0 + (-x).exp())),
            ("sine", |x| angle(sine, Math::sine_of_far)(x), f64::sin),
            ("cosine", |x| angle(cosine, Math::cosine_of_far)(x), f64::cos),
            ("tan", |x| angle(tangent, Math::tan_of_far)(x), f64::tan),
        ];
        for (name, function, reference) in cases {
            let (error, x) = worst_anywhere(function, reference);
            assert!(error <= 2.0, "{name} of {x:e}: {error} ulp");
            for (low, high) in [(-1.0, 1.0), (-0.01, 0.01), (-20.0, 20.0), (-90.0, 90.0)] {
                let error = worst(function, reference, low, high);
                assert!(error <= 2.0, "{name} in {low}..{high}: {error} ulp");
            }
        }
    }

    #[test]
    fn functions_keep_what_is_special() {
        let odd: [fn(f32) -> f32; 5] = [exp_m1, log_1p, tanh, sine, tangent];
        for function in odd {
            assert_eq!(function(0.0).to_bits(), 0.0_f32.to_bits());
            assert_eq!(function(-0.0).to_bits(), (-0.0_f32).to_bits());
            assert!(function(f32::NAN).is_nan());
        }
        assert_eq!([exp_m1(f32::INFINITY), exp_m1(f32::NEG_INFINITY)], [f32::INFINITY, -1.0]);
        assert_eq!([log_1p(f32::INFINITY), log_1p(-1.0)], [f32::INFINITY, f32::NEG_INFINITY]);
        assert!(log_1p(-1.5).is_nan() && log_1p(f32::NEG_INFINITY).is_nan());
        let ends = [f32::INFINITY, f32::NEG_INFINITY];
        assert_eq!(ends.map(Math::logistic), [1.0, 0.0]);
        assert!(ends.into_iter().all(|x| sine(x).is_nan() && cosine(x).is_nan()));
        assert_eq!(cosine(-0.0), 1.0);
        assert!(Math::logistic(f32::NAN).is_nan() && cosine(f32::NAN).is_nan());
    }
}
