// SPDX-License-Identifier: Apache-2.0
//! A network driver: frames out and in, one queue pair (VIRTIO 1.3, 5.1).

use std::sync::Arc;
use std::time::{Duration, Instant};

use viaduct_pci::{PciError, PciFunction};

use crate::{Arena, Buffer, Device, Queue, Result, VirtioError, feature};

/// Bytes before every frame: `struct virtio_net_hdr`.
pub const HEADER: usize = 12;
/// Longest frame, without FCS.
pub const FRAME: usize = 9216 + 18;
/// Memory for rings and buffers.
const MEMORY: usize = 16 << 20;

const MAC: u32 = 5;
const MERGE: u32 = 15;
const KIND: u16 = 1;
/// Buffers begin at the same distance from a multiple of this: the most that links carry in a packet.
const ALIGN: usize = 256;
const BUFFER: usize = HEADER + FRAME;

/// The driver of a network device.
pub struct Net {
    /// The device itself.
    pub device: Device,
    /// Receive queue.
    pub rx: Queue,
    /// Transmit queue.
    pub tx: Queue,
    arena: Arena,
    buffers: Vec<usize>,
    /// Offsets of transmit buffers that the device does not own.
    free: Vec<usize>,
    mac: [u8; 6],
}

impl Net {
    /// Starts the device with the features of `wanted` that it offers and `entries` in each queue. Memory is mapped for it
    /// at bus address `iova`. Buffers begin `offset` bytes behind a multiple of 256: with 0 the link does not split a small frame.
    pub fn open(
        function: Arc<dyn PciFunction>,
        wanted: u64,
        entries: u16,
        iova: u64,
        offset: usize,
    ) -> Result<Self> {
        let mut device = Device::open(Arc::clone(&function))?;
        if device.kind() != KIND {
            return Err(VirtioError::Device(format!("kind {} is not a network device", device.kind())));
        }
        device.negotiate(wanted | 1 << MAC | 1 << MERGE | 1 << feature::ACCESS_PLATFORM)?;
        let mut arena = Arena::new(function, iova, MEMORY)?;
        let mut rx = device.queue(&mut arena, 0, entries, Some(1))?;
        let mut tx = device.queue(&mut arena, 1, entries, Some(2))?;
        let mut mac = [0; 6];
        if device.has(MAC) {
            device.config(0, &mut mac)?;
        }
        device.start()?;
        let take = |arena: &mut Arena| Ok(arena.take(offset + BUFFER, ALIGN)? + offset);
        let mut buffers = Vec::new();
        for i in 0..u64::from(entries) {
            let at = take(&mut arena)?;
            rx.add(&[Buffer { addr: arena.bus(at), len: BUFFER as u32, writable: true }], i)?;
            buffers.push(at);
        }
        let free = (0..entries).map(|_| take(&mut arena)).collect::<Result<_>>()?;
        rx.kick()?;
        tx.disarm();
        Ok(Self { device, rx, tx, arena, buffers, free, mac })
    }

    /// The device's address.
    pub fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// Queues a frame; [`Queue::kick`] on `tx` sends what is queued. Returns whether there was space.
    pub fn queue(&mut self, frame: &[u8]) -> Result<bool> {
        if frame.is_empty() || frame.len() > FRAME {
            return Err(VirtioError::Argument(format!("a frame has 1 to {FRAME} bytes")));
        }
        while let Some(used) = self.tx.used()? {
            self.free.push(used.token as usize);
        }
        let Some(at) = self.free.pop() else { return Ok(false) };
        self.arena.memory().fill(at, HEADER, 0);
        self.arena.memory().write(at + HEADER, frame);
        let buffer = Buffer { addr: self.arena.bus(at), len: (HEADER + frame.len()) as u32, writable: false };
        if self.tx.add(&[buffer], at as u64)? {
            return Ok(true);
        }
        self.free.push(at);
        Ok(false)
    }

    /// A received frame. Its buffer is offered again at the next [`Queue::kick`] on `rx`.
    pub fn receive(&mut self) -> Result<Option<Vec<u8>>> {
        let Some(used) = self.rx.used()? else { return Ok(None) };
        let at = self.buffers[used.token as usize];
        let len = used.len as usize;
        if !(HEADER..=BUFFER).contains(&len) {
            return Err(VirtioError::Device(format!("a received frame has {len} bytes with its header")));
        }
        let mut frame = vec![0; len - HEADER];
        self.arena.memory().read(at + HEADER, &mut frame);
        self.rx
            .add(&[Buffer { addr: self.arena.bus(at), len: BUFFER as u32, writable: true }], used.token)?;
        Ok(Some(frame))
    }

    /// As [`Net::receive`], but waits for an interrupt if there is no frame yet.
    pub fn wait(&mut self, timeout: Duration) -> Result<Vec<u8>> {
        let end = Instant::now() + timeout;
        loop {
            if let Some(frame) = self.receive()? {
                return Ok(frame);
            }
            if self.rx.arm() {
                continue;
            }
            let vector = 1 << self.rx.vector().unwrap_or(0);
            let left = end.saturating_duration_since(Instant::now());
            match self.device.function().wait_irq(vector, left) {
                // A device with a permanent interrupt cannot exceed the time-out.
                Ok(_) if left.is_zero() => {
                    return self.receive()?.ok_or_else(|| PciError::Timeout(timeout).into());
                }
                Ok(_) => {}
                Err(error @ PciError::Timeout(_)) => {
                    self.device.check()?;
                    return Err(error.into());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
