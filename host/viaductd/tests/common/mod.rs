// SPDX-License-Identifier: Apache-2.0
//! Daemons for tests: in this process on the fake or the simulated card, and as a process.
#![allow(dead_code)] // each test file uses a part

#[path = "../../../viaduct/tests/common/mod.rs"]
pub mod fake;

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fake::FakeCard;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use viaduct::{Card, Register, Timeouts};
use viaduct_sim::{Profile, SimCard, SimConfig};
use viaductd::client::{Client, Mapping, Slot};
use viaductd::wire::{Kind, Refusal};
use viaductd::{Apps, Config, Daemon, Quotas};

pub const PAGE: u64 = 4096;

/// For what must happen; that it takes longer is a failure.
pub fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !happened() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn pattern(len: u64) -> Vec<u8> {
    (0..len as usize).map(|i| (i * 31 + (i >> 8) * 7) as u8).collect()
}

/// Images in a folder, or that of the fake card.
struct Images(Option<PathBuf>);

impl Apps for Images {
    fn image(&self, name: &str) -> Result<Vec<u8>, Refusal> {
        let Some(folder) = &self.0 else { return Ok(fake::IMAGE.to_vec()) };
        let path = folder.join(name).join(name).with_extension("via");
        std::fs::read(path).map_err(|e| Refusal::new(Kind::Card, libc::ENOENT, e.to_string()))
    }

    fn check(&self, image: &[u8]) -> Result<(), Refusal> {
        match image == fake::IMAGE {
            true => Ok(()),
            false => Err(Refusal::new(Kind::Card, libc::EINVAL, "not the image".into())),
        }
    }
}

pub struct Served {
    pub daemon: Daemon,
    pub socket: PathBuf,
    pub folder: tempfile::TempDir,
}

impl Served {
    pub fn client(&self) -> Client {
        Client::connect(&self.socket).unwrap()
    }

    /// A file of so many bytes, open for reading and writing.
    pub fn file(&self, name: &str, bytes: &[u8]) -> (PathBuf, File) {
        let path = self.folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        (path, file)
    }

    /// A connection without a client.
    pub fn raw(&self) -> OwnedFd {
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        connect(&socket, &SocketAddrUnix::new(&self.socket).unwrap()).unwrap();
        socket
    }

    /// Waits until only so many clients are left.
    pub fn settle(&self, clients: usize) {
        eventually("a client that is gone is released", || self.daemon.clients() == clients);
    }
}

fn serve(card: Arc<Card>, images: Option<PathBuf>, change: impl FnOnce(&mut Config)) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let info = card.info();
    let quotas = Quotas::new(info.slots, (info.chan_mib << 20) * info.channels as u64);
    let mut config = Config::new(quotas);
    change(&mut config);
    let daemon = Daemon::start(&socket, card, Arc::new(Images(images)), config).unwrap();
    Served { daemon, socket, folder }
}

/// A daemon in this process on the fake card.
pub fn on_fake(change: impl FnOnce(&mut Config)) -> (Served, Arc<FakeCard>) {
    let fake = FakeCard::new();
    let wait = Duration::from_secs(20);
    let timeouts = Timeouts { stall: wait, busy: wait, control: wait };
    let card = Card::open_with(fake.clone(), timeouts).unwrap();
    (serve(card, None, change), fake)
}

pub fn build() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build");
    std::env::var_os("VIADUCT_BUILD").map_or(here, PathBuf::from)
}

/// Whether the simulated card and the apps are built; says so if they are not.
pub fn is_built(apps: &[&str]) -> bool {
    let image = |app: &&str| build().join("apps").join(app).join(app).with_extension("via").is_file();
    let built = build().join("card/libviaduct_card.so").is_file() && apps.iter().all(image);
    if !built {
        assert!(std::env::var_os("VIADUCT_BUILD").is_none(), "VIADUCT_BUILD has no card or not {apps:?}");
        eprintln!("skipped: build the card and {apps:?} first (`make build`)");
    }
    built
}

/// A daemon in this process on the simulated card, with so much memory in each of its four channels.
pub fn on_sim(chan_mib: u32, apps: &[&str], change: impl FnOnce(&mut Config)) -> Option<Served> {
    if !is_built(apps) {
        return None;
    }
    let (card_object, image_dir) = (build().join("card/libviaduct_card.so"), build().join("apps"));
    let images = Some(image_dir.clone());
    let config = SimConfig { profile: Profile::default(), card_object, image_dir, chan_mib: Some(chan_mib) };
    let sim = SimCard::open(config).unwrap();
    let wait = Duration::from_secs(60);
    let timeouts = Timeouts { stall: wait, busy: wait, control: wait };
    Some(serve(Card::open_with(Arc::new(sim), timeouts).unwrap(), images, change))
}

/// A child that is killed when dropped.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program `viaductd` on a simulated card.
pub fn process(socket: &Path, options: &[&str]) -> Option<Killed> {
    if !is_built(&["rng", "gups"]) {
        return None;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_viaductd"));
    command.arg("--socket").arg(socket).args(options).stderr(Stdio::piped());
    let mut child = Killed(command.spawn().unwrap());
    let mut lines = BufReader::new(child.0.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("serving")), "viaductd has ended");
    // Its messages are read, so that it does not wait for it.
    std::thread::spawn(move || lines.for_each(drop));
    Some(child)
}

/// This test file as another process, in which the test `name`, which is ignored otherwise, is run.
pub fn other(name: &str, socket: &Path, file: &Path) -> Killed {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--ignored", "--nocapture"]);
    command.env("SOCKET", socket).env("FILE", file).stdout(Stdio::piped());
    Killed(command.spawn().unwrap())
}

/// Waits until it has printed a line with this.
pub fn said(child: &mut Killed, what: &str) {
    let mut lines = BufReader::new(child.0.stdout.as_mut().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(what)), "the other process has ended");
}

// ---------------------------------------------------------------- the fake card's app

fn wide(offset: u32) -> Register {
    Register { offset, width: 64 }
}

/// Adds 1 to each byte of a range.
pub fn add_one(slot: &Slot, mapping: &Mapping) {
    begin_adding(slot, mapping);
    while slot.read_register(fake::REG_DONE).unwrap() == 0 {
        slot.wait_irq(u64::MAX, Duration::from_millis(2)).unwrap();
    }
}

pub fn begin_adding(slot: &Slot, mapping: &Mapping) {
    slot.write_wide(wide(fake::REG_BASE), &mapping.va().to_le_bytes()).unwrap();
    slot.write_wide(wide(fake::REG_BYTES), &mapping.len().to_le_bytes()).unwrap();
    slot.write_register(fake::REG_START, 1).unwrap();
}

pub fn plus(bytes: &[u8], more: u8) -> Vec<u8> {
    bytes.iter().map(|byte| byte.wrapping_add(more)).collect()
}

// ---------------------------------------------------------------- app rng

pub const SEED: u64 = 0x1234_5678_9abc_def1;

/// Places that app rng accesses, as in its model (apps/rng/model.py).
pub fn offsets(size: u64, count: u32, len: u64) -> Vec<u64> {
    let slots = (len / size).min(u64::from(u32::MAX));
    let mut x = SEED;
    let mut next = || {
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        (((x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) * slots) >> 32) * size
    };
    (0..count).map(|_| next()).collect()
}

/// What the memory is after it has written.
pub fn rng_written(memory: &mut [u8], size: u64, count: u32) {
    for at in offsets(size, count, memory.len() as u64) {
        for offset in (at..at + size).step_by(8) {
            memory[offset as usize..][..8].copy_from_slice(&(offset ^ SEED).to_le_bytes());
        }
    }
}

/// What it sums up when it reads.
pub fn rng_sum(memory: &[u8], size: u64, count: u32) -> u64 {
    let words = |at: u64| {
        let bytes = &memory[at as usize..(at + size) as usize];
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()))
    };
    offsets(size, count, memory.len() as u64).into_iter().flat_map(words).fold(0, u64::wrapping_add)
}

pub fn begin_rng(slot: &Slot, va: u64, len: u64, size: u64, count: u32, write: bool) {
    slot.write_wide(wide(0), &va.to_le_bytes()).unwrap();
    slot.write_wide(wide(8), &len.to_le_bytes()).unwrap();
    slot.write_register(0x10, size as u32).unwrap();
    slot.write_register(0x14, count).unwrap();
    slot.write_wide(wide(0x18), &SEED.to_le_bytes()).unwrap();
    slot.write_register(0x20, write.into()).unwrap();
    slot.write_register(0x28, 1).unwrap();
}

/// Runs it to its end; returns its checksum and how many accesses have failed.
pub fn run_rng(slot: &Slot, va: u64, len: u64, size: u64, count: u32, write: bool) -> (u64, u32) {
    let irqs = slot.irqs().unwrap();
    begin_rng(slot, va, len, size, count, write);
    let ended = slot.wait_irq(irqs, Duration::from_secs(300)).unwrap();
    assert!(ended.is_some() && slot.read_register(0x2c).unwrap() == 1);
    let sum = slot.read_wide(wide(0x30)).unwrap();
    (u64::from_le_bytes(sum.try_into().unwrap()), slot.read_register(0x38).unwrap())
}

// ---------------------------------------------------------------- app gups

/// Registers, by their order in the manifest: base, bytes, updates, seed, start, done.
pub fn run_gups(slot: &Slot, va: u64, len: u64, updates: u64) {
    let irqs = slot.irqs().unwrap();
    for (offset, value) in [(0, va), (8, len), (0x10, updates), (0x18, 1)] {
        slot.write_wide(wide(offset), &value.to_le_bytes()).unwrap();
    }
    slot.write_register(0x20, 1).unwrap();
    assert!(slot.wait_irq(irqs, Duration::from_secs(300)).unwrap().is_some());
    assert_eq!(slot.read_register(0x24).unwrap(), 1);
    assert_eq!(slot.read_register(0x30).unwrap(), 0, "no update has failed");
}

/// Writable from its descriptor alone.
pub fn fd(file: &File) -> impl AsFd + '_ {
    file
}
