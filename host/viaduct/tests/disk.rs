// SPDX-License-Identifier: Apache-2.0
//! Files as the store of the card's block device, with a virtio driver in this process. Needs `make functions` and `viaduct build pass`; without
//! them these tests are skipped with a message.

mod built;

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use viaduct::*;
use viaduct_pci::PciFunction;
use viaduct_pci::vfio_user::{Client, Server};
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
        Self::on(sim.function(2).unwrap().expect("the card has a block device"), features)
    }

    fn on(function: Arc<dyn PciFunction>, features: u64) -> Self {
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

/// A card with a disk over a file, in a process of its own.
struct Served {
    child: Child,
    driver: Driver,
}

const FOLDER: &str = "VIADUCT_TEST_DISK";

impl Served {
    fn start(folder: &Path, features: u64) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "serve_a_disk", "--ignored", "--nocapture"]).env(FOLDER, folder);
        let child = child.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let (socket, end) = (folder.join("blk.sock"), Instant::now() + PATIENCE);
        let function = loop {
            match Client::connect(&socket) {
                Ok(function) => break function,
                Err(error) => assert!(Instant::now() < end, "no card: {error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        Self { child, driver: Driver::on(Arc::new(function), features) }
    }

    /// Bytes that it has read and written by system calls: of the file, and some in messages and notifications.
    fn io(&self) -> (u64, u64) {
        let text = std::fs::read_to_string(format!("/proc/{}/io", self.child.id())).unwrap();
        let value =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse();
        (value("rchar:").unwrap(), value("wchar:").unwrap())
    }

    /// What the requests of `work` make it read and write, rounded down to pages: there are not so many messages.
    fn pages(&mut self, work: impl FnOnce(&mut Driver)) -> (u64, u64) {
        let before = self.io();
        work(&mut self.driver);
        let after = self.io();
        ((after.0 - before.0) / 4096, (after.1 - before.1) / 4096)
    }
}

impl Drop for Served {
    /// As `kill -9` does.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The other process of the tests below.
#[test]
#[ignore = "it is started by other tests"]
fn serve_a_disk() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let (card, sim, _) = built::card("pass").unwrap();
    let slot = Arc::new(card.any_slot().unwrap());
    let source = Source::file_mut(Path::new(&folder).join("disk")).unwrap();
    let function = card.function(FunctionKind::Blk).unwrap();
    let _disk = Disk::open(function, slot, source, false, Through::Nothing).unwrap();
    let socket = Path::new(&folder).join("blk.sock");
    let _server = Server::bind(&socket, sim.function(2).unwrap().unwrap()).unwrap();
    // Until the test ends, in whatever way.
    let _ = std::io::stdin().read(&mut [0]);
}

const MIB: usize = 1 << 20;

/// A folder with a file of 64 MiB for `serve_a_disk`, if the card is built.
fn folder() -> Option<tempfile::TempDir> {
    built::card("pass")?;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("disk"), pattern(64 * MIB, 7)).unwrap();
    Some(folder)
}

#[test]
fn a_small_request_loads_little_and_a_flush_writes_what_was_written() {
    let Some(folder) = folder() else { return };
    let mut served = Served::start(folder.path(), 1 << 9);
    let content = pattern(64 * MIB, 7);
    let sector = |byte: usize| (byte / 512) as u64;
    // In an order in which none follows another.
    let places: Vec<usize> = (0..16).map(|i| (i * 7 % 16) * 4 * MIB + i * 8192).collect();
    let (read, written) = served.pages(|driver| {
        for &at in &places {
            assert_eq!(driver.request(READ, sector(at), 4096), 0);
            assert!(driver.get(0, 4096) == content[at..][..4096]);
        }
    });
    assert!((16..20).contains(&read) && written == 0, "16 reads of a page read {read} pages of the file");
    // Writes of pages that were read, and of others.
    for at in [places[3], places[3] + MIB] {
        let (read, written) = served.pages(|driver| {
            driver.put(0, &pattern(4096, 9));
            assert_eq!(driver.request(WRITE, sector(at), 4096), 0);
            assert_eq!(driver.request(FLUSH, 0, 0), 0);
        });
        assert!(read <= 2 && written == 1, "a write and a flush read {read} pages, wrote {written}");
    }
    // Nothing was written since, though all that was read is still there.
    let (read, written) = served.pages(|driver| assert_eq!(driver.request(FLUSH, 0, 0), 0));
    assert_eq!((read, written), (0, 0));
    // In order, more is loaded at once than is asked for, and less often.
    let (read, _) = served.pages(|driver| {
        (0..64).for_each(|i| assert_eq!(driver.request(READ, sector(50 * MIB) + 8 * i, 4096), 0));
    });
    assert!((64..=128).contains(&read), "{read} pages");
    let mut expected = content;
    for at in [places[3], places[3] + MIB] {
        expected[at..][..4096].copy_from_slice(&pattern(4096, 9));
    }
    drop(served);
    assert!(std::fs::read(folder.path().join("disk")).unwrap() == expected, "nothing else has changed");
}

#[test]
fn much_that_is_written_is_in_the_file_before_a_flush() {
    let Some(folder) = folder() else { return };
    let mut served = Served::start(folder.path(), 1 << 9);
    let data = pattern(MIB, 11);
    let before = served.io().1;
    served.driver.put(0, &data);
    // Eight mebibytes, of which four may stay on the card.
    for i in 0..8 {
        assert_eq!(served.driver.request(WRITE, (i * 2 * MIB / 512) as u64, MIB), 0);
    }
    let end = Instant::now() + PATIENCE;
    while served.io().1 - before < 4 * MIB as u64 {
        assert!(Instant::now() < end, "nothing is written before a flush");
        std::thread::sleep(Duration::from_millis(20));
    }
    let (_, written) = served.pages(|driver| assert_eq!(driver.request(FLUSH, 0, 0), 0));
    assert!(written <= 1024 + 64, "a flush writes {written} pages");
    drop(served);
    let found = std::fs::read(folder.path().join("disk")).unwrap();
    assert!((0..8).all(|i| found[i * 2 * MIB..][..MIB] == data));
}

#[test]
fn writes_in_order_over_what_was_flushed_take_few_faults() {
    let (Some(folder), Some((card, sim, _))) = (folder(), built::card("pass")) else { return };
    let slot = Arc::new(card.any_slot().unwrap());
    let path = folder.path().join("disk");
    let function = card.function(FunctionKind::Blk).unwrap();
    let source = Source::file_mut(&path).unwrap();
    let disk = Disk::open(function, Arc::clone(&slot), source, false, Through::Nothing).unwrap();
    let mut driver = Driver::new(&sim, 1 << 9);
    driver.put(0, &pattern(MIB, 17));
    assert_eq!(driver.request(WRITE, 0, MIB), 0);
    assert_eq!(driver.request(FLUSH, 0, 0), 0);
    let (before, data) = (slot.pager_stats(), pattern(MIB / 8, 19));
    for at in (0..data.len()).step_by(16_384) {
        driver.put(0, &data[at..][..16_384]);
        assert_eq!(driver.request(WRITE, (at / 512) as u64, 16_384), 0);
    }
    assert_eq!(driver.request(FLUSH, 0, 0), 0);
    let after = slot.pager_stats();
    let faults = after.remapped - before.remapped;
    assert!(faults <= 16, "{faults} faults for 32 pages");
    assert_eq!(after.pages_out - before.pages_out, 32, "only what was written is written back");
    let file = std::fs::read(&path).unwrap();
    assert!(file[..data.len()] == data[..] && file[data.len()..MIB] == pattern(MIB, 17)[data.len()..]);
    disk.close().unwrap();
}

#[test]
fn what_is_never_flushed_is_in_the_file_soon() {
    let Some(folder) = folder() else { return };
    let mut served = Served::start(folder.path(), 1 << 9);
    let data = pattern(65_536, 13);
    let eventually_at = |at: usize| {
        let end = Instant::now() + PATIENCE;
        while std::fs::read(folder.path().join("disk")).unwrap()[at..][..data.len()] != data[..] {
            assert!(Instant::now() < end, "it is not written without a flush");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    // The driver goes on to use the device, and then leaves it.
    served.driver.put(0, &data);
    assert_eq!(served.driver.request(WRITE, (9 * MIB / 512) as u64, data.len()), 0);
    eventually_at(9 * MIB);
    assert_eq!(served.driver.request(WRITE, (20 * MIB / 512) as u64, data.len()), 0);
    served.driver.device.reset().unwrap();
    eventually_at(20 * MIB);
    drop(served);
    eventually_at(20 * MIB);
}

/// Card cycles of requests to a disk over a file, for docs/results.md.
#[test]
#[ignore = "it measures"]
fn cycles_of_requests() {
    let (Some(folder), Some((card, sim, _))) = (folder(), built::card("pass")) else { return };
    let slot = Arc::new(card.any_slot().unwrap());
    let source = Source::file_mut(folder.path().join("disk")).unwrap();
    let function = card.function(FunctionKind::Blk).unwrap();
    let disk = Disk::open(function, Arc::clone(&slot), source, false, Through::Nothing).unwrap();
    let mut driver = Driver::new(&sim, 1 << 9);
    let mut expected = pattern(64 * MIB, 7);
    let mut row = |what: &str, count: u64, request: &mut dyn FnMut(&mut Driver, u64)| {
        let (cycles, time) = (card.time().unwrap(), Instant::now());
        (0..count).for_each(|i| request(&mut driver, i));
        let (cycles, time) = ((card.time().unwrap() - cycles) / count, time.elapsed() / count as u32);
        println!("{what}: {cycles} cycles, {time:?} each");
    };
    let sector = |byte: usize| (byte / 512) as u64;
    let place = |i: u64| (i as usize * 7 % 32) * 2 * MIB;
    let read = |driver: &mut Driver, at: usize, len: usize| {
        assert_eq!(driver.request(READ, sector(at), len), 0);
        assert!(driver.get(0, len) == expected[at..][..len]);
    };
    row("read of 4 KiB, a new place each time", 32, &mut |driver, i| read(driver, place(i), 4096));
    row("the same again", 32, &mut |driver, i| read(driver, place(i), 4096));
    row("read of 64 KiB, in order", 16, &mut |driver, i| {
        read(driver, 33 * MIB + i as usize * 65_536, 65_536);
    });
    row("write of 4 KiB and flush, a new place each time", 16, &mut |driver, i| {
        let (at, data) = (place(i) + MIB, pattern(4096, i as u8));
        driver.put(0, &data);
        assert_eq!(driver.request(WRITE, sector(at), 4096), 0);
        assert_eq!(driver.request(FLUSH, 0, 0), 0);
        expected[at..][..4096].copy_from_slice(&data);
    });
    row("the same again", 16, &mut |driver, i| {
        driver.put(0, &expected[place(i) + MIB..][..4096]);
        assert_eq!(driver.request(WRITE, sector(place(i) + MIB), 4096), 0);
        assert_eq!(driver.request(FLUSH, 0, 0), 0);
    });
    println!("{:?}", slot.pager_stats());
    disk.close().unwrap();
    assert!(std::fs::read(folder.path().join("disk")).unwrap() == expected);
}

#[test]
fn what_was_flushed_survives_the_end_of_the_card() {
    let Some(folder) = folder() else { return };
    let file = folder.path().join("disk");
    let mut expected = pattern(64 * MIB, 7);
    for round in 0..3u8 {
        let mut served = Served::start(folder.path(), 1 << 9);
        let driver = &mut served.driver;
        // Scattered, neighbouring, and twice the same.
        for (i, at) in [9 * MIB, 11 * MIB + 512, 11 * MIB + 4096, 63 * MIB, 9 * MIB].into_iter().enumerate() {
            let data = pattern(4096 * (1 + i), round * 16 + i as u8);
            driver.put(0, &data);
            assert_eq!(driver.request(WRITE, (at / 512) as u64, data.len()), 0);
            assert_eq!(driver.request(FLUSH, 0, 0), 0);
            expected[at..][..data.len()].copy_from_slice(&data);
        }
        // What was not flushed may be there or not; elsewhere.
        assert_eq!(driver.request(WRITE, 0, 8192), 0);
        drop(served);
        std::fs::remove_file(folder.path().join("blk.sock")).unwrap();
        let found = std::fs::read(&file).unwrap();
        assert!(found[8192..] == expected[8192..], "round {round}");
    }
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
