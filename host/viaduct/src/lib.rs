// SPDX-License-Identifier: Apache-2.0
//! Host library of Viaduct: cards, slots, ports, endpoints, mappings.
//!
//! A [`Card`] is opened on any PCI function; a [`Slot`] of it is claimed and an app loaded into it. Then a [`StreamJob`] sends
//! files through the app's streams, a [`LaneJob`] many files through its lanes, or a [`MemoryJob`] lets the app work on files mapped into its address space
//! ([`Slot::map`]).
//!
//! A [`Function`] connects one of the card's virtio devices to the board or to an app, a [`Disk`] makes a file the store of its block
//! device.
//!
//! No thread runs in the background unless [`Slot::begin`] or [`Pending::spawn`] asks for it, or a pipe or socket is mapped
//! ([`Source::stream`]), which one reads, or pages of a file come from a disk or go to one, which up to eight of a slot wait for: a thread that waits on
//! a slot also serves its faults. No wait is without limit, see [`Timeouts`], but for a disk that does not answer.
#![deny(missing_docs)]

mod backing;
mod card;
mod dispatch;
mod error;
mod function;
mod job;
mod pager;
mod protocol;
mod slot;

pub use backing::feed::StreamState;
pub use backing::{Device, SharedBytes, Source};
pub use card::dma::{DmaArena, DmaBuffer};
pub use card::observer::{Observed, Observer};
pub use card::{
    Card, CardBuffer, CardInfo, FunctionKind, HostShare, HostUser, Measured, Placement, Policy, Port, Rate,
    Route, RouteState, Schedule, Sharing, SlotCounters, SystemMonitor, Timeouts, Tlb,
};
pub use dispatch::Tag;
pub use error::{Error, Result};
pub use function::{Attachment, Disk, FeatureChange, Features, Function, FunctionStatus, SECTOR, Through};
pub use job::{
    Endpoint, JobReport, LaneJob, MemoryJob, MemoryRange, MemoryReport, OutLength, Progress, Stream,
    StreamJob,
};
pub use pager::{Advice, Denied, PagerStats};
pub use protocol::desc::Prot;
pub use protocol::{desc, regs, ring};
pub use slot::copy::Rows;
pub use slot::mapping::{MapOptions, Mapping, Operation, SyncMode};

pub use slot::several::{Awaited, wait_for_one};
pub use slot::worker::Pending;
pub use slot::{Register, Slot, SlotStatus};
