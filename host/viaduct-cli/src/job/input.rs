// SPDX-License-Identifier: Apache-2.0
//! Files that a run to be checked reads.

use std::fs::Metadata;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::fail::{Failure, Result, at};

/// The file of an input, as the run finds it.
pub struct Input {
    path: PathBuf,
    /// Bytes, and the time of the last change.
    state: (u64, SystemTime),
}

impl Input {
    /// Of this file, now.
    pub(super) fn new(path: PathBuf) -> Result<Self> {
        let state = state(&std::fs::metadata(&path).map_err(at(path.display()))?);
        Ok(Self { path, state })
    }

    /// Fails if the file has changed: the golden model would get other bytes than the app.
    pub(super) fn check_unchanged(&self) -> Result {
        match std::fs::metadata(&self.path) {
            Ok(meta) if state(&meta) == self.state => Ok(()),
            _ => Err(Failure::Run(format!(
                "{} changed during the run, so that the golden model cannot tell what is right; keep it unchanged and run again",
                self.path.display()
            ))),
        }
    }
}

fn state(meta: &Metadata) -> (u64, SystemTime) {
    (meta.len(), meta.modified().unwrap_or(SystemTime::UNIX_EPOCH))
}
