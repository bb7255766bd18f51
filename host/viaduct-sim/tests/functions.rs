// SPDX-License-Identifier: Apache-2.0
//! Several functions on one simulated card. Functions that the card lacks are skipped; without `make functions`, all.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{LONG, open};
use viaduct_pci::vfio_user::{Client, Server};
use viaduct_pci::{DmaAccess, HostMemory, PciError, PciFunction};
use viaduct_sim::{SimCard, XDMA, XDMA_DMA_BAR, XDMA_USER_BAR, function_name, function_names};

const SCRATCH: u64 = 0x1c;

fn xdma(card: &Arc<SimCard>) -> Option<Arc<dyn PciFunction>> {
    common::function(card, XDMA)
}

fn config32(function: &dyn PciFunction, at: u16) -> u32 {
    let mut word = [0; 4];
    function.config_read(at, &mut word).unwrap();
    u32::from_le_bytes(word)
}

#[test]
fn functions_describe_themselves() {
    let Some(card) = open() else { return };
    assert!(card.function(0).unwrap().is_none(), "the management function is the card itself");
    assert!(card.function(16).unwrap().is_none() && card.function(usize::MAX).unwrap().is_none());
    for number in 1..function_names().count() {
        let Some(f) = card.function(number).unwrap() else { continue };
        let name = function_name(number).unwrap();
        // Location of the MSI-X table.
        let table = if number == XDMA { XDMA_DMA_BAR } else { 0 };
        let second = if number == XDMA { 64 << 10 } else { 0 };
        assert_eq!(f.info().bar_sizes, [64 << 10, second, 0, 0, 0, 0], "{name}");
        let id = config32(&*f, 0);
        assert_eq!(id, u32::from(f.info().device) << 16 | u32::from(f.info().vendor), "{name}");
        assert!((1..=64).contains(&f.info().vectors), "{name}");
        // As a driver determines their sizes: 64-bit addresses for virtio, the vendor's two times 32 bits for XDMA.
        for bar in [0x10, 0x14] {
            f.config_write(bar, &[0xff; 4]).unwrap();
        }
        let bars = if number == XDMA { [0xffff_0000, 0xffff_0000] } else { [0xffff_0004, u32::MAX] };
        assert_eq!([config32(&*f, 0x10), config32(&*f, 0x14)], bars, "{name}");
        let mut at = config32(&*f, 0x34) as u16 & 0xff;
        let mut kinds = vec![];
        while at != 0 {
            assert!(at % 4 == 0 && at >= 0x40 && kinds.len() < 40, "{name}: capability at {at:#x}");
            let head = config32(&*f, at);
            kinds.push(head as u8);
            // Byte by byte it reads the same.
            let mut bytes = [0; 4];
            for (i, byte) in (0..).zip(bytes.chunks_mut(1)) {
                f.config_read(at + i, byte).unwrap();
            }
            assert_eq!(u32::from_le_bytes(bytes), head, "{name}");
            if head as u8 == 0x11 {
                let places = [config32(&*f, at + 4), config32(&*f, at + 8)];
                assert_eq!(places, [0x8000, 0xc000].map(|at| at | u32::from(table)), "{name}");
            }
            at = (head >> 8 & 0xff) as u16;
        }
        assert_eq!(kinds[..2], [0x10, 0x11], "{name}");
        assert!(kinds[2..].iter().all(|kind| *kind == 0x09), "{name}: {kinds:x?}");
        // The table is stored as a whole, whatever the card does.
        f.write32(table, 0x8004, 0x1234_5678).unwrap();
        f.write(table, 0x8005, &[0xee]).unwrap();
        assert_eq!(f.read32(table, 0x8004).unwrap(), 0x1234_ee78, "{name}");
        assert_eq!(f.read32(table, 0xc000).unwrap(), 0, "{name}");
        for (bar, offset, len) in
            [(0, 0xffff, 2), (table, 64 << 10, 4), (table + 1, 0, 4), (0, u64::MAX, 4), (6, 0, 4)]
        {
            let error = f.read(bar, offset, &mut vec![0; len]).unwrap_err();
            assert!(matches!(error, PciError::OutOfRange { .. }), "{name} {bar} {offset:#x}");
        }
        f.config_write(4, &[6, 0]).unwrap();
        assert_eq!(config32(&*f, 4) & 0xffff, 6, "{name}");
        f.config_write(0x48, &[0, 0x80]).unwrap();
        assert_eq!(config32(&*f, 4) & 0xffff, 0, "{name}: reset");
        assert_eq!(f.read32(table, 0x8004).unwrap(), 0, "{name}: reset");
        assert!(Arc::ptr_eq(&f, &card.function(number).unwrap().unwrap()), "{name} is one");
        assert!(matches!(f.wait_irq(!0, Duration::ZERO), Err(PciError::Timeout(_))), "{name}");
        let counters = card.function_counters(number).unwrap();
        assert!(counters.mmio_reads > 0 && counters.irqs == 0, "{name}: {counters:?}");
    }
    assert!(card.parked(), "functions without a driver do nothing");
}

/// Registers of the first channel in each direction.
struct Engine<'a> {
    function: &'a dyn PciFunction,
    memory: Arc<HostMemory>,
    iova: u64,
}

impl<'a> Engine<'a> {
    const DATA: usize = 4096;
    /// Bits of status, control and interrupt mask: stopped, completed, and the errors.
    const EVENTS: u32 = Self::ERRORS | 0x6;
    const ERRORS: u32 = 0x00ff_fe18;

    /// With 1 MiB of memory at `iova`: a descriptor, and data from [`Engine::DATA`] on.
    fn new(function: &'a dyn PciFunction, iova: u64) -> Self {
        let memory = Arc::new(HostMemory::new(1 << 20).unwrap());
        function.dma_map(iova, memory.clone(), DmaAccess::ReadWrite).unwrap();
        let engine = Self { function, memory, iova };
        engine.set_up();
        engine
    }

    fn set_up(&self) {
        self.function.config_write(4, &[6, 0]).unwrap();
        for (offset, value) in [(0x2010, 3), (0x20a0, 0x0100)] {
            self.function.write32(XDMA_DMA_BAR, offset, value).unwrap();
        }
    }

    /// Copies between two addresses and returns the channel's status.
    fn copy(&self, to_card: bool, from: u64, to: u64, len: u32) -> u32 {
        let words = [0xad4b_0003, len, from as u32, (from >> 32) as u32, to as u32, (to >> 32) as u32, 0, 0];
        for (i, word) in words.into_iter().enumerate() {
            self.memory.write_u32(4 * i, word, Ordering::Release);
        }
        let base = if to_card { 0 } else { 0x1000 };
        let f = self.function;
        let control = Self::EVENTS | 1;
        let writes = [
            (0x4080, self.iova as u32),
            (0x4084, (self.iova >> 32) as u32),
            (0x4088, 0),
            (0x90, control & !1),
            (0x04, control),
        ];
        for (offset, value) in writes {
            f.write32(XDMA_DMA_BAR, base + offset, value).unwrap();
        }
        let vector = 1 << u32::from(!to_card);
        assert_eq!(f.wait_irq(vector, LONG).unwrap(), vector);
        // Reading clears it.
        let status = f.read32(XDMA_DMA_BAR, base + 0x44).unwrap();
        f.write32(XDMA_DMA_BAR, base + 0x04, 0).unwrap();
        status
    }

    fn there_and_back(&self, card: u64, seed: u8) {
        const LEN: usize = 10_000;
        let data: Vec<u8> = (0..LEN).map(|i| (i as u8).wrapping_mul(31) ^ seed).collect();
        self.memory.write(Self::DATA, &data);
        self.memory.fill(0x8_0000, LEN, 0);
        let host = self.iova + Self::DATA as u64;
        assert_eq!(self.copy(true, host, card, LEN as u32) & Self::ERRORS, 0);
        assert_eq!(self.copy(false, card, self.iova + 0x8_0000, LEN as u32) & Self::ERRORS, 0);
        let mut back = vec![0; LEN];
        self.memory.read(0x8_0000, &mut back);
        assert!(back == data, "what came back is not what was sent");
    }
}

#[test]
fn a_function_has_its_own_dma_and_interrupts() {
    let Some(card) = open() else { return };
    let Some(function) = xdma(&card) else { return };
    let engine = Engine::new(&*function, 0x10_0000_0000);
    engine.there_and_back(0x10_0000, 1);
    assert!(matches!(card.wait_irq(!0, Duration::ZERO), Err(PciError::Timeout(_))));
    let counters = card.function_counters(XDMA).unwrap();
    assert_eq!(counters.irqs, 2);
    assert!(counters.host_read_bytes >= 10_000 && counters.host_write_bytes >= 10_000, "{counters:?}");
    assert_eq!(card.function_counters(0).unwrap().host_read_bytes, 0);
    assert!(card.counters().host_read_bytes >= counters.host_read_bytes);

    // The management function's memory is not accessible to the engine, and vice versa.
    let other = Arc::new(HostMemory::new(4096).unwrap());
    card.dma_map(0x7000_0000, other.clone(), DmaAccess::ReadWrite).unwrap();
    other.fill(0, 4096, 0x5a);
    let status = engine.copy(true, 0x7000_0000, 0, 64);
    assert_ne!(status & 0x3e00, 0, "a read of memory that is not the function's: {status:#x}");
    let status = engine.copy(false, 0, 0x7000_0000, 64);
    assert_ne!(status & 0x7_c000, 0, "a write: {status:#x}");
    let mut bytes = [0; 64];
    other.read(0, &mut bytes);
    assert_eq!(bytes, [0x5a; 64]);
    function.dma_map(0x7000_0000, Arc::new(HostMemory::new(4096).unwrap()), DmaAccess::Read).unwrap();
    function.dma_unmap(0x7000_0000).unwrap();
    card.dma_unmap(0x7000_0000).unwrap();

    function.reset().unwrap();
    engine.set_up();
    engine.there_and_back(0x20_0001, 2);
}

#[test]
fn a_function_without_bus_master_reaches_nothing() {
    let Some(card) = open() else { return };
    let Some(function) = xdma(&card) else { return };
    let engine = Engine::new(&*function, 0x10_0000);
    function.config_write(4, &[2, 0]).unwrap();
    for (offset, value) in [(0x4080, 0x10_0000u32), (0x4084, 0), (0x4088, 0), (0x04, 1)] {
        function.write32(XDMA_DMA_BAR, offset, value).unwrap();
    }
    card.run(100_000);
    assert!(card.parked(), "what is held back does not keep the card awake");
    assert_eq!(card.function_counters(XDMA).unwrap().host_read_tlps, 0);
    // Nothing is lost.
    engine.memory.write_u32(0, 0xad4b_0003, Ordering::Release);
    function.config_write(4, &[6, 0]).unwrap();
    card.run(100_000);
    assert!(card.function_counters(XDMA).unwrap().host_read_tlps > 0);
}

/// The end of a function releases its own memory only, although the next one is opened meanwhile.
#[test]
fn a_function_opened_while_it_is_dropped_keeps_its_memory() {
    let Some(card) = open() else { return };
    if xdma(&card).is_none() {
        return;
    }
    let pages = || (0..1024).map(|page| 0x1000 * page);
    let map_all = |function: &dyn PciFunction| {
        for iova in pages() {
            let memory = Arc::new(HostMemory::new(4096).unwrap());
            function.dma_map(iova, memory, DmaAccess::Read).unwrap();
        }
    };
    for _ in 0..20 {
        let old = xdma(&card).unwrap();
        map_all(&*old);
        let held = Arc::downgrade(&old);
        let new = std::thread::scope(|scope| {
            scope.spawn(|| drop(old));
            while held.strong_count() > 0 {
                std::hint::spin_loop();
            }
            let new = xdma(&card).unwrap();
            map_all(&*new);
            new
        });
        for iova in pages() {
            new.dma_unmap(iova).unwrap();
        }
    }
}

/// Two servers, one card: clients connect and disconnect without an effect on those of the other server.
#[test]
fn clients_of_two_functions_do_not_disturb_each_other() {
    let Some(card) = open() else { return };
    let Some(function) = xdma(&card) else { return };
    let dir = tempfile::tempdir().unwrap();
    let (mgmt, dma) = (dir.path().join("mgmt.sock"), dir.path().join("xdma.sock"));
    let _servers = [Server::bind(&mgmt, card.clone()).unwrap(), Server::bind(&dma, function).unwrap()];
    let client = Client::connect(&dma).unwrap();
    let engine = Engine::new(&client, 0x4000_0000);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut turns = 0u32;
            while !over.load(Ordering::Relaxed) || turns < 3 {
                let other = Client::connect(&mgmt).unwrap();
                let memory = Arc::new(HostMemory::new(1 << 20).unwrap());
                // The same bus address as the engine's.
                other.dma_map(0x4000_0000, memory.clone(), DmaAccess::ReadWrite).unwrap();
                for i in 0..20 {
                    other.write32(0, SCRATCH, turns + i).unwrap();
                    assert_eq!(other.read32(0, SCRATCH).unwrap(), turns + i);
                }
                let mut all = vec![0; 1 << 20];
                memory.read(0, &mut all);
                assert!(all.iter().all(|byte| *byte == 0), "another function wrote to this client's memory");
                turns += 1;
            }
        });
        for seed in 0..10 {
            engine.there_and_back(u64::from(seed) << 16, seed);
        }
        over.store(true, Ordering::Relaxed);
    });
}

/// An idle card uses no processor time, and a store takes effect immediately.
#[test]
fn an_idle_card_sleeps_and_wakes_up() {
    let Some(card) = open() else { return };
    let Some(function) = xdma(&card) else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("xdma.sock");
    let _server = Server::bind(&path, function).unwrap();
    let client = Client::connect(&path).unwrap();
    let engine = Engine::new(&client, 0x4000_0000);
    engine.there_and_back(0, 1);
    // A read is ordered after the last register write.
    assert_eq!(client.read32(XDMA_USER_BAR, 0).unwrap(), u32::MAX, "no slot is open");
    while !card.parked() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let cycles = card.now();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(card.now(), cycles, "an idle card stands still");
    let begin = Instant::now();
    engine.there_and_back(0, 2);
    assert!(begin.elapsed() < Duration::from_secs(20));
}
