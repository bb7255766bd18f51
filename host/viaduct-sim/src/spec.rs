// SPDX-License-Identifier: Apache-2.0
//! Cards, as users name them.

use std::str::FromStr;

use viaduct_pci::Location;

/// A card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CardSpec {
    /// Simulated in this process.
    Sim,
    /// In another process or in this machine.
    At(Location),
}

impl FromStr for CardSpec {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if text == "sim" {
            return Ok(CardSpec::Sim);
        }
        text.parse().map(CardSpec::At).map_err(|why| format!("{why}, or sim"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_named() {
        assert_eq!("sim".parse(), Ok(CardSpec::Sim));
        assert_eq!("unix:/a:b".parse(), Ok(CardSpec::At(Location::Unix("/a:b".into()))));
        for bad in ["", "unix:", "pci", "sim:f1"] {
            let error = bad.parse::<CardSpec>().unwrap_err();
            assert_eq!(error, "write unix:PATH or vfio:ADDRESS, or sim");
        }
    }
}
