//! Device memory out of the arena that this host's processes share.

use std::sync::Arc;

use lockstep_collectives::shared_memory::Arena;

use crate::backend::{DeviceAllocator, DeviceBytes};

/// Below this a collective copies operands anyway, and the heap is quicker.
const SMALL_BYTES: usize = 1024;

/// Buffers that a collective's members on the same host read where they lie.
pub(super) struct SharedMemory(pub(super) Arc<Arena>);

impl DeviceAllocator for SharedMemory {
    fn allocate(&self, len: usize) -> Option<Box<dyn DeviceBytes>> {
        if len < SMALL_BYTES {
            return None;
        }
        match self.0.allocate(len) {
            Ok(bytes) => Some(Box::new(bytes)),
            Err(error) => {
                tracing::debug!("a buffer is not in shared memory: {error}");
                None
            }
        }
    }
}
