// SPDX-License-Identifier: Apache-2.0
//! Creates a new app that builds and passes its test unchanged.

use std::path::PathBuf;

use minijinja::context;

use crate::generate::render;
use crate::installed::require_checkout;
use crate::names::{NAME_RULE, is_free_name};
use crate::{Error, Project, Result};

/// Template, its text, and its destination (`{name}` is the app's).
const FILES: [(&str, &str, &str); 4] = [
    ("app.toml", include_str!("../templates/app/app.toml.in"), "app.toml"),
    ("app.sv", include_str!("../templates/app/app.sv.in"), "rtl/{name}_app.sv"),
    ("model.py", include_str!("../templates/app/model.py.in"), "model.py"),
    ("test_app.py", include_str!("../templates/app/test_app.py.in"), "test_{name}.py"),
];

impl Project {
    /// Creates an app and returns its files. An existing folder is never changed.
    pub fn scaffold(&self, name: &str) -> Result<Vec<PathBuf>> {
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
        for (template, text, path) in FILES {
            let path = path.replace("{name}", name);
            let file = draft.path().join(&path);
            if let Some(folder) = file.parent() {
                std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
            }
            std::fs::write(&file, render(template, text, context! { name => name }))
                .map_err(Error::io(&file))?;
            written.push(dir.join(path));
        }
        let draft = draft.keep();
        std::fs::rename(&draft, &dir).map_err(Error::io(&dir))?;
        Ok(written)
    }
}
