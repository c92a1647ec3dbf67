//! `gather`: slices at places that an array of indices names, moved to lie inside the operand.

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::element::with_width;
use super::index::IndexReader;
use super::transfer::Transfer;
use crate::backend::cpu::parallel::for_each_chunk;
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::backend::cpu::view::{Odometer, View, advance, row_major};
use crate::stablehlo::op;

/// One index vector's way into an array.
#[derive(Debug)]
pub(super) struct IndexVector {
    reader: IndexReader,
    /// Distance between the components of a vector.
    stride: isize,
    /// For each component, the dimension it moves along.
    dimensions: Vec<usize>,
    /// Dimensions of the array that follow a dimension of the batch: (array, batch).
    batching: Vec<(usize, usize)>,
}

impl IndexVector {
    /// Vectors that lie along `vector_dim` of `indices_dims`; `batching` pairs dimensions of the
    /// array with dimensions of the indices.
    pub(super) fn new(
        reader: IndexReader,
        indices_dims: &[usize],
        vector_dim: usize,
        dimensions: &[usize],
        batching: impl Iterator<Item = (usize, usize)>,
    ) -> Self {
        let stride = row_major(indices_dims).get(vector_dim).copied().unwrap_or(1);
        // The batch is the indices without the dimension of the vectors.
        let batching = batching
            .map(|(array, index)| (array, if index > vector_dim { index - 1 } else { index }))
            .collect();
        Self { reader, stride, dimensions: dimensions.to_vec(), batching }
    }

    /// The reader and the dimension of vectors of one component, which name a place along that
    /// dimension and nothing else.
    pub(super) fn along_one_dimension(&self) -> Option<(IndexReader, usize)> {
        match self.dimensions.as_slice() {
            &[dimension] if self.batching.is_empty() => Some((self.reader, dimension)),
            _ => None,
        }
    }

    /// Writes the start that the vector at `position` names; other dimensions are left at 0.
    pub(super) fn read(
        &self,
        indices: &[u8],
        position: usize,
        batch_index: &[usize],
        start: &mut [i64],
    ) {
        start.fill(0);
        for (i, &dimension) in self.dimensions.iter().enumerate() {
            start[dimension] = self.reader.read(indices, advance(position, self.stride, i));
        }
        for &(dimension, batch) in &self.batching {
            start[dimension] = i64::try_from(batch_index[batch]).unwrap_or(i64::MAX);
        }
    }
}

/// The dimensions of the indices other than `vector_dim`, with their strides.
pub(super) fn batch_of(indices_dims: &[usize], vector_dim: usize) -> (Vec<usize>, Vec<isize>) {
    let strides = row_major(indices_dims);
    (0..indices_dims.len())
        .filter(|&i| i != vector_dim)
        .map(|i| (indices_dims[i], strides[i]))
        .unzip()
}

/// `gather`: the inputs are the operand and the indices, dense.
#[derive(Debug)]
pub(crate) struct Gather {
    width: usize,
    vector: IndexVector,
    operand_strides: Vec<isize>,
    /// Per operand dimension, the last start at which the slice fits.
    last: Vec<usize>,
    batch_dims: Vec<usize>,
    batch_in_indices: Vec<isize>,
    batch_in_out: Vec<isize>,
    slice: Transfer,
    /// The same, when every slice is a run of neighbours that goes behind the one before.
    rows: Option<Rows>,
}

/// Runs of neighbouring elements, one for each index in their order.
#[derive(Clone, Copy, Debug)]
struct Rows {
    reader: IndexReader,
    /// The last index at which a run lies inside the operand.
    last: usize,
    /// The distance between the runs of neighbouring indices.
    stride: usize,
    /// How many elements a run has.
    run: usize,
}

impl Gather {
    /// A gather from an operand with `dims` at indices with `indices_dims` into `out_dims`.
    pub(crate) fn new(
        width: usize,
        reader: IndexReader,
        op: &op::Gather,
        dims: &[usize],
        indices_dims: &[usize],
        out_dims: &[usize],
    ) -> Self {
        let out_strides = row_major(out_dims);
        let batching = op
            .operand_batching_dims
            .iter()
            .copied()
            .zip(op.start_indices_batching_dims.iter().copied());
        let (batch_dims, batch_in_indices) = batch_of(indices_dims, op.index_vector_dim);
        let batch_in_out = (0..out_dims.len())
            .filter(|i| !op.offset_dims.contains(i))
            .map(|i| out_strides[i])
            .collect();
        let mut offset_dims = op.offset_dims.iter();
        let slice_in_out: Vec<isize> = (0..dims.len())
            .map(|i| {
                let gone =
                    op.collapsed_slice_dims.contains(&i) || op.operand_batching_dims.contains(&i);
                if gone { 0 } else { offset_dims.next().map_or(0, |&dim| out_strides[dim]) }
            })
            .collect();
        let operand_strides = row_major(dims);
        let vector = IndexVector::new(
            reader,
            indices_dims,
            op.index_vector_dim,
            &op.start_index_map,
            batching,
        );
        let last: Vec<usize> = dims
            .iter()
            .zip(&op.slice_sizes)
            .map(|(&dim, &size)| dim.saturating_sub(size))
            .collect();
        let slice = Transfer::new(&op.slice_sizes, &operand_strides, &slice_in_out);
        let batch = View { offset: 0, dims: batch_dims.clone(), strides: batch_in_out };
        let steps = batch.collapsed().strides;
        let rows = vector.along_one_dimension().zip(slice.single_run()).and_then(
            |((reader, dimension), run)| {
                let in_order = steps.is_empty() || steps == [run.cast_signed()];
                let stride = operand_strides[dimension].cast_unsigned();
                in_order.then_some(Rows { reader, last: last[dimension], stride, run })
            },
        );
        Self {
            width,
            vector,
            last,
            slice,
            rows,
            operand_strides,
            batch_dims,
            batch_in_indices,
            batch_in_out: batch.strides,
        }
    }
}

/// Gathers of this many bytes on are shared by several threads, in parts of as many.
const PARALLEL: usize = 1 << 17;

impl Rows {
    fn gather<T: Pod + Send + Sync>(self, operand: &[T], indices: &[u8], out: &mut [T]) {
        let per_part = (PARALLEL / size_of::<T>()).div_ceil(self.run);
        let part = |part: usize, out: &mut [T]| {
            for (i, out) in out.chunks_exact_mut(self.run).enumerate() {
                let index = self.reader.clamped(indices, part * per_part + i, self.last);
                out.copy_from_slice(&operand[index * self.stride..][..self.run]);
            }
        };
        if size_of_val(out) < PARALLEL {
            part(0, out);
        } else {
            for_each_chunk(out, per_part * self.run, part);
        }
    }
}

impl Kernel for Gather {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        let ([operand, indices], [out]) = (inputs, outputs) else {
            return;
        };
        if out.is_empty() {
            return;
        }
        if let Some(rows) = self.rows {
            with_width!(self.width, T => {
                rows.gather::<T>(cast_slice(operand.bytes()), indices.bytes(), cast_slice_mut(out));
            });
            return;
        }
        let mut start = vec![0; self.operand_strides.len()];
        let strides = [self.batch_in_indices.as_slice(), self.batch_in_out.as_slice()];
        let mut batch = Odometer::new(&self.batch_dims, strides, [0, 0]);
        while let Some(([position, to], index)) = batch.next() {
            self.vector.read(indices.bytes(), position, index, &mut start);
            let mut from = 0;
            for ((&start, &last), &stride) in
                start.iter().zip(&self.last).zip(&self.operand_strides)
            {
                from = advance(from, stride, usize::try_from(start).unwrap_or(0).min(last));
            }
            with_width!(self.width, T => {
                self.slice.copy::<T>(cast_slice(operand.bytes()), from, cast_slice_mut(out), to);
            });
        }
    }
}
