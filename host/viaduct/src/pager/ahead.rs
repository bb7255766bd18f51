// SPDX-License-Identifier: Apache-2.0
//! Read-ahead: how many pages a fault loads.

use crate::pager::advice::Locality;

/// Most small pages that one fault loads.
pub(super) const MOST: u64 = 64;
/// Small pages of a slot under way that keep the link busy, and a disk. While there are more, faults that come together load what they ask
/// for, and nothing ahead: it would have to wait for that.
const LINK: u64 = 16;
const DISK: u64 = 128;

/// The read-ahead of a mapping: doubles while faults follow the pages loaded last, and begins again with one page otherwise. Its limit
/// follows the use of what it has loaded: of each run of pages the last one is looked at when the one after the next is loaded.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    next: u64, // page after the last one loaded
    pages: u64,
    limit: u64,
    /// The page that was looked at last was not used.
    unused: bool,
    /// The first page and number of pages of the last two runs, the older one first.
    runs: [(u64, u64); 2],
    /// The last page of a run behind which the app did not go on, and the number of its pages.
    doubt: Option<(u64, u64)>,
    /// Faults that load their own page only, as one of several that were to be loaded together could not be read.
    careful: u64,
}

impl Ahead {
    pub(super) fn new() -> Self {
        Self { next: 0, pages: 1, limit: MOST, unused: false, runs: [(0, 0); 2], doubt: None, careful: 0 }
    }

    /// Pages to load for a fault on page `number` that is not resident, while so many are under way, and pages wait for a disk or do not.
    pub(super) fn pages(&mut self, number: u64, locality: Locality, wait: bool, under_way: u64) -> u64 {
        if self.careful > 0 {
            self.careful -= 1;
            return 1;
        }
        let busy = under_way >= if wait { DISK } else { LINK };
        self.pages = match locality {
            Locality::Sequential => MOST,
            Locality::Random => 1,
            Locality::Normal if self.follows(number) && busy => return 1,
            Locality::Normal if self.follows(number) => (self.pages * 2).min(self.limit),
            Locality::Normal => 1,
        };
        self.pages
    }

    /// Of pages that were to be loaded together one could not be read.
    pub(super) fn be_careful(&mut self) {
        self.careful = MOST;
    }

    /// Whether page `number` is the one after those loaded last.
    pub(super) fn follows(&self, number: u64) -> bool {
        self.next == number
    }

    /// Whether page `number` is the one after the last two runs, which were in order.
    pub(super) fn in_order(&self, number: u64) -> bool {
        let [(first, count), (second, _)] = self.runs;
        self.follows(number) && first + count == second
    }

    /// The page whose use is worth looking at now, if there is one, and how many were loaded with it. Of pages that were loaded alone, only
    /// growth can be learned.
    pub(super) fn due(&self) -> Option<(u64, u64)> {
        let (first, count) = self.runs[0];
        (count > 1 || count == 1 && self.limit < MOST).then(|| (first + count - 1, count))
    }

    /// The last page of a run that may have been loaded for nothing, and the number of its pages.
    pub(super) fn doubt(&self) -> Option<(u64, u64)> {
        self.doubt
    }

    /// That will be known.
    pub(super) fn dispel(&mut self) {
        self.doubt = None;
    }

    /// Whether the last one of `count` pages that were loaded together has been used. One that has not may be the end of what the app
    /// reads in order: only the second in a row counts.
    pub(super) fn judge(&mut self, count: u64, used: bool) {
        self.limit = match (used, self.unused) {
            (true, _) => self.limit.max(count * 2).min(MOST),
            (false, true) => self.limit.min(count / 2).max(1),
            (false, false) => self.limit,
        };
        self.unused = !used;
        self.pages = self.pages.min(self.limit);
    }

    /// The app has gone on behind a run of `count` pages.
    pub(super) fn went_on(&mut self, count: u64) {
        self.limit = self.limit.max(count * 2).min(MOST);
    }

    /// `count` pages from `first` on are being loaded.
    pub(super) fn loaded(&mut self, first: u64, count: u64) {
        let (last, ahead) = self.runs[1];
        if self.doubt.is_none() && ahead > 1 && !self.follows(first) {
            self.doubt = Some((last + ahead - 1, ahead));
        }
        self.next = first + count;
        self.runs = [self.runs[1], (first, count)];
    }

    /// Those up to `next` were to be loaded, but there are frames up to `end` only.
    pub(super) fn shorten(&mut self, next: u64, end: u64) {
        if self.next == next {
            self.next = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages that runs of faults in order load, if the last page of each was used or not.
    fn runs(ahead: &mut Ahead, count: usize, used: bool) -> Vec<u64> {
        let one = |_| {
            if let Some((_, count)) = ahead.due() {
                ahead.judge(count, used);
            }
            let (first, pages) = (ahead.next, ahead.pages(ahead.next, Locality::Normal, false, 0));
            ahead.loaded(first, pages);
            pages
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn it_grows_while_its_pages_are_used_and_shrinks_while_they_are_not() {
        let mut ahead = Ahead::new();
        assert_eq!(runs(&mut ahead, 8, true), [2, 4, 8, 16, 32, 64, 64, 64]);
        assert_eq!(runs(&mut ahead, 5, false), [64, 32, 32, 16, 16]);
        runs(&mut ahead, 16, false);
        assert_eq!(runs(&mut ahead, 3, false), [1, 1, 1]);
        assert_eq!(runs(&mut ahead, 8, true), [2, 2, 4, 4, 8, 8, 16, 16]);
    }

    /// Reads places of so many pages each, far from one another, of which nothing is used that was not asked for. The pages that faults load.
    fn places(ahead: &mut Ahead, each: u64, count: u64, waits: bool, under_way: u64) -> Vec<u64> {
        let mut loaded = Vec::new();
        for place in (1..=count).map(|n| n * 10_000) {
            let mut at = place;
            while at < place + each {
                if let Some((due, run)) = ahead.doubt() {
                    ahead.judge(run, due % 10_000 < each);
                    ahead.dispel();
                }
                let pages = ahead.pages(at, Locality::Normal, waits, under_way);
                if ahead.in_order(at) {
                    ahead.due().into_iter().for_each(|(_, run)| ahead.went_on(run));
                }
                ahead.loaded(at, pages);
                loaded.push(pages);
                at += pages;
            }
        }
        loaded
    }

    #[test]
    fn nothing_is_loaded_ahead_while_the_link_is_busy_with_what_was_asked_for() {
        assert_eq!(places(&mut Ahead::new(), 64, 4, false, LINK), [1; 256]);
        let disk = places(&mut Ahead::new(), 256, 1, true, LINK);
        assert_eq!(disk[..7], [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(places(&mut Ahead::new(), 256, 1, true, DISK), [1; 256]);
    }

    #[test]
    fn what_is_loaded_for_nothing_becomes_little_or_nothing() {
        let wasted = |each, count| {
            let mut ahead = Ahead::new();
            places(&mut ahead, each, 16, true, 0);
            places(&mut ahead, each, count, true, 0).iter().sum::<u64>() - each * count
        };
        assert_eq!(wasted(1, 64), 0);
        assert_eq!(wasted(2, 64), 0);
        // Less than half of what is used.
        assert!(wasted(16, 64) < 8 * 64, "{}", wasted(16, 64));
    }

    #[test]
    fn after_an_error_pages_are_loaded_one_by_one_for_a_while() {
        let mut ahead = Ahead::new();
        ahead.be_careful();
        let pages: Vec<u64> = (0..MOST).map(|n| ahead.pages(n, Locality::Sequential, true, 0)).collect();
        assert_eq!(pages, [1; MOST as usize]);
        assert_eq!(ahead.pages(MOST, Locality::Sequential, true, 0), MOST);
    }
}
