// SPDX-License-Identifier: Apache-2.0
//! `viaduct vm`

mod folder;
mod job;
mod machine;
mod qmp;

use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use serde_json::Value;
use viaduct::{Card, Timeouts};
use viaduct_build::{Project, Variant};
use viaduct_pci::Location;
use viaduct_pci::vfio_user::Server;
use viaduct_sim::function_names;

use self::folder::{room, scratch, wait_for};
use self::job::{Job, Marker, read_file};
use self::machine::{Event, Guest, Shape};
pub use self::machine::{INSTRUCTION_NS, Machine};
use super::card::serve;
use crate::card::{Opened, Simulated, WaitArgs};
use crate::fail::{Failure, Result, at, usage};
use crate::functions::connect::{ConnectArgs, Connected, DiskSpec, Place};
use crate::process::signals::{Signals, interrupted};
use crate::watched::{WatchArgs, Watched};

/// Longest time a guest may take to boot; an idle machine takes 10 s.
const BOOT: Duration = Duration::from_secs(1200);
/// Longest wait for other runs that create the snapshot: several may in turn.
const OTHERS: Duration = Duration::from_secs(3600);
/// Space for messages, and for the guest's writes to its disk, besides its memory.
const SPARE: u64 = 16 << 20;
/// A snapshot that was unused for this time is removed.
const UNUSED: Duration = Duration::from_secs(3 * 24 * 3600);
/// Names of kernels.
pub const KERNELS: [&str; 3] = ["6.12", "6.1", "new"];
/// The management function.
const MGMT: &str = "mgmt";

/// Boot a stock Linux kernel with the card attached; a shell, a script or a command in it
///
/// The guest is unpacked from Debian packages into a cache folder the first time (about a minute, no root needed).
#[derive(clap::Args)]
#[command(group = crate::functions::connect::connecting(true).conflicts_with("card"))]
pub struct Args {
    /// Kernel: 6.12 (Debian 13), 6.1 (Debian 12) or new (the newest packaged)
    #[arg(long, value_name = "NAME", default_value = "6.12", value_parser = KERNELS)]
    kernel: String,
    /// Run this shell script in the guest, with the words after -- as its arguments
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Put this file into the guest's working folder; may be given several times
    #[arg(long, value_name = "FILE")]
    copy: Vec<PathBuf>,
    /// Functions of the card to attach: mgmt, net, blk, console, entropy, input, xdma, or none
    ///
    /// With mgmt the guest has the whole card and connects its functions itself.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "net,blk,console,entropy,input"
    )]
    function: Vec<String>,
    #[command(flatten)]
    connect: ConnectArgs,
    /// Use functions served by another process: a folder with a socket for each, NAME.sock
    #[arg(long, value_name = "DIR")]
    card: Option<PathBuf>,
    #[command(flatten)]
    wait: WaitArgs,
    /// Board and link to simulate; `viaduct info card` lists them
    #[arg(long, value_name = "NAME", value_parser = crate::card::known_profile)]
    profile: Option<String>,
    #[command(flatten)]
    watch: WatchArgs,
    /// Memory of the guest in megabytes
    #[arg(long, value_name = "MB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(192..=65536))]
    memory: u32,
    /// Put an IOMMU in front of the card
    #[arg(long)]
    iommu: bool,
    /// The guest's clock advances by 8 ns with each instruction: times are counts, also on a busy machine; without a card
    #[arg(long, conflicts_with_all = ["card", "iommu", "root"])]
    instruction_clock: bool,
    /// Boot with the card attached, instead of continuing from a snapshot
    #[arg(long)]
    fresh: bool,
    /// The guest's root file system is on the card's disk; it boots from there, and shuts down properly at the end
    ///
    /// `tools/guest.sh --root FILE` creates one for `--disk file:FILE`. Implies --fresh.
    #[arg(long)]
    root: bool,
    /// End the guest when a script or command takes longer
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86400))]
    timeout: u64,
    /// Keep the messages of the guest's kernel in this file
    #[arg(long, value_name = "FILE")]
    console: Option<PathBuf>,
    /// Commands for QEMU before the guest runs: one per line, as JSON
    #[arg(long, value_name = "FILE", hide = true)]
    qmp: Option<PathBuf>,
    /// Command to run in the guest
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Args {
    /// Files that the guest gets or that are written for it.
    fn files(&self) -> Vec<&Path> {
        let own = self.script.iter().chain(&self.copy).chain(&self.console).chain(&self.qmp);
        own.map(PathBuf::as_path).chain(self.connect.files()).collect()
    }

    /// Parses words of a command line.
    pub fn of(words: &[OsString]) -> Result<Self> {
        #[derive(clap::Parser)]
        #[command(no_binary_name = true)]
        struct Line {
            #[command(flatten)]
            args: Args,
        }
        let line: Line = clap::Parser::try_parse_from(words).map_err(|e| Failure::Usage(e.to_string()))?;
        Ok(line.args)
    }
}

/// Observer of a job in the guest.
pub trait Watcher {
    /// Called with the simulated card, before it is attached to the guest.
    fn card(&mut self, _card: &Simulated) -> Result {
        Ok(())
    }

    /// Called with standard output of the job, which reads the machine's input from `/dev/ttyS1`.
    fn output(&mut self, bytes: &[u8], machine: &mut Machine) -> Result;
}

/// Passes everything on to the user.
struct User;

impl Watcher for User {
    fn output(&mut self, bytes: &[u8], _: &mut Machine) -> Result {
        let mut to = std::io::stdout();
        to.write_all(bytes).and_then(|()| to.flush()).map_err(at("standard output"))
    }
}

/// Runs the guest; returns the exit code of the job.
pub fn run(args: Args) -> Result<u8> {
    watched(args, &mut User)
}

/// Runs the guest with its output passed to `watcher`; returns the exit code of the job.
pub fn watched(args: Args, watcher: &mut dyn Watcher) -> Result<u8> {
    let job = Job::new(args.script.as_deref(), &args.command, &args.copy)?;
    let project = crate::project::find()?;
    let wanted: Vec<&str> = args.function.iter().map(String::as_str).filter(|f| *f != "none").collect();
    if let Some(twice) = wanted.iter().enumerate().find(|(at, name)| wanted[..*at].contains(name)) {
        return usage(format!("--function: {} is given twice", twice.1));
    }
    if wanted.len() > machine::PORTS {
        return usage(format!("at most {} functions fit", machine::PORTS));
    }
    if args.root && !wanted.contains(&"blk") {
        return usage(
            "--root boots from the card's disk, which the guest does not have: give it --function blk",
        );
    }
    if args.card.is_some() {
        args.connect.refuse_features("give it to the `viaduct card` that serves the functions")?;
    }
    for change in args.connect.feature_changes()? {
        let function = change.kind.to_string();
        if !wanted.contains(&function.as_str()) {
            return usage(format!("--features: the guest has no {function}; give it --function {function}"));
        }
    }
    let more = args.qmp.as_deref().map(read_commands).transpose()?.unwrap_or_default();
    if args.instruction_clock && !wanted.is_empty() {
        return usage(
            "--instruction-clock has no meaning with a card, whose time is its own: add --function none",
        );
    }
    let simulate = args.card.is_none() && !wanted.is_empty();
    if !simulate && !args.watch.is_empty() {
        return usage(
            "--trace and --metrics are for a card that this command simulates; give them to the `viaduct card` that serves the functions",
        );
    }
    let connect = if simulate { connections(&args, &wanted, &project)? } else { None };
    let mut sockets = match &args.card {
        Some(dir) => wanted.iter().map(|name| socket(dir, name)).collect::<Result<Vec<_>>>()?,
        None => Vec::new(),
    };
    let guest = Guest::prepare(project.root(), &args.kernel)?;
    let shape = Shape {
        memory: args.memory,
        iommu: args.iommu,
        instruction_clock: args.instruction_clock,
        root: args.root,
    };
    if simulate {
        let channels = crate::card::profile(args.profile.as_deref())?.channels;
        project.build_card(Variant::Functions, channels, &mut crate::project::tell)?;
    }
    // From here on signals are handled, for an orderly end.
    let mut signals = Signals::take()?;
    let folder = scratch(job.archive.len() as u64 + SPARE)?;
    let mut card = None;
    // Functions of another process, checked before QEMU connects: it would neither name another client nor wait.
    let mut held = Vec::new();
    for socket in &sockets {
        held.push(args.wait.open(&Location::Unix(socket.clone()))?);
    }
    if simulate {
        let served = ServedCard::start(&project, &args, connect, &wanted, folder.path())?;
        watcher.card(&served.sim)?;
        sockets.clone_from(&served.sockets);
        card = Some(served);
    }
    let console = match &args.console {
        Some(path) => std::path::absolute(path).map_err(at(path.display()))?,
        None => folder.path().join("console"),
    };
    let mut machine = if args.fresh || args.root {
        let mut machine = Machine::start(&guest, &shape, folder.path(), &console, &job.archive, false)?;
        held.clear();
        plug_all(&mut machine, &sockets, &more)?;
        machine.go()?;
        await_ready(&mut machine, &mut signals)?;
        machine
    } else {
        let state = snapshot(&guest, &shape, &mut signals)?;
        let mut machine = Machine::start(&guest, &shape, folder.path(), &console, &job.archive, true)?;
        machine.load(&state)?;
        held.clear();
        plug_all(&mut machine, &sockets, &more)?;
        machine.go()?;
        machine
    };
    let functions = sockets.len()
        + more
            .iter()
            .filter(|(command, arguments)| {
                command == "device_add" && arguments["bus"].as_str().is_some_and(|b| b.starts_with("port"))
            })
            .count();
    let result =
        converse(&mut machine, &mut signals, &job, functions, Duration::from_secs(args.timeout), watcher);
    drop(machine);
    // The first error is more specific.
    let stopped = card.map_or(Ok(()), ServedCard::stop);
    result.and_then(|code| stopped.map(|()| code))
}

/// The socket of a function of another process.
fn socket(dir: &Path, name: &str) -> Result<PathBuf> {
    let socket = std::path::absolute(dir.join(format!("{name}.sock"))).map_err(at(dir.display()))?;
    if socket.exists() {
        return Ok(socket);
    }
    usage(format!(
        "no socket {}: is there a card? `viaduct card --functions {}` starts one",
        socket.display(),
        dir.display()
    ))
}

/// How the functions of a simulated card are connected; `None` if the guest does that. Everything named in it exists.
fn connections(args: &Args, wanted: &[&str], project: &Project) -> Result<Option<ConnectArgs>> {
    if let Some(unknown) = wanted.iter().find(|name| !function_names().any(|known| known == **name)) {
        return usage(format!(
            "the card has no function {unknown:?}; functions are called {}",
            function_names().collect::<Vec<_>>().join(", ")
        ));
    }
    if wanted.contains(&MGMT) {
        // Its only user, which connects the other functions, is the guest.
        return Ok(None);
    }
    let mut connect = args.connect.clone();
    if !wanted.contains(&"net") {
        connect.net = Some(Place::None);
    }
    if !wanted.contains(&"blk") {
        connect.disk = DiskSpec::None;
    }
    if !wanted.contains(&"xdma") && !connect.xdma_app.is_empty() {
        return usage(
            "--xdma-app is for the driver of xdma, which the guest does not have: give it --function xdma",
        );
    }
    connect.check(project)?;
    Ok(Some(connect))
}

/// A simulated card in this process, with its functions behind sockets.
struct ServedCard {
    sim: Simulated,
    servers: Vec<Server>,
    sockets: Vec<PathBuf>,
    connected: Option<Connected>,
    watched: Watched,
}

impl ServedCard {
    fn start(
        project: &Project,
        args: &Args,
        connect: Option<ConnectArgs>,
        wanted: &[&str],
        folder: &Path,
    ) -> Result<Self> {
        let line = args.connect.line;
        let (profile, variant) = (args.profile.as_deref(), Variant::Functions);
        let sim =
            crate::card::simulated_with(project, profile, variant, |profile| line.apply(&mut profile.board))?;
        let function = Arc::clone(&sim.function);
        args.connect.offer(&function)?;
        let watched = args.watch.begin(&sim, &args.files())?;
        watched.line().iter().for_each(|line| tell!("{line}"));
        let connected = match connect {
            None => None,
            Some(connect) => {
                let card = Card::open_with(Arc::clone(&function) as _, Timeouts::default())?;
                Some(connect.connect(project, &Opened { card, sim: Some(sim.clone()) })?)
            }
        };
        connected.iter().flat_map(Connected::lines).for_each(|line| tell!("{line}"));
        let (mut servers, mut sockets) = (Vec::new(), Vec::new());
        for name in wanted {
            let number = function_names().position(|n| n == *name);
            let found = match number {
                Some(0) => Some(Arc::clone(&function) as _),
                Some(number) => function.function(number).map_err(|e| Failure::Run(e.to_string()))?,
                None => None,
            };
            let Some(found) = found else {
                return Err(Failure::Run(format!("the card has no function {name:?}; build it again")));
            };
            let socket = folder.join(format!("{name}.sock"));
            servers.push(serve(&socket, found)?);
            sockets.push(socket);
        }
        Ok(Self { sim, servers, sockets, connected, watched })
    }

    /// Ends it properly; writes to a disk are then in its file.
    fn stop(mut self) -> Result {
        self.servers.iter_mut().for_each(Server::stop);
        let closed = self.connected.map_or(Ok(()), Connected::close);
        crate::trace::tell(self.watched.end(), closed)
    }
}

fn plug_all(machine: &mut Machine, sockets: &[PathBuf], more: &[(String, Value)]) -> Result {
    sockets.iter().enumerate().try_for_each(|(port, socket)| machine.plug(port, socket))?;
    more.iter().try_for_each(|(command, arguments)| machine.ask(command, arguments))
}

/// Commands for QEMU: a line each, an object with `execute` and `arguments`.
fn read_commands(path: &Path) -> Result<Vec<(String, Value)>> {
    let text = String::from_utf8_lossy(&read_file(path)?).into_owned();
    text.lines()
        .map(|line| {
            let value: Value = serde_json::from_str(line).unwrap_or_default();
            match value["execute"].as_str() {
                Some(command) => Ok((command.to_owned(), value["arguments"].clone())),
                None => usage(format!("{}: no command for QEMU: {line}", path.display())),
            }
        })
        .collect()
}

/// The snapshot of a booted guest with empty ports; created if there is none.
fn snapshot(guest: &Guest, shape: &Shape, signals: &mut Signals) -> Result<PathBuf> {
    let path = guest.boot.join(format!("snapshot-{:016x}", machine::fingerprint(guest, shape)));
    if is_there(&path) {
        return Ok(path);
    }
    // One run creates it, the others wait.
    let _lock = wait_for(guest.boot.join("snapshot.lock"), "boots for a snapshot", OTHERS, signals)?;
    if is_there(&path) {
        return Ok(path);
    }
    sweep(&guest.boot);
    // The memory of a booted kernel, and its metadata per page.
    room(&guest.boot, (192 << 20) + (u64::from(shape.memory) << 20) / 32, "XDG_CACHE_HOME")?;
    tell!("booting Linux {} once, for a snapshot (about 10 s)", guest.release);
    let folder = scratch(SPARE)?;
    let console = folder.path().join("console");
    let mut machine = Machine::start(guest, shape, folder.path(), &console, &[], false)?;
    machine.go()?;
    await_ready(&mut machine, signals)?;
    let part = path.with_extension("part");
    if let Err(failure) = machine.save(&part) {
        // If it cannot be removed now, the next run removes it.
        let _ = std::fs::remove_file(&part);
        return Err(failure);
    }
    drop(machine);
    std::fs::rename(&part, &path).map_err(at(path.display()))?;
    Ok(path)
}

/// Whether there is such a snapshot; it counts as used from now on.
fn is_there(path: &Path) -> bool {
    match File::open(path) {
        // Only users who may write to it remove it.
        Ok(file) => drop(file.set_modified(SystemTime::now())),
        Err(_) => return false,
    }
    true
}

/// Removes unfinished files of killed runs, and unused snapshots.
fn sweep(boot: &Path) {
    for entry in std::fs::read_dir(boot).into_iter().flatten().flatten() {
        let path = entry.path();
        let unused = || entry.metadata().ok()?.modified().ok()?.elapsed().ok().filter(|age| *age > UNUSED);
        let left = path.extension().is_some_and(|e| e == "part");
        let snapshot = entry.file_name().to_string_lossy().starts_with("snapshot-");
        if left || (snapshot && unused().is_some()) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Waits until the guest's agent listens.
fn await_ready(machine: &mut Machine, signals: &mut Signals) -> Result {
    let end = Instant::now() + BOOT;
    let mut heard = Vec::new();
    while Instant::now() < end {
        match machine.event(signals, end - Instant::now()) {
            Some(Event::Out(bytes)) => {
                heard.extend_from_slice(&bytes);
                if heard.ends_with(b"ready\n") {
                    return Ok(());
                }
            }
            Some(Event::Closed) => {
                return Err(Failure::Run(format!("the guest ended while it booted{}", machine.last_words())));
            }
            Some(Event::Signal(number)) => return Err(interrupted(number)),
            Some(Event::Err(_)) | None => {}
        }
    }
    Err(Failure::Run(format!("the guest has not booted within {} s{}", BOOT.as_secs(), machine.last_words())))
}

/// Starts the job in the guest and passes on its output until it ends.
fn converse(
    machine: &mut Machine,
    signals: &mut Signals,
    job: &Job,
    functions: usize,
    limit: Duration,
    watcher: &mut dyn Watcher,
) -> Result<u8> {
    let (rows, columns) = if job.shell { crate::terminal::window().unwrap_or((24, 80)) } else { (24, 80) };
    let kind = if job.shell { "shell" } else { "script" };
    let size = job.archive.len().div_ceil(1024);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    // Programs of the guest write to a terminal in any case, and leave escape sequences out if it knows none.
    let term = if std::io::stdout().is_terminal() { "linux" } else { "dumb" };
    let line = format!("job {} {now} {functions} {size} {kind} {rows} {columns} {term}\n", job.nonce);
    machine.input.write_all(line.as_bytes()).map_err(at("the guest"))?;
    let _raw = if job.shell { raw_terminal(machine)? } else { None };

    let end = (!job.shell).then(|| Instant::now() + limit);
    let (mut out, mut err) = (Marker::new(&job.nonce), Marker::new(&job.nonce));
    loop {
        if let (Some(code), Some(_)) = (out.code, err.code) {
            return Ok(code);
        }
        let wait = end.map_or(limit, |end| end.saturating_duration_since(Instant::now()));
        if wait.is_zero() {
            return Err(Failure::Run(format!(
                "the guest is not done within {} s (--timeout allows more){}",
                limit.as_secs(),
                machine.last_words()
            )));
        }
        match machine.event(signals, wait) {
            Some(Event::Out(bytes)) => watcher.output(&out.take(&bytes), machine)?,
            Some(Event::Err(bytes)) => show_error(&err.take(&bytes))?,
            Some(Event::Closed) => {
                return Err(Failure::Run(format!("the guest ended before its job{}", machine.last_words())));
            }
            Some(Event::Signal(number)) => return Err(interrupted(number)),
            None => {}
        }
    }
}

/// Shows what the guest says on standard error, if anybody reads it.
fn show_error(bytes: &[u8]) -> Result {
    let mut to = std::io::stderr();
    match to.write_all(bytes).and_then(|()| to.flush()) {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(at("standard error")),
    }
}

/// The former settings of the terminal, restored at the end.
struct Raw(Termios);

impl Drop for Raw {
    fn drop(&mut self) {
        // At the end of the program errors are ignored.
        let _ = tcsetattr(std::io::stdin().as_fd(), SetArg::TCSADRAIN, &self.0);
    }
}

/// Connects standard input to the guest; a terminal passes on every key.
fn raw_terminal(machine: &Machine) -> Result<Option<Raw>> {
    let mut to = machine.input.try_clone().map_err(at("the guest"))?;
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        let mut stdin = std::io::stdin();
        loop {
            match stdin.read(&mut buffer) {
                // End of file: Ctrl-D on the guest's terminal.
                Ok(0) | Err(_) => break drop(to.write_all(&[4])),
                Ok(n) if to.write_all(&buffer[..n]).is_err() => break,
                Ok(_) => {}
            }
        }
    });
    let stdin = std::io::stdin();
    let Ok(before) = tcgetattr(stdin.as_fd()) else { return Ok(None) };
    let mut raw = before.clone();
    cfmakeraw(&mut raw);
    tcsetattr(stdin.as_fd(), SetArg::TCSADRAIN, &raw).map_err(|e| Failure::Run(format!("terminal: {e}")))?;
    Ok(Some(Raw(before)))
}
