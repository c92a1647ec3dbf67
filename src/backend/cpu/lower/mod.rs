//! From a function of operations to a list of steps over slots.
//!
//! One pass in program order. Views (slice, transpose, broadcast, reverse, reshape) cost nothing
//! until somebody needs the elements in order; elementwise operations wait in fusion groups until
//! somebody needs their values; everything else becomes a step at once.

mod collective;
mod comparator;
mod control;
mod custom_call;
mod data;
mod dot;
mod elementwise;
mod factorization;
mod linalg;
mod movement;
mod normalization;
mod reduce;
mod region;
mod scalar_loop;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::buffer::{Block, Memory};
use super::execute::Frame;
use super::fuse::Group;
use super::kernels::batch_norm::Mode;
use super::kernels::shape::Copy;
use super::plan::plan;
use super::step::{Body, Compute, Kernel, Program, Slot, Step};
use super::tile::Node;
use super::view::View;
use crate::backend::Nobody;
use crate::ifrt::{Code, DType, Result, Shape, Status};
use crate::stablehlo::entity::Entity;
use crate::stablehlo::transform::{fold, inline, share, simplify};
use crate::stablehlo::{
    Block as HloBlock, Function, Literal, Module, Op, OpData, OpKind, TensorType, Value,
};

/// A program and what its caller must know about it.
pub(crate) struct Compiled {
    pub(crate) program: Program,
    pub(crate) parameter_types: Vec<TensorType>,
    pub(crate) result_types: Vec<TensorType>,
}

/// Compiles a module that has passed the verifier.
pub(crate) fn compile(module: &Module) -> Result<Compiled> {
    let mut function = plain(module)?;
    fold(&mut function, &evaluate)?;
    share(&mut function);
    lower(module, &function)
}

/// `main` with what it calls, in operations that can be lowered.
fn plain(module: &Module) -> Result<Function> {
    let function = inline(module, "main")?;
    match simplify(&function, &evaluate)? {
        Cow::Owned(simplified) => Ok(simplified),
        Cow::Borrowed(_) => Ok(function),
    }
}

fn lower(module: &Module, function: &Function) -> Result<Compiled> {
    let mut lowering = Lowering::new(module, function);
    let arguments = &function.blocks[function.entry].arguments;
    let parameter_types = lowering.tensors(arguments)?;
    let parameters: Vec<Slot> = arguments
        .iter()
        .zip(&parameter_types)
        .map(|(&argument, ty)| {
            let slot = lowering.new_slot(ty.size_bytes());
            lowering.define(argument, slot, View::from(&ty.shape));
            slot
        })
        .collect();
    let yielded = lowering.block(function.entry)?;
    let result_types = lowering.tensors(yielded)?;
    let results = yielded.iter().map(|&value| lowering.dense(value)).collect::<Result<Vec<_>>>()?;
    let mut program = Program {
        parameters,
        constants: lowering.constants,
        body: Body { steps: lowering.steps, results },
        num_slots: 0,
        memory_bytes: 0,
        num_collectives: lowering.num_collectives as usize,
    };
    plan(&mut program, &lowering.sizes);
    Ok(Compiled { program, parameter_types, result_types })
}

/// Runs a module without parameters, to know a shape or a constant.
fn evaluate(module: &Module) -> Result<Vec<Literal>> {
    let Compiled { program, result_types, .. } = lower(module, &plain(module)?)?;
    let mut frame = Frame::new(Memory::default());
    let results = frame.run(&program, SmallVec::new(), &Nobody)?;
    let literals = results.iter().zip(result_types);
    literals
        .map(|(block, ty)| {
            Literal::dense(ty, block.bytes())
                .ok_or_else(|| Status::internal("a result of another size than its type"))
        })
        .collect()
}

/// Where a value is while its block is lowered.
#[derive(Clone, Debug)]
enum Place {
    /// In memory.
    Stored { slot: Slot, view: View },
    /// In a fusion group that has not become a step yet.
    Pending { group: usize, node: Node },
}

struct Lowering<'f> {
    function: &'f Function,
    num_replicas: usize,
    num_partitions: usize,
    /// Per value, the uses not lowered yet.
    uses: Vec<usize>,
    /// Per value, the last operation that uses it.
    last_use: Vec<Option<Op>>,
    places: Vec<Option<Place>>,
    groups: Vec<Option<Group>>,
    /// Per slot, its size in bytes.
    sizes: Vec<usize>,
    constants: Vec<(Slot, Arc<Block>)>,
    /// Constants of a single element, by their bytes.
    splats: HashMap<Vec<u8>, Slot>,
    /// The steps of the block being lowered.
    steps: Vec<Step>,
    /// Values that got a dense copy, with where they were before.
    moved: Vec<(Value, Place)>,
    num_collectives: u32,
}

impl<'f> Lowering<'f> {
    fn new(module: &Module, function: &'f Function) -> Self {
        let mut uses = vec![0; function.values.len()];
        let mut last_use = vec![None; function.values.len()];
        for (_, block) in function.blocks.iter() {
            for &op in &block.ops {
                for operand in &function.ops[op].operands {
                    uses[operand.index()] += 1;
                    last_use[operand.index()] = Some(op);
                }
            }
        }
        Self {
            function,
            num_replicas: module.num_replicas,
            num_partitions: module.num_partitions,
            uses,
            last_use,
            places: vec![None; function.values.len()],
            groups: Vec::new(),
            sizes: Vec::new(),
            constants: Vec::new(),
            splats: HashMap::new(),
            steps: Vec::new(),
            moved: Vec::new(),
            num_collectives: 0,
        }
    }

    /// Lowers the operations of a block and returns what its terminator yields.
    fn block(&mut self, block: HloBlock) -> Result<&'f [Value]> {
        let function = self.function;
        let (terminator, ops) = function.blocks[block]
            .ops
            .split_last()
            .ok_or_else(|| Status::internal("a block has no terminator"))?;
        for &op in ops {
            self.op(&function.ops[op])?;
        }
        Ok(&function.ops[*terminator].operands)
    }

    fn op(&mut self, op: &'f OpData) -> Result<()> {
        match &op.kind {
            OpKind::Constant(literal) => self.constant(op, literal),
            OpKind::Unary(_)
            | OpKind::Chlo(_)
            | OpKind::Binary(_)
            | OpKind::Compare { .. }
            | OpKind::Select
            | OpKind::Clamp
            | OpKind::Convert
            | OpKind::ReducePrecision { .. } => self.elementwise(op),
            OpKind::Iota { .. }
            | OpKind::BitcastConvert
            | OpKind::BroadcastInDim { .. }
            | OpKind::Reshape
            | OpKind::Transpose { .. }
            | OpKind::Slice { .. }
            | OpKind::Reverse { .. } => self.movement(op),
            OpKind::Concatenate { .. }
            | OpKind::Pad { .. }
            | OpKind::DynamicSlice { .. }
            | OpKind::DynamicUpdateSlice
            | OpKind::Gather(_)
            | OpKind::Scatter(_)
            | OpKind::Rng(_)
            | OpKind::RngBitGenerator(_)
            | OpKind::Sort { .. } => self.data(op),
            OpKind::Reduce { dimensions } => self.reduce(op, dimensions),
            OpKind::ReduceWindow(window) => self.reduce_window(op, window),
            OpKind::DotGeneral(dot) => self.dot_general(op, dot),
            OpKind::Convolution(conv) => self.convolution(op, conv),
            OpKind::SelectAndScatter(window) => self.select_and_scatter(op, window),
            OpKind::BatchNormInference(norm) => self.batch_norm(op, Mode::Inference, *norm),
            OpKind::BatchNormTraining(norm) => self.batch_norm(op, Mode::Training, *norm),
            OpKind::BatchNormGrad(norm) => self.batch_norm(op, Mode::Gradient, *norm),
            OpKind::Map { .. } => self.map(op),
            OpKind::Fft { fft_type, lengths } => self.fft(op, *fft_type, lengths),
            OpKind::Cholesky { .. } | OpKind::TriangularSolve(_) => self.linalg(op),
            OpKind::CustomCall { call_target_name, attributes, .. } => {
                self.custom_call(op, call_target_name, attributes)
            }
            OpKind::While | OpKind::If | OpKind::Case => self.control(op),
            OpKind::AllReduce(_)
            | OpKind::AllGather { .. }
            | OpKind::ReduceScatter { .. }
            | OpKind::AllToAll { .. }
            | OpKind::CollectivePermute { .. }
            | OpKind::CollectiveBroadcast(_)
            | OpKind::Infeed { .. }
            | OpKind::Outfeed { .. }
            | OpKind::Send(_)
            | OpKind::Recv(_)
            | OpKind::PartitionId
            | OpKind::ReplicaId => self.collective(op),
            _ => Err(self.unimplemented(op)),
        }
    }

    fn constant(&mut self, op: &OpData, literal: &Literal) -> Result<()> {
        let dims = literal.ty().shape.dims();
        let bytes = literal.stored_bytes();
        let result = first(&op.results)?;
        let is_splat = literal.splat_element().is_some() || literal.ty().shape.num_elements() == 1;
        if is_splat {
            let slot = self.splat(bytes)?;
            self.define(result, slot, View::splat(dims));
        } else {
            let slot = self.new_constant(bytes)?;
            self.define(result, slot, View::dense(dims));
        }
        Ok(())
    }

    /// The slot of a constant of one element.
    fn splat(&mut self, element: &[u8]) -> Result<Slot> {
        if let Some(&slot) = self.splats.get(element) {
            return Ok(slot);
        }
        let slot = self.new_constant(element)?;
        self.splats.insert(element.to_vec(), slot);
        Ok(slot)
    }

    fn new_constant(&mut self, bytes: &[u8]) -> Result<Slot> {
        let slot = self.new_slot(bytes.len());
        self.constants.push((slot, Arc::new(Memory::default().copy(bytes)?)));
        Ok(slot)
    }

    fn new_slot(&mut self, size_bytes: usize) -> Slot {
        self.sizes.push(size_bytes);
        Slot(self.sizes.len() - 1)
    }

    /// The type of a value, which is a tensor.
    fn tensor(&self, value: Value) -> Result<&'f TensorType> {
        self.function.tensor(value).ok_or_else(|| {
            Status::unimplemented(format!(
                "a value of type {} is not implemented by the CPU backend",
                self.function.ty(value)
            ))
        })
    }

    fn tensors(&self, values: &[Value]) -> Result<Vec<TensorType>> {
        values.iter().map(|&value| self.tensor(value).cloned()).collect()
    }

    /// Records where a value is stored.
    fn define(&mut self, value: Value, slot: Slot, view: View) {
        self.places[value.index()] = Some(Place::Stored { slot, view });
    }

    fn place(&self, value: Value) -> Result<&Place> {
        self.places[value.index()]
            .as_ref()
            .ok_or_else(|| Status::internal(format!("{value:?} is used before it is lowered")))
    }

    /// Notes that an operation has been lowered that uses `values`.
    fn consume(&mut self, values: &[Value]) {
        for value in values {
            let uses = &mut self.uses[value.index()];
            *uses = uses.saturating_sub(1);
        }
    }

    /// Where a value is in memory; a fusion group that computes it becomes a step now.
    fn stored(&mut self, value: Value) -> Result<(Slot, View)> {
        if let Place::Pending { group, .. } = *self.place(value)? {
            self.close(group)?;
        }
        match self.place(value)? {
            Place::Stored { slot, view } => Ok((*slot, view.clone())),
            Place::Pending { .. } => {
                Err(Status::internal(format!("{value:?} was not stored by its group")))
            }
        }
    }

    /// The slot that holds a value and nothing else, in row-major order.
    fn dense(&mut self, value: Value) -> Result<Slot> {
        let ty = self.tensor(value)?;
        let (slot, view) = self.stored(value)?;
        let dense = self.copy_unless_dense(slot, &view, ty.dtype.size_bytes());
        if dense == slot {
            return Ok(slot);
        }
        self.moved.push((value, Place::Stored { slot, view }));
        self.define(value, dense, View::from(&ty.shape));
        Ok(dense)
    }

    /// [`Lowering::copy`], or the slot itself when the view is all of it in order.
    fn copy_unless_dense(&mut self, slot: Slot, view: &View, width: usize) -> Slot {
        let whole = view.is_dense() && self.sizes[slot.index()] == view.num_elements() * width;
        if whole { slot } else { self.copy(slot, view, width) }
    }

    /// A new slot with the elements of a view in row-major order.
    fn copy(&mut self, slot: Slot, view: &View, width: usize) -> Slot {
        let kernel = Copy::new(view, width, self.sizes[slot.index()]);
        let copied = self.new_slot(view.num_elements() * width);
        self.emit(kernel, vec![slot], vec![copied]);
        copied
    }

    /// Appends a step that runs a kernel.
    fn emit(&mut self, kernel: impl Kernel + 'static, inputs: Vec<Slot>, outputs: Vec<Slot>) {
        let reuse = vec![None; outputs.len()];
        let outputs = outputs.into_iter().map(|slot| (slot, self.sizes[slot.index()])).collect();
        self.steps.push(Step::Compute(Compute {
            kernel: Box::new(kernel),
            inputs,
            outputs,
            reuse,
        }));
    }

    /// Lowers an operation to one kernel that takes dense operands and fills dense results.
    fn kernel(&mut self, op: &OpData, kernel: impl Kernel + 'static) -> Result<()> {
        let inputs =
            op.operands.iter().map(|&operand| self.dense(operand)).collect::<Result<Vec<_>>>()?;
        self.consume(&op.operands);
        let mut outputs = Vec::with_capacity(op.results.len());
        for &result in &op.results {
            let ty = self.tensor(result)?;
            let slot = self.new_slot(ty.size_bytes());
            self.define(result, slot, View::from(&ty.shape));
            outputs.push(slot);
        }
        self.emit(kernel, inputs, outputs);
        Ok(())
    }

    /// [`Lowering::kernel`] for one that computes in `dtype`: what is of another type is converted
    /// to it before and from it afterwards, and so rounded once.
    fn kernel_in(
        &mut self,
        op: &OpData,
        dtype: DType,
        kernel: impl Kernel + 'static,
    ) -> Result<()> {
        let width = dtype.size_bytes();
        let mut inputs = Vec::with_capacity(op.operands.len());
        for &operand in &op.operands {
            let (slot, view) = self.converted(op, operand, dtype)?;
            inputs.push(self.copy_unless_dense(slot, &view, width));
        }
        self.consume(&op.operands);
        let mut outputs = Vec::with_capacity(op.results.len());
        for &result in &op.results {
            outputs.push(self.new_slot(self.tensor(result)?.shape.num_elements() * width));
        }
        self.emit(kernel, inputs, outputs.clone());
        for (&result, output) in op.results.iter().zip(outputs) {
            let view = View::from(&self.tensor(result)?.shape);
            self.define_converted(op, result, output, &view, dtype)?;
        }
        Ok(())
    }

    /// The error that names an operation this backend does not have.
    fn unimplemented(&self, op: &OpData) -> Status {
        self.unimplemented_because(op, "")
    }

    /// [`Lowering::unimplemented`] with what it is about the operation.
    fn unimplemented_because(&self, op: &OpData, reason: &str) -> Status {
        let ty = op.operands.first().or(op.results.first()).map(|&value| self.function.ty(value));
        let ty = ty.map_or_else(String::new, |ty| format!(" of {ty}"));
        let reason = if reason.is_empty() { String::new() } else { format!(" {reason}") };
        Status::unimplemented(format!(
            "line {}: `{}`{ty}{reason} is not implemented by the CPU backend",
            op.location.line,
            op_name(&op.kind)
        ))
    }
}

/// The only or first of a list that the verifier has shown to have one.
fn first<T: std::marker::Copy>(items: &[T]) -> Result<T> {
    items
        .first()
        .copied()
        .ok_or_else(|| Status::internal("an operation lacks an operand or result"))
}

/// The size in bytes of an intermediate array, which no type in the program has vouched for.
fn checked_size(dims: &[usize], width: usize) -> Result<usize> {
    let shape = Shape::new(dims)
        .map_err(|error| Status::new(Code::ResourceExhausted, error.to_string()))?;
    Ok(shape.num_elements() * width)
}

/// The name of an operation, for messages.
fn op_name(kind: &OpKind) -> String {
    let name = format!("{}.{}", kind.dialect(), kind.mnemonic());
    match kind {
        OpKind::CustomCall { call_target_name, .. } => format!("{name} @{call_target_name}"),
        _ => name,
    }
}
