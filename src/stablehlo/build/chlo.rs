//! The `chlo` dialect.

use super::{Attributes, Built, comparison};
use crate::ifrt::Shape;
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::number::float_bytes;
use crate::stablehlo::op::{Broadcasting, Chlo, ChloBinary, ChloUnary, OpKind};
use crate::stablehlo::{Literal, TensorType};

/// The operations of this file that have attributes or operands of their own kind.
pub(super) const KNOWN: &[&str] =
    &["constant", "constant_like", "top_k", "broadcast_compare", "broadcast_select"];

/// Whether there is an operation called `op`.
pub(super) fn is_known(op: &str) -> bool {
    KNOWN.contains(&op)
        || ChloUnary::from_name(op).is_some()
        || ChloBinary::from_name(op).is_some()
        || Broadcasting::from_name(op).is_some()
}

/// The operation called `op`, if it is one of this file's.
pub(super) fn kind(op: &str, attributes: &mut Attributes) -> Built<Option<OpKind>> {
    if let Some(op) = Broadcasting::from_name(op) {
        let dimensions = attributes.optional_integers("broadcast_dimensions")?;
        return Ok(Some(OpKind::Chlo(Chlo::Broadcast { op, dimensions })));
    }
    Ok(Some(OpKind::Chlo(match op {
        "constant" => return Ok(Some(OpKind::Constant(attributes.elements("value")?))),
        "constant_like" => Chlo::ConstantLike(number(attributes)?),
        "top_k" => {
            // A sort that is stable is so for those who do not ask for it, too.
            attributes.flag("is_stable")?;
            Chlo::TopK { k: attributes.integer("k")? }
        }
        "broadcast_compare" => {
            let dimensions = attributes.optional_integers("broadcast_dimensions")?;
            let (direction, compare_type) = comparison(attributes)?;
            Chlo::BroadcastCompare { dimensions, direction, compare_type }
        }
        "broadcast_select" => Chlo::BroadcastSelect,
        _ => match (ChloUnary::from_name(op), ChloBinary::from_name(op)) {
            (Some(unary), _) => Chlo::Unary(unary),
            (None, Some(binary)) => Chlo::Binary(binary),
            (None, None) => return Ok(None),
        },
    })))
}

/// `value`: one number of a type.
fn number(attributes: &mut Attributes) -> Built<Literal> {
    let entry = attributes.take("value").ok_or_else(|| attributes.lacks("value"))?;
    let literal = match *entry.value.resolved() {
        Attribute::Float(value, Some(dtype)) => {
            float_bytes(value, dtype).map(|bytes| (dtype, bytes))
        }
        Attribute::Integer(value, Some(dtype)) if dtype.size_bytes() <= 8 => {
            Some((dtype, value.to_le_bytes()[..dtype.size_bytes()].to_vec()))
        }
        _ => None,
    };
    let literal = literal
        .and_then(|(dtype, bytes)| Literal::splat(TensorType::new(dtype, Shape::scalar()), bytes));
    literal.ok_or_else(|| attributes.wrong(&entry, "a number with its type"))
}
