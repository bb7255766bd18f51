// SPDX-License-Identifier: Apache-2.0
//! What a client has, and what its requests do. Nothing here is shared with other clients but the card. Everything is released when the
//! value is dropped: its slots stop, and changed pages of shared mappings are written to their files, as the kernel does for a process that
//! ends. What cannot be written is lost, and logged.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;
use viaduct::desc::{HUGE, PAGE, VA_END};
use viaduct::regs::VIA_APP_SIZE;
use viaduct::{Advice, Register, Schedule, Source};

use crate::account::{Account, Charge, Config};
use crate::book::Held;
use crate::open::{Open, Running, alone};
use crate::overview::Overview;
use crate::wire::{App, DeniedAccess, Kind, MapOptions, Refusal, Reply, Request};

/// Longest image of an app.
const MAX_IMAGE: u64 = 64 << 20;
/// Longest name of an app that is shown, in characters.
const MAX_NAME: usize = 100;
/// Longest wait in one request.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// Between two looks whether the client is still there.
const LOOK: Duration = Duration::from_millis(100);
/// Type of a file system that is served by a process (`statfs(2)`).
const FUSE: i64 = 0x6573_5546;

const EINVAL: i32 = Errno::INVAL.raw_os_error();

type Result<T = Reply> = std::result::Result<T, Refusal>;

/// The apps that are installed with a daemon.
pub trait Apps: Send + Sync {
    /// The image of an app.
    fn image(&self, name: &str) -> std::result::Result<Vec<u8>, Refusal>;

    /// Refuses a client's image that the card would refuse, without occupying the card's configuration port for its length.
    fn check(&self, image: &[u8]) -> std::result::Result<(), Refusal>;
}

/// A client's slots, and what it may have.
pub(crate) struct Tenant {
    /// Number of the client, for messages.
    client: u64,
    /// Its user and process.
    uid: u32,
    pid: i32,
    overview: Arc<Overview>,
    apps: Arc<dyn Apps>,
    allow_fuse: bool,
    /// Bytes of card memory for a slot.
    frames: u64,
    /// How each slot is scheduled beside those of others.
    schedule: Schedule,
    slot_count: Arc<Account>,
    mappings: Arc<Account>,
    descriptors: Arc<Account>,
    memory: Arc<Account>,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    last: u32,
    open: HashMap<u32, Arc<Open>>,
}

impl Tenant {
    /// For a client: its number, user and process.
    pub fn new(
        (client, uid, pid): (u64, u32, i32),
        overview: Arc<Overview>,
        apps: Arc<dyn Apps>,
        config: &Config,
    ) -> Self {
        let quotas = &config.quotas;
        let errno = |errno: Errno| errno.raw_os_error();
        Self {
            client,
            uid,
            pid,
            overview,
            apps,
            allow_fuse: config.allow_fuse,
            frames: quotas.card_memory / quotas.slots.max(1),
            schedule: config.schedules.get(&uid).copied().unwrap_or_default(),
            slot_count: Account::new("slots", quotas.slots, errno(Errno::DQUOT)),
            mappings: Account::new("mappings", quotas.mappings, errno(Errno::NOMEM)),
            descriptors: Account::new("open descriptors", quotas.descriptors, errno(Errno::MFILE)),
            memory: Account::new("bytes of host memory", quotas.host_memory, errno(Errno::NOMEM)),
            slots: Mutex::default(),
        }
    }

    /// Does what a request asks for. `gone` is true once nobody waits for the result any more.
    pub fn handle(&self, request: Request, file: Option<OwnedFd>, gone: &AtomicBool) -> Result {
        match request {
            Request::Hello { .. } => Err(Refusal::new(Kind::Protocol, EINVAL, "a second greeting".into())),
            Request::Open { app } => self.open(app, file),
            Request::Close { slot } => self.close(slot),
            Request::Reset { slot } => self.opened(slot)?.reset().map(|()| Reply::Done),
            Request::Check { slot } => done(self.slot(slot)?.slot.check()),
            Request::Status { slot } => Ok(Reply::Status(self.slot(slot)?.slot.status()?)),
            Request::ReadRegister { slot, offset } => {
                Ok(Reply::Number(self.slot(slot)?.slot.read_register(offset)?.into()))
            }
            Request::WriteRegister { slot, offset, value } => {
                done(self.slot(slot)?.slot.write_register(offset, value))
            }
            Request::ReadWide { slot, register } => {
                Ok(Reply::Bytes(self.slot(slot)?.slot.read_wide(checked(register)?)?))
            }
            Request::WriteWide { slot, register, bytes } => {
                done(self.slot(slot)?.slot.write_wide(checked(register)?, &bytes))
            }
            Request::Irqs { slot } => Ok(Reply::Number(self.slot(slot)?.slot.irqs())),
            Request::WaitIrq { slot, seen, millis } => self.wait(&*self.opened(slot)?, seen, millis, gone),
            Request::Map { slot, file: true, len, options } => match file {
                Some(file) => self.map(&*self.slot(slot)?, Some(file), len, options),
                None => Err(invalid("no descriptor came with the request")),
            },
            Request::Map { slot, file: false, len, options } => {
                self.map(&*self.slot(slot)?, None, len, options)
            }
            Request::Sync { slot, start, end, mode } => {
                let range = ordered(start, end)?;
                done(self.slot(slot)?.slot.sync(range, mode))
            }
            Request::Unmap { slot, start, end } => {
                let (range, open) = (ordered(start, end)?, self.slot(slot)?);
                open.book().cut(&range, &self.mappings)?;
                done(open.slot.unmap(range))
            }
            Request::Advise { slot, start, end, advice } => {
                let (range, opened) = (ordered(start, end)?, self.opened(slot)?);
                let open = opened.running()?;
                open.book().cut(&range, &self.mappings)?;
                let stop = || gone.load(Ordering::Relaxed) || !opened.is_open();
                done(match advice {
                    Advice::WillNeed => open.slot.load_ahead(range, stop),
                    advice => open.slot.advise(range, advice),
                })
            }
            Request::TakeDenied { slot } => {
                let denied = self.slot(slot)?.slot.take_denied();
                Ok(Reply::Denied(denied.into_iter().map(DeniedAccess::from).collect()))
            }
            Request::Manage { .. }
            | Request::Look
            | Request::Schedule { .. }
            | Request::Pause { .. }
            | Request::End { .. }
            | Request::Route { .. }
            | Request::Cut { .. } => {
                Err(invalid("this connection uses the card; another one, which begins with that, manages it"))
            }
        }
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self, number: u32) -> Result<Arc<Open>> {
        let none = || {
            Refusal::new(Kind::Card, Errno::BADF.raw_os_error(), format!("there is no open slot {number}"))
        };
        self.slots().open.get(&number).cloned().ok_or_else(none)
    }

    fn slot(&self, number: u32) -> Result<Arc<Running>> {
        self.opened(number)?.running()
    }

    fn open(&self, app: App, file: Option<OwnedFd>) -> Result {
        let charge = self.slot_count.charge(1)?;
        let (name, (image, _memory)) = match (app, file) {
            (App::Installed(name), None) => {
                let image = self.apps.image(&name)?;
                (name, (image, None))
            }
            (App::Image, Some(file)) => ("(an image)".to_owned(), self.read_image(file)?),
            _ => return Err(invalid("an image is a descriptor, an installed app a name")),
        };
        let card = &self.overview.card;
        let slot = card.any_slot().map_err(|error| {
            // Its text is for a program that has all slots itself.
            match error {
                viaduct::Error::Invalid(_) => Refusal::new(
                    Kind::Card,
                    Errno::BUSY.raw_os_error(),
                    format!("all {} slots are in use by clients; try again later", card.info().slots),
                ),
                error => error.into(),
            }
        })?;
        slot.set_frame_budget(self.frames);
        if self.schedule != Schedule::default() {
            slot.set_schedule(&self.schedule)?;
        }
        slot.set_host_budget(0); // it would not be charged to the tenant
        slot.load(&image)?;
        let index = slot.index() as u32;
        // All names fit into a response.
        let name = name.chars().take(MAX_NAME).collect();
        let who = (self.client, self.uid, self.pid);
        let open = Arc::new(Open::new(slot, who, name, self.schedule, charge));
        self.overview.enter(&open)?;
        let mut slots = self.slots();
        slots.last = slots.last.wrapping_add(1);
        let number = slots.last;
        slots.open.insert(number, open);
        tracing::info!(client = self.client, slot = index, "slot opened");
        Ok(Reply::Opened { slot: number, index })
    }

    fn read_image(&self, file: OwnedFd) -> Result<(Vec<u8>, Option<Charge>)> {
        let (file, _) = self.regular(file)?;
        let len = file.metadata().map_err(system)?.len();
        if len > MAX_IMAGE {
            return Err(invalid(&format!("an image of {len} bytes is longer than {MAX_IMAGE}")));
        }
        let charge = self.memory.charge(len)?;
        let mut image = vec![0; len as usize];
        file.read_exact_at(&mut image, 0).map_err(system)?;
        self.apps.check(&image)?;
        Ok((image, Some(charge)))
    }

    /// A regular file that is open for reading, and whether for writing, too.
    fn regular(&self, file: OwnedFd) -> Result<(File, OFlags)> {
        let flags = rustix::fs::fcntl_getfl(&file).map_err(errno)?;
        if flags.contains(OFlags::PATH) {
            return Err(Refusal::new(Kind::Card, Errno::BADF.raw_os_error(), "O_PATH opens no file".into()));
        }
        let file = File::from(file);
        if !file.metadata().map_err(system)?.is_file() {
            let text = "the descriptor is not of a regular file; open one".into();
            return Err(Refusal::new(Kind::Card, Errno::NODEV.raw_os_error(), text));
        }
        if flags.intersection(OFlags::RWMODE) == OFlags::WRONLY {
            let text = "the file is not open for reading; open it for that".into();
            return Err(Refusal::new(Kind::Card, Errno::ACCESS.raw_os_error(), text));
        }
        #[allow(clippy::unnecessary_cast)] // its type depends on the architecture
        let kind = rustix::fs::fstatfs(&file).map_err(errno)?.f_type as i64;
        if kind == FUSE && !self.allow_fuse {
            let text = "the file is on a FUSE file system, which can hold up the daemon; copy it to another one, or \
                        let the owner of the daemon allow it";
            return Err(Refusal::new(Kind::Access, Errno::ACCESS.raw_os_error(), text.into()));
        }
        Ok((file, flags))
    }

    /// Releases a slot. Errors of the mappings that are still there are those of their removal.
    fn close(&self, number: u32) -> Result {
        let open = self.opened(number)?;
        let closed = open.close();
        // Not one that is in use by other requests, which have to end first; one that was ended is told so once more.
        if closed.is_ok() || open.ended().is_some() {
            self.slots().open.remove(&number);
        }
        // Who manages the card may still be at it, for as long as a route or the end of one takes.
        let limit = 2 * self.overview.card.timeouts().control;
        let result = alone(closed?, limit).map_or(Ok(()), |running| running.slot.close());
        self.overview.changed();
        tracing::info!(client = self.client, slot = open.index, "slot closed");
        done(result)
    }

    fn wait(&self, open: &Open, seen: u64, millis: u64, gone: &AtomicBool) -> Result {
        let end = Instant::now() + MAX_WAIT.min(Duration::from_millis(millis));
        let running = open.running()?;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let irqs = running.slot.wait_irq(seen, left.min(LOOK));
            // Before the failure that may come of it.
            if let Some(refusal) = open.ended() {
                return Err(refusal);
            }
            if let Some(irqs) = irqs? {
                return Ok(Reply::Number(irqs));
            }
            if left.is_zero() || gone.load(Ordering::Relaxed) {
                return Ok(Reply::Later);
            }
        }
    }

    fn map(&self, open: &Running, file: Option<OwnedFd>, len: u64, options: MapOptions) -> Result {
        let mapping = self.mappings.charge(1)?;
        let descriptor = file.as_ref().map(|_| self.descriptors.charge(1)).transpose()?;
        // What is written to a private mapping stays in memory.
        let on_host = file.is_none() || options.on_host || options.private && options.prot.write;
        let memory = on_host.then(|| self.memory.charge(whole_pages(len, options))).transpose()?;
        let source = match file {
            None => Source::anonymous(len)?,
            Some(file) => {
                let (file, flags) = self.regular(file)?;
                let shared = options.prot.write && !options.private;
                if shared && flags.contains(OFlags::APPEND) {
                    return Err(invalid("the file is open with O_APPEND: nothing can be written in place"));
                }
                let inode = file.metadata().map_err(system)?.ino();
                let name = format!("client {}'s file (inode {inode})", self.client);
                Source::from_file(file, name, 0, flags.contains(OFlags::RDWR))?
            }
        };
        let held = Arc::new(Held { _mapping: mapping, _descriptor: descriptor, _memory: memory });
        if let crate::wire::At::Replacing(va) = options.at {
            // It may cut what is there.
            let end = va.saturating_add(whole_pages(len, options));
            open.book().cut(&(va..end), &self.mappings)?;
        }
        let mapped = open.slot.map(source.keeping(Arc::clone(&held) as _), len, options.local())?;
        let range = mapped.leave();
        open.book().enter(range.clone(), &held);
        Ok(Reply::Number(range.start))
    }
}

impl Drop for Tenant {
    /// Releases all slots here: who looks at the card or manages it may have them for a moment longer, and is not to do that.
    fn drop(&mut self) {
        let open: Vec<_> = self.slots().open.drain().collect();
        let limit = 2 * self.overview.card.timeouts().control;
        for (_, open) in open {
            drop(open.leave().and_then(|running| alone(running, limit)));
        }
        self.overview.changed();
    }
}

/// Bytes of the pages of a mapping, or more.
fn whole_pages(len: u64, options: MapOptions) -> u64 {
    let step = if options.huge.unwrap_or(len >= HUGE) { HUGE } else { PAGE };
    len.checked_next_multiple_of(step).unwrap_or(u64::MAX)
}

fn done(result: viaduct::Result<()>) -> Result {
    Ok(result.map(|()| Reply::Done)?)
}

fn invalid(text: &str) -> Refusal {
    Refusal::new(Kind::Card, EINVAL, text.into())
}

fn errno(errno: Errno) -> Refusal {
    system(errno.into())
}

fn system(error: std::io::Error) -> Refusal {
    let number = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
    Refusal::new(Kind::Card, number, format!("the descriptor cannot be used: {error}"))
}

fn ordered(start: u64, end: u64) -> Result<std::ops::Range<u64>> {
    if start < end && end <= VA_END {
        return Ok(start..end);
    }
    Err(invalid(&format!("{start:#x} to {end:#x} is no range of addresses below {VA_END:#x}")))
}

/// A register whose words are all in the app's window.
fn checked(register: Register) -> Result<Register> {
    let end = u64::from(register.offset) + u64::from(register.width.div_ceil(32)) * 4;
    if register.width > 0 && end <= VIA_APP_SIZE {
        return Ok(register);
    }
    Err(viaduct::Error::BadRegister { offset: register.offset }.into())
}
