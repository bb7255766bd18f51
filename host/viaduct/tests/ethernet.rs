// SPDX-License-Identifier: Apache-2.0
//! Runs whose streams lead to the board's Ethernet port. Needs `make functions` and `viaduct build pass sha256`; without them these tests are
//! skipped with a message.

mod built;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use built::card;
use viaduct::*;
use viaduct_sim::{FrameInfo, FrameSink, FrameSource, NET, SimCard};

fn frame(k: u32) -> Vec<u8> {
    let mut frame = vec![k as u8; 60 + (k as usize * 37) % 1400];
    frame[..4].copy_from_slice(&k.to_le_bytes());
    frame
}

struct Numbered(std::ops::Range<u32>);

impl FrameSource for Numbered {
    fn next(&mut self, to: &mut Vec<u8>) -> Option<FrameInfo> {
        to.extend(frame(self.0.next()?));
        Some(FrameInfo::default())
    }
}

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Vec<u8>>>>);

impl FrameSink for Kept {
    fn put(&mut self, frame: &[u8], _: Duration) {
        self.0.lock().unwrap().push(frame.to_vec());
    }
}

impl Kept {
    fn frames(&self) -> Vec<Vec<u8>> {
        self.0.lock().unwrap().clone()
    }
}

fn any(slot: &Slot) -> StreamJob<'_> {
    StreamJob::new(slot).input(0, Endpoint::Ethernet).output(0, Endpoint::Ethernet, OutLength::Same)
}

fn bytes(data: &[u8]) -> Endpoint {
    Endpoint::bytes("bytes", SharedBytes::new(data.to_vec()))
}

/// Runs the card until it is idle.
fn rest(sim: &SimCard) {
    sim.run(10_000_000);
}

#[test]
fn an_app_on_the_line_works_until_it_is_stopped() {
    let Some((card, sim, image)) = card("pass") else { return };
    let slot = card.any_slot().unwrap();
    slot.load(&image).unwrap();
    let second = card.any_slot().unwrap();
    second.load(&image).unwrap();
    let kept = Kept::default();
    let line = sim.line(Numbered(0..500), kept.clone()).unwrap();
    let mut told = 0;
    let report = any(&slot)
        .then(&second)
        .on_progress(|_| told += 1)
        .stop_if(|| line.is_over() && sim.parked())
        .run()
        .unwrap();
    assert!(report.cycles > 500 && told > 0);
    assert_eq!(kept.frames(), (0..500).map(frame).collect::<Vec<_>>());
    assert!(card.routes().unwrap().is_empty());
    let counters = sim.function_counters(NET).unwrap();
    assert_eq!((counters.rx_drops, counters.tx_drops), (0, 0));
    // Both work as before.
    for slot in [&slot, &second] {
        let out = SharedBytes::default();
        let to = Endpoint::bytes("out", out.clone());
        StreamJob::new(slot).input(0, bytes(b"abc")).output(0, to, OutLength::Same).run().unwrap();
        assert_eq!(out.take(), b"abc");
    }
}

#[test]
fn one_message_is_one_frame_in_either_direction() {
    let Some((card, sim, image)) = card("pass") else { return };
    let slot = card.any_slot().unwrap();
    slot.load(&image).unwrap();
    let kept = Kept::default();
    let line = sim.line(Numbered(7..8), kept.clone()).unwrap();
    for size in [1, 60, 1514, 9000] {
        let data: Vec<u8> = (0..size).map(|k| k as u8).collect();
        let job = StreamJob::new(&slot).input(0, bytes(&data));
        let report = job.output(0, Endpoint::Ethernet, OutLength::Same).run().unwrap();
        assert_eq!(report.bytes_in, size as u64);
        rest(&sim);
        let mut expected = data;
        expected.resize(size.max(60), 0);
        // A frame of less than a header is none.
        assert_eq!(kept.frames().last(), (size >= 14).then_some(&expected), "{size}");
    }
    let out = SharedBytes::default();
    let to = Endpoint::bytes("out", out.clone());
    StreamJob::new(&slot).input(0, Endpoint::Ethernet).output(0, to, OutLength::Same).run().unwrap();
    assert_eq!(out.take(), frame(7));
    assert!(line.is_over() && card.routes().unwrap().is_empty());
    // Nothing comes any more: the run can be stopped, and the slot works on.
    let to = Endpoint::bytes("out", SharedBytes::default());
    let waiting = StreamJob::new(&slot).input(0, Endpoint::Ethernet).output(0, to, OutLength::Any);
    assert!(matches!(waiting.stop_if(|| true).run(), Err(Error::Stopped)));
    let job = StreamJob::new(&slot).input(0, bytes(b"again"));
    job.output(0, Endpoint::Ethernet, OutLength::Same).run().unwrap();
    assert!(card.routes().unwrap().is_empty());
}

#[test]
fn an_app_that_is_reset_ends_the_run() {
    let Some((card, sim, image)) = card("pass") else { return };
    let slot = card.any_slot().unwrap();
    slot.load(&image).unwrap();
    let _line = sim.line(Numbered(0..10), Kept::default()).unwrap();
    let failed = any(&slot)
        .stop_if(|| {
            slot.reset().unwrap();
            true
        })
        .run();
    assert!(failed.is_err(), "{failed:?}");
    assert!(card.routes().unwrap().is_empty());
}

#[test]
fn what_cannot_be_on_the_line_is_refused() {
    let Some((card, _sim, image)) = card("pass") else { return };
    let slot = card.any_slot().unwrap();
    slot.load(&image).unwrap();
    let empty = StreamJob::new(&slot).input(0, bytes(b"")).output(0, Endpoint::Ethernet, OutLength::Same);
    assert!(matches!(empty.run(), Err(Error::EmptyInput { .. })));
    let lanes = LaneJob::new(&slot, 0, 4).message(Endpoint::Ethernet).output(0, bytes(b""), 32);
    assert!(lanes.run().unwrap_err().to_string().contains("one message at a time"));
    let twice = StreamJob::new(&slot).output(0, Endpoint::Ethernet, OutLength::Any);
    let twice = twice.output(1, Endpoint::Ethernet, OutLength::Any).run();
    assert!(twice.is_err(), "{twice:?}");
}
