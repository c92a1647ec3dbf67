//! Who is in the job: the same value on every process.
//!
//! Owns the numbering of members: they are dense in rank order, so rank 0's devices come first.
//! A topology is made by the coordinator when the last rank has joined and never changes.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

use crate::{Attempt, JobId, Member, Rank};

/// All processes of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    job: JobId,
    attempt: Attempt,
    ranks: Vec<RankInfo>,
    /// The first member of each rank, and behind them the number of members.
    first_members: Vec<u32>,
    /// The lowest rank on the host of each rank.
    hosts: Vec<Rank>,
}

/// One process of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankInfo {
    /// Its number.
    pub rank: Rank,
    /// The host it runs on.
    pub host: HostId,
    /// Its process id on that host.
    pub process_id: u32,
    /// The devices it shows.
    pub devices: u32,
    /// Where its transport listens.
    pub address: SocketAddr,
    /// The certificate its transport shows.
    pub fingerprint: Fingerprint,
}

/// What tells hosts apart: the name may repeat, the boot id does not, and two network namespaces on
/// one machine are two hosts to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostId {
    /// The host's name, to show.
    pub name: String,
    /// The kernel's boot id, to compare.
    pub boot_id: String,
    /// The network namespace, as the kernel numbers it; 0 where it does not say.
    pub network: u64,
}

/// The SHA-256 of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fingerprint(pub [u8; 32]);

/// Why ranks make no topology.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The ranks are not 0, 1, 2, … in order.
    #[error("entry {index} of the topology is {found}")]
    NotDense {
        /// The place.
        index: usize,
        /// The rank there.
        found: Rank,
    },
    /// There are more devices than numbers for them.
    #[error("the job has more than {} devices", u32::MAX)]
    TooManyDevices,
}

impl Topology {
    /// The topology of `ranks`, which are 0, 1, 2, … in order.
    ///
    /// # Errors
    /// When they are not, or have more than `u32::MAX` devices together.
    pub fn new(job: JobId, attempt: Attempt, ranks: Vec<RankInfo>) -> Result<Self, TopologyError> {
        let mut members = 0_u32;
        let mut first_members = vec![0];
        for (index, info) in ranks.iter().enumerate() {
            if usize::try_from(info.rank.0) != Ok(index) {
                return Err(TopologyError::NotDense { index, found: info.rank });
            }
            members = members.checked_add(info.devices).ok_or(TopologyError::TooManyDevices)?;
            first_members.push(members);
        }
        let mut lowest: HashMap<&HostId, Rank> = HashMap::new();
        let hosts =
            ranks.iter().map(|info| *lowest.entry(&info.host).or_insert(info.rank)).collect();
        Ok(Self { job, attempt, ranks, first_members, hosts })
    }

    /// The topology of a process that is alone and has no address.
    pub(crate) fn solo(devices: u32) -> Self {
        #[expect(clippy::expect_used, reason = "the text is a valid id, as a test shows")]
        let job = JobId::new("solo").expect("a valid job id");
        let rank = Rank(0);
        let info = RankInfo {
            rank,
            host: HostId::of_this_host(),
            process_id: std::process::id(),
            devices,
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            fingerprint: Fingerprint([0; 32]),
        };
        let first_members = vec![0, devices];
        Self { job, attempt: Attempt(0), ranks: vec![info], first_members, hosts: vec![rank] }
    }

    /// The job.
    pub fn job(&self) -> &JobId {
        &self.job
    }

    /// The job's restart count.
    pub fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// All processes, in rank order.
    pub fn ranks(&self) -> &[RankInfo] {
        &self.ranks
    }

    /// One process; `None` when the job has no such rank.
    pub fn rank(&self, rank: Rank) -> Option<&RankInfo> {
        self.ranks.get(usize::try_from(rank.0).ok()?)
    }

    /// How many processes the job has.
    pub fn world_size(&self) -> u32 {
        u32::try_from(self.ranks.len()).unwrap_or(u32::MAX)
    }

    /// How many members the job has.
    pub fn member_count(&self) -> u32 {
        self.first_members.last().copied().unwrap_or(0)
    }

    /// The processes of the host that `rank` runs on, in order; empty when the job has no such rank.
    pub fn neighbours_of(&self, rank: Rank) -> impl Iterator<Item = Rank> {
        let host = self.rank(rank).map(|info| &info.host);
        self.ranks.iter().filter(move |info| Some(&info.host) == host).map(|info| info.rank)
    }

    /// The lowest rank on the host that `rank` runs on; `None` when the job has no such rank.
    pub fn host_of(&self, rank: Rank) -> Option<Rank> {
        self.hosts.get(usize::try_from(rank.0).ok()?).copied()
    }

    /// The process that holds `member`; `None` when the job has no such member.
    pub fn rank_of(&self, member: Member) -> Option<Rank> {
        // Ranks without devices begin where the next rank begins, so the last such start is it.
        let starts_at_or_before = self.first_members.partition_point(|first| *first <= member.0);
        self.ranks.get(starts_at_or_before.checked_sub(1)?).map(|info| info.rank)
    }

    /// The members of `rank`, in order; empty when the job has no such rank.
    pub fn members_of(&self, rank: Rank) -> Range<u32> {
        let bounds = usize::try_from(rank.0).ok().and_then(|index| {
            Some(*self.first_members.get(index)?..*self.first_members.get(index.checked_add(1)?)?)
        });
        bounds.unwrap_or(0..0)
    }

    /// The process that shows the certificate `fingerprint`.
    pub fn rank_of_fingerprint(&self, fingerprint: Fingerprint) -> Option<Rank> {
        self.ranks.iter().find(|info| info.fingerprint == fingerprint).map(|info| info.rank)
    }
}

impl HostId {
    /// The host this process runs on.
    pub fn of_this_host() -> Self {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let boot_id = boot_id.map_or_else(|_| name.clone(), |text| text.trim().to_owned());
        let network = std::fs::metadata("/proc/self/ns/net").map_or(0, |namespace| namespace.ino());
        Self { name, boot_id, network }
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(rank: u32, devices: u32) -> RankInfo {
        RankInfo {
            rank: Rank(rank),
            host: HostId {
                name: format!("host{}", rank / 2),
                boot_id: format!("boot{}", rank / 2),
                network: 4,
            },
            process_id: 100 + rank,
            devices,
            address: SocketAddr::from(([10, 0, 0, 1], 4000)),
            fingerprint: Fingerprint([u8::try_from(rank).unwrap(); 32]),
        }
    }

    fn topology(devices: &[u32]) -> Result<Topology, TopologyError> {
        let ranks = (0..).zip(devices).map(|(rank, devices)| info(rank, *devices)).collect();
        Topology::new(JobId::new("job").unwrap(), Attempt(0), ranks)
    }

    #[test]
    fn members_are_dense_in_rank_order() {
        let topology = topology(&[2, 0, 3, 1]).unwrap();
        assert_eq!((topology.world_size(), topology.member_count()), (4, 6));
        let ranks: Vec<_> = (0..7).map(|member| topology.rank_of(Member(member))).collect();
        let expected = [Some(0), Some(0), Some(2), Some(2), Some(2), Some(3), None];
        assert_eq!(ranks, expected.map(|rank| rank.map(Rank)));
        let members: Vec<_> = (0..5).map(|rank| topology.members_of(Rank(rank))).collect();
        assert_eq!(members, [0..2, 2..2, 2..5, 5..6, 0..0]);
        assert_eq!(topology.rank(Rank(2)).unwrap().process_id, 102);
        assert!(topology.rank(Rank(4)).is_none());
        assert_eq!(topology.rank_of_fingerprint(Fingerprint([3; 32])), Some(Rank(3)));
        assert_eq!(topology.rank_of_fingerprint(Fingerprint([9; 32])), None);
        let neighbours: Vec<_> = topology.neighbours_of(Rank(3)).collect();
        assert_eq!(neighbours, [Rank(2), Rank(3)]);
        assert_eq!(topology.neighbours_of(Rank(4)).count(), 0);
        let hosts = [0, 1, 2, 3, 4].map(|rank| topology.host_of(Rank(rank)));
        assert_eq!(hosts, [Some(0), Some(0), Some(2), Some(2), None].map(|host| host.map(Rank)));
    }

    #[test]
    fn refuses_gaps_and_overflow() {
        let gap =
            Topology::new(JobId::new("job").unwrap(), Attempt(0), vec![info(0, 1), info(2, 1)]);
        let gap = gap.unwrap_err();
        assert!(matches!(gap, TopologyError::NotDense { index: 1, found: Rank(2) }), "{gap}");
        assert!(matches!(topology(&[u32::MAX, 1]), Err(TopologyError::TooManyDevices)));
        assert_eq!(topology(&[u32::MAX, 0]).unwrap().member_count(), u32::MAX);
    }

    #[test]
    fn a_world_of_one_is_a_topology_like_any_other() {
        let solo = Topology::solo(3);
        let (job, ranks) = (solo.job().clone(), solo.ranks().to_vec());
        assert_eq!(Topology::new(job, Attempt(0), ranks).unwrap(), solo);
        assert_eq!(solo.members_of(Rank(0)), 0..3);
    }

    #[test]
    fn this_host_has_a_name_and_a_boot_id() {
        let host = HostId::of_this_host();
        assert!(!host.name.is_empty() && !host.boot_id.is_empty());
        assert_eq!(host, HostId::of_this_host());
    }
}
