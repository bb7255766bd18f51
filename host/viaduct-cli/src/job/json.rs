// SPDX-License-Identifier: Apache-2.0
//! Results of a run as JSON.

use serde_json::{Value, json};

use super::Outcome;

impl Outcome {
    /// All results as JSON.
    pub fn json(&self) -> Value {
        json!({
            "slot": self.slot,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "cycles": self.cycles,
            "bytes_per_cycle": self.rate(),
            "clock_khz": self.info.clock_khz,
            "gb_per_s": self.gb_per_s(),
            "busy": self.busy().into_iter().map(|(part, share)| (part.to_owned(), json!(share))).collect::<serde_json::Map<_, _>>(),
            "misses": u64::from(self.counters.rd_miss) + u64::from(self.counters.wr_miss),
            "registers": self.registers.iter().map(|(name, value)| (name.clone(), json!(number(value)))).collect::<serde_json::Map<_, _>>(),
        })
    }
}

/// Little-endian bytes as a hexadecimal number.
pub fn number(bytes: &[u8]) -> String {
    let hex: String = bytes.iter().rev().map(|b| format!("{b:02x}")).collect();
    let digits = hex.trim_start_matches('0');
    format!("0x{}", if digits.is_empty() { "0" } else { digits })
}
