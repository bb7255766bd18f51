// SPDX-License-Identifier: Apache-2.0
//! `--card`: selects and opens a card.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use viaduct::{Card, Timeouts};
use viaduct_build::{Project, Variant, meant};
use viaduct_pci::{Location, PciError, PciFunction};
pub use viaduct_sim::CardSpec;
use viaduct_sim::{Profile, SimCard, SimConfig};

use crate::fail::{Failure, Result, usage};

/// Options of commands that use a card.
#[derive(clap::Args, Clone, PartialEq)]
pub struct CardArgs {
    /// The card: `sim`, simulated in this process; `unix:PATH`, served by `viaduct card`; `vfio:0000:01:00.0`, a PCI
    /// function bound to vfio-pci
    #[arg(long, value_name = "CARD", default_value = "sim")]
    pub card: CardSpec,
    /// Board and link to simulate; `viaduct info card` lists them
    #[arg(long, value_name = "NAME", value_parser = known_profile)]
    pub profile: Option<String>,
    /// Give up after this number of seconds without activity
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub timeout: Option<u64>,
    #[command(flatten)]
    pub wait: WaitArgs,
}

/// Option of commands that use a card of another process or of the machine.
#[derive(clap::Args, Clone, Copy, Default, PartialEq)]
pub struct WaitArgs {
    /// If another process uses the card, wait until it is free, at most this number of seconds if given
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, value_parser = seconds)]
    wait: Option<Option<u64>>,
}

fn seconds(text: &str) -> std::result::Result<u64, String> {
    text.parse().map_err(|_| {
        "write a whole number of seconds, 0 or more, or --wait alone to wait as long as it takes".to_owned()
    })
}

impl WaitArgs {
    /// Opens a function, immediately or when it is free.
    pub fn open(self, location: &Location) -> Result<Arc<dyn PciFunction>> {
        let limit = match self.wait {
            None => Duration::ZERO,
            Some(None) => Duration::MAX,
            Some(Some(seconds)) => Duration::from_secs(seconds),
        };
        let mut told = String::new();
        let opened = location.open_within(limit, |busy| {
            let who = busy.to_string();
            if who != told {
                tell!("waiting: {who}");
                told = who;
            }
            !crate::process::signals::waiting()
        });
        opened.map_err(|error| match error {
            PciError::Busy(_) if crate::process::signals::waiting() => {
                Failure::Run("ended by a signal while it waited for the card".into())
            }
            // The error ends with "or wait for it".
            PciError::Busy(_) if self.wait.is_none() => Failure::Run(format!("{error} with --wait")),
            PciError::Busy(_) => Failure::Run(format!("{error} for more than {} s", limit.as_secs())),
            _ => Failure::Run(error.to_string()),
        })
    }
}

/// Framing, header and checksum of a read request, write or interrupt on the link, in bytes (`sim/link.h`).
pub const REQUEST: u64 = 24;
/// The same for a completion.
pub const COMPLETION: u64 = 20;

/// An opened card.
pub struct Opened {
    /// For the operations of any card.
    pub card: Arc<Card>,
    /// For operations of a simulated card in this process only.
    pub sim: Option<Simulated>,
}

/// A simulated card in this process, and its profile.
#[derive(Clone)]
pub struct Simulated {
    /// The card.
    pub function: Arc<SimCard>,
    /// Its board.
    pub profile: Profile,
}

impl Simulated {
    /// Use of the link since power-up, in cycles: to the card, from the card.
    pub fn link_cycles(&self) -> (f64, f64) {
        let c = self.function.counters();
        let link = &self.profile.link;
        let completions = c.host_read_bytes.div_ceil(u64::from(link.mps));
        let down = c.host_read_bytes + completions * COMPLETION;
        let up = c.host_write_bytes + (c.host_write_tlps + c.host_read_tlps) * REQUEST;
        let cycle = self.bytes_per_cycle();
        let efficiency = |pct: u32| f64::from(pct) / 100.0;
        (
            down as f64 / (cycle * efficiency(link.read_efficiency_pct)),
            up as f64 / (cycle * efficiency(link.write_efficiency_pct)),
        )
    }

    /// Bytes of packets that the link carries in a cycle, net of the lower layers.
    pub fn bytes_per_cycle(&self) -> f64 {
        self.function.link_bytes_per_cycle()
    }
}

impl CardArgs {
    /// Opens the card; the simulated one is built first if needed.
    pub fn open(&self, variant: Variant) -> Result<Opened> {
        if self.card == CardSpec::Sim {
            let channels = profile(self.profile.as_deref())?.channels;
            crate::project::find()?.build_card(variant, channels, &mut crate::project::tell)?;
        }
        self.open_built(variant)
    }

    /// Fails if an option differs from its default where there is no card.
    pub fn refuse(&self, why: &str) -> Result {
        if *self == crate::options::usual() { Ok(()) } else { usage(why) }
    }

    /// Opens the card; the simulated one as it is, even if it is out of date.
    pub fn open_as_built(&self) -> Result<Opened> {
        self.open_built(Variant::Fast)
    }

    /// Opens a simulated card whose board is the profile as modified by `change`.
    pub fn open_with(
        &self,
        project: &Project,
        variant: Variant,
        change: impl FnOnce(&mut Profile),
    ) -> Result<Opened> {
        let mut profile = profile(self.profile.as_deref())?;
        change(&mut profile);
        project.build_card(variant, profile.channels, &mut crate::project::tell)?;
        let sim = power_up(project, profile, variant)?;
        Ok(Opened { card: Card::open_with(sim.function.clone(), self.timeouts())?, sim: Some(sim) })
    }

    /// Opens a simulated card without functions that has so many slots and a data path of so many bits.
    pub fn open_of(&self, project: &Project, slots: u32, data_width: u32) -> Result<Opened> {
        let object = project.build_card_of(slots, data_width, &mut crate::project::tell)?;
        let sim = power_up_as(project, profile(self.profile.as_deref())?, object, Variant::Fast)?;
        Ok(Opened { card: Card::open_with(sim.function.clone(), self.timeouts())?, sim: Some(sim) })
    }

    fn open_built(&self, variant: Variant) -> Result<Opened> {
        let (function, sim): (Arc<dyn PciFunction>, _) = match &self.card {
            CardSpec::Sim => {
                let sim = simulated(&crate::project::find()?, self.profile.as_deref(), variant)?;
                (sim.function.clone(), Some(sim))
            }
            CardSpec::At(Location::Unix(_)) if self.profile.is_some() => {
                return usage("--profile belongs to the card's own process; give it to `viaduct card`");
            }
            CardSpec::At(_) if self.profile.is_some() => {
                return usage("--profile is for a simulated card in this process; leave it out");
            }
            CardSpec::At(location) => (self.wait.open(location)?, None),
        };
        Ok(Opened { card: Card::open_with(function, self.timeouts())?, sim })
    }

    fn timeouts(&self) -> Timeouts {
        let usual = Timeouts::default();
        let limit = self.timeout.map(Duration::from_secs);
        limit.map_or(usual, |limit| Timeouts { stall: limit, busy: limit, ..usual })
    }
}

/// For options: the name of a profile.
pub fn known_profile(name: &str) -> std::result::Result<String, String> {
    named(name).map(|_| name.to_owned())
}

/// The profile with this name, or the default.
pub fn profile(name: Option<&str>) -> Result<Profile> {
    name.map_or(Ok(Profile::default()), |name| named(name).map_err(Failure::Usage))
}

fn named(name: &str) -> std::result::Result<Profile, String> {
    Profile::by_name(name)
        .ok_or_else(|| format!("no profile named {name:?}; {}", meant(name, Profile::names())))
}

/// A simulated card in this process, as built.
pub fn simulated(project: &Project, profile_name: Option<&str>, variant: Variant) -> Result<Simulated> {
    simulated_with(project, profile_name, variant, |_| {})
}

/// The same with another board: the profile as modified by `change`.
pub fn simulated_with(
    project: &Project,
    profile_name: Option<&str>,
    variant: Variant,
    change: impl FnOnce(&mut Profile),
) -> Result<Simulated> {
    let mut profile = profile(profile_name)?;
    change(&mut profile);
    power_up(project, profile, variant)
}

fn power_up(project: &Project, profile: Profile, variant: Variant) -> Result<Simulated> {
    let object = project.card_object(variant, profile.channels);
    power_up_as(project, profile, object, variant)
}

/// The same with another object of the card.
fn power_up_as(
    project: &Project,
    profile: Profile,
    card_object: PathBuf,
    variant: Variant,
) -> Result<Simulated> {
    let config = SimConfig {
        profile: profile.clone(),
        card_object,
        image_dir: project.images(variant),
        chan_mib: None,
    };
    let sim = SimCard::open(config).map_err(|e| Failure::Run(e.to_string()))?;
    Ok(Simulated { function: Arc::new(sim), profile })
}
