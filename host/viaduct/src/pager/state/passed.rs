// SPDX-License-Identifier: Apache-2.0
//! Pages that left when they were found used for the first time.

use std::collections::VecDeque;

use crate::pager::state::region::PageRef;

/// Most pages that are remembered.
const MOST: usize = 64;
/// What a page that is needed again soon counts, and one that is not counts back. With so many counts no page leaves that early.
const BACK: u64 = 4;
const LIMIT: u64 = 8;
const HIGHEST: u64 = 64;

/// Whether pages may leave when they are found used for the first time. That is right for pages that are passed over once, or seldom: they need
/// not be looked at again. Of those that are in use, it would cost a fault each. The last ones that left tell which it is.
#[derive(Default)]
pub(in crate::pager) struct Passed {
    gone: VecDeque<PageRef>,
    regret: u64,
}

impl Passed {
    /// Whether they may.
    pub(in crate::pager) fn may_leave(&self) -> bool {
        self.regret < LIMIT
    }

    /// One has left, while so many pages have frames. A page that is needed again after a fourth of these were replaced would have left anyhow.
    pub(in crate::pager) fn left(&mut self, at: PageRef, frames: usize) {
        self.gone.push_back(at);
        while self.gone.len() > (frames / 4).min(MOST) {
            self.gone.pop_front();
            self.regret = self.regret.saturating_sub(1);
        }
    }

    /// A page is loaded.
    pub(in crate::pager) fn comes(&mut self, at: PageRef) {
        if let Some(found) = self.gone.iter().position(|&gone| gone == at) {
            self.gone.remove(found);
            self.regret = (self.regret + BACK).min(HIGHEST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_passed_over_go_on_leaving() {
        let mut passed = Passed::default();
        for n in 0..1000 {
            passed.comes((0, n));
            passed.left((0, n), 256);
            assert!(passed.may_leave());
        }
        // A scan in a circle that is larger than what is remembered.
        for n in (0..100).cycle().take(1000) {
            passed.comes((1, n));
            passed.left((1, n), 256);
            assert!(passed.may_leave());
        }
    }

    #[test]
    fn pages_that_come_back_soon_stay_until_others_do_not() {
        let mut passed = Passed::default();
        for n in 0..2 {
            passed.left((0, n), 256);
            passed.comes((0, n));
        }
        assert!(!passed.may_leave());
        (100..100 + MOST as u64).for_each(|n| passed.left((0, n), 256));
        assert!(!passed.may_leave(), "it is not known yet whether these come back");
        passed.left((0, 1000), 256);
        assert!(passed.may_leave());
    }
}
