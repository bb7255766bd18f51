// SPDX-License-Identifier: Apache-2.0
//! `viaduct ls`

use serde_json::{Value, json};
use viaduct_build::{Project, Variant};

use crate::card::{CardArgs, CardSpec};
use crate::fail::Result;
use crate::process::tell::out;
use crate::terminal::style::{BAD, NAME, styled};
use crate::terminal::text::plain;

/// List apps, and the slots of a card
#[derive(clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    card: CardArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result {
    let project = crate::project::find()?;
    let mut apps = Vec::new();
    for name in project.apps()? {
        let built = project.images(Default::default()).join(&name).join(format!("{name}.via")).is_file();
        // A broken manifest does not hide the other apps.
        apps.push(match project.load(&name) {
            Ok(app) => json!({"name": name, "version": app.version, "summary": app.summary, "built": built}),
            Err(e) => json!({"name": name, "error": e.to_string(), "built": built}),
        });
    }
    if args.json {
        let slots = slots(&project, &args.card)?;
        return out(&json!({"apps": apps, "slots": slots}).to_string());
    }
    let width = apps.iter().filter_map(|a| a["name"].as_str()).map(str::len).max().unwrap_or(0);
    for app in &apps {
        let text = |key: &str| app[key].as_str().unwrap_or("").to_owned();
        let name = styled(&std::io::stdout(), NAME, format_args!("{:width$}", text("name")));
        let built = if app["built"] == true { "" } else { "  (not built yet)" };
        match app["error"].as_str() {
            Some(e) => {
                out(&format!("{name}  {} {}", styled(&std::io::stdout(), BAD, "error:"), plain(e)))?;
            }
            None => out(&format!("{name}  {:7} {}{built}", text("version"), text("summary")))?,
        }
    }
    if apps.is_empty() {
        out("no app yet; start one with `viaduct new`")?;
    }
    for slot in slots(&project, &args.card)?.iter().flatten() {
        out(&format!("slot {}  {}", slot["slot"], slot["state"].as_str().unwrap_or("")))?;
    }
    Ok(())
}

/// The slots of the card; none if the simulated one is not built, which this command does not do.
fn slots(project: &Project, args: &CardArgs) -> Result<Option<Vec<Value>>> {
    let channels = crate::card::profile(args.profile.as_deref())?.channels;
    if args.card == CardSpec::Sim && !project.card_object(Variant::Fast, channels).is_file() {
        return Ok(None);
    }
    let card = args.open_as_built()?.card;
    let state = |slot| match card.is_loaded(slot) {
        Ok(loaded) => Ok(json!({"slot": slot, "state": if loaded { "holds an app" } else { "empty" }})),
        Err(e) => Err(e.into()),
    };
    (0..card.info().slots).map(state).collect::<Result<_>>().map(Some)
}
