// SPDX-License-Identifier: Apache-2.0
//! Encoding of vfio-user messages: a 16-byte header, then fields without gaps, all little endian.

use crate::PciError;
use nix::errno::Errno;

pub(super) const HEADER_SIZE: usize = 16;
pub(super) const MAJOR: u16 = 0;
pub(super) const MINOR: u16 = 1;

/// Most bytes of data in one region access, sent or accepted. A whole configuration space fits.
pub(super) const MAX_DATA: u32 = 4096;
/// Largest accepted message, header included. Covers the largest batch of writes that QEMU sends.
pub(super) const MAX_MESSAGE: usize = 16 * 1024;
/// Most accepted descriptors in a message; more end the connection. QEMU refuses servers that offer more.
pub(super) const MAX_FDS: usize = 16;
/// Most DMA maps of a client. Their resources, besides a few bytes of memory, are in the budget.
pub(super) const MAX_MAPS: usize = 32768;
/// Most files behind those maps.
pub(super) const MAX_FILES: usize = 512;

pub(super) mod command {
    pub const VERSION: u16 = 1;
    pub const DMA_MAP: u16 = 2;
    pub const DMA_UNMAP: u16 = 3;
    pub const GET_INFO: u16 = 4;
    pub const GET_REGION_INFO: u16 = 5;
    pub const GET_IRQ_INFO: u16 = 7;
    pub const SET_IRQS: u16 = 8;
    pub const REGION_READ: u16 = 9;
    pub const REGION_WRITE: u16 = 10;
    pub const RESET: u16 = 13;
    pub const REGION_WRITE_MULTI: u16 = 15;
}

/// Constants of header flags, regions and interrupts, as in `<linux/vfio.h>`.
pub(super) mod flag {
    pub const TYPE: u32 = 0xf;
    pub const REPLY: u32 = 1;
    pub const NO_REPLY: u32 = 1 << 4;
    pub const ERROR: u32 = 1 << 5;

    pub const DMA_READ: u32 = 1;
    pub const DMA_WRITE: u32 = 2;
    pub const UNMAP_ALL: u32 = 1 << 1;

    pub const DEVICE_RESET: u32 = 1;
    pub const DEVICE_PCI: u32 = 2;

    pub const REGION_READ: u32 = 1;
    pub const REGION_WRITE: u32 = 2;

    pub const IRQ_EVENTFD: u32 = 1;

    pub const SET_NONE: u32 = 1;
    pub const SET_BOOL: u32 = 1 << 1;
    pub const SET_EVENTFD: u32 = 1 << 2;
    pub const SET_TRIGGER: u32 = 1 << 5;
}

pub(super) const REGION_BARS: u32 = 6;
pub(super) const REGION_CONFIG: u32 = 7;
pub(super) const REGIONS: u32 = 9;
pub(super) const IRQ_MSIX: u32 = 2;
pub(super) const IRQS: u32 = 5;

/// First 16 bytes of every message. `size` is implied by the body on sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub id: u16,
    pub command: u16,
    pub size: u32,
    pub flags: u32,
    pub error: u32,
}

impl Header {
    pub fn request(id: u16, command: u16, flags: u32) -> Self {
        Self { id, command, size: 0, flags, error: 0 }
    }

    pub fn reply(&self) -> Self {
        Self { flags: flag::REPLY, error: 0, ..*self }
    }

    pub fn error_reply(&self, errno: Errno) -> Self {
        Self { flags: flag::REPLY | flag::ERROR, error: errno as u32, ..*self }
    }

    pub fn wants_reply(&self) -> bool {
        self.flags & flag::NO_REPLY == 0
    }

    pub fn is_reply(&self) -> bool {
        self.flags & flag::TYPE == flag::REPLY
    }

    pub fn decode(bytes: &[u8; HEADER_SIZE]) -> Self {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self {
            id: word(0) as u16,
            command: (word(0) >> 16) as u16,
            size: word(4),
            flags: word(8),
            error: word(12),
        }
    }

    /// The whole message: this header with the size filled in, then `body`.
    pub fn encode(&self, body: &[u8]) -> Vec<u8> {
        let size = (HEADER_SIZE + body.len()) as u32;
        let mut message =
            Body::default().u16(self.id).u16(self.command).u32(size).u32(self.flags).u32(self.error).0;
        message.extend_from_slice(body);
        message
    }
}

/// Fields of a body being built.
#[derive(Debug, Default)]
pub(super) struct Body(pub Vec<u8>);

impl Body {
    pub fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }
}

/// Fields of a received body being taken off its front. `EINVAL` if it is too short.
#[derive(Debug)]
pub(super) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn u16(&mut self) -> Result<u16, Errno> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Errno> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Errno> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Errno> {
        let (head, tail) = self.0.split_at_checked(len).ok_or(Errno::EINVAL)?;
        self.0 = tail;
        Ok(head)
    }

    /// Exactly `len` bytes must be left, and are returned.
    pub fn rest(&mut self, len: usize) -> Result<&'a [u8], Errno> {
        if self.0.len() == len { self.bytes(len) } else { Err(Errno::EINVAL) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Errno> {
        let (head, tail) = self.0.split_first_chunk().ok_or(Errno::EINVAL)?;
        self.0 = tail;
        Ok(*head)
    }
}

/// The errno that reports an error to the other side.
pub(super) fn errno_of(error: &PciError) -> Errno {
    match error {
        PciError::OutOfRange { .. } => Errno::EINVAL,
        PciError::Gone(_) => Errno::ENODEV,
        PciError::Protocol(_) => Errno::EPROTO,
        PciError::Timeout(_) => Errno::ETIMEDOUT,
        PciError::Busy(_) => Errno::EBUSY,
        PciError::Forked | PciError::Unusable(_) => Errno::EACCES,
        PciError::Os { source, .. } => source.raw_os_error().map_or(Errno::EIO, Errno::from_raw),
    }
}

/// The error for an errno in a reply to `what`; `why` is the server's text, if it sends one.
pub(super) fn error_of(errno: u32, what: String, why: &str) -> PciError {
    let errno = Errno::from_raw(errno as i32);
    let told = if why.is_empty() { what.clone() } else { format!("{what}: {why}") };
    match errno {
        Errno::EINVAL => PciError::OutOfRange { what: told },
        Errno::ENODEV => PciError::Gone(told),
        Errno::EPROTO => PciError::Protocol(told),
        Errno::EBUSY if why.is_empty() => PciError::Busy(format!("{what}: in use by another program")),
        Errno::EBUSY => PciError::Busy(why.to_owned()),
        // "Error" without a number is allowed.
        Errno::UnknownErrno => PciError::Os { what: told, source: Errno::EIO.into() },
        errno => PciError::Os { what: told, source: errno.into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_a_round_trip() {
        let header = Header { id: 0x1234, command: 9, size: 19, flags: 0x21, error: 22 };
        let bytes = header.encode(&[1, 2, 3]);
        assert_eq!(bytes.len(), 19);
        assert_eq!(Header::decode(bytes[..16].try_into().unwrap()), header);
        assert_eq!(bytes[..4], [0x34, 0x12, 9, 0]);
    }

    #[test]
    fn short_bodies_are_errors() {
        let mut fields = Fields(&[1, 0, 0, 0, 2]);
        assert_eq!(fields.u32(), Ok(1));
        assert_eq!(fields.u16(), Err(Errno::EINVAL));
        assert_eq!(fields.rest(2), Err(Errno::EINVAL));
        assert_eq!(fields.rest(1), Ok(&[2][..]));
    }
}
