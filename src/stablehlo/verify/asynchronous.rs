//! `async_start` and `async_done`.

use super::check::Check;
use super::{Checked, shown};
use crate::stablehlo::Type;
use crate::stablehlo::op::OpKind;

/// `async_start`: a collective or a slice, alone in the body.
pub(super) fn start(check: &Check<'_>) -> Checked {
    check.counts(check.data.operands.len(), 1, 1)?;
    let function = check.function;
    let block = check.data.regions.first().map(|&region| function.regions[region].block);
    let Some(block) = block.map(|block| &function.blocks[block]) else { return Ok(()) };
    let &[op, ret] = block.ops.as_slice() else {
        let count = block.ops.len().saturating_sub(1);
        return Err(check.error("C1", format!("the body must have one operation, has {count}")));
    };
    let (op, ret) = (&function.ops[op], &function.ops[ret]);
    let may_run = matches!(
        op.kind,
        OpKind::AllReduce(_)
            | OpKind::AllGather { .. }
            | OpKind::AllToAll { .. }
            | OpKind::CollectivePermute { .. }
            | OpKind::ReduceScatter { .. }
            | OpKind::CollectiveBroadcast(_)
            | OpKind::Slice { .. }
            | OpKind::DynamicSlice { .. }
            | OpKind::DynamicUpdateSlice
    );
    check.require(may_run, "C2", || format!("{} is neither a collective nor a slice", op.kind))?;
    let (taken, given) = (check.types(&block.arguments), check.operand_types());
    let passes = taken == given && op.operands == block.arguments;
    check.require(passes, "C3", || {
        format!("the body passes {}, given are {}", shown(&taken), shown(&given))
    })?;
    let expected = [Type::Future(check.types(&op.results))];
    let found = check.result_types();
    check.require(found == expected && ret.operands == op.results, "C4", || {
        format!("the result is {}, expected {}", shown(&found), shown(&expected))
    })
}

/// `async_done`.
pub(super) fn done(check: &Check<'_>) -> Checked {
    check.counts(1, check.data.results.len(), 0)?;
    let operand = check.operand_types();
    let [Type::Future(expected)] = operand.as_slice() else {
        return Err(check.error("I1", format!("expected a future, found {}", shown(&operand))));
    };
    let found = check.result_types();
    check.require(found == *expected, "C1", || {
        format!("the results are {}, expected {}", shown(&found), shown(expected))
    })
}
