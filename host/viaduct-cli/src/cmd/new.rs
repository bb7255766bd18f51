// SPDX-License-Identifier: Apache-2.0
//! `viaduct new`

use clap::builder::{PossibleValuesParser, TypedValueParser};
use viaduct_build::{Flow, Like};

use crate::fail::Result;
use crate::process::tell::out;

/// Start a new app: one that builds and passes its test before you change a line
#[derive(clap::Args)]
pub struct Args {
    /// Name: lower-case letters, digits and underscores
    name: String,
    /// Describe the app in the language of this generator, from which each build makes its Verilog
    #[arg(long, value_parser = one_of(&Flow::ALL, Flow::name))]
    flow: Option<Flow>,
    /// With `--flow`: the app whose function it has at first
    #[arg(long, value_name = "APP", requires = "flow", default_value = "inc", value_parser = one_of(&Like::ALL, Like::name))]
    like: Like,
}

/// A parser of the names of `all`.
fn one_of<T: Copy + Send + Sync>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(|&one| name(one)))
        .try_map(move |text| all.iter().copied().find(|&one| name(one) == text).ok_or("there is none"))
}

/// Runs the command.
pub fn run(args: Args) -> Result {
    let project = crate::project::find()?;
    let files = match args.flow {
        Some(flow) => project.scaffold_generated(&args.name, flow, args.like)?,
        None => project.scaffold(&args.name)?,
    };
    for file in files {
        out(&format!("{}", file.strip_prefix(project.root()).unwrap_or(&file).display()))?;
    }
    out(&format!("Next: `viaduct test {}`, then write your logic. See docs/apps.md.", args.name))?;
    Ok(())
}
