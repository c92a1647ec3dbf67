//! Collectives: flat calls of the launch's context with blocked copies around them.
//!
//! Along any dimension, gathering is a flat gather of a new outermost dimension that is then moved
//! into place; scattering and exchanging do the same in reverse. A collective of several operands
//! is one call per operand, each with an ordinal of its own. A reduction by a body that members
//! cannot apply on the way gathers all operands and folds them here.

use super::data::region;
use super::reduce::reduction;
use super::{Lowering, checked_size, first};
use crate::backend::cpu::collective::{CollectiveCall, CollectiveKind};
use crate::backend::cpu::kernels::map::Map;
use crate::backend::cpu::step::{Collective, ProcessId, Slot, Step};
use crate::backend::cpu::view::View;
use crate::backend::{Reduction, Transfer};
use crate::ifrt::{DType, Result, Status};
use crate::stablehlo::op::Collective as Groups;
use crate::stablehlo::{OpData, OpKind, TensorType, Value};

/// How many arrays are folded one after the other, a step for each.
const MAX_FOLDED: usize = 1024;

impl Lowering<'_> {
    pub(super) fn collective(&mut self, op: &OpData) -> Result<()> {
        match &op.kind {
            OpKind::PartitionId => self.process_id(op, ProcessId::Partition),
            OpKind::ReplicaId => self.process_id(op, ProcessId::Replica),
            OpKind::AllReduce(groups) => match self.reduction(op) {
                Some(reduction) => {
                    let kind = CollectiveKind::AllReduce(reduction);
                    self.each_operand(op, |this, operand, result| {
                        this.same_shape(&kind, groups, operand, result)
                    })
                }
                None => self.each_operand(op, |this, operand, result| {
                    this.fold_of_all(op, groups, operand, result)
                }),
            },
            OpKind::CollectiveBroadcast(groups) => {
                self.each_operand(op, |this, operand, result| {
                    this.same_shape(&CollectiveKind::CollectiveBroadcast, groups, operand, result)
                })
            }
            OpKind::CollectivePermute { source_target_pairs, channel_id } => {
                let kind = CollectiveKind::CollectivePermute(source_target_pairs.clone());
                let groups = Groups {
                    replica_groups: Vec::new(),
                    channel_id: *channel_id,
                    use_global_device_ids: false,
                };
                self.each_operand(op, |this, operand, result| {
                    this.same_shape(&kind, &groups, operand, result)
                })
            }
            OpKind::AllGather { dimension, collective } => self
                .each_operand(op, |this, operand, result| {
                    this.all_gather(*dimension, collective, operand, result)
                }),
            OpKind::ReduceScatter { dimension, collective } => {
                let reduction = self.reduction(op);
                self.each_operand(op, |this, operand, result| {
                    this.reduce_scatter(op, *dimension, reduction, collective, operand, result)
                })
            }
            OpKind::AllToAll { split_dimension, concat_dimension, split_count, collective } => self
                .each_operand(op, |this, operand, result| {
                    let cut = (*split_dimension, *concat_dimension, *split_count);
                    this.all_to_all(cut, collective, operand, result)
                }),
            OpKind::Infeed { .. } => self.transfer(op, Transfer::Infeed),
            OpKind::Outfeed { .. } => self.transfer(op, Transfer::Outfeed),
            OpKind::Send(transfer) => self.transfer(op, Transfer::Send(transfer.channel_id)),
            OpKind::Recv(transfer) => self.transfer(op, Transfer::Receive(transfer.channel_id)),
            _ => Err(self.unimplemented(op)),
        }
    }

    pub(super) fn transfer(&mut self, op: &OpData, transfer: Transfer) -> Result<()> {
        let inputs =
            op.operands.iter().map(|&operand| self.dense(operand)).collect::<Result<Vec<_>>>()?;
        self.consume(&op.operands);
        let mut outputs = Vec::with_capacity(op.results.len());
        for &result in &op.results {
            let ty = self.tensor(result)?;
            let slot = self.new_slot(ty.size_bytes());
            self.define(result, slot, View::from(&ty.shape));
            outputs.push((slot, ty.size_bytes()));
        }
        self.steps.push(Step::Transfer { transfer, inputs, outputs });
        Ok(())
    }

    fn process_id(&mut self, op: &OpData, id: ProcessId) -> Result<()> {
        let output = self.new_slot(size_of::<u32>());
        self.define(first(&op.results)?, output, View::dense(&[]));
        self.steps.push(Step::ProcessId { id, output });
        Ok(())
    }

    fn each_operand(
        &mut self,
        op: &OpData,
        lower: impl Fn(&mut Self, Value, Value) -> Result<()>,
    ) -> Result<()> {
        for (&operand, &result) in op.operands.iter().zip(&op.results) {
            lower(self, operand, result)?;
        }
        self.consume(&op.operands);
        Ok(())
    }

    /// What the body of a reducing collective does, if it is one operation that members can apply
    /// on the way.
    fn reduction(&self, op: &OpData) -> Option<Reduction> {
        let (binary, _) = op.regions.first().and_then(|&region| self.recognise(region))?;
        reduction(binary)
    }

    /// A reduction by any other body: every member has all operands and folds them.
    fn fold_of_all(
        &mut self,
        op: &OpData,
        groups: &Groups,
        operand: Value,
        result: Value,
    ) -> Result<()> {
        let ty = self.tensor(result)?;
        let members = self.members(op, groups)?;
        let size = checked_size(&[members, ty.shape.num_elements()], ty.dtype.size_bytes())?;
        let input = self.dense(operand)?;
        let all = self.call(CollectiveKind::AllGather, groups, ty.dtype, input, size)?;
        let folded = self.fold_pieces(op, all, members, ty)?;
        self.define(result, folded, View::from(&ty.shape));
        Ok(())
    }

    /// Arrays of type `ty`, one after the other in `pieces`, folded in their order by the body.
    fn fold_pieces(
        &mut self,
        op: &OpData,
        pieces: Slot,
        count: usize,
        ty: &TensorType,
    ) -> Result<Slot> {
        let (len, width) = (ty.shape.num_elements(), ty.dtype.size_bytes());
        if count > MAX_FOLDED || (count == 0 && len > 0) {
            return Err(self.unimplemented_because(op, "with this body in groups of this size"));
        }
        let function = self.function;
        let block = &function.blocks[function.regions[region(op)?].block];
        let yielded = block.ops.last().and_then(|&op| function.ops[op].operands.first());
        for &value in block.arguments.iter().chain(yielded) {
            if self.tensor(value)?.dtype != ty.dtype {
                return Err(self.unimplemented_because(op, "with a body of another type"));
            }
        }
        let piece = |index: usize| View { offset: index * len, ..View::dense(&[len]) };
        let mut folded = self.copy(pieces, &piece(0), width);
        for index in 1..count {
            let next = self.copy(pieces, &piece(index), width);
            let body = self.scalar_body(op, region(op)?)?;
            let both = self.new_slot(len * width);
            self.emit(Map::new(body, vec![width; 2], width), vec![folded, next], vec![both]);
            folded = both;
        }
        Ok(folded)
    }

    /// How many members every group has, as the specification has groups ("Collective ops").
    fn members(&self, op: &OpData, groups: &Groups) -> Result<usize> {
        let listed = match groups.replica_groups.as_slice() {
            [] => self.num_replicas,
            [first, rest @ ..] if rest.iter().all(|group| group.len() == first.len()) => {
                first.len()
            }
            _ => {
                let reason = "with this body and groups of different sizes";
                return Err(self.unimplemented_because(op, reason));
            }
        };
        let of_partitions = groups.channel_id > 0 && !groups.use_global_device_ids;
        let partitions = if of_partitions { self.num_partitions } else { 1 };
        Ok(listed.saturating_mul(partitions))
    }

    /// Emits the flat call and returns the slot of its result.
    fn call(
        &mut self,
        kind: CollectiveKind,
        groups: &Groups,
        dtype: DType,
        input: Slot,
        output_bytes: usize,
    ) -> Result<Slot> {
        let output = self.new_slot(output_bytes);
        let call = CollectiveCall {
            kind,
            dtype,
            replica_groups: groups.replica_groups.clone(),
            channel_id: groups.channel_id,
            use_global_device_ids: groups.use_global_device_ids,
        };
        let ordinal = self.num_collectives;
        self.num_collectives = ordinal
            .checked_add(1)
            .ok_or_else(|| Status::invalid_argument("the program has too many collectives"))?;
        let output_sized = (output, output_bytes);
        self.steps.push(Step::Collective(Collective {
            call,
            ordinal,
            input,
            output: output_sized,
        }));
        Ok(output)
    }

    fn same_shape(
        &mut self,
        kind: &CollectiveKind,
        groups: &Groups,
        operand: Value,
        result: Value,
    ) -> Result<()> {
        let ty = self.tensor(result)?;
        let input = self.dense(operand)?;
        let output = self.call(kind.clone(), groups, ty.dtype, input, ty.size_bytes())?;
        self.define(result, output, View::from(&ty.shape));
        Ok(())
    }

    fn all_gather(
        &mut self,
        dimension: usize,
        groups: &Groups,
        operand: Value,
        result: Value,
    ) -> Result<()> {
        let (from, to) = (self.tensor(operand)?, self.tensor(result)?);
        let local = from.shape.dims();
        let members = to.shape.dims()[dimension].checked_div(local[dimension]).unwrap_or(0);
        let input = self.dense(operand)?;
        let flat =
            self.call(CollectiveKind::AllGather, groups, to.dtype, input, to.size_bytes())?;
        self.join(flat, members, local, dimension, result)
    }

    /// Defines `result` as the pieces of shape `local`, stored one after the other in `flat`, put
    /// together along `dimension`.
    fn join(
        &mut self,
        flat: Slot,
        members: usize,
        local: &[usize],
        dimension: usize,
        result: Value,
    ) -> Result<()> {
        let ty = self.tensor(result)?;
        let mut stacked = vec![members];
        stacked.extend(local);
        let mut order: Vec<usize> = (1..=local.len()).collect();
        order.insert(dimension, 0);
        let joined = View::dense(&stacked).transpose(&order);
        match joined.reshape(ty.shape.dims()) {
            Some(view) => self.define(result, flat, view),
            None => {
                let copied = self.copy(flat, &joined, ty.dtype.size_bytes());
                self.define(result, copied, View::from(&ty.shape));
            }
        }
        Ok(())
    }

    /// A slot with `operand` cut along `dimension` into `pieces`, one after the other, and the
    /// shape of a piece.
    fn cut(
        &mut self,
        operand: Value,
        dimension: usize,
        pieces: usize,
    ) -> Result<(Slot, Vec<usize>)> {
        let ty = self.tensor(operand)?;
        let width = ty.dtype.size_bytes();
        let mut piece = ty.shape.dims().to_vec();
        piece[dimension] = piece[dimension].checked_div(pieces).unwrap_or(0);
        let mut split = piece.clone();
        split.insert(dimension, pieces);
        let mut order: Vec<usize> = (0..split.len()).filter(|&i| i != dimension).collect();
        order.insert(0, dimension);
        let slot = self.dense(operand)?;
        let view = View::dense(&split).transpose(&order);
        if view.is_dense() {
            return Ok((slot, piece));
        }
        Ok((self.copy(slot, &view, width), piece))
    }

    fn reduce_scatter(
        &mut self,
        op: &OpData,
        dimension: usize,
        reduction: Option<Reduction>,
        groups: &Groups,
        operand: Value,
        result: Value,
    ) -> Result<()> {
        let (from, to) = (self.tensor(operand)?, self.tensor(result)?);
        let pieces =
            from.shape.dims()[dimension].checked_div(to.shape.dims()[dimension]).unwrap_or(0);
        let (input, _) = self.cut(operand, dimension, pieces)?;
        let output = match reduction {
            Some(reduction) => {
                let kind = CollectiveKind::ReduceScatter(reduction);
                self.call(kind, groups, to.dtype, input, to.size_bytes())?
            }
            // Partitions have no exchange of pieces: an all_to_all of theirs has other groups.
            None if groups.channel_id > 0 => {
                return Err(self.unimplemented_because(op, "with this body among partitions"));
            }
            None => {
                // Every member has its piece of everybody's and folds these.
                let kind = CollectiveKind::AllToAll;
                let all = self.call(kind, groups, to.dtype, input, from.size_bytes())?;
                self.fold_pieces(op, all, pieces, to)?
            }
        };
        self.define(result, output, View::from(&to.shape));
        Ok(())
    }

    fn all_to_all(
        &mut self,
        (split_dimension, concat_dimension, split_count): (usize, usize, usize),
        groups: &Groups,
        operand: Value,
        result: Value,
    ) -> Result<()> {
        let ty = self.tensor(result)?;
        let (input, piece) = self.cut(operand, split_dimension, split_count)?;
        let flat = self.call(CollectiveKind::AllToAll, groups, ty.dtype, input, ty.size_bytes())?;
        self.join(flat, split_count, &piece, concat_dimension, result)
    }
}
