// SPDX-License-Identifier: Apache-2.0
//! A writable pipe or stream socket as the source of a mapping (FSRF, section 4.8, in the direction from the app). Changed pages come
//! here in any order within a window; a thread writes them in the order of their addresses once they are released, so that the pager
//! never waits for the stream.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::PollFlags;

use crate::backing::pump::{Flow, PIECE, Pump, Supply};
use crate::card::dma::DmaBuffer;
use crate::card::sync::lock;
use crate::protocol::desc::PAGE;

/// Bytes that a writable pipe accepts without waiting.
const PIPE_BUF: usize = 4096;
/// An access that waits for a page before it, of whose writes nobody tells, is looked at again after so long.
const RETRY: Duration = Duration::from_millis(20);

/// A writable stream, and the thread that writes it.
#[derive(Debug)]
pub(crate) struct Outlet(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    pump: Arc<Pump>,
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Byte `n` of the stream is at `n` modulo the length, which is the window.
    ring: Vec<u8>,
    /// Bytes that the stream has taken.
    written: u64,
    /// Bytes before this one are to be written: they are the stream's, and never change again.
    released: u64,
    /// Pages, from that of `released` on, which the app has written and which are here.
    stored: BTreeSet<u64>,
    /// The last page that was asked for.
    asked: u64,
    failed: Option<io::Error>,
    /// How long an access waits, and how long the stream may take nothing.
    patience: Duration,
    /// What must have been written for an access that waits, and until when it waits.
    waits: Vec<(u64, Instant)>,
}

impl State {
    /// Whether an access need not wait any longer.
    fn is_due(&self, now: Instant) -> bool {
        self.failed.is_some()
            || self.waits.iter().any(|&(bytes, until)| self.written >= bytes || now >= until)
    }

    /// The error of the stream, for a caller: it stays.
    fn error(&self) -> Option<io::Error> {
        let error = self.failed.as_ref()?;
        Some(match error.raw_os_error() {
            Some(number) => io::Error::from_raw_os_error(number),
            None => io::Error::new(error.kind(), error.to_string()),
        })
    }
}

impl Outlet {
    /// A stream that nothing was written to yet.
    pub fn new(file: File, socket: bool) -> io::Result<Self> {
        let pump = Arc::new(Pump::new(file, socket)?);
        Ok(Self(Arc::new(Shared { pump, state: Mutex::default(), moved: Condvar::new() })))
    }

    /// What accesses and the thread do with it.
    pub fn flow(&self) -> Arc<dyn Flow> {
        Arc::clone(&self.0) as Arc<dyn Flow>
    }

    /// Takes changed bytes at `position`, which are of pages that were asked for. Those that are released already stay as they are.
    pub fn store(&self, from: &DmaBuffer, offset: usize, len: usize, position: u64) {
        let mut state = lock(&self.0.state);
        let end = position + len as u64;
        let mut at = position.max(state.released);
        debug_assert!(end <= state.written + state.ring.len() as u64);
        if at < end {
            state.stored.extend(at / PAGE..end.div_ceil(PAGE));
        }
        while at < end {
            let to = (at % state.ring.len() as u64) as usize;
            let part = (state.ring.len() - to).min((end - at) as usize);
            from.memory().read(offset + (at - position) as usize, &mut state.ring[to..to + part]);
            at += part as u64;
        }
    }

    /// What an access to `len` bytes at `position` finds there: what the app has written, or zeros.
    pub fn read(&self, to: &DmaBuffer, offset: usize, len: usize, position: u64) {
        let state = lock(&self.0.state);
        to.memory().fill(offset, len, 0);
        for at in (position..position + len as u64).step_by(PAGE as usize) {
            if state.stored.contains(&(at / PAGE)) {
                let part = PAGE.min(position + len as u64 - at) as usize;
                let from = (at % state.ring.len() as u64) as usize;
                to.memory().write(offset + (at - position) as usize, &state.ring[from..from + part]);
            }
        }
    }

    /// Whether page `number` is here.
    pub fn holds(&self, number: u64) -> bool {
        lock(&self.0.state).stored.contains(&number)
    }

    /// Bytes before this one are the stream's.
    pub fn released(&self) -> u64 {
        lock(&self.0.state).released
    }

    /// Pages before this byte are complete: the app has gone on to one that is half a window behind it.
    pub fn complete(&self) -> u64 {
        let state = lock(&self.0.state);
        (state.asked * PAGE).saturating_sub(state.ring.len() as u64 / 2) / PAGE * PAGE
    }

    /// Releases what is here, in order, up to a byte at most.
    pub fn release(&self, until: u64) {
        let mut state = lock(&self.0.state);
        while state.released < until {
            let page = state.released / PAGE;
            if !state.stored.contains(&page) {
                break;
            }
            let end = (page + 1) * PAGE;
            state.released = end.min(until);
            if end <= until {
                state.stored.remove(&page);
            }
        }
        self.0.pump.wake();
    }

    /// Nothing is sent of the page of a byte, if that is inside one: the stream ends there.
    pub fn end_at(&self, byte: u64) {
        if byte % PAGE != 0 {
            lock(&self.0.state).stored.remove(&(byte / PAGE));
        }
    }

    /// What was written before a byte and cannot be sent, as something before it is missing: from where on, and up to where.
    pub fn stuck(&self, until: u64) -> Option<(u64, u64)> {
        let state = lock(&self.0.state);
        let last = state.stored.iter().rev().find(|&&page| page * PAGE < until)?;
        (state.released < until).then(|| (state.released, until.min((last + 1) * PAGE)))
    }

    /// Waits until the stream has taken all that is released. An error says how much it has taken: it has failed, or has taken nothing for
    /// too long.
    pub fn drain(&self) -> Result<(), (u64, io::Error)> {
        let mut state = lock(&self.0.state);
        let (mut seen, mut since) = (state.written, Instant::now());
        while state.written < state.released {
            if let Some(error) = state.error() {
                return Err((state.written, error));
            }
            if state.written > seen {
                (seen, since) = (state.written, Instant::now());
            }
            let left = state.patience.saturating_sub(since.elapsed());
            if left.is_zero() {
                let why = format!("its reader took nothing for {:?}", state.patience);
                return Err((state.written, io::Error::new(io::ErrorKind::TimedOut, why)));
            }
            state = self.0.moved.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.0.pump.close();
    }
}

impl Flow for Shared {
    fn patience(&self) -> Duration {
        lock(&self.state).patience
    }

    fn ask(&self, number: u64, _: u64, until: Instant) -> Supply {
        let mut state = lock(&self.state);
        let (begin, end) = (number * PAGE, (number + 1) * PAGE);
        if end <= state.released {
            return Supply::Never(format!(
                "the stream has passed it: bytes are sent once, and {} are",
                state.released
            ));
        }
        if let Some(why) = &state.failed {
            return Supply::Never(format!("the stream cannot be written: {why}"));
        }
        state.asked = state.asked.max(number);
        let window = state.ring.len() as u64;
        let room = state.written + window;
        if end <= room {
            return Supply::Pages((room - begin) / PAGE);
        }
        let now = Instant::now();
        let sent = state.written == state.released;
        if now >= until {
            let (written, released, patience) = (state.written, state.released, state.patience);
            return Supply::Never(match sent {
                true => format!(
                    "byte {released} of the stream has not been written within {patience:?}, and what is more than {window} \
                     bytes behind it has to wait for that"
                ),
                false => format!(
                    "the stream took {written} of {released} bytes, and no more within {patience:?}; there is room for {window}"
                ),
            });
        }
        state.waits.push((end - window, if sent { until.min(now + RETRY) } else { until }));
        self.pump.wake();
        Supply::Wait
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
        let mut piece = Vec::new();
        loop {
            let until = {
                let mut state = lock(&self.state);
                if self.pump.is_closed() {
                    return;
                }
                if !state.waits.is_empty() && state.is_due(Instant::now()) {
                    state.waits.clear();
                    drop(state);
                    poke();
                    continue;
                }
                let from = (state.written % state.ring.len() as u64) as usize;
                let left = if state.failed.is_some() { 0 } else { state.released - state.written };
                let part = left.min(PIECE).min((state.ring.len() - from) as u64) as usize;
                piece.clear();
                piece.extend_from_slice(&state.ring[from..from + part]);
                state.waits.iter().map(|&(_, until)| until).min()
            };
            let took = match self.pump.ready(PollFlags::POLLOUT, !piece.is_empty(), until) {
                Ok(true) => self.write_some(&piece),
                Ok(false) => continue,
                Err(error) => Err(error),
            };
            let mut state = lock(&self.state);
            match took {
                Ok(took) => state.written += took as u64,
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => state.failed = Some(error),
            }
            self.moved.notify_all();
        }
    }
}

impl Shared {
    /// Writes what the stream takes without waiting, and without `O_NONBLOCK`, which would hold for everybody who has the same open file.
    /// Signals are blocked on this thread, `SIGPIPE` too.
    fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
        let fd = self.pump.fd();
        let took = match self.pump.socket {
            // SAFETY: the descriptor is open, and the system reads `bytes` only.
            true => unsafe {
                libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
            },
            // SAFETY: as above.
            false => unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len().min(PIPE_BUF)) },
        };
        usize::try_from(took).map_err(|_| Errno::last().into())
    }
}
