// SPDX-License-Identifier: Apache-2.0
//! `viaduct bench mem`: apps with random accesses to their memory.

use std::collections::BTreeSet;

use viaduct::{Advice, MapOptions, MemoryJob, MemoryRange, PagerStats, Prot, SharedBytes, Source};
use viaduct_build::Project;

use super::rng::{expected_sum, offsets};
use super::{Figure, Scale, beats, image, link_limits, read, register, set, size_of, wrong};
use crate::card::Opened;
use crate::cmd::bench::plot::{Form, Kind, Plot};
use crate::fail::Result;
use crate::random::Random;

/// What is measured, bytes of an access, accesses.
type Accesses = (&'static str, u64, u64);

/// Accesses of app rng that are under way: as many as it has, if the guard has room for their data.
const ACCESSES: u64 = 128;
const ACCESS_BYTES: u64 = 128 << 10;

/// Reads with resident pages, faults and evictions; what the TLBs do not hold; updates.
pub fn mem(project: &Project, opened: &Opened, scale: &Scale, plots: &mut Vec<Plot>) -> Result<Vec<Figure>> {
    let [small, large] = scale.accesses;
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
    let mut figures = accesses(project, opened, scale, &mut plot)?;
    for figure in beyond(project, opened, scale)? {
        let place = figure.what.trim_start_matches("memory, random reads of 64 bytes of ");
        plot.add(Kind::Ours, "4 KiB pages", place, 0.0, figure.value);
        figures.push(figure);
    }
    plots.push(plot);
    figures.push(updates(project, opened, scale)?);
    figures.push(evicting_updates(project, opened, scale)?);
    figures.extend(sized_updates(project, opened, scale)?);
    figures.push(overflowing_updates(project, opened, scale)?);
    Ok(figures)
}

/// Reads by app rng of pages that are loaded, that are loaded by them, and that replace others.
fn accesses(project: &Project, opened: &Opened, scale: &Scale, plot: &mut Plot) -> Result<Vec<Figure>> {
    let app = project.load("rng")?;
    let slot = opened.card.any_slot()?;
    slot.load(&image(project, opened, &app)?)?;
    let set = |name, value| set(&slot, &app, name, value);
    let read = |name| read(&slot, &app, name);
    let data = Random(2).bytes(scale.mem as usize);
    let [small, large] = scale.accesses;
    let mut figures = Vec::new();
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
                        offsets(size, count, seed, scale.mem).map(|at| at / page).collect();
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
        offsets(piece, *count, seed, bytes).collect::<BTreeSet<_>>().len() as u64 == bytes / piece
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
    let run = Updates { what, count, times: 2, huge: Some(true), budget: u64::MAX, advice: None };
    let (cycles, held, _) = run.measure(project, opened, scale.mem)?;
    Ok(run.figure(opened, cycles, format!("{count} updates in {cycles} cycles; {held} waited")))
}

/// Random updates by app gups with frames for half of the pages, nearly all of which have changed when they are evicted.
fn evicting_updates(project: &Project, opened: &Opened, scale: &Scale) -> Result<Figure> {
    let what = "random updates of 8 bytes, frames for half, 4 KiB pages";
    let count = 2 * scale.mem / 4096;
    let run = Updates { what, count, times: 1, huge: Some(false), budget: scale.mem / 2, advice: None };
    let (cycles, _, stats) = run.measure(project, opened, scale.mem)?;
    let note = format!(
        "{count} updates in {cycles} cycles; {} pages loaded, {:.0} each, and {} written back",
        stats.pages_in,
        cycles as f64 / stats.pages_in as f64,
        stats.pages_out
    );
    Ok(run.figure(opened, cycles, note))
}

/// As [`evicting_updates`], without a choice of the page size, and with pages of 2 MiB only.
fn sized_updates(project: &Project, opened: &Opened, scale: &Scale) -> Result<Vec<Figure>> {
    if scale.mem < 8 << 20 {
        return Ok(Vec::new()); // too few pages of 2 MiB
    }
    let mut figures = Vec::new();
    let all = 2 * scale.mem / 4096;
    for (what, huge, count) in [
        ("random updates of 8 bytes, frames for half, page sizes that follow use", None, all),
        ("random updates of 8 bytes, frames for half, 2 MiB pages", Some(true), all / 64),
    ] {
        let run = Updates { what, count, times: 1, huge, budget: scale.mem / 2, advice: None };
        let (cycles, _, stats) = run.measure(project, opened, scale.mem)?;
        let note = format!(
            "{count} updates in {cycles} cycles, {:.0} each; {} pages loaded, {} blocks of 2 MiB got pages of 4 KiB",
            cycles as f64 / count as f64,
            stats.pages_in,
            stats.demoted
        );
        figures.push(run.figure(opened, cycles, note));
    }
    Ok(figures)
}

/// As [`evicting_updates`], but pages that card memory has no room for stay in host memory: in a second run, when all have been touched.
fn overflowing_updates(project: &Project, opened: &Opened, scale: &Scale) -> Result<Figure> {
    let what = "random updates of 8 bytes, frames for half, others in host memory";
    let count = 4 * scale.accesses[0];
    let advice = Some(Advice::Random);
    let run = Updates { what, count, times: 2, huge: Some(false), budget: scale.mem / 2, advice };
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
    huge: Option<bool>,
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
        let options = MapOptions::new(Prot::READ_WRITE);
        let options = self.huge.map_or(options, |huge| options.huge(huge));
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
