// SPDX-License-Identifier: Apache-2.0
//! Frames for pages, and which pages give theirs up: a clock over the bits that the card keeps of each page.

use crate::card::memory::FrameSize;
use crate::error::Result;
use crate::pager::region::{Kind, Page, PageRef};
use crate::pager::space::Space;
use crate::protocol::desc::*;
use crate::slot::dispatch::Dispatcher;

/// Small pages evicted together.
const EVICT: usize = 32;

impl Space {
    /// Takes up to `want` frames; evicts pages if there are not enough.
    pub(super) fn take_frames(&mut self, d: &Dispatcher, want: u64, size: FrameSize) -> Result<Vec<u64>> {
        let want = want.min((self.budget / size.bytes()).max(1));
        let mut frames = Vec::new();
        let mut fruitless = 0;
        while (frames.len() as u64) < want {
            let fits = self.resident + size.bytes() <= self.budget;
            if let Some(addr) = fits.then(|| d.card.alloc_frame(size)).flatten() {
                self.resident += size.bytes();
                frames.push(addr);
                continue;
            }
            let evicted = match self.evict(d) {
                Ok(evicted) => evicted,
                Err(error) => {
                    let places: Vec<Place> = frames.into_iter().map(Place::Card).collect();
                    self.give_back(d, &places, size);
                    return Err(error);
                }
            };
            if evicted == 0 {
                // Pages that cannot be written back stay; others may be evicted.
                fruitless += 1;
                if fruitless * EVICT > self.clock.len() {
                    break;
                }
            }
        }
        Ok(frames)
    }

    pub(super) fn give_back(&mut self, d: &Dispatcher, places: &[Place], size: FrameSize) {
        for place in places {
            if let Place::Card(addr) = place {
                d.card.free_frame(*addr, size);
                self.resident -= size.bytes();
            }
        }
    }

    /// Frees frames of pages that were not accessed for long, and returns how many.
    pub(super) fn evict(&mut self, d: &Dispatcher) -> Result<usize> {
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
    pub(super) fn drop_pages(&mut self, d: &Dispatcher, pages: &[PageRef]) -> Result<usize> {
        let mapped = |at: &&PageRef| self.page_ref(**at).is_some_and(|page| page.mapped);
        let mapped: Vec<PageRef> = pages.iter().filter(mapped).copied().collect();
        let mut result = self.leave(d, &mapped);
        if result.is_ok() {
            let changed = |at: &&PageRef| self.page_ref(**at).is_some_and(Page::changed);
            let changed: Vec<PageRef> = pages.iter().filter(changed).copied().collect();
            result = self.write_back(d, &changed);
        }
        let mut freed = 0;
        for &(start, number) in pages {
            let Some(region) = self.regions.get_mut(&start) else { continue };
            let size = region.size;
            let Kind::Paged(paged) = &mut region.kind else { continue };
            let Some(page) = paged.pages.get(&number) else { continue };
            if page.mapped || page.changed() {
                if let (Place::Card(_), false) = (page.place, page.spoiled) {
                    self.clock.push_back((start, number));
                }
                continue;
            }
            if let Some(Page { place: Place::Card(addr), .. }) = paged.pages.remove(&number) {
                d.card.free_frame(addr, size);
                self.resident -= size.bytes();
                self.stats.evicted += 1;
                freed += 1;
            }
        }
        result.map(|()| freed)
    }
}
