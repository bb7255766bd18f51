// SPDX-License-Identifier: Apache-2.0
//! What is under way: batches of commands that fill pages, enter them into the card's TLBs and deny accesses; and evictions.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::dispatch::Tag;
use crate::pager::state::advice::Keep;
use crate::pager::state::region::PageRef;
use crate::pager::state::staging::Staged;
use crate::pager::state::store::Store;
use crate::protocol::desc::{Command, Event, Place};

/// A fault, and its index among those that were taken together.
pub(in crate::pager) type Numbered = (usize, Event);

/// Pages of one region that enter the card's TLBs together, from the first on.
pub(in crate::pager) struct Group {
    pub(in crate::pager) start: u64,
    pub(in crate::pager) pages: Vec<(u64, Place)>,
    /// They are to be written; otherwise, where the pager wants to know of writes, they enter without that right.
    pub(in crate::pager) write: bool,
    /// Copies that fill them, and where from.
    pub(in crate::pager) copies: Vec<Command>,
    pub(in crate::pager) staged: Vec<Staged>,
}

/// What a command of a batch is for.
pub(in crate::pager) enum Part {
    /// Fills a page.
    Copy(PageRef),
    Map(PageRef),
    /// Asks whether a page has been used that was loaded ahead as the last of so many.
    Look(PageRef, u64),
    Deny,
}

/// Commands of a batch, and what they are for.
#[derive(Default)]
pub(in crate::pager) struct Composed {
    pub(in crate::pager) commands: Vec<Command>,
    pub(in crate::pager) parts: Vec<Part>,
}

/// A batch that is under way.
#[derive(Default)]
pub(in crate::pager) struct Batch {
    pub(in crate::pager) composed: Composed,
    pub(in crate::pager) tags: Vec<Tag>,
    /// The faults that it answers.
    pub(in crate::pager) faults: Vec<Numbered>,
    /// Of these, the ones that it denies, and why; in the order of its denials.
    pub(in crate::pager) denied: Vec<(Numbered, String)>,
    /// Pages that it fills.
    pub(in crate::pager) filled: Vec<PageRef>,
    /// Pages that it enters: they are not evicted meanwhile.
    pub(in crate::pager) taken: BTreeSet<PageRef>,
    /// Faults on these that came later.
    pub(in crate::pager) others: Vec<Event>,
    /// Its parts of the staging memory.
    pub(in crate::pager) staged: Vec<Staged>,
}

/// What is being done with pages that are to leave the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::pager) enum Stage {
    /// They are being looked at.
    Asked,
    /// Their translations are being removed, and those will stay that were not used yet.
    Tried,
    /// Their translations are being removed.
    Unmapped,
    /// So many of them from the given one on are being copied to host memory.
    Fetched(usize, usize),
    /// Of those before the given one, some are being written by a thread.
    Stored(usize),
}

/// Groups of pages that may be leaving at once: while one is looked at, others are unmapped or copied.
pub(in crate::pager) const GROUPS: usize = 6;
/// Parts of the memory for changed pages: of these groups, of those who wait for the copies, and of those who write to a file without a lock.
pub(in crate::pager) const LANES: usize = GROUPS + 2;
pub(in crate::pager) const OWN_LANE: usize = GROUPS;
pub(in crate::pager) const LASTING_LANE: usize = GROUPS + 1;

/// A group of pages that are to leave the card.
pub(in crate::pager) struct Leaving {
    pub(in crate::pager) pages: Vec<PageRef>,
    pub(in crate::pager) keep: Keep,
    pub(in crate::pager) stage: Stage,
    pub(in crate::pager) tags: Vec<Tag>,
    /// The memory that its changed pages are copied to.
    pub(in crate::pager) lane: usize,
    pub(in crate::pager) store: Option<Arc<Store>>,
}

impl Leaving {
    /// Of which nothing is under way yet.
    pub fn new(pages: Vec<PageRef>, keep: Keep, stage: Stage, lane: usize) -> Self {
        Self { pages, keep, stage, tags: Vec::new(), lane, store: None }
    }
}
