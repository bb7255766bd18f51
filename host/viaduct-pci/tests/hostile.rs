// SPDX-License-Identifier: Apache-2.0
//! A server with clients that break the protocol by accident or on purpose.
//!
//! After every attack a well-behaved client must find the function reset, no memory mapped, and everything working.

mod common;

use common::{Copier, copy_through, eventually, socket};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use proptest::prelude::*;
use std::io::{IoSlice, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use viaduct_pci::vfio_user::{Client, Server, ServerOptions};
use viaduct_pci::{Budget, DmaAccess, HostMemory, Limits, PciFunction};

const LIMIT: Duration = Duration::from_millis(200);
/// Longer than anything takes on the busiest machine that does not hang.
const HANGS: Duration = Duration::from_secs(60);

struct Target {
    function: Arc<Copier>,
    _server: Server,
    path: PathBuf,
    _dir: tempfile::TempDir,
}

impl Target {
    fn new() -> Self {
        Self::with(Budget::of_process(), LIMIT)
    }

    /// The server waits so long for the rest of a message.
    fn with(budget: Arc<Budget>, message_time: Duration) -> Self {
        let (dir, path) = socket();
        let function = Copier::new();
        let options = ServerOptions { message_time, busy_time: Duration::from_secs(5), budget };
        let server = Server::bind_with(&path, function.clone(), options).unwrap();
        Self { function, _server: server, path, _dir: dir }
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.path).unwrap();
        stream.set_read_timeout(Some(HANGS)).unwrap();
        stream
    }

    /// A connection past the version exchange.
    fn greeted(&self) -> UnixStream {
        let mut stream = self.connect();
        stream.write_all(&message(1, 0, &[0, 0, 1, 0])).unwrap();
        let (header, body) = reply(&mut stream).expect("a version reply");
        assert_eq!(header[8..12], [1, 0, 0, 0]);
        assert_eq!(body[..4], [0, 0, 1, 0]);
        stream
    }

    /// The function works for an honest client, and nothing of the attacker is left.
    fn check(&self) {
        let client = Client::connect(&self.path).expect("the server lives");
        assert_eq!(self.function.maps(), 0, "no memory left mapped");
        let memory = Arc::new(HostMemory::new(0x2000).unwrap());
        client.dma_map(0x1000, memory.clone(), DmaAccess::ReadWrite).unwrap();
        memory.write(0, b"ok");
        assert_eq!(copy_through(&client, 0x1000, 0x2000, 2, 2), 0);
        let mut got = [0; 2];
        memory.read(0x1000, &mut got);
        assert_eq!(&got, b"ok");
    }
}

fn message(command: u16, flags: u32, body: &[u8]) -> Vec<u8> {
    raw(command, 16 + body.len() as u32, flags, body)
}

fn raw(command: u16, size: u32, flags: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![7, 0];
    bytes.extend(command.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend(flags.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn dma(argsz: u32, flags: u32, offset: u64, iova: u64, len: u64) -> Vec<u8> {
    let mut body = words(&[argsz, flags]);
    body.extend([offset, iova, len].iter().flat_map(|v| v.to_le_bytes()));
    body
}

fn access(offset: u64, region: u32, count: u32, data: &[u8]) -> Vec<u8> {
    let mut body = offset.to_le_bytes().to_vec();
    body.extend(words(&[region, count]));
    body.extend(data);
    body
}

/// A whole reply, or `None` if the server hung up.
fn reply(stream: &mut UnixStream) -> Option<([u8; 16], Vec<u8>)> {
    let mut header = [0; 16];
    stream.read_exact(&mut header).ok()?;
    let size = u32::from_le_bytes(header[4..8].try_into().unwrap()) as usize;
    let mut body = vec![0; size - 16];
    stream.read_exact(&mut body).ok()?;
    Some((header, body))
}

/// Sends a request and returns the errno of its reply, 0 for success.
fn errno(stream: &mut UnixStream, command: u16, body: &[u8], fds: &[RawFd]) -> i32 {
    send_fds(stream, &message(command, 0, body), fds);
    let (header, _) = reply(stream).expect("a reply");
    assert_eq!(header[..2], [7, 0], "id");
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
    assert_eq!(word(8) & 1, 1, "reply");
    assert_eq!(word(8) & 0x20 != 0, word(12) != 0, "error flag and errno agree");
    word(12) as i32
}

fn send_fds(stream: &UnixStream, bytes: &[u8], fds: &[RawFd]) {
    let rights = [ControlMessage::ScmRights(fds)];
    let control: &[ControlMessage] = if fds.is_empty() { &[] } else { &rights };
    let chunk = [IoSlice::new(bytes)];
    let _ = sendmsg::<()>(stream.as_raw_fd(), &chunk, control, MsgFlags::MSG_NOSIGNAL, None);
}

fn eventfd() -> OwnedFd {
    // SAFETY: a new descriptor without other owner.
    unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, libc::EFD_CLOEXEC)) }
}

fn open_fds() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

const MSIX: u32 = 2;
const EVENTFD: u32 = 0x24;

#[test]
fn the_card_is_waited_for_while_a_client_only_polls() {
    let target = Target::new();
    assert_eq!(target.function.waits.load(Ordering::Relaxed), 0);
    let client = target.greeted();
    eventually("a wait", || target.function.waits.load(Ordering::Relaxed) > 0);
    drop(client);
    eventually("a reset", || target.function.resets.load(Ordering::Relaxed) == 1);
    // The wait in progress may end.
    std::thread::sleep(Duration::from_millis(400));
    let waits = target.function.waits.load(Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(target.function.waits.load(Ordering::Relaxed), waits, "nobody waits once the client has left");
}

#[test]
fn malformed_requests_get_an_error_and_the_connection_lives() {
    let target = Target::new();
    let mut s = target.greeted();
    let memory = HostMemory::new(0x4000).unwrap();
    let m = memory.fd().as_raw_fd();
    let file = tempfile::tempfile().unwrap();
    file.set_len(0x4000).unwrap();
    let e = eventfd();
    let (pipe, _other) = nix::unistd::pipe().unwrap();
    let event = e.as_raw_fd();
    type Case<'a> = (&'static str, u16, Vec<u8>, &'a [RawFd], i32);
    let cases: &[Case] = &[
        ("unknown command", 99, vec![], &[], libc::EOPNOTSUPP),
        ("command 0", 0, vec![], &[], libc::EOPNOTSUPP),
        ("second version", 1, vec![0, 0, 1, 0], &[], libc::EINVAL),
        ("server's command", 11, vec![0; 12], &[], libc::EOPNOTSUPP),
        ("empty map", 2, vec![], &[], libc::EINVAL),
        ("long map", 2, vec![0; 33], &[], libc::EINVAL),
        ("map of nothing", 2, dma(32, 3, 0, 0, 0), &[m], libc::EINVAL),
        ("map that wraps", 2, dma(32, 3, 0, u64::MAX - 0xfff, 0x2000), &[m], libc::EINVAL),
        ("map beyond the file", 2, dma(32, 3, 0, 0, 0x5000), &[m], libc::EPERM),
        ("map at an odd offset", 2, dma(32, 3, 1, 0, 0x1000), &[m], libc::EPERM),
        ("map offset overflow", 2, dma(32, 3, u64::MAX - 0xfff, 0, 0x1000), &[m], libc::EPERM),
        ("map of all there is", 2, dma(32, 3, 0, 0, u64::MAX), &[m], libc::EPERM),
        ("map with odd flags", 2, dma(32, 7, 0, 0, 0x1000), &[m], libc::EINVAL),
        ("map with two descriptors", 2, dma(32, 3, 0, 0, 0x1000), &[m, m], libc::EINVAL),
        ("map of a file that can shrink", 2, dma(32, 3, 0, 0, 0x1000), &[file.as_raw_fd()], libc::EPERM),
        ("map of a pipe", 2, dma(32, 3, 0, 0, 0x1000), &[pipe.as_raw_fd()], libc::EPERM),
        (
            "unmap that wraps",
            3,
            {
                let mut b = words(&[24, 0]);
                b.extend(words(&[!0, !0, !0, !0]));
                b
            },
            &[],
            libc::EINVAL,
        ),
        ("unmap of nothing", 3, vec![0; 24], &[], libc::EINVAL),
        ("info without room", 4, words(&[15, 0, 0, 0]), &[], libc::EINVAL),
        ("short info", 4, words(&[16]), &[], libc::EINVAL),
        ("info with a descriptor", 4, words(&[16, 0, 0, 0]), &[m], libc::EINVAL),
        ("region 9", 5, words(&[32, 0, 9, 0, 0, 0, 0, 0]), &[], libc::EINVAL),
        ("region without room", 5, words(&[31, 0, 0, 0, 0, 0, 0, 0]), &[], libc::EINVAL),
        ("interrupt type 5", 7, words(&[16, 0, 5, 0]), &[], libc::EINVAL),
        ("vector past the end", 8, words(&[20, EVENTFD, MSIX, 20, 1]), &[event], libc::EINVAL),
        ("vectors that wrap", 8, words(&[20, EVENTFD, MSIX, 1, !0]), &[], libc::EINVAL),
        ("too few eventfds", 8, words(&[20, EVENTFD, MSIX, 0, 2]), &[event], libc::EINVAL),
        ("a memfd as eventfd", 8, words(&[20, EVENTFD, MSIX, 0, 1]), &[m], libc::EINVAL),
        ("a pipe as eventfd", 8, words(&[20, EVENTFD, MSIX, 0, 1]), &[pipe.as_raw_fd()], libc::EINVAL),
        ("legacy interrupts", 8, words(&[20, EVENTFD, 0, 0, 1]), &[event], libc::EINVAL),
        ("conflicting flags", 8, words(&[20, 0x27, MSIX, 0, 1]), &[event], libc::EINVAL),
        ("mask action", 8, words(&[20, 0x09, MSIX, 0, 1]), &[], libc::EINVAL),
        ("bools missing", 8, words(&[20, 0x22, MSIX, 0, 3]), &[], libc::EINVAL),
        ("read of nothing", 9, access(0, 0, 0, &[]), &[], libc::EINVAL),
        ("read past the end", 9, access(0xffc, 0, 8, &[]), &[], libc::EINVAL),
        ("read that wraps", 9, access(u64::MAX, 0, 4, &[]), &[], libc::EINVAL),
        ("read of an absent BAR", 9, access(0, 1, 4, &[]), &[], libc::EINVAL),
        ("read of too much", 9, access(0, 7, 4097, &[]), &[], libc::EINVAL),
        ("read of region 200", 9, access(0, 200, 4, &[]), &[], libc::EINVAL),
        ("read with data", 9, access(0, 0, 4, &[0; 4]), &[], libc::EINVAL),
        ("write without data", 10, access(0, 0, 4, &[]), &[], libc::EINVAL),
        ("write with more data", 10, access(0, 0, 4, &[0; 5]), &[], libc::EINVAL),
        ("narrow register write", 10, access(0, 0, 2, &[0; 2]), &[], libc::EINVAL),
        ("write past config", 10, access(4095, 7, 2, &[0; 2]), &[], libc::EINVAL),
        ("batch without writes", 15, u64::MAX.to_le_bytes().to_vec(), &[], libc::EINVAL),
        (
            "batch of 9 bytes",
            15,
            [1u64.to_le_bytes().to_vec(), access(0, 0, 9, &[0; 8])].concat(),
            &[],
            libc::EINVAL,
        ),
        ("reset with a body", 13, vec![0], &[], libc::EINVAL),
    ];
    for (what, command, body, fds, expected) in cases {
        assert_eq!(errno(&mut s, *command, body, fds), *expected, "{what}");
    }
    assert_eq!(target.function.maps(), 0);
    assert_eq!(errno(&mut s, 9, &access(0, 0, 4, &[]), &[]), 0);
    drop(s);
    target.check();
}

#[test]
fn allowed_oddities_work() {
    let target = Target::new();
    let mut s = target.greeted();
    let memory = HostMemory::new(0x4000).unwrap();
    let m = memory.fd().as_raw_fd();
    // Without a descriptor: accepted, not accessible, and blocks overlapping maps.
    assert_eq!(errno(&mut s, 2, &dma(32, 1, 0, 0xc_0000, 0x1_0000), &[]), 0);
    assert_eq!(errno(&mut s, 2, &dma(32, 3, 0, 0xc_f000, 0x1000), &[m]), libc::EEXIST);
    assert_eq!(target.function.maps(), 0);
    for iova in [0x1000, 0x3000, 0x4000] {
        assert_eq!(errno(&mut s, 2, &dma(32, 3, 0, iova, 0x1000), &[m]), 0);
    }
    // One unmap removes all maps inside its range; one that would split a map is refused.
    assert_eq!(errno(&mut s, 2, &dma(32, 3, 0, 0x8000, 0x4000), &[m]), 0);
    let unmap = |flags, iova: u64, len: u64| {
        [words(&[24, flags]), iova.to_le_bytes().to_vec(), len.to_le_bytes().to_vec()].concat()
    };
    assert_eq!(errno(&mut s, 3, &unmap(0, 0x9000, 0x1000), &[]), libc::EINVAL);
    assert_eq!(errno(&mut s, 3, &unmap(0, 0, 0x9000), &[]), libc::EINVAL);
    assert_eq!(target.function.maps(), 4);
    assert_eq!(errno(&mut s, 3, &unmap(0, 0, 0x4000), &[]), 0);
    assert_eq!(target.function.maps(), 2);
    assert_eq!(errno(&mut s, 3, &unmap(0, 0, 0x4000), &[]), 0, "nothing there");
    assert_eq!(errno(&mut s, 3, &unmap(2, 0, 0), &[]), 0, "all");
    assert_eq!(target.function.maps(), 0);
    // A batch of writes, a narrow read, a wide read.
    let batch = [
        2u64.to_le_bytes().to_vec(),
        access(0x20, 0, 4, &[1, 2, 3, 4, 0, 0, 0, 0]),
        access(0x24, 0, 8, &[5; 8]),
    ];
    assert_eq!(errno(&mut s, 15, &batch.concat(), &[]), 0);
    s.write_all(&message(9, 0, &access(0x22, 0, 4, &[]))).unwrap();
    assert_eq!(reply(&mut s).unwrap().1[16..], [3, 4, 5, 5]);
    // Interrupts: triggered by the client, and kept for a vector until it has an eventfd.
    let e = eventfd();
    assert_eq!(errno(&mut s, 8, &words(&[20, 0x21, MSIX, 3, 1]), &[]), 0);
    assert_eq!(errno(&mut s, 8, &words(&[20, EVENTFD, MSIX, 3, 1]), &[e.as_raw_fd()]), 0);
    let mut count = [0; 8];
    assert_eq!(nix::unistd::read(e.as_raw_fd(), &mut count), Ok(8));
    let bools = [words(&[23, 0x22, MSIX, 2, 3]), vec![0, 1, 0]].concat();
    assert_eq!(errno(&mut s, 8, &bools, &[]), 0);
    assert_eq!(nix::unistd::read(e.as_raw_fd(), &mut count), Ok(8));
    assert_eq!(errno(&mut s, 8, &words(&[20, 0x21, MSIX, 0, 0]), &[]), 0, "all off");
    target.function.raise(3);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(nix::unistd::read(e.as_raw_fd(), &mut count), Err(nix::errno::Errno::EAGAIN));
    // A request that asks for no reply gets none, not even for an error.
    s.write_all(&message(10, 0x10, &access(0, 0, 3, &[0; 3]))).unwrap();
    s.write_all(&message(99, 0x10, &[])).unwrap();
    assert_eq!(errno(&mut s, 13, &[], &[]), 0);
    drop(s);
    target.check();
}

#[test]
fn hopeless_connections_are_dropped_at_once() {
    // At once: not by time-out.
    let target = Target::with(Budget::of_process(), 2 * HANGS);
    let cases: &[(&str, Vec<u8>)] = &[
        ("size below the header", raw(4, 15, 0, &[])),
        ("size 0", raw(4, 0, 0, &[])),
        ("size of everything", raw(10, u32::MAX, 0, &[])),
        ("size above the limit", raw(10, 16 * 1024 + 1, 0, &[])),
        ("a reply nobody asked for", message(9, 1, &[])),
        ("an unknown type", message(9, 5, &[])),
    ];
    for (what, bytes) in cases {
        let mut s = target.greeted();
        s.write_all(bytes).unwrap();
        let begin = Instant::now();
        assert!(reply(&mut s).is_none() && begin.elapsed() < HANGS, "{what}");
    }
    target.check();
}

#[test]
fn a_client_whose_memory_is_not_shared_is_told_of_once() {
    const REGION_CONFIG: u32 = 7;
    viaduct_log::keep();
    let told = || viaduct_log::kept().matches("share=on").count();
    let target = Target::new();
    let bus_master = |stream: &mut UnixStream| {
        assert_eq!(errno(stream, 10, &access(4, REGION_CONFIG, 2, &[6, 0]), &[]), 0);
    };
    let mut stream = target.greeted();
    // Without memory it may come later.
    bus_master(&mut stream);
    assert_eq!(errno(&mut stream, 2, &dma(32, 3, 0, 0x10_0000, 0x1000), &[]), 0);
    assert_eq!(told(), 0);
    (0..3).for_each(|_| bus_master(&mut stream));
    assert_eq!(told(), 1);
    drop(stream);
    // Some of QEMU's memory (firmware, video) never is.
    let mut stream = target.greeted();
    let file = memfd(0x1000);
    assert_eq!(errno(&mut stream, 2, &dma(32, 3, 0, 0x10_0000, 0x1000), &[]), 0);
    assert_eq!(errno(&mut stream, 2, &dma(32, 3, 0, 0x20_0000, 0x1000), &[file.as_raw_fd()]), 0);
    bus_master(&mut stream);
    assert_eq!(told(), 1);
    drop(stream);
    target.check();
}

#[test]
fn greetings_that_fail_end_the_connection() {
    let target = Target::new();
    let cases: &[(&str, Vec<u8>, i32)] = &[
        ("no greeting", message(4, 0, &words(&[16, 0, 0, 0])), libc::EINVAL),
        ("major 1", message(1, 0, &[1, 0, 0, 0]), libc::EPROTONOSUPPORT),
        ("short", message(1, 0, &[0, 0]), libc::EINVAL),
        ("JSON without end", message(1, 0, b"\0\0\x01\0{}"), libc::EINVAL),
        ("no JSON", message(1, 0, b"\0\0\x01\0garbage\0"), libc::EINVAL),
        (
            "JSON of another shape",
            message(1, 0, b"\0\0\x01\0{\"capabilities\":{\"max_msg_fds\":-1}}\0"),
            libc::EINVAL,
        ),
        (
            "deep JSON",
            message(1, 0, &[b"\0\0\x01\0".to_vec(), vec![b'['; 16000], vec![0]].concat()),
            libc::EINVAL,
        ),
    ];
    for (what, bytes, expected) in cases {
        let mut s = target.connect();
        s.write_all(bytes).unwrap();
        let (header, _) = reply(&mut s).expect(what);
        assert_eq!(i32::from_le_bytes(header[12..].try_into().unwrap()), *expected, "{what}");
        assert!(reply(&mut s).is_none(), "{what}: closed");
    }
    let mut s = target.connect();
    s.write_all(&message(1, 0, b"\0\0\x09\0{\"capabilities\":{\"unheard_of\":[1]},\"x\":2}\0")).unwrap();
    let (_, body) = reply(&mut s).expect("unknown members are ignored");
    assert_eq!(body[..4], [0, 0, 1, 0], "our minor version is lower");
    drop(s);
    target.check();
}

#[test]
fn a_client_that_stops_in_the_middle_is_given_up() {
    let target = Target::new();
    let whole = message(10, 0, &access(0, 0, 4, &[0; 4]));
    for cut in [1, 8, 15, 16, 20, whole.len() - 1] {
        // Silent …
        let mut s = target.greeted();
        s.write_all(&whole[..cut]).unwrap();
        let begin = Instant::now();
        assert!(reply(&mut s).is_none());
        assert!(begin.elapsed() >= LIMIT / 2 && begin.elapsed() < HANGS, "cut at {cut}");
        // … or disconnected.
        let mut s = target.greeted();
        s.write_all(&whole[..cut]).unwrap();
        drop(s);
    }
    // One byte at a time does not stretch the limit.
    let mut s = target.greeted();
    let begin = Instant::now();
    let mut bytes = whole.iter().cycle();
    while s.write_all(&[*bytes.next().unwrap()]).is_ok() {
        std::thread::sleep(LIMIT / 10);
        assert!(begin.elapsed() < HANGS);
    }
    // Nor does silence before the greeting.
    let mut s = target.connect();
    assert!(reply(&mut s).is_none());
    target.check();
}

#[test]
fn a_client_that_reads_no_replies_is_given_up() {
    let target = Target::new();
    let s = target.greeted();
    s.set_write_timeout(Some(HANGS)).unwrap();
    let request = message(9, 0, &access(0, 7, 4096, &[]));
    let begin = Instant::now();
    while (&s).write_all(&request).is_ok() {
        assert!(begin.elapsed() < HANGS, "still served");
    }
    assert!(begin.elapsed() < HANGS, "not given up");
    target.check();
}

#[test]
fn descriptors_do_not_leak_or_pile_up() {
    let target = Target::new();
    let e = eventfd();
    let before = open_fds();
    for _ in 0..20 {
        let mut s = target.greeted();
        let fd = e.as_raw_fd();
        assert_eq!(errno(&mut s, 13, &[], &[fd; 16]), libc::EINVAL);
        assert_eq!(errno(&mut s, 8, &words(&[20, EVENTFD, MSIX, 4, 16]), &[fd; 16]), 0);
        assert_eq!(errno(&mut s, 8, &words(&[20, EVENTFD, MSIX, 0, 15]), &[fd; 16]), libc::EINVAL);
        // More than any message may carry ends the connection.
        send_fds(&s, &message(13, 0, &[]), &[fd; 17]);
        assert!(reply(&mut s).is_none());
        let s = target.greeted();
        // In pieces, with descriptors at each.
        for byte in message(10, 0, &access(0, 0, 4, &[0; 4])) {
            send_fds(&s, &[byte], &[fd; 10]);
        }
    }
    // Many mappings of one file need one descriptor.
    let memory = HostMemory::new(0x1000).unwrap();
    let mut s = target.greeted();
    for i in 0..200u64 {
        assert_eq!(errno(&mut s, 2, &dma(32, 3, 0, i << 12, 0x1000), &[memory.fd().as_raw_fd()]), 0);
    }
    // Other tests may have some open.
    assert!(open_fds() < before + 150);
    // The number of files is limited, and exceeding it is an ordinary error.
    let mut refused = 0;
    for i in 200..800u64 {
        let memory = HostMemory::new(0x1000).unwrap();
        refused +=
            usize::from(errno(&mut s, 2, &dma(32, 3, 0, i << 12, 0x1000), &[memory.fd().as_raw_fd()]) != 0);
    }
    assert!((80..=100).contains(&refused), "{refused}");
    drop(s);
    target.check();
    eventually("descriptors closed", || open_fds() <= before + 3);
}

#[test]
fn a_client_cannot_take_memory_away_under_the_card() {
    let target = Target::new();
    let mut s = target.greeted();
    // SAFETY: a new descriptor without other owner.
    let fd = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"m".as_ptr(), libc::MFD_ALLOW_SEALING)) };
    nix::unistd::ftruncate(&fd, 0x4000).unwrap();
    assert_eq!(errno(&mut s, 2, &dma(32, 3, 0, 0, 0x4000), &[fd.as_raw_fd()]), 0);
    assert!(nix::unistd::ftruncate(&fd, 0).is_err());
    // Copy from it after an attempt to remove its pages.
    // SAFETY: plain system call on a descriptor of this test.
    unsafe {
        libc::fallocate(fd.as_raw_fd(), libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, 0, 0x4000)
    };
    assert_eq!(errno(&mut s, 10, &access(0x8, 0, 12, &[0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0]), &[]), 0);
    assert_eq!(errno(&mut s, 10, &access(0, 2, 4, &[1, 0, 0, 0]), &[]), 0);
    drop(s);
    target.check();
}

#[test]
fn a_full_eventfd_blocks_nobody() {
    let target = Target::new();
    let mut s = target.greeted();
    let full = eventfd();
    assert_eq!(nix::unistd::write(&full, &(u64::MAX - 1).to_ne_bytes()), Ok(8));
    let good = eventfd();
    let fds = [full.as_raw_fd(), good.as_raw_fd()];
    assert_eq!(errno(&mut s, 8, &words(&[20, EVENTFD, MSIX, 0, 2]), &fds), 0);
    // Back to blocking, behind the server's back.
    nix::fcntl::fcntl(full.as_raw_fd(), nix::fcntl::F_SETFL(nix::fcntl::OFlag::empty())).unwrap();
    target.function.raise(0);
    target.function.raise(1);
    let good = std::fs::File::from(good);
    eventually("the other vector", || (&good).read(&mut [0; 8]).is_ok());
    drop(s);
    target.check();
}

#[test]
fn a_client_is_told_why_its_memory_is_refused() {
    let target = Target::new();
    let mut s = target.connect();
    let mut version = vec![0, 0, 1, 0];
    version.extend(b"{\"capabilities\":{\"x-viaduct-error-text\":true}}\0");
    s.write_all(&message(1, 0, &version)).unwrap();
    reply(&mut s).expect("a version reply");
    let file = tempfile::tempfile().unwrap();
    file.set_len(0x4000).unwrap();
    send_fds(&s, &message(2, 0, &dma(32, 3, 0, 0, 0x1000)), &[file.as_raw_fd()]);
    let (_, why) = reply(&mut s).expect("a refusal");
    assert!(String::from_utf8_lossy(&why).contains("not a memfd"), "{}", String::from_utf8_lossy(&why));
}

#[test]
fn a_crowd_at_the_door_does_not_disturb_the_client_inside() {
    let (_dir, path) = socket();
    let options =
        ServerOptions { message_time: LIMIT, busy_time: Duration::ZERO, ..ServerOptions::default() };
    let _server = Server::bind_with(&path, Copier::new(), options).unwrap();
    let client = Client::connect(&path).unwrap();
    let crowd: Vec<_> = (0..30).map(|_| UnixStream::connect(&path)).collect();
    for i in 0..1000 {
        client.write32(0, 0x20, i).unwrap();
        assert_eq!(client.read32(0, 0x20).unwrap(), i);
    }
    drop(crowd);
    drop(client);
    eventually("the server is free again", || Client::connect(&path).is_ok());
}

#[test]
fn a_silent_crowd_does_not_keep_others_out() {
    // At once: not after the time of each of them.
    let target = Target::with(Budget::of_process(), 2 * HANGS);
    let begin = Instant::now();
    for said in [&[][..], &[1]] {
        let crowd: Vec<_> = (0..300)
            .map(|_| {
                let mut stream = target.connect();
                // Those that came first may have been disconnected.
                let _ = stream.write_all(said);
                stream
            })
            .collect();
        target.check();
        let mut first = &crowd[0];
        assert_eq!(first.read(&mut [0]).unwrap_or(0), 0, "the oldest one is disconnected");
        assert!(begin.elapsed() < HANGS);
    }
}

/// A memfd of that size, without allocated pages.
fn memfd(bytes: u64) -> OwnedFd {
    // SAFETY: a new descriptor without other owner.
    let fd = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"m".as_ptr(), libc::MFD_ALLOW_SEALING)) };
    nix::unistd::ftruncate(&fd, bytes as i64).unwrap();
    fd
}

/// Maps `count` pages of a file one by one, with many requests in flight.
fn map_pages(stream: &mut UnixStream, file: &OwnedFd, count: u64) {
    const AT_ONCE: u64 = 64;
    for first in (0..count).step_by(AT_ONCE as usize) {
        let pages = first..count.min(first + AT_ONCE);
        // Not adjacent for the card, and backwards in the file.
        for page in pages.clone() {
            let request = message(2, 0, &dma(32, 3, (count - 1 - page) << 12, page << 13, 0x1000));
            send_fds(stream, &request, &[file.as_raw_fd()]);
        }
        for page in pages {
            assert_eq!(reply(stream).expect("a reply").0[12..], [0; 4], "page {page}");
        }
    }
}

fn own_maps() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

#[test]
fn clients_with_as_many_maps_as_they_may_have_leave_the_process_its_own() {
    const MOST: u64 = 32768;
    let targets = [Target::new(), Target::new()];
    let before = own_maps();
    let crowd = targets.each_ref().map(|target| {
        let mut s = target.greeted();
        let file = memfd(MOST << 12);
        map_pages(&mut s, &file, MOST);
        assert_eq!(target.function.maps(), MOST as usize);
        let one_more = dma(32, 3, 0, MOST << 13, 0x1000);
        assert_eq!(errno(&mut s, 2, &one_more, &[file.as_raw_fd()]), libc::ENOSPC);
        s
    });
    // Other tests may have some.
    assert!(own_maps() < before + 1000, "{before} mappings before, {} now", own_maps());
    Target::new().check();
    drop(crowd);
    targets.iter().for_each(Target::check);
}

#[test]
fn who_takes_all_there_is_leaves_the_others_their_share() {
    let budget = Budget::new(Limits { maps: 64, descriptors: 1024, addresses: 1 << 40 });
    let (greedy, modest) = (Target::with(budget.clone(), LIMIT), Target::with(budget, LIMIT));
    let mut s = greedy.greeted();
    // A file that grows is mapped anew each time, and the old mappings are in use.
    let grow = |s: &mut UnixStream, page: u64, file: &OwnedFd| {
        nix::unistd::ftruncate(file, (page as i64 + 1) << 12).unwrap();
        errno(s, 2, &dma(32, 3, page << 12, page << 12, 0x1000), &[file.as_raw_fd()])
    };
    let file = memfd(0);
    let granted = (0..100).take_while(|page| grow(&mut s, *page, &file) == 0).count();
    assert_eq!(granted, 32 + 4, "the common half and its share of the other");
    assert_eq!(grow(&mut s, 99, &file), libc::ENOSPC);
    // The same for descriptors: of many files, and of interrupts.
    let events: Vec<_> = (0..16).map(|_| eventfd()).collect();
    let fds: Vec<_> = events.iter().map(AsRawFd::as_raw_fd).collect();
    let assign = words(&[20, EVENTFD, MSIX, 0, 16]);
    assert_eq!(errno(&mut s, 8, &assign, &fds), 0);
    assert_eq!(errno(&mut s, 8, &assign, &fds), 0, "those before are given back");
    // Its existing maps still work, and the other client has its share, with a reason when that is used up.
    assert_eq!(errno(&mut s, 9, &access(0, 0, 4, &[]), &[]), 0);
    modest.check();
    let mut other = modest.greeted();
    let file = memfd(0);
    assert_eq!((0..100).take_while(|page| grow(&mut other, *page, &file) == 0).count(), 4);
    drop(other);
    let client = Client::connect(&modest.path).unwrap();
    let memory: Vec<_> = (0..5).map(|_| Arc::new(HostMemory::new(0x1000).unwrap())).collect();
    let map = |i: usize| client.dma_map((i as u64) << 12, memory[i].clone(), DmaAccess::Read);
    (0..4).for_each(|i| map(i).unwrap());
    let error = map(4).unwrap_err().to_string();
    assert!(error.contains("it has 4 mappings") && error.contains("vm.max_map_count"), "{error}");
    client.dma_unmap(0).unwrap();
    map(4).unwrap();
    // A client that disconnects releases everything.
    drop((s, client));
    greedy.check();
    let mut s = modest.greeted();
    let file = memfd(0);
    assert_eq!((0..100).take_while(|page| grow(&mut s, *page, &file) == 0).count(), 36);
}

#[test]
fn files_larger_than_the_address_space_are_mapped_in_part() {
    let budget = Budget::new(Limits { maps: 64, descriptors: 64, addresses: 1 << 30 });
    let target = Target::with(budget, LIMIT);
    let mut s = target.greeted();
    let file = memfd(1 << 50);
    let mut map =
        |iova: u64, len: u64| errno(&mut s, 2, &dma(32, 3, 1 << 49, iova, len), &[file.as_raw_fd()]);
    assert_eq!(map(0, 0x2000), 0);
    assert_eq!(map(0x10000, 0x1000), 0, "in what is mapped already");
    assert_eq!(map(0x20000, 0x3000), 0, "beyond it");
    assert_eq!(map(1 << 40, 1 << 30), libc::ENOMEM);
    assert_eq!(target.function.maps(), 3);
    drop(s);
    target.check();
}

/// A server in a process that has run out of descriptors; ends with its standard input.
#[test]
fn serve_without_descriptors() {
    let Ok(path) = std::env::var("VIADUCT_TEST_SERVE") else { return };
    use nix::sys::resource::{Resource, setrlimit};
    setrlimit(Resource::RLIMIT_NOFILE, 256, 256).unwrap();
    let _server = Server::bind(path.as_ref(), Copier::new()).unwrap();
    let mut all = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        all.push(file);
    }
    // For one client.
    all.pop();
    println!("ready");
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_process_without_descriptors_serves_on() {
    let (_dir, path) = socket();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "serve_without_descriptors", "--nocapture"])
        .env("VIADUCT_TEST_SERVE", &path)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut output = child.stdout.take().unwrap();
    while !said.contains("ready") {
        let mut bytes = [0; 256];
        let count = output.read(&mut bytes).unwrap();
        assert_ne!(count, 0, "{said}");
        said.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    let threads = || std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().count();
    let before = threads();
    let greeted = || {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(&message(1, 0, &[0, 0, 1, 0])).unwrap();
        stream
    };
    for _ in 0..3 {
        let mut first = greeted();
        assert!(reply(&mut first).is_some());
        let mut second = greeted();
        assert_eq!(errno(&mut first, 9, &access(0, 0, 4, &[]), &[]), 0);
        // The kernel cannot hand the descriptor over: this client is lost, the next one is not.
        let file = memfd(0x1000);
        send_fds(&first, &message(2, 0, &dma(32, 3, 0, 0, 0x1000)), &[file.as_raw_fd()]);
        assert!(reply(&mut first).is_none());
        assert!(reply(&mut second).is_some(), "the next client is accepted");
        assert_eq!(errno(&mut second, 9, &access(0, 0, 4, &[]), &[]), 0);
        assert_eq!(threads(), before, "no client costs a thread");
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

fn some_message() -> impl Strategy<Value = Vec<u8>> {
    let small =
        prop_oneof![Just(0u32), Just(1), Just(4), Just(16), Just(24), Just(32), 0..0x40u32, any::<u32>()];
    let body = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..80),
        prop::collection::vec(small, 0..14).prop_map(|w| words(&w)),
        // Nearly right accesses and maps.
        (0..0x1100u64, 0..9u32, 0..40u32, prop::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(o, r, c, d)| access(o, r, c, &d)),
        (0..4u32, 0..4u64, 0..8u64, 0..8u64).prop_map(|(f, o, a, l)| dma(32, f, o << 12, a << 12, l << 12)),
    ];
    let size = prop_oneof![9 => Just(None), 1 => any::<u32>().prop_map(Some), 1 => (0..64u32).prop_map(Some)];
    let flags = prop_oneof![8 => Just(0u32), 2 => Just(0x10u32), 1 => any::<u32>()];
    (prop_oneof![9 => 1..17u16, 1 => any::<u16>()], flags, size, body).prop_map(
        |(command, flags, size, body)| {
            let size = size.unwrap_or(16 + body.len() as u32);
            raw(command, size, flags, &body)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn any_messages_are_survived(
        greet in prop::bool::weighted(0.9),
        messages in prop::collection::vec((some_message(), 0..3usize), 1..20),
        cut in 0..40usize,
    ) {
        thread_local!(static TARGET: Target = Target::new());
        TARGET.with(|target| {
            let stream = if greet { target.greeted() } else { target.connect() };
            let memory = HostMemory::new(0x4000).unwrap();
            let event = eventfd();
            let fds = [memory.fd().as_raw_fd(), event.as_raw_fd()];
            stream.set_nonblocking(true).unwrap();
            let last = messages.len() - 1;
            for (i, (bytes, count)) in messages.iter().enumerate() {
                let len = if i == last { bytes.len().saturating_sub(cut).max(1) } else { bytes.len() };
                send_fds(&stream, &bytes[..len], &fds[..*count]);
            }
            drop(stream);
            target.check();
        });
    }
}

/// Flips, drops and repeats bytes of a valid conversation, deterministically.
#[test]
fn damaged_conversations_are_survived() {
    let target = Target::new();
    let good = [
        message(4, 0, &words(&[16, 0, 0, 0])),
        message(5, 0, &words(&[32, 0, 0, 0, 0, 0, 0, 0])),
        message(7, 0, &words(&[16, 0, 2, 0])),
        message(8, 0, &words(&[20, 0x21, 2, 0, 3])),
        message(2, 0, &dma(32, 3, 0, 0, 0x1000)),
        message(10, 0, &access(0x20, 0, 8, &[1; 8])),
        message(9, 0, &access(0, 7, 64, &[])),
        message(15, 0, &[1u64.to_le_bytes().to_vec(), access(0x20, 0, 4, &[1; 8])].concat()),
        message(3, 0, &[words(&[24, 0]), vec![0; 8], 0x1000u64.to_le_bytes().to_vec()].concat()),
        message(13, 0, &[]),
    ]
    .concat();
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for round in 0..400 {
        let mut bytes = good.clone();
        for _ in 0..1 + random(3) {
            let at = random(bytes.len());
            match random(4) {
                0 => bytes[at] ^= 1 << random(8),
                1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random(5)],
                2 => drop(bytes.remove(at)),
                _ => bytes.insert(at, random(256) as u8),
            }
        }
        let mut s = target.greeted();
        s.set_nonblocking(true).unwrap();
        let _ = s.write_all(&bytes);
        drop(s);
        if round % 20 == 0 {
            target.check();
        }
    }
    target.check();
}
