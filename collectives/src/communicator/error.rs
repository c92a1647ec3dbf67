//! Why a collective failed: the same words on every member.

use std::fmt::{self, Display};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::descriptor::Descriptor;
use crate::ids::{Member, Rank};
use crate::rendezvous::RankFailure;

/// A collective that did not complete.
///
/// It is made by the member that notices first and adopted by the others, so that they report
/// the same. What the output holds is unspecified, except after a [`CollectiveCause::Mismatch`],
/// a [`CollectiveCause::Counts`], a
/// [`CollectiveCause::Declined`], a [`CollectiveCause::Usage`] or a member missing from the start:
/// then it is untouched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct CollectiveError {
    /// What was called; of a mismatch, what most members called; where a member declined, what
    /// this one called.
    pub descriptor: Box<Descriptor>,
    /// The members in their order.
    pub group: Vec<Member>,
    /// Why it failed.
    pub cause: CollectiveCause,
}

/// The causes of a [`CollectiveError`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CollectiveCause {
    /// A member's cancel token was triggered.
    Cancelled {
        /// The member.
        by: Participant,
    },
    /// Two members of an all_to_all_v do not mean the same number of elements.
    Counts {
        /// Who sends.
        sender: Participant,
        /// Who receives.
        receiver: Participant,
        /// Elements that the one sends.
        sent: u64,
        /// Elements that the other expects.
        expected: u64,
    },
    /// A member said that it does not come ([`Communicator::decline`](super::Communicator::decline)).
    Declined {
        /// The process that has it.
        rank: Rank,
        /// What keeps it, in its words.
        reason: String,
    },
    /// Members did not arrive, or stopped half way, before the deadline.
    Late {
        /// Who.
        missing: Vec<Participant>,
        /// The time they had, counted by the member that noticed.
        timeout: Duration,
    },
    /// The members called different things.
    Mismatch {
        /// Who called what: most members first, and in the order of the group where as many
        /// called one as the other. At least two, at most [`MAX_SIDES`].
        sides: Vec<Side>,
    },
    /// A process of the group failed.
    RankFailed(RankFailure),
    /// The exchange itself failed.
    Transport {
        /// Who noticed.
        by: Participant,
        /// With whom.
        peer: Participant,
        /// What happened.
        detail: String,
    },
    /// A member's operands do not fit the operation.
    Usage {
        /// The member.
        by: Participant,
        /// What does not fit.
        detail: String,
    },
}

/// A member and the process that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participant {
    /// The process.
    pub rank: Rank,
    /// Its device.
    pub member: Member,
}

/// Members that called the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// Who, in the order of the group.
    pub members: Vec<Participant>,
    /// What they called.
    pub descriptor: Descriptor,
}

/// The most sides that a mismatch tells apart; members beyond are left out of its text.
pub const MAX_SIDES: usize = 8;

/// Members that are listed by name before the rest is counted.
const LISTED: usize = 8;

impl CollectiveCause {
    /// The mismatch among `calls`, which are in the order of the group; `None` if all are equal.
    pub(crate) fn mismatch(calls: &[(Participant, Descriptor)]) -> Option<Self> {
        let mut sides: Vec<Side> = Vec::new();
        for (member, descriptor) in calls {
            match sides.iter_mut().find(|side| side.descriptor == *descriptor) {
                Some(side) => side.members.push(*member),
                None => sides.push(Side { members: vec![*member], descriptor: *descriptor }),
            }
        }
        // The sort is stable: sides of equal size stay in the order of the group.
        sides.sort_by_key(|side| std::cmp::Reverse(side.members.len()));
        sides.truncate(MAX_SIDES);
        (sides.len() > 1).then_some(Self::Mismatch { sides })
    }
}

impl Display for CollectiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { descriptor, group, cause } = self;
        let operation = descriptor.operation;
        write!(f, "{descriptor}, {operation} on devices {}: {cause}", Ranges(group))
    }
}

impl Display for CollectiveCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled { by } => write!(f, "cancelled by {by}"),
            Self::Counts { sender, receiver, sent, expected } => {
                write!(f, "{sender} sends {sent} elements to {receiver}, which expects {expected}")
            }
            Self::Declined { rank, reason } => write!(f, "{rank} does not take part: {reason}"),
            Self::Late { missing, timeout } => write!(
                f,
                "{} did not take part within {timeout:?}; see what it is doing, or raise the \
                 limit (LOCKSTEP_COLLECTIVE_TIMEOUT)",
                List(missing)
            ),
            Self::Mismatch { sides } => mismatch(f, sides),
            Self::RankFailed(failure) => failure.fmt(f),
            Self::Transport { by, peer, detail } => {
                write!(f, "the exchange of {by} with {peer} failed: {detail}")
            }
            Self::Usage { by, detail } => write!(f, "{by} cannot take part: {detail}"),
        }
    }
}

/// Names the culprits where there is a majority, and both sides in any case.
fn mismatch(f: &mut fmt::Formatter<'_>, sides: &[Side]) -> fmt::Result {
    let Some((most, others)) = sides.split_first() else { return Ok(()) };
    let majority = others.iter().all(|side| side.members.len() < most.members.len());
    if !majority {
        f.write_str("the members disagree: ")?;
    }
    for (index, Side { members, descriptor }) in others.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        write!(f, "{separator}{} called {descriptor}", List(members))?;
    }
    write!(f, " where {} called {}", List(&most.members), most.descriptor)
}

impl Display for Participant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.rank, self.member)
    }
}

/// `rank 0 (device 0), rank 1 (device 1) and 3 more`
struct List<'a>(&'a [Participant]);

impl Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, participant) in self.0.iter().take(LISTED).enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{participant}")?;
        }
        match self.0.len().saturating_sub(LISTED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// `0-3, 7, 5`: an ordered list of members, runs of consecutive ones joined.
struct Ranges<'a>(&'a [Member]);

impl Display for Ranges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a.0.checked_add(1) == Some(b.0));
        for (index, run) in runs.enumerate() {
            if index == LISTED {
                return f.write_str(", ...");
            }
            let separator = if index == 0 { "" } else { ", " };
            match run {
                [first, .., last] => write!(f, "{separator}{}-{}", first.0, last.0)?,
                [one] => write!(f, "{separator}{}", one.0)?,
                [] => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::{CollectiveKind, GroupId, OperationId, Signature};
    use crate::element::ElementType;

    fn participant(number: u32) -> Participant {
        Participant { rank: Rank(number), member: Member(number) }
    }

    fn gather(count: usize) -> Descriptor {
        Descriptor {
            signature: Signature::new(CollectiveKind::AllGather, ElementType::U8, count),
            key: None,
            operation: OperationId { group: GroupId::of(&[Member(0)]), sequence: 5 },
            algorithm: crate::Algorithm::Direct,
        }
    }

    #[test]
    fn a_majority_names_the_culprit() {
        let calls =
            [3, 7, 3].iter().zip(0..).map(|(&count, number)| (participant(number), gather(count)));
        let cause = CollectiveCause::mismatch(&calls.collect::<Vec<_>>()).unwrap();
        assert_eq!(
            cause.to_string(),
            "rank 1 (device 1) called all_gather(u8, 7 elements) where \
             rank 0 (device 0), rank 2 (device 2) called all_gather(u8, 3 elements)"
        );
    }

    #[test]
    fn a_tie_names_both_sides() {
        let calls = [(participant(0), gather(3)), (participant(1), gather(7))];
        let cause = CollectiveCause::mismatch(&calls).unwrap();
        assert_eq!(
            cause.to_string(),
            "the members disagree: rank 1 (device 1) called all_gather(u8, 7 elements) where \
             rank 0 (device 0) called all_gather(u8, 3 elements)"
        );
        assert_eq!(CollectiveCause::mismatch(&calls[..1]), None);
    }

    #[test]
    fn an_error_names_operation_sequence_group_and_culprit() {
        let error = CollectiveError {
            descriptor: Box::new(gather(3)),
            group: [0, 1, 2, 3, 9, 7, 8].map(Member).to_vec(),
            cause: CollectiveCause::Late {
                missing: (0..10).map(participant).collect(),
                timeout: Duration::from_secs(5),
            },
        };
        let text = error.to_string();
        let head = "all_gather(u8, 3 elements), #5 on devices 0-3, 9, 7-8: rank 0 (device 0), ";
        assert!(text.starts_with(head), "{text}");
        assert!(
            text.contains("rank 7 (device 7) and 2 more did not take part within 5s"),
            "{text}"
        );
    }
}
