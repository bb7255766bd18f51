// SPDX-License-Identifier: Apache-2.0
//! Ranges of a slot's address space: where mappings go, private ones, parts of them, advice, operations in the background.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use common::*;
use viaduct::*;

const PAGE: u64 = 4096;
const HUGE: u64 = 2 << 20;

/// The pattern, with 1 added to the bytes of some pages.
fn changed(pages: u64, which: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut data = pattern(pages);
    for n in which {
        let page = &mut data[(n * PAGE) as usize..][..PAGE as usize];
        page.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
    }
    data
}

fn add_one(slot: &Slot, va: u64, len: u64) -> u64 {
    let wide = |offset| Register { offset, width: 64 };
    let range = MemoryRange { va, len, base: wide(REG_BASE), bytes: Some(wide(REG_BYTES)) };
    MemoryJob::new(slot, REG_START).range(range).done(REG_DONE).run().unwrap().denied
}

/// A folder with a file of so many pages.
fn file(pages: u64) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    fs::write(&path, pattern(pages)).unwrap();
    (dir, path)
}

fn rw() -> MapOptions {
    MapOptions::new(Prot::READ_WRITE)
}

fn shared(slot: &Slot, path: &Path, pages: u64, options: MapOptions) -> Mapping {
    slot.map(Source::file_mut(path).unwrap(), pages * PAGE, options).unwrap()
}

/// An access misses, and is served.
fn touch(slot: &Slot, fake: &FakeCard, va: u64) {
    fake.miss(0, &[(va, false)]);
    assert_eq!(slot.wait_irq(u64::MAX, Duration::from_millis(10)).unwrap(), None);
    fake.read(0, va);
}

const INVALIDATE: SyncMode = SyncMode { durable: false, invalidate: true };

#[test]
fn addresses_are_hints_demands_or_replacements() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (_dir, path) = file(8);
    let map = |options| slot.map(Source::file(&path).unwrap(), 4 * PAGE, options);
    let ro = MapOptions::new(Prot::READ);
    let hinted = map(ro.near(0x7000_0000_1234)).unwrap();
    assert_eq!(hinted.va(), 0x7000_0000_1000);
    let elsewhere = map(ro.near(0x7000_0000_3000)).unwrap();
    assert!(elsewhere.va() < 0x7000_0000_0000, "{:#x}", elsewhere.va());
    assert!(matches!(map(ro.exactly(0x7000_0000_4000)), Err(Error::AddressTaken { .. })));
    let next = map(ro.exactly(0x7000_0000_5000)).unwrap();
    // The end of the address space, and its beginning.
    let last = map(ro.exactly((1 << 48) - 4 * PAGE)).unwrap();
    assert_eq!(last.va() + last.len(), 1 << 48);
    for va in [(1 << 48) - 3 * PAGE, 1 << 48, u64::MAX - 4095, 0, PAGE] {
        assert!(matches!(map(ro.exactly(va)), Err(Error::NoAddress { .. })), "{va:#x}");
    }
    assert!(matches!(map(ro.exactly(0x7000_0001_0004)), Err(Error::Invalid(_))));
    assert!(map(ro.huge(true).exactly(0x7000_0001_1000)).is_err(), "not at a multiple of 2 MiB");
    assert!(map(ro.offset(100)).is_err());
    assert!(slot.map(Source::file(&path).unwrap(), u64::MAX, ro).is_err());
    assert!(slot.map(Source::file(&path).unwrap(), 1 << 60, ro).is_err());
    for (mapping, page) in [(&hinted, 0), (&next, 3), (&last, 3)] {
        touch(&slot, &fake, mapping.va() + page * PAGE);
        let bytes = fake.page(0, mapping.va() + page * PAGE).unwrap();
        assert!(bytes == pattern(8)[(page * PAGE) as usize..][..PAGE as usize]);
    }
    // In place of parts of two mappings, from the middle of the file on.
    let over = map(ro.offset(4 * PAGE).replacing(0x7000_0000_3000)).unwrap();
    for n in 0..4 {
        touch(&slot, &fake, over.va() + n * PAGE);
        let bytes = fake.page(0, over.va() + n * PAGE).unwrap();
        assert!(bytes == pattern(8)[((4 + n) * PAGE) as usize..][..PAGE as usize], "page {n}");
    }
    touch(&slot, &fake, hinted.va() + 2 * PAGE);
    assert!(fake.page(0, hinted.va() + 2 * PAGE).is_some(), "what was before it stays");
    // A mapping that was replaced in part takes only its own with it.
    hinted.unmap().unwrap();
    next.unmap().unwrap();
    assert!(fake.page(0, over.va()).is_some());
    over.unmap().unwrap();
    drop((elsewhere, last));
    assert_eq!(fake.translations(0), 0);
}

#[test]
fn parts_of_a_mapping_can_be_unmapped() {
    let (_dir, path) = file(16);
    for options in [rw(), rw().on_host()] {
        fs::write(&path, pattern(16)).unwrap();
        let fake = FakeCard::new();
        let slot = open(&fake);
        let mapping = shared(&slot, &path, 16, options);
        let va = mapping.va();
        assert_eq!(add_one(&slot, va, 16 * PAGE), 0);
        slot.unmap(va + 4 * PAGE..va + 6 * PAGE).unwrap();
        // What was unmapped is in the file, and the app cannot access it.
        assert!(fs::read(&path).unwrap() == changed(16, 4..6));
        assert_eq!(add_one(&slot, va + 3 * PAGE, 4 * PAGE), 2);
        // Both sides still work: pages 3 and 6 were changed twice.
        slot.unmap(va..va + PAGE).unwrap();
        slot.unmap(va + 15 * PAGE..va + 40 * PAGE).unwrap();
        let mut expected = changed(16, (0..16).chain([3, 6]));
        mapping.unmap().unwrap();
        assert!(fs::read(&path).unwrap() == expected);
        assert_eq!(fake.translations(0), 0);

        // The frames of all parts are free again, and a new mapping can be there.
        let mapping = shared(&slot, &path, 16, options.exactly(va));
        assert_eq!(add_one(&slot, va + 5 * PAGE, PAGE), 0);
        mapping.unmap().unwrap();
        expected[5 * PAGE as usize..6 * PAGE as usize]
            .iter_mut()
            .for_each(|byte| *byte = byte.wrapping_add(1));
        assert!(fs::read(&path).unwrap() == expected);
    }
    let fake = FakeCard::new();
    let slot = open(&fake);
    let mapping = slot.map(Source::anonymous(3 * HUGE).unwrap(), 3 * HUGE, rw().huge(true)).unwrap();
    let va = mapping.va();
    slot.unmap(va + HUGE..va + 2 * HUGE).unwrap();
    assert_eq!(add_one(&slot, va + HUGE - PAGE, 2 * PAGE), 1);
    assert!(slot.unmap(va + 1..va + HUGE).is_err());
    assert!(slot.unmap(va..va).is_err());
}

#[test]
fn a_part_of_a_page_of_2_mib_can_be_unmapped() {
    const PAGES: u64 = HUGE / PAGE + 20; // the last page is not full
    let (_dir, path) = file(PAGES);
    for options in [rw(), rw().huge(true), rw().on_host(), rw().noting_writes()] {
        fs::write(&path, pattern(PAGES)).unwrap();
        let fake = FakeCard::new();
        let slot = open(&fake);
        let mapping = shared(&slot, &path, PAGES, options);
        let va = mapping.va();
        assert_eq!(add_one(&slot, va, PAGES * PAGE), 0);
        let (middle, last) = (va + 100 * PAGE..va + 103 * PAGE, va + (PAGES - 3) * PAGE..va + PAGES * PAGE);
        slot.unmap(middle.clone()).unwrap();
        slot.unmap(last.clone()).unwrap();
        assert!(fs::read(&path).unwrap() == changed(PAGES, 0..PAGES));
        assert_eq!(slot.pager_stats().demoted, 2);
        for range in [middle, last] {
            assert_eq!(add_one(&slot, range.start - PAGE, PAGE), 0);
            assert_eq!(add_one(&slot, range.start, range.end - range.start), 3);
        }
        assert_eq!(add_one(&slot, va + 103 * PAGE, PAGE), 0);
        mapping.unmap().unwrap();
        assert!(fs::read(&path).unwrap() == changed(PAGES, (0..PAGES).chain([99, 103, PAGES - 4])));
        assert_eq!(fake.translations(0), 0);
    }
    // Private changes beside the part are kept.
    let fake = FakeCard::new();
    let slot = open(&fake);
    let source = Source::file(&path).unwrap();
    let mapping = slot.map(source, HUGE, rw().private()).unwrap();
    let (va, before) = (mapping.va(), fs::read(&path).unwrap());
    assert_eq!(add_one(&slot, va, HUGE), 0);
    slot.unmap(va..va + PAGE).unwrap();
    touch(&slot, &fake, va + PAGE);
    assert_eq!(fake.page(0, va + PAGE).unwrap()[0], before[PAGE as usize].wrapping_add(1));
    assert!(fs::read(&path).unwrap() == before);
}

/// Blocks of 2 MiB, with frames for half of them.
fn half_resident(fake: &Arc<FakeCard>, blocks: u64, options: MapOptions) -> (Slot, Mapping) {
    let slot = open(fake);
    slot.set_frame_budget(blocks / 2 * HUGE);
    let source = Source::anonymous(blocks * HUGE).unwrap();
    let mapping = slot.map(source, blocks * HUGE, options).unwrap();
    (slot, mapping)
}

#[test]
fn blocks_get_small_pages_while_there_is_no_room_for_large_ones() {
    let blocks = 8;
    let fake = FakeCard::new();
    let (slot, mapping) = half_resident(&fake, blocks, rw());
    let va = mapping.va();
    let at = |block: u64, page: u64| va + block * HUGE + page * PAGE;
    // In no order, while there is room: pages of 2 MiB.
    for block in [3, 1, 5, 7] {
        touch(&slot, &fake, at(block, 9));
    }
    let stats = slot.pager_stats();
    assert_eq!((stats.pages_in, stats.evicted, stats.demoted), (4, 0, 0));
    // There is no room: each access loads a page of 4 KiB, once one of 2 MiB has left for them.
    for i in 0..40 {
        touch(&slot, &fake, at([0, 4, 2, 6][i as usize % 4], i * 101 % 512));
    }
    let stats = slot.pager_stats();
    assert_eq!((stats.evicted, stats.demoted, stats.promoted), (1, 4, 0), "{stats:?}");
    // Two of them are at neighbouring pages, by chance.
    assert_eq!(stats.pages_in, 4 + 40 + 1);
    assert!(fake.page(0, at(4, 101)).is_some());
    // There is room again for several: the next fault in a block loads all of it.
    slot.set_frame_budget(2 * blocks * HUGE);
    touch(&slot, &fake, at(4, 1));
    let stats = slot.pager_stats();
    assert_eq!((stats.pages_in, stats.promoted), (46, 1), "{stats:?}");
    assert!(fake.page(0, at(4, 500)).is_some());
    mapping.unmap().unwrap();
    assert_eq!(fake.translations(0), 0);
}

#[test]
fn a_block_that_the_source_ends_in_keeps_its_page() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(2 * HUGE);
    let source = Source::anonymous(3 * HUGE + 5 * PAGE).unwrap();
    let mapping = slot.map(source, 4 * HUGE, rw()).unwrap();
    for block in [2, 0, 3] {
        touch(&slot, &fake, mapping.va() + block * HUGE + 4 * PAGE);
    }
    assert!(slot.take_denied().is_empty());
    assert!(fake.page(0, mapping.va() + 3 * HUGE + 100 * PAGE).is_some(), "the rest of the last page");
}

#[test]
fn a_file_that_ends_inside_a_page_read_ahead_has_shrunk() {
    let (_dir, path) = file(64);
    let fake = FakeCard::new();
    let slot = open(&fake);
    let mapping = shared(&slot, &path, 64, rw());
    mapping.advise(Advice::Sequential).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(20 * PAGE + 100).unwrap();
    touch(&slot, &fake, mapping.va());
    assert!(fake.page(0, mapping.va() + 20 * PAGE).is_some());
    let error = mapping.sync(false).unwrap_err();
    assert!(matches!(error, Error::FileShrank { .. }), "{error}");
}

#[test]
fn pages_stay_large_where_an_app_goes_through_them_in_order_or_the_program_says_so() {
    let sequential = Some(Advice::Sequential);
    for (options, advice, step) in [(rw(), None, 1), (rw(), sequential, 3), (rw().huge(true), None, 3)] {
        let fake = FakeCard::new();
        let (slot, mapping) = half_resident(&fake, 8, options);
        if let Some(advice) = advice {
            slot.advise(mapping.va()..mapping.va() + 8 * HUGE, advice).unwrap();
        }
        for i in 0..16 {
            let va = mapping.va() + i * step % 8 * HUGE;
            if fake.page(0, va).is_none() {
                touch(&slot, &fake, va);
            }
            fake.read(0, va);
        }
        let stats = slot.pager_stats();
        assert!(stats.demoted == 0 && stats.evicted > 0, "{stats:?}");
    }
    // Small pages become large ones where an app comes to them in order.
    let fake = FakeCard::new();
    let (slot, mapping) = half_resident(&fake, 8, rw());
    for block in [6, 4, 1, 7, 3, 2] {
        touch(&slot, &fake, mapping.va() + block * HUGE + 77 * PAGE);
    }
    let before = slot.pager_stats();
    assert_eq!((before.demoted, before.promoted), (2, 0), "{before:?}");
    let at = |block: u64| mapping.va() + block * HUGE;
    slot.advise(at(3)..at(4), Advice::DontNeed).unwrap();
    for va in (at(2)..at(4)).step_by(PAGE as usize) {
        if fake.page(0, va).is_none() {
            touch(&slot, &fake, va);
        }
    }
    let stats = slot.pager_stats();
    assert_eq!(stats.promoted, 1, "{stats:?}");
}

#[test]
fn a_private_mapping_never_writes_the_file() {
    let (_dir, path) = file(40);
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(8 * PAGE);
    // Not even open for writing.
    let source = || Source::file(&path).unwrap();
    let mapping = slot.map(source(), 40 * PAGE - 9, rw().private()).unwrap();
    let other = slot.map(source(), 40 * PAGE, MapOptions::new(Prot::READ)).unwrap();
    // Changed pages are evicted and come back.
    for _ in 0..2 {
        assert_eq!(add_one(&slot, mapping.va(), mapping.len()), 0);
    }
    assert!(slot.pager_stats().evicted > 40);
    let page = changed(40, [7, 7])[7 * PAGE as usize..8 * PAGE as usize].to_vec();
    touch(&slot, &fake, mapping.va() + 7 * PAGE);
    assert!(fake.page(0, mapping.va() + 7 * PAGE).unwrap() == page);
    touch(&slot, &fake, other.va() + 7 * PAGE);
    assert!(
        fake.page(0, other.va() + 7 * PAGE).unwrap() == changed(40, [])[7 * PAGE as usize..][..PAGE as usize]
    );
    mapping.sync(true).unwrap();
    assert!(fs::read(&path).unwrap() == pattern(40));
    // The changes are discarded on request, of those pages only.
    slot.advise(mapping.va()..mapping.va() + 7 * PAGE, Advice::DontNeed).unwrap();
    touch(&slot, &fake, mapping.va() + 6 * PAGE);
    assert!(
        fake.page(0, mapping.va() + 6 * PAGE).unwrap() == pattern(40)[6 * PAGE as usize..][..PAGE as usize]
    );
    touch(&slot, &fake, mapping.va() + 7 * PAGE);
    assert!(fake.page(0, mapping.va() + 7 * PAGE).unwrap() == page);
    // They survive the end of the file.
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
    assert_eq!(add_one(&slot, mapping.va() + 20 * PAGE, 2 * PAGE), 0);
    mapping.unmap().unwrap();
    assert_eq!(fs::read(&path).unwrap().len(), 0);
}

#[test]
fn permissions_hold_for_each_mapping_of_a_page() {
    let (_dir, path) = file(2);
    let fake = FakeCard::new();
    let slot = open(&fake);
    let writable = shared(&slot, &path, 2, rw());
    let read_only = slot.map(Source::file(&path).unwrap(), 2 * PAGE, MapOptions::new(Prot::READ)).unwrap();
    let none = slot.map(Source::file(&path).unwrap(), 2 * PAGE, MapOptions::new(Prot::NONE)).unwrap();
    assert_eq!(add_one(&slot, writable.va(), 2 * PAGE), 0);
    assert_eq!(add_one(&slot, read_only.va(), 2 * PAGE), 2);
    assert!(slot.take_denied().iter().all(|denied| denied.is_write));
    assert_eq!(add_one(&slot, none.va(), 2 * PAGE), 2);
    assert!(slot.take_denied().iter().all(|denied| !denied.is_write));
    writable.unmap().unwrap();
    assert!(fs::read(&path).unwrap() == changed(2, 0..2));
}

#[test]
fn a_mapping_may_be_longer_than_its_file_and_the_file_may_grow() {
    let (_dir, path) = file(2);
    let grow = |len| fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(len).unwrap();
    grow(5000);
    let fake = FakeCard::new();
    let slot = open(&fake);
    let mapping = shared(&slot, &path, 8, rw());
    assert_eq!(add_one(&slot, mapping.va(), 8 * PAGE), 6);
    assert!(slot.take_denied()[0].why.contains("the file ends before it"));
    mapping.sync(true).unwrap();
    let mut expected = changed(2, 0..2);
    expected.truncate(5000);
    assert!(
        fs::read(&path).unwrap() == expected,
        "the file has its length, though the app wrote a whole page"
    );
    // It has holes now; pages that are there keep what they have until they are dropped.
    grow(8 * PAGE);
    slot.sync(mapping.range(), INVALIDATE).unwrap();
    assert_eq!(add_one(&slot, mapping.va() + 4 * PAGE, 2 * PAGE), 0);
    mapping.unmap().unwrap();
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.len() as u64, 8 * PAGE);
    assert!(bytes[4 * PAGE as usize..6 * PAGE as usize].iter().all(|&byte| byte == 1));
    assert!(bytes[6 * PAGE as usize..].iter().all(|&byte| byte == 0));
    use std::os::unix::fs::MetadataExt;
    let blocks = fs::metadata(&path).unwrap().blocks();
    assert!(
        blocks * 512 < 8 * PAGE,
        "holes that the app only could have written stay holes: {blocks} blocks"
    );
}

#[test]
fn sync_brings_bytes_both_ways_and_only_in_its_range() {
    let (_dir, path) = file(8);
    let fake = FakeCard::new();
    let slot = open(&fake);
    let mapping = shared(&slot, &path, 8, rw());
    let va = mapping.va();
    assert_eq!(add_one(&slot, va, 8 * PAGE), 0);
    slot.sync(va + 2 * PAGE..va + 3 * PAGE + 1, SyncMode::default()).unwrap();
    assert!(fs::read(&path).unwrap() == changed(8, 2..4));
    // Somebody writes the file. The app sees it once the pages are dropped, and not before.
    slot.sync(va..va + 8 * PAGE, SyncMode::default()).unwrap();
    fs::write(&path, pattern(8)).unwrap();
    touch(&slot, &fake, va);
    let page = |data: Vec<u8>, n: u64| data[(n * PAGE) as usize..][..PAGE as usize].to_vec();
    assert!(fake.page(0, va).unwrap() == page(changed(8, 0..8), 0));
    slot.sync(va..va + PAGE, INVALIDATE).unwrap();
    touch(&slot, &fake, va);
    assert!(fake.page(0, va).unwrap() == page(pattern(8), 0));
    touch(&slot, &fake, va + PAGE);
    assert!(fake.page(0, va + PAGE).unwrap() == page(changed(8, 0..8), 1), "outside the range");
    // Two mappings of one file meet there.
    let other = slot.map(Source::file(&path).unwrap(), 8 * PAGE, MapOptions::new(Prot::READ)).unwrap();
    touch(&slot, &fake, other.va() + 5 * PAGE);
    assert_eq!(add_one(&slot, va + 5 * PAGE, PAGE), 0);
    slot.sync(mapping.range(), SyncMode::default()).unwrap();
    slot.sync(other.range(), INVALIDATE).unwrap();
    touch(&slot, &fake, other.va() + 5 * PAGE);
    assert!(fake.page(0, other.va() + 5 * PAGE).unwrap() == page(changed(8, [5, 5]), 5));

    assert!(matches!(slot.sync(va + 1..va + PAGE, INVALIDATE), Err(Error::Invalid(_))));
    let beyond = slot.sync(va..va + 9 * PAGE, INVALIDATE);
    assert!(matches!(beyond, Err(Error::NotMapped { start, .. }) if start == va + 8 * PAGE), "{beyond:?}");
    assert!(matches!(slot.advise(0x1000..0x2000, Advice::Random), Err(Error::NotMapped { .. })));
}

#[test]
fn a_failed_write_back_is_told_to_the_owner_of_the_bytes() {
    let (_dir, path) = file(4);
    let fake = FakeCard::new();
    let slot = open(&fake);
    // Every write to it fails.
    let full = Source::from_file(fs::File::open(&path).unwrap(), &path, 0, true).unwrap();
    let broken = slot.map(full, 4 * PAGE, rw()).unwrap();
    let (_dir, path) = file(4);
    let sound = shared(&slot, &path, 4, rw());
    assert_eq!(add_one(&slot, broken.va(), 4 * PAGE) + add_one(&slot, sound.va(), 4 * PAGE), 0);
    sound.sync(true).unwrap();
    let error = slot.sync(broken.range(), SyncMode::default()).unwrap_err();
    assert!(matches!(error, Error::Lost { start: 0, end: 16384, .. }), "{error:?}");
    assert_eq!(error.errno(), libc::EBADF);
    // Of two parts, the one that cannot be written says so.
    assert!(slot.unmap(broken.va()..broken.va() + 2 * PAGE).is_err());
    sound.unmap().unwrap();
    assert!(matches!(broken.unmap().unwrap_err(), Error::Lost { start: 8192, end: 16384, .. }));
}

/// Pages that faults on each of `order` load, and how many are evicted.
fn loads(advice: Option<Advice>, order: impl IntoIterator<Item = u64>) -> (u64, u64) {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let mapping = slot.map(Source::anonymous(512 * PAGE).unwrap(), 512 * PAGE, rw().huge(false)).unwrap();
    if let Some(advice) = advice {
        mapping.advise(advice).unwrap();
    }
    for n in order {
        if fake.page(0, mapping.va() + n * PAGE).is_none() {
            touch(&slot, &fake, mapping.va() + n * PAGE);
        }
    }
    (slot.pager_stats().faults, slot.pager_stats().pages_in)
}

#[test]
fn advice_on_order_changes_what_a_fault_loads() {
    let scattered = || (0..16).map(|n| n * 29 % 512 + 1);
    assert_eq!(loads(Some(Advice::Random), 0..64), (64, 64));
    assert_eq!(loads(Some(Advice::Random), scattered()), (16, 16));
    assert_eq!(loads(Some(Advice::Sequential), 0..256), (4, 256));
    let (faults, pages) = loads(None, 0..256);
    assert!(faults > 4 && faults < 16 && pages >= 256, "{faults} faults, {pages} pages");
    assert_eq!(loads(None, scattered()), (16, 16));
    assert_eq!(loads(Some(Advice::Normal), 0..256), (faults, pages));
}

#[test]
fn read_ahead_shrinks_while_its_pages_are_not_used() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let small = rw().huge(false);
    let mapping = slot.map(Source::anonymous(2048 * PAGE).unwrap(), 2048 * PAGE, small).unwrap();
    let loaded = || slot.pager_stats().pages_in;
    // An access to a page, and time in which nothing happens.
    let access = |n: u64| {
        let before = loaded();
        assert_eq!(add_one(&slot, mapping.va() + n * PAGE, 64), 0);
        (0..150).for_each(|_| assert!(slot.card().time().is_ok()));
        loaded() - before
    };
    // Of what each fault loads, only the page that it asked for is used.
    let runs: Vec<u64> = (0..32).map(|_| access(loaded())).collect();
    assert!(runs[..12].iter().any(|&run| run >= 4), "it grows first: {runs:?}");
    assert!(runs[16..].iter().all(|&run| run <= 2), "and shrinks: {runs:?}");
    // All of them are used: it grows again.
    let first = loaded();
    let runs: Vec<u64> = (first..first + 512).map(access).filter(|&run| run > 0).collect();
    assert!(runs.len() < 48 && runs.last() == Some(&64), "{runs:?}");
}

#[test]
fn advice_on_use_changes_what_is_evicted() {
    let loaded_again = |advice: Advice| {
        let fake = FakeCard::new();
        let slot = open(&fake);
        slot.set_frame_budget(64 * PAGE);
        let map = || slot.map(Source::anonymous(256 * PAGE).unwrap(), 256 * PAGE, rw()).unwrap();
        let (mapping, other) = (map(), map());
        mapping.advise(Advice::Random).unwrap();
        mapping.advise(advice).unwrap();
        // Both are in use: the card has noted accesses to all pages.
        let tables = add_one(&slot, mapping.va(), 32 * PAGE) + add_one(&slot, other.va(), 200 * PAGE);
        assert_eq!(tables, 0);
        let before = slot.pager_stats().pages_in;
        assert_eq!(add_one(&slot, mapping.va(), 32 * PAGE), 0);
        slot.pager_stats().pages_in - before
    };
    assert_eq!(loaded_again(Advice::Reuse), 0);
    assert!(loaded_again(Advice::Normal) >= 32, "the older pages went");

    // Pages that are used seldom, or in order, go first, though they were used last. An eighth of the frames is their share.
    // They take it by groups of eight, two of which may be on their way.
    for (advice, left) in [(Advice::LowUse, 16..=32), (Advice::Sequential, 16..=32), (Advice::Normal, 0..=0)]
    {
        let fake = FakeCard::new();
        let slot = open(&fake);
        slot.set_frame_budget(64 * PAGE);
        let map = |pages| slot.map(Source::anonymous(pages * PAGE).unwrap(), pages * PAGE, rw()).unwrap();
        // All pages of the other one are used: none is read ahead for nothing.
        let (stream, other) = (map(256), map(32));
        // Advice that comes after the pages counts for them too.
        assert_eq!(add_one(&slot, other.va(), 32 * PAGE), 0);
        assert_eq!(add_one(&slot, stream.va(), PAGE), 0);
        stream.advise(advice).unwrap();
        assert_eq!(add_one(&slot, stream.va(), 256 * PAGE), 0);
        let there = (0..32).filter(|&n| fake.page(0, other.va() + n * PAGE).is_some()).count();
        assert!(left.contains(&there), "{advice:?}: {there}");
    }
}

#[test]
fn pages_that_wait_for_their_first_use_stay_as_long_as_others_would() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(64 * PAGE);
    let map = |pages: u64| slot.map(Source::anonymous(pages * PAGE).unwrap(), pages * PAGE, rw()).unwrap();
    let (input, output) = (map(64), map(64));
    input.advise(Advice::WillNeed).unwrap();
    assert_eq!(slot.pager_stats().pages_in, 64);
    // An app that reads in order, and writes what comes of it some pages later.
    assert_eq!(add_one(&slot, input.va(), 24 * PAGE), 0);
    for n in 24..64 {
        assert_eq!(add_one(&slot, output.va() + (n - 24) * PAGE, PAGE), 0);
        assert_eq!(add_one(&slot, input.va() + n * PAGE, PAGE), 0);
    }
    assert!(slot.pager_stats().pages_in <= 64 + 64, "nothing comes twice: {:?}", slot.pager_stats());
    // What nobody uses goes all the same.
    let (unused, other) = (map(64), map(256));
    unused.advise(Advice::WillNeed).unwrap();
    let there = || (0..64).filter(|&n| fake.page(0, unused.va() + n * PAGE).is_some()).count();
    assert!(there() >= 48, "{}", there());
    assert_eq!(add_one(&slot, other.va(), 256 * PAGE), 0);
    assert_eq!(there(), 0);
}

#[test]
fn pages_in_no_order_stay_in_host_memory_while_card_memory_is_full() {
    for (huge, step, count) in [(false, 1, 64), (true, HUGE / PAGE, 4)] {
        let (pages, room) = (count * step, count / 4);
        let (_dir, path) = file(pages);
        let fake = FakeCard::new();
        let slot = open(&fake);
        slot.set_frame_budget(room * step * PAGE);
        let mapping = shared(&slot, &path, pages, rw().huge(huge));
        mapping.advise(Advice::Random).unwrap();
        for round in 1..=2 {
            assert_eq!(add_one(&slot, mapping.va(), pages * PAGE), 0);
            let stats = slot.pager_stats();
            assert_eq!(
                (stats.pages_in, stats.overflowed, stats.evicted),
                (count, count - room, 0),
                "{round}: {stats:?}"
            );
        }
        // Both kinds are written, neighbours or not, and stay.
        mapping.sync(false).unwrap();
        let twice = changed(pages, (0..pages).chain(0..pages));
        assert!(fs::read(&path).unwrap() == twice);
        assert_eq!(slot.pager_stats().pages_in, count);
        // In order they are better loaded; what was changed meanwhile is not lost.
        assert_eq!(add_one(&slot, mapping.va(), pages * PAGE), 0);
        let before = slot.pager_stats();
        mapping.advise(Advice::Normal).unwrap();
        assert_eq!(add_one(&slot, mapping.va(), pages * PAGE), 0);
        let stats = slot.pager_stats();
        assert_eq!(stats.overflowed, before.overflowed);
        assert!(stats.pages_in > before.pages_in && stats.evicted > before.evicted, "{stats:?}");
        mapping.unmap().unwrap();
        assert!(fs::read(&path).unwrap() == changed(pages, (0..4 * pages).map(|n| n % pages)));
    }
}

#[test]
fn host_memory_for_pages_without_room_is_limited_and_comes_back() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(8 * PAGE);
    slot.set_host_budget(32 * PAGE);
    let overflowed = |pages: u64| {
        let (_dir, path) = file(pages);
        let mapping = shared(&slot, &path, pages, rw());
        mapping.advise(Advice::Random).unwrap();
        let before = slot.pager_stats();
        assert_eq!(add_one(&slot, mapping.va(), pages * PAGE), 0);
        let stats = slot.pager_stats();
        // In parts, and the middle one is gone first.
        slot.unmap(mapping.va() + 10 * PAGE..mapping.va() + 20 * PAGE).unwrap();
        mapping.unmap().unwrap();
        assert!(fs::read(&path).unwrap() == changed(pages, 0..pages));
        (stats.overflowed - before.overflowed, stats.evicted - before.evicted)
    };
    assert_eq!(overflowed(32), (24, 0));
    let (overflow, evicted) = overflowed(33);
    assert!(overflow == 0 && evicted > 0, "there is less host memory than the mapping needs: {evicted}");
    assert_eq!(overflowed(32), (24, 0), "what was taken has come back");
    slot.set_host_budget(0);
    assert_eq!(overflowed(32).0, 0);
}

#[test]
fn host_memory_counts_as_long_as_it_is_there_whatever_becomes_of_the_mapping() {
    const PAGES: u64 = HUGE / PAGE + 20; // the last page of 2 MiB is not full
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(HUGE);
    slot.set_host_budget(2 * HUGE);
    let random = || {
        let mapping = slot.map(Source::anonymous(PAGES * PAGE).unwrap(), PAGES * PAGE, rw().huge(true));
        let mapping = mapping.unwrap();
        mapping.advise(Advice::Random).unwrap();
        mapping
    };
    let overflowed = |mapping: &Mapping| {
        let before = slot.pager_stats().overflowed;
        assert_eq!(add_one(&slot, mapping.va(), PAGES * PAGE), 0);
        slot.pager_stats().overflowed - before
    };
    for _ in 0..2 {
        let mapping = random();
        assert_eq!(overflowed(&mapping), 1);
        // The last page becomes small ones, some of which go. The memory is there until all of them have gone.
        slot.unmap(mapping.va() + (PAGES - 3) * PAGE..mapping.va() + PAGES * PAGE).unwrap();
        slot.unmap(mapping.va()..mapping.va() + HUGE).unwrap();
        let other = random();
        assert_eq!(overflowed(&other), 0);
        // A limit that is set counts what is there.
        slot.set_host_budget(2 * HUGE);
        assert_eq!(overflowed(&other), 0);
        other.unmap().unwrap();
        let ranges = fake.mapped_ranges();
        mapping.unmap().unwrap();
        assert_eq!(fake.mapped_ranges(), ranges - 1);
    }
}

#[test]
fn overflowing_pages_and_others_share_card_memory() {
    let (_dir, path) = file(64);
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(32 * PAGE);
    let there =
        |mapping: &Mapping| (0..32).filter(|&n| fake.page(0, mapping.va() + n * PAGE).is_some()).count();
    // Pages that were used and are not any more give way; the card's bits tell.
    let idle = slot.map(Source::anonymous(32 * PAGE).unwrap(), 32 * PAGE, rw()).unwrap();
    assert_eq!(add_one(&slot, idle.va(), 32 * PAGE), 0);
    assert_eq!(there(&idle), 32);
    let random = slot.map(Source::file_mut(&path).unwrap().private(), 64 * PAGE, rw()).unwrap();
    random.advise(Advice::Random).unwrap();
    assert_eq!(add_one(&slot, random.va(), 64 * PAGE), 0);
    let stats = slot.pager_stats();
    assert!(stats.evicted > 0 && stats.overflowed < 64 && there(&idle) < 32, "{stats:?}");
    // What is in use in order pushes them out; they come back, to host memory or to frames that are kept free, with what was written to them.
    let stream = slot.map(Source::anonymous(32 * PAGE).unwrap(), 32 * PAGE, rw()).unwrap();
    for _ in 0..2 {
        assert_eq!(add_one(&slot, stream.va(), 32 * PAGE), 0);
    }
    assert!(there(&stream) >= 24, "{}", there(&stream));
    let before = slot.pager_stats();
    assert_eq!(add_one(&slot, random.va(), 64 * PAGE), 0);
    let after = slot.pager_stats();
    assert!(after.pages_in > before.pages_in && after.overflowed > 0, "{after:?}");
    // A private mapping keeps its changes, in card memory or not, and the file has none.
    random.advise(Advice::Normal).unwrap();
    touch(&slot, &fake, random.va() + 63 * PAGE);
    let last = fake.page(0, random.va() + 63 * PAGE).unwrap();
    assert!(last == changed(64, [63, 63])[(63 * PAGE) as usize..]);
    random.advise(Advice::DontNeed).unwrap();
    touch(&slot, &fake, random.va());
    assert!(fake.page(0, random.va()).unwrap() == pattern(64)[..PAGE as usize]);
    random.unmap().unwrap();
    assert!(fs::read(&path).unwrap() == pattern(64));
}

#[test]
fn pages_are_loaded_before_they_are_needed_and_freed_after() {
    let (_dir, path) = file(200);
    let fake = FakeCard::new();
    let slot = open(&fake);
    let mapping = shared(&slot, &path, 200, rw());
    let va = mapping.va();
    slot.advise(va + 10 * PAGE..va + 110 * PAGE, Advice::WillNeed).unwrap();
    let stats = slot.pager_stats();
    assert_eq!((stats.pages_in, stats.faults), (100, 0), "{stats:?}");
    assert_eq!(add_one(&slot, va + 10 * PAGE, 100 * PAGE), 0);
    assert_eq!(slot.pager_stats().faults, 0, "the app did not wait once");
    slot.advise(va + 10 * PAGE..va + 110 * PAGE, Advice::DontNeed).unwrap();
    assert_eq!(slot.pager_stats().evicted, 100);
    assert!(fs::read(&path).unwrap() == changed(200, 10..110), "changes of a shared mapping are not lost");
    // No more than there is room for, and nothing of a file that cannot be read or ends before.
    slot.set_frame_budget(50 * PAGE);
    mapping.advise(Advice::WillNeed).unwrap();
    assert_eq!(slot.pager_stats().pages_in, 150);
    let beyond = slot.map(Source::anonymous(PAGE).unwrap(), 100 * PAGE, rw()).unwrap();
    beyond.advise(Advice::WillNeed).unwrap();
    assert_eq!(slot.pager_stats().pages_in, 151);
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
    mapping.advise(Advice::DontNeed).unwrap();
    mapping.advise(Advice::WillNeed).unwrap();
    assert_eq!(slot.pager_stats().pages_in, 151);
    // With 2 MiB pages.
    slot.set_frame_budget(u64::MAX);
    let huge = slot.map(Source::anonymous(3 * HUGE).unwrap(), 3 * HUGE, rw().huge(true)).unwrap();
    slot.advise(huge.va()..huge.va() + HUGE + 1, Advice::WillNeed).unwrap();
    assert_eq!(slot.pager_stats().pages_in, 153);
}

#[test]
fn operations_go_on_while_the_program_does_something_else() {
    let (_dir, path) = file(100);
    let fake = FakeCard::new();
    let slot = open(&fake);
    let mapping = shared(&slot, &path, 100, rw());
    let range = mapping.range();
    slot.begin(Operation::Advise(range.clone(), Advice::WillNeed))
        .unwrap()
        .wait(Duration::MAX)
        .unwrap()
        .unwrap();
    assert_eq!(slot.pager_stats().pages_in, 100);
    assert_eq!(add_one(&slot, range.start, 100 * PAGE), 0);
    let mode = SyncMode { durable: true, invalidate: false };
    let synced = slot.begin(Operation::Sync(range.clone(), mode)).unwrap();
    let again = slot.begin(Operation::Sync(range.start..range.end + PAGE, mode)).unwrap();
    // In order: when the second one has ended, so has the first.
    assert!(matches!(again.wait(Duration::MAX), Some(Err(Error::NotMapped { .. }))));
    assert!(synced.is_done());
    synced.wait(Duration::ZERO).unwrap().unwrap();
    assert!(fs::read(&path).unwrap() == changed(100, 0..100));
    assert_eq!(add_one(&slot, range.start, PAGE), 0);
    let unmapped = slot.begin(Operation::Unmap(mapping.leave())).unwrap();
    // The slot stays open until it has ended, though nobody holds it.
    let card = Arc::clone(slot.card());
    drop(slot);
    unmapped.wait(Duration::MAX).unwrap().unwrap();
    assert!(fs::read(&path).unwrap() == changed(100, (0..100).chain([0])));
    assert_eq!(fake.translations(0), 0);
    drop(card);
}
