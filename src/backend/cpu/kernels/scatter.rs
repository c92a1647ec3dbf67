//! `scatter`: updates combined into a copy of the operand at places that indices name.
//!
//! Updates run in row-major order of the batch. A window that does not lie wholly inside the
//! operand is skipped, all of it, as on XLA. (The specification would skip only the elements that
//! lie outside. JAX drops whole windows, too, and asks for it by indices far out of bounds.)

use super::elementwise::BinaryKernel;
use super::gather::{IndexVector, batch_of};
use super::index::IndexReader;
use super::transfer::Transfer;
use crate::backend::cpu::parallel::for_each_chunk;
use crate::backend::cpu::scalar_body::ScalarBody;
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::backend::cpu::view::{Odometer, View, advance, row_major};
use crate::stablehlo::op;

/// What happens to an element that an update meets.
#[derive(Debug)]
pub(crate) enum Update {
    /// The update replaces it.
    Assign,
    /// One operation of the element and the update, of one operand.
    Binary(BinaryKernel),
    /// A body: the elements of all operands, then the updates.
    Body(ScalarBody),
}

/// `scatter`: the inputs are the operands, the indices, the updates, all dense.
#[derive(Debug)]
pub(crate) struct Scatter {
    update: Update,
    /// Per operand, its bytes per element.
    widths: Vec<usize>,
    vector: IndexVector,
    dims: Vec<usize>,
    strides: Vec<isize>,
    batch_dims: Vec<usize>,
    batch_in_indices: Vec<isize>,
    batch_in_updates: Vec<isize>,
    /// Per operand dimension, the size of a window.
    window: Vec<usize>,
    whole: Transfer,
    /// The same, when windows are rows of one operand.
    rows: Option<Rows>,
}

/// The operand as rows, one of which every index names; updates are rows in the indices' order.
#[derive(Clone, Copy, Debug)]
struct Rows {
    reader: IndexReader,
    /// How many rows the operand has.
    count: usize,
    /// How many elements a row has.
    len: usize,
}

/// Updates and the rows they go to, sorted by blocks of rows, within one by their order.
struct SortedUpdates {
    sorted: Vec<(usize, usize)>,
    /// Per block, where its updates end.
    ends: Vec<usize>,
}

impl SortedUpdates {
    fn of_block(&self, block: usize) -> &[(usize, usize)] {
        let start = block.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.sorted[start..self.ends[block]]
    }
}

impl Rows {
    /// Those of `count` updates that go to a row of the operand.
    fn updates_by_block(self, indices: &[u8], count: usize, per_block: usize) -> SortedUpdates {
        let row = |update| {
            let row = usize::try_from(self.reader.read(indices, update)).ok();
            row.filter(|&row| row < self.count)
        };
        // Where the updates of a block begin, which moves to where they end.
        let mut places = vec![0; self.count.div_ceil(per_block) + 1];
        for row in (0..count).filter_map(row) {
            places[row / per_block + 1] += 1;
        }
        for block in 1..places.len() {
            places[block] += places[block - 1];
        }
        let mut sorted = vec![(0, 0); places.last().copied().unwrap_or_default()];
        for update in 0..count {
            if let Some(row) = row(update) {
                let place = &mut places[row / per_block];
                sorted[*place] = (update, row);
                *place += 1;
            }
        }
        SortedUpdates { sorted, ends: places }
    }
}

impl Scatter {
    /// A scatter into operands with `dims`, at indices with `indices_dims`, of updates with
    /// `updates_dims`.
    pub(crate) fn new(
        update: Update,
        widths: Vec<usize>,
        reader: IndexReader,
        op: &op::Scatter,
        dims: &[usize],
        indices_dims: &[usize],
        updates_dims: &[usize],
    ) -> Self {
        let updates_strides = row_major(updates_dims);
        let batching = op
            .input_batching_dims
            .iter()
            .copied()
            .zip(op.scatter_indices_batching_dims.iter().copied());
        let (batch_dims, batch_in_indices) = batch_of(indices_dims, op.index_vector_dim);
        let batch_in_updates = (0..updates_dims.len())
            .filter(|i| !op.update_window_dims.contains(i))
            .map(|i| updates_strides[i])
            .collect();
        let mut window_dims = op.update_window_dims.iter();
        let (window, window_in_updates): (Vec<usize>, Vec<isize>) = (0..dims.len())
            .map(|i| {
                let inserted =
                    op.inserted_window_dims.contains(&i) || op.input_batching_dims.contains(&i);
                let dim = if inserted { None } else { window_dims.next() };
                dim.map_or((1, 0), |&dim| (updates_dims[dim], updates_strides[dim]))
            })
            .unzip();
        let strides = row_major(dims);
        let vector = IndexVector::new(
            reader,
            indices_dims,
            op.index_vector_dim,
            &op.scatter_dims_to_operand_dims,
            batching,
        );
        let whole = Transfer::new(&window, &window_in_updates, &strides);
        let batch = View { offset: 0, dims: batch_dims.clone(), strides: batch_in_updates };
        let steps = batch.collapsed().strides;
        let rows = vector.along_one_dimension().zip(whole.single_run()).and_then(
            |((reader, axis), len)| {
                let is_row = dims[..axis].iter().all(|&dim| dim == 1)
                    && window[axis] == 1
                    && window[axis + 1..] == dims[axis + 1..]
                    && (steps.is_empty() || steps == [len.cast_signed()])
                    && widths.len() == 1
                    && !matches!(update, Update::Body(_));
                is_row.then_some(Rows { reader, count: dims[axis], len })
            },
        );
        Self {
            update,
            widths,
            vector,
            whole,
            rows,
            dims: dims.to_vec(),
            strides,
            batch_dims,
            batch_in_indices,
            batch_in_updates: batch.strides,
            window,
        }
    }

    /// A scatter of rows, a block of rows after the other: each is copied and meets its updates, in
    /// their order, while it is in the cache.
    fn run_rows(&self, rows: Rows, inputs: &[Input<'_>], out: &mut [u8]) {
        let [operand, indices, updates] = inputs else {
            return;
        };
        let row_bytes = rows.len * self.widths[0];
        let (indices, updates) = (indices.bytes(), updates.bytes());
        let per_block = (BLOCK_BYTES / row_bytes).max(1);
        let sorted = rows.updates_by_block(indices, updates.len() / row_bytes, per_block);
        let block = |index: usize, out: &mut [u8]| {
            let first = index * per_block;
            if let Input::Bytes(operand) = operand {
                out.copy_from_slice(&operand[first * row_bytes..][..out.len()]);
            }
            let mut combiner = Combiner::new(&self.update, &self.widths);
            for &(update, row) in sorted.of_block(index) {
                for at in (0..rows.len).step_by(RUN) {
                    let len = RUN.min(rows.len - at);
                    let (from, to) = (update * rows.len + at, (row - first) * rows.len + at);
                    combiner.combine(&[updates], from, &mut [&mut *out], to, len);
                }
            }
        };
        if out.len() + updates.len() < PARALLEL {
            out.chunks_mut(per_block * row_bytes).enumerate().for_each(|(i, out)| block(i, out));
        } else {
            for_each_chunk(out, per_block * row_bytes, block);
        }
    }

    /// The position of a window that lies wholly inside the operand.
    fn position_inside(&self, start: &[i64]) -> Option<usize> {
        let mut position = 0;
        for (axis, &start) in start.iter().enumerate() {
            let start = usize::try_from(start).ok()?;
            if start.checked_add(self.window[axis])? > self.dims[axis] {
                return None;
            }
            position = advance(position, self.strides[axis], start);
        }
        Some(position)
    }
}

/// How large a block of rows is: with some updates it fits the second cache.
const BLOCK_BYTES: usize = 1 << 17;

/// Scatters of rows of this many bytes on, operand and updates, are shared by several threads.
const PARALLEL: usize = 1 << 18;

impl Kernel for Scatter {
    fn in_place(&self) -> Vec<(usize, usize)> {
        (0..self.widths.len()).map(|i| (i, i)).collect()
    }

    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        if let (Some(rows), [out]) = (self.rows, &mut *outputs)
            && !out.is_empty()
        {
            self.run_rows(rows, inputs, out);
            return;
        }
        let count = self.widths.len();
        for (out, input) in outputs.iter_mut().zip(inputs) {
            if let Input::Bytes(operand) = input {
                out.copy_from_slice(operand);
            }
        }
        let indices = inputs[count].bytes();
        let updates: Vec<&[u8]> = inputs[count + 1..].iter().map(|input| input.bytes()).collect();
        if updates.first().is_none_or(|updates| updates.is_empty()) {
            return;
        }
        let mut combiner = Combiner::new(&self.update, &self.widths);
        let mut start = vec![0; self.dims.len()];
        let strides = [self.batch_in_indices.as_slice(), self.batch_in_updates.as_slice()];
        let mut batch = Odometer::new(&self.batch_dims, strides, [0, 0]);
        while let Some(([position, from], index)) = batch.next() {
            self.vector.read(indices, position, index, &mut start);
            if let Some(to) = self.position_inside(&start) {
                combiner.apply(&self.whole, &updates, from, outputs, to);
            }
        }
    }
}

/// Applies an [`Update`] to boxes of elements.
pub(super) struct Combiner<'a> {
    update: &'a Update,
    widths: &'a [usize],
    evaluator: Option<crate::backend::cpu::scalar_body::Evaluator<'a>>,
    /// Aligned copies of elements that are read and written at once.
    before: Vec<Vec<u128>>,
    updates: Vec<Vec<u128>>,
}

/// How many elements are combined at once.
const RUN: usize = 256;

impl<'a> Combiner<'a> {
    pub(super) fn new(update: &'a Update, widths: &'a [usize]) -> Self {
        let evaluator = match update {
            Update::Body(body) => Some(body.evaluator(RUN)),
            Update::Assign | Update::Binary(_) => None,
        };
        let tiles = vec![vec![0; RUN]; widths.len()];
        Self { update, widths, evaluator, before: tiles.clone(), updates: tiles }
    }

    fn apply(
        &mut self,
        part: &Transfer,
        updates: &[&[u8]],
        from: usize,
        outputs: &mut [&mut [u8]],
        to: usize,
    ) {
        match part.contiguous_run() {
            Some(run) => part.for_each_run(from, to, |from, to| {
                for first in (0..run).step_by(RUN) {
                    let len = RUN.min(run - first);
                    self.combine(updates, from + first, outputs, to + first, len);
                }
            }),
            None => part.for_each(from, to, |from, to| self.combine(updates, from, outputs, to, 1)),
        }
    }

    /// Combines `len` neighbouring elements, at most [`RUN`].
    pub(super) fn combine(
        &mut self,
        updates: &[&[u8]],
        from: usize,
        outputs: &mut [&mut [u8]],
        to: usize,
        len: usize,
    ) {
        let range = |position: usize, width: usize| position * width..(position + len) * width;
        match (self.update, &mut self.evaluator) {
            (Update::Assign, _) => {
                for ((out, update), &width) in outputs.iter_mut().zip(updates).zip(self.widths) {
                    out[range(to, width)].copy_from_slice(&update[range(from, width)]);
                }
            }
            (Update::Binary(kernel), _) => {
                let width = self.widths[0];
                let before = &mut bytemuck::cast_slice_mut(&mut self.before[0])[..len * width];
                let out = &mut outputs[0][range(to, width)];
                before.copy_from_slice(out);
                kernel(before, &updates[0][range(from, width)], out);
            }
            (Update::Body(_), Some(evaluator)) => {
                for (i, &width) in self.widths.iter().enumerate() {
                    let before = &mut bytemuck::cast_slice_mut(&mut self.before[i])[..len * width];
                    before.copy_from_slice(&outputs[i][range(to, width)]);
                    let update = &mut bytemuck::cast_slice_mut(&mut self.updates[i])[..len * width];
                    update.copy_from_slice(&updates[i][range(from, width)]);
                }
                let arguments: Vec<&[u8]> = self
                    .before
                    .iter()
                    .chain(&self.updates)
                    .zip(self.widths.iter().cycle())
                    .map(|(tile, &width)| &bytemuck::cast_slice(tile)[..len * width])
                    .collect();
                evaluator.run(&arguments, len);
                for (i, (out, &width)) in outputs.iter_mut().zip(self.widths).enumerate() {
                    out[range(to, width)].copy_from_slice(evaluator.output(i, len));
                }
            }
            (Update::Body(_), None) => {}
        }
    }
}
