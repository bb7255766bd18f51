// SPDX-License-Identifier: Apache-2.0
//! Many files concurrently through the lanes of an app, on a fake card that can be made to misbehave.

mod common;

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::*;
use viaduct::*;

/// Responds to each message with its length and a checksum, 40 bytes; records the portions in which the input arrived.
#[derive(Default)]
struct Sum {
    open: HashMap<u8, (u64, u64)>,
    seen: Arc<Mutex<Vec<(u8, usize)>>>,
    /// Added to the id of every response.
    shift: u8,
    short: bool,
}

fn step(sum: u64, byte: u8) -> u64 {
    (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
}

fn response(data: &[u8]) -> Vec<u8> {
    let sum = data.iter().fold(0, |sum, byte| step(sum, *byte));
    [data.len() as u64, sum, 1, 2, 3].iter().flat_map(|v| v.to_le_bytes()).collect()
}

impl App for Sum {
    fn stream(&mut self, _: &[u8], _: bool, _: &mut Vec<u8>) -> bool {
        unreachable!("stream_of is called")
    }

    fn stream_of(&mut self, id: u8, data: &[u8], last: bool, out: &mut Vec<u8>) -> Option<u8> {
        self.seen.lock().unwrap().push((id, data.len()));
        let (len, sum) = self.open.entry(id).or_default();
        *len += data.len() as u64;
        *sum = data.iter().fold(*sum, |sum, byte| step(sum, *byte));
        if !last {
            return None;
        }
        let (len, sum) = self.open.remove(&id)?;
        out.extend([len, sum, 1, 2, 3].iter().flat_map(|v| v.to_le_bytes()));
        if self.short {
            out.pop();
        }
        Some(id.wrapping_add(self.shift))
    }
}

fn open(fake: &Arc<FakeCard>, app: Sum) -> Slot {
    let short = Duration::from_millis(200);
    let timeouts = Timeouts { stall: short, busy: short, control: short };
    let slot = Card::open_with(fake.clone(), timeouts).unwrap().slot(0).unwrap();
    slot.load(&IMAGE).unwrap();
    fake.set_app(0, app);
    slot
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + (i >> 8) * 7 + len) as u8).collect()
}

fn bytes(content: Vec<u8>) -> Endpoint {
    Endpoint::bytes("x", SharedBytes::new(content))
}

fn file(dir: &tempfile::TempDir, name: &str, content: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, content).unwrap();
    path
}

#[test]
fn every_message_gets_its_answer_in_the_order_given() {
    let (fake, dir) = (FakeCard::new(), tempfile::tempdir().unwrap());
    let slot = open(&fake, Sum::default());
    let sizes = [300_000, 1, 63, 64, 65, 16_383, 16_384, 16_385, 100_000, 40_000, 1, 4097];
    for lanes in [1, 2, 3, 8, 256] {
        let out = file(&dir, "out", b"old");
        let mut last = None;
        let mut job = LaneJob::new(&slot, 0, lanes).output(0, Endpoint::File(out.clone()), 40);
        for (k, len) in sizes.iter().enumerate() {
            job = job.message(Endpoint::File(file(&dir, &k.to_string(), &pattern(*len))));
        }
        let report = job.on_progress(|p| last = Some(p)).run().unwrap();
        let expected: Vec<u8> = sizes.iter().flat_map(|len| response(&pattern(*len))).collect();
        assert_eq!(fs::read(out).unwrap(), expected, "{lanes} lanes");
        let total = sizes.iter().sum::<usize>() as u64;
        assert_eq!((report.bytes_in, report.bytes_out), (total, 40 * 12));
        let last = last.unwrap();
        assert_eq!((last.bytes_in, last.total_in, last.bytes_out), (total, total, 40 * 12));
        assert_eq!(fake.translations(0), 0, "windows are removed");
    }
    assert_eq!(slot.strays(), 0);
    drop(slot);
    assert_eq!(fake.mapped_ranges(), 0, "no memory stays mapped");
}

#[test]
fn no_lane_gets_more_than_a_turn_ahead_of_one_that_has_work() {
    let fake = FakeCard::new();
    let app = Sum::default();
    let seen = Arc::clone(&app.seen);
    let slot = open(&fake, app);
    let mut job = LaneJob::new(&slot, 0, 4).output(0, bytes(vec![]), 40);
    // Small messages share a lane, so that it keeps up with the others.
    for len in [400_000, 400_000, 400_000].into_iter().chain([10_000; 40]) {
        job = job.message(bytes(pattern(len)));
    }
    job.run().unwrap();
    let (mut got, mut worst) = ([0usize; 4], 0);
    for (id, bytes) in seen.lock().unwrap().iter() {
        got[usize::from(*id)] += bytes;
        if got.iter().all(|n| *n < 390_000) {
            worst = worst.max(got.iter().max().unwrap() - got.iter().min().unwrap());
        }
    }
    assert_eq!(got.iter().sum::<usize>(), 1_600_000);
    assert!(got.iter().all(|n| *n >= 390_000), "{got:?}");
    assert!(worst <= 32 << 10, "{worst} bytes ahead");
}

#[test]
fn an_empty_or_missing_file_is_named_before_anything_runs() {
    let (fake, dir) = (FakeCard::new(), tempfile::tempdir().unwrap());
    let app = Sum::default();
    let seen = Arc::clone(&app.seen);
    let slot = open(&fake, app);
    let out = file(&dir, "out", b"old");
    let run = |from: PathBuf| {
        LaneJob::new(&slot, 0, 8)
            .message(bytes(vec![1; 10]))
            .message(Endpoint::File(from))
            .output(0, Endpoint::File(out.clone()), 40)
            .run()
            .unwrap_err()
    };
    let error = run(file(&dir, "nothing", b""));
    assert!(matches!(error, Error::EmptyInput { .. }) && error.to_string().contains("nothing: "), "{error}");
    let error = run(dir.path().join("absent"));
    assert!(error.to_string().contains("absent: cannot open it"), "{error}");
    assert!(matches!(run(out.clone()), Error::SameFile { .. }));
    assert!(seen.lock().unwrap().is_empty());
    assert_eq!(fs::read(&out).unwrap(), b"old");
}

#[test]
fn a_file_that_shrinks_or_goes_away_fails_the_run_with_its_name() {
    let (fake, dir) = (FakeCard::new(), tempfile::tempdir().unwrap());
    let slot = open(&fake, Sum::default());
    // The second waits for the only lane when it happens, the first is being read.
    for (lanes, victim) in [(1, "second"), (2, "second"), (1, "first")] {
        for remove in [false, true] {
            let paths = ["first", "second"].map(|name| file(&dir, name, &pattern(1 << 20)));
            let path = dir.path().join(victim);
            let mut job =
                LaneJob::new(&slot, 0, lanes).output(0, bytes(vec![]), 40).on_progress(|_| match remove {
                    true => drop(fs::remove_file(&path)),
                    false => {
                        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(300_000).unwrap()
                    }
                });
            for from in paths {
                job = job.message(Endpoint::File(from));
            }
            let error = job.run().unwrap_err();
            let fits = match &error {
                Error::FileShrank { end, expected, .. } => !remove && (*end, *expected) == (300_000, 1 << 20),
                Error::InputRemoved { .. } | Error::File { .. } => remove,
                _ => false,
            };
            assert!(fits && error.to_string().contains(victim), "{error:?}");
        }
    }
    // The slot still works; the fake card does not reset its app.
    fake.set_app(0, Sum::default());
    let result = SharedBytes::new(vec![]);
    LaneJob::new(&slot, 0, 2)
        .message(bytes(pattern(5)))
        .output(0, Endpoint::bytes("r", result.clone()), 40)
        .run()
        .unwrap();
    assert_eq!(result.take(), response(&pattern(5)));
}

#[test]
fn answers_that_fit_no_message_are_errors() {
    let fake = FakeCard::new();
    let run = |app: Sum, length| {
        let slot = open(&fake, app);
        let mut job = LaneJob::new(&slot, 0, 2).output(0, bytes(vec![]), length);
        for _ in 0..3 {
            job = job.message(bytes(pattern(100)));
        }
        job.run().unwrap_err()
    };
    let error = run(Sum { shift: 2, ..Sum::default() }, 40);
    assert!(matches!(error, Error::WrongId { port: 0, id: 2 | 3 }), "{error:?}");
    let error = run(Sum { short: true, ..Sum::default() }, 40);
    assert!(matches!(error, Error::OutputTooShort { bytes: 39, expected: 40, .. }), "{error:?}");
    let error = run(Sum::default(), 32);
    assert!(matches!(error, Error::OutputTooLong { limit: 32, .. }), "{error:?}");
    let error = run(Sum::default(), 100);
    assert!(matches!(error, Error::OutputTooShort { bytes: 40, expected: 100, .. }), "{error:?}");
}

#[test]
fn runs_that_make_no_sense_are_refused() {
    let fake = FakeCard::new();
    let slot = open(&fake, Sum::default());
    let job = |port, lanes| LaneJob::new(&slot, port, lanes).message(bytes(vec![1]));
    let refused = |job: LaneJob<'_>, words: &str| {
        let error = job.run().unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(job(9, 8).output(0, bytes(vec![]), 40), "no input stream 9");
    refused(job(0, 8).output(9, bytes(vec![]), 40), "no output stream 9");
    refused(job(0, 0).output(0, bytes(vec![]), 40), "give 1 to 256");
    refused(job(0, 257).output(0, bytes(vec![]), 40), "give 1 to 256");
    refused(job(0, 8), "at least one message and one output");
    refused(job(0, 8).output(0, bytes(vec![]), 0), "0 bytes per message");
    refused(job(0, 8).output(0, Endpoint::Card { addr: 0, len: 4096 }, 40), "cannot go to card memory");
    refused(
        job(0, 8).message(Endpoint::Card { addr: 0, len: 4096 }).output(0, bytes(vec![]), 40),
        "cannot come from card memory",
    );
    let twice = job(0, 8).output(0, bytes(vec![]), 40).output(0, bytes(vec![]), 40).run();
    assert!(matches!(twice, Err(Error::PortTwice { .. })));
}

#[test]
fn an_app_that_does_not_answer_ends_in_a_timeout_that_tells_how_far_it_came() {
    let fake = FakeCard::new();
    let slot = open(&fake, Sum::default());
    fake.set_app(0, |_: &[u8], _: bool, _: &mut Vec<u8>| false);
    let error =
        LaneJob::new(&slot, 0, 2).message(bytes(pattern(10))).output(0, bytes(vec![]), 40).run().unwrap_err();
    let words = "input 0 took 10 of 10 bytes, output 0 gave 0 of 1 messages";
    assert!(matches!(&error, Error::Stalled { what, .. } if what.contains(words)), "{error:?}");
    drop(slot);
    assert_eq!(fake.mapped_ranges(), 0);
}
