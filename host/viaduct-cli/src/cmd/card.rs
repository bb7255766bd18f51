// SPDX-License-Identifier: Apache-2.0
//! `viaduct card`

use std::path::PathBuf;

use nix::sys::signal::{SigSet, Signal};
use viaduct_build::Variant;
use viaduct_pci::vfio_user::Server;

use super::run::out;
use crate::fail::{Failure, Result};

/// Serve a simulated card over vfio-user, for other programs and for QEMU; ends on SIGTERM or Ctrl-C
#[derive(clap::Args)]
pub struct Args {
    /// Socket to serve it on
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Board and link to simulate; `viaduct info card` lists them
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
}

pub fn run(args: Args) -> Result {
    let project = crate::project::find()?;
    // Before any thread is started, so that no other one is ended by the signals.
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGINT);
    signals.thread_block().map_err(|e| Failure::Run(format!("signals: {e}")))?;
    project.build_card(Variant::Fast, &mut crate::project::tell)?;
    let card = crate::card::simulated(&project, args.profile.as_deref(), Variant::Fast)?;
    let mut server = Server::bind(&args.socket, card.function).map_err(|e| Failure::Run(e.to_string()))?;
    out(&format!("card on {}; use it with --card unix:{}", args.socket.display(), args.socket.display()))?;
    signals.wait().map_err(|e| Failure::Run(format!("signals: {e}")))?;
    server.stop();
    Ok(())
}
