//! Operations that make, move and choose elements.

use super::{Attributes, Built};
use crate::stablehlo::op::{Gather, OpKind, Scatter};

/// The operations of this file.
pub(super) const KNOWN: &[&str] = &[
    "iota",
    "bitcast_convert",
    "broadcast",
    "broadcast_in_dim",
    "reshape",
    "transpose",
    "slice",
    "concatenate",
    "pad",
    "reverse",
    "dynamic_slice",
    "dynamic_update_slice",
    "gather",
    "scatter",
    "sort",
    "get_dimension_size",
    "torch_index_select",
];

/// The operation called `op`, if it is one of this file's.
pub(super) fn kind(op: &str, attributes: &mut Attributes) -> Built<Option<OpKind>> {
    Ok(Some(match op {
        "iota" => OpKind::Iota { dimension: attributes.integer("iota_dimension")? },
        "bitcast_convert" => OpKind::BitcastConvert,
        "broadcast_in_dim" => OpKind::BroadcastInDim {
            dimensions: attributes.required_integers("broadcast_dimensions")?,
        },
        "reshape" => OpKind::Reshape,
        "transpose" => {
            OpKind::Transpose { permutation: attributes.required_integers("permutation")? }
        }
        "slice" => OpKind::Slice {
            start: attributes.required_integers("start_indices")?,
            limit: attributes.required_integers("limit_indices")?,
            strides: attributes.required_integers("strides")?,
        },
        "concatenate" => OpKind::Concatenate { dimension: attributes.integer("dimension")? },
        "pad" => OpKind::Pad {
            low: attributes.required_integers("edge_padding_low")?,
            high: attributes.required_integers("edge_padding_high")?,
            interior: attributes.required_integers("interior_padding")?,
        },
        "reverse" => OpKind::Reverse { dimensions: attributes.required_integers("dimensions")? },
        "dynamic_slice" => {
            OpKind::DynamicSlice { sizes: attributes.required_integers("slice_sizes")? }
        }
        "dynamic_update_slice" => OpKind::DynamicUpdateSlice,
        "get_dimension_size" => {
            OpKind::GetDimensionSize { dimension: attributes.integer("dimension")? }
        }
        "gather" => {
            let slice_sizes = attributes.required_integers("slice_sizes")?;
            OpKind::Gather(gather(attributes, slice_sizes)?)
        }
        "broadcast" => {
            OpKind::Broadcast { sizes: attributes.required_integers("broadcast_sizes")? }
        }
        "torch_index_select" => OpKind::TorchIndexSelect {
            dimension: attributes.integer("dim")?,
            batch_dims: attributes.integer("batch_dims")?,
        },
        "scatter" => OpKind::Scatter(scatter(attributes)?),
        "sort" => OpKind::Sort {
            dimension: sort_dimension(attributes)?,
            is_stable: attributes.flag("is_stable")?,
        },
        _ => return Ok(None),
    }))
}

/// The dimension sorted along; a negative one counts from the end, and -1 is the default.
fn sort_dimension(attributes: &mut Attributes) -> Built<usize> {
    let dimension: i64 = attributes.optional_integer("dimension")?.unwrap_or(-1);
    let counted = match usize::try_from(dimension) {
        Ok(dimension) => Some(dimension),
        Err(_) => attributes
            .rank()
            .and_then(|rank| rank.checked_sub(usize::try_from(dimension.unsigned_abs()).ok()?)),
    };
    counted.ok_or_else(|| attributes.not_known("a sort dimension counted from the end"))
}

/// The attributes of a gather of slices of these sizes.
pub(super) fn gather(attributes: &mut Attributes, slice_sizes: Vec<usize>) -> Built<Gather> {
    let mut numbers = attributes.required_fields("dimension_numbers", "stablehlo.gather")?;
    let gather = Gather {
        offset_dims: numbers.integers("offset_dims")?,
        collapsed_slice_dims: numbers.integers("collapsed_slice_dims")?,
        operand_batching_dims: numbers.integers("operand_batching_dims")?,
        start_indices_batching_dims: numbers.integers("start_indices_batching_dims")?,
        start_index_map: numbers.integers("start_index_map")?,
        index_vector_dim: numbers.optional_integer("index_vector_dim")?.unwrap_or(0),
        slice_sizes,
        indices_are_sorted: attributes.flag("indices_are_sorted")?,
    };
    numbers.finish()?;
    Ok(gather)
}

fn scatter(attributes: &mut Attributes) -> Built<Scatter> {
    let mut numbers =
        attributes.required_fields("scatter_dimension_numbers", "stablehlo.scatter")?;
    let scatter = Scatter {
        update_window_dims: numbers.integers("update_window_dims")?,
        inserted_window_dims: numbers.integers("inserted_window_dims")?,
        input_batching_dims: numbers.integers("input_batching_dims")?,
        scatter_indices_batching_dims: numbers.integers("scatter_indices_batching_dims")?,
        scatter_dims_to_operand_dims: numbers.integers("scatter_dims_to_operand_dims")?,
        index_vector_dim: numbers.optional_integer("index_vector_dim")?.unwrap_or(0),
        indices_are_sorted: attributes.flag("indices_are_sorted")?,
        unique_indices: attributes.flag("unique_indices")?,
    };
    numbers.finish()?;
    Ok(scatter)
}
