//! Common subexpressions: what an operation has computed is not computed again in its block.

use std::collections::HashMap;

use super::is_pure;
use crate::stablehlo::entity::Entity as _;
use crate::stablehlo::{Block, Function, Op, OpData, Value};

/// Replaces the results of operations by those of equal ones before them in the same block, and
/// leaves the operations out.
///
/// A body keeps what it computes to itself: one that is called for every element, like that of a
/// reduction, has its own constants.
pub(crate) fn share(function: &mut Function) {
    let mut sharing =
        Sharing { replacements: vec![None; function.values.len()], known: HashMap::new() };
    for block in function.blocks.keys().collect::<Vec<_>>() {
        sharing.block(function, block);
    }
    // A body may use what has been replaced around it.
    for op in function.ops.keys() {
        sharing.replace(&mut function.ops[op].operands);
    }
}

/// What makes operations worth a comparison.
type Key = (&'static str, Vec<Value>);

struct Sharing {
    /// Per value, the one that it equals.
    replacements: Vec<Option<Value>>,
    /// Operations of the block.
    known: HashMap<Key, Vec<Op>>,
}

impl Sharing {
    fn block(&mut self, function: &mut Function, block: Block) {
        self.known.clear();
        let ops = std::mem::take(&mut function.blocks[block].ops);
        let mut kept = Vec::with_capacity(ops.len());
        for op in ops {
            self.replace(&mut function.ops[op].operands);
            let data = &function.ops[op];
            if !is_pure(data) || data.results.is_empty() {
                kept.push(op);
                continue;
            }
            let equals = self.known.entry((data.kind.mnemonic(), data.operands.clone()));
            let equals = equals.or_default();
            let first =
                equals.iter().find(|&&first| is_equal(function, &function.ops[first], data));
            if let Some(&first) = first {
                for (&from, &to) in data.results.iter().zip(&function.ops[first].results) {
                    self.replacements[from.index()] = Some(to);
                }
            } else {
                equals.push(op);
                kept.push(op);
            }
        }
        function.blocks[block].ops = kept;
    }

    fn replace(&self, values: &mut [Value]) {
        for value in values {
            *value = self.replacements[value.index()].unwrap_or(*value);
        }
    }
}

/// Whether operations with the same operands yield the same.
fn is_equal(function: &Function, a: &OpData, b: &OpData) -> bool {
    let types =
        |data: &OpData| data.results.iter().map(|&value| function.ty(value)).collect::<Vec<_>>();
    a.kind == b.kind && a.accuracy == b.accuracy && types(a) == types(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stablehlo::transform::inline;
    use crate::stablehlo::{parse, verify};

    /// The operations of all blocks of `main`, once shared.
    fn shared(text: &str) -> Vec<&'static str> {
        let module = parse(text).unwrap();
        verify(&module).unwrap();
        let mut function = inline(&module, "main").unwrap();
        share(&mut function);
        let blocks = function.blocks.values();
        blocks.flat_map(|block| &block.ops).map(|&op| function.ops[op].kind.mnemonic()).collect()
    }

    #[test]
    fn equal_operations_are_one_and_chains_of_them_too() {
        let ops = shared(
            "func.func @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
               %0 = stablehlo.add %a, %b : tensor<3xf32>
               %1 = stablehlo.add %a, %b : tensor<3xf32>
               %2 = stablehlo.exponential %0 : tensor<3xf32>
               %3 = stablehlo.exponential %1 : tensor<3xf32>
               %4 = stablehlo.multiply %2, %3 : tensor<3xf32>
               return %4 : tensor<3xf32>
             }",
        );
        assert_eq!(ops, ["add", "exponential", "multiply", "return"]);
    }

    #[test]
    fn what_differs_in_anything_stays() {
        let text = "func.func @main(%a: tensor<4xi32>, %b: tensor<4xi32>) -> tensor<2xi32> {
               %0 = stablehlo.subtract %a, %b : tensor<4xi32>
               %1 = stablehlo.subtract %b, %a : tensor<4xi32>
               %2 = stablehlo.slice %0 [0:2] : (tensor<4xi32>) -> tensor<2xi32>
               %3 = stablehlo.slice %0 [1:3] : (tensor<4xi32>) -> tensor<2xi32>
               %4 = stablehlo.slice %1 [1:3] : (tensor<4xi32>) -> tensor<2xi32>
               %5 = stablehlo.add %2, %3 : tensor<2xi32>
               %6 = stablehlo.add %5, %4 : tensor<2xi32>
               return %6 : tensor<2xi32>
             }";
        assert_eq!(shared(text).len(), 8);
        // The same from other types of the results, and drawn numbers, which differ each time.
        let text = "func.func @main(%a: tensor<f32>, %n: tensor<1xi64>) -> (tensor<i32>, tensor<f64>, tensor<2xf32>, tensor<2xf32>) {
               %0 = stablehlo.convert %a : (tensor<f32>) -> tensor<i32>
               %1 = stablehlo.convert %a : (tensor<f32>) -> tensor<f64>
               %s = stablehlo.constant dense<2> : tensor<1xi64>
               %2 = stablehlo.rng %a, %a, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<2xf32>
               %3 = stablehlo.rng %a, %a, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<2xf32>
               return %0, %1, %2, %3 : tensor<i32>, tensor<f64>, tensor<2xf32>, tensor<2xf32>
             }";
        assert_eq!(shared(text).len(), 6);
    }

    #[test]
    fn bodies_share_within_themselves_and_use_what_was_shared_around_them() {
        let ops = shared(
            "func.func @main(%p: tensor<i1>, %a: tensor<f32>) -> tensor<f32> {
               %0 = stablehlo.sine %a : tensor<f32>
               %1 = stablehlo.sine %a : tensor<f32>
               %2 = \"stablehlo.if\"(%p) ({
                 %3 = stablehlo.sine %a : tensor<f32>
                 %4 = stablehlo.sine %a : tensor<f32>
                 %5 = stablehlo.add %3, %4 : tensor<f32>
                 stablehlo.return %5 : tensor<f32>
               }, {
                 %3 = stablehlo.add %0, %1 : tensor<f32>
                 stablehlo.return %3 : tensor<f32>
               }) : (tensor<i1>) -> tensor<f32>
               return %2 : tensor<f32>
             }",
        );
        let mut sorted = ops.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, ["add", "add", "if", "return", "return", "return", "sine", "sine"]);
    }
}
