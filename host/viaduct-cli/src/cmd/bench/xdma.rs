// SPDX-License-Identifier: Apache-2.0
//! The comparison for the virtio round trip: bytes to card memory and back through the XDMA-compatible function, as in the paper
//! (section IV-B), with the register accesses of the vendor's driver and with those of `kernel/xdma`.

use std::sync::Arc;

use viaduct::desc::Command;
use viaduct::{FunctionKind, HostShare, Policy, Sharing};
use viaduct_build::{Project, Variant};
use viaduct_pci::{DmaAccess, PciFunction};
use viaduct_sim::{FunctionCounters, XDMA_DMA_BAR};
use viaduct_virtio::Arena;

use super::{Figure, image, last_completion, wrong};
use crate::card::{CardArgs, Opened, Simulated};
use crate::cmd::bench::plot::{Kind, Plot};
use crate::fail::{Failure, Result};
use crate::random::Random;

const ROUNDS: u32 = 32;
const IOVA: u64 = 0x20_0000_0000;
/// Most bytes that one of the copies moves, in at most 16 transfers.
const COPIED: usize = 1 << 20;

/// A card address in the second channel.
const CHANNEL: u64 = 1 << 34;

const CONTROL: u64 = 0x04;
const CONTROL_SET: u64 = 0x08;
const CONTROL_CLEAR: u64 = 0x0c;
const STATUS: u64 = 0x40;
const STATUS_CLEAR: u64 = 0x44;
const COMPLETED: u64 = 0x48;
const INTERRUPTS: u64 = 0x90;
const CHANNEL_ENABLE: u64 = 0x2010;
const CHANNEL_ENABLE_SET: u64 = 0x2014;
const CHANNEL_REQUEST: u64 = 0x2044;
const CHANNEL_VECTORS: u64 = 0x20a0;
const FIRST: u64 = 0x80;
const ADJACENT: u64 = 0x88;

/// Run, and stop at the end of the list, on an error or a bad magic number.
const RUN: u32 = 1 | 1 << 1 | 1 << 2 | 1 << 4;
const FAILURES: u32 = 0x00ff_fe38;
const LAST: u32 = 0xad4b << 16 | 1 << 4 | 1 << 1 | 1;

/// Driver whose register accesses are made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Driver {
    /// The vendor's in MSI-X mode: 4 reads and 6 writes per transfer.
    Vendor,
    /// `kernel/xdma`: 1 read and 2 writes.
    Ours,
}

struct Engine {
    sim: Simulated,
    function: Arc<dyn PciFunction>,
    arena: Arena,
    descriptor: usize,
    data: usize,
}

impl Engine {
    /// With memory for transfers of up to `most` bytes.
    fn open(project: &Project, card: &CardArgs, most: usize) -> Result<Self> {
        Self::of(&card.open_with(project, Variant::Functions, |_| ())?, most)
    }

    /// The engine of a card that is used otherwise, too.
    fn of(opened: &Opened, most: usize) -> Result<Self> {
        let sim = opened.sim.clone().ok_or(Failure::Run("not a simulated card".into()))?;
        let function = sim
            .function
            .function(usize::from(FunctionKind::Xdma.number()))
            .map_err(pci)?
            .ok_or(Failure::Run("this card has no XDMA-compatible function".into()))?;
        function.config_write(4, &0x0406u16.to_le_bytes()).map_err(pci)?;
        let mut arena = Arena::new(Arc::clone(&function), IOVA, most.next_multiple_of(4096) + (1 << 20))
            .map_err(other)?;
        let descriptor = arena.take(64, 64).map_err(other)?;
        let data = arena.take(most, 4096).map_err(other)?;
        let engine = Self { sim, function, arena, descriptor, data };
        engine.put(CHANNEL_VECTORS, 0x0100)?;
        engine.put(CHANNEL_ENABLE, 3)?;
        for way in 0..2 {
            engine.put(way * 0x1000 + INTERRUPTS, 0x00ff_fe1e)?;
            engine.put(way * 0x1000 + CONTROL, 0)?;
        }
        Ok(engine)
    }

    fn get(&self, at: u64) -> Result<u32> {
        self.function.read32(XDMA_DMA_BAR, at).map_err(pci)
    }

    fn put(&self, at: u64, value: u32) -> Result {
        self.function.write32(XDMA_DMA_BAR, at, value).map_err(pci)
    }

    /// Writes the address of its list to a channel.
    fn list(&self, way: u64) -> Result {
        let list = 0x4000 + way * 0x1000;
        let first = self.arena.bus(self.descriptor);
        self.put(list + FIRST, first as u32)?;
        self.put(list + FIRST + 4, (first >> 32) as u32)?;
        self.put(list + ADJACENT, 0)
    }

    /// One transfer of `len` bytes at card address 0: `way` 0 to the card, 1 from it.
    fn transfer(&self, driver: Driver, way: u64, len: usize) -> Result {
        let host = self.arena.bus(self.data);
        let (from, to) = if way == 0 { (host, 0) } else { (0, host) };
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&LAST.to_le_bytes());
        bytes[4..8].copy_from_slice(&(len as u32).to_le_bytes());
        bytes[8..16].copy_from_slice(&from.to_le_bytes());
        bytes[16..24].copy_from_slice(&to.to_le_bytes());
        self.arena.memory().write(self.descriptor, &bytes);
        let channel = way * 0x1000;
        if driver == Driver::Vendor {
            self.list(way)?;
        }
        self.put(channel + CONTROL_SET, RUN)?;
        if driver == Driver::Vendor {
            self.get(channel + STATUS)?; // flushes the posted writes
        }
        self.function.wait_irq(1 << way, super::PATIENCE).map_err(pci)?;
        if driver == Driver::Vendor {
            self.get(CHANNEL_REQUEST)?;
        }
        let status = self.get(channel + STATUS_CLEAR)?;
        let whole = driver == Driver::Ours || self.get(channel + COMPLETED)? == 1;
        self.put(channel + CONTROL_CLEAR, 1)?;
        if driver == Driver::Vendor {
            self.put(CHANNEL_ENABLE_SET, 1 << way)?;
        }
        if status & FAILURES != 0 || !whole {
            return Err(Failure::Run(format!("XDMA transfer: status {status:#x}")));
        }
        Ok(())
    }

    fn counters(&self) -> FunctionCounters {
        let number = usize::from(FunctionKind::Xdma.number());
        self.sim.function.function_counters(number).unwrap_or_default()
    }
}

fn pci(error: viaduct_pci::PciError) -> Failure {
    Failure::Run(format!("XDMA-compatible function: {error}"))
}

fn other(error: viaduct_virtio::VirtioError) -> Failure {
    Failure::Run(format!("XDMA-compatible function: {error}"))
}

const DRIVERS: [(Driver, &str); 2] =
    [(Driver::Vendor, "the vendor driver's accesses"), (Driver::Ours, "kernel/xdma's")];

/// Copies of the sizes with the vendor driver's accesses: one transfer of one descriptor after the other, as a program that
/// calls `write` and `read` makes them.
pub fn copies(project: &Project, card: &CardArgs, sizes: &[u64], plot: &mut Plot) -> Result<Vec<Figure>> {
    let most = sizes.iter().copied().max().unwrap_or(0);
    let engine = Engine::open(project, card, most as usize)?;
    let clock = f64::from(engine.sim.profile.clk_khz);
    let mut random = Random(6);
    let mut figures = Vec::new();
    for bytes in sizes {
        let size = *bytes as usize;
        let data = random.bytes(size);
        let times = (COPIED / size).clamp(1, 16);
        for (way, name) in [(0, "XDMA, host to card"), (1, "XDMA, card to host")] {
            let what = format!("dma, {name}, {} KiB each", size >> 10);
            let put = if way == 0 { data.clone() } else { vec![0; size] };
            engine.arena.memory().write(engine.data, &put);
            let begun = engine.sim.function.now();
            for _ in 0..times {
                engine.transfer(Driver::Vendor, way, size)?;
            }
            let cycles = engine.sim.function.now() - begun;
            let mut held = vec![0; size];
            engine.arena.memory().read(engine.data, &mut held);
            if held != data {
                return wrong(&what);
            }
            let value = (times * size) as f64 / (cycles as f64 / clock) / 1e6;
            plot.add(Kind::Rival, name, &super::size_of(*bytes), *bytes as f64, value);
            let note = format!("{} bytes in {cycles} cycles, one transfer after the other", times * size);
            figures.push(Figure { what, value, unit: "GB/s", note });
        }
    }
    Ok(figures)
}

/// Shares of the link from the host, in bytes per cycle of the engine: alone, and beside copies of the card's own DMA engine to another channel.
pub fn shares(project: &Project, card: &CardArgs, bytes: u64) -> Result<Vec<Figure>> {
    let opened = card.open_with(project, Variant::Functions, |_| ())?;
    let engine = Engine::of(&opened, bytes as usize)?;
    let slot = opened.card.any_slot()?;
    // Commands of a slot run only while it has an app; any app will do.
    slot.load(&image(project, &opened, &project.load("pass")?)?)?;
    engine.list(0)?;
    engine.list(1)?;
    let buffer = opened.card.dma_buffer(1 << 20, DmaAccess::Read)?;
    // More than twice what the engine copies, even with a fifth of the link.
    let copies = (10 * bytes).div_ceil(1 << 20) as usize;
    let chan = opened.card.info().chan_mib << 20;
    let commands = vec![Command::h2c(buffer.iova(), CHANNEL + chan / 2, 1 << 20); copies];
    let share = |text: &str| -> Result<Vec<HostShare>> { Ok(vec![text.parse()?]) };
    let weighted = |host| Sharing { host, ..Sharing::default() };
    let cases = [
        ("alone", None),
        ("beside copies of the DMA engine", Some(Sharing::default())),
        ("the same, weight 4 of XDMA", Some(weighted(share("xdma=4")?))),
        ("the same, weight 4 of the DMA engine", Some(weighted(share("pages=4")?))),
        ("the same, XDMA first", Some(weighted(share("xdma=1,first")?))),
        (
            "the same, round robin by bursts",
            Some(Sharing { policy: Policy::RoundRobin, ..Sharing::default() }),
        ),
    ];
    let (mut random, mut alone, mut figures) = (Random(7), 0.0, Vec::new());
    for (name, beside) in cases {
        let what = format!("XDMA, host to card, {name}");
        let data = random.bytes(bytes as usize);
        engine.arena.memory().write(engine.data, &data);
        let submitted = match &beside {
            Some(sharing) => {
                opened.card.set_sharing(sharing)?;
                Some(slot.submit(&commands)?)
            }
            None => None,
        };
        let begun = engine.sim.function.now();
        engine.transfer(Driver::Ours, 0, bytes as usize)?;
        let ended = engine.sim.function.now();
        if let Some(submitted) = submitted {
            if last_completion(&slot, &submitted)?.is_none_or(|last| last < ended) {
                return Err(Failure::Run(format!("{what}: the copies beside it ended too early")));
            }
            opened.card.set_sharing(&Sharing::default())?;
        }
        engine.arena.memory().fill(engine.data, data.len(), 0);
        engine.transfer(Driver::Ours, 1, data.len())?;
        let mut held = vec![0; data.len()];
        engine.arena.memory().read(engine.data, &mut held);
        if held != data {
            return wrong(&what);
        }
        let value = bytes as f64 / (ended - begun) as f64;
        if alone == 0.0 {
            alone = value;
        }
        let note = format!("{bytes} bytes in {} cycles, {:.3} of alone", ended - begun, value / alone);
        figures.push(Figure { what, value, unit: "B/cycle", note });
    }
    Ok(figures)
}

/// Round trips of the sizes, for both drivers.
pub fn xdma(project: &Project, card: &CardArgs, sizes: &[usize], plot: &mut Plot) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (driver, name) in DRIVERS {
        let engine = Engine::open(project, card, 4096)?;
        engine.list(0)?;
        engine.list(1)?;
        let mut random = Random(5);
        for size in sizes {
            let what = format!("xdma round trip of {size} bytes, {name}");
            let before = engine.counters();
            let begun = engine.sim.function.now();
            for _ in 0..ROUNDS {
                let data = random.bytes(*size);
                engine.arena.memory().write(engine.data, &data);
                engine.transfer(driver, 0, *size)?;
                engine.arena.memory().fill(engine.data, *size, 0);
                engine.transfer(driver, 1, *size)?;
                let mut back = vec![0; *size];
                engine.arena.memory().read(engine.data, &mut back);
                if back != data {
                    return wrong(&what);
                }
            }
            let cycles = (engine.sim.function.now() - begun) as f64 / f64::from(ROUNDS);
            let after = engine.counters();
            plot.add(Kind::Rival, &format!("XDMA, {name}"), &size.to_string(), *size as f64, cycles);
            let each = |a: u64, b: u64| (b - a) as f64 / f64::from(ROUNDS);
            figures.push(Figure {
                what,
                value: cycles,
                unit: "cycles",
                note: format!(
                    "with the host's side of the link; {:.2} MMIO reads, {:.2} MMIO writes, {:.2} DMA reads, {:.2} DMA writes, {:.2} interrupts",
                    each(before.mmio_reads, after.mmio_reads),
                    each(before.mmio_writes, after.mmio_writes),
                    each(before.host_read_tlps, after.host_read_tlps),
                    each(before.host_write_tlps, after.host_write_tlps),
                    each(before.irqs, after.irqs),
                ),
            });
        }
    }
    Ok(figures)
}
