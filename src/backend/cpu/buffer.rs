//! Memory of the CPU devices: byte blocks that start on a cache line.
//!
//! A [`Block`] has one owner while it is written and is shared behind an `Arc` afterwards; it is
//! written again only by whoever holds its last reference. Its first byte is 64-byte aligned, so
//! every element type may be read in place.

use std::any::Any;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use crate::backend::{Buffer, DeviceMemory};
use crate::ifrt::{Code, Result, Status};

/// One cache line.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// A run of bytes aligned to a cache line.
#[derive(Default)]
pub(crate) struct Block {
    lines: Vec<Line>,
    len: usize,
}

impl Block {
    /// A block of `len` bytes, all zero.
    pub(crate) fn new(len: usize) -> Result<Self> {
        let mut block = Self::default();
        block.resize(len)?;
        Ok(block)
    }

    /// A block that holds a copy of `bytes`.
    pub(crate) fn copy_of(bytes: &[u8]) -> Result<Self> {
        let mut block = Self::new(bytes.len())?;
        block.bytes_mut().copy_from_slice(bytes);
        Ok(block)
    }

    /// Makes the block `len` bytes long; what it then holds is unspecified.
    ///
    /// Memory is taken when the block has never been this long, and given back never.
    pub(crate) fn resize(&mut self, len: usize) -> Result<()> {
        let lines = len.div_ceil(size_of::<Line>());
        if lines > self.lines.len() {
            // What the block held is dropped first: it need not be copied into the new memory.
            self.lines = Vec::new();
            self.lines.try_reserve_exact(lines).map_err(|error| {
                Status::new(
                    Code::ResourceExhausted,
                    format!("no memory for a buffer of {len} bytes: {error}"),
                )
            })?;
            self.lines.resize(lines, Line::zeroed());
        }
        self.len = len;
        Ok(())
    }

    /// The contents.
    pub(crate) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }

    /// The contents, to be written.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len]
    }
}

impl DeviceMemory for Block {
    fn bytes(&self) -> &[u8] {
        self.bytes()
    }
}

/// The block behind `buffer`; a copy when another backend made the buffer.
pub(crate) fn block_of(buffer: Buffer) -> Result<Arc<Block>> {
    let memory = buffer.into_memory();
    if !(&*memory as &dyn Any).is::<Block>() {
        return Ok(Arc::new(Block::copy_of(memory.bytes())?));
    }
    let memory: Arc<dyn Any + Send + Sync> = memory;
    memory.downcast().map_err(|_| Status::internal("device memory changed its type"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_exactly_as_long_as_asked() {
        for len in [0, 1, 63, 64, 65, 4096, 4097] {
            let mut block = Block::new(len).unwrap();
            assert_eq!(block.bytes().len(), len);
            assert_eq!(block.bytes().as_ptr().align_offset(64), 0);
            block.bytes_mut().fill(7);
            assert!(block.bytes().iter().all(|&byte| byte == 7));
        }
    }

    #[test]
    fn an_absurd_size_is_an_error() {
        let error = Block::new(usize::MAX / 2).err().unwrap();
        assert_eq!(error.code(), Code::ResourceExhausted);
    }

    #[test]
    fn a_buffer_gives_its_block_back_unshared() {
        let buffer = Buffer::new(Arc::new(Block::copy_of(&[1, 2, 3]).unwrap()));
        let block = block_of(buffer).unwrap();
        assert_eq!(Arc::strong_count(&block), 1);
        assert_eq!(block.bytes(), [1, 2, 3]);
    }

    #[test]
    fn memory_of_another_backend_is_copied() {
        struct Foreign;
        impl DeviceMemory for Foreign {
            fn bytes(&self) -> &[u8] {
                &[9, 8]
            }
        }
        let block = block_of(Buffer::new(Arc::new(Foreign))).unwrap();
        assert_eq!(block.bytes(), [9, 8]);
    }
}
