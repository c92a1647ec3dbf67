//! What lies between `SPMDFullToShardShape` and `SPMDShardToFullShape`, as manual computations.
//!
//! Frontends write all the entries of a computation, its body, and all its exits, one after the
//! other. Between them may be what does not depend on an entry: it goes before the computation.

use std::collections::HashSet;

use super::mesh::Tiles;
use super::{Target, read, sharding, text};
use crate::spmd::SpmdError;
use crate::stablehlo::op::{ManualComputation, OpKind, Sharding};
use crate::stablehlo::{
    Block, BlockData, Function, Location, Op, OpData, RegionData, Value, ValueDef,
};

/// Puts the local operations of every block into manual computations.
///
/// # Errors
/// When an entry has no exit or an exit no entry, or they do not say what is local.
pub(super) fn computations(function: &mut Function, tiles: &Tiles) -> Result<(), SpmdError> {
    for block in function.blocks.keys().collect::<Vec<_>>() {
        let special = |&op: &Op| Target::of(&function.ops[op].kind).is_some();
        if function.blocks[block].ops.iter().any(special) {
            Walk { function, tiles, block, done: Vec::new(), open: None }.run()?;
        }
    }
    Ok(())
}

/// A block whose operations are sorted.
struct Walk<'a> {
    function: &'a mut Function,
    tiles: &'a Tiles,
    block: Block,
    /// The operations of the block so far.
    done: Vec<Op>,
    open: Option<Open>,
}

/// A computation that has been entered.
#[derive(Default)]
struct Open {
    entries: Vec<Op>,
    body: Vec<Op>,
    exits: Vec<Op>,
    /// What the entries and the body give.
    inside: HashSet<Value>,
    /// What the exits give.
    outside: HashSet<Value>,
}

impl Walk<'_> {
    fn run(mut self) -> Result<(), SpmdError> {
        let ops = std::mem::take(&mut self.function.blocks[self.block].ops);
        let last = ops.len().saturating_sub(1);
        for (position, op) in ops.into_iter().enumerate() {
            let data = &self.function.ops[op];
            let target = Target::of(&data.kind);
            let ends = self.open.as_ref().is_some_and(|open| {
                let entered_again = target == Some(Target::FullToShard) && !open.exits.is_empty();
                position == last || entered_again || uses(self.function, op, &open.outside)
            });
            if ends {
                self.close()?;
            }
            let data = &self.function.ops[op];
            match target {
                Some(Target::FullToShard) => {
                    let open = self.open.get_or_insert_default();
                    open.inside.extend(&data.results);
                    open.entries.push(op);
                }
                Some(Target::ShardToFull) => {
                    let Some(open) = &mut self.open else {
                        return Err(alone(data, "SPMDFullToShardShape before it"));
                    };
                    open.outside.extend(&data.results);
                    open.exits.push(op);
                }
                _ => match &mut self.open {
                    Some(open) if uses(self.function, op, &open.inside) => {
                        open.inside.extend(&data.results);
                        open.body.push(op);
                    }
                    _ => self.done.push(op),
                },
            }
        }
        self.function.blocks[self.block].ops = self.done;
        drop_unused_constraints(self.function, self.block);
        Ok(())
    }

    /// Appends the computation that is open.
    fn close(&mut self) -> Result<(), SpmdError> {
        let Some(Open { entries, mut body, exits, .. }) = self.open.take() else { return Ok(()) };
        let Some(&first) = entries.first() else { return Ok(()) };
        let location = self.function.ops[first].location;
        if exits.is_empty() {
            return Err(alone(&self.function.ops[first], "SPMDShardToFullShape behind it"));
        }
        let manual = ManualComputation {
            in_shardings: self.each(&entries, Self::entered)?,
            out_shardings: self.each(&exits, Self::left)?,
            manual_axes: self.manual_axes(&entries)?,
        };
        let function = &mut *self.function;
        let block = function.blocks.push(BlockData::default());
        let mut operands = Vec::with_capacity(entries.len());
        for op in entries {
            let (operand, local) = ends(&function.ops[op])?;
            operands.push(unconstrained(function, operand));
            let position = function.blocks[block].arguments.len();
            function.values[local].def = ValueDef::Argument(block, position);
            function.blocks[block].arguments.push(local);
        }
        let computation = OpData::new(OpKind::ManualComputation(manual), operands, location);
        let computation = function.ops.push(computation);
        let mut returned = Vec::with_capacity(exits.len());
        for op in exits {
            let (local, result) = ends(&function.ops[op])?;
            returned.push(local);
            let position = function.ops[computation].results.len();
            function.values[result].def = ValueDef::Result(computation, position);
            function.ops[computation].results.push(result);
        }
        body.push(function.ops.push(OpData::new(OpKind::Return, returned, location)));
        function.blocks[block].ops = body;
        let region = function.regions.push(RegionData { block });
        function.ops[computation].regions.push(region);
        drop_unused_constraints(function, block);
        self.done.push(computation);
        Ok(())
    }

    fn each(
        &self,
        ops: &[Op],
        sharding: impl Fn(&Self, &OpData) -> Result<Sharding, SpmdError>,
    ) -> Result<Vec<Sharding>, SpmdError> {
        ops.iter().map(|&op| sharding(self, &self.function.ops[op])).collect()
    }

    /// How the value is spread that an entry takes: its constraint says so.
    fn entered(&self, data: &OpData) -> Result<Sharding, SpmdError> {
        let (operand, _) = ends(data)?;
        let ValueDef::Result(op, 0) = self.function.values[operand].def else {
            return Err(alone(data, "Sharding for its operand"));
        };
        match &self.function.ops[op].kind {
            OpKind::ShardingConstraint(sharding) => Ok(sharding.clone()),
            _ => Err(alone(data, "Sharding for its operand")),
        }
    }

    /// How the value is spread that an exit gives.
    fn left(&self, data: &OpData) -> Result<Sharding, SpmdError> {
        let (_, result) = ends(data)?;
        let said = sharding(self.tiles, text(data)?, self.function.ty(result), data.location)?;
        said.ok_or_else(|| alone(data, "a known sharding"))
    }

    /// What the entries say is handled by the body, all the same.
    fn manual_axes(&self, entries: &[Op]) -> Result<Vec<String>, SpmdError> {
        let mut all: Option<Vec<String>> = None;
        for &op in entries {
            let data = &self.function.ops[op];
            let text = text(data)?;
            let refuse = |location: Location, reason: String| {
                Err(SpmdError::HloSharding { text: text.to_owned(), location, reason })
            };
            let axes = match self.tiles.manual_axes(&read(text, data.location)?) {
                Ok(axes) => axes,
                Err(reason) => return refuse(data.location, reason),
            };
            match &all {
                Some(all) if *all != axes => {
                    let reason = "other operands are manual over other devices".to_owned();
                    return refuse(data.location, reason);
                }
                _ => all = Some(axes),
            }
        }
        Ok(all.unwrap_or_default())
    }
}

/// The operand and the result of an entry or exit.
fn ends(data: &OpData) -> Result<(Value, Value), SpmdError> {
    match (data.operands.as_slice(), data.results.as_slice()) {
        (&[operand], &[result]) => Ok((operand, result)),
        _ => Err(alone(data, "one operand and one result")),
    }
}

/// The error that an entry or exit lacks something.
fn alone(data: &OpData, missing: &str) -> SpmdError {
    let text = text(data).unwrap_or_default().to_owned();
    let target = match &data.kind {
        OpKind::CustomCall { call_target_name, .. } => call_target_name.as_str(),
        _ => "",
    };
    let reason = format!("@{target} needs {missing}");
    SpmdError::HloSharding { text, location: data.location, reason }
}

/// What a value is before its constraint.
fn unconstrained(function: &Function, value: Value) -> Value {
    match function.values[value].def {
        ValueDef::Result(op, 0) => match (&function.ops[op].kind, &*function.ops[op].operands) {
            (OpKind::ShardingConstraint(_), &[operand]) => operand,
            _ => value,
        },
        _ => value,
    }
}

/// Whether an operation, or one inside of it, takes one of `values`.
fn uses(function: &Function, op: Op, values: &HashSet<Value>) -> bool {
    let data = &function.ops[op];
    let regions = data.regions.iter().map(|&region| function.regions[region].block);
    let mut inner = regions.flat_map(|block| &function.blocks[block].ops);
    data.operands.iter().any(|operand| values.contains(operand))
        || inner.any(|&op| uses(function, op, values))
}

/// Removes the constraints of `block` on values that nobody takes: those of entries and exits.
fn drop_unused_constraints(function: &mut Function, block: Block) {
    let used: HashSet<Value> =
        function.placed().flat_map(|data| data.operands.iter().copied()).collect();
    let Function { ops, blocks, .. } = function;
    blocks[block].ops.retain(|&op| {
        let data = &ops[op];
        let is_constraint = matches!(data.kind, OpKind::ShardingConstraint(_));
        !is_constraint || data.results.iter().any(|result| used.contains(result))
    });
}
