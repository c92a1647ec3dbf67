//! Batch normalization and `map`.

use super::data::{operand, region};
use super::{Lowering, first};
use crate::backend::cpu::kernels::batch_norm::{BatchNorm, Mode};
use crate::backend::cpu::kernels::carrier::carrier;
use crate::backend::cpu::kernels::map::Map;
use crate::ifrt::Result;
use crate::stablehlo::{OpData, op};

impl Lowering<'_> {
    pub(super) fn batch_norm(
        &mut self,
        op: &OpData,
        mode: Mode,
        attributes: op::BatchNorm,
    ) -> Result<()> {
        let ty = self.tensor(operand(op, 0)?)?;
        let op::BatchNorm { epsilon, feature_index } = attributes;
        let dtype = carrier(ty.dtype).map_or(ty.dtype, |carrier| carrier.dtype);
        let kernel = BatchNorm::new(mode, dtype, epsilon, ty.shape.dims(), feature_index);
        self.kernel_in(op, dtype, kernel.ok_or_else(|| self.unimplemented(op))?)
    }

    pub(super) fn map(&mut self, op: &OpData) -> Result<()> {
        let body = self.scalar_body(op, region(op)?)?;
        let out_width = self.tensor(first(&op.results)?)?.dtype.size_bytes();
        self.kernel(op, Map::new(body, self.widths(&op.operands)?, out_width))
    }
}
