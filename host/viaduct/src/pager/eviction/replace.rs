// SPDX-License-Identifier: Apache-2.0
//! Frames for pages, and which pages give theirs up: a clock over the bits that the card keeps of each page.

use crate::card::memory::FrameSize;
use crate::dispatch::Dispatcher;
use crate::error::Result;
use crate::pager::state::advice::Keep;
use crate::pager::state::region::{Page, PageRef, Use};
use crate::pager::state::space::Space;
use crate::protocol::desc::*;

/// Part of the frames that pages of low use may take from others.
const SHARE: u64 = 8;
/// Small pages looked at together, and most that are evicted together.
pub(in crate::pager) const EVICT: usize = 32;
/// Part of the frames that are kept free.
pub(in crate::pager) const PART: u64 = 8;
/// Most looks in vain after which changed pages leave, though frames are free.
const VAIN: usize = 64;

impl Space {
    pub(in crate::pager) fn give_back(&mut self, d: &Dispatcher, places: &[Place], size: FrameSize) {
        for place in places {
            if let Place::Card(addr) = place {
                d.card.free_frame(*addr, size);
                self.resident -= size.bytes();
            }
        }
    }

    /// Pages that hold frames, those that are leaving among them.
    pub(in crate::pager) fn frames_held(&self) -> usize {
        self.clock.len() + self.leaving.iter().map(|leaving| leaving.pages.len()).sum::<usize>()
    }

    /// Looks in vain after which changed pages leave.
    pub(in crate::pager) fn vain(&self) -> usize {
        VAIN.min(self.frames_held())
    }

    /// Whether all pages have been looked at, and none could leave: they are not asked again before one has been evicted, or loaded.
    pub(in crate::pager) fn all_in_use(&self) -> bool {
        self.futile > self.vain() + self.frames_held()
    }

    /// Whether pages were also to be evicted, and stayed, as they cannot be written or are wanted again.
    pub(in crate::pager) fn all_stay(&self) -> bool {
        self.futile > self.vain() + 3 * self.frames_held()
    }

    /// Pages that the card may have translations of, and the others.
    pub(in crate::pager) fn split_mapped(&self, pages: &[PageRef]) -> (Vec<PageRef>, Vec<PageRef>) {
        pages.iter().partition(|&&at| self.page_ref(at).is_some_and(|page| page.mapped))
    }

    /// Small pages of a group: of few frames, no larger a part than is to be free.
    pub(in crate::pager) fn group(&self, d: &Dispatcher) -> u64 {
        (self.room(d) / PAGE / PART).clamp(1, EVICT as u64)
    }

    /// Takes pages that were not accessed for long from the clock, with their class. Those of lower classes go first. `taken` frames are there
    /// already for pages of class `by`: for more, those of higher classes stay.
    pub(in crate::pager) fn victims(
        &mut self,
        d: &Dispatcher,
        by: Keep,
        taken: usize,
    ) -> Result<(Keep, Vec<PageRef>)> {
        let at_once = taken == 0;
        for keep in Keep::ALL {
            let due = at_once || keep <= by;
            // Pages of low use have a share, so that they can be loaded together.
            let share = by == Keep::Low && keep == Keep::Normal && self.low_is_short(d, taken);
            if !due && !share {
                break;
            }
            let mut chosen = Vec::new();
            // If all have been looked at in vain, the fault would only wait longer for looks.
            if keep != Keep::Low && !self.all_in_use() {
                let looks = 2 * self.clock.queue(keep).len();
                chosen = self.idle(d, keep, looks)?;
            }
            if chosen.is_empty() && (at_once || due && keep == Keep::Low) {
                // Those of low use go in their order; of others all are in constant use, or wait for it: the oldest goes, for what is needed
                // at once.
                chosen = match keep {
                    Keep::Low => self.oldest(keep, self.group(d) as usize),
                    Keep::Overflow | Keep::Normal | Keep::Long => {
                        self.oldest_of_all(keep).into_iter().collect()
                    }
                };
            }
            if !chosen.is_empty() {
                return Ok((keep, chosen));
            }
        }
        Ok((by, Vec::new()))
    }

    /// Whether pages of low use have less than their share of the frames.
    fn low_is_short(&mut self, d: &Dispatcher, taken: usize) -> bool {
        let share = self.room(d) / SHARE / PAGE;
        ((self.clock.queue(Keep::Low).len() + taken) as u64) < share
    }

    /// Takes pages of a class from the clock that were not accessed since they were last looked at, and do not wait for their first use, after
    /// so many looks at most.
    pub(in crate::pager) fn idle(
        &mut self,
        d: &Dispatcher,
        keep: Keep,
        mut looks: usize,
    ) -> Result<Vec<PageRef>> {
        let mut chosen = Vec::new();
        let mut bytes = 0;
        let (loaded, frames) = (self.clock.loaded(), self.frames_held());
        // Of few frames only some: others are in use.
        let most = self.group(d) * PAGE;
        while chosen.is_empty() && looks > 0 {
            let count = self.clock.queue(keep).len().min(EVICT).min(looks);
            looks = looks.saturating_sub(count);
            let batch: Vec<PageRef> = self.clock.queue(keep).iter().copied().take(count).collect();
            let (mapped, _) = self.split_mapped(&batch);
            self.look(d, &mapped)?;
            self.clock.queue(keep).drain(..count);
            for at in batch {
                let size = self.regions[&at.0].page_bytes();
                let pinned = self.is_held(&at);
                let Some(page) = self.page(at.0, at.1) else { continue };
                if page.look(loaded, frames) != Use::Over || pinned {
                    self.clock.push(at, keep);
                } else if bytes < most {
                    bytes += size;
                    chosen.push(at);
                } else {
                    self.clock.queue(keep).push_front(at);
                }
            }
        }
        Ok(chosen)
    }

    /// Takes the oldest pages of a class from the clock, whether they are used or not: as many as `most` small ones.
    pub(in crate::pager) fn oldest(&mut self, keep: Keep, most: usize) -> Vec<PageRef> {
        let (mut chosen, mut bytes) = (Vec::new(), 0);
        for _ in 0..self.clock.queue(keep).len() {
            if bytes >= most as u64 * PAGE {
                break;
            }
            let Some(at) = self.clock.queue(keep).pop_front() else { break };
            if self.is_held(&at) {
                self.clock.push(at, keep);
            } else {
                bytes += self.regions[&at.0].page_bytes();
                chosen.push(at);
            }
        }
        chosen
    }

    /// Takes the page of a class from the clock that was loaded first. It need not be the first one there: those that are looked at go to the end.
    fn oldest_of_all(&mut self, keep: Keep) -> Option<PageRef> {
        let mut pages = std::mem::take(self.clock.queue(keep));
        let turn = |&&at: &&PageRef| self.page_ref(at).map_or(0, |page| page.turn);
        let oldest = pages.iter().filter(|at| !self.is_held(at)).min_by_key(turn).copied();
        pages.retain(|&at| Some(at) != oldest);
        *self.clock.queue(keep) = pages;
        oldest
    }

    /// Unmaps pages, writes the changed ones back and frees their frames. A page that cannot be written back is kept.
    pub(in crate::pager) fn drop_pages(&mut self, d: &Dispatcher, pages: &[PageRef]) -> Result<usize> {
        let (mapped, _) = self.split_mapped(pages);
        let mut result = self.leave(d, &mapped);
        if result.is_ok() {
            let changed = |at: &&PageRef| self.page_ref(**at).is_some_and(Page::changed);
            let changed: Vec<PageRef> = pages.iter().filter(changed).copied().collect();
            result = self.write_back(d, &changed);
        }
        let mut freed = 0;
        for &(start, number) in pages {
            let Some(region) = self.regions.get_mut(&start) else { continue };
            let (size, keep) = (region.size, region.class());
            let Some(paged) = region.paged_mut() else { continue };
            let Some(page) = paged.pages.get(&number) else { continue };
            if page.mapped || page.changed() {
                if let (Place::Card(_), false) = (page.place, page.spoiled) {
                    self.clock.push((start, number), keep);
                }
                continue;
            }
            paged.cleaned(number);
            if let Some(Page { place: Place::Card(addr), passed, .. }) = paged.pages.remove(&number) {
                if passed {
                    self.passed.left((start, number), self.clock.len());
                }
                d.card.free_frame(addr, size);
                self.resident -= size.bytes();
                self.stats.evicted += 1;
                freed += 1;
            }
        }
        if freed > 0 {
            self.futile = 0;
        }
        result.map(|()| freed)
    }
}
