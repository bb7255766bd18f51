// SPDX-License-Identifier: Apache-2.0
//! Creates a new app that builds and passes its test unchanged.

use std::path::PathBuf;

use minijinja::{Value, context};

use crate::generate::render;
use crate::installed::require_checkout;
use crate::names::{NAME_RULE, is_free_name};
use crate::{Error, Project, Result};

/// Template, its text, and its destination (`{name}` is the app's).
type File = (&'static str, &'static str, &'static str);

const FILES: [File; 4] = [
    ("app.toml", include_str!("../templates/app/app.toml.in"), "app.toml"),
    ("app.sv", include_str!("../templates/app/app.sv.in"), "rtl/{name}_app.sv"),
    ("model.py", include_str!("../templates/app/model.py.in"), "model.py"),
    ("test_app.py", include_str!("../templates/app/test_app.py.in"), "test_{name}.py"),
];

/// Of an app with a generator, without its design.
const GENERATED: [File; 3] = [
    ("flow/app.toml", include_str!("../templates/flow/app.toml.in"), "app.toml"),
    ("flow/model.py", include_str!("../templates/flow/model.py.in"), "model.py"),
    ("flow/test_app.py", include_str!("../templates/flow/test_app.py.in"), "test_{name}.py"),
];

/// A generator of Verilog, from whose language the build makes an app's top module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Amaranth: registers and logic as Python objects, written as Verilog by Yosys.
    Amaranth,
    /// PyRTL: as well, with a netlist and a Verilog writer of its own.
    Pyrtl,
    /// XLS: functions and processes in DSLX, which the compiler cuts into pipeline stages.
    Xls,
}

impl Flow {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Amaranth, Self::Pyrtl, Self::Xls];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Amaranth => "amaranth",
            Self::Pyrtl => "pyrtl",
            Self::Xls => "xls",
        }
    }

    /// The language in which a user describes an app.
    fn language(self) -> &'static str {
        match self {
            Self::Amaranth => "Amaranth",
            Self::Pyrtl => "PyRTL",
            Self::Xls => "DSLX",
        }
    }

    fn design(self) -> File {
        match self {
            Self::Amaranth => {
                ("flow/amaranth.py", include_str!("../templates/flow/amaranth.py.in"), "design.py")
            }
            Self::Pyrtl => ("flow/pyrtl.py", include_str!("../templates/flow/pyrtl.py.in"), "design.py"),
            Self::Xls => ("flow/xls.py", include_str!("../templates/flow/xls.py.in"), "design.py"),
        }
    }
}

/// The app of this repository that a new generated one does the same as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Like {
    /// Adds a register to every word.
    Inc,
    /// Squares every word.
    Square,
}

impl Like {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Inc, Self::Square];

    /// The app's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inc => "inc",
            Self::Square => "square",
        }
    }

    fn summary(self) -> &'static str {
        match self {
            Self::Inc => "Adds a number to every 32-bit word",
            Self::Square => "Squares every 32-bit word",
        }
    }
}

impl Project {
    /// Creates an app and returns its files. An existing folder is never changed.
    pub fn scaffold(&self, name: &str) -> Result<Vec<PathBuf>> {
        self.create(name, &FILES, &context! { name => name })
    }

    /// As [`Project::scaffold`], an app whose top module is made by a generator.
    pub fn scaffold_generated(&self, name: &str, flow: Flow, like: Like) -> Result<Vec<PathBuf>> {
        let [manifest, model, test] = GENERATED;
        let context = context! {
            name => name,
            language => flow.language(),
            summary => like.summary(),
            square => like == Like::Square,
        };
        self.create(name, &[manifest, flow.design(), model, test], &context)
    }

    fn create(&self, name: &str, files: &[File], context: &Value) -> Result<Vec<PathBuf>> {
        require_checkout(self.root(), "a new app")?;
        let dir = self.root().join("apps").join(name);
        if !is_free_name(name) {
            return Err(Error::Name { name: name.to_owned(), remedy: NAME_RULE });
        }
        if dir.symlink_metadata().is_ok() {
            return Err(Error::Exists { path: dir });
        }
        // Created under another name and renamed, so that a full disk leaves no incomplete app.
        let apps = self.root().join("apps");
        let draft = tempfile::Builder::new().prefix(".new-").tempdir_in(&apps).map_err(Error::io(&apps))?;
        let mut written = Vec::new();
        for (template, text, path) in files {
            let path = path.replace("{name}", name);
            let file = draft.path().join(&path);
            if let Some(folder) = file.parent() {
                std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
            }
            std::fs::write(&file, render(template, text, context.clone())).map_err(Error::io(&file))?;
            written.push(dir.join(path));
        }
        let draft = draft.keep();
        std::fs::rename(&draft, &dir).map_err(Error::io(&dir))?;
        Ok(written)
    }
}
