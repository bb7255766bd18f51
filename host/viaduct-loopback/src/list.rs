// SPDX-License-Identifier: Apache-2.0
//! The devices that there are, as sysfs has them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::error::{Error, NODE, Result, system};
use crate::kind::Kind;

const DEVICES: &str = "/sys/bus/virtio/devices";
/// How long unplugging may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A device.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name, such as `virtio3`.
    pub name: String,
    /// Its type, if it has a name here.
    pub kind: Option<Kind>,
    /// What the driver has made of it, such as `vda`; empty without a driver.
    pub node: String,
    /// The adapter's process.
    pub owner: i32,
    folder: PathBuf,
}

fn text(path: &Path) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
}

/// The names of what drivers put into a device's folder.
fn node(folder: &Path) -> String {
    let mut names = Vec::new();
    for class in ["block", "net", "tty", "input", "sound", "misc", "gpio", "i2c-dev"] {
        let Ok(entries) = std::fs::read_dir(folder.join(class)) else { continue };
        names.extend(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()));
    }
    names.sort();
    names.join(",")
}

impl Entry {
    fn read(folder: PathBuf) -> Option<Entry> {
        let owner = text(&folder.join("viaduct/owner"))?.parse().ok()?;
        let id = text(&folder.join("device"))?;
        let id = u32::from_str_radix(id.trim_start_matches("0x"), 16).ok()?;
        let name = folder.file_name()?.to_string_lossy().into_owned();
        Some(Entry { name, kind: Kind::by_id(id), node: node(&folder), owner, folder })
    }

    /// The device `virtioN`.
    pub fn by_index(index: u32) -> Option<Entry> {
        Entry::read(Path::new(DEVICES).join(format!("virtio{index}")))
    }

    /// One of the kernel's counters: `requests`, `copied`, `mapped`, `kicks`, `calls`, `faults`, `restarts`.
    pub fn count(&self, name: &str) -> u64 {
        text(&self.folder.join("viaduct").join(name)).and_then(|n| n.parse().ok()).unwrap_or(0)
    }

    /// Unplugs it: ends its adapter, and waits until it is gone.
    pub fn remove(&self) -> Result {
        let keeper = keeper(self.owner);
        match kill(Pid::from_raw(self.owner), Signal::SIGTERM) {
            Ok(()) | Err(nix::errno::Errno::ESRCH) => {}
            Err(e) => return Err(system("ending the device's adapter")(e)),
        }
        let end = Instant::now() + LIMIT;
        // The module can be unloaded when the keeper has ended.
        let there = || self.folder.join("viaduct").exists() || keeper.as_deref().is_some_and(is_running);
        while there() {
            if Instant::now() > end {
                let late = std::io::Error::from(std::io::ErrorKind::TimedOut);
                return Err(system("unplugging the device")(late));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

/// The folder in /proc of the process that has started an adapter, if it is the same program.
fn keeper(adapter: i32) -> Option<PathBuf> {
    let adapter = PathBuf::from(format!("/proc/{adapter}"));
    let status = std::fs::read_to_string(adapter.join("status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim();
    let keeper = PathBuf::from(format!("/proc/{parent}"));
    let same =
        std::fs::read_link(keeper.join("exe")).ok()? == std::fs::read_link(adapter.join("exe")).ok()?;
    same.then_some(keeper)
}

/// Whether a process runs; one that has ended and waits for its parent has no program.
fn is_running(process: &Path) -> bool {
    std::fs::read_link(process.join("exe")).is_ok()
}

/// All devices, by name.
pub fn list() -> Result<Vec<Entry>> {
    if !Path::new(NODE).exists() {
        return Err(Error::NoModule);
    }
    let mut found: Vec<Entry> = match std::fs::read_dir(DEVICES) {
        Ok(entries) => entries.flatten().filter_map(|entry| Entry::read(entry.path())).collect(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(system(DEVICES)(e)),
    };
    found.sort_by_key(|entry| (entry.name.len(), entry.name.clone()));
    Ok(found)
}

/// A device by its name, `virtio3`, or that of what the driver has made of it, `vda`.
pub fn find(name: &str) -> Result<Entry> {
    let name = name.trim_start_matches("/dev/");
    let found = list()?
        .into_iter()
        .find(|entry| entry.name == name || entry.node.split(',').any(|node| node == name));
    found.ok_or_else(|| Error::NoDevice(name.to_owned()))
}
