// SPDX-License-Identifier: Apache-2.0
//! What the writer of a trace is told.

use viaduct::desc::{Command, Completion, Event};
use viaduct_sim::TraceRecord;

/// What the writer is told.
pub enum Message {
    /// Records of the card's model.
    Card(Vec<TraceRecord>),
    /// Something that the host does, in a cycle of the card.
    Host(u64, Happened),
    /// The trace ends, in this cycle.
    End(u64),
}

/// What the host does.
pub enum Happened {
    /// A command was submitted.
    Submitted { slot: usize, tag: u32, command: Command },
    /// A command has completed.
    Completed { slot: usize, completion: Completion },
    /// The card has posted an event.
    Posted { slot: usize, event: Event },
    /// A call begins in a thread, which has a name at its first call.
    Begins { thread: u32, name: Option<String>, slot: usize, call: &'static str },
    /// It ends.
    Ends { thread: u32 },
}
