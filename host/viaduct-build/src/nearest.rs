// SPDX-License-Identifier: Apache-2.0
//! The word that was probably meant.

/// The candidate most similar to `word`, if one is similar enough to be intended.
fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = word.chars().count().div_ceil(3).max(1);
    let near = candidates.into_iter().map(|c| (distance(word, c), c)).min();
    near.filter(|(d, _)| *d <= most).map(|(_, c)| c)
}

/// What to say of a word that is none of the candidates: the one that was probably meant, else all of them.
pub fn meant<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    match (nearest(word, candidates.iter().copied()), candidates.as_slice()) {
        (Some(near), _) => format!("did you mean {near}?"),
        (None, []) => "it has none".to_owned(),
        (None, [only]) => format!("there is {only} only"),
        (None, all) => format!("there are {}", all.join(", ")),
    }
}

/// The error that an app has nothing of this kind with this name.
pub fn app_lacks<'a>(app: &str, what: &str, name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    format!("app {app} has no {what} {name:?}; {}", meant(name, names))
}

/// Number of insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // rows[i][j]: from the first i letters of a to the first j of b.
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replace.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_suggested() {
        let apps = ["aes", "pass", "sha256", "square"];
        assert_eq!(nearest("sha265", apps), Some("sha256"));
        assert_eq!(nearest("squares", apps), Some("square"));
        assert_eq!(nearest("zzz", apps), None);
        assert_eq!(nearest("aes", []), None);
        assert_eq!(meant("sha265", apps), "did you mean sha256?");
        assert_eq!(meant("zzz", apps), "there are aes, pass, sha256, square");
        assert_eq!(
            app_lacks("x", "port", "rihgt", ["left", "right"]),
            "app x has no port \"rihgt\"; did you mean right?"
        );
        assert_eq!(app_lacks("x", "port", "zzz", ["mem"]), "app x has no port \"zzz\"; there is mem only");
        assert_eq!(app_lacks("x", "port", "a", []), "app x has no port \"a\"; it has none");
    }
}
