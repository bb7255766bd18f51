// SPDX-License-Identifier: Apache-2.0
//! Host memory that the card accesses by bus address.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};

use crate::error::{Error, Result};
use crate::protocol::desc::{HUGE, PAGE};
use viaduct_pci::{DmaAccess, HostMemory, PciError, PciFunction, without_sigxfsz};

/// Range of allocated bus addresses: above 4 GiB, within the limits of a 39-bit IOMMU.
const FIRST: u64 = 1 << 32;
const END: u64 = 1 << 39;

/// Allocates bus addresses of one card, first fit.
pub struct DmaArena {
    pci: Arc<dyn PciFunction>,
    free: Mutex<BTreeMap<u64, u64>>, // start -> length, never adjacent
}

impl DmaArena {
    /// An arena with every bus address free.
    pub fn new(pci: Arc<dyn PciFunction>) -> Arc<Self> {
        Arc::new(Self { pci, free: Mutex::new(BTreeMap::from([(FIRST, END - FIRST)])) })
    }

    /// Allocates zeroed memory of at least `len` bytes that the card may use as `access` says. Memory of 2 MiB and more
    /// is aligned to 2 MiB, other memory to 4 KiB, and rounded up likewise.
    pub fn alloc(self: &Arc<Self>, len: u64, access: DmaAccess) -> Result<DmaBuffer> {
        let align = if len >= HUGE { HUGE } else { PAGE };
        let too_long =
            || Error::Invalid(format!("{len} bytes of DMA memory are more than the space of bus addresses"));
        let len = len.max(1).checked_next_multiple_of(align).ok_or_else(too_long)?;
        let size = usize::try_from(len).map_err(|_| too_long())?;
        let memory = if align == HUGE { HostMemory::with_huge_pages(size)? } else { HostMemory::new(size)? };
        let memory = Arc::new(memory);
        let iova = self.take(len, align).ok_or_else(too_long)?;
        if let Err(error) = self.pci.dma_map(iova, Arc::clone(&memory), access) {
            // After a time-out it may be mapped all the same, and the address must not be used again.
            if !matches!(error, PciError::Timeout(_)) {
                self.give_back(iova, len);
            }
            return Err(error.into());
        }
        Ok(DmaBuffer { arena: Arc::clone(self), memory, iova, len, keep_address: AtomicBool::new(false) })
    }

    fn take(&self, len: u64, align: u64) -> Option<u64> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let (start, size, at) = free.iter().find_map(|(&start, &size)| {
            let at = start.next_multiple_of(align);
            (at.checked_add(len)? <= start + size).then_some((start, size, at))
        })?;
        free.remove(&start);
        if at > start {
            free.insert(start, at - start);
        }
        if at + len < start + size {
            free.insert(at + len, start + size - at - len);
        }
        Some(at)
    }

    fn give_back(&self, mut start: u64, mut len: u64) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(after) = free.remove(&(start + len)) {
            len += after;
        }
        if let Some((&before, &size)) = free.range(..start).next_back() {
            if before + size == start {
                free.remove(&before);
                start = before;
                len += size;
            }
        }
        free.insert(start, len);
    }
}

/// Memory mapped for the card until dropped.
pub struct DmaBuffer {
    arena: Arc<DmaArena>,
    memory: Arc<HostMemory>,
    iova: u64,
    len: u64,
    keep_address: AtomicBool,
}

impl DmaBuffer {
    /// Bus address of the first byte.
    pub fn iova(&self) -> u64 {
        self.iova
    }

    /// Bytes, rounded up as in [`DmaArena::alloc`].
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The memory itself.
    pub fn memory(&self) -> &Arc<HostMemory> {
        &self.memory
    }

    /// Never reuses the bus address: the card may still hold a translation to it.
    pub fn retire(&self) {
        self.keep_address.store(true, Ordering::Relaxed);
    }

    /// Reads up to `len` bytes at `position` of `file` to `offset` of the buffer. Returns fewer only at the end of the
    /// file. The kernel copies directly from its page cache: no other copy is made.
    ///
    /// # Panics
    /// If the range is outside the buffer.
    pub fn read_file(&self, offset: usize, len: usize, file: &File, position: u64) -> io::Result<usize> {
        self.transfer(offset, len, |ptr, len, done| {
            // SAFETY: `transfer` passes a range inside the mapping, which no Rust reference covers.
            unsafe { libc::pread(file.as_raw_fd(), ptr.cast(), len, to_off(position, done)?) }.try_into_size()
        })
        .map_err(|(_, error)| error)
    }

    /// As [`DmaBuffer::read_file`], if the system has all of the bytes in memory; `None` if it would wait for a disk.
    ///
    /// # Panics
    /// If the range is outside the buffer.
    pub fn read_cached(
        &self,
        offset: usize,
        len: usize,
        file: &File,
        position: u64,
    ) -> io::Result<Option<usize>> {
        let read = self.transfer(offset, len, |ptr, len, done| {
            let part = libc::iovec { iov_base: ptr.cast(), iov_len: len };
            let at = to_off(position, done)?;
            // SAFETY: as in `read_file`; the vector has one entry and is only read.
            unsafe { libc::preadv2(file.as_raw_fd(), &part, 1, at, libc::RWF_NOWAIT) }.try_into_size()
        });
        match read.map_err(|(_, error)| error) {
            Ok(got) => Ok(Some(got)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => match error.raw_os_error() {
                // Some file systems cannot tell. What is in one that is memory need not be waited for.
                Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL) if in_memory(file) => {
                    self.read_file(offset, len, file, position).map(Some)
                }
                Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL) => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// Writes `len` bytes at `offset` of the buffer to `position` of `file`. On failure returns how many bytes are
    /// written.
    ///
    /// # Panics
    /// If the range is outside the buffer.
    pub fn write_file(
        &self,
        offset: usize,
        len: usize,
        file: &File,
        position: u64,
    ) -> std::result::Result<(), (usize, io::Error)> {
        let written = self.transfer(offset, len, |ptr, len, done| {
            let at = to_off(position, done)?;
            // The error is read before another call can change it.
            without_sigxfsz(|| {
                // SAFETY: `transfer` passes a range inside the mapping, which no Rust reference covers.
                unsafe { libc::pwrite(file.as_raw_fd(), ptr.cast(), len, at) }.try_into_size()
            })
        })?;
        if written < len {
            return Err((written, io::ErrorKind::WriteZero.into()));
        }
        Ok(())
    }

    /// Repeats a system call until all is transferred, it transfers nothing, or it fails.
    fn transfer(
        &self,
        offset: usize,
        len: usize,
        mut call: impl FnMut(*mut u8, usize, usize) -> io::Result<usize>,
    ) -> std::result::Result<usize, (usize, io::Error)> {
        let fits = offset.checked_add(len).is_some_and(|end| end as u64 <= self.len);
        assert!(fits, "{len} bytes at {offset} are outside a buffer of {} bytes", self.len);
        let mut done = 0;
        while done < len {
            let ptr = self.memory.as_ptr().wrapping_add(offset + done);
            match call(ptr, len - done, done) {
                Ok(0) => break,
                Ok(n) => done += n.min(len - done),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err((done, error)),
            }
        }
        Ok(done)
    }
}

impl Drop for DmaBuffer {
    fn drop(&mut self) {
        match self.arena.pci.dma_unmap(self.iova) {
            Ok(()) if !self.keep_address.load(Ordering::Relaxed) => self.arena.give_back(self.iova, self.len),
            // With the card its mapping is gone; a child of a fork has none.
            Ok(()) | Err(PciError::Gone(_) | PciError::Forked) => {}
            Err(error) => tracing::warn!(%error, iova = self.iova, "DMA memory could not be unmapped"),
        }
    }
}

/// Whether a file is on a file system without a disk.
fn in_memory(file: &File) -> bool {
    fstatfs(file).is_ok_and(|on| on.filesystem_type() == TMPFS_MAGIC)
}

fn to_off(position: u64, done: usize) -> io::Result<libc::off_t> {
    position
        .checked_add(done as u64)
        .and_then(|at| libc::off_t::try_from(at).ok())
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EFBIG))
}

trait SizeOrErrno {
    fn try_into_size(self) -> io::Result<usize>;
}

impl SizeOrErrno for libc::ssize_t {
    fn try_into_size(self) -> io::Result<usize> {
        usize::try_from(self).map_err(|_| io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Refuses memory of 5 pages, and does not say whether it has mapped that of 6.
    struct NoCard;
    impl PciFunction for NoCard {
        fn info(&self) -> &viaduct_pci::FunctionInfo {
            unreachable!()
        }
        fn config_read(&self, _: u16, _: &mut [u8]) -> viaduct_pci::Result<()> {
            unreachable!()
        }
        fn config_write(&self, _: u16, _: &[u8]) -> viaduct_pci::Result<()> {
            unreachable!()
        }
        fn read32(&self, _: u8, _: u64) -> viaduct_pci::Result<u32> {
            unreachable!()
        }
        fn write32(&self, _: u8, _: u64, _: u32) -> viaduct_pci::Result<()> {
            unreachable!()
        }
        fn dma_map(&self, _: u64, memory: Arc<HostMemory>, _: DmaAccess) -> viaduct_pci::Result<()> {
            match memory.len() as u64 / PAGE {
                5 => Err(PciError::Busy("refused".into())),
                6 => Err(PciError::Timeout(std::time::Duration::ZERO)),
                _ => Ok(()),
            }
        }
        fn dma_unmap(&self, _: u64) -> viaduct_pci::Result<()> {
            Ok(())
        }
        fn wait_irq(&self, _: u64, _: std::time::Duration) -> viaduct_pci::Result<u64> {
            unreachable!()
        }
        fn reset(&self) -> viaduct_pci::Result<()> {
            unreachable!()
        }
    }

    proptest! {
        #[test]
        fn bus_addresses_never_overlap_and_all_come_back(
            steps in proptest::collection::vec((any::<bool>(), 1u64..5_000_000, any::<prop::sample::Index>()), 1..60)
        ) {
            let arena = DmaArena::new(Arc::new(NoCard));
            let mut held: Vec<(u64, u64)> = Vec::new();
            for (take, len, which) in steps {
                if take || held.is_empty() {
                    let align = if len >= HUGE { HUGE } else { PAGE };
                    let len = len.next_multiple_of(align);
                    let at = arena.take(len, align).unwrap();
                    prop_assert_eq!(at % align, 0);
                    prop_assert!(held.iter().all(|&(a, l)| at + len <= a || a + l <= at));
                    held.push((at, len));
                } else {
                    let (at, len) = held.swap_remove(which.index(held.len()));
                    arena.give_back(at, len);
                }
            }
            for (at, len) in held {
                arena.give_back(at, len);
            }
            let free = arena.free.lock().unwrap();
            prop_assert_eq!(free.iter().collect::<Vec<_>>(), [(&FIRST, &(END - FIRST))]);
        }
    }

    #[test]
    fn an_address_that_may_be_mapped_is_not_used_again() {
        let arena = DmaArena::new(Arc::new(NoCard));
        let alloc = |pages| arena.alloc(pages * PAGE, DmaAccess::Read);
        assert!(alloc(5).is_err());
        assert_eq!(alloc(1).unwrap().iova(), FIRST);
        assert!(alloc(6).is_err());
        assert_eq!(alloc(1).unwrap().iova(), FIRST + 6 * PAGE);
    }

    #[test]
    fn files_are_copied_straight_in_and_out() {
        let arena = DmaArena::new(Arc::new(NoCard));
        let buffer = arena.alloc(10_000, DmaAccess::ReadWrite).unwrap();
        assert_eq!(buffer.len(), 12288);
        let file = tempfile::tempfile().unwrap();
        buffer.memory().write(100, b"viaduct");
        buffer.write_file(100, 7, &file, 5).unwrap();
        assert_eq!(buffer.read_file(4096, 4096, &file, 0).unwrap(), 12);
        let mut back = [0; 12];
        buffer.memory().read(4096, &mut back);
        assert_eq!(&back, b"\0\0\0\0\0viaduct");
    }
}
