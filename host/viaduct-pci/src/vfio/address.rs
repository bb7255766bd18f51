// SPDX-License-Identifier: Apache-2.0
//! Addresses of functions on the machine's PCI buses.

use std::fmt;
use std::str::FromStr;

/// Address of a PCI function, written `0000:01:00.0`; the first group, the domain, may be left out if it is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PciAddress {
    /// Domain, also called segment.
    pub domain: u32,
    /// Bus.
    pub bus: u8,
    /// Device, at most 31.
    pub device: u8,
    /// Function, at most 7.
    pub function: u8,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device, function } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function}")
    }
}

impl FromStr for PciAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (front, function) = text.rsplit_once('.')?;
            let (front, device) = front.rsplit_once(':')?;
            let (domain, bus) = front.rsplit_once(':').unwrap_or(("0", front));
            Some(Self {
                domain: hex(domain, 8, u32::MAX)?,
                bus: hex(bus, 2, 0xff)? as u8,
                device: hex(device, 2, 31)? as u8,
                function: hex(function, 1, 7)? as u8,
            })
        };
        parse().ok_or_else(|| {
            format!(
                "{text:?} is not an address of a PCI function: write it like 0000:01:00.0, as `lspci -D` does"
            )
        })
    }
}

/// A hexadecimal number of at most `digits` digits, without sign.
fn hex(text: &str, digits: usize, most: u32) -> Option<u32> {
    let good = (1..=digits).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
    u32::from_str_radix(text, 16).ok().filter(|value| good && *value <= most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_are_read_as_lspci_writes_them() {
        for (text, shown) in [
            ("0000:01:00.0", "0000:01:00.0"),
            ("01:00.0", "0000:01:00.0"),
            ("10000:E1:1f.7", "10000:e1:1f.7"),
            ("ffffffff:0:0.1", "ffffffff:00:00.1"),
        ] {
            assert_eq!(text.parse::<PciAddress>().unwrap().to_string(), shown);
        }
        for bad in [
            "",
            "0000",
            "01:00",
            "01.0",
            ":00.0",
            "01:00.",
            "01:00.8",
            "01:20.0",
            "100:00.0",
            "0000:01:00.0 ",
            "+1:00.0",
            "01:-0.0",
            "x:01:00.0",
            "0:0000:01:00.0",
            "100000000:01:00.0",
            "../01:00.0",
            "01:00.00",
        ] {
            let error = bad.parse::<PciAddress>().expect_err(bad);
            assert!(error.contains("write it like 0000:01:00.0"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(domain: u32, bus: u8, device in 0u8..32, function in 0u8..8) {
            let address = PciAddress { domain, bus, device, function };
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = text.parse::<PciAddress>();
        }
    }
}
