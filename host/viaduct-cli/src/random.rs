// SPDX-License-Identifier: Apache-2.0
//! Random data and register values, the same everywhere for the same seed.

use viaduct_build::{Format, Register};

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    /// The next 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Random bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let words = std::iter::repeat_with(|| self.next().to_le_bytes());
        words.take(len.div_ceil(8)).flatten().take(len).collect()
    }

    /// A value for a register in text form: the manifest's example, else any that fits.
    pub fn value(&mut self, register: &Register) -> String {
        if let Some(example) = &register.example {
            return example.clone();
        }
        let mut bytes = self.bytes(register.width.div_ceil(8) as usize);
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        match register.format {
            Format::Bytes => hex(&bytes),
            Format::Number => {
                bytes[0] &= 0xff >> (8 * bytes.len() as u32 - register.width);
                format!("0x{}", hex(&bytes))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use viaduct_build::Manifest;

    #[test]
    fn values_fit_their_registers() {
        let mut random = Random(1);
        for width in 1..=130 {
            let text = format!(
                "[app]\nname='t'\nversion='0.1.0'\nsummary='t'\ntop='t'\n[[register]]\nname='r'\nwidth={width}\naccess='rw'\n"
            );
            let app = Manifest::parse("apps/t", &text).unwrap();
            for _ in 0..20 {
                let value = random.value(&app.registers[0]);
                assert!(app.registers[0].parse(&value).is_ok(), "{width} {value}");
            }
        }
        assert_eq!(Random(7).bytes(13), Random(7).bytes(16)[..13]);
    }
}
