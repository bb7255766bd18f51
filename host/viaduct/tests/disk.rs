// SPDX-License-Identifier: Apache-2.0
//! Files behind the card's block device, under a virtio driver in this process. Needs `make card` and `viaduct build pass`; without
//! them these tests only say so.

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
const PATIENCE: Duration = Duration::from_secs(60);

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
        let function: Arc<dyn PciFunction> = sim.function(2).unwrap().expect("the card has a block device");
        let mut device = Device::open(Arc::clone(&function)).unwrap();
        device.negotiate(features | 1 << 9).unwrap();
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
                self.device.function().wait_irq(2, left).expect("an answer in time");
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
    let disk = Disk::open(card.function(FunctionKind::Blk).unwrap(), slot, source, false, false).unwrap();
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
        // Many at once, one of them outside the disk: it alone fails.
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
