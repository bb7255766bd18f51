// SPDX-License-Identifier: Apache-2.0
//! The pager: the address space of a slot, its virtual pages, their locations, and the handling of page faults.
//!
//! The card's TLBs, and the page table in card memory behind them, are a cache of the page table kept here. A page can be
//! resident (it has a frame) without being mapped (in the card's TLBs): then a miss only maps it again. The card's status of a
//! page (accessed, dirty) is returned whenever its translation leaves the TLBs, and is kept here.
//!
//! A folder uses those below it, and a module the ones below it of its folder:
//!
//! | folder | module | |
//! |---|---|---|
//! | `ranges` | `mappings`, `sync` | mappings come and go; operations on ranges of addresses |
//! | `faults` | `serve` | faults are taken in batches |
//! | | `sizes` | blocks of a mapping change between pages of 4 KiB and of 2 MiB |
//! | | `sent` | pages that go to a stream |
//! | | `carry` | frames, copies and translations of a batch of faults |
//! | | `reads` | what is read for them, at once or in the background |
//! | | `decide` | what each fault takes |
//! | | `rest` | what is left of runs that had no frames |
//! | | `parked` | accesses that wait for a stream |
//! | | `plan` | what a batch of faults takes |
//! | `eviction` | `frames`, `retire`, `overflow` | frames for pages; eviction ahead of need; pages that stay in host memory |
//! | | `replace` | which pages give their frames up |
//! | | `write_back` | changed pages, to their files |
//! | `translation` | `in_table` | mappings in the page table in card memory |
//! | | `visit` | asks the card about pages, takes them from it |
//! | | `flight`, `translate` | batches under way; their commands, and what completions say |
//! | `state` | `space` | the address space, with all that follows |
//! | | `region`, `clock`, `table` | a mapping and its pages; their order of eviction; the page table in card memory |
//! | | `load`, `batch`, `staging` | reads and batches under way, and memory for their data |
//! | | `passed` | pages that left when they were found used for the first time |
//! | | `ahead`, `advice` | how far to read ahead; what programs say of their accesses |
//! | | `budget`, `stats` | host memory that may be used; counters |

mod eviction;
mod faults;
mod ranges;
mod state;
mod translation;

pub(crate) use ranges::mappings::{At, Wanted};
pub(crate) use ranges::sync::{Then, Writing};
pub use state::advice::Advice;
pub(crate) use state::space::Space;
pub use state::stats::{Denied, PagerStats};
pub(crate) use state::table::Table;
