// SPDX-License-Identifier: Apache-2.0
//! `viaduct loopback`

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::sys::signalfd::SignalFd;
use viaduct_loopback::list::{Entry, find, list};
use viaduct_loopback::{Control, Device, Error, Kind, Options, inherited, keep};

use crate::fail::{Failure, Result, at};
use crate::process::{signals, tell};

/// Virtio devices of this machine's own kernel, served by vhost-user processes (docs/loopback.md)
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Start a device process, and plug its device into this kernel
    Add(AddArgs),
    /// List the devices
    Ls,
    /// Unplug a device
    Rm {
        /// Its name, as `ls` prints it, or that of its node, such as vda
        name: String,
    },
}

#[derive(clap::Args)]
struct AddArgs {
    /// Type of device: blk, can, console, gpio, i2c, input, net, rng, sound, spi or vsock
    kind: String,
    /// Command of the vhost-user device process; {socket} stands for the path of its socket
    #[arg(long, value_name = "COMMAND")]
    exec: String,
    /// Serve in this process, until a signal; otherwise in the background
    #[arg(long)]
    foreground: bool,
    /// Of `add` without --foreground: keeps the device while adapters come and go
    #[arg(long, hide = true)]
    keep: bool,
    /// Of --keep: the descriptor of the control file
    #[arg(long, hide = true, value_name = "FD")]
    control: Option<i32>,
    /// Number of queues, if the device process does not say it
    #[arg(long)]
    queues: Option<u32>,
    /// Descriptors of each queue: a power of two from 2 to 1024
    #[arg(long, default_value_t = 256, value_parser = power_of_two)]
    queue_size: u16,
    /// Megabytes for buffers that are copied, from 1 to 64
    #[arg(long, value_name = "MB", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    bounce: u32,
    /// Megabytes of requests that are mapped at a time; 0: all are copied
    #[arg(long, value_name = "MB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(0..=1024))]
    window: u32,
    /// Kilobytes of a request from which its pages are mapped, not copied
    #[arg(long, value_name = "KB", default_value_t = 16, value_parser = clap::value_parser!(u32).range(4..=1 << 20))]
    map_min: u32,
}

fn power_of_two(text: &str) -> std::result::Result<u16, String> {
    match text.parse::<u16>() {
        Ok(n) if n.is_power_of_two() && (2..=1024).contains(&n) => Ok(n),
        _ => Err("it is no power of two from 2 to 1024".to_owned()),
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        let message = e.to_string();
        match e {
            Error::NoKind(..) | Error::NoDevice(_) => Failure::Usage(message),
            _ => Failure::Run(message),
        }
    }
}

/// Runs the command.
pub fn run(args: Args) -> Result {
    match args.action {
        Action::Add(add) if add.keep => keep_device(),
        Action::Add(add) if add.foreground || add.control.is_some() => serve(&add),
        Action::Add(add) => begin(&add),
        Action::Ls => list_all(),
        Action::Rm { name } => Ok(find(&name)?.remove()?),
    }
}

fn options(add: &AddArgs) -> Result<Options> {
    let kind = Kind::by_name(&add.kind)?;
    Ok(Options {
        queues: add.queues,
        queue_size: add.queue_size,
        bounce: add.bounce << 20,
        window: add.window << 20,
        map_min: add.map_min << 10,
        ..Options::new(kind, add.exec.clone())
    })
}

/// Starts this command again in the background, and ends when that says that the device is there, or cannot be.
fn begin(add: &AddArgs) -> Result {
    options(add)?;
    let mut command = again()?;
    command.arg("--keep");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: a system call that is allowed between fork and exec.
    unsafe {
        command.pre_exec(|| {
            nix::unistd::setsid()?;
            Ok(())
        })
    };
    let mut child = command.spawn().map_err(at("this program"))?;
    let mut first = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut first).map_err(at("the adapter"))?;
    }
    if !first.is_empty() {
        return tell::out(first.trim_end());
    }
    let mut said = String::new();
    if let Some(mut messages) = child.stderr.take() {
        std::io::Read::read_to_string(&mut messages, &mut said).map_err(at("the adapter"))?;
    }
    let _ = child.wait();
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("error: the adapter has ended");
    Err(Failure::Run(last.trim_start_matches("error: ").to_owned()))
}

/// This program with the same arguments.
fn again() -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().map_err(at("this program"))?);
    command.args(std::env::args_os().skip(1));
    Ok(command)
}

fn keep_device() -> Result {
    let program = std::env::current_exe().map_err(at("this program"))?;
    let status = keep(|control| {
        let mut command = Command::new(&program);
        command.args(std::env::args_os().skip(1).filter(|word| word != "--keep"));
        command.arg("--control").arg(control.to_string());
        command
    })?;
    // The adapter has said why.
    std::process::exit(status.code().unwrap_or(1))
}

fn serve(add: &AddArgs) -> Result {
    let options = options(add)?;
    let control = add.control.map_or_else(Control::open, inherited)?;
    let ending = signals::ending();
    ending.thread_block().map_err(|e| Failure::Run(format!("signals: {e}")))?;
    let signals = SignalFd::new(&ending).map_err(|e| Failure::Run(format!("signals: {e}")))?;
    let device = Device::start(options, control)?;
    let told = |index| {
        let line = Entry::by_index(index).map_or_else(|| format!("virtio{index}"), |entry| line(&entry));
        let mut out = std::io::stdout();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
        if add.control.is_some()
            && let Ok(nothing) = std::fs::OpenOptions::new().write(true).open("/dev/null")
        {
            let _ = nix::unistd::dup2(nothing.as_raw_fd(), 1);
            let _ = nix::unistd::dup2(nothing.as_raw_fd(), 2);
        }
    };
    Ok(device.serve(&signals, told)?)
}

fn line(entry: &Entry) -> String {
    let kind = entry.kind.map_or("unknown", |kind| kind.name);
    let node = if entry.node.is_empty() { "-" } else { &entry.node };
    format!("{}  {kind}  {node}", entry.name)
}

fn list_all() -> Result {
    for entry in list()? {
        let counts = ["requests", "copied", "mapped", "restarts"];
        let counts = counts.map(|name| format!("{name} {}", entry.count(name))).join(", ");
        tell::out(&format!("{}  adapter {}, {counts}", line(&entry), entry.owner))?;
    }
    Ok(())
}
