// SPDX-License-Identifier: Apache-2.0
//! `viaduct build`

use viaduct_build::{Manifest, Project, Variant};

use crate::fail::{Failure, Result, usage};
use crate::process::tell::out;

/// Build apps: generate the wrapper, Verilate, compile; files that are up to date are left alone
#[derive(clap::Args)]
pub struct Args {
    /// Apps to build
    #[arg(value_name = "APP", required_unless_present = "all")]
    apps: Vec<String>,
    /// All apps
    #[arg(long, conflicts_with = "apps")]
    all: bool,
    /// Objects that record waveforms
    #[arg(long, conflicts_with = "coverage")]
    trace: bool,
    /// Objects that count coverage
    #[arg(long)]
    coverage: bool,
    /// Only generate wrapper, registers and accessors (for editors and linters)
    #[arg(long, conflicts_with_all = ["trace", "coverage"])]
    generate: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Result {
    let project = crate::project::find()?;
    let names = if args.all { project.apps()? } else { args.apps };
    if names.is_empty() {
        return usage("there is no app yet; start one with `viaduct new`");
    }
    let variant = match (args.trace, args.coverage) {
        (true, _) => Variant::Trace,
        (_, true) => Variant::Coverage,
        _ => Variant::Fast,
    };
    // Every manifest is read before the first build, so that a typing error is found immediately. With --all, a broken one
    // does not prevent the build of the others.
    let (mut apps, mut failed) = (Vec::new(), Vec::new());
    for name in &names {
        match project.load(name) {
            Ok(app) => apps.push(app),
            Err(e) if args.all => {
                Failure::from(e).report();
                failed.push(name.as_str());
            }
            Err(e) => return Err(e.into()),
        }
    }
    if args.generate {
        for app in &apps {
            let generated = project.generate(app)?;
            let files = generated.verilog.iter().chain([
                &generated.c,
                &generated.rust,
                &generated.python,
                &generated.page,
            ]);
            for file in files {
                out(&file.strip_prefix(project.root()).unwrap_or(file).display().to_string())?;
            }
        }
        return Ok(());
    }
    for app in &apps {
        match build_one(&project, app, variant) {
            Err(failure) if names.len() > 1 => {
                failure.report();
                failed.push(&app.name);
            }
            other => other?,
        }
    }
    match failed.as_slice() {
        [] => Ok(()),
        names => Err(Failure::Run(format!("not built: {}", names.join(", ")))),
    }
}

/// Builds one app and reports the result.
fn build_one(project: &Project, app: &Manifest, variant: Variant) -> Result {
    let image = project.build_variant(app, &Default::default(), variant, &mut |line| drop(out(line)))?;
    let shown = image.container.strip_prefix(project.root()).unwrap_or(&image.container);
    out(&format!("{}: {}", app.name, shown.display()))
}
