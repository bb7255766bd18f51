// SPDX-License-Identifier: Apache-2.0
//! The virtual machine: a QEMU process, its sockets, and the guest in it.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use nix::time::ClockId;
use nix::unistd::Pid;
use serde_json::json;
use viaduct_build::{end_with_us, kill_with_us};

use super::qmp::{Qmp, unless_ended};
use crate::fail::{Failure, Result, at};
use crate::process::signals::Signals;
use crate::terminal::text::plain;

/// Root ports, each for one function of the card.
pub const PORTS: usize = 8;
/// Size of the disk that carries the files of a job: always the same, since it is part of the guest's snapshot.
pub const JOB_DISK: u64 = 256 << 20;
// Limits are for very busy machines: each is a hundred times the duration on an idle one.
/// Longest wait for QEMU to start and to connect.
const START: Duration = Duration::from_secs(300);
/// Longest time to save a snapshot, and to restore it.
const MIGRATE: Duration = Duration::from_secs(1200);
/// Longest wait for QEMU to end when it is asked to; then it is killed.
const QUIT: Duration = Duration::from_secs(5);
/// Reply time of a function: simulated cards are slow when many share a machine.
const REPLY_MS: u32 = 600_000;

/// Kernel parameters for a guest whose processor stops at times, because the machine is busy: no check that a timer ticks while the
/// processor counts (which panics), no check of the clock against another one, and no warnings about long operations.
const PATIENT: &str = "no_timer_check tsc=reliable nowatchdog rcupdate.rcu_cpu_stall_suppress=1 workqueue.watchdog_thresh=0 \
    sysctl.kernel.hung_task_timeout_secs=0 libata.ata_probe_timeout=600";

/// Output of `tools/guest.sh`.
pub struct Guest {
    /// Folder of this kernel's files; snapshots go there too.
    pub boot: PathBuf,
    /// Release of the kernel.
    pub release: String,
    kernel: PathBuf,
    initrd: PathBuf,
    disk: PathBuf,
    qemu: PathBuf,
}

impl Guest {
    /// Downloads and builds missing files.
    pub fn prepare(root: &Path, kernel: &str) -> Result<Self> {
        let script = root.join("tools/guest.sh");
        let mut command = Command::new(&script);
        command.args(["--kernel", kernel]).stderr(Stdio::inherit()).stdin(Stdio::null());
        end_with_us(&mut command);
        let output = command.output().map_err(at(script.display()))?;
        if !output.status.success() {
            return Err(Failure::Run("there is no guest to boot; the reason is above".to_owned()));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let value = |name: &str| {
            text.lines()
                .filter_map(|line| line.split_once('='))
                .find(|(n, _)| *n == name)
                .map(|(_, v)| v.to_owned())
                .ok_or_else(|| Failure::Run(format!("{} does not print its {name}", script.display())))
        };
        let disk = PathBuf::from(value("disk")?);
        Ok(Self {
            boot: disk.parent().unwrap_or(Path::new("/")).to_owned(),
            release: value("release")?,
            kernel: value("kernel")?.into(),
            initrd: value("initrd")?.into(),
            disk,
            qemu: value("qemu")?.into(),
        })
    }
}

/// A warning of QEMU at every plugged function, without consequences.
const USUAL: &str = "Could not enable error recovery for the device";

/// Nanoseconds of an instruction, if the guest's clock counts them.
pub const INSTRUCTION_NS: f64 = 8.0;

/// Properties of the machine.
#[derive(Clone)]
pub struct Shape {
    /// Megabytes of memory.
    pub memory: u32,
    /// An IOMMU in front of the card.
    pub iommu: bool,
    /// The guest's clock counts its instructions.
    pub instruction_clock: bool,
    /// The root file system is on the card's disk.
    pub root: bool,
}

/// Output of the machine.
pub enum Event {
    /// Bytes of the guest's ttyS1: control, standard output.
    Out(Vec<u8>),
    /// Bytes of ttyS2: standard error.
    Err(Vec<u8>),
    /// One of the two was closed: QEMU has ended.
    Closed,
    /// The user has ended the run.
    Signal(i32),
}

/// A running QEMU. Dropping it ends it.
pub struct Machine {
    qemu: Child,
    qmp: Qmp,
    /// To the guest's ttyS1.
    pub input: UnixStream,
    events: Receiver<Event>,
    folder: PathBuf,
    console: PathBuf,
}

impl Machine {
    /// Starts QEMU; with `incoming` it waits for a snapshot, else it boots.
    /// `folder` is the run's own; the guest's kernel writes to `console`, its disk for jobs begins with `job`.
    pub fn start(
        guest: &Guest,
        shape: &Shape,
        folder: &Path,
        console: &Path,
        job: &[u8],
        incoming: bool,
    ) -> Result<Self> {
        let place = |name: &str| folder.join(name);
        let disk = place("job.img");
        let mut file = File::create(&disk).map_err(at(disk.display()))?;
        file.write_all(job).and_then(|()| file.set_len(JOB_DISK)).map_err(at(disk.display()))?;

        let listen = |name: &str| {
            let path = place(name);
            let listener = UnixListener::bind(&path).map_err(at(path.display()))?;
            listener.set_nonblocking(true).map_err(at(path.display()))?;
            Ok::<_, Failure>(listener)
        };
        let (qmp, out, err) = (listen("qmp")?, listen("ttyS1")?, listen("ttyS2")?);
        let mut command = Command::new(&guest.qemu);
        command.args(arguments(guest, shape, folder, console, &disk));
        if incoming {
            command.args(["-incoming", "defer"]);
        }
        let errors = File::create(place("qemu.err")).map_err(at(folder.display()))?;
        // A group of its own: Ctrl-C is handled by this process, which ends QEMU.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        // A guest's processor may wait for a card that was in this process, and QEMU for its processor.
        kill_with_us(&mut command);
        let mut qemu = command.spawn().map_err(at(guest.qemu.display()))?;

        let connected = (|| {
            let end = Instant::now() + START;
            let qmp = accept(&qmp, &mut qemu, end)?;
            let out = accept(&out, &mut qemu, end)?;
            let err = accept(&err, &mut qemu, end)?;
            Ok::<_, String>((Qmp::open(qmp)?, out, err))
        })();
        let (qmp, input, err) = match connected {
            Ok(all) => all,
            Err(why) => {
                let _ = qemu.kill();
                let _ = qemu.wait();
                // It was told to end, which is no error.
                unless_ended().map_err(Failure::Run)?;
                return Err(Failure::Run(format!("QEMU does not start: {why}{}", said(folder))));
            }
        };
        let (sender, events) = channel();
        let output = input.try_clone().map_err(at("ttyS1"))?;
        pump(output, sender.clone(), Event::Out);
        pump(err, sender, Event::Err);
        Ok(Self { qemu, qmp, input, events, folder: folder.to_owned(), console: console.to_owned() })
    }

    /// The next output, within `limit`; None if there was none.
    pub fn event(&mut self, signals: &mut Signals, limit: Duration) -> Option<Event> {
        if let Some(signal) = signals.taken() {
            return Some(Event::Signal(signal));
        }
        match self.events.recv_timeout(limit.min(Duration::from_millis(100))) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Event::Closed),
        }
    }

    /// Saves the state of the machine.
    pub fn save(&mut self, to: &Path) -> Result {
        self.ask("stop", &json!({}))?;
        self.pages_in_place()?;
        self.ask("migrate", &json!({ "uri": format!("file:{}", to.display()) }))?;
        self.qmp.wait("query-migrate", "status", MIGRATE, |s| s == "completed").map_err(Failure::Run)
    }

    /// Restores a saved state; the machine is then stopped.
    pub fn load(&mut self, from: &Path) -> Result {
        self.pages_in_place()?;
        self.ask("migrate-incoming", &json!({ "uri": format!("file:{}", from.display()) }))?;
        self.qmp
            .wait("query-status", "status", MIGRATE, |s| s == "paused" || s == "running")
            .map_err(Failure::Run)
    }

    /// Memory is at fixed offsets of the file, so that it is read back in large pieces.
    fn pages_in_place(&mut self) -> Result {
        let capabilities = json!([{ "capability": "mapped-ram", "state": true }]);
        self.ask("migrate-set-capabilities", &json!({ "capabilities": capabilities }))
    }

    /// Plugs the function served on `socket` into a root port.
    pub fn plug(&mut self, port: usize, socket: &Path) -> Result {
        let device = json!({
            "driver": "vfio-user-pci", "id": format!("function{port}"), "bus": format!("port{port}"),
            "x-msg-timeout": REPLY_MS, "socket": { "type": "unix", "path": socket },
        });
        self.ask("device_add", &device)
    }

    /// Starts the machine.
    pub fn go(&mut self) -> Result {
        self.ask("cont", &json!({}))
    }

    /// Processor time that QEMU has used: that of the emulated guest and its devices.
    pub fn processor_time(&self) -> Result<Duration> {
        let failed = |e: nix::Error| Failure::Run(format!("QEMU's processor time: {e}"));
        let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(self.qemu.id() as i32)).map_err(failed)?;
        clock.now().map(Duration::from).map_err(failed)
    }

    /// One command for QEMU.
    pub fn ask(&mut self, command: &str, arguments: &serde_json::Value) -> Result {
        self.qmp.ask(command, arguments).map(drop).map_err(|e| Failure::Run(e + &said(&self.folder)))
    }

    /// Why QEMU has ended, or the last output of the guest.
    pub fn last_words(&self) -> String {
        let console = tail(&self.console, 60, |_| true);
        // Of a crash only its reason, not the registers after it.
        let words = match console.rfind("Kernel panic") {
            Some(at) => console[at..].lines().next().unwrap_or("").to_owned(),
            None => tail(&self.console, 8, |_| true),
        };
        let guest = match words.lines().count() {
            0 => String::new(),
            1 => format!("; the guest's console ends with: {words}"),
            _ => {
                tell!("the guest's console ends with:");
                words.lines().for_each(|line| tell!("{}", plain(line)));
                "; the end of the guest's console is above".to_owned()
            }
        };
        said(&self.folder) + &guest
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // First by request, so that QEMU disconnects from the card properly.
        let _ = self.qmp.wait_at_most(QUIT).and_then(|()| self.qmp.ask("quit", &json!({})));
        let end = Instant::now() + QUIT;
        while Instant::now() < end {
            if !matches!(self.qemu.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

/// Key of a snapshot: all options of QEMU except the run's own files, and the processor, whose clock the guest has
/// measured.
pub fn fingerprint(guest: &Guest, shape: &Shape) -> u64 {
    let any = Path::new("/");
    let mut hasher = DefaultHasher::new();
    arguments(guest, shape, any, any, any).hash(&mut hasher);
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    processors.lines().find(|line| line.starts_with("model name")).hash(&mut hasher);
    hasher.finish()
}

fn arguments(guest: &Guest, shape: &Shape, folder: &Path, console: &Path, job: &Path) -> Vec<String> {
    let path = |p: &Path| p.display().to_string().replace(',', ",,");
    let mut list: Vec<String> = Vec::new();
    let mut add = |option: &str, value: String| list.extend([option.to_owned(), value]);
    // Without unneeded devices: each takes time to boot.
    let split = if shape.iommu { ",kernel-irqchip=split" } else { "" };
    add("-M", format!("q35,accel=tcg,memory-backend=m,usb=off,vmport=off,i8042=off,hpet=off{split}"));
    add("-object", format!("memory-backend-memfd,id=m,size={}M,share=on", shape.memory));
    add("-m", format!("{}M", shape.memory));
    add("-cpu", "Nehalem".to_owned());
    add("-display", "none".to_owned());
    if shape.instruction_clock {
        // 2³ ns.
        add("-icount", "shift=3,sleep=off".to_owned());
    }
    if shape.iommu {
        add("-device", "intel-iommu,intremap=on,caching-mode=on".to_owned());
    }
    for port in 0..PORTS {
        add(
            "-device",
            format!(
                "pcie-root-port,id=port{port},chassis={port},slot={port},addr={:x}.0,pref64-reserve=64M,mem-reserve=4M",
                port + 4
            ),
        );
    }
    add("-drive", format!("file={},format=raw,if=none,id=disk,snapshot=on,werror=report", path(&guest.disk)));
    add("-device", "ide-hd,drive=disk,bus=ide.0".to_owned());
    add("-drive", format!("file={},format=raw,if=none,id=job,werror=report", path(job)));
    add("-device", "ide-hd,drive=job,bus=ide.1".to_owned());
    add("-serial", format!("file:{}", path(console)));
    for tty in ["ttyS1", "ttyS2"] {
        add("-chardev", format!("socket,id={tty},path={}", path(&folder.join(tty))));
        add("-serial", format!("chardev:{tty}"));
    }
    add("-qmp", format!("unix:{}", path(&folder.join("qmp"))));
    add("-kernel", path(&guest.kernel));
    add("-initrd", path(&guest.initrd));
    let iommu = if shape.iommu { " intel_iommu=on iommu.strict=1" } else { "" };
    let root = if shape.root { " viaduct.root" } else { "" };
    add(
        "-append",
        format!(
            "console=ttyS0 panic=-1 iomem=relaxed quiet loglevel=5 random.trust_cpu=on mitigations=off {PATIENT}{iommu}{root}"
        ),
    );
    for flag in ["-nodefaults", "-no-user-config", "-no-reboot", "-S"] {
        list.push(flag.to_owned());
    }
    list
}

fn accept(
    listener: &UnixListener,
    qemu: &mut Child,
    end: Instant,
) -> std::result::Result<UnixStream, String> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).map_err(|e| e.to_string())?;
                return Ok(stream);
            }
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e.to_string()),
        }
        if let Ok(Some(status)) = qemu.try_wait() {
            return Err(format!("it ended with {status}"));
        }
        if Instant::now() > end {
            return Err(format!("it does not connect within {} s", START.as_secs()));
        }
        unless_ended()?;
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn pump(mut from: UnixStream, to: Sender<Event>, kind: fn(Vec<u8>) -> Event) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let event = match from.read(&mut buffer) {
                Ok(0) | Err(_) => Event::Closed,
                Ok(n) => kind(buffer[..n].to_vec()),
            };
            let last = matches!(event, Event::Closed);
            if to.send(event).is_err() || last {
                return;
            }
        }
    });
}

/// Output of QEMU, for the end of a message.
fn said(folder: &Path) -> String {
    let text = tail(&folder.join("qemu.err"), 6, |line| !line.contains(USUAL));
    if text.is_empty() { text } else { format!("; QEMU reports: {text}") }
}

/// The last lines of a file for which `counts` is true.
fn tail(path: &Path, lines: usize, counts: impl Fn(&str) -> bool) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().map(str::trim_end).filter(|l| !l.is_empty() && counts(l)).collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_qemu_always_says_is_no_reason() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(said(folder.path()), "");
        let usual = format!("qemu: warning: vfio vfio-user:/x/net.sock: {USUAL}\n");
        std::fs::write(folder.path().join("qemu.err"), usual.repeat(5)).unwrap();
        assert_eq!(said(folder.path()), "");
        std::fs::write(folder.path().join("qemu.err"), format!("qemu: no memory\n{}", usual.repeat(9)))
            .unwrap();
        assert_eq!(said(folder.path()), "; QEMU reports: qemu: no memory");
    }
}
