// SPDX-License-Identifier: Apache-2.0
//! Synchronous handling of Ctrl-C and SIGTERM, for an orderly end.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::fail::{Failure, Result};

/// The signals that end a program. Not a hangup that is ignored by inheritance, as with `nohup`: handling it would undo
/// that.
pub fn ending() -> SigSet {
    let ignored = |signal: Signal| {
        let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: only queries; the result outlives the call, and all-zero is a valid value.
        let action = unsafe {
            libc::sigaction(signal as libc::c_int, std::ptr::null(), action.as_mut_ptr());
            action.assume_init()
        };
        action.sa_sigaction == libc::SIG_IGN
    };
    let mut set = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
    if !ignored(Signal::SIGHUP) {
        set.add(Signal::SIGHUP);
    }
    set
}

/// The signals of this process, from now on.
pub struct Signals(SignalFd);

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Signals {
    /// Blocks them; to be called before any thread is started.
    pub fn take() -> Result<Self> {
        let set = ending();
        set.thread_block()
            .and_then(|()| SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC))
            .map(Self)
            .map_err(|e| Failure::Run(format!("signals: {e}")))
    }

    /// Waits so long for a signal; whether one has come. It stays pending.
    pub fn wait_for(&self, limit: Duration) -> Result<bool> {
        let limit = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)], limit) {
            Ok(count) => Ok(count > 0),
            Err(Errno::EINTR) => Ok(false),
            Err(error) => Err(Failure::Run(format!("signals: {error}"))),
        }
    }

    /// The received signal, if any.
    pub fn taken(&mut self) -> Option<i32> {
        self.0.read_signal().ok().flatten().map(|s| s.ssi_signo as i32)
    }
}

/// From now on a file that exceeds `ulimit -f` is an error of the write (`EFBIG`), like a full disk, and does not end the
/// process.
pub fn fail_on_large_files() {
    // SAFETY: ignoring a signal runs no handler. It cannot fail: the signal exists.
    let _ = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
}

/// The pending signal among the blocked ones, if any; it stays pending.
pub fn waiting() -> bool {
    let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
    let look =
        |signals: &SignalFd| poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO);
    SignalFd::with_flags(&ending(), flags).is_ok_and(|signals| look(&signals) == Ok(1))
}

pub fn interrupted(signal: i32) -> Failure {
    Failure::Run(format!("ended by signal {signal}"))
}
