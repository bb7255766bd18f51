// SPDX-License-Identifier: Apache-2.0
//! Files of one run: a folder that is ours for as long as we live, however we end.

use std::fs::File;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};
use tempfile::TempDir;

use crate::fail::{Failure, Result, at};
use crate::signals::Signals;

const PREFIX: &str = "viaduct-vm-";

/// A folder in the temporary folder. Dropping it removes it; if nobody could, the next run does: it is in use for as long as a process holds
/// its lock, and that goes with the process.
pub struct Folder {
    folder: TempDir,
    _lock: Flock<File>,
}

impl Folder {
    /// Makes one, with room for so many bytes, and removes those of runs that were killed.
    pub fn new(bytes: u64) -> Result<Self> {
        let parent = std::env::temp_dir();
        sweep(&parent);
        room(&parent, bytes, "TMPDIR")?;
        for _ in 0..100 {
            let folder =
                tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent).map_err(at(parent.display()))?;
            // Another run may have taken it for one that was left.
            if let Some(lock) = hold(folder.path()) {
                return Ok(Self { folder, _lock: lock });
            }
        }
        Err(Failure::Run(format!(
            "{}: folders cannot be locked there; name another one with TMPDIR",
            parent.display()
        )))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// The lock of a folder that is there and is held by nobody. Those of other users cannot be opened.
fn hold(path: &Path) -> Option<Flock<File>> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
    let file = File::options().read(true).custom_flags(flags.bits()).open(path).ok()?;
    let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()?;
    let (held, there) = (lock.metadata().ok()?, std::fs::symlink_metadata(path).ok()?);
    (held.ino() == there.ino() && held.dev() == there.dev()).then_some(lock)
}

fn sweep(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        if let Some(_lock) = hold(&entry.path()) {
            // What cannot be removed harms nobody.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Fails if a folder's disk has not so many bytes left; `variable` names another folder to use.
pub fn room(folder: &Path, bytes: u64, variable: &str) -> Result {
    let Ok(disk) = nix::sys::statvfs::statvfs(folder) else { return Ok(()) };
    let free = disk.blocks_available() * disk.fragment_size();
    if free >= bytes {
        return Ok(());
    }
    Err(Failure::Run(format!(
        "the guest needs {} MB in {}, and {} MB are free there; make room, or name another folder with {variable}",
        bytes.div_ceil(1 << 20),
        folder.display(),
        free >> 20
    )))
}

/// Waits for a lock that other runs take; the user is told what for, and may end it.
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
            return Err(super::interrupted(number));
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
    fn what_is_held_stays_and_what_was_left_goes() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = parent.path().join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("file"), "x").unwrap();
            path
        };
        let (held, left, other) = (make("viaduct-vm-a"), make("viaduct-vm-b"), make("another"));
        let link = parent.path().join("viaduct-vm-c");
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let lock = hold(&held).unwrap();
        sweep(parent.path());
        assert!(held.join("file").exists() && other.join("file").exists() && link.exists() && !left.exists());
        drop(lock);
        sweep(parent.path());
        assert!(!held.exists() && other.join("file").exists());
    }

    #[test]
    fn too_little_room_is_told() {
        let error = room(&std::env::temp_dir(), u64::MAX, "TMPDIR").unwrap_err();
        assert!(error.message().contains("TMPDIR"), "{}", error.message());
        room(&std::env::temp_dir(), 0, "TMPDIR").unwrap();
    }
}
