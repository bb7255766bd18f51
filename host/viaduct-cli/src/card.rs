// SPDX-License-Identifier: Apache-2.0
//! `--card`: which card, and opening it.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use viaduct::{Card, Timeouts};
use viaduct_build::{Project, Variant};
use viaduct_pci::{PciFunction, vfio_user};

use crate::fail::{Failure, Result};

/// Options of commands that use a card.
#[derive(clap::Args, Clone)]
pub struct CardArgs {
    /// The card: `sim`, simulated in this process, or `unix:PATH`, served by `viaduct card`
    #[arg(long, value_name = "CARD", default_value = "sim")]
    pub card: CardSpec,
    /// Board and link to simulate; `viaduct info card` lists them
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Give up when nothing has happened for so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub timeout: Option<u64>,
}

/// Which card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CardSpec {
    /// Simulated in this process.
    Sim,
    /// Behind a vfio-user socket.
    Unix(PathBuf),
}

impl FromStr for CardSpec {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.split_once(':') {
            None if text == "sim" => Ok(CardSpec::Sim),
            Some(("unix", path)) if !path.is_empty() => Ok(CardSpec::Unix(path.into())),
            _ => Err("write sim or unix:PATH".to_owned()),
        }
    }
}

impl CardArgs {
    /// Opens the card; the simulated one is built first if need be.
    pub fn open(&self, project: &Project, variant: Variant) -> Result<Arc<Card>> {
        let function = match &self.card {
            CardSpec::Sim => simulated(project, self.profile.as_deref(), variant)?,
            CardSpec::Unix(_) if self.profile.is_some() => {
                return Err(Failure::Usage(
                    "--profile belongs to the card's own process; give it to `viaduct card`".into(),
                ));
            }
            CardSpec::Unix(path) => Arc::new(vfio_user::Client::connect(path).map_err(|e| {
                Failure::Run(format!(
                    "{}: {e}; start the card with `viaduct card --socket {}`",
                    path.display(),
                    path.display()
                ))
            })?),
        };
        let mut timeouts = Timeouts::default();
        if let Some(seconds) = self.timeout {
            let limit = Duration::from_secs(seconds);
            timeouts = Timeouts { stall: limit, busy: limit, ..timeouts };
        }
        Ok(Card::open_with(function, timeouts)?)
    }
}

/// A simulated card in this process.
pub fn simulated(project: &Project, profile: Option<&str>, variant: Variant) -> Result<Arc<dyn PciFunction>> {
    let _ = (project, profile, variant);
    Err(Failure::Run("no simulated card".into()))
}
