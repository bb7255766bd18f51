// SPDX-License-Identifier: Apache-2.0
//! One device: creates it from what the device process offers, then carries out what the driver asks for, and replaces the
//! process when it ends. Requests and their completions do not pass through here: kernel and device process exchange them.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::SignalFd;
use tempfile::TempDir;
use vmm_sys_util::eventfd::{EFD_CLOEXEC, EFD_NONBLOCK, EventFd};

use crate::backend::{Backend, Memory, VERSION_1};
use crate::control::{BAD_RING, BOUND, Control, Create, DEAD, MAX_QUEUES, Rings, State};
use crate::error::{Error, Result, system};
use crate::kind::Kind;
use crate::process::Process;

/// As many ends of the device process within this time are too many.
const ENDS: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);

/// What the user wants.
#[derive(Clone, Debug)]
pub struct Options {
    /// Type of device.
    pub kind: Kind,
    /// Command of the device process.
    pub command: String,
    /// Queues, instead of those that the device process has.
    pub queues: Option<u32>,
    /// Descriptors of each queue, a power of two up to 1024.
    pub queue_size: u16,
    /// Bytes for buffers that are copied.
    pub bounce: u32,
    /// Bytes that can be mapped at a time; 0: all buffers are copied.
    pub window: u32,
    /// Requests with so many bytes in whole pages are mapped, not copied.
    pub map_min: u32,
}

impl Options {
    /// Those of a device without special wishes.
    pub fn new(kind: Kind, command: String) -> Options {
        Options {
            kind,
            command,
            queues: None,
            queue_size: 256,
            bounce: 4 << 20,
            window: 64 << 20,
            map_min: 16 << 10,
        }
    }
}

struct Queue {
    rings: Rings,
    kick: EventFd,
    call: EventFd,
}

/// A device and its process.
pub struct Device {
    options: Options,
    folder: TempDir,
    control: Control,
    memory: Memory,
    queues: Vec<Queue>,
    offered: u64,
    size: u16,
    /// Queues that the device process serves; none before the driver is ready.
    running: Option<Vec<u32>>,
    /// Resets and writes of the configuration space that have been carried out.
    done: (u32, u32),
    ends: VecDeque<Instant>,
    /// None only while it is replaced.
    serving: Option<Serving>,
}

/// A device process with its connection.
struct Serving {
    // Ends before the process does.
    backend: Backend,
    watch: OwnedFd,
    _process: Process,
}

impl Serving {
    fn start(command: &str, folder: &TempDir) -> Result<Serving> {
        let socket = folder.path().join("socket");
        let mut process = Process::start(command, &socket, &folder.path().join("log"))?;
        let watch = process.watch()?;
        let backend = Backend::new(process.connect(&socket)?)?;
        Ok(Serving { backend, watch, _process: process })
    }
}

/// Where the folder with socket and messages is.
fn runtime_folder() -> PathBuf {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match own {
        Some(folder) if folder.is_dir() => folder,
        _ if nix::unistd::geteuid().is_root() => PathBuf::from("/run"),
        _ => std::env::temp_dir(),
    }
}

impl Device {
    /// Starts the device process and plugs the device; its driver is bound in the background. If the control file has a device
    /// already, of an adapter that is no more, goes on with that one.
    pub fn start(options: Options, control: Control) -> Result<Device> {
        let folder = tempfile::Builder::new()
            .prefix("viaduct-loopback-")
            .tempdir_in(runtime_folder())
            .map_err(system("a folder for the socket"))?;
        let mut serving = Serving::start(&options.command, &folder)?;
        let is_new = control.state()?.queues == 0;
        if is_new {
            create(&options, &control, &mut serving.backend)?;
        }
        let state = control.state()?;
        let memory = Memory { fd: control.memory()?, base: state.base, size: state.size };
        let mut queues = Vec::new();
        for index in 0..state.queues {
            let event = || EventFd::new(EFD_NONBLOCK | EFD_CLOEXEC).map_err(system("an eventfd"));
            let (kick, call) = (event()?, event()?);
            let rings = control.queue(index, &kick, &call)?;
            queues.push(Queue { rings, kick, call });
        }
        let mut device = Device {
            options,
            folder,
            control,
            memory,
            queues,
            offered: state.offered,
            size: state.queue_size as u16,
            running: None,
            done: (0, 0),
            ends: VecDeque::new(),
            serving: Some(serving),
        };
        if is_new {
            device.control.plug()?;
        } else {
            device.fits()?;
            device.control.restart()?;
        }
        Ok(device)
    }

    /// Serves until a signal comes on `signals`. `bound` is called once with N of `virtioN`, when the driver's probe has ended.
    pub fn serve(mut self, signals: &SignalFd, bound: impl FnOnce(u32)) -> Result {
        let mut bound = Some(bound);
        loop {
            let state = self.control.state()?;
            if state.flags & DEAD != 0 {
                return Err(Error::Dead);
            }
            if state.flags & BAD_RING != 0 {
                tracing::warn!("the device process broke a ring");
                self.replace()?;
                continue;
            }
            if let Err(error) = self.follow(&state) {
                tracing::warn!("{error}");
                self.replace()?;
                continue;
            }
            if state.flags & BOUND != 0
                && let Some(tell) = bound.take()
            {
                tell(state.index);
            }
            let (signalled, ended, news) = {
                let Some(serving) = &self.serving else { return Err(Error::Dead) };
                let mut polled = [
                    PollFd::new(signals.as_fd(), PollFlags::POLLIN),
                    PollFd::new(serving.watch.as_fd(), PollFlags::POLLIN),
                    // Nothing comes unasked but the end.
                    PollFd::new(serving.backend.fd(), PollFlags::POLLIN),
                    PollFd::new(self.control.as_fd(), PollFlags::POLLIN),
                    PollFd::new(serving.backend.news_fd().unwrap_or(signals.as_fd()), PollFlags::POLLIN),
                ];
                match poll(&mut polled, PollTimeout::NONE) {
                    Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                    Err(e) => return Err(system("waiting")(e)),
                }
                let any = |p: &PollFd<'_>| p.any().unwrap_or(false);
                (any(&polled[0]), any(&polled[1]) || any(&polled[2]), any(&polled[4]))
            };
            if signalled {
                return Ok(());
            }
            if ended {
                tracing::warn!("the device process has ended, or closed its connection");
                self.replace()?;
            } else if news && let Err(error) = self.hear() {
                tracing::warn!("{error}");
                self.replace()?;
            }
        }
    }

    /// Passes on to the driver what the device process says of its configuration space.
    fn hear(&mut self) -> Result {
        let Some(Serving { backend, .. }) = &mut self.serving else { return Ok(()) };
        if backend.hear()? {
            let config = backend.config(self.options.kind.config)?;
            self.control.set_config(&config, true)?;
        }
        Ok(())
    }

    /// Does what the driver has asked for since.
    fn follow(&mut self, state: &State) -> Result {
        let Some(Serving { backend, .. }) = &mut self.serving else { return Ok(()) };
        if (state.resets != self.done.0 || !state.driver_ok())
            && let Some(queues) = self.running.take()
        {
            backend.stop(&queues)?;
        }
        if state.writes != self.done.1 {
            backend.set_config(&state.config)?;
            let config = backend.config(self.options.kind.config)?;
            self.control.set_config(&config, false)?;
        }
        if (state.resets, state.writes) != self.done {
            self.control.acknowledge(state)?;
            self.done = (state.resets, state.writes);
        }
        if state.driver_ok() && self.running.is_none() {
            let used: Vec<u32> = (0..self.queues.len() as u32).filter(|queue| state.uses(*queue)).collect();
            let queues = used.iter().map(|index| {
                let queue = &self.queues[*index as usize];
                (*index, queue.rings, &queue.kick, &queue.call)
            });
            backend.start(state.features, &self.memory, self.size, queues)?;
            self.running = Some(used);
        }
        Ok(())
    }

    /// Ends the device process, and starts another one, with what was in flight.
    fn replace(&mut self) -> Result {
        loop {
            let now = Instant::now();
            self.ends.push_back(now);
            while self.ends.front().is_some_and(|end| now - *end > WINDOW) {
                self.ends.pop_front();
            }
            if self.ends.len() > ENDS {
                return Err(Error::Unstable(self.ends.len()));
            }
            // What the driver asks for meanwhile is done with the new one.
            match self.restarted() {
                Err(error @ (Error::Changed(_) | Error::Control(..))) => return Err(error),
                Err(error) => tracing::warn!("{error}"),
                Ok(()) => return Ok(()),
            }
        }
    }

    fn restarted(&mut self) -> Result {
        // The old one must not touch the rings any more.
        self.serving = None;
        self.running = None;
        self.control.restart()?;
        self.serving = Some(Serving::start(&self.options.command, &self.folder)?);
        self.fits()
    }

    /// Whether the device process is one for this device; the driver gets its configuration space.
    fn fits(&mut self) -> Result {
        let Some(Serving { backend, .. }) = &mut self.serving else { return Ok(()) };
        let lost = self.offered & !backend.features;
        if lost != 0 {
            return Err(Error::Changed(format!("feature bits {lost:#x}")));
        }
        let config = backend.config(self.options.kind.config)?;
        self.control.set_config(&config, true)
    }
}

/// Creates the device in the kernel, as the device process describes it.
fn create(options: &Options, control: &Control, backend: &mut Backend) -> Result {
    let offered = backend.features & !options.kind.withheld;
    if offered & VERSION_1 == 0 {
        return Err(Error::Unsuitable("it does not offer VIRTIO_F_VERSION_1".into()));
    }
    let config = backend.config(options.kind.config)?;
    let count = options.queues.unwrap_or_else(|| options.kind.queues_of(offered, &config));
    let most = backend.max_queues.unwrap_or(MAX_QUEUES.into()).min(MAX_QUEUES.into());
    if count == 0 || u64::from(count) > most {
        return Err(Error::Unsuitable(format!("{count} queues, it can have 1 to {most}; see --queues")));
    }
    control.create(&Create {
        kind: options.kind.id,
        features: offered,
        queues: count,
        queue_size: options.queue_size.into(),
        bounce: options.bounce,
        window: options.window,
        map_min: options.map_min,
        config: &config,
    })
}
