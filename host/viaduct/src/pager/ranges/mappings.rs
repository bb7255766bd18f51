// SPDX-License-Identifier: Apache-2.0
//! Mappings come and go.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use crate::backing::Source;
use crate::card::Placement;
use crate::card::memory::FrameSize;
use crate::dispatch::Dispatcher;
use crate::error::{Error, Result};
use crate::pager::state::advice::{Keep, Locality};
use crate::pager::state::ahead::Ahead;
use crate::pager::state::region::{Auto, BATCH, HostFrames, Kind, Page, PageRef, Paged, Region};
use crate::pager::state::space::Space;
use crate::protocol::desc::*;
use viaduct_pci::DmaAccess;

/// Lowest address at which a mapping can be placed on request.
const VA_MIN: u64 = 64 << 10;

/// Where a mapping goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum At {
    #[default]
    Anywhere,
    /// There if the range is free, else anywhere.
    Near(u64),
    /// There; what is mapped in the range is unmapped first.
    Replacing(u64),
    /// There, or not at all.
    Exactly(u64),
}

/// A mapping to be made.
pub(crate) struct Wanted {
    pub source: Arc<Source>,
    /// Byte of the source to begin with.
    pub first: u64,
    pub len: u64,
    pub prot: Prot,
    pub size: FrameSize,
    /// Page sizes follow use.
    pub auto: bool,
    pub on_host: bool,
    /// In the page table in card memory, if it has room for the pages.
    pub table: bool,
    pub placement: Placement,
    /// Writes are told by faults, see `Paged::unclean`.
    pub noted: bool,
    pub at: At,
}

impl Space {
    /// Maps `len` bytes at `place`; returns the virtual address. The first pages are mapped immediately.
    pub fn map_window(&mut self, d: &Dispatcher, place: Place, len: u64, prot: Prot) -> Result<u64> {
        let at = match place {
            Place::Card(addr) | Place::Host(addr) => addr,
        };
        let huge = at % HUGE == 0 && len >= HUGE && d.card.info().tlb_huge.ways > 0;
        let size = if huge { FrameSize::Huge } else { FrameSize::Small };
        let region = Region { len, prot, size, kind: Kind::Window(place), table: false };
        let va = self.choose(region.bytes(), size.bytes())?;
        self.insert(va, region);
        if let Err(error) = self.enter_window(d, va) {
            if let Err(error) = self.remove(d, va) {
                tracing::warn!(%error, slot = d.slot, "a window that could not be mapped may stay in the card");
            }
            return Err(error);
        }
        Ok(va)
    }

    /// Maps a file or buffer. Nothing is read yet. Returns the address, and the number of the mapping.
    pub fn map_source(&mut self, d: &Dispatcher, wanted: Wanted) -> Result<(u64, u64)> {
        let Wanted { source, first, len, prot, size, auto, on_host, table, placement, noted, at } = wanted;
        let step = size.bytes();
        let bytes = len
            .checked_next_multiple_of(step)
            .filter(|&bytes| bytes > 0)
            .ok_or_else(|| Error::Invalid(format!("a mapping of {len} bytes is not possible")))?;
        let table = table && !self.table_failed;
        if table {
            self.open_table(d, bytes)?;
        }
        let va = match at {
            At::Anywhere if table => {
                self.choose_in_table(bytes).map_or_else(|| self.choose(bytes, step), Ok)?
            }
            At::Anywhere => self.choose(bytes, step)?,
            At::Near(va) => {
                let va = va / step * step;
                let free = allowed(va, bytes) && self.overlapping(&(va..va + bytes)).is_empty();
                if free { va } else { self.choose(bytes, step)? }
            }
            At::Replacing(va) | At::Exactly(va) => {
                if va % step != 0 {
                    let text = format!("{va:#x} is not a multiple of the {step} bytes of a page");
                    return Err(Error::Invalid(text));
                }
                if !allowed(va, bytes) {
                    return Err(Error::NoAddress { bytes });
                }
                va
            }
        };
        let range = va..va + bytes;
        let taken = self.overlapping(&range);
        let a_window = taken.iter().any(|start| self.regions[start].paged().is_none());
        if a_window || matches!(at, At::Exactly(_)) && !taken.is_empty() {
            return Err(Error::AddressTaken { va, bytes });
        }
        let host = match on_host {
            true => {
                let buffer = Arc::new(d.card.dma_buffer(bytes, DmaAccess::ReadWrite)?);
                Some(HostFrames { buffer, offset: 0 })
            }
            false => None,
        };
        if !taken.is_empty() {
            self.unmap(d, range, None)?;
        }
        self.owners += 1;
        let paged = Paged {
            end: source.len(),
            source,
            first,
            owner: self.owners,
            auto: auto.then(|| Arc::new(Auto::new(va, bytes))),
            pages: BTreeMap::new(),
            on_host,
            host,
            placement,
            locality: Locality::default(),
            keep: Keep::default(),
            ahead: Ahead::new(),
            waits: false,
            unclean: noted.then(BTreeSet::new),
            rewritten: (0, 0),
            failures: Vec::new(),
        };
        let table = table && self.fits_table(va, bytes);
        self.insert(va, Region { len, prot, size, kind: Kind::Paged(Box::new(paged)), table });
        if !on_host {
            d.card.set_places(d.slot, true);
        }
        Ok((va, self.owners))
    }

    /// Unmaps a range: all mappings, or one, whose number is given. Parts of mappings stay if the range ends within them. The card
    /// has no translation of the range when this returns. Changed pages are written back first; an error says what is lost.
    pub fn unmap(&mut self, d: &Dispatcher, range: Range<u64>, owner: Option<u64>) -> Result<()> {
        self.settle(d);
        let of_owner = |paged: &Paged| owner.is_none_or(|owner| paged.owner == owner);
        let mut ends = Vec::new();
        for start in self.overlapping(&range) {
            let region = &self.regions[&start];
            if region.paged().is_some_and(of_owner) {
                let whole = range.end >= start + region.len;
                // Whole pages of 4 KiB go, as POSIX says.
                let end = if whole { start + region.bytes() } else { range.end.next_multiple_of(PAGE) };
                ends.push((range.start.max(start), end));
            }
        }
        for &(from, to) in &ends {
            self.split_page(d, from)?;
            self.split_page(d, to)?;
        }
        let mut result = Ok(());
        for (from, to) in ends {
            for start in self.overlapping(&(from..to)) {
                result = result.and(self.remove(d, start));
            }
        }
        result
    }

    /// Removes a region: the card has no translation of it when this returns. Changed pages are written back first. On error the
    /// region is still removed, and the error says what is lost.
    pub fn remove(&mut self, d: &Dispatcher, va: u64) -> Result<()> {
        self.settle(d);
        let Some(region) = self.regions.get(&va) else { return Ok(()) };
        let pages: Vec<PageRef> = match &region.kind {
            Kind::Window(_) => (0..region.page_count()).map(|n| (va, n)).collect(),
            Kind::Paged(_) => self.pages_of(va, |page| page.mapped),
        };
        let mut result = self.leave(d, &pages);
        if result.is_ok() {
            result = self.end_waiting(d, va);
        }
        // The card has no translation of the pages any more.
        let mut trusted = result.is_ok();
        if trusted {
            result = self.write_all(d, va);
            // Unless the card does not answer, nothing reads the frames either.
            trusted =
                !matches!(result, Err(Error::Stalled { .. } | Error::RingStopped { .. } | Error::Pci(_)));
        }
        if let Err(error) = result {
            result = Err(self.lost(va, error));
        }
        self.clock.retain(|(region, _)| region != va);
        let Some(mut region) = self.regions.remove(&va) else { return result };
        let size = region.size;
        let Some(paged) = region.paged_mut() else { return result };
        for page in paged.pages.values() {
            if let Place::Card(addr) = page.place {
                // A frame that the slot may still access is never reused, and counts as its.
                if trusted {
                    self.resident -= size.bytes();
                    d.card.free_frame(addr, size);
                }
            }
        }
        if let (Some(host), false) = (&paged.host, trusted) {
            host.buffer.retire();
        }
        if result.is_ok() {
            result = paged.take_failure().map_or(Ok(()), Err);
        }
        let in_card = |region: &Region| region.paged().is_some_and(|paged| !paged.on_host);
        d.card.set_places(d.slot, self.regions.values().any(in_card));
        result
    }

    /// Answers the faults on a region that is being removed. They must not be left to a later region at the same addresses: a write
    /// that has ended long ago would be denied there, and with it the reads that wait for the page.
    fn end_waiting(&mut self, d: &Dispatcher, va: u64) -> Result<()> {
        let range = va..va + self.regions[&va].bytes();
        let waiting: Vec<Event> = {
            let mut st = d.lock();
            let (inside, others): (VecDeque<_>, VecDeque<_>) =
                st.faults.drain(..).partition(|fault| range.contains(&fault.va));
            st.faults = others;
            inside.into()
        };
        let waiting = [self.parked_in(d, &range), waiting].concat();
        for batch in waiting.chunks(BATCH) {
            let denials: Vec<_> = batch.iter().map(|fault| Command::deny(fault.va)).collect();
            for (&fault, done) in batch.iter().zip(d.run("ending accesses to a mapping", &denials)?) {
                if done.status == Status::Ok {
                    self.record_denied(d, fault, "its mapping was removed".into());
                }
            }
        }
        Ok(())
    }

    /// Meaning of an error during the removal of a region: which bytes may be lost, if any.
    fn lost(&self, va: u64, error: Error) -> Error {
        let region = &self.regions[&va];
        let Some(paged) = region.paged() else { return error };
        let may_be = |&(&n, page): &(&u64, &Page)| {
            page.changed() || page.mapped && region.may_be_written(n) && !page.spoiled
        };
        let mut changed = paged.pages.iter().filter(may_be).map(|(&n, _)| n);
        let (Some(first), path) = (changed.next(), paged.source.name().into()) else { return error };
        let last = changed.next_back().unwrap_or(first);
        let step = region.page_bytes();
        let (start, end) = (paged.first + first * step, paged.first + ((last + 1) * step).min(region.len));
        Error::Lost { path, start, end, why: error.to_string(), os: None }
    }

    /// Removes all regions.
    pub fn remove_all(&mut self, d: &Dispatcher) -> Result<()> {
        let mut result = Ok(());
        while let Some((&va, _)) = self.regions.first_key_value() {
            let one = self.remove(d, va);
            result = result.and(one);
        }
        result
    }
}

/// Whether a mapping may be there.
fn allowed(va: u64, bytes: u64) -> bool {
    (VA_MIN..VA_END).contains(&va) && bytes <= VA_END - va
}
