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
    use crate::client::Client;
    use crate::ifrt::{
        ArrayRef, Client as _, DType, HostBuffer, HostBufferSemantics, HostBytes, Shape, Sharding,
    };
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
    fn ten_thousand_arrays_leave_nothing_behind() {
        let client = Client::solo(2).unwrap();
        let arena = client.world().arena().unwrap();
        let start = arena.bytes_in_use();
        let bytes = vec![7; 5000];
        for round in 0..10_u16 {
            let arrays: Vec<ArrayRef> = (0..1000_usize)
                .map(|number| {
                    let len = (number * 7 + usize::from(round)) % bytes.len();
                    let contents = HostBytes::Borrowed(&bytes[..len]);
                    let buffer = HostBuffer::dense(contents, DType::U8, Shape::new([len]).unwrap());
                    let sharding = Sharding::replicated(client.devices().clone()).unwrap();
                    let semantics = HostBufferSemantics::ImmutableOnlyDuringCall;
                    let array =
                        client.make_array_from_host_buffer(&buffer.unwrap(), &sharding, semantics);
                    array.unwrap()
                })
                .collect();
            assert!(arena.bytes_in_use() > start);
            // Half of them are deleted while somebody holds them.
            for array in arrays.iter().step_by(2) {
                array.delete().wait().unwrap();
            }
            drop(arrays);
            assert_eq!(arena.bytes_in_use(), start);
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
