//! From the versioned dialect to the current operation set.
//!
//! VHLO keeps one operation per version of an operation. Up to StableHLO 1.17.0, a newer version
//! only has more attributes than an older one, and what an older one lacks is the default of the
//! current operation; so all versions are upgraded by the same rules: the version is dropped from
//! the name, and attributes that VHLO spells out one by one or untyped are put together.

use crate::stablehlo::attribute::{Attribute, ConvDimensions, ConvOperand, NamedAttribute};
use crate::stablehlo::{Literal, Location};

/// Attributes of VHLO that are fields of one attribute of StableHLO.
struct Group {
    op: &'static str,
    /// The attribute of StableHLO.
    name: &'static str,
    /// What it is.
    kind: &'static str,
    fields: &'static [&'static str],
}

const GATHER_FIELDS: &[&str] = &[
    "offset_dims",
    "collapsed_slice_dims",
    "operand_batching_dims",
    "start_indices_batching_dims",
    "start_index_map",
    "index_vector_dim",
];

const GROUPS: &[Group] = &[
    Group {
        op: "stablehlo.dot_general",
        name: "dot_dimension_numbers",
        kind: "stablehlo.dot",
        fields: &[
            "lhs_batching_dimensions",
            "rhs_batching_dimensions",
            "lhs_contracting_dimensions",
            "rhs_contracting_dimensions",
        ],
    },
    Group {
        op: "stablehlo.dot_general",
        name: "algorithm",
        kind: "stablehlo.dot_algorithm",
        fields: &[
            "lhs_precision_type",
            "rhs_precision_type",
            "accumulation_type",
            "lhs_component_count",
            "rhs_component_count",
            "num_primitive_operations",
            "allow_imprecise_accumulation",
        ],
    },
    Group {
        op: "stablehlo.gather",
        name: "dimension_numbers",
        kind: "stablehlo.gather",
        fields: GATHER_FIELDS,
    },
    Group {
        op: "stablehlo.dynamic_gather",
        name: "dimension_numbers",
        kind: "stablehlo.gather",
        fields: GATHER_FIELDS,
    },
    Group {
        op: "stablehlo.scatter",
        name: "scatter_dimension_numbers",
        kind: "stablehlo.scatter",
        fields: &[
            "update_window_dims",
            "inserted_window_dims",
            "input_batching_dims",
            "scatter_indices_batching_dims",
            "scatter_dims_to_operand_dims",
            "index_vector_dim",
        ],
    },
];

/// The current name, with its dialect, of the operation `dialect.name`.
pub(super) fn name(dialect: &str, name: &str) -> String {
    let versioned = |name: &str| {
        let (name, version) = name.rsplit_once("_v")?;
        version.bytes().all(|byte| byte.is_ascii_digit()).then(|| name.to_owned())
    };
    match (dialect, versioned(name)) {
        ("vhlo", Some(name)) if name == "func" || name == "call" => format!("func.{name}"),
        ("vhlo", Some(name)) => format!("stablehlo.{name}"),
        _ => format!("{dialect}.{name}"),
    }
}

/// The current attributes of the operation now called `op`; what is wrong, if they cannot be.
pub(super) fn attributes(op: &str, attributes: &mut Vec<NamedAttribute>) -> Result<(), String> {
    for group in GROUPS.iter().filter(|group| group.op == op) {
        let fields = take_all(attributes, group.fields);
        // Without an algorithm, the types of its numbers are `none`.
        let is_absent = fields.is_empty()
            || fields
                .iter()
                .any(|(_, value)| matches!(value, Attribute::Opaque(ty) if ty == "none"));
        if !is_absent {
            let value = Attribute::Fields { name: group.kind.to_owned(), fields };
            push(attributes, group.name, value);
        }
    }
    if op == "stablehlo.dynamic_conv" {
        // Version 1 has the padding as an attribute besides the operand.
        let unused = match take(attributes, "padding") {
            Some(Attribute::Elements(padding)) => padding.stored_bytes().iter().all(|&b| b == 0),
            other => other.is_none(),
        };
        if !unused {
            return Err("`padding` must be 0 besides the operand that says it".to_owned());
        }
    }
    if matches!(op, "stablehlo.convolution" | "stablehlo.dynamic_conv") {
        let dimensions = conv_dimensions(attributes)?;
        push(attributes, "dimension_numbers", Attribute::ConvDimensions(Box::new(dimensions)));
    }
    if let Some(handle) = take(attributes, "channel_id") {
        let mut fields = vec![("handle".to_owned(), handle)];
        let channel_type = take(attributes, "channel_type");
        fields.extend(channel_type.map(|channel_type| ("type".to_owned(), channel_type)));
        let name = "stablehlo.channel_handle".to_owned();
        push(attributes, "channel_handle", Attribute::Fields { name, fields });
    }
    attributes.retain(|entry| !is_default(entry));
    for NamedAttribute { name, value, .. } in attributes {
        match (name.as_str(), &mut *value) {
            ("callee" | "decomposition", Attribute::String(symbol)) => {
                *value = Attribute::Symbol(std::mem::take(symbol));
            }
            ("called_computations", Attribute::Array(items)) => {
                for item in items {
                    if let Attribute::String(symbol) = item {
                        *item = Attribute::Symbol(std::mem::take(symbol));
                    }
                }
            }
            ("window_reversal", Attribute::Elements(flags)) => {
                let flags = truth_values(flags).ok_or("`window_reversal` must be a short list")?;
                *value = Attribute::Integers(flags);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether VHLO spells out here what StableHLO leaves out.
fn is_default(entry: &NamedAttribute) -> bool {
    match (entry.name.as_str(), &entry.value) {
        ("compare_type", Attribute::Case { case, .. }) => case == "NOTYPE",
        ("output_operand_aliases" | "layout", Attribute::Array(items)) => items.is_empty(),
        // Sent and received by the host: a list of nothing instead of pairs.
        ("source_target_pairs", Attribute::Elements(pairs)) => pairs.ty().shape.dims() == [0],
        _ => false,
    }
}

/// What each dimension is, from the nine attributes that say so.
fn conv_dimensions(attributes: &mut Vec<NamedAttribute>) -> Result<ConvDimensions, String> {
    let mut operand = |first: &str, second: &str, spatial: &str| {
        let mut one = |name: &str| match take(attributes, name) {
            Some(Attribute::Integer(value, _)) => usize::try_from(value).ok(),
            _ => None,
        };
        let first = one(first).ok_or_else(|| format!("`{first}` must be a dimension"))?;
        let second = one(second).ok_or_else(|| format!("`{second}` must be a dimension"))?;
        let dimensions = match take(attributes, spatial) {
            Some(Attribute::Elements(literal)) => dimensions(&literal),
            _ => None,
        };
        let spatial = dimensions.ok_or_else(|| format!("`{spatial}` must be dimensions"))?;
        Ok::<_, String>(ConvOperand { first, second, spatial })
    };
    Ok(ConvDimensions {
        input: operand(
            "input_batch_dimension",
            "input_feature_dimension",
            "input_spatial_dimensions",
        )?,
        kernel: operand(
            "kernel_input_feature_dimension",
            "kernel_output_feature_dimension",
            "kernel_spatial_dimensions",
        )?,
        output: operand(
            "output_batch_dimension",
            "output_feature_dimension",
            "output_spatial_dimensions",
        )?,
    })
}

/// Dimensions, which are distinct: only a single one is ever stored as a splat.
fn dimensions(literal: &Literal) -> Option<Vec<usize>> {
    crate::stablehlo::build::matrix_elements(literal)?
        .into_iter()
        .map(|dimension| usize::try_from(dimension).ok())
        .collect()
}

/// The elements of a list of booleans, as 0 and 1.
fn truth_values(literal: &Literal) -> Option<Vec<i64>> {
    /// A splat says its own length; longer ones are no windows.
    const MAX_SPLAT_ELEMENTS: usize = 32;
    let count = literal.ty().shape.num_elements();
    let is_short = literal.splat_element().is_none() || count <= MAX_SPLAT_ELEMENTS;
    (literal.ty().dtype == crate::ifrt::DType::Bool && is_short)
        .then(|| literal.to_bytes().into_iter().map(i64::from).collect())
}

/// Takes the attribute called `name`.
fn take(attributes: &mut Vec<NamedAttribute>, name: &str) -> Option<Attribute> {
    let position = attributes.iter().position(|entry| entry.name == name)?;
    Some(attributes.remove(position).value)
}

/// Takes those of the attributes called `names` that are there.
fn take_all(attributes: &mut Vec<NamedAttribute>, names: &[&str]) -> Vec<(String, Attribute)> {
    let named = names.iter().filter_map(|&name| Some((name.to_owned(), take(attributes, name)?)));
    named.collect()
}

fn push(attributes: &mut Vec<NamedAttribute>, name: &str, value: Attribute) {
    attributes.push(NamedAttribute { name: name.to_owned(), value, location: Location::default() });
}
