// SPDX-License-Identifier: Apache-2.0
//! `viaduct bench fsrf`: the workloads of the FSRF paper in four slots at once, on this card and on the systems that the paper compares (its
//! Table 2): with all pages resident ("hot"), none of them, but all in host memory ("warm"), or fewer frames than pages ("oversubscribed").
//! The other systems have the same apps, movers, DRAM channels, link and clock.
//!
//! Counted is, for each slot, from the first transfer at the app's streams or memory port, or if pages are loaded from the beginning of the
//! run, to the last transfer, or until the last of its output is in memory, and the bytes that pass there; the throughput is that of all slots,
//! over their mean time, as in the paper (section 6.2).

mod paging;
mod record;
mod sweep;
mod systems;
mod work;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use viaduct::desc::Command;
use viaduct::{Advice, Awaited, MapOptions, Prot, SharedBytes, Source, Tag};
use viaduct_build::{Project, Variant};

use self::paging::{Case, Paging};
use self::record::{Key, Record, digest};
use self::sweep::{Point, Sweep};
use self::systems::SYSTEMS;
use self::work::{Done, NAMES, Ran, Sizes, Work};
use super::{Figure, PATIENCE, register, wrong};
use crate::card::CardArgs;
use crate::fail::{Failure, Result, usage};
use crate::job::set_registers;
use crate::plot::{Form, Kind, Plot};

const OURS: &str = "viaduct";
const MIB: f64 = 1048576.0;

/// What of it to measure; everything, if empty.
#[derive(clap::Args)]
pub struct Choice {
    /// For `fsrf`: this system only; may be given several times
    #[arg(long, value_name = "NAME")]
    system: Vec<String>,
    /// For `fsrf`: this workload only; may be given several times
    #[arg(long, value_name = "NAME")]
    workload: Vec<String>,
    /// For `fsrf`: which pages are in card memory
    #[arg(long, value_enum, default_value_t)]
    pages: Case,
    /// For `fsrf`: time that the host takes for a fault, in microseconds, apart from its accesses to the card
    #[arg(long, value_name = "TIME", default_value_t = 0.0, value_parser = microseconds)]
    host_us: f64,
    /// For `fsrf`: the paper's small sizes over this power of two, 1 to 32, and the reach of the other systems' TLBs over it
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = power, conflicts_with = "quick")]
    divide: u64,
    /// For `fsrf`: add each result to this file, and take from it those that the same build has measured before
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// For `fsrf`: measure with different values of this, on resident pages
    #[arg(long, value_enum, value_name = "WHAT")]
    sweep: Option<Sweep>,
}

fn microseconds(text: &str) -> std::result::Result<f64, String> {
    let time = text.parse::<f64>().map_err(|e| e.to_string())?;
    if (0.0..=1000.0).contains(&time) { Ok(time) } else { Err("give 0 to 1000".into()) }
}

fn power(text: &str) -> std::result::Result<u64, String> {
    let number = text.parse::<u64>().map_err(|e| e.to_string())?;
    if number.is_power_of_two() && number <= 32 {
        Ok(number)
    } else {
        Err("give 1, 2, 4, 8, 16 or 32".into())
    }
}

/// For tests.
const QUICK: Sizes = Sizes {
    stream: 64 << 10,
    message: 4 << 10,
    table: 32 << 10,
    updates: 256,
    random: 32 << 10,
    access: 64,
    blocks: [8, 64],
    ranks: [256, 1024],
    triangles: [64, 320],
    images: 1,
};
const QUICK_SCALE_LOG2: u32 = 10;

/// Measures the figures of `viaduct bench fsrf`.
pub fn fsrf(
    project: &Project,
    card: &CardArgs,
    choice: &Choice,
    quick: bool,
    plots: &mut Vec<Plot>,
) -> Result<Vec<Figure>> {
    let case = choice.pages;
    let takes_part = |s: &&systems::System| case == Case::Hot || s.pages(case, 0).is_some();
    let names = || [OURS].into_iter().chain(SYSTEMS.iter().filter(takes_part).map(|s| s.name));
    known("system", &choice.system, &names().collect::<Vec<_>>())?;
    known("workload", &choice.workload, &NAMES)?;
    let sweep = choice.sweep;
    if sweep.is_some() && case != Case::Hot {
        return usage("--sweep is of resident pages; leave --pages out");
    }
    if let Some(other) = choice.workload.iter().find(|name| !name.starts_with("rng"))
        && sweep == Some(Sweep::Access)
    {
        return usage(format!(
            "--sweep=access is of workloads \"rng read\" and \"rng write\", not of {other:?}"
        ));
    }
    let wanted = |list: &[String], name: &str| list.is_empty() || list.iter().any(|n| n == name);
    let profile = card.profile.clone().or(Some("f1".into()));
    let card = CardArgs { profile: profile.clone(), ..card.clone() };
    let board = crate::card::profile(profile.as_deref())?;
    let (sizes, scale_log2) = match quick {
        true => (QUICK, QUICK_SCALE_LOG2),
        false => (Sizes::small(choice.divide), choice.divide.ilog2()),
    };
    let mut record = choice.resume.as_deref().map(Record::open).transpose()?;
    let program = project.build_rivals(&mut crate::project::tell)?;
    let opened = card.open_with(project, Variant::Fast, |_| ())?;
    // As it runs: its file may have been replaced by a new build.
    let own = std::path::Path::new("/proc/self/exe");
    let points = sweep.map_or_else(|| vec![Point::default()], Sweep::points);
    let usual = |name: &&str| match sweep {
        Some(sweep) if choice.workload.is_empty() => sweep.workloads().contains(name),
        _ => wanted(&choice.workload, name),
    };
    let workloads: Vec<_> = NAMES.into_iter().filter(usual).collect();
    let systems: Vec<_> = names().filter(|system| wanted(&choice.system, system)).collect();
    let bar = bar((workloads.len() * points.len() * systems.len()) as u64);
    let reference = case.reference();
    let mut plot = match sweep {
        None => Plot::new(
            case.plot(),
            Form::Bars,
            case.title(),
            format!("four slots at once; bytes over the mean time of the slots, of system {reference}"),
            ["workload", case.axis()],
        ),
        Some(sweep) => Plot::new(
            sweep.plot(),
            Form::Lines,
            sweep.title(),
            format!("{}; bytes over the mean time of the slots", workloads.join(" and ")),
            sweep.axes(),
        ),
    };
    let mut figures = Vec::new();
    let mut ratios: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let all = workloads.iter().flat_map(|&name| points.iter().map(move |&point| (name, point)));
    // Of each system of the workload in turn, at the first point.
    let mut first: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, point) in all {
        bar.set_message(name);
        let label = sweep.map_or_else(String::new, |sweep| sweep.label(point));
        let mut work = Work::new(project, name, &point.sizes(&sizes))?;
        work.slots = point.slots;
        let build = || crate::project::build(project, &work.app, opened.card.info(), Variant::Fast);
        let image = bar.suspend(build)?;
        let built = match &record {
            Some(_) => digest([own, &project.card_object(Variant::Fast), &*program, &image.object])?,
            None => String::new(),
        };
        let mut rows = Vec::new();
        for &system in &systems {
            bar.set_message(format!("{name}: {system}"));
            let key = Key {
                build: built.clone(),
                profile: profile.clone().unwrap_or_default(),
                workload: name.to_owned(),
                system: system.to_owned(),
                pages: case.plot().to_owned(),
                host_us: choice.host_us.to_string(),
                sizes: match quick {
                    true => format!("quick{label}"),
                    false => format!("small/{}{label}", choice.divide),
                },
            };
            if let Some(ran) = record.as_ref().and_then(|record| record.find(&key)) {
                rows.push((system, ran));
                bar.inc(1);
                bar.reset_eta();
                continue;
            }
            let ran = match SYSTEMS.iter().find(|s| s.name == system) {
                Some(s) => {
                    let pages = s.pages(case, scale_log2);
                    let paging =
                        pages.and_then(|pages| Paging::new(pages, &work, case, choice.host_us, &opened));
                    s.run(&program, &board, &image.object, &work, scale_log2, paging)?
                }
                None => ours(&card, project, &image.container, &work, case, choice.host_us)?,
            };
            if let Some(record) = &mut record {
                record.add(key, &ran)?;
            }
            rows.push((system, ran));
            bar.inc(1);
        }
        let cycles = |ran: &[Ran]| ran.iter().map(|r| r.cycles).sum::<u64>() as f64 / ran.len() as f64;
        let physical = rows.iter().find(|(system, _)| *system == reference).map(|(_, ran)| cycles(ran));
        for (system, ran) in &rows {
            let beats: u64 = ran.iter().map(|r| r.beats_in + r.beats_out).sum();
            let value = (beats * work.of_beat) as f64 / cycles(ran);
            let mut note = format!("{:.0} MiB/s", value * f64::from(board.clk_khz) * 1000.0 / MIB);
            if let Some(physical) = physical {
                let ratio = physical / cycles(ran);
                note += &format!(", {ratio:.3} of {reference}");
                ratios.entry(system).or_default().push(ratio);
                if sweep.is_none() && *system != reference && *system != "direct" && !system.ends_with('+') {
                    plot.add(kind(system), system, name, 0.0, ratio);
                }
            }
            if let Some(sweep) = sweep {
                if point == points[0] {
                    first.insert(system, value);
                }
                let times = value / first[system];
                if sweep == Sweep::Slots {
                    note += &format!(", {times:.2} times one slot");
                }
                let series =
                    if workloads.len() > 1 { format!("{name}: {system}") } else { (*system).to_owned() };
                let (quantity, place) = sweep.place(point);
                let shown = if sweep == Sweep::Slots { times } else { value };
                plot.add(kind(system), &series, &place, quantity, shown);
            }
            note += &format!(", {:.0} cycles", cycles(ran));
            let sum = |of: fn(&Ran) -> u64| ran.iter().map(of).sum::<u64>();
            for (count, what) in [
                (sum(|r| r.misses), "misses"),
                (sum(|r| r.loads), "pages in"),
                (sum(|r| r.stores), "out"),
                (sum(|r| r.overflowed), "on the host"),
            ] {
                if count > 0 {
                    note += &format!(", {count} {what}");
                }
            }
            figures.push(Figure { what: format!("{name}{label}: {system}"), value, unit: "B/cycle", note });
        }
        if physical.is_some() && sweep.is_none() {
            plot.add(Kind::Limit, reference, name, 0.0, 1.0);
        }
    }
    for system in names().filter(|_| sweep.is_none()) {
        let Some(all) = ratios.get(system) else { continue };
        let value = (all.iter().map(|r| r.ln()).sum::<f64>() / all.len() as f64).exp();
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let note = format!("of {reference}, least {least:.3}");
        figures.push(Figure {
            what: format!("geometric mean of {}: {system}", all.len()),
            value,
            unit: "",
            note,
        });
    }
    plots.push(plot);
    Ok(figures)
}

/// Results, on a terminal.
fn bar(results: u64) -> ProgressBar {
    let bar = ProgressBar::new(results).with_finish(ProgressFinish::AndClear);
    match ProgressStyle::with_template("{bar:30} {pos} of {len} results, {msg}, {eta} left") {
        Ok(style) => bar.with_style(style.progress_chars("██░")),
        Err(_) => bar,
    }
}

/// Refuses names that there are not.
fn known(what: &str, given: &[String], names: &[&str]) -> Result {
    match given.iter().find(|name| !names.contains(&name.as_str())) {
        Some(name) => usage(format!("no {what} {name:?}; there are {}", names.join(", "))),
        None => Ok(()),
    }
}

fn kind(system: &str) -> Kind {
    if system == OURS { Kind::Ours } else { Kind::Rival }
}

/// A slot, its memory, and what that is mapped from.
type Place = (viaduct::Slot, viaduct::Mapping, SharedBytes);

/// Runs a workload in its slots of this card, each with its share of the channels: all four slots have one each. Hot: pages of 2 MiB, all
/// loaded and mapped before. Otherwise
/// pages of 4 KiB, since the data is smaller than the paper's, as large ones are of the other systems.
fn ours(
    card: &CardArgs,
    project: &Project,
    container: &std::path::Path,
    work: &Work,
    case: Case,
    host_us: f64,
) -> Result<Vec<Ran>> {
    let opened = card.open_with(project, Variant::Fast, |_| ())?;
    let Some(sim) = &opened.sim else { return Err(Failure::Run("not a simulated card".into())) };
    let image = std::fs::read(container).map_err(crate::fail::at(container.display()))?;
    let app = &work.app;
    let mut slots: Vec<Place> = Vec::new();
    for s in 0..work.slots {
        let slot = opened.card.slot(s)?;
        slot.load(&image)?;
        set_registers(&slot, app, &work.values)?;
        let bytes = SharedBytes::new(work.memory.clone());
        let options = MapOptions::new(Prot::READ_WRITE).huge(case == Case::Hot);
        slot.set_service_time(Duration::from_nanos((host_us * 1000.0) as u64));
        slot.set_frame_budget(case.frames(work).map_or(u64::MAX, |frames| frames * paging::PAGE));
        let mapping = slot.map(Source::bytes(bytes.clone()), work.memory.len() as u64, options)?;
        if let Some(port) = &app.memory {
            for (name, value) in [(&port.base, mapping.va()), (&port.bytes, mapping.len())] {
                if let Some(name) = name {
                    super::set(&slot, app, name, value)?;
                }
            }
        }
        slots.push((slot, mapping, bytes));
    }
    // Now that all have mappings, none takes the share of another.
    for (_, mapping, _) in &slots {
        if case != Case::Hot {
            mapping.advise(work.advice())?;
        }
        if case != Case::Warm {
            mapping.advise(Advice::WillNeed)?;
        }
    }
    let stats = |slots: &[Place]| slots.iter().map(|(slot, ..)| slot.pager_stats()).collect::<Vec<_>>();
    let before = stats(&slots);
    // A page may be loaded before anything is transferred.
    let begun = (case != Case::Hot).then(|| sim.function.now());
    let mut moved = vec![Vec::new(); work.slots];
    let mut written = vec![0; work.slots];
    if work.streams() {
        let mut feeds: Vec<Feed> =
            slots.iter().map(|(_, mapping, _)| Feed::new(work, mapping.va())).collect();
        for (feed, (slot, ..)) in feeds.iter_mut().zip(&slots) {
            feed.submit(slot)?;
        }
        loop {
            let open: Vec<usize> = (0..work.slots).filter(|s| !feeds[*s].ended()).collect();
            let awaited = |s: &usize| (&slots[*s].0, Awaited::Commands(feeds[*s].next()));
            let next = viaduct::wait_for_one(&open.iter().map(awaited).collect::<Vec<_>>(), PATIENCE)?;
            let Some(s) = next.map(|place| open[place]) else {
                match open.is_empty() {
                    true => break,
                    false => return Err(Failure::Run(format!("{}: a move does not end", work.name))),
                }
            };
            feeds[s].wait(&slots[s].0, &mut moved[s])?;
            feeds[s].submit(&slots[s].0)?;
        }
        written = feeds.iter().map(|feed| feed.written).collect();
    } else {
        let start = app.memory.as_ref().and_then(|m| m.start.as_deref()).unwrap_or("start");
        let seen: Vec<u64> = slots.iter().map(|(slot, ..)| slot.irqs()).collect();
        for (slot, ..) in slots.iter().rev() {
            slot.write_register(register(app, start)?.offset, 1)?;
        }
        let mut open: Vec<_> =
            slots.iter().zip(seen).map(|((slot, ..), seen)| (slot, Awaited::Irq(seen))).collect();
        while !open.is_empty() {
            match viaduct::wait_for_one(&open, PATIENCE)? {
                Some(place) => drop(open.remove(place)),
                None => return Err(Failure::Run(format!("{}: the app does not end", work.name))),
            }
        }
    }
    let counters = sim.function.counters();
    let after = stats(&slots);
    let loaded = |s: usize| after[s].pages_in - before[s].pages_in;
    if case == Case::Hot && (0..work.slots).any(|s| loaded(s) > 0) {
        return wrong(&format!("{}: pages were not resident", work.name));
    }
    let mut all = Vec::new();
    for (s, (slot, mapping, bytes)) in slots.into_iter().enumerate() {
        let mut registers = BTreeMap::new();
        for name in work.results() {
            registers.insert(name.clone(), slot.read_wide(register(app, &name)?)?);
        }
        let translated = slot.counters()?;
        mapping.unmap()?;
        let done = Done { memory: bytes.to_vec(), registers, moved: std::mem::take(&mut moved[s]) };
        work.check(&done, OURS)?;
        all.push(Ran {
            cycles: counters.slot_last[s].max(written[s]) - begun.unwrap_or(counters.slot_first[s]) + 1,
            beats_in: counters.slot_beats_in[s],
            beats_out: counters.slot_beats_out[s],
            misses: u64::from(translated.rd_miss) + u64::from(translated.wr_miss),
            loads: loaded(s),
            stores: after[s].pages_out - before[s].pages_out,
            overflowed: after[s].overflowed - before[s].overflowed,
        });
    }
    Ok(all)
}

/// The moves of a slot, as many under way as a mover holds.
struct Feed {
    ins: VecDeque<Command>,
    outs: VecDeque<Command>,
    /// Under way: in, out.
    tags: [Vec<Tag>; 2],
    /// Cycle in which the last move out ended.
    written: u64,
}

/// Moves that a mover holds, and how many of them are waited for at a time.
const HELD: usize = 16;
const AT_ONCE: usize = 4;

impl Feed {
    fn new(work: &Work, va: u64) -> Self {
        let into = |m: &work::MoveIn| {
            let command = Command::move_in(0, va + m.at, m.bytes, m.last);
            Command { id: m.id, ..command }
        };
        Self {
            ins: work.ins.iter().map(into).collect(),
            outs: work.outs.iter().map(|(at, bytes)| Command::move_out(0, va + at, *bytes)).collect(),
            tags: [Vec::new(), Vec::new()],
            written: 0,
        }
    }

    fn ended(&self) -> bool {
        self.ins.is_empty() && self.outs.is_empty() && self.tags.iter().all(Vec::is_empty)
    }

    fn submit(&mut self, slot: &viaduct::Slot) -> Result {
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

    /// Waits for them.
    fn wait(&mut self, slot: &viaduct::Slot, moved: &mut Vec<(u32, u8)>) -> Result {
        let way = self.way();
        let count = self.tags[way].len().min(AT_ONCE);
        let some: Vec<Tag> = self.tags[way].drain(..count).collect();
        let done = slot.wait(&some)?;
        if let Some(failed) = done.iter().find(|c| c.status != viaduct::desc::Status::Ok) {
            return Err(Failure::Run(format!("a move has ended with {:?}", failed.status)));
        }
        if way == 1 {
            self.written = done.iter().map(|c| c.time).fold(self.written, u64::max);
            moved.extend(done.iter().map(|c| (c.bytes, c.info as u8)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_different_and_known() {
        let mut names: Vec<&str> = SYSTEMS.iter().map(|s| s.name).chain([OURS]).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SYSTEMS.len() + 1);
        assert!(known("system", &[Case::Hot.reference().to_owned()], &names).is_ok());
        let refused = known("system", &["fsrf".to_owned()], &names).unwrap_err();
        assert!(refused.message().contains("there are amorphos, "), "{}", refused.message());
    }
}
