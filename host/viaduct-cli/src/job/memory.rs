// SPDX-License-Identifier: Apache-2.0
//! The file of a memory port. Standard input is read to its end before the run, since an app is told how long its memory is and may
//! access it in any order; standard output gets the changed copy after the run.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use viaduct::{Prot, Source};
use viaduct_build::Scratch;
use viaduct_pci::without_sigxfsz;

use crate::fail::{Failure, Result, at, reason, regular, usage};
use crate::route::Route;

/// What the app works on.
pub(super) struct Memory {
    work: Work,
    /// Standard input goes to the first file before the run, and the copy to standard output after it.
    from_standard: bool,
    to_standard: bool,
    /// Folder of the files that stand for standard input and output.
    _scratch: Option<Scratch>,
}

enum Work {
    Read(PathBuf),
    Change(PathBuf),
    /// Created when the run begins.
    Copy {
        from: PathBuf,
        to: PathBuf,
    },
}

impl Memory {
    /// `--in` alone: the app may read the file. `--out` alone: it changes the file. Both: it changes a copy. `name` is the port's.
    pub fn new(name: &str, from: Option<&Route>, to: Option<&Route>) -> Result<Self> {
        let (from_standard, to_standard) =
            (from.is_some_and(Route::is_standard), to.is_some_and(Route::is_standard));
        let scratch = if from_standard || to_standard { Some(Scratch::new()?) } else { None };
        let path = |route: &Route, copy: &str| match (&scratch, route.is_standard(), route.file()) {
            (Some(scratch), true, _) => Ok(scratch.path().join(copy)),
            (_, _, Some(path)) => Ok(PathBuf::from(path)),
            _ => usage(format!("{name}={}: a memory port works on a file, or on -", route.endpoint)),
        };
        let work = match (from, to) {
            (None, None) => {
                return usage(format!(
                    "memory port {name} has no file; add --in {name}=file:… or --out {name}=file:…"
                ));
            }
            (Some(from), None) => Work::Read(path(from, "input")?),
            (None, Some(_)) if to_standard => {
                return usage(format!(
                    "standard output gets a changed copy; add --in {name}=file:… or --in {name}=-, of which it is one"
                ));
            }
            (None, Some(to)) => Work::Change(path(to, "output")?),
            (Some(from), Some(to)) => {
                let (from, to) = (path(from, "input")?, path(to, "output")?);
                if to.exists() {
                    regular(&to)?;
                }
                let file = |path: &PathBuf| std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino())).ok();
                if file(&from).is_some() && file(&from) == file(&to) {
                    return usage(format!(
                        "{}: is both read and written; give --out alone to change it in place",
                        to.display()
                    ));
                }
                Work::Copy { from, to }
            }
        };
        let memory = Self { work, from_standard, to_standard, _scratch: scratch };
        if !from_standard {
            regular(memory.first())?;
        }
        Ok(memory)
    }

    /// The file that exists before the run.
    fn first(&self) -> &Path {
        match &self.work {
            Work::Read(path) | Work::Change(path) | Work::Copy { from: path, .. } => path,
        }
    }

    /// Files with the content before the run and after it, for the golden model. The first one is a copy, in a folder, if the app changes it.
    pub fn before_and_after(&self) -> Result<(PathBuf, PathBuf, Option<Scratch>)> {
        Ok(match &self.work {
            Work::Read(path) => (path.clone(), path.clone(), None),
            Work::Copy { from, to } => (from.clone(), to.clone(), None),
            Work::Change(path) => {
                let scratch = Scratch::new()?;
                let copy = scratch.path().join("before");
                std::fs::copy(path, &copy)
                    .map_err(|e| Scratch::lacks(format!("the copy of {} for --check", path.display()), &e))?;
                (copy, path.clone(), Some(scratch))
            }
        })
    }

    /// Whether standard output gets the result.
    pub fn to_standard(&self) -> bool {
        self.to_standard
    }

    /// What is mapped, and what the app may do with it.
    pub fn begin(&self) -> Result<(Source, Prot)> {
        if self.from_standard {
            let copied =
                File::create(self.first()).and_then(|mut copy| io::copy(&mut own(io::stdin())?, &mut copy));
            copied.map_err(|e| Scratch::lacks("the copy of standard input", &e))?;
        }
        let (source, prot) = match &self.work {
            Work::Read(path) => (Source::file(path)?, Prot::READ),
            Work::Change(path) => (Source::file_mut(path)?, Prot::READ_WRITE),
            Work::Copy { from, to } => {
                let source = File::open(from).map_err(at(from.display()))?;
                self.mappable(from, source.metadata().map_err(at(from.display()))?.len())?;
                self.copy(source, to)?;
                (Source::file_mut(to)?, Prot::READ_WRITE)
            }
        };
        self.mappable(source.name(), source.len())?;
        Ok((source, prot))
    }

    /// Fails if a file has no bytes.
    fn mappable(&self, path: &Path, bytes: u64) -> Result {
        match bytes {
            0 if self.from_standard => usage("standard input: 0 bytes cannot be mapped"),
            0 => usage(format!(
                "{}: a file of 0 bytes cannot be mapped (files in /proc and /sys have no length: copy one first)",
                path.display()
            )),
            _ => Ok(()),
        }
    }

    /// Copies the content only: an existing file keeps its mode, and its content too if there is no room for the other.
    fn copy(&self, mut from: File, to: &Path) -> Result {
        let cannot = |doing: &'static str| {
            move |e: io::Error| match self.to_standard {
                true => Scratch::lacks("the copy for standard output", &e).into(),
                false => Failure::Run(format!("{}: cannot {doing}: {}", to.display(), reason(&e))),
            }
        };
        let is_new = to.symlink_metadata().is_err();
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(to);
        let mut copy = open.map_err(cannot("open it for writing"))?;
        let bytes = from.metadata().map_err(cannot("examine the input"))?.len();
        if let Err(e) = make_room(&copy, bytes) {
            if is_new {
                // What cannot be removed is an empty file.
                let _ = std::fs::remove_file(to);
            }
            return Err(cannot("make room for a copy of the input")(e));
        }
        let copied = without_sigxfsz(|| copy.set_len(bytes).and_then(|()| io::copy(&mut from, &mut copy)));
        copied.map(drop).map_err(cannot("write"))
    }

    /// Passes the result on.
    pub fn end(&self) -> Result {
        let (Work::Copy { to, .. }, true) = (&self.work, self.to_standard) else { return Ok(()) };
        let mut copy = File::open(to).map_err(at("the copy for standard output"))?;
        let written = own(io::stdout()).and_then(|mut out| io::copy(&mut copy, &mut out));
        written.map(drop).map_err(at("standard output: cannot write"))
    }
}

/// Reserves space for the first `bytes` of a file, whose content stays; where file systems cannot do that, writing will tell.
fn make_room(file: &File, bytes: u64) -> io::Result<()> {
    let before = file.metadata()?.len();
    let most = i64::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
    match without_sigxfsz(|| fallocate(file.as_raw_fd(), FallocateFlags::empty(), 0, most)) {
        Ok(()) | Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => Ok(()),
        Err(errno) => {
            file.set_len(before)?;
            Err(errno.into())
        }
    }
}

/// A descriptor as a file, without a buffer.
fn own(standard: impl AsFd) -> io::Result<File> {
    standard.as_fd().try_clone_to_owned().map(File::from)
}
