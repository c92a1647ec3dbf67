//! How a value is spread that the program says nothing about: as what it comes from.
//!
//! Frontends ask how results are spread that nobody declared, and call the next program with what
//! they are told. Nothing is computed by it.

use std::collections::HashSet;

use super::geometry::local_shape;
use crate::stablehlo::op::{DimSharding, ManualComputation, OpKind, Sharding};
use crate::stablehlo::{Function, Mesh, Module, OpData, Value, ValueDef};

/// Functions that are entered for one value.
const MAX_DEPTH: usize = 32;

/// How `value` of `function` is spread over `mesh`, if it comes from something that is cut: a
/// parameter, a constraint, a manual computation, element by element or through calls and loops.
pub(super) fn spread(
    module: &Module,
    mesh: &Mesh,
    function: &Function,
    value: Value,
) -> Option<Sharding> {
    let ty = function.tensor(value)?;
    let found = Search { module, mesh }.spread(function, value, MAX_DEPTH)?;
    local_shape(mesh, &found, ty, "").is_ok().then_some(found)
}

struct Search<'a> {
    module: &'a Module,
    mesh: &'a Mesh,
}

impl Search<'_> {
    fn spread(&self, function: &Function, value: Value, depth: usize) -> Option<Sharding> {
        let depth = depth.checked_sub(1)?;
        let mut seen = HashSet::from([value]);
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            let mut come_from = |from: Value| {
                let alike = function.tensor(from).map(|ty| &ty.shape)
                    == function.tensor(value).map(|ty| &ty.shape);
                if alike && seen.insert(from) {
                    open.push(from);
                }
            };
            let found = match function.values[value].def {
                ValueDef::Argument(block, position) if block == function.entry => {
                    let param = function.params.get(position);
                    param.and_then(|param| self.cut(param.sharding.as_ref()?))
                }
                ValueDef::Argument(..) => None,
                ValueDef::Result(op, position) => {
                    let data = &function.ops[op];
                    match &data.kind {
                        OpKind::ShardingConstraint(sharding) => self.cut(sharding),
                        OpKind::Reshard(reshard) => self.cut(&reshard.sharding),
                        OpKind::ManualComputation(manual) => {
                            self.made(function, data, manual, position, depth)
                        }
                        OpKind::Call { callee } => {
                            let callee = self.module.function(callee)?;
                            let returned = *returned(callee)?.get(position)?;
                            if let ValueDef::Argument(_, position) = callee.values[returned].def {
                                data.operands
                                    .get(position)
                                    .copied()
                                    .into_iter()
                                    .for_each(come_from);
                                continue;
                            }
                            self.spread(callee, returned, depth)
                        }
                        OpKind::While | OpKind::OptimizationBarrier => {
                            data.operands.get(position).copied().into_iter().for_each(come_from);
                            continue;
                        }
                        OpKind::Unary(_)
                        | OpKind::Binary(_)
                        | OpKind::Compare { .. }
                        | OpKind::Convert
                        | OpKind::Select
                        | OpKind::PropagationBarrier(_)
                        | OpKind::DataFlowEdge(_) => {
                            data.operands.iter().rev().copied().for_each(&mut come_from);
                            continue;
                        }
                        _ => None,
                    }
                }
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// A sharding as one of a result, if it cuts anything.
    fn cut(&self, sharding: &Sharding) -> Option<Sharding> {
        let is_cut = sharding.dims.iter().any(|dim| !dim.axes.is_empty());
        (is_cut && sharding.mesh == self.mesh.name).then(|| self.of(sharding.dims.iter()))
    }

    fn of<'d>(&self, dims: impl Iterator<Item = &'d DimSharding>) -> Sharding {
        let closed = |dim: &DimSharding| DimSharding {
            is_open: false,
            priority: None,
            axes: dim.axes.clone(),
        };
        Sharding { dims: dims.map(closed).collect(), ..Sharding::whole(&self.mesh.name, 0) }
    }

    /// The result of a manual computation: cut by it, and then as the value inside is.
    fn made(
        &self,
        function: &Function,
        data: &OpData,
        manual: &ManualComputation,
        position: usize,
        depth: usize,
    ) -> Option<Sharding> {
        let outside = manual.out_shardings.get(position)?;
        let mut made = self.of(outside.dims.iter());
        let body = function.regions[*data.regions.first()?].block;
        let ret = *function.blocks[body].ops.last()?;
        let inside = *function.ops[ret].operands.get(position)?;
        if let Some(inside) = self.spread(function, inside, depth) {
            for (made, inside) in made.dims.iter_mut().zip(inside.dims) {
                made.axes.extend(inside.axes);
            }
        }
        self.cut(&made)
    }
}

/// The operands of the return.
fn returned(function: &Function) -> Option<&[Value]> {
    let ret = *function.blocks[function.entry].ops.last()?;
    Some(&function.ops[ret].operands)
}
