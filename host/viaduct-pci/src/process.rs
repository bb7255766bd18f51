// SPDX-License-Identifier: Apache-2.0
//! What `fork()` does to a program that uses cards: the child has copies of its objects, but not of its threads, and the
//! card stays its parent's.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// How often this process and its ancestors have been forked off.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process in which something was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// This one.
    pub fn current() -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the handler only counts, which a child may do before anything else runs in it.
            let code = unsafe { libc::pthread_atfork(None, None, Some(forked)) };
            if code != 0 {
                tracing::error!(code, "a child of fork() will not be told from its parent");
            }
        });
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether that is this process, and not one that it was forked off from.
    pub fn is_current(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }
}

/// Runs in every child.
unsafe extern "C" fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}
