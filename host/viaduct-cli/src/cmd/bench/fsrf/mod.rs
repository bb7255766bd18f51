// SPDX-License-Identifier: Apache-2.0
//! `viaduct bench fsrf`: the workloads of the FSRF paper in four slots at once, on this card and on the systems that the paper compares (its
//! Table 2): with all pages resident ("hot"), none of them, but all in host memory ("warm"), or fewer frames than pages ("oversubscribed").
//! The other systems have the same apps, movers, DRAM channels, link and clock.
//!
//! Counted is, for each slot, from the first transfer at the app's streams or memory port, or if pages are loaded from the beginning of the
//! run, to the last transfer, or until the last of its output is in memory, and the bytes that pass there; the throughput is that of all slots,
//! over their mean time, as in the paper (section 6.2).

mod disk;
mod mixed;
mod ours;
mod paging;
mod record;
mod sweep;
mod systems;
mod work;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use viaduct::{Advice, Placement};
use viaduct_build::{Project, Rivals, Variant};
use viaduct_sim::Profile;

use self::disk::Times;
use self::paging::{Case, Paging};
use self::record::{Key, Record, digest};
use self::sweep::{Point, Quantity, Sweep};
use self::systems::SYSTEMS;
use self::work::{NAMES, Ran, Sizes, Task, Work};
use super::{Figure, link_limits};
use crate::card::{CardArgs, Opened};
use crate::cmd::bench::plot::{Form, Kind, Plot};
use crate::fail::{Failure, Result, usage};
use crate::terminal::progress_target;

const OURS: &str = "viaduct";
const MIB: f64 = 1048576.0;

/// What of it to measure; everything, if empty.
#[derive(clap::Args, PartialEq)]
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
    /// For `fsrf` with `--pages cold`: the latency of the disk, in microseconds
    #[arg(long, value_name = "TIME", default_value_t = 100.0, value_parser = microseconds)]
    disk_us: f64,
    /// For `fsrf`: what the program of this card says of its accesses; unless given, what is true of the workload
    #[arg(long, value_enum, value_name = "ADVICE")]
    advice: Option<Said>,
    /// For `fsrf`: the paper's small sizes over this power of two, 1 to 32, and the reach of the other systems' TLBs over it
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = power, conflicts_with = "quick")]
    divide: u64,
    /// For `fsrf`: add each result to this file, and take from it those that the same build has measured before
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// For `fsrf`: measure with different values of this, on resident pages unless they are transferred
    #[arg(long, value_enum, value_name = "WHAT")]
    sweep: Option<Sweep>,
}

/// What a program says of the accesses of its app.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Said {
    /// Nothing
    Normal,
    /// They are in order
    Sequential,
    /// They are in random order
    Random,
}

impl Said {
    fn advice(self) -> Advice {
        match self {
            Self::Normal => Advice::Normal,
            Self::Sequential => Advice::Sequential,
            Self::Random => Advice::Random,
        }
    }
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
    transfer: 2 << 20,
    blocks: [8, 64],
    ranks: [256, 1024],
    triangles: [64, 320],
    images: 1,
};
const QUICK_SCALE_LOG2: u32 = 10;

/// How tasks are run, apart from what all measurements have in common.
#[derive(Clone, Copy, Default)]
struct Mode {
    /// What is counted ends for all slots when the first one ends.
    first: bool,
    /// Channels of the slots on this card; in all of them pages have 4 KiB.
    placement: Placement,
    /// Pages that a fault of FSRF loads, if not as many as its policy says.
    batch: Option<u64>,
    /// What the program of this card says of its accesses, if not what is true.
    advice: Option<Advice>,
}

/// What measurements have in common.
struct Bench<'a> {
    project: &'a Project,
    choice: &'a Choice,
    case: Case,
    quick: bool,
    card: CardArgs,
    board: Profile,
    opened: Opened,
    /// With the other systems.
    program: PathBuf,
    sizes: Sizes,
    scale_log2: u32,
    systems: Vec<&'static str>,
    record: Option<Record>,
    /// Results so far, on a terminal.
    bar: ProgressBar,
}

impl Choice {
    /// Fails if the file of `--resume` cannot be used.
    pub fn check_resume(&self) -> Result {
        self.resume.as_deref().map_or(Ok(()), |path| Record::open(path).map(drop).map_err(Failure::by_usage))
    }
}

/// Measures the figures of `viaduct bench fsrf`.
pub fn fsrf(
    project: &Project,
    card: &CardArgs,
    choice: &Choice,
    quick: bool,
    plots: &mut Vec<Plot>,
) -> Result<Vec<Figure>> {
    let mut bench = Bench::new(project, card, choice, quick)?;
    match choice.sweep.map(Sweep::quantity) {
        None => bench.table(plots),
        Some(None) => mixed::mixed(&mut bench, plots),
        Some(Some(quantity)) => bench.sweep(quantity, plots),
    }
}

impl<'a> Bench<'a> {
    /// Checks what was chosen, and opens what is needed.
    fn new(project: &'a Project, card: &CardArgs, choice: &'a Choice, quick: bool) -> Result<Self> {
        let case = match choice.sweep {
            Some(sweep) => sweep.case(choice.pages)?,
            None => choice.pages,
        };
        if choice.advice.is_some() && case == Case::Hot {
            return usage(
                "--advice is of pages that are loaded; choose others by --pages or --sweep=transfer",
            );
        }
        let takes_part = |s: &&systems::System| match choice.sweep {
            Some(Sweep::Transfer) => s.grows(),
            _ => case == Case::Hot || s.pages(case, 0, None).is_some(),
        };
        let names: Vec<_> =
            [OURS].into_iter().chain(SYSTEMS.iter().filter(takes_part).map(|s| s.name)).collect();
        known("system", &choice.system, &names)?;
        known("workload", &choice.workload, &NAMES)?;
        choice.sweep.map_or(Ok(()), |sweep| sweep.check(&choice.workload))?;
        let profile = card.profile.clone().or(Some("f1".into()));
        let card = CardArgs { profile, ..card.clone() };
        let board = crate::card::profile(card.profile.as_deref())?;
        // The other systems are built for as many channels as the board of the paper has.
        if board.channels != Profile::F1.channels {
            let name = board.name;
            let channels = board.channels;
            return usage(format!(
                "profile {name} has {channels} channels of card memory, the other systems have 4"
            ));
        }
        let (sizes, scale_log2) = match quick {
            true => (QUICK, QUICK_SCALE_LOG2),
            false => (Sizes::small(choice.divide), choice.divide.ilog2()),
        };
        let record = choice.resume.as_deref().map(Record::open).transpose()?;
        let program = project.build_rivals(Rivals::Fsrf, &mut crate::project::tell)?;
        let opened = card.open_with(project, Variant::Fast, |_| ())?;
        let systems = names.into_iter().filter(|system| wanted(&choice.system, system)).collect();
        let bar = bar();
        Ok(Self {
            project,
            choice,
            case,
            quick,
            card,
            board,
            opened,
            program,
            sizes,
            scale_log2,
            systems,
            record,
            bar,
        })
    }

    /// A workload and its app.
    fn task(&self, name: &'static str, sizes: &Sizes) -> Result<Task> {
        self.bar.set_message(name);
        let work = Work::new(self.project, name, sizes)?;
        let info = self.opened.card.info();
        let build = || crate::project::build(self.project, &work.app, info, Variant::Fast);
        let image = self.bar.suspend(build)?;
        // As it runs: its file may have been replaced by a new build.
        let own = Path::new("/proc/self/exe");
        let built = match &self.record {
            Some(_) => digest([
                own,
                &self.project.card_object(Variant::Fast, self.board.channels),
                &*self.program,
                &image.object,
            ])?,
            None => String::new(),
        };
        Ok(Task { work, image, built })
    }

    /// Runs tasks, each in a slot, on a system, unless the same build has measured that before.
    fn measure(
        &mut self,
        system: &'static str,
        tasks: &[&Task],
        label: &str,
        mode: Mode,
    ) -> Result<Vec<Ran>> {
        let joined = |of: fn(&Task) -> &str| {
            let mut all: Vec<_> = tasks.iter().map(|task| of(task)).collect();
            all.dedup();
            all.join(" + ")
        };
        let (choice, case) = (self.choice, self.case);
        let key = Key {
            build: joined(|task| &task.built),
            profile: self.card.profile.clone().unwrap_or_default(),
            workload: joined(|task| task.work.name),
            system: system.to_owned(),
            pages: case.plot().to_owned(),
            host_us: choice.host_us.to_string(),
            disk_us: choice.disk_us.to_string(),
            advice: choice.advice.map_or("own".to_owned(), |said| format!("{said:?}").to_lowercase()),
            sizes: match self.quick {
                true => format!("quick{label}"),
                false => format!("small/{}{label}", choice.divide),
            },
        };
        self.bar.set_message(format!("{}: {system}", key.workload));
        if let Some(ran) = self.record.as_ref().and_then(|record| record.find(&key)) {
            self.bar.inc(1);
            self.bar.reset_eta();
            return Ok(ran);
        }
        let disk = (case == Case::Cold).then(|| self.disk());
        let mode = Mode { advice: choice.advice.map(Said::advice), ..mode };
        let ran = match SYSTEMS.iter().find(|s| s.name == system) {
            Some(s) => {
                let pages = s.pages(case, self.scale_log2, mode.batch);
                let paging = pages.and_then(|pages| {
                    Paging::new(pages, &tasks[0].work, case, choice.host_us, disk, &self.opened)
                });
                s.run(&self.program, &self.board, tasks, self.scale_log2, paging, mode.first)?
            }
            None => ours::run(&self.card, self.project, tasks, case, choice.host_us, disk, mode)?,
        };
        if let Some(record) = &mut self.record {
            record.add(key, &ran)?;
        }
        self.bar.inc(1);
        Ok(ran)
    }

    /// A workload in all its slots, on each system.
    fn rows(&mut self, name: &'static str, point: Point, label: &str) -> Result<(Task, Rows)> {
        let task = self.task(name, &point.sizes(&self.sizes))?;
        let (tasks, mode) = (vec![&task; point.slots], Mode { batch: point.batch(), ..Mode::default() });
        let mut rows = Rows::new();
        for system in self.systems.clone() {
            rows.push((system, self.measure(system, &tasks, label, mode)?));
        }
        Ok((task, rows))
    }

    /// A value in bytes per cycle as MiB/s.
    fn mib(&self, value: f64) -> String {
        format!("{:.0} MiB/s", value * f64::from(self.board.clk_khz) * 1000.0 / MIB)
    }

    /// What limits transfers to the card, in bytes per cycle, as in other plots.
    fn transfer_limit(&self) -> (String, f64) {
        if self.case == Case::Cold {
            return ("the disk".to_owned(), self.disk().rate as f64 / 1000.0);
        }
        let (way, limit) = link_limits(&self.opened)[0];
        (format!("the link, {way}"), limit * 1e6 / f64::from(self.board.clk_khz))
    }

    fn disk(&self) -> Times {
        Times::new(self.choice.disk_us, self.board.clk_khz)
    }

    /// All workloads: each system against the reference.
    fn table(&mut self, plots: &mut Vec<Plot>) -> Result<Vec<Figure>> {
        let (case, reference) = (self.case, self.case.reference());
        let mut plot = Plot::new(
            case.plot(),
            Form::Bars,
            case.title(),
            format!("four slots at once; bytes over the mean time of the slots, of system {reference}"),
            ["workload", case.axis()],
        );
        let workloads: Vec<_> =
            NAMES.into_iter().filter(|name| wanted(&self.choice.workload, name)).collect();
        self.bar.set_length((workloads.len() * self.systems.len()) as u64);
        let mut figures = Vec::new();
        let mut ratios: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for name in workloads {
            let (task, rows) = self.rows(name, Point::default(), "")?;
            let of = of_reference(&rows, reference);
            for (system, ran) in &rows {
                let value = rate(&task, ran);
                let mut note = self.mib(value);
                if let Some(&ratio) = of.get(system) {
                    note += &format!(", {ratio:.3} of {reference}");
                    ratios.entry(system).or_default().push(ratio);
                    if *system != reference && drawn(system) {
                        plot.add(kind(system), system, name, 0.0, ratio);
                    }
                }
                note += &counts(ran);
                figures.push(Figure { what: format!("{name}: {system}"), value, unit: "B/cycle", note });
            }
            if !of.is_empty() {
                plot.add(Kind::Limit, reference, name, 0.0, 1.0);
            }
        }
        for system in &self.systems {
            let Some(all) = ratios.get(system) else { continue };
            let value = (all.iter().map(|r| r.ln()).sum::<f64>() / all.len() as f64).exp();
            let least = all.iter().copied().fold(f64::INFINITY, f64::min);
            figures.push(Figure {
                what: format!("geometric mean of {}: {system}", all.len()),
                value,
                unit: "",
                note: format!("of {reference}, least {least:.3}"),
            });
        }
        plots.push(plot);
        Ok(figures)
    }

    /// Some workloads, each with one value after the other of a quantity, and a plot.
    fn sweep(&mut self, quantity: Quantity, plots: &mut Vec<Plot>) -> Result<Vec<Figure>> {
        let reference = self.case.reference();
        let chosen = &self.choice.workload;
        let usual = |name: &&str| match chosen.is_empty() {
            true => quantity.workloads().contains(name),
            false => wanted(chosen, name),
        };
        let workloads: Vec<_> = NAMES.into_iter().filter(usual).collect();
        let points = quantity.points(self.quick);
        self.bar.set_length((workloads.len() * points.len() * self.systems.len()) as u64);
        let mut figures = Vec::new();
        for name in workloads {
            let mut plot = quantity.plot(name, self.case);
            // Of each system.
            let mut first: BTreeMap<&str, f64> = BTreeMap::new();
            for &point in &points {
                let label = quantity.label(point);
                let (task, rows) = self.rows(name, point, &label)?;
                let of = of_reference(&rows, reference);
                let (at, place) = quantity.place(point);
                for (system, ran) in &rows {
                    let value = rate(&task, ran);
                    let mut note = self.mib(value);
                    if let Some(ratio) = of.get(system) {
                        note += &format!(", {ratio:.3} of {reference}");
                    }
                    let times = value / *first.entry(system).or_insert(value);
                    if quantity == Quantity::Slots {
                        note += &format!(", {times:.2} times one slot");
                    }
                    if drawn(system) {
                        plot.add(kind(system), system, &place, at, value);
                    }
                    note += &counts(ran);
                    figures.push(Figure {
                        what: format!("{name}{label}: {system}"),
                        value,
                        unit: "B/cycle",
                        note,
                    });
                }
                if quantity == Quantity::Transfer {
                    let (limit, most) = self.transfer_limit();
                    plot.add(Kind::Limit, &limit, &place, at, most);
                }
            }
            plots.push(plot);
        }
        Ok(figures)
    }
}

/// What systems have done with a workload.
type Rows = Vec<(&'static str, Vec<Ran>)>;

fn mean_cycles(ran: &[Ran]) -> f64 {
    ran.iter().map(|r| r.cycles).sum::<u64>() as f64 / ran.len() as f64
}

/// Bytes of all slots over their mean time.
fn rate(task: &Task, ran: &[Ran]) -> f64 {
    let beats: u64 = ran.iter().map(|r| r.beats_in + r.beats_out).sum();
    (beats * task.work.of_beat) as f64 / mean_cycles(ran)
}

/// The throughput of each system as a share of that of one of them, if that is there.
fn of_reference(rows: &Rows, reference: &str) -> BTreeMap<&'static str, f64> {
    let cycles = rows.iter().find(|(system, _)| *system == reference).map(|(_, ran)| mean_cycles(ran));
    let share = |cycles: f64| rows.iter().map(move |(system, ran)| (*system, cycles / mean_cycles(ran)));
    cycles.map(|cycles| share(cycles).collect()).unwrap_or_default()
}

/// Cycles and events, for a note.
fn counts(ran: &[Ran]) -> String {
    let mut text = format!(", {:.0} cycles", mean_cycles(ran));
    let sum = |of: fn(&Ran) -> u64| ran.iter().map(of).sum::<u64>();
    for (count, what) in [
        (sum(|r| r.misses), "misses"),
        (sum(|r| r.loads), "pages in"),
        (sum(|r| r.stores), "out"),
        (sum(|r| r.overflowed), "on the host"),
    ] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    text
}

/// Results, on a terminal.
fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), progress_target()).with_finish(ProgressFinish::AndClear);
    match ProgressStyle::with_template("{bar:30} {pos} of {len} results, {msg}, {eta} left") {
        Ok(style) => bar.with_style(style.progress_chars("██░")),
        Err(_) => bar,
    }
}

/// Whether a name is in a list, or that is empty.
fn wanted(list: &[String], name: &str) -> bool {
    list.is_empty() || list.iter().any(|n| n == name)
}

/// Refuses names that there are not.
fn known(what: &str, given: &[String], names: &[&str]) -> Result {
    match given.iter().find(|name| !names.contains(&name.as_str())) {
        Some(name) => usage(format!("no {what} {name:?}; there are {}", names.join(", "))),
        None => Ok(()),
    }
}

fn kind(system: &str) -> Kind {
    match system {
        OURS => Kind::Ours,
        "physical" => Kind::Limit,
        _ => Kind::Rival,
    }
}

/// Whether a system is in plots: those of the paper, and ours.
fn drawn(system: &str) -> bool {
    system != "direct" && !system.ends_with('+')
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
