// SPDX-License-Identifier: Apache-2.0
//! `viaduct completions`

use clap_complete::Shell;

use crate::fail::Result;
use crate::process::tell::out;

/// Print a script that completes commands and options in a shell
#[derive(clap::Args)]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Runs the command.
pub fn run(args: Args, mut command: clap::Command) -> Result {
    // Into memory first: the generator panics if its output is closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "viaduct", &mut script);
    out(String::from_utf8_lossy(&script).trim_end())
}
