// SPDX-License-Identifier: Apache-2.0
//! The state of an address space.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::card::dma::DmaBuffer;
use crate::dispatch::Dispatcher;
use crate::error::{Error, Result};
use crate::pager::state::batch::{Batch, LANES, Leaving};
use crate::pager::state::budget::HostBudget;
use crate::pager::state::clock::Clock;
use crate::pager::state::load::Reads;
use crate::pager::state::passed::Passed;
use crate::pager::state::region::{Page, PageRef, Paged, Region};
use crate::pager::state::staging::Staging;
use crate::pager::state::stats::{Denied, PagerStats};
use crate::pager::state::table::Table;
use crate::protocol::desc::*;

/// First allocated virtual address: null pointers of apps, and addresses near them, are never mapped.
const VA_FIRST: u64 = 1 << 32;

/// Bytes moved between files and card memory in one step.
pub(in crate::pager) const BOUNCE: u64 = HUGE;
/// Denied accesses kept for the user.
const KEEP: usize = 64;

/// The address space of a slot.
pub(crate) struct Space {
    pub(in crate::pager) regions: BTreeMap<u64, Region>,
    pub(in crate::pager) clock: Clock,  // pages that hold card frames
    pub(in crate::pager) resident: u64, // bytes of card frames
    pub(in crate::pager) budget: u64,
    /// Card time that serving a fault takes, beside that of its commands. Only simulated cards wait so long.
    pub(in crate::pager) service_time: Duration,
    /// Host memory for pages that card memory has no room for.
    pub(in crate::pager) host_budget: HostBudget,
    /// Memory for changed pages on their way out: of each group that is leaving, of those that are waited for, and of those that are being
    /// written.
    pub(in crate::pager) bounce: [Option<Arc<DmaBuffer>>; LANES],
    /// Pages that are being written to a file by somebody who has not locked the address space.
    pub(in crate::pager) writing: BTreeSet<PageRef>,
    /// Faults wait for frames, and all are being written.
    pub(in crate::pager) starved: bool,
    /// Memory for pages on their way in, and what of it is in use.
    pub(in crate::pager) stage: Option<Arc<DmaBuffer>>,
    pub(in crate::pager) staging: Staging,
    /// Loads whose bytes are being read.
    pub(in crate::pager) reads: Reads,
    /// Commands under way, the oldest first.
    pub(in crate::pager) batches: VecDeque<Batch>,
    /// Pages whose bytes are not known, to be taken out of use.
    pub(in crate::pager) spoiled: Vec<PageRef>,
    /// Pages that are being evicted ahead of need; of these, the ones whose translations are being removed and that no fault wants.
    pub(in crate::pager) leaving: VecDeque<Leaving>,
    pub(in crate::pager) departing: BTreeSet<PageRef>,
    /// Pages had to be evicted: there are not enough frames for all.
    pub(in crate::pager) short: bool,
    /// Pages that were to leave and are in use, or cannot be written back, since a frame became free.
    pub(in crate::pager) futile: usize,
    /// Pages that had been loaded when it was last tried to evict some ahead of need.
    pub(in crate::pager) tried: u64,
    /// Pages that left when they were found used for the first time.
    pub(in crate::pager) passed: Passed,
    /// An error that nobody has been told yet.
    pub(in crate::pager) trouble: Option<Error>,
    /// Pages that are being mapped: they are not evicted.
    pub(in crate::pager) pinned: BTreeSet<PageRef>,
    /// The page table in card memory, once a mapping uses it.
    pub(in crate::pager) table: Option<Table>,
    /// It could not be written: nothing is mapped by it any more.
    pub(in crate::pager) table_failed: bool,
    /// Mappings so far.
    pub(in crate::pager) owners: u64,
    /// Accesses that wait for the data of a stream, or for the end of a read that was given up. Those of streams have a limit, by the
    /// addresses of their pages.
    pub(in crate::pager) parked: Vec<Event>,
    pub(in crate::pager) until: BTreeMap<u64, Instant>,
    pub(in crate::pager) denied: VecDeque<Denied>,
    pub(in crate::pager) stats: PagerStats,
}

impl Space {
    /// An empty address space, of the slot of these rings, whose pages may hold `budget` bytes of card memory.
    pub fn new(budget: u64, rings: Weak<Dispatcher>) -> Self {
        Self {
            regions: BTreeMap::new(),
            clock: Clock::default(),
            table: None,
            table_failed: false,
            owners: 0,
            resident: 0,
            budget,
            service_time: Duration::ZERO,
            host_budget: HostBudget::new(),
            bounce: Default::default(),
            writing: BTreeSet::new(),
            starved: false,
            stage: None,
            staging: Staging::default(),
            reads: Reads::new(rings),
            batches: VecDeque::new(),
            spoiled: Vec::new(),
            leaving: VecDeque::new(),
            departing: BTreeSet::new(),
            short: false,
            futile: 0,
            tried: 0,
            passed: Passed::default(),
            trouble: None,
            pinned: BTreeSet::new(),
            parked: Vec::new(),
            until: BTreeMap::new(),
            denied: VecDeque::new(),
            stats: PagerStats::default(),
        }
    }

    /// Bytes of card memory that pages may hold.
    pub fn set_budget(&mut self, bytes: u64) {
        // Frames may be free again: the next shortage tells if not.
        self.short &= bytes <= self.budget;
        self.budget = bytes;
    }

    /// Serving a fault takes so much time of a simulated card, beside that of its commands.
    pub fn set_service_time(&mut self, time: Duration) {
        self.service_time = time;
    }

    /// Bytes of host memory for pages that card memory has no room for. What is there already stays, and counts.
    pub fn set_host_budget(&mut self, bytes: u64) {
        self.host_budget.set_limit(bytes);
    }

    /// Bytes that pages of this slot may hold.
    pub fn room(&self, d: &Dispatcher) -> u64 {
        let info = d.card.info();
        self.budget.min((info.chan_mib << 20) * info.channels as u64)
    }

    /// Counters.
    pub fn stats(&self) -> PagerStats {
        self.stats
    }

    /// Denied accesses, oldest first; each is reported once.
    pub fn take_denied(&mut self) -> Vec<Denied> {
        self.denied.drain(..).collect()
    }

    /// Enters a region at an address, which the caller has chosen with [`Space::choose`] or checked.
    pub(in crate::pager) fn insert(&mut self, at: u64, region: Region) {
        self.regions.insert(at, region);
    }

    /// The first address at which `bytes` of whole pages fit.
    pub(in crate::pager) fn choose(&self, bytes: u64, align: u64) -> Result<u64> {
        self.first_free(bytes, align, VA_FIRST..VA_END).ok_or(Error::NoAddress { bytes })
    }

    /// The first address in a range at which `bytes` of whole pages fit.
    pub(in crate::pager) fn first_free(&self, bytes: u64, align: u64, range: Range<u64>) -> Option<u64> {
        let mut at = range.start;
        for (&start, other) in &self.regions {
            if at.saturating_add(bytes).saturating_add(PAGE) <= start {
                break;
            }
            // One page stays free between regions, so that an access beyond the end is detected.
            at = at.max((start + other.bytes() + PAGE).next_multiple_of(align));
        }
        (at < range.end && bytes < range.end - at).then_some(at)
    }

    /// Regions that overlap a range, by their addresses.
    pub(in crate::pager) fn overlapping(&self, range: &Range<u64>) -> Vec<u64> {
        if range.is_empty() {
            return Vec::new();
        }
        let before = self.regions.range(..range.start).next_back();
        let before = before.filter(|&(&start, region)| start + region.bytes() > range.start);
        let inside = self.regions.range(range.clone());
        before.into_iter().chain(inside).map(|(&start, _)| start).collect()
    }

    /// Makes `at` the beginning of a region if it is inside one. It is a multiple of the size of its pages.
    pub(in crate::pager) fn split(&mut self, at: u64) -> Result<()> {
        let Some((start, region)) = self.find(at) else { return Ok(()) };
        let step = region.page_bytes();
        if at == start || region.paged().is_none() {
            return Ok(());
        }
        if (at - start) % step != 0 {
            return Err(Error::Invalid(format!("{at:#x} is not a multiple of the {step} bytes of a page")));
        }
        let number = (at - start) / step;
        let rest = self.regions.get_mut(&start).and_then(|region| region.split_off(number));
        if let Some(rest) = rest {
            self.regions.insert(at, rest);
            self.clock.rename(|(region, n)| match region == start && n >= number {
                true => (at, n - number),
                false => (region, n),
            });
        }
        Ok(())
    }

    pub(in crate::pager) fn find(&self, va: u64) -> Option<(u64, &Region)> {
        let (&start, region) = self.regions.range(..=va).next_back()?;
        (va - start < region.bytes()).then_some((start, region))
    }

    pub(in crate::pager) fn page(&mut self, region: u64, number: u64) -> Option<&mut Page> {
        self.paged(region)?.pages.get_mut(&number)
    }

    pub(in crate::pager) fn page_ref(&self, (region, number): PageRef) -> Option<&Page> {
        self.regions.get(&region)?.paged()?.pages.get(&number)
    }

    pub(in crate::pager) fn pages_of(&self, va: u64, which: impl Fn(&Page) -> bool) -> Vec<PageRef> {
        let pages = self.regions.get(&va).and_then(Region::paged).map(|paged| &paged.pages);
        pages.into_iter().flatten().filter(|(_, page)| which(page)).map(|(&n, _)| (va, n)).collect()
    }

    pub(in crate::pager) fn paged(&mut self, start: u64) -> Option<&mut Paged> {
        self.regions.get_mut(&start)?.paged_mut()
    }

    pub(in crate::pager) fn record_denied(&mut self, d: &Dispatcher, fault: Event, why: String) {
        tracing::info!(slot = d.slot, va = fault.va, is_write = fault.is_write, why, "access denied");
        self.stats.denied += 1;
        if self.denied.len() == KEEP {
            self.denied.pop_front();
        }
        self.denied.push_back(Denied { va: fault.va, is_write: fault.is_write, why });
    }
}
