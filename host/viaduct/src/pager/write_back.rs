// SPDX-License-Identifier: Apache-2.0
//! Changed pages, back to their file or buffer.

use crate::error::Result;
use crate::pager::region::BATCH;
use crate::pager::region::{HostFrames, Page, PageRef};
use crate::pager::space::BOUNCE;
use crate::pager::space::Space;
use crate::protocol::desc::*;
use crate::slot::dispatch::Dispatcher;
use viaduct_pci::DmaAccess;

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
        while let Some(&(start, first)) = rest.first() {
            let step = self.regions[&start].page_bytes();
            let most = ((BOUNCE / step) as usize).min(BATCH);
            let run = rest.iter().zip(first..).take(most).take_while(|(at, n)| **at == (start, *n)).count();
            self.write_run(d, start, first, run as u64)?;
            rest = &rest[run..];
        }
        Ok(())
    }

    /// Writes `count` neighbouring pages of a region.
    pub(super) fn write_run(&mut self, d: &Dispatcher, start: u64, first: u64, count: u64) -> Result<()> {
        if self.bounce.is_none() {
            self.bounce = Some(d.card.dma_buffer(BOUNCE, DmaAccess::ReadWrite)?);
        }
        let bounce = self.bounce.as_ref().expect("just allocated");
        let region = self.regions.get_mut(&start).expect("its pages are resident");
        let (step, valid) = (region.page_bytes(), region.valid(first + count - 1));
        let len = (count - 1) * step + valid;
        let Some(paged) = region.paged_mut() else { return Ok(()) };
        let mut copies = Vec::new();
        for (i, (_, page)) in paged.pages.range(first..first + count).enumerate() {
            if let Place::Card(addr) = page.place {
                copies.push(Command::c2h(bounce.iova() + i as u64 * step, addr, step as u32));
            }
        }
        for (copy, done) in copies.iter().zip(d.run("reading changed pages", &copies)?) {
            d.check(&copy.to_string(), &done)?;
        }
        let (buffer, offset) = match &paged.host {
            Some(HostFrames { buffer, offset }) => (&**buffer, offset + first * step),
            None => (bounce, 0),
        };
        // What the source never had is not written.
        let position = paged.first + first * step;
        let len = len.min(paged.end.saturating_sub(position));
        let again = match paged.source.write(buffer, offset as usize, len as usize, position) {
            Ok(()) => false,
            Err(failure) => {
                let again = failure.again;
                paged.fail(failure.error, again);
                again
            }
        };
        for (_, page) in paged.pages.range_mut(first..first + count) {
            page.dirty = again;
        }
        self.stats.pages_out += count;
        Ok(())
    }
}
