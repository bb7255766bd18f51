// SPDX-License-Identifier: Apache-2.0
//! Counters of a simulated card for those who watch it: [`Snapshot`] is what they are at a moment, [`Server`] serves it over HTTP, as
//! `/metrics` in the text format of OpenMetrics, which Prometheus and others collect, and as `/counters` in JSON, and [`fetch`] gets it
//! from there.
#![deny(missing_docs)]

mod http;
mod snapshot;
mod text;

pub use http::{MetricsError, Server, fetch};
pub use snapshot::{Channel, Dropped, Function, Line, Link, Slot, Snapshot, Sysmon};
