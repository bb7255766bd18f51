// SPDX-License-Identifier: Apache-2.0
//! What a batch of faults takes.

use std::collections::BTreeSet;

use crate::pager::advice::Locality;
use crate::pager::ahead::Ahead;
use crate::pager::batch::{Group, Numbered};
use crate::pager::region::{Kind, PageRef, Region};
use crate::pager::space::Space;
use crate::pager::staging::STAGING;
use crate::protocol::desc::Place;

/// Pages after which no further fault of a batch begins another run of pages. A batch that does not fit into the command ring is
/// submitted as there is room.
const PAGES: usize = 64;
/// Card cycles after which an access that waited for a page has used it, unless it waits for another one, too.
const SETTLED: u64 = 2000;

/// A run of pages to load for a fault on the first.
pub(super) struct Load {
    /// None: it is loaded on request.
    pub(super) fault: Option<Numbered>,
    pub(super) start: u64,
    pub(super) number: u64,
    pub(super) count: u64,
    /// Where its bytes are in the staging memory.
    pub(super) staged: u64,
    pub(super) places: Vec<Place>,
    /// Its pages are to be written.
    pub(super) write: bool,
    /// Faults on the other pages.
    pub(super) others: Vec<Numbered>,
    /// Read-ahead of the mapping before this.
    pub(super) before: Ahead,
}

/// What a batch of faults takes.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) taken: BTreeSet<PageRef>,
    pub(super) maps: Vec<Group>,
    pub(super) loads: Vec<Load>,
    pub(super) denied: Vec<(Numbered, String)>,
    /// Pages that were loaded ahead and should have been used by now.
    pub(super) looks: Vec<(PageRef, u64)>,
    /// No other fault waits.
    pub(super) alone: bool,
    /// Faults of the next batch.
    pub(super) later: Vec<Numbered>,
    /// Faults on pages that are under way: they were left to the batches of these.
    pub(super) away: BTreeSet<usize>,
}

impl Space {
    /// Decides what a fault takes. Several events may tell of one page, and an event of a page that has been mapped since.
    pub(super) fn plan(&mut self, numbered: Numbered, plan: &mut Plan) {
        let (_, fault) = numbered;
        let Some((start, region)) = self.find(fault.va) else {
            plan.denied.push((numbered, "it is outside every mapping".into()));
            return;
        };
        let allowed = if fault.is_write { region.prot.write } else { region.prot.read };
        if !allowed {
            let how = if fault.is_write { "written" } else { "read" };
            plan.denied.push((numbered, format!("the mapping must not be {how}")));
            return;
        }
        if region.table && self.table_failed {
            plan.denied.push((numbered, "the page table in card memory could not be written".into()));
            return;
        }
        let (step, page_count) = (region.page_bytes(), region.page_count());
        let number = (fault.va - start) / step;
        let known = self.page_ref((start, number)).map_or(0, |page| page.since);
        if let Some(batch) = self.batches.iter_mut().find(|batch| batch.taken.contains(&(start, number))) {
            batch.others.push(fault);
            plan.away.insert(numbered.0);
            return;
        }
        if plan.taken.contains(&(start, number)) || fault.number < known {
            // On its way, perhaps: the run may turn out to be shorter. What missed before `known` has been looked up again since.
            let mut loads = plan.loads.iter_mut();
            let load = loads.find(|l| l.start == start && (l.number..l.number + l.count).contains(&number));
            if let Some(load) = load {
                load.others.push(numbered);
                load.write |= fault.is_write;
            }
            return;
        }
        if plan.taken.len() >= PAGES {
            plan.later.push(numbered);
            return;
        }
        let Some(region) = self.regions.get(&start) else { return };
        // Its entry in the table is written anew, and what that said of writes is lost.
        let assume_written = region.table && region.may_be_written(number);
        let found = match &region.kind {
            Kind::Window(_) => {
                let pages = region.window(number);
                plan.taken.extend(pages.iter().map(|&(n, _)| (start, n)));
                plan.maps.push(Group { start, pages, write: true, copies: Vec::new() });
                self.note_damage(&fault);
                return;
            }
            Kind::Paged(paged) => paged.pages.get(&number).map(|page| (page.place, page.spoiled)),
        };
        if let Some((place, spoiled)) = found {
            if spoiled {
                plan.denied.push((numbered, "the page could not be loaded before".into()));
                return;
            }
            self.note_damage(&fault);
            if let Some(page) = self.page(start, number) {
                page.dirty |= assume_written;
            }
            self.departing.remove(&(start, number));
            plan.taken.insert((start, number));
            let pages = vec![(number, place)];
            plan.maps.push(Group { start, pages, write: fault.is_write, copies: Vec::new() });
            self.stats.remapped += 1;
            return;
        }
        let Some(available) = self.available(numbered, (start, number), plan) else { return };
        // Following ones too, if the app accesses the region in order.
        let Some(Region { kind: Kind::Paged(paged), .. }) = self.regions.get_mut(&start) else { return };
        let room = if paged.on_host { STAGING } else { self.staging.room() };
        if room < step {
            plan.later.push(numbered);
            return;
        }
        let before = paged.ahead;
        let most = paged
            .ahead
            .pages(number, paged.locality)
            .min(room / step)
            .min(page_count - number)
            .min(available);
        let free = |n: &u64| !paged.pages.contains_key(n) && !plan.taken.contains(&(start, *n));
        let count = (number..number + most).take_while(free).count() as u64;
        let in_order = before.follows(number);
        if let Some((due, run)) = paged.ahead.due().filter(|_| paged.locality == Locality::Normal) {
            let there = paged.pages.get(&due).filter(|page| page.since > 0);
            if plan.alone && there.is_some_and(|page| fault.time > page.mapped_at + SETTLED) {
                plan.looks.push(((start, due), run));
            } else if in_order {
                // Faults come together, or faster than their pages can be used: as good a reason to load more.
                paged.ahead.judge(run, true);
            }
        }
        paged.ahead.loaded(number, count);
        let staged = if paged.on_host { 0 } else { self.staging.take(count * step) };
        plan.taken.extend((number..number + count).map(|n| (start, n)));
        self.note_damage(&fault);
        let (fault, write) = (Some(numbered), fault.is_write);
        let (places, others) = (Vec::new(), Vec::new());
        plan.loads.push(Load { fault, start, number, count, staged, places, write, others, before });
    }
}
