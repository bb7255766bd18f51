// SPDX-License-Identifier: Apache-2.0
//! Carries a plan out: frames, reads, copies, translations, denials.

use std::collections::BTreeSet;

use crate::dispatch::Dispatcher;
use crate::error::{Error, Result};
use crate::pager::batch::{Batch, Group, Numbered, Part};
use crate::pager::plan::{Load, Plan};
use crate::pager::region::{HostFrames, Page, PageRef, Region};
use crate::pager::space::Space;
use crate::pager::staging::STAGING;
use crate::pager::stats::PagerStats;
use crate::protocol::desc::*;
use viaduct_pci::DmaAccess;

impl Space {
    /// Carries a plan for faults out: its commands are under way when this returns. What must wait goes to `later`.
    pub(super) fn carry_out(&mut self, d: &Dispatcher, plan: &mut Plan, faults: &[Event]) -> Result<()> {
        let loads = self.place(d, plan)?;
        if loads.len() > 1 {
            loads.iter().for_each(|load| self.announce(load));
        }
        let mut groups = std::mem::take(&mut plan.maps);
        let mut filled = Vec::new();
        for load in loads {
            match self.fill(d, &load) {
                Ok(group) => {
                    filled.extend(group.pages.iter().map(|&(n, _)| (group.start, n)));
                    groups.push(group);
                }
                Err(why) => plan.denied.extend(load.fault.map(|fault| (fault, why))),
            }
            let step = self.regions[&load.start].page_bytes();
            for (number, fault) in load.others {
                if self.page_ref((load.start, (fault.va - load.start) / step)).is_none() {
                    plan.later.push((number, fault));
                }
            }
        }
        plan.denied.sort_unstable_by_key(|&((number, _), _)| number);
        let denied = std::mem::take(&mut plan.denied);
        let denials: Vec<u64> = denied.iter().map(|((_, fault), _)| fault.va).collect();
        let later: BTreeSet<usize> = plan.later.iter().map(|&(number, _)| number).collect();
        let waits = |number: &usize| later.contains(number) || plan.away.contains(number);
        let faults: Vec<Numbered> = faults.iter().copied().enumerate().filter(|(n, _)| !waits(n)).collect();
        let taken = groups.iter().flat_map(|g| g.pages.iter().map(|&(n, _)| (g.start, n))).collect();
        let mut composed = self.compose(&groups, &denials);
        for (at, run) in std::mem::take(&mut plan.looks) {
            composed.commands.push(self.command(at, Command::scan));
            composed.parts.push(Part::Look(at, run));
        }
        if composed.commands.is_empty() {
            // All of them were answered before.
            self.stats.faults += faults.len() as u64;
            return Ok(());
        }
        let (tags, others) = (Vec::new(), Vec::new());
        self.launch(d, Batch { composed, tags, faults, denied, filled, taken, others, staging: 0 });
        Ok(())
    }

    /// Waits until nothing is under way, and takes pages out of use that could not be filled.
    pub fn settle(&mut self, d: &Dispatcher) {
        while self.land_oldest(d) {}
        if let Err(error) = self.finish_retiring(d) {
            self.trouble.get_or_insert(error);
        }
        self.clean(d);
    }

    /// Waits until nothing is under way; the counters then, or the first error of all that nobody was told.
    pub fn settled(&mut self, d: &Dispatcher) -> Result<PagerStats> {
        self.settle(d);
        self.look_after(d)?;
        Ok(self.stats())
    }

    /// Takes pages out of use that could not be filled. The first error of all that has happened, if nobody was told.
    pub(super) fn look_after(&mut self, d: &Dispatcher) -> Result<()> {
        self.clean(d);
        self.trouble.take().map_or(Ok(()), Err)
    }

    fn clean(&mut self, d: &Dispatcher) {
        while !self.spoiled.is_empty() {
            let pages = std::mem::take(&mut self.spoiled);
            self.discard(d, &pages);
        }
    }

    /// Locations for what is to be loaded, all of them first. Loads for which there is none are left for later, or denied if nothing else
    /// can be done.
    fn place(&mut self, d: &Dispatcher, plan: &mut Plan) -> Result<Vec<Load>> {
        let mut loads: Vec<Load> = Vec::new();
        let mut short = Vec::new();
        for mut load in std::mem::take(&mut plan.loads) {
            match self.places(d, &load) {
                Ok(places) if places.is_empty() => short.push(load),
                Ok(places) => {
                    load.places = places;
                    loads.push(load);
                }
                Err(error) => {
                    for load in &loads {
                        self.give_back(d, &load.places, self.regions[&load.start].size);
                    }
                    return Err(error);
                }
            }
        }
        let stuck = plan.maps.is_empty() && loads.is_empty() && self.batches.is_empty();
        // The first one last, so that read-ahead continues as if none of them had been tried.
        for load in short.into_iter().rev() {
            plan.later.extend(load.others);
            match stuck {
                true => {
                    let why = "no card memory is free".to_owned();
                    plan.denied.extend(load.fault.map(|fault| (fault, why)));
                }
                false => plan.later.extend(load.fault),
            }
            if let Some(paged) = self.paged(load.start) {
                paged.ahead = load.before;
            }
        }
        for load in loads.iter().rev() {
            if let Some(paged) = self.paged(load.start) {
                paged.ahead.shorten(load.number + load.count, load.number + load.places.len() as u64);
            }
        }
        Ok(loads)
    }

    /// Frees pages that are out of use since their bytes are not known (`spoil`), unless the card can still access them.
    fn discard(&mut self, d: &Dispatcher, pages: &[PageRef]) {
        self.clock.retain(|at| !pages.contains(&at));
        if let Err(error) = self.leave(d, pages).and_then(|()| self.drop_pages(d, pages).map(drop)) {
            tracing::warn!(%error, slot = d.slot, "pages that could not be filled stay in the card");
        }
    }

    /// Locations for the pages to load, or for the first of them.
    fn places(&mut self, d: &Dispatcher, load: &Load) -> Result<Vec<Place>> {
        let region = &self.regions[&load.start];
        let (step, size) = (region.page_bytes(), region.size);
        let Some(paged) = region.paged() else { return Ok(Vec::new()) };
        match &paged.host {
            Some(HostFrames { buffer, offset }) if paged.on_host => {
                let first = buffer.iova() + offset;
                Ok((load.number..load.number + load.count).map(|n| Place::Host(first + n * step)).collect())
            }
            _ => {
                let (keep, placement) = (region.class(), paged.placement);
                if region.overflows() {
                    let places = self.places_in_no_order(d, load.start, load.number, load.count);
                    if !places.is_empty() {
                        return Ok(places);
                    }
                }
                let frames = self.take_frames(d, load.count, size, keep, placement)?;
                Ok(frames.into_iter().map(Place::Card).collect())
            }
        }
    }

    /// Lets the system read the pages of a file in advance.
    fn announce(&self, load: &Load) {
        let region = &self.regions[&load.start];
        if let Some(paged) = region.paged() {
            let step = region.page_bytes();
            paged.source.will_need(paged.first + load.number * step, load.places.len() as u64 * step);
        }
    }

    /// Reads pages to where the card copies them from, and enters them here. Otherwise the fault is denied, and this is why.
    fn fill(&mut self, d: &Dispatcher, load: &Load) -> std::result::Result<Group, String> {
        let &Load { start, number, ref places, staged, write, .. } = load;
        let region = &self.regions[&start];
        let (step, size) = (region.page_bytes(), region.size);
        let filled = match self.read_pages(d, load) {
            Ok(filled) => filled,
            Err(error) => {
                let why = error.to_string();
                self.give_back(d, places, size);
                if let (Some(paged), Some(_)) = (self.paged(start), load.fault) {
                    paged.fail(error, false);
                }
                return Err(why);
            }
        };
        let (used, unused) = places.split_at(filled as usize);
        self.give_back(d, unused, size);
        if filled == 0 {
            return Err("the file ends before it".into());
        }
        let mut copies = Vec::new();
        if let Some(buffer) = &self.stage {
            for (i, place) in used.iter().enumerate() {
                if let Place::Card(addr) = place {
                    copies.push(Command::h2c(buffer.iova() + staged + i as u64 * step, *addr, step as u32));
                }
            }
        }
        let pages: Vec<_> = (number..).zip(used.iter().copied()).collect();
        let keep = self.regions[&start].class();
        if let Some(paged) = self.regions.get_mut(&start).and_then(Region::paged_mut) {
            for &(n, place) in &pages {
                paged.pages.insert(n, Page::loaded(place));
                match place {
                    Place::Card(_) => self.clock.push((start, n), keep),
                    Place::Host(_) => self.stats.overflowed += u64::from(!paged.on_host),
                }
            }
        }
        self.stats.pages_in += filled;
        Ok(Group { start, pages, write, copies })
    }

    /// Reads pages into the staging memory, or into their frames in host memory. Returns the number of pages.
    fn read_pages(&mut self, d: &Dispatcher, load: &Load) -> Result<u64> {
        if self.stage.is_none() {
            self.stage = Some(d.card.dma_buffer(STAGING, DmaAccess::Read)?);
        }
        let (number, count) = (load.number, load.places.len() as u64);
        let region = self.regions.get_mut(&load.start).expect("the region was found");
        let (step, len) = (region.page_bytes(), region.len);
        let valid = (count - 1) * step + region.valid(number + count - 1);
        let Some(paged) = region.paged_mut() else { return Ok(0) };
        let (buffer, offset) = match (load.places.first(), &paged.host) {
            (Some(Place::Host(_)), Some(HostFrames { buffer, offset })) => {
                (&**buffer, offset + number * step)
            }
            _ => (self.stage.as_ref().expect("just allocated"), load.staged),
        };
        let position = paged.first + number * step;
        let got = paged.source.read(buffer, offset as usize, valid as usize, position)? as u64;
        d.lock().activity += 1;
        let filled = got.div_ceil(step);
        buffer.memory().fill((offset + got) as usize, (filled * step - got) as usize, 0);
        // What the source never had is not missing.
        let expected = paged.end.min(paged.first + len);
        if got < valid && position + got < expected && load.fault.is_some() {
            let path = paged.source.name().into();
            let end = paged.source.present_len().unwrap_or(position + got);
            paged.fail(Error::FileShrank { path, end, expected }, false);
        }
        if got > 0 {
            paged.end = paged.end.max(position + got);
        }
        Ok(filled)
    }
}
