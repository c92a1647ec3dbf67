//! Operations that work element by element.

use super::Checked;
use super::check::Check;
use crate::ifrt::DType;
use crate::stablehlo::op::{Accuracy, AccuracyMode, Binary, CompareType, Unary};

/// The element types an operation takes.
#[derive(Clone, Copy)]
pub(super) struct Kinds {
    bool: bool,
    signed: bool,
    unsigned: bool,
    float: bool,
    complex: bool,
}

const NONE: Kinds =
    Kinds { bool: false, signed: false, unsigned: false, float: false, complex: false };
const INTEGER: Kinds = Kinds { signed: true, unsigned: true, ..NONE };
pub(super) const FLOAT: Kinds = Kinds { float: true, ..NONE };
pub(super) const INTEGER_OR_FLOAT: Kinds = Kinds { float: true, ..INTEGER };
pub(super) const FLOAT_OR_COMPLEX: Kinds = Kinds { complex: true, ..FLOAT };
const BOOL_OR_INTEGER: Kinds = Kinds { bool: true, ..INTEGER };
const SIGNED_NUMBER: Kinds = Kinds { signed: true, ..FLOAT_OR_COMPLEX };
pub(super) const NUMBER: Kinds = Kinds { unsigned: true, ..SIGNED_NUMBER };
pub(super) const BOOL_INTEGER_OR_FLOAT: Kinds = Kinds { float: true, ..BOOL_OR_INTEGER };
const ANY: Kinds = Kinds { bool: true, ..NUMBER };

impl Kinds {
    pub(super) fn contains(self, dtype: DType) -> bool {
        (self.bool && dtype == DType::Bool)
            || (self.signed && dtype.is_signed_integer())
            || (self.unsigned && dtype.is_unsigned_integer())
            || (self.float && dtype.is_float())
            || (self.complex && dtype.is_complex())
    }

    fn names(self) -> String {
        let names = [
            (self.bool, "booleans"),
            (self.signed, "signed integers"),
            (self.unsigned, "unsigned integers"),
            (self.float, "floats"),
            (self.complex, "complex numbers"),
        ];
        let names: Vec<&str> =
            names.into_iter().filter(|(is, _)| *is).map(|(_, name)| name).collect();
        names.join(", ")
    }
}

fn unary_kinds(unary: Unary) -> Kinds {
    match unary {
        Unary::Abs | Unary::Sign => SIGNED_NUMBER,
        Unary::Negate => NUMBER,
        Unary::Not => BOOL_OR_INTEGER,
        Unary::CountLeadingZeros | Unary::Popcnt => INTEGER,
        Unary::Ceil
        | Unary::Floor
        | Unary::IsFinite
        | Unary::RoundNearestAfz
        | Unary::RoundNearestEven => FLOAT,
        Unary::Cbrt
        | Unary::Cosine
        | Unary::Exponential
        | Unary::ExponentialMinusOne
        | Unary::Imag
        | Unary::Log
        | Unary::LogPlusOne
        | Unary::Logistic
        | Unary::Real
        | Unary::Rsqrt
        | Unary::Sine
        | Unary::Sqrt
        | Unary::Tan
        | Unary::Tanh => FLOAT_OR_COMPLEX,
    }
}

fn binary_kinds(binary: Binary) -> Kinds {
    match binary {
        Binary::Add | Binary::Maximum | Binary::Minimum | Binary::Multiply => ANY,
        Binary::And | Binary::Or | Binary::Xor => BOOL_OR_INTEGER,
        Binary::Atan2 => FLOAT_OR_COMPLEX,
        Binary::Complex => FLOAT,
        Binary::Divide | Binary::Power | Binary::Remainder | Binary::Subtract => NUMBER,
        Binary::ShiftLeft | Binary::ShiftRightArithmetic | Binary::ShiftRightLogical => INTEGER,
    }
}

/// Operand elements must be of these types.
pub(super) fn takes(check: &Check<'_>, kinds: Kinds, dtype: DType) -> Checked {
    check.require(kinds.contains(dtype), "I1", || {
        format!("the elements must be {}, found {dtype}", kinds.names())
    })
}

/// The type of the parts of a complex type.
pub(super) fn part(dtype: DType) -> DType {
    match dtype {
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        other => other,
    }
}

/// Tolerances are asked for by name, and none is negative.
fn accuracy(check: &Check<'_>, asked: &Accuracy) -> Checked {
    let Accuracy { mode, atol, rtol, ulps } = asked;
    let is_tolerance = |tolerance: f64| tolerance.is_finite() && tolerance >= 0.0;
    check.require(is_tolerance(*atol) && is_tolerance(*rtol) && *ulps >= 0, "", || {
        format!("a tolerance is not from 0 on: atol {atol}, rtol {rtol}, ulps {ulps}")
    })?;
    let has_tolerance = *atol > 0.0 || *rtol > 0.0 || *ulps > 0;
    check.require(*mode == AccuracyMode::Tolerance || !has_tolerance, "", || {
        format!("the accuracy {} has no tolerances", mode.name())
    })
}

/// One operand.
pub(super) fn unary(check: &Check<'_>, unary: Unary) -> Checked {
    check.counts(1, 1, 0)?;
    if let Some(asked) = &check.data.accuracy {
        accuracy(check, asked)?;
    }
    let operand = check.operand(0)?;
    takes(check, unary_kinds(unary), operand.dtype)?;
    check.result_shape(operand.shape.dims(), "C1")?;
    match unary {
        Unary::Abs | Unary::Imag | Unary::Real => check.result_dtype(part(operand.dtype), "C2"),
        Unary::IsFinite => check.result_dtype(DType::Bool, "O1"),
        _ => check.result_dtype(operand.dtype, "C1"),
    }
}

/// Two operands of one type.
pub(super) fn binary(check: &Check<'_>, binary: Binary) -> Checked {
    check.counts(2, 1, 0)?;
    let (lhs, rhs) = (check.operand(0)?, check.operand(1)?);
    takes(check, binary_kinds(binary), lhs.dtype)?;
    check.equal("type of the right operand", lhs, rhs, "C1")?;
    if binary != Binary::Complex {
        return check.equal("type of the result", lhs, check.result(0)?, "C1");
    }
    check.result_shape(lhs.shape.dims(), "C2")?;
    match lhs.dtype {
        DType::F32 => check.result_dtype(DType::C64, "C3"),
        DType::F64 => check.result_dtype(DType::C128, "C3"),
        other => Err(check.error("I1", format!("there is no complex type of {other}"))),
    }
}

/// `compare`.
pub(super) fn compare(check: &Check<'_>, compare_type: Option<CompareType>) -> Checked {
    check.counts(2, 1, 0)?;
    let (lhs, rhs) = (check.operand(0)?, check.operand(1)?);
    check.equal("element type of the right operand", &lhs.dtype, &rhs.dtype, "C1")?;
    check.equal("shape of the right operand", &lhs.shape, &rhs.shape, "C2")?;
    check.result_shape(lhs.shape.dims(), "C2")?;
    check.result_dtype(DType::Bool, "O1")?;
    let dtype = lhs.dtype;
    let fits = match compare_type {
        None => true,
        Some(CompareType::Signed) => dtype.is_signed_integer(),
        Some(CompareType::Unsigned) => dtype.is_unsigned_integer() || dtype == DType::Bool,
        Some(CompareType::Float) => dtype.is_float() || dtype.is_complex(),
        Some(CompareType::TotalOrder) => dtype.is_float(),
    };
    check.require(fits, "C3", || {
        let name = compare_type.map_or("", CompareType::name);
        format!("{dtype} cannot be compared as {name}")
    })
}

/// `select`.
pub(super) fn select(check: &Check<'_>) -> Checked {
    check.counts(3, 1, 0)?;
    let (predicate, on_true) = (check.operand(0)?, check.operand(1)?);
    check.equal("element type of the predicate", &DType::Bool, &predicate.dtype, "I1")?;
    let fits = predicate.shape.rank() == 0 || predicate.shape == on_true.shape;
    check.require(fits, "C1", || {
        format!(
            "the predicate must be a scalar or have the shape {}, found {predicate}",
            on_true.shape
        )
    })?;
    check.equal("type where false", on_true, check.operand(2)?, "C2")?;
    check.equal("type of the result", on_true, check.result(0)?, "C2")
}

/// `clamp`.
pub(super) fn clamp(check: &Check<'_>) -> Checked {
    check.counts(3, 1, 0)?;
    let operand = check.operand(1)?;
    for (bound, what, constraint) in
        [(check.operand(0)?, "minimum", "C1"), (check.operand(2)?, "maximum", "C2")]
    {
        let fits = bound.shape.rank() == 0 || bound.shape == operand.shape;
        check.require(fits, constraint, || {
            format!(
                "the {what} must be a scalar or have the shape {}, found {bound}",
                operand.shape
            )
        })?;
        check.equal(&format!("element type of the {what}"), &operand.dtype, &bound.dtype, "C3")?;
    }
    check.equal("type of the result", operand, check.result(0)?, "C4")
}

/// `convert`.
pub(super) fn convert(check: &Check<'_>) -> Checked {
    check.counts(1, 1, 0)?;
    check.result_shape(check.operand(0)?.shape.dims(), "C1")
}

/// `bitcast_convert`.
pub(super) fn bitcast_convert(check: &Check<'_>) -> Checked {
    check.counts(1, 1, 0)?;
    let (from, to) = (check.operand(0)?, check.result(0)?);
    check.require(from.dtype.is_complex() == to.dtype.is_complex(), "C2", || {
        format!("{} cannot be read as {}", from.dtype, to.dtype)
    })?;
    let (from_bits, to_bits) = (from.dtype.bit_width(), to.dtype.bit_width());
    let (wide, narrow) = if from_bits >= to_bits { (from, to) } else { (to, from) };
    let (wide_bits, narrow_bits) = (from_bits.max(to_bits), from_bits.min(to_bits));
    let mut expected = wide.shape.dims().to_vec();
    let divides = wide_bits % narrow_bits == 0;
    if wide_bits != narrow_bits {
        expected.push(wide_bits / narrow_bits);
    }
    check.require(divides && narrow.shape.dims() == expected, "C1", || {
        format!("{from} cannot be read as {to}")
    })
}

/// `reduce_precision`.
pub(super) fn reduce_precision(check: &Check<'_>, exponent_bits: u32) -> Checked {
    check.counts(1, 1, 0)?;
    let operand = check.operand(0)?;
    takes(check, FLOAT, operand.dtype)?;
    check.equal("type of the result", operand, check.result(0)?, "C1")?;
    check.require(exponent_bits >= 1, "C2", || "an exponent needs at least one bit".to_owned())
}
