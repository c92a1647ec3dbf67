//! Moving bytes between members: the trait, and what every implementation shares.
//!
//! A transport knows tags, bytes, deadlines and who has failed. It does not know what the bytes
//! mean: descriptors, reductions and the errors of collectives belong to the layers above.
//!
//! Operands are borrowed in both directions, so a transport that shares memory with a peer may
//! read and write them where they lie, and one that does not needs no copy of its own either.

mod cancel;
mod clock;
mod drive;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod local;
mod news;
mod post;
pub mod quic;
pub mod shm;
pub mod sim;
mod wire;

use std::task::{Context, Poll};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use cancel::CancelToken;
pub use local::LocalTransport;

use crate::descriptor::{GroupId, OperationId};
use crate::ids::{Member, Rank};
use crate::rendezvous::RankFailure;
use shm::SharedGroup;

/// How long an exchange with a peer that went away waits for news of the true cause: the
/// launcher's report of its exit, or the notice of the failure that made it leave.
pub(crate) const CAUSE_GRACE: Duration = Duration::from_millis(500);

/// How far [`Transport::last_tick`] may lie behind.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// A collective as a transport sees it: whose side this is, and whom a failure concerns.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// Which collective.
    pub id: OperationId,
    /// The local member that takes part.
    pub me: Member,
    /// The whole group in its order.
    pub members: &'a [Member],
}

/// The address of one message: a member sends at most one message to another in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tag {
    /// Which collective.
    pub operation: OperationId,
    /// Which exchange of it, from 0.
    pub step: u32,
    /// The sender.
    pub from: Member,
    /// The receiver.
    pub to: Member,
}

/// Bytes for a peer.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The receiver.
    pub to: Member,
    /// What it gets.
    pub bytes: &'a [u8],
}

/// Room for a peer's bytes: exactly as many as it sends.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// The sender.
    pub from: Member,
    /// Where its bytes go.
    pub bytes: &'a mut [u8],
}

/// One exchange of a collective.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The collective.
    pub operation: Operation<'a>,
    /// Which exchange of it, from 0.
    pub index: u32,
    /// When it is too late, on the transport's clock ([`Transport::now`]).
    pub deadline: Duration,
    /// What ends it early.
    pub cancel: Option<&'a CancelToken>,
}

/// Why an exchange did not complete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// A member of the group gave the operation up and said why.
    #[error("{from} gave the operation up")]
    Aborted {
        /// The rank that said so.
        from: Rank,
        /// Its words, for the layer above.
        notice: Vec<u8>,
    },
    /// The step's own cancel token was triggered.
    #[error("cancelled")]
    Cancelled,
    /// The deadline passed; these members' bytes are missing, or they did not take ours.
    #[error("the deadline passed before {pending:?} took part")]
    Deadline {
        /// In the order of the exchange.
        pending: Vec<Member>,
    },
    /// A peer broke the protocol or cannot be reached.
    #[error("exchange with {peer}: {detail}")]
    Peer {
        /// Whom the exchange was with.
        peer: Member,
        /// What happened.
        detail: String,
    },
    /// A rank of the group has failed.
    #[error("{0}")]
    RankFailed(RankFailure),
}

/// Moves the bytes of collectives between members.
///
/// All methods may be called from many threads at once; one member takes part in one exchange at
/// a time per operation.
pub trait Transport: Send + Sync {
    /// Time since an arbitrary start, the clock of [`Step::deadline`].
    fn now(&self) -> Duration;

    /// The time of [`Transport::now`] at most 10 ms ago: for what need not be exact and must not
    /// cost much.
    fn last_tick(&self) -> Duration {
        self.now()
    }

    /// The rank whose process has `member`; `None` if the job has no such member.
    fn rank_of(&self, member: Member) -> Option<Rank>;

    /// The host of `member`, by the lowest rank there, the same for all members; `None` if the job
    /// has no such member. Here every process is a host.
    fn host_of(&self, member: Member) -> Option<Rank> {
        self.rank_of(member)
    }

    /// Sends and receives everything named, all at the same time, and returns when all is done:
    /// the slices of `sends` may change again, those of `receives` are filled.
    ///
    /// Both ends of a message name the same operation and step, in any order of time. Lengths
    /// agree; a transport that sees them differ reports [`TransportError::Peer`].
    ///
    /// # Errors
    /// The first of: a failed rank of the group, a notice of [`Transport::abort`], the deadline,
    /// the cancel token, a peer's breach of protocol. What the receives hold then is unspecified.
    fn exchange(
        &self,
        step: &Step<'_>,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), TransportError>;

    /// As [`Transport::exchange`], with `length_bytes` from each of `sources`, shown to `read`
    /// rather than stored.
    ///
    /// `read` gets an offset and a view per source, in their order, all equally long; successive
    /// calls cover each byte once. This implementation receives everything and shows it in one
    /// call; a transport that pipelines shows pieces (of whole 64-byte units, but for the last),
    /// and one that shares memory with a source shows the source's own operand.
    ///
    /// # Errors
    /// As [`Transport::exchange`]. `read` may have been called before an error.
    fn exchange_views(
        &self,
        step: &Step<'_>,
        sends: &[Outgoing<'_>],
        sources: &[Member],
        length_bytes: usize,
        read: &mut dyn FnMut(usize, &[&[u8]]),
    ) -> Result<(), TransportError> {
        let mut staging: Vec<Vec<u8>> = sources.iter().map(|_| vec![0; length_bytes]).collect();
        let mut receives: Vec<Incoming<'_>> = sources
            .iter()
            .zip(&mut staging)
            .map(|(&from, bytes)| Incoming { from, bytes })
            .collect();
        self.exchange(step, sends, &mut receives)?;
        read(0, &staging.iter().map(Vec::as_slice).collect::<Vec<_>>());
        Ok(())
    }

    /// Ready when news ends an exchange of `operation` that waits for `pending`, with the error of
    /// [`Transport::exchange`]; until then any news wakes `context`.
    ///
    /// What shows members to each other by other ways than `exchange` learns of failures here. A
    /// transport of which nothing is decorated need not have it.
    fn poll_interrupted(
        &self,
        operation: &Operation<'_>,
        pending: &[Member],
        context: &Context<'_>,
    ) -> Poll<TransportError> {
        let _ = (operation, pending, context);
        Poll::Pending
    }

    /// The memory that the members of the group `id`, in this order, have in common, for the one
    /// at place `me`; `None` if they have none, and then for each of them.
    fn shared_group(&self, id: GroupId, members: &[Member], me: usize) -> Option<SharedGroup> {
        let _ = (id, members, me);
        None
    }

    /// Tells the other members that the operation will not complete, and why.
    ///
    /// Returns at once. Their exchanges of this operation, waiting or to come, fail with
    /// [`TransportError::Aborted`] unless they are already complete. A notice is at most
    /// [`MAX_NOTICE_BYTES`] long; a longer one is cut.
    fn abort(&self, operation: &Operation<'_>, notice: &[u8]);

    /// The local member is through with the operation: what still arrives for it is dropped, and
    /// so is what arrives for earlier operations of its group.
    fn retire(&self, operation: &Operation<'_>);

    /// A rank has failed: exchanges of groups that it belongs to fail from now on.
    fn fail_rank(&self, failure: RankFailure);

    /// Waits until the peers hold all that was sent, failed ones aside, or until `timeout`.
    ///
    /// A process calls it before it leaves: an exchange is complete when the bytes are on their
    /// way, and they do not outlive their process.
    fn flush(&self, timeout: Duration);
}

/// The longest notice of [`Transport::abort`].
pub const MAX_NOTICE_BYTES: usize = 16 * 1024;

impl Step<'_> {
    /// The address of this step's message between two members.
    pub(crate) fn tag(&self, from: Member, to: Member) -> Tag {
        Tag { operation: self.operation.id, step: self.index, from, to }
    }
}
