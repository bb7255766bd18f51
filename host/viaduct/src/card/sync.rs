// SPDX-License-Identifier: Apache-2.0
//! Waiting for the card and for other threads.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Result;
use nix::sys::signal::SigSet;

/// Polls until there is a result; `None` after `limit`. The pauses grow.
pub(crate) fn poll<T>(limit: Duration, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<Option<T>> {
    // None: later than a clock can tell.
    let end = Instant::now().checked_add(limit);
    let mut pause = Duration::from_micros(10);
    loop {
        if let Some(response) = ask()? {
            return Ok(Some(response));
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Locks; a poisoned lock is safe to use, since no invariant spans a panic here.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Blocks all signals on this thread. One that a write here causes (`SIGPIPE`, `SIGXFSZ`) stays pending until the thread
/// ends; the call itself fails with an error.
pub(crate) fn block_signals() {
    // Cannot fail: the set is valid.
    let _ = SigSet::all().thread_block();
}
