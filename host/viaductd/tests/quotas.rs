// SPDX-License-Identifier: Apache-2.0
//! Each quota, on the fake card: one more is refused, and what is released can be had again.

mod common;

use std::collections::HashMap;
use std::time::Duration;

use common::*;
use viaduct::{Advice, Prot, Schedule};
use viaductd::Quotas;
use viaductd::client::{Client, Error, Kind, MapOptions, Refusal, Slot};

fn rw() -> MapOptions {
    MapOptions::new(Prot::READ_WRITE)
}

fn with(change: impl FnOnce(&mut Quotas)) -> Served {
    on_fake(|config| change(&mut config.quotas)).0
}

fn by_quota<T>(result: Result<T, Error>, errno: i32) {
    match result {
        Err(Error::Refused(Refusal { kind: Kind::Quota, errno: got, .. })) => assert_eq!(got, errno),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("no quota has applied"),
    }
}

fn one(served: &Served) -> (Client, Slot) {
    let client = served.client();
    let slot = client.open("any").unwrap();
    (client, slot)
}

#[test]
fn a_user_has_the_weight_that_the_owner_gives() {
    let uid = rustix::process::geteuid().as_raw();
    let (served, card) = on_fake(|config| {
        config.schedules = HashMap::from([(uid, Schedule { weight: 7, ..Schedule::default() })])
    });
    let (_client, slot) = one(&served);
    assert_eq!(card.weight(slot.index()), 7);
    let (served, card) = on_fake(|config| {
        config.schedules = HashMap::from([(uid + 1, Schedule { weight: 7, ..Schedule::default() })])
    });
    let (_client, slot) = one(&served);
    assert_eq!(card.weight(slot.index()), 1);
}

#[test]
fn a_weight_is_not_for_the_next_client() {
    let uid = rustix::process::geteuid().as_raw();
    let (served, card) = on_fake(|config| {
        config.schedules = HashMap::from([(uid, Schedule { weight: 7, ..Schedule::default() })])
    });
    let (_client, slot) = one(&served);
    let index = slot.index();
    slot.close().unwrap();
    assert_eq!(card.weight(index), 1);
}

#[test]
fn slots() {
    let served = with(|_| {});
    let (client, slot) = one(&served);
    by_quota(client.open("any"), libc::EDQUOT);
    drop(slot);
    let first = client.open("any").unwrap();
    // Another client has a quota of its own, but the card has two slots.
    let (_other, second) = one(&served);
    assert_ne!(first.index(), second.index());
    let third = served.client();
    let error = third.open("any").unwrap_err();
    assert_eq!(error.errno(), libc::EBUSY, "{error}");
    drop(second);
    third.open("any").unwrap();
    let served = with(|quotas| quotas.slots = 2);
    let client = served.client();
    let _both = (client.open("any").unwrap(), client.open("any").unwrap());
    by_quota(client.open("any"), libc::EDQUOT);
}

#[test]
fn mappings_and_their_parts() {
    let served = with(|quotas| quotas.mappings = 4);
    let (_client, slot) = one(&served);
    let (_, file) = served.file("data", &pattern(16 * PAGE));
    let map = || slot.map(&file, 16 * PAGE, rw());
    let mut some: Vec<_> = (0..4).map(|_| map().unwrap()).collect();
    by_quota(map(), libc::ENOMEM);
    by_quota(slot.map_anonymous(PAGE, rw()), libc::ENOMEM);
    some.truncate(1);
    let va = some[0].va();
    let part = |first: u64, last: u64| va + first * PAGE..va + last * PAGE;
    // Again and again the same part: it is cut once.
    for _ in 0..8 {
        slot.advise(part(2, 4), Advice::Random).unwrap();
        slot.advise(part(0, 16), Advice::Normal).unwrap();
    }
    slot.unmap(part(4, 5)).unwrap();
    by_quota(slot.unmap(part(8, 9)), libc::ENOMEM);
    by_quota(slot.advise(part(8, 9), Advice::Reuse), libc::ENOMEM);
    by_quota(slot.map(&file, PAGE, rw().replacing(va + 10 * PAGE)), libc::ENOMEM);
    drop(some);
    let _four: Vec<_> = (0..4).map(|_| map().unwrap()).collect();
}

#[test]
fn descriptors() {
    let served = with(|quotas| quotas.descriptors = 2);
    let (_client, slot) = one(&served);
    let (_, file) = served.file("data", &pattern(4 * PAGE));
    let first = slot.map(&file, 4 * PAGE, rw()).unwrap();
    let _second = slot.map(&file, PAGE, rw()).unwrap();
    by_quota(slot.map(&file, PAGE, rw()), libc::EMFILE);
    let _without = slot.map_anonymous(PAGE, rw()).unwrap();
    // A part of the mapping holds it.
    let range = first.leave();
    slot.unmap(range.start..range.end - PAGE).unwrap();
    by_quota(slot.map(&file, PAGE, rw()), libc::EMFILE);
    slot.unmap(range).unwrap();
    slot.map(&file, PAGE, rw()).unwrap();
}

#[test]
fn host_memory() {
    let served = with(|quotas| quotas.host_memory = 8 * PAGE);
    let (client, slot) = one(&served);
    let (_, file) = served.file("data", &pattern(16 * PAGE));
    by_quota(slot.map(&file, 9 * PAGE, rw().private()), libc::ENOMEM);
    by_quota(slot.map(&file, 9 * PAGE, rw().on_host()), libc::ENOMEM);
    by_quota(slot.map_anonymous(8 * PAGE + 1, rw()), libc::ENOMEM);
    by_quota(slot.map(&file, PAGE, rw().on_host().huge(true)), libc::ENOMEM);
    let some = slot.map_anonymous(6 * PAGE, rw()).unwrap();
    by_quota(slot.map(&file, 3 * PAGE, rw().private()), libc::ENOMEM);
    drop(some);
    let private = slot.map(&file, 8 * PAGE, rw().private()).unwrap();
    // These need none.
    let shared = slot.map(&file, 16 * PAGE, rw()).unwrap();
    let read = slot.map(&file, 16 * PAGE, MapOptions::new(Prot::READ).private()).unwrap();
    drop((private, shared, read, slot));
    by_quota(client.open_image(&file), libc::ENOMEM);
    let (_, image) = served.file("image", &fake::IMAGE);
    client.open_image(&image).unwrap();
}

#[test]
fn card_memory() {
    let (served, fake) = on_fake(|config| {
        config.quotas.slots = 2;
        config.quotas.card_memory = 16 * PAGE;
    });
    let (_client, slot) = one(&served);
    let before = pattern(64 * PAGE);
    let (path, file) = served.file("data", &before);
    let mapping = slot.map(&file, 64 * PAGE, rw()).unwrap();
    add_one(&slot, &mapping);
    // The slot's half of it is 8 pages.
    let resident = (0..64).filter(|n| fake.page(slot.index(), mapping.va() + n * PAGE).is_some()).count();
    assert!((1..=8).contains(&resident), "{resident} pages");
    mapping.unmap().unwrap();
    assert!(std::fs::read(path).unwrap() == plus(&before, 1));
}

#[test]
fn requests_under_way() {
    let served = with(|quotas| quotas.requests = 3);
    let (client, slot) = one(&served);
    let (neighbour, other) = one(&served);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert!(slot.wait_irq(u64::MAX, Duration::from_secs(3600)).is_err()));
        }
        eventually("three requests wait", || match slot.check() {
            Ok(()) => false,
            refused => {
                by_quota(refused, libc::EAGAIN);
                true
            }
        });
        other.check().unwrap();
        client.disconnect();
    });
    drop((other, neighbour));
    served.settle(0);
    let (_again, slot) = one(&served);
    slot.check().unwrap();
}

#[test]
fn clients() {
    let (served, _fake) = on_fake(|config| (config.clients, config.clients_per_uid) = (8, 2));
    let two = (served.client(), served.client());
    match Client::connect(&served.socket) {
        Err(Error::Refused(Refusal { kind: Kind::Quota, errno: libc::EAGAIN, text })) => {
            assert!(text.contains("of user"), "{text}");
        }
        other => panic!("{:?}", other.err()),
    }
    drop(two);
    served.settle(0);
    served.client();
    let (served, _fake) = on_fake(|config| config.clients = 1);
    let _one = served.client();
    assert_eq!(Client::connect(&served.socket).err().unwrap().errno(), libc::EAGAIN);
}
