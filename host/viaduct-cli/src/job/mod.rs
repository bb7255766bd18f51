// SPDX-License-Identifier: Apache-2.0
//! One run of an app: loading the image, registers, routes, and results.

mod check;
mod compare;
mod figures;
mod input;
mod json;
mod kept;
mod memory;
mod routes;

use std::collections::BTreeMap;

use viaduct::{
    JobReport, LaneJob, MapOptions, MemoryJob, MemoryRange, Progress, Prot, Slot, Source, StreamJob,
};
use viaduct_build::{Access, Manifest, Register};

pub use self::figures::Outcome;
pub use self::json::number;
use self::memory::Memory;
pub use self::routes::{Message, Routes};
use crate::card::{Opened, Simulated};
use crate::fail::{Failure, Result, usage};

/// Values of registers, little-endian words.
pub type Values = BTreeMap<String, Vec<u32>>;

/// An app of the run behind the first one.
pub struct Stage {
    pub app: Manifest,
    /// Values to write: the registers given by the user.
    pub given: Values,
    /// Values for the golden model: these and the reset values.
    pub values: Values,
}

/// A slot with an app in it.
pub struct Loaded<'a> {
    slot: Slot,
    /// Those of further apps, each of which gets what the one before gives, with the apps.
    then: Vec<(Slot, &'a Manifest)>,
    sim: Option<Simulated>,
    app: &'a Manifest,
    /// Ends a run that has no end of its own.
    until: Option<Until<'a>>,
}

type Until<'a> = Box<dyn Fn() -> bool + Send + Sync + 'a>;

/// Writes registers of the app in a slot.
pub fn set_registers(slot: &Slot, app: &Manifest, values: &Values) -> Result<()> {
    for register in &app.registers {
        if let Some(words) = values.get(&register.name) {
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            let room = register.width.div_ceil(8) as usize;
            slot.write_wide(location(register), &bytes[..room])?;
        }
    }
    Ok(())
}

impl<'a> Loaded<'a> {
    /// Claims a slot, loads the app's image and writes registers.
    pub fn new(
        opened: &Opened,
        slot: Option<usize>,
        app: &'a Manifest,
        image: &[u8],
        values: &Values,
    ) -> Result<Self> {
        let card = &opened.card;
        let slot = match slot {
            Some(index) if index >= card.info().slots => {
                return usage(format!(
                    "there is no slot {index}: the card has slots 0 to {}",
                    card.info().slots - 1
                ));
            }
            Some(index) => card.slot(index)?,
            None => card.any_slot()?,
        };
        slot.load(image)?;
        set_registers(&slot, app, values)?;
        Ok(Loaded { slot, then: Vec::new(), sim: opened.sim.clone(), app, until: None })
    }

    /// A run also ends when this returns true.
    pub fn until(&mut self, over: impl Fn() -> bool + Send + Sync + 'a) {
        self.until = Some(Box::new(over));
    }

    /// Adds an app behind the others, in a slot of its own.
    pub fn then(&mut self, stage: &'a Stage, image: &[u8]) -> Result<()> {
        let slot = self.slot.card().any_slot()?;
        slot.load(image)?;
        set_registers(&slot, &stage.app, &stage.given)?;
        self.then.push((slot, &stage.app));
        Ok(())
    }

    /// Number of the slot.
    pub fn index(&self) -> usize {
        self.slot.index()
    }

    /// Sends data through the app. Where ending signals are held back, one ends the run.
    pub fn run(&self, routes: &Routes, progress: impl FnMut(Progress) + Send) -> Result<Outcome> {
        let memory = match &routes.memory {
            Some(memory) => Some(self.memory_registers().and_then(|_| memory.begin())?),
            None => None,
        };
        let inputs = routes.read_files()?;
        let before = self.slot.counters()?;
        let begun = std::time::Instant::now();
        let link = |sim: &Simulated| sim.link_cycles();
        let link_before = self.sim.as_ref().map(link);
        let (mut bytes, mut cycles) = ((0, 0), 0);
        match (memory, routes.inputs.is_empty() && routes.outputs.is_empty()) {
            (None, _) => {
                let report = self.run_streams(routes, progress)?;
                (bytes, cycles) = ((report.bytes_in, report.bytes_out), report.cycles);
            }
            (Some(memory), true) => cycles = self.run_memory(memory)?,
            // Each job serves the faults of both while it waits.
            (Some(memory), false) => std::thread::scope(|scope| -> Result<()> {
                let other = scope.spawn(|| self.run_memory(memory));
                let report = self.run_streams(routes, progress);
                let ended =
                    other.join().map_err(|_| Failure::Run("the run of the memory port panicked".into()))?;
                let report = match (report, &ended) {
                    // The other job has the cause and has reset the slot.
                    (Err(error), Err(_)) if error.by_reset() => None,
                    (report, _) => Some(report?),
                };
                let memory_cycles = ended?;
                if let Some(report) = report {
                    (bytes, cycles) = ((report.bytes_in, report.bytes_out), report.cycles.max(memory_cycles));
                }
                Ok(())
            })?,
        }
        let seconds = begun.elapsed().as_secs_f64();
        routes.memory.as_ref().map(Memory::end).transpose()?;
        let counters = self.slot.counters()?.since(&before);
        let link_after = self.sim.as_ref().map(link);
        let link = link_after.zip(link_before).map(|(b, a)| (b.0 - a.0, b.1 - a.1));
        let mut registers = BTreeMap::new();
        let behind = self.then.iter().map(|(slot, app)| (slot, *app));
        for (place, (slot, app)) in std::iter::once((&self.slot, self.app)).chain(behind).enumerate() {
            for register in app.registers.iter().filter(|r| r.access == Access::Ro) {
                let value = slot.read_wide(location(register))?;
                let bytes = register.width.div_ceil(8) as usize;
                registers.insert(
                    register_name(place, app, &register.name),
                    value.into_iter().take(bytes).collect(),
                );
            }
        }
        let info = self.slot.card().info().clone();
        Ok(Outcome {
            slot: self.index(),
            bytes_in: bytes.0,
            bytes_out: bytes.1,
            cycles,
            seconds,
            counters,
            link,
            info,
            registers,
            inputs,
        })
    }

    fn run_streams(
        &self,
        routes: &Routes,
        progress: impl FnMut(Progress) + Send,
    ) -> viaduct::Result<JobReport> {
        if let Some(lanes) = &routes.lanes {
            let mut job = LaneJob::new(&self.slot, lanes.port, lanes.count)
                .on_progress(progress)
                .stop_if(crate::process::signals::waiting);
            for (_, from) in &routes.inputs {
                job = job.message(from.clone());
            }
            for (port, to, bytes) in &lanes.responses {
                job = job.output(*port, to.clone(), *bytes);
            }
            return job.run();
        }
        let over = || crate::process::signals::waiting() || self.until.as_ref().is_some_and(|over| over());
        let mut job = StreamJob::new(&self.slot).on_progress(progress).stop_if(over);
        job = self.then.iter().fold(job, |job, (slot, _)| job.then(slot));
        for (port, from) in &routes.inputs {
            job = job.input(*port, from.clone());
        }
        for (port, to, length) in &routes.outputs {
            job = job.output(*port, to.clone(), *length);
        }
        job.run()
    }

    /// The memory port, and its registers for the address and for the start.
    fn memory_registers(&self) -> Result<(&viaduct_build::Memory, &Register, &Register)> {
        let register = |name: &Option<String>| name.as_ref().and_then(|n| self.app.register(n));
        let Some(port) = &self.app.memory else {
            return usage(format!("app {} has no memory port", self.app.name));
        };
        let (Some(base), Some(start)) = (register(&port.base), register(&port.start)) else {
            return usage(format!(
                "app {}: its manifest names no registers for base and start of {}, so that only a program can run it",
                self.app.name, port.name
            ));
        };
        Ok((port, base, start))
    }

    /// Maps the file, lets the app work on it, and returns the cycles that took.
    fn run_memory(&self, (source, prot): (Source, Prot)) -> Result<u64> {
        let (port, base, start) = self.memory_registers()?;
        let len = source.len();
        let mapping = self.slot.map(source, len, MapOptions::new(prot))?;
        let register = |name: &Option<String>| name.as_ref().and_then(|n| self.app.register(n));
        let range = MemoryRange::of(&mapping, location(base), register(&port.bytes).map(location));
        let mut job =
            MemoryJob::new(&self.slot, start.offset).range(range).stop_if(crate::process::signals::waiting);
        if let Some(done) = register(&port.done) {
            job = job.done(done.offset);
        }
        let report = job.run()?;
        mapping.unmap()?;
        match report.denied {
            0 => Ok(report.cycles),
            n => Err(Failure::Run(format!(
                "{n} accesses of the app were outside the file, or writes to one given with --in only; give it a file that is large enough, with --out if the app \
                 changes it"
            ))),
        }
    }
}

/// Name of a register of one of several apps in sequence, counted from 0: of the first its own.
fn register_name(place: usize, app: &Manifest, register: &str) -> String {
    match place {
        0 => register.to_owned(),
        _ => format!("{}.{}.{register}", place + 1, app.name),
    }
}

fn location(register: &Register) -> viaduct::Register {
    viaduct::Register { offset: register.offset, width: register.width }
}
