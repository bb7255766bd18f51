// SPDX-License-Identifier: Apache-2.0
//! `viaduct ls`

use serde_json::json;

use crate::fail::Result;

/// List apps, and what is in the slots of a card
#[derive(clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

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
        println!("{}", json!({"apps": apps}));
        return Ok(());
    }
    let width = apps.iter().filter_map(|a| a["name"].as_str()).map(str::len).max().unwrap_or(0);
    for app in &apps {
        let text = |key: &str| app[key].as_str().unwrap_or("").to_owned();
        let built = if app["built"] == true { "" } else { "  (not built yet)" };
        match app["error"].as_str() {
            Some(e) => println!("{:width$}  error: {e}", text("name")),
            None => println!("{:width$}  {:7} {}{built}", text("name"), text("version"), text("summary")),
        }
    }
    if apps.is_empty() {
        println!("no app yet; start one with `viaduct new`");
    }
    Ok(())
}
