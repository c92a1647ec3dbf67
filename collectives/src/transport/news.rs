//! What interrupts exchanges: failed ranks, operations given up, operations that are over.
//!
//! A plain value without locks, clock or I/O. What peers can add to it is bounded.

use std::collections::{HashMap, VecDeque};

use super::{Operation, TransportError};
use crate::descriptor::{GroupId, OperationId};
use crate::ids::{Member, Rank};
use crate::rendezvous::RankFailure;

/// Operations given up that a late member can still learn about.
const ABORTS_KEPT: usize = 256;

#[derive(Debug, Default)]
pub(super) struct News {
    /// The first failure of each rank, in the order in which they were told: what failed first is
    /// the cause of the rest.
    failed: Vec<RankFailure>,
    /// The first notice of each operation, oldest first.
    aborted: VecDeque<(OperationId, Rank, Vec<u8>)>,
    /// The last operation of each group that a local member is through with.
    retired: HashMap<(Member, GroupId), u64>,
}

impl News {
    /// Keeps the first failure of a rank; says whether this is it.
    pub(super) fn fail(&mut self, failure: RankFailure) -> bool {
        let first = !self.has_failed(failure.rank);
        if first {
            self.failed.push(failure);
        }
        first
    }

    /// Keeps the first notice of an operation.
    pub(super) fn abort(&mut self, operation: OperationId, from: Rank, notice: Vec<u8>) {
        if self.aborted.iter().any(|(known, ..)| *known == operation) {
            return;
        }
        if self.aborted.len() == ABORTS_KEPT {
            self.aborted.pop_front();
        }
        self.aborted.push_back((operation, from, notice));
    }

    pub(super) fn retire(&mut self, operation: &Operation<'_>) {
        let OperationId { group, sequence } = operation.id;
        let last = self.retired.entry((operation.me, group)).or_insert(sequence);
        *last = sequence.max(*last);
    }

    pub(super) fn is_retired(&self, me: Member, operation: OperationId) -> bool {
        self.retired.get(&(me, operation.group)).is_some_and(|last| operation.sequence <= *last)
    }

    pub(super) fn has_failed(&self, rank: Rank) -> bool {
        self.failed.iter().any(|failure| failure.rank == rank)
    }

    /// Why `operation` ends without success.
    ///
    /// A notice counts, from a rank that has a member in the group, even if all transfers of an
    /// exchange are done: the members that made it do not take part any more. It comes before a
    /// failure: the rank that failed may have left because of what the notice says. A failure
    /// counts only if the exchange is not `complete`.
    pub(super) fn interruption(
        &self,
        operation: &Operation<'_>,
        complete: bool,
        rank_of: impl Fn(Member) -> Option<Rank>,
    ) -> Option<TransportError> {
        if self.aborted.is_empty() && self.failed.is_empty() {
            return None;
        }
        let concerns = |rank| operation.members.iter().any(|&member| rank_of(member) == Some(rank));
        let notice =
            self.aborted.iter().find(|(id, from, _)| *id == operation.id && concerns(*from));
        if let Some((_, from, notice)) = notice {
            return Some(TransportError::Aborted { from: *from, notice: notice.clone() });
        }
        let failure = self.failed.iter().find(|failure| !complete && concerns(failure.rank));
        failure.map(|failure| TransportError::RankFailed(failure.clone()))
    }
}
