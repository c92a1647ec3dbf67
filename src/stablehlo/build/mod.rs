//! From an operation's name and attributes to an [`OpKind`]: the one table every reader ends in.
//!
//! Each attribute is either given a meaning, listed as harmless, or refused: dropping one that
//! is not understood could change what a program computes (invariant I10).

mod attributes;
mod chlo;
mod collective;
mod dynamic;
mod expectation;
mod function;
mod linalg;
pub(super) mod module;
mod normalization;
pub(super) mod replica_groups;
mod shape;
mod sharding;
mod transfer;
mod window;

pub(super) use attributes::{AttributeError, Attributes, Common, matrix_elements};

use super::attribute::Attribute;
use super::op::{Binary, CompareType, Composite, Direction, OpKind, Precision, Unary};
use super::{Function, Location, Region, Value};
use crate::ifrt::DType;

/// What building answers.
type Built<T> = Result<T, AttributeError>;

/// The operations of this file.
const KNOWN: &[&str] = &[
    "compare",
    "select",
    "clamp",
    "convert",
    "reduce_precision",
    "constant",
    "uniform_quantize",
    "uniform_dequantize",
    "async_start",
    "async_done",
    "while",
    "if",
    "case",
    "return",
    "optimization_barrier",
    "custom_call",
    "composite",
];

/// The operations of StableHLO but those that work element by element on one or two operands.
const STABLEHLO: &[&[&str]] = &[
    KNOWN,
    shape::KNOWN,
    dynamic::KNOWN,
    linalg::KNOWN,
    normalization::KNOWN,
    transfer::KNOWN,
    window::KNOWN,
    collective::KNOWN,
];

/// Whether operations called `name` (with the dialect) have an [`OpKind`].
pub(super) fn is_known(name: &str) -> bool {
    match name.split_once('.') {
        Some(("stablehlo", op)) => {
            Unary::from_name(op).is_some()
                || Binary::from_name(op).is_some()
                || STABLEHLO.iter().any(|names| names.contains(&op))
        }
        Some(("func", op)) => matches!(op, "call" | "return"),
        Some(("sdy", op)) => sharding::KNOWN.contains(&op),
        Some(("chlo", op)) => chlo::is_known(op),
        Some(("check", op)) => expectation::KNOWN.contains(&op),
        Some(("interpreter", op)) => expectation::INTERPRETER.contains(&op),
        _ => false,
    }
}

/// The names of all operations but those that work element by element on one or two operands.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = String> {
    let of = |dialect: &'static str, names: &'static [&'static str]| {
        names.iter().map(move |name| format!("{dialect}.{name}"))
    };
    let stablehlo = STABLEHLO.iter().flat_map(move |names| of("stablehlo", names));
    let others = of("sdy", sharding::KNOWN).chain(of("check", expectation::KNOWN));
    let others = others.chain(of("interpreter", expectation::INTERPRETER));
    stablehlo.chain(of("func", &["call"])).chain(others)
}

/// The region that an operation called `name` implies, if it does.
pub(super) fn implied_region(
    name: &str,
    operands: &[Value],
    function: &mut Function,
    location: Location,
) -> Option<Region> {
    let &operand = operands.first().filter(|_| name == "stablehlo.cross-replica-sum")?;
    let element = function.ty(operand).element()?;
    Some(function.push_reducer(OpKind::Binary(Binary::Add), element, location))
}

/// The operation called `name` (with the dialect), which must be known, with `attributes`.
pub(super) fn kind(name: &str, mut attributes: Attributes) -> Built<OpKind> {
    let kind = match name.split_once('.') {
        Some(("stablehlo", op)) => stablehlo(op, &mut attributes)?,
        Some(("func", op)) => func(op, &mut attributes)?,
        Some(("sdy", op)) => sharding::kind(op, &mut attributes)?,
        Some(("chlo", op)) => chlo::kind(op, &mut attributes)?,
        Some(("check", op)) => expectation::kind(op, &mut attributes)?,
        Some(("interpreter", op)) => expectation::interpreter(op, &mut attributes)?,
        _ => None,
    };
    let Some(kind) = kind else {
        return Err(attributes.not_known(name));
    };
    attributes.finish()?;
    Ok(kind)
}

/// What a comparison asks, and how it compares if it says so.
fn comparison(attributes: &mut Attributes) -> Built<(Direction, Option<CompareType>)> {
    let name = "comparison_direction";
    let direction = attributes.required_case(name, name, Direction::from_name)?;
    Ok((direction, attributes.case("compare_type", "comparison_type", CompareType::from_name)?))
}

fn stablehlo(op: &str, attributes: &mut Attributes) -> Built<Option<OpKind>> {
    if let Some(unary) = Unary::from_name(op) {
        return Ok(Some(OpKind::Unary(unary)));
    }
    if let Some(binary) = Binary::from_name(op) {
        return Ok(Some(OpKind::Binary(binary)));
    }
    let kind = match op {
        "compare" => {
            let (direction, compare_type) = comparison(attributes)?;
            OpKind::Compare { direction, compare_type }
        }
        "select" => OpKind::Select,
        "clamp" => OpKind::Clamp,
        "convert" => OpKind::Convert,
        "reduce_precision" => OpKind::ReducePrecision {
            exponent_bits: attributes.integer("exponent_bits")?,
            mantissa_bits: attributes.integer("mantissa_bits")?,
        },
        "constant" => OpKind::Constant(attributes.elements("value")?),
        "uniform_quantize" => OpKind::UniformQuantize,
        "uniform_dequantize" => OpKind::UniformDequantize,
        "async_start" => OpKind::AsyncStart,
        "async_done" => OpKind::AsyncDone,
        "while" => OpKind::While,
        "if" => OpKind::If,
        "case" => OpKind::Case,
        "return" => OpKind::Return,
        "optimization_barrier" => OpKind::OptimizationBarrier,
        "custom_call" => custom_call(attributes)?,
        "composite" => OpKind::Composite(Box::new(Composite {
            name: attributes.string("name")?,
            attributes: attributes.dictionary("composite_attributes")?,
            decomposition: attributes.symbol("decomposition")?,
            version: attributes.optional_integer("version")?.unwrap_or(0),
        })),
        _ => {
            if let Some(kind) = shape::kind(op, attributes)? {
                return Ok(Some(kind));
            }
            if let Some(kind) = dynamic::kind(op, attributes)? {
                return Ok(Some(kind));
            }
            if let Some(kind) = linalg::kind(op, attributes)? {
                return Ok(Some(kind));
            }
            if let Some(kind) = normalization::kind(op, attributes)? {
                return Ok(Some(kind));
            }
            if let Some(kind) = transfer::kind(op, attributes)? {
                return Ok(Some(kind));
            }
            if let Some(kind) = window::kind(op, attributes)? {
                return Ok(Some(kind));
            }
            return collective::kind(op, attributes);
        }
    };
    Ok(Some(kind))
}

fn func(op: &str, attributes: &mut Attributes) -> Built<Option<OpKind>> {
    Ok(match op {
        "call" => Some(OpKind::Call { callee: attributes.symbol("callee")? }),
        "return" => Some(OpKind::Return),
        _ => None,
    })
}

fn custom_call(attributes: &mut Attributes) -> Built<OpKind> {
    /// How a native target is called, unless something else is said.
    const ORIGINAL: i32 = 1;
    let call_target_name = attributes.string("call_target_name")?;
    // What the target alone can read: its configuration, layouts, and whose memory its results may take.
    let mut kept = Vec::new();
    if let Some(entry) = attributes.take("output_operand_aliases") {
        kept.push((entry.name, entry.value));
    }
    kept.extend(layouts(attributes)?);
    let backend_config = match attributes.take("backend_config") {
        None => String::new(),
        Some(entry) => match entry.value.resolved() {
            Attribute::String(text) => text.clone(),
            Attribute::Dictionary(_) => {
                kept.push((entry.name, entry.value));
                String::new()
            }
            _ => return Err(attributes.wrong(&entry, "a string")),
        },
    };
    let has_side_effect = attributes.flag("has_side_effect")?;
    let called_computations = attributes.symbols("called_computations")?;
    let version = attributes.optional_integer("api_version")?.unwrap_or(ORIGINAL);
    if version != ORIGINAL {
        let version = Attribute::Integer(version.into(), Some(DType::S32));
        kept.push(("api_version".to_owned(), version));
    }
    let mut attributes = attributes.take_others();
    attributes.extend(kept);
    attributes.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(OpKind::CustomCall {
        call_target_name,
        backend_config,
        has_side_effect,
        called_computations,
        attributes,
    })
}

/// `operand_layouts` and `result_layouts`: nothing when both are empty, both otherwise.
fn layouts(attributes: &mut Attributes) -> Built<Vec<(String, Attribute)>> {
    let mut layouts = Vec::new();
    let mut is_empty = true;
    for name in ["operand_layouts", "result_layouts"] {
        let Some(entry) = attributes.take(name) else {
            layouts.push((name.to_owned(), Attribute::Array(Vec::new())));
            continue;
        };
        let is_layout = |item: &Attribute| matches!(item.resolved(), Attribute::Layout(_));
        match entry.value.resolved() {
            Attribute::Array(items) if items.iter().all(is_layout) => is_empty &= items.is_empty(),
            _ => {
                return Err(
                    attributes.wrong(&entry, "a list such as `[dense<0> : tensor<1xindex>]`")
                );
            }
        }
        layouts.push((entry.name, entry.value));
    }
    Ok(if is_empty { Vec::new() } else { layouts })
}

/// `precision_config`, empty when it asks for nothing beyond the default.
fn precision(attributes: &mut Attributes) -> Built<Vec<Precision>> {
    let precision = attributes.cases("precision_config", "precision", Precision::from_name)?;
    Ok(if precision == [Precision::Default; 2] { Vec::new() } else { precision })
}
