// SPDX-License-Identifier: Apache-2.0
//! The order in which pages with frames of card memory are checked for eviction.

use std::collections::VecDeque;

use crate::pager::state::advice::Keep;
use crate::pager::state::region::PageRef;

/// A queue for each class of pages; new ones enter at the end.
#[derive(Default)]
pub(in crate::pager) struct Clock {
    queues: [VecDeque<PageRef>; Keep::ALL.len()],
    /// Pages that were loaded into frames so far.
    loaded: u64,
}

impl Clock {
    pub(in crate::pager) fn queue(&mut self, keep: Keep) -> &mut VecDeque<PageRef> {
        &mut self.queues[keep as usize]
    }

    /// A page has been loaded. Returns its number in the order of loading.
    pub(in crate::pager) fn enter(&mut self, at: PageRef, keep: Keep) -> u64 {
        self.push(at, keep);
        self.loaded += 1;
        self.loaded
    }

    /// Pages that were loaded so far.
    pub(in crate::pager) fn loaded(&self) -> u64 {
        self.loaded
    }

    pub(in crate::pager) fn push(&mut self, at: PageRef, keep: Keep) {
        self.queue(keep).push_back(at);
    }

    /// Pages in all queues.
    pub(in crate::pager) fn len(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    pub(in crate::pager) fn retain(&mut self, mut stays: impl FnMut(PageRef) -> bool) {
        self.queues.iter_mut().for_each(|queue| queue.retain(|&at| stays(at)));
    }

    /// Changes how pages are named.
    pub(in crate::pager) fn rename(&mut self, name: impl Fn(PageRef) -> PageRef) {
        self.queues.iter_mut().flatten().for_each(|at| *at = name(*at));
    }

    /// Moves pages to another class, in their order.
    pub(in crate::pager) fn reclassify(&mut self, which: impl Fn(PageRef) -> bool, to: Keep) {
        let mut moved = VecDeque::new();
        for queue in &mut self.queues {
            moved.extend(queue.iter().copied().filter(|&at| which(at)));
            queue.retain(|&at| !which(at));
        }
        self.queue(to).append(&mut moved);
    }
}
