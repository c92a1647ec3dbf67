//! The operations of `sdy`.

use super::{Attributes, Built};
use crate::stablehlo::op::{
    ManualComputation, Move, NamedComputation, OpKind, PropagationDirection, ReductionOp, Reshard,
};

/// The operations of this file.
pub(super) const KNOWN: &[&str] = &[
    "manual_computation",
    "sharding_constraint",
    "reshard",
    "sharding_group",
    "propagation_barrier",
    "data_flow_edge",
    "named_computation",
    "all_gather",
    "all_slice",
    "all_to_all",
    "collective_permute",
    "all_reduce",
    "reduce_scatter",
    "sharded_to_unreduced",
    "replicated_to_unreduced",
    "constant",
    "return",
];

/// The operation called `op`, if it is one of this file's.
pub(super) fn kind(op: &str, attributes: &mut Attributes) -> Built<Option<OpKind>> {
    let movement = match op {
        "manual_computation" => {
            return Ok(Some(OpKind::ManualComputation(ManualComputation {
                in_shardings: attributes.shardings("in_shardings")?,
                out_shardings: attributes.shardings("out_shardings")?,
                manual_axes: attributes.axes("manual_axes")?,
            })));
        }
        "sharding_constraint" => {
            return Ok(Some(OpKind::ShardingConstraint(attributes.sharding("sharding")?)));
        }
        "sharding_group" => {
            return Ok(Some(OpKind::ShardingGroup { group_id: attributes.integer("group_id")? }));
        }
        "propagation_barrier" => {
            let case = attributes.integer("allowed_direction")?;
            let direction = numbered(attributes, case, PropagationDirection::ALL)?;
            return Ok(Some(OpKind::PropagationBarrier(direction)));
        }
        "data_flow_edge" => {
            let sharding = attributes.optional_sharding("sharding")?;
            return Ok(Some(OpKind::DataFlowEdge(sharding.map(Box::new))));
        }
        "named_computation" => {
            return Ok(Some(OpKind::NamedComputation(Box::new(NamedComputation {
                name: attributes.string("name")?,
                in_shardings: attributes.optional_shardings("in_shardings")?,
                out_shardings: attributes.optional_shardings("out_shardings")?,
            }))));
        }
        // As StableHLO's, under a name that keeps other compilers from folding it.
        "constant" => return Ok(Some(OpKind::Constant(attributes.elements("value")?))),
        "return" => return Ok(Some(OpKind::Return)),
        "reshard" => {
            let sharding = attributes.sharding("sharding")?;
            let reshard = Reshard { movement: Move::Any, sharding };
            return Ok(Some(OpKind::Reshard(Box::new(reshard))));
        }
        "all_gather" => Move::AllGather(attributes.axis_ref_lists("gathering_axes")?),
        "all_slice" => Move::AllSlice(attributes.axis_ref_lists("slicing_axes")?),
        "all_to_all" => Move::AllToAll(attributes.axes_moves("params")?),
        "collective_permute" => Move::CollectivePermute,
        "all_reduce" => {
            Move::AllReduce(attributes.axis_refs("reduction_axes")?, reduction_op(attributes)?)
        }
        "reduce_scatter" => Move::ReduceScatter(
            attributes.axis_ref_lists("reduce_scatter_axes")?,
            reduction_op(attributes)?,
        ),
        "sharded_to_unreduced" => Move::ShardedToUnreduced(attributes.axis_ref_lists("axes")?),
        "replicated_to_unreduced" => Move::ReplicatedToUnreduced(attributes.axis_refs("axes")?),
        _ => return Ok(None),
    };
    let sharding = attributes.sharding("out_sharding")?;
    Ok(Some(OpKind::Reshard(Box::new(Reshard { movement, sharding }))))
}

/// `reduction_op`, which is the sum when absent.
fn reduction_op(attributes: &mut Attributes) -> Built<ReductionOp> {
    match attributes.optional_integer("reduction_op")? {
        Some(case) => numbered(attributes, case, ReductionOp::ALL),
        None => Ok(ReductionOp::default()),
    }
}

/// The case of number `case`: the enumerations of `sdy` are numbers where they are attributes.
fn numbered<T: Copy>(attributes: &Attributes, case: usize, cases: &[T]) -> Built<T> {
    let found = cases.get(case).copied();
    found.ok_or_else(|| attributes.not_known(&format!("the case of number {case}")))
}
