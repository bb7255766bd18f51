// SPDX-License-Identifier: Apache-2.0
//! Read-ahead: how many pages a fault loads.

use crate::pager::advice::Locality;

/// Most small pages that one fault loads.
const MOST: u64 = 64;

/// The read-ahead of a mapping: doubles while faults follow the pages loaded last, and begins again with one page otherwise.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    next: u64, // page after the last one loaded
    pages: u64,
}

impl Ahead {
    pub(super) fn new() -> Self {
        Self { next: 0, pages: 1 }
    }

    /// Pages to load for a fault on page `number` that is not resident.
    pub(super) fn pages(&mut self, number: u64, locality: Locality) -> u64 {
        self.pages = match locality {
            Locality::Sequential => MOST,
            Locality::Random => 1,
            Locality::Normal if self.next == number => (self.pages * 2).min(MOST),
            Locality::Normal => 1,
        };
        self.pages
    }

    /// Pages up to `next` are being loaded.
    pub(super) fn loaded(&mut self, next: u64) {
        self.next = next;
    }

    /// Those up to `next` were to be loaded, but there are frames up to `end` only.
    pub(super) fn shorten(&mut self, next: u64, end: u64) {
        if self.next == next {
            self.next = end;
        }
    }
}
