//! Quantized numbers as the whole numbers that are stored, and arithmetic on them as the
//! specification has it: dequantize, compute, quantize.
//!
//! What only moves numbers moves the stored ones; bodies of reductions work on stored numbers, each
//! operation in them as anywhere else.

use super::Simplifier;
use super::builder::Builder;
use crate::ifrt::{DType, Result, Status};
use crate::stablehlo::number::float_bytes;
use crate::stablehlo::op::{Binary, OpKind, Unary};
use crate::stablehlo::{Block, OpData, QuantizedTensorType, TensorType, Type, Value};

impl Simplifier<'_> {
    /// What an operation on quantized numbers becomes; `None` when it is the same on those stored.
    pub(super) fn quantized(
        &mut self,
        data: &OpData,
        operands: &[Value],
        to: Block,
    ) -> Result<Option<Vec<Value>>> {
        let source = self.source;
        let quantized = |&value: &Value| match source.ty(value) {
            Type::Quantized(ty) => Some(ty),
            _ => None,
        };
        let before: Vec<Option<&QuantizedTensorType>> =
            data.operands.iter().map(quantized).collect();
        let after: Vec<Option<&QuantizedTensorType>> = data.results.iter().map(quantized).collect();
        let mut all = before.iter().chain(&after).flatten().map(|ty| ty.quantization());
        let Some(first) = all.next() else { return Ok(None) };
        if moves(&data.kind) && all.all(|other| other == first) || has_bodies(&data.kind) {
            return Ok(None);
        }
        if !data.regions.is_empty() {
            return Err(Status::unimplemented("quantized numbers and a region"));
        }
        let mut builder = Builder::new(&mut self.target, to, data.location);
        let mut floats = Vec::with_capacity(operands.len());
        for (&operand, ty) in operands.iter().zip(&before) {
            floats.push(match ty {
                Some(ty) => dequantized(&mut builder, operand, ty)?,
                None => operand,
            });
        }
        let results = match (&data.kind, floats.as_slice()) {
            (OpKind::UniformQuantize | OpKind::UniformDequantize, &[a]) => vec![a],
            _ => {
                let types = data.results.iter().zip(&after).map(|(&result, ty)| match ty {
                    Some(ty) => {
                        let expressed = ty.quantization().expressed();
                        Type::Tensor(TensorType::new(expressed, ty.shape().clone()))
                    }
                    None => source.ty(result).clone(),
                });
                builder.ops(data.kind.clone(), &floats, Vec::new(), types.collect())
            }
        };
        let mut stored = Vec::with_capacity(results.len());
        for (result, ty) in results.into_iter().zip(after) {
            stored.push(match ty {
                Some(ty) => quantized_as(&mut builder, result, ty)?,
                None => result,
            });
        }
        Ok(Some(stored))
    }
}

/// Whether an operation gives numbers that it has taken, unchanged.
fn moves(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::Constant(_)
            | OpKind::Return
            | OpKind::Reshape
            | OpKind::DynamicReshape
            | OpKind::BroadcastInDim { .. }
            | OpKind::DynamicBroadcastInDim(_)
            | OpKind::Broadcast { .. }
            | OpKind::Transpose { .. }
            | OpKind::Slice { .. }
            | OpKind::RealDynamicSlice
            | OpKind::Concatenate { .. }
            | OpKind::Pad { .. }
            | OpKind::DynamicPad
            | OpKind::Reverse { .. }
            | OpKind::DynamicSlice { .. }
            | OpKind::DynamicUpdateSlice
            | OpKind::Gather(_)
            | OpKind::DynamicGather(_)
            | OpKind::TorchIndexSelect { .. }
            | OpKind::Select
            | OpKind::GetDimensionSize { .. }
            | OpKind::AllGather { .. }
            | OpKind::AllToAll { .. }
            | OpKind::CollectivePermute { .. }
            | OpKind::CollectiveBroadcast(_)
            | OpKind::BitcastConvert
    )
}

/// Whether an operation does with numbers what its regions say.
fn has_bodies(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::While
            | OpKind::If
            | OpKind::Case
            | OpKind::Reduce { .. }
            | OpKind::ReduceWindow(_)
            | OpKind::SelectAndScatter(_)
            | OpKind::Scatter(_)
            | OpKind::Sort { .. }
            | OpKind::Map { .. }
            | OpKind::AllReduce(_)
            | OpKind::ReduceScatter { .. }
            | OpKind::BitcastConvert
    )
}

/// `(stored - zero point) * scale`.
fn dequantized(
    builder: &mut Builder<'_>,
    stored: Value,
    ty: &QuantizedTensorType,
) -> Result<Value> {
    let expressed = ty.quantization().expressed();
    // Zero points are of the storage type, from which they may be too far for it to tell.
    let wide = builder.convert(stored, DType::S64)?;
    let zero_points = parameters(builder, ty, DType::S64, |zero_point, _| {
        Some(zero_point.to_le_bytes().to_vec())
    })?;
    let difference = builder.binary(Binary::Subtract, wide, zero_points)?;
    let difference = builder.convert(difference, expressed)?;
    let scales = parameters(builder, ty, expressed, |_, scale| float_bytes(scale, expressed))?;
    builder.binary(Binary::Multiply, difference, scales)
}

/// `x / scale + zero point`, within the range of what is stored, rounded to nearest even.
fn quantized_as(builder: &mut Builder<'_>, x: Value, ty: &QuantizedTensorType) -> Result<Value> {
    let quantization = ty.quantization();
    let expressed = quantization.expressed();
    let scales = parameters(builder, ty, expressed, |_, scale| float_bytes(scale, expressed))?;
    let zero_points = parameters(builder, ty, expressed, |zero_point, _| {
        float_bytes(zero_point as f64, expressed)
    })?;
    let scaled = builder.binary(Binary::Divide, x, scales)?;
    let moved = builder.binary(Binary::Add, scaled, zero_points)?;
    let (least, greatest) = quantization.range();
    let (least, greatest) =
        (builder.float(least as f64, moved)?, builder.float(greatest as f64, moved)?);
    let dims = ty.shape().dims();
    let clamped = builder.op(OpKind::Clamp, &[least, moved, greatest], expressed, dims)?;
    let rounded = builder.unary(Unary::RoundNearestEven, clamped)?;
    builder.convert(rounded, quantization.storage())
}

/// A zero point or a scale for each element: all the same, or different along a dimension.
fn parameters(
    builder: &mut Builder<'_>,
    ty: &QuantizedTensorType,
    dtype: DType,
    bytes: impl Fn(i64, f64) -> Option<Vec<u8>>,
) -> Result<Value> {
    let quantization = ty.quantization();
    let mut elements = Vec::new();
    for parameters in quantization.parameters() {
        let element = bytes(parameters.zero_point, parameters.scale());
        elements.extend(
            element.ok_or_else(|| Status::unimplemented(format!("a scale of type {dtype}")))?,
        );
    }
    match quantization.dimension() {
        None => builder.splat(TensorType::new(dtype, ty.shape().clone()), elements),
        Some(dimension) => {
            let line = TensorType::new(dtype, super::shape(vec![quantization.parameters().len()])?);
            let line = builder.constant(line, elements)?;
            builder.broadcast(line, &[dimension], ty.shape().dims())
        }
    }
}
