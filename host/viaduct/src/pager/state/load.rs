// SPDX-License-Identifier: Apache-2.0
//! Runs of pages to be loaded, and those whose bytes are being read.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Weak};

use crate::backing::threads::Threads;
use crate::dispatch::Dispatcher;
use crate::pager::state::ahead::Ahead;
use crate::pager::state::batch::Numbered;
use crate::pager::state::region::{PageRef, Paged};
use crate::pager::state::staging::Staged;
use crate::protocol::desc::Place;

/// A run of pages to load for a fault on the first.
pub(in crate::pager) struct Load {
    /// None: it is loaded on request, or is a later piece of a run.
    pub(in crate::pager) fault: Option<Numbered>,
    /// It is for a fault, on this piece of the run or an earlier one.
    pub(in crate::pager) asked: bool,
    pub(in crate::pager) start: u64,
    pub(in crate::pager) number: u64,
    pub(in crate::pager) count: u64,
    /// The staging memory for its bytes, one part for each piece.
    pub(in crate::pager) staged: Vec<Staged>,
    pub(in crate::pager) places: Vec<Place>,
    /// Its pages are to be written.
    pub(in crate::pager) write: bool,
    /// Faults on the other pages.
    pub(in crate::pager) others: Vec<Numbered>,
    /// So many pages behind it are needed next.
    pub(in crate::pager) next: u64,
    /// Read-ahead of the mapping before this.
    pub(in crate::pager) before: Arc<Ahead>,
}

/// Bytes that are read together, unless a page has more: they go to the card as soon as they have come, while the rest of the run is being
/// read.
const PIECE: u64 = 32 << 10;

/// The pages of a piece, if they have so many bytes each.
pub(in crate::pager) fn piece(page_bytes: u64) -> u64 {
    (PIECE / page_bytes).max(1)
}

impl Load {
    /// No pages, of the region at `start`.
    pub(in crate::pager) fn new(start: u64, before: Arc<Ahead>) -> Self {
        let (staged, places, others) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            fault: None,
            asked: false,
            start,
            number: 0,
            count: 0,
            staged,
            places,
            write: false,
            others,
            next: 0,
            before,
        }
    }

    /// Its faults.
    pub(in crate::pager) fn faults(&self) -> impl Iterator<Item = &Numbered> {
        self.fault.iter().chain(&self.others)
    }

    /// The pages that have a location, in pieces, each with its faults; those on other pages are with the last one.
    pub(in crate::pager) fn pieces(mut self, page_bytes: u64) -> Vec<Self> {
        let (each, first) = (piece(page_bytes), self.number);
        let mut staged = self.staged.into_iter();
        let mut pieces = Vec::new();
        for (nth, places) in self.places.chunks(each as usize).enumerate() {
            pieces.push(Self {
                fault: self.fault.take(),
                asked: self.asked,
                number: first + nth as u64 * each,
                count: places.len() as u64,
                staged: staged.by_ref().take(1).collect(),
                places: places.to_vec(),
                write: self.write,
                ..Self::new(self.start, Arc::clone(&self.before))
            });
        }
        let last = pieces.len() - 1;
        pieces[last].staged.extend(staged);
        pieces[last].next = self.next;
        for other in self.others {
            let number = (other.1.va - self.start) / page_bytes;
            pieces[last.min(((number - first) / each) as usize)].others.push(other);
        }
        pieces
    }
}

/// Loads whose bytes are being read.
pub(in crate::pager) struct Reads {
    pub(in crate::pager) threads: Threads,
    pub(in crate::pager) rings: Weak<Dispatcher>,
    /// Reads that were begun.
    pub(in crate::pager) count: u64,
    pub(in crate::pager) loads: BTreeMap<u64, Load>,
    /// Which read brings a page.
    pub(in crate::pager) pages: BTreeMap<PageRef, u64>,
    /// Reads that were given up and have not ended, and the bus addresses in frames of host memory that they may yet write.
    pub(in crate::pager) late: BTreeMap<u64, Range<u64>>,
}

impl Reads {
    pub(in crate::pager) fn new(rings: Weak<Dispatcher>) -> Self {
        let (loads, pages, late) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { threads: Threads::default(), rings, count: 0, loads, pages, late }
    }

    pub(in crate::pager) fn is_empty(&self) -> bool {
        self.loads.is_empty()
    }

    /// Pages that are being read.
    pub(in crate::pager) fn pages(&self) -> usize {
        self.pages.len()
    }

    pub(in crate::pager) fn has(&self, at: PageRef) -> bool {
        self.pages.contains_key(&at)
    }

    /// Whether a read that was given up may yet write the frame in host memory of the page that is so many bytes into its region.
    pub(in crate::pager) fn is_late(&self, paged: &Paged, at: u64) -> bool {
        let frame = paged.host.as_ref().map(|host| host.buffer.iova() + host.offset + at);
        frame.is_some_and(|frame| self.late.values().any(|late| late.contains(&frame)))
    }

    /// What is to be loaded, and the page that is coming with it.
    pub(in crate::pager) fn load(&mut self, at: PageRef) -> Option<&mut Load> {
        self.loads.get_mut(self.pages.get(&at)?)
    }
}
