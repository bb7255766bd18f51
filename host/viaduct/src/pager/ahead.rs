// SPDX-License-Identifier: Apache-2.0
//! Read-ahead: how many pages a fault loads.

use crate::pager::advice::Locality;

/// Most small pages that one fault loads.
const MOST: u64 = 64;

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
}

impl Ahead {
    pub(super) fn new() -> Self {
        Self { next: 0, pages: 1, limit: MOST, unused: false, runs: [(0, 0); 2] }
    }

    /// Pages to load for a fault on page `number` that is not resident.
    pub(super) fn pages(&mut self, number: u64, locality: Locality) -> u64 {
        self.pages = match locality {
            Locality::Sequential => MOST,
            Locality::Random => 1,
            Locality::Normal if self.follows(number) => (self.pages * 2).min(self.limit),
            Locality::Normal => 1,
        };
        self.pages
    }

    /// Whether page `number` is the one after those loaded last.
    pub(super) fn follows(&self, number: u64) -> bool {
        self.next == number
    }

    /// Whether it has gone in order through all of so many pages, loading as much as it may.
    pub(super) fn has_passed(&self, count: u64) -> bool {
        self.next == count && self.pages == MOST
    }

    /// The page whose use is worth looking at now, if there is one, and how many were loaded with it. Of pages that were loaded alone, only
    /// growth can be learned.
    pub(super) fn due(&self) -> Option<(u64, u64)> {
        let (first, count) = self.runs[0];
        (count > 1 || count == 1 && self.limit < MOST).then(|| (first + count - 1, count))
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

    /// `count` pages from `first` on are being loaded.
    pub(super) fn loaded(&mut self, first: u64, count: u64) {
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
            let (first, pages) = (ahead.next, ahead.pages(ahead.next, Locality::Normal));
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
}
