// SPDX-License-Identifier: Apache-2.0
//! `viaduct route`

use viaduct::Port;
use viaductd::View;

use crate::fail::{Failure, Result};
use crate::managed::{LATER, ManagedArgs};
use crate::process::tell::out;
use crate::terminal::text::plain;

/// List the routes of a card, make one, or cut some
#[derive(clap::Args)]
pub struct Args {
    /// Where messages come from: slot:N or slot:N:STREAM, an output; board:net, board:console
    #[arg(value_name = "SOURCE", requires = "sink", value_parser = end)]
    source: Option<Port>,
    /// Where they go to: an input of a slot, or a port of the board; what it took before ends with its present message
    #[arg(value_name = "SINK", value_parser = end)]
    sink: Option<Port>,
    /// End the route to this sink; repeat for more
    #[arg(long, value_name = "SINK", conflicts_with = "source", value_parser = end)]
    cut: Vec<Port>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    card: ManagedArgs,
}

fn end(text: &str) -> std::result::Result<Port, String> {
    text.parse().map_err(|error: viaduct::Error| error.to_string())
}

/// Runs the command.
pub fn run(args: Args) -> Result {
    let card = args.card.open(LATER)?;
    args.cut.iter().try_for_each(|sink| card.cut(*sink))?;
    if let (Some(source), Some(sink)) = (args.source, args.sink) {
        card.route(source, sink)?;
    }
    if !args.json && (args.source.is_some() || !args.cut.is_empty()) {
        return Ok(());
    }
    let view = card.look()?;
    match args.json {
        true => out(&serde_json::to_string(&view.routes).map_err(|e| Failure::Run(e.to_string()))?),
        false => out(lines(&view).trim_end()),
    }
}

/// A line for each route.
fn lines(view: &View) -> String {
    if view.routes.is_empty() {
        return "no routes".into();
    }
    let app = |end: &str| {
        let slot = end.parse::<Port>().ok().and_then(Port::slot).and_then(|slot| view.slots.get(slot));
        slot.and_then(|slot| slot.user.as_ref())
            .map_or(String::new(), |user| format!(" ({})", plain(&user.app)))
    };
    let line = |route: &viaductd::RouteView| {
        let (from, to) = (plain(&route.source), plain(&route.sink));
        let state = match route.changing {
            true => "changes after this message",
            false if from.starts_with("virtio:") => "attached",
            false => "in effect",
        };
        format!("{from}{} -> {to}{}: {state}\n", app(&route.source), app(&route.sink))
    };
    view.routes.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use viaductd::{Occupant, RouteView, SlotView};

    use super::*;

    #[test]
    fn a_route_is_a_line_with_its_apps_and_its_state() {
        let used = |app: &str| SlotView {
            user: Some(Occupant { app: app.into(), ..Occupant::default() }),
            ..SlotView::default()
        };
        let route =
            |from: &str, to: &str, changing| RouteView { source: from.into(), sink: to.into(), changing };
        let mut view = View { slots: vec![used("aes"), used("sha256")], ..View::default() };
        assert_eq!(lines(&view), "no routes");
        view.routes = vec![
            route("slot:0:0", "slot:1:0", false),
            route("virtio:net", "slot:9:0", false),
            route("slot:1:0", "board:net", true),
        ];
        assert_eq!(
            lines(&view),
            "slot:0:0 (aes) -> slot:1:0 (sha256): in effect\nvirtio:net -> slot:9:0: attached\n\
             slot:1:0 (sha256) -> board:net: changes after this message\n"
        );
    }
}
