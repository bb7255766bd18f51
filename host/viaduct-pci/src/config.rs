// SPDX-License-Identifier: Apache-2.0
//! Configuration space of a PCI function, implemented in software.

use crate::{PciError, Result};

/// Bytes of configuration space, extended space included.
pub const CONFIG_SIZE: usize = 4096;

pub(crate) const COMMAND: usize = 0x04;
const STATUS: usize = 0x06;
const BAR0: usize = 0x10;
const CAP_POINTER: usize = 0x34;
const INTERRUPT_LINE: usize = 0x3c;
const FIRST_CAP: usize = 0x40;
const CAP_END: usize = 0x100;

const COMMAND_MEMORY: u8 = 1 << 1;
pub(crate) const COMMAND_MASTER: u8 = 1 << 2;
const COMMAND_MASK: u16 = 0x0546; // memory, bus master, parity, SERR#, INTx disable
const STATUS_CAPS: u16 = 1 << 4;
const STATUS_W1C: u16 = 0xf900;

const CAP_MSIX: u8 = 0x11;
const CAP_PCIE: u8 = 0x10;
const CAP_VENDOR: u8 = 0x09;
const MSIX_ENABLE: u8 = 1 << 7;
const MSIX_MASK_ALL: u8 = 1 << 6;
const PCIE_FLR: u8 = 1 << 7; // top bit of the second byte of device control

/// Identity of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigIds {
    /// Vendor id.
    pub vendor: u16,
    /// Device id.
    pub device: u16,
    /// Revision.
    pub revision: u8,
    /// Class code: base class, subclass, programming interface, e.g. 0x120000 for a processing accelerator.
    pub class: u32,
    /// Subsystem vendor id.
    pub subsystem_vendor: u16,
    /// Subsystem id.
    pub subsystem: u16,
}

/// A byte of configuration space and which of its bits software can change.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    value: u8,
    initial: u8,
    writable: u8,
    clear_on_one: u8,
}

/// Configuration space: header, BARs and capabilities, with what software may write to each.
///
/// Built once with the `add_` calls, then read and written like that of a device. Accesses of any size and alignment
/// inside the space are allowed.
#[derive(Debug, Clone)]
pub struct ConfigSpace {
    cells: Box<[Cell]>,
    bars: [u64; 6],
    next_cap: usize,
    last_link: usize,
    msix: Option<usize>,
    pcie: Option<usize>,
}

impl ConfigSpace {
    /// An endpoint header with no BARs and no capabilities.
    pub fn new(ids: &ConfigIds) -> Self {
        let mut space = Self {
            cells: vec![Cell::default(); CONFIG_SIZE].into_boxed_slice(),
            bars: [0; 6],
            next_cap: FIRST_CAP,
            last_link: CAP_POINTER,
            msix: None,
            pcie: None,
        };
        space.set(0x00, &ids.vendor.to_le_bytes());
        space.set(0x02, &ids.device.to_le_bytes());
        space.set(0x08, &[ids.revision]);
        space.set(0x09, &ids.class.to_le_bytes()[..3]);
        space.set(0x2c, &ids.subsystem_vendor.to_le_bytes());
        space.set(0x2e, &ids.subsystem.to_le_bytes());
        space.allow(COMMAND, &COMMAND_MASK.to_le_bytes());
        space.allow(INTERRUPT_LINE, &[0xff]);
        for (i, bit) in STATUS_W1C.to_le_bytes().into_iter().enumerate() {
            space.cells[STATUS + i].clear_on_one = bit;
        }
        space
    }

    /// Adds a memory BAR of `size` bytes, a power of two of at least 16. A 64-bit BAR also occupies the next index.
    pub fn add_bar(&mut self, bar: u8, size: u64, wide: bool, prefetchable: bool) -> Result<()> {
        let index = usize::from(bar);
        let width = if wide { 2 } else { 1 };
        let register = BAR0 + 4 * index;
        let free =
            index + width <= 6 && (index..index + width).all(|i| self.cells[BAR0 + 4 * i + 3].writable == 0);
        if !free || !size.is_power_of_two() || size < 16 || (!wide && size > 1 << 31) {
            return Err(PciError::OutOfRange { what: format!("BAR{bar} of {size:#x} bytes") });
        }
        let kind = u8::from(wide) << 2 | u8::from(prefetchable) << 3;
        self.set(register, &[kind]);
        let mask = !(size - 1);
        self.allow(register, &mask.to_le_bytes()[..4 * width]);
        self.bars[index] = size;
        Ok(())
    }

    /// Adds a capability by its bytes after id and link; bits set in `writable` can be changed by software. Returns
    /// the offset of the capability.
    pub fn add_capability(&mut self, id: u8, body: &[u8], writable: &[u8]) -> Result<u8> {
        let at = self.next_cap;
        if at + 2 + body.len() > CAP_END {
            return Err(PciError::OutOfRange {
                what: format!("capability {id:#x} of {} bytes", body.len() + 2),
            });
        }
        if self.last_link == CAP_POINTER {
            self.set(STATUS, &STATUS_CAPS.to_le_bytes());
        }
        self.set(self.last_link, &[at as u8]);
        self.set(at, &[id, 0]);
        self.set(at + 2, body);
        self.allow(at + 2, &writable[..writable.len().min(body.len())]);
        self.last_link = at + 1;
        self.next_cap = (at + 2 + body.len()).next_multiple_of(4);
        Ok(at as u8)
    }

    /// Adds a vendor-specific capability: `body` follows the length byte, which this call adds.
    pub fn add_vendor_capability(&mut self, body: &[u8]) -> Result<u8> {
        let mut bytes = vec![u8::try_from(body.len() + 3).unwrap_or(0)];
        bytes.extend_from_slice(body);
        self.add_capability(CAP_VENDOR, &bytes, &[])
    }

    /// Adds MSI-X with its table and pending bits at (BAR, offset).
    pub fn add_msix(&mut self, vectors: u16, table: (u8, u32), pending: (u8, u32)) -> Result<u8> {
        let aligned = table.1 % 8 == 0 && pending.1 % 8 == 0;
        if vectors == 0 || vectors > 2048 || !aligned || table.0 > 5 || pending.0 > 5 {
            return Err(PciError::OutOfRange { what: format!("MSI-X of {vectors} vectors") });
        }
        let mut body = Vec::with_capacity(10);
        body.extend_from_slice(&(vectors - 1).to_le_bytes());
        body.extend_from_slice(&(table.1 | u32::from(table.0)).to_le_bytes());
        body.extend_from_slice(&(pending.1 | u32::from(pending.0)).to_le_bytes());
        let at = self.add_capability(CAP_MSIX, &body, &[0, MSIX_ENABLE | MSIX_MASK_ALL])?;
        self.msix = Some(usize::from(at));
        Ok(at)
    }

    /// Continues the chain of capabilities at `offset`, with capabilities that are stored elsewhere.
    pub fn continue_at(&mut self, offset: u8) {
        self.set(self.last_link, &[offset]);
    }

    /// Adds a PCI Express endpoint capability that offers function-level reset, for a link of the given generation
    /// and width.
    pub fn add_pcie(&mut self, generation: u8, lanes: u8) -> Result<u8> {
        let mut body = [0; 0x3a];
        body[0] = 0x02; // capability version 2, type: endpoint
        body[2..6].copy_from_slice(&(1u32 << 28 | 1 << 15 | 0b010).to_le_bytes()); // FLR, role-based errors, 512-byte payload
        body[0x0a..0x0e].copy_from_slice(&(u32::from(generation) | u32::from(lanes) << 4).to_le_bytes());
        body[0x10..0x12].copy_from_slice(&(u16::from(generation) | u16::from(lanes) << 4).to_le_bytes());
        let mut writable = [0; 0x3a];
        writable[6] = 0xff; // device control; the reset bit reads as zero and is an effect of the write
        writable[7] = 0x7f;
        let at = self.add_capability(CAP_PCIE, &body, &writable)?;
        self.pcie = Some(usize::from(at));
        Ok(at)
    }

    /// Sizes of the BARs, 0 if absent; the upper half of a 64-bit BAR counts as absent.
    pub fn bar_sizes(&self) -> [u64; 6] {
        self.bars
    }

    /// Address that software has assigned to a BAR.
    pub fn bar_address(&self, bar: u8) -> Option<u64> {
        let size = *self.bars.get(usize::from(bar)).filter(|s| **s != 0)?;
        let at = BAR0 + 4 * usize::from(bar);
        let wide = self.cells[at].value & 4 != 0;
        let mut bytes = [0; 8];
        for (i, byte) in bytes.iter_mut().take(if wide { 8 } else { 4 }).enumerate() {
            *byte = self.cells[at + i].value;
        }
        Some(u64::from_le_bytes(bytes) & !(size - 1))
    }

    /// Whether software has enabled the function's response to BAR accesses.
    pub fn memory_enabled(&self) -> bool {
        self.cells[COMMAND].value & COMMAND_MEMORY != 0
    }

    /// Whether software lets the function access memory and raise interrupts.
    pub fn bus_master(&self) -> bool {
        self.cells[COMMAND].value & COMMAND_MASTER != 0
    }

    /// Whether software has enabled MSI-X and not masked the whole function.
    pub fn msix_enabled(&self) -> bool {
        self.msix.is_some_and(|at| self.cells[at + 3].value & (MSIX_ENABLE | MSIX_MASK_ALL) == MSIX_ENABLE)
    }

    /// Reads `buf.len()` bytes at `offset`.
    pub fn read(&self, offset: u16, buf: &mut [u8]) -> Result<()> {
        let start = self.check(offset, buf.len())?;
        for (byte, cell) in buf.iter_mut().zip(&self.cells[start..]) {
            *byte = cell.value;
        }
        Ok(())
    }

    /// Writes bytes at `offset`; read-only bits keep their values. Returns whether the write requested a
    /// function-level reset, which the caller performs (see [`ConfigSpace::reset`]).
    pub fn write(&mut self, offset: u16, data: &[u8]) -> Result<bool> {
        let start = self.check(offset, data.len())?;
        let reset_byte = self.pcie.map(|at| at + 9);
        let mut reset = false;
        for (i, byte) in data.iter().enumerate() {
            let cell = &mut self.cells[start + i];
            cell.value = (cell.value & !cell.writable | byte & cell.writable) & !(byte & cell.clear_on_one);
            reset |= Some(start + i) == reset_byte && byte & PCIE_FLR != 0;
        }
        Ok(reset)
    }

    /// Restores every writable bit to its value after power-up.
    pub fn reset(&mut self) {
        for cell in &mut self.cells {
            cell.value = cell.initial;
        }
    }

    fn check(&self, offset: u16, len: usize) -> Result<usize> {
        let start = usize::from(offset);
        if start + len > CONFIG_SIZE {
            return Err(PciError::OutOfRange {
                what: format!("{len} bytes of configuration space at {offset:#x}"),
            });
        }
        Ok(start)
    }

    fn set(&mut self, at: usize, bytes: &[u8]) {
        for (cell, byte) in self.cells[at..].iter_mut().zip(bytes) {
            (cell.value, cell.initial) = (*byte, *byte);
        }
    }

    fn allow(&mut self, at: usize, mask: &[u8]) {
        for (cell, bits) in self.cells[at..].iter_mut().zip(mask) {
            cell.writable = *bits;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> ConfigSpace {
        let ids = ConfigIds {
            vendor: 0x1234,
            device: 0x5678,
            revision: 1,
            class: 0x12_00_00,
            subsystem_vendor: 0x1234,
            subsystem: 1,
        };
        let mut space = ConfigSpace::new(&ids);
        space.add_bar(0, 0x40000, true, false).unwrap();
        space.add_bar(2, 0x10000, true, false).unwrap();
        space.add_bar(4, 0x1000, false, false).unwrap();
        space.add_pcie(3, 16).unwrap();
        space.add_msix(8, (4, 0), (4, 0x800)).unwrap();
        space.add_vendor_capability(&[1, 2, 3, 4]).unwrap();
        space
    }

    fn read32(space: &ConfigSpace, at: u16) -> u32 {
        let mut b = [0; 4];
        space.read(at, &mut b).unwrap();
        u32::from_le_bytes(b)
    }

    #[test]
    fn identity_reads_back_and_cannot_be_changed() {
        let mut s = space();
        assert!(!s.write(0, &[0xff; 4]).unwrap());
        assert_eq!(read32(&s, 0), 0x5678_1234);
        assert_eq!(read32(&s, 8), 0x1200_0001);
    }

    #[test]
    fn bars_are_sized_by_writing_ones() {
        let mut s = space();
        for at in [0x10, 0x14, 0x20, 0x24] {
            s.write(at, &[0xff; 4]).unwrap();
        }
        assert_eq!(read32(&s, 0x10), 0xfffc_0004);
        assert_eq!(read32(&s, 0x14), 0xffff_ffff);
        assert_eq!(read32(&s, 0x20), 0xffff_f000);
        assert_eq!(read32(&s, 0x24), 0, "an absent BAR stays zero");
        s.write(0x18, &0x1234_5678_9abc_0000u64.to_le_bytes()).unwrap();
        assert_eq!(s.bar_address(2), Some(0x1234_5678_9abc_0000));
        assert_eq!(s.bar_address(1), None);
        assert_eq!(s.bar_sizes(), [0x40000, 0, 0x10000, 0, 0x1000, 0]);
    }

    #[test]
    fn overlapping_or_odd_bars_are_refused() {
        let mut s = space();
        assert!(s.add_bar(1, 0x1000, false, false).is_err(), "upper half of BAR0");
        assert!(s.add_bar(5, 0x1000, true, false).is_err(), "no next index for 64 bits");
        assert!(s.add_bar(5, 0x1001, false, false).is_err());
        assert!(s.add_bar(6, 0x1000, false, false).is_err());
    }

    #[test]
    fn capabilities_form_a_chain() {
        let s = space();
        assert_ne!(read32(&s, 4) >> 16 & 0x10, 0);
        let mut at = read32(&s, 0x34) as u16 & 0xff;
        let mut ids = vec![];
        while at != 0 {
            let head = read32(&s, at);
            ids.push(head as u8);
            at = (head >> 8 & 0xff) as u16;
        }
        assert_eq!(ids, [CAP_PCIE, CAP_MSIX, CAP_VENDOR]);
    }

    #[test]
    fn the_chain_goes_on_elsewhere() {
        let mut s = space();
        let last = s.last_link as u16;
        s.continue_at(0xc0);
        assert_eq!(read32(&s, last - 1) >> 8 & 0xff, 0xc0);
    }

    #[test]
    fn switches_follow_the_registers() {
        let mut s = space();
        assert!(!s.memory_enabled() && !s.bus_master() && !s.msix_enabled());
        s.write(4, &[0x06, 0x00]).unwrap();
        assert!(s.memory_enabled() && s.bus_master());
        let msix = s.msix.unwrap() as u16;
        s.write(msix + 2, &[0xff, 0x80]).unwrap();
        assert!(s.msix_enabled());
        assert_eq!(read32(&s, msix) >> 16 & 0x7ff, 7, "table size is fixed");
        s.write(msix + 2, &[0, 0xc0]).unwrap();
        assert!(!s.msix_enabled(), "function mask");
        s.reset();
        assert!(!s.memory_enabled() && !s.msix_enabled());
    }

    #[test]
    fn a_function_level_reset_is_reported_and_reads_as_zero() {
        let mut s = space();
        let control = s.pcie.unwrap() as u16 + 8;
        assert!(!s.write(control, &[0xff, 0x7f]).unwrap());
        assert!(s.write(control, &[0, 0x80]).unwrap());
        assert_eq!(read32(&s, control) & 0x8000, 0);
    }

    #[test]
    fn accesses_past_the_end_are_refused() {
        let mut s = space();
        assert!(s.read(0xffd, &mut [0; 4]).is_err());
        assert!(s.write(0xffff, &[0]).is_err());
        assert!(s.read(0xffc, &mut [0; 4]).is_ok());
    }
}
