// SPDX-License-Identifier: Apache-2.0
//! Frames for pages.

use crate::card::Placement;
use crate::card::memory::FrameSize;
use crate::dispatch::Dispatcher;
use crate::error::Result;
use crate::pager::eviction::replace::EVICT;
use crate::pager::state::advice::Keep;
use crate::pager::state::batch::{Leaving, Stage};
use crate::pager::state::space::Space;
use crate::protocol::desc::Place;

/// What was done for frames that are missing.
enum Room {
    /// Pages are leaving.
    Comes,
    /// So many pages were evicted.
    Evicted(usize),
}

impl Space {
    /// Takes up to `want` frames, for pages of class `keep`, the first of which is needed at once. If there are not enough and no pages are
    /// leaving, it evicts some; those that are leaving it does not wait for, unless `wait` says so or all that were looked at are in use.
    pub(in crate::pager) fn take_frames(
        &mut self,
        d: &Dispatcher,
        want: u64,
        size: FrameSize,
        keep: Keep,
        placement: Placement,
        wait: bool,
    ) -> Result<Vec<u64>> {
        let want = want.min((self.budget / size.bytes()).max(1));
        let mut frames = Vec::new();
        let mut fruitless = 0;
        while (frames.len() as u64) < want {
            let fits = self.resident + size.bytes() <= self.budget;
            if let Some(addr) = fits.then(|| d.card.alloc_frame(size, d.slot, placement)).flatten() {
                self.resident += size.bytes();
                frames.push(addr);
                continue;
            }
            let evicted = match self.make_room(d, keep, frames.len(), wait) {
                Ok(Room::Comes) => break,
                Ok(Room::Evicted(evicted)) => evicted,
                Err(error) => {
                    self.give_all_back(d, frames, size);
                    return Err(error);
                }
            };
            if evicted == 0 {
                // Pages that cannot be written back stay; others may be evicted.
                fruitless += 1;
                if !frames.is_empty() || fruitless * EVICT > self.clock.len() {
                    break;
                }
            }
        }
        Ok(frames)
    }

    /// Begins to evict pages, or evicts some at once if those that were looked at are all in use.
    fn make_room(&mut self, d: &Dispatcher, keep: Keep, taken: usize, wait: bool) -> Result<Room> {
        let first = !std::mem::replace(&mut self.short, true);
        let at_once = wait || self.all_in_use();
        if self.leaving.is_empty() && !at_once {
            if first {
                self.retire_first(d)?;
            }
            self.retire(d)?;
        }
        if self.leaving.is_empty() {
            return self.evict(d, keep, taken, wait);
        }
        // A file may be slow: others are served meanwhile.
        let stores = self.leaving.iter().any(|leaving| leaving.store.is_some());
        if !at_once || stores && !wait {
            return Ok(Room::Comes);
        }
        let before = self.stats.evicted;
        self.finish_retiring(d)?;
        Ok(Room::Evicted((self.stats.evicted - before) as usize))
    }

    /// Evicts pages that were not accessed for long. A file may be slow: unless `wait` says so they leave like those that are evicted ahead of
    /// need, and others are served meanwhile.
    fn evict(&mut self, d: &Dispatcher, keep: Keep, taken: usize, wait: bool) -> Result<Room> {
        let (class, pages) = self.victims(d, keep, taken)?;
        if wait || pages.is_empty() || d.card.pci().stands_still() || self.all_stay() {
            return self.drop_pages(d, &pages).map(Room::Evicted);
        }
        self.unmap_leaving(d, Leaving::new(pages, class, Stage::Unmapped, 0))?;
        Ok(Room::Comes)
    }

    fn give_all_back(&mut self, d: &Dispatcher, frames: Vec<u64>, size: FrameSize) {
        let places: Vec<Place> = frames.into_iter().map(Place::Card).collect();
        self.give_back(d, &places, size);
    }
}
