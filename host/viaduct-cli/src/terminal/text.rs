// SPDX-License-Identifier: Apache-2.0
//! Names of others on a line of their own.

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
