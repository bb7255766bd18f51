// SPDX-License-Identifier: Apache-2.0
//! Jobs in the guest: their files, and the detection of their end in the output.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::machine::JOB_DISK;
use crate::fail::{Result, at, regular, usage};

/// A job for the guest's agent.
pub struct Job {
    /// No script: a shell.
    pub shell: bool,
    /// A unique word.
    pub nonce: String,
    /// Its files, as a tar archive.
    pub archive: Vec<u8>,
}

impl Job {
    /// A script with its arguments, a command, or a shell; with the files in `copies`.
    pub fn new(script: Option<&Path>, command: &[OsString], copies: &[PathBuf]) -> Result<Self> {
        let mut archive = Archive::default();
        let words = |list: &[OsString]| {
            list.iter().flat_map(|w| [b" ".to_vec(), quoted(w)]).flatten().collect::<Vec<u8>>()
        };
        let mut names = vec![OsString::from("script")];
        if let Some(path) = script {
            archive.add("user-script", &read_file(path)?, 0o755);
            let line = [b"#!/bin/sh\nexec ./user-script".to_vec(), words(command), b"\n".to_vec()].concat();
            archive.add("script", &line, 0o755);
            names.push("user-script".into());
        } else if !command.is_empty() {
            archive.add(
                "script",
                &[b"#!/bin/sh\nPATH=.:$PATH\nexec".to_vec(), words(command), b"\n".to_vec()].concat(),
                0o755,
            );
        }
        for path in copies {
            let name = path.file_name().map(OsStr::to_owned).unwrap_or_default();
            if name.is_empty() || name.len() > 99 || names.contains(&name) {
                return usage(format!("--copy {}: no usable name, or used twice", path.display()));
            }
            regular(path)?;
            let mode = std::fs::metadata(path).map_err(at(path.display()))?.permissions().mode();
            archive.add(name.as_bytes(), &read_file(path)?, mode & 0o777);
            names.push(name);
        }
        let nonce = std::fs::read_to_string("/proc/sys/kernel/random/uuid").map_err(at("random numbers"))?;
        let archive = archive.end();
        if archive.len() as u64 > JOB_DISK {
            let (bytes, most) = (archive.len() >> 20, JOB_DISK >> 20);
            return usage(format!("the files for the guest have {bytes} MB; at most {most} MB are possible"));
        }
        Ok(Self { shell: script.is_none() && command.is_empty(), nonce: nonce.trim().to_owned(), archive })
    }
}

/// A word quoted for the shell.
fn quoted(word: &OsStr) -> Vec<u8> {
    let inner: Vec<u8> =
        word.as_bytes().iter().flat_map(|b| if *b == b'\'' { b"'\\''".to_vec() } else { vec![*b] }).collect();
    [b"'", inner.as_slice(), b"'"].concat()
}

/// A tar archive of plain files.
#[derive(Default)]
struct Archive(Vec<u8>);

impl Archive {
    fn add(&mut self, name: impl AsRef<[u8]>, data: &[u8], mode: u32) {
        let mut header = [0u8; 512];
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, name.as_ref());
        put(100, format!("{mode:07o}\0{:07o}\0{:07o}\0{:011o}\0{:011o}\0", 0, 0, data.len(), 0).as_bytes());
        put(148, b"        0");
        put(257, b"ustar\x0000");
        let sum: u32 = header.iter().map(|b| u32::from(*b)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend_from_slice(&header);
        self.0.extend_from_slice(data);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
    }

    fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }
}

/// Finds the end of a job in a stream of its output: byte 0x1e, the nonce, a blank, the exit code, a newline.
pub struct Marker {
    start: Vec<u8>,
    held: Vec<u8>,
    /// The exit code, once received.
    pub code: Option<u8>,
}

impl Marker {
    /// For the job with this nonce.
    pub fn new(nonce: &str) -> Self {
        Self { start: [b"\x1e", nonce.as_bytes(), b" "].concat(), held: Vec::new(), code: None }
    }

    /// Takes received bytes and returns those that are certainly output.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.code.is_some() {
            return Vec::new();
        }
        self.held.extend_from_slice(bytes);
        let n = self.start.len();
        if let Some(at) = self.held.windows(n).position(|w| w == self.start) {
            let rest = &self.held[at + n..];
            if let Some(end) = rest.iter().position(|b| *b == b'\n') {
                let code = std::str::from_utf8(&rest[..end]).ok().and_then(|t| t.parse().ok());
                self.code = Some(code.unwrap_or(u8::MAX));
            }
            return self.held.drain(..at).collect();
        }
        // A possible beginning of the marker is kept.
        let keep = (1..n.min(self.held.len() + 1)).rev().find(|k| self.held.ends_with(&self.start[..*k]));
        let sure = self.held.len() - keep.unwrap_or(0);
        self.held.drain(..sure).collect()
    }
}

/// A file for the guest's job. It may be a pipe, such as the shell's `<(…)` or standard input.
pub fn read_file(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(at(path.display()))?;
    file.take(JOB_DISK + 1).read_to_end(&mut bytes).map_err(at(path.display()))?;
    if bytes.len() as u64 <= JOB_DISK {
        return Ok(bytes);
    }
    usage(format!("{}: has more than {} MB, the most that goes into a guest", path.display(), JOB_DISK >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_however_the_stream_is_cut() {
        let stream = b"a\x1eb\n\x1e12-3\x1e12-34 7\n";
        for cut in 1..stream.len() {
            let mut marker = Marker::new("12-34");
            let mut out = Vec::new();
            for part in stream.chunks(cut) {
                out.extend(marker.take(part));
            }
            assert_eq!(out, b"a\x1eb\n\x1e12-3", "cut {cut}");
            assert_eq!(marker.code, Some(7));
        }
    }

    #[test]
    fn words_keep_their_quotes() {
        assert_eq!(quoted(OsStr::new("it's $x")), b"'it'\\''s $x'");
    }
}
