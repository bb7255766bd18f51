// SPDX-License-Identifier: Apache-2.0
//! What a program does with a range of mapped addresses: bring it up to date, load it, free it, say how it is used. Each step takes
//! little time, so that faults can be served between two of them.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::backing::Source;
use crate::dispatch::Dispatcher;
use crate::error::{Error, Result};
use crate::pager::faults::plan::Plan;
use crate::pager::state::advice::{Advice, Keep, Locality};
use crate::pager::state::batch::{Batch, Group};
use crate::pager::state::load::{Load, piece};
use crate::pager::state::region::{BATCH, Page, PageRef, Region};
use crate::pager::state::space::{BOUNCE, Space};
use crate::pager::state::store::Run;
use crate::protocol::desc::{PAGE, Place};

/// What becomes of pages that are up to date in their file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// They stay.
    Keep,
    /// They leave the card: what is in the file counts from now on.
    Drop,
    /// As `Drop`, and changes of private mappings are discarded.
    Discard,
    /// Those that stayed in host memory, as card memory was full, leave it: the next access loads them.
    Recall,
}

/// Changed pages on their way to a file, which may take time: nothing is locked meanwhile.
pub(crate) struct Writing {
    runs: Vec<Run>,
    start: u64,
    pages: Vec<PageRef>,
    mapped: Vec<PageRef>,
    then: Then,
    noted: bool,
}

impl Writing {
    /// Writes them. Errors are told by [`Space::end_sync`].
    pub fn write(&mut self) {
        self.runs.iter_mut().for_each(Run::write);
    }
}

impl Space {
    /// Fails unless mappings cover a range completely, which begins on a page.
    pub fn check_range(&self, range: &Range<u64>) -> Result<()> {
        let mut at = range.start;
        for start in self.overlapping(range) {
            let region = &self.regions[&start];
            if start > at || region.paged().is_none() {
                break;
            }
            at = start + region.bytes();
        }
        if at < range.end || range.start % PAGE != 0 {
            return Err(match range.start % PAGE {
                0 => Error::NotMapped { start: at, end: range.end },
                _ => Error::Invalid(format!("{:#x} is not a multiple of {PAGE}", range.start)),
            });
        }
        Ok(())
    }

    /// Begins to bring a range up to date: earlier errors of pages that will be tried again are dropped. Nobody else may be doing so.
    pub fn begin(&mut self, d: &Dispatcher, range: &Range<u64>) -> Result<()> {
        self.check_range(range)?;
        self.settle(d);
        for start in self.overlapping(range) {
            if let Some(paged) = self.paged(start) {
                paged.failures.retain(|failure| !failure.again);
            }
        }
        Ok(())
    }

    /// The first error of the mappings in a range whose sources are `of` these, and their sources.
    pub fn end(
        &mut self,
        range: &Range<u64>,
        of: impl Fn(&Arc<Source>) -> bool,
    ) -> (Option<Error>, Vec<Arc<Source>>) {
        let (mut first, mut sources) = (None, Vec::new());
        for start in self.overlapping(range) {
            let Some(paged) = self.paged(start).filter(|paged| of(&paged.source)) else { continue };
            if first.is_none() {
                first = paged.take_failure();
            }
            if !sources.iter().any(|source| Arc::ptr_eq(source, &paged.source)) {
                sources.push(Arc::clone(&paged.source));
            }
        }
        (first, sources)
    }

    /// Pages of mappings that note writes, in a range, which may be changed and not written.
    pub fn unwritten(&self, range: &Range<u64>) -> usize {
        let unclean = |start: &u64| self.regions[start].paged()?.unclean.as_ref().map(BTreeSet::len);
        self.overlapping(range).iter().filter_map(unclean).sum()
    }

    /// Whether pages of a range are written to files, which may take time.
    pub fn writes_files(&self, range: &Range<u64>) -> bool {
        let writes = |region: &Region| region.paged().is_some_and(|paged| paged.source.takes_time());
        self.overlapping(range).iter().map(|start| &self.regions[start]).any(|r| r.prot.write && writes(r))
    }

    /// Writes changed pages of a range back, from its beginning on. Returns where to go on, if there is more, and what is yet to be written
    /// to a file. Nothing is being written before.
    pub fn sync_some(
        &mut self,
        d: &Dispatcher,
        range: &Range<u64>,
        then: Then,
    ) -> Result<(Option<u64>, Option<Writing>)> {
        self.settle(d);
        let Some((start, numbers)) = self.next_region(range) else { return Ok((None, None)) };
        let region = &self.regions[&start];
        let (step, writable) = (region.page_bytes(), region.prot.write);
        let Some(paged) = region.paged() else { return Ok((None, None)) };
        let source = Arc::clone(&paged.source);
        let first = paged.first;
        let most = (BOUNCE / step).min(BATCH as u64) as usize;
        let pages: Vec<PageRef> = match &paged.unclean {
            // Of the others there is nothing to be done.
            Some(unclean) if then == Then::Keep => {
                unclean.range(numbers.clone()).take(most).map(|&n| (start, n)).collect()
            }
            _ if then == Then::Recall => {
                let overflow = paged.host.is_some() && !paged.on_host;
                let range = if overflow { numbers.clone() } else { 0..0 };
                let pages = paged.pages.range(range).filter(|(_, page)| matches!(page.place, Place::Host(_)));
                pages.take(most).map(|(&n, _)| (start, n)).collect()
            }
            _ => paged.pages.range(numbers.clone()).take(most).map(|(&n, _)| (start, n)).collect(),
        };
        let noted = paged.unclean.is_some();
        let end = match pages.last() {
            Some(&(_, last)) if pages.len() == most => last + 1,
            _ => numbers.end,
        };
        let of = |space: &Self, which: &dyn Fn(&Page) -> bool| -> Vec<PageRef> {
            pages.iter().copied().filter(|&at| space.page_ref(at).is_some_and(which)).collect()
        };
        let mapped = of(self, &|page| page.mapped);
        if then == Then::Discard && source.is_private() {
            self.leave(d, &mapped)?;
            for &(_, n) in &pages {
                if let Some(page) = self.page(start, n) {
                    page.dirty = false;
                }
            }
            source.forget(first + numbers.start * step..first + end * step);
        } else if writable && noted {
            // Those that were not written are no longer to be asked about next time.
            self.leave(d, &mapped)?;
        } else if writable {
            let written = self.look(d, &mapped)?;
            self.leave(d, &written)?;
        }
        let changed = of(self, &Page::changed);
        let next = Some(start + end * step).filter(|&next| next < range.end);
        let mut writing = Writing { runs: Vec::new(), start, pages, mapped, then, noted };
        if source.takes_time() && !changed.is_empty() {
            writing.runs = self.begin_write(d, &changed)?;
            return Ok((next, Some(writing)));
        }
        self.write_back(d, &changed)?;
        self.written(d, writing)?;
        Ok((next, None))
    }

    /// Pages have been written, or could not be.
    pub fn end_sync(&mut self, d: &Dispatcher, mut writing: Writing) -> Result<()> {
        self.writing.clear();
        std::mem::take(&mut writing.runs).into_iter().for_each(|run| self.note_written(run));
        if writing.then != Then::Keep {
            // Faults have been served meanwhile.
            self.settle(d);
        }
        let written = self.written(d, writing);
        self.stir(d);
        written
    }

    fn written(&mut self, d: &Dispatcher, writing: Writing) -> Result<()> {
        let Writing { start, pages, mapped, then, noted, .. } = writing;
        self.note_clean(&pages);
        if then == Then::Keep && noted {
            self.enter_again(d, start, &mapped);
        }
        if then != Then::Keep {
            let leave: BTreeSet<PageRef> = pages.iter().copied().collect();
            self.clock.retain(|at| !leave.contains(&at));
            self.drop_pages(d, &pages)?;
        }
        Ok(())
    }

    /// Gives the card the translations of pages back that it had, now without the right to write: for those who read what they have
    /// just written.
    fn enter_again(&mut self, d: &Dispatcher, start: u64, pages: &[PageRef]) {
        let enters = |page: &&Page| !page.mapped && !page.changed() && !page.spoiled;
        let here = |at: &PageRef| self.page_ref(*at).filter(|_| !self.pinned.contains(at));
        let place = |at: &PageRef| here(at).filter(enters).map(|page| (at.1, page.place));
        let pages: Vec<_> = pages.iter().filter_map(place).collect();
        if pages.is_empty() {
            return;
        }
        let taken = pages.iter().map(|&(n, _)| (start, n)).collect();
        let composed = self.compose(
            d,
            &[Group { start, pages, write: false, copies: Vec::new(), staged: Vec::new() }],
            &[],
        );
        self.launch(d, Batch { composed, taken, ..Batch::default() });
    }

    /// Pages that neither are changed nor can be written by the card need not be looked at until a write asks for them.
    fn note_clean(&mut self, pages: &[PageRef]) {
        for &(start, number) in pages {
            // A batch may be about to map it.
            let entered = self.pinned.contains(&(start, number));
            let Some(paged) = self.paged(start) else { continue };
            if !entered && paged.pages.get(&number).is_none_or(|page| !page.mapped && !page.changed()) {
                paged.cleaned(number);
            }
        }
    }

    /// Begins to load pages of a range that are not there, from its beginning on, while there is `room` for so many bytes. Waits only while as
    /// much is under way as may be. Returns where to go on, if there is more.
    pub fn load_some(&mut self, d: &Dispatcher, range: &Range<u64>, room: &mut u64) -> Result<Option<u64>> {
        self.land(d);
        self.take_in(d);
        self.look_after(d)?;
        let Some((start, numbers)) = self.next_region(range) else { return Ok(None) };
        let region = &self.regions[&start];
        let step = region.page_bytes();
        let Some(paged) = region.paged() else { return Ok(None) };
        // Pages beyond the end of the source cannot be loaded.
        let last = paged.end.saturating_sub(paged.first).div_ceil(step).min(numbers.end);
        let next = start + numbers.end * step;
        let Some(number) = (numbers.start..last).find(|&n| !self.is_coming((start, n))) else {
            return Ok((next < range.end).then_some(next));
        };
        let most = (BOUNCE / step).min(BATCH as u64).min(*room / step);
        let count =
            (number..last).take(most as usize).take_while(|&n| !self.is_coming((start, n))).count() as u64;
        if count == 0 {
            return Ok(None);
        }
        let (on_host, before) = (paged.on_host, paged.ahead);
        let bytes = if on_host { 0 } else { count * step };
        if !self.can_launch() || self.staging.room() < bytes {
            self.await_any(d);
            return Ok(Some(start + number * step));
        }
        let staged = self.staging.take_parts(bytes, piece(step) * step);
        let load = Load { number, count, staged, ..Load::new(start, Arc::new(before)) };
        let mut plan = Plan { loads: vec![load], ..Plan::default() };
        self.carry_out(d, &mut plan, &[])?;
        let end = number + count;
        let missing = (number..end).find(|&n| !self.is_coming((start, n)));
        *room -= (missing.unwrap_or(end) - number) * step;
        match missing {
            // There may be room once something has ended; a page that cannot be read is not tried for ever.
            Some(to) if (to > number || self.resident + step > self.budget) && self.await_any(d) => {
                Ok(Some(start + to * step))
            }
            Some(_) => Ok(None), // there is no room, or the file cannot be read
            None => Ok(Some(start + end * step).filter(|&next| next < range.end)),
        }
    }

    /// Notes how a range is used.
    pub fn advise(&mut self, d: &Dispatcher, range: &Range<u64>, advice: Advice) -> Result<()> {
        self.settle(d);
        self.check_range(range)?;
        for start in self.overlapping(range) {
            let Some(region) = self.regions.get(&start) else { continue };
            let (step, numbers) = (region.page_bytes(), region.numbers(start, range));
            let (from, to) = (start + numbers.start * step, start + numbers.end * step);
            self.split(from)?;
            self.split(to)?;
            let Some(paged) = self.paged(from) else { continue };
            match advice {
                Advice::Normal => (paged.locality, paged.keep) = Default::default(),
                Advice::Sequential => (paged.locality, paged.keep) = (Locality::Sequential, Keep::Low),
                Advice::Random => paged.locality = Locality::Random,
                Advice::Reuse => paged.keep = Keep::Long,
                Advice::LowUse => paged.keep = Keep::Low,
                Advice::WillNeed | Advice::DontNeed => {}
            }
            let keep = self.regions[&from].class();
            self.clock.reclassify(|(region, _)| region == from, keep);
        }
        Ok(())
    }

    /// The first region of a mapping in a range, and the numbers of its pages there.
    fn next_region(&self, range: &Range<u64>) -> Option<(u64, Range<u64>)> {
        let starts = self.overlapping(range);
        let start = starts.into_iter().find(|start| self.regions[start].paged().is_some())?;
        Some((start, Region::numbers(&self.regions[&start], start, range)))
    }
}
