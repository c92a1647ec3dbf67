//! `while`, `case` and `if`: bodies that share the slots of the block around them.

use super::{Lowering, Place, first};
use crate::backend::cpu::kernels::scalar_loop::ScalarLoop;
use crate::backend::cpu::step::{Body, Case, Slot, Step, While};
use crate::backend::cpu::view::View;
use crate::ifrt::Result;
use crate::stablehlo::entity::Entity;
use crate::stablehlo::{OpData, OpKind, Region, Value};

impl Lowering<'_> {
    pub(super) fn control(&mut self, op: &OpData) -> Result<()> {
        for &region in &op.regions {
            self.store_captures(region)?;
        }
        if matches!(op.kind, OpKind::While) { self.while_loop(op) } else { self.case(op) }
    }

    /// Computes, ahead of a region, every value from around it that it uses.
    fn store_captures(&mut self, region: Region) -> Result<()> {
        let function = self.function;
        let block = function.regions[region].block;
        for &op in &function.blocks[block].ops {
            let data = &function.ops[op];
            for &operand in &data.operands {
                if matches!(self.places[operand.index()], Some(Place::Pending { .. })) {
                    self.stored(operand)?;
                }
            }
            for &nested in &data.regions {
                self.store_captures(nested)?;
            }
        }
        Ok(())
    }

    fn while_loop(&mut self, op: &OpData) -> Result<()> {
        let function = self.function;
        if let Some((kernel, captures)) = self.scalar_loop(op) {
            return self.loop_of_scalars(op, kernel, &captures);
        }
        let mut state = Vec::with_capacity(op.operands.len());
        for &operand in &op.operands {
            // A copy, which becomes a move when the operand dies here.
            let width = self.tensor(operand)?.dtype.size_bytes();
            let (slot, view) = self.stored(operand)?;
            state.push(self.copy(slot, &view, width));
        }
        self.consume(&op.operands);
        let mut bodies = Vec::with_capacity(2);
        for &region in &op.regions {
            let block = function.regions[region].block;
            for (&argument, &slot) in function.blocks[block].arguments.iter().zip(&state) {
                let view = View::from(&self.tensor(argument)?.shape);
                self.define(argument, slot, view);
            }
            bodies.push(self.body(region, &state)?);
        }
        for (&result, &slot) in op.results.iter().zip(&state) {
            let view = View::from(&self.tensor(result)?.shape);
            self.define(result, slot, view);
        }
        let (Some(body), Some(condition)) = (bodies.pop(), bodies.pop()) else {
            return Err(self.unimplemented(op));
        };
        self.steps.push(Step::While(While { condition, body, state }));
        Ok(())
    }

    fn loop_of_scalars(
        &mut self,
        op: &OpData,
        kernel: ScalarLoop,
        captures: &[Value],
    ) -> Result<()> {
        let function = self.function;
        let mut inputs = Vec::with_capacity(op.operands.len() + captures.len());
        for &value in op.operands.iter().chain(captures) {
            inputs.push(self.dense(value)?);
        }
        self.consume(&op.operands);
        for &region in &op.regions {
            for &inner in &function.blocks[function.regions[region].block].ops {
                self.consume(&function.ops[inner].operands);
            }
        }
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

    fn case(&mut self, op: &OpData) -> Result<()> {
        let selector_value = first(&op.operands)?;
        let selector_type = self.tensor(selector_value)?.dtype;
        let selector = self.dense(selector_value)?;
        self.consume(&op.operands);
        let branches =
            op.regions.iter().map(|&region| self.body(region, &[])).collect::<Result<Vec<_>>>()?;
        let mut outputs = Vec::with_capacity(op.results.len());
        for &result in &op.results {
            let ty = self.tensor(result)?;
            let slot = self.new_slot(ty.size_bytes());
            self.define(result, slot, View::from(&ty.shape));
            outputs.push((slot, ty.size_bytes()));
        }
        self.steps.push(Step::Case(Case { selector, selector_type, branches, outputs }));
        Ok(())
    }

    /// Lowers a region to steps of its own. Its results are distinct slots defined in it, so that
    /// they may be swapped with what they replace, except that result `i` may be `state[i]`.
    fn body(&mut self, region: Region, state: &[Slot]) -> Result<Body> {
        let around = std::mem::take(&mut self.steps);
        let first_own = self.sizes.len();
        let first_moved = self.moved.len();
        let block = self.function.regions[region].block;
        let yielded = self.block(block)?;
        let mut results: Vec<Slot> = Vec::with_capacity(yielded.len());
        for (index, &value) in yielded.iter().enumerate() {
            let slot = self.dense(value)?;
            let stays = state.get(index) == Some(&slot);
            let constant = self.constants.iter().any(|(constant, _)| *constant == slot);
            let fresh = slot.index() >= first_own && !constant && !results.contains(&slot);
            results.push(if stays || fresh {
                slot
            } else {
                let ty = self.tensor(value)?;
                self.copy(slot, &View::from(&ty.shape), ty.dtype.size_bytes())
            });
        }
        self.consume(yielded);
        // What the body copied for itself is not there for the steps around it.
        for (value, place) in self.moved.split_off(first_moved).into_iter().rev() {
            self.places[value.index()] = Some(place);
        }
        let steps = std::mem::replace(&mut self.steps, around);
        Ok(Body { steps, results })
    }
}
