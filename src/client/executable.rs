//! Executables of this client: checking arguments, and launching on the local devices.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lockstep_collectives::Group;
use smallvec::{SmallVec, smallvec};

use super::Core;
use super::array::{Array, Shards, take_shards};
use super::collective::{LaunchContext, Scope, Station};
use super::launch::{DeviceLaunch, Launch, Statistics};
use super::serialized;
use super::stream::Turn;
use crate::backend::{self, Buffer, LocalDevice};
use crate::ifrt::{
    Array as _, ArrayRef, ArraySpec, CancellationHandle, DeviceList, ExecuteOptions, ExecuteResult,
    ExecutionStatistics, Future, LoadedExecutable, MemoryStatistics, ProgramCost, Promise, Result,
    StableHloProgram, Status, Value,
};
use crate::stablehlo::{Module, Statistics as Counts};

/// An executable of [`super::Client`].
pub(super) struct Executable {
    pub(super) core: Arc<Core>,
    pub(super) name: String,
    pub(super) fingerprint: u64,
    pub(super) devices: DeviceList,
    pub(super) parameters: Vec<ArraySpec>,
    pub(super) outputs: Vec<ArraySpec>,
    /// The same for arrays to share.
    pub(super) shared_outputs: Vec<Arc<ArraySpec>>,
    pub(super) donatable: Vec<usize>,
    pub(super) program: Arc<dyn backend::Executable>,
    /// What it was compiled from, and what one device runs; `None` if that is code of this process.
    pub(super) source: Option<(StableHloProgram, Module)>,
    pub(super) scopes: Arc<[Scope]>,
    /// Where the program runs in this process, in the order of the device assignment.
    pub(super) local: Vec<LocalPart>,
    pub(super) next_launch: AtomicU64,
    pub(super) statistics: Arc<Statistics>,
}

/// A local device of an executable.
pub(super) struct LocalPart {
    /// Its number among this process's devices.
    pub(super) device: LocalDevice,
    pub(super) station: Arc<Station>,
    /// All devices of a brief program of several processes, as this one sees them: who runs it
    /// arrives there.
    pub(super) everyone: Option<Group>,
}

impl LoadedExecutable for Executable {
    fn name(&self) -> &str {
        &self.name
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn devices(&self) -> &DeviceList {
        &self.devices
    }

    fn parameter_specs(&self) -> &[ArraySpec] {
        &self.parameters
    }

    fn output_specs(&self) -> &[ArraySpec] {
        &self.outputs
    }

    fn donatable_input_indices(&self) -> &[usize] {
        &self.donatable
    }

    fn execute(&self, arguments: &[ArrayRef], options: &ExecuteOptions) -> Result<ExecuteResult> {
        let _span = tracing::debug_span!("execute", program = self.name).entered();
        if let Some(result) = self.execute_here(arguments, options)? {
            return Ok(result);
        }
        let arrays = self.checked(arguments)?;
        let donated = self.donated(arguments, options)?;
        let shards = take_shards(&arrays, &donated)?;
        let launch_id = self.launch_id(options);
        let per_device = per_device(shards, self.local.len());
        let mut jobs: SmallVec<[DeviceLaunch; 1]> = SmallVec::new();
        for (part, arguments) in self.local.iter().zip(per_device) {
            jobs.push(self.job(part, arguments, launch_id));
        }
        let mut turn = None;
        if let [job] = &mut jobs[..] {
            if job.is_brief() {
                turn = self.core.turn(job.device);
            }
            // A call returns whatever other processes have to do before they come to the launch.
            if turn.is_some() && job.is_met() {
                let outcome = job.run_alone();
                drop(turn);
                return Ok(self.over(outcome));
            }
        }
        Ok(self.under_way(jobs, turn))
    }

    fn serialize(&self) -> Result<Vec<u8>> {
        let Some((source, _)) = &self.source else { return Err(self.is_code()) };
        let ids = self.devices.ids().map(|id| id.0).collect();
        Ok(serialized::encode(self.core.backend.platform_name(), self.fingerprint, ids, source))
    }

    fn program_text(&self) -> Result<String> {
        let Some((_, module)) = &self.source else { return Err(self.is_code()) };
        Ok(module.to_string())
    }

    fn cost(&self) -> Result<ProgramCost> {
        let Some((_, module)) = &self.source else { return Err(self.is_code()) };
        let Counts { flops, bytes_accessed, .. } = module.statistics();
        Ok(ProgramCost { flops, bytes_accessed })
    }

    fn memory_statistics(&self) -> MemoryStatistics {
        let shard_bytes = |spec: &ArraySpec| {
            // What was compiled has shards of known shapes.
            let shape = spec.sharding.shard_shape(&spec.shape).ok();
            shape.map_or(0, |shape| shape.num_elements() * spec.dtype.size_bytes())
        };
        let donated = self.donatable.iter().filter_map(|&index| self.parameters.get(index));
        MemoryStatistics {
            argument_bytes: self.parameters.iter().map(shard_bytes).sum(),
            output_bytes: self.outputs.iter().map(shard_bytes).sum(),
            donated_bytes: donated.map(shard_bytes).sum(),
            temporary_bytes: None,
        }
    }

    fn statistics(&self) -> ExecutionStatistics {
        self.statistics.read()
    }
}

impl Executable {
    /// Makes the launch here and now, without promises, if that is all there is to it: a brief program
    /// on one device that meets nobody and takes over none of its arguments, which are there, and it is
    /// the device's turn. To promise what is to come takes longer than such a program.
    fn execute_here(
        &self,
        arguments: &[ArrayRef],
        options: &ExecuteOptions,
    ) -> Result<Option<ExecuteResult>> {
        let [part] = &self.local[..] else { return Ok(None) };
        let is_alone = self.scopes.is_empty() && part.station.leads.is_none();
        if !is_alone || !self.donatable.is_empty() || !self.program.is_brief() {
            return Ok(None);
        }
        self.check_count(arguments)?;
        self.check_kept(arguments, options)?;
        let mut buffers = Vec::with_capacity(arguments.len());
        for (index, argument) in arguments.iter().enumerate() {
            let Some(buffer) = self.check(index, argument)?.sole_buffer() else { return Ok(None) };
            buffers.push(buffer);
        }
        let Some(turn) = self.core.turn(part.device) else { return Ok(None) };
        let job = self.job(part, SmallVec::new(), self.launch_id(options));
        let outcome = job.run_on(buffers);
        drop(turn);
        Ok(Some(self.over(outcome)))
    }

    /// One device's part of the launch with this number.
    fn job(
        &self,
        part: &LocalPart,
        arguments: SmallVec<[Future<Buffer>; 4]>,
        launch_id: u64,
    ) -> DeviceLaunch {
        DeviceLaunch {
            statistics: Arc::clone(&self.statistics),
            program: Arc::clone(&self.program),
            device: part.device,
            context: LaunchContext::new(&part.station, launch_id),
            scopes: Arc::clone(&self.scopes),
            everyone: part.everyone.clone(),
            arguments,
        }
    }

    /// What a launch on one device gives that is over.
    fn over(&self, outcome: Result<Vec<Buffer>>) -> ExecuteResult {
        let output = |spec: &Arc<ArraySpec>, shard| -> ArrayRef {
            Arc::new(Array::new(Arc::clone(spec), smallvec![Future::ready(shard)]))
        };
        let specs = self.shared_outputs.iter();
        let cancellation = CancellationHandle::inert();
        match outcome {
            Ok(buffers) => {
                let outputs = specs.zip(buffers).map(|(spec, buffer)| output(spec, Ok(buffer)));
                ExecuteResult { outputs: outputs.collect(), status: Future::done(), cancellation }
            }
            Err(failure) => {
                let outputs = specs.map(|spec| output(spec, Err(failure.clone()))).collect();
                ExecuteResult { outputs, status: Future::ready(Err(failure)), cancellation }
            }
        }
    }

    /// What a launch gives that other threads run; the one who has the `turn` of its only device
    /// leaves it to that device's.
    fn under_way(&self, jobs: SmallVec<[DeviceLaunch; 1]>, turn: Option<Turn>) -> ExecuteResult {
        let (launch, status) = Launch::new(self.local.len(), Arc::clone(&self.statistics));
        let mut shards: Vec<Shards> =
            self.outputs.iter().map(|_| Shards::with_capacity(jobs.len())).collect();
        let mut jobs = jobs.into_iter().map(|mut job| {
            let promise = |shards: &mut Shards| {
                let (promise, shard) = Promise::new();
                shards.push(shard);
                promise
            };
            let promises: Vec<_> = shards.iter_mut().map(promise).collect();
            job.context.cancel = Some(launch.token.clone());
            let launch = Arc::clone(&launch);
            (job.device, move || job.run(&launch, promises))
        });
        match turn {
            Some(turn) => {
                if let Some((_, job)) = jobs.next() {
                    turn.pass_on(job);
                }
            }
            None => self.core.submit(jobs),
        }
        let outputs =
            self.shared_outputs.iter().zip(shards).map(|(spec, shards)| -> ArrayRef {
                Arc::new(Array::new(Arc::clone(spec), shards))
            });
        let outputs = outputs.collect();
        let cancellation = CancellationHandle::new(move |error| launch.cancel(error));
        ExecuteResult { outputs, status, cancellation }
    }

    fn is_code(&self) -> Status {
        Status::unimplemented(format!(
            "{} is a function of this process, which has no form outside of it",
            self.name
        ))
    }

    fn launch_id(&self, options: &ExecuteOptions) -> u64 {
        let count = || self.next_launch.fetch_add(1, Ordering::Relaxed);
        options.launch_id.map_or_else(count, |id| id.0)
    }

    /// The arguments as this client's arrays, if they are what the program takes.
    fn checked<'a>(&self, arguments: &'a [ArrayRef]) -> Result<SmallVec<[&'a Array; 4]>> {
        self.check_count(arguments)?;
        let mut arrays = SmallVec::new();
        for (index, argument) in arguments.iter().enumerate() {
            let array = self.check(index, argument)?;
            if array.is_deleted() {
                return Err(Status::invalid_argument(format!(
                    "argument {index} of {} is deleted or was donated",
                    self.name
                )));
            }
            arrays.push(array);
        }
        Ok(arrays)
    }

    fn check_count(&self, arguments: &[ArrayRef]) -> Result<()> {
        if arguments.len() == self.parameters.len() {
            return Ok(());
        }
        Err(Status::invalid_argument(format!(
            "{} takes {} arguments, got {}",
            self.name,
            self.parameters.len(),
            arguments.len()
        )))
    }

    /// Argument `index` as this client's array, if it is what the program takes there.
    fn check<'a>(&self, index: usize, argument: &'a ArrayRef) -> Result<&'a Array> {
        let expected = &self.parameters[index];
        let array = Array::of(argument)?;
        let found = array.spec();
        let wrong = |what: &str, expected: &dyn fmt::Display, found: &dyn fmt::Display| {
            Err(Status::invalid_argument(format!(
                "argument {index} of {}: the {what} is {found}, must be {expected}",
                self.name
            )))
        };
        if found.dtype != expected.dtype {
            return wrong("element type", &expected.dtype, &found.dtype);
        }
        if found.shape != expected.shape {
            return wrong("shape", &expected.shape, &found.shape);
        }
        if found.sharding != expected.sharding {
            return wrong("sharding", &expected.sharding, &found.sharding);
        }
        Ok(array)
    }

    /// Checks that what the caller keeps are arguments.
    fn check_kept(&self, arguments: &[ArrayRef], options: &ExecuteOptions) -> Result<()> {
        let kept = &options.non_donatable_input_indices;
        match kept.last().filter(|index| **index >= arguments.len()) {
            None => Ok(()),
            Some(index) => Err(Status::invalid_argument(format!(
                "non_donatable_input_indices has {index}, {} takes {} arguments",
                self.name,
                arguments.len()
            ))),
        }
    }

    /// For each argument, whether this launch takes it over.
    fn donated(
        &self,
        arguments: &[ArrayRef],
        options: &ExecuteOptions,
    ) -> Result<SmallVec<[bool; 16]>> {
        self.check_kept(arguments, options)?;
        let kept = &options.non_donatable_input_indices;
        let mut donated = smallvec![false; arguments.len()];
        for &index in self.donatable.iter().filter(|index| !kept.contains(index)) {
            let Some(donor) = arguments.get(index) else { continue };
            let twin = arguments
                .iter()
                .enumerate()
                .find(|(other, argument)| *other != index && Arc::ptr_eq(argument, donor));
            if let Some((other, _)) = twin {
                return Err(Status::invalid_argument(format!(
                    "arguments {index} and {other} of {} are one array, and argument {index} is \
                     donated: list it in non_donatable_input_indices",
                    self.name
                )));
            }
            donated[index] = true;
        }
        Ok(donated)
    }
}

/// Shards by array and device become shards by device and array.
fn per_device(
    by_array: SmallVec<[Shards; 4]>,
    devices: usize,
) -> SmallVec<[SmallVec<[Future<Buffer>; 4]>; 1]> {
    let mut by_device: SmallVec<[SmallVec<_>; 1]> =
        (0..devices).map(|_| SmallVec::with_capacity(by_array.len())).collect();
    for shards in by_array {
        for (device, shard) in by_device.iter_mut().zip(shards) {
            device.push(shard);
        }
    }
    by_device
}
