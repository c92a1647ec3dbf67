//! `reduce` and `reduce_window` by any body, over any view of the operands.
//!
//! Every result starts at the initial value and meets its elements in row-major order of the
//! reduced dimensions. A tile of results advances together, so the body runs on whole tiles.

use super::elementwise::BinaryKernel;
use super::shape::copy_range_bytes;
use crate::backend::cpu::scalar_body::ScalarBody;
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::backend::cpu::tile::TILE;
use crate::backend::cpu::view::{Odometer, View, advance};

/// What is done with a result so far and the next element.
#[derive(Debug)]
pub(crate) enum Combine {
    /// One operation of one operand.
    Binary(BinaryKernel),
    /// A body: all results so far, then all next elements.
    Body(ScalarBody),
}

/// A fold of one or more operands of the same dimensions; the inputs are the operands, then their
/// initial values.
#[derive(Debug)]
pub(crate) struct Fold {
    combine: Combine,
    /// Per operand, its bytes per element.
    widths: Vec<usize>,
    /// Per operand, the elements that belong to the first index of the reduced dimensions.
    kept: Vec<View>,
    reduced_dims: Vec<usize>,
    /// Per operand, how the reduced dimensions move through it.
    reduced_strides: Vec<Vec<isize>>,
}

impl Fold {
    /// A fold of views with equal dimensions along `dimensions`.
    pub(crate) fn new(
        combine: Combine,
        widths: Vec<usize>,
        views: &[View],
        dimensions: &[usize],
    ) -> Self {
        let pick = |view: &View, reduced: bool| -> (Vec<usize>, Vec<isize>) {
            (0..view.dims.len())
                .filter(|i| dimensions.contains(i) == reduced)
                .map(|i| (view.dims[i], view.strides[i]))
                .unzip()
        };
        let kept = views
            .iter()
            .map(|view| {
                let (dims, strides) = pick(view, false);
                View { offset: view.offset, dims, strides }.collapsed()
            })
            .collect();
        let reduced_dims = views.first().map(|view| pick(view, true).0).unwrap_or_default();
        let reduced_strides = views.iter().map(|view| pick(view, true).1).collect();
        Self { combine, widths, kept, reduced_dims, reduced_strides }
    }
}

impl Kernel for Fold {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        let count = self.widths.len();
        let num_results = match (outputs.first(), self.widths.first()) {
            (Some(out), Some(&width)) => out.len() / width,
            _ => return,
        };
        let mut views = self.kept.clone();
        let tiles = || self.widths.iter().map(|_| vec![0_u128; TILE]).collect::<Vec<_>>();
        let (mut results, mut elements) = (tiles(), tiles());
        let mut evaluator = match &self.combine {
            Combine::Body(body) => Some(body.evaluator(TILE.min(num_results))),
            Combine::Binary(_) => None,
        };
        let mut spare = vec![0_u128; TILE];
        for start in (0..num_results).step_by(TILE) {
            let len = TILE.min(num_results - start);
            for (i, &width) in self.widths.iter().enumerate() {
                let init = inputs[count + i].bytes();
                for element in bytes_mut(&mut results[i], len * width).chunks_exact_mut(width) {
                    element.copy_from_slice(init);
                }
            }
            // All operands are walked by the one counter over the reduced dimensions.
            let mut odometer = Odometer::new(&self.reduced_dims, [], []);
            while let Some(([], index)) = odometer.next() {
                for (i, &width) in self.widths.iter().enumerate() {
                    views[i].offset = self.reduced_strides[i]
                        .iter()
                        .zip(index)
                        .fold(self.kept[i].offset, |position, (&stride, &index)| {
                            advance(position, stride, index)
                        });
                    let tile = bytes_mut(&mut elements[i], len * width);
                    copy_range_bytes(width, inputs[i].bytes(), &views[i], start, tile);
                }
                match (&self.combine, &mut evaluator) {
                    (Combine::Binary(kernel), _) => {
                        let size = len * self.widths[0];
                        let out = bytes_mut(&mut spare, size);
                        kernel(bytes(&results[0], size), bytes(&elements[0], size), out);
                        std::mem::swap(&mut results[0], &mut spare);
                    }
                    (Combine::Body(_), Some(evaluator)) => {
                        let all = results.iter().chain(&elements).zip(self.widths.iter().cycle());
                        let arguments: Vec<&[u8]> =
                            all.map(|(tile, &width)| bytes(tile, len * width)).collect();
                        evaluator.run(&arguments, len);
                        for (i, &width) in self.widths.iter().enumerate() {
                            bytes_mut(&mut results[i], len * width)
                                .copy_from_slice(evaluator.output(i, len));
                        }
                    }
                    (Combine::Body(_), None) => {}
                }
            }
            for ((out, tile), &width) in outputs.iter_mut().zip(&results).zip(&self.widths) {
                out[start * width..(start + len) * width].copy_from_slice(bytes(tile, len * width));
            }
        }
    }
}

fn bytes(tile: &[u128], len: usize) -> &[u8] {
    &bytemuck::cast_slice(tile)[..len]
}

fn bytes_mut(tile: &mut [u128], len: usize) -> &mut [u8] {
    &mut bytemuck::cast_slice_mut(tile)[..len]
}
