// SPDX-License-Identifier: Apache-2.0
//! Builds apps: from a manifest to an image for a slot.
//!
//! An app is a folder `apps/<name>/` with `app.toml`, SystemVerilog in `rtl/` and a golden model. This crate reads the
//! manifest ([`Manifest`]), generates the slot wrapper, the register file, accessors and a reference page
//! ([`Project::generate`]), builds the image that a card loads ([`Project::build`]), creates new apps
//! ([`Project::scaffold`], [`Project::scaffold_generated`]), and runs golden models ([`run_model`]).
//!
//! ```no_run
//! let project = viaduct_build::Project::find(std::env::current_dir()?)?;
//! let app = project.load("aes")?;
//! let image = project.build(&app, &viaduct_build::Geometry::default())?;
//! println!("{}", image.container.display());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(missing_docs)]

mod check;
mod error;
mod generate;
mod image;
mod installed;
mod load;
mod manifest;
mod model;
mod names;
mod nearest;
mod project;
mod scaffold;
mod scratch;
mod stamp;
mod tool;
mod value;

pub use error::{Error, Result};
pub use generate::Generated;
pub use image::{CONTAINER_LEN, Container, Geometry};
pub use manifest::{Access, Length, Manifest, Memory, Register, StreamIn, StreamOut};
pub use model::{ModelOutput, run_model};
pub use nearest::{app_lacks, meant};
pub use project::{Image, Project, Rivals, Variant};
pub use scaffold::{Flow, Like};
pub use scratch::Scratch;
pub use stamp::compiler;
pub use tool::{end_with_us, held_back, kill_with_us};
pub use value::Format;
