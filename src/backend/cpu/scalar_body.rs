//! A body of scalar operations, applied to many elements at once.

use super::tile::{Builder, MAX_INPUTS, Node, Registers, TileProgram};

/// A compiled body: as many arguments as the operation passes, then constants.
#[derive(Debug)]
pub(crate) struct ScalarBody {
    program: TileProgram,
    num_arguments: usize,
    constants: Vec<Vec<u8>>,
}

impl ScalarBody {
    /// A body whose builder took `num_arguments` inputs, then one per constant. `None` when
    /// together they are more than a tile program may have.
    pub(crate) fn new(
        num_arguments: usize,
        builder: Builder,
        constants: Vec<Vec<u8>>,
        outputs: &[Node],
    ) -> Option<Self> {
        let fits = builder.num_inputs() <= MAX_INPUTS;
        fits.then(|| Self { program: builder.finish(outputs), num_arguments, constants })
    }

    /// An evaluator for up to `max_len` elements at a time, at most a tile.
    pub(crate) fn evaluator(&self, max_len: usize) -> Evaluator<'_> {
        let constants = self
            .constants
            .iter()
            .map(|element| {
                let mut tile = vec![0_u128; (max_len * element.len()).div_ceil(16)];
                let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut tile);
                for chunk in bytes.chunks_exact_mut(element.len().max(1)) {
                    chunk.copy_from_slice(element);
                }
                tile
            })
            .collect();
        Evaluator { body: self, constants, registers: Registers::default() }
    }
}

/// Runs a [`ScalarBody`].
pub(crate) struct Evaluator<'b> {
    body: &'b ScalarBody,
    constants: Vec<Vec<u128>>,
    registers: Registers,
}

impl Evaluator<'_> {
    /// Applies the body to `len` elements of every argument.
    pub(crate) fn run(&mut self, arguments: &[&[u8]], len: usize) {
        let mut inputs: [&[u8]; MAX_INPUTS] = [&[]; MAX_INPUTS];
        let count = self.body.num_arguments.min(arguments.len());
        inputs[..count].copy_from_slice(&arguments[..count]);
        for ((tile, element), input) in
            self.constants.iter().zip(&self.body.constants).zip(&mut inputs[count..])
        {
            *input = &bytemuck::cast_slice(tile)[..len * element.len()];
        }
        self.body.program.run(&inputs, len, &mut self.registers);
    }

    /// The `index`th result of the last run.
    pub(crate) fn output(&self, index: usize, len: usize) -> &[u8] {
        self.body.program.output(index, len, &self.registers)
    }
}
