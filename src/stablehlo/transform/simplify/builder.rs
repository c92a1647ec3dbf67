//! Appends operations to a block, with result types that follow from those of the operands.

use super::shape;
use crate::ifrt::{DType, Result, Status};
use crate::stablehlo::number::float_bytes;
use crate::stablehlo::op::{Binary, Direction, Unary};
use crate::stablehlo::{
    Block, Function, Literal, Location, OpData, OpKind, Region, TensorType, Type, Value,
};

/// Appends to one block of a function, in the place of one operation.
pub(super) struct Builder<'f> {
    function: &'f mut Function,
    block: Block,
    location: Location,
}

impl<'f> Builder<'f> {
    pub(super) fn new(function: &'f mut Function, block: Block, location: Location) -> Self {
        Self { function, block, location }
    }

    /// The type of a value, which is a tensor.
    pub(super) fn ty(&self, value: Value) -> Result<TensorType> {
        let ty = self.function.tensor(value).cloned();
        ty.ok_or_else(|| Status::internal("a value that is no tensor"))
    }

    pub(super) fn dims(&self, value: Value) -> Result<Vec<usize>> {
        Ok(self.ty(value)?.shape.dims().to_vec())
    }

    pub(super) fn dtype(&self, value: Value) -> Result<DType> {
        Ok(self.ty(value)?.dtype)
    }

    /// An operation of one result.
    pub(super) fn op(
        &mut self,
        kind: OpKind,
        operands: &[Value],
        dtype: DType,
        dims: &[usize],
    ) -> Result<Value> {
        let ty = Type::Tensor(TensorType::new(dtype, shape(dims)?));
        let results = self.ops(kind, operands, Vec::new(), vec![ty]);
        results.first().copied().ok_or_else(|| Status::internal("an operation has no result"))
    }

    /// An operation with regions and results of these types.
    pub(super) fn ops(
        &mut self,
        kind: OpKind,
        operands: &[Value],
        regions: Vec<Region>,
        types: Vec<Type>,
    ) -> Vec<Value> {
        let data = OpData { regions, ..OpData::new(kind, operands.to_vec(), self.location) };
        let op = self.function.push_op(data, types);
        self.function.blocks[self.block].ops.push(op);
        self.function.ops[op].results.clone()
    }

    /// A region of scalars whose body is what `build` makes of its arguments.
    pub(super) fn region(
        &mut self,
        arguments: &[DType],
        build: impl FnOnce(&mut Builder<'_>, &[Value]) -> Result<Vec<Value>>,
    ) -> Result<Region> {
        let (region, block) = self.function.push_region();
        let arguments: Vec<Value> = arguments
            .iter()
            .map(|&dtype| {
                let ty = Type::Tensor(TensorType::new(dtype, crate::ifrt::Shape::scalar()));
                self.function.push_argument(block, ty)
            })
            .collect();
        let mut body = Builder { function: &mut *self.function, block, location: self.location };
        let returned = build(&mut body, &arguments)?;
        body.ops(OpKind::Return, &returned, Vec::new(), Vec::new());
        Ok(region)
    }

    pub(super) fn unary(&mut self, op: Unary, a: Value) -> Result<Value> {
        let ty = self.ty(a)?;
        self.op(OpKind::Unary(op), &[a], ty.dtype, ty.shape.dims())
    }

    pub(super) fn binary(&mut self, op: Binary, a: Value, b: Value) -> Result<Value> {
        let ty = self.ty(a)?;
        self.op(OpKind::Binary(op), &[a, b], ty.dtype, ty.shape.dims())
    }

    pub(super) fn compare(&mut self, direction: Direction, a: Value, b: Value) -> Result<Value> {
        let dims = self.dims(a)?;
        let kind = OpKind::Compare { direction, compare_type: None };
        self.op(kind, &[a, b], DType::Bool, &dims)
    }

    pub(super) fn convert(&mut self, a: Value, dtype: DType) -> Result<Value> {
        let ty = self.ty(a)?;
        if ty.dtype == dtype {
            return Ok(a);
        }
        self.op(OpKind::Convert, &[a], dtype, ty.shape.dims())
    }

    pub(super) fn reshape(&mut self, a: Value, dims: &[usize]) -> Result<Value> {
        let ty = self.ty(a)?;
        if ty.shape.dims() == dims {
            return Ok(a);
        }
        self.op(OpKind::Reshape, &[a], ty.dtype, dims)
    }

    pub(super) fn transpose(&mut self, a: Value, permutation: Vec<usize>) -> Result<Value> {
        let ty = self.ty(a)?;
        let from = ty.shape.dims();
        let dims: Option<Vec<usize>> = permutation.iter().map(|&d| from.get(d).copied()).collect();
        let dims = dims.ok_or_else(|| Status::invalid_argument("a dimension that is not there"))?;
        self.op(OpKind::Transpose { permutation }, &[a], ty.dtype, &dims)
    }

    /// `a` broadcast: its dimension `i` becomes dimension `dimensions[i]` of `dims`.
    pub(super) fn broadcast(
        &mut self,
        a: Value,
        dimensions: &[usize],
        dims: &[usize],
    ) -> Result<Value> {
        let ty = self.ty(a)?;
        if ty.shape.dims() == dims && dimensions.iter().copied().eq(0..dims.len()) {
            return Ok(a);
        }
        let kind = OpKind::BroadcastInDim { dimensions: dimensions.to_vec() };
        self.op(kind, &[a], ty.dtype, dims)
    }

    /// A float, repeated, in the type of `like`.
    pub(super) fn float(&mut self, value: f64, like: Value) -> Result<Value> {
        let ty = self.ty(like)?;
        let bytes = float_bytes(value, ty.dtype)
            .ok_or_else(|| Status::unimplemented(format!("{value} as {}", ty.dtype)))?;
        self.splat(ty, bytes)
    }

    /// An element, repeated.
    pub(super) fn splat(&mut self, ty: TensorType, element: Vec<u8>) -> Result<Value> {
        let (dtype, dims) = (ty.dtype, ty.shape.dims().to_vec());
        let literal = Literal::splat(ty, element)
            .ok_or_else(|| Status::internal("an element of another size"))?;
        self.op(OpKind::Constant(literal), &[], dtype, &dims)
    }

    /// Elements of an array.
    pub(super) fn constant(&mut self, ty: TensorType, bytes: Vec<u8>) -> Result<Value> {
        let (dtype, dims) = (ty.dtype, ty.shape.dims().to_vec());
        let literal = Literal::dense(ty, bytes)
            .ok_or_else(|| Status::internal("elements of another number"))?;
        self.op(OpKind::Constant(literal), &[], dtype, &dims)
    }
}
