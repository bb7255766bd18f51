// SPDX-License-Identifier: Apache-2.0
//! Operation of the rings of one slot: submits commands, dispatches completions and events, and lets threads wait.
//!
//! Any number of threads may wait. One of them, the leader, sleeps on the slot's interrupts; the others sleep until the
//! leader has processed new entries. The lock is held only while entries are written or taken, never during a wait or file access.

mod number;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::card::Card;
use crate::card::dma::DmaBuffer;
use crate::card::observer::Observed;
use crate::card::sync::{lock, poll};
use crate::dispatch::number::Numbers;
use crate::error::{Error, Result};
use crate::protocol::desc::{Command, Completion, Event, EventCause, Op, Status};
use crate::protocol::regs::*;
use crate::protocol::ring::{CMD_OFFSET, CPL_OFFSET, EVT_OFFSET, RING_LOG2, RINGS_BYTES, Rings};
use viaduct_pci::{DmaAccess, PciError};

/// Violations and reports kept for the user.
const KEEP: usize = 64;
/// Wait limit once the slot has stalled or failed: clean-up must not take as long again.
const BROKEN_LIMIT: Duration = Duration::from_secs(1);

/// Slots on whose interrupts this thread sleeps.
struct Led<'a>(Vec<&'a Dispatcher>);

impl Drop for Led<'_> {
    fn drop(&mut self) {
        for slot in &self.0 {
            slot.lock().leader = false;
            slot.changed.notify_all();
        }
    }
}

/// A command in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag(u32);

/// State of the rings, and of waiting threads.
pub(crate) struct State {
    rings: Rings,
    numbers: Numbers,
    next_tag: u32,
    pending: HashMap<u32, Pending>,
    done: HashMap<u32, Completion>,
    /// Accesses that wait for the pager.
    pub faults: VecDeque<Event>,
    /// Commands whose ends the pager waits for.
    pub flight: Vec<Tag>,
    /// The pending faults can be served only when something that the pager has begun has ended.
    pub stalled: bool,
    /// Accesses that the pager has put aside until a stream has their data, or their memory is free again.
    pub parked: usize,
    /// They are to be looked at again.
    pub poked: bool,
    /// The program has paused the app: that nothing happens is no error.
    pub paused: bool,
    /// The slot is held or isolated for a moment: its control register is not written for a pause meanwhile, but when that ends.
    pub held: bool,
    /// Reads that the pager waits for, those of them included that have ended since: these by their numbers, with the bytes of each.
    pub reading: usize,
    pub read: Vec<(u64, Result<usize>)>,
    /// Groups of changed pages that are being written while nobody waits for that, and whether one has been since.
    pub storing: usize,
    pub stored: bool,
    /// A thread serves faults.
    pub serving: bool,
    /// Interrupts the app has raised.
    pub irqs: u64,
    /// Flush events of the card; one may stand for several waiting flushes.
    pub flushes: u64,
    /// A guard has isolated the slot since its last reset.
    pub isolated: Option<EventCause>,
    /// Events that report errors.
    pub violations: VecDeque<Event>,
    /// Invalid entries.
    pub strays: u64,
    stopped: Option<&'static str>,
    broken: bool,
    /// Grows with whatever the slot does, and with what the host does for it: completions, events, pages read and written.
    pub activity: u64,
    leader: bool,
    armed: Option<(u16, u16)>,
}

struct Pending {
    command: Command,
    index: u16,
    abandoned: bool,
}

/// Dispatcher of one slot.
pub(crate) struct Dispatcher {
    pub card: Arc<Card>,
    pub slot: usize,
    state: Mutex<State>,
    changed: Condvar,
    memory: Mutex<Option<DmaBuffer>>,
}

impl Dispatcher {
    /// Allocates the rings and enables them.
    pub fn start(card: Arc<Card>, slot: usize) -> Result<Self> {
        // Rings of an earlier owner are stopped first.
        stop_rings(&card, slot)?;
        let buffer = card.dma_buffer(RINGS_BYTES as u64, DmaAccess::ReadWrite)?;
        let this = Self {
            state: Mutex::new(State {
                rings: Rings::new(Arc::clone(buffer.memory())),
                numbers: Numbers::default(),
                next_tag: 0,
                pending: HashMap::new(),
                done: HashMap::new(),
                faults: VecDeque::new(),
                flight: Vec::new(),
                stalled: false,
                parked: 0,
                poked: false,
                paused: false,
                held: false,
                reading: 0,
                read: Vec::new(),
                storing: 0,
                stored: false,
                serving: false,
                irqs: 0,
                flushes: 0,
                isolated: None,
                violations: VecDeque::new(),
                strays: 0,
                stopped: None,
                broken: false,
                activity: 0,
                leader: false,
                armed: None,
            }),
            changed: Condvar::new(),
            memory: Mutex::new(None),
            card,
            slot,
        };
        let iova = buffer.iova();
        *lock(&this.memory) = Some(buffer);
        this.enable(iova).inspect_err(|_| this.stop())?;
        Ok(this)
    }

    fn enable(&self, iova: u64) -> Result<()> {
        // Interrupts of an earlier owner are discarded.
        match self.card.pci().wait_irq(self.vectors(), Duration::ZERO) {
            Ok(_) | Err(PciError::Timeout(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let rings = [
            (VIA_SLOT_EVT_BASE_LO, VIA_SLOT_EVT_BASE_HI, VIA_SLOT_EVT_CFG, EVT_OFFSET),
            (VIA_SLOT_CPL_BASE_LO, VIA_SLOT_CPL_BASE_HI, VIA_SLOT_CPL_CFG, CPL_OFFSET),
            (VIA_SLOT_CMD_BASE_LO, VIA_SLOT_CMD_BASE_HI, VIA_SLOT_CMD_CFG, CMD_OFFSET),
        ];
        for (low, high, config, offset) in rings {
            let base = iova + offset as u64;
            self.card.write_slot(self.slot, low, base as u32)?;
            self.card.write_slot(self.slot, high, (base >> 32) as u32)?;
            self.card.write_slot(self.slot, config, VIA_SLOT_CMD_CFG_ENABLE_MASK | RING_LOG2)?;
        }
        Ok(())
    }

    /// Disables the rings. Their memory stays mapped if the card does not stop using it.
    pub fn stop(&self) {
        let Some(buffer) = lock(&self.memory).take() else { return };
        if let Err(error) = stop_rings(&self.card, self.slot) {
            error.log_unclean(self.slot, "the rings of the slot could not be stopped");
            buffer.retire();
        }
    }

    /// Locks the state.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Wakes every waiter, to check again.
    pub fn notify(&self) {
        self.changed.notify_all();
    }

    /// Submits commands in order and rings the doorbell. Waits while the ring is full.
    pub fn submit(&self, commands: &[Command]) -> Result<Vec<Tag>> {
        let mut tags = Vec::with_capacity(commands.len());
        let mut rest = commands;
        while !rest.is_empty() {
            let pushed = self.wait("space in the command ring", |st| {
                (st.rings.room() > 0).then(|| {
                    let count = rest.len().min(usize::from(st.rings.room()));
                    tags.extend(rest[..count].iter().map(|command| self.push(st, command)));
                    // Under the lock, so that doorbells of two threads stay in order.
                    let bell = self.card.write_bell(self.slot, VIA_BELL_CMD_TAIL, st.rings.cmd_tail().into());
                    bell.map(|()| count)
                })
            })??;
            rest = &rest[pushed..];
        }
        Ok(tags)
    }

    /// Puts a command into the ring, which has space.
    fn push(&self, st: &mut State, command: &Command) -> Tag {
        let tag = st.push(command);
        self.card.tell(Observed::Submitted { slot: self.slot, tag: tag.0, command: *command });
        tag
    }

    /// Waits for all commands and returns their completions in the order given.
    pub fn collect(&self, what: &str, tags: &[Tag]) -> Result<Vec<Completion>> {
        self.wait(what, |st| tags.iter().all(|tag| st.is_done(*tag)).then(|| st.take(tags)))
    }

    /// Submits commands and waits for all of them.
    pub fn run(&self, what: &str, commands: &[Command]) -> Result<Vec<Completion>> {
        let tags = self.submit(commands)?;
        self.collect(what, &tags)
    }

    /// Marks commands whose completions are no longer needed.
    pub fn abandon(&self, tags: &[Tag]) {
        let mut st = self.lock();
        for tag in tags {
            st.done.remove(&tag.0);
            if let Some(pending) = st.pending.get_mut(&tag.0) {
                pending.abandoned = true;
            }
        }
    }

    /// Waits until `ready` returns a result.
    pub fn wait<T>(&self, what: &str, ready: impl FnMut(&mut State) -> Option<T>) -> Result<T> {
        match self.wait_until(what, None, ready)? {
            Some(response) => Ok(response),
            None => unreachable!("a wait without an end returns a result or an error"),
        }
    }

    /// Waits until `ready` returns a result, or until `end`: then `None`.
    pub fn wait_until<T>(
        &self,
        what: &str,
        end: Option<Instant>,
        ready: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Option<T>> {
        self.card.check_process()?;
        self.wait_watching(&mut self.watch(), what, end, ready)
    }

    /// For a wait in several parts: the time without activity is counted across them.
    pub fn watch(&self) -> Watch {
        Watch::new(&self.lock())
    }

    /// Wakes the thread that sleeps on the slot's interrupts, by a no-operation command.
    pub fn wake(&self) {
        let mut st = self.lock();
        if st.leader && st.rings.room() > 0 {
            let Tag(tag) = self.push(&mut st, &Command::nop());
            if let Some(pending) = st.pending.get_mut(&tag) {
                pending.abandoned = true;
            }
            // If this fails, the sleeper's own next access to the card fails too.
            if let Err(error) = self.card.write_bell(self.slot, VIA_BELL_CMD_TAIL, st.rings.cmd_tail().into())
            {
                tracing::debug!(%error, slot = self.slot, "the sleeping thread could not be woken");
            }
        }
        drop(st);
        self.notify();
    }

    /// Has the accesses that wait for a stream looked at again.
    pub fn poke(&self) {
        self.lock().poked = true;
        self.wake();
    }

    /// A read of the pager has ended.
    pub fn has_read(&self, number: u64, got: Result<usize>) {
        let mut st = self.lock();
        st.read.push((number, got));
        // Who sleeps has been woken for those before it.
        let first = st.read.len() == 1;
        drop(st);
        if first {
            self.wake();
        }
    }

    /// Changed pages are being written, and nobody waits for that.
    pub fn begins_to_store(&self) {
        self.lock().storing += 1;
    }

    /// They have been written, or could not be.
    pub fn has_stored(&self) {
        let mut st = self.lock();
        st.storing -= 1;
        st.stored = true;
        st.activity += 1;
        drop(st);
        self.wake();
    }

    /// As [`Dispatcher::wait_until`], with an existing watch.
    pub fn wait_watching<T>(
        &self,
        watch: &mut Watch,
        what: &str,
        end: Option<Instant>,
        mut ready: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Option<T>> {
        let mut st = self.lock();
        loop {
            st.drain(self)?;
            if let Some(response) = ready(&mut st) {
                return Ok(Some(response));
            }
            if let Some(why) = st.stopped {
                return Err(Error::RingStopped { slot: self.slot, why: why.into() });
            }
            let now = Instant::now();
            if end.is_some_and(|end| now >= end) {
                return Ok(None);
            }
            let slice = watch.slice(self, &mut st, what, now)?;
            let nap = end.map_or(slice, |end| slice.min(end - now));
            if st.leader {
                st = self.changed.wait_timeout(st, nap).unwrap_or_else(|e| e.into_inner()).0;
                continue;
            }
            st.arm(self)?;
            st.leader = true;
            drop(st);
            let fired = self.card.pci().wait_irq(self.vectors(), nap);
            st = self.lock();
            st.leader = false;
            self.changed.notify_all();
            match fired {
                Ok(_) => st.armed = None,
                Err(PciError::Timeout(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sleeps until there is something new of one of these slots, or until `end`, or for a while.
    pub fn sleep(slots: &mut [(&Self, Watch)], stall: Stall, what: &str, end: Option<Instant>) -> Result<()> {
        let Some(&(first, _)) = slots.first() else { return Ok(()) };
        let now = Instant::now();
        let mut nap = end.map_or(Duration::MAX, |end| end.saturating_duration_since(now));
        let mut led = Led(Vec::new());
        let (mut late, mut active) = (None, false);
        for (slot, watch) in slots.iter_mut() {
            let mut st = slot.lock();
            if let Some(why) = st.stopped {
                return Err(Error::RingStopped { slot: slot.slot, why: why.into() });
            }
            if !st.serving && st.wants_service() {
                return Ok(()); // since the caller looked
            }
            match stall {
                Stall::OfOne => nap = nap.min(watch.slice(slot, &mut st, what, now)?),
                Stall::OfAll => {
                    let (limit, slice) = watch.look(slot, &mut st, now)?;
                    nap = nap.min(slice);
                    if now.duration_since(watch.since) < limit {
                        active = true;
                    } else {
                        late.get_or_insert(limit);
                    }
                }
            }
            if !st.leader {
                st.arm(slot)?;
                st.leader = true;
                led.0.push(slot);
            }
        }
        if let (Some(after), false) = (late, active) {
            slots.iter().for_each(|(slot, _)| slot.lock().broken = true);
            return Err(Error::Stalled { slot: first.slot, what: what.into(), after });
        }
        let vectors = led.0.iter().fold(0, |all, slot| all | slot.vectors());
        match first.card.pci().wait_irq(vectors, nap) {
            Ok(fired) => {
                let fired = |slot: &&&Self| slot.vectors() & fired != 0;
                led.0.iter().filter(fired).for_each(|slot| slot.lock().armed = None);
                Ok(())
            }
            Err(PciError::Timeout(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Vectors of this slot.
    fn vectors(&self) -> u64 {
        0b11 << (2 * self.slot)
    }

    /// Counters that change with any activity of the slot, and whether the app reports that it computes.
    fn vital_signs(&self) -> Result<([u32; 6], bool)> {
        let registers = [
            VIA_SLOT_RD_TRANS,
            VIA_SLOT_WR_TRANS,
            VIA_SLOT_BEATS_IN,
            VIA_SLOT_BEATS_OUT,
            VIA_SLOT_RD_BEATS,
            VIA_SLOT_WR_BEATS,
        ];
        let mut signs = [0; 6];
        for (sign, register) in signs.iter_mut().zip(registers) {
            *sign = self.card.read_slot(self.slot, register)?;
        }
        let status = self.card.read_slot(self.slot, VIA_SLOT_STATUS)?;
        Ok((signs, status & VIA_SLOT_STATUS_BUSY_MASK != 0))
    }

    /// Converts the status of a completion to an error that names the actual cause.
    pub fn check(&self, what: &str, completion: &Completion) -> Result<()> {
        if completion.status == Status::Ok {
            return Ok(());
        }
        self.check_alive()?;
        Err(Error::Command { slot: self.slot, what: what.into(), status: completion.status })
    }

    /// Fails if the slot is isolated or a ring is stopped.
    pub fn check_alive(&self) -> Result<()> {
        let slot = self.slot;
        let status = self.card.read_slot(slot, VIA_SLOT_STATUS)?;
        if status & VIA_SLOT_STATUS_ISOLATED_MASK != 0 {
            let cause = EventCause::from((status >> VIA_SLOT_STATUS_CAUSE_LSB) as u8);
            return Err(Error::Isolated { slot, cause });
        }
        let rings = self.card.read_slot(slot, VIA_SLOT_RING_STATUS)?;
        match ring_trouble(rings) {
            Some(why) => Err(Error::RingStopped { slot, why: why.into() }),
            None => Ok(()),
        }
    }
}

/// When a wait for several slots ends for lack of activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stall {
    /// One of them has had none for too long: each works for itself.
    OfOne,
    /// None of them has had any: each depends on the others.
    OfAll,
}

/// Detects a lack of activity.
pub(crate) struct Watch {
    /// Waiting for an external party, so that inactivity of the slot is no error.
    pub outside: bool,
    since: Instant,
    activity: u64,
    probed: Instant,
    signs: Option<[u32; 6]>,
    busy: bool,
}

impl Watch {
    fn new(st: &State) -> Self {
        let now = Instant::now();
        Self { outside: false, since: now, activity: st.activity, probed: now, signs: None, busy: false }
    }

    /// How long to sleep at most; an error if the slot has been without activity for too long.
    fn slice(&mut self, slot: &Dispatcher, st: &mut State, what: &str, now: Instant) -> Result<Duration> {
        let (limit, slice) = self.look(slot, st, now)?;
        if now.duration_since(self.since) >= limit {
            st.broken = true;
            return Err(Error::Stalled { slot: slot.slot, what: what.into(), after: limit });
        }
        Ok(slice)
    }

    /// Restarts the time upon activity. Returns the limit in force and how long to sleep at most. Registers
    /// are read only after long inactivity.
    fn look(
        &mut self,
        dispatcher: &Dispatcher,
        st: &mut State,
        now: Instant,
    ) -> Result<(Duration, Duration)> {
        let timeouts = dispatcher.card.timeouts();
        if st.broken {
            if st.waits_for_disk() {
                self.since = now; // what is waited for is a disk
            }
            let limit = BROKEN_LIMIT.min(timeouts.stall);
            return Ok((limit, limit));
        }
        let slice = timeouts.stall / 4;
        if st.activity != self.activity || self.outside || st.paused || st.parked > 0 || st.waits_for_disk() {
            (self.activity, self.since, self.probed, self.busy) = (st.activity, now, now, false);
        } else if now.duration_since(self.probed) >= slice {
            self.probed = now;
            let (signs, busy) = dispatcher.vital_signs()?;
            if self.signs.is_some_and(|old| old != signs) {
                self.since = now;
            }
            (self.signs, self.busy) = (Some(signs), busy);
            let rings = dispatcher.card.read_slot(dispatcher.slot, VIA_SLOT_RING_STATUS)?;
            if let Some(why) = ring_trouble(rings) {
                return Err(Error::RingStopped { slot: dispatcher.slot, why: why.into() });
            }
        }
        Ok((if self.busy { timeouts.busy.max(timeouts.stall) } else { timeouts.stall }, slice))
    }
}

impl State {
    fn push(&mut self, command: &Command) -> Tag {
        let mut tag = self.next_tag;
        while self.pending.contains_key(&tag) || self.done.contains_key(&tag) {
            tag = tag.wrapping_add(1);
        }
        self.next_tag = tag.wrapping_add(1);
        let index = self.rings.push(command, tag).expect("the caller has checked the space");
        self.pending.insert(tag, Pending { command: *command, index, abandoned: false });
        Tag(tag)
    }

    /// Takes all entries from the rings.
    pub fn drain(&mut self, dispatcher: &Dispatcher) -> Result<()> {
        while let Some(completion) = self.rings.pop_completion() {
            self.activity += 1;
            dispatcher.card.tell(Observed::Completed { slot: dispatcher.slot, completion });
            self.complete(dispatcher.slot, completion);
        }
        while let Some(event) = self.rings.pop_event() {
            self.activity += 1;
            dispatcher.card.tell(Observed::Posted { slot: dispatcher.slot, event });
            self.event(dispatcher.slot, event);
        }
        Ok(())
    }

    fn complete(&mut self, slot: usize, mut completion: Completion) {
        let matches = |pending: &Pending| pending.command.op as u8 == completion.op;
        match self.pending.get(&completion.tag) {
            Some(pending) if matches(pending) => {
                self.rings.fetched(pending.index);
                // What the card does not know has not come to the MMU.
                let of_mmu = matches!(pending.command.op, Op::Map | Op::Unmap | Op::Scan | Op::Deny);
                if of_mmu && completion.status != Status::BadOp {
                    completion.number = self.numbers.of_command(completion.number as u16);
                }
                if !pending.abandoned {
                    self.done.insert(completion.tag, completion);
                }
                self.pending.remove(&completion.tag);
            }
            _ => {
                self.strays += 1;
                tracing::warn!(
                    slot,
                    ?completion,
                    "the card completed a command that is not outstanding: ignored"
                );
            }
        }
    }

    fn event(&mut self, slot: usize, event: Event) {
        match event.cause {
            EventCause::Miss | EventCause::Perm | EventCause::Table => {
                let number = self.numbers.before_miss(event.number as u16);
                self.faults.push_back(Event { number, ..event });
                self.stalled = false;
            }
            EventCause::Irq => self.irqs += 1,
            EventCause::Flush => self.flushes += 1,
            EventCause::Unknown(_) | EventCause::Host => {
                self.strays += 1;
                tracing::warn!(slot, ?event, "the card posted an invalid event: ignored");
            }
            cause => {
                tracing::warn!(slot, ?event, "{cause}");
                if cause == EventCause::Ring {
                    self.stopped = Some(match event.info {
                        0 => "the command ring was stopped: its doorbell jumped",
                        1 => "the command ring was stopped: it could not be read",
                        _ => "the completion ring was stopped: it could not be written",
                    });
                }
                if !matches!(cause, EventCause::Ring | EventCause::Bounds) {
                    self.isolated = Some(cause);
                }
                if self.violations.len() == KEEP {
                    self.violations.pop_front();
                }
                self.violations.push_back(event);
            }
        }
    }

    /// Writes the consumer indices to the card and requests an interrupt for the next entry. Only a thread that is about to
    /// sleep does this: if the index moved while another one sleeps, the card could drop the interrupt that it waits for.
    fn arm(&mut self, dispatcher: &Dispatcher) -> Result<()> {
        let heads = (self.rings.cpl_head(), self.rings.evt_head());
        if self.armed == Some(heads) {
            return Ok(());
        }
        let (card, slot) = (&dispatcher.card, dispatcher.slot);
        card.write_bell(slot, VIA_BELL_CPL_HEAD, u32::from(heads.0) | VIA_BELL_CPL_HEAD_ARM_MASK)?;
        card.write_bell(slot, VIA_BELL_EVT_HEAD, u32::from(heads.1) | VIA_BELL_EVT_HEAD_ARM_MASK)?;
        self.armed = Some(heads);
        Ok(())
    }

    /// Control value of a slot that runs, or is paused.
    pub fn running(&self) -> u32 {
        VIA_SLOT_CTRL_RUN_MASK | if self.paused { VIA_SLOT_CTRL_QUIESCE_MASK } else { 0 }
    }

    /// Whether the command is complete.
    pub fn is_done(&self, tag: Tag) -> bool {
        self.done.contains_key(&tag.0)
    }

    /// Takes an available completion.
    pub fn take_one(&mut self, tag: Tag) -> Option<Completion> {
        self.done.remove(&tag.0)
    }

    /// Takes the completions of commands if all are complete.
    pub fn take_all(&mut self, tags: &[Tag]) -> Option<Vec<Completion>> {
        tags.iter().all(|tag| self.is_done(*tag)).then(|| self.take(tags))
    }

    /// How often the app has raised its interrupt, if more often than `seen`.
    pub fn irqs_after(&self, slot: usize, seen: u64) -> Result<Option<u64>> {
        match self.isolated {
            Some(cause) => Err(Error::Isolated { slot, cause }),
            None => Ok((self.irqs > seen).then_some(self.irqs)),
        }
    }

    /// Whether the pager has something to do.
    pub fn wants_service(&self) -> bool {
        self.has_landed()
            || self.poked
            || self.stored
            || !self.read.is_empty()
            || !self.faults.is_empty() && !self.stalled
    }

    /// Whether something is being read or written by others than the card.
    pub fn waits_for_disk(&self) -> bool {
        self.reading > self.read.len() || self.storing > 0
    }

    /// Whether something that the pager has begun has ended.
    pub fn has_landed(&self) -> bool {
        self.flight.iter().any(|&tag| self.is_done(tag))
    }

    fn take(&mut self, tags: &[Tag]) -> Vec<Completion> {
        tags.iter().filter_map(|tag| self.take_one(*tag)).collect()
    }

    /// The slot was reset: time-outs have their normal length again, and earlier errors of the app are dropped.
    pub fn revive(&mut self, dispatcher: &Dispatcher) -> Result<()> {
        self.drain(dispatcher)?;
        self.broken = false;
        self.isolated = None;
        self.faults.clear();
        Ok(())
    }
}

fn ring_trouble(status: u32) -> Option<&'static str> {
    let set = |mask: u32| status & mask != 0;
    if set(VIA_SLOT_RING_STATUS_CMD_TAIL_ERR_MASK) {
        Some("the command ring was stopped: its doorbell jumped")
    } else if set(VIA_SLOT_RING_STATUS_CMD_BUS_ERR_MASK) {
        Some("the command ring was stopped: it could not be read")
    } else if set(VIA_SLOT_RING_STATUS_CPL_ERR_MASK) {
        Some("the completion ring was stopped: it could not be written")
    } else if set(VIA_SLOT_RING_STATUS_EVT_ERR_MASK) {
        Some("the event ring was stopped: it could not be written")
    } else {
        None
    }
}

/// Disables all rings of a slot and waits until the card does not use them any more.
fn stop_rings(card: &Card, slot: usize) -> Result<()> {
    for config in [VIA_SLOT_CMD_CFG, VIA_SLOT_CPL_CFG, VIA_SLOT_EVT_CFG] {
        card.write_slot(slot, config, RING_LOG2)?;
    }
    let on = VIA_SLOT_RING_STATUS_CMD_ON_MASK
        | VIA_SLOT_RING_STATUS_CPL_ON_MASK
        | VIA_SLOT_RING_STATUS_EVT_ON_MASK;
    let after = card.timeouts().control;
    let off = poll(after, || {
        let status = card.read_slot(slot, VIA_SLOT_RING_STATUS)?;
        Ok((status & on == 0).then_some(()))
    })?;
    off.ok_or_else(|| Error::Stalled { slot, what: "stopping the rings".into(), after })
}
