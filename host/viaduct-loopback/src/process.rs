// SPDX-License-Identifier: Apache-2.0
//! The device process: started by a shell, in a process group of its own, ended with the adapter.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use viaduct_build::kill_with_us;

use crate::error::{Error, Result, system};

/// What stands in a command for the path of the socket.
pub const PLACE: &str = "{socket}";
/// How long a device process may take until it has a socket.
const START: Duration = Duration::from_secs(30);
/// From linux/prctl.h; the crate lacks it.
const PR_SET_IO_FLUSHER: i32 = 57;
/// Last bytes of its messages in an error.
const TAIL: u64 = 600;

/// The first of several sockets.
fn numbered(socket: &Path) -> PathBuf {
    let mut path = socket.as_os_str().to_owned();
    path.push("0");
    path.into()
}

/// A running device process. Dropping it ends the process and its group.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a command; its messages go to the end of a file.
    pub fn start(command: &str, socket: &Path, log: &Path) -> Result<Process> {
        for old in [socket.to_owned(), numbered(socket)] {
            let _ = std::fs::remove_file(old);
        }
        let messages = || -> std::io::Result<File> { OpenOptions::new().create(true).append(true).open(log) };
        let line = format!("exec {}", command.replace(PLACE, &socket.to_string_lossy()));
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", &line])
            .env("VIADUCT_SOCKET", socket)
            .stdin(Stdio::null())
            .stdout(messages().map_err(Error::Start)?)
            .stderr(messages().map_err(Error::Start)?)
            .process_group(0);
        kill_with_us(&mut shell);
        // SAFETY: only a system call, which is allowed between fork and exec.
        unsafe {
            shell.pre_exec(|| {
                // Its memory must not wait for writes to the disk that it may be. Only with CAP_SYS_RESOURCE; it works without.
                nix::libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
                Ok(())
            })
        };
        let child = shell.spawn().map_err(Error::Start)?;
        Ok(Process { child, log: log.to_owned() })
    }

    /// Connects to its socket, as soon as there is one.
    pub fn connect(&mut self, socket: &Path) -> Result<UnixStream> {
        let end = Instant::now() + START;
        loop {
            // Programs that can have many sockets append a number.
            for path in [socket.to_owned(), numbered(socket)] {
                if let Ok(stream) = UnixStream::connect(path) {
                    return Ok(stream);
                }
            }
            if let Some(status) = self.child.try_wait().map_err(system("waiting for the device process"))? {
                return Err(Error::NotServing(format!("has ended: {status}"), self.tail()));
            }
            if Instant::now() > end {
                let why = format!(
                    "has no socket after {} s; write {PLACE} where its command takes the path",
                    START.as_secs()
                );
                return Err(Error::NotServing(why, self.tail()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Readable when it has ended.
    pub fn watch(&self) -> Result<OwnedFd> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())
            .map_err(system("watching the device process"))
    }

    /// The end of its messages, for an error.
    fn tail(&self) -> String {
        let read = || -> std::io::Result<String> {
            let mut file = File::open(&self.log)?;
            let size = file.metadata()?.len();
            file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
            let mut text = Vec::new();
            file.read_to_end(&mut text)?;
            Ok(String::from_utf8_lossy(&text).trim().to_owned())
        };
        match read() {
            Ok(text) if !text.is_empty() => format!("; its last messages: {text}"),
            _ => String::new(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The shell has replaced itself by the command; what that has started is in the group.
        let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
