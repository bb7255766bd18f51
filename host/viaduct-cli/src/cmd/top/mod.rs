// SPDX-License-Identifier: Apache-2.0
//! `viaduct top`

mod rates;
mod screen;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use viaduct_metrics::{MetricsError, Snapshot, fetch};

use crate::fail::{Failure, Result};
use crate::process::signals::Signals;
use crate::process::tell::out;
use rates::Rates;
use screen::Screen;

/// Watch a card: link, slots, memory and functions; `q` ends it
#[derive(clap::Args)]
pub struct Args {
    /// Where its counters are served: the address of `viaduct card --metrics`
    #[arg(value_name = "HOST:PORT")]
    address: String,
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
    let mut signals = Signals::take()?;
    let interval = Duration::from_secs(args.interval);
    let mut before = (Instant::now(), fetch(&args.address)?);
    if args.count.is_none() && std::io::stdout().is_terminal() {
        let mut screen = Screen::open().map_err(crate::fail::at("terminal"))?;
        let watched = watch(&args, &mut screen, &mut signals, before, interval);
        drop(screen);
        return watched;
    }
    let mut left = args.count.unwrap_or(u64::MAX);
    while left > 0 {
        if signals.wait_for(interval)? {
            return Ok(());
        }
        let now = (Instant::now(), fetch(&args.address)?);
        out(&Rates::between(&before.1, &now.1, now.0 - before.0).text())?;
        before = now;
        left -= 1;
    }
    Ok(())
}

/// Shows the rates until the user or a signal ends it. A card that is gone for a moment is waited for.
fn watch(
    args: &Args,
    screen: &mut Screen,
    signals: &mut Signals,
    mut before: (Instant, Snapshot),
    interval: Duration,
) -> Result {
    let mut rates = Rates::between(&before.1, &before.1, interval);
    let (mut trouble, mut look) = (None, before.0);
    loop {
        screen.draw(&args.address, &rates, trouble.as_deref()).map_err(crate::fail::at("terminal"))?;
        look += interval;
        while Instant::now() < look {
            if screen.is_over(look).map_err(crate::fail::at("terminal"))?
                || signals.wait_for(Duration::ZERO)?
            {
                return Ok(());
            }
        }
        let taken = Instant::now();
        match fetch(&args.address) {
            Ok(now) => {
                rates = Rates::between(&before.1, &now, taken - before.0);
                (before, trouble) = ((taken, now), None);
            }
            Err(error) => trouble = Some(error.to_string()),
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
