//! `compare`: ordinary, where a NaN is unordered, and by the total order of IEEE 754.

use super::complex;
use super::element::{Bool, Float, with_element, with_float};
use super::elementwise::{BinaryKernel, zip};
use crate::ifrt::DType;
use crate::stablehlo::op::{CompareType, Direction};

/// The loop of a comparison, if it exists for the element type.
pub(crate) fn compare(
    direction: Direction,
    compare_type: Option<CompareType>,
    dtype: DType,
) -> Option<BinaryKernel> {
    if dtype.is_complex() {
        complex::compare(direction, dtype)
    } else if compare_type == Some(CompareType::TotalOrder) && dtype.is_float() {
        with_float!(dtype, T => Some(total::<T>(direction)), _ => None)
    } else {
        with_element!(dtype, T => Some(ordinary::<T>(direction)), _ => None)
    }
}

fn ordinary<T: bytemuck::Pod + PartialOrd>(direction: Direction) -> BinaryKernel {
    macro_rules! by {
        ($operator:tt) => {
            |a, b, out| {
                zip(a, b, out, #[inline(always)] |a: T, b| Bool::from(a $operator b));
            }
        };
    }
    match direction {
        Direction::Eq => by!(==),
        Direction::Ne => by!(!=),
        Direction::Ge => by!(>=),
        Direction::Gt => by!(>),
        Direction::Le => by!(<=),
        Direction::Lt => by!(<),
    }
}

fn total<T: Float>(direction: Direction) -> BinaryKernel {
    fn by<T: Float>(a: &[u8], b: &[u8], out: &mut [u8], f: impl Fn(i64, i64) -> bool) {
        zip(
            a,
            b,
            out,
            #[inline(always)]
            |a: T, b: T| Bool::from(f(a.total_order(), b.total_order())),
        );
    }
    match direction {
        Direction::Eq => |a, b, out| by::<T>(a, b, out, |a, b| a == b),
        Direction::Ne => |a, b, out| by::<T>(a, b, out, |a, b| a != b),
        Direction::Ge => |a, b, out| by::<T>(a, b, out, |a, b| a >= b),
        Direction::Gt => |a, b, out| by::<T>(a, b, out, |a, b| a > b),
        Direction::Le => |a, b, out| by::<T>(a, b, out, |a, b| a <= b),
        Direction::Lt => |a, b, out| by::<T>(a, b, out, |a, b| a < b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(direction: Direction, ty: Option<CompareType>, a: &[f32], b: &[f32]) -> Vec<u8> {
        let mut out = vec![9; a.len()];
        let kernel = compare(direction, ty, DType::F32).unwrap();
        kernel(bytemuck::cast_slice(a), bytemuck::cast_slice(b), &mut out);
        out
    }

    #[test]
    fn a_nan_is_unordered_unless_the_order_is_total() {
        let (a, b) = ([f32::NAN, -0.0, 1.0], [f32::NAN, 0.0, f32::NAN]);
        assert_eq!(run(Direction::Eq, None, &a, &b), [0, 1, 0]);
        assert_eq!(run(Direction::Ne, None, &a, &b), [1, 0, 1]);
        assert_eq!(run(Direction::Lt, Some(CompareType::Float), &a, &b), [0, 0, 0]);
        let total = Some(CompareType::TotalOrder);
        assert_eq!(run(Direction::Eq, total, &a, &b), [1, 0, 0]);
        assert_eq!(run(Direction::Lt, total, &a, &b), [0, 1, 1]);
        assert_eq!(run(Direction::Ge, total, &a, &b), [1, 0, 0]);
    }
}
