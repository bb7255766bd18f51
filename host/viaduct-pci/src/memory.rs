// SPDX-License-Identifier: Apache-2.0
//! Memory shared by host and card.

use crate::budget::Charge;
use crate::page::PAGE_SIZE;
use crate::{DmaAccess, PciError, Result};
use std::ffi::CString;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, SealFlag, fcntl};
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, munmap};

/// Page-aligned shared memory behind a file descriptor, mapped for as long as the value lives.
///
/// The memory can be passed to another process by its descriptor, and the card may change it at any time. It is
/// therefore never exposed as a slice: bytes are copied in and out, and ring words are read and written atomically.
///
/// The file is sealed against shrinking, so an access never raises `SIGBUS`, even if another process holds
/// a descriptor of it.
#[derive(Debug)]
pub struct HostMemory {
    ptr: NonNull<u8>,
    len: usize,
    fd_offset: u64,
    area: Arc<Area>,
}

// SAFETY: the mapping lives as long as `area`, and all accesses are copies or atomics.
unsafe impl Send for HostMemory {}
// SAFETY: as above; concurrent copies may tear, which is the nature of memory shared with a card.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Allocates zeroed memory of at least `len` bytes, rounded up to whole pages.
    pub fn new(len: usize) -> Result<Self> {
        let len = page_round(len)?;
        let name = CString::new("viaduct").expect("no NUL inside");
        // SAFETY: the name is a valid C string; the call returns a new descriptor or -1.
        let raw = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        if raw < 0 {
            return Err(os("allocating shared memory", std::io::Error::last_os_error()));
        }
        // SAFETY: `raw` was just created and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        // For the kernel this is a file.
        crate::without_sigxfsz(|| nix::unistd::ftruncate(&fd, len as i64)).map_err(|errno| {
            let hint = if errno == Errno::EFBIG { ", which `ulimit -f` is too small for" } else { "" };
            os(format!("allocating {len} bytes of shared memory{hint}"), errno.into())
        })?;
        Self::from_fd(fd.into(), 0, len, DmaAccess::ReadWrite)
    }

    /// As [`HostMemory::new`], asking for 2 MiB pages. If the kernel has none, small pages are used.
    pub fn with_huge_pages(len: usize) -> Result<Self> {
        let memory = Self::new(len)?;
        // SAFETY: the range is exactly our mapping. Failure is harmless: the advice only concerns speed.
        let advised = unsafe { madvise(memory.ptr.cast(), memory.len, MmapAdvise::MADV_HUGEPAGE) };
        if let Err(error) = advised {
            tracing::debug!(%error, "no huge pages for shared memory");
        }
        Ok(memory)
    }

    /// Maps `len` bytes at `offset` of a descriptor received from another process.
    ///
    /// Refuses a file that its sender could shrink later: it must be a memfd that is sealed against shrinking, or
    /// allows that seal to be added here. Refuses hugetlbfs files, whose pages can still vanish (a hole punched by
    /// the sender cannot be refilled from an exhausted pool). Mappings of one file can share the descriptor.
    pub fn from_fd(fd: Arc<OwnedFd>, offset: u64, len: usize, access: DmaAccess) -> Result<Self> {
        check_pages(offset, len)?;
        let file = SealedFile::new(fd)?;
        file.check(offset, len, access)?;
        Ok(Self::part(&Arc::new(Area::map(&file, offset, len, Vec::new())?), offset, len))
    }

    /// Bytes `offset..offset + len` of the file behind `area`, which must cover them.
    ///
    /// # Panics
    /// If it does not cover them.
    pub(crate) fn part(area: &Arc<Area>, offset: u64, len: usize) -> Self {
        assert!(area.covers(offset, len), "{len:#x} bytes at {offset:#x} of a file are not mapped");
        // SAFETY: the offset is inside the mapping.
        let ptr = unsafe { area.ptr.add((offset - area.offset) as usize) };
        Self { ptr, len, fd_offset: offset, area: Arc::clone(area) }
    }

    /// Length in bytes, whole pages.
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> usize {
        self.len
    }

    /// First byte of the mapping, for a card in this process. Valid while `self` lives.
    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Descriptor behind the memory, for passing to another process.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.area.fd.as_fd()
    }

    /// Offset of the mapping in the file behind [`HostMemory::fd`].
    pub fn fd_offset(&self) -> u64 {
        self.fd_offset
    }

    /// Whether the mapping can be written.
    pub fn is_writable(&self) -> bool {
        self.area.writable
    }

    /// Copies bytes out.
    ///
    /// # Panics
    /// If the range is outside the memory, as a slice does.
    pub fn read(&self, offset: usize, buf: &mut [u8]) {
        self.check(offset, buf.len());
        // SAFETY: the range is inside the mapping; `buf` is ours alone and cannot overlap it.
        unsafe { std::ptr::copy_nonoverlapping(self.ptr.as_ptr().add(offset), buf.as_mut_ptr(), buf.len()) }
    }

    /// Copies bytes in.
    ///
    /// # Panics
    /// If the range is outside the memory or the memory is read-only.
    pub fn write(&self, offset: usize, data: &[u8]) {
        self.check_write(offset, data.len());
        // SAFETY: the range is inside the writable mapping; `data` cannot overlap it.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), self.ptr.as_ptr().add(offset), data.len()) }
    }

    /// Sets `len` bytes at `offset` to `value`.
    ///
    /// # Panics
    /// As [`HostMemory::write`].
    pub fn fill(&self, offset: usize, len: usize, value: u8) {
        self.check_write(offset, len);
        // SAFETY: the range is inside the writable mapping.
        unsafe { std::ptr::write_bytes(self.ptr.as_ptr().add(offset), value, len) }
    }

    /// Reads a naturally aligned 64-bit word atomically (little endian, as the card sees it).
    ///
    /// # Panics
    /// If the word is outside the memory or misaligned, or `order` is not a load ordering.
    pub fn read_u64(&self, offset: usize, order: Ordering) -> u64 {
        u64::from_le(self.word64(offset).load(order))
    }

    /// Writes a naturally aligned 64-bit word atomically.
    ///
    /// # Panics
    /// If the word is outside the memory, misaligned or read-only, or `order` is not a store ordering.
    pub fn write_u64(&self, offset: usize, value: u64, order: Ordering) {
        self.check_write(offset, 8);
        self.word64(offset).store(value.to_le(), order);
    }

    /// Reads a naturally aligned 32-bit word atomically.
    ///
    /// # Panics
    /// As [`HostMemory::read_u64`].
    pub fn read_u32(&self, offset: usize, order: Ordering) -> u32 {
        u32::from_le(self.word32(offset).load(order))
    }

    /// Writes a naturally aligned 32-bit word atomically.
    ///
    /// # Panics
    /// As [`HostMemory::write_u64`].
    pub fn write_u32(&self, offset: usize, value: u32, order: Ordering) {
        self.check_write(offset, 4);
        self.word32(offset).store(value.to_le(), order);
    }

    fn word64(&self, offset: usize) -> &AtomicU64 {
        self.check(offset, 8);
        assert!(offset % 8 == 0, "word at {offset:#x} is misaligned");
        // SAFETY: inside the mapping and aligned (the mapping begins on a page); the mapping outlives the reference.
        unsafe { AtomicU64::from_ptr(self.ptr.as_ptr().add(offset).cast()) }
    }

    fn word32(&self, offset: usize) -> &AtomicU32 {
        self.check(offset, 4);
        assert!(offset % 4 == 0, "word at {offset:#x} is misaligned");
        // SAFETY: as in `word64`.
        unsafe { AtomicU32::from_ptr(self.ptr.as_ptr().add(offset).cast()) }
    }

    fn check(&self, offset: usize, len: usize) {
        let fits = offset.checked_add(len).is_some_and(|end| end <= self.len);
        assert!(fits, "{len} bytes at {offset:#x} are outside shared memory of {:#x} bytes", self.len);
    }

    fn check_write(&self, offset: usize, len: usize) {
        self.check(offset, len);
        assert!(self.area.writable, "shared memory is read-only");
    }
}

/// A file that is sealed against shrinking.
pub(crate) struct SealedFile {
    fd: Arc<OwnedFd>,
    /// Minimum size in bytes.
    pub size: u64,
    writable: bool,
}

impl SealedFile {
    /// Seals a file, or refuses it.
    pub fn new(fd: Arc<OwnedFd>) -> Result<Self> {
        forbid_shrinking(&fd).map_err(refused)?;
        let look = |errno: nix::Error| os("checking shared memory", errno.into());
        // From here on the file cannot shrink.
        let size = nix::sys::stat::fstat(fd.as_raw_fd()).map_err(look)?.st_size as u64;
        let flags = fcntl(fd.as_raw_fd(), FcntlArg::F_GETFL).map_err(look)?;
        let writable = OFlag::from_bits_truncate(flags) & OFlag::O_ACCMODE == OFlag::O_RDWR;
        Ok(Self { fd, size, writable })
    }

    /// Refuses a range beyond the file, or an access that its descriptor does not allow. The range must be whole pages.
    pub fn check(&self, offset: u64, len: usize, access: DmaAccess) -> Result<()> {
        let end = offset.saturating_add(len as u64);
        if end > self.size {
            return Err(refused(format!("it has {:#x} bytes, {end:#x} are needed", self.size)));
        }
        if access != DmaAccess::Read && !self.writable {
            return Err(refused("the descriptor is read-only, but the mapping is to be writable".into()));
        }
        Ok(())
    }
}

/// A mapped range of a file. Unmapped when the last [`HostMemory`] in it is dropped.
#[derive(Debug)]
pub(crate) struct Area {
    ptr: NonNull<u8>,
    len: usize,
    /// Offset in the file.
    offset: u64,
    fd: Arc<OwnedFd>,
    writable: bool,
    /// The reserved part of the budget, if there is one.
    _charges: Vec<Arc<Charge>>,
}

// SAFETY: the mapping belongs to the value until drop; the value itself makes no access to it.
unsafe impl Send for Area {}
// SAFETY: as above.
unsafe impl Sync for Area {}

impl Area {
    /// Maps a range that [`SealedFile::check`] accepts, or the whole file.
    pub fn map(file: &SealedFile, offset: u64, len: usize, charges: Vec<Arc<Charge>>) -> Result<Self> {
        let prot = match file.writable {
            true => ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
            false => ProtFlags::PROT_READ,
        };
        let size = NonZeroUsize::new(len).ok_or_else(|| refused("it is empty".into()))?;
        let fd = Arc::clone(&file.fd);
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let ptr = unsafe { mmap(None, size, prot, MapFlags::MAP_SHARED, &*fd, offset as i64) }
            .map_err(|e| os(format!("mapping {len} bytes of shared memory"), e.into()))?
            .cast();
        Ok(Self { ptr, len, offset, fd, writable: file.writable, _charges: charges })
    }

    /// Whether it contains these bytes of the file.
    pub fn covers(&self, offset: u64, len: usize) -> bool {
        let fits = |at: u64| at.checked_add(len as u64).is_some_and(|end| end <= self.len as u64);
        offset.checked_sub(self.offset).is_some_and(fits)
    }

    /// Whether it allows this access by the card.
    pub fn allows(&self, access: DmaAccess) -> bool {
        access == DmaAccess::Read || self.writable
    }

    /// The descriptor it was mapped through.
    pub fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with exactly this extent and is no longer used.
        if let Err(error) = unsafe { munmap(self.ptr.cast(), self.len) } {
            tracing::error!(%error, "unmapping shared memory");
        }
    }
}

/// Refuses a range of a file that is not whole pages, or ends beyond the largest possible file.
pub(crate) fn check_pages(offset: u64, len: usize) -> Result<()> {
    let page = PAGE_SIZE as u64;
    if len == 0 || len as u64 % page != 0 || offset % page != 0 {
        return Err(refused(format!("offset {offset:#x}, length {len:#x} are not whole pages")));
    }
    let end = offset.checked_add(len as u64).filter(|end| *end <= i64::MAX as u64);
    end.map(drop).ok_or_else(|| refused(format!("offset {offset:#x} + length {len:#x} overflows")))
}

fn refused(why: String) -> PciError {
    PciError::Protocol(format!("shared memory refused: {why}"))
}

/// Why a file that cannot be sealed is refused.
pub(crate) const NOT_A_MEMFD: &str = "it is not a memfd, so it could be truncated while in use";

/// Makes sure that the file behind `fd` keeps its pages, whatever other processes do with it.
fn forbid_shrinking(fd: &OwnedFd) -> std::result::Result<(), String> {
    let not_memfd = |_| NOT_A_MEMFD.to_string();
    let seals = fcntl(fd.as_raw_fd(), FcntlArg::F_GET_SEALS).map_err(not_memfd)?;
    if !SealFlag::from_bits_truncate(seals).contains(SealFlag::F_SEAL_SHRINK) {
        fcntl(fd.as_raw_fd(), FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK))
            .map_err(|e| format!("it can shrink and cannot be sealed against that ({})", e.desc()))?;
    }
    let fs = nix::sys::statfs::fstatfs(fd).map_err(|e| e.desc().to_string())?;
    if fs.filesystem_type() == nix::sys::statfs::HUGETLBFS_MAGIC {
        return Err("it is on hugetlbfs; use ordinary or transparent huge pages".into());
    }
    Ok(())
}

fn page_round(len: usize) -> Result<usize> {
    len.max(1)
        .checked_next_multiple_of(PAGE_SIZE)
        .filter(|len| *len <= isize::MAX as usize)
        .ok_or_else(|| PciError::OutOfRange { what: format!("shared memory of {len:#x} bytes") })
}

fn os(what: impl Into<String>, source: std::io::Error) -> PciError {
    PciError::Os { what: what.into(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn bytes_and_words_go_in_and_out() {
        let m = HostMemory::new(5000).unwrap();
        assert_eq!(m.len(), 8192);
        m.write(4990, b"hello");
        let mut back = [0; 5];
        m.read(4990, &mut back);
        assert_eq!(&back, b"hello");
        m.write_u64(8184, 0x1122_3344_5566_7788, Ordering::Release);
        assert_eq!(m.read_u64(8184, Ordering::Acquire), 0x1122_3344_5566_7788);
        assert_eq!(m.read_u32(8184, Ordering::Relaxed), 0x5566_7788);
        m.fill(0, 8192, 0xff);
        assert_eq!(m.read_u64(0, Ordering::Relaxed), u64::MAX);
    }

    #[test]
    fn a_second_mapping_sees_the_same_bytes() {
        let a = HostMemory::with_huge_pages(3 * PAGE_SIZE).unwrap();
        let fd = a.fd().try_clone_to_owned().unwrap();
        let b = HostMemory::from_fd(fd.into(), PAGE_SIZE as u64, PAGE_SIZE, DmaAccess::ReadWrite).unwrap();
        b.write(0, b"x");
        let mut got = [0];
        a.read(PAGE_SIZE, &mut got);
        assert_eq!(&got, b"x");
    }

    #[test]
    fn memory_cannot_shrink_under_the_card() {
        let m = HostMemory::new(PAGE_SIZE).unwrap();
        assert!(nix::unistd::ftruncate(m.fd(), 0).is_err());
    }

    #[test]
    fn a_received_memfd_is_sealed_before_use() {
        // SAFETY: plain system call, checked below.
        let raw = unsafe { libc::memfd_create(c"t".as_ptr(), libc::MFD_ALLOW_SEALING) };
        assert!(raw >= 0);
        // SAFETY: just created.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        nix::unistd::ftruncate(&fd, PAGE_SIZE as i64).unwrap();
        let other = fd.try_clone().unwrap();
        let _m = HostMemory::from_fd(fd.into(), 0, PAGE_SIZE, DmaAccess::ReadWrite).unwrap();
        assert!(nix::unistd::ftruncate(&other, 0).is_err());
    }

    #[test]
    fn files_that_can_shrink_are_refused() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[0; PAGE_SIZE]).unwrap();
        let error =
            HostMemory::from_fd(OwnedFd::from(file).into(), 0, PAGE_SIZE, DmaAccess::Read).unwrap_err();
        assert!(error.to_string().contains("refused"), "{error}");
        // SAFETY: plain system call, checked below.
        let raw = unsafe { libc::memfd_create(c"t".as_ptr(), 0) };
        assert!(raw >= 0);
        // SAFETY: just created. Without MFD_ALLOW_SEALING no seal can be added.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        nix::unistd::ftruncate(&fd, PAGE_SIZE as i64).unwrap();
        assert!(HostMemory::from_fd(fd.into(), 0, PAGE_SIZE, DmaAccess::Read).is_err());
    }

    #[test]
    fn ranges_outside_the_file_are_refused() {
        let m = HostMemory::new(PAGE_SIZE).unwrap();
        let p = PAGE_SIZE as u64;
        for (offset, len) in
            [(0, 2 * PAGE_SIZE), (p, PAGE_SIZE), (1, PAGE_SIZE), (0, 0), (u64::MAX - p + 1, PAGE_SIZE)]
        {
            let fd = m.fd().try_clone_to_owned().unwrap();
            assert!(
                HostMemory::from_fd(fd.into(), offset, len, DmaAccess::Read).is_err(),
                "{offset:#x} {len:#x}"
            );
        }
    }

    #[test]
    fn a_pipe_is_refused() {
        let (r, _w) = nix::unistd::pipe().unwrap();
        assert!(HostMemory::from_fd(r.into(), 0, PAGE_SIZE, DmaAccess::Read).is_err());
    }

    #[test]
    #[should_panic(expected = "outside shared memory")]
    fn accesses_outside_panic() {
        HostMemory::new(PAGE_SIZE).unwrap().read_u64(PAGE_SIZE, Ordering::Relaxed);
    }
}
