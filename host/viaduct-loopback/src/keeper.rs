// SPDX-License-Identifier: Apache-2.0
//! Holds a device's control file, so that the device outlives an adapter that is killed.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::wait::{WaitPidFlag, waitpid};

use crate::control::Control;
use crate::error::{Error, Result, system};

/// As many ends of adapters within this time are too many.
const ENDS: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);
/// How long the device process of a killed adapter may take to end.
const ORPHAN: Duration = Duration::from_secs(5);

/// Opens the control file, and runs adapters with it, one after the other as long as they are killed by a signal: `adapter`
/// makes the command for the descriptor that the child inherits. Returns how the last one has ended.
pub fn keep(adapter: impl Fn(RawFd) -> Command) -> Result<ExitStatus> {
    let control = Control::open()?.into_file();
    inheritable(&control)?;
    // Device processes of a killed adapter become children of this process, which waits for their end.
    nix::sys::prctl::set_child_subreaper(true).map_err(system("becoming the parent of orphans"))?;
    let mut ends = VecDeque::new();
    loop {
        let mut child = adapter(control.as_raw_fd()).spawn().map_err(system("starting the adapter"))?;
        let status = child.wait().map_err(system("waiting for the adapter"))?;
        if status.signal().is_none() {
            return Ok(status);
        }
        ends.push_back(Instant::now());
        while ends.front().is_some_and(|end| end.elapsed() > WINDOW) {
            ends.pop_front();
        }
        if ends.len() > ENDS {
            return Err(Error::Unstable(ends.len()));
        }
        let end = Instant::now() + ORPHAN;
        while Instant::now() < end && waitpid(None, Some(WaitPidFlag::WNOHANG)) != Err(Errno::ECHILD) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn inheritable(file: &impl AsRawFd) -> Result {
    fcntl(file.as_raw_fd(), FcntlArg::F_SETFD(FdFlag::empty())).map_err(system("the control file"))?;
    Ok(())
}

/// The control file that this process has inherited; its own children do not.
pub fn inherited(number: RawFd) -> Result<Control> {
    // SAFETY: only copied, and the number is checked by the call.
    let file = unsafe { BorrowedFd::borrow_raw(number) };
    let own = file.try_clone_to_owned().map_err(system("the control file"))?;
    // SAFETY: the number is open, as the copy has shown; nothing else here knows it.
    drop(unsafe { <std::os::fd::OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(number) });
    Ok(Control::inherit(own))
}
