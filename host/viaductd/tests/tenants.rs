// SPDX-License-Identifier: Apache-2.0
//! Several tenants on the simulated card, with real apps over files, and processes that are killed. Needs `make build`; without it these
//! tests are skipped with a message.

mod common;

use std::fs::{File, OpenOptions};
use std::path::PathBuf;
use std::time::Duration;

use common::*;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use viaduct::{Advice, Prot, Register, SyncMode};
use viaductd::client::{Client, Error, MapOptions, Slot};

const MIB: u64 = 1 << 20;

fn rw() -> MapOptions {
    MapOptions::new(Prot::READ_WRITE)
}

/// Writes with app rng to a file and compares it with the model; reads it back.
fn rng_over_a_file(served: &Served, slot: &Slot, name: &str) {
    let mut model = pattern(300 * PAGE);
    let (path, file) = served.file(name, &model);
    let mapping = slot.map(&file, model.len() as u64, rw()).unwrap();
    let len = model.len() as u64;
    assert_eq!(run_rng(slot, mapping.va(), len, 256, 150, true).1, 0);
    rng_written(&mut model, 256, 150);
    mapping.sync(false).unwrap();
    assert!(std::fs::read(&path).unwrap() == model, "{name}: after sync");
    assert_eq!(run_rng(slot, mapping.va(), len, 256, 150, false), (rng_sum(&model, 256, 150), 0), "{name}");
    mapping.unmap().unwrap();
    assert!(std::fs::read(&path).unwrap() == model, "{name}: after unmap");
}

/// The table after so many updates of RandomAccess, from seed 1 (apps/gups/model.py).
fn gups_model(bytes: &[u8], updates: u64) -> Vec<u8> {
    let mut table: Vec<u64> =
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    let last = table.len() as u64 - 1;
    let mut x = 1u64;
    for _ in 0..updates {
        x = x << 1 ^ if x >> 63 == 1 { 7 } else { 0 };
        table[(x & last) as usize] ^= x;
    }
    table.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn a_child_of_fork_is_refused_and_keeps_nothing() {
    let Some(served) = on_sim(16, &["rng"], |config| config.quotas.slots = 4) else { return };
    let client = served.client();
    let slots: Vec<Slot> = (0..client.card_slots()).map(|_| client.open("rng").unwrap()).collect();
    let mapping = slots[0].map_anonymous(PAGE, rw()).unwrap();
    // SAFETY: the child uses its own copies, and ends with `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let work = std::panic::AssertUnwindSafe(|| {
            assert!(matches!(slots[0].check(), Err(Error::Forked)));
            assert!(matches!(client.open("rng"), Err(Error::Forked)));
            assert!(matches!(mapping.sync(false), Err(Error::Forked)));
            drop((mapping, slots, client));
        });
        let wrong = std::panic::catch_unwind(work).is_err();
        // SAFETY: a child without an error waits to be killed, for a minute at most.
        unsafe {
            libc::alarm(60);
            if !wrong {
                libc::pause();
            }
            libc::_exit(1);
        }
    }
    // What is the parent's is in order whatever the child does.
    std::thread::sleep(Duration::from_millis(300));
    rng_over_a_file(&served, &slots[0], "beside");
    mapping.unmap().unwrap();
    drop((slots, client));
    // The daemon notices the end, although the child lives.
    let client = served.client();
    let all = (0..client.card_slots()).map(|_| {
        for _ in 0..100 {
            match client.open("rng") {
                Ok(slot) => return slot,
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
        client.open("rng").unwrap()
    });
    assert_eq!(all.collect::<Vec<_>>().len(), client.card_slots());
    let mut status = 0;
    // SAFETY: our child; writes the status.
    let ended = unsafe { (libc::kill(child, libc::SIGKILL), libc::waitpid(child, &mut status, 0)) };
    assert_eq!((ended, libc::WIFSIGNALED(status), libc::WTERMSIG(status)), ((0, child), true, libc::SIGKILL));
}

#[test]
fn two_tenants_work_at_once() {
    // Less card memory than their files have: pages come and go.
    let change = |config: &mut viaductd::Config| config.quotas.card_memory = 64 * PAGE;
    let Some(served) = on_sim(16, &["rng", "gups"], change) else { return };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let client = served.client();
            let slot = client.open("rng").unwrap();
            for round in 0..3 {
                rng_over_a_file(&served, &slot, &format!("rng{round}"));
            }
            slot.close().unwrap();
        });
        scope.spawn(|| {
            let client = served.client();
            let slot = client.open("gups").unwrap();
            for round in 0..3 {
                let before = pattern(128 * PAGE);
                let (path, file) = served.file(&format!("gups{round}"), &before);
                let mapping = slot.map(&file, before.len() as u64, rw()).unwrap();
                mapping.advise(Advice::Random).unwrap();
                run_gups(&slot, mapping.va(), mapping.len(), 1500);
                mapping.unmap().unwrap();
                assert!(std::fs::read(path).unwrap() == gups_model(&before, 1500));
            }
        });
    });
    served.settle(0);
}

/// The first fills all card memory with its bytes; the second gets the same frames, and reads all of them, also where its files do not
/// reach.
#[test]
fn a_tenant_cannot_read_what_an_earlier_one_left() {
    let Some(served) = on_sim(2, &["rng"], |config| config.quotas.card_memory = 8 * MIB) else { return };
    for huge in [false, true] {
        let first = served.client();
        let slot = first.open("rng").unwrap();
        let secret = vec![0xa5; 8 * MIB as usize];
        let (_, file) = served.file("secret", &secret);
        let mapping = slot.map(&file, 8 * MIB, rw().huge(huge)).unwrap();
        mapping.advise(Advice::WillNeed).unwrap();
        // They are on the card: it reads them.
        let (sum, errors) = run_rng(&slot, mapping.va(), 8 * MIB, 4096, 64, false);
        assert_eq!((sum, errors), (rng_sum(&secret, 4096, 64), 0));
        drop((mapping, slot, first));
        served.settle(0);

        let second = served.client();
        let slot = second.open("rng").unwrap();
        let page = if huge { 2 * MIB } else { PAGE };
        for len in [64, page + 64, 2 * page + page / 2 + 64] {
            let mut own = vec![1; len as usize];
            let (_, file) = served.file("own", &own);
            let mapping = slot.map(&file, len, rw().huge(huge)).unwrap();
            // To the end of the last page.
            own.resize(len.next_multiple_of(page) as usize, 0);
            let all = own.len() as u64;
            let size = if huge { 65536 } else { 64 };
            let (sum, errors) = run_rng(&slot, mapping.va(), all, size, 300, false);
            assert_eq!(errors, 0);
            assert_eq!(
                sum,
                rng_sum(&own, size, 300),
                "{len} bytes in pages of {page}: only zeros and its own"
            );
            mapping.unmap().unwrap();
        }
        let anonymous = slot.map_anonymous(4 * MIB, rw().huge(huge)).unwrap();
        assert_eq!(run_rng(&slot, anonymous.va(), 4 * MIB, 4096, 300, false), (0, 0), "zeros");
    }
}

#[test]
fn a_file_that_is_truncated_underneath_is_its_owners_trouble() {
    let Some(served) = on_sim(16, &["rng"], |_| {}) else { return };
    let (client, other) = (served.client(), served.client());
    let (slot, neighbour) = (client.open("rng").unwrap(), other.open("rng").unwrap());
    let (path, file) = served.file("data", &pattern(64 * PAGE));
    let mapping = slot.map(&file, 64 * PAGE, rw()).unwrap();
    run_rng(&slot, mapping.va(), 64 * PAGE, 4096, 100, true);
    OpenOptions::new().write(true).open(&path).unwrap().set_len(PAGE).unwrap();
    let lost = mapping.sync(true).unwrap_err();
    assert_eq!(lost.errno(), libc::EIO, "{lost}");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), PAGE, "it has not grown again");
    rng_over_a_file(&served, &neighbour, "neighbour");
    let _ = mapping.unmap();
    rng_over_a_file(&served, &slot, "again");
}

// ---------------------------------------------------------------- clients that are killed

fn place() -> (Client, File) {
    let client = Client::connect(PathBuf::from(std::env::var_os("SOCKET").unwrap())).unwrap();
    let path = PathBuf::from(std::env::var_os("FILE").unwrap());
    (client, OpenOptions::new().read(true).write(true).open(path).unwrap())
}

const LEN: u64 = 256 * PAGE;

#[test]
#[ignore = "the process that another test kills"]
fn victim_in_a_run() {
    let (client, file) = place();
    let slot = client.open("rng").unwrap();
    let mapping = slot.map(&file, LEN, rw()).unwrap();
    begin_rng(&slot, mapping.va(), LEN, 256, u32::MAX, true);
    println!("\nhere");
    slot.wait_irq(0, Duration::from_secs(3600)).unwrap();
}

#[test]
#[ignore = "the process that another test kills"]
fn victim_with_changed_pages() {
    let (client, file) = place();
    let slot = client.open("rng").unwrap();
    let mapping = slot.map(&file, LEN, rw()).unwrap();
    run_rng(&slot, mapping.va(), LEN, 4096, 200, true);
    println!("\nhere");
    std::thread::sleep(Duration::from_secs(3600));
}

#[test]
#[ignore = "the process that another test kills"]
fn victim_in_a_sync() {
    let (client, file) = place();
    let slot = client.open("rng").unwrap();
    let mapping = slot.map(&file, LEN, rw()).unwrap();
    run_rng(&slot, mapping.va(), LEN, 4096, 200, true);
    println!("\nhere");
    loop {
        mapping.sync(true).unwrap();
        run_rng(&slot, mapping.va(), LEN, 4096, 200, true);
    }
}

#[test]
fn clients_are_killed() {
    let Some(served) = on_sim(16, &["rng"], |_| {}) else { return };
    let other = served.client();
    let neighbour = other.open("rng").unwrap();
    for (victim, size, count) in
        [("victim_in_a_run", 0, 0), ("victim_with_changed_pages", 4096, 200), ("victim_in_a_sync", 4096, 200)]
    {
        let mut model = pattern(LEN);
        let (path, _) = served.file("data", &model);
        let mut child = other_process(victim, &served, &path);
        said(&mut child, "here");
        if victim == "victim_in_a_sync" {
            rng_over_a_file(&served, &neighbour, "meanwhile");
        }
        child.0.kill().unwrap();
        // Its slot stops, its pages are written back; the neighbour works on meanwhile.
        rng_over_a_file(&served, &neighbour, "neighbour");
        served.settle(1);
        let after = std::fs::read(&path).unwrap();
        if count > 0 {
            rng_written(&mut model, size, count);
            assert!(after == model, "{victim}: what it has changed is in the file");
        } else {
            assert_eq!(after.len() as u64, LEN);
        }
        // All slots but the neighbour's are free.
        let (again, more) = (served.client(), served.client());
        let _slots = (again.open("rng").unwrap(), more.open("rng").unwrap());
        rng_over_a_file(&served, &_slots.0, "again");
        drop((_slots, again, more));
        served.settle(1);
    }
}

fn other_process(name: &str, served: &Served, file: &std::path::Path) -> Killed {
    other(name, &served.socket, file)
}

// ---------------------------------------------------------------- the daemon ends

#[test]
fn what_sync_has_confirmed_outlives_a_daemon_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, path) = (folder.path().join("s"), folder.path().join("data"));
    let Some(mut daemon) = process(&socket, &[]) else { return };
    let mut model = pattern(LEN);
    std::fs::write(&path, &model).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let client = Client::connect(&socket).unwrap();
    let slot = client.open("rng").unwrap();
    let mapping = slot.map(&file, LEN, rw()).unwrap();
    run_rng(&slot, mapping.va(), LEN, 4096, 200, true);
    slot.sync(mapping.range(), SyncMode { durable: true, invalidate: false }).unwrap();
    daemon.0.kill().unwrap();
    daemon.0.wait().unwrap();
    rng_written(&mut model, 4096, 200);
    assert!(std::fs::read(&path).unwrap() == model);
    assert!(matches!(slot.check(), Err(Error::Gone(_))));
    assert!(matches!(mapping.unmap(), Err(Error::Gone(_))));
    // Its socket is in the way of nobody.
    drop(daemon);
    let _again = process(&socket, &[]).unwrap();
    let client = Client::connect(&socket).unwrap();
    client.open("gups").unwrap().check().unwrap();
}

#[test]
fn a_daemon_that_is_asked_to_end_writes_back_first() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, path) = (folder.path().join("s"), folder.path().join("data"));
    let Some(mut daemon) = process(&socket, &["--slots", "2", "--card-memory", "8"]) else { return };
    let mut model = pattern(LEN);
    std::fs::write(&path, &model).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let client = Client::connect(&socket).unwrap();
    let (slot, busy) = (client.open("rng").unwrap(), client.open("rng").unwrap());
    let mapping = slot.map(&file, LEN, rw()).unwrap();
    run_rng(&slot, mapping.va(), LEN, 4096, 200, true);
    rng_written(&mut model, 4096, 200);
    assert!(std::fs::read(&path).unwrap() != model, "it is still on the card only");
    // Another slot of it runs for ever.
    let endless = busy.map_anonymous(16 * PAGE, rw()).unwrap();
    begin_rng(&busy, endless.va(), 16 * PAGE, 64, u32::MAX, true);
    kill(Pid::from_raw(daemon.0.id() as i32), Signal::SIGTERM).unwrap();
    let status = daemon.0.wait().unwrap();
    assert!(status.success(), "{status}");
    assert!(std::fs::read(&path).unwrap() == model);
    assert!(!socket.exists());
    assert!(slot.read_wide(Register { offset: 0, width: 64 }).is_err());
}

#[test]
fn apps_are_named_as_they_are_installed() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let Some(_daemon) = process(&socket, &[]) else { return };
    let client = Client::connect(&socket).unwrap();
    for name in ["", "no", "../rng", "rng/../rng", "/etc/passwd", "rng\0"] {
        let error = client.open(name).unwrap_err();
        assert_eq!(error.errno(), libc::ENOENT, "{name:?}: {error}");
    }
    let error = client.open("rgn").unwrap_err();
    assert!(error.to_string().contains("did you mean rng?"), "{error}");
    client.open("rng").unwrap().check().unwrap();
}
