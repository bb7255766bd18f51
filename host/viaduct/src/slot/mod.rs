// SPDX-License-Identifier: Apache-2.0
//! A slot: the app in it, its registers, its address space.

pub(crate) mod copy;
pub(crate) mod inner;
pub(crate) mod mapping;
pub(crate) mod several;
pub(crate) mod window;
pub(crate) mod worker;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::card::observer::Call;
use crate::card::sync::lock;
use crate::card::{Card, Schedule, SlotCounters};
use crate::dispatch::{Dispatcher, State, Tag, Watch};
use crate::error::{Error, Result};
use crate::pager::{Denied, PagerStats, Space, Table};
use crate::protocol::desc::{Command, Completion, Event};
use crate::protocol::regs::*;
use crate::slot::inner::{EndOfServing, HELD, SlotInner};
use crate::slot::worker::Worker;

/// A 32-bit register of the app, or several in a row for a wider one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Register {
    /// Byte offset in the app's window.
    pub offset: u32,
    /// Width in bits, 1 or more.
    pub width: u32,
}

impl Register {
    fn words(self) -> usize {
        self.width.div_ceil(32).max(1) as usize
    }
}

/// State of a slot, read from the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotStatus {
    /// An app is in the slot.
    pub loaded: bool,
    /// Nothing of the slot is in flight.
    pub quiet: bool,
    /// The app reports that it computes.
    pub busy: bool,
    /// The slot is isolated.
    pub isolated: bool,
}

/// A claimed slot. Faults of its app are served by the threads that wait on it. Released when the value and all its
/// mappings are dropped: the app is stopped and held in reset, and cannot access this program's memory any more.
pub struct Slot {
    inner: Arc<SlotInner>,
}

impl Card {
    /// Claims slot `index` (from 0) until the value is dropped. The app in it is held in reset.
    pub fn slot(self: &Arc<Self>, index: usize) -> Result<Slot> {
        self.claim(index)?;
        Slot::open(Arc::clone(self), index).inspect_err(|_| self.release(index))
    }

    /// Claims the first slot that is not held in this program. One that does not work is passed over; its error is returned if no other
    /// slot is free.
    pub fn any_slot(self: &Arc<Self>) -> Result<Slot> {
        let slots = self.info().slots;
        let mut broken = None;
        for index in 0..slots {
            match self.slot(index) {
                Err(Error::SlotInUse { .. }) => {}
                Err(error @ (Error::Stalled { .. } | Error::RingStopped { .. })) => {
                    tracing::warn!(%error, slot = index, "the slot does not work; the next one is tried");
                    broken.get_or_insert(error);
                }
                other => return other,
            }
        }
        Err(broken.unwrap_or_else(|| Error::Invalid(format!("all {slots} slots are in use; drop one"))))
    }

    /// State of a slot, whoever has claimed it.
    pub fn slot_status(&self, index: usize) -> Result<SlotStatus> {
        self.check_slot(index)?;
        let status = self.read_slot(index, VIA_SLOT_STATUS)?;
        Ok(SlotStatus {
            loaded: status & VIA_SLOT_STATUS_LOADED_MASK != 0,
            quiet: status & VIA_SLOT_STATUS_QUIET_MASK != 0,
            busy: status & VIA_SLOT_STATUS_BUSY_MASK != 0,
            isolated: status & VIA_SLOT_STATUS_ISOLATED_MASK != 0,
        })
    }
}

impl Slot {
    pub(crate) fn open(card: Arc<Card>, index: usize) -> Result<Self> {
        card.write_slot(index, VIA_SLOT_CTRL, HELD)?;
        // Access that the previous owner granted to a function's driver is revoked.
        card.reach(|slots| slots & !(1 << index))?;
        Table::disable(&card, index)?;
        let rings = Arc::new(Dispatcher::start(card, index)?);
        let space = Mutex::new(Space::new(u64::MAX, Arc::downgrade(&rings)));
        Ok(Self {
            inner: Arc::new(SlotInner {
                rings,
                space,
                written: Condvar::new(),
                syncs: Mutex::new(()),
                worker: Worker::default(),
                closed: AtomicBool::new(false),
                stopped: AtomicBool::new(false),
                scheduled: AtomicBool::new(false),
            }),
        })
    }

    /// Number of the slot.
    pub fn index(&self) -> usize {
        self.inner.rings.slot
    }

    /// The card it is on.
    pub fn card(&self) -> &Arc<Card> {
        &self.inner.rings.card
    }

    pub(crate) fn inner(&self) -> &Arc<SlotInner> {
        &self.inner
    }

    /// Tells the card's observer of a call.
    pub(crate) fn call(&self, name: &'static str) -> Call<'_> {
        self.inner.rings.card.call(self.index(), name)
    }

    // ---------------------------------------------------------------- life of the app

    /// Loads an app image (the bytes of a `.via` file) and starts the app. The slot is isolated meanwhile; other slots keep running.
    pub fn load(&self, image: &[u8]) -> Result<()> {
        let _call = self.call("load the app");
        self.hold()?;
        self.inner.rings.lock().revive(&self.inner.rings)?;
        self.card().configure(self.index(), image)?;
        self.start()
    }

    /// Starts the app in the slot, from its reset state if it was held.
    pub fn start(&self) -> Result<()> {
        if !self.status()?.loaded {
            return Err(Error::SlotEmpty { slot: self.index() });
        }
        self.inner.run(|st| st.paused = false)
    }

    /// Pauses the app, to leave link and memory to others: nothing more is taken from it, no beat of its output streams and no access of its
    /// memory port, until [`Slot::resume`], a reset or another image. What was taken before is carried out, nothing is lost, and its registers
    /// can be used. Waits of the slot go on, without their time-out: another thread has to end the pause.
    pub fn pause(&self) -> Result<()> {
        self.set_paused(true)
    }

    /// Ends a pause.
    pub fn resume(&self) -> Result<()> {
        self.set_paused(false)
    }

    fn set_paused(&self, paused: bool) -> Result<()> {
        self.card().check_process()?;
        // One after the other, so that the card does what the state says.
        let mut st = self.inner.rings.lock();
        if !st.held {
            self.check()?;
        }
        st.paused = paused;
        match st.held {
            true => Ok(()),
            false => self.card().write_slot(self.index(), VIA_SLOT_CTRL, st.running()),
        }
    }

    /// Lets other parts of the card use the slot's address space, whether or not there is an app in it.
    pub fn open_space(&self) -> Result<()> {
        self.inner.run(|_| ())
    }

    /// Stops the app, removes all mappings, and holds the slot in reset; what drops do too, but with the error, which says what is lost.
    /// The slot is free once the values of its mappings are dropped, which have no effect any more.
    pub fn close(self) -> Result<()> {
        self.inner.close()
    }

    /// Ends what the app does, at once and for good, while other threads may be using the slot: its accesses fail, and it is not started again by
    /// [`Slot::load`], [`Slot::start`] or [`Slot::reset`], which are errors from now on. Mappings are as they were: what the app has changed can
    /// be synchronised and unmapped. Dropping or closing the slot gives it to others.
    pub fn stop(&self) -> Result<()> {
        self.card().check_process()?;
        self.inner.stop()
    }

    /// Resets the app: commands to and from its streams end as aborted, its registers take their reset values.
    pub fn reset(&self) -> Result<()> {
        let _call = self.call("reset the app");
        self.hold()?;
        self.inner.rings.lock().revive(&self.inner.rings)?;
        if self.status()?.loaded { self.start() } else { Ok(()) }
    }

    /// Holds the app in reset until nothing of it is in flight.
    fn hold(&self) -> Result<()> {
        // A reset ends the copies of pages that are being loaded. If another thread is at work there, it has to take note of that before
        // the app goes on: those pages have another owner's bytes.
        if let Ok(mut space) = self.inner.space.try_lock() {
            space.settle(&self.inner.rings);
        }
        self.inner.hold(self.card().timeouts().control)?;
        let mut space = lock(&self.inner.space);
        space.settle(&self.inner.rings);
        // Accesses that waited for a stream have ended with the app.
        space.forget_parked(&self.inner.rings);
        Ok(())
    }

    /// Ends all commands to and from the app's streams, without a reset of the app.
    pub(crate) fn abort_moves(&self, tags: &[Tag]) -> Result<Vec<Completion>> {
        let isolated = VIA_SLOT_CTRL_RUN_MASK | VIA_SLOT_CTRL_ISOLATE_MASK;
        self.inner.control(isolated)?;
        let ended = self.inner.rings.collect("ending the moves that are left", tags);
        self.inner.quiet(self.card().timeouts().control)?;
        self.inner.run(|_| ())?;
        ended
    }

    /// Sets the slot's share of card memory beside others that use it at the same time: in proportion to the weights, in bytes. From 1, which
    /// is the weight of a slot that has just been claimed and of the DMA engine, to [`Slot::MAX_WEIGHT`]. What one does not use the others
    /// get. Takes effect at once.
    pub fn set_weight(&self, weight: u8) -> Result<()> {
        self.card().check_weight(weight)?;
        self.inner.scheduled.store(true, Ordering::Relaxed);
        self.card().write_slot(self.index(), VIA_SLOT_WEIGHT, weight.into())
    }

    /// Sets how the slot's accesses are scheduled beside those of others, its weight included. Takes effect at once, and ends with the slot.
    pub fn set_schedule(&self, schedule: &Schedule) -> Result<()> {
        self.inner.scheduled.store(true, Ordering::Relaxed);
        schedule.apply(self.card(), self.index())
    }

    /// The greatest weight.
    pub const MAX_WEIGHT: u8 = crate::card::MAX_WEIGHT;

    /// State of the slot.
    pub fn status(&self) -> Result<SlotStatus> {
        self.card().slot_status(self.index())
    }

    /// Fails, with the cause, if the slot is isolated or empty, or one of its rings is stopped.
    pub fn check(&self) -> Result<()> {
        if !self.status()?.loaded {
            return Err(Error::SlotEmpty { slot: self.index() });
        }
        self.inner.rings.check_alive()
    }

    /// Counters of the slot, one after the other; [`Card::counters`] has those of all slots at one time.
    pub fn counters(&self) -> Result<SlotCounters> {
        SlotCounters::read(self.card(), self.index())
    }

    /// Rule violations of the app and errors of its rings, oldest first; each is reported once.
    pub fn take_violations(&self) -> Vec<Event> {
        self.if_ours(|inner| inner.rings.lock().violations.drain(..).collect())
    }

    /// Number of invalid completions and events that were ignored.
    pub fn strays(&self) -> u64 {
        self.if_ours(|inner| inner.rings.lock().strays)
    }

    // ---------------------------------------------------------------- registers of the app

    /// Reads a 32-bit register of the app.
    pub fn read_register(&self, offset: u32) -> Result<u32> {
        let _call = self.call("read a register");
        let at = self.register_at(offset)?;
        let value = self.card().pci().read32(VIA_APP_BAR as u8, at)?;
        if value == u32::MAX {
            // A slot without a working app also returns this value.
            self.check()?;
        }
        Ok(value)
    }

    /// Writes a 32-bit register of the app.
    pub fn write_register(&self, offset: u32, value: u32) -> Result<()> {
        let _call = self.call("write a register");
        let at = self.register_at(offset)?;
        Ok(self.card().pci().write32(VIA_APP_BAR as u8, at, value)?)
    }

    /// Reads a register of any width: little-endian bytes, whole 32-bit words.
    pub fn read_wide(&self, register: Register) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(4 * register.words());
        for word in 0..register.words() as u32 {
            bytes.extend(self.read_register(register.offset + 4 * word)?.to_le_bytes());
        }
        Ok(bytes)
    }

    /// Writes a register of any width: little-endian bytes, the missing ones zero.
    pub fn write_wide(&self, register: Register, bytes: &[u8]) -> Result<()> {
        let room = register.width.div_ceil(8) as usize;
        if bytes.len() > room {
            let (offset, width) = (register.offset, register.width);
            let given = bytes.len();
            return Err(Error::Invalid(format!(
                "{given} bytes are too many for the {width}-bit register at {offset:#x}; give at most {room}"
            )));
        }
        for word in 0..register.words() {
            let mut value = [0; 4];
            let part = bytes.iter().skip(4 * word).take(4);
            value.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
            self.write_register(register.offset + 4 * word as u32, u32::from_le_bytes(value))?;
        }
        Ok(())
    }

    fn register_at(&self, offset: u32) -> Result<u64> {
        if offset % 4 != 0 || u64::from(offset) >= VIA_APP_SIZE {
            return Err(Error::BadRegister { offset });
        }
        Ok(VIA_APP_BASE + self.index() as u64 * VIA_APP_STRIDE + u64::from(offset))
    }

    // ---------------------------------------------------------------- commands

    /// Submits commands in order; they run while the program does something else. Many can be outstanding.
    pub fn submit(&self, commands: &[Command]) -> Result<Vec<Tag>> {
        self.inner.rings.submit(commands)
    }

    /// Waits for commands, serving the app's faults meanwhile, and returns their completions in the order of the tags. The
    /// caller checks their status.
    pub fn wait(&self, tags: &[Tag]) -> Result<Vec<Completion>> {
        self.wait_while_serving("waiting for commands", None, |st| {
            tags.iter().all(|tag| st.is_done(*tag)).then_some(())
        })?;
        self.inner.rings.collect("waiting for commands", tags)
    }

    /// Waits until the app has raised its interrupt more than `seen` times, serving its faults meanwhile. Returns how often
    /// it has by now, `None` after `limit`; faults that are pending are served however short it is.
    pub fn wait_irq(&self, seen: u64, limit: Duration) -> Result<Option<u64>> {
        let end = Instant::now().checked_add(limit);
        let slot = self.index();
        let response = self.wait_while_serving("waiting for the app's interrupt", end, |st| {
            st.irqs_after(slot, seen).transpose()
        })?;
        response.transpose()
    }

    /// Interrupts the app has raised since the slot was claimed, as far as they have been processed.
    pub fn irqs(&self) -> u64 {
        self.if_ours(|inner| inner.rings.lock().irqs)
    }

    /// Changes with whatever the slot does, and with what the host does for it.
    pub(crate) fn activity(&self) -> u64 {
        self.inner.rings.lock().activity
    }

    /// Whether accesses of the app wait for the data of a stream or of a disk.
    pub(crate) fn waits_for_data(&self) -> bool {
        let st = self.inner.rings.lock();
        st.paused || st.parked > 0 || st.waits_for_disk()
    }

    /// Waits for `ready`; a waiting thread also serves the faults of the slot, one thread at a time.
    pub(crate) fn wait_while_serving<T>(
        &self,
        what: &str,
        end: Option<Instant>,
        ready: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Option<T>> {
        self.card().check_process()?;
        self.wait_watching(&mut self.inner.rings.watch(), what, end, ready)
    }

    /// As [`Slot::wait_while_serving`], until `stop`, if given, returns true: it is called about ten times a second.
    pub(crate) fn wait_unless_stopped<T>(
        &self,
        what: &str,
        outside: bool,
        stop: &mut Option<StopIf<'_>>,
        mut ready: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<T> {
        self.card().check_process()?;
        let mut watch = self.inner.rings.watch();
        watch.outside = outside;
        loop {
            let end = stop.is_some().then(|| Instant::now() + ASK_STOP);
            if let Some(response) = self.wait_watching(&mut watch, what, end, &mut ready)? {
                return Ok(response);
            }
            check_stop(stop)?;
            self.card().check_process()?;
        }
    }

    fn wait_watching<T>(
        &self,
        watch: &mut Watch,
        what: &str,
        end: Option<Instant>,
        mut ready: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Option<T>> {
        let rings = &self.inner.rings;
        let mut late = false;
        loop {
            let next = rings.wait_watching(watch, what, end, |st| {
                // What has ended comes first: if it failed, what the app has done since does not count.
                let response = if st.has_landed() { None } else { ready(st) };
                if let Some(response) = response {
                    return Some(Some(response));
                }
                (!st.serving && st.wants_service()).then(|| {
                    st.serving = true;
                    None
                })
            })?;
            match next {
                None => return Ok(None),
                Some(Some(response)) => return Ok(Some(response)),
                Some(None) => {
                    let _serving = EndOfServing(rings);
                    // There may always be another fault: after the limit, what is pending is served once.
                    if late {
                        return Ok(None);
                    }
                    late = end.is_some_and(|end| Instant::now() >= end);
                    self.inner.serve()?;
                }
            }
        }
    }

    // ---------------------------------------------------------------- address space

    /// Limits the card memory that pages of this slot hold, in bytes. Idle pages are evicted to keep to it.
    pub fn set_frame_budget(&self, bytes: u64) {
        self.if_ours(|inner| lock(&inner.space).set_budget(bytes));
    }

    /// Limits the host memory that is taken for pages of this slot while card memory is full (see [`Advice::Random`](crate::Advice)), in
    /// bytes of mappings; 0: such pages are evicted instead. What is there already stays, and counts: it goes with the last part of its mapping.
    pub fn set_host_budget(&self, bytes: u64) {
        self.if_ours(|inner| lock(&inner.space).set_host_budget(bytes));
    }

    /// Lets the time of a simulated card pass while faults of this slot are served, so much for each; it stands still otherwise, apart from
    /// what the commands take. For measurements.
    pub fn set_service_time(&self, time: Duration) {
        self.if_ours(|inner| lock(&inner.space).set_service_time(time));
    }

    /// Counters of the pager.
    pub fn pager_stats(&self) -> PagerStats {
        self.if_ours(|inner| {
            let mut space = lock(&inner.space);
            space.settle(&inner.rings);
            space.stats()
        })
    }

    /// The same at the end of a run: a page that could not be filled is an error, though the app has finished with it.
    pub(crate) fn settled(&self) -> Result<PagerStats> {
        lock(&self.inner.space).settled(&self.inner.rings)
    }

    /// Accesses of the app that were completed with an error, oldest first; each is reported once.
    pub fn take_denied(&self) -> Vec<Denied> {
        self.if_ours(|inner| {
            let mut space = lock(&inner.space);
            space.settle(&inner.rings);
            space.take_denied()
        })
    }

    /// In a child of `fork()` there are none, and no lock may be taken.
    fn if_ours<T: Default>(&self, look: impl FnOnce(&SlotInner) -> T) -> T {
        if self.card().is_ours() { look(&self.inner) } else { T::default() }
    }
}

/// Function that returns whether a run is to stop.
pub(crate) type StopIf<'a> = Box<dyn FnMut() -> bool + 'a>;

/// Longest time between two calls of it.
pub(crate) const ASK_STOP: Duration = Duration::from_millis(100);

/// Fails if the run is to stop.
pub(crate) fn check_stop(stop: &mut Option<StopIf<'_>>) -> Result<()> {
    let stopped = stop.as_mut().is_some_and(|stop| stop());
    if stopped { Err(Error::Stopped) } else { Ok(()) }
}
