// SPDX-License-Identifier: Apache-2.0
//! Clients that break rules, on the fake card. Beside each of them a neighbour works, which notices nothing.

mod common;

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use common::*;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use viaduct::{Prot, Register, SyncMode};
use viaductd::client::{App, Client, Error, MapOptions, Slot};
use viaductd::wire::*;

fn rw() -> MapOptions {
    MapOptions::new(Prot::READ_WRITE)
}

/// A client whose app works on a file.
struct Neighbour<'a> {
    served: &'a Served,
    slot: Slot,
    _client: Client,
}

impl<'a> Neighbour<'a> {
    fn new(served: &'a Served) -> Self {
        let client = served.client();
        Self { served, slot: client.open("any").unwrap(), _client: client }
    }

    fn works(&self) {
        let before = pattern(3 * PAGE + 100);
        let (path, file) = self.served.file("neighbour", &before);
        let mapping = self.slot.map(&file, before.len() as u64, rw()).unwrap();
        add_one(&self.slot, &mapping);
        mapping.unmap().unwrap();
        assert!(std::fs::read(path).unwrap() == plus(&before, 1));
    }
}

fn bytes(call: &Call) -> Vec<u8> {
    encode(call).unwrap()
}

fn hello() -> Vec<u8> {
    bytes(&Call { id: 1, request: Request::Hello { magic: MAGIC, version: VERSION } })
}

fn greeted(served: &Served) -> OwnedFd {
    let socket = served.raw();
    send_bytes(socket.as_fd(), &hello(), &[]).unwrap();
    let (response, _) = receive::<Response>(socket.as_fd(), MAX_RESPONSE).unwrap();
    assert!(matches!(response.result, Ok(Reply::Welcome { slots: 2, yours: 1 })), "{response:?}");
    socket
}

/// The daemon says what is wrong, in words, and ends the connection.
fn is_ended(socket: &OwnedFd, why: &str) {
    let mut said = String::new();
    loop {
        match receive::<Response>(socket.as_fd(), MAX_RESPONSE) {
            Ok((Response { id: 0, result: Err(refusal) }, _)) => said = refusal.text,
            Ok(_) => {}
            Err(end) => {
                assert_eq!(end, WireError::Closed);
                assert!(said.contains(why), "{said:?} does not say {why:?}");
                return;
            }
        }
    }
}

#[test]
fn malformed_messages_end_the_connection() {
    let (served, _fake) = on_fake(|_| {});
    let neighbour = Neighbour::new(&served);
    let good =
        bytes(&Call { id: 2, request: Request::Map { slot: 1, file: true, len: PAGE, options: rw() } });
    let mut longer = good.clone();
    longer.push(0);
    let mut wrong: Vec<(Vec<u8>, &str)> = vec![
        (vec![0; MAX_REQUEST + 1], "more than 8192 bytes"),
        (vec![0xff; 100_000], "more than 8192 bytes"),
        (longer, "after its end"),
        (vec![0xff; 64], "not understood"),
        // Bytes that say that 2^60 others follow.
        (vec![2, 9, 1, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], "not understood"),
    ];
    wrong.extend((1..good.len()).map(|len| (good[..len].to_vec(), "not understood")));
    for (message, why) in &wrong {
        let socket = greeted(&served);
        send_bytes(socket.as_fd(), message, &[]).unwrap();
        is_ended(&socket, why);
        let socket = served.raw();
        send_bytes(socket.as_fd(), message, &[]).unwrap();
        is_ended(&socket, "");
    }
    served.settle(1);
    neighbour.works();
}

#[test]
fn whatever_the_bytes_are_the_daemon_and_the_neighbour_stay() {
    let (served, _fake) = on_fake(|config| config.clients_per_uid = 32);
    let neighbour = Neighbour::new(&served);
    let at = |va: u64| rw().replacing(va);
    let good = [
        Request::Open { app: App::Installed("x".into()) },
        Request::Map { slot: 1, file: false, len: 3 * PAGE, options: at(1 << 20) },
        Request::Sync { slot: 1, start: 1 << 20, end: (1 << 20) + PAGE, mode: SyncMode::default() },
        Request::Unmap { slot: 1, start: 1 << 20, end: (1 << 20) + PAGE },
        Request::ReadWide { slot: 1, register: Register { offset: 0, width: 64 } },
        Request::WaitIrq { slot: 1, seen: 0, millis: 1 },
        Request::Close { slot: 1 },
    ];
    let good: Vec<_> = (2..).zip(good).map(|(id, request)| bytes(&Call { id, request })).collect();
    let mut x = SEED;
    let mut next = |below: usize| {
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        (x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % below
    };
    for round in 0..60 {
        let socket = greeted(&served);
        for message in &good {
            let mut message = message.clone();
            if round > 0 {
                for _ in 0..1 + next(2) {
                    let at = next(message.len());
                    message[at] = next(256) as u8;
                }
            }
            if send_bytes(socket.as_fd(), &message, &[]).is_err() {
                break;
            }
            if receive::<Response>(socket.as_fd(), MAX_RESPONSE).is_err() {
                break;
            }
        }
        drop(socket);
        served.settle(1);
        neighbour.works();
    }
}

#[test]
fn numbers_out_of_range_are_refused_one_by_one() {
    let (served, _fake) = on_fake(|_| {});
    let neighbour = Neighbour::new(&served);
    let client = served.client();
    let slot = client.open("any").unwrap();
    let (_, file) = served.file("data", &pattern(4 * PAGE));
    let invalid = |error: Error| assert_eq!(error.errno(), libc::EINVAL, "{error}");
    let mapping = slot.map(&file, 4 * PAGE, rw()).unwrap();
    for (start, end) in [(5, 5), (4096, 0), (0, u64::MAX), (u64::MAX - 1, u64::MAX), (1 << 40, (1 << 48) + 1)]
    {
        let range = start..end;
        invalid(slot.unmap(range.clone()).unwrap_err());
        invalid(slot.sync(range.clone(), SyncMode::default()).unwrap_err());
        invalid(slot.advise(range, viaduct::Advice::Random).unwrap_err());
    }
    for register in [
        Register { offset: 0xffff_fffc, width: 64 },
        Register { offset: 0, width: u32::MAX },
        Register { offset: 0xffc, width: 33 },
        Register { offset: 0, width: 0 },
    ] {
        assert!(slot.read_wide(register).is_err(), "{register:?}");
        assert!(slot.write_wide(register, &[0; 8]).is_err(), "{register:?}");
    }
    invalid(slot.read_register(0x1000).unwrap_err());
    invalid(slot.write_register(2, 0).unwrap_err());
    for len in [0, u64::MAX, i64::MAX as u64, 1 << 62] {
        assert!(slot.map(&file, len, rw()).is_err(), "{len}");
        assert!(slot.map_anonymous(len, rw()).is_err(), "{len}");
    }
    for options in [rw().offset(1), rw().offset(u64::MAX), rw().exactly(u64::MAX - 1), rw().replacing(12)] {
        assert!(slot.map(&file, PAGE, options).is_err(), "{options:?}");
    }
    slot.check().unwrap();
    mapping.unmap().unwrap();
    neighbour.works();
}

#[test]
fn descriptors_that_were_not_asked_for_are_closed() {
    let (served, _fake) = on_fake(|_| {});
    let neighbour = Neighbour::new(&served);
    // A pipe tells whether the daemon still holds a descriptor: its end is seen once all are closed.
    let (reading, writing) = rustix::pipe::pipe().unwrap();
    rustix::io::ioctl_fionbio(&reading, true).unwrap();
    let call = bytes(&Call { id: 2, request: Request::Irqs { slot: 1 } });
    for count in [1, 2, 3, 200] {
        let socket = greeted(&served);
        let files: Vec<BorrowedFd> = (0..count).map(|_| writing.as_fd()).collect();
        send_bytes(socket.as_fd(), &call, &files).unwrap();
        if count == 1 {
            let (response, _) = receive::<Response>(socket.as_fd(), MAX_RESPONSE).unwrap();
            assert_eq!(response.result.unwrap_err().errno, libc::EBADF, "there is no slot");
        } else {
            is_ended(&socket, "more than one descriptor");
        }
    }
    // Without a message, and before the greeting.
    let socket = served.raw();
    send_bytes(socket.as_fd(), b"?", &[writing.as_fd()]).unwrap();
    is_ended(&socket, "");
    drop(writing);
    served.settle(1);
    assert_eq!(rustix::io::read(&reading, &mut [0; 1]), Ok(0), "all copies are closed");
    neighbour.works();
}

#[test]
fn descriptors_must_be_of_files_that_are_open_for_what_is_asked() {
    let (served, _fake) = on_fake(|_| {});
    let client = served.client();
    let slot = client.open("any").unwrap();
    let (path, file) = served.file("data", &pattern(2 * PAGE));
    let refused = |file: &File, options| slot.map(file, PAGE, options).err().map(|error| error.errno());
    let read_only = File::open(&path).unwrap();
    assert_eq!(refused(&read_only, rw()), Some(libc::EACCES));
    assert_eq!(refused(&read_only, MapOptions::new(Prot::READ)), None);
    assert_eq!(refused(&read_only, rw().private()), None);
    let write_only = OpenOptions::new().write(true).open(&path).unwrap();
    assert_eq!(refused(&write_only, MapOptions::new(Prot::WRITE)), Some(libc::EACCES));
    let appending = OpenOptions::new().read(true).append(true).open(&path).unwrap();
    assert_eq!(refused(&appending, rw()), Some(libc::EINVAL));
    let nothing = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&path).unwrap();
    assert_eq!(refused(&nothing, MapOptions::new(Prot::READ)), Some(libc::EBADF));
    let folder = File::open(served.folder.path()).unwrap();
    assert_eq!(refused(&folder, MapOptions::new(Prot::READ)), Some(libc::ENODEV));
    let (reading, _writing) = rustix::pipe::pipe().unwrap();
    assert_eq!(refused(&File::from(reading), MapOptions::new(Prot::READ)), Some(libc::ENODEV));
    let device = OpenOptions::new().read(true).write(true).open("/dev/zero").unwrap();
    assert_eq!(refused(&device, rw()), Some(libc::ENODEV));
    // The app's write to a read-only mapping reaches neither the file nor the daemon.
    let mapping = slot.map(&read_only, 2 * PAGE, MapOptions::new(Prot::READ)).unwrap();
    add_one(&slot, &mapping);
    assert!(!slot.take_denied().unwrap().is_empty());
    drop(mapping);
    assert!(std::fs::read(&path).unwrap() == pattern(2 * PAGE));
    drop(file);
}

#[test]
fn images_come_by_descriptor() {
    let (served, _fake) = on_fake(|_| {});
    let client = served.client();
    let (_, image) = served.file("image", &fake::IMAGE);
    let slot = client.open_image(&image).unwrap();
    slot.check().unwrap();
    slot.close().unwrap();
    let (_, odd) = served.file("odd", b"no image");
    let (_, empty) = served.file("empty", b"");
    for wrong in [&odd, &empty] {
        assert!(client.open_image(wrong).is_err());
    }
    let (_, huge) = served.file("huge", b"");
    huge.set_len(1 << 40).unwrap();
    assert_eq!(client.open_image(&huge).unwrap_err().errno(), libc::EINVAL);
    // Each failure has given the slot back.
    client.open("any").unwrap().check().unwrap();
}

#[test]
fn who_is_not_on_the_list_is_told_so() {
    let me = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let (served, _fake) = on_fake(|config| config.uids = vec![me + 1]);
    match Client::connect(&served.socket) {
        Err(error @ Error::Refused(Refusal { kind: Kind::Access, .. })) => {
            assert_eq!(error.errno(), libc::EACCES);
            assert!(error.to_string().contains(&format!("user {me}")), "{error}");
        }
        other => panic!("{:?}", other.err()),
    }
    assert_eq!(served.daemon.clients(), 0);
    let by_group = |groups: Vec<u32>| {
        let (served, _fake) = on_fake(|config| (config.uids, config.gids) = (vec![], groups));
        Client::connect(&served.socket).is_ok()
    };
    assert!(by_group(vec![group]) && !by_group(vec![group + 1]) && !by_group(vec![]));
}

#[test]
fn another_version_is_refused_in_words() {
    let (served, _fake) = on_fake(|_| {});
    for (request, why) in [
        (Request::Hello { magic: MAGIC, version: VERSION + 1 }, "version 3 of the protocol"),
        (Request::Hello { magic: 7, version: VERSION }, "no greeting"),
        (Request::Open { app: App::Installed("x".into()) }, "no greeting"),
    ] {
        let socket = served.raw();
        send_bytes(socket.as_fd(), &bytes(&Call { id: 1, request }), &[]).unwrap();
        is_ended(&socket, why);
    }
    // One that says nothing at all.
    let (served, _fake) = on_fake(|config| config.patience = Duration::from_millis(50));
    let socket = served.raw();
    is_ended(&socket, "");
    served.settle(0);
}

#[test]
fn a_client_that_takes_no_answers_loses_its_connection_only() {
    let (served, _fake) = on_fake(|config| config.patience = Duration::from_millis(300));
    let neighbour = Neighbour::new(&served);
    let socket = greeted(&served);
    set_socket_timeout(&socket, Timeout::Send, Some(Duration::from_secs(60))).unwrap();
    let open = bytes(&Call { id: 2, request: Request::Open { app: App::Installed("x".into()) } });
    send_bytes(socket.as_fd(), &open, &[]).unwrap();
    let register = Register { offset: 0, width: 8 * 4096 };
    let read = bytes(&Call { id: 3, request: Request::ReadWide { slot: 1, register } });
    let end = loop {
        if let Err(end) = send_bytes(socket.as_fd(), &read, &[]) {
            break end;
        }
    };
    assert_eq!(end, WireError::Closed);
    served.settle(1);
    neighbour.works();
    // Its slot is free again.
    served.client().open("any").unwrap();
}

#[test]
fn an_end_releases_everything_whatever_is_under_way() {
    let (served, fake) = on_fake(|_| {});
    let neighbour = Neighbour::new(&served);
    let before = pattern(40 * PAGE);
    for round in 0..4 {
        let (path, file) = served.file("data", &before);
        let client = served.client();
        let slot = client.open("any").unwrap();
        let mapping = slot.map(&file, before.len() as u64, rw()).unwrap();
        add_one(&slot, &mapping);
        let range = mapping.leave();
        // The connection ends while requests are under way, and without any farewell.
        let socket = greeted(&served);
        let call = |request| bytes(&Call { id: 9, request });
        send_bytes(socket.as_fd(), &call(Request::Irqs { slot: 1 }), &[]).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| slot.wait_irq(u64::MAX, Duration::from_secs(3600)).unwrap_err());
            if round % 2 == 1 {
                scope.spawn(|| drop(slot.sync(range.clone(), SyncMode::default())));
            }
            // Not before the wait is under way.
            eventually("a request waits", || slot.status().is_ok());
            client.disconnect();
        });
        drop(socket);
        served.settle(1);
        assert!(std::fs::read(path).unwrap() == plus(&before, 1), "as the mapping of a process that ends");
        assert!(matches!(slot.check(), Err(Error::Gone(_))));
        neighbour.works();
    }
    let rings = fake.mapped_ranges();
    let again = served.client();
    drop(again.open("any").unwrap());
    drop(again);
    served.settle(1);
    assert_eq!(fake.mapped_ranges(), rings, "no host memory stays mapped for the card");
}

#[test]
fn errors_are_those_of_a_local_slot() {
    let (served, _fake) = on_fake(|_| {});
    let client = served.client();
    let slot = client.open("any").unwrap();
    let (path, file) = served.file("data", &pattern(8 * PAGE));
    let mapping = slot.map(&file, 8 * PAGE, rw()).unwrap();
    let taken = slot.map(&file, PAGE, rw().exactly(mapping.va())).err().unwrap();
    assert_eq!(taken.errno(), libc::EEXIST);
    let unmapped = slot.sync(0..PAGE, SyncMode::default()).unwrap_err();
    assert_eq!(unmapped.errno(), libc::ENOMEM);
    assert!(unmapped.to_string().contains("nothing is mapped at 0x0"), "{unmapped}");
    // The file is truncated underneath: what was in the part that is gone is lost, and the client is told.
    add_one(&slot, &mapping);
    OpenOptions::new().write(true).open(&path).unwrap().set_len(3 * PAGE).unwrap();
    let lost = mapping.sync(true).unwrap_err();
    assert_eq!(lost.errno(), libc::EIO);
    assert!(lost.to_string().contains("truncated to 12288 bytes"), "{lost}");
    assert!(std::fs::read(&path).unwrap() == plus(&pattern(3 * PAGE), 1));
    drop(mapping);
    slot.check().unwrap();
    // A slot in use is not closed under a request.
    let none = Error::errno(&client.open("any").unwrap_err());
    assert_eq!(none, libc::EDQUOT);
    slot.close().unwrap();
    client.open("any").unwrap();
}

#[test]
fn the_socket_of_a_card_is_told_from_that_of_a_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("card");
    let _card = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let error = Client::connect(&path).err().unwrap().to_string();
    assert!(error.contains("socket of a card") && error.contains("Location::Unix"), "{error}");
}
