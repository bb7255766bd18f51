// SPDX-License-Identifier: Apache-2.0
//! The limit on the size of files (`RLIMIT_FSIZE`).

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// Does something that may make a file too large. That is then an error of the call (`EFBIG`) like any other: the signal
/// that comes with it, and would end the program, is kept from it. It is sent to the thread that writes.
pub fn without_sigxfsz<T>(write: impl FnOnce() -> T) -> T {
    let mut set = SigSet::empty();
    set.add(Signal::SIGXFSZ);
    let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let result = write();
    let Ok(before) = before else { return result };
    if !before.contains(Signal::SIGXFSZ) {
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the set and the time are ours and live over the call; NULL asks for no details.
        let taken = || unsafe { libc::sigtimedwait(set.as_ref(), std::ptr::null_mut(), &now) };
        while taken() == Signal::SIGXFSZ as libc::c_int {}
        // Cannot fail: it is the mask that was there.
        let _ = before.thread_set_mask();
    }
    result
}
