//! What a member says about the collective it enters, for all members to compare.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::algorithm::Algorithm;
use crate::element::{ElementType, OperatorName};
use crate::ids::Member;

/// The operations that a group can run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "StableHLO's and MPI's names")]
pub enum CollectiveKind {
    AllGather,
    AllReduce,
    AllToAll,
    AllToAllV,
    Barrier,
    Broadcast,
    CollectivePermute,
    Gather,
    Reduce,
    ReduceScatter,
    Scatter,
    Send,
    SendRecv,
}

impl CollectiveKind {
    /// Every kind.
    pub const ALL: [Self; 13] = [
        Self::AllGather,
        Self::AllReduce,
        Self::AllToAll,
        Self::AllToAllV,
        Self::Barrier,
        Self::Broadcast,
        Self::CollectivePermute,
        Self::Gather,
        Self::Reduce,
        Self::ReduceScatter,
        Self::Scatter,
        Self::Send,
        Self::SendRecv,
    ];
}

/// Which collective of a program a member enters.
///
/// Members of one group run the same programs in the same order, so their keys agree; a member
/// whose key differs has left the common course, and every member is told so (I2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CollectiveKey {
    /// The launch, counted the same on every member.
    pub launch: u64,
    /// The fingerprint of the program.
    pub program: u64,
    /// The position of the operation among the program's collectives.
    pub ordinal: u32,
    /// How many times this operation ran before in this launch (loops).
    pub iteration: u64,
}

/// An ordered list of members as a fixed-size name: the first 128 bits of its SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GroupId(pub(crate) [u8; 16]);

/// One collective of one group: its members count their collectives alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OperationId {
    /// The ordered list of members.
    pub group: GroupId,
    /// Its place among the collectives of the group: the epoch in the upper 40 bits, from 0, and
    /// below its number in the epoch, from 1. It grows from one collective to the next, and a
    /// carry is the same on every member.
    pub sequence: u64,
}

/// The bits of a sequence number below the epoch.
pub(crate) const NUMBER_BITS: u32 = 24;

/// The sequence number before the first of the epoch after that of `sequence`.
pub(crate) fn next_epoch(sequence: u64) -> u64 {
    (sequence >> NUMBER_BITS).wrapping_add(1) << NUMBER_BITS
}

/// What is called: the operation and its terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Signature {
    /// The operation.
    pub kind: CollectiveKind,
    /// The reduction, where there is one.
    pub reduction: Option<OperatorName>,
    /// The type of the elements; `None` for a barrier.
    pub element: Option<ElementType>,
    /// Elements of one member's operand, for a scatter those of its result; 0 where every member
    /// has another number.
    pub count: u64,
    /// The root's position in the group, where there is one; of a send, the sender's.
    pub root: Option<u32>,
    /// A digest of the source-target pairs, where there are any.
    pub pairs: Option<u64>,
}

/// Everything that the members of a collective have to agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Descriptor {
    /// What is called.
    pub signature: Signature,
    /// The program's name for the operation, if a program issued it.
    pub key: Option<CollectiveKey>,
    /// The group, and the operation's place among those of the group.
    pub operation: OperationId,
    /// How it is carried out.
    pub algorithm: Algorithm,
}

impl Signature {
    /// `kind` of operands of `length_bytes`.
    pub(crate) fn new(kind: CollectiveKind, element: ElementType, length_bytes: usize) -> Self {
        let count = element.elements_in(length_bytes);
        Self {
            kind,
            reduction: None,
            element: Some(element),
            count: count as u64,
            root: None,
            pairs: None,
        }
    }

    /// Bytes of one member's operand, as [`Signature::count`] has it.
    pub(crate) fn operand_bytes(&self) -> u64 {
        let size = self.element.map_or(0, ElementType::size_bytes);
        self.count.saturating_mul(size as u64)
    }
}

impl GroupId {
    /// The name, in the group of this name, of those on its host number `host`. It is not that of a
    /// group of their own: their collectives are counted with those of the whole.
    pub(crate) fn of_host(&self, host: usize) -> Self {
        let hash = Sha256::new().chain_update(self.0).chain_update((host as u64).to_le_bytes());
        Self::from_hash(hash)
    }

    /// The name of `members` in this order.
    pub fn of(members: &[Member]) -> Self {
        let mut hash = Sha256::new();
        for member in members {
            hash.update(member.0.to_le_bytes());
        }
        Self::from_hash(hash)
    }

    fn from_hash(hash: Sha256) -> Self {
        let mut id = [0; 16];
        id.copy_from_slice(&hash.finalize()[..16]);
        Self(id)
    }

    /// The name under which this group runs the second parts of collectives that have two. Its
    /// first 64 bits, by which people know a group, are the same.
    pub(crate) fn second_part(self) -> Self {
        let mut id = self.0;
        id[15] ^= 1;
        Self(id)
    }
}

/// A digest of `pairs` in this order.
pub(crate) fn pairs_digest(pairs: &[(Member, Member)]) -> u64 {
    let mut hash = Sha256::new();
    for (source, target) in pairs {
        hash.update(source.0.to_le_bytes());
        hash.update(target.0.to_le_bytes());
    }
    let mut digest = [0; 8];
    digest.copy_from_slice(&hash.finalize()[..8]);
    u64::from_le_bytes(digest)
}

impl fmt::Display for CollectiveKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AllGather => "all_gather",
            Self::AllReduce => "all_reduce",
            Self::AllToAll => "all_to_all",
            Self::AllToAllV => "all_to_all_v",
            Self::Barrier => "barrier",
            Self::Broadcast => "broadcast",
            Self::CollectivePermute => "collective_permute",
            Self::Gather => "gather",
            Self::Reduce => "reduce",
            Self::ReduceScatter => "reduce_scatter",
            Self::Scatter => "scatter",
            Self::Send => "send",
            Self::SendRecv => "send_recv",
        })
    }
}

impl fmt::Display for CollectiveKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { launch, program, ordinal, iteration } = self;
        write!(
            f,
            "operation {ordinal} of program {program:016x}, launch {launch}, iteration {iteration}"
        )
    }
}

/// `#5`, the fifth of a group without epochs, or `#3.1`, the first of the third epoch.
impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let epoch = self.sequence >> NUMBER_BITS;
        let number = self.sequence & ((1 << NUMBER_BITS) - 1);
        match epoch {
            0 => write!(f, "#{number}"),
            epoch => write!(f, "#{epoch}.{number}"),
        }
    }
}

/// `all_reduce(sum, f32, 100 elements)`
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.kind)?;
        if let Some(reduction) = self.reduction {
            write!(f, "{reduction}, ")?;
        }
        match self.element {
            // The counts differ between members.
            Some(element) if self.kind == CollectiveKind::AllToAllV => write!(f, "{element}")?,
            Some(element) => write!(f, "{element}, {} elements", self.count)?,
            None => {}
        }
        if let Some(root) = self.root {
            write!(f, ", root {root}")?;
        }
        if let Some(pairs) = self.pairs {
            write!(f, ", pairs {pairs:016x}")?;
        }
        f.write_str(")")
    }
}

/// The signature; after it the algorithm if it is neither the direct one nor shared memory, and the
/// program's key if there is one.
impl fmt::Display for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.signature.fmt(f)?;
        if !matches!(self.algorithm, Algorithm::Direct | Algorithm::Shared) {
            write!(f, " by {}", self.algorithm)?;
        }
        self.key.map_or(Ok(()), |key| write!(f, " as {key}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Reduction;

    #[test]
    fn the_order_of_members_is_part_of_a_groups_name() {
        let [a, b, c] = [Member(0), Member(1), Member(258)];
        assert_eq!(GroupId::of(&[a, b, c]), GroupId::of(&[a, b, c]));
        assert_ne!(GroupId::of(&[a, b, c]), GroupId::of(&[b, a, c]));
        assert_ne!(GroupId::of(&[a, b]), GroupId::of(&[a, b, c]));
    }

    #[test]
    fn every_epoch_counts_from_its_beginning() {
        let read =
            |sequence| OperationId { group: GroupId::of(&[Member(0)]), sequence }.to_string();
        assert_eq!(read(5), "#5");
        assert_eq!(read(next_epoch(5) + 1), "#1.1");
        assert_eq!(read(next_epoch(next_epoch(5) + 3) + 2), "#2.2");
        assert!(next_epoch(5) > 5 && next_epoch(next_epoch(5)) > next_epoch(5) + 7);
    }

    #[test]
    fn a_descriptor_reads_as_the_call() {
        let mut descriptor = Descriptor {
            signature: Signature {
                reduction: Some(OperatorName::Named(Reduction::Sum)),
                ..Signature::new(CollectiveKind::AllReduce, ElementType::F32, 400)
            },
            key: None,
            operation: OperationId { group: GroupId::of(&[Member(0)]), sequence: 3 },
            algorithm: Algorithm::Direct,
        };
        assert_eq!(descriptor.to_string(), "all_reduce(sum, f32, 100 elements)");
        descriptor.algorithm = Algorithm::Ring;
        assert_eq!(descriptor.to_string(), "all_reduce(sum, f32, 100 elements) by ring");
        descriptor.algorithm = Algorithm::Shared;
        descriptor.key =
            Some(CollectiveKey { launch: 7, program: 0xbeef, ordinal: 2, iteration: 1 });
        assert_eq!(
            descriptor.to_string(),
            "all_reduce(sum, f32, 100 elements) as operation 2 of program 000000000000beef, \
             launch 7, iteration 1"
        );
    }
}
