// SPDX-License-Identifier: Apache-2.0
//! The folder that contains the apps, and the build of an app.

use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::generate::{Generated, write_if_changed};
use crate::installed::is_installed;
use crate::nearest::meant;
use crate::stamp::why_stale;
use crate::tool::{run, venv_python};
use crate::{Container, Error, Geometry, Manifest, Result};

/// DRAM channels of the card that `make card` builds.
const CHANNELS: u32 = 4;

/// How a card is compiled. Images go with it, in a folder for each way they are compiled, so none replaces another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Variant {
    /// As fast as can be, without functions: all that streams and memory of slots need.
    #[default]
    Fast,
    /// As fast as can be, with all functions beside the management function.
    Functions,
    /// Records waves; without functions.
    Trace,
    /// Stops when a rule of a port is broken; has the network and the entropy function.
    Assert,
    /// Counts line and toggle coverage; has functions.
    Coverage,
}

impl Variant {
    /// The option of `tools/verilate.py` for the card.
    fn card_option(self) -> Option<&'static str> {
        match self {
            Variant::Functions => Some("--functions"),
            Variant::Assert => Some("--assert"),
            _ => self.image_option(),
        }
    }

    /// The option of `tools/verilate.py` for images.
    fn image_option(self) -> Option<&'static str> {
        match self {
            Variant::Fast | Variant::Functions | Variant::Assert => None,
            Variant::Trace => Some("--trace"),
            Variant::Coverage => Some("--coverage"),
        }
    }
}

/// A built app. Its manifest is next to the container, see [`Manifest::beside`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The container that is loaded into a slot.
    pub container: PathBuf,
    /// The object the simulated card runs.
    pub object: PathBuf,
}

/// Systems that a bench compares the card with, as a program of `sim/rivals`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rivals {
    /// Those of `viaduct bench fsrf`: memory systems.
    Fsrf,
    /// Those of `viaduct bench vio`: what is between an app's stream and a device.
    Ports,
    /// Schedulers, for it too.
    Schedulers,
}

impl Rivals {
    /// What `tools/verilate.py` makes of it.
    fn kind(self) -> &'static str {
        match self {
            Self::Fsrf => "rival",
            Self::Ports => "vio",
            Self::Schedulers => "sched",
        }
    }
}

/// A checkout: apps, tools, and build results. Or an installed tree, whose results are used and in which nothing is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    root: PathBuf,
}

impl Project {
    /// The project that contains `start`: the nearest parent folder with `apps/` and `tools/verilate.py`.
    pub fn find(start: impl AsRef<Path>) -> Result<Project> {
        let start = start.as_ref();
        let start = std::fs::canonicalize(start).map_err(Error::io(start))?;
        start
            .ancestors()
            .find(|d| d.join("apps").is_dir() && d.join("tools/verilate.py").is_file())
            .map(|d| Project { root: d.to_owned() })
            .ok_or_else(|| Error::NoProject { start: start.clone() })
    }

    /// The project a program uses: named by `VIADUCT_ROOT`, else the one that contains the current folder, else the one that
    /// contains the program itself (`own`: its file, called only then), else the tree that was installed with it.
    pub fn locate(own: impl FnOnce() -> Option<PathBuf>) -> Result<Project> {
        if let Some(root) = std::env::var_os("VIADUCT_ROOT").filter(|root| !root.is_empty()) {
            return Project::find(&root).map_err(|error| match error {
                Error::Io { path, source } => Error::Root { path, source },
                Error::NoProject { start } => {
                    Error::Root { path: start, source: std::io::Error::other("there is no Viaduct checkout") }
                }
                other => other,
            });
        }
        let own = || own().and_then(|file| Project::of_program(&file));
        Project::find(".").or_else(|e| own().ok_or(e))
    }

    /// The checkout that contains a program or library, else `share/viaduct` in one of the folders above it.
    fn of_program(file: &Path) -> Option<Project> {
        let folder = file.parent()?;
        let installed = || folder.ancestors().find_map(|d| Project::find(d.join("share/viaduct")).ok());
        Project::find(folder).ok().or_else(installed)
    }

    /// Whether this is an installed tree.
    pub fn is_installed(&self) -> bool {
        is_installed(&self.root)
    }

    /// The project's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Folder of the images of a variant: `<name>/<name>.via` and `<name>/<name>.so` below it.
    pub fn images(&self, variant: Variant) -> PathBuf {
        self.root.join("build").join(match variant {
            Variant::Fast | Variant::Functions | Variant::Assert => "apps",
            Variant::Trace => "apps-trace",
            Variant::Coverage => "apps-coverage",
        })
    }

    /// Names of the apps, sorted: folders in `apps/` with an `app.toml`.
    pub fn apps(&self) -> Result<Vec<String>> {
        let dir = self.root.join("apps");
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&dir).map_err(Error::io(&dir))? {
            let entry = entry.map_err(Error::io(&dir))?;
            // One that begins with a dot was left by a `viaduct new` that was killed.
            if entry.path().join("app.toml").is_file()
                && !entry.file_name().as_encoded_bytes().starts_with(b".")
            {
                names.extend(entry.file_name().into_string());
            }
        }
        names.sort();
        Ok(names)
    }

    /// Reads an app's manifest.
    pub fn load(&self, name: &str) -> Result<Manifest> {
        let names = self.apps()?;
        if !names.iter().any(|n| n == name) {
            let remedy = match names.as_slice() {
                [] => "start one with `viaduct new`".to_owned(),
                names => meant(name, names.iter().map(String::as_str)),
            };
            return Err(Error::NoApp { name: name.to_owned(), remedy });
        }
        Manifest::load(self.root.join("apps").join(name))
    }

    /// Generates wrapper, register file, accessors and page into `build/apps/<name>/gen`. Files that would not change
    /// are left alone.
    pub fn generate(&self, app: &Manifest) -> Result<Generated> {
        crate::generate::generate(app, &self.images(Variant::Fast).join(&app.name).join("gen"))
    }

    /// Builds an app's image for cards of this geometry; does nothing if nothing changed.
    pub fn build(&self, app: &Manifest, geometry: &Geometry) -> Result<Image> {
        self.build_variant(app, geometry, Variant::Fast, &mut |_| {})
    }

    /// As [`Project::build`], in a variant; `progress` is called with each line of progress.
    pub fn build_variant(
        &self,
        app: &Manifest,
        geometry: &Geometry,
        variant: Variant,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Image> {
        if !app.data_width.is_empty() && !app.data_width.contains(&geometry.data_width) {
            let supported: Vec<_> = app.data_width.iter().map(u32::to_string).collect();
            let (name, width) = (app.name.clone(), geometry.data_width);
            return Err(Error::Width { name, supported: supported.join(", "), width });
        }
        let generated = self.generate(app)?;
        let folder = self.images(variant).join(&app.name);
        std::fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        let object = folder.join(format!("{}.so", app.name));
        let mut request = vec!["slot".to_owned(), "--out".to_owned(), self.inside(&object)];
        request.extend(["--name".to_owned(), app.name.clone()]);
        let top = self.generate_top(app, geometry, progress)?;
        for source in app.sources.iter().map(|s| app.dir.join(s)).chain(top).chain(generated.verilog) {
            request.extend(["--source".to_owned(), self.inside(&source)]);
        }
        request.extend(["-y".to_owned(), self.inside(&app.dir.join("rtl"))]);
        let usual = Geometry::default();
        if geometry.data_width != usual.data_width {
            request.push(format!("-DVIA_DATA_W={}", geometry.data_width));
        }
        if geometry.streams != usual.streams {
            request.push(format!("-DVIA_NUM_STREAMS={}", geometry.streams));
        }
        request.extend(variant.image_option().map(str::to_owned));
        self.make(&format!("app {}", app.name), &app.name, &object, &request, progress)?;
        let container = folder.join(format!("{}.via", app.name));
        write_if_changed(&container, &Container::of(&app.name, geometry, &object)?.encode())?;
        let manifest = app.dir.join("app.toml");
        let text = std::fs::read(&manifest).map_err(Error::io(&manifest))?;
        write_if_changed(&container.with_extension("toml"), &text)?;
        Ok(Image { container, object })
    }

    /// Runs the generator of an app's top module, if it has one and anything changed; the file is beside the wrapper.
    fn generate_top(
        &self,
        app: &Manifest,
        geometry: &Geometry,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Option<PathBuf>> {
        let Some(generator) = app.generator.as_ref().map(|g| app.dir.join(g)) else { return Ok(None) };
        let file = self.images(Variant::Fast).join(&app.name).join("gen").join(format!("{}.v", app.top));
        let stamp = file.with_extension("stamp");
        let common = self.root.join("apps/common");
        // What it is made from, and what was made.
        let state = || {
            let mut hash = Sha256::new();
            let manifest = app.dir.join("app.toml");
            let shared = common.join("flow.py");
            let tools = self.root.join("tools/requirements.txt");
            for input in [&generator, &manifest, &shared, &tools, &file] {
                hash.update(std::fs::read(input).unwrap_or_default());
                hash.update([0]);
            }
            format!("{} {}\n", geometry.data_width, hex::encode(hash.finalize()))
        };
        if file.is_file() && std::fs::read_to_string(&stamp).is_ok_and(|old| old == state()) {
            return Ok(Some(file));
        }
        let what = format!("generating the top module of app {}", app.name);
        progress(&format!("{}: generating {}", app.name, app.top));
        // Another build may read the present file.
        let fresh = tempfile::NamedTempFile::new().map_err(Error::io(std::env::temp_dir()))?;
        let mut command = Command::new(venv_python(&self.root, &what)?);
        command.arg(&generator).current_dir(&self.root).env("PYTHONPATH", &common);
        command.args(["--data-width", &geometry.data_width.to_string(), "--out"]).arg(fresh.path());
        // What it says is of no interest to the user, unless it fails.
        run(command, &what, "its messages are above", &mut |_| {})?;
        let made = std::fs::read(fresh.path()).map_err(Error::io(fresh.path()))?;
        if made.is_empty() {
            let problem = format!("{} has written nothing to the file of --out", generator.display());
            return Err(Error::Tool { what, problem, output: String::new() });
        }
        write_if_changed(&file, &made)?;
        write_if_changed(&stamp, state().as_bytes())?;
        Ok(Some(file))
    }

    /// Builds the simulated card's shell in a variant, with so many DRAM channels; does nothing if nothing changed. Returns
    /// the shared object.
    pub fn build_card(
        &self,
        variant: Variant,
        channels: u32,
        progress: &mut dyn FnMut(&str),
    ) -> Result<PathBuf> {
        let mut request: Vec<String> =
            ["card"].into_iter().chain(variant.card_option()).map(str::to_owned).collect();
        if channels != CHANNELS {
            request.push(format!("--channels={channels}"));
        }
        let object = self.card_object(variant, channels);
        self.make("the simulated card", "card", &object, &request, progress)?;
        Ok(object)
    }

    /// Builds a program with the other systems of a bench; does nothing if nothing changed.
    pub fn build_rivals(&self, rivals: Rivals, progress: &mut dyn FnMut(&str)) -> Result<PathBuf> {
        let kind = rivals.kind();
        let program = self.root.join("build/rivals").join(kind);
        self.make("the other systems of the bench", kind, &program, &[kind.to_owned()], progress)?;
        Ok(program)
    }

    /// Builds a simulated card with another number of slots and width of its data path in bits; does nothing if nothing changed.
    pub fn build_card_of(
        &self,
        slots: u32,
        data_width: u32,
        progress: &mut dyn FnMut(&str),
    ) -> Result<PathBuf> {
        let what = format!("card-{slots}x{data_width}");
        let object = self.root.join("build").join(&what).join("libviaduct_card.so");
        let mut request = vec!["card".to_owned(), "--out".to_owned(), self.inside(&object)];
        request.extend(["--name".to_owned(), format!("card of {slots} slots, {data_width} bits")]);
        request.push(format!("--define=VIA_NUM_SLOTS={slots}"));
        request.push(format!("--define=VIA_DATA_W={data_width}"));
        self.make("the simulated card", &what, &object, &request, progress)?;
        Ok(object)
    }

    /// Path of a variant's shared object of the simulated card with so many DRAM channels.
    pub fn card_object(&self, variant: Variant, channels: u32) -> PathBuf {
        let channels = if channels == CHANNELS { String::new() } else { format!("-{channels}ch") };
        let (folder, object) = match variant {
            Variant::Fast => ("", "libviaduct_card.so"),
            Variant::Functions => ("", "libviaduct_card_functions.so"),
            Variant::Trace => ("-trace", "libviaduct_card.so"),
            Variant::Assert => ("-assert", "libviaduct_card.so"),
            Variant::Coverage => ("-coverage", "libviaduct_card.so"),
        };
        self.root.join("build").join(format!("card{channels}{folder}")).join(object)
    }

    /// A path for the build system: relative if it is in the project, so that it stays the same when the project is moved.
    fn inside(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// Builds an object with `tools/verilate.py`, unless it is current.
    fn make(
        &self,
        what: &str,
        name: &str,
        object: &Path,
        request: &[String],
        progress: &mut dyn FnMut(&str),
    ) -> Result<()> {
        let Some(reason) = why_stale(&self.root, object, request) else {
            progress(&format!("{name}: up to date"));
            return Ok(());
        };
        let what = format!("building {what} ({reason})");
        let mut command = Command::new(venv_python(&self.root, &what)?);
        command.arg("tools/verilate.py").args(request).current_dir(&self.root);
        run(command, &what, "its messages are above", progress)
    }
}
