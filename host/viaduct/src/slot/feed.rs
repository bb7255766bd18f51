// SPDX-License-Identifier: Apache-2.0
//! A readable pipe or stream socket as the source of a mapping. A thread reads it, so that the pager never waits for it; the bytes of a
//! window are kept here, so that pages of the window can leave card memory and come back.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::card::dma::DmaBuffer;
use crate::card::sync::{block_signals, lock};
use crate::protocol::desc::PAGE;

/// Bytes read at a time.
const PIECE: u64 = 64 << 10;
/// Longest wait for the thread when a mapping goes: it may be inside `read` where the system cannot read without waiting.
const FAREWELL: Duration = Duration::from_millis(100);
/// An access that may wait for longer waits for so long: the end of a longer time may be later than a clock can tell.
const AGES: Duration = Duration::from_secs(1 << 32);

/// What there is for an access to a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Supply {
    /// So many pages from this one on can be read now.
    Pages(u64),
    /// The page has not come yet: the slot is told when it has, or when its time is over.
    Wait,
    /// It never comes, and this is why.
    Never(String),
}

/// How far a stream has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamState {
    /// Bytes read from it so far.
    pub received: u64,
    /// It has ended: `received` is its length.
    pub ended: bool,
}

/// A readable stream, and the thread that reads it.
#[derive(Debug)]
pub(crate) struct Feed {
    shared: Arc<Shared>,
    /// Process and thread that read it.
    reader: Mutex<Option<(u32, ThreadId)>>,
}

#[derive(Debug)]
struct Shared {
    file: File,
    socket: bool,
    state: Mutex<State>,
    gone: Condvar,
    wake: EventFd,
}

#[derive(Debug, Default)]
struct State {
    /// Byte `n` of the stream is at `n` modulo the length, which is the window.
    ring: Vec<u8>,
    received: u64,
    /// It is read up to here: half a window beyond the last page that was asked for.
    limit: u64,
    ended: bool,
    failed: Option<String>,
    /// For the access that is told of it: how long it has waited.
    patience: Duration,
    /// Bytes that accesses wait for, and until when.
    wants: Vec<(u64, Instant)>,
    closed: bool,
    running: bool,
}

impl State {
    /// The first byte that is still there.
    fn first(&self) -> u64 {
        self.received.saturating_sub(self.ring.len() as u64)
    }

    fn over(&self) -> bool {
        self.ended || self.failed.is_some()
    }

    /// Whether an access need not wait any longer.
    fn is_due(&self, now: Instant) -> bool {
        self.wants.iter().any(|&(end, until)| self.over() || self.received >= end || now >= until)
    }

    fn store(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let at = (self.received % self.ring.len() as u64) as usize;
            let part = bytes.len().min(self.ring.len() - at);
            self.ring[at..at + part].copy_from_slice(&bytes[..part]);
            self.received += part as u64;
            bytes = &bytes[part..];
        }
    }
}

impl Feed {
    /// A stream, not read yet.
    pub fn new(file: File, socket: bool) -> io::Result<Self> {
        let wake = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let (state, gone) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { file, socket, state, gone, wake });
        Ok(Self { shared, reader: Mutex::default() })
    }

    /// Begins to read as accesses ask for it, with a window of so many bytes, whole pages. `poke` is called when an access that was told
    /// to wait is to be looked at again.
    pub fn start(&self, window: u64, patience: Duration, poke: impl Fn() + Send + 'static) -> io::Result<()> {
        let mut reader = lock(&self.reader);
        let shared = Arc::clone(&self.shared);
        {
            let mut state = lock(&shared.state);
            state.ring = vec![0; window as usize];
            state.patience = patience.min(AGES);
            state.running = true;
        }
        let thread = std::thread::Builder::new().name("viaduct-feed".into());
        let thread = thread.spawn(move || {
            block_signals();
            shared.read_on(&poke);
            lock(&shared.state).running = false;
            shared.gone.notify_all();
        });
        let thread = thread.inspect_err(|_| lock(&self.shared.state).running = false)?;
        *reader = Some((std::process::id(), thread.thread().id()));
        Ok(())
    }

    /// Longest time that an access waits.
    pub fn patience(&self) -> Duration {
        lock(&self.shared.state).patience
    }

    /// Asks for page `number`, of which the mapping has `valid` bytes, for an access that waits until a time at most.
    pub fn ask(&self, number: u64, valid: u64, until: Instant) -> Supply {
        let mut state = lock(&self.shared.state);
        let (begin, end) = (number * PAGE, number * PAGE + valid);
        let window = state.ring.len() as u64;
        if begin < state.first() {
            return Supply::Never(format!(
                "the stream has passed it: of {} bytes that were read, the last {window} are kept",
                state.received
            ));
        }
        let limit = begin + PAGE + window / 2;
        let more = limit > state.limit;
        state.limit = state.limit.max(limit);
        let there = state.received >= end || state.over() && state.received > begin;
        let supply = if there {
            let bytes = state.received - begin;
            // Of a page that is not complete, what has come counts once nothing follows.
            let pages = if state.ended { bytes.div_ceil(PAGE) } else { bytes / PAGE };
            Supply::Pages(pages.max(1))
        } else if let Some(why) = &state.failed {
            Supply::Never(format!("the stream cannot be read: {why}"))
        } else if state.ended {
            Supply::Never(format!("the stream ended after {} bytes, before it", state.received))
        } else if Instant::now() >= until {
            Supply::Never(format!(
                "the stream's data did not come within {:?}: {} bytes were read",
                state.patience, state.received
            ))
        } else {
            state.wants.push((end, until));
            Supply::Wait
        };
        if more || supply == Supply::Wait {
            self.shared.wake();
        }
        supply
    }

    /// Copies up to `len` bytes at `position`, which were there when asked for; fewer only where the stream ends. An error if the stream
    /// has passed them meanwhile.
    pub fn read(&self, to: &DmaBuffer, offset: usize, len: usize, position: u64) -> io::Result<usize> {
        let state = lock(&self.shared.state);
        if position < state.first() {
            return Err(io::Error::other("the stream has passed it meanwhile"));
        }
        let end = state.received.min(position + len as u64);
        let mut at = position;
        while at < end {
            let from = (at % state.ring.len() as u64) as usize;
            let part = (state.ring.len() - from).min((end - at) as usize);
            to.memory().write(offset + (at - position) as usize, &state.ring[from..from + part]);
            at += part as u64;
        }
        Ok(end.saturating_sub(position) as usize)
    }

    /// Pages before this one are not kept any more.
    pub fn first_page(&self) -> u64 {
        lock(&self.shared.state).first().div_ceil(PAGE)
    }

    /// How far it has been read.
    pub fn state(&self) -> StreamState {
        let state = lock(&self.shared.state);
        StreamState { received: state.received, ended: state.ended }
    }
}

impl Drop for Feed {
    /// The descriptor is closed when this returns, unless the thread is inside `read`.
    fn drop(&mut self) {
        let Some((process, thread)) = lock(&self.reader).take() else { return };
        if process != std::process::id() {
            return;
        }
        let mut state = lock(&self.shared.state);
        state.closed = true;
        self.shared.wake();
        let end = Instant::now() + FAREWELL;
        while state.running && thread != std::thread::current().id() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.shared.gone.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Shared {
    fn wake(&self) {
        // It fails only if the counter is at its maximum: then the thread is woken anyhow.
        let _ = self.wake.write(1);
    }

    fn read_on(&self, poke: &impl Fn()) {
        let mut piece = vec![0; PIECE as usize];
        loop {
            let (room, until) = {
                let mut state = lock(&self.state);
                if state.closed {
                    return;
                }
                if state.is_due(Instant::now()) {
                    state.wants.clear();
                    drop(state);
                    poke();
                    continue;
                }
                let room =
                    if state.over() { 0 } else { state.limit.saturating_sub(state.received).min(PIECE) };
                (room as usize, state.wants.iter().map(|&(_, until)| until).min())
            };
            let got = match self.readable(room > 0, until) {
                Ok(true) => self.read_some(&mut piece[..room]),
                Ok(false) => continue,
                Err(error) => Err(error),
            };
            let mut state = lock(&self.state);
            match got {
                Ok(0) => state.ended = true,
                Ok(got) => state.store(&piece[..got]),
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => state.failed = Some(error.to_string()),
            }
        }
    }

    /// Waits until something can be read, if it is wanted; `false` if there is something else to do first.
    fn readable(&self, wanted: bool, until: Option<Instant>) -> io::Result<bool> {
        let mut polled = vec![PollFd::new(self.wake.as_fd(), PollFlags::POLLIN)];
        if wanted {
            polled.push(PollFd::new(self.file.as_fd(), PollFlags::POLLIN));
        }
        let limit = until.map_or(PollTimeout::NONE, |until| {
            // Rounded up, so that the time is over then.
            let left = until.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
            PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
        });
        match poll(&mut polled, limit) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let any = |at: usize| polled.get(at).is_some_and(|fd| fd.any().unwrap_or(true));
        if any(0) {
            let _ = self.wake.read();
            return Ok(false);
        }
        Ok(any(1))
    }

    /// Reads what is there without waiting, and without `O_NONBLOCK`, which would hold for everybody who has the same open file.
    fn read_some(&self, to: &mut [u8]) -> io::Result<usize> {
        let fd = self.file.as_raw_fd();
        let vec = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
        let mut got = match self.socket {
            // SAFETY: the descriptor is open, and the system writes to `to` only, which is exclusively borrowed.
            true => unsafe { libc::recv(fd, vec.iov_base, vec.iov_len, libc::MSG_DONTWAIT) },
            // SAFETY: as above; the vector has one entry and is only read.
            false => unsafe { libc::preadv2(fd, &vec, 1, -1, libc::RWF_NOWAIT) },
        };
        let unknown = [libc::EOPNOTSUPP, libc::ENOSYS, libc::EINVAL];
        if got < 0 && !self.socket && unknown.contains(&Errno::last_raw()) {
            // An older system. There was something when it was polled: this waits only if somebody else has read that since.
            // SAFETY: as above.
            got = unsafe { libc::read(fd, vec.iov_base, vec.iov_len) };
        }
        usize::try_from(got).map_err(|_| io::Error::last_os_error())
    }
}
