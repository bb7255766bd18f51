// SPDX-License-Identifier: Apache-2.0
//! Regions of an address space, and their pages.

use std::collections::BTreeMap;

use crate::card::dma::DmaBuffer;
use crate::card::memory::FrameSize;
use crate::error::Error;
use crate::pager::ahead::Ahead;
use crate::protocol::desc::{Place, Prot};
use crate::slot::backing::Source;

/// Commands submitted together.
pub(super) const BATCH: usize = 64;

pub(super) struct Region {
    pub(super) len: u64,
    pub(super) prot: Prot,
    pub(super) size: FrameSize,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    /// Pages that are always resident, contiguous from a location.
    Window(Place),
    Paged(Paged),
}

pub(super) struct Paged {
    pub(super) source: Source,
    pub(super) pages: BTreeMap<u64, Page>, // by number
    /// Host memory that serves as frames, for mappings placed there.
    pub(super) host: Option<DmaBuffer>,
    pub(super) ahead: Ahead,
    pub(super) failures: Vec<Failure>,
}

/// An error with pages of a region, reported by the next `sync` or `unmap`.
pub(super) struct Failure {
    pub(super) error: Error,
    /// The pages are kept and will be written again: only the latest attempt counts.
    pub(super) again: bool,
}

pub(super) struct Page {
    pub(super) place: Place,
    /// It may be in the card's TLBs.
    pub(super) mapped: bool,
    /// Card time at which the card reported that it is there; 0 unless it is.
    pub(super) since: u64,
    pub(super) dirty: bool,
    pub(super) accessed: bool,
    /// Its frame may hold bytes of another owner: it is not used, and nothing is written back from it.
    pub(super) spoiled: bool,
}

impl Page {
    /// A page that is loaded, and not in the card's TLBs yet.
    pub(super) fn loaded(place: Place) -> Self {
        Self { place, mapped: false, since: 0, dirty: false, accessed: false, spoiled: false }
    }

    /// Whether its bytes must be written back.
    pub(super) fn changed(&self) -> bool {
        self.dirty && !self.spoiled
    }
}

/// A page by its region's address and its number.
pub(super) type PageRef = (u64, u64);

impl Region {
    pub(super) fn page_bytes(&self) -> u64 {
        self.size.bytes()
    }

    pub(super) fn huge(&self) -> bool {
        self.size == FrameSize::Huge
    }

    pub(super) fn page_count(&self) -> u64 {
        self.len.div_ceil(self.page_bytes())
    }

    /// The pages of a window that are mapped together, from `number` on.
    pub(super) fn window(&self, number: u64) -> Vec<(u64, Place)> {
        let Kind::Window(place) = self.kind else { return Vec::new() };
        let end = self.page_count().min(number + BATCH as u64);
        (number..end).map(|n| (n, place.offset(n * self.page_bytes()))).collect()
    }

    /// Bytes of page `number` that belong to the mapping.
    pub(super) fn valid(&self, number: u64) -> u64 {
        (self.len - number * self.page_bytes()).min(self.page_bytes())
    }
}
