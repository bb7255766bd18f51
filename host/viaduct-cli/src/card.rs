// SPDX-License-Identifier: Apache-2.0
//! `--card`: which card, and opening it.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use viaduct::{Card, Timeouts};
use viaduct_build::{Project, Variant, nearest};
use viaduct_pci::{PciFunction, vfio_user};
use viaduct_sim::{Profile, SimCard, SimConfig};

use crate::fail::{Failure, Result, usage};

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

/// A card that was opened.
pub struct Opened {
    /// For everything any card can do.
    pub card: Arc<Card>,
    /// For what only a simulated card in this process can do.
    pub sim: Option<Arc<SimCard>>,
}

impl CardArgs {
    /// Opens the card; the simulated one is built first if need be.
    pub fn open(&self, project: &Project, variant: Variant) -> Result<Opened> {
        let (function, sim): (Arc<dyn PciFunction>, _) = match &self.card {
            CardSpec::Sim => {
                let sim = simulated(project, self.profile.as_deref(), variant)?;
                (sim.clone(), Some(sim))
            }
            CardSpec::Unix(_) if self.profile.is_some() => {
                return usage("--profile belongs to the card's own process; give it to `viaduct card`");
            }
            CardSpec::Unix(path) => (Arc::new(connect(path)?), None),
        };
        let mut timeouts = Timeouts::default();
        if let Some(seconds) = self.timeout {
            let limit = Duration::from_secs(seconds);
            timeouts = Timeouts { stall: limit, busy: limit, ..timeouts };
        }
        Ok(Opened { card: Card::open_with(function, timeouts)?, sim })
    }
}

fn connect(path: &Path) -> Result<vfio_user::Client> {
    vfio_user::Client::connect(path).map_err(|e| {
        let path = path.display();
        Failure::Run(format!("{path}: {e}; is there a card? `viaduct card --socket {path}` starts one"))
    })
}

/// The profile of that name, or the usual one.
pub fn profile(name: Option<&str>) -> Result<Profile> {
    let Some(name) = name else { return Ok(Profile::default()) };
    Profile::by_name(name).ok_or_else(|| {
        let known = format!("there are {}", Profile::names().collect::<Vec<_>>().join(", "));
        let remedy = nearest(name, Profile::names()).map_or(known, |near| format!("did you mean {near}?"));
        Failure::Usage(format!("no profile named {name:?}; {remedy}"))
    })
}

/// A simulated card in this process.
pub fn simulated(project: &Project, profile_name: Option<&str>, variant: Variant) -> Result<Arc<SimCard>> {
    let profile = profile(profile_name)?;
    let card_object = project.build_card(variant, &mut crate::project::tell)?;
    let config = SimConfig { profile, card_object, image_dir: project.images(variant), chan_mib: None };
    let sim = SimCard::open(config).map_err(|e| Failure::Run(e.to_string()))?;
    Ok(Arc::new(sim))
}
