//! The collectives of one launch on one device.
//!
//! Owns the step from what the program says (replica groups, element types of StableHLO) to what
//! the job's communicators do, the translation of their errors, and the time spent in them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use lockstep_collectives::{
    self as collectives, Call, CancelToken, CollectiveCause, CollectiveError, CollectiveKey,
    Communicator, ElementType, Group, Member,
};

use super::assignment::{DeviceAssignment, GroupMode};
use super::exchange::Exchange;
use crate::backend::{CollectiveContext, CollectiveSite, Reduction, Transfer};
use crate::ifrt::{Code, DType, DeviceList, HostCallbacks, Result, Status};
use crate::stablehlo::op::Collective;
use crate::stablehlo::{Module, OpKind};

/// What all launches of an executable on one device have in common.
pub(super) struct Station {
    pub(super) communicator: Communicator,
    pub(super) assignment: Arc<DeviceAssignment>,
    /// The device's number in the assignment.
    pub(super) position: usize,
    /// The fingerprint of the program.
    pub(super) program: u64,
    /// The functions of the host that the program calls.
    pub(super) host_callbacks: Option<HostCallbacks>,
    /// Those that check that they make the same launch, on devices that do so: see
    /// [`LaunchContext::meet`].
    pub(super) leads: Option<Arc<[Member]>>,
}

/// One device's part in one launch.
pub(super) struct LaunchContext {
    pub(super) station: Arc<Station>,
    pub(super) launch: u64,
    pub(super) progress: Progress,
    /// What is at the other end of what is no collective, if anything is.
    pub(super) exchange: Option<Arc<Exchange>>,
    /// What ends the launch early, if anything can.
    pub(super) cancel: Option<CancelToken>,
}

/// How far a launch has come with its collectives.
#[derive(Debug, Default)]
pub(super) struct Progress {
    spent_nanoseconds: AtomicU64,
    /// The first that failed.
    failure: OnceLock<CollectiveError>,
}

/// Whom a collective of a program joins, as its text has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scope {
    replica_groups: Vec<Vec<i64>>,
    mode: GroupMode,
}

impl LaunchContext {
    /// The part in the launch with this number that nothing ends early and has nobody at the other
    /// end.
    pub(super) fn new(station: &Arc<Station>, launch: u64) -> Self {
        let station = Arc::clone(station);
        Self { station, launch, progress: Progress::default(), exchange: None, cancel: None }
    }

    /// Time spent in collectives so far.
    pub(super) fn communication_time(&self) -> Duration {
        Duration::from_nanos(self.progress.spent_nanoseconds.load(Ordering::Relaxed))
    }

    /// Whether a collective has failed, which its other members know.
    pub(super) fn collective_failed(&self) -> bool {
        self.progress.failure.get().is_some()
    }

    /// Begins the launch's epoch of each group that this device is in, and returns the groups.
    ///
    /// A launch that ends early leaves some of its collectives out, here or elsewhere; by epochs
    /// the next one is in step again.
    pub(super) fn begin(&self, scopes: &[Scope]) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        if let Some(group) = self.station.leads.as_ref().and_then(|leads| self.group_of(leads).ok())
        {
            group.begin_epoch();
            groups.push(group);
        }
        for Scope { replica_groups, mode } in scopes {
            // What is wrong with it, the collective itself will say.
            let Ok(Some(members)) =
                self.station.assignment.group(self.station.position, *mode, replica_groups)
            else {
                continue;
            };
            if groups.iter().any(|group| group.members() == members) {
                continue;
            }
            if let Ok(group) = self.group_of(&members) {
                group.begin_epoch();
                groups.push(group);
            }
        }
        groups
    }

    /// Tells the other members of `groups` that this device does not come to their next
    /// collectives, and why.
    pub(super) fn decline(&self, groups: &[Group], reason: &Status) {
        // The members of a collective that a rank's loss ended learn of the loss themselves.
        let lost = self.progress.failure.get();
        let lost = lost.filter(|error| matches!(error.cause, CollectiveCause::RankFailed(_)));
        let knows = |group: &&Group| lost.is_some_and(|error| error.group == group.members());
        for group in groups.iter().filter(|group| !knows(group)) {
            self.station.communicator.decline(group, reason.message());
        }
    }

    /// Waits for the leads of the other processes to come to this launch, which nothing else would
    /// tell of a program that does not have all its devices meet (I2).
    pub(super) fn meet(&self) -> Result<()> {
        let Some(leads) = &self.station.leads else { return Ok(()) };
        let group = self.group_of(leads)?;
        self.run_as(self.key(0, 0), &group, |call| self.station.communicator.barrier(call))
    }

    fn key(&self, ordinal: u32, iteration: u64) -> CollectiveKey {
        CollectiveKey { launch: self.launch, program: self.station.program, ordinal, iteration }
    }

    fn group(&self, site: &CollectiveSite<'_>, mode: GroupMode) -> Result<Option<Group>> {
        let members =
            self.station.assignment.group(self.station.position, mode, site.replica_groups)?;
        members.map(|members| self.group_of(&members)).transpose()
    }

    fn group_of(&self, members: &[Member]) -> Result<Group> {
        let group = self.station.communicator.group(members);
        group.map_err(|error| Status::wrap(Code::InvalidArgument, error))
    }

    /// The group of an operation that every device takes part in.
    fn required_group(&self, site: &CollectiveSite<'_>, mode: GroupMode) -> Result<Group> {
        self.group(site, mode)?.ok_or_else(|| {
            Status::invalid_argument(format!(
                "device number {} of the program is in none of the replica_groups {:?} of \
                 collective {}",
                self.station.position, site.replica_groups, site.ordinal
            ))
        })
    }

    fn run(
        &self,
        site: &CollectiveSite<'_>,
        group: &Group,
        collective: impl FnOnce(&Call<'_>) -> Result<(), CollectiveError>,
    ) -> Result<()> {
        self.run_as(self.key(site.ordinal, site.iteration), group, collective)
    }

    fn run_as(
        &self,
        key: CollectiveKey,
        group: &Group,
        collective: impl FnOnce(&Call<'_>) -> Result<(), CollectiveError>,
    ) -> Result<()> {
        let _span = tracing::debug_span!("collective", ordinal = key.ordinal).entered();
        let call = Call { key: Some(key), cancel: self.cancel.as_ref(), ..Call::on(group) };
        let start = Instant::now();
        let result = collective(&call);
        let spent = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.progress.spent_nanoseconds.fetch_add(spent, Ordering::Relaxed);
        result.map_err(|error| {
            self.progress.failure.get_or_init(|| error.clone());
            status(error)
        })
    }
}

/// The devices that check that all processes make the same launch: the first of each, if there are
/// several, and no collective of the program joins all of its devices.
pub(super) fn leads(
    devices: &DeviceList,
    scopes: &[Scope],
    assignment: &DeviceAssignment,
) -> Option<Arc<[Member]>> {
    let joins_all = |Scope { replica_groups, mode }: &Scope| {
        let group = assignment.group(0, *mode, replica_groups);
        matches!(group, Ok(Some(members)) if members.len() == devices.len())
    };
    let processes = devices.process_indices();
    if processes.len() < 2 || scopes.iter().any(joins_all) {
        return None;
    }
    let first = |process: &u32| devices.iter().find(|device| device.process_index() == *process);
    Some(processes.iter().filter_map(first).map(|device| Member(device.id().0)).collect())
}

impl Scope {
    /// The scopes of a program's collectives, each once.
    pub(super) fn of_program(module: &Module) -> Arc<[Self]> {
        let mut scopes: Vec<Self> = Vec::new();
        let operations = module.functions.iter().flat_map(|function| function.ops.values());
        for scope in operations.filter_map(|operation| Self::of_operation(&operation.kind)) {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        scopes.into()
    }

    /// The scope of an operation, if it is a collective.
    fn of_operation(kind: &OpKind) -> Option<Self> {
        let (replica_groups, mode) = match kind {
            OpKind::AllReduce(collective)
            | OpKind::AllGather { collective, .. }
            | OpKind::ReduceScatter { collective, .. } => {
                let Collective { replica_groups, channel_id, use_global_device_ids } = collective;
                let mode = GroupMode::of_reduction(*channel_id, *use_global_device_ids).ok()?;
                (replica_groups.clone(), mode)
            }
            OpKind::AllToAll { collective, .. } | OpKind::CollectiveBroadcast(collective) => {
                let mode = GroupMode::of_movement(collective.channel_id);
                (collective.replica_groups.clone(), mode)
            }
            OpKind::CollectivePermute { channel_id, .. } => {
                (Vec::new(), GroupMode::of_movement(*channel_id))
            }
            _ => return None,
        };
        Some(Self { replica_groups, mode })
    }
}

impl CollectiveContext for LaunchContext {
    fn partition_id(&self) -> u32 {
        id(self.station.assignment.partition_id(self.station.position))
    }

    fn replica_id(&self) -> u32 {
        id(self.station.assignment.replica_id(self.station.position))
    }

    fn transfer(
        &self,
        transfer: Transfer,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<()> {
        match (&self.exchange, transfer, &self.station.host_callbacks) {
            (_, Transfer::Callback(number), Some(callbacks)) => {
                callbacks.call(number, inputs, outputs)
            }
            (Some(exchange), ..) => exchange.transfer(transfer, inputs, outputs),
            (None, ..) => Err(Status::unimplemented(format!(
                "{transfer:?}: nothing is at the other end in a launch of a job"
            ))),
        }
    }

    fn all_reduce(
        &self,
        site: &CollectiveSite<'_>,
        reduction: Reduction,
        dtype: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        let (element, reduction) = arithmetic(dtype, reduction)?;
        let group = self.required_group(site, reduction_mode(site)?)?;
        self.run(site, &group, |call| {
            self.station.communicator.all_reduce(call, element, reduction, input, output)
        })
    }

    fn all_gather(
        &self,
        site: &CollectiveSite<'_>,
        dtype: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        let group = self.required_group(site, reduction_mode(site)?)?;
        self.run(site, &group, |call| {
            self.station.communicator.all_gather(call, element(dtype), input, output)
        })
    }

    fn reduce_scatter(
        &self,
        site: &CollectiveSite<'_>,
        reduction: Reduction,
        dtype: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        let (element, reduction) = arithmetic(dtype, reduction)?;
        let group = self.required_group(site, reduction_mode(site)?)?;
        self.run(site, &group, |call| {
            self.station.communicator.reduce_scatter(call, element, reduction, input, output)
        })
    }

    fn all_to_all(
        &self,
        site: &CollectiveSite<'_>,
        dtype: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        let group = self.required_group(site, GroupMode::of_movement(site.channel_id))?;
        self.run(site, &group, |call| {
            self.station.communicator.all_to_all(call, element(dtype), input, output)
        })
    }

    fn collective_permute(
        &self,
        site: &CollectiveSite<'_>,
        source_target_pairs: &[(i64, i64)],
        dtype: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        let mode = GroupMode::of_movement(site.channel_id);
        let pairs =
            self.station.assignment.pairs(self.station.position, mode, source_target_pairs)?;
        // Everybody in scope takes part, so that all of them learn of a failure.
        let everyone = CollectiveSite { replica_groups: &[], ..*site };
        let group = self.required_group(&everyone, mode)?;
        self.run(site, &group, |call| {
            self.station.communicator.collective_permute(
                call,
                element(dtype),
                &pairs,
                input,
                output,
            )
        })
    }

    fn collective_broadcast(
        &self,
        site: &CollectiveSite<'_>,
        dtype: DType,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        match self.group(site, GroupMode::of_movement(site.channel_id))? {
            Some(group) if input.len() == output.len() => self.run(site, &group, |call| {
                self.station.communicator.broadcast(call, element(dtype), 0, input, output)
            }),
            Some(_) => Err(Status::internal(format!(
                "collective_broadcast of {} bytes into {}",
                input.len(),
                output.len()
            ))),
            None => {
                output.fill(0);
                Ok(())
            }
        }
    }
}

fn reduction_mode(site: &CollectiveSite<'_>) -> Result<GroupMode> {
    GroupMode::of_reduction(site.channel_id, site.use_global_device_ids)
        .map_err(|status| status.context(format_args!("collective {}", site.ordinal)))
}

fn id(number: usize) -> u32 {
    // Devices are numbered by u32.
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The elements to move for elements of type `dtype`.
pub(super) fn element(dtype: DType) -> ElementType {
    match dtype {
        DType::Bool => ElementType::Bool,
        DType::S8 => ElementType::I8,
        DType::S16 => ElementType::I16,
        DType::S32 => ElementType::I32,
        DType::S64 => ElementType::I64,
        DType::U8 => ElementType::U8,
        DType::U16 => ElementType::U16,
        DType::U32 => ElementType::U32,
        DType::U64 => ElementType::U64,
        DType::F16 => ElementType::F16,
        DType::BF16 => ElementType::BF16,
        DType::F32 => ElementType::F32,
        DType::F64 => ElementType::F64,
        DType::S2 => ElementType::I2,
        DType::S4 => ElementType::I4,
        DType::U2 => ElementType::U2,
        DType::U4 => ElementType::U4,
        DType::F8E3M4 => ElementType::F8E3M4,
        DType::F8E4M3 => ElementType::F8E4M3,
        DType::F8E4M3FN => ElementType::F8E4M3FN,
        DType::F8E4M3B11FNUZ => ElementType::F8E4M3B11FNUZ,
        DType::F8E4M3FNUZ => ElementType::F8E4M3FNUZ,
        DType::F8E5M2 => ElementType::F8E5M2,
        DType::F8E5M2FNUZ => ElementType::F8E5M2FNUZ,
        DType::C64 => ElementType::C64,
        DType::C128 => ElementType::C128,
        // Formats whose values mean nothing without a scale that other elements hold.
        other => ElementType::Opaque { size_bytes: id(other.size_bytes()) },
    }
}

/// The elements and the reduction to fold elements of type `dtype` by `reduction`.
///
/// # Errors
/// `Unimplemented` when there is no arithmetic for them.
fn arithmetic(dtype: DType, reduction: Reduction) -> Result<(ElementType, collectives::Reduction)> {
    let element = element(dtype);
    let reduction = match reduction {
        Reduction::Sum => collectives::Reduction::Sum,
        Reduction::Product => collectives::Reduction::Product,
        Reduction::Min => collectives::Reduction::Min,
        Reduction::Max => collectives::Reduction::Max,
        Reduction::And => collectives::Reduction::And,
        Reduction::Or => collectives::Reduction::Or,
        Reduction::Xor => collectives::Reduction::Xor,
    };
    if element.supports(reduction) {
        Ok((element, reduction))
    } else {
        Err(Status::unimplemented(format!("the {reduction} of {dtype} over devices")))
    }
}

/// The status of a failed collective, with its very words.
pub(super) fn status(error: CollectiveError) -> Status {
    let code = match &error.cause {
        CollectiveCause::Cancelled { .. } => Code::Cancelled,
        CollectiveCause::Late { .. } => Code::DeadlineExceeded,
        CollectiveCause::Counts { .. }
        | CollectiveCause::Declined { .. }
        | CollectiveCause::Mismatch { .. } => Code::Aborted,
        CollectiveCause::RankFailed(_) | CollectiveCause::Transport { .. } => Code::Unavailable,
        CollectiveCause::Usage { .. } => Code::InvalidArgument,
        _ => Code::Unknown,
    };
    Status::wrap(code, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_moves_at_its_own_size() {
        for dtype in DType::ALL {
            assert_eq!(element(dtype).size_bytes(), dtype.size_bytes(), "{dtype}");
        }
    }

    #[test]
    fn types_without_arithmetic_say_so() {
        let reduced = |dtype, reduction| arithmetic(dtype, reduction).map(|(element, _)| element);
        assert_eq!(reduced(DType::C64, Reduction::Product).unwrap(), ElementType::C64);
        let error = reduced(DType::C64, Reduction::Max).unwrap_err();
        assert_eq!(error.message(), "the max of complex<f32> over devices");
        assert_eq!(
            reduced(DType::F8E8M0FNU, Reduction::Sum).unwrap_err().code(),
            Code::Unimplemented
        );
        assert_eq!(reduced(DType::F32, Reduction::Xor).unwrap_err().code(), Code::Unimplemented);
        assert_eq!(reduced(DType::S4, Reduction::Sum).unwrap(), ElementType::I4);
        assert_eq!(reduced(DType::F8E5M2, Reduction::Min).unwrap(), ElementType::F8E5M2);
    }
}
