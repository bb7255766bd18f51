// SPDX-License-Identifier: Apache-2.0
//! The budget of host memory for pages that card memory has no room for. It is the memory that counts, and not the mappings: these can be cut
//! into parts, which share it, and a read that is still under way holds it longer than they do.

use std::sync::{Arc, Weak};

use crate::card::dma::DmaBuffer;

/// How much there may be, and what there is.
pub(in crate::pager) struct HostBudget {
    limit: u64,
    /// Memory that was taken, and its bytes.
    taken: Vec<(Weak<DmaBuffer>, u64)>,
}

impl HostBudget {
    pub(in crate::pager) fn new() -> Self {
        Self { limit: u64::MAX, taken: Vec::new() }
    }

    /// From now on there may be so many bytes. What is there already stays, and counts.
    pub(in crate::pager) fn set_limit(&mut self, bytes: u64) {
        self.limit = bytes;
    }

    /// Whether so many bytes may be taken.
    pub(in crate::pager) fn has_room(&mut self, bytes: u64) -> bool {
        self.limit.saturating_sub(self.in_use()) >= bytes
    }

    /// So many bytes were taken; they are there as long as this memory is.
    pub(in crate::pager) fn take(&mut self, memory: &Arc<DmaBuffer>, bytes: u64) {
        self.taken.push((Arc::downgrade(memory), bytes));
    }

    /// The system has refused so many bytes: there are fewer.
    pub(in crate::pager) fn lower(&mut self, bytes: u64) {
        self.limit = self.in_use() + bytes - 1;
    }

    fn in_use(&mut self) -> u64 {
        self.taken.retain(|(buffer, _)| buffer.strong_count() > 0);
        self.taken.iter().map(|&(_, bytes)| bytes).sum()
    }
}
