// SPDX-License-Identifier: Apache-2.0
//! Types of virtio devices (VIRTIO 1.3, section 5).

use crate::error::{Error, Result};

/// A type of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its device ID.
    pub id: u32,
    /// Queues, if the device process does not have another number.
    pub queues: u32,
    /// Bytes of the configuration space that the device process has.
    pub config: u32,
    /// Feature bits that would need more than the device process's queues: they are not offered to the driver.
    pub withheld: u64,
}

const NET_CTRL: u64 = 1 << 17 | 1 << 18 | 1 << 19 | 1 << 20 | 1 << 21 | 1 << 22 | 1 << 23;
const CONSOLE_MULTIPORT: u64 = 1 << 1;

/// The types that there are.
pub const KINDS: [Kind; 11] = [
    Kind { name: "blk", id: 2, queues: 1, config: 60, withheld: 0 },
    Kind { name: "can", id: 36, queues: 3, config: 2, withheld: 0 },
    Kind { name: "console", id: 3, queues: 2, config: 12, withheld: CONSOLE_MULTIPORT },
    Kind { name: "gpio", id: 41, queues: 2, config: 8, withheld: 0 },
    Kind { name: "i2c", id: 34, queues: 1, config: 0, withheld: 0 },
    Kind { name: "input", id: 18, queues: 2, config: 136, withheld: 0 },
    // The control queue is answered by a virtual machine monitor, not by a vhost-user process.
    Kind { name: "net", id: 1, queues: 2, config: 0, withheld: NET_CTRL },
    Kind { name: "rng", id: 4, queues: 1, config: 0, withheld: 0 },
    Kind { name: "sound", id: 25, queues: 4, config: 12, withheld: 0 },
    Kind { name: "spi", id: 45, queues: 1, config: 0, withheld: 0 },
    Kind { name: "vsock", id: 19, queues: 3, config: 8, withheld: 0 },
];

/// All names, for a message.
fn names() -> String {
    KINDS.map(|kind| kind.name).join(", ")
}

impl Kind {
    /// The type with a name.
    pub fn by_name(name: &str) -> Result<Kind> {
        KINDS
            .into_iter()
            .find(|kind| kind.name == name)
            .ok_or_else(|| Error::NoKind(name.to_owned(), names()))
    }

    /// The type with a device ID.
    pub fn by_id(id: u32) -> Option<Kind> {
        KINDS.into_iter().find(|kind| kind.id == id)
    }

    /// Queues of a device with these features and this configuration space.
    pub fn queues_of(&self, features: u64, config: &[u8]) -> u32 {
        const BLK_MQ: u64 = 1 << 12;
        // `num_queues` of a disk (section 5.2.4).
        match config.get(34..36) {
            Some(count) if self.name == "blk" && features & BLK_MQ != 0 => {
                u16::from_le_bytes([count[0], count[1]]).max(1).into()
            }
            _ => self.queues,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_says_how_many_queues_it_has() {
        let blk = Kind::by_name("blk").unwrap();
        let mut config = [0; 60];
        config[34] = 4;
        assert_eq!(blk.queues_of(1 << 12, &config), 4);
        assert_eq!(blk.queues_of(0, &config), 1);
        assert_eq!(blk.queues_of(1 << 12, &config[..20]), 1);
        config[34] = 0;
        assert_eq!(blk.queues_of(1 << 12, &config), 1);
    }

    #[test]
    fn names_and_numbers_are_unique() {
        for kind in KINDS {
            assert_eq!(Kind::by_name(kind.name).unwrap(), kind);
            assert_eq!(Kind::by_id(kind.id), Some(kind));
        }
        let unknown = Kind::by_name("disk").unwrap_err().to_string();
        assert!(unknown.contains("\"disk\"") && unknown.contains("blk, can"), "{unknown}");
    }
}
