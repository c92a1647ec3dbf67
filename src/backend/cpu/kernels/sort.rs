//! `sort`: stable, along any dimension, of any number of operands, by any comparator.
//!
//! A comparator that compares one thing made of the left elements with the same thing made of the
//! right ones, as frameworks write it, is an order of keys (`sort_key`). Any other comparator
//! comes from a program and need not be an order at all, so the sort is a merge sort that ends,
//! and stays in bounds, whatever the comparator answers.

use bytemuck::{cast_slice, cast_slice_mut};

use super::element::with_width;
use super::sort_key::{SortKey, arrange};
use crate::backend::cpu::scalar_body::{Evaluator, ScalarBody};
use crate::backend::cpu::step::{Input, Kernel, Scratch};

/// `sort` of dense operands of equal dimensions.
#[derive(Debug)]
pub(crate) struct Sort {
    /// Keys that say the same as the comparator, the first one before the others.
    keys: Vec<SortKey>,
    comparator: ScalarBody,
    widths: Vec<usize>,
    /// The length of a line, and the distance between its elements.
    len: usize,
    stride: usize,
}

impl Sort {
    /// A sort along `dimension` of operands with `dims`; `keys` are none when the comparator is
    /// no order of keys.
    pub(crate) fn new(
        comparator: ScalarBody,
        keys: Vec<SortKey>,
        widths: Vec<usize>,
        dims: &[usize],
        dimension: usize,
    ) -> Self {
        let stride = dims[dimension + 1..].iter().product();
        Self { keys, comparator, widths, len: dims[dimension], stride }
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
        let mut comparator = Comparator::new(self, &operands);
        let mut keys: Vec<_> = self.keys.iter().map(SortKey::evaluator).collect();
        // The operands of a line, when its elements are not neighbours.
        let mut gathered: Vec<Vec<u128>> =
            self.widths.iter().map(|width| vec![0; (width * self.len).div_ceil(16)]).collect();
        let mut order: Vec<usize> = Vec::with_capacity(self.len);
        let mut spare = vec![0; self.len];
        for line in 0..num_elements / self.len {
            let first = line / self.stride * self.stride * self.len + line % self.stride;
            order.clear();
            let lines = self.line(&operands, first, &mut gathered);
            if !arrange(&mut keys, &lines, &self.widths, self.len, &mut order) {
                order.clear();
                order.extend(0..self.len);
                merge_sort(&mut order, &mut spare, &mut |a, b| {
                    comparator.less(first + a * self.stride, first + b * self.stride)
                });
            }
            for ((out, line), &width) in outputs.iter_mut().zip(&lines).zip(&self.widths) {
                with_width!(width, T => {
                    let line = cast_slice::<_, T>(line);
                    let out = cast_slice_mut::<_, T>(out)[first..].iter_mut();
                    for (out, &from) in out.step_by(self.stride).zip(&order) {
                        *out = line[from];
                    }
                });
            }
        }
    }
}

impl Sort {
    /// The elements of each operand along the line that starts at `first`.
    fn line<'a>(
        &self,
        operands: &[&'a [u8]],
        first: usize,
        gathered: &'a mut [Vec<u128>],
    ) -> Vec<&'a [u8]> {
        let sources = operands.iter().zip(&self.widths).zip(gathered);
        sources
            .map(|((&operand, &width), gathered)| {
                if self.stride == 1 {
                    return &operand[first * width..(first + self.len) * width];
                }
                let line = &mut cast_slice_mut(gathered)[..self.len * width];
                with_width!(width, T => {
                    let elements = cast_slice::<_, T>(operand)[first..].iter().step_by(self.stride);
                    for (to, &from) in cast_slice_mut::<_, T>(line).iter_mut().zip(elements) {
                        *to = from;
                    }
                });
                &*line
            })
            .collect()
    }
}

/// The comparator on the elements of operands.
struct Comparator<'a> {
    evaluator: Evaluator<'a>,
    operands: &'a [&'a [u8]],
    widths: &'a [usize],
    arguments: Vec<&'a [u8]>,
}

impl<'a> Comparator<'a> {
    fn new(sort: &'a Sort, operands: &'a [&'a [u8]]) -> Self {
        Self {
            evaluator: sort.comparator.evaluator(1),
            operands,
            widths: &sort.widths,
            arguments: vec![&[]; 2 * operands.len()],
        }
    }

    /// Whether the element at `a` comes before the one at `b`.
    fn less(&mut self, a: usize, b: usize) -> bool {
        for (i, (operand, &width)) in self.operands.iter().zip(self.widths).enumerate() {
            self.arguments[2 * i] = &operand[a * width..(a + 1) * width];
            self.arguments[2 * i + 1] = &operand[b * width..(b + 1) * width];
        }
        self.evaluator.run(&self.arguments, 1);
        self.evaluator.output(0, 1).first().is_some_and(|&byte| byte != 0)
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
