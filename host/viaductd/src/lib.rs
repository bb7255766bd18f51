// SPDX-License-Identifier: Apache-2.0
//! Several programs on one card: `viaductd` owns the card, and programs use slots of it over a Unix socket. See docs/daemon.md.
//!
//! A connection is a tenant: [`client::Client`] connects, [`client::Slot`] has the methods of the local slot. Or it looks at the card and
//! manages it: [`client::Manager`]. [`Daemon`] serves a card; the program `viaductd` is that with options.
#![deny(missing_docs)]

mod account;
mod book;
pub mod client;
mod manage;
mod open;
mod overview;
mod server;
mod tenant;
mod view;
pub mod wire;

pub use account::{Config, Quotas};
pub use server::Daemon;
pub use tenant::Apps;
pub use view::{Moved, Occupant, RouteView, SlotView, View};
