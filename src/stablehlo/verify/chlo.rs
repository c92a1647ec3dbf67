//! The `chlo` dialect, which has no specification: constraints have no numbers.

use super::Checked;
use super::check::Check;
use super::elementwise::{FLOAT, FLOAT_OR_COMPLEX, Kinds, NUMBER, takes};
use crate::ifrt::{DType, Shape};
use crate::stablehlo::op::{Broadcasting, Chlo, ChloUnary};

/// An operation of `chlo`.
pub(super) fn operation(check: &Check<'_>, chlo: &Chlo) -> Checked {
    match chlo {
        Chlo::Unary(unary) => {
            check.counts(1, 1, 0)?;
            let operand = check.operand(0)?;
            takes(check, kinds(*unary), operand.dtype)?;
            check.result_shape(operand.shape.dims(), "")?;
            let is_test =
                matches!(unary, ChloUnary::IsInf | ChloUnary::IsNegInf | ChloUnary::IsPosInf);
            check.result_dtype(if is_test { DType::Bool } else { operand.dtype }, "")
        }
        Chlo::Binary(_) => {
            check.counts(2, 1, 0)?;
            let (a, b) = (check.operand(0)?, check.operand(1)?);
            takes(check, FLOAT, a.dtype)?;
            check.equal("type of operand 1", a, b, "")?;
            check.equal("type of the result", a, check.result(0)?, "")
        }
        Chlo::Broadcast { op, dimensions } => {
            broadcast(check, dimensions.as_deref())?;
            let from = check.operand(0)?.dtype;
            let to = match (op, from) {
                (Broadcasting::Complex, DType::F32) => DType::C64,
                (Broadcasting::Complex, DType::F64) => DType::C128,
                _ => from,
            };
            check.result_dtype(to, "")
        }
        Chlo::BroadcastCompare { dimensions, .. } => {
            broadcast(check, dimensions.as_deref())?;
            check.result_dtype(DType::Bool, "")
        }
        Chlo::BroadcastSelect => {
            check.counts(3, 1, 0)?;
            let [predicate, a, b] = [check.operand(0)?, check.operand(1)?, check.operand(2)?];
            check.equal("element type of the predicate", &DType::Bool, &predicate.dtype, "")?;
            check.equal("element type of operand 2", &a.dtype, &b.dtype, "")?;
            let shape = together(check, &a.shape, &b.shape, None)?;
            let shape = together(check, &predicate.shape, &shape, None)?;
            check.result_shape(shape.dims(), "")?;
            check.result_dtype(a.dtype, "")
        }
        Chlo::ConstantLike(value) => {
            check.counts(1, 1, 0)?;
            check.result_shape(check.operand(0)?.shape.dims(), "")?;
            check.result_dtype(value.ty().dtype, "")
        }
        Chlo::TopK { k } => {
            check.counts(1, 2, 0)?;
            let operand = check.operand(0)?;
            let mut dims = operand.shape.dims().to_vec();
            let Some(last) = dims.last_mut().filter(|last| *k <= **last) else {
                let message = format!("{operand} has no {k} elements in its last dimension");
                return Err(check.error("", message));
            };
            *last = *k;
            for (i, dtype) in [(0, operand.dtype), (1, DType::S32)] {
                let result = check.result(i)?;
                check.require(result.shape.dims() == dims && result.dtype == dtype, "", || {
                    format!("result {i} must be {dims:?} of {dtype}, found {result}")
                })?;
            }
            Ok(())
        }
    }
}

fn kinds(unary: ChloUnary) -> Kinds {
    match unary {
        ChloUnary::Square | ChloUnary::Conj => NUMBER,
        ChloUnary::Acos
        | ChloUnary::Acosh
        | ChloUnary::Asin
        | ChloUnary::Asinh
        | ChloUnary::Atan
        | ChloUnary::Atanh
        | ChloUnary::Cosh
        | ChloUnary::Sinh
        | ChloUnary::Tan => FLOAT_OR_COMPLEX,
        ChloUnary::BesselI1e
        | ChloUnary::Digamma
        | ChloUnary::Erf
        | ChloUnary::ErfInv
        | ChloUnary::Erfc
        | ChloUnary::IsInf
        | ChloUnary::IsNegInf
        | ChloUnary::IsPosInf
        | ChloUnary::Lgamma => FLOAT,
    }
}

/// Two operands that become one shape, that of the result.
fn broadcast(check: &Check<'_>, dimensions: Option<&[usize]>) -> Checked {
    check.counts(2, 1, 0)?;
    let (a, b) = (check.operand(0)?, check.operand(1)?);
    check.equal("element type of operand 1", &a.dtype, &b.dtype, "")?;
    let shape = together(check, &a.shape, &b.shape, dimensions)?;
    check.result_shape(shape.dims(), "")
}

/// The shape of both when dimensions of size 1 repeat; the operand of lower rank has the last
/// dimensions, or those given.
fn together(
    check: &Check<'_>,
    a: &Shape,
    b: &Shape,
    dimensions: Option<&[usize]>,
) -> Checked<Shape> {
    let (low, high) = if a.rank() <= b.rank() { (a, b) } else { (b, a) };
    let last: Vec<usize> = (high.rank() - low.rank()..high.rank()).collect();
    let dimensions = dimensions.unwrap_or(&last);
    check.length("broadcast_dimensions", dimensions.len(), low.rank(), "")?;
    check.in_range("broadcast_dimensions", dimensions, high.rank(), "")?;
    check.unique("broadcast_dimensions", dimensions, "")?;
    let mut dims = high.dims().to_vec();
    for (&size, &dim) in low.dims().iter().zip(dimensions) {
        let fits = size == 1 || dims[dim] == 1 || size == dims[dim];
        check.require(fits, "", || format!("{a} and {b} cannot be broadcast to one shape"))?;
        if dims[dim] == 1 {
            dims[dim] = size;
        }
    }
    Shape::new(dims).map_err(|error| check.error("", error.to_string()))
}
