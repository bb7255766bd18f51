// SPDX-License-Identifier: Apache-2.0
//! Cards that are looked at and managed: one that `viaductd` shares, through its socket, or one that nobody uses, which is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::{Uid, User};
use viaduct::{Card, Port, Schedule};
use viaduct_pci::Location;
use viaductd::View;
use viaductd::client::{Error, Kind, Manager};

use crate::card::{CardArgs, CardSpec, WaitArgs};
use crate::fail::{Failure, Result, usage};
use crate::terminal::text::plain;

/// Longest time for a response of the daemon that takes a few register accesses.
pub const SOON: Duration = Duration::from_secs(30);
/// For one that waits for what an app does, or for the files of a slot that ends.
pub const LATER: Duration = Duration::from_secs(300);

/// Options of commands that manage a card.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("whose").required(true).args(["daemon", "card"]))]
pub struct ManagedArgs {
    /// The card that a `viaductd` shares, by its socket: root and the user of the daemon manage all slots, others their own
    #[arg(long, value_name = "PATH")]
    daemon: Option<PathBuf>,
    /// A card that nobody uses: `unix:PATH`, served by `viaduct card`; `vfio:0000:01:00.0`, a PCI function bound to
    /// vfio-pci; `sim`, simulated in this process
    #[arg(long, value_name = "CARD")]
    card: Option<CardSpec>,
    #[command(flatten)]
    wait: WaitArgs,
}

/// A card that is managed.
pub enum Managed {
    /// By a daemon.
    Shared(Manager),
    /// By this program.
    Alone(Arc<Card>),
}

impl ManagedArgs {
    /// Connects to the daemon, whose responses may take so long, or opens the card.
    pub fn open(&self, limit: Duration) -> Result<Managed> {
        match (&self.daemon, &self.card) {
            (Some(_), _) if self.wait != WaitArgs::default() => {
                usage("--wait is for --card: with a daemon nobody has to wait for the card")
            }
            (Some(path), _) => Ok(Managed::Shared(connect(path, limit)?)),
            (None, card) => {
                let card = card.clone().unwrap_or(CardSpec::Sim);
                let args = CardArgs { card, profile: None, timeout: None, wait: self.wait };
                Ok(Managed::Alone(args.open(Default::default())?.card))
            }
        }
    }

    /// What the card is called.
    pub fn place(&self) -> String {
        match (&self.daemon, &self.card) {
            (Some(path), _) => plain(&path.display().to_string()),
            (None, Some(CardSpec::At(Location::Unix(path)))) => plain(&format!("unix:{}", path.display())),
            (None, Some(CardSpec::At(Location::Vfio(address)))) => format!("vfio:{address}"),
            (None, _) => "sim".into(),
        }
    }
}

/// Connects to the daemon at a path, whose responses may take so long.
pub fn connect(path: &Path, limit: Duration) -> Result<Manager> {
    Ok(Manager::connect_within(path, limit)?)
}

impl Managed {
    /// What the card does now.
    pub fn look(&self) -> Result<View> {
        match self {
            Self::Shared(manager) => Ok(manager.look()?),
            Self::Alone(card) => Ok(View::of(card)?.0),
        }
    }

    /// Sets the schedule of a slot.
    pub fn schedule(&self, slot: usize, schedule: &Schedule) -> Result {
        self.shared("a schedule lasts as long as its slot is in use")?
            .set_schedule(slot, schedule)
            .map_err(Failure::from)
    }

    /// Pauses a slot, or ends that.
    pub fn pause(&self, slot: usize, paused: bool) -> Result {
        let manager = self.shared("a pause lasts as long as its slot is in use")?;
        if paused {
            manager.pause(slot)?
        } else {
            manager.resume(slot)?
        };
        Ok(())
    }

    /// Leads a stream to another one.
    pub fn route(&self, source: Port, sink: Port) -> Result {
        let why = "a route lasts as long as the apps at its ends, and runs make theirs themselves (viaduct run --then)";
        Ok(self.shared(why)?.route(source, sink)?)
    }

    /// Ends the route to a sink.
    pub fn cut(&self, sink: Port) -> Result {
        match self {
            Self::Shared(manager) => Ok(manager.cut(sink)?),
            Self::Alone(card) => match card.routes()?.into_iter().find(|(_, to)| *to == sink) {
                Some((source, _)) => Ok(card.cut(source, sink).map(drop)?),
                None => Err(Failure::Run(format!("{sink}: no route leads there"))),
            },
        }
    }

    /// Ends what the app in a slot does, and frees the slot.
    pub fn reset(&self, slot: usize) -> Result {
        match self {
            Self::Shared(manager) => Ok(manager.end(slot)?),
            Self::Alone(card) => Ok(card.slot(slot)?.close()?),
        }
    }

    fn shared(&self, why: &str) -> Result<&Manager> {
        match self {
            Self::Shared(manager) => Ok(manager),
            Self::Alone(_) => usage(format!(
                "{why}, and nobody uses this card; name the socket of its viaductd with --daemon"
            )),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match &error {
            // No such slot, or what a card or this user cannot have.
            Error::Refused(refusal)
                if refusal.kind == Kind::Card
                    && (refusal.errno == nix::libc::EINVAL || refusal.errno == nix::libc::ENOENT) =>
            {
                Failure::Usage(error.to_string())
            }
            _ => Failure::Run(error.to_string()),
        }
    }
}

/// A user: the name if it is known, else the number.
pub fn user(uid: u32) -> String {
    match User::from_uid(Uid::from_raw(uid)) {
        Ok(Some(user)) => plain(&user.name),
        _ => uid.to_string(),
    }
}

/// Bytes in a unit in which they are short.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A schedule in four words: weight, class, rate and what may be in flight.
pub fn shares(schedule: &str) -> [String; 4] {
    let none = || "-".to_owned();
    // One that is not known here is of a daemon of another version.
    let Ok(schedule) = schedule.parse::<Schedule>() else { return [(); 4].map(|()| none()) };
    let rate = schedule.rate.map_or_else(none, |rate| {
        let most = if schedule.limit { "≤" } else { "" };
        format!("{most}{}/s", size(rate.bytes_per_second))
    });
    let class = if schedule.first { "first" } else { "shared" };
    [schedule.weight.to_string(), class.to_owned(), rate, schedule.in_flight.map_or_else(none, size)]
}

/// How a slot is, in a word.
pub fn state(slot: &viaductd::SlotView) -> &'static str {
    let paused = slot.user.as_ref().is_some_and(|user| user.paused);
    match (slot.hidden, &slot.user, slot.loaded, slot.busy, slot.isolated) {
        (true, ..) => "another's",
        (_, Some(_), ..) if paused => "paused",
        (_, _, false, ..) => "empty",
        (_, _, _, _, true) => "stopped",
        (_, _, _, true, _) => "busy",
        _ => "loaded",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short_at_every_magnitude() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1 << 20, "1.0 MiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (1536 << 30, "1.5 TiB"),
            (u64::MAX, "16384.0 PiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
