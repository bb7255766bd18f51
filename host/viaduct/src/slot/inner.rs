// SPDX-License-Identifier: Apache-2.0
//! What a slot and its mappings share.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::backing::Source;
use crate::card::Schedule;
use crate::card::sync::{lock, poll};
use crate::dispatch::{Dispatcher, State};
use crate::error::{Error, Result};
use crate::pager::{Space, Table, Then, Writing};
use crate::protocol::regs::*;
use crate::slot::worker::Worker;

/// State shared by a slot and its mappings.
pub(crate) struct SlotInner {
    pub rings: Arc<Dispatcher>,
    pub space: Mutex<Space>,
    /// Pages are no longer being written.
    pub(super) written: Condvar,
    /// Held from the beginning to the end of a sync: each one begins by forgetting errors of pages that it tries again, which must not be
    /// those that another one has yet to tell.
    pub(super) syncs: Mutex<()>,
    pub worker: Worker,
    /// It was closed; nothing is left to do when it is dropped.
    pub(super) closed: AtomicBool,
    /// Its app does not run any more ([`Slot::stop`](super::Slot::stop)). Set while the rings are locked.
    pub(super) stopped: AtomicBool,
    /// Its schedule was set, and is not for the next owner.
    pub(super) scheduled: AtomicBool,
}

/// A wait for pages that are being written, of a thread that may have other slots to serve.
const MOMENT: Duration = Duration::from_millis(1);

/// Control value of an unused slot.
pub(super) const HELD: u32 = VIA_SLOT_CTRL_RESET_MASK | VIA_SLOT_CTRL_ISOLATE_MASK;

/// Held by the one thread that serves the slot's faults. Dropped, also by a panic, it lets another one begin.
pub(super) struct EndOfServing<'a>(pub &'a Dispatcher);

impl Drop for EndOfServing<'_> {
    fn drop(&mut self) {
        self.0.lock().serving = false;
        self.0.notify();
    }
}

/// Pages are being written to a file and the address space is not locked. Dropped, also by a panic, it lets those go on who wait for that.
struct EndOfWriting<'a> {
    slot: &'a SlotInner,
    noted: bool,
}

impl EndOfWriting<'_> {
    /// Takes note of what has been written.
    fn note(mut self, writing: Writing) -> Result<()> {
        self.noted = true;
        lock(&self.slot.space).end_sync(&self.slot.rings, writing)
    }
}

impl Drop for EndOfWriting<'_> {
    fn drop(&mut self) {
        if !self.noted {
            lock(&self.slot.space).give_up_writing();
        }
        self.slot.written.notify_all();
    }
}

impl SlotInner {
    /// Serves the faults that are pending. Where all frames are being written it waits for a moment, and the faults stay pending.
    pub fn serve(&self) -> Result<()> {
        let _call = self.rings.card.call(self.rings.slot, "serve faults");
        let mut space = lock(&self.space);
        space.serve(&self.rings)?;
        if space.is_starved() {
            drop(self.written.wait_timeout_while(space, MOMENT, |space| space.is_writing()));
        }
        Ok(())
    }

    /// Locks the address space while no pages of it are being written: for all who change mappings, or tell that something is written.
    pub fn space_at_rest(&self) -> MutexGuard<'_, Space> {
        let rest = self.written.wait_while(lock(&self.space), |space| space.is_writing());
        rest.unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes some changed pages of a range; returns where to go on, if there is more. The address space is not locked while a file is
    /// written: that may take time, and faults are served meanwhile.
    pub fn sync_some(&self, range: &Range<u64>, then: Then) -> Result<Option<u64>> {
        let (next, writing) = self.space_at_rest().sync_some(&self.rings, range, then)?;
        if let Some(mut writing) = writing {
            let end = EndOfWriting { slot: self, noted: false };
            writing.write();
            end.note(writing)?;
        }
        Ok(next)
    }

    /// Holds the app in reset and waits until nothing of it is in flight.
    pub fn hold(&self, limit: Duration) -> Result<()> {
        self.control(HELD)?;
        self.quiet(limit)
    }

    /// Writes the slot's control register for a step that a pause must not end.
    pub fn control(&self, value: u32) -> Result<()> {
        let mut st = self.rings.lock();
        st.held = true;
        self.rings.card.write_slot(self.rings.slot, VIA_SLOT_CTRL, value)
    }

    /// Isolates the app for good. Not held in reset: that would also end the copies that write pages back.
    pub fn stop(&self) -> Result<()> {
        let mut st = self.rings.lock();
        self.stopped.store(true, Ordering::Relaxed);
        // A thread that is resetting the app is to go on with that.
        let was_held = std::mem::replace(&mut st.held, true);
        match was_held {
            true => Ok(()),
            false => {
                let isolated = VIA_SLOT_CTRL_RUN_MASK | VIA_SLOT_CTRL_ISOLATE_MASK;
                self.rings.card.write_slot(self.rings.slot, VIA_SLOT_CTRL, isolated)
            }
        }
    }

    /// Lets the app run from now on, or what it has been doing before [`SlotInner::control`].
    pub fn run(&self, change: impl FnOnce(&mut State)) -> Result<()> {
        let mut st = self.rings.lock();
        if self.stopped.load(Ordering::Relaxed) {
            let slot = self.rings.slot;
            return Err(Error::Invalid(format!("slot {slot}: its app was stopped for good; close the slot")));
        }
        st.held = false;
        change(&mut st);
        self.rings.card.write_slot(self.rings.slot, VIA_SLOT_CTRL, st.running())
    }

    pub fn quiet(&self, after: Duration) -> Result<()> {
        let (card, slot) = (&self.rings.card, self.rings.slot);
        let quiet = poll(after, || {
            let status = card.read_slot(slot, VIA_SLOT_STATUS)?;
            Ok((status & VIA_SLOT_STATUS_QUIET_MASK != 0).then_some(()))
        })?;
        quiet.ok_or_else(|| Error::Stalled { slot, what: "draining the slot".into(), after })
    }

    /// Gives streams what the app has written before one of their bytes, and waits until they have taken it. Not under the lock of the
    /// address space: the reader of a stream may be slow.
    pub fn send(&self, streams: &[(Arc<Source>, u64)]) -> Result<()> {
        for (source, until) in streams {
            while self.space_at_rest().send_some(&self.rings, source, *until)? {}
        }
        // All of them are on their way by now.
        let told = streams.iter().map(|(source, until)| source.drain(*until));
        told.fold(Ok(()), Result::and)
    }

    /// Stops the app and takes its address space away.
    pub fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let (card, slot) = (&self.rings.card, self.rings.slot);
        // Operations in flight get a moment to finish normally; those that wait for a page never would.
        self.control(VIA_SLOT_CTRL_RUN_MASK | VIA_SLOT_CTRL_QUIESCE_MASK)?;
        let grace = card.timeouts().control.min(Duration::from_millis(100));
        match self.quiet(grace) {
            Ok(()) | Err(Error::Stalled { .. }) => {}
            Err(error) => return Err(error),
        }
        // Isolated, but not yet held in reset: that would also end the copies that write pages back.
        self.control(VIA_SLOT_CTRL_RUN_MASK | VIA_SLOT_CTRL_ISOLATE_MASK)?;
        let (streams, unmapped) = {
            let mut space = self.space_at_rest();
            let streams = space.written_streams(&(0..u64::MAX), None);
            (streams, space.remove_all(&self.rings))
        };
        let held = self.hold(card.timeouts().control).and_then(|()| Table::disable(card, slot));
        let scheduled = match self.scheduled.load(Ordering::Relaxed) {
            true => Schedule::default().apply(card, slot),
            false => Ok(()),
        };
        held.and(scheduled).and(unmapped).and(self.send(&streams))
    }
}

impl Drop for SlotInner {
    fn drop(&mut self) {
        if !self.rings.card.is_ours() {
            return;
        }
        let slot = self.rings.slot;
        if let Err(error) = self.close() {
            error.log_unclean(slot, "the slot could not be closed cleanly");
        }
        self.rings.stop();
        self.rings.card.release(slot);
    }
}
