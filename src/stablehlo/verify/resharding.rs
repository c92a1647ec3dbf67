//! `sdy.reshard` and the collectives of `sdy`: what they say they do makes the sharding of the result
//! of that of the operand.

use super::Checked;
use super::check::Check;
use super::sharding::{distinct, fits, size_of};
use crate::stablehlo::op::{AxisRef, Move, OpKind, Reshard, Sharding};
use crate::stablehlo::{Mesh, Type, ValueDef};

/// `sdy.reshard` and the collectives of `sdy`.
pub(super) fn reshard(check: &Check<'_>, reshard: &Reshard) -> Checked {
    check.counts(1, 1, 0)?;
    let operand = check.operand(0)?;
    check.equal("type of the result", operand, check.result(0)?, "")?;
    let refuse = |message| check.error("", message);
    fits(check.module, &reshard.sharding, &Type::Tensor(operand.clone())).map_err(refuse)?;
    let Some(mesh) = check.module.mesh(&reshard.sharding.mesh) else { return Ok(()) };
    let rank = operand.shape.rank();
    match &reshard.movement {
        Move::Any | Move::CollectivePermute => {}
        Move::AllGather(lists)
        | Move::AllSlice(lists)
        | Move::ReduceScatter(lists, _)
        | Move::ShardedToUnreduced(lists) => {
            check.length("the list of axes", lists.len(), rank, "")?;
            distinct(mesh, lists.iter().flatten(), "it").map_err(refuse)?;
        }
        Move::AllReduce(axes, _) => distinct(mesh, axes.iter(), "it").map_err(refuse)?,
        Move::ReplicatedToUnreduced(axes) => {
            check.require(!axes.is_empty(), "", || "it names no axes".to_owned())?;
            distinct(mesh, axes.iter(), "it").map_err(refuse)?;
        }
        Move::AllToAll(moves) => {
            check.require(!moves.is_empty(), "", || "it moves nothing".to_owned())?;
            let (from, to): (Vec<usize>, Vec<usize>) =
                moves.iter().map(|axes| (axes.from, axes.to)).unzip();
            let dims = [from.as_slice(), &to].concat();
            check.in_range("the dimensions", &dims, rank, "")?;
            check.unique("the dimensions", &dims, "")?;
            check.sorted("the dimensions moved from", &from, "")?;
            distinct(mesh, moves.iter().flat_map(|axes| &axes.axes), "it").map_err(refuse)?;
        }
    }
    moved(check, mesh, reshard).map_err(refuse)
}

/// What is known of the sharding of an operand.
enum Origin<'a> {
    /// It is this.
    Sharding(&'a Sharding),
    /// Nothing says how it is spread, so it is whole everywhere.
    Nothing,
    /// It is that of an argument of a region, which follows from what is around it.
    Elsewhere,
}

/// How the operand is spread, as far as it is said where it is defined.
fn origin<'a>(check: &'a Check<'_>) -> Origin<'a> {
    let function = check.function;
    let Some(&operand) = check.data.operands.first() else { return Origin::Elsewhere };
    let sharding = match function.values.get(operand).map(|value| value.def) {
        Some(ValueDef::Argument(block, position)) if block == function.entry => {
            function.params.get(position).and_then(|param| param.sharding.as_ref())
        }
        Some(ValueDef::Result(op, position)) => {
            let Some(op) = function.ops.get(op) else { return Origin::Elsewhere };
            match &op.kind {
                OpKind::ShardingConstraint(sharding) => Some(sharding),
                OpKind::Reshard(reshard) => Some(&reshard.sharding),
                OpKind::ManualComputation(manual) => manual.out_shardings.get(position),
                OpKind::NamedComputation(named) => named.out_shardings.get(position),
                OpKind::DataFlowEdge(place) => place.as_deref(),
                _ => op.shardings.get(position),
            }
        }
        _ => return Origin::Elsewhere,
    };
    sharding.map_or(Origin::Nothing, Origin::Sharding)
}

/// Whether the movement makes the sharding of the result of that of the operand; the answer is
/// what is wrong.
fn moved(check: &Check<'_>, mesh: &Mesh, reshard: &Reshard) -> Result<(), String> {
    let Reshard { movement, sharding: to } = reshard;
    let needs_sharding = matches!(
        movement,
        Move::AllGather(_)
            | Move::AllToAll(_)
            | Move::CollectivePermute
            | Move::ShardedToUnreduced(_)
    );
    let whole;
    let from = match origin(check) {
        _ if *movement == Move::Any => return Ok(()),
        Origin::Elsewhere => return Ok(()),
        Origin::Sharding(from) if from.mesh != to.mesh => {
            let (from, to) = (&from.mesh, &to.mesh);
            return Err(format!("its operand is spread over @{from}, its result over @{to}"));
        }
        Origin::Sharding(from) => from,
        Origin::Nothing if needs_sharding => {
            return Err("nothing says how its operand is spread".to_owned());
        }
        Origin::Nothing => {
            whole = Sharding::whole(&to.mesh, to.dims.len());
            &whole
        }
    };
    for (dim, (before, after)) in from.dims.iter().zip(&to.dims).enumerate() {
        let (before, after) = (before.axes.as_slice(), after.axes.as_slice());
        let fits = match movement {
            Move::Any => true,
            Move::AllGather(lists) | Move::ShardedToUnreduced(lists) => {
                let axes = lists.get(dim).map_or(&[][..], Vec::as_slice);
                spans(mesh, before) == spans(mesh, after.iter().chain(axes))
            }
            Move::AllSlice(lists) | Move::ReduceScatter(lists, _) => {
                let axes = lists.get(dim).map_or(&[][..], Vec::as_slice);
                spans(mesh, before.iter().chain(axes)) == spans(mesh, after)
            }
            Move::AllToAll(moves) => {
                let leave =
                    moves.iter().filter(|axes| axes.from == dim).flat_map(|axes| &axes.axes);
                let come = moves.iter().filter(|axes| axes.to == dim).flat_map(|axes| &axes.axes);
                spans(mesh, before.iter().chain(come)) == spans(mesh, after.iter().chain(leave))
            }
            Move::AllReduce(..) | Move::ReplicatedToUnreduced(_) => {
                spans(mesh, before) == spans(mesh, after)
            }
            Move::CollectivePermute => parts(mesh, before) == parts(mesh, after),
        };
        if !fits {
            return Err(format!("it does not make the sharding of dimension {dim} of the result"));
        }
    }
    Ok(())
}

/// The part of an axis, by the number of the axis in the mesh, from one size of parts to another.
type Span = (usize, usize, usize);

/// The parts of axes, in order; those that continue each other are one.
fn spans<'a>(mesh: &Mesh, axes: impl IntoIterator<Item = &'a AxisRef>) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for AxisRef { name, sub_axis } in axes {
        let Some(number) = mesh.axes.iter().position(|(axis, _)| axis == name) else { continue };
        let whole = mesh.axes.get(number).map_or(1, |(_, size)| *size);
        let (from, size) = sub_axis.unwrap_or((1, whole));
        let to = from.saturating_mul(size);
        match spans.last_mut() {
            Some(last) if last.0 == number && last.2 == from => last.2 = to,
            _ => spans.push((number, from, to)),
        }
    }
    spans
}

/// Into how many parts axes cut.
fn parts(mesh: &Mesh, axes: &[AxisRef]) -> usize {
    let sizes = axes.iter().map(|axis| match axis.sub_axis {
        Some((_, size)) => size,
        None => size_of(mesh, &axis.name).unwrap_or(1),
    });
    sizes.fold(1, usize::saturating_mul)
}
