// SPDX-License-Identifier: Apache-2.0
//! Errors, each with its remedy.

use std::path::{Path, PathBuf};

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The manifest is wrong.
    #[error("{}{}: {key}: {problem}; {remedy}", shown(file), line.map(|l| format!(":{l}")).unwrap_or_default())]
    Manifest {
        /// The manifest.
        file: PathBuf,
        /// The line, counted from 1, if known.
        line: Option<usize>,
        /// The key, as a path (`register.key.width`).
        key: String,
        /// What is wrong with it.
        problem: String,
        /// What to write instead.
        remedy: String,
    },
    /// A value given for a register does not fit it.
    #[error("register {register}: {problem}; {remedy}")]
    Value {
        /// The register.
        register: String,
        /// What is wrong with the value.
        problem: String,
        /// What to give instead.
        remedy: String,
    },
    /// There is no such app.
    #[error("no app named {name:?}; {remedy}")]
    NoApp {
        /// The name asked for.
        name: String,
        /// What to do.
        remedy: String,
    },
    /// The folder is not in a project.
    #[error("{} is not in a Viaduct checkout; change to one, or name it with VIADUCT_ROOT", shown(start))]
    NoProject {
        /// The start of the search.
        start: PathBuf,
    },
    /// `VIADUCT_ROOT` names no folder.
    #[error("VIADUCT_ROOT names {}: {source}; name a Viaduct checkout, or unset it", path.display())]
    Root {
        /// Its value.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// It needs a checkout, and this is an installed tree.
    #[error(
        "{what} needs a checkout: {} was installed, without tools; change to a Viaduct checkout, or name it with VIADUCT_ROOT",
        root.display()
    )]
    Installed {
        /// What was attempted.
        what: String,
        /// The installed tree.
        root: PathBuf,
    },
    /// A name an app cannot have.
    #[error("{name:?} cannot be the name of an app; {remedy}")]
    Name {
        /// The name.
        name: String,
        /// The rule.
        remedy: &'static str,
    },
    /// The path exists already.
    #[error("{} exists; choose another name, or remove it", shown(path))]
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// A file could not be read or written, or a program not be started.
    #[error("{}: {source}{}", shown(path), limit(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// No temporary files can be created.
    #[error("no temporary folder in {}: {problem}; name another folder with TMPDIR", folder.display())]
    Scratch {
        /// Its intended parent.
        folder: PathBuf,
        /// What is wrong.
        problem: String,
        /// The system's error number, `EIO` if it has none.
        errno: i32,
    },
    /// A temporary file could not be written.
    #[error("{what}: cannot be written in the temporary folder {}: {problem}; make room there, or name another folder with TMPDIR", folder.display())]
    ScratchFile {
        /// The file, in words.
        what: String,
        /// The folder.
        folder: PathBuf,
        /// What is wrong.
        problem: String,
        /// The system's error number, `EIO` if it has none.
        errno: i32,
    },
    /// A tool this crate runs failed.
    #[error("{}{what} failed: {problem}", above(output))]
    Tool {
        /// What was attempted.
        what: String,
        /// The end of what the tool printed.
        output: String,
        /// What went wrong, and what to do.
        problem: String,
    },
    /// A signal to this process has ended a tool.
    #[error("{what}: ended by signal {signal}")]
    Ended {
        /// What was attempted.
        what: String,
        /// The signal.
        signal: i32,
    },
    /// The app does not support the card's width.
    #[error(
        "app {name} is for beats of {supported} bits (`data_width` in its app.toml), this card has {width}"
    )]
    Width {
        /// The app's name.
        name: String,
        /// Widths it supports, in bits.
        supported: String,
        /// The card's.
        width: u32,
    },
    /// An app image is not one, or not for this card.
    #[error("{}: {problem}; {remedy}", shown(file))]
    Image {
        /// The image.
        file: PathBuf,
        /// What is wrong.
        problem: String,
        /// What to do.
        remedy: String,
    },
}

/// A path as a user wrote it: relative to the current folder if it is below it.
fn shown(path: &Path) -> std::path::Display<'_> {
    let here = std::env::current_dir().unwrap_or_default();
    let short = path.strip_prefix(here).unwrap_or(path);
    if short.as_os_str().is_empty() { path } else { short }.display()
}

/// The limit that was reached, and what to do.
fn limit(source: &std::io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EMFILE) => "; the limit of open files is reached (`ulimit -n`): raise it",
        Some(libc::EAGAIN) => {
            "; the limit of processes and threads is reached (`ulimit -u`, or that of the container): end other programs, or raise it"
        }
        Some(libc::ENOMEM) => "; memory is short: end other programs, or raise its limit (`ulimit -v`)",
        _ => "",
    }
}

/// Untrusted text made safe for one line on a terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The output of a tool, on separate lines.
fn above(output: &str) -> String {
    if output.is_empty() { String::new() } else { format!("{output}\n") }
}

impl Error {
    pub(crate) fn io(path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.as_ref().to_owned();
        move |source| Error::Io { path, source: cause(source) }
    }
}

/// The system's error, without the name of the temporary file that it was about, which comes after its number.
fn cause(e: std::io::Error) -> std::io::Error {
    let text = e.to_string();
    let number = text.split_once(") at path \"").and_then(|(before, _)| before.rsplit_once("(os error "));
    match number.and_then(|(_, number)| number.parse().ok()) {
        Some(number) if e.raw_os_error().is_none() => std::io::Error::from_raw_os_error(number),
        _ => e,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_files_are_not_named() {
        let error = tempfile::tempdir_in("/no/such/folder").unwrap_err();
        let told = Error::io("apps")(error).to_string();
        assert!(told.starts_with("apps: ") && !told.contains("such/folder"), "{told}");
    }

    #[test]
    fn limits_are_named() {
        for (errno, words) in
            [(libc::EMFILE, "ulimit -n"), (libc::EAGAIN, "ulimit -u"), (libc::ENOMEM, "ulimit -v")]
        {
            let text = Error::io("python")(std::io::Error::from_raw_os_error(errno)).to_string();
            assert!(text.starts_with("python: ") && text.contains(words), "{text}");
        }
        assert!(
            !Error::io("x")(std::io::Error::from_raw_os_error(libc::ENOENT)).to_string().contains("limit")
        );
    }
}
