// SPDX-License-Identifier: Apache-2.0
//! Hints about how an app will use a range (FSRF, section 4.3).

/// What an app will do with a range of its address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Nothing is known: read-ahead follows the faults, and pages compete on equal terms. Undoes all below.
    Normal,
    /// It reads or writes in ascending order: every fault loads as much as one may, and pages are evicted in the order in which they
    /// were loaded, before those of other ranges.
    Sequential,
    /// It accesses in random order: nothing is read ahead. While card memory is full, pages stay in host memory, as far as there is memory for the
    /// whole mapping, and the card accesses them there: that costs the link less than a page brought in for one access, and evicted. Not
    /// those in the page table in card memory, which knows only pages of the card.
    Random,
    /// It will access the range soon: its pages are loaded now, as many as there is room for.
    WillNeed,
    /// It will not access the range for long: changed pages are written back, and the frames are freed. Changes of a private mapping are
    /// discarded, and the file's bytes come back.
    DontNeed,
    /// It will access the same pages again and again: pages of other ranges are evicted first.
    Reuse,
    /// It will access each page once, or seldom: its pages are evicted before those of other ranges.
    LowUse,
}

/// Order of accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::pager) enum Locality {
    #[default]
    Normal,
    Sequential,
    Random,
}

/// What leaves card memory first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(in crate::pager) enum Keep {
    /// The oldest goes first, used or not.
    Low,
    /// Pages that the card can access in host memory nearly as well.
    Overflow,
    #[default]
    Normal,
    Long,
}

impl Keep {
    /// In the order of eviction.
    pub(in crate::pager) const ALL: [Self; 4] = [Self::Low, Self::Overflow, Self::Normal, Self::Long];
}
