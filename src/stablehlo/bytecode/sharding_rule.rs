//! The sharding rule of an operation.

use super::cursor::{Cursor, Read};
use super::pool::Pool;
use crate::stablehlo::op::ShardingRule;

/// The codes of its parts.
mod code {
    pub(super) const DIMENSION: u64 = 8;
    pub(super) const TENSOR: u64 = 9;
}

/// About how many bytes a copy of `rule` takes.
pub(super) fn weight(rule: &ShardingRule) -> usize {
    let tensors = rule.operands.iter().chain(&rule.results);
    let dims = tensors.map(|dims| size_of_val(dims.as_slice())).sum::<usize>();
    let factors = rule.operands.iter().chain(&rule.results).flatten();
    let factors = factors.map(|factors| size_of_val(factors.as_slice())).sum::<usize>();
    size_of::<ShardingRule>() + dims + factors + size_of_val(rule.factor_sizes.as_slice())
}

impl<'a> Pool<'a> {
    /// Sizes, the mappings of operands and results, four kinds of factors, and who says so.
    pub(super) fn sharding_rule(&mut self, cursor: &mut Cursor<'a>) -> Read<ShardingRule> {
        Ok(ShardingRule {
            factor_sizes: cursor.list(Cursor::signed_varint)?,
            operands: cursor.list(|cursor| self.tensor_mapping(cursor))?,
            results: cursor.list(|cursor| self.tensor_mapping(cursor))?,
            reduction: factors(cursor)?,
            need_replication: factors(cursor)?,
            permutation: factors(cursor)?,
            blocked_propagation: factors(cursor)?,
            is_custom: cursor.byte()? != 0,
        })
    }

    /// The factors of each dimension of a tensor.
    fn tensor_mapping(&mut self, cursor: &mut Cursor<'a>) -> Read<Vec<Vec<usize>>> {
        let mut tensor = self.part(cursor, code::TENSOR, "the mapping of a tensor")?;
        let dims = tensor.list(|cursor| {
            let mut dim = self.part(cursor, code::DIMENSION, "the mapping of a dimension")?;
            let factors = factors(&mut dim)?;
            dim.finish("the mapping of a dimension")?;
            Ok(factors)
        })?;
        tensor.finish("the mapping of a tensor")?;
        Ok(dims)
    }
}

fn factors(cursor: &mut Cursor<'_>) -> Read<Vec<usize>> {
    cursor.list(|cursor| {
        let at = cursor.offset();
        let factor = cursor.signed_varint()?;
        let number = u32::try_from(factor).ok().map(|number| number as usize);
        number.ok_or_else(|| cursor.malformed(at, format!("{factor} is the number of no factor")))
    })
}
