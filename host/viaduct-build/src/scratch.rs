// SPDX-License-Identifier: Apache-2.0
//! Temporary files that are removed, however a program ends.

use std::fs::File;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg, OFlag};
use tempfile::TempDir;

use crate::{Error, Result};

const PREFIX: &str = ".viaduct-scratch-";

/// A folder in the temporary folder. Dropping it removes it; if the program was killed or ended by a signal, the next one
/// that creates such a folder removes it: it is in use while a process holds its lock, which ends with the process.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    _lock: Flock<File>,
}

impl Scratch {
    /// Creates one, and removes those of programs that were killed.
    pub fn new() -> Result<Self> {
        Self::within(std::env::temp_dir())
    }

    fn within(parent: PathBuf) -> Result<Self> {
        sweep(&parent);
        let fail = |e: std::io::Error| {
            let (problem, errno) = (reason(&e), number(&e));
            Error::Scratch { folder: parent.clone(), problem, errno }
        };
        for _ in 0..100 {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent).map_err(fail)?;
            // Another run may have removed it as left over.
            if let Some(lock) = hold(folder.path()) {
                return Ok(Self { folder, _lock: lock });
            }
        }
        let problem = "folders cannot be locked there".to_owned();
        Err(Error::Scratch { folder: parent, problem, errno: libc::ENOLCK })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The error for a file that cannot be written in such a folder.
    pub fn lacks(what: impl Into<String>, e: &std::io::Error) -> Error {
        let problem = match e.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => "it is full".to_owned(),
            Some(libc::EFBIG) => "files of this user may not be larger (`ulimit -f`)".to_owned(),
            _ => reason(e),
        };
        Error::ScratchFile { what: what.into(), folder: std::env::temp_dir(), problem, errno: number(e) }
    }
}

/// The system's text, without number and path.
fn reason(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// The system's error number. Errors of `tempfile` have it in their text only.
fn number(e: &std::io::Error) -> i32 {
    let in_text = || e.to_string().split_once("(os error ")?.1.split_once(')')?.0.parse().ok();
    e.raw_os_error().or_else(in_text).unwrap_or(libc::EIO)
}

/// The lock of an existing folder that is not held. Those of other users cannot be opened.
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
            // A folder that cannot be removed does no harm.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_folder_is_named() {
        for (errno, why) in
            [(libc::ENOSPC, "it is full"), (libc::EFBIG, "ulimit"), (libc::EIO, "output error")]
        {
            let text = Scratch::lacks("the copy", &std::io::Error::from_raw_os_error(errno)).to_string();
            let folder = std::env::temp_dir().display().to_string();
            assert!(text.starts_with("the copy: ") && text.contains(&folder), "{text}");
            assert!(text.contains(why) && text.ends_with("with TMPDIR"), "{text}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_used_is_told_with_its_error_number() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("file");
        std::fs::write(&file, "x").unwrap();
        for (path, expected) in [(parent.path().join("none"), libc::ENOENT), (file, libc::ENOTDIR)] {
            match Scratch::within(path.clone()) {
                Err(Error::Scratch { folder, errno, .. }) => assert_eq!((folder, errno), (path, expected)),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn what_is_held_stays_and_what_was_left_goes() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = parent.path().join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("file"), "x").unwrap();
            path
        };
        let name = |end: &str| format!("{PREFIX}{end}");
        let (held, left, other) = (make(&name("a")), make(&name("b")), make("another"));
        let link = parent.path().join(name("c"));
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let lock = hold(&held).unwrap();
        sweep(parent.path());
        assert!(held.join("file").exists() && other.join("file").exists() && link.exists() && !left.exists());
        drop(lock);
        sweep(parent.path());
        assert!(!held.exists() && other.join("file").exists());
    }
}
