//! Operations whose shapes are operands: their static forms, once these follow from constants.
//!
//! Besides those of StableHLO, the custom calls in which JAX exports shape-polymorphic programs.

use super::builder::Builder;
use super::{Simplifier, shape};
use crate::ifrt::{DType, Result, Status};
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::op::{Chlo, OpKind, RngAlgorithm, Window};
use crate::stablehlo::{Block, OpData, Region, TensorType, Type, Value};

/// The targets of the custom calls of this file.
pub(super) const CUSTOM_CALLS: &[&str] = &[
    "shape_assertion",
    "stablehlo.dynamic_reduce_window",
    "stablehlo.dynamic_rng_bit_generator",
    "stablehlo.dynamic_top_k",
    "stablehlo.shape_refinement_operand_wrapper",
];

impl Simplifier<'_> {
    /// What an operation becomes, if it is one of this file's.
    pub(super) fn dynamic(
        &mut self,
        data: &OpData,
        operands: &[Value],
        to: Block,
    ) -> Result<Option<Vec<Value>>> {
        let result = match (&data.kind, operands) {
            (OpKind::DynamicReshape, &[a, dims]) => {
                let dims = self.dims_of(data, dims)?;
                self.build(data, to).reshape(a, &dims)?
            }
            (OpKind::DynamicBroadcastInDim(broadcast), &[a, dims]) => {
                let dims = self.dims_of(data, dims)?;
                self.build(data, to).broadcast(a, &broadcast.dimensions, &dims)?
            }
            (OpKind::DynamicIota { dimension }, &[dims]) => {
                let (dims, dtype) = (self.dims_of(data, dims)?, self.result_dtype(data)?);
                let kind = OpKind::Iota { dimension: *dimension };
                self.build(data, to).op(kind, &[], dtype, &dims)?
            }
            (OpKind::DynamicPad, &[a, value, low, high, interior]) => {
                let kind = OpKind::Pad {
                    low: self.integers(low)?,
                    high: self.integers(high)?,
                    interior: self.sizes(interior)?,
                };
                self.inferred(data, kind, &[a, value], to)?
            }
            (OpKind::DynamicGather(gather), &[a, indices, sizes]) => {
                let mut gather = gather.clone();
                gather.slice_sizes = self.sizes(sizes)?;
                self.inferred(data, OpKind::Gather(gather), &[a, indices], to)?
            }
            (OpKind::DynamicConv(convolution), &[a, kernel, padding]) => {
                let mut convolution = convolution.clone();
                let padding = self.integers(padding)?;
                convolution.window.padding =
                    padding.chunks_exact(2).map(|edges| (edges[0], edges[1])).collect();
                self.inferred(data, OpKind::Convolution(convolution), &[a, kernel], to)?
            }
            (OpKind::RealDynamicSlice, &[a, start, limit, strides]) => {
                let kind = OpKind::Slice {
                    start: self.sizes(start)?,
                    limit: self.sizes(limit)?,
                    strides: self.sizes(strides)?,
                };
                self.inferred(data, kind, &[a], to)?
            }
            (OpKind::Rng(_), &[a, b, dims]) if self.is_dynamic(data) => {
                let (dims, dtype) = (self.sizes(dims)?, self.result_dtype(data)?);
                let operands = [a, b, operands[2]];
                self.build(data, to).op(data.kind.clone(), &operands, dtype, &dims)?
            }
            (OpKind::GetDimensionSize { dimension }, &[a]) => {
                let mut builder = self.build(data, to);
                let size = builder.dims(a)?.get(*dimension).copied();
                let size = size.and_then(|size| i32::try_from(size).ok());
                let size = size.ok_or_else(|| Status::invalid_argument("no such size"))?;
                let ty = TensorType::new(DType::S32, shape(Vec::new())?);
                builder.splat(ty, size.to_le_bytes().to_vec())?
            }
            (OpKind::SetDimensionSize { dimension }, &[a, size]) => {
                let size = self.sizes(size)?.first().copied();
                let mut builder = self.build(data, to);
                let dims = builder.dims(a)?;
                let (mut limit, start, strides) =
                    (dims.clone(), vec![0; dims.len()], vec![1; dims.len()]);
                match (limit.get_mut(*dimension), size) {
                    (Some(limit), Some(size)) if size <= *limit => *limit = size,
                    _ => return Err(Status::invalid_argument("no such size")),
                }
                let dtype = builder.dtype(a)?;
                let kind = OpKind::Slice { start, limit: limit.clone(), strides };
                builder.op(kind, &[a], dtype, &limit)?
            }
            (OpKind::CustomCall { call_target_name, attributes, .. }, _) => {
                return self.custom_call(data, call_target_name, attributes, operands, to);
            }
            _ => return Ok(None),
        };
        Ok(Some(vec![result]))
    }

    fn build(&mut self, data: &OpData, to: Block) -> Builder<'_> {
        Builder::new(&mut self.target, to, data.location)
    }

    fn is_dynamic(&self, data: &OpData) -> bool {
        data.results.iter().any(|&value| matches!(self.source.ty(value), Type::Dynamic(_)))
    }

    /// The element type of the only result.
    fn result_dtype(&self, data: &OpData) -> Result<DType> {
        match data.results.first().map(|&result| self.source.ty(result)) {
            Some(Type::Tensor(ty)) => Ok(ty.dtype),
            Some(Type::Dynamic(ty)) => Ok(ty.dtype),
            _ => Err(Status::invalid_argument("the result is no tensor of plain numbers")),
        }
    }

    /// The dimensions of the only result: as written, if that is all of them, otherwise those that
    /// the operand holds.
    fn dims_of(&self, data: &OpData, operand: Value) -> Result<Vec<usize>> {
        match data.results.first().map(|&result| self.source.ty(result)) {
            Some(Type::Tensor(ty)) => Ok(ty.shape.dims().to_vec()),
            _ => self.sizes(operand),
        }
    }

    /// An operation whose result has the shape that follows from its operands.
    fn inferred(
        &mut self,
        data: &OpData,
        kind: OpKind,
        operands: &[Value],
        to: Block,
    ) -> Result<Value> {
        let dtype = self.result_dtype(data)?;
        let types: Vec<&TensorType> =
            operands.iter().filter_map(|&value| self.target.tensor(value)).collect();
        let dims = super::shape::result_dims(&kind, &types, 0)
            .ok_or_else(|| Status::invalid_argument("operands that do not fit"))?;
        self.build(data, to).op(kind, operands, dtype, &dims)
    }

    fn custom_call(
        &mut self,
        data: &OpData,
        target: &str,
        attributes: &[(String, Attribute)],
        operands: &[Value],
        to: Block,
    ) -> Result<Option<Vec<Value>>> {
        let attribute = |name: &str| {
            let found = attributes.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.resolved())
        };
        match (target, operands) {
            ("shape_assertion", &[holds, ref sizes @ ..]) => {
                if self.integers(holds)?.contains(&0) {
                    let text = match attribute("error_message") {
                        Some(Attribute::String(text)) => text.as_str(),
                        _ => "",
                    };
                    let sizes = sizes.iter().map(|&size| self.integers(size));
                    let sizes = sizes.collect::<Result<Vec<_>>>()?.concat();
                    return Err(Status::invalid_argument(format!("{text} (sizes {sizes:?})")));
                }
                Ok(Some(Vec::new()))
            }
            ("stablehlo.shape_refinement_operand_wrapper", &[a, ..]) => Ok(Some(vec![a])),
            ("stablehlo.dynamic_top_k", &[a, k]) => {
                let k = self.sizes(k)?.first().copied();
                let k = k.ok_or_else(|| Status::invalid_argument("no k"))?;
                let mut builder = self.build(data, to);
                super::chlo::expand(&mut builder, &Chlo::TopK { k }, &[a]).map(Some)
            }
            ("stablehlo.dynamic_rng_bit_generator", &[state, dims]) => {
                let algorithm = match attribute("rng_algorithm") {
                    Some(Attribute::Case { case, .. }) => RngAlgorithm::from_name(case),
                    _ => None,
                };
                let algorithm =
                    algorithm.ok_or_else(|| Status::invalid_argument("no algorithm"))?;
                let dims = self.sizes(dims)?;
                let dtype = match data.results.get(1).map(|&result| self.source.ty(result)) {
                    Some(Type::Tensor(ty)) => ty.dtype,
                    Some(Type::Dynamic(ty)) => ty.dtype,
                    _ => return Err(Status::invalid_argument("no output")),
                };
                let types = vec![
                    self.target.ty(state).clone(),
                    Type::Tensor(TensorType::new(dtype, shape(dims)?)),
                ];
                let kind = OpKind::RngBitGenerator(algorithm);
                Ok(Some(self.build(data, to).ops(kind, &[state], Vec::new(), types)))
            }
            ("stablehlo.dynamic_reduce_window", _) => {
                self.reduce_window(data, operands, to).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Inputs, as many init values, and the five lists that make a window; the body is the region
    /// that inlining made of the function called.
    fn reduce_window(
        &mut self,
        data: &OpData,
        operands: &[Value],
        to: Block,
    ) -> Result<Vec<Value>> {
        let invalid = || Status::invalid_argument("operands that are no reduce_window");
        let (arrays, lists) =
            operands.split_at_checked(2 * data.results.len()).ok_or_else(invalid)?;
        let (&[dimensions, strides, base, dilations, padding], &[region]) =
            (lists, data.regions.as_slice())
        else {
            return Err(invalid());
        };
        let padding = self.integers(padding)?;
        let window = Window {
            dimensions: self.sizes(dimensions)?,
            strides: self.sizes(strides)?,
            base_dilations: self.sizes(base)?,
            window_dilations: self.sizes(dilations)?,
            padding: padding.chunks_exact(2).map(|edges| (edges[0], edges[1])).collect(),
        };
        let kind = OpKind::ReduceWindow(window);
        let types: Vec<&TensorType> =
            arrays.iter().filter_map(|&value| self.target.tensor(value)).collect();
        let dims = super::shape::result_dims(&kind, &types, 0).ok_or_else(invalid)?;
        let shape = shape(dims)?;
        let results = types[..data.results.len().min(types.len())]
            .iter()
            .map(|ty| Type::Tensor(TensorType::new(ty.dtype, shape.clone())));
        let results: Vec<Type> = results.collect();
        let (region, _): (Region, _) = self.region(region, &[])?;
        Ok(self.build(data, to).ops(kind, arrays, vec![region], results))
    }
}
