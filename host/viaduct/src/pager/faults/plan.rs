// SPDX-License-Identifier: Apache-2.0
//! What a batch of faults takes.

use std::collections::BTreeSet;

use crate::pager::state::batch::{Group, Numbered};
use crate::pager::state::load::Load;
use crate::pager::state::region::PageRef;

/// What a batch of faults takes.
#[derive(Default)]
pub(in crate::pager) struct Plan {
    pub(in crate::pager) taken: BTreeSet<PageRef>,
    pub(in crate::pager) maps: Vec<Group>,
    pub(in crate::pager) loads: Vec<Load>,
    pub(in crate::pager) denied: Vec<(Numbered, String)>,
    /// Pages that were loaded ahead and should have been used by now.
    pub(in crate::pager) looks: Vec<(PageRef, u64)>,
    /// No other fault waits.
    pub(in crate::pager) alone: bool,
    /// Faults of the next batch.
    pub(in crate::pager) later: Vec<Numbered>,
    /// Faults on pages that are under way: they were left to the reads or batches of these.
    pub(in crate::pager) away: BTreeSet<usize>,
}
