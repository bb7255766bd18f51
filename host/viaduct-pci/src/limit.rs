// SPDX-License-Identifier: Apache-2.0
//! The limit on the size of files (`RLIMIT_FSIZE`).

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// Calls a function that may exceed the limit on the size of a file. The result is then the error `EFBIG`; the signal
/// `SIGXFSZ`, which is sent to the writing thread and would end the program, is blocked meanwhile and discarded.
pub fn without_sigxfsz<T>(write: impl FnOnce() -> T) -> T {
    let mut set = SigSet::empty();
    set.add(Signal::SIGXFSZ);
    let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let result = write();
    let Ok(before) = before else { return result };
    if !before.contains(Signal::SIGXFSZ) {
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the set and the time are local and outlive the call; NULL requests no details.
        let taken = || unsafe { libc::sigtimedwait(set.as_ref(), std::ptr::null_mut(), &now) };
        while taken() == Signal::SIGXFSZ as libc::c_int {}
        // Cannot fail: it restores the former mask.
        let _ = before.thread_set_mask();
    }
    result
}
