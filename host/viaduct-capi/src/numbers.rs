// SPDX-License-Identifier: Apache-2.0
//! Numbers of handles, and which of them belong to this process.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::process::PerProcess;

/// The next number, shared by all kinds of objects, so that no number is used twice.
pub(crate) static NEXT: AtomicUsize = AtomicUsize::new(1);

/// The first number of this process: smaller ones belong to the processes from which it was forked.
pub(crate) static FIRST: PerProcess<usize> = PerProcess::new(|| NEXT.load(Ordering::Relaxed));

/// Called at the beginning of each call: the first one in a process records the first of its own handles.
pub(crate) fn enter_process() {
    FIRST.get();
}

/// Whether the program may use handles of a parent process.
pub(crate) fn is_child() -> bool {
    *FIRST.get() > 1
}
