//! `dot_general` and `convolution`: both are batched matrix products of views.
//!
//! Shorter floats are converted to `f32` first and the product is rounded once; integers are
//! converted to the result's type, narrow ones to bytes, of which the low bits are kept.
//!
//! An algorithm is taken as the least that is to be done. Operands are rounded as it says, and the
//! result is, once, to what sums are kept in; sums themselves are never kept in less than `f32`.
//! One of several products of parts, which makes up for operands that the hardware rounds, is the
//! product of the operands as they are.

use super::data::operand;
use super::reduce::windows;
use super::{Lowering, Place, checked_size, first};
use crate::backend::cpu::fuse::Group;
use crate::backend::cpu::kernels::carrier::carrier;
use crate::backend::cpu::kernels::convert::{convert, reduce_precision};
use crate::backend::cpu::kernels::dot::{Dot, Matrices};
use crate::backend::cpu::step::Slot;
use crate::backend::cpu::tile::TileKernel;
use crate::backend::cpu::view::View;
use crate::ifrt::{DType, Result};
use crate::stablehlo::entity::Entity;
use crate::stablehlo::op::{Convolution, DotAlgorithm, DotGeneral, PrecisionType, Window};
use crate::stablehlo::{OpData, OpKind, Value};

/// What an algorithm rounds an operand to, if it does.
fn rounded_to(algorithm: DotAlgorithm, precision: PrecisionType) -> Option<PrecisionType> {
    (algorithm.primitive_operations == 1).then_some(precision)
}

impl Lowering<'_> {
    pub(super) fn dot_general(&mut self, op: &OpData, dot: &DotGeneral) -> Result<()> {
        let (lhs, rhs) = (operand(op, 0)?, operand(op, 1)?);
        let compute = self.dot_type(op, dot)?;
        let [lhs_precision, rhs_precision] = match dot.algorithm {
            Some(algorithm) => [algorithm.lhs_precision, algorithm.rhs_precision]
                .map(|precision| rounded_to(algorithm, precision)),
            None => [None; 2],
        };
        let (lhs_slot, lhs_view) = self.rounded(op, lhs, lhs_precision, compute)?;
        let (rhs_slot, rhs_view) = self.rounded(op, rhs, rhs_precision, compute)?;
        self.consume(&op.operands);
        let (lhs_order, rows) = order(&lhs_view, &dot.lhs_batching, &dot.lhs_contracting, true);
        let (rhs_order, _) = order(&rhs_view, &dot.rhs_batching, &dot.rhs_contracting, false);
        let batch = dot.lhs_batching.len();
        let lhs = (lhs_slot, lhs_view.transpose(&lhs_order));
        let rhs = (rhs_slot, rhs_view.transpose(&rhs_order));
        let contracting = dot.rhs_contracting.len();
        let result = first(&op.results)?;
        let columns = rhs.1.dims.len() - batch - contracting;
        let accumulation = match dot.algorithm {
            Some(DotAlgorithm { accumulation: PrecisionType::Element(dtype), .. }) => dtype,
            _ => compute,
        };
        let result_type = self.tensor(result)?.dtype;
        if batch == 0
            && self.turns(result, rows, columns)
            && [compute, accumulation] == [result_type; 2]
        {
            // Made the way it is wanted: the transpose of a product is that of the transposes,
            // the other way round.
            let swapped = |view: &View, outer: usize| {
                let order: Vec<usize> = (outer..view.dims.len()).chain(0..outer).collect();
                view.transpose(&order)
            };
            let lhs = (lhs.0, swapped(&lhs.1, rows));
            let rhs = (rhs.0, swapped(&rhs.1, contracting));
            let dims = [&rhs.1.dims[..columns], &lhs.1.dims[contracting..]].concat();
            let product = self.product(op, compute, 0, rhs, columns, lhs, contracting)?;
            self.define(result, product, swapped(&View::dense(&dims), columns));
            return Ok(());
        }
        let product = self.product(op, compute, batch, lhs, rows, rhs, contracting)?;
        let view = View::from(&self.tensor(result)?.shape);
        if accumulation.size_bytes() >= compute.size_bytes() || accumulation == result_type {
            return self.define_converted(op, result, product, &view, compute);
        }
        let sums = self.convert_view(op, product, &view, compute, accumulation)?;
        self.define_converted(op, result, sums, &view, accumulation)
    }

    /// The type that a product is computed in: as wide as an algorithm asks for.
    fn dot_type(&self, op: &OpData, dot: &DotGeneral) -> Result<DType> {
        let compute = self.compute_type(op)?;
        let is_wide = dot.algorithm.is_some_and(|algorithm| {
            let precision = [algorithm.lhs_precision, algorithm.rhs_precision];
            [precision[0], precision[1], algorithm.accumulation]
                .contains(&PrecisionType::Element(DType::F64))
        });
        Ok(if compute == DType::F32 && is_wide { DType::F64 } else { compute })
    }

    /// An operand, rounded to `precision`, stored as elements of `to`.
    fn rounded(
        &mut self,
        op: &OpData,
        operand: Value,
        precision: Option<PrecisionType>,
        to: DType,
    ) -> Result<(Slot, View)> {
        let dtype = self.tensor(operand)?.dtype;
        // The format of `tf32`: the exponent of `f32` and the mantissa of `f16`.
        const TF32: (u32, u32) = (8, 10);
        match precision {
            Some(PrecisionType::Element(rounded)) if rounded != dtype && rounded != to => {
                let (slot, view) = self.stored(operand)?;
                let slot = self.convert_view(op, slot, &view, dtype, rounded)?;
                let view = View::dense(&view.dims);
                Ok((self.convert_view(op, slot, &view, rounded, to)?, view))
            }
            Some(PrecisionType::Tf32) if dtype == DType::F32 && to == DType::F32 => {
                let (slot, view) = self.stored(operand)?;
                let kernel = reduce_precision(to).ok_or_else(|| self.unimplemented(op))?;
                let (exponent_bits, mantissa_bits) = TF32;
                let rounding = TileKernel::Rounding { kernel, exponent_bits, mantissa_bits };
                let slot = self.applied(slot, &view, dtype, rounding, to);
                Ok((slot, View::dense(&view.dims)))
            }
            _ => self.converted(op, operand, to),
        }
    }

    /// Whether a product of so many dimensions is used once, to put its columns before its rows.
    fn turns(&self, product: Value, rows: usize, columns: usize) -> bool {
        self.uses[product.index()] == 1
            && self.last_use[product.index()].is_some_and(|user| {
                let OpKind::Transpose { permutation } = &self.function.ops[user].kind else {
                    return false;
                };
                permutation.iter().copied().eq((rows..rows + columns).chain(0..rows))
            })
    }

    /// Emits the product of `[batch.., m.., k..]` and `[batch.., k.., n..]`, where `rows` and
    /// `contracting` say how many dimensions m and k are of, and returns the slot of the dense
    /// `[batch.., m.., n..]`.
    #[expect(clippy::too_many_arguments, reason = "two operands and how each is cut")]
    fn product(
        &mut self,
        op: &OpData,
        compute: DType,
        batch: usize,
        (lhs_slot, lhs): (Slot, View),
        rows: usize,
        (rhs_slot, rhs): (Slot, View),
        contracting: usize,
    ) -> Result<Slot> {
        let width = compute.size_bytes();
        let batch_dims = lhs.dims[..batch].to_vec();
        let result_dims = [&lhs.dims[..batch + rows], &rhs.dims[batch + contracting..]].concat();
        let size = checked_size(&result_dims, width)?;
        let (lhs_slot, lhs) = self.matrices(op, lhs_slot, &lhs, batch, rows, width)?;
        let (rhs_slot, rhs) = self.matrices(op, rhs_slot, &rhs, batch, contracting, width)?;
        let kernel =
            Dot::new(compute, &batch_dims, lhs, rhs).ok_or_else(|| self.unimplemented(op))?;
        let product = self.new_slot(size);
        self.emit(kernel, vec![lhs_slot, rhs_slot], vec![product]);
        Ok(product)
    }

    /// A view as matrices whose rows are `rows` dimensions after the batch, copied if need be.
    fn matrices(
        &mut self,
        op: &OpData,
        slot: Slot,
        view: &View,
        batch: usize,
        rows: usize,
        width: usize,
    ) -> Result<(Slot, Matrices)> {
        checked_size(&view.dims, width)?;
        let mut dims = view.dims[..batch].to_vec();
        dims.push(view.dims[batch..batch + rows].iter().product());
        dims.push(view.dims[batch + rows..].iter().product());
        if let Some(matrices) = view.reshape(&dims).as_ref().and_then(Matrices::new) {
            return Ok((slot, matrices));
        }
        let copied = self.copy(slot, view, width);
        let matrices = Matrices::new(&View::dense(&dims)).ok_or_else(|| self.unimplemented(op))?;
        Ok((copied, matrices))
    }

    /// The type products are computed in.
    fn compute_type(&self, op: &OpData) -> Result<DType> {
        let result = self.tensor(first(&op.results)?)?.dtype;
        if !result.is_float() {
            return Ok(carrier(result).map_or(result, |carrier| carrier.dtype));
        }
        let mut wide = result == DType::F64;
        for &operand in &op.operands {
            wide |= self.tensor(operand)?.dtype == DType::F64;
        }
        Ok(if wide { DType::F64 } else { DType::F32 })
    }

    /// An operand stored as elements of `to`.
    pub(super) fn converted(
        &mut self,
        op: &OpData,
        operand: Value,
        to: DType,
    ) -> Result<(Slot, View)> {
        let ty = self.tensor(operand)?;
        let (slot, view) = self.stored(operand)?;
        if ty.dtype == to {
            return Ok((slot, view));
        }
        let converted = self.convert_view(op, slot, &view, ty.dtype, to)?;
        Ok((converted, View::dense(&view.dims)))
    }

    /// A slot with the elements of a view, of type `from`, as elements of `to`.
    pub(super) fn convert_view(
        &mut self,
        op: &OpData,
        slot: Slot,
        view: &View,
        from: DType,
        to: DType,
    ) -> Result<Slot> {
        let kernel = convert(from, to).ok_or_else(|| self.unimplemented(op))?;
        Ok(self.applied(slot, view, from, TileKernel::Unary(kernel), to))
    }

    /// A slot with what `kernel` makes of the elements of a view.
    fn applied(
        &mut self,
        slot: Slot,
        view: &View,
        from: DType,
        kernel: TileKernel,
        to: DType,
    ) -> Slot {
        let mut group = Group::new(view.num_elements());
        let loaded = group.load(slot, view, from.size_bytes());
        let node = group.apply(kernel, &[loaded], to.size_bytes());
        let result = self.new_slot(view.num_elements() * to.size_bytes());
        let (kernel, inputs) = group.finish(&[node]);
        self.emit(kernel, inputs, vec![result]);
        result
    }

    /// Defines `result` as a view of a product, rounded to the result's type by a loop that later
    /// operations may join.
    pub(super) fn define_converted(
        &mut self,
        op: &OpData,
        result: Value,
        product: Slot,
        view: &View,
        from: DType,
    ) -> Result<()> {
        let to = self.tensor(result)?.dtype;
        if from == to {
            self.define(result, product, view.clone());
            return Ok(());
        }
        let kernel = convert(from, to).ok_or_else(|| self.unimplemented(op))?;
        let mut group = Group::new(view.num_elements());
        let wide = group.load(product, view, from.size_bytes());
        let node = group.apply(TileKernel::Unary(kernel), &[wide], to.size_bytes());
        group.values.push((result, node));
        self.groups.push(Some(group));
        let group = self.groups.len() - 1;
        self.places[result.index()] = Some(Place::Pending { group, node });
        Ok(())
    }

    /// Every window of the input becomes a row of a matrix, a view while it stays one.
    pub(super) fn convolution(&mut self, op: &OpData, conv: &Convolution) -> Result<()> {
        let (lhs, rhs) = (operand(op, 0)?, operand(op, 1)?);
        let compute = self.compute_type(op)?;
        let width = compute.size_bytes();
        let (lhs_slot, lhs_view) = self.converted(op, lhs, compute)?;
        let (rhs_slot, rhs_view) = self.converted(op, rhs, compute)?;
        self.consume(&op.operands);
        let result = first(&op.results)?;
        let result_dims = self.tensor(result)?.shape.dims();
        let spatial = conv.input_spatial_dimensions.len();
        let groups = conv.feature_group_count.max(conv.batch_group_count).max(1);

        // The input as [batch, spatial.., feature], padded.
        let mut input_order = vec![conv.input_batch_dimension];
        input_order.extend(&conv.input_spatial_dimensions);
        input_order.push(conv.input_feature_dimension);
        let around = |inner: &[usize]| [&[1], inner, &[1]].concat();
        let padding = [&[(0, 0)], conv.window.padding.as_slice(), &[(0, 0)]].concat();
        let zero = self.splat(&vec![0; width])?;
        let (input_slot, input) = self.pad(
            lhs_slot,
            lhs_view.transpose(&input_order),
            zero,
            width,
            &around(&conv.window.base_dilations),
            &padding,
        )?;

        // Its windows as [group, batch, out.., window.., feature].
        let out_spatial: Vec<usize> =
            conv.output_spatial_dimensions.iter().map(|&dim| result_dims[dim]).collect();
        let batch_groups = conv.batch_group_count.max(1);
        let feature_groups = conv.feature_group_count.max(1);
        let split = [
            &[batch_groups, input.dims[0] / batch_groups],
            &input.dims[1..=spatial],
            &[feature_groups, input.dims[spatial + 1] / feature_groups],
        ]
        .concat();
        let split_view = split_dims(&input, &split, spatial);
        let window = Window {
            dimensions: conv
                .kernel_spatial_dimensions
                .iter()
                .map(|&dim| rhs_view.dims[dim])
                .collect(),
            strides: conv.window.strides.clone(),
            base_dilations: vec![1; spatial],
            window_dilations: conv.window.window_dilations.clone(),
            padding: vec![(0, 0); spatial],
        };
        let inner = View {
            offset: split_view.offset,
            dims: split_view.dims[2..spatial + 2].to_vec(),
            strides: split_view.strides[2..spatial + 2].to_vec(),
        };
        let moving = windows(&inner, &window, &out_spatial);
        // One of the two group dimensions has size 1: the other is the batch of the product.
        let group_axis = if batch_groups > 1 { 0 } else { spatial + 2 };
        let pick = |axis: usize| (split_view.dims[axis], split_view.strides[axis]);
        let mut axes = vec![pick(group_axis), pick(1)];
        axes.extend(moving.dims.iter().copied().zip(moving.strides.iter().copied()));
        axes.push(pick(spatial + 3));
        let (dims, strides): (Vec<usize>, Vec<isize>) = axes.into_iter().unzip();
        let patches = View { offset: split_view.offset, dims, strides };

        // The kernel as [group, window.., feature, out feature].
        let mut kernel_order = conv.kernel_spatial_dimensions.clone();
        kernel_order.push(conv.kernel_input_feature_dimension);
        kernel_order.push(conv.kernel_output_feature_dimension);
        let reversed: Vec<usize> = (0..spatial)
            .filter(|&i| conv.window_reversal.get(i).copied().unwrap_or(false))
            .collect();
        let kernel = rhs_view.transpose(&kernel_order).reverse(&reversed);
        let kernel = split_last(&kernel, groups);
        let features = kernel.dims[spatial + 2];

        let product = self.product(
            op,
            compute,
            1,
            (input_slot, patches),
            spatial + 1,
            (rhs_slot, kernel),
            spatial + 1,
        )?;

        // [group, batch, out.., feature] to [batch, out.., group x feature], then as asked.
        let mut product_dims = vec![groups, split[1]];
        product_dims.extend(&out_spatial);
        product_dims.push(features);
        let mut regroup: Vec<usize> = (1..spatial + 2).collect();
        regroup.extend([0, spatial + 2]);
        let regrouped = View::dense(&product_dims).transpose(&regroup);
        let mut plain = vec![split[1]];
        plain.extend(&out_spatial);
        plain.push(groups * features);
        let (slot, plain) = match regrouped.reshape(&plain) {
            Some(view) => (product, view),
            None => (self.copy(product, &regrouped, width), View::dense(&plain)),
        };
        let mut output_order = vec![0; spatial + 2];
        output_order[conv.output_batch_dimension] = 0;
        output_order[conv.output_feature_dimension] = spatial + 1;
        for (i, &dim) in conv.output_spatial_dimensions.iter().enumerate() {
            output_order[dim] = i + 1;
        }
        self.define_converted(op, result, slot, &plain.transpose(&output_order), compute)
    }
}

/// The order of dimensions that a product takes, and how many of them are free: batch, free,
/// contracting for the left operand; batch, contracting, free for the right one.
fn order(
    view: &View,
    batching: &[usize],
    contracting: &[usize],
    left: bool,
) -> (Vec<usize>, usize) {
    let free: Vec<usize> = (0..view.dims.len())
        .filter(|i| !batching.contains(i) && !contracting.contains(i))
        .collect();
    let order = if left {
        [batching, &free, contracting].concat()
    } else {
        [batching, contracting, &free].concat()
    };
    (order, free.len())
}

/// `[batch, spatial.., feature]` with the first and the last dimension cut in two each.
fn split_dims(view: &View, split: &[usize], spatial: usize) -> View {
    let cut = |axis: usize, inner: usize| view.strides[axis].wrapping_mul(inner.cast_signed());
    let mut strides = vec![cut(0, split[1]), view.strides[0]];
    strides.extend(&view.strides[1..=spatial]);
    strides.extend([cut(spatial + 1, split[spatial + 3]), view.strides[spatial + 1]]);
    View { offset: view.offset, dims: split.to_vec(), strides }
}

/// A view whose last dimension is cut into `groups`, the groups first.
fn split_last(view: &View, groups: usize) -> View {
    let last = view.dims.len() - 1;
    let size = view.dims[last] / groups;
    let mut dims = vec![groups];
    dims.extend(&view.dims[..last]);
    dims.push(size);
    let mut strides = vec![view.strides[last].wrapping_mul(size.cast_signed())];
    strides.extend(&view.strides);
    View { offset: view.offset, dims, strides }
}
