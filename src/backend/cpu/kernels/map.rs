//! `map`: a body of scalars applied to every element.

use crate::backend::cpu::scalar_body::ScalarBody;
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::backend::cpu::tile::TILE;

/// `map` of dense operands.
#[derive(Debug)]
pub(crate) struct Map {
    body: ScalarBody,
    /// Per operand, its bytes per element.
    widths: Vec<usize>,
    /// Those of the result.
    out_width: usize,
}

impl Map {
    /// The body applied to operands and giving results of these bytes per element.
    pub(crate) fn new(body: ScalarBody, widths: Vec<usize>, out_width: usize) -> Self {
        Self { body, widths, out_width }
    }
}

impl Kernel for Map {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        let [out] = outputs else {
            return;
        };
        let mut evaluator = self.body.evaluator(TILE);
        for (tile, out) in out.chunks_mut(TILE * self.out_width).enumerate() {
            let len = out.len() / self.out_width;
            let arguments: Vec<&[u8]> = inputs
                .iter()
                .zip(&self.widths)
                .map(|(input, &width)| &input.bytes()[tile * TILE * width..][..len * width])
                .collect();
            evaluator.run(&arguments, len);
            out.copy_from_slice(evaluator.output(0, len));
        }
    }
}
