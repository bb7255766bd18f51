// SPDX-License-Identifier: Apache-2.0
//! Takes interrupts from the function and gives them to the client's eventfds.

use crate::{PciError, PciFunction};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a forwarder looks whether it should end. Until then one without a client may wait beside its successor:
/// whichever gets an interrupt delivers it to the same table.
const LOOK: Duration = Duration::from_millis(250);

/// Where each MSI-X vector goes. A vector that fires while it has no eventfd stays pending and is delivered when it
/// gets one, as a masked vector does on a real card.
#[derive(Debug, Default)]
pub(super) struct IrqTable {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    eventfds: Vec<Option<Arc<OwnedFd>>>,
    pending: u64,
}

impl IrqTable {
    /// Forgets all eventfds and pending interrupts.
    pub fn clear(&self) {
        *self.lock() = State::default();
    }

    /// Gives vectors from `start` on an eventfd each, or takes it away.
    pub fn assign(&self, start: usize, eventfds: impl Iterator<Item = Option<OwnedFd>>) {
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
        // Not under the lock: the descriptors are the client's, and writing to one may block.
        drop(state);
        ready.iter().for_each(|fd| signal(fd));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks that a descriptor from a client is an eventfd, and makes writes to it non-blocking.
pub(super) fn check_eventfd(fd: &OwnedFd) -> Result<(), Errno> {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).map_err(|_| Errno::EBADF)?;
    if link.as_os_str() != "anon_inode:[eventfd]" {
        return Err(Errno::EINVAL);
    }
    let flags = nix::fcntl::fcntl(fd.as_raw_fd(), nix::fcntl::F_GETFL)?;
    let flags = nix::fcntl::OFlag::from_bits_truncate(flags) | nix::fcntl::OFlag::O_NONBLOCK;
    nix::fcntl::fcntl(fd.as_raw_fd(), nix::fcntl::F_SETFL(flags)).map(drop)
}

fn signal(fd: &OwnedFd) {
    // A counter at its limit means that the client is about to be woken anyway, and must not block us.
    let mut polled = [PollFd::new(fd.as_fd(), PollFlags::POLLOUT)];
    if poll(&mut polled, PollTimeout::ZERO) == Ok(1) {
        // A failure concerns only the client, whose descriptor it is.
        let _ = nix::unistd::write(fd, &1u64.to_ne_bytes());
    }
}

/// Runs until `stop` is set. A simulated card runs inside this wait, so it goes on as long as there is a client, whether
/// that wants interrupts or polls. Nobody waits for the thread to end: should a client manage to block a write to its eventfd, only this
/// thread is stuck.
pub(super) fn forward(function: &dyn PciFunction, table: &IrqTable, stop: &AtomicBool) {
    while !stop.load(Ordering::Acquire) {
        match function.wait_irq(u64::MAX, LOOK) {
            Ok(fired) => table.deliver(fired),
            Err(PciError::Timeout(_)) => {}
            Err(error) => {
                tracing::warn!(%error, "no more interrupts from the function");
                return;
            }
        }
    }
}
