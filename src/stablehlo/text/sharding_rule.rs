//! `#sdy.op_sharding_rule<…>`.

use super::cursor::{Cursor, Parsed, leading};
use crate::stablehlo::op::ShardingRule;

impl Cursor<'_> {
    /// `<([i, k], [k, j])->([i, j]) {i=8, j=16, k=8} reduction={k}, custom>`.
    pub(super) fn sharding_rule(&mut self) -> Parsed<ShardingRule> {
        self.expect("<")?;
        let operands = self.tensor_mappings()?;
        self.expect("->")?;
        let results = self.tensor_mappings()?;
        let mut rule = ShardingRule {
            factor_sizes: Vec::new(),
            operands,
            results,
            reduction: Vec::new(),
            need_replication: Vec::new(),
            permutation: Vec::new(),
            blocked_propagation: Vec::new(),
            is_custom: false,
        };
        if self.eat("{") {
            let mut next = 0;
            rule.factor_sizes = self.list("}", |cursor| {
                let at = cursor.offset();
                if cursor.factors()? != [next] {
                    return cursor.error_at(at, "factors must be in order, beginning with `i`");
                }
                next += 1;
                cursor.expect("=")?;
                cursor.number("the size of a factor")
            })?;
        }
        while !self.peek_word().is_empty() {
            let at = self.offset();
            let factors = match self.word("a kind of factors")? {
                "reduction" => &mut rule.reduction,
                "need_replication" => &mut rule.need_replication,
                "permutation" => &mut rule.permutation,
                "blocked_propagation" => &mut rule.blocked_propagation,
                other => return self.not_known(at, format!("`{other}` of a sharding rule")),
            };
            self.expect("=")?;
            self.expect("{")?;
            *factors = self.list("}", Self::factors)?.concat();
        }
        if self.eat(",") {
            self.expect_word("custom")?;
            rule.is_custom = true;
        }
        self.expect(">")?;
        Ok(rule)
    }

    /// `([i, jk], [])`.
    fn tensor_mappings(&mut self) -> Parsed<Vec<Vec<Vec<usize>>>> {
        self.expect("(")?;
        self.list(")", |cursor| {
            cursor.expect("[")?;
            cursor.list("]", Self::factors)
        })
    }

    /// `ij`: factors side by side, or none.
    fn factors(&mut self) -> Parsed<Vec<usize>> {
        let at = self.offset();
        let mut rest = self.peek_word();
        self.advance(rest.len());
        let mut factors = Vec::new();
        while let Some(letter) = rest.chars().next() {
            let number = (letter as usize).checked_sub(ShardingRule::FIRST_FACTOR as usize);
            let Some(mut number) = number.filter(|&number| number <= ShardingRule::LAST_LETTER)
            else {
                return self.error_at(at, "factors are called `i` to `z`, then `z_1`, `z_2`, …");
            };
            rest = &rest[1..];
            if let Some(beyond) = rest.strip_prefix('_').filter(|_| letter == 'z') {
                let digits = leading(beyond, |byte| byte.is_ascii_digit());
                let beyond_z = digits.parse::<u32>().ok().filter(|_| !digits.starts_with('0'));
                let Some(beyond_z) = beyond_z else {
                    return self.error_at(at, "`z_` must be followed by a number");
                };
                number += beyond_z as usize;
                rest = &beyond[digits.len()..];
            }
            factors.push(number);
        }
        Ok(factors)
    }
}
