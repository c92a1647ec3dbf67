//! Operations as text.

use std::fmt;

use super::attribute::{
    array, axes, conv_dimensions, entry, list, matrix, quoted, sharding, shardings, symbol,
};
use super::literal::constant;
use super::{FunctionPrinter, separated, type_list};
use crate::ifrt::DType;
use crate::stablehlo::attribute::{Attribute, ConvDimensions, ConvOperand};
use crate::stablehlo::op::{
    Collective, Composite, Convolution, DotGeneral, Gather, OpKind, Precision, Scatter, Transfer,
    Window,
};
use crate::stablehlo::{OpData, Type};

/// Prints one operation.
pub(super) struct OpPrinter<'a> {
    pub(super) printer: &'a FunctionPrinter<'a>,
    pub(super) op: &'a OpData,
    /// The indentation, in steps.
    pub(super) indent: usize,
    /// What a return is called here: it is named after what it returns from.
    pub(super) return_name: &'static str,
}

impl OpPrinter<'_> {
    pub(super) fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(&first) = self.op.results.first() {
            let name = self.printer.name(first).to_string();
            let base = name.split('#').next().unwrap_or_default();
            match self.op.results.len() {
                1 => write!(f, "{base} = ")?,
                count => write!(f, "{base}:{count} = ")?,
            }
        }
        match &self.op.kind {
            OpKind::Constant(literal) => {
                f.write_str("stablehlo.constant")?;
                self.attributes(f)?;
                f.write_str(" ")?;
                constant(f, literal, self.printer.constants)
            }
            OpKind::Unary(_) | OpKind::Binary(_) | OpKind::Clamp | OpKind::Convert => {
                self.plain(f, true)
            }
            OpKind::Reshape | OpKind::BitcastConvert | OpKind::DynamicUpdateSlice => {
                self.plain(f, false)
            }
            OpKind::Compare { direction, compare_type } => {
                write!(f, "stablehlo.compare {}, ", direction.name())?;
                self.operands(f)?;
                if let Some(compare_type) = compare_type {
                    write!(f, ", {}", compare_type.name())?;
                }
                self.attributes_and_types(f)
            }
            OpKind::Select => self.select(f),
            OpKind::Iota { dimension } => {
                write!(f, "stablehlo.iota dim = {dimension}")?;
                self.attributes(f)?;
                f.write_str(" : ")?;
                separated(f, self.result_types(), |f, ty| write!(f, "{ty}"))
            }
            OpKind::BroadcastInDim { dimensions } => self.dims(f, dimensions),
            OpKind::Transpose { permutation } => self.dims(f, permutation),
            OpKind::Call { callee } => {
                write!(f, "func.call {}(", symbol(callee))?;
                self.operands(f)?;
                f.write_str(")")?;
                self.attributes_and_types(f)
            }
            OpKind::Return => {
                f.write_str(self.return_name)?;
                if !self.op.operands.is_empty() {
                    f.write_str(" ")?;
                    self.operands(f)?;
                    f.write_str(" : ")?;
                    separated(f, self.operand_types(), |f, ty| write!(f, "{ty}"))?;
                }
                Ok(())
            }
            OpKind::CustomCall { .. } => self.custom_call(f),
            OpKind::ManualComputation(manual) => {
                f.write_str("sdy.manual_computation(")?;
                self.operands(f)?;
                write!(
                    f,
                    ") in_shardings={} out_shardings={} manual_axes={} ",
                    shardings(&manual.in_shardings),
                    shardings(&manual.out_shardings),
                    axes(&manual.manual_axes)
                )?;
                self.manual_body(f)?;
                self.attributes_and_types(f)
            }
            OpKind::ShardingConstraint(value) => {
                f.write_str("sdy.sharding_constraint ")?;
                self.operands(f)?;
                write!(f, " {}", sharding(value))?;
                self.attributes(f)?;
                f.write_str(" : ")?;
                separated(f, self.result_types(), |f, ty| write!(f, "{ty}"))
            }
            _ => self.generic(f),
        }
    }

    fn operands(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        separated(f, &self.op.operands, |f, &value| write!(f, "{}", self.printer.name(value)))
    }

    fn operand_types(&self) -> Vec<&Type> {
        self.op.operands.iter().map(|&value| self.printer.function.ty(value)).collect()
    }

    fn result_types(&self) -> Vec<&Type> {
        self.op.results.iter().map(|&value| self.printer.function.ty(value)).collect()
    }

    /// ` {sdy.sharding = …}`, or nothing: what any operation may have besides its own attributes.
    fn attributes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::braces(f, &self.shardings())
    }

    fn shardings(&self) -> Vec<String> {
        let values = &self.op.shardings;
        let text = || {
            let entry = format!("sdy.sharding = #sdy.sharding_per_value<{}>", shardings(values));
            vec![entry]
        };
        if values.is_empty() { Vec::new() } else { text() }
    }

    /// ` {attributes} : (types) -> types`.
    fn attributes_and_types(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.attributes(f)?;
        self.function_type(f)
    }

    /// ` : (types) -> types`.
    fn function_type(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(" : (")?;
        separated(f, self.operand_types(), |f, ty| write!(f, "{ty}"))?;
        f.write_str(") -> ")?;
        type_list(f, &self.result_types())
    }

    /// `op %a, %b : type`; one type stands for all when `short` and they are the same.
    fn plain(&self, f: &mut fmt::Formatter<'_>, short: bool) -> fmt::Result {
        write!(f, "{} ", self.op.kind)?;
        self.operands(f)?;
        if let (true, [result]) = (short, self.result_types().as_slice())
            && self.operand_types().iter().all(|ty| ty == result)
        {
            self.attributes(f)?;
            return write!(f, " : {result}");
        }
        self.attributes_and_types(f)
    }

    /// `stablehlo.select %p, %a, %b : predicate type, type`.
    fn select(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.operand_types().as_slice(), self.result_types().as_slice()) {
            ([predicate, on_true, on_false], [result])
                if on_true == result && on_false == result =>
            {
                f.write_str("stablehlo.select ")?;
                self.operands(f)?;
                self.attributes(f)?;
                write!(f, " : {predicate}, {result}")
            }
            _ => self.generic(f),
        }
    }

    fn dims(&self, f: &mut fmt::Formatter<'_>, dims: &[usize]) -> fmt::Result {
        write!(f, "{} ", self.op.kind)?;
        self.operands(f)?;
        write!(f, ", dims = [{}]", list(dims))?;
        self.attributes_and_types(f)
    }

    fn custom_call(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OpKind::CustomCall {
            call_target_name,
            backend_config,
            has_side_effect,
            called_computations,
            attributes,
        } = &self.op.kind
        else {
            return Ok(());
        };
        write!(f, "stablehlo.custom_call {}(", symbol(call_target_name))?;
        self.operands(f)?;
        f.write_str(")")?;
        let mut entries = Vec::new();
        if attributes.iter().any(|(name, _)| name == "backend_config") {
            // Only this version has a dictionary.
            entries.push("api_version = 4 : i32".to_owned());
        }
        if !backend_config.is_empty() {
            entries.push(format!("backend_config = {}", quoted(backend_config)));
        }
        if !called_computations.is_empty() {
            let symbols: Vec<String> =
                called_computations.iter().map(|name| symbol(name)).collect();
            entries.push(format!("called_computations = [{}]", symbols.join(", ")));
        }
        if *has_side_effect {
            entries.push("has_side_effect = true".to_owned());
        }
        for attribute in attributes {
            entries.push(entry(attribute));
        }
        entries.extend(self.shardings());
        super::braces(f, &entries)?;
        self.function_type(f)
    }

    /// `(%arg: type) {…}`.
    fn manual_body(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = self.printer.function;
        let Some(&region) = self.op.regions.first() else { return f.write_str("() {}") };
        let block = function.regions[region].block;
        f.write_str("(")?;
        separated(f, &function.blocks[block].arguments, |f, &argument| {
            write!(f, "{}: {}", self.printer.name(argument), function.ty(argument))
        })?;
        f.write_str(") {\n")?;
        self.printer.ops(f, block, self.indent + 1, "sdy.return")?;
        write!(f, "{:width$}}}", "", width = 2 * self.indent)
    }

    /// `"op"(%a) <{properties}> ({regions}) : (types) -> types`.
    fn generic(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"(", self.op.kind)?;
        self.operands(f)?;
        f.write_str(")")?;
        let properties = properties(&self.op.kind);
        if !properties.is_empty() {
            write!(f, " <{{{}}}>", properties.join(", "))?;
        }
        if !self.op.regions.is_empty() {
            f.write_str(" (")?;
            separated(f, &self.op.regions, |f, &region| {
                self.printer.region(f, region, self.indent)
            })?;
            f.write_str(")")?;
        }
        self.attributes_and_types(f)
    }
}

/// The properties of an operation that is printed in the generic form, in order of their names.
fn properties(kind: &OpKind) -> Vec<String> {
    let integer = |name: &str, value: usize| format!("{name} = {value} : i64");
    let sizes = |name: &str, values: &[usize]| format!("{name} = {}", array(values));
    match kind {
        OpKind::ReducePrecision { exponent_bits, mantissa_bits } => vec![
            format!("exponent_bits = {exponent_bits} : i32"),
            format!("mantissa_bits = {mantissa_bits} : i32"),
        ],
        OpKind::Slice { start, limit, strides } => vec![
            sizes("limit_indices", limit),
            sizes("start_indices", start),
            sizes("strides", strides),
        ],
        OpKind::Concatenate { dimension } => vec![integer("dimension", *dimension)],
        OpKind::Pad { low, high, interior } => vec![
            format!("edge_padding_high = {}", array(high)),
            format!("edge_padding_low = {}", array(low)),
            sizes("interior_padding", interior),
        ],
        OpKind::Reverse { dimensions } | OpKind::Reduce { dimensions } => {
            vec![sizes("dimensions", dimensions)]
        }
        OpKind::DynamicSlice { sizes: slice } => vec![sizes("slice_sizes", slice)],
        OpKind::Gather(gather) => gather_properties(gather),
        OpKind::Scatter(scatter) => scatter_properties(scatter),
        OpKind::DotGeneral(dot) => dot_properties(dot),
        OpKind::Convolution(convolution) => convolution_properties(convolution),
        OpKind::Fft { fft_type, lengths } => vec![
            sizes("fft_length", lengths),
            format!("fft_type = #stablehlo<fft_type {}>", fft_type.name()),
        ],
        OpKind::Cholesky { lower } => vec![format!("lower = {lower}")],
        OpKind::TriangularSolve(solve) => vec![
            format!("left_side = {}", solve.left_side),
            format!("lower = {}", solve.lower),
            format!("transpose_a = #stablehlo<transpose {}>", solve.transpose_a.name()),
            format!("unit_diagonal = {}", solve.unit_diagonal),
        ],
        OpKind::RngBitGenerator(algorithm) => {
            vec![format!("rng_algorithm = #stablehlo<rng_algorithm {}>", algorithm.name())]
        }
        OpKind::Rng(distribution) => {
            vec![format!("rng_distribution = #stablehlo<rng_distribution {}>", distribution.name())]
        }
        OpKind::BatchNormTraining(norm)
        | OpKind::BatchNormInference(norm)
        | OpKind::BatchNormGrad(norm) => {
            let epsilon = Attribute::Float(norm.epsilon.into(), Some(DType::F32));
            vec![format!("epsilon = {epsilon}"), integer("feature_index", norm.feature_index)]
        }
        OpKind::Map { dimensions } => vec![sizes("dimensions", dimensions)],
        OpKind::SelectAndScatter(window) => {
            let mut properties: Vec<String> = padding(window).into_iter().collect();
            properties.push(sizes("window_dimensions", &window.dimensions));
            properties.extend(unless_ones("window_strides", &window.strides));
            properties
        }
        OpKind::GetDimensionSize { dimension } => vec![integer("dimension", *dimension)],
        OpKind::GetTupleElement { index } => vec![format!("index = {index} : i32")],
        OpKind::Infeed { config } => vec![format!("infeed_config = {}", quoted(config))],
        OpKind::Outfeed { config } => vec![format!("outfeed_config = {}", quoted(config))],
        OpKind::Send(transfer) | OpKind::Recv(transfer) => transfer_properties(transfer),
        OpKind::DynamicIota { dimension } => vec![integer("iota_dimension", *dimension)],
        OpKind::DynamicBroadcastInDim(broadcast) => {
            let known = [
                ("known_expanding_dimensions", &broadcast.known_expanding),
                ("known_nonexpanding_dimensions", &broadcast.known_nonexpanding),
            ];
            let known = known.into_iter().filter(|(_, values)| !values.is_empty());
            let mut properties = vec![sizes("broadcast_dimensions", &broadcast.dimensions)];
            properties.extend(known.map(|(name, values)| sizes(name, values)));
            properties
        }
        OpKind::Composite(composite) => composite_properties(composite),
        OpKind::ReduceWindow(window) => {
            let mut properties = Vec::new();
            properties.extend(unless_ones("base_dilations", &window.base_dilations));
            properties.extend(padding(window));
            properties.extend(unless_ones("window_dilations", &window.window_dilations));
            properties.push(sizes("window_dimensions", &window.dimensions));
            properties.extend(unless_ones("window_strides", &window.strides));
            properties
        }
        OpKind::Sort { dimension, is_stable } => {
            vec![integer("dimension", *dimension), format!("is_stable = {is_stable}")]
        }
        OpKind::AllReduce(collective) | OpKind::CollectiveBroadcast(collective) => {
            collective_properties(collective)
        }
        OpKind::AllGather { dimension, collective } => {
            let mut properties = vec![integer("all_gather_dim", *dimension)];
            properties.extend(collective_properties(collective));
            properties
        }
        OpKind::ReduceScatter { dimension, collective } => {
            let mut properties = collective_properties(collective);
            properties.push(integer("scatter_dimension", *dimension));
            properties
        }
        OpKind::AllToAll { split_dimension, concat_dimension, split_count, collective } => {
            let mut properties = vec![integer("concat_dimension", *concat_dimension)];
            properties.extend(collective_properties(collective));
            properties.push(integer("split_count", *split_count));
            properties.push(integer("split_dimension", *split_dimension));
            properties
        }
        OpKind::CollectivePermute { source_target_pairs, channel_id } => {
            let mut properties: Vec<String> = channel(*channel_id).into_iter().collect();
            properties.push(pairs(source_target_pairs));
            properties
        }
        _ => Vec::new(),
    }
}

fn pairs(source_target_pairs: &[(i64, i64)]) -> String {
    let rows: Vec<Vec<i64>> =
        source_target_pairs.iter().map(|&(source, target)| vec![source, target]).collect();
    format!("source_target_pairs = {}", matrix(&rows, 2))
}

fn transfer_properties(transfer: &Transfer) -> Vec<String> {
    let (id, kind) = (transfer.channel_id, transfer.channel_type.number());
    let handle = format!("#stablehlo.channel_handle<handle = {id}, type = {kind}>");
    let mut properties = vec![format!("channel_handle = {handle}")];
    properties.extend(flag("is_host_transfer", transfer.is_host_transfer));
    if !transfer.source_target_pairs.is_empty() {
        properties.push(pairs(&transfer.source_target_pairs));
    }
    properties
}

fn composite_properties(composite: &Composite) -> Vec<String> {
    let Composite { name, attributes, decomposition, version } = composite;
    let attributes: Vec<String> = attributes.iter().map(entry).collect();
    vec![
        format!("composite_attributes = {{{}}}", attributes.join(", ")),
        format!("decomposition = {}", symbol(decomposition)),
        format!("name = {}", quoted(name)),
        format!("version = {version} : i32"),
    ]
}

fn channel(channel_id: i64) -> Option<String> {
    // What portable artifacts read back as: they keep no type of a channel between devices.
    let handle = format!("#stablehlo.channel_handle<handle = {channel_id}, type = 0>");
    (channel_id != 0).then(|| format!("channel_handle = {handle}"))
}

fn collective_properties(collective: &Collective) -> Vec<String> {
    let mut properties: Vec<String> = channel(collective.channel_id).into_iter().collect();
    let columns = collective.replica_groups.first().map_or(0, Vec::len);
    properties.push(format!("replica_groups = {}", matrix(&collective.replica_groups, columns)));
    if collective.use_global_device_ids {
        properties.push("use_global_device_ids".to_owned());
    }
    properties
}

fn precision(precision: &[Precision]) -> Option<String> {
    let cases: Vec<String> =
        precision.iter().map(|case| format!("#stablehlo<precision {}>", case.name())).collect();
    (!cases.is_empty()).then(|| format!("precision_config = [{}]", cases.join(", ")))
}

/// `padding`, unless there is none: the specification's default.
fn padding(window: &Window) -> Option<String> {
    let rows: Vec<Vec<i64>> = window.padding.iter().map(|&(low, high)| vec![low, high]).collect();
    let some = rows.iter().flatten().any(|&padding| padding != 0);
    some.then(|| format!("padding = {}", matrix(&rows, 2)))
}

/// A list per dimension, unless it is all ones: the specification's default.
fn unless_ones(name: &str, values: &[usize]) -> Option<String> {
    values.iter().any(|&value| value != 1).then(|| format!("{name} = {}", array(values)))
}

/// A flag, unless it is false: the specification's default.
fn flag(name: &str, value: bool) -> Option<String> {
    value.then(|| format!("{name} = true"))
}

/// `#name<a = [1], b = 2>` without the fields that are empty.
fn dimension_numbers(name: &str, lists: &[(&str, &[usize])], last: Option<String>) -> String {
    let fields = lists.iter().filter(|(_, values)| !values.is_empty());
    let fields = fields.map(|(field, values)| format!("{field} = [{}]", list(values)));
    let fields: Vec<String> = fields.chain(last).collect();
    format!("#{name}<{}>", fields.join(", "))
}

fn dot_properties(dot: &DotGeneral) -> Vec<String> {
    let numbers = dimension_numbers(
        "stablehlo.dot",
        &[
            ("lhs_batching_dimensions", &dot.lhs_batching),
            ("rhs_batching_dimensions", &dot.rhs_batching),
            ("lhs_contracting_dimensions", &dot.lhs_contracting),
            ("rhs_contracting_dimensions", &dot.rhs_contracting),
        ],
        None,
    );
    let mut properties = vec![format!("dot_dimension_numbers = {numbers}")];
    properties.extend(precision(&dot.precision));
    properties
}

fn index_vector_dim(dim: usize) -> Option<String> {
    (dim != 0).then(|| format!("index_vector_dim = {dim}"))
}

fn gather_properties(gather: &Gather) -> Vec<String> {
    let numbers = dimension_numbers(
        "stablehlo.gather",
        &[
            ("offset_dims", &gather.offset_dims),
            ("collapsed_slice_dims", &gather.collapsed_slice_dims),
            ("operand_batching_dims", &gather.operand_batching_dims),
            ("start_indices_batching_dims", &gather.start_indices_batching_dims),
            ("start_index_map", &gather.start_index_map),
        ],
        index_vector_dim(gather.index_vector_dim),
    );
    let mut properties = vec![format!("dimension_numbers = {numbers}")];
    properties.extend(flag("indices_are_sorted", gather.indices_are_sorted));
    properties.push(format!("slice_sizes = {}", array(&gather.slice_sizes)));
    properties
}

fn scatter_properties(scatter: &Scatter) -> Vec<String> {
    let numbers = dimension_numbers(
        "stablehlo.scatter",
        &[
            ("update_window_dims", &scatter.update_window_dims),
            ("inserted_window_dims", &scatter.inserted_window_dims),
            ("input_batching_dims", &scatter.input_batching_dims),
            ("scatter_indices_batching_dims", &scatter.scatter_indices_batching_dims),
            ("scatter_dims_to_operand_dims", &scatter.scatter_dims_to_operand_dims),
        ],
        index_vector_dim(scatter.index_vector_dim),
    );
    let mut properties = Vec::new();
    properties.extend(flag("indices_are_sorted", scatter.indices_are_sorted));
    properties.push(format!("scatter_dimension_numbers = {numbers}"));
    properties.extend(flag("unique_indices", scatter.unique_indices));
    properties
}

fn convolution_properties(convolution: &Convolution) -> Vec<String> {
    let Convolution { window, .. } = convolution;
    let dimensions = ConvDimensions {
        input: ConvOperand {
            first: convolution.input_batch_dimension,
            second: convolution.input_feature_dimension,
            spatial: convolution.input_spatial_dimensions.clone(),
        },
        kernel: ConvOperand {
            first: convolution.kernel_input_feature_dimension,
            second: convolution.kernel_output_feature_dimension,
            spatial: convolution.kernel_spatial_dimensions.clone(),
        },
        output: ConvOperand {
            first: convolution.output_batch_dimension,
            second: convolution.output_feature_dimension,
            spatial: convolution.output_spatial_dimensions.clone(),
        },
    };
    let mut properties = vec![
        format!("batch_group_count = {} : i64", convolution.batch_group_count),
        format!("dimension_numbers = {}", conv_dimensions(&dimensions)),
        format!("feature_group_count = {} : i64", convolution.feature_group_count),
    ];
    properties.extend(unless_ones("lhs_dilation", &window.base_dilations));
    properties.extend(padding(window));
    properties.extend(precision(&convolution.precision));
    properties.extend(unless_ones("rhs_dilation", &window.window_dilations));
    if convolution.window_reversal.contains(&true) {
        let reversal = list(&convolution.window_reversal);
        properties.push(format!("window_reversal = array<i1: {reversal}>"));
    }
    properties.extend(unless_ones("window_strides", &window.strides));
    properties
}
