// SPDX-License-Identifier: Apache-2.0
//! Allocation of the card's memory.
//!
//! A channel is an array of 2 MiB blocks; a block is free, one large frame, split into 512 small frames, reserved for
//! the user (named by a `card:` endpoint), or for page tables. Frames are allocated from a set of channels in turn, so that neighbouring pages
//! of a mapping are in different channels.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::protocol::desc::{HUGE, PAGE};

/// Address bits below the channel number.
pub const CHANNEL_LOG2: u32 = 34;
const SMALL_PER_BLOCK: usize = (HUGE / PAGE) as usize;

/// Size of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameSize {
    /// 4 KiB.
    Small,
    /// 2 MiB.
    Huge,
}

impl FrameSize {
    /// Bytes of a frame.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Small => PAGE,
            Self::Huge => HUGE,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Free,
    Huge,
    Split,
    User,
    Table,
}

#[derive(Debug)]
struct Channel {
    blocks: Vec<Block>,
    split: BTreeMap<usize, Split>, // by block
    next: usize,                   // where to search for a free block
}

#[derive(Debug)]
struct Split {
    used: [u64; SMALL_PER_BLOCK / 64],
    count: usize,
}

/// Allocator of the card's memory.
#[derive(Debug)]
pub struct CardMemory {
    channels: Vec<Channel>,
    next: BTreeMap<u16, usize>, // channel, for each set of them
}

impl CardMemory {
    /// All memory of `channels` channels of `mib` MiB each is free, but for page tables from block `tables` on in each.
    pub fn new(channels: usize, mib: u64, tables: u64) -> Self {
        let count = (mib << 20).min(1 << CHANNEL_LOG2) / HUGE;
        let mut blocks = vec![Block::Free; count as usize];
        blocks[(tables.min(count) as usize)..].fill(Block::Table);
        let channel = || Channel { blocks: blocks.clone(), split: BTreeMap::new(), next: 0 };

        Self { channels: (0..channels).map(|_| channel()).collect(), next: BTreeMap::new() }
    }

    /// Allocates a frame in one of these channels, a bit for each, and returns its card address, or `None` if there is none.
    pub fn alloc(&mut self, size: FrameSize, channels: u16) -> Option<u64> {
        let count = self.channels.len();
        for _ in 0..count {
            let next = self.next.entry(channels).or_default();
            let number = *next;
            *next = (number + 1) % count;
            if channels >> number & 1 == 0 {
                continue;
            }
            if let Some(addr) = self.alloc_in(number, size) {
                return Some(addr);
            }
        }
        None
    }

    /// Whether there is a free frame of 2 MiB in one of these channels.
    pub fn has_huge(&self, channels: u16) -> bool {
        let mut all = self.channels.iter().enumerate();
        all.any(|(number, channel)| channels >> number & 1 != 0 && channel.blocks.contains(&Block::Free))
    }

    fn alloc_in(&mut self, number: usize, size: FrameSize) -> Option<u64> {
        let channel = self.channels.get_mut(number)?;
        let offset = match size {
            FrameSize::Huge => channel.take_block(Block::Huge).map(|block| block as u64 * HUGE),
            FrameSize::Small => channel.take_small(),
        };
        Some((number as u64) << CHANNEL_LOG2 | offset?)
    }

    /// Frees a frame.
    ///
    /// # Panics
    /// If the frame was not allocated with this size.
    pub fn free(&mut self, addr: u64, size: FrameSize) {
        let (number, offset) = split_addr(addr);
        let channel = &mut self.channels[number];
        let block = (offset / HUGE) as usize;
        match size {
            FrameSize::Huge => {
                assert_eq!(channel.blocks[block], Block::Huge, "frame {addr:#x} is not allocated");
                channel.blocks[block] = Block::Free;
            }
            FrameSize::Small => channel.free_small(block, (offset % HUGE / PAGE) as usize),
        }
    }

    /// Reserves a range for the user. It may be reserved already, but must not overlap the library's own frames. The range is
    /// in one channel.
    pub fn claim(&mut self, addr: u64, len: u64) -> Result<()> {
        let fail = |why: String| Error::BadCardRange { addr, len, why };
        if addr % PAGE != 0 {
            return Err(fail("the address is not a multiple of 4096".into()));
        }
        let (number, offset) = split_addr(addr);
        let count = self.channels.len();
        let channel = self.channels.get_mut(number).ok_or_else(|| {
            fail(format!("the card has {count} channels; channel k begins at address k << {CHANNEL_LOG2}"))
        })?;
        let size = channel.blocks.len() as u64 * HUGE;
        let end = offset.checked_add(len).filter(|&end| len > 0 && end <= size).ok_or_else(|| {
            fail(format!("the range is empty or leaves its channel, which has {size:#x} bytes"))
        })?;
        let blocks = (offset / HUGE) as usize..end.div_ceil(HUGE) as usize;
        if channel.blocks[blocks.clone()].contains(&Block::Table) {
            let end = channel.blocks.iter().filter(|b| **b != Block::Table).count() as u64 * HUGE;
            return Err(fail(format!("page tables are there: a channel is free up to {end:#x}")));
        }
        if channel.blocks[blocks.clone()].iter().any(|b| matches!(b, Block::Huge | Block::Split)) {
            return Err(fail("pages of mapped files are there; use another range or unmap them".into()));
        }
        channel.blocks[blocks].fill(Block::User);
        Ok(())
    }
}

impl Channel {
    fn take_block(&mut self, to: Block) -> Option<usize> {
        let count = self.blocks.len();
        let block = (0..count).map(|i| (self.next + i) % count).find(|&b| self.blocks[b] == Block::Free)?;
        self.next = (block + 1) % count;
        self.blocks[block] = to;
        Some(block)
    }

    fn take_small(&mut self) -> Option<u64> {
        let open = self.split.iter().find(|(_, s)| s.count < SMALL_PER_BLOCK).map(|(&block, _)| block);
        let block = match open {
            Some(block) => block,
            None => {
                let block = self.take_block(Block::Split)?;
                self.split.insert(block, Split { used: [0; SMALL_PER_BLOCK / 64], count: 0 });
                block
            }
        };
        let split = self.split.get_mut(&block)?;
        let word = split.used.iter().position(|w| *w != u64::MAX)?;
        let bit = split.used[word].trailing_ones() as usize;
        split.used[word] |= 1 << bit;
        split.count += 1;
        Some(block as u64 * HUGE + (word * 64 + bit) as u64 * PAGE)
    }

    fn free_small(&mut self, block: usize, index: usize) {
        let split = self.split.get_mut(&block).expect("a small frame is in a split block");
        let bit = 1u64 << (index % 64);
        assert!(split.used[index / 64] & bit != 0, "small frame {index} of block {block} is not allocated");
        split.used[index / 64] &= !bit;
        split.count -= 1;
        if split.count == 0 {
            self.split.remove(&block);
            self.blocks[block] = Block::Free;
        }
    }
}

fn split_addr(addr: u64) -> (usize, u64) {
    ((addr >> CHANNEL_LOG2) as usize, addr & ((1 << CHANNEL_LOG2) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: u16 = u16::MAX;

    #[test]
    fn frames_go_round_the_channels() {
        let mut memory = CardMemory::new(4, 8, 4);
        let channels: Vec<_> =
            (0..8).map(|_| memory.alloc(FrameSize::Small, ALL).unwrap() >> CHANNEL_LOG2).collect();
        assert_eq!(channels, [0, 1, 2, 3, 0, 1, 2, 3]);
    }

    #[test]
    fn frames_of_one_channel_leave_the_turn_of_the_others_alone() {
        let mut memory = CardMemory::new(4, 8, 4);
        for _ in 0..4 {
            assert_eq!(memory.alloc(FrameSize::Huge, 1 << 2).unwrap() >> CHANNEL_LOG2, 2);
        }
        assert_eq!(memory.alloc(FrameSize::Small, 1 << 2), None, "the channel is full");
        let channels: Vec<_> =
            (0..4).map(|_| memory.alloc(FrameSize::Small, ALL).unwrap() >> CHANNEL_LOG2).collect();
        assert_eq!(channels, [0, 1, 3, 0]);
    }

    #[test]
    fn frames_go_round_a_set_of_channels_whatever_others_take() {
        let mut memory = CardMemory::new(4, 8, 4);
        let channels: Vec<_> = (0..12)
            .map(|i| memory.alloc(FrameSize::Small, [0b0011, 0b1100, ALL][i % 3]).unwrap() >> CHANNEL_LOG2)
            .collect();
        assert_eq!(channels, [0, 2, 0, 1, 3, 1, 0, 2, 2, 1, 3, 3]);
    }

    #[test]
    fn a_users_range_is_never_given_out_and_frames_never_claimed() {
        let mut memory = CardMemory::new(1, 8, 3);
        memory.claim(0, 100).unwrap();
        memory.claim(0, 4096).unwrap();
        assert_eq!(memory.alloc(FrameSize::Huge, ALL), Some(HUGE));
        let small = memory.alloc(FrameSize::Small, ALL).unwrap();
        assert_eq!(small, 2 * HUGE);
        assert!(memory.claim(small, 1).is_err());
        assert_eq!(memory.alloc(FrameSize::Huge, ALL), None);
        assert!(memory.claim(1, 1).is_err(), "misaligned");
        assert!(memory.claim(0, 0).is_err(), "empty");
        assert!(memory.claim(0, u64::MAX).is_err(), "too long");
        assert!(memory.claim(1 << CHANNEL_LOG2, 1).is_err(), "no such channel");
        let refused = memory.claim(3 * HUGE, 1).unwrap_err().to_string();
        assert!(refused.contains("page tables are there"), "{refused}");
    }

    proptest! {
        #[test]
        fn frames_never_overlap(
            steps in proptest::collection::vec((0u8..4, any::<prop::sample::Index>()), 1..300)
        ) {
            let mut memory = CardMemory::new(2, 8, 4);
            let mut held: Vec<(u64, FrameSize)> = Vec::new();
            for (what, which) in steps {
                let size = if what == 0 { FrameSize::Huge } else { FrameSize::Small };
                if what == 3 && !held.is_empty() {
                    let (addr, size) = held.swap_remove(which.index(held.len()));
                    memory.free(addr, size);
                } else if let Some(addr) = memory.alloc(size, ALL) {
                    prop_assert_eq!(addr % size.bytes(), 0);
                    let overlap = |&(a, s): &(u64, FrameSize)| addr < a + s.bytes() && a < addr + size.bytes();
                    prop_assert!(!held.iter().any(overlap));
                    held.push((addr, size));
                }
            }
            for (addr, size) in held {
                memory.free(addr, size);
            }
            prop_assert!(memory.channels.iter().all(|c| c.blocks.iter().all(|b| *b == Block::Free)));
        }
    }
}
