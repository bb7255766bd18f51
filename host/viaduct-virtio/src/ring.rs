// SPDX-License-Identifier: Apache-2.0
//! What split and packed rings have in common: buffers, options, memory.

use std::sync::Arc;

use viaduct_pci::HostMemory;

/// A buffer for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer {
    /// Bus address.
    pub addr: u64,
    /// Bytes, not zero.
    pub len: u32,
    /// The device writes it; otherwise it reads it.
    pub writable: bool,
}

/// A used chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    /// The token given to [`Queue::add`](crate::Queue::add).
    pub token: u64,
    /// Bytes the device has written. With IN_ORDER, the device reports it only for the last one of a batch: 0 otherwise.
    pub len: u32,
}

/// Options of a queue; a subset of the negotiated features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueOptions {
    /// Packed instead of split ring (RING_PACKED).
    pub packed: bool,
    /// Interrupts and notifications by index (EVENT_IDX).
    pub event_idx: bool,
    /// Buffers are used in order (IN_ORDER).
    pub in_order: bool,
    /// Notifications carry the ring's state (NOTIFICATION_DATA).
    pub notification_data: bool,
    /// Chains of more than one buffer use an indirect table (INDIRECT_DESC).
    pub indirect: bool,
}

/// Memory of a ring.
#[derive(Clone)]
pub(crate) struct Place {
    pub memory: Arc<HostMemory>,
    /// Bus address of offset 0.
    pub bus: u64,
    pub desc: usize,
    pub driver: usize,
    pub device: usize,
    /// `size` indirect tables of `table` descriptors each.
    pub tables: usize,
    pub table: usize,
    pub size: u16,
}

impl Place {
    /// Bus address of an offset.
    pub fn bus(&self, offset: usize) -> u64 {
        self.bus + offset as u64
    }
    /// Writes a 16-bit word.
    pub fn put16(&self, offset: usize, value: u16) {
        self.memory.write(offset, &value.to_le_bytes());
    }
    /// Reads a 16-bit word.
    pub fn get16(&self, offset: usize) -> u16 {
        let mut bytes = [0; 2];
        self.memory.read(offset, &mut bytes);
        u16::from_le_bytes(bytes)
    }
}

/// Whether an index that went from `old` to `new` has passed `event` (VIRTIO 1.3, 2.7.10).
pub(crate) fn passed(event: u16, new: u16, old: u16) -> bool {
    new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
}
