// SPDX-License-Identifier: Apache-2.0
//! The address space of a slot: its virtual pages, their locations, and the handling of page faults.
//!
//! The card's TLBs are a cache of the page table kept here. A page can be resident (it has a frame) without being mapped
//! (in the card's TLBs): then a miss only maps it again. The card's status of a page (accessed, dirty) is returned whenever
//! its translation leaves the TLBs, and is kept here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::card::Card;
use crate::card::dma::DmaBuffer;
use crate::card::memory::FrameSize;
use crate::error::{Error, Result};
use crate::protocol::desc::*;
use crate::protocol::regs::{VIA_SLOT_CTRL, VIA_SLOT_CTRL_ISOLATE_MASK};
use crate::slot::backing::Source;
use crate::slot::dispatch::Dispatcher;
use viaduct_pci::DmaAccess;

/// First allocated virtual address: null pointers of apps, and addresses near them, are never mapped.
const VA_FIRST: u64 = 1 << 32;
/// Bytes moved between files and card memory in one step.
const BOUNCE: u64 = HUGE;
/// Most small pages that one fault loads.
const AHEAD_MAX: u64 = 64;
/// Commands submitted together.
const BATCH: usize = 64;
/// Faults taken together, and pages after which no further fault of a batch begins another run of pages. A batch that does not fit into the
/// command ring is submitted as there is room.
const FAULTS: usize = 256;
const PAGES: usize = 64;
/// Small pages evicted together.
const EVICT: usize = 32;
/// Denied accesses and failed write-backs kept for the user.
const KEEP: usize = 64;

/// An access that was completed with an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// Virtual address.
    pub va: u64,
    /// It was a write.
    pub is_write: bool,
    /// Why.
    pub why: String,
}

/// Counters of the pager.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PagerStats {
    /// Faults served.
    pub faults: u64,
    /// Faults on pages that were resident and only had to be mapped again.
    pub remapped: u64,
    /// Pages read from their file or buffer.
    pub pages_in: u64,
    /// Pages written back.
    pub pages_out: u64,
    /// Pages evicted.
    pub evicted: u64,
    /// Accesses denied.
    pub denied: u64,
}

struct Region {
    len: u64,
    prot: Prot,
    size: FrameSize,
    kind: Kind,
}

enum Kind {
    /// Pages that are always resident, contiguous from a location.
    Window(Place),
    Paged(Paged),
}

struct Paged {
    source: Source,
    pages: BTreeMap<u64, Page>, // by number
    /// Host memory that serves as frames, for mappings placed there.
    host: Option<DmaBuffer>,
    next: u64,  // page after the last one loaded
    ahead: u64, // pages to load together
    failures: Vec<Failure>,
}

/// An error with pages of a region, reported by the next `sync` or `unmap`.
struct Failure {
    error: Error,
    /// The pages are kept and will be written again: only the latest attempt counts.
    again: bool,
}

struct Page {
    place: Place,
    /// It may be in the card's TLBs.
    mapped: bool,
    /// Card time at which the card reported that it is there; 0 unless it is.
    since: u64,
    dirty: bool,
    accessed: bool,
}

/// A page by its region's address and its number.
type PageRef = (u64, u64);

/// Pages of one region that enter the card's TLBs together, from the first on.
struct Group {
    start: u64,
    pages: Vec<(u64, Place)>,
    /// Copies that fill them.
    copies: Vec<Command>,
}

/// A run of pages to load for a fault on the first.
struct Load {
    fault: Event,
    start: u64,
    number: u64,
    count: u64,
    /// Where its bytes are in the bounce buffer.
    bounce: u64,
    places: Vec<Place>,
    /// Faults on the other pages.
    others: Vec<Event>,
}

/// What a batch of faults takes.
#[derive(Default)]
struct Plan {
    taken: BTreeSet<PageRef>,
    maps: Vec<Group>,
    loads: Vec<Load>,
    denied: Vec<(Event, String)>,
    /// Faults of the next batch.
    later: Vec<Event>,
    bounce: u64,
}

/// The address space of a slot.
pub(crate) struct Space {
    regions: BTreeMap<u64, Region>,
    clock: VecDeque<PageRef>, // pages that hold card frames, in the order they are checked
    resident: u64,            // bytes of card frames
    budget: u64,
    bounce: Option<DmaBuffer>,
    /// Pages that are being mapped: they are not evicted.
    pinned: BTreeSet<PageRef>,
    pub denied: VecDeque<Denied>,
    pub stats: PagerStats,
}

impl Region {
    fn page_bytes(&self) -> u64 {
        self.size.bytes()
    }

    fn huge(&self) -> bool {
        self.size == FrameSize::Huge
    }

    fn page_count(&self) -> u64 {
        self.len.div_ceil(self.page_bytes())
    }

    /// The pages of a window that are mapped together, from `number` on.
    fn window(&self, number: u64) -> Vec<(u64, Place)> {
        let Kind::Window(place) = self.kind else { return Vec::new() };
        let end = self.page_count().min(number + BATCH as u64);
        (number..end).map(|n| (n, place.offset(n * self.page_bytes()))).collect()
    }

    /// Bytes of page `number` that belong to the mapping.
    fn valid(&self, number: u64) -> u64 {
        (self.len - number * self.page_bytes()).min(self.page_bytes())
    }
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

    // ---------------------------------------------------------------- regions

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
        let paged = Paged { source, pages: BTreeMap::new(), host, next: 0, ahead: 1, failures: Vec::new() };
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
    fn end_waiting(&mut self, d: &Dispatcher, va: u64) -> Result<()> {
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

    fn record_denied(&mut self, d: &Dispatcher, fault: Event, why: String) {
        tracing::info!(slot = d.slot, va = fault.va, is_write = fault.is_write, why, "access denied");
        self.stats.denied += 1;
        if self.denied.len() == KEEP {
            self.denied.pop_front();
        }
        self.denied.push_back(Denied { va: fault.va, is_write: fault.is_write, why });
    }

    /// Meaning of an error during the removal of a region: which bytes may be lost, if any.
    fn lost(&self, va: u64, error: Error) -> Error {
        let Some(Region { kind: Kind::Paged(paged), prot, size, len }) = self.regions.get(&va) else {
            return error;
        };
        let mut changed = paged.pages.iter().filter(|(_, page)| page.dirty || page.mapped && prot.write);
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

    fn insert(&mut self, region: Region) -> Result<u64> {
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

    fn find(&self, va: u64) -> Option<(u64, &Region)> {
        let (&start, region) = self.regions.range(..=va).next_back()?;
        (va - start < region.page_count() * region.page_bytes()).then_some((start, region))
    }

    fn page(&mut self, region: u64, number: u64) -> Option<&mut Page> {
        match &mut self.regions.get_mut(&region)?.kind {
            Kind::Paged(paged) => paged.pages.get_mut(&number),
            Kind::Window(_) => None,
        }
    }

    fn page_ref(&self, (region, number): PageRef) -> Option<&Page> {
        match &self.regions.get(&region)?.kind {
            Kind::Paged(paged) => paged.pages.get(&number),
            Kind::Window(_) => None,
        }
    }

    fn pages_of(&self, va: u64, which: impl Fn(&Page) -> bool) -> Vec<PageRef> {
        match self.regions.get(&va) {
            Some(Region { kind: Kind::Paged(paged), .. }) => {
                paged.pages.iter().filter(|(_, page)| which(page)).map(|(&n, _)| (va, n)).collect()
            }
            _ => Vec::new(),
        }
    }

    // ---------------------------------------------------------------- faults

    /// Serves the pending faults, as many as possible at once. An app may fault again immediately and for ever: the caller checks the
    /// time.
    pub fn serve(&mut self, d: &Dispatcher) -> Result<()> {
        let mut left = d.lock().faults.len();
        while left > 0 {
            let batch: Vec<Event> = {
                let mut st = d.lock();
                let count = st.faults.len().min(left).min(FAULTS);
                st.faults.drain(..count).collect()
            };
            let given = batch.len();
            let later = match self.serve_batch(d, batch.clone()) {
                Ok(later) => later,
                Err(error) => {
                    // Those that were answered are recognised as such: they are older than their pages' translations.
                    let mut st = d.lock();
                    batch.into_iter().rev().for_each(|fault| st.faults.push_front(fault));
                    return Err(error);
                }
            };
            left = left.saturating_sub(given.saturating_sub(later.len()).max(1));
            let mut st = d.lock();
            later.into_iter().rev().for_each(|fault| st.faults.push_front(fault));
        }
        Ok(())
    }

    /// Serves faults with one batch of commands. Those that there is no room for are returned; at least one is served.
    fn serve_batch(&mut self, d: &Dispatcher, faults: Vec<Event>) -> Result<Vec<Event>> {
        let mut plan = Plan::default();
        for fault in faults {
            self.plan(fault, &mut plan);
        }
        self.pinned.clone_from(&plan.taken);
        let served = self.carry_out(d, &mut plan);
        self.pinned.clear();
        served.map(|()| plan.later)
    }

    /// Decides what a fault takes. Several events may tell of one page, and an event of a page that has been mapped since.
    fn plan(&mut self, fault: Event, plan: &mut Plan) {
        let Some((start, region)) = self.find(fault.va) else {
            plan.denied.push((fault, "it is outside every mapping".into()));
            return;
        };
        let allowed = if fault.is_write { region.prot.write } else { region.prot.read };
        if !allowed {
            let how = if fault.is_write { "written" } else { "read" };
            plan.denied.push((fault, format!("the mapping must not be {how}")));
            return;
        }
        let (step, page_count) = (region.page_bytes(), region.page_count());
        let number = (fault.va - start) / step;
        let known = self.page_ref((start, number)).map_or(0, |page| page.since);
        if plan.taken.contains(&(start, number)) || fault.time < known {
            // On its way, perhaps: the run may turn out to be shorter. What missed before `known` has been translated since.
            let mut loads = plan.loads.iter_mut();
            match loads.find(|l| l.start == start && (l.number..l.number + l.count).contains(&number)) {
                Some(load) => load.others.push(fault),
                None => self.stats.faults += 1,
            }
            return;
        }
        if plan.taken.len() >= PAGES {
            plan.later.push(fault);
            return;
        }
        let found = match &region.kind {
            Kind::Window(_) => {
                let pages = region.window(number);
                plan.taken.extend(pages.iter().map(|&(n, _)| (start, n)));
                plan.maps.push(Group { start, pages, copies: Vec::new() });
                self.stats.faults += 1;
                return;
            }
            Kind::Paged(paged) => paged.pages.get(&number).map(|page| page.place),
        };
        if let Some(place) = found {
            plan.taken.insert((start, number));
            plan.maps.push(Group { start, pages: vec![(number, place)], copies: Vec::new() });
            self.stats.faults += 1;
            self.stats.remapped += 1;
            return;
        }
        // Following ones too, if the app accesses the region in order.
        let Some(Region { kind: Kind::Paged(paged), .. }) = self.regions.get_mut(&start) else { return };
        let room = if paged.host.is_some() { BOUNCE } else { BOUNCE - plan.bounce };
        if room < step {
            plan.later.push(fault);
            return;
        }
        paged.ahead = if paged.next == number { (paged.ahead * 2).min(AHEAD_MAX) } else { 1 };
        let most = paged.ahead.min(room / step).min(page_count - number);
        let free = |n: &u64| !paged.pages.contains_key(n) && !plan.taken.contains(&(start, *n));
        let count = (number..number + most).take_while(free).count() as u64;
        paged.next = number + count;
        let bounce = plan.bounce;
        if paged.host.is_none() {
            plan.bounce += count * step;
        }
        plan.taken.extend((number..number + count).map(|n| (start, n)));
        plan.loads.push(Load { fault, start, number, count, bounce, places: Vec::new(), others: Vec::new() });
    }

    fn carry_out(&mut self, d: &Dispatcher, plan: &mut Plan) -> Result<()> {
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

    fn enter_window(&mut self, d: &Dispatcher, start: u64, number: u64) -> Result<()> {
        let pages = self.regions[&start].window(number);
        self.enter(d, &[Group { start, pages, copies: Vec::new() }], &[])
    }

    /// Locations for the pages to load, or for the first of them.
    fn places(&mut self, d: &Dispatcher, load: &Load) -> Result<Vec<Place>> {
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
    fn announce(&self, load: &Load) {
        let region = &self.regions[&load.start];
        if let Kind::Paged(paged) = &region.kind {
            let step = region.page_bytes();
            paged.source.will_need(load.number * step, load.places.len() as u64 * step);
        }
    }

    /// Reads pages to where the card copies them from, and enters them here. Otherwise the fault is denied, and this is why.
    fn fill(&mut self, d: &Dispatcher, load: &Load) -> std::result::Result<Group, String> {
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
    fn read_pages(&mut self, d: &Dispatcher, load: &Load) -> Result<u64> {
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

    /// Fills and maps pages, then denies accesses, in one batch, and records the evicted translations.
    fn enter(&mut self, d: &Dispatcher, groups: &[Group], denials: &[Command]) -> Result<()> {
        let mut commands = Vec::new();
        for Group { start, pages, copies } in groups {
            let region = &self.regions[start];
            let (prot, huge, step) = (region.prot, region.huge(), region.page_bytes());
            commands.extend(copies);
            // Backwards: the faulting page comes last, so that no other page evicts it.
            let maps = pages.iter().rev();
            commands.extend(maps.map(|&(n, place)| Command::map(start + n * step, place, prot, huge)));
            // Upon any error below, the card may hold them.
            for &(number, _) in pages {
                if let Some(page) = self.page(*start, number) {
                    page.mapped = true;
                    page.since = 0;
                }
            }
        }
        // Denials come last: on a page with a right that others have, only what still lacks one is denied.
        commands.extend(denials);
        // The card maps only after all earlier copies are complete.
        let done = d.run("mapping pages", &commands)?;
        for (command, done) in commands.iter().zip(&done) {
            if command.op == Op::H2c && done.status != Status::Ok {
                // The page is mapped by now and contains data of another owner.
                d.card.write_slot(d.slot, VIA_SLOT_CTRL, VIA_SLOT_CTRL_ISOLATE_MASK)?;
                return Err(Error::Command { slot: d.slot, what: command.to_string(), status: done.status });
            }
        }
        let mut mapped = commands.iter().zip(&done).filter(|(command, _)| command.op == Op::Map);
        let pages = groups.iter().flat_map(|g| g.pages.iter().rev().map(|&(n, _)| (g.start, n)));
        let mut result = Ok(());
        for ((start, number), (_, done)) in pages.zip(&mut mapped) {
            if done.has(CPL_VICTIM) {
                self.displaced(done);
            }
            // It may have evicted an older translation of itself.
            if let Some(page) = self.page(start, number) {
                page.mapped = true;
                page.since = if done.status == Status::Ok { done.time } else { 0 };
            }
            result = result.and_then(|()| d.check("mapping a page", done));
        }
        // A denied fault no longer exists if the slot was reset meanwhile.
        result
    }

    /// A translation left the card's TLBs; its page stays resident.
    fn displaced(&mut self, done: &Completion) {
        let Some((start, region)) = self.find(done.info) else { return };
        if region.huge() != done.has(CPL_VICTIM_HUGE) {
            return;
        }
        let number = (done.info - start) / region.page_bytes();
        if let Some(page) = self.page(start, number) {
            page.mapped = false;
            page.since = 0;
            page.accessed |= done.has(CPL_VICTIM_ACCESSED);
            page.dirty |= done.has(CPL_VICTIM_DIRTY);
        }
    }

    /// Removes translations from the card and records the status of their pages.
    fn leave(&mut self, d: &Dispatcher, pages: &[PageRef]) -> Result<()> {
        for batch in pages.chunks(BATCH) {
            let unmaps: Vec<_> = batch.iter().map(|&at| self.command(at, Command::unmap)).collect();
            for (&(start, number), done) in batch.iter().zip(d.run("unmapping pages", &unmaps)?) {
                self.check_found(d, &done)?;
                if let Some(page) = self.page(start, number) {
                    page.mapped = false;
                    page.since = 0;
                    page.accessed |= done.has(CPL_ACCESSED);
                    page.dirty |= done.has(CPL_DIRTY);
                }
            }
        }
        Ok(())
    }

    /// Collects the accessed bits of pages from the card. Returns the pages that were written since they were mapped.
    fn look(&mut self, d: &Dispatcher, pages: &[PageRef]) -> Result<Vec<PageRef>> {
        let mut written = Vec::new();
        for batch in pages.chunks(BATCH) {
            let scans: Vec<_> = batch.iter().map(|&at| self.command(at, Command::scan)).collect();
            for (&at, done) in batch.iter().zip(d.run("scanning for changed and idle pages", &scans)?) {
                self.check_found(d, &done)?;
                if let Some(page) = self.page(at.0, at.1) {
                    page.accessed |= done.has(CPL_ACCESSED);
                }
                if done.has(CPL_DIRTY) {
                    written.push(at);
                }
            }
        }
        Ok(written)
    }

    /// A command about one page.
    fn command(&self, (start, number): PageRef, make: fn(u64, bool) -> Command) -> Command {
        let region = &self.regions[&start];
        make(start + number * region.page_bytes(), region.huge())
    }

    /// A missing translation is no error: the card evicts translations by itself.
    fn check_found(&self, d: &Dispatcher, done: &Completion) -> Result<()> {
        if done.status == Status::NotFound { Ok(()) } else { d.check("handling a page", done) }
    }

    fn fail(&mut self, start: u64, error: Error) {
        if let Some(Region { kind: Kind::Paged(paged), .. }) = self.regions.get_mut(&start) {
            if paged.failures.len() < KEEP {
                paged.failures.push(Failure { error, again: false });
            }
        }
    }

    // ---------------------------------------------------------------- frames

    /// Takes up to `want` frames; evicts pages if there are not enough.
    fn take_frames(&mut self, d: &Dispatcher, want: u64, size: FrameSize) -> Result<Vec<u64>> {
        let want = want.min((self.budget / size.bytes()).max(1));
        let mut frames = Vec::new();
        let mut fruitless = 0;
        while (frames.len() as u64) < want {
            let fits = self.resident + size.bytes() <= self.budget;
            if let Some(addr) = fits.then(|| d.card.alloc_frame(size)).flatten() {
                self.resident += size.bytes();
                frames.push(addr);
            } else if self.evict(d)? == 0 {
                // Pages that cannot be written back stay; others may be evicted.
                fruitless += 1;
                if fruitless * EVICT > self.clock.len() {
                    break;
                }
            }
        }
        Ok(frames)
    }

    fn give_back(&mut self, d: &Dispatcher, places: &[Place], size: FrameSize) {
        for place in places {
            if let Place::Card(addr) = place {
                d.card.free_frame(*addr, size);
                self.resident -= size.bytes();
            }
        }
    }

    /// Frees frames of pages that were not accessed for long, and returns how many.
    fn evict(&mut self, d: &Dispatcher) -> Result<usize> {
        let mut looks = 2 * self.clock.len();
        let mut chosen = Vec::new();
        let mut bytes = 0;
        while chosen.is_empty() && looks > 0 {
            let count = self.clock.len().min(EVICT);
            looks = looks.saturating_sub(count);
            let batch: Vec<PageRef> = self.clock.iter().copied().take(count).collect();
            let mapped = |at: &&PageRef| self.page_ref(**at).is_some_and(|page| page.mapped);
            let mapped: Vec<PageRef> = batch.iter().filter(mapped).copied().collect();
            self.look(d, &mapped)?;
            self.clock.drain(..count);
            for at in batch {
                let size = self.regions[&at.0].page_bytes();
                let pinned = self.pinned.contains(&at);
                let Some(page) = self.page(at.0, at.1) else { continue };
                if std::mem::take(&mut page.accessed) || pinned {
                    self.clock.push_back(at);
                } else if bytes < EVICT as u64 * PAGE {
                    bytes += size;
                    chosen.push(at);
                } else {
                    self.clock.push_front(at);
                }
            }
        }
        if chosen.is_empty() {
            // All are in constant use: the oldest is evicted.
            let oldest = self.clock.iter().position(|at| !self.pinned.contains(at));
            chosen.extend(oldest.and_then(|i| self.clock.remove(i)));
        }
        self.drop_pages(d, &chosen)
    }

    /// Unmaps pages, writes the changed ones back and frees their frames. A page that cannot be written back is kept.
    fn drop_pages(&mut self, d: &Dispatcher, pages: &[PageRef]) -> Result<usize> {
        let mapped = |at: &&PageRef| self.page_ref(**at).is_some_and(|page| page.mapped);
        let mapped: Vec<PageRef> = pages.iter().filter(mapped).copied().collect();
        self.leave(d, &mapped)?;
        let dirty: Vec<_> =
            pages.iter().copied().filter(|&at| self.page_ref(at).is_some_and(|page| page.dirty)).collect();
        self.write_back(d, &dirty)?;
        let mut freed = 0;
        for &(start, number) in pages {
            let Some(region) = self.regions.get_mut(&start) else { continue };
            let size = region.size;
            let Kind::Paged(paged) = &mut region.kind else { continue };
            if paged.pages.get(&number).is_none_or(|page| page.dirty) {
                self.clock.push_back((start, number));
                continue;
            }
            if let Some(Page { place: Place::Card(addr), .. }) = paged.pages.remove(&number) {
                d.card.free_frame(addr, size);
                self.resident -= size.bytes();
                self.stats.evicted += 1;
                freed += 1;
            }
        }
        Ok(freed)
    }

    /// Writes all changed pages of a region that are not mapped; earlier errors of pages that are retried now are dropped.
    fn write_all(&mut self, d: &Dispatcher, va: u64) -> Result<()> {
        if let Some(Region { kind: Kind::Paged(paged), .. }) = self.regions.get_mut(&va) {
            paged.failures.retain(|failure| !failure.again);
        }
        let dirty = self.pages_of(va, |page| page.dirty);
        self.write_back(d, &dirty)
    }

    /// Writes pages, which are not mapped, to their file or buffer. Written pages are clean afterwards; failures are
    /// recorded with the region.
    fn write_back(&mut self, d: &Dispatcher, pages: &[PageRef]) -> Result<()> {
        let mut rest = pages;
        while let Some(&(start, first)) = rest.first() {
            let step = self.regions[&start].page_bytes();
            let most = ((BOUNCE / step) as usize).min(BATCH);
            let run = rest.iter().zip(first..).take(most).take_while(|(at, n)| **at == (start, *n)).count();
            self.write_run(d, start, first, run as u64)?;
            rest = &rest[run..];
        }
        Ok(())
    }

    /// Writes `count` neighbouring pages of a region.
    fn write_run(&mut self, d: &Dispatcher, start: u64, first: u64, count: u64) -> Result<()> {
        if self.bounce.is_none() {
            self.bounce = Some(d.card.dma_buffer(BOUNCE, DmaAccess::ReadWrite)?);
        }
        let bounce = self.bounce.as_ref().expect("just allocated");
        let region = self.regions.get_mut(&start).expect("its pages are resident");
        let (step, valid) = (region.page_bytes(), region.valid(first + count - 1));
        let len = (count - 1) * step + valid;
        let Kind::Paged(paged) = &mut region.kind else { return Ok(()) };
        let mut copies = Vec::new();
        for (i, (_, page)) in paged.pages.range(first..first + count).enumerate() {
            if let Place::Card(addr) = page.place {
                copies.push(Command::c2h(bounce.iova() + i as u64 * step, addr, step as u32));
            }
        }
        for (copy, done) in copies.iter().zip(d.run("reading changed pages", &copies)?) {
            d.check(&copy.to_string(), &done)?;
        }
        let (buffer, offset) = match &paged.host {
            Some(host) => (host, first * step),
            None => (bounce, 0),
        };
        let again = match paged.source.write(buffer, offset as usize, len as usize, first * step) {
            Ok(()) => false,
            Err(failure) => {
                if paged.failures.len() < KEEP {
                    paged.failures.push(Failure { error: failure.error, again: failure.again });
                }
                failure.again
            }
        };
        for (_, page) in paged.pages.range_mut(first..first + count) {
            page.dirty = again;
        }
        self.stats.pages_out += count;
        Ok(())
    }
}
