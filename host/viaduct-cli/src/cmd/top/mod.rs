// SPDX-License-Identifier: Apache-2.0
//! `viaduct top`

mod rates;
mod screen;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use viaduct_metrics::{MetricsError, Snapshot, fetch};
use viaductd::View;
use viaductd::client::Manager;

use crate::fail::{Failure, Result, at};
use crate::managed::connect;
use crate::process::signals::Signals;
use crate::process::tell::out;
use crate::terminal::text::plain;
use rates::Rates;
use screen::{Heard, Screen};

/// Longest time for a daemon's response.
const LIMIT: Duration = Duration::from_secs(10);
/// Between two looks whether a look was taken.
const TICK: Duration = Duration::from_millis(50);

/// Watch a card: link, slots, memory and functions, or slots, users, waits and routes; `q` ends it
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("watched").required(true).args(["address", "daemon"]))]
pub struct Args {
    /// Where its counters are served: the address of `viaduct card --metrics`
    #[arg(value_name = "HOST:PORT")]
    address: Option<String>,
    /// The card that a `viaductd` shares, by its socket
    #[arg(long, value_name = "PATH")]
    daemon: Option<PathBuf>,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// Print this number of looks as text and end; without it text is printed for ever if standard output is no terminal
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

/// Runs the command.
pub fn run(args: Args) -> Result {
    // Before any thread is started.
    let signals = Signals::take()?;
    let interval = Duration::from_secs(args.interval);
    let (name, mut card) = match (args.address, args.daemon) {
        (Some(address), _) => (address.clone(), Card::Served(address)),
        (None, path) => {
            let path = path.unwrap_or_default();
            (plain(&path.display().to_string()), Card::Shared(path, None))
        }
    };
    let first = card.look()?;
    let looks = Looks::start(card)?;
    let terminals = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if args.count.is_none() && terminals {
        let mut screen = Screen::open().map_err(at("terminal"))?;
        return watch(&name, &mut screen, &signals, &looks, first, interval);
    }
    let mut before = (Instant::now(), first);
    for _ in 0..args.count.unwrap_or(u64::MAX) {
        if signals.wait_for(interval)? {
            return Ok(());
        }
        looks.ask();
        let look = loop {
            match looks.taken() {
                Some(look) => break look,
                None if signals.wait_for(TICK)? => return Ok(()),
                None => {}
            }
        };
        let now = Instant::now();
        match look {
            Ok(new) => {
                out(&before.1.until(&new, now - before.0).text())?;
                before = (now, new);
            }
            Err(error) => tell!("{}", error.message()),
        }
    }
    Ok(())
}

/// Where looks come from.
enum Card {
    /// The counters at an address.
    Served(String),
    /// A daemon at a path, and the connection to it if there is one.
    Shared(PathBuf, Option<Manager>),
}

/// A look.
enum Look {
    Served(Snapshot),
    Shared(View),
}

impl Card {
    fn look(&mut self) -> Result<Look> {
        match self {
            Self::Served(address) => Ok(Look::Served(fetch(address)?)),
            Self::Shared(path, manager) => {
                let connected = match manager.take() {
                    Some(connected) => connected,
                    None => connect(path, LIMIT)?,
                };
                let view = connected.look()?;
                // After an error it connects anew, as the daemon may be another one.
                *manager = Some(connected);
                Ok(Look::Shared(view))
            }
        }
    }
}

impl Look {
    /// What the card has done until a later look.
    fn until(&self, later: &Self, wall: Duration) -> Rates {
        match (self, later) {
            (Self::Served(old), Self::Served(new)) => Rates::between(old, new, wall),
            (Self::Shared(old), Self::Shared(new)) => Rates::of_slots(old, new, wall),
            // They come from one card.
            (_, Self::Served(new)) => Rates::between(new, new, wall),
            (_, Self::Shared(new)) => Rates::of_slots(new, new, wall),
        }
    }
}

/// Takes looks in a thread of its own: a card that does not answer holds up neither keys nor signals.
struct Looks {
    ask: SyncSender<()>,
    taken: Receiver<Result<Look>>,
}

impl Looks {
    /// The thread ends with this value, or with the program.
    fn start(mut card: Card) -> Result<Self> {
        let (ask, asked) = sync_channel(1);
        let (look, taken) = sync_channel(1);
        let run = move || while asked.recv().is_ok() && look.send(card.look()).is_ok() {};
        std::thread::Builder::new().name("looks".into()).spawn(run).map_err(at("a thread"))?;
        Ok(Self { ask, taken })
    }

    /// Begins a look; the one before has been taken.
    fn ask(&self) {
        let _ = self.ask.try_send(());
    }

    /// A look that has been taken.
    fn taken(&self) -> Option<Result<Look>> {
        self.taken.try_recv().ok()
    }
}

/// Shows the rates until the user or a signal ends it. A card that is gone for a while is waited for.
fn watch(
    address: &str,
    screen: &mut Screen,
    signals: &Signals,
    looks: &Looks,
    first: Look,
    interval: Duration,
) -> Result {
    let mut rates = first.until(&first, interval);
    let mut before = (Instant::now(), first);
    let (mut trouble, mut next) = (None, before.0 + interval);
    let (mut asked, mut draw) = (false, true);
    loop {
        if std::mem::take(&mut draw) {
            screen.draw(address, &rates, trouble.as_deref()).map_err(at("terminal"))?;
        }
        match screen.wait(signals, TICK).map_err(at("terminal"))? {
            Heard::End => return Ok(()),
            Heard::Draw => draw = true,
            Heard::Nothing => {}
        }
        let now = Instant::now();
        if now >= next && !asked {
            looks.ask();
            (asked, next) = (true, now + interval);
        }
        let Some(look) = looks.taken() else { continue };
        (asked, draw) = (false, true);
        match look {
            Ok(new) => {
                rates = before.1.until(&new, now - before.0);
                (before, trouble) = ((now, new), None);
            }
            Err(error) => trouble = Some(error.message().to_owned()),
        }
    }
}

impl From<MetricsError> for Failure {
    fn from(error: MetricsError) -> Self {
        match &error {
            MetricsError::Address { address, source } => {
                Failure::Run(format!("{address}: {}", crate::fail::reason(source)))
            }
            _ => Failure::Run(error.to_string()),
        }
    }
}
