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

#[cfg(test)]
mod tests {
    use lockstep_collectives::World;

    use super::*;
    use crate::backend::cpu::CpuBackend;
    use crate::backend::{Backend, LocalDevice};
    use crate::ifrt::{DType, Shape};
    use crate::stablehlo::TensorType;

    #[test]
    fn large_buffers_lie_in_the_arena_and_leave_nothing_there() {
        let world = World::solo(2);
        let arena = world.arena().unwrap();
        let backend = CpuBackend::new(2);
        let backend = backend.with_allocator(Arc::new(SharedMemory(Arc::clone(arena))));
        for (len, shared) in [(0, false), (1023, false), (1024, true), (100_000, true)] {
            let ty = TensorType::new(DType::U8, Shape::new([len]).unwrap());
            let bytes: Vec<u8> = (0..=255).cycle().take(ty.size_bytes()).collect();
            let buffer = backend.buffer_from_host(LocalDevice(1), &ty, &bytes).unwrap();
            assert_eq!(buffer.bytes(), bytes);
            assert_eq!(arena.bytes_in_use() > 0, shared, "{len}");
            drop(buffer);
            assert_eq!(arena.bytes_in_use(), 0);
        }
    }

    #[test]
    fn a_full_arena_leaves_buffers_to_the_heap() {
        let world = World::solo(2);
        let memory = SharedMemory(Arc::clone(world.arena().unwrap()));
        assert!(memory.allocate(usize::MAX / 2).is_none());
        assert_eq!(memory.allocate(5000).unwrap().len(), 5000);
    }
}
