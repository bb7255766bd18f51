// SPDX-License-Identifier: Apache-2.0
//! Eviction ahead of need: while pages are short, some frames are made free before a fault wants them. The commands for that are under
//! way beside those of faults.

use std::ops::Range;
use std::sync::Weak;

use crate::dispatch::Dispatcher;
use crate::error::Result;
use crate::pager::eviction::replace::EVICT;
use crate::pager::state::advice::Keep;
use crate::pager::state::batch::{GROUPS, Leaving, Stage};
use crate::pager::state::region::{Page, PageRef, Use};
use crate::pager::state::space::Space;
use crate::pager::state::store::{Run, Store};
use crate::protocol::desc::*;

/// Part of the frames that are kept free, and the fewest and most bytes that this is worth while for.
const PART: u64 = 8;
const FEWEST: u64 = 8 * PAGE;
const MOST: u64 = 128 * PAGE;
/// Fewest and most small pages of a group.
const SMALL: u64 = 8;
const LARGE: u64 = 32;
/// Changed pages of a group that are copied at a time: the card has few copies of a slot under way, and those of faults are among them.
const PIECE: usize = 4;

impl Space {
    /// Goes on with eviction ahead of need, as far as that is possible without waiting.
    pub(in crate::pager) fn retire(&mut self, d: &Dispatcher) -> Result<()> {
        self.advance(d)?;
        while self.leaving.len() < GROUPS && !self.all_in_use() {
            let most = self.wanted(d);
            if most == 0 || !self.retire_some(d, most)? {
                break;
            }
            self.advance(d)?;
        }
        Ok(())
    }

    /// Goes on with groups whose commands have ended.
    pub(in crate::pager) fn advance(&mut self, d: &Dispatcher) -> Result<()> {
        d.lock().stored = false;
        let (mut at, mut result) = (0, Ok(()));
        while let Some(leaving) = self.leaving.get(at) {
            let done = match &leaving.store {
                Some(store) => store.has_ended().then(Vec::new),
                None => d.lock().take_all(&leaving.tags),
            };
            let Some(done) = done else {
                at += 1;
                continue;
            };
            if let Some(leaving) = self.leaving.remove(at) {
                self.land(d);
                // The others go on: nothing tells of their ends again.
                result = result.and(self.retired(d, leaving, done));
            }
        }
        result
    }

    /// Whether all pages have been looked at, twice, and none could leave: they are not asked again before one has been evicted.
    pub(in crate::pager) fn all_in_use(&self) -> bool {
        self.futile > 2 * self.clock.len() + EVICT
    }

    /// Whether all pages were also to be evicted, and stayed, as they cannot be written or are wanted again.
    pub(in crate::pager) fn all_stay(&self) -> bool {
        self.futile > 4 * self.clock.len() + EVICT
    }

    /// Waits until no pages are leaving.
    pub(in crate::pager) fn finish_retiring(&mut self, d: &Dispatcher) -> Result<()> {
        let mut result = Ok(());
        while let Some(leaving) = self.leaving.pop_front() {
            result = result.and(self.finish_stage(d, leaving));
        }
        self.watch(d);
        result
    }

    /// Waits for the commands of a group and goes on with it.
    fn finish_stage(&mut self, d: &Dispatcher, leaving: Leaving) -> Result<()> {
        if leaving.store.is_some() {
            return self.retired(d, leaving, Vec::new());
        }
        match d.collect("evicting pages", &leaving.tags) {
            Ok(done) => {
                self.land(d);
                self.retired(d, leaving, done)
            }
            Err(error) => {
                if leaving.stage == Stage::Unmapped {
                    self.assume_written(&leaving.pages);
                }
                self.stay(leaving);
                Err(error)
            }
        }
    }

    /// Small pages to be evicted now. Of pages that are looked at, half are expected to be in use.
    fn wanted(&self, d: &Dispatcher) -> usize {
        let spare = (self.room(d) / PART).min(MOST);
        let free = self.room(d).saturating_sub(self.resident);
        let of = |leaving: &Leaving| {
            let bytes: u64 = leaving.pages.iter().map(|at| self.regions[&at.0].page_bytes()).sum();
            if leaving.stage == Stage::Asked { bytes / 2 } else { bytes }
        };
        let coming: u64 = self.leaving.iter().map(of).sum();
        let missing = spare.saturating_sub(free + coming) / PAGE;
        match self.short && spare >= FEWEST && missing > 0 {
            true => missing.clamp(SMALL, LARGE) as usize,
            false => 0,
        }
    }

    /// Begins with pages of the lowest class that has any; `false` if none can leave.
    fn retire_some(&mut self, d: &Dispatcher, most: usize) -> Result<bool> {
        let Some(keep) = Keep::ALL.into_iter().find(|&keep| !self.clock.queue(keep).is_empty()) else {
            return Ok(false);
        };
        let free = |&lane: &usize| self.leaving.iter().all(|leaving| leaving.lane != lane);
        let Some(lane) = (0..GROUPS).find(free) else { return Ok(false) };
        let pages = self.oldest(keep, most);
        if pages.is_empty() {
            return Ok(false);
        }
        let leaving = Leaving::new(pages, keep, Stage::Asked, lane);
        match keep {
            Keep::Low => self.unmap_leaving(d, leaving)?,
            Keep::Overflow | Keep::Normal | Keep::Long => {
                let mapped = |at: &&PageRef| self.page_ref(**at).is_some_and(|page| page.mapped);
                let mapped: Vec<PageRef> = leaving.pages.iter().filter(mapped).copied().collect();
                let scans: Vec<_> = mapped.iter().map(|&at| self.command(at, Command::scan)).collect();
                let (asked, rest): (Vec<_>, Vec<_>) =
                    leaving.pages.iter().copied().partition(|at| mapped.contains(at));
                let pages: Vec<PageRef> = [asked, rest].concat();
                self.submit_leaving(d, Leaving { pages, ..leaving }, &scans)?;
            }
        }
        Ok(true)
    }

    pub(in crate::pager) fn unmap_leaving(&mut self, d: &Dispatcher, leaving: Leaving) -> Result<()> {
        let (mapped, rest): (Vec<_>, Vec<_>) =
            leaving.pages.iter().copied().partition(|&at| self.page_ref(at).is_some_and(|page| page.mapped));
        let unmaps: Vec<_> = mapped.iter().map(|&at| self.command(at, Command::unmap)).collect();
        self.departing.extend(leaving.pages.iter().copied());
        let pages = [mapped, rest].concat();
        self.submit_leaving(d, Leaving { pages, stage: Stage::Unmapped, ..leaving }, &unmaps)
    }

    fn submit_leaving(&mut self, d: &Dispatcher, mut leaving: Leaving, commands: &[Command]) -> Result<()> {
        match d.submit(commands) {
            Ok(tags) => {
                leaving.tags = tags;
                self.leaving.push_back(leaving);
                Ok(())
            }
            Err(error) => {
                self.stay(leaving);
                Err(error)
            }
        }
    }

    fn stay(&mut self, leaving: Leaving) {
        for at in leaving.pages {
            self.departing.remove(&at);
            self.clock.push(at, leaving.keep);
        }
    }

    /// Its commands, which concern the first of its pages, have ended, and those of batches before them have been noted.
    fn retired(&mut self, d: &Dispatcher, leaving: Leaving, done: Vec<Completion>) -> Result<()> {
        match leaving.stage {
            Stage::Fetched(from, count) => return self.fetched(d, leaving, from..from + count, &done),
            Stage::Stored(to) => return self.stored(d, leaving, to),
            Stage::Asked | Stage::Unmapped => {}
        }
        let Leaving { mut pages, keep, stage, lane, .. } = leaving;
        let unmapped = stage == Stage::Unmapped;
        for (&at, done) in pages.iter().zip(&done) {
            let leaves = unmapped && self.departing.contains(&at);
            // What is said of a page whose entry is damaged is a guess.
            let written = unmapped && done.has(CPL_DIRTY) && self.regions[&at.0].may_be_written(at.1);
            self.stats.damaged += u64::from(unmapped && done.has(CPL_DAMAGED));
            if let Some(page) = self.page(at.0, at.1) {
                page.accessed |= done.has(CPL_ACCESSED);
                page.dirty |= written;
                if leaves {
                    page.mapped = false;
                    page.since = 0;
                }
            }
        }
        if unmapped {
            // Changed ones first.
            pages.sort_unstable_by_key(|&at| (!self.page_ref(at).is_some_and(Page::changed), at));
            return self.fetch_next(d, Leaving::new(pages, keep, stage, lane), 0);
        }
        let (mut idle, looked) = (Vec::new(), pages.len());
        let (loaded, frames) = (self.clock.loaded(), self.frames_held() + looked);
        // Frames are needed now: none is free, and no others leave.
        let leave = self.leaving.iter().any(|leaving| leaving.stage != Stage::Asked);
        let needed = self.resident >= self.room(d) && !leave;
        let mut uses = Vec::new();
        for at in pages {
            let held = self.is_held(&at);
            let Some(page) = self.page(at.0, at.1) else { continue };
            let found = page.look(loaded, frames);
            uses.push((at, if held { Use::Current } else { found }));
        }
        // Then some go of which only that much is known, that they were used at some time, if there are no better ones: a fault would wait
        // until all others were looked at too.
        let none = uses.iter().all(|&(_, found)| found != Use::Over);
        let mut some = if needed && none { SMALL } else { 0 };
        for (at, found) in uses {
            let goes = found == Use::Over || found == Use::Some && some > 0;
            some -= u64::from(goes && none);
            match goes {
                true => idle.push(at),
                false => self.clock.push(at, keep),
            }
        }
        match idle.is_empty() {
            true => {
                self.futile += looked;
                Ok(())
            }
            false => self.unmap_leaving(d, Leaving::new(idle, keep, Stage::Asked, lane)),
        }
    }

    /// Begins to copy changed pages, from one of those that are leaving on, to host memory; if there are none, their frames become free.
    fn fetch_next(&mut self, d: &Dispatcher, leaving: Leaving, from: usize) -> Result<()> {
        let changed =
            leaving.pages[from..].iter().take_while(|&&at| self.page_ref(at).is_some_and(Page::changed));
        let changed: Vec<PageRef> = changed.copied().collect();
        let count = self.together(&changed).min(PIECE);
        if count == 0 {
            return self.let_go(d, leaving);
        }
        match self.fetches(d, &changed[..count], leaving.lane) {
            Ok(copies) => {
                self.submit_leaving(d, Leaving { stage: Stage::Fetched(from, count), ..leaving }, &copies)
            }
            Err(error) => {
                self.stay(leaving);
                Err(error)
            }
        }
    }

    /// Some of the pages that are leaving are in host memory now, unless a copy failed.
    fn fetched(
        &mut self,
        d: &Dispatcher,
        leaving: Leaving,
        which: Range<usize>,
        done: &[Completion],
    ) -> Result<()> {
        for done in done {
            if let Err(error) = d.check("reading a changed page", done) {
                self.stay(leaving);
                return Err(error);
            }
        }
        // A page that a fault has wanted meanwhile may have been written again: it stays changed.
        let departing = std::mem::take(&mut self.departing);
        let runs = self.runs(&leaving.pages[which.clone()], leaving.lane, |at| departing.contains(at));
        self.departing = departing;
        let takes_time = runs.iter().any(Run::takes_time);
        if takes_time && !d.card.pci().stands_still() {
            let store = Store::begin(runs, &self.reads.threads, Weak::clone(&self.reads.rings));
            let (stage, tags) = (Stage::Stored(which.end), Vec::new());
            self.leaving.push_back(Leaving { stage, tags, store: Some(store), ..leaving });
            return Ok(());
        }
        self.write_here(runs);
        self.fetch_next(d, leaving, which.end)
    }

    /// Pages before the given one have been written, or could not be. It waits for that if it is not so yet.
    fn stored(&mut self, d: &Dispatcher, mut leaving: Leaving, to: usize) -> Result<()> {
        let runs = leaving.store.take().map(|store| store.wait()).unwrap_or_default();
        runs.into_iter().for_each(|run| self.note_written(run));
        self.fetch_next(d, leaving, to)
    }

    /// Frees the frames of pages that are leaving. Those that a fault has wanted meanwhile are mapped again, and stay; so do those that
    /// could not be written.
    fn let_go(&mut self, d: &Dispatcher, leaving: Leaving) -> Result<()> {
        let Leaving { pages, keep, .. } = leaving;
        let looked = pages.len();
        let (gone, stay): (Vec<_>, Vec<_>) = pages
            .into_iter()
            .partition(|&at| self.departing.remove(&at) && !self.page_ref(at).is_some_and(Page::changed));
        stay.into_iter().for_each(|at| self.clock.push(at, keep));
        if self.drop_pages(d, &gone)? == 0 {
            self.futile += looked;
        }
        Ok(())
    }
}
