// SPDX-License-Identifier: Apache-2.0
//! Peer processes, described so that users can find them.

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use std::fmt;
use std::os::fd::AsFd;
use std::path::Path;

/// A process: its number, and the name of its program at the time of the look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Peer {
    pid: i32,
    program: String,
}

impl Peer {
    /// The process that connected to an accepted socket, or that listens on a connected one.
    pub(crate) fn of(socket: &impl AsFd) -> Self {
        // Without credentials the process is not visible here.
        Self::numbered(getsockopt(socket, PeerCredentials).map_or(0, |credentials| credentials.pid()))
    }

    /// A process that has this file open, as far as this one may see.
    pub(crate) fn with_open(path: &Path) -> Option<Self> {
        let has_it_open = |pid: i32| {
            let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd"));
            let links = descriptors.into_iter().flatten().flatten().map(|entry| entry.path());
            links.filter_map(|link| std::fs::read_link(link).ok()).any(|target| target == path)
        };
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.find(|pid| has_it_open(*pid)).map(Self::numbered)
    }

    fn numbered(pid: i32) -> Self {
        let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        Self { pid, program: printable(&name) }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.pid, self.program.as_str()) {
            (..=0, _) => f.write_str("a process of another container"),
            (pid, "") => write!(f, "process {pid}"),
            (pid, program) => write!(f, "process {pid} ({program})"),
        }
    }
}

/// Text from another process made safe for a terminal: one line of at most 300 characters, no control characters.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim().chars().take(300).map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_peer_is_named() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let us = Peer::of(&ours);
        assert_eq!(us.pid, std::process::id() as i32);
        assert!(
            !us.program.is_empty() && us.to_string().starts_with(&format!("process {} (", us.pid)),
            "{us}"
        );
        assert_eq!(Peer::numbered(0).to_string(), "a process of another container");
    }

    #[test]
    fn who_has_a_file_open_is_found() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().canonicalize().unwrap();
        assert_eq!(Peer::with_open(&path).unwrap().pid, std::process::id() as i32);
        drop(file);
        assert_eq!(Peer::with_open(&path), None);
    }

    #[test]
    fn names_do_not_reach_the_terminal_raw() {
        assert_eq!(printable(b"\x1b[31mred\x07\n"), "?[31mred?");
        assert_eq!(printable(&[b'x'; 1000]).len(), 300);
    }
}
