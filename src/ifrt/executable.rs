//! Programs that are ready to run.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{ArrayRef, ArraySpec, DeviceList, Future, Result, Sharding};

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
}

/// What a launch gives back at once.
#[derive(Debug)]
pub struct ExecuteResult {
    /// The results; their data arrives later.
    pub outputs: Vec<ArrayRef>,
    /// Resolves when the launch is over on every addressable device, to its first error if it
    /// failed.
    pub status: Future<()>,
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

    /// What launches have cost so far.
    fn statistics(&self) -> ExecutionStatistics;
}
