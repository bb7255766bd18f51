// SPDX-License-Identifier: Apache-2.0
//! Colours on terminals.

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

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
