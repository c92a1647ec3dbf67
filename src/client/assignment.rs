//! Where the devices of an executable stand in its program, and whom a collective joins.
//!
//! Resolves replica groups to ordered lists of members as the StableHLO specification says
//! ("Collective ops"): a process id of the specification is a position in the device assignment.

use lockstep_collectives::Member;

use crate::ifrt::{Result, Status};

/// The devices of an executable: replica `r` of partition `p` is number `r * num_partitions + p`.
#[derive(Debug)]
pub(super) struct DeviceAssignment {
    members: Vec<Member>,
    num_partitions: usize,
}

/// What the numbers in a collective's groups mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupMode {
    /// Replica ids; the group is within one partition.
    CrossReplica,
    /// Partition ids; the group is within one replica.
    CrossPartition,
    /// Replica ids; the group has all partitions of these replicas.
    CrossReplicaAndPartition,
    /// Positions in the device assignment.
    FlattenedIds,
}

impl GroupMode {
    /// The mode of `all_gather`, `all_reduce` and `reduce_scatter`.
    ///
    /// # Errors
    /// `InvalidArgument` for global device ids without a channel, which mean nothing.
    pub(super) fn of_reduction(channel_id: i64, use_global_device_ids: bool) -> Result<Self> {
        match (channel_id > 0, use_global_device_ids) {
            (false, false) => Ok(Self::CrossReplica),
            (true, false) => Ok(Self::CrossReplicaAndPartition),
            (true, true) => Ok(Self::FlattenedIds),
            (false, true) => Err(Status::invalid_argument(
                "use_global_device_ids needs a channel_handle above 0",
            )),
        }
    }

    /// The mode of `all_to_all`, `collective_broadcast` and `collective_permute`.
    pub(super) fn of_movement(channel_id: i64) -> Self {
        if channel_id > 0 { Self::CrossPartition } else { Self::CrossReplica }
    }
}

impl DeviceAssignment {
    /// The assignment of `members`, of which each consecutive `num_partitions` are a replica;
    /// `None` when they do not come out even.
    pub(super) fn new(members: Vec<Member>, num_partitions: usize) -> Option<Self> {
        let is_even = members.len().checked_rem(num_partitions)? == 0;
        is_even.then_some(Self { members, num_partitions })
    }

    /// The member at `position`.
    fn member(&self, position: usize) -> Option<Member> {
        self.members.get(position).copied()
    }

    fn num_replicas(&self) -> usize {
        self.members.len() / self.num_partitions
    }

    /// `replica_id` of the device at `position`.
    pub(super) fn replica_id(&self, position: usize) -> usize {
        position / self.num_partitions
    }

    /// `partition_id` of the device at `position`.
    pub(super) fn partition_id(&self, position: usize) -> usize {
        position % self.num_partitions
    }

    /// The ordered group of the device at `position`, or `None` when it is in none.
    ///
    /// No groups at all mean one group of all ids; a negative id pads a group.
    ///
    /// # Errors
    /// `InvalidArgument` when the groups name an id that does not exist, or one twice.
    pub(super) fn group(
        &self,
        position: usize,
        mode: GroupMode,
        groups: &[Vec<i64>],
    ) -> Result<Option<Vec<Member>>> {
        let (my_id, num_ids) = self.ids(position, mode);
        let mut seen = vec![false; num_ids];
        let mut mine = None;
        for group in groups.iter().filter(|group| !group.is_empty()) {
            let mut ids = Vec::with_capacity(group.len());
            for &id in group.iter().filter(|&&id| id >= 0) {
                let index = usize::try_from(id).unwrap_or(usize::MAX);
                match seen.get_mut(index) {
                    Some(seen) if !*seen => *seen = true,
                    Some(_) => return Err(bad_groups(groups, id, "occurs twice")),
                    None => {
                        return Err(bad_groups(groups, id, &format!("is not below {num_ids}")));
                    }
                }
                ids.push(index);
            }
            if ids.contains(&my_id) {
                mine = Some(ids);
            }
        }
        let everyone = groups.iter().all(Vec::is_empty);
        let ids = if everyone { Some((0..num_ids).collect()) } else { mine };
        Ok(ids.map(|ids| self.members_of(position, mode, &ids)))
    }

    /// The sender and receiver of each pair of ids, where these are in the scope of `position`.
    ///
    /// # Errors
    /// `InvalidArgument` when a pair names an id that does not exist.
    pub(super) fn pairs(
        &self,
        position: usize,
        mode: GroupMode,
        pairs: &[(i64, i64)],
    ) -> Result<Vec<(Member, Member)>> {
        let (_, num_ids) = self.ids(position, mode);
        let member = |id: i64| {
            let index = usize::try_from(id).ok().filter(|&index| index < num_ids);
            index.and_then(|index| self.member(self.position_of(position, mode, index))).ok_or_else(
                || {
                    Status::invalid_argument(format!(
                        "source_target_pairs {pairs:?} name {id}, which is not below {num_ids}"
                    ))
                },
            )
        };
        pairs.iter().map(|&(source, target)| Ok((member(source)?, member(target)?))).collect()
    }

    /// The id of the device at `position` in `mode`, and how many ids there are.
    fn ids(&self, position: usize, mode: GroupMode) -> (usize, usize) {
        match mode {
            GroupMode::CrossReplica | GroupMode::CrossReplicaAndPartition => {
                (self.replica_id(position), self.num_replicas())
            }
            GroupMode::CrossPartition => (self.partition_id(position), self.num_partitions),
            GroupMode::FlattenedIds => (position, self.members.len()),
        }
    }

    fn members_of(&self, position: usize, mode: GroupMode, ids: &[usize]) -> Vec<Member> {
        let positions: Vec<usize> = match mode {
            GroupMode::CrossReplicaAndPartition => (0..self.num_partitions)
                .flat_map(|partition| {
                    ids.iter().map(move |id| id * self.num_partitions + partition)
                })
                .collect(),
            _ => ids.iter().map(|&id| self.position_of(position, mode, id)).collect(),
        };
        positions.into_iter().filter_map(|position| self.member(position)).collect()
    }

    /// The position of the device that `id` names for the device at `position`.
    fn position_of(&self, position: usize, mode: GroupMode, id: usize) -> usize {
        match mode {
            GroupMode::CrossReplica | GroupMode::CrossReplicaAndPartition => {
                id * self.num_partitions + self.partition_id(position)
            }
            GroupMode::CrossPartition => self.replica_id(position) * self.num_partitions + id,
            GroupMode::FlattenedIds => id,
        }
    }
}

fn bad_groups(groups: &[Vec<i64>], id: i64, what: &str) -> Status {
    Status::invalid_argument(format!("replica_groups {groups:?}: {id} {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ifrt::Code;

    /// Two replicas of three partitions on the members 10, 11, …, 15.
    fn assignment() -> DeviceAssignment {
        DeviceAssignment::new((10..16).map(Member).collect(), 3).unwrap()
    }

    fn members(numbers: &[u32]) -> Option<Vec<Member>> {
        Some(numbers.iter().copied().map(Member).collect())
    }

    #[test]
    fn ids_mean_what_the_mode_says() {
        let assignment = assignment();
        let group = |position, mode, groups: &[&[i64]]| {
            let groups: Vec<Vec<i64>> = groups.iter().map(|group| group.to_vec()).collect();
            assignment.group(position, mode, &groups).unwrap()
        };
        assert_eq!(group(1, GroupMode::CrossReplica, &[&[1, 0]]), members(&[14, 11]));
        assert_eq!(group(4, GroupMode::CrossReplica, &[&[1], &[0]]), members(&[14]));
        assert_eq!(group(4, GroupMode::CrossPartition, &[&[0], &[2, 1]]), members(&[15, 14]));
        assert_eq!(
            group(4, GroupMode::CrossReplicaAndPartition, &[&[1, 0]]),
            members(&[13, 10, 14, 11, 15, 12])
        );
        assert_eq!(
            group(2, GroupMode::FlattenedIds, &[&[0, 1], &[5, 2], &[3, 4]]),
            members(&[15, 12])
        );
    }

    #[test]
    fn no_groups_are_one_and_padding_is_dropped() {
        let assignment = assignment();
        let all = assignment.group(0, GroupMode::FlattenedIds, &[]).unwrap();
        assert_eq!(all, members(&[10, 11, 12, 13, 14, 15]));
        let padded = [vec![0, 1, 2], vec![3, -1, -1]];
        assert_eq!(assignment.group(3, GroupMode::FlattenedIds, &padded).unwrap(), members(&[13]));
        assert_eq!(assignment.group(5, GroupMode::FlattenedIds, &padded).unwrap(), None);
    }

    #[test]
    fn bad_ids_are_named() {
        let assignment = assignment();
        let error = assignment.group(0, GroupMode::CrossReplica, &[vec![0, 2]]).unwrap_err();
        assert_eq!(error.message(), "replica_groups [[0, 2]]: 2 is not below 2");
        let error = assignment.group(0, GroupMode::CrossReplica, &[vec![0, 0]]).unwrap_err();
        assert_eq!(error.message(), "replica_groups [[0, 0]]: 0 occurs twice");
        let error = assignment.pairs(0, GroupMode::CrossPartition, &[(0, 3)]).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    }

    #[test]
    fn pairs_stay_in_the_scope_of_the_device() {
        let assignment = assignment();
        let pairs = |position, mode| assignment.pairs(position, mode, &[(0, 1)]).unwrap();
        assert_eq!(pairs(5, GroupMode::CrossPartition), [(Member(13), Member(14))]);
        assert_eq!(pairs(5, GroupMode::CrossReplica), [(Member(12), Member(15))]);
    }

    #[test]
    fn assignments_come_out_even() {
        assert!(DeviceAssignment::new(vec![Member(0); 5], 3).is_none());
        assert!(DeviceAssignment::new(vec![Member(0); 5], 0).is_none());
    }
}
