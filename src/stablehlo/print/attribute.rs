//! Attributes, names and strings as text.

use std::fmt::{self, Write as _};

use super::Constants;
use super::literal::{constant, decimal, dense_array};
use super::sharding::sharding_rule;
use crate::ifrt::DType;
use crate::stablehlo::Mesh;
use crate::stablehlo::attribute::{Attribute, ConvDimensions, ConvOperand};
use crate::stablehlo::op::{Accuracy, AxesMove, AxisRef, DimSharding, ReductionOp, Sharding};

/// A string in double quotes, with every byte but plain ASCII escaped.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(char::from(byte));
            }
            b' '..=b'~' => quoted.push(char::from(byte)),
            // Writing to a string does not fail.
            _ => _ = write!(quoted, "\\{byte:02X}"),
        }
    }
    quoted.push('"');
    quoted
}

/// `@name`, quoted where it must be.
pub(super) fn symbol(name: &str) -> String {
    if is_word(name) { format!("@{name}") } else { format!("@{}", quoted(name)) }
}

/// `<@mesh, [{"x"}, {}], replicated={"y"}, unreduced={"z"}>`.
pub(super) fn sharding(sharding: &Sharding) -> String {
    let dim = |dim: &DimSharding| {
        let mut items: Vec<String> = dim.axes.iter().map(axis_ref).collect();
        if dim.is_open {
            items.push("?".to_owned());
        }
        let priority = dim.priority.map(|priority| format!("p{priority}")).unwrap_or_default();
        format!("{{{}}}{priority}", items.join(", "))
    };
    let dims: Vec<String> = sharding.dims.iter().map(dim).collect();
    let mesh = match &sharding.mesh {
        text if Mesh::is_in_place(text) => format!("mesh{text}"),
        name => symbol(name),
    };
    let mut text = format!("<{mesh}, [{}]", dims.join(", "));
    if !sharding.replicated.is_empty() {
        text += &format!(", replicated={}", axis_refs(&sharding.replicated));
    }
    if !sharding.unreduced.is_empty() {
        let reduction_op = reduction_op(sharding.reduction_op);
        text += &format!(", unreduced={reduction_op}{}", axis_refs(&sharding.unreduced));
    }
    text + ">"
}

/// `result_accuracy = #stablehlo.result_accuracy<…>`.
pub(super) fn accuracy(accuracy: &Accuracy) -> String {
    let Accuracy { mode, atol, rtol, ulps } = accuracy;
    let mut fields = Vec::new();
    for (name, tolerance) in [("atol", atol), ("rtol", rtol)] {
        if *tolerance != 0.0 {
            fields.push(format!("{name} = {}", float(*tolerance, None)));
        }
    }
    if *ulps != 0 {
        fields.push(format!("ulps = {ulps}"));
    }
    fields.push(format!("mode = #stablehlo.result_accuracy_mode<{}>", mode.name()));
    format!("result_accuracy = #stablehlo.result_accuracy<{}>", fields.join(", "))
}

/// `max`, or nothing: reductions are sums unless something is said.
pub(super) fn reduction_op(reduction_op: ReductionOp) -> &'static str {
    if reduction_op == ReductionOp::default() { "" } else { reduction_op.name() }
}

/// `"x"` or `"x":(2)4`.
fn axis_ref(axis: &AxisRef) -> String {
    match axis.sub_axis {
        None => quoted(&axis.name),
        Some((pre_size, size)) => format!("{}:({pre_size}){size}", quoted(&axis.name)),
    }
}

/// `{"x", "y":(2)4}`.
pub(super) fn axis_refs(axes: &[AxisRef]) -> String {
    let axes: Vec<String> = axes.iter().map(axis_ref).collect();
    format!("{{{}}}", axes.join(", "))
}

/// `[{"x"}, {}]`.
pub(super) fn axis_ref_lists(lists: &[Vec<AxisRef>]) -> String {
    let lists: Vec<String> = lists.iter().map(|axes| axis_refs(axes)).collect();
    format!("[{}]", lists.join(", "))
}

/// `[{"x"}: 0->1]`.
pub(super) fn axes_moves(moves: &[AxesMove]) -> String {
    let moves = moves
        .iter()
        .map(|AxesMove { axes, from, to }| format!("{}: {from}->{to}", axis_refs(axes)));
    format!("[{}]", moves.collect::<Vec<_>>().join(", "))
}

/// `<["x"=2, "y"=2], device_ids=[…]>`.
pub(in crate::stablehlo) fn mesh(mesh: &Mesh) -> String {
    let axes = mesh.axes.iter().map(|(axis, size)| format!("{}={size}", quoted(axis)));
    let axes: Vec<String> = axes.collect();
    let ids = mesh.device_ids.as_ref().map(|ids| format!(", device_ids=[{}]", list(ids)));
    format!("<[{}]{}>", axes.join(", "), ids.unwrap_or_default())
}

/// `[<@mesh, …>, …]`.
pub(super) fn shardings(shardings: &[Sharding]) -> String {
    let shardings: Vec<String> = shardings.iter().map(sharding).collect();
    format!("[{}]", shardings.join(", "))
}

/// `{"x", "y"}`.
pub(super) fn axes(axes: &[String]) -> String {
    let axes: Vec<String> = axes.iter().map(|axis| quoted(axis)).collect();
    format!("{{{}}}", axes.join(", "))
}

/// `1, 2`.
pub(super) fn list<T: fmt::Display>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    items.join(", ")
}

/// `array<i64: 1, 2>`.
pub(super) fn array<T: fmt::Display>(items: &[T]) -> String {
    if items.is_empty() {
        return "array<i64>".to_owned();
    }
    format!("array<i64: {}>", list(items))
}

/// `dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`.
pub(super) fn matrix(rows: &[Vec<i64>], columns: usize) -> String {
    if rows.is_empty() || columns == 0 {
        return format!("dense<> : tensor<{}x{columns}xi64>", rows.len());
    }
    let text: Vec<String> = rows.iter().map(|row| format!("[{}]", list(row))).collect();
    format!("dense<[{}]> : tensor<{}x{columns}xi64>", text.join(", "), rows.len())
}

/// `#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`.
pub(super) fn conv_dimensions(dimensions: &ConvDimensions) -> String {
    let operand = |operand: &ConvOperand, first: &str, second: &str| {
        let mut names = vec![String::new(); operand.spatial.len() + 2];
        let spatial = operand.spatial.iter().enumerate().map(|(i, &at)| (at, i.to_string()));
        let named = [(operand.first, first.to_owned()), (operand.second, second.to_owned())];
        for (at, name) in spatial.chain(named) {
            if let Some(slot) = names.get_mut(at) {
                *slot = name;
            }
        }
        names.join(", ")
    };
    let ConvDimensions { input, kernel, output } = dimensions;
    format!(
        "#stablehlo.conv<[{}]x[{}]->[{}]>",
        operand(input, "b", "f"),
        operand(kernel, "i", "o"),
        operand(output, "b", "f"),
    )
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.resolved() {
            Self::Unit => f.write_str("unit"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value, None) => write!(f, "{value}"),
            Self::Integer(value, Some(dtype)) => write!(f, "{value} : {dtype}"),
            Self::Float(value, dtype) => f.write_str(&float(*value, *dtype)),
            Self::String(text) => f.write_str(&quoted(text)),
            Self::Symbol(name) => f.write_str(&symbol(name)),
            Self::Array(items) => write!(f, "[{}]", list(items)),
            Self::Integers(items) => f.write_str(&array(items)),
            Self::DenseArray(literal) => dense_array(f, literal),
            Self::Elements(literal) => constant(f, literal, Constants::Whole),
            Self::Layout(dims) if dims.is_empty() => f.write_str("dense<> : tensor<0xindex>"),
            Self::Layout(dims) => {
                write!(f, "dense<[{}]> : tensor<{}xindex>", list(dims), dims.len())
            }
            Self::Dictionary(fields) => write!(f, "{{{}}}", entries(fields)),
            Self::Type(ty) => write!(f, "{ty}"),
            Self::FunctionType(operands, results) => {
                write!(f, "({}) -> ({})", list(operands), list(results))
            }
            Self::Case { family, case } => write!(f, "#stablehlo<{family} {case}>"),
            // In a list of attributes of one kind.
            Self::Fields { name, fields } if name.is_empty() => write!(f, "<{}>", entries(fields)),
            Self::Fields { name, fields } => write!(f, "#{name}<{}>", entries(fields)),
            Self::ConvDimensions(dimensions) => f.write_str(&conv_dimensions(dimensions)),
            Self::Sharding(value) => write!(f, "#sdy.sharding{}", sharding(value)),
            Self::Shardings(values) => {
                write!(f, "#sdy.sharding_per_value<{}>", shardings(values))
            }
            Self::ShardingRule(rule) => sharding_rule(f, rule),
            Self::Axes(names) => write!(f, "#sdy<manual_axes{}>", axes(names)),
            Self::AxisRefs(axes) => write!(f, "#sdy<axis_ref_list{}>", axis_refs(axes)),
            Self::AxisRefLists(lists) => {
                write!(f, "#sdy<list_of_axis_ref_lists{}>", axis_ref_lists(lists))
            }
            Self::AxesMoves(moves) => {
                write!(f, "#sdy<all_to_all_param_list{}>", axes_moves(moves))
            }
            Self::Mesh(value) => write!(f, "#sdy.mesh{}", mesh(value)),
            // Aliases are resolved above.
            Self::Shared(_) => Ok(()),
            Self::Opaque(text) => f.write_str(text),
        }
    }
}

/// A float and its type; one that is not finite has no decimal form, and its bits need a type.
fn float(value: f64, dtype: Option<DType>) -> String {
    match dtype {
        None if value.is_finite() => decimal(value),
        Some(dtype) if value.is_finite() => format!("{} : {dtype}", decimal(value)),
        None | Some(DType::F64) => format!("0x{:016X} : f64", value.to_bits()),
        Some(_) => {
            #[expect(clippy::cast_possible_truncation, reason = "keeps what is not finite")]
            let single = value as f32;
            format!("0x{:08X} : f32", single.to_bits())
        }
    }
}

/// `name = value, …`.
fn entries(fields: &[(String, Attribute)]) -> String {
    let fields: Vec<String> = fields.iter().map(entry).collect();
    fields.join(", ")
}

/// `name = value`, or `name` for a value without content.
pub(super) fn entry((name, value): &(String, Attribute)) -> String {
    let name = if is_word(name) { name.clone() } else { quoted(name) };
    match value.resolved() {
        Attribute::Unit => name,
        value => format!("{name} = {value}"),
    }
}

/// Whether a name needs no quotes.
fn is_word(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && name.chars().all(is_word)
}
