//! Complex numbers: pairs of a real and an imaginary part of 32 or 64 bits.
//!
//! They are not compared but for equality; `maximum` and `minimum` are by the real part, then by the
//! imaginary one, as the specification has it. The absolute value is C's `hypot`: an infinite part makes it infinite
//! whatever the other is. Products are of the textbook, quotients are scaled so that they
//! overflow only when the result does.

use num_complex::Complex;

use super::complex_math;
use super::convert::Convert;
use super::element::{Bool, with_element};
use super::elementwise::{BinaryKernel, UnaryKernel, map, zip};
use crate::ifrt::DType;
use crate::stablehlo::op::{Binary, Direction, Unary};

macro_rules! part {
    ($dtype:expr, $module:ident => $body:expr, _ => $otherwise:expr) => {
        match $dtype {
            DType::C64 => {
                use single as $module;
                $body
            }
            DType::C128 => {
                use double as $module;
                $body
            }
            _ => $otherwise,
        }
    };
}

/// The loop of a one-operand operation on complex numbers, if it exists.
pub(super) fn unary(op: Unary, dtype: DType) -> Option<UnaryKernel> {
    part!(dtype, part => part::unary(op), _ => None)
}

/// The loop of a two-operand operation on complex numbers, if it exists.
pub(super) fn binary(op: Binary, dtype: DType) -> Option<BinaryKernel> {
    part!(dtype, part => part::binary(op), _ => None)
}

/// The loop of `complex`, on parts of `dtype`.
pub(super) fn from_parts(dtype: DType) -> Option<BinaryKernel> {
    match dtype {
        DType::F32 => Some(|a, b, out| zip(a, b, out, Complex::<f32>::new)),
        DType::F64 => Some(|a, b, out| zip(a, b, out, Complex::<f64>::new)),
        _ => None,
    }
}

/// The loop of a comparison, which can only be for equality.
pub(super) fn compare(direction: Direction, dtype: DType) -> Option<BinaryKernel> {
    part!(dtype, part => part::compare(direction), _ => None)
}

/// The kernel of a conversion from or to complex numbers, if there is one. What a complex number
/// becomes is what its real part does, but for a boolean, which is whether it is not zero.
pub(super) fn convert(from: DType, to: DType) -> Option<UnaryKernel> {
    match (from, to) {
        (DType::C64, DType::C128) => Some(|a, out| {
            map(a, out, |z: Complex<f32>| Complex::<f64>::new(z.re.into(), z.im.into()));
        }),
        #[allow(clippy::cast_possible_truncation, reason = "rounding is the operation")]
        (DType::C128, DType::C64) => Some(|a, out| {
            map(a, out, |z: Complex<f64>| Complex::<f32>::new(z.re as f32, z.im as f32));
        }),
        (from, DType::C64) => with_element!(
            from,
            T => Some(|a, out| {
                map(a, out, |x: T| Complex::<f32>::new(x.convert(), 0.0));
            }),
            _ => None
        ),
        (from, DType::C128) => with_element!(
            from,
            T => Some(|a, out| {
                map(a, out, |x: T| Complex::<f64>::new(x.convert(), 0.0));
            }),
            _ => None
        ),
        (DType::C64 | DType::C128, to) => part!(from, part => part::real_part_to(to), _ => None),
        _ => None,
    }
}

macro_rules! complex {
    ($($module:ident: $part:ident;)*) => {$(
        mod $module {
            use super::*;

            type Number = Complex<$part>;

            pub(super) fn unary(op: Unary) -> Option<UnaryKernel> {
                Some(match op {
                    Unary::Abs => |a, out| map(a, out, |z: Number| z.re.hypot(z.im)),
                    Unary::Cbrt => |a, out| through(a, out, complex_math::cbrt),
                    Unary::Cosine => |a, out| through(a, out, complex_math::cosine),
                    Unary::Exponential => |a, out| through(a, out, complex_math::exp),
                    Unary::ExponentialMinusOne => {
                        |a, out| through(a, out, complex_math::exp_minus_one)
                    }
                    Unary::Imag => |a, out| map(a, out, |z: Number| z.im),
                    Unary::Log => |a, out| through(a, out, complex_math::log),
                    Unary::LogPlusOne => |a, out| through(a, out, complex_math::log_plus_one),
                    Unary::Logistic => |a, out| {
                        through(a, out, |z| {
                            double::quotient(1.0.into(), complex_math::exp(-z) + 1.0)
                        });
                    },
                    Unary::Negate => |a, out| map(a, out, |z: Number| -z),
                    Unary::Real => |a, out| map(a, out, |z: Number| z.re),
                    Unary::Rsqrt => |a, out| {
                        through(a, out, |z| {
                            double::quotient(1.0.into(), complex_math::sqrt(z))
                        });
                    },
                    Unary::Sign => |a, out| through(a, out, complex_math::sign),
                    Unary::Sine => |a, out| through(a, out, complex_math::sine),
                    Unary::Sqrt => |a, out| through(a, out, complex_math::sqrt),
                    Unary::Tan => |a, out| through(a, out, complex_math::tan),
                    Unary::Tanh => |a, out| through(a, out, complex_math::tanh),
                    _ => return None,
                })
            }

            pub(super) fn real_part_to(to: DType) -> Option<UnaryKernel> {
                if to == DType::Bool {
                    return Some(|a, out| {
                        map(a, out, |z: Number| Bool::from(z != Number::default()));
                    });
                }
                with_element!(
                    to,
                    T => Some(|a, out| {
                        map(a, out, |z: Number| <$part as Convert<T>>::convert(z.re));
                    }),
                    _ => None
                )
            }

            /// Applies a function of wide numbers and rounds.
            fn through(
                a: &[u8],
                out: &mut [u8],
                f: impl Fn(Complex<f64>) -> Complex<f64>,
            ) {
                map(a, out, |z: Number| rounded(f(widened(z))));
            }

            fn widened(z: Number) -> Complex<f64> {
                Complex::new(z.re.convert(), z.im.convert())
            }

            fn rounded(z: Complex<f64>) -> Number {
                Number::new(z.re.convert(), z.im.convert())
            }

            pub(super) fn binary(op: Binary) -> Option<BinaryKernel> {
                Some(match op {
                    Binary::Add => |a, b, out| zip(a, b, out, |a: Number, b| a + b),
                    Binary::Atan2 => |a, b, out| {
                        zip(a, b, out, |y: Number, x| {
                            rounded(complex_math::atan2(widened(y), widened(x)))
                        });
                    },
                    Binary::Divide => |a, b, out| zip(a, b, out, quotient),
                    Binary::Maximum => |a, b, out| {
                        zip(a, b, out, |a: Number, b| if precedes(a, b) { b } else { a });
                    },
                    Binary::Minimum => |a, b, out| {
                        zip(a, b, out, |a: Number, b| if precedes(b, a) { b } else { a });
                    },
                    Binary::Multiply => |a, b, out| zip(a, b, out, |a: Number, b| a * b),
                    Binary::Power => |a, b, out| {
                        zip(a, b, out, |a: Number, b| {
                            rounded(complex_math::power(widened(a), widened(b)))
                        });
                    },
                    Binary::Subtract => |a, b, out| zip(a, b, out, |a: Number, b| a - b),
                    _ => return None,
                })
            }

            /// Whether `a` comes before `b` in lexicographic order.
            fn precedes(a: Number, b: Number) -> bool {
                (a.re, a.im) < (b.re, b.im)
            }

            pub(super) fn compare(direction: Direction) -> Option<BinaryKernel> {
                Some(match direction {
                    Direction::Eq => |a, b, out| {
                        zip(a, b, out, |a: Number, b| Bool::from(a == b));
                    },
                    Direction::Ne => |a, b, out| {
                        zip(a, b, out, |a: Number, b| Bool::from(a != b));
                    },
                    _ => return None,
                })
            }

            /// Smith's quotient, with what C's annex G makes of one that is no number.
            pub(super) fn quotient(a: Number, b: Number) -> Number {
                let quotient = if b.re.abs() >= b.im.abs() {
                    let ratio = b.im / b.re;
                    let scale = b.re + b.im * ratio;
                    Number::new((a.re + a.im * ratio) / scale, (a.im - a.re * ratio) / scale)
                } else {
                    let ratio = b.re / b.im;
                    let scale = b.re * ratio + b.im;
                    Number::new((a.re * ratio + a.im) / scale, (a.im * ratio - a.re) / scale)
                };
                if !(quotient.re.is_nan() && quotient.im.is_nan()) {
                    return quotient;
                }
                let infinite = |z: Number| z.re.is_infinite() || z.im.is_infinite();
                let finite = |z: Number| z.re.is_finite() && z.im.is_finite();
                let unit = |x: $part| {
                    $part::copysign(if x.is_infinite() { 1.0 } else { 0.0 }, x)
                };
                let units = |z: Number| Number::new(unit(z.re), unit(z.im));
                let (a, b, scale) = if b.re == 0.0 && b.im == 0.0 {
                    let infinity = $part::INFINITY.copysign(b.re);
                    return Number::new(infinity * a.re, infinity * a.im);
                } else if infinite(a) && finite(b) {
                    (units(a), b, $part::INFINITY)
                } else if infinite(b) && finite(a) {
                    (a, units(b), 0.0)
                } else {
                    return quotient;
                };
                Number::new(
                    scale * (a.re * b.re + a.im * b.im),
                    scale * (a.im * b.re - a.re * b.im),
                )
            }
        }
    )*};
}

complex! { single: f32; double: f64; }

#[cfg(test)]
mod tests {
    use bytemuck::{Pod, cast_slice, cast_slice_mut};

    use super::*;

    fn run1<A: Pod, R: Pod + Default>(kernel: Option<UnaryKernel>, a: &[A]) -> Vec<R> {
        let mut out = vec![R::default(); a.len()];
        kernel.unwrap()(cast_slice(a), cast_slice_mut(&mut out));
        out
    }

    fn run2<A: Pod, R: Pod + Default>(kernel: Option<BinaryKernel>, a: &[A], b: &[A]) -> Vec<R> {
        let mut out = vec![R::default(); a.len()];
        kernel.unwrap()(cast_slice(a), cast_slice(b), cast_slice_mut(&mut out));
        out
    }

    /// notes/pains.md N21.
    #[test]
    fn an_infinite_part_makes_the_absolute_value_infinite() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let values = [(inf, nan), (nan, inf), (-inf, nan), (nan, -inf), (3.0, -4.0)];
        let values = values.map(|(re, im)| Complex::<f64>::new(re, im));
        let wide: Vec<f64> = run1(unary(Unary::Abs, DType::C128), &values);
        assert_eq!(wide, [inf, inf, inf, inf, 5.0]);
        let values: Vec<Complex<f32>> = run1(convert(DType::C128, DType::C64), &values);
        let narrow: Vec<f32> = run1(unary(Unary::Abs, DType::C64), &values);
        assert_eq!(narrow, [f32::INFINITY, f32::INFINITY, f32::INFINITY, f32::INFINITY, 5.0]);
    }

    #[test]
    fn arithmetic_is_that_of_the_textbook() {
        let a = [Complex::<f32>::new(1.0, 2.0), Complex::new(-3.0, 0.5)];
        let b = [Complex::<f32>::new(3.0, -1.0), Complex::new(0.0, 2.0)];
        let apply = |op| run2::<_, Complex<f32>>(binary(op, DType::C64), &a, &b);
        assert_eq!(apply(Binary::Add), [Complex::new(4.0, 1.0), Complex::new(-3.0, 2.5)]);
        assert_eq!(apply(Binary::Subtract), [Complex::new(-2.0, 3.0), Complex::new(-3.0, -1.5)]);
        assert_eq!(apply(Binary::Multiply), [Complex::new(5.0, 5.0), Complex::new(-1.0, -6.0)]);
        let quotients = apply(Binary::Divide);
        assert!((quotients[0] - Complex::new(0.1, 0.7)).norm() < 1e-7, "{quotients:?}");
        assert_eq!(quotients[1], Complex::new(0.25, 1.5));
        let log: Vec<Complex<f32>> = run1(unary(Unary::Log, DType::C64), &a);
        let back: Vec<Complex<f32>> = run1(unary(Unary::Exponential, DType::C64), &log);
        for (back, a) in back.iter().zip(&a) {
            assert!((back - a).norm() < 1e-6, "{back} instead of {a}");
        }
        assert_eq!(run1::<_, f32>(unary(Unary::Imag, DType::C64), &a), [2.0, 0.5]);
        assert_eq!(run1::<_, f32>(unary(Unary::Real, DType::C64), &a), [1.0, -3.0]);
    }

    #[test]
    fn quotients_neither_overflow_early_nor_lose_zeros_and_infinities() {
        let inf = f64::INFINITY;
        let number = Complex::<f64>::new;
        let a = [number(1e300, 1e300), number(1.0, -2.0), number(1.0, -2.0), number(f64::NAN, inf)];
        let b = [number(1e300, 1e300), number(0.0, 0.0), number(inf, -inf), number(-2.5, 3.25)];
        let quotients: Vec<Complex<f64>> = run2(binary(Binary::Divide, DType::C128), &a, &b);
        let expected = [number(1.0, 0.0), number(inf, -inf), number(0.0, 0.0), number(inf, -inf)];
        assert_eq!(quotients, expected);
    }

    #[test]
    fn extremes_are_by_the_real_part_and_then_by_the_imaginary_one() {
        let number = Complex::<f32>::new;
        let a = [number(1.0, 5.0), number(1.0, -5.0), number(-2.0, 9.0)];
        let b = [number(2.0, 0.0), number(1.0, -4.0), number(-3.0, 10.0)];
        let greater: Vec<Complex<f32>> = run2(binary(Binary::Maximum, DType::C64), &a, &b);
        assert_eq!(greater, [b[0], b[1], a[2]]);
        let less: Vec<Complex<f32>> = run2(binary(Binary::Minimum, DType::C64), &a, &b);
        assert_eq!(less, [a[0], a[1], b[2]]);
        // The angle of a real point is that of real numbers.
        let (y, x) = ([number(1.0, 0.0), number(1.0, 0.0)], [number(-1.0, 0.0), number(2.0, 0.0)]);
        let angles: Vec<Complex<f32>> = run2(binary(Binary::Atan2, DType::C64), &y, &x);
        for (angle, expected) in angles.iter().zip([1.0_f32.atan2(-1.0), 1.0_f32.atan2(2.0)]) {
            assert!((angle - expected).norm() < 1e-6, "{angle} for {expected}");
        }
    }

    #[test]
    fn parts_are_put_together_and_only_equality_compares() {
        let (re, im) = ([1.0_f32, 2.0], [3.0_f32, f32::NAN]);
        let numbers: Vec<Complex<f32>> = run2(from_parts(DType::F32), &re, &im);
        assert_eq!(numbers[0], Complex::new(1.0, 3.0));
        assert_eq!(run2::<_, u8>(compare(Direction::Eq, DType::C64), &numbers, &numbers), [1, 0]);
        assert_eq!(run2::<_, u8>(compare(Direction::Ne, DType::C64), &numbers, &numbers), [0, 1]);
        assert!(compare(Direction::Lt, DType::C64).is_none());
        let converted: Vec<Complex<f64>> = run1(convert(DType::S32, DType::C128), &[-7_i32]);
        assert_eq!(converted, [Complex::new(-7.0, 0.0)]);
        let numbers =
            [Complex::new(-2.75_f32, 9.0), Complex::new(0.0, 0.5), Complex::new(0.0, -0.0)];
        assert_eq!(run1::<_, f64>(convert(DType::C64, DType::F64), &numbers), [-2.75, 0.0, 0.0]);
        assert_eq!(run1::<_, i16>(convert(DType::C64, DType::S16), &numbers), [-2, 0, 0]);
        assert_eq!(run1::<_, u8>(convert(DType::C64, DType::Bool), &numbers), [1, 1, 0]);
        assert!(unary(Unary::Floor, DType::C64).is_none());
    }
}
