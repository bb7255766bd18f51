// SPDX-License-Identifier: Apache-2.0
//! The simulated card as a PCI function, including commands through a ring. Needs `make functions`; without it these tests
//! are skipped with a message. `VIADUCT_BUILD` names a build folder other than that of this checkout.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use viaduct_pci::{DmaAccess, HostMemory, PciError, PciFunction};
use viaduct_sim::{Profile, SimCard, SimConfig, SimError};

const SCRATCH: u64 = 0x1c;
const ICAP_CTRL: u64 = 0x40;
const ICAP_DATA: u64 = 0x44;
const ICAP_STATUS: u64 = 0x48;
const SLOT: u64 = 0x10000;
const RING_ENABLE: u32 = 1 << 31;
const ARM: u32 = 1 << 31;
const SIZE_LOG2: u32 = 4;
const PAGE: u64 = 4096;
const RINGS: u64 = 0x7000_0000;
const LONG: Duration = Duration::from_secs(60);

fn config(profile: Profile) -> SimConfig {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build");
    let build = std::env::var_os("VIADUCT_BUILD").map_or(here, PathBuf::from);
    SimConfig {
        profile,
        card_object: build.join("card/libviaduct_card_functions.so"),
        image_dir: build.join("apps"),
        chan_mib: Some(64),
    }
}

/// A card, if one is built.
fn open() -> Option<SimCard> {
    open_as(Profile::GEN3X16)
}

fn open_as(profile: Profile) -> Option<SimCard> {
    match SimCard::open(config(profile)) {
        Ok(card) => Some(card),
        Err(error @ SimError::NoCard { .. }) if std::env::var_os("VIADUCT_BUILD").is_none() => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Rings of slot 0: commands, completions and events, a page each.
struct Rings {
    memory: Arc<HostMemory>,
    submitted: u16,
    completed: u16,
}

impl Rings {
    fn new(card: &SimCard) -> Self {
        let memory = Arc::new(HostMemory::new(3 * PAGE as usize).unwrap());
        card.dma_map(RINGS, memory.clone(), DmaAccess::ReadWrite).unwrap();
        for (ring, registers) in [(0, 0x10), (1, 0x20), (2, 0x30)] {
            card.write32(0, SLOT + registers, (RINGS + ring * PAGE) as u32).unwrap();
            card.write32(0, SLOT + registers + 4, 0).unwrap();
            card.write32(0, SLOT + registers + 8, RING_ENABLE | SIZE_LOG2).unwrap();
        }
        Self { memory, submitted: 0, completed: 0 }
    }

    fn submit(&mut self, card: &SimCard, words: [u64; 4]) {
        let at = usize::from(self.submitted % 16) * 32;
        for (i, word) in words.into_iter().enumerate() {
            self.memory.write_u64(at + 8 * i, word, Ordering::Release);
        }
        self.submitted = self.submitted.wrapping_add(1);
        card.write32(2, 0, self.submitted.into()).unwrap();
    }

    /// Requests an interrupt at the next completion.
    fn arm(&self, card: &SimCard) {
        card.write32(2, 4, ARM | u32::from(self.completed)).unwrap();
    }

    /// Tag and status of the next completion, if there is one.
    fn completion(&mut self) -> Option<(u32, u8)> {
        let at = PAGE as usize + usize::from(self.completed % 16) * 32;
        let phase = self.memory.read_u64(at + 24, Ordering::Acquire) >> 63;
        if phase == u64::from(self.completed >> 4 & 1) {
            return None;
        }
        let word = self.memory.read_u64(at, Ordering::Acquire);
        self.completed = self.completed.wrapping_add(1);
        Some(((word >> 32) as u32, (word >> 16) as u8))
    }
}

fn command(op: u64, tag: u32, addr0: u64, addr1: u64, len: u64) -> [u64; 4] {
    [u64::from(tag) << 32 | op, addr0, addr1, len]
}

#[test]
fn registers_are_reached() {
    let Some(card) = open() else { return };
    assert_eq!(card.read32(0, 0).unwrap(), 0x5649_4144);
    assert_eq!(card.read32(0, 0xc).unwrap(), card.clock_khz());
    assert_eq!(card.read32(0, 0x18).unwrap(), 64);
    card.write32(0, SCRATCH, 0x1234_5678).unwrap();
    assert_eq!(card.read32(0, SCRATCH).unwrap(), 0x1234_5678);
    assert_eq!(card.info().bar_sizes, [256 << 10, 0, 64 << 10, 0, 4 << 10, 0]);
    assert!(card.info().vectors >= 2);
    for (bar, offset) in
        [(0, 2), (0, 256 << 10), (2, 64 << 10), (1, 0), (4, 4096), (6, 0), (255, u64::MAX - 3)]
    {
        assert!(matches!(card.read32(bar, offset), Err(PciError::OutOfRange { .. })), "BAR{bar} {offset:#x}");
        assert!(matches!(card.write32(bar, offset, 0), Err(PciError::OutOfRange { .. })));
    }
}

#[test]
fn every_register_address_is_answered() {
    let Some(card) = open() else { return };
    for (bar, size) in [(0u8, 256u64 << 10), (2, 64 << 10)] {
        for offset in (0..size).step_by(0x3fc) {
            card.read32(bar, offset & !3).unwrap();
        }
    }
    assert_eq!(card.read32(0, 0).unwrap(), 0x5649_4144);
}

#[test]
fn configuration_space_says_what_it_is() {
    let Some(card) = open() else { return };
    let mut ids = [0; 4];
    card.config_read(0, &mut ids).unwrap();
    assert_eq!(u32::from_le_bytes(ids), 0x5649_1209);
    // The MSI-X table is memory; the pending bits are not.
    card.write32(4, 0x10, 0xfee0_0000).unwrap();
    card.write32(4, 0x800, !0).unwrap();
    assert_eq!((card.read32(4, 0x10).unwrap(), card.read32(4, 0x800).unwrap()), (0xfee0_0000, 0));
    card.write32(0, SCRATCH, 7).unwrap();
    card.reset().unwrap();
    assert_eq!((card.read32(0, SCRATCH).unwrap(), card.read32(4, 0x10).unwrap()), (0, 0));
}

#[test]
fn a_command_goes_through_the_ring() {
    let Some(card) = open() else { return };
    let mut rings = Rings::new(&card);
    rings.arm(&card);
    rings.submit(&card, command(0, 0xabcd, 0, 0, 0));
    assert_eq!(card.wait_irq(1, LONG).unwrap(), 1);
    assert_eq!(rings.completion(), Some((0xabcd, 0)), "written before its interrupt");
    assert_eq!(rings.completion(), None);
    assert!(matches!(card.wait_irq(1, Duration::from_millis(1)), Err(PciError::Timeout(_))));
}

#[test]
fn data_goes_to_the_card_and_back() {
    let Some(card) = open() else { return };
    let mut rings = Rings::new(&card);
    const LEN: usize = 64 << 10;
    let (there, back) = (Arc::new(HostMemory::new(LEN).unwrap()), Arc::new(HostMemory::new(LEN).unwrap()));
    let data: Vec<u8> = (0..LEN as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    there.write(0, &data);
    card.dma_map(0x1_0000_0000, there, DmaAccess::Read).unwrap();
    card.dma_map(0x2_0000_0000, back.clone(), DmaAccess::Write).unwrap();
    let before = card.counters();
    // On the second channel.
    for (tag, (op, host)) in [(2, 0x1_0000_0000), (3, 0x2_0000_0000)].into_iter().enumerate() {
        rings.arm(&card);
        rings.submit(&card, command(op, tag as u32, host, 1 << 34 | 0x10_0000, LEN as u64));
        card.wait_irq(1, LONG).unwrap();
        assert_eq!(rings.completion(), Some((tag as u32, 0)));
    }
    let mut got = vec![0; LEN];
    back.read(0, &mut got);
    assert!(got == data);
    let after = card.counters();
    assert!(after.host_read_bytes - before.host_read_bytes >= LEN as u64);
    assert!(after.host_write_bytes - before.host_write_bytes >= LEN as u64);
    assert_eq!(after.dram_write_bytes[1], LEN as u64);
    assert_eq!(after.dram_read_bytes[1], LEN as u64);
    assert_eq!(after.dram_write_bytes[0], 0);
}

#[test]
fn dma_to_where_nothing_is_mapped_ends_with_an_error() {
    let Some(card) = open() else { return };
    let mut rings = Rings::new(&card);
    let memory = Arc::new(HostMemory::new(PAGE as usize).unwrap());
    card.dma_map(0x5000_0000, memory, DmaAccess::Read).unwrap();
    let mut run = |words| {
        rings.arm(&card);
        rings.submit(&card, words);
        card.wait_irq(1, LONG).unwrap();
        rings.completion().unwrap().1
    };
    const HOST_ERROR: u8 = 2;
    const BAD_ARG: u8 = 4;
    assert_eq!(run(command(2, 0, 0x6000_0000, 0, 4096)), HOST_ERROR);
    assert_eq!(run(command(2, 0, 0x5000_0000, 0, 8192)), HOST_ERROR);
    assert_eq!(run(command(3, 0, 0x5000_0000, 0, 4096)), HOST_ERROR, "no permission to write");
    assert_eq!(run(command(2, 0, 0x5000_0000, 64 << 20, 4096)), BAD_ARG, "beyond the channel");
    assert_eq!(run(command(2, 0, 0x5000_0000, 0, 4096)), 0, "no harm done");
    card.dma_unmap(0x5000_0000).unwrap();
    assert_eq!(run(command(2, 0, 0x5000_0000, 0, 4096)), HOST_ERROR);
}

/// The address space beyond the channels aliases them: a page mapped there would belong to another slot.
#[test]
fn no_page_and_no_copy_is_outside_of_the_cards_memory() {
    let Some(card) = open() else { return };
    let mut rings = Rings::new(&card);
    let mut run = |words| {
        rings.arm(&card);
        rings.submit(&card, words);
        card.wait_irq(1, LONG).unwrap();
        rings.completion().unwrap().1
    };
    const OK: u8 = 0;
    const BAD_ARG: u8 = 4;
    const MAP: u64 = 0x10;
    const FILL: u64 = 0x04;
    const HUGE_FLAG: u64 = 1 << 8;
    const HUGE: u64 = 2 << 20;
    const READ_WRITE: u64 = 7; // and valid
    const CHANNEL: u64 = 16 << 30;
    let (memory, channels) = (64 << 20, u64::from(card.read32(0, 0x8).unwrap() >> 8 & 0xff));
    let mut va = 1 << 30;
    for channel in 0..channels {
        let base = channel * CHANNEL;
        let outside = [memory, memory + PAGE, 2 * memory, CHANNEL - PAGE];
        for address in outside.map(|offset| base + offset) {
            assert_eq!(run(command(MAP, 1, va, address | READ_WRITE, 0)), BAD_ARG, "page at {address:#x}");
            assert_eq!(run(command(FILL, 1, 0, address, PAGE)), BAD_ARG, "copy to {address:#x}");
            let address = address / HUGE * HUGE;
            if address >= base + memory {
                assert_eq!(
                    run(command(MAP | HUGE_FLAG, 1, va, address | READ_WRITE, 0)),
                    BAD_ARG,
                    "large page at {address:#x}"
                );
            }
        }
        let last = base + memory - PAGE;
        assert_eq!(run(command(MAP, 1, va, last | READ_WRITE, 0)), OK, "the last page of channel {channel}");
        assert_eq!(run(command(FILL, 1, 0, last, PAGE)), OK);
        assert_eq!(run(command(FILL, 1, 0, last, PAGE + 64)), BAD_ARG, "over the end");
        va += HUGE;
    }
    for address in [channels * CHANNEL, 0x10_0000_0000, 1 << 40, 1 << 47, 1 << 51] {
        assert_eq!(run(command(MAP, 1, va, address | READ_WRITE, 0)), BAD_ARG, "page at {address:#x}");
        assert_eq!(run(command(FILL, 1, 0, address, PAGE)), BAD_ARG, "copy to {address:#x}");
    }
}

#[test]
fn mappings_are_checked() {
    let Some(card) = open() else { return };
    let memory = Arc::new(HostMemory::new(2 * PAGE as usize).unwrap());
    card.dma_map(0x10000, memory.clone(), DmaAccess::ReadWrite).unwrap();
    for iova in [0x10000, 0x11000, 0xf000, 0x123, u64::MAX - 4095, 1 << 63] {
        let error = card.dma_map(iova, memory.clone(), DmaAccess::Read).unwrap_err();
        assert!(matches!(error, PciError::Os { .. }), "{iova:#x}: {error}");
    }
    assert!(card.dma_unmap(0x11000).is_err());
    card.dma_unmap(0x10000).unwrap();
    assert!(card.dma_unmap(0x10000).is_err());
    assert_eq!(Arc::strong_count(&memory), 1);
}

#[test]
fn a_buffer_taken_back_while_in_use_is_left_alone() {
    let Some(card) = open() else { return };
    let mut rings = Rings::new(&card);
    const LEN: usize = 256 << 10;
    let memory = Arc::new(HostMemory::new(LEN).unwrap());
    card.dma_map(0x1_0000_0000, memory.clone(), DmaAccess::ReadWrite).unwrap();
    rings.arm(&card);
    rings.submit(&card, command(3, 9, 0x1_0000_0000, 0, LEN as u64));
    card.run(3_000);
    card.dma_unmap(0x1_0000_0000).unwrap();
    assert_eq!(Arc::strong_count(&memory), 1);
    memory.fill(0, LEN, 0xa5);
    card.wait_irq(1, LONG).unwrap();
    assert_eq!(rings.completion(), Some((9, 2)), "the rest is a host error");
    let mut bytes = vec![0; LEN];
    memory.read(0, &mut bytes);
    assert!(bytes.iter().all(|b| *b == 0xa5));
}

#[test]
fn equal_calls_take_equal_cycles() {
    let run = || {
        let card = open()?;
        let mut rings = Rings::new(&card);
        for tag in 0..40 {
            rings.arm(&card);
            rings.submit(&card, command(4, tag, 0, u64::from(tag) << 16, 8192));
            card.wait_irq(1, LONG).unwrap();
            assert_eq!(rings.completion(), Some((tag, 0)));
            card.charge(Duration::from_nanos(1_234));
        }
        Some((card.now(), card.counters()))
    };
    assert_eq!(run(), run());
}

#[test]
fn a_parked_card_costs_nothing_and_wakes_up() {
    let Some(card) = open().map(Arc::new) else { return };
    let mut rings = Rings::new(&card);
    card.run(1 << 20);
    assert!(card.parked());
    let parked_at = card.now();
    let waiter = std::thread::spawn({
        let card = card.clone();
        move || card.wait_irq(1, LONG)
    });
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(card.now(), parked_at, "time stands still");
    rings.arm(&card);
    rings.submit(&card, command(0, 1, 0, 0, 0));
    assert_eq!(waiter.join().unwrap().unwrap(), 1);
    // Charged time passes without work.
    card.run(1 << 20);
    let (now, evaluated) = (card.now(), card.counters().shell_evals);
    card.charge(Duration::from_secs(1));
    assert_eq!(card.now() - now, u64::from(card.clock_khz()) * 1000);
    assert_eq!(card.counters().shell_evals, evaluated);
}

#[test]
fn threads_share_a_card() {
    let Some(card) = open().map(Arc::new) else { return };
    let mut rings = Rings::new(&card);
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let card = card.clone();
            std::thread::spawn(move || (0..200).all(|_| card.read32(0, 0).unwrap() == 0x5649_4144))
        })
        .collect();
    let idle = std::thread::spawn({
        let card = card.clone();
        move || card.wait_irq(2, Duration::from_millis(500))
    });
    for tag in 0..50 {
        rings.arm(&card);
        rings.submit(&card, command(0, tag, 0, 0, 0));
        let begun = Instant::now();
        card.wait_irq(1, LONG).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(10));
        assert_eq!(rings.completion(), Some((tag, 0)));
    }
    for reader in readers {
        assert!(reader.join().unwrap());
    }
    assert!(matches!(idle.join().unwrap(), Err(PciError::Timeout(_))));
}

#[test]
fn a_reset_stops_everything() {
    let Some(card) = open() else { return };
    let mut rings = Rings::new(&card);
    rings.arm(&card);
    rings.submit(&card, command(4, 1, 0, 0, 32 << 20));
    card.run(5_000);
    assert!(!card.parked());
    card.reset().unwrap();
    card.run(1 << 20);
    assert!(card.parked());
    assert!(matches!(card.wait_irq(!0, Duration::ZERO), Err(PciError::Timeout(_))));
    assert_eq!(card.read32(0, SLOT + 0x18).unwrap() & RING_ENABLE, 0, "the ring is off");
    card.dma_unmap(RINGS).unwrap();
    let mut rings = Rings::new(&card);
    rings.arm(&card);
    rings.submit(&card, command(0, 2, 0, 0, 0));
    card.wait_irq(1, LONG).unwrap();
    assert_eq!(rings.completion(), Some((2, 0)));
}

fn load(card: &SimCard, slot: u32, image: &[u8]) -> u32 {
    card.write32(0, ICAP_CTRL, slot | 1 << 8).unwrap();
    for word in image.chunks(4) {
        card.write32(0, ICAP_DATA, u32::from_le_bytes(word.try_into().unwrap())).unwrap();
    }
    card.write32(0, ICAP_CTRL, slot | 1 << 9).unwrap();
    for _ in 0..100 {
        let status = card.read32(0, ICAP_STATUS).unwrap();
        if status & 2 != 0 {
            return status >> 8;
        }
    }
    panic!("the configuration port is still busy");
}

#[test]
fn images_that_are_none_are_refused() {
    let Some(card) = open() else { return };
    let slots = card.read32(0, 8).unwrap() & 0xff;
    assert_eq!(load(&card, 0, &[0; 80]), 1);
    assert_eq!(load(&card, 0, b"VIA1"), 1);
    assert_eq!(load(&card, 0, &[0; 4096]), 1);
    let mut absent = [0; 80];
    absent[..8].copy_from_slice(b"VIA1\x01\0\0\0");
    absent[8..12].copy_from_slice(&(card.read32(0, 8).unwrap() & 0xffff_0000).to_le_bytes());
    absent[16..22].copy_from_slice(b"absent");
    assert_eq!(load(&card, 0, &absent), 2);
    absent[10] ^= 4;
    assert_eq!(load(&card, 0, &absent), 4);
    if slots < 16 {
        assert_eq!(load(&card, 15, &absent), 8);
    }
    assert_eq!(card.read32(0, 0x28).unwrap() >> 16, 0, "nothing is loaded");
}

#[test]
fn a_missing_card_is_named_with_its_remedy() {
    let nowhere = PathBuf::from("/nonexistent/libviaduct_card.so");
    let error =
        SimCard::open(SimConfig { card_object: nowhere, ..config(Profile::default()) }).err().unwrap();
    assert!(matches!(error, SimError::NoCard { .. }));
    assert!(error.to_string().contains("make card"), "{error}");
    let file = tempfile::NamedTempFile::new().unwrap();
    let other = SimConfig { card_object: file.path().to_owned(), ..config(Profile::default()) };
    assert!(matches!(SimCard::open(other), Err(SimError::NotACard { .. })));
}

#[test]
fn a_board_that_cannot_be_is_refused() {
    if open().is_none() {
        return;
    }
    let mut profile = Profile::GEN3X16;
    profile.link.mps = 100;
    assert!(matches!(SimCard::open(config(profile)), Err(SimError::Refused(why)) if why.contains("MPS")));
    let huge = SimConfig { chan_mib: Some(0), ..config(Profile::GEN3X16) };
    assert!(matches!(SimCard::open(huge), Err(SimError::Refused(_))));
}

#[test]
fn every_profile_powers_up() {
    for name in Profile::names() {
        let profile = Profile::by_name(name).unwrap();
        assert_eq!(profile.name, name);
        // The card that is built has four channels.
        if profile.channels != Profile::default().channels {
            match SimCard::open(config(profile)).err().unwrap() {
                error @ SimError::Profile { .. } => assert!(error.to_string().contains(name), "{error}"),
                error => assert!(matches!(error, SimError::NoCard { .. }), "{error}"),
            }
            continue;
        }
        let Some(card) = open_as(profile) else { return };
        assert_eq!(card.read32(0, 0).unwrap(), 0x5649_4144);
    }
    assert_eq!(Profile::by_name("gen9x99"), None);
}

#[test]
fn a_card_without_waves_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let Some(card) = open() else { return };
    let error = card.wave(&folder.path().join("card.fst"), 0, 100).unwrap_err();
    assert!(error.to_string().contains("waves"), "{error}");
}
