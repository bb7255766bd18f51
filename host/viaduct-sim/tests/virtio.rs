// SPDX-License-Identifier: Apache-2.0
//! virtio functions of the simulated card with a driver on one side and the board on the other.

mod common;

use std::io::{Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::Arc;

use common::{LONG, connect, function, open};
use viaduct_pci::PciFunction;
use viaduct_pci::vfio_user::{Client, Server};
use viaduct_sim::backend::{self, Cable};
use viaduct_sim::{BLK, CONSOLE, ENTROPY, Entropy, INPUT, NET, SimCard};
use viaduct_virtio::net::Net;
use viaduct_virtio::{Arena, Buffer, Device, Queue, VirtioError, feature};

const IOVA: u64 = 0x2_0000_0000;

fn frame(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(29) ^ seed).collect()
}

fn padded(mut frame: Vec<u8>) -> Vec<u8> {
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Waits for a queue's next used chain; its token and length.
fn next(function: &dyn PciFunction, queue: &mut Queue) -> (u64, u32) {
    loop {
        if let Some(used) = queue.used().unwrap() {
            return (used.token, used.len);
        }
        if queue.arm() {
            continue;
        }
        function.wait_irq(1 << queue.vector().unwrap(), LONG).unwrap();
    }
}

#[test]
fn frames_pass_between_driver_and_cable() {
    let Some(card) = open() else { return };
    let Some(pci) = function(&card, NET) else { return };
    connect(&card, NET);
    let port = card.port(NET).unwrap();
    assert!(card.port(NET).is_none(), "one cable a port");
    for wanted in [0, 1 << feature::RING_PACKED | 1 << feature::EVENT_IDX] {
        let mut net = Net::open(pci.clone(), wanted, 64, IOVA, 0).unwrap();
        net.rx.kick().unwrap();
        for (seed, len) in (0..).zip([60, 61, 1514, 14, 9234, 64]) {
            assert!(net.queue(&frame(len, seed)).unwrap());
            net.tx.kick().unwrap();
            assert_eq!(port.receive(LONG).unwrap().data, padded(frame(len, seed)), "{len} bytes out");
            port.send(0, &frame(len, !seed), LONG).unwrap();
            assert_eq!(net.wait(LONG).unwrap(), padded(frame(len, !seed)), "{len} bytes in");
            net.rx.kick().unwrap();
        }
        // Before its memory is released.
        pci.reset().unwrap();
        drop(net);
        // Another function's reset does not affect this one's attachment.
        card.reset().unwrap();
    }
    let counters = card.function_counters(NET).unwrap();
    assert_eq!((counters.tx_packets, counters.rx_packets), (12, 12));
    assert_eq!((counters.tx_drops, counters.rx_drops), (0, 0));
}

#[test]
fn a_driver_that_puts_buffers_back_without_a_notification_hears_every_frame() {
    let Some(card) = open() else { return };
    let Some(pci) = function(&card, NET) else { return };
    connect(&card, NET);
    let port = card.port(NET).unwrap();
    let (packed, told) = (1 << feature::RING_PACKED, 1 << feature::NOTIFICATION_DATA);
    for wanted in [0, 1 << feature::EVENT_IDX, 1 << feature::IN_ORDER | told, packed, packed | told] {
        // As a boot loader does: one notification for all buffers, and none for those returned.
        let mut net = Net::open(pci.clone(), wanted, 32, IOVA, 0).unwrap();
        assert_eq!(net.device.features() & wanted, wanted);
        let kicks = net.rx.kicks();
        let frames = 100;
        let (mut sent, mut got) = (0, 0);
        while got < frames {
            // More frames than there are buffers.
            while sent < frames && sent < got + 45 {
                port.send(0, &frame(100, sent as u8), LONG).unwrap();
                sent += 1;
            }
            assert_eq!(net.wait(LONG).unwrap(), frame(100, got as u8), "frame {got}");
            net.rx.publish();
            got += 1;
        }
        assert_eq!(net.rx.kicks(), kicks, "the device was not notified");
        assert_eq!(card.function_counters(NET).unwrap().rx_drops, 0);
        pci.reset().unwrap();
    }
}

#[test]
fn a_queue_that_was_stopped_is_logged() {
    let Some(card) = open() else { return };
    let Some(pci) = function(&card, NET) else { return };
    viaduct_log::keep();
    let logged = || {
        let log = viaduct_log::kept();
        log.matches("net: queue 1 stopped: data could not be read from the client's memory").count()
    };
    connect(&card, NET);
    // With an interrupt, and without one as drivers of boot loaders are.
    for (interrupt, before_reset, after_reset) in [(true, 1, 1), (true, 2, 2), (false, 2, 3)] {
        let mut net = Net::open(pci.clone(), 0, 16, IOVA, 0).unwrap();
        if interrupt {
            net.device.config_vector(0).unwrap();
        }
        net.tx.add(&[Buffer { addr: 0x7_0000_0000, len: 100, writable: false }], 0).unwrap();
        net.tx.kick().unwrap();
        if interrupt {
            pci.wait_irq(1, LONG).unwrap();
        } else {
            card.run(100_000);
        }
        assert_eq!(logged(), before_reset);
        pci.reset().unwrap();
        assert_eq!(logged(), after_reset);
    }
}

#[test]
fn packed_rings_and_in_order_use_are_offered_only_if_asked_for() {
    let Some(card) = open() else { return };
    for number in [NET, BLK, CONSOLE, ENTROPY, INPUT] {
        let Some(pci) = function(&card, number) else { continue };
        let mut device = Device::open(pci).unwrap();
        let offered = device.offered().unwrap();
        let on_request = 1 << feature::RING_PACKED | 1 << feature::IN_ORDER;
        assert_eq!(offered & on_request, 0);
        assert_ne!(offered >> feature::EVENT_IDX & 1, 0);
        // A driver that has started keeps the features it was offered.
        device.negotiate(0).unwrap();
        connect(&card, number);
        assert_eq!(device.offered().unwrap(), offered);
        device.reset().unwrap();
        assert_eq!(device.offered().unwrap(), offered | on_request);
    }
}

#[test]
fn a_driver_and_a_peer_in_other_processes_talk() {
    let Some(card) = open() else { return };
    let Some(pci) = function(&card, NET) else { return };
    connect(&card, NET);
    let dir = tempfile::tempdir().unwrap();
    let (wire, peer) = (dir.path().join("wire"), dir.path().join("peer"));
    let cable = Cable::net(&card, &backend::Net::Unix(wire.clone(), None)).unwrap().unwrap();
    let peer = UnixDatagram::bind(peer).unwrap();
    peer.set_read_timeout(Some(LONG)).unwrap();
    let socket = dir.path().join("net.sock");
    let _server = Server::bind(&socket, pci).unwrap();
    for _ in 0..2 {
        let client: Arc<dyn PciFunction> = Arc::new(Client::connect(&socket).unwrap());
        let mut net = Net::open(client, 0, 32, IOVA, 0).unwrap();
        net.rx.kick().unwrap();
        for seed in 0..10 {
            peer.send_to(&frame(100 + usize::from(seed), seed), &wire).unwrap();
            assert_eq!(net.wait(LONG).unwrap(), frame(100 + usize::from(seed), seed));
            assert!(net.queue(&frame(200, seed)).unwrap());
            net.tx.kick().unwrap();
            let mut got = [0; 300];
            assert_eq!(peer.recv(&mut got).unwrap(), 200);
            assert_eq!(got[..200], frame(200, seed));
        }
    }
    drop(cable);
    assert!(!wire.exists());
}

#[test]
#[ignore = "needs root and the tool ip"]
fn the_host_answers_over_a_tap_device() {
    const NAME: &str = "viatest0";
    let ip = |arguments: &[&str]| {
        assert!(std::process::Command::new("ip").args(arguments).status().unwrap().success());
    };
    let Some(card) = open() else { return };
    let Some(pci) = function(&card, NET) else { return };
    connect(&card, NET);
    let _cable = Cable::net(&card, &backend::Net::Tap(NAME.into())).unwrap().unwrap();
    ip(&["addr", "add", "10.99.77.1/24", "dev", NAME]);
    ip(&["link", "set", NAME, "up"]);
    let mut net = Net::open(pci, 0, 64, IOVA, 0).unwrap();
    net.rx.kick().unwrap();
    // Who has 10.99.77.1? Tell 10.99.77.2.
    let mut request = vec![0xff; 6];
    request.extend([2, 0, 0, 0, 0, 2, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2, 10, 99, 77, 2]);
    request.extend([0, 0, 0, 0, 0, 0, 10, 99, 77, 1]);
    assert!(net.queue(&request).unwrap());
    net.tx.kick().unwrap();
    // The host's other frames are broadcasts.
    let response = loop {
        let frame = net.wait(LONG).unwrap();
        net.rx.kick().unwrap();
        if frame[12..14] == [8, 6] && frame[20..22] == [0, 2] {
            break frame;
        }
    };
    assert_eq!(response[..6], [2, 0, 0, 0, 0, 2]);
    assert_eq!(response[28..32], [10, 99, 77, 1]);
}

/// Queues of a device that is not a network device.
struct Driver {
    device: Device,
    arena: Arena,
}

impl Driver {
    fn new(pci: &Arc<dyn PciFunction>) -> Self {
        let mut device = Device::open(pci.clone()).unwrap();
        device.negotiate(1 << feature::ACCESS_PLATFORM).unwrap();
        Self { device, arena: Arena::new(pci.clone(), IOVA, 1 << 20).unwrap() }
    }

    fn queue(&mut self, index: u16) -> Queue {
        self.device.queue(&mut self.arena, index, 16, Some(index + 1)).unwrap()
    }

    /// Offers `len` bytes for the device to fill; returns their address.
    fn offer(&mut self, queue: &mut Queue, len: u32) -> usize {
        let at = self.arena.take(len as usize, 64).unwrap();
        assert!(queue.add(&[Buffer { addr: self.arena.bus(at), len, writable: true }], at as u64).unwrap());
        queue.kick().unwrap();
        at
    }

    fn bytes(&self, at: usize, len: u32) -> Vec<u8> {
        let mut bytes = vec![0; len as usize];
        self.arena.memory().read(at, &mut bytes);
        bytes
    }
}

#[test]
fn a_console_speaks_over_its_serial_line() {
    let Some(card) = open() else { return };
    let Some(pci) = function(&card, CONSOLE) else { return };
    connect(&card, CONSOLE);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("console");
    let _cable = Cable::console(&card, &backend::Console::Unix(path.clone())).unwrap().unwrap();
    let mut user = UnixStream::connect(&path).unwrap();
    user.set_read_timeout(Some(LONG)).unwrap();
    let mut driver = Driver::new(&pci);
    let (mut rx, mut tx) = (driver.queue(0), driver.queue(1));
    driver.device.start().unwrap();

    let text = b"Debian GNU/Linux 13 card hvc0\r\n\r\ncard login: ";
    // The cable listens on the line before data is sent.
    user.write_all(b"!").unwrap();
    let at = driver.offer(&mut rx, 64);
    let (token, len) = next(&*pci, &mut rx);
    assert_eq!((token as usize, driver.bytes(at, len)), (at, b"!".to_vec()));

    let at = driver.arena.take(64, 64).unwrap();
    driver.arena.memory().write(at, text);
    let buffer = Buffer { addr: driver.arena.bus(at), len: text.len() as u32, writable: false };
    assert!(tx.add(&[buffer], 7).unwrap());
    tx.kick().unwrap();
    assert_eq!(next(&*pci, &mut tx).0, 7);
    let mut got = vec![0; text.len()];
    // This thread does not wait for the card: the cable's own thread does.
    user.read_exact(&mut got).unwrap();
    assert_eq!(got, text);

    user.write_all(b"root\n").unwrap();
    let mut typed = Vec::new();
    while typed.len() < 5 {
        driver.offer(&mut rx, 64);
        let (token, len) = next(&*pci, &mut rx);
        typed.extend(driver.bytes(token as usize, len));
    }
    assert_eq!(typed, b"root\n");
}

fn random_bytes(card: &Arc<SimCard>, count: usize) -> Option<Vec<u8>> {
    let pci = function(card, ENTROPY)?;
    connect(card, ENTROPY);
    let mut driver = Driver::new(&pci);
    let mut queue = driver.queue(0);
    driver.device.start().unwrap();
    let mut bytes = Vec::new();
    while bytes.len() < count {
        driver.offer(&mut queue, 64);
        let (token, len) = next(&*pci, &mut queue);
        assert!((1..=64).contains(&len));
        bytes.extend(driver.bytes(token as usize, len));
    }
    card.run(1_000_000);
    assert!(card.parked(), "a source without requests does not run");
    Some(bytes)
}

#[test]
fn entropy_is_repeatable_unless_it_is_the_systems() {
    let take = |source: Option<Entropy>| {
        let card = open()?;
        source.into_iter().for_each(|source| card.set_entropy(source));
        let bytes = random_bytes(&card, 4096)?;
        Some((bytes, card.now()))
    };
    let Some((first, cycles)) = take(None) else { return };
    assert_eq!(take(None), Some((first.clone(), cycles)), "the same numbers at the same time");
    let ones: u32 = first.iter().map(|byte| byte.count_ones()).sum();
    assert!((15_000..18_000).contains(&ones), "{ones} ones in 32768 bits");
    assert_ne!(take(Some(Entropy::Seeded(1))).unwrap().0, first);
    let system = take(Some(Entropy::System)).unwrap().0;
    assert_ne!(take(Some(Entropy::System)).unwrap().0, system);
}

/// Features of a kind of device that require one of others (VIRTIO 1.3, 5.1.3.1, 5.2.3; and 20, commands for the control queue).
const REQUIRED: [(u16, &[u32], &[u32]); 6] = [
    (1, &[7, 8, 10, 54, 55], &[1]),
    (1, &[9], &[7, 8]),
    (1, &[11, 12, 14, 56], &[0]),
    (1, &[13, 61], &[11, 12]),
    (1, &[18, 19, 20, 21, 22, 23, 52, 53, 60], &[17]),
    (2, &[11], &[9]),
];

#[test]
fn features_come_with_what_they_require() {
    let Some(card) = open() else { return };
    for number in [NET, BLK, CONSOLE, ENTROPY, INPUT] {
        let Some(pci) = function(&card, number) else { continue };
        let mut device = Device::open(pci).unwrap();
        let offered = device.offered().unwrap();
        assert_eq!(device.negotiate(offered).unwrap(), offered);
        for (kind, features, required) in REQUIRED {
            let required = required.iter().fold(0, |all, bit| all | 1 << bit);
            for feature in features.iter().map(|bit| 1 << bit) {
                if kind == device.kind() && offered & feature != 0 {
                    assert_ne!(offered & required, 0, "what {feature:#x} requires");
                    let alone = device.negotiate(feature);
                    assert!(matches!(alone, Err(VirtioError::Features(_))), "{feature:#x}: {alone:?}");
                    device.negotiate(feature | required).unwrap();
                }
            }
        }
    }
}
