// SPDX-License-Identifier: Apache-2.0
//! `viaduct run`

use std::path::Path;

use serde_json::json;
use viaduct::FunctionKind;
use viaduct_build::{Container, Manifest, Project, Variant};
use viaduct_sim::Profile;

use crate::card::{CardArgs, CardSpec, Opened};
use crate::ethernet::{Crossed, EthernetArgs};
use crate::fail::{Failure, Result, at, regular, usage};
use crate::job::{Loaded, Message, Outcome, Routes, Stage, Values, number};
use crate::line::{Then, as_one};
use crate::route::Route;
use crate::settings::{registers, setting};
use crate::terminal::meter::Meter;
use crate::trace::{TraceArgs, Traced};

use crate::functions::virtio;
use crate::process::signals::Signals;
use crate::process::tell::out;
use crate::terminal::text::digest;

/// Run an app on a card, from files to files
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub what: RunArgs,
    #[command(flatten)]
    pub card: CardArgs,
    #[command(flatten)]
    pub ethernet: EthernetArgs,
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Print a JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

/// The app and its routes.
#[derive(clap::Args)]
pub struct RunArgs {
    /// App, or the path of its built image (aes.via, with its manifest aes.toml next to it)
    pub app: String,
    /// Source of an input: file:PATH (a file or FIFO), - (standard input), fd:NUMBER, card:ADDRESS+LENGTH, host:SIZE,
    /// virtio:FUNCTION, eth: (the board's Ethernet port); an input with lanes may have many files
    #[arg(long = "in", value_name = "[PORT=]ENDPOINT")]
    pub ins: Vec<Route>,
    /// Destination of an output: the same, and - is standard output; a digest without a destination is printed
    #[arg(long = "out", value_name = "[PORT=]ENDPOINT")]
    pub outs: Vec<Route>,
    /// Value of a register of the app
    #[arg(long = "set", value_name = "REGISTER=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// A further app, which gets what the one before gives, on the card; and values of its registers. May be repeated
    #[arg(long, value_name = "APP [REGISTER=VALUE]…")]
    pub then: Vec<Then>,
    /// Slot to use; the first free one unless given
    #[arg(long)]
    pub slot: Option<usize>,
    /// Compare the output with the app's golden model
    #[arg(long)]
    pub check: bool,
}

/// An app with all options of its run.
pub struct Prepared {
    pub app: Manifest,
    /// Further apps, in sequence.
    behind: Vec<Stage>,
    /// All of them as one.
    whole: Manifest,
    pub routes: Routes,
    /// Values to write: the registers given by the user.
    given: Values,
    /// Values for the golden model: these and the reset values.
    values: Values,
}

impl RunArgs {
    /// Makes all checks that are possible before anything is built or changed.
    pub fn prepare(&self, app: Manifest) -> Result<Prepared> {
        let (values, given) = registers(&app, &self.set)?;
        let behind = (self.then.iter())
            .map(|then| then.stage(crate::project::find()?.load(&then.app)?))
            .collect::<Result<Vec<_>>>()?;
        for app in std::iter::once(&app).chain(behind.iter().map(|stage| &stage.app)) {
            if self.check && app.model.is_none() {
                return usage(format!("app {} has no golden model to check against", app.name));
            }
        }
        let whole = as_one(&app, &behind)?;
        for path in self.ins.iter().filter_map(Route::file) {
            let found = std::fs::metadata(path).map_err(at(path))?;
            if found.is_dir() {
                return usage(format!("{path}: is a directory; name a file"));
            }
        }
        for (fd, routes) in [(0, &self.ins), (1, &self.outs)] {
            if routes.iter().any(Route::is_standard) {
                crate::process::closed::refuse(fd)?;
            }
        }
        let routes = Routes::new(&whole, &self.ins, &self.outs, self.check)?;
        if routes.to_standard() && routes.prints() {
            return usage(
                "one output goes to standard output, and one without a route would be printed there too; give it a file",
            );
        }
        Ok(Prepared { app, behind, whole, routes, given, values })
    }
}

impl Prepared {
    /// Loads the image into a slot and sets the registers.
    pub fn load(&self, opened: &Opened, slot: Option<usize>, image: &[u8]) -> Result<Loaded<'_>> {
        Loaded::new(opened, slot, &self.app, image, &self.given)
    }

    /// Loads the further apps, each into a free slot.
    fn load_behind<'a>(&'a self, loaded: &mut Loaded<'a>, images: &[Vec<u8>]) -> Result<()> {
        self.behind.iter().zip(images).try_for_each(|(stage, image)| loaded.then(stage, image))
    }

    /// Runs, and shows progress.
    pub fn run(&self, opened: &Opened, loaded: &Loaded<'_>) -> Result<Outcome> {
        let meter = Meter::new(opened.card.info().clone());
        let outcome = loaded.run(&self.routes, |p| meter.show(p));
        meter.close();
        outcome
    }
}

/// Origin of an app.
enum Origin {
    /// A project, which builds it.
    Project(Project),
    /// An image: there need not be a project.
    Image(Vec<u8>),
}

impl Origin {
    /// The image for this card.
    fn image(&self, app: &Manifest, opened: &Opened) -> Result<Vec<u8>> {
        match self {
            Origin::Image(image) => Ok(image.clone()),
            Origin::Project(project) => {
                let built = crate::project::build(project, app, opened.card.info(), Variant::Fast)?;
                std::fs::read(&built.container).map_err(at(built.container.display()))
            }
        }
    }
}

/// The app of a run: by name, or by the path of its image, which contains a `/` or ends with `.via`.
fn find(what: &RunArgs) -> Result<(Manifest, Origin)> {
    if !what.app.contains('/') && !what.app.ends_with(".via") {
        let project = crate::project::find()?;
        return Ok((project.load(&what.app)?, Origin::Project(project)));
    }
    if what.check {
        return usage("--check needs the golden model, which an image does not have; give the app's name");
    }
    let path = Path::new(&what.app);
    if std::fs::metadata(path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
        return Err(Failure::Run(format!(
            "{}: No such file or directory; give the name of an app of the project, or an image that `viaduct build` has \
             written",
            path.display()
        )));
    }
    regular(path)?;
    let (image, Container { name, .. }) = Container::read(path)?;
    let app = match Manifest::beside(path, &name)? {
        Some(app) => app,
        None => crate::project::find()?.load(&name)?,
    };
    Ok((app, Origin::Image(image)))
}

/// Runs the command.
pub fn run(args: Args) -> Result {
    let (app, origin) = find(&args.what)?;
    if !args.what.then.is_empty()
        && args.what.ins.iter().chain(&args.what.outs).any(|route| route.endpoint.starts_with("virtio:"))
    {
        return usage("an app behind a function is alone: leave --then out");
    }
    if let Some(kind) = virtio::function_of(&app, &args.what.ins, &args.what.outs, &args.card.card)? {
        return serve(&args, &app, &origin, kind);
    }
    let frames = args.ethernet.is_used(&args.what.ins, &args.what.outs, &args.card.card, args.what.check)?;
    let prepared = args.what.prepare(app)?;
    if args.json && prepared.routes.to_standard() {
        return usage("--json and an output both go to standard output; give the output a file");
    }
    // A run without an end of its own is ended by a signal. Before any thread is started.
    let _signals = if frames { Some(Signals::take()?) } else { None };
    let opened = if frames && args.card.card == CardSpec::Sim {
        // Only that variant has the port.
        let change = |profile: &mut Profile| args.ethernet.apply(&mut profile.board);
        args.card.open_with(&crate::project::find()?, Variant::Functions, change)?
    } else {
        args.card.open(Variant::Fast)?
    };
    let image = origin.image(&prepared.app, &opened)?;
    let behind = (prepared.behind.iter())
        .map(|stage| Origin::Project(crate::project::find()?).image(&stage.app, &opened))
        .collect::<Result<Vec<_>>>()?;
    let trace = args.trace.begin(&opened, &args.card.card, args.what.ins.iter().chain(&args.what.outs))?;
    let begun = std::time::Instant::now();
    let line =
        if frames { Some(args.ethernet.connect(&opened, &args.what.ins, &args.what.outs)?) } else { None };
    let outcome = prepared.load(&opened, args.what.slot, &image).and_then(|mut loaded| {
        if let Some(line) = &line {
            loaded.until(|| line.is_over());
        }
        prepared.load_behind(&mut loaded, &behind)?;
        prepared.run(&opened, &loaded)
    });
    let outcome = match line {
        Some(line) => line.end(outcome),
        None => outcome.map(|outcome| (outcome, None)),
    };
    let seconds = begun.elapsed().as_secs_f64();
    let traced = trace.map(Traced::end).transpose();
    let reported = outcome.and_then(|(outcome, crossed)| {
        report(&args, &prepared, &origin, &outcome, crossed.as_ref(), seconds)
    });
    crate::trace::tell(traced, reported)
}

/// Checks and prints what a run has done.
fn report(
    args: &Args,
    prepared: &Prepared,
    origin: &Origin,
    outcome: &Outcome,
    crossed: Option<&Crossed>,
    seconds: f64,
) -> Result {
    let verdict = match origin {
        Origin::Project(project) if args.what.check => Some(prepared.routes.check(
            project,
            &prepared.app,
            &prepared.values,
            &prepared.behind,
            outcome,
        )?),
        _ => None,
    };
    let simulated = matches!(args.card.card, CardSpec::Sim);
    if args.json {
        print_json(prepared, outcome, crossed, verdict.as_ref(), seconds)?;
    } else {
        print_text(prepared, outcome, verdict.as_ref(), simulated.then_some(seconds))?;
        crossed.iter().for_each(|crossed| tell!("{}", crossed.text()));
    }
    match verdict {
        Some(Err(difference)) => Err(Failure::Check(difference)),
        _ => Ok(()),
    }
}

/// Connects the app to a function of the card.
fn serve(args: &Args, app: &Manifest, origin: &Origin, kind: FunctionKind) -> Result {
    let what = &args.what;
    if what.check {
        return usage("--check needs a run that ends; that of an app behind a function does not");
    }
    let (_, given) = registers(app, &what.set)?;
    // Before any thread is started.
    let mut signals = Signals::take()?;
    let opened = args.card.open(Variant::Fast)?;
    let image = origin.image(app, &opened)?;
    let loaded = Loaded::new(&opened, what.slot, app, &image, &given)?;
    let slot = loaded.index();
    let (sent, received) = virtio::serve(&opened, &app.name, slot, kind, &mut signals)?;
    if args.json {
        let function = kind.name();
        return out(&json!({"app": app.name, "slot": slot, "function": function, "messages_in": sent, "messages_out": received}).to_string());
    }
    tell!("{}: {sent} messages in, {received} messages out", app.name);
    Ok(())
}

type Verdict = std::result::Result<u64, String>;

fn print_json(
    prepared: &Prepared,
    outcome: &Outcome,
    crossed: Option<&Crossed>,
    verdict: Option<&Verdict>,
    seconds: f64,
) -> Result {
    let mut value = outcome.json();
    if let Some(crossed) = crossed {
        value["ethernet"] = crossed.json();
    }
    value["app"] = json!(prepared.whole.name);
    value["host_seconds"] = json!(seconds);
    value["slowest"] = json!(slowest(outcome));
    value["messages"] = messages(&prepared.routes);
    value["check"] = match verdict {
        None => json!(null),
        Some(Ok(bytes)) => json!({"ok": true, "bytes": bytes}),
        Some(Err(difference)) => json!({"ok": false, "difference": difference}),
    };
    out(&value.to_string())
}

/// Output → its message, or the list of its messages if they were sent through lanes.
fn messages(routes: &Routes) -> serde_json::Value {
    let mut outputs = json!({});
    for message in routes.messages() {
        let entry = &mut outputs[&message.output];
        match (routes.in_lanes(), entry.as_array_mut()) {
            (false, _) => *entry = json!(message.hex),
            (true, Some(list)) => list.push(json!(message.hex)),
            (true, None) => *entry = json!([message.hex]),
        }
    }
    outputs
}

/// Digests to standard output, figures to standard error.
fn print_text(prepared: &Prepared, o: &Outcome, verdict: Option<&Verdict>, simulated: Option<f64>) -> Result {
    for Message { output, of, hex } in prepared.routes.messages() {
        match of {
            Some(name) if prepared.whole.stream_out.len() == 1 => out(&digest(&hex, &name))?,
            Some(name) => out(&format!("{output} {}", digest(&hex, &name)))?,
            None => out(&format!("{output} {hex}"))?,
        }
    }
    for (name, value) in &o.registers {
        tell!("{name} = {}", number(value));
    }
    tell!(
        "{}: {} bytes in, {} bytes out, {} cycles: {:.2} bytes per cycle, {:.2} GB/s at {} MHz",
        prepared.whole.name,
        o.bytes_in,
        o.bytes_out,
        o.cycles,
        o.rate(),
        o.gb_per_s(),
        f64::from(o.info.clock_khz) / 1e3,
    );
    tell!("slowest part: {}", slowest(o));
    if let Some(seconds) = simulated {
        tell!("simulated in {seconds:.1} s: {:.0} cycles per second", o.cycles as f64 / seconds.max(1e-9));
    }
    if let Some(Ok(bytes)) = verdict {
        tell!("check: all {bytes} bytes equal the golden model's");
    }
    Ok(())
}

/// Names the part that limited the run, as far as the counters show.
pub fn slowest(o: &Outcome) -> String {
    /// Above this utilisation the others wait for a part.
    const SATURATED: f64 = 0.9;
    match o.busy().first() {
        None => "no data to move".to_owned(),
        Some((part, share)) if *share >= SATURATED => {
            format!("{part}, busy in {:.0} % of the cycles", share * 100.0)
        }
        Some((part, share)) => {
            format!("the app, or latency (next: {part}, busy in {:.0} % of the cycles)", share * 100.0)
        }
    }
}
