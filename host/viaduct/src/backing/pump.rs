// SPDX-License-Identifier: Apache-2.0
//! A pipe or stream socket that is mapped, and the thread that moves its bytes, so that the pager never waits for it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::card::sync::{block_signals, lock};

/// Bytes moved at a time.
pub(super) const PIECE: u64 = 64 << 10;
/// Longest wait for the thread when a mapping goes: it may be inside a call where the system cannot do without waiting.
const FAREWELL: Duration = Duration::from_millis(100);
/// An access that may wait for longer waits for so long: the end of a longer time may be later than a clock can tell.
const AGES: Duration = Duration::from_secs(1 << 32);

/// What there is for an access to a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Supply {
    /// So many pages from this one on can be loaded now.
    Pages(u64),
    /// The page has to wait: the slot is told when it is to be looked at again.
    Wait,
    /// It never comes, and this is why.
    Never(String),
}

/// A mapped stream, read or written: what accesses ask of it, and what its thread does.
pub(crate) trait Flow: Send + Sync {
    /// Longest time that an access waits.
    fn patience(&self) -> Duration;

    /// Asks for page `number`, of which the mapping has `valid` bytes, for an access that waits until a time at most.
    fn ask(&self, number: u64, valid: u64, until: Instant) -> Supply;

    fn pump(&self) -> &Arc<Pump>;

    /// Sets the window in bytes, whole pages, and the patience, before the thread begins.
    fn set(&self, window: u64, patience: Duration);

    /// Moves bytes until the stream is closed. `poke` is called when an access that was told to wait is to be looked at again.
    fn run(&self, poke: &dyn Fn());
}

impl dyn Flow {
    /// Begins to move bytes in a thread. See [`Flow::set`] and [`Flow::run`].
    pub fn start(
        self: Arc<Self>,
        window: u64,
        patience: Duration,
        poke: impl Fn() + Send + 'static,
    ) -> io::Result<()> {
        self.set(window, patience.min(AGES));
        let pump = Arc::clone(self.pump());
        pump.begin(move || self.run(&poke))
    }
}

/// The stream, and what its thread and others share.
#[derive(Debug)]
pub(crate) struct Pump {
    file: File,
    pub socket: bool,
    wake: EventFd,
    closed: AtomicBool,
    running: Arc<Running>,
    /// Process and thread that move its bytes.
    mover: Mutex<Option<(u32, ThreadId)>>,
}

/// Whether the thread of a stream runs.
#[derive(Debug, Default)]
struct Running {
    now: Mutex<bool>,
    gone: Condvar,
}

impl Running {
    fn set(&self, now: bool) {
        *lock(&self.now) = now;
        self.gone.notify_all();
    }

    fn await_end(&self) {
        let waited = self.gone.wait_timeout_while(lock(&self.now), FAREWELL, |now| *now);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Pump {
    pub fn new(file: File, socket: bool) -> io::Result<Self> {
        let wake = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let (closed, running, mover) = (AtomicBool::new(false), Arc::default(), Mutex::default());
        Ok(Self { file, socket, wake, closed, running, mover })
    }

    /// Begins the thread, whose work ends when the stream is closed.
    fn begin(&self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let running = Arc::clone(&self.running);
        let mut mover = lock(&self.mover);
        running.set(true);
        let thread = std::thread::Builder::new().name("viaduct-stream".into()).spawn(move || {
            block_signals();
            // Owns the descriptor no more when it has ended.
            work();
            running.set(false);
        });
        let thread = thread.inspect_err(|_| self.running.set(false))?;
        *mover = Some((std::process::id(), thread.thread().id()));
        Ok(())
    }

    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Has the thread look for what there is to do.
    pub fn wake(&self) {
        // It fails only if the counter is at its maximum: then the thread is woken anyhow.
        let _ = self.wake.write(1);
    }

    /// Waits until bytes can be moved, if there are any to be moved; `false` if there is something else to do first.
    pub fn ready(&self, events: PollFlags, wanted: bool, until: Option<Instant>) -> io::Result<bool> {
        let mut polled = vec![PollFd::new(self.wake.as_fd(), PollFlags::POLLIN)];
        if wanted {
            polled.push(PollFd::new(self.file.as_fd(), events));
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

    /// Ends the thread. The descriptor is closed with its last owner, which is the thread if it is inside a call now.
    pub fn close(&self) {
        let Some((process, thread)) = lock(&self.mover).take() else { return };
        if process != std::process::id() {
            return;
        }
        self.closed.store(true, Ordering::Release);
        self.wake();
        if thread != std::thread::current().id() {
            self.running.await_end();
        }
    }
}
