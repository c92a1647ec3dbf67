//! Linear algebra: each operation one kernel over a stack of matrices.

use super::Lowering;
use super::data::operand;
use crate::backend::cpu::kernels::linalg::{Cholesky, TriangularSolve};
use crate::ifrt::Result;
use crate::stablehlo::{OpData, OpKind, Value};

impl Lowering<'_> {
    /// Lowers one of these operations.
    pub(super) fn linalg(&mut self, op: &OpData) -> Result<()> {
        let dtype = self.tensor(operand(op, 0)?)?.dtype;
        match &op.kind {
            OpKind::Cholesky { lower } => {
                let [size, _] = self.matrix_dims(op, operand(op, 0)?)?;
                let kernel = Cholesky::new(dtype, size, *lower);
                self.kernel(op, kernel.ok_or_else(|| self.unimplemented(op))?)
            }
            OpKind::TriangularSolve(solve) => {
                let dims = self.matrix_dims(op, operand(op, 1)?)?;
                let kernel = TriangularSolve::new(dtype, dims, *solve);
                self.kernel(op, kernel.ok_or_else(|| self.unimplemented(op))?)
            }
            _ => Err(self.unimplemented(op)),
        }
    }

    /// Rows and columns of a value that is a stack of matrices.
    fn matrix_dims(&self, op: &OpData, value: Value) -> Result<[usize; 2]> {
        let dims = self.tensor(value)?.shape.dims();
        dims.last_chunk().copied().ok_or_else(|| self.unimplemented(op))
    }
}
