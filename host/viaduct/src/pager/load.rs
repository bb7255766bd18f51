// SPDX-License-Identifier: Apache-2.0
//! Runs of pages to be loaded, and those whose bytes are being read.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Weak;

use crate::backing::reader::Reader;
use crate::dispatch::Dispatcher;
use crate::pager::ahead::Ahead;
use crate::pager::batch::Numbered;
use crate::pager::region::{PageRef, Paged};
use crate::pager::staging::Staged;
use crate::protocol::desc::Place;

/// A run of pages to load for a fault on the first.
pub(super) struct Load {
    /// None: it is loaded on request, or is a later piece of a run.
    pub(super) fault: Option<Numbered>,
    /// It is for a fault, on this piece of the run or an earlier one.
    pub(super) asked: bool,
    pub(super) start: u64,
    pub(super) number: u64,
    pub(super) count: u64,
    /// The staging memory for its bytes, one part for each piece.
    pub(super) staged: Vec<Staged>,
    pub(super) places: Vec<Place>,
    /// Its pages are to be written.
    pub(super) write: bool,
    /// Faults on the other pages.
    pub(super) others: Vec<Numbered>,
    /// So many pages behind it are needed next.
    pub(super) next: u64,
    /// Read-ahead of the mapping before this.
    pub(super) before: Ahead,
}

/// Bytes that are read together, unless a page has more: they go to the card as soon as they have come, while the rest of the run is being
/// read.
const PIECE: u64 = 32 << 10;

/// The pages of a piece, if they have so many bytes each.
pub(super) fn piece(page_bytes: u64) -> u64 {
    (PIECE / page_bytes).max(1)
}

impl Load {
    /// No pages, of the region at `start`.
    pub(super) fn new(start: u64, before: Ahead) -> Self {
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
    pub(super) fn faults(&self) -> impl Iterator<Item = &Numbered> {
        self.fault.iter().chain(&self.others)
    }

    /// The pages that have a location, in pieces, each with its faults; those on other pages are with the last one.
    pub(super) fn pieces(mut self, page_bytes: u64) -> Vec<Self> {
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
                ..Self::new(self.start, self.before)
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
pub(super) struct Reads {
    pub(super) reader: Reader,
    pub(super) rings: Weak<Dispatcher>,
    /// Reads that were begun.
    pub(super) count: u64,
    pub(super) loads: BTreeMap<u64, Load>,
    /// Which read brings a page.
    pub(super) pages: BTreeMap<PageRef, u64>,
    /// Reads that were given up and have not ended, and the bus addresses in frames of host memory that they may yet write.
    pub(super) late: BTreeMap<u64, Range<u64>>,
}

impl Reads {
    pub(super) fn new(rings: Weak<Dispatcher>) -> Self {
        let (loads, pages, late) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { reader: Reader::default(), rings, count: 0, loads, pages, late }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.loads.is_empty()
    }

    /// Pages that are being read.
    pub(super) fn pages(&self) -> usize {
        self.pages.len()
    }

    pub(super) fn has(&self, at: PageRef) -> bool {
        self.pages.contains_key(&at)
    }

    /// Whether a read that was given up may yet write the frame in host memory of the page that is so many bytes into its region.
    pub(super) fn is_late(&self, paged: &Paged, at: u64) -> bool {
        let frame = paged.host.as_ref().map(|host| host.buffer.iova() + host.offset + at);
        frame.is_some_and(|frame| self.late.values().any(|late| late.contains(&frame)))
    }

    /// What is to be loaded, and the page that is coming with it.
    pub(super) fn load(&mut self, at: PageRef) -> Option<&mut Load> {
        self.loads.get_mut(self.pages.get(&at)?)
    }
}
