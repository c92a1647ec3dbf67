//! Members of one host: their operands are read where they lie.
//!
//! [`ShmTransport`] decorates the transport that reaches all members. To groups that lie on one
//! host it gives a [`SharedGroup`], through which their collectives go; everything else goes
//! through the transport it decorates, the notices of failed collectives of such groups included.
//!
//! Members only read each other's memory and never write it, so one that wakes up late can do no
//! harm to results of those that gave it up. How they meet is in `board`, how they wait in `wait`,
//! which part of the board a group has in `directory`.

mod board;
mod directory;
mod group;
mod wait;

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

pub use group::SharedGroup;
pub(crate) use group::{Exposure, Head, Opened, Presence};

use self::wait::Patience;
use super::{Incoming, Operation, Outgoing, Step, Transport, TransportError};
use crate::descriptor::GroupId;
use crate::ids::{Member, Rank};
use crate::rendezvous::RankFailure;
use crate::shared_memory::Segment;

/// A transport whose groups of one host run in shared memory.
pub struct ShmTransport {
    network: Arc<dyn Transport>,
    segment: Arc<Segment>,
    /// The ranks that have the segment, in order.
    ranks: Vec<Rank>,
    patience: Patience,
}

impl ShmTransport {
    /// Groups within `ranks` run in `segment`, others over `network`.
    ///
    /// `ranks` are those that have the segment, the same on each of them; `members` is how many
    /// members they have, all together, and `processors` how many processors, if each has some of
    /// its own: whether a wait may keep a processor busy depends on it.
    pub fn new(
        network: Arc<dyn Transport>,
        segment: Arc<Segment>,
        mut ranks: Vec<Rank>,
        members: usize,
        processors: Option<u32>,
    ) -> Self {
        ranks.sort_unstable();
        let processors = processors.and_then(|count| usize::try_from(count).ok());
        Self { network, segment, ranks, patience: Patience::among(members, processors) }
    }

    fn has_segment(&self, member: Member) -> bool {
        self.rank_of(member).is_some_and(|rank| self.ranks.binary_search(&rank).is_ok())
    }
}

impl Transport for ShmTransport {
    fn now(&self) -> Duration {
        self.network.now()
    }

    fn last_tick(&self) -> Duration {
        self.network.last_tick()
    }

    fn rank_of(&self, member: Member) -> Option<Rank> {
        self.network.rank_of(member)
    }

    fn host_of(&self, member: Member) -> Option<Rank> {
        self.network.host_of(member)
    }

    fn exchange(
        &self,
        step: &Step<'_>,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), TransportError> {
        self.network.exchange(step, sends, receives)
    }

    fn exchange_views(
        &self,
        step: &Step<'_>,
        sends: &[Outgoing<'_>],
        sources: &[Member],
        length_bytes: usize,
        read: &mut dyn FnMut(usize, &[&[u8]]),
    ) -> Result<(), TransportError> {
        self.network.exchange_views(step, sends, sources, length_bytes, read)
    }

    fn poll_interrupted(
        &self,
        operation: &Operation<'_>,
        pending: &[Member],
        context: &Context<'_>,
    ) -> Poll<TransportError> {
        self.network.poll_interrupted(operation, pending, context)
    }

    fn shared_group(&self, id: GroupId, members: &[Member], me: usize) -> Option<SharedGroup> {
        if !members.iter().all(|&member| self.has_segment(member)) {
            return None;
        }
        let group = SharedGroup::claim(&self.segment, id, members.len(), me, self.patience);
        if group.is_none() {
            tracing::warn!(
                "no room on the board for one more group: its {} members use the network",
                members.len()
            );
        }
        group
    }

    fn abort(&self, operation: &Operation<'_>, notice: &[u8]) {
        self.network.abort(operation, notice);
    }

    fn retire(&self, operation: &Operation<'_>) {
        self.network.retire(operation);
    }

    fn fail_rank(&self, failure: RankFailure) {
        self.network.fail_rank(failure);
    }

    fn flush(&self, timeout: Duration) {
        self.network.flush(timeout);
    }
}

impl fmt::Debug for ShmTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShmTransport")
            .field("segment", &self.segment)
            .field("ranks", &self.ranks)
            .finish_non_exhaustive()
    }
}
