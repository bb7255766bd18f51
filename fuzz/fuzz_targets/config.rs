// SPDX-License-Identifier: Apache-2.0
//! Configuration space: capabilities of any type, accesses of any size and offset.
//!
//! Read-only bits keep their values; an access as a whole equals one byte by byte; accesses beyond the end are refused
//! without effect; the chain of capabilities ends; a reset restores all values.
#![no_main]

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use viaduct_pci::{CONFIG_SIZE, ConfigIds, ConfigSpace};

const STATUS: usize = 6;
/// Bits of the status register that a write of one clears.
const CLEARED: [u8; 2] = [0, 0xf9];

fn all(space: &ConfigSpace) -> Vec<u8> {
    let mut bytes = vec![0; CONFIG_SIZE];
    space.read(0, &mut bytes).unwrap();
    bytes
}

fn build(u: &mut Unstructured) -> Result<ConfigSpace> {
    let ids = ConfigIds {
        vendor: u.arbitrary()?,
        device: u.arbitrary()?,
        revision: 1,
        class: u.arbitrary()?,
        subsystem_vendor: 1,
        subsystem: 2,
    };
    let mut space = ConfigSpace::new(&ids);
    let mut added = Vec::new();
    for _ in 0..u.arbitrary::<u8>()? & 7 {
        added.extend(match u.arbitrary::<u8>()? & 7 {
            0 | 1 => {
                let (bar, size, kind): (u8, u64, u8) = u.arbitrary()?;
                let size = if kind & 4 == 0 { 1 << (size & 63) } else { size };
                if space.add_bar(bar & 7, size, kind & 1 != 0, kind & 2 != 0).is_ok() {
                    assert_eq!(space.bar_sizes()[usize::from(bar & 7)], size);
                }
                None
            }
            2 => space.add_pcie(u.arbitrary()?, u.arbitrary()?).ok(),
            3 => space.add_msix(u.arbitrary()?, u.arbitrary()?, u.arbitrary()?).ok(),
            kind => {
                let len = usize::from(u.arbitrary::<u8>()?).min(u.len());
                let body = u.bytes(len)?;
                match kind {
                    4 => space.add_vendor_capability(body).ok(),
                    5 => space.add_capability(9, body, &[]).ok(),
                    _ => space.add_capability(u.arbitrary()?, body, &vec![u.arbitrary()?; len]).ok(),
                }
            }
        });
    }
    // The chain contains exactly the accepted capabilities, in order.
    let bytes = all(&space);
    let mut found = Vec::new();
    let mut at = bytes[0x34];
    while at != 0 {
        found.push(at);
        assert!(found.len() <= 48, "the chain is a loop");
        at = bytes[usize::from(at) + 1];
    }
    assert_eq!(found, added);
    assert_eq!(bytes[STATUS] & 0x10 != 0, !found.is_empty());
    Ok(space)
}

/// The bits that software can set.
fn writable(space: &ConfigSpace) -> Vec<u8> {
    let (mut ones, mut zeros) = (space.clone(), space.clone());
    ones.write(0, &[0xff; CONFIG_SIZE]).unwrap();
    zeros.write(0, &[0; CONFIG_SIZE]).unwrap();
    all(&ones).iter().zip(all(&zeros)).map(|(one, zero)| one & !zero).collect()
}

fn run(bytes: &[u8]) -> Result<()> {
    let u = &mut Unstructured::new(bytes);
    let mut space = build(u)?;
    let (fresh, mask) = (all(&space), writable(&space));
    let mut steps = 0;
    while !u.is_empty() && steps < 16 {
        steps += 1;
        let (what, offset, len): (u8, u16, u8) = u.arbitrary()?;
        let len = if what & 0x80 != 0 { usize::from(len) * 33 } else { usize::from(len & 15) };
        let inside = usize::from(offset) + len <= CONFIG_SIZE;
        let before = all(&space);
        if what & 3 == 0 {
            let mut read = vec![0; len];
            assert_eq!(space.read(offset, &mut read).is_ok(), inside);
            assert!(!inside || read == before[usize::from(offset)..][..len]);
        } else if what & 0x7f == 0x7f {
            space.reset();
            assert_eq!(all(&space), fresh);
        } else {
            let data: Vec<u8> = (0..len).map(|_| u.arbitrary()).collect::<Result<_>>()?;
            let mut bytewise = space.clone();
            let written = space.write(offset, &data);
            assert_eq!(written.is_ok(), inside);
            let after = all(&space);
            if let Ok(reset) = written {
                let each = (offset..).zip(&data).map(|(at, byte)| bytewise.write(at, &[*byte]).unwrap());
                assert_eq!(each.fold(false, |any, one| any | one), reset);
                assert_eq!(all(&bytewise), after);
            }
            let start = usize::from(offset).min(CONFIG_SIZE);
            let end = if inside { start + len } else { start };
            assert!(before[..start] == after[..start] && before[end..] == after[end..]);
            for (at, data) in (start..end).zip(data) {
                let (old, cleared) = (before[at], if at / 2 == STATUS / 2 { CLEARED[at % 2] } else { 0 });
                let expected = (old & !mask[at] | data & mask[at]) & !(data & cleared);
                assert_eq!(after[at], expected, "byte {at:#x}");
            }
        }
        check_switches(&space);
    }
    Ok(())
}

/// The function's owner gets the same values as software that reads the registers.
fn check_switches(space: &ConfigSpace) {
    let bytes = all(space);
    assert_eq!(space.memory_enabled(), bytes[4] & 2 != 0);
    assert_eq!(space.bus_master(), bytes[4] & 4 != 0);
    for (bar, size) in space.bar_sizes().into_iter().enumerate() {
        match space.bar_address(bar as u8) {
            Some(address) => assert!(size > 0 && address % size == 0),
            None => assert_eq!(size, 0),
        }
    }
    assert_eq!(space.bar_address(6), None);
}

fuzz_target!(|bytes: &[u8]| {
    // An input that is too short ends early.
    let _ = run(bytes);
});
