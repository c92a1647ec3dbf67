//! Attributes of `sdy`: how tensors are spread over the axes of a mesh, and moved between ways of
//! being spread.

/// How one tensor is spread over a mesh (`sdy.sharding`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharding {
    /// The mesh, without `@`; one written in place is called by its text.
    pub mesh: String,
    /// Per dimension, the axes that cut it, outermost first.
    pub dims: Vec<DimSharding>,
    /// Axes along which the tensor is stated to be the same.
    pub replicated: Vec<AxisRef>,
    /// Axes along which the tensor is still to be reduced.
    pub unreduced: Vec<AxisRef>,
    /// By what.
    pub reduction_op: ReductionOp,
}

impl Sharding {
    /// That of an array of `rank` dimensions which every device of a mesh has whole.
    pub fn whole(mesh: &str, rank: usize) -> Self {
        let dim = DimSharding { axes: Vec::new(), is_open: false, priority: None };
        Self {
            mesh: mesh.to_owned(),
            dims: vec![dim; rank],
            replicated: Vec::new(),
            unreduced: Vec::new(),
            reduction_op: ReductionOp::default(),
        }
    }

    /// Whether every device has the whole array, over whatever mesh.
    pub fn is_whole(&self) -> bool {
        self.dims.iter().all(|dim| dim.axes.is_empty()) && self.unreduced.is_empty()
    }
}

named! {
    /// `reduction_op`: what is done to what is unreduced along an axis.
    #[derive(Default)]
    pub enum ReductionOp {
        #[default]
        Sum = "sum",
        Max = "max",
        Min = "min",
    }
}

/// How one dimension is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DimSharding {
    /// The axes, outermost first.
    pub axes: Vec<AxisRef>,
    /// Whether propagation may add axes (`?`).
    pub is_open: bool,
    /// The priority, if given.
    pub priority: Option<u32>,
}

/// An axis of a mesh or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisRef {
    /// The axis.
    pub name: String,
    /// `(pre_size, size)` of a sub-axis.
    pub sub_axis: Option<(usize, usize)>,
}

/// `sdy.sharding_rule`: which dimensions of the operands and results of an operation belong
/// together. What belongs together is a factor, called by its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardingRule {
    /// The sizes of the factors.
    pub factor_sizes: Vec<i64>,
    /// Per operand and dimension, the factors, outermost first.
    pub operands: Vec<Vec<Vec<usize>>>,
    /// Per result and dimension, the factors, outermost first.
    pub results: Vec<Vec<Vec<usize>>>,
    /// Factors that are reduced.
    pub reduction: Vec<usize>,
    /// Factors along which tensors must be whole.
    pub need_replication: Vec<usize>,
    /// Factors along which shards change places.
    pub permutation: Vec<usize>,
    /// Factors along which shardings do not propagate.
    pub blocked_propagation: Vec<usize>,
    /// Whether the program says so, not a compiler.
    pub is_custom: bool,
}

impl ShardingRule {
    /// The names of factors are letters from this one on; after `z` come `z_1`, `z_2`, ….
    pub(crate) const FIRST_FACTOR: char = 'i';
    /// The number of the factor `z`.
    pub(crate) const LAST_LETTER: usize = 'z' as usize - Self::FIRST_FACTOR as usize;
}

/// Attributes of `sdy.manual_computation`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManualComputation {
    /// Per operand.
    pub in_shardings: Vec<Sharding>,
    /// Per result.
    pub out_shardings: Vec<Sharding>,
    /// The axes that the body handles itself.
    pub manual_axes: Vec<String>,
}

/// Attributes of `sdy.named_computation`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedComputation {
    /// What it is called.
    pub name: String,
    /// Per operand; empty when the source does not say.
    pub in_shardings: Vec<Sharding>,
    /// Per result; empty when the source does not say.
    pub out_shardings: Vec<Sharding>,
}

named! {
    /// `allowed_direction` of `sdy.propagation_barrier`: where shardings may flow.
    pub enum PropagationDirection {
        None = "NONE",
        Forward = "FORWARD",
        Backward = "BACKWARD",
        Both = "BOTH",
    }
}

/// `sdy.reshard` or a collective of `sdy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reshard {
    /// What is done.
    pub movement: Move,
    /// How the result is spread.
    pub sharding: Sharding,
}

/// How a tensor comes to be spread in another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// `reshard`: in whatever way.
    Any,
    /// `all_gather`: dimensions are put together along these axes, per dimension.
    AllGather(Vec<Vec<AxisRef>>),
    /// `all_slice`: dimensions are cut along these axes, per dimension.
    AllSlice(Vec<Vec<AxisRef>>),
    /// `all_to_all`: axes go from one dimension to another.
    AllToAll(Vec<AxesMove>),
    /// `collective_permute`: shards change places.
    CollectivePermute,
    /// `all_reduce`: what is unreduced along these axes is reduced.
    AllReduce(Vec<AxisRef>, ReductionOp),
    /// `reduce_scatter`: what is reduced is cut along the axes, per dimension.
    ReduceScatter(Vec<Vec<AxisRef>>, ReductionOp),
    /// `sharded_to_unreduced`: shards become summands, per dimension.
    ShardedToUnreduced(Vec<Vec<AxisRef>>),
    /// `replicated_to_unreduced`: copies become summands.
    ReplicatedToUnreduced(Vec<AxisRef>),
}

/// Axes that an `sdy.all_to_all` takes from one dimension to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxesMove {
    /// The axes.
    pub axes: Vec<AxisRef>,
    /// The dimension that they cut before.
    pub from: usize,
    /// The dimension that they cut afterwards.
    pub to: usize,
}

impl Move {
    /// The name of the operation, without the dialect.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Any => "reshard",
            Self::AllGather(_) => "all_gather",
            Self::AllSlice(_) => "all_slice",
            Self::AllToAll(_) => "all_to_all",
            Self::CollectivePermute => "collective_permute",
            Self::AllReduce(..) => "all_reduce",
            Self::ReduceScatter(..) => "reduce_scatter",
            Self::ShardedToUnreduced(_) => "sharded_to_unreduced",
            Self::ReplicatedToUnreduced(_) => "replicated_to_unreduced",
        }
    }
}
