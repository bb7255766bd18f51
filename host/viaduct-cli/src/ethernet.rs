// SPDX-License-Identifier: Apache-2.0
//! The board's Ethernet port: options of its line, and `eth:` as an endpoint of a run.

use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use viaduct_sim::backend::{Cable, Net, Runner};
use viaduct_sim::{Board, FunctionCounters, NET, SimCard};

use crate::card::{CardSpec, Opened};
use crate::fail::{Failure, Result, at, usage};
use crate::job::Outcome;
use crate::route::Route;

/// Cycles without a frame after which a line is idle, though the app is not.
const IDLE: u64 = 1_000_000;
/// Cycles in which the largest buffer of a port is empty, at 1 Gbit/s.
const EMPTY: u64 = 2_000_000;

/// Rate of a line in Gbit/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(u32);

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let known = |gbps: &u32| text.strip_suffix('G').is_some_and(|digits| digits == gbps.to_string());
        let found = Board::ETHERNET_GBPS.into_iter().find(known);
        found.map(Self).ok_or_else(|| {
            format!("write {}", Board::ETHERNET_GBPS.map(|gbps| format!("{gbps}G")).join(", "))
        })
    }
}

/// Options of commands that simulate a card with an Ethernet port.
#[derive(clap::Args, Clone, Copy, Default, PartialEq)]
pub struct LineArgs {
    /// Rate of the board's Ethernet port: 1G, 10G, 25G or 100G; that of the board unless given
    #[arg(long, value_name = "RATE")]
    pub line: Option<Rate>,
    /// Longest frame of the Ethernet port, with its frame check sequence; longer ones are dropped: 1518, 9018 with jumbo frames. As long as
    /// the network device can send unless given
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(Board::LEAST_LIMIT as i64..=Board::LONGEST_FRAME as i64))]
    pub max_frame: Option<u32>,
}

impl LineArgs {
    /// Sets the port of a board.
    pub fn apply(&self, board: &mut Board) {
        if let Some(Rate(gbps)) = self.line {
            board.ethernet_gbps = gbps;
        }
        board.ethernet_max_frame = self.max_frame.unwrap_or(board.ethernet_max_frame);
    }
}

/// Options of a run with the endpoint `eth:` on a card simulated in this process.
#[derive(clap::Args, Clone, Default, PartialEq)]
pub struct EthernetArgs {
    /// For eth: what is at the other end of the line: pcap:IN,OUT (captures: frames to the app, one after the other, and from it; either may
    /// be left out), pcap-times:IN,OUT (at the times of their stamps), loop (sends back what the app sends), tap:NAME, unix:PATH[,PEER] (one
    /// frame per datagram) or none
    #[arg(long, value_name = "WHERE")]
    net: Option<Net>,
    #[command(flatten)]
    line: LineArgs,
}

impl EthernetArgs {
    /// Whether routes lead to Ethernet; fails if the options do not fit to that.
    pub fn is_used(&self, ins: &[Route], outs: &[Route], card: &CardSpec, check: bool) -> Result<bool> {
        let used = ins.iter().chain(outs).any(Route::is_ethernet);
        if *self != Self::default() {
            if !used {
                return usage("--net, --line and --max-frame are for an app with --in eth: or --out eth:");
            }
            if *card != CardSpec::Sim {
                return usage(
                    "--net, --line and --max-frame belong to the card's own process; give them to `viaduct card`",
                );
            }
        }
        if used && check {
            return usage("--check needs files; the frames of eth: are not kept");
        }
        Ok(used)
    }

    /// Sets the port of a board.
    pub fn apply(&self, board: &mut Board) {
        self.line.apply(board);
    }

    /// Connects the line, before the run. Frames come once the run has its routes.
    pub fn connect(&self, opened: &Opened, ins: &[Route], outs: &[Route]) -> Result<Ethernet> {
        let Some(sim) = &opened.sim else { return Ok(Ethernet::default()) };
        let card = Arc::clone(&sim.function);
        let to = self.net.as_ref().unwrap_or(&Net::None);
        let cable = Cable::net_run_by(&card, to, Runner::Caller).map_err(at("--net"))?;
        let before = card.function_counters(NET).unwrap_or_default();
        let (receives, sends) = (ins.iter().any(Route::is_ethernet), outs.iter().any(Route::is_ethernet));
        Ok(Ethernet { card: Some(card), cable, before, receives, sends, last: Mutex::default() })
    }
}

/// The line of a run.
#[derive(Default)]
pub struct Ethernet {
    card: Option<Arc<SimCard>>,
    cable: Option<Cable>,
    before: FunctionCounters,
    receives: bool,
    sends: bool,
    /// Frames, and the cycle in which there was first that number of them.
    last: Mutex<(u64, u64)>,
}

/// What has crossed the line in a run.
pub struct Crossed(FunctionCounters);

impl Ethernet {
    /// Whether the run is over: a capture has no more frames and the card is done with those it had, or there is an error.
    pub fn is_over(&self) -> bool {
        let (Some(card), Some(cable)) = (&self.card, &self.cable) else { return false };
        cable.trouble().is_some() || self.receives && cable.is_over() && self.is_idle(card)
    }

    fn is_idle(&self, card: &SimCard) -> bool {
        if card.parked() {
            return true;
        }
        let counters = card.function_counters(NET).unwrap_or_default();
        let frames = counters.rx_packets + counters.rx_drops + counters.tx_packets + counters.tx_drops;
        let now = card.now();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0 != frames || last.1 == 0 {
            *last = (frames, now);
        }
        now - last.1 > IDLE
    }

    /// After the run: lets the last frames leave, and unplugs the line.
    pub fn end(self, outcome: Result<Outcome>) -> Result<(Outcome, Option<Crossed>)> {
        let Some(card) = &self.card else { return outcome.map(|outcome| (outcome, None)) };
        let over = self.cable.as_ref().is_some_and(Cable::is_over);
        if self.sends && outcome.is_ok() {
            card.run(EMPTY);
        }
        let after = card.function_counters(NET).unwrap_or_default();
        let closed = self.cable.map_or(Ok(()), Cable::close).map_err(|e| Failure::Run(e.to_string()));
        // The cause of what else has failed.
        closed?;
        let mut outcome = outcome.map_err(|failure| match failure {
            Failure::Run(_) if over && !crate::process::signals::waiting() => Failure::Run(format!(
                "the line has no more frames, and the app has not ended its output ({})",
                failure.message()
            )),
            other => other,
        })?;
        let crossed = Crossed(since(&after, &self.before));
        if !self.receives && crossed.0.tx_drops > 0 {
            return Err(Failure::Run(format!("what the app has sent was dropped. {}", crossed.text())));
        }
        outcome.bytes_in += crossed.0.rx_bytes;
        outcome.bytes_out += crossed.0.tx_bytes;
        Ok((outcome, Some(crossed)))
    }
}

fn since(after: &FunctionCounters, before: &FunctionCounters) -> FunctionCounters {
    FunctionCounters {
        tx_packets: after.tx_packets - before.tx_packets,
        tx_bytes: after.tx_bytes - before.tx_bytes,
        tx_short: after.tx_short - before.tx_short,
        tx_long: after.tx_long - before.tx_long,
        tx_down: after.tx_down - before.tx_down,
        tx_full: after.tx_full - before.tx_full,
        tx_drops: after.tx_drops - before.tx_drops,
        rx_packets: after.rx_packets - before.rx_packets,
        rx_bytes: after.rx_bytes - before.rx_bytes,
        rx_short: after.rx_short - before.rx_short,
        rx_long: after.rx_long - before.rx_long,
        rx_fcs: after.rx_fcs - before.rx_fcs,
        rx_down: after.rx_down - before.rx_down,
        rx_full: after.rx_full - before.rx_full,
        rx_drops: after.rx_drops - before.rx_drops,
        ..*after
    }
}

impl Crossed {
    /// As a line.
    pub fn text(&self) -> String {
        let c = &self.0;
        let direction = |frames: u64, drops: u64, causes: &[(u64, &str)]| {
            let causes: Vec<String> =
                causes.iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{n} {why}")).collect();
            match drops {
                0 => frames.to_string(),
                _ => format!("{frames} ({} dropped: {})", drops, causes.join(", ")),
            }
        };
        let ins = [
            (c.rx_short, "too short"),
            (c.rx_long, "too long"),
            (c.rx_fcs, "damaged"),
            (c.rx_down, "while the link was down"),
            (c.rx_full, "without room"),
        ];
        let outs = [
            (c.tx_short, "too short"),
            (c.tx_long, "too long"),
            (c.tx_down, "while the link was down"),
            (c.tx_full, "not taken"),
        ];
        format!(
            "Ethernet: frames in {}, frames out {}",
            direction(c.rx_packets, c.rx_drops, &ins),
            direction(c.tx_packets, c.tx_drops, &outs)
        )
    }

    /// As JSON.
    pub fn json(&self) -> serde_json::Value {
        let c = &self.0;
        json!({
            "frames_in": c.rx_packets,
            "frames_out": c.tx_packets,
            "dropped_in": {"short": c.rx_short, "long": c.rx_long, "fcs": c.rx_fcs, "link": c.rx_down, "room": c.rx_full},
            "dropped_out": {"short": c.tx_short, "long": c.tx_long, "link": c.tx_down, "room": c.tx_full},
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_ports() {
        for (text, gbps) in [("1G", 1), ("10G", 10), ("25G", 25), ("100G", 100)] {
            assert_eq!(text.parse(), Ok(Rate(gbps)));
        }
        for bad in ["", "G", "10", "10g", "2G", "010G", "-1G", "10GB"] {
            assert_eq!(bad.parse::<Rate>().unwrap_err(), "write 1G, 10G, 25G, 100G", "{bad}");
        }
    }

    #[test]
    fn causes_are_told() {
        let crossed = Crossed(FunctionCounters {
            rx_packets: 7,
            rx_drops: 3,
            rx_fcs: 2,
            rx_short: 1,
            ..FunctionCounters::default()
        });
        assert_eq!(crossed.text(), "Ethernet: frames in 7 (3 dropped: 1 too short, 2 damaged), frames out 0");
    }
}
