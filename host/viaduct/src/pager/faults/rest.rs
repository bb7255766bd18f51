// SPDX-License-Identifier: Apache-2.0
//! What is left of runs that were loaded as far as there were frames.

use std::sync::Arc;

use crate::dispatch::Dispatcher;
use crate::pager::faults::plan::Plan;
use crate::pager::state::ahead::PIECE;
use crate::pager::state::load::{Load, piece};
use crate::pager::state::space::Space;
use crate::protocol::desc::Place;

impl Space {
    /// Goes on with runs of which pages are left, with the frames that are free. Otherwise each of these pages would be a fault, and the link
    /// would wait for it.
    pub(in crate::pager) fn load_rest(&mut self, d: &Dispatcher) {
        // Runs are cut only while frames are short, and frames are for faults first.
        if !self.short || !d.lock().faults.is_empty() {
            return;
        }
        let starts: Vec<u64> = self.regions.keys().copied().collect();
        let loads: Vec<Load> = starts.into_iter().filter_map(|start| self.rest_of(d, start)).collect();
        if !loads.is_empty() {
            let mut plan = Plan::default();
            let there = self.read(d, &mut plan, loads);
            self.enter(d, &mut plan, there, &[]);
        }
    }

    /// The next pages of a run of the region at `start`.
    fn rest_of(&mut self, d: &Dispatcher, start: u64) -> Option<Load> {
        let under_way = self.pinned.len() + self.reads.pages();
        let region = self.regions.get(&start)?;
        let (step, size) = (region.page_bytes(), region.size);
        let paged = region.paged()?;
        let (number, owed) = paged.ahead.owed(paged.waits, under_way as u64)?;
        // They may have been loaded otherwise, or be cut off. And how much a stream has is asked for each fault anew.
        let end = paged.end.saturating_sub(paged.first).div_ceil(step).min(region.page_count());
        let wanted = |n: &u64| *n < end && !self.is_coming((start, *n));
        let wanted = match paged.source.flow() {
            Some(_) => 0,
            None => (number..number + owed).take_while(wanted).count() as u64,
        };
        if wanted == 0 {
            self.paged(start)?.ahead.waive(number);
            return None;
        }
        let most = if paged.waits { wanted } else { wanted.min(PIECE) }.min(self.staging.room() / step);
        if most == 0 || !self.can_launch() {
            return None;
        }
        let frames = self.free_frames(d, start, size, most);
        let count = frames.len() as u64;
        if count == 0 {
            return None;
        }
        let ahead = &mut self.paged(start)?.ahead;
        let before = Arc::new(*ahead);
        ahead.pay(number, count);
        let places = frames.into_iter().map(Place::Card).collect();
        let staged = self.staging.take_parts(count * step, piece(step) * step);
        Some(Load { number, count, places, staged, ..Load::new(start, before) })
    }
}
