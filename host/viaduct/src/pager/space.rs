// SPDX-License-Identifier: Apache-2.0
//! The state of an address space.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::card::dma::DmaBuffer;
use crate::error::{Error, Result};
use crate::pager::region::{Failure, Kind, Page, PageRef, Region};
use crate::pager::stats::{Denied, PagerStats};
use crate::protocol::desc::*;
use crate::slot::dispatch::Dispatcher;

/// First allocated virtual address: null pointers of apps, and addresses near them, are never mapped.
const VA_FIRST: u64 = 1 << 32;

/// Bytes moved between files and card memory in one step.
pub(super) const BOUNCE: u64 = HUGE;
/// Denied accesses and failed write-backs kept for the user.
pub(super) const KEEP: usize = 64;

/// The address space of a slot.
pub(crate) struct Space {
    pub(super) regions: BTreeMap<u64, Region>,
    pub(super) clock: VecDeque<PageRef>, // pages that hold card frames, in the order they are checked
    pub(super) resident: u64,            // bytes of card frames
    pub(super) budget: u64,
    pub(super) bounce: Option<DmaBuffer>,
    /// Pages that are being mapped: they are not evicted.
    pub(super) pinned: BTreeSet<PageRef>,
    pub(super) denied: VecDeque<Denied>,
    pub(super) stats: PagerStats,
}

impl Space {
    /// An empty address space whose pages may hold `budget` bytes of card memory.
    pub fn new(budget: u64) -> Self {
        Self {
            regions: BTreeMap::new(),
            clock: VecDeque::new(),
            resident: 0,
            budget,
            bounce: None,
            pinned: BTreeSet::new(),
            denied: VecDeque::new(),
            stats: PagerStats::default(),
        }
    }

    /// Bytes of card memory that pages may hold.
    pub fn set_budget(&mut self, bytes: u64) {
        self.budget = bytes;
    }

    /// Counters.
    pub fn stats(&self) -> PagerStats {
        self.stats
    }

    /// Denied accesses, oldest first; each is reported once.
    pub fn take_denied(&mut self) -> Vec<Denied> {
        self.denied.drain(..).collect()
    }

    pub(super) fn insert(&mut self, region: Region) -> Result<u64> {
        let align = region.page_bytes();
        let bytes = region.page_count() * align;
        let mut at = VA_FIRST;
        for (&start, other) in &self.regions {
            if at + bytes + PAGE <= start {
                break;
            }
            // One page stays free between regions, so that an access beyond the end is detected.
            at = (start + other.page_count() * other.page_bytes() + PAGE).next_multiple_of(align);
        }
        if bytes >= VA_END - at {
            return Err(Error::Invalid(format!(
                "{} bytes do not fit into the slot's address space",
                region.len
            )));
        }
        self.regions.insert(at, region);
        Ok(at)
    }

    pub(super) fn find(&self, va: u64) -> Option<(u64, &Region)> {
        let (&start, region) = self.regions.range(..=va).next_back()?;
        (va - start < region.page_count() * region.page_bytes()).then_some((start, region))
    }

    pub(super) fn page(&mut self, region: u64, number: u64) -> Option<&mut Page> {
        match &mut self.regions.get_mut(&region)?.kind {
            Kind::Paged(paged) => paged.pages.get_mut(&number),
            Kind::Window(_) => None,
        }
    }

    pub(super) fn page_ref(&self, (region, number): PageRef) -> Option<&Page> {
        match &self.regions.get(&region)?.kind {
            Kind::Paged(paged) => paged.pages.get(&number),
            Kind::Window(_) => None,
        }
    }

    pub(super) fn pages_of(&self, va: u64, which: impl Fn(&Page) -> bool) -> Vec<PageRef> {
        match self.regions.get(&va) {
            Some(Region { kind: Kind::Paged(paged), .. }) => {
                paged.pages.iter().filter(|(_, page)| which(page)).map(|(&n, _)| (va, n)).collect()
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn fail(&mut self, start: u64, error: Error) {
        if let Some(Region { kind: Kind::Paged(paged), .. }) = self.regions.get_mut(&start) {
            if paged.failures.len() < KEEP {
                paged.failures.push(Failure { error, again: false });
            }
        }
    }

    pub(super) fn record_denied(&mut self, d: &Dispatcher, fault: Event, why: String) {
        tracing::info!(slot = d.slot, va = fault.va, is_write = fault.is_write, why, "access denied");
        self.stats.denied += 1;
        if self.denied.len() == KEEP {
            self.denied.pop_front();
        }
        self.denied.push_back(Denied { va: fault.va, is_write: fault.is_write, why });
    }
}
