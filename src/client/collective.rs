//! The collectives of one launch on one device.
//!
//! Owns the step from what the program says (replica groups, element types of StableHLO) to what
//! the job's communicators do, the translation of their errors, and the time spent in them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lockstep_collectives::{
    self as collectives, Call, CancelToken, CollectiveCause, CollectiveError, CollectiveKey,
    Communicator, ElementType, Group, Member,
};

use super::assignment::{DeviceAssignment, GroupMode};
use crate::backend::{CollectiveContext, CollectiveSite, Reduction};
use crate::ifrt::{Code, DType, Result, Status};
use crate::stablehlo::op::Collective;
use crate::stablehlo::{Module, OpKind};

/// One device's part in one launch.
pub(super) struct LaunchContext {
    pub(super) communicator: Communicator,
    pub(super) assignment: Arc<DeviceAssignment>,
    /// The device's number in the assignment.
    pub(super) position: usize,
    pub(super) launch: u64,
    /// The fingerprint of the program.
    pub(super) program: u64,
    /// Ends this launch's collectives on this process's other devices too.
    pub(super) cancel: CancelToken,
    pub(super) progress: Progress,
}

/// How far a launch has come with its collectives.
#[derive(Debug, Default)]
pub(super) struct Progress {
    entered: AtomicU64,
    spent_nanoseconds: AtomicU64,
    failed: AtomicBool,
}

/// A collective as the program's text has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Site {
    ordinal: u32,
    replica_groups: Vec<Vec<i64>>,
    mode: GroupMode,
}

impl LaunchContext {
    /// Time spent in collectives so far.
    pub(super) fn communication_time(&self) -> Duration {
        Duration::from_nanos(self.progress.spent_nanoseconds.load(Ordering::Relaxed))
    }

    /// Collectives entered so far.
    pub(super) fn entered(&self) -> u64 {
        self.progress.entered.load(Ordering::Relaxed)
    }

    /// Whether a collective has failed, which its other members know.
    pub(super) fn collective_failed(&self) -> bool {
        self.progress.failed.load(Ordering::Relaxed)
    }

    /// Takes this device's turn in a collective by giving it up, which ends it for all members.
    ///
    /// The launch's cancel token must have been triggered.
    pub(super) fn decline(&self, site: &Site) {
        let Ok(Some(members)) =
            self.assignment.group(self.position, site.mode, &site.replica_groups)
        else {
            return;
        };
        if let (Ok(group), true) = (self.group_of(&members), members.len() > 1) {
            let key = self.key(site.ordinal, 0);
            let call = Call { key: Some(key), cancel: Some(&self.cancel), ..Call::on(&group) };
            // It fails, as it is meant to: the token is triggered.
            let _ = self.communicator.barrier(&call);
        }
    }

    fn key(&self, ordinal: u32, iteration: u64) -> CollectiveKey {
        CollectiveKey { launch: self.launch, program: self.program, ordinal, iteration }
    }

    fn group(&self, site: &CollectiveSite<'_>, mode: GroupMode) -> Result<Option<Group>> {
        let members = self.assignment.group(self.position, mode, site.replica_groups)?;
        members.map(|members| self.group_of(&members)).transpose()
    }

    fn group_of(&self, members: &[Member]) -> Result<Group> {
        let group = self.communicator.group(members);
        group.map_err(|error| Status::wrap(Code::InvalidArgument, error))
    }

    /// The group of an operation that every device takes part in.
    fn required_group(&self, site: &CollectiveSite<'_>, mode: GroupMode) -> Result<Group> {
        self.group(site, mode)?.ok_or_else(|| {
            Status::invalid_argument(format!(
                "device number {} of the program is in none of the replica_groups {:?} of \
                 collective {}",
                self.position, site.replica_groups, site.ordinal
            ))
        })
    }

    fn run(
        &self,
        site: &CollectiveSite<'_>,
        group: &Group,
        collective: impl FnOnce(&Call<'_>) -> Result<(), CollectiveError>,
    ) -> Result<()> {
        let call = Call {
            key: Some(self.key(site.ordinal, site.iteration)),
            cancel: Some(&self.cancel),
            ..Call::on(group)
        };
        self.progress.entered.fetch_add(1, Ordering::Relaxed);
        let start = Instant::now();
        let result = collective(&call);
        let spent = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.progress.spent_nanoseconds.fetch_add(spent, Ordering::Relaxed);
        self.progress.failed.fetch_or(result.is_err(), Ordering::Relaxed);
        result.map_err(status)
    }
}

impl Site {
    /// The collectives of a program, in the order of its text, `main` first.
    pub(super) fn of_program(module: &Module) -> Arc<[Self]> {
        let (main, others): (Vec<_>, Vec<_>) =
            module.functions.iter().partition(|function| function.name == "main");
        let operations = main.into_iter().chain(others).flat_map(|function| function.ops.values());
        let kinds = operations.filter_map(|operation| groups_and_mode(&operation.kind));
        let site = |(ordinal, (replica_groups, mode))| Self { ordinal, replica_groups, mode };
        (0..).zip(kinds).map(site).collect()
    }
}

/// The replica groups of an operation and what they mean, if it is a collective.
fn groups_and_mode(kind: &OpKind) -> Option<(Vec<Vec<i64>>, GroupMode)> {
    match kind {
        OpKind::AllReduce(collective)
        | OpKind::AllGather { collective, .. }
        | OpKind::ReduceScatter { collective, .. } => {
            let Collective { replica_groups, channel_id, use_global_device_ids } = collective;
            let mode = GroupMode::of_reduction(*channel_id, *use_global_device_ids).ok()?;
            Some((replica_groups.clone(), mode))
        }
        OpKind::AllToAll { collective, .. } | OpKind::CollectiveBroadcast(collective) => {
            let mode = GroupMode::of_movement(collective.channel_id);
            Some((collective.replica_groups.clone(), mode))
        }
        OpKind::CollectivePermute { channel_id, .. } => {
            Some((Vec::new(), GroupMode::of_movement(*channel_id)))
        }
        _ => None,
    }
}

impl CollectiveContext for LaunchContext {
    fn partition_id(&self) -> u32 {
        id(self.assignment.partition_id(self.position))
    }

    fn replica_id(&self) -> u32 {
        id(self.assignment.replica_id(self.position))
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
            self.communicator.all_reduce(call, element, reduction, input, output)
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
            self.communicator.all_gather(call, element(dtype), input, output)
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
            self.communicator.reduce_scatter(call, element, reduction, input, output)
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
            self.communicator.all_to_all(call, element(dtype), input, output)
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
        let pairs = self.assignment.pairs(self.position, mode, source_target_pairs)?;
        // Everybody in scope takes part, so that all of them learn of a failure.
        let everyone = CollectiveSite { replica_groups: &[], ..*site };
        let group = self.required_group(&everyone, mode)?;
        self.run(site, &group, |call| {
            self.communicator.collective_permute(call, element(dtype), &pairs, input, output)
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
            Some(group) if input.len() == output.len() => {
                output.copy_from_slice(input);
                self.run(site, &group, |call| {
                    self.communicator.broadcast(call, element(dtype), 0, output)
                })
            }
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
fn element(dtype: DType) -> ElementType {
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
        other => ElementType::Opaque { size_bytes: id(other.size_bytes()) },
    }
}

/// The elements and the reduction to fold elements of type `dtype` by `reduction`.
///
/// # Errors
/// `Unimplemented` when there is no arithmetic for them.
fn arithmetic(dtype: DType, reduction: Reduction) -> Result<(ElementType, collectives::Reduction)> {
    let element = match (dtype, reduction) {
        // The sum of complex numbers is that of their parts.
        (DType::C64, Reduction::Sum) => ElementType::F32,
        (DType::C128, Reduction::Sum) => ElementType::F64,
        _ => element(dtype),
    };
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
fn status(error: CollectiveError) -> Status {
    let code = match &error.cause {
        CollectiveCause::Cancelled { .. } => Code::Cancelled,
        CollectiveCause::Late { .. } => Code::DeadlineExceeded,
        CollectiveCause::Mismatch { .. } => Code::Aborted,
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
        assert_eq!(reduced(DType::C64, Reduction::Sum).unwrap(), ElementType::F32);
        let error = reduced(DType::C64, Reduction::Product).unwrap_err();
        assert_eq!(error.message(), "the product of complex<f32> over devices");
        assert_eq!(reduced(DType::S4, Reduction::Sum).unwrap_err().code(), Code::Unimplemented);
        assert_eq!(reduced(DType::F32, Reduction::Xor).unwrap_err().code(), Code::Unimplemented);
        assert_eq!(reduced(DType::BF16, Reduction::Max).unwrap(), ElementType::BF16);
    }
}
