// SPDX-License-Identifier: Apache-2.0
//! Disk space for the files of a run, and locks on shared files.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use viaduct_build::Scratch;

use crate::fail::{Failure, Result, at};
use crate::process::signals::Signals;

/// A folder for temporary files with enough free space.
pub fn scratch(bytes: u64) -> Result<Scratch> {
    room(&std::env::temp_dir(), bytes, "TMPDIR")?;
    Ok(Scratch::new()?)
}

/// Fails if a folder's disk has not enough free space; `variable` names another folder.
pub fn room(folder: &Path, bytes: u64, variable: &str) -> Result {
    let Ok(disk) = nix::sys::statvfs::statvfs(folder) else { return Ok(()) };
    let free = disk.blocks_available() * disk.fragment_size();
    if free >= bytes {
        return Ok(());
    }
    Err(Failure::Run(format!(
        "the guest needs {} MB in {}, and {} MB are free there; free space, or name another folder with {variable}",
        bytes.div_ceil(1 << 20),
        folder.display(),
        free >> 20
    )))
}

/// Waits for a lock that another run holds; the user gets a message, and may end the wait.
pub fn wait_for(path: PathBuf, what: &str, limit: Duration, signals: &mut Signals) -> Result<Flock<File>> {
    let mut file = File::create(&path).map_err(at(path.display()))?;
    let end = Instant::now() + limit;
    let mut told = false;
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((again, Errno::EWOULDBLOCK)) => file = again,
            Err((_, e)) => return Err(Failure::Run(format!("{}: {}", path.display(), e.desc()))),
        }
        if !told {
            tell!("waiting for another `viaduct vm`, which {what}");
            told = true;
        }
        if let Some(number) = signals.taken() {
            return Err(crate::process::signals::interrupted(number));
        }
        if Instant::now() > end {
            return Err(Failure::Run(format!(
                "another `viaduct vm` {what} and is not done after {} s; end it, and run the same command again",
                limit.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_room_is_told() {
        let error = room(&std::env::temp_dir(), u64::MAX, "TMPDIR").unwrap_err();
        assert!(error.message().contains("TMPDIR"), "{}", error.message());
        room(&std::env::temp_dir(), 0, "TMPDIR").unwrap();
    }
}
