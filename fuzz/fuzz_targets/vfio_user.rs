// SPDX-License-Identifier: Apache-2.0
//! A hostile client of the vfio-user server: any sequence of messages and descriptors, valid, invalid or truncated.
//!
//! Every complete message that requests a reply gets exactly one, in order and in the form that the protocol demands; the
//! function behind the server gets valid requests only; and after the connection is closed, nothing of the client is left.
#![no_main]

use libfuzzer_sys::arbitrary::{Result as Taken, Unstructured};
use libfuzzer_sys::fuzz_target;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::memfd::{MemFdCreateFlag, memfd_create};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{IoSlice, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::{Arc, Condvar, LazyLock, Mutex};
use std::time::Duration;
use viaduct_pci::vfio_user::{Server, ServerOptions};
use viaduct_pci::{
    Budget, ConfigIds, ConfigSpace, DmaAccess, FunctionInfo, HostMemory, Limits, PAGE_SIZE, PciError,
    PciFunction, Result,
};

const HEADER: usize = 16;
const LARGEST: usize = 16 * 1024;
const MOST_DESCRIPTORS: usize = 16;
const MOST_MESSAGES: usize = 64;
/// Resources of a client. Few, so that it can exhaust them.
const LIMITS: Limits = Limits { maps: 32, descriptors: 32, addresses: 1 << 32 };

const VERSION: u16 = 1;
const FLAG_TYPE: u32 = 0xf;
const FLAG_REPLY: u32 = 1;
const FLAG_NO_REPLY: u32 = 1 << 4;
const FLAG_ERROR: u32 = 1 << 5;

// ---------------------------------------------------------------- the server's side

const BAR_SIZES: [u64; 6] = [0x1000, 0, 0x100, 0, 0, 0];
const VECTORS: u16 = 20;

/// A function with memory for registers. BAR2: a write to 0 touches all mapped memory, one to 4 raises an interrupt.
struct Device {
    info: FunctionInfo,
    state: Mutex<State>,
    fired: Condvar,
}

struct State {
    config: ConfigSpace,
    bars: [Vec<u8>; 6],
    maps: BTreeMap<u64, (Arc<HostMemory>, DmaAccess)>,
    pending: u64,
}

impl Device {
    fn new() -> Self {
        let ids = ConfigIds {
            vendor: 0x1234,
            device: 0x5678,
            revision: 1,
            class: 0x12_00_00,
            subsystem_vendor: 0x1234,
            subsystem: 1,
        };
        let mut config = ConfigSpace::new(&ids);
        config.add_bar(0, BAR_SIZES[0], true, false).unwrap();
        config.add_bar(2, BAR_SIZES[2], true, false).unwrap();
        config.add_pcie(3, 16).unwrap();
        let info = FunctionInfo { vendor: 0x1234, device: 0x5678, bar_sizes: BAR_SIZES, vectors: VECTORS };
        let bars = BAR_SIZES.map(|size| vec![0; size as usize]);
        let state = State { config, bars, maps: BTreeMap::new(), pending: 0 };
        Self { info, state: Mutex::new(state), fired: Condvar::new() }
    }
}

/// The bytes of a BAR that an access covers. The server passes none that exceeds its BAR.
fn place(bars: &mut [Vec<u8>; 6], bar: u8, offset: u64, len: usize) -> &mut [u8] {
    assert!(len > 0);
    &mut bars[usize::from(bar)][offset as usize..][..len]
}

/// Accesses to configuration space are naturally aligned, and inside it.
fn check_config(offset: u16, len: usize) {
    assert!([1, 2, 4, 8].contains(&len) && usize::from(offset) % len == 0, "{len} bytes at {offset:#x}");
    assert!(usize::from(offset) + len <= viaduct_pci::CONFIG_SIZE);
}

impl PciFunction for Device {
    fn info(&self) -> &FunctionInfo {
        &self.info
    }

    fn config_read(&self, offset: u16, buf: &mut [u8]) -> Result<()> {
        check_config(offset, buf.len());
        self.state.lock().unwrap().config.read(offset, buf)
    }

    fn config_write(&self, offset: u16, data: &[u8]) -> Result<()> {
        check_config(offset, data.len());
        self.state.lock().unwrap().config.write(offset, data).map(drop)
    }

    fn read(&self, bar: u8, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        buf.copy_from_slice(place(&mut state.bars, bar, offset, buf.len()));
        Ok(())
    }

    fn write(&self, bar: u8, offset: u64, data: &[u8]) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        place(&mut state.bars, bar, offset, data.len()).copy_from_slice(data);
        match (bar, offset) {
            (2, 0) => {
                for (memory, access) in state.maps.values() {
                    let mut byte = [0];
                    for at in [0, memory.len() - 1] {
                        memory.read(at, &mut byte);
                        if *access != DmaAccess::Read {
                            memory.write(at, &byte);
                        }
                    }
                }
            }
            (2, 4) => {
                state.pending |= 1 << (data[0] & 63);
                self.fired.notify_all();
            }
            _ => {}
        }
        Ok(())
    }

    fn read32(&self, _: u8, _: u64) -> Result<u32> {
        unreachable!("the server reads bytes")
    }

    fn write32(&self, _: u8, _: u64, _: u32) -> Result<()> {
        unreachable!("the server writes bytes")
    }

    fn dma_map(&self, iova: u64, memory: Arc<HostMemory>, access: DmaAccess) -> Result<()> {
        let last = iova.checked_add(memory.len() as u64 - 1).expect("no map wraps");
        let mut state = self.state.lock().unwrap();
        let before = state.maps.range(..=last).next_back();
        assert!(before.is_none_or(|(at, (m, _))| at + (m.len() as u64 - 1) < iova), "no two maps overlap");
        assert!(memory.is_writable() || access == DmaAccess::Read);
        state.maps.insert(iova, (memory, access));
        assert!(state.maps.len() <= 32768);
        Ok(())
    }

    fn dma_unmap(&self, iova: u64) -> Result<()> {
        assert!(self.state.lock().unwrap().maps.remove(&iova).is_some(), "only existing maps are removed");
        Ok(())
    }

    fn wait_irq(&self, mask: u64, timeout: Duration) -> Result<u64> {
        let state = self.state.lock().unwrap();
        let wait = self.fired.wait_timeout_while(state, timeout, |state| state.pending & mask == 0);
        let mut state = wait.unwrap().0;
        let fired = state.pending & mask;
        state.pending &= !mask;
        if fired == 0 { Err(PciError::Timeout(timeout)) } else { Ok(fired) }
    }

    fn reset(&self) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        state.config.reset();
        state.bars.iter_mut().for_each(|bar| bar.fill(0));
        state.pending = 0;
        Ok(())
    }
}

/// One server for all inputs, as in a long-running process.
struct Target {
    device: Arc<Device>,
    address: SocketAddr,
    descriptors: [OwnedFd; 6],
    _server: Server,
}

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let address = SocketAddr::from_abstract_name(format!("viaduct-fuzz-{}", std::process::id())).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    let device = Arc::new(Device::new());
    // Long, so that a loaded machine is not taken for a slow client.
    let time = Duration::from_secs(300);
    let options = ServerOptions { message_time: time, busy_time: time, budget: Budget::new(LIMITS) };
    let server = Server::on(listener, Arc::clone(&device) as Arc<dyn PciFunction>, options).unwrap();
    let memory = |pages: usize, flags| {
        let fd = memfd_create(c"fuzz", MemFdCreateFlag::MFD_CLOEXEC | flags).unwrap();
        nix::unistd::ftruncate(&fd, (pages * PAGE_SIZE) as i64).unwrap();
        fd
    };
    let small = memory(16, MemFdCreateFlag::MFD_ALLOW_SEALING);
    let read_only = File::open(format!("/proc/self/fd/{}", small.as_raw_fd())).unwrap();
    let descriptors = [
        small,
        memory(1 << 18, MemFdCreateFlag::MFD_ALLOW_SEALING), // a quarter of the address space
        read_only.into(),
        memory(1, MemFdCreateFlag::empty()), // cannot be sealed
        EventFd::from_flags(EfdFlags::EFD_CLOEXEC).unwrap().as_fd().try_clone_to_owned().unwrap(),
        File::open("/dev/null").unwrap().into(),
    ];
    Target { device, address, descriptors, _server: server }
});

// ---------------------------------------------------------------- the client's side

/// The client's data: pieces of a stream of bytes, each with descriptors.
#[derive(Default)]
struct Script {
    bytes: Vec<u8>,
    /// Start of each piece, and the descriptors that are sent with its first byte.
    pieces: Vec<(usize, Vec<RawFd>)>,
}

impl Script {
    /// A sequence of records: a byte of choices, then their data. README.md in this folder describes the bits.
    fn take(u: &mut Unstructured, descriptors: &[OwnedFd; 6]) -> Taken<Self> {
        let mut script = Self::default();
        while !u.is_empty() && script.pieces.len() < MOST_MESSAGES {
            let choices: u8 = u.arbitrary()?;
            let count = [0, 1, 2, 17][usize::from(choices & 3)];
            let first = if count > 0 { u.arbitrary::<u8>()? } else { 0 };
            let fds = (0..count).map(|i| descriptors[(usize::from(first) + i / 2) % 6].as_raw_fd()).collect();
            script.pieces.push((script.bytes.len(), fds));
            if choices & 0x80 != 0 {
                let len = usize::from(u.arbitrary::<u8>()?).min(u.len());
                script.bytes.extend(u.bytes(len)?);
                continue;
            }
            let command: u8 = u.arbitrary()?;
            let len: u8 = u.arbitrary()?;
            let flags = match choices >> 3 & 3 {
                0 | 1 => 0,
                2 => FLAG_NO_REPLY,
                _ => u.arbitrary()?,
            };
            let size = match choices & 4 {
                0 => HEADER as u32 + u32::from(len),
                _ => u32::from(u.arbitrary::<u16>()?),
            };
            script.bytes.extend((script.pieces.len() as u16).to_le_bytes());
            script.bytes.extend(u16::from(command).to_le_bytes());
            script.bytes.extend([size, flags, 0].iter().flat_map(|word: &u32| word.to_le_bytes()));
            if choices & 0x20 != 0 {
                script.pieces.push((script.bytes.len(), Vec::new()));
            }
            let len = usize::from(len).min(u.len());
            script.bytes.extend(u.bytes(len)?);
        }
        // A piece without bytes carries no descriptors.
        let starts: Vec<usize> = script.pieces.iter().map(|(at, _)| *at).skip(1).collect();
        let ends = starts.into_iter().chain([script.bytes.len()]);
        script.pieces =
            script.pieces.into_iter().zip(ends).filter(|((at, _), end)| at < end).map(|p| p.0).collect();
        Ok(script)
    }

    /// The requests that the server reads before it disconnects because of an unreadable one: id, command, flags.
    fn requests(&self) -> Vec<(u16, u16, u32)> {
        let mut at = 0;
        let mut requests = Vec::new();
        while let Some(header) = self.bytes[at..].first_chunk::<HEADER>() {
            let [first, size, flags, _] = words(header);
            let end = at + size as usize;
            if !(HEADER..=LARGEST).contains(&(size as usize)) || end > self.bytes.len() {
                break;
            }
            let here = self.pieces.iter().filter(|(start, _)| (at..end).contains(start));
            if here.map(|(_, fds)| fds.len()).sum::<usize>() > MOST_DESCRIPTORS || flags & FLAG_TYPE != 0 {
                break;
            }
            requests.push((first as u16, (first >> 16) as u16, flags));
            at = end;
        }
        requests
    }

    /// Sends everything and returns all data received until the server disconnects.
    fn run(&self, mut stream: UnixStream) -> Vec<u8> {
        stream.set_nonblocking(true).unwrap();
        let mut replies = Vec::new();
        let ends = self.pieces.iter().map(|(at, _)| *at).skip(1).chain([self.bytes.len()]);
        let mut open = true;
        for ((start, fds), end) in self.pieces.iter().zip(ends) {
            let mut sent = *start;
            while sent < end && open {
                let rights = [ControlMessage::ScmRights(fds)];
                let control: &[ControlMessage] =
                    if sent == *start && !fds.is_empty() { &rights } else { &[] };
                let chunk = [IoSlice::new(&self.bytes[sent..end])];
                match sendmsg::<()>(stream.as_raw_fd(), &chunk, control, MsgFlags::MSG_NOSIGNAL, None) {
                    Ok(count) => sent += count,
                    Err(Errno::EAGAIN) => {
                        wait(&stream, PollFlags::POLLIN | PollFlags::POLLOUT);
                        open = read_some(&mut stream, &mut replies);
                    }
                    Err(Errno::EPIPE | Errno::ECONNRESET) => open = false,
                    Err(errno) => panic!("sending: {errno}"),
                }
            }
        }
        let _ = stream.shutdown(Shutdown::Write);
        while read_some(&mut stream, &mut replies) {
            wait(&stream, PollFlags::POLLIN);
        }
        replies
    }
}

fn wait(stream: &UnixStream, events: PollFlags) {
    // Interrupted by the fuzzer's own timer.
    while poll(&mut [PollFd::new(stream.as_fd(), events)], PollTimeout::NONE) == Err(Errno::EINTR) {}
}

/// Reads the available data; `false` at the end.
fn read_some(stream: &mut UnixStream, to: &mut Vec<u8>) -> bool {
    let mut buf = [0; 8192];
    loop {
        match stream.read(&mut buf) {
            Ok(0) => return false,
            Ok(count) => to.extend(&buf[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return true,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return false,
            Err(error) => panic!("receiving: {error}"),
        }
    }
}

fn words(header: &[u8; HEADER]) -> [u32; 4] {
    let word = |i: usize| u32::from_le_bytes(header[4 * i..4 * i + 4].try_into().unwrap());
    [word(0), word(1), word(2), word(3)]
}

/// Checks replies against the requests.
fn check(requests: &[(u16, u16, u32)], mut replies: &[u8]) {
    let mut expected = requests.iter().enumerate().filter(|(_, request)| request.2 & FLAG_NO_REPLY == 0);
    let mut refused = false;
    while let Some(header) = replies.first_chunk::<HEADER>() {
        assert!(!refused, "a refused client is served");
        let [first, size, flags, error] = words(header);
        let body = &replies[HEADER..size as usize];
        replies = &replies[size as usize..];
        let (index, &(id, command, _)) = expected.next().expect("there is one reply to a request, not two");
        assert_eq!((first as u16, (first >> 16) as u16), (id, command), "replies are in order");
        assert_eq!((flags & !FLAG_ERROR, flags & FLAG_ERROR != 0), (FLAG_REPLY, error != 0));
        if error != 0 {
            assert!(body.len() < 400 && std::str::from_utf8(body).is_ok());
            refused = index == 0;
            continue;
        }
        let count = || u32::from_le_bytes(body[12..16].try_into().unwrap()) as usize;
        let right = match command {
            VERSION => body.len() > 4 && body.ends_with(&[0]),
            2 | 8 | 13 => body.is_empty(),
            3 => body.len() == 24,
            4 | 7 | 10 => body.len() == 16,
            5 => body.len() == 32,
            9 => body.len() == 16 + count(),
            15 => body.len() == 8,
            _ => false,
        };
        assert!(right, "{} bytes in reply to command {command}", body.len());
    }
    assert!(replies.is_empty(), "replies are complete");
    // Whether a first message without a reply was accepted cannot be observed.
    let silent = requests.first().is_some_and(|(_, _, flags)| flags & FLAG_NO_REPLY != 0);
    assert!(refused || silent || expected.next().is_none(), "every request gets a reply");
}

fuzz_target!(|bytes: &[u8]| {
    let target = &*TARGET;
    let Ok(script) = Script::take(&mut Unstructured::new(bytes), &target.descriptors) else { return };
    let stream = UnixStream::connect_addr(&target.address).unwrap();
    let probe = stream.as_raw_fd();
    let replies = script.run(stream);
    check(&script.requests(), &replies);
    assert!(target.device.state.lock().unwrap().maps.is_empty(), "no memory stays mapped");
    assert!(probe < 128, "descriptors do not leak: the lowest free one is {probe}");
});
