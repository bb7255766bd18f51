// SPDX-License-Identifier: Apache-2.0
//! A card's management function through the kernel's VFIO, call by call.
//!
//! Needs a card that is bound to vfio-pci, with a kernel that can reset it:
//! `VIADUCT_VFIO=0000:01:00.0 cargo test -p viaduct-pci --test vfio -- --ignored`. `tests/test_vm_functions.py` runs it in
//! a virtual machine.

use std::sync::Arc;
use std::time::{Duration, Instant};
use viaduct_pci::vfio::{Function, PciAddress};
use viaduct_pci::{DmaAccess, HostMemory, PAGE_SIZE, PciError, PciFunction};

const ID: (u64, u32) = (0, 0x5649_4144);
const SCRATCH: u64 = 0x1c;
const PAGE: u64 = PAGE_SIZE as u64;
const IOVA: u64 = 1 << 32;

fn outside<T>(result: viaduct_pci::Result<T>) -> bool {
    matches!(result, Err(PciError::OutOfRange { .. }))
}

fn error<T>(result: viaduct_pci::Result<T>) -> String {
    result.err().map_or("no error".into(), |e| e.to_string())
}

#[test]
#[ignore = "needs a card bound to vfio-pci"]
fn a_card_bound_to_vfio_pci() {
    let address = std::env::var("VIADUCT_VFIO").expect("VIADUCT_VFIO names the card's function");
    let address: PciAddress = address.parse().unwrap();
    let card = Function::open(address).unwrap();
    assert_eq!(card.address(), address);
    assert!(error(Function::open(address)).contains("has /dev/vfio/"));

    registers(&card);
    configuration(&card);
    interrupts(&card);
    let left = memory(&card);
    reset(&card);

    drop(card);
    assert_eq!(Arc::strong_count(&left), 1, "a card that is closed holds memory");
    let again = Function::open(address).unwrap();
    assert_eq!(again.read32(0, ID.0).unwrap(), ID.1);
}

fn registers(card: &Function) {
    assert_eq!(card.read32(0, ID.0).unwrap(), ID.1);
    card.write32(0, SCRATCH, 0x1234_5678).unwrap();
    assert_eq!(card.read32(0, SCRATCH).unwrap(), 0x1234_5678);
    card.write(0, SCRATCH, &[1, 2, 3, 4]).unwrap();
    let mut bytes = [0; 7];
    card.read(0, SCRATCH - 3, &mut bytes).unwrap();
    assert_eq!(bytes[3..], [1, 2, 3, 4]);

    for (bar, size) in (0..).zip(card.info().bar_sizes) {
        for at in [size, size.wrapping_sub(3), size.wrapping_add(4), u64::MAX - 3, 2] {
            assert!(outside(card.read32(bar, at)), "BAR{bar} {at:#x}");
            assert!(outside(card.write32(bar, at, 0)), "BAR{bar} {at:#x}");
        }
        assert!(outside(card.read(bar, size.saturating_sub(1), &mut [0; 2])));
        assert!(outside(card.write(bar, size.saturating_sub(1), &[0; 2])));
    }
    assert!(outside(card.read32(6, 0)) && outside(card.read32(255, 0)));

    // From several threads.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..100).for_each(|_| assert_eq!(card.read32(0, ID.0).unwrap(), ID.1)));
        }
    });
}

fn configuration(card: &Function) {
    let mut id = [0; 8];
    card.config_read(0, &mut id).unwrap();
    assert_eq!(u16::from_le_bytes([id[0], id[1]]), card.info().vendor);
    assert_eq!(u16::from_le_bytes([id[2], id[3]]), card.info().device);
    assert_eq!(id[4] & 6, 6, "memory and bus master are on");
    for (offset, len) in [(0, 3), (0, 0), (4096, 1), (4095, 2), (u16::MAX, 8)] {
        assert!(outside(card.config_read(offset, &mut vec![0; len])), "{len} bytes at {offset}");
        assert!(outside(card.config_write(offset, &vec![0xff; len])), "{len} bytes at {offset}");
    }
    assert!(error(card.config_write(4, &[4, 0])).contains("switching off registers"));
    card.config_write(4, &[6, 0]).unwrap();
    assert_eq!(card.read32(0, ID.0).unwrap(), ID.1);
}

fn interrupts(card: &Function) {
    assert!((1..=64).contains(&card.info().vectors));
    let begun = Instant::now();
    let limit = Duration::from_millis(50);
    assert!(matches!(card.wait_irq(u64::MAX, limit), Err(PciError::Timeout(_))));
    assert!(begun.elapsed() >= limit);
    assert!(matches!(card.wait_irq(0, Duration::ZERO), Err(PciError::Timeout(_))));
}

/// Returns memory that is still mapped.
fn memory(card: &Function) -> Arc<HostMemory> {
    let new = |pages: usize| Arc::new(HostMemory::new(pages * PAGE_SIZE).unwrap());
    let (first, second) = (new(3), new(1));
    card.dma_map(IOVA, Arc::clone(&first), DmaAccess::ReadWrite).unwrap();
    card.dma_map(IOVA + 3 * PAGE, Arc::clone(&second), DmaAccess::Read).unwrap();

    let map = |iova| card.dma_map(iova, new(1), DmaAccess::Write);
    assert!(outside(map(IOVA + 0x8_0800)), "not a whole page");
    assert!(outside(map(u64::MAX - PAGE + 1)), "beyond all addresses");
    assert!(error(map(IOVA + PAGE)).contains("File exists"), "taken");
    assert!(error(map(0xfee0_0000)).contains("does not translate"), "where interrupts go");
    let file = first.fd().try_clone_to_owned().unwrap();
    let readable = std::fs::File::open(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file)));
    let readable = HostMemory::from_fd(Arc::new(readable.unwrap().into()), 0, PAGE_SIZE, DmaAccess::Read);
    let readable = Arc::new(readable.unwrap());
    let written = card.dma_map(IOVA + 9 * PAGE, Arc::clone(&readable), DmaAccess::Write);
    assert!(error(written).contains("Permission denied"));
    card.dma_map(IOVA + 9 * PAGE, readable, DmaAccess::Read).unwrap();

    assert!(outside(card.dma_unmap(IOVA + PAGE)), "the middle of a mapping");
    card.dma_unmap(IOVA + 3 * PAGE).unwrap();
    assert!(outside(card.dma_unmap(IOVA + 3 * PAGE)), "unmapped already");
    assert_eq!(Arc::strong_count(&second), 1, "unmapped memory is held");
    card.dma_map(IOVA + 3 * PAGE, second, DmaAccess::Write).unwrap();
    assert_eq!(Arc::strong_count(&first), 2);
    first
}

fn reset(card: &Function) {
    card.write32(0, SCRATCH, 7).unwrap();
    card.reset().unwrap();
    assert_eq!(card.read32(0, SCRATCH).unwrap(), 0, "the reset has not reached the card");
    let mut command = [0; 2];
    card.config_read(4, &mut command).unwrap();
    assert_eq!(command[0] & 6, 6, "memory and bus master are on after a reset");
    assert!(
        error(card.dma_map(IOVA, Arc::new(HostMemory::new(1).unwrap()), DmaAccess::Read)).contains("exists")
    );
}
