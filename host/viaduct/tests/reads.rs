// SPDX-License-Identifier: Apache-2.0
//! Pages that come from a disk: requests are under way together, pages go to the card in the order in which they come, and what fails
//! concerns nobody else.

mod common;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::*;
use viaduct::*;

const PAGE: u64 = 4096;

type Done = Box<dyn FnOnce() + Send>;

/// A disk that does what a test says.
#[derive(Default)]
struct Disk {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What it was asked for, in pages: first, and how many.
    asked: Vec<(u64, u64)>,
    held: BTreeMap<u64, Done>,
    /// It answers at once.
    ready: bool,
    /// A page that cannot be read.
    bad: Option<u64>,
}

impl Device for Disk {
    fn read(&self, position: u64, len: u64, done: Done) {
        let mut state = self.state.lock().unwrap();
        let (first, count) = (position / PAGE, len.div_ceil(PAGE));
        state.asked.push((first, count));
        let good = state.bad.is_none_or(|bad| !(first..first + count).contains(&bad));
        if !state.ready {
            state.held.insert(first, done);
        } else if good {
            drop(state);
            done();
        }
    }
}

impl Disk {
    fn asked(&self) -> Vec<(u64, u64)> {
        self.state.lock().unwrap().asked.clone()
    }

    fn respond(&self, page: u64) {
        let done = self.state.lock().unwrap().held.remove(&page);
        done.expect("it was asked for")();
    }

    /// From now on it answers at once, but for a bad page, also what it was asked for before.
    fn be_ready(&self, bad: Option<u64>) {
        let held = {
            let mut state = self.state.lock().unwrap();
            (state.ready, state.bad) = (true, bad);
            std::mem::take(&mut state.held)
        };
        held.into_iter().filter(|(page, _)| Some(*page) != bad).for_each(|(_, done)| done());
    }
}

fn page_of(data: &[u8], page: u64) -> &[u8] {
    &data[(page * PAGE) as usize..][..PAGE as usize]
}

/// A disk that answers at the latest when this is dropped: nobody waits for it for ever if a test fails.
struct Held(Arc<Disk>);

impl std::ops::Deref for Held {
    type Target = Disk;

    fn deref(&self) -> &Disk {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.be_ready(None);
    }
}

/// 64 pages on a disk, which is to be dropped first.
fn on_a_disk(slot: &Slot) -> (Mapping, Held) {
    let disk = Held(Arc::default());
    let source = Source::bytes(SharedBytes::new(pattern(64))).on(disk.0.clone());
    (slot.map(source, 64 * PAGE, MapOptions::new(Prot::READ)).unwrap(), disk)
}

/// Serves what there is.
fn serve(slot: &Slot) {
    assert_eq!(slot.wait_irq(u64::MAX, Duration::from_millis(20)).unwrap(), None);
}

fn miss(fake: &FakeCard, mapping: &Mapping, pages: &[u64]) {
    let accesses: Vec<_> = pages.iter().map(|page| (mapping.va() + page * PAGE, false)).collect();
    fake.miss(0, &accesses);
}

/// Those of these pages that the card has.
fn there(fake: &FakeCard, mapping: &Mapping, pages: &[u64]) -> Vec<u64> {
    let data = pattern(64);
    let there = |page: &u64| match fake.page(0, mapping.va() + page * PAGE) {
        Some(bytes) => {
            assert!(bytes == page_of(&data, *page), "page {page}");
            true
        }
        None => false,
    };
    pages.iter().copied().filter(there).collect()
}

#[test]
fn all_pending_faults_are_asked_for_before_one_is_waited_for() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (mapping, disk) = on_a_disk(&slot);
    let pages = [40, 7, 23, 55, 3];
    miss(&fake, &mapping, &pages);
    serve(&slot);
    assert_eq!(disk.asked(), pages.map(|page| (page, 1)));
    assert!(there(&fake, &mapping, &pages).is_empty());
    // They go to the card in the order in which they come, each at once.
    let mut come = Vec::new();
    for page in [23, 3, 40] {
        disk.respond(page);
        serve(&slot);
        come.push(page);
        come.sort_by_key(|page| pages.iter().position(|other| other == page));
        assert_eq!(there(&fake, &mapping, &pages), come);
    }
    // A second fault on a page that is coming is no second request; others are served meanwhile.
    miss(&fake, &mapping, &[7, 60, 55]);
    let other =
        slot.map(Source::bytes(SharedBytes::new(pattern(64))), PAGE, MapOptions::new(Prot::READ)).unwrap();
    miss(&fake, &other, &[0]);
    serve(&slot);
    assert_eq!(there(&fake, &other, &[0]), [0]);
    assert_eq!(disk.asked()[5..], [(60, 1)]);
    disk.be_ready(None);
    serve(&slot);
    assert_eq!(there(&fake, &mapping, &pages), pages);
    assert_eq!(slot.pager_stats().faults, 9);
    mapping.unmap().unwrap();
    other.unmap().unwrap();
    assert_eq!(fake.translations(0), 0);
}

#[test]
fn a_page_that_cannot_be_read_is_denied_and_its_neighbours_are_not() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (mapping, disk) = on_a_disk(&slot);
    slot.advise(mapping.range(), Advice::Sequential).unwrap();
    let all: Vec<u64> = (0..64).collect();
    miss(&fake, &mapping, &all);
    serve(&slot);
    assert_eq!(disk.asked(), (0..64).step_by(8).map(|page| (page, 8)).collect::<Vec<_>>(), "in pieces");
    // The third piece comes, one page of which is bad.
    disk.state.lock().unwrap().held.remove(&16);
    disk.be_ready(Some(21));
    serve(&slot);
    let good: Vec<u64> = all.iter().copied().filter(|page| *page != 21).collect();
    assert_eq!(there(&fake, &mapping, &all), good);
    let denied = slot.take_denied();
    assert_eq!(denied.iter().map(|denied| denied.va).collect::<Vec<_>>(), [mapping.va() + 21 * PAGE]);
    assert!(denied[0].why.contains("given up"), "{}", denied[0].why);
    let error = mapping.unmap().unwrap_err();
    assert!(error.to_string().contains("given up"), "{error}");
    assert_eq!(fake.translations(0), 0);
}

#[test]
fn a_file_that_shrinks_while_it_is_read_ends_there() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    std::fs::write(&path, pattern(64)).unwrap();
    let held: Arc<Disk> = Arc::default();
    let source = Source::file(&path).unwrap().on(held.clone());
    let mapping = slot.map(source, 64 * PAGE, MapOptions::new(Prot::READ)).unwrap();
    let disk = Held(held);
    slot.advise(mapping.range(), Advice::Random).unwrap();
    miss(&fake, &mapping, &[2, 0, 1]);
    serve(&slot);
    OpenOptions::new().write(true).open(&path).unwrap().set_len(PAGE + 100).unwrap();
    disk.be_ready(None);
    serve(&slot);
    assert_eq!(there(&fake, &mapping, &[0, 2]), [0]);
    let half = fake.page(0, mapping.va() + PAGE).unwrap();
    assert!(half[..100] == page_of(&pattern(64), 1)[..100] && half[100..] == [0; 3996]);
    let denied = slot.take_denied();
    assert_eq!(denied.iter().map(|denied| denied.va).collect::<Vec<_>>(), [mapping.va() + 2 * PAGE]);
    let error = mapping.unmap().unwrap_err();
    assert!(matches!(error, Error::FileShrank { end: 4196, expected: 262_144, .. }), "{error}");
}

#[test]
fn what_changes_mappings_waits_for_reads_that_are_under_way() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (mapping, disk) = on_a_disk(&slot);
    miss(&fake, &mapping, &[5, 9]);
    serve(&slot);
    let response = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(400));
        disk.be_ready(None);
        disk
    });
    // Longer than the card may be without activity: it is not the card that is waited for.
    mapping.unmap().unwrap();
    let disk = response.join().unwrap();
    assert_eq!(fake.translations(0), 0);
    assert_eq!(disk.asked().len(), 2);
    // Those that nobody waits for any more, too.
    let (mapping, disk) = on_a_disk(&slot);
    miss(&fake, &mapping, &[5]);
    serve(&slot);
    let response = std::thread::spawn(move || disk.be_ready(None));
    drop((mapping, slot));
    response.join().unwrap();
    assert_eq!(fake.translations(0), 0);
}

#[test]
fn less_memory_than_is_being_read_is_no_reason_to_wait_for_ever() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (mapping, disk) = on_a_disk(&slot);
    slot.set_frame_budget(4 * PAGE);
    let pages: Vec<u64> = (0..32).map(|n| n * 13 % 64).collect();
    miss(&fake, &mapping, &pages);
    let response = std::thread::spawn({
        let disk = disk.0.clone();
        move || {
            while disk.asked().is_empty() {
                std::thread::sleep(Duration::from_millis(1));
            }
            disk.be_ready(None);
        }
    });
    serve(&slot);
    response.join().unwrap();
    serve(&slot);
    let asked: Vec<u64> = disk.asked().iter().flat_map(|(page, count)| *page..page + count).collect();
    assert!(pages.iter().all(|page| asked.contains(page)), "{asked:?}");
    assert!(slot.pager_stats().faults >= 32 && slot.take_denied().is_empty());
    mapping.unmap().unwrap();
}

/// The system forgets a file's bytes, if it will.
fn forget(path: &std::path::Path) {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    // SAFETY: the descriptor is open; no memory is passed.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

#[test]
fn files_that_are_not_in_memory_are_read_by_threads() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("data");
    std::fs::write(&path, pattern(64)).unwrap();
    for source in [Source::file(&path).unwrap(), Source::file(&path).unwrap().private()] {
        forget(&path);
        let mapping = slot.map(source, 64 * PAGE, MapOptions::new(Prot::READ)).unwrap();
        let pages: Vec<u64> = (0..64).map(|n| n * 13 % 64).collect();
        miss(&fake, &mapping, &pages);
        while there(&fake, &mapping, &pages).len() < 64 {
            serve(&slot);
        }
        mapping.unmap().unwrap();
    }
}

#[test]
fn what_is_loaded_on_request_is_asked_for_as_it_comes_and_never_all_at_once() {
    const PAGES: u64 = 1024;
    let fake = FakeCard::new();
    let slot = open(&fake);
    let disk: Arc<Disk> = Arc::default();
    let source = Source::bytes(SharedBytes::new(pattern(PAGES))).on(disk.clone());
    let options = MapOptions::new(Prot::READ).huge(false);
    let mapping = slot.map(source, PAGES * PAGE, options).unwrap();
    let asked = || disk.asked().iter().map(|(_, count)| count).sum::<u64>();
    let await_more = |than: u64| {
        let end = std::time::Instant::now() + Duration::from_secs(10);
        while asked() <= than && std::time::Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        asked()
    };
    std::thread::scope(|scope| {
        let disk = Held(disk.clone());
        let load = scope.spawn(|| mapping.advise(Advice::WillNeed));
        // More than one batch, while none has come.
        assert!(await_more(255) <= 320);
        std::thread::sleep(Duration::from_millis(50));
        let before = asked();
        assert!((256..=320).contains(&before), "{before}");
        // The next one is asked for when a few have come.
        disk.respond(8);
        disk.respond(0);
        disk.respond(24);
        assert!(await_more(before) > before);
        disk.be_ready(None);
        load.join().unwrap().unwrap();
    });
    let stats = slot.pager_stats();
    assert_eq!((stats.pages_in, asked()), (PAGES, PAGES), "{stats:?}");
}

/// A disk that answers each request when it is told to.
#[derive(Default)]
struct Slow(Mutex<Vec<Option<Done>>>);

impl Device for Slow {
    fn read(&self, _: u64, _: u64, done: Done) {
        self.0.lock().unwrap().push(Some(done));
    }
}

impl Slow {
    fn asked(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn respond(&self, nth: usize) {
        let done = self.0.lock().unwrap()[nth].take();
        done.expect("it has not been answered")();
    }
}

/// It answers at the latest when this is dropped.
struct Slowly(Arc<Slow>);

impl std::ops::Deref for Slowly {
    type Target = Slow;

    fn deref(&self) -> &Slow {
        &self.0
    }
}

impl Drop for Slowly {
    fn drop(&mut self) {
        let left: Vec<Done> = self.0.0.lock().unwrap().iter_mut().filter_map(Option::take).collect();
        left.into_iter().for_each(|done| done());
    }
}

#[test]
fn memory_that_a_read_may_yet_write_is_not_used_before_the_read_has_ended() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let slow = Arc::new(Slow::default());
    let source = Source::bytes(SharedBytes::new(pattern(64))).on(slow.clone());
    let mapping = slot.map(source, 64 * PAGE, MapOptions::new(Prot::READ_WRITE).on_host()).unwrap();
    let disk = Slowly(slow);
    let mapped = |page: u64| fake.page(0, mapping.va() + page * PAGE).is_some();
    slot.advise(mapping.range(), Advice::Random).unwrap();
    miss(&fake, &mapping, &[5]);
    serve(&slot);
    assert_eq!(disk.asked(), 1);
    // The link fails for a moment: whoever waits for the read gives it up.
    fake.be_deaf(true);
    slot.pager_stats();
    fake.be_deaf(false);
    assert!(slot.wait_irq(u64::MAX, Duration::from_millis(20)).is_err(), "it is told");
    // Others are served; those on the page wait, for longer than the card may be without activity.
    miss(&fake, &mapping, &[5, 6]);
    assert_eq!(slot.wait_irq(u64::MAX, Duration::from_millis(700)).unwrap(), None);
    assert_eq!(disk.asked(), 2, "page 6 only");
    disk.respond(1);
    serve(&slot);
    slot.advise(mapping.va() + 5 * PAGE..mapping.va() + 7 * PAGE, Advice::WillNeed).unwrap();
    assert_eq!(disk.asked(), 2);
    assert!(!mapped(5) && mapped(6));
    disk.respond(0);
    serve(&slot);
    assert_eq!(disk.asked(), 3);
    disk.respond(2);
    serve(&slot);
    assert!(mapped(5) && mapped(6));
    assert!(slot.take_denied().is_empty());
    // A mapping that goes while a read that was given up is under way leaves it its memory.
    miss(&fake, &mapping, &[9]);
    serve(&slot);
    fake.be_deaf(true);
    slot.pager_stats();
    fake.be_deaf(false);
    assert!(slot.wait_irq(u64::MAX, Duration::from_millis(20)).is_err());
    let ranges = fake.mapped_ranges();
    mapping.unmap().unwrap();
    assert_eq!(fake.mapped_ranges(), ranges);
    disk.respond(3);
    assert_eq!(fake.mapped_ranges(), ranges - 1);
    assert_eq!(fake.translations(0), 0);
}
