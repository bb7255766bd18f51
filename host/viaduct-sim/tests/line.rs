// SPDX-License-Identifier: Apache-2.0
//! The Ethernet line of a simulated card, with a far end that is part of the simulation. Needs `make functions`; without it these tests are
//! skipped with a message.

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::*;
use viaduct_pci::PciFunction;
use viaduct_sim::backend::{Cable, Net, Runner};
use viaduct_sim::{FrameInfo, FrameSink, FrameSource, FunctionCounters, LinkState, NET, SimCard};
use viaduct_virtio::net::Net as Driver;

/// Frames of one length, numbered from 0.
struct Numbered {
    next: u32,
    count: u32,
    len: usize,
}

impl FrameSource for Numbered {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<FrameInfo> {
        assert!(frame.is_empty());
        if self.next == self.count {
            return None;
        }
        frame.resize(self.len, 0xff);
        frame[14..18].copy_from_slice(&self.next.to_le_bytes());
        self.next += 1;
        Some(FrameInfo::default())
    }
}

/// When a frame had left, and the frame.
type Sent = (Duration, Vec<u8>);

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Sent>>>);

impl FrameSink for Kept {
    fn put(&mut self, frame: &[u8], sent: Duration) {
        self.0.lock().unwrap().push((sent, frame.to_vec()));
    }
}

fn counters(card: &SimCard) -> FunctionCounters {
    card.function_counters(NET).unwrap()
}

/// A driver with a bus master: it gets frames.
fn driver(card: &Arc<SimCard>) -> Option<(Arc<dyn PciFunction>, Driver)> {
    let pci = function(card, NET)?;
    connect(card, NET);
    let net = Driver::open(pci.clone(), 0, 256, 1 << 32, 0).unwrap();
    Some((pci, net))
}

#[test]
fn frames_come_when_somebody_takes_them_and_are_counted_one_by_one() {
    let Some(card) = open() else { return };
    let source = Numbered { next: 0, count: 1000, len: 64 };
    let line = card.line(source, Kept::default()).expect("the board has an Ethernet port");
    assert!(card.line(Numbered { next: 0, count: 0, len: 64 }, Kept::default()).is_none(), "it has one end");
    assert!(card.port(NET).is_none());
    card.run(100_000);
    assert!(!line.is_over() && counters(&card).rx_packets + counters(&card).rx_drops == 0);
    let Some((pci, _net)) = driver(&card) else { return };
    card.run(100_000);
    assert!(line.is_over());
    let c = counters(&card);
    assert_eq!(c.rx_packets + c.rx_drops, 1000);
    assert_eq!(c.rx_drops, c.rx_full, "a driver without so many buffers loses the rest");
    // 88 bytes of the line each, at 12.5 GB/s.
    assert_eq!(c.rx_busy_ps, 1000 * 88 * 80);
    pci.reset().unwrap();
    drop(line);
    assert!(card.port(NET).is_some());
}

#[test]
fn a_link_goes_down_and_up_under_load() {
    let Some(card) = open() else { return };
    let count = 20_000;
    let line = card.line(Numbered { next: 0, count, len: 1000 }, Kept::default()).unwrap();
    let Some((pci, net)) = driver(&card) else { return };
    let mut flaps = 0;
    while !line.is_over() {
        card.set_link(LinkState::Down).unwrap();
        assert_eq!(counters(&card).link_up, 0);
        card.run(777);
        card.set_link(LinkState::Up).unwrap();
        assert_eq!(counters(&card).link_up, 1);
        card.run(1501);
        flaps += 1;
    }
    card.run(1_000_000);
    let c = counters(&card);
    assert_eq!(c.rx_packets + c.rx_drops, u64::from(count));
    assert_eq!(c.rx_drops, c.rx_down + c.rx_full);
    // A frame takes 20.48 cycles: 39 or 40 of them in each interval.
    assert!((38 * (flaps - 1)..=40 * flaps).contains(&c.rx_down), "{} in {flaps} intervals", c.rx_down);
    assert!(c.rx_packets > 0);
    drop(net);
    pci.reset().unwrap();
}

#[test]
fn a_plug_sends_frames_back_to_their_driver() {
    let Some(card) = open() else { return };
    let Some((pci, mut net)) = driver(&card) else { return };
    let cable = Cable::net_run_by(&card, &Net::Loop, Runner::Caller).unwrap().unwrap();
    assert!(Cable::net(&card, &Net::Loop).is_err(), "it has one end");
    for k in 0..20u8 {
        let mut frame = vec![k; 100];
        frame[..6].fill(0xff);
        assert!(net.queue(&frame).unwrap());
        net.tx.kick().unwrap();
        assert_eq!(net.wait(LONG).unwrap(), frame);
    }
    let c = counters(&card);
    assert_eq!((c.tx_packets, c.rx_packets, c.tx_drops, c.rx_drops), (20, 20, 0, 0));
    assert_eq!(c.tx_busy_ps, c.rx_busy_ps);
    drop(cable);
    // The end is free again, and takes what is sent.
    let port = card.port(NET).unwrap();
    assert!(net.queue(&[0xff; 100]).unwrap());
    net.tx.kick().unwrap();
    assert_eq!(port.receive(LONG).unwrap().data, [0xff; 100]);
    pci.reset().unwrap();
}
