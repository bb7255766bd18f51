// SPDX-License-Identifier: Apache-2.0
//! The terminal this program runs in.

pub mod meter;
pub mod style;
pub mod text;

use std::process::{Command, Stdio};

use indicatif::ProgressDrawTarget;

/// Where progress is drawn: standard error, unless its terminal cannot move the cursor.
pub fn progress_target() -> ProgressDrawTarget {
    match std::env::var_os("TERM") {
        Some(term) if term == "dumb" => ProgressDrawTarget::hidden(),
        _ => ProgressDrawTarget::stderr(),
    }
}

/// Rows and columns of the terminal on standard input; `None` if it is not a terminal, or has no size.
pub fn window() -> Option<(u16, u16)> {
    let size =
        Command::new("stty").arg("size").stdin(Stdio::inherit()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&size.stdout);
    let (rows, columns) = text.trim().split_once(' ')?;
    match (rows.parse(), columns.parse()) {
        (Ok(rows @ 1..), Ok(columns @ 1..)) => Some((rows, columns)),
        _ => None,
    }
}
