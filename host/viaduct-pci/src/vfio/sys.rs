// SPDX-License-Identifier: Apache-2.0
//! Thin wrappers of the VFIO system calls.

use nix::errno::Errno;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use vfio_bindings::bindings::vfio::*;

/// Result of a system call.
pub(super) type SysResult<T> = Result<T, Errno>;

mod call {
    use nix::libc::{c_char, c_ulong};
    use nix::{
        ioctl_none_bad, ioctl_readwrite_bad, ioctl_write_int_bad, ioctl_write_ptr_bad, request_code_none,
    };
    use vfio_bindings::bindings::vfio::*;

    const fn code(number: u32) -> c_ulong {
        request_code_none!(VFIO_TYPE, VFIO_BASE + number)
    }

    ioctl_none_bad!(get_api_version, code(0));
    ioctl_write_int_bad!(check_extension, code(1));
    ioctl_write_int_bad!(set_iommu, code(2));
    ioctl_readwrite_bad!(group_get_status, code(3), vfio_group_status);
    ioctl_write_ptr_bad!(group_set_container, code(4), i32);
    ioctl_write_ptr_bad!(group_get_device_fd, code(6), c_char);
    ioctl_readwrite_bad!(device_get_info, code(7), vfio_device_info);
    ioctl_readwrite_bad!(device_get_region_info, code(8), vfio_region_info);
    ioctl_readwrite_bad!(device_get_irq_info, code(9), vfio_irq_info);
    ioctl_write_ptr_bad!(device_set_irqs, code(10), vfio_irq_set);
    ioctl_none_bad!(device_reset, code(11));
    ioctl_write_ptr_bad!(iommu_map_dma, code(13), vfio_iommu_type1_dma_map);
    ioctl_readwrite_bad!(iommu_unmap_dma, code(14), vfio_iommu_type1_dma_unmap);
}

/// `argsz` of a structure.
fn size_of_args<T>() -> u32 {
    size_of::<T>() as u32
}

pub(super) fn api_version(container: &impl AsRawFd) -> SysResult<i32> {
    // SAFETY: takes no argument.
    unsafe { call::get_api_version(container.as_raw_fd()) }
}

pub(super) fn has_extension(container: &impl AsRawFd, extension: u32) -> SysResult<bool> {
    // SAFETY: takes a number.
    unsafe { call::check_extension(container.as_raw_fd(), extension as i32) }.map(|response| response > 0)
}

pub(super) fn set_iommu(container: &impl AsRawFd, kind: u32) -> SysResult<()> {
    // SAFETY: takes a number.
    unsafe { call::set_iommu(container.as_raw_fd(), kind as i32) }.map(drop)
}

/// The flags of a group.
pub(super) fn group_status(group: &impl AsRawFd) -> SysResult<u32> {
    let mut status = vfio_group_status { argsz: size_of_args::<vfio_group_status>(), flags: 0 };
    // SAFETY: the kernel writes at most `argsz` bytes.
    unsafe { call::group_get_status(group.as_raw_fd(), &mut status) }?;
    Ok(status.flags)
}

pub(super) fn set_container(group: &impl AsRawFd, container: &impl AsRawFd) -> SysResult<()> {
    // SAFETY: the kernel reads a descriptor.
    unsafe { call::group_set_container(group.as_raw_fd(), &container.as_raw_fd()) }.map(drop)
}

/// Opens the function with this name, a PCI address.
pub(super) fn open_device(group: &impl AsRawFd, name: &std::ffi::CStr) -> SysResult<OwnedFd> {
    // SAFETY: the kernel reads a string that ends with a zero.
    let fd = unsafe { call::group_get_device_fd(group.as_raw_fd(), name.as_ptr()) }?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(super) fn device_info(device: &impl AsRawFd) -> SysResult<vfio_device_info> {
    let mut info = vfio_device_info { argsz: size_of_args::<vfio_device_info>(), ..Default::default() };
    // SAFETY: the kernel writes at most `argsz` bytes.
    unsafe { call::device_get_info(device.as_raw_fd(), &mut info) }?;
    Ok(info)
}

/// The kernel's description of a region, with the capabilities that follow it.
pub(super) fn region_info(device: &impl AsRawFd, index: u32) -> SysResult<(vfio_region_info, Vec<u8>)> {
    const HEAD: usize = size_of::<vfio_region_info>();
    /// More than the existing capabilities can need.
    const MOST: usize = 1 << 20;
    let mut size = HEAD;
    loop {
        // Words, for the structure's alignment.
        let mut buffer = vec![0u64; size.div_ceil(8)];
        let info: *mut vfio_region_info = buffer.as_mut_ptr().cast();
        // SAFETY: the buffer is large and aligned enough for the structure, whose every bit pattern is valid.
        unsafe { *info = vfio_region_info { argsz: size as u32, index, ..Default::default() } };
        // SAFETY: the kernel writes at most `argsz` bytes, which the buffer has.
        unsafe { call::device_get_region_info(device.as_raw_fd(), info) }?;
        // SAFETY: still that structure.
        let head = unsafe { *info };
        let needed = head.argsz as usize;
        if needed <= size || needed > MOST {
            let bytes = buffer.iter().flat_map(|word| word.to_ne_bytes()).take(size).collect();
            return Ok((head, bytes));
        }
        size = needed;
    }
}

/// Number of interrupts of a type, 0 if they are not available as eventfds.
pub(super) fn irq_count(device: &impl AsRawFd, index: u32) -> SysResult<u32> {
    let mut info = vfio_irq_info { argsz: size_of_args::<vfio_irq_info>(), index, ..Default::default() };
    // SAFETY: the kernel writes at most `argsz` bytes.
    unsafe { call::device_get_irq_info(device.as_raw_fd(), &mut info) }?;
    Ok(if info.flags & VFIO_IRQ_INFO_EVENTFD != 0 { info.count } else { 0 })
}

/// Connects the interrupts of a type, from the first one on, to eventfds. `Ok(n)` with `n > 0`: nothing was done, only
/// `n` are available.
pub(super) fn set_eventfds(device: &impl AsRawFd, index: u32, eventfds: &[RawFd]) -> SysResult<u32> {
    let argsz = size_of::<vfio_irq_set>() + size_of_val(eventfds);
    let head = [
        argsz as u32,
        VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
        index,
        0,
        eventfds.len() as u32,
    ];
    let words: Vec<u32> = head.into_iter().chain(eventfds.iter().map(|fd| *fd as u32)).collect();
    // SAFETY: the five words of the structure and as many descriptors as it says; the kernel reads `argsz` bytes.
    let left = unsafe { call::device_set_irqs(device.as_raw_fd(), words.as_ptr().cast()) }?;
    Ok(left as u32)
}

pub(super) fn reset(device: &impl AsRawFd) -> SysResult<()> {
    // SAFETY: takes no argument.
    unsafe { call::device_reset(device.as_raw_fd()) }.map(drop)
}

/// Lets devices of the container access `len` bytes at `memory` at the bus address `iova`.
///
/// # Safety
/// The memory stays mapped at its address, and is not Rust's to assume unchanged, until it is unmapped here.
pub(super) unsafe fn map_dma(
    container: &impl AsRawFd,
    iova: u64,
    memory: *mut u8,
    len: u64,
    flags: u32,
) -> SysResult<()> {
    let argsz = size_of_args::<vfio_iommu_type1_dma_map>();
    let map = vfio_iommu_type1_dma_map { argsz, flags, vaddr: memory as u64, iova, size: len };
    // SAFETY: the kernel reads the structure; the caller guarantees the memory.
    unsafe { call::iommu_map_dma(container.as_raw_fd(), &map) }.map(drop)
}

/// Unmaps a range, and returns the number of bytes that were mapped.
pub(super) fn unmap_dma(container: &impl AsRawFd, iova: u64, len: u64) -> SysResult<u64> {
    let argsz = size_of_args::<vfio_iommu_type1_dma_unmap>();
    let mut unmap = vfio_iommu_type1_dma_unmap { argsz, iova, size: len, ..Default::default() };
    // SAFETY: the kernel writes at most `argsz` bytes.
    unsafe { call::iommu_unmap_dma(container.as_raw_fd(), &mut unmap) }?;
    Ok(unmap.size)
}
