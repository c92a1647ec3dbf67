//! Copying a box of elements from one strided place to another.

use bytemuck::Pod;

use crate::backend::cpu::view::{Odometer, advance};

/// The shape of a box and how it lies on both sides, with the fewest dimensions.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    outer_dims: Vec<usize>,
    outer_from: Vec<isize>,
    outer_to: Vec<isize>,
    run: usize,
    run_from: isize,
    run_to: isize,
}

impl Transfer {
    /// A box with `dims` that moves by `from` on the source's side and by `to` on the other.
    pub(crate) fn new(dims: &[usize], from: &[isize], to: &[isize]) -> Self {
        let mut merged: Vec<(usize, isize, isize)> = Vec::with_capacity(dims.len());
        for ((&dim, &from), &to) in dims.iter().zip(from).zip(to) {
            if dim == 1 {
                continue;
            }
            let size = dim.cast_signed();
            match merged.last_mut() {
                Some((outer, outer_from, outer_to))
                    if *outer_from == from.wrapping_mul(size)
                        && *outer_to == to.wrapping_mul(size) =>
                {
                    *outer *= dim;
                    (*outer_from, *outer_to) = (from, to);
                }
                _ => merged.push((dim, from, to)),
            }
        }
        let (run, run_from, run_to) = merged.pop().unwrap_or((1, 1, 1));
        let outer_dims = merged.iter().map(|&(dim, _, _)| dim).collect();
        let outer_from = merged.iter().map(|&(_, from, _)| from).collect();
        let outer_to = merged.iter().map(|&(_, _, to)| to).collect();
        Self { outer_dims, outer_from, outer_to, run, run_from, run_to }
    }

    /// Copies the box that starts at `from` in `source` to where it starts at `to`.
    pub(crate) fn copy<T: Pod>(&self, source: &[T], from: usize, target: &mut [T], to: usize) {
        self.for_each_run(from, to, |from, to| {
            if self.run_from == 1 && self.run_to == 1 {
                target[to..to + self.run].copy_from_slice(&source[from..from + self.run]);
            } else {
                for i in 0..self.run {
                    target[advance(to, self.run_to, i)] = source[advance(from, self.run_from, i)];
                }
            }
        });
    }

    /// Calls `visit` with the two positions of every element.
    pub(crate) fn for_each(&self, from: usize, to: usize, mut visit: impl FnMut(usize, usize)) {
        self.for_each_run(from, to, |from, to| {
            for i in 0..self.run {
                visit(advance(from, self.run_from, i), advance(to, self.run_to, i));
            }
        });
    }

    /// Calls `visit` with the two positions at which every innermost run starts.
    pub(crate) fn for_each_run(&self, from: usize, to: usize, mut visit: impl FnMut(usize, usize)) {
        if self.run == 0 {
            return;
        }
        if self.outer_dims.is_empty() {
            visit(from, to);
            return;
        }
        let strides = [self.outer_from.as_slice(), self.outer_to.as_slice()];
        let mut odometer = Odometer::new(&self.outer_dims, strides, [from, to]);
        while let Some(([from, to], _)) = odometer.next() {
            visit(from, to);
        }
    }

    /// The length of the box, if on both sides it is one run of neighbouring elements.
    pub(crate) fn single_run(&self) -> Option<usize> {
        self.contiguous_run().filter(|_| self.outer_dims.is_empty())
    }

    /// The length of an innermost run, if both sides hold it in neighbouring elements.
    pub(crate) fn contiguous_run(&self) -> Option<usize> {
        (self.run_from == 1 && self.run_to == 1).then_some(self.run)
    }
}
