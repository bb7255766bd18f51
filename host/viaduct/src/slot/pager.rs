// SPDX-License-Identifier: Apache-2.0
//! The address space of a slot: its virtual pages, their locations, and the handling of page faults.
//!
//! The card's TLBs are a cache of the page table kept here. A page can be resident (it has a frame) without being mapped
//! (in the card's TLBs): then a miss only maps it again. The card's status of a page (accessed, dirty) is returned whenever
//! its translation leaves the TLBs, and is kept here.

use std::collections::{BTreeMap, VecDeque};

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
    mapped: bool,
    dirty: bool,
    accessed: bool,
}

/// A page by its region's address and its number.
type PageRef = (u64, u64);

/// The address space of a slot.
pub(crate) struct Space {
    regions: BTreeMap<u64, Region>,
    clock: VecDeque<PageRef>, // pages that hold card frames, in the order they are checked
    resident: u64,            // bytes of card frames
    budget: u64,
    bounce: Option<DmaBuffer>,
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

    /// Serves the pending faults. An app may fault again immediately and for ever: the caller checks the time.
    pub fn serve(&mut self, d: &Dispatcher) -> Result<()> {
        let waiting = d.lock().faults.len();
        for _ in 0..waiting {
            let fault = d.lock().faults.pop_front();
            let Some(fault) = fault else { break };
            self.stats.faults += 1;
            if let Some(why) = self.resolve(d, &fault)? {
                tracing::info!(slot = d.slot, va = fault.va, is_write = fault.is_write, why, "access denied");
                self.stats.denied += 1;
                if self.denied.len() == KEEP {
                    self.denied.pop_front();
                }
                self.denied.push_back(Denied { va: fault.va, is_write: fault.is_write, why });
                // The fault no longer exists if the slot was reset meanwhile.
                d.run("denying an access", &[Command::deny(fault.va)])?;
            }
        }
        Ok(())
    }

    /// Maps the page of a fault, or returns why it cannot.
    fn resolve(&mut self, d: &Dispatcher, fault: &Event) -> Result<Option<String>> {
        let Some((start, region)) = self.find(fault.va) else {
            return Ok(Some("it is outside every mapping".into()));
        };
        let allowed = if fault.is_write { region.prot.write } else { region.prot.read };
        if !allowed {
            let how = if fault.is_write { "written" } else { "read" };
            return Ok(Some(format!("the mapping must not be {how}")));
        }
        let number = (fault.va - start) / region.page_bytes();
        match &region.kind {
            Kind::Window(_) => self.enter_window(d, start, number).map(|()| None),
            Kind::Paged(paged) => match paged.pages.get(&number) {
                Some(page) => {
                    let place = page.place;
                    self.stats.remapped += 1;
                    self.enter(d, Vec::new(), start, &[(number, place)]).map(|()| None)
                }
                None => self.load(d, start, number),
            },
        }
    }

    fn enter_window(&mut self, d: &Dispatcher, start: u64, number: u64) -> Result<()> {
        let region = &self.regions[&start];
        let Kind::Window(place) = region.kind else { return Ok(()) };
        let end = region.page_count().min(number + BATCH as u64);
        let step = region.page_bytes();
        let pages: Vec<_> = (number..end).map(|n| (n, place.offset(n * step))).collect();
        self.enter(d, Vec::new(), start, &pages)
    }

    /// Loads a page, and following ones if the app accesses the region in order, and maps them.
    fn load(&mut self, d: &Dispatcher, start: u64, number: u64) -> Result<Option<String>> {
        let region = self.regions.get_mut(&start).expect("the region was found");
        let (step, size, count) = (region.page_bytes(), region.size, region.page_count());
        let Kind::Paged(paged) = &mut region.kind else { return Ok(None) };
        paged.ahead = if paged.next == number { (paged.ahead * 2).min(AHEAD_MAX) } else { 1 };
        let most = paged.ahead.min(BOUNCE / step).min(count - number);
        let gap = paged.pages.range(number..).next().map_or(most, |(&next, _)| next - number);
        let want = most.min(gap);
        let on_host = paged.host.as_ref().map(DmaBuffer::iova);

        let places: Vec<Place> = match on_host {
            Some(iova) => (number..number + want).map(|n| Place::Host(iova + n * step)).collect(),
            None => match self.take_frames(d, want, size)? {
                frames if frames.is_empty() => return Ok(Some("no card memory is free".into())),
                frames => frames.into_iter().map(Place::Card).collect(),
            },
        };
        let filled = match self.fill(d, start, number, places.len() as u64) {
            Ok(filled) => filled,
            Err(error) => {
                let why = error.to_string();
                self.give_back(d, &places, size);
                self.fail(start, error);
                return Ok(Some(why));
            }
        };
        if filled == 0 {
            self.give_back(d, &places, size);
            return Ok(Some("the file ends before it: it was truncated after it was mapped".into()));
        }
        let (used, unused) = places.split_at(filled as usize);
        self.give_back(d, unused, size);

        let mut copies = Vec::new();
        if let Some(bounce) = self.bounce.as_ref().filter(|_| on_host.is_none()) {
            for (i, place) in used.iter().enumerate() {
                if let Place::Card(addr) = place {
                    copies.push(Command::h2c(bounce.iova() + i as u64 * step, *addr, step as u32));
                }
            }
        }
        let pages: Vec<_> = (number..).zip(used.iter().copied()).collect();
        let Some(Region { kind: Kind::Paged(paged), .. }) = self.regions.get_mut(&start) else {
            return Ok(None);
        };
        paged.next = number + filled;
        for &(n, place) in &pages {
            paged.pages.insert(n, Page { place, mapped: false, dirty: false, accessed: false });
            if on_host.is_none() {
                self.clock.push_back((start, n));
            }
        }
        self.stats.pages_in += filled;
        if let Err(error) = self.enter(d, copies, start, &pages) {
            // They may contain data of another owner: they are freed, unless the card can still access them.
            let refs: Vec<_> = pages.iter().map(|&(n, _)| (start, n)).collect();
            let left = self.leave(d, &refs);
            for &(n, _) in &pages {
                if let Some(page) = self.page(start, n) {
                    page.dirty = false;
                }
            }
            self.clock.retain(|at| !refs.contains(at));
            if let Err(error) = left.and_then(|()| self.drop_pages(d, &refs)) {
                tracing::warn!(%error, slot = d.slot, "pages that could not be filled stay in the card");
            }
            return Err(error);
        }
        Ok(None)
    }

    /// Reads `count` pages from `number` on to where the card copies them from. Returns the number of pages.
    fn fill(&mut self, d: &Dispatcher, start: u64, number: u64, count: u64) -> Result<u64> {
        if self.bounce.is_none() {
            self.bounce = Some(d.card.dma_buffer(BOUNCE, DmaAccess::ReadWrite)?);
        }
        let region = self.regions.get_mut(&start).expect("the region was found");
        let step = region.page_bytes();
        let valid = (count - 1) * step + region.valid(number + count - 1);
        let Kind::Paged(paged) = &mut region.kind else { return Ok(0) };
        let (buffer, offset) = match &paged.host {
            Some(host) => (host, number * step),
            None => (self.bounce.as_ref().expect("just allocated"), 0),
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

    /// Runs `before`, then maps pages of one region, and records the evicted translations.
    fn enter(
        &mut self,
        d: &Dispatcher,
        before: Vec<Command>,
        start: u64,
        pages: &[(u64, Place)],
    ) -> Result<()> {
        let region = &self.regions[&start];
        let (prot, huge, step) = (region.prot, region.huge(), region.page_bytes());
        let mut commands = before;
        let copies = commands.len();
        // Backwards: the faulting page comes last, so that no other page evicts it.
        let maps = pages.iter().rev().map(|&(n, place)| Command::map(start + n * step, place, prot, huge));
        commands.extend(maps);
        // Upon any error below, the card may hold them.
        for &(number, _) in pages {
            if let Some(page) = self.page(start, number) {
                page.mapped = true;
            }
        }
        // The card maps only after all earlier copies are complete.
        let done = d.run("mapping pages", &commands)?;
        for (command, done) in commands.iter().zip(&done).take(copies) {
            if done.status != Status::Ok {
                // The page is mapped by now and contains data of another owner.
                d.card.write_slot(d.slot, VIA_SLOT_CTRL, VIA_SLOT_CTRL_ISOLATE_MASK)?;
                return Err(Error::Command { slot: d.slot, what: command.to_string(), status: done.status });
            }
        }
        for (&(number, _), done) in pages.iter().rev().zip(&done[copies..]) {
            if done.has(CPL_VICTIM) {
                self.displaced(done);
            }
            // It may have evicted an older translation of itself.
            if let Some(page) = self.page(start, number) {
                page.mapped = true;
            }
        }
        done[copies..].iter().try_for_each(|done| d.check("mapping a page", done))
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
                let Some(page) = self.page(at.0, at.1) else { continue };
                if std::mem::take(&mut page.accessed) {
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
            chosen.extend(self.clock.pop_front());
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
