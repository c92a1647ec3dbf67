//! The `check` dialect.

use super::{Attributes, Built};
use crate::stablehlo::op::{Expectation, OpKind};

/// The operations of this file.
pub(super) const KNOWN: &[&str] =
    &["expect_eq", "expect_eq_const", "expect_almost_eq", "expect_almost_eq_const", "expect_close"];

/// The operation called `op`, if it is one of this file's.
pub(super) fn kind(op: &str, attributes: &mut Attributes) -> Built<Option<OpKind>> {
    Ok(Some(OpKind::Expect(match op {
        "expect_eq" => Expectation::Eq,
        "expect_eq_const" => Expectation::EqConst(attributes.elements("value")?),
        "expect_almost_eq" => Expectation::AlmostEq { tolerance: tolerance(attributes)? },
        "expect_almost_eq_const" => Expectation::AlmostEqConst {
            value: attributes.elements("value")?,
            tolerance: tolerance(attributes)?,
        },
        "expect_close" => Expectation::Close {
            least: attributes.optional_integer("min_ulp_difference")?.unwrap_or(0),
            most: attributes.optional_integer("max_ulp_difference")?.unwrap_or(1),
        },
        _ => return Ok(None),
    })))
}

fn tolerance(attributes: &mut Attributes) -> Built<f64> {
    Ok(attributes.optional_double("tolerance")?.unwrap_or(Expectation::DEFAULT_TOLERANCE))
}
