// SPDX-License-Identifier: Apache-2.0
//! A small PCI function for tests that copies memory by DMA and raises interrupts.
#![allow(dead_code)] // every test binary uses a part

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use viaduct_pci::{
    ConfigIds, ConfigSpace, DmaAccess, FunctionInfo, HostMemory, PciError, PciFunction, Result,
};

pub const VENDOR: u16 = 0x1d0f;
pub const DEVICE: u16 = 0x7a11;
pub const BAR0_SIZE: u64 = 0x1000;
pub const BAR2_SIZE: u64 = 0x1000;
pub const VECTORS: u16 = 20;

/// BAR0: 0x0 source, 0x8 destination, 0x10 length, 0x14 status (0 done, 1 error), 0x18 vector to raise; the rest of
/// BAR0 is memory. BAR2: a write to 0x0 starts the copy, a write to 0x4 raises the vector written.
pub struct Copier {
    info: FunctionInfo,
    state: Mutex<State>,
    fired: Condvar,
    pub resets: AtomicUsize,
    pub writes: AtomicUsize,
    /// Number of waits for an interrupt.
    pub waits: AtomicUsize,
    /// Added to every register read, in milliseconds.
    pub read_delay: AtomicU64,
    /// So many mappings are not given up when they are to be.
    pub kept_maps: AtomicUsize,
}

struct State {
    config: ConfigSpace,
    registers: Vec<u32>,
    maps: BTreeMap<u64, (Arc<HostMemory>, DmaAccess)>,
    pending: u64,
}

impl Copier {
    pub fn new() -> Arc<Self> {
        let ids = ConfigIds {
            vendor: VENDOR,
            device: DEVICE,
            revision: 1,
            class: 0x12_00_00,
            subsystem_vendor: VENDOR,
            subsystem: 1,
        };
        let mut config = ConfigSpace::new(&ids);
        config.add_bar(0, BAR0_SIZE, true, false).unwrap();
        config.add_bar(2, BAR2_SIZE, true, false).unwrap();
        config.add_bar(4, 0x1000, false, false).unwrap();
        config.add_pcie(3, 16).unwrap();
        config.add_msix(VECTORS, (4, 0), (4, 0x800)).unwrap();
        let info =
            FunctionInfo { vendor: VENDOR, device: DEVICE, bar_sizes: config.bar_sizes(), vectors: VECTORS };
        let registers = vec![0; BAR0_SIZE as usize / 4];
        Arc::new(Self {
            info,
            state: Mutex::new(State { config, registers, maps: BTreeMap::new(), pending: 0 }),
            fired: Condvar::new(),
            resets: AtomicUsize::new(0),
            writes: AtomicUsize::new(0),
            waits: AtomicUsize::new(0),
            read_delay: AtomicU64::new(0),
            kept_maps: AtomicUsize::new(0),
        })
    }

    pub fn maps(&self) -> usize {
        self.state.lock().unwrap().maps.len()
    }

    pub fn raise(&self, vector: u32) {
        self.state.lock().unwrap().pending |= 1 << vector;
        self.fired.notify_all();
    }

    fn check(&self, bar: u8, offset: u64) -> Result<usize> {
        let size = self.info.bar_sizes.get(usize::from(bar)).copied().unwrap_or(0);
        if offset % 4 != 0 || offset + 4 > size {
            return Err(PciError::OutOfRange { what: format!("BAR{bar} {offset:#x}") });
        }
        Ok(offset as usize / 4)
    }
}

impl State {
    fn reach(&self, iova: u64, len: usize, write: bool) -> Option<(Arc<HostMemory>, usize)> {
        let (base, (memory, access)) = self.maps.range(..=iova).next_back()?;
        let offset = usize::try_from(iova - base).ok()?;
        let allowed = if write { *access != DmaAccess::Read } else { *access != DmaAccess::Write };
        (allowed && offset.checked_add(len)? <= memory.len()).then(|| (Arc::clone(memory), offset))
    }

    fn copy(&mut self) {
        let r = |i: usize| self.registers[i];
        let (from, to, len) =
            (u64::from(r(0)) | u64::from(r(1)) << 32, u64::from(r(2)) | u64::from(r(3)) << 32, r(4) as usize);
        let len = len.min(1 << 20);
        self.registers[5] = match (self.reach(from, len, false), self.reach(to, len, true)) {
            (Some((source, s)), Some((target, t))) => {
                let mut data = vec![0; len];
                source.read(s, &mut data);
                target.write(t, &data);
                0
            }
            _ => 1,
        };
        self.pending |= 1 << (self.registers[6] & 63);
    }
}

impl PciFunction for Copier {
    fn info(&self) -> &FunctionInfo {
        &self.info
    }

    fn config_read(&self, offset: u16, buf: &mut [u8]) -> Result<()> {
        self.state.lock().unwrap().config.read(offset, buf)
    }

    fn config_write(&self, offset: u16, data: &[u8]) -> Result<()> {
        if self.state.lock().unwrap().config.write(offset, data)? { self.reset() } else { Ok(()) }
    }

    fn read32(&self, bar: u8, offset: u64) -> Result<u32> {
        let index = self.check(bar, offset)?;
        std::thread::sleep(Duration::from_millis(self.read_delay.load(Ordering::Relaxed)));
        Ok(if bar == 0 { self.state.lock().unwrap().registers[index] } else { 0 })
    }

    fn write32(&self, bar: u8, offset: u64, value: u32) -> Result<()> {
        let index = self.check(bar, offset)?;
        self.writes.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state.lock().unwrap();
        match (bar, index) {
            (0, _) => state.registers[index] = value,
            (2, 0) => state.copy(),
            (2, 1) => state.pending |= 1 << (value & 63),
            _ => {}
        }
        drop(state);
        self.fired.notify_all();
        Ok(())
    }

    fn dma_map(&self, iova: u64, memory: Arc<HostMemory>, access: DmaAccess) -> Result<()> {
        self.state.lock().unwrap().maps.insert(iova, (memory, access));
        Ok(())
    }

    fn dma_unmap(&self, iova: u64) -> Result<()> {
        let keeps = |kept: usize| kept.checked_sub(1);
        if self.kept_maps.fetch_update(Ordering::Relaxed, Ordering::Relaxed, keeps).is_ok() {
            return Err(PciError::Timeout(Duration::ZERO));
        }
        let removed = self.state.lock().unwrap().maps.remove(&iova);
        removed.map(drop).ok_or_else(|| PciError::OutOfRange { what: format!("no map at {iova:#x}") })
    }

    fn wait_irq(&self, mask: u64, timeout: Duration) -> Result<u64> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        let state = self.state.lock().unwrap();
        let (mut state, _) =
            self.fired.wait_timeout_while(state, timeout, |state| state.pending & mask == 0).unwrap();
        let fired = state.pending & mask;
        state.pending &= !mask;
        if fired == 0 { Err(PciError::Timeout(timeout)) } else { Ok(fired) }
    }

    fn reset(&self) -> Result<()> {
        self.resets.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state.lock().unwrap();
        state.config.reset();
        state.registers.fill(0);
        state.pending = 0;
        Ok(())
    }
}

/// Copies `len` bytes through any function that is implemented by a [`Copier`].
pub fn copy_through(function: &dyn PciFunction, from: u64, to: u64, len: u32, vector: u32) -> u32 {
    for (offset, value) in [
        (0x0, from as u32),
        (0x4, (from >> 32) as u32),
        (0x8, to as u32),
        (0xc, (to >> 32) as u32),
        (0x10, len),
        (0x18, vector),
    ] {
        function.write32(0, offset, value).unwrap();
    }
    function.write32(2, 0, 1).unwrap();
    assert_eq!(function.wait_irq(1 << vector, Duration::from_secs(5)).unwrap(), 1 << vector);
    function.read32(0, 0x14).unwrap()
}

/// A path for a socket, in a folder that is removed with the value.
pub fn socket() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    (dir, path)
}

/// Waits for a condition to become true.
pub fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !condition() {
        assert!(Instant::now() < deadline, "still not: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
