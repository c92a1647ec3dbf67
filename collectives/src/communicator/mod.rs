//! What a program calls: groups of members, and the collectives they run together.
//!
//! Owns the order of collectives in a group, the agreement of its members before a byte of output
//! is written, and the translation of every failure into one error for all of them. How results
//! are computed is `algorithm`'s, how bytes travel is `transport`'s.
//!
//! A collective has two phases. First every member sends its descriptor to every other and
//! compares; any difference is an error on all. Then the data moves. Small operands travel with
//! the descriptor and have no second phase.

mod error;
mod participation;
mod wire;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use error::{CollectiveCause, CollectiveError, MAX_SIDES, Participant, Side};

use crate::algorithm::{
    AllGather, AllReduce, AllToAll, Barrier, Broadcast, Collective, CollectivePermute,
    ReduceScatter, Run,
};
use crate::descriptor::{CollectiveKey, Descriptor, GroupId, OperationId, next_epoch};
use crate::element::{ElementType, Reduction};
use crate::ids::Member;
use crate::transport::{CancelToken, Operation, Step, Transport};
use participation::{Failure, Participation};

/// The longest reason of [`Communicator::decline`] that the others are told.
pub const MAX_REASON_BYTES: usize = 4096;

/// One local member's access to collectives; clones are the same member.
///
/// Collectives of one group run in the order of the calls: calls from several threads at once
/// are in order only if the caller puts them there, the same on every member (I2). Groups do not
/// wait for each other.
#[derive(Clone)]
pub struct Communicator {
    shared: Arc<Shared>,
}

struct Shared {
    member: Member,
    transport: Arc<dyn Transport>,
    timeout: Duration,
    /// The collectives of each group so far.
    sequences: Mutex<HashMap<GroupId, Arc<AtomicU64>>>,
}

/// An ordered list of members that run collectives together, as one of them sees it.
#[derive(Clone, Debug)]
pub struct Group {
    id: GroupId,
    members: Arc<[Member]>,
    /// The place of the communicator's member.
    position: usize,
    sequence: Arc<AtomicU64>,
}

/// Why members make no group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// A member is listed twice.
    #[error("{member} is listed twice in a group")]
    Duplicate {
        /// The member.
        member: Member,
    },
    /// The communicator's own member is not listed.
    #[error("{member} makes a group that it does not belong to")]
    NotAMember {
        /// The member.
        member: Member,
    },
    /// The job has no such member.
    #[error("a group lists {member}, which the job does not have")]
    Unknown {
        /// The member.
        member: Member,
    },
}

/// The circumstances of one collective.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Who runs it.
    pub group: &'a Group,
    /// The program's name for it, compared by all members.
    pub key: Option<CollectiveKey>,
    /// How long the members may take; `None` for the communicator's limit.
    pub timeout: Option<Duration>,
    /// What ends it early, for all members.
    pub cancel: Option<&'a CancelToken>,
}

impl<'a> Call<'a> {
    /// A call without key and token, with the communicator's time limit.
    pub fn on(group: &'a Group) -> Self {
        Self { group, key: None, timeout: None, cancel: None }
    }
}

impl Group {
    /// The members in their order.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The place of the communicator's member.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Begins an epoch of the group: its next collective is the first of it, whatever this member
    /// did not come to in the epoch before.
    ///
    /// Every member begins an epoch at the same points of the common course, such as the launches
    /// of a program. So a member that left one early, and declined what it would have joined
    /// next, is in step again.
    pub fn begin_epoch(&self) {
        let next = |sequence| Some(next_epoch(sequence));
        // It fails only if the closure gives up.
        let _ = self.sequence.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }
}

impl Communicator {
    /// The collectives of `member`, which is local to `transport`; each may take `timeout`.
    pub fn new(member: Member, transport: Arc<dyn Transport>, timeout: Duration) -> Self {
        let sequences = Mutex::new(HashMap::new());
        Self { shared: Arc::new(Shared { member, transport, timeout, sequences }) }
    }

    /// The member whose collectives these are.
    pub fn member(&self) -> Member {
        self.shared.member
    }

    /// The group of `members` in this order, this member among them.
    ///
    /// Making a group tells nobody: only its collectives do. The same list is the same group,
    /// however often it is made.
    ///
    /// # Errors
    /// When a member is listed twice or is not of the job, or this member is missing.
    pub fn group(&self, members: &[Member]) -> Result<Group, GroupError> {
        let Shared { member: me, transport, sequences, .. } = &*self.shared;
        let mut distinct = std::collections::HashSet::new();
        for &member in members {
            if !distinct.insert(member) {
                return Err(GroupError::Duplicate { member });
            }
            if transport.rank_of(member).is_none() {
                return Err(GroupError::Unknown { member });
            }
        }
        let position = members.iter().position(|member| member == me);
        let position = position.ok_or(GroupError::NotAMember { member: *me })?;
        let id = GroupId::of(members);
        let mut sequences = sequences.lock().unwrap_or_else(PoisonError::into_inner);
        let sequence = Arc::clone(sequences.entry(id).or_default());
        Ok(Group { id, members: members.into(), position, sequence })
    }

    /// Folds the inputs of all members, in the order of the group, into the output of each.
    ///
    /// `input` and `output`: equally long, whole elements.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn all_reduce(
        &self,
        call: &Call<'_>,
        element: ElementType,
        reduction: Reduction,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CollectiveError> {
        self.run(call, &mut AllReduce { element, reduction, input, output })
    }

    /// Puts the inputs of all members one after the other, in the order of the group.
    ///
    /// `output`: as long as all inputs together, which are equally long.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn all_gather(
        &self,
        call: &Call<'_>,
        element: ElementType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CollectiveError> {
        self.run(call, &mut AllGather { element, input, output })
    }

    /// Folds the inputs as all-reduce does and leaves the member at place `i` with the `i`th of
    /// equal consecutive pieces.
    ///
    /// `input`: as many times as long as `output` as there are members.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn reduce_scatter(
        &self,
        call: &Call<'_>,
        element: ElementType,
        reduction: Reduction,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CollectiveError> {
        self.run(call, &mut ReduceScatter { element, reduction, input, output })
    }

    /// The `j`th of equal consecutive pieces of the member at place `i` becomes the `i`th of the
    /// member at place `j`.
    ///
    /// `input` and `output`: equally long, as many equal pieces as there are members.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn all_to_all(
        &self,
        call: &Call<'_>,
        element: ElementType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CollectiveError> {
        self.run(call, &mut AllToAll { element, input, output })
    }

    /// The buffer of the member at place `root` becomes everyone's.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn broadcast(
        &self,
        call: &Call<'_>,
        element: ElementType,
        root: usize,
        buffer: &mut [u8],
    ) -> Result<(), CollectiveError> {
        self.run(call, &mut Broadcast { element, root, buffer })
    }

    /// For each pair, the input of the first becomes the output of the second; a member that is
    /// nobody's second gets zeros.
    ///
    /// `pairs`: the same list on every member of the group, each member at most once as either.
    /// `input` and `output`: equally long.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn collective_permute(
        &self,
        call: &Call<'_>,
        element: ElementType,
        pairs: &[(Member, Member)],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CollectiveError> {
        let me = self.member();
        self.run(call, &mut CollectivePermute { element, pairs, me, input, output })
    }

    /// Returns when every member has called it.
    ///
    /// # Errors
    /// The same error on every member; see [`CollectiveError`].
    pub fn barrier(&self, call: &Call<'_>) -> Result<(), CollectiveError> {
        self.run(call, &mut Barrier)
    }

    /// Takes this member's turn in the group's next collective by saying that it does not come.
    ///
    /// Returns at once. The other members fail with [`CollectiveCause::Declined`] in whatever they
    /// call, with this rank and `reason`, of which at most [`MAX_REASON_BYTES`] are told. The
    /// group stays in step: its next collective is everyone's.
    pub fn decline(&self, group: &Group, reason: &str) {
        let Shared { member, transport, .. } = &*self.shared;
        let operation = self.next_operation(group);
        // `Communicator::group` has checked that the member has a rank.
        let Some(rank) = transport.rank_of(*member) else { return };
        if group.members.len() == 1 {
            return;
        }
        let mut end = reason.len().min(MAX_REASON_BYTES);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        let cause = CollectiveCause::Declined { rank, reason: reason[..end].to_owned() };
        transport.abort(&operation, &wire::encode_notice(None, &cause));
        transport.retire(&operation);
    }

    fn next_operation<'a>(&self, group: &'a Group) -> Operation<'a> {
        let sequence = group.sequence.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        Operation {
            id: OperationId { group: group.id, sequence },
            me: self.member(),
            members: &group.members,
        }
    }

    fn run(&self, call: &Call<'_>, collective: &mut dyn Collective) -> Result<(), CollectiveError> {
        let Shared { transport, timeout, .. } = &*self.shared;
        let group = call.group;
        let operation = self.next_operation(group);
        let descriptor = Descriptor {
            signature: collective.signature(),
            key: call.key,
            operation: operation.id,
        };
        let timeout = call.timeout.unwrap_or(*timeout);
        let deadline = transport.now().saturating_add(timeout);
        let participation = Participation {
            descriptor,
            timeout,
            run: Run {
                transport: &**transport,
                position: group.position,
                step: Step { operation, index: 0, deadline, cancel: call.cancel },
            },
        };
        let result = participation.complete(collective);
        if group.members.len() == 1 {
            // Nobody is there to tell, and nothing arrives: the transport has not heard of it.
            return result.map_err(Failure::into_error);
        }
        let result = result.map_err(|failure| match failure {
            Failure::Noticed(error) => {
                let notice = wire::encode_notice(Some(&error.descriptor), &error.cause);
                transport.abort(&operation, &notice);
                error
            }
            Failure::Adopted(error) => error,
        });
        transport.retire(&operation);
        result
    }
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { member, timeout, .. } = &*self.shared;
        f.debug_struct("Communicator")
            .field("member", member)
            .field("timeout", timeout)
            .finish_non_exhaustive()
    }
}
