// SPDX-License-Identifier: Apache-2.0
//! Control of the card's other PCI functions through the management function: attachment of their user side.

mod disk;
mod features;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::card::sync::lock;
use crate::card::{Card, FunctionKind};
use crate::error::{Error, Result};
use crate::protocol::regs::*;

pub use disk::{Disk, SECTOR, Through};
pub use features::{FeatureChange, Features};

/// Attachment of the user side of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attachment {
    /// None: sent data is dropped, none is received. The data of a disk goes directly to its store.
    Nothing,
    /// The board's port of this function: Ethernet, UART, entropy source, keys.
    Board,
    /// Input and output stream 0 of a slot.
    Slot(usize),
    /// Input and output of another stream of a slot.
    Stream {
        /// The slot.
        slot: usize,
        /// Number of the stream, up to 3.
        stream: u8,
    },
}

/// State of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionStatus {
    /// The user side is connected: to the board, or to a slot that is not isolated.
    pub attached: bool,
    /// virtio device status, as the driver set it.
    pub device: u8,
    /// Feature bits: supported, allowed, offered, negotiated.
    pub features: Features,
    /// Messages the function has sent to its user side, modulo 2^32.
    pub sent: u32,
    /// Messages the user side has sent to the function.
    pub received: u32,
    /// Messages that were truncated by a change of the attachment or a reset.
    pub cut: u32,
}

/// Address of the disk, and its path.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DiskAt {
    pub slot: usize,
    pub base: u64,
    pub sectors: u64,
    pub read_only: bool,
    pub header: bool,
}

impl Card {
    /// Control of another PCI function of this card; an error if it was built without.
    pub fn function(self: &Arc<Self>, kind: FunctionKind) -> Result<Function> {
        Function::open(Arc::clone(self), kind)
    }
}

/// Control of one function.
#[derive(Clone)]
pub struct Function {
    card: Arc<Card>,
    kind: FunctionKind,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Function {
    pub(crate) fn open(card: Arc<Card>, kind: FunctionKind) -> Result<Self> {
        card.check_function(kind)?;
        Ok(Self { card, kind })
    }

    /// Which function this is.
    pub fn kind(&self) -> FunctionKind {
        self.kind
    }

    /// Connects the user side. Messages in transit on the old connection are truncated.
    pub fn attach(&self, to: Attachment) -> Result<()> {
        let (kind, slot, stream) = match to {
            Attachment::Nothing => (0, 0, 0),
            Attachment::Board => (1, 0, 0),
            Attachment::Slot(slot) => (2, slot, 0),
            Attachment::Stream { slot, stream } => (2, slot, stream),
        };
        self.card.check_slot(slot)?;
        if stream > 0 && usize::from(stream) >= self.card.route_streams()?.min(4) {
            return Err(Error::Invalid(format!(
                "functions of this card do not reach stream {stream} of a slot"
            )));
        }
        let mask = VIA_FN_CTRL_KIND_MASK | VIA_FN_CTRL_SLOT_MASK | VIA_FN_CTRL_STREAM_MASK;
        let stream = u32::from(stream) << VIA_FN_CTRL_STREAM_LSB;
        self.control(mask, kind << VIA_FN_CTRL_KIND_LSB | (slot as u32) << VIA_FN_CTRL_SLOT_LSB | stream)
    }

    /// Sets whether the link is up, or the device present.
    pub fn set_up(&self, up: bool) -> Result<()> {
        self.control(VIA_FN_CTRL_UP_MASK, u32::from(up) << VIA_FN_CTRL_UP_LSB)
    }

    /// Minimum card cycles between two interrupts of a queue.
    pub fn moderate(&self, cycles: u16) -> Result<()> {
        self.control(VIA_FN_CTRL_MODERATE_MASK, u32::from(cycles) << VIA_FN_CTRL_MODERATE_LSB)
    }

    /// Lets the function offer the features of `allowed` that it supports and whose dependencies it offers, and always VERSION_1;
    /// by default [`Features::DEFAULT`]. A running driver keeps its features: a change takes effect at the next reset of the device.
    pub fn allow_features(&self, allowed: u64) -> Result<()> {
        self.write(VIA_FN_OFFER_LO, allowed as u32)?;
        self.write(VIA_FN_OFFER_HI, (allowed >> 32) as u32)
    }

    /// Polling of a queue for buffers without a notification while data waits: every `period` card cycles (0: never), at most
    /// `count` times in a row without result (0: no limit) until data arrives or the driver notifies. After reset 1024 and 0.
    pub fn look_for_buffers(&self, period: u16, count: u16) -> Result<()> {
        let period = u32::from(period) << VIA_FN_LOOK_PERIOD_LSB;
        self.write(VIA_FN_LOOK, period | u32::from(count) << VIA_FN_LOOK_COUNT_LSB)
    }

    /// Ethernet address of a network device; a driver reads it when it starts.
    pub fn set_mac(&self, mac: [u8; 6]) -> Result<()> {
        let low = u32::from_le_bytes([mac[0], mac[1], mac[2], mac[3]]);
        self.write(VIA_FN_MAC_LO, low)?;
        self.write(VIA_FN_MAC_HI, u32::from(u16::from_le_bytes([mac[4], mac[5]])))
    }

    /// Slots whose apps' registers are accessible to the driver of the XDMA-compatible function, through its user BAR: slot s at
    /// 0x1000 s. All others are closed to it, as are all after power-up, and any slot that is claimed again. An access in progress to a
    /// slot being closed ends before the next one of [`Slot`](crate::Slot) to an app's register. Other functions have no user BAR.
    pub fn open_slots(&self, slots: &[usize]) -> Result<()> {
        if self.kind != FunctionKind::Xdma {
            return Err(Error::Invalid(format!("function {} has no user BAR", self.kind)));
        }
        let mut mask = 0;
        for slot in slots {
            self.card.check_slot(*slot)?;
            mask |= 1 << *slot;
        }
        self.card.reach(|_| mask)
    }

    /// Size of the console, in characters; its driver is notified immediately.
    pub fn set_console_size(&self, columns: u16, rows: u16) -> Result<()> {
        self.write(VIA_FN_CONSOLE_SIZE, u32::from(rows) << VIA_FN_CONSOLE_SIZE_ROWS_LSB | u32::from(columns))
    }

    /// Makes `sectors` sectors of 512 bytes at virtual address `base` of slot `slot` the disk; 0 sectors: no disk. With `header` the
    /// app in its path gets their numbers. A flush waits up to `limit` for [`Function::flushed`]; `None`: not at all.
    pub(crate) fn set_disk(&self, at: DiskAt, limit: Option<Duration>) -> Result<()> {
        let DiskAt { slot, base, sectors, read_only, header } = at;
        // The halves of the registers change one after the other: meanwhile there is no disk. A flush that waits for the former disk fails.
        self.write(VIA_FN_SECTORS_LO, 0)?;
        self.write(VIA_FN_SECTORS_HI, 0)?;
        self.write(VIA_FN_FLUSH_LIMIT, 0)?;
        self.limit_flush(limit)?;
        self.write(VIA_FN_BASE_LO, base as u32)?;
        self.write(VIA_FN_BASE_HI, (base >> 32) as u32)?;
        let store = (slot as u32) << VIA_FN_CTRL_STORE_LSB;
        let read_only = u32::from(read_only) << VIA_FN_CTRL_READ_ONLY_LSB;
        let header = u32::from(header) << VIA_FN_CTRL_HEADER_LSB;
        let mask = VIA_FN_CTRL_STORE_MASK | VIA_FN_CTRL_READ_ONLY_MASK | VIA_FN_CTRL_HEADER_MASK;
        self.control(mask, store | read_only | header)?;
        self.write(VIA_FN_SECTORS_HI, (sectors >> 32) as u32)?;
        self.write(VIA_FN_SECTORS_LO, sectors as u32)
    }

    /// How long a flush waits before it fails; `None`: no flush waits.
    pub(crate) fn limit_flush(&self, limit: Option<Duration>) -> Result<()> {
        let cycles = |limit: Duration| limit.as_millis() * u128::from(self.card.info().clock_khz);
        let units =
            limit.map_or(0, |limit| (cycles(limit) >> 18).clamp(1, VIA_FN_FLUSH_LIMIT_LIMIT_MASK.into()));
        self.write(VIA_FN_FLUSH_LIMIT, units as u32)
    }

    /// Number of the flush that waits, or waited last.
    pub(crate) fn flush_asked(&self) -> Result<u32> {
        Ok(self.read(VIA_FN_FLUSH_ASKED)? & VIA_FN_FLUSH_ASKED_COUNT_MASK)
    }

    /// Completes flush `number`: earlier writes are on stable storage, or the flush fails.
    pub(crate) fn flushed(&self, number: u32, well: bool) -> Result<()> {
        self.write(VIA_FN_FLUSH_DONE, number | if well { 0 } else { VIA_FN_FLUSH_DONE_FAILED_MASK })
    }

    /// Whether a driver uses the device: it has not reset it, and nor has anybody else.
    pub(crate) fn has_driver(&self) -> Result<bool> {
        Ok(self.read(VIA_FN_STATUS)? & VIA_FN_STATUS_DEVICE_MASK != 0)
    }

    /// State of the function.
    pub fn status(&self) -> Result<FunctionStatus> {
        let status = self.read(VIA_FN_STATUS)?;
        let features = Features {
            supported: self.read64(VIA_FN_SUPPORTED_LO, VIA_FN_SUPPORTED_HI)?,
            allowed: self.read64(VIA_FN_OFFER_LO, VIA_FN_OFFER_HI)?,
            offered: self.read64(VIA_FN_OFFERED_LO, VIA_FN_OFFERED_HI)?,
            negotiated: self.read64(VIA_FN_FEATURES_LO, VIA_FN_FEATURES_HI)?,
        };
        Ok(FunctionStatus {
            attached: status & VIA_FN_STATUS_ATTACHED_MASK != 0,
            device: (status & VIA_FN_STATUS_DEVICE_MASK) as u8,
            features,
            sent: self.read(VIA_FN_TX_MESSAGES)?,
            received: self.read(VIA_FN_RX_MESSAGES)?,
            cut: self.read(VIA_FN_CUT_MESSAGES)?,
        })
    }

    fn control(&self, mask: u32, value: u32) -> Result<()> {
        self.card.check_process()?;
        // Several fields share the register.
        let _one_at_a_time = lock(&self.card.functions);
        let old = self.read(VIA_FN_CTRL)?;
        self.write(VIA_FN_CTRL, old & !mask | value)
    }

    fn read(&self, register: u64) -> Result<u32> {
        Ok(self.card.pci().read32(VIA_FN_BAR as u8, self.kind.place_of(register))?)
    }

    fn read64(&self, low: u64, high: u64) -> Result<u64> {
        Ok(u64::from(self.read(low)?) | u64::from(self.read(high)?) << 32)
    }

    fn write(&self, register: u64, value: u32) -> Result<()> {
        Ok(self.card.pci().write32(VIA_FN_BAR as u8, self.kind.place_of(register), value)?)
    }
}
