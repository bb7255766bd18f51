// SPDX-License-Identifier: Apache-2.0
//! One thread that waits for several slots.

use std::time::{Duration, Instant};

use crate::dispatch::{Dispatcher, Stall, State, Tag, Watch};
use crate::error::{Error, Result};
use crate::slot::Slot;
use crate::slot::inner::EndOfServing;

/// What a slot is waited for.
#[derive(Debug, Clone, Copy)]
pub enum Awaited<'a> {
    /// More interrupts of its app than so many.
    Irq(u64),
    /// The end of all these commands; [`Slot::wait`] returns their completions then.
    Commands(&'a [Tag]),
}

/// Waits for the first of these slots, of one card, for which what is awaited has come, and returns its index in the list; `None` after
/// `limit`. Faults of all of them are served meanwhile, by this thread, in the order of the list.
pub fn wait_for_one(slots: &[(&Slot, Awaited<'_>)], limit: Duration) -> Result<Option<usize>> {
    let Some((first, _)) = slots.first() else { return Ok(None) };
    if slots.iter().any(|(slot, _)| !std::ptr::eq(&raw const **slot.card(), &raw const **first.card())) {
        return Err(Error::Invalid("these slots are not of one card; wait for those of each card".into()));
    }
    first.card().check_process()?;
    let end = Instant::now().checked_add(limit);
    let all: Vec<&Slot> = slots.iter().map(|(slot, _)| *slot).collect();
    let what = "waiting for one of several slots";
    wait_for_any(&all, &mut Waits::new(&all, Stall::OfOne), what, end, |index, st| {
        let (slot, awaited) = slots[index];
        Ok(has_come(slot, st, awaited)?.then_some(index))
    })
}

/// Watches of several slots.
pub(crate) struct Waits<'a>(Vec<(&'a Dispatcher, Watch)>, Stall);

impl<'a> Waits<'a> {
    pub fn new(slots: &[&'a Slot], stall: Stall) -> Self {
        Self(slots.iter().map(|slot| (&*slot.inner().rings, slot.inner().rings.watch())).collect(), stall)
    }

    /// Whether something outside of the card is waited for, so that inactivity is no error.
    pub fn outside(&mut self, outside: bool) {
        self.0.iter_mut().for_each(|(_, watch)| watch.outside = outside);
    }
}

/// Waits until `ready` returns something for one of these slots, by its index, or until `end`; serves the faults of all of them.
pub(crate) fn wait_for_any<T>(
    slots: &[&Slot],
    waits: &mut Waits<'_>,
    what: &str,
    end: Option<Instant>,
    mut ready: impl FnMut(usize, &mut State) -> Result<Option<T>>,
) -> Result<Option<T>> {
    loop {
        let mut served = false;
        for (index, slot) in slots.iter().enumerate() {
            let rings = &slot.inner().rings;
            let mut st = rings.lock();
            st.drain(rings)?;
            // What has ended comes first: if it failed, what the app has done since does not count.
            if !st.has_landed()
                && let Some(response) = ready(index, &mut st)?
            {
                return Ok(Some(response));
            }
            if !st.serving && st.wants_service() {
                st.serving = true;
                drop(st);
                let _serving = EndOfServing(rings);
                slot.inner().serve()?;
                served = true;
            }
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            return Ok(None);
        }
        if !served {
            Dispatcher::sleep(&mut waits.0, waits.1, what, end)?;
        }
    }
}

fn has_come(slot: &Slot, st: &State, awaited: Awaited<'_>) -> Result<bool> {
    match awaited {
        Awaited::Irq(seen) => Ok(st.irqs_after(slot.index(), seen)?.is_some()),
        Awaited::Commands(tags) => Ok(tags.iter().all(|tag| st.is_done(*tag))),
    }
}
