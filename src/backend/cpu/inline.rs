//! One function out of many: calls replaced by what they call, unused operations left out.
//!
//! The result is an ordinary [`Function`] without `call`, `optimization_barrier`,
//! `sharding_constraint` or operations whose results nobody uses; collectives stay, used or not,
//! since other devices count on them.

use crate::ifrt::{Code, Result, Status};
use crate::stablehlo::entity::{Entity, PrimaryMap};
use crate::stablehlo::{
    Block, BlockData, Function, Module, Op, OpData, OpKind, Region, RegionData, Value, ValueData,
    ValueDef,
};

/// How deep calls and regions may nest together: the compiler recurses over them.
const MAX_DEPTH: usize = 256;

/// How many operations a program may have once calls are inlined; calls can double it each level.
const MAX_OPS: usize = 1 << 22;

/// The module's `main` with everything it calls.
pub(crate) fn inline(module: &Module) -> Result<Function> {
    let main = module
        .function("main")
        .ok_or_else(|| Status::invalid_argument("the module has no function `main`"))?;
    let mut inliner = Inliner { module, out: empty_like(main) };
    let entry = inliner.out.entry;
    let mut scope = Scope::new(main);
    for &argument in &main.blocks[main.entry].arguments {
        let value = inliner.argument(main, argument, entry);
        scope.bind(argument, value);
    }
    for (param, &value) in inliner.out.params.iter_mut().zip(&inliner.out.blocks[entry].arguments) {
        param.value = value;
    }
    inliner.block(main, main.entry, entry, &mut scope, 0)?;
    let mut function = inliner.out;
    drop_unused(&mut function);
    Ok(function)
}

fn empty_like(main: &Function) -> Function {
    let mut blocks = PrimaryMap::new();
    let entry = blocks.push(BlockData::default());
    Function {
        name: main.name.clone(),
        public: main.public,
        params: main.params.clone(),
        results: main.results.clone(),
        entry,
        values: PrimaryMap::new(),
        ops: PrimaryMap::new(),
        blocks,
        regions: PrimaryMap::new(),
        location: main.location,
    }
}

/// What the values of one function activation have become.
struct Scope {
    values: Vec<Option<Value>>,
}

impl Scope {
    fn new(function: &Function) -> Self {
        Self { values: vec![None; function.values.len()] }
    }

    fn bind(&mut self, from: Value, to: Value) {
        self.values[from.index()] = Some(to);
    }

    fn find(&self, value: Value) -> Result<Value> {
        self.values[value.index()]
            .ok_or_else(|| Status::internal(format!("{value:?} is used before it is defined")))
    }

    fn find_all(&self, values: &[Value]) -> Result<Vec<Value>> {
        values.iter().map(|&value| self.find(value)).collect()
    }
}

struct Inliner<'m> {
    module: &'m Module,
    out: Function,
}

impl Inliner<'_> {
    fn argument(&mut self, from: &Function, value: Value, to: Block) -> Value {
        let position = self.out.blocks[to].arguments.len();
        let ty = from.ty(value).clone();
        let argument =
            self.out.values.push(ValueData { ty, def: ValueDef::Argument(to, position) });
        self.out.blocks[to].arguments.push(argument);
        argument
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
                for (&result, value) in data.results.iter().zip(results) {
                    scope.bind(result, value);
                }
            }
            // A constraint says where an array lies, and here it lies on one device.
            OpKind::OptimizationBarrier | OpKind::ShardingConstraint(_) => {
                for (&result, value) in data.results.iter().zip(operands) {
                    scope.bind(result, value);
                }
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
        for (&argument, &operand) in entry.arguments.iter().zip(operands) {
            scope.bind(argument, operand);
        }
        let (terminator, ops) = entry.ops.split_last().ok_or_else(|| {
            Status::invalid_argument(format!("the function `{callee}` has no body"))
        })?;
        for &op in ops {
            self.op(function, op, to, &mut scope, depth + 1)?;
        }
        scope.find_all(&function.ops[*terminator].operands)
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
        let new = self.out.ops.push(OpData {
            kind: data.kind.clone(),
            operands,
            results: Vec::new(),
            regions,
            shardings: Vec::new(),
            location: data.location,
        });
        for (position, &result) in data.results.iter().enumerate() {
            let def = ValueDef::Result(new, position);
            let value = self.out.values.push(ValueData { ty: from.ty(result).clone(), def });
            self.out.ops[new].results.push(value);
            scope.bind(result, value);
        }
        self.out.blocks[to].ops.push(new);
        Ok(())
    }

    fn region(
        &mut self,
        from: &Function,
        source: Block,
        scope: &mut Scope,
        depth: usize,
    ) -> Result<Region> {
        let block = self.out.blocks.push(BlockData::default());
        for &argument in &from.blocks[source].arguments {
            let value = self.argument(from, argument, block);
            scope.bind(argument, value);
        }
        self.block(from, source, block, scope, depth)?;
        Ok(self.out.regions.push(RegionData { block }))
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
fn drop_unused(function: &mut Function) {
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
