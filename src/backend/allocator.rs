//! Where the memory of device buffers comes from, if not from the process's heap.

use std::ops::DerefMut;

/// Memory for device buffers, such as memory that other processes can read in place.
///
/// A backend that has one takes its buffers from it, and from the heap what it does not provide.
pub trait DeviceAllocator: Send + Sync {
    /// `len` bytes or more that hold anything, the first of them 64-byte aligned; `None` when
    /// ordinary memory serves as well or there is none of this left.
    fn allocate(&self, len: usize) -> Option<Box<dyn DeviceBytes>>;
}

/// Bytes with one owner, freed when dropped.
pub trait DeviceBytes: DerefMut<Target = [u8]> + Send + Sync {}

impl<T: DerefMut<Target = [u8]> + Send + Sync> DeviceBytes for T {}
