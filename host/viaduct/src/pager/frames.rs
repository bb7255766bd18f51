// SPDX-License-Identifier: Apache-2.0
//! Frames for pages.

use crate::card::Placement;
use crate::card::memory::FrameSize;
use crate::dispatch::Dispatcher;
use crate::error::Result;
use crate::pager::advice::Keep;
use crate::pager::replace::EVICT;
use crate::pager::space::Space;
use crate::protocol::desc::Place;

impl Space {
    /// Takes up to `want` frames, for pages of class `keep`, the first of which is needed at once; evicts
    /// pages if there are not enough.
    pub(super) fn take_frames(
        &mut self,
        d: &Dispatcher,
        want: u64,
        size: FrameSize,
        keep: Keep,
        placement: Placement,
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
            self.short = true;
            if !self.leaving.is_empty() {
                if let Err(error) = self.await_frames(d) {
                    self.give_all_back(d, frames, size);
                    return Err(error);
                }
                continue;
            }
            let evicted = match self.evict(d, keep, frames.len()) {
                Ok(evicted) => evicted,
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

    fn give_all_back(&mut self, d: &Dispatcher, frames: Vec<u64>, size: FrameSize) {
        let places: Vec<Place> = frames.into_iter().map(Place::Card).collect();
        self.give_back(d, &places, size);
    }
}
