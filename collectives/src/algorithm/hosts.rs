//! Where the members of a group are: which of them are on one host.
//!
//! Made of what the topology tells, so it is the same on every member.

use crate::ids::{Member, Rank};

/// The members of a group by host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hosts {
    /// In the order of their first members.
    hosts: Vec<Host>,
    /// By position in the group: which host, and the place among its members.
    places: Vec<(usize, usize)>,
}

/// The members on one host, in the order of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) positions: Vec<usize>,
    pub(crate) members: Vec<Member>,
}

impl Hosts {
    /// The hosts of `members`, of which `host_of` tells one from another.
    pub(crate) fn new(members: &[Member], host_of: impl Fn(Member) -> Option<Rank>) -> Self {
        let mut names: Vec<Option<Rank>> = Vec::new();
        let mut hosts: Vec<Host> = Vec::new();
        let mut places = Vec::with_capacity(members.len());
        for (position, &member) in members.iter().enumerate() {
            let name = host_of(member);
            let index = names.iter().position(|other| *other == name).unwrap_or_else(|| {
                names.push(name);
                hosts.push(Host { positions: Vec::new(), members: Vec::new() });
                hosts.len() - 1
            });
            let host = &mut hosts[index];
            places.push((index, host.members.len()));
            host.positions.push(position);
            host.members.push(member);
        }
        Self { hosts, places }
    }

    /// How many members there are.
    pub(crate) fn members(&self) -> usize {
        self.places.len()
    }

    /// How many hosts there are.
    pub(crate) fn count(&self) -> usize {
        self.hosts.len()
    }

    /// Whether a host has more than one member.
    pub(crate) fn are_shared(&self) -> bool {
        self.members() > self.count()
    }

    /// The host of the member at `position`, and its place there.
    pub(crate) fn of(&self, position: usize) -> (&Host, usize) {
        let (host, place) = self.places[position];
        (&self.hosts[host], place)
    }

    /// Which host the member at `position` is on, counted from 0.
    pub(crate) fn index_of(&self, position: usize) -> usize {
        self.places[position].0
    }

    /// All positions, those of one host next to each other.
    pub(crate) fn order(&self) -> impl Iterator<Item = usize> {
        self.hosts.iter().flat_map(|host| host.positions.iter().copied())
    }

    /// The position that carries on this host what belongs to the member at `owner`: on the owner's
    /// host the owner itself, elsewhere each in turn.
    pub(crate) fn carrier(&self, host: usize, owner: usize) -> usize {
        let positions = &self.hosts[host].positions;
        positions[self.places[owner].1 % positions.len()]
    }

    /// The members for which the one at `position` carries, in the order of the group: itself too.
    pub(crate) fn share(&self, position: usize) -> Vec<usize> {
        let host = self.index_of(position);
        (0..self.members()).filter(|owner| self.carrier(host, *owner) == position).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members whose numbers share the tens are on one host.
    fn hosts(numbers: &[u32]) -> Hosts {
        let members: Vec<Member> = numbers.iter().copied().map(Member).collect();
        Hosts::new(&members, |member| Some(Rank(member.0 / 10)))
    }

    #[test]
    fn members_are_found_on_their_hosts_in_the_order_of_the_group() {
        let hosts = hosts(&[20, 10, 21, 22, 11]);
        assert_eq!((hosts.members(), hosts.count(), hosts.are_shared()), (5, 2, true));
        assert_eq!(hosts.order().collect::<Vec<_>>(), [0, 2, 3, 1, 4]);
        let (host, place) = hosts.of(4);
        assert_eq!((host.members.clone(), place), (vec![Member(10), Member(11)], 1));
        assert_eq!([0, 1, 2, 3, 4].map(|position| hosts.index_of(position)), [0, 1, 0, 0, 1]);
    }

    #[test]
    fn every_chunk_has_one_carrier_on_every_host_and_its_owner_at_home() {
        for numbers in [&[1][..], &[1, 2, 3], &[10, 20, 30], &[20, 10, 21, 22, 11, 30]] {
            let hosts = hosts(numbers);
            let shares: Vec<_> = (0..hosts.members()).map(|p| hosts.share(p)).collect();
            for owner in 0..hosts.members() {
                let carriers: Vec<_> =
                    (0..hosts.count()).map(|host| hosts.carrier(host, owner)).collect();
                assert_eq!(carriers[hosts.index_of(owner)], owner);
                for (position, share) in shares.iter().enumerate() {
                    assert_eq!(share.contains(&owner), carriers.contains(&position));
                }
            }
            // Nobody on a host carries much more than its neighbours, and nobody nothing.
            assert!(shares.iter().all(|share| !share.is_empty()), "{shares:?}");
        }
    }
}
