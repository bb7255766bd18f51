// SPDX-License-Identifier: Apache-2.0
//! `viaduct card`

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::sys::signal::Signal;
use viaduct::{Card, Timeouts};
use viaduct_build::Variant;
use viaduct_pci::PciFunction;
use viaduct_pci::vfio_user::Server;
use viaduct_sim::backend::Cable;
use viaduct_sim::{SimCard, function_names};

use crate::card::Opened;
use crate::fail::{Failure, Result, at, usage};
use crate::functions::connect::{ConnectArgs, Connected, cable_line};
use crate::process::tell::out;
use crate::watched::WatchArgs;

/// Serve a simulated card over vfio-user, for other programs and for QEMU; ends on SIGTERM, SIGHUP or Ctrl-C
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("where").required(true).multiple(true).args(["socket", "functions"]))]
#[command(group = crate::functions::connect::connecting(false).conflicts_with_all(["socket", "unconnected"]))]
pub struct Args {
    /// Serve the management function on this socket: its client connects the other functions
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Serve each function of the card on a socket in this folder: net.sock, blk.sock, console.sock, entropy.sock,
    /// input.sock, xdma.sock
    #[arg(long, value_name = "DIR")]
    functions: Option<PathBuf>,
    /// Connect no function, and serve the management function too (mgmt.sock): its client connects the others
    #[arg(long, requires = "functions", conflicts_with = "socket")]
    unconnected: bool,
    #[command(flatten)]
    connect: ConnectArgs,
    /// Board and link to simulate; `viaduct info card` lists them
    #[arg(long, value_name = "NAME", value_parser = crate::card::known_profile)]
    profile: Option<String>,
    #[command(flatten)]
    watch: WatchArgs,
}

impl Args {
    /// Fails if --socket names the socket of a function in the folder of --functions.
    fn refuse_one_path_twice(&self) -> Result {
        let (Some(socket), Some(dir)) = (&self.socket, &self.functions) else { return Ok(()) };
        let above = socket.parent().filter(|above| !above.as_os_str().is_empty());
        let folder = above.unwrap_or(Path::new("."));
        let same = absolute(folder)? == absolute(dir)?;
        let of_function = |name: &str| socket.file_name().is_some_and(|n| n == &*format!("{name}.sock"));
        if same && function_names().skip(1).any(of_function) {
            return usage(format!(
                "--socket names {}, which --functions creates for that function; name another path",
                socket.display()
            ));
        }
        Ok(())
    }
}

/// The absolute path of a folder, without links if it exists.
fn absolute(folder: &Path) -> Result<PathBuf> {
    folder.canonicalize().or_else(|_| std::path::absolute(folder)).map_err(at(folder.display()))
}

/// Runs the command.
pub fn run(args: Args) -> Result {
    // Before anything is built.
    args.connect.feature_changes()?;
    args.refuse_one_path_twice()?;
    let cable = match (&args.socket, args.unconnected) {
        (Some(_), _) => args.connect.cable_alone("--socket <PATH>")?,
        (None, true) => args.connect.cable_alone("--unconnected")?,
        (None, false) => None,
    };
    let project = crate::project::find()?;
    // Before any thread is started, so that all threads block the signals.
    let mut signals = crate::process::signals::ending();
    signals.add(Signal::SIGWINCH);
    signals.thread_block().map_err(|e| Failure::Run(format!("signals: {e}")))?;
    let channels = crate::card::profile(args.profile.as_deref())?.channels;
    project.build_card(Variant::Functions, channels, &mut crate::project::tell)?;
    let line = args.connect.line;
    let sim =
        crate::card::simulated_with(&project, args.profile.as_deref(), Variant::Functions, |profile| {
            line.apply(&mut profile.board);
        })?;
    let function = Arc::clone(&sim.function);
    let ethernet = Arc::clone(&sim.function);

    // Before others may use it.
    args.connect.offer(&function)?;
    let watched = args.watch.begin(&sim, &args.connect.files())?;

    let mut lines = Vec::new();
    // Before the servers, which remove their sockets from it first.
    let mut folders = Folders::default();
    let mut servers = Vec::new();
    let mut connected = None;
    if let Some(dir) = &args.functions {
        let place = dir.display();
        folders.make(dir).map_err(|e| match e.kind() {
            ErrorKind::NotADirectory => at(&place)(e).by_usage(),
            _ => at(&place)(e),
        })?;
        // The management function has one user: this program, if it connects the others.
        if args.unconnected {
            servers.push(serve(&dir.join("mgmt.sock"), Arc::clone(&function) as _)?);
        }
        if !args.unconnected && args.socket.is_none() {
            let card = Card::open_with(Arc::clone(&function) as _, Timeouts::default())?;
            connected = Some(args.connect.connect(&project, &Opened { card, sim: Some(sim) })?);
        }
        servers.extend(serve_functions(&function, dir)?);
        lines.push(format!("functions in {place}; use them with viaduct vm --card {place}"));
    }
    if let Some(path) = &args.socket {
        servers.push(serve(path, function)?);
        let path = path.display();
        lines.push(format!("card on {path}; use it with --card unix:{path}"));
    }
    // For clients whose apps use the port.
    let cable = match &cable {
        Some(to) => Cable::net(&ethernet, to).map_err(at("--net"))?,
        None => None,
    };
    folders.keep();
    if let Some(connected) = &connected {
        lines.extend(connected.lines());
    }
    lines.extend(cable.iter().map(cable_line));
    lines.extend(watched.line());
    for line in lines {
        // Standard output may be the console's.
        if args.connect.on_stdio() { tell!("{line}") } else { out(&line)? }
    }
    while signals.wait().map_err(|e| Failure::Run(format!("signals: {e}")))? == Signal::SIGWINCH {
        connected.iter().try_for_each(Connected::resize)?;
    }
    servers.iter_mut().for_each(Server::stop);
    let closed = connected
        .map_or(Ok(()), |connected| connected.close())
        .and_then(|()| cable.map_or(Ok(()), Cable::close).map_err(|e| Failure::Run(e.to_string())));
    crate::trace::tell(watched.end(), closed)
}

/// Folders created for the sockets. Dropping it removes them, unless they are kept or not empty.
#[derive(Default)]
struct Folders(Vec<PathBuf>);

impl Folders {
    /// Creates a folder, and missing parents.
    fn make(&mut self, dir: &Path) -> std::io::Result<()> {
        if dir.is_dir() {
            return Ok(());
        }
        if let Some(above) = dir.parent().filter(|above| !above.as_os_str().is_empty()) {
            self.make(above)?;
        }
        match std::fs::create_dir(dir) {
            Ok(()) => self.0.push(dir.to_owned()),
            // `a/..`, or another program was faster.
            Err(_) if dir.is_dir() => {}
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                return Err(Error::new(
                    ErrorKind::NotADirectory,
                    "this exists and is not a folder; name another one",
                ));
            }
            Err(e) => return Err(e),
        }
        Ok(())
    }

    fn keep(&mut self) {
        self.0.clear();
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        for dir in self.0.iter().rev() {
            // Files of others in it are kept.
            let _ = std::fs::remove_dir(dir);
        }
    }
}

/// Serves a function on a socket.
pub fn serve(path: &Path, function: Arc<dyn PciFunction>) -> Result<Server> {
    viaduct_pci::raise_descriptor_limit();
    Server::bind(path, function).map_err(|e| Failure::Run(e.to_string()))
}

/// A server for each function of the card other than the management function.
fn serve_functions(card: &Arc<SimCard>, dir: &Path) -> Result<Vec<Server>> {
    let mut servers = Vec::new();
    for (number, name) in function_names().enumerate().skip(1) {
        let function = card.function(number).map_err(|e| Failure::Run(e.to_string()))?;
        if let Some(function) = function {
            servers.push(serve(&dir.join(format!("{name}.sock")), function)?);
        }
    }
    Ok(servers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_are_not_kept_go_with_those_above_them() {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name);
        std::fs::create_dir(place("there")).unwrap();
        let make = |name: &str| {
            let mut folders = Folders::default();
            folders.make(&place(name)).unwrap();
            assert!(place(name).is_dir(), "{name}");
            folders
        };
        for name in ["there", "there/a/b", "a/b/c", "a/../b"] {
            drop(make(name));
        }
        let left =
            || std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect::<Vec<_>>();
        assert_eq!(left(), ["there"]);
        assert_eq!(std::fs::read_dir(place("there")).unwrap().count(), 0);

        let folders = make("a/b");
        std::fs::write(place("a/file"), "x").unwrap();
        drop(folders);
        assert!(place("a/file").exists() && !place("a/b").exists());
        make("a/b").keep();
        assert!(place("a/b").is_dir());

        let error = Folders::default().make(&place("a/file")).unwrap_err();
        assert!(error.to_string().contains("not a folder"), "{error}");
        assert!(Folders::default().make(&place("a/file/b")).is_err());
    }
}
