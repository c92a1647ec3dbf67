//! Comparators that are an order of keys.
//!
//! One says `f(x) < f(y)`, or for several keys, `f(x) < f(y) | (f(x) == f(y) & …)`, where the same
//! operations make `f(x)` of the left elements and `f(y)` of the right ones.

use std::collections::HashSet;

use super::Lowering;
use crate::backend::cpu::kernels::sort_key::SortKey;
use crate::ifrt::Result;
use crate::stablehlo::entity::Entity;
use crate::stablehlo::op::{Binary, CompareType, Direction};
use crate::stablehlo::{Block, OpData, OpKind, Region, Value, ValueDef};

/// A comparison of two values made alike.
struct Comparison {
    left: Value,
    right: Value,
    direction: Direction,
    compare_type: Option<CompareType>,
}

impl Lowering<'_> {
    /// The keys that a comparator orders by, or none.
    pub(super) fn sort_keys(&self, op: &OpData, region: Region) -> Result<Vec<SortKey>> {
        let function = self.function;
        let block = function.regions[region].block;
        let terminator = function.blocks[block].ops.last().map(|&op| &function.ops[op]);
        let Some([yielded]) = terminator.map(|terminator| terminator.operands.as_slice()) else {
            return Ok(Vec::new());
        };
        let mut keys = Vec::new();
        for comparison in self.comparisons(block, *yielded).unwrap_or_default() {
            let Comparison { left, direction, compare_type, .. } = comparison;
            let dtype = self.tensor(left)?.dtype;
            let body = self.scalar_body_of(op, region, &[left])?;
            match SortKey::new(body, dtype, direction, compare_type) {
                Some(key) => keys.push(key),
                None => return Ok(Vec::new()),
            }
        }
        Ok(keys)
    }

    /// The comparisons that decide a value, the first one first.
    fn comparisons(&self, block: Block, mut value: Value) -> Option<Vec<Comparison>> {
        let mut comparisons = Vec::new();
        loop {
            let op = self.definer(value)?;
            if let Some(last) = self.comparison(block, op) {
                comparisons.push(last);
                return Some(comparisons);
            }
            // decided | (equal & rest)
            let (OpKind::Binary(Binary::Or), [decided, open]) = (&op.kind, op.operands.as_slice())
            else {
                return None;
            };
            let open = self.definer(*open)?;
            let (OpKind::Binary(Binary::And), [equal, rest]) =
                (&open.kind, open.operands.as_slice())
            else {
                return None;
            };
            let decided = self.comparison(block, self.definer(*decided)?)?;
            let equal = self.comparison(block, self.definer(*equal)?)?;
            let same = |a: Value, b: Value| self.is_copy(block, a, b, false, &mut HashSet::new());
            let matches = equal.direction == Direction::Eq
                && equal.compare_type == decided.compare_type
                && same(equal.left, decided.left)
                && same(equal.right, decided.right);
            if !matches {
                return None;
            }
            comparisons.push(decided);
            value = *rest;
        }
    }

    /// An operation that compares what it makes of the left elements with what it makes, alike,
    /// of the right ones.
    fn comparison(&self, block: Block, op: &OpData) -> Option<Comparison> {
        let (OpKind::Compare { direction, compare_type }, &[left, right]) =
            (&op.kind, op.operands.as_slice())
        else {
            return None;
        };
        let mirrored = self.is_copy(block, left, right, true, &mut HashSet::new());
        mirrored.then_some(Comparison {
            left,
            right,
            direction: *direction,
            compare_type: *compare_type,
        })
    }

    /// Whether two values of a comparator are made alike: the first of left elements only and the
    /// second of the right ones in their place if `mirrored`, else of the same elements.
    fn is_copy(
        &self,
        block: Block,
        a: Value,
        b: Value,
        mirrored: bool,
        known: &mut HashSet<(usize, usize)>,
    ) -> bool {
        let function = self.function;
        let arguments = &function.blocks[block].arguments;
        let position = |value| arguments.iter().position(|&argument| argument == value);
        match (position(a), position(b)) {
            (Some(a), Some(b)) if mirrored => return a % 2 == 0 && b == a + 1,
            (Some(a), Some(b)) => return a == b,
            (None, None) => {}
            _ => return false,
        }
        // What has been compared and was not found to differ need not be compared again.
        if !known.insert((a.index(), b.index())) {
            return true;
        }
        match (self.definer(a), self.definer(b)) {
            (Some(first), Some(second)) => {
                first.kind == second.kind
                    && first.regions.is_empty()
                    && first.operands.len() == second.operands.len()
                    && function.ty(a) == function.ty(b)
                    && first
                        .operands
                        .iter()
                        .zip(&second.operands)
                        .all(|(&a, &b)| self.is_copy(block, a, b, mirrored, known))
            }
            _ => a == b,
        }
    }

    fn definer(&self, value: Value) -> Option<&OpData> {
        match self.function.values[value].def {
            ValueDef::Result(op, _) => Some(&self.function.ops[op]),
            ValueDef::Argument(..) => None,
        }
    }
}
