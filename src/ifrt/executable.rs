//! Programs that are ready to run.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{ArrayRef, ArraySpec, DeviceList, Future, Layout, Result, Sharding, Status};

/// Names one launch of an executable on all of its devices, across processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaunchId(pub u64);

/// How one launch is to be done.
#[derive(Clone, Debug, Default)]
pub struct ExecuteOptions {
    /// The launch's name, the same on every process and never used twice for one executable.
    /// `None` counts launches per executable, which is right as long as every process launches
    /// it equally often.
    pub launch_id: Option<LaunchId>,
    /// Donatable inputs that the caller keeps, by position; the same on every process.
    pub non_donatable_input_indices: BTreeSet<usize>,
    /// Launches with the same stream run in the order they are made. Those with different ones may
    /// run in any order, which includes that order.
    pub execution_stream: u64,
}

/// What a launch gives back at once.
#[derive(Debug)]
pub struct ExecuteResult {
    /// The results; their data arrives later.
    pub outputs: Vec<ArrayRef>,
    /// Resolves when the launch is over on every addressable device, to its first error if it
    /// failed.
    pub status: Future<()>,
    /// Ends the launch early.
    pub cancellation: CancellationHandle,
}

/// Ends one launch early, as far as that is possible; clones end the same launch.
#[derive(Clone)]
pub struct CancellationHandle {
    /// `None` if the launch is over.
    cancel: Option<Arc<dyn Fn(Status) + Send + Sync>>,
}

impl CancellationHandle {
    /// A handle that ends its launch by `cancel`. For implementations.
    pub fn new(cancel: impl Fn(Status) + Send + Sync + 'static) -> Self {
        Self { cancel: Some(Arc::new(cancel)) }
    }

    /// The handle of a launch that is over. For implementations.
    pub fn inert() -> Self {
        Self { cancel: None }
    }

    /// Asks the launch to end. If it does, `error` is its status and poisons its outputs, here; the
    /// other processes of a collective that it ends learn that it was cancelled. If it is over, or
    /// cannot be stopped any more, nothing happens. Returns at once.
    pub fn cancel(&self, error: Status) {
        if let Some(cancel) = &self.cancel {
            cancel(error);
        }
    }
}

impl fmt::Debug for CancellationHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CancellationHandle")
    }
}

/// What the launches of an executable have cost so far, in this process.
///
/// Times are sums over addressable devices, which run side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutionStatistics {
    /// Launches that are over on every addressable device.
    pub launches: u64,
    /// Time spent running the program, collectives apart.
    pub compute_time: Duration,
    /// Time spent in collectives, waiting for peers included.
    pub communication_time: Duration,
}

/// Memory of one device for one launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStatistics {
    /// Of the arguments.
    pub argument_bytes: usize,
    /// Of the outputs.
    pub output_bytes: usize,
    /// Of donated arguments, which the program may write to.
    pub donated_bytes: usize,
    /// Of values on the way; `None` when the backend does not say.
    pub temporary_bytes: Option<usize>,
}

/// What a launch costs one device, counted from the program: what loops repeat counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramCost {
    /// Arithmetic on elements: one for each, two for each product that is added up.
    pub flops: u64,
    /// Bytes of the operands and results of all operations.
    pub bytes_accessed: u64,
}

/// A program compiled for, and loaded on, a list of devices.
pub trait LoadedExecutable: Send + Sync {
    /// The name of the program.
    fn name(&self) -> &str;

    /// A number that is the same on all processes that compiled the same program, and differs
    /// between programs except with negligible probability.
    fn fingerprint(&self) -> u64;

    /// The devices it runs on, in the order of its device assignment.
    fn devices(&self) -> &DeviceList;

    /// How many devices it runs on, those of other processes included.
    fn num_devices(&self) -> usize {
        self.devices().len()
    }

    /// What arguments must be, in order.
    fn parameter_specs(&self) -> &[ArraySpec];

    /// What outputs will be, in order.
    fn output_specs(&self) -> &[ArraySpec];

    /// The shardings that arguments must have.
    fn parameter_shardings(&self) -> Vec<Sharding> {
        self.parameter_specs().iter().map(|spec| spec.sharding.clone()).collect()
    }

    /// The shardings that outputs will have.
    fn output_shardings(&self) -> Vec<Sharding> {
        self.output_specs().iter().map(|spec| spec.sharding.clone()).collect()
    }

    /// The inputs that a launch takes over, ascending: they are deleted unless
    /// [`ExecuteOptions::non_donatable_input_indices`] lists them.
    fn donatable_input_indices(&self) -> &[usize];

    /// Launches the program and returns at once; outputs arrive later.
    ///
    /// Launches run in order on each device. Every process that owns a device of the executable
    /// must launch it, in the same order relative to other executables that share devices. When
    /// a launch fails, or an argument is poisoned, all outputs are poisoned with the first cause.
    ///
    /// # Errors
    /// `InvalidArgument` when arguments differ from [`LoadedExecutable::parameter_specs`] in
    /// number, element type, shape or sharding, are deleted, or one is donated and passed twice;
    /// nothing is launched or deleted then.
    fn execute(&self, arguments: &[ArrayRef], options: &ExecuteOptions) -> Result<ExecuteResult>;

    /// The executable as bytes, for [`super::Compiler::deserialize_and_load`] of this version of
    /// the runtime, in any process.
    ///
    /// # Errors
    /// `Unimplemented` when the program is code of this process.
    fn serialize(&self) -> Result<Vec<u8>>;

    /// What one device runs, as text of the program's kind.
    ///
    /// # Errors
    /// `Unimplemented` when the program is code of this process.
    fn program_text(&self) -> Result<String>;

    /// What a launch costs each device.
    ///
    /// # Errors
    /// `Unimplemented` when the program is code of this process.
    fn cost(&self) -> Result<ProgramCost>;

    /// What a launch needs on the device that needs most.
    fn memory_statistics(&self) -> MemoryStatistics;

    /// How the elements of arguments' shards follow each other.
    fn parameter_layouts(&self) -> Vec<Layout> {
        self.parameter_specs().iter().map(|spec| Layout::row_major(spec.shape.rank())).collect()
    }

    /// How the elements of outputs' shards follow each other.
    fn output_layouts(&self) -> Vec<Layout> {
        self.output_specs().iter().map(|spec| Layout::row_major(spec.shape.rank())).collect()
    }

    /// What launches have cost so far.
    fn statistics(&self) -> ExecutionStatistics;
}
