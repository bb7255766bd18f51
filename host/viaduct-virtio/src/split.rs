// SPDX-License-Identifier: Apache-2.0
//! Split rings (VIRTIO 1.3, 2.7).

use std::collections::VecDeque;
use std::sync::atomic::{Ordering, fence};

use crate::ring::{Buffer, Place, QueueOptions, Used, passed};

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
const NO_INTERRUPT: u32 = 1;
const NO_NOTIFY: u32 = 1;

pub(crate) struct Split {
    pub place: Place,
    options: QueueOptions,
    /// Free descriptors, those returned last at the end; with IN_ORDER they are taken in table order instead, from `next`.
    free: VecDeque<u16>,
    /// The one returned first is taken first, instead of the one returned last.
    oldest_first: bool,
    next: u16,
    room: u16,
    /// By head: the chain's token and descriptors, while the device owns it.
    chains: Vec<Option<(u64, Vec<u16>)>>,
    /// With IN_ORDER: heads in the order they were made available.
    order: VecDeque<u16>,
    /// A batch of used chains in progress, which ends with this head and length.
    batch: Option<(u16, u32)>,
    available: u16,
    published: u16,
    seen: u16,
}

impl Split {
    /// An empty ring.
    pub fn new(place: Place, options: QueueOptions) -> Self {
        let size = place.size;
        Self {
            free: (0..size).rev().collect(),
            oldest_first: false,
            next: 0,
            room: size,
            chains: (0..size).map(|_| None).collect(),
            order: VecDeque::new(),
            batch: None,
            available: 0,
            published: 0,
            seen: 0,
            place,
            options,
        }
    }

    /// Chains that the device owns.
    pub fn open(&self) -> usize {
        self.chains.iter().flatten().count()
    }

    /// The available index as visible to the device, in the format of notifications.
    pub fn position(&self) -> u16 {
        self.published
    }

    /// From now on takes the descriptor returned first.
    pub fn take_oldest(&mut self) {
        self.oldest_first = true;
        // So far they are in the opposite order.
        self.free.make_contiguous().reverse();
    }

    /// Adds a chain; returns whether there was space.
    pub fn add(&mut self, chain: &[Buffer], token: u64) -> bool {
        let table = self.options.indirect && chain.len() > 1 && chain.len() <= self.place.table;
        let needed = if table { 1 } else { chain.len() };
        if needed > usize::from(self.room) {
            return false;
        }
        let taken: Vec<u16> = (0..needed).map(|_| self.take()).collect();
        let head = taken[0];
        if table {
            let at = self.place.tables + usize::from(head) * self.place.table * 16;
            for (i, buffer) in chain.iter().enumerate() {
                let next = (i + 1 < chain.len()).then_some(i as u16 + 1);
                self.put(at + 16 * i, *buffer, next);
            }
            let whole = Buffer { addr: self.place.bus(at), len: 16 * chain.len() as u32, writable: false };
            let slot = self.place.desc + 16 * usize::from(head);
            self.put(slot, whole, None);
            self.place.put16(slot + 12, INDIRECT);
        } else {
            for (i, buffer) in chain.iter().enumerate() {
                self.put(self.place.desc + 16 * usize::from(taken[i]), *buffer, taken.get(i + 1).copied());
            }
        }
        let size = usize::from(self.place.size);
        self.place.put16(self.place.driver + 4 + 2 * (usize::from(self.available) % size), head);
        self.available = self.available.wrapping_add(1);
        self.chains[usize::from(head)] = Some((token, taken));
        if self.options.in_order {
            self.order.push_back(head);
        }
        true
    }

    fn take(&mut self) -> u16 {
        self.room -= 1;
        if self.options.in_order {
            let index = self.next;
            self.next = (self.next + 1) % self.place.size;
            return index;
        }
        // It has at least `room` entries.
        let taken = if self.oldest_first { self.free.pop_front() } else { self.free.pop_back() };
        taken.unwrap_or_default()
    }

    fn put(&self, at: usize, buffer: Buffer, next: Option<u16>) {
        let mut bytes = [0; 16];
        let flags = if next.is_some() { NEXT } else { 0 } | if buffer.writable { WRITE } else { 0 };
        bytes[..8].copy_from_slice(&buffer.addr.to_le_bytes());
        bytes[8..12].copy_from_slice(&buffer.len.to_le_bytes());
        bytes[12..14].copy_from_slice(&flags.to_le_bytes());
        bytes[14..].copy_from_slice(&next.unwrap_or(0).to_le_bytes());
        self.place.memory.write(at, &bytes);
    }

    /// Makes added chains available; returns whether the device requests a notification.
    pub fn publish(&mut self) -> bool {
        if self.available == self.published {
            return false;
        }
        let old = self.published;
        self.published = self.available;
        // Flags and index share a word; the ring's entries are in memory before it.
        let flags = self.place.memory.read_u32(self.place.driver, Ordering::Relaxed) & 0xffff;
        let word = flags | u32::from(self.published) << 16;
        self.place.memory.write_u32(self.place.driver, word, Ordering::Release);
        // The index is visible before the device's event suppression is read.
        fence(Ordering::SeqCst);
        if self.options.event_idx {
            let event = self.place.get16(self.place.device + 4 + 8 * usize::from(self.place.size));
            return passed(event, self.published, old);
        }
        self.place.memory.read_u32(self.place.device, Ordering::Acquire) & NO_NOTIFY == 0
    }

    /// The next used chain; an error is an invalid id.
    pub fn used(&mut self) -> Result<Option<Used>, u32> {
        loop {
            if let Some((last, len)) = self.batch {
                let Some(head) = self.order.pop_front() else { return Err(u32::from(last)) };
                let over = head == last;
                if over {
                    self.batch = None;
                }
                return self.give_back(u32::from(head), if over { len } else { 0 }).map(Some);
            }
            let index = (self.place.memory.read_u32(self.place.device, Ordering::Acquire) >> 16) as u16;
            if index == self.seen {
                return Ok(None);
            }
            let size = usize::from(self.place.size);
            let behind = usize::from(index.wrapping_sub(self.seen));
            if self.options.in_order {
                // One entry may stand for a batch; the index counts the chains (VIRTIO 1.3, 2.7.9).
                let count = behind.min(self.order.len());
                let entry = |at: u16| self.entry(usize::from(at) % size);
                let (id, len) = entry(self.seen);
                let place = self.order.iter().take(count).position(|h| u32::from(*h) == id);
                let Some(place) = place else { return Err(id) };
                self.seen = self.seen.wrapping_add(place as u16 + 1);
                self.batch = Some((id as u16, len));
                continue;
            }
            let (id, len) = self.entry(usize::from(self.seen) % size);
            self.seen = self.seen.wrapping_add(1);
            return self.give_back(id, len).map(Some);
        }
    }

    fn entry(&self, at: usize) -> (u32, u32) {
        let at = self.place.device + 4 + 8 * at;
        let memory = &self.place.memory;
        (memory.read_u32(at, Ordering::Relaxed), memory.read_u32(at + 4, Ordering::Relaxed))
    }

    fn give_back(&mut self, id: u32, len: u32) -> Result<Used, u32> {
        let chain = self.chains.get_mut(id as usize).and_then(Option::take);
        let (token, taken) = chain.ok_or(id)?;
        self.room += taken.len() as u16;
        if !self.options.in_order {
            self.free.extend(taken.iter().rev());
        }
        Ok(Used { token, len })
    }

    /// Enables interrupts; returns whether a used chain is already there.
    pub fn arm(&mut self) -> bool {
        if self.options.event_idx {
            let at = self.place.driver + 4 + 2 * usize::from(self.place.size);
            self.place.put16(at, self.seen);
        } else {
            self.flags(0);
        }
        fence(Ordering::SeqCst);
        let index = (self.place.memory.read_u32(self.place.device, Ordering::Acquire) >> 16) as u16;
        index != self.seen || self.batch.is_some()
    }

    /// Disables interrupts.
    pub fn disarm(&mut self) {
        // With EVENT_IDX the event index falls behind, which also suppresses interrupts.
        if !self.options.event_idx {
            self.flags(NO_INTERRUPT);
        }
    }

    fn flags(&self, flags: u32) {
        let word = flags | u32::from(self.published) << 16;
        self.place.memory.write_u32(self.place.driver, word, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use viaduct_pci::HostMemory;

    use super::*;

    const SIZE: u16 = 4;
    const DRIVER: usize = 64;
    const DEVICE: usize = 128;

    fn ring() -> Split {
        let memory = Arc::new(HostMemory::new(4096).unwrap());
        let place = Place {
            memory,
            bus: 0,
            desc: 0,
            driver: DRIVER,
            device: DEVICE,
            tables: 256,
            table: 1,
            size: SIZE,
        };
        Split::new(place, QueueOptions::default())
    }

    /// Offers as many chains as there is room for; returns their heads in order.
    fn offered(ring: &mut Split) -> Vec<u16> {
        let begin = ring.available;
        while ring.add(&[Buffer { addr: 0, len: 1, writable: false }], 0) {}
        let entry = |i| ring.place.get16(DRIVER + 4 + 2 * usize::from(i % SIZE));
        (begin..ring.available).map(entry).collect()
    }

    /// The device uses these chains.
    fn used(ring: &mut Split, heads: &[u16]) {
        for head in heads {
            let at = DEVICE + 4 + 8 * usize::from(ring.seen % SIZE);
            ring.place.memory.write(at, &u32::from(*head).to_le_bytes());
            ring.place.put16(DEVICE + 2, ring.seen.wrapping_add(1));
            assert!(ring.used().unwrap().is_some());
        }
    }

    #[test]
    fn the_descriptor_returned_last_is_taken_first_unless_the_oldest_is_wanted() {
        for (oldest, wanted) in [(false, [2, 1, 0]), (true, [0, 1, 2])] {
            let mut ring = ring();
            if oldest {
                ring.take_oldest();
            }
            assert_eq!(offered(&mut ring), [0, 1, 2, 3]);
            used(&mut ring, &[0, 1, 2]);
            assert_eq!(offered(&mut ring), wanted);
        }
    }
}
