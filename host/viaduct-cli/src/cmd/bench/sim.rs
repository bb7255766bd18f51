// SPDX-License-Identifier: Apache-2.0
//! `viaduct bench sim`: what this machine simulates, and what the host library takes of it.

use std::time::{Duration, Instant};

use nix::time::ClockId;
use viaduct::{MapOptions, MemoryJob, MemoryRange, Prot, SharedBytes, Source};
use viaduct_build::{Project, Variant};
use viaduct_pci::Location;

use super::apps::stream;
use super::rng::expected_sum;
use super::{Figure, image, read, register, set, wrong};
use crate::card::{CardArgs, CardSpec, Opened, simulated};
use crate::cmd::card::serve;
use crate::fail::{Failure, Result};
use crate::random::Random;

/// Message sent through the app, in bytes.
const BYTES: usize = 4 << 20;
/// Most edges recorded.
const EDGES: u64 = 200_000;
/// Resident memory, in bytes, and accesses to it during which the pager's time is measured: some seconds of the simulator's time.
const RESIDENT: u64 = 1 << 20;
const ACCESSES: u64 = 1 << 20;

pub fn run(project: &Project, card: &CardArgs) -> Result<Vec<Figure>> {
    let mut figures = speed(project, card)?;
    figures.push(waiting(project, card)?);
    Ok(figures)
}

/// The card model against the bare Verilated shell under the same inputs, edge by edge.
fn speed(project: &Project, card: &CardArgs) -> Result<Vec<Figure>> {
    let app = project.load("pass")?;
    let refused = |e: viaduct_sim::SimError| Failure::Run(e.to_string());
    let function = |opened: &Opened| {
        opened.sim.as_ref().map(|s| s.function.clone()).ok_or(Failure::Run("not a simulated card".into()))
    };
    // The first run builds missing files and warms the caches; the second is timed. Both take the same cycles.
    let mut model = 0.0;
    let mut cycles = 0;
    for _ in 0..2 {
        let opened = card.open(Variant::Fast)?;
        let outcome = stream(project, &opened, &app, BYTES)?;
        model = outcome.cycles as f64 / outcome.seconds;
        cycles = outcome.cycles;
    }
    let opened = card.open(Variant::Fast)?;
    let recorded = function(&opened)?;
    recorded.record(EDGES).map_err(refused)?;
    let again = stream(project, &opened, &app, BYTES)?;
    if again.cycles != cycles {
        return wrong("the recorded run takes a different number of cycles");
    }
    let edges = recorded.replay(true).map_err(refused)?;
    let begun = Instant::now();
    recorded.replay(false).map_err(refused)?;
    let bare = edges as f64 / begun.elapsed().as_secs_f64();
    let note = format!("{edges} edges, every output compared with the model's");
    let share =
        format!("{cycles} cycles of 4 MiB through app pass: {:.0} % of the bare shell", model / bare * 100.0);
    Ok(vec![
        Figure { what: "bare Verilated shell, this machine".into(), value: bare, unit: "cycles/s", note },
        Figure { what: "card model, this machine".into(), value: model, unit: "cycles/s", note: share },
    ])
}

/// Processor time of the thread that serves an app's faults while there are none. The card is behind a socket, and other threads simulate
/// it; one in this process is simulated by the thread that waits for it.
fn waiting(project: &Project, card: &CardArgs) -> Result<Figure> {
    let what = "pager, no faults, this machine";
    let folder = tempfile::tempdir().map_err(|e| Failure::Run(format!("a temporary folder: {e}")))?;
    let socket = folder.path().join("card.sock");
    let simulated = simulated(project, card.profile.as_deref(), Variant::Fast)?;
    let _server = serve(&socket, simulated.function.clone())?;
    let place = CardSpec::At(Location::Unix(socket));
    let opened = CardArgs { card: place, profile: None, ..card.clone() }.open_as_built()?;
    let app = project.load("rng")?;
    let slot = opened.card.any_slot()?;
    slot.load(&image(project, &opened, &app)?)?;
    let data = Random(2).bytes(RESIDENT as usize);
    let source = Source::bytes(SharedBytes::new(data.clone()));
    let mapping = slot.map(source, RESIDENT, MapOptions::new(Prot::READ))?;
    let range = MemoryRange::of(&mapping, register(&app, "base")?, Some(register(&app, "bytes")?));
    let seed = 0x1234_5678_9abc_def1;
    let accesses = |size, count| -> Result<(Duration, Duration)> {
        for (name, value) in [("size", size), ("count", count), ("seed", seed), ("write", 0)] {
            set(&slot, &app, name, value)?;
        }
        let (begun, before) = (Instant::now(), own_time()?);
        let job = MemoryJob::new(&slot, register(&app, "start")?.offset).range(range);
        job.done(register(&app, "done")?.offset).irq().run()?;
        let took = (own_time()? - before, begun.elapsed());
        match read(&slot, &app, "checksum")? == expected_sum(&data, size, count, seed) {
            true => Ok(took),
            false => wrong(what),
        }
    };
    // All pages are loaded by these.
    accesses(4096, 16 * RESIDENT / 4096)?;
    let loaded = slot.pager_stats().pages_in;
    let (own, all) = accesses(64, ACCESSES)?;
    if slot.pager_stats().pages_in != loaded {
        return Err(Failure::Run(format!("{what}: pages were loaded meanwhile")));
    }
    Ok(Figure {
        what: what.into(),
        value: own.as_secs_f64() / all.as_secs_f64() * 100.0,
        unit: "% of a CPU",
        note: format!(
            "{own:.1?} of the thread that waits, in {all:.1?}; {ACCESSES} reads of resident pages, compared"
        ),
    })
}

/// Processor time of this thread.
fn own_time() -> Result<Duration> {
    ClockId::CLOCK_THREAD_CPUTIME_ID.now().map(Duration::from).map_err(|e| Failure::Run(e.to_string()))
}
