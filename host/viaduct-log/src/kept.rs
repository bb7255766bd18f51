// SPDX-License-Identifier: Apache-2.0
//! Messages that are kept in memory.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use tracing::Level;

static KEPT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Kept;

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        KEPT.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Keeps this program's warnings and errors in memory instead of writing them: for a test that asks [`kept`] for what was told.
/// Does nothing if the program has already set up logging.
pub fn keep() {
    let kept = tracing_subscriber::fmt().with_writer(|| Kept).with_ansi(false).with_max_level(Level::WARN);
    // Another test of the program was first, and keeps them too.
    let _ = kept.try_init();
}

/// What was told since [`keep`], by all threads.
pub fn kept() -> String {
    String::from_utf8_lossy(&KEPT.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
}
