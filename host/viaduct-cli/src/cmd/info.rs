// SPDX-License-Identifier: Apache-2.0
//! `viaduct info`

use std::sync::Arc;

use serde_json::{Value, json};
use viaduct::{Card, Features, FunctionKind, Measured, SystemMonitor};
use viaduct_build::{Access, Length, Manifest, Project, Variant};
use viaduct_sim::Profile;

use crate::card::CardArgs;
use crate::fail::Result;
use crate::process::tell::out;

/// Show an app's ports and registers, or a card's properties
#[derive(clap::Args)]
pub struct Args {
    /// App, or `card`
    #[arg(value_name = "APP|card")]
    what: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    card: CardArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result {
    let project = crate::project::find();
    // An app named `card` takes precedence. A card does not need a project.
    let an_app =
        || project.as_ref().is_ok_and(|p| p.apps().is_ok_and(|apps| apps.iter().any(|a| a == "card")));
    if args.what == "card" && !an_app() {
        return card(&args);
    }
    args.card.refuse("--card and the options with it are for `info card`; leave them out")?;
    let project = project?;
    let app = project.load(&args.what)?;
    match args.json {
        true => out(&describe(&project, &app).to_string()),
        false => out(&text(&app)),
    }
}

fn card(args: &Args) -> Result {
    let opened = args.card.open(Variant::Functions)?;
    let info = opened.card.info();
    if args.json {
        let profiles: Vec<Value> = Profile::names()
            .filter_map(Profile::by_name)
            .map(|p| json!({"name": p.name, "summary": p.summary}))
            .collect();
        let tlb = |t: viaduct::Tlb| json!({"ways": t.ways, "sets": t.sets});
        return out(&json!({
            "version": format!("{}.{}", info.version.0, info.version.1),
            "slots": info.slots, "channels": info.channels, "streams": info.streams,
            "data_bytes": info.data_bytes, "clock_khz": info.clock_khz, "chan_mib": info.chan_mib,
            "tlb_page": tlb(info.tlb_page), "tlb_huge": tlb(info.tlb_huge), "profiles": profiles,
            "system_monitor": opened.card.system_monitor()?.map(|monitor| monitor_json(&monitor)),
            "functions": functions(&opened.card)?.iter().map(|(kind, features)| {
                let names = |bits| Features::names(*kind, bits);
                json!({"name": kind.name(), "offered": names(features.offered), "withheld": names(features.withheld()),
                       "negotiated": names(features.negotiated)})
            }).collect::<Vec<_>>(),
        })
        .to_string());
    }
    out(&format!("card with register map {}.{}", info.version.0, info.version.1))?;
    out(&format!(
        "  {} slots, {} stream(s) each way, {} bytes per beat, {} MHz",
        info.slots,
        info.streams,
        info.data_bytes,
        f64::from(info.clock_khz) / 1e3
    ))?;
    out(&format!("  {} DRAM channels of {} MiB", info.channels, info.chan_mib))?;
    let tlb = |t: viaduct::Tlb| format!("{} ways x {} sets", t.ways, t.sets);
    out(&format!(
        "  translations of a slot: {} of 4 KiB pages, {} of 2 MiB pages",
        tlb(info.tlb_page),
        tlb(info.tlb_huge)
    ))?;
    if let Some(monitor) = opened.card.system_monitor()? {
        monitor_text(&monitor).iter().try_for_each(|line| out(line))?;
    }
    for (kind, features) in functions(&opened.card)? {
        out(&format!("  function {kind}"))?;
        for (what, bits) in [
            ("offered", features.offered),
            ("withheld", features.withheld()),
            ("negotiated", features.negotiated),
        ] {
            let names = Features::names(kind, bits);
            let names = if names.is_empty() { "nothing".to_owned() } else { names.join(" ") };
            out(&format!("    {what:10} {names}"))?;
        }
    }
    let Some(sim) = &opened.sim else { return Ok(()) };
    out(&format!(
        "simulated, profile {}: link of {:.2} bytes per cycle each way",
        sim.profile.name,
        sim.bytes_per_cycle()
    ))?;
    for profile in Profile::names().filter_map(Profile::by_name) {
        out(&format!("  --profile {:8} {}", profile.name, profile.summary))?;
    }
    Ok(())
}

/// The values of the system monitor: names, units, values.
fn monitored(m: &SystemMonitor) -> [(&'static str, &'static str, Measured); 4] {
    [
        ("temperature", "°C", m.temperature),
        ("vccint", "V", m.vccint),
        ("vccaux", "V", m.vccaux),
        ("vccbram", "V", m.vccbram),
    ]
}

fn monitor_text(monitor: &SystemMonitor) -> Vec<String> {
    let of = if monitor.model { " (values of a model: a simulated card has no sensors)" } else { "" };
    let mut lines = vec![format!("  system monitor{of}")];
    for (name, unit, Measured { last, min, max }) in monitored(monitor) {
        lines.push(format!("    {name:11} {last:.3} {unit}, {min:.3} to {max:.3} {unit} so far"));
    }
    if let (Some(current), Some(power)) = (monitor.current, monitor.power()) {
        lines.push(format!("    {:11} {current:.1} A, {power:.1} W", "vccint load"));
    }
    lines
}

fn monitor_json(monitor: &SystemMonitor) -> Value {
    let mut values = json!({"model": monitor.model, "current": monitor.current, "power": monitor.power()});
    for (name, _, Measured { last, min, max }) in monitored(monitor) {
        values[name] = json!({"last": last, "min": min, "max": max});
    }
    values
}

/// The card's virtio functions.
fn functions(card: &Arc<Card>) -> Result<Vec<(FunctionKind, Features)>> {
    let virtio = FunctionKind::ALL.into_iter().filter(|kind| *kind != FunctionKind::Xdma);
    let present = virtio.filter_map(|kind| card.function(kind).ok());
    present.map(|function| Ok((function.kind(), function.status()?.features))).collect()
}

fn length(l: Length) -> String {
    match l {
        Length::Same => "as long as the input".to_owned(),
        Length::Message(n) => format!("{n} bytes per message"),
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

fn text(app: &Manifest) -> String {
    let mut lines = vec![format!("{} {}: {}", app.name, app.version, app.summary)];
    for s in &app.stream_in {
        let lanes = if s.lanes > 1 { format!(", {} messages at a time", s.lanes) } else { String::new() };
        lines.push(format!("  --in  {:12} stream{lanes}", s.name));
    }
    for s in &app.stream_out {
        lines.push(format!("  --out {:12} stream, {}", s.name, length(s.length)));
    }
    if let Some(m) = &app.memory {
        lines.push(format!("  --in/--out {:7} memory", m.name));
    }
    for r in &app.registers {
        let how = match r.access {
            Access::Rw if r.required => "must be given".to_owned(),
            Access::Rw => format!("default {}", hex(&r.reset)),
            Access::Ro => "read only".to_owned(),
            Access::Pulse => "pulse".to_owned(),
        };
        let option = if r.access == Access::Rw { "--set" } else { "     " };
        let doc = if r.doc.is_empty() { String::new() } else { format!(": {}", r.doc) };
        let bits = if r.width == 1 { "bit" } else { "bits" };
        lines.push(format!("  {option} {:12} {} {bits}, {how}{doc}", r.name, r.width));
    }
    lines.push(format!("  golden model: {}", if app.model.is_some() { "yes" } else { "no" }));
    lines.join("\n")
}
