//! Operations that only say where elements are: views.

use super::{Lowering, first};
use crate::backend::cpu::kernels::bitcast::Repack;
use crate::backend::cpu::kernels::elementwise;
use crate::backend::cpu::kernels::iota::Count;
use crate::backend::cpu::view::View;
use crate::ifrt::{DType, Result};
use crate::stablehlo::{OpData, OpKind};

impl Lowering<'_> {
    /// Lowers an operation whose result is a view of its operand.
    pub(super) fn movement(&mut self, op: &OpData) -> Result<()> {
        let result = first(&op.results)?;
        let ty = self.tensor(result)?;
        let dims = ty.shape.dims();
        if let OpKind::Iota { dimension } = op.kind {
            // What has no loop that counts takes its numbers from one that has.
            let counted =
                if elementwise::count(ty.dtype).is_some() { ty.dtype } else { DType::F32 };
            let count = elementwise::count(counted).ok_or_else(|| self.unimplemented(op))?;
            // One line of numbers is stored; the other dimensions repeat it.
            let line = View::dense(&[dims[dimension]]);
            let mut slot = self.new_slot(dims[dimension] * counted.size_bytes());
            self.emit(Count::new(count), Vec::new(), vec![slot]);
            if counted != ty.dtype {
                slot = self.convert_view(op, slot, &line, counted, ty.dtype)?;
            }
            self.define(result, slot, line.broadcast(dims, &[dimension]));
            return Ok(());
        }
        let operand = first(&op.operands)?;
        let operand_ty = self.tensor(operand)?;
        match &op.kind {
            OpKind::Reshape => return self.alias(operand, result),
            OpKind::BroadcastInDim { dimensions }
                if ty.shape.num_elements() == operand_ty.shape.num_elements()
                    && dimensions.is_sorted() =>
            {
                return self.alias(operand, result);
            }
            OpKind::BitcastConvert => {
                let (from, to) = (operand_ty.dtype.bit_width(), ty.dtype.bit_width());
                if from == to {
                    return self.alias(operand, result);
                }
                if from.min(to) < 8 {
                    return self.kernel(op, Repack::new(from, to));
                }
                // Narrower elements are one more dimension of the same bytes.
                let slot = self.dense(operand)?;
                self.define(result, slot, View::dense(dims));
            }
            kind => {
                let (slot, view) = self.stored(operand)?;
                let view = match kind {
                    OpKind::BroadcastInDim { dimensions } => view.broadcast(dims, dimensions),
                    OpKind::Transpose { permutation } => view.transpose(permutation),
                    OpKind::Slice { start, limit, strides } => view.slice(start, limit, strides),
                    OpKind::Reverse { dimensions } => view.reverse(dimensions),
                    _ => return Err(self.unimplemented(op)),
                };
                self.define(result, slot, view);
            }
        }
        self.consume(&op.operands);
        Ok(())
    }
}
