// SPDX-License-Identifier: Apache-2.0
//! Where the project is, and builds with a word about what they do.

use viaduct::CardInfo;
use viaduct_build::{Geometry, Image, Manifest, Project, Variant};

use crate::fail::Result;

/// The project: named by `VIADUCT_ROOT`, else the one the current folder is in, else the one this program was built in.
pub fn find() -> Result<Project> {
    if let Some(root) = std::env::var_os("VIADUCT_ROOT") {
        return Ok(Project::find(root)?);
    }
    let here = Project::find(".");
    let own = || std::env::current_exe().ok().and_then(|exe| Project::find(exe.parent()?).ok());
    here.or_else(|e| own().ok_or(e)).map_err(Into::into)
}

/// Builds an app for a card; what takes time is told on standard error.
pub fn build(project: &Project, app: &Manifest, card: &CardInfo, variant: Variant) -> Result<Image> {
    let geometry = Geometry { data_width: 8 * card.data_bytes as u32, streams: card.streams as u32 };
    Ok(project.build_variant(app, &geometry, variant, &mut tell)?)
}

/// Prints what a tool does, unless it does nothing.
pub fn tell(line: &str) {
    if !line.ends_with("up to date") {
        eprintln!("{line}");
    }
}
