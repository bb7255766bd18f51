// SPDX-License-Identifier: Apache-2.0
//! A card: its properties, time, memory and slots, and the port that loads apps into them.

mod buffer;
mod counters;
pub mod dma;
mod kind;
pub(crate) mod memory;
pub(crate) mod observer;
mod ours;
mod placement;
mod route;
mod schedule;
mod sharing;
pub(crate) mod sync;
mod sysmon;
mod tables;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

pub use buffer::CardBuffer;
pub(crate) use buffer::Claim;
pub use counters::SlotCounters;
use dma::{DmaArena, DmaBuffer};
pub use kind::FunctionKind;
use memory::{CHANNEL_LOG2, CardMemory, FrameSize};
use observer::{Call, Observed, Observer};
use ours::Ours;
pub use placement::Placement;
pub use route::{Port, Route, RouteState};
pub use schedule::{Rate, Schedule};
pub use sharing::{HostShare, HostUser, Policy, Sharing};
use sync::{lock, poll};
pub use sysmon::{Measured, SystemMonitor};
use tables::Tables;

use crate::error::{Error, Result};
use crate::protocol::regs::*;

use viaduct_pci::{DmaAccess, PciError, PciFunction, Process};

/// Register map this library drives.
const VERSION_MAJOR: u32 = 2;
/// Minor version of it that brought weights.
const WEIGHTS_SINCE: u32 = 1;
/// The greatest weight.
pub(crate) const MAX_WEIGHT: u8 = VIA_SLOT_WEIGHT_VALUE_MASK as u8;

/// Time-outs, in wall-clock time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Without any completion, event, or beat of the slot.
    pub stall: Duration,
    /// The same while the app reports that it computes.
    pub busy: Duration,
    /// For a step of the card's own: loading an image, draining a slot, stopping a ring.
    pub control: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            stall: Duration::from_secs(30),
            busy: Duration::from_secs(600),
            control: Duration::from_secs(30),
        }
    }
}

/// Ways and sets of a TLB of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tlb {
    /// Ways.
    pub ways: u32,
    /// Sets.
    pub sets: u32,
}

/// Properties of a card, read once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardInfo {
    /// Register map: major and minor version.
    pub version: (u32, u32),
    /// Slots.
    pub slots: usize,
    /// DRAM channels.
    pub channels: usize,
    /// Input streams of a slot, and output streams of a slot.
    pub streams: usize,
    /// Bytes in a beat of every data path.
    pub data_bytes: usize,
    /// Clock in kHz; all times are cycles of it.
    pub clock_khz: u32,
    /// MiB of each DRAM channel.
    pub chan_mib: u64,
    /// TLB of a slot for 4 KiB pages.
    pub tlb_page: Tlb,
    /// TLB of a slot for 2 MiB pages.
    pub tlb_huge: Tlb,
}

impl CardInfo {
    /// Seconds that `cycles` take at the card's nominal clock.
    pub fn seconds(&self, cycles: u64) -> f64 {
        cycles as f64 / (f64::from(self.clock_khz) * 1e3)
    }

    /// Pages of a size that a slot's TLB of one direction holds.
    pub(crate) fn held(&self, size: FrameSize) -> u64 {
        let tlb = match size {
            FrameSize::Small => self.tlb_page,
            FrameSize::Huge => self.tlb_huge,
        };
        u64::from(tlb.ways) * u64::from(tlb.sets)
    }
}

/// A card. Shared by its slots; closed when the last of them is dropped.
///
/// It belongs to the process that opened it. In a child of `fork()` every use of it, or of anything opened on it, is an error
/// ([`PciError::Forked`]), and dropping does nothing to the card.
pub struct Card {
    pci: Arc<dyn PciFunction>,
    process: Process,
    info: CardInfo,
    timeouts: Timeouts,
    arena: Arc<DmaArena>,
    memory: Mutex<CardMemory>,
    /// Where the page tables of slots are.
    tables: Tables,
    claimed: Mutex<Vec<bool>>,
    /// Bit k: slot k has mappings whose pages are in card memory.
    placing: AtomicU32,
    /// Held while an image is loaded: the card has one configuration port.
    config_port: Mutex<()>,
    /// Held while a part of a beat of card memory is changed: all of it is read and written.
    pub(crate) partial: Mutex<()>,
    /// Held while the system monitor is read.
    sysmon: Mutex<()>,
    /// Held during the two reads of the time.
    time: Mutex<()>,
    /// Held during a change of a function's control register.
    pub(crate) functions: Mutex<()>,
    /// Held while the card's counters are held.
    counters: Mutex<()>,
    /// Held while a sink is named and its route read or set.
    routes: Mutex<route::Owned>,
    observer: OnceLock<Arc<dyn Observer>>,
}

impl Card {
    /// Opens a card after checking that it is one and that this library can drive it.
    pub fn open(pci: Arc<dyn PciFunction>) -> Result<Arc<Self>> {
        Self::open_with(pci, Timeouts::default())
    }

    /// As [`Card::open`], with other time-outs.
    pub fn open_with(pci: Arc<dyn PciFunction>, timeouts: Timeouts) -> Result<Arc<Self>> {
        let process = Process::current();
        let pci: Arc<dyn PciFunction> = Arc::new(Ours::new(pci, process));
        let info = read_info(&*pci)?;
        let vectors = usize::from(pci.info().vectors);
        if vectors < 2 * info.slots {
            let why =
                format!("{vectors} interrupt vectors for {} slots, two per slot are needed", info.slots);
            return Err(Error::BadCard(why));
        }
        let tables = Tables::new(info.slots, info.channels, info.chan_mib);
        let card = Self {
            arena: DmaArena::new(Arc::clone(&pci)),
            memory: Mutex::new(CardMemory::new(info.channels, info.chan_mib, tables.free)),
            tables,
            claimed: Mutex::new(vec![false; info.slots]),
            placing: AtomicU32::new(0),
            config_port: Mutex::new(()),
            partial: Mutex::new(()),
            sysmon: Mutex::new(()),
            time: Mutex::new(()),
            functions: Mutex::new(()),
            counters: Mutex::default(),
            routes: Mutex::default(),
            observer: OnceLock::new(),
            pci,
            process,
            info,
            timeouts,
        };
        // What an owner that was killed has left. A simulated card of this process has had none, and its time is to be as without this.
        if card.info.version.1 >= WEIGHTS_SINCE && !card.pci.stands_still() {
            card.forget_schedules()?;
            card.set_dma_weights(1, 1)?;
            card.forget_sharing()?;
        }
        Ok(Arc::new(card))
    }

    /// Properties of the card.
    pub fn info(&self) -> &CardInfo {
        &self.info
    }

    /// The underlying PCI function.
    pub fn pci(&self) -> &Arc<dyn PciFunction> {
        &self.pci
    }

    /// Time-outs of every wait on this card.
    pub fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Has an observer told what the library does from now on, as long as the card is open. There can be one; without one nothing is told,
    /// at no cost.
    pub fn set_observer(&self, observer: Arc<dyn Observer>) -> Result<()> {
        self.check_process()?;
        self.observer.set(observer).map_err(|_| Error::Invalid("the card has an observer already".into()))
    }

    /// The observer. In a child of `fork()` there is none: it may need threads that do not exist there.
    fn observer(&self) -> Option<&dyn Observer> {
        self.observer.get().filter(|_| self.is_ours()).map(|observer| &**observer)
    }

    pub(crate) fn tell(&self, what: Observed) {
        if let Some(observer) = self.observer() {
            observer.observe(what);
        }
    }

    /// Tells that this thread begins a call, and when the value is dropped that it ends.
    pub(crate) fn call(&self, slot: usize, name: &'static str) -> Call<'_> {
        Call::begin(self.observer(), slot, name)
    }

    /// Sets the shares of card memory of the DMA engine, which loads and stores pages for all slots, and of that of the XDMA-compatible
    /// function, beside slots and each other, as [`Slot::set_weight`](crate::Slot::set_weight).
    pub fn set_dma_weights(&self, dma: u8, xdma: u8) -> Result<()> {
        self.check_weight(dma)?;
        self.check_weight(xdma)?;
        let weights =
            u32::from(dma) << VIA_CARD_WEIGHTS_DMA_LSB | u32::from(xdma) << VIA_CARD_WEIGHTS_XDMA_LSB;
        self.write_card(VIA_CARD_WEIGHTS, weights)
    }

    /// Whether this is a weight, and the card has such.
    pub(crate) fn check_weight(&self, weight: u8) -> Result<()> {
        if !(1..=MAX_WEIGHT).contains(&weight) {
            return Err(Error::Invalid(format!("weight {weight}: give a number from 1 to {MAX_WEIGHT}")));
        }
        self.check_version(WEIGHTS_SINCE, "weights")
    }

    /// Whether the card's register map has `what`, which minor version `since` brought.
    pub(crate) fn check_version(&self, since: u32, what: &str) -> Result<()> {
        match self.info.version {
            (major, minor) if minor < since => Err(Error::Invalid(format!(
                "a card with register map {major}.{minor} has no {what}; {major}.{since} is the first that has"
            ))),
            _ => Ok(()),
        }
    }

    /// Cycles since power-up.
    pub fn time(&self) -> Result<u64> {
        self.check_process()?;
        let _one_at_a_time = lock(&self.time);
        let low = self.read_card(VIA_CARD_TIME_LO)?;
        let high = self.read_card(VIA_CARD_TIME_HI)?;
        Ok(u64::from(high) << 32 | u64::from(low))
    }

    /// Function-level reset: everything in the card is as after power-up, but for its memory and its time. No slot may be in use. What was
    /// set for the whole card, [`Card::set_sharing`] for example, is to be set again, and routes are gone.
    pub fn reset(&self) -> Result<()> {
        self.check_process()?;
        // Held, so that no slot is claimed meanwhile.
        let claimed = lock(&self.claimed);
        if let Some(slot) = claimed.iter().position(|claimed| *claimed) {
            return Err(Error::SlotInUse { slot });
        }
        self.pci.reset()?;
        let after = self.timeouts.control;
        let back =
            poll(after, || Ok((self.read_card(VIA_CARD_ID)? == VIA_CARD_ID_VALUE_RESET).then_some(())))?;
        back.ok_or_else(|| Error::BadCard("the card does not answer after its reset".into()))
    }

    /// Reads a 32-bit register of the card's block (`VIA_CARD_*` of [`regs`](crate::regs)). A read may have an effect: `TIME_LO` latches
    /// `TIME_HI`, for which there is [`Card::time`].
    pub fn read_register(&self, offset: u32) -> Result<u32> {
        self.check_process()?;
        if offset % 4 != 0 || u64::from(offset) >= VIA_SLOT_BASE {
            return Err(Error::BadRegister { offset });
        }
        self.read_card(offset.into())
    }

    /// Writes a register of the card's block. Only `SCRATCH` is the program's: all others are for the library.
    pub fn write_register(&self, offset: u32, value: u32) -> Result<()> {
        self.check_process()?;
        match u64::from(offset) {
            VIA_CARD_SCRATCH => self.write_card(VIA_CARD_SCRATCH, value),
            _ => Err(Error::Invalid(format!(
                "register {offset:#x} of the card is for the library; a program may write {VIA_CARD_SCRATCH:#x}"
            ))),
        }
    }

    /// Whether an app is in the slot.
    pub fn is_loaded(&self, slot: usize) -> Result<bool> {
        self.check_slot(slot)?;
        Ok(self.read_card(VIA_CARD_STATUS)? >> (VIA_CARD_STATUS_LOADED_LSB + slot as u32) & 1 != 0)
    }

    /// Memory that the card accesses by bus address: at least `len` bytes.
    pub fn dma_buffer(&self, len: u64, access: DmaAccess) -> Result<DmaBuffer> {
        self.check_process()?;
        self.arena.alloc(len, access)
    }

    /// Whether this is the process that opened the card. In another one no lock may be taken: it may be held by a thread
    /// that does not exist here.
    pub(crate) fn is_ours(&self) -> bool {
        self.process.is_current()
    }

    pub(crate) fn check_process(&self) -> Result<()> {
        if self.is_ours() { Ok(()) } else { Err(PciError::Forked.into()) }
    }

    /// Reserves a slot for one user of this program, until [`Card::release`].
    pub(crate) fn claim(&self, slot: usize) -> Result<()> {
        self.check_process()?;
        self.check_slot(slot)?;
        if std::mem::replace(&mut lock(&self.claimed)[slot], true) {
            return Err(Error::SlotInUse { slot });
        }
        Ok(())
    }

    /// Whether this program has claimed a slot.
    pub(crate) fn check_claimed(&self, slot: usize) -> Result<()> {
        self.check_slot(slot)?;
        match lock(&self.claimed)[slot] {
            true => Ok(()),
            false => {
                Err(Error::Invalid(format!("slot {slot} is not in use by this program; claim it first")))
            }
        }
    }

    /// Whether an app runs in a slot.
    pub(crate) fn check_running(&self, slot: usize) -> Result<()> {
        let status = self.read_slot(slot, VIA_SLOT_STATUS)?;
        if status & VIA_SLOT_STATUS_LOADED_MASK == 0 {
            return Err(Error::SlotEmpty { slot });
        }
        match status & VIA_SLOT_STATUS_ISOLATED_MASK {
            0 => Ok(()),
            _ => Err(Error::Invalid(format!("slot {slot}: its app does not run; load or reset it first"))),
        }
    }

    pub(crate) fn release(&self, slot: usize) {
        lock(&self.claimed)[slot] = false;
    }

    /// Tells whether a slot has mappings whose pages are in card memory, and so a share of the channels.
    pub(crate) fn set_places(&self, slot: usize, places: bool) {
        match places {
            true => self.placing.fetch_or(1 << slot, Ordering::Relaxed),
            false => self.placing.fetch_and(!(1 << slot), Ordering::Relaxed),
        };
    }

    /// A frame for a page of a slot.
    pub(crate) fn alloc_frame(&self, size: FrameSize, slot: usize, placement: Placement) -> Option<u64> {
        let channels = self.info.channels;
        let mut memory = lock(&self.memory);
        match placement {
            Placement::Only(channels) => memory.alloc(size, channels),
            Placement::All => memory.alloc(size, placement::all(channels)),
            Placement::Share => {
                let share = placement::share(self.placing.load(Ordering::Relaxed), slot, channels);
                memory.alloc(size, share).or_else(|| memory.alloc(size, placement::all(channels)))
            }
        }
    }

    /// Whether there is a free frame for a page of 2 MiB.
    pub(crate) fn has_huge_frame(&self, placement: Placement) -> bool {
        let channels = match placement {
            Placement::Only(channels) => channels,
            // A slot may have frames outside its share.
            Placement::All | Placement::Share => placement::all(self.info.channels),
        };
        lock(&self.memory).has_huge(channels)
    }

    pub(crate) fn free_frame(&self, addr: u64, size: FrameSize) {
        lock(&self.memory).free(addr, size);
    }

    /// Card memory reserved for page tables.
    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Keeps the page tables out of reach of all slots.
    pub(crate) fn keep_tables(&self) -> Result<()> {
        let tables = &self.tables;
        let blocks =
            (tables.free as u32) << VIA_CARD_KEEP_FIRST_LSB | (tables.blocks as u32) << VIA_CARD_KEEP_END_LSB;
        self.write_card(VIA_CARD_KEEP, blocks)
    }

    /// Lets the user have a range of card memory, until the value is dropped if it is a part of an allocated one, else while the card is
    /// open.
    pub(crate) fn claim_range(self: &Arc<Self>, addr: u64, len: u64) -> Result<Claim> {
        let allocation = lock(&self.memory).claim(addr, len)?;
        Ok(Claim(allocation.map(|addr| (Arc::clone(self), addr))))
    }

    /// Feeds an image to the configuration port. The slot is held in reset by the caller.
    pub(crate) fn configure(&self, slot: usize, image: &[u8]) -> Result<()> {
        if image.is_empty() || image.len() % 4 != 0 {
            return Err(Error::BadImage(format!("{} bytes are not whole 32-bit words", image.len())));
        }
        let _port = lock(&self.config_port);
        // The port drops a word that waits too long for space; the image is then sent once more.
        for attempt in 0..2 {
            let number = slot as u32;
            self.write_card(VIA_CARD_ICAP_CTRL, number | VIA_CARD_ICAP_CTRL_START_MASK)?;
            for word in image.chunks_exact(4) {
                let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                self.write_card(VIA_CARD_ICAP_DATA, word)?;
            }
            self.write_card(VIA_CARD_ICAP_CTRL, number | VIA_CARD_ICAP_CTRL_END_MASK)?;
            let after = self.timeouts.control;
            let status = poll(after, || {
                let status = self.read_card(VIA_CARD_ICAP_STATUS)?;
                let lost = status & VIA_CARD_ICAP_STATUS_LOST_MASK != 0;
                let done = status & VIA_CARD_ICAP_STATUS_DONE_MASK != 0;
                Ok((lost || done).then_some(status))
            })?
            .ok_or_else(|| Error::LoadStuck {
                slot,
                what: "the configuration logic is still busy".into(),
                after,
            })?;
            if status & VIA_CARD_ICAP_STATUS_LOST_MASK != 0 {
                tracing::warn!(slot, attempt, "the configuration port lost a word");
                continue;
            }
            let code = status >> VIA_CARD_ICAP_STATUS_CODE_LSB;
            return if code == 0 { Ok(()) } else { Err(Error::LoadRefused { slot, code: code as u8 }) };
        }
        let what = "the configuration port twice lost a word".into();
        Err(Error::LoadStuck { slot, what, after: self.timeouts.control })
    }

    pub(crate) fn read_card(&self, register: u64) -> Result<u32> {
        Ok(self.pci.read32(VIA_CARD_BAR as u8, VIA_CARD_BASE + register)?)
    }

    fn write_card(&self, register: u64, value: u32) -> Result<()> {
        Ok(self.pci.write32(VIA_CARD_BAR as u8, VIA_CARD_BASE + register, value)?)
    }

    pub(crate) fn read_slot(&self, slot: usize, register: u64) -> Result<u32> {
        Ok(self.pci.read32(VIA_SLOT_BAR as u8, VIA_SLOT_BASE + slot as u64 * VIA_SLOT_STRIDE + register)?)
    }

    pub(crate) fn write_slot(&self, slot: usize, register: u64, value: u32) -> Result<()> {
        let at = VIA_SLOT_BASE + slot as u64 * VIA_SLOT_STRIDE + register;
        Ok(self.pci.write32(VIA_SLOT_BAR as u8, at, value)?)
    }

    pub(crate) fn write_bell(&self, slot: usize, register: u64, value: u32) -> Result<()> {
        let at = VIA_BELL_BASE + slot as u64 * VIA_BELL_STRIDE + register;
        Ok(self.pci.write32(VIA_BELL_BAR as u8, at, value)?)
    }

    /// Changes the set of slots whose apps' registers are accessible through the XDMA-compatible function's user BAR (bit s = slot s).
    pub(crate) fn reach(&self, change: impl Fn(u32) -> u32) -> Result<()> {
        let at = FunctionKind::Xdma.place_of(VIA_FN_REACH);
        // Before the lock: in a child of a fork it may be held by a thread that does not exist there.
        self.check_process()?;
        let _one_at_a_time = lock(&self.functions);
        let old = self.pci.read32(VIA_FN_BAR as u8, at)?;
        let new = change(old);
        if new != old {
            self.pci.write32(VIA_FN_BAR as u8, at, new)?;
        }
        Ok(())
    }

    /// The functions that the card was built with, beside the management function.
    pub fn functions(&self) -> Result<Vec<FunctionKind>> {
        self.check_process()?;
        let mut present = Vec::new();
        for kind in FunctionKind::ALL {
            if self.has_function(kind)? {
                present.push(kind);
            }
        }
        Ok(present)
    }

    fn has_function(&self, kind: FunctionKind) -> Result<bool> {
        let status = self.pci.read32(VIA_FN_BAR as u8, kind.place_of(VIA_FN_STATUS))?;
        Ok(status != u32::MAX && status & VIA_FN_STATUS_PRESENT_MASK != 0)
    }

    /// Whether the card was built with a function.
    pub(crate) fn check_function(&self, kind: FunctionKind) -> Result<()> {
        match self.has_function(kind)? {
            true => Ok(()),
            false => Err(Error::Invalid(format!("this card was built without function {kind}"))),
        }
    }

    pub(crate) fn check_slot(&self, slot: usize) -> Result<()> {
        if slot < self.info.slots {
            return Ok(());
        }
        Err(Error::NoSuchSlot { slot, last: self.info.slots - 1 })
    }
}

fn read_info(pci: &dyn PciFunction) -> Result<CardInfo> {
    let read = |register| pci.read32(VIA_CARD_BAR as u8, VIA_CARD_BASE + register);
    let id = read(VIA_CARD_ID)?;
    if id != VIA_CARD_ID_VALUE_RESET {
        return Err(Error::NotACard { id });
    }
    let version = read(VIA_CARD_VERSION)?;
    let version = (version >> VIA_CARD_VERSION_MAJOR_LSB, version & VIA_CARD_VERSION_MINOR_MASK);
    if version.0 != VERSION_MAJOR {
        return Err(Error::Version { card: version.0, library: VERSION_MAJOR });
    }
    let tlb = |value: u32| Tlb {
        ways: value & VIA_CARD_TLB_PAGE_WAYS_MASK,
        sets: 1u32.checked_shl(value >> VIA_CARD_TLB_PAGE_SETS_LOG2_LSB).unwrap_or(0),
    };
    let [data_log2, streams, channels, slots] = read(VIA_CARD_GEOMETRY)?.to_be_bytes().map(usize::from);
    let info = CardInfo {
        version,
        slots,
        channels,
        streams,
        data_bytes: 1usize.checked_shl(data_log2 as u32).unwrap_or(0),
        clock_khz: read(VIA_CARD_CLOCK_KHZ)?,
        chan_mib: read(VIA_CARD_CHAN_MIB)?.into(),
        tlb_page: tlb(read(VIA_CARD_TLB_PAGE)?),
        tlb_huge: tlb(read(VIA_CARD_TLB_HUGE)?),
    };
    let sound = (1..=16).contains(&slots)
        && (1..=16).contains(&channels)
        && channels.is_power_of_two()
        && (1..=14).contains(&streams)
        && (3..=6).contains(&data_log2)
        // In a card address the number of the channel follows.
        && (1..=1 << (CHANNEL_LOG2 - 20)).contains(&info.chan_mib)
        && info.clock_khz > 0
        && info.tlb_page.ways > 0;
    if sound { Ok(info) } else { Err(Error::BadCard(format!("{info:?}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use viaduct_pci::{FunctionInfo, HostMemory, Result};

    /// Only the registers that say what a card is.
    struct Says {
        geometry: [u8; 4],
        mib: u32,
    }

    impl PciFunction for Says {
        fn info(&self) -> &FunctionInfo {
            unreachable!()
        }
        fn config_read(&self, _: u16, _: &mut [u8]) -> Result<()> {
            unreachable!()
        }
        fn config_write(&self, _: u16, _: &[u8]) -> Result<()> {
            unreachable!()
        }
        fn read32(&self, _: u8, offset: u64) -> Result<u32> {
            Ok(match offset {
                VIA_CARD_ID => VIA_CARD_ID_VALUE_RESET,
                VIA_CARD_VERSION => VERSION_MAJOR << VIA_CARD_VERSION_MAJOR_LSB,
                VIA_CARD_GEOMETRY => u32::from_be_bytes(self.geometry),
                VIA_CARD_CHAN_MIB => self.mib,
                _ => 4,
            })
        }
        fn write32(&self, _: u8, _: u64, _: u32) -> Result<()> {
            unreachable!()
        }
        fn dma_map(&self, _: u64, _: Arc<HostMemory>, _: DmaAccess) -> Result<()> {
            unreachable!()
        }
        fn dma_unmap(&self, _: u64) -> Result<()> {
            unreachable!()
        }
        fn wait_irq(&self, _: u64, _: Duration) -> Result<u64> {
            unreachable!()
        }
        fn reset(&self) -> Result<()> {
            unreachable!()
        }
    }

    #[test]
    fn a_card_that_cannot_be_is_refused() {
        let read = |geometry, mib| read_info(&Says { geometry, mib });
        // Width of the data path, streams, channels, slots.
        assert_eq!(read([6, 1, 4, 4], 16384).unwrap().chan_mib, 16384);
        assert_eq!(read([3, 14, 16, 16], 1).unwrap().channels, 16);
        for geometry in [
            [2, 1, 4, 4],
            [7, 1, 4, 4],
            [6, 0, 4, 4],
            [6, 15, 4, 4],
            [6, 1, 0, 4],
            [6, 1, 3, 4],
            [6, 1, 32, 4],
            [6, 1, 4, 0],
            [6, 1, 4, 17],
        ] {
            assert!(matches!(read(geometry, 1024), Err(Error::BadCard(_))), "{geometry:?}");
        }
        for mib in [0, 16385, u32::MAX] {
            assert!(matches!(read([6, 1, 4, 4], mib), Err(Error::BadCard(_))), "{mib}");
        }
    }
}
