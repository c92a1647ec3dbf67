//! Brings a manual computation that `main` calls into `main` itself.
//!
//! JAX puts a `shard_map` under `jit` into a function of its own. Only the calls on the way to
//! the manual computation are replaced by what they call; the others stay calls.

use std::collections::{HashMap, HashSet};

use super::SpmdError;
use crate::stablehlo::entity::Entity as _;
use crate::stablehlo::op::OpKind;
use crate::stablehlo::{
    Block, Function, Module, Op, Region, RegionData, Value, ValueData, ValueDef,
};

/// The most calls between `main` and the manual computation.
const MAX_CALLS: usize = 64;

/// `module` with the calls of `main` that lead to a manual computation replaced by what they
/// call; `None` when there is no such call.
///
/// # Errors
/// When a function on the way has shardings of its own, or there are too many.
pub(super) fn inline(module: &Module) -> Result<Option<Module>, SpmdError> {
    let main = module.function("main").ok_or(SpmdError::NoMain)?;
    let manual = leading_to_manual(module);
    let mut inlined = Inlined { main: main.clone(), passed_on: HashMap::new() };
    let mut gone = HashSet::new();
    while let Some((position, callee)) = inlined.call_to(module, &manual) {
        if gone.len() == MAX_CALLS || !gone.insert(callee.name.clone()) {
            return Err(SpmdError::NeedsPartitioner {
                what: format!("@{} is called on the way to many manual computations", callee.name),
                location: callee.location,
            });
        }
        without_shardings(callee)?;
        inlined.splice(position, callee)?;
    }
    if gone.is_empty() {
        return Ok(None);
    }
    let main = inlined.finish();
    let still_called = |name: &str| {
        let others = module.functions.iter().filter(|function| !gone.contains(&function.name));
        let others = others.filter(|function| function.name != "main").chain([&main]);
        others.flat_map(calls).any(|callee| callee == name)
    };
    let mut functions = Vec::with_capacity(module.functions.len());
    for function in &module.functions {
        if function.name == "main" {
            functions.push(main.clone());
        } else if !gone.contains(&function.name) || still_called(&function.name) {
            functions.push(function.clone());
        }
    }
    Ok(Some(Module {
        name: module.name.clone(),
        num_partitions: module.num_partitions,
        num_replicas: module.num_replicas,
        meshes: module.meshes.clone(),
        functions,
    }))
}

/// The functions that contain a manual computation or call one that does.
fn leading_to_manual(module: &Module) -> HashSet<&str> {
    let mut callers: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut found = HashSet::new();
    let mut new = Vec::new();
    for function in &module.functions {
        for callee in calls(function) {
            callers.entry(callee).or_default().push(&function.name);
        }
        let is_manual = |kind: &OpKind| matches!(kind, OpKind::ManualComputation(_));
        if function.placed().any(|data| is_manual(&data.kind)) {
            new.push(function.name.as_str());
        }
    }
    while let Some(name) = new.pop() {
        if found.insert(name) {
            new.extend(callers.get(name).into_iter().flatten());
        }
    }
    found
}

/// What a function calls, wherever in its blocks.
fn calls(function: &Function) -> impl Iterator<Item = &str> {
    function.placed().filter_map(|data| match &data.kind {
        OpKind::Call { callee } => Some(callee.as_str()),
        _ => None,
    })
}

/// What a function says about the spread of its values is a decision that inlining would drop.
fn without_shardings(function: &Function) -> Result<(), SpmdError> {
    let params = function.params.iter().map(|p| p.sharding.is_some() || p.hlo_sharding.is_some());
    let results = function.results.iter().map(|r| r.sharding.is_some() || r.hlo_sharding.is_some());
    if !params.chain(results).any(|has_sharding| has_sharding) {
        return Ok(());
    }
    Err(SpmdError::NeedsPartitioner {
        what: format!("@{} says how its parameters or results are spread", function.name),
        location: function.location,
    })
}

/// `main` as it grows.
struct Inlined {
    main: Function,
    /// For each result of a replaced call, the value that was returned.
    passed_on: HashMap<Value, Value>,
}

impl Inlined {
    /// The first call in the body of `main` to one of `functions`, and what it calls.
    fn call_to<'m>(
        &self,
        module: &'m Module,
        functions: &HashSet<&str>,
    ) -> Option<(usize, &'m Function)> {
        let ops = self.main.blocks[self.main.entry].ops.iter().enumerate();
        ops.into_iter().find_map(|(position, &op)| match &self.main.ops[op].kind {
            OpKind::Call { callee } if functions.contains(callee.as_str()) => {
                Some((position, module.function(callee)?))
            }
            _ => None,
        })
    }

    /// Replaces the call at `position` by the body of `callee`.
    ///
    /// All entities of the callee are appended, so that each is found at its old index plus the
    /// number of entities there were.
    fn splice(&mut self, position: usize, callee: &Function) -> Result<(), SpmdError> {
        let main = &mut self.main;
        let call = main.blocks[main.entry].ops[position];
        let (operands, results) = (main.ops[call].operands.clone(), main.ops[call].results.clone());
        let (values, ops) = (main.values.len(), main.ops.len());
        let (blocks, regions) = (main.blocks.len(), main.regions.len());
        let params = callee.params.iter().map(|param| param.value);
        let arguments: HashMap<Value, Value> = params.zip(operands).collect();
        let value = |value: Value| match arguments.get(&value) {
            Some(&argument) => argument,
            None => Value::new(value.index() + values),
        };
        let block = |block: Block| Block::new(block.index() + blocks);
        for data in callee.values.values() {
            let def = match data.def {
                ValueDef::Result(op, i) => ValueDef::Result(Op::new(op.index() + ops), i),
                ValueDef::Argument(owner, i) => ValueDef::Argument(block(owner), i),
            };
            main.values.push(ValueData { ty: data.ty.clone(), def });
        }
        for data in callee.ops.values() {
            let mut data = data.clone();
            data.operands.iter_mut().for_each(|operand| *operand = value(*operand));
            data.results.iter_mut().for_each(|result| *result = value(*result));
            for region in &mut data.regions {
                *region = Region::new(region.index() + regions);
            }
            main.ops.push(data);
        }
        for data in callee.blocks.values() {
            let mut data = data.clone();
            data.arguments.iter_mut().for_each(|argument| *argument = value(*argument));
            data.ops.iter_mut().for_each(|op| *op = Op::new(op.index() + ops));
            main.blocks.push(data);
        }
        for data in callee.regions.values() {
            main.regions.push(RegionData { block: block(data.block) });
        }
        let empty = SpmdError::NotVerified("a function has no return");
        let body = std::mem::take(&mut main.blocks[block(callee.entry)].ops);
        let (&last, body) = body.split_last().ok_or(empty)?;
        let returned = main.ops[last].operands.clone();
        self.passed_on.extend(results.into_iter().zip(returned));
        let entry = main.entry;
        main.blocks[entry].ops.splice(position..=position, body.iter().copied());
        Ok(())
    }

    /// `main` with the results of its replaced calls replaced as well.
    ///
    /// The replaced calls and the returns stay in the map of operations, but in no block.
    fn finish(self) -> Function {
        let Self { mut main, passed_on } = self;
        for index in 0..main.ops.len() {
            for operand in &mut main.ops[Op::new(index)].operands {
                while let Some(&value) = passed_on.get(operand) {
                    *operand = value;
                }
            }
        }
        main
    }
}
