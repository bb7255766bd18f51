// SPDX-License-Identifier: Apache-2.0
//! Client and server against another implementation of the protocol, the crate `vfio_user` of rust-vmm.

mod common;

use common::{BAR0_SIZE, Copier, VECTORS, VENDOR, copy_through, eventually, socket};
use std::fs::File;
use std::io::Error;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_INFO_EVENTFD, VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_IRQ_SET_DATA_EVENTFD,
    VFIO_REGION_INFO_FLAG_READ, VFIO_REGION_INFO_FLAG_WRITE, vfio_region_info,
};
use vfio_user::{DmaMapFlags, DmaUnmapFlags, IrqInfo, ServerBackend, ServerRegion};
use viaduct_pci::vfio_user::{Client, Server};
use viaduct_pci::{DmaAccess, HostMemory, PciFunction};
use vmm_sys_util::eventfd::EventFd;

#[test]
fn their_client_drives_our_server() {
    let (_dir, path) = socket();
    let function = Copier::new();
    let _server = Server::bind(&path, function.clone()).unwrap();
    let mut client = ::vfio_user::Client::new(&path).unwrap();

    let size = |index| client.region(index).map(|r| r.size);
    assert_eq!((size(0), size(1), size(7), size(8)), (Some(BAR0_SIZE), Some(0), Some(4096), Some(0)));
    let msix = client.get_irq_info(2).unwrap();
    assert_eq!(msix.count, u32::from(VECTORS));

    let mut config = [0; 256];
    client.region_read(7, 0, &mut config).unwrap();
    assert_eq!(u16::from_le_bytes([config[0], config[1]]), VENDOR);

    let memory = HostMemory::new(0x4000).unwrap();
    client.dma_map(0, 0x8000, 0x4000, memory.fd().as_raw_fd()).unwrap();
    assert_eq!(function.maps(), 1);
    memory.write(0x10, b"by another hand");
    let eventfds: Vec<_> = (0..3).map(|_| EventFd::new(libc::EFD_NONBLOCK).unwrap()).collect();
    let fds: Vec<_> = eventfds.iter().map(|fd| fd.as_raw_fd()).collect();
    client.set_irqs(2, VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER, 4, 3, &fds).unwrap();
    let copy = [0x8010u64.to_le_bytes(), 0x9000u64.to_le_bytes()].concat();
    client.region_write(0, 0, &copy).unwrap();
    client.region_write(0, 0x10, &15u32.to_le_bytes()).unwrap();
    client.region_write(0, 0x18, &5u32.to_le_bytes()).unwrap();
    client.region_write(2, 0, &1u32.to_le_bytes()).unwrap();
    eventually("interrupt", || eventfds[1].read().is_ok());
    assert!(eventfds[0].read().is_err() && eventfds[2].read().is_err());
    let mut got = [0; 15];
    memory.read(0x1000, &mut got);
    assert_eq!(&got, b"by another hand");

    client.dma_unmap(0x8000, 0x4000).unwrap();
    assert_eq!(function.maps(), 0);
    client.reset().unwrap();
    assert_eq!(function.resets.load(Ordering::Relaxed), 1);
    client.shutdown().unwrap();
    eventually("reset after the client", || function.resets.load(Ordering::Relaxed) == 2);
}

/// The copier behind their server trait.
struct Backend {
    function: Arc<Copier>,
    eventfds: Vec<Option<File>>,
}

impl Backend {
    /// Their server has no thread for interrupts: check after every write.
    fn interrupt(&mut self) -> Result<(), Error> {
        let fired = self.function.wait_irq(u64::MAX, Duration::ZERO).unwrap_or(0);
        for vector in (0..64).filter(|v| fired >> v & 1 != 0) {
            if let Some(Some(file)) = self.eventfds.get_mut(vector) {
                std::io::Write::write_all(file, &1u64.to_ne_bytes())?;
            }
        }
        Ok(())
    }
}

impl ServerBackend for Backend {
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        if region == 7 {
            return self.function.config_read(offset as u16, data).map_err(Error::other);
        }
        let word = self.function.read32(region as u8, offset).map_err(Error::other)?;
        data.copy_from_slice(&word.to_le_bytes());
        Ok(())
    }

    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<(), Error> {
        if region == 7 {
            return self.function.config_write(offset as u16, data).map_err(Error::other);
        }
        let word = u32::from_le_bytes(data.try_into().map_err(Error::other)?);
        self.function.write32(region as u8, offset, word).map_err(Error::other)?;
        self.interrupt()
    }

    fn dma_map(
        &mut self,
        flags: DmaMapFlags,
        offset: u64,
        iova: u64,
        size: u64,
        fd: Option<File>,
    ) -> Result<(), Error> {
        let fd = std::os::fd::OwnedFd::from(fd.ok_or(Error::other("no descriptor"))?);
        let access = if flags.contains(DmaMapFlags::WRITE) { DmaAccess::ReadWrite } else { DmaAccess::Read };
        let memory = HostMemory::from_fd(fd.into(), offset, size as usize, access).map_err(Error::other)?;
        self.function.dma_map(iova, Arc::new(memory), access).map_err(Error::other)
    }

    fn dma_unmap(&mut self, _: DmaUnmapFlags, iova: u64, _size: u64) -> Result<(), Error> {
        self.function.dma_unmap(iova).map_err(Error::other)
    }

    fn reset(&mut self) -> Result<(), Error> {
        self.function.reset().map_err(Error::other)
    }

    fn set_irqs(&mut self, _: u32, _: u32, start: u32, _: u32, fds: Vec<File>) -> Result<(), Error> {
        for (vector, fd) in (start as usize..).zip(fds) {
            self.eventfds.resize_with(self.eventfds.len().max(vector + 1), || None);
            self.eventfds[vector] = Some(fd);
        }
        Ok(())
    }
}

#[test]
fn our_client_drives_their_server() {
    let (_dir, path) = socket();
    let function = Copier::new();
    let region = |index: u32, size| ServerRegion {
        region_info: vfio_region_info {
            argsz: size_of::<vfio_region_info>() as u32,
            flags: VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE,
            index,
            size,
            ..Default::default()
        },
        sparse_areas: vec![],
        mmap_fd: None,
    };
    let mut regions: Vec<_> = (0..6).map(|i| region(i, function.info().bar_sizes[i as usize])).collect();
    regions.extend([region(6, 0), region(7, 4096), region(8, 0)]);
    let irqs = (0..5)
        .map(|index| IrqInfo {
            index,
            flags: VFIO_IRQ_INFO_EVENTFD,
            count: if index == 2 { u32::from(VECTORS) } else { 0 },
        })
        .collect();
    let server = ::vfio_user::Server::new(&path, true, irqs, regions).unwrap();
    let thread = std::thread::spawn({
        let function = function.clone();
        move || server.run(&mut Backend { function, eventfds: vec![] })
    });

    let client = Client::connect(&path).unwrap();
    assert_eq!(client.info(), function.info());
    let memory = Arc::new(HostMemory::new(0x4000).unwrap());
    client.dma_map(0x4_0000, memory.clone(), DmaAccess::ReadWrite).unwrap();
    memory.write(0, b"there and back");
    assert_eq!(copy_through(&client, 0x4_0000, 0x4_2000, 14, 17), 0);
    let mut got = [0; 14];
    memory.read(0x2000, &mut got);
    assert_eq!(&got, b"there and back");
    client.dma_unmap(0x4_0000).unwrap();
    assert_eq!(copy_through(&client, 0x4_0000, 0x4_2000, 14, 0), 1);
    client.reset().unwrap();
    assert_eq!(function.resets.load(Ordering::Relaxed), 1);
    drop(client);
    thread.join().unwrap().unwrap();
}
