// SPDX-License-Identifier: Apache-2.0
//! Standard streams that were closed when the program began. Rust's runtime opens `/dev/null` in their place before `main`: data would
//! be lost there, and count as written.

use std::sync::atomic::{AtomicU8, Ordering};

use nix::libc;

use crate::fail::{Failure, Result};

/// Bit n: descriptor n was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Runs before the runtime does.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    for fd in 0..3 {
        // SAFETY: only reads the flags of a descriptor, which need not be open.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << fd, Ordering::Relaxed);
        }
    }
}

/// Fails if standard input (0) or output (1) was closed.
pub fn refuse(fd: u8) -> Result {
    match CLOSED.load(Ordering::Relaxed) >> fd & 1 {
        0 => Ok(()),
        _ => Err(Failure::Run(format!("standard {}: is closed", if fd == 0 { "input" } else { "output" }))),
    }
}
