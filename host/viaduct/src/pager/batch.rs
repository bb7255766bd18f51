// SPDX-License-Identifier: Apache-2.0
//! What is under way: batches of commands that fill pages, enter them into the card's TLBs and deny accesses; and evictions.

use std::collections::BTreeSet;

use crate::dispatch::Tag;
use crate::pager::advice::Keep;
use crate::pager::region::PageRef;
use crate::pager::staging::Staged;
use crate::protocol::desc::{Command, Event, Place};

/// A fault, and its place among those that were taken together.
pub(super) type Numbered = (usize, Event);

/// Pages of one region that enter the card's TLBs together, from the first on.
pub(super) struct Group {
    pub(super) start: u64,
    pub(super) pages: Vec<(u64, Place)>,
    /// They are to be written; otherwise, where the pager wants to know of writes, they enter without that right.
    pub(super) write: bool,
    /// Copies that fill them, and where from.
    pub(super) copies: Vec<Command>,
    pub(super) staged: Vec<Staged>,
}

/// What a command of a batch is for.
pub(super) enum Part {
    /// Fills a page.
    Copy(PageRef),
    Map(PageRef),
    /// Asks whether a page has been used that was loaded ahead as the last of so many.
    Look(PageRef, u64),
    Deny,
}

/// Commands of a batch, and what they are for.
#[derive(Default)]
pub(super) struct Composed {
    pub(super) commands: Vec<Command>,
    pub(super) parts: Vec<Part>,
}

/// A batch that is under way.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) composed: Composed,
    pub(super) tags: Vec<Tag>,
    /// The faults that it answers.
    pub(super) faults: Vec<Numbered>,
    /// Of these, the ones that it denies, and why; in the order of its denials.
    pub(super) denied: Vec<(Numbered, String)>,
    /// Pages that it fills.
    pub(super) filled: Vec<PageRef>,
    /// Pages that it enters: they are not evicted meanwhile.
    pub(super) taken: BTreeSet<PageRef>,
    /// Faults on these that came later.
    pub(super) others: Vec<Event>,
    /// Its parts of the staging memory.
    pub(super) staged: Vec<Staged>,
}

/// What is being done with pages that are to leave the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// They are being looked at.
    Asked,
    /// Their translations are being removed.
    Unmapped,
    /// So many of them from the given one on are being copied to host memory.
    Fetched(usize, usize),
}

/// Groups of pages that may be leaving at once: while one is looked at, others are unmapped or copied.
pub(super) const GROUPS: usize = 6;
/// Parts of the memory for changed pages: of these groups, of those who wait for the copies, and of those who write to a file without a lock.
pub(super) const LANES: usize = GROUPS + 2;
pub(super) const OWN_LANE: usize = GROUPS;
pub(super) const LASTING_LANE: usize = GROUPS + 1;

/// A group of pages that are to leave the card.
pub(super) struct Leaving {
    pub(super) pages: Vec<PageRef>,
    pub(super) keep: Keep,
    pub(super) stage: Stage,
    pub(super) tags: Vec<Tag>,
    /// The memory that its changed pages are copied to.
    pub(super) lane: usize,
}
