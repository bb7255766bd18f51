// SPDX-License-Identifier: Apache-2.0
//! Changed pages, back to their file or buffer.

use std::ops::Range;

use crate::dispatch::Dispatcher;
use crate::error::Result;
use crate::pager::batch::GROUPS;
use crate::pager::region::BATCH;
use crate::pager::region::{HostFrames, Page, PageRef};
use crate::pager::space::BOUNCE;
use crate::pager::space::Space;
use crate::protocol::desc::*;
use viaduct_pci::DmaAccess;

/// The memory of those who wait for the copies.
const OWN_LANE: usize = GROUPS;

impl Space {
    /// Writes all changed pages of a region that are not mapped; earlier errors of pages that are retried now are dropped.
    pub(super) fn write_all(&mut self, d: &Dispatcher, va: u64) -> Result<()> {
        if let Some(paged) = self.paged(va) {
            paged.failures.retain(|failure| !failure.again);
        }
        let changed = self.pages_of(va, Page::changed);
        self.write_back(d, &changed)
    }

    /// Writes pages, which are not mapped, to their file or buffer. Written pages are clean afterwards; failures are
    /// recorded with the region.
    pub(super) fn write_back(&mut self, d: &Dispatcher, pages: &[PageRef]) -> Result<()> {
        let mut rest = pages;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(self.together(rest));
            let copies = self.fetches(d, now, OWN_LANE)?;
            for (copy, done) in copies.iter().zip(d.run("reading changed pages", &copies)?) {
                d.check(&copy.to_string(), &done)?;
            }
            self.store(now, OWN_LANE, |_| true);
            rest = later;
        }
        Ok(())
    }

    /// How many of these pages, from the first on, are copied to host memory together.
    pub(super) fn together(&self, pages: &[PageRef]) -> usize {
        let Some(&(start, _)) = pages.first() else { return 0 };
        let most = ((BOUNCE / self.regions[&start].page_bytes()) as usize).min(BATCH);
        pages.iter().take(most).take_while(|at| at.0 == start).count()
    }

    /// Commands that copy pages of a region, one behind the other, to host memory.
    pub(super) fn fetches(&mut self, d: &Dispatcher, pages: &[PageRef], lane: usize) -> Result<Vec<Command>> {
        let bounce = match &self.bounce[lane] {
            Some(buffer) => buffer.iova(),
            None => self.bounce[lane].insert(d.card.dma_buffer(BOUNCE, DmaAccess::ReadWrite)?).iova(),
        };
        let mut copies = Vec::new();
        for (i, at) in pages.iter().enumerate() {
            let step = self.regions[&at.0].page_bytes();
            if let Some(&Page { place: Place::Card(addr), .. }) = self.page_ref(*at) {
                copies.push(Command::c2h(bounce + i as u64 * step, addr, step as u32));
            }
        }
        Ok(copies)
    }

    /// Writes those of these pages of a region, which have been copied to host memory or have always been there, that count to their
    /// source; neighbouring ones together.
    pub(super) fn store(&mut self, pages: &[PageRef], lane: usize, counts: impl Fn(&PageRef) -> bool) {
        let mut at = 0;
        while let Some(&(start, first)) = pages.get(at) {
            let host = self.in_host_memory((start, first));
            let next = |(page, n): &(&PageRef, u64)| {
                **page == (start, *n) && counts(page) && self.in_host_memory(**page) == host
            };
            let run = pages[at..].iter().zip(first..).take_while(next).count();
            if run > 0 {
                self.store_run(start, first..first + run as u64, (!host).then_some((lane, at)));
            }
            at += run.max(1);
        }
    }

    fn in_host_memory(&self, at: PageRef) -> bool {
        self.page_ref(at).is_some_and(|page| matches!(page.place, Place::Host(_)))
    }

    /// Writes neighbouring pages, which were copied to the memory of a lane, the first of them as its nth page, or have always been in host
    /// memory.
    fn store_run(&mut self, start: u64, numbers: Range<u64>, copied: Option<(usize, usize)>) {
        let Some(region) = self.regions.get_mut(&start) else { return };
        let (step, valid, count) =
            (region.page_bytes(), region.valid(numbers.end - 1), numbers.end - numbers.start);
        let Some(paged) = region.paged_mut() else { return };
        let (buffer, offset) = match (copied, &paged.host) {
            (Some((lane, nth)), _) => match &self.bounce[lane] {
                Some(bounce) => (bounce, nth as u64 * step),
                None => return,
            },
            (None, Some(HostFrames { buffer, offset })) => (&**buffer, offset + numbers.start * step),
            (None, None) => return,
        };
        // What the source never had is not written.
        let position = paged.first + numbers.start * step;
        let len = ((count - 1) * step + valid).min(paged.end.saturating_sub(position));
        let again = match paged.source.write(buffer, offset as usize, len as usize, position) {
            Ok(()) => false,
            Err(failure) => {
                let again = failure.again;
                paged.fail(failure.error, again);
                again
            }
        };
        for (_, page) in paged.pages.range_mut(numbers) {
            page.dirty = again;
        }
        self.stats.pages_out += count;
    }
}
