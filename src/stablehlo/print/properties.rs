//! The properties of operations in the generic form.

use super::attribute::{
    array, axes, axes_moves, axis_ref_lists, axis_refs, conv_dimensions, entry, list, matrix,
    quoted, sharding, shardings, symbol,
};
use crate::ifrt::DType;
use crate::stablehlo::Literal;
use crate::stablehlo::attribute::{Attribute, ConvDimensions, ConvOperand};
use crate::stablehlo::element;
use crate::stablehlo::op::{
    AxisRef, Chlo, Collective, Composite, Convolution, DotAlgorithm, DotGeneral, Expectation,
    Gather, Interpretation, Move, OpKind, Precision, ReductionOp, Scatter, Sharding, Transfer,
    Window,
};

/// The properties of an operation, in order of their names.
pub(super) fn properties(kind: &OpKind) -> Vec<String> {
    let integer = |name: &str, value: usize| format!("{name} = {value} : i64");
    let sizes = |name: &str, values: &[usize]| format!("{name} = {}", array(values));
    match kind {
        OpKind::Constant(literal) => {
            vec![format!("value = {}", Attribute::Elements(literal.clone()))]
        }
        OpKind::Iota { dimension } => vec![integer("iota_dimension", *dimension)],
        OpKind::Compare { direction, compare_type } => {
            let kind = compare_type
                .map(|kind| format!("compare_type = #stablehlo<comparison_type {}>", kind.name()));
            let mut properties: Vec<String> = kind.into_iter().collect();
            let direction = direction.name();
            properties.push(format!(
                "comparison_direction = #stablehlo<comparison_direction {direction}>"
            ));
            properties
        }
        OpKind::BroadcastInDim { dimensions } => vec![sizes("broadcast_dimensions", dimensions)],
        OpKind::Transpose { permutation } => vec![sizes("permutation", permutation)],
        OpKind::Call { callee } => vec![format!("callee = {}", symbol(callee))],
        OpKind::CustomCall { call_target_name, .. } => {
            let mut properties = custom_call_entries(kind);
            properties.push(format!("call_target_name = {}", quoted(call_target_name)));
            // An attribute of another dialect is none of the operation's own.
            properties.retain(|entry| !is_discardable(entry));
            properties
        }
        OpKind::ManualComputation(_)
        | OpKind::ShardingConstraint(_)
        | OpKind::Reshard(_)
        | OpKind::ShardingGroup { .. }
        | OpKind::PropagationBarrier(_)
        | OpKind::DataFlowEdge(_)
        | OpKind::NamedComputation(_) => sdy_properties(kind),
        OpKind::Chlo(chlo) => chlo_properties(chlo),
        OpKind::Expect(expectation) => expectation_properties(expectation),
        OpKind::Interpret(interpretation) => interpretation_properties(interpretation),
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
        OpKind::Broadcast { sizes: added } => vec![sizes("broadcast_sizes", added)],
        OpKind::Gather(gather) => {
            let mut properties = gather_properties(gather);
            properties.push(sizes("slice_sizes", &gather.slice_sizes));
            properties
        }
        OpKind::DynamicGather(gather) => gather_properties(gather),
        OpKind::SetDimensionSize { dimension } => vec![integer("dimension", *dimension)],
        OpKind::Dot(config) => precision(config).into_iter().collect(),
        OpKind::Einsum { config } | OpKind::UnaryEinsum { config } => {
            vec![format!("einsum_config = {}", quoted(config))]
        }
        OpKind::TorchIndexSelect { dimension, batch_dims } => {
            vec![integer("batch_dims", *batch_dims), integer("dim", *dimension)]
        }
        OpKind::Scatter(scatter) => scatter_properties(scatter),
        OpKind::DotGeneral(dot) => dot_properties(dot),
        OpKind::Convolution(convolution) | OpKind::DynamicConv(convolution) => {
            convolution_properties(convolution)
        }
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
        OpKind::CollectiveReduce { collective, has_dynamic_root } => {
            let mut properties = collective_properties(collective);
            if *has_dynamic_root {
                properties.push("has_dynamic_root".to_owned());
            }
            properties
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

/// What a custom call has besides its target, in order of the names.
pub(super) fn custom_call_entries(kind: &OpKind) -> Vec<String> {
    let OpKind::CustomCall {
        backend_config, has_side_effect, called_computations, attributes, ..
    } = kind
    else {
        return Vec::new();
    };
    let mut entries = Vec::new();
    if !backend_config.is_empty() {
        entries.push(format!("backend_config = {}", quoted(backend_config)));
    }
    if !called_computations.is_empty() {
        let symbols: Vec<String> = called_computations.iter().map(|name| symbol(name)).collect();
        entries.push(format!("called_computations = [{}]", symbols.join(", ")));
    }
    if *has_side_effect {
        entries.push("has_side_effect = true".to_owned());
    }
    entries.extend(attributes.iter().map(entry));
    entries
}

/// Whether a custom call's entry is an attribute beside its properties.
pub(super) fn is_discardable(entry: &str) -> bool {
    const PROPERTIES: [&str; 8] = [
        "api_version",
        "backend_config",
        "call_target_name",
        "called_computations",
        "has_side_effect",
        "operand_layouts",
        "output_operand_aliases",
        "result_layouts",
    ];
    !PROPERTIES.contains(&entry.split(' ').next().unwrap_or_default())
}

/// The properties of an operation of `sdy`.
fn sdy_properties(kind: &OpKind) -> Vec<String> {
    let one = |value: &Sharding| format!("#sdy.sharding{}", sharding(value));
    let many = |name: &str, values: &[Sharding]| {
        format!("{name} = #sdy.sharding_per_value<{}>", shardings(values))
    };
    match kind {
        OpKind::ManualComputation(manual) => vec![
            many("in_shardings", &manual.in_shardings),
            format!("manual_axes = #sdy<manual_axes{}>", axes(&manual.manual_axes)),
            many("out_shardings", &manual.out_shardings),
        ],
        OpKind::NamedComputation(named) => {
            let mut properties = Vec::new();
            if !named.in_shardings.is_empty() {
                properties.push(many("in_shardings", &named.in_shardings));
            }
            properties.push(format!("name = {}", quoted(&named.name)));
            if !named.out_shardings.is_empty() {
                properties.push(many("out_shardings", &named.out_shardings));
            }
            properties
        }
        OpKind::ShardingConstraint(value) => vec![format!("sharding = {}", one(value))],
        OpKind::ShardingGroup { group_id } => vec![format!("group_id = {group_id} : i64")],
        OpKind::PropagationBarrier(direction) => {
            vec![format!("allowed_direction = {} : i32", *direction as i32)]
        }
        OpKind::DataFlowEdge(place) => {
            place.iter().map(|value| format!("sharding = {}", one(value))).collect()
        }
        OpKind::Reshard(reshard) => {
            let lists = |name: &str, lists: &[Vec<AxisRef>]| {
                Some(format!("{name} = #sdy<list_of_axis_ref_lists{}>", axis_ref_lists(lists)))
            };
            let one_list = |name: &str, axes: &[AxisRef]| {
                Some(format!("{name} = #sdy<axis_ref_list{}>", axis_refs(axes)))
            };
            let mut reduction_op = ReductionOp::default();
            let axes = match &reshard.movement {
                Move::Any => return vec![format!("sharding = {}", one(&reshard.sharding))],
                Move::CollectivePermute => None,
                Move::AllGather(axes) => lists("gathering_axes", axes),
                Move::AllSlice(axes) => lists("slicing_axes", axes),
                Move::ReduceScatter(axes, by) => {
                    reduction_op = *by;
                    lists("reduce_scatter_axes", axes)
                }
                Move::ShardedToUnreduced(axes) => lists("axes", axes),
                Move::AllReduce(axes, by) => {
                    reduction_op = *by;
                    one_list("reduction_axes", axes)
                }
                Move::ReplicatedToUnreduced(axes) => one_list("axes", axes),
                Move::AllToAll(moves) => {
                    Some(format!("params = #sdy<all_to_all_param_list{}>", axes_moves(moves)))
                }
            };
            let sharding = format!("out_sharding = {}", one(&reshard.sharding));
            let by = (reduction_op != ReductionOp::default())
                .then(|| format!("reduction_op = {} : i32", reduction_op as i32));
            axes.into_iter().chain([sharding]).chain(by).collect()
        }
        _ => Vec::new(),
    }
}

/// The properties of an operation of the `check` dialect.
fn expectation_properties(expectation: &Expectation) -> Vec<String> {
    let value = |literal: &Literal| format!("value = {}", Attribute::Elements(literal.clone()));
    let tolerance =
        |tolerance: f64| format!("tolerance = {}", Attribute::Float(tolerance, Some(DType::F64)));
    match expectation {
        Expectation::Eq => Vec::new(),
        Expectation::EqConst(literal) => vec![value(literal)],
        Expectation::AlmostEq { tolerance: most } => vec![tolerance(*most)],
        Expectation::AlmostEqConst { value: literal, tolerance: most } => {
            vec![tolerance(*most), value(literal)]
        }
        Expectation::Close { least, most } => vec![
            format!("max_ulp_difference = {most} : ui64"),
            format!("min_ulp_difference = {least} : ui64"),
        ],
        Expectation::SerializedEq { probe_id, iteration } => vec![
            format!("iteration = {iteration} : ui32"),
            format!("probe_id = {}", quoted(probe_id)),
        ],
    }
}

fn chlo_properties(chlo: &Chlo) -> Vec<String> {
    let dimensions = |dimensions: &Option<Vec<usize>>| {
        dimensions.as_ref().map(|dims| format!("broadcast_dimensions = {}", array(dims)))
    };
    match chlo {
        Chlo::Unary(_) | Chlo::Binary(_) | Chlo::BroadcastSelect => Vec::new(),
        Chlo::Broadcast { dimensions: dims, .. } => dimensions(dims).into_iter().collect(),
        Chlo::BroadcastCompare { dimensions: dims, direction, compare_type } => {
            let direction = direction.name();
            let kind = compare_type
                .map(|kind| format!("compare_type = #chlo<comparison_type {}>", kind.name()));
            let direction =
                format!("comparison_direction = #chlo<comparison_direction {direction}>");
            dimensions(dims).into_iter().chain(kind).chain([direction]).collect()
        }
        Chlo::ConstantLike(literal) => {
            let (text, dtype) =
                (element(literal.stored_bytes(), literal.ty().dtype), literal.ty().dtype);
            vec![format!("value = {text} : {dtype}")]
        }
        Chlo::TopK { k } => vec![format!("k = {k} : i64")],
    }
}

fn interpretation_properties(interpretation: &Interpretation) -> Vec<String> {
    let functions = |names: &Vec<String>| {
        let names: Vec<String> = names.iter().map(|name| symbol(name)).collect();
        format!("[{}]", names.join(", "))
    };
    match interpretation {
        Interpretation::RunParallel { programs, infeed } => {
            let infeed = (!infeed.is_empty()).then(|| format!("infeed = {}", functions(infeed)));
            let programs: Vec<String> = programs.iter().map(functions).collect();
            let programs = format!("programs = [{}]", programs.join(", "));
            infeed.into_iter().chain([programs]).collect()
        }
        Interpretation::Print => Vec::new(),
        Interpretation::Probe { probe_id } => vec![format!("probe_id = {}", quoted(probe_id))],
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
    let mut properties: Vec<String> = dot.algorithm.map(algorithm).into_iter().collect();
    properties.push(format!("dot_dimension_numbers = {numbers}"));
    properties.extend(precision(&dot.precision));
    properties
}

fn algorithm(algorithm: DotAlgorithm) -> String {
    let DotAlgorithm {
        lhs_precision,
        rhs_precision,
        accumulation,
        lhs_components,
        rhs_components,
        primitive_operations,
        allow_imprecise_accumulation,
    } = algorithm;
    format!(
        "algorithm = #stablehlo.dot_algorithm<lhs_precision_type = {lhs_precision}, \
         rhs_precision_type = {rhs_precision}, accumulation_type = {accumulation}, \
         lhs_component_count = {lhs_components}, rhs_component_count = {rhs_components}, \
         num_primitive_operations = {primitive_operations}, \
         allow_imprecise_accumulation = {allow_imprecise_accumulation}>"
    )
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
