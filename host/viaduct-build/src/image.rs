// SPDX-License-Identifier: Apache-2.0
//! The container that loads an app into a slot.
//!
//! 32-bit little-endian words, as written to the configuration port: magic `VIA1`, version, geometry, words that follow (zero), the
//! app's name (32 bytes, padded with zeros), and the SHA-256 of the app's shared object. A card with a real
//! configuration port would carry a partial bitstream here; the simulated card looks the object up by name and refuses
//! one with another hash.

use std::path::Path;

use sha2::{Digest, Sha256};

use crate::names::is_free_name;
use crate::{Error, Result};

/// Bytes of a container.
pub const CONTAINER_LEN: usize = 80;
const MAGIC: &[u8; 4] = b"VIA1";
const VERSION: u32 = 1;
const NAME_AT: usize = 16;
const DIGEST_AT: usize = 48;

/// The part of a card's geometry that concerns apps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Width of every data path in bits.
    pub data_width: u32,
    /// Input streams of a slot, and output streams of a slot: 1 to 14.
    pub streams: u32,
}

impl Default for Geometry {
    fn default() -> Self {
        Geometry { data_width: 512, streams: 1 }
    }
}

impl Geometry {
    /// As in the card's register `GEOMETRY`, with slots and channels zero.
    pub fn word(&self) -> u32 {
        (self.data_width / 8).ilog2() << 24 | self.streams << 16
    }

    /// From the card's register `GEOMETRY`.
    pub fn from_word(word: u32) -> Option<Geometry> {
        let log2 = word >> 24;
        let streams = word >> 16 & 0xff;
        ((3..=6).contains(&log2) && (1..=14).contains(&streams))
            .then(|| Geometry { data_width: 8 << log2, streams })
    }
}

/// Contents of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// Name of the app.
    pub name: String,
    /// [`Geometry::word`] of compatible cards.
    pub geometry: u32,
    /// SHA-256 of the app's shared object.
    pub digest: [u8; 32],
}

impl Container {
    /// The container of an object.
    pub fn of(name: &str, geometry: &Geometry, object: &Path) -> Result<Container> {
        let mut file = std::fs::File::open(object).map_err(Error::io(object))?;
        let mut hash = Sha256::new();
        std::io::copy(&mut file, &mut hash).map_err(Error::io(object))?;
        Ok(Container { name: name.to_owned(), geometry: geometry.word(), digest: hash.finalize().into() })
    }

    /// The bytes of the container.
    pub fn encode(&self) -> [u8; CONTAINER_LEN] {
        let mut out = [0; CONTAINER_LEN];
        out[..4].copy_from_slice(MAGIC);
        out[4..8].copy_from_slice(&VERSION.to_le_bytes());
        out[8..12].copy_from_slice(&self.geometry.to_le_bytes());
        let name = &self.name.as_bytes()[..self.name.len().min(31)];
        out[NAME_AT..NAME_AT + name.len()].copy_from_slice(name);
        out[DIGEST_AT..].copy_from_slice(&self.digest);
        out
    }

    /// Reads a container from a file, which must be a regular one: reading from a pipe or a device might never end. Nothing is read of one
    /// that is too long.
    pub fn read(path: &Path) -> Result<(Vec<u8>, Container)> {
        let meta = std::fs::metadata(path).map_err(Error::io(path))?;
        if !meta.is_file() {
            return Err(Error::io(path)(std::io::Error::other("it is not a regular file")));
        }
        if meta.len() != CONTAINER_LEN as u64 {
            return Err(wrong(path, format!("{} bytes, an image has {CONTAINER_LEN}", meta.len())));
        }
        let bytes = std::fs::read(path).map_err(Error::io(path))?;
        let container = Self::decode(path, &bytes)?;
        Ok((bytes, container))
    }

    /// Decodes a container; `file` is only used in errors.
    pub fn decode(file: &Path, bytes: &[u8]) -> Result<Container> {
        let wrong = |problem| wrong(file, problem);
        let bytes: &[u8; CONTAINER_LEN] = bytes
            .try_into()
            .map_err(|_| wrong(format!("{} bytes, an image has {CONTAINER_LEN}", bytes.len())))?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if &bytes[..4] != MAGIC {
            return Err(wrong("not an app image".to_owned()));
        }
        if word(4) != VERSION || word(12) != 0 {
            return Err(wrong(format!("unknown image format {}", word(4))));
        }
        let name = &bytes[NAME_AT..DIGEST_AT];
        let end =
            name.iter().position(|b| *b == 0).ok_or_else(|| wrong("its name does not end".to_owned()))?;
        if name[end..].iter().any(|b| *b != 0) {
            return Err(wrong("its name is not padded with zeros".to_owned()));
        }
        let name = std::str::from_utf8(&name[..end]).map_err(|_| wrong("its name is not text".to_owned()))?;
        if !is_free_name(name) {
            return Err(wrong(format!("{name:?} is not a valid name of an app")));
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(&bytes[DIGEST_AT..]);
        Ok(Container { name: name.to_owned(), geometry: word(8), digest })
    }
}

fn wrong(file: &Path, problem: String) -> Error {
    Error::Image { file: file.to_owned(), problem, remedy: "build it again with `viaduct build`".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn layout_is_as_documented() {
        let c = Container { name: "aes".into(), geometry: Geometry::default().word(), digest: [7; 32] };
        let b = c.encode();
        assert_eq!(&b[..16], b"VIA1\x01\0\0\0\0\0\x01\x06\0\0\0\0");
        assert_eq!(&b[16..20], b"aes\0");
        assert_eq!(&b[48..], [7; 32]);
        assert_eq!(Container::decode(Path::new("x"), &b).unwrap(), c);
    }

    #[test]
    fn a_name_no_app_can_have_is_refused() {
        let good = Container { name: "aes".into(), geometry: 0, digest: [7; 32] }.encode();
        for (at, bytes, words) in [
            (NAME_AT, &b"../"[..], "\"../\" is not a valid name of an app"),
            (NAME_AT, b"a\x1b[", "is not a valid name of an app"),
            (NAME_AT, b"\0\0\0", "is not a valid name of an app"),
            (NAME_AT + 9, b"x", "its name is not padded with zeros"),
        ] {
            let mut image = good;
            image[at..at + bytes.len()].copy_from_slice(bytes);
            let error = Container::decode(Path::new("x"), &image).unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains('\x1b'), "{error:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..200), real in any::<bool>()) {
            if real { bytes.resize(CONTAINER_LEN, 0); bytes[..16].copy_from_slice(b"VIA1\x01\0\0\0\0\0\x01\x06\0\0\0\0"); }
            if let Ok(c) = Container::decode(Path::new("x"), &bytes) {
                prop_assert_eq!(&c.encode()[..], &bytes[..]);
            }
        }
        #[test]
        fn geometry_round_trips(log2 in 3u32..=6, streams in 1u32..=14) {
            let g = Geometry { data_width: 8 << log2, streams };
            prop_assert_eq!(Geometry::from_word(g.word()), Some(g));
        }
    }
}
