//! Elementary functions of complex numbers, in `f64`.
//!
//! Formulas are chosen so that neither cancellation nor an early overflow costs digits. Zeros and
//! infinities give what annex G of the C standard says where it says something.

use num_complex::Complex;

type Number = Complex<f64>;

/// The principal square root.
pub(super) fn sqrt(z: Number) -> Number {
    if z.re == 0.0 && z.im == 0.0 {
        return Number::new(0.0, z.im);
    }
    if z.im.is_infinite() {
        return Number::new(f64::INFINITY, z.im);
    }
    if z.re.is_infinite() {
        let other = if z.im.is_nan() { z.im } else { 0.0_f64.copysign(z.im) };
        return if z.re > 0.0 {
            Number::new(z.re, other)
        } else {
            Number::new(other.abs(), z.re.abs().copysign(z.im))
        };
    }
    // Halved twice, so that the sum does not overflow.
    let (x, y) = (z.re / 4.0, z.im / 4.0);
    let large = 2.0 * ((x.abs() + x.hypot(y)) / 2.0).sqrt();
    let small = z.im.abs() / (2.0 * large);
    if z.re >= 0.0 {
        Number::new(large, small.copysign(z.im))
    } else {
        Number::new(small, large.copysign(z.im))
    }
}

/// The natural logarithm, its imaginary part in -π..=π.
pub(super) fn log(z: Number) -> Number {
    let (x, y) = (z.re.abs().max(z.im.abs()), z.re.abs().min(z.im.abs()));
    let modulus = z.re.hypot(z.im);
    let real = if (0.5..2.0).contains(&modulus) {
        // |z|² - 1 without cancellation.
        ((x - 1.0) * (x + 1.0) + y * y).ln_1p() / 2.0
    } else if modulus.is_infinite() && x.is_finite() {
        (z.re / 2.0).hypot(z.im / 2.0).ln() + std::f64::consts::LN_2
    } else {
        modulus.ln()
    };
    Number::new(real, z.im.atan2(z.re))
}

/// `log(1 + z)`.
pub(super) fn log_plus_one(z: Number) -> Number {
    let near = z.re.abs() < 0.5 && z.im.abs() < 0.5;
    if near {
        let real = (z.re * (2.0 + z.re) + z.im * z.im).ln_1p() / 2.0;
        return Number::new(real, z.im.atan2(1.0 + z.re));
    }
    log(Number::new(1.0 + z.re, z.im))
}

/// e to the power `z`.
pub(super) fn exp(z: Number) -> Number {
    let scale = z.re.exp();
    if z.im == 0.0 {
        return Number::new(scale, z.im);
    }
    if !z.im.is_finite() {
        return match z.re {
            x if x == f64::NEG_INFINITY => Number::new(0.0, 0.0),
            x if x == f64::INFINITY => Number::new(x, f64::NAN),
            _ => Number::new(f64::NAN, f64::NAN),
        };
    }
    if z.re > 709.0 && z.re < 1420.0 {
        // The scale alone may overflow where the product does not.
        let half = (z.re / 2.0).exp();
        return Number::new(half * z.im.cos() * half, half * z.im.sin() * half);
    }
    Number::new(scale * z.im.cos(), scale * z.im.sin())
}

/// `exp(z) - 1`.
pub(super) fn exp_minus_one(z: Number) -> Number {
    if z.re.is_finite() && z.im.is_finite() && z.re < 700.0 {
        let half = (z.im / 2.0).sin();
        let real = z.re.exp_m1() * z.im.cos() - 2.0 * half * half;
        return Number::new(real, z.re.exp() * z.im.sin());
    }
    exp(z) - 1.0
}

pub(super) fn sine(z: Number) -> Number {
    Number::new(scaled(z.re.sin(), z.im, f64::cosh), scaled(z.re.cos(), z.im, f64::sinh))
}

pub(super) fn cosine(z: Number) -> Number {
    Number::new(scaled(z.re.cos(), z.im, f64::cosh), -scaled(z.re.sin(), z.im, f64::sinh))
}

/// `factor * function(y)` where the function grows as `exp`: the product may be finite though it
/// is not.
fn scaled(factor: f64, y: f64, function: fn(f64) -> f64) -> f64 {
    if y.is_finite() && y.abs() > 709.0 {
        let half = (y.abs() / 2.0).exp();
        let sign = function(y.signum());
        return (factor * half / 2.0 * half).copysign(factor * sign);
    }
    factor * function(y)
}

/// Kahan's hyperbolic tangent.
pub(super) fn tanh(z: Number) -> Number {
    if z.re.is_infinite() || z.re.abs() > 350.0 {
        // What is left of the imaginary part is below the least number.
        let turned = if z.im.is_finite() { (2.0 * z.im).sin() } else { 1.0_f64.copysign(z.im) };
        return Number::new(1.0_f64.copysign(z.re), 0.0_f64.copysign(turned));
    }
    let tangent = z.im.tan();
    let beta = 1.0 + tangent * tangent;
    let sinh = z.re.sinh();
    let rho = (1.0 + sinh * sinh).sqrt();
    if tangent.is_infinite() {
        return Number::new(rho / sinh, 1.0 / tangent);
    }
    let denominator = 1.0 + beta * sinh * sinh;
    Number::new(beta * rho * sinh / denominator, tangent / denominator)
}

pub(super) fn tan(z: Number) -> Number {
    let turned = tanh(Number::new(-z.im, z.re));
    Number::new(turned.im, -turned.re)
}

/// The principal cube root.
pub(super) fn cbrt(z: Number) -> Number {
    let (modulus, angle) = (z.re.hypot(z.im).cbrt(), z.im.atan2(z.re) / 3.0);
    if modulus == 0.0 || angle == 0.0 {
        return Number::new(modulus, z.im);
    }
    Number::new(modulus * angle.cos(), modulus * angle.sin())
}

/// `z` with absolute value 1; zero stays.
pub(super) fn sign(z: Number) -> Number {
    let modulus = z.re.hypot(z.im);
    if modulus == 0.0 { z } else { Number::new(z.re / modulus, z.im / modulus) }
}

/// `base` to the power `exponent`: 1 when the exponent is zero, whatever the base.
pub(super) fn power(base: Number, exponent: Number) -> Number {
    if exponent.re == 0.0 && exponent.im == 0.0 {
        return Number::new(1.0, 0.0);
    }
    if base.re == 0.0 && base.im == 0.0 && exponent.im == 0.0 {
        let real = if exponent.re > 0.0 { 0.0 } else { f64::INFINITY };
        return Number::new(real, 0.0);
    }
    let (modulus, angle) = (base.re.hypot(base.im), base.im.atan2(base.re));
    let size = modulus.powf(exponent.re) * (-exponent.im * angle).exp();
    let turn = exponent.im * modulus.ln() + exponent.re * angle;
    if turn == 0.0 {
        Number::new(size, 0.0)
    } else {
        Number::new(size * turn.cos(), size * turn.sin())
    }
}

/// `-i log((x + i y) / √(x² + y²))`.
pub(super) fn atan2(y: Number, x: Number) -> Number {
    let i = Number::i();
    -i * log((x + i * y) / sqrt(x * x + y * y))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> impl Iterator<Item = Number> {
        let parts = [-3.5, -1.0, -0.25, 1e-3, 0.75, 2.0];
        parts.into_iter().flat_map(move |re| parts.map(|im| Number::new(re, im)))
    }

    fn assert_close(what: &str, z: Number, found: Number, expected: Number) {
        let close = (found - expected).norm() <= 1e-14 * expected.norm().max(1.0);
        assert!(close, "{what}({z}) = {found} instead of {expected}");
    }

    #[test]
    fn roots_and_logarithms_undo_powers_and_exponentials() {
        for z in grid() {
            assert_close("sqrt", z, sqrt(z) * sqrt(z), z);
            assert!(sqrt(z).re >= 0.0 && sqrt(z).im.signum() == z.im.signum(), "{z}");
            assert_close("cbrt", z, cbrt(z) * cbrt(z) * cbrt(z), z);
            assert_close("log", z, exp(log(z)), z);
            assert_close("log_plus_one", z, exp_minus_one(log_plus_one(z)), z);
            assert_close("power", z, power(z, Number::new(3.0, 0.0)), z * z * z);
            let i = Number::i();
            assert_close("power", z, power(z, i), exp(i * log(z)));
            assert_close("sign", z, sign(z) * z.norm(), z);
        }
    }

    #[test]
    fn circular_and_hyperbolic_functions_are_sums_of_exponentials() {
        let i = Number::i();
        for z in grid() {
            let (up, down) = (exp(i * z), exp(-i * z));
            assert_close("sine", z, sine(z), (up - down) / (2.0 * i));
            assert_close("cosine", z, cosine(z), (up + down) / 2.0);
            assert_close("tan", z, tan(z) * cosine(z), sine(z));
            let (up, down) = (exp(z), exp(-z));
            assert_close("tanh", z, tanh(z) * (up + down), up - down);
        }
    }

    #[test]
    fn small_differences_keep_their_digits() {
        let z = Number::new(1e-12, -2e-12);
        assert!((exp_minus_one(z) - z).norm() < 1e-22);
        assert!((log_plus_one(z) - z).norm() < 1e-22);
        // |z| = 1 up to 5e-17: the logarithm's real part is 5e-33 / 2.
        let unit = log(Number::new(1.0, 1e-10));
        assert!((unit.re - 5e-21).abs() < 1e-30, "{unit}");
    }

    #[test]
    fn zeros_and_infinities_keep_their_signs() {
        let inf = f64::INFINITY;
        let same = |a: Number, re: f64, im: f64| {
            assert!(a.re.to_bits() == re.to_bits() && a.im.to_bits() == im.to_bits(), "{a}");
        };
        same(sqrt(Number::new(-0.0, -0.0)), 0.0, -0.0);
        same(sqrt(Number::new(-4.0, -0.0)), 0.0, -2.0);
        same(sqrt(Number::new(-inf, 1.0)), 0.0, inf);
        same(sqrt(Number::new(1.0, -inf)), inf, -inf);
        same(exp(Number::new(-inf, f64::NAN)), 0.0, 0.0);
        same(tanh(Number::new(inf, 1.0)), 1.0, 0.0);
        same(tanh(Number::new(-800.0, 1.0)), -1.0, 0.0);
        assert!(sqrt(Number::new(1e308, 1e308)).re.is_finite());
        assert!(sine(Number::new(1e-300, 710.0)).re > 0.0);
        same(power(Number::new(0.0, 0.0), Number::new(2.0, 0.0)), 0.0, 0.0);
        same(power(Number::new(f64::NAN, 0.0), Number::new(0.0, 0.0)), 1.0, 0.0);
    }
}
