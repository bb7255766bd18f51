// SPDX-License-Identifier: Apache-2.0
//! The observer of the host library.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::SyncSender;

use viaduct::{Observed, Observer};

use crate::clock::Clock;
use crate::message::{Happened, Message};

/// Passes on what the library does.
pub struct Host {
    clock: Clock,
    to: SyncSender<Message>,
}

/// Threads that have made calls.
static THREADS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Number of this thread in the trace, 0 before its first call.
    static THREAD: Cell<u32> = const { Cell::new(0) };
}

impl Host {
    /// Sends to the trace's writer.
    pub fn new(clock: Clock, to: SyncSender<Message>) -> Self {
        Self { clock, to }
    }

    fn send(&self, happened: Happened) {
        // After its end the trace takes nothing more.
        let _ = self.to.send(Message::Host(self.clock.now(), happened));
    }
}

impl Observer for Host {
    fn observe(&self, what: Observed<'_>) {
        match what {
            Observed::Submitted { slot, tag, command } => {
                self.send(Happened::Submitted { slot, tag, command: *command });
            }
            Observed::Completed { slot, completion } => {
                self.clock.report(completion.time);
                self.send(Happened::Completed { slot, completion: *completion });
            }
            Observed::Posted { slot, event } => {
                self.clock.report(event.time);
                self.send(Happened::Posted { slot, event: *event });
            }
            Observed::Begins { slot, call } => {
                let mut name = None;
                if THREAD.get() == 0 {
                    THREAD.set(THREADS.fetch_add(1, Ordering::Relaxed) + 1);
                    name = std::thread::current().name().map(str::to_owned);
                }
                self.send(Happened::Begins { thread: THREAD.get(), name, slot, call });
            }
            Observed::Ends => self.send(Happened::Ends { thread: THREAD.get() }),
            _ => {}
        }
    }
}
