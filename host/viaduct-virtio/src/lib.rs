// SPDX-License-Identifier: Apache-2.0
//! A virtio driver in user space, over any [`viaduct_pci::PciFunction`].
//!
//! [`Device`] finds the registers through the function's capabilities, negotiates features and sets up queues; a
//! [`Queue`] is the driver's side of a split or packed ring (VIRTIO 1.3, 2.7 and 2.8) with every option of the card's
//! engine. It measures the card without an operating system in between, and tests the queue engine as an independent
//! implementation. Programs inside a guest use the guest's own drivers.
#![deny(missing_docs)]

mod arena;
mod device;
pub mod net;
mod packed;
mod queue;
mod ring;
mod split;
mod statistics;

pub use arena::Arena;
pub use device::{Device, VENDOR};
pub use queue::Queue;
pub use ring::{Buffer, QueueOptions, Used};
pub use statistics::{Stage, Statistics};

/// Numbers of the feature bits common to all types of devices (VIRTIO 1.3, 6).
pub mod feature {
    /// Descriptors may be in an indirect table.
    pub const INDIRECT_DESC: u32 = 28;
    /// Interrupts and notifications are requested by index.
    pub const EVENT_IDX: u32 = 29;
    /// The device follows version 1 of the specification.
    pub const VERSION_1: u32 = 32;
    /// The device accesses memory through the platform's translation.
    pub const ACCESS_PLATFORM: u32 = 33;
    /// Packed rings.
    pub const RING_PACKED: u32 = 34;
    /// Buffers are used in the order they were made available.
    pub const IN_ORDER: u32 = 35;
    /// Memory is ordered by the platform's rules, not those of a CPU.
    pub const ORDER_PLATFORM: u32 = 36;
    /// Notifications carry the available index.
    pub const NOTIFICATION_DATA: u32 = 38;
    /// Queues can be reset one at a time.
    pub const RING_RESET: u32 = 40;
}

/// Why a device could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VirtioError {
    /// The function failed.
    #[error(transparent)]
    Pci(#[from] viaduct_pci::PciError),
    /// It is not a modern virtio device, or violates the specification.
    #[error("not a virtio device this driver can use: {0}")]
    Device(String),
    /// The device refused the requested features.
    #[error("the device refuses features {0:#x}")]
    Features(u64),
    /// The device is in an error state, and needs a reset.
    #[error("the device needs a reset")]
    NeedsReset,
    /// An argument is invalid.
    #[error("{0}")]
    Argument(String),
    /// The device returned a buffer that it does not own.
    #[error("queue {queue}: the device used buffer {id}, which it was not given")]
    BadUsed {
        /// The queue.
        queue: u16,
        /// The id that the device wrote.
        id: u32,
    },
}

/// Result of an operation on a virtio device.
pub type Result<T> = std::result::Result<T, VirtioError>;
