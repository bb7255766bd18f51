// SPDX-License-Identifier: Apache-2.0
//! The observer of the host library.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::SyncSender;

use viaduct::{Observed, Observer};

use crate::clock::Clock;
use crate::message::Message;

/// Passes on what the library does.
pub struct Host {
    clock: Clock,
    to: SyncSender<Message>,
}

/// Threads that have done something.
static THREADS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Number of this thread in the trace, 0 before it does something.
    static THREAD: Cell<u32> = const { Cell::new(0) };
}

impl Host {
    /// Sends to the trace's writer.
    pub fn new(clock: Clock, to: SyncSender<Message>) -> Self {
        Self { clock, to }
    }
}

/// This thread, with its name the first time.
fn thread() -> (u32, Option<String>) {
    if THREAD.get() != 0 {
        return (THREAD.get(), None);
    }
    THREAD.set(THREADS.fetch_add(1, Ordering::Relaxed) + 1);
    (THREAD.get(), std::thread::current().name().map(str::to_owned))
}

impl Observer for Host {
    fn observe(&self, what: Observed) {
        match what {
            Observed::Completed { completion, .. } => self.clock.report(completion.time),
            Observed::Posted { event, .. } => self.clock.report(event.time),
            _ => {}
        }
        // After its end the trace takes nothing more.
        let _ = self.to.send(Message::Host { cycle: self.clock.now(), thread: thread(), what });
    }
}
