//! Loops over one tile of elements, one per operation and element type.
//!
//! A kernel is a plain function over byte slices of equally many elements, chosen when a program
//! is compiled, so that running it looks at no type. Slices start on an element boundary.

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use num_complex::Complex;

use super::element::{Bitwise, Bool, Element, Float, Integer};
use super::element::{with_element, with_float, with_integer, with_width};
use super::math::Math;
use super::simd::vectorised;
use super::{complex, narrow};
use crate::ifrt::DType;
use crate::stablehlo::op::{Binary, Unary};

/// A loop of one operand.
pub(crate) type UnaryKernel = fn(&[u8], &mut [u8]);
/// A loop of two operands.
pub(crate) type BinaryKernel = fn(&[u8], &[u8], &mut [u8]);
/// A loop of three operands.
pub(crate) type TernaryKernel = fn(&[u8], &[u8], &[u8], &mut [u8]);

/// Applies `f` to every element.
#[inline(always)]
pub(super) fn map<A: Pod, R: Pod>(a: &[u8], out: &mut [u8], f: impl Fn(A) -> R) {
    let (a, out) = (cast_slice::<_, A>(a), cast_slice_mut::<_, R>(out));
    vectorised(
        #[inline(always)]
        || {
            for (out, &a) in out.iter_mut().zip(a) {
                *out = f(a);
            }
        },
    );
}

/// Applies `f` to every pair of elements.
#[inline(always)]
pub(super) fn zip<A: Pod, R: Pod>(a: &[u8], b: &[u8], out: &mut [u8], f: impl Fn(A, A) -> R) {
    let (a, b) = (cast_slice::<_, A>(a), cast_slice::<_, A>(b));
    let out = cast_slice_mut::<_, R>(out);
    vectorised(
        #[inline(always)]
        || {
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = f(a, b);
            }
        },
    );
}

/// The loop of a one-operand operation, if it exists for the element type.
pub(crate) fn unary(op: Unary, dtype: DType) -> Option<UnaryKernel> {
    if dtype.is_complex() {
        return complex::unary(op, dtype);
    }
    match op {
        Unary::Abs | Unary::Negate | Unary::Sign => {
            with_element!(dtype, T => arithmetic_unary::<T>(op), _ => None)
        }
        Unary::CountLeadingZeros if narrow::leading_zeros(dtype).is_some() => {
            narrow::leading_zeros(dtype)
        }
        Unary::Not if dtype == DType::Bool => Some(|a, out| map(a, out, Bool::not)),
        Unary::Not | Unary::Popcnt | Unary::CountLeadingZeros => {
            with_integer!(dtype, T => integer_unary::<T>(op), _ => None)
        }
        Unary::Real => with_float!(dtype, T => Some(|a, out| map(a, out, |x: T| x)), _ => None),
        Unary::Imag => {
            with_float!(dtype, T => Some(|a, out| map(a, out, |_: T| T::default())), _ => None)
        }
        _ => with_float!(dtype, T => float_unary::<T>(op), _ => None),
    }
}

fn arithmetic_unary<T: Element>(op: Unary) -> Option<UnaryKernel> {
    Some(match op {
        Unary::Abs => |a, out| map(a, out, T::abs),
        Unary::Negate => |a, out| map(a, out, T::negate),
        Unary::Sign => |a, out| map(a, out, T::sign),
        _ => return None,
    })
}

fn integer_unary<T: Integer>(op: Unary) -> Option<UnaryKernel> {
    Some(match op {
        Unary::Not => |a, out| map(a, out, T::not),
        Unary::Popcnt => |a, out| map(a, out, T::count_ones),
        Unary::CountLeadingZeros => |a, out| map(a, out, T::leading_zeros),
        _ => return None,
    })
}

/// Applies a function of the compute type and rounds.
#[inline(always)]
fn through<T: Float>(a: &[u8], out: &mut [u8], f: impl Fn(T::Compute) -> T::Compute) {
    map(
        a,
        out,
        #[inline(always)]
        |x: T| T::rounded(f(x.compute())),
    );
}

/// Applies a function of an angle, and another one to the angles that are too great for it.
#[inline(always)]
fn angle<T: Float<Compute: Math>>(
    a: &[u8],
    out: &mut [u8],
    near: impl Fn(T::Compute) -> T::Compute,
    far: impl Fn(T::Compute) -> T::Compute,
) {
    through::<T>(a, out, near);
    let (a, out) = (cast_slice::<_, T>(a), cast_slice_mut::<_, T>(out));
    let any_far = vectorised(
        #[inline(always)]
        || a.iter().fold(false, |any, x| any | x.compute().is_far_angle()),
    );
    if any_far {
        for (out, x) in out.iter_mut().zip(a).filter(|(_, x)| x.compute().is_far_angle()) {
            *out = T::rounded(far(x.compute()));
        }
    }
}

fn float_unary<T: Float<Compute: Math>>(op: Unary) -> Option<UnaryKernel> {
    Some(match op {
        Unary::Cbrt => |a, out| through::<T>(a, out, Math::cbrt),
        Unary::Ceil => |a, out| through::<T>(a, out, Math::ceil),
        Unary::Cosine => |a, out| angle::<T>(a, out, Math::cosine, Math::cosine_of_far),
        Unary::Exponential => |a, out| through::<T>(a, out, Math::exponential),
        Unary::ExponentialMinusOne => |a, out| through::<T>(a, out, Math::exponential_minus_one),
        Unary::Floor => |a, out| through::<T>(a, out, Math::floor),
        Unary::IsFinite => |a, out| {
            map(
                a,
                out,
                #[inline(always)]
                |x: T| Bool::from(x.compute().is_finite()),
            );
        },
        Unary::Log => |a, out| through::<T>(a, out, Math::log),
        Unary::LogPlusOne => |a, out| through::<T>(a, out, Math::log_plus_one),
        Unary::Logistic => |a, out| through::<T>(a, out, Math::logistic),
        Unary::RoundNearestAfz => |a, out| through::<T>(a, out, Math::round_half_away),
        Unary::RoundNearestEven => |a, out| through::<T>(a, out, Math::round_half_even),
        Unary::Rsqrt => |a, out| through::<T>(a, out, Math::rsqrt),
        Unary::Sine => |a, out| angle::<T>(a, out, Math::sine, Math::sine_of_far),
        Unary::Sqrt => |a, out| through::<T>(a, out, Math::sqrt),
        Unary::Tan => |a, out| angle::<T>(a, out, Math::tan, Math::tan_of_far),
        Unary::Tanh => |a, out| through::<T>(a, out, Math::tanh),
        _ => return None,
    })
}

/// The loop of a two-operand operation, if it exists for the element type.
pub(crate) fn binary(op: Binary, dtype: DType) -> Option<BinaryKernel> {
    if dtype.is_complex() {
        return complex::binary(op, dtype);
    }
    match op {
        Binary::And | Binary::Or | Binary::Xor if dtype == DType::Bool => {
            bitwise_binary::<Bool>(op)
        }
        Binary::And | Binary::Or | Binary::Xor => {
            with_integer!(dtype, T => bitwise_binary::<T>(op), _ => None)
        }
        Binary::ShiftLeft | Binary::ShiftRightArithmetic | Binary::ShiftRightLogical => {
            with_integer!(dtype, T => integer_binary::<T>(op), _ => None)
        }
        Binary::Atan2 => with_float!(dtype, T => Some(atan2::<T>), _ => None),
        Binary::Complex => complex::from_parts(dtype),
        Binary::Add
        | Binary::Divide
        | Binary::Maximum
        | Binary::Minimum
        | Binary::Multiply
        | Binary::Power
        | Binary::Remainder
        | Binary::Subtract => with_element!(dtype, T => arithmetic_binary::<T>(op), _ => None),
    }
}

fn arithmetic_binary<T: Element>(op: Binary) -> Option<BinaryKernel> {
    Some(match op {
        Binary::Add => |a, b, out| zip(a, b, out, T::add),
        Binary::Divide => |a, b, out| zip(a, b, out, T::divide),
        Binary::Maximum => |a, b, out| zip(a, b, out, T::maximum),
        Binary::Minimum => |a, b, out| zip(a, b, out, T::minimum),
        Binary::Multiply => |a, b, out| zip(a, b, out, T::multiply),
        Binary::Power => |a, b, out| zip(a, b, out, T::power),
        Binary::Remainder => |a, b, out| zip(a, b, out, T::remainder),
        Binary::Subtract => |a, b, out| zip(a, b, out, T::subtract),
        _ => return None,
    })
}

fn atan2<T: Float<Compute: Math>>(a: &[u8], b: &[u8], out: &mut [u8]) {
    zip(
        a,
        b,
        out,
        #[inline(always)]
        |y: T, x: T| T::rounded(Math::atan2(y.compute(), x.compute())),
    );
}

fn bitwise_binary<T: Bitwise>(op: Binary) -> Option<BinaryKernel> {
    Some(match op {
        Binary::And => |a, b, out| zip(a, b, out, T::and),
        Binary::Or => |a, b, out| zip(a, b, out, T::or),
        Binary::Xor => |a, b, out| zip(a, b, out, T::xor),
        _ => return None,
    })
}

fn integer_binary<T: Integer>(op: Binary) -> Option<BinaryKernel> {
    Some(match op {
        Binary::ShiftLeft => |a, b, out| zip(a, b, out, T::shift_left),
        Binary::ShiftRightArithmetic => |a, b, out| zip(a, b, out, T::shift_right_arithmetic),
        Binary::ShiftRightLogical => |a, b, out| zip(a, b, out, T::shift_right_logical),
        _ => return None,
    })
}

/// The loop of `select`: predicate, on true, on false.
pub(crate) fn select(dtype: DType) -> TernaryKernel {
    with_width!(dtype.size_bytes(), T => |predicate, on_true, on_false, out| {
        let (on_true, on_false) = (cast_slice::<_, T>(on_true), cast_slice::<_, T>(on_false));
        let out = cast_slice_mut::<_, T>(out);
        vectorised(#[inline(always)] || {
            let operands = predicate.iter().zip(on_true).zip(on_false);
            for (out, ((&predicate, &on_true), &on_false)) in out.iter_mut().zip(operands) {
                *out = if predicate != 0 { on_true } else { on_false };
            }
        });
    })
}

/// The loop that changes nothing, for elements of `width` bytes.
pub(crate) fn copy(width: usize) -> UnaryKernel {
    with_width!(width, T => |a, out| map(a, out, |x: T| x))
}

/// The loop of `clamp`: minimum, operand, maximum.
pub(crate) fn clamp(dtype: DType) -> Option<TernaryKernel> {
    with_element!(
        dtype,
        T => Some(|low, operand, high, out| {
            let (low, high) = (cast_slice::<_, T>(low), cast_slice::<_, T>(high));
            let (operand, out) = (cast_slice::<_, T>(operand), cast_slice_mut::<_, T>(out));
            vectorised(#[inline(always)] || {
                let operands = operand.iter().zip(low).zip(high);
                for (out, ((&x, &low), &high)) in out.iter_mut().zip(operands) {
                    *out = Element::minimum(Element::maximum(x, low), high);
                }
            });
        }),
        _ => None
    )
}

/// The loop that writes 0, 1, 2, … starting anywhere, if the type can count.
pub(crate) fn count(dtype: DType) -> Option<fn(usize, &mut [u8])> {
    fn integers<T: Integer>(start: usize, out: &mut [u8]) {
        for (i, out) in cast_slice_mut::<_, T>(out).iter_mut().enumerate() {
            *out = T::from_index(start + i);
        }
    }
    match dtype {
        DType::F32 => Some(|start, out| floats(start, out, |x| x as f32)),
        DType::F64 => Some(|start, out| floats(start, out, |x| x as f64)),
        DType::F16 => Some(|start, out| floats(start, out, |x| half::f16::from_f32(x as f32))),
        DType::BF16 => Some(|start, out| floats(start, out, |x| half::bf16::from_f32(x as f32))),
        DType::C64 => Some(|start, out| floats(start, out, |x| Complex::from(x as f32))),
        DType::C128 => Some(|start, out| floats(start, out, |x| Complex::from(x as f64))),
        dtype => with_integer!(dtype, T => Some(integers::<T>), _ => narrow::count(dtype)),
    }
}

fn floats<T: Pod>(start: usize, out: &mut [u8], f: impl Fn(usize) -> T) {
    for (i, out) in cast_slice_mut(out).iter_mut().enumerate() {
        *out = f(start + i);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run2<T: Pod + Default>(kernel: BinaryKernel, a: &[T], b: &[T]) -> Vec<T> {
        let mut out = vec![T::default(); a.len()];
        kernel(cast_slice(a), cast_slice(b), cast_slice_mut(&mut out));
        out
    }

    /// N17: vectors and what is left of them shift alike.
    #[test]
    fn shifts_agree_at_every_length() {
        for n in 1..=9_i32 {
            let a: Vec<i32> = (0..n).map(|i| -7 - i).collect();
            for by in [31, 32, 33, -1] {
                let b = vec![by; a.len()];
                let left = run2(binary(Binary::ShiftLeft, DType::S32).unwrap(), &a, &b);
                let expected: Vec<i32> =
                    a.iter().map(|&x| if by == 31 { x << 31 } else { 0 }).collect();
                assert_eq!(left, expected, "{n} by {by}");
                let right = run2(binary(Binary::ShiftRightArithmetic, DType::S32).unwrap(), &a, &b);
                assert_eq!(right, vec![-1; a.len()], "{n} by {by}");
                let logical = run2(binary(Binary::ShiftRightLogical, DType::S32).unwrap(), &a, &b);
                assert_eq!(logical, vec![i32::from(by == 31); a.len()], "{n} by {by}");
            }
        }
    }

    #[test]
    fn clamp_keeps_nan_and_lets_the_upper_bound_win() {
        let kernel = clamp(DType::F32).unwrap();
        let (low, x, high) =
            ([1.0_f32; 4], [0.5_f32, 7.0, 2.0, f32::NAN], [3.0_f32, 3.0, 0.0, 3.0]);
        let mut out = [0.0_f32; 4];
        kernel(cast_slice(&low), cast_slice(&x), cast_slice(&high), cast_slice_mut(&mut out));
        assert_eq!(out[..3], [1.0, 3.0, 0.0]);
        assert!(out[3].is_nan());
    }

    #[test]
    fn counting_wraps_in_short_integers() {
        let mut out = [0_u8; 4];
        count(DType::S8).unwrap()(126, &mut out);
        assert_eq!(cast_slice::<_, i8>(&out), [126, 127, -128, -127]);
        count(DType::U8).unwrap()(254, &mut out);
        assert_eq!(out, [254, 255, 0, 1]);
    }

    #[test]
    fn every_operation_exists_for_floats_where_it_has_a_meaning() {
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            for op in [Unary::Abs, Unary::Cbrt, Unary::Exponential, Unary::Tanh, Unary::Sign] {
                assert!(unary(op, dtype).is_some(), "{op:?} {dtype}");
            }
            assert!(unary(Unary::Popcnt, dtype).is_none());
            assert!(binary(Binary::ShiftLeft, dtype).is_none());
        }
        assert!(unary(Unary::Exponential, DType::S32).is_none());
        assert!(binary(Binary::Remainder, DType::C64).is_none());
    }
}
