// SPDX-License-Identifier: Apache-2.0
//! Reads manifests.

use std::path::Path;

use crate::check::{Check, Raw, WHOLE};
use crate::error::plain;
use crate::manifest::Manifest;
use crate::{Error, Result};

/// Longest manifest, in bytes.
pub(crate) const MAX_FILE: u64 = 1 << 20;

/// The text of a manifest.
fn read(file: &Path) -> Result<String> {
    let len = std::fs::metadata(file).map_err(Error::io(file))?.len();
    let wrong = |problem: String, remedy| Err(Check { file, text: "" }.wrong(WHOLE, problem, remedy));
    if len > MAX_FILE {
        return wrong(format!("{len} bytes long"), "a manifest has a few kilobytes");
    }
    match String::from_utf8(std::fs::read(file).map_err(Error::io(file))?) {
        Ok(text) => Ok(text),
        Err(e) => {
            let before = &e.as_bytes()[..e.utf8_error().valid_up_to()];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            wrong(format!("line {line} is not UTF-8"), "save it as UTF-8")
        }
    }
}

impl Manifest {
    /// Reads and checks `dir/app.toml`.
    pub fn load(dir: impl AsRef<Path>) -> Result<Manifest> {
        let dir = dir.as_ref();
        let file = dir.join("app.toml");
        let text = read(&file)?;
        let manifest = Manifest::parse(dir, &text)?;
        let check = Check { file: &file, text: &text };
        let path = |key: &str, p: &Path| match dir.join(p).is_file() {
            true => Ok(()),
            false => Err(check.wrong(
                key,
                format!("{} does not exist", p.display()),
                "name a file in the app's folder",
            )),
        };
        match &manifest.generator {
            Some(generator) => path("app.generator", generator)?,
            None => path("app.top", &Path::new("rtl").join(format!("{}.sv", manifest.top)))?,
        }
        for s in &manifest.sources {
            path("app.sources", s)?;
        }
        if let Some(m) = &manifest.model {
            path("model.python", m)?;
        }
        if dir.file_name().is_some_and(|n| n != manifest.name.as_str()) {
            return Err(check.wrong(
                "app.name",
                format!("{:?} is not the name of its folder", manifest.name),
                "give both the same name",
            ));
        }
        Ok(manifest)
    }

    /// The manifest that a build leaves next to the image of app `name`: for `DIR/aes.via` it is `DIR/aes.toml`. `None` if
    /// there is no such file. Sources and golden model are not available there.
    pub fn beside(image: &Path, name: &str) -> Result<Option<Manifest>> {
        let file = image.with_extension("toml");
        if !file.is_file() {
            return Ok(None);
        }
        let folder = image.parent().unwrap_or(Path::new("."));
        let manifest = Manifest { model: None, ..Manifest::parse_file(folder, &file, &read(&file)?)? };
        if manifest.name != name {
            return Err(Error::Image {
                file,
                problem: format!("it is the manifest of app {}, the image is of {name}", manifest.name),
                remedy: "copy both from one build".to_owned(),
            });
        }
        Ok(Some(manifest))
    }

    /// Checks the text of a manifest; `dir` is not read.
    pub fn parse(dir: impl AsRef<Path>, text: &str) -> Result<Manifest> {
        let dir = dir.as_ref();
        Manifest::parse_file(dir, &dir.join("app.toml"), text)
    }

    fn parse_file(dir: &Path, file: &Path, text: &str) -> Result<Manifest> {
        let check = Check { file, text };
        let raw: Raw = toml::from_str(text).map_err(|e| {
            let line = e.span().map(|s| 1 + text.bytes().take(s.start).filter(|b| *b == b'\n').count());
            Error::Manifest {
                file: file.to_owned(),
                line,
                key: "not a manifest".to_owned(),
                problem: plain(&e.message().trim_end().replace('\n', "; ")),
                remedy: "docs/apps.md lists the keys and their values".to_owned(),
            }
        })?;
        check.manifest(dir, raw)
    }
}
