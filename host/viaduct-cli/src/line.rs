// SPDX-License-Identifier: Apache-2.0
//! Apps that work one behind the other in a run, on the card.

use std::str::FromStr;

use viaduct_build::{Length, Manifest};

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
    let mut same = true;
    for app in apps().take(behind.len()) {
        let [output] = app.stream_out.as_slice() else {
            return usage(format!("app {} has {} outputs; --then needs one", app.name, app.stream_out.len()));
        };
        same &= matches!(output.length, Length::Same);
    }
    let mut one = first.clone();
    one.name = apps().map(|app| app.name.as_str()).collect::<Vec<_>>().join(" | ");
    one.stream_out.clone_from(&last.app.stream_out);
    for output in &mut one.stream_out {
        // As long as the last app's input, which has another length than the first one's.
        if !same && matches!(output.length, Length::Same) {
            output.length = Length::Any;
        }
    }
    for input in &mut one.stream_in {
        input.lanes = 1;
    }
    Ok(one)
}
