//! Attributes of `sdy`: how tensors are spread over the axes of a mesh, and moved between ways of
//! being spread.

/// How one tensor is spread over a mesh (`sdy.sharding`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharding {
    /// The mesh, without `@`.
    pub mesh: String,
    /// Per dimension, the axes that cut it, outermost first.
    pub dims: Vec<DimSharding>,
    /// Axes along which the tensor is stated to be the same.
    pub replicated: Vec<AxisRef>,
    /// Axes along which the tensor is still to be summed.
    pub unreduced: Vec<AxisRef>,
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
    /// `all_reduce`: what is unreduced along these axes is summed.
    AllReduce(Vec<AxisRef>),
    /// `reduce_scatter`: the sums are cut along the axes, per dimension.
    ReduceScatter(Vec<Vec<AxisRef>>),
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
            Self::AllReduce(_) => "all_reduce",
            Self::ReduceScatter(_) => "reduce_scatter",
            Self::ShardedToUnreduced(_) => "sharded_to_unreduced",
            Self::ReplicatedToUnreduced(_) => "replicated_to_unreduced",
        }
    }
}
