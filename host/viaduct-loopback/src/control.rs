// SPDX-License-Identifier: Apache-2.0
//! The control file of the kernel module: kernel/loopback/viaduct_loopback.h in Rust.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::errno::Errno;

use crate::error::{Error, NODE, Result, system};

const VERSION: u32 = 1;
/// Bytes of a configuration space, at most.
pub const CONFIG_SIZE: usize = 256;
/// Queues of a device, at most.
pub const MAX_QUEUES: u32 = 128;
const QUEUE_WORDS: usize = MAX_QUEUES as usize / 64;

/// The device process broke a ring.
pub const BAD_RING: u32 = 1 << 0;
/// The kernel has given up the device.
pub const DEAD: u32 = 1 << 1;
/// The driver's probe has ended.
pub const BOUND: u32 = 1 << 2;

/// Bit of the device's status: its driver is ready.
pub const DRIVER_OK: u32 = 4;

#[repr(C)]
struct RawCreate {
    version: u32,
    kind: u32,
    features: u64,
    queues: u32,
    queue_size: u32,
    bounce: u32,
    window: u32,
    map_min: u32,
    config_size: u32,
    config: [u8; CONFIG_SIZE],
    base: u64,
    size: u64,
}

#[repr(C)]
struct RawQueue {
    index: u32,
    kick: i32,
    call: i32,
    reserved: u32,
    desc: u64,
    avail: u64,
    used: u64,
}

#[repr(C)]
struct RawState {
    status: u32,
    flags: u32,
    features: u64,
    used: [u64; QUEUE_WORDS],
    offered: u64,
    base: u64,
    size: u64,
    queues: u32,
    queue_size: u32,
    resets: u32,
    writes: u32,
    index: u32,
    config_size: u32,
    config: [u8; CONFIG_SIZE],
}

#[repr(C)]
struct RawAck {
    resets: u32,
    writes: u32,
}

#[repr(C)]
struct RawConfig {
    size: u32,
    notify: u32,
    data: [u8; CONFIG_SIZE],
}

mod raw {
    use super::{RawAck, RawConfig, RawCreate, RawQueue, RawState};
    nix::ioctl_readwrite!(create, b'V', 0xa0, RawCreate);
    nix::ioctl_readwrite!(queue, b'V', 0xa1, RawQueue);
    nix::ioctl_none!(memory, b'V', 0xa2);
    nix::ioctl_none!(plug, b'V', 0xa3);
    nix::ioctl_read!(state, b'V', 0xa4, RawState);
    nix::ioctl_write_ptr!(ack, b'V', 0xa5, RawAck);
    nix::ioctl_write_ptr!(config, b'V', 0xa6, RawConfig);
    nix::ioctl_none!(restart, b'V', 0xa7);
}

/// What a device is.
pub struct Create<'a> {
    /// Device ID.
    pub kind: u32,
    /// Features that the device process offers.
    pub features: u64,
    /// Queues.
    pub queues: u32,
    /// Descriptors of each queue.
    pub queue_size: u32,
    /// Bytes for buffers that are copied.
    pub bounce: u32,
    /// Bytes that can be mapped at a time.
    pub window: u32,
    /// Requests with so many bytes in whole pages are mapped.
    pub map_min: u32,
    /// Configuration space.
    pub config: &'a [u8],
}

/// Addresses of a queue's rings, as the device process sees them.
#[derive(Clone, Copy, Debug)]
pub struct Rings {
    /// Descriptor table.
    pub desc: u64,
    /// Available ring.
    pub avail: u64,
    /// Used ring.
    pub used: u64,
}

/// What the driver has done.
#[derive(Clone, Debug)]
pub struct State {
    /// Status of the device.
    pub status: u32,
    /// [`BAD_RING`], [`DEAD`], [`BOUND`].
    pub flags: u32,
    /// Features for the device process.
    pub features: u64,
    /// Resets until now.
    pub resets: u32,
    /// Writes of the configuration space until now.
    pub writes: u32,
    /// N of `virtioN`, if [`BOUND`].
    pub index: u32,
    /// Configuration space.
    pub config: Vec<u8>,
    /// Features that the device was created with; this and the next four are 0 before.
    pub offered: u64,
    /// Start of the device's memory, as a device address.
    pub base: u64,
    /// Bytes of it.
    pub size: u64,
    /// Number of queues.
    pub queues: u32,
    /// Descriptors of each.
    pub queue_size: u32,
    used: [u64; QUEUE_WORDS],
}

impl State {
    /// Whether the driver uses a queue.
    pub fn uses(&self, queue: u32) -> bool {
        self.used[queue as usize / 64] >> (queue % 64) & 1 != 0
    }

    /// Whether the driver is ready.
    pub fn driver_ok(&self) -> bool {
        self.status & DRIVER_OK != 0
    }
}

/// The open control file: one device, which is unplugged when this is dropped.
pub struct Control(File);

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn failed(what: &'static str) -> impl FnOnce(Errno) -> Error {
    move |errno| match errno {
        Errno::EPROTO => Error::Version,
        errno => Error::Control(what, errno),
    }
}

impl Control {
    /// Opens the control file.
    pub fn open() -> Result<Control> {
        match OpenOptions::new().read(true).write(true).open(NODE) {
            Ok(file) => Ok(Control(file)),
            Err(e) if e.kind() == ErrorKind::NotFound => Err(Error::NoModule),
            Err(e) if e.kind() == ErrorKind::PermissionDenied => Err(Error::NotAllowed),
            Err(e) => Err(system(NODE)(e)),
        }
    }

    /// The control file that another process has opened.
    pub fn inherit(file: OwnedFd) -> Control {
        Control(file.into())
    }

    /// For a child, which inherits it.
    pub fn into_file(self) -> OwnedFd {
        self.0.into()
    }

    /// Creates the device.
    pub fn create(&self, create: &Create<'_>) -> Result {
        let mut raw = RawCreate {
            version: VERSION,
            kind: create.kind,
            features: create.features,
            queues: create.queues,
            queue_size: create.queue_size,
            bounce: create.bounce,
            window: create.window,
            map_min: create.map_min,
            config_size: create.config.len() as u32,
            config: [0; CONFIG_SIZE],
            base: 0,
            size: 0,
        };
        raw.config[..create.config.len()].copy_from_slice(create.config);
        // SAFETY: the structure is the kernel's, and lives during the call.
        unsafe { raw::create(self.0.as_raw_fd(), &mut raw) }.map_err(failed("creating a device"))?;
        Ok(())
    }

    /// Sets the eventfds of a queue; returns where its rings are.
    pub fn queue(&self, index: u32, kick: &impl AsRawFd, call: &impl AsRawFd) -> Result<Rings> {
        let mut raw = RawQueue {
            index,
            kick: kick.as_raw_fd(),
            call: call.as_raw_fd(),
            reserved: 0,
            desc: 0,
            avail: 0,
            used: 0,
        };
        // SAFETY: the structure is the kernel's, and lives during the call.
        unsafe { raw::queue(self.0.as_raw_fd(), &mut raw) }.map_err(failed("setting up a queue"))?;
        Ok(Rings { desc: raw.desc, avail: raw.avail, used: raw.used })
    }

    /// The descriptor that the device process maps.
    pub fn memory(&self) -> Result<OwnedFd> {
        // SAFETY: no argument.
        let fd = unsafe { raw::memory(self.0.as_raw_fd()) }.map_err(failed("the device's memory"))?;
        // SAFETY: the kernel has just made it, and nobody else has it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Lets the kernel bind its driver, in the background.
    pub fn plug(&self) -> Result {
        // SAFETY: no argument.
        unsafe { raw::plug(self.0.as_raw_fd()) }.map_err(failed("plugging the device"))?;
        Ok(())
    }

    /// What the driver has done.
    pub fn state(&self) -> Result<State> {
        let mut raw = RawState {
            status: 0,
            flags: 0,
            features: 0,
            used: [0; QUEUE_WORDS],
            offered: 0,
            base: 0,
            size: 0,
            queues: 0,
            queue_size: 0,
            resets: 0,
            writes: 0,
            index: 0,
            config_size: 0,
            config: [0; CONFIG_SIZE],
        };
        // SAFETY: the structure is the kernel's, and lives during the call.
        unsafe { raw::state(self.0.as_raw_fd(), &mut raw) }.map_err(failed("the device's state"))?;
        Ok(State {
            status: raw.status,
            flags: raw.flags,
            features: raw.features,
            resets: raw.resets,
            writes: raw.writes,
            index: raw.index,
            config: raw.config[..(raw.config_size as usize).min(CONFIG_SIZE)].to_vec(),
            offered: raw.offered,
            base: raw.base,
            size: raw.size,
            queues: raw.queues,
            queue_size: raw.queue_size,
            used: raw.used,
        })
    }

    /// Says that resets and writes up to those of a state have been carried out.
    pub fn acknowledge(&self, state: &State) -> Result {
        let raw = RawAck { resets: state.resets, writes: state.writes };
        // SAFETY: the structure is the kernel's, and lives during the call.
        unsafe { raw::ack(self.0.as_raw_fd(), &raw) }.map_err(failed("an acknowledgement"))?;
        Ok(())
    }

    /// Replaces the configuration space, which keeps its size; `notify`: the driver is told.
    pub fn set_config(&self, config: &[u8], notify: bool) -> Result {
        let mut raw = RawConfig { size: config.len() as u32, notify: notify.into(), data: [0; CONFIG_SIZE] };
        raw.data[..config.len()].copy_from_slice(config);
        // SAFETY: the structure is the kernel's, and lives during the call.
        unsafe { raw::config(self.0.as_raw_fd(), &raw) }.map_err(failed("the configuration space"))?;
        Ok(())
    }

    /// Empties the rings for another device process, and posts what was in flight again.
    pub fn restart(&self) -> Result {
        // SAFETY: no argument.
        unsafe { raw::restart(self.0.as_raw_fd()) }.map_err(failed("starting the rings anew"))?;
        Ok(())
    }
}
