//! What interrupts exchanges: failed ranks, operations given up, operations that are over.
//!
//! A plain value without locks, clock or I/O. What peers can add to it is bounded.

use std::collections::{HashMap, VecDeque};

use super::{Operation, TransportError};
use crate::descriptor::{GroupId, OperationId};
use crate::ids::{Member, Rank};
use crate::rendezvous::{FailureCause, RankFailure};

/// Operations given up that a late member can still learn about.
const ABORTS_KEPT: usize = 256;

#[derive(Debug, Default)]
pub(super) struct News {
    /// The first failure of each rank, in the order in which they were told: what failed first is
    /// the cause of the rest.
    failed: Vec<RankFailure>,
    /// Ranks that have left the job in order: who waits for them waits in vain, others need not
    /// mind.
    left: Vec<Rank>,
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

    pub(super) fn leave(&mut self, rank: Rank) {
        if !self.left.contains(&rank) {
            self.left.push(rank);
        }
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

    /// Whether nothing more can be expected of `rank`.
    pub(super) fn is_gone(&self, rank: Rank) -> bool {
        self.has_failed(rank) || self.left.contains(&rank)
    }

    fn has_failed(&self, rank: Rank) -> bool {
        self.failed.iter().any(|failure| failure.rank == rank)
    }

    /// Why `operation` ends without success, given whom its exchange still waits for.
    ///
    /// A notice counts, from a rank that has a member in the group, even if the exchange waits for
    /// nobody: the members that made it do not take part any more. It comes before a failure: the
    /// rank that failed may have left because of what the notice says.
    pub(super) fn interruption(
        &self,
        operation: &Operation<'_>,
        pending: &[Member],
        rank_of: impl Fn(Member) -> Option<Rank>,
    ) -> Option<TransportError> {
        if self.aborted.is_empty() && self.failed.is_empty() && self.left.is_empty() {
            return None;
        }
        let has = |members: &[Member], rank| members.iter().any(|&m| rank_of(m) == Some(rank));
        let concerns = |rank| has(operation.members, rank);
        let notice =
            self.aborted.iter().find(|(id, from, _)| *id == operation.id && concerns(*from));
        if let Some((_, from, notice)) = notice {
            return Some(TransportError::Aborted { from: *from, notice: notice.clone() });
        }
        if pending.is_empty() {
            return None;
        }
        if let Some(failure) = self.failed.iter().find(|failure| concerns(failure.rank)) {
            return Some(TransportError::RankFailed(failure.clone()));
        }
        let left = self.left.iter().find(|rank| has(pending, **rank));
        left.map(|rank| TransportError::RankFailed(departure(*rank)))
    }
}

/// What a rank's departure is to those that still need it.
pub(super) fn departure(rank: Rank) -> RankFailure {
    RankFailure { rank, cause: FailureCause::Left }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: GroupId = GroupId([7; 16]);
    const MEMBERS: [Member; 3] = [Member(0), Member(1), Member(2)];

    fn operation(sequence: u64) -> Operation<'static> {
        Operation { id: OperationId { group: GROUP, sequence }, me: Member(0), members: &MEMBERS }
    }

    /// Each member is a rank of its own.
    fn interruption(news: &News, sequence: u64, pending: &[u32]) -> Option<TransportError> {
        let pending: Vec<Member> = pending.iter().copied().map(Member).collect();
        news.interruption(&operation(sequence), &pending, |member| Some(Rank(member.0)))
    }

    fn failure(rank: u32) -> RankFailure {
        RankFailure { rank: Rank(rank), cause: FailureCause::Disconnected }
    }

    #[test]
    fn the_first_failure_of_the_group_ends_its_unfinished_exchanges() {
        let mut news = News::default();
        assert!(news.fail(failure(5)));
        assert_eq!(interruption(&news, 1, &[1]), None);
        assert!(news.fail(failure(2)));
        assert!(news.fail(failure(1)));
        let again = RankFailure { rank: Rank(2), cause: FailureCause::Exited { code: 1 } };
        assert!(!news.fail(again));
        assert_eq!(interruption(&news, 1, &[1]), Some(TransportError::RankFailed(failure(2))));
        assert_eq!(interruption(&news, 1, &[]), None);
    }

    #[test]
    fn a_departure_ends_only_the_exchanges_that_wait_for_it() {
        let mut news = News::default();
        news.leave(Rank(1));
        assert_eq!(interruption(&news, 1, &[2]), None);
        let told = Some(TransportError::RankFailed(departure(Rank(1))));
        assert_eq!(interruption(&news, 1, &[2, 1]), told);
        assert!(news.is_gone(Rank(1)) && !news.is_gone(Rank(2)));
    }

    #[test]
    fn a_notice_counts_before_a_failure_and_only_from_the_group() {
        let mut news = News::default();
        news.abort(operation(1).id, Rank(9), vec![9]);
        news.abort(operation(2).id, Rank(1), vec![1]);
        news.abort(operation(2).id, Rank(2), vec![2]);
        news.fail(failure(1));
        assert_eq!(interruption(&news, 1, &[1]), Some(TransportError::RankFailed(failure(1))));
        let told = Some(TransportError::Aborted { from: Rank(1), notice: vec![1] });
        assert_eq!(interruption(&news, 2, &[1]), told);
        assert_eq!(interruption(&news, 2, &[]), told);
    }

    #[test]
    fn old_notices_are_forgotten() {
        let mut news = News::default();
        for sequence in 0..=ABORTS_KEPT as u64 {
            news.abort(operation(sequence).id, Rank(1), Vec::new());
        }
        assert_eq!(news.aborted.len(), ABORTS_KEPT);
        assert_eq!(interruption(&news, 0, &[1]), None);
        assert!(interruption(&news, 1, &[1]).is_some());
    }

    #[test]
    fn an_operation_that_is_over_is_so_for_its_member_and_with_all_before() {
        let mut news = News::default();
        news.retire(&operation(5));
        news.retire(&operation(3));
        assert!(news.is_retired(Member(0), operation(5).id));
        assert!(news.is_retired(Member(0), operation(1).id));
        assert!(!news.is_retired(Member(0), operation(6).id));
        assert!(!news.is_retired(Member(1), operation(5).id));
    }
}
