// SPDX-License-Identifier: Apache-2.0
//! Carries a plan out: frames, reads, copies, translations, denials.

use crate::card::dma::DmaBuffer;
use crate::error::{Error, Result};
use crate::pager::plan::{Load, Plan};
use crate::pager::region::{Failure, Kind, Page, Region};
use crate::pager::space::Space;
use crate::pager::space::{BOUNCE, KEEP};
use crate::pager::translate::Group;
use crate::protocol::desc::*;
use crate::slot::dispatch::Dispatcher;
use viaduct_pci::DmaAccess;

impl Space {
    pub(super) fn carry_out(&mut self, d: &Dispatcher, plan: &mut Plan) -> Result<()> {
        let mut loads: Vec<Load> = Vec::new();
        // All frames first: evicted pages leave through the bounce buffer.
        for mut load in std::mem::take(&mut plan.loads) {
            load.places = match self.places(d, &load) {
                Ok(places) => places,
                Err(error) => {
                    for load in &loads {
                        self.give_back(d, &load.places, self.regions[&load.start].size);
                    }
                    return Err(error);
                }
            };
            if !load.places.is_empty() {
                loads.push(load);
                continue;
            }
            plan.later.append(&mut load.others);
            if plan.maps.is_empty() && loads.is_empty() {
                plan.denied.push((load.fault, "no card memory is free".into()));
            } else {
                plan.later.push(load.fault);
            }
        }
        if loads.len() > 1 {
            loads.iter().for_each(|load| self.announce(load));
        }
        let mut groups = std::mem::take(&mut plan.maps);
        let mut filled = Vec::new();
        for load in loads {
            self.stats.faults += 1;
            match self.fill(d, &load) {
                Ok(group) => {
                    filled.extend(group.pages.iter().map(|&(n, _)| (group.start, n)));
                    groups.push(group);
                }
                Err(why) => plan.denied.push((load.fault, why)),
            }
            let step = self.regions[&load.start].page_bytes();
            for fault in load.others {
                match self.page_ref((load.start, (fault.va - load.start) / step)) {
                    Some(_) => self.stats.faults += 1,
                    None => plan.later.push(fault),
                }
            }
        }
        let mut denials = Vec::new();
        for (fault, why) in std::mem::take(&mut plan.denied) {
            denials.push(Command::deny(fault.va));
            self.record_denied(d, fault, why);
        }
        if let Err(error) = self.enter(d, &groups, &denials) {
            // They may contain data of another owner: they are freed, unless the card can still access them.
            let left = self.leave(d, &filled);
            for &(start, n) in &filled {
                if let Some(page) = self.page(start, n) {
                    page.dirty = false;
                }
            }
            self.clock.retain(|at| !filled.contains(at));
            if let Err(error) = left.and_then(|()| self.drop_pages(d, &filled)) {
                tracing::warn!(%error, slot = d.slot, "pages that could not be filled stay in the card");
            }
            return Err(error);
        }
        Ok(())
    }

    /// Locations for the pages to load, or for the first of them.
    pub(super) fn places(&mut self, d: &Dispatcher, load: &Load) -> Result<Vec<Place>> {
        let region = &self.regions[&load.start];
        let (step, size) = (region.page_bytes(), region.size);
        let Kind::Paged(paged) = &region.kind else { return Ok(Vec::new()) };
        match paged.host.as_ref().map(DmaBuffer::iova) {
            Some(iova) => {
                Ok((load.number..load.number + load.count).map(|n| Place::Host(iova + n * step)).collect())
            }
            None => Ok(self.take_frames(d, load.count, size)?.into_iter().map(Place::Card).collect()),
        }
    }

    /// Lets the system read the pages of a file in advance.
    pub(super) fn announce(&self, load: &Load) {
        let region = &self.regions[&load.start];
        if let Kind::Paged(paged) = &region.kind {
            let step = region.page_bytes();
            paged.source.will_need(load.number * step, load.places.len() as u64 * step);
        }
    }

    /// Reads pages to where the card copies them from, and enters them here. Otherwise the fault is denied, and this is why.
    pub(super) fn fill(&mut self, d: &Dispatcher, load: &Load) -> std::result::Result<Group, String> {
        let &Load { start, number, ref places, bounce, .. } = load;
        let region = self.regions.get_mut(&start).expect("the region was found");
        let (step, size) = (region.page_bytes(), region.size);
        let filled = match self.read_pages(d, load) {
            Ok(filled) => filled,
            Err(error) => {
                let why = error.to_string();
                self.give_back(d, places, size);
                self.fail(start, error);
                return Err(why);
            }
        };
        let (used, unused) = places.split_at(filled as usize);
        self.give_back(d, unused, size);
        if filled == 0 {
            return Err("the file ends before it: it was truncated after it was mapped".into());
        }
        let mut copies = Vec::new();
        if let Some(buffer) = &self.bounce {
            for (i, place) in used.iter().enumerate() {
                if let Place::Card(addr) = place {
                    copies.push(Command::h2c(buffer.iova() + bounce + i as u64 * step, *addr, step as u32));
                }
            }
        }
        let pages: Vec<_> = (number..).zip(used.iter().copied()).collect();
        if let Some(Region { kind: Kind::Paged(paged), .. }) = self.regions.get_mut(&start) {
            for &(n, place) in &pages {
                paged.pages.insert(n, Page { place, mapped: false, since: 0, dirty: false, accessed: false });
                if let Place::Card(_) = place {
                    self.clock.push_back((start, n));
                }
            }
        }
        self.stats.pages_in += filled;
        Ok(Group { start, pages, copies })
    }

    /// Reads pages into the bounce buffer, or into their frames in host memory. Returns the number of pages.
    pub(super) fn read_pages(&mut self, d: &Dispatcher, load: &Load) -> Result<u64> {
        if self.bounce.is_none() {
            self.bounce = Some(d.card.dma_buffer(BOUNCE, DmaAccess::ReadWrite)?);
        }
        let (number, count) = (load.number, load.places.len() as u64);
        let region = self.regions.get_mut(&load.start).expect("the region was found");
        let step = region.page_bytes();
        let valid = (count - 1) * step + region.valid(number + count - 1);
        let Kind::Paged(paged) = &mut region.kind else { return Ok(0) };
        let (buffer, offset) = match &paged.host {
            Some(host) => (host, number * step),
            None => (self.bounce.as_ref().expect("just allocated"), load.bounce),
        };
        let position = number * step;
        let got = paged.source.read(buffer, offset as usize, valid as usize, position)? as u64;
        if got < valid && paged.failures.len() < KEEP {
            let path = paged.source.name().into();
            let error = Error::FileShrank { path, end: position + got, expected: region.len };
            paged.failures.push(Failure { error, again: false });
        }
        let filled = got.div_ceil(step);
        buffer.memory().fill((offset + got) as usize, (filled * step - got) as usize, 0);
        Ok(filled)
    }
}
