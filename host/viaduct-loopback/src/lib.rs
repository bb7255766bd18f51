// SPDX-License-Identifier: Apache-2.0
//! Virtio devices of this machine's own kernel, each served by an unmodified vhost-user process. See docs/loopback.md.
//!
//! [`Device`] is the adapter between the kernel module (kernel/loopback) and the device process; [`keep`] starts it again in
//! another process if its own is killed. [`list`](list::list) and [`find`](list::find) look at the devices that there are.
#![deny(missing_docs)]

mod backend;
mod control;
mod device;
mod error;
mod keeper;
mod kind;
pub mod list;
mod process;

pub use control::Control;
pub use device::{Device, Options};
pub use error::{Error, NODE, Result};
pub use keeper::{inherited, keep};
pub use kind::{KINDS, Kind};
