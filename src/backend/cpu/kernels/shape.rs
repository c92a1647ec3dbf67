//! Moving elements without computing: any view copied to row-major order.

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::element::with_width;
use crate::backend::cpu::parallel::join;
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::backend::cpu::view::{Odometer, View, advance};

/// The side of the square blocks in which a transpose runs: a block of the widest elements read
/// and one written fit the L1 cache.
const BLOCK: usize = 32;

/// Writes the elements of a view one after the other.
#[derive(Debug)]
pub(crate) struct Copy {
    view: View,
    width: usize,
    /// The view is the whole source: input and output may be one memory.
    whole: bool,
}

impl Copy {
    /// A copy of `view`, of `width` bytes per element, over a source of `source_bytes`.
    pub(crate) fn new(view: &View, width: usize, source_bytes: usize) -> Self {
        let whole = view.is_dense() && view.num_elements() * width == source_bytes;
        Self { view: view.collapsed(), width, whole }
    }
}

impl Kernel for Copy {
    fn in_place(&self) -> Vec<(usize, usize)> {
        if self.whole { vec![(0, 0)] } else { Vec::new() }
    }

    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        let ([Input::Bytes(source)], [out]) = (inputs, outputs) else {
            return;
        };
        if self.whole {
            out.copy_from_slice(source);
        } else {
            with_width!(self.width, T => copy::<T>(cast_slice(source), &self.view, cast_slice_mut(out)));
        }
    }
}

/// Copies from this many elements on are shared by several threads.
const PARALLEL: usize = 1 << 17;

/// Copies a whole collapsed view.
fn copy<T: Pod + Send + Sync>(source: &[T], view: &View, out: &mut [T]) {
    let rank = view.dims.len();
    if out.len() >= PARALLEL && view.dims[0] > 1 {
        // The outermost dimension is cut in two, in whole blocks if it is longer than one.
        let half = view.dims[0] / 2;
        let half = if half > BLOCK { half.next_multiple_of(BLOCK) } else { half };
        let (mut first, mut second) = (view.clone(), view.clone());
        first.dims[0] = half;
        second.dims[0] -= half;
        second.offset = advance(view.offset, view.strides[0], half);
        let (out, rest) = out.split_at_mut(first.num_elements());
        join(&mut || copy(source, &first, out), &mut || copy(source, &second, rest));
        return;
    }
    // The dimension that is contiguous in the source, if it is not the innermost already.
    let contiguous = (0..rank).find(|&i| view.strides[i] == 1).filter(|&i| i + 1 < rank);
    match contiguous {
        Some(row) => transpose(source, view, row, out),
        None => copy_range(source, view, 0, out),
    }
}

/// Copies a view whose dimension `row` is contiguous in the source, in square blocks over it and
/// the innermost dimension, so that neither side walks memory with a long stride for long.
fn transpose<T: Pod>(source: &[T], view: &View, row: usize, out: &mut [T]) {
    let column = view.dims.len() - 1;
    let (rows, columns) = (view.dims[row], view.dims[column]);
    let column_stride = view.strides[column];
    let out_strides = super::super::view::row_major(&view.dims);
    let out_row_stride = out_strides[row];
    let others: Vec<usize> = (0..column).filter(|&i| i != row).collect();
    let dims: Vec<usize> = others.iter().map(|&i| view.dims[i]).collect();
    let from: Vec<isize> = others.iter().map(|&i| view.strides[i]).collect();
    let to: Vec<isize> = others.iter().map(|&i| out_strides[i]).collect();
    let mut odometer = Odometer::new(&dims, [&from, &to], [view.offset, 0]);
    while let Some(([from, to], _)) = odometer.next() {
        for r0 in (0..rows).step_by(BLOCK) {
            for c0 in (0..columns).step_by(BLOCK) {
                let c1 = columns.min(c0 + BLOCK);
                for r in r0..rows.min(r0 + BLOCK) {
                    let line = advance(to, out_row_stride, r);
                    for (c, out) in (c0..c1).zip(&mut out[line + c0..line + c1]) {
                        *out = source[advance(from, column_stride, c) + r];
                    }
                }
            }
        }
    }
}

/// Copies `out.len()` elements of a collapsed view, from its `start`th on.
pub(crate) fn copy_range<T: Pod>(source: &[T], view: &View, start: usize, out: &mut [T]) {
    let Some((&run, outer_dims)) = view.dims.split_last() else {
        for out in out {
            *out = source[view.offset];
        }
        return;
    };
    let Some((&stride, outer_strides)) = view.strides.split_last() else {
        return;
    };
    if out.is_empty() {
        return;
    }
    let mut index = vec![0; outer_dims.len()];
    let mut position = view.offset;
    let mut row = start / run;
    for i in (0..outer_dims.len()).rev() {
        index[i] = row % outer_dims[i];
        row /= outer_dims[i];
        position = advance(position, outer_strides[i], index[i]);
    }
    let mut skip = start % run;
    let mut rest = out;
    loop {
        let len = rest.len().min(run - skip);
        let (now, later) = rest.split_at_mut(len);
        copy_run(source, advance(position, stride, skip), stride, now);
        if later.is_empty() {
            return;
        }
        rest = later;
        skip = 0;
        for i in (0..outer_dims.len()).rev() {
            index[i] += 1;
            if index[i] < outer_dims[i] {
                position = advance(position, outer_strides[i], 1);
                break;
            }
            index[i] = 0;
            position = advance(position, outer_strides[i].wrapping_neg(), outer_dims[i] - 1);
        }
    }
}

fn copy_run<T: Pod>(source: &[T], position: usize, stride: isize, out: &mut [T]) {
    match stride {
        1 => out.copy_from_slice(&source[position..position + out.len()]),
        0 => out.fill(source[position]),
        _ => {
            for (i, out) in out.iter_mut().enumerate() {
                *out = source[advance(position, stride, i)];
            }
        }
    }
}

/// [`copy_range`] over bytes, for elements of `width` bytes.
pub(crate) fn copy_range_bytes(
    width: usize,
    source: &[u8],
    view: &View,
    start: usize,
    out: &mut [u8],
) {
    with_width!(width, T => copy_range::<T>(cast_slice(source), view, start, cast_slice_mut(out)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(view: &View, source: &[u32]) -> Vec<u32> {
        let mut out = vec![0_u32; view.num_elements()];
        let kernel = Copy::new(view, 4, size_of_val(source));
        kernel.run(
            &[Input::Bytes(cast_slice(source))],
            &mut [cast_slice_mut(&mut out)],
            &mut Scratch::default(),
        );
        out
    }

    fn expected(view: &View, source: &[u32]) -> Vec<u32> {
        let mut odometer = Odometer::new(&view.dims, [&view.strides], [view.offset]);
        let mut out = Vec::new();
        while let Some(([position], _)) = odometer.next() {
            out.push(source[position]);
        }
        out
    }

    #[test]
    fn copies_match_the_definition_around_block_boundaries() {
        // The last is cut into parts for threads.
        let sizes = [(1, 1), (31, 33), (32, 32), (33, 65), (100, 3), (3, 100), (300, 250)];
        for (rows, columns) in sizes {
            let source: Vec<u32> = (0..2 * rows * columns).collect();
            let (rows, columns) = (rows as usize, columns as usize);
            let cube = View::dense(&[2, rows, columns]);
            for permutation in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
                let view = cube.transpose(&permutation);
                assert_eq!(copied(&view, &source), expected(&view, &source), "{view:?}");
                let reversed = view.reverse(&[0, 2]);
                assert_eq!(copied(&reversed, &source), expected(&reversed, &source));
            }
        }
    }

    #[test]
    fn ranges_start_and_end_anywhere() {
        let source: Vec<u32> = (0..60).collect();
        let views = [
            View::dense(&[3, 4, 5]).transpose(&[2, 0, 1]),
            View::dense(&[4]).broadcast(&[3, 4, 5], &[1]),
            View::dense(&[3, 4, 5]).slice(&[1, 0, 1], &[3, 4, 5], &[1, 2, 3]),
            View::dense(&[3, 20]).reverse(&[1]),
        ];
        for view in views {
            let all = expected(&view, &source);
            let collapsed = view.collapsed();
            for start in 0..all.len() {
                for len in [0, 1, 2, 5, all.len() - start] {
                    let len = len.min(all.len() - start);
                    let mut out = vec![0; len];
                    copy_range(&source, &collapsed, start, &mut out);
                    assert_eq!(out, all[start..start + len], "{view:?} from {start}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_copied_from_an_empty_view() {
        assert_eq!(copied(&View::dense(&[3, 0]).transpose(&[1, 0]), &[]), [0_u32; 0]);
    }
}
