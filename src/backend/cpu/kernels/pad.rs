//! `pad` and `concatenate`.

use bytemuck::{cast_slice, cast_slice_mut};

use super::element::with_width;
use super::transfer::Transfer;
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::backend::cpu::view::{advance, row_major};

/// `pad`: the inputs are the operand, dense, and the padding value.
#[derive(Debug)]
pub(crate) struct Pad {
    width: usize,
    from: usize,
    to: usize,
    /// Nothing of the operand is left when edges are negative enough.
    transfer: Option<Transfer>,
}

impl Pad {
    /// Padding of an operand with `dims` to `out_dims`, of `width` bytes per element.
    pub(crate) fn new(
        width: usize,
        dims: &[usize],
        out_dims: &[usize],
        low: &[i64],
        interior: &[usize],
    ) -> Self {
        let (strides, out_strides) = (row_major(dims), row_major(out_dims));
        let (mut from, mut to) = (0, 0);
        let mut kept = Vec::with_capacity(dims.len());
        let mut steps = Vec::with_capacity(dims.len());
        for axis in 0..dims.len() {
            // Element i goes to low + i * step; those outside the result are cut off.
            let step = interior[axis] as i128 + 1;
            let low = i128::from(low[axis]);
            let first = (-low).max(0).div_euclid(step) + i128::from((-low).max(0) % step != 0);
            let end = (out_dims[axis] as i128 - low + step - 1).div_euclid(step);
            let end = end.clamp(0, dims[axis] as i128);
            let first_out = low + first * step;
            kept.push(usize::try_from(end - first).unwrap_or(0));
            from = advance(from, strides[axis], usize::try_from(first).unwrap_or(0));
            to = advance(to, out_strides[axis], usize::try_from(first_out).unwrap_or(0));
            steps.push(out_strides[axis].wrapping_mul(interior[axis].cast_signed() + 1));
        }
        let transfer = (!kept.contains(&0)).then(|| Transfer::new(&kept, &strides, &steps));
        Self { width, from, to, transfer }
    }
}

impl Kernel for Pad {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        let ([operand, padding], [out]) = (inputs, outputs) else {
            return;
        };
        with_width!(self.width, T => {
            let out = cast_slice_mut::<_, T>(out);
            if let [padding] = cast_slice::<_, T>(padding.bytes()) {
                out.fill(*padding);
            }
            if let Some(transfer) = &self.transfer {
                transfer.copy(cast_slice(operand.bytes()), self.from, out, self.to);
            }
        });
    }
}

/// `concatenate` of dense operands.
#[derive(Debug)]
pub(crate) struct Concatenate {
    /// Per operand, the bytes that are contiguous in operand and result alike.
    runs: Vec<usize>,
}

impl Concatenate {
    /// Operands that take `runs` bytes each per step of the dimensions outside the one that grows.
    pub(crate) fn new(runs: Vec<usize>) -> Self {
        Self { runs }
    }
}

impl Kernel for Concatenate {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        let total: usize = self.runs.iter().sum();
        let [out] = outputs else {
            return;
        };
        if total == 0 {
            return;
        }
        for (row, out) in out.chunks_exact_mut(total).enumerate() {
            let mut rest = out;
            for (input, &run) in inputs.iter().zip(&self.runs) {
                let (now, later) = rest.split_at_mut(run);
                now.copy_from_slice(&input.bytes()[row * run..(row + 1) * run]);
                rest = later;
            }
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "test data is small"
)]
mod tests {
    use super::*;

    fn padded(dims: &[usize], low: &[i64], high: &[i64], interior: &[usize]) -> Vec<i32> {
        let out_dims: Vec<usize> = (0..dims.len())
            .map(|i| {
                let inner = dims[i] + dims[i].saturating_sub(1) * interior[i];
                (inner as i64 + low[i] + high[i]).max(0) as usize
            })
            .collect();
        let operand: Vec<i32> = (1..=dims.iter().product::<usize>() as i32).collect();
        let mut out = vec![-1; out_dims.iter().product()];
        Pad::new(4, dims, &out_dims, low, interior).run(
            &[Input::Bytes(cast_slice(&operand)), Input::Bytes(cast_slice(&[0_i32]))],
            &mut [cast_slice_mut(&mut out)],
            &mut Scratch::default(),
        );
        out
    }

    #[test]
    fn pads_outside_inside_and_cuts() {
        assert_eq!(padded(&[3], &[1], &[2], &[0]), [0, 1, 2, 3, 0, 0]);
        assert_eq!(padded(&[3], &[0], &[0], &[1]), [1, 0, 2, 0, 3]);
        assert_eq!(padded(&[3], &[-1], &[0], &[1]), [0, 2, 0, 3]);
        assert_eq!(padded(&[3], &[-2], &[-1], &[1]), [2, 0]);
        assert_eq!(padded(&[3], &[-1], &[-1], &[0]), [2]);
        assert_eq!(padded(&[3], &[-3], &[2], &[0]), [0, 0]);
        assert_eq!(padded(&[3], &[2], &[-4], &[0]), [0]);
        assert_eq!(padded(&[0], &[1], &[1], &[0]), [0, 0]);
        assert_eq!(padded(&[2, 2], &[0, 1], &[1, -1], &[0, 1]), [0, 1, 0, 0, 3, 0, 0, 0, 0]);
    }

    #[test]
    fn concatenates_rows_of_different_lengths() {
        let (a, b) = ([1_u8, 2, 3, 4], [5_u8, 6]);
        let mut out = [0; 6];
        Concatenate::new(vec![2, 1]).run(
            &[Input::Bytes(&a), Input::Bytes(&b)],
            &mut [&mut out],
            &mut Scratch::default(),
        );
        assert_eq!(out, [1, 2, 5, 3, 4, 6]);
    }
}
