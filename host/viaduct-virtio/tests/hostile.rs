// SPDX-License-Identifier: Apache-2.0
//! Devices that violate rules, so that a trusting driver would wait for ever or write to wrong addresses.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::Model;
use viaduct_pci::{DmaAccess, FunctionInfo, HostMemory, PciError, PciFunction, Result};
use viaduct_virtio::net::Net;
use viaduct_virtio::{Arena, Device, VirtioError};

const IOVA: u64 = 0x7_0000_0000;
const GENERATION: u64 = 0x15;
const QUEUE_NOTIFY: u64 = 0x1e;
/// More reads than this count as endless.
const PATIENCE: u32 = 10_000;

/// A device that follows all rules except one.
struct Wrong {
    model: Arc<Model>,
    how: How,
    asked: AtomicU32,
}

#[derive(PartialEq)]
enum How {
    /// Its configuration changes between any two reads.
    Restless,
    /// An interrupt is always pending.
    Noisy,
    /// The notification address is outside of its capability.
    Astray,
}

impl Wrong {
    fn new(how: How) -> Arc<Self> {
        Arc::new(Self { model: Model::new(0), how, asked: AtomicU32::new(0) })
    }

    fn ask(&self) -> u32 {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        assert!(asked < PATIENCE, "endless reads");
        asked
    }
}

impl PciFunction for Wrong {
    fn info(&self) -> &FunctionInfo {
        self.model.info()
    }
    fn config_read(&self, offset: u16, buf: &mut [u8]) -> Result<()> {
        self.model.config_read(offset, buf)
    }
    fn config_write(&self, offset: u16, data: &[u8]) -> Result<()> {
        self.model.config_write(offset, data)
    }
    fn read(&self, bar: u8, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.model.read(bar, offset, buf)?;
        match (&self.how, offset) {
            (How::Restless, GENERATION) => buf[0] = self.ask() as u8,
            (How::Astray, QUEUE_NOTIFY) => buf.copy_from_slice(&[0xff, 0xff]),
            _ => {}
        }
        Ok(())
    }
    fn write(&self, bar: u8, offset: u64, data: &[u8]) -> Result<()> {
        self.model.write(bar, offset, data)
    }
    fn read32(&self, bar: u8, offset: u64) -> Result<u32> {
        self.model.read32(bar, offset)
    }
    fn write32(&self, bar: u8, offset: u64, value: u32) -> Result<()> {
        self.model.write32(bar, offset, value)
    }
    fn dma_map(&self, iova: u64, memory: Arc<HostMemory>, access: DmaAccess) -> Result<()> {
        self.model.dma_map(iova, memory, access)
    }
    fn dma_unmap(&self, iova: u64) -> Result<()> {
        self.model.dma_unmap(iova)
    }
    fn wait_irq(&self, mask: u64, timeout: Duration) -> Result<u64> {
        if self.how != How::Noisy {
            return self.model.wait_irq(mask, timeout);
        }
        self.ask();
        Ok(mask)
    }
    fn reset(&self) -> Result<()> {
        self.model.reset()
    }
}

#[test]
fn a_configuration_that_never_stays_the_same_is_given_up() {
    let device = Device::open(Wrong::new(How::Restless)).unwrap();
    let error = device.config(0, &mut [0; 6]).unwrap_err();
    assert!(error.to_string().contains("changes constantly"), "{error}");
}

#[test]
fn a_wait_ends_although_there_is_always_an_interrupt() {
    let mut net = Net::open(Wrong::new(How::Noisy), 0, 8, IOVA, 0).unwrap();
    let error = net.wait(Duration::ZERO).unwrap_err();
    assert!(matches!(error, VirtioError::Pci(PciError::Timeout(_))), "{error}");
}

#[test]
fn notifications_stay_inside_their_capability() {
    let function: Arc<dyn PciFunction> = Wrong::new(How::Astray);
    let mut device = Device::open(Arc::clone(&function)).unwrap();
    device.negotiate(0).unwrap();
    let mut arena = Arena::new(function, IOVA, 1 << 16).unwrap();
    let error = device.queue(&mut arena, 0, 8, None).err().expect("the queue is refused").to_string();
    assert!(error.contains("outside"), "{error}");
}
