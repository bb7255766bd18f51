// SPDX-License-Identifier: Apache-2.0
//! Eviction ahead of need: while pages are short, some frames are made free before a fault wants them. The commands for that are under
//! way beside those of faults.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Weak;

use crate::dispatch::Dispatcher;
use crate::error::Result;
use crate::pager::eviction::replace::PART;
use crate::pager::state::advice::Keep;
use crate::pager::state::batch::{GROUPS, Leaving, Stage};
use crate::pager::state::region::{Page, PageRef, Use};
use crate::pager::state::space::Space;
use crate::pager::state::store::{Run, Store};
use crate::protocol::desc::*;

/// Most bytes that are kept free.
const MOST: u64 = 128 * PAGE;
/// Fewest bytes that are kept free by pages that the card can access in host memory nearly as well.
const FEWEST: u64 = 8 * PAGE;
/// Most small pages of a group that leave whatever it costs.
const SMALL: u64 = 8;
/// Pages that are looked at for one that is expected to leave.
const YIELD: u64 = 4;
/// So far beyond a page that was not used yet none is looked at that was loaded in order with it.
const NEAR: u64 = 16;
/// Most pages that are passed over in a search for those that are to be looked at.
const SEARCH: usize = 1024;
/// Changed pages of a group that are copied at a time: the card has few copies of a slot under way, and those of faults are among them.
const PIECE: usize = 4;

/// What is done for free frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effort {
    /// Pages leave that need not be written back, and only those are looked at that may.
    Unchanged,
    /// Changed ones leave, too.
    Changed,
    /// All are looked at.
    Any,
}

impl Space {
    /// Goes on with eviction ahead of need, as far as that is possible without waiting.
    pub(in crate::pager) fn retire(&mut self, d: &Dispatcher) -> Result<()> {
        self.advance(d)?;
        // Pages have been loaded, so others may have been used meanwhile.
        let loaded = self.clock.loaded();
        if std::mem::replace(&mut self.tried, loaded) != loaded {
            self.futile = 0;
        }
        while self.leaving.len() < GROUPS && !self.all_in_use() && self.retire_some(d)? {
            self.advance(d)?;
        }
        Ok(())
    }

    /// Begins with the first shortage, for a fault: the oldest pages lose their translations without a look. All that it would tell of them is
    /// whether they were used since they were loaded, and their removal tells that too.
    pub(in crate::pager) fn retire_first(&mut self, d: &Dispatcher) -> Result<()> {
        let Some(keep) = self.lowest() else { return Ok(()) };
        // One of 2 MiB is worth a look.
        if self.clock.queue(keep).front().is_some_and(|at| self.regions[&at.0].huge()) {
            return Ok(());
        }
        let pages = self.oldest(keep, self.few(d) as usize);
        if pages.is_empty() {
            return Ok(());
        }
        let stage = if keep == Keep::Low { Stage::Unmapped } else { Stage::Tried };
        self.unmap_leaving(d, Leaving::new(pages, keep, stage, 0))
    }

    /// The lowest class that has pages.
    fn lowest(&mut self) -> Option<Keep> {
        Keep::ALL.into_iter().find(|&keep| !self.clock.queue(keep).is_empty())
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

    /// What is done for free frames, after so many looks in vain.
    fn effort(&self) -> Effort {
        let vain = self.vain();
        match self.futile {
            futile if futile < vain => Effort::Unchanged,
            futile if futile < vain + self.frames_held() / 2 => Effort::Changed,
            _ => Effort::Any,
        }
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
                if matches!(leaving.stage, Stage::Tried | Stage::Unmapped) {
                    self.assume_written(&leaving.pages);
                }
                self.stay(leaving);
                Err(error)
            }
        }
    }

    /// Small pages that are to leave, beside those that do, or that are looked at and will. Fewer at a greater effort: some frames are to be free
    /// in any case, more of them if that costs little.
    fn missing(&self, d: &Dispatcher, effort: Effort, looked_at: bool) -> u64 {
        let spare = match effort {
            Effort::Unchanged => (self.room(d) / PART).min(MOST),
            Effort::Changed | Effort::Any => self.few(d) * PAGE,
        };
        let free = self.room(d).saturating_sub(self.resident);
        let of = |leaving: &Leaving| {
            let bytes: u64 = leaving.pages.iter().map(|at| self.regions[&at.0].page_bytes()).sum();
            match (leaving.stage, looked_at) {
                (Stage::Asked, true) => bytes / YIELD,
                (Stage::Asked, false) => 0,
                _ => bytes,
            }
        };
        let coming: u64 = self.leaving.iter().map(of).sum();
        if self.short { spare.saturating_sub(free + coming) / PAGE } else { 0 }
    }

    /// Small pages that leave for a fault, or are to be free in any case.
    fn few(&self, d: &Dispatcher) -> u64 {
        self.group(d).min(SMALL)
    }

    /// Begins with pages of the lowest class that has any; `false` if none can leave, or need not.
    fn retire_some(&mut self, d: &Dispatcher) -> Result<bool> {
        let Some(keep) = self.lowest() else { return Ok(false) };
        if keep == Keep::Overflow && self.room(d) / PART < FEWEST {
            return Ok(false);
        }
        let free = |&lane: &usize| self.leaving.iter().all(|leaving| leaving.lane != lane);
        let Some(lane) = (0..GROUPS).find(free) else { return Ok(false) };
        for effort in [Effort::Unchanged, Effort::Changed, Effort::Any] {
            let missing = self.missing(d, effort, true);
            if effort < self.effort() || missing == 0 {
                continue;
            }
            if keep == Keep::Low {
                let pages = self.oldest(keep, self.group(d).min(missing) as usize);
                let found = !pages.is_empty();
                if found {
                    self.unmap_leaving(d, Leaving::new(pages, keep, Stage::Unmapped, lane))?;
                }
                return Ok(found);
            }
            let pages = self.worth_a_look(d, keep, effort);
            if !pages.is_empty() {
                self.ask(d, Leaving::new(pages, keep, Stage::Asked, lane))?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Begins to look at pages.
    fn ask(&mut self, d: &Dispatcher, leaving: Leaving) -> Result<()> {
        let (mapped, rest) = self.split_mapped(&leaving.pages);
        let scans: Vec<_> = mapped.iter().map(|&at| self.command(at, Command::scan)).collect();
        self.submit_leaving(d, Leaving { pages: [mapped, rest].concat(), ..leaving }, &scans)
    }

    /// Begins to remove translations of pages.
    pub(in crate::pager) fn unmap_leaving(&mut self, d: &Dispatcher, leaving: Leaving) -> Result<()> {
        let (mapped, rest) = self.split_mapped(&leaving.pages);
        let unmaps: Vec<_> = mapped.iter().map(|&at| self.command(at, Command::unmap)).collect();
        self.departing.extend(leaving.pages.iter().copied());
        self.submit_leaving(d, Leaving { pages: [mapped, rest].concat(), ..leaving }, &unmaps)
    }

    /// Takes the pages of a group from the clock: the first ones that are worth a look. A look is a command, which takes time of the link, and
    /// of the slot's MMU.
    fn worth_a_look(&mut self, d: &Dispatcher, keep: Keep, effort: Effort) -> Vec<PageRef> {
        let most = self.group(d) * PAGE;
        let (mut chosen, mut bytes) = (Vec::new(), 0);
        for _ in 0..self.clock.queue(keep).len().min(SEARCH) {
            if bytes >= most {
                break;
            }
            let Some(at) = self.clock.queue(keep).pop_front() else { break };
            if self.is_held(&at) || !self.may_leave(at, effort) {
                self.clock.push(at, keep);
            } else {
                bytes += self.regions[&at.0].page_bytes();
                chosen.push(at);
            }
        }
        chosen
    }

    /// Whether a page may leave, as far as is known without a look at it.
    fn may_leave(&self, (start, number): PageRef, effort: Effort) -> bool {
        let Some(page) = self.page_ref((start, number)) else { return true };
        let (loaded, frames) = (self.clock.loaded(), self.frames_held());
        if effort == Effort::Any || !page.is_young(loaded, frames) && !page.is_awaited(loaded, frames) {
            return true;
        }
        // What was loaded in order is mostly used in order.
        let before = number.checked_sub(NEAR).and_then(|before| self.page_ref((start, before)));
        let waits = before.is_some_and(|before| before.turn + NEAR == page.turn && before.is_unused());
        !(page.is_unused() && waits || page.rewritten && effort == Effort::Unchanged)
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
            Stage::Asked | Stage::Tried | Stage::Unmapped => {}
        }
        let unmapped = leaving.stage != Stage::Asked;
        let mut changed = BTreeSet::new();
        for (&at, done) in leaving.pages.iter().zip(&done) {
            let leaves = unmapped && self.departing.contains(&at);
            let written = done.has(CPL_DIRTY) && self.regions[&at.0].may_be_written(at.1);
            self.stats.damaged += u64::from(unmapped && done.has(CPL_DAMAGED));
            if written {
                changed.insert(at);
            }
            if let Some(page) = self.page(at.0, at.1) {
                page.accessed |= done.has(CPL_ACCESSED);
                // What is said of a page whose entry is damaged is a guess.
                page.dirty |= unmapped && written;
                if leaves {
                    page.mapped = false;
                    page.since = 0;
                }
            }
        }
        if !unmapped {
            return self.looked(d, leaving, &changed);
        }
        if leaving.stage == Stage::Tried {
            // Those that wait for their first use stay.
            let unused = |at: &&PageRef| self.page_ref(**at).is_some_and(Page::is_unused);
            let stay: Vec<PageRef> = leaving.pages.iter().filter(unused).copied().collect();
            self.departing.retain(|at| !stay.contains(at));
        }
        let Leaving { mut pages, keep, stage, lane, .. } = leaving;
        // Changed ones first.
        pages.sort_unstable_by_key(|&at| (!self.page_ref(at).is_some_and(Page::changed), at));
        self.fetch_next(d, Leaving::new(pages, keep, stage, lane), 0)
    }

    /// Pages have been looked at, of which some have been changed since they were mapped: those that are not used any more lose their
    /// translations.
    fn looked(&mut self, d: &Dispatcher, leaving: Leaving, changed: &BTreeSet<PageRef>) -> Result<()> {
        let Leaving { pages, keep, lane, .. } = leaving;
        let looked = pages.len();
        let (loaded, frames) = (self.clock.loaded(), self.frames_held() + looked);
        // Frames are needed now: none is free, and no others leave.
        let full = self.resident >= self.room(d);
        let leave = self.leaving.iter().any(|leaving| leaving.stage != Stage::Asked);
        let needed = full && !leave;
        let passed = self.passed.may_leave();
        let mut found = Vec::new();
        for at in pages {
            let held = self.is_held(&at);
            let small = self.regions[&at.0].page_bytes() == PAGE;
            let Some(page) = self.page(at.0, at.1) else { continue };
            let seen = if held { Use::Current } else { page.look(loaded, frames) };
            let written = page.dirty || changed.contains(&at);
            page.rewritten = written && seen == Use::Over;
            // Changed ones stay as long as they would in turn, if there are others.
            let cheap = !written || !page.is_young(loaded, frames);
            found.push((at, seen, cheap && (seen == Use::Over || seen == Use::Some && passed && small)));
        }
        let missing = self.missing(d, Effort::Unchanged, false);
        let mut most = if full { missing.max(1) } else { missing };
        // While no frame is free a fault waits: then changed ones go at once.
        let mut others = match self.effort() {
            _ if full => u64::MAX,
            Effort::Unchanged => 0,
            effort => self.missing(d, effort, false),
        };
        // Some go of which only that much is known, that they were used at some time, if there are no better ones: a fault would wait until all
        // others were looked at too.
        let none = !found.iter().any(|&(_, _, goes)| goes);
        let mut some = if needed && none { self.few(d) } else { 0 };
        let mut idle = Vec::new();
        for (at, seen, goes) in found {
            let left = match seen {
                _ if goes => &mut most,
                Use::Over => &mut others,
                Use::Some => &mut some,
                Use::Current | Use::Awaited => &mut 0,
            };
            if *left == 0 {
                self.clock.push(at, keep);
                continue;
            }
            *left = left.saturating_sub(self.regions[&at.0].page_bytes() / PAGE);
            if let Some(page) = self.page(at.0, at.1) {
                page.passed = seen == Use::Some;
            }
            idle.push(at);
        }
        match idle.is_empty() {
            true => {
                self.futile += looked;
                Ok(())
            }
            false => self.unmap_leaving(d, Leaving::new(idle, keep, Stage::Unmapped, lane)),
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
