// SPDX-License-Identifier: Apache-2.0
//! Tells a program what the library does with a card, as it happens.

use viaduct_pci::Process;

use crate::protocol::desc::{Command, Completion, Event};

/// What has happened.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Observed {
    /// A command was put into the command ring of a slot.
    Submitted {
        /// The slot.
        slot: usize,
        /// Its tag: that of no other command of the slot which has not completed.
        tag: u32,
        /// The command.
        command: Command,
    },
    /// A command has completed. [`Completion::time`] is when, on the card's clock.
    Completed {
        /// The slot.
        slot: usize,
        /// The completion.
        completion: Completion,
    },
    /// The card has posted an event. [`Event::time`] is when, on the card's clock.
    Posted {
        /// The slot.
        slot: usize,
        /// The event.
        event: Event,
    },
    /// This thread begins a call. Calls of a thread are nested.
    Begins {
        /// The slot that it concerns.
        slot: usize,
        /// Name of the call.
        call: &'static str,
    },
    /// The latest call of this thread that has not ended ends.
    Ends,
}

/// Is told what the library does with a card.
pub trait Observer: Send + Sync {
    /// Called by the thread that does it, with locks of the slot held: it must not use this library, nor wait for a thread that does.
    fn observe(&self, what: Observed);
}

/// Ends with the call that it stands for.
pub(crate) struct Call<'a>(Option<(&'a dyn Observer, Process)>);

impl<'a> Call<'a> {
    /// Tells that this thread begins a call.
    pub fn begin(observer: Option<&'a dyn Observer>, slot: usize, call: &'static str) -> Self {
        if let Some(observer) = observer {
            observer.observe(Observed::Begins { slot, call });
        }
        Self(observer.map(|observer| (observer, Process::current())))
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        // A child of fork() in the middle of a call has no threads that could take what is told.
        if let Some((observer, _)) = self.0.filter(|(_, process)| process.is_current()) {
            observer.observe(Observed::Ends);
        }
    }
}
