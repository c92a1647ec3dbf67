//! Parts of a function as modules of their own.

use std::collections::HashSet;

use crate::stablehlo::entity::Entity as _;
use crate::stablehlo::{
    Block, Function, Location, Module, Op, OpData, OpKind, Param, ResultInfo, Value, ValueDef,
};

/// A module whose `main` is `ops`, some of the operations of the body of an inlined `function`,
/// and returns `results`; and the values that `main` takes as parameters: those which `ops` use
/// and do not define.
pub(crate) fn piece(function: &Function, ops: &[Op], results: &[Value]) -> (Module, Vec<Value>) {
    let mut main = Function { name: "main".to_owned(), public: true, ..function.clone() };
    let entry = main.entry;
    let defined: HashSet<Value> =
        ops.iter().flat_map(|&op| &function.ops[op].results).copied().collect();
    let mut used = function.used_by(ops.iter().copied());
    used.extend(results);
    let mut parameters: Vec<Value> =
        used.into_iter().filter(|value| !defined.contains(value)).collect();
    parameters.sort_unstable();
    for (position, &value) in parameters.iter().enumerate() {
        main.values[value].def = ValueDef::Argument(entry, position);
    }
    main.params = parameters.iter().map(|&value| Param::plain(value)).collect();
    let types = results.iter().map(|&value| function.ty(value).clone());
    main.results = types.map(ResultInfo::plain).collect();
    let returned = OpData::new(OpKind::Return, results.to_vec(), function.location);
    let returned = main.push_op(returned, Vec::new());
    let body = &mut main.blocks[entry];
    body.arguments.clone_from(&parameters);
    body.ops = ops.to_vec();
    body.ops.push(returned);
    let module = Module {
        name: String::new(),
        num_partitions: 1,
        num_replicas: 1,
        meshes: Vec::new(),
        functions: vec![main],
    };
    (module, parameters)
}

impl Function {
    /// The values from around them that `ops` and what is nested in them use.
    pub(crate) fn used_by(&self, ops: impl Iterator<Item = Op>) -> HashSet<Value> {
        let mut used = HashSet::new();
        let mut inner: HashSet<Value> = HashSet::new();
        let mut pending: Vec<Op> = ops.collect();
        while let Some(op) = pending.pop() {
            let data = &self.ops[op];
            used.extend(&data.operands);
            for &region in &data.regions {
                let block = &self.blocks[self.regions[region].block];
                inner.extend(&block.arguments);
                inner.extend(block.ops.iter().flat_map(|&op| &self.ops[op].results));
                pending.extend(&block.ops);
            }
        }
        used.retain(|value| !inner.contains(value));
        used
    }

    /// Gives `value`, whose definition is gone, a new one at `position` of `block`.
    pub(crate) fn define(
        &mut self,
        value: Value,
        kind: OpKind,
        block: Block,
        position: usize,
        location: Location,
    ) {
        let op = Op::new(self.ops.len());
        self.values[value].def = ValueDef::Result(op, 0);
        self.ops.push(OpData { results: vec![value], ..OpData::new(kind, Vec::new(), location) });
        self.blocks[block].ops.insert(position, op);
    }
}
