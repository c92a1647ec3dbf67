//! Executables of this client: checking arguments, and launching on the local devices.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lockstep_collectives::{Group, Member};

use super::Core;
use super::array::{Array, take_shards};
use super::assignment::DeviceAssignment;
use super::collective::{LaunchContext, Progress, Scope};
use super::launch::{DeviceLaunch, Launch, Statistics};
use super::serialized;
use crate::backend::{self, Buffer, LocalDevice};
use crate::ifrt::{
    ArrayRef, ArraySpec, CancellationHandle, DeviceList, ExecuteOptions, ExecuteResult,
    ExecutionStatistics, Future, HostCallbacks, LoadedExecutable, MemoryStatistics, ProgramCost,
    Promise, Result, StableHloProgram, Status, Value,
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
    pub(super) donatable: Vec<usize>,
    pub(super) program: Arc<dyn backend::Executable>,
    /// What it was compiled from, and what one device runs; `None` if that is code of this process.
    pub(super) source: Option<(StableHloProgram, Module)>,
    pub(super) host_callbacks: Option<HostCallbacks>,
    pub(super) assignment: Arc<DeviceAssignment>,
    pub(super) scopes: Arc<[Scope]>,
    /// See [`LaunchContext::meet`].
    pub(super) leads: Option<Arc<[Member]>>,
    /// Where the program runs in this process, in the order of the device assignment.
    pub(super) local: Vec<LocalPart>,
    pub(super) next_launch: AtomicU64,
    pub(super) statistics: Arc<Statistics>,
}

/// A local device of an executable.
#[derive(Clone, Debug)]
pub(super) struct LocalPart {
    /// Its number in the device assignment.
    pub(super) position: usize,
    /// Its number among this process's devices.
    pub(super) device: LocalDevice,
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
        let arrays = self.check(arguments)?;
        let donated = self.donated(arguments, options)?;
        let shards = take_shards(&arrays, &donated)?;
        let launch_id = options
            .launch_id
            .map_or_else(|| self.next_launch.fetch_add(1, Ordering::Relaxed), |id| id.0);

        let (launch, status) = Launch::new(self.local.len(), Arc::clone(&self.statistics));
        let mut output_shards: Vec<Vec<Future<Buffer>>> =
            self.outputs.iter().map(|_| Vec::with_capacity(self.local.len())).collect();
        let mut jobs = Vec::with_capacity(self.local.len());
        for (part, arguments) in self.local.iter().zip(per_device(shards, self.local.len())) {
            let mut promises = Vec::with_capacity(self.outputs.len());
            for shards in &mut output_shards {
                let (promise, shard) = Promise::new();
                promises.push(promise);
                shards.push(shard);
            }
            let communicator = self.core.communicator(part.device)?;
            let is_lead = |leads: &&Arc<[Member]>| leads.contains(&communicator.member());
            let context = LaunchContext {
                leads: self.leads.as_ref().filter(is_lead).cloned(),
                cancel: launch.token.clone(),
                communicator,
                assignment: Arc::clone(&self.assignment),
                position: part.position,
                launch: launch_id,
                program: self.fingerprint,
                progress: Progress::default(),
                exchange: None,
                host_callbacks: self.host_callbacks.clone(),
            };
            let job = DeviceLaunch {
                launch: Arc::clone(&launch),
                program: Arc::clone(&self.program),
                device: part.device,
                context,
                scopes: Arc::clone(&self.scopes),
                everyone: part.everyone.clone(),
                arguments,
                outputs: promises,
            };
            jobs.push((part.device, job));
        }
        self.core.launch(jobs);

        let outputs = self
            .outputs
            .iter()
            .zip(output_shards)
            .map(|(spec, shards)| -> ArrayRef { Arc::new(Array::new(spec.clone(), shards)) });
        let cancellation = CancellationHandle::new(move |error| launch.cancel(error));
        Ok(ExecuteResult { outputs: outputs.collect(), status, cancellation })
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
    fn is_code(&self) -> Status {
        Status::unimplemented(format!(
            "{} is a function of this process, which has no form outside of it",
            self.name
        ))
    }

    /// The arguments as this client's arrays, if they are what the program takes.
    fn check<'a>(&self, arguments: &'a [ArrayRef]) -> Result<Vec<&'a Array>> {
        if arguments.len() != self.parameters.len() {
            return Err(Status::invalid_argument(format!(
                "{} takes {} arguments, got {}",
                self.name,
                self.parameters.len(),
                arguments.len()
            )));
        }
        let check = |(index, (argument, expected)): (usize, (&'a ArrayRef, &ArraySpec))| {
            let wrong =
                |what: &str, expected: &dyn std::fmt::Display, found: &dyn std::fmt::Display| {
                    Status::invalid_argument(format!(
                        "argument {index} of {}: the {what} is {found}, must be {expected}",
                        self.name
                    ))
                };
            let array = Array::of(argument)?;
            let found = argument.spec();
            if found.dtype != expected.dtype {
                return Err(wrong("element type", &expected.dtype, &found.dtype));
            }
            if found.shape != expected.shape {
                return Err(wrong("shape", &expected.shape, &found.shape));
            }
            if found.sharding != expected.sharding {
                return Err(wrong("sharding", &expected.sharding, &found.sharding));
            }
            if array.is_deleted() {
                return Err(Status::invalid_argument(format!(
                    "argument {index} of {} is deleted or was donated",
                    self.name
                )));
            }
            Ok(array)
        };
        arguments.iter().zip(&self.parameters).enumerate().map(check).collect()
    }

    /// For each argument, whether this launch takes it over.
    fn donated(&self, arguments: &[ArrayRef], options: &ExecuteOptions) -> Result<Vec<bool>> {
        let kept = &options.non_donatable_input_indices;
        if let Some(index) = kept.iter().find(|&&index| index >= arguments.len()) {
            return Err(Status::invalid_argument(format!(
                "non_donatable_input_indices has {index}, {} takes {} arguments",
                self.name,
                arguments.len()
            )));
        }
        let mut donated = vec![false; arguments.len()];
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
fn per_device<T>(by_array: Vec<Vec<T>>, devices: usize) -> Vec<Vec<T>> {
    let mut by_device: Vec<Vec<T>> =
        (0..devices).map(|_| Vec::with_capacity(by_array.len())).collect();
    for shards in by_array {
        for (device, shard) in by_device.iter_mut().zip(shards) {
            device.push(shard);
        }
    }
    by_device
}
