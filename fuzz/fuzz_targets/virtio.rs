// SPDX-License-Identifier: Apache-2.0
//! A hostile virtio device under the driver in user space: capabilities, registers, split and packed rings.
//!
//! The driver uses no register outside of the windows that it found inside a BAR; a chain that it takes from the used
//! ring is one that the device owns, and is returned once; a received frame has a length that fits its buffer; nothing
//! blocks for ever, whatever the device does.
#![no_main]

use libfuzzer_sys::arbitrary::{Result as Taken, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use viaduct_pci::{DmaAccess, FunctionInfo, HostMemory, PciError, PciFunction, Result};
use viaduct_virtio::net::{FRAME, Net};
use viaduct_virtio::{Arena, Buffer, Device, Queue, VirtioError};

const BAR: usize = 0x4000;
const IOVA: u64 = 1 << 32;
const MEMORY: usize = 1 << 18;
/// Entries of a queue.
const SIZE: u16 = 8;

// Registers of a conforming device.
const COMMON: usize = 0;
const NOTIFY: usize = 0x3000;
const COUNTS: usize = 0x1000;

const FEATURE_SELECT: usize = 0x00;
const FEATURES: usize = 0x04;
const STATUS: usize = 0x14;
const GENERATION: usize = 0x15;
const QUEUE_RESET: usize = 0x3a;
const QUEUE_SIZE: usize = 0x18;
const QUEUE_AREAS: usize = 0x20;

/// How this device violates the specification.
#[derive(Clone, Copy)]
struct Quirks(u8);

impl Quirks {
    /// The configuration is always changing.
    fn restless(self) -> bool {
        self.0 & 1 != 0
    }
    /// An interrupt is always pending.
    fn noisy(self) -> bool {
        self.0 & 2 != 0
    }
    /// A reset never ends.
    fn stuck(self) -> bool {
        self.0 & 4 != 0
    }
}

struct Hostile {
    info: FunctionInfo,
    offered: u64,
    quirks: Quirks,
    state: Mutex<State>,
}

struct State {
    config: Vec<u8>,
    bar: Vec<u8>,
    maps: Vec<(u64, Arc<HostMemory>)>,
    charged: u32,
    /// Used index of a split ring; position and wrap counter in a packed one.
    used: u16,
    wrap: bool,
}

impl Hostile {
    /// A conforming device, of which a few bytes are then changed.
    fn take(u: &mut Unstructured) -> Taken<Arc<Self>> {
        let (offered, quirks): (u64, u8) = u.arbitrary()?;
        let mut config = vec![0; 4096];
        config[0x34] = 0x40;
        // Type, offset and length of each capability.
        let windows =
            [(1, COMMON, 0x40), (2, NOTIFY, 0x100), (3, 0x800, 4), (4, 0x900, 0x40), (9, COUNTS, 384)];
        for (i, (kind, offset, len)) in windows.into_iter().enumerate() {
            let at = 0x40 + 0x20 * i;
            let next = if i < 4 { at as u8 + 0x20 } else { 0 };
            config[at..at + 4].copy_from_slice(&[9, next, 20, kind]);
            if kind == 9 {
                config[at + 4..at + 8].copy_from_slice(&[0x09, 0x12, 0, 1]);
            }
            config[at + 8..at + 12].copy_from_slice(&(offset as u32).to_le_bytes());
            config[at + 12..at + 16].copy_from_slice(&(len as u32).to_le_bytes());
            config[at + 16] = 4;
        }
        let mut bar = vec![0; BAR];
        bar[QUEUE_SIZE..QUEUE_SIZE + 2].copy_from_slice(&64u16.to_le_bytes());
        bar[COUNTS..COUNTS + 4].copy_from_slice(&0x5651_0001u32.to_le_bytes());
        for _ in 0..u.arbitrary::<u8>()? & 15 {
            let (at, value): (u16, u8) = u.arbitrary()?;
            match usize::from(at) {
                at if at & 0x8000 == 0 => config[at & 0xff] = value,
                at => bar[at & (BAR - 1)] = value,
            }
        }
        let bar_sizes = [BAR as u64, 0, 0, 0, 0, 0];
        let info = FunctionInfo { vendor: 0x1af4, device: 0x1041, bar_sizes, vectors: 3 };
        let state = State { config, bar, maps: Vec::new(), charged: 0, used: 0, wrap: true };
        Ok(Arc::new(Self { info, offered, quirks: Quirks(quirks), state: Mutex::new(state) }))
    }

    /// Writes `data` to mapped memory, if it is inside.
    fn put(&self, addr: u64, data: &[u8]) {
        let state = self.state.lock().unwrap();
        for (base, memory) in &state.maps {
            let offset = addr.checked_sub(*base).map_or(usize::MAX, |offset| offset as usize);
            if offset.checked_add(data.len()).is_some_and(|end| end <= memory.len()) {
                memory.write(offset, data);
            }
        }
    }

    /// Addresses that the driver gave for the queue it set up last: descriptors, driver's area, device's area.
    fn areas(&self) -> [u64; 3] {
        let state = self.state.lock().unwrap();
        [0, 8, 16].map(|at| {
            u64::from_le_bytes(state.bar[QUEUE_AREAS + at..QUEUE_AREAS + at + 8].try_into().unwrap())
        })
    }

    /// Bytes anywhere in an area.
    fn scribble(&self, u: &mut Unstructured) -> Taken<()> {
        let (area, offset, data, len): (u8, u16, [u8; 8], u8) = u.arbitrary()?;
        let area = self.areas()[usize::from(area % 3)];
        self.put(area + u64::from(offset & 0x3ff), &data[..usize::from(len & 7) + 1]);
        Ok(())
    }

    /// A used entry at the right position.
    fn give_back(&self, u: &mut Unstructured, packed: bool) -> Taken<()> {
        let (id, len, step, wild): (u8, u32, u8, u8) = u.arbitrary()?;
        let id = if wild & 1 != 0 { u.arbitrary()? } else { u32::from(id & 15) };
        let areas = self.areas();
        let mut state = self.state.lock().unwrap();
        let (used, wrap) = (state.used, state.wrap);
        let step = if wild & 2 != 0 { u16::from(step) } else { 1 + u16::from(step & 3) };
        if packed {
            state.used += step & (SIZE - 1);
            if state.used >= SIZE {
                state.used -= SIZE;
                state.wrap = !state.wrap;
            }
        } else {
            state.used = used.wrapping_add(step);
        }
        let index = state.used;
        drop(state);
        if packed {
            let flags = if wild & 4 != 0 { u.arbitrary()? } else { if wrap { 0x8080u16 } else { 0 } };
            let at = areas[0] + 16 * u64::from(used);
            self.put(at + 8, &len.to_le_bytes());
            self.put(at + 12, &(id as u16).to_le_bytes());
            self.put(at + 14, &flags.to_le_bytes());
        } else {
            let at = areas[2] + 4 + 8 * u64::from(used % SIZE);
            self.put(at, &id.to_le_bytes());
            self.put(at + 4, &len.to_le_bytes());
            self.put(areas[2] + 2, &index.to_le_bytes());
        }
        Ok(())
    }
}

/// The bytes of the BAR that an access covers.
fn place(bar: u8, offset: u64, len: usize) -> std::ops::Range<usize> {
    let end = offset.checked_add(len as u64).expect("an access does not wrap");
    assert!(bar == 0 && end <= BAR as u64, "{len} bytes at {offset:#x} of BAR{bar}");
    offset as usize..end as usize
}

impl PciFunction for Hostile {
    fn info(&self) -> &FunctionInfo {
        &self.info
    }

    fn config_read(&self, offset: u16, buf: &mut [u8]) -> Result<()> {
        buf.copy_from_slice(&self.state.lock().unwrap().config[usize::from(offset)..][..buf.len()]);
        Ok(())
    }

    fn config_write(&self, offset: u16, data: &[u8]) -> Result<()> {
        self.state.lock().unwrap().config[usize::from(offset)..][..data.len()].copy_from_slice(data);
        Ok(())
    }

    fn read(&self, bar: u8, offset: u64, buf: &mut [u8]) -> Result<()> {
        let range = place(bar, offset, buf.len());
        let mut state = self.state.lock().unwrap();
        if state.charged > 50 {
            return Err(PciError::Gone("taken out".into()));
        }
        if self.quirks.restless() {
            state.bar[GENERATION] = state.bar[GENERATION].wrapping_add(1);
        }
        if state.bar[FEATURE_SELECT] < 2 {
            let half = (self.offered >> (32 * state.bar[FEATURE_SELECT])) as u32;
            state.bar[FEATURES..FEATURES + 4].copy_from_slice(&half.to_le_bytes());
        }
        buf.copy_from_slice(&state.bar[range]);
        Ok(())
    }

    fn write(&self, bar: u8, offset: u64, data: &[u8]) -> Result<()> {
        let range = place(bar, offset, data.len());
        let mut state = self.state.lock().unwrap();
        state.bar[range].copy_from_slice(data);
        if self.quirks.stuck() {
            state.bar[STATUS] |= 1;
        } else {
            state.bar[QUEUE_RESET] = 0;
        }
        Ok(())
    }

    fn read32(&self, bar: u8, offset: u64) -> Result<u32> {
        let mut word = [0; 4];
        self.read(bar, offset, &mut word)?;
        Ok(u32::from_le_bytes(word))
    }

    fn write32(&self, bar: u8, offset: u64, value: u32) -> Result<()> {
        self.write(bar, offset, &value.to_le_bytes())
    }

    fn dma_map(&self, iova: u64, memory: Arc<HostMemory>, _: DmaAccess) -> Result<()> {
        self.state.lock().unwrap().maps.push((iova, memory));
        Ok(())
    }

    fn dma_unmap(&self, iova: u64) -> Result<()> {
        self.state.lock().unwrap().maps.retain(|(at, _)| *at != iova);
        Ok(())
    }

    fn wait_irq(&self, mask: u64, timeout: Duration) -> Result<u64> {
        if self.quirks.noisy() { Ok(mask) } else { Err(PciError::Timeout(timeout)) }
    }

    fn reset(&self) -> Result<()> {
        Ok(())
    }

    /// Polling lets time pass: the card is lost before that takes long.
    fn charge(&self, _: Duration) {
        self.state.lock().unwrap().charged += 1;
    }
}

type Outcome = std::result::Result<(), Ended>;

/// Why a run ended: the input ended, or the driver has given up the device.
enum Ended {
    Input,
    Device(VirtioError),
}

impl From<libfuzzer_sys::arbitrary::Error> for Ended {
    fn from(_: libfuzzer_sys::arbitrary::Error) -> Self {
        Self::Input
    }
}

impl From<VirtioError> for Ended {
    fn from(error: VirtioError) -> Self {
        Self::Device(error)
    }
}

/// Chains that the driver has offered and not received back.
#[derive(Default)]
struct Offered {
    next: u64,
    tokens: HashSet<u64>,
}

/// Takes all used chains. An error concerns one entry: others may follow it.
fn take_back(queue: &mut Queue, offered: &mut Offered) {
    let mut errors = 0;
    while errors < 16 {
        match queue.used() {
            Ok(Some(used)) => {
                assert!(offered.tokens.remove(&used.token), "chain {} was not offered", used.token);
            }
            Ok(None) => return,
            Err(VirtioError::BadUsed { .. }) => errors += 1,
            Err(error) => panic!("{error}"),
        }
        assert_eq!(queue.open(), offered.tokens.len());
    }
}

fn drive_queue(u: &mut Unstructured, hostile: &Arc<Hostile>) -> Outcome {
    let function = Arc::clone(hostile) as Arc<dyn PciFunction>;
    let mut device = Device::open(Arc::clone(&function))?;
    let options = device.negotiate(u64::MAX).map(|_| device.options())?;
    let mut arena = Arena::new(function, IOVA, MEMORY)?;
    let mut queue = device.queue(&mut arena, 0, SIZE, Some(1))?;
    device.start()?;
    let buffer = arena.take(256, 64)?;
    let mut offered = Offered::default();
    for _ in 0..256 {
        if u.is_empty() {
            break;
        }
        match u.arbitrary::<u8>()? & 15 {
            0..=3 => {
                let (count, writable): (u8, u8) = u.arbitrary()?;
                let count = usize::from(count % (SIZE as u8 + 2));
                let chain: Vec<_> = (0..count)
                    .map(|i| Buffer {
                        addr: arena.bus(buffer),
                        len: 16,
                        writable: i >= usize::from(writable & 7),
                    })
                    .collect();
                if matches!(queue.add(&chain, offered.next), Ok(true)) {
                    offered.tokens.insert(offered.next);
                    offered.next += 1;
                    assert!(offered.tokens.len() <= usize::from(SIZE));
                }
            }
            4 => drop(queue.kick()?),
            5 | 6 => hostile.scribble(u)?,
            7..=10 => hostile.give_back(u, options.packed)?,
            11 => drop(queue.arm()),
            12 => queue.disarm(),
            13 => {
                let (offset, len): (u8, u8) = u.arbitrary()?;
                // More than its length is an error of the caller.
                let _ = device.config(offset.into(), &mut vec![0; usize::from(len & 15)]);
                let _ = device.set_config(offset.into(), &[1; 2]);
                let _ = device.interrupt_status()?;
            }
            14 => {
                if let Ok(counts) = device.statistics() {
                    let _ = (counts.reads(), counts.writes(), counts.user.mean());
                    device.clear_statistics()?;
                }
            }
            _ => take_back(&mut queue, &mut offered),
        }
        assert_eq!(queue.open(), offered.tokens.len());
    }
    take_back(&mut queue, &mut offered);
    Ok(device.reset_queue(queue)?)
}

fn drive_net(u: &mut Unstructured, hostile: &Arc<Hostile>) -> Outcome {
    let offset = usize::from(u.arbitrary::<u8>()?);
    let mut net = Net::open(Arc::clone(hostile) as Arc<dyn PciFunction>, u64::MAX, SIZE, IOVA, offset)?;
    let packed = net.device.options().packed;
    for _ in 0..256 {
        if u.is_empty() {
            break;
        }
        let frame = match u.arbitrary::<u8>()? & 7 {
            0 => {
                net.queue(&[0x55; 64])?;
                net.tx.kick()?;
                None
            }
            1 => Some(net.wait(Duration::ZERO)?),
            2 => {
                net.rx.kick()?;
                None
            }
            3 => {
                hostile.scribble(u)?;
                None
            }
            4 | 5 => {
                hostile.give_back(u, packed)?;
                None
            }
            _ => net.receive()?,
        };
        assert!(frame.is_none_or(|frame| frame.len() <= FRAME));
    }
    Ok(())
}

fuzz_target!(|bytes: &[u8]| {
    let u = &mut Unstructured::new(bytes);
    let run = |u: &mut Unstructured| {
        let hostile = Hostile::take(u)?;
        match u.arbitrary::<u8>()? & 3 {
            0 => drive_net(u, &hostile),
            _ => drive_queue(u, &hostile),
        }
    };
    if let Err(Ended::Device(error)) = run(u) {
        assert!(!error.to_string().is_empty());
    }
});
