// SPDX-License-Identifier: Apache-2.0
//! Where the project is, and builds with a word about what they do.

use viaduct::CardInfo;
use viaduct_build::{Geometry, Image, Manifest, Project, Variant};

use crate::fail::Result;

/// The project this program works in, see [`Project::locate`].
pub fn find() -> Result<Project> {
    Ok(Project::locate(|| std::env::current_exe().ok())?)
}

/// Builds an app for a card; what takes time is told on standard error.
pub fn build(project: &Project, app: &Manifest, card: &CardInfo, variant: Variant) -> Result<Image> {
    let geometry = Geometry { data_width: 8 * card.data_bytes as u32, streams: card.streams as u32 };
    Ok(project.build_variant(app, &geometry, variant, &mut tell)?)
}

/// Prints what a tool does, unless it does nothing.
pub fn tell(line: &str) {
    if !line.ends_with("up to date") {
        tell!("{line}");
    }
}
