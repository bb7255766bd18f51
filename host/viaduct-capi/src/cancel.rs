// SPDX-License-Identifier: Apache-2.0
//! Threads of the program that are to be cancelled while they are in a call.

use std::ffi::c_int;

/// `PTHREAD_CANCEL_DISABLE` of glibc and musl.
const DISABLE: c_int = 1;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// While it exists this thread cannot be cancelled: that would end it inside of Rust code, which aborts the process.
pub(crate) struct Uncancelled {
    before: c_int,
}

impl Uncancelled {
    /// Puts a cancellation off.
    pub fn new() -> Self {
        let mut before = DISABLE;
        // SAFETY: it writes the state so far, and nothing else; with a valid state it does not fail.
        unsafe { pthread_setcancelstate(DISABLE, &mut before) };
        Self { before }
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        // SAFETY: as above. It does not act upon a cancellation, which the thread's next cancellation point does.
        unsafe { pthread_setcancelstate(self.before, &mut self.before) };
    }
}
