//! Special functions, as `chlo` names them.
//!
//! All are computed in `f64` and rounded once, so that for narrower floats the result is the
//! nearest number but in a few cases in a million. For `f64` itself the error is a few units in the
//! last place, more where a function crosses zero.

#![allow(clippy::cast_possible_truncation, reason = "what is computed in a wider float is rounded")]

use std::cmp::Ordering;
use std::f64::consts::{FRAC_2_SQRT_PI, PI};

use half::{bf16, f16};
use num_complex::Complex;

use super::convert::Convert;
use super::element::with_float;
use super::elementwise::{BinaryKernel, UnaryKernel, map, zip};
use crate::ifrt::DType;
use crate::stablehlo::op::{ChloBinary, ChloUnary};

/// The loop of a function of one operand, if it exists for the element type.
pub(crate) fn unary(op: ChloUnary, dtype: DType) -> Option<UnaryKernel> {
    macro_rules! real {
        ($f:expr) => {
            with_float!(dtype, T => Some(|a, out| map(a, out, |x: T| {
                <f64 as Convert<T>>::convert($f(<T as Convert<f64>>::convert(x)))
            })), _ => None)
        };
    }
    macro_rules! real_or_complex {
        ($f:expr, $complex:expr) => {
            match dtype {
                DType::C64 => Some(|a, out| {
                    map(a, out, |z: Complex<f32>| {
                        let z = $complex(Complex::new(f64::from(z.re), f64::from(z.im)));
                        Complex::new(z.re as f32, z.im as f32)
                    })
                }),
                DType::C128 => Some(|a, out| map(a, out, $complex)),
                _ => real!($f),
            }
        };
    }
    match op {
        ChloUnary::Acos => real_or_complex!(libm::acos, acos),
        ChloUnary::Acosh => real_or_complex!(libm::acosh, acosh),
        ChloUnary::Asin => real_or_complex!(libm::asin, asin),
        ChloUnary::Asinh => real_or_complex!(libm::asinh, asinh),
        ChloUnary::Atan => real_or_complex!(libm::atan, atan),
        ChloUnary::Atanh => real_or_complex!(libm::atanh, atanh),
        ChloUnary::Cosh => real_or_complex!(libm::cosh, Complex::<f64>::cosh),
        ChloUnary::Sinh => real_or_complex!(libm::sinh, Complex::<f64>::sinh),
        ChloUnary::BesselI1e => real!(bessel_i1e),
        ChloUnary::Digamma => real!(digamma),
        ChloUnary::Erf => real!(libm::erf),
        ChloUnary::ErfInv => real!(erf_inv),
        ChloUnary::Erfc => real!(libm::erfc),
        ChloUnary::Lgamma => real!(libm::lgamma),
        ChloUnary::Conj
        | ChloUnary::IsInf
        | ChloUnary::IsNegInf
        | ChloUnary::IsPosInf
        | ChloUnary::Square
        | ChloUnary::Tan => None,
    }
}

/// The loop of a function of two operands, if it exists for the element type.
pub(crate) fn binary(op: ChloBinary, dtype: DType) -> Option<BinaryKernel> {
    macro_rules! real {
        ($f:expr) => {
            with_float!(dtype, T => Some(|a, b, out| zip(a, b, out, |x: T, y: T| {
                let wide = <T as Convert<f64>>::convert;
                <f64 as Convert<T>>::convert($f(wide(x), wide(y)))
            })), _ => None)
        };
    }
    match op {
        ChloBinary::Zeta => real!(zeta),
        ChloBinary::Polygamma => real!(polygamma),
        ChloBinary::NextAfter => match dtype {
            DType::F16 => Some(|a, b, out| {
                zip(a, b, out, |x: f16, y: f16| {
                    f16::from_bits(next_after_16(x.to_bits(), x.to_f64(), y.to_f64()))
                });
            }),
            DType::BF16 => Some(|a, b, out| {
                zip(a, b, out, |x: bf16, y: bf16| {
                    bf16::from_bits(next_after_16(x.to_bits(), x.to_f64(), y.to_f64()))
                });
            }),
            DType::F32 => Some(|a, b, out| {
                zip(a, b, out, |x: f32, y: f32| match x.partial_cmp(&y) {
                    None => f32::NAN,
                    Some(Ordering::Equal) => y,
                    Some(Ordering::Less) => x.next_up(),
                    Some(Ordering::Greater) => x.next_down(),
                });
            }),
            DType::F64 => Some(|a, b, out| {
                zip(a, b, out, |x: f64, y: f64| match x.partial_cmp(&y) {
                    None => f64::NAN,
                    Some(Ordering::Equal) => y,
                    Some(Ordering::Less) => x.next_up(),
                    Some(Ordering::Greater) => x.next_down(),
                });
            }),
            _ => None,
        },
    }
}

/// The bits of the 16-bit float after that of `bits`, whose value is `x`, towards `y`.
fn next_after_16(bits: u16, x: f64, y: f64) -> u16 {
    const SIGN: u16 = 0x8000;
    let sign_of_y = if y.is_sign_negative() { SIGN } else { 0 };
    if x.is_nan() || y.is_nan() {
        SIGN - 1
    } else if x == 0.0 {
        // The least number on the way, or y itself.
        if y == 0.0 { sign_of_y } else { sign_of_y | 1 }
    } else if x == y {
        bits
    } else if (x < y) == (x > 0.0) {
        bits + 1
    } else {
        bits - 1
    }
}

/// The inverse of `erf`: an approximation, then steps of Newton's method on whichever of `erf` and
/// `erfc` has the digits.
fn erf_inv(x: f64) -> f64 {
    let magnitude = x.abs();
    if x == 0.0 || magnitude >= 1.0 || x.is_nan() {
        let infinite = if magnitude == 1.0 { f64::INFINITY.copysign(x) } else { f64::NAN };
        return if x == 0.0 { x } else { infinite };
    }
    let rest = 1.0 - magnitude;
    // Winitzki's approximation, good to three digits.
    let log = (rest * (1.0 + magnitude)).ln();
    let a = 0.147;
    let half = 2.0 / (PI * a) + log / 2.0;
    let mut y = ((half * half - log / a).sqrt() - half).max(0.0).sqrt();
    for _ in 0..4 {
        let error = if magnitude < 0.5 { libm::erf(y) - magnitude } else { rest - libm::erfc(y) };
        let step = error / (FRAC_2_SQRT_PI * (-y * y).exp());
        // Halley's correction.
        y -= step / (1.0 + y * step);
    }
    y.copysign(x)
}

/// The logarithmic derivative of the gamma function; NaN at its poles.
fn digamma(x: f64) -> f64 {
    if x <= 0.0 {
        if x == x.floor() {
            return f64::NAN;
        }
        // By reflection; the tangent of what is left of whole numbers.
        let rest = x - x.round();
        return digamma(1.0 - x) - PI / (PI * rest).tan();
    }
    if x.is_infinite() {
        return x;
    }
    let (mut x, mut below) = (x, 0.0);
    while x < 10.0 {
        below += 1.0 / x;
        x += 1.0;
    }
    // B(2k) / 2k.
    const TERMS: [f64; 8] = [
        1.0 / 12.0,
        -1.0 / 120.0,
        1.0 / 252.0,
        -1.0 / 240.0,
        1.0 / 132.0,
        -691.0 / 32760.0,
        1.0 / 12.0,
        -3617.0 / 8160.0,
    ];
    let square = 1.0 / (x * x);
    let tail = TERMS.iter().rev().fold(0.0, |sum, term| (sum + term) * square);
    x.ln() - 0.5 / x - tail - below
}

/// Hurwitz' zeta function: the first terms, and the rest by Euler and Maclaurin.
fn zeta(x: f64, q: f64) -> f64 {
    if x.is_nan() || q.is_nan() || x < 1.0 {
        return f64::NAN;
    }
    if x == 1.0 {
        return f64::INFINITY;
    }
    if q <= 0.0 {
        if q == q.floor() {
            let is_even = x % 2.0 == 0.0;
            return if is_even { f64::INFINITY } else { f64::NAN };
        }
        if x != x.floor() {
            return f64::NAN;
        }
    }
    // Terms below 10 are added one by one, and at least ten.
    let (mut sum, mut at, mut terms) = (0.0, q, 0);
    while terms < 10 || (at < 10.0 && terms < 1 << 20) {
        sum += at.powf(-x);
        at += 1.0;
        terms += 1;
    }
    let power = at.powf(-x);
    sum += power * at / (x - 1.0) + 0.5 * power;
    // B(2k) / (2k)! times x (x + 1) … over growing powers.
    const BERNOULLI: [f64; 12] = [
        1.0 / 6.0,
        -1.0 / 30.0,
        1.0 / 42.0,
        -1.0 / 30.0,
        5.0 / 66.0,
        -691.0 / 2730.0,
        7.0 / 6.0,
        -3617.0 / 510.0,
        43867.0 / 798.0,
        -174_611.0 / 330.0,
        854_513.0 / 138.0,
        -236_364_091.0 / 2730.0,
    ];
    let mut factor = x * power / at / 2.0;
    let mut k = 1.0;
    for bernoulli in BERNOULLI {
        let term = bernoulli * factor;
        sum += term;
        if term.abs() < sum.abs() * 1e-18 {
            break;
        }
        let next = 2.0 * k;
        factor *= (x + next - 1.0) * (x + next) / ((next + 1.0) * (next + 2.0) * at * at);
        k += 1.0;
    }
    sum
}

/// The `n`th derivative of [`digamma`]; NaN when `n` is no whole number or below zero.
fn polygamma(n: f64, x: f64) -> f64 {
    if n == 0.0 {
        return digamma(x);
    }
    if n < 0.0 || n != n.floor() {
        return f64::NAN;
    }
    let sign = if n % 2.0 == 0.0 { -1.0 } else { 1.0 };
    let zeta = zeta(n + 1.0, x);
    let product = libm::tgamma(n + 1.0) * zeta;
    sign * if product.is_finite() { product } else { (libm::lgamma(n + 1.0) + zeta.ln()).exp() }
}

/// The modified Bessel function of order 1, scaled by `exp(-|x|)`.
fn bessel_i1e(x: f64) -> f64 {
    let magnitude = x.abs();
    if magnitude.is_infinite() {
        return 0.0_f64.copysign(x);
    }
    let scaled = if magnitude <= 30.0 {
        let half = magnitude / 2.0;
        let (mut term, mut sum, mut k) = (half, half, 1.0);
        while term > sum * 1e-17 {
            term *= half * half / (k * (k + 1.0));
            sum += term;
            k += 1.0;
        }
        sum * (-magnitude).exp()
    } else {
        let (mut term, mut sum, mut k) = (1.0_f64, 1.0, 1.0);
        while k < 30.0 {
            let odd = 2.0 * k - 1.0;
            let next = -term * (4.0 - odd * odd) / (k * 8.0 * magnitude);
            if next.abs() >= term.abs() {
                break;
            }
            term = next;
            sum += term;
            k += 1.0;
        }
        sum / (2.0 * PI * magnitude).sqrt()
    };
    scaled.copysign(x)
}

/// `asinh` for complex numbers: `asin` turned by a right angle.
fn asinh(z: Complex<f64>) -> Complex<f64> {
    let turned = asin(Complex::new(-z.im, z.re));
    Complex::new(turned.im, -turned.re)
}

/// The real parts of `asin` and `acos`, and the magnitude of their imaginary part, for the first
/// quadrant: by Hull, Fairgrieve and Tang, "Implementing the complex arcsine and arccosine
/// functions using exception handling".
fn arc(x: f64, y: f64) -> (f64, f64, f64) {
    let (r, s) = ((x + 1.0).hypot(y), (x - 1.0).hypot(y));
    let a = 0.5 * (r + s);
    let b = x / a;
    let (sine, cosine) = if b <= 0.6417 {
        (b.asin(), b.acos())
    } else if x <= 1.0 {
        let root = (0.5 * (a + x) * (y * y / (r + x + 1.0) + (s + (1.0 - x)))).sqrt();
        ((x / root).atan(), (root / x).atan())
    } else {
        let root = y * (0.5 * ((a + x) / (r + x + 1.0) + (a + x) / (s + (x - 1.0)))).sqrt();
        ((x / root).atan(), (root / x).atan())
    };
    let imaginary = if a <= 1.5 {
        let excess = if x < 1.0 {
            0.5 * (y * y / (r + (x + 1.0)) + y * y / (s + (1.0 - x)))
        } else {
            0.5 * (y * y / (r + (x + 1.0)) + (s + (x - 1.0)))
        };
        (excess + (excess * (a + 1.0)).sqrt()).ln_1p()
    } else {
        (a + ((a - 1.0) * (a + 1.0)).sqrt()).ln()
    };
    (sine, cosine, imaginary)
}

/// [`arc`] of what is too great to be squared, too.
fn arc_of(z: Complex<f64>) -> (f64, f64, f64) {
    let (x, y) = (z.re.abs(), z.im.abs());
    const GREAT: f64 = 1e150;
    if x.max(y) > GREAT {
        let cosine = y.atan2(x);
        return (x.atan2(y), cosine, (x / 2.0).hypot(y / 2.0).ln() + 2.0 * std::f64::consts::LN_2);
    }
    arc(x, y)
}

fn asin(z: Complex<f64>) -> Complex<f64> {
    let (sine, _, imaginary) = arc_of(z);
    Complex::new(sine.copysign(z.re), imaginary.copysign(z.im))
}

fn acos(z: Complex<f64>) -> Complex<f64> {
    let (_, cosine, imaginary) = arc_of(z);
    let re = if z.re.is_sign_negative() { PI - cosine } else { cosine };
    Complex::new(re, -imaginary.copysign(z.im))
}

fn acosh(z: Complex<f64>) -> Complex<f64> {
    let w = acos(z);
    // The half plane with a real part that is not negative.
    if w.im.is_sign_negative() { Complex::new(-w.im, w.re) } else { Complex::new(w.im, -w.re) }
}

/// `atanh(z)`: a quarter of the logarithm of `|1 + z|^2 / |1 - z|^2`, and half an angle.
fn atanh(z: Complex<f64>) -> Complex<f64> {
    let (x, y) = (z.re.abs(), z.im.abs());
    let square = y * y;
    let re = if x.max(y) > 1e150 {
        0.0
    } else {
        0.25 * (4.0 * x / ((1.0 - x).mul_add(1.0 - x, square))).ln_1p()
    };
    let im = 0.5 * (2.0 * y).atan2((1.0 - x) * (1.0 + x) - square);
    let im = if im.is_nan() || x.max(y) > 1e150 { PI / 2.0 } else { im };
    Complex::new(re.copysign(z.re), im.copysign(z.im))
}

fn atan(z: Complex<f64>) -> Complex<f64> {
    let turned = atanh(Complex::new(-z.im, z.re));
    Complex::new(turned.im, -turned.re)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= expected.abs() * 2e-14, "{found} {expected}");
    }

    #[test]
    fn known_values() {
        near(erf_inv(0.5), 0.476_936_276_204_469_9);
        near(erf_inv(-0.999), -2.326_753_765_513_525);
        near(erf_inv(1e-10), 8.862_269_254_527_58e-11);
        assert_eq!([erf_inv(1.0), erf_inv(-1.0)], [f64::INFINITY, f64::NEG_INFINITY]);
        near(digamma(1.0), -0.577_215_664_901_532_9);
        near(digamma(-0.5), 0.036_489_973_978_576_52);
        near(digamma(100.0), 4.600_161_852_738_087);
        assert!(digamma(0.0).is_nan() && digamma(-3.0).is_nan());
        near(zeta(2.0, 1.0), PI * PI / 6.0);
        near(zeta(3.5, 0.25), 128.546_958_964_284_33);
        near(zeta(2.0, 30.5), 0.033_330_248_112_801_61);
        assert_eq!([zeta(1.0, 2.0), zeta(2.0, -1.0)], [f64::INFINITY; 2]);
        near(polygamma(1.0, 1.0), PI * PI / 6.0);
        near(polygamma(2.0, 1.0), -2.404_113_806_319_188_6);
        near(bessel_i1e(1.0), 0.207_910_415_349_708_45);
        near(bessel_i1e(-40.0), -0.062_482_229_074_442_06);
    }

    #[test]
    fn complex_functions_undo_their_inverses() {
        for (re, im) in [(0.3, 0.4), (-1.7, 0.2), (2.5, -3.0), (1e-9, 1e-9), (-0.5, -0.001)] {
            let z = Complex::new(re, im);
            for (name, back) in [
                ("asin", asin(z).sin()),
                ("acos", acos(z).cos()),
                ("asinh", asinh(z).sinh()),
                ("acosh", acosh(z).cosh()),
                ("atan", atan(z).tan()),
                ("atanh", atanh(z).tanh()),
            ] {
                assert!((back - z).norm() <= 1e-13 * z.norm().max(1e-3), "{name} {z} {back}");
            }
        }
    }

    #[test]
    fn the_next_float_is_a_step_away() {
        let kernel = binary(ChloBinary::NextAfter, DType::BF16).unwrap();
        let one = [1.0, 1.0, 0.0, 0.0, -1.0].map(bf16::from_f32);
        let towards = [2.0, 0.0, -1.0, 1.0, 0.0].map(bf16::from_f32);
        let mut out = [bf16::ZERO; 5];
        kernel(
            bytemuck::cast_slice(&one),
            bytemuck::cast_slice(&towards),
            bytemuck::cast_slice_mut(&mut out),
        );
        assert_eq!(out.map(bf16::to_bits), [0x3f81, 0x3f7f, 0x8001, 0x0001, 0xbf7f]);
    }
}
