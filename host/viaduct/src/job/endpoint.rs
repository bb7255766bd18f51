// SPDX-License-Identifier: Apache-2.0
//! Endpoints of routes: a file, a stream, bytes of this program, a range of card memory, or the board's Ethernet port.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::statfs::{
    CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC, FsType, PROC_SUPER_MAGIC, SECURITYFS_MAGIC,
    SYSFS_MAGIC, TRACEFS_MAGIC, statfs,
};

use crate::backing::{SharedBytes, kind_of, open_error, zeroed};
use crate::card::dma::DmaBuffer;
use crate::error::{Error, Result};
use crate::job::flow::{Pipe, Stream};

/// One end of a route.
#[derive(Debug, Clone)]
pub enum Endpoint {
    /// `file:PATH`. As a source: a regular file of its stated length, or a stream: a FIFO or character device, or a file of
    /// `/proc` or `/sys`, which is read to its end. As a sink: a regular file, created, or truncated if it exists; or a
    /// stream: a FIFO or character device, or a file of `/proc` or `/sys`.
    File(PathBuf),
    /// `-`: standard input as a source, standard output as a sink. A stream.
    Standard,
    /// `fd:NUMBER`: an open descriptor of this process, from its position. A stream. It stays open.
    Descriptor(RawFd),
    /// Any other stream, read or written in order. Created by [`Endpoint::reader`], [`Endpoint::writer`] and
    /// [`Endpoint::stream`]; serves one run.
    Stream(Stream),
    /// `host:SIZE`: bytes of this program.
    Bytes {
        /// Name, for messages and for finding the bytes after the run.
        name: String,
        /// The bytes. A sink is cleared first.
        bytes: SharedBytes,
    },
    /// `card:ADDRESS+LENGTH`: a range of card memory, which is then reserved for the user while the card is open.
    Card {
        /// Card address: channel number in bits 34 and up.
        addr: u64,
        /// Bytes.
        len: u64,
    },
    /// `eth:`: the board's Ethernet port, to which the app is connected on the card while the run lasts. Each frame is a message, without FCS:
    /// as a source of 60 bytes and more, as a sink of at least 14. For [`StreamJob`](crate::StreamJob).
    Ethernet,
}

impl Endpoint {
    /// Parses an endpoint string. Numbers are decimal or `0x...`, with K, M or G for KiB, MiB or GiB. `host:` followed by a
    /// number means that many zero bytes, followed by a name an empty buffer.
    pub fn parse(text: &str) -> Result<Self> {
        let fail = |why: &str| Error::BadEndpoint { text: text.into(), why: why.into() };
        if text == "-" {
            return Ok(Self::Standard);
        }
        let Some((kind, rest)) = text.split_once(':') else {
            return Err(fail("it does not begin with file:, host:, card:, eth: or fd:"));
        };
        match (kind, rest) {
            ("eth", "") => return Ok(Self::Ethernet),
            ("eth", _) => return Err(fail("the board has one Ethernet port, without a name")),
            _ => {}
        }
        if rest.is_empty() {
            return Err(fail("there is nothing after the colon"));
        }
        match kind {
            "file" => Ok(Self::File(rest.into())),
            "host" => {
                let size = number(rest).ok_or_else(|| fail("the size is not a number of 64 bits"))?;
                let zeros = zeroed(size).ok_or(Error::OutOfMemory { bytes: size })?;
                Ok(Self::Bytes { name: text.into(), bytes: SharedBytes::new(zeros) })
            }
            "card" => {
                let (addr, len) = rest.split_once('+').ok_or_else(|| fail("the length is missing"))?;
                let addr = number(addr).ok_or_else(|| fail("the address is not a number of 64 bits"))?;
                let len = number(len).ok_or_else(|| fail("the length is not a number of 64 bits"))?;
                Ok(Self::Card { addr, len })
            }
            "fd" => match rest.parse() {
                Ok(fd) if fd >= 0 && rest.starts_with(|c: char| c.is_ascii_digit()) => {
                    Ok(Self::Descriptor(fd))
                }
                _ => Err(fail("this is not a descriptor number")),
            },
            _ => Err(fail("it does not begin with file:, host:, card:, eth: or fd:")),
        }
    }

    /// A stream to be read to its end, in a thread of the run. `name` is for messages. A run that ends early, by an error,
    /// leaves that thread behind if it is inside `read` and stays there.
    pub fn reader(name: impl Into<String>, from: impl Read + Send + 'static) -> Self {
        Self::Stream(Stream::reader(name.into(), Box::new(from)))
    }

    /// A stream to be written, in a thread of the run; flushed at the end. `name` is for messages. A run that ends early, by
    /// an error, leaves that thread behind if it is inside `write` and stays there.
    pub fn writer(name: impl Into<String>, to: impl Write + Send + 'static) -> Self {
        Self::Stream(Stream::writer(name.into(), Box::new(to)))
    }

    /// States which file or pipe a stream of [`Endpoint::reader`] or [`Endpoint::writer`] represents, so that a run that would
    /// read its own output is refused. No effect on other endpoints.
    pub fn standing_for(mut self, meta: &Metadata) -> Self {
        if let Self::Stream(stream) = &mut self {
            stream.stands_for(meta);
        }
        self
    }

    /// A pipe, socket or other descriptor to be read or written; closed after the run. `name` is for messages.
    pub fn stream(name: impl Into<String>, fd: impl Into<OwnedFd>) -> Self {
        Self::Stream(Stream::descriptor(name.into(), fd.into()))
    }

    /// Bytes that a run would read, if known in advance; `None` for a stream.
    pub fn known_len(&self) -> Result<Option<u64>> {
        match self {
            Self::Bytes { bytes, .. } => Ok(Some(bytes.len())),
            Self::Card { len, .. } => Ok(Some(*len)),
            Self::File(path) => match std::fs::metadata(path) {
                Ok(meta) if meta.is_file() => Ok(In::open(self)?.known_len()),
                _ => Ok(None),
            },
            Self::Standard | Self::Descriptor(_) | Self::Stream(_) | Self::Ethernet => Ok(None),
        }
    }

    /// Whether a run would write it in order, without positions: a stream.
    pub fn is_written_in_order(&self) -> bool {
        match self {
            Self::Standard | Self::Descriptor(_) | Self::Stream(_) | Self::Ethernet => true,
            Self::File(path) => std::fs::metadata(path).is_ok_and(|meta| {
                let kind = meta.file_type();
                kind.is_fifo() || kind.is_char_device() || (kind.is_file() && of_kernel(path))
            }),
            Self::Bytes { .. } | Self::Card { .. } => false,
        }
    }

    /// Bytes of this program under a name.
    pub fn bytes(name: impl Into<String>, bytes: SharedBytes) -> Self {
        Self::Bytes { name: name.into(), bytes }
    }
}

impl FromStr for Endpoint {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

fn number(text: &str) -> Option<u64> {
    let (digits, shift) = match text.char_indices().next_back()? {
        (at, 'k' | 'K') => (&text[..at], 10),
        (at, 'm' | 'M') => (&text[..at], 20),
        (at, 'g' | 'G') => (&text[..at], 30),
        _ => (text, 0),
    };
    // `from_str_radix` would accept a sign.
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let value = match digits.strip_prefix("0x") {
        Some(hex) if !hex.starts_with('+') => u64::from_str_radix(hex, 16).ok()?,
        Some(_) => return None,
        None => digits.parse().ok()?,
    };
    value.checked_mul(1 << shift)
}

/// An endpoint opened for reading.
#[derive(Debug)]
pub(crate) enum In {
    File { file: File, path: PathBuf, len: u64 },
    Bytes { bytes: SharedBytes, name: String, len: u64 },
    Card { addr: u64, len: u64 },
    Stream(Pipe),
}

impl In {
    /// Opens a source.
    pub fn open(endpoint: &Endpoint) -> Result<Self> {
        Ok(match endpoint {
            Endpoint::File(path) if path == Path::new("/dev/stdin") => Self::open(&Endpoint::Standard)?,
            Endpoint::File(path) => Self::open_file(path)?,
            Endpoint::Standard => Self::Stream(Pipe::input("standard input", 0)?),
            Endpoint::Descriptor(fd) => Self::Stream(Pipe::input(&format!("fd:{fd}"), *fd)?),
            Endpoint::Stream(stream) => Self::Stream(stream.take()?),
            Endpoint::Bytes { bytes, name } => {
                Self::Bytes { bytes: bytes.clone(), name: name.clone(), len: bytes.len() }
            }
            Endpoint::Card { addr, len } => Self::Card { addr: *addr, len: *len },
            Endpoint::Ethernet => return Err(only_for_streams()),
        })
    }

    fn open_file(path: &Path) -> Result<Self> {
        // Without O_NONBLOCK, opening a FIFO would wait for its other end.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY)
            .open(path)
            .map_err(|e| open_error(path, "open it", e))?;
        let meta = file.metadata().map_err(|e| Error::file(path, "examine it", e))?;
        let kind = meta.file_type();
        // A file with a stated length of 0 may be one of /proc, and one that lacks its last byte one of /sys: their end is
        // only found by reading.
        let sized = kind.is_file()
            && meta.len() > 0
            && file.read_at(&mut [0], meta.len() - 1).is_ok_and(|got| got > 0);
        match kind_of(&meta) {
            _ if sized => Ok(Self::File { file, path: path.into(), len: meta.len() }),
            Some(what) if !kind.is_fifo() && !kind.is_char_device() => {
                Err(Error::NotAFile { path: path.into(), what })
            }
            _ => Ok(Self::Stream(Pipe::file(path, file)?)),
        }
    }

    /// Length in bytes; `None` if only known at the end.
    pub fn known_len(&self) -> Option<u64> {
        match self {
            Self::File { len, .. } | Self::Bytes { len, .. } | Self::Card { len, .. } => Some(*len),
            Self::Stream(_) => None,
        }
    }

    /// Name for messages.
    pub fn name(&self) -> String {
        match self {
            Self::File { path, .. } => path.display().to_string(),
            Self::Bytes { name, .. } => name.clone(),
            Self::Card { addr, len } => range_name(*addr, *len),
            Self::Stream(pipe) => pipe.name.display().to_string(),
        }
    }

    /// Reads `bytes` bytes at `position` into a buffer. Card memory needs no reading, and streams have their own threads.
    pub fn read(&self, to: &DmaBuffer, offset: u64, bytes: u64, position: u64) -> Result<()> {
        let (offset, bytes) = (offset as usize, bytes as usize);
        let (got, path, expected, end) = match self {
            Self::File { file, path, len } => {
                let got = to.read_file(offset, bytes, file, position);
                let got = got.map_err(|e| Error::file(path, "read it", e))?;
                (got, path.clone(), *len, file.metadata().map(|meta| meta.len()).ok())
            }
            Self::Bytes { bytes: from, name, len } => {
                (from.read(to, offset, bytes, position), name.into(), *len, Some(from.len()))
            }
            Self::Card { .. } | Self::Stream(_) => return Ok(()),
        };
        if got == bytes {
            return Ok(());
        }
        Err(Error::FileShrank { path, end: end.unwrap_or(position + got as u64), expected })
    }

    /// Fails if the file has been removed since it was opened.
    pub fn check_linked(&self) -> Result<()> {
        let Self::File { file, path, .. } = self else { return Ok(()) };
        match file.metadata().map_err(|e| Error::file(path, "examine it", e))?.nlink() {
            0 => Err(Error::InputRemoved { path: path.clone() }),
            _ => Ok(()),
        }
    }
}

/// Frames are for one app's streams, or several in sequence.
fn only_for_streams() -> Error {
    Error::Invalid("eth: is for the streams of a run with one message at a time".into())
}

fn range_name(addr: u64, len: u64) -> String {
    format!("card:{addr:#x}+{len}")
}

/// An endpoint opened for writing.
#[derive(Debug)]
pub(crate) enum Out {
    /// `end`: one past the last byte that was written.
    File {
        file: File,
        path: PathBuf,
        end: AtomicU64,
    },
    Bytes {
        bytes: SharedBytes,
        name: String,
    },
    Card {
        addr: u64,
        len: u64,
    },
    Stream(Pipe),
}

impl Out {
    /// Opens a sink. An existing file keeps its content until [`Out::begin`].
    pub fn open(endpoint: &Endpoint) -> Result<Self> {
        Ok(match endpoint {
            Endpoint::File(path) if path == Path::new("/dev/stdout") => Self::open(&Endpoint::Standard)?,
            Endpoint::File(path) => Self::open_file(path)?,
            Endpoint::Standard => Self::Stream(Pipe::output("standard output", 1)?),
            Endpoint::Descriptor(fd) => Self::Stream(Pipe::output(&format!("fd:{fd}"), *fd)?),
            Endpoint::Stream(stream) => Self::Stream(stream.take()?),
            Endpoint::Bytes { bytes, name } => Self::Bytes { bytes: bytes.clone(), name: name.clone() },
            Endpoint::Card { addr, len } => Self::Card { addr: *addr, len: *len },
            Endpoint::Ethernet => return Err(only_for_streams()),
        })
    }

    fn open_file(path: &Path) -> Result<Self> {
        let kind = std::fs::metadata(path).map(|meta| meta.file_type()).ok();
        if kind.is_some_and(|kind| kind.is_fifo()) {
            return Ok(Self::Stream(Pipe::fifo(path)?));
        }
        // What is no file with positions is only written: many devices and files of /proc cannot be read.
        let in_order = Endpoint::File(path.into()).is_written_in_order();
        let file = OpenOptions::new()
            .read(!in_order)
            .write(true)
            .create(!in_order)
            .truncate(false)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY)
            .open(path)
            .map_err(|e| open_error(path, "open it for writing", e))?;
        let meta = file.metadata().map_err(|e| Error::file(path, "examine it", e))?;
        match kind_of(&meta) {
            None if !in_order => Ok(Self::File { file, path: path.into(), end: AtomicU64::new(0) }),
            Some(what) if !meta.file_type().is_char_device() => {
                Err(Error::NotAFile { path: path.into(), what })
            }
            _ => Ok(Self::Stream(Pipe::file(path, file)?)),
        }
    }

    /// Empties the sink.
    pub fn begin(&self) -> Result<()> {
        match self {
            Self::File { file, path, .. } => file.set_len(0).map_err(|e| Error::file(path, "truncate it", e)),
            Self::Bytes { bytes, .. } => {
                bytes.clear();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Writes `bytes` bytes of a buffer to `position`. Data for card memory is there already, and streams have their own threads.
    pub fn write(&self, from: &DmaBuffer, offset: u64, bytes: u64, position: u64) -> Result<()> {
        let (offset, bytes) = (offset as usize, bytes as usize);
        let fail = |path: PathBuf, written, source| Err(Error::Write { path, written, source });
        match self {
            Self::File { file, path, end } => {
                // Writing on behind the end of a file that was truncated would leave a hole, and the right size.
                let before = end.load(Ordering::Acquire);
                check_length(file, path, before, |length| length >= before)?;
                match from.write_file(offset, bytes, file, position) {
                    Ok(()) => {
                        end.fetch_max(position + bytes as u64, Ordering::Release);
                        Ok(())
                    }
                    Err((part, source)) => fail(path.clone(), position + part as u64, source),
                }
            }
            Self::Bytes { bytes: to, name } => match to.write(from, offset, bytes, position) {
                Ok(()) => Ok(()),
                Err(source) => fail(name.into(), position, source),
            },
            Self::Card { .. } | Self::Stream(_) => Ok(()),
        }
    }

    /// Checks that the file has the `written` bytes, and no others.
    pub fn finish(&self, written: u64, durable: bool) -> Result<()> {
        let Self::File { file, path, .. } = self else { return Ok(()) };
        check_length(file, path, written, |length| length == written)?;
        if durable {
            file.sync_data().map_err(|e| Error::file(path, "write it to stable storage", e))?;
        }
        Ok(())
    }
}

/// Fails if another program has removed an output, or changed its length to one that is not `right`.
fn check_length(file: &File, path: &Path, written: u64, right: impl Fn(u64) -> bool) -> Result<()> {
    let meta = file.metadata().map_err(|e| Error::file(path, "examine it", e))?;
    match meta.len() {
        _ if meta.nlink() == 0 => Err(Error::FileRemoved { path: path.into() }),
        length if !right(length) => Err(Error::OutputChanged { path: path.into(), length, written }),
        _ => Ok(()),
    }
}

/// Whether the kernel itself takes what is written to a file, as those of `/proc` and `/sys`.
fn of_kernel(path: &Path) -> bool {
    const TYPES: [FsType; 7] = [
        PROC_SUPER_MAGIC,
        SYSFS_MAGIC,
        DEBUGFS_MAGIC,
        TRACEFS_MAGIC,
        CGROUP_SUPER_MAGIC,
        CGROUP2_SUPER_MAGIC,
        SECURITYFS_MAGIC,
    ];
    statfs(path).is_ok_and(|on| TYPES.contains(&on.filesystem_type()))
}

/// Fails if a sink is also a source or another sink, or a part of one.
pub(crate) fn check_distinct(sources: &[&In], sinks: &[&Out]) -> Result<()> {
    let mut files = Vec::new();
    let mut buffers: Vec<(&SharedBytes, &str)> = Vec::new();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for source in sources {
        match source {
            In::File { file, path, .. } => files.push(identity(file, path)?),
            In::Stream(pipe) => files.extend(pipe.identity),
            In::Bytes { bytes, name, .. } => buffers.push((bytes, name)),
            In::Card { addr, len } => ranges.push((*addr, *len)),
        }
    }
    let mut take_file = |this: (u64, u64), path: &Path| {
        let taken = files.contains(&this);
        files.push(this);
        if taken { Err(Error::SameFile { path: path.into() }) } else { Ok(()) }
    };
    for sink in sinks {
        match sink {
            Out::File { file, path, .. } => take_file(identity(file, path)?, path)?,
            Out::Stream(pipe) => pipe.identity.map_or(Ok(()), |this| take_file(this, &pipe.name))?,
            Out::Bytes { bytes, name } => {
                if let Some((_, other)) = buffers.iter().find(|(other, _)| other.same(bytes)) {
                    let why =
                        format!("host buffers {other} and {name} are the same; use another for the output");
                    return Err(Error::Invalid(why));
                }
                buffers.push((bytes, name));
            }
            Out::Card { addr, len } => {
                // An empty range has no bytes to share.
                let overlaps = |&&(a, l): &&(u64, u64)| {
                    l > 0 && *len > 0 && a < addr.saturating_add(*len) && *addr < a.saturating_add(l)
                };
                if let Some((a, l)) = ranges.iter().find(overlaps) {
                    let (range, other) = (range_name(*addr, *len), range_name(*a, *l));
                    return Err(Error::SameRange { range, other });
                }
                ranges.push((*addr, *len));
            }
        }
    }
    Ok(())
}

fn identity(file: &File, path: &Path) -> Result<(u64, u64)> {
    let meta = file.metadata().map_err(|e| Error::file(path, "examine it", e))?;
    Ok((meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn endpoints_are_parsed() {
        assert!(matches!(Endpoint::parse("file:a:b").unwrap(), Endpoint::File(p) if p == Path::new("a:b")));
        assert!(
            matches!(Endpoint::parse("host:3K").unwrap(), Endpoint::Bytes { name, bytes } if bytes.len() == 3072 && name == "host:3K")
        );
        let card = Endpoint::parse("card:0x400000000+2M").unwrap();
        assert!(matches!(card, Endpoint::Card { addr: 0x4_0000_0000, len: 0x20_0000 }));
        assert!(matches!(Endpoint::parse("-").unwrap(), Endpoint::Standard));
        assert!(matches!(Endpoint::parse("fd:12").unwrap(), Endpoint::Descriptor(12)));
        assert!(matches!(Endpoint::parse("eth:").unwrap(), Endpoint::Ethernet));
    }

    #[test]
    fn a_malformed_endpoint_is_named_in_the_error() {
        let bad = [
            "",
            "x",
            "file:",
            "host:",
            "host:12x",
            "host:x",
            "host:-5",
            "card:1",
            "card:x+1",
            "card:1+",
            "card:+5+3",
            "disk:1",
            "card:0+99999999999999999999",
            "card:99999999999G+1",
            "host:99999999999G",
            "--",
            "fd:",
            "fd:-1",
            "fd:+1",
            "fd:99999999999",
            "eth",
            "eth:0",
        ];
        for text in bad {
            let error = Endpoint::parse(text).unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
            assert!(error.contains("host:SIZE"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_string_is_too_odd_to_parse(text in "\\PC*") {
            let _ = number(&text);
            let _ = Endpoint::parse(&format!("card:{text}"));
        }
    }
}
