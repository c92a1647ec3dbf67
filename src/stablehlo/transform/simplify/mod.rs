//! From operations that say more than a backend computes to those that it does.
//!
//! One walk over an inlined function. It gives every value a static type, knowing the types of the
//! parameters and whatever follows from constants; makes whole numbers and arithmetic of quantized
//! numbers; and replaces operations that others make up: those of `chlo`, those whose shapes are
//! operands, and those that are older than the specification. What could not be verified before is
//! verified afterwards.

mod builder;
mod chlo;
mod dynamic;
mod legacy;
mod quantization;
mod shape;

use std::borrow::Cow;

use self::builder::Builder;
use super::inline::drop_unused;
use super::piece::piece;
use crate::ifrt::{Code, Result, Shape, Status};
use crate::stablehlo::entity::Entity as _;
use crate::stablehlo::{
    Block, Function, Literal, Module, Op, OpData, OpKind, Param, Region, TensorType, Type, Value,
    ValueDef, verify,
};

/// Runs a module without parameters and returns its results.
pub(crate) type Evaluate<'a> = &'a dyn Fn(&Module) -> Result<Vec<Literal>>;

/// An inlined function whose values are static tensors of plain numbers and whose operations are
/// those of the specification that have static shapes.
///
/// `evaluate` computes the shapes that are operands.
///
/// # Errors
/// `Unimplemented` when a shape depends on what is not known before the program runs;
/// `InvalidArgument` when what results violates a constraint.
pub(crate) fn simplify<'f>(
    function: &'f Function,
    evaluate: Evaluate<'_>,
) -> Result<Cow<'f, Function>> {
    let is_plain = |ty: &Type| matches!(ty, Type::Tensor(_));
    if function.values.values().all(|value| is_plain(&value.ty))
        && function.ops.values().all(|data| is_simple(&data.kind))
    {
        return Ok(Cow::Borrowed(function));
    }
    let mut simplifier = Simplifier {
        source: function,
        target: Function::empty(function.name.clone(), function.location),
        values: vec![None; function.values.len()],
        evaluate,
    };
    let entry = simplifier.target.entry;
    for param in &function.params {
        let ty = simplifier.static_type(param.value)?;
        let value = simplifier.target.push_argument(entry, ty);
        simplifier.bind(param.value, value);
        simplifier.target.params.push(Param { value, ..param.clone() });
    }
    let returned = simplifier.block(function.entry, entry)?;
    for (result, value) in function.results.iter().zip(returned) {
        let ty = simplifier.target.ty(value).clone();
        simplifier.target.results.push(crate::stablehlo::ResultInfo { ty, ..result.clone() });
    }
    let mut target = simplifier.target;
    let module = Module {
        name: String::new(),
        num_partitions: 1,
        num_replicas: 1,
        meshes: Vec::new(),
        functions: vec![target.clone()],
    };
    verify(&module).map_err(|error| Status::wrap(Code::InvalidArgument, error))?;
    drop_unused(&mut target);
    Ok(Cow::Owned(target))
}

/// Whether an operation stays as it is.
fn is_simple(kind: &OpKind) -> bool {
    match kind {
        OpKind::Chlo(chlo) => chlo::is_computed(chlo),
        OpKind::Broadcast { .. }
        | OpKind::Dot(_)
        | OpKind::Einsum { .. }
        | OpKind::UnaryEinsum { .. }
        | OpKind::TorchIndexSelect { .. }
        | OpKind::DynamicBroadcastInDim(_)
        | OpKind::DynamicConv(_)
        | OpKind::DynamicGather(_)
        | OpKind::DynamicIota { .. }
        | OpKind::DynamicPad
        | OpKind::DynamicReshape
        | OpKind::RealDynamicSlice
        | OpKind::GetDimensionSize { .. }
        | OpKind::SetDimensionSize { .. }
        | OpKind::UniformQuantize
        | OpKind::UniformDequantize => false,
        OpKind::CustomCall { call_target_name, .. } => {
            !dynamic::CUSTOM_CALLS.contains(&call_target_name.as_str())
        }
        _ => true,
    }
}

struct Simplifier<'a> {
    source: &'a Function,
    target: Function,
    /// Per value of the source, what it has become.
    values: Vec<Option<Value>>,
    evaluate: Evaluate<'a>,
}

impl Simplifier<'_> {
    fn bind(&mut self, from: Value, to: Value) {
        self.values[from.index()] = Some(to);
    }

    fn find(&self, value: Value) -> Result<Value> {
        self.values[value.index()]
            .ok_or_else(|| Status::internal(format!("{value:?} is used before it is defined")))
    }

    /// The type of a value whose operation says nothing else about it.
    fn static_type(&self, value: Value) -> Result<Type> {
        match self.source.ty(value) {
            ty @ Type::Tensor(_) => Ok(ty.clone()),
            Type::Quantized(ty) => {
                let storage = ty.quantization().storage();
                Ok(Type::Tensor(TensorType::new(storage, ty.shape().clone())))
            }
            ty => Err(Status::unimplemented(format!(
                "a value of type {ty}, whose shape is not known before the program runs"
            ))),
        }
    }

    /// Copies the operations of `from` to the end of `to`; answers what they return.
    fn block(&mut self, from: Block, to: Block) -> Result<Vec<Value>> {
        let source = self.source;
        for &op in &source.blocks[from].ops {
            let data = &source.ops[op];
            self.op(op, to).map_err(|status| {
                status.context(format_args!("line {}: `{}`", data.location.line, data.kind))
            })?;
        }
        let last = self.target.blocks[to].ops.last();
        Ok(last.map(|&last| self.target.ops[last].operands.clone()).unwrap_or_default())
    }

    /// A copy of a region whose arguments have these types; answers what it returns, too.
    fn region(&mut self, region: Region, arguments: &[Type]) -> Result<(Region, Vec<Value>)> {
        let source = self.source;
        let from = source.regions[region].block;
        let (copy, block) = self.target.push_region();
        for (i, &argument) in source.blocks[from].arguments.iter().enumerate() {
            let ty = match arguments.get(i) {
                Some(ty) => ty.clone(),
                None => self.static_type(argument)?,
            };
            let value = self.target.push_argument(block, ty);
            self.bind(argument, value);
        }
        Ok((copy, self.block(from, block)?))
    }

    fn op(&mut self, op: Op, to: Block) -> Result<()> {
        let source = self.source;
        let data = &source.ops[op];
        let operands =
            data.operands.iter().map(|&value| self.find(value)).collect::<Result<Vec<_>>>()?;
        let results = self.simplified(data, &operands, to)?;
        if results.len() != data.results.len() {
            return Err(Status::invalid_argument(format!(
                "{} results where {} are made",
                data.results.len(),
                results.len()
            )));
        }
        for (&from, to) in data.results.iter().zip(results) {
            self.agrees(from, to)?;
            self.bind(from, to);
        }
        Ok(())
    }

    /// What is written about a value must be true of what it has become.
    fn agrees(&self, from: Value, to: Value) -> Result<()> {
        let (written, made) = (self.source.ty(from), self.target.ty(to));
        let agree = match (written, made) {
            (Type::Dynamic(written), Type::Tensor(made)) => {
                let sizes = made.shape.dims();
                let bounds = written.bounds.iter().zip(sizes);
                written.dtype == made.dtype
                    && written.dims.len() == sizes.len()
                    && written
                        .dims
                        .iter()
                        .zip(sizes)
                        .all(|(dim, size)| dim.is_none_or(|dim| dim == *size))
                    && bounds
                        .into_iter()
                        .all(|(bound, size)| bound.is_none_or(|bound| *size <= bound))
            }
            (Type::Quantized(written), Type::Tensor(made)) => {
                written.quantization().storage() == made.dtype && *written.shape() == made.shape
            }
            (written, made) => written == made,
        };
        if agree {
            return Ok(());
        }
        Err(Status::invalid_argument(format!("the result is {made}, where {written} is written")))
    }

    /// What an operation becomes: the values that are its results.
    fn simplified(&mut self, data: &OpData, operands: &[Value], to: Block) -> Result<Vec<Value>> {
        if let Some(results) = self.quantized(data, operands, to)? {
            return Ok(results);
        }
        if let Some(results) = self.dynamic(data, operands, to)? {
            return Ok(results);
        }
        let mut builder = Builder::new(&mut self.target, to, data.location);
        match &data.kind {
            OpKind::Chlo(chlo) if !chlo::is_computed(chlo) => {
                return chlo::expand(&mut builder, chlo, operands);
            }
            kind if !is_simple(kind) => return legacy::expand(&mut builder, kind, operands),
            _ => {}
        }
        self.copied(data, operands, to)
    }

    /// The operation itself, on what its operands have become.
    fn copied(&mut self, data: &OpData, operands: &[Value], to: Block) -> Result<Vec<Value>> {
        let state: Vec<Type> = match data.kind {
            OpKind::While => operands.iter().map(|&value| self.target.ty(value).clone()).collect(),
            _ => Vec::new(),
        };
        let mut regions = Vec::with_capacity(data.regions.len());
        let mut returned = Vec::new();
        for &region in &data.regions {
            let (region, values) = self.region(region, &state)?;
            regions.push(region);
            returned = values;
        }
        let types = (0..data.results.len())
            .map(|i| self.result_type(data, operands, &returned, i))
            .collect::<Result<Vec<_>>>()?;
        let copy = OpData {
            regions,
            accuracy: data.accuracy.clone(),
            ..OpData::new(data.kind.clone(), operands.to_vec(), data.location)
        };
        let copy = self.target.push_op(copy, types);
        self.target.blocks[to].ops.push(copy);
        Ok(self.target.ops[copy].results.clone())
    }

    /// The type of result `i` of an operation that stays what it is. `returned` is what its last
    /// region returns.
    fn result_type(
        &self,
        data: &OpData,
        operands: &[Value],
        returned: &[Value],
        i: usize,
    ) -> Result<Type> {
        let result = data.results[i];
        let dtype = match self.source.ty(result) {
            Type::Dynamic(ty) => ty.dtype,
            _ => return self.static_type(result),
        };
        if let OpKind::While | OpKind::If | OpKind::Case = data.kind {
            let value = if data.kind == OpKind::While { operands.get(i) } else { returned.get(i) };
            return value
                .map(|&value| self.target.ty(value).clone())
                .ok_or_else(|| Status::invalid_argument("it returns too few values"));
        }
        let types: Vec<&TensorType> =
            operands.iter().filter_map(|&value| self.target.tensor(value)).collect();
        let dims = shape::result_dims(&data.kind, &types, i).ok_or_else(|| {
            Status::unimplemented(format!(
                "its result {}, whose shape is not known before the program runs",
                self.source.ty(result)
            ))
        })?;
        Ok(Type::Tensor(TensorType::new(dtype, shape(dims)?)))
    }

    /// The elements of a value that follows from constants.
    fn constant(&self, value: Value) -> Result<Literal> {
        let ValueDef::Result(definer, _) = self.target.values[value].def else {
            return Err(unknown());
        };
        if let OpKind::Constant(literal) = &self.target.ops[definer].kind {
            return Ok(literal.clone());
        }
        let Some(ops) = self.leading_to(definer) else { return Err(unknown()) };
        let (module, parameters) = piece(&self.target, &ops, &[value]);
        if !parameters.is_empty() {
            return Err(unknown());
        }
        let results = (self.evaluate)(&module)?;
        results.into_iter().next().ok_or_else(|| Status::internal("a program has no result"))
    }

    /// The operations that `op` needs, and itself, in order; `None` when it needs an argument or
    /// what an operation with an effect gives.
    fn leading_to(&self, op: Op) -> Option<Vec<Op>> {
        let mut needed = vec![false; self.target.ops.len()];
        let mut pending = vec![op];
        while let Some(op) = pending.pop() {
            if std::mem::replace(&mut needed[op.index()], true) {
                continue;
            }
            if self.target.ops[op].kind.has_side_effect() {
                return None;
            }
            for value in self.target.used_by([op].into_iter()) {
                match self.target.values[value].def {
                    ValueDef::Result(definer, _) => pending.push(definer),
                    ValueDef::Argument(..) => return None,
                }
            }
        }
        // Operations are numbered in the order of the text, regions before what they are of.
        Some(self.target.ops.keys().filter(|op| needed[op.index()]).collect())
    }

    /// Whole numbers that follow from constants.
    fn integers(&self, value: Value) -> Result<Vec<i64>> {
        let literal = self.constant(value)?;
        let dtype = literal.ty().dtype;
        if !dtype.is_integer() && dtype != crate::ifrt::DType::Bool {
            return Err(Status::invalid_argument(format!("a list of {dtype} for a shape")));
        }
        let bits = dtype.bit_width();
        let bytes = literal.to_bytes();
        let number = |bytes: &[u8]| {
            let unsigned = bytes.iter().rev().fold(0_i128, |n, &byte| n << 8 | i128::from(byte));
            let value = unsigned & ((1 << bits) - 1);
            let wraps = dtype.is_signed_integer() && value >> (bits - 1) & 1 == 1;
            i64::try_from(if wraps { value - (1 << bits) } else { value })
        };
        let numbers: Result<Vec<i64>, _> =
            bytes.chunks_exact(dtype.size_bytes()).map(number).collect();
        numbers.map_err(|_| Status::invalid_argument("a size that does not fit 63 bits"))
    }

    /// Sizes that follow from constants.
    fn sizes(&self, value: Value) -> Result<Vec<usize>> {
        let numbers = self.integers(value)?;
        let sizes: Result<Vec<usize>, _> = numbers.iter().copied().map(usize::try_from).collect();
        sizes.map_err(|_| Status::invalid_argument(format!("{numbers:?} are no sizes")))
    }
}

fn unknown() -> Status {
    Status::unimplemented("a shape that depends on values which are not known before it runs")
}

fn shape(dims: impl Into<std::sync::Arc<[usize]>>) -> Result<Shape> {
    Shape::new(dims).map_err(|error| Status::wrap(Code::ResourceExhausted, error))
}
