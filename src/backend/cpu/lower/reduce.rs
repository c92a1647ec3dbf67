//! `reduce`, `reduce_window` and `select_and_scatter`.

use super::data::{operand, region};
use super::{Lowering, checked_size, first};
use crate::backend::Reduction;
use crate::backend::cpu::kernels::carrier::carrier;
use crate::backend::cpu::kernels::cumulative::Cumulative;
use crate::backend::cpu::kernels::elementwise;
use crate::backend::cpu::kernels::fold::{Combine, Fold};
use crate::backend::cpu::kernels::pad::Pad;
use crate::backend::cpu::kernels::reduce::Reduce;
use crate::backend::cpu::kernels::select_and_scatter::SelectAndScatter;
use crate::backend::cpu::step::Slot;
use crate::backend::cpu::view::View;
use crate::ifrt::Result;
use crate::stablehlo::op::{Binary, Window};
use crate::stablehlo::{OpData, Value};

impl Lowering<'_> {
    pub(super) fn reduce(&mut self, op: &OpData, dimensions: &[usize]) -> Result<()> {
        let known = self.recognise(region(op)?).and_then(|(binary, _)| reduction(binary));
        let ty = self.tensor(first(&op.operands)?)?;
        // Narrow types are converted on the way in and once on the way out.
        let dtype = carrier(ty.dtype).map_or(ty.dtype, |carrier| carrier.dtype);
        let kernel =
            known.and_then(|reduction| Reduce::new(reduction, dtype, ty.shape.dims(), dimensions));
        if let Some(kernel) = kernel {
            return self.kernel_in(op, dtype, kernel);
        }
        let (operands, inits) = op.operands.split_at(op.operands.len() / 2);
        let mut stored = Vec::with_capacity(operands.len());
        for &operand in operands {
            stored.push(self.stored(operand)?);
        }
        self.fold(op, stored, inits, dimensions)
    }

    /// A fold of stored operands along `dimensions` of their views.
    fn fold(
        &mut self,
        op: &OpData,
        stored: Vec<(Slot, View)>,
        inits: &[Value],
        dimensions: &[usize],
    ) -> Result<()> {
        let region = region(op)?;
        let binary =
            self.recognise(region).and_then(|(binary, dtype)| elementwise::binary(binary, dtype));
        let combine = match binary {
            Some(kernel) => Combine::Binary(kernel),
            None => Combine::Body(self.scalar_body(op, region)?),
        };
        let widths = self.widths(&op.results)?;
        let (mut inputs, views): (Vec<Slot>, Vec<View>) = stored.into_iter().unzip();
        for &init in inits {
            inputs.push(self.dense(init)?);
        }
        self.consume(&op.operands);
        let mut outputs = Vec::with_capacity(op.results.len());
        for &result in &op.results {
            let ty = self.tensor(result)?;
            let slot = self.new_slot(ty.size_bytes());
            self.define(result, slot, View::from(&ty.shape));
            outputs.push(slot);
        }
        self.emit(Fold::new(combine, widths, &views, dimensions), inputs, outputs);
        Ok(())
    }

    /// A window is a fold over a view in which every result has its window's elements along
    /// dimensions of their own. Padding and holes hold the initial value.
    pub(super) fn reduce_window(&mut self, op: &OpData, window: &Window) -> Result<()> {
        if let Some(kernel) = self.cumulative(op, window)? {
            return self.kernel(op, kernel);
        }
        let (operands, inits) = op.operands.split_at(op.operands.len() / 2);
        let result_dims = self.tensor(first(&op.results)?)?.shape.dims();
        let mut stored = Vec::with_capacity(operands.len());
        for (&operand, &init) in operands.iter().zip(inits) {
            let (slot, view) = self.padded(operand, init, window)?;
            stored.push((slot, windows(&view, window, result_dims)));
        }
        let rank = result_dims.len();
        let dimensions: Vec<usize> = (rank..2 * rank).collect();
        self.fold(op, stored, inits, &dimensions)
    }

    /// Windows that reach from every element to the edge of one dimension, if that is what they
    /// are: one by one they would take time by the square of its size.
    fn cumulative(&mut self, op: &OpData, window: &Window) -> Result<Option<Cumulative>> {
        let (&[operand, init], Some((binary, dtype))) =
            (op.operands.as_slice(), self.recognise(region(op)?))
        else {
            return Ok(None);
        };
        let dims = self.tensor(operand)?.shape.dims();
        let ones = |sizes: &[usize]| sizes.iter().all(|&size| size == 1);
        let mut wide = (0..dims.len()).filter(|&axis| window.dimensions[axis] != 1);
        let (Some(dimension), None, Some(reduction)) =
            (wide.next(), wide.next(), reduction(binary))
        else {
            return Ok(None);
        };
        let len = dims[dimension];
        let reach = i64::try_from(len).map_or(0, |len| len - 1);
        let edges = window.padding[dimension];
        let reaches_edge = window.dimensions[dimension] == len
            && (edges == (reach, 0) || edges == (0, reach))
            && window
                .padding
                .iter()
                .enumerate()
                .all(|(axis, &edges)| axis == dimension || edges == (0, 0))
            && ones(&window.strides)
            && ones(&window.base_dilations)
            && ones(&window.window_dilations);
        if !reaches_edge {
            return Ok(None);
        }
        let init = self.dense(init)?;
        let constant = self.constants.iter().find(|(slot, _)| *slot == init);
        let kernel = constant.and_then(|(_, init)| {
            let from_end = edges.0 == 0;
            Cumulative::new(reduction, dtype, init.bytes(), dims, dimension, from_end)
        });
        Ok(kernel)
    }

    pub(super) fn select_and_scatter(&mut self, op: &OpData, window: &Window) -> Result<()> {
        let [select, scatter] = op.regions.as_slice() else {
            return Err(self.unimplemented(op));
        };
        let select = self.scalar_body(op, *select)?;
        let scatter = self.update(op, *scatter)?;
        let (ty, source) = (self.tensor(operand(op, 0)?)?, self.tensor(operand(op, 1)?)?);
        let kernel = SelectAndScatter::new(
            select,
            scatter,
            ty.dtype.size_bytes(),
            ty.shape.dims(),
            source.shape.dims(),
            window,
        );
        self.kernel(op, kernel)
    }

    /// The operand of a window operation, dilated and padded with `value`.
    fn padded(&mut self, operand: Value, value: Value, window: &Window) -> Result<(Slot, View)> {
        let ty = self.tensor(operand)?;
        let (slot, view) = self.stored(operand)?;
        let value = self.dense(value)?;
        let dilations = &window.base_dilations;
        self.pad(slot, view, value, ty.dtype.size_bytes(), dilations, &window.padding)
    }

    /// A view with `dilations - 1` elements put between neighbours, and padding around. `value`
    /// holds the element that fills them.
    pub(super) fn pad(
        &mut self,
        slot: Slot,
        view: View,
        value: Slot,
        width: usize,
        dilations: &[usize],
        padding: &[(i64, i64)],
    ) -> Result<(Slot, View)> {
        let unchanged = dilations.iter().all(|&dilation| dilation == 1)
            && padding.iter().all(|&edge| edge == (0, 0));
        if unchanged {
            return Ok((slot, view));
        }
        let mut dims = Vec::with_capacity(view.dims.len());
        for ((&dim, &dilation), &(low, high)) in view.dims.iter().zip(dilations).zip(padding) {
            let dilated = dim.checked_sub(1).map_or(0, |last| last as i128 * dilation as i128 + 1);
            let total = dilated + i128::from(low) + i128::from(high);
            dims.push(usize::try_from(total.max(0)).unwrap_or(usize::MAX));
        }
        let size = checked_size(&dims, width)?;
        let low: Vec<i64> = padding.iter().map(|&(low, _)| low).collect();
        let interior: Vec<usize> = dilations.iter().map(|dilation| dilation - 1).collect();
        let kernel = Pad::new(width, &view.dims, &dims, &low, &interior);
        let dense = self.copy_unless_dense(slot, &view, width);
        let padded = self.new_slot(size);
        self.emit(kernel, vec![dense, value], vec![padded]);
        Ok((padded, View::dense(&dims)))
    }
}

/// The view whose first dimensions are those of the result and whose others walk its windows.
pub(super) fn windows(view: &View, window: &Window, result_dims: &[usize]) -> View {
    let scaled = |factors: &[usize]| -> Vec<isize> {
        view.strides
            .iter()
            .zip(factors)
            .map(|(&stride, &factor)| stride.wrapping_mul(factor.cast_signed()))
            .collect()
    };
    let mut strides = scaled(&window.strides);
    strides.extend(scaled(&window.window_dilations));
    let mut dims = result_dims.to_vec();
    dims.extend(&window.dimensions);
    View { offset: view.offset, dims, strides }
}

/// The reduction by an operation, if it is one.
pub(super) fn reduction(binary: Binary) -> Option<Reduction> {
    Some(match binary {
        Binary::Add => Reduction::Sum,
        Binary::Multiply => Reduction::Product,
        Binary::Minimum => Reduction::Min,
        Binary::Maximum => Reduction::Max,
        Binary::And => Reduction::And,
        Binary::Or => Reduction::Or,
        Binary::Xor => Reduction::Xor,
        _ => return None,
    })
}
