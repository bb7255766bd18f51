// SPDX-License-Identifier: Apache-2.0
//! Files as the store of the card's block device, with a virtio driver in this process. Needs `make functions` and `viaduct build pass`; without
//! them these tests are skipped with a message.

mod built;

use std::sync::Arc;
use std::time::{Duration, Instant};

use viaduct::*;
use viaduct_pci::PciFunction;
use viaduct_sim::SimCard;
use viaduct_virtio::{Arena, Buffer, Device, Queue, feature};

const IOVA: u64 = 0x30_0000_0000;
const READ: u32 = 0;
const WRITE: u32 = 1;
const FLUSH: u32 = 4;
const IOERR: u8 = 1;
// Management registers of the block device.
const FN_BLK: u64 = 0x30200;
const FLUSH_LIMIT: u64 = 0x2c;
const FLUSH_DONE: u64 = 0x30;
const FLUSH_ASKED: u64 = 0x34;
const PATIENCE: Duration = Duration::from_secs(300);

/// A driver of the block device with one queue.
struct Driver {
    device: Device,
    queue: Queue,
    arena: Arena,
    head: usize,
    data: usize,
    open: u64,
}

impl Driver {
    fn new(sim: &Arc<SimCard>, features: u64) -> Self {
        Self::with(sim, features | 1 << 9)
    }

    fn with(sim: &Arc<SimCard>, features: u64) -> Self {
        let function: Arc<dyn PciFunction> = sim.function(2).unwrap().expect("the card has a block device");
        let mut device = Device::open(Arc::clone(&function)).unwrap();
        assert_eq!(device.negotiate(features).unwrap() & features, features);
        let mut arena = Arena::new(function, IOVA, 8 << 20).unwrap();
        let queue = device.queue(&mut arena, 0, 64, Some(1)).unwrap();
        device.start().unwrap();
        let head = arena.take(64 * 64, 64).unwrap();
        let data = arena.take(4 << 20, 4096).unwrap();
        Self { device, queue, arena, head, data, open: 0 }
    }

    fn sectors(&self) -> u64 {
        let mut bytes = [0; 8];
        self.device.config(0, &mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    }

    /// Queues a request on `len` bytes at offset `at` of the data area, in pieces of at most 64 KiB.
    fn queue(&mut self, kind: u32, sector: u64, at: usize, len: usize) {
        let head = self.head + 64 * (self.open as usize % 64);
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([0; 4]);
        bytes.extend(sector.to_le_bytes());
        bytes.push(0xff);
        self.arena.memory().write(head, &bytes);
        let mut chain = vec![Buffer { addr: self.arena.bus(head), len: 16, writable: false }];
        for piece in (0..len).step_by(65_536) {
            let addr = self.arena.bus(self.data + at + piece);
            chain.push(Buffer { addr, len: (len - piece).min(65_536) as u32, writable: kind == READ });
        }
        chain.push(Buffer { addr: self.arena.bus(head + 16), len: 1, writable: true });
        assert!(self.queue.add(&chain, head as u64).unwrap());
        self.open += 1;
    }

    /// Waits for all requests and returns their status bytes.
    fn wait(&mut self) -> Vec<u8> {
        self.queue.kick().unwrap();
        let end = Instant::now() + PATIENCE;
        let mut found = vec![];
        while self.queue.open() > 0 {
            while let Some(used) = self.queue.used().unwrap() {
                let mut status = [0xff];
                self.arena.memory().read(used.token as usize + 16, &mut status);
                found.push(status[0]);
            }
            if self.queue.open() > 0 && !self.queue.arm() {
                let left = end.saturating_duration_since(Instant::now());
                self.device.function().wait_irq(2, left).expect("a response in time");
            }
        }
        found
    }

    fn request(&mut self, kind: u32, sector: u64, len: usize) -> u8 {
        self.queue(kind, sector, 0, len);
        self.wait()[0]
    }

    fn put(&self, at: usize, bytes: &[u8]) {
        self.arena.memory().write(self.data + at, bytes);
    }

    fn get(&self, at: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.arena.memory().read(self.data + at, &mut bytes);
        bytes
    }
}

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i * 37 + (i >> 9) * 11) as u8 ^ seed).collect()
}

const RINGS: [u64; 3] = [
    0,
    1 << feature::INDIRECT_DESC | 1 << feature::EVENT_IDX,
    1 << feature::INDIRECT_DESC | 1 << feature::EVENT_IDX | 1 << feature::RING_PACKED,
];

#[test]
fn a_large_first_write_reaches_the_file() {
    let Some((card, sim, _)) = built::card("pass") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    std::fs::write(&path, pattern(8 << 20, 1)).unwrap();
    let slot = Arc::new(card.any_slot().unwrap());
    let source = Source::file_mut(&path).unwrap();
    let disk =
        Disk::open(card.function(FunctionKind::Blk).unwrap(), slot, source, false, Through::Nothing).unwrap();
    card.function(FunctionKind::Blk).unwrap().allow_features(u64::MAX).unwrap();
    for features in RINGS {
        let mut driver = Driver::new(&sim, features);
        assert_eq!(driver.sectors(), 16_384);
        let data = pattern(1 << 20, features as u8);
        driver.put(0, &data);
        assert_eq!(driver.request(WRITE, 1000, 1 << 20), 0);
        assert_eq!(driver.request(FLUSH, 0, 0), 0);
        driver.put(0, &vec![0; 1 << 20]);
        assert_eq!(driver.request(READ, 1000, 1 << 20), 0);
        assert!(driver.get(0, 1 << 20) == data, "what was written comes back");
        // Many concurrently, one of them outside the disk: only that one fails.
        for i in 0..8 {
            let sector = if i == 3 { 16_380 } else { 4096 + 128 * i };
            driver.put(i as usize * 65_536, &pattern(65_536, i as u8));
            driver.queue(WRITE, sector, i as usize * 65_536, 65_536);
        }
        assert_eq!(driver.wait(), [0, 0, 0, 1, 0, 0, 0, 0]);
    }
    disk.close().unwrap();
    let after = std::fs::read(&path).unwrap();
    assert!(after[1000 * 512..][..1 << 20] == pattern(1 << 20, RINGS[2] as u8)[..]);
    assert!(after[..1000 * 512] == pattern(8 << 20, 1)[..1000 * 512], "nothing else has changed");
    assert!(after[(4096 + 128) * 512..][..65_536] == pattern(65_536, 1)[..]);
}

#[test]
fn a_flush_reaches_the_file() {
    let Some((card, sim, _)) = built::card("pass") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    std::fs::write(&path, vec![0; 4 << 20]).unwrap();
    let slot = Arc::new(card.any_slot().unwrap());
    let function = || card.function(FunctionKind::Blk).unwrap();
    let source = Source::file_mut(&path).unwrap();
    let disk = Disk::open(function(), Arc::clone(&slot), source, false, Through::Nothing).unwrap();
    let written = |sector: usize, len: usize| std::fs::read(&path).unwrap()[sector * 512..][..len].to_vec();
    let mut driver = Driver::new(&sim, RINGS[1]);
    for (seed, sector) in [(1, 10), (2, 10), (3, 4001), (4, 8000)] {
        let data = pattern(65_536, seed);
        driver.put(0, &data);
        assert_eq!(driver.request(WRITE, sector, 65_536), 0);
        assert_ne!(written(sector as usize, 65_536), data, "a write alone stays on the card");
        assert_eq!(driver.request(FLUSH, 0, 0), 0);
        assert!(written(sector as usize, 65_536) == data, "what was flushed is in the file");
    }
    // Reads and writes after a flush, of pages that are not on the card yet, and a second flush.
    driver.queue(WRITE, 2000, 0, 65_536);
    driver.queue(FLUSH, 0, 0, 0);
    for i in 0..8 {
        driver.queue(
            if i % 2 == 0 { READ } else { WRITE },
            5000 + 128 * i,
            65_536 * (i as usize + 1),
            65_536,
        );
    }
    driver.queue(FLUSH, 0, 0, 0);
    assert_eq!(driver.wait(), [0; 11]);
    assert!(written(2000, 65_536) == pattern(65_536, 4));

    // For a driver without the flush feature each completed write is durable.
    drop(driver);
    let mut driver = Driver::with(&sim, RINGS[1]);
    driver.put(0, &pattern(4096, 5));
    assert_eq!(driver.request(WRITE, 300, 4096), 0);
    assert!(written(300, 4096) == pattern(4096, 5));

    // The file is truncated: data written to its end is lost, and the driver gets one error.
    drop(driver);
    let mut driver = Driver::new(&sim, 0);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    driver.put(0, &pattern(4096, 6));
    assert_eq!(driver.request(WRITE, 8100, 4096), 0);
    file.set_len(4 << 19).unwrap();
    assert_eq!(driver.request(FLUSH, 0, 0), IOERR);
    assert_eq!(driver.request(FLUSH, 0, 0), 0);
    file.set_len(4 << 20).unwrap();
    disk.close().unwrap();

    // Memory of this program is no safer than the card: a flush does not wait.
    let source = Source::anonymous(1 << 20).unwrap();
    let disk = Disk::open(function(), slot, source, false, Through::Nothing).unwrap();
    drop(driver);
    let mut driver = Driver::new(&sim, 0);
    assert_eq!(driver.request(FLUSH, 0, 0), 0);
    disk.close().unwrap();
}

#[test]
fn a_flush_that_nobody_answers_fails() {
    let Some((card, sim, _)) = built::card("pass") else { return };
    card.function(FunctionKind::Blk).unwrap().set_up(true).unwrap();
    let mut driver = Driver::new(&sim, 0);
    // No host serves flushes, but the card is configured to wait for one: 2^18 cycles.
    card.pci().write32(0, FN_BLK + FLUSH_LIMIT, 1).unwrap();
    let before = card.time().unwrap();
    assert_eq!(driver.request(FLUSH, 0, 0), IOERR);
    assert!(card.time().unwrap() - before >= 1 << 18);
    assert_eq!(asked(&card), 1);
}

/// Flushes that have waited for the host.
fn asked(card: &Card) -> u32 {
    card.pci().read32(0, FN_BLK + FLUSH_ASKED).unwrap()
}

#[test]
fn a_flush_ends_with_its_driver_and_with_its_host() {
    let Some((card, sim, _)) = built::card("pass") else { return };
    card.function(FunctionKind::Blk).unwrap().set_up(true).unwrap();
    let mut driver = Driver::new(&sim, 0);
    let asks = |number| {
        let end = Instant::now() + PATIENCE;
        while asked(&card) < number {
            assert!(Instant::now() < end, "the card does not request a flush");
        }
    };
    // Reset while one is held: the next driver finds a working device, and a completion of the old flush does not complete its own.
    card.pci().write32(0, FN_BLK + FLUSH_LIMIT, 0xffff).unwrap();
    driver.queue(FLUSH, 0, 0, 0);
    driver.queue.kick().unwrap();
    asks(1);
    drop(driver);
    let mut driver = Driver::new(&sim, 0);
    driver.queue(FLUSH, 0, 0, 0);
    driver.queue.kick().unwrap();
    asks(2);
    card.pci().write32(0, FN_BLK + FLUSH_DONE, 1).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert!(driver.queue.used().unwrap().is_none());
    card.pci().write32(0, FN_BLK + FLUSH_DONE, 2).unwrap();
    assert_eq!(driver.wait(), [0]);
    // The host ends while one is held.
    driver.queue(FLUSH, 0, 0, 0);
    driver.queue.kick().unwrap();
    asks(3);
    card.pci().write32(0, FN_BLK + FLUSH_LIMIT, 0).unwrap();
    assert_eq!(driver.wait(), [IOERR]);
}

/// The card is otherwise idle meanwhile.
#[test]
fn an_interrupt_held_back_comes_by_itself() {
    let Some((card, sim, _)) = built::card("pass") else { return };
    let function = card.function(FunctionKind::Blk).unwrap();
    function.set_up(true).unwrap();
    function.moderate(20_000).unwrap();
    let mut driver = Driver::new(&sim, 0);
    let mut times = vec![];
    for _ in 0..3 {
        driver.queue.arm();
        driver.queue(FLUSH, 0, 0, 0);
        driver.queue.kick().unwrap();
        driver.device.function().wait_irq(2, Duration::from_secs(20)).expect("an interrupt in time");
        times.push(card.time().unwrap());
        while driver.queue.used().unwrap().is_some() {}
    }
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 20_000), "{times:?}");
}
