//! Memory of the CPU devices: byte blocks that start on a cache line.
//!
//! A [`Block`] has one owner while it is written and is shared behind an `Arc` afterwards; it is
//! written again only by whoever holds its last reference, and never if it is the host's. Its first
//! byte is aligned so that every element type may be read in place, to a cache line if it was
//! allocated here. Which memory it is, the process's own or one that other
//! processes can read, is the [`DeviceAllocator`]'s to say.

use std::any::Any;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::spare::{Lines, Spare};
use crate::backend::{Buffer, DeviceAllocator, DeviceBytes, DeviceMemory};
use crate::ifrt::{Code, Result, Status};

/// One cache line.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Line([u8; LINE_BYTES]);

const LINE_BYTES: usize = 64;

/// Of a pair of 64-bit numbers.
const WIDEST_ELEMENT_BYTES: usize = 16;

/// A run of bytes aligned to a cache line.
#[derive(Default)]
pub(crate) struct Block {
    storage: Storage,
    len: usize,
}

enum Storage {
    Heap(Lines),
    Device(Box<dyn DeviceBytes>),
    /// Somebody else's, never written; aligned for every element type only.
    Host(Arc<dyn AsRef<[u8]> + Send + Sync>),
}

/// Where blocks come from: an allocator, if there is one, and the heap.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    device: Option<Arc<dyn DeviceAllocator>>,
    spare: Arc<Spare>,
}

impl Memory {
    /// The memory of `allocator`, and of the heap what it does not provide.
    pub(crate) fn new(allocator: Arc<dyn DeviceAllocator>) -> Self {
        Self { device: Some(allocator), spare: Arc::default() }
    }

    /// A block of `len` bytes; what it holds is unspecified.
    pub(crate) fn block(&self, len: usize) -> Result<Block> {
        Ok(Block { storage: self.storage(len)?, len })
    }

    /// A block that holds a copy of `bytes`.
    pub(crate) fn copy(&self, bytes: &[u8]) -> Result<Block> {
        let mut block = self.block(bytes.len())?;
        block.bytes_mut().copy_from_slice(bytes);
        Ok(block)
    }

    /// Makes `block` `len` bytes long; what it then holds is unspecified.
    ///
    /// Memory is taken when the block has never been this long, and given back never.
    pub(crate) fn resize(&self, block: &mut Block, len: usize) -> Result<()> {
        if len > block.storage.bytes().len() {
            // What the block held is dropped first: it need not be copied into the new memory.
            block.storage = Storage::default();
            block.storage = self.storage(len)?;
        }
        block.len = len;
        Ok(())
    }

    fn storage(&self, len: usize) -> Result<Storage> {
        let device = self.device.as_ref().and_then(|device| device.allocate(len));
        if let Some(bytes) = device
            && bytes.len() >= len
            && bytes.as_ptr().align_offset(LINE_BYTES) == 0
        {
            return Ok(Storage::Device(bytes));
        }
        let lines = Lines::new(len.div_ceil(LINE_BYTES), &self.spare).map_err(|error| {
            let message = format!("no memory for a buffer of {len} bytes: {error}");
            Status::new(Code::ResourceExhausted, message)
        })?;
        Ok(Storage::Heap(lines))
    }
}

impl Storage {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Heap(memory) => bytemuck::cast_slice(&memory.lines),
            Self::Device(bytes) => bytes,
            Self::Host(bytes) => (**bytes).as_ref(),
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Heap(memory) => bytemuck::cast_slice_mut(&mut memory.lines),
            Self::Device(bytes) => bytes,
            // See `Block::is_writable`.
            Self::Host(_) => &mut [],
        }
    }
}

impl Default for Storage {
    fn default() -> Self {
        Self::Heap(Lines::default())
    }
}

impl Block {
    /// A block that lies where `bytes` do; `None` when they are not aligned for every element type.
    pub(crate) fn in_place(bytes: Arc<dyn AsRef<[u8]> + Send + Sync>) -> Option<Self> {
        let slice = (*bytes).as_ref();
        let len = slice.len();
        let is_aligned = slice.as_ptr().align_offset(WIDEST_ELEMENT_BYTES) == 0;
        is_aligned.then_some(Self { storage: Storage::Host(bytes), len })
    }

    /// Whether its only owner may write to it.
    pub(crate) fn is_writable(&self) -> bool {
        !matches!(self.storage, Storage::Host(_))
    }

    /// The contents.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.storage.bytes()[..self.len]
    }

    /// The contents, to be written.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.storage.bytes_mut()[..self.len]
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
        return Ok(Arc::new(Memory::default().copy(memory.bytes())?));
    }
    let memory: Arc<dyn Any + Send + Sync> = memory;
    memory.downcast().map_err(|_| Status::internal("device memory changed its type"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An allocator of `len` bytes per call, `offset` bytes away from a cache line.
    struct Fixed {
        len: usize,
        offset: usize,
    }

    struct Piece(Vec<Line>, std::ops::Range<usize>);

    impl std::ops::Deref for Piece {
        type Target = [u8];
        fn deref(&self) -> &[u8] {
            &bytemuck::cast_slice(&self.0)[self.1.clone()]
        }
    }

    impl std::ops::DerefMut for Piece {
        fn deref_mut(&mut self) -> &mut [u8] {
            &mut bytemuck::cast_slice_mut(&mut self.0)[self.1.clone()]
        }
    }

    impl DeviceAllocator for Fixed {
        fn allocate(&self, _len: usize) -> Option<Box<dyn DeviceBytes>> {
            let lines = vec![Line::zeroed(); 100];
            Some(Box::new(Piece(lines, self.offset..self.offset + self.len)))
        }
    }

    fn is_device(block: &Block) -> bool {
        matches!(block.storage, Storage::Device(_))
    }

    #[test]
    fn blocks_come_from_the_allocator_if_what_it_gives_is_fit() {
        for (len, offset, from_device) in [(128, 0, true), (127, 0, false), (128, 1, false)] {
            let memory = Memory::new(Arc::new(Fixed { len, offset }));
            let mut block = memory.copy(&[7; 128]).unwrap();
            assert_eq!((is_device(&block), block.bytes()), (from_device, [7; 128].as_slice()));
            // Shorter and as long again: the same memory. Longer: the heap.
            memory.resize(&mut block, 3).unwrap();
            memory.resize(&mut block, 128).unwrap();
            assert_eq!((is_device(&block), block.bytes()), (from_device, [7; 128].as_slice()));
            memory.resize(&mut block, 129).unwrap();
            assert_eq!((is_device(&block), block.bytes()), (false, [0; 129].as_slice()));
        }
    }

    #[test]
    fn blocks_are_aligned_and_exactly_as_long_as_asked() {
        for len in [0, 1, 63, 64, 65, 4096, 4097] {
            let mut block = Memory::default().block(len).unwrap();
            assert_eq!(block.bytes().len(), len);
            assert_eq!(block.bytes().as_ptr().align_offset(64), 0);
            block.bytes_mut().fill(7);
            assert!(block.bytes().iter().all(|&byte| byte == 7));
        }
    }

    #[test]
    fn memory_of_the_host_stays_where_it_is_and_is_never_written() {
        let lines: Arc<Vec<Line>> = Arc::new(vec![Line([7; LINE_BYTES]); 2]);
        struct Tail(Arc<Vec<Line>>, usize);
        impl AsRef<[u8]> for Tail {
            fn as_ref(&self) -> &[u8] {
                &bytemuck::cast_slice(&self.0)[self.1..]
            }
        }
        for (offset, fits) in [(0, true), (16, true), (8, false), (1, false)] {
            let place = lines.as_ptr().addr() + offset;
            let block = Block::in_place(Arc::new(Tail(Arc::clone(&lines), offset)));
            assert_eq!(block.is_some(), fits);
            let Some(block) = block else { continue };
            assert_eq!((block.bytes().as_ptr().addr(), block.is_writable()), (place, false));
            let buffer = Buffer::new(Arc::new(block));
            assert_eq!(block_of(buffer).unwrap().bytes().len(), 128 - offset);
        }
        assert!(Memory::default().block(1).unwrap().is_writable());
        assert_eq!(Arc::strong_count(&lines), 1);
    }

    #[test]
    fn an_absurd_size_is_an_error() {
        let error = Memory::default().block(usize::MAX / 2).err().unwrap();
        assert_eq!(error.code(), Code::ResourceExhausted);
    }

    #[test]
    fn a_buffer_gives_its_block_back_unshared() {
        let buffer = Buffer::new(Arc::new(Memory::default().copy(&[1, 2, 3]).unwrap()));
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
