// SPDX-License-Identifier: Apache-2.0
//! Mappings of streams that are written: complete pages go to the stream, in order.

use std::ops::Range;
use std::sync::Arc;

use crate::backing::Source;
use crate::dispatch::Dispatcher;
use crate::error::Result;
use crate::pager::state::region::{BATCH, Page, PageRef};
use crate::pager::state::space::Space;
use crate::protocol::desc::PAGE;

impl Space {
    /// Streams that are written through mappings in a range, all or one mapping's, and the byte of each at which the range ends.
    pub fn written_streams(&self, range: &Range<u64>, owner: Option<u64>) -> Vec<(Arc<Source>, u64)> {
        let mut found: Vec<(Arc<Source>, u64)> = Vec::new();
        for start in self.overlapping(range) {
            let region = &self.regions[&start];
            let Some(paged) = region.paged() else { continue };
            if paged.source.outlet().is_none() || owner.is_some_and(|owner| paged.owner != owner) {
                continue;
            }
            let until = paged.first + (range.end - start).min(region.len);
            match found.iter_mut().find(|(source, _)| Arc::ptr_eq(source, &paged.source)) {
                Some((_, byte)) => *byte = until.max(*byte),
                None => found.push((Arc::clone(&paged.source), until)),
            }
        }
        found
    }

    /// Gives pages to the stream, up to one of its bytes. Returns whether there was any, and there may be more.
    pub fn send_some(&mut self, d: &Dispatcher, source: &Arc<Source>, until: u64) -> Result<bool> {
        self.settle(d);
        self.send(d, source, until)
    }

    /// Gives pages that are complete to their streams.
    pub(in crate::pager) fn send_complete(&mut self, d: &Dispatcher) -> Result<()> {
        for (source, end) in self.written_streams(&(0..u64::MAX), None) {
            let Some(outlet) = source.outlet() else { continue };
            let until = outlet.complete().min(end);
            if outlet.released() < until && self.send(d, &source, until)? {
                d.lock().poked = true;
            }
        }
        Ok(())
    }

    /// The next pages leave the card, with what the app has written there, up to one that it has not written. Without translations they
    /// cannot change, so what is released is final.
    fn send(&mut self, d: &Dispatcher, source: &Arc<Source>, until: u64) -> Result<bool> {
        let Some(outlet) = source.outlet() else { return Ok(false) };
        self.finish_retiring(d)?;
        let before = outlet.released();
        let numbers = (before / PAGE..until.div_ceil(PAGE)).take(BATCH);
        let there: Vec<PageRef> = numbers.clone().filter_map(|number| self.page_of(source, number)).collect();
        let mapped = |at: &&PageRef| self.page_ref(**at).is_some_and(|page| page.mapped);
        let asked: Vec<PageRef> = there.iter().filter(mapped).copied().collect();
        // A page that is not written stays where it is: the app may be about to.
        let written = self.look(d, &asked)?;
        let mut pages: Vec<PageRef> = Vec::new();
        for number in numbers {
            let at = self.page_of(source, number);
            let changed = |at| written.contains(&at) || self.page_ref(at).is_some_and(Page::changed);
            match at {
                Some(at) if self.is_held(&at) => break,
                Some(at) if changed(at) || outlet.holds(number) => pages.push(at),
                None if outlet.holds(number) => {}
                _ => break,
            }
        }
        let of = |space: &Self, which: fn(&Page) -> bool| -> Vec<PageRef> {
            pages.iter().copied().filter(|&at| space.page_ref(at).is_some_and(which)).collect()
        };
        let mapped = of(self, |page| page.mapped);
        self.leave(d, &mapped)?;
        let changed = of(self, Page::changed);
        self.write_back(d, &changed)?;
        outlet.release(until.min((before / PAGE + BATCH as u64) * PAGE));
        let after = outlet.released();
        let passed = |&(start, n): &PageRef| {
            self.regions[&start].paged().is_some_and(|paged| paged.first + (n + 1) * PAGE <= after)
        };
        let passed: Vec<PageRef> = pages.iter().copied().filter(passed).collect();
        self.clock.retain(|at| !passed.contains(&at));
        self.drop_pages(d, &passed)?;
        Ok(after > before)
    }

    /// Page `number` of a stream, if it is on the card.
    fn page_of(&self, source: &Arc<Source>, number: u64) -> Option<PageRef> {
        self.regions.iter().find_map(|(&start, region)| {
            let paged = region.paged().filter(|paged| Arc::ptr_eq(&paged.source, source))?;
            let own = number.checked_sub(paged.first / PAGE)?;
            paged.pages.contains_key(&own).then_some((start, own))
        })
    }
}
