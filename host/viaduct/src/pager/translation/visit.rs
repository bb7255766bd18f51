// SPDX-License-Identifier: Apache-2.0
//! Asks the card about pages that it holds, or takes them from it.

use crate::dispatch::Dispatcher;
use crate::error::Result;
use crate::pager::state::batch::Group;
use crate::pager::state::region::{BATCH, PageRef};
use crate::pager::state::space::Space;
use crate::protocol::desc::*;

impl Space {
    /// Maps the first pages of a window.
    pub(in crate::pager) fn enter_window(&mut self, d: &Dispatcher, start: u64) -> Result<()> {
        let pages = self.regions[&start].window(0);
        let composed = self.compose(
            d,
            &[Group { start, pages, write: true, copies: Vec::new(), staged: Vec::new() }],
            &[],
        );
        let done = d.run("mapping pages", &composed.commands)?;
        self.land(d);
        let entered = self.note(d, &composed, &done)?;
        entered.error.map_or(Ok(()), Err)
    }

    /// Removes translations from the card and records the status of their pages.
    pub(in crate::pager) fn leave(&mut self, d: &Dispatcher, pages: &[PageRef]) -> Result<()> {
        for batch in pages.chunks(BATCH) {
            let unmaps: Vec<_> = batch.iter().map(|&at| self.command(at, Command::unmap)).collect();
            let done = d.run("unmapping pages", &unmaps).inspect_err(|_| self.assume_written(batch))?;
            // Batches that are under way may have displaced them before: they have told so by now.
            self.land(d);
            let mut result = Ok(());
            for (&(start, number), done) in batch.iter().zip(done) {
                // What the card says of the others counts all the same: it says it once.
                let found = self.check_found(d, &done);
                // What is said of a page whose entry is damaged is a guess.
                let written = done.has(CPL_DIRTY) && self.regions[&start].may_be_written(number);
                self.stats.damaged += u64::from(done.has(CPL_DAMAGED));
                if let (Ok(()), Some(page)) = (&found, self.page(start, number)) {
                    page.mapped = false;
                    page.since = 0;
                    page.accessed |= done.has(CPL_ACCESSED);
                    page.dirty |= written;
                }
                result = result.and(found);
            }
            result?;
        }
        Ok(())
    }

    /// What the card says of these pages is lost: it says once that a page was written.
    pub(in crate::pager) fn assume_written(&mut self, pages: &[PageRef]) {
        for &(start, number) in pages {
            let written = self.regions[&start].may_be_written(number);
            if let Some(page) = self.page(start, number) {
                page.dirty |= written;
            }
        }
    }

    /// Collects the accessed bits of pages from the card. Returns the pages that were written since they were mapped.
    pub(in crate::pager) fn look(&mut self, d: &Dispatcher, pages: &[PageRef]) -> Result<Vec<PageRef>> {
        let mut written = Vec::new();
        for batch in pages.chunks(BATCH) {
            let scans: Vec<_> = batch.iter().map(|&at| self.command(at, Command::scan)).collect();
            let done = d.run("scanning for changed and idle pages", &scans)?;
            self.land(d);
            let mut result = Ok(());
            for (&at, done) in batch.iter().zip(done) {
                if let Some(page) = self.page(at.0, at.1) {
                    page.accessed |= done.has(CPL_ACCESSED);
                }
                if done.has(CPL_DIRTY) {
                    written.push(at);
                }
                result = result.and(self.check_found(d, &done));
            }
            result?;
        }
        Ok(written)
    }

    /// A command about one page.
    pub(in crate::pager) fn command(
        &self,
        (start, number): PageRef,
        make: fn(u64, bool) -> Command,
    ) -> Command {
        let region = &self.regions[&start];
        make(start + number * region.page_bytes(), region.huge()).in_table(region.table)
    }

    /// A missing translation is no error: the card evicts translations by itself.
    fn check_found(&self, d: &Dispatcher, done: &Completion) -> Result<()> {
        if done.status == Status::NotFound { Ok(()) } else { d.check("handling a page", done) }
    }
}
