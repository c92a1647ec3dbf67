//! One function out of many: calls and composites replaced by what they call, unused operations
//! left out, and only tensors passed on.
//!
//! The result is an ordinary [`Function`] without `call`, `composite`, `optimization_barrier`,
//! `sharding_constraint` or operations whose results nobody uses; what has an effect stays, used or not: other devices count
//! on collectives. Operations keep their order, so tokens, which say no more than that, are left
//! out; a tuple or a future is the list of what it holds.

use crate::ifrt::{Code, Result, Status};
use crate::stablehlo::entity::Entity;
use crate::stablehlo::{
    Block, BlockData, Function, Module, Op, OpData, OpKind, Param, Region, ResultInfo, Type, Value,
    ValueDef,
};

/// How deep calls and regions may nest together: the compiler recurses over them.
const MAX_DEPTH: usize = 256;

/// How many operations a program may have once calls are inlined; calls can double it each level.
const MAX_OPS: usize = 1 << 22;

/// The function `entry` of a verified module with everything it calls.
///
/// # Errors
/// `InvalidArgument` when there is no such function or calls nest too deep, `ResourceExhausted`
/// when there are too many operations, `Unimplemented` when an array is to be in other memory than
/// the device's.
pub(crate) fn inline(module: &Module, entry: &str) -> Result<Function> {
    let source = module
        .function(entry)
        .ok_or_else(|| Status::invalid_argument(format!("the module has no function `{entry}`")))?;
    in_device_memory(source)?;
    let mut inliner =
        Inliner { module, out: Function::empty(source.name.clone(), source.location) };
    inliner.out.public = source.public;
    let block = inliner.out.entry;
    let mut scope = Scope::new(source);
    for param in &source.params {
        inliner.argument(source, param.value, block, &mut scope);
        for &value in scope.find(param.value)? {
            inliner.out.params.push(Param { value, ..param.clone() });
        }
    }
    for result in &source.results {
        let leaves = leaves(&result.ty).into_iter();
        inliner
            .out
            .results
            .extend(leaves.map(|ty| ResultInfo { ty: ty.clone(), ..result.clone() }));
    }
    inliner.block(source, source.entry, block, &mut scope, 0)?;
    let mut function = inliner.out;
    drop_unused(&mut function);
    Ok(function)
}

/// Refuses a function whose parameters or results are to be elsewhere.
fn in_device_memory(function: &Function) -> Result<()> {
    let params = function.params.iter().map(|param| ("parameter", param.memory_kind.as_deref()));
    let results = function.results.iter().map(|result| ("result", result.memory_kind.as_deref()));
    let elsewhere = |&(_, kind): &(&str, Option<&str>)| kind.is_some_and(|kind| kind != "device");
    match params.chain(results).find(elsewhere) {
        Some((what, Some(kind))) => Err(Status::unimplemented(format!(
            "`{}` has a {what} in memory of kind {kind:?}, there is only \"device\"",
            function.name
        ))),
        _ => Ok(()),
    }
}

/// The tensors that a value of this type holds.
fn leaves(ty: &Type) -> Vec<&Type> {
    match ty {
        Type::Token => Vec::new(),
        Type::Tuple(types) | Type::Future(types) => types.iter().flat_map(leaves).collect(),
        Type::Tensor(_) | Type::Quantized(_) | Type::Dynamic(_) => vec![ty],
    }
}

/// What the values of one function activation have become: a list of tensors each.
struct Scope {
    spans: Vec<Option<(usize, usize)>>,
    values: Vec<Value>,
}

impl Scope {
    fn new(function: &Function) -> Self {
        Self { spans: vec![None; function.values.len()], values: Vec::new() }
    }

    fn bind(&mut self, from: Value, to: impl IntoIterator<Item = Value>) {
        let start = self.values.len();
        self.values.extend(to);
        self.spans[from.index()] = Some((start, self.values.len()));
    }

    /// Binds `from`, which hold as much together as `to` does.
    fn bind_each(&mut self, function: &Function, from: &[Value], to: &[Value]) {
        let mut rest = to;
        for &value in from {
            let (held, behind) = rest.split_at(leaves(function.ty(value)).len().min(rest.len()));
            self.bind(value, held.iter().copied());
            rest = behind;
        }
    }

    fn find(&self, value: Value) -> Result<&[Value]> {
        match self.spans[value.index()] {
            Some((start, end)) => Ok(&self.values[start..end]),
            None => Err(Status::internal(format!("{value:?} is used before it is defined"))),
        }
    }

    fn find_all(&self, values: &[Value]) -> Result<Vec<Value>> {
        let mut found = Vec::with_capacity(values.len());
        for &value in values {
            found.extend_from_slice(self.find(value)?);
        }
        Ok(found)
    }
}

struct Inliner<'m> {
    module: &'m Module,
    out: Function,
}

impl Inliner<'_> {
    /// Appends an argument to `to` for each tensor of `value`.
    fn argument(&mut self, from: &Function, value: Value, to: Block, scope: &mut Scope) {
        let types = leaves(from.ty(value));
        let arguments: Vec<Value> =
            types.into_iter().map(|ty| self.out.push_argument(to, ty.clone())).collect();
        scope.bind(value, arguments);
    }

    /// Copies the operations of `block` to the end of `to`.
    fn block(
        &mut self,
        from: &Function,
        block: Block,
        to: Block,
        scope: &mut Scope,
        depth: usize,
    ) -> Result<()> {
        for &op in &from.blocks[block].ops {
            self.op(from, op, to, scope, depth)?;
        }
        Ok(())
    }

    fn op(
        &mut self,
        from: &Function,
        op: Op,
        to: Block,
        scope: &mut Scope,
        depth: usize,
    ) -> Result<()> {
        let data = &from.ops[op];
        let operands = scope.find_all(&data.operands)?;
        match &data.kind {
            OpKind::Call { callee } => {
                let results = self.call(callee, &operands, to, depth)?;
                scope.bind_each(from, &data.results, &results);
            }
            OpKind::Composite(composite) => {
                let results = self.call(&composite.decomposition, &operands, to, depth)?;
                scope.bind_each(from, &data.results, &results);
            }
            // A constraint says where an array lies, and here it lies on one device.
            OpKind::ShardingConstraint(_)
            | OpKind::OptimizationBarrier
            | OpKind::AfterAll
            | OpKind::Tuple
            | OpKind::AsyncDone => {
                scope.bind_each(from, &data.results, &operands);
            }
            OpKind::GetTupleElement { index } => {
                let tuple = data.operands.first().map(|&tuple| from.ty(tuple));
                let (Some(Type::Tuple(types)), &[result]) = (tuple, data.results.as_slice()) else {
                    return Err(Status::internal("get_tuple_element is not of a tuple"));
                };
                let before = types.iter().take(*index).map(|ty| leaves(ty).len()).sum::<usize>();
                scope.bind_each(from, &[result], &operands[before.min(operands.len())..]);
            }
            OpKind::AsyncStart => {
                let Some(&region) = data.regions.first() else {
                    return Err(Status::internal("async_start has no region"));
                };
                let block = &from.blocks[from.regions[region].block];
                check_depth(depth, &from.name)?;
                scope.bind_each(from, &block.arguments, &operands);
                let (terminator, ops) = split_terminator(block, &from.name)?;
                for &op in ops {
                    self.op(from, op, to, scope, depth + 1)?;
                }
                let results = scope.find_all(&from.ops[terminator].operands)?;
                scope.bind_each(from, &data.results, &results);
            }
            _ => self.copy(from, op, operands, to, scope, depth)?,
        }
        Ok(())
    }

    fn call(
        &mut self,
        callee: &str,
        operands: &[Value],
        to: Block,
        depth: usize,
    ) -> Result<Vec<Value>> {
        let module = self.module;
        let function = module
            .function(callee)
            .ok_or_else(|| Status::invalid_argument(format!("no function is called `{callee}`")))?;
        check_depth(depth, &function.name)?;
        let mut scope = Scope::new(function);
        let entry = &function.blocks[function.entry];
        scope.bind_each(function, &entry.arguments, operands);
        let (terminator, ops) = split_terminator(entry, callee)?;
        for &op in ops {
            self.op(function, op, to, &mut scope, depth + 1)?;
        }
        scope.find_all(&function.ops[terminator].operands)
    }

    fn copy(
        &mut self,
        from: &Function,
        op: Op,
        operands: Vec<Value>,
        to: Block,
        scope: &mut Scope,
        depth: usize,
    ) -> Result<()> {
        let data = &from.ops[op];
        if self.out.ops.len() >= MAX_OPS {
            return Err(Status::new(
                Code::ResourceExhausted,
                format!("the program has more than {MAX_OPS} operations once calls are inlined"),
            ));
        }
        let mut regions = Vec::with_capacity(data.regions.len());
        for &region in &data.regions {
            check_depth(depth, &from.name)?;
            regions.push(self.region(from, from.regions[region].block, scope, depth + 1)?);
        }
        // What a custom call may call becomes its regions.
        if let OpKind::CustomCall { called_computations, .. } = &data.kind {
            let module = self.module;
            for callee in called_computations {
                let function = module.function(callee).ok_or_else(|| {
                    Status::invalid_argument(format!("no function is called `{callee}`"))
                })?;
                check_depth(depth, &function.name)?;
                let mut scope = Scope::new(function);
                regions.push(self.region(function, function.entry, &mut scope, depth + 1)?);
            }
        }
        let types: Vec<Type> =
            data.results.iter().flat_map(|&value| leaves(from.ty(value))).cloned().collect();
        let copy = OpData {
            regions,
            accuracy: data.accuracy.clone(),
            ..OpData::new(data.kind.clone(), operands, data.location)
        };
        let copy = self.out.push_op(copy, types);
        scope.bind_each(from, &data.results, &self.out.ops[copy].results);
        self.out.blocks[to].ops.push(copy);
        Ok(())
    }

    fn region(
        &mut self,
        from: &Function,
        source: Block,
        scope: &mut Scope,
        depth: usize,
    ) -> Result<Region> {
        let (region, block) = self.out.push_region();
        for &argument in &from.blocks[source].arguments {
            self.argument(from, argument, block, scope);
        }
        self.block(from, source, block, scope, depth)?;
        Ok(region)
    }
}

/// The terminator of a block and the operations before it.
fn split_terminator<'b>(block: &'b BlockData, function: &str) -> Result<(Op, &'b [Op])> {
    match block.ops.split_last() {
        Some((&terminator, ops)) => Ok((terminator, ops)),
        None => Err(Status::invalid_argument(format!("the function `{function}` has no body"))),
    }
}

fn check_depth(depth: usize, function: &str) -> Result<()> {
    if depth < MAX_DEPTH {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "calls and regions nest more than {MAX_DEPTH} deep at `{function}`; recursion is not part \
         of StableHLO"
    )))
}

/// Removes from every block the operations that nothing with an effect depends on.
pub(super) fn drop_unused(function: &mut Function) {
    let live = live_ops(function);
    for block in function.blocks.keys().collect::<Vec<_>>() {
        function.blocks[block].ops.retain(|&op| live[op.index()]);
    }
}

fn live_ops(function: &Function) -> Vec<bool> {
    let mut live = vec![false; function.ops.len()];
    // An effect inside a region keeps every operation around it: `parents` leads outwards.
    let mut parents = vec![None; function.blocks.len()];
    for (op, data) in function.ops.iter() {
        for &region in &data.regions {
            parents[function.regions[region].block.index()] = Some(op);
        }
    }
    let mut home = vec![function.entry; function.ops.len()];
    for (block, data) in function.blocks.iter() {
        for &op in &data.ops {
            home[op.index()] = block;
        }
    }
    let mut pending: Vec<Op> =
        function.blocks[function.entry].ops.last().copied().into_iter().collect();
    for (op, data) in function.ops.iter() {
        if data.kind.has_side_effect() {
            let mut around = Some(op);
            while let Some(op) = around {
                pending.push(op);
                around = parents[home[op.index()].index()];
            }
        }
    }
    while let Some(op) = pending.pop() {
        if std::mem::replace(&mut live[op.index()], true) {
            continue;
        }
        let data = &function.ops[op];
        for &operand in &data.operands {
            if let ValueDef::Result(definer, _) = function.values[operand].def {
                pending.push(definer);
            }
        }
        for &region in &data.regions {
            let block = function.regions[region].block;
            pending.extend(function.blocks[block].ops.last());
        }
    }
    live
}
