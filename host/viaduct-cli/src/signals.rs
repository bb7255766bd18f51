// SPDX-License-Identifier: Apache-2.0
//! Ctrl-C and SIGTERM as something to ask for, so that what was begun is ended in order.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::fail::{Failure, Result};

/// The signals of this process, from now on.
pub struct Signals(SignalFd);

impl Signals {
    /// Takes them; to be called before any thread is started.
    pub fn take() -> Result<Self> {
        let mut set = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            set.add(signal);
        }
        set.thread_block()
            .and_then(|()| SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC))
            .map(Self)
            .map_err(|e| Failure::Run(format!("signals: {e}")))
    }

    /// The signal that has come, if any.
    pub fn taken(&mut self) -> Option<i32> {
        self.0.read_signal().ok().flatten().map(|s| s.ssi_signo as i32)
    }
}

/// Starts a program that is to get these signals itself.
pub fn unblocked<T>(start: impl FnOnce() -> T) -> T {
    // Neither can fail: the sets are valid.
    let before = SigSet::thread_get_mask();
    let _ = SigSet::empty().thread_set_mask();
    let result = start();
    if let Ok(mask) = before {
        let _ = mask.thread_set_mask();
    }
    result
}
