// SPDX-License-Identifier: Apache-2.0
//! The library on the simulated card. Needs `make functions` and `viaduct build pass rng`; without them these tests are skipped with a message.

mod built;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use built::card;
use viaduct::desc::{Command, Place, Status};
use viaduct::*;
use viaduct_pci::PciFunction;
use viaduct_pci::vfio_user::{Client, Server};
use viaduct_sim::{XDMA, XDMA_DMA_BAR, XDMA_USER_BAR};

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + (i >> 8) * 7) as u8).collect()
}

fn pass(slot: &Slot, data: &[u8], chunk: u64, length: OutLength) -> JobReport {
    let out = SharedBytes::default();
    let report = StreamJob::new(slot)
        .input(0, Endpoint::bytes("in", SharedBytes::new(data.to_vec())))
        .output(0, Endpoint::bytes("out", out.clone()), length)
        .chunk_bytes(chunk)
        .run()
        .unwrap();
    assert!(out.take() == data, "{} bytes in chunks of {chunk}", data.len());
    report
}

#[test]
fn streams_pass_through_the_card_unchanged() {
    let Some((card, _sim, image)) = card("pass") else { return };
    let slot = card.slot(0).unwrap();
    slot.load(&image).unwrap();
    for len in [1, 63, 64, 65, 4095, 4097, 30_001] {
        for chunk in [4096, 1 << 20] {
            for length in [OutLength::Same, OutLength::Any] {
                let report = pass(&slot, &pattern(len), chunk, length);
                assert!(report.cycles > 0);
            }
        }
    }
    assert_eq!(slot.strays(), 0);
    assert!(slot.take_violations().is_empty());
}

#[test]
fn weights_are_in_the_card_and_end_with_their_slot() {
    let Some((card, _sim, _)) = card("pass") else { return };
    let weight = || card.pci().read32(0, 0x10048).unwrap();
    let slot = card.slot(0).unwrap();
    assert_eq!(weight(), 1);
    slot.set_weight(9).unwrap();
    assert_eq!(weight(), 9);
    for wrong in [0, 16, 255] {
        assert!(slot.set_weight(wrong).unwrap_err().to_string().contains("1 to 15"));
        assert!(card.set_dma_weights(1, wrong).is_err() && card.set_dma_weights(wrong, 1).is_err());
    }
    drop(slot);
    assert_eq!(weight(), 1);
    card.set_dma_weights(3, 5).unwrap();
    assert_eq!(card.pci().read32(0, 0x30).unwrap(), 0x53);
}

#[test]
fn sharing_is_in_the_card_and_refused_if_it_has_no_such() {
    let Some((card, _sim, _)) = card("pass") else { return };
    let registers = || [0x5c, 0x60].map(|place| card.pci().read32(0, place).unwrap());
    card.set_sharing(&Sharing::default()).unwrap();
    assert_eq!(registers(), [0x1111_1111, 0x6_4000]);
    let shares = ["pages=2", "slots=15,first"].map(|text| text.parse().unwrap());
    let sharing = Sharing {
        policy: Policy::RoundRobin,
        channel_quantum: Some(256),
        host_quantum: Some(1024),
        host: shares.to_vec(),
    };
    card.set_sharing(&sharing).unwrap();
    assert_eq!(registers(), [0x1111_11f2, 0x4_2102]);
    let share = |text: &str| Sharing { host: vec![text.parse().unwrap()], ..Sharing::default() };
    for (wrong, told) in [
        (share("pages=0"), "1 to 15"),
        (share("slots=16"), "1 to 15"),
        (Sharing { channel_quantum: Some(8192), ..Sharing::default() }, "from 128 to 4096"),
        (Sharing { host_quantum: Some(1000), ..Sharing::default() }, "power of two"),
    ] {
        let error = card.set_sharing(&wrong).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
    // Nothing of what is refused is set.
    assert_eq!(registers(), [0x1111_11f2, 0x4_2102]);
}

/// Longer than the time-out of inactivity.
#[test]
fn a_paused_app_moves_nothing_and_goes_on_where_it_was() {
    let Some((card, _sim, image)) = card("pass") else { return };
    let limit = Duration::from_secs(2);
    let timeouts = Timeouts { stall: limit, busy: limit, ..card.timeouts() };
    let card = Card::open_with(Arc::clone(card.pci()), timeouts).unwrap();
    let slot = card.slot(0).unwrap();
    assert!(matches!(slot.pause(), Err(Error::SlotEmpty { .. })));
    slot.load(&image).unwrap();
    let data = pattern(3_000_000);
    std::thread::scope(|scope| {
        let job = scope.spawn(|| pass(&slot, &data, 1 << 16, OutLength::Any));
        while slot.counters().unwrap().beats_out == 0 {
            std::thread::yield_now();
        }
        slot.pause().unwrap();
        // What was on its way has arrived by then.
        std::thread::sleep(Duration::from_millis(100));
        let before = slot.counters().unwrap();
        std::thread::sleep(2 * limit);
        assert_eq!(slot.counters().unwrap().beats_out, before.beats_out);
        assert!(!job.is_finished(), "the job has ended although the app is paused");
        slot.resume().unwrap();
        job.join().unwrap();
    });
    // A paused app can be ended, and the slot be used again.
    slot.pause().unwrap();
    slot.close().unwrap();
    let slot = card.slot(0).unwrap();
    slot.load(&image).unwrap();
    pass(&slot, &data[..1000], 4096, OutLength::Same);
    // So does another image end a pause, or a reset.
    slot.pause().unwrap();
    slot.reset().unwrap();
    pass(&slot, &data[..1000], 4096, OutLength::Same);
}

/// Through the function's user BAR and a vfio-user socket, as the vendor's driver for the engine does it.
#[test]
fn the_driver_of_the_xdma_function_has_the_registers_of_slots_that_are_opened_to_it() {
    const COUNT: u32 = 0x14;
    const RESET: u32 = 1024;
    let Some((card, sim, image)) = card("rng") else { return };
    let Ok(xdma) = card.function(FunctionKind::Xdma) else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("xdma.sock");
    let _server = Server::bind(&path, sim.function(XDMA).unwrap().unwrap()).unwrap();
    let driver = Client::connect(&path).unwrap();
    // Register `count` of the app in a slot.
    let count = |slot: usize| (slot as u64) << 12 | u64::from(COUNT);
    let read = |slot: usize| driver.read32(XDMA_USER_BAR, count(slot)).unwrap();
    let slots = [card.slot(0).unwrap(), card.slot(1).unwrap()];
    for slot in &slots {
        slot.load(&image).unwrap();
        slot.write_register(COUNT, 0x1111).unwrap();
    }
    let closed = |slot: usize| {
        driver.write32(XDMA_USER_BAR, count(slot), 0x6666).unwrap();
        read(slot) == u32::MAX
    };
    assert!((0..16).all(closed), "no slot is open after power-up");
    assert_eq!(driver.read32(XDMA_DMA_BAR, 0x3000).unwrap() >> 16, 0x1fc3);

    xdma.open_slots(&[1]).unwrap();
    assert_eq!(read(1), 0x1111);
    driver.write32(XDMA_USER_BAR, count(1), 0x2222).unwrap();
    assert_eq!((read(1), slots[1].read_register(COUNT).unwrap()), (0x2222, 0x2222));
    let mut words = [0; 8];
    driver.read(XDMA_USER_BAR, count(1) - 4, &mut words).unwrap();
    assert_eq!(words, [0, 0x10, 0, 0, 0x22, 0x22, 0, 0], "with `size` before it");
    assert!(closed(0) && closed(2) && slots[0].read_register(COUNT).unwrap() == 0x1111);
    // An offset without a register; parts of a word.
    assert_eq!(driver.read32(XDMA_USER_BAR, 0x1ffc).unwrap(), u32::MAX);
    driver.write(XDMA_USER_BAR, count(1), &[9]).unwrap();
    let mut byte = [0];
    driver.read(XDMA_USER_BAR, count(1) + 1, &mut byte).unwrap();
    assert_eq!((byte[0], read(1)), (0x22, 0x2222));

    // A slot stays open when its app is reset, but not when it gets another owner.
    slots[1].reset().unwrap();
    assert_eq!(read(1), RESET);
    let [_zero, one] = slots;
    drop(one);
    let one = card.slot(1).unwrap();
    one.load(&image).unwrap();
    assert!(closed(1) && one.read_register(COUNT).unwrap() == RESET);
    assert!(xdma.open_slots(&[99]).is_err());
    assert!(card.function(FunctionKind::Net).is_ok_and(|net| net.open_slots(&[0]).is_err()));
}

#[test]
fn a_run_takes_the_same_cycles_every_time() {
    let run = || {
        let (card, _sim, image) = card("pass")?;
        let slot = card.slot(0).unwrap();
        slot.load(&image).unwrap();
        Some((pass(&slot, &pattern(100_000), 16 << 10, OutLength::Same), card.time().unwrap()))
    };
    assert_eq!(run(), run());
}

#[test]
fn all_slots_run_at_once_and_a_failed_run_leaves_the_slot_usable() {
    let Some((card, _sim, image)) = card("pass") else { return };
    let slots: Vec<_> = (0..card.info().slots).map(|i| card.slot(i).unwrap()).collect();
    std::thread::scope(|scope| {
        for slot in &slots {
            let image = &image;
            scope.spawn(move || {
                slot.load(image).unwrap();
                pass(slot, &pattern(20_000 + slot.index()), 4096, OutLength::Same);
                let full = StreamJob::new(slot)
                    .input(0, Endpoint::bytes("in", SharedBytes::new(pattern(50_000))))
                    .output(0, Endpoint::File("/dev/full".into()), OutLength::Same)
                    .chunk_bytes(4096)
                    .run();
                assert!(matches!(full, Err(Error::Write { .. })), "{full:?}");
                let long = StreamJob::new(slot)
                    .input(0, Endpoint::bytes("in", SharedBytes::new(pattern(50_000))))
                    .output(0, Endpoint::bytes("out", SharedBytes::default()), OutLength::Message(64))
                    .chunk_bytes(4096)
                    .run();
                assert!(matches!(long, Err(Error::OutputTooLong { .. })), "{long:?}");
                pass(slot, &pattern(999), 4096, OutLength::Same);
            });
        }
    });
}

#[test]
fn card_memory_keeps_what_a_stream_brings() {
    let Some((card, _sim, image)) = card("pass") else { return };
    let slot = card.slot(0).unwrap();
    slot.load(&image).unwrap();
    let data = pattern(50_000);
    let there = |len| Endpoint::Card { addr: 2 << 34, len };
    let out = SharedBytes::default();
    StreamJob::new(&slot)
        .input(0, Endpoint::bytes("in", SharedBytes::new(data.clone())))
        .output(0, there(65536), OutLength::Same)
        .run()
        .unwrap();
    StreamJob::new(&slot)
        .input(0, there(50_000))
        .output(0, Endpoint::bytes("out", out.clone()), OutLength::Same)
        .run()
        .unwrap();
    assert!(out.take() == data);
}

#[test]
fn loading_again_and_refused_images() {
    let Some((card, _sim, image)) = card("pass") else { return };
    let slot = card.slot(1).unwrap();
    let mut wrong = image.clone();
    wrong[60] ^= 1;
    assert!(matches!(slot.load(&wrong), Err(Error::LoadRefused { .. })));
    assert!(matches!(slot.load(&image[..8]), Err(Error::LoadRefused { .. })));
    slot.load(&image).unwrap();
    pass(&slot, &pattern(100), 4096, OutLength::Same);
    slot.load(&image).unwrap();
    pass(&slot, &pattern(100), 4096, OutLength::Same);
    drop(slot);
    let slot = card.slot(1).unwrap();
    slot.start().unwrap();
    pass(&slot, &pattern(5000), 4096, OutLength::Same);
}

// ---------------------------------------------------------------- paging, with app rng

const SEED: u64 = 0x1234_5678_9abc_def1;

/// Addresses that app rng accesses, as in its model (apps/rng/model.py).
fn offsets(size: u64, count: u32, len: u64) -> Vec<u64> {
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

fn run_rng(slot: &Slot, mapping: &Mapping, size: u64, count: u32, write: bool) -> MemoryReport {
    slot.write_register(0x10, size as u32).unwrap();
    slot.write_register(0x14, count).unwrap();
    slot.write_wide(Register { offset: 0x18, width: 64 }, &SEED.to_le_bytes()).unwrap();
    slot.write_register(0x20, write.into()).unwrap();
    let wide = |offset| Register { offset, width: 64 };
    let range = MemoryRange::of(mapping, wide(0), Some(wide(8)));
    let report = MemoryJob::new(slot, 0x28).range(range).done(0x2c).irq().run().unwrap();
    assert_eq!(slot.read_register(0x38).unwrap(), 0, "no access completes with an error");
    report
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn random_accesses_see_and_change_the_file_through_the_pager() {
    let Some((card, _sim, image)) = card("rng") else { return };
    let slot = card.slot(0).unwrap();
    slot.load(&image).unwrap();
    let rw = MapOptions::new(Prot::READ_WRITE);
    // options, bytes of the file, frame budget, bytes and number of accesses
    let runs = [
        (rw, 300_000 / 64 * 64, u64::MAX, 64, 300),
        (rw, 1 << 20, 16 * 4096, 256, 200),
        (rw.on_host(), 200_000 / 64 * 64, u64::MAX, 64, 200),
        (rw, 6 << 20, 4 << 20, 4096, 12),
        (rw.huge(false), 3 << 20, 8 * 4096, 64, 60),
        // 64 accesses under way: as many faults, with frames for fewer, and for more of them.
        (rw, 1 << 20, 40 * 4096, 64, 200),
        (rw, 1 << 20, 150 * 4096, 64, 300),
        // With the page table in card memory.
        (rw.table(true), 1 << 20, u64::MAX, 64, 300),
        (rw.huge(false).table(true), 3 << 20, 8 * 4096, 64, 100),
        (rw.table(true), 1 << 20, 150 * 4096, 256, 300),
    ];
    for (options, len, budget, size, count) in runs {
        slot.set_frame_budget(budget);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let mut model = pattern(len as usize);
        std::fs::write(&path, &model).unwrap();
        let mapping = slot.map(Source::file_mut(&path).unwrap(), len, options).unwrap();

        run_rng(&slot, &mapping, size, count, true);
        for at in offsets(size, count, len) {
            for offset in (at..at + size).step_by(8) {
                model[offset as usize..][..8].copy_from_slice(&(offset ^ SEED).to_le_bytes());
            }
        }
        mapping.sync(false).unwrap();
        assert!(std::fs::read(&path).unwrap() == model, "{options:?}, {len} bytes: after sync");

        run_rng(&slot, &mapping, size, count, false);
        let sum = offsets(size, count, len).iter().fold(0u64, |sum, &at| {
            let read = words(&model[at as usize..(at + size) as usize]);
            read.into_iter().fold(sum, u64::wrapping_add)
        });
        let got = slot.read_wide(Register { offset: 0x30, width: 64 }).unwrap();
        assert_eq!(u64::from_le_bytes(got.try_into().unwrap()), sum, "{options:?}, {len} bytes: checksum");
        mapping.unmap().unwrap();
        assert!(std::fs::read(&path).unwrap() == model, "{options:?}, {len} bytes: after unmap");
        let stats = slot.pager_stats();
        assert_eq!(stats.denied, 0);
        if budget != u64::MAX {
            assert!(stats.evicted > 0, "{stats:?}");
        }
    }
    assert_eq!(slot.strays(), 0);
    assert!(slot.take_violations().is_empty());
}

/// 17 MiB in pages of 4 KiB, of which the card's TLBs hold 16 MiB.
#[test]
fn pages_that_are_resident_need_no_host_beyond_the_reach_of_the_tlbs() {
    let Some((card, _sim, image)) = card("rng") else { return };
    let slot = card.slot(0).unwrap();
    slot.load(&image).unwrap();
    const LEN: u64 = 17 << 20;
    assert!(u64::from(card.info().tlb_page.ways * card.info().tlb_page.sets) * 4096 < LEN);
    let mut model = pattern(LEN as usize);
    let shared = SharedBytes::new(model.clone());
    let options = MapOptions::new(Prot::READ_WRITE).huge(false);
    let mapping = slot.map(Source::bytes(shared.clone()), LEN, options).unwrap();
    // All of it, 1 MiB at a time.
    let piece = 1 << 20;
    let all =
        |count: &u32| offsets(piece, *count, LEN).iter().collect::<BTreeSet<_>>().len() as u64 == LEN / piece;
    let count = (1..).find(all).unwrap();
    run_rng(&slot, &mapping, piece, count, false);
    let stats = slot.pager_stats();
    assert_eq!(stats.pages_in, LEN / 4096);

    let count = 5000;
    let touched: BTreeSet<u64> = offsets(64, count, LEN).iter().map(|at| at / 4096).collect();
    assert!(touched.len() > 2500);
    let before = slot.counters().unwrap();
    run_rng(&slot, &mapping, 64, count, false);
    let sum = offsets(64, count, LEN).iter().fold(0u64, |sum, &at| {
        words(&model[at as usize..at as usize + 64]).into_iter().fold(sum, u64::wrapping_add)
    });
    let got = slot.read_wide(Register { offset: 0x30, width: 64 }).unwrap();
    assert_eq!(u64::from_le_bytes(got.try_into().unwrap()), sum);
    let missed = slot.counters().unwrap().rd_miss.wrapping_sub(before.rd_miss);
    assert!(missed > 50, "the TLBs cannot hold all: {missed}");
    // Writes find their way, too, and back to the source; the card keeps which pages they changed.
    run_rng(&slot, &mapping, 64, 300, true);
    assert_eq!(slot.pager_stats(), stats, "nothing of it took the host");
    for at in offsets(64, 300, LEN) {
        for offset in (at..at + 64).step_by(8) {
            model[offset as usize..][..8].copy_from_slice(&(offset ^ SEED).to_le_bytes());
        }
    }
    let changed: BTreeSet<u64> = offsets(64, 300, LEN).iter().map(|at| at / 4096).collect();
    mapping.unmap().unwrap();
    assert!(shared.to_vec() == model);
    assert_eq!(slot.pager_stats().pages_out, changed.len() as u64, "only those are written back");
}

/// As after a fault of the memory. Where the table is follows from the size of the card (`Tables`); the mapping's is its first part.
#[test]
fn damaged_entries_of_the_page_table_are_found_and_written_anew() {
    let Some((card, _sim, image)) = card("rng") else { return };
    let slot = card.slot(0).unwrap();
    slot.load(&image).unwrap();
    const LEN: u64 = 1 << 20;
    let mut model = pattern(LEN as usize);
    let shared = SharedBytes::new(model.clone());
    let options = MapOptions::new(Prot::READ_WRITE).table(true);
    let mapping = slot.map(Source::bytes(shared.clone()), LEN, options).unwrap();
    run_rng(&slot, &mapping, 64, 300, false);
    assert_eq!(slot.pager_stats().damaged, 0);

    let info = card.info();
    assert_eq!((info.slots, info.channels, info.chan_mib.is_power_of_two()), (4, 4, true));
    let table = (info.chan_mib - (info.chan_mib / 64).max(2)) << 20;
    let bytes = LEN / 4096 * 8;
    let buffer = card.dma_buffer(bytes, viaduct_pci::DmaAccess::ReadWrite).unwrap();
    let run = |command| {
        let tags = slot.submit(&[command]).unwrap();
        assert_eq!(slot.wait(&tags).unwrap()[0].status, desc::Status::Ok, "{command:?} {info:?}");
    };
    run(desc::Command::c2h(buffer.iova(), table, bytes as u32));
    let mut entries = vec![0; bytes as usize];
    buffer.memory().read(0, &mut entries);
    let mut damaged = 0;
    for entry in entries.chunks_exact_mut(8).filter(|entry| entry[2] & 1 != 0) {
        entry[6] ^= 0x10;
        damaged += 1;
    }
    assert!(damaged > 100, "{damaged} pages are in the table");
    buffer.memory().write(0, &entries);
    run(desc::Command::h2c(buffer.iova(), table, bytes as u32));

    // A write is no longer what the entries in the TLBs grant: the table is asked.
    run_rng(&slot, &mapping, 64, 300, true);
    for at in offsets(64, 300, LEN) {
        for offset in (at..at + 64).step_by(8) {
            model[offset as usize..][..8].copy_from_slice(&(offset ^ SEED).to_le_bytes());
        }
    }
    let found = slot.pager_stats().damaged;
    assert!(found > 100, "{found} of {damaged}");
    mapping.unmap().unwrap();
    assert!(shared.to_vec() == model);

    // Nobody gets these pages.
    let refused = StreamJob::new(&slot).input(0, Endpoint::Card { addr: table, len: 4096 }).run();
    assert!(refused.is_err_and(|error| error.to_string().contains("page tables are there")));
}

#[test]
fn an_access_without_permission_is_answered_with_an_error() {
    let Some((card, _sim, image)) = card("rng") else { return };
    let slot = card.slot(0).unwrap();
    slot.load(&image).unwrap();
    let shared = SharedBytes::new(pattern(65536));
    let read_only = MapOptions::new(Prot::READ);
    let mapping = slot.map(Source::bytes(shared.clone()), 65536, read_only).unwrap();
    slot.write_register(0x10, 64).unwrap();
    slot.write_register(0x14, 5).unwrap();
    slot.write_register(0x20, 1).unwrap();
    let wide = |offset| Register { offset, width: 64 };
    let range = MemoryRange::of(&mapping, wide(0), Some(wide(8)));
    let report = MemoryJob::new(&slot, 0x28).range(range).done(0x2c).irq().run().unwrap();
    assert_eq!(report.denied, 5);
    assert_eq!(slot.read_register(0x38).unwrap(), 5);
    assert!(slot.take_denied().iter().all(|denied| denied.is_write));
    mapping.unmap().unwrap();
    assert!(shared.to_vec() == pattern(65536));
}

#[test]
fn a_run_stopped_in_full_flight_leaves_the_slot_usable_and_its_pages_whole() {
    let Some((card, _sim, image)) = card("rng") else { return };
    let slot = card.slot(2).unwrap();
    slot.load(&image).unwrap();
    slot.set_frame_budget(8 * 4096);
    let len = 128 << 10;
    let shared = SharedBytes::new(vec![0; len as usize]);
    let options = MapOptions::new(Prot::READ_WRITE);
    let mapping = slot.map(Source::bytes(shared.clone()), len, options).unwrap();
    let wide = |offset| Register { offset, width: 64 };
    for limit in [0, 3, 20, 100, 300] {
        slot.write_register(0x10, 256).unwrap();
        slot.write_register(0x14, u32::MAX).unwrap();
        slot.write_wide(wide(0x18), &SEED.to_le_bytes()).unwrap();
        slot.write_register(0x20, 1).unwrap();
        let range = MemoryRange::of(&mapping, wide(0), Some(wide(8)));
        let job = MemoryJob::new(&slot, 0x28).range(range).done(0x2c).irq();
        let stopped = job.limit(Duration::from_millis(limit)).run();
        assert!(matches!(stopped, Err(Error::Unfinished { .. })), "{stopped:?}");
    }
    run_rng(&slot, &mapping, 64, 50, true);
    mapping.unmap().unwrap();
    // Every word has its old or its written value.
    for (i, word) in words(&shared.to_vec()).into_iter().enumerate() {
        assert!(word == 0 || word == (8 * i as u64) ^ SEED, "word {i} is {word:#x}");
    }
    assert!(slot.take_denied().is_empty());
}

#[test]
fn a_long_stream_comes_close_to_the_link() {
    let Some((card, _sim, image)) = card("pass") else { return };
    let slot = card.slot(0).unwrap();
    slot.load(&image).unwrap();
    let report = pass(&slot, &pattern(2 << 20), 256 << 10, OutLength::Same);
    let rate = report.bytes_in as f64 / card.info().seconds(report.cycles) / 1e9;
    eprintln!("{} bytes in {} cycles: {rate:.2} GB/s", report.bytes_in, report.cycles);
    assert!(rate > 1.0, "{rate} GB/s");
}

#[test]
fn more_commands_than_the_ring_holds_are_submitted() {
    let Some((card, _sim, _)) = card("pass") else { return };
    let slot = card.slot(0).unwrap();
    slot.open_space().unwrap();
    for count in [255, 256, 257, 800] {
        let page = |n: u64| Command::map(n << 12, Place::Card(n << 12), Prot::READ, false);
        let tags = slot.submit(&(0..count).map(page).collect::<Vec<_>>()).unwrap();
        let done = slot.wait(&tags).unwrap();
        assert!(done.len() as u64 == count && done.iter().all(|completion| completion.status == Status::Ok));
    }
}

#[test]
fn schedules_are_in_the_card_and_end_with_their_slot() {
    let Some((card, _sim, _)) = card("pass") else { return };
    let registers = || [0x10048, 0x1004c, 0x10050].map(|at| card.pci().read32(0, at).unwrap());
    let slot = card.slot(0).unwrap();
    assert_eq!(registers(), [1, 0, 0]);
    // A beat a cycle has 64 bytes, at 250 MHz 16 GB/s.
    let rate = Some(Rate { bytes_per_second: 8_000_000_000, burst: 5000 });
    let all = Schedule { weight: 7, first: true, rate, limit: true, in_flight: Some(4096) };
    slot.set_schedule(&all).unwrap();
    assert_eq!(registers(), [7, 4 << 8 | 0b11, 5 << 16 | 128]);
    let slowest = Some(Rate { bytes_per_second: 1, burst: 0 });
    slot.set_schedule(&Schedule { rate: slowest, in_flight: Some(0), ..Schedule::default() }).unwrap();
    assert_eq!(registers(), [1, 1 << 8, 1]);
    for (wrong, why) in [
        (Schedule { weight: 0, ..all }, "1 to 15"),
        (Schedule { rate: None, ..all }, "needs a rate"),
        (Schedule { rate: Some(Rate { bytes_per_second: 33_000_000_000, burst: 0 }), ..all }, "32000000000"),
        (Schedule { rate: Some(Rate { bytes_per_second: 1, burst: 1 << 20 }), ..all }, "at most 261120"),
        (Schedule { in_flight: Some(u64::MAX), ..all }, "at most 261120"),
    ] {
        let error = slot.set_schedule(&wrong).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    assert_eq!(registers(), [1, 1 << 8, 1], "nothing is set by one that is refused");
    slot.set_schedule(&all).unwrap();
    drop(slot);
    assert_eq!(registers(), [1, 0, 0]);
}

#[test]
fn a_limit_is_kept_and_counters_are_of_one_time() {
    let Some((card, _sim, image)) = card("pass") else { return };
    let slot = card.slot(0).unwrap();
    slot.load(&image).unwrap();
    let data = pattern(256 << 10);
    // A twentieth of a beat a cycle, of reads and writes together.
    let rate = Some(Rate { bytes_per_second: 800_000_000, burst: 0 });
    slot.set_schedule(&Schedule { rate, limit: true, ..Schedule::default() }).unwrap();
    let before = card.counters().unwrap();
    let report = pass(&slot, &data, 64 << 10, OutLength::Same);
    let after = card.counters().unwrap();
    let beats = (data.len() / 64) as u32;
    let counted = after.1[0].since(&before.1[0]);
    assert_eq!((counted.host_rd, counted.host_wr, counted.card_rd, counted.card_wr), (beats, beats, 0, 0));
    assert!(after.0 - before.0 >= report.cycles && counted.rd_wait > 0);
    let per_cycle = f64::from(2 * beats) / report.cycles as f64;
    assert!((0.045..=0.053).contains(&per_cycle), "{per_cycle} beats a cycle for 13/256");
    assert_eq!(after.1[1], before.1[1]);
}
