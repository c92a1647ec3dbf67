//! Whether values are what is expected, as the reference interpreter of StableHLO compares them.

use crate::ifrt::DType;
use crate::stablehlo::number::float_from_bits;
use crate::stablehlo::op::Expectation;
use crate::stablehlo::{TensorType, element};

/// Where two tensors of one type differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The index of the first element that differs.
    index: Vec<usize>,
    /// What was found there.
    found: String,
    /// What was expected there.
    expected: String,
    /// How far apart they are, where that is what was asked for.
    distance: String,
    /// How many elements differ, of how many.
    count: (usize, usize),
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { index, found, expected, distance, count: (some, all) } = self;
        write!(f, "element {index:?} is {found}, expected {expected}{distance}")?;
        write!(f, " ({some} of {all} elements differ)")
    }
}

/// The first difference between two tensors, as bytes, by the measure of an expectation.
pub(super) fn difference(
    expectation: &Expectation,
    ty: &TensorType,
    found: &[u8],
    expected: &[u8],
) -> Option<Difference> {
    let width = ty.dtype.size_bytes();
    let pairs = || found.chunks_exact(width).zip(expected.chunks_exact(width));
    let differs = |a: &[u8], b: &[u8]| !agree(expectation, ty.dtype, a, b);
    let first = pairs().position(|(a, b)| differs(a, b))?;
    let count = pairs().filter(|(a, b)| differs(a, b)).count();
    let (a, b) = pairs().nth(first)?;
    let distance = match expectation {
        Expectation::Close { least, most } => {
            let steps = ulp_difference(ty.dtype, a, b);
            let steps =
                if steps == u64::MAX { "infinitely many".to_owned() } else { steps.to_string() };
            format!(", {steps} ulps apart where {least} to {most} are expected")
        }
        Expectation::AlmostEq { tolerance } | Expectation::AlmostEqConst { tolerance, .. } => {
            format!(" within {tolerance}")
        }
        _ => String::new(),
    };
    Some(Difference {
        index: index(first, ty.shape.dims()),
        found: shown(a, ty.dtype),
        expected: shown(b, ty.dtype),
        distance,
        count: (count, ty.shape.num_elements()),
    })
}

/// An element as text: floats that the text form of StableHLO has no decimal for by their names.
fn shown(bytes: &[u8], dtype: DType) -> String {
    let text = element(bytes, dtype);
    match parts(dtype, bytes).as_slice() {
        [value] if !value.is_finite() => format!("{value} ({text})"),
        _ => text,
    }
}

/// The index of the element at `position` in row-major order.
fn index(position: usize, dims: &[usize]) -> Vec<usize> {
    let mut rest = position;
    let mut index: Vec<usize> = dims
        .iter()
        .rev()
        .map(|&dim| {
            let at = rest % dim.max(1);
            rest /= dim.max(1);
            at
        })
        .collect();
    index.reverse();
    index
}

fn agree(expectation: &Expectation, dtype: DType, a: &[u8], b: &[u8]) -> bool {
    match expectation {
        Expectation::Eq | Expectation::EqConst(_) | Expectation::SerializedEq { .. } => {
            equal(dtype, a, b)
        }
        Expectation::AlmostEq { tolerance } | Expectation::AlmostEqConst { tolerance, .. } => {
            let pairs = parts(dtype, a).into_iter().zip(parts(dtype, b));
            pairs.into_iter().all(|(a, b)| almost_equal(a, b, *tolerance))
        }
        Expectation::Close { least, most } => {
            (*least..=*most).contains(&ulp_difference(dtype, a, b))
        }
    }
}

/// Equal as numbers, so that zeros of both signs are, or the very same bits, so that a NaN is.
fn equal(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    if dtype.is_float() || dtype.is_complex() {
        return a == b || parts(dtype, a) == parts(dtype, b);
    }
    // The unused bits of a narrow integer mean nothing.
    let used = u8::try_from((1_u16 << dtype.bit_width().min(8)) - 1).unwrap_or(u8::MAX);
    a.iter().zip(b).all(|(a, b)| a & used == b & used)
}

fn almost_equal(a: f64, b: f64, tolerance: f64) -> bool {
    a == b
        || (a.is_nan() && b.is_nan())
        || (a.is_finite() && b.is_finite() && (a - b).abs() <= tolerance)
}

/// How many floats lie between two, zeros of both signs being one; at most those of the parts of
/// complex numbers. Two NaNs are the same; what is not finite is far from anything else.
fn ulp_difference(dtype: DType, a: &[u8], b: &[u8]) -> u64 {
    let part = real_type(dtype);
    let width = part.size_bytes();
    let differences =
        a.chunks_exact(width).zip(b.chunks_exact(width)).map(|(a, b)| steps(part, a, b));
    differences.max().unwrap_or(0)
}

fn steps(dtype: DType, a: &[u8], b: &[u8]) -> u64 {
    if a == b {
        return 0;
    }
    let values = [a, b].map(|bytes| float(dtype, bytes));
    if values.iter().all(|value| value.is_nan()) {
        return 0;
    }
    if !values.iter().all(|value| value.is_finite()) {
        return u64::MAX;
    }
    let [a, b] = [a, b].map(|bytes| {
        let bits = bits(bytes);
        // Without a sign every bit is of the magnitude.
        let has_sign = dtype != DType::F8E8M0FNU;
        let sign = if has_sign { 1_u64 << (dtype.bit_width() - 1) } else { 0 };
        (bits & sign != 0, bits & !sign & mask(dtype))
    });
    if a.0 == b.0 { a.1.abs_diff(b.1) } else { a.1.saturating_add(b.1) }
}

fn mask(dtype: DType) -> u64 {
    u64::MAX >> (64 - dtype.bit_width().min(64))
}

fn real_type(dtype: DType) -> DType {
    match dtype {
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        real => real,
    }
}

/// A float, or the parts of a complex number.
fn parts(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    let part = real_type(dtype);
    if !part.is_float() {
        return Vec::new();
    }
    bytes.chunks_exact(part.size_bytes()).map(|bytes| float(part, bytes)).collect()
}

fn float(dtype: DType, bytes: &[u8]) -> f64 {
    let bits = bits(bytes) & mask(dtype);
    float_from_bits(i128::from(bits), dtype).unwrap_or(f64::NAN)
}

/// Little-endian bytes, at most eight, as a number.
fn bits(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ifrt::Shape;

    fn f32s(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn ulps(a: f32, b: f32) -> u64 {
        ulp_difference(DType::F32, &a.to_le_bytes(), &b.to_le_bytes())
    }

    #[test]
    fn ulps_are_counted_across_zero() {
        assert_eq!(ulps(1.0, 1.0_f32.next_up()), 1);
        assert_eq!(ulps(0.0, -0.0), 0);
        let least = f32::from_bits(1);
        assert_eq!(ulps(-least, least), 2);
        assert_eq!(ulps(f32::MAX, f32::INFINITY), u64::MAX);
        assert_eq!(ulps(f32::INFINITY, f32::INFINITY), 0);
        assert_eq!(ulps(f32::NAN, -f32::NAN), 0);
        assert_eq!(ulps(f32::NAN, 1.0), u64::MAX);
        // 1 and the next number of f8E4M3FN; the parts of complex numbers, the farther one.
        assert_eq!(ulp_difference(DType::F8E4M3FN, &[0x38], &[0x39]), 1);
        let (a, b) = (f32s(&[1.0, 2.0]), f32s(&[1.0_f32.next_up(), 2.0]));
        assert_eq!(ulp_difference(DType::C64, &a, &b), 1);
    }

    #[test]
    fn equality_is_of_numbers_or_of_bits() {
        let same = |dtype, a: &[u8], b: &[u8]| agree(&Expectation::Eq, dtype, a, b);
        assert!(same(DType::F32, &f32s(&[0.0]), &f32s(&[-0.0])));
        assert!(same(DType::F32, &f32s(&[f32::NAN]), &f32s(&[f32::NAN])));
        assert!(!same(DType::F32, &f32s(&[f32::NAN]), &f32s(&[-f32::NAN])));
        assert!(same(DType::S4, &[0xFF], &[0x0F]));
        assert!(!same(DType::S4, &[0x0E], &[0x0F]));
        assert!(!same(DType::U16, &[0, 1], &[0, 2]));
    }

    #[test]
    fn tolerances_are_absolute_and_infinities_have_none() {
        let near = |a: f64, b: f64| almost_equal(a, b, 1e-4);
        assert!(near(100.0, 100.00009) && !near(100.0, 100.00011));
        assert!(near(0.0, 5e-5) && near(f64::NAN, f64::NAN) && near(f64::INFINITY, f64::INFINITY));
        assert!(!near(f64::INFINITY, f64::MAX) && !near(f64::NAN, 0.0));
        assert!(!almost_equal(f64::INFINITY, -f64::INFINITY, f64::INFINITY));
    }

    #[test]
    fn a_difference_names_its_place() {
        let ty = TensorType::new(DType::F32, Shape::new([2, 3]).unwrap());
        let expected = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        let mut found = expected;
        (found[4], found[5]) = (4.5, f32::INFINITY);
        let difference = |expectation| {
            difference(expectation, &ty, &f32s(&found), &f32s(&expected)).unwrap().to_string()
        };
        assert_eq!(
            difference(&Expectation::Eq),
            "element [1, 1] is 4.5, expected 4.0 (2 of 6 elements differ)"
        );
        assert_eq!(
            difference(&Expectation::AlmostEq { tolerance: 0.6 }),
            "element [1, 2] is inf (0x7F800000), expected 5.0 within 0.6 (1 of 6 elements differ)"
        );
        assert_eq!(
            difference(&Expectation::Close { least: 0, most: 1 }),
            "element [1, 1] is 4.5, expected 4.0, 1048576 ulps apart where 0 to 1 are expected \
             (2 of 6 elements differ)"
        );
    }
}
