// SPDX-License-Identifier: Apache-2.0
//! Mappings in the page table in card memory: which addresses they get, and what happens when an entry is damaged.

use crate::dispatch::Dispatcher;
use crate::error::Result;
use crate::pager::state::space::Space;
use crate::pager::state::table::Table;
use crate::protocol::desc::{Event, EventCause, PAGE};

/// Addresses chosen for them begin here, above those of others.
const FIRST: u64 = 1 << 46;

impl Space {
    /// Lets the card use the slot's table if it does not yet, with room for at least `bytes` bytes of pages.
    pub(in crate::pager) fn open_table(&mut self, d: &Dispatcher, bytes: u64) -> Result<()> {
        if self.table.is_none() {
            self.table = Table::enable(d, bytes)?;
        }
        Ok(())
    }

    /// Addresses for `bytes` bytes of pages whose places in the table are free.
    pub(in crate::pager) fn choose_in_table(&self, bytes: u64) -> Option<u64> {
        let span = self.table?.span;
        let mut from = FIRST;
        loop {
            let at = self.first_free(bytes, PAGE, from..FIRST + span)?;
            let Some(end) = self.sharing(at, bytes) else { return Some(at) };
            let behind = end.wrapping_sub(at) & (span - 1);
            from = at + if behind == 0 { span } else { behind };
        }
    }

    /// Whether the places of these pages in the table, if there is one, are free.
    pub(in crate::pager) fn fits_table(&self, va: u64, bytes: u64) -> bool {
        self.table.is_some_and(|table| bytes <= table.span) && self.sharing(va, bytes).is_none()
    }

    /// The end of a mapping in the table that shares a place with these pages.
    fn sharing(&self, va: u64, bytes: u64) -> Option<u64> {
        let (table, pages) = (self.table?, va..va + bytes);
        let ranges = self.regions.iter().filter(|(_, region)| region.table);
        let mut ranges = ranges.map(|(&start, region)| start..start + region.bytes());
        ranges.find(|range| table.shared(&pages, range)).map(|range| range.end)
    }

    /// Of a fault that is being served: whether the entry of its page is damaged. It is written anew, like that of any page that faults; what
    /// it said of the page is lost.
    pub(in crate::pager) fn note_damage(&mut self, fault: &Event) {
        if fault.cause == EventCause::Table {
            tracing::error!(fault.va, "an entry of the page table in card memory is damaged");
            self.stats.damaged += 1;
        }
    }
}
