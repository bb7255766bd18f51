// SPDX-License-Identifier: Apache-2.0
//! The library on the simulated card. Needs `make card` and `viaduct build pass rng`; without them these tests only say so.
//! `VIADUCT_BUILD` names another build folder than that of this checkout.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use viaduct::*;
use viaduct_sim::{Profile, SimCard, SimConfig};

fn build() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build");
    std::env::var_os("VIADUCT_BUILD").map_or(here, PathBuf::from)
}

/// A card and the image of an app, if both are built.
fn card(app: &str) -> Option<(Arc<Card>, Arc<SimCard>, Vec<u8>)> {
    let card_object = build().join("card/libviaduct_card.so");
    let image_dir = build().join("apps");
    let image = std::fs::read(image_dir.join(app).join(app).with_extension("via"));
    let (Ok(image), true) = (image, card_object.is_file()) else {
        eprintln!("skipped: build the card and the app {app} first (`make build`)");
        return None;
    };
    let config = SimConfig { profile: Profile::default(), card_object, image_dir, chan_mib: Some(64) };
    let sim = Arc::new(SimCard::open(config).unwrap());
    let wait = Duration::from_secs(20);
    let timeouts = Timeouts { stall: wait, busy: wait, control: wait };
    Some((Card::open_with(sim.clone(), timeouts).unwrap(), sim, image))
}

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
