//! The device backend: where this process's bytes live, and how one compiled program runs.
//!
//! Owns the [`Backend`] trait (PJRT's role) and its implementations. Knows only this process's
//! devices. Reaches other processes only through [`CollectiveContext`], which the caller of
//! [`Executable::execute`] brings along.

mod allocator;
mod collective;
pub mod cpu;

pub use allocator::{DeviceAllocator, DeviceBytes};
use collective::Nobody;
pub use collective::{CollectiveContext, CollectiveSite, Reduction, Transfer};

use std::any::Any;
use std::sync::Arc;

use crate::ifrt::{MemoryKind, Result};
use crate::stablehlo::{Module, TensorType};

/// One process's devices, their memory, and a compiler for programs in local shapes.
pub trait Backend: Send + Sync {
    /// The name of the platform, such as `cpu`.
    fn platform_name(&self) -> &'static str;

    /// How many devices this process has.
    fn device_count(&self) -> usize;

    /// The kinds of memory that arrays of these devices can be in, the default first. Buffers of
    /// all of them are made and read in the same way.
    fn memory_kinds(&self) -> &[MemoryKind] {
        const { &[MemoryKind::DEVICE] }
    }

    /// Copies a dense row-major array to a device.
    ///
    /// # Errors
    /// `InvalidArgument` when `bytes` is not `ty.size_bytes()` long or there is no such device,
    /// `ResourceExhausted` when memory runs out.
    fn buffer_from_host(
        &self,
        device: LocalDevice,
        ty: &TensorType,
        bytes: &[u8],
    ) -> Result<Buffer>;

    /// An array on a device that lies where `bytes` do, dense and row-major, and keeps them as long
    /// as it is used; `None` when the device cannot compute from there.
    ///
    /// # Errors
    /// As [`Backend::buffer_from_host`].
    fn buffer_in_place(
        &self,
        _device: LocalDevice,
        _ty: &TensorType,
        _bytes: &Arc<dyn AsRef<[u8]> + Send + Sync>,
    ) -> Result<Option<Buffer>> {
        Ok(None)
    }

    /// Makes a dense row-major array on a device of what `fill` writes: all its bytes, which hold
    /// anything before.
    ///
    /// # Errors
    /// As [`Backend::buffer_from_host`], and what `fill` fails with.
    fn buffer_filled(
        &self,
        device: LocalDevice,
        ty: &TensorType,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<Buffer> {
        let mut bytes = vec![0; ty.size_bytes()];
        fill(&mut bytes)?;
        self.buffer_from_host(device, ty, &bytes)
    }

    /// Compiles a verified module whose shapes are those of one device.
    ///
    /// # Errors
    /// `Unimplemented` for an operation or an element type that has no implementation; the
    /// message names the operation, the type and the line.
    fn compile(&self, module: &Module) -> Result<Arc<dyn Executable>>;
}

/// An index among this process's own devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalDevice(pub usize);

/// One shard's memory: immutable once made, shared by reference.
///
/// Dense, row-major, one element every `dtype.size_bytes()` bytes, 64-byte aligned.
#[derive(Clone)]
pub struct Buffer {
    inner: Arc<dyn DeviceMemory>,
}

/// What a [`Buffer`] holds on to.
///
/// `Any`, so that the backend that made it can recognise and reuse it.
pub trait DeviceMemory: Any + Send + Sync {
    /// The contents.
    fn bytes(&self) -> &[u8];
}

impl Buffer {
    /// A buffer over `memory`.
    pub fn new(memory: Arc<dyn DeviceMemory>) -> Self {
        Self { inner: memory }
    }

    /// The contents.
    pub fn bytes(&self) -> &[u8] {
        self.inner.bytes()
    }

    /// The memory, whose other owners keep it alive and unchanged.
    pub fn into_memory(self) -> Arc<dyn DeviceMemory> {
        self.inner
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "buffer of {} bytes", self.bytes().len())
    }
}

/// A program compiled for the devices of one process.
pub trait Executable: Send + Sync {
    /// The types of the parameters.
    fn parameter_types(&self) -> &[TensorType];

    /// The types of the results.
    fn result_types(&self) -> &[TensorType];

    /// Bytes of device memory that a launch takes: arguments, constants, results, and what is between
    /// them. What kernels need while they run, in parts of a fixed size, is not in it.
    fn memory_bytes(&self) -> usize;

    /// Whether a launch takes about as long as it takes to have another thread do it, but for what
    /// it waits in collectives. It does not wait for the host.
    fn is_brief(&self) -> bool {
        false
    }

    /// Runs once, on the calling thread, and returns one buffer per result.
    ///
    /// `arguments` are consumed: one whose only reference this is may be overwritten.
    ///
    /// # Errors
    /// `InvalidArgument` when arguments do not match [`Executable::parameter_types`]; what
    /// `context` answers when a collective fails. No output exists then (invariant I9).
    fn execute(
        &self,
        device: LocalDevice,
        arguments: Vec<Buffer>,
        context: &dyn CollectiveContext,
    ) -> Result<Vec<Buffer>>;
}
