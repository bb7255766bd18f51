// SPDX-License-Identifier: Apache-2.0
//! Card memory reserved for the page tables of slots.

use crate::card::memory::CHANNEL_LOG2;
use crate::protocol::desc::{HUGE, TABLE_ENTRY, TABLE_LOG2};

/// Card memory that tables take, at most: one part in so many of each channel.
const SHARE: u64 = 64;

/// Card memory reserved for the tables of all slots: blocks of 2 MiB at the end of each channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tables {
    /// Blocks that are not reserved, in each channel.
    pub free: u64,
    /// Blocks of each channel.
    pub blocks: u64,
    /// Bytes of each slot's table; 0 if the card's memory is too small for tables.
    bytes: u64,
    channels: u64,
}

impl Tables {
    /// The reservation for a card with so many slots, and channels of so many MiB.
    pub fn new(slots: usize, channels: usize, chan_mib: u64) -> Self {
        let (slots, channels) = (slots as u64, channels as u64);
        let channel = chan_mib << 20;
        let (blocks, rows) = (channel / HUGE, slots.div_ceil(channels));
        let share = channel / SHARE / rows;
        if share < TABLE_ENTRY << TABLE_LOG2.start {
            return Self { free: blocks, blocks, bytes: 0, channels };
        }
        let bytes = (1 << share.ilog2()).min(TABLE_ENTRY << (TABLE_LOG2.end - 1));
        // A table is aligned to its size.
        let unit = bytes.max(HUGE);
        let free = (blocks * HUGE - (rows * bytes).next_multiple_of(unit)) / unit * unit / HUGE;
        Self { free, blocks, bytes, channels }
    }

    /// Card address of a slot's table of `len` bytes, if it has one as large.
    pub fn place(&self, slot: usize, len: u64) -> Option<u64> {
        let slot = slot as u64;
        let offset = self.free * HUGE + slot / self.channels * self.bytes;
        (len <= self.bytes).then_some((slot % self.channels) << CHANNEL_LOG2 | offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_small_card_has_no_tables() {
        let tables = Tables::new(4, 1, 128);
        assert_eq!((tables.free, tables.blocks, tables.bytes), (64, 64, 0));
    }

    proptest! {
        #[test]
        fn tables_are_aligned_apart_and_in_the_reserved_blocks(
            slots in 1usize..17, channels in 0u32..5, mib in 2u64..16384
        ) {
            let tables = Tables::new(slots, 1 << channels, mib);
            prop_assert!(tables.blocks == mib / 2 && tables.free <= tables.blocks);
            if tables.bytes > 0 {
                let log2 = CHANNEL_LOG2;
                let mut places: Vec<_> = (0..slots).map(|slot| tables.place(slot, tables.bytes).unwrap()).collect();
                places.sort_unstable();
                for at in &places {
                    let offset = at & ((1 << log2) - 1);
                    prop_assert!(at % tables.bytes == 0 && at >> log2 < 1 << channels);
                    prop_assert!(offset >= tables.free * HUGE && offset + tables.bytes <= tables.blocks * HUGE);
                }
                prop_assert!(places.windows(2).all(|two| two[0] + tables.bytes <= two[1]));
                // Aligned to the size of a table, so at most twice the share, and whole blocks.
                prop_assert!((tables.blocks - tables.free) * HUGE <= 2 * (mib << 20) / SHARE + HUGE);
            }
        }
    }
}
