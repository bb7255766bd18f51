// SPDX-License-Identifier: Apache-2.0
//! Batches of commands that are under way. Faults that come meanwhile are served by further ones. The card carries out what concerns
//! translations in order, so they end in order.

use std::collections::BTreeSet;

use crate::dispatch::{Dispatcher, State, Tag};
use crate::error::Result;
use crate::pager::state::batch::Batch;
use crate::pager::state::region::PageRef;
use crate::pager::state::space::Space;
use crate::pager::state::staging::Staged;
use crate::protocol::desc::{Completion, Event};

/// Most batches under way, and most pages that are in them or being read.
const BATCHES: usize = 32;
const PAGES: usize = 256;

impl Space {
    /// Whether there may be another batch.
    pub(in crate::pager) fn can_launch(&self) -> bool {
        self.batches.len() < BATCHES && self.pinned.len() + self.reads.pages() < PAGES
    }

    /// Whether something is under way after whose end there may be more room.
    pub(in crate::pager) fn any_under_way(&self) -> bool {
        !self.batches.is_empty() || !self.reads.is_empty() || !self.leaving.is_empty()
    }

    /// Notes, at the end of serving, what a thread that waits is woken by. So many faults are left that have no room until something ends; those
    /// that have come since have not been tried.
    pub(in crate::pager) fn watch_all(&self, d: &Dispatcher, left: usize) {
        let mut st = d.lock();
        self.watch_in(&mut st);
        st.stalled = left > 0 && st.faults.len() <= left && self.any_under_way();
    }

    /// After work of a thread that need not serve: what it has taken note of may be what faults wait for.
    pub(in crate::pager) fn stir(&self, d: &Dispatcher) {
        let mut st = d.lock();
        st.stalled = false;
        let wanted = !st.faults.is_empty() || st.poked;
        drop(st);
        if wanted {
            d.wake();
        }
    }

    /// Submits a batch. Upon an error nothing is known of its pages.
    pub(in crate::pager) fn launch(&mut self, d: &Dispatcher, mut batch: Batch) {
        self.pinned.extend(&batch.taken);
        let submitted = d.submit(&batch.composed.commands);
        match submitted {
            Ok(tags) => batch.tags = tags,
            Err(error) => {
                self.landed(d, batch, Err(error));
                return;
            }
        }
        self.batches.push_back(batch);
        self.watch(d);
    }

    /// Frees staging memory whose bytes are in the card, or are not needed.
    pub(in crate::pager) fn unstage(&mut self, staged: impl IntoIterator<Item = Staged>) {
        staged.into_iter().for_each(|part| self.staging.free(part));
    }

    /// Takes note of batches that have ended.
    pub(in crate::pager) fn land(&mut self, d: &Dispatcher) {
        while let Some(batch) = self.batches.front() {
            let Some(done) = d.lock().take_all(&batch.tags) else { break };
            if let Some(batch) = self.batches.pop_front() {
                self.landed(d, batch, Ok(done));
            }
        }
        self.watch(d);
    }

    /// Waits for the oldest batch; `false` if there is none.
    pub(in crate::pager) fn land_oldest(&mut self, d: &Dispatcher) -> bool {
        let Some(batch) = self.batches.pop_front() else { return false };
        let done = d.collect("mapping pages", &batch.tags);
        self.landed(d, batch, done);
        self.watch(d);
        true
    }

    /// A thread that waits is woken when the oldest batch or a step of leaving pages has ended: when its last command has, and then, should
    /// the card not keep the order, when one has that is left.
    pub(in crate::pager) fn watch(&self, d: &Dispatcher) {
        self.watch_in(&mut d.lock());
    }

    fn watch_in(&self, st: &mut State) {
        let leaving = self.leaving.iter().map(|leaving| &leaving.tags);
        let steps = self.batches.front().map(|batch| &batch.tags).into_iter().chain(leaving);
        let last = |tags: &Vec<Tag>| {
            let left = tags.iter().rev().find(|&&tag| !st.is_done(tag));
            left.or(tags.last()).copied()
        };
        st.flight = steps.filter_map(last).collect();
        st.stalled = false;
    }

    /// From now on these pages are neither mapped nor written back; they are given up at the next occasion.
    fn spoil(&mut self, pages: Vec<PageRef>) {
        for &(start, number) in &pages {
            if let Some(page) = self.page(start, number) {
                page.spoiled = true;
            }
        }
        self.spoiled.extend(pages);
    }

    fn landed(&mut self, d: &Dispatcher, batch: Batch, done: Result<Vec<Completion>>) {
        let Batch { composed, faults, denied, filled, taken, others, staged, .. } = batch;
        self.pinned.retain(|at| !taken.contains(at));
        self.unstage(staged);
        let mut left: Vec<Event> = Vec::new();
        let entered = done.and_then(|done| self.note(d, &composed, &done));
        match entered {
            Ok(entered) => {
                let mut told = BTreeSet::new();
                for ((number, fault), why) in entered.denied.iter().filter_map(|&at| denied.get(at)) {
                    told.insert(*number);
                    self.record_denied(d, *fault, why.clone());
                }
                self.spoil(entered.spoiled);
                if let Some(error) = entered.error {
                    self.trouble.get_or_insert(error);
                    // Those whose pages have been mapped are recognised as such: they are older than their pages' translations.
                    left.extend(faults.iter().filter(|(n, _)| !told.contains(n)).map(|&(_, fault)| fault));
                }
                self.stats.faults += (faults.len() - left.len()) as u64;
            }
            Err(error) => {
                self.trouble.get_or_insert(error);
                self.spoil(filled);
                left.extend(faults.iter().map(|&(_, fault)| fault));
            }
        }
        left.extend(others);
        let mut st = d.lock();
        left.into_iter().rev().for_each(|fault| st.faults.push_front(fault));
    }
}
