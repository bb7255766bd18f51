// SPDX-License-Identifier: Apache-2.0
//! A hostile server for the vfio-user client: what a process that serves a card's socket may send to a host program.
//!
//! A call that succeeds has got the reply that was sent to it; one that fails says why in a line that is safe for a terminal;
//! every call ends. The client's messages stay in order and of the right form, memory is kept while the server may use it,
//! and the server can neither shrink it nor make a wait for an interrupt block.
#![no_main]

use libfuzzer_sys::arbitrary::{Result as Taken, Unstructured};
use libfuzzer_sys::fuzz_target;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MemFdCreateFlag, memfd_create};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use viaduct_pci::vfio_user::{Client, ClientOptions};
use viaduct_pci::{DmaAccess, HostMemory, PAGE_SIZE, PciError, PciFunction};

const HEADER: usize = 16;
const MOST_DESCRIPTORS: usize = 16;
const MOST_STEPS: usize = 64;

const VERSION: u16 = 1;
const DMA_MAP: u16 = 2;
const DMA_UNMAP: u16 = 3;
const GET_INFO: u16 = 4;
const GET_REGION_INFO: u16 = 5;
const GET_IRQ_INFO: u16 = 7;
const SET_IRQS: u16 = 8;
const REGION_READ: u16 = 9;
const REGION_WRITE: u16 = 10;
const RESET: u16 = 13;

const FLAG_TYPE: u32 = 0xf;
const FLAG_REPLY: u32 = 1;
const FLAG_NO_REPLY: u32 = 1 << 4;
const FLAG_ERROR: u32 = 1 << 5;

/// Memory for DMA, and descriptors that a server may send: nothing that a run changes.
struct Shared {
    memories: [Arc<HostMemory>; 2],
    descriptors: [OwnedFd; 2],
}

static SHARED: LazyLock<Shared> = LazyLock::new(|| Shared {
    memories: [1, 3].map(|pages| Arc::new(HostMemory::new(pages * PAGE_SIZE).unwrap())),
    descriptors: [
        memfd_create(c"fuzz", MemFdCreateFlag::MFD_CLOEXEC).unwrap(),
        File::open("/dev/null").unwrap().into(),
    ],
});

// ---------------------------------------------------------------- what happens

/// Bytes that the server sends, with descriptors at the first one.
struct Piece {
    bytes: Vec<u8>,
    fds: Vec<RawFd>,
}

/// A call of the client.
#[derive(Debug, Clone, Copy)]
enum Call {
    Read { bar: u8, offset: u64, len: usize },
    Write { bar: u8, offset: u64, len: usize },
    Read32 { bar: u8, offset: u64 },
    Write32 { bar: u8, offset: u64 },
    ConfigRead { offset: u16, len: usize },
    ConfigWrite { offset: u16, len: usize },
    Map { page: u64, memory: usize, access: DmaAccess },
    Unmap { page: u64 },
    Reset,
    Wait { mask: u64 },
}

enum Step {
    Call(Call),
    Send(Piece),
    /// Without end: both directions.
    Close(Shutdown),
    /// The server makes the client's eventfds blocking, for what reads them too.
    Block,
    /// The server fires a vector.
    Fire(u8),
}

struct Script {
    /// Everything is sent first, and the client waits for long; else it does not wait at all, and bytes come when they do.
    patient: bool,
    bar_sizes: [u64; 6],
    vectors: u16,
    max_fds: Option<u64>,
    greeting: Vec<Piece>,
    /// The greeting has the right replies only.
    honest: bool,
    steps: Vec<Step>,
}

impl Script {
    fn take(u: &mut Unstructured) -> Taken<Self> {
        let choices: u8 = u.arbitrary()?;
        let bars: u8 = u.arbitrary()?;
        let mut bar_sizes = [0; 6];
        for (bar, size) in bar_sizes.iter_mut().enumerate().filter(|(bar, _)| bars >> bar & 1 != 0) {
            *size = [0x1000, 0x10_0000, u64::MAX, 2][usize::from(bars >> 6) * (bar & 1)];
        }
        let vectors = u16::from(u.arbitrary::<u8>()? % 80);
        let max_fds = u.arbitrary::<u8>()?.checked_sub(1).map(u64::from);
        let irqs = if choices & 2 != 0 { 5 } else { u32::from(choices >> 2 & 3) };
        let spoilt = usize::from(u.arbitrary::<u8>()?);

        let mut replies = vec![(VERSION, version(max_fds)), (GET_INFO, words(&[16, 2, 9, irqs]))];
        for size in bar_sizes {
            let body = words(&[32, 3, 0, 0, size as u32, (size >> 32) as u32, 0, 0]);
            replies.push((GET_REGION_INFO, body));
        }
        let vectors = if irqs > 2 {
            replies.push((GET_IRQ_INFO, words(&[16, 1, 2, u32::from(vectors)])));
            vectors.min(64)
        } else {
            0
        };
        replies.push((REGION_READ, [words(&[0, 0, 7, 4]), vec![0x34, 0x12, 0x78, 0x56]].concat()));
        let at_once = max_fds.unwrap_or(1).clamp(1, MOST_DESCRIPTORS as u64) as usize;
        replies.extend((0..usize::from(vectors).div_ceil(at_once)).map(|_| (SET_IRQS, Vec::new())));

        let honest = spoilt >= replies.len();
        let mut greeting = Vec::new();
        for (id, (command, body)) in replies.iter().enumerate() {
            match id == spoilt {
                true => greeting.extend(reply(u, id as u16, *command, body)?),
                false => greeting.push(plain(id as u16, *command, body)),
            }
        }
        let mut script = Self {
            patient: choices & 1 == 0,
            bar_sizes,
            vectors,
            max_fds,
            greeting,
            honest,
            steps: Vec::new(),
        };
        let mut next_id = replies.len() as u16;
        let mut mapped = BTreeMap::new();
        while !u.is_empty() && script.steps.len() < MOST_STEPS {
            script.step(u, &mut next_id, &mut mapped)?;
        }
        Ok(script)
    }

    /// One more step: a call with what the server sends for it, or something that the server does by itself.
    fn step(&mut self, u: &mut Unstructured, next_id: &mut u16, mapped: &mut BTreeMap<u64, ()>) -> Taken<()> {
        let kind: u8 = u.arbitrary()?;
        let (at, more) = (u.arbitrary::<u8>()?, kind >> 4);
        let (bar, offset) = (more & 7, u64::from(at) * 4);
        let (config, len) = (u16::from(at) * 16, [4, 1, 64, 300][usize::from(more & 3)]);
        let page = u64::from(at & 3);
        let call = match kind & 15 {
            0 | 1 => Call::Read32 { bar, offset: offset + u64::from(at == 0xff) },
            2 => Call::Write32 { bar, offset },
            3 => Call::Read { bar, offset: offset * 8, len: [1, 7, 256, 4096, 4097][usize::from(at % 5)] },
            4 => Call::Write { bar, offset: offset * 8, len: [1, 7, 256, 0][usize::from(at % 4)] },
            5 => Call::ConfigRead { offset: config, len },
            6 => Call::ConfigWrite { offset: config, len },
            7 => {
                let access = [DmaAccess::Read, DmaAccess::Write, DmaAccess::ReadWrite];
                Call::Map { page, memory: usize::from(more & 1), access: access[usize::from(at >> 2) % 3] }
            }
            8 => Call::Unmap { page },
            9 => Call::Reset,
            10 => Call::Wait { mask: if at & 1 == 0 { u64::MAX } else { 1 << (at >> 1 & 63) } },
            11 => {
                self.steps.push(Step::Fire(at));
                return Ok(());
            }
            12 => {
                self.steps.push(Step::Block);
                return Ok(());
            }
            13 => {
                let how = if at & 1 == 0 { Shutdown::Write } else { Shutdown::Both };
                self.steps.push(Step::Close(how));
                return Ok(());
            }
            14 => {
                let request = message(u16::from(at), u16::from(more), (kind & 0x10).into(), 0, &[0; 8]);
                self.send(vec![Piece { bytes: request, fds: descriptors(u, more)? }]);
                return Ok(());
            }
            _ => {
                let len = usize::from(at).min(u.len());
                let bytes = u.bytes(len)?.to_vec();
                self.send(vec![Piece { bytes, fds: descriptors(u, more)? }]);
                return Ok(());
            }
        };
        if let Some((command, wants_reply)) = self.request(call, mapped) {
            let id = *next_id;
            *next_id = id.wrapping_add(1);
            if wants_reply {
                let body = body(u, call, command)?;
                let pieces = reply(u, id, command, &body)?;
                self.send(pieces);
            }
        }
        self.steps.push(Step::Call(call));
        Ok(())
    }

    fn send(&mut self, pieces: Vec<Piece>) {
        self.steps.extend(pieces.into_iter().filter(|piece| !piece.bytes.is_empty()).map(Step::Send));
    }

    /// The request that a call makes, if the server is honest; and whether it waits for the reply.
    fn request(&self, call: Call, mapped: &mut BTreeMap<u64, ()>) -> Option<(u16, bool)> {
        let inside = |bar: u8, offset: u64, len: usize| {
            let size = self.bar_sizes.get(usize::from(bar)).copied().unwrap_or(0);
            (1..=4096).contains(&len) && offset + len as u64 <= size
        };
        match call {
            Call::Read { bar, offset, len } => inside(bar, offset, len).then_some((REGION_READ, true)),
            Call::Write { bar, offset, len } => inside(bar, offset, len).then_some((REGION_WRITE, false)),
            Call::Read32 { bar, offset } => {
                (inside(bar, offset, 4) && offset % 4 == 0).then_some((REGION_READ, true))
            }
            Call::Write32 { bar, offset } => inside(bar, offset, 4).then_some((REGION_WRITE, false)),
            Call::ConfigRead { .. } => Some((REGION_READ, true)),
            Call::ConfigWrite { .. } => Some((REGION_WRITE, true)),
            Call::Map { page, .. } => {
                mapped.insert(page, ());
                Some((DMA_MAP, true))
            }
            Call::Unmap { page } => mapped.remove(&page).map(|()| (DMA_UNMAP, true)),
            Call::Reset => Some((RESET, true)),
            Call::Wait { .. } => None,
        }
    }
}

/// The right body of a reply; what was read comes from the input.
fn body(u: &mut Unstructured, call: Call, command: u16) -> Taken<Vec<u8>> {
    let len = match call {
        Call::Read { len, .. } | Call::ConfigRead { len, .. } => len,
        _ => 4,
    };
    Ok(match command {
        REGION_READ => [vec![0; 16], vec![u.arbitrary()?; len]].concat(),
        REGION_WRITE => vec![0; 16],
        DMA_UNMAP => vec![0; 24],
        _ => Vec::new(),
    })
}

/// What the server sends in reply to a request: the right message most times.
fn reply(u: &mut Unstructured, id: u16, command: u16, body: &[u8]) -> Taken<Vec<Piece>> {
    let how: u8 = u.arbitrary()?;
    let (mut id, mut command, mut flags, mut error, mut body) = (id, command, FLAG_REPLY, 0, body.to_vec());
    let mut before = Vec::new();
    match how & 15 {
        0..=4 => {}
        5 => return Ok(Vec::new()),
        6 => {
            (flags, error) = (FLAG_REPLY | FLAG_ERROR, u.arbitrary::<u32>()?);
            let len = usize::from(how >> 4).min(u.len());
            body = u.bytes(len)?.repeat(1 + usize::from(how >> 4) * 100);
            body.truncate(12_000);
        }
        7 => (flags, error) = (FLAG_REPLY | FLAG_ERROR, u32::from(u.arbitrary::<u8>()?)),
        8 => id = id.wrapping_add(u.arbitrary::<i8>()? as u16),
        9 => command = u16::from(u.arbitrary::<u8>()?),
        10 => body.truncate(usize::from(u.arbitrary::<u8>()?)),
        11 => body.extend(vec![how; usize::from(u.arbitrary::<u8>()?)]),
        12 => {
            let at = usize::from(u.arbitrary::<u8>()?);
            let value = u.arbitrary()?;
            if let Some(byte) = body.get_mut(at) {
                *byte = value;
            }
        }
        13 => {
            let len = usize::from(u.arbitrary::<u8>()?).min(u.len());
            body = u.bytes(len)?.to_vec();
        }
        14 => {
            let request = message(id, command, u32::from(how & 0x10), 0, &body);
            before = vec![Piece { bytes: request, fds: Vec::new() }; 1 + usize::from(how >> 5)];
        }
        _ => {
            let mut bytes = message(id, command, flags, 0, &body);
            bytes.truncate(usize::from(u.arbitrary::<u8>()?));
            return Ok(vec![Piece { bytes, fds: Vec::new() }]);
        }
    }
    let fds = if how & 15 < 5 { descriptors(u, how >> 4)? } else { Vec::new() };
    before.push(Piece { bytes: message(id, command, flags, error, &body), fds });
    Ok(before)
}

impl Clone for Piece {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), fds: self.fds.clone() }
    }
}

/// Descriptors for a message; mostly none.
fn descriptors(u: &mut Unstructured, choice: u8) -> Taken<Vec<RawFd>> {
    if choice & 12 != 12 {
        return Ok(Vec::new());
    }
    let count = [1, 2, 16, 17][usize::from(choice & 3)];
    let first = usize::from(u.arbitrary::<u8>()?);
    Ok((0..count).map(|i| SHARED.descriptors[(first + i) % 2].as_raw_fd()).collect())
}

fn version(max_fds: Option<u64>) -> Vec<u8> {
    let json = max_fds.map(|n| format!("{{\"capabilities\":{{\"max_msg_fds\":{n}}}}}\0")).unwrap_or_default();
    [words(&[1 << 16]), json.into_bytes()].concat()
}

fn plain(id: u16, command: u16, body: &[u8]) -> Piece {
    Piece { bytes: message(id, command, FLAG_REPLY, 0, body), fds: Vec::new() }
}

fn message(id: u16, command: u16, flags: u32, error: u32, body: &[u8]) -> Vec<u8> {
    let first = u32::from(id) | u32::from(command) << 16;
    [words(&[first, (HEADER + body.len()) as u32, flags, error]), body.to_vec()].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn word(bytes: &[u8], index: usize) -> u32 {
    u32::from_le_bytes(bytes[4 * index..4 * index + 4].try_into().unwrap())
}

// ---------------------------------------------------------------- the server's side

/// The server's end of the connection, and what it has seen.
struct Peer {
    stream: UnixStream,
    /// Everything sent, to tell what the client has taken of it.
    sent: Vec<u8>,
    /// Replies of the client to requests of the server.
    replies: usize,
    /// Requests of the client: id, command, flags.
    requests: Vec<(u16, u16, u32)>,
    eventfds: Vec<OwnedFd>,
    /// Signals of each vector that the client has not taken.
    fired: [bool; 64],
    closed: bool,
}

impl Peer {
    fn send(&mut self, piece: &Piece) {
        if self.closed {
            return;
        }
        let rights = [ControlMessage::ScmRights(&piece.fds)];
        let control: &[ControlMessage] = if piece.fds.is_empty() { &[] } else { &rights };
        let chunk = [IoSlice::new(&piece.bytes)];
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        match sendmsg::<()>(self.stream.as_raw_fd(), &chunk, control, flags, None) {
            // A full buffer cuts a message off; so does a client that has closed.
            Ok(count) => self.sent.extend(&piece.bytes[..count]),
            Err(Errno::EAGAIN | Errno::EPIPE | Errno::ECONNRESET) => {}
            Err(errno) => panic!("sending: {errno}"),
        }
    }

    fn close(&mut self, how: Shutdown) {
        self.closed = true;
        let _ = self.stream.shutdown(how);
    }

    /// Takes everything that the client has sent, and checks its form.
    fn look(&mut self) {
        let mut bytes: Vec<u8> = Vec::new();
        let mut fds: Vec<OwnedFd> = Vec::new();
        loop {
            let mut buf = [0; 8192];
            let mut control = nix::cmsg_space!([RawFd; MOST_DESCRIPTORS]);
            let mut chunk = [IoSliceMut::new(&mut buf)];
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
            match recvmsg::<()>(self.stream.as_raw_fd(), &mut chunk, Some(&mut control), flags) {
                Ok(got) => {
                    for message in got.cmsgs().unwrap() {
                        if let ControlMessageOwned::ScmRights(rights) = message {
                            // SAFETY: just received, without another owner.
                            fds.extend(rights.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
                        }
                    }
                    let count = got.bytes;
                    if count == 0 {
                        break;
                    }
                    bytes.extend(&buf[..count]);
                }
                Err(Errno::EAGAIN | Errno::ECONNRESET) => break,
                Err(errno) => panic!("receiving: {errno}"),
            }
        }
        let (mut rest, mut fds) = (&bytes[..], fds.into_iter());
        while !rest.is_empty() {
            let size = word(rest, 1) as usize;
            let (header, body) = (&rest[..HEADER], &rest[HEADER..size]);
            let (id, command, flags) =
                (word(header, 0) as u16, (word(header, 0) >> 16) as u16, word(header, 2));
            rest = &rest[size..];
            if flags & FLAG_TYPE == FLAG_REPLY {
                assert_eq!(
                    self.asked(self.replies),
                    Some(word(header, 0)),
                    "a reply to what was asked, in order"
                );
                self.replies += 1;
                assert_eq!((flags, word(header, 3)), (FLAG_REPLY | FLAG_ERROR, Errno::EOPNOTSUPP as u32));
                assert!(body.is_empty());
                continue;
            }
            assert_eq!(flags & !FLAG_NO_REPLY, 0);
            assert_eq!(usize::from(id), self.requests.len() & 0xffff, "ids count");
            self.requests.push((id, command, flags));
            match command {
                SET_IRQS => self.eventfds.extend(fds.by_ref().take(word(body, 4) as usize)),
                DMA_MAP => {
                    let memory = fds.next().expect("memory comes with its descriptor");
                    assert!(nix::unistd::ftruncate(&memory, 0).is_err(), "a server cannot shrink memory");
                }
                _ => {}
            }
        }
        assert!(fds.next().is_none(), "no more descriptors than the requests say");
    }

    /// Id and command of a request of the server that wants a reply; `None` if the client cannot have read that many.
    fn asked(&self, index: usize) -> Option<u32> {
        let mut rest = &self.sent[..];
        let messages = std::iter::from_fn(|| {
            let size = word(rest.get(..HEADER)?, 1) as usize;
            let message = rest.get(..size).filter(|_| size >= HEADER)?;
            rest = &rest[size..];
            Some(message)
        });
        let wants_reply = |message: &&[u8]| {
            word(message, 2) & FLAG_TYPE != FLAG_REPLY && word(message, 2) & FLAG_NO_REPLY == 0
        };
        messages.filter(wants_reply).nth(index).map(|message| word(message, 0))
    }

    /// Makes reads of the client's eventfds block: descriptors of one file share this flag.
    fn block(&self) {
        for fd in &self.eventfds {
            fcntl(fd.as_raw_fd(), FcntlArg::F_SETFL(OFlag::empty())).unwrap();
        }
    }

    fn fire(&mut self, vector: u8) {
        let index = usize::from(vector) % 64;
        let Some(fd) = self.eventfds.get(index) else { return };
        let count = if vector & 0x40 == 0 { 1 } else { u64::MAX - 1 };
        let mut polled = [PollFd::new(fd.as_fd(), PollFlags::POLLOUT)];
        if !self.fired[index] && poll(&mut polled, PollTimeout::ZERO) == Ok(1) {
            nix::unistd::write(fd, &count.to_ne_bytes()).unwrap();
            self.fired[index] = true;
        }
    }
}

// ---------------------------------------------------------------- the client's side

/// Why a call fails is one line for a terminal.
fn check_error(error: &PciError) {
    let text = error.to_string();
    assert!(!text.is_empty() && text.len() < 2000 && !text.chars().any(char::is_control), "{text:?}");
}

/// Bytes of the client's socket that it has not read.
fn unread(probe: &UnixStream) -> usize {
    let mut count: nix::libc::c_int = 0;
    // SAFETY: the call writes one int.
    let code = unsafe { nix::libc::ioctl(probe.as_raw_fd(), nix::libc::FIONREAD, &mut count) };
    assert_eq!(code, 0);
    count as usize
}

/// Whether the client has taken whole messages since `from`, the last of which accepts its last request. Returns its body.
fn accepted(peer: &Peer, from: usize, to: usize) -> &[u8] {
    let &(id, command, _) = peer.requests.last().unwrap();
    let mut rest = &peer.sent[from..to];
    loop {
        let (header, body) = rest[..word(rest, 1) as usize].split_at(HEADER);
        rest = &rest[HEADER + body.len()..];
        if rest.is_empty() {
            assert_eq!(
                word(header, 0),
                u32::from(id) | u32::from(command) << 16,
                "the reply to this request"
            );
            assert_eq!(word(header, 2) & (FLAG_TYPE | FLAG_ERROR), FLAG_REPLY);
            return body;
        }
    }
}

fn run(script: &Script) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let probe = ours.try_clone().unwrap();
    let mut peer = Peer {
        stream: theirs,
        sent: Vec::new(),
        replies: 0,
        requests: Vec::new(),
        eventfds: Vec::new(),
        fired: [false; 64],
        closed: false,
    };
    script.greeting.iter().for_each(|piece| peer.send(piece));
    if script.patient {
        for step in &script.steps {
            if let Step::Send(piece) = step {
                peer.send(piece);
            }
        }
        peer.close(Shutdown::Write);
    }
    let reply_time = if script.patient { Duration::from_secs(300) } else { Duration::ZERO };
    let connected = Client::on(ours, ClientOptions { reply_time });
    peer.look();
    let client = match connected {
        Ok(client) => client,
        Err(error) => {
            assert!(!script.honest, "refused: {error}");
            return check_error(&error);
        }
    };
    let info = client.info();
    assert!(info.vectors <= 64);
    if script.honest {
        assert_eq!((info.vendor, info.device), (0x1234, 0x5678));
        assert_eq!((info.bar_sizes, info.vectors), (script.bar_sizes, script.vectors));
        assert_eq!(peer.eventfds.len(), usize::from(script.vectors));
        let calls = peer.requests.iter().filter(|(_, command, _)| *command == SET_IRQS).count();
        let at_once = script.max_fds.unwrap_or(1).clamp(1, 16) as usize;
        assert_eq!(calls, usize::from(script.vectors).div_ceil(at_once));
    }

    let mut maps: BTreeMap<u64, usize> = BTreeMap::new();
    let mut gone = false;
    for step in &script.steps {
        match step {
            Step::Call(call) => {
                let requests = peer.requests.len();
                let from = peer.sent.len() - unread(&probe);
                let result = perform(&client, *call);
                peer.look();
                let to = peer.sent.len() - unread(&probe);
                let made = peer.requests.len() - requests;
                assert!(made <= 1, "a call is one request");
                assert!(made == 0 || !gone, "nothing is sent after the end");
                match &result {
                    Ok(got) => finish(&mut peer, *call, got, (from, to), made, &mut maps),
                    Err(error) => {
                        check_error(error);
                        gone |= matches!(error, PciError::Gone(why) if why.contains("broke earlier"));
                    }
                }
            }
            Step::Send(piece) if !script.patient => peer.send(piece),
            Step::Send(_) => {}
            Step::Close(how) => peer.close(*how),
            Step::Block => peer.block(),
            Step::Fire(vector) => peer.fire(*vector),
        }
    }
    let held = |memory: usize| maps.values().filter(|other| **other == memory).count();
    for (i, memory) in SHARED.memories.iter().enumerate() {
        assert!(Arc::strong_count(memory) > held(i), "memory is kept while it is mapped");
    }
    drop(client);
    assert!(SHARED.memories.iter().all(|memory| Arc::strong_count(memory) == 1), "no memory stays mapped");
}

/// Makes a call; what it has read, or the vectors that have fired.
fn perform(client: &Client, call: Call) -> Result<Vec<u8>, PciError> {
    let mut buf = match call {
        Call::Read { len, .. } | Call::ConfigRead { len, .. } => vec![0xee; len],
        _ => Vec::new(),
    };
    match call {
        Call::Read { bar, offset, .. } => client.read(bar, offset, &mut buf).map(|()| buf),
        Call::Write { bar, offset, len } => client.write(bar, offset, &vec![1; len]).map(|()| buf),
        Call::Read32 { bar, offset } => client.read32(bar, offset).map(|word| word.to_le_bytes().to_vec()),
        Call::Write32 { bar, offset } => client.write32(bar, offset, 7).map(|()| buf),
        Call::ConfigRead { offset, .. } => client.config_read(offset, &mut buf).map(|()| buf),
        Call::ConfigWrite { offset, len } => client.config_write(offset, &vec![1; len]).map(|()| buf),
        Call::Map { page, memory, access } => {
            let memory = Arc::clone(&SHARED.memories[memory]);
            client.dma_map(page * PAGE_SIZE as u64, memory, access).map(|()| buf)
        }
        Call::Unmap { page } => client.dma_unmap(page * PAGE_SIZE as u64).map(|()| buf),
        Call::Reset => client.reset().map(|()| buf),
        Call::Wait { mask } => {
            client.wait_irq(mask, Duration::ZERO).map(|fired| fired.to_le_bytes().to_vec())
        }
    }
}

/// Checks a call that has succeeded.
fn finish(
    peer: &mut Peer,
    call: Call,
    got: &[u8],
    (from, to): (usize, usize),
    made: usize,
    maps: &mut BTreeMap<u64, usize>,
) {
    match call {
        Call::Wait { mask } => {
            let fired = u64::from_le_bytes(got.try_into().unwrap());
            assert!(fired != 0 && fired & !mask == 0, "{fired:#x} of {mask:#x}");
            for vector in (0..64).filter(|vector| fired >> vector & 1 != 0) {
                assert!(std::mem::take(&mut peer.fired[vector]), "vector {vector} was not fired");
            }
        }
        Call::Write { .. } | Call::Write32 { .. } => assert_eq!((made, from), (1, to), "posted writes"),
        _ => {
            assert_eq!(made, 1);
            let body = accepted(peer, from, to);
            if matches!(call, Call::Read { .. } | Call::Read32 { .. } | Call::ConfigRead { .. }) {
                assert_eq!(&body[16..], got, "the data are those of the reply");
            }
            match call {
                Call::Map { page, memory, .. } => drop(maps.insert(page, memory)),
                Call::Unmap { page } => drop(maps.remove(&page)),
                _ => {}
            }
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    LazyLock::force(&SHARED);
    let Ok(script) = Script::take(&mut Unstructured::new(bytes)) else { return };
    run(&script);
    let probe = memfd_create(c"probe", MemFdCreateFlag::MFD_CLOEXEC).unwrap();
    assert!(probe.as_raw_fd() < 64, "descriptors do not leak: the lowest free one is {}", probe.as_raw_fd());
});
