// SPDX-License-Identifier: Apache-2.0
//! The vfio-user protocol, version 0.1: serves a PCI function to another process, or uses one there, over a Unix socket.
//!
//! [`Server`] offers any [`PciFunction`](crate::PciFunction) to QEMU or to a [`Client`]; `Client` is a `PciFunction`.
//! Memory for DMA is passed as descriptors, so the card accesses it without copies or messages. Interrupts are
//! eventfds, one per MSI-X vector.

mod client;
mod files;
mod irq;
mod link;
mod lobby;
mod refusal;
mod server;
mod wire;

pub use client::{Client, ClientOptions};
pub use server::{Server, ServerOptions};
