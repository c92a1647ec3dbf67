//! Copies of operations, from one function into another.

use std::collections::HashMap;

use super::SpmdError;
use super::replicate::Whole;
use crate::stablehlo::entity::PrimaryMap;
use crate::stablehlo::op::OpKind;
use crate::stablehlo::{
    Block, BlockData, Function, Op, OpData, Param, RegionData, ResultInfo, Type, Value, ValueData,
    ValueDef,
};

/// Copies operations of `source` to the end of blocks of a new function.
pub(super) struct Cloner<'a> {
    pub(super) source: &'a Function,
    pub(super) target: Function,
    values: HashMap<Value, Value>,
    /// How manual computations become part of a program that computes everything everywhere;
    /// `None` where they have no place.
    whole: Option<&'a Whole>,
}

impl<'a> Cloner<'a> {
    /// A copier into a function with the name and place of `source`, empty so far.
    pub(super) fn new(source: &'a Function) -> Self {
        let mut blocks = PrimaryMap::new();
        let entry = blocks.push(BlockData::default());
        let target = Function {
            name: source.name.clone(),
            public: source.public,
            params: Vec::new(),
            results: Vec::new(),
            entry,
            values: PrimaryMap::new(),
            ops: PrimaryMap::new(),
            blocks,
            regions: PrimaryMap::new(),
            location: source.location,
        };
        Self { source, target, values: HashMap::new(), whole: None }
    }

    /// The same for a function of which every device computes everything.
    pub(super) fn of_whole(source: &'a Function, whole: &'a Whole) -> Self {
        Self { whole: Some(whole), ..Self::new(source) }
    }

    /// A copy of a whole function that is called, without what it says about shardings.
    pub(super) fn function(
        source: &'a Function,
        whole: Option<&'a Whole>,
    ) -> Result<Function, SpmdError> {
        let mut cloner = Self { whole, ..Self::new(source) };
        let entry = cloner.target.entry;
        for param in &source.params {
            let value = cloner.argument(entry, source.ty(param.value).clone());
            cloner.map(param.value, value);
            let param = Param { value, sharding: None, hlo_sharding: None, ..param.clone() };
            cloner.target.params.push(param);
        }
        for result in &source.results {
            let result = ResultInfo { sharding: None, hlo_sharding: None, ..result.clone() };
            cloner.target.results.push(result);
        }
        cloner.block(source.entry, entry)?;
        Ok(cloner.target)
    }

    /// Appends an argument to `block`.
    pub(super) fn argument(&mut self, block: Block, ty: Type) -> Value {
        let position = self.target.blocks[block].arguments.len();
        let def = ValueDef::Argument(block, position);
        let value = self.target.values.push(ValueData { ty, def });
        self.target.blocks[block].arguments.push(value);
        value
    }

    /// Lets `source` stand for `target` in what is copied from now on.
    pub(super) fn map(&mut self, source: Value, target: Value) {
        self.values.insert(source, target);
    }

    /// What a value of the source is in the copy.
    pub(super) fn mapped(&self, source: Value) -> Result<Value, SpmdError> {
        let unmapped = SpmdError::NotVerified("a value is used where it is not defined");
        self.values.get(&source).copied().ok_or(unmapped)
    }

    /// Copies the operations of `from` to the end of `into`.
    ///
    /// A sharding, as an operation or as an attribute, asks for nothing where every axis is handled by the program itself,
    /// so it is left out.
    pub(super) fn block(&mut self, from: Block, into: Block) -> Result<(), SpmdError> {
        for &op in &self.source.blocks[from].ops {
            self.op(op, into)?;
        }
        Ok(())
    }

    /// Copies one operation to the end of `into`.
    pub(super) fn op(&mut self, op: Op, into: Block) -> Result<(), SpmdError> {
        let data = &self.source.ops[op];
        match (&data.kind, data.operands.as_slice(), data.results.as_slice()) {
            (OpKind::ShardingConstraint(_), &[operand], &[result]) => {
                let operand = self.mapped(operand)?;
                self.map(result, operand);
                return Ok(());
            }
            (
                OpKind::Reshard(_) | OpKind::PropagationBarrier(_) | OpKind::DataFlowEdge(_),
                &[operand],
                &[result],
            ) if self.whole.is_some() => {
                let operand = self.mapped(operand)?;
                self.map(result, operand);
                return Ok(());
            }
            (OpKind::ShardingGroup { .. }, ..) if self.whole.is_some() => return Ok(()),
            (OpKind::ManualComputation(manual), ..) => {
                if let Some(whole) = self.whole {
                    return whole.manual(self, (op, data), manual, into);
                }
                return Err(SpmdError::NeedsPartitioner {
                    what: format!("{} besides the one of @main", data.kind),
                    location: data.location,
                });
            }
            _ => {}
        }
        let operands = data.operands.iter().map(|&value| self.mapped(value));
        let operands = operands.collect::<Result<Vec<_>, _>>()?;
        let mut regions = Vec::with_capacity(data.regions.len());
        for &region in &data.regions {
            let from = self.source.regions[region].block;
            let block = self.target.blocks.push(BlockData::default());
            regions.push(self.target.regions.push(RegionData { block }));
            for &argument in &self.source.blocks[from].arguments {
                let copy = self.argument(block, self.source.ty(argument).clone());
                self.map(argument, copy);
            }
            self.block(from, block)?;
        }
        let results = data.results.iter().map(|&value| self.source.ty(value).clone()).collect();
        let copy = self.push(data.kind.clone(), operands, results, op, into);
        self.target.ops[copy].regions = regions;
        self.target.ops[copy].accuracy.clone_from(&data.accuracy);
        let pairs = data.results.iter().zip(self.target.ops[copy].results.clone());
        for (&result, copy) in pairs {
            self.map(result, copy);
        }
        Ok(())
    }

    /// Appends an operation to `into`, placed where `origin` is.
    pub(super) fn push(
        &mut self,
        kind: OpKind,
        operands: Vec<Value>,
        results: Vec<Type>,
        origin: Op,
        into: Block,
    ) -> Op {
        let location = self.source.ops[origin].location;
        let op = self.target.ops.push(OpData::new(kind, operands, location));
        for (position, ty) in results.into_iter().enumerate() {
            let def = ValueDef::Result(op, position);
            let value = self.target.values.push(ValueData { ty, def });
            self.target.ops[op].results.push(value);
        }
        self.target.blocks[into].ops.push(op);
        op
    }
}
