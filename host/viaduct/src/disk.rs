// SPDX-License-Identifier: Apache-2.0
//! A file or memory behind the card's block device.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::backing::Source;
use crate::desc::Prot;
use crate::error::{Error, Result};
use crate::function::{Attachment, Function, FunctionKind};
use crate::mapping::{MapOptions, Mapping};
use crate::slot::Slot;

/// Bytes of a sector.
pub const SECTOR: u64 = 512;
/// How often the thread that serves faults looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// A disk: a source mapped into a slot's address space, which the card's block device reads and writes. Pages are loaded
/// when they are first touched and written back when they are evicted, at [`Disk::sync`] and at [`Disk::close`].
///
/// Driver requests wait for page faults, which a thread of this value serves.
pub struct Disk {
    function: Function,
    slot: Arc<Slot>,
    mapping: Option<Mapping>,
    server: Option<Server>,
}

struct Server {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<()>>,
}

impl Disk {
    /// Puts `source` behind the block device `function` by way of `slot`, which may be empty. With `through`, the data of
    /// every request passes through the app in the slot on its way in and out.
    pub fn open(
        function: Function,
        slot: Arc<Slot>,
        source: Source,
        read_only: bool,
        through: bool,
    ) -> Result<Self> {
        if function.kind() != FunctionKind::Blk {
            return Err(Error::Invalid(format!("function {} is no block device", function.kind())));
        }
        let sectors = source.len() / SECTOR;
        if sectors == 0 {
            let name = source.name().display().to_string();
            return Err(Error::Invalid(format!("{name}: a disk has at least one sector of {SECTOR} bytes")));
        }
        let prot = if read_only { Prot::READ } else { Prot::READ_WRITE };
        slot.open_space()?;
        let mapping = slot.map(source, sectors * SECTOR, MapOptions::new(prot))?;
        let (index, base) = (slot.index(), mapping.va());
        let mut disk = Self { function, slot, mapping: Some(mapping), server: None };
        disk.server = Some(Server::start(&disk.slot)?);
        disk.function.attach(if through { Attachment::Slot(index) } else { Attachment::Nothing })?;
        disk.function.set_disk(index, base, sectors, read_only)?;
        disk.function.set_up(true)?;
        Ok(disk)
    }

    /// Writes everything the driver has written to the file; with `durable` also to its medium.
    pub fn sync(&self, durable: bool) -> Result<()> {
        self.mapping.as_ref().map_or(Ok(()), |mapping| mapping.sync(durable))
    }

    /// Takes the disk away from the driver and writes what has changed to the file.
    pub fn close(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let Some(mapping) = self.mapping.take() else { return Ok(()) };
        // What is on its way still needs its pages: the device goes first, then its faults, then the pages.
        let mut ended = self.function.set_up(false);
        ended = ended.and(self.function.set_disk(self.slot.index(), 0, 0, false));
        ended = ended.and(self.function.attach(Attachment::Nothing));
        let served = self.server.take().map_or(Ok(()), Server::stop);
        ended.and(served).and(mapping.unmap())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::error!(%error, "the disk could not be taken away cleanly");
        }
    }
}

impl Server {
    fn start(slot: &Arc<Slot>) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::Builder::new()
            .name("disk".into())
            .spawn({
                let (slot, stop) = (Arc::clone(slot), Arc::clone(&stop));
                move || {
                    // Whoever waits on a slot serves its faults.
                    while !stop.load(Ordering::Acquire) {
                        slot.wait_irq(slot.irqs(), LOOK)?;
                    }
                    Ok(())
                }
            })
            .map_err(|e| Error::Invalid(format!("no thread for the disk: {e}")))?;
        Ok(Self { stop, thread })
    }

    fn stop(self) -> Result<()> {
        self.stop.store(true, Ordering::Release);
        self.thread.join().unwrap_or_else(|_| Err(Error::Invalid("the disk's thread panicked".into())))
    }
}
