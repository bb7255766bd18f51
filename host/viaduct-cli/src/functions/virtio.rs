// SPDX-License-Identifier: Apache-2.0
//! `virtio:FUNCTION` as an endpoint: an app's stream 0 is the user side of one of the card's functions, while this program runs.

use std::time::Duration;

use viaduct::{Attachment, FunctionKind, FunctionStatus};
use viaduct_build::Manifest;

use crate::card::{CardSpec, Opened};
use crate::fail::{Failure, Result, usage};
use crate::functions::connect::MAC;
use crate::process::signals::Signals;
use crate::route::{Port, Route, Way, resolve};

const LOOK: Duration = Duration::from_millis(100);

fn function(route: &Route) -> Option<&str> {
    route.endpoint.strip_prefix("virtio:")
}

/// The function of the routes; `None` if there is none. Everything possible is checked before the card is opened.
pub fn function_of(
    app: &Manifest,
    ins: &[Route],
    outs: &[Route],
    card: &CardSpec,
) -> Result<Option<FunctionKind>> {
    let Some(name) = ins.iter().chain(outs).find_map(function) else { return Ok(None) };
    let kind: FunctionKind = name.parse().map_err(Failure::Usage)?;
    match kind {
        FunctionKind::Net | FunctionKind::Console | FunctionKind::Entropy | FunctionKind::Input => {}
        FunctionKind::Blk => {
            return usage("a disk needs a store as well: viaduct card --disk-app puts an app in its path");
        }
        FunctionKind::Xdma => return usage("the XDMA-compatible function has no user side"),
    }
    if !app.one_stream_each_way() || app.memory.is_some() {
        return usage(format!("app {} must have one stream in and one out, and no other port", app.name));
    }
    let leads_there = |way, routes: &[Route]| -> Result<bool> {
        let found = resolve(app, way, routes)?;
        Ok(matches!(&found[..], [(Port::Stream(0), route)] if function(route) == Some(name)))
    };
    if !leads_there(Way::In, ins)? || !leads_there(Way::Out, outs)? {
        return usage(format!(
            "a function has both directions of an app: give --in virtio:{kind} and --out virtio:{kind}, no other route"
        ));
    }
    if *card == CardSpec::Sim {
        return usage(
            "no driver can reach a card that is simulated in this process: use `viaduct card --functions DIR --unconnected`, and here --card unix:DIR/mgmt.sock",
        );
    }
    Ok(Some(kind))
}

/// Connects the function to the slot until a signal arrives; returns the number of messages to the app, and from it.
pub fn serve(
    opened: &Opened,
    app: &str,
    slot: usize,
    kind: FunctionKind,
    signals: &mut Signals,
) -> Result<(u32, u32)> {
    let function = opened.card.function(kind)?;
    if kind == FunctionKind::Net {
        function.set_mac(MAC)?;
    }
    let before = function.status()?;
    function.attach(Attachment::Slot(slot))?;
    function.set_up(true)?;
    tell!("{app} in slot {slot} is behind {kind}; Ctrl-C ends it");
    let after: Result<FunctionStatus> = loop {
        std::thread::sleep(LOOK);
        match function.status() {
            Err(e) => break Err(e.into()),
            Ok(status) if signals.taken().is_some() => break Ok(status),
            Ok(status) if !status.attached => {
                break Err(Failure::Run(format!(
                    "slot {slot} was isolated: {app} violated a rule of its ports"
                )));
            }
            Ok(_) => {}
        }
    };
    let gone = function.set_up(false).and_then(|()| function.attach(Attachment::Nothing));
    let after = after?;
    gone?;
    Ok((after.sent.wrapping_sub(before.sent), after.received.wrapping_sub(before.received)))
}
