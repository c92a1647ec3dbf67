//! Operations that contract, reduce and slide windows.

use super::{Attributes, Built, precision};
use crate::stablehlo::op::{Convolution, DotAlgorithm, DotGeneral, OpKind, Window};

/// The operations of this file.
pub(super) const KNOWN: &[&str] = &[
    "dot",
    "dot_general",
    "einsum",
    "unary_einsum",
    "convolution",
    "reduce",
    "reduce_window",
    "map",
    "select_and_scatter",
];

/// The operation called `op`, if it is one of this file's.
pub(super) fn kind(op: &str, attributes: &mut Attributes) -> Built<Option<OpKind>> {
    Ok(Some(match op {
        "dot_general" => OpKind::DotGeneral(dot_general(attributes)?),
        "dot" => OpKind::Dot(precision(attributes)?),
        "einsum" => OpKind::Einsum { config: attributes.string("einsum_config")? },
        "unary_einsum" => OpKind::UnaryEinsum { config: attributes.string("einsum_config")? },
        "convolution" => OpKind::Convolution(Box::new(convolution(attributes, padding)?)),
        "reduce" => OpKind::Reduce { dimensions: attributes.required_integers("dimensions")? },
        "reduce_window" => {
            let dimensions = attributes.required_integers("window_dimensions")?;
            let window = Window {
                strides: or_ones(attributes, "window_strides", dimensions.len())?,
                base_dilations: or_ones(attributes, "base_dilations", dimensions.len())?,
                window_dilations: or_ones(attributes, "window_dilations", dimensions.len())?,
                padding: padding(attributes, dimensions.len())?,
                dimensions,
            };
            OpKind::ReduceWindow(window)
        }
        "map" => OpKind::Map { dimensions: attributes.required_integers("dimensions")? },
        "select_and_scatter" => {
            let dimensions: Vec<usize> = attributes.required_integers("window_dimensions")?;
            let rank = dimensions.len();
            OpKind::SelectAndScatter(Window {
                strides: or_ones(attributes, "window_strides", rank)?,
                base_dilations: vec![1; rank],
                window_dilations: vec![1; rank],
                padding: padding(attributes, rank)?,
                dimensions,
            })
        }
        _ => return Ok(None),
    }))
}

fn or_ones(attributes: &mut Attributes, name: &str, rank: usize) -> Built<Vec<usize>> {
    Ok(attributes.optional_integers(name)?.unwrap_or_else(|| vec![1; rank]))
}

/// `padding`, a low and a high amount per dimension; zeros when absent.
fn padding(attributes: &mut Attributes, rank: usize) -> Built<Vec<(i64, i64)>> {
    let Some(rows) = attributes.rows("padding")? else { return Ok(vec![(0, 0); rank]) };
    rows.iter()
        .map(|row| match row.as_slice() {
            &[low, high] => Ok((low, high)),
            _ => Err(attributes.not_known("padding that is not two numbers per dimension")),
        })
        .collect()
}

fn dot_general(attributes: &mut Attributes) -> Built<DotGeneral> {
    let mut numbers = attributes.required_fields("dot_dimension_numbers", "stablehlo.dot")?;
    let dot = DotGeneral {
        lhs_batching: numbers.integers("lhs_batching_dimensions")?,
        rhs_batching: numbers.integers("rhs_batching_dimensions")?,
        lhs_contracting: numbers.integers("lhs_contracting_dimensions")?,
        rhs_contracting: numbers.integers("rhs_contracting_dimensions")?,
        precision: precision(attributes)?,
        algorithm: algorithm(attributes)?,
    };
    numbers.finish()?;
    Ok(dot)
}

fn algorithm(attributes: &mut Attributes) -> Built<Option<DotAlgorithm>> {
    let Some(mut fields) = attributes.fields("algorithm", "stablehlo.dot_algorithm")? else {
        return Ok(None);
    };
    let algorithm = DotAlgorithm {
        lhs_precision: fields.precision_type("lhs_precision_type")?,
        rhs_precision: fields.precision_type("rhs_precision_type")?,
        accumulation: fields.precision_type("accumulation_type")?,
        lhs_components: fields.integer("lhs_component_count")?,
        rhs_components: fields.integer("rhs_component_count")?,
        primitive_operations: fields.integer("num_primitive_operations")?,
        allow_imprecise_accumulation: fields.flag("allow_imprecise_accumulation")?,
    };
    fields.finish()?;
    Ok(Some(algorithm))
}

/// The attributes of a convolution; `padding` takes that of so many spatial dimensions.
pub(super) fn convolution(
    attributes: &mut Attributes,
    padding: impl FnOnce(&mut Attributes, usize) -> Built<Vec<(i64, i64)>>,
) -> Built<Convolution> {
    let numbers = attributes.conv_dimensions("dimension_numbers")?;
    let rank = numbers.input.spatial.len();
    let reversal: Option<Vec<i64>> = attributes.optional_integers("window_reversal")?;
    Ok(Convolution {
        window: Window {
            // The window is the kernel; its size is in the kernel's type.
            dimensions: Vec::new(),
            strides: or_ones(attributes, "window_strides", rank)?,
            base_dilations: or_ones(attributes, "lhs_dilation", rank)?,
            window_dilations: or_ones(attributes, "rhs_dilation", rank)?,
            padding: padding(attributes, rank)?,
        },
        window_reversal: match reversal {
            Some(reversal) => reversal.iter().map(|&reversed| reversed != 0).collect(),
            None => vec![false; rank],
        },
        input_batch_dimension: numbers.input.first,
        input_feature_dimension: numbers.input.second,
        input_spatial_dimensions: numbers.input.spatial,
        kernel_input_feature_dimension: numbers.kernel.first,
        kernel_output_feature_dimension: numbers.kernel.second,
        kernel_spatial_dimensions: numbers.kernel.spatial,
        output_batch_dimension: numbers.output.first,
        output_feature_dimension: numbers.output.second,
        output_spatial_dimensions: numbers.output.spatial,
        feature_group_count: attributes.integer("feature_group_count")?,
        batch_group_count: attributes.integer("batch_group_count")?,
        precision: precision(attributes)?,
    })
}
