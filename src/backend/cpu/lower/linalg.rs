//! Linear algebra and Fourier transforms: each operation one kernel over a stack of arrays. Floats
//! of less than 32 bits are factored in `f32` and rounded once.

use super::Lowering;
use super::data::operand;
use crate::backend::cpu::kernels::carrier::carrier;
use crate::backend::cpu::kernels::fft::Fft;
use crate::backend::cpu::kernels::linalg::{Cholesky, TriangularSolve};
use crate::ifrt::{DType, Result};
use crate::stablehlo::op::FftType;
use crate::stablehlo::{OpData, OpKind, Value};

impl Lowering<'_> {
    /// Lowers one of these operations.
    pub(super) fn linalg(&mut self, op: &OpData) -> Result<()> {
        let dtype = match self.tensor(operand(op, 0)?)?.dtype {
            DType::F16 | DType::BF16 => DType::F32,
            dtype => carrier(dtype).map_or(dtype, |carrier| carrier.dtype),
        };
        match &op.kind {
            OpKind::Cholesky { lower } => {
                let [size, _] = self.matrix_dims(op, operand(op, 0)?)?;
                let kernel = Cholesky::new(dtype, size, *lower);
                self.kernel_in(op, dtype, kernel.ok_or_else(|| self.unimplemented(op))?)
            }
            OpKind::TriangularSolve(solve) => {
                let dims = self.matrix_dims(op, operand(op, 1)?)?;
                let kernel = TriangularSolve::new(dtype, dims, *solve);
                self.kernel_in(op, dtype, kernel.ok_or_else(|| self.unimplemented(op))?)
            }
            _ => Err(self.unimplemented(op)),
        }
    }

    pub(super) fn fft(&mut self, op: &OpData, fft_type: FftType, lengths: &[usize]) -> Result<()> {
        match self.tensor(operand(op, 0)?)?.dtype {
            DType::F32 | DType::C64 => self.kernel(op, Fft::<f32>::new(fft_type, lengths)),
            DType::F64 | DType::C128 => self.kernel(op, Fft::<f64>::new(fft_type, lengths)),
            _ => Err(self.unimplemented(op)),
        }
    }

    /// Rows and columns of a value that is a stack of matrices.
    fn matrix_dims(&self, op: &OpData, value: Value) -> Result<[usize; 2]> {
        let dims = self.tensor(value)?.shape.dims();
        dims.last_chunk().copied().ok_or_else(|| self.unimplemented(op))
    }
}
