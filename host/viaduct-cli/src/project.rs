// SPDX-License-Identifier: Apache-2.0
//! The project, and builds with messages.

use viaduct::CardInfo;
use viaduct_build::{Geometry, Image, Manifest, Project, Variant};

use crate::fail::Result;

/// The project that this program uses, see [`Project::locate`].
pub fn find() -> Result<Project> {
    Ok(Project::locate(|| std::env::current_exe().ok())?)
}

/// Builds an app for a card; long builds are reported on standard error.
pub fn build(project: &Project, app: &Manifest, card: &CardInfo, variant: Variant) -> Result<Image> {
    let geometry = Geometry { data_width: 8 * card.data_bytes as u32, streams: card.streams as u32 };
    Ok(project.build_variant(app, &geometry, variant, &mut tell)?)
}

/// Prints the progress of a tool, unless there is nothing to do.
pub fn tell(line: &str) {
    if !line.ends_with("up to date") {
        tell!("{line}");
    }
}
