// SPDX-License-Identifier: Apache-2.0
//! `viaduct new`

use crate::fail::Result;
use crate::process::tell::out;

/// Start a new app: one that builds and passes its test before you change a line
#[derive(clap::Args)]
pub struct Args {
    /// Name: lower-case letters, digits and underscores
    name: String,
}

/// Runs the command.
pub fn run(args: Args) -> Result {
    let project = crate::project::find()?;
    let files = project.scaffold(&args.name)?;
    for file in files {
        out(&format!("{}", file.strip_prefix(project.root()).unwrap_or(&file).display()))?;
    }
    out(&format!("Next: `viaduct test {}`, then write your logic. See docs/apps.md.", args.name))?;
    Ok(())
}
