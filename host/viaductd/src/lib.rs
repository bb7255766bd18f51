// SPDX-License-Identifier: Apache-2.0
//! Several programs on one card: `viaductd` owns the card, and programs use slots of it over a Unix socket. See docs/daemon.md.
//!
//! A connection is a tenant: [`client::Client`] connects, [`client::Slot`] has the methods of the local slot. [`Daemon`] serves a card;
//! the program `viaductd` is that with options.
#![deny(missing_docs)]

mod account;
mod book;
pub mod client;
mod server;
mod tenant;
pub mod wire;

pub use account::{Config, Quotas};
pub use server::Daemon;
pub use tenant::Apps;
