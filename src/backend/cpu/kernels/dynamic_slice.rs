//! `dynamic_slice` and `dynamic_update_slice`: a box at a place known when the program runs,
//! moved to lie inside the operand.

use bytemuck::{cast_slice, cast_slice_mut};

use super::element::with_width;
use super::index::IndexReader;
use super::transfer::Transfer;
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::backend::cpu::view::{advance, row_major};

/// Where the box may be.
#[derive(Debug)]
struct Placement {
    reader: IndexReader,
    strides: Vec<isize>,
    /// Per dimension, the last start at which the box fits.
    last: Vec<usize>,
}

impl Placement {
    fn new(reader: IndexReader, dims: &[usize], sizes: &[usize]) -> Self {
        let last = dims.iter().zip(sizes).map(|(&dim, &size)| dim.saturating_sub(size)).collect();
        Self { reader, strides: row_major(dims), last }
    }

    fn offset(&self, starts: &[Input<'_>]) -> usize {
        starts.iter().zip(&self.strides).zip(&self.last).fold(
            0,
            |offset, ((start, &stride), &last)| {
                advance(offset, stride, self.reader.clamped(start.bytes(), 0, last))
            },
        )
    }
}

/// `dynamic_slice`: the inputs are the operand, dense, then a start per dimension.
#[derive(Debug)]
pub(crate) struct DynamicSlice {
    width: usize,
    placement: Placement,
    transfer: Transfer,
}

impl DynamicSlice {
    /// A slice of `sizes` out of `dims`.
    pub(crate) fn new(width: usize, reader: IndexReader, dims: &[usize], sizes: &[usize]) -> Self {
        let transfer = Transfer::new(sizes, &row_major(dims), &row_major(sizes));
        Self { width, placement: Placement::new(reader, dims, sizes), transfer }
    }
}

impl Kernel for DynamicSlice {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        if let ([operand, starts @ ..], [out]) = (inputs, outputs) {
            let from = self.placement.offset(starts);
            with_width!(self.width, T => {
                self.transfer.copy::<T>(cast_slice(operand.bytes()), from, cast_slice_mut(out), 0);
            });
        }
    }
}

/// `dynamic_update_slice`: the inputs are the operand and the update, dense, then the starts.
#[derive(Debug)]
pub(crate) struct DynamicUpdateSlice {
    width: usize,
    placement: Placement,
    transfer: Transfer,
}

impl DynamicUpdateSlice {
    /// An update of `sizes` into `dims`.
    pub(crate) fn new(width: usize, reader: IndexReader, dims: &[usize], sizes: &[usize]) -> Self {
        let transfer = Transfer::new(sizes, &row_major(sizes), &row_major(dims));
        Self { width, placement: Placement::new(reader, dims, sizes), transfer }
    }
}

impl Kernel for DynamicUpdateSlice {
    fn in_place(&self) -> Vec<(usize, usize)> {
        vec![(0, 0)]
    }

    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        if let ([operand, update, starts @ ..], [out]) = (inputs, outputs) {
            if let Input::Bytes(operand) = operand {
                out.copy_from_slice(operand);
            }
            let to = self.placement.offset(starts);
            with_width!(self.width, T => {
                self.transfer.copy::<T>(cast_slice(update.bytes()), 0, cast_slice_mut(out), to);
            });
        }
    }
}
