// SPDX-License-Identifier: Apache-2.0
//! Registers of a virtio PCI device (VIRTIO 1.3, 4.1).

use std::sync::Arc;
use std::time::{Duration, Instant};

use viaduct_pci::{PciError, PciFunction};

use crate::packed::Packed;
use crate::queue::{Queue, Ring};
use crate::ring::{Place, QueueOptions};
use crate::split::Split;
use crate::statistics::{MAGIC, Statistics, WORDS};
use crate::{Arena, Result, VirtioError, feature};

/// PCI vendor id of virtio devices.
pub const VENDOR: u16 = 0x1af4;

const CAP_POINTER: u16 = 0x34;
const CAP_VENDOR: u8 = 0x09;
const CAP_MSIX: u8 = 0x11;
const KIND_COMMON: u8 = 1;
const KIND_NOTIFY: u8 = 2;
const KIND_ISR: u8 = 3;
const KIND_DEVICE: u8 = 4;
const KIND_VENDOR: u8 = 9;
/// Vendor id and version of the capability that locates a Viaduct card's statistics.
const COUNTS_VENDOR: u16 = 0x1209;
const COUNTS_VERSION: u8 = 1;

// Common configuration.
const FEATURE_SELECT: u64 = 0x00;
const FEATURES: u64 = 0x04;
const GUEST_SELECT: u64 = 0x08;
const GUEST_FEATURES: u64 = 0x0c;
const CONFIG_VECTOR: u64 = 0x10;
const QUEUES: u64 = 0x12;
const STATUS: u64 = 0x14;
const GENERATION: u64 = 0x15;
const QUEUE_SELECT: u64 = 0x16;
const QUEUE_SIZE: u64 = 0x18;
const QUEUE_VECTOR: u64 = 0x1a;
const QUEUE_ENABLE: u64 = 0x1c;
const QUEUE_NOTIFY: u64 = 0x1e;
const QUEUE_DESC: u64 = 0x20;
const QUEUE_DRIVER: u64 = 0x28;
const QUEUE_DEVICE: u64 = 0x30;
const QUEUE_RESET: u64 = 0x3a;

const ACKNOWLEDGE: u8 = 1;
const DRIVER: u8 = 2;
const DRIVER_OK: u8 = 4;
const FEATURES_OK: u8 = 8;
const NEEDS_RESET: u8 = 64;
const FAILED: u8 = 128;

const NO_VECTOR: u16 = 0xffff;
/// A reset drains operations in flight: microseconds on a card, much longer on a simulated one under load.
const RESET_TIME: Duration = Duration::from_secs(10);
/// Attempts to read a configuration that changes meanwhile. A device changes it upon events, not constantly.
const CONFIG_TRIES: u32 = 1000;
/// Descriptors of an indirect table of [`Queue`].
const TABLE: usize = 64;

#[derive(Clone, Copy)]
struct Window {
    bar: u8,
    offset: u64,
    len: u64,
}

/// A modern virtio device.
pub struct Device {
    function: Arc<dyn PciFunction>,
    common: Window,
    notify: Window,
    notify_multiplier: u32,
    isr: Window,
    device: Option<Window>,
    statistics: Option<Window>,
    features: u64,
}

impl Device {
    /// Finds the device's registers and enables its access to memory.
    pub fn open(function: Arc<dyn PciFunction>) -> Result<Self> {
        let (device, msix) = Self::find(function)?;
        // Memory and bus master on, INTx off; MSI-X on.
        device.function.config_write(4, &0x0406u16.to_le_bytes())?;
        if let Some(at) = msix {
            let mut control = [0; 2];
            device.function.config_read(at + 2, &mut control)?;
            let on = u16::from_le_bytes(control) | 0x8000;
            device.function.config_write(at + 2, &on.to_le_bytes())?;
        }
        Ok(device)
    }

    /// Finds the registers of a device that another driver controls, to read its statistics; changes nothing.
    pub fn observe(function: Arc<dyn PciFunction>) -> Result<Self> {
        Ok(Self::find(function)?.0)
    }

    /// The device, and the offset of its MSI-X capability.
    fn find(function: Arc<dyn PciFunction>) -> Result<(Self, Option<u16>)> {
        let info = function.info();
        if info.vendor != VENDOR || !(0x1040..0x1080).contains(&info.device) {
            let what =
                format!("ids {:04x}:{:04x} are not those of a modern device", info.vendor, info.device);
            return Err(VirtioError::Device(what));
        }
        let mut found: [Option<Window>; 16] = [None; 16];
        let mut multiplier = 0;
        let mut msix = None;
        let mut at = u16::from(config8(&*function, CAP_POINTER)?) & !3;
        let mut left = 48;
        while at != 0 && left > 0 {
            left -= 1;
            let here = at;
            at = u16::from(config8(&*function, here + 1)?) & !3;
            let id = config8(&*function, here)?;
            if id == CAP_MSIX {
                msix = Some(here);
            }
            let kind = config8(&*function, here + 3)?;
            if id == CAP_VENDOR && usize::from(kind) < found.len() && found[usize::from(kind)].is_none() {
                // A vendor capability has its id in place of the BAR; that of the card continues as the others do.
                let ours = kind == KIND_VENDOR
                    && config32(&*function, here + 4)? as u16 == COUNTS_VENDOR
                    && config8(&*function, here + 7)? == COUNTS_VERSION;
                if kind == KIND_VENDOR && !ours {
                    continue;
                }
                let bar = config8(&*function, here + if ours { 6 } else { 4 })?;
                let window = Window {
                    bar,
                    offset: u64::from(config32(&*function, here + 8)?),
                    len: u64::from(config32(&*function, here + 12)?),
                };
                let size = info.bar_sizes.get(usize::from(bar)).copied().unwrap_or(0);
                if window.offset + window.len <= size {
                    found[usize::from(kind)] = Some(window);
                    if kind == KIND_NOTIFY {
                        multiplier = config32(&*function, here + 16)?;
                    }
                }
            }
        }
        let need = |kind: u8, name: &str, least: u64| {
            let window = found[usize::from(kind)].filter(|w| w.len >= least);
            window
                .ok_or_else(|| VirtioError::Device(format!("it has no {name} capability that fits its BAR")))
        };
        let device = Self {
            common: need(KIND_COMMON, "common configuration", 0x38)?,
            notify: need(KIND_NOTIFY, "notification", 2)?,
            notify_multiplier: multiplier,
            isr: need(KIND_ISR, "interrupt status", 1)?,
            device: found[usize::from(KIND_DEVICE)],
            statistics: found[usize::from(KIND_VENDOR)].filter(|w| w.len >= 4 * WORDS as u64),
            features: 0,
            function,
        };
        Ok((device, msix))
    }

    /// The function behind the device.
    pub fn function(&self) -> &Arc<dyn PciFunction> {
        &self.function
    }

    /// Type of device: 1 network, 2 block, 3 console, 4 entropy …
    pub fn kind(&self) -> u16 {
        self.function.info().device - 0x1040
    }

    /// Number of queues.
    pub fn queues(&self) -> Result<u16> {
        self.get16(QUEUES)
    }

    /// The negotiated features.
    pub fn features(&self) -> u64 {
        self.features
    }

    /// Whether a feature was negotiated.
    pub fn has(&self, bit: u32) -> bool {
        self.features >> bit & 1 != 0
    }

    /// The device's status register.
    pub fn status(&self) -> Result<u8> {
        self.get8(STATUS)
    }

    /// Reads and clears the interrupt status.
    pub fn interrupt_status(&self) -> Result<u8> {
        let mut byte = [0];
        self.function.read(self.isr.bar, self.isr.offset, &mut byte)?;
        Ok(byte[0])
    }

    /// Resets the device and waits until it reports the end of the reset.
    pub fn reset(&mut self) -> Result<()> {
        self.features = 0;
        self.put8(STATUS, 0)?;
        let begun = Instant::now();
        while self.get8(STATUS)? != 0 {
            if begun.elapsed() > RESET_TIME {
                return Err(PciError::Timeout(RESET_TIME).into());
            }
            self.function.charge(Duration::from_micros(1));
        }
        Ok(())
    }

    /// The features that the device offers.
    pub fn offered(&self) -> Result<u64> {
        let mut all = 0;
        for half in 0..2u32 {
            self.put32(FEATURE_SELECT, half)?;
            all |= u64::from(self.get32(FEATURES)?) << (32 * half);
        }
        Ok(all)
    }

    /// Resets the device and negotiates those of `wanted` that it offers, and VERSION_1. Next, set up queues, then call
    /// [`Device::start`].
    pub fn negotiate(&mut self, wanted: u64) -> Result<u64> {
        self.reset()?;
        self.put8(STATUS, ACKNOWLEDGE)?;
        self.put8(STATUS, ACKNOWLEDGE | DRIVER)?;
        let chosen = self.offered()? & (wanted | 1 << feature::VERSION_1);
        for half in 0..2u32 {
            self.put32(GUEST_SELECT, half)?;
            self.put32(GUEST_FEATURES, (chosen >> (32 * half)) as u32)?;
        }
        self.put8(STATUS, ACKNOWLEDGE | DRIVER | FEATURES_OK)?;
        if self.get8(STATUS)? & FEATURES_OK == 0 {
            self.put8(STATUS, FAILED)?;
            return Err(VirtioError::Features(chosen));
        }
        self.features = chosen;
        Ok(chosen)
    }

    /// Options of queues with the negotiated features.
    pub fn options(&self) -> QueueOptions {
        QueueOptions {
            packed: self.has(feature::RING_PACKED),
            event_idx: self.has(feature::EVENT_IDX),
            in_order: self.has(feature::IN_ORDER),
            notification_data: self.has(feature::NOTIFICATION_DATA),
            indirect: self.has(feature::INDIRECT_DESC),
        }
    }

    /// Largest size of queue `index`; 0 if there is no such queue.
    pub fn queue_size(&self, index: u16) -> Result<u16> {
        self.put16(QUEUE_SELECT, index)?;
        self.get16(QUEUE_SIZE)
    }

    /// Sets up and enables queue `index` with `size` entries (a power of two, at most what it offers) and an interrupt
    /// vector, if any.
    pub fn queue(&self, arena: &mut Arena, index: u16, size: u16, vector: Option<u16>) -> Result<Queue> {
        let most = self.queue_size(index)?;
        if size == 0 || size > most || !size.is_power_of_two() {
            return Err(VirtioError::Argument(format!(
                "queue {index} has 1 to {most} entries, a power of two"
            )));
        }
        let options = self.options();
        let entries = usize::from(size);
        let (driver_len, device_len) =
            if options.packed { (4, 4) } else { (8 + 2 * entries, 8 + 8 * entries) };
        let place = Place {
            memory: Arc::clone(arena.memory()),
            bus: arena.bus(0),
            desc: arena.take(16 * entries, 64)?,
            driver: arena.take(driver_len, 64)?,
            device: arena.take(device_len, 64)?,
            tables: if options.indirect { arena.take(16 * TABLE * entries, 64)? } else { 0 },
            table: if options.indirect { TABLE } else { 0 },
            size,
        };
        self.put16(QUEUE_SELECT, index)?;
        self.put16(QUEUE_SIZE, size)?;
        let wanted = vector.unwrap_or(NO_VECTOR);
        self.put16(QUEUE_VECTOR, wanted)?;
        if self.get16(QUEUE_VECTOR)? != wanted {
            return Err(VirtioError::Device(format!("queue {index} gets no interrupt vector {wanted}")));
        }
        self.put64(QUEUE_DESC, place.bus(place.desc))?;
        self.put64(QUEUE_DRIVER, place.bus(place.driver))?;
        self.put64(QUEUE_DEVICE, place.bus(place.device))?;
        let at = u64::from(self.get16(QUEUE_NOTIFY)?) * u64::from(self.notify_multiplier);
        let width = if options.notification_data { 4 } else { 2 };
        if at + width > self.notify.len {
            let what =
                format!("the notification address of queue {index}, {at:#x}, is outside of its capability");
            return Err(VirtioError::Device(what));
        }
        self.put16(QUEUE_ENABLE, 1)?;
        let ring = if options.packed {
            Ring::Packed(Packed::new(place, options))
        } else {
            Ring::Split(Split::new(place, options))
        };
        Ok(Queue {
            function: Arc::clone(&self.function),
            index,
            doorbell: (self.notify.bar, self.notify.offset + at),
            vector,
            options,
            ring,
            kicks: 0,
        })
    }

    /// Resets one queue (RING_RESET) and waits until the device no longer accesses it. Its chains are dropped;
    /// [`Device::queue`] may set it up again.
    pub fn reset_queue(&self, queue: Queue) -> Result<()> {
        self.put16(QUEUE_SELECT, queue.index)?;
        self.put16(QUEUE_RESET, 1)?;
        let begun = Instant::now();
        while self.get16(QUEUE_RESET)? != 0 {
            if begun.elapsed() > RESET_TIME {
                return Err(PciError::Timeout(RESET_TIME).into());
            }
            self.function.charge(Duration::from_micros(1));
        }
        Ok(())
    }

    /// Vector for changes of the configuration.
    pub fn config_vector(&self, vector: u16) -> Result<()> {
        self.put16(CONFIG_VECTOR, vector)?;
        match self.get16(CONFIG_VECTOR)? {
            got if got == vector => Ok(()),
            _ => Err(VirtioError::Device(format!("it has no interrupt vector {vector}"))),
        }
    }

    /// Tells the device that the driver is ready.
    pub fn start(&self) -> Result<()> {
        self.put8(STATUS, ACKNOWLEDGE | DRIVER | FEATURES_OK | DRIVER_OK)?;
        self.check()
    }

    /// An error if the device needs a reset.
    pub fn check(&self) -> Result<()> {
        if self.get8(STATUS)? & NEEDS_RESET != 0 { Err(VirtioError::NeedsReset) } else { Ok(()) }
    }

    /// Reads the device-specific configuration, again if it changed meanwhile; an error if it changes every time.
    pub fn config(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let window = self.device.filter(|w| offset + buf.len() as u64 <= w.len);
        let window =
            window.ok_or_else(|| VirtioError::Argument(format!("no configuration at {offset:#x}")))?;
        for _ in 0..CONFIG_TRIES {
            let before = self.get8(GENERATION)?;
            for (i, byte) in buf.iter_mut().enumerate() {
                let at = window.offset + offset + i as u64;
                self.function.read(window.bar, at, std::slice::from_mut(byte))?;
            }
            if self.get8(GENERATION)? == before {
                return Ok(());
            }
        }
        Err(VirtioError::Device("its configuration changes constantly".into()))
    }

    /// Writes a field of the device-specific configuration.
    pub fn set_config(&self, offset: u64, data: &[u8]) -> Result<()> {
        let window = self.device.filter(|w| offset + data.len() as u64 <= w.len);
        let window =
            window.ok_or_else(|| VirtioError::Argument(format!("no configuration at {offset:#x}")))?;
        Ok(self.function.write(window.bar, window.offset + offset, data)?)
    }

    /// Statistics of the device's queue engine since [`Device::clear_statistics`].
    pub fn statistics(&self) -> Result<Statistics> {
        let window = self.statistics_page()?;
        let mut words = [0; WORDS];
        for (i, word) in words.iter_mut().enumerate() {
            *word = self.function.read32(window.bar, window.offset + 4 * i as u64)?;
        }
        Ok(Statistics::of(&words))
    }

    /// Clears the statistics.
    pub fn clear_statistics(&self) -> Result<()> {
        let window = self.statistics_page()?;
        Ok(self.function.write32(window.bar, window.offset, 0)?)
    }

    fn statistics_page(&self) -> Result<Window> {
        let window = self.statistics.ok_or_else(|| VirtioError::Device("it has no statistics".into()))?;
        match self.function.read32(window.bar, window.offset)? {
            MAGIC => Ok(window),
            other => Err(VirtioError::Device(format!("its statistics have the unknown format {other:#x}"))),
        }
    }

    fn get8(&self, at: u64) -> Result<u8> {
        let mut bytes = [0; 1];
        self.function.read(self.common.bar, self.common.offset + at, &mut bytes)?;
        Ok(bytes[0])
    }

    fn get16(&self, at: u64) -> Result<u16> {
        let mut bytes = [0; 2];
        self.function.read(self.common.bar, self.common.offset + at, &mut bytes)?;
        Ok(u16::from_le_bytes(bytes))
    }

    fn get32(&self, at: u64) -> Result<u32> {
        let mut bytes = [0; 4];
        self.function.read(self.common.bar, self.common.offset + at, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn put8(&self, at: u64, value: u8) -> Result<()> {
        Ok(self.function.write(self.common.bar, self.common.offset + at, &[value])?)
    }

    fn put16(&self, at: u64, value: u16) -> Result<()> {
        Ok(self.function.write(self.common.bar, self.common.offset + at, &value.to_le_bytes())?)
    }

    fn put32(&self, at: u64, value: u32) -> Result<()> {
        Ok(self.function.write(self.common.bar, self.common.offset + at, &value.to_le_bytes())?)
    }

    /// Halves one after the other, as the specification allows for 64-bit fields.
    fn put64(&self, at: u64, value: u64) -> Result<()> {
        self.put32(at, value as u32)?;
        self.put32(at + 4, (value >> 32) as u32)
    }
}

fn config8(function: &dyn PciFunction, at: u16) -> Result<u8> {
    let mut byte = [0];
    function.config_read(at, &mut byte)?;
    Ok(byte[0])
}

fn config32(function: &dyn PciFunction, at: u16) -> Result<u32> {
    let mut bytes = [0; 4];
    function.config_read(at, &mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}
