// SPDX-License-Identifier: Apache-2.0
//! Entries of the three rings: 32 bytes, four little-endian 64-bit words. The layout is that of `via_pkg.sv`.

use std::fmt;

/// Bytes in an entry of any ring.
pub const ENTRY_BYTES: usize = 32;
/// Bytes in a page.
pub const PAGE: u64 = 4096;
/// Bytes in a large page.
pub const HUGE: u64 = 2 << 20;
/// Virtual addresses of a slot are below this.
pub const VA_END: u64 = 1 << 48;

/// Bytes of an entry of the page table in card memory.
pub const TABLE_ENTRY: u64 = 8;
/// Base-2 logarithms of the number of its entries.
pub const TABLE_LOG2: std::ops::Range<u32> = 17..27;

/// DMA: start after every earlier OpMap and OpUnmap of the slot.
pub const FLAG_FENCE: u8 = 1 << 0;
/// Move in: raise `last` on the final beat.
pub const FLAG_EOP: u8 = 1 << 1;
/// Map, unmap, scan: a 2 MiB page.
pub const FLAG_HUGE: u8 = 1 << 2;
/// Map, unmap, scan: the page's entry in the page table in card memory, too.
pub const FLAG_TABLE: u8 = 1 << 3;

/// Move out: ended with `last`.
pub const CPL_LAST: u8 = 1 << 0;
/// Unmap, scan: the page was accessed.
pub const CPL_ACCESSED: u8 = 1 << 1;
/// Unmap, scan: the page was written.
pub const CPL_DIRTY: u8 = 1 << 2;
/// Map: an older translation was evicted, its virtual address is in `info`.
pub const CPL_VICTIM: u8 = 1 << 3;
/// Map: the evicted page was accessed.
pub const CPL_VICTIM_ACCESSED: u8 = 1 << 4;
/// Map: the evicted page was written.
pub const CPL_VICTIM_DIRTY: u8 = 1 << 5;
/// Map: the evicted page is a 2 MiB page.
pub const CPL_VICTIM_HUGE: u8 = 1 << 6;
/// Unmap, scan, with `FLAG_TABLE`: the entry was damaged, so the page may have been written.
pub const CPL_DAMAGED: u8 = 1 << 7;

/// Operation of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// No operation.
    Nop = 0x00,
    /// Host memory to card memory.
    H2c = 0x02,
    /// Card memory to host memory.
    C2h = 0x03,
    /// Zeroes card memory.
    Fill = 0x04,
    /// Enters a translation.
    Map = 0x10,
    /// Removes a translation.
    Unmap = 0x11,
    /// Completes a faulting access with an error.
    Deny = 0x12,
    /// Reports and clears the accessed bit of a page.
    Scan = 0x13,
    /// Virtual range to input stream.
    MoveIn = 0x20,
    /// Output stream to virtual range.
    MoveOut = 0x21,
}

/// Permissions of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prot {
    /// The app may read.
    pub read: bool,
    /// The app may write.
    pub write: bool,
}

impl Prot {
    /// Read only.
    pub const READ: Self = Self { read: true, write: false };
    /// Write only.
    pub const WRITE: Self = Self { read: false, write: true };
    /// No access.
    pub const NONE: Self = Self { read: false, write: false };
    /// Read and write.
    pub const READ_WRITE: Self = Self { read: true, write: true };
}

/// Location of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A card address.
    Card(u64),
    /// A bus address of host memory.
    Host(u64),
}

impl Place {
    /// The location `bytes` further on.
    pub fn offset(self, bytes: u64) -> Self {
        match self {
            Self::Card(addr) => Self::Card(addr + bytes),
            Self::Host(addr) => Self::Host(addr + bytes),
        }
    }

    /// Page-table entry for a page at this location.
    pub fn pte(self, prot: Prot) -> u64 {
        let (addr, host) = match self {
            Self::Card(addr) => (addr, 0),
            Self::Host(addr) => (addr, 1 << 3),
        };
        addr | host | u64::from(prot.write) << 2 | u64::from(prot.read) << 1 | 1
    }
}

/// A command, without its tag. Addresses and lengths are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Operation.
    pub op: Op,
    /// `FLAG_*`.
    pub flags: u8,
    /// Stream index.
    pub port: u8,
    /// Stream id of a move in.
    pub id: u8,
    /// First address.
    pub addr0: u64,
    /// Second address or page-table entry.
    pub addr1: u64,
    /// Length in bytes.
    pub len: u32,
}

impl Command {
    const fn new(op: Op, addr0: u64, addr1: u64, len: u32) -> Self {
        Self { op, flags: 0, port: 0, id: 0, addr0, addr1, len }
    }

    /// Completes without effect.
    pub const fn nop() -> Self {
        Self::new(Op::Nop, 0, 0, 0)
    }

    /// Copies `len` bytes at bus address `bus` to card address `card`.
    pub const fn h2c(bus: u64, card: u64, len: u32) -> Self {
        Self::new(Op::H2c, bus, card, len)
    }

    /// Copies `len` bytes at card address `card` to bus address `bus`.
    pub const fn c2h(bus: u64, card: u64, len: u32) -> Self {
        Self::new(Op::C2h, bus, card, len)
    }

    /// Zeroes `len` bytes at card address `card`.
    pub const fn fill(card: u64, len: u32) -> Self {
        Self::new(Op::Fill, 0, card, len)
    }

    /// Enters the translation of the page at `va`.
    pub fn map(va: u64, place: Place, prot: Prot, huge: bool) -> Self {
        Self::new(Op::Map, va, place.pte(prot), 0).huge(huge)
    }

    /// Removes the translation of the page at `va`.
    pub fn unmap(va: u64, huge: bool) -> Self {
        Self::new(Op::Unmap, va, 0, 0).huge(huge)
    }

    /// Reports and clears the accessed bit of the page at `va`.
    pub fn scan(va: u64, huge: bool) -> Self {
        Self::new(Op::Scan, va, 0, 0).huge(huge)
    }

    /// The same for a page in the page table, if it is one.
    pub fn in_table(mut self, table: bool) -> Self {
        if table {
            self.flags |= FLAG_TABLE;
        }
        self
    }

    /// Completes the faulting access to the page of `va` with an error.
    pub const fn deny(va: u64) -> Self {
        Self::new(Op::Deny, va & !(PAGE - 1), 0, 0)
    }

    /// Sends `len` bytes at `va` into input stream `port`, the message ending with them if `end`.
    pub fn move_in(port: u8, va: u64, len: u32, end: bool) -> Self {
        Self { flags: if end { FLAG_EOP } else { 0 }, port, ..Self::new(Op::MoveIn, va, 0, len) }
    }

    /// Takes at most `len` bytes from output stream `port` to `va`.
    pub fn move_out(port: u8, va: u64, len: u32) -> Self {
        Self { port, ..Self::new(Op::MoveOut, va, 0, len) }
    }

    fn huge(mut self, huge: bool) -> Self {
        if huge {
            self.flags |= FLAG_HUGE;
        }
        self
    }

    /// The ring entry, with `tag`.
    pub fn encode(&self, tag: u32) -> [u64; 4] {
        let word0 = u64::from(tag) << 32
            | u64::from(self.id) << 24
            | u64::from(self.port) << 16
            | u64::from(self.flags) << 8
            | self.op as u64;
        [word0, self.addr0, self.addr1, u64::from(self.len)]
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { port, addr0, addr1, len, .. } = self;
        match self.op {
            Op::Nop => write!(f, "doing nothing"),
            Op::H2c => write!(f, "copying {len} bytes to card address {addr1:#x}"),
            Op::C2h => write!(f, "copying {len} bytes from card address {addr1:#x}"),
            Op::Fill => write!(f, "zeroing {len} bytes at card address {addr1:#x}"),
            Op::Map => write!(f, "mapping the page at {addr0:#x}"),
            Op::Unmap => write!(f, "unmapping the page at {addr0:#x}"),
            Op::Deny => write!(f, "denying the access to {addr0:#x}"),
            Op::Scan => write!(f, "scanning the page at {addr0:#x}"),
            Op::MoveIn => write!(f, "moving {len} bytes into input {port}"),
            Op::MoveOut => write!(f, "taking up to {len} bytes from output {port}"),
        }
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Ok,
    /// Unknown operation, reserved bits set, or no such port.
    BadOp,
    /// Host memory returned an error.
    HostErr,
    /// Card memory returned an error.
    CardErr,
    /// Zero length, misaligned address, range wraps or leaves its space.
    BadArg,
    /// More moves outstanding than the port's queue holds.
    Full,
    /// The slot was reset or isolated first.
    Aborted,
    /// A page of the range was denied.
    Fault,
    /// Unmap, scan, deny: no such translation or fault.
    NotFound,
    /// A value this library does not know.
    Unknown(u8),
}

impl From<u8> for Status {
    fn from(value: u8) -> Self {
        match value {
            0 => Self::Ok,
            1 => Self::BadOp,
            2 => Self::HostErr,
            3 => Self::CardErr,
            4 => Self::BadArg,
            5 => Self::Full,
            6 => Self::Aborted,
            7 => Self::Fault,
            8 => Self::NotFound,
            other => Self::Unknown(other),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "done",
            Self::BadOp => "the card does not know this command or this stream",
            Self::HostErr => "host memory returned an error",
            Self::CardErr => "card memory returned an error",
            Self::BadArg => "the card refused the address or the length",
            Self::Full => "too many moves are outstanding on the stream",
            Self::Aborted => "the slot was reset or isolated first",
            Self::Fault => "a page of the range could not be accessed",
            Self::NotFound => "there was no such translation or fault",
            Self::Unknown(value) => {
                return write!(f, "the card returned the unknown status {value:#04x}");
            }
        })
    }
}

/// A completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Tag of the command.
    pub tag: u32,
    /// How it ended.
    pub status: Status,
    /// Operation of the command, as the card reports it.
    pub op: u8,
    /// `CPL_*`.
    pub flags: u8,
    /// Bytes moved.
    pub bytes: u32,
    /// Map, unmap, scan, deny: commands that the slot's MMU has carried out before this one.
    pub number: u64,
    /// Map: virtual address of the evicted page. Move out, with `CPL_LAST`: stream id of the message.
    pub info: u64,
    /// Card time in cycles.
    pub time: u64,
}

impl Completion {
    /// Decodes an entry.
    pub fn decode(words: [u64; 4]) -> Self {
        let [word0, word1, info, word3] = words;
        Self {
            tag: (word0 >> 32) as u32,
            status: Status::from((word0 >> 16) as u8),
            op: (word0 >> 8) as u8,
            flags: word0 as u8,
            bytes: word1 as u32,
            number: u64::from(word1 as u16),
            info,
            time: word3 & !PHASE,
        }
    }

    /// Whether all bits of `flags` are set.
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}

/// Phase bit in word 3, which marks a written entry.
pub const PHASE: u64 = 1 << 63;

/// Why an event was posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventCause {
    /// No translation; the access waits.
    Miss,
    /// No permission; the access waits.
    Perm,
    /// Address too wide; completed with an error.
    Bounds,
    /// The page's entry in the page table is damaged; the access waits.
    Table,
    /// A burst crossed 4 KiB.
    Cross4k,
    /// WLAST did not match AWLEN.
    Wlast,
    /// Not INCR, not full-width, or misaligned.
    BadBurst,
    /// A write burst was begun and not finished in time.
    Stuck,
    /// `keep` or `last` against the stream contract.
    Stream,
    /// `valid` dropped before `ready`.
    Unstable,
    /// No response to a register access.
    RegTimeout,
    /// A ring was stopped.
    Ring,
    /// The app raised its interrupt.
    Irq,
    /// A flush of the disk in this slot waits for the host.
    Flush,
    /// Requested by the host.
    Host,
    /// A value this library does not know.
    Unknown(u8),
}

impl From<u8> for EventCause {
    fn from(value: u8) -> Self {
        match value {
            0x00 => Self::Host,
            0x01 => Self::Miss,
            0x02 => Self::Perm,
            0x03 => Self::Bounds,
            0x04 => Self::Table,
            0x10 => Self::Cross4k,
            0x11 => Self::Wlast,
            0x12 => Self::BadBurst,
            0x13 => Self::Stuck,
            0x14 => Self::Stream,
            0x15 => Self::Unstable,
            0x16 => Self::RegTimeout,
            0x17 => Self::Ring,
            0x20 => Self::Irq,
            0x21 => Self::Flush,
            other => Self::Unknown(other),
        }
    }
}

impl EventCause {
    /// The remedy.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Host => "it was reset or closed while in use: start it again",
            _ => "correct the app (simulate it alone), then load it again",
        }
    }
}

impl fmt::Display for EventCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Miss => "an access found no translation",
            Self::Perm => "an access lacked permission",
            Self::Bounds => "an address is wider than 48 bits",
            Self::Table => "an entry of the page table in card memory is damaged",
            Self::Cross4k => "the app sent a memory burst that crosses 4 KiB",
            Self::Wlast => "the app's WLAST does not match its AWLEN",
            Self::BadBurst => "the app sent a memory burst that is not INCR, not full-width, or misaligned",
            Self::Stuck => "the app began a write burst and did not finish it",
            Self::Stream => "the app broke the stream contract (keep or last)",
            Self::Unstable => "the app dropped valid before ready",
            Self::RegTimeout => "the app did not respond to a register access",
            Self::Ring => "a ring of the slot was stopped",
            Self::Irq => "the app raised its interrupt",
            Self::Flush => "a flush waits for the host",
            Self::Host => "the host cut it off",
            Self::Unknown(value) => return write!(f, "unknown cause {value:#04x}"),
        })
    }
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Why.
    pub cause: EventCause,
    /// The access was a write.
    pub is_write: bool,
    /// 0 memory port, 1 mover, 2 stream, 3 registers, 4 rings, 5 disk.
    pub source: u8,
    /// Virtual address.
    pub va: u64,
    /// Depends on the cause.
    pub info: u64,
    /// Of an access that waits: commands that the slot's MMU had carried out before.
    pub number: u64,
    /// Card time in cycles.
    pub time: u64,
}

impl Event {
    /// Decodes an entry.
    pub fn decode(words: [u64; 4]) -> Self {
        let [word0, va, info, word3] = words;
        Self {
            cause: EventCause::from(word0 as u8),
            is_write: (word0 >> 8) & 1 != 0,
            source: (word0 >> 16) as u8,
            va,
            info,
            number: u64::from((info >> 16) as u16),
            time: word3 & !PHASE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_the_layout_of_via_pkg() {
        let command = Command { id: 0x5a, ..Command::move_in(3, 0x1234_5000, 100, true) };
        assert_eq!(command.encode(0xdead_beef), [0xdead_beef_5a03_0220, 0x1234_5000, 0, 100]);
        let map = Command::map(0x20_0000, Place::Host(0x1_0020_0000), Prot::READ, true);
        assert_eq!(map.encode(7), [7 << 32 | 0x0410, 0x20_0000, 0x1_0020_000b, 0]);
    }

    #[test]
    fn a_completion_has_the_layout_of_via_pkg() {
        let c = Completion::decode([0x0000_0009_0007_2101, 77, 0x4000, PHASE | 1234]);
        assert_eq!((c.tag, c.status, c.op, c.flags), (9, Status::Fault, 0x21, CPL_LAST));
        assert_eq!((c.bytes, c.info, c.time), (77, 0x4000, 1234));
    }
}
