// SPDX-License-Identifier: Apache-2.0
//! The system monitor of the FPGA: temperature, supplies, current.

use super::Card;
use super::sync::{lock, poll};
use crate::error::{Error, Result};
use crate::protocol::regs::*;

/// Minor version of the register map that brought it.
const SYSMON_SINCE: u32 = 4;

/// What a sensor has measured, and its extremes since the monitor was reset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Last.
    pub last: f64,
    /// Lowest.
    pub min: f64,
    /// Highest.
    pub max: f64,
}

/// One reading of the system monitor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SystemMonitor {
    /// The values are those of a model, as a simulated card has no silicon, and not of sensors.
    pub model: bool,
    /// Temperature of the die in degrees Celsius.
    pub temperature: Measured,
    /// Supply of the logic in volts.
    pub vccint: Measured,
    /// Auxiliary supply in volts.
    pub vccaux: Measured,
    /// Supply of the memories in volts.
    pub vccbram: Measured,
    /// Current of the supply of the logic in amperes, if the board has a sensor for it.
    pub current: Option<f64>,
}

impl SystemMonitor {
    /// Power of the supply of the logic in watts, if its current is measured.
    pub fn power(&self) -> Option<f64> {
        Some(self.current? * self.vccint.last)
    }
}

/// Degrees Celsius of a code: UG480 and UG580 of Xilinx, transfer functions of the temperature sensor.
fn celsius(kind: u32, code: u32) -> f64 {
    match kind {
        1 => f64::from(code) * 503.975 / 65536.0 - 273.15,
        _ => f64::from(code) * 507.592_131_0 / 65536.0 - 279.426_576_80,
    }
}

/// Volts of a code of a supply.
fn volts(code: u32) -> f64 {
    f64::from(code) * 3.0 / 65536.0
}

impl Card {
    /// Reads the system monitor. `None`: the board has none, or the card's register map is before 2.4.
    pub fn system_monitor(&self) -> Result<Option<SystemMonitor>> {
        self.check_process()?;
        if self.info.version.1 < SYSMON_SINCE {
            return Ok(None);
        }
        let _one_at_a_time = lock(&self.sysmon);
        let status = self.read_card(VIA_CARD_SYSMON_STATUS)?;
        let kind = (status & VIA_CARD_SYSMON_STATUS_KIND_MASK) >> VIA_CARD_SYSMON_STATUS_KIND_LSB;
        match kind {
            0 => return Ok(None),
            1 | 2 => {}
            kind => return Err(Error::BadCard(format!("a system monitor of unknown kind {kind}"))),
        }
        self.write_card(VIA_CARD_SYSMON_CTRL, VIA_CARD_SYSMON_CTRL_START_MASK)?;
        let status = poll(self.timeouts.control, || {
            let status = self.read_card(VIA_CARD_SYSMON_STATUS)?;
            Ok((status & VIA_CARD_SYSMON_STATUS_BUSY_MASK == 0).then_some(status))
        })?;
        let good = VIA_CARD_SYSMON_STATUS_VALID_MASK;
        match status.map(|status| status & (good | VIA_CARD_SYSMON_STATUS_FAILED_MASK)) {
            Some(state) if state == good => {}
            _ => return Err(Error::BadCard("the system monitor of the board does not answer".into())),
        }
        let measured = |last: u64, convert: &dyn Fn(u32) -> f64| -> Result<Measured> {
            let range = self.read_card(last + 4)?;
            Ok(Measured {
                last: convert(self.read_card(last)? & 0xffff),
                min: convert(range & VIA_CARD_SYSMON_TEMP_RANGE_MIN_MASK),
                max: convert(range >> VIA_CARD_SYSMON_TEMP_RANGE_MAX_LSB),
            })
        };
        let full = f64::from(self.read_card(VIA_CARD_SYSMON_FULL)?) / 1e3;
        Ok(Some(SystemMonitor {
            model: status.unwrap_or(0) & VIA_CARD_SYSMON_STATUS_MODEL_MASK != 0,
            temperature: measured(VIA_CARD_SYSMON_TEMP, &|code| celsius(kind, code))?,
            vccint: measured(VIA_CARD_SYSMON_VCCINT, &volts)?,
            vccaux: measured(VIA_CARD_SYSMON_VCCAUX, &volts)?,
            vccbram: measured(VIA_CARD_SYSMON_VCCBRAM, &volts)?,
            current: match full {
                0.0 => None,
                full => Some(full * f64::from(self.read_card(VIA_CARD_SYSMON_CURRENT)? & 0xffff) / 65536.0),
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_converted_as_the_documents_say() {
        // UG480, table 1-? of examples: 12-bit code 977h is 25 degrees Celsius.
        assert!((celsius(1, 0x9770) - 24.97).abs() < 0.1, "{}", celsius(1, 0x9770));
        assert!((celsius(1, 0xb5e0) - 85.0).abs() < 0.2, "{}", celsius(1, 0xb5e0));
        // UG580: the code of absolute zero is below that of 0 degrees by 273.15 / 507.59 of the range.
        assert!((celsius(2, 0) + 279.426_576_8).abs() < 1e-9);
        assert!((celsius(2, 36077) - 0.0).abs() < 0.01, "{}", celsius(2, 36077));
        assert!((volts(0x5555) - 1.0).abs() < 1e-4);
    }
}
