// SPDX-License-Identifier: Apache-2.0
//! Apps that work one behind the other in a run, on the card.

use std::str::FromStr;

use viaduct_build::Manifest;

use crate::fail::{Result, usage};
use crate::job::Stage;
use crate::settings::{registers, setting};

/// `APP [REGISTER=VALUE]...` as given by the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Then {
    pub app: String,
    set: Vec<(String, String)>,
}

impl FromStr for Then {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let mut words = text.split_whitespace();
        let app = words
            .next()
            .ok_or("write the name of an app, and REGISTER=VALUE for its registers, in one argument")?;
        Ok(Self { app: app.to_owned(), set: words.map(setting).collect::<std::result::Result<_, _>>()? })
    }
}

impl Then {
    /// The app, with its registers.
    pub fn stage(&self, app: Manifest) -> Result<Stage> {
        if app.stream_in.len() != 1 || app.memory.is_some() {
            return usage(format!(
                "app {} cannot follow another one: it needs exactly one input, a stream",
                app.name
            ));
        }
        let (values, given) = registers(&app, &self.set)?;
        Ok(Stage { app, given, values })
    }
}

/// The apps as if they were one: inputs of the first, outputs of the last.
pub fn as_one(first: &Manifest, behind: &[Stage]) -> Result<Manifest> {
    let apps = || std::iter::once(first).chain(behind.iter().map(|stage| &stage.app));
    let Some(last) = behind.last() else { return Ok(first.clone()) };
    if first.memory.is_some() {
        return usage(format!(
            "app {} has a memory port, and --then is for apps with streams only",
            first.name
        ));
    }
    if let Some(app) = apps().take(behind.len()).find(|app| app.stream_out.len() != 1) {
        return usage(format!("app {} has {} outputs; --then needs one", app.name, app.stream_out.len()));
    }
    let mut one = first.clone();
    one.name = apps().map(|app| app.name.as_str()).collect::<Vec<_>>().join(" | ");
    one.stream_out.clone_from(&last.app.stream_out);
    for (k, output) in one.stream_out.iter_mut().enumerate() {
        output.length = last.app.length_behind(apps().take(behind.len()), k);
    }
    for input in &mut one.stream_in {
        input.lanes = 1;
    }
    Ok(one)
}
