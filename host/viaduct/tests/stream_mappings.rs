// SPDX-License-Identifier: Apache-2.0
//! Pipes and sockets mapped into the address space of a slot, on a fake card.

mod common;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::*;
use viaduct::*;

const PAGE: u64 = 4096;
const WINDOW: u64 = 16 * PAGE;
const LONG: Duration = Duration::from_secs(60);

fn open(fake: &Arc<FakeCard>) -> Slot {
    let short = Duration::from_millis(300);
    let timeouts = Timeouts { stall: short, busy: short, control: short };
    let card = Card::open_with(fake.clone(), timeouts).unwrap();
    let slot = card.slot(0).unwrap();
    slot.load(&IMAGE).unwrap();
    slot
}

fn pattern(len: u64) -> Vec<u8> {
    (0..len).map(|i| (i * 13 + (i >> 12) * 5) as u8).collect()
}

/// The bytes of one page of it, as the card has them.
fn page(data: &[u8], n: u64) -> Vec<u8> {
    let mut page = data[(n * PAGE) as usize..].to_vec();
    page.resize(PAGE as usize, 0);
    page
}

fn read_only() -> MapOptions {
    MapOptions::new(Prot::READ).window(WINDOW).patience(LONG)
}

fn pipe() -> (File, File) {
    let (from, to) = nix::unistd::pipe().unwrap();
    (File::from(from), File::from(to))
}

fn map(slot: &Slot, from: impl Into<OwnedFd>, options: MapOptions) -> Mapping {
    slot.map(Source::stream(from, "the pipe").unwrap(), 1 << 30, options).unwrap()
}

/// Lets the app add 1 to bytes, which it reads first.
fn add_one(slot: &Slot, va: u64, len: u64) -> Result<MemoryReport> {
    let base = Register { offset: REG_BASE, width: 64 };
    let bytes = Register { offset: REG_BYTES, width: 64 };
    let range = MemoryRange { va, len, base, bytes: Some(bytes) };
    MemoryJob::new(slot, REG_START).range(range).done(REG_DONE).run()
}

/// Serves the slot for a moment.
fn serve(slot: &Slot) {
    assert_eq!(slot.wait_irq(u64::MAX, Duration::from_millis(30)).unwrap(), None);
}

/// Serves the slot until something has happened.
fn serve_until(slot: &Slot, what: &str, mut happened: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        serve(slot);
    }
}

/// Reads a page through the card.
fn load(slot: &Slot, fake: &FakeCard, va: u64) -> Vec<u8> {
    fake.miss(0, &[(va, false)]);
    serve_until(slot, "the page is loaded", || fake.page(0, va).is_some());
    fake.page(0, va).unwrap()
}

/// A time that is no limit, as `Duration::MAX` is for other waits.
#[test]
fn an_access_may_wait_for_ever() {
    let fake = FakeCard::new();
    let timeouts = Timeouts { control: Duration::MAX, ..Timeouts::default() };
    let card = Card::open_with(fake.clone(), timeouts).unwrap();
    let slot = card.slot(0).unwrap();
    slot.load(&IMAGE).unwrap();
    let (from, mut to) = pipe();
    let mapping = map(&slot, from, read_only().patience(Duration::MAX));
    fake.miss(0, &[(mapping.va(), false)]);
    serve(&slot);
    assert!(fake.page(0, mapping.va()).is_none() && slot.take_denied().is_empty());
    let data = pattern(PAGE);
    to.write_all(&data).unwrap();
    serve_until(&slot, "the page is loaded", || fake.page(0, mapping.va()).is_some());
    assert!(fake.page(0, mapping.va()).unwrap() == data);
}

/// Reads a page that is denied; why.
fn denial(slot: &Slot, fake: &FakeCard, va: u64) -> String {
    fake.miss(0, &[(va, false)]);
    let mut denied = Vec::new();
    serve_until(slot, "the access is denied", || {
        denied.extend(slot.take_denied());
        !denied.is_empty()
    });
    assert_eq!((denied.len(), denied[0].va), (1, va));
    assert!(fake.page(0, va).is_none());
    denied[0].why.clone()
}

#[test]
fn pages_are_those_of_the_stream_in_order_and_its_length_is_told() {
    let data = pattern(100 * PAGE + 100);
    let mut sources: Vec<(OwnedFd, Box<dyn Write + Send>)> = Vec::new();
    let (from, to) = pipe();
    sources.push((from.into(), Box::new(to)));
    let (from, to) = UnixStream::pair().unwrap();
    sources.push((from.into(), Box::new(to)));
    for (from, mut to) in sources {
        let fake = FakeCard::new();
        let slot = open(&fake);
        let mapping = map(&slot, from, read_only());
        let sent = data.clone();
        let writer =
            std::thread::spawn(move || sent.chunks(777).for_each(|part| to.write_all(part).unwrap()));
        for n in 0..=100 {
            let va = mapping.va() + n * PAGE;
            let there = fake.page(0, va).unwrap_or_else(|| load(&slot, &fake, va));
            assert!(there == page(&data, n)[..], "page {n}");
        }
        writer.join().unwrap();
        let why = denial(&slot, &fake, mapping.va() + 101 * PAGE);
        assert_eq!(why, "the stream ended after 409700 bytes, before it");
        let end = StreamState { received: data.len() as u64, ended: true };
        assert_eq!(mapping.stream(), Some(end));
        mapping.unmap().unwrap();
    }
}

#[test]
fn an_access_waits_for_its_page_and_other_mappings_go_on() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (from, mut to) = pipe();
    let mapping = map(&slot, from, read_only());
    let other = slot.map(Source::bytes(SharedBytes::new(pattern(PAGE))), PAGE, MapOptions::new(Prot::READ));
    let other = other.unwrap();
    let data = pattern(2 * PAGE);
    to.write_all(&data[..5000]).unwrap();
    fake.miss(0, &[(mapping.va() + PAGE, false)]);
    // Longer than the slot may be without activity.
    let begun = Instant::now();
    assert_eq!(slot.wait_irq(u64::MAX, Duration::from_millis(1000)).unwrap(), None);
    assert!(begun.elapsed() >= Duration::from_millis(1000));
    assert!(fake.page(0, mapping.va() + PAGE).is_none());
    assert!(load(&slot, &fake, other.va()) == data[..4096]);
    to.write_all(&data[5000..]).unwrap();
    serve_until(&slot, "the page comes", || fake.page(0, mapping.va() + PAGE).is_some());
    assert!(fake.page(0, mapping.va() + PAGE).unwrap() == page(&data, 1));
    assert!(load(&slot, &fake, mapping.va()) == page(&data, 0));
    assert!(slot.take_denied().is_empty());
}

#[test]
fn an_access_without_data_is_denied_when_its_time_is_over_and_may_be_tried_again() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (from, mut to) = pipe();
    let mapping = map(&slot, from, read_only().patience(Duration::from_millis(200)));
    to.write_all(&[1; 10]).unwrap();
    let begun = Instant::now();
    let why = denial(&slot, &fake, mapping.va());
    assert_eq!(why, "the stream's data did not come within 200ms: 10 bytes were read");
    let took = begun.elapsed();
    assert!((200..2000).contains(&took.as_millis()), "{took:?}");
    to.write_all(&[1; 4086]).unwrap();
    assert!(load(&slot, &fake, mapping.va()) == [1; 4096]);
}

#[test]
fn a_window_stays_and_what_the_stream_has_passed_is_denied() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (from, mut to) = pipe();
    let mapping = map(&slot, from, read_only());
    let data = pattern(200 * PAGE);
    let sent = data.clone();
    let writer = std::thread::spawn(move || to.write_all(&sent));
    let at = |n: u64| mapping.va() + n * PAGE;
    // What is read ahead is bounded.
    assert!(load(&slot, &fake, at(0)) == page(&data, 0));
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(mapping.stream().unwrap().received, PAGE + WINDOW / 2);
    // An access far ahead waits for everything before it.
    assert!(load(&slot, &fake, at(100)) == page(&data, 100));
    serve_until(&slot, "it is read ahead", || mapping.stream().unwrap().received == 101 * PAGE + WINDOW / 2);
    assert!(load(&slot, &fake, at(93)) == page(&data, 93));
    serve(&slot);
    assert!(fake.page(0, at(0)).is_none(), "it left the card");
    for n in [0, 92] {
        let why = denial(&slot, &fake, at(n));
        assert_eq!(why, "the stream has passed it: of 446464 bytes that were read, the last 65536 are kept");
    }
    // Pages of the window may leave the card and come back.
    slot.advise(at(93)..at(101), Advice::DontNeed).unwrap();
    assert!(fake.page(0, at(100)).is_none());
    assert!(load(&slot, &fake, at(100)) == page(&data, 100));
    mapping.unmap().unwrap();
    let end = writer.join().unwrap();
    assert_eq!(end.unwrap_err().kind(), io::ErrorKind::BrokenPipe, "the pipe is closed");
}

#[test]
fn an_unmap_ends_accesses_that_wait() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (from, _to) = pipe();
    let mapping = map(&slot, from, read_only());
    let va = mapping.va();
    let denied = std::thread::scope(|scope| {
        let run = scope.spawn(|| add_one(&slot, va, PAGE).unwrap());
        std::thread::sleep(Duration::from_millis(100));
        assert!(!run.is_finished());
        let begun = Instant::now();
        mapping.unmap().unwrap();
        let report = run.join().unwrap();
        assert!(begun.elapsed() < Duration::from_secs(10));
        report.denied
    });
    let told = slot.take_denied();
    assert!(denied > 0 && told.len() as u64 == denied);
    assert_eq!((told[0].va, &*told[0].why), (va, "its mapping was removed"));
}

#[test]
fn a_slot_that_closes_does_not_wait_for_the_stream() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (from, _to) = pipe();
    let mapping = map(&slot, from, read_only());
    fake.miss(0, &[(mapping.va(), false)]);
    serve(&slot);
    mapping.leave();
    let (card, begun) = (Arc::clone(slot.card()), Instant::now());
    drop(slot);
    assert!(begun.elapsed() < Duration::from_secs(5));
    card.slot(0).unwrap();
    assert_eq!(fake.mapped_ranges(), 0);
}

#[test]
fn a_reset_forgets_accesses_that_wait() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (from, mut to) = pipe();
    let mapping = map(&slot, from, read_only().patience(Duration::from_millis(200)));
    fake.miss(0, &[(mapping.va(), false)]);
    serve(&slot);
    slot.reset().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    serve(&slot);
    assert!(slot.take_denied().is_empty());
    to.write_all(&[7; 4096]).unwrap();
    assert!(load(&slot, &fake, mapping.va()) == [7; 4096]);
}

#[test]
fn the_descriptor_stays_as_it_was() {
    let flags = |fd: &File| nix::fcntl::fcntl(fd.as_raw_fd(), nix::fcntl::FcntlArg::F_GETFL).unwrap();
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (from, mut to) = pipe();
    let before = flags(&from);
    let mapping = map(&slot, from.try_clone().unwrap(), read_only());
    to.write_all(&[3; 4096]).unwrap();
    load(&slot, &fake, mapping.va());
    assert_eq!(flags(&from), before);
}

#[test]
fn a_fifo_may_have_no_writer_yet() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fifo");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let fake = FakeCard::new();
    let slot = open(&fake);
    let mapping = slot.map(Source::fifo(&path).unwrap(), PAGE, read_only()).unwrap();
    fake.miss(0, &[(mapping.va(), false)]);
    serve(&slot);
    assert!(slot.take_denied().is_empty());
    let mut to = OpenOptions::new().write(true).open(&path).unwrap();
    to.write_all(&[9; 100]).unwrap();
    drop(to);
    serve_until(&slot, "the page comes", || fake.page(0, mapping.va()).is_some());
    let mut first = vec![9; 100];
    first.resize(PAGE as usize, 0);
    assert_eq!(fake.page(0, mapping.va()).unwrap(), first);
}

fn write_only() -> MapOptions {
    MapOptions::new(Prot::WRITE).window(WINDOW).patience(LONG)
}

fn map_sink(slot: &Slot, to: impl Into<OwnedFd>, len: u64, options: MapOptions) -> Mapping {
    slot.map(Source::sink(to, "the pipe").unwrap(), len, options).unwrap()
}

/// Lets the app write; `false` if that is denied.
fn store(slot: &Slot, fake: &FakeCard, va: u64, data: &[u8]) -> bool {
    let begun = Instant::now();
    loop {
        if let Some(allowed) = fake.write(0, va, data) {
            return allowed;
        }
        slot.wait_irq(u64::MAX, Duration::from_millis(1)).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(20), "the access to {va:#x} is answered");
    }
}

/// Lets the app write pages of data to where they belong.
fn store_pages(slot: &Slot, fake: &FakeCard, va: u64, data: &[u8], pages: impl IntoIterator<Item = u64>) {
    for n in pages {
        let bytes = &data[(n * PAGE) as usize..];
        assert!(store(slot, fake, va + n * PAGE, &bytes[..bytes.len().min(PAGE as usize)]), "page {n}");
    }
}

/// All that comes from a stream, once it has ended.
fn reader(mut from: impl io::Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let mut piece = [0; 777];
        while let Ok(got @ 1..) = from.read(&mut piece) {
            all.extend_from_slice(&piece[..got]);
        }
        all
    })
}

/// Bytes that have been in a pipe, and are taken out.
fn available(from: &mut File) -> Vec<u8> {
    let mut bytes = vec![0; 1 << 20];
    let flags = nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK);
    nix::fcntl::fcntl(from.as_raw_fd(), flags).unwrap();
    let got = io::Read::read(from, &mut bytes).unwrap_or(0);
    bytes.truncate(got);
    bytes
}

#[test]
fn what_the_app_writes_arrives_in_order_and_with_the_length_of_the_mapping() {
    let data = pattern(300 * PAGE + 100);
    let mut sinks: Vec<(OwnedFd, Box<dyn io::Read + Send>)> = Vec::new();
    let (from, to) = pipe();
    sinks.push((to.into(), Box::new(from)));
    let (from, to) = UnixStream::pair().unwrap();
    sinks.push((to.into(), Box::new(from)));
    for (to, from) in sinks {
        let fake = FakeCard::new();
        let slot = open(&fake);
        let mapping = map_sink(&slot, to, data.len() as u64, write_only());
        let read = reader(from);
        store_pages(&slot, &fake, mapping.va(), &data, 0..=300);
        assert!(slot.pager_stats().pages_in < 310 && slot.take_denied().is_empty());
        mapping.unmap().unwrap();
        assert!(read.join().unwrap() == data);
    }
}

/// With frames for less than the window, pages leave in any order, and come back as they were.
#[test]
fn pages_of_half_a_window_are_written_in_any_order_and_may_be_evicted() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(3 * PAGE);
    let (from, to) = pipe();
    let mapping = map_sink(&slot, to, 48 * PAGE, write_only());
    let read = reader(from);
    let data = pattern(48 * PAGE);
    for begin in (0..48).step_by(8) {
        // Half of each page at first, the rest later.
        for n in (begin..begin + 8).rev().chain((begin..begin + 8).step_by(3)) {
            let bytes = page(&data, n);
            assert!(store(&slot, &fake, mapping.va() + n * PAGE, &bytes[..2048]), "{n}");
        }
        for n in begin..begin + 8 {
            let bytes = page(&data, n);
            assert!(store(&slot, &fake, mapping.va() + n * PAGE + 2048, &bytes[2048..]), "{n}");
        }
    }
    assert!(slot.pager_stats().evicted > 48);
    mapping.unmap().unwrap();
    assert!(read.join().unwrap() == data);
}

#[test]
fn a_sync_sends_the_bytes_of_its_range_and_an_unmap_may_end_within_a_page() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (mut from, to) = pipe();
    let mapping = map_sink(&slot, to, 1 << 30, write_only());
    let (va, data) = (mapping.va(), pattern(5 * PAGE));
    store_pages(&slot, &fake, va, &data, 0..3);
    assert!(available(&mut from).is_empty(), "nothing is sent before it is complete");
    slot.sync(va..va + 5000, SyncMode::default()).unwrap();
    assert!(available(&mut from) == data[..5000]);
    slot.sync(va..va + 5000, SyncMode::default()).unwrap();
    assert!(available(&mut from).is_empty(), "nothing is sent twice");
    // What was sent stays as it was, the rest of its page may yet change.
    assert!(!store(&slot, &fake, va + 4000, &[1; 96]) && store(&slot, &fake, va + 6000, &[2; 100]));
    assert!(slot.take_denied()[0].why.contains("passed it"));
    mapping.sync(false).unwrap();
    let mut rest = data[5000..3 * PAGE as usize].to_vec();
    rest[1000..1100].fill(2);
    assert!(available(&mut from) == rest);
    store_pages(&slot, &fake, va, &data, 3..5);
    slot.unmap(va..va + 20_001).unwrap();
    assert!(available(&mut from) == data[3 * PAGE as usize..20_001]);
    mapping.unmap().unwrap();
    let mut more = Vec::new();
    assert!(io::Read::read_to_end(&mut from, &mut more).is_ok() && more.is_empty());
}

/// Of a page that the app is inside of, too, what it has written already.
#[test]
fn syncs_while_the_app_goes_on_lose_nothing() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    slot.set_frame_budget(12 * PAGE);
    let (from, to) = pipe();
    let data = pattern(400 * PAGE);
    let mapping = map_sink(&slot, to, data.len() as u64, write_only());
    let (va, begun) = (mapping.va(), AtomicUsize::new(0));
    let read = reader(from);
    std::thread::scope(|scope| {
        let syncs = scope.spawn(|| {
            let mut count = 0;
            while begun.load(Ordering::Acquire) < data.len() {
                let end = va + begun.load(Ordering::Acquire) as u64;
                slot.sync(va..end, SyncMode::default()).unwrap();
                count += 1;
            }
            count
        });
        let mut at = 0;
        while at < data.len() {
            let end = (at + 1000).min((at / PAGE as usize + 1) * PAGE as usize);
            assert!(store(&slot, &fake, va + at as u64, &data[at..end]));
            begun.store(end, Ordering::Release);
            at = end;
        }
        assert!(syncs.join().unwrap() > 3);
    });
    mapping.unmap().unwrap();
    assert!(read.join().unwrap() == data);
}

#[test]
fn a_slow_reader_stops_the_app_and_memory_stays_bounded() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (from, to) = UnixStream::pair().unwrap();
    let mapping = map_sink(&slot, to, 1 << 30, write_only());
    let (va, data) = (mapping.va(), pattern(1000 * PAGE));
    let mut n = 0;
    let mut stopped = Instant::now();
    // Longer than the slot may be without activity.
    while n < 1000 && stopped.elapsed() < Duration::from_millis(500) {
        match fake.write(0, va + n * PAGE, &page(&data, n)[..PAGE as usize]) {
            Some(allowed) => {
                assert!(allowed);
                (n, stopped) = (n + 1, Instant::now());
            }
            None => assert_eq!(slot.wait_irq(u64::MAX, Duration::from_millis(10)).unwrap(), None),
        }
    }
    // The window, and what the socket holds.
    assert!((16..300).contains(&n), "{n}");
    assert!(slot.take_denied().is_empty());
    // Another mapping goes on meanwhile.
    let other = slot.map(Source::bytes(SharedBytes::new(pattern(PAGE))), PAGE, MapOptions::new(Prot::READ));
    assert!(load(&slot, &fake, other.unwrap().va()) == pattern(PAGE));
    let read = reader(from);
    store_pages(&slot, &fake, va, &data, n..1000);
    mapping.unmap().unwrap();
    assert!(read.join().unwrap() == data);
}

#[test]
fn a_reader_that_never_reads_is_waited_for_with_a_limit() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (_from, to) = pipe();
    let options = write_only().patience(Duration::from_millis(200));
    let mapping = map_sink(&slot, to, 1 << 30, options);
    let (va, data) = (mapping.va(), pattern(100 * PAGE));
    let denied = (0..100).find(|n| !store(&slot, &fake, va + n * PAGE, &page(&data, *n))).unwrap();
    // A pipe holds 64 KiB.
    assert!((16..40).contains(&denied), "{denied}");
    let why = slot.take_denied()[0].why.clone();
    assert!(why.contains("the stream took 65536 of") && why.contains("within 200ms"), "{why}");
    let begun = Instant::now();
    let error = mapping.sync(false).unwrap_err();
    assert_eq!(error.errno(), libc::ETIMEDOUT);
    let text = error.to_string();
    assert!(text.starts_with("the pipe: cannot write: its reader took nothing for 200ms"), "{text}");
    assert_eq!(mapping.unmap().unwrap_err().errno(), libc::ETIMEDOUT);
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[test]
fn what_a_sync_has_covered_stays_as_it_was_though_it_is_not_sent_yet() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (mut from, mut to) = pipe();
    to.write_all(&[0; 65536]).unwrap(); // it is full
    let mapping = map_sink(&slot, to, PAGE, write_only().patience(Duration::from_millis(100)));
    let va = mapping.va();
    assert!(store(&slot, &fake, va, &[1; 4096]));
    assert_eq!(slot.sync(va..va + 100, SyncMode::default()).unwrap_err().errno(), libc::ETIMEDOUT);
    assert!(store(&slot, &fake, va + 50, &[2; 100]));
    assert_eq!(available(&mut from).len(), 65536);
    mapping.unmap().unwrap();
    let mut expected = vec![1; 4096];
    expected[100..150].fill(2);
    assert!(available(&mut from) == expected);
}

#[test]
fn a_reader_that_closes_is_an_error_of_the_access_and_of_the_end() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let mut sinks: Vec<(OwnedFd, Box<dyn io::Read + Send>)> = Vec::new();
    let (from, to) = pipe();
    sinks.push((to.into(), Box::new(from)));
    let (from, to) = UnixStream::pair().unwrap();
    sinks.push((to.into(), Box::new(from)));
    for (to, mut from) in sinks {
        let mapping = map_sink(&slot, to, 1 << 30, write_only());
        let (va, data) = (mapping.va(), pattern(100 * PAGE));
        store_pages(&slot, &fake, va, &data, 0..9);
        let mut got = [0; 10];
        slot.sync(va..va + 10, SyncMode::default()).unwrap();
        from.read_exact(&mut got).unwrap();
        assert_eq!(got, data[..10]);
        drop(from);
        let error = mapping.sync(false).unwrap_err();
        assert_eq!(error.errno(), libc::EPIPE, "{error}");
        assert!(error.to_string().contains("its reader has closed it; 10 bytes are written"), "{error}");
        assert!(!store(&slot, &fake, va + 20 * PAGE, &[1]));
        assert!(slot.take_denied()[0].why.contains("Broken pipe"));
        assert_eq!(mapping.unmap().unwrap_err().errno(), libc::EPIPE);
    }
}

#[test]
fn what_is_missing_is_named_and_what_follows_is_not_sent() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (mut from, to) = pipe();
    let options = write_only().patience(Duration::from_millis(200));
    let mapping = map_sink(&slot, to, 1 << 30, options);
    let (va, data) = (mapping.va(), pattern(100 * PAGE));
    store_pages(&slot, &fake, va, &data, [0, 2, 15]);
    assert!(!store(&slot, &fake, va + 90 * PAGE, &[1]));
    let why = slot.take_denied()[0].why.clone();
    assert!(why.starts_with("byte 4096 of the stream has not been written within 200ms"), "{why}");
    assert!(available(&mut from) == page(&data, 0));
    let error = mapping.sync(false).unwrap_err().to_string();
    assert!(
        error.contains("bytes 4096 to 65536") && error.contains("byte 4096 was never written"),
        "{error}"
    );
    assert!(available(&mut from).is_empty());
    // It may yet be written.
    store_pages(&slot, &fake, va, &data, [1]);
    slot.sync(va..va + 3 * PAGE, SyncMode::default()).unwrap();
    assert!(available(&mut from) == data[PAGE as usize..3 * PAGE as usize]);
    let error = mapping.unmap().unwrap_err().to_string();
    assert!(error.contains("bytes 12288 to 65536"), "{error}");
}

#[test]
fn a_slot_that_closes_and_a_mapping_in_its_place_deliver_first() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (from, to) = pipe();
    let read = reader(from);
    let data = pattern(10 * PAGE);
    let range = map_sink(&slot, to, 10 * PAGE, write_only()).leave();
    store_pages(&slot, &fake, range.start, &data, 0..10);
    let (from, to) = pipe();
    let options = write_only().replacing(range.start);
    map_sink(&slot, to, 10 * PAGE, options).leave();
    assert!(read.join().unwrap() == data);
    let read = reader(from);
    store_pages(&slot, &fake, range.start, &data, (0..10).rev());
    slot.close().unwrap();
    assert!(read.join().unwrap() == data);
}

#[test]
fn what_is_not_possible_is_refused() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let refused = |options: MapOptions| {
        let (from, _to) = pipe();
        slot.map(Source::stream(from, "the pipe").unwrap(), PAGE, options).map(drop).unwrap_err().to_string()
    };
    for (options, why) in [
        (MapOptions::new(Prot::READ_WRITE), "reading only"),
        (read_only().private(), "shared"),
        (read_only().offset(PAGE), "offset 0"),
        (read_only().on_host(), "host memory"),
        (read_only().huge(true), "4 KiB"),
        (read_only().window(0), "64 KiB"),
    ] {
        let text = refused(options);
        assert!(text.starts_with("the pipe: a stream: ") && text.contains(why), "{text}");
    }
    let (_from, to) = pipe();
    let both = slot.map(Source::sink(to, "the pipe").unwrap(), PAGE, MapOptions::new(Prot::READ_WRITE));
    assert!(both.map(drop).unwrap_err().to_string().contains("writing only"));
    let (from, _to) = pipe();
    assert!(matches!(Source::sink(from, "the pipe"), Err(Error::Access { what: "writing", .. })));
    let (from, _to) = pipe();
    let private = Source::stream(from, "the pipe").unwrap().private();
    assert!(slot.map(private, PAGE, read_only()).map(drop).unwrap_err().to_string().contains("shared"));
    let (_from, to) = pipe();
    assert!(matches!(Source::stream(to, "the pipe"), Err(Error::Access { what: "reading", .. })));
    let (datagrams, _other) = std::os::unix::net::UnixDatagram::pair().unwrap();
    assert!(Source::stream(datagrams, "it").unwrap_err().to_string().contains("a socket of messages"));
    let file = File::open("/dev/null").unwrap();
    assert!(Source::stream(file, "it").unwrap_err().to_string().contains("a character device"));
    let (socket, other) = UnixStream::pair().unwrap();
    let mapping = map(&slot, socket, read_only());
    other.shutdown(Shutdown::Both).unwrap();
    assert!(denial(&slot, &fake, mapping.va()).contains("ended after 0 bytes"));
}
