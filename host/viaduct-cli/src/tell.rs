// SPDX-License-Identifier: Apache-2.0
//! Lines for the user, on standard error and standard output.

use std::io::Write;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

use crate::fail::{Result, at};

/// A line on standard error, as with `eprintln!`. Errors are ignored, and the work continues.
macro_rules! tell {
    ($($text:tt)*) => {
        $crate::tell::line(format_args!($($text)*))
    };
}

/// Errors, as the argument parser shows them.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// What is as it should be.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Names in a list.
pub const NAME: Style = Style::new().bold();

/// Whether the stream is to have colours: it is a terminal, and `NO_COLOR` is not set.
pub fn coloured(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

/// The text for a stream, in a style if it is to have colours.
pub fn styled(stream: &impl RawStream, style: Style, text: impl std::fmt::Display) -> String {
    if coloured(stream) { format!("{style}{text}{style:#}") } else { text.to_string() }
}

/// Implements [`tell!`].
pub fn line(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// A line on standard output. A closed reader is no failure.
pub fn out(line: &str) -> Result {
    crate::closed::refuse(1)?;
    match writeln!(std::io::stdout(), "{line}") {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(at("standard output")),
    }
}
