//! The operations of `sdy` as text.

use std::fmt;

use super::attribute::{axes, axes_moves, axis_ref_lists, axis_refs, quoted, sharding, shardings};
use super::op::OpPrinter;
use super::separated;
use crate::stablehlo::op::{Move, OpKind, ReductionOp, Reshard, ShardingRule};

impl OpPrinter<'_> {
    /// An operation of `sdy`, which has a custom form.
    pub(super) fn sdy(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.op.kind)?;
        match &self.op.kind {
            OpKind::ManualComputation(manual) => {
                f.write_str("(")?;
                self.operands(f)?;
                write!(
                    f,
                    ") in_shardings={} out_shardings={} manual_axes={} ",
                    shardings(&manual.in_shardings),
                    shardings(&manual.out_shardings),
                    axes(&manual.manual_axes)
                )?;
                self.sdy_body(f)?;
                return self.attributes_and_types(f);
            }
            OpKind::NamedComputation(named) => {
                write!(f, "<{}>(", quoted(&named.name))?;
                self.operands(f)?;
                f.write_str(") ")?;
                for (name, values) in
                    [("in_shardings", &named.in_shardings), ("out_shardings", &named.out_shardings)]
                {
                    if !values.is_empty() {
                        write!(f, "{name}={} ", shardings(values))?;
                    }
                }
                self.sdy_body(f)?;
                return self.attributes_and_types(f);
            }
            OpKind::ShardingConstraint(value) => {
                f.write_str(" ")?;
                self.operands(f)?;
                write!(f, " {}", sharding(value))?;
            }
            OpKind::Reshard(reshard) => self.reshard(f, reshard)?,
            OpKind::ShardingGroup { group_id } => {
                f.write_str(" ")?;
                self.operands(f)?;
                write!(f, " group_id={group_id}")?;
            }
            OpKind::DataFlowEdge(place) => {
                f.write_str(" ")?;
                self.operands(f)?;
                if let Some(value) = place {
                    write!(f, " sharding={}", sharding(value))?;
                }
            }
            OpKind::PropagationBarrier(direction) => {
                f.write_str(" ")?;
                self.operands(f)?;
                write!(f, " allowed_direction={}", direction.name())?;
            }
            _ => {}
        }
        self.attributes(f)?;
        f.write_str(" : ")?;
        separated(f, self.operand_types(), |f, ty| write!(f, "{ty}"))
    }

    /// ` %a <@mesh, […]>`, or ` [{"x"}] %a out_sharding=<@mesh, […]>` of a collective.
    fn reshard(&self, f: &mut fmt::Formatter<'_>, reshard: &Reshard) -> fmt::Result {
        match &reshard.movement {
            Move::Any | Move::CollectivePermute => {}
            Move::AllGather(lists) | Move::AllSlice(lists) | Move::ShardedToUnreduced(lists) => {
                write!(f, " {}", axis_ref_lists(lists))?;
            }
            Move::ReduceScatter(lists, by) => {
                reduction(f, *by)?;
                write!(f, " {}", axis_ref_lists(lists))?;
            }
            Move::AllReduce(axes, by) => {
                reduction(f, *by)?;
                write!(f, " {}", axis_refs(axes))?;
            }
            Move::ReplicatedToUnreduced(axes) => {
                write!(f, " {}", axis_refs(axes))?;
            }
            Move::AllToAll(moves) => write!(f, " {}", axes_moves(moves))?,
        }
        f.write_str(" ")?;
        self.operands(f)?;
        let name = if reshard.movement == Move::Any { "" } else { "out_sharding=" };
        write!(f, " {name}{}", sharding(&reshard.sharding))
    }

    /// `(%arg: type) {…}`.
    fn sdy_body(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = self.printer.function;
        let Some(&region) = self.op.regions.first() else { return f.write_str("() {}") };
        let block = function.regions[region].block;
        f.write_str("(")?;
        separated(f, &function.blocks[block].arguments, |f, &argument| {
            write!(f, "{}: {}", self.printer.name(argument), function.ty(argument))
        })?;
        f.write_str(") {\n")?;
        self.printer.ops(f, block, self.indent + 1, "sdy.return")?;
        write!(f, "{:width$}}}", "", width = 2 * self.indent)
    }
}

/// ` max`, or nothing for the sum.
fn reduction(f: &mut fmt::Formatter<'_>, by: ReductionOp) -> fmt::Result {
    if by == ReductionOp::default() { Ok(()) } else { write!(f, " {}", by.name()) }
}

/// `#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=16, k=8} reduction={k}>`.
pub(super) fn sharding_rule(f: &mut fmt::Formatter<'_>, rule: &ShardingRule) -> fmt::Result {
    f.write_str("#sdy.op_sharding_rule<")?;
    tensors(f, &rule.operands)?;
    f.write_str("->")?;
    tensors(f, &rule.results)?;
    if !rule.factor_sizes.is_empty() {
        f.write_str(" {")?;
        separated(f, rule.factor_sizes.iter().enumerate(), |f, (number, size)| {
            write!(f, "{}={size}", factor(number))
        })?;
        f.write_str("}")?;
    }
    for (name, factors) in [
        ("reduction", &rule.reduction),
        ("need_replication", &rule.need_replication),
        ("permutation", &rule.permutation),
        ("blocked_propagation", &rule.blocked_propagation),
    ] {
        if !factors.is_empty() {
            write!(f, " {name}={{")?;
            separated(f, factors, |f, &number| f.write_str(&factor(number)))?;
            f.write_str("}")?;
        }
    }
    f.write_str(if rule.is_custom { ", custom>" } else { ">" })
}

/// `([i, jk], [])`.
fn tensors(f: &mut fmt::Formatter<'_>, tensors: &[Vec<Vec<usize>>]) -> fmt::Result {
    f.write_str("(")?;
    separated(f, tensors, |f, dims| {
        f.write_str("[")?;
        separated(f, dims, |f, factors| {
            factors.iter().try_for_each(|&number| f.write_str(&factor(number)))
        })?;
        f.write_str("]")
    })?;
    f.write_str(")")
}

/// The name of a factor: `i`, …, `z`, `z_1`, ….
fn factor(number: usize) -> String {
    let letter = u8::try_from(number.min(ShardingRule::LAST_LETTER)).unwrap_or(0);
    let letter = char::from(ShardingRule::FIRST_FACTOR as u8 + letter);
    match number.checked_sub(ShardingRule::LAST_LETTER) {
        None | Some(0) => letter.to_string(),
        Some(beyond) => format!("{letter}_{beyond}"),
    }
}
