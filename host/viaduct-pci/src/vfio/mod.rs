// SPDX-License-Identifier: Apache-2.0
//! A PCI function of this machine, physical or virtual, through the kernel's VFIO interface.
//!
//! The function must be bound to the kernel's driver `vfio-pci` and be behind an IOMMU; else the error of
//! [`Function::open`] says what to do. Registers are mapped into the process, so that an access is a load or a store;
//! memory for DMA is mapped in the IOMMU; interrupts are eventfds.

mod address;
mod place;
mod region;
mod sys;

pub use address::PciAddress;

use crate::eventfds::{EventFds, eventfd};
use crate::process::Withheld;
use crate::{DmaAccess, FunctionInfo, HostMemory, PAGE_SIZE, PciError, PciFunction, Result};
use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::eventfd::EventFd;
use nix::sys::resource::{Resource, getrlimit};
use place::Place;
use region::Region;
use std::collections::HashMap;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use vfio_bindings::bindings::vfio::*;

/// Offset of the command register in configuration space, and its bits.
const COMMAND: u16 = 4;
const COMMAND_MEMORY: u16 = 1 << 1;
const COMMAND_MASTER: u16 = 1 << 2;

/// A function reached through `/dev/vfio`.
///
/// It has one user at a time. When the kernel wants it back (its driver is unbound, the card is pulled),
/// [`wait_irq`](PciFunction::wait_irq) ends with [`PciError::Gone`], and the kernel waits for the drop. Dropping it stops
/// the function's DMA and interrupts, and resets it, before the memory it could access is released.
#[derive(Debug)]
pub struct Function {
    // Fields are dropped in this order: the card's activity ends before the resources it uses are released.
    bars: [Region; 6],
    config: Region,
    _withheld: [Withheld; 3],
    device: Arc<File>,
    eventfds: EventFds,
    /// Signalled when the kernel wants the function back.
    recall: EventFd,
    _group: File,
    container: File,
    maps: Mutex<HashMap<u64, Arc<HostMemory>>>,
    info: FunctionInfo,
    address: PciAddress,
    can_reset: bool,
}

impl Function {
    /// Opens the function at this address, with all its interrupts and bus mastering enabled.
    pub fn open(address: PciAddress) -> Result<Self> {
        Self::open_at(&Place::new(address))
    }

    fn open_at(place: &Place) -> Result<Self> {
        let group_name = place.group()?;
        let container = place.open_container()?;
        let supported = sys::api_version(&container).map_err(os("reading the version of VFIO"))?
            == VFIO_API_VERSION as i32
            && sys::has_extension(&container, VFIO_TYPE1v2_IOMMU)
                .map_err(os("reading the type of the IOMMU"))?;
        if !supported {
            return Err(
                place.unusable("VFIO has no driver for its IOMMU here: `modprobe vfio_iommu_type1` as root")
            );
        }
        let group = place.open_group(&group_name)?;
        if sys::group_status(&group).map_err(os("reading the IOMMU group"))? & VFIO_GROUP_FLAGS_VIABLE == 0 {
            return Err(place.in_the_way());
        }
        sys::set_container(&group, &container).map_err(os("adding the IOMMU group to its container"))?;
        sys::set_iommu(&container, VFIO_TYPE1v2_IOMMU).map_err(|errno| match errno {
            Errno::EPERM => place.unusable(
                "its IOMMU does not check interrupts: enable interrupt remapping, or accept that the card can send \
                 any interrupt: `echo 1 > /sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts` as root",
            ),
            errno => os("setting up the IOMMU")(errno),
        })?;
        let name = CString::new(place.address.to_string()).expect("an address has no zero byte");
        let device = sys::open_device(&group, &name).map_err(os("opening the function"))?;
        let device = Arc::new(File::from(device));

        let about = sys::device_info(&device).map_err(os("reading the function's properties"))?;
        if about.flags & VFIO_DEVICE_FLAGS_PCI == 0 || about.num_regions <= VFIO_PCI_CONFIG_REGION_INDEX {
            return Err(PciError::Protocol(format!("{} is not a PCI function for VFIO", place.address)));
        }
        let config = Region::open(&device, VFIO_PCI_CONFIG_REGION_INDEX, "configuration space".into())?;
        // Mapped BARs can be used only while the function responds to memory accesses.
        let mut command = [0; 2];
        config.read(u64::from(COMMAND), &mut command)?;
        let on = u16::from_le_bytes(command) | COMMAND_MEMORY | COMMAND_MASTER;
        config.write(u64::from(COMMAND), &on.to_le_bytes())?;
        let bar = |index: u32| Region::open(&device, index, format!("BAR{index}"));
        let bars = [bar(0)?, bar(1)?, bar(2)?, bar(3)?, bar(4)?, bar(5)?];

        let irqs = |index| match index < about.num_irqs {
            true => sys::irq_count(&device, index).map_err(os("setting up interrupts")),
            false => Ok(0),
        };
        let eventfds = EventFds::new(irqs(VFIO_PCI_MSIX_IRQ_INDEX)?.min(64) as u16)?;
        let fds = eventfds.raw();
        if !fds.is_empty() {
            let left = sys::set_eventfds(&device, VFIO_PCI_MSIX_IRQ_INDEX, &fds);
            let left = left.map_err(os("setting up interrupts"))?;
            if left > 0 {
                return Err(place.unusable(format!(
                    "the machine has only {left} interrupts left, the card needs {}",
                    fds.len()
                )));
            }
        }
        let recall = eventfd()?;
        if irqs(VFIO_PCI_REQ_IRQ_INDEX)? > 0 {
            sys::set_eventfds(&device, VFIO_PCI_REQ_IRQ_INDEX, &[recall.as_fd().as_raw_fd()])
                .map_err(os("setting up the notification of removal"))?;
        }

        let mut id = [0; 4];
        config.read(0, &mut id)?;
        let info = FunctionInfo {
            vendor: u16::from_le_bytes([id[0], id[1]]),
            device: u16::from_le_bytes([id[2], id[3]]),
            bar_sizes: std::array::from_fn(|index| bars[index].size),
            vectors: fds.len() as u16,
        };
        Ok(Self {
            bars,
            config,
            _withheld: [Withheld::new(&device), Withheld::new(&group), Withheld::new(&container)],
            device,
            eventfds,
            recall,
            _group: group,
            container,
            maps: Mutex::default(),
            info,
            address: place.address,
            can_reset: about.flags & VFIO_DEVICE_FLAGS_RESET != 0,
        })
    }

    /// Where the function is.
    pub fn address(&self) -> PciAddress {
        self.address
    }

    fn bar(&self, bar: u8) -> Result<&Region> {
        self.bars.get(usize::from(bar)).ok_or_else(|| PciError::OutOfRange { what: format!("BAR{bar}") })
    }
}

/// An error that names the system call that failed.
fn os(what: &str) -> impl FnOnce(Errno) -> PciError {
    move |errno| PciError::Os { what: what.into(), source: errno.into() }
}

fn check_config(offset: u16, len: usize) -> Result<()> {
    match len {
        1 | 2 | 4 | 8 => Ok(()),
        _ => Err(PciError::OutOfRange { what: format!("{len} bytes of configuration space at {offset:#x}") }),
    }
}

/// Whether writing `data` at `offset` disables the function's memory space.
fn hides_registers(offset: u16, data: &[u8]) -> bool {
    let low = COMMAND.checked_sub(offset).and_then(|at| data.get(usize::from(at)));
    low.is_some_and(|low| u16::from(*low) & COMMAND_MEMORY == 0)
}

impl PciFunction for Function {
    fn info(&self) -> &FunctionInfo {
        &self.info
    }

    fn config_read(&self, offset: u16, buf: &mut [u8]) -> Result<()> {
        check_config(offset, buf.len())?;
        self.config.read(u64::from(offset), buf)
    }

    /// Refuses to disable memory space (the command register): registers are mapped here, and using them would then
    /// kill the process.
    fn config_write(&self, offset: u16, data: &[u8]) -> Result<()> {
        check_config(offset, data.len())?;
        if hides_registers(offset, data) {
            return Err(os("switching off registers that are in use")(Errno::EPERM));
        }
        self.config.write(u64::from(offset), data)
    }

    fn read(&self, bar: u8, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.bar(bar)?.read(offset, buf)
    }

    fn write(&self, bar: u8, offset: u64, data: &[u8]) -> Result<()> {
        self.bar(bar)?.write(offset, data)
    }

    fn read32(&self, bar: u8, offset: u64) -> Result<u32> {
        self.bar(bar)?.read32(offset)
    }

    fn write32(&self, bar: u8, offset: u64, value: u32) -> Result<()> {
        self.bar(bar)?.write32(offset, value)
    }

    fn dma_map(&self, iova: u64, memory: Arc<HostMemory>, access: DmaAccess) -> Result<()> {
        let len = memory.len() as u64;
        let what = format!("mapping {len:#x} bytes for DMA at {iova:#x}");
        let flags = match access {
            DmaAccess::Read => VFIO_DMA_MAP_FLAG_READ,
            DmaAccess::Write => VFIO_DMA_MAP_FLAG_WRITE,
            DmaAccess::ReadWrite => VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
        };
        if iova % PAGE_SIZE as u64 != 0 || iova.checked_add(len).is_none() {
            return Err(PciError::OutOfRange { what });
        }
        if access != DmaAccess::Read && !memory.is_writable() {
            return Err(os(&what)(Errno::EACCES));
        }
        let mut maps = self.maps.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: `maps` keeps the memory until it is unmapped, or until the container is closed, and `HostMemory` expects
        // others to change it.
        let mapped = unsafe { sys::map_dma(&self.container, iova, memory.as_ptr(), len, flags) };
        mapped.map_err(|errno| map_error(what, errno))?;
        maps.insert(iova, memory);
        Ok(())
    }

    fn dma_unmap(&self, iova: u64) -> Result<()> {
        let what = format!("unmapping DMA memory at {iova:#x}");
        let mut maps = self.maps.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(memory) = maps.get(&iova) else { return Err(PciError::OutOfRange { what }) };
        let len = memory.len() as u64;
        let unmapped = sys::unmap_dma(&self.container, iova, len).map_err(os(&what))?;
        if unmapped != len {
            return Err(PciError::Protocol(format!("{what}: {unmapped:#x} of {len:#x} bytes were")));
        }
        maps.remove(&iova);
        Ok(())
    }

    fn wait_irq(&self, mask: u64, timeout: Duration) -> Result<u64> {
        let fired = self.eventfds.wait(mask, timeout, &self.recall, PollFlags::POLLIN)?;
        fired.ok_or_else(|| PciError::Gone(format!("the kernel wants {} back", self.address)))
    }

    fn reset(&self) -> Result<()> {
        if !self.can_reset {
            return Err(PciError::Unusable(format!("{}: the kernel knows no way to reset it", self.address)));
        }
        sys::reset(&self.device).map_err(os("resetting the function"))
    }
}

/// Why memory could not be mapped in the IOMMU.
fn map_error(what: String, errno: Errno) -> PciError {
    let hint = match errno {
        Errno::ENOMEM => {
            let limit = getrlimit(Resource::RLIMIT_MEMLOCK).map_or(0, |(soft, _)| soft);
            format!(
                "it must be locked, and this user may lock at most {} KiB: raise that limit (`ulimit -l`), or run as root",
                limit / 1024
            )
        }
        Errno::ENOSPC => "the kernel accepts no more mappings (dma_entry_limit of vfio_iommu_type1)".into(),
        Errno::EINVAL => "the IOMMU does not translate that address".into(),
        errno => return os(&what)(errno),
    };
    PciError::Os { what: format!("{what}: {hint}"), source: errno.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_does_not_exist() {
        let address: PciAddress = "fffffffe:ff:1f.7".parse().unwrap();
        let error = Function::open(address).unwrap_err();
        assert!(error.to_string().starts_with("fffffffe:ff:1f.7: there is no such PCI function"), "{error}");
    }

    #[test]
    fn registers_cannot_be_switched_off() {
        for (offset, data) in
            [(4, &[4, 4][..]), (4, &[0]), (4, &[0, 0, 0, 0]), (0, &[0; 8]), (2, &[0, 0, 5, 0]), (3, &[0, 1])]
        {
            assert!(hides_registers(offset, data), "{offset} {data:?}");
        }
        for (offset, data) in [
            (4, &[2][..]),
            (4, &[6, 4]),
            (5, &[0]),
            (6, &[0, 0]),
            (0, &[0; 4]),
            (0, &[0, 0, 0, 0, 2, 0, 0, 0]),
        ] {
            assert!(!hides_registers(offset, data), "{offset} {data:?}");
        }
    }

    #[test]
    fn configuration_space_is_read_in_its_widths() {
        for len in [1, 2, 4, 8] {
            check_config(0, len).unwrap();
        }
        for len in [0, 3, 5, 16] {
            assert!(matches!(check_config(0, len), Err(PciError::OutOfRange { .. })));
        }
    }

    #[test]
    fn a_refused_mapping_says_what_to_do() {
        let text = |errno| map_error("mapping".into(), errno).to_string();
        assert!(text(Errno::ENOMEM).contains("ulimit -l"));
        assert!(text(Errno::ENOSPC).contains("dma_entry_limit"));
        assert!(text(Errno::EINVAL).contains("does not translate"));
        assert_eq!(text(Errno::EEXIST), "mapping: File exists (os error 17)");
    }
}
