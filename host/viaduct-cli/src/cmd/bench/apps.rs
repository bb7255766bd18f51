// SPDX-License-Identifier: Apache-2.0
//! `viaduct bench apps`: streams through apps.

use viaduct_build::{Manifest, Project, Scratch};

use super::{Figure, image, link_limits, size_of};
use crate::card::Opened;
use crate::cmd::bench::plot::{Form, Kind, Plot};
use crate::cmd::run::slowest;
use crate::cmd::test::passes;
use crate::fail::{Failure, Result, at};
use crate::job::{Loaded, Outcome, Routes};
use crate::random::Random;
use crate::route::Route;

/// Messages through every app with one stream each way.
pub fn apps(project: &Project, opened: &Opened, len: usize, plots: &mut Vec<Plot>) -> Result<Vec<Figure>> {
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
pub fn stream(project: &Project, opened: &Opened, app: &Manifest, len: usize) -> Result<Outcome> {
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
    match routes.check(project, app, &values, &[], &outcome)? {
        Ok(_) => Ok(outcome),
        Err(difference) => Err(Failure::Check(format!("app {}: {difference}", app.name))),
    }
}
