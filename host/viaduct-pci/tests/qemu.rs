// SPDX-License-Identifier: Apache-2.0
//! QEMU's `vfio-user-pci` device drives our server: firmware assigns its addresses, then this test acts as the guest's
//! driver through QEMU's debugger port.
//!
//! Needs QEMU 10.1 or newer: `VIADUCT_QEMU=qemu-system-x86_64 cargo test -p viaduct-pci --test qemu -- --ignored`

mod common;

use common::{Copier, DEVICE, VENDOR, eventually, socket};
use std::cell::RefCell;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use viaduct_pci::PciFunction;
use viaduct_pci::vfio_user::Server;

/// Physical memory of a guest, devices included, through the GDB remote protocol.
struct Guest {
    port: RefCell<UnixStream>,
    qemu: Child,
}

impl Guest {
    fn start(dir: &Path, device: &Path) -> Self {
        let program = std::env::var_os("VIADUCT_QEMU").unwrap_or_else(|| "qemu-system-x86_64".into());
        let gdb = dir.join("gdb");
        let socket = format!(
            r#"{{"driver":"vfio-user-pci","socket":{{"path":"{}","type":"unix"}}}}"#,
            device.display()
        );
        let mut qemu = Command::new(program)
            .args(["-M", "q35,memory-backend=m", "-object", "memory-backend-memfd,id=m,size=64M,share=on"])
            .args(["-nodefaults", "-display", "none", "-device", &socket])
            .args(["-gdb", &format!("unix:{},server=on,wait=off", gdb.display())])
            .spawn()
            .expect("QEMU starts");
        let deadline = Instant::now() + Duration::from_secs(20);
        let port = loop {
            assert!(qemu.try_wait().unwrap().is_none(), "QEMU ended");
            assert!(Instant::now() < deadline, "QEMU's debugger port");
            // The firmware needs a second or two; the debugger stops it.
            std::thread::sleep(Duration::from_secs(4));
            if let Ok(port) = UnixStream::connect(&gdb) {
                break port;
            }
        };
        port.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let guest = Self { port: RefCell::new(port), qemu };
        guest.ask("?");
        assert_eq!(guest.ask("Qqemu.PhyMemMode:1"), "OK");
        guest
    }

    fn ask(&self, request: &str) -> String {
        let mut port = self.port.borrow_mut();
        let sum = request.bytes().fold(0u8, u8::wrapping_add);
        write!(port, "${request}#{sum:02x}").unwrap();
        let mut response = Vec::new();
        let mut byte = [0];
        while !response.ends_with(b"#") {
            port.read_exact(&mut byte).expect("a response from QEMU");
            if byte != *b"+" {
                response.push(byte[0]);
            }
        }
        port.read_exact(&mut [0; 2]).unwrap();
        port.write_all(b"+").unwrap();
        String::from_utf8(response).unwrap().trim_matches(['$', '#']).to_string()
    }

    fn read(&self, at: u64, len: usize) -> Vec<u8> {
        let hex = self.ask(&format!("m{at:x},{len:x}"));
        assert_eq!(hex.len(), 2 * len, "reading {at:#x}: {hex}");
        (0..len).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
    }

    fn write(&self, at: u64, data: &[u8]) {
        let hex: String = data.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(self.ask(&format!("M{at:x},{:x}:{hex}", data.len())), "OK", "writing {at:#x}");
    }

    fn read32(&self, at: u64) -> u32 {
        u32::from_le_bytes(self.read(at, 4).try_into().unwrap())
    }

    fn write32(&self, at: u64, value: u32) {
        self.write(at, &value.to_le_bytes());
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

#[test]
#[ignore = "needs QEMU 10.1 or newer"]
fn qemu_enumerates_the_function_and_gets_dma_and_interrupts() {
    /// Address of configuration space with q35 firmware.
    const ECAM: u64 = 0xb000_0000;
    let (dir, path) = socket();
    let function = Copier::new();
    let _server = Server::bind(&path, function.clone()).unwrap();
    let guest = Guest::start(dir.path(), &path);

    let id = u32::from(DEVICE) << 16 | u32::from(VENDOR);
    let config =
        (0..32).map(|slot| ECAM + (slot << 15)).find(|at| guest.read32(*at) == id).expect("on the bus");
    let bar = |index: u64| u64::from(guest.read32(config + 0x10 + 4 * index) & !0xf);
    let (bar0, bar2, bar4) = (bar(0), bar(2), bar(4));
    assert!(bar0 != 0 && bar2 != 0 && bar4 != 0, "the firmware gave addresses");
    guest.write32(config + 4, 6);
    guest.write32(bar0 + 0x100, 0xcafe_f00d);
    assert_eq!(guest.read32(bar0 + 0x100), 0xcafe_f00d);
    assert_eq!(function.read32(0, 0x100).unwrap(), 0xcafe_f00d);

    // Interrupt messages go to memory, where we can see them.
    let message = |vector: u64| 0x5_0000 + 4 * vector;
    let mut capability = u64::from(guest.read(config + 0x34, 1)[0]);
    while guest.read(config + capability, 1) != [0x11] {
        capability = u64::from(guest.read(config + capability + 1, 1)[0]);
    }
    for vector in 0..20 {
        guest.write32(message(vector), 0);
        for (word, value) in [message(vector) as u32, 0, 0x100 + vector as u32, 0].into_iter().enumerate() {
            guest.write32(bar4 + 16 * vector + 4 * word as u64, value);
        }
    }
    guest.write(config + capability + 3, &[0x80]);

    guest.write(0x20_0000, b"hello from a guest");
    for (at, value) in [(0, 0x20_0000), (4, 0), (8, 0x30_0000), (12, 0), (16, 18), (24, 7)] {
        guest.write32(bar0 + at, value);
    }
    guest.write32(bar2, 1);
    eventually("interrupt 7", || guest.read32(message(7)) == 0x107);
    assert_eq!(guest.read32(bar0 + 0x14), 0);
    assert_eq!(guest.read(0x30_0000, 18), b"hello from a guest");
    guest.write32(bar2 + 4, 19);
    eventually("interrupt 19", || guest.read32(message(19)) == 0x113);
    assert_eq!(guest.read32(message(18)), 0);

    let resets = function.resets.load(Ordering::Relaxed);
    drop(guest);
    eventually("reset after QEMU", || {
        function.resets.load(Ordering::Relaxed) > resets && function.maps() == 0
    });
}
