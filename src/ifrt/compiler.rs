//! Turning programs into executables.

use std::sync::Arc;
use std::time::Duration;

use super::{DeviceList, Future, HostCallbacks, LoadedExecutable, Program};

/// What a compilation needs besides the program.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompileOptions {
    /// The device assignment: partition `p` of replica `r` runs on device
    /// `r * num_partitions + p`.
    pub devices: DeviceList,
    /// How long to wait for the other processes to compile the same program.
    pub agreement_timeout: Duration,
    /// The functions of the host that the program calls, which are this process's own.
    pub host_callbacks: Option<HostCallbacks>,
}

impl CompileOptions {
    /// Options for a program that runs on `devices`; waits 60 s for other processes.
    pub fn new(devices: DeviceList) -> Self {
        Self { devices, agreement_timeout: Duration::from_secs(60), host_callbacks: None }
    }
}

/// Turns programs into executables.
pub trait Compiler: Send + Sync {
    /// Compiles `program` for the devices of `options` and loads it on the addressable ones.
    ///
    /// When the devices belong to several processes, all of these must make the same calls in
    /// the same order: their programs are compared first, and if one differs or does not come,
    /// every process gets the same error, which names it, before anything runs.
    ///
    /// The future resolves to `InvalidArgument` when the program is malformed (with its
    /// position), needs another number of devices, or its kind is not known; to `Unimplemented`
    /// for an operation that has no implementation; to `FailedPrecondition` when programs
    /// differ; to `DeadlineExceeded` or `Unavailable` when a process did not come.
    fn compile_and_load(
        &self,
        program: &dyn Program,
        options: &CompileOptions,
    ) -> Future<Arc<dyn LoadedExecutable>>;

    /// Loads what [`LoadedExecutable::serialize`] gave, on the devices of the same ids or on
    /// others; processes agree as in [`Compiler::compile_and_load`].
    ///
    /// The future resolves to `InvalidArgument` when the bytes are no executable,
    /// `FailedPrecondition` when another version of the runtime or another platform made them,
    /// `DataLoss` when they no longer are what they were made as, and else as for a compilation.
    fn deserialize_and_load(
        &self,
        serialized: &[u8],
        devices: Option<&DeviceList>,
    ) -> Future<Arc<dyn LoadedExecutable>>;
}
