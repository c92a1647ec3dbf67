//! Constant folding: what follows from constants alone is computed once, before the program runs.

use super::inline::drop_unused;
use super::{Evaluate, is_pure, piece};
use crate::ifrt::{Result, Status};
use crate::stablehlo::entity::Entity as _;
use crate::stablehlo::{Block, Function, Op, OpData, OpKind, Type, Value, ValueDef};

/// The greatest number of elements that a folded value and what it is made of have: a constant
/// takes memory and is read from there, which is slower than computing most large ones.
const MAX_ELEMENTS: usize = 64;

/// Replaces operations on small constants by what they yield, which `evaluate` computes as the
/// program would.
///
/// # Errors
/// What `evaluate` fails with.
pub(crate) fn fold(function: &mut Function, evaluate: Evaluate<'_>) -> Result<()> {
    let mut is_known = vec![false; function.values.len()];
    let mut folded = false;
    for block in function.blocks.keys().collect::<Vec<_>>() {
        folded |= fold_block(function, block, &mut is_known, evaluate)?;
    }
    if folded {
        drop_unused(function);
    }
    Ok(())
}

/// Folds the operations of one block; blocks around it have been folded before.
fn fold_block(
    function: &mut Function,
    block: Block,
    is_known: &mut [bool],
    evaluate: Evaluate<'_>,
) -> Result<bool> {
    let mut ops = Vec::new();
    for &op in &function.blocks[block].ops {
        let data = &function.ops[op];
        let is_constant = matches!(data.kind, OpKind::Constant(_));
        if is_small(function, data) && (is_constant || is_foldable(data, is_known)) {
            data.results.iter().for_each(|result| is_known[result.index()] = true);
            if !is_constant {
                ops.push(op);
            }
        }
    }
    if ops.is_empty() {
        return Ok(false);
    }
    let results: Vec<Value> =
        ops.iter().flat_map(|&op| &function.ops[op].results).copied().collect();
    let (module, parameters) = piece(function, &with_constants(function, &ops), &results);
    if !parameters.is_empty() {
        return Err(Status::internal("a constant that depends on what is not one"));
    }
    for (value, literal) in results.into_iter().zip(evaluate(&module)?) {
        let ValueDef::Result(op, _) = function.values[value].def else { continue };
        let location = function.ops[op].location;
        let results = std::mem::take(&mut function.ops[op].results);
        function.ops[op] =
            OpData { results, ..OpData::new(OpKind::Constant(literal), Vec::new(), location) };
    }
    Ok(true)
}

/// Whether an operation is a function of constants only. One of several results stays: a constant
/// has one.
fn is_foldable(data: &OpData, is_known: &[bool]) -> bool {
    !data.operands.is_empty()
        && data.operands.iter().all(|operand| is_known[operand.index()])
        && data.results.len() == 1
        && is_pure(data)
}

fn is_small(function: &Function, data: &OpData) -> bool {
    data.results.iter().all(|&value| match function.ty(value) {
        Type::Tensor(ty) => ty.shape.num_elements() <= MAX_ELEMENTS,
        _ => false,
    })
}

/// `ops`, behind the constants that they use.
fn with_constants(function: &Function, ops: &[Op]) -> Vec<Op> {
    let mut all = Vec::with_capacity(2 * ops.len());
    for &operand in ops.iter().flat_map(|&op| &function.ops[op].operands) {
        if let ValueDef::Result(definer, _) = function.values[operand].def
            && matches!(function.ops[definer].kind, OpKind::Constant(_))
            && !all.contains(&definer)
        {
            all.push(definer);
        }
    }
    all.extend(ops);
    all
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::stablehlo::transform::inline;
    use crate::stablehlo::{Literal, Module, parse, verify};

    /// The operations of all blocks of `main` once folded, and how many operations were computed;
    /// each yields its type's first element over and over.
    fn folded(text: &str) -> (Vec<String>, usize) {
        let module = parse(text).unwrap();
        verify(&module).unwrap();
        let mut function = inline(&module, "main").unwrap();
        let computed = Cell::new(0);
        let evaluate = |module: &Module| {
            let main = &module.functions[0];
            computed.set(computed.get() + main.results.len());
            let zeros = main.results.iter().map(|result| match &result.ty {
                Type::Tensor(ty) => Literal::splat(ty.clone(), vec![0; ty.dtype.size_bytes()]),
                _ => None,
            });
            zeros.map(|zero| zero.ok_or_else(|| Status::internal("no tensor"))).collect()
        };
        fold(&mut function, &evaluate).unwrap();
        let ops = function.blocks.values().flat_map(|block| &block.ops);
        let names = ops.map(|&op| function.ops[op].kind.mnemonic().to_owned()).collect();
        (names, computed.get())
    }

    #[test]
    fn chains_of_constants_become_one() {
        let (ops, computed) = folded(
            "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
               %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
               %1 = stablehlo.constant dense<3> : tensor<2xi32>
               %2 = stablehlo.add %0, %1 : tensor<2xi32>
               %3 = stablehlo.convert %2 : (tensor<2xi32>) -> tensor<2xf32>
               %4 = stablehlo.multiply %a, %3 : tensor<2xf32>
               return %4 : tensor<2xf32>
             }",
        );
        assert_eq!(
            (ops, computed),
            (["constant", "multiply", "return"].map(String::from).to_vec(), 2)
        );
    }

    #[test]
    fn bodies_fold_with_the_constants_around_them() {
        let (ops, computed) = folded(
            "func.func @main(%p: tensor<i1>, %a: tensor<f32>) -> tensor<f32> {
               %0 = stablehlo.constant dense<2.0> : tensor<f32>
               %1 = \"stablehlo.if\"(%p) ({
                 %2 = stablehlo.sqrt %0 : tensor<f32>
                 %3 = stablehlo.add %2, %a : tensor<f32>
                 stablehlo.return %3 : tensor<f32>
               }, {
                 stablehlo.return %0 : tensor<f32>
               }) : (tensor<i1>) -> tensor<f32>
               return %1 : tensor<f32>
             }",
        );
        assert_eq!(computed, 1);
        assert!(!ops.contains(&"sqrt".to_owned()), "{ops:?}");
    }

    #[test]
    fn large_values_and_drawn_numbers_stay() {
        let text = |length: usize| {
            format!(
                "func.func @main() -> (tensor<{length}xf32>, tensor<2xf32>) {{
                   %0 = stablehlo.constant dense<2.0> : tensor<f32>
                   %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<{length}xf32>
                   %s = stablehlo.constant dense<2> : tensor<1xi64>
                   %2 = stablehlo.rng %0, %0, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<2xf32>
                   return %1, %2 : tensor<{length}xf32>, tensor<2xf32>
                 }}"
            )
        };
        for (length, expected) in [(MAX_ELEMENTS, 1), (MAX_ELEMENTS + 1, 0)] {
            let (ops, computed) = folded(&text(length));
            assert_eq!(computed, expected, "{length}");
            assert!(ops.contains(&"rng".to_owned()));
        }
    }
}
