// SPDX-License-Identifier: Apache-2.0
//! Client and server together.

mod common;

use common::{BAR0_SIZE, Copier, DEVICE, VECTORS, VENDOR, copy_through, eventually, socket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use viaduct_pci::vfio_user::{Client, ClientOptions, Server, ServerOptions};
use viaduct_pci::{DmaAccess, HostMemory, Location, PciError, PciFunction};

fn quick() -> ServerOptions {
    ServerOptions {
        message_time: Duration::from_millis(300),
        busy_time: Duration::from_millis(300),
        ..ServerOptions::default()
    }
}

/// Longer than anything takes on the busiest machine that does not hang.
const HANGS: Duration = Duration::from_secs(60);

#[test]
fn a_client_sees_the_function() {
    let (_dir, path) = socket();
    let function = Copier::new();
    let _server = Server::bind(&path, function.clone()).unwrap();
    let client = Client::connect(&path).unwrap();
    assert_eq!(client.info(), function.info());
    assert_eq!((client.info().vendor, client.info().device), (VENDOR, DEVICE));
    assert_eq!(client.info().bar_sizes[0], BAR0_SIZE);
    client.write32(0, 0x100, 0xdead_beef).unwrap();
    assert_eq!(client.read32(0, 0x100).unwrap(), 0xdead_beef);
    client.config_write(4, &[6, 0]).unwrap();
    let mut command = [0; 2];
    client.config_read(4, &mut command).unwrap();
    assert_eq!(command, [6, 0]);
    let mut wide = [0; 8];
    client.config_read(0, &mut wide).unwrap();
    assert_eq!(u16::from_le_bytes([wide[0], wide[1]]), VENDOR);
}

#[test]
fn memory_that_the_card_does_not_give_up_can_be_unmapped_later() {
    let (_dir, path) = socket();
    let function = Copier::new();
    let _server = Server::bind(&path, function.clone()).unwrap();
    let client = Client::connect(&path).unwrap();
    let map = || client.dma_map(0x1000, Arc::new(HostMemory::new(0x1000).unwrap()), DmaAccess::ReadWrite);
    map().unwrap();
    function.kept_maps.store(1, Ordering::Relaxed);
    assert!(client.dma_unmap(0x1000).is_err() && map().is_err());
    client.dma_unmap(0x1000).unwrap();
    assert_eq!(function.maps(), 0);
    map().unwrap();
    // Nor when the client leaves.
    function.kept_maps.store(1, Ordering::Relaxed);
    assert!(client.dma_unmap(0x1000).is_err());
    drop(client);
    eventually("it is unmapped", || function.maps() == 0);
}

#[test]
fn the_longest_time_is_no_limit() {
    let (_dir, path) = socket();
    let longest = Duration::MAX;
    let options = ServerOptions { message_time: longest, busy_time: longest, ..ServerOptions::default() };
    let _server = Server::bind_with(&path, Copier::new(), options).unwrap();
    let client = Client::connect_with(&path, ClientOptions { reply_time: longest }).unwrap();
    client.write32(0, 0x100, 7).unwrap();
    assert_eq!(client.read32(0, 0x100).unwrap(), 7);
}

#[test]
fn the_card_copies_client_memory_and_interrupts() {
    let (_dir, path) = socket();
    let function = Copier::new();
    let _server = Server::bind(&path, function.clone()).unwrap();
    let client = Client::connect(&path).unwrap();
    let source = Arc::new(HostMemory::new(0x10000).unwrap());
    let target = Arc::new(HostMemory::new(0x10000).unwrap());
    client.dma_map(0x10_0000, source.clone(), DmaAccess::Read).unwrap();
    client.dma_map(0x1_0000_0000, target.clone(), DmaAccess::ReadWrite).unwrap();
    let data: Vec<u8> = (0..0x8000u32).map(|i| ((i * 7) >> 3) as u8).collect();
    source.write(0x123, &data);
    for vector in 0..u32::from(VECTORS) {
        target.fill(0, 0x10000, 0);
        assert_eq!(copy_through(&client, 0x10_0123, 0x1_0000_0456, 0x8000, vector), 0);
        let mut got = vec![0; 0x8000];
        target.read(0x456, &mut got);
        assert_eq!(got, data);
    }
    // The source may only be read, and nothing outside the maps is accessible.
    assert_eq!(copy_through(&client, 0x1_0000_0000, 0x10_0000, 64, 1), 1);
    assert_eq!(copy_through(&client, 0x10_0000, 0x9000_0000, 64, 1), 1);
    client.dma_unmap(0x10_0000).unwrap();
    assert_eq!(function.maps(), 1);
    assert_eq!(copy_through(&client, 0x10_0000, 0x1_0000_0000, 64, 1), 1);
    assert!(matches!(client.dma_unmap(0x10_0000), Err(PciError::OutOfRange { .. })));
    client.dma_map(0x10_0000, source, DmaAccess::Read).unwrap();
    assert_eq!(copy_through(&client, 0x10_0000, 0x1_0000_0000, 64, 1), 0);
}

#[test]
fn overlapping_maps_are_refused_and_harm_nothing() {
    let (_dir, path) = socket();
    let _server = Server::bind(&path, Copier::new()).unwrap();
    let client = Client::connect(&path).unwrap();
    let memory = Arc::new(HostMemory::new(0x4000).unwrap());
    client.dma_map(0x4000, memory.clone(), DmaAccess::ReadWrite).unwrap();
    for iova in [0x1000, 0x4000, 0x5000, 0x7000] {
        assert!(client.dma_map(iova, memory.clone(), DmaAccess::ReadWrite).is_err(), "{iova:#x}");
    }
    assert!(client.dma_map(u64::MAX - 0xfff, memory.clone(), DmaAccess::ReadWrite).is_err(), "wraps");
    client.dma_map(0, memory.clone(), DmaAccess::ReadWrite).unwrap();
    client.dma_map(0x8000, memory, DmaAccess::ReadWrite).unwrap();
    assert_eq!(copy_through(&client, 0x4000, 0x8000, 0x100, 3), 0);
}

#[test]
fn interrupts_outside_the_mask_stay_pending() {
    let (_dir, path) = socket();
    let function = Copier::new();
    let _server = Server::bind(&path, function.clone()).unwrap();
    let client = Client::connect(&path).unwrap();
    function.raise(3);
    function.raise(7);
    assert_eq!(client.wait_irq(1 << 7, Duration::from_secs(5)).unwrap(), 1 << 7);
    assert!(matches!(client.wait_irq(1 << 7, Duration::from_millis(20)), Err(PciError::Timeout(_))));
    assert_eq!(client.wait_irq(1 << 3, Duration::from_secs(5)).unwrap(), 1 << 3);
    assert!(matches!(client.wait_irq(0, Duration::from_millis(1)), Err(PciError::Timeout(_))));
}

#[test]
fn accesses_that_cannot_be_are_refused() {
    let (_dir, path) = socket();
    let function = Copier::new();
    let _server = Server::bind(&path, function.clone()).unwrap();
    let client = Client::connect(&path).unwrap();
    for (bar, offset) in [(0, BAR0_SIZE), (0, 2), (1, 0), (7, 0), (255, 0), (0, u64::MAX - 3)] {
        assert!(matches!(client.read32(bar, offset), Err(PciError::OutOfRange { .. })), "{bar} {offset:#x}");
        assert!(
            matches!(client.write32(bar, offset, 0), Err(PciError::OutOfRange { .. })),
            "{bar} {offset:#x}"
        );
    }
    assert!(client.config_read(4095, &mut [0; 2]).is_err());
    assert_eq!(function.writes.load(Ordering::Relaxed), 0);
    assert_eq!(client.read32(0, 0).unwrap(), 0, "the connection lives on");
}

#[test]
fn clients_are_served_in_turn_and_cleaned_up_after() {
    let (_dir, path) = socket();
    let function = Copier::new();
    let _server = Server::bind(&path, function.clone()).unwrap();
    for turn in 0..20 {
        let client = Client::connect(&path).unwrap();
        assert_eq!(function.resets.load(Ordering::Relaxed), turn);
        assert_eq!(client.read32(0, 0x20).unwrap(), 0, "the register of the client before is gone");
        client.write32(0, 0x20, 1).unwrap();
        let memory = Arc::new(HostMemory::new(0x1000).unwrap());
        client.dma_map(0, memory, DmaAccess::ReadWrite).unwrap();
        assert_eq!(function.maps(), 1);
    }
    // It is reset first, then the memory is taken from it.
    eventually("reset", || function.resets.load(Ordering::Relaxed) == 20);
    eventually("without maps", || function.maps() == 0);
}

#[test]
fn a_second_client_is_refused_clearly_while_the_first_works_on() {
    let (_dir, path) = socket();
    let _server = Server::bind_with(&path, Copier::new(), quick()).unwrap();
    let client = Client::connect(&path).unwrap();
    let error = Client::connect(&path).unwrap_err();
    assert!(matches!(error, PciError::Busy(_)));
    let us = format!("in use by process {} (", std::process::id());
    assert!(error.to_string().contains(&us), "{error}");
    client.write32(0, 0x20, 5).unwrap();
    assert_eq!(client.read32(0, 0x20).unwrap(), 5);
}

#[test]
fn who_waits_for_a_card_in_use_gets_it() {
    let (_dir, path) = socket();
    let _server = Server::bind_with(&path, Copier::new(), quick()).unwrap();
    let place = Location::Unix(path.clone());
    let client = Client::connect(&path).unwrap();
    let error = place.open().err().unwrap();
    assert!(matches!(error, PciError::Busy(_)));
    let error = error.to_string();
    assert!(error.contains("in use by process") && error.contains(path.to_str().unwrap()), "{error}");
    let (tell, heard) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            let told = |_: &PciError| tell.send(()).is_ok();
            place.open_within(Duration::MAX, told).unwrap().read32(0, 0x20).unwrap()
        });
        heard.recv().unwrap();
        client.write32(0, 0x20, 1).unwrap();
        assert_eq!(client.read32(0, 0x20).unwrap(), 1);
        drop(client);
        assert_eq!(waiter.join().unwrap(), 0, "the card as after a reset");
    });
    let place = Location::Unix(path.clone());
    let _client = Client::connect(&path).unwrap();
    assert!(matches!(place.open_within(Duration::MAX, |_| false).err(), Some(PciError::Busy(_))));
}

#[test]
fn a_door_with_a_crowd_before_it_is_waited_for_within_the_limit() {
    let (_dir, path) = socket();
    let deaf = UnixListener::bind(&path).unwrap();
    nix::sys::socket::listen(&deaf, nix::sys::socket::Backlog::new(0).unwrap()).unwrap();
    let _first = UnixStream::connect(&path).unwrap();
    let options = ClientOptions { reply_time: Duration::from_millis(100) };
    let error = Client::connect_with(&path, options).unwrap_err();
    assert!(error.to_string().contains("timed out"), "{error}");
}

#[test]
fn a_reset_resets() {
    let (_dir, path) = socket();
    let function = Copier::new();
    let _server = Server::bind(&path, function.clone()).unwrap();
    let client = Client::connect(&path).unwrap();
    client.write32(0, 0x20, 5).unwrap();
    client.reset().unwrap();
    assert_eq!(client.read32(0, 0x20).unwrap(), 0);
    assert_eq!(function.resets.load(Ordering::Relaxed), 1);
}

#[test]
fn a_stopped_server_is_gone_for_every_waiter() {
    let (_dir, path) = socket();
    let mut server = Server::bind(&path, Copier::new()).unwrap();
    let client = Client::connect(&path).unwrap();
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (0..3)
            .map(|v| {
                scope.spawn({
                    let c = &client;
                    move || c.wait_irq(1 << v, Duration::from_secs(30))
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(50));
        let begin = Instant::now();
        server.stop();
        for waiter in waiters {
            assert!(matches!(waiter.join().unwrap(), Err(PciError::Gone(_))));
        }
        assert!(begin.elapsed() < HANGS);
    });
    assert!(matches!(client.read32(0, 0), Err(PciError::Gone(_))));
    assert!(matches!(client.write32(0, 0, 0), Err(PciError::Gone(_))));
    assert!(matches!(client.reset(), Err(PciError::Gone(_))));
    assert!(!path.exists());
}

#[test]
fn a_socket_left_behind_is_replaced_and_a_live_one_is_not() {
    let (_dir, path) = socket();
    drop(UnixListener::bind(&path).unwrap());
    let _server = Server::bind(&path, Copier::new()).unwrap();
    assert!(Server::bind(&path, Copier::new()).is_err());
    Client::connect(&path).unwrap();
}

#[test]
fn a_silent_server_times_out_and_a_late_answer_is_not_mistaken() {
    let (_dir, path) = socket();
    let function = Copier::new();
    let _server = Server::bind(&path, function.clone()).unwrap();
    let options = ClientOptions { reply_time: Duration::from_millis(150) };
    let client = Client::connect_with(&path, options).unwrap();
    client.write32(0, 0x20, 1).unwrap();
    client.write32(0, 0x24, 2).unwrap();
    function.read_delay.store(400, Ordering::Relaxed);
    assert!(matches!(client.read32(0, 0x20), Err(PciError::Timeout(_))));
    function.read_delay.store(0, Ordering::Relaxed);
    // The late response may still be on its way, for as long as the machine likes.
    let begin = Instant::now();
    let response = loop {
        match client.read32(0, 0x24) {
            Err(PciError::Timeout(_)) => assert!(begin.elapsed() < HANGS),
            response => break response,
        }
    };
    assert_eq!(response.unwrap(), 2, "not the response to the read before");
}

#[test]
fn a_server_that_has_not_answered_once_is_not_waited_for_as_long_again() {
    let (_dir, path) = socket();
    let function = Copier::new();
    let _server = Server::bind(&path, function.clone()).unwrap();
    let options = ClientOptions { reply_time: Duration::from_millis(900) };
    let client = Client::connect_with(&path, options).unwrap();
    function.read_delay.store(4000, Ordering::Relaxed);
    let begin = Instant::now();
    for _ in 0..30 {
        assert!(matches!(client.read32(0, 0x20), Err(PciError::Timeout(_))));
    }
    // 27 s if each were waited for as long as the first.
    assert!(begin.elapsed() < Duration::from_secs(18), "{:?}", begin.elapsed());
    // Once it has replied it gets the full time again.
    function.read_delay.store(10, Ordering::Relaxed);
    while client.read32(0, 0x20).is_err() {
        assert!(begin.elapsed() < HANGS);
    }
    client.read32(0, 0x20).unwrap();
}

#[test]
fn a_server_that_never_answers_or_hangs_up_does_not_hang_the_client() {
    let options = ClientOptions { reply_time: Duration::from_millis(100) };
    let (ours, theirs) = UnixStream::pair().unwrap();
    let begin = Instant::now();
    assert!(matches!(Client::on(ours, options.clone()), Err(PciError::Timeout(_))));
    drop(theirs);
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(theirs);
    assert!(matches!(Client::on(ours, options), Err(PciError::Gone(_))));
    assert!(begin.elapsed() < HANGS);
}

#[test]
fn many_threads_share_a_client() {
    let (_dir, path) = socket();
    let _server = Server::bind(&path, Copier::new()).unwrap();
    let client = Client::connect(&path).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let client = &client;
            scope.spawn(move || {
                for i in 0..200 {
                    client.write32(0, 0x100 + thread * 4, i).unwrap();
                    assert_eq!(client.read32(0, 0x100 + thread * 4).unwrap(), i);
                }
            });
        }
        scope.spawn(|| {
            for vector in 0..50 {
                client.write32(2, 4, vector % 20).unwrap();
                let bit = 1 << (vector % 20);
                assert_eq!(client.wait_irq(bit, Duration::from_secs(5)).unwrap(), bit);
            }
        });
    });
}

#[test]
fn many_clients_at_once_are_told_that_the_card_is_in_use() {
    let (_dir, path) = socket();
    let options = ServerOptions { busy_time: Duration::from_millis(200), ..ServerOptions::default() };
    let _server = Server::bind_with(&path, Copier::new(), options).unwrap();
    let _client = Client::connect(&path).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| assert!(matches!(Client::connect(&path), Err(PciError::Busy(_)))));
        }
    });
}
