//! The operations and their attributes, typed.
//!
//! An attribute that has a default in the specification is stored resolved: a reader fills it in.
//! Operand, result and region order is that of the StableHLO specification, spec.md.

use std::fmt;

use super::attribute::Attribute;
use super::{Literal, TensorType};

/// Declares enumerations whose cases have names in the specification.
macro_rules! named {
    ($(#[$attribute:meta])* pub enum $name:ident { $($(#[$case_attribute:meta])* $case:ident = $text:literal,)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each is what the specification calls by the same name")]
        pub enum $name {
            $($(#[$case_attribute])* $case,)*
        }

        impl $name {
            /// Every case, in declaration order.
            pub const ALL: &[Self] = &[$(Self::$case),*];

            /// The specification's name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$case => $text,)*
                }
            }

            /// The case the specification calls `name`.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($text => Some(Self::$case),)*
                    _ => None,
                }
            }
        }
    };
}

mod accuracy;
mod chlo;
mod expectation;
mod linalg;
mod sharding;
mod transfer;

pub use accuracy::{Accuracy, AccuracyMode};
pub use chlo::{Broadcasting, Chlo, ChloBinary, ChloUnary};
pub use expectation::{Expectation, Interpretation};
pub use linalg::{
    DotAlgorithm, FftType, PrecisionType, RngAlgorithm, RngDistribution, TransposeA,
    TriangularSolve,
};
pub use sharding::{
    AxesMove, AxisRef, DimSharding, ManualComputation, Move, NamedComputation,
    PropagationDirection, ReductionOp, Reshard, Sharding, ShardingRule,
};
pub use transfer::{ChannelType, Transfer};

/// An operation and its attributes.
#[derive(Clone, Debug, PartialEq)]
pub enum OpKind {
    /// `constant`.
    Constant(Literal),
    /// `iota`.
    Iota {
        /// The dimension along which values count up.
        dimension: usize,
    },
    /// One operand, element by element.
    Unary(Unary),
    /// Two operands of one shape, element by element.
    Binary(Binary),
    /// `compare`.
    Compare {
        /// The comparison.
        direction: Direction,
        /// The order floats are compared in; `None` when the source leaves it out.
        compare_type: Option<CompareType>,
    },
    /// `select`: predicate (scalar or full shape), on true, on false.
    Select,
    /// `clamp`: min, operand, max; min and max may be scalars.
    Clamp,
    /// `convert`.
    Convert,
    /// `bitcast_convert`.
    BitcastConvert,
    /// `reduce_precision`.
    ReducePrecision {
        /// Exponent bits kept.
        exponent_bits: u32,
        /// Mantissa bits kept.
        mantissa_bits: u32,
    },
    /// `broadcast_in_dim`.
    BroadcastInDim {
        /// For each operand dimension, the result dimension it becomes.
        dimensions: Vec<usize>,
    },
    /// `broadcast`, which is not in the specification: dimensions are added in front.
    Broadcast {
        /// The sizes of the added dimensions.
        sizes: Vec<usize>,
    },
    /// `dynamic_broadcast_in_dim`: operand, output dimensions.
    DynamicBroadcastInDim(DynamicBroadcast),
    /// `dynamic_conv`: lhs, rhs, padding; the padding among the attributes is empty.
    DynamicConv(Box<Convolution>),
    /// `dynamic_gather`: operand, start indices, slice sizes; those among the attributes are empty.
    DynamicGather(Gather),
    /// `dynamic_iota`: output shape.
    DynamicIota {
        /// The dimension along which values count up.
        dimension: usize,
    },
    /// `dynamic_pad`: operand, padding value, amounts before, after and between.
    DynamicPad,
    /// `dynamic_reshape`: operand, output shape.
    DynamicReshape,
    /// `real_dynamic_slice`, which is not in the specification: operand, first indices, limits,
    /// strides.
    RealDynamicSlice,
    /// `reshape`.
    Reshape,
    /// `transpose`.
    Transpose {
        /// Result dimension `i` is operand dimension `permutation[i]`.
        permutation: Vec<usize>,
    },
    /// `slice`.
    Slice {
        /// First index per dimension.
        start: Vec<usize>,
        /// One past the last index per dimension.
        limit: Vec<usize>,
        /// Step per dimension.
        strides: Vec<usize>,
    },
    /// `concatenate`.
    Concatenate {
        /// The dimension that grows.
        dimension: usize,
    },
    /// `pad`: operand, padding value. Negative edge padding removes elements.
    Pad {
        /// Elements added before, per dimension.
        low: Vec<i64>,
        /// Elements added after, per dimension.
        high: Vec<i64>,
        /// Elements added between neighbours, per dimension.
        interior: Vec<usize>,
    },
    /// `reverse`.
    Reverse {
        /// The dimensions reversed.
        dimensions: Vec<usize>,
    },
    /// `dynamic_slice`: operand, then one scalar start index per dimension.
    DynamicSlice {
        /// The size of the slice.
        sizes: Vec<usize>,
    },
    /// `dynamic_update_slice`: operand, update, then one scalar start index per dimension.
    DynamicUpdateSlice,
    /// `gather`: operand, start indices.
    Gather(Gather),
    /// `scatter`: inputs, indices, updates; one region that combines.
    Scatter(Scatter),
    /// `dot_general`.
    DotGeneral(DotGeneral),
    /// `dot`, which is not in the specification: matrices and vectors.
    Dot(Vec<Precision>),
    /// `einsum`, which is not in the specification: two operands.
    Einsum {
        /// The dimensions by letters: `ab,bc->ac`.
        config: String,
    },
    /// `unary_einsum`, which is not in the specification: one operand.
    UnaryEinsum {
        /// The dimensions by letters: `ab->a`.
        config: String,
    },
    /// `torch_index_select`, which is not in the specification: operand, index.
    TorchIndexSelect {
        /// The dimension indexed.
        dimension: usize,
        /// How many dimensions in front operand and index share.
        batch_dims: usize,
    },
    /// `convolution`.
    Convolution(Box<Convolution>),
    /// `fft`.
    Fft {
        /// The transform.
        fft_type: FftType,
        /// The sizes of the last dimensions, which are transformed.
        lengths: Vec<usize>,
    },
    /// `cholesky`.
    Cholesky {
        /// Whether the result is the lower triangle, otherwise the upper one.
        lower: bool,
    },
    /// `triangular_solve`: a, b.
    TriangularSolve(TriangularSolve),
    /// `rng_bit_generator`: state; results are the next state and the bits.
    RngBitGenerator(RngAlgorithm),
    /// `rng`: two bounds or mean and deviation, and the shape.
    Rng(RngDistribution),
    /// `batch_norm_training`: operand, scale, offset.
    BatchNormTraining(BatchNorm),
    /// `batch_norm_inference`: operand, scale, offset, mean, variance.
    BatchNormInference(BatchNorm),
    /// `batch_norm_grad`: operand, scale, mean, variance, gradient of the output.
    BatchNormGrad(BatchNorm),
    /// `map`: inputs; one region of scalars.
    Map {
        /// All dimensions, in order.
        dimensions: Vec<usize>,
    },
    /// `select_and_scatter`: operand, source, init value; regions select and scatter.
    SelectAndScatter(Window),
    /// `get_dimension_size`.
    GetDimensionSize {
        /// The dimension.
        dimension: usize,
    },
    /// `set_dimension_size`, which is not in the specification: operand, size.
    SetDimensionSize {
        /// The dimension.
        dimension: usize,
    },
    /// `uniform_quantize`.
    UniformQuantize,
    /// `uniform_dequantize`.
    UniformDequantize,
    /// `async_start`: operands; one region with the one operation that runs.
    AsyncStart,
    /// `async_done`: a future.
    AsyncDone,
    /// `after_all`: tokens; without any it makes a new one.
    AfterAll,
    /// `tuple`: values.
    Tuple,
    /// `get_tuple_element`.
    GetTupleElement {
        /// The element.
        index: usize,
    },
    /// `infeed`: token.
    Infeed {
        /// `infeed_config`.
        config: String,
    },
    /// `outfeed`: inputs, token.
    Outfeed {
        /// `outfeed_config`.
        config: String,
    },
    /// `send`: inputs, token.
    Send(Transfer),
    /// `recv`: token.
    Recv(Transfer),
    /// `reduce`: inputs, init values; one region.
    Reduce {
        /// The dimensions reduced away.
        dimensions: Vec<usize>,
    },
    /// `reduce_window`: inputs, init values; one region.
    ReduceWindow(Window),
    /// `sort`: inputs; one region, the comparator.
    Sort {
        /// The dimension sorted along.
        dimension: usize,
        /// Whether equal elements keep their order.
        is_stable: bool,
    },
    /// `while`: operands; regions cond and body.
    While,
    /// `if`: predicate; regions true and false.
    If,
    /// `case`: index; one region per branch.
    Case,
    /// `func.call`.
    Call {
        /// The function called, without `@`.
        callee: String,
    },
    /// `stablehlo.return`, `func.return` and `sdy.return`.
    Return,
    /// `optimization_barrier`.
    OptimizationBarrier,
    /// `partition_id`.
    PartitionId,
    /// `replica_id`.
    ReplicaId,
    /// `all_reduce`: one region that combines.
    AllReduce(Collective),
    /// `all_gather`.
    AllGather {
        /// The dimension along which shards are put together.
        dimension: usize,
        /// Groups and channel.
        collective: Collective,
    },
    /// `reduce_scatter`: one region that combines.
    ReduceScatter {
        /// The dimension along which the result is cut.
        dimension: usize,
        /// Groups and channel.
        collective: Collective,
    },
    /// `all_to_all`.
    AllToAll {
        /// The dimension cut.
        split_dimension: usize,
        /// The dimension put together.
        concat_dimension: usize,
        /// How many pieces.
        split_count: usize,
        /// Groups and channel.
        collective: Collective,
    },
    /// `collective_permute`.
    CollectivePermute {
        /// Who sends to whom.
        source_target_pairs: Vec<(i64, i64)>,
        /// Identifies the exchange; 0 when absent.
        channel_id: i64,
    },
    /// `collective_broadcast`: the first of each group sends.
    CollectiveBroadcast(Collective),
    /// `collective_reduce`: one region that combines; the root receives.
    CollectiveReduce {
        /// Groups and channel.
        collective: Collective,
        /// Whether the last operand says who the roots are, otherwise the first of each group.
        has_dynamic_root: bool,
    },
    /// `custom_call`.
    CustomCall {
        /// The target.
        call_target_name: String,
        /// `backend_config` that is text; one that is a dictionary is among `attributes`.
        backend_config: String,
        /// Whether it must be kept though its results are unused.
        has_side_effect: bool,
        /// The functions it may call, without `@`.
        called_computations: Vec<String>,
        /// What else the source says, by name; its meaning is the target's.
        attributes: Vec<(String, Attribute)>,
    },
    /// `composite`: its regions mean nothing to its decomposition.
    Composite(Box<Composite>),
    /// `sdy.manual_computation`: one region in local shapes.
    ManualComputation(ManualComputation),
    /// `sdy.sharding_constraint`.
    ShardingConstraint(Sharding),
    /// `sdy.reshard` and the collectives of `sdy`: the same values, spread in another way.
    Reshard(Box<Reshard>),
    /// `sdy.sharding_group`: members are spread alike; no results.
    ShardingGroup {
        /// The group.
        group_id: i64,
    },
    /// `sdy.propagation_barrier`: the same values.
    PropagationBarrier(PropagationDirection),
    /// `sdy.data_flow_edge`: the same values, a place for the sharding of what flows here from
    /// several sources, such as the state of a loop.
    DataFlowEdge(Option<Box<Sharding>>),
    /// `sdy.named_computation`: one region, isolated.
    NamedComputation(Box<NamedComputation>),
    /// The `chlo` dialect, close to what a frontend says.
    Chlo(Chlo),
    /// The `check` dialect, in which StableHLO's own tests say what they expect; no results.
    Expect(Expectation),
    /// The `interpreter` dialect of the same tests.
    Interpret(Interpretation),
}

named! {
    /// Element-by-element operations of one operand.
    pub enum Unary {
        Abs = "abs",
        Cbrt = "cbrt",
        Ceil = "ceil",
        CountLeadingZeros = "count_leading_zeros",
        Cosine = "cosine",
        Exponential = "exponential",
        ExponentialMinusOne = "exponential_minus_one",
        Floor = "floor",
        Imag = "imag",
        IsFinite = "is_finite",
        Log = "log",
        LogPlusOne = "log_plus_one",
        Logistic = "logistic",
        Negate = "negate",
        Not = "not",
        Popcnt = "popcnt",
        Real = "real",
        RoundNearestAfz = "round_nearest_afz",
        RoundNearestEven = "round_nearest_even",
        Rsqrt = "rsqrt",
        Sign = "sign",
        Sine = "sine",
        Sqrt = "sqrt",
        Tan = "tan",
        Tanh = "tanh",
    }
}

named! {
    /// Element-by-element operations of two operands.
    pub enum Binary {
        Add = "add",
        And = "and",
        Atan2 = "atan2",
        Complex = "complex",
        Divide = "divide",
        Maximum = "maximum",
        Minimum = "minimum",
        Multiply = "multiply",
        Or = "or",
        Power = "power",
        Remainder = "remainder",
        ShiftLeft = "shift_left",
        ShiftRightArithmetic = "shift_right_arithmetic",
        ShiftRightLogical = "shift_right_logical",
        Subtract = "subtract",
        Xor = "xor",
    }
}

named! {
    /// `comparison_direction`.
    pub enum Direction {
        Eq = "EQ",
        Ne = "NE",
        Ge = "GE",
        Gt = "GT",
        Le = "LE",
        Lt = "LT",
    }
}

named! {
    /// `compare_type`.
    pub enum CompareType {
        Float = "FLOAT",
        TotalOrder = "TOTALORDER",
        Signed = "SIGNED",
        Unsigned = "UNSIGNED",
    }
}

/// Attributes of `dot_general`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotGeneral {
    /// Batching dimensions of the left operand.
    pub lhs_batching: Vec<usize>,
    /// Batching dimensions of the right operand.
    pub rhs_batching: Vec<usize>,
    /// Contracting dimensions of the left operand.
    pub lhs_contracting: Vec<usize>,
    /// Contracting dimensions of the right operand.
    pub rhs_contracting: Vec<usize>,
    /// `precision_config`, per operand; empty when all are `DEFAULT`.
    pub precision: Vec<Precision>,
    /// How products are to be computed, if the source says.
    pub algorithm: Option<DotAlgorithm>,
}

named! {
    /// `precision_config`.
    pub enum Precision {
        Default = "DEFAULT",
        High = "HIGH",
        Highest = "HIGHEST",
    }
}

/// Attributes of `dynamic_broadcast_in_dim`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicBroadcast {
    /// For each operand dimension, the result dimension it becomes.
    pub dimensions: Vec<usize>,
    /// Operand dimensions known to grow from 1.
    pub known_expanding: Vec<usize>,
    /// Operand dimensions known to stay as they are.
    pub known_nonexpanding: Vec<usize>,
}

/// Attributes of `gather`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the specification's names")]
pub struct Gather {
    pub offset_dims: Vec<usize>,
    pub collapsed_slice_dims: Vec<usize>,
    pub operand_batching_dims: Vec<usize>,
    pub start_indices_batching_dims: Vec<usize>,
    pub start_index_map: Vec<usize>,
    pub index_vector_dim: usize,
    pub slice_sizes: Vec<usize>,
    pub indices_are_sorted: bool,
}

/// Attributes of `scatter`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the specification's names")]
pub struct Scatter {
    pub update_window_dims: Vec<usize>,
    pub inserted_window_dims: Vec<usize>,
    pub input_batching_dims: Vec<usize>,
    pub scatter_indices_batching_dims: Vec<usize>,
    pub scatter_dims_to_operand_dims: Vec<usize>,
    pub index_vector_dim: usize,
    pub indices_are_sorted: bool,
    pub unique_indices: bool,
}

/// Window attributes, per dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the specification's names")]
pub struct Window {
    pub dimensions: Vec<usize>,
    pub strides: Vec<usize>,
    pub base_dilations: Vec<usize>,
    pub window_dilations: Vec<usize>,
    pub padding: Vec<(i64, i64)>,
}

/// Attributes of `convolution`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the specification's names")]
pub struct Convolution {
    pub window: Window,
    pub window_reversal: Vec<bool>,
    pub input_batch_dimension: usize,
    pub input_feature_dimension: usize,
    pub input_spatial_dimensions: Vec<usize>,
    pub kernel_input_feature_dimension: usize,
    pub kernel_output_feature_dimension: usize,
    pub kernel_spatial_dimensions: Vec<usize>,
    pub output_batch_dimension: usize,
    pub output_feature_dimension: usize,
    pub output_spatial_dimensions: Vec<usize>,
    pub feature_group_count: usize,
    pub batch_group_count: usize,
    pub precision: Vec<Precision>,
}

/// Attributes of batch normalization.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchNorm {
    /// Added to the variance.
    pub epsilon: f32,
    /// The dimension of the features.
    pub feature_index: usize,
}

/// Attributes of `composite`.
#[derive(Clone, Debug, PartialEq)]
pub struct Composite {
    /// What the operation is, with the namespace of who defines it.
    pub name: String,
    /// Its own attributes, sorted by name.
    pub attributes: Vec<(String, Attribute)>,
    /// The function that computes it, without `@`.
    pub decomposition: String,
    /// The version of its meaning.
    pub version: i32,
}

/// Groups and channel of a collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collective {
    /// The groups, each an ordered list of process ids; -1 pads uneven groups.
    pub replica_groups: Vec<Vec<i64>>,
    /// `channel_handle`; 0 when absent.
    pub channel_id: i64,
    /// Whether process ids are positions in the device assignment (`flattened_ids`).
    pub use_global_device_ids: bool,
}

impl OpKind {
    /// The type a constant yields; `None` for other operations.
    pub fn constant_type(&self) -> Option<&TensorType> {
        match self {
            Self::Constant(literal) => Some(literal.ty()),
            _ => None,
        }
    }

    /// Whether devices exchange data here.
    pub fn is_collective(&self) -> bool {
        matches!(
            self,
            Self::AllReduce(_)
                | Self::AllGather { .. }
                | Self::ReduceScatter { .. }
                | Self::AllToAll { .. }
                | Self::CollectivePermute { .. }
                | Self::CollectiveBroadcast(_)
                | Self::CollectiveReduce { .. }
        )
    }

    /// Whether the operation must run though its results are unused.
    pub fn has_side_effect(&self) -> bool {
        match self {
            // What a test expects, it expects though nobody uses the answer.
            Self::CustomCall { has_side_effect, call_target_name, .. } => {
                *has_side_effect || call_target_name.starts_with("check.")
            }
            Self::Infeed { .. } | Self::Outfeed { .. } | Self::Send(_) | Self::Recv(_) => true,
            Self::ShardingGroup { .. } | Self::Expect(_) | Self::Interpret(_) => true,
            _ => self.is_collective(),
        }
    }

    /// The dialect: `stablehlo`, `chlo`, `func`, `sdy`, `check` or `interpreter`.
    pub fn dialect(&self) -> &'static str {
        match self {
            Self::Call { .. } => "func",
            Self::ManualComputation(_)
            | Self::ShardingConstraint(_)
            | Self::Reshard(_)
            | Self::ShardingGroup { .. }
            | Self::PropagationBarrier(_)
            | Self::DataFlowEdge(_)
            | Self::NamedComputation(_) => "sdy",
            Self::Chlo(_) => "chlo",
            Self::Expect(_) => "check",
            Self::Interpret(_) => "interpreter",
            _ => "stablehlo",
        }
    }

    /// The name within the dialect, such as `dot_general`.
    pub fn mnemonic(&self) -> &'static str {
        match self {
            Self::Constant(_) => "constant",
            Self::Iota { .. } => "iota",
            Self::Unary(unary) => unary.name(),
            Self::Binary(binary) => binary.name(),
            Self::Compare { .. } => "compare",
            Self::Select => "select",
            Self::Clamp => "clamp",
            Self::Convert => "convert",
            Self::BitcastConvert => "bitcast_convert",
            Self::ReducePrecision { .. } => "reduce_precision",
            Self::BroadcastInDim { .. } => "broadcast_in_dim",
            Self::Broadcast { .. } => "broadcast",
            Self::DynamicBroadcastInDim(_) => "dynamic_broadcast_in_dim",
            Self::DynamicConv(_) => "dynamic_conv",
            Self::DynamicGather(_) => "dynamic_gather",
            Self::DynamicIota { .. } => "dynamic_iota",
            Self::DynamicPad => "dynamic_pad",
            Self::DynamicReshape => "dynamic_reshape",
            Self::RealDynamicSlice => "real_dynamic_slice",
            Self::Reshape => "reshape",
            Self::Transpose { .. } => "transpose",
            Self::Slice { .. } => "slice",
            Self::Concatenate { .. } => "concatenate",
            Self::Pad { .. } => "pad",
            Self::Reverse { .. } => "reverse",
            Self::DynamicSlice { .. } => "dynamic_slice",
            Self::DynamicUpdateSlice => "dynamic_update_slice",
            Self::Gather(_) => "gather",
            Self::Scatter(_) => "scatter",
            Self::DotGeneral(_) => "dot_general",
            Self::Dot(_) => "dot",
            Self::Einsum { .. } => "einsum",
            Self::UnaryEinsum { .. } => "unary_einsum",
            Self::TorchIndexSelect { .. } => "torch_index_select",
            Self::Convolution(_) => "convolution",
            Self::Fft { .. } => "fft",
            Self::Cholesky { .. } => "cholesky",
            Self::TriangularSolve(_) => "triangular_solve",
            Self::RngBitGenerator(_) => "rng_bit_generator",
            Self::Rng(_) => "rng",
            Self::BatchNormTraining(_) => "batch_norm_training",
            Self::BatchNormInference(_) => "batch_norm_inference",
            Self::BatchNormGrad(_) => "batch_norm_grad",
            Self::Map { .. } => "map",
            Self::SelectAndScatter(_) => "select_and_scatter",
            Self::GetDimensionSize { .. } => "get_dimension_size",
            Self::SetDimensionSize { .. } => "set_dimension_size",
            Self::UniformQuantize => "uniform_quantize",
            Self::UniformDequantize => "uniform_dequantize",
            Self::AsyncStart => "async_start",
            Self::AsyncDone => "async_done",
            Self::AfterAll => "after_all",
            Self::Tuple => "tuple",
            Self::GetTupleElement { .. } => "get_tuple_element",
            Self::Infeed { .. } => "infeed",
            Self::Outfeed { .. } => "outfeed",
            Self::Send(_) => "send",
            Self::Recv(_) => "recv",
            Self::Reduce { .. } => "reduce",
            Self::ReduceWindow(_) => "reduce_window",
            Self::Sort { .. } => "sort",
            Self::While => "while",
            Self::If => "if",
            Self::Case => "case",
            Self::Call { .. } => "call",
            Self::Return => "return",
            Self::OptimizationBarrier => "optimization_barrier",
            Self::PartitionId => "partition_id",
            Self::ReplicaId => "replica_id",
            Self::AllReduce(_) => "all_reduce",
            Self::AllGather { .. } => "all_gather",
            Self::ReduceScatter { .. } => "reduce_scatter",
            Self::AllToAll { .. } => "all_to_all",
            Self::CollectivePermute { .. } => "collective_permute",
            Self::CollectiveBroadcast(_) => "collective_broadcast",
            Self::CollectiveReduce { .. } => "collective_reduce",
            Self::CustomCall { .. } => "custom_call",
            Self::Composite(_) => "composite",
            Self::ManualComputation(_) => "manual_computation",
            Self::ShardingConstraint(_) => "sharding_constraint",
            Self::Reshard(reshard) => reshard.movement.name(),
            Self::ShardingGroup { .. } => "sharding_group",
            Self::PropagationBarrier(_) => "propagation_barrier",
            Self::DataFlowEdge(_) => "data_flow_edge",
            Self::NamedComputation(_) => "named_computation",
            Self::Chlo(chlo) => chlo.name(),
            Self::Expect(expectation) => expectation.name(),
            Self::Interpret(interpretation) => interpretation.name(),
        }
    }
}

impl fmt::Display for OpKind {
    /// The name with its dialect, such as `stablehlo.dot_general`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.dialect(), self.mnemonic())
    }
}
