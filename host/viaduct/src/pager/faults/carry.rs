// SPDX-License-Identifier: Apache-2.0
//! Carries a plan out: frames, reads, copies, translations, denials.

use std::collections::BTreeSet;

use crate::dispatch::{Dispatcher, State};
use crate::error::{Error, Result};
use crate::pager::faults::plan::Plan;
use crate::pager::state::batch::{Batch, Group, Numbered, Part};
use crate::pager::state::load::Load;
use crate::pager::state::region::{HostFrames, Page, PageRef, Region};
use crate::pager::state::space::Space;
use crate::pager::state::stats::PagerStats;
use crate::protocol::desc::*;

impl Space {
    /// Carries a plan for faults out: its commands and reads are under way when this returns. What must wait goes to `later`.
    pub(in crate::pager) fn carry_out(
        &mut self,
        d: &Dispatcher,
        plan: &mut Plan,
        faults: &[Event],
    ) -> Result<()> {
        let loads = self.place(d, plan)?;
        let there = self.read(d, plan, loads);
        self.enter(d, plan, there, faults);
        Ok(())
    }

    /// Enters pages that have been read, with so many bytes or an error, and what else a plan for faults has.
    pub(in crate::pager) fn enter(
        &mut self,
        d: &Dispatcher,
        plan: &mut Plan,
        there: Vec<(Load, Result<usize>)>,
        faults: &[Event],
    ) {
        let mut groups = std::mem::take(&mut plan.maps);
        let mut filled = Vec::new();
        for (load, got) in there {
            if got.is_err() && load.places.len() > 1 {
                // One of them cannot be read: each for itself.
                self.give_back(d, &load.places, self.regions[&load.start].size);
                plan.later.extend(load.faults().copied());
                self.unstage(load.staged);
                self.paged(load.start).into_iter().for_each(|paged| paged.ahead.be_careful());
                continue;
            }
            match self.fill(d, &load, got) {
                Ok(group) => {
                    filled.extend(group.pages.iter().map(|&(n, _)| (group.start, n)));
                    groups.push(group);
                }
                Err(why) => {
                    self.unstage(load.staged);
                    plan.denied.extend(load.fault.map(|fault| (fault, why)));
                }
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
        let mut composed = self.compose(d, &groups, &denials);
        for (at, run) in std::mem::take(&mut plan.looks) {
            composed.commands.push(self.command(at, Command::scan));
            composed.parts.push(Part::Look(at, run));
        }
        if composed.commands.is_empty() {
            // All of them were answered before.
            self.stats.faults += faults.len() as u64;
            return;
        }
        let staged = groups.iter().flat_map(|group| group.staged.iter().copied()).collect();
        let (tags, others) = (Vec::new(), Vec::new());
        self.launch(d, Batch { composed, tags, faults, denied, filled, taken, others, staged });
    }

    /// Takes what has been read since: it goes to the card.
    pub(in crate::pager) fn take_in(&mut self, d: &Dispatcher) {
        let ended = std::mem::take(&mut d.lock().read);
        if ended.is_empty() {
            return;
        }
        let mut plan = Plan::default();
        let (mut there, mut faults) = (Vec::new(), Vec::new());
        for (number, got) in ended {
            let Some(mut load) = self.reads.loads.remove(&number) else {
                // Accesses to its pages can be served again.
                d.lock().poked |= self.reads.late.remove(&number).is_some();
                continue;
            };
            self.reads.pages.retain(|_, read| *read != number);
            let mut renumber = |(number, fault): &mut Numbered| {
                *number = faults.len();
                faults.push(*fault);
            };
            load.fault.iter_mut().chain(&mut load.others).for_each(&mut renumber);
            there.push((load, got));
        }
        self.enter(d, &mut plan, there, &faults);
        let mut st = d.lock();
        st.reading = self.reads.loads.len();
        plan.later.sort_unstable_by_key(|&(number, _)| number);
        let later: Vec<Event> = plan.later.into_iter().map(|(_, fault)| fault).collect();
        later.into_iter().rev().for_each(|fault| st.faults.push_front(fault));
    }

    /// Waits until a read or a batch has ended; `false` if none is under way.
    pub(in crate::pager) fn await_any(&mut self, d: &Dispatcher) -> bool {
        if self.reads.is_empty() {
            return self.land_oldest(d);
        }
        let something = |st: &State| !st.read.is_empty() || st.has_landed();
        match d.wait("reading pages", |st| something(st).then_some(())) {
            Ok(()) => {
                self.land(d);
                self.take_in(d);
                // A step of leaving pages may be what has ended.
                if let Err(error) = self.advance(d) {
                    self.trouble.get_or_insert(error);
                }
            }
            Err(error) => {
                self.trouble.get_or_insert(error);
                self.give_reads_up(d);
            }
        }
        true
    }

    /// Waits until nothing is under way, and takes pages out of use that could not be filled.
    pub fn settle(&mut self, d: &Dispatcher) {
        while self.await_any(d) {}
        if let Err(error) = self.finish_retiring(d) {
            self.trouble.get_or_insert(error);
        }
        self.clean(d);
        self.stir(d);
    }

    /// Waits until nothing is under way; the counters then, or the first error of all that nobody was told.
    pub fn settled(&mut self, d: &Dispatcher) -> Result<PagerStats> {
        self.settle(d);
        self.look_after(d)?;
        Ok(self.stats())
    }

    /// Takes pages out of use that could not be filled. The first error of all that has happened, if nobody was told.
    pub(in crate::pager) fn look_after(&mut self, d: &Dispatcher) -> Result<()> {
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
        let mut all = std::mem::take(&mut plan.loads);
        for at in 0..all.len() {
            match self.places(d, &all[at]) {
                Ok(places) => all[at].places = places,
                Err(error) => {
                    for load in all {
                        self.give_back(d, &load.places, self.regions[&load.start].size);
                        self.unstage(load.staged);
                    }
                    return Err(error);
                }
            }
        }
        let (loads, short): (Vec<Load>, Vec<Load>) =
            all.into_iter().partition(|load| !load.places.is_empty());
        let idle = !self.any_under_way() && !self.is_writing();
        let stuck = plan.maps.is_empty() && loads.is_empty() && idle;
        // The first one last, so that read-ahead continues as if none of them had been tried.
        for load in short.into_iter().rev() {
            self.unstage(load.staged);
            plan.later.extend(load.others);
            match stuck {
                true => {
                    let why = "no card memory is free".to_owned();
                    plan.denied.extend(load.fault.map(|fault| (fault, why)));
                }
                false => plan.later.extend(load.fault),
            }
            if let Some(paged) = self.paged(load.start) {
                paged.ahead = *load.before;
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
                    let places = self.places_for_random(d, load.start, load.number, load.count);
                    if !places.is_empty() {
                        return Ok(places);
                    }
                }
                let frames = self.take_frames(d, load.count, size, keep, placement, load.fault.is_none())?;
                Ok(frames.into_iter().map(Place::Card).collect())
            }
        }
    }

    /// Enters pages that have been read here, with so many bytes or an error. Otherwise the fault is denied, and this is why.
    fn fill(
        &mut self,
        d: &Dispatcher,
        load: &Load,
        got: Result<usize>,
    ) -> std::result::Result<Group, String> {
        let &Load { start, number, ref places, ref staged, write, .. } = load;
        let region = &self.regions[&start];
        let (step, size) = (region.page_bytes(), region.size);
        d.lock().activity += 1;
        let filled = match got.map(|got| self.note_read(load, got as u64)) {
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
        if let (Some(buffer), Some(staged)) = (&self.stage, staged.first()) {
            for (i, place) in used.iter().enumerate() {
                if let Place::Card(addr) = place {
                    let from = buffer.iova() + staged.at + i as u64 * step;
                    copies.push(Command::h2c(from, *addr, step as u32));
                }
            }
        }
        let pages: Vec<_> = (number..).zip(used.iter().copied()).collect();
        let keep = self.regions[&start].class();
        if let Some(paged) = self.regions.get_mut(&start).and_then(Region::paged_mut) {
            for &(n, place) in &pages {
                self.passed.comes((start, n));
                let mut page = Page::loaded(place);
                match place {
                    Place::Card(_) => page.turn = self.clock.enter((start, n), keep),
                    Place::Host(_) => self.stats.overflowed += u64::from(!paged.on_host),
                }
                paged.pages.insert(n, page);
            }
        }
        self.stats.pages_in += filled;
        Ok(Group { start, pages, write, copies, staged: staged.clone() })
    }

    /// So many bytes of a load were read. Returns the number of pages that have any; the rest of the last one is zero.
    fn note_read(&mut self, load: &Load, got: u64) -> u64 {
        let (number, count) = (load.number, load.places.len() as u64);
        let Some(region) = self.regions.get_mut(&load.start) else { return 0 };
        let (step, len) = (region.page_bytes(), region.len);
        let valid = (count - 1) * step + region.valid(number + count - 1);
        let filled = got.div_ceil(step);
        let Some(paged) = region.paged_mut() else { return 0 };
        let (buffer, offset) = match (load.places.first(), &paged.host, &self.stage, load.staged.first()) {
            (Some(Place::Host(_)), Some(HostFrames { buffer, offset }), ..) => {
                (&**buffer, offset + number * step)
            }
            (_, _, Some(stage), Some(staged)) => (&**stage, staged.at),
            _ => return 0,
        };
        buffer.memory().fill((offset + got) as usize, (filled * step - got) as usize, 0);
        let position = paged.first + number * step;
        // What the source never had is not missing.
        let expected = paged.end.min(paged.first + len);
        if got < valid && position + got < expected && load.asked {
            let path = paged.source.name().into();
            let end = paged.source.present_len().unwrap_or(position + got);
            paged.fail(Error::FileShrank { path, end, expected }, false);
        }
        if got > 0 {
            paged.end = paged.end.max(position + got);
        }
        filled
    }
}
