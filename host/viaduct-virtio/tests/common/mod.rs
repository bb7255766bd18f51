// SPDX-License-Identifier: Apache-2.0
//! A virtio device in software, after VIRTIO 1.3: registers, and the device's side of split and packed rings. A slow,
//! literal implementation on purpose.

#![allow(dead_code)] // every test binary uses a part

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use viaduct_pci::{
    ConfigIds, ConfigSpace, DmaAccess, FunctionInfo, HostMemory, PciError, PciFunction, Result,
};
use viaduct_virtio::feature;

pub const QUEUES: u16 = 2;
pub const SIZE: u16 = 64;
const NOTIFY: u64 = 0x3000;

#[derive(Clone, Default)]
struct Ring {
    size: u16,
    enabled: bool,
    vector: u16,
    addresses: [u64; 3],
    /// Split: next available and used index. Packed: position and wrap counter.
    next: u16,
    used: u16,
    wrap: bool,
    used_wrap: bool,
}

#[derive(Default)]
struct State {
    config: Option<ConfigSpace>,
    maps: BTreeMap<u64, Arc<HostMemory>>,
    status: u8,
    select: u32,
    guest_select: u32,
    features: u64,
    queue: u16,
    rings: Vec<Ring>,
    interrupts: HashMap<u16, u32>,
    notified: Vec<u32>,
}

/// The device.
pub struct Model {
    info: FunctionInfo,
    offered: u64,
    state: Mutex<State>,
}

/// One chain as read by the device.
pub struct Chain {
    pub id: u16,
    pub slots: u16,
    pub readable: Vec<u8>,
    pub writable: Vec<(u64, u32)>,
}

impl Model {
    pub fn new(offered: u64) -> Arc<Self> {
        let ids = ConfigIds {
            vendor: 0x1af4,
            device: 0x1041,
            revision: 1,
            class: 0x020000,
            subsystem_vendor: 0,
            subsystem: 0,
        };
        let mut config = ConfigSpace::new(&ids);
        config.add_bar(0, 0x10000, true, false).unwrap();
        for (kind, offset, len) in
            [(1u8, 0u32, 0x40u32), (2, 0x3000, 0x40), (3, 0x1000, 4), (4, 0x2000, 0x40)]
        {
            let mut body = vec![kind, 0, 0, 0, 0];
            body.extend_from_slice(&offset.to_le_bytes());
            body.extend_from_slice(&len.to_le_bytes());
            if kind == 2 {
                body.extend_from_slice(&4u32.to_le_bytes());
            }
            config.add_vendor_capability(&body).unwrap();
        }
        let info = FunctionInfo { vendor: 0x1af4, device: 0x1041, bar_sizes: config.bar_sizes(), vectors: 3 };
        let state = State { config: Some(config), rings: fresh(), ..State::default() };
        Arc::new(Self { info, offered: offered | 1 << feature::VERSION_1, state: Mutex::new(state) })
    }

    /// Notifications since the last call, as written.
    pub fn notified(&self) -> Vec<u32> {
        std::mem::take(&mut self.state.lock().unwrap().notified)
    }

    /// Interrupts of a vector so far.
    pub fn interrupts(&self, vector: u16) -> u32 {
        self.state.lock().unwrap().interrupts.get(&vector).copied().unwrap_or(0)
    }

    /// The next available chain of a queue.
    pub fn next(&self, queue: u16) -> Option<Chain> {
        let mut state = self.state.lock().unwrap();
        if state.status & 4 == 0 {
            return None;
        }
        if state.features >> feature::RING_PACKED & 1 != 0 {
            state.next_packed(queue)
        } else {
            state.next_split(queue)
        }
    }

    /// Returns chains with the bytes written to each, in one batch: with `only_last`, as IN_ORDER allows.
    pub fn give_back(&self, queue: u16, chains: &[(&Chain, u32)], only_last: bool) {
        let mut state = self.state.lock().unwrap();
        if state.features >> feature::RING_PACKED & 1 != 0 {
            state.used_packed(queue, chains, only_last);
        } else {
            state.used_split(queue, chains, only_last);
        }
    }
}

fn fresh() -> Vec<Ring> {
    let ring = Ring { size: SIZE, vector: 0xffff, wrap: true, used_wrap: true, ..Ring::default() };
    vec![ring; usize::from(QUEUES)]
}

impl State {
    fn place(&self, addr: u64, len: usize) -> (&Arc<HostMemory>, usize) {
        let (base, memory) = self.maps.range(..=addr).next_back().expect("address is mapped");
        let offset = (addr - base) as usize;
        assert!(offset + len <= memory.len(), "{addr:#x} is mapped");
        (memory, offset)
    }
    fn get<const N: usize>(&self, addr: u64) -> [u8; N] {
        let (memory, offset) = self.place(addr, N);
        let mut bytes = [0; N];
        memory.read(offset, &mut bytes);
        bytes
    }
    fn bytes(&self, addr: u64, len: u32) -> Vec<u8> {
        let (memory, offset) = self.place(addr, len as usize);
        let mut bytes = vec![0; len as usize];
        memory.read(offset, &mut bytes);
        bytes
    }
    fn put(&self, addr: u64, data: &[u8]) {
        let (memory, offset) = self.place(addr, data.len());
        memory.write(offset, data);
    }
    fn get16(&self, addr: u64) -> u16 {
        u16::from_le_bytes(self.get(addr))
    }
    fn has(&self, bit: u32) -> bool {
        self.features >> bit & 1 != 0
    }

    /// Adds a descriptor to a chain; returns flags and next.
    fn take(&self, at: u64, chain: &mut Chain) -> (u16, u16) {
        let d: [u8; 16] = self.get(at);
        let addr = u64::from_le_bytes(d[..8].try_into().unwrap());
        let len = u32::from_le_bytes(d[8..12].try_into().unwrap());
        let (a, b) = (u16::from_le_bytes([d[12], d[13]]), u16::from_le_bytes([d[14], d[15]]));
        let flags = if self.has(feature::RING_PACKED) { b } else { a };
        assert!(len > 0);
        if flags & 4 != 0 {
            assert!(self.has(feature::INDIRECT_DESC) && len % 16 == 0 && flags & 3 == 0);
            for i in 0..u64::from(len / 16) {
                let (flags, next) = self.take(addr + 16 * i, chain);
                if !self.has(feature::RING_PACKED) {
                    let more = i + 1 < u64::from(len / 16);
                    assert_eq!(
                        (flags & 1 != 0, if more { next } else { 0 }),
                        (more, if more { i as u16 + 1 } else { 0 })
                    );
                }
            }
        } else if flags & 2 != 0 {
            chain.writable.push((addr, len));
        } else {
            assert!(chain.writable.is_empty(), "readable buffers come first");
            chain.readable.extend(self.bytes(addr, len));
        }
        if self.has(feature::RING_PACKED) { (flags, a) } else { (flags, b) }
    }

    fn next_split(&mut self, queue: u16) -> Option<Chain> {
        let ring = self.rings[usize::from(queue)].clone();
        if !ring.enabled || self.get16(ring.addresses[1] + 2) == ring.next {
            return None;
        }
        let head = self.get16(ring.addresses[1] + 4 + 2 * u64::from(ring.next % ring.size));
        let mut chain = Chain { id: head, slots: 1, readable: vec![], writable: vec![] };
        let mut index = head;
        let mut count = 0;
        loop {
            count += 1;
            assert!(index < ring.size && count <= ring.size);
            let (flags, next) = self.take(ring.addresses[0] + 16 * u64::from(index), &mut chain);
            if flags & 1 == 0 {
                break;
            }
            if self.has(feature::IN_ORDER) {
                assert_eq!(next, (index + 1) % ring.size, "IN_ORDER: descriptors follow each other");
            }
            index = next;
        }
        let ring = &mut self.rings[usize::from(queue)];
        ring.next = ring.next.wrapping_add(1);
        if self.has(feature::EVENT_IDX) {
            let ring = &self.rings[usize::from(queue)];
            self.put(ring.addresses[2] + 4 + 8 * u64::from(ring.size), &ring.next.to_le_bytes());
        }
        Some(chain)
    }

    fn used_split(&mut self, queue: u16, chains: &[(&Chain, u32)], only_last: bool) {
        let ring = self.rings[usize::from(queue)].clone();
        for (i, (chain, len)) in chains.iter().enumerate() {
            if only_last && i + 1 < chains.len() {
                continue;
            }
            // A batch's only entry is at the beginning of the batch.
            let at = ring.used.wrapping_add(if only_last { 0 } else { i as u16 });
            let entry = [u32::from(chain.id).to_le_bytes(), len.to_le_bytes()].concat();
            self.put(ring.addresses[2] + 4 + 8 * u64::from(at % ring.size), &entry);
        }
        let new = ring.used.wrapping_add(chains.len() as u16);
        self.put(ring.addresses[2] + 2, &new.to_le_bytes());
        self.rings[usize::from(queue)].used = new;
        let wanted = if self.has(feature::EVENT_IDX) {
            let event = self.get16(ring.addresses[1] + 4 + 2 * u64::from(ring.size));
            new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(ring.used)
        } else {
            self.get16(ring.addresses[1]) & 1 == 0
        };
        if wanted {
            *self.interrupts.entry(ring.vector).or_default() += 1;
        }
    }

    fn next_packed(&mut self, queue: u16) -> Option<Chain> {
        let mut ring = self.rings[usize::from(queue)].clone();
        if !ring.enabled {
            return None;
        }
        let mut chain = Chain { id: 0, slots: 0, readable: vec![], writable: vec![] };
        loop {
            let at = ring.addresses[0] + 16 * u64::from(ring.next);
            let flags = self.get16(at + 14);
            let there = (flags >> 7 & 1 != 0) == ring.wrap && (flags >> 15 & 1 != 0) != ring.wrap;
            if !there {
                assert_eq!(chain.slots, 0, "when its first descriptor is available, the whole chain is");
                return None;
            }
            let (flags, id) = self.take(at, &mut chain);
            chain.slots += 1;
            chain.id = id;
            ring.next += 1;
            if ring.next == ring.size {
                ring.next = 0;
                ring.wrap = !ring.wrap;
            }
            if flags & 1 == 0 {
                break;
            }
        }
        self.rings[usize::from(queue)] = ring;
        Some(chain)
    }

    fn used_packed(&mut self, queue: u16, chains: &[(&Chain, u32)], only_last: bool) {
        let mut ring = self.rings[usize::from(queue)].clone();
        let start = (ring.used, ring.used_wrap);
        let slots: u16 = chains.iter().map(|(c, _)| c.slots).sum();
        let step = |ring: &mut Ring, by: u16| {
            ring.used += by;
            if ring.used >= ring.size {
                ring.used -= ring.size;
                ring.used_wrap = !ring.used_wrap;
            }
        };
        for (i, (chain, len)) in chains.iter().enumerate() {
            let write = !only_last || i + 1 == chains.len();
            let (index, wrap) = if only_last { start } else { (ring.used, ring.used_wrap) };
            if write {
                let flags: u16 = if wrap { 0x8080 } else { 0 };
                let at = ring.addresses[0] + 16 * u64::from(index);
                let entry = [&len.to_le_bytes()[..], &chain.id.to_le_bytes(), &flags.to_le_bytes()].concat();
                self.put(at + 8, &entry);
            }
            step(&mut ring, chain.slots);
        }
        let wish: [u8; 4] = self.get(ring.addresses[1]);
        let (word, flags) = (u16::from_le_bytes([wish[0], wish[1]]), wish[2] & 3);
        let wanted = match flags {
            0 => true,
            1 => false,
            _ => {
                // Slots from the beginning of the batch to the driver's event index.
                let (event, wrap) = (word & 0x7fff, word >> 15 != 0);
                let distance = if wrap == start.1 {
                    i32::from(event) - i32::from(start.0)
                } else {
                    i32::from(event) + i32::from(ring.size) - i32::from(start.0)
                };
                (0..i32::from(slots)).contains(&distance)
            }
        };
        if wanted {
            *self.interrupts.entry(ring.vector).or_default() += 1;
        }
        self.rings[usize::from(queue)] = ring;
    }

    fn register(&self, at: u64, offered: u64) -> u64 {
        let ring = self.rings.get(usize::from(self.queue)).cloned().unwrap_or_default();
        match at {
            0x00 => u64::from(self.select),
            0x04 if self.select < 2 => offered >> (32 * self.select) & 0xffff_ffff,
            0x12 => u64::from(QUEUES),
            0x14 => u64::from(self.status),
            0x18 => u64::from(ring.size),
            0x1a => u64::from(ring.vector),
            0x1c => u64::from(ring.enabled),
            0x1e => u64::from(self.queue),
            _ => 0,
        }
    }
}

impl PciFunction for Model {
    fn info(&self) -> &FunctionInfo {
        &self.info
    }
    fn config_read(&self, offset: u16, buf: &mut [u8]) -> Result<()> {
        self.state.lock().unwrap().config.as_ref().unwrap().read(offset, buf)
    }
    fn config_write(&self, offset: u16, data: &[u8]) -> Result<()> {
        self.state.lock().unwrap().config.as_mut().unwrap().write(offset, data).map(|_| ())
    }
    fn read(&self, _bar: u8, offset: u64, buf: &mut [u8]) -> Result<()> {
        let value = self.state.lock().unwrap().register(offset, self.offered).to_le_bytes();
        let len = buf.len();
        buf.copy_from_slice(&value[..len]);
        Ok(())
    }
    fn write(&self, _bar: u8, offset: u64, data: &[u8]) -> Result<()> {
        let mut bytes = [0; 8];
        bytes[..data.len()].copy_from_slice(data);
        let value = u64::from_le_bytes(bytes);
        let mut state = self.state.lock().unwrap();
        let queue = usize::from(state.queue);
        match offset {
            0x00 => state.select = value as u32,
            0x08 => state.guest_select = value as u32,
            0x0c => {
                let shift = 32 * state.guest_select;
                state.features = state.features & !(0xffff_ffff << shift) | value << shift;
            }
            0x14 if value == 0 => {
                state.status = 0;
                state.features = 0;
                state.rings = fresh();
            }
            0x14 => {
                state.status = value as u8;
                if value & 8 != 0 && state.features & !self.offered != 0 {
                    state.status &= !8;
                }
            }
            0x16 => state.queue = value as u16,
            0x18 => state.rings[queue].size = value as u16,
            0x1a => state.rings[queue].vector = if value < 3 { value as u16 } else { 0xffff },
            0x1c => state.rings[queue].enabled = value == 1,
            0x20..0x38 => {
                let field = (offset - 0x20) as usize;
                let place = &mut state.rings[queue].addresses[field / 8];
                *place = if field % 8 == 0 {
                    *place & !0xffff_ffff | value
                } else {
                    *place & 0xffff_ffff | value << 32
                };
            }
            NOTIFY.. => {
                let queue = (offset - NOTIFY) / 4;
                assert_eq!(queue, value & 0xffff, "a notification goes to its queue's address");
                state.notified.push(value as u32);
            }
            _ => {}
        }
        Ok(())
    }
    fn read32(&self, bar: u8, offset: u64) -> Result<u32> {
        let mut bytes = [0; 4];
        self.read(bar, offset, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }
    fn write32(&self, bar: u8, offset: u64, value: u32) -> Result<()> {
        self.write(bar, offset, &value.to_le_bytes())
    }
    fn dma_map(&self, iova: u64, memory: Arc<HostMemory>, _access: DmaAccess) -> Result<()> {
        self.state.lock().unwrap().maps.insert(iova, memory);
        Ok(())
    }
    fn dma_unmap(&self, iova: u64) -> Result<()> {
        self.state.lock().unwrap().maps.remove(&iova);
        Ok(())
    }
    fn wait_irq(&self, _mask: u64, timeout: Duration) -> Result<u64> {
        Err(PciError::Timeout(timeout))
    }
    fn reset(&self) -> Result<()> {
        Ok(())
    }
}
