// SPDX-License-Identifier: Apache-2.0
//! Those who manage the card: what they see, what they may do with the slots of others, and that nobody else is disturbed.

mod common;

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use common::*;
use viaduct::{FunctionKind, Port, Prot, Schedule};
use viaductd::client::{Client, Error, Kind, Manager, MapOptions, Refusal, Slot};
use viaductd::wire::*;
use viaductd::{Config, View};

const LIMIT: Duration = Duration::from_secs(60);

fn rw() -> MapOptions {
    MapOptions::new(Prot::READ_WRITE)
}

fn me() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn manager(served: &Served) -> Manager {
    Manager::connect_within(&served.socket, LIMIT).unwrap()
}

fn stream(slot: &Slot) -> Port {
    Port::Stream { slot: slot.index(), stream: 0 }
}

fn schedule(text: &str) -> Schedule {
    text.parse().unwrap()
}

/// The errno of a refusal of some kind.
fn refused<T>(result: Result<T, Error>, wanted: Kind) -> (i32, String) {
    match result {
        Err(Error::Refused(Refusal { kind, errno, text })) if kind == wanted => (errno, text),
        Err(error) => panic!("{error:?}"),
        Ok(_) => panic!("it was not refused"),
    }
}

const NOBODY: u32 = 65534;

/// What `work` returns as another user, which only root can become.
fn as_nobody<T: Send>(served: &Served, work: impl FnOnce(&Path) -> T + Send) -> Option<T> {
    if me() != 0 {
        eprintln!("skipped: only root can be another user");
        return None;
    }
    for place in [served.folder.path(), &served.socket] {
        let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(place, everybody).unwrap();
    }
    let run = || {
        // SAFETY: as a system call it changes the effective user of this thread only, and accesses no memory.
        let done = unsafe { libc::syscall(libc::SYS_setresuid, -1, NOBODY, -1) };
        assert_eq!(done, 0);
        work(&served.socket)
    };
    Some(std::thread::scope(|scope| scope.spawn(run).join().unwrap()))
}

/// A daemon that two users may use, on the fake card; root manages it.
fn for_two(change: impl FnOnce(&mut Config)) -> Served {
    let (served, _fake) = on_fake(|config| {
        config.uids = vec![me(), NOBODY];
        change(config);
    });
    served
}

fn user_of(view: &View, index: usize) -> (&str, u32) {
    let user = view.slots[index].user.as_ref().unwrap();
    (&user.app, user.uid)
}

// ---------------------------------------------------------------- what is seen

#[test]
fn a_look_shows_who_is_in_which_slot() {
    let (served, _fake) = on_fake(|config| {
        config.schedules = HashMap::from([(me(), schedule("weight=7"))]);
    });
    let manager = manager(&served);
    assert!(manager.manages_all() && manager.card_slots() == 2);
    let empty = manager.look().unwrap();
    assert!(empty.slots.len() == 2 && empty.slots.iter().all(|slot| slot.user.is_none() && !slot.hidden));
    assert!(empty.routes.is_empty() && empty.functions.is_empty() && empty.clock_khz == 250_000);
    let client = served.client();
    let slot = client.open("any").unwrap();
    let view = manager.look().unwrap();
    let user = view.slots[slot.index()].user.as_ref().unwrap();
    assert_eq!((user.app.as_str(), user.uid, user.schedule.as_str()), ("any", me(), "weight=7"));
    assert_eq!((user.pid as u32, user.paused), (std::process::id(), false));
    assert!(view.slots[slot.index()].loaded);
    slot.close().unwrap();
    eventually("the slot is shown as free", || manager.look().unwrap().slots[0].user.is_none());
}

#[test]
fn those_who_manage_take_no_place_of_a_tenant_and_have_a_limit_of_their_own() {
    let (served, _fake) = on_fake(|config| (config.clients, config.clients_per_uid) = (1, 1));
    let client = served.client();
    let slot = client.open("any").unwrap();
    let managers: Vec<Manager> = (0..8).map(|_| manager(&served)).collect();
    assert_eq!(served.daemon.clients(), 1);
    assert!(managers.iter().all(|manager| manager.look().is_ok()));
    // All places are taken: the text is that of a tenant, since nobody has said yet what the connection is for.
    let (errno, _) = refused(Manager::connect_within(&served.socket, LIMIT), Kind::Quota);
    assert_eq!(errno, libc::EAGAIN);
    managers[0].end(slot.index()).unwrap();
    drop(managers);
    drop((slot, client));
    served.settle(0);
    eventually("there is room again", || Manager::connect_within(&served.socket, LIMIT).is_ok());
}

#[test]
fn who_may_not_use_the_card_may_not_look_at_it() {
    let (served, _fake) = on_fake(|config| (config.uids, config.managers) = (vec![me() + 1], vec![]));
    let (errno, text) = refused(Manager::connect_within(&served.socket, LIMIT), Kind::Access);
    assert!(errno == libc::EACCES && text.contains(&format!("user {}", me())), "{text}");
    // The owner need not be on the list of tenants.
    let (served, _fake) = on_fake(|config| config.uids = vec![me() + 1]);
    assert!(manager(&served).look().is_ok());
    assert_eq!(Client::connect(&served.socket).err().unwrap().errno(), libc::EACCES);
}

#[test]
fn a_user_sees_and_manages_own_slots_only() {
    let served = for_two(|config| config.managers = vec![me()]);
    let mine = served.client();
    let slot = mine.open("mine").unwrap();
    let theirs = as_nobody(&served, |socket| {
        let client = Client::connect(socket).unwrap();
        let slot = client.open("theirs").unwrap();
        (client, slot, Manager::connect_within(socket, LIMIT).unwrap())
    });
    let Some((_client, other, nobody)) = theirs else { return };
    assert!(!nobody.manages_all());
    let view = nobody.look().unwrap();
    assert_eq!(user_of(&view, other.index()), ("theirs", NOBODY));
    let hidden = &view.slots[slot.index()];
    assert!(hidden.hidden && hidden.user.is_none() && hidden.moved.is_none());
    // Nothing can be done to the slot of another user, whatever it is.
    let index = slot.index();
    for result in [
        nobody.set_schedule(index, &schedule("weight=1")),
        nobody.pause(index),
        nobody.resume(index),
        nobody.end(index),
        nobody.route(stream(&other), stream(&slot)),
        nobody.route(stream(&slot), stream(&other)),
        nobody.cut(stream(&slot)),
    ] {
        let (errno, text) = refused(result, Kind::Access);
        assert!(errno == libc::EPERM && text.contains(&format!("slot {index} is another user's")), "{text}");
    }
    for board in [FunctionKind::Net, FunctionKind::Console].map(Port::Board) {
        for result in
            [nobody.route(stream(&other), board), nobody.route(board, stream(&other)), nobody.cut(board)]
        {
            assert_eq!(refused(result, Kind::Access).0, libc::EPERM);
        }
    }
    slot.check().unwrap();
    // The own one, and as root all.
    nobody.pause(other.index()).unwrap();
    nobody.resume(other.index()).unwrap();
    let root = manager(&served);
    let all = root.look().unwrap();
    assert_eq!((user_of(&all, index), user_of(&all, other.index())), (("mine", me()), ("theirs", NOBODY)));
    nobody.end(other.index()).unwrap();
    assert_eq!(refused(other.check(), Kind::Ended).0, libc::ECANCELED);
    slot.check().unwrap();
}

#[test]
fn a_user_takes_no_more_than_the_owner_has_given() {
    let (served, card) = on_fake(|config| {
        config.managers = vec![];
        config.schedules = HashMap::from([(me(), schedule("weight=7"))]);
    });
    let client = served.client();
    let slot = client.open("any").unwrap();
    let user = manager(&served);
    assert!(!user.manages_all());
    user.set_schedule(slot.index(), &schedule("weight=3")).unwrap();
    assert_eq!(card.weight(slot.index()), 3);
    user.set_schedule(slot.index(), &schedule("weight=7")).unwrap();
    let (errno, text) = refused(user.set_schedule(slot.index(), &schedule("weight=8")), Kind::Access);
    assert!(
        errno == libc::EPERM && text.contains("more than the owner of the card has given: weight=7"),
        "{text}"
    );
    // This card has no classes.
    assert_eq!(refused(user.set_schedule(slot.index(), &schedule("first")), Kind::Card).0, libc::EINVAL);
    assert_eq!(card.weight(slot.index()), 7);
    drop((slot, client, user));
    // The owner of the card is not bound, and what that one gives is the new limit.
    let (served, card) = on_fake(|_| {});
    let client = served.client();
    let slot = client.open("any").unwrap();
    let owner = manager(&served);
    owner.set_schedule(slot.index(), &schedule("weight=15")).unwrap();
    assert_eq!(card.weight(slot.index()), 15);
    assert_eq!(owner.look().unwrap().slots[slot.index()].user.as_ref().unwrap().schedule, "weight=15");
    // It is not for the next client.
    let index = slot.index();
    slot.close().unwrap();
    assert_eq!(card.weight(index), 1);
}

// ---------------------------------------------------------------- slots are ended

#[test]
fn an_ended_slot_is_free_and_its_client_is_told() {
    let (served, _fake) = on_fake(|config| config.quotas.slots = 2);
    let (victim, neighbour) = (served.client(), served.client());
    let (slot, other) = (victim.open("any").unwrap(), neighbour.open("any").unwrap());
    let before = pattern(3 * PAGE);
    let (path, file) = served.file("data", &before);
    let mapping = slot.map(&file, 3 * PAGE, rw()).unwrap();
    add_one(&slot, &mapping);
    let manager = manager(&served);
    let index = slot.index();
    std::thread::scope(|scope| {
        // A request that waits ends at once, with the reason.
        let waiting = scope.spawn(|| slot.wait_irq(u64::MAX, Duration::from_secs(3600)));
        eventually("a request waits", || slot.status().is_ok());
        manager.end(index).unwrap();
        let (errno, text) = refused(waiting.join().unwrap(), Kind::Ended);
        assert!(
            errno == libc::ECANCELED && text.contains(&format!("slot {index} was ended by user {}", me())),
            "{text}"
        );
    });
    assert!(std::fs::read(&path).unwrap() == plus(&before, 1), "what the app has changed is in the file");
    for result in [slot.check(), slot.reset(), slot.write_register(0, 1), mapping.sync(true)] {
        refused(result, Kind::Ended);
    }
    refused(slot.map_anonymous(PAGE, rw()), Kind::Ended);
    // It counts no longer, neither for the client nor on the card; other slots go on.
    let again = victim.open("any").unwrap();
    assert_eq!(again.index(), index);
    again.check().unwrap();
    other.check().unwrap();
    // Who closes the ended one is told once more, and the new one is another.
    refused(slot.close(), Kind::Ended);
    drop(mapping);
    again.check().unwrap();
    assert_eq!(refused(manager.end(9), Kind::Card).0, libc::ENOENT);
    again.close().unwrap();
    assert_eq!(refused(manager.end(index), Kind::Card).0, libc::ENOENT);
}

#[test]
fn a_client_that_closes_while_its_slot_is_looked_at_is_not_disturbed() {
    let (served, _fake) = on_fake(|_| {});
    let managers: Vec<Manager> = (0..4).map(|_| manager(&served)).collect();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for manager in &managers {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    manager.look().unwrap();
                    for slot in 0..2 {
                        let _ = manager.set_schedule(slot, &schedule("weight=2"));
                        let _ = manager.pause(slot);
                        let _ = manager.resume(slot);
                    }
                }
            });
        }
        let client = served.client();
        for _ in 0..200 {
            let slot = client.open("any").unwrap();
            slot.check().unwrap();
            slot.close().unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn an_app_whose_faults_nobody_serves_is_ended_too() {
    let Some(served) = on_sim(16, &["rng"], |config| config.quotas.slots = 2) else { return };
    let (client, other) = (served.client(), served.client());
    let (slot, neighbour) = (client.open("rng").unwrap(), other.open("rng").unwrap());
    let (path, file) = served.file("data", &pattern(64 * PAGE));
    let mapping = slot.map(&file, 64 * PAGE, rw()).unwrap();
    // Its first access waits for a page, and no request of its client serves that.
    begin_rng(&slot, mapping.va(), 64 * PAGE, 64, u32::MAX, true);
    let manager = manager(&served);
    manager.end(slot.index()).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 64 * PAGE);
    // Another one that runs for ever, in the middle of its transfers.
    let second = client.open("rng").unwrap();
    let endless = second.map_anonymous(16 * PAGE, rw()).unwrap();
    begin_rng(&second, endless.va(), 16 * PAGE, 64, u32::MAX, true);
    assert!(second.wait_irq(0, Duration::from_millis(200)).unwrap().is_none());
    let before = manager.look().unwrap().slots[second.index()].moved.unwrap();
    assert!(before.memory_written > 0 && before.missed > 0, "{before:?}");
    manager.end(second.index()).unwrap();
    for slot in [&slot, &second] {
        assert_eq!(refused(slot.check(), Kind::Ended).0, libc::ECANCELED);
    }
    // The neighbour has noticed nothing, and both slots are free.
    let zeros = neighbour.map_anonymous(16 * PAGE, rw()).unwrap();
    assert_eq!(run_rng(&neighbour, zeros.va(), 16 * PAGE, 64, 100, false), (0, 0));
    let both = (client.open("rng").unwrap(), client.open("rng").unwrap());
    both.0.check().unwrap();
    // What a slot has moved is that of its present client.
    let fresh = manager.look().unwrap();
    let moved = fresh.slots[both.0.index()].moved.unwrap();
    assert_eq!((moved.memory_written, moved.card_written), (0, 0));
}

#[test]
fn a_pause_of_the_owner_is_not_ended_by_the_client() {
    let Some(served) = on_sim(16, &["rng"], |_| {}) else { return };
    let client = served.client();
    let slot = client.open("rng").unwrap();
    let memory = slot.map_anonymous(16 * PAGE, rw()).unwrap();
    let owner = manager(&served);
    begin_rng(&slot, memory.va(), 16 * PAGE, 64, u32::MAX, true);
    assert!(slot.wait_irq(0, Duration::from_millis(100)).unwrap().is_none());
    owner.pause(slot.index()).unwrap();
    let moved = || owner.look().unwrap().slots[slot.index()].moved.unwrap().memory_written;
    // What was taken before is carried out.
    std::thread::sleep(Duration::from_millis(300));
    slot.wait_irq(u64::MAX, Duration::from_millis(200)).unwrap();
    std::thread::sleep(Duration::from_millis(150));
    let paused = moved();
    slot.wait_irq(u64::MAX, Duration::from_millis(200)).unwrap();
    std::thread::sleep(Duration::from_millis(150));
    assert_eq!(moved(), paused);
    assert_eq!(refused(slot.reset(), Kind::Access).0, libc::EPERM);
    assert!(owner.look().unwrap().slots[slot.index()].user.as_ref().unwrap().paused);
    owner.resume(slot.index()).unwrap();
    slot.wait_irq(u64::MAX, Duration::from_millis(500)).unwrap();
    std::thread::sleep(Duration::from_millis(150));
    assert!(moved() > paused);
    slot.reset().unwrap();
}

// ---------------------------------------------------------------- schedules and routes

#[test]
fn a_schedule_takes_effect_and_is_shown() {
    let Some(served) = on_sim(16, &["rng"], |_| {}) else { return };
    let client = served.client();
    let slot = client.open("rng").unwrap();
    let owner = manager(&served);
    let text = "weight=3,first,rate=1000000000,burst=65536,limit,in-flight=16384";
    owner.set_schedule(slot.index(), &schedule(text)).unwrap();
    assert_eq!(owner.look().unwrap().slots[slot.index()].user.as_ref().unwrap().schedule, text);
    for wrong in ["weight=16", "weight=0", "limit", "rate=99999999999999"] {
        assert_eq!(
            refused(owner.set_schedule(slot.index(), &schedule(wrong)), Kind::Card).0,
            libc::EINVAL,
            "{wrong}"
        );
    }
    assert_eq!(owner.look().unwrap().slots[slot.index()].user.as_ref().unwrap().schedule, text);
}

#[test]
fn routes_are_made_shown_and_cut() {
    let Some(served) = on_sim(16, &["pass"], |config| config.quotas.slots = 3) else { return };
    let client = served.client();
    let slots: Vec<Slot> = (0..3).map(|_| client.open("pass").unwrap()).collect();
    let owner = manager(&served);
    let shown = || {
        std::thread::sleep(Duration::from_millis(110));
        let routes = owner.look().unwrap().routes;
        assert!(routes.iter().all(|route| !route.changing));
        routes.into_iter().map(|route| format!("{} {}", route.source, route.sink)).collect::<Vec<_>>()
    };
    let [a, b, c] = [&slots[0], &slots[1], &slots[2]].map(stream);
    owner.route(a, b).unwrap();
    owner.route(a, c).unwrap();
    assert_eq!(shown(), [format!("{a} {b}"), format!("{a} {c}")]);
    // Another source for a sink that has one.
    owner.route(c, b).unwrap();
    assert_eq!(shown(), [format!("{c} {b}"), format!("{a} {c}")]);
    owner.cut(c).unwrap();
    assert_eq!(shown(), [format!("{c} {b}")]);
    assert_eq!(refused(owner.cut(c), Kind::Card).0, libc::ENOENT);
    // With the app at one end the route ends.
    owner.end(slots[2].index()).unwrap();
    assert!(shown().is_empty());
    assert_eq!(refused(owner.route(a, c), Kind::Card).0, libc::ENOENT);
    let beyond = Port::Stream { slot: slots[0].index(), stream: 15 };
    assert_eq!(refused(owner.route(beyond, b), Kind::Card).0, libc::EINVAL);
    // The board's ports: this card has no such functions.
    assert_eq!(refused(owner.route(a, Port::Board(FunctionKind::Net)), Kind::Card).0, libc::EINVAL);
    owner.route(a, b).unwrap();
    drop(slots);
    assert!(shown().is_empty());
}

#[test]
fn routes_of_others_are_neither_shown_nor_cut() {
    let Some(served) = on_sim(16, &["pass"], |config| {
        (config.uids, config.managers) = (vec![me(), NOBODY], vec![me()]);
        config.quotas.slots = 2;
    }) else {
        return;
    };
    let client = served.client();
    let mine = [client.open("pass").unwrap(), client.open("pass").unwrap()];
    let theirs = as_nobody(&served, |socket| {
        let client = Client::connect(socket).unwrap();
        let slots = [client.open("pass").unwrap(), client.open("pass").unwrap()];
        (client, slots, Manager::connect_within(socket, LIMIT).unwrap())
    });
    let Some((_client, theirs, nobody)) = theirs else { return };
    let owner = manager(&served);
    let [a, b] = [&mine[0], &mine[1]].map(stream);
    let [c, d] = [&theirs[0], &theirs[1]].map(stream);
    owner.route(a, b).unwrap();
    assert_eq!(refused(nobody.cut(b), Kind::Access).0, libc::EPERM);
    nobody.route(c, d).unwrap();
    std::thread::sleep(Duration::from_millis(110));
    assert_eq!(owner.look().unwrap().routes.len(), 2);
    let seen = nobody.look().unwrap().routes;
    assert!(seen.len() == 1 && seen[0].source == c.to_string(), "{seen:?}");
    // Where one end is a user's own, the user may end the route that the owner has made there.
    owner.route(a, c).unwrap();
    nobody.cut(c).unwrap();
    owner.route(c, b).unwrap();
    nobody.cut(b).unwrap();
    std::thread::sleep(Duration::from_millis(110));
    assert_eq!(owner.look().unwrap().routes.len(), 1);
}

// ---------------------------------------------------------------- hostile

#[test]
fn whatever_is_sent_to_manage_a_card_harms_nobody() {
    let (served, _fake) = on_fake(|config| config.clients_per_uid = 32);
    let neighbour = served.client();
    let slot = neighbour.open("any").unwrap();
    let call = |id, request| encode(&Call { id, request }).unwrap();
    let hello = call(1, Request::Manage { magic: MAGIC, version: VERSION });
    let greeted = || {
        let socket = served.raw();
        send_bytes(socket.as_fd(), &hello, &[]).unwrap();
        let (response, _) = receive::<Response>(socket.as_fd(), MAX_RESPONSE).unwrap();
        assert!(matches!(response.result, Ok(Reply::Managing { slots: 2, all: true })), "{response:?}");
        socket
    };
    let text = |text: &str| text.to_owned();
    let good = [
        Request::Look,
        Request::Schedule { index: 7, schedule: text("weight=1") },
        Request::Pause { index: 7, paused: true },
        Request::End { index: 7 },
        Request::Route { source: text("slot:7:0"), sink: text("board:net") },
        Request::Cut { sink: text("slot:7:0") },
    ];
    let good: Vec<_> = (2..).zip(good).map(|(id, request)| call(id, request)).collect();
    // Truncated at every length, and with more behind.
    for message in &good {
        for wrong in
            (1..message.len()).map(|len| message[..len].to_vec()).chain([[&message[..], &[0]].concat()])
        {
            let socket = greeted();
            send_bytes(socket.as_fd(), &wrong, &[]).unwrap();
            match receive::<Response>(socket.as_fd(), MAX_RESPONSE) {
                Ok((Response { id: 0, result: Err(refusal) }, _)) => assert_eq!(refusal.kind, Kind::Protocol),
                other => panic!("{other:?}"),
            }
        }
    }
    // Whole, but for what there is not; a tenant's requests, too, and a second greeting.
    let socket = greeted();
    let wrong = [
        Request::Schedule { index: u32::MAX, schedule: text("weight=1") },
        Request::Schedule { index: slot.index() as u32, schedule: "x,".repeat(3000) },
        Request::Schedule { index: slot.index() as u32, schedule: String::new() },
        Request::End { index: 1 << 31 },
        Request::Route { source: text(""), sink: "slot:".repeat(1000) },
        Request::Route { source: text("virtio:net"), sink: text("virtio:blk") },
        Request::Route { source: format!("slot:{}", slot.index()), sink: format!("slot:{}", slot.index()) },
        Request::Cut { sink: text("slot:99999999999999999999:0") },
        Request::Open { app: App::Installed(text("any")) },
        Request::Close { slot: 1 },
        Request::ReadRegister { slot: 1, offset: 0 },
        Request::Hello { magic: MAGIC, version: VERSION },
    ];
    for (id, request) in (10..).zip(wrong) {
        let what = format!("{request:?}");
        send_bytes(socket.as_fd(), &call(id, request), &[]).unwrap();
        let (response, _) = receive::<Response>(socket.as_fd(), MAX_RESPONSE).unwrap();
        assert!(response.id == id && response.result.is_err(), "{what}: {response:?}");
    }
    // A tenant's connection manages nothing.
    let tenant = served.raw();
    send_bytes(tenant.as_fd(), &call(1, Request::Hello { magic: MAGIC, version: VERSION }), &[]).unwrap();
    receive::<Response>(tenant.as_fd(), MAX_RESPONSE).unwrap();
    send_bytes(tenant.as_fd(), &call(2, Request::End { index: slot.index() as u32 }), &[]).unwrap();
    let (response, _) = receive::<Response>(tenant.as_fd(), MAX_RESPONSE).unwrap();
    assert_eq!(response.result.unwrap_err().errno, libc::EINVAL);
    slot.check().unwrap();
}

#[test]
fn a_daemon_that_is_killed_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let Some(mut daemon) = process(&socket, &[]) else { return };
    let manager = Manager::connect_within(&socket, LIMIT).unwrap();
    manager.look().unwrap();
    daemon.0.kill().unwrap();
    daemon.0.wait().unwrap();
    for result in [manager.look().map(drop), manager.end(0)] {
        assert!(matches!(result, Err(Error::Gone(_))));
    }
}
