// SPDX-License-Identifier: Apache-2.0
//! Files mapped into the address space of a slot, on a fake card. The app adds 1 to every byte of a range.

mod common;

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use common::*;
use proptest::prelude::*;
use viaduct::*;

const PAGE: u64 = 4096;

fn quick() -> Timeouts {
    let short = Duration::from_millis(300);
    Timeouts { stall: short, busy: short, control: short }
}

fn open(fake: &Arc<FakeCard>) -> Slot {
    let card = Card::open_with(fake.clone(), quick()).unwrap();
    let slot = card.slot(0).unwrap();
    slot.load(&IMAGE).unwrap();
    slot
}

fn open_two(fake: &Arc<FakeCard>) -> (Slot, Slot) {
    let first = open(fake);
    let second = first.card().slot(1).unwrap();
    second.load(&IMAGE).unwrap();
    (first, second)
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 13 + (i >> 12) * 5) as u8).collect()
}

fn plus_one(data: &[u8]) -> Vec<u8> {
    data.iter().map(|byte| byte.wrapping_add(1)).collect()
}

fn add_one(slot: &Slot, va: u64, len: u64) -> Result<MemoryReport> {
    let base = Register { offset: REG_BASE, width: 64 };
    let bytes = Register { offset: REG_BYTES, width: 64 };
    let range = MemoryRange { va, len, base, bytes: Some(bytes) };
    MemoryJob::new(slot, REG_START).range(range).done(REG_DONE).run()
}

fn file(dir: &tempfile::TempDir, content: &[u8]) -> PathBuf {
    let path = dir.path().join("data");
    fs::write(&path, content).unwrap();
    path
}

fn rw() -> MapOptions {
    MapOptions::new(Prot::READ_WRITE)
}

#[test]
fn one_thread_waits_for_several_slots_and_serves_their_faults() {
    let fake = FakeCard::new();
    let (first, second) = open_two(&fake);
    let map = |slot: &Slot| slot.map(Source::anonymous(8 * PAGE).unwrap(), 8 * PAGE, rw()).unwrap();
    let (one, two) = (map(&first), map(&second));
    let both = [(&first, Awaited::Irq(u64::MAX)), (&second, Awaited::Irq(u64::MAX))];
    let short = Duration::from_millis(50);
    fake.miss(0, &[(one.va(), false)]);
    fake.miss(1, &[(two.va() + PAGE, true)]);
    assert_eq!(wait_for_one(&both, short).unwrap(), None);
    assert!(fake.page(0, one.va()).is_some() && fake.page(1, two.va() + PAGE).is_some());
    // Commands of the second one come first.
    let tags = second.submit(&[desc::Command::nop()]).unwrap();
    let mixed = [(&first, Awaited::Irq(u64::MAX)), (&second, Awaited::Commands(&tags))];
    assert_eq!(wait_for_one(&mixed, short).unwrap(), Some(1));
    assert_eq!(second.wait(&tags).unwrap().len(), 1);
    assert_eq!(wait_for_one(&[], short).unwrap(), None);
    // A slot that fails says so, and the other can be waited for all the same.
    fake.violate(1, 0x12);
    let failed = wait_for_one(&both, short);
    assert!(matches!(failed, Err(Error::Isolated { slot: 1, .. })), "{failed:?}");
    fake.miss(0, &[(one.va() + 2 * PAGE, false)]);
    assert_eq!(wait_for_one(&both[..1], short).unwrap(), None);
    assert!(fake.page(0, one.va() + 2 * PAGE).is_some());
    let elsewhere = open(&FakeCard::new());
    assert!(wait_for_one(&[both[0], (&elsewhere, Awaited::Irq(0))], short).is_err());
}

#[test]
fn what_the_app_changes_is_in_the_file_after_sync_and_after_unmap() {
    let dir = tempfile::tempdir().unwrap();
    let noting = rw().noting_writes();
    for options in
        [rw(), rw().huge(true), rw().on_host(), rw().on_host().huge(true), noting, noting.huge(true)]
    {
        for len in [1, 4096, 10_000, (2 << 20) + 1, 5 << 20] {
            let fake = FakeCard::new();
            let slot = open(&fake);
            let path = file(&dir, &pattern(len));
            let mapping = slot.map(Source::file_mut(&path).unwrap(), len as u64, options).unwrap();
            let report = add_one(&slot, mapping.va(), mapping.len()).unwrap();
            assert_eq!(report.denied, 0);
            mapping.sync(true).unwrap();
            let once = plus_one(&pattern(len));
            assert!(fs::read(&path).unwrap() == once, "{options:?}, {len} bytes, after sync");
            add_one(&slot, mapping.va(), mapping.len()).unwrap();
            mapping.unmap().unwrap();
            assert!(fs::read(&path).unwrap() == plus_one(&once), "{options:?}, {len} bytes, after unmap");
            assert_eq!(fake.translations(0), 0);
            drop(slot);
            assert_eq!(fake.mapped_ranges(), 0);
        }
    }
}

#[test]
fn a_file_larger_than_the_frames_is_paged_and_only_changed_pages_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(20 * PAGE);
    let len = 100 * PAGE;
    let path = file(&dir, &pattern(len as usize));
    let mapping = slot.map(Source::file_mut(&path).unwrap(), len, rw()).unwrap();
    add_one(&slot, mapping.va(), len).unwrap();
    let stats = slot.pager_stats();
    assert!(stats.evicted >= 80, "{stats:?}");
    mapping.unmap().unwrap();
    assert!(fs::read(&path).unwrap() == plus_one(&pattern(len as usize)));

    // Only one page is changed: one page is written.
    let before = slot.pager_stats().pages_out;
    let mapping = slot.map(Source::file_mut(&path).unwrap(), len, rw()).unwrap();
    add_one(&slot, mapping.va() + 7 * PAGE, PAGE).unwrap();
    mapping.sync(false).unwrap();
    mapping.sync(false).unwrap();
    assert_eq!(slot.pager_stats().pages_out - before, 1);
}

/// Accesses miss, and are served; writes have an effect.
fn touch(slot: &Slot, fake: &FakeCard, accesses: &[(u64, bool)]) {
    fake.miss(0, accesses);
    serve(slot);
}

#[test]
fn a_sync_asks_the_card_only_about_pages_that_a_write_has_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeCard::new();
    let slot = open(&fake);
    let path = file(&dir, &pattern(64 * PAGE as usize));
    let mapping = slot.map(Source::file_mut(&path).unwrap(), 64 * PAGE, rw().noting_writes()).unwrap();
    for n in 0..64 {
        touch(&slot, &fake, &[(mapping.va() + n * PAGE, false)]);
    }
    assert_eq!(slot.pager_stats().pages_in, 64);
    let asked = || fake.count(0x11) + fake.count(0x13);
    let before = asked();
    mapping.sync(false).unwrap();
    assert_eq!(asked(), before, "no page was written");
    for round in 1..4 {
        let before = (asked(), slot.pager_stats());
        add_one(&slot, mapping.va() + 5 * PAGE, 2 * PAGE).unwrap();
        mapping.sync(false).unwrap();
        let after = slot.pager_stats();
        assert_eq!((asked() - before.0, after.pages_out - before.1.pages_out), (2, 2), "round {round}");
        assert_eq!(after.faults - before.1.faults, 2, "round {round}: reads of what was synced hit");
    }
    let mut expected = pattern(64 * PAGE as usize);
    expected[5 * PAGE as usize..7 * PAGE as usize].iter_mut().for_each(|byte| *byte = byte.wrapping_add(3));
    assert!(fs::read(&path).unwrap() == expected);
    mapping.unmap().unwrap();
}

#[test]
fn changes_survive_translations_displaced_from_a_tiny_tlb() {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeCard::with_tlb(3);
    let slot = open(&fake);
    let len = 50 * PAGE - 5;
    let path = file(&dir, &pattern(len as usize));
    let mapping = slot.map(Source::file_mut(&path).unwrap(), len, rw()).unwrap();
    add_one(&slot, mapping.va(), len).unwrap();
    add_one(&slot, mapping.va(), len).unwrap();
    assert!(slot.pager_stats().remapped > 0);
    mapping.unmap().unwrap();
    assert!(fs::read(&path).unwrap() == plus_one(&plus_one(&pattern(len as usize))));
}

#[test]
fn accesses_outside_and_without_permission_are_denied_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeCard::new();
    let slot = open(&fake);
    let path = file(&dir, &pattern(8192));
    let mapping = slot.map(Source::file(&path).unwrap(), 8192, MapOptions::new(Prot::READ)).unwrap();
    let report = add_one(&slot, mapping.va(), 3 * PAGE).unwrap();
    assert_eq!(report.denied, 3);
    assert_eq!(slot.read_register(REG_ERRORS).unwrap(), 3);
    let denied = slot.take_denied();
    assert!(denied[0].is_write && denied[0].why.contains("must not be written"), "{denied:?}");
    assert!(!denied[2].is_write && denied[2].why.contains("outside every mapping"), "{denied:?}");
    assert!(slot.take_denied().is_empty());
    assert_eq!(fs::read(&path).unwrap(), pattern(8192));

    let write = slot.map(Source::file(&path).unwrap(), 8192, rw());
    assert!(matches!(write, Err(Error::Access { .. })));
    assert!(slot.map(Source::file(&path).unwrap(), 0, MapOptions::new(Prot::READ)).is_err());
    assert!(Source::file(dir.path()).is_err());
}

#[test]
fn a_file_truncated_while_mapped_is_never_grown_and_the_loss_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeCard::new();
    let slot = open(&fake);
    // More than is written back together.
    let path = file(&dir, &pattern(600_000));
    let mapping = slot.map(Source::file_mut(&path).unwrap(), 600_000, rw()).unwrap();
    add_one(&slot, mapping.va(), 600_000).unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(10_000).unwrap();
    let error = mapping.sync(false).unwrap_err();
    assert!(matches!(error, Error::Lost { start: 10_000, end: 600_000, .. }), "{error:?}");
    assert!(error.to_string().contains("truncated to 10000 bytes"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), plus_one(&pattern(10_000)));
    mapping.unmap().unwrap();

    // Pages that are read after the truncation: beyond the end the app gets an error.
    let mapping = slot.map(Source::file_mut(&path).unwrap(), 10_000, rw()).unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
    let report = add_one(&slot, mapping.va(), 10_000).unwrap();
    assert!(report.denied > 0);
    let error = mapping.unmap().unwrap_err();
    assert!(matches!(error, Error::FileShrank { .. } | Error::Lost { .. }), "{error:?}");
    assert_eq!(fs::read(&path).unwrap().len(), 100);

    let path = file(&dir, &pattern(5000));
    let mapping = slot.map(Source::file_mut(&path).unwrap(), 5000, rw()).unwrap();
    add_one(&slot, mapping.va(), 5000).unwrap();
    fs::remove_file(&path).unwrap();
    let error = mapping.unmap().unwrap_err();
    assert!(error.to_string().contains("removed"), "{error}");
}

#[test]
fn a_page_that_cannot_be_written_back_is_kept_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(4 * PAGE);
    let path = file(&dir, &pattern(8 * PAGE as usize));
    // Declared writable, but open for reading only: every write fails.
    let source = Source::from_file(fs::File::open(&path).unwrap(), &path, 0, true).unwrap();
    let mapping = slot.map(source, 8 * PAGE, rw()).unwrap();
    assert_eq!(add_one(&slot, mapping.va(), 4 * PAGE).unwrap().denied, 0);
    let error = mapping.sync(false).unwrap_err();
    assert!(matches!(error, Error::Lost { start: 0, end: 16384, .. }), "{error:?}");
    assert!(mapping.sync(false).is_err(), "the pages are still changed: reported again");
    // The kept pages fill the budget: there is no frame for others, and the app gets an error.
    let report = add_one(&slot, mapping.va() + 4 * PAGE, PAGE).unwrap();
    assert_eq!(report.denied, 1);
    assert!(slot.take_denied()[0].why.contains("no card memory is free"));
    // The app still sees its changes.
    assert_eq!(add_one(&slot, mapping.va(), 4 * PAGE).unwrap().denied, 0);
    assert!(matches!(mapping.unmap(), Err(Error::Lost { .. })));
    assert_eq!(fake.translations(0), 0);
}

#[test]
fn buffers_and_new_files_can_be_mapped() {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(3 * PAGE);
    let shared = SharedBytes::new(pattern(50_000));
    let mapping = slot.map(Source::bytes(shared.clone()), 50_000, rw()).unwrap();
    add_one(&slot, mapping.va(), 50_000).unwrap();
    mapping.unmap().unwrap();
    assert!(shared.to_vec() == plus_one(&pattern(50_000)));

    let path = dir.path().join("new");
    let mapping = slot.map(Source::create(&path, 9000).unwrap(), 9000, rw()).unwrap();
    add_one(&slot, mapping.va(), 9000).unwrap();
    mapping.unmap().unwrap();
    assert_eq!(fs::read(&path).unwrap(), vec![1; 9000]);

    let mapping = slot.map(Source::anonymous(70_000).unwrap(), 70_000, rw()).unwrap();
    assert_eq!(add_one(&slot, mapping.va(), 70_000).unwrap().denied, 0);
}

#[test]
fn a_copy_that_fails_cuts_the_slot_off_before_it_can_read_strange_bytes() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let mapping = slot.map(Source::anonymous(4096).unwrap(), 4096, rw()).unwrap();
    fake.sabotage(Sabotage::HostErr);
    let error = add_one(&slot, mapping.va(), 4096).unwrap_err();
    assert!(error.to_string().contains("host memory returned an error"), "{error}");
    fake.sabotage(Sabotage::None);
    mapping.unmap().unwrap();
    assert_eq!(fake.translations(0), 0);
}

#[test]
fn an_app_that_never_ends_is_stopped() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let mapping = slot.map(Source::anonymous(4096).unwrap(), 4096, rw()).unwrap();
    // Register 0 starts nothing.
    let job =
        MemoryJob::new(&slot, 0).range(MemoryRange::of(&mapping, Register { offset: 8, width: 64 }, None));
    assert!(matches!(job.done(REG_DONE).run(), Err(Error::Stalled { .. })));
    let by_irq = MemoryJob::new(&slot, 0).run();
    assert!(matches!(by_irq, Err(Error::Stalled { .. })));
    let narrow = MemoryRange::of(&mapping, Register { offset: 8, width: 32 }, None);
    let error = MemoryJob::new(&slot, 0).range(narrow).run().unwrap_err();
    assert!(error.to_string().contains("does not fit into the 32-bit register"), "{error}");
}

/// Each read takes longer than a slot may be without activity.
struct SlowDisk;

impl Device for SlowDisk {
    fn read(&self, _: u64, _: u64, done: Box<dyn FnOnce() + Send>) {
        std::thread::spawn(|| {
            std::thread::sleep(quick().stall * 3 / 2);
            done();
        });
    }
}

#[test]
fn an_app_whose_pages_are_being_loaded_does_not_hang() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let source = Source::anonymous(2 * PAGE).unwrap().on(Arc::new(SlowDisk));
    let mapping = slot.map(source, 2 * PAGE, rw()).unwrap();
    // One page after the other.
    slot.advise(mapping.va()..mapping.va() + 2 * PAGE, Advice::Random).unwrap();
    add_one(&slot, mapping.va(), mapping.len()).unwrap();
    mapping.unmap().unwrap();
}

#[test]
fn a_limit_ends_a_run_that_faults_for_ever() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(2 * PAGE);
    let mapping = slot.map(Source::anonymous(8 * PAGE).unwrap(), 8 * PAGE, rw()).unwrap();
    let wide = |offset| Register { offset, width: 64 };
    slot.write_register(REG_FOREVER, 1).unwrap();
    let range = MemoryRange::of(&mapping, wide(REG_BASE), Some(wide(REG_BYTES)));
    let job = MemoryJob::new(&slot, REG_START).range(range).done(REG_DONE).limit(Duration::from_millis(100));
    let begin = std::time::Instant::now();
    assert!(matches!(job.run(), Err(Error::Unfinished { .. })));
    assert!(begin.elapsed() < Duration::from_secs(3));
    assert!(slot.pager_stats().evicted > 0);
    mapping.unmap().unwrap();
}

#[test]
fn a_mapping_outlives_its_slot_handle() {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeCard::new();
    let slot = open(&fake);
    let card = Arc::clone(slot.card());
    let path = file(&dir, &pattern(6000));
    let mapping = slot.map(Source::file_mut(&path).unwrap(), 6000, rw()).unwrap();
    add_one(&slot, mapping.va(), 6000).unwrap();
    drop(slot);
    assert!(matches!(card.slot(0), Err(Error::SlotInUse { .. })));
    drop(mapping);
    assert_eq!(fs::read(&path).unwrap(), plus_one(&pattern(6000)));
    card.slot(0).unwrap();
}

#[test]
fn closing_a_slot_stops_its_app_and_says_what_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    for cut in [false, true] {
        let fake = FakeCard::new();
        let slot = open(&fake);
        let card = Arc::clone(slot.card());
        slot.set_frame_budget(2 * PAGE); // so that it waits for pages between its rounds
        let path = file(&dir, &vec![0; 4 * PAGE as usize]);
        let mapping = slot.map(Source::file_mut(&path).unwrap(), 4 * PAGE, rw()).unwrap();
        slot.write_register(REG_FOREVER, 1).unwrap();
        let wide = |offset| Register { offset, width: 64 };
        let range = MemoryRange::of(&mapping, wide(REG_BASE), Some(wide(REG_BYTES)));
        let job = MemoryJob::new(&slot, REG_START).range(range).done(REG_DONE);
        assert!(matches!(job.limit(Duration::from_millis(100)).run(), Err(Error::Unfinished { .. })));
        // Those that the app has changed may all have been written back.
        app_writes(&slot, &fake, mapping.va() + 3 * PAGE, b"more");
        if cut {
            fs::File::options().write(true).open(&path).unwrap().set_len(PAGE).unwrap();
        }
        let closed = slot.close();
        assert_eq!(closed.is_err(), cut, "{closed:?}");
        assert!(!cut || closed.unwrap_err().to_string().contains("truncated"));
        assert_eq!(fake.translations(0), 0);
        assert!(fs::read(&path).unwrap().iter().all(|&byte| byte != 0), "what the app wrote is in the file");
        assert!(matches!(card.slot(0), Err(Error::SlotInUse { .. })), "the mapping holds it");
        drop(mapping);
        card.slot(0).unwrap();
        drop(card);
        assert_eq!(fake.mapped_ranges(), 0);
    }
}

/// Serves what is pending, for lack of another reason to wait.
fn serve(slot: &Slot) {
    assert_eq!(slot.wait_irq(u64::MAX, Duration::from_millis(30)).unwrap(), None);
}

#[test]
fn the_shortest_wait_serves_what_is_pending() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let mapping = slot.map(Source::anonymous(PAGE).unwrap(), PAGE, rw()).unwrap();
    fake.miss(0, &[(mapping.va(), false)]);
    assert_eq!(slot.wait_irq(u64::MAX, Duration::ZERO).unwrap(), None);
    assert!(fake.page(0, mapping.va()).is_some());
}

#[test]
fn faults_that_come_together_are_served_with_one_doorbell() {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeCard::new();
    let slot = open(&fake);
    let path = file(&dir, &pattern(200 * PAGE as usize));
    let mapping = slot.map(Source::file(&path).unwrap(), 200 * PAGE, MapOptions::new(Prot::READ)).unwrap();
    let at = |n: u64| mapping.va() + n * PAGE;
    // Odd ones, far apart from one another, each told twice; and one that must not be.
    let pages: Vec<u64> = (0..40).map(|i| 1 + 4 * ((i * 7) % 40)).collect();
    let mut misses: Vec<_> = pages.iter().map(|&n| (at(n) + 64, false)).collect();
    misses.extend(pages.iter().map(|&n| (at(n) + 128, false)));
    misses.push((at(3), true));
    let before = fake.bells();
    fake.miss(0, &misses);
    serve(&slot);
    assert_eq!(fake.bells() - before, 1);
    assert_eq!((fake.count(0x02), fake.count(0x10), fake.count(0x12)), (40, 40, 1));
    for &n in &pages {
        let bytes = fs::read(&path).unwrap()[(n * PAGE) as usize..][..PAGE as usize].to_vec();
        assert!(fake.page(0, at(n)).unwrap() == bytes, "page {n}");
    }
    assert!(fake.page(0, at(3)).is_none());
    let stats = slot.pager_stats();
    // Every fault counts, those that are denied too.
    assert_eq!((stats.faults, stats.pages_in, stats.denied), (81, 40, 1));
}

#[test]
fn each_fault_of_a_batch_is_answered_though_what_was_to_be_loaded_with_it_is_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeCard::new();
    let slot = open(&fake);
    let path = file(&dir, &pattern(40 * PAGE as usize));
    let mapping = slot.map(Source::file(&path).unwrap(), 40 * PAGE, MapOptions::new(Prot::READ)).unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(5 * PAGE).unwrap();
    // In order, so that pages are loaded ahead.
    let at = |n: u64| mapping.va() + n * PAGE;
    fake.miss(0, &(0..20).map(|n| (at(n), false)).collect::<Vec<_>>());
    serve(&slot);
    assert_eq!((0..20).filter(|&n| fake.page(0, at(n)).is_some()).count(), 5);
    let denied: Vec<u64> = slot.take_denied().iter().map(|denied| denied.va).collect();
    assert_eq!((fake.count(0x12), denied.len()), (15, 15));
    assert!((5..20).all(|n| denied.contains(&at(n))));
    assert!(mapping.unmap().is_err());

    // Likewise if there are frames for some of them only, and none of them ever becomes free.
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(4 * PAGE);
    let path = file(&dir, &pattern(20 * PAGE as usize));
    let source = Source::from_file(fs::File::open(&path).unwrap(), &path, 0, true).unwrap();
    let mapping = slot.map(source, 20 * PAGE, rw()).unwrap();
    assert_eq!(add_one(&slot, mapping.va(), 4 * PAGE).unwrap().denied, 0);
    let base = mapping.va();
    fake.miss(0, &(4..16).map(|n| (base + n * PAGE, false)).collect::<Vec<_>>());
    serve(&slot);
    assert_eq!(slot.take_denied().len(), 12);
    assert!(mapping.unmap().is_err());
}

#[test]
fn each_fault_on_a_huge_page_that_cannot_be_loaded_is_denied() {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeCard::new();
    let slot = open(&fake);
    let path = file(&dir, &pattern(4 << 20));
    let options = MapOptions::new(Prot::READ).huge(true);
    let mapping = slot.map(Source::file(&path).unwrap(), 4 << 20, options).unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
    // The card posts a miss for each part of 4 KiB, and a denial ends those of one part.
    let parts = [mapping.va(), mapping.va() + PAGE, mapping.va() + 5 * PAGE];
    fake.miss(0, &parts.map(|va| (va, false)));
    serve(&slot);
    let denied: Vec<u64> = slot.take_denied().iter().map(|denied| denied.va).collect();
    assert_eq!((fake.count(0x12), denied.len()), (3, 3));
    assert!(parts.iter().all(|va| denied.contains(va)));
    assert!(mapping.unmap().is_err());
}

#[test]
fn a_fault_on_a_mapping_that_is_removed_is_not_left_to_the_next_one() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let first = slot.map(Source::anonymous(PAGE).unwrap(), PAGE, rw()).unwrap();
    let va = first.va();
    fake.miss(0, &[(va, false)]);
    serve(&slot);
    // Nobody has served it when the mapping goes.
    fake.miss(0, &[(va, true)]);
    first.unmap().unwrap();
    let second = slot.map(Source::anonymous(PAGE).unwrap(), PAGE, MapOptions::new(Prot::READ)).unwrap();
    assert_eq!(second.va(), va);
    fake.miss(0, &[(va, false)]);
    serve(&slot);
    assert!(fake.page(0, va).is_some());
    assert!(slot.take_denied().iter().all(|denied| denied.why == "its mapping was removed"));
}

#[test]
fn more_faults_than_frames_are_served_one_batch_after_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(10 * PAGE);
    let path = file(&dir, &pattern(100 * PAGE as usize));
    let mapping = slot.map(Source::file_mut(&path).unwrap(), 100 * PAGE, rw()).unwrap();
    let at = |n: u64| mapping.va() + n * PAGE;
    let bytes = |n: u64| pattern(100 * PAGE as usize)[(n * PAGE) as usize..][..PAGE as usize].to_vec();
    for round in 0..4 {
        let pages: Vec<u64> = (0..30).map(|i| (i * 37 + round * 11) % 100).collect();
        fake.miss(0, &pages.iter().map(|&n| (at(n), n % 2 == 0)).collect::<Vec<_>>());
        // Each wait serves some of them, on a busy machine not all.
        while slot.pager_stats().faults < 30 * (round + 1) {
            serve(&slot);
        }
        assert!(fake.translations(0) <= 10);
        let there: Vec<u64> = (0..100).filter(|&n| fake.page(0, at(n)).is_some()).collect();
        assert!(there.contains(&pages[29]), "the last one is there");
        for n in there {
            assert!(fake.page(0, at(n)).unwrap() == bytes(n), "page {n}");
        }
    }
    let stats = slot.pager_stats();
    assert_eq!((stats.denied, stats.faults), (0, 120), "{stats:?}");
    assert!(stats.pages_in - stats.evicted <= 10, "{stats:?}");
    mapping.unmap().unwrap();
    assert!(fs::read(&path).unwrap() == pattern(100 * PAGE as usize));
}

#[test]
fn a_copy_that_fails_costs_no_changes_of_other_pages() {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeCard::with_tlb(2);
    let slot = open(&fake);
    let path = file(&dir, &pattern(20 * PAGE as usize));
    let mapping = slot.map(Source::file_mut(&path).unwrap(), 20 * PAGE, rw()).unwrap();
    let at = |n: u64| mapping.va() + n * PAGE;
    add_one(&slot, at(0), 2 * PAGE).unwrap();
    // Of two pages that are loaded together, displacing the changed ones, the second cannot be copied.
    fake.sabotage(Sabotage::FailCopy(1));
    fake.miss(0, &[(at(5), false), (at(9), false)]);
    let error = slot.wait_irq(u64::MAX, Duration::from_millis(30)).unwrap_err();
    assert!(error.to_string().contains("host memory returned an error"), "{error}");
    assert!(fake.page(0, at(5)).is_some(), "the first one is there");
    assert!(fake.page(0, at(9)).is_none(), "the second one is not: it has strange bytes");
    slot.reset().unwrap();
    mapping.sync(false).unwrap();
    let mut expected = pattern(20 * PAGE as usize);
    expected[..2 * PAGE as usize].iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
    assert!(fs::read(&path).unwrap() == expected);
    // The one that failed is loaded again, the other one is not.
    let before = slot.pager_stats().pages_in;
    assert_eq!(add_one(&slot, at(5), PAGE).unwrap().denied, 0);
    assert_eq!(slot.pager_stats().pages_in, before);
    assert_eq!(add_one(&slot, at(9), PAGE).unwrap().denied, 0);
    assert_eq!(slot.pager_stats().pages_in, before + 1);
    mapping.unmap().unwrap();
}

#[test]
fn frames_taken_before_an_eviction_fails_are_given_back() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(10 * PAGE);
    let mapping = slot.map(Source::anonymous(40 * PAGE).unwrap(), 40 * PAGE, rw()).unwrap();
    let at = |n: u64| mapping.va() + n * PAGE;
    for n in [0, 2] {
        fake.miss(0, &[(at(n), false)]);
        serve(&slot);
    }
    assert_eq!(slot.pager_stats().pages_in, 6);
    // Eight more are wanted, four frames are free, and the card does not answer when others are to be evicted.
    fake.sabotage(Sabotage::Silent);
    assert!(slot.advise(at(6)..at(14), Advice::WillNeed).is_err());
    fake.sabotage(Sabotage::None);
    slot.reset().unwrap();
    let before = slot.pager_stats().evicted;
    fake.miss(0, &[10, 20, 30, 39].map(|n| (at(n), false)));
    serve(&slot);
    let stats = slot.pager_stats();
    assert_eq!(stats.pages_in, 10, "{stats:?}");
    assert!(stats.evicted - before <= 2, "one ahead of need at most for each of the last pages: {stats:?}");
}

#[test]
fn faults_are_served_while_pages_of_others_are_on_their_way() {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeCard::new();
    let slot = open(&fake);
    let path = file(&dir, &pattern(100 * PAGE as usize));
    let mapping = slot.map(Source::file_mut(&path).unwrap(), 100 * PAGE, rw()).unwrap();
    let at = |n: u64| mapping.va() + n * PAGE;
    let before = fake.bells();
    fake.hold(true);
    for n in [10, 20, 30] {
        fake.miss(0, &[(at(n), false)]);
        serve(&slot);
    }
    // Another fault on a page that is on its way does not load it again.
    fake.miss(0, &[(at(20) + 64, true), (at(40), false)]);
    serve(&slot);
    assert_eq!((fake.bells() - before, fake.count(0x10)), (4, 0), "four batches, none of them carried out");
    fake.hold(false);
    serve(&slot);
    let stats = slot.pager_stats();
    assert_eq!((stats.faults, stats.pages_in, fake.count(0x10)), (5, 4, 4), "{stats:?}");
    for n in [10, 20, 30, 40] {
        assert!(
            fake.page(0, at(n)).unwrap()
                == pattern(100 * PAGE as usize)[(n * PAGE) as usize..][..PAGE as usize]
        );
    }
    // What is on its way is there before a mapping is removed, and before the app is reset.
    fake.hold(true);
    fake.miss(0, &[(at(50), false), (at(60), false)]);
    serve(&slot);
    fake.hold(false);
    slot.reset().unwrap();
    assert_eq!(add_one(&slot, at(50), PAGE).unwrap().denied, 0);
    assert_eq!(slot.pager_stats().pages_in, 6);
    fake.hold(true);
    fake.miss(0, &[(at(70), false)]);
    serve(&slot);
    fake.hold(false);
    mapping.unmap().unwrap();
    assert_eq!(fake.translations(0), 0);
}

/// A command may complete long after it was carried out, and its page may have left the card's TLBs by then.
#[test]
fn a_miss_after_a_page_was_mapped_is_served_though_its_completion_comes_later() {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeCard::new();
    let slot = open(&fake);
    let path = file(&dir, &pattern(100 * PAGE as usize));
    let mapping = slot.map(Source::file(&path).unwrap(), 100 * PAGE, MapOptions::new(Prot::READ)).unwrap();
    let at = |n: u64| mapping.va() + n * PAGE;
    fake.hold_completions(true);
    fake.miss(0, &[(at(10), false)]);
    serve(&slot);
    assert_eq!(fake.count(0x10), 1);
    fake.miss(0, &[(at(10), false)]);
    serve(&slot);
    fake.hold_completions(false);
    serve(&slot);
    assert_eq!(fake.count(0x10), 2, "it is mapped again");
    // One from before is out of date.
    fake.hold(true);
    fake.miss(0, &[(at(20), false)]);
    serve(&slot);
    fake.miss(0, &[(at(20) + 64, false)]);
    serve(&slot);
    fake.hold(false);
    serve(&slot);
    let stats = slot.pager_stats();
    assert_eq!((stats.faults, stats.remapped, fake.count(0x10)), (4, 1, 3), "{stats:?}");
}

#[test]
fn a_damaged_entry_is_counted_once_however_often_it_is_told() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let mapping = slot.map(Source::anonymous(4 * PAGE).unwrap(), 4 * PAGE, rw()).unwrap();
    fake.miss(0, &[(mapping.va(), false)]);
    serve(&slot);
    let before = fake.count(0x10);
    fake.hold(true);
    fake.damage(0, mapping.va(), false);
    serve(&slot);
    fake.damage(0, mapping.va() + 64, true);
    serve(&slot);
    fake.hold(false);
    serve(&slot);
    let stats = slot.pager_stats();
    assert_eq!((stats.damaged, stats.faults, fake.count(0x10) - before), (1, 3, 1), "{stats:?}");
    // A mapping that is not there has no entry.
    fake.damage(0, mapping.va() + 100 * PAGE, false);
    serve(&slot);
    let stats = slot.pager_stats();
    assert_eq!((stats.damaged, stats.denied), (1, 1), "{stats:?}");
}

/// The card gives the right to write by an entry whose dirty bit it has written: without that the app would fault for ever.
#[test]
fn a_page_table_that_cannot_be_written_ends_in_an_error() {
    let fake = FakeCard::with_tables();
    let slot = open(&fake);
    let options = rw().table(true);
    let shared = SharedBytes::new(pattern(8 * PAGE as usize));
    let mapping = slot.map(Source::bytes(shared.clone()), 8 * PAGE, options).unwrap();
    assert_eq!(add_one(&slot, mapping.va(), PAGE).unwrap().denied, 0);
    fake.sabotage(Sabotage::TableErr);
    let error = add_one(&slot, mapping.va() + 4 * PAGE, PAGE).unwrap_err().to_string();
    assert!(
        error.contains("writing the page table in card memory failed: card memory returned an error"),
        "{error}"
    );
    // From then on nothing is mapped by it; what the app has written is not lost.
    slot.reset().unwrap();
    let report = add_one(&slot, mapping.va() + 6 * PAGE, PAGE).unwrap();
    assert_eq!(report.denied, 1, "{report:?}");
    let denied = slot.take_denied();
    assert!(
        denied.iter().any(|d| d.why.contains("page table in card memory could not be written")),
        "{denied:?}"
    );
    // Other mappings do without.
    let other = slot.map(Source::anonymous(8 * PAGE).unwrap(), 8 * PAGE, options).unwrap();
    slot.reset().unwrap();
    assert_eq!(add_one(&slot, other.va(), 8 * PAGE).unwrap().denied, 0);
    mapping.unmap().unwrap();
    let mut expected = pattern(8 * PAGE as usize);
    expected[..PAGE as usize].iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
    assert!(shared.to_vec() == expected);
}

#[test]
fn frames_are_made_free_before_they_are_needed() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(128 * PAGE);
    let mapping = slot.map(Source::anonymous(400 * PAGE).unwrap(), 400 * PAGE, rw()).unwrap();
    let at = |n: u64| mapping.va() + n * PAGE;
    // Pages that are not neighbours, so that none is read ahead.
    for n in 0..160 {
        add_one(&slot, at(n * 37 % 400), PAGE).unwrap();
        let stats = slot.pager_stats();
        let resident = stats.pages_in - stats.evicted;
        // Up to eight if they have to be written back, as here, and all others were looked at before.
        let spare = if stats.evicted > 0 { 4 } else { 0 };
        assert!(resident <= 128 - spare, "once they are short some are kept free: {stats:?}");
    }
    let stats = slot.pager_stats();
    assert_eq!((stats.denied, stats.faults), (0, 160));
    assert!(stats.evicted >= 40 && stats.evicted <= 80, "no more than that: {stats:?}");
    mapping.unmap().unwrap();
}

#[test]
fn a_fault_takes_few_frames_of_few() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(10 * PAGE);
    let mapping = slot.map(Source::anonymous(40 * PAGE).unwrap(), 40 * PAGE, rw()).unwrap();
    let at = |n: u64| mapping.va() + n * PAGE;
    for n in 0..10 {
        add_one(&slot, at(1 + n * 3), PAGE).unwrap();
    }
    assert_eq!(slot.pager_stats().evicted, 0);
    // The others are in use, as far as anybody knows.
    add_one(&slot, at(35), PAGE).unwrap();
    let evicted = slot.pager_stats().evicted;
    assert!((1..=2).contains(&evicted), "one, and one ahead of need: {evicted}");
    mapping.unmap().unwrap();
}

#[test]
fn pages_that_were_only_read_leave_before_those_that_were_written() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(128 * PAGE);
    let bytes = SharedBytes::new(pattern(256 * PAGE as usize));
    let mapping = slot.map(Source::bytes(bytes.clone()), 256 * PAGE, rw()).unwrap();
    let at = |n: u64| mapping.va() + n * PAGE;
    // The frames are full of input. The app writes as many pages as it has read, each some time after.
    slot.advise(at(0)..at(128), Advice::WillNeed).unwrap();
    for n in 0..128 {
        if fake.page(0, at(n)).is_none() {
            touch(&slot, &fake, &[(at(n), false)]);
        }
        fake.read(0, at(n));
        if n >= 64 {
            add_one(&slot, at(64 + n), PAGE).unwrap();
        }
    }
    let stats = slot.pager_stats();
    assert!(stats.pages_in <= 128 + 128, "nothing was loaded twice: {stats:?}");
    assert!(stats.pages_out == 0, "{stats:?}");
    mapping.unmap().unwrap();
}

#[test]
fn changed_pages_are_written_back_while_faults_are_served() {
    for noting in [false, true] {
        let fake = FakeCard::new();
        let slot = open(&fake);
        slot.set_frame_budget(128 * PAGE);
        let bytes = SharedBytes::new(pattern(400 * PAGE as usize));
        let options = if noting { rw().noting_writes() } else { rw() };
        let mapping = slot.map(Source::bytes(bytes.clone()), 400 * PAGE, options).unwrap();
        let at = |n: u64| mapping.va() + n * PAGE;
        add_one(&slot, at(0), 110 * PAGE).unwrap();
        (110..140).for_each(|n| touch(&slot, &fake, &[(at(n * 2), false)]));
        // The card carries nothing out while a fault is served: none waits for a page that is being written back.
        let before = slot.pager_stats();
        for n in 140..190 {
            fake.hold(true);
            touch(&slot, &fake, &[(at(n * 2), false)]);
            fake.hold(false);
            serve(&slot);
            serve(&slot);
        }
        let after = slot.pager_stats();
        assert!(after.pages_out - before.pages_out >= 40, "{before:?}, {after:?}");
        assert_eq!((after.faults - before.faults, after.denied), (50, 0));
        // A page that is wanted again while it is on its way out.
        add_one(&slot, at(0), 110 * PAGE).unwrap();
        mapping.unmap().unwrap();
        let mut expected = pattern(400 * PAGE as usize);
        expected[..110 * PAGE as usize].iter_mut().for_each(|byte| *byte = byte.wrapping_add(2));
        assert!(bytes.to_vec() == expected);
    }
}

#[test]
fn a_denial_is_told_once_though_its_batch_fails_and_is_served_again() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let mapping = slot.map(Source::anonymous(4 * PAGE).unwrap(), 4 * PAGE, rw()).unwrap();
    fake.sabotage(Sabotage::FailCopy(0));
    fake.miss(0, &[(mapping.va(), false), (mapping.va() + 16 * PAGE, false)]);
    assert!(slot.wait_irq(u64::MAX, Duration::from_millis(30)).is_err());
    serve(&slot);
    assert!(fake.page(0, mapping.va()).is_some(), "the other one is answered now");
    assert_eq!(slot.take_denied().len(), 1);
    let stats = slot.pager_stats();
    assert_eq!((stats.faults, stats.denied), (2, 1), "{stats:?}");
}

#[test]
fn faults_without_frames_are_served_in_order_later_and_read_ahead_continues() {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(10 * PAGE);
    let path = file(&dir, &pattern(80 * PAGE as usize));
    let mapping = slot.map(Source::file(&path).unwrap(), 80 * PAGE, MapOptions::new(Prot::READ)).unwrap();
    let at = |n: u64| mapping.va() + n * PAGE;
    fake.miss(0, &(0..20).map(|n| (at(n), false)).collect::<Vec<_>>());
    serve(&slot);
    // Ten pages, and then those after them, with what is read ahead: none twice, none out of order.
    let there: Vec<u64> = (0..80).filter(|&n| fake.page(0, at(n)).is_some()).collect();
    let last = there[there.len() - 1];
    assert!(
        there.contains(&19) && last < 19 + 10,
        "no more than there are frames: {there:?} {:?}",
        slot.pager_stats()
    );
    assert_eq!((slot.pager_stats().pages_in, slot.pager_stats().faults), (last + 1, 20));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    /// Several mappings under a small budget and a small TLB behave as plain memory.
    #[test]
    fn mappings_behave_as_memory(
        lens in proptest::collection::vec(1u64..60_000, 1..4),
        tlb in 2usize..40,
        budget in 2u64..30,
        noting in any::<bool>(),
        steps in proptest::collection::vec((any::<prop::sample::Index>(), any::<u16>(), any::<u16>(), 0u8..8), 1..25),
    ) {
        let fake = FakeCard::with_tlb(tlb);
        let slot = open(&fake);
        slot.set_frame_budget(budget * PAGE);
        let mut model: Vec<Vec<u8>> = lens.iter().map(|len| pattern(*len as usize)).collect();
        let shared: Vec<_> = model.iter().map(|bytes| SharedBytes::new(bytes.clone())).collect();
        let options = if noting { rw().noting_writes() } else { rw() };
        let map = |i: usize| slot.map(Source::bytes(shared[i].clone()), lens[i], options).unwrap();
        let mut mappings: Vec<_> = (0..lens.len()).map(|i| Some(map(i))).collect();
        for (which, start, len, what) in steps {
            let i = which.index(lens.len());
            match what {
                0 => {
                    mappings[i].take().unwrap().unmap().unwrap();
                    prop_assert!(shared[i].to_vec() == model[i]);
                    mappings[i] = Some(map(i));
                }
                1 => {
                    mappings[i].as_ref().unwrap().sync(false).unwrap();
                    prop_assert!(shared[i].to_vec() == model[i]);
                }
                _ => {
                    let start = u64::from(start) % lens[i];
                    let len = (u64::from(len) % 9000).min(lens[i] - start);
                    if len == 0 {
                        continue;
                    }
                    let va = mappings[i].as_ref().unwrap().va() + start;
                    prop_assert_eq!(add_one(&slot, va, len).unwrap().denied, 0);
                    let range = start as usize..(start + len) as usize;
                    model[i][range].iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
                }
            }
        }
        drop(mappings);
        for (shared, model) in shared.iter().zip(&model) {
            prop_assert!(shared.to_vec() == *model);
        }
    }
}

#[test]
fn slots_share_the_channels_of_card_memory() {
    let fake = FakeCard::new();
    let (first, second) = open_two(&fake);
    let map = |slot: &Slot, options: MapOptions| {
        let mapping = slot.map(Source::anonymous(4 * PAGE).unwrap(), 4 * PAGE, options).unwrap();
        assert_eq!(add_one(slot, mapping.va(), mapping.len()).unwrap().denied, 0);
        mapping
    };
    let alone = map(&first, rw());
    assert_eq!(fake.channels(0), [0, 1, 0, 1], "alone");
    let other = map(&second, rw());
    assert_eq!(fake.channels(1), [1, 1, 1, 1], "the second of two");
    let beside = map(&first, rw());
    assert_eq!(fake.channels(0), [0, 1, 0, 1, 0, 0, 0, 0], "the first of two; pages that were there stay");
    beside.unmap().unwrap();
    // Pages in host memory take no channel.
    let host = map(&second, rw().on_host());
    other.unmap().unwrap();
    let again = map(&first, rw());
    let channels = fake.channels(0);
    assert_eq!((&channels[..4], channels[4] != channels[5]), ([0, 1, 0, 1].as_slice(), true), "alone again");
    for mapping in [alone, again, host] {
        mapping.unmap().unwrap();
    }
    let chosen = map(&first, rw().placement(Placement::Only(0b10)));
    assert_eq!(fake.channels(0), [1, 1, 1, 1]);
    chosen.unmap().unwrap();
    let everywhere = [map(&second, rw()), map(&first, rw().placement(Placement::All))];
    let channels = fake.channels(0);
    assert_ne!(channels[0], channels[1], "{channels:?}");
    drop(everywhere);
    for channels in [0, 0b100, 0b101] {
        let options = rw().placement(Placement::Only(channels));
        let refused = first.map(Source::anonymous(PAGE).unwrap(), PAGE, options).err().unwrap().to_string();
        assert!(refused.contains("of the card's 2"), "{refused}");
    }
}

#[test]
fn a_slot_whose_share_of_the_channels_is_full_takes_others() {
    let fake = FakeCard::new();
    let (first, second) = open_two(&fake);
    let _shares = second.map(Source::anonymous(PAGE).unwrap(), PAGE, rw()).unwrap();
    // More than a channel has.
    let len = (first.card().info().chan_mib * 3) << 19;
    let mapping = first.map(Source::anonymous(len).unwrap(), len, rw()).unwrap();
    for at in (mapping.va()..mapping.va() + len).step_by(2 << 20) {
        assert_eq!(add_one(&first, at, 1).unwrap().denied, 0);
    }
    assert_eq!(first.pager_stats().evicted, 0);
    let channels = fake.channels(0);
    assert!(channels.contains(&0) && channels.contains(&1), "{channels:?}");
}

/// A disk whose writes wait until it is told that they may go on, and that does not make anybody wait for ever.
#[derive(Default)]
struct Gate {
    /// Writes that wait, and whether they may go on.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Device for Gate {
    fn read(&self, _: u64, _: u64, done: Box<dyn FnOnce() + Send>) {
        done();
    }

    fn write(&self, _: u64, _: u64) {
        let mut state = self.state.lock().unwrap();
        state.0 += 1;
        self.changed.notify_all();
        let patience = Duration::from_secs(20);
        let (mut state, late) = self.changed.wait_timeout_while(state, patience, |state| !state.1).unwrap();
        state.0 -= 1;
        drop(state);
        assert!(!late.timed_out(), "somebody waits for the write who need not");
    }
}

impl Gate {
    fn await_write(&self) {
        drop(self.changed.wait_while(self.state.lock().unwrap(), |state| state.0 == 0).unwrap());
    }

    fn waiting(&self) -> usize {
        self.state.lock().unwrap().0
    }

    fn open(&self, open: bool) {
        self.state.lock().unwrap().1 = open;
        self.changed.notify_all();
    }
}

/// A write by the app, which waits for its page.
fn app_writes(slot: &Slot, fake: &FakeCard, va: u64, data: &[u8]) {
    while fake.write(0, va, data).is_none() {
        serve(slot);
    }
}

#[test]
fn faults_are_served_while_a_sync_waits_for_a_file() {
    let dir = tempfile::tempdir().unwrap();
    for options in [rw(), rw().noting_writes(), rw().on_host()] {
        let path = file(&dir, &pattern(16 * PAGE as usize));
        let fake = FakeCard::new();
        let slot = open(&fake);
        let gate = Arc::new(Gate::default());
        let source = Source::file_mut(&path).unwrap().on(gate.clone());
        let mapping = slot.map(source, 16 * PAGE, options).unwrap();
        let at = |page: u64| mapping.va() + page * PAGE;
        for page in [0, 1, 2] {
            app_writes(&slot, &fake, at(page), b"first");
        }
        std::thread::scope(|scope| {
            let sync = scope.spawn(|| mapping.sync(true));
            gate.await_write();
            // Also those on pages that are being written, which the app changes again.
            app_writes(&slot, &fake, at(9), b"other");
            app_writes(&slot, &fake, at(1), b"again");
            // No second one is told to be done before what it covers is written, and nothing is unmapped before.
            let two = at(0)..at(2);
            let second = scope.spawn(|| slot.sync(two, SyncMode::default()));
            let part = scope.spawn(|| slot.unmap(at(2)..at(3)));
            std::thread::sleep(Duration::from_millis(50));
            assert!(!sync.is_finished() && !second.is_finished() && !part.is_finished());
            gate.open(true);
            sync.join().unwrap().unwrap();
            second.join().unwrap().unwrap();
            part.join().unwrap().unwrap();
        });
        let mut expected = pattern(16 * PAGE as usize);
        for (page, text) in [(0, b"first"), (1, b"again"), (2, b"first"), (9, b"other")] {
            expected[(page * PAGE) as usize..][..5].copy_from_slice(text);
        }
        let end = 3 * PAGE as usize;
        assert!(fs::read(&path).unwrap()[..end] == expected[..end]);
        mapping.unmap().unwrap();
        assert!(fs::read(&path).unwrap() == expected);
        assert_eq!(fake.translations(0), 0);
    }
}

#[test]
fn faults_are_served_while_what_is_unmapped_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, &pattern(16 * PAGE as usize));
    let fake = FakeCard::new();
    let slot = open(&fake);
    let gate = Arc::new(Gate::default());
    let source = Source::file_mut(&path).unwrap().on(gate.clone());
    let mapping = slot.map(source, 16 * PAGE, rw()).unwrap();
    let other = slot.map(Source::anonymous(PAGE).unwrap(), PAGE, rw()).unwrap();
    let va = mapping.va();
    app_writes(&slot, &fake, va, b"first");
    std::thread::scope(|scope| {
        let unmap = scope.spawn(|| mapping.unmap());
        gate.await_write();
        app_writes(&slot, &fake, other.va(), b"other");
        app_writes(&slot, &fake, va, b"again");
        assert!(!unmap.is_finished());
        gate.open(true);
        unmap.join().unwrap().unwrap();
    });
    assert!(fs::read(&path).unwrap()[..5] == *b"again", "until it is gone the app can write there");
}

#[test]
fn pages_that_are_being_written_keep_their_frames_and_their_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, &pattern(16 * PAGE as usize));
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(4 * PAGE);
    let gate = Arc::new(Gate::default());
    let source = Source::file_mut(&path).unwrap().on(gate.clone());
    let mapping = slot.map(source, 16 * PAGE, rw()).unwrap();
    slot.advise(mapping.range(), Advice::Random).unwrap();
    slot.set_host_budget(0);
    let at = |page: u64| mapping.va() + page * PAGE;
    for page in 0..4 {
        app_writes(&slot, &fake, at(page), b"first");
    }
    std::thread::scope(|scope| {
        let sync = scope.spawn(|| mapping.sync(false));
        gate.await_write();
        // All frames are in use: the access to another page waits, and is not denied.
        touch(&slot, &fake, &[(at(9), false)]);
        serve(&slot);
        assert!(fake.page(0, at(9)).is_none());
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(2 * PAGE).unwrap();
        gate.open(true);
        let error = sync.join().unwrap().unwrap_err();
        assert!(matches!(error, Error::Lost { start: 8192, end: 16_384, .. }), "{error}");
    });
    assert!(slot.take_denied().is_empty());
    let mut expected = pattern(2 * PAGE as usize);
    for page in [0, PAGE as usize] {
        expected[page..][..5].copy_from_slice(b"first");
    }
    assert!(fs::read(&path).unwrap() == expected);
    mapping.unmap().unwrap();
}

/// With frames for 128 pages, a mapping of 64, all of which the app has changed, and a larger one that it only reads, with whose faults pages
/// of the first one are evicted ahead of need: at the end one of them waits for the file.
struct Short {
    dir: tempfile::TempDir,
    fake: Arc<FakeCard>,
    gate: Arc<Gate>,
    slot: Slot,
    changed: Mapping,
    read: Mapping,
}

impl Short {
    fn new() -> Self {
        let (dir, fake, gate) = (tempfile::tempdir().unwrap(), FakeCard::new(), Arc::new(Gate::default()));
        let slot = open(&fake);
        slot.set_frame_budget(128 * PAGE);
        slot.set_host_budget(0);
        let path = file(&dir, &pattern(64 * PAGE as usize));
        let source = Source::file_mut(&path).unwrap().on(gate.clone());
        let changed = slot.map(source, 64 * PAGE, rw()).unwrap();
        let read = slot.map(Source::anonymous(256 * PAGE).unwrap(), 256 * PAGE, rw()).unwrap();
        for mapping in [&changed, &read] {
            slot.advise(mapping.range(), Advice::Random).unwrap();
        }
        let pages: Vec<u64> = (0..64).map(|page| changed.va() + page * PAGE).collect();
        touch(&slot, &fake, &pages.iter().map(|&va| (va, true)).collect::<Vec<_>>());
        pages.iter().for_each(|&va| app_writes(&slot, &fake, va, b"first"));
        let short = (0..256).any(|page| {
            touch(&slot, &fake, &[(read.va() + page * PAGE, false)]);
            gate.waiting() > 0
        });
        assert!(short, "all pages were accessed");
        Self { dir, fake, gate, slot, changed, read }
    }
}

#[test]
fn faults_are_served_while_evicted_pages_wait_for_their_file() {
    let Short { dir, fake, gate, slot, changed, read } = Short::new();
    // An evicted page that is accessed again is mapped while it is being written, and what the app writes there is not lost.
    let gone =
        (0..64).filter(|page| fake.page(0, changed.va() + page * PAGE).is_none()).collect::<Vec<u64>>();
    assert!(!gone.is_empty());
    for page in &gone {
        app_writes(&slot, &fake, changed.va() + page * PAGE, b"again");
    }
    // Others are served, too; the time limit for a card without activity does not count.
    serve(&slot);
    assert_eq!(slot.wait_irq(u64::MAX, quick().stall * 2).unwrap(), None);
    assert!(gate.waiting() > 0);
    // Who wants all of it in the file waits.
    std::thread::scope(|scope| {
        let sync = scope.spawn(|| changed.sync(true));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!sync.is_finished());
        gate.open(true);
        sync.join().unwrap().unwrap();
    });
    assert!(slot.take_denied().is_empty());
    let mut expected = pattern(64 * PAGE as usize);
    for page in 0..64 {
        let text = if gone.contains(&page) { b"again" } else { b"first" };
        expected[(page * PAGE) as usize..][..5].copy_from_slice(text);
    }
    assert!(fs::read(dir.path().join("data")).unwrap() == expected);
    changed.unmap().unwrap();
    read.unmap().unwrap();
}

#[test]
fn evicted_pages_that_cannot_be_written_stay_and_are_told() {
    let Short { dir, fake: _fake, gate, slot, changed, read } = Short::new();
    fs::OpenOptions::new().write(true).open(dir.path().join("data")).unwrap().set_len(0).unwrap();
    gate.open(true);
    serve(&slot);
    let error = changed.sync(true).unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    read.unmap().unwrap();
}

#[test]
fn a_card_that_falls_silent_while_a_file_is_written_is_told() {
    let Short { dir: _dir, fake, gate, slot, changed, read } = Short::new();
    // Commands that the card does not complete are under way, too.
    fake.hold(true);
    touch(&slot, &fake, &[200, 220, 240].map(|page| (read.va() + page * PAGE, false)));
    std::thread::scope(|scope| {
        let sync = scope.spawn(|| changed.sync(true));
        std::thread::sleep(Duration::from_millis(50));
        gate.open(true);
        let begun = std::time::Instant::now();
        assert!(matches!(sync.join().unwrap(), Err(Error::Stalled { .. })));
        assert!(begun.elapsed() < Duration::from_secs(15));
    });
    fake.hold(false);
}

#[test]
fn a_fault_that_displaces_a_page_in_use_does_not_hold_up_others() {
    let (dir, fake, gate) = (tempfile::tempdir().unwrap(), FakeCard::new(), Arc::new(Gate::default()));
    let slot = open(&fake);
    // Too few for eviction ahead of need.
    slot.set_frame_budget(8 * PAGE);
    let path = file(&dir, &pattern(8 * PAGE as usize));
    let source = Source::file_mut(&path).unwrap().on(gate.clone());
    let changed = slot.map(source, 8 * PAGE, rw()).unwrap();
    let read = slot.map(Source::anonymous(8 * PAGE).unwrap(), 8 * PAGE, rw()).unwrap();
    let buffer = slot.map(Source::anonymous(PAGE).unwrap(), PAGE, rw().on_host()).unwrap();
    for mapping in [&changed, &read] {
        slot.advise(mapping.range(), Advice::Random).unwrap();
        slot.set_host_budget(0);
    }
    for page in 0..8 {
        app_writes(&slot, &fake, changed.va() + page * PAGE, b"first");
    }
    touch(&slot, &fake, &[(read.va(), false)]);
    assert_eq!(gate.waiting(), 1);
    assert!(fake.page(0, read.va()).is_none());
    touch(&slot, &fake, &[(buffer.va(), true)]);
    assert!(fake.page(0, buffer.va()).is_some());
    gate.open(true);
    serve(&slot);
    assert!(fake.page(0, read.va()).is_some());
    changed.sync(true).unwrap();
    let mut expected = pattern(8 * PAGE as usize);
    (0..8).for_each(|page| expected[(page * PAGE) as usize..][..5].copy_from_slice(b"first"));
    assert!(fs::read(&path).unwrap() == expected);
}
