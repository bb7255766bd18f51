// SPDX-License-Identifier: Apache-2.0
//! What scripts of the tools make for a guest.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use viaduct_build::{Project, end_with_us};

use crate::fail::{Failure, Result, at};

/// Runs a script of `tools/`, and returns what it prints: the path of what it has made.
pub fn made(project: &Project, script: &str, args: &[&str]) -> Result<PathBuf> {
    let path = project.root().join("tools").join(script);
    let mut command = Command::new(&path);
    command.args(args).stderr(Stdio::inherit()).stdin(Stdio::null());
    // Its downloads and builds end with it.
    end_with_us(&mut command);
    let output = command.output().map_err(at(path.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    if !output.status.success() || text.is_empty() {
        return Err(Failure::Run(format!("tools/{script} has made nothing; the reason is above")));
    }
    Ok(text.into())
}
