//! `sort`: stable, along any dimension, of any number of operands, by any comparator.
//!
//! A comparator comes from a program and need not be an order at all, so the sort is a merge sort
//! that ends, and stays in bounds, whatever the comparator answers.

use crate::backend::cpu::scalar_body::ScalarBody;
use crate::backend::cpu::step::{Input, Kernel, Scratch};

/// `sort` of dense operands of equal dimensions.
#[derive(Debug)]
pub(crate) struct Sort {
    comparator: ScalarBody,
    widths: Vec<usize>,
    /// The length of a line, and the distance between its elements.
    len: usize,
    stride: usize,
}

impl Sort {
    /// A sort along `dimension` of operands with `dims`.
    pub(crate) fn new(
        comparator: ScalarBody,
        widths: Vec<usize>,
        dims: &[usize],
        dimension: usize,
    ) -> Self {
        let stride = dims[dimension + 1..].iter().product();
        Self { comparator, widths, len: dims[dimension], stride }
    }
}

impl Kernel for Sort {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        let num_elements = match (outputs.first(), self.widths.first()) {
            (Some(out), Some(&width)) => out.len() / width,
            _ => return,
        };
        if num_elements == 0 {
            return;
        }
        let operands: Vec<&[u8]> = inputs.iter().map(|input| input.bytes()).collect();
        let mut evaluator = self.comparator.evaluator(1);
        let mut arguments: Vec<&[u8]> = vec![&[]; 2 * operands.len()];
        let mut order: Vec<usize> = Vec::with_capacity(self.len);
        let mut spare = vec![0; self.len];
        for line in 0..num_elements / self.len {
            let first = line / self.stride * self.stride * self.len + line % self.stride;
            order.clear();
            order.extend((0..self.len).map(|i| first + i * self.stride));
            merge_sort(&mut order, &mut spare, &mut |a, b| {
                for (i, (operand, &width)) in operands.iter().zip(&self.widths).enumerate() {
                    arguments[2 * i] = &operand[a * width..(a + 1) * width];
                    arguments[2 * i + 1] = &operand[b * width..(b + 1) * width];
                }
                evaluator.run(&arguments, 1);
                evaluator.output(0, 1).first().is_some_and(|&byte| byte != 0)
            });
            for ((out, operand), &width) in outputs.iter_mut().zip(&operands).zip(&self.widths) {
                for (i, &from) in order.iter().enumerate() {
                    let to = first + i * self.stride;
                    out[to * width..(to + 1) * width]
                        .copy_from_slice(&operand[from * width..(from + 1) * width]);
                }
            }
        }
    }
}

/// Runs of this length are sorted by insertion.
const RUN: usize = 16;

/// Sorts stably; `less(a, b)` says whether `a` comes before `b`. `spare` is as long as `items`.
fn merge_sort(
    items: &mut [usize],
    spare: &mut [usize],
    less: &mut impl FnMut(usize, usize) -> bool,
) {
    for run in items.chunks_mut(RUN) {
        for end in 1..run.len() {
            let mut at = end;
            while at > 0 && less(run[at], run[at - 1]) {
                run.swap(at, at - 1);
                at -= 1;
            }
        }
    }
    let mut width = RUN;
    while width < items.len() {
        for (pair, out) in items.chunks(2 * width).zip(spare.chunks_mut(2 * width)) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(left, right, out, less);
        }
        items.copy_from_slice(spare);
        width *= 2;
    }
}

fn merge<'a>(
    mut left: &'a [usize],
    mut right: &'a [usize],
    out: &mut [usize],
    less: &mut impl FnMut(usize, usize) -> bool,
) {
    for out in out {
        let take_right = match (left.first(), right.first()) {
            (Some(&l), Some(&r)) => less(r, l),
            (None, Some(_)) => true,
            _ => false,
        };
        let from = if take_right { &mut right } else { &mut left };
        if let Some((&item, rest)) = from.split_first() {
            *out = item;
            *from = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_stably_around_every_run_length() {
        for n in [0, 1, 2, 15, 16, 17, 32, 33, 100, 257] {
            let keys: Vec<usize> = (0..n).map(|i| i * 7919 % 13).collect();
            let mut items: Vec<usize> = (0..n).collect();
            merge_sort(&mut items, &mut vec![0; n], &mut |a, b| keys[a] < keys[b]);
            let mut expected: Vec<usize> = (0..n).collect();
            expected.sort_by_key(|&i| keys[i]);
            assert_eq!(items, expected, "{n}");
        }
    }

    #[test]
    fn an_inconsistent_comparator_yields_some_permutation() {
        let mut calls = 0_u32;
        let mut items: Vec<usize> = (0..100).collect();
        merge_sort(&mut items, &mut [0; 100], &mut |a, b| {
            calls += 1;
            (a * 31 + b * 17 + calls as usize).is_multiple_of(3)
        });
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
