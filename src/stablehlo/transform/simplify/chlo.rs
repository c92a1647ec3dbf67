//! Operations of `chlo` in terms of StableHLO; special functions, which the backend computes, stay.

use super::builder::Builder;
use crate::ifrt::{DType, Result, Status};
use crate::stablehlo::op::{Binary, Chlo, ChloUnary, CompareType, Direction, OpKind, Unary};
use crate::stablehlo::{TensorType, Type, Value};

/// Whether an operation stays for the backend to compute.
pub(super) fn is_computed(chlo: &Chlo) -> bool {
    match chlo {
        Chlo::Unary(unary) => !matches!(
            unary,
            ChloUnary::Conj
                | ChloUnary::IsInf
                | ChloUnary::IsNegInf
                | ChloUnary::IsPosInf
                | ChloUnary::Square
                | ChloUnary::Tan
        ),
        Chlo::Binary(_) => true,
        _ => false,
    }
}

/// What one of these operations becomes.
pub(super) fn expand(
    builder: &mut Builder<'_>,
    chlo: &Chlo,
    operands: &[Value],
) -> Result<Vec<Value>> {
    let result = match (chlo, operands) {
        (Chlo::Unary(unary), &[a]) => function(builder, *unary, a)?,
        (Chlo::Binary(_), &[a, _]) => {
            let ty = builder.ty(a)?;
            builder.op(OpKind::Chlo(chlo.clone()), operands, ty.dtype, ty.shape.dims())?
        }
        (Chlo::Broadcast { op, dimensions }, &[a, b]) => {
            let [a, b] = alike(builder, a, b, dimensions.as_deref())?;
            let kind = op.kind().ok_or_else(|| Status::internal("no such operation"))?;
            let ty = builder.ty(a)?;
            let dtype = match (&kind, ty.dtype) {
                (OpKind::Binary(Binary::Complex), DType::F32) => DType::C64,
                (OpKind::Binary(Binary::Complex), DType::F64) => DType::C128,
                (_, dtype) => dtype,
            };
            builder.op(kind, &[a, b], dtype, ty.shape.dims())?
        }
        (Chlo::BroadcastCompare { dimensions, direction, compare_type }, &[a, b]) => {
            let [a, b] = alike(builder, a, b, dimensions.as_deref())?;
            let kind = OpKind::Compare { direction: *direction, compare_type: *compare_type };
            let dims = builder.dims(a)?;
            builder.op(kind, &[a, b], DType::Bool, &dims)?
        }
        (Chlo::BroadcastSelect, &[predicate, a, b]) => {
            let [a, b] = alike(builder, a, b, None)?;
            let [predicate, a] = alike(builder, predicate, a, None)?;
            let [b, _] = alike(builder, b, a, None)?;
            let ty = builder.ty(a)?;
            builder.op(OpKind::Select, &[predicate, a, b], ty.dtype, ty.shape.dims())?
        }
        (Chlo::ConstantLike(value), &[a]) => {
            let shape = builder.ty(a)?.shape;
            let ty = TensorType::new(value.ty().dtype, shape);
            builder.splat(ty, value.stored_bytes().to_vec())?
        }
        (Chlo::TopK { k }, &[a]) => return top_k(builder, *k, a),
        _ => return Err(Status::invalid_argument("operands that do not fit")),
    };
    Ok(vec![result])
}

/// A function of one operand: itself, or what it is short for.
fn function(builder: &mut Builder<'_>, unary: ChloUnary, a: Value) -> Result<Value> {
    let ty = builder.ty(a)?;
    match unary {
        ChloUnary::Square => builder.binary(Binary::Multiply, a, a),
        ChloUnary::Conj if !ty.dtype.is_complex() => Ok(a),
        ChloUnary::Conj => {
            let part = if ty.dtype == DType::C64 { DType::F32 } else { DType::F64 };
            let dims = ty.shape.dims();
            let re = builder.op(OpKind::Unary(Unary::Real), &[a], part, dims)?;
            let im = builder.op(OpKind::Unary(Unary::Imag), &[a], part, dims)?;
            let im = builder.unary(Unary::Negate, im)?;
            builder.op(OpKind::Binary(Binary::Complex), &[re, im], ty.dtype, dims)
        }
        ChloUnary::IsInf => {
            let magnitude = builder.unary(Unary::Abs, a)?;
            is(builder, magnitude, f64::INFINITY)
        }
        ChloUnary::IsPosInf => is(builder, a, f64::INFINITY),
        ChloUnary::IsNegInf => is(builder, a, f64::NEG_INFINITY),
        ChloUnary::Tan => builder.unary(Unary::Tan, a),
        _ => builder.op(OpKind::Chlo(Chlo::Unary(unary)), &[a], ty.dtype, ty.shape.dims()),
    }
}

fn is(builder: &mut Builder<'_>, a: Value, value: f64) -> Result<Value> {
    let value = builder.float(value, a)?;
    builder.compare(Direction::Eq, a, value)
}

/// Both operands in one shape: dimensions of size 1 repeat, the operand of lower rank has the last
/// dimensions or those given.
fn alike(
    builder: &mut Builder<'_>,
    a: Value,
    b: Value,
    dimensions: Option<&[usize]>,
) -> Result<[Value; 2]> {
    let (a_dims, b_dims) = (builder.dims(a)?, builder.dims(b)?);
    let a_is_low = a_dims.len() <= b_dims.len();
    let (low, high) = if a_is_low { (&a_dims, &b_dims) } else { (&b_dims, &a_dims) };
    let last: Vec<usize> = (high.len() - low.len()..high.len()).collect();
    let dimensions = dimensions.unwrap_or(&last);
    let mut dims = high.clone();
    for (&size, &dim) in low.iter().zip(dimensions) {
        match dims.get_mut(dim) {
            Some(other) if *other == 1 => *other = size,
            Some(_) => {}
            None => return Err(Status::invalid_argument("a dimension that is not there")),
        }
    }
    let all: Vec<usize> = (0..dims.len()).collect();
    let (a_to, b_to) = if a_is_low { (dimensions, &*all) } else { (&*all, dimensions) };
    Ok([builder.broadcast(a, a_to, &dims)?, builder.broadcast(b, b_to, &dims)?])
}

/// The greatest elements along the last dimension, NaN first, and their indices: a stable sort.
fn top_k(builder: &mut Builder<'_>, k: usize, a: Value) -> Result<Vec<Value>> {
    let ty = builder.ty(a)?;
    let dims = ty.shape.dims();
    let Some(dimension) = dims.len().checked_sub(1).filter(|&last| k <= dims[last]) else {
        return Err(Status::invalid_argument(format!("no {k} elements in the last of {dims:?}")));
    };
    let indices = builder.op(OpKind::Iota { dimension }, &[], DType::S32, dims)?;
    let arguments = [ty.dtype, ty.dtype, DType::S32, DType::S32];
    let comparator = builder.region(&arguments, |body, arguments| {
        let compare_type = ty.dtype.is_float().then_some(CompareType::TotalOrder);
        let kind = OpKind::Compare { direction: Direction::Gt, compare_type };
        Ok(vec![body.op(kind, &arguments[..2], DType::Bool, &[])?])
    })?;
    let types =
        [ty.dtype, DType::S32].map(|dtype| Type::Tensor(TensorType::new(dtype, ty.shape.clone())));
    let kind = OpKind::Sort { dimension, is_stable: true };
    let sorted = builder.ops(kind, &[a, indices], vec![comparator], types.to_vec());
    let mut limit = dims.to_vec();
    limit[dimension] = k;
    let slice = OpKind::Slice {
        start: vec![0; dims.len()],
        limit: limit.clone(),
        strides: vec![1; dims.len()],
    };
    sorted
        .into_iter()
        .zip([ty.dtype, DType::S32])
        .map(|(sorted, dtype)| builder.op(slice.clone(), &[sorted], dtype, &limit))
        .collect()
}
