// SPDX-License-Identifier: Apache-2.0
//! `--trace FILE`

use std::path::{Path, PathBuf};
use std::sync::Arc;

use viaduct_pci::Location;
use viaduct_sim::SimCard;
use viaduct_trace::{Time, Trace, TraceError};

use crate::card::{CardSpec, Opened};
use crate::fail::{Failure, Result, reason};
use crate::route::Route;

/// Option of commands that can be traced.
#[derive(clap::Args, Clone)]
pub struct TraceArgs {
    /// Write a trace to this file, for ui.perfetto.dev and other viewers of Chrome's format: commands, faults and calls of the host; of
    /// a card simulated in this process also its streams, memory, link and functions
    #[arg(long = "trace", value_name = "FILE")]
    path: Option<PathBuf>,
}

/// A trace that was asked for, in progress.
pub struct Traced {
    path: PathBuf,
    trace: Trace,
}

impl TraceArgs {
    /// Begins the trace that was asked for, of a card that this program uses; it overwrites none of the files of the routes.
    pub fn begin<'a>(
        &self,
        opened: &Opened,
        card: &CardSpec,
        routes: impl Iterator<Item = &'a Route>,
    ) -> Result<Option<Traced>> {
        let Some(path) = &self.path else { return Ok(None) };
        let kept: Vec<&Path> = routes.filter_map(Route::file).map(Path::new).collect();
        let time = match (&opened.sim, card) {
            (Some(sim), _) => Time::Simulated(&sim.function),
            (None, CardSpec::At(Location::Unix(_))) => Time::Reported,
            (None, _) => Time::Machine,
        };
        let trace = Trace::of_card(path, &kept, &opened.card, time)?;
        Ok(Some(Traced { path: path.clone(), trace }))
    }

    /// Whether none was asked for.
    pub fn is_empty(&self) -> bool {
        self.path.is_none()
    }

    /// Begins the trace that was asked for, of a simulated card that others use.
    pub fn begin_model(&self, sim: &Arc<SimCard>, kept: &[&Path]) -> Result<Option<Traced>> {
        let Some(path) = &self.path else { return Ok(None) };
        let trace = Trace::of_model(path, kept, sim)?;
        Ok(Some(Traced { path: path.clone(), trace }))
    }
}

impl Traced {
    /// Ends the trace; returns a line that says where it is.
    pub fn end(self) -> Result<String> {
        let events = self.trace.end()?;
        Ok(format!("trace: {}, {events} events", self.path.display()))
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        match &error {
            TraceError::Create { path, source } => {
                Failure::Run(format!("{}: {}", path.display(), reason(source)))
            }
            TraceError::Kept { .. } => Failure::Usage(error.to_string()),
            _ => Failure::Run(error.to_string()),
        }
    }
}

/// Tells where a trace is; its failure is the command's if nothing else has failed.
pub fn tell(traced: Result<Option<String>>, result: Result) -> Result {
    match (traced, result) {
        (Ok(line), result) => {
            line.iter().for_each(|line| tell!("{line}"));
            result
        }
        (Err(failure), Ok(())) => Err(failure),
        (Err(failure), result) => {
            failure.report();
            result
        }
    }
}
