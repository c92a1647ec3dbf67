//! Collectives as the program has them, handed to the launch's [`CollectiveContext`].

use crate::backend::{CollectiveContext, CollectiveSite, Reduction};
use crate::ifrt::{DType, Result};

/// A collective of one flat operand.
#[derive(Clone, Debug)]
pub(crate) struct CollectiveCall {
    pub(crate) kind: CollectiveKind,
    pub(crate) dtype: DType,
    pub(crate) replica_groups: Vec<Vec<i64>>,
    pub(crate) channel_id: i64,
    pub(crate) use_global_device_ids: bool,
}

/// Which collective.
#[derive(Clone, Debug)]
pub(crate) enum CollectiveKind {
    AllReduce(Reduction),
    AllGather,
    ReduceScatter(Reduction),
    AllToAll,
    CollectivePermute(Vec<(i64, i64)>),
    CollectiveBroadcast,
}

impl CollectiveCall {
    /// Runs the collective and fills `output`.
    pub(crate) fn run(
        &self,
        ordinal: u32,
        iteration: u64,
        context: &dyn CollectiveContext,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        let site = CollectiveSite {
            ordinal,
            iteration,
            replica_groups: &self.replica_groups,
            channel_id: self.channel_id,
            use_global_device_ids: self.use_global_device_ids,
        };
        match &self.kind {
            CollectiveKind::AllReduce(reduction) => {
                context.all_reduce(&site, *reduction, self.dtype, input, output)
            }
            CollectiveKind::AllGather => context.all_gather(&site, self.dtype, input, output),
            CollectiveKind::ReduceScatter(reduction) => {
                context.reduce_scatter(&site, *reduction, self.dtype, input, output)
            }
            CollectiveKind::AllToAll => context.all_to_all(&site, self.dtype, input, output),
            CollectiveKind::CollectivePermute(pairs) => {
                context.collective_permute(&site, pairs, self.dtype, input, output)
            }
            CollectiveKind::CollectiveBroadcast => {
                context.collective_broadcast(&site, self.dtype, input, output)
            }
        }
    }
}
