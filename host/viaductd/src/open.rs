// SPDX-License-Identifier: Apache-2.0
//! A slot that a client has opened. The client uses it by its number, and who manages the card by its place on the card.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use viaduct::{Schedule, Slot};

use crate::account::Charge;
use crate::book::Book;
use crate::wire::{Kind, Refusal};

/// Between two looks whether a slot is still in use.
const LOOK: Duration = Duration::from_millis(5);

/// A slot of a client.
pub(crate) struct Open {
    /// Its number on the card.
    pub index: usize,
    /// Number of the client, for messages.
    pub client: u64,
    /// The client's user and process.
    pub uid: u32,
    pub pid: i32,
    /// Name of the app.
    pub app: String,
    state: Mutex<State>,
    /// Held during a change of schedule or pause, so that the card has what the state says. A few register accesses.
    acts: Mutex<()>,
}

/// The slot itself, while it is the client's. It is released when the last request on it has ended.
pub(crate) struct Running {
    pub slot: Slot,
    pub book: Mutex<Book>,
    _charge: Charge,
}

struct State {
    /// Until it is closed or ended.
    running: Option<Arc<Running>>,
    /// Why the client has it no longer.
    ended: Option<Refusal>,
    /// Requests of those who manage the card, which do not count as the client's.
    visits: usize,
    schedule: Schedule,
    /// The schedule that the owner of the card has given; the client's user may take less.
    granted: Schedule,
    paused: bool,
    /// The owner has paused it, and the client's user cannot end that.
    by_owner: bool,
}

/// What a slot's state is, for who looks at it.
pub(crate) struct Shown {
    pub schedule: Schedule,
    pub paused: bool,
}

impl Open {
    /// A slot with an app in it, and its schedule.
    pub fn new(slot: Slot, client: (u64, u32, i32), app: String, schedule: Schedule, charge: Charge) -> Self {
        let (index, (client, uid, pid)) = (slot.index(), client);
        let running = Some(Arc::new(Running { slot, book: Mutex::default(), _charge: charge }));
        let state = State {
            running,
            ended: None,
            visits: 0,
            schedule,
            granted: schedule,
            paused: false,
            by_owner: false,
        };
        Self { index, client, uid, pid, app, state: Mutex::new(state), acts: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slot, for a request of its client.
    pub fn running(&self) -> Result<Arc<Running>, Refusal> {
        let state = self.state();
        state.running.clone().ok_or_else(|| state.ended.clone().unwrap_or_else(|| closed(self.index)))
    }

    /// Whether it is the client's.
    pub fn is_open(&self) -> bool {
        self.state().running.is_some()
    }

    /// Why the client has it no longer, if it was ended by others.
    pub fn ended(&self) -> Option<Refusal> {
        self.state().ended.clone()
    }

    /// Takes the slot from the client at its own request, unless other requests of it are under way.
    pub fn close(&self) -> Result<Arc<Running>, Refusal> {
        let mut state = self.state();
        let visits = state.visits;
        match &state.running {
            Some(running) if Arc::strong_count(running) > 1 + visits => {
                let text = "other requests on the slot are under way; wait for them".into();
                Err(Refusal::new(Kind::Card, Errno::BUSY.raw_os_error(), text))
            }
            _ => {
                let ended = state.ended.clone();
                state.running.take().ok_or_else(|| ended.unwrap_or_else(|| closed(self.index)))
            }
        }
    }

    /// Takes the slot from a client that is gone; `None` if it was not the client's any more.
    pub fn leave(&self) -> Option<Arc<Running>> {
        self.state().running.take()
    }

    /// Takes the slot from the client, whose requests get this refusal from now on; `None` if it was not the client's any more.
    pub fn end(&self, refusal: Refusal) -> Option<Arc<Running>> {
        let mut state = self.state();
        let running = state.running.take()?;
        state.ended = Some(refusal);
        Some(running)
    }

    /// The slot, for a request of who manages the card; `None` if it is not the client's any more.
    pub fn visit(self: &Arc<Self>) -> Option<Visit> {
        let mut state = self.state();
        let running = Some(state.running.clone()?);
        state.visits += 1;
        Some(Visit { open: Arc::clone(self), running })
    }

    /// What others see of it.
    pub fn shown(&self) -> Shown {
        let state = self.state();
        Shown { schedule: state.schedule, paused: state.paused }
    }

    /// Resets the app. A pause of the card's owner stays, and prevents it.
    pub fn reset(&self) -> Result<(), Refusal> {
        let running = self.running()?;
        if self.state().by_owner {
            let text = format!(
                "slot {}: it is paused by the owner of the card; ask for the end of that",
                self.index
            );
            return Err(Refusal::new(Kind::Access, Errno::PERM.raw_os_error(), text));
        }
        // Not under a lock: the app has all the time that a reset may take.
        running.slot.reset()?;
        let _act = self.acts.lock().unwrap_or_else(PoisonError::into_inner);
        // The reset ends a pause, also one that has begun meanwhile.
        let by_owner = {
            let mut state = self.state();
            state.paused = state.by_owner;
            state.by_owner
        };
        if by_owner { Ok(running.slot.pause()?) } else { Ok(()) }
    }
}

/// The use of a slot by who manages the card. The slot is not another client's before this is dropped.
pub(crate) struct Visit {
    open: Arc<Open>,
    running: Option<Arc<Running>>,
}

impl Visit {
    /// Sets the schedule; `all`: for the owner of the card, who is not bound by what was given before.
    pub fn set_schedule(&self, schedule: &Schedule, all: bool) -> Result<(), Refusal> {
        let Some(running) = &self.running else { return Err(closed(self.open.index)) };
        let _act = self.open.acts.lock().unwrap_or_else(PoisonError::into_inner);
        let granted = self.open.state().granted;
        if !all && !schedule.is_within(&granted) {
            let text = format!(
                "slot {}: {schedule} is more than the owner of the card has given: {granted}; take less, or ask for more",
                self.open.index
            );
            return Err(Refusal::new(Kind::Access, Errno::PERM.raw_os_error(), text));
        }
        running.slot.set_schedule(schedule)?;
        let mut state = self.open.state();
        state.schedule = *schedule;
        if all {
            state.granted = *schedule;
        }
        Ok(())
    }

    /// Pauses the app, or ends the pause; `all` as above.
    pub fn set_paused(&self, paused: bool, all: bool) -> Result<(), Refusal> {
        let Some(running) = &self.running else { return Err(closed(self.open.index)) };
        let _act = self.open.acts.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut state = self.open.state();
            if !all && !paused && state.by_owner {
                let text = format!(
                    "slot {}: the owner of the card has paused it, and has to end that",
                    self.open.index
                );
                return Err(Refusal::new(Kind::Access, Errno::PERM.raw_os_error(), text));
            }
            state.paused = paused;
            state.by_owner = paused && (all || state.by_owner);
        }
        match paused {
            true => running.slot.pause()?,
            false => running.slot.resume()?,
        }
        Ok(())
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        // First the slot, which may be released by that, then the count: a client may count too many visits, and not too few.
        drop(self.running.take());
        self.open.state().visits -= 1;
    }
}

/// Waits until nobody else uses a slot; `None` if that has not come within the limit: it is released when they have ended.
pub(crate) fn alone(mut running: Arc<Running>, limit: Duration) -> Option<Running> {
    let end = Instant::now() + limit;
    loop {
        running = match Arc::try_unwrap(running) {
            Ok(running) => return Some(running),
            Err(_) if Instant::now() >= end => return None,
            Err(running) => running,
        };
        std::thread::sleep(LOOK);
    }
}

impl Running {
    pub fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn closed(index: usize) -> Refusal {
    Refusal::new(Kind::Card, Errno::BADF.raw_os_error(), format!("slot {index} was closed"))
}
