// SPDX-License-Identifier: Apache-2.0
//! Forwards interrupts of the function to the client's eventfds.

use crate::budget::Charge;
use crate::eventfds::drain;
use crate::{PciError, PciFunction};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a forwarder checks whether it should end.
pub(super) const LOOK: Duration = Duration::from_millis(250);
/// How long a write to an eventfd may take before it counts as blocked.
const STUCK: Duration = Duration::from_millis(100);

/// The eventfd of each MSI-X vector. A vector that fires while it has no eventfd stays pending and is delivered when it
/// gets one, as a masked vector is on a real card.
#[derive(Debug, Default)]
pub(super) struct IrqTable {
    state: Mutex<State>,
    /// Writes in progress, and their start times.
    writes: Mutex<Vec<(Arc<IrqFd>, Instant)>>,
}

#[derive(Debug, Default)]
struct State {
    eventfds: Vec<Option<Arc<IrqFd>>>,
    pending: u64,
}

/// A client's eventfd, and its part of the budget.
#[derive(Debug)]
pub(super) struct IrqFd {
    fd: OwnedFd,
    _charge: Charge,
}

impl IrqFd {
    /// Checks that a descriptor from a client is an eventfd, and makes writes to it non-blocking.
    pub fn new(fd: OwnedFd, charge: Charge) -> Result<Self, Errno> {
        let link =
            std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).map_err(|_| Errno::EBADF)?;
        if link.as_os_str() != "anon_inode:[eventfd]" {
            return Err(Errno::EINVAL);
        }
        let irq = Self { fd, _charge: charge };
        irq.set_nonblocking().map(|()| irq)
    }

    fn set_nonblocking(&self) -> Result<(), Errno> {
        let flags = fcntl(self.fd.as_raw_fd(), FcntlArg::F_GETFL)?;
        let flags = OFlag::from_bits_truncate(flags) | OFlag::O_NONBLOCK;
        fcntl(self.fd.as_raw_fd(), FcntlArg::F_SETFL(flags)).map(drop)
    }

    fn signal(&self) {
        // With the counter at its limit the client is about to be woken anyway, and the write must not block.
        let mut polled = [PollFd::new(self.fd.as_fd(), PollFlags::POLLOUT)];
        if poll(&mut polled, PollTimeout::ZERO) == Ok(1) {
            // A failure concerns only the client, whose descriptor it is.
            let _ = nix::unistd::write(&self.fd, &1u64.to_ne_bytes());
        }
    }
}

impl IrqTable {
    /// Removes all eventfds and pending interrupts.
    pub fn clear(&self) {
        *self.lock() = State::default();
    }

    /// Sets or removes the eventfds of vectors from `start` on.
    pub fn assign(&self, start: usize, eventfds: impl Iterator<Item = Option<IrqFd>>) {
        let mut state = self.lock();
        for (vector, fd) in (start..).zip(eventfds) {
            if state.eventfds.len() <= vector {
                state.eventfds.resize(vector + 1, None);
            }
            state.eventfds[vector] = fd.map(Arc::new);
        }
        drop(state);
        self.deliver(0);
    }

    /// Signals the vectors in `fired` and those still pending from before.
    pub fn deliver(&self, fired: u64) {
        let mut state = self.lock();
        let all = state.pending | fired;
        state.pending = all;
        let mut ready = Vec::new();
        for vector in (0..64).filter(|v| all >> v & 1 != 0) {
            if let Some(Some(fd)) = state.eventfds.get(vector) {
                ready.push(Arc::clone(fd));
                state.pending &= !(1 << vector);
            }
        }
        // Not under the lock: the descriptors are the client's, who can make a write to one block after all.
        drop(state);
        for fd in ready {
            lock(&self.writes).push((Arc::clone(&fd), Instant::now()));
            fd.signal();
            let mut writes = lock(&self.writes);
            if let Some(at) = writes.iter().position(|(other, _)| Arc::ptr_eq(other, &fd)) {
                writes.swap_remove(at);
            }
        }
    }

    /// Whether a write is in progress.
    pub fn is_writing(&self) -> bool {
        !lock(&self.writes).is_empty()
    }

    /// Ends writes that a client has made block, by clearing the descriptor's flag and filling the counter at the wrong
    /// moment. To be called periodically, from a thread that makes no such writes.
    pub fn unblock(&self) {
        let stuck = |since: &Instant| since.elapsed() >= STUCK;
        let blocked: Vec<_> = lock(&self.writes)
            .iter()
            .filter(|(_, since)| stuck(since))
            .map(|(fd, _)| Arc::clone(fd))
            .collect();
        for fd in blocked {
            // It may fail; the next call tries again.
            let _ = fd.set_nonblocking();
            // Whoever is blocked in a write goes on.
            drain(&fd.fd);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Runs [`Forwarder::run`] while there is a client.
#[derive(Debug, Default)]
pub(super) struct Forwarder {
    work: Mutex<Work>,
    changed: Condvar,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Work {
    #[default]
    Rest,
    Forward,
    End,
}

impl Forwarder {
    /// A client has connected.
    pub fn start(&self) {
        self.set(Work::Forward);
    }

    /// The client has disconnected. A wait in progress may continue for a while, also after the next client has connected,
    /// which then gets its interrupts.
    pub fn rest(&self) {
        self.set(Work::Rest);
    }

    /// There will be no more clients.
    pub fn end(&self) {
        self.set(Work::End);
    }

    fn set(&self, to: Work) {
        let mut work = lock(&self.work);
        if *work != Work::End {
            *work = to;
        }
        self.changed.notify_all();
    }

    /// Forwards interrupts until the end. A simulated card runs inside these waits, so it runs as long as there is a
    /// client, whether the client uses interrupts or polls.
    pub fn run(&self, function: &dyn PciFunction, table: &IrqTable) {
        loop {
            let work = lock(&self.work);
            let work = self.changed.wait_while(work, |work| *work == Work::Rest);
            if *work.unwrap_or_else(PoisonError::into_inner) == Work::End {
                return;
            }
            let waited = catch_unwind(AssertUnwindSafe(|| function.wait_irq(u64::MAX, LOOK)));
            match waited {
                Ok(Ok(fired)) => table.deliver(fired),
                Ok(Err(PciError::Timeout(_))) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%error, "no more interrupts from the function for this client");
                    self.rest();
                }
                Err(_) => {
                    tracing::error!("waiting for an interrupt panicked");
                    self.rest();
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Limits, Resource};

    fn irq(fd: &OwnedFd) -> IrqFd {
        let share = Budget::new(Limits { maps: 100, descriptors: 100, addresses: 100 }).join();
        IrqFd::new(fd.try_clone().unwrap(), share.take(Resource::Descriptors, 1).unwrap()).unwrap()
    }

    #[test]
    fn a_write_that_a_client_has_made_to_block_is_ended() {
        let fd = crate::eventfds::eventfd().unwrap();
        fd.write(u64::MAX - 1).unwrap();
        let fd = fd.as_fd().try_clone_to_owned().unwrap();
        let table = IrqTable::default();
        table.assign(0, [Some(irq(&fd))].into_iter());
        fcntl(fd.as_raw_fd(), FcntlArg::F_SETFL(OFlag::empty())).unwrap();
        std::thread::scope(|scope| {
            // As `signal` does if the counter has changed since its check.
            let target = Arc::clone(table.lock().eventfds[0].as_ref().unwrap());
            lock(&table.writes).push((Arc::clone(&target), Instant::now()));
            let blocked = scope.spawn(move || nix::unistd::write(&target.fd, &1u64.to_ne_bytes()));
            let end = Instant::now() + Duration::from_secs(60);
            while !blocked.is_finished() && Instant::now() < end {
                assert!(table.is_writing());
                table.unblock();
                std::thread::sleep(Duration::from_millis(10));
            }
            let ended = blocked.is_finished();
            // If not, release it, so that the test can end.
            drain(&irq(&fd).fd);
            assert!(ended && blocked.join().unwrap() == Ok(8));
        });
    }
}
