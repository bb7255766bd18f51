// SPDX-License-Identifier: Apache-2.0
//! Lines for the user, on standard error and standard output.

use std::io::Write;

use crate::fail::{Result, at};

/// A line on standard error, as with `eprintln!`. Errors are ignored, and the work continues.
macro_rules! tell {
    ($($text:tt)*) => {
        $crate::tell::line(format_args!($($text)*))
    };
}

/// Implements [`tell!`].
pub fn line(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// A line on standard output. A closed reader is no failure.
pub fn out(line: &str) -> Result {
    match writeln!(std::io::stdout(), "{line}") {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(at("standard output")),
    }
}

/// Untrusted text, such as the name of a file, on one line and without control characters.
pub fn plain(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// A digest and the name of its file as `sha256sum` prints them: a leading backslash marks a quoted name.
pub fn digest(hex: &str, name: &str) -> String {
    let quoted = name.replace('\\', r"\\").replace('\n', r"\n").replace('\r', r"\r");
    let mark = if quoted == name { "" } else { r"\" };
    format!("{mark}{hex}  {quoted}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_on_one_line() {
        assert_eq!(plain("a b\u{1b}[31mc\nd\u{e4}"), r"a b\u{1b}[31mc\nd\u{e4}".replace(r"\u{e4}", "\u{e4}"));
        assert_eq!(digest("ab", "a b"), "ab  a b");
        assert_eq!(digest("ab", "a\nb\\c"), r"\ab  a\nb\\c");
    }
}
