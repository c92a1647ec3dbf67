//! `select_and_scatter`: every window of the operand selects one of its elements, and a value of
//! the source is scattered to where that lies.
//!
//! Padding is never selected: a window that is all padding scatters nothing. The elements of a
//! window are met in row-major order, and windows scatter in row-major order. A tile of windows
//! selects at once.

use bytemuck::{cast_slice, cast_slice_mut};

use super::element::with_width;
use super::scatter::{Combiner, Update};
use crate::backend::cpu::parallel::for_each_chunk;
use crate::backend::cpu::scalar_body::ScalarBody;
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::backend::cpu::tile::TILE;
use crate::backend::cpu::view::{Odometer, row_major};
use crate::stablehlo::op::Window;

/// `select_and_scatter`: the inputs are the operand, the source and the initial value, all dense.
#[derive(Debug)]
pub(crate) struct SelectAndScatter {
    /// Whether the first of two elements stays selected.
    select: ScalarBody,
    scatter: Update,
    width: usize,
    dims: Vec<usize>,
    strides: Vec<isize>,
    source_dims: Vec<usize>,
    window: Window,
    /// How far apart neighbouring windows are, per dimension.
    steps: Vec<isize>,
    /// Whether a window may reach beyond the operand.
    is_padded: bool,
    /// Whether the windows of every index of the first dimension are on their own.
    is_batched: bool,
}

/// Operands of this many bytes on, in batches, are shared by several threads.
const PARALLEL: usize = 1 << 16;

impl SelectAndScatter {
    /// The operation on an operand with `dims` and a source with `source_dims`, of `width` bytes
    /// per element.
    pub(crate) fn new(
        select: ScalarBody,
        scatter: Update,
        width: usize,
        dims: &[usize],
        source_dims: &[usize],
        window: &Window,
    ) -> Self {
        let strides = row_major(dims);
        let steps = strides.iter().zip(&window.strides);
        Self {
            select,
            scatter,
            width,
            dims: dims.to_vec(),
            steps: steps.map(|(&stride, &by)| stride.wrapping_mul(by.cast_signed())).collect(),
            strides,
            is_batched: dims.len() > 1
                && window.dimensions[0] == 1
                && window.strides[0] == 1
                && window.padding[0] == (0, 0),
            source_dims: source_dims.to_vec(),
            window: window.clone(),
            is_padded: window.padding.iter().any(|&edges| edges != (0, 0)),
        }
    }

    /// The first element's coordinates of the window at `index`, and where it lies, or would lie
    /// if the operand went on.
    fn corner(&self, index: &[usize], corner: &mut [i128]) -> usize {
        let mut position = 0_usize;
        for (axis, (&at, corner)) in index.iter().zip(corner).enumerate() {
            let low = i128::from(self.window.padding[axis].0);
            *corner = at as i128 * self.window.strides[axis] as i128 - low;
            let distance = (*corner).wrapping_mul(self.strides[axis] as i128);
            #[expect(
                clippy::cast_sign_loss,
                reason = "modulo the address space, positions that are used are right"
            )]
            let distance = distance as usize;
            position = position.wrapping_add(distance);
        }
        position
    }

    /// Whether the element at `index` of a window with this corner is one of the operand's.
    fn is_inside(&self, corner: &[i128], index: &[usize]) -> bool {
        corner.iter().zip(index).zip(&self.dims).all(|((&corner, &at), &dim)| {
            let coordinate = corner + at as i128;
            (0..dim as i128).contains(&coordinate)
        })
    }
}

/// The position of no element.
const NONE: usize = usize::MAX;

/// What a tile of windows has selected so far.
struct Selection {
    /// Per window, the coordinates of its first element, one window after the other.
    corners: Vec<i128>,
    /// Per window, the position of its first element.
    origins: Vec<usize>,
    /// Per window, the position of the next element, or none.
    next: Vec<usize>,
    /// Per window, the position of the element selected, or none.
    chosen: Vec<usize>,
    /// Per window, the next element.
    candidates: Vec<u128>,
    /// Per window, the element selected.
    values: Vec<u128>,
}

impl Kernel for SelectAndScatter {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        let ([operand, source, init], [out]) = (inputs, outputs) else {
            return;
        };
        let (operand, source, init) = (operand.bytes(), source.bytes(), init.bytes());
        if !self.is_batched || out.len() < PARALLEL || source.is_empty() {
            self.select_and_scatter(operand, source, init, out);
            return;
        }
        let batch = self.dims[0];
        let (operand_len, source_len) = (operand.len() / batch, source.len() / batch);
        for_each_chunk(out, operand_len, |i, out| {
            let operand = &operand[i * operand_len..][..operand_len];
            let source = &source[i * source_len..][..source_len];
            self.select_and_scatter(operand, source, init, out);
        });
    }
}

impl SelectAndScatter {
    /// The operation on as much of the operand, along the first dimension, as `source` has
    /// windows for.
    fn select_and_scatter(&self, operand: &[u8], source: &[u8], init: &[u8], out: &mut [u8]) {
        let width = self.width;
        let outputs = &mut [out];
        let [out] = outputs;
        for element in out.chunks_exact_mut(width) {
            element.copy_from_slice(init);
        }
        let rank = self.dims.len();
        let mut selection = Selection {
            corners: vec![0; TILE * rank],
            origins: vec![0; TILE],
            next: vec![0; TILE],
            chosen: vec![NONE; TILE],
            candidates: vec![0; TILE],
            values: vec![0; TILE],
        };
        let mut select = self.select.evaluator(TILE);
        let widths = [width];
        let mut combiner = Combiner::new(&self.scatter, &widths);
        let mut windows = Odometer::new(&self.source_dims, [&self.steps], [0]);
        let count = source.len() / width;
        for first in (0..count).step_by(TILE) {
            let len = TILE.min(count - first);
            selection.chosen.fill(NONE);
            for lane in 0..len {
                if let Some(([position], index)) = windows.next() {
                    selection.origins[lane] = if self.is_padded {
                        let corner = &mut selection.corners[lane * rank..(lane + 1) * rank];
                        self.corner(index, corner)
                    } else {
                        position
                    };
                }
            }
            let mut elements = Odometer::new(&self.window.dimensions, [&self.strides], [0]);
            while let Some(([offset], index)) = elements.next() {
                for lane in 0..len {
                    let corner = &selection.corners[lane * rank..(lane + 1) * rank];
                    let inside = !self.is_padded || self.is_inside(corner, index);
                    let position = selection.origins[lane].wrapping_add(offset);
                    selection.next[lane] = if inside { position } else { NONE };
                }
                selection.meet(operand, width, len, &mut |values, candidates, keep| {
                    select.run(&[values, candidates], len);
                    keep.copy_from_slice(select.output(0, len));
                });
            }
            for lane in 0..len {
                let to = selection.chosen[lane];
                if to != NONE {
                    combiner.combine(&[source], first + lane, outputs, to, 1);
                }
            }
        }
    }
}

impl Selection {
    /// Every window chooses between the element it has selected and the next one; `keep` says,
    /// for two tiles of elements, where the first one stays.
    fn meet(
        &mut self,
        operand: &[u8],
        width: usize,
        len: usize,
        keep: &mut impl FnMut(&[u8], &[u8], &mut [u8]),
    ) {
        let mut kept = [0; TILE];
        with_width!(width, T => {
            let operand = cast_slice::<_, T>(operand);
            let candidates = &mut cast_slice_mut::<_, T>(&mut self.candidates)[..len];
            for (candidate, &at) in candidates.iter_mut().zip(&self.next) {
                if at != NONE {
                    *candidate = operand[at];
                }
            }
            let values = &mut cast_slice_mut::<_, T>(&mut self.values)[..len];
            keep(cast_slice(values), cast_slice(candidates), &mut kept[..len]);
            let chosen = values.iter_mut().zip(&mut self.chosen);
            let next = candidates.iter().zip(&self.next);
            for ((&kept, (value, chosen)), (&candidate, &at)) in kept.iter().zip(chosen).zip(next) {
                if at != NONE && (*chosen == NONE || kept == 0) {
                    *value = candidate;
                    *chosen = at;
                }
            }
        });
    }
}
