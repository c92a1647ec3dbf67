//! The native backend: compiles a program to a flat list of steps and runs it on the host's cores.
//!
//! The way of a program: `stablehlo::transform` makes one function of it, `lower` turns operations into
//! kernels over slots and fuses elementwise chains on the way (`fuse`, `tile`), `plan` lets
//! slots share memory, `execute` runs the steps. Kernels are in `kernels`, one operation
//! family a file. A module given to [`Backend::compile`] has passed `stablehlo::verify`.
//!
//! Results do not depend on whether an operand is a constant or an argument, nor on which other
//! operations were fused with it: every element is computed by the same kernel in the same order.

mod buffer;
mod collective;
mod execute;
mod fuse;
mod kernels;
mod lower;
mod parallel;
mod plan;
mod scalar_body;
mod spare;
mod step;
mod tile;
mod view;

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "test data is small"
)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use buffer::{Block, Memory, block_of};
use execute::Frame;
use step::Program;

use super::{Backend, Buffer, CollectiveContext, DeviceAllocator, Executable, LocalDevice};
use crate::ifrt::{MemoryKind, Result, Status};
use crate::stablehlo::{Module, TensorType};

/// The CPU devices of this process.
pub struct CpuBackend {
    device_count: usize,
    memory: Memory,
}

impl CpuBackend {
    /// A backend that shows the host's cores as `device_count` devices.
    pub fn new(device_count: usize) -> Self {
        Self { device_count, memory: Memory::default() }
    }

    /// The same devices, with buffers from `allocator` where it has any.
    #[must_use]
    pub fn with_allocator(self, allocator: Arc<dyn DeviceAllocator>) -> Self {
        Self { memory: Memory::new(allocator), ..self }
    }
}

impl Backend for CpuBackend {
    fn platform_name(&self) -> &'static str {
        "cpu"
    }

    fn device_count(&self) -> usize {
        self.device_count
    }

    /// All of them are the host's memory; programs run on what is in the first.
    fn memory_kinds(&self) -> &[MemoryKind] {
        const { &[MemoryKind::DEVICE, MemoryKind::PINNED_HOST, MemoryKind::UNPINNED_HOST] }
    }

    fn buffer_from_host(
        &self,
        device: LocalDevice,
        ty: &TensorType,
        bytes: &[u8],
    ) -> Result<Buffer> {
        check_device(device, self.device_count)?;
        check_length(ty, bytes)?;
        Ok(Buffer::new(Arc::new(self.memory.copy(bytes)?)))
    }

    fn buffer_in_place(
        &self,
        device: LocalDevice,
        ty: &TensorType,
        bytes: &Arc<dyn AsRef<[u8]> + Send + Sync>,
    ) -> Result<Option<Buffer>> {
        check_device(device, self.device_count)?;
        check_length(ty, (**bytes).as_ref())?;
        let block = Block::in_place(Arc::clone(bytes));
        Ok(block.map(|block| Buffer::new(Arc::new(block))))
    }

    fn buffer_filled(
        &self,
        device: LocalDevice,
        ty: &TensorType,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<Buffer> {
        check_device(device, self.device_count)?;
        let mut block = self.memory.block(ty.size_bytes())?;
        fill(block.bytes_mut())?;
        Ok(Buffer::new(Arc::new(block)))
    }

    fn compile(&self, module: &Module) -> Result<Arc<dyn Executable>> {
        let compiled = lower::compile(module)?;
        Ok(Arc::new(CpuExecutable {
            device_count: self.device_count,
            memory: self.memory.clone(),
            parameter_types: compiled.parameter_types,
            result_types: compiled.result_types,
            is_brief: compiled.program.is_brief(),
            program: compiled.program,
            idle_frames: Mutex::default(),
        }))
    }
}

/// A compiled program with the memory of its past launches.
struct CpuExecutable {
    device_count: usize,
    memory: Memory,
    parameter_types: Vec<TensorType>,
    result_types: Vec<TensorType>,
    program: Program,
    is_brief: bool,
    idle_frames: Mutex<Vec<Frame>>,
}

impl CpuExecutable {
    fn idle_frames(&self) -> MutexGuard<'_, Vec<Frame>> {
        // A frame is put in or taken out whole, so a panic elsewhere leaves the list usable.
        self.idle_frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_arguments(&self, arguments: &[Buffer]) -> Result<()> {
        if arguments.len() != self.parameter_types.len() {
            return Err(Status::invalid_argument(format!(
                "the program has {} parameters, {} arguments were given",
                self.parameter_types.len(),
                arguments.len()
            )));
        }
        for (index, (argument, ty)) in arguments.iter().zip(&self.parameter_types).enumerate() {
            if argument.bytes().len() != ty.size_bytes() {
                return Err(Status::invalid_argument(format!(
                    "parameter {index} is {ty}, {} bytes; the argument has {}",
                    ty.size_bytes(),
                    argument.bytes().len()
                )));
            }
        }
        Ok(())
    }
}

impl Executable for CpuExecutable {
    fn parameter_types(&self) -> &[TensorType] {
        &self.parameter_types
    }

    fn result_types(&self) -> &[TensorType] {
        &self.result_types
    }

    fn memory_bytes(&self) -> usize {
        self.program.memory_bytes
    }

    fn is_brief(&self) -> bool {
        self.is_brief
    }

    fn execute(
        &self,
        device: LocalDevice,
        arguments: Vec<Buffer>,
        context: &dyn CollectiveContext,
    ) -> Result<Vec<Buffer>> {
        check_device(device, self.device_count)?;
        self.check_arguments(&arguments)?;
        let mut blocks: SmallVec<[Arc<Block>; 4]> = SmallVec::new();
        for argument in arguments {
            blocks.push(block_of(argument)?);
        }
        let idle = self.idle_frames().pop();
        let mut frame = idle.unwrap_or_else(|| Frame::new(self.memory.clone()));
        // After a failure the frame is dropped: what it holds is of no use to anyone.
        let results = frame.run(&self.program, blocks, context)?;
        self.idle_frames().push(frame);
        Ok(results)
    }
}

fn check_length(ty: &TensorType, bytes: &[u8]) -> Result<()> {
    if bytes.len() == ty.size_bytes() {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "{ty} takes {} bytes, the host array has {}",
        ty.size_bytes(),
        bytes.len()
    )))
}

fn check_device(device: LocalDevice, count: usize) -> Result<()> {
    if device.0 < count {
        return Ok(());
    }
    Err(Status::invalid_argument(format!("device {} of {count} local devices", device.0)))
}
