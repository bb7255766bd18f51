// SPDX-License-Identifier: Apache-2.0
//! The order in which pages with frames of card memory are checked for eviction.

use std::collections::VecDeque;

use crate::pager::state::advice::Keep;
use crate::pager::state::region::PageRef;

/// A queue for each class of pages; new ones enter at the end.
#[derive(Default)]
pub(in crate::pager) struct Clock([VecDeque<PageRef>; Keep::ALL.len()]);

impl Clock {
    pub(in crate::pager) fn queue(&mut self, keep: Keep) -> &mut VecDeque<PageRef> {
        &mut self.0[keep as usize]
    }

    pub(in crate::pager) fn push(&mut self, at: PageRef, keep: Keep) {
        self.queue(keep).push_back(at);
    }

    /// Pages in all queues.
    pub(in crate::pager) fn len(&self) -> usize {
        self.0.iter().map(VecDeque::len).sum()
    }

    pub(in crate::pager) fn retain(&mut self, mut stays: impl FnMut(PageRef) -> bool) {
        self.0.iter_mut().for_each(|queue| queue.retain(|&at| stays(at)));
    }

    /// Changes how pages are named.
    pub(in crate::pager) fn rename(&mut self, name: impl Fn(PageRef) -> PageRef) {
        self.0.iter_mut().flatten().for_each(|at| *at = name(*at));
    }

    /// Moves pages to another class, in their order.
    pub(in crate::pager) fn reclassify(&mut self, which: impl Fn(PageRef) -> bool, to: Keep) {
        let mut moved = VecDeque::new();
        for queue in &mut self.0 {
            moved.extend(queue.iter().copied().filter(|&at| which(at)));
            queue.retain(|&at| !which(at));
        }
        self.queue(to).append(&mut moved);
    }
}
