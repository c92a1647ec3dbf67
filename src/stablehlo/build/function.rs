//! Growing the body of a function, in the order every reader follows: the arguments of a block,
//! its operations, and an operation after its regions.

use crate::stablehlo::entity::PrimaryMap;
use crate::stablehlo::{
    Block, BlockData, Function, Location, Op, OpData, OpKind, Region, RegionData, Type, Value,
    ValueData, ValueDef,
};

impl Function {
    /// A public function without parameters, results and operations.
    pub(in crate::stablehlo) fn empty(name: String, location: Location) -> Self {
        let mut blocks = PrimaryMap::new();
        let entry = blocks.push(BlockData::default());
        Self {
            name,
            public: true,
            params: Vec::new(),
            results: Vec::new(),
            entry,
            values: PrimaryMap::new(),
            ops: PrimaryMap::new(),
            blocks,
            regions: PrimaryMap::new(),
            location,
        }
    }

    /// Appends an argument of type `ty` to `block`.
    pub(in crate::stablehlo) fn push_argument(&mut self, block: Block, ty: Type) -> Value {
        let position = self.blocks[block].arguments.len();
        let def = ValueDef::Argument(block, position);
        let value = self.values.push(ValueData { ty, def });
        self.blocks[block].arguments.push(value);
        value
    }

    /// A block and the region around it, both empty.
    pub(in crate::stablehlo) fn push_region(&mut self) -> (Region, Block) {
        let block = self.blocks.push(BlockData::default());
        (self.regions.push(RegionData { block }), block)
    }

    /// A region that does `kind` to two scalars of type `ty` and returns the result.
    pub(in crate::stablehlo) fn push_reducer(
        &mut self,
        kind: OpKind,
        ty: Type,
        location: Location,
    ) -> Region {
        let (region, block) = self.push_region();
        let operands =
            vec![self.push_argument(block, ty.clone()), self.push_argument(block, ty.clone())];
        let op = self.push_op(OpData::new(kind, operands, location), vec![ty]);
        let returned = self.ops[op].results.clone();
        let end = self.push_op(OpData::new(OpKind::Return, returned, location), Vec::new());
        self.blocks[block].ops.extend([op, end]);
        region
    }

    /// An operation with a result of each of these types besides those it has; in no block yet.
    pub(in crate::stablehlo) fn push_op(&mut self, data: OpData, result_types: Vec<Type>) -> Op {
        let op = self.ops.push(data);
        for (position, ty) in result_types.into_iter().enumerate() {
            let def = ValueDef::Result(op, position);
            let value = self.values.push(ValueData { ty, def });
            self.ops[op].results.push(value);
        }
        op
    }
}
