// SPDX-License-Identifier: Apache-2.0
//! Files through the streams of an app, on a fake card that can be made to misbehave.

mod common;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::*;
use proptest::prelude::*;
use viaduct::*;

fn quick() -> Timeouts {
    let short = Duration::from_millis(200);
    Timeouts { stall: short, busy: short, control: short }
}

fn open(fake: &Arc<FakeCard>) -> Slot {
    let card = Card::open_with(fake.clone(), quick()).unwrap();
    let slot = card.slot(0).unwrap();
    slot.load(&IMAGE).unwrap();
    slot
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + (i >> 8) * 7 + (i >> 16)) as u8).collect()
}

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        fs::write(self.path(name), content).unwrap();
        self.path(name)
    }
}

fn bytes(content: Vec<u8>) -> (SharedBytes, Endpoint) {
    let shared = SharedBytes::new(content);
    (shared.clone(), Endpoint::bytes("x", shared))
}

#[test]
fn a_file_passes_through_and_comes_out_the_same() {
    let (fake, dir) = (FakeCard::new(), Dir::new());
    let slot = open(&fake);
    for len in [1, 63, 64, 65, 4095, 4096, 4097, 100_000, 1 << 20, (5 << 20) + 77] {
        let input = dir.file("in", &pattern(len));
        let mut last = None;
        let report = StreamJob::new(&slot)
            .input(0, Endpoint::File(input))
            .output(0, Endpoint::File(dir.path("out")), OutLength::Same)
            .on_progress(|p| last = Some(p))
            .run()
            .unwrap();
        assert_eq!(fs::read(dir.path("out")).unwrap(), pattern(len), "length {len}");
        assert_eq!((report.bytes_in, report.bytes_out), (len as u64, len as u64));
        assert!(report.cycles > 0);
        let last = last.unwrap();
        assert_eq!((last.bytes_in, last.total_in, last.bytes_out), (len as u64, len as u64, len as u64));
        assert_eq!(fake.translations(0), 0, "windows are removed");
    }
    assert_eq!(slot.strays(), 0);
    drop(slot);
    assert_eq!(fake.mapped_ranges(), 0, "no memory stays mapped");
    assert_eq!(fake.ctrl(0), 0b1100, "the slot is held in reset");
}

#[test]
fn a_message_app_answers_with_its_length_and_an_app_of_any_length_ends_itself() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let mut sum = 0u64;
    fake.set_app(0, move |data: &[u8], last: bool, out: &mut Vec<u8>| {
        sum += data.iter().map(|b| u64::from(*b)).sum::<u64>();
        if last {
            out.extend(std::mem::take(&mut sum).to_le_bytes());
        }
        last
    });
    for length in [OutLength::Message(8), OutLength::Any, OutLength::Any, OutLength::Message(8)] {
        let (_, input) = bytes(vec![3; 10_000]);
        let (result, output) = bytes(vec![9; 5]);
        StreamJob::new(&slot).input(0, input).output(0, output, length).run().unwrap();
        assert_eq!(result.to_vec(), 30_000u64.to_le_bytes(), "{length:?}");
    }
}

#[test]
fn two_streams_run_side_by_side() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (out0, to0) = bytes(vec![]);
    let (out1, to1) = bytes(vec![]);
    StreamJob::new(&slot)
        .input(0, bytes(pattern(300_000)).1)
        .input(1, bytes(pattern(77)).1)
        .output(0, to0, OutLength::Same)
        .output(1, to1, OutLength::Same)
        .chunk_bytes(5000)
        .run()
        .unwrap();
    assert_eq!(out0.take(), pattern(300_000));
    assert_eq!(out1.take(), pattern(77));
}

#[test]
fn card_memory_is_a_source_and_a_sink() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let data = pattern(1_000_000);
    let (_, input) = bytes(data.clone());
    let there = Endpoint::parse("card:0x400000000+1M").unwrap();
    let back = Endpoint::Card { addr: 4 << 32, len: 1_000_000 };
    StreamJob::new(&slot).input(0, input).output(0, there, OutLength::Same).run().unwrap();
    assert_eq!(fake.read_card_memory(4 << 32, 1_000_000), data);
    let (copy, output) = bytes(vec![]);
    StreamJob::new(&slot).input(0, back).output(0, output, OutLength::Any).run().unwrap();
    assert_eq!(copy.take(), data);

    let small = Endpoint::parse("card:0+4K").unwrap();
    let error = StreamJob::new(&slot).input(0, bytes(vec![0; 5000]).1).output(0, small, OutLength::Any).run();
    assert!(matches!(error, Err(Error::OutputTooLong { limit: 4096, .. })), "{error:?}");
    let outside = Endpoint::parse("card:63M+2M").unwrap();
    let error = StreamJob::new(&slot).input(0, outside).run().unwrap_err();
    assert!(error.to_string().contains("leaves its channel"), "{error}");
}

#[test]
fn an_empty_file_gives_an_empty_file_or_a_clear_error() {
    let (fake, dir) = (FakeCard::new(), Dir::new());
    let slot = open(&fake);
    let input = || Endpoint::File(dir.file("in", b""));
    let output = Endpoint::File(dir.file("out", b"old"));
    let report =
        StreamJob::new(&slot).input(0, input()).output(0, output.clone(), OutLength::Same).run().unwrap();
    assert_eq!(report, JobReport { bytes_in: 0, bytes_out: 0, cycles: 0 });
    assert_eq!(fs::read(dir.path("out")).unwrap(), b"");
    let error =
        StreamJob::new(&slot).input(0, input()).output(0, output, OutLength::Message(32)).run().unwrap_err();
    assert!(error.to_string().contains("give at least one byte"), "{error}");
}

#[test]
fn files_that_cannot_be_used_are_refused_with_a_reason_and_nothing_is_touched() {
    let (fake, dir) = (FakeCard::new(), Dir::new());
    let slot = open(&fake);
    let good = dir.file("good", b"data");
    let run = |from: PathBuf, to: PathBuf| {
        StreamJob::new(&slot)
            .input(0, Endpoint::File(from))
            .output(0, Endpoint::File(to), OutLength::Same)
            .run()
            .unwrap_err()
            .to_string()
    };
    let keep = dir.file("keep", b"old");
    assert!(run(dir.path("none"), keep.clone()).contains("cannot open it: No such file"));
    assert!(run(dir.0.path().into(), keep.clone()).contains("is a directory"));
    assert_eq!(fs::read(&keep).unwrap(), b"old");
    assert!(run(good.clone(), dir.0.path().into()).contains("is a directory"));
    assert!(run(good.clone(), dir.path("no/such")).contains("cannot open it for writing"));
    assert!(run(good.clone(), good.clone()).contains("both read and written"));
    assert_eq!(fs::read(&good).unwrap(), b"data");
    let _listener = std::os::unix::net::UnixListener::bind(dir.path("socket")).unwrap();
    assert!(run(dir.path("socket"), keep.clone()).contains("is a socket"));
    assert!(run(good.clone(), dir.path("socket")).contains("is a socket"));

    let error = StreamJob::new(&slot).input(5, Endpoint::File(good.clone())).run().unwrap_err();
    assert!(error.to_string().contains("no input stream 5"), "{error}");
    let twice =
        StreamJob::new(&slot).input(0, Endpoint::File(good.clone())).input(0, Endpoint::File(good)).run();
    assert!(matches!(twice, Err(Error::PortTwice { .. })));
    assert!(matches!(StreamJob::new(&slot).run(), Err(Error::Invalid(_))));
}

#[test]
fn a_full_disk_is_told_with_the_bytes_that_are_safe_and_the_slot_works_on() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let error = StreamJob::new(&slot)
        .input(0, bytes(pattern(3 << 20)).1)
        .output(0, Endpoint::File("/dev/full".into()), OutLength::Same)
        .run()
        .unwrap_err();
    assert!(matches!(&error, Error::Write { written: 0, .. }), "{error:?}");
    assert!(error.to_string().contains("No space left on device"), "{error}");
    let (copy, output) = bytes(vec![]);
    StreamJob::new(&slot).input(0, bytes(pattern(100)).1).output(0, output, OutLength::Same).run().unwrap();
    assert_eq!(copy.take(), pattern(100));
    StreamJob::new(&slot)
        .input(0, bytes(pattern(100)).1)
        .output(0, Endpoint::File("/dev/null".into()), OutLength::Same)
        .run()
        .unwrap();
}

#[test]
fn a_file_truncated_during_the_run_is_an_error() {
    let (fake, dir) = (FakeCard::new(), Dir::new());
    let slot = open(&fake);
    let input = dir.file("in", &pattern(1 << 20));
    let file = fs::OpenOptions::new().write(true).open(&input).unwrap();
    let error = StreamJob::new(&slot)
        .input(0, Endpoint::File(input))
        .output(0, Endpoint::File(dir.path("out")), OutLength::Same)
        .chunk_bytes(64 << 10)
        .on_progress(|_| file.set_len(300_000).unwrap())
        .run()
        .unwrap_err();
    assert!(matches!(error, Error::FileShrank { end: 300_000, expected: 0x10_0000, .. }), "{error:?}");
    assert!(error.to_string().contains("shrank while it was read"));
}

#[test]
fn an_output_removed_or_cut_during_the_run_is_an_error() {
    let (fake, dir) = (FakeCard::new(), Dir::new());
    let slot = open(&fake);
    let out = dir.path("out");
    let job = || {
        StreamJob::new(&slot)
            .input(0, bytes(pattern(1 << 20)).1)
            .output(0, Endpoint::File(out.clone()), OutLength::Same)
            .chunk_bytes(64 << 10)
    };
    let removed = job().on_progress(|_| drop(fs::remove_file(&out))).run();
    assert!(matches!(removed, Err(Error::FileRemoved { .. })), "{removed:?}");
    // At the end, in the middle, where writing on would leave a hole in a file of the right length, and to more.
    for (at, length) in [(1 << 20, 10), (512 << 10, 10), (1 << 20, (1 << 20) + 1)] {
        let mut once = true;
        let changed = job()
            .on_progress(|p| {
                if p.bytes_out >= at && std::mem::take(&mut once) {
                    fs::OpenOptions::new().write(true).open(&out).unwrap().set_len(length).unwrap();
                }
            })
            .run();
        assert!(!once);
        let told = matches!(&changed, Err(Error::OutputChanged { length: now, written, .. })
            if *now == length && *written >= at);
        assert!(told, "{at} {length}: {changed:?}");
    }
}

#[test]
fn an_app_that_answers_too_much_or_too_little_is_an_error() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    fake.set_app(0, |data: &[u8], last: bool, out: &mut Vec<u8>| {
        out.extend(data);
        if last {
            out.extend([0; 10]);
        }
        last
    });
    let run = |length| {
        StreamJob::new(&slot).input(0, bytes(vec![1; 200]).1).output(0, bytes(vec![]).1, length).run()
    };
    let error = run(OutLength::Same);
    assert!(matches!(error, Err(Error::OutputTooLong { limit: 200, .. })), "{error:?}");
    let error = run(OutLength::Message(64));
    assert!(matches!(error, Err(Error::OutputTooLong { limit: 64, .. })), "{error:?}");
    let error = run(OutLength::Message(300));
    assert!(matches!(error, Err(Error::OutputTooShort { bytes: 210, expected: 300, .. })), "{error:?}");
    assert!(run(OutLength::Message(210)).is_ok());
    assert!(run(OutLength::Message(0)).is_err());
}

#[test]
fn a_silent_card_ends_in_a_timeout_and_leaves_nothing_mapped() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    fake.sabotage(Sabotage::Silent);
    let begin = Instant::now();
    let error = StreamJob::new(&slot)
        .input(0, bytes(pattern(10)).1)
        .output(0, bytes(vec![]).1, OutLength::Same)
        .run()
        .unwrap_err();
    assert!(matches!(error, Error::Stalled { .. }), "{error:?}");
    drop(slot);
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert_eq!(fake.mapped_ranges(), 0);
}

#[test]
fn an_app_that_takes_nothing_ends_in_a_timeout_and_the_slot_works_again() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    // Never ends its output: the run waits for the end.
    fake.set_app(0, |_: &[u8], _: bool, _: &mut Vec<u8>| false);
    let error = StreamJob::new(&slot)
        .input(0, bytes(pattern(10)).1)
        .output(0, bytes(vec![]).1, OutLength::Any)
        .run()
        .unwrap_err();
    assert!(
        error.to_string().contains("input 0 took 10 of 10 bytes, output 0 gave 0 bytes: nothing happened"),
        "{error}"
    );
    fake.set_app(0, copy);
    let (out, output) = bytes(vec![]);
    StreamJob::new(&slot).input(0, bytes(pattern(10)).1).output(0, output, OutLength::Same).run().unwrap();
    assert_eq!(out.take(), pattern(10));
}

#[test]
fn completions_nobody_asked_for_are_ignored_and_counted() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    fake.sabotage(Sabotage::BadTags);
    let (out, output) = bytes(vec![]);
    StreamJob::new(&slot)
        .input(0, bytes(pattern(50_000)).1)
        .output(0, output, OutLength::Same)
        .run()
        .unwrap();
    assert_eq!(out.take(), pattern(50_000));
    assert!(slot.strays() > 0);
}

#[test]
fn a_violation_ends_the_run_with_its_cause_and_other_slots_go_on() {
    let fake = FakeCard::new();
    let card = Card::open_with(fake.clone(), quick()).unwrap();
    let (bad, good) = (card.slot(0).unwrap(), card.slot(1).unwrap());
    bad.load(&IMAGE).unwrap();
    good.load(&IMAGE).unwrap();
    fake.set_app(0, |_: &[u8], _: bool, _: &mut Vec<u8>| false);
    let error = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            StreamJob::new(&bad)
                .input(0, bytes(pattern(9)).1)
                .output(0, bytes(vec![]).1, OutLength::Any)
                .run()
        });
        std::thread::sleep(Duration::from_millis(50));
        fake.violate(0, 0x12);
        run.join().unwrap().unwrap_err()
    });
    assert!(error.to_string().contains("not INCR, not full-width, or misaligned"), "{error}");
    assert_eq!(bad.take_violations().len(), 1);
    let (out, output) = bytes(vec![]);
    StreamJob::new(&good).input(0, bytes(pattern(999)).1).output(0, output, OutLength::Same).run().unwrap();
    assert_eq!(out.take(), pattern(999));
}

#[test]
fn slots_are_claimed_once_and_images_checked() {
    let fake = FakeCard::new();
    let card = Card::open_with(fake.clone(), quick()).unwrap();
    assert_eq!(card.info().slots, 2);
    assert_eq!(card.info().data_bytes, 64);
    assert_eq!(card.info().tlb_page, Tlb { ways: 4096, sets: 1 });
    assert!(matches!(card.slot(9), Err(Error::NoSuchSlot { slot: 9, last: 1 })));
    let slot = card.slot(1).unwrap();
    assert!(matches!(card.slot(1), Err(Error::SlotInUse { slot: 1 })));
    assert!(matches!(StreamJob::new(&slot).run(), Err(Error::Isolated { .. } | Error::SlotEmpty { .. })));
    assert!(matches!(slot.load(b"abc"), Err(Error::BadImage(_))));
    assert!(matches!(slot.load(b"\x07\0\0\0"), Err(Error::LoadRefused { code: 7, .. })));
    assert!(!card.is_loaded(1).unwrap());
    slot.load(&IMAGE).unwrap();
    assert!(card.is_loaded(1).unwrap());
    drop(slot);
    card.slot(1).unwrap().start().unwrap();
}

#[test]
fn wide_registers_are_little_endian_words() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let key = Register { offset: 0x10, width: 80 };
    slot.write_wide(key, &[1, 2, 3, 4, 5]).unwrap();
    assert_eq!(slot.read_register(0x10).unwrap(), 0x0403_0201);
    assert_eq!(slot.read_wide(key).unwrap(), [1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 0]);
    assert!(matches!(slot.write_wide(key, &[0; 11]), Err(Error::Invalid(_))));
    assert!(matches!(slot.read_register(2), Err(Error::BadRegister { offset: 2 })));
    assert!(matches!(slot.write_register(0x1000, 0), Err(Error::BadRegister { .. })));
    slot.write_register(0x20, u32::MAX).unwrap();
    assert_eq!(slot.read_register(0x20).unwrap(), u32::MAX, "all ones from a healthy app are a value");
    fake.violate(0, 0x16);
    assert!(matches!(slot.read_register(0x20), Err(Error::Isolated { .. })));
}

#[test]
fn many_threads_wait_on_one_slot() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let tags = slot.submit(&[desc::Command::nop(); 7]).unwrap();
                    let done = slot.wait(&tags).unwrap();
                    assert!(done.iter().all(|c| c.status == desc::Status::Ok));
                }
            });
        }
    });
    let tags = slot.submit(&[desc::Command::nop(); 1000]).unwrap();
    assert_eq!(slot.wait(&tags).unwrap().len(), 1000);
}

// ---------------------------------------------------------------- streams

fn fifo(dir: &Dir, name: &str) -> PathBuf {
    let status = std::process::Command::new("mkfifo").arg(dir.path(name)).status().unwrap();
    assert!(status.success());
    dir.path(name)
}

/// Source and destination.
fn pipe() -> (fs::File, fs::File) {
    let (from, to) = nix::unistd::pipe().unwrap();
    (from.into(), to.into())
}

#[test]
fn files_without_a_true_length_are_read_to_their_end() {
    let (fake, dir) = (FakeCard::new(), Dir::new());
    let slot = open(&fake);
    // The stated length is 0 for one file, and a page for the other.
    for path in ["/proc/version", "/sys/kernel/mm/transparent_hugepage/enabled"] {
        let Ok(content) = fs::read(path) else { continue };
        let report = StreamJob::new(&slot)
            .input(0, Endpoint::File(path.into()))
            .output(0, Endpoint::File(dir.path("out")), OutLength::Same)
            .run()
            .unwrap();
        assert_eq!(fs::read(dir.path("out")).unwrap(), content, "{path}");
        assert_eq!((report.bytes_in, report.bytes_out), (content.len() as u64, content.len() as u64));
    }
    // A hole counts with its stated length.
    fs::File::create(dir.path("hole")).unwrap().set_len(100_000).unwrap();
    assert_eq!(Endpoint::File(dir.path("hole")).known_len().unwrap(), Some(100_000));
    assert_eq!(Endpoint::File("/proc/version".into()).known_len().unwrap(), None);
    // A read error fails the run, and the output is unchanged.
    let keep = dir.file("keep", b"old");
    let error = StreamJob::new(&slot)
        .input(0, Endpoint::File("/proc/self/mem".into()))
        .output(0, Endpoint::File(keep.clone()), OutLength::Same)
        .run()
        .unwrap_err();
    assert!(error.to_string().contains("/proc/self/mem: cannot read it: Input/output error"), "{error}");
    assert_eq!(fs::read(keep).unwrap(), b"old");
}

#[test]
fn any_reader_and_writer_is_a_stream() {
    /// Returns its bytes in odd pieces.
    struct Trickle(Vec<u8>, usize);
    impl std::io::Read for Trickle {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            self.1 = (self.1 * 7 + 13) % 5000;
            let len = (1 + self.1).min(to.len()).min(self.0.len());
            to[..len].copy_from_slice(&self.0[..len]);
            self.0.drain(..len);
            Ok(len)
        }
    }
    struct Collect(Arc<std::sync::Mutex<Vec<u8>>>);
    impl std::io::Write for Collect {
        fn write(&mut self, from: &[u8]) -> std::io::Result<usize> {
            let len = from.len().min(777);
            self.0.lock().unwrap().extend(&from[..len]);
            Ok(len)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            self.0.lock().unwrap().push(b'!');
            Ok(())
        }
    }
    let fake = FakeCard::new();
    let slot = open(&fake);
    for (len, length) in
        [(1, OutLength::Same), (64, OutLength::Any), (65, OutLength::Same), (1_000_003, OutLength::Same)]
    {
        let got = Arc::new(std::sync::Mutex::new(Vec::new()));
        let to = Endpoint::writer("collected", Collect(Arc::clone(&got)));
        let mut last = None;
        let report = StreamJob::new(&slot)
            .input(0, Endpoint::reader("trickled", Trickle(pattern(len), 0)))
            .output(0, to.clone(), length)
            .on_progress(|p| last = Some(p))
            .run()
            .unwrap();
        let mut expected = pattern(len);
        expected.push(b'!');
        assert!(*got.lock().unwrap() == expected, "length {len}");
        assert_eq!((report.bytes_in, report.bytes_out), (len as u64, len as u64));
        assert_eq!(last.unwrap().bytes_out, len as u64);
        let again = StreamJob::new(&slot).input(0, bytes(vec![1]).1).output(0, to, length).run().unwrap_err();
        assert!(again.to_string().contains("collected: a stream serves one run"), "{again}");
    }
    assert_eq!((fake.translations(0), slot.strays()), (0, 0));
}

#[test]
fn pipes_are_inputs_and_outputs_however_slow_their_other_ends_are() {
    let (fake, dir) = (FakeCard::new(), Dir::new());
    let slot = open(&fake);
    let (from, mut feed) = pipe();
    let out = fifo(&dir, "out");
    // Longer than the time-out, on both sides.
    let nap = quick().stall * 3;
    let (data, path) = (pattern(700_001), out.clone());
    let got = std::thread::scope(|scope| {
        scope.spawn(|| {
            use std::io::Write;
            std::thread::sleep(nap);
            feed.write_all(&data[..100_000]).unwrap();
            std::thread::sleep(nap);
            feed.write_all(&data[100_000..]).unwrap();
            drop(feed);
        });
        let reader = scope.spawn(move || {
            use std::io::Read;
            std::thread::sleep(nap);
            let mut got = Vec::new();
            let mut file = fs::File::open(path).unwrap();
            std::thread::sleep(nap);
            file.read_to_end(&mut got).unwrap();
            got
        });
        let report = StreamJob::new(&slot)
            .input(0, Endpoint::stream("from", from))
            .output(0, Endpoint::File(out), OutLength::Same)
            .run()
            .unwrap();
        assert_eq!((report.bytes_in, report.bytes_out), (700_001, 700_001));
        reader.join().unwrap()
    });
    assert!(got == data);
}

/// The app has ended its message and unused commands remain while only the reader is waited for.
#[test]
fn a_reader_may_take_its_time_after_the_end() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (mut from, to) = pipe();
    let reader = std::thread::spawn(move || {
        std::thread::sleep(quick().stall * 4);
        let mut got = Vec::new();
        std::io::Read::read_to_end(&mut from, &mut got).unwrap();
        got
    });
    // More than a pipe holds, and less than is requested in advance.
    let data = pattern(150_001);
    let report = StreamJob::new(&slot)
        .input(0, Endpoint::reader("x", std::io::Cursor::new(data.clone())))
        .output(0, Endpoint::stream("to", to), OutLength::Any)
        .chunk_bytes(64 << 10)
        .run()
        .unwrap();
    assert_eq!(report.bytes_out, 150_001);
    assert!(reader.join().unwrap() == data);
}

/// Of any length, also zero, where the card is not used.
#[test]
fn a_panic_in_a_stream_is_an_error_of_the_run() {
    struct Faulty;
    impl std::io::Read for Faulty {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            panic!("on purpose")
        }
    }
    impl std::io::Write for Faulty {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            panic!("on purpose")
        }
        fn flush(&mut self) -> std::io::Result<()> {
            panic!("on purpose")
        }
    }
    let fake = FakeCard::new();
    let slot = open(&fake);
    let run =
        |from, to| StreamJob::new(&slot).input(0, from).output(0, to, OutLength::Same).run().unwrap_err();
    for error in [
        run(Endpoint::reader("faulty", Faulty), bytes(vec![]).1),
        run(bytes(pattern(5000)).1, Endpoint::writer("faulty", Faulty)),
        run(bytes(vec![]).1, Endpoint::writer("faulty", Faulty)),
    ] {
        assert!(error.to_string().contains("faulty") && error.to_string().contains("panicked"), "{error}");
    }
}

#[test]
fn what_is_on_its_way_is_bounded_by_the_slower_side() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (from, mut feed) = pipe();
    let (drain, to) = pipe();
    let fed = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        use std::io::{Read, Write};
        scope.spawn(|| {
            let data = pattern(4096);
            for _ in 0..1024 {
                feed.write_all(&data).unwrap();
                fed.fetch_add(4096, std::sync::atomic::Ordering::SeqCst);
            }
            drop(feed);
        });
        let run = scope.spawn(|| {
            StreamJob::new(&slot)
                .input(0, Endpoint::stream("from", from))
                .output(0, Endpoint::stream("to", to), OutLength::Same)
                .run()
        });
        // Without a reader: after a while no data moves any more.
        let mut before = 0;
        loop {
            std::thread::sleep(Duration::from_millis(300));
            let now = fed.load(std::sync::atomic::Ordering::SeqCst);
            if now == before && now > 0 {
                break;
            }
            before = now;
        }
        assert!(before <= 1 << 20, "{before} bytes are in transit");
        let mut got = Vec::new();
        (&drain).read_to_end(&mut got).unwrap();
        assert!(got == pattern(4096).repeat(1024));
        assert_eq!(run.join().unwrap().unwrap().bytes_out, 4 << 20);
    });
}

#[test]
fn a_reader_that_goes_away_ends_the_run() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let (drain, to) = pipe();
    drop(drain);
    let error = StreamJob::new(&slot)
        .input(0, Endpoint::reader("endless", std::io::repeat(7)))
        .output(0, Endpoint::stream("to", to), OutLength::Same)
        .run()
        .unwrap_err();
    assert!(matches!(&error, Error::Write { written: 0, .. }), "{error:?}");
    assert!(error.to_string().contains("to: cannot write: Broken pipe"), "{error}");
    assert!(error.to_string().contains("its reader has closed it"), "{error}");
    let (out, output) = bytes(vec![]);
    StreamJob::new(&slot).input(0, bytes(pattern(10)).1).output(0, output, OutLength::Same).run().unwrap();
    assert_eq!(out.take(), pattern(10));
}

#[test]
fn a_stream_without_bytes_is_an_empty_input() {
    let (fake, dir) = (FakeCard::new(), Dir::new());
    let slot = open(&fake);
    let empty = || Endpoint::reader("nothing", std::io::empty());
    let out = dir.file("out", b"old");
    let job = |length| StreamJob::new(&slot).output(0, Endpoint::File(out.clone()), length);
    let error = job(OutLength::Message(32)).input(0, empty()).run().unwrap_err();
    assert!(error.to_string().contains("nothing: input 0 is empty"), "{error}");
    assert_eq!(fs::read(&out).unwrap(), b"old");
    let error = job(OutLength::Same).input(0, empty()).input(1, bytes(vec![1]).1).run().unwrap_err();
    assert!(matches!(error, Error::EmptyInput { port: 0, .. }), "{error}");
    let report = job(OutLength::Same).input(0, empty()).run().unwrap();
    assert_eq!((report.bytes_in, report.bytes_out), (0, 0));
    assert_eq!(fs::read(&out).unwrap(), b"");
    // A reader of the output sees the end.
    let path = fifo(&dir, "fifo");
    let reader = std::thread::spawn({
        let path = path.clone();
        move || fs::read(path).unwrap()
    });
    StreamJob::new(&slot).input(0, empty()).output(0, Endpoint::File(path), OutLength::Same).run().unwrap();
    assert_eq!(reader.join().unwrap(), b"");
}

#[test]
fn an_app_that_hangs_is_noticed_though_its_input_is_a_stream() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    fake.set_app(0, |_: &[u8], _: bool, _: &mut Vec<u8>| false);
    let error = StreamJob::new(&slot)
        .input(0, Endpoint::reader("ten", std::io::Cursor::new(pattern(10))))
        .output(0, bytes(vec![]).1, OutLength::Same)
        .run()
        .unwrap_err();
    assert!(error.to_string().contains("input 0 took 10 of 10 bytes, output 0 gave 0 bytes"), "{error}");
}

#[test]
fn an_app_must_answer_a_stream_with_its_length() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let run = |extra: i64| {
        fake.set_app(0, move |data: &[u8], last: bool, out: &mut Vec<u8>| {
            let len = if last { (data.len() as i64 + extra) as usize } else { data.len() };
            out.extend(vec![5; len]);
            last
        });
        let input = Endpoint::reader("stream", std::io::Cursor::new(pattern(500_000)));
        StreamJob::new(&slot).input(0, input).output(0, bytes(vec![]).1, OutLength::Same).run()
    };
    assert_eq!(run(0).unwrap().bytes_out, 500_000);
    assert!(matches!(run(1), Err(Error::OutputTooLong { .. })));
    assert!(matches!(run(-1), Err(Error::OutputTooShort { bytes: 499_999, expected: 500_000, .. })));
}

#[test]
fn an_output_is_no_input_and_no_other_output() {
    let (fake, dir) = (FakeCard::new(), Dir::new());
    let slot = open(&fake);
    let file = dir.file("file", b"precious");
    let loops = fifo(&dir, "fifo");
    let opened = || Endpoint::stream("opened", fs::File::open(&file).unwrap());
    let run = |from: Endpoint, to: Endpoint| {
        StreamJob::new(&slot).input(0, from).output(0, to, OutLength::Same).run().unwrap_err()
    };
    assert!(matches!(run(opened(), Endpoint::File(file.clone())), Error::SameFile { .. }));
    assert!(matches!(run(Endpoint::File(loops.clone()), Endpoint::File(loops)), Error::SameFile { .. }));
    let copied = Endpoint::reader("copied", fs::File::open(&file).unwrap());
    let copied = copied.standing_for(&fs::metadata(&file).unwrap());
    assert!(matches!(run(copied, Endpoint::File(file.clone())), Error::SameFile { .. }));
    assert_eq!(fs::read(&file).unwrap(), b"precious");

    let card = |text: &str| Endpoint::parse(text).unwrap();
    for (from, to) in
        [("0+8K", "0+8K"), ("0+8K", "4K+8K"), ("4K+8K", "0+4097"), ("0x400000000+4K", "0x400000000+1")]
    {
        let error = run(card(&format!("card:{from}")), card(&format!("card:{to}")));
        assert!(matches!(error, Error::SameRange { .. }), "{error:?}");
        assert!(error.to_string().contains("overlaps card:0x"), "{error}");
    }
    let error = StreamJob::new(&slot)
        .input(0, bytes(pattern(64)).1)
        .output(0, card("card:0+8K"), OutLength::Same)
        .output(1, card("card:4K+8K"), OutLength::Same)
        .run()
        .unwrap_err();
    assert!(matches!(error, Error::SameRange { .. }), "{error:?}");
    // An empty range overlaps nothing, wherever it is.
    let empty =
        StreamJob::new(&slot).input(0, card("card:4K+0")).output(0, card("card:0+8K"), OutLength::Same).run();
    assert!(!matches!(empty, Err(Error::SameRange { .. })), "{empty:?}");
    StreamJob::new(&slot)
        .input(0, bytes(pattern(64)).1)
        .output(0, card("card:8K+4K"), OutLength::Same)
        .run()
        .unwrap();
    StreamJob::new(&slot)
        .input(0, card("card:8K+64"))
        .output(0, card("card:12K+4K"), OutLength::Same)
        .run()
        .unwrap();
    assert_eq!(fake.read_card_memory(12 << 10, 64), pattern(64));
}

#[test]
fn a_program_can_stop_a_run_and_use_the_slot_again() {
    let fake = FakeCard::with_tlb(64);
    let slot = open(&fake);
    let again = || {
        let (out, output) = bytes(vec![]);
        StreamJob::new(&slot)
            .input(0, bytes(pattern(999)).1)
            .output(0, output, OutLength::Same)
            .run()
            .unwrap();
        assert_eq!(out.take(), pattern(999));
    };
    let job = || {
        StreamJob::new(&slot)
            .output(0, bytes(vec![]).1, OutLength::Any)
            .input(0, Endpoint::reader("x", std::io::repeat(1)))
    };
    // While data moves.
    let mut asked = 0;
    let stopped = job()
        .stop_if(|| {
            asked += 1;
            asked > 5
        })
        .run();
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    again();
    // While no data moves: no input, and no reader.
    let ((from, _feed), begin) = (pipe(), Instant::now());
    let stopped = StreamJob::new(&slot)
        .input(0, Endpoint::stream("silent", from))
        .output(0, bytes(vec![]).1, OutLength::Any)
        .stop_if(|| begin.elapsed() > quick().stall * 2)
        .run();
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    again();
    // With nothing to write, and no reader.
    let (dir, begin) = (Dir::new(), Instant::now());
    let stopped = StreamJob::new(&slot)
        .input(0, bytes(vec![]).1)
        .output(0, Endpoint::File(fifo(&dir, "unread")), OutLength::Same)
        .stop_if(|| begin.elapsed() > quick().stall)
        .run();
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    again();
    // By a panic in a function that the run calls.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        job().on_progress(|_| panic!("on purpose")).run()
    }));
    assert!(panicked.is_err());
    again();
    drop(slot);
    assert_eq!(fake.mapped_ranges(), 0);
}

#[test]
fn any_slot_is_one_that_works() {
    let fake = FakeCard::new();
    let card = Card::open_with(fake.clone(), quick()).unwrap();
    fake.sabotage(Sabotage::Stuck(1));
    let slots: Vec<Slot> = (1..SLOTS).map(|_| card.any_slot().unwrap()).collect();
    assert!(slots.iter().map(Slot::index).eq(1..SLOTS));
    // The first one is free, but broken.
    assert!(matches!(card.any_slot(), Err(Error::Stalled { slot: 0, .. })));
    fake.sabotage(Sabotage::None);
    assert_eq!(card.any_slot().unwrap().index(), 0);
}

#[test]
fn a_child_of_fork_is_refused_and_leaves_the_card_alone() {
    let fake = FakeCard::new();
    let slot = open(&fake);
    let card = Arc::clone(slot.card());
    let mapping =
        slot.map(Source::anonymous(4096).unwrap(), 4096, MapOptions::new(Prot::READ_WRITE)).unwrap();
    let refused = |what: &str, error: Option<Error>| match error {
        Some(error) if error.to_string().contains("before fork()") => {}
        other => panic!("{what}: {other:?}"),
    };
    // SAFETY: the child uses its own copies, and ends with `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let work = std::panic::AssertUnwindSafe(|| {
            let seen = (fake.ctrl(0), fake.mapped_ranges(), fake.translations(0));
            refused("time", card.time().err());
            refused("slot", card.slot(1).err());
            refused("memory", card.dma_buffer(1, viaduct_pci::DmaAccess::Read).err());
            refused("register", slot.read_register(0).err());
            refused("load", slot.load(&IMAGE).err());
            refused("reset", slot.reset().err());
            refused("commands", slot.submit(&[desc::Command::nop()]).err());
            refused("interrupt", slot.wait_irq(0, Duration::ZERO).err());
            refused("run", StreamJob::new(&slot).input(0, bytes(vec![1]).1).run().err());
            refused("map", slot.map(Source::anonymous(1).unwrap(), 1, MapOptions::new(Prot::READ)).err());
            refused("sync", mapping.sync(false).err());
            assert_eq!((slot.strays(), slot.irqs(), slot.take_denied().len()), (0, 0, 0));
            refused("unmap", mapping.unmap().err());
            drop(slot);
            drop(card);
            assert_eq!((fake.ctrl(0), fake.mapped_ranges(), fake.translations(0)), seen);
        });
        // SAFETY: a child that hangs is killed; a finished one ends immediately, without the parent's destructors.
        unsafe {
            libc::alarm(100);
            libc::_exit(std::panic::catch_unwind(work).is_err().into());
        }
    }
    let mut status = 0;
    // SAFETY: writes the status.
    let ended = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!((ended, status), (child, 0));
    mapping.unmap().unwrap();
    let (out, output) = bytes(vec![]);
    StreamJob::new(&slot).input(0, bytes(pattern(99)).1).output(0, output, OutLength::Same).run().unwrap();
    assert_eq!(out.take(), pattern(99));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn any_length_chunk_and_tlb_gives_the_same_bytes(
        len in 1usize..400_000, chunk in 1u64..300_000, tlb in 1usize..200, any in any::<bool>()
    ) {
        let fake = FakeCard::with_tlb(tlb);
        let slot = open(&fake);
        let (out, output) = bytes(vec![]);
        let length = if any { OutLength::Any } else { OutLength::Same };
        let job = StreamJob::new(&slot).input(0, bytes(pattern(len)).1).output(0, output, length);
        job.chunk_bytes(chunk).run().unwrap();
        prop_assert_eq!(out.take(), pattern(len));
    }
}
