//! Operations whose shapes are operands.

use super::{Attributes, Built, shape, window};
use crate::stablehlo::op::{DynamicBroadcast, OpKind};

/// The operations of this file.
pub(super) const KNOWN: &[&str] = &[
    "dynamic_broadcast_in_dim",
    "dynamic_conv",
    "dynamic_gather",
    "dynamic_iota",
    "dynamic_pad",
    "dynamic_reshape",
    "real_dynamic_slice",
    "set_dimension_size",
];

/// The operation called `op`, if it is one of this file's.
pub(super) fn kind(op: &str, attributes: &mut Attributes) -> Built<Option<OpKind>> {
    Ok(Some(match op {
        "dynamic_broadcast_in_dim" => OpKind::DynamicBroadcastInDim(DynamicBroadcast {
            dimensions: attributes.required_integers("broadcast_dimensions")?,
            known_expanding: attributes.integers("known_expanding_dimensions")?,
            known_nonexpanding: attributes.integers("known_nonexpanding_dimensions")?,
        }),
        "dynamic_conv" => {
            let padding = |_: &mut Attributes, _| Ok(Vec::new());
            OpKind::DynamicConv(Box::new(window::convolution(attributes, padding)?))
        }
        "dynamic_gather" => OpKind::DynamicGather(shape::gather(attributes, Vec::new())?),
        "real_dynamic_slice" => OpKind::RealDynamicSlice,
        "set_dimension_size" => {
            OpKind::SetDimensionSize { dimension: attributes.integer("dimension")? }
        }
        "dynamic_iota" => OpKind::DynamicIota { dimension: attributes.integer("iota_dimension")? },
        "dynamic_pad" => OpKind::DynamicPad,
        "dynamic_reshape" => OpKind::DynamicReshape,
        _ => return Ok(None),
    }))
}
