// SPDX-License-Identifier: Apache-2.0
//! Lines for the user, on standard error and standard output.

use std::io::Write;

use crate::fail::{Result, at};

/// A line on standard error, as with `eprintln!`. Errors are ignored, and the work continues.
macro_rules! tell {
    ($($text:tt)*) => {
        $crate::process::tell::line(format_args!($($text)*))
    };
}

/// Implements [`tell!`].
pub fn line(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// A line on standard output. A closed reader is no failure.
pub fn out(line: &str) -> Result {
    crate::process::closed::refuse(1)?;
    match writeln!(std::io::stdout(), "{line}") {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(at("standard output")),
    }
}
