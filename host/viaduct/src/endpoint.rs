// SPDX-License-Identifier: Apache-2.0
//! What a port is routed to: a file, bytes of this program, or a range of card memory.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::backing::{SharedBytes, kind_of, open_regular};
use crate::dma::DmaBuffer;
use crate::error::{Error, Result};

/// One end of a route.
#[derive(Debug, Clone)]
pub enum Endpoint {
    /// `file:PATH`. As a source: a regular file. As a sink: created, or emptied if it exists.
    File(PathBuf),
    /// `host:NAME` or `host:SIZE`: bytes of this program.
    Bytes {
        /// Name, for messages and for finding the bytes after the run.
        name: String,
        /// The bytes. A sink is emptied first.
        bytes: SharedBytes,
    },
    /// `card:ADDRESS+LENGTH`: a range of card memory, which then is the user's for as long as the card is open.
    Card {
        /// Card address: channel number in bits 34 and up.
        addr: u64,
        /// Bytes.
        len: u64,
    },
}

impl Endpoint {
    /// Parses an endpoint string. Numbers are decimal or `0x...`, with K, M or G for KiB, MiB or GiB. `host:` followed by a
    /// number gives that many zero bytes, followed by a name none.
    pub fn parse(text: &str) -> Result<Self> {
        let fail = |why: &str| Error::BadEndpoint { text: text.into(), why: why.into() };
        let Some((kind, rest)) = text.split_once(':') else {
            return Err(fail("it does not begin with file:, host: or card:"));
        };
        if rest.is_empty() {
            return Err(fail("there is nothing after the colon"));
        }
        match kind {
            "file" => Ok(Self::File(rest.into())),
            "host" => {
                let size = match number(rest) {
                    Some(size) => usize::try_from(size).map_err(|_| fail("the size is too large"))?,
                    None if rest.starts_with(|c: char| c.is_ascii_digit()) => {
                        return Err(fail("the size is not a number"));
                    }
                    None => 0,
                };
                let mut zeros = Vec::new();
                zeros.try_reserve_exact(size).map_err(|_| fail("there is not that much memory"))?;
                zeros.resize(size, 0);
                Ok(Self::Bytes { name: rest.into(), bytes: SharedBytes::new(zeros) })
            }
            "card" => {
                let (addr, len) = rest.split_once('+').ok_or_else(|| fail("the length is missing"))?;
                let addr = number(addr).ok_or_else(|| fail("the address is not a number"))?;
                let len = number(len).ok_or_else(|| fail("the length is not a number"))?;
                Ok(Self::Card { addr, len })
            }
            _ => Err(fail("it does not begin with file:, host: or card:")),
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
    // `from_str_radix` would take a sign.
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
}

impl In {
    pub fn open(endpoint: &Endpoint) -> Result<Self> {
        Ok(match endpoint {
            Endpoint::File(path) => {
                let (file, len) = open_regular(path, false)?;
                Self::File { file, path: path.clone(), len }
            }
            Endpoint::Bytes { bytes, name } => {
                Self::Bytes { bytes: bytes.clone(), name: name.clone(), len: bytes.len() }
            }
            Endpoint::Card { addr, len } => Self::Card { addr: *addr, len: *len },
        })
    }

    pub fn len(&self) -> u64 {
        match self {
            Self::File { len, .. } | Self::Bytes { len, .. } | Self::Card { len, .. } => *len,
        }
    }

    /// Name for messages.
    pub fn name(&self) -> String {
        match self {
            Self::File { path, .. } => path.display().to_string(),
            Self::Bytes { name, .. } => name.clone(),
            Self::Card { addr, len } => format!("card:{addr:#x}+{len}"),
        }
    }

    /// Reads `bytes` bytes at `position` into a buffer. What is in card memory needs no reading.
    pub fn read(&self, to: &DmaBuffer, offset: u64, bytes: u64, position: u64) -> Result<()> {
        let (offset, bytes) = (offset as usize, bytes as usize);
        let (got, path, end) = match self {
            Self::File { file, path, .. } => {
                let got = to.read_file(offset, bytes, file, position);
                let got = got.map_err(|e| Error::file(path, "read it", e))?;
                (got, path.clone(), file.metadata().map(|meta| meta.len()).ok())
            }
            Self::Bytes { bytes: from, name, .. } => {
                (from.read(to, offset, bytes, position), name.into(), Some(from.len()))
            }
            Self::Card { .. } => return Ok(()),
        };
        if got == bytes {
            return Ok(());
        }
        Err(Error::FileShrank { path, end: end.unwrap_or(position + got as u64), expected: self.len() })
    }

    /// Fails if the file has been removed since it was opened.
    pub fn check_linked(&self) -> Result<()> {
        let Self::File { file, path, .. } = self else { return Ok(()) };
        match file.metadata().map_err(|e| Error::file(path, "look at it", e))?.nlink() {
            0 => Err(Error::InputRemoved { path: path.clone() }),
            _ => Ok(()),
        }
    }
}

/// An endpoint opened for writing.
#[derive(Debug)]
pub(crate) enum Out {
    File { file: File, path: PathBuf, regular: bool },
    Bytes { bytes: SharedBytes, name: String },
    Card { addr: u64, len: u64 },
}

impl Out {
    /// Opens a sink. An existing file keeps its content until [`Out::begin`].
    pub fn open(endpoint: &Endpoint) -> Result<Self> {
        Ok(match endpoint {
            Endpoint::File(path) => {
                let file = OpenOptions::new()
                    .read(true)
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
                    .open(path)
                    .map_err(|e| Error::file(path, "open it for writing", e))?;
                let meta = file.metadata().map_err(|e| Error::file(path, "look at it", e))?;
                // Devices such as /dev/null take what they are given.
                let regular = !meta.file_type().is_char_device();
                if let (true, Some(what)) = (regular, kind_of(&meta)) {
                    return Err(Error::NotAFile { path: path.clone(), what });
                }
                Self::File { file, path: path.clone(), regular }
            }
            Endpoint::Bytes { bytes, name } => Self::Bytes { bytes: bytes.clone(), name: name.clone() },
            Endpoint::Card { addr, len } => Self::Card { addr: *addr, len: *len },
        })
    }

    /// Empties the sink.
    pub fn begin(&self) -> Result<()> {
        match self {
            Self::File { file, path, regular: true } => {
                file.set_len(0).map_err(|e| Error::file(path, "empty it", e))
            }
            Self::Bytes { bytes, .. } => {
                bytes.clear();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Writes `bytes` bytes of a buffer to `position`. What goes to card memory is there already.
    pub fn write(&self, from: &DmaBuffer, offset: u64, bytes: u64, position: u64) -> Result<()> {
        let (offset, bytes) = (offset as usize, bytes as usize);
        let fail = |path: PathBuf, written, source| Err(Error::Write { path, written, source });
        match self {
            Self::File { file, path, .. } => match from.write_file(offset, bytes, file, position) {
                Ok(()) => Ok(()),
                Err((part, source)) => fail(path.clone(), position + part as u64, source),
            },
            Self::Bytes { bytes: to, name } => match to.write(from, offset, bytes, position) {
                Ok(()) => Ok(()),
                Err(source) => fail(name.into(), position, source),
            },
            Self::Card { .. } => Ok(()),
        }
    }

    /// Checks that the `written` bytes are still there.
    pub fn finish(&self, written: u64, durable: bool) -> Result<()> {
        let Self::File { file, path, regular: true } = self else { return Ok(()) };
        let meta = file.metadata().map_err(|e| Error::file(path, "look at it", e))?;
        if meta.nlink() == 0 {
            return Err(Error::FileRemoved { path: path.clone() });
        }
        if meta.len() < written {
            let why = "somebody cut the file during the run".into();
            return Err(Error::Lost { path: path.clone(), start: meta.len(), end: written, why });
        }
        if durable {
            file.sync_data().map_err(|e| Error::file(path, "bring it to the medium", e))?;
        }
        Ok(())
    }
}

/// Fails if a sink is also a source or another sink.
pub(crate) fn check_distinct(sources: &[&In], sinks: &[&Out]) -> Result<()> {
    let mut files = Vec::new();
    let mut buffers: Vec<(&SharedBytes, &str)> = Vec::new();
    for source in sources {
        match source {
            In::File { file, path, .. } => files.push(identity(file, path)?),
            In::Bytes { bytes, name, .. } => buffers.push((bytes, name)),
            In::Card { .. } => {}
        }
    }
    for sink in sinks {
        match sink {
            Out::File { file, path, regular: true } => {
                let this = identity(file, path)?;
                if files.contains(&this) {
                    return Err(Error::SameFile { path: path.clone() });
                }
                files.push(this);
            }
            Out::Bytes { bytes, name } => {
                if let Some((_, other)) = buffers.iter().find(|(other, _)| other.same(bytes)) {
                    let why =
                        format!("host buffers {other} and {name} are the same; use another for the output");
                    return Err(Error::Invalid(why));
                }
                buffers.push((bytes, name));
            }
            _ => {}
        }
    }
    Ok(())
}

fn identity(file: &File, path: &Path) -> Result<(u64, u64)> {
    let meta = file.metadata().map_err(|e| Error::file(path, "look at it", e))?;
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
            matches!(Endpoint::parse("host:3K").unwrap(), Endpoint::Bytes { bytes, .. } if bytes.len() == 3072)
        );
        assert!(
            matches!(Endpoint::parse("host:x").unwrap(), Endpoint::Bytes { bytes, .. } if bytes.is_empty())
        );
        let card = Endpoint::parse("card:0x400000000+2M").unwrap();
        assert!(matches!(card, Endpoint::Card { addr: 0x4_0000_0000, len: 0x20_0000 }));
    }

    #[test]
    fn a_malformed_endpoint_is_named_in_the_error() {
        let bad = [
            "",
            "x",
            "file:",
            "host:",
            "host:12x",
            "card:1",
            "card:x+1",
            "card:1+",
            "card:+5+3",
            "disk:1",
            "card:0+99999999999999999999",
            "card:99999999999G+1",
            "host:99999999999G",
        ];
        for text in bad {
            let error = Endpoint::parse(text).unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
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
