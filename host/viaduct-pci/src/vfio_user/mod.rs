// SPDX-License-Identifier: Apache-2.0
//! The vfio-user protocol, version 0.1: a PCI function served to, or reached in, another process over a Unix socket.
//!
//! [`Server`] offers any [`PciFunction`](crate::PciFunction) to QEMU or to a [`Client`]; `Client` is a `PciFunction`.
//! Memory for DMA is passed as descriptors, so the card reaches it without a copy and without a message. Interrupts are
//! eventfds, one per MSI-X vector.

mod client;
mod files;
mod irq;
mod link;
mod server;
mod wire;

pub use client::{Client, ClientOptions};
pub use server::{Server, ServerOptions};
