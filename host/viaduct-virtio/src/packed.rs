// SPDX-License-Identifier: Apache-2.0
//! Packed rings (VIRTIO 1.3, 2.8).

use std::collections::VecDeque;
use std::sync::atomic::{Ordering, fence};

use crate::ring::{Buffer, Place, QueueOptions, Used, passed};

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
const AVAIL: u16 = 1 << 7;
const USED: u16 = 1 << 15;

const EVENTS_ON: u32 = 0;
const EVENTS_OFF: u32 = 1;
const EVENTS_AT: u32 = 2;

/// A position in the ring and its wrap counter.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Position {
    index: u16,
    wrap: bool,
}

impl Position {
    fn advance(&mut self, by: u16, size: u16) {
        self.index += by;
        if self.index >= size {
            self.index -= size;
            self.wrap = !self.wrap;
        }
    }

    fn word(self) -> u16 {
        self.index | u16::from(self.wrap) << 15
    }
}

pub(crate) struct Packed {
    pub place: Place,
    options: QueueOptions,
    free: VecDeque<u16>,
    room: u16,
    /// By buffer id: the chain's token and ring slots, while the device owns it.
    chains: Vec<Option<(u64, u16)>>,
    /// With IN_ORDER: ids in the order they were made available.
    order: VecDeque<u16>,
    batch: Option<(u16, u32)>,
    next: Position,
    /// Ring slots filled since the last decision about a notification.
    added: u16,
    used: Position,
}

impl Packed {
    /// An empty ring.
    pub fn new(place: Place, options: QueueOptions) -> Self {
        let start = Position { index: 0, wrap: true };
        let size = place.size;
        Self {
            free: (0..size).collect(),
            room: size,
            chains: (0..size).map(|_| None).collect(),
            order: VecDeque::new(),
            batch: None,
            next: start,
            added: 0,
            used: start,
            place,
            options,
        }
    }

    /// Chains that the device owns.
    pub fn open(&self) -> usize {
        self.chains.iter().flatten().count()
    }

    /// Position of the next descriptor, in the format of notifications and event suppression.
    pub fn position(&self) -> u16 {
        self.next.word()
    }

    /// Adds a chain; returns whether there was space.
    pub fn add(&mut self, chain: &[Buffer], token: u64) -> bool {
        let table = self.options.indirect && chain.len() > 1 && chain.len() <= self.place.table;
        let needed = if table { 1 } else { chain.len() as u16 };
        if needed > self.room {
            return false;
        }
        // There is an id for every slot.
        let Some(id) = self.free.pop_front() else { return false };
        let first = self.next;
        if table {
            let at = self.place.tables + usize::from(id) * self.place.table * 16;
            for (i, buffer) in chain.iter().enumerate() {
                self.put(at + 16 * i, *buffer, 0, 0);
            }
            let whole = Buffer { addr: self.place.bus(at), len: 16 * chain.len() as u32, writable: false };
            self.put_hidden(self.slot(first), whole, id);
            self.next.advance(1, self.place.size);
        } else {
            for (i, buffer) in chain.iter().enumerate() {
                // The first one's flags are written last: until then the chain is not available.
                if i == 0 {
                    self.put_hidden(self.slot(self.next), *buffer, id);
                } else {
                    let next = if i + 1 < chain.len() { NEXT } else { 0 };
                    self.put(self.slot(self.next), *buffer, id, available(self.next.wrap) | next);
                }
                self.next.advance(1, self.place.size);
            }
        }
        let flags = if table {
            INDIRECT
        } else {
            let next = if chain.len() > 1 { NEXT } else { 0 };
            next | if chain[0].writable { WRITE } else { 0 }
        };
        let word = u32::from(id) | u32::from(flags | available(first.wrap)) << 16;
        self.place.memory.write_u32(self.slot(first) + 12, word, Ordering::Release);
        self.room -= needed;
        self.added += needed;
        self.chains[usize::from(id)] = Some((token, needed));
        if self.options.in_order {
            self.order.push_back(id);
        }
        true
    }

    fn slot(&self, at: Position) -> usize {
        self.place.desc + 16 * usize::from(at.index)
    }

    fn put(&self, at: usize, buffer: Buffer, id: u16, flags: u16) {
        let flags = flags | if buffer.writable { WRITE } else { 0 };
        self.put_hidden(at, buffer, id);
        self.place.put16(at + 14, flags);
    }

    /// All but the flags.
    fn put_hidden(&self, at: usize, buffer: Buffer, id: u16) {
        let mut bytes = [0; 14];
        bytes[..8].copy_from_slice(&buffer.addr.to_le_bytes());
        bytes[8..12].copy_from_slice(&buffer.len.to_le_bytes());
        bytes[12..].copy_from_slice(&id.to_le_bytes());
        self.place.memory.write(at, &bytes);
    }

    /// Makes added chains available; returns whether the device requests a notification.
    pub fn publish(&mut self) -> bool {
        let added = std::mem::take(&mut self.added);
        if added == 0 {
            return false;
        }
        // The descriptors are visible before the device's event suppression is read.
        fence(Ordering::SeqCst);
        let wish = self.place.memory.read_u32(self.place.device, Ordering::Acquire);
        match wish >> 16 & 3 {
            EVENTS_OFF => false,
            EVENTS_AT => {
                let mut event = wish as u16 & 0x7fff;
                if (wish >> 15 & 1 != 0) != self.next.wrap {
                    event = event.wrapping_sub(self.place.size);
                }
                passed(event, self.next.index, self.next.index.wrapping_sub(added))
            }
            _ => true,
        }
    }

    fn arrived(&self) -> bool {
        let word = self.place.memory.read_u32(self.slot(self.used) + 12, Ordering::Acquire);
        let flags = (word >> 16) as u16;
        (flags & AVAIL != 0) == self.used.wrap && (flags & USED != 0) == self.used.wrap
    }

    /// The next used chain; an error is an invalid id.
    pub fn used(&mut self) -> Result<Option<Used>, u32> {
        if let Some((last, len)) = self.batch {
            let Some(id) = self.order.pop_front() else { return Err(u32::from(last)) };
            if id == last {
                self.batch = None;
            }
            return self.give_back(id, if id == last { len } else { 0 }).map(Some);
        }
        if !self.arrived() {
            return Ok(None);
        }
        let at = self.slot(self.used);
        let id = self.place.get16(at + 12);
        let len = self.place.memory.read_u32(at + 8, Ordering::Relaxed);
        if self.options.in_order {
            if !self.order.contains(&id) {
                return Err(u32::from(id));
            }
            self.batch = Some((id, len));
            return self.used();
        }
        self.give_back(id, len).map(Some)
    }

    fn give_back(&mut self, id: u16, len: u32) -> Result<Used, u32> {
        let chain = self.chains.get_mut(usize::from(id)).and_then(Option::take);
        let (token, slots) = chain.ok_or(u32::from(id))?;
        self.used.advance(slots, self.place.size);
        self.room += slots;
        self.free.push_back(id);
        Ok(Used { token, len })
    }

    /// Enables interrupts; returns whether a used chain is already there.
    pub fn arm(&mut self) -> bool {
        if self.options.event_idx {
            let word = u32::from(self.used.word()) | EVENTS_AT << 16;
            self.place.memory.write_u32(self.place.driver, word, Ordering::Release);
        } else {
            self.place.memory.write_u32(self.place.driver, EVENTS_ON << 16, Ordering::Release);
        }
        fence(Ordering::SeqCst);
        self.batch.is_some() || self.arrived()
    }

    /// Disables interrupts.
    pub fn disarm(&mut self) {
        self.place.memory.write_u32(self.place.driver, EVENTS_OFF << 16, Ordering::Release);
    }
}

/// The AVAIL and USED flags of an available descriptor.
fn available(wrap: bool) -> u16 {
    if wrap { AVAIL } else { USED }
}
