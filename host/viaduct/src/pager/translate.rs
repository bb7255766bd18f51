// SPDX-License-Identifier: Apache-2.0
//! Translations: enters pages into the card's TLBs, removes them, and collects what the card has noted about them.

use crate::error::{Error, Result};
use crate::pager::region::BATCH;
use crate::pager::region::PageRef;
use crate::pager::space::Space;
use crate::protocol::desc::*;
use crate::protocol::regs::{VIA_SLOT_CTRL, VIA_SLOT_CTRL_ISOLATE_MASK};
use crate::slot::dispatch::Dispatcher;

/// Pages of one region that enter the card's TLBs together, from the first on.
pub(super) struct Group {
    pub(super) start: u64,
    pub(super) pages: Vec<(u64, Place)>,
    /// Copies that fill them.
    pub(super) copies: Vec<Command>,
}

/// What a command of a batch is for.
enum Part {
    /// Fills a page.
    Copy(PageRef),
    Map(PageRef),
    Deny,
}

/// How a batch ended, apart from translations, which are recorded with their pages.
#[derive(Default)]
pub(super) struct Entered {
    /// Pages that hold bytes of another owner, because the copy failed that should have filled them.
    pub(super) spoiled: Vec<PageRef>,
    /// Denials that the card has answered, by their place in the list.
    pub(super) denied: Vec<usize>,
    /// The first error.
    pub(super) error: Option<Error>,
}

impl Space {
    /// Fills and maps pages, then denies accesses, in one batch. Each command's completion counts, however others end. `Err`: the card
    /// did not answer, and nothing is known.
    pub(super) fn enter(&mut self, d: &Dispatcher, groups: &[Group], denials: &[u64]) -> Result<Entered> {
        let mut commands = Vec::new();
        let mut parts = Vec::new();
        for Group { start, pages, copies } in groups {
            let region = &self.regions[start];
            let (prot, huge, step, table) = (region.prot, region.huge(), region.page_bytes(), region.table);
            commands.extend(copies);
            parts.extend(pages.iter().take(copies.len()).map(|&(n, _)| Part::Copy((*start, n))));
            // Backwards: the faulting page comes last, so that no other page evicts it.
            for &(n, place) in pages.iter().rev() {
                commands.push(Command::map(start + n * step, place, prot, huge).in_table(table));
                parts.push(Part::Map((*start, n)));
            }
            // Upon any error below, the card may hold them.
            for &(number, _) in pages {
                if let Some(page) = self.page(*start, number) {
                    page.mapped = true;
                    page.since = 0;
                }
            }
        }
        // Denials come last: on a page with a right that others have, only what still lacks one is denied.
        commands.extend(denials.iter().map(|&va| Command::deny(va)));
        parts.extend(denials.iter().map(|_| Part::Deny));
        // The card maps only after all earlier copies are complete.
        let done = d.run("mapping pages", &commands)?;
        let mut entered = Entered::default();
        for ((part, command), done) in parts.iter().zip(&commands).zip(&done) {
            if let (Part::Copy(at), false) = (part, done.status == Status::Ok) {
                entered.spoiled.push(*at);
                entered.error.get_or_insert_with(|| Error::Command {
                    slot: d.slot,
                    what: command.to_string(),
                    status: done.status,
                });
            }
        }
        if !entered.spoiled.is_empty() {
            // They are mapped by now.
            d.card.write_slot(d.slot, VIA_SLOT_CTRL, VIA_SLOT_CTRL_ISOLATE_MASK)?;
        }
        let mut denial = 0;
        for (part, done) in parts.iter().zip(&done) {
            match *part {
                Part::Copy(_) => {}
                Part::Map((start, number)) => {
                    if done.has(CPL_VICTIM) {
                        self.displaced(done);
                    }
                    // It may have evicted an older translation of itself.
                    if let Some(page) = self.page(start, number) {
                        page.mapped = true;
                        page.since = if done.status == Status::Ok { done.time } else { 0 };
                    }
                    if let Err(error) = d.check("mapping a page", done) {
                        entered.error.get_or_insert(error);
                    }
                }
                Part::Deny => {
                    // A denied fault no longer exists if the slot was reset meanwhile.
                    entered.denied.push(denial);
                    denial += 1;
                }
            }
        }
        Ok(entered)
    }

    pub(super) fn enter_window(&mut self, d: &Dispatcher, start: u64, number: u64) -> Result<()> {
        let pages = self.regions[&start].window(number);
        let entered = self.enter(d, &[Group { start, pages, copies: Vec::new() }], &[])?;
        entered.error.map_or(Ok(()), Err)
    }

    /// A translation left the card's TLBs; its page stays resident.
    pub(super) fn displaced(&mut self, done: &Completion) {
        let Some((start, region)) = self.find(done.info) else { return };
        if region.huge() != done.has(CPL_VICTIM_HUGE) {
            return;
        }
        let number = (done.info - start) / region.page_bytes();
        if let Some(page) = self.page(start, number) {
            page.mapped = false;
            page.since = 0;
            page.accessed |= done.has(CPL_VICTIM_ACCESSED);
            page.dirty |= done.has(CPL_VICTIM_DIRTY);
        }
    }

    /// Removes translations from the card and records the status of their pages.
    pub(super) fn leave(&mut self, d: &Dispatcher, pages: &[PageRef]) -> Result<()> {
        for batch in pages.chunks(BATCH) {
            let unmaps: Vec<_> = batch.iter().map(|&at| self.command(at, Command::unmap)).collect();
            let mut result = Ok(());
            for (&(start, number), done) in batch.iter().zip(d.run("unmapping pages", &unmaps)?) {
                // What the card says of the others counts all the same: it says it once.
                let found = self.check_found(d, &done);
                // What is said of a page whose entry is damaged is a guess.
                let written = done.has(CPL_DIRTY) && self.regions[&start].prot.write;
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

    /// Collects the accessed bits of pages from the card. Returns the pages that were written since they were mapped.
    pub(super) fn look(&mut self, d: &Dispatcher, pages: &[PageRef]) -> Result<Vec<PageRef>> {
        let mut written = Vec::new();
        for batch in pages.chunks(BATCH) {
            let scans: Vec<_> = batch.iter().map(|&at| self.command(at, Command::scan)).collect();
            let mut result = Ok(());
            for (&at, done) in batch.iter().zip(d.run("scanning for changed and idle pages", &scans)?) {
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
    pub(super) fn command(&self, (start, number): PageRef, make: fn(u64, bool) -> Command) -> Command {
        let region = &self.regions[&start];
        make(start + number * region.page_bytes(), region.huge()).in_table(region.table)
    }

    /// A missing translation is no error: the card evicts translations by itself.
    pub(super) fn check_found(&self, d: &Dispatcher, done: &Completion) -> Result<()> {
        if done.status == Status::NotFound { Ok(()) } else { d.check("handling a page", done) }
    }
}
