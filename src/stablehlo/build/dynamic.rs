//! Operations whose shapes are operands.

use super::{Attributes, Built};
use crate::stablehlo::op::{DynamicBroadcast, OpKind};

/// The operations of this file.
pub(super) const KNOWN: &[&str] =
    &["dynamic_broadcast_in_dim", "dynamic_iota", "dynamic_pad", "dynamic_reshape"];

/// The operation called `op`, if it is one of this file's.
pub(super) fn kind(op: &str, attributes: &mut Attributes) -> Built<Option<OpKind>> {
    Ok(Some(match op {
        "dynamic_broadcast_in_dim" => OpKind::DynamicBroadcastInDim(DynamicBroadcast {
            dimensions: attributes.required_integers("broadcast_dimensions")?,
            known_expanding: attributes.integers("known_expanding_dimensions")?,
            known_nonexpanding: attributes.integers("known_nonexpanding_dimensions")?,
        }),
        "dynamic_iota" => OpKind::DynamicIota { dimension: attributes.integer("iota_dimension")? },
        "dynamic_pad" => OpKind::DynamicPad,
        "dynamic_reshape" => OpKind::DynamicReshape,
        _ => return Ok(None),
    }))
}
