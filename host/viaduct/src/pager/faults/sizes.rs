// SPDX-License-Identifier: Apache-2.0
//! Page sizes that follow use.
//!
//! A mapping of 2 MiB and more has pages of 2 MiB, unless the program has chosen: a fault loads much, and the TLBs hold all. But while
//! card memory has no room for another one, and the app accesses in random order, each access moves 2 MiB for a few bytes. Then the block of
//! 2 MiB that it needs gets pages of 4 KiB (demotion). It gets one of 2 MiB again (promotion) when there is room for several, or when the
//! app comes to it in order. A block changes while none of its pages is resident: they are written back before, so nothing is copied in
//! card memory.

use std::sync::Arc;

use crate::card::memory::FrameSize;
use crate::dispatch::Dispatcher;
use crate::error::{Error, Result};
use crate::pager::state::advice::Locality;
use crate::pager::state::ahead::Ahead;
use crate::pager::state::region::PageRef;
use crate::pager::state::space::Space;
use crate::protocol::desc::{Event, HUGE, PAGE};

/// A block gets a page of 2 MiB again if this part of the slot's memory is free, and at least so many bytes. Frames that eviction has just
/// made free are fewer.
const FREE_PART: u64 = 4;
const FREE: u64 = 2 * HUGE;

impl Space {
    /// Chooses the page sizes of blocks that faults need.
    pub(in crate::pager) fn choose_sizes(&mut self, d: &Dispatcher, faults: &[Event]) -> Result<()> {
        faults.iter().try_for_each(|fault| self.choose_size(d, fault.va))
    }

    fn choose_size(&mut self, d: &Dispatcher, va: u64) -> Result<()> {
        let Some((start, region)) = self.find(va) else { return Ok(()) };
        let Some(paged) = region.paged() else { return Ok(()) };
        let Some(auto) = paged.auto.as_ref().map(Arc::clone) else { return Ok(()) };
        let number = (va - start) / region.page_bytes();
        let block = va - va % HUGE;
        // Of a page that the source ends in, the rest can be accessed: not so with pages of 4 KiB.
        let whole = block >= start
            && block + HUGE <= start + region.len
            && paged.first + (block + HUGE - start) <= paged.end;
        let under_way = |at| self.reads.has(at) || self.batches.iter().any(|batch| batch.taken.contains(&at));
        // Pages that are being written are named by their region, which stays as it is.
        let written = self.writing.iter().any(|at| at.0 == start);
        if !whole || written || paged.pages.contains_key(&number) || under_way((start, number)) {
            return Ok(());
        }
        let (owner, placement) = (paged.owner, paged.placement);
        let free = self.room(d).saturating_sub(self.resident);
        let room = |bytes| free >= bytes && d.card.has_huge_frame(placement);
        if region.huge() {
            let in_order = paged.locality == Locality::Sequential
                || auto.follows(block)
                || self.arrives_at(block, owner);
            if in_order || region.overflows() || room(HUGE) {
                auto.loads(block..block + HUGE);
                return Ok(());
            }
            self.demote(d, block)
        } else if paged.source.is_private() || paged.failures.iter().any(|failure| failure.again) {
            // Pages that were changed and left outlive the end of a file that shrinks, each for itself. And one that could not be written
            // back would stay again.
            Ok(())
        } else if room(FREE.max(self.room(d) / FREE_PART))
            || paged.pages.is_empty() && self.arrives_at(block, owner)
        {
            auto.loads(block..block + HUGE);
            self.promote(d, block)
        } else {
            Ok(())
        }
    }

    /// Whether the app has gone in order through the block of small pages before this one, up to its end.
    fn arrives_at(&self, block: u64, owner: u64) -> bool {
        let Some((&start, before)) = self.regions.range(..block).next_back() else { return false };
        let paged = before.paged().filter(|paged| paged.owner == owner && !before.huge());
        start + before.len == block && paged.is_some_and(|paged| paged.ahead.in_order(before.page_count()))
    }

    /// The block at this address gets pages of 4 KiB, none of which is resident.
    pub(in crate::pager) fn demote(&mut self, d: &Dispatcher, block: u64) -> Result<()> {
        if !self.empty(d, block)? {
            return Ok(());
        }
        let Some(region) = self.regions.get(&block) else { return Ok(()) };
        let bytes = region.len;
        let mapping = region.paged().and_then(|paged| paged.auto.as_ref()).map_or(bytes, |auto| auto.bytes);
        // As for any mapping of small pages: with the table if the TLBs do not hold all.
        let mut table = mapping > d.card.info().held(FrameSize::Small) * PAGE && !self.table_failed;
        if table {
            self.open_table(d, mapping)?;
            table = self.fits_table(block, bytes);
        }
        if let Some(region) = self.regions.get_mut(&block) {
            (region.size, region.table) = (FrameSize::Small, table);
        }
        self.stats.demoted += 1;
        Ok(())
    }

    /// The block at this address gets a page of 2 MiB, which is not resident.
    fn promote(&mut self, d: &Dispatcher, block: u64) -> Result<()> {
        if !self.empty(d, block)? {
            return Ok(());
        }
        let Some(region) = self.regions.get_mut(&block) else { return Ok(()) };
        (region.size, region.table) = (FrameSize::Huge, false);
        self.stats.promoted += 1;
        Ok(())
    }

    /// Makes the block at this address a region whose pages are not resident: changed ones are written back. `false` if a page stays.
    fn empty(&mut self, d: &Dispatcher, block: u64) -> Result<bool> {
        // Pages are named by their region: nothing that names them may be under way.
        self.settle(d);
        self.look_after(d)?;
        self.split(block)?;
        self.split(block + HUGE)?;
        let pages: Vec<PageRef> = self.pages_of(block, |_| true);
        self.clock.retain(|(region, _)| region != block);
        self.drop_pages(d, &pages)?;
        let Some(paged) = self.paged(block) else { return Ok(false) };
        paged.ahead = Ahead::new();
        Ok(paged.pages.is_empty())
    }

    /// Lets a mapping end or begin at `at`, a multiple of 4 KiB: if that is inside a page of 2 MiB, its block gets pages of 4 KiB.
    pub(in crate::pager) fn split_page(&mut self, d: &Dispatcher, at: u64) -> Result<()> {
        let Some((start, region)) = self.find(at) else { return Ok(()) };
        let block = at - (at - start) % HUGE;
        if !region.huge() || region.paged().is_none() || at == block {
            return self.split(at);
        }
        if at % PAGE != 0 {
            return Err(Error::Invalid(format!("{at:#x} is not a multiple of {PAGE}")));
        }
        self.demote(d, block)?;
        match self.regions.get(&block).is_some_and(|region| !region.huge()) {
            true => self.split(at),
            false => Err(self.kept(block)),
        }
    }

    /// Why a page of a block could not be written back.
    fn kept(&mut self, block: u64) -> Error {
        let failure = self.paged(block).and_then(|paged| paged.take_failure());
        failure.unwrap_or_else(|| Error::Invalid(format!("the page of 2 MiB at {block:#x} is in use")))
    }
}
