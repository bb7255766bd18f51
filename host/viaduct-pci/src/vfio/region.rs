// SPDX-License-Identifier: Apache-2.0
//! A BAR or the configuration space: mapped windows, and system calls for the rest.

use super::sys;
use crate::{PAGE_SIZE, PciError, Process, Result};
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, munmap};
use std::fs::File;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use vfio_bindings::bindings::vfio::*;

/// One region of a device.
#[derive(Debug)]
pub(super) struct Region {
    /// Dropped before the file: a mapping keeps the device open.
    windows: Vec<Window>,
    device: Arc<File>,
    name: String,
    /// Size in bytes, 0 if the region is absent.
    pub(super) size: u64,
    /// Offset in the file.
    start: u64,
}

impl Region {
    /// Queries a region, and maps the parts that can be mapped.
    pub(super) fn open(device: &Arc<File>, index: u32, name: String) -> Result<Self> {
        let what = |what: &str| format!("{what} {name}");
        let (info, bytes) = sys::region_info(device, index)
            .map_err(|e| PciError::Os { what: what("querying"), source: e.into() })?;
        let both = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
        let size = if info.flags & both == both { info.size } else { 0 };
        let mut windows = Vec::new();
        for (at, len) in mappable(&info, &bytes) {
            let inside = at.checked_add(len).is_some_and(|end| end <= size);
            if !inside || at % PAGE_SIZE as u64 != 0 || len == 0 {
                return Err(PciError::Protocol(format!(
                    "{len:#x} bytes at {at:#x} of {name} cannot be mapped: it has {size:#x} bytes"
                )));
            }
            windows.push(Window::map(device, info.offset, at, len, &what("mapping"))?);
        }
        Ok(Self { windows, device: Arc::clone(device), name, size, start: info.offset })
    }

    /// Refuses an access that is out of range.
    fn check(&self, offset: u64, len: usize) -> Result<()> {
        match offset.checked_add(len as u64) {
            Some(end) if len > 0 && end <= self.size => Ok(()),
            _ => Err(PciError::OutOfRange { what: format!("{len} bytes at {offset:#x} of {}", self.name) }),
        }
    }

    fn window(&self, offset: u64, len: usize) -> Option<*mut u8> {
        self.windows.iter().find_map(|window| window.at(offset, len))
    }

    /// Reads a naturally aligned 32-bit register.
    pub(super) fn read32(&self, offset: u64) -> Result<u32> {
        self.check_register(offset)?;
        let Some(at) = self.window(offset, 4) else {
            let mut word = [0; 4];
            self.call_read(offset, &mut word)?;
            return Ok(u32::from_le_bytes(word));
        };
        // SAFETY: four aligned bytes of a mapped window.
        let value = unsafe { at.cast::<u32>().read_volatile() };
        // Memory is read only after the register that reports it.
        fence(Ordering::Acquire);
        Ok(u32::from_le(value))
    }

    /// Writes a naturally aligned 32-bit register.
    pub(super) fn write32(&self, offset: u64, value: u32) -> Result<()> {
        self.check_register(offset)?;
        let Some(at) = self.window(offset, 4) else {
            return self.call_write(offset, &value.to_le_bytes());
        };
        // Memory is written before the register that reports it.
        fence(Ordering::Release);
        // SAFETY: four aligned bytes of a mapped window.
        unsafe { at.cast::<u32>().write_volatile(value.to_le()) };
        Ok(())
    }

    fn check_register(&self, offset: u64) -> Result<()> {
        if offset % 4 != 0 {
            return Err(PciError::OutOfRange { what: format!("register {offset:#x} of {}", self.name) });
        }
        self.check(offset, 4)
    }

    /// Reads bytes, in naturally aligned accesses of at most 32 bits.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.check(offset, buf.len())?;
        let mut rest = buf;
        for (at, width) in accesses(offset, rest.len()) {
            let (part, more) = rest.split_at_mut(width);
            match (self.window(at, width), width) {
                (Some(_), 4) => part.copy_from_slice(&self.read32(at)?.to_le_bytes()),
                (Some(ptr), 2) => {
                    // SAFETY: two aligned bytes of a mapped window.
                    let half = unsafe { ptr.cast::<u16>().read_volatile() };
                    part.copy_from_slice(&half.to_ne_bytes());
                }
                // SAFETY: one byte of a mapped window.
                (Some(ptr), _) => part[0] = unsafe { ptr.read_volatile() },
                (None, _) => self.call_read(at, part)?,
            }
            rest = more;
        }
        fence(Ordering::Acquire);
        Ok(())
    }

    /// Writes bytes, in naturally aligned accesses of at most 32 bits.
    pub(super) fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.check(offset, data.len())?;
        fence(Ordering::Release);
        let mut rest = data;
        for (at, width) in accesses(offset, rest.len()) {
            let (part, more) = rest.split_at(width);
            match (self.window(at, width), part) {
                (Some(_), &[a, b, c, d]) => self.write32(at, u32::from_le_bytes([a, b, c, d]))?,
                // SAFETY: two aligned bytes of a mapped window.
                (Some(ptr), &[a, b]) => unsafe {
                    ptr.cast::<u16>().write_volatile(u16::from_ne_bytes([a, b]))
                },
                // SAFETY: one byte of a mapped window.
                (Some(ptr), _) => unsafe { ptr.write_volatile(part[0]) },
                (None, _) => self.call_write(at, part)?,
            }
            rest = more;
        }
        Ok(())
    }

    fn call_read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.device.read_exact_at(buf, self.start + offset).map_err(|source| PciError::Os {
            what: format!("reading {} bytes of {} at {offset:#x}", buf.len(), self.name),
            source,
        })
    }

    fn call_write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.device.write_all_at(data, self.start + offset).map_err(|source| PciError::Os {
            what: format!("writing {} bytes of {} at {offset:#x}", data.len(), self.name),
            source,
        })
    }
}

/// Splits a range into naturally aligned accesses of 4, 2 and 1 bytes: offset and width.
fn accesses(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let width = [4, 2, 1].into_iter().find(|w| at % *w as u64 == 0 && len - done >= *w)?;
        done += width;
        Some((at, width))
    })
}

/// The parts of a region that can be mapped, as offset and length. Without a list from the kernel: all or nothing.
fn mappable(info: &vfio_region_info, bytes: &[u8]) -> Vec<(u64, u64)> {
    if info.flags & VFIO_REGION_INFO_FLAG_MMAP == 0 {
        return Vec::new();
    }
    if info.flags & VFIO_REGION_INFO_FLAG_CAPS != 0 {
        if let Some(areas) = sparse_areas(bytes, info.cap_offset) {
            return areas;
        }
    }
    vec![(0, info.size)]
}

/// The areas in the sparse-mmap capability, if there is one. A capability is: id, version (16 bits each), offset of
/// the next or 0; this one continues with the number of areas, a reserved word, and for each its offset and size.
fn sparse_areas(bytes: &[u8], first: u32) -> Option<Vec<(u64, u64)>> {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?));
    let mut at = first as usize;
    // Capabilities do not overlap, so there cannot be more.
    for _ in 0..bytes.len() / size_of::<vfio_info_cap_header>() {
        let id = word(at)?.to_ne_bytes();
        if u32::from(u16::from_ne_bytes([id[0], id[1]])) == VFIO_REGION_INFO_CAP_SPARSE_MMAP {
            let count = word(at + 8)? as usize;
            let areas = (0..count).map_while(|i| Some((long(at + 16 + 16 * i)?, long(at + 24 + 16 * i)?)));
            let areas: Vec<_> = areas.collect();
            return (areas.len() == count).then_some(areas);
        }
        at = match word(at + 4)? {
            0 => return None,
            next => next as usize,
        };
    }
    None
}

/// A mapped part of a region.
#[derive(Debug)]
struct Window {
    ptr: NonNull<u8>,
    /// Offset in its region.
    at: u64,
    len: usize,
    /// The process that has the mapping.
    process: Process,
}

// SAFETY: the pointer is to device memory, which belongs to no thread.
unsafe impl Send for Window {}
// SAFETY: as above; accesses are single machine instructions.
unsafe impl Sync for Window {}

impl Window {
    fn map(device: &File, region: u64, at: u64, len: u64, what: &str) -> Result<Self> {
        let os = |source: std::io::Error| PciError::Os { what: what.to_owned(), source };
        let too_large = || os(std::io::ErrorKind::InvalidInput.into());
        let size = usize::try_from(len).ok().and_then(NonZeroUsize::new).ok_or_else(too_large)?;
        let offset = region.checked_add(at).and_then(|o| i64::try_from(o).ok()).ok_or_else(too_large)?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let ptr = unsafe { mmap(None, size, protection, MapFlags::MAP_SHARED, device, offset) };
        let ptr = ptr.map_err(|e| os(e.into()))?;
        // A child of `fork()` that had the mapping would keep the card in use.
        // SAFETY: the mapping is new, and this process keeps it.
        unsafe { madvise(ptr, size.get(), MmapAdvise::MADV_DONTFORK) }.map_err(|e| os(e.into()))?;
        Ok(Self { ptr: ptr.cast(), at, len: size.get(), process: Process::current() })
    }

    /// Address of `len` bytes of the region, if all are in this window.
    fn at(&self, offset: u64, len: usize) -> Option<*mut u8> {
        let start = usize::try_from(offset.checked_sub(self.at)?).ok()?;
        let fits = start.checked_add(len).is_some_and(|end| end <= self.len);
        fits.then(|| self.ptr.as_ptr().wrapping_add(start))
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if !self.process.is_current() {
            return;
        }
        // SAFETY: the mapping was made by `map` with exactly this extent and is no longer used.
        if let Err(error) = unsafe { munmap(self.ptr.cast(), self.len) } {
            tracing::error!(%error, "unmapping registers");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn info(flags: u32, cap_offset: u32) -> vfio_region_info {
        vfio_region_info { flags, cap_offset, size: 0x4000, ..Default::default() }
    }

    /// Data as the kernel writes it: the structure, a capability of another kind, and the one with areas.
    fn with_areas(areas: &[(u64, u64)]) -> Vec<u8> {
        let mut bytes = vec![0; 32];
        for word in [VFIO_REGION_INFO_CAP_TYPE | 1 << 16, 48, 7, 7] {
            bytes.extend(word.to_ne_bytes());
        }
        for word in [VFIO_REGION_INFO_CAP_SPARSE_MMAP | 1 << 16, 0, areas.len() as u32, 0] {
            bytes.extend(word.to_ne_bytes());
        }
        for (at, len) in areas {
            bytes.extend([at.to_ne_bytes(), len.to_ne_bytes()].concat());
        }
        bytes
    }

    #[test]
    fn the_kernel_says_what_can_be_mapped() {
        let (mmap, caps) = (VFIO_REGION_INFO_FLAG_MMAP, VFIO_REGION_INFO_FLAG_CAPS);
        let areas = [(0, 0x1000), (0x2000, 0x2000)];
        assert_eq!(mappable(&info(mmap | caps, 32), &with_areas(&areas)), areas);
        assert_eq!(mappable(&info(mmap | caps, 32), &with_areas(&[])), []);
        assert_eq!(mappable(&info(mmap, 0), &[0; 32]), [(0, 0x4000)]);
        assert_eq!(mappable(&info(caps, 32), &with_areas(&areas)), []);
        // Only a capability that does not concern mapping.
        let mut other = with_areas(&[]);
        other[36..40].fill(0);
        assert_eq!(mappable(&info(mmap | caps, 32), &other), [(0, 0x4000)]);
    }

    #[test]
    fn lists_without_an_end_end() {
        let mut bytes = with_areas(&[]);
        bytes[36..40].copy_from_slice(&32u32.to_ne_bytes());
        assert_eq!(sparse_areas(&bytes, 32), None);
        let mut short = with_areas(&[(0, 1)]);
        short.truncate(short.len() - 1);
        assert_eq!(sparse_areas(&short, 32), None);
    }

    proptest! {
        #[test]
        fn accesses_cover_a_range_in_natural_steps(offset in 0u64..64, len in 0usize..40) {
            let mut next = offset;
            for (at, width) in accesses(offset, len) {
                prop_assert_eq!(at, next);
                prop_assert!([1, 2, 4].contains(&width) && at % width as u64 == 0);
                next += width as u64;
            }
            prop_assert_eq!(next, offset + len as u64);
            prop_assert!(accesses(offset, len).count() <= len / 4 + 4);
        }

        #[test]
        fn no_capability_list_does_harm(bytes: Vec<u8>, first: u32) {
            let _ = sparse_areas(&bytes, first);
            let _ = sparse_areas(&bytes, first % 64);
        }
    }

    /// A region of an ordinary file: its bytes 4096 to 12287, the first page of them mapped.
    fn region() -> (tempfile::NamedTempFile, Region) {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(12288).unwrap();
        let device = Arc::new(file.reopen().unwrap());
        let window = Window::map(&device, 4096, 0, 4096, "mapping").unwrap();
        (file, Region { windows: vec![window], device, name: "BAR3".into(), size: 8192, start: 4096 })
    }

    #[test]
    fn registers_are_reached_through_the_window_and_beside_it() {
        let (file, region) = region();
        for at in [0, 4092, 4096, 8188] {
            region.write32(at, 0x0403_0201 + at as u32).unwrap();
            assert_eq!(region.read32(at).unwrap(), 0x0403_0201 + at as u32);
            let mut word = [0; 4];
            file.as_file().read_exact_at(&mut word, 4096 + at).unwrap();
            assert_eq!(u32::from_le_bytes(word), 0x0403_0201 + at as u32);
        }
        let bytes: Vec<u8> = (1..=19).collect();
        for at in [5, 4085, 4095, 8173] {
            region.write(at, &bytes).unwrap();
            let mut back = [0; 19];
            region.read(at, &mut back).unwrap();
            assert_eq!(&back[..], bytes);
            file.as_file().read_exact_at(&mut back, 4096 + at).unwrap();
            assert_eq!(&back[..], bytes);
        }
    }

    #[test]
    fn what_is_outside_is_refused() {
        let (_file, region) = region();
        for at in [1, 2, 4094, 8189, 8192, u64::MAX, u64::MAX - 3] {
            assert!(matches!(region.read32(at), Err(PciError::OutOfRange { .. })), "{at:#x}");
            assert!(matches!(region.write32(at, 0), Err(PciError::OutOfRange { .. })), "{at:#x}");
        }
        for (at, len) in [(8192, 1), (8191, 2), (0, 8193), (0, 0), (u64::MAX, 1), (u64::MAX, 2)] {
            assert!(matches!(region.read(at, &mut vec![0; len]), Err(PciError::OutOfRange { .. })));
            assert!(matches!(region.write(at, &vec![0; len]), Err(PciError::OutOfRange { .. })));
        }
    }
}
