//! Which algorithm a collective takes: one table, read the same on every member.
//!
//! A choice depends on what all members agree on, the terms of the collective, and on where they
//! are, which the topology tells all of them alike. It is part of the descriptor that they compare
//! before anything moves, so members that were told to choose differently get an error that says
//! so (I2).
//!
//! Between hosts with several members, large operands take two levels: they, or what they are
//! folded to, go to each host once, and not once for each of its members. Such a reduction folds
//! the members of a host first, so its bits depend on who is where; where they must not, it is
//! direct ([`Policy::reproducible`]), as is all else: each element is folded in the order of the
//! group.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Hosts;
use crate::descriptor::{CollectiveKind, Signature};
use crate::element::{ElementType, OperatorName};

/// In which steps the bytes of a collective travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Algorithm {
    /// Every member exchanges with every other; each element is folded in the order of the group.
    Direct,
    /// With partners at distances 1, 2, 4, …: the fewest steps.
    RecursiveDoubling,
    /// To the next member, from the one before: the fewest neighbours.
    Ring,
    /// On each host first, then between hosts: the fewest bytes between them.
    TwoLevel,
    /// In memory that all members share, in the order of the group. It is not chosen: where there
    /// is such memory, it is used.
    Shared,
}

/// What a program says about the choice of algorithms; every member of a group says the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The algorithm of those collectives that it serves, instead of the table's.
    pub algorithm: Option<Algorithm>,
    /// Whether reductions have the same bits wherever the members are: those of a fold in the
    /// order of the group.
    pub reproducible: bool,
}

/// A row of the table; the first that fits counts.
struct Row {
    kind: CollectiveKind,
    /// Whether there have to be several hosts, of which one at least has more than one member.
    shared_hosts: bool,
    /// The fewest members.
    members: usize,
    /// The shortest operand of a member.
    bytes: u64,
    algorithm: Algorithm,
}

/// Whatever has no row is direct. Four ranks on two hosts, two cores in all, 9000-byte frames:
/// two levels reduce 256 KiB 1.3 times as fast, 2 MiB 1.8 times and 16 MiB 1.4 times; shorter
/// operands are as fast either way.
static TABLE: [Row; 3] = [
    Row::two_levels(CollectiveKind::AllReduce, 256 << 10),
    Row::two_levels(CollectiveKind::ReduceScatter, 256 << 10),
    Row::two_levels(CollectiveKind::AllGather, 64 << 10),
];

impl Algorithm {
    /// Those that can be asked for.
    pub const ALL: [Self; 4] = [Self::Direct, Self::RecursiveDoubling, Self::Ring, Self::TwoLevel];

    /// Whether it has a form of collectives of this kind.
    pub fn serves(self, kind: CollectiveKind) -> bool {
        match self {
            Self::Direct => true,
            Self::RecursiveDoubling => {
                matches!(kind, CollectiveKind::AllReduce | CollectiveKind::AllGather)
            }
            Self::Ring | Self::TwoLevel => matches!(
                kind,
                CollectiveKind::AllReduce
                    | CollectiveKind::AllGather
                    | CollectiveKind::ReduceScatter
            ),
            Self::Shared => false,
        }
    }

    /// Whether it can be taken for `signature`: what must be folded in the order of the group
    /// takes one that does.
    fn suits(self, signature: &Signature, reproducible: bool) -> bool {
        self.serves(signature.kind)
            && (self == Self::Direct || !is_in_order(signature, reproducible))
    }

    /// What is taken for `signature` where no memory is shared.
    pub(crate) fn choose(policy: &Policy, signature: &Signature, hosts: &Hosts) -> Self {
        let suits = |algorithm: &Self| algorithm.suits(signature, policy.reproducible);
        let fits = |row: &&Row| row.fits(signature, hosts) && suits(&row.algorithm);
        let tabled = || TABLE.iter().find(fits).map(|row| row.algorithm);
        policy.algorithm.filter(suits).or_else(tabled).unwrap_or(Self::Direct)
    }

    /// The table, a line for each row.
    pub fn table() -> impl Iterator<Item = String> {
        let rest = "everything else: direct".to_owned();
        TABLE.iter().map(Row::to_string).chain([rest])
    }
}

/// Whether the bits of a reduction depend on the order in which it is folded, and that matters.
fn is_in_order(signature: &Signature, reproducible: bool) -> bool {
    match signature.reduction {
        None => false,
        // Nobody says that it is associative.
        Some(OperatorName::Function { .. }) => true,
        Some(OperatorName::Named(_)) => {
            reproducible && !signature.element.is_some_and(ElementType::is_integer)
        }
    }
}

impl Row {
    const fn two_levels(kind: CollectiveKind, bytes: u64) -> Self {
        Self { kind, shared_hosts: true, members: 3, bytes, algorithm: Algorithm::TwoLevel }
    }

    fn fits(&self, signature: &Signature, hosts: &Hosts) -> bool {
        let shared_hosts = hosts.count() > 1 && hosts.are_shared();
        (shared_hosts || !self.shared_hosts)
            && self.kind == signature.kind
            && self.members <= hosts.members()
            && self.bytes <= signature.operand_bytes()
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, shared_hosts, members, bytes, algorithm } = self;
        let on =
            if *shared_hosts { " on several hosts, one of them with more than one" } else { "" };
        write!(f, "{kind} of {bytes} bytes or more, {members} members or more{on}: {algorithm}")
    }
}

/// Why a text names no algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an algorithm: write direct, recursive_doubling, ring or two_level")]
pub struct InvalidAlgorithm(String);

impl FromStr for Algorithm {
    type Err = InvalidAlgorithm;

    fn from_str(text: &str) -> Result<Self, InvalidAlgorithm> {
        let found = Self::ALL.into_iter().find(|algorithm| algorithm.to_string() == text);
        found.ok_or_else(|| InvalidAlgorithm(text.chars().take(80).collect()))
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Direct => "direct",
            Self::RecursiveDoubling => "recursive_doubling",
            Self::Ring => "ring",
            Self::TwoLevel => "two_level",
            Self::Shared => "shared",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Reduction;
    use crate::ids::{Member, Rank};

    fn hosts(hosts: &[u32]) -> Hosts {
        let members: Vec<Member> = (0..).map(Member).take(hosts.len()).collect();
        Hosts::new(&members, |member| hosts.get(member.0 as usize).map(|host| Rank(*host)))
    }

    fn signature(kind: CollectiveKind, bytes: usize) -> Signature {
        let reduction = Some(OperatorName::Named(Reduction::Sum));
        Signature { reduction, ..Signature::new(kind, ElementType::F32, bytes) }
    }

    /// Each row counts from its threshold on, where the members are as it says, and the table is
    /// what it prints.
    #[test]
    fn every_row_is_taken_from_its_threshold_on() {
        for row in &TABLE {
            let on_host = if row.shared_hosts { 2 } else { 1 };
            let places: Vec<u32> = (0..).map(|member| member / on_host).take(row.members).collect();
            let chosen = |bytes: u64, members: usize| {
                let bytes = usize::try_from(bytes).unwrap();
                let hosts = hosts(&places[..members]);
                Algorithm::choose(&Policy::default(), &signature(row.kind, bytes), &hosts)
            };
            assert_eq!(chosen(row.bytes, row.members), row.algorithm, "{row}");
            assert_ne!(chosen(row.bytes - 4, row.members), row.algorithm, "{row}");
            assert!(row.algorithm.serves(row.kind), "{row}");
            let line = row.to_string();
            assert!(line.contains(&format!("{} of {} bytes or more", row.kind, row.bytes)));
            assert!(line.ends_with(&row.algorithm.to_string()), "{line}");
        }
        assert_eq!(Algorithm::table().count(), TABLE.len() + 1);
    }

    #[test]
    fn what_is_asked_for_is_taken_where_it_serves() {
        let hosts = hosts(&[0, 0, 1]);
        for kind in CollectiveKind::ALL {
            for algorithm in Algorithm::ALL {
                let policy = Policy { algorithm: Some(algorithm), reproducible: false };
                let chosen = Algorithm::choose(&policy, &signature(kind, 4), &hosts);
                let expected = if algorithm.serves(kind) { algorithm } else { Algorithm::Direct };
                assert_eq!(chosen, expected, "{kind} by {algorithm}");
            }
        }
    }

    #[test]
    fn what_has_to_be_folded_in_order_is_direct() {
        let hosts = hosts(&[0, 0, 1]);
        let chosen = |signature: Signature, reproducible| {
            let policy = Policy { algorithm: Some(Algorithm::Ring), reproducible };
            Algorithm::choose(&policy, &signature, &hosts)
        };
        let sum = signature(CollectiveKind::AllReduce, 4000);
        assert_eq!(chosen(sum, true), Algorithm::Direct);
        // Integers have but one sum.
        assert_eq!(
            chosen(Signature { element: Some(ElementType::I8), ..sum }, true),
            Algorithm::Ring
        );
        let gather = Signature { reduction: None, ..signature(CollectiveKind::AllGather, 4000) };
        assert_eq!(chosen(gather, true), Algorithm::Ring);
        let function = Some(OperatorName::Function { fingerprint: 1 });
        assert_eq!(chosen(Signature { reduction: function, ..sum }, false), Algorithm::Direct);
    }

    #[test]
    fn names_come_back() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
        let error = "shared".parse::<Algorithm>().unwrap_err().to_string();
        assert!(error.contains("write direct, recursive_doubling, ring or two_level"), "{error}");
    }
}
