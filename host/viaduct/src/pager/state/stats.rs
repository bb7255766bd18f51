// SPDX-License-Identifier: Apache-2.0
//! What the pager counts and tells.

/// An access that was completed with an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// Virtual address.
    pub va: u64,
    /// It was a write.
    pub is_write: bool,
    /// Why.
    pub why: String,
}

/// Counters of the pager.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PagerStats {
    /// Faults served.
    pub faults: u64,
    /// Faults on pages that were resident and only had to be mapped again.
    pub remapped: u64,
    /// Pages read from their file or buffer.
    pub pages_in: u64,
    /// Pages written back.
    pub pages_out: u64,
    /// Pages evicted.
    pub evicted: u64,
    /// Pages that stayed in host memory, since card memory was full.
    pub overflowed: u64,
    /// Accesses denied.
    pub denied: u64,
    /// Entries of the page table in card memory that were damaged.
    pub damaged: u64,
    /// Blocks of 2 MiB that got pages of 4 KiB, as there was no room for 2 MiB or a part of it was unmapped.
    pub demoted: u64,
    /// Blocks of 2 MiB that got a page of that size again.
    pub promoted: u64,
}
