// SPDX-License-Identifier: Apache-2.0
//! `--trace` and `--metrics` of commands that run a simulated card for other programs.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use viaduct_metrics::{Server, Snapshot};

use crate::card::Simulated;
use crate::fail::Result;
use crate::trace::{TraceArgs, Traced};

/// Options for who wants to see what the card does.
#[derive(clap::Args, Clone)]
pub struct WatchArgs {
    #[command(flatten)]
    trace: TraceArgs,
    /// Serve the card's counters over HTTP at this address: /metrics for collectors of metrics, and for `viaduct top`
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<String>,
}

/// What was asked for, in progress.
pub struct Watched {
    trace: Option<Traced>,
    metrics: Option<Server>,
}

impl WatchArgs {
    /// Begins what was asked for; a trace overwrites none of the files `kept`.
    pub fn begin(&self, sim: &Simulated, kept: &[&Path]) -> Result<Watched> {
        let (card, board) = (Arc::clone(&sim.function), sim.profile.name);
        let serve = |address: &String| Server::start(address, move || Snapshot::of(&card, board));
        let metrics = self.metrics.as_ref().map(serve).transpose()?;
        Ok(Watched { trace: self.trace.begin_model(&sim.function, kept)?, metrics })
    }

    /// Whether nothing was asked for.
    pub fn is_empty(&self) -> bool {
        self.metrics.is_none() && self.trace.is_empty()
    }
}

impl Watched {
    /// A line for the user that says where the counters are.
    pub fn line(&self) -> Option<String> {
        let place =
            |at: SocketAddr| format!("counters at http://{at}/metrics; watch them with viaduct top {at}");
        self.metrics.as_ref().map(|server| place(server.address()))
    }

    /// Ends it; returns a line that says where the trace is.
    pub fn end(self) -> Result<Option<String>> {
        self.trace.map(Traced::end).transpose()
    }
}
