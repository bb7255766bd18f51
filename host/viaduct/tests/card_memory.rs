// SPDX-License-Identifier: Apache-2.0
//! Card memory that a program allocates, on the simulated card: copies, rows, words, bounds. Needs `make card` and `viaduct build pass`;
//! without them these tests are skipped with a message.

mod built;

use built::card;
use viaduct::*;

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| ((i + seed) * 31 + (i >> 8) * 7) as u8).collect()
}

#[test]
fn copies_of_any_place_and_length_come_back_and_change_nothing_else() {
    let Some((card, _sim, _)) = card("pass") else { return };
    let slot = card.slot(0).unwrap();
    slot.open_space().unwrap();
    let memory = card.allocate(3 << 20).unwrap();
    let mut model = pattern(3 << 20, 5);
    slot.copy_in(&memory, 0, &model).unwrap();
    for (offset, len) in
        [(0, 1), (1, 1), (63, 2), (64, 64), (4000, 777), (1 << 20, 1 << 20), (12345, 700_001), (3 << 20, 0)]
    {
        let bytes = pattern(len, offset);
        slot.copy_in(&memory, offset as u64, &bytes).unwrap();
        model[offset..offset + len].copy_from_slice(&bytes);
    }
    let mut back = vec![0; model.len()];
    slot.copy_out(&memory, 0, &mut back).unwrap();
    assert!(back == model);
    let mut some = vec![0; 999];
    slot.copy_out(&memory, 77_777, &mut some).unwrap();
    assert!(some == model[77_777..77_777 + 999]);
}

#[test]
fn rows_are_where_their_steps_say_and_what_is_between_stays() {
    let Some((card, _sim, _)) = card("pass") else { return };
    let slot = card.slot(0).unwrap();
    slot.open_space().unwrap();
    let memory = card.allocate(2 << 20).unwrap();
    let all = Rows::one(2 << 20).bytes as usize;
    for (offset, rows) in [
        (0, Rows { bytes: 256, rows: 300, card_step: 4096, host_step: 256 }),
        (4096, Rows { bytes: 100, rows: 333, card_step: 128, host_step: 1000 }),
        (7, Rows { bytes: 5, rows: 1000, card_step: 13, host_step: 9 }),
        (64, Rows { bytes: 64, rows: 5000, card_step: 64, host_step: 64 }),
        (0, Rows { bytes: 600_000, rows: 2, card_step: 1 << 20, host_step: 700_000 }),
        (0, Rows { bytes: 0, rows: 7, card_step: 0, host_step: 0 }),
    ] {
        let mut model = pattern(all, 1);
        slot.copy_in(&memory, 0, &model).unwrap();
        let host = pattern((rows.rows * rows.host_step) as usize, 77);
        slot.copy_rows_in(&memory, offset, rows, &host).unwrap();
        for row in 0..rows.rows as usize {
            let (to, from) = (offset as usize + row * rows.card_step as usize, row * rows.host_step as usize);
            model[to..to + rows.bytes as usize].copy_from_slice(&host[from..from + rows.bytes as usize]);
        }
        let mut back = vec![0; all];
        slot.copy_out(&memory, 0, &mut back).unwrap();
        assert!(back == model, "{rows:?}");

        let mut gathered = vec![0xee; host.len()];
        slot.copy_rows_out(&memory, offset, rows, &mut gathered).unwrap();
        for (at, byte) in gathered.iter().enumerate() {
            let inside = (at as u64) % rows.host_step < rows.bytes;
            assert_eq!(*byte, if inside { host[at] } else { 0xee }, "{rows:?} at {at}");
        }
    }
}

#[test]
fn words_are_changed_alone() {
    let Some((card, _sim, _)) = card("pass") else { return };
    let slot = card.slot(0).unwrap();
    slot.open_space().unwrap();
    let memory = card.allocate(4096).unwrap();
    slot.copy_in(&memory, 0, &[0x11; 4096]).unwrap();
    slot.write_word(&memory, 60, 0xdead_beef).unwrap();
    let read = |offset| slot.read_word(&memory, offset).unwrap();
    assert_eq!([read(56), read(60), read(64)], [0x1111_1111, 0xdead_beef, 0x1111_1111]);
    for offset in [61, 4096, u64::MAX - 3] {
        assert!(slot.write_word(&memory, offset, 0).is_err(), "{offset}");
        assert!(slot.read_word(&memory, offset).is_err(), "{offset}");
    }
}

#[test]
fn what_is_outside_is_refused_and_memory_in_use_stays() {
    let Some((card, _sim, image)) = card("pass") else { return };
    let slot = card.slot(0).unwrap();
    slot.load(&image).unwrap();
    let memory = card.allocate(10_000).unwrap();
    let mut byte = [0];
    for offset in [10_000, u64::MAX] {
        let refused = slot.copy_in(&memory, offset, &[0]).unwrap_err().to_string();
        assert!(refused.contains("10000 bytes that are allocated"), "{refused}");
        assert!(slot.copy_out(&memory, offset, &mut byte).is_err());
    }
    let one = |bytes, rows, card_step, host_step| Rows { bytes, rows, card_step, host_step };
    for rows in [one(10_001, 1, 0, 0), one(64, 200, 64, 64), one(8, 2, 7, 8), one(1, u64::MAX, u64::MAX, 1)] {
        assert!(slot.copy_rows_in(&memory, 0, rows, &[0; 20_000]).is_err(), "{rows:?}");
    }
    assert!(slot.copy_rows_in(&memory, 0, one(10, 3, 64, 64), &[0; 100]).is_err(), "not enough host memory");
    assert!(card.allocate(u64::MAX).is_err());

    // An app gets what was copied, and nothing beyond the allocation.
    let data = pattern(8192, 3);
    slot.copy_in(&memory, 0, &data).unwrap();
    let out = SharedBytes::default();
    let run = |len| {
        StreamJob::new(&slot)
            .input(0, Endpoint::Card { addr: memory.addr(), len })
            .output(0, Endpoint::bytes("out", out.clone()), OutLength::Same)
            .run()
    };
    run(8192).unwrap();
    assert!(out.take() == data);
    let refused = run(1 << 20).unwrap_err().to_string();
    assert!(refused.contains("are allocated"), "{refused}");
    assert!(!memory.is_used());
}

#[test]
fn two_buffers_in_card_memory_carry_a_message_of_any_length() {
    let Some((card, _sim, image)) = card("pass") else { return };
    let slot = card.slot(0).unwrap();
    slot.load(&image).unwrap();
    for (len, half) in [(1, 4096), (64, 4096), (100_001, 4096), (8192, 8192), (3_000_000, 256 << 10)] {
        let data = pattern(len, half as usize);
        let mut out = vec![0; len];
        let report = slot.run_buffered(&data, &mut out, half).unwrap();
        assert!(out == data, "{len} bytes in halves of {half}");
        assert!(report.cycles > 0 && report.bytes_in == len as u64 && report.bytes_out == len as u64);
    }
    // One way alone, while the other one is a run of its own.
    let data = pattern(500_000, 9);
    let sent = std::thread::scope(|scope| {
        let sending = scope.spawn(|| slot.run_buffered(&data, &mut [], 64 << 10));
        let out = SharedBytes::default();
        let taking =
            StreamJob::new(&slot).output(0, Endpoint::bytes("out", out.clone()), OutLength::Message(500_000));
        taking.run().unwrap();
        assert!(out.take() == data);
        sending.join().unwrap()
    });
    sent.unwrap();
    for half in [0, 100, 1 << 40] {
        assert!(slot.run_buffered(&data, &mut [], half).is_err(), "{half}");
    }
    assert!(slot.run_buffered(&[], &mut [], 4096).is_err());
    // An app that gives another length than was asked for: an error, and it can be used afterwards.
    let refused = slot.run_buffered(&data[..4096], &mut [0; 4095], 4096).unwrap_err();
    assert!(refused.to_string().contains("output 0"), "{refused}");
    let refused = slot.run_buffered(&data[..4096], &mut [0; 4097], 4096).unwrap_err();
    assert!(refused.to_string().contains("output 0"), "{refused}");
    let mut out = vec![0; 4096];
    slot.run_buffered(&data[..4096], &mut out, 4096).unwrap();
    assert!(out == data[..4096]);
}
