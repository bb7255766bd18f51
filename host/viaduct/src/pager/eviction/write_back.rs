// SPDX-License-Identifier: Apache-2.0
//! Changed pages, back to their file or buffer.

use std::ops::Range;
use std::sync::Arc;

use crate::dispatch::Dispatcher;
use crate::error::Result;
use crate::pager::state::batch::{LASTING_LANE, OWN_LANE};
use crate::pager::state::region::BATCH;
use crate::pager::state::region::{HostFrames, Page, PageRef};
use crate::pager::state::space::BOUNCE;
use crate::pager::state::space::Space;
use crate::pager::state::store::Run;
use crate::protocol::desc::*;
use viaduct_pci::DmaAccess;

impl Space {
    /// Writes all changed pages of a region that are not mapped; earlier errors of pages that are retried now are dropped.
    pub(in crate::pager) fn write_all(&mut self, d: &Dispatcher, va: u64) -> Result<()> {
        if let Some(paged) = self.paged(va) {
            paged.failures.retain(|failure| !failure.again);
        }
        let changed = self.pages_of(va, Page::changed);
        self.write_back(d, &changed)
    }

    /// Writes pages, which are not mapped, to their file or buffer. Written pages are clean afterwards; failures are
    /// recorded with the region.
    pub(in crate::pager) fn write_back(&mut self, d: &Dispatcher, pages: &[PageRef]) -> Result<()> {
        let mut rest = pages;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(self.together(rest));
            self.fetch(d, now, OWN_LANE)?;
            self.store(now, OWN_LANE, |_| true);
            rest = later;
        }
        Ok(())
    }

    /// Copies pages to host memory.
    fn fetch(&mut self, d: &Dispatcher, pages: &[PageRef], lane: usize) -> Result<()> {
        let copies = self.fetches(d, pages, lane)?;
        for (copy, done) in copies.iter().zip(d.run("reading changed pages", &copies)?) {
            d.check(&copy.to_string(), &done)?;
        }
        Ok(())
    }

    /// How many of these pages, from the first on, are copied to host memory together.
    pub(in crate::pager) fn together(&self, pages: &[PageRef]) -> usize {
        let Some(&(start, _)) = pages.first() else { return 0 };
        let most = ((BOUNCE / self.regions[&start].page_bytes()) as usize).min(BATCH);
        pages.iter().take(most).take_while(|at| at.0 == start).count()
    }

    /// Commands that copy pages of a region, one behind the other, to host memory.
    pub(in crate::pager) fn fetches(
        &mut self,
        d: &Dispatcher,
        pages: &[PageRef],
        lane: usize,
    ) -> Result<Vec<Command>> {
        let bounce = match &self.bounce[lane] {
            Some(buffer) => buffer.iova(),
            None => {
                let buffer = Arc::new(d.card.dma_buffer(BOUNCE, DmaAccess::ReadWrite)?);
                self.bounce[lane].insert(buffer).iova()
            }
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
    /// source.
    pub(in crate::pager) fn store(
        &mut self,
        pages: &[PageRef],
        lane: usize,
        counts: impl Fn(&PageRef) -> bool,
    ) {
        let runs = self.runs(pages, lane, counts);
        self.write_here(runs);
    }

    /// Writes runs while the address space is locked.
    pub(in crate::pager) fn write_here(&mut self, runs: Vec<Run>) {
        for mut run in runs {
            run.write();
            self.note_written(run);
        }
    }

    /// Begins to write pages of a region, which are not mapped, to a file that is not waited for here. Until the end of that they are not
    /// evicted, and no region is removed or changes its pages; the app may access them, and write them again.
    pub(in crate::pager) fn begin_write(&mut self, d: &Dispatcher, pages: &[PageRef]) -> Result<Vec<Run>> {
        self.fetch(d, pages, LASTING_LANE)?;
        let runs = self.runs(pages, LASTING_LANE, |_| true);
        self.writing.extend(pages);
        Ok(runs)
    }

    /// Whether pages are being written by somebody who has not locked the address space.
    pub fn is_writing(&self) -> bool {
        !self.writing.is_empty()
    }

    /// They are not any more, and nobody knows whether they are in the file.
    pub fn give_up_writing(&mut self) {
        for (start, number) in std::mem::take(&mut self.writing) {
            if let Some(page) = self.page(start, number) {
                page.dirty = true;
            }
        }
    }

    /// Whether a page is neither evicted nor given up now.
    pub(in crate::pager) fn is_held(&self, at: &PageRef) -> bool {
        self.pinned.contains(at) || self.writing.contains(at)
    }

    /// Neighbouring pages of those that count, each time. They are as in the source from now on, unless the card writes them again or an error
    /// comes.
    pub(in crate::pager) fn runs(
        &mut self,
        pages: &[PageRef],
        lane: usize,
        counts: impl Fn(&PageRef) -> bool,
    ) -> Vec<Run> {
        let (mut at, mut runs) = (0, Vec::new());
        while let Some(&(start, first)) = pages.get(at) {
            let host = self.in_host_memory((start, first));
            let next = |(page, n): &(&PageRef, u64)| {
                **page == (start, *n) && counts(page) && self.in_host_memory(**page) == host
            };
            let count = pages[at..].iter().zip(first..).take_while(next).count();
            if count > 0 {
                runs.extend(self.run(start, first..first + count as u64, (!host).then_some((lane, at))));
            }
            at += count.max(1);
        }
        runs
    }

    fn in_host_memory(&self, at: PageRef) -> bool {
        self.page_ref(at).is_some_and(|page| matches!(page.place, Place::Host(_)))
    }

    /// Neighbouring pages, which were copied to the memory of a lane, the first of them as its nth page, or have always been in host memory.
    fn run(&mut self, start: u64, numbers: Range<u64>, copied: Option<(usize, usize)>) -> Option<Run> {
        let region = self.regions.get_mut(&start)?;
        let (step, valid, count) =
            (region.page_bytes(), region.valid(numbers.end - 1), numbers.end - numbers.start);
        let paged = region.paged_mut()?;
        let (buffer, offset) = match (copied, &paged.host) {
            (Some((lane, nth)), _) => (self.bounce[lane].as_ref()?, nth as u64 * step),
            (None, Some(HostFrames { buffer, offset })) => (buffer, offset + numbers.start * step),
            (None, None) => return None,
        };
        // What the source never had is not written.
        let position = paged.first + numbers.start * step;
        let len = ((count - 1) * step + valid).min(paged.end.saturating_sub(position));
        let (source, buffer) = (Arc::clone(&paged.source), Arc::clone(buffer));
        paged.pages.range_mut(numbers.clone()).for_each(|(_, page)| page.dirty = false);
        let (offset, len) = (offset as usize, len as usize);
        Some(Run::new(source, buffer, offset, len, position, (start, numbers)))
    }

    /// Pages were written, or could not be.
    pub(in crate::pager) fn note_written(&mut self, run: Run) {
        let ((start, numbers), failed) = run.end();
        self.stats.pages_out += numbers.end - numbers.start;
        let (Some(failed), Some(paged)) = (failed, self.paged(start)) else { return };
        paged.fail(failed.error, failed.again);
        if failed.again {
            paged.pages.range_mut(numbers.clone()).for_each(|(_, page)| page.dirty = true);
            // They may have been taken for clean meanwhile.
            paged.unclean.iter_mut().for_each(|unclean| unclean.extend(numbers.clone()));
        }
    }
}
