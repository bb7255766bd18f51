// SPDX-License-Identifier: Apache-2.0
//! The page table of a slot in card memory (`rtl/mmu/README.md`).
//!
//! The card writes and clears its entries by the commands of pages ([`Command::in_table`]). It is direct mapped: pages whose numbers are equal
//! modulo its size share a place, so the mappings in it are those whose pages have places of their own.

use std::ops::Range;

use crate::card::Card;
use crate::dispatch::Dispatcher;
use crate::error::Result;
use crate::protocol::desc::{Command, PAGE, TABLE_ENTRY, TABLE_LOG2};
use crate::protocol::regs::*;

/// Bytes cleared by one command.
const STEP: u64 = 1 << 30;

/// The table of a slot, which is in use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    /// Bytes of as many pages as it has entries.
    pub(in crate::pager) span: u64,
}

impl Table {
    /// Clears a table with entries for `bytes` bytes of pages and lets the card use it. `None` if the card has none as large.
    pub(in crate::pager) fn enable(d: &Dispatcher, bytes: u64) -> Result<Option<Self>> {
        let log2 = (bytes / PAGE).next_power_of_two().ilog2().max(TABLE_LOG2.start);
        let len = TABLE_ENTRY << log2;
        let Some(place) = d.card.tables().place(d.slot, len) else { return Ok(None) };
        d.card.keep_tables()?;
        // Before this, what is there may look like entries.
        let fills: Vec<_> = (0..len)
            .step_by(STEP as usize)
            .map(|at| Command::fill(place + at, (len - at).min(STEP) as u32))
            .collect();
        for done in d.run("clearing the page table", &fills)? {
            d.check("clearing the page table", &done)?;
        }
        d.card.write_slot(d.slot, VIA_SLOT_TABLE_BASE, (place >> 20) as u32)?;
        d.card.write_slot(d.slot, VIA_SLOT_TABLE_CFG, VIA_SLOT_TABLE_CFG_ENABLE_MASK | log2)?;
        Ok(Some(Self { span: PAGE << log2 }))
    }

    /// The card looks up nothing in a slot's table any more. Nothing of the slot may be in flight.
    pub fn disable(card: &Card, slot: usize) -> Result<()> {
        card.write_slot(slot, VIA_SLOT_TABLE_CFG, 0)
    }

    /// Whether pages of two ranges share a place.
    pub(in crate::pager) fn shared(self, a: &Range<u64>, b: &Range<u64>) -> bool {
        let ahead = |from: u64, to: u64| to.wrapping_sub(from) & (self.span - 1);
        ahead(a.start, b.start) < a.end - a.start || ahead(b.start, a.start) < b.end - b.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_share_a_place_if_two_of_their_pages_do(a in 0u64..100, b in 0u64..100, n in 1u64..17, m in 1u64..17) {
            let table = Table { span: 16 * PAGE };
            let places = |first: u64, count| (first..first + count).map(|page| page % 16).collect::<Vec<_>>();
            let both = places(a, n).iter().any(|place| places(b, m).contains(place));
            let range = |first: u64, count: u64| first * PAGE..(first + count) * PAGE;
            prop_assert_eq!(table.shared(&range(a, n), &range(b, m)), both);
        }
    }
}
