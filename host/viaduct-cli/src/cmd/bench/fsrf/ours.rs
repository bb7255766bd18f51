// SPDX-License-Identifier: Apache-2.0
//! Runs tasks in the slots of this card.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use viaduct::desc::{Command, Completion, Status};
use viaduct::{Advice, Awaited, MapOptions, Mapping, Placement, Prot, SharedBytes, Slot, Source, Tag};
use viaduct_build::{Project, Variant};

use super::disk::{Disk, Part, Times};
use super::paging::Case;
use super::work::{Done, MoveIn, PAGE, Ran, Task, Work};
use super::{Mode, OURS};
use crate::card::{CardArgs, Simulated};
use crate::cmd::bench::{PATIENCE, register, set, wrong};
use crate::fail::{Failure, Result, at};
use crate::job::set_registers;

/// A slot and its task.
struct Place<'a> {
    task: &'a Task,
    slot: Slot,
    mapping: Mapping,
    bytes: SharedBytes,
    runs: Runs,
    /// Bytes and id of each move out that has ended, and the cycle in which the last one did.
    moved: Vec<(u32, u8)>,
    written: u64,
}

/// What a slot waits for.
enum Runs {
    Moves(Feed),
    /// More interrupts than so many, of an app that works on its memory.
    App(u64),
    Ended,
}

/// Runs tasks, each in a slot with its share of the channels: all four slots have one each. Hot: pages of 2 MiB, all loaded and mapped
/// before. Otherwise pages of 4 KiB, since the data is smaller than the paper's, as large ones are of the other systems.
pub fn run(
    card: &CardArgs,
    project: &Project,
    tasks: &[&Task],
    case: Case,
    host_us: f64,
    disk: Option<Times>,
    mode: Mode,
) -> Result<Vec<Ran>> {
    let opened = card.open_with(project, Variant::Fast, |_| ())?;
    let Some(sim) = &opened.sim else { return Err(Failure::Run("not a simulated card".into())) };
    let disk = disk.map(|times| Arc::new(Disk::new(sim.function.clone(), times)));
    let mut places: Vec<Place> = Vec::new();
    for (s, &task) in tasks.iter().enumerate() {
        let part = disk.as_ref().map(|disk| Part { disk: disk.clone(), slot: s });
        let place = Place::new(opened.card.slot(s)?, task, case, part, mode)?;
        place.slot.set_service_time(Duration::from_nanos((host_us * 1000.0) as u64));
        places.push(place);
    }
    // Now that all have mappings, none takes the share of another.
    for place in &places {
        if case != Case::Hot {
            place.mapping.advise(mode.advice.unwrap_or_else(|| place.task.work.advice()))?;
        }
        if matches!(case, Case::Hot | Case::Over) {
            place.mapping.advise(Advice::WillNeed)?;
        }
    }
    let stats = |places: &[Place]| places.iter().map(|p| p.slot.pager_stats()).collect::<Vec<_>>();
    let before = stats(&places);
    // A page may be loaded before anything is transferred.
    let begun = (case != Case::Hot).then(|| sim.function.now());
    for place in places.iter().rev() {
        place.start()?;
    }
    for place in &mut places {
        place.submit()?;
    }
    let mut counted = None;
    loop {
        let open: Vec<usize> = (0..places.len()).filter(|s| !places[*s].ended()).collect();
        let awaited: Vec<_> = open.iter().map(|s| (&places[*s].slot, places[*s].awaits())).collect();
        let Some(next) = viaduct::wait_for_one(&awaited, PATIENCE)? else {
            match open.first() {
                None => break,
                Some(s) => {
                    let name = places[*s].task.work.name;
                    return Err(Failure::Run(format!("{name}: it does not end")));
                }
            }
        };
        places[open[next]].go_on()?;
        if mode.first && counted.is_none() && places[open[next]].ended() {
            counted = Some(count(&places, sim, begun));
        }
    }
    let mut all = counted.unwrap_or_else(|| count(&places, sim, begun));
    let after = stats(&places);
    for (s, (place, ran)) in places.into_iter().zip(&mut all).enumerate() {
        ran.loads = after[s].pages_in - before[s].pages_in;
        ran.stores = after[s].pages_out - before[s].pages_out;
        ran.overflowed = after[s].overflowed - before[s].overflowed;
        if case == Case::Hot && ran.loads > 0 {
            return wrong(&format!("{}: pages were not resident", place.task.work.name));
        }
        ran.misses = place.check()?;
    }
    Ok(all)
}

/// What each slot has transferred until it ended, or until now.
fn count(places: &[Place], sim: &Simulated, begun: Option<u64>) -> Vec<Ran> {
    let (counters, now) = (sim.function.counters(), sim.function.now());
    let ran = |(s, place): (usize, &Place)| {
        let last = if place.ended() { counters.slot_last[s].max(place.written) } else { now };
        Ran {
            cycles: last - begun.unwrap_or(counters.slot_first[s]) + 1,
            beats_in: counters.slot_beats_in[s],
            beats_out: counters.slot_beats_out[s],
            ..Ran::default()
        }
    };
    places.iter().enumerate().map(ran).collect()
}

impl<'a> Place<'a> {
    /// Loads the app into the slot, and maps its memory.
    fn new(slot: Slot, task: &'a Task, case: Case, part: Option<Part>, mode: Mode) -> Result<Self> {
        let Task { work, image, .. } = task;
        let app = &work.app;
        slot.load(&std::fs::read(&image.container).map_err(at(image.container.display()))?)?;
        set_registers(&slot, app, &work.values)?;
        let bytes = SharedBytes::new(work.memory.clone());
        // A page is in one channel.
        let huge = case == Case::Hot && mode.placement != Placement::All;
        let options = MapOptions::new(Prot::READ_WRITE).huge(huge).placement(mode.placement);
        slot.set_frame_budget(case.frames(work).map_or(u64::MAX, |frames| frames * PAGE));
        let source = Source::bytes(bytes.clone());
        let source = match part {
            Some(part) => source.on(Arc::new(part)),
            None => source,
        };
        let mapping = slot.map(source, work.memory.len() as u64, options)?;
        if let Some(port) = &app.memory {
            for (name, value) in [(&port.base, mapping.va()), (&port.bytes, mapping.len())] {
                if let Some(name) = name {
                    set(&slot, app, name, value)?;
                }
            }
        }
        let runs = match work.streams() {
            true => Runs::Moves(Feed::new(work, mapping.va())),
            false => Runs::App(slot.irqs()),
        };
        Ok(Self { task, slot, mapping, bytes, runs, moved: Vec::new(), written: 0 })
    }

    /// Begins an app that works on its memory.
    fn start(&self) -> Result {
        let app = &self.task.work.app;
        let start = app.memory.as_ref().and_then(|m| m.start.as_deref()).unwrap_or("start");
        match self.runs {
            Runs::App(_) => Ok(self.slot.write_register(register(app, start)?.offset, 1)?),
            _ => Ok(()),
        }
    }

    /// Submits moves, as many as there is room for.
    fn submit(&mut self) -> Result {
        if let Runs::Moves(feed) = &mut self.runs {
            feed.submit(&self.slot)?;
            if feed.ended() {
                self.runs = Runs::Ended;
            }
        }
        Ok(())
    }

    fn ended(&self) -> bool {
        matches!(self.runs, Runs::Ended)
    }

    fn awaits(&self) -> Awaited<'_> {
        match &self.runs {
            Runs::Moves(feed) => Awaited::Commands(feed.next()),
            Runs::App(seen) => Awaited::Irq(*seen),
            Runs::Ended => Awaited::Commands(&[]),
        }
    }

    /// Goes on: what was awaited has come.
    fn go_on(&mut self) -> Result {
        match &mut self.runs {
            Runs::Moves(feed) => {
                for c in feed.take(&self.slot)? {
                    self.written = self.written.max(c.time);
                    self.moved.push((c.bytes, c.info as u8));
                }
            }
            Runs::App(_) | Runs::Ended => self.runs = Runs::Ended,
        }
        self.submit()
    }

    /// Compares what the slot has done with the golden model; its misses.
    fn check(self) -> Result<u64> {
        let work = &self.task.work;
        let mut registers = BTreeMap::new();
        for name in work.results() {
            registers.insert(name.clone(), self.slot.read_wide(register(&work.app, &name)?)?);
        }
        let translated = self.slot.counters()?;
        self.mapping.unmap()?;
        work.check(&Done { memory: self.bytes.to_vec(), registers, moved: self.moved }, OURS)?;
        Ok(u64::from(translated.rd_miss) + u64::from(translated.wr_miss))
    }
}

/// The moves of a slot, as many under way as a mover holds.
struct Feed {
    ins: VecDeque<Command>,
    outs: VecDeque<Command>,
    /// Under way: in, out.
    tags: [Vec<Tag>; 2],
}

/// Moves that a mover holds, and how many of them are waited for at a time.
const HELD: usize = 16;
const AT_ONCE: usize = 4;

impl Feed {
    fn new(work: &Work, va: u64) -> Self {
        let into = |m: &MoveIn| {
            let command = Command::move_in(0, va + m.at, m.bytes, m.last);
            Command { id: m.id, ..command }
        };
        Self {
            ins: work.ins.iter().map(into).collect(),
            outs: work.outs.iter().map(|(at, bytes)| Command::move_out(0, va + at, *bytes)).collect(),
            tags: [Vec::new(), Vec::new()],
        }
    }

    fn ended(&self) -> bool {
        self.ins.is_empty() && self.outs.is_empty() && self.tags.iter().all(Vec::is_empty)
    }

    fn submit(&mut self, slot: &Slot) -> Result {
        for (tags, commands) in self.tags.iter_mut().zip([&mut self.ins, &mut self.outs]) {
            let count = commands.len().min(HELD - tags.len());
            let some: Vec<Command> = commands.drain(..count).collect();
            if !some.is_empty() {
                tags.extend(slot.submit(&some)?);
            }
        }
        Ok(())
    }

    /// What is waited for next: the oldest moves in, or when all are in the oldest ones out.
    fn next(&self) -> &[Tag] {
        let tags = &self.tags[self.way()];
        &tags[..tags.len().min(AT_ONCE)]
    }

    fn way(&self) -> usize {
        usize::from(self.tags[0].is_empty())
    }

    /// Takes the completions of those that were waited for; of moves out, which are those of the stream's output.
    fn take(&mut self, slot: &Slot) -> Result<Vec<Completion>> {
        let way = self.way();
        let count = self.tags[way].len().min(AT_ONCE);
        let some: Vec<Tag> = self.tags[way].drain(..count).collect();
        let done = slot.wait(&some)?;
        if let Some(failed) = done.iter().find(|c| c.status != Status::Ok) {
            return Err(Failure::Run(format!("a move has ended with {:?}", failed.status)));
        }
        Ok(if way == 1 { done } else { Vec::new() })
    }
}
