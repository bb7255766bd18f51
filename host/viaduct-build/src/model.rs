// SPDX-License-Identifier: Apache-2.0
//! Runs an app's golden model, in Python, over files: no limit on sizes.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::manifest::Manifest;
use crate::tool::{run, venv_python};
use crate::{Error, Result, Scratch};

/// Loads the model, passes it the inputs, and writes its results. Its arguments are in a JSON file.
const RUNNER: &str = include_str!("../templates/run_model.py");

/// Results of the model: one file per output, removed when this is dropped.
#[derive(Debug)]
pub struct ModelOutput {
    outputs: BTreeMap<String, PathBuf>,
    _folder: Scratch,
}

impl ModelOutput {
    /// The file of an output.
    pub fn file(&self, output: &str) -> Option<&Path> {
        self.outputs.get(output).map(PathBuf::as_path)
    }

    /// Names of the outputs.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.outputs.keys().map(String::as_str)
    }

    /// The bytes of an output.
    pub fn bytes(&self, output: &str) -> Result<Vec<u8>> {
        let path = self.outputs.get(output).map_or_else(PathBuf::new, Clone::clone);
        std::fs::read(&path).map_err(Error::io(&path))
    }
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// Runs `model(inputs, registers)` of the app's `model.py`. `root` is the project's folder; `inputs` names one file per
/// input; `registers` holds little-endian words, as [`Manifest::register_values`] returns them.
pub fn run_model(
    root: &Path,
    manifest: &Manifest,
    inputs: &BTreeMap<String, PathBuf>,
    registers: &BTreeMap<String, Vec<u32>>,
) -> Result<ModelOutput> {
    let Some(model) = &manifest.model else {
        return Err(Error::Manifest {
            file: manifest.dir.join("app.toml"),
            line: None,
            key: "model".to_owned(),
            problem: format!("app {} has no golden model", manifest.name),
            remedy: "add [model] python = \"model.py\"".to_owned(),
        });
    };
    let model = manifest.dir.join(model);
    let folder = Scratch::new()?;
    let orders = folder.path().join("orders.json");
    let response = folder.path().join("response.json");
    let registers: BTreeMap<_, _> = registers
        .iter()
        .map(|(name, words)| (name, words.iter().rev().map(|w| format!("{w:08x}")).collect::<String>()))
        .collect();
    // Paths as numbers: they need not be text.
    let inputs: BTreeMap<_, _> = inputs.iter().map(|(name, path)| (name, bytes(path))).collect();
    let text = serde_json::json!({
        "model": bytes(&model), "inputs": inputs, "registers": registers, "folder": bytes(folder.path()),
        "response": bytes(&response),
    });
    let what = format!("the golden model {}", model.display());
    std::fs::write(&orders, text.to_string())
        .map_err(|e| Scratch::lacks(format!("what {what} is to do"), &e))?;
    let mut command = Command::new(venv_python(root, &what)?);
    // -P: files in the current folder are not imported as modules.
    command.args(["-P", "-c", RUNNER]).arg(&orders);
    let expected =
        "it must define def model(inputs: dict[str, bytes], registers: dict[str, int]) -> dict[str, bytes]";
    run(command, &what, expected, &mut |_| ())?;
    let text = std::fs::read(&response).map_err(Error::io(&response))?;
    let names: BTreeMap<String, String> =
        serde_json::from_slice(&text).map_err(|e| Error::Io { path: response, source: e.into() })?;
    let outputs = names.into_iter().map(|(name, file)| (name, folder.path().join(file))).collect();
    Ok(ModelOutput { outputs, _folder: folder })
}
