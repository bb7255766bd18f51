// SPDX-License-Identifier: Apache-2.0
//! Mappings come and go.

use std::collections::{BTreeMap, VecDeque};

use crate::card::Card;
use crate::card::memory::FrameSize;
use crate::error::{Error, Result};
use crate::pager::ahead::Ahead;
use crate::pager::region::BATCH;
use crate::pager::region::{Kind, PageRef, Paged, Region};
use crate::pager::space::Space;
use crate::protocol::desc::*;
use crate::slot::backing::Source;
use crate::slot::dispatch::Dispatcher;
use viaduct_pci::DmaAccess;

impl Space {
    /// Maps `len` bytes at `place`; returns the virtual address. The first pages are mapped immediately.
    pub fn map_window(&mut self, d: &Dispatcher, place: Place, len: u64, prot: Prot) -> Result<u64> {
        let at = match place {
            Place::Card(addr) | Place::Host(addr) => addr,
        };
        let huge = at % HUGE == 0 && len >= HUGE && d.card.info().tlb_huge.ways > 0;
        let size = if huge { FrameSize::Huge } else { FrameSize::Small };
        let va = self.insert(Region { len, prot, size, kind: Kind::Window(place) })?;
        if let Err(error) = self.enter_window(d, va, 0) {
            if let Err(error) = self.unmap(d, va) {
                tracing::warn!(%error, slot = d.slot, "a window that could not be mapped may stay in the card");
            }
            return Err(error);
        }
        Ok(va)
    }

    /// Maps a file or buffer. Nothing is read yet.
    pub fn map_source(
        &mut self,
        card: &Card,
        source: Source,
        len: u64,
        prot: Prot,
        on_host: bool,
        size: FrameSize,
    ) -> Result<u64> {
        let whole = len.next_multiple_of(size.bytes());
        let host = if on_host { Some(card.dma_buffer(whole, DmaAccess::ReadWrite)?) } else { None };
        let paged = Paged { source, pages: BTreeMap::new(), host, ahead: Ahead::new(), failures: Vec::new() };
        self.insert(Region { len, prot, size, kind: Kind::Paged(paged) })
    }

    /// Removes a region: the card has no translation of it when this returns. Changed pages are written back first. On error the
    /// region is still removed, and the error says what is lost.
    pub fn unmap(&mut self, d: &Dispatcher, va: u64) -> Result<()> {
        let Some(region) = self.regions.get(&va) else { return Ok(()) };
        let pages: Vec<PageRef> = match &region.kind {
            Kind::Window(_) => (0..region.page_count()).map(|n| (va, n)).collect(),
            Kind::Paged(_) => self.pages_of(va, |page| page.mapped),
        };
        let mut result = self.leave(d, &pages);
        if result.is_ok() {
            result = self.end_waiting(d, va);
        }
        if result.is_ok() {
            result = self.write_all(d, va);
        }
        if let Err(error) = result {
            result = Err(self.lost(va, error));
        }
        let trusted = result.is_ok();
        self.clock.retain(|&(region, _)| region != va);
        let Some(region) = self.regions.remove(&va) else { return result };
        if let Kind::Paged(mut paged) = region.kind {
            for page in paged.pages.values() {
                if let Place::Card(addr) = page.place {
                    self.resident -= region.size.bytes();
                    // A frame that the slot may still access is never reused.
                    if trusted {
                        d.card.free_frame(addr, region.size);
                    }
                }
            }
            if let (Some(host), false) = (&mut paged.host, trusted) {
                host.retire();
            }
            if result.is_ok() && !paged.failures.is_empty() {
                result = Err(paged.failures.swap_remove(0).error);
            }
        }
        result
    }

    /// Answers the faults on a region that is being removed. They must not be left to a later region at the same addresses: a write
    /// that has ended long ago would be denied there, and with it the reads that wait for the page.
    pub(super) fn end_waiting(&mut self, d: &Dispatcher, va: u64) -> Result<()> {
        let region = &self.regions[&va];
        let range = va..va + region.page_count() * region.page_bytes();
        let waiting: Vec<Event> = {
            let mut st = d.lock();
            let (inside, others): (VecDeque<_>, VecDeque<_>) =
                st.faults.drain(..).partition(|fault| range.contains(&fault.va));
            st.faults = others;
            inside.into()
        };
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
    pub(super) fn lost(&self, va: u64, error: Error) -> Error {
        let Some(Region { kind: Kind::Paged(paged), prot, size, len }) = self.regions.get(&va) else {
            return error;
        };
        let mut changed = paged
            .pages
            .iter()
            .filter(|(_, page)| page.changed() || page.mapped && prot.write && !page.spoiled);
        let (Some((&first, _)), path) = (changed.next(), paged.source.name().into()) else { return error };
        let last = changed.next_back().map_or(first, |(&last, _)| last);
        let end = ((last + 1) * size.bytes()).min(*len);
        Error::Lost { path, start: first * size.bytes(), end, why: error.to_string() }
    }

    /// Removes all regions.
    pub fn unmap_all(&mut self, d: &Dispatcher) -> Result<()> {
        let mut result = Ok(());
        while let Some((&va, _)) = self.regions.first_key_value() {
            let one = self.unmap(d, va);
            result = result.and(one);
        }
        result
    }

    /// Writes all changed pages of a region back. When this returns without error they are in the file.
    pub fn sync(&mut self, d: &Dispatcher, va: u64, durable: bool) -> Result<()> {
        let Some(region) = self.regions.get(&va) else { return Ok(()) };
        if region.prot.write {
            let mapped = self.pages_of(va, |page| page.mapped);
            let written = self.look(d, &mapped)?;
            self.leave(d, &written)?;
        }
        self.write_all(d, va)?;
        let Some(Region { kind: Kind::Paged(paged), .. }) = self.regions.get_mut(&va) else { return Ok(()) };
        if !paged.failures.is_empty() {
            return Err(paged.failures.remove(0).error);
        }
        if durable { paged.source.sync() } else { Ok(()) }
    }
}
