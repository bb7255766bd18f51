// SPDX-License-Identifier: Apache-2.0
//! A run of an app that works on mappings through its memory port.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::job::stream::abandon;
use crate::slot::mapping::Mapping;
use crate::slot::{ASK_STOP, Register, Slot, StopIf, check_stop};

/// Longest pause between two reads of the `done` register.
const LOOK_MAX: Duration = Duration::from_millis(100);

/// Registers for a range, from the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryRange {
    /// Virtual address of the first byte.
    pub va: u64,
    /// Bytes.
    pub len: u64,
    /// Register for the address.
    pub base: Register,
    /// Register for the number of bytes.
    pub bytes: Option<Register>,
}

impl MemoryRange {
    /// A whole mapping.
    pub fn of(mapping: &Mapping, base: Register, bytes: Option<Register>) -> Self {
        Self { va: mapping.va(), len: mapping.len(), base, bytes }
    }
}

/// A run: ranges, and the registers that start it and report its end.
pub struct MemoryJob<'a> {
    slot: &'a Slot,
    ranges: Vec<MemoryRange>,
    start: u32,
    done: Option<u32>,
    irq: bool,
    limit: Option<Duration>,
    stop: Option<StopIf<'a>>,
}

/// Results of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryReport {
    /// Card time from before the start to the detection of the end, in cycles.
    pub cycles: u64,
    /// Accesses that were denied (see [`Slot::take_denied`]).
    pub denied: u64,
}

impl<'a> MemoryJob<'a> {
    /// A run on a slot that holds a started app: writing 1 to the register at offset `start` begins it.
    pub fn new(slot: &'a Slot, start: u32) -> Self {
        Self { slot, ranges: Vec::new(), start, done: None, irq: false, limit: None, stop: None }
    }

    /// Passes a range to the app before it starts.
    pub fn range(mut self, range: MemoryRange) -> Self {
        self.ranges.push(range);
        self
    }

    /// Register that is not 0 once the app has finished. Without it the app's interrupt marks the end.
    pub fn done(mut self, offset: u32) -> Self {
        self.done = Some(offset);
        self
    }

    /// The app raises its interrupt when it has finished: it is not polled before. A simulated card then takes the same
    /// cycles every time.
    pub fn irq(mut self) -> Self {
        self.irq = true;
        self
    }

    /// Longest time for the run. Without it a run may take as long as the app shows activity.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Calls `stop` about ten times a second; `true` ends the run with [`Error::Stopped`].
    pub fn stop_if(mut self, stop: impl FnMut() -> bool + 'a) -> Self {
        self.stop = Some(Box::new(stop));
        self
    }

    /// Runs to the end, serving the app's faults. The app's changes are in the files after [`Mapping::sync`] or
    /// [`Mapping::unmap`]. After an error the app has been reset.
    pub fn run(mut self) -> Result<MemoryReport> {
        let slot = self.slot;
        let _call = slot.call("memory job");
        slot.check()?;
        for range in &self.ranges {
            slot.write_wide(range.base, &fit(range.va, range.base)?)?;
            if let Some(bytes) = range.bytes {
                slot.write_wide(bytes, &fit(range.len, bytes)?)?;
            }
        }
        let denied = slot.pager_stats().denied;
        let irqs = slot.irqs();
        let begin = slot.card().time()?;
        let ended = slot.write_register(self.start, 1).and_then(|()| self.wait(irqs));
        let timed = ended.and_then(|()| slot.card().time());
        match timed.and_then(|end| Ok((end - begin, slot.settled()?))) {
            Ok((cycles, stats)) => Ok(MemoryReport { cycles, denied: stats.denied - denied }),
            Err(error) => {
                abandon(slot, &[]);
                Err(error)
            }
        }
    }

    fn wait(&mut self, mut irqs: u64) -> Result<()> {
        let slot = self.slot;
        let timeouts = slot.card().timeouts();
        let begun = Instant::now();
        let look = timeouts.stall / 4;
        let by_irq = self.irq || self.done.is_none();
        let mut pause = if by_irq { look } else { Duration::from_millis(1) };
        let (mut alive, mut looked, mut signs) = (begun, begun, None);
        let mut activity = slot.activity();
        if self.stop.is_some() {
            pause = pause.min(ASK_STOP);
        }
        loop {
            let left = self.limit.map_or(pause, |limit| limit.saturating_sub(begun.elapsed()));
            let raised = slot.wait_irq(irqs, pause.min(left))?;
            irqs = raised.unwrap_or(irqs);
            if !by_irq {
                pause = (pause * 2).min(LOOK_MAX);
            }
            let ended = match self.done {
                Some(_) if by_irq && raised.is_none() => false,
                Some(done) => slot.read_register(done)? != 0,
                None => raised.is_some(),
            };
            if ended {
                return Ok(());
            }
            check_stop(&mut self.stop)?;
            let now = Instant::now();
            if let Some(limit) = self.limit.filter(|limit| now - begun >= *limit) {
                return Err(Error::Unfinished { slot: slot.index(), limit });
            }
            // Pages on their way to the card are activity, though the app stands still meanwhile. An access that waits for a
            // stream has a time limit of its own; of a disk the system has to say that it does not answer.
            let before = std::mem::replace(&mut activity, slot.activity());
            if activity != before || slot.waits_for_data() {
                alive = now;
            }
            if now - looked >= look {
                looked = now;
                slot.check()?;
                let seen = Some(slot.counters()?);
                if signs.is_some() && seen != signs {
                    alive = now;
                }
                signs = seen;
                let after = if slot.status()?.busy { timeouts.busy } else { timeouts.stall };
                if now - alive >= after {
                    return Err(self.too_long(after));
                }
            }
        }
    }

    fn too_long(&self, after: Duration) -> Error {
        Error::Stalled { slot: self.slot.index(), what: "waiting for the app to finish".into(), after }
    }
}

/// Little-endian bytes of a value, as many as the register has.
fn fit(value: u64, register: Register) -> Result<Vec<u8>> {
    let room = register.width.div_ceil(8) as usize;
    if register.width < 64 && value >> register.width != 0 {
        let (offset, width) = (register.offset, register.width);
        return Err(Error::Invalid(format!(
            "{value:#x} does not fit into the {width}-bit register at {offset:#x}; make it 64 bits wide"
        )));
    }
    Ok(value.to_le_bytes().into_iter().take(room).collect())
}
