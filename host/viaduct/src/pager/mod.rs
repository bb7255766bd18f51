// SPDX-License-Identifier: Apache-2.0
//! The pager: the address space of a slot, its virtual pages, their locations, and the handling of page faults.
//!
//! The card's TLBs, and the page table in card memory behind them, are a cache of the page table kept here. A page can be
//! resident (it has a frame) without being mapped (in the card's TLBs): then a miss only maps it again. The card's status of a
//! page (accessed, dirty) is returned whenever its translation leaves the TLBs, and is kept here.
//!
//! A layer uses those below it:
//!
//! | file | |
//! |---|---|
//! | `mappings`, `sync`, `serve` | mappings come and go; operations on ranges; faults are taken in batches |
//! | `parked`, `sent` | mappings of streams: accesses that wait; pages that go to a stream |
//! | `carry` | frames, copies and translations of a batch of faults |
//! | `reads` | what is read for them, at once or in the background |
//! | `sizes` | blocks of a mapping change between pages of 4 KiB and of 2 MiB |
//! | `plan`, `ahead` | what a batch of faults takes; how far to read ahead |
//! | `frames`, `retire`, `overflow` | frames for pages; eviction ahead of need; pages that stay in host memory |
//! | `replace`, `clock` | which pages give their frames up |
//! | `write_back` | changed pages, to their files |
//! | `in_table` | mappings in the page table in card memory |
//! | `visit` | asks the card about pages, takes them from it |
//! | `flight`, `translate` | batches under way; their commands, and what completions say |
//! | `space`, `region`, `load`, `batch`, `staging`, `budget`, `advice`, `stats` | the state |
//! | `table` | the page table in card memory |

mod advice;
mod ahead;
mod batch;
mod budget;
mod carry;
mod clock;
mod flight;
mod frames;
mod in_table;
mod load;
mod mappings;
mod overflow;
mod parked;
mod plan;
mod reads;
mod region;
mod replace;
mod retire;
mod sent;
mod serve;
mod sizes;
mod space;
mod staging;
mod stats;
mod sync;
mod table;
mod translate;
mod visit;
mod write_back;

pub use advice::Advice;
pub(crate) use mappings::{At, Wanted};
pub(crate) use space::Space;
pub use stats::{Denied, PagerStats};
pub(crate) use sync::{Then, Writing};
pub(crate) use table::Table;
