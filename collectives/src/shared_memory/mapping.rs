//! The mapping of a segment's file: its addresses, and every access to them.
//!
//! Owns the file, the addresses, and the guarantees that make the safe functions here safe:
//!
//! - The file is sealed against shrinking before it is mapped, so that no process can take pages
//!   away from under another's feet.
//! - A mapping has parts that do not overlap: signals and words, which are atomics; the private
//!   part, which this process writes through [`Extent`]s; and the rest, which is mapped read-only.
//! - Extents do not overlap. There is one at first, and extents are only split and joined. So no
//!   mistake of an allocator can lend a byte twice.

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mmap_anonymous, mprotect, munmap,
};

/// Bytes of a huge page, to a multiple of which the file is mapped.
pub(super) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// What keeps the pages of a file in place.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A file in memory of `length_bytes` zeros that take no pages yet, and that length for good.
pub(super) fn create_file(length_bytes: u64) -> io::Result<OwnedFd> {
    let create = |flags| memfd_create(c"lockstep-segment", flags);
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Hosts that forbid executable files in memory insist on the flag; older kernels lack it.
    let file = match create(flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => create(flags)?,
        created => created?,
    };
    rustix::fs::ftruncate(&file, length_bytes)?;
    fcntl_add_seals(&file, SEALS)?;
    Ok(file)
}

/// Which bytes of a file are what, in pages.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// The whole.
    pub(super) length_bytes: usize,
    /// Atomics that threads can sleep on.
    pub(super) signals: Range<usize>,
    /// Atomics.
    pub(super) words: Range<usize>,
    /// What this process alone writes.
    pub(super) private: Range<usize>,
}

/// A segment's file in this process's address space.
pub(super) struct Mapping {
    /// The addresses, a huge page more than the file needs, and where it begins in them.
    reserved: NonNull<u8>,
    base: NonNull<u8>,
    parts: Parts,
    file: OwnedFd,
}

// SAFETY: the memory stays mapped at the same address until the drop, for all threads alike, and
// what is not an atomic is written only through an extent, which has one owner.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `file`, and makes the extent that covers all of the private part.
    ///
    /// # Errors
    /// When the file is shorter than the parts say or could become so, when the parts overlap or
    /// are not in pages, or when the system has no addresses for it.
    pub(super) fn new(file: OwnedFd, parts: Parts) -> io::Result<(Arc<Self>, Extent)> {
        let invalid = |detail| io::Error::new(io::ErrorKind::InvalidInput, detail);
        let Parts { length_bytes, signals, words, private } = parts.clone();
        let size = u64::try_from(rustix::fs::fstat(&file)?.st_size).unwrap_or(0);
        if u64::try_from(length_bytes).map_or(true, |length| length > size) {
            return Err(invalid("the file is shorter than the segment"));
        }
        if !rustix::fs::fcntl_get_seals(&file)?.contains(SealFlags::SHRINK) {
            return Err(invalid("the file is not sealed against shrinking"));
        }
        let page = rustix::param::page_size();
        let ordered = signals.start <= signals.end
            && signals.end <= words.start
            && words.start <= words.end
            && words.end <= private.start
            && private.start <= private.end
            && private.end <= length_bytes;
        let in_pages = |range: &Range<usize>| {
            range.start.is_multiple_of(page) && range.end.is_multiple_of(page)
        };
        let in_pages = [&signals, &words, &private].into_iter().all(in_pages);
        if !ordered || !in_pages || !length_bytes.is_multiple_of(page) {
            return Err(invalid("the parts of the segment are not pages in order"));
        }
        let reserved_bytes = length_bytes
            .checked_add(HUGE_PAGE_BYTES)
            .ok_or_else(|| invalid("the segment is larger than all addresses"))?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice replaces none.
        let reserved =
            unsafe { mmap_anonymous(ptr::null_mut(), reserved_bytes, ProtFlags::empty(), flags) }?;
        let reserved =
            NonNull::new(reserved.cast::<u8>()).ok_or_else(|| invalid("mapped at address 0"))?;
        let before =
            reserved.addr().get().next_multiple_of(HUGE_PAGE_BYTES) - reserved.addr().get();
        // SAFETY: the addresses reserved are a huge page more than the file needs.
        let base = unsafe { reserved.add(before) };
        // From here on the addresses are given back when it is dropped.
        let mapping = Arc::new(Self { reserved, base, parts, file });
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        let (address, file) = (base.as_ptr().cast(), &mapping.file);
        // SAFETY: what it replaces is reserved for it, and nothing refers to it yet.
        unsafe { mmap(address, length_bytes, ProtFlags::READ, flags, file, 0) }?;
        for writable in [signals, words, private.clone()] {
            let flags = MprotectFlags::READ | MprotectFlags::WRITE;
            // SAFETY: the pages are this mapping's, and nothing refers to them yet.
            unsafe { mprotect(mapping.at(writable.start).cast(), writable.len(), flags) }?;
        }
        // A core dump need not walk terabytes of holes. A forked child would share the memory but
        // not the allocator's knowledge of it: better that it stops than that both write.
        for advice in [Advice::LinuxDontDump, Advice::LinuxDontFork] {
            // SAFETY: neither advice changes what this process finds in its memory.
            unsafe { madvise(mapping.base.as_ptr().cast(), length_bytes, advice) }?;
        }
        let extent =
            Extent { mapping: Arc::clone(&mapping), offset: private.start, length: private.len() };
        Ok((mapping, extent))
    }

    /// The file.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The atomics that threads can sleep on: futexes are no larger.
    pub(super) fn signals(&self) -> &[AtomicU32] {
        let signals = &self.parts.signals;
        // SAFETY: as for `words`.
        unsafe {
            slice::from_raw_parts(self.at(signals.start).cast(), signals.len() / size_of::<u32>())
        }
    }

    /// The part that is atomics.
    pub(super) fn words(&self) -> &[AtomicU64] {
        let words = &self.parts.words;
        // SAFETY: the range is mapped to write for as long as `self` lives and aligned to a page;
        // every bit pattern is a word; no extent covers it, and all processes access it as atomics.
        unsafe {
            slice::from_raw_parts(self.at(words.start).cast(), words.len() / size_of::<u64>())
        }
    }

    /// Where in the file `bytes` begin, if all of them lie in the private part.
    pub(super) fn offset_of(&self, bytes: &[u8]) -> Option<usize> {
        let start = bytes.as_ptr().addr().checked_sub(self.base.as_ptr().addr())?;
        let end = start.checked_add(bytes.len())?;
        (start >= self.parts.private.start && end <= self.parts.private.end).then_some(start)
    }

    /// The bytes in `range`; `None` unless all of them lie behind the words.
    ///
    /// Their owner, this process or another, leaves them as they are while the slice lives; the
    /// kernel does not enforce it. A peer that breaks this can make the values read meaningless,
    /// as it could by sending others. It cannot make the memory go away.
    pub(super) fn bytes(&self, range: Range<usize>) -> Option<&[u8]> {
        let inside = range.start >= self.parts.words.end && range.end <= self.parts.length_bytes;
        if !inside || range.start > range.end {
            return None;
        }
        // SAFETY: the range is mapped to read for as long as `self` lives, and holds no atomics;
        // its owner does not write it meanwhile, see above.
        Some(unsafe { slice::from_raw_parts(self.at(range.start), range.len()) })
    }

    /// The address of an offset that is at most the mapping's length.
    fn at(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset <= self.parts.length_bytes, "offset {offset} of {:?}", self.parts);
        // SAFETY: all callers stay inside the mapping or at its end.
        unsafe { self.base.as_ptr().add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let bytes = self.parts.length_bytes + HUGE_PAGE_BYTES;
        // SAFETY: extents keep the mapping alive, and all other references borrow it. The system
        // refuses only ranges that are not mapped.
        let _ = unsafe { munmap(self.reserved.as_ptr().cast(), bytes) };
    }
}

/// Bytes of a mapping's private part that this value alone refers to.
pub(super) struct Extent {
    mapping: Arc<Mapping>,
    offset: usize,
    length: usize,
}

impl Extent {
    /// Where in the file it begins.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// Where in the file it ends.
    pub(super) fn end(&self) -> usize {
        self.offset + self.length
    }

    /// Keeps the first `at` bytes; returns the others.
    ///
    /// # Panics
    /// When it has fewer than `at` bytes.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        assert!(at <= self.length, "cannot split {} bytes at {at}", self.length);
        let (offset, length) = (self.offset + at, self.length - at);
        self.length = at;
        Self { mapping: Arc::clone(&self.mapping), offset, length }
    }

    /// Takes `next` in if it begins where this one ends; gives it back otherwise.
    pub(super) fn join(&mut self, next: Self) -> Result<(), Self> {
        if !Arc::ptr_eq(&self.mapping, &next.mapping) || self.end() != next.offset {
            return Err(next);
        }
        self.length += next.length;
        Ok(())
    }

    /// Has the system provide all pages now, so that no later access can fail for lack of memory;
    /// huge ones where there are any.
    ///
    /// # Errors
    /// When there is no memory, or the extent is not in pages.
    pub(super) fn commit(&mut self) -> io::Result<()> {
        self.collapse();
        // SAFETY: no byte changes; the range is this extent's.
        match unsafe { madvise(self.address(), self.length, Advice::LinuxPopulateWrite) } {
            // Kernels before 5.14 do not know it.
            Err(Errno::INVAL) => {
                let bytes = |count| u64::try_from(count).map_err(|_| Errno::OVERFLOW);
                let (offset, length) = (bytes(self.offset)?, bytes(self.length)?);
                Ok(fallocate(&self.mapping.file, FallocateFlags::empty(), offset, length)?)
            }
            // What the system would say with a signal if the page were touched.
            Err(Errno::FAULT) => Err(Errno::NOMEM.into()),
            populated => Ok(populated?),
        }
    }

    /// Asks for huge pages, which the system has for files in memory if it is asked like this,
    /// whatever its settings say.
    ///
    /// Two ranks gather 16 MiB a fifth faster out of them: a walk through tables is rarer, and what
    /// a processor reads ahead of its program does not end at every 4 KiB.
    fn collapse(&mut self) {
        let first = self.offset.next_multiple_of(HUGE_PAGE_BYTES);
        let Some(last) = self.end().checked_sub(HUGE_PAGE_BYTES) else { return };
        for offset in (first..=last).step_by(HUGE_PAGE_BYTES) {
            let address = self.mapping.at(offset).cast();
            let page_bytes = rustix::param::page_size();
            // What is a hole altogether cannot be made a huge page.
            // SAFETY: no byte changes; the range is this extent's.
            let touched = unsafe { madvise(address, page_bytes, Advice::LinuxPopulateWrite) };
            // SAFETY: the same.
            let collapse =
                || unsafe { libc::madvise(address, HUGE_PAGE_BYTES, libc::MADV_COLLAPSE) };
            if touched.is_err() || collapse() != 0 {
                // There are none left, or the system does not know them: pages stay small.
                return;
            }
        }
    }

    /// Gives the pages back to the system. All bytes are zero then.
    ///
    /// # Errors
    /// When the extent is not in pages.
    pub(super) fn discard(&mut self) -> io::Result<()> {
        // By address rather than through the file: a forked child has the file, too, but not the
        // addresses.
        // SAFETY: the range is this extent's, which is borrowed exclusively.
        Ok(unsafe { madvise(self.address(), self.length, Advice::LinuxRemove) }?)
    }

    fn address(&self) -> *mut std::ffi::c_void {
        self.mapping.at(self.offset).cast()
    }
}

impl Deref for Extent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: mapped for as long as `mapping` lives, and written only through `deref_mut`.
        unsafe { slice::from_raw_parts(self.mapping.at(self.offset), self.length) }
    }
}

impl DerefMut for Extent {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, mapped to write; no other extent covers these bytes.
        unsafe { slice::from_raw_parts_mut(self.mapping.at(self.offset), self.length) }
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapping")
            .field("base", &self.base)
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Extent({}..{})", self.offset, self.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(pages: usize, words: Range<usize>, private: Range<usize>) -> Parts {
        let page = rustix::param::page_size();
        let bytes = |range: Range<usize>| range.start * page..range.end * page;
        Parts {
            length_bytes: pages * page,
            signals: bytes(0..words.start.min(1)),
            words: bytes(words),
            private: bytes(private),
        }
    }

    fn map(pages: usize, parts: Parts) -> io::Result<(Arc<Mapping>, Extent)> {
        let page = rustix::param::page_size();
        Mapping::new(create_file(u64::try_from(pages * page).unwrap())?, parts)
    }

    #[test]
    fn refuses_parts_that_overlap_or_reach_beyond_the_file() {
        assert!(map(8, parts(8, 1..3, 5..8)).is_ok());
        for (pages, parts) in [
            (7, parts(8, 1..3, 5..8)),
            (8, parts(8, 1..3, 5..9)),
            (8, parts(8, 1..6, 5..8)),
            (8, parts(8, 6..7, 1..5)),
            (
                8,
                Parts {
                    private: 5 * rustix::param::page_size() + 64..32768,
                    ..parts(8, 1..3, 5..8)
                },
            ),
        ] {
            let error = map(pages, parts.clone()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{parts:?}");
        }
    }

    #[test]
    fn refuses_a_file_that_could_shrink() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create(c"unsealed", flags).unwrap();
        let parts = parts(8, 1..3, 5..8);
        rustix::fs::ftruncate(&file, u64::try_from(parts.length_bytes).unwrap()).unwrap();
        let error = Mapping::new(file, parts).unwrap_err();
        assert!(error.to_string().contains("not sealed"), "{error}");
    }

    /// Without that, no page of it can be huge.
    #[test]
    fn the_file_is_mapped_to_a_multiple_of_a_huge_page() {
        let (mapping, mut extent) = map(1030, parts(1030, 1..3, 5..1030)).unwrap();
        assert_eq!(mapping.at(0).addr() % HUGE_PAGE_BYTES, 0);
        extent.commit().unwrap();
        assert!(extent.iter().all(|byte| *byte == 0));
        extent.fill(7);
        extent.discard().unwrap();
        assert!(extent.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn nobody_can_shrink_or_grow_the_file() {
        let (mapping, _extent) = map(8, parts(8, 1..3, 5..8)).unwrap();
        for length in [0, 1 << 30] {
            assert_eq!(rustix::fs::ftruncate(mapping.file(), length), Err(Errno::PERM));
        }
        let unsealed = fcntl_add_seals(mapping.file(), SealFlags::empty());
        assert_eq!(unsealed, Err(Errno::PERM));
    }

    #[test]
    fn extents_join_only_their_neighbours() {
        let (_mapping, mut first) = map(8, parts(8, 1..3, 5..8)).unwrap();
        let mut second = first.split_off(100);
        let third = second.split_off(50);
        assert_eq!((first.len(), second.len()), (100, 50));
        let third = first.join(third).unwrap_err();
        second.fill(7);
        second.join(third).unwrap();
        first.join(second).unwrap();
        assert_eq!(first[99..151], [[0].as_slice(), &[7; 50], &[0]].concat());
        let (_other, foreign) = map(8, parts(8, 1..3, 5..8)).unwrap();
        let beyond = first.split_off(foreign.offset() + 100 - first.offset());
        drop(beyond);
        let mut foreign = foreign;
        let foreign = foreign.split_off(100);
        assert!(first.join(foreign).is_err(), "adjacent by offset, but of another mapping");
    }

    const WRITES: &str = "LOCKSTEP_TEST_WRITES";

    /// Writes to memory that is another's, in the process that the next test starts.
    #[test]
    fn writing_where_only_reading_is_allowed() {
        if std::env::var_os(WRITES).is_none() {
            return;
        }
        let page = rustix::param::page_size();
        let (mapping, mut extent) = map(8, parts(8, 1..3, 5..7)).unwrap();
        extent.fill(1);
        // SAFETY: none, which is the point: the page is mapped, and not to be written.
        unsafe { mapping.at(7 * page).write_volatile(1) };
    }

    #[test]
    fn the_kernel_ends_a_process_that_writes_to_a_peers_memory() {
        use std::os::unix::process::ExitStatusExt;

        let name = "shared_memory::mapping::tests::writing_where_only_reading_is_allowed";
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env(WRITES, "1")
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.signal(), Some(rustix::process::Signal::SEGV.as_raw()));
    }

    #[test]
    fn discarded_pages_are_zero_and_no_longer_in_the_file() {
        let (mapping, mut extent) = map(8, parts(8, 1..3, 5..8)).unwrap();
        let blocks = || rustix::fs::fstat(mapping.file()).unwrap().st_blocks;
        extent.commit().unwrap();
        assert_eq!(blocks() * 512, i64::try_from(extent.len()).unwrap());
        extent.fill(9);
        extent.discard().unwrap();
        assert_eq!(blocks(), 0);
        assert!(extent.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn offsets_and_views_stay_inside_their_parts() {
        let page = rustix::param::page_size();
        let (mapping, extent) = map(8, parts(8, 1..3, 5..7)).unwrap();
        assert_eq!(mapping.offset_of(&extent), Some(5 * page));
        assert_eq!(mapping.offset_of(&extent[3..9]), Some(5 * page + 3));
        assert_eq!(mapping.offset_of(mapping.bytes(3 * page..4 * page).unwrap()), None);
        assert_eq!(mapping.offset_of(mapping.bytes(6 * page..8 * page).unwrap()), None);
        assert_eq!(mapping.offset_of(&[1, 2, 3]), None);
        assert_eq!(mapping.words().len(), 2 * page / 8);
        assert_eq!(mapping.signals().len(), page / 4);
        for (range, inside) in [
            (3 * page..8 * page, true),
            (8 * page..8 * page, true),
            (3 * page - 1..8 * page, false),
            (0..0, false),
            (3 * page..8 * page + 1, false),
            (usize::MAX..usize::MAX, false),
        ] {
            assert_eq!(mapping.bytes(range.clone()).is_some(), inside, "{range:?}");
        }
    }
}
