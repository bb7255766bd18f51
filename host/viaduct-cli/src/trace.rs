// SPDX-License-Identifier: Apache-2.0
//! `--trace FILE`

use std::path::{Path, PathBuf};
use std::sync::Arc;

use viaduct_sim::SimCard;
use viaduct_trace::{Trace, TraceError};

use crate::card::Opened;
use crate::fail::{Failure, Result, reason, usage};
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
        routes: impl Iterator<Item = &'a Route>,
    ) -> Result<Option<Traced>> {
        let Some(path) = &self.path else { return Ok(None) };
        for route in routes.filter_map(Route::file) {
            if is_same(path, Path::new(route)) {
                let path = path.display();
                return usage(format!("--trace {path}: this file is an input or an output; name another"));
            }
        }
        let sim = opened.sim.as_ref().map(|sim| &sim.function);
        let trace = Trace::of_card(path, &opened.card, sim)?;
        Ok(Some(Traced { path: path.clone(), trace }))
    }

    /// Whether none was asked for.
    pub fn is_empty(&self) -> bool {
        self.path.is_none()
    }

    /// Begins the trace that was asked for, of a simulated card that others use.
    pub fn begin_model(&self, sim: &Arc<SimCard>) -> Result<Option<Traced>> {
        let Some(path) = &self.path else { return Ok(None) };
        let trace = Trace::of_model(path, sim)?;
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

/// Whether two paths lead to one file.
fn is_same(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => std::path::absolute(a).ok() == std::path::absolute(b).ok(),
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        match &error {
            TraceError::Create { path, source } => {
                Failure::Run(format!("{}: {}", path.display(), reason(source)))
            }
            _ => Failure::Run(error.to_string()),
        }
    }
}
