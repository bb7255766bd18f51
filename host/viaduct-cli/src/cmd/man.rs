// SPDX-License-Identifier: Apache-2.0
//! `viaduct man`

use std::path::PathBuf;

use crate::fail::{Result, at};

/// Write the manual pages, one for each command
#[derive(clap::Args)]
pub struct Args {
    /// Folder for viaduct.1, viaduct-run.1 and so on; created if missing
    folder: PathBuf,
}

/// Runs the command.
pub fn run(args: Args, command: clap::Command) -> Result {
    std::fs::create_dir_all(&args.folder).map_err(at(args.folder.display()))?;
    clap_mangen::generate_to(command, &args.folder).map_err(at(args.folder.display()))
}
