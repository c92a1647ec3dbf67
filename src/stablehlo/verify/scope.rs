//! Indices and blocks: values are defined before their use and visible where they are used.

use std::collections::HashMap;

use super::check::Check;
use super::{Checked, about, asynchronous, call, chlo, collective, control, convolution, dynamic};
use super::{elementwise, expectation, gather, legacy, linalg, normalization, quantized, shape};
use super::{resharding, sharding, transfer, window};
use crate::stablehlo::entity::Entity as _;
use crate::stablehlo::op::OpKind;
use crate::stablehlo::{Block, Function, Module, Op, Value, ValueDef};

/// Walks the operations of a function in the order of the text and checks each.
///
/// The walk keeps its own stack, so that no nesting exhausts the thread's.
pub(super) fn function<'a>(
    module: &'a Module,
    functions: &'a HashMap<&'a str, &'a Function>,
    function: &'a Function,
) -> Checked {
    let mut walk = Walk {
        function,
        visible: vec![None; function.values.len()],
        entered: vec![false; function.blocks.len()],
        placed: vec![false; function.ops.len()],
        stack: Vec::new(),
        isolations: 0,
    };
    walk.enter(function.entry, 0)?;
    while let Some(frame) = walk.stack.last().copied() {
        let block = &function.blocks[frame.block];
        let Some(&op) = block.ops.get(frame.op) else {
            if block.ops.is_empty() {
                return Err(about(function, "it has a block without operations"));
            }
            walk.leave();
            continue;
        };
        let Some(data) = function.ops.get(op) else {
            return Err(about(function, "a block has an operation that does not exist"));
        };
        let check = Check { module, functions, function, data };
        if frame.region == 0 {
            let is_last = frame.op + 1 == block.ops.len();
            walk.begin(&check, op, is_last, frame.isolation)?;
        }
        match data.regions.get(frame.region) {
            Some(&region) => {
                walk.step(|frame| frame.region += 1);
                let Some(region) = function.regions.get(region) else {
                    return Err(check.error("", "it has a region that does not exist"));
                };
                let isolated = matches!(
                    data.kind,
                    OpKind::ManualComputation(_) | OpKind::NamedComputation(_) | OpKind::AsyncStart
                );
                let isolation = if isolated { walk.isolate() } else { frame.isolation };
                walk.enter(region.block, isolation)?;
            }
            None => {
                operation(&check, walk.stack.len() == 1)?;
                walk.define_results(&check, op, frame.isolation)?;
                walk.step(|frame| (frame.op, frame.region) = (frame.op + 1, 0));
            }
        }
    }
    Ok(())
}

/// A block being walked, and how far.
#[derive(Clone, Copy)]
struct Frame {
    block: Block,
    /// The operation being walked.
    op: usize,
    /// Its region that comes next.
    region: usize,
    /// The isolated region this block is in.
    isolation: usize,
}

struct Walk<'a> {
    function: &'a Function,
    /// For each value that is visible, the isolated region that may use it.
    visible: Vec<Option<usize>>,
    entered: Vec<bool>,
    placed: Vec<bool>,
    stack: Vec<Frame>,
    isolations: usize,
}

impl Walk<'_> {
    /// A region that sees nothing outside of it.
    fn isolate(&mut self) -> usize {
        self.isolations += 1;
        self.isolations
    }

    /// Changes the innermost frame.
    fn step(&mut self, change: impl FnOnce(&mut Frame)) {
        if let Some(frame) = self.stack.last_mut() {
            change(frame);
        }
    }

    /// Goes into a block, whose arguments become visible.
    fn enter(&mut self, block: Block, isolation: usize) -> Checked {
        let function = self.function;
        let Some(data) = function.blocks.get(block) else {
            return Err(about(function, "it has a block that does not exist"));
        };
        if std::mem::replace(&mut self.entered[block.index()], true) {
            return Err(about(function, "a block is in two places"));
        }
        for (position, &argument) in data.arguments.iter().enumerate() {
            let def = ValueDef::Argument(block, position);
            if !self.define(argument, def, isolation) {
                return Err(about(function, "a block argument is not what its value says"));
            }
        }
        self.stack.push(Frame { block, op: 0, region: 0, isolation });
        Ok(())
    }

    /// Comes out of a block; what it defined is no longer visible.
    fn leave(&mut self) {
        let Some(Frame { block, .. }) = self.stack.pop() else { return };
        let block = &self.function.blocks[block];
        let results = block.ops.iter().flat_map(|&op| &self.function.ops[op].results);
        for value in block.arguments.iter().chain(results) {
            if let Some(visible) = self.visible.get_mut(value.index()) {
                *visible = None;
            }
        }
    }

    /// Makes a value visible; false if it does not exist, is defined elsewhere or twice.
    fn define(&mut self, value: Value, def: ValueDef, isolation: usize) -> bool {
        let defined_here = self.function.values.get(value).is_some_and(|data| data.def == def);
        match self.visible.get_mut(value.index()) {
            Some(visible @ None) if defined_here => {
                *visible = Some(isolation);
                true
            }
            _ => false,
        }
    }

    /// Checks an operation's place and that its operands are visible there.
    fn begin(&mut self, check: &Check<'_>, op: Op, is_last: bool, isolation: usize) -> Checked {
        let is_return = check.data.kind == OpKind::Return;
        if is_last && !is_return {
            return Err(check.error("", "the last operation of a block must be a return"));
        }
        if is_return && !is_last {
            return Err(check.error("", "a return must be the last operation of its block"));
        }
        if std::mem::replace(&mut self.placed[op.index()], true) {
            return Err(check.error("", "the operation is in two places"));
        }
        for (i, operand) in check.data.operands.iter().enumerate() {
            match self.visible.get(operand.index()) {
                Some(&Some(visible)) if visible == isolation => {}
                Some(Some(_)) => {
                    let message = format!("operand {i} comes from outside an isolated region");
                    return Err(check.error("", message));
                }
                _ => {
                    let message = format!("operand {i} is used where it is not defined");
                    return Err(check.error("", message));
                }
            }
        }
        Ok(())
    }

    fn define_results(&mut self, check: &Check<'_>, op: Op, isolation: usize) -> Checked {
        for (i, &result) in check.data.results.iter().enumerate() {
            if !self.define(result, ValueDef::Result(op, i), isolation) {
                return Err(check.error("", format!("result {i} is not what its value says")));
            }
        }
        Ok(())
    }
}

/// Checks one operation, of the function itself or in one of its regions.
fn operation(check: &Check<'_>, in_function: bool) -> Checked {
    if let Some(&result) =
        check.data.results.iter().find(|&&v| check.function.values.get(v).is_none())
    {
        return Err(check.error("", format!("the result {result:?} does not exist")));
    }
    sharding::results(check)?;
    if check.is_deferred() {
        return match &check.data.kind {
            OpKind::Return if in_function => call::function_return(check),
            OpKind::Call { callee } => call::call(check, callee),
            OpKind::Composite(composite) => call::composite(check, composite),
            OpKind::UniformQuantize => quantized::quantize(check),
            OpKind::UniformDequantize => quantized::dequantize(check),
            _ => Ok(()),
        };
    }
    match &check.data.kind {
        OpKind::Return if in_function => call::function_return(check),
        OpKind::Return => check.counts(check.data.operands.len(), 0, 0),
        OpKind::Call { callee } => call::call(check, callee),
        OpKind::CustomCall { called_computations, attributes, .. } => {
            call::custom_call(check, called_computations, attributes)
        }
        OpKind::Composite(composite) => call::composite(check, composite),
        OpKind::Unary(unary) => elementwise::unary(check, *unary),
        OpKind::Binary(binary) => elementwise::binary(check, *binary),
        OpKind::Compare { compare_type, .. } => elementwise::compare(check, *compare_type),
        OpKind::Select => elementwise::select(check),
        OpKind::Clamp => elementwise::clamp(check),
        OpKind::Convert => elementwise::convert(check),
        OpKind::BitcastConvert => elementwise::bitcast_convert(check),
        OpKind::ReducePrecision { exponent_bits, .. } => {
            elementwise::reduce_precision(check, *exponent_bits)
        }
        OpKind::Constant(literal) => shape::constant(check, literal),
        OpKind::Iota { dimension } => shape::iota(check, *dimension),
        OpKind::BroadcastInDim { dimensions } => shape::broadcast_in_dim(check, dimensions),
        OpKind::Broadcast { sizes } => legacy::broadcast(check, sizes),
        OpKind::Dot(precision) => legacy::dot(check, precision),
        OpKind::Einsum { config } => legacy::einsum(check, config, 2),
        OpKind::UnaryEinsum { config } => legacy::einsum(check, config, 1),
        OpKind::TorchIndexSelect { dimension, batch_dims } => {
            legacy::torch_index_select(check, *dimension, *batch_dims)
        }
        OpKind::RealDynamicSlice => legacy::real_dynamic_slice(check),
        OpKind::SetDimensionSize { dimension } => legacy::set_dimension_size(check, *dimension),
        OpKind::UniformQuantize => quantized::quantize(check),
        OpKind::UniformDequantize => quantized::dequantize(check),
        OpKind::AsyncStart => asynchronous::start(check),
        OpKind::AsyncDone => asynchronous::done(check),
        OpKind::DynamicConv(convolution) => convolution::dynamic_conv(check, convolution),
        OpKind::DynamicGather(gather) => gather::dynamic_gather(check, gather),
        OpKind::DynamicBroadcastInDim(broadcast) => dynamic::broadcast_in_dim(check, broadcast),
        OpKind::DynamicIota { dimension } => dynamic::iota(check, *dimension),
        OpKind::DynamicPad => dynamic::pad(check),
        OpKind::DynamicReshape => dynamic::reshape(check),
        OpKind::Reshape => shape::reshape(check),
        OpKind::Transpose { permutation } => shape::transpose(check, permutation),
        OpKind::Slice { start, limit, strides } => shape::slice(check, start, limit, strides),
        OpKind::Concatenate { dimension } => shape::concatenate(check, *dimension),
        OpKind::Pad { low, high, interior } => shape::pad(check, low, high, interior),
        OpKind::Reverse { dimensions } => shape::reverse(check, dimensions),
        OpKind::DynamicSlice { sizes } => shape::dynamic_slice(check, sizes),
        OpKind::DynamicUpdateSlice => shape::dynamic_update_slice(check),
        OpKind::Gather(gather) => gather::gather(check, gather),
        OpKind::Scatter(scatter) => gather::scatter(check, scatter),
        OpKind::DotGeneral(dot) => window::dot_general(check, dot),
        OpKind::Fft { fft_type, lengths } => linalg::fft(check, *fft_type, lengths),
        OpKind::Cholesky { .. } => linalg::cholesky(check),
        OpKind::TriangularSolve(solve) => linalg::triangular_solve(check, solve),
        OpKind::RngBitGenerator(algorithm) => linalg::rng_bit_generator(check, *algorithm),
        OpKind::Rng(distribution) => linalg::rng(check, *distribution),
        OpKind::BatchNormTraining(norm) => normalization::training(check, norm.feature_index),
        OpKind::BatchNormInference(norm) => normalization::inference(check, norm.feature_index),
        OpKind::BatchNormGrad(norm) => normalization::grad(check, norm.feature_index),
        OpKind::Map { dimensions } => window::map(check, dimensions),
        OpKind::SelectAndScatter(window) => window::select_and_scatter(check, window),
        OpKind::GetDimensionSize { dimension } => shape::get_dimension_size(check, *dimension),
        OpKind::AfterAll => transfer::after_all(check),
        OpKind::Tuple => transfer::tuple(check),
        OpKind::GetTupleElement { index } => transfer::get_tuple_element(check, *index),
        OpKind::Infeed { .. } => transfer::infeed(check),
        OpKind::Outfeed { .. } => transfer::outfeed(check),
        OpKind::Send(transfer) => transfer::send(check, transfer),
        OpKind::Recv(transfer) => transfer::recv(check, transfer),
        OpKind::Reduce { dimensions } => window::reduce(check, dimensions),
        OpKind::ReduceWindow(window) => window::reduce_window(check, window),
        OpKind::Convolution(convolution) => convolution::convolution(check, convolution),
        OpKind::Sort { dimension, .. } => control::sort(check, *dimension),
        OpKind::While => control::while_(check),
        OpKind::If => control::if_(check),
        OpKind::Case => control::case(check),
        OpKind::OptimizationBarrier => control::optimization_barrier(check),
        OpKind::PartitionId | OpKind::ReplicaId => collective::id(check),
        OpKind::AllReduce(groups) => collective::all_reduce(check, groups),
        OpKind::AllGather { dimension, collective } => {
            collective::all_gather(check, *dimension, collective)
        }
        OpKind::ReduceScatter { dimension, collective } => {
            collective::reduce_scatter(check, *dimension, collective)
        }
        OpKind::AllToAll { split_dimension, concat_dimension, split_count, collective } => {
            let dimensions = (*split_dimension, *concat_dimension);
            collective::all_to_all(check, dimensions, *split_count, collective)
        }
        OpKind::CollectivePermute { source_target_pairs, channel_id } => {
            collective::collective_permute(check, source_target_pairs, *channel_id)
        }
        OpKind::CollectiveBroadcast(groups) => collective::collective_broadcast(check, groups),
        OpKind::CollectiveReduce { collective, has_dynamic_root } => {
            collective::collective_reduce(check, collective, *has_dynamic_root)
        }
        OpKind::ManualComputation(manual) => sharding::manual_computation(check, manual),
        OpKind::ShardingConstraint(constraint) => sharding::sharding_constraint(check, constraint),
        OpKind::Reshard(reshard) => resharding::reshard(check, reshard),
        OpKind::ShardingGroup { .. } => sharding::sharding_group(check),
        OpKind::PropagationBarrier(direction) => sharding::propagation_barrier(check, *direction),
        OpKind::DataFlowEdge(place) => sharding::data_flow_edge(check, place.as_deref()),
        OpKind::NamedComputation(named) => sharding::named_computation(check, named),
        OpKind::Chlo(operation) => chlo::operation(check, operation),
        OpKind::Expect(expectation) => expectation::expect(check, expectation),
        OpKind::Interpret(interpretation) => expectation::interpret(check, interpretation),
    }
}
