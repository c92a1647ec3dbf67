//! Bodies of reductions, scatters and sorts: recognised operations, or tile programs.

use super::elementwise::Loops;
use super::{Lowering, first, op_name};
use crate::backend::cpu::scalar_body::ScalarBody;
use crate::backend::cpu::tile::{Builder, Node};
use crate::ifrt::{DType, Result, Status};
use crate::stablehlo::entity::Entity;
use crate::stablehlo::op::Binary;
use crate::stablehlo::{OpData, OpKind, Region, Value, ValueDef};

impl Lowering<'_> {
    /// The operation of a body that applies just one to its two arguments, in either order if
    /// the order does not matter, and the element type it works on.
    pub(super) fn recognise(&self, region: Region) -> Option<(Binary, DType)> {
        let function = self.function;
        let block = &function.blocks[function.regions[region].block];
        let ([a, b], [op, terminator]) = (block.arguments.as_slice(), block.ops.as_slice()) else {
            return None;
        };
        let (op, terminator) = (&function.ops[*op], &function.ops[*terminator]);
        let OpKind::Binary(binary) = op.kind else {
            return None;
        };
        let commutes = matches!(
            binary,
            Binary::Add
                | Binary::Multiply
                | Binary::Maximum
                | Binary::Minimum
                | Binary::And
                | Binary::Or
                | Binary::Xor
        );
        let dtype = function.tensor(*a)?.dtype;
        let applies = op.operands == [*a, *b] || op.operands == [*b, *a];
        (commutes && applies && terminator.operands == op.results).then_some((binary, dtype))
    }

    /// A body of scalar operations as a tile program. `op` is the operation it belongs to.
    pub(super) fn scalar_body(&self, op: &OpData, region: Region) -> Result<ScalarBody> {
        let function = self.function;
        let block = &function.blocks[function.regions[region].block];
        let terminator =
            block.ops.last().ok_or_else(|| Status::internal("a block has no terminator"))?;
        self.scalar_body_of(op, region, &function.ops[*terminator].operands)
    }

    /// As [`Lowering::scalar_body`], for what the body computes of `yielded`.
    pub(super) fn scalar_body_of(
        &self,
        op: &OpData,
        region: Region,
        yielded: &[Value],
    ) -> Result<ScalarBody> {
        let function = self.function;
        let block = &function.blocks[function.regions[region].block];
        let (_, ops) =
            block.ops.split_last().ok_or_else(|| Status::internal("a block has no terminator"))?;
        let mut body =
            BodyBuilder { nodes: Vec::new(), builder: Builder::default(), constants: Vec::new() };
        for &argument in &block.arguments {
            let node = body.builder.input(self.tensor(argument)?.dtype.size_bytes());
            body.nodes.push((argument, node));
        }
        for &inner in ops {
            let inner = &function.ops[inner];
            let result = first(&inner.results)?;
            let ty = self.tensor(result)?;
            if ty.shape.rank() != 0 {
                return Err(self.unimplemented_because(op, "with a body that is not scalar"));
            }
            let node = match &inner.kind {
                OpKind::Constant(_) => continue,
                OpKind::Reshape | OpKind::BroadcastInDim { .. } => {
                    self.body_operand(op, &mut body, first(&inner.operands)?)?
                }
                kind => {
                    let operands = inner
                        .operands
                        .iter()
                        .map(|&operand| self.body_operand(op, &mut body, operand))
                        .collect::<Result<Vec<_>>>()?;
                    let from = self.tensor(first(&inner.operands)?)?.dtype;
                    let same_bits = matches!(kind, OpKind::BitcastConvert)
                        || (matches!(kind, OpKind::Convert) && from == ty.dtype);
                    if same_bits {
                        first(&operands)?
                    } else {
                        let loops = Loops::new(kind, from, ty.dtype).ok_or_else(|| {
                            self.unimplemented_because(
                                op,
                                &format!("with `{}` in its body", op_name(kind)),
                            )
                        })?;
                        loops.apply(&operands, |kernel, operands, width| {
                            body.builder.apply(kernel, operands, width)
                        })
                    }
                }
            };
            body.nodes.push((result, node));
        }
        let outputs = yielded
            .iter()
            .map(|&value| self.body_operand(op, &mut body, value))
            .collect::<Result<Vec<_>>>()?;
        ScalarBody::new(block.arguments.len(), body.builder, body.constants, &outputs)
            .ok_or_else(|| self.unimplemented_because(op, "with a body of this many constants"))
    }

    fn body_operand(&self, op: &OpData, body: &mut BodyBuilder, value: Value) -> Result<Node> {
        if let Some(&(_, node)) = body.nodes.iter().find(|(known, _)| *known == value) {
            return Ok(node);
        }
        // Anything else comes from around the body; only constants are the same for every call.
        if let ValueDef::Result(definer, _) = self.function.values[value].def
            && let OpKind::Constant(literal) = &self.function.ops[definer].kind
        {
            let element = literal.stored_bytes().to_vec();
            let node = body.builder.input(element.len());
            body.constants.push(element);
            body.nodes.push((value, node));
            return Ok(node);
        }
        let reason = format!("with a body that uses the value {} from around it", value.index());
        Err(self.unimplemented_because(op, &reason))
    }
}

struct BodyBuilder {
    nodes: Vec<(Value, Node)>,
    builder: Builder,
    constants: Vec<Vec<u8>>,
}
