// SPDX-License-Identifier: Apache-2.0
//! `viaduct info`

use serde_json::{Value, json};
use viaduct_build::{Access, Length, Manifest, Project, Variant};

use crate::fail::Result;

/// Show an app's ports and registers
#[derive(clap::Args)]
pub struct Args {
    /// App
    #[arg(value_name = "APP")]
    what: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> Result {
    let project = crate::project::find()?;
    let app = project.load(&args.what)?;
    let value = describe(&project, &app);
    if args.json {
        println!("{value}");
    } else {
        print_app(&app);
    }
    Ok(())
}

fn length(l: Length) -> String {
    match l {
        Length::Same => "as long as the input".to_owned(),
        Length::Message(n) => format!("{n} bytes a message"),
        Length::Any => "any length".to_owned(),
    }
}

fn access(a: Access) -> &'static str {
    match a {
        Access::Rw => "rw",
        Access::Ro => "ro",
        Access::Pulse => "pulse",
    }
}

/// The reset value as hexadecimal number.
fn hex(words: &[u32]) -> String {
    let digits: String = words.iter().rev().map(|w| format!("{w:08x}")).collect();
    let digits = digits.trim_start_matches('0');
    format!("0x{}", if digits.is_empty() { "0" } else { digits })
}

fn describe(project: &Project, app: &Manifest) -> Value {
    let image = project.images(Variant::Fast).join(&app.name).join(format!("{}.via", app.name));
    json!({
        "name": app.name,
        "version": app.version,
        "summary": app.summary,
        "folder": app.dir,
        "image": image.is_file().then_some(image),
        "data_width": app.data_width,
        "stream_in": app.stream_in.iter().map(|s| json!({"name": s.name, "lanes": s.lanes})).collect::<Vec<_>>(),
        "stream_out": app.stream_out.iter().map(|s| json!({"name": s.name, "length": length(s.length)})).collect::<Vec<_>>(),
        "memory": app.memory.as_ref().map(|m| &m.name),
        "registers": app.registers.iter().map(|r| json!({
            "name": r.name, "offset": r.offset, "width": r.width, "access": access(r.access), "required": r.required,
            "reset": hex(&r.reset), "doc": r.doc,
        })).collect::<Vec<_>>(),
        "model": app.model,
    })
}

fn print_app(app: &Manifest) {
    println!("{} {}: {}", app.name, app.version, app.summary);
    for s in &app.stream_in {
        let lanes = if s.lanes > 1 { format!(", {} messages at a time", s.lanes) } else { String::new() };
        println!("  --in  {:12} stream{lanes}", s.name);
    }
    for s in &app.stream_out {
        println!("  --out {:12} stream, {}", s.name, length(s.length));
    }
    if let Some(m) = &app.memory {
        println!("  --in/--out {:7} memory", m.name);
    }
    for r in &app.registers {
        let how = match r.access {
            Access::Rw if r.required => "must be given".to_owned(),
            Access::Rw => format!("default {}", hex(&r.reset)),
            Access::Ro => "read only".to_owned(),
            Access::Pulse => "pulse".to_owned(),
        };
        let doc = if r.doc.is_empty() { String::new() } else { format!(": {}", r.doc) };
        println!("  --set {:12} {} bits, {how}{doc}", r.name, r.width);
    }
    println!("  golden model: {}", if app.model.is_some() { "yes" } else { "no" });
}
