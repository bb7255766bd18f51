// SPDX-License-Identifier: Apache-2.0
//! Functions outside of this process, by name.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use crate::vfio::{self, PciAddress};
use crate::{PciError, PciFunction, Result, vfio_user};

/// Where a function is that this process does not simulate itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// `unix:PATH`: behind a vfio-user socket.
    Unix(PathBuf),
    /// `vfio:ADDRESS`: in this machine, bound to `vfio-pci`.
    Vfio(PciAddress),
}

impl FromStr for Location {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some(("vfio", address)) => address.parse().map(Self::Vfio),
            _ => Err("write unix:PATH or vfio:ADDRESS".to_owned()),
        }
    }
}

impl Location {
    /// Opens the function. What is wrong with the place, and what to do, is in the error.
    pub fn open(&self) -> Result<Arc<dyn PciFunction>> {
        Ok(match self {
            Self::Unix(path) => Arc::new(vfio_user::Client::connect(path).map_err(|e| {
                let path = path.display();
                PciError::Unusable(format!("{e}; is there a card? `viaduct card --socket {path}` starts one"))
            })?),
            Self::Vfio(address) => Arc::new(vfio::Function::open(*address)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_named() {
        let address: PciAddress = "0000:01:00.0".parse().unwrap();
        assert_eq!("unix:/a:b".parse(), Ok(Location::Unix("/a:b".into())));
        assert_eq!("vfio:0000:01:00.0".parse(), Ok(Location::Vfio(address)));
        assert_eq!("vfio:01:00.0".parse(), Ok(Location::Vfio(address)));
        for (bad, word) in
            [("", "unix:PATH"), ("unix:", "unix:PATH"), ("pci", "unix:PATH"), ("vfio:", "0000:01:00.0")]
        {
            let error = bad.parse::<Location>().unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn an_empty_place_says_what_to_do() {
        let error = Location::Unix("/nobody/here".into()).open().err().unwrap().to_string();
        assert!(error.contains("/nobody/here") && error.contains("viaduct card --socket"), "{error}");
    }
}
