// SPDX-License-Identifier: Apache-2.0
//! `viaduct reset`

use crate::fail::Result;
use crate::managed::{LATER, ManagedArgs};

/// End what the app in a slot does, and free the slot; its user gets an error, and nobody else is disturbed
#[derive(clap::Args)]
pub struct Args {
    /// Number of the slot
    slot: usize,
    #[command(flatten)]
    card: ManagedArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result {
    args.card.open(LATER)?.reset(args.slot)
}
