// SPDX-License-Identifier: Apache-2.0
//! Routes between apps on the simulated card. Needs `make functions` and `viaduct build pass rng`; without them these tests are skipped with a
//! message.

mod built;

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use built::card;
use viaduct::*;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + (i >> 8) * 7) as u8).collect()
}

fn stream(slot: &Slot) -> Port {
    Port::Stream { slot: slot.index(), stream: 0 }
}

/// Slots of the card, each with the app in it.
fn slots<const N: usize>(card: &Arc<Card>, image: &[u8]) -> [Slot; N] {
    std::array::from_fn(|_| {
        let slot = card.any_slot().unwrap();
        slot.load(image).unwrap();
        slot
    })
}

fn bytes(data: &[u8]) -> Endpoint {
    Endpoint::bytes("in", SharedBytes::new(data.to_vec()))
}

#[test]
fn data_goes_through_apps_in_sequence() {
    let Some((card, _sim, image)) = card("pass") else { return };
    let [a, b, c, d] = slots(&card, &image);
    let data = pattern(1_000_003);
    let one = StreamJob::new(&a).input(0, bytes(&data)).output(
        0,
        Endpoint::bytes("out", SharedBytes::default()),
        OutLength::Same,
    );
    let one = one.run().unwrap().cycles;
    for (length, chunk) in
        [(OutLength::Same, 1 << 20), (OutLength::Any, 8192), (OutLength::Message(1_000_003), 65536)]
    {
        let out = SharedBytes::default();
        let mut told = 0;
        let report = StreamJob::new(&a)
            .then(&c)
            .then(&b)
            .then(&d)
            .input(0, bytes(&data))
            .output(0, Endpoint::bytes("out", out.clone()), length)
            .chunk_bytes(chunk)
            .on_progress(|p| {
                assert!(p.total_in == 1_000_003 && p.bytes_in <= 1_000_003);
                told += 1;
            })
            .run()
            .unwrap();
        assert!(out.take() == data && told > 0);
        assert_eq!((report.bytes_in, report.bytes_out), (1_000_003, 1_000_003));
        // The apps work at the same time, and nothing goes through host memory between them.
        assert!(report.cycles < one + one / 2, "{} cycles, one app {one}", report.cycles);
        assert!(card.routes().unwrap().is_empty());
    }
    assert_eq!(b.counters().unwrap().beats_in % 2u32.pow(31), 3 * 1_000_003u32.div_ceil(64));
}

#[test]
fn a_route_is_seen_until_it_ends() {
    let Some((card, _sim, image)) = card("pass") else { return };
    let [a, b, c] = slots(&card, &image);
    assert!(card.routes().unwrap().is_empty());
    let first = card.route(stream(&a), stream(&b)).unwrap();
    let tee = card.route(stream(&a), stream(&c)).unwrap();
    assert_eq!(card.routes().unwrap(), [(stream(&a), stream(&b)), (stream(&a), stream(&c))]);
    assert_eq!((first.source(), first.sink()), (stream(&a), stream(&b)));
    // Both get everything, at the same time.
    let data = pattern(200_000);
    let outs = [SharedBytes::default(), SharedBytes::default()];
    std::thread::scope(|scope| {
        for (slot, out) in [&b, &c].into_iter().zip(&outs) {
            scope.spawn(|| {
                StreamJob::new(slot)
                    .output(0, Endpoint::bytes("out", out.clone()), OutLength::Message(200_000))
                    .run()
                    .unwrap();
            });
        }
        StreamJob::new(&a).input(0, bytes(&data)).run().unwrap();
    });
    assert!(outs.iter().all(|out| out.take() == data));
    drop(tee);
    assert_eq!(card.routes().unwrap(), [(stream(&a), stream(&b))]);
    // Another source for the sink: the value of the former route has no effect any more.
    let other = card.route(stream(&c), stream(&b)).unwrap();
    drop(first);
    assert_eq!(card.routes().unwrap(), [(stream(&c), stream(&b))]);
    // With the app at one end the route ends, and does not come back.
    c.reset().unwrap();
    assert!(card.routes().unwrap().is_empty());
    drop(other);
}

#[test]
fn a_message_without_end_delays_a_change_for_a_while_only() {
    let Some((card, _sim, image)) = card("pass") else { return };
    let [a, b, c] = slots(&card, &image);
    let route = card.route(stream(&a), stream(&b)).unwrap();
    // Half a message: it stays open.
    let mapping = a.map(Source::anonymous(4096).unwrap(), 4096, MapOptions::new(Prot::READ)).unwrap();
    let tags = a.submit(&[desc::Command::move_in(0, mapping.va(), 1024, false)]).unwrap();
    a.wait(&tags).unwrap();
    drop(route);
    assert!(card.routes().unwrap().is_empty(), "the message was cut short");
    // What came of it, and its end.
    let out = SharedBytes::default();
    StreamJob::new(&b).output(0, Endpoint::bytes("out", out.clone()), OutLength::Any).run().unwrap();
    let got = out.take();
    assert!(
        got.len() > 64 && got.len() % 64 == 1 && got.iter().all(|byte| *byte == 0),
        "{} bytes",
        got.len()
    );
    // The slots work on.
    a.reset().unwrap();
    for slot in [&a, &b, &c] {
        let out = SharedBytes::default();
        StreamJob::new(slot)
            .input(0, bytes(&got))
            .output(0, Endpoint::bytes("out", out.clone()), OutLength::Same)
            .run()
            .unwrap();
        assert!(out.take() == got);
    }
}

#[test]
fn impossible_routes_are_refused_by_name() {
    let Some((card, _sim, image)) = card("pass") else { return };
    let [a, b] = slots(&card, &image);
    let empty = card.slot(2).unwrap();
    let at = |slot, stream| Port::Stream { slot, stream };
    let net = Port::Board(FunctionKind::Net);
    for (source, sink, why) in [
        (stream(&a), at(9, 0), "slots 0 to 3"),
        (stream(&a), at(3, 0), "claim it first"),
        (stream(&a), stream(&empty), "slot 2 is empty"),
        (stream(&a), at(1, 1), "streams 0 to 0"),
        (net, net, "one end has to be a slot"),
        (Port::Board(FunctionKind::Blk), stream(&b), "board:net and board:console"),
        (Port::Function(FunctionKind::Net), stream(&b), "board:net and board:console"),
    ] {
        let told = card.route(source, sink).unwrap_err().to_string();
        assert!(told.contains(why), "{told}");
    }
    let job = || StreamJob::new(&a).input(0, bytes(&[1]));
    assert!(job().then(&a).output(0, bytes(&[]), OutLength::Same).run().is_err());
    assert!(job().then(&b).run().is_err());
    let nothing = StreamJob::new(&a).then(&b).input(0, bytes(&[])).output(0, bytes(&[]), OutLength::Same);
    assert!(matches!(nothing.run(), Err(Error::EmptyInput { .. })));
    assert!(card.routes().unwrap().is_empty());
}

#[test]
fn slow_ends_of_a_pipeline_are_waited_for_and_a_failure_ends_both() {
    let Some((card, _sim, image)) = card("pass") else { return };
    let [a, b] = slots(&card, &image);
    let data = pattern(600_000);
    let (reader, mut writer) = std::io::pipe().unwrap();
    let (mut result, sink) = std::io::pipe().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for part in data.chunks(150_000) {
                writer.write_all(part).unwrap();
                std::thread::sleep(Duration::from_millis(50));
            }
            drop(writer);
        });
        let got = scope.spawn(move || {
            let mut got = Vec::new();
            std::thread::sleep(Duration::from_millis(300));
            result.read_to_end(&mut got).unwrap();
            got
        });
        StreamJob::new(&a)
            .then(&b)
            .input(0, Endpoint::stream("in", reader))
            .output(0, Endpoint::stream("out", sink), OutLength::Same)
            .run()
            .unwrap();
        assert!(got.join().unwrap() == data);
    });
    // The output cannot be written.
    let full = Endpoint::File("/dev/full".into());
    let failed = StreamJob::new(&a).then(&b).input(0, bytes(&data)).output(0, full, OutLength::Same).run();
    assert!(failed.unwrap_err().to_string().contains("/dev/full"));
    // Stopped by the user, at the first opportunity.
    let stopped = StreamJob::new(&a)
        .then(&b)
        .input(0, bytes(&data))
        .output(0, bytes(&[]), OutLength::Same)
        .stop_if(|| true)
        .run();
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    assert!(card.routes().unwrap().is_empty());
    let out = SharedBytes::default();
    StreamJob::new(&a)
        .then(&b)
        .input(0, bytes(&data))
        .output(0, Endpoint::bytes("out", out.clone()), OutLength::Same)
        .run()
        .unwrap();
    assert!(out.take() == data);
}

#[test]
fn a_value_ends_only_its_own_route() {
    let Some((card, _sim, image)) = card("pass") else { return };
    let here = Arc::downgrade(&card);
    let [a, b] = slots(&card, &image);
    let ends = [(stream(&a), stream(&b))];
    let first = card.route(stream(&a), stream(&b)).unwrap();
    a.reset().unwrap();
    let second = card.route(stream(&a), stream(&b)).unwrap();
    drop(first);
    assert_eq!(card.routes().unwrap(), ends);
    let third = card.route(stream(&a), stream(&b)).unwrap();
    drop(second);
    assert!(third.is_in_effect().unwrap() && card.routes().unwrap() == ends);
    // A function that is attached to the sink ends its route, and one that is refused leaves nothing.
    let net = card.function(FunctionKind::Net).unwrap();
    net.attach(Attachment::Slot(b.index())).unwrap();
    assert!(!third.is_in_effect().unwrap());
    let told = card.route(stream(&a), stream(&b)).unwrap_err().to_string();
    assert!(told.contains("a function is attached"), "{told}");
    net.attach(Attachment::Nothing).unwrap();
    assert!(card.routes().unwrap().is_empty());
    drop((third, net, a, b, card));
    assert_eq!(here.strong_count(), 0);
}

#[test]
fn an_app_that_is_reset_meanwhile_fails_the_run() {
    let Some((card, _sim, image)) = card("pass") else { return };
    let [a, b, c] = slots(&card, &image);
    let data = pattern(1_000_003);
    let mut reset = false;
    let run = StreamJob::new(&a)
        .then(&b)
        .then(&c)
        .input(0, bytes(&data))
        .output(0, Endpoint::bytes("out", SharedBytes::default()), OutLength::Any)
        .chunk_bytes(4096)
        .on_progress(|p| {
            if !reset && p.bytes_in > 900_000 {
                b.reset().unwrap();
                reset = true;
            }
        })
        .run();
    let told = run.unwrap_err().to_string();
    assert!(told.contains("has ended during the run") || told.contains("nothing happened"), "{told}");
    let out = SharedBytes::default();
    let again = StreamJob::new(&a).then(&b).then(&c).input(0, bytes(&data));
    again.output(0, Endpoint::bytes("out", out.clone()), OutLength::Same).run().unwrap();
    assert!(out.take() == data);
}

#[test]
fn a_route_is_left_and_cut_by_its_ends() {
    let Some((card, _sim, image)) = card("pass") else { return };
    let here = Arc::downgrade(&card);
    let [a, b, c] = slots(&card, &image);
    card.route(stream(&a), stream(&b)).unwrap().leave();
    let ends = RouteState { source: stream(&a), sink: stream(&b), changing: false };
    assert_eq!(card.route_states().unwrap(), [ends]);
    // Only the route that is meant is cut.
    for (source, sink) in [(&c, &b), (&b, &a), (&a, &c)] {
        let told = card.cut(stream(source), stream(sink)).unwrap_err().to_string();
        assert!(told.contains("no route leads from"), "{told}");
    }
    assert!(card.cut(stream(&a), stream(&b)).unwrap());
    assert!(card.routes().unwrap().is_empty());
    assert!(card.cut(stream(&a), stream(&b)).is_err());
    // A value whose route was cut has no effect on the next one.
    let value = card.route(stream(&a), stream(&b)).unwrap();
    assert!(card.cut(stream(&a), stream(&b)).unwrap() && !value.is_in_effect().unwrap());
    let next = card.route(stream(&c), stream(&b)).unwrap();
    drop(value);
    assert!(next.is_in_effect().unwrap());
    drop(next);
    // A message that does not end is cut short.
    let left = card.route(stream(&a), stream(&b)).unwrap();
    let mapping = a.map(Source::anonymous(4096).unwrap(), 4096, MapOptions::new(Prot::READ)).unwrap();
    let tags = a.submit(&[desc::Command::move_in(0, mapping.va(), 1024, false)]).unwrap();
    a.wait(&tags).unwrap();
    assert!(!card.cut(stream(&a), stream(&b)).unwrap());
    assert!(card.routes().unwrap().is_empty());
    // A function that is attached is no route.
    let net = card.function(FunctionKind::Net).unwrap();
    net.attach(Attachment::Slot(c.index())).unwrap();
    let told = card.cut(Port::Function(FunctionKind::Net), stream(&c)).unwrap_err().to_string();
    assert!(told.contains("which is no route"), "{told}");
    assert!(card.functions().unwrap().contains(&FunctionKind::Net));
    net.attach(Attachment::Nothing).unwrap();
    drop((left, mapping, net, a, b, c, card));
    assert_eq!(here.strong_count(), 0);
}

#[test]
fn a_stopped_slot_does_not_start_again_until_it_is_closed() {
    let Some((card, _sim, image)) = card("pass") else { return };
    let [a, b] = slots(&card, &image);
    let data = pattern(100_000);
    std::thread::scope(|scope| {
        // A run that waits for the rest of its input, and resets the app when it fails.
        let (reader, writer) = std::io::pipe().unwrap();
        let run = scope.spawn(|| {
            let out = Endpoint::bytes("out", SharedBytes::default());
            StreamJob::new(&a).input(0, Endpoint::stream("in", reader)).output(0, out, OutLength::Same).run()
        });
        std::thread::sleep(Duration::from_millis(100));
        a.stop().unwrap();
        drop(writer);
        assert!(run.join().unwrap().is_err());
    });
    for result in [a.reset(), a.load(&image), a.start(), a.open_space()] {
        let told = result.unwrap_err().to_string();
        assert!(told.contains("was stopped for good"), "{told}");
    }
    assert!(a.resume().is_ok() && card.slot_status(a.index()).unwrap().isolated);
    let works = |slot: &Slot| {
        let out = SharedBytes::default();
        let to = Endpoint::bytes("out", out.clone());
        StreamJob::new(slot).input(0, bytes(&data)).output(0, to, OutLength::Same).run().unwrap();
        assert!(out.take() == data);
    };
    works(&b);
    let index = a.index();
    a.close().unwrap();
    let again = card.slot(index).unwrap();
    again.load(&image).unwrap();
    works(&again);
}
