// SPDX-License-Identifier: Apache-2.0
//! Pages that stay in host memory while card memory is full. The card accesses them over the link, 64 bytes at a time. A page that an app
//! accesses in random order is used once or twice before it would be evicted: to copy 4096 bytes of it to the card and back costs the link more.

use std::sync::Arc;

use crate::card::memory::FrameSize;
use crate::dispatch::Dispatcher;
use crate::pager::eviction::replace::EVICT;
use crate::pager::state::advice::Keep;
use crate::pager::state::region::HostFrames;
use crate::pager::state::space::Space;
use crate::protocol::desc::Place;
use viaduct_pci::DmaAccess;

impl Space {
    /// Locations for pages from `number` on of a region that may overflow: frames that are free, or that pages of other regions give up which
    /// are not in use; else host memory. Empty if there is neither.
    pub(in crate::pager) fn places_for_random(
        &mut self,
        d: &Dispatcher,
        start: u64,
        number: u64,
        want: u64,
    ) -> Vec<Place> {
        let Some(region) = self.regions.get(&start) else { return Vec::new() };
        let (size, step) = (region.size, region.page_bytes());
        let mut frames = self.free_frames(d, start, size, want);
        if frames.is_empty() && self.give_way(d) {
            frames = self.free_frames(d, start, size, want);
        }
        if !frames.is_empty() {
            return frames.into_iter().map(Place::Card).collect();
        }
        let Some(first) = self.host_frames(d, start) else { return Vec::new() };
        (number..number + want).map(|n| Place::Host(first + n * step)).collect()
    }

    /// Takes up to `want` frames that are free.
    pub(in crate::pager) fn free_frames(
        &mut self,
        d: &Dispatcher,
        start: u64,
        size: FrameSize,
        want: u64,
    ) -> Vec<u64> {
        let Some(placement) = self.paged(start).map(|paged| paged.placement) else { return Vec::new() };
        let mut frames = Vec::new();
        while (frames.len() as u64) < want && self.resident + size.bytes() <= self.budget {
            let Some(addr) = d.card.alloc_frame(size, d.slot, placement) else { break };
            self.resident += size.bytes();
            frames.push(addr);
        }
        frames
    }

    /// Frees frames of some pages of other classes that are not in use; `false` if there are none.
    fn give_way(&mut self, d: &Dispatcher) -> bool {
        for keep in [Keep::Low, Keep::Normal] {
            if self.clock.queue(keep).is_empty() {
                continue;
            }
            let chosen = match keep {
                Keep::Low => Ok(self.oldest(keep, EVICT)),
                _ => self.idle(d, keep, EVICT),
            };
            match chosen.and_then(|pages| self.drop_pages(d, &pages)) {
                Ok(0) => {}
                Ok(_) => return true,
                Err(error) => {
                    self.trouble.get_or_insert(error);
                    return false;
                }
            }
        }
        false
    }

    /// Bus address of the host memory for all pages of a region; it is allocated when the first page needs it.
    fn host_frames(&mut self, d: &Dispatcher, start: u64) -> Option<u64> {
        let bytes = self.regions.get(&start)?.bytes();
        if self.paged(start)?.host.is_none() {
            if !self.host_budget.has_room(bytes) {
                return None;
            }
            match d.card.dma_buffer(bytes, DmaAccess::ReadWrite) {
                Ok(buffer) => {
                    let buffer = Arc::new(buffer);
                    self.host_budget.take(&buffer, bytes);
                    self.paged(start)?.host = Some(HostFrames { buffer, offset: 0 });
                }
                Err(error) => {
                    tracing::warn!(%error, slot = d.slot, bytes, "no host memory for pages that card memory has no room for");
                    self.host_budget.lower(bytes); // it is not tried for every fault
                    return None;
                }
            }
        }
        let HostFrames { buffer, offset } = self.paged(start)?.host.as_ref()?;
        Some(buffer.iova() + offset)
    }
}
