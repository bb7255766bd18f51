// SPDX-License-Identifier: Apache-2.0
//! `viaduct wave`

use std::path::{Path, PathBuf};

use viaduct_build::{Project, Variant};

use super::run::{Prepared, RunArgs};
use crate::card::{CardArgs, CardSpec, Opened};
use crate::fail::{Failure, Result, at, usage};
use crate::process::tell::out;

/// Record the waveforms of a run: every signal of the shell and of the app
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    what: RunArgs,
    #[command(flatten)]
    card: CardArgs,
    /// First cycle to record; by default the first of the run
    #[arg(long, value_name = "CYCLE")]
    start: Option<u64>,
    /// How many cycles to record
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    cycles: u64,
    /// FST file; the app's signals are in a second one next to it
    #[arg(short, long, value_name = "FILE", default_value = "out.fst")]
    output: PathBuf,
}

/// Runs the command.
pub fn run(args: Args) -> Result {
    let project = crate::project::find()?;
    if args.card.card != CardSpec::Sim {
        return usage("only the card simulated in this process can be recorded; leave --card out");
    }
    // Before anything is built.
    let folder =
        args.output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !std::fs::metadata(folder).map_err(at(folder.display()))?.is_dir() || args.output.is_dir() {
        return usage(format!("-o {}: name a file in a folder", args.output.display()));
    }
    let prepared = args.what.prepare(project.load(&args.what.app)?)?;
    // Before any thread is started: a signal ends the run, and the recording is complete up to there.
    crate::process::signals::ending().thread_block().map_err(|e| Failure::Run(format!("signals: {e}")))?;
    let opened = args.card.open(Variant::Trace)?;
    let slots = opened.card.info().slots;
    let recorded = record(&args, &project, &prepared, opened);
    if recorded.is_err() {
        // An earlier recording stays; what was created for this one and has got nothing goes.
        for file in (0..slots).map(|slot| of_slot(&args.output, slot)).chain([args.output.clone()]) {
            if std::fs::metadata(&file).is_ok_and(|made| made.is_file() && made.len() == 0) {
                std::fs::remove_file(&file).map_err(at(file.display()))?;
            }
        }
    }
    recorded
}

/// Runs and records on a card that is closed at the end, and the files with it.
fn record(args: &Args, project: &Project, prepared: &Prepared, opened: Opened) -> Result {
    let Some(sim) = &opened.sim else { return usage("this card cannot be recorded") };
    let image = crate::project::build(project, &prepared.app, opened.card.info(), Variant::Trace)?;
    let image = std::fs::read(&image.container).map_err(at(image.container.display()))?;
    let record = |start: u64| {
        let begun = sim.function.wave(&args.output, start, args.cycles);
        begun.map_err(|e| Failure::Run(format!("{}: {e}", args.output.display()))).map(|()| start)
    };
    // A start given by the user may be before the app is loaded.
    let asked = args.start.map(record).transpose()?;
    let loaded = prepared.load(&opened, args.what.slot, &image)?;
    let start = match asked {
        Some(start) => start,
        None => record(sim.function.now())?,
    };
    let outcome =
        prepared.run(&opened, &loaded).map_err(|failure| match crate::process::signals::waiting() {
            true => Failure::Run("ended by a signal; the recording ends there".into()),
            false => failure,
        })?;
    let end = sim.function.now();
    drop(loaded);
    if start >= end {
        return usage(format!("the run ended at cycle {end}, before --start {start}: nothing was recorded"));
    }
    tell!("{}: cycles {start} to {} of {end}", prepared.app.name, end.min(start.saturating_add(args.cycles)));
    out(&format!("shell  {}", args.output.display()))?;
    let of_app = of_slot(&args.output, outcome.slot);
    if !of_app.exists() {
        tell!("the app was not loaded yet in these cycles: there is no file of it; choose a later --start");
        return Ok(());
    }
    out(&format!("app    {}", of_app.display()))
}

/// The file of the app in a slot.
fn of_slot(output: &Path, slot: usize) -> PathBuf {
    let mut name = output.with_extension(format!("slot{slot}")).into_os_string();
    if let Some(extension) = output.extension() {
        name.push(".");
        name.push(extension);
    }
    name.into()
}
