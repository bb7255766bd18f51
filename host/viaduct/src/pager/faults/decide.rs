// SPDX-License-Identifier: Apache-2.0
//! Decides what each fault takes.

use std::sync::Arc;

use crate::pager::faults::plan::Plan;
use crate::pager::state::advice::Locality;
use crate::pager::state::ahead::{MOST, PIECE};
use crate::pager::state::batch::{Group, Numbered};
use crate::pager::state::load::{Load, Reads, piece};
use crate::pager::state::region::{Kind, PageRef, Paged, Region};
use crate::pager::state::space::Space;
use crate::pager::state::staging::STAGING;
use crate::protocol::desc::{Event, Place};

/// Pages after which no further fault of a batch begins another run of pages. A batch that does not fit into the command ring is
/// submitted as there is room.
const PAGES: usize = 64;
/// Card cycles after which an access that waited for a page has used it, unless it waits for another one, too.
const SETTLED: u64 = 2000;

impl Space {
    /// Decides what a fault takes. Several events may tell of one page, and an event of a page that has been mapped since.
    pub(in crate::pager) fn plan(&mut self, numbered: Numbered, plan: &mut Plan) {
        let (_, fault) = numbered;
        let page = match self.accessed_page(&fault) {
            Ok(page) => page,
            Err(why) => return plan.denied.push((numbered, why.into())),
        };
        if self.is_under_way(numbered, page, plan) {
            return;
        }
        if plan.taken.len() >= PAGES {
            return plan.later.push(numbered);
        }
        let (start, number) = page;
        let Some(region) = self.regions.get(&start) else { return };
        match &region.kind {
            Kind::Window(_) => {
                let pages = region.window(number);
                plan.taken.extend(pages.iter().map(|&(n, _)| (start, n)));
                plan.maps.push(Group { start, pages, write: true, copies: Vec::new(), staged: Vec::new() });
                self.note_damage(&fault);
            }
            Kind::Paged(paged) => match paged.pages.get(&number).map(|found| (found.place, found.spoiled)) {
                Some((_, true)) => {
                    plan.denied.push((numbered, "the page could not be loaded before".into()));
                }
                Some((place, false)) => self.plan_map(&fault, page, place, plan),
                None => self.plan_load(numbered, page, plan),
            },
        }
    }

    /// The page that a fault is on, if the access is allowed, else why it is not.
    fn accessed_page(&self, fault: &Event) -> Result<PageRef, &'static str> {
        let (start, region) = self.find(fault.va).ok_or("it is outside every mapping")?;
        let allowed = if fault.is_write { region.prot.write } else { region.prot.read };
        if !allowed {
            return Err(match fault.is_write {
                true => "the mapping must not be written",
                false => "the mapping must not be read",
            });
        }
        if region.table && self.table_failed {
            return Err("the page table in card memory could not be written");
        }
        Ok((start, (fault.va - start) / region.page_bytes()))
    }

    /// Whether a page is taken already, by this batch, another one or a read, or has been mapped since the fault, which then is done with or is
    /// left to what has taken it.
    fn is_under_way(&mut self, numbered: Numbered, page: PageRef, plan: &mut Plan) -> bool {
        let (place, fault) = numbered;
        let (start, number) = page;
        let known = self.page_ref(page).map_or(0, |page| page.since);
        if let Some(batch) = self.batches.iter_mut().find(|batch| batch.taken.contains(&page)) {
            batch.others.push(fault);
            plan.away.insert(place);
            return true;
        }
        if let Some(load) = self.reads.load(page) {
            load.others.push(numbered);
            load.write |= fault.is_write;
            plan.away.insert(place);
            return true;
        }
        if !plan.taken.contains(&page) && fault.number >= known {
            return false;
        }
        // On its way, perhaps: the run may turn out to be shorter. What missed before `known` has been looked up again since.
        let mut loads = plan.loads.iter_mut();
        let load = loads.find(|l| l.start == start && (l.number..l.number + l.count).contains(&number));
        if let Some(load) = load {
            load.others.push(numbered);
            load.write |= fault.is_write;
        }
        true
    }

    /// Maps a page that is there.
    fn plan_map(&mut self, fault: &Event, (start, number): PageRef, place: Place, plan: &mut Plan) {
        self.note_damage(fault);
        // Its entry in the table is written anew, and what that said of writes is lost.
        let written = self.regions.get(&start).is_some_and(|r| r.table && r.may_be_written(number));
        if let Some(page) = self.page(start, number) {
            page.dirty |= written;
        }
        self.departing.remove(&(start, number));
        plan.taken.insert((start, number));
        let write = fault.is_write;
        let mut pages = vec![(number, place)];
        if write {
            pages.extend(self.also_written((start, number), plan));
            plan.taken.extend(pages.iter().map(|&(n, _)| (start, n)));
        }
        plan.maps.push(Group { start, pages, write, copies: Vec::new(), staged: Vec::new() });
        self.stats.remapped += 1;
    }

    /// Pages behind one that is written for the first time since it was written back: they get the right to be written with it, half as many as
    /// such writes were in order. It costs a command each to take it back, and nothing is written to the file for it.
    fn also_written(&mut self, (start, number): PageRef, plan: &Plan) -> Vec<(u64, Place)> {
        let Some(paged) = self.regions.get(&start).and_then(Region::paged) else { return Vec::new() };
        let Some(unclean) = &paged.unclean else { return Vec::new() };
        let (next, so_far) = paged.rewritten;
        let so_far = if number == next && paged.locality != Locality::Random { so_far } else { 0 };
        let most = (so_far / 2).clamp(1, MOST);
        let free = |n: u64| {
            let at = (start, n);
            let used = plan.taken.contains(&at) || self.is_held(&at) || self.departing.contains(&at);
            let page = paged.pages.get(&n).filter(|page| !page.spoiled && !used && !unclean.contains(&n));
            page.map(|page| (n, page.place))
        };
        let pages: Vec<_> = (number + 1..number + most).map_while(free).collect();
        let count = 1 + pages.len() as u64;
        if let Some(paged) = self.paged(start) {
            paged.rewritten = (number + count, so_far + count);
        }
        pages
    }

    /// Loads a page, and following ones too, if the app accesses the region in order.
    fn plan_load(&mut self, numbered: Numbered, (start, number): PageRef, plan: &mut Plan) {
        let (_, fault) = numbered;
        let Some(available) = self.available(numbered, (start, number), plan) else { return };
        let Some(region) = self.regions.get_mut(&start) else { return };
        let (step, huge, page_count) = (region.page_bytes(), region.huge(), region.page_count());
        let Kind::Paged(paged) = &mut region.kind else { return };
        let reads = &self.reads;
        if reads.is_late(paged, number * step) {
            self.parked.push(fault);
            plan.away.insert(numbered.0);
            return;
        }
        let room = if paged.on_host { STAGING } else { self.staging.room() };
        if room < step {
            return plan.later.push(numbered);
        }
        let before = paged.ahead;
        let under_way = self.pinned.len() + self.reads.pages() + plan.taken.len();
        // A run that takes more frames would push its own pages out before they are used.
        let share = if self.short { (self.budget / step / 2).max(1) } else { u64::MAX };
        let most = paged
            .ahead
            .pages(number, paged.locality, paged.waits, under_way as u64)
            .min(share)
            .min(room / step)
            .min(page_count - number)
            .min(available);
        let free = |n: &u64| {
            let at = (start, *n);
            let taken = paged.pages.contains_key(n) || plan.taken.contains(&at) || reads.has(at);
            !taken && !reads.is_late(paged, n * step)
        };
        let count = (number..number + most).take_while(free).count() as u64;
        if paged.locality == Locality::Normal {
            paged.judge_last(start, number, fault.time, plan);
            paged.judge_left(start, fault.time, reads, plan);
        }
        paged.ahead.loaded(number, count);
        let run = count;
        let count = if self.short && !paged.waits { run.min(PIECE) } else { run };
        paged.ahead.shorten(number + run, number + count);
        if let Some(auto) = paged.auto.as_ref().filter(|_| huge) {
            auto.loads(start + number * step..start + (number + count) * step);
        }
        let next = if before.follows(number) && count == MOST { MOST } else { 0 };
        let bytes = if paged.on_host { 0 } else { count * step };
        let staged = self.staging.take_parts(bytes, piece(step) * step);
        plan.taken.extend((number..number + count).map(|n| (start, n)));
        self.note_damage(&fault);
        let (fault, write) = (Some(numbered), fault.is_write);
        plan.loads.push(Load {
            fault,
            asked: true,
            number,
            count,
            staged,
            write,
            next,
            ..Load::new(start, Arc::new(before))
        });
    }
}

impl Paged {
    /// Judges the last run that was loaded ahead, if a page of it should have been used by the time of a fault on page `number`.
    fn judge_last(&mut self, start: u64, number: u64, time: u64, plan: &mut Plan) {
        let Some((due, run)) = self.ahead.due(number) else { return };
        let there = self.pages.get(&due).filter(|page| page.since > 0);
        if plan.alone && there.is_some_and(|page| time > page.mapped_at + SETTLED) {
            plan.looks.push(((start, due), run));
        } else if self.ahead.in_order(number) {
            // Faults come together, or faster than their pages can be used: as good a reason to load more.
            self.ahead.went_on(run);
        }
    }

    /// The app has left a run for another place: was it right to load ahead? To be asked once there was time to use it.
    fn judge_left(&mut self, start: u64, time: u64, reads: &Reads, plan: &mut Plan) {
        let Some((due, run)) = self.ahead.doubt() else { return };
        match self.pages.get(&due) {
            Some(page) if page.since == 0 || time <= page.mapped_at + SETTLED => {}
            None if reads.has((start, due)) => {}
            page => {
                plan.looks.extend(page.map(|_| ((start, due), run)));
                self.ahead.dispel();
            }
        }
    }
}
