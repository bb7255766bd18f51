// SPDX-License-Identifier: Apache-2.0
//! Creates the file of a trace, and no other one's place.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::TraceError;

/// Creates the file, or empties it, unless it is one of `kept` under any name. These need not exist.
pub fn create(path: &Path, kept: &[&Path]) -> Result<File, TraceError> {
    let failed = |source| TraceError::Create { path: path.to_owned(), source };
    let open = |new: bool| {
        // Without waiting for the reader of a FIFO, which is refused below.
        let mut options = OpenOptions::new();
        options.write(true).create_new(new).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
        options.open(path)
    };
    let (file, is_new) = match open(true) {
        Ok(file) => (file, true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match open(false) {
            // A link to a file that does not exist.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (File::create(path).map_err(failed)?, true)
            }
            // A FIFO without a reader, or a socket.
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Err(failed(not_a_file())),
            other => (other.map_err(failed)?, false),
        },
        Err(error) => return Err(failed(error)),
    };
    let own = file.metadata().map_err(failed)?;
    if kept.iter().any(|other| std::fs::metadata(other).is_ok_and(|other| is_same(&own, &other))) {
        if is_new {
            // The place of an output that does not exist yet.
            std::fs::canonicalize(path).and_then(std::fs::remove_file).map_err(failed)?;
        }
        return Err(TraceError::Kept { path: path.to_owned() });
    }
    // What may stop taking data would stop the card.
    if !own.is_file() && !own.file_type().is_char_device() {
        return Err(failed(not_a_file()));
    }
    if own.is_file() {
        file.set_len(0).map_err(failed)?;
    }
    Ok(file)
}

fn not_a_file() -> io::Error {
    io::Error::other("is not a file; name one")
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_kept_stay_under_all_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("folder")).unwrap();
        std::os::unix::fs::symlink(at("folder"), at("link")).unwrap();
        std::fs::write(at("input"), "kept").unwrap();
        std::fs::hard_link(at("input"), at("hard")).unwrap();
        std::os::unix::fs::symlink(at("input"), at("soft")).unwrap();
        for name in ["input", "hard", "soft", "folder/../input"] {
            let error = create(&at(name), &[&at("input")]).unwrap_err();
            assert!(matches!(error, TraceError::Kept { .. }), "{name}: {error}");
            assert_eq!(std::fs::read_to_string(at("input")).unwrap(), "kept");
        }
        let error = create(&at("link/output"), &[&at("folder/output")]).unwrap_err();
        assert!(matches!(error, TraceError::Kept { .. }) && !at("folder/output").exists());
        create(&at("link/output"), &[&at("input")]).unwrap();
        assert_eq!(std::fs::metadata(at("folder/output")).unwrap().len(), 0);
    }

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        let name = std::ffi::CString::new(fifo.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: the name is terminated and outlives the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        for path in [&fifo, &dir.path().to_owned()] {
            assert!(matches!(create(path, &[]).unwrap_err(), TraceError::Create { .. }));
        }
        create(Path::new("/dev/null"), &[]).unwrap();
    }
}
