// SPDX-License-Identifier: Apache-2.0
//! Checks whether results of `tools/verilate.py` are current: its `stamp.json` against the present files. It needs no lock, no write
//! access and no Python, so that built apps run from another user's folder, on a machine without the tools.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::installed::is_installed;

/// The compiler that is preferred to g++, as in `tools/verilate.py`.
const CLANG: &str = "clang++-19";

/// Inputs of an object. Paths are relative to the project.
#[derive(Deserialize)]
struct Stamp {
    inputs: Inputs,
    /// Files that Verilator read, with their SHA-256.
    sources: BTreeMap<String, String>,
    /// SHA-256 of the object; empty while it is built.
    out: String,
}

#[derive(Deserialize)]
struct Inputs {
    /// Arguments of `tools/verilate.py`.
    request: Vec<String>,
    /// Its name, and the first line of its version.
    compiler: (String, String),
    verilator: String,
    /// Instruction set of the processor; empty if a portable one is used.
    processor: String,
    /// Folders in which a new file is a new input, and their files at the time.
    patterns: BTreeMap<String, Vec<String>>,
    /// Files known beforehand, with their SHA-256.
    files: BTreeMap<String, String>,
}

/// Why the object must be built; `None` if it is current for this request. Tools that are not there are not compared, and none in
/// an installed tree, where nothing is built.
pub(crate) fn why_stale(root: &Path, object: &Path, request: &[String]) -> Option<String> {
    let folder = object.with_extension("verilated");
    let Ok(text) = std::fs::read(folder.join("stamp.json")) else { return Some("not built yet".to_owned()) };
    let Ok(stamp) = serde_json::from_slice::<Stamp>(&text) else {
        return Some("built by another version".to_owned());
    };
    if stamp.out.is_empty() || !object.exists() {
        return Some("its build was not finished".to_owned());
    }
    let inputs = &stamp.inputs;
    let changed =
        inputs.files.iter().chain(&stamp.sources).find(|(file, old)| differs(&root.join(file), old));
    if let Some((file, _)) = changed {
        return Some(format!("{file} has changed"));
    }
    if differs(object, &stamp.out) {
        return Some("its object has changed".to_owned());
    }
    for (pattern, known) in &inputs.patterns {
        let here = glob::glob(&below(root, pattern)).into_iter().flatten().flatten();
        let names =
            here.filter_map(|path| Some(path.strip_prefix(root).ok()?.to_string_lossy().into_owned()));
        if let Some(name) = names.into_iter().find(|name| !known.contains(name)) {
            return Some(format!("{name} is new"));
        }
    }
    if inputs.request != request {
        return Some("built with other options".to_owned());
    }
    if !inputs.processor.is_empty() && inputs.processor != processor() {
        return Some("built for another processor".to_owned());
    }
    if is_installed(root) {
        return None;
    }
    // One that does not run, for want of memory perhaps, says nothing.
    if compiler().is_some_and(|found| !found.1.is_empty() && found != inputs.compiler) {
        return Some("built with another compiler".to_owned());
    }
    if verilator(root).is_some_and(|found| found != inputs.verilator) {
        return Some("built with another Verilator".to_owned());
    }
    None
}

/// A pattern in a folder, whose own name may contain special characters.
fn below(root: &Path, pattern: &str) -> String {
    format!("{}/{pattern}", glob::Pattern::escape(&root.to_string_lossy()))
}

/// Whether a file has not this digest, or is absent. One that cannot be read for another reason is taken to be as it was.
fn differs(file: &Path, digest: &str) -> bool {
    match std::fs::read(file) {
        Ok(bytes) => hex::encode(Sha256::digest(bytes)) != digest,
        Err(e) => e.kind() == ErrorKind::NotFound && digest != "absent",
    }
}

/// As in `tools/verilate.py`: of the first processor.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut first = text.split("\n\n").next().unwrap_or("").lines();
    first.find(|line| line.starts_with("flags") || line.starts_with("Features")).unwrap_or("").to_owned()
}

/// The C++ compiler of the simulated card and of models, as in `tools/verilate.py`: its name and first line of its version, empty if it
/// fails. `None` if it is not there.
pub fn compiler() -> Option<(String, String)> {
    let named = std::env::var("CXX").ok().filter(|name| !name.is_empty());
    let name = named.unwrap_or_else(|| default_compiler().to_owned());
    let done =
        Command::new(&name).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    Some((name, text.lines().next().unwrap_or("").to_owned()))
}

fn default_compiler() -> &'static str {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join(CLANG).is_file()) { CLANG } else { "g++" }
}

/// The installed version.
fn verilator(root: &Path) -> Option<String> {
    let pattern = below(root, ".venv/lib/python3*/site-packages/verilator-*.dist-info");
    let found = glob::glob(&pattern).ok()?.flatten().next()?;
    let name = found.file_name()?.to_str()?;
    Some(name.strip_prefix("verilator-")?.strip_suffix(".dist-info")?.to_owned())
}
