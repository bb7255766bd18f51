// SPDX-License-Identifier: Apache-2.0
//! `viaduct test`

use std::path::Path;
use std::process::Command;

use nix::unistd::{AccessFlags, access};
use viaduct_build::{Access, Manifest, Project, Register, Scratch, Variant, end_with_us};

use crate::card::CardArgs;
use crate::fail::{Failure, Result, at, usage};
use crate::job::{Loaded, Routes, Values};
use crate::process::tell::out;
use crate::random::Random;
use crate::route::{Port, Route, Way, ports};

/// Test an app: on the card against its golden model, then its own tests
#[derive(clap::Args)]
pub struct Args {
    /// App
    app: String,
    /// Seed of random data and register values
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    card: CardArgs,
}

/// Bytes of an input: around a beat, around a page, and many of both.
const SIZES: [usize; 8] = [1, 63, 64, 65, 4095, 4096, 4097, 100_000];

/// Runs the command.
pub fn run(args: Args) -> Result {
    let project = crate::project::find()?;
    let app = project.load(&args.app)?;
    if app.model.is_none() {
        return usage(format!("app {} has no golden model; add [model] python = \"model.py\"", app.name));
    }
    let opened = args.card.open(Variant::Fast)?;
    let image = crate::project::build(&project, &app, opened.card.info(), Variant::Fast)?;
    let image = std::fs::read(&image.container).map_err(at(image.container.display()))?;
    let mut random = Random(args.seed);
    let mut differences = 0;
    for pass in passes(&app, &mut random) {
        let values = pass.values(&app)?;
        if !pass.0.is_empty() {
            out(&format!("with{}:", pass.text()))?;
        }
        let loaded = Loaded::new(&opened, None, &app, &image, &values)?;
        for size in sizes(&app) {
            match compare(&project, &app, &loaded, size, &values, &mut random)? {
                Ok(line) => out(&format!("ok     {line}"))?,
                Err(line) => {
                    differences += 1;
                    out(&format!("WRONG  {line}"))?;
                }
            }
        }
    }
    own_tests(&project, &app, args.seed)?;
    match differences {
        0 => out(&format!("{}: equal to the golden model", app.name)),
        n => Err(Failure::Check(format!(
            "{n} runs of {} differ from its golden model; repeat with --seed {}",
            app.name, args.seed
        ))),
    }
}

/// Sizes to try; an app without inputs runs once.
fn sizes(app: &Manifest) -> &'static [usize] {
    if app.stream_in.is_empty() && app.memory.is_none() { &SIZES[..1] } else { &SIZES }
}

/// Runs the app once and its model once. Returns a line about the run and its result.
fn compare(
    project: &Project,
    app: &Manifest,
    loaded: &Loaded<'_>,
    size: &usize,
    values: &Values,
    random: &mut Random,
) -> Result<std::result::Result<String, String>> {
    let folder = Scratch::new()?;
    let route = |name: &str, path: &Path| -> Result<Route> {
        format!("{name}=file:{}", path.display()).parse().map_err(Failure::Run)
    };
    let (mut ins, mut outs) = (Vec::new(), Vec::new());
    for (name, port) in ports(app, Way::In) {
        let path = folder.path().join(format!("in.{name}"));
        std::fs::write(&path, random.bytes(*size)).map_err(|e| Scratch::lacks(name, &e))?;
        // The memory port changes its file in place.
        let list = if port == Port::Memory { &mut outs } else { &mut ins };
        list.push(route(name, &path)?);
    }
    for stream in &app.stream_out {
        outs.push(route(&stream.name, &folder.path().join(format!("out.{}", stream.name)))?);
    }
    let routes = Routes::new(app, &ins, &outs, true)?;
    let outcome = loaded.run(&routes, |_| ())?;
    let done = match (outcome.bytes_in, outcome.bytes_out) {
        (0, 0) => format!("{size} bytes of memory"),
        (i, o) => format!("{i} bytes in, {o} bytes out"),
    };
    Ok(match routes.check(project, app, values, &[], &outcome)? {
        Ok(same) => Ok(format!("{done}, {} cycles, {same} bytes compared", outcome.cycles)),
        Err(difference) => Err(format!("{done}: {difference}")),
    })
}

/// Values of the registers in one pass, as a user would write them.
pub struct Pass(Vec<(String, String)>);

impl Pass {
    /// As written to the app.
    pub fn values(&self, app: &Manifest) -> Result<Values> {
        Ok(app.register_values(self.0.iter().map(|(name, value)| (name.as_str(), value.as_str())))?)
    }

    fn text(&self) -> String {
        self.0.iter().map(|(name, value)| format!(" {name}={value}")).collect()
    }
}

/// Reset values if allowed, then random ones.
pub fn passes(app: &Manifest, random: &mut Random) -> Vec<Pass> {
    let by_host: Vec<&str> = match &app.memory {
        Some(m) => [&m.base, &m.bytes].into_iter().flatten().map(String::as_str).collect(),
        None => Vec::new(),
    };
    let settable: Vec<&Register> = app
        .registers
        .iter()
        .filter(|r| r.access == Access::Rw && !by_host.contains(&r.name.as_str()))
        .collect();
    let mut pass = |all: bool| {
        let given = settable.iter().filter(|r| all || r.required);
        Pass(given.map(|r| (r.name.clone(), random.value(r))).collect())
    };
    let first = pass(false);
    if settable.is_empty() { vec![first] } else { vec![first, pass(true)] }
}

/// Runs the pytest files in the app's folder, with their own output.
fn own_tests(project: &Project, app: &Manifest, seed: u64) -> Result {
    let files = std::fs::read_dir(&app.dir).map_err(at(app.dir.display()))?;
    let is_test = |name: &str| name.starts_with("test_") && name.ends_with(".py");
    if !files.flatten().any(|f| f.file_name().to_str().is_some_and(is_test)) {
        return Ok(());
    }
    out(&format!("own tests in {}:", app.dir.strip_prefix(project.root()).unwrap_or(&app.dir).display()))?;
    let build = project.root().join("build");
    access(&build, AccessFlags::W_OK).map_err(|e| at("build/, where the tests are built")(e.into()))?;
    let bin = project.root().join(".venv/bin");
    // The tests call the pinned tools by their names.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(bin.clone()).chain(std::env::split_paths(&path)))
        .map_err(|e| Failure::Run(format!("PATH: {e}")))?;
    let mut command = Command::new(bin.join("python"));
    command.args(["-m", "pytest", "-q"]).arg(&app.dir).current_dir(project.root()).env("PATH", path);
    if std::env::var_os("VIA_SEED").is_none() {
        command.env("VIA_SEED", (seed & u64::from(u32::MAX >> 1)).to_string());
    }
    // Its builds end with it.
    end_with_us(&mut command);
    match command.status().map_err(at("pytest"))?.success() {
        true => Ok(()),
        false => Err(Failure::Run(format!("the tests of {} failed: see above", app.name))),
    }
}
