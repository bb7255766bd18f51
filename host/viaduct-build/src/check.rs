// SPDX-License-Identifier: Apache-2.0
//! The raw contents of `app.toml`, and its rules.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::plain;
use crate::manifest::{Access, Length, Manifest, Memory, Register, StreamIn, StreamOut};
use crate::names::{NAME_RULE, is_free_name};
use crate::value::{Format, MAX_WIDTH, parse_value};
use crate::{Error, Result};

/// Bytes of a slot's register window.
pub(crate) const WINDOW: u32 = 4096;
/// Most streams of one direction.
const MAX_STREAMS: usize = 16;
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    app: RawApp,
    #[serde(default)]
    stream_in: Vec<RawStreamIn>,
    #[serde(default)]
    stream_out: Vec<RawStreamOut>,
    #[serde(default)]
    memory: Vec<Memory>,
    #[serde(default)]
    register: Vec<RawRegister>,
    model: Option<RawModel>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawApp {
    name: String,
    version: String,
    summary: String,
    top: String,
    generator: Option<PathBuf>,
    #[serde(default)]
    sources: Vec<PathBuf>,
    #[serde(default)]
    data_width: Vec<u32>,
    #[serde(default)]
    busy: bool,
    #[serde(default)]
    irq: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStreamIn {
    name: String,
    #[serde(default = "one")]
    lanes: u16,
}

fn one() -> u16 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStreamOut {
    name: String,
    length: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRegister {
    name: String,
    width: u32,
    access: Access,
    #[serde(default)]
    format: Format,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    strobe: bool,
    reset: Option<RawValue>,
    example: Option<RawValue>,
    #[serde(default)]
    doc: String,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "not a number from 0 to 2^64 - 1, and not text")]
enum RawValue {
    Number(u64),
    Text(String),
}

impl std::fmt::Display for RawValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RawValue::Number(n) => n.fmt(f),
            RawValue::Text(t) => t.fmt(f),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawModel {
    python: PathBuf,
}

// ---------------------------------------------------------------- rules

/// Context of the checks: a manifest's file and text.
pub(crate) struct Check<'a> {
    pub file: &'a Path,
    pub text: &'a str,
}

/// The manifest itself, as a key.
pub(crate) const WHOLE: &str = "app.toml";

/// The lines that a key path names: `app.version`, `register.key`, `register.key.width`; more than one if there are items
/// of one name. Found in the text, because a parsed manifest has no lines; a table written in an unusual way has none.
fn lines_of(text: &str, key: &str) -> Vec<usize> {
    let value = |line: &str, key: &str| {
        let rest = line.trim_start().strip_prefix(key)?.trim_start().strip_prefix('=')?;
        Some(rest.trim_start().trim_matches(['"', '\'']).split(['"', '\'']).next().unwrap_or("").to_owned())
    };
    let mut path = key.splitn(3, '.');
    let (table, second, third) = (path.next().unwrap_or(""), path.next(), path.next());
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    if key == WHOLE {
        return found;
    }
    for (begin, header) in lines.iter().enumerate() {
        let is_array = match header.trim().strip_prefix('[').and_then(|h| h.split(']').next()) {
            Some(name) if name.trim() == table => false,
            Some(name) if name.strip_prefix('[').is_some_and(|n| n.trim() == table) => true,
            _ => continue,
        };
        let body = lines[begin + 1..].iter().take_while(|l| !l.trim_start().starts_with('['));
        let find = |key: &str| body.clone().position(|l| value(l, key).is_some()).map(|n| begin + n + 2);
        let field = if is_array {
            if let Some(name) = second
                && !body.clone().any(|l| value(l, "name").is_some_and(|v| v == name))
            {
                continue;
            }
            third
        } else {
            second
        };
        found.push(field.and_then(find).unwrap_or(begin + 1));
    }
    found
}

fn is_inside(p: &Path) -> bool {
    p.components().all(|c| matches!(c, std::path::Component::Normal(_)))
}

impl Check<'_> {
    pub fn wrong(&self, key: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Error {
        self.at(lines_of(self.text, key).first(), key, problem, remedy)
    }

    /// As [`Check::wrong`], for the second of two items that cannot both be.
    fn twice(&self, key: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Error {
        self.at(lines_of(self.text, key).last(), key, problem, remedy)
    }

    fn at(
        &self,
        line: Option<&usize>,
        key: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Error {
        Error::Manifest {
            file: self.file.to_owned(),
            line: line.copied(),
            key: plain(key),
            problem: plain(&problem.into()),
            remedy: remedy.into(),
        }
    }

    fn name(&self, key: &str, name: &str) -> Result<()> {
        if is_free_name(name) {
            return Ok(());
        }
        Err(self.wrong(key, format!("{name:?} cannot be a name"), NAME_RULE))
    }

    /// Text for comments in generated files: one line, no end of a comment.
    fn line(&self, key: &str, text: &str) -> Result<()> {
        if text.chars().count() <= 200 && !text.chars().any(char::is_control) && !text.contains("*/") {
            return Ok(());
        }
        Err(self.wrong(
            key,
            "not one plain line",
            "use at most 200 characters, no control characters, no \"*/\"",
        ))
    }

    /// Checks everything and gives the registers their offsets.
    pub fn manifest(&self, dir: &Path, raw: Raw) -> Result<Manifest> {
        let app = raw.app;
        self.name("app.name", &app.name)?;
        self.name("app.top", &app.top)?;
        self.line("app.summary", &app.summary)?;
        if app.summary.is_empty() {
            return Err(self.wrong("app.summary", "empty", "say in one line what the app does"));
        }
        let parts: Vec<_> = app.version.split('.').collect();
        if parts.len() != 3 || parts.iter().any(|p| p.len() > 5 || p.parse::<u32>().is_err()) {
            return Err(self.wrong(
                "app.version",
                format!("{:?} is not a version", app.version),
                "use three numbers, such as \"0.1.0\"",
            ));
        }
        for w in &app.data_width {
            if ![64, 128, 256, 512].contains(w) {
                return Err(self.wrong(
                    "app.data_width",
                    format!("no card is {w} bits wide"),
                    "use 64, 128, 256 or 512",
                ));
            }
        }
        if app.generator.as_ref().is_some_and(|g| !is_inside(g)) {
            return Err(self.wrong(
                "app.generator",
                "not in the app's folder",
                "use a path below the folder, without ..",
            ));
        }
        for s in &app.sources {
            if !is_inside(s.strip_prefix("../common").unwrap_or(s)) {
                return Err(self.wrong(
                    "app.sources",
                    format!("{} is not in the app's folder", s.display()),
                    "use a path below the folder or ../common, without ..",
                ));
            }
        }
        let model = match raw.model {
            Some(m) if !is_inside(&m.python) => {
                return Err(self.wrong(
                    "model.python",
                    "not in the app's folder",
                    "use a path below the folder, without ..",
                ));
            }
            m => m.map(|m| m.python),
        };
        for (key, n) in [("stream_in", raw.stream_in.len()), ("stream_out", raw.stream_out.len())] {
            if n > MAX_STREAMS {
                return Err(self.wrong(key, format!("{n} streams"), format!("use at most {MAX_STREAMS}")));
            }
        }
        if raw.memory.len() > 1 {
            return Err(self.wrong(
                "memory",
                format!("{} memory ports", raw.memory.len()),
                "use at most one",
            ));
        }
        let stream_in = raw.stream_in.into_iter().map(|s| self.stream_in(s)).collect::<Result<Vec<_>>>()?;
        let stream_out =
            raw.stream_out.into_iter().map(|s| self.stream_out(s)).collect::<Result<Vec<_>>>()?;
        let registers = self.registers(raw.register)?;
        let memory = raw.memory.into_iter().next();
        if let Some(m) = &memory {
            self.memory(m, &registers)?;
        }
        if stream_in.is_empty() && stream_out.is_empty() && memory.is_none() && registers.is_empty() {
            return Err(self.wrong(
                WHOLE,
                "the app has no port and no register",
                "add [[stream_in]], [[stream_out]], [[memory]] or [[register]]",
            ));
        }
        let manifest = Manifest {
            dir: dir.to_owned(),
            name: app.name,
            version: app.version,
            summary: app.summary,
            top: app.top,
            generator: app.generator,
            sources: app.sources,
            data_width: app.data_width,
            busy: app.busy,
            irq: app.irq,
            stream_in,
            stream_out,
            memory,
            registers,
            model,
        };
        let mut seen = HashSet::new();
        for port in manifest.app_ports() {
            if !seen.insert(port.name.clone()) {
                return Err(self.twice(
                    &port.item,
                    format!("two items define a port {} of the app", port.name),
                    "rename the stream, memory port or register",
                ));
            }
        }
        Ok(manifest)
    }

    fn stream_in(&self, s: RawStreamIn) -> Result<StreamIn> {
        let key = format!("stream_in.{}", s.name);
        self.name(&key, &s.name)?;
        if !(1..=256).contains(&s.lanes) {
            return Err(self.wrong(&format!("{key}.lanes"), format!("{} lanes", s.lanes), "use 1 to 256"));
        }
        Ok(StreamIn { name: s.name, lanes: s.lanes })
    }

    fn stream_out(&self, s: RawStreamOut) -> Result<StreamOut> {
        let key = format!("stream_out.{}", s.name);
        self.name(&key, &s.name)?;
        let length = match s.length.as_deref() {
            None | Some("any") => Length::Any,
            Some("same") => Length::Same,
            Some(text) => match text.strip_prefix("message:").and_then(|n| n.parse().ok()) {
                Some(n) if (1..=1 << 32).contains(&n) => Length::Message(n),
                _ => {
                    return Err(self.wrong(
                        &format!("{key}.length"),
                        format!("{text:?} is not a length"),
                        "use \"same\", \"any\" or \"message:BYTES\"",
                    ));
                }
            },
        };
        Ok(StreamOut { name: s.name, length })
    }

    fn registers(&self, raw: Vec<RawRegister>) -> Result<Vec<Register>> {
        let mut offset = 0;
        let mut registers: Vec<Register> = Vec::new();
        for r in raw {
            let key = format!("register.{}", r.name);
            self.name(&key, &r.name)?;
            self.line(&format!("{key}.doc"), &r.doc)?;
            if registers.iter().any(|o| o.name == r.name) {
                return Err(self.twice(&key, "there are two registers of this name", "rename one"));
            }
            let register = self.register(&key, r, offset)?;
            offset += register.words() * 4;
            if offset > WINDOW {
                return Err(self.wrong(
                    &key,
                    format!("the registers need more than {WINDOW} bytes"),
                    "use fewer or narrower ones",
                ));
            }
            registers.push(register);
        }
        Ok(registers)
    }

    /// A register at an offset; its table is `key`.
    fn register(&self, key: &str, r: RawRegister, offset: u32) -> Result<Register> {
        self.width(key, &r)?;
        self.only_rw(key, &r)?;
        let reset = r.reset.as_ref().map_or_else(|| "0".to_owned(), RawValue::to_string);
        let reset = parse_value(&reset, r.width, Format::Number).map_err(|problem| {
            let remedy = format!("use a number of at most {} bits", r.width);
            self.wrong(&format!("{key}.reset"), problem, remedy)
        })?;
        let example = r.example.as_ref().map(RawValue::to_string);
        if let Some(text) = &example {
            parse_value(text, r.width, r.format).map_err(|problem| {
                self.wrong(&format!("{key}.example"), problem, "use a value in the form of --set")
            })?;
        }
        Ok(Register {
            name: r.name,
            width: r.width,
            access: r.access,
            format: r.format,
            required: r.required,
            strobe: r.strobe,
            reset,
            example,
            doc: r.doc,
            offset,
        })
    }

    /// The width of a register, for its access and its format.
    fn width(&self, key: &str, r: &RawRegister) -> Result<()> {
        let most = if r.access == Access::Pulse { 32 } else { MAX_WIDTH };
        if r.width == 0 || r.width > most {
            let problem = format!("{} bits", r.width);
            return Err(self.wrong(&format!("{key}.width"), problem, format!("use 1 to {most}")));
        }
        if r.format == Format::Bytes && r.width % 8 != 0 {
            return Err(self.wrong(
                &format!("{key}.format"),
                "the width is not a number of bytes",
                "use a multiple of 8 bits",
            ));
        }
        Ok(())
    }

    /// What only a register that software writes and reads has.
    fn only_rw(&self, key: &str, r: &RawRegister) -> Result<()> {
        for (what, given) in [
            ("required", r.required),
            ("strobe", r.strobe),
            ("reset", r.reset.is_some()),
            ("example", r.example.is_some()),
        ] {
            if given && r.access != Access::Rw {
                return Err(self.wrong(
                    &format!("{key}.{what}"),
                    "only a register with access \"rw\" has it",
                    "remove it",
                ));
            }
        }
        Ok(())
    }

    fn memory(&self, m: &Memory, registers: &[Register]) -> Result<()> {
        let key = format!("memory.{}", m.name);
        self.name(&key, &m.name)?;
        let roles = [
            ("base", &m.base, Access::Rw, 48),
            ("bytes", &m.bytes, Access::Rw, 1),
            ("start", &m.start, Access::Pulse, 1),
            ("done", &m.done, Access::Ro, 1),
        ];
        for (role, name, access, least) in roles {
            let Some(name) = name else { continue };
            let key = format!("{key}.{role}");
            match registers.iter().find(|r| r.name == *name) {
                None => {
                    return Err(self.wrong(
                        &key,
                        format!("there is no register {name:?}"),
                        "name one of the [[register]] tables",
                    ));
                }
                Some(r) if r.access != access => {
                    return Err(self.wrong(
                        &key,
                        format!("register {name:?} has the wrong access"),
                        format!("use access = {:?}", format!("{access:?}").to_lowercase()),
                    ));
                }
                Some(r) if r.width < least => {
                    return Err(self.wrong(
                        &key,
                        format!("register {name:?} has {} bits", r.width),
                        format!("use at least {least}"),
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}
