// SPDX-License-Identifier: Apache-2.0
//! Host library of Viaduct: cards, slots, ports, endpoints, mappings.
//!
//! A [`Card`] is opened on any PCI function; a [`Slot`] of it is claimed and an app loaded into it. Then a [`StreamJob`] sends
//! files through the app's streams, a [`LaneJob`] many files at once through its lanes, or a [`MemoryJob`] lets the app work on files mapped into its address space
//! ([`Slot::map`]).
//!
//! A [`Function`] connects one of the card's virtio devices to the board or to an app, a [`Disk`] makes a file the store of its block
//! device.
//!
//! No thread runs in the background: a thread that waits on a slot also serves its faults. No wait is without limit, see
//! [`Timeouts`].
#![deny(missing_docs)]

mod backing;
mod card;
pub mod desc;
mod disk;
mod dispatch;
mod dma;
mod endpoint;
mod error;
mod features;
mod flow;
mod function;
mod lanes;
mod mapping;
mod memory;
mod memory_job;
mod pager;
pub mod regs;
pub mod ring;
mod slot;
mod stream;
mod window;

pub use backing::{SharedBytes, Source};
pub use card::{Card, CardInfo, Timeouts, Tlb};
pub use desc::Prot;
pub use disk::{Disk, SECTOR, Through};
pub use dispatch::Tag;
pub use dma::{DmaArena, DmaBuffer};
pub use endpoint::Endpoint;
pub use error::{Error, Result};
pub use features::{FeatureChange, Features};
pub use flow::Stream;
pub use function::{Attachment, Function, FunctionKind, FunctionStatus};
pub use lanes::LaneJob;
pub use mapping::{MapOptions, Mapping};
pub use memory_job::{MemoryJob, MemoryRange, MemoryReport};
pub use pager::{Denied, PagerStats};
pub use slot::{Register, Slot, SlotCounters, SlotStatus};
pub use stream::{JobReport, OutLength, Progress, StreamJob};
