// SPDX-License-Identifier: Apache-2.0
//! `viaduct bench`: figures of the simulated card. All but those of the simulator itself and of a guest are card time, so
//! that every machine prints the same, idle or busy; each is printed only after the data was compared.

mod calibrate;
mod fsrf;
mod guest;
mod share;
mod sim;
mod virtio;
mod worker;
mod xdma;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Value, json};
use viaduct::desc::{Command, Completion};
use viaduct::{
    Advice, MapOptions, MemoryJob, MemoryRange, PagerStats, Prot, Register, SharedBytes, Slot, Source,
};
use viaduct_build::{Manifest, Project, Scratch, Variant};
use viaduct_pci::DmaAccess;

use super::run::slowest;
use super::test::passes;
use crate::card::{COMPLETION, CardArgs, CardSpec, Opened, REQUEST, WaitArgs};
use crate::fail::{Failure, Result, at};
use crate::job::{Loaded, Routes};
use crate::plot::{Folder, Form, Kind, Plot, rounded};
use crate::random::Random;
use crate::route::Route;
use crate::tell::out;

/// Measure the simulated card; every figure is checked before it is printed
#[derive(clap::Args)]
pub struct Args {
    /// What to measure; unless given, everything but `share`, `calibrate`, `fsrf` and `guest`
    what: Vec<What>,
    /// Board and link to simulate; `viaduct info card` lists them
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// For `guest`: round trips of each size
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rounds: u32,
    /// For `guest`: the kernel, as for `viaduct vm`
    #[arg(long, value_name = "NAME", default_value = "6.12")]
    kernel: String,
    #[command(flatten)]
    choice: fsrf::Choice,
    /// Small sizes and few cases, for tests: the figures differ from those in the documents
    #[arg(long)]
    quick: bool,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
    /// Also draw the figures into this folder, as SVG files; those of `sim` are not drawn
    #[arg(long, value_name = "FOLDER")]
    plot: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// The simulator: cycles per second on this machine, and the pager's processor time
    Sim,
    /// Copies between host and card memory
    Dma,
    /// An app with random accesses to its memory
    Mem,
    /// Every app with streams
    Apps,
    /// Round trips and throughput of the network device
    Virtio,
    /// Card memory shared by four slots, and by small and large accesses
    Share,
    /// Card memory of profile f1 against the board it is calibrated to
    Calibrate,
    /// The workloads of the FSRF paper, on this card and on the systems of its Table 2
    Fsrf,
    /// Round trips of a program in a Linux guest, through the network device and through the XDMA-compatible function
    Guest,
}

/// Sizes of the measurements.
struct Scale {
    /// Bytes of one DMA measurement, and of each of its commands.
    dma: u64,
    dma_pieces: &'static [u64],
    /// Memory that the app of `mem` works on, and random accesses to it of 64 and of 4096 bytes.
    mem: u64,
    accesses: [u64; 2],
    /// Memory with small pages that is larger than what a slot's TLBs hold, and accesses to it: with the page table, and by the host;
    /// 0 leaves a case out.
    beyond: (u64, [u64; 2]),
    /// Message that is sent through every app.
    app: usize,
    /// For `share` and `calibrate`: pages of 2 MiB per slot, bytes moved by each in large and in small accesses.
    pages: u64,
    /// For `share`: bytes moved by each of four slots, so many that no channel gets many more of the random accesses than another.
    share: u64,
    /// For `share`: bytes that the DMA engine fills at the end of channel 0, so many that it does not end before what is measured beside it.
    fill: u64,
    calibrate_large: u64,
    calibrate_small: u64,
    /// All rings, latencies and sizes of the network device.
    virtio_all: bool,
}

impl Scale {
    const FULL: Self = Self {
        dma: 4 << 20,
        dma_pieces: &[4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20],
        mem: 8 << 20,
        accesses: [4096, 1024],
        beyond: (64 << 20, [16384, 1024]),
        app: 1 << 20,
        pages: 4,
        share: 64 << 20,
        fill: 8 << 20,
        calibrate_large: 8 << 20,
        calibrate_small: 2 << 20,
        virtio_all: true,
    };
    const QUICK: Self = Self {
        dma: 1 << 20,
        dma_pieces: &[64 << 10, 1 << 20],
        mem: 256 << 10,
        accesses: [512, 32],
        beyond: (0, [0, 0]),
        app: 64 << 10,
        pages: 1,
        share: 256 << 10,
        fill: 1 << 20,
        calibrate_large: 256 << 10,
        calibrate_small: 32 << 10,
        virtio_all: false,
    };
}

/// Limit of waits: longer than anything here takes on any machine. A wait that checked the card for activity before its
/// end would take card time.
const PATIENCE: Duration = Duration::from_secs(6 * 3600);

/// What is measured, bytes of an access, accesses.
type Accesses = (&'static str, u64, u64);

/// Accesses of app rng that are under way: as many as it has, if the guard has room for their data.
const ACCESSES: u64 = 64;
const ACCESS_BYTES: u64 = 128 << 10;

/// One figure.
struct Figure {
    what: String,
    value: f64,
    unit: &'static str,
    note: String,
}

/// Runs the command.
pub fn run(args: Args) -> Result {
    let project = crate::project::find()?;
    let all = [What::Dma, What::Mem, What::Apps, What::Virtio, What::Sim];
    let what = if args.what.is_empty() { all.to_vec() } else { args.what };
    let card = CardArgs {
        card: CardSpec::Sim,
        profile: args.profile,
        timeout: Some(PATIENCE.as_secs()),
        wait: WaitArgs::default(),
    };
    let scale = if args.quick { Scale::QUICK } else { Scale::FULL };
    let folder = args.plot.as_deref().map(Folder::new).transpose()?;
    let mut figures = Vec::new();
    for what in what {
        let mut plots = Vec::new();
        // A new card, so that no figure depends on earlier measurements.
        let open = || card.open(Variant::Fast);
        let new = match what {
            What::Sim => sim::run(&project, &card)?,
            What::Virtio => virtio::virtio(&project, &card, scale.virtio_all, &mut plots)?,
            What::Share => share::share(&project, &card, &scale, &mut plots)?,
            What::Calibrate => calibrate::calibrate(&project, &card, &scale, &mut plots)?,
            What::Guest => {
                guest::guest(&project, card.profile.as_deref(), &args.kernel, args.rounds, &mut plots)?
            }
            What::Fsrf => fsrf::fsrf(&project, &card, &args.choice, args.quick, &mut plots)?,
            What::Dma => dma(&project, &card, &open()?, &scale, &mut plots)?,
            What::Mem => {
                let opened = open()?;
                let before = plots.len();
                let mut figures = mem(&project, &opened, &scale, &mut plots)?;
                let far = beyond(&project, &opened, &scale)?;
                for figure in &far {
                    let place = figure.what.trim_start_matches("memory, random reads of 64 bytes of ");
                    plots[before..]
                        .iter_mut()
                        .for_each(|plot| plot.add(Kind::Ours, "4 KiB pages", place, 0.0, figure.value));
                }
                figures.extend(far);
                figures.push(updates(&project, &opened, &scale)?);
                figures.push(evicting_updates(&project, &opened, &scale)?);
                figures.push(overflowing_updates(&project, &opened, &scale)?);
                figures
            }
            What::Apps => apps(&project, &open()?, scale.app, &mut plots)?,
        };
        if !args.json {
            for f in &new {
                out(&format!("{:52} {:>8} {:8} {}", f.what, rounded(f.value), f.unit, f.note))?;
            }
        }
        figures.extend(new);
        if let Some(folder) = &folder {
            for plot in &plots {
                tell!("plot: {}", folder.write(plot)?.display());
            }
            if plots.is_empty() {
                let name = what.to_possible_value().map(|v| v.get_name().to_owned()).unwrap_or_default();
                tell!("plot: {name} has nothing to plot: its figures are those of this machine");
            }
        }
    }
    if args.json {
        let list: Vec<Value> = figures
            .iter()
            .map(|f| json!({"what": f.what, "value": f.value, "unit": f.unit, "note": f.note}))
            .collect();
        out(&Value::from(list).to_string())?;
    }
    Ok(())
}

fn wrong<T>(what: &str) -> Result<T> {
    Err(Failure::Check(format!("{what}: wrong data, so there is no figure")))
}

// ---------------------------------------------------------------- DMA

fn dma(
    project: &Project,
    card: &CardArgs,
    opened: &Opened,
    scale: &Scale,
    plots: &mut Vec<Plot>,
) -> Result<Vec<Figure>> {
    let total = scale.dma;
    let slot = opened.card.any_slot()?;
    // Commands of a slot run only while it has an app; any app will do.
    slot.load(&image(project, opened, &project.load("pass")?)?)?;
    let from = opened.card.dma_buffer(total, DmaAccess::Read)?;
    let to = opened.card.dma_buffer(total, DmaAccess::Write)?;
    let mut random = Random(1);
    let mut figures = Vec::new();
    let mut plot = Plot::new(
        "dma",
        Form::Lines,
        "Copies between host and card memory",
        format!(
            "{} MiB in commands of one size, submitted together or, as with XDMA, each after the interrupt of the one before",
            total >> 20
        ),
        ["bytes a command or transfer", "GB/s"],
    );
    for piece in scale.dma_pieces {
        let pieces: Vec<u64> = (0..total).step_by(*piece as usize).collect();
        let len = *piece as u32;
        let down: Vec<_> = pieces.iter().map(|at| Command::h2c(from.iova() + at, *at, len)).collect();
        let up: Vec<_> = pieces.iter().map(|at| Command::c2h(to.iova() + at, *at, len)).collect();
        // Other data for each size: what an earlier one left in card memory would be wrong.
        let data = random.bytes(total as usize);
        from.memory().write(0, &data);
        for one_by_one in [false, true] {
            let how = if one_by_one { ", one after the other" } else { "" };
            let name = |what: &str| format!("dma, {what}, {} KiB each{how}", piece >> 10);
            let mut add = |what: &str, cycles: u64| {
                let seconds = opened.card.info().seconds(cycles);
                let note = format!("{total} bytes in {cycles} cycles");
                let value = total as f64 / seconds / 1e9;
                figures.push(Figure { what: name(what), value, unit: "GB/s", note });
                plot.add(Kind::Ours, &format!("{what}{how}"), &size_of(*piece), *piece as f64, value);
            };
            let run = |commands: &[Command]| match one_by_one {
                true => timed_one_by_one(opened, &slot, commands),
                false => timed(opened, &slot, commands),
            };
            timed(opened, &slot, &[Command::fill(0, total as u32)])?;
            to.memory().fill(0, to.len() as usize, 0);
            let cycles = [run(&down)?, run(&up)?];
            let mut back = vec![0; data.len()];
            to.memory().read(0, &mut back);
            if back != data {
                return wrong(&name("host to card and back"));
            }
            add("host to card", cycles[0]);
            add("card to host", cycles[1]);
        }
    }
    figures.extend(xdma::copies(project, card, scale.dma_pieces, &mut plot)?);
    for (way, limit) in link_limits(opened) {
        for piece in scale.dma_pieces {
            plot.add(Kind::Limit, &format!("the link, {way}"), &size_of(*piece), *piece as f64, limit);
        }
    }
    plots.push(plot);
    Ok(figures)
}

/// A size with its unit.
fn size_of(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 && b.is_power_of_two() => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b.is_power_of_two() => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

/// Throughput of the link in each direction with packets of the largest size, in GB/s.
fn link_limits(opened: &Opened) -> Vec<(&'static str, f64)> {
    let Some(sim) = &opened.sim else { return Vec::new() };
    let most = f64::from(sim.profile.link.mps);
    let rate = sim.bytes_per_cycle() * f64::from(sim.profile.clk_khz) / 1e6;
    [("to the card", COMPLETION), ("from the card", REQUEST)]
        .map(|(way, header)| (way, rate * most / (most + header as f64)))
        .to_vec()
}

/// Throughput of one beat per cycle, in GB/s.
fn beats(opened: &Opened) -> f64 {
    opened.card.info().data_bytes as f64 * f64::from(opened.card.info().clock_khz) / 1e6
}

/// Runs commands and returns the cycles from just before the first to the last completion.
fn timed(opened: &Opened, slot: &Slot, commands: &[Command]) -> Result<u64> {
    let begun = opened.card.time()?;
    Ok(last_of(slot, commands)?.unwrap_or(begun) - begun)
}

/// As [`timed`], each command submitted after the interrupt of the one before: as a program waits for each of its copies, with the latency of
/// the link both ways.
fn timed_one_by_one(opened: &Opened, slot: &Slot, commands: &[Command]) -> Result<u64> {
    let begun = opened.card.time()?;
    for command in commands {
        last_of(slot, std::slice::from_ref(command))?;
    }
    Ok(opened.card.time()? - begun)
}

/// Runs commands; when the last one was completed, in cycles.
fn last_of(slot: &Slot, commands: &[Command]) -> Result<Option<u64>> {
    let done = slot.wait(&slot.submit(commands)?)?;
    match done.iter().find(|c| c.status != viaduct::desc::Status::Ok) {
        Some(Completion { status, .. }) => Err(Failure::Run(format!("command failed: {status}"))),
        None => Ok(done.iter().map(|c| c.time).max()),
    }
}

// ---------------------------------------------------------------- memory

fn mem(project: &Project, opened: &Opened, scale: &Scale, plots: &mut Vec<Plot>) -> Result<Vec<Figure>> {
    let app = project.load("rng")?;
    let slot = opened.card.any_slot()?;
    slot.load(&image(project, opened, &app)?)?;
    let set = |name, value| set(&slot, &app, name, value);
    let read = |name| read(&slot, &app, name);
    let data = Random(2).bytes(scale.mem as usize);
    let [small, large] = scale.accesses;
    let mut figures = Vec::new();
    let mut plot = Plot::new(
        "mem",
        Form::Bars,
        "An app with random accesses to its memory",
        format!(
            "{} read by app rng: {small} times 64 bytes, {large} times 4096 bytes; at first access the pages that were loaded",
            size_of(scale.mem)
        ),
        ["what is read", "GB/s"],
    );
    // First as many accesses as there are pages; then all pages, which is not measured.
    let one_each = scale.mem / 4096;
    let touched = [
        ("first touch", 4096, one_each),
        ("", 4096, 16 * one_each),
        ("random", 64, small),
        ("random", 4096, large),
    ];
    let faults = [("faults", 64, one_each)];
    let half = [("evictions", 64, 2 * one_each)];
    // Each with a new mapping: huge pages, frames, accesses.
    let runs: [(bool, u64, &[Accesses]); 4] = [
        (false, u64::MAX, &touched),
        (true, u64::MAX, &touched),
        (false, u64::MAX, &faults),
        (false, scale.mem / 2, &half),
    ];
    for (huge, budget, cases) in runs {
        slot.set_frame_budget(budget);
        let source = Source::bytes(SharedBytes::new(data.clone()));
        let mapping = slot.map(source, scale.mem, MapOptions::new(Prot::READ_WRITE).huge(huge))?;
        let range = MemoryRange::of(&mapping, register(&app, "base")?, Some(register(&app, "bytes")?));
        let (page, pages) = if huge { (2 << 20, "2 MiB pages") } else { (4096, "4 KiB pages") };
        for &(name, size, count) in cases {
            let seed = 0x1234_5678_9abc_def1;
            for (name, value) in [("size", size), ("count", count), ("seed", seed), ("write", 0)] {
                set(name, value)?;
            }
            let before = slot.pager_stats().pages_in;
            let under_way = ACCESSES.min(ACCESS_BYTES / size);
            // The app's interrupt marks the end: polling before would take card time, and more on a busy machine.
            let job = MemoryJob::new(&slot, register(&app, "start")?.offset).range(range);
            job.done(register(&app, "done")?.offset).irq().run()?;
            let (cycles, sum) = (read("cycles")?, read("checksum")?);
            let loaded = slot.pager_stats().pages_in - before;
            let what = match name {
                "random" => format!("memory, random reads of {size} bytes, {pages}"),
                "faults" => format!("memory, {under_way} faults under way, {pages}"),
                "evictions" => format!("memory, {under_way} faults, frames for half, {pages}"),
                _ => format!("memory, first touch, {pages}"),
            };
            if sum != expected_sum(&data, size, count, seed) || read("errors")? != 0 {
                return wrong(&what);
            }
            let (bytes, counted) = match name {
                // Loaded bytes count, not those that the app read of them.
                "first touch" | "faults" => {
                    let touched: BTreeSet<u64> =
                        places(size, count, seed, scale.mem).map(|at| at / page).collect();
                    let all = scale.mem.div_ceil(page);
                    (touched.len() as u64 * page, format!("{} of {all} pages loaded", touched.len()))
                }
                "evictions" => (loaded * page, format!("{loaded} pages loaded")),
                "random" => (size * count, format!("{count} accesses")),
                _ => continue,
            };
            let value = bytes as f64 / opened.card.info().seconds(cycles) / 1e9;
            let place = match name {
                "random" => format!("random, {size} bytes"),
                "faults" => format!("{under_way} faults"),
                "evictions" => format!("{under_way} faults, half the frames"),
                _ => name.to_owned(),
            };
            plot.add(Kind::Ours, pages, &place, 0.0, value);
            match name {
                "random" => plot.add(Kind::Limit, "a beat a cycle", &place, 0.0, beats(opened)),
                _ => link_limits(opened).iter().take(1).for_each(|(way, rate)| {
                    plot.add(Kind::Limit, &format!("the link, {way}"), &place, 0.0, *rate)
                }),
            }
            let per_page = |bytes| cycles as f64 / (bytes / page) as f64;
            let each = match name {
                "first touch" => format!(", {:.0} each, {under_way} reads under way", per_page(bytes)),
                "faults" | "evictions" => format!(", {:.0} each", per_page(bytes)),
                "random" => format!(", {:.1} each", cycles as f64 / count as f64),
                _ => String::new(),
            };
            let note = format!("{counted} in {cycles} cycles{each}");
            figures.push(Figure { what, value, unit: "GB/s", note });
        }
        mapping.unmap()?;
    }
    slot.set_frame_budget(u64::MAX);
    plots.push(plot);
    Ok(figures)
}

/// Random reads of memory whose pages are all loaded, but of which the TLBs hold only a part: with the page table in card memory, and by the host.
fn beyond(project: &Project, opened: &Opened, scale: &Scale) -> Result<Vec<Figure>> {
    let app = project.load("rng")?;
    let slot = opened.card.any_slot()?;
    slot.load(&image(project, opened, &app)?)?;
    let (bytes, [by_table, by_host]) = scale.beyond;
    let data = Random(3).bytes(bytes as usize);
    let seed = 0x1234_5678_9abc_def1;
    let piece = 1 << 20;
    let all = |count: &u64| {
        places(piece, *count, seed, bytes).collect::<BTreeSet<_>>().len() as u64 == bytes / piece
    };
    let load = (bytes / piece..).find(all).unwrap_or_default();
    let mut figures = Vec::new();
    for (table, name, count) in [(true, "page table", by_table), (false, "by the host", by_host)] {
        if count == 0 {
            continue;
        }
        let source = Source::bytes(SharedBytes::new(data.clone()));
        let options = MapOptions::new(Prot::READ_WRITE).huge(false).table(table);
        let mapping = slot.map(source, bytes, options)?;
        let range = MemoryRange::of(&mapping, register(&app, "base")?, Some(register(&app, "bytes")?));
        for (size, count, measured) in [(piece, load, false), (64, count, true)] {
            for (name, value) in [("size", size), ("count", count), ("seed", seed), ("write", 0)] {
                set(&slot, &app, name, value)?;
            }
            let job = MemoryJob::new(&slot, register(&app, "start")?.offset).range(range);
            job.done(register(&app, "done")?.offset).irq().run()?;
            let (cycles, sum) = (read(&slot, &app, "cycles")?, read(&slot, &app, "checksum")?);
            let what = format!("memory, random reads of 64 bytes of {}, {name}", size_of(bytes));
            if sum != expected_sum(&data, size, count, seed) || read(&slot, &app, "errors")? != 0 {
                return wrong(&what);
            }
            if measured {
                let value = (size * count) as f64 / opened.card.info().seconds(cycles) / 1e9;
                let each = cycles as f64 / count as f64;
                let note = format!(
                    "{count} accesses in {cycles} cycles, {each:.1} each; pages of 4 KiB, all loaded"
                );
                figures.push(Figure { what, value, unit: "GB/s", note });
            }
        }
        mapping.unmap()?;
    }
    Ok(figures)
}

/// Random updates by app gups, a second time, with all pages loaded.
fn updates(project: &Project, opened: &Opened, scale: &Scale) -> Result<Figure> {
    let (what, count) = ("random updates of 8 bytes, 2 MiB pages", 4 * scale.accesses[0]);
    let run = Updates { what, count, times: 2, huge: true, budget: u64::MAX, advice: None };
    let (cycles, held, _) = run.measure(project, opened, scale.mem)?;
    Ok(run.figure(opened, cycles, format!("{count} updates in {cycles} cycles; {held} waited")))
}

/// Random updates by app gups with frames for half of the pages, nearly all of which have changed when they are evicted.
fn evicting_updates(project: &Project, opened: &Opened, scale: &Scale) -> Result<Figure> {
    let what = "random updates of 8 bytes, frames for half, 4 KiB pages";
    let count = 2 * scale.mem / 4096;
    let run = Updates { what, count, times: 1, huge: false, budget: scale.mem / 2, advice: None };
    let (cycles, _, stats) = run.measure(project, opened, scale.mem)?;
    let note = format!(
        "{count} updates in {cycles} cycles; {} pages loaded, {:.0} each, and {} written back",
        stats.pages_in,
        cycles as f64 / stats.pages_in as f64,
        stats.pages_out
    );
    Ok(run.figure(opened, cycles, note))
}

/// As [`evicting_updates`], but pages that card memory has no room for stay in host memory: in a second run, when all have been touched.
fn overflowing_updates(project: &Project, opened: &Opened, scale: &Scale) -> Result<Figure> {
    let what = "random updates of 8 bytes, frames for half, others in host memory";
    let count = 4 * scale.accesses[0];
    let advice = Some(Advice::Random);
    let run = Updates { what, count, times: 2, huge: false, budget: scale.mem / 2, advice };
    let (cycles, _, stats) = run.measure(project, opened, scale.mem)?;
    let note = format!(
        "{count} updates in {cycles} cycles, {:.2} each; {} of {} pages in host memory",
        cycles as f64 / count as f64,
        stats.overflowed,
        stats.pages_in
    );
    Ok(run.figure(opened, cycles, note))
}

/// Runs of app gups on a new mapping, with so many bytes of frames.
struct Updates {
    what: &'static str,
    count: u64,
    times: u64,
    huge: bool,
    budget: u64,
    advice: Option<Advice>,
}

impl Updates {
    /// Cycles of the last run, the updates in it that waited, and what the pager has done. The memory is compared.
    fn measure(&self, project: &Project, opened: &Opened, bytes: u64) -> Result<(u64, u64, PagerStats)> {
        let app = project.load("gups")?;
        let slot = opened.card.any_slot()?;
        slot.load(&image(project, opened, &app)?)?;
        slot.set_frame_budget(self.budget);
        let mut expected = Random(5).bytes(bytes as usize);
        let shared = SharedBytes::new(expected.clone());
        let options = MapOptions::new(Prot::READ_WRITE).huge(self.huge);
        let mapping = slot.map(Source::bytes(shared.clone()), bytes, options)?;
        self.advice.map_or(Ok(()), |advice| mapping.advise(advice))?;
        let range = MemoryRange::of(&mapping, register(&app, "base")?, Some(register(&app, "bytes")?));
        let seed = 0x1234_5678_9abc_def1;
        set(&slot, &app, "updates", self.count)?;
        set(&slot, &app, "seed", seed)?;
        for _ in 0..self.times {
            let job = MemoryJob::new(&slot, register(&app, "start")?.offset).range(range);
            job.done(register(&app, "done")?.offset).irq().run()?;
            update(&mut expected, seed, self.count);
        }
        let (cycles, held) = (read(&slot, &app, "cycles")?, read(&slot, &app, "held")?);
        let (errors, stats) = (read(&slot, &app, "errors")?, slot.pager_stats());
        mapping.unmap()?;
        match shared.to_vec() == expected && errors == 0 {
            true => Ok((cycles, held, stats)),
            false => wrong(self.what),
        }
    }

    fn figure(&self, opened: &Opened, cycles: u64, note: String) -> Figure {
        let value = self.count as f64 / opened.card.info().seconds(cycles) / 1e6;
        Figure { what: self.what.to_owned(), value, unit: "M/s", note }
    }
}

/// What app gups does to a memory whose length is a power of two: the sequence in its README.
fn update(memory: &mut [u8], seed: u64, count: u64) {
    let mut x = seed;
    for _ in 0..count {
        x = x << 1 ^ if x >> 63 == 1 { 7 } else { 0 };
        let at = (x % (memory.len() as u64 / 8) * 8) as usize;
        memory[at..at + 8].iter_mut().zip(x.to_le_bytes()).for_each(|(byte, b)| *byte ^= b);
    }
}

fn set(slot: &Slot, app: &Manifest, name: &str, value: u64) -> Result {
    let place = register(app, name)?;
    let bytes = place.width.div_ceil(8).min(8) as usize;
    Ok(slot.write_wide(place, &value.to_le_bytes()[..bytes])?)
}

fn read(slot: &Slot, app: &Manifest, name: &str) -> Result<u64> {
    let bytes = slot.read_wide(register(app, name)?)?;
    Ok(bytes.iter().rev().fold(0, |value, b| value << 8 | u64::from(*b)))
}

/// A register of an app.
fn register(app: &Manifest, name: &str) -> Result<Register> {
    match app.register(name) {
        Some(r) => Ok(Register { offset: r.offset, width: r.width }),
        None => Err(Failure::Run(format!("app {} has no register {name}", app.name))),
    }
}

/// Addresses that app rng accesses in a memory of `len` bytes: the generator in its README.
fn places(size: u64, count: u64, seed: u64, len: u64) -> impl Iterator<Item = u64> {
    let mut x = seed;
    (0..count).map(move |_| {
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        let star = x.wrapping_mul(0x2545_f491_4f6c_dd1d);
        (((star >> 32) * (len / size)) >> 32) * size
    })
}

/// The checksum of app rng for these reads.
fn expected_sum(data: &[u8], size: u64, count: u64, seed: u64) -> u64 {
    let words = |at: u64| data[at as usize..(at + size) as usize].chunks_exact(8);
    places(size, count, seed, data.len() as u64)
        .flat_map(words)
        .map(|w| w.iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b)))
        .fold(0, u64::wrapping_add)
}

// ---------------------------------------------------------------- apps, simulator

fn image(project: &Project, opened: &Opened, app: &Manifest) -> Result<Vec<u8>> {
    let image = crate::project::build(project, app, opened.card.info(), Variant::Fast)?;
    std::fs::read(&image.container).map_err(at(image.container.display()))
}

fn apps(project: &Project, opened: &Opened, len: usize, plots: &mut Vec<Plot>) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut plot = Plot::new(
        "apps",
        Form::Bars,
        "Streams through an app",
        format!(
            "{} from and to host memory, compared with the golden model; pages of 4 KiB",
            size_of(len as u64)
        ),
        ["app", "bytes per cycle"],
    );
    for name in project.apps()? {
        let app = project.load(&name)?;
        if app.memory.is_some() || app.model.is_none() || !app.one_stream_each_way() {
            continue;
        }
        let outcome = stream(project, opened, &app, len)?;
        plot.add(Kind::Ours, "through the app", &name, 0.0, outcome.rate());
        plot.add(Kind::Limit, "a beat a cycle", &name, 0.0, opened.card.info().data_bytes as f64);
        for (way, rate) in link_limits(opened) {
            let clock = f64::from(opened.card.info().clock_khz) / 1e6;
            if way == "from the card" {
                plot.add(Kind::Limit, &format!("the link, {way}"), &name, 0.0, rate / clock);
            }
        }
        let note = format!("{:.2} bytes per cycle; slowest: {}", outcome.rate(), slowest(&outcome));
        figures.push(Figure {
            what: format!("app {name}, {} KiB", len >> 10),
            value: outcome.gb_per_s(),
            unit: "GB/s",
            note,
        });
    }
    plots.push(plot);
    Ok(figures)
}

/// Sends random bytes through an app with one stream each way and compares with its golden model.
fn stream(project: &Project, opened: &Opened, app: &Manifest, len: usize) -> Result<crate::job::Outcome> {
    let mut random = Random(3);
    let folder = Scratch::new()?;
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("in"), random.bytes(len)).map_err(at(path("in").display()))?;
    let route = |name: &str| format!("file:{}", path(name).display()).parse::<Route>().map_err(Failure::Run);
    let routes = Routes::new(app, &[route("in")?], &[route("out")?], true)?;
    let values = match passes(app, &mut random).pop() {
        Some(pass) => pass.values(app)?,
        None => app.register_values([])?,
    };
    let loaded = Loaded::new(opened, None, app, &image(project, opened, app)?, &values)?;
    let outcome = loaded.run(&routes, |_| ())?;
    match routes.check(project, app, &values, &outcome)? {
        Ok(_) => Ok(outcome),
        Err(difference) => Err(Failure::Check(format!("app {}: {difference}", app.name))),
    }
}
