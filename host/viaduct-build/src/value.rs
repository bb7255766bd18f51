// SPDX-License-Identifier: Apache-2.0
//! Text form of register values.

use serde::Deserialize;

/// Widest register, in bits.
pub(crate) const MAX_WIDTH: u32 = 1024;

/// Text format of a register's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Decimal, or hexadecimal after `0x`.
    #[default]
    Number,
    /// Hexadecimal bytes, first byte in the lowest byte, as for keys of `openssl`.
    Bytes,
}

/// Reads a value; returns little-endian words.
pub(crate) fn parse_value(text: &str, width: u32, format: Format) -> std::result::Result<Vec<u32>, String> {
    let shown: String = text.chars().take(80).collect();
    let mut bytes = match format {
        Format::Bytes => {
            let digits = text.strip_prefix("0x").unwrap_or(text);
            let bytes = hex::decode(digits).map_err(|_| format!("{shown:?} is not hexadecimal bytes"))?;
            if bytes.len() * 8 != width as usize {
                return Err(format!("{} bytes given, it holds {}", bytes.len(), width / 8));
            }
            bytes
        }
        Format::Number => {
            let (digits, radix) = match text.strip_prefix("0x") {
                Some(d) => (d, 16),
                None => (text, 10),
            };
            let digits: String = digits.chars().filter(|c| *c != '_').collect();
            if digits.is_empty() || digits.len() > 400 {
                return Err(format!("{shown:?} is not a number"));
            }
            // Schoolbook: value = value * radix + digit, little-endian bytes.
            let mut value = vec![0u8; MAX_WIDTH as usize / 8];
            for c in digits.chars() {
                let mut carry = c.to_digit(radix).ok_or_else(|| format!("{shown:?} is not a number"))?;
                for b in &mut value {
                    let v = u32::from(*b) * radix + carry;
                    *b = v as u8;
                    carry = v >> 8;
                }
                if carry != 0 {
                    return Err(format!("{shown:?} does not fit {width} bits"));
                }
            }
            value
        }
    };
    let fits = (width..bytes.len() as u32 * 8).all(|bit| bytes[bit as usize / 8] >> (bit % 8) & 1 == 0);
    if !fits {
        return Err(format!("{shown:?} does not fit {width} bits"));
    }
    bytes.resize(width.div_ceil(32) as usize * 4, 0);
    Ok(bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_round_trip(words in prop::collection::vec(any::<u32>(), 1..=4)) {
            let width = words.len() as u32 * 32;
            let hex: String = words.iter().rev().map(|w| format!("{w:08x}")).collect();
            prop_assert_eq!(parse_value(&format!("0x{hex}"), width, Format::Number), Ok(words.clone()));
            let value = u128::from_str_radix(&hex, 16).unwrap();
            prop_assert_eq!(parse_value(&value.to_string(), width, Format::Number), Ok(words));
        }

        #[test]
        fn any_value_is_taken_or_refused(text in ".{0,40}", width in 1u32..=1024, bytes in any::<bool>()) {
            let format = if bytes { Format::Bytes } else { Format::Number };
            if let Ok(words) = parse_value(&text, width, format) {
                prop_assert_eq!(words.len() as u32, width.div_ceil(32));
                prop_assert!(width % 32 == 0 || words[words.len() - 1] >> (width % 32) == 0);
            }
        }
    }
}
