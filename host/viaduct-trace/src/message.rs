// SPDX-License-Identifier: Apache-2.0
//! What the writer of a trace is told.

use viaduct::Observed;
use viaduct_sim::TraceRecord;

/// What the writer is told.
pub enum Message {
    /// Records of the card's model.
    Card(Vec<TraceRecord>),
    /// Something that the host does.
    Host {
        /// When, on the card's clock.
        cycle: u64,
        /// The thread that does it; it has a name the first time.
        thread: (u32, Option<String>),
        /// What it is.
        what: Observed,
    },
    /// The trace ends, in this cycle.
    End(u64),
}
