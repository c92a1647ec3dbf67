//! Operations that move elements to places only a kernel can reach.

use super::{Lowering, first};
use crate::backend::cpu::kernels::carrier::carrier;
use crate::backend::cpu::kernels::dynamic_slice::{DynamicSlice, DynamicUpdateSlice};
use crate::backend::cpu::kernels::elementwise;
use crate::backend::cpu::kernels::gather::Gather;
use crate::backend::cpu::kernels::index::IndexReader;
use crate::backend::cpu::kernels::pad::{Concatenate, Pad};
use crate::backend::cpu::kernels::random::{BitGenerator, Rng};
use crate::backend::cpu::kernels::scatter::{Scatter, Update};
use crate::backend::cpu::kernels::sort::Sort;
use crate::ifrt::{Result, Status};
use crate::stablehlo::{OpData, OpKind, Region, Value};

impl Lowering<'_> {
    /// Lowers one of these operations.
    pub(super) fn data(&mut self, op: &OpData) -> Result<()> {
        let source = self.tensor(first(&op.operands)?)?;
        let result = self.tensor(first(&op.results)?)?;
        let (dims, width) = (source.shape.dims(), source.dtype.size_bytes());
        match &op.kind {
            OpKind::Concatenate { dimension } => {
                let mut runs = Vec::with_capacity(op.operands.len());
                for &operand in &op.operands {
                    let dims = self.tensor(operand)?.shape.dims();
                    runs.push(dims[*dimension..].iter().product::<usize>() * width);
                }
                self.kernel(op, Concatenate::new(runs))
            }
            OpKind::Pad { low, interior, .. } => {
                self.kernel(op, Pad::new(width, dims, result.shape.dims(), low, interior))
            }
            OpKind::DynamicSlice { sizes } => {
                let kernel = match op.operands.get(1) {
                    Some(&start) => DynamicSlice::new(width, self.index(op, start)?, dims, sizes),
                    None => return self.alias(first(&op.operands)?, first(&op.results)?),
                };
                self.kernel(op, kernel)
            }
            OpKind::DynamicUpdateSlice => {
                let update = operand(op, 1)?;
                let sizes = self.tensor(update)?.shape.dims();
                let kernel = match op.operands.get(2) {
                    Some(&start) => {
                        DynamicUpdateSlice::new(width, self.index(op, start)?, dims, sizes)
                    }
                    None => {
                        self.consume(&[first(&op.operands)?]);
                        return self.alias(update, first(&op.results)?);
                    }
                };
                self.kernel(op, kernel)
            }
            OpKind::Gather(gather) => {
                let indices = operand(op, 1)?;
                let reader = self.index(op, indices)?;
                let indices_dims = self.tensor(indices)?.shape.dims();
                let out_dims = result.shape.dims();
                self.kernel(op, Gather::new(width, reader, gather, dims, indices_dims, out_dims))
            }
            OpKind::Scatter(scatter) => {
                let count = op.results.len();
                let indices = operand(op, count)?;
                let reader = self.index(op, indices)?;
                let indices_dims = self.tensor(indices)?.shape.dims();
                let updates_dims = self.tensor(operand(op, count + 1)?)?.shape.dims();
                let update = self.update(op, region(op)?)?;
                let widths = self.widths(&op.results)?;
                let kernel =
                    Scatter::new(update, widths, reader, scatter, dims, indices_dims, updates_dims);
                self.kernel(op, kernel)
            }
            OpKind::Sort { dimension, .. } => {
                let comparator = self.scalar_body(op, region(op)?)?;
                let keys = self.sort_keys(op, region(op)?)?;
                let widths = self.widths(&op.operands)?;
                self.kernel(op, Sort::new(comparator, keys, widths, dims, *dimension))
            }
            OpKind::RngBitGenerator(algorithm) => {
                let bits = self.tensor(result_of(op, 1)?)?;
                let state_words = source.shape.num_elements();
                let kernel =
                    BitGenerator::new(*algorithm, state_words, bits.dtype, bits.shape.dims());
                let reason = format!("with a state of {state_words} words for {bits}");
                self.kernel(op, kernel.ok_or_else(|| self.unimplemented_because(op, &reason))?)
            }
            OpKind::Rng(distribution) => {
                // Narrow types are drawn in their carriers: a float of them may be rounded up to `b`.
                let dtype = carrier(result.dtype).map_or(result.dtype, |carrier| carrier.dtype);
                let stream = self.sizes.len() as u64;
                let kernel = Rng::new(*distribution, dtype, stream);
                let kernel = kernel.ok_or_else(|| self.unimplemented(op))?;
                self.kernel_in(op, dtype, kernel)
            }
            _ => Err(self.unimplemented(op)),
        }
    }

    /// What the body of a scatter does.
    pub(super) fn update(&self, op: &OpData, region: Region) -> Result<Update> {
        if let Some((binary, dtype)) = self.recognise(region)
            && let Some(kernel) = elementwise::binary(binary, dtype)
        {
            return Ok(Update::Binary(kernel));
        }
        let block = &self.function.blocks[self.function.regions[region].block];
        let yielded = block.ops.last().map(|&op| self.function.ops[op].operands.as_slice());
        if yielded == block.arguments.get(op.results.len()..) {
            return Ok(Update::Assign);
        }
        Ok(Update::Body(self.scalar_body(op, region)?))
    }

    /// The reader of an operand that holds indices.
    fn index(&self, op: &OpData, value: Value) -> Result<IndexReader> {
        let dtype = self.tensor(value)?.dtype;
        IndexReader::new(dtype)
            .ok_or_else(|| self.unimplemented_because(op, &format!("with indices of {dtype}")))
    }

    /// Bytes per element of each value.
    pub(super) fn widths(&self, values: &[Value]) -> Result<Vec<usize>> {
        values.iter().map(|&value| Ok(self.tensor(value)?.dtype.size_bytes())).collect()
    }
}

/// The only region of an operation.
pub(super) fn region(op: &OpData) -> Result<Region> {
    first(&op.regions)
}

/// A result the verifier has shown to exist.
fn result_of(op: &OpData, index: usize) -> Result<Value> {
    op.results
        .get(index)
        .copied()
        .ok_or_else(|| Status::internal(format!("an operation lacks result {index}")))
}

/// An operand the verifier has shown to exist.
pub(super) fn operand(op: &OpData, index: usize) -> Result<Value> {
    op.operands
        .get(index)
        .copied()
        .ok_or_else(|| Status::internal(format!("an operation lacks operand {index}")))
}
