// SPDX-License-Identifier: Apache-2.0
//! Drivers that violate the rules, on the whole card: handwritten rings, resets at any time. Whatever they do, nothing is
//! written outside of writable descriptors, other functions continue, and a reset restores the device. Needs `make functions`
//! and `viaduct build pass`; without them these tests are skipped with a message. `VIA_SEED` changes the random choices.

mod built;

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use viaduct::*;
use viaduct_pci::{DmaAccess, HostMemory, PciFunction};
use viaduct_sim::{BoardPort, SimCard};
use viaduct_virtio::{Arena, Buffer, Device, Queue, feature};

const PATIENCE: Duration = Duration::from_secs(60);

// Registers of a function's BAR0 (docs/interfaces.md, section 8).
const QUEUE_SELECT: u64 = 0x16;
const QUEUE_SIZE: u64 = 0x18;
const QUEUE_VECTOR: u64 = 0x1a;
const QUEUE_ENABLE: u64 = 0x1c;
const QUEUE_ADDRESSES: u64 = 0x20;
const NOTIFY: u64 = 0x3000;
const LAST_ERROR: u64 = 0x4004;
const NEEDS_RESET: u8 = 64;

// Flags of descriptors.
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
const AVAIL: u16 = 1 << 7;

/// Entries of a ring.
const SIZE: u16 = 16;
/// Bus addresses: memory of the hostile driver, its read-only memory, unmapped, memory of the well-behaved driver.
const BAD: u64 = 0x40_0000_0000;
const LOCKED: u64 = 0x50_0000_0000;
const HOLE: u64 = 0x60_0000_0000;
const GOOD: u64 = 0x70_0000_0000;
/// Bytes of a queue's part of the hostile memory: rings, tables, buffers. There are two.
const PART: usize = 0x8000;
const TABLE: u64 = 0x4000;
const BUFFERS: u64 = 0x6000;
/// The last byte of the hostile memory.
const END: u64 = BAD + 2 * PART as u64;

const NONE: u64 = 0;
const TABLES: u64 = 1 << feature::INDIRECT_DESC;
const PACKED: u64 = 1 << feature::RING_PACKED;
const ORDER: u64 = 1 << feature::IN_ORDER;
const EVENT: u64 = 1 << feature::EVENT_IDX;

/// SplitMix64 (Steele, Lea, Flood, 2014).
struct Random(Cell<u64>);

impl Random {
    fn new(salt: u64) -> Self {
        let seed = std::env::var("VIA_SEED").ok().and_then(|s| s.parse::<u64>().ok()).unwrap_or(1);
        println!("VIA_SEED={seed}");
        Self(Cell::new(seed << 8 | salt))
    }

    fn next(&self) -> u64 {
        self.0.set(self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut z = self.0.get();
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&self, n: u64) -> u64 {
        self.next() % n
    }

    fn pick<T: Copy>(&self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

fn bytes_of(memory: &HostMemory) -> Vec<u8> {
    let mut bytes = vec![0; memory.len()];
    memory.read(0, &mut bytes);
    bytes
}

/// A queue's ring, tables and buffers, in the hostile memory.
struct Ring {
    kind: FunctionKind,
    packed: bool,
    memory: Arc<HostMemory>,
    queue: u16,
    /// Bus address of the queue's part of memory.
    base: u64,
    /// Descriptors (or packed ring), driver area, device area, as configured in the device.
    areas: [u64; 3],
    /// Descriptors that [`Ring::chain`] has written.
    made: u16,
    /// Data arrives from outside once the ring is configured.
    arrival: bool,
    /// Ranges that the device may write.
    grants: Vec<Range<u64>>,
}

impl Ring {
    fn new(target: &Target, features: u64, queue: u16) -> Self {
        let base = BAD + u64::from(queue) * PART as u64;
        let ring = Self {
            kind: target.kind,
            packed: features & PACKED != 0,
            memory: Arc::clone(&target.memory),
            queue,
            base,
            areas: [base + 0x1000, base + 0x2000, base + 0x3000],
            made: 0,
            arrival: false,
            grants: vec![],
        };
        ring.memory.fill((base - BAD) as usize + 0x1000, 0x3000, 0);
        ring
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        self.memory.write((at - BAD) as usize, bytes);
    }

    /// A descriptor of a split ring, or of a table, at bus address `at`.
    fn raw(&self, at: u64, addr: u64, len: u32, flags: u16, next: u16) {
        let (flags, last) = if self.packed { (next, flags) } else { (flags, next) };
        let word =
            u128::from(addr) | u128::from(len) << 64 | u128::from(flags) << 96 | u128::from(last) << 112;
        self.put(at, &word.to_le_bytes());
    }

    /// Descriptor `index`, at the ring's original location.
    fn set(&self, index: u16, addr: u64, len: u32, flags: u16, next: u16) {
        let at = self.base + 0x1000 + 16 * u64::from(index);
        // The first round of a packed ring.
        if self.packed {
            self.raw(at, addr, len, flags | AVAIL, index)
        } else {
            self.raw(at, addr, len, flags, next)
        }
    }

    /// Makes heads available. Not needed for a packed ring.
    fn offer(&self, heads: &[u16]) {
        if self.packed {
            return;
        }
        let at = self.base + 0x2000;
        for (i, head) in (0..).zip(heads) {
            self.put(at + 4 + 2 * i, &head.to_le_bytes());
        }
        self.put(at + 2, &(heads.len() as u16).to_le_bytes());
    }

    /// Writes one chain after the existing ones; returns its head.
    fn append(&mut self, parts: &[(u64, u32, u16)]) -> u16 {
        let head = self.made;
        for (i, (addr, len, flags)) in parts.iter().enumerate() {
            let more = if i + 1 < parts.len() { NEXT } else { 0 };
            self.set(self.made, *addr, *len, flags | more, self.made + 1);
            self.made += 1;
        }
        head
    }

    /// The only chain.
    fn chain(&mut self, parts: &[(u64, u32, u16)]) {
        let head = self.append(parts);
        self.offer(&[head]);
    }

    /// A table of (address, length, flags, next) and a descriptor that refers to it.
    fn table(&mut self, entries: &[(u64, u32, u16, u16)]) {
        for (i, (addr, len, flags, next)) in (0..).zip(entries) {
            self.raw(self.base + TABLE + 16 * i, *addr, *len, *flags, *next);
        }
        self.chain(&[(self.base + TABLE, 16 * entries.len() as u32, INDIRECT)]);
    }

    fn grant(&mut self, at: u64, len: u64) {
        self.grants.push(at..at + len);
    }

    /// The device may write its used entries.
    fn grant_ring(&mut self) {
        self.grant(self.base + if self.packed { 0x1000 } else { 0x3000 }, 0x200);
        self.grant(self.base + 0x3000, 0x200);
    }

    /// A request that reads `len` bytes at `addr`, as a chain of this function.
    fn request(&mut self, n: u16, addr: u64, len: u32) -> Vec<(u64, u32, u16)> {
        match self.kind {
            FunctionKind::Blk => self.disk(n, 1, addr, 0),
            _ => vec![(addr, len, 0)],
        }
    }

    /// Disk request `n` for a sector.
    fn disk(&mut self, n: u16, code: u8, addr: u64, flags: u16) -> Vec<(u64, u32, u16)> {
        let head = self.base + 0x5000 + 64 * u64::from(n);
        let mut header = [0; 16];
        header[0] = code;
        header[8] = n as u8;
        self.put(head, &header);
        self.grant(head + 32, 1);
        vec![(head, 16, 0), (addr, 512, flags), (head + 32, 1, WRITE)]
    }

    /// A chain that is written at `addr`: with a sector, or data from outside.
    fn response(&mut self, n: u16, addr: u64) -> Vec<(u64, u32, u16)> {
        self.arrival = true;
        match self.kind {
            FunctionKind::Blk => self.disk(n, 0, addr, WRITE),
            _ => vec![(addr, 512, WRITE)],
        }
    }

    /// As many valid chains as fit.
    fn fill(&mut self, inward: bool) {
        let mut heads = vec![];
        for n in 0..if self.kind == FunctionKind::Blk { SIZE / 3 } else { SIZE } {
            let buffer = self.base + BUFFERS + 512 * u64::from(n);
            let chain = if inward {
                self.grant(buffer, 512);
                self.response(n, buffer)
            } else {
                self.request(n, buffer, 80)
            };
            heads.push(self.append(&chain));
        }
        self.offer(&heads);
        self.grant_ring();
    }
}

/// One function, its cable and the memory of the drivers that attack it.
struct Target {
    kind: FunctionKind,
    sim: Arc<SimCard>,
    pci: Arc<dyn PciFunction>,
    port: Option<BoardPort>,
    memory: Arc<HostMemory>,
    locked: Arc<HostMemory>,
}

impl Target {
    /// The queue of requests.
    fn requests(&self) -> u16 {
        u16::from(self.kind != FunctionKind::Blk)
    }

    /// Bytes of the header before the device's data.
    fn header(&self) -> usize {
        if self.kind == FunctionKind::Net { 12 } else { 0 }
    }

    /// Marked data for the cable.
    fn message(&self, mark: u8) -> Vec<u8> {
        let len = if self.kind == FunctionKind::Net { 64 } else { 6 };
        (0..len).map(|i| mark ^ (i * 3)).collect()
    }

    fn negotiate(&self, features: u64) -> Device {
        let mut device = Device::open(Arc::clone(&self.pci)).unwrap();
        let got = device.negotiate(features | 1 << feature::ACCESS_PLATFORM).unwrap();
        assert_eq!(got & features, features);
        device.config_vector(0).unwrap();
        device
    }

    fn put16(&self, at: u64, value: u16) {
        self.pci.write(0, at, &value.to_le_bytes()).unwrap();
    }

    fn enable(&self, ring: &Ring) {
        self.put16(QUEUE_SELECT, ring.queue);
        self.put16(QUEUE_SIZE, SIZE);
        self.put16(QUEUE_VECTOR, 1 + ring.queue);
        for (at, area) in (QUEUE_ADDRESSES..).step_by(8).zip(ring.areas) {
            self.pci.write(0, at, &area.to_le_bytes()).unwrap();
        }
        self.put16(QUEUE_ENABLE, 1);
    }

    fn kick(&self, ring: &Ring) {
        self.put16(NOTIFY + 4 * u64::from(ring.queue), ring.queue);
    }

    fn arrive(&self, mark: u8) {
        if let Some(port) = &self.port {
            // There may be no space if data is not consumed.
            port.try_send(0, &self.message(mark)).unwrap();
        }
    }

    /// Interrupts since the last call.
    fn interrupts(&self) -> u64 {
        self.pci.wait_irq(!0, Duration::ZERO).unwrap_or(0)
    }

    /// Requests on the link so far.
    fn accesses(&self) -> u64 {
        let counters = self.sim.function_counters(self.kind as usize).unwrap();
        counters.host_read_tlps + counters.host_write_tlps
    }

    fn snapshot(&self) -> Vec<u8> {
        [bytes_of(&self.memory), bytes_of(&self.locked)].concat()
    }

    /// Only granted memory has changed since `before`.
    fn check(&self, before: &[u8], rings: &[&Ring], name: &str) {
        let after = self.snapshot();
        for (i, (old, new)) in before.iter().zip(&after).enumerate() {
            let at = BAD + i as u64;
            let granted = rings.iter().any(|ring| ring.grants.iter().any(|grant| grant.contains(&at)));
            assert!(old == new || granted, "{name}: wrote {new:#x} at {i:#x} of its memory");
        }
    }

    /// A well-behaved driver finds a working device.
    fn works(&self, features: u64, mark: u8) {
        let mut device = self.negotiate(features);
        let mut arena = Arena::new(Arc::clone(&self.pci), GOOD, 1 << 16).unwrap();
        let queue = |arena: &mut Arena, index| device.queue(arena, index, 16, Some(1 + index)).unwrap();
        let mut rx = queue(&mut arena, 0);
        let mut tx = (self.requests() == 1).then(|| queue(&mut arena, 1));
        device.start().unwrap();
        let (read, write) = (arena.take(2048, 64).unwrap(), arena.take(2048, 64).unwrap());
        let memory = Arc::clone(arena.memory());
        let get = |at, len| {
            let mut bytes = vec![0; len];
            memory.read(at, &mut bytes);
            bytes
        };
        let part = |at, len, writable| Buffer { addr: GOOD + at as u64, len, writable };
        match (&self.port, &mut tx) {
            (Some(port), Some(tx)) => {
                // Data in transit when the last driver ended may still arrive.
                let inward = self.message(mark);
                rx.add(&[part(read, 2048, true)], 0).unwrap();
                rx.kick().unwrap();
                port.send(0, &inward, PATIENCE).unwrap();
                let mut seen = vec![];
                while !seen.ends_with(&inward) {
                    let len = exchange(&mut rx, &self.pci);
                    seen.extend(&get(read, len)[self.header()..]);
                    rx.add(&[part(read, 2048, true)], 0).unwrap();
                    rx.kick().unwrap();
                }
                let outward = self.message(!mark);
                memory.write(write, &[vec![0; self.header()], outward.clone()].concat());
                tx.add(&[part(write, (self.header() + outward.len()) as u32, false)], 0).unwrap();
                tx.kick().unwrap();
                exchange(tx, &self.pci);
                seen.clear();
                while !seen.ends_with(&outward) {
                    seen.extend(port.receive(PATIENCE).unwrap().data);
                }
            }
            _ => {
                let data: Vec<u8> = (0..512).map(|i| i as u8 ^ mark).collect();
                memory.write(write, &data);
                for (code, at) in [(1, write), (0, read)] {
                    let mut header = [0; 17];
                    (header[0], header[8], header[16]) = (code, 40, 0xff);
                    memory.write(write + 1024, &header);
                    let status = part(write + 1040, 1, true);
                    rx.add(&[part(write + 1024, 16, false), part(at, 512, code == 0), status], 0).unwrap();
                    rx.kick().unwrap();
                    exchange(&mut rx, &self.pci);
                    assert_eq!(get(write + 1040, 1), [0]);
                }
                assert_eq!(get(read, 512), data);
            }
        }
        // Before its memory is released.
        device.reset().unwrap();
        self.interrupts();
    }
}

/// Waits for a used chain; returns the bytes written to it.
fn exchange(queue: &mut Queue, pci: &Arc<dyn PciFunction>) -> usize {
    loop {
        if let Some(used) = queue.used().unwrap() {
            return used.len as usize;
        }
        if !queue.arm() {
            pci.wait_irq(1 << queue.vector().unwrap(), PATIENCE).expect("a response in time");
        }
    }
}

/// A driver of another function, which must not be affected.
struct Bystander {
    pci: Arc<dyn PciFunction>,
    queue: Queue,
    arena: Arena,
    buffer: usize,
    _device: Device,
}

impl Bystander {
    const LEN: u32 = 8;

    fn new(sim: &Arc<SimCard>) -> Self {
        let pci =
            sim.function(FunctionKind::Entropy as usize).unwrap().expect("the card has an entropy source");
        let mut device = Device::open(Arc::clone(&pci)).unwrap();
        device.negotiate(1 << feature::ACCESS_PLATFORM).unwrap();
        // The same bus addresses as the hostile driver.
        let mut arena = Arena::new(Arc::clone(&pci), BAD, 2 * PART).unwrap();
        let queue = device.queue(&mut arena, 0, 16, Some(1)).unwrap();
        device.start().unwrap();
        let buffer = arena.take(Self::LEN as usize, 64).unwrap();
        Self { pci, queue, arena, buffer, _device: device }
    }

    fn ask(&mut self) {
        self.arena.memory().fill(self.buffer, Self::LEN as usize, 0);
        let addr = self.arena.bus(self.buffer);
        self.queue.add(&[Buffer { addr, len: Self::LEN, writable: true }], 0).unwrap();
        self.queue.kick().unwrap();
    }

    /// Has its response, and no other changes in its memory.
    fn answered(&mut self) {
        let len = exchange(&mut self.queue, &self.pci);
        assert!((1..=Self::LEN as usize).contains(&len));
        let rest = bytes_of(self.arena.memory()).split_off(self.buffer + len);
        assert!(rest.iter().all(|byte| *byte == 0), "another function wrote here");
    }
}

/// Runs a test on one function of a fresh card.
fn on(kind: FunctionKind, test: impl FnOnce(&Target, &mut Bystander)) {
    let Some((card, sim, _)) = built::card("pass") else { return };
    let mut disk = None;
    if kind == FunctionKind::Blk {
        let slot = Arc::new(card.any_slot().unwrap());
        let store = Source::bytes(SharedBytes::new(vec![0x5a; 64 << 10]));
        disk = Some(Disk::open(card.function(kind).unwrap(), slot, store, false, Through::Nothing).unwrap());
    }
    for kind in [kind, FunctionKind::Entropy].into_iter().filter(|kind| *kind != FunctionKind::Blk) {
        let function = card.function(kind).unwrap();
        function.attach(Attachment::Board).unwrap();
        function.set_up(true).unwrap();
    }
    card.function(kind).unwrap().allow_features(u64::MAX).unwrap();
    let pci = sim.function(kind as usize).unwrap().expect("the card has this function");
    let [memory, locked] = [(BAD, DmaAccess::ReadWrite), (LOCKED, DmaAccess::Read)].map(|(iova, access)| {
        let memory = Arc::new(HostMemory::new(2 * PART).unwrap());
        let random = Random(Cell::new(iova));
        (0..2 * PART).step_by(8).for_each(|at| memory.write(at, &random.next().to_le_bytes()));
        pci.dma_map(iova, Arc::clone(&memory), access).unwrap();
        memory
    });
    let port = sim.port(kind as usize).filter(|_| kind != FunctionKind::Blk);
    let target = Target { kind, sim: Arc::clone(&sim), pci, port, memory, locked };
    let mut bystander = Bystander::new(&sim);
    test(&target, &mut bystander);
    target.pci.reset().unwrap();
    drop(disk);
}

/// The violation; features; why the queue stops (docs/virtio.md); how the ring is built.
type Case = (&'static str, u64, u32, fn(&mut Ring));

const INDEX: u32 = 1;
const HEAD: u32 = 2;
const LOOP: u32 = 3;
const BAD_TABLE: u32 = 4;
const BAD_ORDER: u32 = 5;
const LENGTH: u32 = 6;
const READ: u32 = 7;
const REFUSED: u32 = 8;
const PAYLOAD: u32 = 9;
const ALIGN: u32 = 11;

/// Descriptors that form a loop of `n`.
fn circle(r: &mut Ring, n: u16) {
    (0..n).for_each(|i| r.set(i, r.base + BUFFERS, 8, NEXT, (i + 1) % n));
    r.offer(&[0]);
}

fn jump(r: &mut Ring, by: u16) {
    (0..SIZE).for_each(|i| r.set(i, r.base + BUFFERS, 8, 0, 0));
    r.put(r.base + 0x2002, &by.to_le_bytes());
}

/// A valid chain whose area `n` is elsewhere.
fn moved(r: &mut Ring, n: usize, to: u64) {
    let chain = r.request(0, r.base + BUFFERS, 80);
    r.chain(&chain);
    r.areas[n] = to;
}

fn taken_from(r: &mut Ring, addr: u64) {
    let chain = r.request(0, addr, 80);
    r.chain(&chain);
    r.grant_ring();
}

/// Received data is written to `addr`; the first `granted` bytes may be written.
fn given_to(r: &mut Ring, addr: u64, granted: u64) {
    if r.queue == 1 {
        // Requests of this function return no data; its other queue is at the start of the same memory.
        (r.queue, r.base) = (0, BAD);
        r.areas = [BAD + 0x1000, BAD + 0x2000, BAD + 0x3000];
        r.memory.fill(0x1000, 0x3000, 0);
    }
    let chain = r.response(0, addr);
    r.chain(&chain);
    r.grant(addr, granted);
    r.grant_ring();
}

const CASES: &[Case] = &[
    ("index ahead by more than the queue", NONE, INDEX, |r| jump(r, SIZE + 1)),
    ("index behind", NONE, INDEX, |r| jump(r, 0xffff - SIZE)),
    ("in order: index ahead", ORDER, INDEX, |r| jump(r, 0x4000)),
    ("head outside", NONE, HEAD, |r| r.offer(&[SIZE])),
    ("head far outside", NONE, HEAD, |r| r.offer(&[0xffff])),
    ("next outside", NONE, HEAD, |r| {
        r.set(0, r.base + BUFFERS, 8, NEXT, SIZE);
        r.offer(&[0]);
    }),
    ("a descriptor that follows itself", NONE, LOOP, |r| circle(r, 1)),
    ("a loop of two", EVENT, LOOP, |r| {
        circle(r, 2);
        r.grant_ring();
    }),
    ("as long as the queue and on", NONE, LOOP, |r| circle(r, SIZE)),
    ("packed: once around", PACKED, LOOP, |r| circle(r, SIZE)),
    ("table not negotiated", NONE, BAD_TABLE, |r| r.table(&[(BAD, 8, 0, 0)])),
    ("table in a table", TABLES, BAD_TABLE, |r| r.table(&[(r.base + TABLE, 16, INDIRECT, 0)])),
    ("packed: table of 17 bytes", TABLES | PACKED, BAD_TABLE, |r| r.chain(&[(r.base + TABLE, 17, INDIRECT)])),
    ("table misaligned", TABLES, BAD_TABLE, |r| r.chain(&[(r.base + TABLE + 8, 16, INDIRECT)])),
    ("packed: table misaligned", TABLES | PACKED, BAD_TABLE, |r| {
        r.chain(&[(r.base + TABLE + 8, 16, INDIRECT)])
    }),
    ("table of 24 bytes", TABLES, BAD_TABLE, |r| r.chain(&[(r.base + TABLE, 24, INDIRECT)])),
    ("table empty", TABLES, BAD_TABLE, |r| r.chain(&[(r.base + TABLE, 0, INDIRECT)])),
    ("table of 4 GiB", TABLES, BAD_TABLE, |r| r.chain(&[(r.base + TABLE, 0xffff_fff0, INDIRECT)])),
    ("table longer than any queue", TABLES, BAD_TABLE, |r| r.chain(&[(r.base + TABLE, 16 * 257, INDIRECT)])),
    ("table and a successor", TABLES, BAD_TABLE, |r| r.chain(&[(r.base + TABLE, 16, INDIRECT), (BAD, 8, 0)])),
    ("table around the end of addresses", TABLES, BAD_TABLE, |r| r.chain(&[(u64::MAX - 15, 32, INDIRECT)])),
    ("table nowhere", TABLES, READ, |r| r.chain(&[(HOLE, 64, INDIRECT)])),
    ("packed: table nowhere", TABLES | PACKED, READ, |r| r.chain(&[(HOLE, 64, INDIRECT)])),
    ("table half outside", TABLES, READ, |r| {
        (0..2).for_each(|i| r.raw(END - 32 + 16 * i, BAD, 8, NEXT, i as u16 + 1));
        r.chain(&[(END - 32, 64, INDIRECT)]);
    }),
    ("loop in a table", TABLES, LOOP, |r| r.table(&[(BAD, 8, NEXT, 1), (BAD, 8, NEXT, 0)])),
    ("next outside of its table", TABLES, HEAD, |r| r.table(&[(BAD, 8, NEXT, 2), (BAD, 8, 0, 0)])),
    ("readable after writable", NONE, BAD_ORDER, |r| r.chain(&[(BAD, 8, WRITE), (BAD, 8, 0)])),
    ("packed: readable after writable", PACKED, BAD_ORDER, |r| r.chain(&[(BAD, 8, WRITE), (BAD, 8, 0)])),
    ("no length", NONE, LENGTH, |r| r.chain(&[(BAD, 0, 0)])),
    ("packed: no length", PACKED, LENGTH, |r| r.chain(&[(BAD, 8, 0), (BAD, 0, WRITE)])),
    ("more than 4 GiB", NONE, LENGTH, |r| r.chain(&[(BAD, u32::MAX, 0), (BAD, 2, WRITE)])),
    ("packed: more than 4 GiB", PACKED, LENGTH, |r| r.chain(&[(BAD, u32::MAX, WRITE), (BAD, 2, WRITE)])),
    ("buffer around the end of addresses", NONE, LENGTH, |r| r.chain(&[(u64::MAX - 63, 65, WRITE)])),
    ("packed: buffer around the end", PACKED, LENGTH, |r| r.chain(&[(BAD, 8, 0), (u64::MAX, 2, WRITE)])),
    ("descriptors nowhere", NONE, READ, |r| moved(r, 0, HOLE)),
    ("descriptors at the end of addresses", NONE, READ, |r| moved(r, 0, u64::MAX - 15)),
    ("packed: ring nowhere", PACKED, READ, |r| moved(r, 0, HOLE)),
    ("available ring nowhere", NONE, READ, |r| moved(r, 1, HOLE)),
    ("available ring at the end of addresses", NONE, READ, |r| moved(r, 1, u64::MAX - 1)),
    ("used ring nowhere", NONE, REFUSED, |r| moved(r, 2, HOLE)),
    ("used ring that may not be written", NONE, REFUSED, |r| moved(r, 2, LOCKED)),
    ("packed: ring that may not be written", PACKED, REFUSED, |r| moved(r, 0, r.areas[0] - BAD + LOCKED)),
    ("descriptors misaligned", NONE, ALIGN, |r| moved(r, 0, r.base + 0x1008)),
    ("available ring misaligned", NONE, ALIGN, |r| moved(r, 1, r.base + 0x2001)),
    ("used ring misaligned", NONE, ALIGN, |r| moved(r, 2, r.base + 0x3002)),
    ("packed: driver area misaligned", PACKED, ALIGN, |r| moved(r, 1, r.base + 0x2002)),
    ("data from nowhere", NONE, PAYLOAD, |r| taken_from(r, HOLE)),
    ("packed: data from nowhere", PACKED, PAYLOAD, |r| taken_from(r, HOLE)),
    ("data from half outside", NONE, PAYLOAD, |r| taken_from(r, END - 4)),
    ("response to nowhere", NONE, REFUSED, |r| given_to(r, HOLE, 0)),
    ("response to half outside", NONE, REFUSED, |r| given_to(r, END - 4, 4)),
    ("response to what may not be written", NONE, REFUSED, |r| given_to(r, LOCKED, 0)),
    ("packed: response to nowhere", PACKED, REFUSED, |r| given_to(r, HOLE, 0)),
    ("packed: response to what may not be written", PACKED, REFUSED, |r| given_to(r, LOCKED, 0)),
];

fn rings_against_the_rules(kind: FunctionKind) {
    on(kind, |target, bystander| {
        for (mark, (name, features, cause, spoil)) in (0..).zip(CASES) {
            let device = target.negotiate(*features);
            let mut ring = Ring::new(target, *features, target.requests());
            spoil(&mut ring);
            // Read-only memory is unchanged.
            target.locked.write(0, &bytes_of(&target.memory));
            let before = target.snapshot();
            target.enable(&ring);
            device.start().unwrap();
            bystander.ask();
            target.kick(&ring);
            if ring.arrival {
                target.arrive(mark);
            }
            target.pci.wait_irq(1, PATIENCE).unwrap_or_else(|e| panic!("{name}: no interrupt: {e}"));
            assert_ne!(device.status().unwrap() & NEEDS_RESET, 0, "{name}");
            let error = target.pci.read32(0, LAST_ERROR).unwrap();
            assert_eq!((error & 0xff, error >> 8 & 0xff), (*cause, ring.queue.into()), "{name}");
            bystander.answered();
            // The state persists.
            target.kick(&ring);
            target.sim.run(2000);
            target.check(&before, &[&ring], name);
            target.works(*features, mark);
            target.check(&before, &[&ring], name);
        }
    });
}

fn without_bus_mastering(kind: FunctionKind) {
    on(kind, |target, bystander| {
        for (features, hostile) in [(NONE, false), (PACKED, false), (NONE, true)] {
            let device = target.negotiate(features);
            let mut ring = Ring::new(target, features, target.requests());
            if hostile {
                jump(&mut ring, 99)
            } else {
                ring.fill(false)
            }
            target.enable(&ring);
            device.start().unwrap();
            let before = target.snapshot();
            let accesses = target.accesses();
            target.interrupts();
            target.pci.config_write(4, &[2, 0]).unwrap();
            target.kick(&ring);
            target.arrive(1);
            bystander.ask();
            bystander.answered();
            target.sim.run(20_000);
            assert_eq!((target.accesses(), target.interrupts()), (accesses, 0), "no memory, no interrupt");
            assert!(target.snapshot() == before);
            assert_eq!(device.status().unwrap() & NEEDS_RESET, 0);
            // Nothing is lost.
            target.pci.config_write(4, &[6, 0]).unwrap();
            let vector = if hostile { 0 } else { 1 + ring.queue };
            target.pci.wait_irq(1 << vector, PATIENCE).unwrap();
            target.check(&before, &[&ring], "bus master");
            // A reset also works without it.
            target.pci.config_write(4, &[2, 0]).unwrap();
            target.works(features, 0x33);
        }
    });
}

const RINGS: [u64; 7] = [NONE, EVENT, TABLES, ORDER, PACKED, PACKED | EVENT, PACKED | ORDER];

fn resets_under_traffic(kind: FunctionKind) {
    on(kind, |target, bystander| {
        let random = Random::new(kind as u64);
        for round in 0..40 {
            let features = random.pick(&RINGS);
            let device = target.negotiate(features);
            let mut rings: Vec<_> =
                (0..=target.requests()).map(|queue| Ring::new(target, features, queue)).collect();
            for ring in &mut rings {
                let inward = if target.port.is_some() { ring.queue == 0 } else { round % 2 == 0 };
                ring.fill(inward);
                target.enable(ring);
            }
            let before = target.snapshot();
            let rings: Vec<_> = rings.iter().collect();
            device.start().unwrap();
            bystander.ask();
            for ring in &rings {
                target.kick(ring);
                target.arrive(round);
            }
            target.sim.run(random.below(1500));
            let way = if random.below(2) == 0 { "FLR" } else { "reset" };
            match (way, device) {
                ("FLR", _) => target.pci.reset().unwrap(),
                (_, mut device) => device.reset().unwrap(),
            }
            target.interrupts();
            target.check(&before, &rings, way);
            let (after, accesses) = (target.snapshot(), target.accesses());
            // An interrupt takes some time to reach the processor.
            target.sim.run(2000);
            target.interrupts();
            target.sim.run(2000);
            assert_eq!((target.accesses(), target.interrupts()), (accesses, 0), "{way} is over");
            assert!(target.snapshot() == after, "{way} is over");
            bystander.answered();
            if round % 4 == 0 {
                target.works(features, round);
                assert!(target.snapshot() == after);
            }
        }
    });
}

/// Changes data that the device is reading or about to read.
fn scribble(ring: &Ring, random: &Random) {
    let window = ring.base + BUFFERS;
    let flags = random.pick(&[0, NEXT, WRITE, NEXT | WRITE, INDIRECT, random.next() as u16 & 0x8087]);
    let addr = random.pick(&[
        window,
        window + 8 * random.below(960),
        HOLE,
        LOCKED,
        ring.base + TABLE,
        random.next() | 1 << 63,
    ]);
    let len = random.pick(&[0, 1, 16, 64, 256, 512, random.below(512) as u32]);
    let next = random.pick(&[random.below(u64::from(SIZE)) as u16, random.next() as u16]);
    let index = random.below(u64::from(SIZE)) as u16;
    // For any mix of old and new values: writable buffers are after the rings.
    match random.below(8) {
        0 => ring.raw(ring.base + TABLE + 16 * u64::from(index), addr, len, flags, next),
        1 => ring.put(ring.base + 0x2002, &next.to_le_bytes()),
        2 => ring.put(ring.base + 0x2004 + 2 * u64::from(index), &next.to_le_bytes()),
        _ if ring.packed => {
            ring.raw(ring.base + 0x1000 + 16 * u64::from(index), addr, len, flags ^ AVAIL, next)
        }
        _ => ring.set(index, addr, len, flags, next),
    }
}

fn rings_that_change(kind: FunctionKind) {
    on(kind, |target, bystander| {
        let random = Random::new(kind as u64);
        let mut stopped = 0;
        for round in 0..25 {
            let features = random.pick(&RINGS) | TABLES;
            let device = target.negotiate(features);
            let mut rings: Vec<_> =
                (0..=target.requests()).map(|queue| Ring::new(target, features, queue)).collect();
            for ring in &mut rings {
                ring.fill(ring.queue == 0);
                ring.grant(ring.base + TABLE, PART as u64 - TABLE);
                target.enable(ring);
            }
            // Rings and tables, which this driver changes itself: the device may only write used entries and indices there.
            let before = target.snapshot();
            device.start().unwrap();
            bystander.ask();
            for _ in 0..40 {
                for ring in &rings {
                    scribble(ring, &random);
                    if random.below(3) == 0 {
                        target.kick(ring);
                    }
                }
                target.arrive(round);
                target.sim.run(random.below(100));
            }
            target.sim.run(2000);
            stopped += u32::from(device.status().unwrap() & NEEDS_RESET != 0);
            for ring in &mut rings {
                ring.grant(ring.base + 0x1000, 0x100);
                ring.grant(ring.base + 0x2000, 0x40);
            }
            target.check(&before, &rings.iter().collect::<Vec<_>>(), "changed");
            bystander.answered();
            target.works(features, round);
        }
        assert!(stopped > 0, "some of it was noticed");
    });
}

macro_rules! on_each {
    ($($name:ident)*) => {$(
        mod $name {
            use super::FunctionKind;

            #[test]
            fn net() {
                super::$name(FunctionKind::Net);
            }

            #[test]
            fn blk() {
                super::$name(FunctionKind::Blk);
            }

            #[test]
            fn console() {
                super::$name(FunctionKind::Console);
            }
        }
    )*};
}

on_each!(rings_against_the_rules without_bus_mastering resets_under_traffic rings_that_change);
