// SPDX-License-Identifier: Apache-2.0
//! Which client is in which slot of the card, and what the slots have moved.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use viaduct::{Card, Schedule, SlotCounters};

use crate::open::Open;
use crate::view::{Moved, Occupant, View};

/// A look at the card is good for so long: those who look often do not keep it busy.
const FRESH: Duration = Duration::from_millis(100);

/// Time between two readings of the counters of a card that goes on by itself. They have 32 bits and count at most one beat a cycle, so that they
/// wrap after eight seconds at 500 MHz.
pub(crate) const COUNT: Duration = Duration::from_secs(3);

/// The card, and its slots in use.
pub(crate) struct Overview {
    pub card: Arc<Card>,
    slots: Mutex<BTreeMap<usize, Weak<Open>>>,
    /// Held while the card is read, so that many who look share one reading.
    look: Mutex<Look>,
    /// The weight of the DMA engine, which is that of the greatest slot.
    dma_weight: Mutex<u8>,
}

#[derive(Default)]
struct Look {
    latest: Option<(Instant, View)>,
    /// The counters of the slots at the latest reading, which wrap, and what they have counted since each slot was opened.
    counters: Vec<SlotCounters>,
    moved: Vec<Moved>,
}

impl Overview {
    /// Of a card whose DMA engine has this weight.
    pub fn new(card: Arc<Card>, dma_weight: u8) -> Self {
        Self { card, slots: Mutex::default(), look: Mutex::default(), dma_weight: Mutex::new(dma_weight) }
    }

    fn slots(&self) -> MutexGuard<'_, BTreeMap<usize, Weak<Open>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self) -> MutexGuard<'_, Look> {
        self.look.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a slot that was opened; it is counted from now on.
    pub fn enter(&self, open: &Arc<Open>) -> viaduct::Result<()> {
        let mut look = self.look();
        look.read(&self.card)?;
        if let Some(moved) = look.moved.get_mut(open.index) {
            *moved = Moved::default();
        }
        look.latest = None;
        self.slots().insert(open.index, Arc::downgrade(open));
        Ok(())
    }

    /// The slot of a client at a place of the card.
    pub fn slot(&self, index: usize) -> Option<Arc<Open>> {
        self.slots().get(&index)?.upgrade()
    }

    /// What the card does. Slots of other users than `only` are hidden, and routes between them left out.
    pub fn view(&self, only: Option<u32>) -> viaduct::Result<View> {
        let mut view = self.look().fresh(&self.card)?;
        let open: Vec<Arc<Open>> = self.slots().values().filter_map(Weak::upgrade).collect();
        let mut own = vec![only.is_none(); view.slots.len()];
        for open in &open {
            let Some(slot) = view.slots.get_mut(open.index) else { continue };
            if !open.is_open() {
                continue;
            }
            if only.is_some_and(|uid| uid != open.uid) {
                slot.hidden = true;
                slot.moved = None;
                continue;
            }
            own[open.index] = true;
            let shown = open.shown();
            slot.user = Some(Occupant {
                app: open.app.clone(),
                uid: open.uid,
                pid: open.pid,
                schedule: shown.schedule.to_string(),
                paused: shown.paused,
            });
        }
        if only.is_some() {
            // What a slot has moved that nobody has any more is its last user's matter.
            for (slot, own) in view.slots.iter_mut().zip(&own) {
                if !own {
                    slot.moved = None;
                }
            }
            let is_own = |port: &str| {
                let slot = port.parse::<viaduct::Port>().ok().and_then(|port| port.slot());
                slot.is_some_and(|slot| own.get(slot) == Some(&true))
            };
            view.routes.retain(|route| is_own(&route.source) || is_own(&route.sink));
        }
        Ok(view)
    }

    /// The card has been changed: the next look is to show that.
    pub fn changed(&self) {
        self.look().latest = None;
    }

    /// Reads the counters, which wrap after a while.
    pub fn count(&self) -> viaduct::Result<()> {
        self.look().fresh(&self.card).map(drop)
    }

    /// Gives the DMA engine, which loads the pages of all slots, the weight of this schedule if that is greater than its own.
    pub fn keep_up(&self, schedule: &Schedule) -> viaduct::Result<()> {
        let mut weight = self.dma_weight.lock().unwrap_or_else(PoisonError::into_inner);
        if schedule.weight > *weight {
            self.card.set_dma_weights(schedule.weight, 1)?;
            *weight = schedule.weight;
        }
        Ok(())
    }
}

impl Look {
    fn fresh(&mut self, card: &Card) -> viaduct::Result<View> {
        if let Some((when, view)) = &self.latest {
            if when.elapsed() < FRESH {
                return Ok(view.clone());
            }
        }
        self.read(card)
    }

    fn read(&mut self, card: &Card) -> viaduct::Result<View> {
        let (mut view, counters) = View::of(card)?;
        if let Some(counters) = counters {
            self.moved.resize(counters.len(), Moved::default());
            for ((moved, now), before) in self.moved.iter_mut().zip(&counters).zip(&self.counters) {
                *moved = moved.plus(&Moved::new(&now.since(before), card.info().data_bytes));
            }
            self.counters = counters;
            for (slot, moved) in view.slots.iter_mut().zip(&self.moved) {
                slot.moved = Some(*moved);
            }
        }
        self.latest = Some((Instant::now(), view.clone()));
        Ok(view)
    }
}
