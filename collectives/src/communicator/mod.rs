//! What a program calls: groups of members, and the collectives they run together.
//!
//! Owns the order of collectives in a group, the agreement of its members before a byte of output
//! is written, and the translation of every failure into one error for all of them. How results
//! are computed is `algorithm`'s, how bytes travel is `transport`'s.
//!
//! A collective has two phases. First every member sends its descriptor to every other and
//! compares; any difference is an error on all. Then the data moves. Small operands travel with
//! the descriptor and have no second phase.

mod collectives;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod head;
mod participation;
mod shared;
mod wire;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

pub use error::{CollectiveCause, CollectiveError, MAX_SIDES, Participant, Side};

use crate::algorithm::{Algorithm, Collective, Cost, Hosts, Policy, Run};
use crate::descriptor::{CollectiveKey, Descriptor, GroupId, OperationId, Signature, next_epoch};
use crate::flight::FlightRecorder;
use crate::ids::{Member, Rank};
use crate::transport::shm::SharedGroup;
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
    policy: Policy,
}

struct Shared {
    member: Member,
    transport: Arc<dyn Transport>,
    timeout: Duration,
    recorder: Arc<FlightRecorder>,
    /// The groups so far.
    courses: Mutex<HashMap<GroupId, Arc<Course>>>,
}

/// What all handles on one group have in common.
struct Course {
    /// The collectives so far.
    sequence: AtomicU64,
    /// The arrivals so far: see [`Group::arrive`].
    arrivals: AtomicU64,
    /// The memory that its members share.
    shared: Option<SharedGroup>,
    /// Where its members are.
    hosts: Hosts,
    /// Where not all share memory: what those of this member's host share, once it is needed.
    nearby: OnceLock<Option<SharedGroup>>,
}

/// An ordered list of members that run collectives together, as one of them sees it.
#[derive(Clone, Debug)]
pub struct Group {
    id: GroupId,
    members: Arc<[Member]>,
    /// The place of the communicator's member.
    position: usize,
    course: Arc<Course>,
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
        let _ = self.course.sequence.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }

    /// Says to the others that this member has come to where they will do something together, and
    /// returns how often it has. Every member arrives at the same points of the common course, as
    /// it begins epochs.
    ///
    /// It changes nothing: what it is for is [`Group::have_arrived`].
    pub fn arrive(&self) -> u64 {
        let count = self.course.arrivals.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(shared) = &self.course.shared {
            shared.say_arrived(count);
        }
        count
    }

    /// Whether all members have arrived that often, so that what they do together will wait for
    /// nobody who has other things to do first. Looks for as long as a wait may keep the processor
    /// busy, less than a millisecond; says no where the members do not share memory.
    pub fn have_arrived(&self, count: u64) -> bool {
        self.course.shared.as_ref().is_some_and(|shared| shared.have_arrived(count))
    }

    /// This member's next turn.
    fn next_sequence(&self) -> u64 {
        self.course.sequence.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }
}

impl Communicator {
    /// The collectives of `member`, which is local to `transport`; each may take `timeout`.
    pub fn new(member: Member, transport: Arc<dyn Transport>, timeout: Duration) -> Self {
        Self::recorded(member, transport, timeout, Arc::new(FlightRecorder::new()))
    }

    /// The same with the recorder that all members of a process share.
    pub(crate) fn recorded(
        member: Member,
        transport: Arc<dyn Transport>,
        timeout: Duration,
        recorder: Arc<FlightRecorder>,
    ) -> Self {
        let courses = Mutex::new(HashMap::new());
        let shared = Shared { member, transport, timeout, recorder, courses };
        Self { shared: Arc::new(shared), policy: Policy::default() }
    }

    /// The same member, choosing algorithms by `policy`. The other members do so too, or their
    /// collectives fail with [`CollectiveCause::Mismatch`].
    #[must_use]
    pub fn with_policy(&self, policy: Policy) -> Self {
        Self { shared: Arc::clone(&self.shared), policy }
    }

    /// By what this member chooses algorithms.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// The algorithm of a collective of `group` with these terms, and what it costs the member that
    /// sends most, where the collective has more than one form. Nothing of it counts that goes
    /// through the memory which this member's host shares.
    pub fn plan(&self, group: &Group, signature: &Signature) -> (Algorithm, Option<Cost>) {
        let algorithm = self.algorithm(group, signature);
        let is_shared = self.nearby(group, algorithm).is_some();
        let hosts = &group.course.hosts;
        let costs = (0..hosts.members())
            .filter_map(|position| algorithm.cost(signature, hosts, position, is_shared));
        (algorithm, costs.max_by_key(|cost| cost.sent_bytes))
    }

    fn algorithm(&self, group: &Group, signature: &Signature) -> Algorithm {
        match group.course.shared {
            Some(_) => Algorithm::Shared,
            None => Algorithm::choose(&self.policy, signature, &group.course.hosts),
        }
    }

    /// What the members of this host share, for an algorithm that has use for it.
    fn nearby<'a>(&self, group: &'a Group, algorithm: Algorithm) -> Option<&'a SharedGroup> {
        if algorithm != Algorithm::TwoLevel {
            return None;
        }
        let Course { hosts, nearby, .. } = &*group.course;
        let claim = || {
            let (host, place) = hosts.of(group.position);
            let id = group.id.of_host(hosts.index_of(group.position));
            let several = host.members.len() > 1;
            several.then(|| self.shared.transport.shared_group(id, &host.members, place)).flatten()
        };
        nearby.get_or_init(claim).as_ref()
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
        let Shared { member: me, transport, .. } = &*self.shared;
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
        let course = self.course(id, members, position);
        Ok(Group { id, members: members.into(), position, course })
    }

    /// `group` as it runs the second parts of collectives that have two, under another name.
    ///
    /// There an operation has the number of its first part, so that such a collective is one turn
    /// of the group like any other, also for a member that never came to the second part.
    fn second_part_of(&self, group: &Group) -> Group {
        let id = group.id.second_part();
        let course = self.course(id, &group.members, group.position);
        Group { id, members: Arc::clone(&group.members), position: group.position, course }
    }

    fn course(&self, id: GroupId, members: &[Member], position: usize) -> Arc<Course> {
        let Shared { transport, courses, .. } = &*self.shared;
        let mut courses = courses.lock().unwrap_or_else(PoisonError::into_inner);
        let course = courses.entry(id).or_insert_with(|| {
            let others = members.len() > 1;
            let shared = others.then(|| transport.shared_group(id, members, position)).flatten();
            let hosts = Hosts::new(members, |member| transport.host_of(member));
            Arc::new(Course {
                sequence: AtomicU64::new(0),
                arrivals: AtomicU64::new(0),
                shared,
                hosts,
                nearby: OnceLock::new(),
            })
        });
        Arc::clone(course)
    }

    /// Takes this member's turn in the group's next collective by saying that it does not come.
    ///
    /// Returns at once. The other members fail with [`CollectiveCause::Declined`] in whatever they
    /// call, with this rank and `reason`, of which at most [`MAX_REASON_BYTES`] are told. The
    /// group stays in step: its next collective is everyone's.
    pub fn decline(&self, group: &Group, reason: &str) {
        let Shared { member, transport, .. } = &*self.shared;
        let operation = self.operation(group, group.next_sequence());
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

    /// Takes this member's part in the operation `sequence`, which fails with `error` for all.
    fn refuse(&self, group: &Group, sequence: u64, error: CollectiveError) -> CollectiveError {
        self.fail(&self.operation(group, sequence), Failure::Noticed(error))
    }

    /// The member at `position` of `group`, which has one there.
    fn participant(&self, group: &Group, position: usize) -> Participant {
        let member = group.members.get(position).copied().unwrap_or(self.member());
        // `Communicator::group` has checked that every member has a rank.
        let rank = self.shared.transport.rank_of(member).unwrap_or(Rank(u32::MAX));
        Participant { rank, member }
    }

    /// How long a call may take.
    fn timeout(&self, call: &Call<'_>) -> Duration {
        call.timeout.unwrap_or(self.shared.timeout)
    }

    /// When a call that begins now is late, on the transport's clock.
    fn deadline(&self, call: &Call<'_>) -> Duration {
        self.shared.transport.now().saturating_add(self.timeout(call))
    }

    /// The time left until `deadline`.
    fn until(&self, deadline: Duration) -> Duration {
        deadline.saturating_sub(self.shared.transport.now())
    }

    fn operation<'a>(&self, group: &'a Group, sequence: u64) -> Operation<'a> {
        Operation {
            id: OperationId { group: group.id, sequence },
            me: self.member(),
            members: &group.members,
        }
    }

    fn run<C: Collective>(
        &self,
        call: &Call<'_>,
        collective: &mut C,
    ) -> Result<(), CollectiveError> {
        self.run_as(call.group.next_sequence(), call, collective)
    }

    /// Runs `collective` as the operation `sequence` of its group.
    fn run_as<C: Collective>(
        &self,
        sequence: u64,
        call: &Call<'_>,
        collective: &mut C,
    ) -> Result<(), CollectiveError> {
        match &call.group.course.shared {
            Some(shared) => self.meet(shared, sequence, call, collective),
            None => self.converse(sequence, call, collective),
        }
    }

    /// Runs `collective` by messages.
    fn converse(
        &self,
        sequence: u64,
        call: &Call<'_>,
        collective: &mut dyn Collective,
    ) -> Result<(), CollectiveError> {
        let Shared { transport, recorder, .. } = &*self.shared;
        let start = transport.now();
        let (descriptor, step) = self.begin(sequence, call, &*collective, start);
        let group = call.group;
        let ticket = recorder.begin(start, self.member(), group.members.len(), &descriptor);
        let mut participation = self.participation(call, &descriptor, step);
        let result = match participation.complete(collective) {
            Ok(()) => {
                self.retire(&step.operation);
                Ok(())
            }
            Err(failure) => Err(self.fail(&step.operation, failure)),
        };
        recorder.end(transport.now(), ticket, result.is_ok());
        result
    }

    /// What the operation `sequence` is, which begins at `start`, and its first step.
    #[inline(always)]
    fn begin<'a>(
        &self,
        sequence: u64,
        call: &Call<'a>,
        collective: &(impl Collective + ?Sized),
        start: Duration,
    ) -> (Descriptor, Step<'a>) {
        let operation = self.operation(call.group, sequence);
        let signature = collective.signature();
        let algorithm = self.algorithm(call.group, &signature);
        let timeout = self.timeout(call);
        let deadline = start.saturating_add(timeout);
        let descriptor =
            Descriptor { signature, key: call.key, operation: operation.id, algorithm };
        (descriptor, Step { operation, index: 0, deadline, cancel: call.cancel })
    }

    /// This member's part in the operation of `step`.
    fn participation<'a>(
        &'a self,
        call: &Call<'a>,
        descriptor: &'a Descriptor,
        step: Step<'a>,
    ) -> Participation<'a> {
        let (group, algorithm) = (call.group, descriptor.algorithm);
        let nearby = self.nearby(group, algorithm);
        let (transport, hosts) = (&*self.shared.transport, &group.course.hosts);
        let position = group.position;
        let run = Run { transport, position, algorithm, hosts, nearby, step };
        Participation { descriptor, timeout: self.timeout(call), run }
    }

    /// Is through with an operation that failed; tells the others if they do not know.
    fn fail(&self, operation: &Operation<'_>, failure: Failure) -> CollectiveError {
        let error = match failure {
            // Nobody is there to tell: the transport has not heard of it.
            Failure::Noticed(error) if operation.members.len() > 1 => {
                let notice = wire::encode_notice(Some(&error.descriptor), &error.cause);
                self.shared.transport.abort(operation, &notice);
                error
            }
            Failure::Adopted(error) | Failure::Noticed(error) => error,
        };
        self.retire(operation);
        error
    }

    fn retire(&self, operation: &Operation<'_>) {
        if operation.members.len() > 1 {
            self.shared.transport.retire(operation);
        }
    }
}

impl fmt::Debug for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Course")
            .field("sequence", &self.sequence)
            .field("is_shared", &self.shared.is_some())
            .finish_non_exhaustive()
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
