//! The dimensions of results, from those of the operands.
//!
//! Operands have not been verified: what does not fit gives `None` or dimensions that the verifier
//! refuses later.

use crate::stablehlo::TensorType;
use crate::stablehlo::op::{Convolution, DotGeneral, Gather, OpKind, Window};
use crate::stablehlo::verify::num_windows;

/// The dimensions of result `i` of an operation of one of the kinds whose operands say them.
pub(super) fn result_dims(kind: &OpKind, operands: &[&TensorType], i: usize) -> Option<Vec<usize>> {
    let dims = |i: usize| operands.get(i).map(|ty| ty.shape.dims().to_vec());
    match kind {
        OpKind::Unary(_)
        | OpKind::Chlo(_)
        | OpKind::Binary(_)
        | OpKind::Compare { .. }
        | OpKind::Convert
        | OpKind::ReducePrecision { .. }
        | OpKind::Reverse { .. }
        | OpKind::DynamicUpdateSlice
        | OpKind::Cholesky { .. }
        | OpKind::SelectAndScatter(_)
        | OpKind::Map { .. }
        | OpKind::BatchNormInference(_)
        | OpKind::CollectiveBroadcast(_)
        | OpKind::CollectivePermute { .. } => dims(0),
        OpKind::Select | OpKind::Clamp | OpKind::TriangularSolve(_) => dims(1),
        OpKind::Scatter(_) | OpKind::Sort { .. } | OpKind::AllReduce(_) => dims(i),
        OpKind::BatchNormTraining(_) | OpKind::BatchNormGrad(_) => dims(i.min(1)),
        OpKind::Transpose { permutation } => {
            let from = dims(0)?;
            permutation.iter().map(|&dim| from.get(dim).copied()).collect()
        }
        OpKind::Slice { start, limit, strides } => {
            let pairs = start.iter().zip(limit).zip(strides);
            pairs
                .map(|((start, limit), &step)| {
                    Some(limit.checked_sub(*start)?.div_ceil(step.max(1)))
                })
                .collect()
        }
        OpKind::Concatenate { dimension } => {
            let mut all = dims(0)?;
            let sizes = operands.iter().filter_map(|ty| ty.shape.dims().get(*dimension));
            *all.get_mut(*dimension)? = sizes.fold(0_usize, |sum, &size| sum.saturating_add(size));
            Some(all)
        }
        OpKind::Pad { low, high, interior } => {
            let sizes = dims(0)?.into_iter().zip(interior).zip(low.iter().zip(high));
            let padded = |((size, &between), (&low, &high)): ((usize, &usize), (&i64, &i64))| {
                let between = size.saturating_sub(1) as i128 * between as i128;
                let padded = i128::from(low) + size as i128 + between + i128::from(high);
                usize::try_from(padded).ok()
            };
            sizes.map(padded).collect()
        }
        OpKind::DynamicSlice { sizes } => Some(sizes.clone()),
        OpKind::Gather(gather) => gathered(gather, &dims(1)?),
        OpKind::DotGeneral(dot) => dotted(dot, &dims(0)?, &dims(1)?),
        OpKind::Convolution(convolution) => convolved(convolution, &dims(0)?, &dims(1)?),
        OpKind::Reduce { dimensions } => Some(without(&dims(0)?, dimensions)),
        OpKind::ReduceWindow(window) => dims(0)?
            .into_iter()
            .enumerate()
            .map(|(dim, size)| count_windows(size, *window.dimensions.get(dim)?, window, dim))
            .collect(),
        OpKind::AllToAll { split_dimension, concat_dimension, split_count, .. } => {
            let mut moved = dims(0)?;
            let size = moved.get_mut(*split_dimension)?;
            *size = size.checked_div(*split_count)?;
            let size = moved.get_mut(*concat_dimension)?;
            *size = size.checked_mul(*split_count)?;
            Some(moved)
        }
        _ => None,
    }
}

/// The dimensions that are not in `removed`.
pub(super) fn without(dims: &[usize], removed: &[usize]) -> Vec<usize> {
    let kept = dims.iter().enumerate().filter(|(dim, _)| !removed.contains(dim));
    kept.map(|(_, &size)| size).collect()
}

pub(super) fn gathered(gather: &Gather, indices: &[usize]) -> Option<Vec<usize>> {
    let removed = [gather.collapsed_slice_dims.as_slice(), &gather.operand_batching_dims].concat();
    let offsets = without(&gather.slice_sizes, &removed);
    let batch = without(indices, &[gather.index_vector_dim]);
    let (mut offsets, mut batch) = (offsets.into_iter(), batch.into_iter());
    let rank = offsets.len() + batch.len();
    let next = |dim| {
        if gather.offset_dims.contains(&dim) { offsets.next() } else { batch.next() }
    };
    (0..rank).map(next).collect()
}

fn dotted(dot: &DotGeneral, lhs: &[usize], rhs: &[usize]) -> Option<Vec<usize>> {
    let batch: Option<Vec<usize>> =
        dot.lhs_batching.iter().map(|&dim| lhs.get(dim).copied()).collect();
    let left = without(lhs, &[dot.lhs_batching.as_slice(), &dot.lhs_contracting].concat());
    let right = without(rhs, &[dot.rhs_batching.as_slice(), &dot.rhs_contracting].concat());
    Some([batch?, left, right].concat())
}

pub(super) fn convolved(
    convolution: &Convolution,
    lhs: &[usize],
    rhs: &[usize],
) -> Option<Vec<usize>> {
    let mut dims = vec![0; lhs.len()];
    let batch = lhs.get(convolution.input_batch_dimension)?;
    *dims.get_mut(convolution.output_batch_dimension)? =
        batch.checked_div(convolution.batch_group_count)?;
    *dims.get_mut(convolution.output_feature_dimension)? =
        *rhs.get(convolution.kernel_output_feature_dimension)?;
    for (dim, &output) in convolution.output_spatial_dimensions.iter().enumerate() {
        let input = *lhs.get(*convolution.input_spatial_dimensions.get(dim)?)?;
        let kernel = *rhs.get(*convolution.kernel_spatial_dimensions.get(dim)?)?;
        *dims.get_mut(output)? = count_windows(input, kernel, &convolution.window, dim)?;
    }
    Some(dims)
}

/// How many windows fit a dimension; `None` when the window says nothing of it.
fn count_windows(size: usize, window_size: usize, window: &Window, dim: usize) -> Option<usize> {
    let steps = [&window.strides, &window.base_dilations, &window.window_dilations];
    let is_whole = steps.iter().all(|steps| steps.get(dim).is_some_and(|&step| step > 0));
    if !is_whole || window.padding.len() <= dim {
        return None;
    }
    usize::try_from(num_windows(size, window_size, window, dim)).ok()
}
