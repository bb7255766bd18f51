// SPDX-License-Identifier: Apache-2.0
//! `--resume`: a file with the results so far, so that a long measurement goes on where it was ended.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::work::Ran;
use crate::fail::{Failure, Result, at, usage};

/// First line of such a file.
const HEAD: &str = r#"{"results of":"viaduct bench fsrf"}"#;

/// What a result depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Of everything that was built: see [`digest`].
    pub build: String,
    pub profile: String,
    pub workload: String,
    pub system: String,
    pub pages: String,
    pub host_us: String,
    pub disk_us: String,
    pub advice: String,
    pub sizes: String,
}

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    key: Key,
    slots: Vec<Ran>,
}

/// The file: a line of JSON for each result. What is in it stays, so one file serves measurements of all kinds.
pub struct Record {
    path: PathBuf,
    file: File,
    lines: Vec<Line>,
}

impl Record {
    /// Opens or creates it. Fails on a file that has something else in it, which is left as it is.
    pub fn open(path: &Path) -> Result<Self> {
        if path.exists() {
            crate::fail::regular(path)?;
        }
        let failed = || at(path.display());
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed())?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed())?;
        let text = String::from_utf8_lossy(&bytes);
        if bytes.is_empty() {
            writeln!(file, "{HEAD}").map_err(failed())?;
        } else if text.lines().next() != Some(HEAD) {
            let what = "is no file of results of `viaduct bench fsrf`; give the name of a new one";
            return usage(format!("{} {what}", path.display()));
        } else if !text.ends_with('\n') {
            // Its writer was ended in the middle of a line, whose result is measured again.
            writeln!(file).map_err(failed())?;
        }
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(Self { path: path.to_owned(), file, lines })
    }

    /// The slots' results that were measured before.
    pub fn find(&self, key: &Key) -> Option<Vec<Ran>> {
        self.lines.iter().rev().find(|line| line.key == *key).map(|line| line.slots.clone())
    }

    /// Adds a result.
    pub fn add(&mut self, key: Key, slots: &[Ran]) -> Result {
        let line = Line { key, slots: slots.to_vec() };
        let text = serde_json::to_string(&line).map_err(|e| Failure::Run(e.to_string()))? + "\n";
        self.file.write_all(text.as_bytes()).map_err(at(self.path.display()))
    }
}

/// SHA-256 of the contents of files, one after the other.
pub fn digest<'a>(files: impl IntoIterator<Item = &'a Path>) -> Result<String> {
    let mut hash = Sha256::new();
    for path in files {
        let mut file = File::open(path).map_err(at(path.display()))?;
        std::io::copy(&mut file, &mut hash).map_err(at(path.display()))?;
    }
    Ok(hex::encode(hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(system: &str) -> Key {
        let [build, profile, workload] = ["00", "f1", "aes"].map(str::to_owned);
        let [pages, host_us, disk_us, advice, sizes] = ["hot", "0", "100", "own", "32"].map(str::to_owned);
        Key { build, profile, workload, system: system.to_owned(), pages, host_us, disk_us, advice, sizes }
    }

    #[test]
    fn results_are_found_again_but_not_half_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results");
        let mut record = Record::open(&path).unwrap();
        let slots = [Ran { cycles: 7, ..Ran::default() }];
        record.add(key("physical"), &slots).unwrap();
        record.add(key("direct"), &slots).unwrap();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 9]).unwrap();
        for _ in 0..2 {
            let mut record = Record::open(&path).unwrap();
            assert_eq!(record.find(&key("physical")).map(|slots| slots[0].cycles), Some(7));
            assert!(record.find(&key("direct")).is_none());
            record.add(key("amorphos"), &slots).unwrap();
        }
        let record = Record::open(&path).unwrap();
        assert!(record.find(&key("amorphos")).is_some());
        assert!(record.find(&Key { sizes: "8".into(), ..key("physical") }).is_none());
    }

    #[test]
    fn another_file_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        std::fs::write(&path, "mine").unwrap();
        let refused = Record::open(&path).map(|_| ()).unwrap_err();
        assert!(refused.message().contains("give the name of a new one"), "{}", refused.message());
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        assert!(Record::open(folder.path()).is_err());
    }
}
