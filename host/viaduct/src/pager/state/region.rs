// SPDX-License-Identifier: Apache-2.0
//! Regions of an address space, and their pages.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use crate::backing::Source;
use crate::card::Placement;
use crate::card::dma::DmaBuffer;
use crate::card::memory::FrameSize;
use crate::card::sync::lock;
use crate::error::Error;
use crate::pager::state::advice::{Keep, Locality};
use crate::pager::state::ahead::Ahead;
use crate::protocol::desc::{Place, Prot};

/// Commands submitted together.
pub(in crate::pager) const BATCH: usize = 64;
/// Errors kept for the user of a region.
const KEEP: usize = 64;

/// Neighbouring pages of one kind.
pub(in crate::pager) struct Region {
    pub(in crate::pager) len: u64,
    pub(in crate::pager) prot: Prot,
    pub(in crate::pager) size: FrameSize,
    pub(in crate::pager) kind: Kind,
    /// Its pages are in the page table in card memory: the card reports nothing when it displaces one from its TLBs.
    pub(in crate::pager) table: bool,
}

pub(in crate::pager) enum Kind {
    /// Pages that are always resident, contiguous from a location.
    Window(Place),
    Paged(Box<Paged>),
}

/// Pages that are loaded when they are needed.
pub(in crate::pager) struct Paged {
    pub(in crate::pager) source: Arc<Source>,
    /// Byte of the source at which the first page begins.
    pub(in crate::pager) first: u64,
    /// Bytes that the source had, as far as is known: pages beyond its end are never loaded, and nothing is written there.
    pub(in crate::pager) end: u64,
    /// The mapping it belongs to; of one that was split, all parts.
    pub(in crate::pager) owner: u64,
    /// What the parts of a mapping share whose page sizes follow use.
    pub(in crate::pager) auto: Option<Arc<Auto>>,
    pub(in crate::pager) pages: BTreeMap<u64, Page>, // by number
    /// All pages are in host memory, as the mapping asks for; never in card memory.
    pub(in crate::pager) on_host: bool,
    /// Host memory that serves as frames: of mappings placed there, and of pages accessed in random order for which card memory had no room.
    pub(in crate::pager) host: Option<HostFrames>,
    pub(in crate::pager) placement: Placement,
    pub(in crate::pager) locality: Locality,
    pub(in crate::pager) keep: Keep,
    pub(in crate::pager) ahead: Ahead,
    /// The page that was loaded last had to wait for a disk.
    pub(in crate::pager) waits: bool,
    /// If the card may write only pages that a write has asked for: the numbers of those that may have been changed since they were last
    /// written back. Others were certainly not.
    pub(in crate::pager) unclean: Option<BTreeSet<u64>>,
    /// In such a mapping: the page after those that got the right to be written last, and how many did in order.
    pub(in crate::pager) rewritten: (u64, u64),
    pub(in crate::pager) failures: Vec<Failure>,
}

/// What the parts of a mapping share whose page sizes follow use.
pub(in crate::pager) struct Auto {
    /// Bytes of the mapping.
    pub(in crate::pager) bytes: u64,
    /// The pages of 2 MiB that a fault has loaded last.
    run: Mutex<Range<u64>>,
}

impl Auto {
    pub(in crate::pager) fn new(va: u64, bytes: u64) -> Self {
        Self { bytes, run: Mutex::new(va..va) }
    }

    /// A fault loads the pages of 2 MiB at these addresses.
    pub(in crate::pager) fn loads(&self, run: Range<u64>) {
        *lock(&self.run) = run;
    }

    /// Whether the block at this address is the one after those, or one of them.
    pub(in crate::pager) fn follows(&self, block: u64) -> bool {
        let run = lock(&self.run);
        (run.start..=run.end).contains(&block)
    }
}

/// Host memory for all pages of a region.
pub(in crate::pager) struct HostFrames {
    pub(in crate::pager) buffer: Arc<DmaBuffer>,
    /// Where the first page is in it.
    pub(in crate::pager) offset: u64,
}

/// An error with pages of a region, reported by the next `sync` or `unmap`.
pub(in crate::pager) struct Failure {
    pub(in crate::pager) error: Error,
    /// The pages are kept and will be written again: only the latest attempt counts.
    pub(in crate::pager) again: bool,
}

pub(in crate::pager) struct Page {
    pub(in crate::pager) place: Place,
    /// It may be in the card's TLBs.
    pub(in crate::pager) mapped: bool,
    /// Commands that the slot's MMU has carried out up to its translation, which the card has reported to be there; 0 unless it is.
    pub(in crate::pager) since: u64,
    /// Card time of that report.
    pub(in crate::pager) mapped_at: u64,
    pub(in crate::pager) dirty: bool,
    pub(in crate::pager) accessed: bool,
    /// It had been used when it was looked at for eviction.
    pub(in crate::pager) used: bool,
    /// When it was looked at for last it was not used any more, and changed.
    pub(in crate::pager) rewritten: bool,
    /// It leaves, and was found used for the first time.
    pub(in crate::pager) passed: bool,
    /// Its number in the order in which pages were loaded into frames.
    pub(in crate::pager) turn: u64,
    /// Its frame may hold bytes of another owner: it is not used, and nothing is written back from it.
    pub(in crate::pager) spoiled: bool,
}

/// Use of a page, as far as a look at it tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pager) enum Use {
    /// It was used since it was looked at before.
    Current,
    /// It was used at some time since it was loaded.
    Some,
    /// It was loaded ahead of its first use, and not too long ago.
    Awaited,
    /// It was not used since it was looked at before, or not at all for too long.
    Over,
}

/// A page by its region's address and its number.
pub(in crate::pager) type PageRef = (u64, u64);

impl Page {
    /// A page that is loaded, and not in the card's TLBs yet.
    pub(in crate::pager) fn loaded(place: Place) -> Self {
        Self {
            place,
            mapped: false,
            since: 0,
            mapped_at: 0,
            dirty: false,
            accessed: false,
            used: false,
            rewritten: false,
            passed: false,
            turn: 0,
            spoiled: false,
        }
    }

    /// What the card's bit says when it is looked at for eviction. `loaded` pages were loaded so far, and there are so many with frames.
    pub(in crate::pager) fn look(&mut self, loaded: u64, frames: usize) -> Use {
        let (accessed, used) = (std::mem::take(&mut self.accessed), self.used);
        self.used |= accessed;
        match (accessed, used) {
            (true, true) => Use::Current,
            (true, false) => Use::Some,
            (false, false) if self.is_awaited(loaded, frames) => Use::Awaited,
            (false, _) => Use::Over,
        }
    }

    /// Whether it would still be there if the oldest page always went.
    pub(in crate::pager) fn is_young(&self, loaded: u64, frames: usize) -> bool {
        loaded - self.turn < frames as u64
    }

    /// Whether it waits for its first use, and does not for too long: a fourth longer than it would if the oldest always went. An app that writes
    /// as much as it reads comes to each page just when that would be the oldest.
    pub(in crate::pager) fn is_awaited(&self, loaded: u64, frames: usize) -> bool {
        self.is_unused() && self.is_young(loaded, frames + frames / 4)
    }

    /// Whether it was not used yet, as far as is known.
    pub(in crate::pager) fn is_unused(&self) -> bool {
        !self.used && !self.accessed
    }

    /// Whether its bytes must be written back.
    pub(in crate::pager) fn changed(&self) -> bool {
        self.dirty && !self.spoiled
    }
}

impl Paged {
    /// Whether page `number` may be changed as far as is known without the card.
    pub(in crate::pager) fn may_be_unclean(&self, number: u64) -> bool {
        self.unclean.as_ref().is_none_or(|unclean| unclean.contains(&number))
    }

    /// Page `number` is as in the source, and the card cannot write it.
    pub(in crate::pager) fn cleaned(&mut self, number: u64) {
        if let Some(unclean) = &mut self.unclean {
            unclean.remove(&number);
        }
    }

    /// Takes an error to report: bytes that are lost come before others.
    pub(in crate::pager) fn take_failure(&mut self) -> Option<Error> {
        let lost = |failure: &Failure| matches!(failure.error, Error::Lost { .. });
        let at = self.failures.iter().position(lost).unwrap_or(0);
        (at < self.failures.len()).then(|| self.failures.remove(at).error)
    }

    /// Keeps an error for the user. Neighbouring bytes that are lost for one reason are one error, and so is a file that shrinks.
    pub(in crate::pager) fn fail(&mut self, error: Error, again: bool) {
        for failure in self.failures.iter_mut().filter(|failure| failure.again == again) {
            match (&mut failure.error, &error) {
                (Error::FileShrank { .. }, Error::FileShrank { .. }) => return,
                (
                    Error::Lost { start, end, why, os, .. },
                    Error::Lost { start: s, end: e, why: w, os: o, .. },
                ) if (&*why, &*os) == (w, o) && *s <= *end && *start <= *e => {
                    *start = (*start).min(*s);
                    *end = (*end).max(*e);
                    return;
                }
                _ => {}
            }
        }
        if self.failures.len() < KEEP {
            self.failures.push(Failure { error, again });
        }
    }
}

impl Region {
    pub(in crate::pager) fn page_bytes(&self) -> u64 {
        self.size.bytes()
    }

    pub(in crate::pager) fn huge(&self) -> bool {
        self.size == FrameSize::Huge
    }

    pub(in crate::pager) fn page_count(&self) -> u64 {
        self.len.div_ceil(self.page_bytes())
    }

    /// Bytes of whole pages.
    pub(in crate::pager) fn bytes(&self) -> u64 {
        self.page_count() * self.page_bytes()
    }

    pub(in crate::pager) fn paged(&self) -> Option<&Paged> {
        match &self.kind {
            Kind::Paged(paged) => Some(paged),
            Kind::Window(_) => None,
        }
    }

    pub(in crate::pager) fn paged_mut(&mut self) -> Option<&mut Paged> {
        match &mut self.kind {
            Kind::Paged(paged) => Some(paged),
            Kind::Window(_) => None,
        }
    }

    /// Whether pages may stay in host memory while card memory is full: they are accessed in random order, and not again and again. The page
    /// table in card memory holds addresses of the card only.
    pub(in crate::pager) fn overflows(&self) -> bool {
        let in_no_order = |p: &Paged| !p.on_host && p.locality == Locality::Random && p.keep != Keep::Long;
        !self.table && self.paged().is_some_and(in_no_order)
    }

    /// The class in which its pages are evicted.
    pub(in crate::pager) fn class(&self) -> Keep {
        if self.overflows() {
            Keep::Overflow
        } else {
            self.paged().map_or(Keep::default(), |paged| paged.keep)
        }
    }

    /// Whether the card may have written page `number` since it was written back last.
    pub(in crate::pager) fn may_be_written(&self, number: u64) -> bool {
        self.prot.write && self.paged().is_none_or(|paged| paged.may_be_unclean(number))
    }

    /// The pages of a window that are mapped together, from `number` on.
    pub(in crate::pager) fn window(&self, number: u64) -> Vec<(u64, Place)> {
        let Kind::Window(place) = self.kind else { return Vec::new() };
        let end = self.page_count().min(number + BATCH as u64);
        (number..end).map(|n| (n, place.offset(n * self.page_bytes()))).collect()
    }

    /// Bytes of page `number` that belong to the mapping.
    pub(in crate::pager) fn valid(&self, number: u64) -> u64 {
        (self.len - number * self.page_bytes()).min(self.page_bytes())
    }

    /// Numbers of the pages that a range of addresses, which overlaps the region at `start`, touches.
    pub(in crate::pager) fn numbers(&self, start: u64, range: &Range<u64>) -> Range<u64> {
        let first = range.start.saturating_sub(start) / self.page_bytes();
        let last = (range.end.min(start + self.bytes()) - start).div_ceil(self.page_bytes());
        first..last
    }

    /// Cuts the pages from `number` on off. There are pages on both sides.
    pub(in crate::pager) fn split_off(&mut self, number: u64) -> Option<Self> {
        let cut = number * self.page_bytes();
        let (len, prot, size, table) = (self.len - cut, self.prot, self.size, self.table);
        let paged = self.paged_mut()?;
        let first = paged.first + cut;
        // Each error stays with its bytes.
        let beyond = |failure: &Failure| matches!(failure.error, Error::Lost { start, .. } if start >= first);
        let (failures, before) = std::mem::take(&mut paged.failures).into_iter().partition(beyond);
        paged.failures = before;
        let pages = paged.pages.split_off(&number);
        let unclean = paged.unclean.as_mut().map(|unclean| unclean.split_off(&number));
        let rest = Paged {
            source: Arc::clone(&paged.source),
            first,
            end: paged.end,
            owner: paged.owner,
            auto: paged.auto.clone(),
            pages: pages.into_iter().map(|(n, page)| (n - number, page)).collect(),
            on_host: paged.on_host,
            host: paged
                .host
                .as_ref()
                .map(|h| HostFrames { buffer: Arc::clone(&h.buffer), offset: h.offset + cut }),
            placement: paged.placement,
            locality: paged.locality,
            keep: paged.keep,
            ahead: Ahead::new(),
            waits: paged.waits,
            unclean: unclean.map(|unclean| unclean.into_iter().map(|n| n - number).collect()),
            rewritten: (0, 0),
            failures,
        };
        self.len = cut;
        Some(Self { len, prot, size, kind: Kind::Paged(Box::new(rest)), table })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_waits_for_its_first_use_a_fourth_longer_than_it_would_stay_in_turn() {
        let mut page = Page { turn: 10, ..Page::loaded(Place::Card(0)) };
        assert_eq!(page.look(10, 8), Use::Awaited);
        assert_eq!(page.look(19, 8), Use::Awaited);
        assert_eq!(page.look(20, 8), Use::Over);
    }

    #[test]
    fn the_first_look_at_a_page_does_not_tell_when_it_was_used() {
        let mut page = Page { turn: 10, ..Page::loaded(Place::Card(0)) };
        page.accessed = true;
        assert_eq!(page.look(10, 8), Use::Some);
        assert_eq!(page.look(10, 8), Use::Over);
        page.accessed = true;
        assert_eq!(page.look(10, 8), Use::Current);
    }
}
