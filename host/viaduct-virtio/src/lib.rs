// SPDX-License-Identifier: Apache-2.0
//! A virtio driver in user space: what an operating system's driver does, over any [`viaduct_pci::PciFunction`].
//!
//! [`Device`] finds the registers through the function's capabilities, negotiates features and sets queues up; a
//! [`Queue`] is the driver's side of a split or packed ring (VIRTIO 1.3, 2.7 and 2.8) with every option the card's engine
//! has. It measures the card without an operating system in between, and it is the independent half of the tests of the
//! queue engine: it shares no code with it. Programs inside a guest use the guest's own drivers.
#![deny(missing_docs)]

mod arena;
mod device;
pub mod net;
mod packed;
mod queue;
mod split;
mod statistics;

pub use arena::Arena;
pub use device::{Device, VENDOR};
pub use queue::{Buffer, Queue, QueueOptions, Used};
pub use statistics::{Stage, Statistics};

/// Numbers of the feature bits that do not belong to one kind of device (VIRTIO 1.3, 6).
pub mod feature {
    /// Descriptors may lie in a table of their own.
    pub const INDIRECT_DESC: u32 = 28;
    /// Interrupts and notifications are asked for by index.
    pub const EVENT_IDX: u32 = 29;
    /// The device follows version 1 of the specification.
    pub const VERSION_1: u32 = 32;
    /// The device reaches memory through the platform's translation.
    pub const ACCESS_PLATFORM: u32 = 33;
    /// Packed rings.
    pub const RING_PACKED: u32 = 34;
    /// Buffers are used in the order they were made available.
    pub const IN_ORDER: u32 = 35;
    /// Memory is ordered as the platform orders it, not as a CPU does.
    pub const ORDER_PLATFORM: u32 = 36;
    /// Notifications say how far the ring has been filled.
    pub const NOTIFICATION_DATA: u32 = 38;
    /// Queues can be reset one at a time.
    pub const RING_RESET: u32 = 40;
}

/// Why a device could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VirtioError {
    /// The function did not answer.
    #[error(transparent)]
    Pci(#[from] viaduct_pci::PciError),
    /// It is no modern virtio device, or breaks the specification.
    #[error("not a virtio device this driver can use: {0}")]
    Device(String),
    /// The device refused the features it was asked for.
    #[error("the device refuses features {0:#x}")]
    Features(u64),
    /// The device says that it is in an error state, and needs a reset.
    #[error("the device needs a reset")]
    NeedsReset,
    /// The caller asked for something that does not fit.
    #[error("{0}")]
    Argument(String),
    /// The device gave back a buffer that it does not hold.
    #[error("queue {queue}: the device used buffer {id}, which it was not given")]
    BadUsed {
        /// The queue.
        queue: u16,
        /// What the device wrote.
        id: u32,
    },
}

/// Result of an operation on a virtio device.
pub type Result<T> = std::result::Result<T, VirtioError>;
