//! Tokens, tuples, and what is sent and received.

use super::check::Check;
use super::{Checked, collective, shown};
use crate::stablehlo::Type;
use crate::stablehlo::op::{ChannelType, Transfer};

/// `after_all`.
pub(super) fn after_all(check: &Check<'_>) -> Checked {
    let operands = check.data.operands.len();
    check.counts(operands, 1, 0)?;
    tokens(check, &check.operand_types(), "I1")?;
    tokens(check, &check.result_types(), "O1")
}

fn tokens(check: &Check<'_>, types: &[Type], constraint: &'static str) -> Checked {
    check.require(types.iter().all(|ty| *ty == Type::Token), constraint, || {
        format!("expected tokens, found {}", shown(types))
    })
}

/// Only tensors, then a token.
fn tensors_and_token(
    check: &Check<'_>,
    types: &[Type],
    [tensors, token]: [&'static str; 2],
) -> Checked {
    let Some((last, first)) = types.split_last() else {
        return Err(check.error(token, "a token is missing"));
    };
    check.require(*last == Type::Token, token, || format!("expected a token, found {last}"))?;
    check.require(first.iter().all(|ty| matches!(ty, Type::Tensor(_))), tensors, || {
        format!("expected tensors before the token, found {}", shown(first))
    })
}

/// `tuple`.
pub(super) fn tuple(check: &Check<'_>) -> Checked {
    check.counts(check.data.operands.len(), 1, 0)?;
    let expected = [Type::Tuple(check.operand_types())];
    let found = check.result_types();
    check.require(found == expected, "C1", || {
        format!("the result is {}, expected {}", shown(&found), shown(&expected))
    })
}

/// `get_tuple_element`.
pub(super) fn get_tuple_element(check: &Check<'_>, index: usize) -> Checked {
    check.counts(1, 1, 0)?;
    let operand = check.operand_types();
    let [Type::Tuple(elements)] = operand.as_slice() else {
        return Err(check.error("I1", format!("expected a tuple, found {}", shown(&operand))));
    };
    let Some(expected) = elements.get(index) else {
        let message = format!("index = {index} must be less than {}", elements.len());
        return Err(check.error("C1", message));
    };
    let found = check.result_types();
    check.require(found == [expected.clone()], "C2", || {
        format!("the result is {}, expected {expected}", shown(&found))
    })
}

/// `infeed`.
pub(super) fn infeed(check: &Check<'_>) -> Checked {
    check.counts(1, check.data.results.len(), 0)?;
    tokens(check, &check.operand_types(), "I1")?;
    let results = check.result_types();
    check.require(!results.is_empty(), "C1", || "it has no results".to_owned())?;
    tensors_and_token(check, &results, ["C2", "C3"])
}

/// `outfeed`.
pub(super) fn outfeed(check: &Check<'_>) -> Checked {
    check.counts(check.data.operands.len(), 1, 0)?;
    tensors_and_token(check, &check.operand_types(), ["I1", "I2"])?;
    tokens(check, &check.result_types(), "O1")
}

/// `send`.
pub(super) fn send(check: &Check<'_>, transfer: &Transfer) -> Checked {
    check.counts(check.data.operands.len(), 1, 0)?;
    tensors_and_token(check, &check.operand_types(), ["I1", "I2"])?;
    tokens(check, &check.result_types(), "O1")?;
    channel(check, transfer)
}

/// `recv`.
pub(super) fn recv(check: &Check<'_>, transfer: &Transfer) -> Checked {
    check.counts(1, check.data.results.len(), 0)?;
    tokens(check, &check.operand_types(), "I1")?;
    tensors_and_token(check, &check.result_types(), ["O1", "O1"])?;
    channel(check, transfer)
}

/// Who is at the other end; what comes from the host has a channel type of its own, too.
fn channel(check: &Check<'_>, transfer: &Transfer) -> Checked {
    let to_host = transfer.channel_type != ChannelType::DeviceToDevice;
    check.require(to_host == transfer.is_host_transfer, "C5", || {
        let whom = if transfer.is_host_transfer { "the host" } else { "a device" };
        format!("the channel type {} is not one to {whom}", transfer.channel_type.number())
    })?;
    let count = collective::partitions_or_replicas(check, transfer.channel_id);
    collective::pairs(check, &transfer.source_target_pairs, count)
}
