// SPDX-License-Identifier: Apache-2.0
//! A readable pipe or stream socket as the source of a mapping. A thread reads it, so that the pager never waits for it; the bytes of a
//! window are kept here, so that pages of the window can leave card memory and come back.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::PollFlags;

use crate::backing::pump::{Flow, PIECE, Pump, Supply};
use crate::card::dma::DmaBuffer;
use crate::card::sync::lock;
use crate::protocol::desc::PAGE;

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
pub(crate) struct Feed(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    pump: Arc<Pump>,
    state: Mutex<State>,
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
        let pump = Arc::new(Pump::new(file, socket)?);
        Ok(Self(Arc::new(Shared { pump, state: Mutex::default() })))
    }

    /// What accesses and the thread do with it.
    pub fn flow(&self) -> Arc<dyn Flow> {
        Arc::clone(&self.0) as Arc<dyn Flow>
    }

    /// Copies up to `len` bytes at `position`, which were there when asked for; fewer only where the stream ends. An error if the stream
    /// has passed them meanwhile.
    pub fn read(&self, to: &DmaBuffer, offset: usize, len: usize, position: u64) -> io::Result<usize> {
        let state = lock(&self.0.state);
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
        lock(&self.0.state).first().div_ceil(PAGE)
    }

    /// How far it has been read.
    pub fn state(&self) -> StreamState {
        let state = lock(&self.0.state);
        StreamState { received: state.received, ended: state.ended }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.0.pump.close();
    }
}

impl Flow for Shared {
    fn patience(&self) -> Duration {
        lock(&self.state).patience
    }

    fn ask(&self, number: u64, valid: u64, until: Instant) -> Supply {
        let mut state = lock(&self.state);
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
            self.pump.wake();
        }
        supply
    }

    fn pump(&self) -> &Arc<Pump> {
        &self.pump
    }

    fn set(&self, window: u64, patience: Duration) {
        let mut state = lock(&self.state);
        state.ring = vec![0; window as usize];
        state.patience = patience;
    }

    fn run(&self, poke: &dyn Fn()) {
        let mut piece = vec![0; PIECE as usize];
        loop {
            let (room, until) = {
                let mut state = lock(&self.state);
                if self.pump.is_closed() {
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
            let got = match self.pump.ready(PollFlags::POLLIN, room > 0, until) {
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
}

impl Shared {
    /// Reads what is there without waiting, and without `O_NONBLOCK`, which would hold for everybody who has the same open file.
    fn read_some(&self, to: &mut [u8]) -> io::Result<usize> {
        let fd = self.pump.fd();
        let vec = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
        let mut got = match self.pump.socket {
            // SAFETY: the descriptor is open, and the system writes to `to` only, which is exclusively borrowed.
            true => unsafe { libc::recv(fd, vec.iov_base, vec.iov_len, libc::MSG_DONTWAIT) },
            // SAFETY: as above; the vector has one entry and is only read.
            false => unsafe { libc::preadv2(fd, &vec, 1, -1, libc::RWF_NOWAIT) },
        };
        let unknown = [libc::EOPNOTSUPP, libc::ENOSYS, libc::EINVAL];
        if got < 0 && !self.pump.socket && unknown.contains(&Errno::last_raw()) {
            // An older system. There was something when it was polled: this waits only if somebody else has read that since.
            // SAFETY: as above.
            got = unsafe { libc::read(fd, vec.iov_base, vec.iov_len) };
        }
        usize::try_from(got).map_err(|_| io::Error::last_os_error())
    }
}
