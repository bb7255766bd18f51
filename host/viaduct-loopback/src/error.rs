// SPDX-License-Identifier: Apache-2.0
//! Why a device cannot be created or served.

use std::io;

/// Path of the kernel module's device node.
pub const NODE: &str = "/dev/viaduct-loopback";

/// An error of the adapter. The text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel module is not loaded.
    #[error(
        "{NODE} does not exist: load the kernel module (`modprobe viaduct_loopback`, docs/loopback.md says how to build it)"
    )]
    NoModule,
    /// The user may not open the device node.
    #[error(
        "{NODE}: permission denied; only root may create devices, and users to whom root gives this file"
    )]
    NotAllowed,
    /// The module has another version of the interface.
    #[error(
        "the loaded kernel module has another version of its interface than this program: build and load the one of this release"
    )]
    Version,
    /// An operation of the control file.
    #[error("{NODE}, {0}: {1}")]
    Control(&'static str, nix::errno::Errno),
    /// There is no such type of device.
    #[error("no type of device is called {0:?}; there are {1}")]
    NoKind(String, String),
    /// No device of this name.
    #[error("{0} is no loopback device; `viaduct loopback ls` lists them")]
    NoDevice(String),
    /// The device process could not be started.
    #[error("the device process cannot be started: {0}")]
    Start(io::Error),
    /// It ended, or had no socket in time.
    #[error("the device process {0}{1}")]
    NotServing(String, String),
    /// An operation of the vhost-user protocol.
    #[error("the device process does not do as vhost-user demands: {0}: {1}")]
    Protocol(&'static str, vhost::Error),
    /// What it offers is not enough.
    #[error("the device process cannot be used: {0}")]
    Unsuitable(String),
    /// It came back as another device.
    #[error("the restarted device process offers less than before ({0}): the device cannot go on")]
    Changed(String),
    /// It ends again and again.
    #[error("the device process has ended {0} times within a minute: the device is unplugged")]
    Unstable(usize),
    /// The kernel has given up the device.
    #[error("the kernel has given up the device; its log says why (`dmesg`)")]
    Dead,
    /// An operation of the system.
    #[error("{0}: {1}")]
    System(&'static str, io::Error),
}

/// A result of the adapter.
pub type Result<T = ()> = std::result::Result<T, Error>;

/// An error of the system, with the operation that failed.
pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Error {
    move |e| Error::System(what, e.into())
}
