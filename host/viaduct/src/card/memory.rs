// SPDX-License-Identifier: Apache-2.0
//! Allocation of the card's memory.
//!
//! A channel is an array of 2 MiB blocks; a block is free, one large frame, split into 512 small frames, reserved for
//! the user (named by a `card:` endpoint), part of a large allocation, or for page tables. Frames are allocated from a set of channels in
//! turn, so that neighbouring pages of a mapping are in different channels. An allocation is a range of one channel: small frames in a row of
//! one block, or blocks in a row.

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
    Allocated,
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

/// A range that the program has allocated.
#[derive(Debug)]
struct Allocation {
    len: u64, // whole pages
    users: usize,
    released: bool, // freed once nobody uses it
}

/// Allocator of the card's memory.
#[derive(Debug)]
pub struct CardMemory {
    channels: Vec<Channel>,
    next: BTreeMap<u16, usize>, // channel, for each set of them
    allocations: BTreeMap<u64, Allocation>,
}

impl CardMemory {
    /// All memory of `channels` channels of `mib` MiB each is free, but for page tables from block `tables` on in each.
    pub fn new(channels: usize, mib: u64, tables: u64) -> Self {
        let count = (mib << 20).min(1 << CHANNEL_LOG2) / HUGE;
        let mut blocks = vec![Block::Free; count as usize];
        blocks[(tables.min(count) as usize)..].fill(Block::Table);
        let channel = || Channel { blocks: blocks.clone(), split: BTreeMap::new(), next: 0 };

        Self {
            channels: (0..channels).map(|_| channel()).collect(),
            next: BTreeMap::new(),
            allocations: BTreeMap::new(),
        }
    }

    /// Allocates a frame in one of these channels, a bit for each, and returns its card address, or `None` if there is none.
    pub fn alloc(&mut self, size: FrameSize, channels: u16) -> Option<u64> {
        self.in_turn(channels, |channel| match size {
            FrameSize::Huge => channel.take_blocks(1, Block::Huge).map(|block| block as u64 * HUGE),
            FrameSize::Small => channel.take_small(1),
        })
    }

    /// The card address of what `take` takes, an offset in a channel, in one of these channels in turn.
    fn in_turn(&mut self, channels: u16, take: impl Fn(&mut Channel) -> Option<u64>) -> Option<u64> {
        let count = self.channels.len();
        for _ in 0..count {
            let next = self.next.entry(channels).or_default();
            let number = *next;
            *next = (number + 1) % count;
            if channels >> number & 1 == 0 {
                continue;
            }
            if let Some(offset) = self.channels.get_mut(number).and_then(&take) {
                return Some((number as u64) << CHANNEL_LOG2 | offset);
            }
        }
        None
    }

    /// Allocates a range of at least `len` bytes, whole pages of one channel, and returns its card address, or `None` if there is none.
    pub fn reserve(&mut self, len: u64) -> Option<u64> {
        let len = len.max(1).checked_next_multiple_of(PAGE)?;
        let addr = self.in_turn(u16::MAX, |channel| match len {
            ..=HUGE => channel.take_small((len / PAGE) as usize),
            _ => {
                let count = usize::try_from(len.div_ceil(HUGE)).ok()?;
                channel.take_blocks(count, Block::Allocated).map(|block| block as u64 * HUGE)
            }
        })?;
        self.allocations.insert(addr, Allocation { len, users: 0, released: false });
        Some(addr)
    }

    /// Frees an allocated range, or has it freed by the last of its users ([`CardMemory::claim`]). How many there are.
    pub fn release(&mut self, addr: u64) -> usize {
        let Some(allocation) = self.allocations.get_mut(&addr) else { return 0 };
        allocation.released = true;
        let users = allocation.users;
        self.free_unused(addr);
        users
    }

    /// A user of an allocated range has finished with it.
    pub fn unclaim(&mut self, addr: u64) {
        if let Some(allocation) = self.allocations.get_mut(&addr) {
            allocation.users -= 1;
            self.free_unused(addr);
        }
    }

    /// How many users an allocated range has.
    pub fn users(&self, addr: u64) -> usize {
        self.allocations.get(&addr).map_or(0, |allocation| allocation.users)
    }

    fn free_unused(&mut self, addr: u64) {
        let Some(&Allocation { len, users: 0, released: true }) = self.allocations.get(&addr) else { return };
        self.allocations.remove(&addr);
        let (number, offset) = split_addr(addr);
        let (channel, block) = (&mut self.channels[number], (offset / HUGE) as usize);
        match len {
            ..=HUGE => {
                let first = (offset % HUGE / PAGE) as usize;
                (first..first + (len / PAGE) as usize).for_each(|page| channel.free_small(block, page));
            }
            _ => channel.blocks[block..block + len.div_ceil(HUGE) as usize].fill(Block::Free),
        }
    }

    /// The allocated range that the range from `addr` on begins in, and whether it ends there too.
    fn allocation(&self, addr: u64, len: u64) -> Option<(u64, bool)> {
        let (&start, allocation) = self.allocations.range(..=addr).next_back()?;
        let begins = addr - start < allocation.len;
        let ends = addr.checked_add(len).is_some_and(|end| end <= start + allocation.len);
        begins.then_some((start, ends))
    }

    /// Whether there is a free frame of 2 MiB in one of these channels.
    pub fn has_huge(&self, channels: u16) -> bool {
        let mut all = self.channels.iter().enumerate();
        all.any(|(number, channel)| channels >> number & 1 != 0 && channel.blocks.contains(&Block::Free))
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

    /// Lets the user have a range: a part of an allocated one, whose address is returned for [`CardMemory::unclaim`], or one that is reserved
    /// for as long as the card is open. That may be reserved already, but must not overlap the library's own frames, nor an allocated range.
    /// The range is in one channel.
    pub fn claim(&mut self, addr: u64, len: u64) -> Result<Option<u64>> {
        let fail = |why: String| Error::BadCardRange { addr, len, why };
        if addr % PAGE != 0 {
            return Err(fail("the address is not a multiple of 4096".into()));
        }
        match self.allocation(addr, len) {
            None => {}
            Some((start, true)) if len > 0 => {
                if let Some(allocation) = self.allocations.get_mut(&start) {
                    allocation.users += 1;
                }
                return Ok(Some(start));
            }
            Some((start, _)) => {
                let size = self.allocations[&start].len;
                return Err(fail(format!(
                    "the range is empty or leaves the {size:#x} bytes that are allocated at {start:#x}"
                )));
            }
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
        if channel.blocks[blocks.clone()].iter().any(|b| !matches!(b, Block::Free | Block::User)) {
            let why =
                "pages of mapped files or allocated memory are there; use another range, or allocate one";
            return Err(fail(why.into()));
        }
        channel.blocks[blocks].fill(Block::User);
        Ok(None)
    }
}

impl Channel {
    /// Takes blocks in a row.
    fn take_blocks(&mut self, count: usize, to: Block) -> Option<usize> {
        let last = self.blocks.len().checked_sub(count)?;
        let free = |&b: &usize| self.blocks[b..b + count].iter().all(|block| *block == Block::Free);
        let first = (0..=last).map(|i| (self.next + i) % (last + 1)).find(free)?;
        self.next = (first + count) % self.blocks.len();
        self.blocks[first..first + count].fill(to);
        Some(first)
    }

    /// Takes small frames in a row of one block.
    fn take_small(&mut self, count: usize) -> Option<u64> {
        let open = self.split.iter().find_map(|(&block, split)| Some((block, split.run(count)?)));
        let (block, first) = match open {
            Some(found) => found,
            None => {
                let block = self.take_blocks(1, Block::Split)?;
                self.split.insert(block, Split { used: [0; SMALL_PER_BLOCK / 64], count: 0 });
                (block, 0)
            }
        };
        let split = self.split.get_mut(&block)?;
        (first..first + count).for_each(|page| split.used[page / 64] |= 1 << (page % 64));
        split.count += count;
        Some(block as u64 * HUGE + first as u64 * PAGE)
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

impl Split {
    /// The first of so many unused frames in a row.
    fn run(&self, count: usize) -> Option<usize> {
        if count > SMALL_PER_BLOCK - self.count {
            return None;
        }
        let mut first = 0;
        while first + count <= SMALL_PER_BLOCK {
            // A word at a time: single frames are allocated for every page that is loaded.
            let skipped = (self.used[first / 64] >> (first % 64)).trailing_ones() as usize;
            if skipped > 0 {
                first += skipped;
                continue;
            }
            let used = |&page: &usize| self.used[page / 64] >> (page % 64) & 1 != 0;
            match (first..first + count).rev().find(used) {
                None => return Some(first),
                Some(page) => first = page + 1,
            }
        }
        None
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

    #[test]
    fn an_allocation_is_checked_kept_while_in_use_and_given_back() {
        let mut memory = CardMemory::new(1, 16, 7);
        let small = memory.reserve(3 * PAGE - 5).unwrap();
        let large = memory.reserve(2 * HUGE + 1).unwrap();
        assert_eq!(large % HUGE, 0);
        assert_eq!(memory.claim(small + PAGE, 2 * PAGE).unwrap(), Some(small));
        for (addr, len) in
            [(small, 3 * PAGE + 1), (small, 0), (large + PAGE, 3 * HUGE), (small + PAGE, u64::MAX)]
        {
            let refused = memory.claim(addr, len).unwrap_err().to_string();
            assert!(refused.contains("allocated"), "{refused}");
        }
        // Neither a frame nor a range of the user is put where an allocation is.
        assert!(memory.claim(small + 3 * PAGE, 1).is_err());
        assert_eq!(memory.alloc(FrameSize::Small, ALL), Some(small + 3 * PAGE));
        assert_eq!(memory.release(small), 1);
        assert_eq!(memory.alloc(FrameSize::Small, ALL), Some(small + 4 * PAGE));
        memory.unclaim(small);
        assert_eq!(memory.alloc(FrameSize::Small, ALL), Some(small));
        assert_eq!(memory.release(large), 0);
        assert_eq!(memory.release(large), 0, "nothing is there any more");
        assert!(memory.reserve(6 * HUGE).is_some());
        assert_eq!(memory.reserve(HUGE + 1), None);
        assert_eq!(memory.reserve(u64::MAX), None);
    }

    proptest! {
        #[test]
        fn allocations_never_overlap(
            steps in proptest::collection::vec((0u64..6 * HUGE, any::<bool>(), any::<prop::sample::Index>()), 1..100)
        ) {
            let mut memory = CardMemory::new(2, 32, 15);
            let mut held: Vec<(u64, u64)> = Vec::new();
            for (len, take, which) in steps {
                // As many small ones as large ones.
                let len = if which.index(2) == 0 { len } else { len % (40 * PAGE) };
                if !take && !held.is_empty() {
                    memory.release(held.swap_remove(which.index(held.len())).0);
                } else if let Some(addr) = memory.reserve(len) {
                    let (number, offset) = split_addr(addr);
                    prop_assert!(addr % PAGE == 0 && number < 2 && offset + len <= 15 * HUGE);
                    prop_assert!(!held.iter().any(|&(a, l)| addr < a + l && a < addr + len.max(1)));
                    held.push((addr, len.max(1)));
                }
            }
            for (addr, _) in held {
                memory.release(addr);
            }
            prop_assert!(memory.allocations.is_empty());
            prop_assert!(memory.channels.iter().all(|c| c.blocks[..15].iter().all(|b| *b == Block::Free)));
        }

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
