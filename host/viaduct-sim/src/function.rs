// SPDX-License-Identifier: Apache-2.0
//! The functions other than the management function.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use viaduct_pci::{
    ConfigIds, ConfigSpace, DmaAccess, FunctionInfo, HostMemory, PciError, PciFunction, Result,
};

use crate::card::{STORE_CYCLES, SimCard, State, gone};
use crate::ffi::Space;
use crate::kinds::function_name;

/// The card's description of the function: offset in configuration space, a BAR as read after a write of all ones, and
/// MSI-X as three words from the table's size on.
const BARS: u32 = 0x10;
const MSIX: u32 = 0x7c;
/// The interrupt of a virtio function that tells of a stopped queue, unless its driver has chosen another one.
const CONFIG_VECTOR: u64 = 1 << 0;
const VIRTIO: u16 = 0x1af4;
/// Word of a virtio function's counters with its last error (`rtl/vq/README.md`).
const LAST_ERROR: u32 = 0x4004;
/// Configuration space that the card implements: virtio capabilities.
const LIVE: Range<usize> = 0x90..0x100;

impl SimCard {
    /// Function `number`, other than the management function, which is number 0. `None` if the card has no such function.
    ///
    /// While any of them is in use, a reset of the management function does not affect the others, their attachments and
    /// their configuration.
    pub fn function(self: &Arc<Self>, number: usize) -> Result<Option<Arc<dyn PciFunction>>> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(known) = functions.get(&number) {
            if let Some(function) = known.upgrade() {
                return Ok(Some(function));
            }
            // It is being dropped: its reset and the release of its memory must not meet the next one.
            functions = self.function_freed.wait(functions).unwrap_or_else(PoisonError::into_inner);
        }
        if number == 0 || number >= self.lock().pending.len() {
            return Ok(None);
        }
        let Some(function) = SimFunction::open(self, number as u32)? else { return Ok(None) };
        let function: Arc<dyn PciFunction> = Arc::new(function);
        functions.insert(number, Arc::downgrade(&function));
        Ok(Some(function))
    }
}

/// A function of a simulated card, made by [`SimCard::function`]. The part of a PCIe core (header, BAR, PCIe and MSI-X
/// capabilities, MSI-X table) is implemented here, the rest by the card.
pub(crate) struct SimFunction {
    card: Arc<SimCard>,
    number: u32,
    info: FunctionInfo,
    config: Mutex<ConfigSpace>,
    /// BAR with MSI-X table and pending bits, and the offset from which it belongs to the PCIe core.
    msix_at: (u8, u64),
    msix_table: Mutex<Vec<u32>>,
    /// The word of the last error that was logged, since the last reset.
    logged_error: Mutex<u32>,
}

impl SimFunction {
    /// `None` if the card has no such function.
    pub fn open(card: &Arc<SimCard>, number: u32) -> Result<Option<Self>> {
        let mut state = card.enter();
        let mut word = |at: u32| state.card.fn_read(number, Space::Config, at, 4).map_err(gone);
        let id = word(0x00)?;
        if id == 0 || id == !0 {
            return Ok(None);
        }
        let (class, subsystem) = (word(0x08)?, word(0x2c)?);
        let (msix, table, pending) = (word(MSIX)?, word(MSIX + 4)?, word(MSIX + 8)?);
        let mut bars = [0; 6];
        for (at, bar) in (BARS..).step_by(4).zip(&mut bars) {
            *bar = word(at)?;
        }
        let has_capabilities = word(LIVE.start as u32)? & 0xff != 0;
        card.leave(state);

        let ids = ConfigIds {
            vendor: id as u16,
            device: (id >> 16) as u16,
            revision: class as u8,
            class: class >> 8,
            subsystem_vendor: subsystem as u16,
            subsystem: (subsystem >> 16) as u16,
        };
        let vectors = (msix >> 16 & 0x7ff) as u16 + 1;
        let mut config = ConfigSpace::new(&ids);
        let mut index = 0;
        while let Some(low) = bars.get(index).copied() {
            let bar = index as u8;
            let wide = low & 4 != 0;
            let high = if wide { bars.get(index + 1).copied().unwrap_or(0) } else { !0 };
            if low != 0 {
                let mask = u64::from(high) << 32 | u64::from(low & !0xf);
                config.add_bar(bar, mask.wrapping_neg(), wide, low & 8 != 0)?;
            }
            index += if wide { 2 } else { 1 };
        }
        config.add_pcie(card.link.generation as u8, card.link.lanes as u8)?;
        let place = |word: u32| ((word & 7) as u8, word & !7);
        let (table, pending) = (place(table), place(pending));
        config.add_msix(vectors, table, pending)?;
        if has_capabilities {
            config.continue_at(LIVE.start as u8);
        }
        let (vendor, device) = (ids.vendor, ids.device);
        Ok(Some(Self {
            card: Arc::clone(card),
            number,
            info: FunctionInfo { vendor, device, bar_sizes: config.bar_sizes(), vectors },
            config: Mutex::new(config),
            msix_at: (table.0, table.1.into()),
            msix_table: Mutex::new(vec![0; 4 * usize::from(vectors)]),
            logged_error: Mutex::new(0),
        }))
    }

    fn config(&self) -> MutexGuard<'_, ConfigSpace> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn msix_table(&self) -> MutexGuard<'_, Vec<u32>> {
        self.msix_table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, bar: u8, offset: u64, len: usize) -> Result<()> {
        let size = self.info.bar_sizes.get(usize::from(bar)).copied().unwrap_or(0);
        if offset.checked_add(len as u64).is_some_and(|end| end <= size) {
            return Ok(());
        }
        Err(PciError::OutOfRange { what: format!("{len} bytes at {offset:#x} of BAR{bar}") })
    }

    /// Word of the MSI-X table at this offset; `None` if the offset belongs to the card.
    fn msix_word(&self, bar: u8, at: u64) -> Option<usize> {
        (bar == self.msix_at.0 && at >= self.msix_at.1).then(|| (at - self.msix_at.1) as usize / 4)
    }

    fn live_read(&self, space: Space, offset: u32, buf: &mut [u8]) -> Result<()> {
        let mut state = self.card.enter();
        let value = state.card.fn_read(self.number, space, offset, buf.len() as u32);
        self.card.leave(state);
        buf.copy_from_slice(&value.map_err(gone)?.to_le_bytes()[..buf.len()]);
        Ok(())
    }

    fn live_write(&self, space: Space, offset: u32, data: &[u8]) -> Result<()> {
        let mut word = [0; 4];
        word[..data.len()].copy_from_slice(data);
        let value = u32::from_le_bytes(word);
        let mut state = self.card.enter();
        let written = state.card.fn_write(self.number, space, offset, data.len() as u32, value);
        state.card.run(STORE_CYCLES, 0, 0);
        self.card.leave(state);
        written.map_err(gone)
    }

    /// Logs that a queue was stopped, which otherwise only its driver would know, if that looks at all.
    fn look_for_error(&self, before_reset: bool) {
        let mut word = [0; 4];
        if self.info.vendor != VIRTIO || self.live_read(Space::Bar(0), LAST_ERROR, &mut word).is_err() {
            return;
        }
        let error = u32::from_le_bytes(word);
        let mut logged = self.logged_error.lock().unwrap_or_else(PoisonError::into_inner);
        let known = std::mem::replace(&mut *logged, if before_reset { 0 } else { error });
        // The count of errors; a driver that resets the device sets it to 0.
        if error >> 16 != 0 && !(before_reset && error == known) {
            let name = function_name(self.number as usize).unwrap_or_default();
            tracing::warn!("{name}: queue {} stopped: {}", error >> 8 & 0xf, why_stopped(error & 0xf));
        }
    }

    /// The function as after power-up, with `config` as its configuration space.
    fn reset_with(&self, config: &mut ConfigSpace) -> Result<()> {
        // Drivers of boot loaders have no interrupts.
        self.look_for_error(true);
        let mut state = self.card.enter();
        let done = state.card.fn_reset(self.number);
        state.pending[self.number as usize] = 0;
        state.masters &= !(1 << self.number);
        self.card.leave(state);
        config.reset();
        self.msix_table().fill(0);
        done.map_err(gone)
    }
}

/// Why the engine has stopped a queue: `vq_err_e` of `via_virtio_pkg`.
fn why_stopped(cause: u32) -> &'static str {
    match cause {
        1 => "its available index is ahead by more than its size, or does not fit the notification",
        2 => "a descriptor outside the table",
        3 => "a chain longer than the queue",
        4 => "an indirect table that is nested, empty, too long, misaligned or was not negotiated",
        5 => "a readable descriptor after a writable one",
        6 => "a buffer of no bytes or around the end of addresses, or more than 4 GiB in a chain",
        7 => "its ring or descriptors could not be read from the client's memory",
        8 => "the client's memory could not be written",
        9 => "data could not be read from the client's memory",
        10 => "a request without the parts that its device needs",
        11 => "a misaligned ring",
        _ => "an error of the driver",
    }
}

/// Splits an access into naturally aligned ones of 1, 2 or 4 bytes: offset, and range in the data.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let left = len - done;
        let size = [4usize, 2, 1].into_iter().find(|size| at % *size as u64 == 0 && *size <= left)?;
        done += size;
        Some((at, done - size..done))
    })
}

impl PciFunction for SimFunction {
    fn info(&self) -> &FunctionInfo {
        &self.info
    }

    fn config_read(&self, offset: u16, buf: &mut [u8]) -> Result<()> {
        for (at, range) in pieces(offset.into(), buf.len()) {
            let part = &mut buf[range];
            if LIVE.contains(&(at as usize)) {
                self.live_read(Space::Config, at as u32, part)?;
            } else {
                self.config().read(at as u16, part)?;
            }
        }
        Ok(())
    }

    fn config_write(&self, offset: u16, data: &[u8]) -> Result<()> {
        // Held until the write has taken effect, so that writes take effect in their order.
        let mut config = self.config();
        for (at, range) in pieces(offset.into(), data.len()) {
            let part = &data[range];
            if LIVE.contains(&(at as usize)) {
                self.live_write(Space::Config, at as u32, part)?;
                continue;
            }
            let before = config.bus_master();
            if config.write(at as u16, part)? {
                self.reset_with(&mut config)?;
            } else if config.bus_master() != before {
                let on = config.bus_master();
                let mut state = self.card.enter();
                let done = state.card.fn_bus_master(self.number, on);
                state.masters = state.masters & !(1 << self.number) | u32::from(on) << self.number;
                self.card.leave(state);
                done.map_err(gone)?;
            }
        }
        Ok(())
    }

    fn read(&self, bar: u8, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.check(bar, offset, buf.len())?;
        for (at, range) in pieces(offset, buf.len()) {
            let part = &mut buf[range];
            let Some(index) = self.msix_word(bar, at) else {
                self.live_read(Space::Bar(bar), at as u32, part)?;
                continue;
            };
            // Vectors are delivered regardless of the table, so the pending bits are always zero.
            let word = self.msix_table().get(index).copied().unwrap_or(0);
            let first = at as usize % 4;
            part.copy_from_slice(&word.to_le_bytes()[first..first + part.len()]);
        }
        Ok(())
    }

    fn write(&self, bar: u8, offset: u64, data: &[u8]) -> Result<()> {
        self.check(bar, offset, data.len())?;
        for (at, range) in pieces(offset, data.len()) {
            let part = &data[range];
            let Some(index) = self.msix_word(bar, at) else {
                self.live_write(Space::Bar(bar), at as u32, part)?;
                continue;
            };
            if let Some(word) = self.msix_table().get_mut(index) {
                let mut bytes = word.to_le_bytes();
                let first = at as usize % 4;
                bytes[first..first + part.len()].copy_from_slice(part);
                *word = u32::from_le_bytes(bytes);
            }
        }
        Ok(())
    }

    fn read32(&self, bar: u8, offset: u64) -> Result<u32> {
        let mut word = [0; 4];
        self.aligned(offset)?;
        self.read(bar, offset, &mut word)?;
        Ok(u32::from_le_bytes(word))
    }

    fn write32(&self, bar: u8, offset: u64, value: u32) -> Result<()> {
        self.aligned(offset)?;
        self.write(bar, offset, &value.to_le_bytes())
    }

    fn dma_map(&self, iova: u64, memory: Arc<HostMemory>, access: DmaAccess) -> Result<()> {
        self.card.map(self.number, iova, memory, access)
    }

    fn dma_unmap(&self, iova: u64) -> Result<()> {
        self.card.unmap(self.number, iova)
    }

    fn wait_irq(&self, mask: u64, timeout: Duration) -> Result<u64> {
        let fired = self.card.wait_irq_of(self.number, mask, timeout)?;
        if fired & CONFIG_VECTOR != 0 {
            self.look_for_error(false);
        }
        Ok(fired)
    }

    fn reset(&self) -> Result<()> {
        self.reset_with(&mut self.config())
    }

    fn charge(&self, time: Duration) {
        self.card.charge(time);
    }

    fn stands_still(&self) -> bool {
        self.card.stands_still()
    }
}

impl SimFunction {
    fn aligned(&self, offset: u64) -> Result<()> {
        if offset % 4 == 0 {
            return Ok(());
        }
        Err(PciError::OutOfRange { what: format!("register {offset:#x}") })
    }
}

impl Drop for SimFunction {
    /// The function is no longer used: it stops, and releases its memory.
    fn drop(&mut self) {
        if let Err(error) = self.reset() {
            tracing::warn!(%error, function = self.number, "resetting a function");
        }
        let own = |state: &State| -> Vec<u64> {
            let keys = state.maps.keys().filter(|(function, _)| *function == self.number);
            keys.map(|(_, iova)| *iova).collect()
        };
        let all = own(&self.card.enter());
        for iova in all {
            if let Err(error) = self.dma_unmap(iova) {
                tracing::warn!(%error, iova, "unmapping memory of a function");
            }
        }
        self.card.functions.lock().unwrap_or_else(PoisonError::into_inner).remove(&(self.number as usize));
        self.card.function_freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_cut_into_pieces_the_card_takes() {
        let cut = |offset, len| pieces(offset, len).map(|(at, r)| (at, r.len())).collect::<Vec<_>>();
        assert_eq!(cut(0x20, 8), [(0x20, 4), (0x24, 4)]);
        assert_eq!(cut(0x23, 6), [(0x23, 1), (0x24, 4), (0x28, 1)]);
        assert_eq!(cut(0x22, 2), [(0x22, 2)]);
    }
}
