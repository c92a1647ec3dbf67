//! Named barriers: who has arrived at which.
//!
//! A barrier is complete when all ranks have arrived, and can then be used again. When it is late,
//! those who wait get an error, and each rank that had not arrived gets the same error when it
//! does: so all ranks agree on what became of each use of the name, and on which use they are in.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use super::store::{check, check_name};
use super::{CallId, CallRefusal, MissingRanks};
use crate::Rank;

/// The most barriers that may be in use or have latecomers.
const MAX_BARRIERS: usize = 1 << 16;

pub(super) struct Barriers {
    world_size: u32,
    open: HashMap<String, BTreeMap<Rank, CallId>>,
    /// The error that each latecomer has coming, for each of its uses of a name in turn.
    owed: HashMap<String, Vec<(BTreeSet<Rank>, CallRefusal)>>,
}

/// What an arrival leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// All are there: these calls, the last one among them, are done.
    Complete(Vec<CallId>),
    /// Others are missing.
    Waiting,
}

impl Barriers {
    pub(super) fn new(world_size: u32) -> Self {
        Self { world_size, open: HashMap::new(), owed: HashMap::new() }
    }

    /// Lets `rank` arrive by `call`.
    pub(super) fn arrive(
        &mut self,
        name: &str,
        rank: Rank,
        call: CallId,
    ) -> Result<Arrival, CallRefusal> {
        check_name("a barrier's name", name)?;
        if let Some(refusal) = self.settle(name, rank) {
            return Err(refusal);
        }
        if !self.open.contains_key(name) {
            let barriers = self.open.len().saturating_add(self.owed.len());
            check("a number of barriers", barriers.saturating_add(1), MAX_BARRIERS)?;
        }
        let arrived = self.open.entry(name.to_owned()).or_default();
        if arrived.contains_key(&rank) {
            return Err(CallRefusal::AlreadyWaiting);
        }
        arrived.insert(rank, call);
        if u32::try_from(arrived.len()) != Ok(self.world_size) {
            return Ok(Arrival::Waiting);
        }
        let arrived = self.open.remove(name).unwrap_or_default();
        Ok(Arrival::Complete(arrived.into_values().collect()))
    }

    /// Undoes the arrival of a `rank` that no longer waits.
    pub(super) fn withdraw(&mut self, name: &str, rank: Rank) {
        if let Some(arrived) = self.open.get_mut(name) {
            arrived.remove(&rank);
            if arrived.is_empty() {
                self.open.remove(name);
            }
        }
    }

    /// Ends a barrier after `timeout`: the calls that wait, and what they and the latecomers get.
    pub(super) fn expire(&mut self, name: &str, timeout: Duration) -> (Vec<CallId>, CallRefusal) {
        let arrived = self.open.remove(name).unwrap_or_default();
        let missing: BTreeSet<Rank> =
            (0..self.world_size).map(Rank).filter(|rank| !arrived.contains_key(rank)).collect();
        let refusal =
            CallRefusal::Late { timeout, missing: MissingRanks::new(missing.iter().copied()) };
        self.owed.entry(name.to_owned()).or_default().push((missing, refusal.clone()));
        (arrived.into_values().collect(), refusal)
    }

    /// Forgets all that wait, which have been answered.
    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    /// Takes the oldest error that `rank` has coming at this name.
    fn settle(&mut self, name: &str, rank: Rank) -> Option<CallRefusal> {
        let debts = self.owed.get_mut(name)?;
        let refusal = debts
            .iter_mut()
            .find_map(|(ranks, refusal)| ranks.remove(&rank).then(|| refusal.clone()));
        debts.retain(|(ranks, _)| !ranks.is_empty());
        if debts.is_empty() {
            self.owed.remove(name);
        }
        refusal
    }

    #[cfg(test)]
    pub(super) fn waiting_count(&self) -> usize {
        self.open.values().map(BTreeMap::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITING: Result<Arrival, CallRefusal> = Ok(Arrival::Waiting);

    #[test]
    fn completes_when_all_have_arrived_and_can_be_used_again() {
        let mut barriers = Barriers::new(3);
        for round in 0..3_u64 {
            let call = |n: u64| CallId(10 * round + n);
            assert_eq!(barriers.arrive("b", Rank(2), call(0)), WAITING);
            assert_eq!(barriers.arrive("other", Rank(1), call(9)), WAITING);
            assert_eq!(barriers.arrive("b", Rank(0), call(1)), WAITING);
            let twice = barriers.arrive("b", Rank(0), call(2));
            assert_eq!(twice, Err(CallRefusal::AlreadyWaiting));
            let complete = Arrival::Complete(vec![call(1), call(3), call(0)]);
            assert_eq!(barriers.arrive("b", Rank(1), call(3)), Ok(complete));
            barriers.withdraw("other", Rank(1));
        }
        assert_eq!(barriers.waiting_count(), 0);
    }

    #[test]
    fn latecomers_get_what_the_others_got_once_per_use() {
        let mut barriers = Barriers::new(3);
        let second = Duration::from_secs(1);
        assert_eq!(barriers.arrive("b", Rank(1), CallId(1)), WAITING);
        let (calls, first) = barriers.expire("b", second);
        assert_eq!(calls, [CallId(1)]);
        assert_eq!(first.to_string(), "ranks 0, 2 did not come within 1s");
        // Rank 0 comes late to the first use, and then is on time with rank 1 for the second.
        assert_eq!(barriers.arrive("b", Rank(0), CallId(2)), Err(first.clone()));
        assert_eq!(barriers.arrive("b", Rank(0), CallId(3)), WAITING);
        assert_eq!(barriers.arrive("b", Rank(1), CallId(4)), WAITING);
        let (calls, second) = barriers.expire("b", 2 * second);
        assert_eq!(calls, [CallId(3), CallId(4)]);
        assert_eq!(second.to_string(), "rank 2 did not come within 2s");
        // Rank 2 goes through both.
        assert_eq!(barriers.arrive("b", Rank(2), CallId(5)), Err(first));
        assert_eq!(barriers.arrive("b", Rank(2), CallId(6)), Err(second));
        assert_eq!(barriers.arrive("b", Rank(2), CallId(7)), WAITING);
        assert!(barriers.owed.is_empty());
    }
}
