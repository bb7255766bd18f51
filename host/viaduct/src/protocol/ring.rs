// SPDX-License-Identifier: Apache-2.0
//! The three rings of a slot in host memory: commands out, completions and events in.
//!
//! Indices run freely modulo 2^16. A written entry carries its phase, the inverse of bit `log2` of its index, in the
//! top bit of its last word; the card writes an entry atomically, so an entry with the right phase is complete.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::protocol::desc::{Command, Completion, ENTRY_BYTES, Event, PHASE};
use viaduct_pci::{HostMemory, PAGE_SIZE};

/// Base-2 logarithm of the entries of each ring.
pub const RING_LOG2: u32 = 8;
/// Entries of each ring: how many commands can be outstanding.
pub const RING_ENTRIES: u16 = 1 << RING_LOG2;
const RING_BYTES: usize = RING_ENTRIES as usize * ENTRY_BYTES;
const _: () = assert!(RING_BYTES % PAGE_SIZE == 0);

/// Offset of the command ring in its memory.
pub const CMD_OFFSET: usize = 0;
/// Offset of the completion ring.
pub const CPL_OFFSET: usize = RING_BYTES;
/// Offset of the event ring.
pub const EVT_OFFSET: usize = 2 * RING_BYTES;
/// Bytes of all three rings.
pub const RINGS_BYTES: usize = 3 * RING_BYTES;

/// The host's side of the rings of one slot.
#[derive(Debug)]
pub struct Rings {
    memory: Arc<HostMemory>,
    cmd_tail: u16,
    cmd_fetched: u16,
    cpl_head: u16,
    evt_head: u16,
}

impl Rings {
    /// Rings at the beginning of `memory`, which is zeroed and at least [`RINGS_BYTES`] long.
    pub fn new(memory: Arc<HostMemory>) -> Self {
        Self { memory, cmd_tail: 0, cmd_fetched: 0, cpl_head: 0, evt_head: 0 }
    }

    /// Writes a command and returns its index, or `None` if the card may not have fetched the entry's previous command. The
    /// caller rings the doorbell.
    pub fn push(&mut self, command: &Command, tag: u32) -> Option<u16> {
        if self.room() == 0 {
            return None;
        }
        let index = self.cmd_tail;
        let at = CMD_OFFSET + slot_of(index);
        for (i, word) in command.encode(tag).into_iter().enumerate() {
            self.memory.write_u64(at + 8 * i, word, Ordering::Release);
        }
        self.cmd_tail = index.wrapping_add(1);
        Some(index)
    }

    /// Commands that can be pushed now.
    pub fn room(&self) -> u16 {
        RING_ENTRIES - self.cmd_tail.wrapping_sub(self.cmd_fetched)
    }

    /// Index for the command doorbell.
    pub fn cmd_tail(&self) -> u16 {
        self.cmd_tail
    }

    /// The command at `index` is complete: it, and all before it, have been fetched.
    pub fn fetched(&mut self, index: u16) {
        let ahead = index.wrapping_add(1).wrapping_sub(self.cmd_fetched);
        if ahead <= self.cmd_tail.wrapping_sub(self.cmd_fetched) {
            self.cmd_fetched = index.wrapping_add(1);
        }
    }

    /// Takes the next completion, if there is one.
    pub fn pop_completion(&mut self) -> Option<Completion> {
        let words = self.entry(CPL_OFFSET, self.cpl_head)?;
        self.cpl_head = self.cpl_head.wrapping_add(1);
        Some(Completion::decode(words))
    }

    /// Takes the next event, if there is one.
    pub fn pop_event(&mut self) -> Option<Event> {
        let words = self.entry(EVT_OFFSET, self.evt_head)?;
        self.evt_head = self.evt_head.wrapping_add(1);
        Some(Event::decode(words))
    }

    /// Index up to which completions have been taken.
    pub fn cpl_head(&self) -> u16 {
        self.cpl_head
    }

    /// Index up to which events have been taken.
    pub fn evt_head(&self) -> u16 {
        self.evt_head
    }

    fn entry(&self, ring: usize, index: u16) -> Option<[u64; 4]> {
        let at = ring + slot_of(index);
        let last = self.memory.read_u64(at + 24, Ordering::Acquire);
        let phase = (index >> RING_LOG2) & 1 == 0;
        if (last & PHASE != 0) != phase {
            return None;
        }
        let word = |i: usize| self.memory.read_u64(at + 8 * i, Ordering::Relaxed);
        Some([word(0), word(1), word(2), last])
    }
}

fn slot_of(index: u16) -> usize {
    usize::from(index % RING_ENTRIES) * ENTRY_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rings() -> (Arc<HostMemory>, Rings) {
        let memory = Arc::new(HostMemory::new(RINGS_BYTES).unwrap());
        (Arc::clone(&memory), Rings::new(memory))
    }

    #[test]
    fn a_full_ring_refuses_until_a_command_is_known_to_be_fetched() {
        let (_memory, mut rings) = rings();
        let mut last = None;
        for tag in 0..u32::from(RING_ENTRIES) {
            last = rings.push(&Command::nop(), tag);
            assert!(last.is_some());
        }
        assert_eq!(rings.push(&Command::nop(), 0), None);
        rings.fetched(3);
        assert_eq!(rings.room(), 4);
        rings.fetched(1); // an older one that ended later frees nothing more
        assert_eq!(rings.room(), 4);
        rings.fetched(last.unwrap());
        assert_eq!(rings.room(), RING_ENTRIES);
        rings.fetched(77); // not outstanding: ignored
        assert_eq!(rings.room(), RING_ENTRIES);
    }

    #[test]
    fn phases_alternate_over_the_index_wrap() {
        let (memory, mut rings) = rings();
        for index in 0..=u16::MAX {
            assert!(rings.pop_completion().is_none(), "nothing written at {index}");
            let at = CPL_OFFSET + slot_of(index);
            let phase = if (index >> RING_LOG2) & 1 == 0 { PHASE } else { 0 };
            memory.write_u64(at, u64::from(index) << 32, Ordering::Relaxed);
            memory.write_u64(at + 24, phase, Ordering::Release);
            assert_eq!(rings.pop_completion().unwrap().tag, u32::from(index));
        }
        assert_eq!(rings.cpl_head(), 0);
    }
}
