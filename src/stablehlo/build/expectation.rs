//! The `check` and the `interpreter` dialect.

use super::{Attributes, Built};
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::op::{Expectation, Interpretation, OpKind};

/// The operations of this file.
pub(super) const KNOWN: &[&str] = &[
    "expect_eq",
    "expect_eq_const",
    "expect_almost_eq",
    "expect_almost_eq_const",
    "expect_close",
    "expect_serialized_eq",
];

/// The operations of the `interpreter` dialect.
pub(super) const INTERPRETER: &[&str] = &["run_parallel", "print", "probe"];

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
        "expect_serialized_eq" => Expectation::SerializedEq {
            probe_id: attributes.string("probe_id")?,
            iteration: attributes.optional_integer("iteration")?.unwrap_or(0),
        },
        _ => return Ok(None),
    })))
}

/// The operation of the `interpreter` dialect called `op`, if it is one of this file's.
pub(super) fn interpreter(op: &str, attributes: &mut Attributes) -> Built<Option<OpKind>> {
    Ok(Some(OpKind::Interpret(match op {
        "run_parallel" => {
            let entry = attributes.take("programs").ok_or_else(|| attributes.lacks("programs"))?;
            let programs = match entry.value.resolved() {
                Attribute::Array(replicas) => replicas.iter().map(functions).collect(),
                _ => None,
            };
            let programs = programs.ok_or_else(|| {
                attributes.wrong(&entry, "lists of functions such as `[[@a, @b]]`")
            })?;
            let infeed = match attributes.take("infeed") {
                Some(entry) => functions(&entry.value)
                    .ok_or_else(|| attributes.wrong(&entry, "functions such as `[@a]`"))?,
                None => Vec::new(),
            };
            Interpretation::RunParallel { programs, infeed }
        }
        "print" => Interpretation::Print,
        "probe" => Interpretation::Probe { probe_id: attributes.string("probe_id")? },
        _ => return Ok(None),
    })))
}

/// `[@a, @b]`, or the names as text.
fn functions(attribute: &Attribute) -> Option<Vec<String>> {
    let Attribute::Array(items) = attribute.resolved() else { return None };
    let name = |item: &Attribute| match item.resolved() {
        Attribute::Symbol(name) | Attribute::String(name) => Some(name.clone()),
        _ => None,
    };
    items.iter().map(name).collect()
}

fn tolerance(attributes: &mut Attributes) -> Built<f64> {
    Ok(attributes.optional_double("tolerance")?.unwrap_or(Expectation::DEFAULT_TOLERANCE))
}
