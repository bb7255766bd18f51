// SPDX-License-Identifier: Apache-2.0
//! Accesses that wait: for the data of a stream, or until a read that was given up has ended. And pages that leave as their stream has
//! passed them.

use std::ops::Range;
use std::time::Instant;

use crate::backing::pump::Supply;
use crate::dispatch::Dispatcher;
use crate::error::Result;
use crate::pager::faults::plan::Plan;
use crate::pager::state::batch::Numbered;
use crate::pager::state::region::PageRef;
use crate::pager::state::space::Space;
use crate::protocol::desc::{Event, PAGE};

impl Space {
    /// How many pages can be loaded for a fault on one. `None`: it waits, or is denied.
    pub(in crate::pager) fn available(
        &mut self,
        fault: Numbered,
        (start, number): PageRef,
        plan: &mut Plan,
    ) -> Option<u64> {
        let region = self.regions.get(&start)?;
        let (step, valid) = (region.page_bytes(), region.valid(number));
        let paged = region.paged()?;
        let page = paged.first / PAGE + number;
        let Some(flow) = paged.source.flow() else { return Some(u64::MAX) };
        let patience = || Instant::now() + flow.patience();
        let until = self.until.entry(start + number * step).or_insert_with(patience);
        match flow.ask(page, valid, *until) {
            Supply::Pages(count) => return Some(count),
            Supply::Wait => {
                self.parked.push(fault.1);
                plan.away.insert(fault.0);
            }
            Supply::Never(why) => plan.denied.push((fault, why)),
        }
        None
    }

    /// Accesses that waited are served again if there is something new.
    pub(in crate::pager) fn unpark(&mut self, d: &Dispatcher) {
        let mut st = d.lock();
        if std::mem::take(&mut st.poked) {
            self.parked.drain(..).rev().for_each(|fault| st.faults.push_front(fault));
        }
    }

    /// From now on no wait of the slot counts as one without activity while accesses wait.
    pub(in crate::pager) fn note_parked(&mut self, d: &Dispatcher) {
        let parked = &self.parked;
        self.until.retain(|&at, _| parked.iter().any(|fault| fault.va / PAGE * PAGE == at));
        d.lock().parked = self.parked.len();
    }

    /// Takes the accesses to a range that wait.
    pub(in crate::pager) fn parked_in(&mut self, d: &Dispatcher, range: &Range<u64>) -> Vec<Event> {
        let (inside, others) =
            std::mem::take(&mut self.parked).into_iter().partition(|fault| range.contains(&fault.va));
        self.parked = others;
        self.note_parked(d);
        inside
    }

    /// The app was reset: nothing of it waits.
    pub fn forget_parked(&mut self, d: &Dispatcher) {
        self.parked.clear();
        self.note_parked(d);
    }

    /// Frees pages that the stream has passed: what is kept of it is bounded, on the card too.
    pub(in crate::pager) fn drop_passed(&mut self, d: &Dispatcher) -> Result<()> {
        let mut passed: Vec<PageRef> = Vec::new();
        for (&start, region) in &self.regions {
            let Some(paged) = region.paged() else { continue };
            let Some(feed) = paged.source.feed() else { continue };
            let first = feed.first_page().saturating_sub(paged.first / PAGE);
            let free = paged.pages.range(..first).map(|(&n, _)| (start, n));
            passed.extend(free.filter(|at| !self.is_held(at)));
        }
        if passed.is_empty() {
            return Ok(());
        }
        // In order, as regions and their pages are.
        self.clock.retain(|at| passed.binary_search(&at).is_err());
        self.drop_pages(d, &passed).map(drop)
    }
}
