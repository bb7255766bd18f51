// SPDX-License-Identifier: Apache-2.0
//! Errors of options in words for people.

/// The error of an option's value with what to write, in place of the words that the parsers of numbers have for programmers.
pub fn plain_words(error: &str) -> String {
    const WHOLE: &str = "write a whole number, 0 or more";
    let words = [
        ("invalid digit found in string", WHOLE),
        ("cannot parse integer from empty string", WHOLE),
        ("number too large to fit in target type", "this number is too large"),
        ("number too small to fit in target type", "this number is too small"),
        ("invalid float literal", "write a number"),
        ("cannot parse float from empty string", "write a number"),
    ];
    let error = words.iter().fold(error.to_owned(), |text, (from, to)| text.replace(from, to));
    range(&error).unwrap_or(error)
}

/// `… 9 is not in 1..=4 …` as a range in words.
fn range(error: &str) -> Option<String> {
    const NOT_IN: &str = " is not in ";
    let at = error.find(NOT_IN)?;
    let before = error[..at].trim_end_matches(|c: char| c.is_ascii_digit() || c == '-');
    let (bounds, after) = match error[at + NOT_IN.len()..].find(char::is_whitespace) {
        Some(end) => error[at + NOT_IN.len()..].split_at(end),
        None => (&error[at + NOT_IN.len()..], ""),
    };
    let (first, last) = bounds.split_once("..=")?;
    Some(format!("{before}write a whole number from {first} to {last}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_number_is_told_in_words() {
        for (from, to) in [
            (
                "'x' for '--slot <SLOT>': invalid digit found in string\n\nmore",
                "'x' for '--slot <SLOT>': write a whole number, 0 or more\n\nmore",
            ),
            (
                "'0' for '--n': 0 is not in 1..=86400\n",
                "'0' for '--n': write a whole number from 1 to 86400\n",
            ),
            ("'-1' for '--n': -1 is not in 1..=4", "'-1' for '--n': write a whole number from 1 to 4"),
            (
                "'9999999999999999999999' for '--n': number too large to fit in target type",
                "'9999999999999999999999' for '--n': this number is too large",
            ),
            ("'x' for '--t': invalid float literal", "'x' for '--t': write a number"),
            ("'in' is not in the list", "'in' is not in the list"),
        ] {
            assert_eq!(plain_words(from), to);
        }
    }
}
