// SPDX-License-Identifier: Apache-2.0
//! Files generated from a manifest: slot wrapper, register file, accessors, reference page.

use std::path::{Path, PathBuf};

use minijinja::{Environment, Value, context};

use crate::manifest::{Access, Manifest, Register};
use crate::{Error, Result};

/// Files written by [`crate::Project::generate`].
#[derive(Debug, Clone)]
pub struct Generated {
    /// The slot wrapper and the register file, in reading order.
    pub verilog: Vec<PathBuf>,
    /// Register accessors for C.
    pub c: PathBuf,
    /// Register accessors for Rust.
    pub rust: PathBuf,
    /// Register accessors for Python.
    pub python: PathBuf,
    /// Reference page.
    pub page: PathBuf,
}

/// Type of one register wire.
fn wire(width: u32) -> String {
    if width == 1 { "logic".to_owned() } else { format!("logic [{}:0]", width - 1) }
}

/// A port of the app's top module.
pub(crate) struct AppPort {
    pub name: String,
    pub declaration: String,
    /// Key of what defines it in the manifest.
    pub item: String,
}

impl Manifest {
    /// Ports of the app's top module in order; clock and reset come first.
    pub(crate) fn app_ports(&self) -> Vec<AppPort> {
        let given = |name: &str| AppPort {
            name: name.to_owned(),
            declaration: format!("input  logic {name}"),
            item: "app".to_owned(),
        };
        let mut ports = vec![given("clk_i"), given("rst_ni")];
        let mut add = |item: &str, dir: &str, ty: &str, name: String| {
            let suffix = if dir == "input" { "i" } else { "o" };
            let name = format!("{name}_{suffix}");
            let declaration = format!("{dir:<6} {ty} {name}");
            ports.push(AppPort { name, declaration, item: item.to_owned() });
        };
        let mut channel = |item: &str, from_app: bool, ty: &str, name: &str| {
            let (there, back) = if from_app { ("output", "input") } else { ("input", "output") };
            add(item, there, ty, name.to_owned());
            add(item, there, "logic", format!("{name}_valid"));
            add(item, back, "logic", format!("{name}_ready"));
        };
        for s in &self.stream_in {
            channel(&format!("stream_in.{}", s.name), false, "strm_t", &s.name);
        }
        for s in &self.stream_out {
            channel(&format!("stream_out.{}", s.name), true, "strm_t", &s.name);
        }
        if let Some(m) = &self.memory {
            for (ch, ty, from_app) in AXI {
                channel(&format!("memory.{}", m.name), from_app, ty, &format!("{}_{ch}", m.name));
            }
        }
        for r in &self.registers {
            let item = format!("register.{}", r.name);
            let dir = if r.access == Access::Ro { "output" } else { "input" };
            add(&item, dir, &wire(r.width), r.name.clone());
            if r.strobe {
                add(&item, "input", "logic", format!("{}_we", r.name));
            }
        }
        for (present, name) in [(self.busy, "busy"), (self.irq, "irq")] {
            if present {
                add(&format!("app.{name}"), "output", "logic", name.to_owned());
            }
        }
        ports
    }
}

/// Channels of the memory port: name, type, driven by the app.
const AXI: [(&str, &str, bool); 5] = [
    ("ar", "axi_ax_t", true),
    ("r", "axi_r_t", false),
    ("aw", "axi_ax_t", true),
    ("w", "axi_w_t", true),
    ("b", "axi_b_t", false),
];

/// Names that properties of a Python class cannot have.
const PYTHON_KEYWORDS: [&str; 33] = [
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
    "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not",
    "or", "pass", "property", "raise", "return", "try", "while", "with", "yield",
];

fn register_value(r: &Register) -> Value {
    let words: Vec<Value> = (0..r.words())
        .map(|k| {
            let high = (32 * k + 31).min(r.width - 1);
            context! { index => r.offset / 4 + k, low => 32 * k, high => high, bits => high - 32 * k + 1, last => k + 1 == r.words(), k => k }
        })
        .collect();
    let hex: String = r.reset.iter().rev().map(|w| format!("{w:08x}")).collect();
    let hex = hex.trim_start_matches('0');
    let doc = if r.doc.is_empty() { r.name.clone() } else { r.doc.clone() };
    context! {
        name => r.name,
        upper => r.name.to_uppercase(),
        python => if PYTHON_KEYWORDS.contains(&r.name.as_str()) { format!("{}_", r.name) } else { r.name.clone() },
        width => r.width,
        wire => wire(r.width),
        access => format!("{:?}", r.access).to_lowercase(),
        required => r.required,
        strobe => r.strobe,
        reset => format!("{}'h{}", r.width, if hex.is_empty() { "0" } else { hex }),
        reset_hex => format!("0x{}", if hex.is_empty() { "0" } else { hex }),
        doc => doc,
        offset => r.offset,
        offset_hex => format!("0x{:03x}", r.offset),
        count => r.words(),
        words => words,
    }
}

fn manifest_value(m: &Manifest) -> Value {
    let ports: Vec<Value> = m
        .app_ports()
        .into_iter()
        .map(|port| context! { name => port.name, declaration => port.declaration })
        .collect();
    let camel: String = m
        .name
        .split('_')
        .flat_map(|part| {
            let mut c = part.chars();
            c.next().map(|f| f.to_ascii_uppercase()).into_iter().chain(c).collect::<Vec<_>>()
        })
        .collect();
    let most_words = |written: bool| {
        let registers = m.registers.iter().filter(|r| !written || r.access != Access::Ro);
        registers.map(Register::words).max().unwrap_or(0)
    };
    context! {
        name => m.name,
        upper => m.name.to_uppercase(),
        camel => camel,
        version => m.version,
        summary => m.summary,
        top => m.top,
        busy => m.busy,
        irq => m.irq,
        stream_in => m.stream_in.iter().map(|s| s.name.clone()).collect::<Vec<_>>(),
        lanes => m.stream_in.iter().map(|s| s.lanes).collect::<Vec<_>>(),
        stream_out => m.stream_out.iter().map(|s| s.name.clone()).collect::<Vec<_>>(),
        lengths => m.stream_out.iter().map(|s| format!("{:?}", s.length).to_lowercase()).collect::<Vec<_>>(),
        memory => m.memory.as_ref().map(|mem| mem.name.clone()),
        ports => ports,
        registers => m.registers.iter().map(register_value).collect::<Vec<_>>(),
        stage_words => most_words(true).saturating_sub(1),
        snap_words => most_words(false).saturating_sub(1),
        data_width => m.data_width,
    }
}

/// Renders one template of this crate.
pub(crate) fn render(template: &str, source: &str, ctx: Value) -> String {
    let mut env = Environment::new();
    env.set_trim_blocks(true);
    env.set_lstrip_blocks(true);
    env.set_keep_trailing_newline(true);
    env.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    // The templates are part of this crate and cannot be wrong for a checked manifest; the tests render all of them.
    env.render_named_str(template, source, ctx).unwrap_or_else(|e| panic!("template {template}: {e:#}"))
}

macro_rules! template {
    ($name:literal, $ctx:expr) => {
        render($name, include_str!(concat!("../templates/", $name, ".in")), $ctx)
    };
}

/// Writes a file atomically, and only if its content changes, so that dependent files are not rebuilt.
pub(crate) fn write_if_changed(path: &Path, content: &[u8]) -> Result<()> {
    use std::io::Write;
    if std::fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let fresh = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(folder);
    let mut fresh = fresh.map_err(Error::io(folder))?;
    fresh.write_all(content).map_err(Error::io(path))?;
    fresh.persist(path).map_err(|e| Error::Io { path: path.to_owned(), source: e.error })?;
    Ok(())
}

pub(crate) fn generate(m: &Manifest, out: &Path) -> Result<Generated> {
    std::fs::create_dir_all(out).map_err(Error::io(out))?;
    let put = |file: String, content: String| -> Result<PathBuf> {
        let path = out.join(file);
        write_if_changed(&path, content.as_bytes())?;
        Ok(path)
    };
    let ctx = manifest_value(m);
    let mut verilog = Vec::new();
    verilog.push(put("via_app_regs.sv".into(), template!("via_app_regs.sv", ctx.clone()))?);
    verilog.push(put("via_slot.sv".into(), template!("via_slot.sv", ctx.clone()))?);
    Ok(Generated {
        verilog,
        c: put(format!("{}_regs.h", m.name), template!("regs.h", ctx.clone()))?,
        rust: put(format!("{}_regs.rs", m.name), template!("regs.rs", ctx.clone()))?,
        python: put(format!("{}_regs.py", m.name), template!("regs.py", ctx.clone()))?,
        page: put(format!("{}.md", m.name), template!("page.md", ctx))?,
    })
}
